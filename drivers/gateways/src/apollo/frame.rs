//! One datagram of the Apollo bridge: a header with nine items, and a piece of a serialized
//! message. PURE.
//!
//! ```text
//! "ApolloBridgeHeader\0" \n hsize \n { type : length : value \n } x 9  payload
//! ```
//!
//! `hsize` is the length of everything before the payload. All numbers are in little-endian byte
//! order. Older versions of Apollo write 8 bytes instead of 4 for lengths and positions; the
//! header has the same start and version number, so the position of the second line feed decides.

use super::limits::{MAX_FRAMES, MAX_HEADER, MAX_MESSAGE, MAX_NAME};

const FLAG: &[u8; 19] = b"ApolloBridgeHeader\0";
const LINE_FEED: u8 = b'\n';
const COLON: u8 = b':';

/// A piece of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame<'a> {
    /// The name of the message.
    pub name: &'a str,
    /// The number of the message. 0: the sender does not count.
    pub message_id: u32,
    /// The length of the serialized message, in bytes.
    pub message_size: usize,
    /// The number of frames of the message.
    pub frames: usize,
    /// The offset of this piece in the message, in bytes.
    pub position: usize,
    /// The number of this frame, from 0.
    pub index: usize,
    /// When the message was made, in seconds since 1970.
    pub time_s: f64,
    /// The piece.
    pub payload: &'a [u8],
}

/// The width of lengths and positions in the header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Layout {
    /// 4 bytes.
    Current,
    /// 8 bytes: older versions of Apollo.
    Legacy,
}

/// The reason why a datagram is not a frame of the Apollo bridge.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadFrame {
    /// It does not begin with the flag, or it is shorter than the fixed part of a header.
    #[error("not a header of the Apollo bridge")]
    NoHeader,
    /// The length of the header is longer than the datagram, or than any header.
    #[error("the header cannot have {0} bytes")]
    HeaderLength(u64),
    /// A separator is missing, or an item does not end within the header.
    #[error("a malformed item at byte {0} of the header")]
    Item(usize),
    /// An item has the wrong length.
    #[error("{0:?} with a wrong length")]
    ItemLength(Item),
    /// An item occurs twice.
    #[error("{0:?} occurs twice")]
    Twice(Item),
    /// An item is missing.
    #[error("{0:?} is missing")]
    Missing(Item),
    /// The name is empty, too long, has no terminator or is not UTF-8.
    #[error("an invalid message name")]
    Name,
    /// The message is empty or too long.
    #[error("a message cannot have {0} bytes")]
    MessageSize(u64),
    /// The frame is empty, or its size is not that of the payload.
    #[error("a frame of {0} bytes has a payload of {1} bytes")]
    FrameSize(u64, usize),
    /// Number of frames, index, position and size contradict each other.
    #[error("frame index, position and size do not fit together")]
    Inconsistent,
}

/// The items of a header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Item {
    /// The version of the header, 0.
    Version,
    /// The name of the message.
    Name,
    /// The number of the message.
    MessageId,
    /// The length of the message.
    MessageSize,
    /// The number of frames of the message.
    Frames,
    /// The length of the payload.
    FrameSize,
    /// The offset of the payload in the message.
    Position,
    /// The number of the frame.
    Index,
    /// When the message was made.
    Time,
}

impl Item {
    /// In the order of their numbers on the wire.
    const ALL: [Self; 9] = [
        Self::Version,
        Self::Name,
        Self::MessageId,
        Self::MessageSize,
        Self::Frames,
        Self::FrameSize,
        Self::Position,
        Self::Index,
        Self::Time,
    ];

    fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// The length of its value, in bytes; that of the name varies.
    fn width(self, layout: Layout) -> usize {
        match self {
            Self::Version | Self::MessageId | Self::Frames | Self::Index => 4,
            Self::MessageSize | Self::FrameSize | Self::Position => layout.size_width(),
            Self::Time => 8,
            Self::Name => 0,
        }
    }
}

impl Layout {
    /// The width of lengths and positions, in bytes.
    fn size_width(self) -> usize {
        match self {
            Self::Current => 4,
            Self::Legacy => 8,
        }
    }

    /// The length of everything before the first item, in bytes.
    fn fixed(self) -> usize {
        FLAG.len() + 1 + self.size_width() + 1
    }

    /// The layout of a datagram that begins with the flag.
    fn of(bytes: &[u8]) -> Result<Self, BadFrame> {
        if bytes.get(..20) != Some(b"ApolloBridgeHeader\0\n") {
            return Err(BadFrame::NoHeader);
        }
        match (bytes.get(24), bytes.get(24..28), bytes.get(28)) {
            (_, Some([0, 0, 0, 0]), Some(&LINE_FEED)) => Ok(Self::Legacy),
            (Some(&LINE_FEED), _, _) => Ok(Self::Current),
            _ => Err(BadFrame::NoHeader),
        }
    }
}

impl<'a> Frame<'a> {
    /// Reads a datagram.
    ///
    /// Items may have any order, and items with unknown numbers are skipped, as in Apollo. Any
    /// piece size is accepted that is the same for all frames of a message but the last.
    ///
    /// # Errors
    /// The header is malformed, contradicts itself or exceeds a limit.
    pub fn decode(bytes: &'a [u8]) -> Result<(Layout, Self), BadFrame> {
        let layout = Layout::of(bytes)?;
        let header_size = little_endian(&bytes[20..][..layout.size_width()]);
        let header = usize::try_from(header_size)
            .ok()
            .filter(|size| (layout.fixed()..=MAX_HEADER).contains(size))
            .and_then(|size| bytes.get(..size))
            .ok_or(BadFrame::HeaderLength(header_size))?;
        let values = items(layout, header)?;
        let payload = &bytes[header.len()..];

        let value = |item: Item| values[item as usize].ok_or(BadFrame::Missing(item));
        let number = |item: Item| {
            let value = value(item)?;
            let right = value.len() == item.width(layout);
            right
                .then(|| little_endian(value))
                .ok_or(BadFrame::ItemLength(item))
        };
        number(Item::Version)?;
        let frame = Self {
            name: name(value(Item::Name)?)?,
            message_id: number(Item::MessageId)? as u32,
            message_size: within(number(Item::MessageSize)?, MAX_MESSAGE)
                .map_err(BadFrame::MessageSize)?,
            frames: within(number(Item::Frames)?, MAX_FRAMES)
                .map_err(|_| BadFrame::Inconsistent)?,
            position: usize::try_from(number(Item::Position)?)
                .map_err(|_| BadFrame::Inconsistent)?,
            index: usize::try_from(number(Item::Index)?).map_err(|_| BadFrame::Inconsistent)?,
            time_s: f64::from_bits(number(Item::Time)?),
            payload,
        };
        let frame_size = number(Item::FrameSize)?;
        if payload.is_empty() || frame_size != payload.len() as u64 {
            return Err(BadFrame::FrameSize(frame_size, payload.len()));
        }
        frame.piece_size().ok_or(BadFrame::Inconsistent)?;
        Ok((layout, frame))
    }

    /// The payload size of all frames of the message but the last, in bytes. `None` if position,
    /// index and sizes contradict each other.
    ///
    /// If all frames of a message have the same result, their payloads cover it exactly.
    pub fn piece_size(&self) -> Option<usize> {
        let last = self.frames.checked_sub(1)?;
        let size = self.payload.len();
        if self.index < last {
            let fits = self.index.checked_mul(size)? == self.position
                && self.message_size.div_ceil(size) == self.frames;
            fits.then_some(size)
        } else if self.index == last && self.position.checked_add(size)? == self.message_size {
            if last == 0 {
                return (self.position == 0).then_some(size);
            }
            let piece = self.position / last;
            let fits = piece * last == self.position && (1..=piece).contains(&size);
            fits.then_some(piece)
        } else {
            None
        }
    }

    /// The datagram.
    pub fn encode(&self, layout: Layout) -> Vec<u8> {
        let mut items = Vec::with_capacity(256);
        for item in Item::ALL {
            let number = match item {
                Item::Version => 0,
                Item::Name => {
                    let name = [self.name.as_bytes(), &[0]].concat();
                    push_item(&mut items, layout, item, &name);
                    continue;
                }
                Item::MessageId => u64::from(self.message_id),
                Item::MessageSize => self.message_size as u64,
                Item::Frames => self.frames as u64,
                Item::FrameSize => self.payload.len() as u64,
                Item::Position => self.position as u64,
                Item::Index => self.index as u64,
                Item::Time => self.time_s.to_bits(),
            };
            push_item(
                &mut items,
                layout,
                item,
                &number.to_le_bytes()[..item.width(layout)],
            );
        }
        let header = (layout.fixed() + items.len()) as u64;
        let mut bytes = FLAG.to_vec();
        bytes.push(LINE_FEED);
        bytes.extend_from_slice(&header.to_le_bytes()[..layout.size_width()]);
        bytes.push(LINE_FEED);
        bytes.extend_from_slice(&items);
        bytes.extend_from_slice(self.payload);
        bytes
    }
}

fn push_item(items: &mut Vec<u8>, layout: Layout, item: Item, value: &[u8]) {
    items.extend_from_slice(&(item as u32).to_le_bytes());
    items.push(COLON);
    items.extend_from_slice(&(value.len() as u64).to_le_bytes()[..layout.size_width()]);
    items.push(COLON);
    items.extend_from_slice(value);
    items.push(LINE_FEED);
}

/// The values of the known items of a header.
fn items(layout: Layout, header: &[u8]) -> Result<[Option<&[u8]>; 9], BadFrame> {
    let mut values = [None; 9];
    let mut rest = &header[layout.fixed()..];
    while !rest.is_empty() {
        let bad = BadFrame::Item(header.len() - rest.len());
        let (number, after) = split_number(rest, 4, COLON).ok_or(bad)?;
        let (length, after) = split_number(after, layout.size_width(), COLON).ok_or(bad)?;
        let length = usize::try_from(length).map_err(|_| bad)?;
        let (value, after) = after.split_at_checked(length).ok_or(bad)?;
        let (&LINE_FEED, after) = after.split_first().ok_or(bad)? else {
            return Err(bad);
        };
        rest = after;
        let Some(item) = Item::from_number(number) else {
            continue;
        };
        if values[item as usize].replace(value).is_some() {
            return Err(BadFrame::Twice(item));
        }
    }
    Ok(values)
}

/// A number of this width, which a separator follows, and the rest.
fn split_number(bytes: &[u8], width: usize, separator: u8) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_at_checked(width)?;
    let (&found, rest) = rest.split_first()?;
    (found == separator).then(|| (little_endian(number), rest))
}

/// A number of at most 8 bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn name(value: &[u8]) -> Result<&str, BadFrame> {
    let name = value.strip_suffix(&[0]).ok_or(BadFrame::Name)?;
    let name = std::str::from_utf8(name).map_err(|_| BadFrame::Name)?;
    let valid = (1..=MAX_NAME).contains(&name.len()) && !name.contains(char::is_control);
    valid.then_some(name).ok_or(BadFrame::Name)
}

/// A number from 1 to `most`, else the number as it is.
fn within(number: u64, most: usize) -> Result<usize, u64> {
    let found = usize::try_from(number).ok();
    found
        .filter(|found| (1..=most).contains(found))
        .ok_or(number)
}

#[cfg(test)]
mod tests;
