//! Requests to a scanner, and its answers. PURE.
//!
//! ```text
//!  request   a5 COMMAND, or with data a5 COMMAND u8 length, data, u8 xor of all bytes before
//!  answer    a5 5a u32 length (its two highest bits: 0 one answer, 1 a stream), u8 type, data
//! ```
//!
//! A scanner does not answer what it does not know or understand. Answers have no checksum.

/// Ends a scan.
pub const STOP: [u8; 2] = [0xA5, 0x25];
/// Restarts the scanner, also after it has stopped to protect itself.
pub const RESET: [u8; 2] = [0xA5, 0x40];
/// Starts a scan of single nodes.
pub const SCAN: [u8; 2] = [0xA5, 0x20];

const EXPRESS_SCAN: u8 = 0x82;
const CONFIGURATION: u8 = 0x84;
const MOTOR_RPM: u8 = 0xA8;
const MOTOR_PWM: u8 = 0xF0;

/// The type of the answer to a question about the configuration.
const CONFIGURATION_ANSWER: u8 = 0x20;
/// The head of an answer.
const HEAD: usize = 7;
/// Longer answers are none.
const LONGEST: usize = 256;

/// A question, which has one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Model, firmware, hardware and serial number.
    Info,
    /// Whether it has stopped to protect itself.
    Health,
    /// The time between two points, for SCAN and for EXPRESS_SCAN.
    SampleTimes,
    /// Whether its board sets the speed of the motor.
    Board,
    /// The usual speed of the motor.
    UsualSpeed,
    /// The number of its modes.
    ModeCount,
    /// The mode that the maker recommends.
    TypicalMode,
    /// The name of a mode.
    Name(u16),
    /// The time between two points in a mode.
    SampleTime(u16),
    /// The largest distance in a mode.
    MaxDistance(u16),
    /// The type of the answers in a mode.
    Answer(u16),
}

impl Question {
    /// The number of a setting in the configuration, and the mode.
    fn setting(self) -> Option<(u32, Option<u16>)> {
        Some(match self {
            Self::Info | Self::Health | Self::SampleTimes | Self::Board => return None,
            Self::UsualSpeed => (0x01, None),
            Self::ModeCount => (0x70, None),
            Self::SampleTime(mode) => (0x71, Some(mode)),
            Self::MaxDistance(mode) => (0x74, Some(mode)),
            Self::Answer(mode) => (0x75, Some(mode)),
            Self::TypicalMode => (0x7C, None),
            Self::Name(mode) => (0x7F, Some(mode)),
        })
    }

    /// The bytes to send.
    #[must_use]
    pub fn request(self) -> Vec<u8> {
        match self {
            Self::Info => vec![0xA5, 0x50],
            Self::Health => vec![0xA5, 0x52],
            Self::SampleTimes => vec![0xA5, 0x59],
            Self::Board => request(0xFF, &[0; 4]),
            _ => {
                let (setting, mode) = self.setting().unwrap_or_default();
                let mut data = setting.to_le_bytes().to_vec();
                data.extend(mode.into_iter().flat_map(u16::to_le_bytes));
                request(CONFIGURATION, &data)
            }
        }
    }

    /// The data of its answer in the received bytes.
    #[must_use]
    pub fn answer(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let kind = match self {
            Self::Info => 0x04,
            Self::Health => 0x06,
            Self::SampleTimes => 0x15,
            Self::Board => 0xFF,
            _ => CONFIGURATION_ANSWER,
        };
        let setting = self.setting().map(|(setting, _)| setting.to_le_bytes());
        answers(bytes, kind).find_map(|data| {
            let value = match setting {
                Some(setting) => data.strip_prefix(&setting),
                None => Some(data),
            };
            value.map(<[u8]>::to_vec)
        })
    }
}

/// The data of what looks like answers of this type in the received bytes. Scanners of YDLIDAR answer
/// in the same way.
pub(crate) fn answers(bytes: &[u8], kind: u8) -> impl Iterator<Item = &[u8]> {
    heads(bytes).filter_map(move |(at, length, found)| {
        let is_one = found == kind && length <= LONGEST;
        is_one.then(|| bytes.get(at..at + length))?
    })
}

/// Where the stream of this type begins in the received bytes.
#[must_use]
pub fn stream(bytes: &[u8], kind: u8, length: usize) -> Option<usize> {
    const STREAM: usize = 1 << 30;
    heads(bytes)
        .find(|(_, found, it)| (*it, *found) == (kind, STREAM | length))
        .map(|(at, ..)| at)
}

/// What looks like heads of answers: where their data begins, their length and their type.
fn heads(bytes: &[u8]) -> impl Iterator<Item = (usize, usize, u8)> {
    bytes.windows(HEAD).enumerate().filter_map(|(at, head)| {
        let &[0xA5, 0x5A, a, b, c, d, kind] = head else {
            return None;
        };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        Some((at + HEAD, length, kind))
    })
}

/// Starts a scan in a mode with capsules.
#[must_use]
pub fn express_scan(mode: u16) -> Vec<u8> {
    // There are fewer than 256 modes.
    request(EXPRESS_SCAN, &[mode as u8, 0, 0, 0, 0])
}

/// Sets the speed of the motor of an S1 to S3; 0 stops it.
#[must_use]
pub fn motor_rpm(rpm: u16) -> Vec<u8> {
    request(MOTOR_RPM, &rpm.to_le_bytes())
}

/// Sets the power of the motor of an A2 or A3, from 0 to 1023; 0 stops it.
#[must_use]
pub fn motor_pwm(pwm: u16) -> Vec<u8> {
    request(MOTOR_PWM, &pwm.to_le_bytes())
}

/// A request with data, of which there are fewer than 256 bytes.
fn request(command: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xA5, command, data.len() as u8];
    bytes.extend_from_slice(data);
    bytes.push(bytes.iter().fold(0, |sum, byte| sum ^ byte));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = hex.split_ascii_whitespace();
        digits
            .map(|it| u8::from_str_radix(it, 16).unwrap())
            .collect()
    }

    #[test]
    fn requests_have_the_bytes_that_scanners_accept() {
        for (made, hex) in [
            (express_scan(0), "a5 82 05 00 00 00 00 00 22"),
            (express_scan(1), "a5 82 05 01 00 00 00 00 23"),
            (express_scan(4), "a5 82 05 04 00 00 00 00 26"),
            (motor_pwm(660), "a5 f0 02 94 02 c1"),
            (motor_pwm(0), "a5 f0 02 00 00 57"),
            (motor_rpm(600), "a5 a8 02 58 02 55"),
            (motor_rpm(0), "a5 a8 02 00 00 0f"),
            (Question::Board.request(), "a5 ff 04 00 00 00 00 5e"),
            (Question::ModeCount.request(), "a5 84 04 70 00 00 00 55"),
            (Question::TypicalMode.request(), "a5 84 04 7c 00 00 00 59"),
            (
                Question::SampleTime(1).request(),
                "a5 84 06 71 00 00 00 01 00 57",
            ),
            (
                Question::MaxDistance(1).request(),
                "a5 84 06 74 00 00 00 01 00 52",
            ),
            (
                Question::Answer(1).request(),
                "a5 84 06 75 00 00 00 01 00 53",
            ),
            (Question::Name(1).request(), "a5 84 06 7f 00 00 00 01 00 59"),
            (Question::UsualSpeed.request(), "a5 84 04 01 00 00 00 24"),
        ] {
            assert_eq!(made, bytes(hex));
        }
    }

    #[test]
    fn an_answer_is_found_among_other_bytes() {
        let health = bytes("a5 5a 03 00 00 00 06 02 04 00");
        assert_eq!(Question::Health.answer(&health), Some(vec![2, 4, 0]));
        assert_eq!(Question::Info.answer(&health), None);
        // The end of a scan, which looks like a head, and text after a restart.
        let noise = [&bytes("a5 a5 5a 3e a5 5a 03")[..], b"RP LIDAR System.\r\n"].concat();
        let both = [&noise[..], &health, &[1, 2]].concat();
        assert_eq!(Question::Health.answer(&both), Some(vec![2, 4, 0]));
        assert_eq!(
            Question::Health.answer(&both[..both.len() - 4]),
            None,
            "not all of it"
        );
        let count = bytes("a5 5a 06 00 00 00 20 70 00 00 00 05 00");
        assert_eq!(Question::ModeCount.answer(&count), Some(vec![5, 0]));
        assert_eq!(Question::TypicalMode.answer(&count), None);
    }

    #[test]
    fn a_stream_begins_behind_its_head() {
        let start = bytes("a5 5a 84 00 00 40 84 a9 5b");
        assert_eq!(stream(&start, 0x84, 132), Some(7));
        assert_eq!(stream(&start, 0x82, 84), None);
        assert_eq!(
            stream(&bytes("a5 5a 84 00 00 00 84"), 0x84, 132),
            None,
            "one answer"
        );
        assert_eq!(stream(&bytes("a5 5a 05 00 00 40 81"), 0x81, 5), Some(7));
    }
}
