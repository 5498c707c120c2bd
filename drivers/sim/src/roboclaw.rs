//! Simulated RoboClaw motor controllers on one serial line: bytes in, bytes out. PURE.
//!
//! The rear controller has address 0x80 and the front one 0x81; on each, M1 is the right wheel and
//! M2 the left one. A single controller has address 0x80, and its motors drive both wheels of a side;
//! the encoders are those of the rear wheels. All receive every byte, and answer only packets with their address and a valid
//! checksum.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. After each
//! `handle_*`, drain [`Roboclaws::poll_output`] until `None`. Pass [`Roboclaws::drives`] to the
//! world, and its measurements to [`Roboclaws::handle_readings`] before the next bytes.

mod channel;
mod data;
mod faults;
mod packet;
mod settings;
#[cfg(test)]
mod tests;
mod twin;
mod unit;

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

pub use self::faults::Faults;
use self::packet::Form;
pub use self::packet::{Firmware, crc16, sum7};
pub use self::twin::{DEVICE, Options};
use self::unit::Unit;
use crate::battery::Battery;
use crate::wheels::{Drive, Reading, Wheel};

/// The address of the rear controller; the front one has the next.
pub const REAR_ADDRESS: u8 = 0x80;

/// The addresses that can start a packet.
const ADDRESSES: RangeInclusive<u8> = 0x80..=0x87;

/// A packet that contains a longer pause is dropped.
pub const PACKET_PAUSE: Duration = Duration::from_millis(10);

/// The command that writes a word of the EEPROM. Firmware 4.1.34 also reports the end of it.
const WRITE_WORD: u8 = 253;
const WORD_WRITTEN: u8 = 0xAA;

/// How long the controllers ignore the bus after a reset.
const RESET_MUTE: Duration = Duration::from_millis(250);
/// The temperature of the room.
const AMBIENT_C: f64 = 25.0;
/// The heating of a controller per ampere.
const HEATING_C_PER_A: f64 = 0.5;
/// The time constant of the heating.
const HEATING_LAG_S: f64 = 60.0;

/// The settings of the controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The firmware of all controllers.
    pub firmware: Firmware,
    /// Whether there is only one controller.
    pub is_single: bool,
    /// The delay before a reply.
    pub latency: Duration,
    /// The pause after which an incomplete packet is dropped. [`PACKET_PAUSE`] for real
    /// controllers; a simulation that is faster than real time needs more.
    pub packet_pause: Duration,
}

/// Two controllers on one bus.
#[derive(Clone, Debug)]
pub struct Roboclaws {
    config: Config,
    rear: Unit,
    front: Unit,
    partial: Vec<u8>,
    /// Everything is ignored until the next pause.
    lost: bool,
    last_byte: Duration,
    mute_until: Duration,
    replies: VecDeque<Reply>,
    spoil_next: Option<Spoil>,
    battery: Battery,
    temperatures_c: [f64; 2],
    temperature_override_c: Option<f64>,
    measured: Duration,
}

/// An error in a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoil {
    /// It is not sent.
    Drop,
    /// One bit of it is wrong.
    Corrupt,
    /// It is delayed by this time.
    Delay(Duration),
}

#[derive(Clone, Debug)]
struct Reply {
    due: Duration,
    bytes: Vec<u8>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            firmware: Firmware::V4_2_4,
            is_single: false,
            latency: Duration::ZERO,
            packet_pause: PACKET_PAUSE,
        }
    }
}

impl Roboclaws {
    /// Creates controllers that were just switched on.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mut new = Self {
            config,
            rear: Unit::new(config.firmware),
            front: Unit::new(config.firmware),
            partial: Vec::new(),
            lost: false,
            last_byte: Duration::ZERO,
            mute_until: Duration::ZERO,
            replies: VecDeque::new(),
            spoil_next: None,
            battery: Battery::default(),
            temperatures_c: [AMBIENT_C; 2],
            temperature_override_c: None,
            measured: Duration::ZERO,
        };
        new.show_surroundings();
        new
    }

    /// Bytes from the host.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        if now < self.mute_until {
            return;
        }
        if now > self.last_byte + self.config.packet_pause {
            self.partial.clear();
            self.lost = false;
        }
        self.last_byte = now;
        if self.lost {
            return;
        }
        for byte in bytes {
            // Between packets only an address is valid.
            if self.partial.is_empty() && !ADDRESSES.contains(byte) {
                continue;
            }
            self.partial.push(*byte);
            if !self.try_packet(now) {
                self.partial.clear();
                self.lost = true;
                return;
            }
        }
    }

    /// The next due reply, in one piece.
    pub fn poll_output(&mut self, now: Duration) -> Option<Vec<u8>> {
        if self.replies.front()?.due > now {
            return None;
        }
        self.replies.pop_front().map(|reply| reply.bytes)
    }

    /// When the state changes without further input.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        [
            self.replies.front().map(|reply| reply.due),
            self.rear.timeout(),
            self.front.timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The commands for the motors, per [`Wheel`].
    #[must_use]
    pub fn drives(&self) -> [Drive; 4] {
        let [rear_right, rear_left] = self.rear.drives();
        let [front_right, front_left] = match self.config.is_single {
            false => self.front.drives(),
            true => [rear_right, rear_left],
        };
        [front_left, front_right, rear_left, rear_right]
    }

    /// Measurements, per [`Wheel`].
    pub fn handle_readings(&mut self, now: Duration, readings: [Reading; 4]) {
        let of = |wheel: Wheel| readings[wheel.index()];
        let front = [of(Wheel::FrontRight), of(Wheel::FrontLeft)];
        let rear = [of(Wheel::RearRight), of(Wheel::RearLeft)];
        let amperes = [rear, front].map(|pair| pair[0].current_a + pair[1].current_a);
        let seconds = now.saturating_sub(self.measured).as_secs_f64();
        self.measured = now;
        self.battery.handle_readings(now, readings);
        for (temperature, amperes) in self.temperatures_c.iter_mut().zip(amperes) {
            let target = AMBIENT_C + HEATING_C_PER_A * amperes;
            *temperature += (target - *temperature) * (1.0 - (-seconds / HEATING_LAG_S).exp());
        }
        self.show_surroundings();
        self.rear.handle_readings(now, rear);
        self.front.handle_readings(now, front);
    }

    /// Whether measurements are needed often, because they end a move.
    #[must_use]
    pub fn has_moves(&self) -> bool {
        self.rear.has_moves() || self.front.has_moves()
    }

    /// Pulls the reset line: outputs, encoders and unsaved settings are lost, and the bus is
    /// ignored for a while.
    pub fn handle_reset(&mut self, now: Duration) {
        self.rear.reset(now);
        self.front.reset(now);
        self.partial.clear();
        self.replies.clear();
        self.mute_until = now + RESET_MUTE;
    }

    /// The bus was disconnected or reconnected: incomplete packets are lost. The controllers
    /// continue, because real ones have their own power supply.
    pub fn handle_unplug(&mut self) {
        self.partial.clear();
        self.replies.clear();
    }

    /// Spoils the next reply.
    pub fn spoil_next(&mut self, spoil: Spoil) {
        self.spoil_next = Some(spoil);
    }

    /// Sets the voltage of the battery; `None` to compute it.
    pub fn set_battery_v(&mut self, volts: Option<f64>) {
        self.battery.force_v(volts);
        self.show_surroundings();
    }

    /// Sets whether the voltage of the battery dips.
    pub fn set_battery_sag(&mut self, sags: bool) {
        self.battery.set_sag(sags);
        self.show_surroundings();
    }

    /// Sets the temperature of both controllers; `None` to compute it.
    pub fn set_temperature_c(&mut self, celsius: Option<f64>) {
        self.temperature_override_c = celsius;
        self.show_surroundings();
    }

    /// Sets additional faults of both controllers.
    pub fn force_faults(&mut self, faults: Faults) {
        self.rear.force(faults);
        self.front.force(faults);
    }

    fn show_surroundings(&mut self) {
        let volts = self.battery.volts();
        let [rear_c, front_c] = self.temperatures_c;
        self.rear.set_battery_v(volts);
        self.front.set_battery_v(volts);
        let forced_c = self.temperature_override_c;
        self.rear.set_temperature_c(forced_c.unwrap_or(rear_c));
        self.front.set_temperature_c(forced_c.unwrap_or(front_c));
    }

    /// Carries out the received packet once it is complete. Returns false if its length cannot be
    /// known.
    fn try_packet(&mut self, now: Duration) -> bool {
        let &[address, command, ref rest @ ..] = self.partial.as_slice() else {
            return true;
        };
        let firmware = self.config.firmware;
        match firmware.form(command) {
            None => return false,
            Some(Form::Read) => {
                if let Some(unit) = self.unit(address) {
                    unit.hear(now);
                    let data = unit.read(command);
                    let mut bytes = [&[address, command], data.as_slice()].concat();
                    let check = firmware.check(&bytes);
                    bytes.extend(check);
                    self.reply(now, bytes.split_off(2));
                }
            }
            Some(Form::ReadAt) => {
                let &[at, ..] = rest else {
                    return true;
                };
                if let Some(unit) = self.unit(address) {
                    unit.hear(now);
                    let data = unit.read_at(at);
                    let mut bytes = [&[address, command, at], data.as_slice()].concat();
                    let check = firmware.check(&bytes);
                    bytes.extend(check);
                    self.reply(now, bytes.split_off(3));
                }
            }
            Some(Form::Write(len)) => {
                if rest.len() < len + firmware.check_len() {
                    return true;
                }
                let packet = std::mem::take(&mut self.partial);
                let (body, check) = packet.split_at(2 + len);
                if !firmware.accepts(body, check) {
                    return true;
                }
                if let Some(unit) = self.unit(address) {
                    unit.hear(now);
                    if unit.write(command, &body[2..]) && firmware.acknowledges(check) {
                        self.reply(now, vec![0xFF]);
                        if (firmware, command) == (Firmware::V4_1_34, WRITE_WORD) {
                            self.reply(now, vec![WORD_WRITTEN]);
                        }
                    }
                }
            }
        }
        self.partial.clear();
        true
    }

    fn unit(&mut self, address: u8) -> Option<&mut Unit> {
        match address.checked_sub(REAR_ADDRESS)? {
            0 => Some(&mut self.rear),
            1 if !self.config.is_single => Some(&mut self.front),
            _ => None,
        }
    }

    fn reply(&mut self, now: Duration, mut bytes: Vec<u8>) {
        let mut due = now + self.config.latency;
        match self.spoil_next.take() {
            Some(Spoil::Drop) => return,
            Some(Spoil::Corrupt) => {
                if let Some(byte) = bytes.last_mut() {
                    *byte ^= 0x10;
                }
            }
            Some(Spoil::Delay(longer)) => due += longer,
            None => {}
        }
        // One wire: replies stay in order.
        due = due.max(self.replies.back().map_or(due, |reply| reply.due));
        self.replies.push_back(Reply { due, bytes });
    }
}
