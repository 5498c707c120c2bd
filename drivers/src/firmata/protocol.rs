//! The messages of Firmata 2: commands to a board, and what it sends. PURE.
//!
//! A byte from 0x80 on begins a message, all others have seven bits of data. So after garbage, the next
//! message is understood. There are no checksums. Messages of any length, between `F0` and `F7`, are
//! called *sysex*.

use crate::board::Mode;

/// The longest sysex of a board: it has what 128 pins can do.
const MAX_SYSEX: usize = 4096;
/// The longest text, in characters.
const MAX_TEXT: usize = 64;
/// The largest value of an analog message or of a sampling interval.
const MAX_VALUE: u16 = (1 << 14) - 1;
/// Pins up to this one have a short message for values.
const LAST_SHORT: u8 = 15;

const DIGITAL: u8 = 0x90;
const REPORT_CHANNEL: u8 = 0xC0;
const REPORT_PORT: u8 = 0xD0;
const ANALOG: u8 = 0xE0;
const START: u8 = 0xF0;
const SET_MODE: u8 = 0xF4;
const SET_LEVEL: u8 = 0xF5;
const END: u8 = 0xF7;
const VERSION: u8 = 0xF9;

// The first byte of a sysex.
const ASK_CHANNELS: u8 = 0x69;
const CHANNELS: u8 = 0x6A;
const ASK_ABILITIES: u8 = 0x6B;
const ABILITIES: u8 = 0x6C;
const ASK_PIN: u8 = 0x6D;
const PIN: u8 = 0x6E;
const LONG_VALUE: u8 = 0x6F;
const SERVO_RANGE: u8 = 0x70;
const TEXT: u8 = 0x71;
const FIRMWARE: u8 = 0x79;
const INTERVAL: u8 = 0x7A;

/// In lists of pins: the end of a pin, or no analog input.
const NONE: u8 = 0x7F;

/// The number of a mode.
#[must_use]
pub fn code(mode: Mode) -> u8 {
    match mode {
        Mode::Input => 0x00,
        Mode::Output => 0x01,
        Mode::Analog => 0x02,
        Mode::Pwm => 0x03,
        Mode::Servo => 0x04,
        Mode::InputPullUp => 0x0B,
    }
}

/// A command to a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Ends a sysex that was interrupted: the board takes all bytes for its data until then.
    End,
    /// Asks for the version of the protocol.
    AskVersion,
    /// Asks for the name and the version of the program.
    AskFirmware,
    /// Asks what each pin can do.
    AskAbilities,
    /// Asks which pins are analog inputs.
    AskChannels,
    /// Asks for the mode of a pin.
    AskPin(u8),
    /// Sets the mode of a pin.
    Mode(u8, Mode),
    /// Sets a digital output.
    Level(u8, bool),
    /// Sets a PWM output, or the pulse of a servo in microseconds.
    Value(u8, u16),
    /// Lets a pin turn a servo, with the shortest and the longest pulse in microseconds.
    ServoRange(u8, u16, u16),
    /// Sets the time between two analog values, in milliseconds.
    Interval(u16),
    /// Sends the levels of eight pins now and after each change.
    ReportPort(u8),
    /// Sends an analog value after each interval.
    ReportChannel(u8),
}

impl Command {
    /// The bytes of the command.
    #[must_use]
    pub fn encode(self) -> Vec<u8> {
        match self {
            Self::End => vec![END],
            Self::AskVersion => vec![VERSION],
            Self::AskFirmware => sysex(FIRMWARE, &[]),
            Self::AskAbilities => sysex(ASK_ABILITIES, &[]),
            Self::AskChannels => sysex(ASK_CHANNELS, &[]),
            Self::AskPin(pin) => sysex(ASK_PIN, &[pin]),
            Self::Mode(pin, mode) => vec![SET_MODE, pin, code(mode)],
            Self::Level(pin, high) => vec![SET_LEVEL, pin, high.into()],
            Self::Value(pin, value) => {
                let [low, high] = halves(value);
                match pin {
                    0..=LAST_SHORT => vec![ANALOG | pin, low, high],
                    _ => sysex(LONG_VALUE, &[pin, low, high]),
                }
            }
            Self::ServoRange(pin, min_us, max_us) => {
                let ([min_low, min_high], [max_low, max_high]) = (halves(min_us), halves(max_us));
                sysex(SERVO_RANGE, &[pin, min_low, min_high, max_low, max_high])
            }
            Self::Interval(ms) => sysex(INTERVAL, &halves(ms)),
            Self::ReportPort(port) => vec![REPORT_PORT | port, 1],
            Self::ReportChannel(channel) => vec![REPORT_CHANNEL | channel, 1],
        }
    }
}

fn sysex(first: u8, data: &[u8]) -> Vec<u8> {
    [&[START, first][..], data, &[END]].concat()
}

/// The low and the high seven bits.
fn halves(value: u16) -> [u8; 2] {
    let value = value.min(MAX_VALUE);
    [(value & 0x7F) as u8, (value >> 7) as u8]
}

/// What a pin can do: modes with their resolutions in bits.
pub type Abilities = Vec<(u8, u8)>;

/// What a board sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The version of the protocol.
    Version(u8, u8),
    /// The name and the version of the program. A board that starts sends it by itself.
    Firmware(String),
    /// What each pin can do.
    Abilities(Vec<Abilities>),
    /// The analog input of each pin.
    Channels(Vec<Option<u8>>),
    /// The number of the mode of a pin; `None` if the board has no such pin.
    Pin(u8, Option<u8>),
    /// The levels of eight pins, the first one in the lowest bit. Other than inputs are 0.
    Port(u8, u8),
    /// The value of an analog input.
    Channel(u8, u16),
    /// A text for people, such as an error.
    Text(String),
}

/// Finds messages in bytes.
#[derive(Clone, Debug, Default)]
pub struct Parser(Vec<u8>);

impl Parser {
    /// Forgets the message that has begun.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes the next byte. Returns the message that it ends, if it does.
    pub fn push(&mut self, byte: u8) -> Option<Message> {
        if byte == END {
            let bytes = std::mem::take(&mut self.0);
            return match bytes.split_first() {
                Some((&START, data)) => long(data),
                _ => None,
            };
        }
        if byte >= 0x80 {
            self.0.clear();
            self.0.push(byte);
            return None;
        }
        // Without its beginning, it belongs to nothing.
        let first = *self.0.first()?;
        self.0.push(byte);
        if first == START {
            if self.0.len() > MAX_SYSEX {
                self.0.clear();
            }
            return None;
        }
        let [_, low, high] = self.0[..] else {
            return None;
        };
        self.0.clear();
        let value = u16::from(low) | (u16::from(high) << 7);
        match (first, first & 0xF0) {
            (VERSION, _) => Some(Message::Version(low, high)),
            (_, ANALOG) => Some(Message::Channel(first & 0x0F, value)),
            (_, DIGITAL) => {
                let levels = u8::try_from(value).ok()?;
                Some(Message::Port(first & 0x0F, levels))
            }
            _ => None,
        }
    }
}

/// The message of a sysex, without its frame.
fn long(bytes: &[u8]) -> Option<Message> {
    let (first, data) = bytes.split_first()?;
    match (*first, data) {
        (FIRMWARE, [major, minor, name @ ..]) => {
            let name = text(name);
            let name = match name.is_empty() {
                true => "a program without a name".to_owned(),
                false => name,
            };
            Some(Message::Firmware(format!("{name} {major}.{minor}")))
        }
        (ABILITIES, [pins @ .., NONE]) => {
            let pins = pins.split(|byte| *byte == NONE).map(|modes| {
                let pairs = modes.chunks_exact(2);
                let is_whole = pairs.remainder().is_empty();
                is_whole.then(|| pairs.map(|pair| (pair[0], pair[1])).collect())
            });
            let pins = pins.collect::<Option<Vec<Abilities>>>();
            pins.filter(|pins| pins.len() <= 128)
                .map(Message::Abilities)
        }
        (CHANNELS, pins @ [_, ..]) if pins.len() <= 128 => {
            let channel = |byte: &u8| (*byte < 16).then_some(*byte);
            Some(Message::Channels(pins.iter().map(channel).collect()))
        }
        (PIN, [pin, state @ ..]) => Some(Message::Pin(*pin, state.first().copied())),
        (TEXT, pairs) => Some(text(pairs))
            .filter(|text| !text.is_empty())
            .map(Message::Text),
        _ => None,
    }
}

/// A text, of which each character has two bytes.
fn text(pairs: &[u8]) -> String {
    let letter = |pair: &[u8]| {
        let high = pair.get(1).copied().unwrap_or_default();
        char::from_u32(u32::from(pair[0]) | (u32::from(high) << 7))
    };
    let letters = pairs.chunks(2).filter_map(letter);
    letters
        .filter(|letter| !letter.is_control())
        .take(MAX_TEXT)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = hex.split_ascii_whitespace();
        digits
            .map(|digits| u8::from_str_radix(digits, 16).unwrap())
            .collect()
    }

    fn messages(parser: &mut Parser, hex: &str) -> Vec<Message> {
        let bytes = bytes(hex).into_iter();
        bytes.filter_map(|byte| parser.push(byte)).collect()
    }

    #[test]
    fn commands_are_those_of_the_protocol() {
        for (command, expected) in [
            (Command::End, "F7"),
            (Command::AskVersion, "F9"),
            (Command::AskFirmware, "F0 79 F7"),
            (Command::AskAbilities, "F0 6B F7"),
            (Command::AskChannels, "F0 69 F7"),
            (Command::AskPin(9), "F0 6D 09 F7"),
            (Command::Mode(9, Mode::Servo), "F4 09 04"),
            (Command::Mode(2, Mode::InputPullUp), "F4 02 0B"),
            (Command::Level(13, true), "F5 0D 01"),
            (Command::Value(9, 180), "E9 34 01"),
            (Command::Value(9, 1500), "E9 5C 0B"),
            (Command::Value(44, 255), "F0 6F 2C 7F 01 F7"),
            (Command::ServoRange(9, 544, 2400), "F0 70 09 20 04 60 12 F7"),
            (Command::Interval(19), "F0 7A 13 00 F7"),
            (Command::Interval(u16::MAX), "F0 7A 7F 7F F7"),
            (Command::ReportPort(1), "D1 01"),
            (Command::ReportChannel(5), "C5 01"),
        ] {
            assert_eq!(command.encode(), bytes(expected), "{command:?}");
        }
    }

    #[test]
    fn messages_are_those_of_the_protocol() {
        for (hex, expected) in [
            ("F9 02 05", Message::Version(2, 5)),
            (
                "F0 79 02 05 53 00 74 00 61 00 F7",
                Message::Firmware("Sta 2.5".into()),
            ),
            (
                "F0 79 02 05 F7",
                Message::Firmware("a program without a name 2.5".into()),
            ),
            (
                "F0 6C 7F 00 01 0B 01 01 01 7F 02 0A 7F F7",
                Message::Abilities(vec![vec![], vec![(0, 1), (11, 1), (1, 1)], vec![(2, 10)]]),
            ),
            (
                "F0 6A 7F 00 01 7F F7",
                Message::Channels(vec![None, Some(0), Some(1), None]),
            ),
            ("F0 6E 0D 01 01 F7", Message::Pin(13, Some(1))),
            ("F0 6E 63 F7", Message::Pin(99, None)),
            ("91 20 00", Message::Port(1, 0x20)),
            ("90 05 01", Message::Port(0, 0x85)),
            ("E1 26 05", Message::Channel(1, 678)),
            ("F0 71 55 00 03 00 6E 00 F7", Message::Text("Un".into())),
            ("F0 71 69 01 F7", Message::Text("é".into())),
        ] {
            assert_eq!(messages(&mut Parser::default(), hex), [expected], "{hex}");
        }
    }

    #[test]
    fn what_cannot_be_right_is_left_out() {
        for hex in [
            "F7",
            "02 05",
            "F9 02",
            "F0 F7",
            "F0 79 02 F7",
            "F0 6C F7",
            "F0 6C 00 01 F7",
            "F0 6C 00 7F F7",
            "F0 6A F7",
            "F0 6E F7",
            "F0 71 F7",
            // More than eight levels.
            "90 00 02",
            "F4 01 01",
            "C0 01 01",
            "FF 00 00",
        ] {
            assert_eq!(messages(&mut Parser::default(), hex), [], "{hex}");
        }
        let many = format!("F0 6C {} F7", "7F ".repeat(129));
        assert_eq!(messages(&mut Parser::default(), &many), []);
        let most = format!("F0 6C {} F7", "7F ".repeat(128));
        let expected = Message::Abilities(vec![vec![]; 128]);
        assert_eq!(messages(&mut Parser::default(), &most), [expected]);
    }

    #[test]
    fn the_next_message_is_understood_after_garbage() {
        for garbage in [
            "00 7F",
            "FF",
            "F0 6C 01",
            "F0 79 02 05 53 F7 01",
            "E1 26",
            "90",
            "F9 02 F0",
        ] {
            let mut parser = Parser::default();
            let before = messages(&mut parser, garbage);
            let after = messages(&mut parser, "E0 01 00");
            assert!(before.len() <= 1, "{garbage}: {before:?}");
            assert_eq!(after, [Message::Channel(0, 1)], "{garbage}");
        }
        let mut parser = Parser::default();
        parser.push(START);
        for _ in 0..100_000 {
            assert_eq!(parser.push(0x01), None);
            assert!(parser.0.len() <= MAX_SYSEX);
        }
        assert_eq!(
            messages(&mut parser, "F7 E0 01 00"),
            [Message::Channel(0, 1)]
        );
    }
}
