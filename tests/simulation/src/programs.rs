//! The programs of driver processes. PURE.

mod old;
mod sdk;

use std::time::Instant;

use amber_proto::{Device, Packet};

pub use self::old::{Habits, Old};
pub use self::sdk::Sdk;
use crate::messages::Tokens;
use crate::random::Random;

/// A driver: frames in, bytes out.
pub enum Program {
    /// One with our SDK.
    Sdk(Box<Sdk>),
    /// One like the drivers of the original system, with or without faults.
    Old(Old),
}

impl Program {
    /// Handles a frame.
    pub fn frame(&mut self, now: Instant, packet: Packet, tokens: &mut Tokens, out: &mut Vec<u8>) {
        match self {
            Self::Sdk(sdk) => sdk.frame(now, packet, tokens, out),
            Self::Old(old) => old.frame(now, &packet, tokens, out),
        }
    }

    /// When it next acts without input.
    pub fn next_due(&self) -> Option<Instant> {
        match self {
            Self::Sdk(sdk) => sdk.next_due(),
            Self::Old(old) => old.next_due(),
        }
    }

    /// That time has come.
    pub fn due(&mut self, now: Instant, tokens: &mut Tokens, out: &mut Vec<u8>) {
        match self {
            Self::Sdk(sdk) => sdk.due(now, out),
            Self::Old(old) => old.due(now, tokens, out),
        }
    }

    /// A random program.
    pub fn draw(rng: &mut Random, now: Instant, pid: u32, devices: &[Device], calm: bool) -> Self {
        match rng.u8(0..5) {
            0..3 => Self::Sdk(Box::new(Sdk::new(pid, rng))),
            _ => Self::Old(Old::new(
                pid,
                now,
                devices.to_vec(),
                Habits::draw(rng, calm),
                rng,
            )),
        }
    }
}
