//! Every maximum and every time of the kit, each with its reason.

use std::time::Duration;

/// Frames of each direction that a failure shows: the request and the frames around
/// it.
pub(crate) const SHOWN_FRAMES: usize = 4;

/// Bytes of a frame that a failure shows in hex.
pub(crate) const SHOWN_BYTES: usize = 48;

/// Lines of stderr that a failure shows: a short back trace.
pub(crate) const STDERR_LINES: usize = 12;

/// Lines of stderr that are kept.
pub(crate) const STDERR_KEPT: usize = 100;

/// Raw bytes of stdout that are kept for a diagnosis.
pub(crate) const RAW_BYTES: usize = 4096;

/// Unread bytes of a driver's stdout: several times the answers to [`FLOOD_FRAMES`].
pub(crate) const INPUT_BYTES: usize = 8 * 1024 * 1024;

/// Frames of a check that are kept, and requests to other devices: more than any check
/// causes.
pub(crate) const LOG_FRAMES: usize = 2 * FLOOD_FRAMES as usize;

/// The longest line of stderr, in bytes; longer ones are cut in pieces.
pub(crate) const LINE_BYTES: u64 = 4096;

/// Silence after the answer to a later request that counts as no answer.
pub(crate) const QUIET: Duration = Duration::from_millis(60);

/// The longest time between publications. The slowest original drivers publish
/// four times a second.
pub(crate) const PUBLISHED: Duration = Duration::from_millis(1500);

/// The most requests, of about 14 bytes each, for a driver whose stdout is not read:
/// more than buffers of half a megabyte hold.
pub(crate) const FLOOD_FRAMES: u32 = 60_000;

/// The size of each pipe in that check, in bytes: the minimum, so that a slow driver
/// is done soon.
pub(crate) const FLOOD_PIPE: i32 = 4096;

/// How long each write in that check may wait for room.
pub(crate) const FLOOD_WAIT: Duration = Duration::from_millis(300);

/// How long the busy time of a driver that does not end is measured.
pub(crate) const SPIN_WATCH: Duration = Duration::from_millis(400);

/// How long the test mediator waits for a datagram before it looks at the
/// client's process and at what it has to send.
pub(crate) const TURN: Duration = Duration::from_millis(10);

/// After this silence, a client that the user started counts as ended.
pub(crate) const SILENCE: Duration = Duration::from_secs(3);

/// How long an answer is held back, so that the next one overtakes it.
pub(crate) const HELD: Duration = Duration::from_millis(50);

/// The delay of a late answer: more than the deadline of our own clients, one second.
pub(crate) const LATE: Duration = Duration::from_millis(1500);

/// How often the devices of the test mediator publish.
pub(crate) const PUBLICATION_PERIOD: Duration = Duration::from_millis(100);

/// The part of a client's output that is kept, in bytes.
pub(crate) const OUTPUT_BYTES: usize = 64 * 1024;
