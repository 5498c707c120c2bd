//! The requests that have names. PURE.

use amber_proto::{DeviceMessage, DeviceType, dummy};
use bytes::Bytes;

use super::super::ninedof;
use crate::proxy::{WheelSpeeds, maestro};

/// A request of a device type.
pub(super) struct Known {
    pub(super) device_type: DeviceType,
    pub(super) name: &'static str,
    pub(super) args: &'static str,
    /// `None` if the arguments are invalid.
    pub(super) read: fn(&[String]) -> Option<Request>,
}

/// A request of all devices: raw bytes.
pub(super) const RAW: &str = "raw";

pub(super) const KNOWN: [Known; 16] = [
    Known {
        device_type: DeviceType::DUMMY,
        name: "status",
        args: "",
        read: |args| args.is_empty().then_some(Request::DummyStatus),
    },
    Known {
        device_type: DeviceType::DUMMY,
        name: "enable",
        args: "true|false",
        read: |args| {
            let enable = only(args)?.parse().ok()?;
            Some(Request::Dummy(dummy::DriverMsg {
                enable: Some(enable),
                ..dummy::DriverMsg::data()
            }))
        },
    },
    Known {
        device_type: DeviceType::DUMMY,
        name: "message",
        args: "TEXT",
        read: |args| {
            Some(Request::Dummy(dummy::DriverMsg {
                message: Some(only(args)?.to_owned()),
                ..dummy::DriverMsg::data()
            }))
        },
    },
    Known {
        device_type: DeviceType::ROBOCLAW,
        name: "speeds",
        args: "",
        read: |args| args.is_empty().then_some(Request::Speeds),
    },
    Known {
        device_type: DeviceType::ROBOCLAW,
        name: "drive",
        args: "LEFT_MM_S RIGHT_MM_S",
        read: |args| {
            let [left, right] = args else { return None };
            let speeds = WheelSpeeds::sides(left.parse().ok()?, right.parse().ok()?);
            Some(Request::Drive(speeds))
        },
    },
    Known {
        device_type: DeviceType::ROBOCLAW,
        name: "stop",
        args: "",
        read: |args| args.is_empty().then_some(Request::Drive(WheelSpeeds::STOP)),
    },
    Known {
        device_type: DeviceType::HOKUYO,
        name: "scan",
        args: "",
        read: |args| args.is_empty().then_some(Request::Scan),
    },
    Known {
        device_type: DeviceType::NINEDOF,
        name: "data",
        args: "[accel,gyro,magnet]",
        read: |args| ninedof::Request::data(args).map(Request::NineDof),
    },
    Known {
        device_type: DeviceType::NINEDOF,
        name: "self-test",
        args: "",
        read: |args| {
            let test = Request::NineDof(ninedof::Request::SelfTest);
            args.is_empty().then_some(test)
        },
    },
    Known {
        device_type: DeviceType::NINEDOF,
        name: "calibrate-gyro",
        args: "[SECONDS]",
        read: |args| ninedof::Request::calibrate_gyro(args).map(Request::NineDof),
    },
    Known {
        device_type: DeviceType::NINEDOF,
        name: "calibrate-magnet",
        args: "[SECONDS]",
        read: |args| ninedof::Request::calibrate_magnet(args).map(Request::NineDof),
    },
    Known {
        device_type: DeviceType::STARGAZER,
        name: "pose",
        args: "",
        read: |args| args.is_empty().then_some(Request::Pose),
    },
    Known {
        device_type: DeviceType::MAESTRO,
        name: "set-angle",
        args: "SERVO DEGREES",
        read: |args| {
            let (servo, degrees) = two(args)?;
            Some(Request::Maestro(maestro::set_angle(servo, degrees)))
        },
    },
    Known {
        device_type: DeviceType::MAESTRO,
        name: "set-same-angle",
        args: "SERVO[,SERVO...] DEGREES",
        read: |args| {
            let [servos, degrees] = args else { return None };
            let servos = servos.split(',').map(|servo| servo.parse().ok());
            let servos: Vec<_> = servos.collect::<Option<_>>()?;
            let message = maestro::set_same_angle(&servos, degrees.parse().ok()?);
            Some(Request::Maestro(message))
        },
    },
    Known {
        device_type: DeviceType::MAESTRO,
        name: "set-angles",
        args: "SERVO=DEGREES [SERVO=DEGREES...]",
        read: |args| {
            let pairs = args.iter().map(|arg| {
                let (servo, degrees) = arg.split_once('=')?;
                Some((servo.parse().ok()?, degrees.parse().ok()?))
            });
            let pairs: Vec<_> = pairs.collect::<Option<_>>()?;
            let message = maestro::set_angles(&pairs);
            (!pairs.is_empty()).then_some(Request::Maestro(message))
        },
    },
    Known {
        device_type: DeviceType::MAESTRO,
        name: "set-speed",
        args: "SERVO SPEED",
        read: |args| {
            let (servo, speed) = two(args)?;
            Some(Request::Maestro(maestro::set_speed(servo, speed)))
        },
    },
];

/// A request with its arguments.
pub(super) enum Request {
    List,
    Raw(Bytes),
    DummyStatus,
    Dummy(dummy::DriverMsg),
    Speeds,
    Drive(WheelSpeeds),
    Scan,
    NineDof(ninedof::Request),
    Pose,
    Maestro(amber_proto::maestro::DriverMsg),
}

/// A servo and a number.
fn two(args: &[String]) -> Option<(u32, i32)> {
    let [servo, number] = args else { return None };
    Some((servo.parse().ok()?, number.parse().ok()?))
}

/// The only argument.
pub(super) fn only(args: &[String]) -> Option<&str> {
    match args {
        [argument] => Some(argument),
        _ => None,
    }
}
