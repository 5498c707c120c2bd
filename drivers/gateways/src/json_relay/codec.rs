//! The messages of the JSON relay: one JSON object per datagram. PURE.
//!
//! ```text
//! {"type":"control_command","data":{"command":"forward","timestamp":1632739200}}
//! ```
//!
//! Keys may have any order, and unknown keys are ignored. Blanks and line feeds around the object
//! are allowed; other bytes are not.

use std::fmt;

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use super::limits::{MAX_CLIENT_ID, MAX_DATAGRAM, MAX_DEPTH, MAX_FRAGMENTS, MAX_SECRET};
use crate::shared::json::depth as json_depth;

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Message {
    /// A client joins.
    Register {
        client_type: Role,
        /// Its name among the clients with this role.
        client_id: ClientId,
        /// A shared secret. Only gateways of Amber know it; the original ignores it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<Secret>,
    },
    /// Robots should move. There is no command to stop.
    ControlCommand {
        /// The direction.
        command: Command,
        /// When it was sent, in seconds or milliseconds since 1970.
        timestamp: u64,
    },
    /// A whole image.
    ImageData {
        /// The file as base64.
        image: String,
        /// When it was sent, in seconds or milliseconds since 1970.
        timestamp: u64,
    },
    /// A part of an image.
    ImageFragment {
        /// The number of the part, from 1.
        sequence: u32,
        /// The number of parts.
        total: u32,
        /// The part as base64.
        image: String,
        /// When it was sent. Fragments of one image may differ.
        timestamp: u64,
    },
    /// A client is still there.
    Heartbeat {
        client_type: Role,
        /// Its name among the clients with this role.
        client_id: ClientId,
        /// When it was sent, by the client's clock.
        timestamp: u64,
    },
    /// The server has accepted a message. Only if configured: the original never sends one.
    Ack {
        /// The type of the accepted message.
        of: String,
        /// The client that sent it.
        client_id: ClientId,
        /// The timestamp of the accepted message; 0 for a registration.
        timestamp: u64,
    },
    /// The server has not accepted a message. The original sends nothing then, and programs ignore
    /// messages of types that they do not know.
    Error {
        /// The type of the message, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<String>,
        /// The reason, for people.
        reason: String,
    },
}

/// The role of a client.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It sends commands and gets images.
    Control,
    /// It gets commands and sends images.
    Robot,
}

/// The direction in which a robot should move.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    Forward,
    Backward,
    /// Turn to the left on the spot.
    Left,
    /// Turn to the right on the spot.
    Right,
}

/// The name of a client: 1 to 64 bytes without control characters.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClientId(String);

impl ClientId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An invalid name of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a client id has 1 to 64 bytes and no control characters")]
pub struct BadClientId;

impl TryFrom<String> for ClientId {
    type Error = BadClientId;

    fn try_from(text: String) -> Result<Self, BadClientId> {
        let fits = (1..=MAX_CLIENT_ID).contains(&text.len());
        let valid = fits && !text.contains(char::is_control);
        valid.then_some(Self(text)).ok_or(BadClientId)
    }
}

impl From<ClientId> for String {
    fn from(id: ClientId) -> Self {
        id.0
    }
}

/// A shared secret. It is not shown in logs.
#[derive(Clone, Deserialize, Serialize)]
#[serde(try_from = "String")]
pub struct Secret(String);

/// A secret that is too long.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a secret has at most 256 bytes")]
pub struct BadSecret;

impl TryFrom<String> for Secret {
    type Error = BadSecret;

    fn try_from(text: String) -> Result<Self, BadSecret> {
        (text.len() <= MAX_SECRET)
            .then_some(Self(text))
            .ok_or(BadSecret)
    }
}

impl PartialEq for Secret {
    /// Takes the same time wherever two secrets of the same length differ.
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The reason why a datagram is not a message of the JSON relay.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadMessage {
    /// It is longer than any datagram.
    #[error("a message of {0} bytes is too long")]
    TooLong(usize),
    /// It is nested too deeply.
    #[error("the JSON is nested too deeply")]
    TooDeep,
    /// It is not JSON, its type is unknown, or a value is missing or invalid.
    #[error("{0}")]
    Json(String),
    /// The number of a fragment is not within 1 to the total, or the total is too high.
    #[error("a fragment cannot be {sequence} of {total}")]
    Fragment {
        /// The number of the fragment.
        sequence: u32,
        /// The number of fragments.
        total: u32,
    },
}

impl BadMessage {
    /// The kind, for counters and log lines.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::TooLong(_) => "message too long",
            Self::TooDeep => "JSON nested too deep",
            Self::Json(_) => "not a valid message",
            Self::Fragment { .. } => "invalid fragment number",
        }
    }
}

impl Message {
    /// Reads a datagram.
    ///
    /// # Errors
    /// It is not a valid message.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadMessage> {
        if bytes.len() > MAX_DATAGRAM {
            return Err(BadMessage::TooLong(bytes.len()));
        }
        if json_depth(bytes) > MAX_DEPTH {
            return Err(BadMessage::TooDeep);
        }
        let message = serde_json::from_slice(bytes);
        let message = message.map_err(|error| BadMessage::Json(error.to_string()))?;
        if let Self::ImageFragment {
            sequence, total, ..
        } = message
        {
            let valid = (1..=MAX_FRAGMENTS).contains(&total) && (1..=total).contains(&sequence);
            if !valid {
                return Err(BadMessage::Fragment { sequence, total });
            }
        }
        Ok(message)
    }

    /// The datagram.
    pub fn encode(&self) -> Vec<u8> {
        // Writing plain strings and numbers to memory cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Its type on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Register { .. } => "register",
            Self::ControlCommand { .. } => "control_command",
            Self::ImageData { .. } => "image_data",
            Self::ImageFragment { .. } => "image_fragment",
            Self::Heartbeat { .. } => "heartbeat",
            Self::Ack { .. } => "ack",
            Self::Error { .. } => "error",
        }
    }
}

#[cfg(test)]
mod tests;
