//! Reads recordings, finished or not, damaged or not. PURE except for the file.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};

use mcap::records::{self, ChunkIndex, MessageHeader, Record, SchemaHeader, op};
use prost_reflect::DescriptorPool;

use crate::Error;
use crate::chunk::{self, Check, Chunk, Header, first_record};
use crate::damage::{Damage, Effect};
use crate::descriptors::PACKAGE;
use crate::payload::{self, Form, Framing};
use crate::record::MESSAGE_HEADER;
use crate::scan::{Attached, Found, Scan};
use crate::writer::PROTOBUF;

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
        /// What the checksum of its chunk says.
        check: Check,
    },
    /// Metadata.
    Metadata(records::Metadata),
    /// An attachment: see [`Messages::attachment`].
    Attachment(Attached),
    /// A part that is damaged. If its effect is [`Effect::Doubtful`], its messages follow.
    Damage(Damage),
    /// The end of a finished file.
    End,
}

/// A recording, entry by entry.
pub struct Messages<F> {
    scan: Scan<F>,
    schemas: BTreeMap<u16, (SchemaHeader, Vec<u8>)>,
    channels: BTreeMap<u16, Stored>,
    /// The schemas of the channels.
    schema_of: BTreeMap<u16, u16>,
    /// The schemas and channels that only a wrong chunk has.
    doubtful: BTreeSet<Defined>,
    /// Those that no checksum confirms.
    unconfirmed: BTreeSet<Defined>,
    chunk: Option<Reading>,
    /// The library that wrote the file.
    writer: String,
}

/// The number of what is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Defined {
    Schema(u16),
    Channel(u16),
}

/// A chunk that is being read.
struct Reading {
    chunk: Chunk,
    /// The place of the chunk in the file, and that of the next record in the chunk.
    place: (u64, usize),
    bounds_ns: Option<(u64, u64)>,
}

impl<F: Read + Seek> Messages<F> {
    /// Reads a file from its start.
    ///
    /// # Errors
    /// The file cannot be read, or is not an MCAP file.
    pub fn new(file: F) -> Result<Self, Error> {
        let scan = Scan::new(file)?.ok_or(Error::Mcap(mcap::McapError::BadMagic))?;
        let mut messages = Self {
            scan,
            schemas: BTreeMap::new(),
            channels: BTreeMap::new(),
            schema_of: BTreeMap::new(),
            doubtful: BTreeSet::new(),
            unconfirmed: BTreeSet::new(),
            chunk: None,
            writer: String::new(),
        };
        // Other readers know only these, and the first chunks may be damaged.
        let summary = messages.scan.summary();
        let known = summary.map(|it| (it.schemas.clone(), it.channels.clone(), it.is_checked));
        let (schemas, channels, is_checked) = known.unwrap_or_default();
        let check = match is_checked {
            true => Check::Right,
            false => Check::Absent,
        };
        for (header, data) in schemas {
            messages.add_schema(header, data, check);
        }
        for channel in channels {
            messages.add_channel(channel, check);
        }
        Ok(messages)
    }

    /// The channels that were read so far, and those that the index has.
    pub fn channels(&self) -> &BTreeMap<u16, Stored> {
        &self.channels
    }

    /// Whether messages of this channel must be compared with its schema: it is lost, or only a wrong
    /// chunk has it or the channel.
    pub fn is_doubtful(&self, channel: u16) -> bool {
        let Some(schema) = self.schema_of.get(&channel) else {
            return true;
        };
        let is_lost = *schema != 0 && !self.schemas.contains_key(schema);
        let defined = [Defined::Channel(channel), Defined::Schema(*schema)];
        is_lost || defined.iter().any(|it| self.doubtful.contains(it))
    }

    /// The library that wrote the file, if that is known.
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// The messages that the file has according to its index.
    pub fn expected(&self) -> Option<u64> {
        self.scan.summary()?.messages
    }

    /// Whether the file has an end, although it may be damaged.
    pub fn has_ending(&self) -> bool {
        self.scan.has_ending()
    }

    /// Lets `each` have the whole record of an attachment, piece by piece.
    ///
    /// # Errors
    /// The file cannot be read, or `each` fails.
    pub fn attachment(
        &mut self,
        attached: &Attached,
        each: impl FnMut(&[u8]) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let (at, length) = attached.record;
        self.scan.file.pass(at, at + length, each)
    }

    /// Reads up to the next entry, and lets `each` have it. Returns false at the end of the file,
    /// which need not be the [`Entry::End`] of a finished one.
    ///
    /// # Errors
    /// The file cannot be read. Damage is no error, but an entry.
    pub fn next(
        &mut self,
        each: impl FnOnce(&BTreeMap<u16, Stored>, Entry<'_>),
    ) -> Result<bool, Error> {
        let mut each = each;
        loop {
            if let Some(reading) = self.chunk.take() {
                match self.next_of(reading, each) {
                    Some(unused) => each = unused,
                    None => return Ok(true),
                }
            }
            let entry = match self.scan.next()? {
                None => return Ok(false),
                Some(Found::Damage(damage)) => Entry::Damage(damage),
                Some(Found::Attachment(attached)) => Entry::Attachment(attached),
                Some(Found::DataEnd) => Entry::End,
                Some(Found::Chunk {
                    at,
                    content,
                    is_whole,
                }) => match self.open(at, content, is_whole) {
                    Some(damage) => Entry::Damage(damage),
                    None => continue,
                },
                Some(Found::Record { opcode, content }) => {
                    match mcap::parse_record(opcode, &content) {
                        Ok(Record::Message { header, .. }) => {
                            let entry = Entry::Message {
                                channel: header.channel_id,
                                header,
                                data: &content[MESSAGE_HEADER.min(content.len())..],
                                check: Check::Absent,
                            };
                            each(&self.channels, entry);
                            return Ok(true);
                        }
                        Ok(Record::Metadata(metadata)) => Entry::Metadata(metadata),
                        Ok(record) => {
                            self.define(record, Check::Absent);
                            continue;
                        }
                        // It could be parsed a moment ago, or does not matter.
                        Err(_) => continue,
                    }
                }
            };
            each(&self.channels, entry);
            return Ok(true);
        }
    }

    /// Begins a chunk. Returns what is wrong with it.
    fn open(&mut self, at: u64, content: Vec<u8>, is_whole: bool) -> Option<Damage> {
        let bytes = content.len() as u64 + chunk::HEAD as u64;
        let index = self.scan.summary().and_then(|it| it.chunks.get(&at));
        let by_index = index.map(|it: &ChunkIndex| (it.message_start_time, it.message_end_time));
        let bounds_ns = by_index.or_else(|| Header::parse(&content).map(|it| it.bounds_ns));
        let damage = |what: &str, effect, messages| Damage {
            what: what.to_owned(),
            at,
            bytes,
            effect,
            messages,
            first_ns: bounds_ns.map(|(first, _)| first),
            last_ns: bounds_ns.map(|(_, last)| last),
        };
        let chunk = match Chunk::open(content, is_whole) {
            Ok(chunk) => chunk,
            Err(what) => {
                self.scan.ignore_crc();
                return Some(damage(&what, Effect::Lost, 0));
            }
        };
        if chunk.check == Check::Wrong {
            self.scan.ignore_crc();
        }
        let wrong = (chunk.check == Check::Wrong).then(|| {
            let messages = chunk::count_messages(chunk.records());
            damage(
                "the checksum of a chunk is wrong",
                Effect::Doubtful,
                messages,
            )
        });
        let place = (at, 0);
        self.chunk = Some(Reading {
            chunk,
            place,
            bounds_ns,
        });
        wrong
    }

    /// The next entry of a chunk. Returns `each` if there is none.
    fn next_of<E>(&mut self, mut reading: Reading, each: E) -> Option<E>
    where
        E: FnOnce(&BTreeMap<u16, Stored>, Entry<'_>),
    {
        let check = reading.chunk.check;
        let (place, mut at) = reading.place;
        loop {
            let rest = &reading.chunk.records()[at..];
            if rest.is_empty() && check != Check::CutOff {
                return Some(each);
            }
            let Some((opcode, content, length)) = first_record(rest) else {
                // That the rest of a wrong chunk cannot be read was said before.
                if check == Check::Wrong {
                    return Some(each);
                }
                let what = match check {
                    Check::CutOff => "the file ends within a chunk",
                    _ => "the records of a chunk",
                };
                let damage = Damage {
                    what: what.to_owned(),
                    at: place,
                    bytes: rest.len() as u64,
                    last_ns: reading.bounds_ns.map(|(_, last)| last),
                    ..Damage::default()
                };
                each(&self.channels, Entry::Damage(damage));
                return None;
            };
            let from = at;
            at += length;
            if opcode != op::MESSAGE {
                if let Ok(record) = mcap::parse_record(opcode, content) {
                    self.define(record, check);
                }
                continue;
            }
            let Ok(Record::Message { header, .. }) = mcap::parse_record(opcode, content) else {
                continue;
            };
            let range = from + chunk::HEAD + MESSAGE_HEADER..from + length;
            reading.place = (place, at);
            let reading = self.chunk.insert(reading);
            let entry = Entry::Message {
                channel: header.channel_id,
                header,
                data: &reading.chunk.records()[range],
                check,
            };
            each(&self.channels, entry);
            return None;
        }
    }

    /// Notes schemas and channels.
    fn define(&mut self, record: Record<'_>, check: Check) {
        match record {
            Record::Header(records::Header { library, .. }) => self.writer = library,
            Record::Schema { header, data } => self.add_schema(header, data.into_owned(), check),
            Record::Channel(channel) => self.add_channel(channel, check),
            _ => {}
        }
    }

    fn add_schema(&mut self, header: SchemaHeader, data: Vec<u8>, check: Check) {
        let id = header.id;
        let is_known = self.schemas.contains_key(&id);
        // A damaged schema can be one that some readers accept and others do not.
        let is_usable = match check {
            Check::Right => true,
            Check::Absent | Check::CutOff => {
                header.encoding != PROTOBUF || is_sound(&header, &data)
            }
            Check::Wrong => false,
        };
        if !is_usable || !self.is_better(Defined::Schema(id), is_known, check) {
            return;
        }
        self.schemas.insert(id, (header, data));
        let of = self.schema_of.iter().filter(|(_, schema)| **schema == id);
        for (channel, _) in of {
            if let (Some(stored), Some((header, data))) =
                (self.channels.get_mut(channel), self.schemas.get(&id))
            {
                stored.set_schema(header, data);
            }
        }
    }

    /// Whether this definition counts: the first one, or the first that a checksum confirms.
    fn is_better(&mut self, defined: Defined, is_known: bool, check: Check) -> bool {
        let is_right = check == Check::Right;
        match (is_known, check) {
            (false, Check::Wrong) => self.doubtful.insert(defined),
            (false, _) => is_right || self.unconfirmed.insert(defined),
            (true, Check::Wrong) => false,
            (true, _) => {
                let was_doubtful = self.doubtful.remove(&defined);
                was_doubtful || is_right && self.unconfirmed.remove(&defined)
            }
        }
    }

    fn add_channel(&mut self, channel: records::Channel, check: Check) {
        let is_known = self.channels.contains_key(&channel.id);
        if !self.is_better(Defined::Channel(channel.id), is_known, check) {
            return;
        }
        let mut stored = Stored {
            topic: channel.topic,
            encoding: channel.message_encoding,
            about: channel.metadata,
            schema: String::new(),
            schema_encoding: String::new(),
            descriptors: Vec::new(),
        };
        if let Some((header, data)) = self.schemas.get(&channel.schema_id) {
            stored.set_schema(header, data);
        }
        self.schema_of.insert(channel.id, channel.schema_id);
        self.channels.insert(channel.id, stored);
    }
}

/// Whether all readers can use a schema of protobuf: some of them accept names that are none.
fn is_sound(header: &SchemaHeader, data: &[u8]) -> bool {
    let Ok(pool) = DescriptorPool::decode(data) else {
        return false;
    };
    let is_name = |name: &str| {
        let mut characters = name.chars();
        characters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|rest| rest.is_ascii_alphanumeric() || rest == '_')
    };
    let is_full_name = |name: &str| name.split('.').all(is_name);
    let messages = pool.all_messages().all(|message| {
        is_full_name(message.full_name())
            && message.fields().all(|field| is_name(field.name()))
            && message.oneofs().all(|oneof| is_name(oneof.name()))
    });
    let enums = pool
        .all_enums()
        .all(|it| is_full_name(it.full_name()) && it.values().all(|value| is_name(value.name())));
    let mut extensions = pool.all_extensions();
    messages
        && enums
        && extensions.all(|it| is_full_name(it.full_name()))
        && pool.get_message_by_name(&header.name).is_some()
}

impl Stored {
    fn set_schema(&mut self, header: &SchemaHeader, data: &[u8]) {
        self.schema.clone_from(&header.name);
        self.schema_encoding.clone_from(&header.encoding);
        self.descriptors = data.to_vec();
    }

    /// Framing and message of a stored frame; `None` for other messages. The message is copied if the
    /// file has it within one for other programs.
    pub fn message<'a>(&self, data: &'a [u8]) -> Option<(Framing, Cow<'a, [u8]>)> {
        if !self.about.contains_key("device") {
            return None;
        }
        let form = match &*self.schema {
            "amber.recorded.Unknown" => Form::Opaque,
            // The schema of a channel may be lost.
            own if own.is_empty() || own.starts_with(PACKAGE) => Form::Fields,
            _ => Form::Carried,
        };
        payload::read(data, form)
    }
}
