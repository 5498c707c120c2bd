//! Finds the chip, sets it up, and reads whether it has kept its settings. PURE, except for the
//! [`Bus`].

use super::registers::{
    AWAKE, MODE1, PRE_SCALE, RESTART, SUB_ADDRESSES, Timing, USUAL_SUB_ADDRESSES, set_up,
};
use crate::i2c::Bus;
use crate::i2c::registers::{NO_ANSWER, Problem, read, transfer};

/// Whether a PCA9685 is at an address. Only reads, one register after the other: its registers may not
/// be counted on.
///
/// # Errors
/// Nothing answers, or the bus does not work.
pub(super) fn is_present(bus: &mut dyn Bus, address: u8) -> Result<bool, Problem> {
    for (register, expected) in (SUB_ADDRESSES..).zip(USUAL_SUB_ADDRESSES) {
        let [found] = read(bus, address, register)?;
        if found != expected {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Sets the chip up. Afterwards no channel has pulses.
///
/// # Errors
/// It is not there or does not keep its settings, or the bus does not work.
pub(super) fn make_ready(bus: &mut dyn Bus, address: u8, timing: Timing) -> Result<(), Problem> {
    if !is_present(bus, address).map_err(|problem| explained(problem, address))? {
        let text = format!("another chip than a PCA9685 is at address {address:#04x}");
        return Err(Problem::Chip(text));
    }
    write(bus, address, &set_up(timing))?;
    match has_kept(bus, address, timing)? {
        true => Ok(()),
        false => Err(Problem::Chip(
            "the PCA9685 does not keep its settings".into(),
        )),
    }
}

/// Whether the chip has still its settings.
///
/// # Errors
/// It does not answer, or the bus does not work.
pub(super) fn has_kept(bus: &mut dyn Bus, address: u8, timing: Timing) -> Result<bool, Problem> {
    let mut register = |register| {
        let read = read(bus, address, register);
        read.map(|[value]| value)
            .map_err(|problem| explained(problem, address))
    };
    let is_awake = register(MODE1)? & !RESTART == AWAKE;
    Ok(is_awake && register(PRE_SCALE)? == timing.prescale())
}

/// Carries out these writes.
///
/// # Errors
/// The chip does not answer, or the bus does not work.
pub(super) fn write(bus: &mut dyn Bus, address: u8, writes: &[Vec<u8>]) -> Result<(), Problem> {
    let mut writes = writes.iter();
    let written = writes.try_for_each(|bytes| transfer(bus, address, bytes, &mut []));
    written.map_err(|problem| explained(problem, address))
}

/// The problem, with the address.
fn explained(problem: Problem, address: u8) -> Problem {
    match problem {
        Problem::Chip(text) if text == NO_ANSWER => {
            Problem::Chip(format!("no chip answers at address {address:#04x}"))
        }
        other => other,
    }
}
