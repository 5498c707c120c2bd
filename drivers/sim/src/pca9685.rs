//! A simulated PCA9685 with hobby servos: transfers on the bus in, replies out. PURE.
//!
//! It has all registers of the data sheet that servos need: sleep and restart, auto-increment, the
//! prescaler that can be written only asleep, the registers for all channels, the address for all
//! boards, and the reset by a general call. Pulses begin at once instead of with the next period.
//! Shafts follow the pulses at the speed of real servos.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases.

#[cfg(test)]
mod tests;
mod twin;

use std::time::Duration;

pub use self::twin::{DEVICE, Options};
use crate::control::Servo;
use crate::i2c::{Reply, Transfer};
use crate::maestro::PERIOD;

/// The number of channels.
pub const CHANNELS: usize = 16;

/// The frequency of the oscillator.
const OSCILLATOR_HZ: f64 = 25e6;

const MODE1: u8 = 0x00;
const CHANNEL_0: u8 = 0x06;
/// The last register of the last channel; auto-increment continues with register 0.
const LAST: u8 = 0x45;
const ALL_CHANNELS: u8 = 0xFA;
const PRE_SCALE: u8 = 0xFE;

const RESTART: u8 = 0x80;
const AUTO_INCREMENT: u8 = 0x20;
const SLEEP: u8 = 0x10;
const ALL_CALL: u8 = 0x01;
/// In the last byte of a channel: no pulses. In the second: always on.
const FULL: u8 = 0x10;

/// The address of all boards, while they have it switched on.
const ALL_CALL_ADDRESS: u8 = 0x70;
const GENERAL_CALL: (u8, &[u8]) = (0x00, &[0x06]);

/// The maximum speed of a shaft.
const SHAFT_DEG_PER_S: f64 = 350.0;
/// The angle of a shaft that never received a pulse.
const MIDDLE_DEG: f64 = 90.0;
/// The pulses that a servo follows, in microseconds.
const FOLLOWED_US: std::ops::RangeInclusive<f64> = 400.0..=2_600.0;

/// The chip with its servos.
#[derive(Clone, Debug)]
pub struct Pca9685 {
    address: u8,
    registers: [u8; 256],
    pointer: u8,
    /// It was put to sleep while channels had pulses; they are missing until a restart.
    is_halted: bool,
    shafts_deg: [f64; CHANNELS],
    stepped: Duration,
}

impl Pca9685 {
    /// Creates a chip that was just powered on, at an address.
    #[must_use]
    pub fn new(address: u8, now: Duration) -> Self {
        let mut chip = Self {
            address,
            registers: [0; 256],
            pointer: 0,
            is_halted: false,
            shafts_deg: [MIDDLE_DEG; CHANNELS],
            stepped: now,
        };
        chip.reset();
        chip
    }

    /// A power cycle: shafts stay where they are.
    pub fn restart(&mut self, now: Duration) {
        self.advance(now);
        self.reset();
    }

    fn reset(&mut self) {
        self.registers = [0; 256];
        self.registers[usize::from(MODE1)] = SLEEP | ALL_CALL;
        self.registers[1..6].copy_from_slice(&[0x04, 0xE2, 0xE4, 0xE8, 0xE0]);
        for channel in 0..CHANNELS {
            self.channel_mut(channel)[3] = FULL;
        }
        self.registers[usize::from(PRE_SCALE)] = 0x1E;
        self.is_halted = false;
        self.pointer = 0;
    }

    /// Carries out a transfer.
    pub fn transfer(&mut self, now: Duration, transfer: &Transfer) -> Reply {
        self.advance(now);
        if (transfer.address, transfer.written.as_slice()) == GENERAL_CALL && transfer.read == 0 {
            self.reset();
            return Reply::Ack(Vec::new());
        }
        let is_for_all = transfer.address == ALL_CALL_ADDRESS && self.mode() & ALL_CALL != 0;
        if transfer.address != self.address && !is_for_all {
            return Reply::Nak;
        }
        if let Some((register, values)) = transfer.written.split_first() {
            self.pointer = *register;
            for value in values {
                self.write(self.pointer, *value);
                self.count_on();
            }
        }
        let read = (0..transfer.read).map(|_| {
            let value = self.read(self.pointer);
            self.count_on();
            value
        });
        Reply::Ack(read.collect())
    }

    /// Advances the shafts to a time.
    pub fn advance(&mut self, now: Duration) {
        if self.is_at_rest() {
            self.stepped = self.stepped.max(now);
        }
        while self.stepped + PERIOD <= now {
            self.stepped += PERIOD;
            for channel in 0..CHANNELS {
                if let Some(wanted) = self.wanted_deg(channel) {
                    let most = SHAFT_DEG_PER_S * PERIOD.as_secs_f64();
                    let shaft = &mut self.shafts_deg[channel];
                    *shaft += (wanted - *shaft).clamp(-most, most);
                }
            }
        }
    }

    /// When the state changes without further input.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        (!self.is_at_rest()).then(|| self.stepped + PERIOD)
    }

    /// The pulse width of a channel, in microseconds; 0 for no pulse.
    #[must_use]
    pub fn pulse_us(&self, channel: usize) -> f64 {
        if self.mode() & SLEEP != 0 || self.is_halted {
            return 0.0;
        }
        let [on_low, on_high, off_low, off_high] = *self.channel(channel);
        let steps = |low, high| u16::from_le_bytes([low, high & 0x0F]);
        let steps = match (on_high & FULL != 0, off_high & FULL != 0) {
            (_, true) => 0,
            (true, false) => 4096,
            _ => steps(off_low, off_high).wrapping_sub(steps(on_low, on_high)) & 0x0FFF,
        };
        let prescale = self.registers[usize::from(PRE_SCALE)];
        f64::from(steps) * (f64::from(prescale) + 1.0) / OSCILLATOR_HZ * 1e6
    }

    /// The servos, from channel 0.
    pub fn servos(&self) -> impl Iterator<Item = Servo> {
        (0..CHANNELS).map(|channel| {
            let pulse_us = self.pulse_us(channel);
            Servo {
                target_us: pulse_us,
                pulse_us,
                angle_deg: self.shafts_deg[channel],
            }
        })
    }

    fn wanted_deg(&self, channel: usize) -> Option<f64> {
        let us = self.pulse_us(channel);
        FOLLOWED_US.contains(&us).then(|| (2_400.0 - us) / 10.0)
    }

    fn is_at_rest(&self) -> bool {
        (0..CHANNELS).all(|channel| {
            let wanted = self.wanted_deg(channel);
            wanted.is_none_or(|wanted| (wanted - self.shafts_deg[channel]).abs() < 1e-6)
        })
    }

    fn mode(&self) -> u8 {
        self.registers[usize::from(MODE1)]
    }

    fn channel(&self, channel: usize) -> &[u8; 4] {
        let from = usize::from(CHANNEL_0) + 4 * channel;
        self.registers[from..].first_chunk().unwrap_or(&[0; 4])
    }

    fn channel_mut(&mut self, channel: usize) -> &mut [u8] {
        let from = usize::from(CHANNEL_0) + 4 * channel;
        &mut self.registers[from..from + 4]
    }

    fn count_on(&mut self) {
        if self.mode() & AUTO_INCREMENT != 0 {
            self.pointer = match self.pointer {
                LAST => 0,
                pointer => pointer.wrapping_add(1),
            };
        }
    }

    fn read(&self, register: u8) -> u8 {
        match register {
            MODE1 => self.mode() | if self.is_halted { RESTART } else { 0 },
            register => self.registers[usize::from(register)],
        }
    }

    fn write(&mut self, register: u8, value: u8) {
        match register {
            MODE1 => self.set_mode(value),
            PRE_SCALE if self.mode() & SLEEP != 0 => {
                self.registers[usize::from(PRE_SCALE)] = value.max(3);
            }
            // These registers are of all channels, and read as 0.
            ALL_CHANNELS..PRE_SCALE => {
                for channel in 0..CHANNELS {
                    self.channel_mut(channel)[usize::from(register - ALL_CHANNELS)] = value;
                }
                self.is_halted = false;
            }
            CHANNEL_0..=LAST => {
                self.registers[usize::from(register)] = value;
                self.is_halted = false;
            }
            0x01..CHANNEL_0 => self.registers[usize::from(register)] = value,
            _ => {}
        }
    }

    fn set_mode(&mut self, value: u8) {
        let had_pulses = (0..CHANNELS).any(|channel| self.pulse_us(channel) > 0.0);
        self.registers[usize::from(MODE1)] = value & !RESTART;
        let sleeps = value & SLEEP != 0;
        if sleeps && had_pulses {
            self.is_halted = true;
        } else if !sleeps && value & RESTART != 0 {
            self.is_halted = false;
        }
    }
}
