//! Servos of Feetech on one bus: STS3215, and SCS0009. PURE.
//!
//! Written from the maker's tables. A servo has 128 registers: below 40 its memory, above what it was
//! told and what it does. 16-bit values have their lower byte first, those of SCS their upper byte.
//! Signs are single bits.

pub use self::servo::{Family, Servo};
pub use self::twin::{DEVICE, Model, Options};
use crate::bus_servos::{self, Bus, EVERYBODY, Servo as _};

mod servo;
#[cfg(test)]
mod tests;
mod twin;

/// The longest packet behind its length.
const MAX_LENGTH: u8 = 250;

/// What they understand.
#[derive(Debug)]
pub struct Protocol;

/// The servos on a bus.
pub type Feetech = Bus<Protocol>;

impl Feetech {
    /// These servos, just switched on.
    #[must_use]
    pub fn new(servos: impl IntoIterator<Item = (u8, Family)>) -> Self {
        let servos = servos.into_iter();
        Self::of(servos.map(|(id, family)| Servo::new(id, family)))
    }
}

impl bus_servos::Protocol for Protocol {
    type Servo = Servo;

    /// A request with a right sum, without its header and its sum.
    fn next_request(input: &mut Vec<u8>) -> Option<Vec<u8>> {
        loop {
            let start = input.windows(2).position(|two| two == [0xFF, 0xFF]);
            let Some(start) = start else {
                // The last byte may begin a header.
                let keep = usize::from(input.last() == Some(&0xFF));
                input.drain(..input.len() - keep);
                return None;
            };
            input.drain(..start);
            let [_, _, id, length, ..] = **input else {
                return None;
            };
            if id == 0xFF || !(2..=MAX_LENGTH).contains(&length) {
                input.drain(..1);
                continue;
            }
            let whole = usize::from(length) + 4;
            if input.len() < whole {
                return None;
            }
            let packet = input[2..whole - 1].to_vec();
            let is_right = input[whole - 1] == sum(&packet);
            input.drain(..if is_right { whole } else { 1 });
            if is_right {
                return Some(packet);
            }
        }
    }

    /// A request: the id, the length, the instruction and its parameters.
    fn carry_out(bus: &mut Feetech, packet: &[u8]) {
        let (id, parameters) = (packet[0], &packet[3..]);
        match (packet[2], parameters) {
            (0x01, []) if id == EVERYBODY => {
                let ids = bus.ids(|servo| servo.family() == Family::Sts);
                for id in ids {
                    bus.answer(id, |_| Some(Vec::new()));
                }
            }
            (0x01, []) => bus.answer(id, |_| Some(Vec::new())),
            (0x02, [at, count]) => bus.answer(id, |servo| servo.read(*at, *count)),
            (0x03, [at, values @ ..]) => bus.answer(id, |servo| {
                servo.write(*at, values);
                servo.confirms().then(Vec::new)
            }),
            (0x04, [at, values @ ..]) => bus.answer(id, |servo| {
                servo.register(*at, values);
                servo.confirms().then(Vec::new)
            }),
            (0x05, []) => {
                for servo in bus.servos_mut() {
                    if id == EVERYBODY || id == servo.id() {
                        servo.act();
                    }
                }
            }
            (0x82, [at, count, ids @ ..]) if id == EVERYBODY => {
                for id in ids {
                    bus.answer(*id, |servo| {
                        let can = servo.family() == Family::Sts;
                        servo.read(*at, *count).filter(|_| can)
                    });
                }
            }
            (0x83, [at, count, rest @ ..]) if id == EVERYBODY && *count > 0 => {
                for values in rest.chunks_exact(usize::from(*count) + 1) {
                    for servo in bus.servos_mut() {
                        if servo.id() == values[0] && servo.hears() {
                            servo.write(*at, &values[1..]);
                        }
                    }
                }
            }
            // What it does not know, it ignores.
            _ => {}
        }
    }

    fn answer(servo: &Servo, values: &[u8]) -> Vec<u8> {
        packet(servo.id(), servo.error(), values)
    }
}

/// A whole packet.
#[must_use]
pub fn packet(id: u8, instruction: u8, parameters: &[u8]) -> Vec<u8> {
    // At most 250 bytes are asked for.
    let inside = [&[id, parameters.len() as u8 + 2, instruction], parameters].concat();
    [&[0xFF, 0xFF], inside.as_slice(), &[sum(&inside)]].concat()
}

fn sum(inside: &[u8]) -> u8 {
    !inside
        .iter()
        .fold(0, |sum: u8, byte| sum.wrapping_add(*byte))
}
