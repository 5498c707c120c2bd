//! What a StarGazer says, put together from bytes as they come, and how it is
//! told things. PURE.
//!
//! A frame begins with `~`, ends with a backquote, and has no check sum. So a
//! wrong bit may go unnoticed; what does not look exactly like a message is
//! thrown away, and `plausible` looks at the rest.

use std::collections::VecDeque;

/// The longest frame that makes sense: as many markers as are ever in view.
const MAX_FRAME: usize = 256;

/// The most markers that one message tells of.
const MAX_MARKERS: usize = 4;

/// No marker has a larger number.
const MAX_MARKER: u32 = 65_535;

/// Nothing is farther away.
const MAX_CM: f64 = 100_000.0;

/// Something that it says.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Where it is, seen from markers; the nearest comes first.
    Fix(Vec<Sighting>),
    /// There is no marker in view.
    DeadZone,
    /// While it builds a map: so many markers were found.
    MapId(u32),
    /// A command was understood, or something has been done: the text of it,
    /// such as `CalcStop` or `RefID|24`.
    Done(String),
    /// The value of a parameter.
    Value {
        /// Which one.
        name: String,
        /// As text.
        value: String,
    },
}

/// The pose of the sensor, seen from a marker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sighting {
    /// Which marker.
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

/// Puts messages together, and finds the next one after bytes that make no sense.
#[derive(Debug, Default)]
pub struct Parser {
    /// What has come since the last `~`.
    frame: Option<Vec<u8>>,
    messages: VecDeque<Message>,
    spoilt: u64,
}

impl Parser {
    /// Takes what has come.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match (*byte, &mut self.frame) {
                (b'~', frame) => {
                    let begun = frame.replace(Vec::new());
                    self.spoilt += u64::from(begun.is_some());
                }
                // Line ends between frames do no harm.
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

    /// How many frames were thrown away because they were wrong.
    pub fn spoilt(&self) -> u64 {
        self.spoilt
    }

    /// Forgets what was begun.
    pub fn clear(&mut self) {
        self.frame = None;
        self.messages.clear();
    }
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Do something, such as `CalcStop`.
    Do(&'static str),
    /// Say the value of a parameter.
    Read(String),
    /// Set a parameter.
    Write(String, String),
}

impl Command {
    /// Its bytes, which must not come too fast.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Do(what) => format!("~#{what}`"),
            Self::Read(name) => format!("~@{name}`"),
            Self::Write(name, value) => format!("~#{name}|{value}`"),
        }
        .into_bytes()
    }

    /// The value that this message is the answer with, or "" where none is asked for.
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

    /// What it is about, in a word.
    pub fn name(&self) -> &str {
        match self {
            Self::Do(what) => what,
            Self::Read(name) | Self::Write(name, _) => name,
        }
    }
}

/// Whether a text can stand in a command.
pub fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_' || c == '-';
    (1..=32).contains(&text.len()) && text.chars().all(plain)
}

/// The message in a frame, without its first and last character.
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

/// `I` for a fix, `F` while a map is built, `Z` while heights are measured; a
/// digit for so many markers in newer firmware.
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

/// A number of decimal digits; zeros in front mean nothing.
fn whole(text: &str, max: u32) -> Option<u32> {
    let digits = (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = digits.then(|| text.parse().ok())??;
    (value <= max).then_some(value)
}

/// Digits with two decimals and perhaps a sign; nothing like `1e5` or `inf`.
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

    /// What real devices have sent.
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
    fn what_real_devices_have_sent_is_read() {
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
    fn a_number_with_a_zero_in_front_is_not_octal() {
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
    fn commands_are_bytes_and_know_their_answers() {
        let stop = Command::Do("CalcStop");
        assert_eq!(stop.bytes(), b"~#CalcStop`");
        assert_eq!(stop.answer(&only("~!CalcStop`")), Some(""));
        assert_eq!(stop.answer(&only("~!CalcStart`")), None);
        let read = Command::Read("RefID".into());
        assert_eq!(read.bytes(), b"~@RefID`");
        assert_eq!(
            read.answer(&only("~!RefID`")),
            None,
            "only its being understood"
        );
        assert_eq!(read.answer(&only("~$RefID|24`")), Some("24"));
        let write = Command::Write("RefID".into(), "24".into());
        assert_eq!(write.bytes(), b"~#RefID|24`");
        assert_eq!(write.answer(&only("~!RefID|24`")), Some(""));
        assert_eq!(write.answer(&only("~!RefID|25`")), None);
    }

    #[test]
    fn the_next_frame_is_found_after_anything() {
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
    fn what_does_not_look_exactly_like_a_message_is_none() {
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
        fn no_bytes_do_harm(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut parser = Parser::default();
            parser.push(&bytes);
            while parser.poll().is_some() {}
            parser.push(b"`");
            parser.clear();
            parser.push(SINGLE);
            prop_assert_eq!(parser.poll(), Some(Message::Fix(vec![SEEN])));
        }

        #[test]
        fn it_does_not_matter_in_which_pieces_bytes_come(cut in 0..70usize) {
            let all = [SINGLE, TWO_OF_NEWER.as_bytes(), DEAD_ZONE].concat();
            let mut parser = Parser::default();
            parser.push(&all[..cut]);
            parser.push(&all[cut..]);
            prop_assert_eq!(std::iter::from_fn(|| parser.poll()).count(), 3);
        }
    }
}
