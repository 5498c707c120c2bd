//! The protocol of a StarGazer: assembles messages from a byte stream and builds commands. PURE.
//!
//! A frame starts with `~`, ends with a backquote, and has no checksum, so a flipped bit may go
//! unnoticed. The parser discards everything that is not exactly a message; `plausible` filters the
//! rest.

use std::collections::VecDeque;

/// The longest valid frame, with the largest number of markers in view.
const MAX_FRAME: usize = 256;

/// The maximum number of markers in a message.
const MAX_MARKERS: usize = 4;

/// The largest number of a marker.
const MAX_MARKER: u32 = 65_535;

/// The largest distance.
const MAX_CM: f64 = 100_000.0;

/// A message from the device.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Its position relative to markers; the nearest comes first.
    Fix(Vec<Sighting>),
    /// No marker is in view.
    DeadZone,
    /// The number of markers found so far while the device builds a map.
    MapId(u32),
    /// A command was accepted or an action completed: its text, such as `CalcStop` or `RefID|24`.
    Done(String),
    /// The value of a parameter.
    Value {
        /// The name of the parameter.
        name: String,
        /// The value as a text.
        value: String,
    },
}

/// The pose of the sensor relative to a marker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sighting {
    pub marker: u32,
    /// Clockwise.
    pub heading_deg: f64,
    /// In the marker's frame.
    pub x_cm: f64,
    /// In the marker's frame.
    pub y_cm: f64,
    /// From the sensor up to the marker.
    pub height_cm: f64,
}

/// Assembles messages, and resynchronizes after invalid bytes.
#[derive(Debug, Default)]
pub struct Parser {
    /// The bytes since the last `~`.
    frame: Option<Vec<u8>>,
    messages: VecDeque<Message>,
    spoilt: u64,
}

impl Parser {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match (*byte, &mut self.frame) {
                (b'~', frame) => {
                    let begun = frame.replace(Vec::new());
                    self.spoilt += u64::from(begun.is_some());
                }
                // Ignore line ends between frames.
                (_, None) => {}
                (b'`', Some(frame)) => {
                    let message = std::str::from_utf8(frame).ok().and_then(read);
                    self.spoilt += u64::from(message.is_none());
                    self.messages.extend(message);
                    self.frame = None;
                }
                (_, Some(frame)) if frame.len() == MAX_FRAME => {
                    self.spoilt += 1;
                    self.frame = None;
                }
                (byte, Some(frame)) => frame.push(byte),
            }
        }
    }

    /// The next message.
    pub fn poll(&mut self) -> Option<Message> {
        self.messages.pop_front()
    }

    /// The number of frames that were discarded as invalid.
    pub fn spoilt(&self) -> u64 {
        self.spoilt
    }

    /// Discards a partial frame.
    pub fn clear(&mut self) {
        self.frame = None;
        self.messages.clear();
    }
}

/// A command to the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Perform an action, such as `CalcStop`.
    Do(&'static str),
    /// Read a parameter.
    Read(String),
    /// Set a parameter.
    Write(String, String),
}

impl Command {
    /// Encodes the command. The device loses characters that arrive too fast.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Do(what) => format!("~#{what}`"),
            Self::Read(name) => format!("~@{name}`"),
            Self::Write(name, value) => format!("~#{name}|{value}`"),
        }
        .into_bytes()
    }

    /// The value in a message that answers this command, or "" if the command asks for none.
    pub fn answer<'a>(&self, message: &'a Message) -> Option<&'a str> {
        match (self, message) {
            (Self::Do(what), Message::Done(done)) if done == what => Some(""),
            (Self::Read(asked), Message::Value { name, value }) if name == asked => Some(value),
            (Self::Write(name, value), Message::Done(done)) => {
                let (done_name, done_value) = done.split_once('|')?;
                (done_name == name && done_value == value).then_some("")
            }
            _ => None,
        }
    }

    /// A short name for it.
    pub fn name(&self) -> &str {
        match self {
            Self::Do(what) => what,
            Self::Read(name) | Self::Write(name, _) => name,
        }
    }
}

/// Whether a text is valid in a command.
pub fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_' || c == '-';
    (1..=32).contains(&text.len()) && text.chars().all(plain)
}

/// Parses a frame without its first and last character.
fn read(frame: &str) -> Option<Message> {
    let (kind, rest) = frame.split_at_checked(1)?;
    match kind {
        "^" => fixes(rest).map(Message::Fix),
        "*" if rest == "DeadZone" => Some(Message::DeadZone),
        "*" => {
            let count = rest.strip_prefix("MAPID|")?;
            whole(count, MAX_MARKER).map(Message::MapId)
        }
        "!" => {
            let is_sound = rest.split('|').count() <= 2 && rest.split('|').all(is_word);
            is_sound.then(|| Message::Done(rest.to_owned()))
        }
        "$" => {
            let (name, value) = rest.split_once('|')?;
            (is_word(name) && is_word(value)).then(|| Message::Value {
                name: name.to_owned(),
                value: value.to_owned(),
            })
        }
        _ => None,
    }
}

/// Parses fixes. `I` stands for a fix, `F` for one while a map is built, `Z` for one while heights
/// are measured; in newer firmware a digit gives the number of markers.
fn fixes(text: &str) -> Option<Vec<Sighting>> {
    let (mode, rest) = text.split_at_checked(1)?;
    let count = match mode {
        "I" | "F" | "Z" => 1,
        digit => usize::try_from(whole(digit, MAX_MARKERS as u32)?).ok()?,
    };
    let fields: Vec<_> = rest.split('|').collect();
    if count == 0 || fields.len() != count * 5 {
        return None;
    }
    let mut sightings: Vec<_> = fields
        .chunks_exact(5)
        .map(sighting)
        .collect::<Option<_>>()?;
    let distance = |seen: &Sighting| seen.x_cm.hypot(seen.y_cm);
    sightings.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
    Some(sightings)
}

fn sighting(fields: &[&str]) -> Option<Sighting> {
    let [marker, heading, x, y, height] = fields else {
        return None;
    };
    Some(Sighting {
        marker: whole(marker, MAX_MARKER)?,
        heading_deg: number(heading, -180.0..=180.0)?,
        x_cm: number(x, -MAX_CM..=MAX_CM)?,
        y_cm: number(y, -MAX_CM..=MAX_CM)?,
        height_cm: number(height, 0.0..=MAX_CM)?,
    })
}

/// A decimal number; leading zeros are ignored.
fn whole(text: &str, max: u32) -> Option<u32> {
    let digits = (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = digits.then(|| text.parse().ok())??;
    (value <= max).then_some(value)
}

/// A number with two decimals and an optional sign; forms such as `1e5` or `inf` are rejected.
fn number(text: &str, range: std::ops::RangeInclusive<f64>) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (before, after) = unsigned.split_once('.')?;
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !are_digits(before) || !are_digits(after) || after.len() != 2 {
        return None;
    }
    text.parse().ok().filter(|value| range.contains(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Messages of real devices.
    const SINGLE: &[u8] = b"~^I534|+175.16|-3.66|-33.58|200.33`";
    const ONE_OF_NEWER: &str = "~^124706|-96.61|-48.13|-21.35|221.64`";
    const TWO_OF_NEWER: &str =
        "~^224706|-96.28|-48.90|-21.13|220.50|24594|-94.27|+101.58|-17.80|230.71`";
    const DEAD_ZONE: &[u8] = b"\x7E\x2A\x44\x65\x61\x64\x5A\x6F\x6E\x65\x60";

    const SEEN: Sighting = Sighting {
        marker: 534,
        heading_deg: 175.16,
        x_cm: -3.66,
        y_cm: -33.58,
        height_cm: 200.33,
    };

    fn messages(bytes: &[u8]) -> (Vec<Message>, u64) {
        let mut parser = Parser::default();
        parser.push(bytes);
        let messages = std::iter::from_fn(|| parser.poll()).collect();
        (messages, parser.spoilt())
    }

    fn only(text: &str) -> Message {
        let (mut messages, spoilt) = messages(text.as_bytes());
        assert_eq!((messages.len(), spoilt), (1, 0), "{text}");
        messages.remove(0)
    }

    #[test]
    fn messages_of_real_devices_are_read() {
        let bytes = b"\x7E\x5E\x49\x35\x33\x34\x7C\x2B\x31\x37\x35\x2E\x31\x36\x7C\x2D\x33\
            \x2E\x36\x36\x7C\x2D\x33\x33\x2E\x35\x38\x7C\x32\x30\x30\x2E\x33\x33\x60";
        assert_eq!(&bytes[..], SINGLE);
        assert_eq!(messages(SINGLE), (vec![Message::Fix(vec![SEEN])], 0));
        assert_eq!(messages(DEAD_ZONE), (vec![Message::DeadZone], 0));
        let markers = |text| match only(text) {
            Message::Fix(seen) => seen.iter().map(|one| one.marker).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(markers(ONE_OF_NEWER), [24_706]);
        assert_eq!(markers(TWO_OF_NEWER), [24_706, 24_594], "the nearest first");
        match only(TWO_OF_NEWER) {
            Message::Fix(seen) => {
                let second = Sighting {
                    marker: 24_594,
                    heading_deg: -94.27,
                    x_cm: 101.58,
                    y_cm: -17.8,
                    height_cm: 230.71,
                };
                assert_eq!(seen[1], second);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_number_with_a_leading_zero_is_not_octal() {
        let text = "~^I0534|+175.16|-3.66|-33.58|200.33`";
        assert_eq!(only(text), Message::Fix(vec![SEEN]));
    }

    #[test]
    fn all_other_forms_are_read() {
        for mode in ["F", "Z"] {
            let text = format!("~^{mode}534|+175.16|-3.66|-33.58|200.33`");
            assert_eq!(only(&text), Message::Fix(vec![SEEN]));
        }
        assert_eq!(only("~*MAPID|3`"), Message::MapId(3));
        for done in ["MapDataSave", "ParameterUpdate", "CalcStop", "RefID|24"] {
            assert_eq!(only(&format!("~!{done}`")), Message::Done(done.into()));
        }
        let value = Message::Value {
            name: "Version".into(),
            value: "LMR.Agv.2008.06.15".into(),
        };
        assert_eq!(only("~$Version|LMR.Agv.2008.06.15`"), value);
    }

    #[test]
    fn commands_are_encoded_and_matched_with_their_answers() {
        let stop = Command::Do("CalcStop");
        assert_eq!(stop.bytes(), b"~#CalcStop`");
        assert_eq!(stop.answer(&only("~!CalcStop`")), Some(""));
        assert_eq!(stop.answer(&only("~!CalcStart`")), None);
        let read = Command::Read("RefID".into());
        assert_eq!(read.bytes(), b"~@RefID`");
        assert_eq!(
            read.answer(&only("~!RefID`")),
            None,
            "it is only acknowledged"
        );
        assert_eq!(read.answer(&only("~$RefID|24`")), Some("24"));
        let write = Command::Write("RefID".into(), "24".into());
        assert_eq!(write.bytes(), b"~#RefID|24`");
        assert_eq!(write.answer(&only("~!RefID|24`")), Some(""));
        assert_eq!(write.answer(&only("~!RefID|25`")), None);
    }

    #[test]
    fn the_next_frame_is_found_after_any_bytes() {
        for before in [
            &b"\r\n"[..],
            b"~^I534|+175.16|-3.6",
            b"`",
            b"~`",
            b"~^I534|+175.16|-3.66|-33.58|2x0.33`",
            b"\xff\x00~\xff\xff`",
            b"~~~",
            &[b'~'; 1],
            &[b'x'; 5000],
        ] {
            let bytes = [before, SINGLE].concat();
            let (messages, _) = messages(&bytes);
            assert_eq!(messages, [Message::Fix(vec![SEEN])], "{before:?}");
        }
        let endless = [b"~", &[b'1'; 5000][..], b"`", SINGLE].concat();
        assert_eq!(messages(&endless), (vec![Message::Fix(vec![SEEN])], 1));
    }

    #[test]
    fn only_exact_messages_are_accepted() {
        for text in [
            "",
            "^",
            "^I",
            "^I534",
            "^I534|+175.16|-3.66|-33.58",
            "^I534|+175.16|-3.66|-33.58|200.33|",
            "^I|+175.16|-3.66|-33.58|200.33",
            "^I5 4|+175.16|-3.66|-33.58|200.33",
            "^I-34|+175.16|-3.66|-33.58|200.33",
            "^I99999|+175.16|-3.66|-33.58|200.33",
            "^I534|+1e5|-3.66|-33.58|200.33",
            "^I534|inf|-3.66|-33.58|200.33",
            "^I534|+175.1|-3.66|-33.58|200.33",
            "^I534|+275.16|-3.66|-33.58|200.33",
            "^I534|+175.16|--3.66|-33.58|200.33",
            "^I534|+175.16|-3.66|-33.58|-200.33",
            "^J534|+175.16|-3.66|-33.58|200.33",
            "^024706|-96.61|-48.13|-21.35|221.64",
            "^224706|-96.61|-48.13|-21.35|221.64",
            "^924706|-96.61|-48.13|-21.35|221.64",
            "*DeadZon",
            "*MAPID|",
            "$Version",
            "$Version|a|b",
            "!",
            "!a|b|c",
            "?what",
            "é",
        ] {
            assert_eq!(
                messages(format!("~{text}`").as_bytes()),
                (vec![], 1),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut parser = Parser::default();
            parser.push(&bytes);
            while parser.poll().is_some() {}
            parser.push(b"`");
            parser.clear();
            parser.push(SINGLE);
            prop_assert_eq!(parser.poll(), Some(Message::Fix(vec![SEEN])));
        }

        #[test]
        fn messages_are_found_wherever_reads_end(cut in 0..70usize) {
            let all = [SINGLE, TWO_OF_NEWER.as_bytes(), DEAD_ZONE].concat();
            let mut parser = Parser::default();
            parser.push(&all[..cut]);
            parser.push(&all[cut..]);
            prop_assert_eq!(std::iter::from_fn(|| parser.poll()).count(), 3);
        }
    }
}
