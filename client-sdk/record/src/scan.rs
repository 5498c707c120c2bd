//! The records of a file in order. Where a record is damaged, the next one is searched for. PURE
//! except for the file.

use std::io::{self, Read, Seek};
use std::ops::Bound;

use mcap::records::{AttachmentHeader, op};

use crate::chunk::{HEAD, Header, RECOGNIZED};
use crate::damage::{Damage, Effect};
use crate::limits;
use crate::record;
use crate::summary::{self, Ending, Summary};
use crate::window::Window;

/// What is next in a file.
pub(crate) enum Found {
    /// A record other than these.
    Record {
        opcode: u8,
        content: Vec<u8>,
    },
    Chunk {
        at: u64,
        content: Vec<u8>,
        /// Whether the file has all of it.
        is_whole: bool,
    },
    Attachment(Attached),
    Damage(Damage),
    /// The end of the data of a finished file.
    DataEnd,
}

/// An attachment, which stays in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Attached {
    /// Its name, type and times.
    pub header: AttachmentHeader,
    /// The place of the record, and its length.
    pub(crate) record: (u64, u64),
    /// The length of the data.
    pub bytes: u64,
}

/// A file that is read from its start.
pub(crate) struct Scan<F> {
    pub(crate) file: Window<F>,
    ending: Ending,
    at: u64,
    /// Where the data end at the latest.
    end: u64,
    /// Whether messages are in chunks.
    chunked: bool,
    /// The checksum of the data so far, unless a part was damaged.
    crc: Option<crc32fast::Hasher>,
    /// What was noticed before it is reported.
    noticed: Vec<Damage>,
}

impl<F: Read + Seek> Scan<F> {
    /// # Errors
    /// The file cannot be read; `None` if it is not an MCAP file.
    pub(crate) fn new(file: F) -> io::Result<Option<Self>> {
        let mut file = Window::new(file)?;
        let magic = mcap::MAGIC;
        let start = file.read(0, (magic.len() + HEAD) as u64)?;
        let ending = summary::read(&mut file)?;
        let begins = start.starts_with(magic);
        let has_header = start.get(magic.len()) == Some(&op::HEADER)
            && start[magic.len()..].get(7..HEAD) == Some(&[0, 0]);
        if !begins && !has_header && matches!(ending, Ending::Missing) {
            return Ok(None);
        }
        let end = match &ending {
            Ending::Missing | Ending::NoIndex => file.size(),
            Ending::Damaged(at) => *at,
            Ending::Known(summary) => summary.at,
        };
        let mut noticed = Vec::new();
        if !begins {
            noticed.push(harmless("the first bytes of the file", 0, magic.len()));
        }
        if let Ending::Damaged(at) = ending {
            let length = (file.size() - at) as usize;
            noticed.push(harmless("the index at the end of the file", at, length));
        }
        let chunked = matches!(&ending, Ending::Known(it) if !it.chunks.is_empty());
        let mut crc = crc32fast::Hasher::new();
        crc.update(&start[..start.len().min(magic.len())]);
        // Many writers leave the checksum out, and long attachments need not be read then.
        let data_end = match ending {
            Ending::Missing => 0,
            Ending::NoIndex => end - summary::LENGTH as u64,
            Ending::Damaged(_) | Ending::Known(_) => end,
        };
        let has_crc = data_end > 4 && file.read(data_end - 4, 4)? != [0; 4];
        Ok(Some(Self {
            file,
            ending,
            at: magic.len() as u64,
            end,
            chunked,
            crc: (begins && has_crc).then_some(crc),
            noticed,
        }))
    }

    /// The index, if it can be trusted.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        match &self.ending {
            Ending::Known(summary) => Some(summary),
            _ => None,
        }
    }

    /// The checksum of the data cannot be right: a part of them is known to be damaged.
    pub(crate) fn ignore_crc(&mut self) {
        self.crc = None;
    }

    /// Whether the file has an end, although it may be damaged.
    pub(crate) fn has_ending(&self) -> bool {
        !matches!(self.ending, Ending::Missing)
    }

    /// The next part; `None` at the end of the data.
    pub(crate) fn next(&mut self) -> io::Result<Option<Found>> {
        if let Some(damage) = self.noticed.pop() {
            return Ok(Some(Found::Damage(damage)));
        }
        let at = self.at;
        if at >= self.end {
            return Ok(None);
        }
        let known = self.summary().and_then(|it| it.chunks.get(&at));
        let known = known.map(|index| index.chunk_length - HEAD as u64);
        let bound = self.bound();
        let head = self.file.peek(at, HEAD)?;
        let (opcode, length) = match (known, parse_head(head)) {
            (Some(length), _) => (op::CHUNK, length),
            (None, Some(head)) => head,
            (None, None) => return self.rest("the last record is not complete"),
        };
        let room = bound.saturating_sub(at + HEAD as u64);
        if known.is_some() {
            return self.take_chunk(length, true).map(Some);
        }
        if let Some(length) = self.chunk_here(opcode, length, room)? {
            return self.take_chunk(length, true).map(Some);
        }
        if length > room && bound == self.end && self.is_cut_off(opcode, length)? {
            self.chunked = true;
            return self.take_chunk(room, false).map(Some);
        }
        let behind = (at + HEAD as u64).saturating_add(length);
        if length <= room
            && self.is_sound(opcode, at, length, 0)?
            && self.leads_on(behind, bound)?
        {
            match opcode {
                op::ATTACHMENT => return self.take_attachment(length).map(Some),
                op::DATA_END => return self.take_end(length).map(Some),
                _ => {
                    let content = self.file.read(at + HEAD as u64, length)?;
                    self.pass(at + HEAD as u64 + length)?;
                    return Ok(Some(Found::Record { opcode, content }));
                }
            }
        }
        self.skip(opcode, length, bound).map(Some)
    }

    /// Where the next record that is known begins, or the data end.
    fn bound(&self) -> u64 {
        let behind = (Bound::Excluded(self.at), Bound::Unbounded);
        let next = self.summary().and_then(|it| it.chunks.range(behind).next());
        next.map_or(self.end, |(at, _)| *at)
    }

    /// The length of a chunk that begins here, although its opcode or its length may be damaged.
    fn chunk_here(&mut self, opcode: u8, length: u64, room: u64) -> io::Result<Option<u64>> {
        let at = self.at + HEAD as u64;
        let header = Header::parse(self.file.peek(at, RECOGNIZED)?);
        let by_header = header.map(|header| header.content());
        let fits = |length: u64| length <= room && length <= limits::RECORD_BYTES;
        let by_header = by_header.filter(|length| fits(*length));
        if by_header == Some(length) {
            return Ok(by_header);
        }
        if opcode != op::CHUNK {
            return Ok(None);
        }
        for length in by_header.into_iter().chain(Some(length)) {
            if fits(length) && self.is_head(at + length)? {
                return Ok(Some(length));
            }
        }
        Ok(None)
    }

    /// Whether the file ends within this chunk.
    fn is_cut_off(&mut self, opcode: u8, length: u64) -> io::Result<bool> {
        let content = self.file.peek(self.at + HEAD as u64, RECOGNIZED)?;
        let header = Header::parse(content);
        let is_chunk = opcode == op::CHUNK && header.is_some_and(|it| it.content() == length);
        Ok(is_chunk && !self.has_ending())
    }

    fn take_chunk(&mut self, length: u64, is_whole: bool) -> io::Result<Found> {
        let at = self.at;
        let content = self.file.read(at + HEAD as u64, length)?;
        self.chunked = true;
        if let Some(crc) = &mut self.crc {
            crc.update(self.file.peek(at, HEAD)?);
            crc.update(&content);
        }
        self.at += HEAD as u64 + length;
        Ok(Found::Chunk {
            at,
            content,
            is_whole,
        })
    }

    fn take_attachment(&mut self, length: u64) -> io::Result<Found> {
        let (at, content) = (self.at, self.at + HEAD as u64);
        let start = self
            .file
            .read(content, length.min(limits::READ_BYTES as u64))?;
        let Some((header, bytes, _)) = record::attachment(&start, length) else {
            // It was one a moment ago.
            return self.skip(op::ATTACHMENT, length, self.end);
        };
        let crc_at = content + length - 4;
        let stored = self.file.peek(crc_at, 4)?.first_chunk().copied();
        let stored = stored.map_or(0, u32::from_le_bytes);
        let mut crc = crc32fast::Hasher::new();
        if stored != 0 {
            self.file.pass(content, crc_at, |bytes| {
                crc.update(bytes);
                Ok(())
            })?;
        }
        self.pass(content + length)?;
        let record = (at, HEAD as u64 + length);
        if stored != 0 && stored != crc.finalize() {
            return Ok(Found::Damage(Damage {
                what: format!("the attachment {:?}", header.name),
                at,
                bytes: record.1,
                ..Damage::default()
            }));
        }
        Ok(Found::Attachment(Attached {
            header,
            record,
            bytes,
        }))
    }

    fn take_end(&mut self, length: u64) -> io::Result<Found> {
        let content = self.file.peek(self.at + HEAD as u64, 4)?;
        let stored = u32::from_le_bytes(*content.first_chunk().unwrap_or(&[0; 4]));
        let crc = self.crc.take().map(crc32fast::Hasher::finalize);
        if stored != 0 && crc.is_some_and(|crc| crc != stored) {
            let what = "a part outside of the chunks: the checksum of the file is wrong";
            self.noticed.push(harmless(what, 0, self.at as usize));
        }
        self.at += HEAD as u64 + length;
        self.end = self.at;
        Ok(Found::DataEnd)
    }

    /// Skips a damaged record.
    fn skip(&mut self, opcode: u8, length: u64, bound: u64) -> io::Result<Found> {
        let at = self.at;
        let next = self.search(at + 1, bound)?.unwrap_or(bound);
        self.crc = None;
        self.at = next;
        // Exactly one record that only helps to find messages.
        let content = (next - at).saturating_sub(HEAD as u64);
        let is_one = opcode == op::MESSAGE_INDEX && content == length;
        let start = self.file.peek(at + HEAD as u64, record::INDEX_HEADER)?;
        let is_index = is_one || record::is_index(start, content);
        // Only the record DATA_END.
        let is_end = next == self.end && next - at <= HEAD as u64 + 4 && self.summary().is_some();
        let what = match (next == self.file.size(), is_index || is_end) {
            (_, true) => "a record without messages",
            (true, _) => "the last records",
            _ => "a record",
        };
        Ok(Found::Damage(Damage {
            what: what.to_owned(),
            at,
            bytes: next - at,
            effect: if is_index || is_end {
                Effect::Harmless
            } else {
                Effect::Lost
            },
            ..Damage::default()
        }))
    }

    /// The end of the file, which is no record.
    fn rest(&mut self, what: &str) -> io::Result<Option<Found>> {
        let at = self.at;
        (self.at, self.crc) = (self.end, None);
        Ok(Some(Found::Damage(Damage {
            what: what.to_owned(),
            at,
            bytes: self.end - at,
            ..Damage::default()
        })))
    }

    /// Goes on behind a sound record.
    fn pass(&mut self, to: u64) -> io::Result<()> {
        if let Some(crc) = &mut self.crc {
            self.file.pass(self.at, to, |bytes| {
                crc.update(bytes);
                Ok(())
            })?;
        }
        self.at = to;
        Ok(())
    }

    /// The next place from here on that begins with a record.
    fn search(&mut self, mut from: u64, bound: u64) -> io::Result<Option<u64>> {
        while from + HEAD as u64 <= bound {
            let room = (bound - from).min(limits::READ_BYTES as u64) as usize;
            let bytes = self.file.peek(from, room)?;
            let places = bytes.windows(HEAD).enumerate();
            let possible: Vec<_> = places
                .filter_map(|(place, head)| Some((place, parse_head(head)?)))
                .filter(|(_, (opcode, length))| {
                    let is_in_chunks = matches!(*opcode, op::MESSAGE | op::SCHEMA | op::CHANNEL);
                    let is_data = matches!(
                        *opcode,
                        op::CHUNK
                            | op::MESSAGE_INDEX
                            | op::METADATA
                            | op::ATTACHMENT
                            | op::DATA_END
                    );
                    *length < 1 << 40 && (is_data || is_in_chunks && !self.chunked)
                })
                .collect();
            let passed = bytes.len().saturating_sub(HEAD - 1) as u64;
            for (place, (opcode, length)) in possible {
                let at = from + place as u64;
                if self.is_record(opcode, at, length)? {
                    return Ok(Some(at));
                }
            }
            if passed == 0 {
                break;
            }
            from += passed;
        }
        Ok(None)
    }

    /// Whether a record begins here, as far as can be said.
    fn is_record(&mut self, opcode: u8, at: u64, length: u64) -> io::Result<bool> {
        let content = at + HEAD as u64;
        let room = self.end.saturating_sub(content);
        if opcode == op::CHUNK {
            let header = Header::parse(self.file.peek(content, RECOGNIZED)?);
            let is_whole = length <= room || !self.has_ending();
            return Ok(is_whole && header.is_some_and(|header| header.content() == length));
        }
        Ok(length <= room && self.is_sound(opcode, at, length, limits::RECORDS_IN_A_ROW)?)
    }

    /// Whether the content of a record is possible, and so many records follow.
    fn is_sound(&mut self, opcode: u8, at: u64, length: u64, follow: usize) -> io::Result<bool> {
        let content = at + HEAD as u64;
        let wanted = length.min(limits::READ_BYTES as u64) as usize;
        let start = self.file.peek(content, wanted)?;
        let is_long = length > limits::READ_BYTES as u64;
        let (is_first, is_end) = (at == mcap::MAGIC.len() as u64, content + length == self.end);
        let is_known = matches!(self.ending, Ending::Known(_));
        let is_possible = match opcode {
            op::HEADER if !is_first => false,
            op::DATA_END if is_known => is_end,
            // Only the index has these.
            op::FOOTER
            | op::CHUNK_INDEX
            | op::ATTACHMENT_INDEX
            | op::STATISTICS
            | op::METADATA_INDEX
            | op::SUMMARY_OFFSET
                if is_known =>
            {
                false
            }
            op::ATTACHMENT => record::attachment(start, length).is_some(),
            _ if length > limits::RECORD_BYTES => false,
            // Too long to look at here: only its start.
            op::SCHEMA | op::METADATA | op::CHANNEL if is_long => true,
            _ => record::is_possible(opcode, start, length),
        };
        let mut next = content + length;
        if !is_possible {
            return Ok(false);
        }
        for _ in 0..follow {
            if next == self.end {
                return Ok(true);
            }
            if !self.is_head(next)? {
                return Ok(false);
            }
            let head = parse_head(self.file.peek(next, HEAD)?);
            next = next.saturating_add(head.map_or(0, |(_, length)| HEAD as u64 + length));
            if next > self.end {
                break;
            }
        }
        Ok(true)
    }

    /// Whether a record may end here. If none begins here, either that one is damaged, or the end is
    /// wrong; then another one begins before it.
    fn leads_on(&mut self, next: u64, bound: u64) -> io::Result<bool> {
        if self.is_head(next)? {
            return Ok(true);
        }
        let found = self.search(self.at + 1, bound)?;
        Ok(found.is_none_or(|found| found >= next))
    }

    /// Whether a record may begin here.
    fn is_head(&mut self, at: u64) -> io::Result<bool> {
        if at >= self.end {
            return Ok(at == self.end);
        }
        let (room, is_cut) = (self.end - at, !self.has_ending());
        let known = self.summary().is_some_and(|it| it.chunks.contains_key(&at));
        let head = self.file.peek(at, HEAD)?;
        Ok(known
            || match parse_head(head) {
                Some((opcode, length)) => {
                    let is_known = matches!(opcode, op::HEADER..=op::DATA_END | 0x80..);
                    is_known
                        && (length <= room.saturating_sub(HEAD as u64)
                            || is_cut && length < 1 << 40)
                }
                None => is_cut,
            })
    }
}

fn parse_head(bytes: &[u8]) -> Option<(u8, u64)> {
    let length = u64::from_le_bytes(*bytes.get(1..)?.first_chunk()?);
    Some((bytes[0], length))
}

fn harmless(what: &str, at: u64, bytes: usize) -> Damage {
    Damage {
        what: what.to_owned(),
        at,
        bytes: bytes as u64,
        effect: Effect::Harmless,
        ..Damage::default()
    }
}
