//! Motion that goes on without further commands. PURE.

use amber_proto::{Device, DeviceMessage, DeviceType, pid_follow_trajectory};
use bytes::Bytes;
use prost::Message;

use crate::robot::UserOrder;

/// A motion that continues without further commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// A DriveToPoint drives to targets.
    Targets(Device),
    /// A PidFollowTrajectory follows its trajectory.
    Trajectory(Device),
}

impl Errand {
    /// The errand of a device that has some.
    #[must_use]
    pub fn of(device: Device) -> Self {
        match device.device_type {
            DeviceType::PID_FOLLOW_TRAJECTORY => Self::Trajectory(device),
            _ => Self::Targets(device),
        }
    }

    /// The device that performs it.
    #[must_use]
    pub fn device(self) -> Device {
        match self {
            Self::Targets(device) | Self::Trajectory(device) => device,
        }
    }

    /// The order that ends it.
    #[must_use]
    pub fn end(self) -> UserOrder {
        match self {
            Self::Targets(device) => UserOrder::Targets(device, Vec::new()),
            Self::Trajectory(device) => UserOrder::Message(device, stop_trajectory()),
        }
    }
}

/// The message that stops a PidFollowTrajectory.
#[must_use]
pub fn stop_trajectory() -> Bytes {
    let mut message = pid_follow_trajectory::DriverMsg::data();
    message.stop_execution = Some(true);
    message.encode_to_vec().into()
}
