//! The parts, what a client asks of each, and how soon each must have recovered. PURE.

use std::time::Duration;

use amber_proto::maestro::SetAngleCommand;
use amber_proto::ninedof::SubscribeAction;
use amber_proto::roboclaw::MotorsSpeed;
use amber_proto::{
    self as proto, DeviceMessage, MsgType, battery_state, board, gamepad, gps, hokuyo, maestro,
    mediator, ninedof, roboclaw,
};
use prost::Message;

/// What a part does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It scans.
    Scanner,
    /// It measures motion.
    MotionSensor,
    /// It drives.
    Wheels,
    /// It turns servos.
    Servos,
    /// It measures a battery.
    Battery,
    /// It knows where it is.
    Receiver,
    /// A person holds it.
    Gamepad,
    /// It has pins.
    Board,
}

/// A part with its driver.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its name for people.
    pub name: &'static str,
    /// What it does.
    pub kind: Kind,
    /// The options of `amber sim`.
    pub robot: &'static [&'static str],
    /// The name of the device there.
    pub device: &'static str,
    /// The driver with its options.
    pub driver: &'static [&'static str],
    /// The time between two readings.
    pub period_ms: u64,
    /// How soon it must have recovered, in the order of [`Cause::ALL`](super::watch::Cause::ALL). A
    /// driver tries again after 2 s at most, and then the part starts.
    pub limits_s: [u64; 5],
}

impl Part {
    /// The time between two readings.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.period_ms)
    }

    /// How soon it must have recovered from each cause.
    #[must_use]
    pub fn limits(&self) -> [Duration; 5] {
        self.limits_s.map(Duration::from_secs)
    }
}

const fn part(
    name: &'static str,
    kind: Kind,
    (robot, device): (&'static [&'static str], &'static str),
    driver: &'static [&'static str],
    period_ms: u64,
    limits_s: [u64; 5],
) -> Part {
    Part {
        name,
        kind,
        robot,
        device,
        driver,
        period_ms,
        limits_s,
    }
}

/// All parts. An RPLIDAR says without a checksum what it is and how it sends: if a bit of that was wrong,
/// the driver notices after 12 s that no turn is complete.
#[rustfmt::skip]
pub const PARTS: &[Part] = &[
    part("ldrobot ld19", Kind::Scanner, (&["--ldrobot", "ld19"], "ldrobot"), &["ldrobot", "--model", "ld19"], 100, [2, 4, 4, 4, 1]),
    part("ldrobot stl-27l", Kind::Scanner, (&["--ldrobot", "stl-27l"], "ldrobot"), &["ldrobot", "--model", "stl-27l"], 100, [2, 4, 4, 4, 1]),
    part("ldrobot ld14p", Kind::Scanner, (&["--ldrobot", "ld14p"], "ldrobot"), &["ldrobot", "--model", "ld14p"], 167, [2, 4, 4, 4, 1]),
    part("rplidar a1", Kind::Scanner, (&["--rplidar", "a1"], "rplidar"), &["rplidar"], 150, [2, 5, 5, 20, 1]),
    part("rplidar c1", Kind::Scanner, (&["--rplidar", "c1"], "rplidar"), &["rplidar"], 100, [2, 5, 5, 20, 1]),
    part("rplidar s3", Kind::Scanner, (&["--rplidar", "s3"], "rplidar"), &["rplidar"], 100, [2, 5, 5, 20, 1]),
    part("ydlidar x2", Kind::Scanner, (&["--ydlidar", "x2"], "ydlidar"), &["ydlidar", "--model", "x2"], 140, [2, 4, 4, 4, 1]),
    part("ydlidar x4", Kind::Scanner, (&["--ydlidar", "x4"], "ydlidar"), &["ydlidar", "--model", "x4"], 140, [2, 4, 4, 4, 1]),
    part("ydlidar g4", Kind::Scanner, (&["--ydlidar", "g4"], "ydlidar"), &["ydlidar", "--model", "g4"], 140, [2, 4, 4, 4, 1]),
    part("ydlidar t-mini", Kind::Scanner, (&["--ydlidar", "t-mini"], "ydlidar"), &["ydlidar", "--model", "t-mini"], 100, [2, 4, 4, 4, 1]),
    part("mpu mpu6050", Kind::MotionSensor, (&["--mpu", "mpu6050"], "mpu"), &["mpu"], 10, [1, 3, 3, 3, 0]),
    part("mpu mpu9250", Kind::MotionSensor, (&["--mpu", "mpu9250"], "mpu"), &["mpu"], 10, [1, 3, 3, 3, 0]),
    part("lsm6dsox", Kind::MotionSensor, (&["--lsm6dsox", "lsm6dsox"], "lsm6dsox"), &["lsm6dsox"], 10, [1, 3, 3, 3, 0]),
    part("icm20948", Kind::MotionSensor, (&["--icm20948", "icm20948"], "icm20948"), &["icm20948"], 10, [1, 3, 3, 3, 0]),
    part("bno055", Kind::MotionSensor, (&["--bno055", "bno055"], "bno055"), &["bno055"], 10, [2, 4, 4, 4, 0]),
    part("pca9685", Kind::Servos, (&["--pca9685"], "pca9685"), &["pca9685"], 50, [1, 3, 3, 3, 0]),
    part("diffdrive bridge", Kind::Wheels, (&["--diffdrive", "bridge"], "diffdrive"), &["diffdrive", "--counts-per-turn", "1865", "--wheel-diameter-mm", "120"], 50, [3, 4, 4, 4, 2]),
    part("diffdrive andino", Kind::Wheels, (&["--diffdrive", "andino"], "diffdrive"), &["diffdrive", "--counts-per-turn", "1865", "--wheel-diameter-mm", "120"], 50, [3, 4, 4, 4, 2]),
    part("create2", Kind::Wheels, (&["--create2"], "create2"), &["create2"], 50, [1, 4, 4, 4, 2]),
    part("vesc", Kind::Wheels, (&["--vesc", "6.02"], "vesc"), &["vesc", "--can-id", "12", "--pole-pairs", "7", "--gear-ratio", "10", "--wheel-diameter-mm", "120", "--min-erpm", "100"], 50, [1, 4, 4, 4, 2]),
    part("odrive", Kind::Wheels, (&["--odrive", "0.5.6"], "odrive"), &["odrive", "--wheel-diameter-mm", "120"], 50, [1, 4, 4, 4, 2]),
    part("ina2xx ina219", Kind::Battery, (&["--ina2xx", "ina219"], "ina2xx"), &["ina2xx", "--cells", "3", "--chemistry", "li-ion"], 1_000, [2, 3, 3, 3, 0]),
    part("ina2xx ina226", Kind::Battery, (&["--ina2xx", "ina226"], "ina2xx"), &["ina2xx", "--shunt-mohm", "2"], 1_000, [2, 3, 3, 3, 0]),
    part("gps neo-m8", Kind::Receiver, (&["--gps", "neo-m8"], "gps"), &["gps"], 1_000, [4, 6, 4, 3, 3]),
    part("gps zed-f9p", Kind::Receiver, (&["--gps", "zed-f9p"], "gps"), &["gps"], 200, [4, 6, 4, 3, 3]),
    part("gamepad", Kind::Gamepad, (&["--gamepad", "xbox"], "gamepad"), &["gamepad"], 500, [1, 3, 2, 2, 2]),
    part("firmata uno", Kind::Board, (&["--firmata", "uno"], "firmata"), &["firmata", "--pin", "led=13:output", "--pin", "bumper=2:input-pull-up", "--pin", "battery=A0:analog"], 100, [5, 6, 4, 3, 2]),
];

impl Kind {
    /// Whether it is a chip on a bus; others are at a port.
    #[must_use]
    pub fn is_at_bus(self) -> bool {
        matches!(self, Self::MotionSensor | Self::Servos | Self::Battery)
    }

    /// What its driver writes to a port that it has opened, before anything else.
    #[must_use]
    pub fn greeting(self) -> &'static [u8] {
        match self {
            // The simulated gamepad is asked what it is.
            Self::Gamepad => b"\n",
            _ => b"",
        }
    }

    /// The message that subscribes to its readings.
    #[must_use]
    pub fn subscription(self) -> Option<Vec<u8>> {
        match self {
            Self::Servos => None,
            Self::MotionSensor => {
                let message = ninedof::DriverMsg {
                    subscribe_action: Some(SubscribeAction {
                        freq: Some(10),
                        accel: Some(true),
                        gyro: Some(true),
                        magnet: Some(true),
                        extended: Some(true),
                    }),
                    ..ninedof::DriverMsg::data()
                };
                Some(message.encode_to_vec())
            }
            _ => {
                let message = proto::DriverMsg {
                    r#type: MsgType::Subscribe.into(),
                    ..proto::DriverMsg::default()
                };
                Some(message.encode_to_vec())
            }
        }
    }

    /// The time between two commands, if it takes commands.
    #[must_use]
    pub fn telling(self) -> Option<Duration> {
        match self {
            Self::Wheels => Some(Duration::from_millis(500)),
            Self::Servos => Some(Duration::from_millis(50)),
            _ => None,
        }
    }

    /// A command: to turn on the spot, to and fro, or to turn a servo.
    #[must_use]
    pub fn command(self, number: u32) -> Vec<u8> {
        if self == Self::Servos {
            let message = maestro::DriverMsg {
                set_angle_command: Some(SetAngleCommand {
                    servo_address: number % 16,
                    angle: 60 + (number / 16 % 60) as i32,
                }),
                syn_num: Some(number),
                ..maestro::DriverMsg::data()
            };
            let wish = mediator::DriverMsg {
                want_outcome: Some(true),
                ..mediator::DriverMsg::data()
            };
            return [message.encode_to_vec(), wish.encode_to_vec()].concat();
        }
        let speed = if (number / 10).is_multiple_of(2) {
            150
        } else {
            -150
        };
        let message = roboclaw::DriverMsg {
            motors_command: Some(MotorsSpeed {
                front_left_speed: Some(speed),
                front_right_speed: Some(-speed),
                rear_left_speed: Some(speed),
                rear_right_speed: Some(-speed),
            }),
            ..roboclaw::DriverMsg::data()
        };
        message.encode_to_vec()
    }

    /// Whether a client learns the outcome of each command.
    #[must_use]
    pub fn has_outcomes(self) -> bool {
        self == Self::Servos
    }

    /// Whether a message is the outcome of a command.
    #[must_use]
    pub fn is_outcome(self, message: &[u8]) -> bool {
        self.has_outcomes()
            && mediator::DriverMsg::decode(message).is_ok_and(|it| it.outcome.is_some())
    }

    /// Whether a message is a reading (or that a command is carried out), or the opposite.
    #[must_use]
    pub fn reading(self, message: &[u8]) -> Option<bool> {
        let has = match self {
            Self::Scanner => hokuyo::DriverMsg::decode(message).ok()?.scan.is_some(),
            Self::MotionSensor => {
                let data = ninedof::DriverMsg::decode(message).ok()?.sensor_data?;
                data.accel.is_some() && data.gyro.is_some()
            }
            Self::Wheels => {
                let speeds = roboclaw::DriverMsg::decode(message).ok()?.current_speed;
                speeds.is_some()
            }
            Self::Servos => {
                let outcome = mediator::DriverMsg::decode(message).ok()?.outcome?;
                return Some(outcome.refused.is_none());
            }
            Self::Battery => {
                let state = battery_state::DriverMsg::decode(message)
                    .ok()?
                    .battery_state?;
                state.voltage.is_some()
            }
            Self::Receiver => {
                let fix = gps::DriverMsg::decode(message).ok()?.fix?;
                fix.latitude.is_some() && fix.longitude.is_some()
            }
            Self::Gamepad => {
                let state = gamepad::DriverMsg::decode(message).ok()?.gamepad_state?;
                state.connected()
            }
            Self::Board => board::DriverMsg::decode(message).ok()?.pins.is_some(),
        };
        has.then_some(true)
    }
}
