//! Writes MCAP files. PURE except for the file.
//!
//! Own code, because the mcap crate writes each message in seven pieces through two checksums, which
//! costs more than everything else that a recorder does with a message (docs/performance.md). Here a
//! message is appended to the chunk in memory, and a chunk is checked, compressed and written as a
//! whole. All other records are those of the crate, and the tests read all files with it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Cursor, Write};

use binrw::BinWrite;
use mcap::McapError;
use mcap::records::{
    AttachmentIndex, Channel, ChunkHeader, ChunkIndex, DataEnd, Footer, Header, MessageHeader,
    Metadata, MetadataIndex, SchemaHeader, Statistics, SummaryOffset, op,
};

use crate::chunk::HEAD;
use crate::scan::Attached;
use crate::{Error, limits};

/// Head, channel, sequence and two times of a message.
const MESSAGE_HEAD: usize = HEAD + 2 + 4 + 8 + 8;

/// The encoding of schemas and messages in recordings.
pub(crate) const PROTOBUF: &str = "protobuf";

/// How chunks are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    #[cfg(feature = "zstd")]
    Zstd,
}

/// A file that is being written.
pub(crate) struct Writer<W> {
    out: Out<W>,
    chunk: Chunk,
    compression: Compression,
    sequence: u32,
    /// The numbers of schemas and channels by their content, and their records for the end.
    schemas: Known,
    channels: Known,
    /// Messages of each channel.
    counts: Vec<u64>,
    bounds_ns: Option<(u64, u64)>,
    chunks: Vec<ChunkIndex>,
    metadata: Vec<MetadataIndex>,
    attachments: Vec<AttachmentIndex>,
    /// Whether the chunk gets a checksum.
    has_crc: bool,
}

/// Schemas or channels.
#[derive(Default)]
struct Known {
    ids: HashMap<Vec<u8>, u16>,
    records: Vec<u8>,
}

/// The messages that are not in the file yet.
#[derive(Default)]
struct Chunk {
    records: Vec<u8>,
    /// Time and place of the messages of each channel.
    index: Vec<Vec<(u64, u64)>>,
    /// The channels with messages.
    used: Vec<u16>,
    bounds_ns: Option<(u64, u64)>,
}

/// The file with its length and checksum.
struct Out<W> {
    file: W,
    at: u64,
    crc: crc32fast::Hasher,
}

impl<W: Write> Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.at += bytes.len() as u64;
        self.crc.update(bytes);
        Ok(())
    }

    /// The same for bytes with a known checksum: they are not read a second time.
    fn write_checked(&mut self, bytes: &[u8], crc: &crc32fast::Hasher) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.at += bytes.len() as u64;
        self.crc.combine(crc);
        Ok(())
    }
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub(crate) fn new(file: W, compression: Compression) -> Result<Self, Error> {
        let crc = crc32fast::Hasher::new();
        let mut out = Out { file, at: 0, crc };
        out.write(mcap::MAGIC)?;
        let header = Header {
            profile: String::new(),
            library: concat!("amber ", env!("CARGO_PKG_VERSION")).to_owned(),
        };
        out.write(&record(op::HEADER, &header)?)?;
        Ok(Self {
            out,
            chunk: Chunk::default(),
            compression,
            sequence: 0,
            schemas: Known::default(),
            channels: Known::default(),
            counts: Vec::new(),
            bounds_ns: None,
            chunks: Vec::new(),
            metadata: Vec::new(),
            attachments: Vec::new(),
            has_crc: true,
        })
    }

    /// How chunks are stored.
    pub(crate) fn compression(&self) -> Compression {
        self.compression
    }

    /// The number of a schema; that of [`PROTOBUF`] is a `FileDescriptorSet`. The same schema has one
    /// number.
    pub(crate) fn add_schema(
        &mut self,
        name: &str,
        encoding: &str,
        data: &[u8],
    ) -> Result<u16, Error> {
        let length = u32::try_from(data.len()).map_err(io::Error::other)?;
        let schema = |id| {
            let header = SchemaHeader {
                id,
                name: name.to_owned(),
                encoding: encoding.to_owned(),
            };
            let mut content = encoded(&header)?;
            content.extend_from_slice(&length.to_le_bytes());
            content.extend_from_slice(data);
            Ok(framed(op::SCHEMA, &content))
        };
        let (id, new) = self.schemas.add(schema, McapError::TooManySchemas)?;
        self.chunk.records.extend(new);
        Ok(id)
    }

    /// The number of a channel. The same channel has one number.
    pub(crate) fn add_channel(
        &mut self,
        schema_id: u16,
        topic: &str,
        encoding: &str,
        about: &BTreeMap<String, String>,
    ) -> Result<u16, Error> {
        let channel = |id| {
            let channel = Channel {
                id,
                schema_id,
                topic: topic.to_owned(),
                message_encoding: encoding.to_owned(),
                metadata: about.clone(),
            };
            record(op::CHANNEL, &channel)
        };
        let (id, new) = self.channels.add(channel, McapError::TooManyChannels)?;
        self.chunk.records.extend(new);
        let channels = usize::from(id) + 1;
        self.counts.resize(self.counts.len().max(channels), 0);
        let index = &mut self.chunk.index;
        index.resize_with(index.len().max(channels), Vec::new);
        Ok(id)
    }

    /// Adds a message of a known channel. `write` appends its bytes.
    pub(crate) fn add(
        &mut self,
        channel: u16,
        time_ns: u64,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Error> {
        self.sequence = self.sequence.wrapping_add(1);
        let header = MessageHeader {
            channel_id: channel,
            sequence: self.sequence,
            log_time: time_ns,
            publish_time: time_ns,
        };
        self.add_with(&header, write)
    }

    /// The same with an individual number and times.
    pub(crate) fn add_with(
        &mut self,
        header: &MessageHeader,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Error> {
        if self.chunk.records.len() as u64 > limits::CHUNK_BYTES {
            self.finish_chunk()?;
        }
        self.counts[usize::from(header.channel_id)] += 1;
        self.chunk.add(header, write);
        Ok(())
    }

    /// Adds facts about the recording.
    pub(crate) fn add_metadata(&mut self, metadata: &Metadata) -> Result<(), Error> {
        self.finish_chunk()?;
        let record = record(op::METADATA, metadata)?;
        self.metadata.push(MetadataIndex {
            offset: self.out.at,
            length: record.len() as u64,
            name: metadata.name.clone(),
        });
        Ok(self.out.write(&record)?)
    }

    /// Adds an attachment. `write` lets its argument have the whole record, piece by piece.
    pub(crate) fn add_attachment(
        &mut self,
        attached: &Attached,
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> Result<(), Error> {
        self.finish_chunk()?;
        let (header, offset) = (&attached.header, self.out.at);
        let out = &mut self.out;
        write(&mut |bytes| out.write(bytes))?;
        self.attachments.push(AttachmentIndex {
            offset,
            length: self.out.at - offset,
            log_time: header.log_time,
            create_time: header.create_time,
            data_size: attached.bytes,
            name: header.name.clone(),
            media_type: header.media_type.clone(),
        });
        Ok(())
    }

    /// Whether the next messages get a checksum: those whose own checksum was wrong must not look
    /// like right ones.
    pub(crate) fn set_crc(&mut self, has_crc: bool) -> Result<(), Error> {
        if has_crc != self.has_crc {
            self.finish_chunk()?;
        }
        self.has_crc = has_crc;
        Ok(())
    }

    /// Writes everything so far.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.finish_chunk()?;
        Ok(self.out.file.flush()?)
    }

    /// Writes the index. Returns the file.
    pub(crate) fn finish(mut self) -> Result<W, Error> {
        self.finish_chunk()?;
        let end = DataEnd {
            data_section_crc: self.out.crc.clone().finalize(),
        };
        self.out.write(&record(op::DATA_END, &end)?)?;
        let summary = self.summary()?;
        self.out.write(&summary)?;
        self.out.write(mcap::MAGIC)?;
        self.out.file.flush()?;
        Ok(self.out.file)
    }

    fn finish_chunk(&mut self) -> Result<(), Error> {
        if self.chunk.records.is_empty() {
            return Ok(());
        }
        let chunk = &mut self.chunk;
        let (name, stored) = match self.compression {
            Compression::None => ("", Cow::Borrowed(&chunk.records[..])),
            #[cfg(feature = "zstd")]
            Compression::Zstd => {
                let level = limits::COMPRESSION_LEVEL;
                (
                    "zstd",
                    Cow::Owned(zstd::bulk::compress(&chunk.records, level)?),
                )
            }
        };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&chunk.records);
        let (size, stored_size) = (chunk.records.len() as u64, stored.len() as u64);
        let (first_ns, last_ns) = chunk.bounds_ns.unwrap_or_default();
        let header = encoded(&ChunkHeader {
            message_start_time: first_ns,
            message_end_time: last_ns,
            uncompressed_size: size,
            // 0 means that there is none.
            uncompressed_crc: match self.has_crc {
                true => crc.clone().finalize(),
                false => 0,
            },
            compression: name.to_owned(),
            compressed_size: stored_size,
        })?;
        let start = self.out.at;
        self.out
            .write(&head(op::CHUNK, header.len() + stored.len()))?;
        self.out.write(&header)?;
        match &stored {
            Cow::Borrowed(records) => self.out.write_checked(records, &crc)?,
            Cow::Owned(compressed) => self.out.write(compressed)?,
        }
        let index_start = self.out.at;
        let (index, offsets) = chunk.take_index(index_start);
        self.out.write(&index)?;
        self.chunks.push(ChunkIndex {
            message_start_time: first_ns,
            message_end_time: last_ns,
            chunk_start_offset: start,
            chunk_length: index_start - start,
            message_index_offsets: offsets,
            message_index_length: index.len() as u64,
            compression: name.to_owned(),
            compressed_size: stored_size,
            uncompressed_size: size,
        });
        self.bounds_ns = match (self.bounds_ns, chunk.bounds_ns.take()) {
            (Some((first, last)), Some((from, to))) => Some((first.min(from), last.max(to))),
            (known, new) => known.or(new),
        };
        chunk.records.clear();
        Ok(())
    }

    /// The records behind the data, up to the end of the footer.
    fn summary(&self) -> Result<Vec<u8>, Error> {
        let start = self.out.at;
        let (first_ns, last_ns) = self.bounds_ns.unwrap_or_default();
        let counts = self.counts.iter().enumerate();
        let statistics = Statistics {
            message_count: self.counts.iter().sum(),
            schema_count: self.schemas.ids.len() as u16,
            channel_count: self.channels.ids.len() as u32,
            attachment_count: self.attachments.len() as u32,
            metadata_count: self.metadata.len() as u32,
            chunk_count: self.chunks.len() as u32,
            message_start_time: first_ns,
            message_end_time: last_ns,
            channel_message_counts: counts
                .filter(|(_, count)| **count > 0)
                .map(|(id, count)| (id as u16, *count))
                .collect(),
        };
        let chunks = self.chunks.iter().map(|it| record(op::CHUNK_INDEX, it));
        let metadata = self
            .metadata
            .iter()
            .map(|it| record(op::METADATA_INDEX, it));
        let attachments = self.attachments.iter();
        let attachments = attachments.map(|it| record(op::ATTACHMENT_INDEX, it));
        let (mut bytes, mut offsets) = (Vec::new(), Vec::new());
        for (opcode, group) in [
            (op::SCHEMA, self.schemas.records.clone()),
            (op::CHANNEL, self.channels.records.clone()),
            (op::STATISTICS, record(op::STATISTICS, &statistics)?),
            (
                op::CHUNK_INDEX,
                chunks.collect::<Result<Vec<_>, Error>>()?.concat(),
            ),
            (
                op::ATTACHMENT_INDEX,
                attachments.collect::<Result<Vec<_>, Error>>()?.concat(),
            ),
            (
                op::METADATA_INDEX,
                metadata.collect::<Result<Vec<_>, Error>>()?.concat(),
            ),
        ] {
            if group.is_empty() {
                continue;
            }
            let offset = SummaryOffset {
                group_opcode: opcode,
                group_start: start + bytes.len() as u64,
                group_length: group.len() as u64,
            };
            offsets.extend(record(op::SUMMARY_OFFSET, &offset)?);
            bytes.extend(group);
        }
        let mut footer = Footer {
            summary_start: start,
            summary_offset_start: start + bytes.len() as u64,
            summary_crc: 0,
        };
        bytes.extend(offsets);
        // The checksum covers the footer up to the checksum itself.
        let with_footer = [&bytes[..], &record(op::FOOTER, &footer)?].concat();
        let checked = with_footer.len() - size_of::<u32>();
        footer.summary_crc = crc32fast::hash(&with_footer[..checked]);
        bytes.extend(record(op::FOOTER, &footer)?);
        Ok(bytes)
    }
}

impl Known {
    /// The number of what has this record, and the record if it is new. `record` makes it for a
    /// number.
    fn add(
        &mut self,
        record: impl Fn(u16) -> Result<Vec<u8>, Error>,
        full: McapError,
    ) -> Result<(u16, Vec<u8>), Error> {
        let content = record(0)?;
        if let Some(known) = self.ids.get(&content) {
            return Ok((*known, Vec::new()));
        }
        // 0 means that there is none.
        let Ok(id) = u16::try_from(self.ids.len() + 1) else {
            return Err(full.into());
        };
        self.ids.insert(content, id);
        let new = record(id)?;
        self.records.extend_from_slice(&new);
        Ok((id, new))
    }
}

impl Chunk {
    fn add(&mut self, header: &MessageHeader, write: impl FnOnce(&mut Vec<u8>)) {
        let (channel, time_ns) = (header.channel_id, header.log_time);
        let start = self.records.len();
        let mut head = [0; MESSAGE_HEAD];
        head[0] = op::MESSAGE;
        head[9..11].copy_from_slice(&channel.to_le_bytes());
        head[11..15].copy_from_slice(&header.sequence.to_le_bytes());
        head[15..23].copy_from_slice(&time_ns.to_le_bytes());
        head[23..31].copy_from_slice(&header.publish_time.to_le_bytes());
        self.records.extend_from_slice(&head);
        write(&mut self.records);
        let length = (self.records.len() - start - HEAD) as u64;
        self.records[start + 1..start + HEAD].copy_from_slice(&length.to_le_bytes());
        let index = &mut self.index[usize::from(channel)];
        if index.is_empty() {
            self.used.push(channel);
        }
        index.push((time_ns, start as u64));
        let (first, last) = self.bounds_ns.unwrap_or((time_ns, time_ns));
        self.bounds_ns = Some((first.min(time_ns), last.max(time_ns)));
    }

    /// The index of the messages, which begins at this place of the file, and the place of each
    /// channel.
    fn take_index(&mut self, at: u64) -> (Vec<u8>, BTreeMap<u16, u64>) {
        let (mut bytes, mut offsets) = (Vec::new(), BTreeMap::new());
        self.used.sort_unstable();
        for channel in self.used.drain(..) {
            offsets.insert(channel, at + bytes.len() as u64);
            let entries = &mut self.index[usize::from(channel)];
            let length = 16 * entries.len();
            bytes.extend_from_slice(&head(op::MESSAGE_INDEX, 2 + 4 + length));
            bytes.extend_from_slice(&channel.to_le_bytes());
            bytes.extend_from_slice(&(length as u32).to_le_bytes());
            for (time_ns, offset) in entries.drain(..) {
                bytes.extend_from_slice(&time_ns.to_le_bytes());
                bytes.extend_from_slice(&offset.to_le_bytes());
            }
        }
        (bytes, offsets)
    }
}

fn head(opcode: u8, length: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[0] = opcode;
    head[1..].copy_from_slice(&(length as u64).to_le_bytes());
    head
}

pub(crate) fn framed(opcode: u8, content: &[u8]) -> Vec<u8> {
    [&head(opcode, content.len()), content].concat()
}

fn record<T: for<'a> BinWrite<Args<'a> = ()>>(opcode: u8, content: &T) -> Result<Vec<u8>, Error> {
    Ok(framed(opcode, &encoded(content)?))
}

pub(crate) fn encoded<T: for<'a> BinWrite<Args<'a> = ()>>(content: &T) -> Result<Vec<u8>, Error> {
    let mut bytes = Cursor::new(Vec::new());
    let written = content.write_le_args(&mut bytes, ());
    written.map_err(io::Error::other)?;
    Ok(bytes.into_inner())
}

#[cfg(test)]
mod tests;
