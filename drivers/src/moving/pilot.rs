//! The logic of a driver that moves the robot, as its task sees it. PURE.

use std::borrow::Cow;
use std::ops::Deref;
use std::time::Duration;

use amber_driver::{ClientId, Link};
use amber_navigation::collision::{Imu, Touch};
use amber_navigation::kinematics::Wheels;
use amber_navigation::pose_tracker::PoseReading;
use amber_navigation::scan;
use amber_proto::DeviceMessage;
use amber_values::{MapPose, Scan, WheelSpeeds};

/// The logic of a driver that moves the robot. Times are those since the start of the driver.
pub(crate) trait Pilot: Send + 'static {
    /// A request from a handler.
    type Request: Send + 'static;
    /// The `DriverMsg` of the device.
    type Message: DeviceMessage + Send + 'static;
    /// The link to the mediator.
    type Link: Deref<Target = Link<Self::Message>> + Send + Sync + 'static;

    /// Takes a request.
    fn request(&mut self, now: Duration, link: &Self::Link, request: Self::Request);

    /// Handles data of another device.
    fn handle(&mut self, now: Duration, input: Input);

    /// The speeds for the wheels now. Called often, see [`super::robot`].
    fn step(&mut self, now: Duration) -> Wheels;

    /// Sends answers and data to subscribers, and writes log lines. Called after each other call.
    fn tell(&mut self, now: Duration, link: &Self::Link);

    /// Which device is silent. Called before [`Self::tell`].
    fn notice(&mut self, _trouble: Option<&str>) {}

    /// The client for which it moves the robot.
    fn client(&self) -> Option<ClientId>;

    /// The reason why the robot does not move as it should, apart from silent devices.
    fn trouble(&self) -> Option<Cow<'_, str>>;

    /// Events for the log.
    fn counters(&self) -> String;
}

/// Data of another device.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// A scan, and the same as in the message.
    Scan(scan::Scan, Scan),
    /// The measured speeds of the wheels, and the same as in the message.
    Wheels(Duration, Wheels, WheelSpeeds),
    /// The motion sensors.
    Imu(Duration, Imu),
    /// What the robot feels: the contacts that are pressed.
    Contacts(Duration, Vec<Touch>),
    /// A pose on the map, and the same as in the message.
    Pose(PoseReading, MapPose),
}
