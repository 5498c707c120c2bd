//! The Foxglove WebSocket protocol, as far as a server that only shows needs it. PURE.
//!
//! Texts are JSON objects with the kind in `op`. The server says `serverInfo` and `advertise`, the
//! viewer `subscribe` and `unsubscribe`. Messages of channels are binary.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use serde_json::{Value, json};

/// The names of this protocol: that of Lichtblick and older versions of Foxglove, and the present
/// one of Foxglove. They differ in the name only.
pub(super) const NAMES: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];

/// The kind of a binary message with data of a channel.
const MESSAGE_DATA: u8 = 1;

/// What a viewer says.
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
    /// Something for which this server has not said that it is able to.
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

/// How serious a [`status`] is.
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

pub(super) fn server_info(session: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let info = json!({
        "op": "serverInfo", "name": format!("amber {version}"), "capabilities": [],
        "metadata": {}, "sessionId": session,
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
    fn numbers_of_binary_messages_are_little_endian() {
        assert_eq!(
            &data(0x0102, 3, b"ab")[..],
            b"\x01\x02\x01\0\0\x03\0\0\0\0\0\0\0ab"
        );
    }
}
