//! Servos of Feetech on one bus: STS3215, and SCS0009. PURE.
//!
//! Written from the maker's tables. A servo has 128 registers: below 40 its memory, above what it was
//! told and what it does. 16-bit values have their lower byte first, those of SCS their upper byte.
//! Signs are single bits.
//!
//! The line is half-duplex with one byte in ten bits: an answer comes when the request and the answers
//! before it are over. Servos with the same id answer at once, and destroy each other's bytes.

use std::collections::VecDeque;
use std::time::Duration;

pub use self::servo::{Family, Servo};
pub use self::twin::{DEVICE, Model, Options};

mod servo;
#[cfg(test)]
mod tests;
mod twin;

/// Tells all servos at once.
const EVERYBODY: u8 = 0xFE;

/// The most that waits for the rest of a packet.
const ROOM: usize = 1024;

/// The longest packet behind its length.
const MAX_LENGTH: u8 = 250;

/// The time of a byte at 1 000 000 bits per second.
const BYTE_TIME: Duration = Duration::from_micros(10);

/// How long a servo takes to answer.
const DELAY: Duration = Duration::from_micros(50);

/// The servos on a bus.
#[derive(Clone, Debug)]
pub struct Feetech {
    servos: Vec<Servo>,
    input: Vec<u8>,
    outputs: VecDeque<(Duration, Vec<u8>)>,
    /// When the line is free again.
    free_at: Duration,
    advanced: Duration,
    /// Whether the adapter repeats what it sends.
    pub echoes: bool,
}

impl Feetech {
    /// These servos, just switched on.
    #[must_use]
    pub fn new(servos: impl IntoIterator<Item = (u8, Family)>) -> Self {
        let servo = |(id, family)| Servo::new(id, family);
        Self {
            servos: servos.into_iter().map(servo).collect(),
            input: Vec::new(),
            outputs: VecDeque::new(),
            free_at: Duration::ZERO,
            advanced: Duration::ZERO,
            echoes: false,
        }
    }

    /// The servos, in the order in which they were given.
    #[must_use]
    pub fn servos(&self) -> &[Servo] {
        &self.servos
    }

    /// A servo, to do something to it.
    ///
    /// # Panics
    /// There is no servo with this index.
    pub fn servo(&mut self, index: usize) -> &mut Servo {
        &mut self.servos[index]
    }

    /// Brings the servos to a time.
    pub fn advance(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.advanced);
        self.advanced = now.max(self.advanced);
        for servo in &mut self.servos {
            servo.advance(passed);
        }
    }

    /// Bytes from the host.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        self.advance(now);
        if self.echoes {
            self.outputs.push_back((now, bytes.to_vec()));
        }
        self.free_at = self.free_at.max(now) + BYTE_TIME * bytes.len().min(ROOM) as u32;
        if self.input.len() + bytes.len() > ROOM {
            self.input.clear();
        }
        self.input
            .extend(&bytes[bytes.len().saturating_sub(ROOM)..]);
        while let Some(packet) = self.next_packet() {
            self.carry_out(&packet);
        }
    }

    /// The next bytes for the host, if it is time for them.
    pub fn poll_output(&mut self, now: Duration) -> Option<Vec<u8>> {
        let (due, _) = self.outputs.front()?;
        if *due > now {
            return None;
        }
        self.outputs.pop_front().map(|(_, bytes)| bytes)
    }

    /// When something changes without further input.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let answer = self.outputs.front().map(|(due, _)| *due);
        let is_busy = self.servos.iter().any(Servo::is_busy);
        let motion = is_busy.then(|| self.advanced + Duration::from_millis(5));
        answer.into_iter().chain(motion).min()
    }

    /// Switches the supply of all servos off and on.
    pub fn power_cycle(&mut self) {
        for servo in &mut self.servos {
            servo.power_cycle();
        }
        self.outputs.clear();
    }

    /// The next request with a right sum, without its header and its sum.
    fn next_packet(&mut self) -> Option<Vec<u8>> {
        loop {
            let start = self.input.windows(2).position(|two| two == [0xFF, 0xFF]);
            let Some(start) = start else {
                // The last byte may begin a header.
                let keep = usize::from(self.input.last() == Some(&0xFF));
                self.input.drain(..self.input.len() - keep);
                return None;
            };
            self.input.drain(..start);
            let [_, _, id, length, ..] = *self.input else {
                return None;
            };
            if id == 0xFF || !(2..=MAX_LENGTH).contains(&length) {
                self.input.drain(..1);
                continue;
            }
            let whole = usize::from(length) + 4;
            if self.input.len() < whole {
                return None;
            }
            let packet = self.input[2..whole - 1].to_vec();
            let is_right = self.input[whole - 1] == sum(&packet);
            self.input.drain(..if is_right { whole } else { 1 });
            if is_right {
                return Some(packet);
            }
        }
    }

    /// Carries out a request: the id, the length, the instruction and its parameters.
    fn carry_out(&mut self, packet: &[u8]) {
        let (id, parameters) = (packet[0], &packet[3..]);
        match (packet[2], parameters) {
            (0x01, []) if id == EVERYBODY => {
                let ids = self.ids(|servo| servo.family() == Family::Sts);
                for id in ids {
                    self.answer(id, |_| Some(Vec::new()));
                }
            }
            (0x01, []) => self.answer(id, |_| Some(Vec::new())),
            (0x02, [at, count]) => self.answer(id, |servo| servo.read(*at, *count)),
            (0x03, [at, values @ ..]) => self.answer(id, |servo| {
                servo.write(*at, values);
                servo.confirms().then(Vec::new)
            }),
            (0x04, [at, values @ ..]) => self.answer(id, |servo| {
                servo.register(*at, values);
                servo.confirms().then(Vec::new)
            }),
            (0x05, []) => {
                for servo in &mut self.servos {
                    if id == EVERYBODY || id == servo.id() {
                        servo.act();
                    }
                }
            }
            (0x82, [at, count, ids @ ..]) if id == EVERYBODY => {
                for id in ids {
                    self.answer(*id, |servo| {
                        let can = servo.family() == Family::Sts;
                        servo.read(*at, *count).filter(|_| can)
                    });
                }
            }
            (0x83, [at, count, rest @ ..]) if id == EVERYBODY && *count > 0 => {
                for values in rest.chunks_exact(usize::from(*count) + 1) {
                    for servo in &mut self.servos {
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

    /// The different ids of some servos, in their order.
    fn ids(&self, which: impl Fn(&Servo) -> bool) -> Vec<u8> {
        let some = self.servos.iter().filter(|servo| which(servo));
        let mut ids: Vec<_> = some.map(Servo::id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Lets all servos with this id do something, and answer with the values that it gives.
    fn answer(&mut self, id: u8, act: impl Fn(&mut Servo) -> Option<Vec<u8>>) {
        let mut bytes: Option<Vec<u8>> = None;
        for servo in &mut self.servos {
            let is_meant = id == servo.id() || id == EVERYBODY;
            if !is_meant || !servo.hears() {
                continue;
            }
            let values = act(servo);
            // Nobody answers what was told everybody.
            let Some(values) = values.filter(|_| id != EVERYBODY) else {
                continue;
            };
            let answer = packet(id, servo.error(), &values);
            bytes = Some(match bytes {
                // A line that one of them pulls down is low.
                Some(other) => other
                    .iter()
                    .zip(&answer)
                    .map(|(one, two)| one & two)
                    .collect(),
                None => answer,
            });
        }
        if let Some(bytes) = bytes {
            self.free_at += DELAY + BYTE_TIME * bytes.len() as u32;
            self.outputs.push_back((self.free_at, bytes));
        }
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
