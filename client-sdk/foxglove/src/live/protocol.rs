//! The Foxglove WebSocket protocol, as far as this server needs it. PURE.
//!
//! Texts are JSON objects with the kind in `op`. The server sends `serverInfo` and `advertise`, the
//! viewer `subscribe` and `unsubscribe`. Messages of channels are binary, and so are calls of services
//! and their answers.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::{Value, json};

/// The names of this protocol: that of Lichtblick and older versions of Foxglove, and the current
/// one of Foxglove. They differ in the name only.
pub(super) const NAMES: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];

/// The kind of a binary message with data of a channel.
const MESSAGE_DATA: u8 = 1;

/// The kind of a binary message of a viewer that calls a service.
const SERVICE_CALL: u8 = 2;

/// The kind of a binary message with the answer of a service.
const SERVICE_RESPONSE: u8 = 3;

/// The encoding of arguments and answers.
const JSON: &str = "json";

/// A message of a viewer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase")]
pub(super) enum Said {
    Subscribe {
        subscriptions: Vec<Subscription>,
    },
    #[serde(rename_all = "camelCase")]
    Unsubscribe {
        subscription_ids: Vec<u32>,
    },
    /// An operation that this server does not offer.
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Subscription {
    /// Chosen by the viewer.
    pub(super) id: u32,
    pub(super) channel_id: u32,
}

/// The severity of a [`status`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Warning = 1,
    Error = 2,
}

/// The first of these names that a viewer offers in `Sec-WebSocket-Protocol`.
pub(super) fn name<'a>(offered: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let mut offered = offered.flat_map(|list| list.split(',')).map(str::trim);
    offered.find_map(|it| NAMES.into_iter().find(|name| *name == it))
}

pub(super) fn server_info(session: &str, has_services: bool) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let (capabilities, encodings) = match has_services {
        true => (json!(["services"]), json!([JSON])),
        false => (json!([]), json!([])),
    };
    let info = json!({
        "op": "serverInfo", "name": format!("amber {version}"), "capabilities": capabilities,
        "supportedEncodings": encodings, "metadata": {}, "sessionId": session,
    });
    info.to_string()
}

pub(super) fn advertise(channels: impl Iterator<Item = Value>) -> String {
    json!({ "op": "advertise", "channels": channels.collect::<Vec<_>>() }).to_string()
}

/// One channel in [`advertise`]. The schema is a `FileDescriptorSet` in base64.
pub(super) fn channel(id: u32, topic: &str, schema_name: &str, schema: &str) -> Value {
    json!({
        "id": id, "topic": topic, "encoding": "protobuf", "schemaName": schema_name,
        "schema": schema, "schemaEncoding": "protobuf",
    })
}

pub(super) fn unadvertise(ids: &[u32]) -> String {
    json!({ "op": "unadvertise", "channelIds": ids }).to_string()
}

pub(super) fn advertise_services(services: impl Iterator<Item = Value>) -> String {
    json!({ "op": "advertiseServices", "services": services.collect::<Vec<_>>() }).to_string()
}

/// One service in [`advertise_services`], with the JSON schema of its arguments.
pub(super) fn service(id: u32, name: &str, kind: &str, request: &Value) -> Value {
    let of = |what: &str, schema: &Value| {
        json!({
            "encoding": JSON, "schemaName": format!("{kind}.{what}"),
            "schemaEncoding": "jsonschema", "schema": schema.to_string(),
        })
    };
    json!({
        "id": id, "name": name, "type": kind,
        "request": of("request", request), "response": of("response", &json!({ "type": "object" })),
    })
}

pub(super) fn unadvertise_services(ids: &[u32]) -> String {
    json!({ "op": "unadvertiseServices", "serviceIds": ids }).to_string()
}

/// A call of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) service: u32,
    /// Chosen by the viewer.
    pub(super) id: u32,
    /// The arguments as JSON; `None` if they have another encoding.
    pub(super) payload: Option<&'a [u8]>,
}

/// Reads a binary message of a viewer; `None` if it is not a call.
pub(super) fn call(bytes: &[u8]) -> Option<Call<'_>> {
    let (&SERVICE_CALL, rest) = bytes.split_first()? else {
        return None;
    };
    let (service, rest) = rest.split_first_chunk()?;
    let (id, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (encoding, payload) = rest.split_at_checked(length)?;
    Some(Call {
        service: u32::from_le_bytes(*service),
        id: u32::from_le_bytes(*id),
        payload: (encoding == JSON.as_bytes()).then_some(payload),
    })
}

pub(super) fn response(service: u32, call: u32, answer: &Value) -> Bytes {
    let answer = answer.to_string();
    let mut bytes = BytesMut::with_capacity(1 + 3 * 4 + JSON.len() + answer.len());
    bytes.put_u8(SERVICE_RESPONSE);
    bytes.put_u32_le(service);
    bytes.put_u32_le(call);
    bytes.put_u32_le(JSON.len() as u32);
    bytes.put_slice(JSON.as_bytes());
    bytes.put_slice(answer.as_bytes());
    bytes.freeze()
}

/// A call has failed.
pub(super) fn failure(service: u32, call: u32, why: &str) -> String {
    let op = "serviceCallFailure";
    json!({ "op": op, "serviceId": service, "callId": call, "message": why }).to_string()
}

pub(super) fn status(level: Level, message: &str) -> String {
    json!({ "op": "status", "level": level as u8, "message": message }).to_string()
}

/// A message of a channel.
pub(super) fn data(subscription_id: u32, time_ns: u64, message: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(1 + 4 + 8 + message.len());
    bytes.put_u8(MESSAGE_DATA);
    bytes.put_u32_le(subscription_id);
    bytes.put_u64_le(time_ns);
    bytes.put_slice(message);
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_known_name_is_chosen() {
        for (offered, expected) in [
            (
                &["foxglove.websocket.v1"][..],
                Some("foxglove.websocket.v1"),
            ),
            (
                &["foxglove.sdk.v1, foxglove.websocket.v1"],
                Some("foxglove.sdk.v1"),
            ),
            (
                &["x", "foxglove.websocket.v1"],
                Some("foxglove.websocket.v1"),
            ),
            (&["foxglove.websocket.v2"], None),
            (&[], None),
        ] {
            assert_eq!(name(offered.iter().copied()), expected, "{offered:?}");
        }
    }

    #[test]
    fn viewers_subscribe_and_unsubscribe() {
        let said = |text: &str| serde_json::from_str::<Said>(text).ok();
        assert_eq!(
            said(r#"{"op":"subscribe","subscriptions":[{"id":0,"channelId":3}]}"#),
            Some(Said::Subscribe {
                subscriptions: vec![Subscription {
                    id: 0,
                    channel_id: 3
                }]
            })
        );
        assert_eq!(
            said(r#"{"op":"unsubscribe","subscriptionIds":[0,1]}"#),
            Some(Said::Unsubscribe {
                subscription_ids: vec![0, 1]
            })
        );
        assert_eq!(
            said(r#"{"op":"getParameters","parameterNames":[]}"#),
            Some(Said::Other)
        );
        assert_eq!(said(r#"{"op":"subscribe"}"#), None);
        assert_eq!(said("hello"), None);
    }

    #[test]
    fn calls_are_read_and_answered() {
        let bytes = b"\x02\x05\0\0\0\x07\x01\0\0\x04\0\0\0json{}";
        let expected = Call {
            service: 5,
            id: 0x107,
            payload: Some(b"{}"),
        };
        assert_eq!(call(bytes), Some(expected));
        let other = b"\x02\x05\0\0\0\x07\0\0\0\x04\0\0\0ros1{}";
        assert_eq!(call(other).unwrap().payload, None);
        for end in 0..bytes.len() - 2 {
            assert_eq!(call(&bytes[..end]), None, "{end}");
        }
        assert_eq!(call(b"\x01\x05\0\0\0\x07\0\0\0\x04\0\0\0json{}"), None);
        assert_eq!(call(b"\x02\0\0\0\0\0\0\0\0\xff\xff\xff\xff"), None);
        assert_eq!(
            &response(5, 0x107, &json!({}))[..],
            b"\x03\x05\0\0\0\x07\x01\0\0\x04\0\0\0json{}"
        );
    }

    #[test]
    fn numbers_of_binary_messages_are_little_endian() {
        assert_eq!(
            &data(0x0102, 3, b"ab")[..],
            b"\x01\x02\x01\0\0\x03\0\0\0\0\0\0\0ab"
        );
    }
}
