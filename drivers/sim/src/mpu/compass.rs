//! The magnetometer AK8963. PURE.

use std::time::Duration;

use crate::ninedof::{Axes, Chip, Clock};

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

/// A sum of all axes that is beyond the range.
const OVERFLOW_GAUSS: f64 = 49.12;

#[derive(Clone, Debug, Default)]
pub(super) struct Compass {
    control: u8,
    pointer: u8,
    clock: Option<Clock>,
    output: [i16; 3],
    has_overflown: bool,
    is_fresh: bool,
    is_overrun: bool,
    /// Data were read, but not ST2: they do not change.
    is_held: bool,
}

impl Compass {
    /// Takes the latest sample, if there is a new one. The field is in gauss, on the own axes.
    pub(super) fn measure(&mut self, now: Duration, sample: &mut dyn FnMut(Duration) -> Axes) {
        let Some((more, time)) = self.clock.as_mut().and_then(|clock| clock.tick(now)) else {
            return;
        };
        self.is_overrun = self.is_fresh || self.is_held || more > 1;
        if self.is_held {
            return;
        }
        let field_gauss = sample(time);
        let per_gauss = match self.control & BITS_16 {
            0 => 8_190.0 / 49.12,
            _ => 32_760.0 / 49.12,
        };
        for (axis, digits) in self.output.iter_mut().enumerate() {
            let factor = (f64::from(ADJUSTMENT[axis]) - 128.0) / 256.0 + 1.0;
            *digits = (field_gauss[axis] / factor * per_gauss).round() as i16;
        }
        let sum: f64 = field_gauss.iter().map(|axis| axis.abs()).sum();
        self.has_overflown = sum >= OVERFLOW_GAUSS;
        self.is_fresh = true;
        if self.mode() == SINGLE {
            self.control &= BITS_16;
            self.clock = None;
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
        self.clock = rate_hz.map(|rate_hz| Clock::new(now, rate_hz));
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
            ST1 => u8::from(self.is_overrun) << 1 | u8::from(self.is_fresh),
            HXL..=HZH => {
                self.is_held = self.mode() != POWER_DOWN;
                self.is_fresh = false;
                let place = usize::from(register - HXL);
                self.output[place / 2].to_le_bytes()[place % 2]
            }
            ST2 => {
                self.is_held = false;
                self.is_fresh = false;
                self.is_overrun = false;
                u8::from(self.has_overflown) << 3 | self.control & BITS_16
            }
            CNTL1 => self.control,
            ASAX..=ASAZ if self.mode() == FUSE_ROM => ADJUSTMENT[usize::from(register - ASAX)],
            _ => 0,
        }
    }
}
