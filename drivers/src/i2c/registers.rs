//! Transfers with the registers of a chip, and their failures. PURE, except for the [`Bus`].

use super::{Bus, BusError};

/// How often a transfer is tried before a chip counts as missing. Noise on the wires is short.
const MAX_TRIES: usize = 2;

/// The problem of a chip that is not there.
pub(crate) const NO_ANSWER: &str = "no answer";

/// The reason why a chip cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// This chip has a problem.
    Chip(String),
    /// The whole bus does not work.
    Bus(String),
}

/// Reads a register and those behind it.
pub(crate) fn read<const N: usize>(
    bus: &mut dyn Bus,
    address: u8,
    register: u8,
) -> Result<[u8; N], Problem> {
    let mut bytes = [0; N];
    transfer(bus, address, &[register], &mut bytes)?;
    Ok(bytes)
}

/// Writes bytes, then reads bytes.
pub(crate) fn transfer(
    bus: &mut dyn Bus,
    address: u8,
    written: &[u8],
    read: &mut [u8],
) -> Result<(), Problem> {
    let mut tries = 1;
    loop {
        match bus.transfer(address, written, read) {
            Ok(()) => return Ok(()),
            Err(BusError::Nak) if tries < MAX_TRIES => tries += 1,
            Err(BusError::Nak) => return Err(Problem::Chip(NO_ANSWER.into())),
            Err(BusError::Broken(text)) => return Err(Problem::Bus(text)),
        }
    }
}

/// Checks that a register has kept its value; `mask` has the bits that matter.
pub(crate) fn verify(
    bus: &mut dyn Bus,
    address: u8,
    register: u8,
    value: u8,
    mask: u8,
) -> Result<(), Problem> {
    let [kept] = read(bus, address, register)?;
    match (kept ^ value) & mask {
        0 => Ok(()),
        _ => Err(Problem::Chip(format!(
            "register {register:#04x} reads {kept:#04x}, not {value:#04x}"
        ))),
    }
}
