//! JSON text to operations and back. PURE.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::shared::json::depth as json_depth;

/// The longest text that is accepted, in bytes. The longest useful one, a goal or a call with
/// arguments, has less than 2 kB.
pub const MAX_TEXT: usize = 64 * 1024;
/// The longest name of a topic, service or type, and the longest `id`, in bytes.
pub const MAX_NAME: usize = 256;
/// The maximum nesting of arrays and objects. A `PoseWithCovarianceStamped` in a `publish` has 6.
const MAX_DEPTH: usize = 16;

/// An operation of a client.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Request {
    /// The client will publish on a topic.
    Advertise(Advertise),
    /// The client will no longer publish on a topic.
    Unadvertise(Topic),
    /// A message for the robot.
    Publish(Publish),
    /// Send the messages of a topic to the client.
    Subscribe(Subscribe),
    /// Stop sending them.
    Unsubscribe(Topic),
    CallService(CallService),
    SendActionGoal(SendActionGoal),
    /// The end of a goal, before its result.
    CancelActionGoal(CancelActionGoal),
    /// Send only messages about problems of at least this level. The protocol's description calls
    /// the operation `set_level`, its list of operations `set_status_level`.
    #[serde(alias = "set_status_level")]
    SetLevel(SetLevel),
    /// An operation that this server does not offer.
    #[serde(skip)]
    Unsupported {
        /// Its name.
        op: String,
        /// The `id` of the interaction.
        id: Option<Id>,
    },
}

/// Names an interaction; answers and problems carry it.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Id {
    /// As the client libraries write it.
    Text(String),
    /// As some hand-written clients do.
    Number(i64),
}

/// See [`Request::Advertise`].
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Advertise {
    /// The interaction.
    pub id: Option<Id>,
    /// The name of the topic.
    pub topic: String,
    /// The type of its messages, as ROS 1 or ROS 2 writes it.
    #[serde(rename = "type")]
    pub kind: String,
}

/// See [`Request::Unadvertise`] and [`Request::Unsubscribe`].
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Topic {
    /// With an `id`, only the interaction with this `id` ends; without it, all of the topic.
    pub id: Option<Id>,
    /// The name of the topic.
    pub topic: String,
}

/// See [`Request::Publish`].
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Publish {
    /// The interaction.
    pub id: Option<Id>,
    /// The name of the topic.
    pub topic: String,
    /// The message.
    #[serde(default)]
    pub msg: Value,
}

/// See [`Request::Subscribe`].
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Subscribe {
    /// The interaction.
    pub id: Option<Id>,
    /// The name of the topic.
    pub topic: String,
    /// The type of its messages, if the client states it.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The least time between two messages in milliseconds.
    #[serde(default, deserialize_with = "count")]
    pub throttle_rate: u32,
    /// The number of messages that wait for their time. With 0, only the newest one waits.
    #[serde(default, deserialize_with = "count")]
    pub queue_length: u32,
    /// The encoding: see [`Form`](super::published::Form). This server does not offer all.
    pub compression: Option<String>,
}

/// See [`Request::CallService`].
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct CallService {
    /// The interaction; the response carries it.
    pub id: Option<Id>,
    /// The name of the service.
    pub service: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Value,
}

/// See [`Request::SendActionGoal`].
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct SendActionGoal {
    /// The goal; feedback and result carry it.
    pub id: Option<Id>,
    /// The name of the action.
    pub action: String,
    /// Its type, as ROS 2 writes it.
    pub action_type: String,
    /// The goal itself.
    #[serde(default)]
    pub args: Value,
    /// Whether the client wants feedback.
    #[serde(default)]
    pub feedback: bool,
}

/// See [`Request::CancelActionGoal`].
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct CancelActionGoal {
    /// That of the goal.
    pub id: Option<Id>,
    /// The name of the action.
    pub action: String,
}

/// See [`Request::SetLevel`].
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct SetLevel {
    /// The interaction.
    pub id: Option<Id>,
    /// The least level.
    pub level: Level,
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Information.
    Info,
    /// Something is done differently than requested.
    Warning,
    /// Something is not done.
    Error,
    /// Nothing at all.
    None,
}

/// An operation of the server, except for messages: see [`published`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Response {
    /// The answer to a call.
    ServiceResponse {
        /// That of the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Id>,
        /// The name of the service.
        service: String,
        /// The values of the service; the text of an error if `result` is false.
        values: Value,
        /// Whether the call succeeded.
        result: bool,
    },
    /// The progress of a goal.
    ActionFeedback {
        /// That of the goal.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Id>,
        /// The name of the action.
        action: String,
        /// The feedback of the action.
        values: Value,
    },
    /// The end of a goal.
    ActionResult {
        /// That of the goal.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Id>,
        /// The name of the action.
        action: String,
        /// The result of the action; the text of an error if `result` is false.
        values: Value,
        /// A state of `action_msgs/GoalStatus`.
        status: u8,
        /// Whether there is a result: the goal was accepted.
        result: bool,
    },
    /// A problem with an operation of the client.
    Status {
        /// That of the operation.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Id>,
        /// Its severity.
        level: Level,
        /// A text for people.
        msg: String,
    },
}

/// The reason why a text is not an operation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Malformed {
    /// It is not UTF-8, such as a compressed message.
    NotText,
    /// It has more than [`MAX_TEXT`] bytes.
    TooLong,
    /// Its arrays and objects are nested too deeply.
    TooDeep,
    /// It is not a JSON object with a text in `op`.
    NoOperation,
    /// An argument is missing or has the wrong type.
    BadArgument,
    /// A name or an `id` has more than [`MAX_NAME`] bytes.
    LongName,
}

impl Malformed {
    /// The reason, for counters and people.
    pub fn text(self) -> &'static str {
        match self {
            Self::NotText => "message is not a text in UTF-8",
            Self::TooLong => "text longer than 64 kB",
            Self::TooDeep => "JSON nested deeper than 16 levels",
            Self::NoOperation => "not a JSON object with a string \"op\"",
            Self::BadArgument => "an argument is missing or has the wrong type",
            Self::LongName => "a name or id longer than 256 bytes",
        }
    }
}

/// Reads an operation of a client: JSON in UTF-8.
///
/// # Errors
/// It is not an operation, or exceeds a limit.
pub fn read(bytes: &[u8]) -> Result<Request, Malformed> {
    #[derive(Deserialize)]
    struct Any {
        op: String,
        id: Option<Id>,
    }

    if bytes.len() > MAX_TEXT {
        return Err(Malformed::TooLong);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Malformed::NotText)?;
    if json_depth(bytes) > MAX_DEPTH {
        return Err(Malformed::TooDeep);
    }
    let Any { op, id } = serde_json::from_str(text).map_err(|_| Malformed::NoOperation)?;
    let request = match op.as_str() {
        "advertise" | "unadvertise" | "publish" | "subscribe" | "unsubscribe" | "call_service"
        | "set_level" | "set_status_level" | "send_action_goal" | "cancel_action_goal" => {
            serde_json::from_str(text).map_err(|_| Malformed::BadArgument)?
        }
        _ => Request::Unsupported { op, id },
    };
    if request.names().any(|name| name.len() > MAX_NAME) {
        return Err(Malformed::LongName);
    }
    Ok(request)
}

impl Request {
    fn names(&self) -> impl Iterator<Item = &str> {
        let (id, names) = match self {
            Self::Advertise(it) => (&it.id, [Some(&it.topic), Some(&it.kind)]),
            Self::Unadvertise(it) | Self::Unsubscribe(it) => (&it.id, [Some(&it.topic), None]),
            Self::Publish(it) => (&it.id, [Some(&it.topic), None]),
            Self::Subscribe(it) => (&it.id, [Some(&it.topic), it.kind.as_ref()]),
            Self::CallService(it) => (&it.id, [Some(&it.service), None]),
            Self::SendActionGoal(it) => (&it.id, [Some(&it.action), Some(&it.action_type)]),
            Self::CancelActionGoal(it) => (&it.id, [Some(&it.action), None]),
            Self::SetLevel(it) => (&it.id, [None, None]),
            Self::Unsupported { op, id } => (id, [Some(op), None]),
        };
        let id = match id {
            Some(Id::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let names = names.into_iter().flatten().map(String::as_str);
        names.chain(id)
    }
}

impl Response {
    /// The JSON text.
    pub fn text(&self) -> String {
        // Maps have text keys, and JSON values have no special numbers: nothing can fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The text that carries a message of the topic `name`. The message is JSON already, because several
/// clients get the same one.
pub fn published(name: &str, message: &str) -> String {
    let name = Value::from(name);
    format!(r#"{{"op":"publish","topic":{name},"msg":{message}}}"#)
}

/// A number of milliseconds or messages: some clients send 100.0, `null` means 0.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = Option::<f64>::deserialize(deserializer)?.unwrap_or(0.0);
    // Casts from floating point saturate.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    if number >= 0.0 {
        Ok(number as u32)
    } else {
        Err(serde::de::Error::custom("negative"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn id(text: &str) -> Option<Id> {
        Some(Id::Text(text.into()))
    }

    #[test]
    fn operations_as_the_client_libraries_write_them_are_read() {
        let cases = [
            (
                r#"{"op":"advertise","id":"advertise:/cmd_vel:1","type":"geometry_msgs/Twist","topic":"/cmd_vel","latch":false,"queue_size":100}"#,
                Request::Advertise(Advertise {
                    id: id("advertise:/cmd_vel:1"),
                    topic: "/cmd_vel".into(),
                    kind: "geometry_msgs/Twist".into(),
                }),
            ),
            (
                r#"{"op":"publish","id":"publish:/cmd_vel:2","topic":"/cmd_vel","msg":{"linear":{"x":0.1}},"latch":false}"#,
                Request::Publish(Publish {
                    id: id("publish:/cmd_vel:2"),
                    topic: "/cmd_vel".into(),
                    msg: json!({"linear": {"x": 0.1}}),
                }),
            ),
            (
                r#"{"op":"subscribe","id":"subscribe:/scan:3","type":"sensor_msgs/msg/LaserScan","topic":"/scan","compression":"none","throttle_rate":100.0,"queue_length":2}"#,
                Request::Subscribe(Subscribe {
                    id: id("subscribe:/scan:3"),
                    topic: "/scan".into(),
                    kind: Some("sensor_msgs/msg/LaserScan".into()),
                    throttle_rate: 100,
                    queue_length: 2,
                    compression: Some("none".into()),
                }),
            ),
            (
                r#"{"topic":"/scan","op":"subscribe"}"#,
                Request::Subscribe(Subscribe {
                    id: None,
                    topic: "/scan".into(),
                    kind: None,
                    throttle_rate: 0,
                    queue_length: 0,
                    compression: None,
                }),
            ),
            (
                r#"{"op":"unsubscribe","id":7,"topic":"/scan"}"#,
                Request::Unsubscribe(Topic {
                    id: Some(Id::Number(7)),
                    topic: "/scan".into(),
                }),
            ),
            (
                r#"{"op":"call_service","service":"/rosapi/topics"}"#,
                Request::CallService(CallService {
                    id: None,
                    service: "/rosapi/topics".into(),
                    args: Value::Null,
                }),
            ),
            (
                r#"{"op":"send_action_goal","id":"send_action_goal:/navigate_to_pose:5","action":"/navigate_to_pose","action_type":"nav2_msgs/action/NavigateToPose","args":{"pose":{}},"feedback":true}"#,
                Request::SendActionGoal(SendActionGoal {
                    id: id("send_action_goal:/navigate_to_pose:5"),
                    action: "/navigate_to_pose".into(),
                    action_type: "nav2_msgs/action/NavigateToPose".into(),
                    args: json!({"pose": {}}),
                    feedback: true,
                }),
            ),
            (
                r#"{"op":"cancel_action_goal","id":"send_action_goal:/navigate_to_pose:5","action":"/navigate_to_pose"}"#,
                Request::CancelActionGoal(CancelActionGoal {
                    id: id("send_action_goal:/navigate_to_pose:5"),
                    action: "/navigate_to_pose".into(),
                }),
            ),
            (
                r#"{"op":"set_level","level":"error"}"#,
                Request::SetLevel(SetLevel {
                    id: None,
                    level: Level::Error,
                }),
            ),
            (
                r#"{"op":"fragment","id":"1","data":"x","num":0,"total":2}"#,
                Request::Unsupported {
                    op: "fragment".into(),
                    id: id("1"),
                },
            ),
        ];
        for (text, request) in cases {
            assert_eq!(read(text.as_bytes()), Ok(request), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let long = format!(r#"{{"op":"unsubscribe","topic":"{}"}}"#, "a".repeat(257));
        let big = format!(
            r#"{{"op":"publish","topic":"/x","msg":"{}"}}"#,
            "a".repeat(MAX_TEXT)
        );
        let deep = "[".repeat(MAX_TEXT);
        let nested = format!(
            r#"{{"op":"publish","topic":"/x","msg":{}{}}}"#,
            "[".repeat(16),
            "]".repeat(16)
        );
        let cases = [
            ("", Malformed::NoOperation),
            ("[]", Malformed::NoOperation),
            ("{}", Malformed::NoOperation),
            (r#"{"op":1}"#, Malformed::NoOperation),
            (r#"{"op":"subscribe"}"#, Malformed::BadArgument),
            (r#"{"op":"subscribe","topic":1}"#, Malformed::BadArgument),
            (
                r#"{"op":"subscribe","topic":"/x","throttle_rate":-1}"#,
                Malformed::BadArgument,
            ),
            (
                r#"{"op":"set_level","level":"loud"}"#,
                Malformed::BadArgument,
            ),
            (&long, Malformed::LongName),
            (&big, Malformed::TooLong),
            (&deep, Malformed::TooDeep),
            (&nested, Malformed::TooDeep),
        ];
        for (text, malformed) in cases {
            let shown = &text[..text.len().min(60)];
            assert_eq!(read(text.as_bytes()), Err(malformed), "{shown}");
        }
        assert_eq!(read(b"{\xff}"), Err(Malformed::NotText));
    }

    #[test]
    fn brackets_in_strings_are_not_nested() {
        let text = format!(
            r#"{{"op":"publish","topic":"/x","msg":"\"{}"}}"#,
            "[".repeat(99)
        );
        assert!(matches!(read(text.as_bytes()), Ok(Request::Publish(_))));
    }

    #[test]
    fn responses_are_written_as_clients_expect_them() {
        let cases = [
            (
                Response::ServiceResponse {
                    id: id("call_service:/stop:4"),
                    service: "/stop".into(),
                    values: json!({"success": true}),
                    result: true,
                },
                json!({"op": "service_response", "id": "call_service:/stop:4",
                       "service": "/stop", "values": {"success": true}, "result": true}),
            ),
            (
                Response::Status {
                    id: None,
                    level: Level::Warning,
                    msg: "text".into(),
                },
                json!({"op": "status", "level": "warning", "msg": "text"}),
            ),
        ];
        for (response, expected) in cases {
            let text = response.text();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
        }
    }

    #[test]
    fn a_published_message_keeps_its_text() {
        let text = published("/a\"b", r#"{"x":[1,null]}"#);
        let expected = json!({"op": "publish", "topic": "/a\"b", "msg": {"x": [1, null]}});
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ = read(text.as_bytes());
        }
    }
}
