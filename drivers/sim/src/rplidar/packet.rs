//! The bytes of answers, nodes and capsules. PURE.

/// How points are sent. The numbers are the types of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One node of 5 bytes for each point. Sixteen are sent at once.
    Nodes = 0x81,
    /// 32 points.
    Express = 0x82,
    /// 96 points.
    Ultra = 0x84,
    /// 40 points.
    Dense = 0x85,
}

impl Format {
    /// The points that are sent at once.
    pub(super) fn points(self) -> usize {
        match self {
            Self::Nodes => 16,
            Self::Express => 32,
            Self::Ultra => 96,
            Self::Dense => 40,
        }
    }

    /// The length of a node or a capsule in bytes.
    fn length(self) -> u32 {
        match self {
            Self::Nodes => 5,
            Self::Express | Self::Dense => 84,
            Self::Ultra => 132,
        }
    }

    /// How far what is seen is behind the head, as this format can say it. `wanted` is in degrees.
    pub(super) fn behind_deg(self, wanted: f64) -> f64 {
        match self {
            Self::Express => (wanted * 8.0).round().clamp(0.0, 63.0) / 8.0,
            Self::Nodes | Self::Ultra | Self::Dense => wanted,
        }
    }
}

/// A point as it is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// How far the head has turned from the front, in degrees.
    pub head_deg: f64,
    /// How far what is seen is behind it.
    pub behind_deg: f64,
    /// 0 without an echo.
    pub mm: f64,
}

/// The head and the data of an answer.
#[must_use]
pub fn answer(kind: u8, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u32).to_le_bytes();
    [&[0xA5, 0x5A][..], &length, &[kind], data].concat()
}

/// The head of a stream.
#[must_use]
pub fn stream(format: Format) -> Vec<u8> {
    let mut head = answer(format as u8, &[]);
    head[2..6].copy_from_slice(&(format.length() | (1 << 30)).to_le_bytes());
    head
}

/// An angle in 1/64 degree.
fn sixty_fourths(deg: f64) -> u16 {
    // Below 23040.
    ((deg.rem_euclid(360.0) * 64.0).round() as u32 % 23_040) as u16
}

/// A node. `starts` says that it is the first one of a turn.
#[must_use]
pub fn node(sample: Sample, starts: bool) -> [u8; 5] {
    let quality: u8 = if sample.mm > 0.0 { 15 } else { 0 };
    let angle = sixty_fourths(sample.head_deg - sample.behind_deg);
    let [low, high] = ((angle << 1) | 1).to_le_bytes();
    // Saturates at 16 m.
    let [near, far] = ((sample.mm * 4.0).round() as u16).to_le_bytes();
    let start = if starts { 1 } else { 2 };
    [(quality << 2) | start, low, high, near, far]
}

/// A capsule of these points; `next` is the first one behind it. `is_first` says that it is the first
/// of a scan.
#[must_use]
pub fn capsule(format: Format, samples: &[Sample], next: Sample, is_first: bool) -> Vec<u8> {
    let head_deg = samples.first().map_or(0.0, |sample| sample.head_deg);
    let angle = sixty_fourths(head_deg) | if is_first { 0x8000 } else { 0 };
    let mut body = angle.to_le_bytes().to_vec();
    match format {
        Format::Nodes => {}
        Format::Express => samples.chunks_exact(2).for_each(|pair| {
            let behind = |sample: Sample| (sample.behind_deg * 8.0).round() as u16;
            // At most 14 and 6 bits.
            let mm = |sample: Sample| (sample.mm.round() as u16).min(16_383);
            let word = |sample: Sample| (mm(sample) << 2) | (behind(sample) >> 4);
            body.extend(word(pair[0]).to_le_bytes());
            body.extend(word(pair[1]).to_le_bytes());
            body.push(((behind(pair[0]) & 15) | (behind(pair[1]) << 4)) as u8);
        }),
        Format::Ultra => ultra(&mut body, samples, next),
        Format::Dense => {
            let words = samples.iter().map(|sample| sample.mm.round() as u16);
            body.extend(words.flat_map(u16::to_le_bytes));
        }
    }
    let sum = body.iter().fold(0, |sum, byte| sum ^ byte);
    [&[0xA0 | (sum & 15), 0x50 | (sum >> 4)][..], &body].concat()
}

/// The groups of three points of an ultra capsule.
fn ultra(body: &mut Vec<u8>, samples: &[Sample], next: Sample) {
    let majors = samples.iter().step_by(3).chain([&next]);
    let majors: Vec<_> = majors.map(|sample| code(sample.mm)).collect();
    for (group, pair) in samples.chunks_exact(3).zip(majors.windows(2)) {
        let [(own, own_mm, own_shift), (_, next_mm, next_shift)] = [pair[0], pair[1]];
        let (base_mm, shift) = match own_mm {
            0 => (next_mm, next_shift),
            _ => (own_mm, own_shift),
        };
        let word = u32::from(own)
            | (difference(group[1].mm, base_mm, shift) << 12)
            | (difference(group[2].mm, next_mm, next_shift) << 22);
        body.extend(word.to_le_bytes());
    }
}

/// The code of a distance, and which distance and shift that is.
fn code(mm: f64) -> (u16, u16, u32) {
    const PARTS: [(u16, u16, u32); 5] = [
        (16_384, 3_328, 4),
        (4_096, 1_792, 3),
        (2_048, 1_280, 2),
        (512, 512, 1),
        (0, 0, 0),
    ];
    let mm = (mm.round() as u16).min(28_656);
    let part = PARTS.into_iter().find(|(from_mm, ..)| mm >= *from_mm);
    let (from_mm, from, shift) = part.unwrap_or_default();
    let steps = (mm - from_mm) >> shift;
    (from + steps, from_mm + (steps << shift), shift)
}

/// The ten bits of a difference; those of "no measurement" if it is too large.
fn difference(mm: f64, base_mm: u16, shift: u32) -> u32 {
    let steps = ((mm - f64::from(base_mm)) / f64::from(1 << shift)).round();
    let fits = mm > 0.0 && (-511.0..=510.0).contains(&steps);
    let steps = if fits { steps as i32 } else { -512 };
    (steps & 0x3FF) as u32
}
