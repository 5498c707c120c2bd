//! Every maximum of the wire, each with its reason.

/// The longest header or message that we send, in bytes.
///
/// Old Java and Python peers read the two length fields as signed.
pub const MAX_PART: usize = 32_767;

/// The longest message that travels in pieces, in bytes: a map, or a large picture.
pub const MAX_LONG: usize = 8 * 1024 * 1024;

/// The bytes of a long message in one piece, for peers on other computers. With all headers, the
/// datagram has at most 1 232 bytes: no network cuts it.
pub const PIECE_BYTES: usize = 1_180;

/// The bytes in one piece for peers on this computer, where the number of datagrams costs most.
pub const LOCAL_PIECE_BYTES: usize = 32_000;

/// The fewest bytes in one piece that a peer may ask for.
pub const MIN_PIECE_BYTES: usize = 1_024;

/// The maximum number of pieces of a message.
pub const MAX_PIECES: u32 = (MAX_LONG / MIN_PIECE_BYTES) as u32;

/// The maximum number of pieces in one call for missing ones.
pub const MAX_MISSING: usize = 400;

/// The longest datagram that old Java and Python clients can receive, in bytes: they use
/// buffers of 16 384 bytes for both lengths, header and message.
pub const OLD_CLIENT_DATAGRAM: usize = 16_384;

/// The longest datagram that UDP over IPv4 can carry, in bytes.
pub const MAX_DATAGRAM: usize = 65_507;

/// The two length fields of a frame, in bytes.
pub const FRAME_OVERHEAD: usize = 4;

/// The longest frame that the two length fields can describe, in bytes. Input
/// is read up to this length, so that a part that is too long can be counted
/// and skipped.
pub const MAX_FRAME: usize = FRAME_OVERHEAD + 2 * u16::MAX as usize;

/// A header on a driver's stdout that is longer than this, in bytes, must begin with a known
/// field.
///
/// The first byte of a longer length is at least 0x08, so it may be printed text: letters, but
/// also tabs, line ends and colour codes.
pub const SURE_HEADER: usize = 0x07ff;

/// The maximum nesting of unknown groups in a header (protobuf's own limit).
pub const MAX_GROUP_DEPTH: usize = 100;

/// The longest report about a device that does not work, in bytes: one sentence, short enough
/// that several fit into an answer of the mediator.
pub const HEALTH_TEXT: usize = 200;

/// The longest record of a feed after its length, in bytes: a frame with a message of 65 535
/// bytes for 65 535 clients needs 328 000.
pub const MAX_FEED_RECORD: usize = 512 * 1024;

/// The time without a sign of the holder after which a lease ends, in milliseconds, if its client
/// says nothing: a few lost datagrams do not end it.
pub const LEASE_MS: u32 = 2_000;

/// The shortest period of a lease: below, a busy computer would lose its leases.
pub const LEASE_MIN_MS: u32 = 200;

/// The longest period of a lease: nobody waits longer for a client that has frozen.
pub const LEASE_MAX_MS: u32 = 10_000;

/// The maximum length of the name of a client in a lease or a halt, in bytes: one line for people.
pub const LEASE_NAME: usize = 100;
