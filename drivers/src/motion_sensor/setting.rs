//! Registers that must keep a value. PURE, except for the [`Bus`].

use super::chip::Change;
use crate::i2c::Bus;
use crate::i2c::registers::{Problem, transfer, verify};

/// A register, and the value that it must keep in the bits of the mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) register: u8,
    pub(crate) value: u8,
    pub(crate) mask: u8,
}

impl Setting {
    /// A register that must keep all its bits.
    pub(crate) const fn new(register: u8, value: u8) -> Self {
        Self::masked(register, value, 0xFF)
    }

    /// A register that must keep these bits.
    pub(crate) const fn masked(register: u8, value: u8, mask: u8) -> Self {
        Self {
            register,
            value,
            mask,
        }
    }

    /// Whether the register has another value.
    fn change(&self, found: u8) -> Option<Change> {
        let is_changed = (found ^ self.value) & self.mask != 0;
        is_changed.then_some(Change {
            register: self.register,
            set: self.value,
            found,
        })
    }
}

/// Writes the settings in their order.
pub(crate) fn write(bus: &mut dyn Bus, at: u8, settings: &[Setting]) -> Result<(), Problem> {
    (settings.iter()).try_for_each(|it| transfer(bus, at, &[it.register, it.value], &mut []))
}

/// Checks that all settings were kept.
pub(crate) fn verify_all(bus: &mut dyn Bus, at: u8, settings: &[Setting]) -> Result<(), Problem> {
    (settings.iter()).try_for_each(|it| verify(bus, at, it.register, it.value, it.mask))
}

/// The first setting with another value in these registers, which begin at `first`.
pub(crate) fn changed(settings: &[Setting], first: u8, registers: &[u8]) -> Option<Change> {
    settings.iter().find_map(|setting| {
        let place = usize::from(setting.register.checked_sub(first)?);
        setting.change(*registers.get(place)?)
    })
}
