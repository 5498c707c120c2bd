//! The accelerometer and the gyroscope. PURE.
//!
//! Filters, interrupts, the FIFO, the motion processor and the chip's own bus store what is written but
//! have no effect.

use std::time::Duration;

use super::Model;
use crate::motion_sensor::digits;
use crate::ninedof::{Axes, Chip, Clock, TEMPERATURE_C};

const SMPLRT_DIV: u8 = 0x19;
const CONFIG: u8 = 0x1A;
const GYRO_CONFIG: u8 = 0x1B;
const ACCEL_CONFIG: u8 = 0x1C;
const INT_PIN_CFG: u8 = 0x37;
const INT_STATUS: u8 = 0x3A;
const ACCEL_XOUT_H: u8 = 0x3B;
const GYRO_ZOUT_L: u8 = 0x48;
const USER_CTRL: u8 = 0x6A;
const PWR_MGMT_1: u8 = 0x6B;
const WHO_AM_I: u8 = 0x75;
const REGISTERS: u8 = 0x80;

/// In PWR_MGMT_1.
const RESET: u8 = 0x80;
const SLEEP: u8 = 0x40;

/// After a reset, writes have no effect for this time.
const RESETTING: Duration = Duration::from_millis(50);
/// The gyroscope takes this long to start.
const GYRO_START: Duration = Duration::from_millis(30);

#[derive(Clone, Debug)]
pub(super) struct Inertial {
    model: Model,
    registers: [u8; REGISTERS as usize],
    pointer: u8,
    clock: Option<Clock>,
    /// When its gyroscope has started, since it was woken.
    starts: Duration,
    /// The end of the last reset.
    reset_ends: Duration,
    is_resetting: bool,
    is_fresh: bool,
    /// Of the latest sample, in the order of the registers.
    output: [u8; 14],
}

impl Inertial {
    pub(super) fn new(model: Model, now: Duration) -> Self {
        let mut registers = [0; REGISTERS as usize];
        registers[usize::from(WHO_AM_I)] = model.who_am_i();
        registers[usize::from(PWR_MGMT_1)] = model.first_power();
        let mut chip = Self {
            model,
            registers,
            pointer: 0,
            clock: None,
            starts: now,
            reset_ends: now,
            is_resetting: false,
            is_fresh: false,
            output: [0; 14],
        };
        chip.set_clock(now);
        chip
    }

    /// Takes the latest sample, if there is a new one.
    pub(super) fn measure(
        &mut self,
        now: Duration,
        sample: &mut dyn FnMut(Duration) -> (Axes, Axes),
    ) {
        self.is_resetting = now < self.reset_ends;
        let Some((_, time)) = self.clock.as_mut().and_then(|clock| clock.tick(now)) else {
            return;
        };
        let (accel_g, gyro_deg_s) = sample(time);
        let range = |register| usize::from(self.register(register) >> 3 & 3);
        let accel = digits(
            accel_g,
            [16_384.0, 8_192.0, 4_096.0, 2_048.0][range(ACCEL_CONFIG)],
        );
        let gyro = digits(gyro_deg_s, [131.0, 65.5, 32.8, 16.4][range(GYRO_CONFIG)]);
        let (zero_c, per_degree) = self.model.temperature_scale();
        let temperature = ((TEMPERATURE_C - zero_c) * per_degree).round() as i16;
        let words = accel.into_iter().chain([temperature]).chain(gyro);
        for (bytes, word) in self.output.chunks_exact_mut(2).zip(words) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        self.is_fresh = true;
    }

    /// Whether the bus of the magnetometer is connected to that of the chip.
    pub(super) fn lets_compass_through(&self) -> bool {
        self.register(INT_PIN_CFG) & 0x02 != 0 && self.register(USER_CTRL) & 0x20 == 0
    }

    fn register(&self, register: u8) -> u8 {
        self.registers[usize::from(register)]
    }

    /// Sampling starts again after each change.
    fn set_clock(&mut self, now: Duration) {
        let base_hz = match self.register(CONFIG) & 7 {
            0 | 7 => 8_000.0,
            _ => 1_000.0,
        };
        let rate_hz = base_hz / (1.0 + f64::from(self.register(SMPLRT_DIV)));
        let is_awake = self.register(PWR_MGMT_1) & SLEEP == 0;
        if self.clock.is_none() {
            self.starts = now + GYRO_START;
        }
        self.clock = is_awake.then(|| Clock::new(self.starts.max(now), rate_hz));
    }
}

impl Chip for Inertial {
    fn point(&mut self, register: u8) {
        self.pointer = register & (REGISTERS - 1);
    }

    fn write(&mut self, now: Duration, value: u8) {
        let register = self.pointer;
        self.pointer = (register + 1) % REGISTERS;
        if self.is_resetting || matches!(register, INT_STATUS..=GYRO_ZOUT_L | WHO_AM_I) {
            return;
        }
        if register == PWR_MGMT_1 && value & RESET != 0 {
            *self = Self {
                reset_ends: now + RESETTING,
                is_resetting: true,
                ..Self::new(self.model, now)
            };
            return;
        }
        self.registers[usize::from(register)] = value;
        if matches!(register, PWR_MGMT_1 | CONFIG | SMPLRT_DIV) {
            self.set_clock(now);
        }
    }

    fn read(&mut self) -> u8 {
        let register = self.pointer;
        self.pointer = (register + 1) % REGISTERS;
        match register {
            INT_STATUS => u8::from(std::mem::take(&mut self.is_fresh)),
            ACCEL_XOUT_H..=GYRO_ZOUT_L => self.output[usize::from(register - ACCEL_XOUT_H)],
            PWR_MGMT_1 if self.is_resetting => self.register(register) | RESET,
            _ => self.register(register),
        }
    }
}
