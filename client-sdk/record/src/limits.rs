//! Every maximum of recordings, each with its reason.

/// The bytes of one chunk: little to lose if the recorder is killed, and large enough for few
/// system calls and a small index.
pub(crate) const CHUNK_BYTES: u64 = 1024 * 1024;

/// The longest record that is read into memory, and the longest index: far above those of any
/// writer. A damaged length must not take all memory. Attachments may be longer.
pub(crate) const RECORD_BYTES: u64 = 1024 * 1024 * 1024;

/// The bytes of an unpacked chunk: a chunk of a few bytes must not take all memory.
pub(crate) const UNPACKED_BYTES: u64 = RECORD_BYTES;

/// The longest name of a compression: `zstd` has 4 characters, and a damaged name must not look like
/// a longer one.
pub(crate) const COMPRESSION_NAME_BYTES: usize = 16;

/// Records in a row that must look like records where one is searched for behind damage. Bytes that look like one by chance are one in a million; two in a row do not occur.
pub(crate) const RECORDS_IN_A_ROW: usize = 2;

/// Damages of one file that are listed; a file may consist of nothing else. All are counted.
pub(crate) const LISTED: usize = 1000;

/// Channels of frames in one recording: MCAP has numbers for 65 535, and messages to invented
/// devices could use them up. All further frames share `/amber/other`.
pub(crate) const CHANNELS: usize = 4096;

/// The bytes that are read from a file at once.
pub(crate) const READ_BYTES: usize = 256 * 1024;

/// The bytes and nanoseconds of a piece of [`crate::Ring`]: old records go in such pieces.
pub(crate) const PIECE_BYTES: usize = 1024 * 1024;
pub(crate) const PIECE_NS: u64 = 1_000_000_000;

/// The level of zstd: the fastest of the usual ones, to save CPU time on the robot.
#[cfg(feature = "zstd")]
pub(crate) const COMPRESSION_LEVEL: i32 = 1;

/// The time between two messages of one channel that a companion gets: fast lasers turn 40 times
/// per second, and people see no more. So conversion costs little at any message rate.
pub(crate) const COMPANION_PERIOD_NS: u64 = 20_000_000;

/// Channels of companions: a few for each of a hundred devices. Further ones are left out.
pub(crate) const COMPANION_CHANNELS: usize = 1024;
