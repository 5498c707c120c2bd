//! Messages of any device by their schema, without knowing the type. PURE.

use amber_proto::DESCRIPTORS;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, Value as Field};
use serde_json::{Map, Value};

use super::Failure;

/// How many elements of a list people are shown.
const MAX_SHOWN: usize = 8;

/// Decodes `DriverMsg` with every extension that there is.
pub(super) struct Schemas {
    driver_msg: MessageDescriptor,
}

impl Schemas {
    pub(super) fn load() -> Result<Self, Failure> {
        let broken = || Failure::new("the schemas in this program are broken");
        let pool = DescriptorPool::decode(DESCRIPTORS).map_err(|_| broken())?;
        let driver_msg = pool
            .get_message_by_name("amber.DriverMsg")
            .ok_or_else(broken)?;
        Ok(Self { driver_msg })
    }

    /// The extensions of a message by name; `None` when it has none that is known.
    pub(super) fn decode(&self, bytes: &[u8]) -> Option<Map<String, Value>> {
        let message = DynamicMessage::decode(self.driver_msg.clone(), bytes).ok()?;
        let extensions = message.extensions();
        let fields: Map<_, _> = extensions
            .map(|(field, value)| (field.name().to_owned(), value_of(value)))
            .collect();
        (!fields.is_empty()).then_some(fields)
    }
}

/// `name: value` for each field, lists cut short.
pub(super) fn human(fields: &Map<String, Value>) -> String {
    let fields = fields
        .iter()
        .map(|(name, value)| format!("{name}: {}", short(value)));
    fields.collect::<Vec<_>>().join("  ")
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn short(value: &Value) -> String {
    match value {
        Value::Array(all) => {
            let shown: Vec<_> = all.iter().take(MAX_SHOWN).map(short).collect();
            match all.len() {
                0..=MAX_SHOWN => format!("[{}]", shown.join(", ")),
                many => format!("[{}, ... {many} in all]", shown.join(", ")),
            }
        }
        Value::Object(fields) => format!("{{ {} }}", human(fields)),
        other => other.to_string(),
    }
}

fn value_of(field: &Field) -> Value {
    match field {
        Field::Bool(value) => (*value).into(),
        Field::I32(value) => (*value).into(),
        Field::I64(value) => (*value).into(),
        Field::U32(value) => (*value).into(),
        Field::U64(value) => (*value).into(),
        Field::F32(value) => (*value).into(),
        Field::F64(value) => (*value).into(),
        Field::String(value) => value.clone().into(),
        Field::Bytes(value) => hex(value).into(),
        Field::EnumNumber(value) => (*value).into(),
        Field::Message(message) => {
            let fields = message.fields();
            Value::Object(
                fields
                    .map(|(field, value)| (field.name().to_owned(), value_of(value)))
                    .collect(),
            )
        }
        Field::List(list) => list.iter().map(value_of).collect(),
        // Maps are a thing of proto3, and none of our schemas has one.
        Field::Map(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::{DeviceMessage, dummy, hokuyo};
    use prost::Message;

    use super::*;

    fn decoded(bytes: &[u8]) -> Option<String> {
        Schemas::load()
            .unwrap()
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
            shown.contains("distances: [0, 1, 2, 3, 4, 5, 6, 7, ... 20 in all]"),
            "{shown}"
        );
    }

    #[test]
    fn what_has_no_schema_is_not_decoded() {
        assert_eq!(decoded(b"\x10\x01\x20\0"), None);
        assert_eq!(decoded(b"\xff\xff"), None);
    }
}
