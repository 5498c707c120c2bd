//! Reads recordings, finished or not. PURE except for the file.

use std::collections::BTreeMap;
use std::io::Read;

use mcap::records::{self, MessageHeader, Record};
use mcap::sans_io::{LinearReadEvent, LinearReader, LinearReaderOptions};

use crate::payload::{self, Form, Framing};
use crate::{Error, limits};

/// A channel with its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The topic.
    pub topic: String,
    /// How messages are encoded: `protobuf` in recordings of Amber.
    pub encoding: String,
    /// Facts about the channel, such as `device`.
    pub about: BTreeMap<String, String>,
    /// The full name of the message.
    pub schema: String,
    /// How the schema is encoded: `protobuf` in recordings of Amber.
    pub schema_encoding: String,
    /// A `google.protobuf.FileDescriptorSet`.
    pub descriptors: Vec<u8>,
}

/// One part of a recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry<'a> {
    /// A message.
    Message {
        /// The number of its channel.
        channel: u16,
        /// Number and times.
        header: MessageHeader,
        /// The stored bytes: see [`Stored::message`].
        data: &'a [u8],
    },
    /// Metadata.
    Metadata(records::Metadata),
    /// The end of a finished file.
    End,
}

/// A recording, entry by entry.
pub struct Messages<R> {
    file: R,
    reader: LinearReader,
    schemas: BTreeMap<u16, (String, String, Vec<u8>)>,
    channels: BTreeMap<u16, Stored>,
    is_empty: bool,
}

impl<R: Read> Messages<R> {
    /// Reads a file from its start.
    pub fn new(file: R) -> Self {
        // Reading a part of a damaged file is better than nothing.
        let options = LinearReaderOptions::default()
            .with_skip_end_magic(true)
            .with_validate_chunk_crcs(true)
            .with_record_length_limit(limits::RECORD_BYTES);
        Self {
            file,
            reader: LinearReader::new_with_options(options),
            schemas: BTreeMap::new(),
            channels: BTreeMap::new(),
            is_empty: true,
        }
    }

    /// The channels that were read so far.
    pub fn channels(&self) -> &BTreeMap<u16, Stored> {
        &self.channels
    }

    /// Reads up to the next entry, and lets `each` have it. Returns false at the end of the file,
    /// which need not be the [`Entry::End`] of a finished one.
    ///
    /// # Errors
    /// The file is damaged here, or not an MCAP file; nothing after this can be read.
    pub fn next(
        &mut self,
        each: impl FnOnce(&BTreeMap<u16, Stored>, Entry<'_>),
    ) -> Result<bool, Error> {
        while let Some(event) = self.reader.next_event() {
            match event? {
                LinearReadEvent::ReadRequest(need) => {
                    let buffer = self.reader.insert(need.max(limits::READ_BYTES));
                    let read = loop {
                        match self.file.read(buffer) {
                            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                            read => break read?,
                        }
                    };
                    self.reader.notify_read(read);
                    if read == 0 && self.is_empty {
                        return Err(Error::Mcap(mcap::McapError::BadMagic));
                    }
                    self.is_empty = false;
                }
                LinearReadEvent::Record { opcode, data } => {
                    let entry = match mcap::parse_record(opcode, data)? {
                        Record::Schema { header, data } => {
                            let schema = (header.name, header.encoding, data.into_owned());
                            self.schemas.entry(header.id).or_insert(schema);
                            continue;
                        }
                        Record::Channel(channel) => {
                            self.add_channel(channel);
                            continue;
                        }
                        Record::Message { header, .. } => Entry::Message {
                            channel: header.channel_id,
                            header,
                            data: &data[MESSAGE_HEADER.min(data.len())..],
                        },
                        Record::Metadata(metadata) => Entry::Metadata(metadata),
                        Record::DataEnd(_) => Entry::End,
                        _ => continue,
                    };
                    each(&self.channels, entry);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn add_channel(&mut self, channel: records::Channel) {
        let schema = self.schemas.get(&channel.schema_id).cloned();
        let (schema, schema_encoding, descriptors) = schema.unwrap_or_default();
        self.channels.entry(channel.id).or_insert(Stored {
            topic: channel.topic,
            encoding: channel.message_encoding,
            about: channel.metadata,
            schema,
            schema_encoding,
            descriptors,
        });
    }
}

/// Channel, sequence and two times.
const MESSAGE_HEADER: usize = 2 + 4 + 8 + 8;

impl Stored {
    /// Framing and message of a stored frame; `None` for other messages.
    pub fn message<'a>(&self, data: &'a [u8]) -> Option<(Framing, &'a [u8])> {
        if !self.about.contains_key("device") {
            return None;
        }
        let form = match self.schema == "amber.recorded.Unknown" {
            true => Form::Opaque,
            false => Form::Fields,
        };
        payload::read(data, form)
    }
}
