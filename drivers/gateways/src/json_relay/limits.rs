//! Every maximum of the JSON relay, each with its reason. PURE.

use std::time::Duration;

/// The longest datagram, in bytes: all that UDP over IPv4 can carry, as in the original server.
pub const MAX_DATAGRAM: usize = 65_507;

/// How deep JSON may be nested. Messages have two levels.
pub const MAX_DEPTH: usize = 8;

/// The longest id of a client, in bytes. It appears in logs and in the status.
pub const MAX_CLIENT_ID: usize = 64;

/// The longest secret, in bytes.
pub const MAX_SECRET: usize = 256;

/// The highest number of fragments of an image: 1.2 MB in fragments for the internet.
pub const MAX_FRAGMENTS: u32 = 1024;

/// The longest image, in bytes of base64.
pub const MAX_IMAGE: usize = 8 << 20;

/// Incomplete images of one robot: fragments of the next one may overtake those of the last.
pub const MAX_OPEN_IMAGES: usize = 3;

/// How long an incomplete image is kept.
pub const MAX_IMAGE_AGE: Duration = Duration::from_secs(2);

/// The longest datagram with an image on any network, in bytes: it needs no fragments of IP.
pub const USUAL_MTU: usize = 1200;

/// The longest datagram with an image that can be configured, in bytes.
pub const MAX_MTU: usize = 60_000;

/// The shortest datagram with an image that can be configured, in bytes: twice what the JSON
/// around it needs.
pub const MIN_MTU: usize = 256;

/// How many clients of each role a server accepts. The original has no limit; each image goes to
/// all controls.
pub const MAX_CLIENTS: usize = 32;

/// How much a timestamp in seconds may be behind although its command is new.
pub const SECONDS: Duration = Duration::from_secs(1);

/// How long a client is kept without a sign of life. The original's value.
pub const CLIENT_LIFE: Duration = Duration::from_secs(60);

/// The same for a client outside of private networks: its address may be forged, and images would
/// flood the owner of that address.
pub const OUTSIDE_CLIENT_LIFE: Duration = Duration::from_secs(10);

/// The time between two checks for clients that are gone.
pub const SWEEP_PERIOD: Duration = Duration::from_secs(1);

/// The time between two heartbeats that we send.
pub const BEAT_PERIOD: Duration = Duration::from_secs(5);

/// The time between two registrations that we send: the server may have started again, and it does
/// not say so.
pub const REGISTER_PERIOD: Duration = Duration::from_secs(30);

/// Answers per second to one address that sends wrong messages.
pub const ERRORS_PER_S: u32 = 10;

/// The longest reason in an answer to a wrong message, in characters.
pub const MAX_REASON: usize = 200;

/// A command with the same timestamp from the same control within this time is a duplicate.
pub const DUPLICATE_PERIOD: Duration = Duration::from_millis(50);

/// How many bytes are sent to one control at a time, and how often. Bursts of a whole image
/// overflow the receive buffers of most systems (about 200 KB).
pub const PACE_BYTES: usize = 64 * 1024;
/// See [`PACE_BYTES`].
pub const PACE_PERIOD: Duration = Duration::from_millis(1);

/// Images that wait for one receiver: a CPU pause of 0.3 s loses none at ten per second.
/// Then the newest matter.
pub const MAX_WAITING_IMAGES: usize = 3;

/// How many bytes of images per second a control outside of private networks gets: 4 Mbit/s.
pub const OUTSIDE_BYTES_PER_S: u32 = 500_000;

/// Pictures of the robot's camera per second that controls of the server get. They ask for none, so it is
/// enough to steer by, and no more.
pub const PICTURES_PER_S: f64 = 5.0;

/// The most that can be configured.
pub const MAX_PICTURES_PER_S: f64 = 30.0;

/// Wider pictures of the camera are made smaller.
pub const PICTURE_WIDTH: u32 = 640;

/// The longest piece of an image for Amber's clients, in bytes, so that it fits into a datagram of
/// old clients.
pub const AMBER_PIECE: usize = 12_000;

/// The time between two commands for a foreign robot.
pub const COMMAND_PERIOD: Duration = Duration::from_millis(200);

/// A foreign robot gets no command below this speed, in mm/s: its only speed is faster.
pub const SLOWEST_MM_S: f64 = 30.0;
