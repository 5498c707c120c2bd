//! Messages that are longer than a frame: they travel in pieces. PURE.
//!
//! - [`Long`] is such a message at its sender, who cuts it.
//! - [`Joiner`] is the receiver: it joins pieces, and calls for missing ones.
//! - [`Paced`] sends the messages of a driver in bursts, and again what is called for.
//! - [`Upload`] is one long request of a client, which the driver's receipts let proceed.
//!
//! docs/notes/pieces.md has the fields, the limits and their reasons.

mod join;
mod paced;
mod upload;

use std::ops::RangeInclusive;

use bytes::Bytes;
use prost::Message;
use prost::encoding::{DecodeContext, decode_key, skip_field};

pub use self::join::{Counters, Joined, Joiner, Lost};
pub use self::paced::{Burst, Paced};
pub use self::upload::{Upload, Verdict};
use crate::limits::{LOCAL_PIECE_BYTES, MAX_LONG, MIN_PIECE_BYTES, PIECE_BYTES};
use crate::{DriverMsg, Joins, MsgType, Piece, SynNum};

/// The base fields of a `DriverMsg` that are about pieces. Messages of devices, as programs see them,
/// do not have them.
pub const FIELDS: RangeInclusive<u32> = 6..=9;
/// The first of them.
const PIECE: u32 = *FIELDS.start();

/// A message in pieces, at its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Long {
    /// Its number among those of the sender.
    pub number: u32,
    /// A message replaces earlier ones of its stream; answers and requests have none.
    pub stream: Option<u32>,
    /// The number of the request; the first piece has it too.
    pub syn: Option<SynNum>,
    /// A complete `DriverMsg`.
    pub bytes: Bytes,
}

impl Long {
    /// The number of pieces of this length.
    pub fn count(&self, piece_bytes: usize) -> u32 {
        u32::try_from(self.bytes.len().div_ceil(piece_bytes.max(1))).unwrap_or(u32::MAX)
    }

    /// One piece as a message; `None` if there are fewer.
    pub fn piece(&self, piece_bytes: usize, index: u32) -> Option<Bytes> {
        let from = (index as usize).checked_mul(piece_bytes)?;
        if from >= self.bytes.len() {
            return None;
        }
        let end = self.bytes.len().min(from + piece_bytes);
        let piece = Piece {
            message: Some(self.number),
            index: Some(index),
            count: Some(self.count(piece_bytes)),
            data: Some(self.bytes.slice(from..end)),
            stream: self.stream,
        };
        let syn = self.syn.filter(|_| index == 0);
        let message = DriverMsg {
            r#type: MsgType::Data.into(),
            syn_num: syn.map(|syn| syn.0),
            piece: Some(piece),
            ..DriverMsg::default()
        };
        Some(message.encode_to_vec().into())
    }
}

/// The stream of published data: the number of the first field behind the base fields.
pub fn stream_of(mut message: &[u8]) -> Option<u32> {
    while !message.is_empty() {
        let (number, wire_type) = decode_key(&mut message).ok()?;
        if number > *FIELDS.end() {
            return Some(number);
        }
        skip_field(wire_type, number, &mut message, DecodeContext::default()).ok()?;
    }
    None
}

/// Whether this is a piece of a longer message. Reads only the base fields before it.
pub fn is_piece(mut message: &[u8]) -> bool {
    while !message.is_empty() {
        match decode_key(&mut message) {
            Ok((PIECE, _)) => return true,
            Ok((number, wire_type)) if number < PIECE => {
                let skipped = skip_field(wire_type, number, &mut message, DecodeContext::default());
                if skipped.is_err() {
                    return false;
                }
            }
            _ => return false,
        }
    }
    false
}

/// What a client joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ability {
    /// The longest message, in bytes.
    pub longest: usize,
    /// The bytes in a piece.
    pub piece_bytes: usize,
}

impl Ability {
    /// What a client on another computer joins, or one on the computer of its mediator.
    pub fn of_client(is_local: bool) -> Self {
        Self {
            longest: MAX_LONG,
            piece_bytes: match is_local {
                true => LOCAL_PIECE_BYTES,
                false => PIECE_BYTES,
            },
        }
    }

    /// What a request or SUBSCRIBE with this field says.
    pub fn stated(joins: &Joins) -> Self {
        let within = |number: Option<u32>, default: usize, range: (usize, usize)| {
            let number = number.map_or(default, |number| number as usize);
            number.clamp(range.0, range.1)
        };
        Self {
            longest: within(joins.longest, MAX_LONG, (0, MAX_LONG)),
            piece_bytes: within(
                joins.piece_bytes,
                PIECE_BYTES,
                (MIN_PIECE_BYTES, LOCAL_PIECE_BYTES),
            ),
        }
    }

    /// The field that says so, encoded, to be appended to a message. The message may have one already,
    /// if another program passes it on. So the length of pieces is always there, and the last one
    /// counts.
    pub fn to_append(self) -> Bytes {
        let message = OnlyJoins {
            joins: Some(Joins {
                longest: (self.longest != MAX_LONG).then_some(self.longest as u32),
                piece_bytes: Some(self.piece_bytes as u32),
            }),
        };
        message.encode_to_vec().into()
    }
}

/// The field of a `DriverMsg` without its required type.
#[derive(Clone, PartialEq, prost::Message)]
struct OnlyJoins {
    #[prost(message, optional, tag = "9")]
    joins: Option<Joins>,
}

#[cfg(test)]
mod tests;
