//! Every maximum of recordings, each with its reason.

/// The bytes of one chunk: little to lose if the recorder is killed, and large enough for few
/// system calls and a small index.
pub(crate) const CHUNK_BYTES: u64 = 1024 * 1024;

/// The longest record that is read, in bytes: far above a chunk of any writer. A damaged length
/// must not take all memory.
pub(crate) const RECORD_BYTES: usize = 256 * 1024 * 1024;

/// Channels of frames in one recording: MCAP has numbers for 65 535, and messages to invented
/// devices could use them up. All further frames share `/amber/other`.
pub(crate) const CHANNELS: usize = 4096;

/// The bytes that are read from a file at once.
pub(crate) const READ_BYTES: usize = 256 * 1024;
