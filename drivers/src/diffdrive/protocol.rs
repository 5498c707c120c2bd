//! The lines of the firmware: commands, and the answers to them. PURE.
//!
//! A command is a letter with arguments, and ends with CR. Each is answered by one line, except that
//! Andino answers new gains by two. No answer says which command it is for, and there is no checksum.

use std::str::FromStr;

use serde::Deserialize;

/// The longest argument that the firmware has room for. It does not check this itself.
const MAX_ARGUMENT: usize = 15;
/// Longer lines are no answers.
const MAX_LINE: usize = 64;

/// The two families of firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// That of ros_arduino_bridge.
    Bridge,
    /// That of the robot Andino.
    Andino,
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// No command at all: the firmware says that it is invalid, which shows the family.
    Empty,
    /// Reads both encoders.
    Counts,
    /// The speeds of both wheels, in encoder counts per frame or per second. If both are 0, the motors
    /// get no power at once.
    Speeds {
        /// The left wheel.
        left: i16,
        /// The right wheel.
        right: i16,
    },
    /// The constants of the speed control.
    Gains(Gains),
}

/// The constants of the speed control: proportional, differential, integral, and the divisor of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Gains([u16; 4]);

impl FromStr for Gains {
    type Err = String;

    /// Such as `20:12:0:50`.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u16>> = text.split(':').map(|it| it.parse().ok()).collect();
        let gains = numbers.and_then(|numbers| Some(Self(numbers.try_into().ok()?)));
        gains
            .filter(|gains| gains.0[3] > 0 && gains.joined(':').len() <= MAX_ARGUMENT)
            .ok_or_else(|| {
                format!(
                    "{text:?} is not like 20:12:0:50, with a last number above 0 and at most \
                     {MAX_ARGUMENT} characters"
                )
            })
    }
}

impl TryFrom<String> for Gains {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl Gains {
    fn joined(self, separator: char) -> String {
        self.0.map(|it| it.to_string()).join(&separator.to_string())
    }
}

impl Command {
    /// The bytes of the command.
    pub fn encode(self, family: Family) -> Vec<u8> {
        let text = match (self, family) {
            (Self::Empty, _) => String::new(),
            (Self::Counts, _) => "e".to_owned(),
            (Self::Speeds { left, right }, _) => format!("m {left} {right}"),
            (Self::Gains(gains), Family::Bridge) => format!("u {}", gains.joined(':')),
            (Self::Gains(gains), Family::Andino) => format!("u {}", gains.joined(' ')),
        };
        format!("{text}\r").into_bytes()
    }
}

/// A line of the firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The command was carried out.
    Done,
    /// The counts of the left and the right encoder.
    Counts([i32; 2]),
    /// The command was not understood, in the words of this family.
    Invalid(Family),
    /// Andino has new gains. [`Line::Done`] follows.
    Updated,
    /// Anything else.
    Other,
}

impl Line {
    /// Reads a line without its end.
    pub fn parse(line: &[u8]) -> Self {
        match line {
            b"OK" => Self::Done,
            b"Invalid Command" => Self::Invalid(Family::Bridge),
            b"Unknown command." => Self::Invalid(Family::Andino),
            _ if line.starts_with(b"PID Updated: ") => Self::Updated,
            _ => counts(line).map_or(Self::Other, Self::Counts),
        }
    }
}

/// Two numbers with exactly one blank between them.
fn counts(line: &[u8]) -> Option<[i32; 2]> {
    let (left, right) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    let count = |text: &str| text.parse().ok().filter(|_| !text.starts_with('+'));
    Some([count(left)?, count(right)?])
}

/// Cuts what arrives into lines.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// The beginning of this line is missing, or it is too long.
    is_spoilt: bool,
}

impl Lines {
    /// Forgets the line that has begun.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a byte. Returns the line that it ends, if it does.
    pub fn push(&mut self, byte: u8) -> Option<Line> {
        if byte != b'\n' {
            self.is_spoilt |= self.bytes.len() == MAX_LINE;
            if !self.is_spoilt {
                self.bytes.push(byte);
            }
            return None;
        }
        let bytes = std::mem::take(&mut self.bytes);
        if std::mem::take(&mut self.is_spoilt) {
            return Some(Line::Other);
        }
        // Without its CR, an end is missing.
        Some((bytes.strip_suffix(b"\r")).map_or(Line::Other, Line::parse))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_bytes_of_the_firmware() {
        let speeds = |left, right| Command::Speeds { left, right };
        let gains = Command::Gains("30:20:0:100".parse().unwrap());
        for (command, bridge, andino) in [
            (Command::Empty, "\r", "\r"),
            (Command::Counts, "e\r", "e\r"),
            (speeds(17, -17), "m 17 -17\r", "m 17 -17\r"),
            (speeds(0, 0), "m 0 0\r", "m 0 0\r"),
            (gains, "u 30:20:0:100\r", "u 30 20 0 100\r"),
        ] {
            assert_eq!(command.encode(Family::Bridge), bridge.as_bytes());
            assert_eq!(command.encode(Family::Andino), andino.as_bytes());
        }
        assert_eq!(
            speeds(17, -17).encode(Family::Bridge),
            [0x6D, 0x20, 0x31, 0x37, 0x20, 0x2D, 0x31, 0x37, 0x0D]
        );
    }

    #[test]
    fn gains_that_the_firmware_has_no_room_for_are_rejected() {
        assert!("9999:9999:9:999".parse::<Gains>().is_ok());
        for text in [
            "",
            "1:2:3",
            "1:2:3:4:5",
            "1:2:3:0",
            "-1:2:3:4",
            "9999:9999:99:999",
        ] {
            let error = text.parse::<Gains>().unwrap_err();
            assert!(error.contains("is not like 20:12:0:50"), "{error}");
        }
    }

    #[test]
    fn only_exact_lines_are_answers() {
        for (text, line) in [
            ("OK", Line::Done),
            ("1234 -567", Line::Counts([1234, -567])),
            ("-2147483648 2147483647", Line::Counts([i32::MIN, i32::MAX])),
            ("Invalid Command", Line::Invalid(Family::Bridge)),
            ("Unknown command.", Line::Invalid(Family::Andino)),
            ("PID Updated: 30 20 10 50", Line::Updated),
            ("57600", Line::Other),
            ("", Line::Other),
            ("ok", Line::Other),
            ("OKOK", Line::Other),
            ("1234", Line::Other),
            ("1234 ", Line::Other),
            (" 1 2", Line::Other),
            ("1  2", Line::Other),
            ("1 2 3", Line::Other),
            ("+1 2", Line::Other),
            ("1 2147483648", Line::Other),
            ("1\u{e9} 2", Line::Other),
        ] {
            assert_eq!(Line::parse(text.as_bytes()), line, "{text:?}");
        }
    }

    #[test]
    fn lines_are_found_however_they_are_cut_and_garbage_spoils_only_its_line() {
        let lines = |bytes: &[u8]| -> Vec<_> {
            let mut lines = Lines::default();
            bytes.iter().filter_map(|byte| lines.push(*byte)).collect()
        };
        assert_eq!(
            lines(b"OK\r\n1 2\r\nOK"),
            [Line::Done, Line::Counts([1, 2])]
        );
        assert_eq!(lines(b"\xFF\x001 2\r\nOK\r\n"), [Line::Other, Line::Done]);
        assert_eq!(lines(b"1 2\nOK\r\n"), [Line::Other, Line::Done]);
        let long = [&[b'1'; 5_000][..], b" 2\r\nOK\r\n"].concat();
        assert_eq!(lines(&long), [Line::Other, Line::Done]);
    }
}
