//! Every maximum of this crate, each with its reason.

use std::time::Duration;

/// Devices that one process plays. Each has two pipes of 64 kB; no robot has this many.
pub(crate) const DEVICES: usize = 256;

/// How long a message waits until the mediator has read the ones before. It always reads, so this
/// only happens if the CPU is overloaded.
pub(crate) const FULL: Duration = Duration::from_secs(1);

/// Messages in a row before other work gets a turn.
pub(crate) const BATCH: u32 = 32;

/// The time between two reports of the position: fast enough for the eye.
pub(crate) const REPORT: Duration = Duration::from_millis(100);

/// The stream of a client that got nothing for this long, in nanoseconds of the recording, has
/// ended: slower streams are hardly used.
pub(crate) const SILENCE_NS: u64 = 2_000_000_000;

/// The longest line between the terminal and the player, in bytes: far above a report with an
/// event.
pub(crate) const LINE_BYTES: u64 = 256 * 1024;

/// How far one key press jumps.
pub(crate) const JUMP_MS: i64 = 5000;

/// Reports that wait until the terminal has read them: a burst of events.
pub(crate) const REPORTS: usize = 256;
