//! Messages of Amber in BINARY frames: records that never cross a frame. PURE.
//!
//! ```text
//! u16 BE: bit 15 = more pieces follow, bits 0-14 = length | bytes      length 0 = padding, the end
//! ```
//!
//! One of the known clients pads each received frame with zeros and loses its length; records bear
//! that.

use super::limits::{CHUNK, MAX_MESSAGE};

const MORE: u16 = 0x8000;
const LENGTH: usize = 2;

/// Joins the pieces of messages from one client.
#[derive(Debug, Default)]
pub struct Joiner {
    begun: Vec<u8>,
}

/// The reason why the data of a frame are not records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRecord {
    /// A record is longer than the rest of its frame.
    #[error("record crosses its frame")]
    Cut,
    /// The pieces of a message are too long together.
    #[error("message too long")]
    TooLong,
}

impl BadRecord {
    /// The reason, for counters.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Cut => "record crosses its frame",
            Self::TooLong => "message too long",
        }
    }
}

impl Joiner {
    /// Takes the data of one frame; returns the messages that are complete.
    ///
    /// # Errors
    /// The data are not records. A begun message is lost then.
    pub fn take(&mut self, mut data: &[u8]) -> Result<Vec<Vec<u8>>, BadRecord> {
        let mut messages = Vec::new();
        while let Some((head, rest)) = data.split_first_chunk::<LENGTH>() {
            let head = u16::from_be_bytes(*head);
            let length = usize::from(head & !MORE);
            if length == 0 {
                break;
            }
            let Some((piece, rest)) = rest.split_at_checked(length) else {
                self.begun.clear();
                return Err(BadRecord::Cut);
            };
            if self.begun.len() + length > MAX_MESSAGE {
                self.begun.clear();
                return Err(BadRecord::TooLong);
            }
            self.begun.extend_from_slice(piece);
            if head & MORE == 0 {
                messages.push(std::mem::take(&mut self.begun));
            }
            data = rest;
        }
        Ok(messages)
    }

    /// A frame is missing: a begun message is lost.
    pub fn reset(&mut self) {
        self.begun.clear();
    }
}

/// The data of the frames for one message: one record each.
pub fn split(message: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    const ROOM: usize = CHUNK - LENGTH;
    let pieces = message.chunks(ROOM);
    let last = pieces.len().saturating_sub(1);
    pieces.enumerate().map(move |(index, piece)| {
        let more = if index < last { MORE } else { 0 };
        // A piece has at most 510 bytes.
        let length = u16::try_from(piece.len()).unwrap_or_default();
        [&(more | length).to_be_bytes()[..], piece].concat()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_record_has_these_bytes() {
        let frames: Vec<_> = split(b"ABC").collect();
        assert_eq!(frames, [b"\x00\x03ABC"]);
        let frames: Vec<_> = split(&[7; 511]).collect();
        assert_eq!(frames[0][..3], [0x81, 0xfe, 7]);
        assert_eq!(frames[1], [0, 1, 7]);
        assert_eq!(frames[0].len(), 512);
    }

    #[test]
    fn padding_ends_a_frame() {
        let mut joiner = Joiner::default();
        let padded = [b"\x00\x01A\x00\x01B", &[0; 100][..]].concat();
        assert_eq!(joiner.take(&padded).unwrap(), [b"A", b"B"]);
        assert_eq!(joiner.take(b"").unwrap().len(), 0);
        assert_eq!(joiner.take(b"\x00").unwrap().len(), 0);
    }

    #[test]
    fn bad_records_lose_only_their_message() {
        let mut joiner = Joiner::default();
        assert!(joiner.take(b"\x80\x01A").unwrap().is_empty());
        assert_eq!(joiner.take(b"\x00\x05A"), Err(BadRecord::Cut));
        assert_eq!(joiner.take(b"\x00\x01B").unwrap(), [b"B"]);
        let piece = [&[0x81, 0xfe][..], &[1; 510]].concat();
        let mut refused = 0;
        for _ in 0..400 {
            refused += usize::from(joiner.take(&piece) == Err(BadRecord::TooLong));
            assert!(joiner.begun.len() <= MAX_MESSAGE);
        }
        assert_eq!(refused, 3);
    }

    proptest! {
        #[test]
        fn messages_survive(messages: Vec<Vec<u8>>, padding in 0..1500_usize) {
            let mut joiner = Joiner::default();
            let mut joined = Vec::new();
            let whole: Vec<_> = messages.into_iter().filter(|it| !it.is_empty()).collect();
            for message in &whole {
                for mut frame in split(message) {
                    prop_assert!(frame.len() <= CHUNK);
                    frame.resize(frame.len() + padding, 0);
                    joined.extend(joiner.take(&frame).unwrap());
                }
            }
            prop_assert_eq!(joined, whole);
        }

        #[test]
        fn any_bytes_are_taken(frames: Vec<Vec<u8>>) {
            let mut joiner = Joiner::default();
            for frame in frames {
                let _ = joiner.take(&frame);
            }
        }
    }
}
