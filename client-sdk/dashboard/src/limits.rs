//! The limits of the dashboard, each with its reason. PURE.

use std::time::Duration;

/// How long a motion command is valid if it is not repeated. The page repeats it every 50 ms, so
/// six may get lost; including the braking time of the wheels, the robot stops within 0.5 s.
pub const MOTION_LIFE: Duration = Duration::from_millis(350);

/// A motion that the network has delayed by more is not carried out. Pages say when they send.
pub const MOTION_LAG: Duration = Duration::from_millis(500);

/// How long the wheels themselves obey a command, for the case that this program has frozen: a little
/// longer than [`MOTION_LIFE`], because commands take some time to arrive.
pub const MOTION_VALIDITY: Duration = Duration::from_millis(500);

/// The lease of what a page moves ends if the dashboard gives no sign of life for this time, for
/// example because it has frozen. Then targets end, too.
pub const LEASE_PERIOD: Duration = MOTION_VALIDITY;

/// How long a page keeps the lease after its last motion: as long as its seat.
pub const LEASE_HOLD: Duration = amber_robot::limits::SEAT_HOLD;

/// How long a page that takes over may take for its next motion.
pub const TAKE_OVER_TIME: Duration = Duration::from_secs(5);

/// Messages per second from one page: a stick sends 20, the rest are clicks.
pub const MESSAGE_RATE: u32 = 60;

/// Requests per second from all pages to devices: clicks, and some to spare.
pub const CALL_RATE: u32 = 20;

/// Requests of one page that may wait for their answers. Most take milliseconds; calibrations take
/// a minute.
pub const MAX_CALLS: usize = 8;

/// The largest message from a page. Forms are small; a map that is uploaded has up to 32 kB.
pub const MAX_MESSAGE: usize = 64 * 1024;

/// The time between two batches of frames to one page: 25 per second look smooth, because the page
/// draws poses in between.
pub const FRAME_PERIOD: Duration = Duration::from_millis(40);

/// Lines (events, answers) that wait for one page. Then the oldest are dropped.
pub const MAX_LINES: usize = 256;

/// The bytes of these lines. Most have less than 1 kB; values of devices have more.
pub const MAX_LINE_BYTES: usize = 1024 * 1024;

/// The longest text in a notice or an error, in characters: it may repeat what the page has sent.
pub const MAX_NOTICE: usize = 500;

/// Events that are kept for pages that come later.
pub const MAX_EVENTS: usize = 200;

/// Maximum number of open pages. Each costs a few hundred kB per second at most.
pub const MAX_VIEWERS: usize = 32;

/// Places for pages that may drive, if all view-only ones are taken.
pub const FOR_DRIVING: usize = 1;

/// Maximum number of connections without a token: those that load the page, and those that have not
/// said hello.
pub const MAX_GUESTS: usize = 128;

/// The same of one IP address. Browsers open up to six. Then its oldest one is closed.
pub const MAX_GUESTS_PER_IP: usize = 24;

/// How long a page may take for its first message.
pub const HELLO_TIME: Duration = Duration::from_secs(5);

/// The time between two pings to a page.
pub const PING_PERIOD: Duration = Duration::from_millis(200);

/// A page that answers no ping for this time may have frozen: a target that it has set is cancelled.
pub const TARGET_SILENCE: Duration = MOTION_VALIDITY;

/// A page that does not even answer pings for this time is gone. Its motion by the stick has ended
/// long before: [`MOTION_LIFE`].
pub const SILENT_PAGE: Duration = Duration::from_secs(4);

/// How long a page may take to make room for a frame.
pub const WRITE_TIME: Duration = Duration::from_secs(4);

/// Inputs that wait for the hub: about a second of all feeds and pages. Then pages and feeds wait.
pub const MAX_INPUTS: usize = 256;

/// The time between two lists of the drivers.
pub const DRIVERS_PERIOD: Duration = Duration::from_secs(1);

/// The time between two messages to the client of a page that drives, if the robot has motion sensors.
/// After the dashboard is killed, the wheels turn this much longer at most.
pub const PROOF_PERIOD: Duration = Duration::from_millis(100);

/// A motion command that cannot be sent in this time is outdated.
pub const MOTION_DEADLINE: Duration = Duration::from_millis(100);

/// The time between two notices with the same words about motions that are refused.
pub const TELL_AGAIN: Duration = Duration::from_secs(3);

/// The number of stop commands, because some may get lost, and the time between them.
pub const STOPS: u32 = 3;
/// See [`STOPS`].
pub const BETWEEN_STOPS: Duration = Duration::from_millis(20);

/// The most pictures per second of a page. Cameras have up to 60.
pub const MAX_RATE: u32 = 60;

/// The smallest width of pictures in pixels: the description of the camera names it, too.
pub const MIN_WIDTH: u32 = 16;

/// The time between two pings to a page that shows pictures.
pub const PICTURE_PINGS: Duration = Duration::from_secs(1);

/// A page that does not even answer pings for this time shows no pictures. It is longer than
/// [`SILENT_PAGE`], because a ping may wait behind a large picture.
pub const SILENT_PICTURES: Duration = Duration::from_secs(15);

/// How long a page may take for one picture.
pub const PICTURE_TIME: Duration = SILENT_PICTURES;

/// Pages that are clients of the mediator at a time. Each page of the dashboard is up to three: its plots,
/// a panel, and a button that was pressed.
pub const MAX_ROBOT_CLIENTS: usize = 3 * MAX_VIEWERS;

/// Frames per second of a page that is a client of the mediator: four sticks, leases and questions, and
/// the calls for missing pieces of pictures.
pub const FRAME_RATE: u32 = 500;

/// Devices that such a page may use at a time. Each is told when the page is gone.
pub const MAX_USED_DEVICES: usize = 64;

/// Descriptions of users' own devices that are kept for such a page; the newest ones count. Each has at
/// most 16 kB.
pub const MAX_DESCRIPTIONS: usize = 16;

/// Frames that wait for such a page, and their bytes: two large pictures. Then the oldest are dropped,
/// as a network does.
pub const MAX_FRAMES: usize = 4096;
/// See [`MAX_FRAMES`].
pub const MAX_FRAME_BYTES: usize = 4 * 1024 * 1024;

/// The time between attempts to connect to the mediator.
pub const RETRY: Duration = Duration::from_secs(1);

/// How long to wait for the last stop commands when the dashboard ends.
pub const LAST_WORDS: Duration = Duration::from_millis(700);
