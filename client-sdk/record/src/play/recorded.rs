//! The index of a recording, and its chunks. PURE except for the files.
//!
//! A recording may have several files, which follow each other in time. Each file has numbers of its
//! own for its channels. Here a channel has one number in all files.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::time::Duration;

use amber_proto::feed::Direction;
use amber_proto::{Device, DeviceType};
use amber_reflect::Schemas;
use mcap::Summary;
use mcap::records::ChunkIndex;
use mcap::sans_io::summary_reader::{SummaryReadEvent, SummaryReader, SummaryReaderOptions};
use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet};

use super::chunk::Chunk;
use super::{PlayError, Span, limits};
use crate::Error;
use crate::chunk::{self, Check, HEAD};
use crate::limits::RECORD_BYTES;
use crate::messages::Stored;
use crate::recording::GAPS;

/// The topic of events.
const EVENTS: &str = "/amber/events";

/// The contents of a recording, from the indexes of its files.
pub struct Recorded {
    span: Span,
    pub(super) channels: BTreeMap<u16, PlayedChannel>,
    files: Vec<Part>,
    /// The chunks of all files, in order of time.
    chunks: Vec<Place>,
    /// The chunks of each channel, by their place in `chunks`, in order of time.
    of_channel: HashMap<u16, Vec<usize>>,
}

/// One file of a recording.
struct Part {
    /// The numbers of [`Recorded::channels`] for those of the file.
    numbers: HashMap<u16, u16>,
}

/// A chunk in one of the files.
struct Place {
    file: usize,
    index: ChunkIndex,
}

/// A channel that matters for playing.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PlayedChannel {
    pub(super) stored: Stored,
    pub(super) what: What,
    /// The field that names it.
    pub(super) field: Named,
}

/// The meaning of the last part of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// The first field of the messages.
    Field(u32),
    /// A type of messages, such as SUBSCRIBE.
    Type,
    /// The messages have no schema.
    Nothing,
}

/// The content of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Messages between clients and a device.
    Frames(Device, Direction),
    /// Events of the mediator.
    Events,
    /// Gaps in the recording.
    Gaps,
}

impl Recorded {
    /// Joins recordings that follow each other in time, such as the files of `amber record
    /// --max-size`. They must be in order of time.
    ///
    /// # Errors
    /// They overlap, or there is too much time between them, or they are too long together. The
    /// number is that of the later file.
    pub fn join(all: impl IntoIterator<Item = Self>) -> Result<Self, (usize, PlayError)> {
        let mut all = all.into_iter();
        let Some(mut joined) = all.next() else {
            return Err((0, PlayError::Empty));
        };
        for (number, next) in all.enumerate() {
            joined.add(next).map_err(|error| (number + 1, error))?;
        }
        Ok(joined)
    }

    fn add(&mut self, next: Self) -> Result<(), PlayError> {
        let Some(apart_ns) = next.span.first_ns.checked_sub(self.span.last_ns) else {
            return Err(PlayError::Overlap);
        };
        let apart = Duration::from_nanos(apart_ns);
        if apart > limits::APART {
            return Err(PlayError::Apart(apart));
        }
        let chunks = self.chunks.len() + next.chunks.len();
        if chunks > limits::CHUNKS {
            return Err(PlayError::TooLong(chunks));
        }
        let mut numbers = HashMap::new();
        for (id, channel) in next.channels {
            let known = self.channels.iter().find(|(_, known)| **known == channel);
            let number = match known {
                Some((number, _)) => *number,
                None => {
                    let last = self.channels.keys().next_back().copied();
                    let number = last.map_or(Some(0), |last| last.checked_add(1));
                    let number = number.ok_or(PlayError::TooManyChannels)?;
                    self.channels.insert(number, channel);
                    number
                }
            };
            numbers.insert(id, number);
        }
        let (files, before) = (self.files.len(), self.chunks.len());
        self.files.extend(next.files.into_iter().map(|mut file| {
            file.numbers.values_mut().for_each(|id| *id = numbers[&*id]);
            file
        }));
        self.chunks.extend(next.chunks.into_iter().map(|mut place| {
            place.file += files;
            place
        }));
        for (id, places) in next.of_channel {
            let all = self.of_channel.entry(numbers[&id]).or_default();
            all.extend(places.into_iter().map(|place| place + before));
        }
        self.span.last_ns = next.span.last_ns;
        Ok(())
    }

    /// Reads the index of one file.
    ///
    /// # Errors
    /// The file cannot be read, is not a recording, is not finished, or is empty.
    pub fn open(mut file: impl Read + Seek) -> Result<Self, PlayError> {
        let mut summary = read_summary(&mut file)?;
        if summary.chunk_indexes.len() > limits::CHUNKS {
            return Err(PlayError::TooLong(summary.chunk_indexes.len()));
        }
        summary
            .chunk_indexes
            .retain(|chunk| chunk.message_end_time > 0);
        let first = summary.chunk_indexes.iter().map(|it| it.message_start_time);
        let last = summary.chunk_indexes.iter().map(|it| it.message_end_time);
        let (Some(first_ns), Some(last_ns)) = (first.min(), last.max()) else {
            let messages = summary
                .stats
                .as_ref()
                .map_or(0, |stats| stats.message_count);
            return Err(match messages {
                0 => PlayError::Empty,
                _ => PlayError::Unfinished,
            });
        };
        summary
            .chunk_indexes
            .sort_by_key(|chunk| chunk.message_start_time);
        let mut schemas = HashMap::new();
        let channels: BTreeMap<_, _> = (summary.channels.iter())
            .filter_map(|(id, channel)| Some((*id, PlayedChannel::of(channel, &mut schemas)?)))
            .collect();
        let mut of_channel: HashMap<u16, Vec<usize>> = HashMap::new();
        for (place, chunk) in summary.chunk_indexes.iter_mut().enumerate() {
            // Other writers may leave this out; then any channel may be in it.
            let of = std::mem::take(&mut chunk.message_index_offsets);
            let known = of.into_keys().filter(|id| channels.contains_key(id));
            let mut known: Vec<_> = known.collect();
            if known.is_empty() && chunk.message_index_length == 0 {
                known = channels.keys().copied().collect();
            }
            for id in known {
                of_channel.entry(id).or_default().push(place);
            }
        }
        let chunks = summary.chunk_indexes.into_iter();
        let file = Part {
            numbers: channels.keys().map(|id| (*id, *id)).collect(),
        };
        Ok(Self {
            span: Span { first_ns, last_ns },
            channels,
            files: vec![file],
            chunks: chunks.map(|index| Place { file: 0, index }).collect(),
            of_channel,
        })
    }

    /// The time from the first to the last message.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The recorded devices, except for the mediator itself.
    pub fn devices(&self) -> BTreeSet<Device> {
        let devices = self
            .channels
            .values()
            .filter_map(|channel| match channel.what {
                What::Frames(device, _) => Some(device),
                What::Events | What::Gaps => None,
            });
        devices.collect()
    }

    /// The description of a device that Amber does not know by itself.
    pub fn description(&self, device_type: DeviceType) -> Option<Vec<u8>> {
        let of_type = |channel: &&PlayedChannel| matches!(channel.what, What::Frames(device, _) if device.device_type == device_type);
        let mut sets = (self.channels.values().filter(of_type))
            .filter_map(|channel| without_our_files(&channel.stored.descriptors));
        sets.find(|set| {
            let schemas = Schemas::from_descriptors(set);
            let own = schemas.iter().flat_map(Schemas::own_interfaces);
            (own.into_iter()).any(|interface| interface.device_type == device_type.0)
        })
    }

    /// The channels for which this is true.
    pub(super) fn channels_where(&self, matches: impl Fn(&PlayedChannel) -> bool) -> BTreeSet<u16> {
        let found = self.channels.iter().filter(|(_, channel)| matches(channel));
        found.map(|(id, _)| *id).collect()
    }

    /// The chunks that have one of these channels, in order of time.
    pub(super) fn chunks_with(&self, channels: &BTreeSet<u16>) -> Vec<usize> {
        let of = channels
            .iter()
            .filter_map(|id| self.of_channel.get(id))
            .flatten();
        let mut places: Vec<_> = of.copied().collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// One chunk of the index.
    pub(super) fn chunk(&self, place: usize) -> &ChunkIndex {
        &self.chunks[place].index
    }

    /// The chunks of these channels from a time on, in order of time.
    pub(super) fn chunks_from(&self, channels: &BTreeSet<u16>, from_ns: u64) -> VecDeque<usize> {
        let places = self.chunks_with(channels).into_iter();
        places
            .filter(|place| self.chunk(*place).message_end_time >= from_ns)
            .collect()
    }

    /// Reads one chunk.
    ///
    /// # Errors
    /// The file cannot be read. A damaged chunk has no messages.
    pub(super) fn read_chunk(
        &self,
        files: &mut [impl Read + Seek],
        place: usize,
    ) -> Result<Chunk, Error> {
        let Place { file, index } = &self.chunks[place];
        let numbers = &self.files[*file].numbers;
        let head = HEAD as u64;
        let length = index.chunk_length.saturating_sub(head).min(RECORD_BYTES) as usize;
        let mut content = vec![0; length];
        let file = &mut files[*file];
        file.seek(SeekFrom::Start(
            index.chunk_start_offset.saturating_add(head),
        ))?;
        match file.read_exact(&mut content) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                return Ok(Chunk::damaged("the file ends before this chunk"));
            }
            read => read?,
        }
        Ok(match chunk::Chunk::open(content, true) {
            Err(what) => Chunk::damaged(&what),
            Ok(opened) if opened.check == Check::Wrong => {
                Chunk::damaged("the checksum of a chunk is wrong")
            }
            Ok(opened) => Chunk::of(opened.records(), numbers),
        })
    }
}

impl PlayedChannel {
    /// `schemas` has the fields of each schema so far.
    fn of(
        channel: &mcap::Channel<'_>,
        schemas: &mut HashMap<String, HashMap<String, u32>>,
    ) -> Option<Self> {
        let schema = channel.schema.as_ref();
        let stored = Stored {
            topic: channel.topic.clone(),
            encoding: channel.message_encoding.clone(),
            about: channel.metadata.clone(),
            schema: schema.map(|it| it.name.clone()).unwrap_or_default(),
            schema_encoding: schema.map(|it| it.encoding.clone()).unwrap_or_default(),
            descriptors: schema.map(|it| it.data.to_vec()).unwrap_or_default(),
        };
        let what = match &*stored.topic {
            EVENTS => What::Events,
            GAPS => What::Gaps,
            _ => {
                let number = |key: &str| stored.about.get(key)?.parse().ok();
                let device_type = DeviceType(number("device_type")?);
                let device = Device::new(device_type, number("device_id")?);
                let direction = match stored.about.get("direction").map(String::as_str) {
                    Some("to driver") => Direction::ToDriver,
                    Some("from driver") => Direction::FromDriver,
                    _ => return None,
                };
                // What the mediator dropped did not reach anything. Its own answers are not played.
                let is_dropped = stored.topic.split('/').nth(3) == Some("dropped");
                if device_type == DeviceType::MEDIATOR || is_dropped {
                    return None;
                }
                What::Frames(device, direction)
            }
        };
        let fields = match schemas.get(&stored.schema) {
            Some(known) => known,
            None => {
                let fields = fields(&stored).unwrap_or_default();
                schemas.entry(stored.schema.clone()).or_insert(fields)
            }
        };
        let name = stored.topic.rsplit('/').next().unwrap_or_default();
        let field = match fields.get(name) {
            Some(_) if stored.schema == UNKNOWN => Named::Nothing,
            Some(number) => Named::Field(*number),
            None if fields.is_empty() => Named::Nothing,
            None => Named::Type,
        };
        Some(Self {
            stored,
            what,
            field,
        })
    }

    /// The last part of the topic: the name of the first field.
    pub(super) fn name(&self) -> &str {
        self.stored.topic.rsplit('/').next().unwrap_or_default()
    }
}

/// The schema of messages without a description.
const UNKNOWN: &str = "amber.recorded.Unknown";

/// A `FileDescriptorSet` whose files stay bytes: decoding them would drop the options that describe
/// a device.
#[derive(Clone, PartialEq, Message)]
struct RawSet {
    #[prost(bytes = "vec", repeated, tag = "1")]
    file: Vec<Vec<u8>>,
}

/// The files of a device, without the one that [`crate::Descriptors`] adds, and without those of Amber
/// and protobuf: a driver sends only its own, since the mediator keeps only short descriptions.
fn without_our_files(set: &[u8]) -> Option<Vec<u8>> {
    let mut set = RawSet::decode(set).ok()?;
    let ours = amber_reflect::built_in_pool();
    let is_ours = |file: &FileDescriptorProto| {
        let known = ours.get_file_by_name(file.name());
        let is_known = known.is_some_and(|known| known.package_name() == file.package());
        is_known || file.package() == crate::descriptors::PACKAGE
    };
    set.file.retain(|file| {
        let file = FileDescriptorProto::decode(&file[..]);
        file.is_ok_and(|file| !is_ours(&file))
    });
    Some(set.encode_to_vec())
}

/// Names and numbers of the fields of a schema.
fn fields(stored: &Stored) -> Option<HashMap<String, u32>> {
    let set = FileDescriptorSet::decode(&stored.descriptors[..]).ok()?;
    let (package, name) = stored.schema.rsplit_once('.')?;
    let mut files = set.file.iter().filter(|file| file.package() == package);
    let message = files.find_map(|file| file.message_type.iter().find(|it| it.name() == name))?;
    let fields = message.field.iter();
    Some(
        fields
            .map(|field| (field.name().to_owned(), field.number() as u32))
            .collect(),
    )
}

fn read_summary(mut file: impl Read + Seek) -> Result<Summary, PlayError> {
    let size = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let mut magic = [0; mcap::MAGIC.len()];
    let mut read = 0;
    while read < magic.len() {
        match file.read(&mut magic[read..])? {
            0 => break,
            more => read += more,
        }
    }
    if magic[..] != *mcap::MAGIC {
        return Err(mcap::McapError::BadMagic.into());
    }
    let options = SummaryReaderOptions::default()
        .with_file_size(size)
        .with_record_length_limit(RECORD_BYTES as usize);
    let mut reader = SummaryReader::new_with_options(options);
    while let Some(event) = reader.next_event() {
        match event {
            Ok(SummaryReadEvent::ReadRequest(need)) => {
                let read = file.read(reader.insert(need))?;
                reader.notify_read(read);
            }
            Ok(SummaryReadEvent::SeekRequest(to)) => {
                let at = file.seek(to)?;
                reader.notify_seeked(at);
            }
            // It begins as a recording, but does not end as one.
            Err(_) => return Err(PlayError::Unfinished),
        }
    }
    reader.finish().ok_or(PlayError::Unfinished)
}
