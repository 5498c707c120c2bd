//! The accelerometer and the gyroscope, with the bus of the magnetometer. PURE.
//!
//! Filters, interrupts, the FIFO, the motion processor and low power store what is written but have no
//! effect. Of the sensor's own bus, the slaves 0 (reads continuously) and 4 (single transfers) work.

use std::time::Duration;

use super::COMPASS_ADDRESS;
use super::compass::Compass;
use crate::motion_sensor::{Senses, digits};
use crate::ninedof::{Chip, Clock, TEMPERATURE_C};

const REG_BANK_SEL: u8 = 0x7F;
const REGISTERS: u8 = 0x80;

// Bank 0.
const WHO_AM_I: u8 = 0x00;
const USER_CTRL: u8 = 0x03;
const LP_CONFIG: u8 = 0x05;
const PWR_MGMT_1: u8 = 0x06;
const INT_PIN_CFG: u8 = 0x0F;
const I2C_MST_STATUS: u8 = 0x17;
const INT_STATUS_1: u8 = 0x1A;
const ACCEL_XOUT_H: u8 = 0x2D;
const EXT_SLV_SENS_DATA_00: u8 = 0x3B;
const EXT_SLV_SENS_DATA_23: u8 = 0x52;
// Bank 2.
const GYRO_SMPLRT_DIV: u8 = 0x00;
const GYRO_CONFIG_1: u8 = 0x01;
const ACCEL_SMPLRT_DIV_1: u8 = 0x10;
const ACCEL_SMPLRT_DIV_2: u8 = 0x11;
const ACCEL_CONFIG: u8 = 0x14;
// Bank 3.
const I2C_SLV0_ADDR: u8 = 0x03;
const I2C_SLV0_REG: u8 = 0x04;
const I2C_SLV0_CTRL: u8 = 0x05;
const I2C_SLV4_ADDR: u8 = 0x13;
const I2C_SLV4_REG: u8 = 0x14;
const I2C_SLV4_CTRL: u8 = 0x15;
const I2C_SLV4_DO: u8 = 0x16;
const I2C_SLV4_DI: u8 = 0x17;

/// In PWR_MGMT_1.
const RESET: u8 = 0x80;
const SLEEP: u8 = 0x40;
/// In an address of the sensor's own bus: read.
const READ: u8 = 0x80;
/// In a control register of a slave: go.
const ENABLE: u8 = 0x80;
/// In I2C_MST_STATUS: slave 4 has finished, and nobody was there.
const SLV4_DONE: u8 = 0x40;
const SLV4_NACK: u8 = 0x10;

/// After a reset, writes have no effect for this time.
const RESETTING: Duration = Duration::from_millis(20);
/// The gyroscope takes this long to start.
const GYRO_START: Duration = Duration::from_millis(35);

const PER_G: [f64; 4] = [16_384.0, 8_192.0, 4_096.0, 2_048.0];
const PER_DEG_S: [f64; 4] = [131.0, 65.5, 32.8, 16.4];

#[derive(Clone, Debug)]
pub(super) struct Inertial {
    compass: Compass,
    banks: [[u8; REGISTERS as usize]; 4],
    bank: u8,
    pointer: u8,
    accel_clock: Option<Clock>,
    gyro_clock: Option<Clock>,
    /// When its gyroscope has started, since it was woken.
    starts: Duration,
    /// The end of the last reset.
    reset_ends: Duration,
    is_resetting: bool,
}

impl Inertial {
    pub(super) fn new(now: Duration) -> Self {
        let mut banks = [[0; REGISTERS as usize]; 4];
        banks[0][usize::from(WHO_AM_I)] = 0xEA;
        banks[0][usize::from(LP_CONFIG)] = 0x40;
        banks[0][usize::from(PWR_MGMT_1)] = 0x41;
        banks[2][usize::from(GYRO_CONFIG_1)] = 0x01;
        banks[2][usize::from(ACCEL_CONFIG)] = 0x01;
        Self {
            compass: Compass::default(),
            banks,
            bank: 0,
            pointer: 0,
            accel_clock: None,
            gyro_clock: None,
            starts: now,
            reset_ends: now,
            is_resetting: false,
        }
    }

    /// Takes the latest samples, if there are new ones.
    pub(super) fn measure(&mut self, now: Duration, senses: &mut Senses<'_>) {
        self.is_resetting = now < self.reset_ends;
        self.measure_field(now, senses);
        let tick = |clock: &mut Option<Clock>| clock.as_mut().and_then(|clock| clock.tick(now));
        let (accel, gyro) = (tick(&mut self.accel_clock), tick(&mut self.gyro_clock));
        let range = |config: u8| usize::from(config >> 1 & 3);
        if let Some((_, time)) = accel {
            let per_g = PER_G[range(self.register(2, ACCEL_CONFIG))];
            self.show(0, digits(senses.inertia(time).0, per_g));
        }
        if let Some((_, time)) = gyro {
            let per_deg_s = PER_DEG_S[range(self.register(2, GYRO_CONFIG_1))];
            self.show(6, digits(senses.inertia(time).1, per_deg_s));
            self.fetch();
        }
        if accel.is_some() || gyro.is_some() {
            let temperature = ((TEMPERATURE_C - 21.0) * 333.87).round() as i16;
            self.show(12, [temperature]);
            *self.register_mut(0, INT_STATUS_1) |= 0x01;
        }
    }

    fn measure_field(&mut self, now: Duration, senses: &mut Senses<'_>) {
        self.compass.measure(now, &mut |time| {
            let [right, ahead, up] = senses.field_gauss(time);
            [right, -ahead, -up]
        });
    }

    /// The magnetometer, if its bus is connected to that of the sensor.
    pub(super) fn compass_on_main_bus(
        &mut self,
        now: Duration,
        senses: &mut Senses<'_>,
    ) -> Option<&mut dyn Chip> {
        let is_through = self.register(0, INT_PIN_CFG) & 0x02 != 0 && !self.is_master();
        if !is_through {
            return None;
        }
        self.measure_field(now, senses);
        Some(&mut self.compass)
    }

    fn is_master(&self) -> bool {
        self.register(0, USER_CTRL) & 0x20 != 0
    }

    fn is_awake(&self) -> bool {
        self.register(0, PWR_MGMT_1) & SLEEP == 0
    }

    fn register(&self, bank: u8, register: u8) -> u8 {
        self.banks[usize::from(bank)][usize::from(register)]
    }

    fn register_mut(&mut self, bank: u8, register: u8) -> &mut u8 {
        &mut self.banks[usize::from(bank)][usize::from(register)]
    }

    /// Puts values into the data registers.
    fn show<const N: usize>(&mut self, place: u8, words: [i16; N]) {
        let first = usize::from(ACCEL_XOUT_H + place);
        for (bytes, word) in self.banks[0][first..].chunks_exact_mut(2).zip(words) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
    }

    /// Slave 0 reads the registers of the magnetometer.
    fn fetch(&mut self) {
        let control = self.register(3, I2C_SLV0_CTRL);
        let is_read = self.register(3, I2C_SLV0_ADDR) == READ | COMPASS_ADDRESS;
        if control & ENABLE == 0 || !is_read || !self.is_master() {
            return;
        }
        self.compass.point(self.register(3, I2C_SLV0_REG));
        for place in 0..control & 0x0F {
            *self.register_mut(0, EXT_SLV_SENS_DATA_00 + place) = self.compass.read();
        }
    }

    /// Slave 4 carries out its transfer.
    fn carry_out(&mut self, now: Duration) {
        *self.register_mut(3, I2C_SLV4_CTRL) &= !ENABLE;
        let address = self.register(3, I2C_SLV4_ADDR);
        if address & !READ != COMPASS_ADDRESS {
            *self.register_mut(0, I2C_MST_STATUS) |= SLV4_DONE | SLV4_NACK;
            return;
        }
        self.compass.point(self.register(3, I2C_SLV4_REG));
        match address & READ {
            0 => (self.compass).write(now, self.register(3, I2C_SLV4_DO)),
            _ => *self.register_mut(3, I2C_SLV4_DI) = self.compass.read(),
        }
        *self.register_mut(0, I2C_MST_STATUS) |= SLV4_DONE;
    }

    /// Sampling starts again after each change.
    fn set_clocks(&mut self, now: Duration) {
        let rate_hz = |config: u8, divider: u16, full_hz: f64| match config & 1 {
            0 => full_hz,
            _ => 1_125.0 / (1.0 + f64::from(divider)),
        };
        let divider = [ACCEL_SMPLRT_DIV_1, ACCEL_SMPLRT_DIV_2].map(|it| self.register(2, it));
        let divider = u16::from_be_bytes(divider) & 0x0FFF;
        let accel_hz = rate_hz(self.register(2, ACCEL_CONFIG), divider, 4_500.0);
        let divider = self.register(2, GYRO_SMPLRT_DIV).into();
        let gyro_hz = rate_hz(self.register(2, GYRO_CONFIG_1), divider, 9_000.0);
        if self.gyro_clock.is_none() {
            self.starts = now + GYRO_START;
        }
        let is_awake = self.is_awake();
        self.accel_clock = is_awake.then(|| Clock::new(now, accel_hz));
        self.gyro_clock = is_awake.then(|| Clock::new(self.starts.max(now), gyro_hz));
    }
}

impl Chip for Inertial {
    fn point(&mut self, register: u8) {
        self.pointer = register & (REGISTERS - 1);
    }

    fn write(&mut self, now: Duration, value: u8) {
        let register = self.pointer;
        self.pointer = (register + 1) % REGISTERS;
        let is_data = |register| (I2C_MST_STATUS..=EXT_SLV_SENS_DATA_23).contains(&register);
        match (self.bank, register) {
            _ if self.is_resetting => {}
            (_, REG_BANK_SEL) => self.bank = value >> 4 & 3,
            (0, WHO_AM_I) => {}
            (0, _) if is_data(register) => {}
            (0, PWR_MGMT_1) if value & RESET != 0 => {
                *self = Self {
                    // It keeps its power.
                    compass: std::mem::take(&mut self.compass),
                    reset_ends: now + RESETTING,
                    is_resetting: true,
                    ..Self::new(now)
                };
            }
            (bank, _) => {
                // The reset of the bus clears itself.
                let mask = if (bank, register) == (0, USER_CTRL) {
                    !0x02
                } else {
                    0xFF
                };
                *self.register_mut(bank, register) = value & mask;
                match (bank, register) {
                    (0, PWR_MGMT_1) | (2, GYRO_SMPLRT_DIV..=ACCEL_CONFIG) => self.set_clocks(now),
                    (3, I2C_SLV4_CTRL)
                        if value & ENABLE != 0 && self.is_master() && self.is_awake() =>
                    {
                        self.carry_out(now);
                    }
                    _ => {}
                }
            }
        }
    }

    fn read(&mut self) -> u8 {
        let register = self.pointer;
        self.pointer = (register + 1) % REGISTERS;
        match (self.bank, register) {
            (_, REG_BANK_SEL) => self.bank << 4,
            // Reading clears them.
            (0, INT_STATUS_1 | I2C_MST_STATUS) => std::mem::take(self.register_mut(0, register)),
            (0, PWR_MGMT_1) if self.is_resetting => self.register(0, register) | RESET,
            (bank, _) => self.register(bank, register),
        }
    }
}
