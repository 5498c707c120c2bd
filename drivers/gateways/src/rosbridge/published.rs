//! A message of the robot in all forms in which clients get it. PURE.

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::codec;
use super::encoding;
use super::topics::Output;

/// The encoding of messages for a client.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Form {
    /// A text.
    #[default]
    Json,
    /// CBOR, with arrays of numbers as blocks.
    Cbor,
    /// The bytes of ROS 2 in CBOR.
    CborRaw,
}

impl Form {
    /// The form that a client asks for by `compression`, if the gateway has it.
    #[must_use]
    pub fn of_compression(compression: &str) -> Option<Self> {
        match compression {
            "none" => Some(Self::Json),
            "cbor" => Some(Self::Cbor),
            "cbor-raw" => Some(Self::CborRaw),
            _ => None,
        }
    }
}

/// A message. Each form is made at most once, for all clients that want it.
#[derive(Debug)]
pub struct Message {
    kind: &'static str,
    value: Value,
    arrived: Duration,
    json: OnceLock<String>,
    cbor: OnceLock<Vec<u8>>,
    raw: OnceLock<Vec<u8>>,
}

impl Message {
    /// A message that arrived at a time since 1970.
    #[must_use]
    pub fn new(output: Output, value: Value, arrived: Duration) -> Self {
        Self {
            kind: output.kind(),
            value,
            arrived,
            json: OnceLock::new(),
            cbor: OnceLock::new(),
            raw: OnceLock::new(),
        }
    }

    /// The text, or the bytes that are no text, which publish it on the topic with this name.
    #[must_use]
    pub fn published(&self, name: &str, form: Form) -> Bytes {
        match form {
            Form::Json => {
                let json = self.json.get_or_init(|| self.value.to_string());
                codec::published(name, json).into()
            }
            Form::Cbor => {
                let cbor = self
                    .cbor
                    .get_or_init(|| encoding::cbor(self.kind, &self.value));
                encoding::cbor_publish(name, cbor).into()
            }
            Form::CborRaw => {
                let raw = self
                    .raw
                    .get_or_init(|| encoding::cbor_raw(self.kind, &self.value, self.arrived));
                encoding::cbor_publish(name, raw).into()
            }
        }
    }
}
