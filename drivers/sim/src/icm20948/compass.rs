//! The magnetometer AK09916. PURE.

use std::time::Duration;

use crate::motion_sensor::digits;
use crate::motion_sensor::latch::Latch;
use crate::ninedof::{Axes, Chip};

const WIA1: u8 = 0x00;
const WIA2: u8 = 0x01;
const ST1: u8 = 0x10;
const HXL: u8 = 0x11;
const HZH: u8 = 0x16;
const ST2: u8 = 0x18;
const CNTL2: u8 = 0x31;
const CNTL3: u8 = 0x32;

/// Modes, in CNTL2.
const POWER_DOWN: u8 = 0x00;
const SINGLE: u8 = 0x01;

const PER_GAUSS: f64 = 100.0 / 0.15;

#[derive(Clone, Debug, Default)]
pub(super) struct Compass {
    mode: u8,
    pointer: u8,
    latch: Latch,
}

impl Compass {
    /// Takes the latest sample, if there is a new one. The field is in gauss, on the own axes.
    pub(super) fn measure(&mut self, now: Duration, sample: &mut dyn FnMut(Duration) -> Axes) {
        let has_measured = (self.latch).measure(now, sample, |field| digits(field, PER_GAUSS));
        if has_measured && self.mode == SINGLE {
            self.mode = POWER_DOWN;
            self.latch.set_rate(now, None);
        }
    }

    /// From one mode to another the way is through power-down.
    fn set_mode(&mut self, now: Duration, mode: u8) {
        if mode != POWER_DOWN && self.mode != POWER_DOWN && mode != self.mode {
            return;
        }
        self.mode = mode;
        let rate_hz = match mode {
            0x02 => Some(10.0),
            0x04 => Some(20.0),
            0x06 => Some(50.0),
            0x08 | SINGLE => Some(100.0),
            _ => None,
        };
        self.latch.set_rate(now, rate_hz);
    }
}

impl Chip for Compass {
    fn point(&mut self, register: u8) {
        self.pointer = register;
    }

    fn write(&mut self, now: Duration, value: u8) {
        match self.pointer {
            CNTL2 => self.set_mode(now, value & 0x1F),
            CNTL3 if value & 1 != 0 => *self = Self::default(),
            _ => {}
        }
        self.pointer = self.pointer.wrapping_add(1);
    }

    fn read(&mut self) -> u8 {
        let register = self.pointer;
        self.pointer = register.wrapping_add(1);
        match register {
            WIA1 => 0x48,
            WIA2 => 0x09,
            ST1 => self.latch.st1(),
            HXL..=HZH => self.latch.data(register - HXL),
            ST2 => self.latch.st2(),
            CNTL2 => self.mode,
            _ => 0,
        }
    }
}
