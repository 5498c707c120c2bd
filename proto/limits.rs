//! Every maximum of the wire, each with its reason.

/// The longest header or message that we send, in bytes.
///
/// Old Java and Python peers read the two length fields as signed.
pub const MAX_PART: usize = 32_767;

/// The longest message, in bytes, that an old Java or Python client can take:
/// they receive into buffers of 16 384 bytes, which must hold both lengths and
/// the header, too.
pub const OLD_CLIENT_DATAGRAM: usize = 16_384;

/// The longest datagram that UDP over IPv4 can carry, in bytes.
pub const MAX_DATAGRAM: usize = 65_507;

/// The two length fields of a frame, in bytes.
pub const FRAME_OVERHEAD: usize = 4;

/// The longest frame that the two length fields can describe, in bytes. Input
/// is read up to this length, so that a part that is too long can be counted
/// and skipped.
pub const MAX_FRAME: usize = FRAME_OVERHEAD + 2 * u16::MAX as usize;

/// A header on a driver's stdout that is longer than this, in bytes, must begin
/// with a field that we know.
///
/// A longer length has a first byte of at least 0x08, so it may be text that
/// somebody printed: letters, but also tabs, line ends and colour codes.
pub const SURE_HEADER: usize = 0x07ff;

/// How deep unknown groups in a header may be nested (protobuf's own limit).
pub const MAX_GROUP_DEPTH: usize = 100;

/// What a driver says about a device that does not work, in bytes: a sentence,
/// which still fits many times into an answer of the mediator.
pub const HEALTH_TEXT: usize = 200;
