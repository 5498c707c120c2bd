//! The frames of VESC motor controllers: commands, and the answers to questions. PURE.
//!
//! A frame is a start byte, the length, the payload, its CRC16 and an end byte. The first byte of a
//! payload is the number of the command. All numbers are big-endian. Only questions are answered. A
//! command for a VESC on the CAN bus is packed into one for the VESC at the port; its answer arrives
//! like one of the latter.

use std::fmt;

use crate::wheels::crc16;

/// The start of a frame with one byte for the length.
const SHORT: u8 = 2;
/// The start of a frame with two bytes for the length.
const LONG: u8 = 3;
/// The end of a frame.
const END: u8 = 3;
/// The longest payload of the firmware.
const MAX_PAYLOAD: usize = 512;

/// Passes the rest of the payload on to a VESC on the CAN bus.
const FORWARD: u8 = 34;

/// A command. None of them changes what a VESC stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Asks for the firmware.
    Version,
    /// Asks for the state of the motor.
    Values,
    /// Turn at this speed, in electrical turns per minute.
    Erpm(i32),
    /// Brake with this current, in milliamperes; with 0 the motor rolls.
    Brake(i32),
}

impl Command {
    /// The frame of the command, for the VESC at the port or one behind it on the CAN bus.
    pub fn encode(self, can_id: Option<u8>) -> Vec<u8> {
        let mut payload = match can_id {
            Some(id) => vec![FORWARD, id],
            None => Vec::new(),
        };
        payload.push(self.number());
        if let Self::Erpm(argument) | Self::Brake(argument) = self {
            payload.extend(argument.to_be_bytes());
        }
        // At most 7 bytes.
        let mut frame = vec![SHORT, payload.len() as u8];
        frame.extend(&payload);
        frame.extend(crc16(&payload).to_be_bytes());
        frame.push(END);
        frame
    }

    /// The number of the command, and of its answer.
    pub fn number(self) -> u8 {
        match self {
            Self::Version => 0,
            Self::Values => 4,
            Self::Brake(_) => 7,
            Self::Erpm(_) => 8,
        }
    }
}

/// Finds frames in what arrives.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
}

/// What some bytes begin with.
enum Beginning<'a> {
    /// A frame: its payload, and its length.
    Frame(&'a [u8], usize),
    /// Perhaps a frame whose rest is missing.
    Part,
    Garbage,
}

impl Frames {
    /// Forgets the frame that has begun.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Adds bytes. Take all payloads before the next ones.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The payload of the next complete frame. After garbage it looks at every byte for the next one.
    pub fn next_payload(&mut self) -> Option<Vec<u8>> {
        for start in 0..self.bytes.len() {
            match beginning(&self.bytes[start..]) {
                Beginning::Frame(payload, length) => {
                    let payload = payload.to_vec();
                    self.bytes.drain(..start + length);
                    return Some(payload);
                }
                Beginning::Part => {
                    self.bytes.drain(..start);
                    return None;
                }
                Beginning::Garbage => {}
            }
        }
        self.bytes.clear();
        None
    }
}

fn beginning(bytes: &[u8]) -> Beginning<'_> {
    let (head, length) = match *bytes {
        [SHORT] | [LONG] | [LONG, _] => return Beginning::Part,
        [SHORT, length, ..] => (2, length.into()),
        [LONG, high, low, ..] => (3, u16::from_be_bytes([high, low]).into()),
        _ => return Beginning::Garbage,
    };
    // A long frame is for what a short one has no room for.
    let is_possible = match head {
        2 => length > 0,
        _ => (255..=MAX_PAYLOAD).contains(&length),
    };
    if !is_possible {
        return Beginning::Garbage;
    }
    let Some((payload, tail)) = (bytes.get(head..head + length + 3)).map(|it| it.split_at(length))
    else {
        return Beginning::Part;
    };
    match *tail {
        [high, low, END] if u16::from_be_bytes([high, low]) == crc16(payload) => {
            Beginning::Frame(payload, head + length + 3)
        }
        _ => Beginning::Garbage,
    }
}

/// What a VESC says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The two numbers of the firmware.
    pub firmware: (u8, u8),
    /// The name of the board.
    pub hardware: String,
    /// Whether it is a motor controller. Other devices of the makers speak like one.
    pub drives_motor: bool,
}

impl Version {
    /// The first firmware whose values are as [`Values::decode`] reads them.
    pub const OLDEST: (u8, u8) = (3, 33);

    /// Reads a payload. Firmware has added fields at the end again and again.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let (&[0, major, minor], rest) = payload.split_first_chunk()? else {
            return None;
        };
        let end = rest.iter().position(|byte| *byte == 0);
        let name = &rest[..end.unwrap_or(rest.len())];
        // Behind the name: its end, the serial number, and two settings.
        let kind = rest.get(name.len() + 1 + 12 + 2);
        let hardware = String::from_utf8_lossy(name);
        Some(Self {
            firmware: (major, minor),
            hardware: hardware.replace(char::is_control, "?"),
            drives_motor: kind.is_none_or(|kind| *kind == 0),
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.firmware;
        write!(f, "{major}.{minor:02}")?;
        match self.hardware.as_str() {
            "" => Ok(()),
            hardware => write!(f, " on {hardware}"),
        }
    }
}

/// The state of a motor and its VESC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Values {
    /// The temperature of its transistors, in tenths of a degree Celsius.
    pub temperature: i16,
    /// The speed, in electrical turns per minute.
    pub erpm: i32,
    /// The voltage of the battery, in tenths of a volt.
    pub battery_dv: i16,
    /// Why it does not drive.
    pub fault: Fault,
    /// Its number on the CAN bus; `None` with old firmware.
    pub can_id: Option<u8>,
    /// Whether a switch at the VESC keeps the motor off.
    pub is_switched_off: bool,
}

impl Values {
    /// Reads a payload. Old firmware ends earlier.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        if payload.first() != Some(&4) {
            return None;
        }
        let status = payload.get(73).copied().unwrap_or_default();
        Some(Self {
            temperature: i16::from_be_bytes(at(payload, 1)?),
            erpm: i32::from_be_bytes(at(payload, 23)?),
            battery_dv: i16::from_be_bytes(at(payload, 27)?),
            fault: Fault(*payload.get(53)?),
            can_id: payload.get(58).copied(),
            is_switched_off: status & 2 != 0,
        })
    }
}

/// The bytes from this place on.
fn at<const N: usize>(payload: &[u8], place: usize) -> Option<[u8; N]> {
    payload.get(place..)?.first_chunk().copied()
}

/// The fault that a VESC reports; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fault(pub u8);

/// The names of the faults as VESC Tool shows them, by their numbers, and what to check.
const FAULTS: [(&str, &str); 30] = [
    ("NONE", ""),
    ("OVER_VOLTAGE", BATTERY),
    ("UNDER_VOLTAGE", BATTERY),
    ("DRV", MOTOR),
    (
        "ABS_OVER_CURRENT",
        "whether a wheel is blocked, and the current limits in VESC Tool",
    ),
    ("OVER_TEMP_FET", "whether the VESC gets air"),
    (
        "OVER_TEMP_MOTOR",
        "whether the motor is hot, and its temperature sensor in VESC Tool",
    ),
    ("GATE_DRIVER_OVER_VOLTAGE", BATTERY),
    ("GATE_DRIVER_UNDER_VOLTAGE", BATTERY),
    ("MCU_UNDER_VOLTAGE", BATTERY),
    ("BOOTING_FROM_WATCHDOG_RESET", RESTART),
    ("ENCODER_SPI", ENCODER),
    ("ENCODER_SINCOS_BELOW_MIN_AMPLITUDE", ENCODER),
    ("ENCODER_SINCOS_ABOVE_MAX_AMPLITUDE", ENCODER),
    ("FLASH_CORRUPTION", FIRMWARE),
    ("HIGH_OFFSET_CURRENT_SENSOR_1", RESTART),
    ("HIGH_OFFSET_CURRENT_SENSOR_2", RESTART),
    ("HIGH_OFFSET_CURRENT_SENSOR_3", RESTART),
    ("UNBALANCED_CURRENTS", MOTOR),
    ("BRK", "the input for the brake at the VESC"),
    ("RESOLVER_LOT", ENCODER),
    ("RESOLVER_DOS", ENCODER),
    ("RESOLVER_LOS", ENCODER),
    ("FLASH_CORRUPTION_APP_CFG", FIRMWARE),
    ("FLASH_CORRUPTION_MC_CFG", FIRMWARE),
    ("ENCODER_NO_MAGNET", ENCODER),
    ("ENCODER_MAGNET_TOO_STRONG", ENCODER),
    ("PHASE_FILTER", MOTOR),
    ("ENCODER_FAULT", ENCODER),
    ("LV_OUTPUT_FAULT", "what the VESC supplies with 5 V"),
];

const BATTERY: &str = "the battery and its wires, and the voltage limits in VESC Tool";
const MOTOR: &str = "the wires of the motor, for a short circuit or a loose one";
const ENCODER: &str = "the encoder of the motor, its wires, and its settings in VESC Tool";
const RESTART: &str = "whether it remains after the VESC was switched off and on";
const FIRMWARE: &str = "the settings in VESC Tool: write them, or the firmware, again";

impl Fault {
    /// Without a fault.
    pub const NONE: Self = Self(0);
    /// The battery is too low to drive.
    pub const BATTERY_LOW: Self = Self(2);
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match FAULTS.get(usize::from(self.0)) {
            Some((name, check)) => write!(f, "{name}: check {check}"),
            None => write!(f, "number {}: look it up in VESC Tool", self.0),
        }
    }
}

#[cfg(test)]
mod tests;
