//! The packets of Feetech servos: STS, SMS and SCS. PURE.
//!
//! ```text
//!  FF FF id length instruction parameters.. sum       request
//!  FF FF id length alarms      values..     sum       answer
//! ```
//!
//! The length counts what follows it. The sum is the complement of that of all bytes before it, without
//! the two FF.

use crate::bus_servos::wire::{EVERYBODY, Found, MAX_ID, Request, Status};

/// What is asked of a servo.
pub mod instruction {
    /// Whether it is there.
    pub const PING: u8 = 0x01;
    /// The values of registers.
    pub const READ: u8 = 0x02;
    /// Values for registers.
    pub const WRITE: u8 = 0x03;
    /// The values of registers of several servos: not for SCS.
    pub const SYNC_READ: u8 = 0x82;
    /// Values for registers of several servos.
    pub const SYNC_WRITE: u8 = 0x83;
}

/// The longest packet.
const MAX_PACKET: usize = 250;

/// A packet without values.
const SHORTEST: usize = 6;

/// A whole request.
#[must_use]
pub fn packet(id: u8, instruction: u8, parameters: &[u8]) -> Vec<u8> {
    // All requests of this driver are shorter than the longest packet.
    let length = (parameters.len() + 2) as u8;
    let mut bytes = vec![0xFF, 0xFF, id, length, instruction];
    bytes.extend(parameters);
    bytes.push(sum(&bytes[2..]));
    bytes
}

/// A request as bytes. Addresses of Feetech have one byte.
#[must_use]
pub fn encode(request: &Request) -> Vec<u8> {
    match request {
        Request::Ping(id) => packet(*id, instruction::PING, &[]),
        Request::Read { id, at, count } => packet(*id, instruction::READ, &[*at as u8, *count]),
        Request::GroupRead { at, count, ids } => {
            let parameters = [&[*at as u8, *count], ids.as_slice()].concat();
            packet(EVERYBODY, instruction::SYNC_READ, &parameters)
        }
        Request::GroupWrite { at, values } => {
            let count = values.first().map_or(0, |(_, bytes)| bytes.len());
            let mut parameters = vec![*at as u8, count as u8];
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
    let start = bytes.windows(2).position(|two| two == [0xFF, 0xFF]);
    match start {
        Some(0) => {}
        Some(start) => return Found::Noise(start),
        // The last byte may be the first of the next packet.
        None if bytes.last() == Some(&0xFF) && bytes.len() > 1 => {
            return Found::Noise(bytes.len() - 1);
        }
        None if bytes == [0xFF] || bytes.is_empty() => return Found::Incomplete,
        None => return Found::Noise(bytes.len()),
    }
    let (id, length) = match bytes {
        [_, _, id, length, ..] => (*id, usize::from(*length)),
        // A third FF belongs to no header.
        [_, _, 0xFF, ..] => return Found::Noise(1),
        _ => return Found::Incomplete,
    };
    if id > MAX_ID || !(2..=MAX_PACKET - 4).contains(&length) {
        return Found::Noise(1);
    }
    let whole = length + 4;
    let Some(packet) = bytes.get(..whole) else {
        return Found::Incomplete;
    };
    let error = packet[4];
    // The uppermost bit is no alarm.
    if packet[whole - 1] != sum(&packet[2..whole - 1]) || error > 0x7F {
        return Found::Damaged(2);
    }
    let data = packet[5..whole - 1].to_vec();
    Found::Status(Status { id, error, data }, whole)
}

/// How many bytes an answer with so many values has.
#[must_use]
pub fn answer_length(values: usize) -> usize {
    SHORTEST + values
}

fn sum(bytes: &[u8]) -> u8 {
    !bytes
        .iter()
        .fold(0, |sum: u8, byte| sum.wrapping_add(*byte))
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

    /// Exchanged with the libraries of others.
    #[test]
    fn requests_are_those_of_the_maker() {
        let write = |at, values: &[(u8, &str)]| Request::GroupWrite {
            at,
            values: values.iter().map(|(id, it)| (*id, hex(it))).collect(),
        };
        for (request, bytes) in [
            (Request::Ping(1), "FF FF 01 02 01 FB"),
            (Request::Ping(EVERYBODY), "FF FF FE 02 01 FE"),
            (
                Request::Read {
                    id: 1,
                    at: 3,
                    count: 2,
                },
                "FF FF 01 04 02 03 02 F3",
            ),
            (
                Request::Read {
                    id: 1,
                    at: 56,
                    count: 15,
                },
                "FF FF 01 04 02 38 0F B1",
            ),
            (
                Request::GroupRead {
                    at: 56,
                    count: 2,
                    ids: vec![1, 2, 3],
                },
                "FF FF FE 07 82 38 02 01 02 03 38",
            ),
            (
                write(42, &[(1, "00 08"), (2, "B8 0B")]),
                "FF FF FE 0A 83 2A 02 01 00 08 02 B8 0B 7A",
            ),
            // LeKiwi drives ahead, by LeRobot 0.6.1.
            (
                write(46, &[(7, "69 84"), (8, "00 00"), (9, "69 04")]),
                "FF FF FE 0D 83 2E 02 07 69 84 08 00 00 09 69 04 CF",
            ),
        ] {
            assert_eq!(encode(&request), hex(bytes), "{request:?}");
        }
        for (id, code, parameters, bytes) in [
            (1, instruction::WRITE, "28 01", "FF FF 01 04 03 28 01 CE"),
            (
                1,
                instruction::WRITE,
                "2A B8 0B",
                "FF FF 01 05 03 2A B8 0B 09",
            ),
            (
                1,
                instruction::WRITE,
                "29 32 34 08 00 00 60 09",
                "FF FF 01 0A 03 29 32 34 08 00 00 60 09 F1",
            ),
            (
                7,
                instruction::WRITE,
                "2E 69 84",
                "FF FF 07 05 03 2E 69 84 D5",
            ),
            (1, instruction::WRITE, "37 00", "FF FF 01 04 03 37 00 C0"),
            (1, instruction::WRITE, "05 06", "FF FF 01 04 03 05 06 EC"),
            (
                1,
                instruction::WRITE,
                "2A 02 00 00 00 03 20",
                "FF FF 01 09 03 2A 02 00 00 00 03 20 A3",
            ),
        ] {
            assert_eq!(packet(id, code, &hex(parameters)), hex(bytes));
        }
    }

    #[test]
    fn answers_are_those_of_the_servos() {
        for (bytes, expected) in [
            ("FF FF 01 02 00 FC", status(1, 0, "")),
            ("FF FF 06 02 20 D7", status(6, 0x20, "")),
            ("FF FF 01 04 00 09 03 EE", status(1, 0, "09 03")),
            ("FF FF 01 04 00 05 04 F1", status(1, 0, "05 04")),
            ("FF FF 01 04 00 0A 80 70", status(1, 0, "0A 80")),
            ("FF FF 01 04 01 00 08 F1", status(1, 1, "00 08")),
            ("FF FF 01 04 00 02 00 F8", status(1, 0, "02 00")),
            (
                "FF FF 01 11 00 00 08 32 80 64 04 4A 1F 00 00 01 00 08 0C 00 4D",
                status(1, 0, "00 08 32 80 64 04 4A 1F 00 00 01 00 08 0C 00"),
            ),
        ] {
            let bytes = hex(bytes);
            let length = bytes.len();
            assert_eq!(answer_length(expected.data.len()), length);
            assert_eq!(find(&bytes), Found::Status(expected.clone(), length));
            // Byte by byte, behind noise.
            let mut line = Line::default();
            line.push(&[0x12, 0xFF, 0x00, 0xFF]);
            let mut found = Vec::new();
            for byte in &bytes {
                line.push(&[*byte]);
                found.extend(std::iter::from_fn(|| line.next(find)));
            }
            assert_eq!(found, [expected]);
        }
    }

    #[test]
    fn a_damaged_answer_costs_only_itself() {
        let good = hex("FF FF 02 04 00 00 08 F1");
        let length = good.len();
        for damaged in 2..length {
            let mut bytes = [good.clone(), good.clone()].concat();
            bytes[damaged] ^= 0x10;
            let mut line = Line::default();
            // What a wrong length promises arrives later.
            line.push(&[bytes, good.repeat(40)].concat());
            let found: Vec<_> = std::iter::from_fn(|| line.next(find)).collect();
            assert_eq!(found.len(), 41, "{damaged}");
            assert!(found.iter().all(|it| it.data == [0, 8]), "{found:?}");
        }
        // Two servos with one id: five bytes were seen instead of six.
        let mut line = Line::default();
        line.push(&hex("FF 60 18 FB EF"));
        assert_eq!(line.next(find), None);
        // A sum that is right, with an alarm that cannot be.
        assert_eq!(find(&packet(1, 0x80, &[])), Found::Damaged(2));
    }

    /// The driver never asks for two bytes, so it does not take them for an answer.
    #[test]
    fn an_echo_looks_like_an_answer_with_two_bytes() {
        let request = Request::Read {
            id: 1,
            at: 33,
            count: 38,
        };
        let echo = encode(&request);
        let found = Found::Status(status(1, 2, "21 26"), echo.len());
        assert_eq!(find(&echo), found);
        let request = Request::GroupRead {
            at: 33,
            count: 38,
            ids: vec![1],
        };
        assert_eq!(find(&encode(&request)), Found::Noise(1));
    }
}
