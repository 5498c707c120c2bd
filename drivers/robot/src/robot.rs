//! Amber's devices as programs use them: topics, orders and measurements. PURE.

use std::sync::Arc;

use amber_map::{Mounting, Occupancy, Pose};
use amber_navigation::kinematics::{SkidSteer, Twist, Wheels};
use amber_proto::battery_state::BatteryState;
use amber_proto::bumper::Contacts;
use amber_proto::camera::{CameraInfo, Picture};
use amber_proto::gamepad::GamepadState;
use amber_proto::gps::Fix;
use amber_proto::hokuyo::Scanner;
use amber_proto::location::KnownPose;
use amber_proto::{Device, DeviceType};
pub use amber_scene::trip::TripEnd;
use amber_values::{ImuReading, MapPose, OpticalFrame, Scan, Target, WheelSpeeds};
use bytes::Bytes;

use crate::pictures::PictureWish;

/// The devices of one robot, and its drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RobotSetup {
    /// A device that accepts the commands of a Roboclaw.
    pub wheels: Device,
    /// The laser scanner.
    pub scanner: Device,
    /// The pose on the map.
    pub location: Device,
    /// The motion sensors.
    pub imu: Device,
    /// The driver that drives to targets.
    pub targets: Device,
    /// The driver that makes maps.
    pub mapping: Device,
    pub battery: Device,
    /// The receiver of navigation satellites.
    pub gps: Device,
    pub gamepad: Device,
    pub bumper: Device,
    pub camera: Device,
    /// The distance of the wheels, and their maximum speed.
    pub drive: SkidSteer,
}

impl RobotSetup {
    /// The first device of each kind.
    #[must_use]
    pub const fn with(drive: SkidSteer) -> Self {
        Self {
            wheels: Device::new(DeviceType::ROBOCLAW, 0),
            scanner: Device::new(DeviceType::HOKUYO, 0),
            location: Device::new(DeviceType::LOCATION, 0),
            imu: Device::new(DeviceType::NINEDOF, 0),
            targets: Device::new(DeviceType::DRIVE_TO_POINT, 0),
            mapping: Device::new(DeviceType::MAPPING, 0),
            battery: Device::new(DeviceType::BATTERY, 0),
            gps: Device::new(DeviceType::GPS, 0),
            gamepad: Device::new(DeviceType::GAMEPAD, 0),
            bumper: Device::new(DeviceType::BUMPER, 0),
            camera: Device::new(DeviceType::CAMERA, 0),
            drive,
        }
    }

    /// The devices that have maps.
    #[must_use]
    pub fn maps(&self) -> MapDevices {
        MapDevices {
            location: self.location,
            mapping: self.mapping,
        }
    }

    /// The wheel speeds for a motion of the body. If a wheel would exceed the maximum, all are
    /// slowed down by the same factor. `None` if a number is not finite.
    #[must_use]
    pub fn speeds(&self, forward_m_s: f64, turn_rad_s: f64) -> Option<WheelSpeeds> {
        let wheels = self.drive.wheels(Twist::new(forward_m_s, turn_rad_s));
        let finite = forward_m_s.is_finite() && turn_rad_s.is_finite() && wheels.is_finite();
        finite.then(|| wheels.into())
    }

    /// The motion of the body at these wheel speeds.
    #[must_use]
    pub fn twist(&self, speeds: WheelSpeeds) -> Twist {
        self.drive.twist(Wheels::from(speeds))
    }
}

/// The devices that have maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MapDevices {
    /// The driver that locates the robot.
    pub location: Device,
    /// The driver that makes maps.
    pub mapping: Device,
}

/// A measurement of a device that a program watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// The scans of a laser scanner: [`Measurement::Scan`], and [`Measurement::Scanner`].
    Scans(Device),
    /// The measured speeds of the wheels, every 50 ms: [`Measurement::Wheels`].
    Wheels(Device),
    /// The odometry of the robot, every 50 ms: [`Measurement::Odometry`]. If the robot has no device
    /// that reports it, the speeds of these wheels: [`Measurement::Wheels`].
    Odometry(Device),
    /// The pose on the map, at most every 100 ms: [`Measurement::Pose`].
    Pose(Device),
    /// The motion sensors, every 50 ms: [`Measurement::Imu`].
    Imu(Device),
    /// The battery, once a second: [`Measurement::Battery`].
    Battery(Device),
    /// The position on Earth, each time the receiver tells it: [`Measurement::Gps`].
    Gps(Device),
    /// The gamepad, at each change and twice a second: [`Measurement::Gamepad`].
    Gamepad(Device),
    /// What the robot feels, at each change and four times per second: [`Measurement::Contacts`].
    Contacts(Device),
    /// The targets of DriveToPoint, every 500 ms: [`Measurement::Targets`].
    Targets(Device),
    /// The map, at first and when it changes: [`Measurement::Map`].
    Map(MapDevices),
    /// The position of a laser scanner on the robot, once it is known: [`Measurement::Mount`].
    Mount(Device),
    /// The pictures of a camera, which is on while somebody wants some: [`Measurement::Picture`]. All
    /// who watch one camera get the same pictures: those of the strongest wish.
    Pictures(Device, PictureWish),
    /// What is known of a camera, once a second: [`Measurement::CameraInfo`]. The camera is not
    /// switched on for it.
    Camera(Device),
    /// The place of a camera on the robot, at first and when it changes:
    /// [`Measurement::CameraPlace`].
    CameraPlace(Device),
}

/// A measurement of a device: of Amber, or of a foreign robot shown as one.
#[derive(Clone, Debug, PartialEq)]
pub enum Measurement {
    Scan(Scan),
    /// What the scanner can measure, at first and when it changes. Not every driver tells it.
    Scanner(Box<Scanner>),
    Wheels(WheelSpeeds),
    /// The pose of the robot by its wheels alone, since its driver started, and its motion.
    Odometry(Pose, Twist),
    /// The pose on the map; y is down. `amber_map::Pose::from` has y up and turns
    /// counter-clockwise.
    Pose(MapPose),
    /// Acceleration and turn rate.
    Imu(ImuReading),
    Battery(BatteryState),
    /// The position on Earth, or that there is none.
    Gps(Fix),
    Gamepad(Box<GamepadState>),
    /// What the robot feels.
    Contacts(Contacts),
    /// The targets of DriveToPoint.
    Targets {
        /// Those that are still to be reached.
        next: Vec<Target>,
        /// Those that the robot has visited.
        visited: Vec<Target>,
    },
    /// The map, with y up.
    Map(Arc<Occupancy>),
    /// The position of the laser scanner on the robot.
    Mount(Mounting),
    /// A picture: the newest one, if the program was busy.
    Picture(Arc<Picture>),
    CameraInfo(Box<CameraInfo>),
    /// The optical frame of the camera on the robot.
    CameraPlace(OpticalFrame),
    /// The progress of a foreign robot with targets: what a gateway shows as a DriveToPoint.
    Progress(Progress),
}

/// The progress of a foreign robot with its targets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The targets that are still to be reached.
    pub next: Vec<Target>,
    /// Those that it has visited.
    pub visited: Vec<Target>,
    /// Its pose; `None` while it is unknown.
    pub pose: Option<MapPose>,
    /// The order that these targets belong to; `None` if there never was one.
    pub order: Option<OrderNumber>,
    /// The last order that the gateway did not accept, and why.
    pub refused: Option<(OrderNumber, &'static str)>,
}

/// The number of a list of targets for a foreign robot, in the order in which they were set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderNumber(pub u64);

/// An order of a user to a device.
#[derive(Clone, Debug, PartialEq)]
pub enum UserOrder {
    /// Wheel speeds. Use [`Helm`](crate::helm::Helm) to decide when.
    Drive(Device, WheelSpeeds),
    /// New targets for DriveToPoint; an empty list stops the robot.
    Targets(Device, Vec<Target>),
    /// Stops wheels, or a DriveToPoint, whoever moves them.
    Stop(Device),
    /// Halts all devices that move (`true`), or releases the halt.
    Halt(bool),
    /// Save the map that is being made under this name; [`News::Saved`] follows with this number.
    SaveMap(Device, u32, String),
    /// The robot is here: for the location driver.
    Here(Device, KnownPose),
    /// New targets for DriveToPoint, as a trip of which [`News::Trip`] tells.
    Trip(Device, Trip, Vec<Target>),
    /// Ends this trip, and no other one.
    CancelTrip(Trip),
    /// A `DriverMsg` as a client would send it. [`motion::of`](crate::motion::of) tells whether it
    /// moves something. Answers and published data come as
    /// [`News::Message`].
    Message(Device, Bytes),
}

/// The number of a trip among those of its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Trip(pub u64);

/// What happens on a trip.
#[derive(Clone, Debug, PartialEq)]
pub enum TripNews {
    /// The robot is on its way: its pose, and the rest of the path.
    Progress {
        /// On the map.
        pose: MapPose,
        /// To the next target; `None` if it is not known now.
        remaining_m: Option<f64>,
    },
    /// It is over. Nothing more comes.
    Ended(TripEnd),
}

/// What Amber reports to a program.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A device has measured something that is watched.
    Measured(Device, Measurement),
    /// A `DriverMsg` for a user, after [`UserOrder::Message`].
    Message(User, Device, Bytes),
    /// A device refuses the motion of a user, for this reason. At most once a second for each.
    Refused(User, String),
    /// A map of a user is saved, or the reason why not.
    Saved(User, u32, Result<(), String>),
    /// How a trip of a user goes, after [`UserOrder::Trip`].
    Trip(User, Trip, TripNews),
}

/// A session of a foreign program, which is a separate client of the mediator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct User(pub u32);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The usual robot with a track of 0.4 m and wheels of at most 0.4 m/s.
    pub(crate) fn robot() -> RobotSetup {
        RobotSetup::with(SkidSteer {
            track_m: 0.4,
            max_wheel_m_s: 0.4,
        })
    }

    #[test]
    fn a_motion_becomes_wheel_speeds_within_the_maximum() {
        let robot = robot();
        for (forward, turn, left, right) in [
            (0.2, 0.0, 200, 200),
            (0.0, 1.0, -200, 200),
            (0.1, 0.5, 0, 200),
            (4.0, 0.0, 400, 400),
            (0.4, 2.0, 0, 400),
            (-0.3, 0.0, -300, -300),
        ] {
            let speeds = WheelSpeeds::sides(left, right);
            assert_eq!(
                robot.speeds(forward, turn),
                Some(speeds),
                "{forward} {turn}"
            );
        }
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(robot.speeds(bad, 0.0), None);
            assert_eq!(robot.speeds(0.0, bad), None);
        }
        assert!(
            robot
                .speeds(f64::MAX, f64::MAX)
                .is_none_or(|it| it.fastest_mm_s() <= 400)
        );
    }

    #[test]
    fn wheel_speeds_become_a_motion() {
        let twist = robot().twist(WheelSpeeds::sides(100, 300));
        assert!((twist.forward_m_s - 0.2).abs() < 1e-9);
        assert!((twist.turn_rad_s - 0.5).abs() < 1e-9);
    }
}
