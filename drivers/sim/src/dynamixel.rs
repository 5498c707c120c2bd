//! Servos of Dynamixel on one bus: XL430 and XL330, by protocol 2.0. PURE.
//!
//! Written from the maker's tables. A servo has 147 registers: below 64 its memory, above what it was
//! told and what it does. Values have their lower byte first, and two's complement.
//!
//! In a group, each waits for the answer of the one before it. So those behind a missing one are silent.

use self::servo::Refusal;
pub use self::servo::{Servo, Type};
pub use self::twin::{DEVICE, Model, Options};
use crate::bus_servos::{self, Bus, EVERYBODY, Servo as _};

mod servo;
#[cfg(test)]
mod tests;
mod twin;

const HEADER: [u8; 4] = [0xFF, 0xFF, 0xFD, 0x00];
/// What must not be inside a packet: another FD follows it there.
const FORBIDDEN: [u8; 3] = [0xFF, 0xFF, 0xFD];
/// Header, id and length.
const BEFORE: usize = 7;
/// The longest request behind its length.
const MAX_LENGTH: usize = 512;
/// What an answer has instead of an instruction.
const STATUS: u8 = 0x55;

/// What they understand.
#[derive(Debug)]
pub struct Protocol;

/// The servos on a bus.
pub type Dynamixel = Bus<Protocol>;

impl Dynamixel {
    /// These servos, just switched on.
    #[must_use]
    pub fn new(servos: impl IntoIterator<Item = (u8, Type)>) -> Self {
        let servos = servos.into_iter();
        Self::of(servos.map(|(id, of)| Servo::new(id, of)))
    }
}

impl bus_servos::Protocol for Protocol {
    type Servo = Servo;

    /// A request with a right sum: its id, its instruction and its parameters.
    fn next_request(input: &mut Vec<u8>) -> Option<Vec<u8>> {
        loop {
            let is_header = |at: &usize| HEADER.starts_with(&input[*at..input.len().min(at + 4)]);
            let start = (0..input.len()).find(is_header).unwrap_or(input.len());
            input.drain(..start);
            let [_, _, _, _, id, low, high, ..] = **input else {
                return None;
            };
            let length = usize::from(u16::from_le_bytes([low, high]));
            if !(3..=MAX_LENGTH).contains(&length) {
                input.drain(..1);
                continue;
            }
            let (before, whole) = (BEFORE + length - 2, BEFORE + length);
            if input.len() < whole {
                return None;
            }
            if crc(&input[..before]).to_le_bytes() == input[before..whole] {
                let inside = unstuffed(&input[BEFORE..before]);
                input.drain(..whole);
                return Some([&[id], inside.as_slice()].concat());
            }
            input.drain(..1);
        }
    }

    fn carry_out(bus: &mut Dynamixel, request: &[u8]) {
        let [id, instruction, parameters @ ..] = request else {
            return;
        };
        let is_for_all = *id == EVERYBODY;
        for servo in bus.servos_mut() {
            servo.hear();
        }
        match (*instruction, parameters) {
            (0x01, []) if is_for_all => {
                for id in bus.ids(|_| true) {
                    bus.answer(id, |servo| servo.say(0, servo.ping()));
                }
            }
            (0x01, []) => bus.answer(*id, |servo| servo.say(0, servo.ping())),
            (0x02, span) if span.len() == 4 => read(bus, *id, span),
            (0x03, [low, high, values @ ..]) => bus.answer(*id, |servo| {
                let done = servo.write(word(*low, *high), values);
                servo.say(2, done)
            }),
            (0x04, [low, high, values @ ..]) => bus.answer(*id, |servo| {
                servo.register(word(*low, *high), values);
                servo.say(2, Ok(Vec::new()))
            }),
            (0x05, []) => bus.answer(*id, |servo| {
                let done = servo.act();
                servo.say(2, done)
            }),
            // A restart.
            (0x08, []) if !is_for_all => bus.answer(*id, |servo| {
                servo.power_cycle();
                servo.say(2, Ok(Vec::new()))
            }),
            (0x82, all) if is_for_all && all.len() > 4 => {
                let (span, ids) = all.split_at(4);
                let there = |id: &&u8| bus.servos().iter().any(|it| it.id() == **id && it.hears());
                let count = ids.iter().take_while(there).count();
                for id in &ids[..count] {
                    read(bus, *id, span);
                }
            }
            (0x83, [low, high, less, more, rest @ ..]) if is_for_all => {
                let count = usize::from(word(*less, *more));
                for values in rest.chunks_exact(count + 1) {
                    write(bus, values[0], word(*low, *high), &values[1..]);
                }
            }
            (0x92, all) if is_for_all => {
                for one in all.chunks_exact(5) {
                    read(bus, one[0], &one[1..]);
                }
            }
            (0x93, mut rest) if is_for_all => {
                while let [id, low, high, less, more, behind @ ..] = rest {
                    let count = usize::from(word(*less, *more)).min(behind.len());
                    let (values, next) = behind.split_at(count);
                    write(bus, *id, word(*low, *high), values);
                    rest = next;
                }
            }
            _ if is_for_all => {}
            _ => bus.answer(*id, |servo| servo.say(1, Err(Refusal::Instruction))),
        }
    }

    /// The values begin with the error.
    fn answer(servo: &Servo, values: &[u8]) -> Vec<u8> {
        packet(servo.id(), STATUS, values)
    }
}

/// Servos answer with registers: the first one and the count, two bytes each.
fn read(bus: &mut Dynamixel, id: u8, span: &[u8]) {
    let (at, count) = (word(span[0], span[1]), word(span[2], span[3]));
    bus.answer(id, |servo| servo.say(1, servo.read(at, count)));
}

/// Servos write what was told several of them. Nobody answers.
fn write(bus: &mut Dynamixel, id: u8, at: u16, values: &[u8]) {
    let servos = bus.servos_mut().iter_mut();
    for servo in servos.filter(|servo| servo.id() == id && servo.hears()) {
        let _ = servo.write(at, values);
    }
}

/// A whole packet.
#[must_use]
pub fn packet(id: u8, instruction: u8, parameters: &[u8]) -> Vec<u8> {
    let mut inside = Vec::new();
    for byte in [&[instruction], parameters].concat() {
        inside.push(byte);
        if inside.ends_with(&FORBIDDEN) {
            inside.push(0xFD);
        }
    }
    // All packets are shorter than 64 KiB.
    let length = (inside.len() as u16 + 2).to_le_bytes();
    let mut bytes = [&HEADER[..], &[id], &length, &inside].concat();
    bytes.extend(crc(&bytes).to_le_bytes());
    bytes
}

fn unstuffed(inside: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut is_extra = false;
    for byte in inside {
        if !(std::mem::take(&mut is_extra) && *byte == 0xFD) {
            bytes.push(*byte);
            is_extra = bytes.ends_with(&FORBIDDEN);
        }
    }
    bytes
}

fn word(low: u8, high: u8) -> u16 {
    u16::from_le_bytes([low, high])
}

/// A CRC with the polynomial 8005.
fn crc(bytes: &[u8]) -> u16 {
    let mut crc = 0_u16;
    for byte in bytes {
        crc ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            let carry = crc & 0x8000 != 0;
            crc = (crc << 1) ^ if carry { 0x8005 } else { 0 };
        }
    }
    crc
}
