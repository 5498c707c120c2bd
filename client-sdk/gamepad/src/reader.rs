//! A gamepad as a stream of bytes: a line of JSON with its [`Description`], and then its events as the
//! system writes them. The driver reads all gamepads in this form, real and simulated ones. PURE.

use super::event::{Description, Event};

/// The longest line, in bytes.
const LONGEST: usize = 8 * 1024;

/// The bytes are not those of a gamepad.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the events of a gamepad: {0}")]
pub struct Garbage(String);

/// Something in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// What it is. This comes first, and once.
    Description(Description),
    /// What has changed.
    Event(Event),
}

/// Reads the stream of one gamepad.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    buffer: Vec<u8>,
    is_described: bool,
}

impl Reader {
    /// Takes further bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend(bytes);
    }

    /// The next thing in the stream; `None` if more bytes are needed.
    ///
    /// # Errors
    /// The bytes are not those of a gamepad. All further ones are not, either.
    pub fn poll(&mut self) -> Result<Option<Said>, Garbage> {
        if !self.is_described {
            return self.line();
        }
        let Some(bytes) = self.buffer.first_chunk() else {
            return Ok(None);
        };
        let event = Event::read(bytes);
        if !event.is_possible() {
            return Err(Garbage(format!("{event:?}")));
        }
        self.buffer.drain(..Event::LENGTH);
        Ok(Some(Said::Event(event)))
    }

    fn line(&mut self) -> Result<Option<Said>, Garbage> {
        let end = self.buffer.iter().position(|byte| *byte == b'\n');
        let Some(end) = end.filter(|end| *end <= LONGEST) else {
            return match self.buffer.len() > LONGEST {
                true => Err(Garbage("the first line has no end".to_owned())),
                false => Ok(None),
            };
        };
        let description = serde_json::from_slice(&self.buffer[..end]);
        let description = description.map_err(|error| Garbage(error.to_string()))?;
        self.buffer.drain(..=end);
        self.is_described = true;
        Ok(Some(Said::Description(description)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::{ABS, KEY, Range};

    const LINE: &[u8] = b"{\"name\": \"a pad\", \"axes\": {\"1\": {\"min\": 0, \"max\": 255}}}\n";

    fn description() -> Description {
        let range = Range {
            min: 0,
            max: 255,
            flat: 0,
        };
        Description {
            name: "a pad".to_owned(),
            vendor: 0,
            axes: [(1, range)].into(),
            held: Vec::new(),
        }
    }

    #[test]
    fn a_description_comes_before_the_events() {
        let event = Event {
            kind: ABS,
            code: 1,
            value: -3,
        };
        let bytes = [LINE, &event.bytes()].concat();
        for cut in 0..bytes.len() {
            let mut reader = Reader::default();
            let mut said = Vec::new();
            for part in [&bytes[..cut], &bytes[cut..]] {
                reader.push(part);
                said.extend(std::iter::from_fn(|| reader.poll().unwrap()));
            }
            assert_eq!(said, [Said::Description(description()), Said::Event(event)]);
        }
        let mut reader = Reader::default();
        reader.push(&description().line());
        assert_eq!(reader.poll(), Ok(Some(Said::Description(description()))));
    }

    #[test]
    fn garbage_is_noticed() {
        let held = Event {
            kind: KEY,
            code: 0x130,
            value: 3,
        };
        for bytes in [
            b"hello\n".to_vec(),
            b"{\"name\": 3}\n".to_vec(),
            vec![b'x'; LONGEST + 1],
            [LINE, &[0xFF; Event::LENGTH]].concat(),
            [LINE, &held.bytes()].concat(),
        ] {
            let mut reader = Reader::default();
            reader.push(&bytes);
            let mut polled = reader.poll();
            if let Ok(Some(Said::Description(_))) = polled {
                polled = reader.poll();
            }
            assert!(polled.is_err(), "{polled:?}");
            assert_eq!(reader.poll().is_err(), polled.is_err());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>, is_described: bool) {
            let mut reader = Reader { is_described, ..Reader::default() };
            reader.push(&bytes);
            let mut count = 0;
            while let Ok(Some(_)) = reader.poll() {
                count += 1;
            }
            prop_assert!(count <= bytes.len());
        }
    }
}
