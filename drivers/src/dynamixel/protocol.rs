//! The packets of Dynamixel servos, by protocol 2.0. PURE.
//!
//! ```text
//!  FF FF FD 00 id length(2) instruction parameters.. crc(2)       request
//!  FF FF FD 00 id length(2) 55 error    values..     crc(2)       answer
//! ```
//!
//! The length counts what follows it. Inside a packet, FF FF FD is followed by another FD, so that it is
//! no header ("stuffing"). The uppermost bit of the error says that something is wrong with the servo;
//! the others are a number that says why it refuses the request.

use crate::bus_servos::wire::{EVERYBODY, Found, MAX_ID, Request, Status};

/// What is asked of a servo.
pub mod instruction {
    /// Whether it is there.
    pub const PING: u8 = 0x01;
    /// The values of registers.
    pub const READ: u8 = 0x02;
    /// Values for registers.
    pub const WRITE: u8 = 0x03;
    /// What an answer has instead of an instruction.
    pub const STATUS: u8 = 0x55;
    /// The values of registers of several servos.
    pub const SYNC_READ: u8 = 0x82;
    /// Values for registers of several servos.
    pub const SYNC_WRITE: u8 = 0x83;
}

const HEADER: [u8; 4] = [0xFF, 0xFF, 0xFD, 0x00];
/// What must not be inside a packet.
const FORBIDDEN: [u8; 3] = [0xFF, 0xFF, 0xFD];
/// Header, id and length.
const BEFORE: usize = 7;
/// An answer without values.
const SHORTEST: usize = 11;
/// Longer answers are not asked for.
const MAX_LENGTH: usize = 256;

/// A whole request.
#[must_use]
pub fn packet(id: u8, instruction: u8, parameters: &[u8]) -> Vec<u8> {
    let body = stuffed(&[&[instruction], parameters].concat());
    // All requests are shorter than 64 KiB.
    let length = (body.len() + 2) as u16;
    let mut bytes = [&HEADER[..], &[id], &length.to_le_bytes(), &body].concat();
    bytes.extend(crc(&bytes).to_le_bytes());
    bytes
}

/// A request as bytes.
#[must_use]
pub fn encode(request: &Request) -> Vec<u8> {
    match request {
        Request::Ping(id) => packet(*id, instruction::PING, &[]),
        Request::Read { id, at, count } => packet(*id, instruction::READ, &span(*at, *count)),
        Request::GroupRead { at, count, ids } => {
            let parameters = [&span(*at, *count), ids.as_slice()].concat();
            packet(EVERYBODY, instruction::SYNC_READ, &parameters)
        }
        Request::GroupWrite { at, values } => {
            let count = values.first().map_or(0, |(_, bytes)| bytes.len());
            let mut parameters = span(*at, count as u8).to_vec();
            for (id, bytes) in values {
                parameters.push(*id);
                parameters.extend(bytes);
            }
            packet(EVERYBODY, instruction::SYNC_WRITE, &parameters)
        }
    }
}

/// What the first bytes on the line are.
#[must_use]
pub fn find(bytes: &[u8]) -> Found {
    let is_header = |at: &usize| HEADER.starts_with(&bytes[*at..bytes.len().min(at + 4)]);
    match (0..bytes.len()).find(is_header) {
        Some(0) => {}
        Some(start) => return Found::Noise(start),
        None if bytes.is_empty() => return Found::Incomplete,
        None => return Found::Noise(bytes.len()),
    }
    let [_, _, _, _, id, low, high, ..] = *bytes else {
        return Found::Incomplete;
    };
    let length = usize::from(u16::from_le_bytes([low, high]));
    // An instruction, an error and the CRC.
    if id > MAX_ID || !(4..=MAX_LENGTH).contains(&length) {
        return Found::Noise(1);
    }
    let whole = BEFORE + length;
    let Some(packet) = bytes.get(..whole) else {
        return Found::Incomplete;
    };
    let (before, sum) = packet.split_at(whole - 2);
    let body = unstuffed(&before[BEFORE..]);
    match body.as_slice() {
        _ if crc(before).to_le_bytes() != sum => Found::Damaged(1),
        [instruction::STATUS, error, data @ ..] => {
            let (error, data) = (*error, data.to_vec());
            Found::Status(Status { id, error, data }, whole)
        }
        // A request: an adapter repeats what it sends.
        _ => Found::Noise(whole),
    }
}

/// How many bytes an answer with so many values has, unless it is stuffed.
#[must_use]
pub fn answer_length(values: usize) -> usize {
    SHORTEST + values
}

fn span(at: u16, count: u8) -> [u8; 4] {
    let [low, high] = at.to_le_bytes();
    [low, high, count, 0]
}

fn stuffed(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len());
    for byte in body {
        bytes.push(*byte);
        if bytes.ends_with(&FORBIDDEN) {
            bytes.push(0xFD);
        }
    }
    bytes
}

fn unstuffed(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len());
    let mut is_extra = false;
    for byte in body {
        if std::mem::take(&mut is_extra) && *byte == 0xFD {
            continue;
        }
        bytes.push(*byte);
        is_extra = bytes.ends_with(&FORBIDDEN);
    }
    bytes
}

/// CRC-16 with the polynomial 8005, neither reflected nor inverted.
fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => (crc << 1) ^ 0x8005,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus_servos::wire::Line;

    fn hex(text: &str) -> Vec<u8> {
        let digits = text.split_ascii_whitespace();
        digits
            .map(|it| u8::from_str_radix(it, 16).unwrap())
            .collect()
    }

    fn status(id: u8, error: u8, data: &str) -> Status {
        let data = hex(data);
        Status { id, error, data }
    }

    /// Most of them are published by the maker.
    #[test]
    fn requests_are_those_of_the_maker() {
        let values = |all: &[(u8, &str)]| all.iter().map(|(id, it)| (*id, hex(it))).collect();
        for (request, bytes) in [
            (Request::Ping(1), "FF FF FD 00 01 03 00 01 19 4E"),
            (Request::Ping(EVERYBODY), "FF FF FD 00 FE 03 00 01 31 42"),
            (
                Request::Read {
                    id: 1,
                    at: 132,
                    count: 4,
                },
                "FF FF FD 00 01 07 00 02 84 00 04 00 1D 15",
            ),
            (
                Request::GroupRead {
                    at: 132,
                    count: 4,
                    ids: vec![1, 2],
                },
                "FF FF FD 00 FE 09 00 82 84 00 04 00 01 02 CE FA",
            ),
            (
                Request::GroupRead {
                    at: 132,
                    count: 4,
                    ids: (1..=6).collect(),
                },
                "FF FF FD 00 FE 0D 00 82 84 00 04 00 01 02 03 04 05 06 B2 9B",
            ),
            (
                Request::GroupWrite {
                    at: 116,
                    values: values(&[(1, "96 00 00 00"), (2, "AA 00 00 00")]),
                },
                "FF FF FD 00 FE 11 00 83 74 00 04 00 01 96 00 00 00 02 AA 00 00 00 82 87",
            ),
        ] {
            assert_eq!(encode(&request), hex(bytes), "{request:?}");
        }
        for (code, parameters, bytes) in [
            (
                0x03,
                "74 00 00 02 00 00",
                "FF FF FD 00 01 09 00 03 74 00 00 02 00 00 CA 89",
            ),
            (0x03, "40 00 01", "FF FF FD 00 01 06 00 03 40 00 01 DB 66"),
            (
                0x04,
                "68 00 C8 00 00 00",
                "FF FF FD 00 01 09 00 04 68 00 C8 00 00 00 AE 8E",
            ),
            (0x05, "", "FF FF FD 00 01 03 00 05 02 CE"),
            (0x08, "", "FF FF FD 00 01 03 00 08 2F 4E"),
            (
                0x10,
                "01 44 58 4C 22",
                "FF FF FD 00 01 08 00 10 01 44 58 4C 22 B1 DC",
            ),
            // Stuffed.
            (
                0x03,
                "74 00 FF FF FD 00",
                "FF FF FD 00 01 0A 00 03 74 00 FF FF FD FD 00 21 E7",
            ),
        ] {
            assert_eq!(packet(1, code, &hex(parameters)), hex(bytes));
        }
    }

    #[test]
    fn answers_are_those_of_the_servos() {
        for (bytes, expected) in [
            (
                "FF FF FD 00 01 07 00 55 00 06 04 26 65 5D",
                status(1, 0, "06 04 26"),
            ),
            (
                "FF FF FD 00 01 07 00 55 00 B0 04 34 B2 D4",
                status(1, 0, "B0 04 34"),
            ),
            (
                "FF FF FD 00 01 08 00 55 00 A6 00 00 00 8C C0",
                status(1, 0, "A6 00 00 00"),
            ),
            ("FF FF FD 00 01 04 00 55 00 A1 0C", status(1, 0, "")),
            ("FF FF FD 00 01 04 00 55 06 B5 0C", status(1, 6, "")),
            ("FF FF FD 00 01 04 00 55 07 B0 8C", status(1, 7, "")),
            ("FF FF FD 00 01 04 00 55 80 A2 8F", status(1, 0x80, "")),
        ] {
            let bytes = hex(bytes);
            let length = bytes.len();
            assert_eq!(answer_length(expected.data.len()), length);
            assert_eq!(find(&bytes), Found::Status(expected.clone(), length));
            // Byte by byte, behind noise.
            let mut line = Line::default();
            line.push(&[0x12, 0xFF, 0xFF, 0xFF]);
            let mut found = Vec::new();
            for byte in &bytes {
                line.push(&[*byte]);
                found.extend(std::iter::from_fn(|| line.next(find)));
            }
            assert_eq!(found, [expected]);
        }
    }

    #[test]
    fn what_looks_like_a_header_is_stuffed_and_comes_back() {
        for data in [
            "FF FF FD",
            "FF FF FD FD",
            "FF FF FF FD FF FF FD 00",
            "FD FF FF",
        ] {
            let data = hex(data);
            let bytes = packet(7, instruction::STATUS, &[&[0], data.as_slice()].concat());
            let inside = &bytes[4..];
            assert!(
                !inside.windows(4).any(|four| four == HEADER),
                "{bytes:02x?}"
            );
            let expected = Status {
                id: 7,
                error: 0,
                data,
            };
            assert_eq!(find(&bytes), Found::Status(expected, bytes.len()));
        }
    }

    #[test]
    fn neither_damage_nor_a_request_is_an_answer() {
        let good = hex("FF FF FD 00 01 08 00 55 00 A6 00 00 00 8C C0");
        for damaged in 4..good.len() {
            let mut bytes = good.clone();
            bytes[damaged] ^= 0x10;
            let mut line = Line::default();
            // What a wrong length promises arrives later.
            line.push(&[bytes, good.repeat(200)].concat());
            let found: Vec<_> = std::iter::from_fn(|| line.next(find)).collect();
            assert_eq!(found.len(), 200, "{damaged}");
            assert!(found.iter().all(|it| it.data == [0xA6, 0, 0, 0]));
        }
        // An echo is no status, and no damage.
        let mut line = Line::default();
        line.push(&encode(&Request::Read {
            id: 1,
            at: 132,
            count: 4,
        }));
        line.push(&encode(&Request::Ping(1)));
        line.push(&good);
        assert_eq!(line.next(find), Some(status(1, 0, "A6 00 00 00")));
        assert_eq!(line.damaged(), 0);
    }
}
