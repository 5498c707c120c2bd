//! Every maximum of `amber record`, each with its reason.

use std::time::Duration;

/// The bytes of the feed that wait for the disk, unless the user says otherwise: some seconds of a
/// full load, so that a pause of the disk leaves no gap. The memory is used only then.
pub(super) const BUFFER: &str = "128MB";

/// The bytes that are read from the feed at once: more than a Unix socket holds.
pub(super) const READ_BYTES: usize = 256 * 1024;

/// After a read of fewer bytes than this, which is half of what a Unix socket holds, ...
pub(super) const FEW_BYTES: usize = 100 * 1024;

/// ...the next read waits for this long, so that it gets more and the mediator wakes nobody. At the
/// rate of `scripts/bench record`, these are 80 kB.
pub(super) const GATHER: Duration = Duration::from_millis(4);

/// A writer that is away for longer than this, because of a slow disk, leaves the reading to the
/// standby. The mediator holds what comes in this time.
pub(super) const STANDBY_AFTER: Duration = Duration::from_millis(20);

/// How long the standby waits for bytes before it looks whether the writer is back.
pub(super) const STANDBY_PATIENCE: Duration = Duration::from_millis(100);

/// The largest buffer that is kept when it is empty: some hundredths of a second of a full load.
pub(super) const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// The bytes that are written to a file at once.
pub(super) const WRITE_BYTES: usize = 256 * 1024;

/// The smallest size of a file: a chunk, and the descriptions of all devices twice.
pub(super) const MIN_FILE_BYTES: u64 = 2_000_000;

/// The memory for a snapshot if nothing else is said: half a minute of 1000 scans a second.
pub(super) const RING_BYTES: u64 = 256_000_000;

/// How much a killed recorder may lose.
pub(super) const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// The time between attempts to watch a camera: its driver may come later.
pub(super) const WATCH_AGAIN: Duration = Duration::from_secs(1);

/// Between two lines of progress: people can read them.
pub(super) const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// The mediator answers at once; a longer pause means that it hangs.
pub(super) const END_PATIENCE: Duration = Duration::from_secs(2);

/// The mediator hands over frames within 10 ms. A snapshot waits a little longer for those that
/// are on the way.
pub(super) const ARRIVAL: Duration = Duration::from_millis(50);

/// How long a snapshot goes on after a driver has died: what it wrote last, and what its clients
/// did.
pub(super) const AFTERMATH: Duration = Duration::from_secs(1);

/// Snapshots that are written without anybody asking, in one run: a driver that dies again and
/// again must not fill the disk.
pub(super) const OWN_SNAPSHOTS: u32 = 20;

/// Snapshots that wait to be written: each holds memory.
pub(super) const WAITING_SNAPSHOTS: usize = 4;

/// The longest remark with a snapshot, in bytes: a sentence.
pub(super) const REMARK_BYTES: usize = 500;

/// The longest answer of a recorder, in bytes: a path and numbers.
pub(super) const ANSWER_BYTES: u64 = 16 * 1024;

/// How long `amber snapshot` waits for a file: as long as a slow disk needs for the largest one.
pub(super) const ANSWER_PATIENCE: Duration = Duration::from_secs(60);
