//! What a scanner measures: single nodes, and capsules of many points. PURE.
//!
//! ```text
//!  node (type 81)     u8 quality << 2 | start of a turn, inverted | the same
//!                     u16 angle << 1 | 1 in 1/64 degree, u16 distance in 1/4 mm
//!  capsule (others)   u8 a0 | low half of the checksum, u8 50 | high half: xor of all bytes behind
//!                     u16 angle of the first point in 1/64 degree; bit 15: the first capsule
//!                     type 82  16 x 5 bytes: two distances in mm, and how far they are behind
//!                     type 84  32 x u32: a distance, and two differences from it and from the next
//!                     type 85  40 x u16: distances in mm
//!                     type 86  32 x 5 bytes: two distances with their strengths; before the angle,
//!                              u32 time and u16 status
//! ```
//!
//! A capsule says where its first point is. The angle between its points follows from the next one,
//! so it can be read only then.

/// The angle of a full turn in 1/64 degree.
const TURN: u16 = 360 * 64;
/// What the SDK of the maker says of nearer objects.
const NEAREST_BEHIND_DEG: f64 = 7.5;

/// How a scanner sends its points. The numbers are the types of its answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Single nodes.
    Nodes = 0x81,
    /// Express: 32 points.
    Express = 0x82,
    /// Ultra, used by Boost, Sensitivity and Stability: 96 points.
    Ultra = 0x84,
    /// Dense: 40 points.
    Dense = 0x85,
    /// Ultra dense: 64 points.
    UltraDense = 0x86,
}

impl Format {
    /// The format of a type of answers; `None` if this driver does not know it.
    #[must_use]
    pub fn of(answer: u8) -> Option<Self> {
        let all = [
            Self::Nodes,
            Self::Express,
            Self::Ultra,
            Self::Dense,
            Self::UltraDense,
        ];
        all.into_iter().find(|format| *format as u8 == answer)
    }

    /// The number of bytes of a node or a capsule.
    #[must_use]
    pub fn length(self) -> usize {
        match self {
            Self::Nodes => 5,
            Self::Express | Self::Dense => 84,
            Self::Ultra => 132,
            Self::UltraDense => 174,
        }
    }

    /// The number of points in it.
    #[must_use]
    pub fn points(self) -> usize {
        match self {
            Self::Nodes => 1,
            Self::Express => 32,
            Self::Ultra => 96,
            Self::Dense => 40,
            Self::UltraDense => 64,
        }
    }

    /// How many points are measured before the last point of a capsule can be read.
    #[must_use]
    pub fn delay(self) -> usize {
        match self {
            Self::Nodes => 0,
            _ => self.points(),
        }
    }

    /// How far most points are behind the head, in degrees: scanners that triangulate send these
    /// formats. The angles of nodes are corrected.
    #[must_use]
    pub fn usual_behind_deg(self) -> f64 {
        match self {
            Self::Express | Self::Ultra => 7.3,
            Self::Nodes | Self::Dense | Self::UltraDense => 0.0,
        }
    }

    /// Where a capsule has the angle of its first point.
    fn angle_at(self) -> usize {
        match self {
            Self::UltraDense => 8,
            _ => 2,
        }
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where the head points, in degrees clockwise from the front mark; it may be below 0 or above
    /// 360.
    pub head_deg: f64,
    /// The direction of what was measured. A scanner that triangulates looks sideways.
    pub angle_deg: f64,
    /// Distance in mm; 0 without one.
    pub mm: u16,
    /// Strength of the echo, without a unit; 0 if it is not told.
    pub quality: u8,
}

/// Reads a node; `None` if its check bits or its angle are wrong.
#[must_use]
pub fn node(bytes: &[u8]) -> Option<Point> {
    let &[quality, low, high, near, far] = bytes else {
        return None;
    };
    let angle = u16::from_le_bytes([low, high]) >> 1;
    let is_valid = (quality ^ (quality >> 1)) & 1 == 1 && low & 1 == 1 && angle < TURN;
    let angle_deg = f64::from(angle) / 64.0;
    // Rounded; at most 16384.
    let mm = (u32::from(u16::from_le_bytes([near, far])) + 2) / 4;
    is_valid.then_some(Point {
        head_deg: angle_deg,
        angle_deg,
        mm: mm as u16,
        quality: quality >> 2,
    })
}

/// A capsule with the right checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capsule {
    format: Format,
    /// In 1/64 degree.
    angle: u16,
    is_first: bool,
    /// The points.
    body: Vec<u8>,
}

/// A point of a capsule: its distance in mm, its strength, and how far it is behind the head.
type Measured = (u16, u8, f64);

impl Capsule {
    /// Reads a capsule; `None` if its head, its checksum or its angle is wrong.
    #[must_use]
    pub fn read(format: Format, bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<2>()?;
        let sum = rest.iter().fold(0, |sum, byte| sum ^ byte);
        let is_head = (head[0] >> 4, head[1] >> 4) == (0xA, 0x5);
        let is_right = bytes.len() == format.length() && ((head[0] & 15) | (head[1] << 4)) == sum;
        let word = word(bytes, format.angle_at());
        let angle = word & 0x7FFF;
        (is_head && is_right && angle <= TURN).then(|| Self {
            format,
            angle,
            is_first: word & 0x8000 != 0,
            body: bytes[format.angle_at() + 2..].to_vec(),
        })
    }

    /// Whether it is the first one after the start, or after the scanner has lost its angle: those
    /// before it do not belong to it.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// The angle from its first point to that of the next capsule, in degrees.
    #[must_use]
    pub fn span_deg(&self, next: &Self) -> f64 {
        let turn = i32::from(TURN);
        let ahead = (i32::from(next.angle) - i32::from(self.angle)).rem_euclid(turn);
        f64::from(ahead) / 64.0
    }

    /// Its points.
    #[must_use]
    pub fn points(&self, next: &Self) -> Vec<Point> {
        let start_deg = f64::from(self.angle) / 64.0;
        let step_deg = self.span_deg(next) / self.format.points() as f64;
        let measured = match self.format {
            Format::Nodes => Vec::new(),
            Format::Express => self.express(),
            Format::Ultra => self.ultra(next),
            Format::Dense => self.dense(),
            Format::UltraDense => self.ultra_dense(),
        };
        let point = |(index, (mm, quality, behind_deg)): (usize, Measured)| {
            let head_deg = start_deg + step_deg * index as f64;
            Point {
                head_deg,
                angle_deg: head_deg - behind_deg,
                mm,
                quality,
            }
        };
        measured.into_iter().enumerate().map(point).collect()
    }

    fn express(&self) -> Vec<Measured> {
        let cabins = self.body.chunks_exact(5);
        // The manual takes the highest of the six bits for a sign, but scanners send it unsigned.
        let read = |word: u16, low: u8| {
            let behind = ((word & 3) << 4) | u16::from(low);
            (word >> 2, 0, f64::from(behind) / 8.0)
        };
        cabins
            .flat_map(|cabin| {
                let low = cabin[4];
                [
                    read(word(cabin, 0), low & 15),
                    read(word(cabin, 2), low >> 4),
                ]
            })
            .collect()
    }

    fn ultra(&self, next: &Self) -> Vec<Measured> {
        let majors: Vec<_> = (self.body.chunks_exact(4))
            .chain(next.body.chunks_exact(4).take(1))
            .map(|cabin| (major(word(cabin, 0) & 0xFFF), cabin))
            .collect();
        let three = |pair: &[((u16, u32), &[u8])]| {
            let [(own, cabin), (following, _)] = pair else {
                return [0; 3];
            };
            let bits = u32::from(word(cabin, 0)) | (u32::from(word(cabin, 2)) << 16);
            let base = if own.0 == 0 { following } else { own };
            [
                own.0,
                predicted(*base, bits >> 12),
                predicted(*following, bits >> 22),
            ]
        };
        let distances = majors.windows(2).flat_map(three);
        distances.map(|mm| (mm, 0, behind_deg(mm))).collect()
    }

    fn dense(&self) -> Vec<Measured> {
        let cabins = self.body.chunks_exact(2);
        cabins.map(|cabin| (word(cabin, 0), 0, 0.0)).collect()
    }

    fn ultra_dense(&self) -> Vec<Measured> {
        let cabins = self.body.chunks_exact(5);
        cabins
            .flat_map(|cabin| {
                let (a, b, high) = (word(cabin, 0), word(cabin, 2), u32::from(cabin[4]));
                let words = [
                    u32::from(a) | ((high & 15) << 16),
                    u32::from(b) | ((high >> 4) << 16),
                ];
                words.map(strong_distance)
            })
            .collect()
    }
}

/// How far what is seen at this distance is behind the head, in an ultra capsule.
fn behind_deg(mm: u16) -> f64 {
    if mm < 50 {
        return NEAREST_BEHIND_DEG;
    }
    // Below 492.
    let near = 98_361 / (4 * u32::from(mm));
    let radians = f64::from(64 * near + near.pow(3) / 98_304) / 65_536.0;
    8.0 - radians.to_degrees()
}

/// The distance of a code of 12 bits in mm, and by how much its differences are shifted: the
/// farther, the coarser.
fn major(code: u16) -> (u16, u32) {
    match code {
        ..512 => (code, 0),
        512..1_280 => (512 + 2 * (code - 512), 1),
        1_280..1_792 => (2_048 + 4 * (code - 1_280), 2),
        1_792..3_328 => (4_096 + 8 * (code - 1_792), 3),
        _ => (16_384 + 16 * (code - 3_328), 4),
    }
}

/// A distance from another one and a difference of 10 bits with a sign; 0 without a measurement.
fn predicted((base_mm, shift): (u16, u32), bits: u32) -> u16 {
    let difference = ((bits & 0x3FF) as i32 ^ 0x200) - 0x200;
    match difference {
        -512 | 511 => 0,
        _ => {
            let mm = i32::from(base_mm) + (difference << shift);
            // At most 28656 and 511 times 16.
            mm.max(0) as u16
        }
    }
}

/// The distance of a word of 20 bits, with the strength of its echo.
fn strong_distance(word: u32) -> Measured {
    let value = word >> 2;
    let (mm, strength) = match word & 3 {
        0 => (2 * (value & 0x3FF), word >> 12),
        1 => (2_046 + 3 * (value & 0x7FF), (word >> 13) * 2),
        2 => (8_187 + 4 * (value & 0xFFF), (word >> 14) * 4),
        _ => (24_567 + 5 * (value & 0x1FFF), (word >> 15) * 8),
    };
    // At most 65522 and 255.
    (mm as u16, strength.min(255) as u8, 0.0)
}

/// The word at a place; 0 behind the end.
fn word(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..at + 2) {
        Some(&[low, high]) => u16::from_le_bytes([low, high]),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
