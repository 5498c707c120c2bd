//! Commands of outside programs to a vehicle: bodies of the packets on port 20100. PURE.

use super::layout::layouts;

layouts! {
/// A short command, 24 bytes with its magic number.
pub struct ShortCommand {
    /// The [`ControlMode`], as a number.
    mode: i32,
    /// Four numbers; the mode defines their meaning.
    controls: [f32; 4],
}

/// A full command, 120 bytes with its head and 32 zero bytes at the end.
pub struct FullCommand {
    /// Time since the start of the sender, in milliseconds.
    time_boot_ms: u32,
    /// The number of the vehicle, from 1.
    copter_id: u32,
    /// Bits of the fields to ignore: the position type mask of MAVLink, see [`ignored`].
    modes: u32,
    /// The frame of MAVLink: [`FRAME_LOCAL_NED`] or [`FRAME_BODY`].
    flags: u32,
    /// Position, in metres.
    position_m: [f32; 3],
    /// Velocity, in m/s.
    velocity_m_s: [f32; 3],
    /// Acceleration, in m/s².
    acceleration_m_s2: [f32; 3],
    /// Yaw, in radians.
    yaw_rad: f32,
    /// Yaw rate, in rad/s.
    yaw_rate_rad_s: f32,
    /// Unused.
    unused: [f32; 5],
}

/// Start the simulation again, 8 bytes with its magic number. It is sent to all vehicles.
pub struct Restart {
    /// Time until then; the unit is not documented.
    delay: i32,
}
}

/// Coordinates N, E, D from the take-off point.
pub const FRAME_LOCAL_NED: u32 = 1;
/// Coordinates forward, right, down of the vehicle.
pub const FRAME_BODY: u32 = 8;

/// Bits of [`FullCommand::modes`]: fields that the command does not set.
pub mod ignored {
    /// The three coordinates of the position.
    pub const POSITION: u32 = 0b111;
    /// The three coordinates of the velocity.
    pub const VELOCITY: u32 = 0b111 << 3;
    /// The three coordinates of the acceleration.
    pub const ACCELERATION: u32 = 0b111 << 6;
    pub const YAW: u32 = 1 << 10;
    pub const YAW_RATE: u32 = 1 << 11;
}

/// The meaning of the four numbers of a [`ShortCommand`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ControlMode {
    /// A negative mode: no command.
    None,
    /// Velocity N, E, D in m/s, yaw rate in rad/s.
    VelocityNed,
    /// Velocity forward, right, down in m/s, yaw rate in rad/s.
    VelocityBody,
    /// Position N, E, D from the take-off point in metres, yaw in radians.
    PositionNed,
    /// Position forward, right, down in metres, yaw in radians.
    PositionBody,
    /// Roll, pitch, yaw and thrust.
    Attitude,
    /// Acceleration. Published programs disagree on modes 7 and 8.
    Acceleration,
    /// Arm (first number not 0) or disarm (0).
    Arm,
    /// Cruise speed and loiter radius.
    Cruise,
    /// Take off to a local position.
    TakeOffLocal,
    /// Take off to a GPS position.
    TakeOffGps,
    /// Speed, height and heading.
    SpeedHeightHeading,
    /// Any other mode.
    Unknown(i32),
}

impl ControlMode {
    /// From the number on the wire.
    pub fn from_number(number: i32) -> Self {
        match number {
            ..0 => Self::None,
            0 => Self::VelocityNed,
            1 => Self::VelocityBody,
            2 => Self::PositionNed,
            3 => Self::PositionBody,
            4 => Self::Attitude,
            6..=8 => Self::Acceleration,
            9 => Self::Arm,
            10 => Self::Cruise,
            11 => Self::TakeOffLocal,
            12 => Self::TakeOffGps,
            13 => Self::SpeedHeightHeading,
            other => Self::Unknown(other),
        }
    }
}
