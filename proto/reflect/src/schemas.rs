//! Messages of any device by their schema, without a Rust type. PURE, except
//! for [`Schemas::with`], which reads files.

use std::path::PathBuf;

use amber_proto::{Device, DeviceType, Header, MsgType};
use amber_schema::Interface;
use prost::Message as _;
use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, ExtensionDescriptor, Kind, MessageDescriptor,
    Value as Field,
};
use serde_json::{Map, Value};

use crate::{Error, built_in, built_in_pool};

mod bytes;
mod files;

pub use bytes::MAX_DESCRIPTOR_BYTES;

/// The maximum number of list elements to show.
pub(crate) const MAX_SHOWN: usize = 8;

/// The most bytes of a field that are shown to people: more is a picture, or part of a message.
pub(crate) const MAX_SHOWN_BYTES: usize = 64;

/// Reads and writes `DriverMsg` with all known extensions.
#[derive(Clone, Debug)]
pub struct Schemas {
    pool: DescriptorPool,
    header: MessageDescriptor,
    message: MessageDescriptor,
    /// Users' devices that have a description. Each has its own pool, so two of them may
    /// use the same numbers.
    described: Vec<(Interface, Schemas)>,
    /// Whether there are files of users without a description. These share numbers.
    has_plain: bool,
}

impl Schemas {
    /// The schemas that come with Amber.
    pub fn built_in() -> Self {
        Self::of(built_in_pool().clone())
    }

    /// The schemas that come with Amber, and those of a user's own devices. A
    /// file may import `drivermsg.proto` and files in its own folder.
    ///
    /// # Errors
    /// A file cannot be read or compiled, or its description breaks a rule; the error says where
    /// and why.
    pub fn with(files: &[PathBuf]) -> Result<Self, Error> {
        if files.is_empty() {
            return Ok(Self::built_in());
        }
        let mut described = Vec::new();
        let mut plain = Vec::new();
        for file in files {
            let pool = files::pool(std::slice::from_ref(file))?;
            let interfaces = files::interfaces(&pool, file)?;
            if interfaces.is_empty() {
                plain.push(file.clone());
            }
            for interface in interfaces {
                described.push((interface, Self::of(pool.clone())));
            }
        }
        Ok(Self {
            described,
            has_plain: !plain.is_empty(),
            ..Self::of(files::pool(&plain)?)
        })
    }

    /// The schemas that come with Amber, and that of one device of a user, from a
    /// `FileDescriptorSet` as `protoc --descriptor_set_out` writes it. The set may lack the files
    /// that come with Amber and with protobuf.
    ///
    /// The bytes may come from anyone: they are limited in size ([`MAX_DESCRIPTOR_BYTES`]) and
    /// checked before they are used.
    ///
    /// # Errors
    /// The bytes are not such a set, describe no device, or break a rule of descriptions.
    pub fn from_descriptors(bytes: &[u8]) -> Result<Self, Error> {
        let (pool, interfaces) = bytes::read(bytes)?;
        let described = (interfaces.into_iter())
            .map(|interface| (interface, Self::of(pool.clone())))
            .collect();
        Ok(Self {
            described,
            ..Self::built_in()
        })
    }

    /// Adds the described devices of other schemas. For a device type that both describe, these
    /// here stay.
    pub fn add(&mut self, others: Self) {
        for (interface, schemas) in others.described {
            if !(self.described.iter()).any(|(it, _)| it.device_type == interface.device_type) {
                self.described.push((interface, schemas));
            }
        }
    }

    /// The schemas for the messages of a device. A single description also applies to a device
    /// without a type, and to a type without a description.
    pub fn for_device(&self, device_type: Option<DeviceType>) -> &Self {
        let named = device_type.is_some_and(|device_type| device_type.name().is_some());
        let of = |wanted: DeviceType| {
            (self.described.iter()).find(|(interface, _)| interface.device_type == wanted.0)
        };
        match (device_type.and_then(of), &self.described[..]) {
            (Some((_, found)), _) => found,
            (None, [(_, only)]) if !named && !self.has_plain => only,
            (None, _) => self,
        }
    }

    /// The description of a device type: that of a user, or else that of Amber.
    pub fn interface(&self, device_type: DeviceType) -> Option<&Interface> {
        self.own_interfaces()
            .chain(built_in())
            .find(|interface| interface.device_type == device_type.0)
    }

    /// The interfaces that users describe.
    pub fn own_interfaces(&self) -> impl Iterator<Item = &Interface> {
        self.described.iter().map(|(interface, _)| interface)
    }

    /// The device type that users' files describe, if it is one.
    pub fn described_type(&self) -> Option<DeviceType> {
        match &self.described[..] {
            [(interface, _)] => Some(DeviceType(interface.device_type)),
            _ => None,
        }
    }

    /// The descriptors, without those of described devices: see [`Schemas::for_device`].
    pub fn pool(&self) -> &DescriptorPool {
        &self.pool
    }

    fn of(pool: DescriptorPool) -> Self {
        let message = |name| {
            (pool.get_message_by_name(name)).expect("every pool here has the files of Amber")
        };
        Self {
            header: message("amber.DriverHdr"),
            message: message("amber.DriverMsg"),
            described: Vec::new(),
            has_plain: false,
            pool,
        }
    }

    pub(crate) fn header(&self) -> &MessageDescriptor {
        &self.header
    }

    pub(crate) fn message(&self) -> &MessageDescriptor {
        &self.message
    }

    /// The known extensions of a message by name; `None` if there are none.
    pub fn decode(&self, bytes: &[u8]) -> Option<Map<String, Value>> {
        self.decode_with(bytes, usize::MAX)
    }

    fn decode_with(&self, bytes: &[u8], longest: usize) -> Option<Map<String, Value>> {
        let message = DynamicMessage::decode(self.message.clone(), bytes).ok()?;
        let extensions = message.extensions();
        let fields: Map<_, _> = extensions
            .map(|(field, value)| {
                (
                    field.name().to_owned(),
                    value_of(&field.kind(), value, longest),
                )
            })
            .collect();
        (!fields.is_empty()).then_some(fields)
    }

    /// All fields of a message by name; `None` if it is not a `DriverMsg`.
    pub fn values(&self, bytes: &[u8]) -> Option<Map<String, Value>> {
        self.values_with(bytes, usize::MAX)
    }

    /// The same for people: of long data, such as a picture, only the number of bytes.
    pub fn brief_values(&self, bytes: &[u8]) -> Option<Map<String, Value>> {
        self.values_with(bytes, MAX_SHOWN_BYTES)
    }

    /// Data that is longer than `longest` is only counted.
    fn values_with(&self, bytes: &[u8], longest: usize) -> Option<Map<String, Value>> {
        let message = DynamicMessage::decode(self.message.clone(), bytes).ok()?;
        let base =
            (message.fields()).map(|(field, value)| (field.name().to_owned(), field.kind(), value));
        let extensions = (message.extensions())
            .map(|(field, value)| (field.name().to_owned(), field.kind(), value));
        let all = base.chain(extensions);
        Some(
            all.map(|(name, kind, value)| (name, value_of(&kind, value, longest)))
                .collect(),
        )
    }

    /// A DATA message from its extensions as JSON: the inverse. A name
    /// that several devices use means that of a user's own file, or else that
    /// of the device which is asked; `package.name` leaves no doubt.
    ///
    /// # Errors
    /// A name that no schema has, or a value that does not fit.
    pub fn encode(&self, asked: DeviceType, fields: &Map<String, Value>) -> Result<Vec<u8>, Error> {
        let descriptor = &self.for_device(Some(asked)).message;
        let mut message = DynamicMessage::new(descriptor.clone());
        message.set_field_by_name("type", Field::EnumNumber(MsgType::Data.into()));
        for (name, value) in fields {
            let known = descriptor.extensions();
            let known = known.filter(|field| field.name() == name || field.full_name() == name);
            let likely = |field: &ExtensionDescriptor| match owner(field.package_name()) {
                None => 0,
                Some(ours) if Some(ours) == module(asked).as_deref() => 1,
                Some(_) => 2,
            };
            let field = known.min_by_key(likely).ok_or_else(|| {
                let names: Vec<_> = descriptor
                    .extensions()
                    .map(|f| f.name().to_owned())
                    .collect();
                let near = names
                    .iter()
                    .min_by_key(|known| strsim::damerau_levenshtein(name, known));
                let failure = Error::new(format!("unknown field '{name}'"));
                match near {
                    Some(near) => failure.hint(format!(
                        "did you mean '{near}'? `--proto FILE` adds the fields of your own device"
                    )),
                    None => failure,
                }
            })?;
            let full = format!("[{}]", field.full_name());
            let json = Value::Object(Map::from_iter([(full, value.clone())]));
            let read = DynamicMessage::deserialize(descriptor.clone(), json).map_err(|error| {
                Error::new(format!("{name}: {error}")).hint("write values as in JSON")
            })?;
            message.set_extension(&field, read.get_extension(&field).into_owned());
        }
        Ok(message.encode_to_vec())
    }

    /// The names of the fields of a device, in the order of their numbers, and those
    /// in users' files without a description, which name no device type.
    pub fn fields(&self, asked: DeviceType) -> Vec<String> {
        let wanted =
            |package: &str| owner(package).is_none_or(|it| module(asked).as_deref() == Some(it));
        let message = &self.for_device(Some(asked)).message;
        let mut fields: Vec<_> = (message.extensions())
            .filter(|field| wanted(field.package_name()))
            .map(|field| (field.number(), field.name().to_owned()))
            .collect();
        fields.sort();
        fields.into_iter().map(|(_, name)| name).collect()
    }

    /// A frame in one line: device or clients, type, and the fields of the device.
    pub fn brief(&self, header: &[u8], message: &[u8]) -> String {
        let parsed = Header::parse(header);
        let device_type = parsed.as_ref().ok().and_then(|header| header.device_type);
        let who = match parsed {
            Ok(header) => addressee(&header),
            Err(error) => format!("invalid header ({error})"),
        };
        format!(
            "{who}  {}",
            self.for_device(device_type).brief_message(message)
        )
    }

    /// A message in one line.
    pub fn brief_message(&self, message: &[u8]) -> String {
        let Ok(base) = amber_proto::dummy::DriverMsg::decode(message) else {
            let hex = crate::explain::spaced(message, 16);
            return format!("{} bytes, not a DriverMsg: {hex}", message.len());
        };
        let mut out = match base.r#type {
            None => "no type".to_owned(),
            Some(number) => match MsgType::try_from(number) {
                Ok(kind) => kind.as_str_name().to_owned(),
                Err(_) => format!("type {number}"),
            },
        };
        for (name, number) in [("synNum", base.syn_num), ("ackNum", base.ack_num)] {
            if let Some(number) = number {
                out += &format!(" {name} {number}");
            }
        }
        let pieces = amber_proto::DriverMsg::decode(message)
            .ok()
            .and_then(pieces);
        match (pieces, self.decode_with(message, MAX_SHOWN_BYTES)) {
            (Some(text), _) => format!("{out}  {text}"),
            (None, Some(fields)) => format!("{out}  {}", human(&fields)),
            (None, None) => out,
        }
    }
}

/// What a message says about the pieces of a longer one. What a client joins is in most requests, and
/// tells nothing about them.
fn pieces(message: amber_proto::DriverMsg) -> Option<String> {
    if let Some(piece) = message.piece {
        let (bytes, number) = (piece.data().len(), piece.message());
        let position = u64::from(piece.index()) + 1;
        let count = piece.count();
        return Some(format!(
            "piece {position} of {count} of message {number}, {bytes} bytes"
        ));
    }
    if let Some(call) = message.missing {
        let (count, number) = (call.index.len(), call.message());
        return Some(format!("{count} pieces of message {number} are missing"));
    }
    let receipt = message.receipt?;
    let (upto, number) = (receipt.upto(), receipt.message());
    Some(format!("{upto} pieces of message {number} have arrived"))
}

/// The device of a package of Amber; `None` for a user's own package.
fn owner(package: &str) -> Option<&str> {
    package.strip_prefix("amber.")?.strip_suffix("_proto")
}

/// The name of a device in the packages of Amber.
fn module(device_type: DeviceType) -> Option<String> {
    device_type.name().map(|name| name.replace('-', "_"))
}

fn addressee(header: &Header<'_>) -> String {
    let mut out = Vec::new();
    match (header.device_type, header.device_id) {
        (Some(kind), Some(id)) => out.push(
            Device {
                device_type: kind,
                id,
            }
            .to_string(),
        ),
        (Some(kind), None) => out.push(format!("{kind} without deviceID")),
        (None, Some(id)) => out.push(format!("deviceID {id} without deviceType")),
        (None, None) => {}
    }
    if header.has_clients() {
        let ids: Vec<_> = header
            .client_ids()
            .take(MAX_SHOWN)
            .map(|id| id.to_string())
            .collect();
        let more = header.client_ids().count().saturating_sub(MAX_SHOWN);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        out.push(format!("clients [{}{more}]", ids.join(", ")));
    }
    match out.is_empty() {
        true => "empty header".into(),
        false => out.join(" "),
    }
}

/// `name: value` for each field, with shortened lists.
pub fn human(fields: &Map<String, Value>) -> String {
    let fields = fields
        .iter()
        .map(|(name, value)| format!("{name}: {}", short(value)));
    fields.collect::<Vec<_>>().join("  ")
}

/// Two digits per byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn short(value: &Value) -> String {
    match value {
        Value::Array(all) => {
            let shown: Vec<_> = all.iter().take(MAX_SHOWN).map(short).collect();
            match all.len() {
                0..=MAX_SHOWN => format!("[{}]", shown.join(", ")),
                many => format!("[{}, ... {many} in total]", shown.join(", ")),
            }
        }
        Value::Object(fields) => format!("{{ {} }}", human(fields)),
        other => other.to_string(),
    }
}

fn value_of(kind: &Kind, field: &Field, longest: usize) -> Value {
    match field {
        Field::Bool(value) => (*value).into(),
        Field::I32(value) => (*value).into(),
        Field::I64(value) => (*value).into(),
        Field::U32(value) => (*value).into(),
        Field::U64(value) => (*value).into(),
        Field::F32(value) => (*value).into(),
        Field::F64(value) => (*value).into(),
        Field::String(value) => value.clone().into(),
        Field::Bytes(value) if value.len() > longest => format!("<{} bytes>", value.len()).into(),
        Field::Bytes(value) => hex(value).into(),
        Field::EnumNumber(value) => match kind.as_enum().and_then(|names| name_of(names, *value)) {
            Some(name) => name.into(),
            None => (*value).into(),
        },
        Field::Message(message) => {
            let fields = message.fields();
            Value::Object(
                fields
                    .map(|(field, value)| {
                        (
                            field.name().to_owned(),
                            value_of(&field.kind(), value, longest),
                        )
                    })
                    .collect(),
            )
        }
        Field::List(list) => (list.iter())
            .map(|value| value_of(kind, value, longest))
            .collect(),
        // Our schemas have no maps.
        Field::Map(_) => Value::Null,
    }
}

fn name_of(names: &EnumDescriptor, number: i32) -> Option<String> {
    names.get_value(number).map(|value| value.name().to_owned())
}

#[cfg(test)]
mod tests {
    use amber_proto::{DeviceMessage, dummy, hokuyo};
    use prost::Message;

    use super::*;

    fn decoded(bytes: &[u8]) -> Option<String> {
        Schemas::built_in()
            .decode(bytes)
            .map(|fields| human(&fields))
    }

    #[test]
    fn a_message_of_dummy_is_shown_by_name() {
        let message = dummy::DriverMsg {
            message: Some("Response 12".into()),
            ack_num: Some(0),
            ..dummy::DriverMsg::data()
        };
        let shown = decoded(&message.encode_to_vec());
        assert_eq!(shown.as_deref(), Some("message: \"Response 12\""));
    }

    #[test]
    fn long_lists_are_cut_short() {
        let message = hokuyo::DriverMsg {
            scan: Some(hokuyo::Scan {
                distances: (0..20).collect(),
                ..Default::default()
            }),
            ..hokuyo::DriverMsg::data()
        };
        let shown = decoded(&message.encode_to_vec()).unwrap();
        assert!(
            shown.contains("distances: [0, 1, 2, 3, 4, 5, 6, 7, ... 20 in total]"),
            "{shown}"
        );
    }

    #[test]
    fn a_field_name_in_many_files_means_the_users_file_or_the_device() {
        let folder = std::env::temp_dir().join(format!("amber-names-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("wheel.proto");
        let schema = "syntax = \"proto2\";\npackage wheel;\nimport \"drivermsg.proto\";\n\
                      extend amber.DriverMsg { optional bool get_status = 111; }\n";
        std::fs::write(&file, schema).unwrap();
        let own = Schemas::with(&[file]).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let ours = Schemas::built_in();
        let encoded = |schemas: &Schemas, asked, name: &str, value: Value| {
            let fields = Map::from_iter([(name.to_owned(), value)]);
            hex(&schemas.encode(asked, &fields).unwrap())
        };
        let user = DeviceType(201);
        for (schemas, asked, name, value, bytes) in [
            (&ours, user, "get_status", true.into(), "1001a00301"),
            (&own, user, "get_status", true.into(), "1001f80601"),
            (
                &own,
                DeviceType::DUMMY,
                "get_status",
                true.into(),
                "1001f80601",
            ),
            (
                &own,
                user,
                "amber.dummy_proto.get_status",
                true.into(),
                "1001a00301",
            ),
            (
                &ours,
                DeviceType::NINEDOF,
                "dataRequest",
                Map::new().into(),
                "10015a00",
            ),
            (
                &ours,
                DeviceType::DRIVE_TO_POINT,
                "setTargets",
                true.into(),
                "1001800501",
            ),
            (
                &ours,
                DeviceType::PID_FOLLOW_TRAJECTORY,
                "setTargets",
                true.into(),
                "1001a00601",
            ),
        ] {
            assert_eq!(
                encoded(schemas, asked, name, value),
                bytes,
                "{name} of {asked}"
            );
        }
    }

    #[test]
    fn pictures_are_shown_without_their_data() {
        let mut message = amber_proto::camera::DriverMsg::data();
        message.picture = Some(amber_proto::camera::Picture {
            data: Some(vec![0xff; 1000].into()),
            sequence: Some(7),
            ..amber_proto::camera::Picture::default()
        });
        let bytes = message.encode_to_vec();
        let schemas = Schemas::built_in();
        let line = schemas.brief_message(&bytes);
        assert_eq!(
            line,
            "DATA  picture: { data: \"<1000 bytes>\"  sequence: 7 }"
        );
        let brief = schemas.brief_values(&bytes).unwrap();
        assert_eq!(brief["picture"]["data"], "<1000 bytes>");
        // Programs get everything.
        let whole = schemas.values(&bytes).unwrap();
        assert_eq!(whole["picture"]["data"], hex(&[0xff; 1000]));
    }

    #[test]
    fn pieces_are_shown_without_their_data() {
        let table = [
            (
                &b"\x10\x01\x32\x0a\x08\x07\x10\x02\x18\x09\x22\x02hi"[..],
                "DATA  piece 3 of 9 of message 7, 2 bytes",
            ),
            (
                b"\x10\x01\x3a\x06\x08\x07\x12\x02\x01\x03",
                "DATA  2 pieces of message 7 are missing",
            ),
            (
                b"\x10\x01\x42\x04\x08\x07\x10\x05",
                "DATA  5 pieces of message 7 have arrived",
            ),
            (b"\x10\x06\x18\x01\x4a\0", "SUBSCRIBE synNum 1"),
        ];
        for (message, text) in table {
            assert_eq!(Schemas::built_in().brief_message(message), text);
        }
    }

    #[test]
    fn messages_without_a_schema_are_not_decoded() {
        assert_eq!(decoded(b"\x10\x01\x20\0"), None);
        assert_eq!(decoded(b"\xff\xff"), None);
    }
}
