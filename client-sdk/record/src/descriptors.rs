//! The schemas of recordings: the messages of each device as one message without extensions.
//! PURE.

use std::collections::BTreeSet;

use amber_proto::{DeviceType, pieces};
use amber_reflect::Schemas;
use prost::Message;
use prost_reflect::{DescriptorPool, ExtensionDescriptor, FileDescriptor, Kind as FieldKind};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FieldOptions, FileDescriptorProto};

use crate::payload::{FRAME, OPAQUE};

/// The package of these schemas.
pub(crate) const PACKAGE: &str = "amber.recorded";

/// The file that comes with Amber and has the outcome of requests to any device.
const COMMON: &str = "mediator.proto";

/// The file that comes with Amber and has the fields of any device that moves.
const MOTION: &str = "motion.proto";

/// Fields in [`COMMON`] and [`MOTION`] that messages of any device may have.
const OF_ANY_DEVICE: [u32; 9] = [184, 186, 187, 189, 193, 194, 195, 197, 198];

/// A schema with the names of the channels that use it.
#[derive(Clone, Debug, PartialEq)]
pub struct Descriptors {
    /// The full name of the message.
    pub name: String,
    /// A `google.protobuf.FileDescriptorSet` with the message and everything that it uses.
    pub set: Vec<u8>,
    /// The name of the device in topics.
    pub(crate) device_name: String,
    /// Number and name of each field of the device.
    pub(crate) fields: Vec<(u32, String)>,
}

impl Descriptors {
    /// The schema of a device; `None` if it has no description.
    pub fn of_device(schemas: &Schemas, device_type: DeviceType) -> Option<Self> {
        let interface = schemas.interface(device_type)?;
        let pool = schemas.for_device(Some(device_type)).pool();
        let base = pool.get_message_by_name("amber.DriverMsg")?;
        let mut fields = vec![frame_field()];
        for field in (base.fields()).filter(|field| !pieces::FIELDS.contains(&field.number())) {
            let mut field = field.field_descriptor_proto().clone();
            field.set_label(Label::Optional);
            fields.push(plain(field));
        }
        let is_own = |field: &ExtensionDescriptor| {
            let file = field.parent_file();
            let is_common =
                [COMMON, MOTION].contains(&file.name()) && OF_ANY_DEVICE.contains(&field.number());
            file.name() == interface.file || is_common
        };
        let mut extensions: Vec<_> = base.extensions().filter(is_own).collect();
        extensions.sort_by_key(ExtensionDescriptor::number);
        let mut files = vec![base.parent_file()];
        // With its service, so that a player can offer the description to its clients. Those of
        // Amber's own devices are known.
        let is_built_in = amber_reflect::built_in()
            .iter()
            .any(|it| it.device_type == device_type.0);
        files.extend(
            pool.get_file_by_name(&interface.file)
                .filter(|_| !is_built_in),
        );
        let mut names = Vec::new();
        for field in &extensions {
            names.push((field.number(), field.name().to_owned()));
            let mut plain = plain(field.field_descriptor_proto().clone());
            plain.extendee = None;
            match field.kind() {
                FieldKind::Message(message) => files.push(message.parent_file()),
                FieldKind::Enum(choices) => files.push(choices.parent_file()),
                _ => {}
            }
            fields.push(plain);
        }
        let message = DescriptorProto {
            name: Some(camel(&interface.name)),
            field: fields,
            nested_type: vec![frame_message()],
            ..DescriptorProto::default()
        };
        Some(Self {
            fields: names,
            ..build(&interface.name, message, files)
        })
    }

    /// The schema of devices without a description, and of messages that are not a `DriverMsg`.
    pub fn unknown() -> Self {
        let message = DescriptorProto {
            name: Some("Unknown".into()),
            field: vec![
                frame_field(),
                field("message", OPAQUE, Label::Optional, Type::Bytes),
            ],
            nested_type: vec![frame_message()],
            ..DescriptorProto::default()
        };
        build("unknown", message, Vec::new())
    }

    /// The schema of `/amber/events`.
    pub(crate) fn events() -> Self {
        let pool = amber_reflect::built_in_pool();
        let file = pool.get_file_by_name(COMMON);
        Self {
            name: "amber.mediator_proto.Event".into(),
            set: set_of(file.into_iter().collect(), None),
            device_name: String::new(),
            fields: Vec::new(),
        }
    }

    /// A schema for facts about the recording: names and types of its fields, with numbers from 1.
    pub(crate) fn facts(name: &str, fields: &[(&str, Type)]) -> Self {
        let fields = (1..).zip(fields);
        let fields =
            fields.map(|(number, (name, kind))| field(name, number, Label::Optional, *kind));
        let message = DescriptorProto {
            name: Some(camel(name)),
            field: fields.collect(),
            ..DescriptorProto::default()
        };
        build(name, message, Vec::new())
    }

    /// The name of a field of the device.
    pub(crate) fn field_name(&self, number: u32) -> String {
        let field = self.fields.iter().find(|(other, _)| *other == number);
        field.map_or_else(|| format!("field_{number}"), |(_, name)| name.clone())
    }

    /// The pool of these descriptors.
    ///
    /// # Errors
    /// See [`DescriptorPool::decode`].
    pub fn pool(&self) -> Result<DescriptorPool, prost_reflect::DescriptorError> {
        DescriptorPool::decode(&self.set[..])
    }
}

fn build(device_name: &str, message: DescriptorProto, uses: Vec<FileDescriptor>) -> Descriptors {
    let mut dependency: Vec<_> = uses.iter().map(|file| file.name().to_owned()).collect();
    dependency.sort();
    dependency.dedup();
    let name = format!("{PACKAGE}.{}", message.name());
    let file = FileDescriptorProto {
        name: Some(format!("amber/recorded/{device_name}.proto")),
        package: Some(PACKAGE.into()),
        dependency,
        message_type: vec![message],
        syntax: Some("proto2".into()),
        ..FileDescriptorProto::default()
    };
    Descriptors {
        name,
        set: set_of(uses, Some(&file)),
        device_name: device_name.to_owned(),
        fields: Vec::new(),
    }
}

/// A set of these files and all that they import, in an order in which each file comes after its
/// imports.
fn set_of(files: Vec<FileDescriptor>, last: Option<&FileDescriptorProto>) -> Vec<u8> {
    fn add(file: &FileDescriptor, seen: &mut BTreeSet<String>, set: &mut Vec<u8>) {
        if !seen.insert(file.name().to_owned()) {
            return;
        }
        for import in file.dependencies() {
            add(&import, seen, set);
        }
        // With the options that hold units, which prost_types would drop.
        prost::encoding::bytes::encode(1, &file.encode_to_vec(), set);
    }
    let (mut seen, mut set) = (BTreeSet::new(), Vec::new());
    for file in &files {
        add(file, &mut seen, &mut set);
    }
    if let Some(last) = last {
        prost::encoding::bytes::encode(1, &last.encode_to_vec(), &mut set);
    }
    set
}

/// A field without custom options, which would need more imports.
fn plain(mut field: FieldDescriptorProto) -> FieldDescriptorProto {
    let packed = field.options.as_ref().and_then(|options| options.packed);
    field.options = packed.map(|packed| FieldOptions {
        packed: Some(packed),
        ..FieldOptions::default()
    });
    field.oneof_index = None;
    field
}

fn field(name: &str, number: u32, label: Label, kind: Type) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.into()),
        number: Some(number as i32),
        label: Some(label.into()),
        r#type: Some(kind.into()),
        json_name: Some(name.into()),
        ..FieldDescriptorProto::default()
    }
}

fn frame_field() -> FieldDescriptorProto {
    FieldDescriptorProto {
        type_name: Some("Frame".into()),
        ..field("frame", FRAME, Label::Optional, Type::Message)
    }
}

/// See [`crate::Framing`].
fn frame_message() -> DescriptorProto {
    let clients = FieldDescriptorProto {
        options: Some(FieldOptions {
            packed: Some(true),
            ..FieldOptions::default()
        }),
        ..field("clients", 1, Label::Repeated, Type::Int32)
    };
    DescriptorProto {
        name: Some("Frame".into()),
        field: vec![clients, field("dropped", 2, Label::Optional, Type::String)],
        ..DescriptorProto::default()
    }
}

/// `drive-to-point` as `DriveToPoint`.
fn camel(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    words
        .map(|word| {
            let mut letters = word.chars();
            let first = letters.next().map(|letter| letter.to_ascii_uppercase());
            first.into_iter().chain(letters).collect::<String>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use amber_proto::{DeviceMessage, hokuyo};
    use prost_reflect::DynamicMessage;

    use super::*;

    #[test]
    fn every_device_has_a_schema_that_reads_its_messages() {
        let schemas = Schemas::built_in();
        for interface in amber_reflect::built_in() {
            let made = Descriptors::of_device(&schemas, DeviceType(interface.device_type));
            let made = made.unwrap();
            let pool = made.pool().unwrap();
            let message = pool.get_message_by_name(&made.name).unwrap();
            assert!(
                message.fields().len() >= 5 + made.fields.len(),
                "{}",
                made.name
            );
        }
        let unknown = Descriptors::unknown();
        assert!(
            unknown
                .pool()
                .unwrap()
                .get_message_by_name(&unknown.name)
                .is_some()
        );
        let events = Descriptors::events();
        assert!(
            events
                .pool()
                .unwrap()
                .get_message_by_name(&events.name)
                .is_some()
        );
    }

    #[test]
    fn the_fields_of_a_scan_are_named() {
        let made = Descriptors::of_device(&Schemas::built_in(), DeviceType::HOKUYO).unwrap();
        assert_eq!(made.name, "amber.recorded.Hokuyo");
        let mut message = hokuyo::DriverMsg::data();
        message.scan = Some(hokuyo::Scan {
            angles: vec![1.5],
            distances: vec![7],
        });
        let descriptor = made
            .pool()
            .unwrap()
            .get_message_by_name(&made.name)
            .unwrap();
        let read = DynamicMessage::decode(descriptor, &message.encode_to_vec()[..]).unwrap();
        assert_eq!(read.unknown_fields().count(), 0);
        let json = serde_json::to_value(&read).unwrap();
        assert_eq!(json["type"], "DATA");
        assert_eq!(json["scan"]["distances"][0], 7);
    }
}
