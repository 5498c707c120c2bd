//! The limits of the server for viewers, each with its reason. PURE.

use std::time::Duration;

/// Maximum number of viewers. Each costs a few hundred kB per second.
pub(super) const MAX_VIEWERS: usize = 16;

/// Maximum number of connections that have not shown the token.
pub(super) const MAX_GUESTS: usize = 64;

/// The same of one IP address. Then its oldest one is closed.
pub(super) const MAX_GUESTS_PER_IP: usize = 16;

/// The largest message from a viewer: a subscription to some hundred channels has 20 kB.
pub(super) const MAX_MESSAGE: usize = 64 * 1024;

/// Subscriptions of one viewer: more than a robot has channels.
pub(super) const MAX_SUBSCRIPTIONS: usize = 1024;

/// Channels of one robot: some hundred devices. Further devices are left out.
pub(super) const MAX_CHANNELS: usize = 4096;

/// Calls of one viewer that may wait for their answers. Most take milliseconds; calibrations take a
/// minute.
pub(super) const MAX_CALLS: usize = 8;

/// Texts and lines of the log that wait for one viewer. Then the oldest are dropped.
pub(super) const MAX_LINES: usize = 256;

/// The bytes of these texts. The list of channels of a large robot has some hundred kB.
pub(super) const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// The time between two batches of messages to one viewer: fast lasers turn 40 times per second,
/// and screens show no more than 60 pictures.
pub(super) const FRAME_PERIOD: Duration = Duration::from_millis(20);

/// The time between two pings to a viewer.
pub(super) const PING_PERIOD: Duration = Duration::from_secs(2);

/// A viewer that does not even answer pings for this time is gone. Browsers slow down hidden pages,
/// but they still answer.
pub(super) const SILENT_VIEWER: Duration = Duration::from_secs(10);

/// How long a viewer may take to make room for a message.
pub(super) const WRITE_TIME: Duration = Duration::from_secs(10);

/// Inputs that wait for the hub: about a second of all upstreams. Then viewers and upstreams wait.
pub(super) const MAX_INPUTS: usize = 256;

/// The time between two lists of the drivers.
pub(super) const DEVICES_PERIOD: Duration = Duration::from_secs(1);

/// The time between two requests for values that a device does not publish.
pub(super) const ASK_PERIOD: Duration = Duration::from_millis(200);

/// The same for particles, which are large.
pub(super) const PARTICLES_PERIOD: Duration = Duration::from_millis(400);

/// The same for maps, which change only when one is uploaded.
pub(super) const MAP_PERIOD: Duration = Duration::from_secs(5);

/// The period of streams that have one.
pub(super) const STREAM_PERIOD: Duration = Duration::from_millis(50);

/// The period of pictures: enough to see how the robot moves, and some hundred kB per second.
pub(super) const PICTURE_PERIOD: Duration = Duration::from_millis(100);

/// The width of pictures, in pixels: panels of viewers are hardly wider.
pub(super) const PICTURE_WIDTH: u32 = 640;

/// The time between attempts to connect to the mediator, or to subscribe to a device.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// The mediator answers from memory, so without an answer in this time it has ended.
pub(super) const MEDIATOR_DEADLINE: Duration = Duration::from_millis(500);
