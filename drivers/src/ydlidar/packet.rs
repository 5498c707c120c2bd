//! The packets of YDLIDAR scanners, and what can be said to a scanner. PURE.
//!
//! ```text
//!  0   aa 55   head
//!  2   u8      bit 0: the first packet of a turn, which has one point; the others: turns per 10 s
//!  3   u8      number of points
//!  4   u16     angle of the first point, 1/128 degree, clockwise; bit 0 is set
//!  6   u16     angle of the last point
//!  8   u16     xor of all other words; a strength of 8 bits counts as a word
//!  10  points  see Form
//! ```
//!
//! Newer scanners also send their time: `aa 66`, xor of the other bytes, u32 ms, 00.

/// The length of a packet without its points.
pub const HEAD: usize = 10;
/// The most points of a packet.
pub const MAX_POINTS: u8 = 80;
/// The length of a time.
const TIME: usize = 8;

/// Ends a scan.
pub const STOP: [u8; 4] = [0xA5, 0x00, 0xA5, 0x65];
/// Starts a scan.
pub const SCAN: [u8; 2] = [0xA5, 0x60];
/// Asks what the scanner is.
pub const INFO: [u8; 2] = [0xA5, 0x90];
/// Asks whether it has a fault: as the maker's programs do, and as its manuals say.
pub const HEALTH: [[u8; 2]; 2] = [[0xA5, 0x92], [0xA5, 0x91]];

/// The type of the answer about what it is: model, firmware, hardware, serial number.
pub const INFO_ANSWER: u8 = 0x04;
/// The type of the answer about a fault: state, and its code.
pub const HEALTH_ANSWER: u8 = 0x06;

/// How a point is sent. A packet does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// u16: distance in 1/4 mm.
    Plain,
    /// u16: distance in mm, and two bits that are set if another light disturbs it.
    Flagged,
    /// u8 strength, u16: distance in mm, and two bits that say why it may be wrong.
    Strength8,
    /// u8 and two bits of u16: strength; the rest is the distance in mm.
    Strength10,
}

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// In 1/4 mm; 0 without an echo.
    pub quarter_mm: u16,
    /// The strength of the echo, from 0 to 255; 0 if it is not told.
    pub strength: u8,
    /// Whether the scanner says that the distance may be wrong.
    pub is_doubtful: bool,
}

impl Form {
    /// The length of a point in bytes.
    #[must_use]
    pub fn length(self) -> usize {
        match self {
            Self::Plain | Self::Flagged => 2,
            Self::Strength8 | Self::Strength10 => 3,
        }
    }

    /// The word of the distance, and the byte before it.
    fn words(self, bytes: &[u8]) -> (u16, u8) {
        match *bytes {
            [low, high] => (u16::from_le_bytes([low, high]), 0),
            [strength, low, high] => (u16::from_le_bytes([low, high]), strength),
            _ => (0, 0),
        }
    }

    fn point(self, bytes: &[u8]) -> Point {
        let (word, byte) = self.words(bytes);
        let flags = word & 3;
        let (strength, is_doubtful) = match self {
            Self::Plain => (0, false),
            Self::Flagged => (0, flags != 0),
            // 2: seen through glass, 3: the sun.
            Self::Strength8 => (byte, flags >= 2),
            Self::Strength10 => ((byte >> 2) | ((flags as u8) << 6), false),
        };
        let is_plain = self == Self::Plain;
        Point {
            quarter_mm: if is_plain { word } else { word & !3 },
            strength,
            is_doubtful,
        }
    }
}

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Whether it is the first one of a turn.
    pub starts_turn: bool,
    /// The angle of the first point in 1/64 degree, clockwise from the front mark.
    pub first: u16,
    /// The angle of the last point.
    pub last: u16,
    /// None as long as it is not certain how they are sent.
    pub points: Vec<Point>,
    /// Its length in bytes.
    pub length: usize,
}

/// A full turn in 1/64 degree.
const TURN: u16 = 360 * 64;

impl Packet {
    /// Reads a packet of this form; `None` if its head, its checksum or an angle is wrong.
    #[must_use]
    pub fn read(form: Form, bytes: &[u8]) -> Option<Self> {
        let (head, points) = bytes.split_at_checked(HEAD)?;
        let &[0xAA, 0x55, kind, count, _, _, _, _, sum_low, sum_high] = head else {
            return None;
        };
        if count == 0 || points.len() != usize::from(count) * form.length() {
            return None;
        }
        let points = points.chunks_exact(form.length());
        let word = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let sum = points.clone().fold(0, |sum, point| {
            let (word, byte) = form.words(point);
            sum ^ word ^ u16::from(byte)
        });
        let sum = [0, 2, 4, 6].into_iter().fold(sum, |sum, at| sum ^ word(at));
        let (first, last) = (word(4), word(6));
        let makes_sense = first & last & 1 == 1 && first >> 1 < TURN && last >> 1 < TURN;
        (makes_sense && sum.to_le_bytes() == [sum_low, sum_high]).then(|| Self {
            starts_turn: kind & 1 == 1,
            first: first >> 1,
            last: last >> 1,
            points: points.map(|point| form.point(point)).collect(),
            length: bytes.len(),
        })
    }

    /// The angle from the first point to the last one, in degrees.
    #[must_use]
    pub fn span_deg(&self) -> f64 {
        let ahead = match self.last.checked_sub(self.first) {
            Some(ahead) => ahead,
            None => self.last + (TURN - self.first),
        };
        f64::from(ahead) / 64.0
    }

    /// The angle of a point in degrees, from 0 to below 360.
    #[must_use]
    pub fn angle_deg(&self, point: usize) -> f64 {
        let parts = self.points.len().saturating_sub(1).max(1) as f64;
        let way = self.span_deg() * point as f64 / parts;
        (f64::from(self.first) / 64.0 + way).rem_euclid(360.0)
    }

    /// Whether its form is certain: another one would have given another checksum.
    fn shows_form(&self) -> bool {
        self.points.len() > 1 && self.points.iter().any(|point| point.quarter_mm > 0)
    }
}

/// Finds packets in a stream of bytes, also after invalid ones.
#[derive(Clone, Debug)]
pub struct Parser {
    forms: &'static [Form],
    /// The form that the scanner uses.
    form: Option<Form>,
    bytes: Vec<u8>,
    skipped: u64,
}

/// What stands at the beginning of some bytes.
enum Begin {
    Packet(Packet),
    Time,
    /// More bytes are needed to tell.
    Cut,
    Nothing,
}

impl Parser {
    /// For packets of one of these forms, the shortest first.
    #[must_use]
    pub fn new(forms: &'static [Form]) -> Self {
        let mut parser = Self {
            forms,
            form: None,
            bytes: Vec::new(),
            skipped: 0,
        };
        parser.clear();
        parser
    }

    /// Adds received bytes. Take all packets after each call.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next packet.
    pub fn poll(&mut self) -> Option<Packet> {
        let mut at = 0;
        let found = loop {
            match self.begin(at) {
                Begin::Packet(packet) => {
                    at += packet.length;
                    break Some(packet);
                }
                Begin::Time => at += TIME,
                Begin::Cut => break None,
                // A damaged packet may hide the head of the next one.
                Begin::Nothing => {
                    at += 1;
                    self.skipped += 1;
                }
            }
        };
        self.bytes.drain(..at);
        found
    }

    fn begin(&mut self, at: usize) -> Begin {
        let bytes = &self.bytes[at..];
        let count = match *bytes {
            [] | [0xAA] => return Begin::Cut,
            [0xAA, 0x66, ..] => {
                return match bytes.first_chunk::<TIME>() {
                    None => Begin::Cut,
                    Some(time) if time.iter().fold(0, |sum, byte| sum ^ byte) == 0 => Begin::Time,
                    Some(_) => Begin::Nothing,
                };
            }
            [0xAA, 0x55] | [0xAA, 0x55, _] => return Begin::Cut,
            [0xAA, 0x55, _, count @ 1..=MAX_POINTS, ..] => usize::from(count),
            _ => return Begin::Nothing,
        };
        let forms = match &self.form {
            Some(form) => std::slice::from_ref(form),
            None => self.forms,
        };
        for &form in forms {
            let length = HEAD + count * form.length();
            let Some(bytes) = bytes.get(..length) else {
                return Begin::Cut;
            };
            if let Some(mut packet) = Packet::read(form, bytes) {
                if self.form.is_some() || packet.shows_form() {
                    self.form = Some(form);
                } else {
                    packet.points.clear();
                }
                return Begin::Packet(packet);
            }
        }
        Begin::Nothing
    }

    /// The number of bytes that belong to no packet.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Discards a partial packet, and forgets the form.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.form = match self.forms {
            [only] => Some(*only),
            _ => None,
        };
    }
}

#[cfg(test)]
mod tests;
