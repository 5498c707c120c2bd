//! The ASCII lines of ODrives: commands, and the answers to questions. PURE.
//!
//! A line is a command, a star, and the sum of its characters by exclusive or. Answers to such lines
//! have a sum, too; a line with a wrong one is ignored by both ends. Only questions are answered, and no
//! answer says which question it is for.

/// Longer lines are no answers.
const MAX_LINE: usize = 128;

/// The error of an axis that cannot do what it was told, such as to control a motor that is not
/// calibrated.
pub const INVALID_STATE: u32 = 0x1;
/// The error of an axis whose watchdog has released the motor.
pub const WATCHDOG_EXPIRED: u32 = 0x800;

/// One of the two axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Axis 0.
    Zero,
    /// Axis 1.
    One,
}

impl Axis {
    /// Both, in the order in which they are asked.
    pub const BOTH: [Self; 2] = [Self::Zero, Self::One];

    /// The number, and the place in a list of both.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A command. None of them makes the ODrive store anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Command {
    /// The end of what may have arrived of another command.
    Empty,
    /// Asks for the firmware, in three lines.
    Information,
    /// Asks for position and velocity.
    Feedback(Axis),
    /// Asks for the error of an axis.
    Error(Axis),
    /// Asks for the state of an axis.
    State(Axis),
    /// Asks for the voltage of the supply.
    Voltage,
    /// Turn at this velocity, in turns per second.
    Velocity(Axis, f64),
    /// Control the motor, or release it.
    Control(Axis, bool),
    /// Release the motor so many seconds after the last command; with 0, never.
    Watchdog(Axis, f64),
    /// The driver still runs.
    Feed(Axis),
    /// Forget errors of the past.
    ClearErrors,
}

impl Command {
    /// The line of the command, or several.
    pub fn encode(self) -> Vec<u8> {
        let lines = match self {
            Self::Empty => return b"\n".to_vec(),
            Self::Information => vec!["i".to_owned()],
            Self::Feedback(axis) => vec![format!("f {}", axis.index())],
            Self::Error(axis) => vec![format!("r axis{}.error", axis.index())],
            Self::State(axis) => vec![format!("r axis{}.current_state", axis.index())],
            Self::Voltage => vec!["r vbus_voltage".to_owned()],
            Self::Velocity(axis, turns_s) => vec![format!("v {} {turns_s:.4}", axis.index())],
            Self::Control(axis, is_on) => {
                let state = if is_on { 8 } else { 1 };
                vec![format!("w axis{}.requested_state {state}", axis.index())]
            }
            Self::Watchdog(axis, 0.0) => {
                vec![format!("w axis{}.config.enable_watchdog 0", axis.index())]
            }
            Self::Watchdog(axis, seconds) => {
                let place = format!("w axis{}.config", axis.index());
                vec![
                    format!("{place}.watchdog_timeout {seconds}"),
                    format!("u {}", axis.index()),
                    format!("{place}.enable_watchdog 1"),
                ]
            }
            Self::Feed(axis) => vec![format!("u {}", axis.index())],
            Self::ClearErrors => vec!["sc".to_owned()],
        };
        let lines = lines
            .into_iter()
            .map(|line| format!("{line}*{}\n", sum(line.as_bytes())));
        lines.collect::<String>().into_bytes()
    }
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum ^ byte)
}

/// Cuts what arrives into lines.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// The line is too long.
    is_spoilt: bool,
}

impl Lines {
    /// Forgets the line that has begun.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a byte. Returns the text of the line that it ends, or that it is damaged.
    pub fn push(&mut self, byte: u8) -> Option<Result<String, Damaged>> {
        if byte != b'\n' {
            self.is_spoilt |= self.bytes.len() == MAX_LINE;
            if !self.is_spoilt {
                self.bytes.push(byte);
            }
            return None;
        }
        let bytes = std::mem::take(&mut self.bytes);
        let is_spoilt = std::mem::take(&mut self.is_spoilt);
        Some(checked(&bytes).filter(|_| !is_spoilt).ok_or(Damaged))
    }
}

/// A line whose sum is wrong or missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

/// The text of a line without its sum.
fn checked(line: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(line).ok()?.trim_end_matches('\r');
    let (text, given) = line.rsplit_once('*')?;
    (given.parse() == Ok(sum(text.as_bytes()))).then(|| text.to_owned())
}

/// Reads position and velocity, in turns and turns per second.
pub fn feedback(text: &str) -> Option<(f64, f64)> {
    let (position, velocity) = text.split_once(' ')?;
    Some((number(position)?, number(velocity)?))
}

/// Reads a finite number.
pub fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The numbers of the firmware in a line of [`Command::Information`].
pub fn firmware(text: &str) -> Option<[u8; 3]> {
    let numbers = text.strip_prefix("Firmware version: ")?;
    let numbers = numbers.split(['.', '-']).take(3);
    let numbers: Option<Vec<u8>> = numbers.map(|it| it.trim().parse().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_sums_of_the_firmware() {
        for (command, line) in [
            (Command::Voltage, "r vbus_voltage*125\n"),
            (Command::Feedback(Axis::Zero), "f 0*118\n"),
            (Command::Feed(Axis::Zero), "u 0*101\n"),
            (Command::Error(Axis::Zero), "r axis0.error*55\n"),
            (Command::Empty, "\n"),
            (Command::ClearErrors, "sc*16\n"),
        ] {
            let text = String::from_utf8(command.encode()).unwrap();
            assert_eq!(text, line);
        }
    }

    #[test]
    fn lines_with_a_wrong_sum_are_damaged() {
        let lines = |bytes: &[u8]| -> Vec<_> {
            let mut lines = Lines::default();
            bytes.iter().filter_map(|byte| lines.push(*byte)).collect()
        };
        let good = || Ok("0.500000 1.250000".to_owned());
        assert_eq!(lines(b"0.500000 1.250000*35\r\n"), [good()]);
        for bad in [
            "0.500000 1.250000*36\r\n",
            "0.500000 1.250000\r\n",
            "\r\n",
            "\u{e9}*35\n",
        ] {
            assert_eq!(lines(bad.as_bytes()), [Err(Damaged)], "{bad:?}");
        }
        let long = [&[b'x'; 5_000][..], b"\n0.500000 1.250000*35\r\n"].concat();
        assert_eq!(lines(&long), [Err(Damaged), good()]);
    }

    #[test]
    fn answers_are_read() {
        assert_eq!(feedback("0.500000 -1.250000"), Some((0.5, -1.25)));
        for text in ["0.5", "0.5 x", "nan 1", "unknown command", "1 2 3"] {
            assert_eq!(feedback(text), None, "{text}");
        }
        assert_eq!(firmware("Firmware version: 0.5.6"), Some([0, 5, 6]));
        assert_eq!(firmware("Firmware version: 0.5.6-dev"), Some([0, 5, 6]));
        assert_eq!(firmware("Firmware version: 0.5"), None);
        assert_eq!(firmware("Hardware version: 3.6-56V"), None);
    }
}
