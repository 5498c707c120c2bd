//! What a protocol hears of Amber, and of the clients of its emulated devices. PURE.

use amber_proto::Device;
use amber_proto::gateway::RelayImage;
use amber_robot::robot::{Measurement, News, OrderNumber, Trip, TripNews, User};
use amber_values::{Target, WheelSpeeds};
use bytes::Bytes;

/// An input of a gateway from Amber.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A device has measured something that is watched.
    Measured(Device, Measurement),
    /// A `DriverMsg` for a user, after [`UserOrder::Message`](amber_robot::robot::UserOrder::Message).
    Message(User, Device, Bytes),
    /// A device refuses the motion of a user, for this reason. At most once a second for each.
    Refused(User, String),
    /// A map of a user is saved, or the reason why not.
    Saved(User, u32, Result<(), String>),
    /// How a trip of a user goes, after [`UserOrder::Trip`](amber_robot::robot::UserOrder::Trip).
    Trip(User, Trip, TripNews),
    /// A client of Amber sends a request to an emulated device.
    Asked(Device, Asked),
    /// A client of Amber sends an image to the peers.
    Image(RelayImage),
}

/// A request of a client to an emulated device.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// Wheel speeds.
    Drive(amber_proto::ClientId, WheelSpeeds),
    /// Targets instead of those before; an empty list stops the robot. Their numbers are finite, and
    /// there are at most as many as an Amber robot takes. [`Progress`](amber_robot::robot::Progress) tells by the number of the order
    /// what becomes of them.
    Targets(amber_proto::ClientId, OrderNumber, Vec<Target>),
    /// The client has left: its motions must stop.
    ClientGone(amber_proto::ClientId),
}

/// The kinds of devices that a gateway can emulate for a foreign robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emulated {
    /// A Roboclaw: takes [`Asked::Drive`], shows [`Measurement::Wheels`].
    Wheels,
    /// A Hokuyo: shows [`Measurement::Scan`].
    Scanner,
    /// A Location: shows [`Measurement::Pose`].
    Location,
    /// A NineDof: shows [`Measurement::Imu`].
    Imu,
    /// A DriveToPoint: takes [`Asked::Targets`], shows [`Measurement::Progress`].
    Targets,
    /// A camera: shows [`Measurement::Picture`], as they come.
    Camera,
}

impl From<News> for Event {
    fn from(news: News) -> Self {
        match news {
            News::Measured(device, measurement) => Self::Measured(device, measurement),
            News::Message(user, device, message) => Self::Message(user, device, message),
            News::Refused(user, why) => Self::Refused(user, why),
            News::Saved(user, number, saved) => Self::Saved(user, number, saved),
            News::Trip(user, trip, news) => Self::Trip(user, trip, news),
        }
    }
}
