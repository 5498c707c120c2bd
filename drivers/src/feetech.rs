//! Driver for servos of Feetech on a serial bus: STS, SMS and SCS, such as those of the arms SO-100 and
//! SO-101, and of LeKiwi. IO.
//!
//! ```text
//!  bus_servos: requests, rounds, orders --> registers: values --> protocol: packets
//!                                       <-- measurements <---
//! ```
//!
//! `protocol` and `registers` are pure. `bus_servos` has the logic, and says what all servos on a bus
//! guarantee. Such a bus has no watchdog, so a guard process stops what moves when the driver is killed
//! or hangs.

use serde::Deserialize;

use crate::bus_servos::wire::{Found, Request};
use crate::bus_servos::{self, Maker, Preset};

#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod protocol;
pub mod registers;
#[cfg(test)]
mod tests;

/// That of the factory.
const BAUD: u32 = 1_000_000;

/// The servos of Feetech.
#[derive(Clone, Copy, Debug)]
pub struct Feetech;

impl Maker for Feetech {
    type Model = registers::Model;

    const IDENTITY: (u16, u8) = registers::IDENTITY;
    const STATE: (u16, u8) = registers::STATE;

    fn encode(request: &Request) -> Vec<u8> {
        protocol::encode(request)
    }

    fn find(bytes: &[u8]) -> Found {
        protocol::find(bytes)
    }

    fn answer_length(values: usize) -> usize {
        protocol::answer_length(values)
    }
}

/// Robots whose servos are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Robot {
    /// The arm SO-100 or SO-101: the ids 1 to 6
    #[value(name = "so101")]
    So101,
    /// LeKiwi: the same arm, and wheels with the ids 7 to 9
    Lekiwi,
}

impl Preset for Robot {
    type Maker = Feetech;

    const PORT: (&str, &str) = (
        "/dev/ttyACM0",
        "Serial port of the bus [default: /dev/ttyACM0]",
    );
    const BAUD: (u32, u32) = (BAUD, BAUD);
    const BAUD_HELP: &str = "Bits per second [default: 1000000]";

    fn joints(self) -> Vec<u8> {
        (1..=6).collect()
    }

    fn wheels(self) -> Vec<u8> {
        match self {
            Self::So101 => Vec::new(),
            Self::Lekiwi => (7..=9).collect(),
        }
    }
}

/// Options of the driver.
pub type Options = bus_servos::Options<Robot>;
