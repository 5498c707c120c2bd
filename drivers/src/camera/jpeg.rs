//! JPEG files as cameras send them: where they end, how large they are, and what is missing. PURE.
//!
//! ```text
//! FF D8 | FF xx length ... | FF DA length ... entropy-coded data | FF D9
//! start   segments           start of scan                         end
//! ```
//!
//! The end is found by this structure. To look for `FF D9` alone is not enough: a preview picture in a
//! segment has one, too. In a scan, `FF 00` and `FF D0` to `FF D7` are data. Progressive files have
//! several scans.
//!
//! What is repaired: bytes behind the end are cut off. A file without end gets one, and counts as
//! damaged. Many USB cameras leave out the Huffman tables, as in AVI files; the usual ones of the
//! standard are put in.

use std::sync::LazyLock;

use amber_proto::prost::bytes::Bytes;
use jpeg_encoder::{ColorType, Encoder};

/// The longest file, in bytes.
pub const MAX_BYTES: usize = 8 << 20;
/// The most pixels: a picture with more is not decoded.
pub const MAX_PIXELS: u32 = 16_000_000;

/// How files begin: the start, and the first byte of a segment.
const BEGIN: [u8; 3] = [0xFF, 0xD8, 0xFF];
const END: [u8; 2] = [0xFF, 0xD9];
/// Markers of segments.
const HUFFMAN_TABLES: u8 = 0xC4;
const START_OF_SCAN: u8 = 0xDA;

/// The usual Huffman tables, as the segments of a file.
static USUAL_TABLES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut file = Vec::new();
    // Writing to a vector does not fail; without tables, nothing would be put in.
    let _ = Encoder::new(&mut file, 50).encode(&[0; 8 * 8 * 3], 8, 8, ColorType::Ycbcr);
    let mut tables = Vec::new();
    let mut at = 2;
    while let Some([0xFF, marker, high, low]) = file.get(at..at + 4) {
        let end = at + 2 + usize::from(u16::from_be_bytes([*high, *low]));
        match *marker {
            HUFFMAN_TABLES => tables.extend_from_slice(&file[at..end]),
            START_OF_SCAN => break,
            _ => {}
        }
        at = end;
    }
    tables
});

/// A whole JPEG file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jpeg {
    /// The file.
    pub bytes: Bytes,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// The number of colour components: 1 for grey, 3 for colours.
    pub components: u8,
    /// Whether its end was missing.
    pub is_damaged: bool,
}

/// Why bytes are no picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPicture {
    /// They do not begin like one.
    #[error("it does not begin like a JPEG file")]
    Start,
    /// They end, or make no sense, before the pixels.
    #[error("it ends before its pixels")]
    Header,
    /// The size is missing, zero or too large.
    #[error("its size is missing or above 16 million pixels")]
    Size,
}

impl Jpeg {
    /// Reads a buffer that has one file, and puts in what is missing.
    ///
    /// # Errors
    /// The buffer has no picture.
    pub fn read(buffer: &[u8]) -> Result<Self, NoPicture> {
        if !buffer.starts_with(&BEGIN) {
            return Err(NoPicture::Start);
        }
        let mut walk = Walk::default();
        let length = match walk.advance(buffer) {
            Progress::Whole(length) => Some(length),
            Progress::More | Progress::Broken(_) => None,
        };
        let scan = walk.scan.ok_or(NoPicture::Header)?;
        let Frame {
            width,
            height,
            components,
        } = walk.frame.ok_or(NoPicture::Size)?;
        let (width, height) = (u32::from(width), u32::from(height));
        if width * height == 0 || width * height > MAX_PIXELS {
            return Err(NoPicture::Size);
        }
        let is_damaged = length.is_none();
        let kept = match length {
            Some(length) => &buffer[..length],
            None => walk.sense(buffer),
        };
        let (before, after) = kept.split_at(scan);
        let tables: &[u8] = if walk.has_tables { &[] } else { &USUAL_TABLES };
        let end: &[u8] = if is_damaged { &END } else { &[] };
        Ok(Self {
            bytes: [before, tables, after, end].concat().into(),
            width,
            height,
            components,
            is_damaged,
        })
    }
}

/// The way through a file, which can be continued when more of it has arrived.
#[derive(Clone, Debug, Default)]
struct Walk {
    /// What is read; the start is not.
    at: usize,
    is_in_scan: bool,
    frame: Option<Frame>,
    /// Where the first scan starts.
    scan: Option<usize>,
    /// Where the last segment ends.
    data: usize,
    has_tables: bool,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    width: u16,
    height: u16,
    components: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The end has not arrived.
    More,
    /// The length of the file.
    Whole(usize),
    /// Here is something that cannot be: often the next file, because the end was lost.
    Broken(usize),
}

impl Walk {
    /// Continues in a buffer with all that has arrived of the file.
    fn advance(&mut self, bytes: &[u8]) -> Progress {
        self.at = self.at.max(2);
        loop {
            if self.is_in_scan && !self.skip_data(bytes) {
                return Progress::More;
            }
            let (marker, length) = match bytes.get(self.at..).unwrap_or_default() {
                // Any number of FF may be before a marker.
                [0xFF, 0xFF, ..] => {
                    self.at += 1;
                    continue;
                }
                [0xFF, 0xD9, ..] => return Progress::Whole(self.at + 2),
                // The next file begins, or a marker that has no meaning.
                [0xFF, 0x00 | 0xD8, ..] => return Progress::Broken(self.at),
                [0xFF, 0x01 | 0xD0..=0xD7, ..] => {
                    self.at += 2;
                    continue;
                }
                [0xFF, marker, high, low, ..] => {
                    (*marker, usize::from(u16::from_be_bytes([*high, *low])))
                }
                [] | [0xFF] | [0xFF, _] | [0xFF, _, _] => return Progress::More,
                _ => return Progress::Broken(self.at),
            };
            let end = self.at + 2 + length;
            let Some(content) = bytes.get(self.at + 4..end) else {
                return match length < 2 {
                    true => Progress::Broken(self.at),
                    false => Progress::More,
                };
            };
            match marker {
                HUFFMAN_TABLES => self.has_tables = true,
                START_OF_SCAN => {
                    self.scan.get_or_insert(self.at);
                    self.is_in_scan = true;
                }
                0xC0..=0xCF if marker != 0xC8 && marker != 0xCC => {
                    if let [_, h1, h2, w1, w2, components, ..] = content {
                        self.frame = Some(Frame {
                            width: u16::from_be_bytes([*w1, *w2]),
                            height: u16::from_be_bytes([*h1, *h2]),
                            components: *components,
                        });
                    }
                }
                _ => {}
            }
            (self.at, self.data) = (end, end);
        }
    }

    /// Skips data up to the marker behind it. `false` if that has not arrived.
    fn skip_data(&mut self, bytes: &[u8]) -> bool {
        loop {
            let rest = bytes.get(self.at..).unwrap_or_default();
            let Some(data) = rest.iter().position(|byte| *byte == 0xFF) else {
                self.at = bytes.len();
                return false;
            };
            self.at += data;
            match rest.get(data + 1) {
                None => return false,
                Some(0x00 | 0xD0..=0xD7) => self.at += 2,
                Some(0xFF) => self.at += 1,
                Some(_) => {
                    self.is_in_scan = false;
                    return true;
                }
            }
        }
    }

    /// What makes sense in a buffer whose end has come too early: without a part of a segment, and
    /// without the zeros with which some cameras fill their buffers.
    fn sense<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        let data = &buffer[self.data..self.at];
        let zeros = data.iter().rev().take_while(|byte| **byte == 0).count();
        let kept = &buffer[..self.at - zeros];
        match kept {
            // A zero belongs to the data behind `FF`.
            [.., 0xFF] if zeros > 0 => &buffer[..kept.len() + 1],
            _ => kept,
        }
    }
}

/// Finds the files in a stream of bytes, with anything between them.
#[derive(Clone, Debug, Default)]
pub struct Splitter {
    buffer: Vec<u8>,
    walk: Walk,
    /// The text that separates files, which the data of a file never has.
    boundary: Vec<u8>,
    /// The last bytes between files.
    between: Vec<u8>,
    broken: u64,
}

/// What is kept of the bytes between files.
const MAX_BETWEEN: usize = 2_048;

impl Splitter {
    /// Sets a text that separates files: a file without end stops there.
    pub fn set_boundary(&mut self, boundary: &str) {
        self.boundary = format!("--{boundary}").into_bytes();
    }

    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next file.
    pub fn poll(&mut self) -> Option<Jpeg> {
        loop {
            if !self.buffer.starts_with(&BEGIN) && !self.skip() {
                return None;
            }
            let end = match self.walk.advance(&self.buffer) {
                Progress::More if self.buffer.len() <= MAX_BYTES => return None,
                Progress::More => None,
                Progress::Whole(length) => Some(length),
                Progress::Broken(at) => self.walk.scan.map(|_| at),
            };
            self.walk = Walk::default();
            let Some(end) = end else {
                // The begin of a file was none.
                self.broken += 1;
                self.buffer.drain(..2);
                continue;
            };
            let file: Vec<u8> = self.buffer.drain(..end).collect();
            self.between.clear();
            match Jpeg::read(self.cut(&file)) {
                Ok(jpeg) => return Some(jpeg),
                Err(_) => self.broken += 1,
            }
        }
    }

    /// Forgets what has arrived.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.walk = Walk::default();
        self.between.clear();
    }

    /// The last bytes before the file that comes next: headers of HTTP, for example.
    pub fn between(&self) -> &[u8] {
        &self.between
    }

    /// The number of files that were dropped.
    pub fn broken(&self) -> u64 {
        self.broken
    }

    /// Skips to the begin of a file. `false` if it has not arrived.
    fn skip(&mut self) -> bool {
        let begin = (self.buffer.windows(BEGIN.len())).position(|window| window == BEGIN);
        // The last bytes may be the begin of one.
        let kept = (self.buffer.len() + 1).saturating_sub(BEGIN.len());
        let skipped = self.buffer.drain(..begin.unwrap_or(kept));
        self.between.extend(skipped);
        let excess = self.between.len().saturating_sub(MAX_BETWEEN);
        self.between.drain(..excess);
        begin.is_some()
    }

    /// Without what follows the boundary. Only a file without end has it.
    fn cut<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        let boundary = &self.boundary[..];
        if boundary.is_empty() || file.ends_with(&END) {
            return file;
        }
        let at = (file.windows(boundary.len())).position(|window| window == boundary);
        at.map_or(file, |at| file[..at].trim_ascii_end())
    }
}

#[cfg(test)]
mod tests;
