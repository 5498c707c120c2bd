//! The sensors by their identity, and where one is. PURE, except for the [`Bus`].

use super::registers::{PWR_MGMT_1, WHO_AM_I};
use crate::i2c::Bus;
use crate::i2c::registers::{Problem, read};
use crate::motion_sensor::found::{self, unexpected};

/// The addresses: with the pin AD0 low, and high.
pub(super) const ADDRESSES: [u8; 2] = [0x68, 0x69];

/// PWR_MGMT_1 of a sensor that has just got power, or that a program uses. A clock chip at the same
/// address has other bytes there.
const PLAUSIBLE_POWER: [u8; 4] = [0x00, 0x01, 0x40, 0x41];

/// A sensor, as far as it differs from the others.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    who_am_i: u8,
    /// What it is, for people.
    pub(super) name: &'static str,
    /// Whether the accelerometer has a filter of its own.
    pub(super) filters_apart: bool,
    /// Whether it has a magnetometer; `None` if it may have one.
    pub(super) has_compass: Option<bool>,
}

const fn part(
    who_am_i: u8,
    name: &'static str,
    filters_apart: bool,
    has_compass: Option<bool>,
) -> Part {
    Part {
        who_am_i,
        name,
        filters_apart,
        has_compass,
    }
}

/// Most boards that are sold today have a copy, or a relative that has the same registers.
static PARTS: [Part; 13] = [
    part(0x68, "MPU-6050", false, Some(false)),
    part(0x69, "copy of an MPU-6050", false, Some(false)),
    part(0x70, "MPU-6500", true, None),
    part(0x71, "MPU-9250", true, Some(true)),
    part(0x73, "MPU-9255", true, Some(true)),
    part(0x72, "copy of an MPU-6500 (identity 0x72)", true, None),
    part(0x74, "copy of an MPU-6500 (identity 0x74)", true, None),
    part(0x75, "copy of an MPU-6500 (identity 0x75)", true, None),
    part(0x7D, "copy of an MPU-6500 (identity 0x7d)", true, None),
    part(0x98, "ICM-20689", true, Some(false)),
    part(0x12, "ICM-20602", true, Some(false)),
    part(0x19, "MPU-6886", true, Some(false)),
    part(0xAF, "ICM-20608", true, Some(false)),
];

/// The sensor with this identity.
pub(super) fn named(who_am_i: u8) -> Option<&'static Part> {
    PARTS.iter().find(|part| part.who_am_i == who_am_i)
}

/// Finds the sensor: at this address, or at the first of both.
pub(super) fn find(bus: &mut dyn Bus, address: Option<u8>) -> Result<(u8, &'static Part), Problem> {
    found::find(bus, &ADDRESSES, address, |bus, at| {
        identity(bus, at, address.is_some())
    })
}

/// What is at an address; an error if it is something else. Only reads.
pub(super) fn identity(bus: &mut dyn Bus, at: u8, is_sure: bool) -> Result<&'static Part, Problem> {
    let [who_am_i] = read(bus, at, WHO_AM_I)?;
    let part = named(who_am_i).ok_or_else(|| unexpected(at, who_am_i))?;
    let [power] = read(bus, at, PWR_MGMT_1)?;
    match is_sure || PLAUSIBLE_POWER.contains(&power) {
        true => Ok(part),
        false => Err(Problem::Chip(format!(
            "the chip at {at:#04x} may be something else, such as a clock; if it is the sensor, say \
             --address {at:#04x}"
        ))),
    }
}
