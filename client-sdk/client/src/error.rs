//! Errors, with the device and a hint. PURE.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use amber_proto::Device;
use amber_proto::limits::{MAX_LONG, MAX_PART};
pub use amber_proto::mediator::refusal::Reason;
pub use amber_proto::mediator::unavailable::Reason as Unavailability;

/// The reasons why a request, subscription or connection failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The mediator reports that no running driver serves the device.
    #[error("no driver serves {device} now")]
    NoSuchDevice {
        /// The device of the request.
        device: Device,
    },
    /// The device is unavailable; the mediator reports the reason.
    #[error("{device} is unavailable: {message}")]
    Unavailable {
        /// The device of the request.
        device: Device,
        /// The kind of failure.
        reason: Unavailability,
        /// The explanation, for people.
        message: String,
        /// A hint, if the mediator knows one.
        hint: Option<String>,
    },
    /// The driver died while it handled the request.
    #[error("the driver of {device} died {} after the request{}", millis(*waited), because(why))]
    DriverDied {
        /// The device of the request.
        device: Device,
        /// The time from the request to the failure.
        waited: Duration,
        /// The reason, if the mediator gives one.
        why: Option<String>,
    },
    /// There was no answer within the deadline.
    #[error("no answer from {device} within {}", millis(*waited))]
    TimedOut {
        /// The device of the request.
        device: Device,
        /// The time waited for the answer.
        waited: Duration,
    },
    /// The device understood the request and refused it.
    #[error("{device} refused the request: {message}")]
    Refused {
        /// The device of the request.
        device: Device,
        /// The kind of refusal.
        reason: Reason,
        /// The explanation, for people.
        message: String,
        /// A hint, if the device knows one.
        hint: Option<String>,
    },
    /// The network reports that nothing listens at the mediator's address.
    #[error("no mediator at {mediator}: {source}")]
    Unreachable {
        /// The address of the mediator, as far as it is known.
        mediator: String,
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// The address of the mediator is invalid, or its host is unknown.
    #[error("cannot find the mediator {mediator}: {source}")]
    UnknownHost {
        /// The address as given.
        mediator: String,
        /// The error of the system.
        source: Arc<io::Error>,
    },
    /// This version cannot decode the answer.
    #[error("invalid answer from {device}: {message}")]
    BadAnswer {
        /// The device that answered.
        device: Device,
        /// The problem of the answer.
        message: String,
    },
    /// The message is too long for any device, or for a driver that cannot join the pieces of a
    /// message that is longer than a frame.
    #[error("a message of {bytes} bytes for {device} is too long: the limit is {}", limit(*bytes))]
    TooLong {
        /// The device that the message was for.
        device: Device,
        /// Its length.
        bytes: usize,
    },
    /// The client's task has ended.
    #[error("the client is closed: {cause}")]
    Closed {
        /// The reason why it has ended.
        cause: Arc<str>,
    },
}

/// The result of most methods.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The hint.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoSuchDevice { .. } => Some(
                "`amber devices` lists all devices, and `amber status DEVICE` shows why one is down"
                    .into(),
            ),
            Self::DriverDied { device, .. } => Some(format!(
                "`amber status {device}` shows the cause and its last lines of output"
            )),
            Self::TimedOut { device, .. } if *device == Device::MEDIATOR => Some(
                "check the address and the firewall; a mediator of the original system never answers"
                    .into(),
            ),
            Self::TimedOut { device, .. } => Some(format!(
                "`amber devices` shows whether {device} has a driver; some requests have no answer"
            )),
            Self::Refused { hint, .. } | Self::Unavailable { hint, .. } => hint.clone(),
            Self::Unreachable { .. } => Some(
                "check that the mediator is running; `amber demo` starts one with drivers".into(),
            ),
            Self::UnknownHost { .. } => {
                Some("write HOST, HOST:PORT or [IPV6]:PORT, e.g. 192.168.1.7:26233".into())
            }
            Self::BadAnswer { .. } => Some("check that both sides have the same version".into()),
            Self::TooLong { .. } | Self::Closed { .. } => None,
        }
    }

    /// The text for a program to print before it exits: an `error:` line with the
    /// failure, and usually a `hint:` line with advice.
    pub fn explained(&self) -> String {
        let hint = self.hint().map(|hint| format!("\nhint: {hint}"));
        format!("error: {self}{}", hint.unwrap_or_default())
    }

    /// The device of the failed request, if there is one.
    pub fn device(&self) -> Option<Device> {
        match self {
            Self::NoSuchDevice { device }
            | Self::Unavailable { device, .. }
            | Self::DriverDied { device, .. }
            | Self::TimedOut { device, .. }
            | Self::Refused { device, .. }
            | Self::BadAnswer { device, .. }
            | Self::TooLong { device, .. } => Some(*device),
            Self::Unreachable { .. } | Self::UnknownHost { .. } | Self::Closed { .. } => None,
        }
    }
}

/// The limit that a message of this length exceeds.
fn limit(bytes: usize) -> usize {
    match bytes > MAX_LONG {
        true => MAX_LONG,
        false => MAX_PART,
    }
}

fn because(why: &Option<String>) -> String {
    why.as_ref().map_or(String::new(), |why| format!(": {why}"))
}

fn millis(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}

#[cfg(test)]
mod tests {
    use amber_proto::DeviceType;

    use super::*;

    #[test]
    fn errors_name_the_device_and_the_time() {
        let error = Error::TimedOut {
            device: Device::new(DeviceType::HOKUYO, 0),
            waited: Duration::from_millis(500),
        };
        assert_eq!(error.to_string(), "no answer from hokuyo:0 within 500 ms");
        assert!(error.hint().unwrap().contains("amber devices"));
        let lines = error.explained();
        let expected = "error: no answer from hokuyo:0 within 500 ms\nhint: `amber devices`";
        assert!(lines.starts_with(expected), "{lines}");
        let closed = Error::Closed {
            cause: "it is over".into(),
        };
        assert_eq!(
            closed.explained(),
            "error: the client is closed: it is over"
        );
        let error = Error::DriverDied {
            device: Device::new(DeviceType::HOKUYO, 0),
            waited: Duration::from_millis(7),
            why: Some("it exited with code 1".into()),
        };
        assert_eq!(
            error.to_string(),
            "the driver of hokuyo:0 died 7 ms after the request: it exited with code 1"
        );
    }
}
