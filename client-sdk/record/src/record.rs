//! Records outside of chunks: what their content may be. PURE.

use std::io::Cursor;

use binrw::BinRead;
use mcap::records::{AttachmentHeader, op};

/// The length of the fields of a message before its data.
pub(crate) const MESSAGE_HEADER: usize = 2 + 4 + 8 + 8;

/// The header of an attachment, the length of its data, and where they begin in the content. `None`
/// if this is not the start of an attachment of this length.
pub(crate) fn attachment(start: &[u8], length: u64) -> Option<(AttachmentHeader, u64, usize)> {
    let mut cursor = Cursor::new(start);
    let header = AttachmentHeader::read_le(&mut cursor).ok()?;
    let bytes = u64::read_le(&mut cursor).ok()?;
    let from = usize::try_from(cursor.position()).ok()?;
    // The checksum is behind the data.
    let expected = (from as u64).checked_add(bytes)?.checked_add(4)?;
    (expected == length).then_some((header, bytes, from))
}

/// Whether this may be the content of a record, of which `start` may be the start only.
pub(crate) fn is_possible(opcode: u8, start: &[u8], length: u64) -> bool {
    match opcode {
        0 => false,
        op::MESSAGE => length >= MESSAGE_HEADER as u64 && !is_index(start, length),
        op::MESSAGE_INDEX => is_index(start, length),
        op::DATA_END => length == 4,
        op::HEADER | op::SCHEMA | op::CHANNEL | op::METADATA => {
            mcap::parse_record(opcode, start).is_ok()
        }
        _ => true,
    }
}

/// The channel and the length of the entries of an index.
pub(crate) const INDEX_HEADER: usize = 2 + 4;

/// Whether this is the content of an index of messages: a channel, and times and places.
pub(crate) fn is_index(start: &[u8], length: u64) -> bool {
    let entries = start.get(2..).and_then(|it| it.first_chunk());
    let entries = entries.map(|it| u64::from(u32::from_le_bytes(*it)));
    entries.is_some_and(|it| it % 16 == 0 && it + 6 == length)
}
