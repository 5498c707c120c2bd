//! Every maximum and every time of the kit, each with its reason.

use std::time::Duration;

/// Frames that a failure shows, of each direction: the question and what
/// surrounds it.
pub(crate) const SHOWN_FRAMES: usize = 4;

/// Bytes of a frame that a failure shows in hex.
pub(crate) const SHOWN_BYTES: usize = 48;

/// Lines of stderr that a failure shows: a short back trace.
pub(crate) const STDERR_LINES: usize = 12;

/// Lines of stderr that are kept.
pub(crate) const STDERR_KEPT: usize = 100;

/// Raw bytes of stdout that are kept for a diagnosis.
pub(crate) const RAW_BYTES: usize = 4096;

/// How long nothing must come for us to believe that nothing comes, when the
/// answer to a later question is there already.
pub(crate) const QUIET: Duration = Duration::from_millis(60);

/// How long something published may take to come; the slowest of the original
/// drivers publish four times a second.
pub(crate) const PUBLISHED: Duration = Duration::from_millis(1500);

/// What is sent to a driver whose stdout nobody reads: several times what two
/// pipes of 64 KiB and its own buffers hold, in questions of some 14 bytes.
pub(crate) const FLOOD_FRAMES: u32 = 60_000;

/// How long each write of that flood may wait for room.
pub(crate) const FLOOD_WAIT: Duration = Duration::from_millis(300);

/// How long the processor time of a driver that does not end is watched.
pub(crate) const SPIN_WATCH: Duration = Duration::from_millis(400);
