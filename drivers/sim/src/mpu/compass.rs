//! The magnetometer AK8963. PURE.

use std::time::Duration;

use crate::motion_sensor::latch::Latch;
use crate::ninedof::{Axes, Chip};

const WIA: u8 = 0x00;
const INFO: u8 = 0x01;
const ST1: u8 = 0x02;
const HXL: u8 = 0x03;
const HZH: u8 = 0x08;
const ST2: u8 = 0x09;
const CNTL1: u8 = 0x0A;
const CNTL2: u8 = 0x0B;
const ASAX: u8 = 0x10;
const ASAZ: u8 = 0x12;

/// Adjustment values as of a real unit.
const ADJUSTMENT: [u8; 3] = [0xB3, 0xB4, 0xA9];

/// Modes, in the lower half of CNTL1.
const POWER_DOWN: u8 = 0x0;
const SINGLE: u8 = 0x1;
const CONTINUOUS_8_HZ: u8 = 0x2;
const CONTINUOUS_100_HZ: u8 = 0x6;
const FUSE_ROM: u8 = 0xF;
/// In CNTL1 and ST2: digits of 16 bits, not 14.
const BITS_16: u8 = 0x10;

#[derive(Clone, Debug, Default)]
pub(super) struct Compass {
    control: u8,
    pointer: u8,
    latch: Latch,
}

impl Compass {
    /// Takes the latest sample, if there is a new one. The field is in gauss, on the own axes.
    pub(super) fn measure(&mut self, now: Duration, sample: &mut dyn FnMut(Duration) -> Axes) {
        let per_gauss = match self.control & BITS_16 {
            0 => 8_190.0 / 49.12,
            _ => 32_760.0 / 49.12,
        };
        let digits = |field_gauss: Axes| {
            [0, 1, 2].map(|axis| {
                let factor = (f64::from(ADJUSTMENT[axis]) - 128.0) / 256.0 + 1.0;
                (field_gauss[axis] / factor * per_gauss).round() as i16
            })
        };
        if self.latch.measure(now, sample, digits) && self.mode() == SINGLE {
            self.control &= BITS_16;
            self.latch.set_rate(now, None);
        }
    }

    fn mode(&self) -> u8 {
        self.control & 0x0F
    }

    /// From one mode to another the way is through power-down.
    fn set_control(&mut self, now: Duration, value: u8) {
        let mode = value & 0x0F;
        if mode != POWER_DOWN && self.mode() != POWER_DOWN && mode != self.mode() {
            return;
        }
        self.control = value & 0x1F;
        let rate_hz = match mode {
            CONTINUOUS_8_HZ => Some(8.0),
            CONTINUOUS_100_HZ | SINGLE => Some(100.0),
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
            CNTL1 => self.set_control(now, value),
            CNTL2 if value & 1 != 0 => *self = Self::default(),
            _ => {}
        }
        self.pointer = self.pointer.wrapping_add(1);
    }

    fn read(&mut self) -> u8 {
        let register = self.pointer;
        self.pointer = register.wrapping_add(1);
        match register {
            WIA => 0x48,
            INFO => 0x9A,
            ST1 => self.latch.st1(),
            HXL..=HZH => self.latch.data(register - HXL),
            ST2 => self.latch.st2() | self.control & BITS_16,
            CNTL1 => self.control,
            ASAX..=ASAZ if self.mode() == FUSE_ROM => ADJUSTMENT[usize::from(register - ASAX)],
            _ => 0,
        }
    }
}
