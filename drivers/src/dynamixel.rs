//! Driver for servos of Dynamixel on a serial bus: the series X by protocol 2.0, such as those of the arm
//! Koch v1.1. IO.
//!
//! ```text
//!  bus_servos: requests, rounds, orders --> registers: values --> protocol: packets
//!                                       <-- measurements <---
//! ```
//!
//! `protocol` and `registers` are pure. `bus_servos` has the logic, and says what all servos on a bus
//! guarantee. These servos have a watchdog besides, which the driver sets: it stops what moves when the bus
//! is silent, even if the cable is pulled out.

use serde::Deserialize;

use crate::bus_servos::wire::{Found, Request};
use crate::bus_servos::{self, Maker, Preset};

#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod protocol;
pub mod registers;
#[cfg(test)]
mod tests;

/// The servos of Dynamixel.
#[derive(Clone, Copy, Debug)]
pub struct Dynamixel;

impl Maker for Dynamixel {
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
    /// The arm Koch v1.1: the ids 1 to 6, with 1000000 baud
    Koch,
}

impl Preset for Robot {
    type Maker = Dynamixel;

    const PORT: (&str, &str) = (
        "/dev/ttyUSB0",
        "Serial port of the bus [default: /dev/ttyUSB0]",
    );
    const BAUD: (u32, u32) = (57_600, 4_000_000);
    const BAUD_HELP: &str = "Bits per second [default: that of --preset, or 57600]";

    fn joints(self) -> Vec<u8> {
        (1..=6).collect()
    }

    fn baud(self) -> u32 {
        1_000_000
    }
}

/// Options of the driver.
pub type Options = bus_servos::Options<Robot>;
