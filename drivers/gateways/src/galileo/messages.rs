//! Messages of Amber's devices as JSON. PURE.
//!
//! ```text
//! {"synNum": 1, "currentSpeedRequest": true}      DATA, unless "type" says PING, SUBSCRIBE, ...
//! {"type": "DATA", "ackNum": 1, "currentSpeed": {"frontLeftSpeed": 0, ...}}
//! ```
//!
//! Fields have their names in the `.proto` files. Names such as `[amber.roboclaw_proto.motorsCommand]`
//! are also accepted.

use amber_proto::{DeviceType, MsgType};
use amber_reflect::Schemas;
use bytes::{Bytes, BytesMut};
use prost::encoding::{int32, uint32};
use serde_json::{Map, Value};

const TYPE: u32 = 2;
const SYN_NUM: u32 = 3;

/// Reads a message for a device. `None` if it is invalid.
#[must_use]
pub fn read(schemas: &Schemas, device_type: DeviceType, text: &[u8]) -> Option<Bytes> {
    let mut fields: Map<String, Value> = serde_json::from_slice(text).ok()?;
    let kind = match fields.remove("type") {
        None => MsgType::Data,
        Some(Value::String(name)) => MsgType::from_str_name(&name)?,
        Some(number) => MsgType::try_from(i32::try_from(number.as_i64()?).ok()?).ok()?,
    };
    let syn = match fields.remove("synNum") {
        None => None,
        Some(number) => Some(u32::try_from(number.as_u64()?).ok()?),
    };
    let plain = |(name, value): (String, Value)| {
        let inner = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        (inner.map(str::to_owned).unwrap_or(name), value)
    };
    let fields = fields.into_iter().map(plain).collect();
    let message = schemas.encode(device_type, &fields).ok()?;
    // Of two fields with the same number, the last counts.
    let mut message = BytesMut::from(&*message);
    int32::encode(TYPE, &kind.into(), &mut message);
    if let Some(syn) = syn {
        uint32::encode(SYN_NUM, &syn, &mut message);
    }
    Some(message.freeze())
}

/// Writes a message of a device. `None` if it is not a `DriverMsg`.
#[must_use]
pub fn write(schemas: &Schemas, device_type: DeviceType, message: &[u8]) -> Option<Vec<u8>> {
    let fields = schemas.for_device(Some(device_type)).values(message)?;
    Some(Value::Object(fields).to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use amber_proto::roboclaw::{DriverMsg, MotorsSpeed};
    use prost::Message;
    use serde_json::json;

    use super::*;

    fn read_roboclaw(text: &str) -> Option<DriverMsg> {
        let message = read(&Schemas::built_in(), DeviceType::ROBOCLAW, text.as_bytes())?;
        Some(DriverMsg::decode(message).unwrap())
    }

    #[test]
    fn json_becomes_a_message() {
        let asked = read_roboclaw(r#"{"synNum":7,"currentSpeedRequest":true}"#).unwrap();
        assert_eq!((asked.r#type, asked.syn_num), (Some(1), Some(7)));
        assert_eq!(asked.current_speed_request, Some(true));
        let speeds = r#"{"frontLeftSpeed":-300,"rearRightSpeed":5}"#;
        for name in ["motorsCommand", "[amber.roboclaw_proto.motorsCommand]"] {
            let command = read_roboclaw(&format!("{{\"{name}\":{speeds}}}")).unwrap();
            let expected = MotorsSpeed {
                front_left_speed: Some(-300),
                rear_right_speed: Some(5),
                ..MotorsSpeed::default()
            };
            assert_eq!(command.motors_command, Some(expected));
            assert_eq!(command.syn_num, None);
        }
        assert_eq!(
            read_roboclaw(r#"{"type":"SUBSCRIBE"}"#).unwrap().r#type,
            Some(6)
        );
        assert_eq!(
            read_roboclaw(r#"{"type":2,"synNum":1}"#).unwrap().r#type,
            Some(2)
        );
        for wrong in [
            "",
            "[]",
            r#"{"type":"DATUM"}"#,
            r#"{"synNum":-1}"#,
            r#"{"speed":1}"#,
        ] {
            assert_eq!(read_roboclaw(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_message_becomes_json() {
        let mut answer = DriverMsg {
            r#type: Some(1),
            ack_num: Some(7),
            ..DriverMsg::default()
        };
        answer.current_speed = Some(MotorsSpeed {
            front_left_speed: Some(299),
            ..MotorsSpeed::default()
        });
        let bytes = answer.encode_to_vec();
        let text = write(&Schemas::built_in(), DeviceType::ROBOCLAW, &bytes).unwrap();
        let value: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(value["type"], "DATA");
        assert_eq!(value["ackNum"], 7);
        assert_eq!(value["currentSpeed"], json!({ "frontLeftSpeed": 299 }));
        assert_eq!(
            write(&Schemas::built_in(), DeviceType::ROBOCLAW, b"\xff"),
            None
        );
    }
}
