//! The byte protocol of a Pololu Maestro. PURE.
//!
//! A byte with bit 7 set starts a packet. Numbers have 7 bits per byte, the low byte first. Targets
//! are in quarters of a microsecond.

/// How packets start and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Framing {
    /// The device number of the Pololu protocol, for several devices on one line; `None` for the
    /// compact protocol.
    pub device: Option<u8>,
    /// Packets end with a CRC.
    pub crc: bool,
}

/// A command to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// The pulse width for a servo, in quarters of a microsecond.
    SetTarget {
        servo: u8,
        /// At most 16383.
        quarters_us: u16,
    },
    /// How fast the pulse width of a servo changes.
    SetSpeed {
        servo: u8,
        /// Quarters of a microsecond per 10 ms, at most 16383; 0 for no limit.
        speed: u16,
    },
    /// Read the errors, two bytes.
    GetErrors,
    /// Read the pulse width that a servo gets, two bytes in quarters of a microsecond; 0 for none.
    GetPosition { servo: u8 },
}

impl Command {
    /// Encodes the command.
    pub fn bytes(self, framing: Framing) -> Vec<u8> {
        let low = |number: u16| (number & 0x7F) as u8;
        let high = |number: u16| (number >> 7 & 0x7F) as u8;
        let (command, data) = match self {
            Self::SetTarget { servo, quarters_us } => {
                (0x84, vec![servo, low(quarters_us), high(quarters_us)])
            }
            Self::SetSpeed { servo, speed } => (0x87, vec![servo, low(speed), high(speed)]),
            Self::GetErrors => (0xA1, Vec::new()),
            Self::GetPosition { servo } => (0x90, vec![servo]),
        };
        let mut bytes = match framing.device {
            None => vec![command],
            Some(device) => vec![0xAA, device, command & 0x7F],
        };
        bytes.extend(data.iter().map(|byte| byte & 0x7F));
        if framing.crc {
            bytes.push(crc7(&bytes));
        }
        bytes
    }
}

/// Names the errors; `None` if an undefined bit is set.
pub fn errors(bytes: [u8; 2]) -> Option<Vec<&'static str>> {
    const NAMES: [&str; 9] = [
        "serial signal",
        "serial overrun",
        "serial buffer full",
        "serial CRC",
        "serial protocol",
        "serial timeout",
        "script stack",
        "script call stack",
        "script program counter",
    ];
    let bits = u16::from_le_bytes(bytes);
    let is_sound = bits >> NAMES.len() == 0;
    let set = (0..).zip(NAMES).filter(|(bit, _)| bits >> bit & 1 != 0);
    is_sound.then(|| set.map(|(_, name)| name).collect())
}

fn crc7(bytes: &[u8]) -> u8 {
    /// Reflected, in the bit order of the wire.
    const POLYNOMIAL: u8 = 0x91;
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ byte, |crc, _| match crc & 1 {
            0 => crc >> 1,
            _ => (crc ^ POLYNOMIAL) >> 1,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servos::MAX_SPEED;

    const COMPACT: Framing = Framing {
        device: None,
        crc: false,
    };

    fn target(servo: u8, quarters_us: u16) -> Command {
        Command::SetTarget { servo, quarters_us }
    }

    #[test]
    fn commands_match_the_bytes_of_the_manual() {
        let middle = target(0, 6000);
        assert_eq!(middle.bytes(COMPACT), [0x84, 0x00, 0x70, 0x2E]);
        let pololu = Framing {
            device: Some(12),
            crc: false,
        };
        assert_eq!(middle.bytes(pololu), [0xAA, 0x0C, 0x04, 0x00, 0x70, 0x2E]);
        let checked = Framing {
            device: None,
            crc: true,
        };
        assert_eq!(middle.bytes(checked), [0x84, 0x00, 0x70, 0x2E, 0x2B]);
        assert_eq!(target(0, 9600).bytes(COMPACT), [0x84, 0x00, 0x00, 0x4B]);
        assert_eq!(target(0, 7800).bytes(COMPACT), [0x84, 0x00, 0x78, 0x3C]);
        assert_eq!(target(0, 4200).bytes(COMPACT), [0x84, 0x00, 0x68, 0x20]);
        assert_eq!(target(0, 2400).bytes(COMPACT), [0x84, 0x00, 0x60, 0x12]);
        let speed = Command::SetSpeed {
            servo: 5,
            speed: 140,
        };
        assert_eq!(speed.bytes(COMPACT), [0x87, 0x05, 0x0C, 0x01]);
        assert_eq!(Command::GetErrors.bytes(COMPACT), [0xA1]);
        let position = Command::GetPosition { servo: 3 };
        assert_eq!(position.bytes(COMPACT), [0x90, 0x03]);
        assert_eq!(Command::GetErrors.bytes(pololu), [0xAA, 0x0C, 0x21]);
        assert_eq!(crc7(&[0x83, 0x01]), 0x17);
    }

    #[test]
    fn a_number_never_looks_like_a_command() {
        for number in [0, 127, 128, MAX_SPEED, u16::MAX] {
            let bytes = target(0xFF, number).bytes(COMPACT);
            assert!(
                bytes[1..].iter().all(|byte| byte & 0x80 == 0),
                "{bytes:02x?}"
            );
        }
    }

    #[test]
    fn errors_have_names() {
        assert_eq!(errors([0, 0]), Some(vec![]));
        assert_eq!(
            errors([0x18, 1]),
            Some(vec![
                "serial CRC",
                "serial protocol",
                "script program counter"
            ])
        );
        assert_eq!(errors([0, 2]), None);
    }
}
