//! The byte protocol of RoboClaw controllers. PURE.
//!
//! There are two generations. They differ in the checksum at the end of a packet and in the width
//! of the status; see [`Dialect`]. All numbers are big-endian.

use std::time::Duration;

pub(super) use crate::wheels::crc16;

/// How to communicate with a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The end of a packet, and whether writes are acknowledged.
    pub check: Check,
    /// The number of status bytes.
    pub status: StatusWidth,
}

/// The checksum at the end of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// A 7-bit sum; writes are not acknowledged.
    Legacy,
    /// A 7-bit sum with bit 7 set, which asks old firmware to acknowledge writes.
    LegacyAck,
    /// A CRC16; writes are always acknowledged.
    Crc16,
}

/// The number of status bytes, which determines the meaning of the bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusWidth {
    /// One byte, before the CRC.
    U8,
    /// Two bytes, firmware 4.1.
    U16,
    /// Four bytes, later firmware.
    U32,
}

/// One of the two motors of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motor {
    /// The right wheel.
    M1,
    /// The left wheel.
    M2,
}

/// A command to a controller or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// 21: the firmware version.
    Version,
    /// 90: its errors and warnings.
    Status,
    /// 18, 19: the speed of a motor.
    Speed(Motor),
    /// 24: the voltage of the main battery.
    MainBattery,
    /// 25: the voltage of the logic battery.
    LogicBattery,
    /// 82: the temperature.
    Temperature,
    /// 37: drive both motors at these speeds, in pulses per second.
    Drive {
        /// The right wheel.
        m1: i32,
        /// The left wheel.
        m2: i32,
    },
    /// 34 with zeros: release both motors.
    Release,
    /// 55, 56: the speed control of a motor, as the controller has it.
    Pid(Motor),
    /// 28, 29: the same, to set it.
    SetPid(Motor, Pid),
    /// 92, 93: quadrature encoders.
    SetQuadrature(Motor),
    /// 14: stop after this many tenths of a second without a packet.
    SetTimeout(u8),
}

/// The constants of the control loop of a motor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pid {
    /// Proportional, times 65536.
    pub p: u32,
    /// Integral, times 65536.
    pub i: u32,
    /// Differential, times 65536.
    pub d: u32,
    /// Pulses per second at full power.
    pub max_qpps: u32,
}

/// The form of the reply to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// No reply.
    Nothing,
    /// A fixed number of bytes.
    Bytes(usize),
    /// Any number of bytes, followed by silence.
    UntilSilence,
}

/// The silence that ends a reply of unknown length. Longer than a USB adapter buffers bytes before
/// it passes them on.
pub const SILENCE: Duration = Duration::from_millis(30);

/// After a pause of this length a controller discards an incomplete packet.
pub const PACKET_GAP: Duration = Duration::from_millis(10);

/// The longest reply: the version, with its checksum.
pub const MAX_REPLY: usize = 64;

/// A decoded reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The controller accepted a write (or cannot acknowledge it).
    Accepted,
    /// Pulses per second, or tenths of a volt or of a degree.
    Number(i32),
    /// Errors and warnings.
    Status(Status),
    /// The speed control of a motor.
    Pid(Pid),
    /// The firmware, and the checksum at the end of the packet.
    Version(String, Check),
}

/// A reply is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadReply {
    /// The checksum or the length is wrong.
    #[error("sends invalid replies")]
    Check,
    /// A byte other than FF came back.
    #[error("does not acknowledge")]
    Refused,
}

impl Command {
    /// Encodes the packet.
    pub fn encode(self, address: u8, check: Check) -> Vec<u8> {
        let mut packet = vec![address, self.number()];
        match self {
            // A request has no checksum.
            Self::Version
            | Self::Status
            | Self::Speed(_)
            | Self::Pid(_)
            | Self::MainBattery
            | Self::LogicBattery
            | Self::Temperature => return packet,
            Self::Drive { m1, m2 } => {
                packet.extend(m1.to_be_bytes());
                packet.extend(m2.to_be_bytes());
            }
            Self::Release => packet.extend([0; 4]),
            Self::SetPid(_, pid) => {
                for number in [pid.d, pid.p, pid.i, pid.max_qpps] {
                    packet.extend(number.to_be_bytes());
                }
            }
            Self::SetQuadrature(_) => packet.push(0),
            Self::SetTimeout(tenths) => packet.push(tenths),
        }
        match check {
            Check::Legacy => packet.push(sum7(&packet)),
            Check::LegacyAck => packet.push(sum7(&packet) | 0x80),
            Check::Crc16 => packet.extend(crc16(&packet).to_be_bytes()),
        }
        packet
    }

    /// The form of the reply; without a dialect, its end is detected by silence.
    pub fn shape(self, dialect: Option<Dialect>) -> Shape {
        let Some(Dialect { check, status }) = dialect else {
            return Shape::UntilSilence;
        };
        let check_length = if check == Check::Crc16 { 2 } else { 1 };
        match self {
            Self::Version => Shape::UntilSilence,
            Self::Status => Shape::Bytes(status.bytes() + check_length),
            Self::Speed(_) => Shape::Bytes(5 + check_length),
            Self::Pid(_) => Shape::Bytes(16 + check_length),
            Self::MainBattery | Self::LogicBattery | Self::Temperature => {
                Shape::Bytes(2 + check_length)
            }
            _ if check == Check::Legacy => Shape::Nothing,
            _ => Shape::Bytes(1),
        }
    }

    /// Decodes the reply.
    ///
    /// The checksum covers address and command, so a late reply to another request is not taken for
    /// the reply to this one.
    ///
    /// # Errors
    /// The reply is invalid.
    pub fn decode(self, address: u8, check: Check, reply: &[u8]) -> Result<Reply, BadReply> {
        match self {
            Self::Version => {
                let (data, check) = detect(address, self.number(), reply)?;
                let text = String::from_utf8_lossy(data);
                let text = text.trim_end_matches(['\0', '\n', '\r', ' ']);
                Ok(Reply::Version(text.to_owned(), check))
            }
            Self::Status => {
                let data = checked(address, self.number(), check, reply)?;
                Status::decode(data).map(Reply::Status)
            }
            Self::Speed(_) => match *checked(address, self.number(), check, reply)? {
                // The number is signed. The direction byte after it repeats the sign; applying both
                // would invert the direction.
                [a, b, c, d, _direction] => Ok(Reply::Number(i32::from_be_bytes([a, b, c, d]))),
                _ => Err(BadReply::Check),
            },
            Self::Pid(_) => {
                let data = checked(address, self.number(), check, reply)?;
                Pid::decode(data).map(Reply::Pid)
            }
            Self::MainBattery | Self::LogicBattery | Self::Temperature => {
                match *checked(address, self.number(), check, reply)? {
                    [high, low] => Ok(Reply::Number(u16::from_be_bytes([high, low]).into())),
                    _ => Err(BadReply::Check),
                }
            }
            _ => match reply {
                [] if check == Check::Legacy => Ok(Reply::Accepted),
                [0xFF] if check != Check::Legacy => Ok(Reply::Accepted),
                _ => Err(BadReply::Refused),
            },
        }
    }

    /// The number of the command.
    pub fn number(self) -> u8 {
        match self {
            Self::SetTimeout(_) => 14,
            Self::Speed(Motor::M1) => 18,
            Self::Speed(Motor::M2) => 19,
            Self::Version => 21,
            Self::MainBattery => 24,
            Self::LogicBattery => 25,
            Self::SetPid(Motor::M1, _) => 28,
            Self::SetPid(Motor::M2, _) => 29,
            Self::Release => 34,
            Self::Drive { .. } => 37,
            Self::Pid(Motor::M1) => 55,
            Self::Pid(Motor::M2) => 56,
            Self::Temperature => 82,
            Self::Status => 90,
            Self::SetQuadrature(Motor::M1) => 92,
            Self::SetQuadrature(Motor::M2) => 93,
        }
    }
}

impl Pid {
    /// The order is not that of the command that sets it.
    fn decode(data: &[u8]) -> Result<Self, BadReply> {
        let (numbers, rest) = data.as_chunks::<4>();
        match (numbers, rest) {
            (&[p, i, d, max_qpps], []) => {
                let [p, i, d, max_qpps] = [p, i, d, max_qpps].map(u32::from_be_bytes);
                Ok(Self { p, i, d, max_qpps })
            }
            _ => Err(BadReply::Check),
        }
    }
}

/// Errors and warnings as the controller has sent them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The bits; their meaning depends on the width.
    pub bits: u32,
    /// The number of bytes.
    pub width: StatusWidth,
}

/// A fault of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The main battery is too low to drive.
    BatteryLow,
    /// A fault that stops the motors; the text names it.
    Error(&'static str),
    /// A fault that does not stop the motors.
    Warning(&'static str),
}

impl Status {
    /// Whether there is no fault.
    pub fn is_clean(self) -> bool {
        self.bits == 0
    }

    /// The bits that are set in both. Statuses of different widths share no bits.
    pub fn and(self, other: Self) -> Self {
        let bits = if self.width == other.width {
            self.bits & other.bits
        } else {
            0
        };
        Self { bits, ..self }
    }

    /// The faults that the bits stand for.
    pub fn faults(self) -> impl Iterator<Item = Fault> {
        let table: &[(u32, Fault)] = match self.width {
            StatusWidth::U8 => FAULTS_U8,
            StatusWidth::U16 => FAULTS_U16,
            StatusWidth::U32 => FAULTS_U32,
        };
        let known = table.iter().fold(0, |known, (mask, _)| known | mask);
        let unknown = (self.bits & !known != 0).then_some(Fault::Warning("an unknown bit"));
        (table.iter())
            .filter(move |(mask, _)| self.bits & mask != 0)
            .map(|(_, fault)| *fault)
            .chain(unknown)
    }

    fn decode(data: &[u8]) -> Result<Self, BadReply> {
        let (bits, width) = match *data {
            [a] => (a.into(), StatusWidth::U8),
            [a, b] => (u16::from_be_bytes([a, b]).into(), StatusWidth::U16),
            [a, b, c, d] => (u32::from_be_bytes([a, b, c, d]), StatusWidth::U32),
            _ => return Err(BadReply::Check),
        };
        Ok(Self { bits, width })
    }
}

/// Note 0x20: low battery here, high battery in the next table.
const FAULTS_U8: &[(u32, Fault)] = &[
    (0x01, Fault::Error("M1 over-current")),
    (0x02, Fault::Error("M2 over-current")),
    (0x04, Fault::Error("emergency stop")),
    (0x08, Fault::Error("temperature")),
    (0x10, Fault::Error("main battery high")),
    (0x20, Fault::BatteryLow),
    (0x40, Fault::Error("logic battery high")),
    (0x80, Fault::Error("logic battery low")),
];

const FAULTS_U16: &[(u32, Fault)] = &[
    (0x0001, Fault::Error("M1 over-current")),
    (0x0002, Fault::Error("M2 over-current")),
    (0x0004, Fault::Error("emergency stop")),
    (0x0008, Fault::Error("temperature 1")),
    (0x0010, Fault::Error("temperature 2")),
    (0x0020, Fault::Error("main battery high")),
    (0x0040, Fault::Error("logic battery high")),
    (0x0080, Fault::Error("logic battery low")),
    (0x0100, Fault::Error("M1 driver fault")),
    (0x0200, Fault::Error("M2 driver fault")),
    (0x0400, Fault::Warning("main battery high")),
    (0x0800, Fault::BatteryLow),
    (0x1000, Fault::Warning("temperature 1")),
    (0x2000, Fault::Warning("temperature 2")),
];

const FAULTS_U32: &[(u32, Fault)] = &[
    (0x0000_0001, Fault::Error("emergency stop")),
    (0x0000_0002, Fault::Error("temperature 1")),
    (0x0000_0004, Fault::Error("temperature 2")),
    (0x0000_0008, Fault::Error("main battery high")),
    (0x0000_0010, Fault::Error("logic battery high")),
    (0x0000_0020, Fault::Error("logic battery low")),
    (0x0000_0040, Fault::Error("M1 driver fault")),
    (0x0000_0080, Fault::Error("M2 driver fault")),
    (0x0000_0100, Fault::Warning("M1 speed error")),
    (0x0000_0200, Fault::Warning("M2 speed error")),
    (0x0000_0400, Fault::Warning("M1 position error")),
    (0x0000_0800, Fault::Warning("M2 position error")),
    (0x0000_1000, Fault::Error("M1 over-current")),
    (0x0000_2000, Fault::Error("M2 over-current")),
    (0x0001_0000, Fault::Warning("M1 over-current")),
    (0x0002_0000, Fault::Warning("M2 over-current")),
    (0x0004_0000, Fault::Warning("main battery high")),
    (0x0008_0000, Fault::BatteryLow),
    (0x0010_0000, Fault::Warning("temperature 1")),
    (0x0020_0000, Fault::Warning("temperature 2")),
    (0x0100_0000, Fault::Warning("M1 position limit")),
    (0x0200_0000, Fault::Warning("M2 position limit")),
];

impl StatusWidth {
    fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 => 4,
        }
    }
}

/// The data of a reply whose end shows the generation. CRC16 is tried first: the last byte of a CRC
/// may happen to equal the 7-bit sum, while the reverse is very unlikely.
fn detect(address: u8, command: u8, reply: &[u8]) -> Result<(&[u8], Check), BadReply> {
    [Check::Crc16, Check::Legacy]
        .into_iter()
        .find_map(|check| {
            let data = checked(address, command, check, reply).ok()?;
            Some((data, check))
        })
        .ok_or(BadReply::Check)
}

/// The data of a reply with a valid checksum.
pub(super) fn checked(
    address: u8,
    command: u8,
    check: Check,
    reply: &[u8],
) -> Result<&[u8], BadReply> {
    let tail = if check == Check::Crc16 { 2 } else { 1 };
    let length = reply.len().checked_sub(tail).ok_or(BadReply::Check)?;
    let (data, tail) = reply.split_at(length);
    let all = [&[address, command], data].concat();
    let is_right = match *tail {
        [sum] => sum == sum7(&all),
        [high, low] => u16::from_be_bytes([high, low]) == crc16(&all),
        _ => false,
    };
    is_right.then_some(data).ok_or(BadReply::Check)
}

pub(super) fn sum7(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) & 0x7F
}

#[cfg(test)]
mod tests;
