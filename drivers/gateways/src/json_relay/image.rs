//! Images of the JSON relay: in one message, or in fragments. PURE.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::codec::Message;
use super::limits::{MAX_FRAGMENTS, MAX_IMAGE, MAX_IMAGE_AGE, MAX_OPEN_IMAGES};

/// Senders may leave out the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The image is too long for the highest number of fragments.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("an image of {size} bytes needs more than {MAX_FRAGMENTS} datagrams of {mtu} bytes")]
pub struct ImageTooLong {
    /// Its length, in bytes.
    pub size: usize,
    /// The longest datagram, in bytes.
    pub mtu: usize,
}

/// The messages that carry an image: one, or fragments in order. Each datagram has at most `mtu`
/// bytes.
///
/// The bytes are cut at multiples of three. So receivers may decode each fragment, or all
/// together.
///
/// # Errors
/// The image needs too many fragments.
pub fn messages(image: &[u8], timestamp: u64, mtu: usize) -> Result<Vec<Message>, ImageTooLong> {
    let whole = Message::ImageData {
        image: BASE64.encode(image),
        timestamp,
    };
    if whole.encode().len() <= mtu {
        return Ok(vec![whole]);
    }
    let size = image.len();
    let largest = Message::ImageFragment {
        sequence: MAX_FRAGMENTS,
        total: MAX_FRAGMENTS,
        image: String::new(),
        timestamp,
    };
    let room = mtu.saturating_sub(largest.encode().len());
    let piece = room / 4 * 3;
    let total = size.checked_div(piece).map(|_| size.div_ceil(piece));
    let total = total.and_then(|total| u32::try_from(total).ok());
    let total = total.filter(|total| *total <= MAX_FRAGMENTS);
    let total = total.ok_or(ImageTooLong { size, mtu })?;
    let pieces = (1..).zip(image.chunks(piece));
    let fragments = pieces.map(|(sequence, piece)| Message::ImageFragment {
        sequence,
        total,
        image: BASE64.encode(piece),
        timestamp,
    });
    Ok(fragments.collect())
}

/// A complete image, as its sender has cut it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Image {
    /// The base64 texts of the fragments, in order.
    pub texts: Vec<String>,
    /// The timestamps of the fragments.
    pub timestamps: Vec<u64>,
}

/// The image is not base64.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the image is not base64")]
pub struct NotBase64;

impl Image {
    /// The image of an `image_data` message.
    pub fn whole(image: String, timestamp: u64) -> Self {
        Self {
            texts: vec![image],
            timestamps: vec![timestamp],
        }
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// A text is not base64.
    pub fn decode(&self) -> Result<Vec<u8>, NotBase64> {
        // Some senders encode each fragment, others cut the encoded text.
        let ends = self
            .texts
            .split_last()
            .map_or(&[][..], |(_, others)| others);
        if ends.iter().any(|text| text.ends_with('=')) {
            let pieces = self.texts.iter().map(|text| BASE64.decode(text));
            let pieces: Result<Vec<_>, _> = pieces.collect();
            return pieces.map(|pieces| pieces.concat()).map_err(|_| NotBase64);
        }
        BASE64.decode(self.texts.concat()).map_err(|_| NotBase64)
    }

    /// The messages that carry it, as it was sent.
    pub fn messages(&self) -> Vec<Message> {
        let total = u32::try_from(self.texts.len()).unwrap_or(MAX_FRAGMENTS);
        if let ([text], [timestamp]) = (&self.texts[..], &self.timestamps[..]) {
            let (image, timestamp) = (text.clone(), *timestamp);
            return vec![Message::ImageData { image, timestamp }];
        }
        let parts = (1..).zip(self.texts.iter().zip(&self.timestamps));
        let parts = parts.map(|(sequence, (text, timestamp))| Message::ImageFragment {
            sequence,
            total,
            image: text.clone(),
            timestamp: *timestamp,
        });
        parts.collect()
    }

    /// The name of the file format, from its first bytes.
    pub fn format_of(bytes: &[u8]) -> Option<&'static str> {
        match bytes {
            [0xff, 0xd8, 0xff, ..] => Some("jpeg"),
            [0x89, b'P', b'N', b'G', ..] => Some("png"),
            [b'G', b'I', b'F', b'8', ..] => Some("gif"),
            [b'B', b'M', ..] => Some("bmp"),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Some("webp"),
            _ => None,
        }
    }
}

/// The width and height in the header of a JPEG file, in pixels. `None` if it is none, or ends before
/// them.
#[must_use]
pub fn size_of_jpeg(file: &[u8]) -> Option<(u32, u32)> {
    let mut rest = file.strip_prefix(&[0xff, 0xd8])?;
    loop {
        let [0xff, marker, behind @ ..] = rest else {
            return None;
        };
        match marker {
            // Bytes between two segments.
            0xff => rest = &rest[1..],
            // Those without a length.
            0x01 | 0xd0..=0xd7 => rest = behind,
            // The size comes before the data.
            0xd8..=0xda => return None,
            _ => {
                let [high, low, ..] = *behind else {
                    return None;
                };
                let length = usize::from(u16::from_be_bytes([high, low]));
                let segment = behind.get(..length)?;
                let is_frame =
                    matches!(marker, 0xc0..=0xcf) && ![0xc4, 0xc8, 0xcc].contains(marker);
                if let (true, [_, _, _, h1, h2, w1, w2, ..]) = (is_frame, segment) {
                    let number = |high: u8, low: u8| u32::from(u16::from_be_bytes([high, low]));
                    let size = (number(*w1, *w2), number(*h1, *h2));
                    return Some(size).filter(|(width, height)| *width > 0 && *height > 0);
                }
                rest = behind.get(length.max(2)..)?;
            }
        }
    }
}

/// Collects the fragments of robots: a few images for each, the oldest first.
///
/// Fragments do not say to which image they belong, and may overtake each other. A fragment belongs
/// to the newest image that lacks it, has the same total, and has timestamps that ascend with it:
/// senders stamp an image or each of its fragments. Otherwise it begins an image. A complete image
/// ends older ones.
#[derive(Debug, Default)]
pub struct Reassembly {
    sets: HashMap<SocketAddr, VecDeque<Set>>,
    abandoned: u64,
}

#[derive(Debug)]
struct Set {
    since: Duration,
    parts: Vec<Option<(String, u64)>>,
    missing: usize,
    size: usize,
}

impl Set {
    fn new(since: Duration, total: usize) -> Self {
        Self {
            since,
            parts: vec![None; total],
            missing: total,
            size: 0,
        }
    }

    /// Whether this fragment can be one of the image.
    fn lacks(&self, index: usize, total: usize, timestamp: u64) -> bool {
        if self.parts.len() != total || self.parts.get(index) != Some(&None) {
            return false;
        }
        let mut others = self.parts.iter().enumerate();
        others.all(|(other, part)| match part {
            Some((_, stamp)) if other < index => *stamp <= timestamp,
            Some((_, stamp)) => *stamp >= timestamp,
            None => true,
        })
    }
}

impl Reassembly {
    /// Takes a fragment with valid numbers; returns the image if it is complete.
    ///
    /// `now` is the time since any start.
    pub fn handle_fragment(
        &mut self,
        now: Duration,
        source: SocketAddr,
        sequence: u32,
        total: u32,
        text: String,
        timestamp: u64,
    ) -> Option<Image> {
        self.handle_timeout(now);
        let index = usize::try_from(sequence.checked_sub(1)?).ok()?;
        let total = usize::try_from(total).ok()?;
        let part = (text, timestamp);
        let sets = self.sets.entry(source).or_default();
        let is_copy = |set: &Set| {
            set.parts.len() == total
                && set
                    .parts
                    .get(index)
                    .is_some_and(|it| it.as_ref() == Some(&part))
        };
        if sets.iter().any(is_copy) {
            return None;
        }
        let mut newest_first = (0..sets.len()).rev();
        let place = newest_first.find(|place| sets[*place].lacks(index, total, timestamp));
        let mut place = place.unwrap_or_else(|| {
            sets.push_back(Set::new(now, total));
            sets.len() - 1
        });
        let size = part.0.len();
        let used = |sets: &VecDeque<Set>| sets.iter().map(|set| set.size).sum::<usize>();
        while sets.len() > MAX_OPEN_IMAGES || used(sets) + size > MAX_IMAGE {
            sets.pop_front();
            self.abandoned += 1;
            // It was the image of this fragment, which is too long alone.
            place = place.checked_sub(1)?;
        }
        let set = sets.get_mut(place)?;
        set.size += size;
        *set.parts.get_mut(index)? = Some(part);
        set.missing -= 1;
        if set.missing > 0 {
            return None;
        }
        let parts = sets.remove(place)?.parts;
        self.abandoned += place as u64;
        sets.drain(..place);
        let (texts, timestamps) = parts.into_iter().flatten().unzip();
        Some(Image { texts, timestamps })
    }

    /// Drops images that have waited too long.
    pub fn handle_timeout(&mut self, now: Duration) {
        for sets in self.sets.values_mut() {
            let before = sets.len();
            sets.retain(|set| now < set.since + MAX_IMAGE_AGE);
            self.abandoned += (before - sets.len()) as u64;
        }
        self.sets.retain(|_, sets| !sets.is_empty());
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn next_timeout(&self) -> Option<Duration> {
        let sets = self.sets.values().flatten();
        sets.map(|set| set.since + MAX_IMAGE_AGE).min()
    }

    /// Drops the images of a robot that is gone.
    pub fn forget(&mut self, source: SocketAddr) {
        let sets = self.sets.remove(&source);
        self.abandoned += sets.map_or(0, |sets| sets.len() as u64);
    }

    /// The number of images that were dropped incomplete.
    pub fn abandoned(&self) -> u64 {
        self.abandoned
    }

    /// The memory of all incomplete images, in bytes of base64.
    pub fn used(&self) -> usize {
        self.sets.values().flatten().map(|set| set.size).sum()
    }
}

#[cfg(test)]
mod tests;
