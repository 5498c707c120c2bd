//! The accelerometer and the gyroscope, which have similar registers. PURE.
//!
//! Interrupts, FIFO and filters store what is written but have no effect: the FIFO is always empty,
//! as in bypass mode.

use std::time::Duration;

use super::{Axes, Chip, Clock, TEMPERATURE_C};

const WHO_AM_I: u8 = 0x0F;
const CTRL_REG1: u8 = 0x20;
const CTRL_REG4: u8 = 0x23;
const CTRL_REG5: u8 = 0x24;
/// Only the gyroscope has this register.
const OUT_TEMP: u8 = 0x26;
const STATUS: u8 = 0x27;
const OUT_X_L: u8 = 0x28;
const OUT_Z_H: u8 = 0x2D;
const FIFO_SRC: u8 = 0x2F;
const REGISTERS: u8 = 0x40;

/// In [`FIFO_SRC`]: the FIFO is empty.
const EMPTY: u8 = 0x20;
/// In [`CTRL_REG5`]: reload the trimming. Clears itself.
const BOOT: u8 = 0x80;

/// In the register number: increment after each byte.
const INCREMENT: u8 = 0x80;

/// The time between the power-down mode of a gyroscope and its first sample.
const GYRO_TURN_ON: Duration = Duration::from_millis(250);

/// The kind of chip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum InertialChip {
    Accelerometer,
    Gyroscope,
}

#[derive(Clone, Debug)]
pub(super) struct Inertial {
    kind: InertialChip,
    registers: [u8; REGISTERS as usize],
    pointer: u8,
    increments: bool,
    clock: Option<Clock>,
    output: [i16; 3],
    /// Axes with a new sample, and axes whose sample was overwritten before it was read.
    fresh: [bool; 3],
    overrun: [bool; 3],
    /// For each axis, the byte that was read while the other was not. With block data update the
    /// sample does not change before both are read.
    half_read: [Option<u8>; 3],
}

impl Inertial {
    pub(super) fn new(kind: InertialChip, now: Duration) -> Self {
        let mut registers = [0; REGISTERS as usize];
        registers[usize::from(WHO_AM_I)] = match kind {
            InertialChip::Accelerometer => 0x33,
            InertialChip::Gyroscope => 0xD4,
        };
        registers[usize::from(CTRL_REG1)] = 0x07;
        let mut chip = Self {
            kind,
            registers,
            pointer: 0,
            increments: false,
            clock: None,
            output: [0; 3],
            fresh: [false; 3],
            overrun: [false; 3],
            half_read: [None; 3],
        };
        chip.set_clock(now);
        chip
    }

    /// Takes the latest sample, if there is a new one.
    pub(super) fn measure(&mut self, now: Duration, sample: &mut dyn FnMut(Duration) -> Axes) {
        let Some((more, time)) = self.clock.as_mut().and_then(|clock| clock.tick(now)) else {
            return;
        };
        let values = sample(time);
        let shift = self.self_test();
        for (axis, value) in values.map(|value| value + shift).into_iter().enumerate() {
            let is_held = self.has(CTRL_REG4, 0x80) && self.half_read[axis].is_some();
            if !self.has(CTRL_REG1, 1 << axis) || is_held {
                continue;
            }
            self.output[axis] = self.digits(value);
            self.overrun[axis] = self.fresh[axis] || more > 1;
            self.fresh[axis] = true;
        }
    }

    /// The self-test offset on all axes, about as in data sheets: in g, or in degrees per second
    /// depending on the scale.
    fn self_test(&self) -> f64 {
        let ctrl = self.registers[usize::from(CTRL_REG4)];
        let (mode, scale) = (ctrl >> 1 & 3, usize::from(ctrl >> 4 & 3));
        match (self.kind, mode) {
            (InertialChip::Accelerometer, 1) => 0.3,
            (InertialChip::Accelerometer, 2) => -0.3,
            (InertialChip::Gyroscope, 1) => [130.0, 200.0, 530.0, 530.0][scale],
            (InertialChip::Gyroscope, 3) => -[130.0, 200.0, 530.0, 530.0][scale],
            _ => 0.0,
        }
    }

    /// Converts a value to digits, limited to the range.
    fn digits(&self, value: f64) -> i16 {
        let scale = usize::from(self.registers[usize::from(CTRL_REG4)] >> 4 & 3);
        match self.kind {
            InertialChip::Accelerometer => {
                let g_per_digit = [0.001, 0.002, 0.004, 0.012][scale];
                let bits = match (self.has(CTRL_REG1, 0x08), self.has(CTRL_REG4, 0x08)) {
                    (true, _) => 8,
                    (false, false) => 10,
                    (false, true) => 12,
                };
                let digits = (value / g_per_digit).round().clamp(-2048.0, 2047.0) as i16;
                // Left-justified, without the bits that the mode lacks.
                (digits << 4) & (-1 << (16 - bits))
            }
            InertialChip::Gyroscope => {
                let deg_s_per_digit = [0.008_75, 0.017_5, 0.07, 0.07][scale];
                (value / deg_s_per_digit).round() as i16
            }
        }
    }

    /// Sampling starts again when the rate changes.
    fn set_clock(&mut self, now: Duration) {
        let ctrl = self.registers[usize::from(CTRL_REG1)];
        let code = usize::from(ctrl >> 4);
        let rate_hz = match self.kind {
            InertialChip::Accelerometer => {
                let low_power = ctrl & 0x08 != 0;
                match code {
                    8 if low_power => 1620.0,
                    9 if low_power => 5376.0,
                    _ => *[0.0, 1.0, 10.0, 25.0, 50.0, 100.0, 200.0, 400.0, 0.0, 1344.0]
                        .get(code)
                        .unwrap_or(&0.0),
                }
            }
            InertialChip::Gyroscope if ctrl & 0x08 == 0 || ctrl & 0x07 == 0 => 0.0,
            InertialChip::Gyroscope => [95.0, 190.0, 380.0, 760.0][code >> 2],
        };
        let same = self.clock.is_some_and(|clock| clock.rate_hz == rate_hz);
        if !same {
            let wakes = self.kind == InertialChip::Gyroscope && self.clock.is_none();
            let since = if wakes { now + GYRO_TURN_ON } else { now };
            self.clock = (rate_hz > 0.0).then(|| Clock::new(since, rate_hz));
        }
    }

    fn has(&self, register: u8, bits: u8) -> bool {
        self.registers[usize::from(register)] & bits != 0
    }

    fn status(&self) -> u8 {
        let bits = |axes: [bool; 3]| {
            let all = u8::from(axes == [true; 3]) << 3;
            (0..3).fold(all, |bits, axis| bits | u8::from(axes[axis]) << axis)
        };
        let any = u8::from(self.overrun.contains(&true)) << 3;
        bits(self.fresh) | (bits(self.overrun) & 7 | any) << 4
    }

    fn output_byte(&mut self, register: u8) -> u8 {
        let place = register - OUT_X_L;
        let axis = usize::from(place / 2);
        let bytes = match self.has(CTRL_REG4, 0x40) {
            true => self.output[axis].to_be_bytes(),
            false => self.output[axis].to_le_bytes(),
        };
        match self.half_read[axis] {
            Some(other) if other != place => {
                self.half_read[axis] = None;
                self.fresh[axis] = false;
                self.overrun[axis] = false;
            }
            _ => self.half_read[axis] = Some(place),
        }
        bytes[usize::from(place % 2)]
    }

    fn advance(&mut self) {
        if self.increments {
            self.pointer = (self.pointer + 1) % REGISTERS;
        }
    }
}

impl Chip for Inertial {
    fn point(&mut self, register: u8) {
        self.increments = register & INCREMENT != 0;
        self.pointer = register & (REGISTERS - 1);
    }

    fn write(&mut self, now: Duration, value: u8) {
        let is_writable = matches!(self.pointer, 0x20..=0x26 | 0x2E | 0x30 | 0x32..=0x38 | 0x3A..=0x3F)
            && !(self.kind == InertialChip::Gyroscope && self.pointer == 0x26);
        if is_writable {
            self.registers[usize::from(self.pointer)] = match self.pointer {
                CTRL_REG5 => value & !BOOT,
                _ => value,
            };
            if self.pointer == CTRL_REG1 {
                self.set_clock(now);
            }
        }
        self.advance();
    }

    fn read(&mut self) -> u8 {
        let value = match self.pointer {
            STATUS => self.status(),
            FIFO_SRC => EMPTY,
            OUT_TEMP if self.kind == InertialChip::Gyroscope => {
                // One digit less per degree; the zero point is not specified.
                ((25.0 - TEMPERATURE_C) as i8).cast_unsigned()
            }
            register @ OUT_X_L..=OUT_Z_H => self.output_byte(register),
            register => self.registers[usize::from(register)],
        };
        self.advance();
        value
    }
}
