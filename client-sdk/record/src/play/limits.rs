//! Every maximum of playing, each with its reason.

/// Chunks of a recording that can be played. Their index is in memory, about 100 bytes each; these
/// are a terabyte of our own recordings.
pub(super) const CHUNKS: usize = 1_000_000;

/// The longest time between two files of a recording. The next file begins with what was known at the
/// end of the last one, so more time is between recordings of different runs.
pub(super) const APART: std::time::Duration = std::time::Duration::from_secs(60);

/// The bytes of the chunks that stay in memory for requests: a few seconds of a busy robot, around
/// the position of the player. One chunk may be longer.
pub(super) const CACHED_BYTES: usize = 16 * 1024 * 1024;

/// Chunks that are read for one request, which takes a few seconds: an answer may be far away, such
/// as a map that was requested once, but clients do not wait forever.
pub(super) const SEARCHED_CHUNKS: usize = 4096;

/// Chunks after a request that may have its answer: many seconds of a busy robot. Later, clients
/// have given up.
pub(super) const CHUNKS_TO_ANSWER: usize = 16;

/// Requests without an answer in the recording that are remembered, so that the file is searched
/// only once for each. More are searched for again.
pub(super) const UNANSWERED: usize = 1024;

/// The slowest rate of a player: a scan of a Hokuyo each ten seconds.
pub const MIN_RATE: f64 = 0.01;

/// The fastest rate of a player: an hour in four seconds, more than a disk delivers.
pub const MAX_RATE: f64 = 1000.0;

/// The shortest round of a repeated recording, so that one with a single message does not keep a
/// CPU core busy.
pub(super) const MIN_LAP: std::time::Duration = std::time::Duration::from_millis(100);
