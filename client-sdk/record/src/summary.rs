//! The end of a finished file: what its index knows. PURE except for the file.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek};

use mcap::records::{self, ChunkIndex, Record, SchemaHeader, op};

use crate::chunk::{HEAD, first_record};
use crate::limits;
use crate::window::Window;

/// The end of a file.
pub(crate) enum Ending {
    /// The file has none: its recorder was killed, or the end is lost.
    Missing,
    /// The file is finished, and has no index.
    NoIndex,
    /// There is one that cannot be trusted. It begins here.
    Damaged(u64),
    /// The index.
    Known(Summary),
}

/// The index of a finished file.
#[derive(Default)]
pub(crate) struct Summary {
    /// Where it begins: the data end here.
    pub(crate) at: u64,
    pub(crate) schemas: Vec<(SchemaHeader, Vec<u8>)>,
    pub(crate) channels: Vec<records::Channel>,
    /// The chunks by their place.
    pub(crate) chunks: BTreeMap<u64, ChunkIndex>,
    /// All messages of the file.
    pub(crate) messages: Option<u64>,
    /// Its checksum is right. Some writers store none.
    pub(crate) is_checked: bool,
}

/// Footer: two places and a checksum.
const FOOTER: usize = 8 + 8 + 4;

/// The footer as a record, and the bytes behind it.
pub(crate) const LENGTH: usize = HEAD + FOOTER + mcap::MAGIC.len();

/// Reads the end of a file.
pub(crate) fn read<F: Read + Seek>(file: &mut Window<F>) -> io::Result<Ending> {
    let length = LENGTH as u64;
    let Some(at) = file.size().checked_sub(length) else {
        return Ok(Ending::Missing);
    };
    let tail = file.read(at, length)?;
    let (Some((op::FOOTER, footer, _)), true) = (first_record(&tail), tail.ends_with(mcap::MAGIC))
    else {
        return Ok(Ending::Missing);
    };
    let Ok(Record::Footer(footer)) = mcap::parse_record(op::FOOTER, footer) else {
        return Ok(Ending::Missing);
    };
    let (start, crc) = (footer.summary_start, footer.summary_crc);
    if start == 0 {
        return Ok(Ending::NoIndex);
    }
    let is_possible = start < at && at - start <= limits::RECORD_BYTES;
    if !is_possible {
        return Ok(Ending::Damaged(at));
    }
    let checked = (at - start) as usize + HEAD + FOOTER - size_of::<u32>();
    let bytes = file.read(start, checked as u64)?;
    let is_right = crc == 0 || crc32fast::hash(&bytes) == crc;
    let found = is_right.then(|| parse(start, &bytes[..(at - start) as usize]));
    Ok(match found.flatten() {
        Some(summary) => Ending::Known(Summary {
            is_checked: crc != 0,
            ..summary
        }),
        None => Ending::Damaged(start.min(at)),
    })
}

/// `None` if it is damaged.
fn parse(at: u64, mut bytes: &[u8]) -> Option<Summary> {
    let mut summary = Summary {
        at,
        ..Summary::default()
    };
    while !bytes.is_empty() {
        let (opcode, content, length) = first_record(bytes)?;
        bytes = &bytes[length..];
        match mcap::parse_record(opcode, content).ok()? {
            Record::Schema { header, data } => {
                summary.schemas.push((header, data.into_owned()));
            }
            Record::Channel(channel) => summary.channels.push(channel),
            Record::Statistics(statistics) => summary.messages = Some(statistics.message_count),
            Record::ChunkIndex(index) => {
                let start = index.chunk_start_offset;
                let end = start.checked_add(index.chunk_length)?;
                if index.chunk_length < HEAD as u64 || end > at {
                    return None;
                }
                summary.chunks.insert(start, index);
            }
            _ => {}
        }
    }
    Some(summary)
}
