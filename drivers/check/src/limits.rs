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

/// Bytes of a driver's stdout that wait to be looked at: several times as many as it
/// writes to answer [`FLOOD_FRAMES`].
pub(crate) const INPUT_BYTES: usize = 8 * 1024 * 1024;

/// Frames of a check that are kept, and requests to other devices: more than any check
/// causes.
pub(crate) const LOG_FRAMES: usize = 2 * FLOOD_FRAMES as usize;

/// The longest line of stderr, in bytes; longer ones are cut in pieces.
pub(crate) const LINE_BYTES: u64 = 4096;

/// How long nothing must come for us to believe that nothing comes, when the
/// answer to a later question is there already.
pub(crate) const QUIET: Duration = Duration::from_millis(60);

/// How long something published may take to come; the slowest of the original
/// drivers publish four times a second.
pub(crate) const PUBLISHED: Duration = Duration::from_millis(1500);

/// What is sent at most to a driver whose stdout nobody reads, in questions of
/// some 14 bytes: more than buffers of half a megabyte hold.
pub(crate) const FLOOD_FRAMES: u32 = 60_000;

/// What each pipe holds then, in bytes: as little as there is, so that a slow
/// driver is done soon.
pub(crate) const FLOOD_PIPE: i32 = 4096;

/// How long each write of that flood may wait for room.
pub(crate) const FLOOD_WAIT: Duration = Duration::from_millis(300);

/// How long the processor time of a driver that does not end is watched.
pub(crate) const SPIN_WATCH: Duration = Duration::from_millis(400);

/// How long the test mediator waits for a datagram before it looks at the
/// client's process and at what it has to send.
pub(crate) const TURN: Duration = Duration::from_millis(10);

/// A client that was started by hand and is silent for so long has ended.
pub(crate) const SILENCE: Duration = Duration::from_secs(3);

/// How long an answer is held back for the next one to overtake it.
pub(crate) const HELD: Duration = Duration::from_millis(50);

/// When a late answer comes: after the deadline of our own clients, a second.
pub(crate) const LATE: Duration = Duration::from_millis(1500);

/// How often the devices of the test mediator publish.
pub(crate) const PUBLICATION_PERIOD: Duration = Duration::from_millis(100);

/// What is kept of a client's output, in bytes.
pub(crate) const OUTPUT_BYTES: usize = 64 * 1024;
