//! The accelerometer and the gyroscope. PURE.
//!
//! Filters, interrupts, the FIFO, the functions of the chip itself and its block data update store what
//! is written but have no effect: the bytes of one transfer are of one sample.

use std::time::Duration;

use crate::motion_sensor::digits;
use crate::ninedof::{Axes, Chip, Clock, TEMPERATURE_C};

const WHO_AM_I: u8 = 0x0F;
const CTRL1_XL: u8 = 0x10;
const CTRL2_G: u8 = 0x11;
const CTRL3_C: u8 = 0x12;
const STATUS_REG: u8 = 0x1E;
const OUT_TEMP_L: u8 = 0x20;
const OUTX_L_G: u8 = 0x22;
const OUTX_L_A: u8 = 0x28;
const OUTZ_H_A: u8 = 0x2D;
const REGISTERS: u8 = 0x80;

/// In CTRL3_C: reset, which clears itself, and count up after each byte.
const SW_RESET: u8 = 0x01;
const IF_INC: u8 = 0x04;

/// A reset takes some time, in which writes have no effect.
const RESETTING: Duration = Duration::from_millis(1);
/// The gyroscope takes this long to start.
const GYRO_START: Duration = Duration::from_millis(35);

/// Samples per second for the codes in CTRL1_XL and CTRL2_G.
const RATES_HZ: [f64; 12] = [
    0.0, 12.5, 26.0, 52.0, 104.0, 208.0, 416.0, 833.0, 1_666.0, 3_332.0, 6_664.0, 1.6,
];
/// For the codes of the ranges: digits per g, and degrees per second of a digit.
const PER_G: [f64; 4] = [
    1.0 / 0.000_061,
    1.0 / 0.000_488,
    1.0 / 0.000_122,
    1.0 / 0.000_244,
];
const DEG_S: [f64; 4] = [0.008_75, 0.017_5, 0.035, 0.07];
const DEG_S_OF_125: f64 = 0.004_375;

#[derive(Clone, Debug)]
pub(super) struct Inertial {
    who_am_i: u8,
    registers: [u8; REGISTERS as usize],
    pointer: u8,
    accel_clock: Option<Clock>,
    gyro_clock: Option<Clock>,
    /// When the gyroscope has started, since it was switched on.
    starts: Duration,
    /// The end of the last reset.
    reset_ends: Duration,
    is_resetting: bool,
    /// The bits of STATUS_REG: accelerometer, gyroscope.
    fresh: u8,
    accel: [i16; 3],
    gyro: [i16; 3],
}

impl Inertial {
    pub(super) fn new(who_am_i: u8, now: Duration) -> Self {
        let mut registers = [0; REGISTERS as usize];
        registers[usize::from(WHO_AM_I)] = who_am_i;
        registers[usize::from(CTRL3_C)] = IF_INC;
        Self {
            who_am_i,
            registers,
            pointer: 0,
            accel_clock: None,
            gyro_clock: None,
            starts: now,
            reset_ends: now,
            is_resetting: false,
            fresh: 0,
            accel: [0; 3],
            gyro: [0; 3],
        }
    }

    /// Takes the latest samples, if there are new ones.
    pub(super) fn measure(
        &mut self,
        now: Duration,
        sample: &mut dyn FnMut(Duration) -> (Axes, Axes),
    ) {
        self.is_resetting = now < self.reset_ends;
        let tick = |clock: &mut Option<Clock>| clock.as_mut().and_then(|clock| clock.tick(now));
        let (accel, gyro) = (tick(&mut self.accel_clock), tick(&mut self.gyro_clock));
        if let Some((_, time)) = accel {
            let range = usize::from(self.register(CTRL1_XL) >> 2 & 3);
            self.accel = digits(sample(time).0, PER_G[range]);
            self.fresh |= 0x01;
        }
        if let Some((_, time)) = gyro {
            let control = self.register(CTRL2_G);
            let deg_s = match control & 0x02 {
                0 => DEG_S[usize::from(control >> 2 & 3)],
                _ => DEG_S_OF_125,
            };
            self.gyro = digits(sample(time).1, 1.0 / deg_s);
            self.fresh |= 0x02;
        }
    }

    fn register(&self, register: u8) -> u8 {
        self.registers[usize::from(register)]
    }

    /// Sampling starts again after each change.
    fn set_clocks(&mut self, now: Duration) {
        let clock = |control: u8, since| {
            let rate_hz = RATES_HZ.get(usize::from(control >> 4)).copied();
            (rate_hz.filter(|rate_hz| *rate_hz > 0.0)).map(|rate_hz| Clock::new(since, rate_hz))
        };
        if self.gyro_clock.is_none() {
            self.starts = now + GYRO_START;
        }
        self.accel_clock = clock(self.register(CTRL1_XL), now);
        self.gyro_clock = clock(self.register(CTRL2_G), self.starts.max(now));
    }

    fn advance(&mut self) {
        if self.register(CTRL3_C) & IF_INC != 0 {
            self.pointer = (self.pointer + 1) % REGISTERS;
        }
    }
}

impl Chip for Inertial {
    fn point(&mut self, register: u8) {
        self.pointer = register & (REGISTERS - 1);
    }

    fn write(&mut self, now: Duration, value: u8) {
        let register = self.pointer;
        self.advance();
        if self.is_resetting || matches!(register, WHO_AM_I | STATUS_REG..=OUTZ_H_A) {
            return;
        }
        if register == CTRL3_C && value & SW_RESET != 0 {
            *self = Self {
                reset_ends: now + RESETTING,
                is_resetting: true,
                ..Self::new(self.who_am_i, now)
            };
            return;
        }
        let before = std::mem::replace(&mut self.registers[usize::from(register)], value);
        if matches!(register, CTRL1_XL | CTRL2_G) && before >> 4 != value >> 4 {
            self.set_clocks(now);
        }
    }

    fn read(&mut self) -> u8 {
        let register = self.pointer;
        self.advance();
        let byte = |word: i16, place: u8| word.to_le_bytes()[usize::from(place % 2)];
        match register {
            STATUS_REG => self.fresh | 0x04,
            OUT_TEMP_L..OUTX_L_G => {
                let temperature = ((TEMPERATURE_C - 25.0) * 256.0) as i16;
                byte(temperature, register - OUT_TEMP_L)
            }
            OUTX_L_G..OUTX_L_A => {
                self.fresh &= !0x02;
                let place = register - OUTX_L_G;
                byte(self.gyro[usize::from(place / 2)], place)
            }
            OUTX_L_A..=OUTZ_H_A => {
                self.fresh &= !0x01;
                let place = register - OUTX_L_A;
                byte(self.accel[usize::from(place / 2)], place)
            }
            CTRL3_C if self.is_resetting => self.register(register) | SW_RESET,
            _ => self.register(register),
        }
    }
}
