//! Every maximum of the Apollo bridge, each with its reason. PURE.

use std::time::Duration;

/// The payload of each frame but the last, in bytes. Apollo's own value.
pub const FRAME_PAYLOAD: usize = 1024;

/// The longest header that is read, in bytes. Apollo's receivers drop longer ones.
pub const MAX_HEADER: usize = 1024;

/// The longest name of a message, in bytes. The longest of Apollo has about 60.
pub const MAX_NAME: usize = 128;

/// The longest message, in bytes. A cloud of 682 points has 20 KiB; a sender on the network must
/// not be able to reserve more.
pub const MAX_MESSAGE: usize = 1 << 20;

/// The highest number of frames of a message: one of [`MAX_MESSAGE`] in pieces of 64 bytes.
/// Smaller pieces would cost more for their headers than for their content.
pub const MAX_FRAMES: usize = MAX_MESSAGE / 64;

/// How many messages of one source may be incomplete. Apollo sends one after the other, so a few
/// are enough for datagrams out of order.
pub const MAX_OPEN_PER_SOURCE: usize = 8;

/// How much all incomplete messages may need, in bytes: two sources at their own limit.
pub const MAX_OPEN_TOTAL: usize = 16 << 20;

/// The cost of an incomplete message in addition to its content, in bytes. So many tiny ones
/// cannot fill the memory either.
pub const OPEN_OVERHEAD: usize = 1024;

/// How long an incomplete message is kept after its first frame. Apollo's own value.
pub const MAX_OPEN_AGE: Duration = Duration::from_secs(1);

/// After this time without a message that was accepted, any number is accepted.
pub const RESTART_SILENCE: Duration = Duration::from_secs(2);

/// How far the number of the next message may be ahead: more than are lost in [`RESTART_SILENCE`] at
/// the highest rate.
pub const MAX_AHEAD: u32 = 1000;

/// How far the number of a message may be behind because the network has changed their order. A sender
/// whose numbers are further behind has restarted.
pub const MAX_BEHIND: u32 = 8;

/// How many senders and names are remembered for their last message number. Each is forgotten
/// after [`RESTART_SILENCE`].
pub const MAX_REMEMBERED: usize = 1024;

/// The time between two frames. Apollo's receivers lose frames that arrive in bursts.
pub const FRAME_PERIOD: Duration = Duration::from_micros(500);

/// Frames that may wait when another message is added: those of a few scans, for pauses of the
/// CPU of 30 ms. Then the newest measurement waits for them.
pub const MAX_FRAMES_AHEAD: usize = 64;

/// How much earlier than now messages are stamped. Apollo drops a message from its future.
pub const STAMP_GUARD: Duration = Duration::from_millis(1);

/// A measurement that is older is not sent.
pub const MAX_AGE: Duration = Duration::from_secs(1);

/// How long a trajectory is valid. Apollo sends ten per second.
pub const TRAJECTORY_LIFE: Duration = Duration::from_secs(1);

/// The time between two lists of targets. DriveToPoint plans its way anew for each, and Apollo's
/// trajectories change with every message.
pub const TARGETS_PERIOD: Duration = Duration::from_millis(500);

/// The distance between two targets of a trajectory, in metres. Its points are centimetres apart.
pub const TARGET_SPACING_M: f64 = 0.5;

/// The highest number of targets of a trajectory: 25 m, more than the robot drives in the life of
/// a trajectory.
pub const MAX_TARGETS: usize = 50;

/// The radius of targets, in metres.
pub const TARGET_RADIUS_M: f64 = 0.3;

/// The highest number of lines in the configuration, each with a socket.
pub const MAX_LINES: usize = 32;
