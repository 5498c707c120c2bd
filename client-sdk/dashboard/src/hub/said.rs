//! The messages of pages. PURE.

use amber_proto::{Device, DeviceType};
use serde::Deserialize;

/// A message from a page, and when it was sent. Only pages that are clients of the mediator need the
/// time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Message {
    /// In ms on any clock of the page.
    pub at: Option<f64>,
    /// The message.
    #[serde(flatten)]
    pub said: Said,
}

/// The content of a message from a page.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub enum Said {
    /// The first message: the token of the address, if it has one.
    Hello { token: Option<String> },
    /// Stop the robot, no matter who drives it. If another page or program would drive on, everything
    /// that moves is halted. The page does the same as a client of the mediator, once it is one.
    Stop,
    /// Tell what a device can do.
    Describe {
        /// The number of the request, for its answer.
        id: u32,
        device: String,
    },
}

/// The device with this name.
pub(super) fn read_device(text: &str) -> Result<Device, String> {
    let device = text.parse::<Device>();
    device.map_err(|_| format!("'{text}' is not a device"))
}

/// Whether this names the mediator.
pub(super) fn is_mediator(device: &str) -> bool {
    read_device(device).is_ok_and(|device| device.device_type == DeviceType::MEDIATOR)
}
