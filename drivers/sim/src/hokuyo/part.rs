//! The requested part of a scan, and its encoding. PURE.

use super::model::{Model, Scan};
use super::scip::{Reply, encode};
use super::{Status, UNDEFINED};

/// The requested part of a scan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    first: u32,
    last: u32,
    cluster: u32,
    content: Content,
}

/// The encoding of values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Content {
    /// Distances of three characters.
    Long,
    /// Distances of two characters.
    Short,
    /// Distances and intensities of three characters each.
    Intensity,
}

impl Part {
    /// Parses `ssss eeee cc` after the name of a command; the request must be `len` characters
    /// long, including what follows.
    pub(super) fn parse(
        model: Model,
        name: &str,
        parameters: &str,
        len: usize,
    ) -> Result<Self, Status> {
        let content = match name {
            "GD" | "MD" => Content::Long,
            "GS" | "MS" => Content::Short,
            _ if model == Model::Utm30Lx => Content::Intensity,
            _ => return Err(UNDEFINED),
        };
        if parameters.len() < len {
            return Err("0C");
        }
        if parameters.len() > len {
            return Err("0D");
        }
        let first = digits(&parameters[..4], 4).ok_or("01")?;
        let last = digits(&parameters[4..8], 4).ok_or("02")?;
        let cluster = digits(&parameters[8..10], 2).ok_or("03")?;
        if last > model.end_step() {
            return Err("04");
        }
        if last < first {
            return Err("05");
        }
        Ok(Self {
            first,
            last,
            cluster: cluster.max(1),
            content,
        })
    }

    /// The time and data of a scan, appended to a reply.
    pub(super) fn block(self, reply: Reply, time: u32, scan: &Scan) -> Vec<u8> {
        let mut characters = Vec::new();
        let mut first = self.first as usize;
        let last = self.last as usize;
        while first <= last {
            let end = (first + self.cluster as usize - 1).min(last);
            let (distance, intensity) = nearest(scan, first, end);
            match self.content {
                Content::Long => characters.extend(encode(distance, 3)),
                Content::Short => characters.extend(encode(distance.min(4_095), 2)),
                Content::Intensity => {
                    characters.extend(encode(distance, 3));
                    characters.extend(encode(intensity, 3));
                }
            }
            first = end + 1;
        }
        reply.line(encode(time, 4)).data(&characters).end()
    }
}

/// The smallest valid value of some steps, or a code if there is none.
fn nearest(scan: &Scan, first: usize, last: usize) -> (u32, u32) {
    let at = |step: usize| {
        let distance = scan.distances.get(step).copied().unwrap_or_default();
        let intensity = scan.intensities.get(step).copied().unwrap_or_default();
        (distance, intensity)
    };
    (first..=last)
        .map(at)
        .filter(|(distance, _)| *distance >= 20)
        .min()
        .unwrap_or_else(|| at(first))
}

/// Parses a number with this number of digits.
pub(super) fn digits(text: &str, count: usize) -> Option<u32> {
    let all = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}
