//! Chunks of a recording: unpacked and checked. PURE.

use std::io::Read;

use mcap::records::op;

use crate::limits;

/// Opcode and length of a record.
pub(crate) const HEAD: usize = 1 + 8;

/// The fields before the records of a chunk, without the name of the compression.
const HEADER: usize = 8 + 8 + 8 + 4 + 4 + 8;

/// What the checksum says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The messages are what was written.
    Right,
    /// There is no checksum.
    Absent,
    /// The file ends within the chunk, so that its checksum cannot be computed.
    CutOff,
    /// The messages are not what was written, at least one of them.
    Wrong,
}

/// A chunk whose records can be read.
#[derive(Debug)]
pub(crate) struct Chunk {
    bytes: Vec<u8>,
    from: usize,
    pub(crate) check: Check,
}

/// The first fields of a chunk.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    /// The first and the last message, in nanoseconds since 1970.
    pub(crate) bounds_ns: (u64, u64),
    size: u64,
    crc: u32,
    compression: String,
    pub(crate) length: usize,
    stored: u64,
}

impl Header {
    /// `None` if this is not the start of a chunk.
    pub(crate) fn parse(content: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u64::from_le_bytes(*content.get(at..)?.first_chunk()?));
        let short = |at: usize| Some(u32::from_le_bytes(*content.get(at..)?.first_chunk()?));
        let name = short(28)? as usize;
        // No compression has a longer name.
        let name = content.get(32..32 + name.min(limits::COMPRESSION_NAME_BYTES + 1))?;
        let compression = std::str::from_utf8(name).ok()?.to_owned();
        let length = HEADER + name.len();
        let header = Self {
            bounds_ns: (number(0)?, number(8)?),
            size: number(16)?,
            crc: short(24)?,
            compression,
            length,
            stored: number(length - 8)?,
        };
        let is_name = header.compression.len() <= limits::COMPRESSION_NAME_BYTES
            && header.compression.bytes().all(|it| it.is_ascii_graphic());
        (is_name && header.bounds_ns.0 <= header.bounds_ns.1).then_some(header)
    }

    /// The length of the whole content.
    pub(crate) fn content(&self) -> u64 {
        (self.length as u64).saturating_add(self.stored)
    }
}

/// The bytes with which a chunk of any known compression can be recognized.
pub(crate) const RECOGNIZED: usize = HEADER + limits::COMPRESSION_NAME_BYTES;

impl Chunk {
    /// Unpacks a chunk. If the file ends within it, it has what can be read.
    ///
    /// # Errors
    /// The reason why nothing of it can be read.
    pub(crate) fn open(content: Vec<u8>, is_whole: bool) -> Result<Self, String> {
        let header = Header::parse(&content);
        let opened = match &header {
            Some(header) => Self::by_header(header, &content, is_whole),
            None => Err("the header of a chunk is damaged".to_owned()),
        };
        let is_sound = matches!(&opened, Ok((_, check)) if *check != Check::Wrong);
        let opened = match is_whole && !is_sound {
            true => by_checksum(&content).map_or(opened, Ok),
            false => opened,
        };
        let (unpacked, check) = opened?;
        Ok(match unpacked {
            Unpacked::At(from, length) => {
                let mut bytes = content;
                bytes.truncate(from + length);
                Self { bytes, from, check }
            }
            Unpacked::New(bytes) => Self {
                bytes,
                from: 0,
                check,
            },
        })
    }

    fn by_header(
        header: &Header,
        content: &[u8],
        is_whole: bool,
    ) -> Result<(Unpacked, Check), String> {
        let rest = content.len() - header.length;
        let stored = usize::try_from(header.stored).map_or(rest, |stored| stored.min(rest));
        let unpacked = unpack(&header.compression, content, header.length, stored)?;
        let records = unpacked.records(content);
        // Zeros look like the header of an empty chunk without a checksum.
        let is_empty = records.is_empty() && rest > 0;
        let is_all = is_whole && !is_empty && records.len() as u64 == header.size;
        let check = match (header.crc, is_whole) {
            (_, false) => Check::CutOff,
            (0, _) if is_all => Check::Absent,
            (0, _) => Check::Wrong,
            (crc, _) => match (crc32fast::hash(records) ^ crc).count_ones() {
                // Damage of the records changes about half of the bits; one is the checksum's own.
                0 | 1 => Check::Right,
                _ => Check::Wrong,
            },
        };
        Ok((unpacked, check))
    }

    pub(crate) fn records(&self) -> &[u8] {
        &self.bytes[self.from..]
    }
}

/// The records of a chunk.
enum Unpacked {
    /// In the content itself: start and length.
    At(usize, usize),
    New(Vec<u8>),
}

impl Unpacked {
    fn records<'a>(&'a self, content: &'a [u8]) -> &'a [u8] {
        match self {
            Self::At(from, length) => &content[*from..from + length],
            Self::New(bytes) => bytes,
        }
    }
}

/// A chunk of whose header only the checksum is right: it decides which compression it is.
fn by_checksum(content: &[u8]) -> Option<(Unpacked, Check)> {
    let crc = u32::from_le_bytes(*content.get(24..)?.first_chunk()?);
    let found = ["", "lz4", "zstd"].iter().find_map(|name| {
        let from = HEADER + name.len();
        let length = content.len().checked_sub(from)?;
        let unpacked = unpack(name, content, from, length).ok()?;
        (crc != 0 && crc32fast::hash(unpacked.records(content)) == crc).then_some(unpacked)
    });
    Some((found?, Check::Right))
}

fn unpack(name: &str, content: &[u8], from: usize, length: usize) -> Result<Unpacked, String> {
    let stored = &content[from..from + length];
    match name {
        "" => Ok(Unpacked::At(from, length)),
        "lz4" => Ok(Unpacked::New(read_all(
            lz4_flex::frame::FrameDecoder::new(stored),
        )?)),
        #[cfg(feature = "zstd")]
        "zstd" => {
            let decoder = zstd::stream::read::Decoder::with_buffer(stored);
            let decoder = decoder.map_err(|error| error.to_string())?;
            Ok(Unpacked::New(read_all(decoder)?))
        }
        #[cfg(not(feature = "zstd"))]
        "zstd" => Err("a chunk is compressed with zstd, and this program was built without".into()),
        other => Err(format!("a chunk has the unknown compression \"{other}\"")),
    }
}

/// What can be unpacked before the first damage.
fn read_all(from: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = from
        .take(limits::UNPACKED_BYTES + 1)
        .read_to_end(&mut bytes);
    match read {
        Err(error) if bytes.is_empty() => Err(format!("a chunk cannot be unpacked: {error}")),
        _ if bytes.len() as u64 > limits::UNPACKED_BYTES => Err("a chunk is too large".into()),
        _ => Ok(bytes),
    }
}

/// The first record of these: opcode, content, and length with its head. `None` at the end, or where
/// no record can be.
pub(crate) fn first_record(records: &[u8]) -> Option<(u8, &[u8], usize)> {
    let (&opcode, rest) = records.split_first()?;
    let length = usize::try_from(u64::from_le_bytes(*rest.first_chunk()?)).ok()?;
    let content = rest[8..].get(..length)?;
    (opcode != 0).then_some((opcode, content, HEAD + length))
}

/// The number of messages in a chunk, or 0 if its records do not follow each other up to its end.
pub(crate) fn count_messages(mut records: &[u8]) -> u64 {
    let mut count = 0;
    while let Some((opcode, _, length)) = first_record(records) {
        count += u64::from(opcode == op::MESSAGE);
        records = &records[length..];
    }
    match records.is_empty() {
        true => count,
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chunk with these records.
    fn content(name: &str, stored: &[u8], records: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [5_u64, 9, records.len() as u64] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32fast::hash(records).to_le_bytes());
        bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(&(stored.len() as u64).to_le_bytes());
        bytes.extend_from_slice(stored);
        bytes
    }

    fn plain() -> (Vec<u8>, Vec<u8>) {
        let records: Vec<u8> = (0..1000_u32).flat_map(u32::to_le_bytes).collect();
        (content("", &records, &records), records)
    }

    #[test]
    fn a_chunk_is_what_was_written_or_wrong() {
        let (content, records) = plain();
        let opened = |content: &[u8]| Chunk::open(content.to_vec(), true);
        let chunk = opened(&content).unwrap();
        assert_eq!((chunk.check, chunk.records()), (Check::Right, &records[..]));
        // Any flipped bit of the header is harmless, any other one is noticed.
        for bit in 0..8 * content.len() {
            let mut damaged = content.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let chunk = opened(&damaged).unwrap();
            let is_header = bit < 8 * HEADER;
            assert_eq!(chunk.check == Check::Right, is_header, "{bit}");
            assert!(!is_header || chunk.records() == records, "{bit}");
        }
        let zeros = opened(&[0; 600]).unwrap();
        assert_eq!((zeros.check, zeros.records().len()), (Check::Wrong, 0));
        let empty = opened(&[0; HEADER]).unwrap();
        assert_eq!(empty.check, Check::Absent);
        let cut = Chunk::open(content[..200].to_vec(), false).unwrap();
        assert_eq!(
            (cut.check, cut.records()),
            (Check::CutOff, &records[..200 - HEADER])
        );
    }

    #[test]
    fn lz4_is_read_as_the_reference_writes_it() {
        // python3 -c 'import lz4.frame; lz4.frame.compress(b"0123456789" * 100)'
        let frame = b"\x04\"M\x18h@\xe8\x03\x00\x00\x00\x00\x00\x00\xf1\x17\x00\x00\x00\
            \xaf0123456789\n\x00\xff\xff\xff\xc9P56789\x00\x00\x00\x00";
        let records = b"0123456789".repeat(100);
        match Chunk::open(content("lz4", frame, &records), true) {
            Ok(chunk) => {
                assert_eq!((chunk.check, chunk.records()), (Check::Right, &records[..]));
            }
            Err(error) => panic!("{error}"),
        }
        let bad = Chunk::open(content("lz4", b"hello", &records), true).unwrap_err();
        assert!(bad.contains("cannot be unpacked"), "{bad}");
        let other = Chunk::open(content("brotli", b"", b""), true).unwrap_err();
        assert!(other.contains("brotli"), "{other}");
    }
}
