//! The magnetometer LIS3MDL. PURE.
//!
//! Interrupts and block data update store what is written but have no effect. The register counts up
//! after each byte, whether or not bit 7 of its number is set: the data sheet wants it, but there are
//! libraries that do not set it.

use std::time::Duration;

use crate::motion_sensor::digits;
use crate::ninedof::{Axes, Chip, Clock, TEMPERATURE_C};

const WHO_AM_I: u8 = 0x0F;
const CTRL_REG1: u8 = 0x20;
const CTRL_REG2: u8 = 0x21;
const CTRL_REG3: u8 = 0x22;
const CTRL_REG5: u8 = 0x24;
const STATUS_REG: u8 = 0x27;
const OUT_X_L: u8 = 0x28;
const OUT_Z_H: u8 = 0x2D;
const TEMP_OUT_L: u8 = 0x2E;
const TEMP_OUT_H: u8 = 0x2F;

/// In CTRL_REG2: reset, which clears itself.
const SOFT_RST: u8 = 0x04;

/// Digits per gauss for the codes of the ranges.
const PER_GAUSS: [f64; 4] = [6_842.0, 3_421.0, 2_281.0, 1_711.0];
const RATES_HZ: [f64; 8] = [0.625, 1.25, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0];
/// With FAST_ODR, for each performance.
const FAST_RATES_HZ: [f64; 4] = [1_000.0, 560.0, 300.0, 155.0];

#[derive(Clone, Debug)]
pub(super) struct Compass {
    /// From CTRL_REG1 to CTRL_REG5.
    settings: [u8; 5],
    pointer: u8,
    clock: Option<Clock>,
    output: [i16; 3],
    is_fresh: bool,
    is_overrun: bool,
}

impl Compass {
    pub(super) fn new() -> Self {
        Self {
            settings: [0x10, 0x00, 0x03, 0x00, 0x00],
            pointer: 0,
            clock: None,
            output: [0; 3],
            is_fresh: false,
            is_overrun: false,
        }
    }

    /// Takes the latest sample, if there is a new one. The field is in gauss.
    pub(super) fn measure(&mut self, now: Duration, sample: &mut dyn FnMut(Duration) -> Axes) {
        let Some((more, time)) = self.clock.as_mut().and_then(|clock| clock.tick(now)) else {
            return;
        };
        let range = usize::from(self.setting(CTRL_REG2) >> 5 & 3);
        self.output = digits(sample(time), PER_GAUSS[range]);
        self.is_overrun = self.is_fresh || more > 1;
        self.is_fresh = true;
        if self.setting(CTRL_REG3) & 3 == 1 {
            // This was the single measurement.
            self.settings[usize::from(CTRL_REG3 - CTRL_REG1)] |= 3;
            self.clock = None;
        }
    }

    fn setting(&self, register: u8) -> u8 {
        self.settings[usize::from(register - CTRL_REG1)]
    }

    fn set_clock(&mut self, now: Duration) {
        let control = self.setting(CTRL_REG1);
        let rate_hz = match control & 0x02 {
            0 => RATES_HZ[usize::from(control >> 2 & 7)],
            _ => FAST_RATES_HZ[usize::from(control >> 5 & 3)],
        };
        let is_on = self.setting(CTRL_REG3) & 3 < 2;
        self.clock = is_on.then(|| Clock::new(now, rate_hz));
    }
}

impl Chip for Compass {
    fn point(&mut self, register: u8) {
        self.pointer = register & 0x7F;
    }

    fn write(&mut self, now: Duration, value: u8) {
        match self.pointer {
            CTRL_REG2 if value & SOFT_RST != 0 => *self = Self::new(),
            register @ CTRL_REG1..=CTRL_REG5 => {
                self.settings[usize::from(register - CTRL_REG1)] = value;
                self.set_clock(now);
            }
            _ => {}
        }
        self.pointer = (self.pointer + 1) & 0x7F;
    }

    fn read(&mut self) -> u8 {
        let register = self.pointer;
        self.pointer = (register + 1) & 0x7F;
        match register {
            WHO_AM_I => 0x3D,
            CTRL_REG1..=CTRL_REG5 => self.setting(register),
            STATUS_REG => {
                let all = |is: bool| if is { 0x0F } else { 0x00 };
                all(self.is_overrun) << 4 | all(self.is_fresh)
            }
            OUT_X_L..=OUT_Z_H => {
                self.is_fresh = false;
                self.is_overrun = false;
                let place = usize::from(register - OUT_X_L);
                self.output[place / 2].to_le_bytes()[place % 2]
            }
            TEMP_OUT_L..=TEMP_OUT_H => {
                let temperature = ((TEMPERATURE_C - 25.0) * 8.0) as i16;
                temperature.to_le_bytes()[usize::from(register - TEMP_OUT_L)]
            }
            _ => 0,
        }
    }
}
