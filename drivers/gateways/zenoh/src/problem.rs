//! The reason why a request failed, as sent over Zenoh: JSON in an error reply. PURE.

use amber_client::Error;
use serde::{Deserialize, Serialize};

/// The reason why a request failed.
///
/// ```json
/// {"kind": "driver_died", "message": "the driver of hokuyo:0 died ...", "hint": "..."}
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// The kind of failure, for programs.
    pub kind: Kind,
    /// The failure, for people.
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// No driver serves the device.
    NoSuchDevice,
    /// The device is unavailable.
    Unavailable,
    /// The driver died while it handled the request.
    DriverDied,
    /// The device did not answer in time.
    TimedOut,
    /// The device, or the robot's access rules, refused the request.
    Refused,
    /// The key or the message is invalid.
    BadRequest,
    /// Another operator drives.
    Occupied,
    /// A newer message has overtaken this one.
    Late,
    /// Too many messages or operators.
    Busy,
    /// The mediator of the robot cannot be reached.
    MediatorLost,
    /// Anything else.
    Failed,
}

impl Problem {
    /// A problem without a hint.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
        }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        let kind = match error {
            Error::NoSuchDevice { .. } => Kind::NoSuchDevice,
            Error::Unavailable { .. } => Kind::Unavailable,
            Error::DriverDied { .. } => Kind::DriverDied,
            Error::TimedOut { .. } => Kind::TimedOut,
            Error::Refused { .. } => Kind::Refused,
            Error::TooLong { .. } => Kind::BadRequest,
            Error::Unreachable { .. } | Error::UnknownHost { .. } | Error::Closed { .. } => {
                Kind::MediatorLost
            }
            // More kinds may follow.
            _ => Kind::Failed,
        };
        Self {
            kind,
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::{Device, DeviceType};

    use super::*;

    #[test]
    fn errors_of_the_mediator_come_as_they_are() {
        let error = Error::NoSuchDevice {
            device: Device::new(DeviceType::HOKUYO, 7),
        };
        let problem = Problem::from(&error);
        assert_eq!(problem.kind, Kind::NoSuchDevice);
        let text = serde_json::to_string(&problem).unwrap();
        assert!(text.starts_with(
            r#"{"kind":"no_such_device","message":"no driver serves hokuyo:7 now","hint":"#
        ));
        assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
        let plain = Problem::new(Kind::Late, "late");
        let text = serde_json::to_string(&plain).unwrap();
        assert_eq!(text, r#"{"kind":"late","message":"late"}"#);
    }
}
