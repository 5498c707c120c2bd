//! The messages of pages. PURE.

use amber_proto::{Device, DeviceType};
use serde::Deserialize;

/// A message from a page, and when it was sent.
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
    /// Turn the wheels of both sides at these speeds. Valid for [`MOTION_LIFE`](crate::limits::MOTION_LIFE).
    Drive {
        /// In mm/s.
        left: f64,
        /// In mm/s.
        right: f64,
        /// Whether to stop before obstacles.
        guard: bool,
    },
    /// Stop the robot, no matter who drives it. If another program would drive on, everything that
    /// moves is halted.
    Stop,
    /// Halt everything that moves, or release the halt.
    Halt {
        /// Whether to halt.
        halt: bool,
    },
    /// Take over from the page or program that drives.
    TakeOver,
    /// Drive to a point on the map.
    Goal {
        /// The number of the request, for its answer.
        id: u32,
        /// In metres.
        x: f64,
        /// In metres, down.
        y: f64,
    },
    /// Drive through unknown places while a map grows.
    Explore {
        /// The number of the request, for its answer.
        id: u32,
    },
    /// Tell what a device can do.
    Describe {
        /// The number of the request, for its answer.
        id: u32,
        device: String,
    },
    /// Send a request to a device.
    Call {
        /// The number of the request, for its answer.
        id: u32,
        device: String,
        /// The name of the request on the command line.
        method: String,
        /// The arguments as on the command line: `name=value`.
        args: Vec<String>,
    },
}

impl Said {
    /// The number of a request that gets an answer.
    pub(super) fn number(&self) -> Option<u32> {
        match self {
            Self::Goal { id, .. }
            | Self::Explore { id }
            | Self::Describe { id, .. }
            | Self::Call { id, .. } => Some(*id),
            _ => None,
        }
    }

    /// Whether the robot may begin to move by it.
    pub(super) fn moves(&self) -> bool {
        match self {
            Self::Drive { left, right, .. } => (*left, *right) != (0.0, 0.0),
            // A release lets others move.
            Self::Goal { .. }
            | Self::Explore { .. }
            | Self::TakeOver
            | Self::Halt { halt: false } => true,
            _ => false,
        }
    }
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
