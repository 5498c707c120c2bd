//! A simulated Pololu Maestro with hobby servos: bytes in, bytes out. PURE.
//!
//! It supports the compact protocol, the Pololu protocol and Mini SSC. Pulses move towards their
//! targets with limited speed and acceleration, in steps of 20 ms. Shafts follow the pulses at the
//! speed of real servos.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. Call
//! [`Maestro::advance`] before any other call with a time; then drain [`Maestro::poll_output`].

mod packet;
mod servo;
#[cfg(test)]
mod tests;
mod twin;

use std::collections::VecDeque;
use std::time::Duration;

pub use self::packet::crc7;
use self::packet::{Packet, Parser};
pub use self::servo::Servo;
pub use self::twin::DEVICE;

/// The interval between pulses.
pub const PERIOD: Duration = Duration::from_millis(20);

/// The number of servos on a Mini Maestro 12.
pub const CHANNELS: usize = 12;

/// Error bit: a CRC is wrong.
pub const ERROR_CRC: u16 = 1 << 3;
/// Error bit: an unknown or interrupted command, or a servo that does not exist.
pub const ERROR_PROTOCOL: u16 = 1 << 4;

/// The settings of the device.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
#[group(skip)]
pub struct Config {
    /// Device number of the servo controller in the Pololu protocol
    #[arg(long = "maestro-device", value_name = "NUMBER", default_value_t = Self::default().device,
        value_parser = clap::value_parser!(u8).range(..=127))]
    pub device: u8,
    /// The servo controller requires a CRC after each packet
    #[arg(long = "maestro-crc")]
    pub crc: bool,
    /// The servo controller waits for the byte AA first, to detect the baud rate of a serial line
    #[arg(long = "maestro-detect-baud")]
    pub detects_baud: bool,
    /// Smaller targets become this, in microseconds.
    #[arg(skip = Self::default().min_us)]
    pub min_us: u16,
    /// Larger targets become this, in microseconds.
    #[arg(skip = Self::default().max_us)]
    pub max_us: u16,
}

impl Default for Config {
    /// The limits of the servos of the Capo robot, wider than the factory settings.
    fn default() -> Self {
        Self {
            device: 12,
            crc: false,
            detects_baud: false,
            min_us: 600,
            max_us: 2_400,
        }
    }
}

/// A Maestro.
#[derive(Clone, Debug)]
pub struct Maestro {
    config: Config,
    parser: Parser,
    knows_baud: bool,
    servos: [Servo; CHANNELS],
    errors: u16,
    outputs: VecDeque<Vec<u8>>,
    stepped: Duration,
}

impl Maestro {
    /// Creates a device that was just switched on; servos receive no pulses.
    #[must_use]
    pub fn new(config: Config, now: Duration) -> Self {
        Self {
            config,
            parser: Parser::new(config.device, config.crc),
            knows_baud: !config.detects_baud,
            servos: [Servo::default(); CHANNELS],
            errors: 0,
            outputs: VecDeque::new(),
            stepped: now,
        }
    }

    /// A power cycle: shafts stay where they are.
    pub fn restart(&mut self, now: Duration) {
        let servos = self.servos.map(Servo::without_power);
        *self = Self {
            servos,
            ..Self::new(self.config, now)
        };
    }

    /// Advances everything to a time.
    pub fn advance(&mut self, now: Duration) {
        if self.servos.iter().all(Servo::is_at_rest) {
            self.stepped = self.stepped.max(now);
        }
        while self.stepped + PERIOD <= now {
            self.stepped += PERIOD;
            self.servos.iter_mut().for_each(Servo::step);
        }
    }

    /// Bytes from the host.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if !self.knows_baud {
                self.knows_baud = *byte == packet::POLOLU;
                continue;
            }
            if self.parser.interrupt(*byte) {
                self.fail(ERROR_PROTOCOL);
            }
            match self.parser.push(*byte) {
                Ok(None) => {}
                Ok(Some(packet)) => self.obey(&packet),
                Err(error) => self.fail(error),
            }
        }
    }

    /// The next bytes.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }

    /// When the state changes without further input.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let moves = !self.servos.iter().all(Servo::is_at_rest);
        moves.then(|| self.stepped + PERIOD)
    }

    /// The servos.
    #[must_use]
    pub fn servos(&self) -> &[Servo] {
        &self.servos
    }

    fn obey(&mut self, packet: &Packet) {
        let limits = (self.config.min_us * 4)..=(self.config.max_us * 4);
        let clamp = |target: u16| match target {
            0 => 0,
            target => target.clamp(*limits.start(), *limits.end()),
        };
        match packet {
            Packet::Targets(first, targets) => {
                let first = usize::from(*first);
                match self.servos.get_mut(first..first + targets.len()) {
                    None => self.fail(ERROR_PROTOCOL),
                    Some(servos) => {
                        for (servo, target) in servos.iter_mut().zip(targets) {
                            servo.set_target(clamp(*target));
                        }
                    }
                }
            }
            Packet::Speed(channel, speed) => {
                self.with(*channel, |servo| servo.set_speed(*speed));
            }
            Packet::Acceleration(channel, acceleration) => {
                self.with(*channel, |servo| servo.set_acceleration(*acceleration));
            }
            Packet::Position(channel) => match self.servos.get(usize::from(*channel)) {
                None => self.fail(ERROR_PROTOCOL),
                Some(servo) => {
                    let position = servo.pulse_quarters().to_le_bytes();
                    self.outputs.push_back(position.to_vec());
                }
            },
            Packet::IsMoving => {
                let moves = self.servos.iter().any(Servo::is_moving);
                self.outputs.push_back(vec![u8::from(moves)]);
            }
            Packet::Errors => {
                let errors = std::mem::take(&mut self.errors);
                self.outputs.push_back(errors.to_le_bytes().to_vec());
            }
            Packet::GoHome => self.go_home(),
            // There is no script, so it is stopped.
            Packet::ScriptStatus => self.outputs.push_back(vec![1]),
            Packet::Ignored => {}
        }
    }

    fn with(&mut self, channel: u8, change: impl FnOnce(&mut Servo)) {
        match self.servos.get_mut(usize::from(channel)) {
            Some(servo) => change(servo),
            None => self.fail(ERROR_PROTOCOL),
        }
    }

    fn fail(&mut self, error: u16) {
        self.errors |= error;
        self.go_home();
    }

    /// At home, servos receive no pulses.
    fn go_home(&mut self) {
        for servo in &mut self.servos {
            servo.set_target(0);
        }
    }
}
