//! Finds the points in the bytes that a scanner sends while it scans, also after invalid ones. PURE.

use super::capsule::{Capsule, Format, Point, node};

/// Nodes have only three bits to check. So this many must be good in a row, after others that are
/// not.
const TRUSTED: usize = 5;
/// The angle from one node to the next. Where a near object ends, it jumps.
const MAX_STEP_DEG: f64 = 20.0;
/// The angle of a whole capsule: otherwise others are missing before the next one.
const MAX_SPAN_DEG: f64 = 90.0;

/// The stream of a scan.
#[derive(Clone, Debug)]
pub struct Stream {
    format: Format,
    bytes: Vec<u8>,
    /// The capsule before the next one.
    before: Option<Capsule>,
    /// The angles of the last node and of the head, while nodes follow each other.
    last_deg: Option<(f64, f64)>,
    skipped: u64,
}

impl Stream {
    /// A stream that begins with the next byte.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self {
            format,
            bytes: Vec::new(),
            before: None,
            last_deg: None,
            skipped: 0,
        }
    }

    /// Adds received bytes. Take all points after each call.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next points.
    pub fn poll(&mut self) -> Option<Vec<Point>> {
        match self.format {
            Format::Nodes => Some(self.nodes()).filter(|points| !points.is_empty()),
            _ => self.capsule(),
        }
    }

    /// The number of bytes that belong to no point.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    fn nodes(&mut self) -> Vec<Point> {
        let length = Format::Nodes.length();
        let mut at = 0;
        let mut found = Vec::new();
        loop {
            let count = if self.last_deg.is_some() { 1 } else { TRUSTED };
            let Some(bytes) = self.bytes.get(at..at + count * length) else {
                break;
            };
            match chain(bytes, self.last_deg.map(|(angle_deg, _)| angle_deg)) {
                Some(mut point) => {
                    // Its angle is corrected for the sideways view, so it may jump back. The head
                    // does not.
                    let head_deg = match self.last_deg {
                        Some((_, head_deg)) if apart_deg(head_deg, point.angle_deg) < 0.0 => {
                            head_deg
                        }
                        _ => point.angle_deg,
                    };
                    point.head_deg = head_deg;
                    self.last_deg = Some((point.angle_deg, head_deg));
                    found.push(point);
                    at += length;
                }
                // The same node may be the first of others.
                None if self.last_deg.is_some() => self.last_deg = None,
                None => {
                    self.skipped += 1;
                    at += 1;
                }
            }
        }
        self.bytes.drain(..at);
        found
    }

    fn capsule(&mut self) -> Option<Vec<Point>> {
        let length = self.format.length();
        let mut at = 0;
        let mut found = None;
        while let Some(bytes) = self.bytes.get(at..at + length) {
            let Some(capsule) = Capsule::read(self.format, bytes) else {
                // Those around a damaged one are not neighbours. It may hide the head of the next.
                self.before = None;
                self.skipped += 1;
                at += 1;
                continue;
            };
            at += length;
            let before = self.before.take().filter(|_| !capsule.is_first());
            let before = before.filter(|it| it.span_deg(&capsule) <= MAX_SPAN_DEG);
            found = before.map(|it| it.points(&capsule));
            self.before = Some(capsule);
            if found.is_some() {
                break;
            }
        }
        self.bytes.drain(..at);
        found
    }
}

/// The first of these nodes, if all are good and follow each other.
fn chain(bytes: &[u8], mut before_deg: Option<f64>) -> Option<Point> {
    let mut first = None;
    for bytes in bytes.chunks(Format::Nodes.length()) {
        let point = node(bytes)?;
        if before_deg.is_some_and(|it| apart_deg(it, point.angle_deg).abs() > MAX_STEP_DEG) {
            return None;
        }
        before_deg = Some(point.angle_deg);
        first = first.or(Some(point));
    }
    first
}

/// How far one angle is ahead of another, from -180 to below 180 degrees.
fn apart_deg(from_deg: f64, to_deg: f64) -> f64 {
    (to_deg - from_deg + 180.0).rem_euclid(360.0) - 180.0
}

#[cfg(test)]
mod tests;
