//! A simulated INA219, INA226 or INA260 that measures the battery of the robot: transfers on the bus
//! in, replies out. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. A register is two
//! bytes, the high one first. Values are those of the last conversion, without noise; alerts are
//! stored and have no effect.
//!
//! The battery is at the pin IN+: the current is positive while the battery is used.

use std::time::Duration;

pub use self::model::Model;
pub use self::twin::{DEVICE, Options};
use crate::battery::Battery;
use crate::i2c::{Reply, Transfer};

mod model;
#[cfg(test)]
mod tests;
mod twin;

/// The address of the sensor.
pub const ADDRESS: u8 = 0x40;

const CONFIG: u8 = 0x00;
const SHUNT: u8 = 0x01;
const BUS: u8 = 0x02;
const POWER: u8 = 0x03;
const CURRENT: u8 = 0x04;
const CALIBRATION: u8 = 0x05;
const MASK: u8 = 0x06;
const LIMIT: u8 = 0x07;
const MAKER: u8 = 0xFE;
const DIE: u8 = 0xFF;

/// In CONFIG: all registers get their first values.
const RESET: u16 = 0x8000;
/// In MASK: a conversion is done. An INA219 has it in BUS.
const READY: u16 = 0x0008;
const READY_IN_BUS: u16 = 0x0002;
/// In BUS of an INA219: the current or the power does not fit.
const OVERFLOW_IN_BUS: u16 = 0x0001;

/// The sensor, and the battery that it measures.
#[derive(Clone, Debug)]
pub struct Ina {
    model: Model,
    battery: Battery,
    /// Voltage and current instead of those of the battery.
    fixed: Option<(f64, f64)>,
    registers: Registers,
}

#[derive(Clone, Copy, Debug)]
struct Registers {
    pointer: u8,
    config: u16,
    calibration: u16,
    mask: u16,
    limit: u16,
    /// Of the last conversion, in digits.
    shunt: i16,
    bus: u16,
    /// Conversions since the settings were written.
    since: Duration,
    conversions: u64,
    is_ready: bool,
}

impl Registers {
    fn new(model: Model, now: Duration) -> Self {
        Self {
            pointer: 0,
            config: model.first_config(),
            calibration: 0,
            mask: 0,
            limit: 0,
            shunt: 0,
            bus: 0,
            since: now,
            conversions: 0,
            is_ready: false,
        }
    }
}

impl Ina {
    /// Creates a sensor that was just powered on.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self {
            model,
            battery: Battery::default(),
            fixed: None,
            registers: Registers::new(model, Duration::ZERO),
        }
    }

    /// From now on it measures this voltage and this current, in volts and amperes.
    pub fn set_fixed(&mut self, volts: f64, amperes: f64) {
        self.fixed = Some((volts, amperes));
    }

    /// A power cycle: the settings are lost.
    pub fn restart(&mut self, now: Duration) {
        self.registers = Registers::new(self.model, now);
    }

    /// The true voltage and current, in volts and amperes.
    #[must_use]
    pub fn truth(&self) -> (f64, f64) {
        let own = (self.battery.volts(), self.battery.amperes());
        self.fixed.unwrap_or(own)
    }

    /// Carries out a transfer.
    pub fn transfer(&mut self, now: Duration, transfer: &Transfer) -> Reply {
        if transfer.address != ADDRESS {
            return Reply::Nak;
        }
        self.convert(now);
        match transfer.written[..] {
            [] => {}
            [register, high, low, ..] => {
                self.registers.pointer = register;
                self.write(now, u16::from_be_bytes([high, low]));
            }
            [register, ..] => self.registers.pointer = register,
        }
        if transfer.read == 0 {
            return Reply::Ack(Vec::new());
        }
        let [high, low] = self.read().to_be_bytes();
        // There is nothing behind a register.
        let mut bytes = vec![0xFF; transfer.read.into()];
        bytes
            .iter_mut()
            .zip([high, low])
            .for_each(|(to, byte)| *to = byte);
        Reply::Ack(bytes)
    }

    /// Takes the values of the latest conversion.
    fn convert(&mut self, now: Duration) {
        let (volts, amperes) = self.truth();
        let (model, registers) = (self.model, &mut self.registers);
        let (has_shunt, has_bus) = (registers.config & 1 != 0, registers.config & 2 != 0);
        let is_continuous = registers.config & 4 != 0;
        if !has_shunt && !has_bus {
            return;
        }
        let time = model.conversion_time(registers.config);
        let passed = now.saturating_sub(registers.since).as_nanos() / time.as_nanos().max(1);
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        let done = if is_continuous { passed } else { passed.min(1) };
        if done <= registers.conversions {
            return;
        }
        registers.conversions = done;
        registers.is_ready = true;
        if has_shunt {
            registers.shunt = model.shunt(registers.config, amperes);
        }
        if has_bus {
            registers.bus = model.bus(registers.config, volts);
        }
    }

    fn write(&mut self, now: Duration, value: u16) {
        let (model, registers) = (self.model, &mut self.registers);
        match registers.pointer {
            CONFIG if value & RESET != 0 => *registers = Registers::new(model, now),
            CONFIG => {
                registers.config = model.kept_config(value);
                (registers.since, registers.conversions) = (now, 0);
                registers.is_ready = false;
            }
            CALIBRATION => registers.calibration = model.kept_calibration(value),
            MASK => registers.mask = value & 0xFC03,
            LIMIT => registers.limit = value,
            _ => {}
        }
    }

    fn read(&mut self) -> u16 {
        let (current, power, overflows) = self.computed();
        let (model, registers) = (self.model, &mut self.registers);
        let has_ready_in_bus = model == Model::Ina219;
        match registers.pointer {
            CONFIG => registers.config,
            SHUNT => registers.shunt.cast_unsigned(),
            BUS if has_ready_in_bus => {
                let ready = if registers.is_ready { READY_IN_BUS } else { 0 };
                let overflow = if overflows { OVERFLOW_IN_BUS } else { 0 };
                registers.bus << 3 | ready | overflow
            }
            BUS => registers.bus,
            POWER => {
                registers.is_ready &= !has_ready_in_bus;
                power
            }
            CURRENT => current.cast_unsigned(),
            CALIBRATION => registers.calibration,
            MASK if !has_ready_in_bus => {
                let ready = std::mem::take(&mut registers.is_ready);
                registers.mask | if ready { READY } else { 0 }
            }
            LIMIT if !has_ready_in_bus => registers.limit,
            MAKER => model.identity().map_or(0, |[maker, _]| maker),
            DIE => model.identity().map_or(0, |[_, die]| die),
            _ => 0,
        }
    }

    /// What the sensor computes with its calibration: current, power, and whether they do not fit.
    fn computed(&self) -> (i16, u16, bool) {
        let Registers {
            shunt,
            bus,
            calibration,
            ..
        } = self.registers;
        let (current, power) = self.model.computed(shunt, bus, calibration);
        let overflows = current.abs() > f64::from(i16::MAX) || power > f64::from(u16::MAX);
        // The casts limit.
        (current as i16, power as u16, overflows)
    }
}
