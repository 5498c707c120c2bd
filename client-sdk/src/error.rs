//! What can go wrong, for whom, and what to try then. PURE.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use amber_proto::Device;
use amber_proto::limits::MAX_PART;
pub use amber_proto::mediator::refusal::Reason;
pub use amber_proto::mediator::unavailable::Reason as Unavailability;

/// Why something did not work out.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The mediator says that no running driver serves the device.
    #[error("no driver serves {device} now")]
    NoSuchDevice {
        /// Who was asked.
        device: Device,
    },
    /// The mediator says why the device cannot be used now.
    #[error("{device} cannot be used: {message}")]
    Unavailable {
        /// Who was asked.
        device: Device,
        /// Which kind of trouble it is.
        reason: Unavailability,
        /// In words.
        message: String,
        /// What to try, when the mediator knows.
        hint: Option<String>,
    },
    /// The driver died while it had the request.
    #[error("the driver of {device} died {} after it was asked{}", millis(*waited), because(why))]
    DriverDied {
        /// Who was asked.
        device: Device,
        /// How long the answer had been waited for.
        waited: Duration,
        /// Why, in words, when the mediator says so.
        why: Option<String>,
    },
    /// Nothing came within the deadline.
    #[error("no answer from {device} within {}", millis(*waited))]
    TimedOut {
        /// Who was asked.
        device: Device,
        /// How long the answer was waited for.
        waited: Duration,
    },
    /// The request was understood, and the answer is no.
    #[error("{device} refuses: {message}")]
    Refused {
        /// Who was asked.
        device: Device,
        /// Which kind of no.
        reason: Reason,
        /// In words.
        message: String,
        /// What to try, when the other side knows.
        hint: Option<String>,
    },
    /// The network says that nobody listens at the mediator's address.
    #[error("no mediator at {mediator}: {source}")]
    Unreachable {
        /// Its address, as far as it is known.
        mediator: String,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The name of the mediator's host means nothing here.
    #[error("cannot find the mediator {mediator}: {source}")]
    UnknownHost {
        /// What was asked for.
        mediator: String,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The answer is not what this version understands.
    #[error("cannot read the answer of {device}: {message}")]
    BadAnswer {
        /// Who answered.
        device: Device,
        /// What is wrong with it.
        message: String,
    },
    /// The message does not fit a frame.
    #[error("a message of {bytes} bytes for {device} is longer than {MAX_PART}")]
    TooLong {
        /// Who it was for.
        device: Device,
        /// Its length.
        bytes: usize,
    },
    /// The client's task has ended.
    #[error("the client is closed: {cause}")]
    Closed {
        /// Why it has ended.
        cause: Arc<str>,
    },
}

/// What most methods return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// What to try, in words.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoSuchDevice { .. } => {
                Some("`amber devices` shows what there is, and `amber status DEVICE` why it does not run".into())
            }
            Self::DriverDied { device, .. } => {
                Some(format!("`amber status {device}` shows its last words"))
            }
            Self::TimedOut { device, .. } if *device == Device::MEDIATOR => Some(
                "a mediator of the original system never answers; otherwise check address and \
                 firewall"
                    .into(),
            ),
            Self::TimedOut { device, .. } => Some(format!(
                "`amber devices` shows whether {device} has a driver; not every request is answered"
            )),
            Self::Refused { hint, .. } | Self::Unavailable { hint, .. } => hint.clone(),
            Self::Unreachable { .. } => {
                Some("is the mediator running? `amber demo` starts one with drivers".into())
            }
            Self::UnknownHost { .. } => {
                Some("write HOST, HOST:PORT or [IPV6]:PORT, e.g. 192.168.1.7:26233".into())
            }
            Self::BadAnswer { .. } => Some("are both sides of the same version?".into()),
            Self::TooLong { .. } | Self::Closed { .. } => None,
        }
    }

    /// What a program prints before it ends: an `error:` line that says what
    /// was wrong, and mostly a `hint:` line that says what to try.
    pub fn explained(&self) -> String {
        let hint = self.hint().map(|hint| format!("\nhint: {hint}"));
        format!("error: {self}{}", hint.unwrap_or_default())
    }

    /// The device that was asked, where one was.
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
            "the driver of hokuyo:0 died 7 ms after it was asked: it exited with code 1"
        );
    }
}
