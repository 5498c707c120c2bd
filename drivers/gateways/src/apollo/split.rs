//! From a serialized message to the datagrams of the Apollo bridge. PURE.

use super::frame::{Frame, Layout};
use super::limits::{FRAME_PAYLOAD, MAX_MESSAGE};

/// How a sender writes its messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Format {
    /// The layout of the headers.
    pub layout: Layout,
    /// The highest number of frames of a message. 1 for receivers with versions of Apollo before
    /// June 2021, which never complete a message of several frames.
    pub max_frames: usize,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            layout: Layout::Current,
            max_frames: MAX_MESSAGE / FRAME_PAYLOAD,
        }
    }
}

/// The reason why a message cannot be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CannotSplit {
    /// Apollo sends nothing for an empty message.
    #[error("the message is empty")]
    Empty,
    /// It needs more frames than the receiver can take.
    #[error("the message needs {needed} frames, the receiver accepts {most}")]
    TooLong {
        /// The required number.
        needed: usize,
        /// The maximum number.
        most: usize,
    },
}

/// The datagrams of a message, in order.
///
/// # Errors
/// The message is empty or too long for the format.
pub fn split(
    format: Format,
    name: &str,
    message_id: u32,
    time_s: f64,
    mut message: Vec<u8>,
) -> Result<Vec<Vec<u8>>, CannotSplit> {
    if message.is_empty() {
        return Err(CannotSplit::Empty);
    }
    pad(&mut message);
    let frames = message.len().div_ceil(FRAME_PAYLOAD);
    if frames > format.max_frames {
        return Err(CannotSplit::TooLong {
            needed: frames,
            most: format.max_frames,
        });
    }
    let pieces = message.chunks(FRAME_PAYLOAD).enumerate();
    let datagrams = pieces.map(|(index, payload)| {
        let frame = Frame {
            name,
            message_id,
            message_size: message.len(),
            frames,
            position: index * FRAME_PAYLOAD,
            index,
            time_s,
            payload,
        };
        frame.encode(format.layout)
    });
    Ok(datagrams.collect())
}

/// Apollo's receivers never complete a message whose number of frames is a multiple of this: they
/// compare a word of the bit set of received frames with `(1 << (frames % 32)) - 1`, which is 0.
const NEVER_COMPLETE: usize = 32;

/// A field that no message of Apollo has, and its wire type: 10000, length-delimited.
const PADDING_KEY: [u8; 3] = [0x82, 0xf1, 0x04];

/// Makes a message of a number of frames that Apollo cannot receive one frame longer, by a field
/// that every receiver skips.
fn pad(message: &mut Vec<u8>) {
    let frames = message.len().div_ceil(FRAME_PAYLOAD);
    if !frames.is_multiple_of(NEVER_COMPLETE) {
        return;
    }
    let needed = frames * FRAME_PAYLOAD + 1 - message.len();
    // The padding has the key, one or two bytes of length, and zeros.
    let zeros = needed.saturating_sub(PADDING_KEY.len() + 1);
    message.extend_from_slice(&PADDING_KEY);
    match zeros {
        0..=0x7f => message.push(zeros as u8),
        _ => message.extend_from_slice(&[(zeros & 0x7f) as u8 | 0x80, (zeros >> 7) as u8]),
    }
    message.extend(std::iter::repeat_n(0, zeros));
}

/// The numbers of the messages with one name.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageIds(u32);

impl MessageIds {
    /// The next number: from 1, and never 0, which means that the sender does not count.
    pub fn next_id(&mut self) -> u32 {
        self.0 = self.0.checked_add(1).unwrap_or(1);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::super::messages::{Chassis, Header};
    use super::*;

    #[test]
    fn sizes_and_positions_of_2500_bytes() {
        let datagrams = split(Format::default(), "Chassis", 7, 1.0, vec![1; 2500]).unwrap();
        let frames = datagrams.iter().map(|bytes| {
            let (_, frame) = Frame::decode(bytes).unwrap();
            (
                frame.index,
                frame.frames,
                frame.position,
                frame.payload.len(),
            )
        });
        let expected = [(0, 3, 0, 1024), (1, 3, 1024, 1024), (2, 3, 2048, 452)];
        assert_eq!(frames.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn empty_and_too_long_messages_are_refused() {
        let one_frame = Format {
            max_frames: 1,
            ..Format::default()
        };
        let refused = |format, size| split(format, "Chassis", 1, 0.0, vec![1; size]).unwrap_err();
        assert_eq!(refused(one_frame, 0), CannotSplit::Empty);
        let (needed, most) = (2, 1);
        assert_eq!(
            refused(one_frame, 1025),
            CannotSplit::TooLong { needed, most }
        );
        let (needed, most) = (1025, 1024);
        let too_long = refused(Format::default(), MAX_MESSAGE + 1);
        assert_eq!(too_long, CannotSplit::TooLong { needed, most });
    }

    #[test]
    fn a_multiple_of_32_frames_becomes_one_more() {
        for frames in [32, 64] {
            for size in [
                frames * 1024,
                frames * 1024 - 1,
                frames * 1024 - 127,
                frames * 1024 - 1023,
            ] {
                // A module name that fills the message to this size.
                let mut chassis = Chassis {
                    header: Some(Header {
                        module_name: Some(String::new()),
                        ..Header::default()
                    }),
                    ..Chassis::default()
                };
                let fill = |chassis: &mut Chassis, length| {
                    let header = chassis.header.as_mut().unwrap();
                    header.module_name = Some("a".repeat(length));
                };
                fill(&mut chassis, size);
                let excess = chassis.encoded_len() - size;
                fill(&mut chassis, size - excess);
                let message = chassis.encode_to_vec();
                assert_eq!(message.len(), size);

                let datagrams = split(Format::default(), "Chassis", 1, 0.0, message).unwrap();
                assert_eq!(datagrams.len(), frames + 1, "{size}");
                let pieces = datagrams
                    .iter()
                    .map(|bytes| Frame::decode(bytes).unwrap().1.payload);
                let padded = pieces.collect::<Vec<_>>().concat();
                assert_eq!(Chassis::decode(padded.as_slice()).unwrap(), chassis);
            }
        }
    }

    #[test]
    fn message_numbers_skip_zero() {
        let mut ids = MessageIds::default();
        assert_eq!((ids.next_id(), ids.next_id()), (1, 2));
        let mut ids = MessageIds(u32::MAX - 1);
        assert_eq!((ids.next_id(), ids.next_id()), (u32::MAX, 1));
    }

    proptest! {
        /// Padding is always a complete field, whatever the size.
        #[test]
        fn padding_can_be_skipped(size in 31 * 1024 + 1..=32 * 1024_usize) {
            let mut message = vec![0; size];
            pad(&mut message);
            prop_assert!(message.len() > 32 * 1024 && message.len() < 32 * 1024 + 8);
            prop_assert_eq!(Chassis::decode(&message[size..]).unwrap(), Chassis::default());
        }
    }
}
