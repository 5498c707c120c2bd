//! SCIP 2, the text protocol of Hokuyo scanners: builds requests and parses replies from a byte
//! stream. PURE.
//!
//! A reply consists of the echoed request, a status, lines of data, and an empty line. All lines
//! but the first end with a checksum.

use std::collections::VecDeque;

/// The longest valid line.
const MAX_LINE: usize = 256;

/// The maximum number of lines in a reply. 1081 points with intensity need fewer.
const MAX_LINES: usize = 256;

/// The status that a SCIP 1.1 scanner sends for an unknown request. It has no checksum.
pub const REFUSED_BY_SCIP_1: &str = "E";

/// A complete reply with valid checksums.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The request as the scanner understood it.
    pub echo: String,
    /// Two characters, such as `00`, or [`REFUSED_BY_SCIP_1`].
    pub status: String,
    /// The lines of data without their checksums.
    pub lines: Vec<Vec<u8>>,
}

/// Assembles replies, and resynchronizes after invalid bytes.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    lines: Vec<Vec<u8>>,
    /// Skips until the next empty line because the reply is too long.
    skips: bool,
    replies: VecDeque<Reply>,
    spoilt: u64,
}

impl Parser {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' => self.end_line(),
                _ if self.line.len() == MAX_LINE => self.skips = true,
                _ => self.line.push(*byte),
            }
        }
    }

    /// The next reply.
    pub fn poll(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    /// The number of replies that were discarded as invalid.
    pub fn spoilt(&self) -> u64 {
        self.spoilt
    }

    /// Discards a partial reply.
    pub fn clear(&mut self) {
        self.line.clear();
        self.lines.clear();
        self.skips = false;
        self.replies.clear();
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            if self.lines.len() == MAX_LINES {
                self.skips = true;
            } else {
                self.lines.push(line);
            }
            return;
        }
        let lines = std::mem::take(&mut self.lines);
        let skipped = std::mem::take(&mut self.skips);
        if lines.is_empty() && !skipped {
            return;
        }
        match reply(lines) {
            Some(reply) if !skipped => self.replies.push_back(reply),
            _ => self.spoilt += 1,
        }
    }
}

fn reply(lines: Vec<Vec<u8>>) -> Option<Reply> {
    if let [echo @ .., status] = &lines[..]
        && status == REFUSED_BY_SCIP_1.as_bytes()
        && echo.len() <= 1
    {
        return Some(Reply {
            echo: String::from_utf8(echo.concat()).ok()?,
            status: REFUSED_BY_SCIP_1.to_owned(),
            lines: Vec::new(),
        });
    }
    let mut lines = lines.into_iter();
    let echo = String::from_utf8(lines.next()?).ok()?;
    let status = String::from_utf8(without_sum(lines.next()?)?).ok()?;
    if !(2..=3).contains(&status.len()) {
        return None;
    }
    // In the lines that describe the scanner, the checksum excludes the semicolon before it. In
    // scan data a semicolon there is part of the data and is included.
    let describes = ["VV", "PP", "II"].iter().any(|name| echo.starts_with(name));
    let lines = lines
        .map(|line| match describes {
            true => without_sum_and_semicolon(line),
            false => without_sum(line),
        })
        .collect::<Option<_>>()?;
    Some(Reply {
        echo,
        status,
        lines,
    })
}

fn without_sum(mut line: Vec<u8>) -> Option<Vec<u8>> {
    let given = line.pop()?;
    (given == sum(&line)).then_some(line)
}

fn without_sum_and_semicolon(mut line: Vec<u8>) -> Option<Vec<u8>> {
    let given = line.pop()?;
    line.pop_if(|last| *last == b';')?;
    (given == sum(&line)).then_some(line)
}

fn sum(line: &[u8]) -> u8 {
    let sum = line.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    (sum & 0x3F) + 0x30
}

impl Reply {
    /// The value of a key such as `DMIN`, in a reply that describes the scanner.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.lines.iter().find_map(|line| {
            let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
            (name == key).then_some(value)
        })
    }

    /// A scan with this number of points, three characters each: the scanner's time in ms, and the
    /// distances in mm.
    pub fn scan(&self, points: usize) -> Option<(u32, Vec<i32>)> {
        let (time, data) = self.lines.split_first()?;
        let time = number(time).filter(|_| time.len() == 4)?;
        // A value may start on one line and end on the next.
        let data = data.concat();
        if data.len() != points * 3 {
            return None;
        }
        let distances = data.chunks_exact(3).map(number);
        let distances: Option<Vec<_>> = distances.collect();
        let distances = distances?.into_iter().map(u32::cast_signed).collect();
        Some((time, distances))
    }
}

/// Six bits per character, the most significant first.
fn number(characters: &[u8]) -> Option<u32> {
    characters.iter().try_fold(0, |number, character| {
        let bits = character.checked_sub(0x30).filter(|bits| *bits < 0x40)?;
        Some(number << 6 | u32::from(bits))
    })
}

/// The geometry of a scanner, from its reply to `PP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Steps in a full turn.
    pub steps_per_turn: u16,
    /// The first measured step.
    pub first: u16,
    /// The last measured step.
    pub last: u16,
    /// The step straight ahead.
    pub front: u16,
    /// Turns per minute.
    pub rpm: u16,
}

impl Geometry {
    /// The geometry of the URG-04LX.
    pub const URG_04LX: Self = Self {
        steps_per_turn: 1024,
        first: 44,
        last: 725,
        front: 384,
        rpm: 600,
    };

    /// Reads the reply to `PP`; `None` if a value is missing or invalid.
    pub fn of(reply: &Reply) -> Option<Self> {
        let number = |key| reply.value(key)?.parse().ok();
        let geometry = Self {
            steps_per_turn: number("ARES")?,
            first: number("AMIN")?,
            last: number("AMAX")?,
            front: number("AFRT")?,
            rpm: number("SCAN")?,
        };
        let makes_sense = geometry.steps_per_turn > 0
            && geometry.rpm > 0
            && geometry.first <= geometry.last
            && geometry.last < 10_000;
        makes_sense.then_some(geometry)
    }

    /// The number of points in a scan.
    pub fn points(&self) -> usize {
        usize::from(self.last - self.first) + 1
    }

    /// The time of one turn.
    pub fn turn_ns(&self) -> u64 {
        60_000_000_000 / u64::from(self.rpm.max(1))
    }

    /// The request for one scan.
    pub fn single(&self) -> String {
        format!("GD{:04}{:04}01", self.first, self.last)
    }

    /// The request for continuous scans, with this number of scans skipped between two.
    pub fn continuous(&self, skipped: u8) -> String {
        format!("MD{:04}{:04}01{}00", self.first, self.last, skipped.min(9))
    }
}

#[cfg(test)]
mod tests;
