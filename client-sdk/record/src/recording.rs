//! Writes a recording from the records of a feed. PURE except for the file.

use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::sync::Arc;

use amber_proto::feed::{Direction, Dropped, Gap, Record, Recorded, What};
use amber_proto::{ClientId, Device, DeviceType, MsgType};
use amber_reflect::Schemas;
use foldhash::fast::RandomState;
use mcap::records::Metadata;
use prost::Message;
use prost_types::field_descriptor_proto::Type;

use crate::companion::{Beside, Carrier, Companion};
use crate::known::Known;
use crate::payload::{self, Form};
use crate::pieces::{Part, Pieces};
use crate::topic::{self, Kind};
use crate::writer::{Compression, PROTOBUF, Writer};
use crate::{Descriptors, Error, limits};

/// The totals so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Totals {
    /// Messages: frames, without the pieces of messages that are longer than a frame.
    pub messages: u64,
    /// The bytes of their messages.
    pub bytes: u64,
    /// Frames that are missing because the recorder was too slow.
    pub missing: u64,
    /// The bytes of their messages.
    pub missing_bytes: u64,
    /// The times at which some are missing.
    pub gaps: u64,
    /// Frames that the mediator dropped: see `amber status`.
    pub dropped: u64,
    /// The first record, in nanoseconds since 1970.
    pub first_ns: Option<u64>,
    /// The last record, in nanoseconds since 1970.
    pub last_ns: Option<u64>,
}

impl Totals {
    /// Counts a record.
    pub fn note(&mut self, record: &Record<'_>) {
        self.first_ns.get_or_insert(record.time_ns);
        self.last_ns = Some(record.time_ns);
        match &record.what {
            What::Frame(frame) => {
                self.messages += 1;
                self.bytes += frame.message.len() as u64;
            }
            What::Gap(gap) => {
                self.gaps += 1;
                self.missing += gap.messages;
                self.missing_bytes += gap.bytes;
            }
            What::Dropped(dropped) => self.dropped += dropped.count,
            _ => {}
        }
    }

    /// This frame is a piece of a message.
    fn leave_out(&mut self, message: &[u8]) {
        self.messages -= 1;
        self.bytes -= message.len() as u64;
    }

    /// Both together: those of a file and of the next one.
    pub fn and(self, next: Self) -> Self {
        Self {
            messages: self.messages + next.messages,
            bytes: self.bytes + next.bytes,
            missing: self.missing + next.missing,
            missing_bytes: self.missing_bytes + next.missing_bytes,
            gaps: self.gaps + next.gaps,
            dropped: self.dropped + next.dropped,
            first_ns: self.first_ns.or(next.first_ns),
            last_ns: next.last_ns.or(self.last_ns),
        }
    }
}

/// A recording that is being written.
///
/// A recorder that is killed leaves a file without an index: see [`crate::recover`].
pub struct Recording<W> {
    writer: Writer<W>,
    schemas: Arc<Schemas>,
    devices: HashMap<DeviceType, (Descriptors, u16)>,
    unknown: Option<u16>,
    channels: HashMap<Key, FrameChannel, RandomState>,
    companion: Option<Box<dyn Companion>>,
    /// The schemas and channels of the companion.
    beside: (HashMap<&'static str, u16>, HashMap<String, u16>),
    /// The channels of carriers, and when the companion gets the next message of each.
    carriers: HashMap<Device, (u16, u64)>,
    /// The first messages of the companion: they get the time of the first record.
    beginning: Vec<Beside>,
    /// Messages of the companion for which there were too many channels.
    left_out: u64,
    facts: BTreeMap<&'static str, u16>,
    totals: Totals,
    known: Known,
    pieces: Pieces,
    ended: bool,
}

/// The key of the channel of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    device: Device,
    direction: Direction,
    dropped: bool,
    kind: Kind,
}

/// One number instead of seven: each frame is looked up.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (kind, number) = match self.kind {
            Kind::Field(number) => (0, number),
            Kind::Type(number) => (1, number.cast_unsigned()),
            Kind::Opaque => (2, 0),
        };
        let flags = kind | u32::from(self.dropped) << 2 | (self.direction as u32) << 3;
        let device = [self.device.device_type.0, self.device.id.0].map(i32::cast_unsigned);
        let parts = [device[0], device[1], number, flags];
        let packed = parts
            .iter()
            .fold(0, |packed, part| packed << 32 | u128::from(*part));
        state.write_u128(packed);
    }
}

impl Key {
    /// When a companion gets the first message of this kind; never if it does not read it.
    fn due_ns(self, companion: Option<&dyn Companion>) -> Option<u64> {
        let reads = companion.is_some_and(|it| it.reads(self.device));
        (self.is_said() && reads).then_some(0)
    }

    /// Whether a driver has sent it, and the mediator forwarded it.
    fn is_said(self) -> bool {
        self.direction == Direction::FromDriver && !self.dropped
    }

    /// Facts about its channel.
    fn about(self) -> BTreeMap<String, String> {
        let direction = match self.direction {
            Direction::ToDriver => "to driver",
            Direction::FromDriver => "from driver",
        };
        let about = [
            ("device", self.device.to_string()),
            ("device_type", self.device.device_type.0.to_string()),
            ("device_id", self.device.id.0.to_string()),
            ("direction", direction.to_owned()),
        ];
        about.map(|(key, value)| (key.to_owned(), value)).into()
    }
}

/// A channel of frames.
#[derive(Clone, Copy, Debug)]
struct FrameChannel {
    id: u16,
    form: Form,
    /// When the companion gets the next message; never if it does not read this channel.
    due_ns: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct PeerFact {
    #[prost(int32, optional, tag = "1")]
    id: Option<i32>,
    #[prost(string, optional, tag = "2")]
    address: Option<String>,
    #[prost(bool, optional, tag = "3")]
    gone: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
struct DroppedFact {
    #[prost(string, optional, tag = "1")]
    device: Option<String>,
    #[prost(string, optional, tag = "2")]
    reason: Option<String>,
    #[prost(uint64, optional, tag = "3")]
    count: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GapFact {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) first_ns: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) last_ns: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) messages: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) bytes: Option<u64>,
}

/// The kind of messages without a field of their device, such as pieces.
const DATA: Kind = Kind::Type(MsgType::Data as i32);

/// The topics about the recording itself begin with this.
pub(crate) const OWN_TOPICS: &str = "/amber/";

/// The topic of gaps.
pub(crate) const GAPS: &str = "/amber/gaps";

/// The metadata at the end of a recording.
pub(crate) const END: &str = "amber.end";

impl<W: Write> Recording<W> {
    /// Begins a file. `schemas` has the descriptions of devices that are not Amber's own.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(file: W, schemas: Arc<Schemas>) -> Result<Self, Error> {
        Self::with(file, schemas, Compression::None)
    }

    /// The same with compressed chunks (zstd).
    ///
    /// # Errors
    /// The file cannot be written.
    #[cfg(feature = "zstd")]
    pub fn compressed(file: W, schemas: Arc<Schemas>) -> Result<Self, Error> {
        Self::with(file, schemas, Compression::Zstd)
    }

    fn with(file: W, schemas: Arc<Schemas>, compression: Compression) -> Result<Self, Error> {
        Ok(Self {
            writer: Writer::new(file, compression)?,
            schemas,
            devices: HashMap::new(),
            unknown: None,
            channels: HashMap::default(),
            companion: None,
            beside: Default::default(),
            carriers: HashMap::new(),
            beginning: Vec::new(),
            left_out: 0,
            facts: BTreeMap::new(),
            totals: Totals::default(),
            known: Known::default(),
            pieces: Pieces::default(),
            ended: false,
        })
    }

    /// From now on also writes the messages of this companion into the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn accompany(&mut self, mut companion: Box<dyn Companion>) -> Result<(), Error> {
        self.beginning = companion.begin();
        for (key, channel) in &mut self.channels {
            channel.due_ns = key.due_ns(Some(&*companion));
        }
        self.companion = Some(companion);
        match self.totals.last_ns {
            Some(time_ns) => self.write_beginning(time_ns),
            None => Ok(()),
        }
    }

    fn write_beginning(&mut self, time_ns: u64) -> Result<(), Error> {
        let beginning = std::mem::take(&mut self.beginning);
        self.write_beside(time_ns, beginning)
    }

    /// Adds a record of the feed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, record: &Record<'_>) -> Result<(), Error> {
        let time_ns = record.time_ns;
        self.totals.note(record);
        self.known.note(&record.what);
        if !self.beginning.is_empty() {
            self.write_beginning(time_ns)?;
        }
        match &record.what {
            What::Start(version) => self.start(version),
            What::Frame(frame) => self.frame(time_ns, frame),
            What::Peer(id, address) => self.peer(time_ns, *id, Some(address)),
            What::PeerGone(id) => self.peer(time_ns, *id, None),
            What::Event(event) => {
                let channel = self.fact("/amber/events", Descriptors::events)?;
                self.write(channel, time_ns, event)?;
                let companion = self.companion.as_mut();
                let beside = companion.map(|it| it.event(time_ns, event));
                self.write_beside(time_ns, beside.unwrap_or_default())
            }
            What::Dropped(dropped) => self.dropped(time_ns, dropped),
            What::Gap(gap) => {
                self.pieces.forget();
                self.gap(time_ns, gap)
            }
            What::End => {
                self.ended = true;
                Ok(())
            }
            What::Unknown(_) => Ok(()),
        }
    }

    /// Writes buffered data, so that a reader has it even if this program is killed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.writer.flush()
    }

    /// The totals so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Whether the mediator has reported that nothing is missing at the end.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Writes the index. `goes_on` is the name of the next file of this recording, if there is
    /// one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self, goes_on: Option<&str>) -> Result<(Totals, W), Error> {
        let totals = self.totals;
        let complete = (self.ended || goes_on.is_some()) && totals.missing == 0;
        let mut facts = vec![
            ("complete", if complete { "yes" } else { "no" }.to_owned()),
            ("messages", totals.messages.to_string()),
            ("missing_messages", totals.missing.to_string()),
            ("missing_bytes", totals.missing_bytes.to_string()),
            ("gaps", totals.gaps.to_string()),
            ("dropped_by_mediator", totals.dropped.to_string()),
        ];
        if self.left_out > 0 {
            facts.push(("left_out_beside", self.left_out.to_string()));
        }
        if self.pieces.incomplete > 0 {
            facts.push(("incomplete", self.pieces.incomplete.to_string()));
        }
        facts.extend(goes_on.map(|file| ("next_file", file.to_owned())));
        if !self.ended && goes_on.is_none() {
            let why = "the connection to the mediator was lost";
            facts.push(("end", why.to_owned()));
        }
        self.metadata(END, facts)?;
        Ok((totals, self.writer.finish()?))
    }

    /// Finishes this file and continues in the next one, which knows the same peers.
    ///
    /// # Errors
    /// One of the files cannot be written.
    pub fn go_on(mut self, name: &str, next: W) -> Result<(Totals, W, Self), Error> {
        let compression = self.writer.compression();
        let companion = self.companion.take();
        // Their last pieces are in the next file.
        let pieces = self.pieces.take_unfinished();
        let (schemas, known) = (self.schemas.clone(), self.known.clone());
        let (totals, file) = self.finish(Some(name))?;
        let mut next = Self::with(next, schemas, compression)?;
        next.pieces = pieces;
        let records = known.records(totals.last_ns.unwrap_or_default());
        let mut rest = &records[..];
        while let Ok(Some((record, length))) = Record::parse(rest) {
            next.add(&record)?;
            rest = &rest[length..];
        }
        if let Some(companion) = companion {
            next.accompany(companion)?;
        }
        Ok((totals, file, next))
    }

    /// Adds facts about the recording.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add_facts(&mut self, name: &str, facts: Vec<(&str, String)>) -> Result<(), Error> {
        self.metadata(name, facts)
    }

    fn start(&mut self, version: &str) -> Result<(), Error> {
        let facts = vec![
            ("mediator_version", version.to_owned()),
            ("recorder_version", env!("CARGO_PKG_VERSION").to_owned()),
        ];
        self.metadata("amber.start", facts)
    }

    fn metadata(&mut self, name: &str, facts: Vec<(&str, String)>) -> Result<(), Error> {
        let facts = facts.into_iter();
        self.writer.add_metadata(&Metadata {
            name: name.to_owned(),
            metadata: facts.map(|(key, value)| (key.to_owned(), value)).collect(),
        })
    }

    fn frame(&mut self, time_ns: u64, frame: &Recorded<'_>) -> Result<(), Error> {
        let key = Key {
            device: frame.device,
            direction: frame.direction,
            dropped: !frame.dropped.is_empty(),
            kind: topic::kind_of(frame.message),
        };
        if key.kind == DATA && !key.dropped {
            match self.pieces.part(time_ns, frame) {
                Part::Whole => {}
                Part::Piece => {
                    self.totals.leave_out(frame.message);
                    return Ok(());
                }
                Part::Last(joined, clients) => {
                    self.totals.leave_out(frame.message);
                    self.totals.messages += 1;
                    self.totals.bytes += joined.message.len() as u64;
                    let kind = topic::kind_of(&joined.message);
                    let key = Key { kind, ..key };
                    return self.message(time_ns, key, clients.into_iter(), "", &joined.message);
                }
            }
        }
        self.message(time_ns, key, frame.clients(), frame.dropped, frame.message)
    }

    fn message(
        &mut self,
        time_ns: u64,
        key: Key,
        clients: impl Iterator<Item = ClientId> + Clone,
        dropped: &str,
        message: &[u8],
    ) -> Result<(), Error> {
        if let Some(carrier) = self.carrier(time_ns, key, message) {
            return self.carry(time_ns, key, clients, &carrier, message);
        }
        let FrameChannel { id, form, due_ns } = match self.channels.get(&key) {
            Some(known) => *known,
            None => self.new_channel(key)?,
        };
        self.writer.add(id, time_ns, |out| {
            payload::write(out, clients, dropped, form, message);
        })?;
        match due_ns {
            Some(due_ns) if due_ns <= time_ns => self.convert(time_ns, key, message),
            _ => Ok(()),
        }
    }

    /// What is written instead of a message.
    fn carrier(&mut self, time_ns: u64, key: Key, message: &[u8]) -> Option<Carrier> {
        let companion = self.companion.as_mut().filter(|_| key.is_said())?;
        if !companion.carries(key.device) {
            return None;
        }
        let is_known = self.carriers.contains_key(&key.device);
        let has_room = is_known || self.carriers.len() < limits::COMPANION_CHANNELS;
        match has_room {
            true => companion.carrier(time_ns, key.device, message),
            false => None,
        }
    }

    fn carry(
        &mut self,
        time_ns: u64,
        key: Key,
        clients: impl Iterator<Item = ClientId>,
        carrier: &Carrier,
        message: &[u8],
    ) -> Result<(), Error> {
        let (id, due_ns) = match self.carriers.get(&key.device) {
            Some(known) => *known,
            None => {
                let schema = self.schema_beside(carrier.schema, carrier.descriptors)?;
                let (topic, about) = (&carrier.topic, key.about());
                (
                    (self.writer).add_channel(schema, topic, PROTOBUF, &about)?,
                    0,
                )
            }
        };
        self.writer.add(id, time_ns, |out| {
            payload::write_carrier(out, clients, carrier, message);
        })?;
        if time_ns < due_ns {
            return Ok(());
        }
        let due_ns = time_ns + limits::COMPANION_PERIOD_NS;
        self.carriers.insert(key.device, (id, due_ns));
        let companion = self.companion.as_mut();
        let beside = companion.map(|it| it.message(time_ns, key.device, message));
        self.write_beside(time_ns, beside.unwrap_or_default())
    }

    /// Lets the companion have a message.
    fn convert(&mut self, time_ns: u64, key: Key, message: &[u8]) -> Result<(), Error> {
        if let Some(channel) = self.channels.get_mut(&key) {
            channel.due_ns = Some(time_ns + limits::COMPANION_PERIOD_NS);
        }
        let companion = self.companion.as_mut();
        let beside = companion.map(|it| it.message(time_ns, key.device, message));
        self.write_beside(time_ns, beside.unwrap_or_default())
    }

    fn write_beside(&mut self, time_ns: u64, all: Vec<Beside>) -> Result<(), Error> {
        for message in all {
            let (_, channels) = &self.beside;
            let channel = match channels.get(&message.topic) {
                Some(known) => *known,
                None if channels.len() >= limits::COMPANION_CHANNELS => {
                    self.left_out += 1;
                    continue;
                }
                None => {
                    let schema = self.schema_beside(message.schema, message.descriptors)?;
                    let none = BTreeMap::new();
                    let topic = &message.topic;
                    let id = (self.writer).add_channel(schema, topic, PROTOBUF, &none)?;
                    *self.beside.1.entry(message.topic).or_insert(id)
                }
            };
            self.write(channel, time_ns, &message.data)?;
        }
        Ok(())
    }

    fn schema_beside(&mut self, name: &'static str, set: &[u8]) -> Result<u16, Error> {
        let (schemas, _) = &mut self.beside;
        if let Some(known) = schemas.get(name) {
            return Ok(*known);
        }
        let made = self.writer.add_schema(name, PROTOBUF, set)?;
        schemas.insert(name, made);
        Ok(made)
    }

    fn write(&mut self, channel_id: u16, time_ns: u64, data: &[u8]) -> Result<(), Error> {
        (self.writer).add(channel_id, time_ns, |out| out.extend_from_slice(data))
    }

    fn new_channel(&mut self, key: Key) -> Result<FrameChannel, Error> {
        let Key {
            device,
            direction,
            dropped,
            kind,
        } = key;
        if self.channels.len() >= limits::CHANNELS {
            return self.other_channel();
        }
        let known = match self.devices.get(&device.device_type) {
            Some(known) => Some(known.clone()),
            None => self.new_device(device.device_type)?,
        };
        let name = known.as_ref().map(|(made, _)| made.device_name.clone());
        let name = name.unwrap_or_else(|| device.device_type.to_string());
        let what = known.as_ref().and_then(|(made, _)| match kind {
            Kind::Field(number) => Some(made.field_name(number)),
            Kind::Type(number) => Some(topic::type_name(number)),
            Kind::Opaque => None,
        });
        let (what, schema, form) = match (what, known) {
            (Some(what), Some((_, schema))) => (what, schema, Form::Fields),
            _ => ("message".to_owned(), self.unknown()?, Form::Opaque),
        };
        let topic = topic::name(device, &name, direction, dropped, &what);
        let id = (self.writer).add_channel(schema, &topic, PROTOBUF, &key.about())?;
        let due_ns = key.due_ns(self.companion.as_deref());
        let channel = FrameChannel { id, form, due_ns };
        self.channels.insert(key, channel);
        Ok(channel)
    }

    /// The channel of frames for which there are too many channels already.
    fn other_channel(&mut self) -> Result<FrameChannel, Error> {
        Ok(FrameChannel {
            id: self.fact("/amber/other", Descriptors::unknown)?,
            form: Form::Opaque,
            due_ns: None,
        })
    }

    fn new_device(&mut self, device_type: DeviceType) -> Result<Option<(Descriptors, u16)>, Error> {
        let Some(made) = Descriptors::of_device(&self.schemas, device_type) else {
            return Ok(None);
        };
        let id = self.writer.add_schema(&made.name, PROTOBUF, &made.set)?;
        self.devices.insert(device_type, (made.clone(), id));
        Ok(Some((made, id)))
    }

    fn unknown(&mut self) -> Result<u16, Error> {
        if let Some(known) = self.unknown {
            return Ok(known);
        }
        let made = Descriptors::unknown();
        let id = self.writer.add_schema(&made.name, PROTOBUF, &made.set)?;
        self.unknown = Some(id);
        Ok(id)
    }

    /// The channel of facts about the recording.
    fn fact(
        &mut self,
        topic: &'static str,
        descriptors: impl FnOnce() -> Descriptors,
    ) -> Result<u16, Error> {
        if let Some(known) = self.facts.get(topic) {
            return Ok(*known);
        }
        let made = descriptors();
        let schema = self.writer.add_schema(&made.name, PROTOBUF, &made.set)?;
        let none = BTreeMap::new();
        let id = (self.writer).add_channel(schema, topic, PROTOBUF, &none)?;
        self.facts.insert(topic, id);
        Ok(id)
    }

    fn peer(&mut self, time_ns: u64, id: ClientId, address: Option<&str>) -> Result<(), Error> {
        let fields = [
            ("id", Type::Int32),
            ("address", Type::String),
            ("gone", Type::Bool),
        ];
        let channel = self.fact("/amber/peers", || Descriptors::facts("peer", &fields))?;
        let fact = PeerFact {
            id: Some(id.0),
            address: address.map(str::to_owned),
            gone: Some(address.is_none()),
        };
        self.write(channel, time_ns, &fact.encode_to_vec())
    }

    fn dropped(&mut self, time_ns: u64, dropped: &Dropped<'_>) -> Result<(), Error> {
        let fields = [
            ("device", Type::String),
            ("reason", Type::String),
            ("count", Type::Uint64),
        ];
        let channel = self.fact("/amber/dropped", || Descriptors::facts("dropped", &fields))?;
        let fact = DroppedFact {
            device: dropped.device.map(|device| device.to_string()),
            reason: Some(dropped.reason.to_owned()),
            count: Some(dropped.count),
        };
        self.write(channel, time_ns, &fact.encode_to_vec())
    }

    fn gap(&mut self, time_ns: u64, gap: &Gap) -> Result<(), Error> {
        let channel = self.fact(GAPS, gaps)?;
        let fact = GapFact {
            first_ns: Some(gap.first_ns),
            last_ns: Some(gap.last_ns),
            messages: Some(gap.messages),
            bytes: Some(gap.bytes),
        };
        self.write(channel, time_ns, &fact.encode_to_vec())
    }
}

/// The schema of [`GAPS`].
pub(crate) fn gaps() -> Descriptors {
    let names = ["first_ns", "last_ns", "messages", "bytes"];
    Descriptors::facts("gap", &names.map(|name| (name, Type::Uint64)))
}
