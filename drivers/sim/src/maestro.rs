//! A Pololu Maestro with hobby servos, as a machine: bytes in, bytes out. PURE.
//!
//! It understands the compact protocol, Pololu's, and Mini SSC, and makes
//! pulses that go towards their targets at a limited speed and acceleration,
//! stepped every 20 ms. Shafts follow the pulses as fast as servos can.
//!
//! Time is a [`Duration`] since the simulation began and never goes back. Call
//! [`Maestro::advance`] before anything else that comes with a time; afterwards
//! drain [`Maestro::poll_output`].

mod packet;
mod servo;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

pub use self::packet::crc7;
use self::packet::{Packet, Parser};
pub use self::servo::Servo;

/// Between two pulses.
pub const PERIOD: Duration = Duration::from_millis(20);

/// How many servos there are: those of a Mini Maestro 12.
pub const CHANNELS: usize = 12;

/// What is wrong with the bytes that came.
pub const ERROR_CRC: u16 = 1 << 3;
/// An unknown command, one that was interrupted, or for a servo that is not there.
pub const ERROR_PROTOCOL: u16 = 1 << 4;

/// How it is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Its number in Pololu's protocol.
    pub device: u8,
    /// Whether packets end with a CRC.
    pub crc: bool,
    /// After power-on it hears nothing before the byte `AA`, by which it finds
    /// out the speed of a serial line.
    pub detects_baud: bool,
    /// Targets below become this, in microseconds.
    pub min_us: u16,
    /// Targets above become this, in microseconds.
    pub max_us: u16,
}

impl Default for Config {
    /// The limits of the servos of the Capo robot, wider than those of the factory.
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
    /// One that was just switched on, with servos that get no pulses.
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

    /// The same device after its power was off: shafts stay where they are.
    pub fn restart(&mut self, now: Duration) {
        let servos = self.servos.map(Servo::without_power);
        *self = Self {
            servos,
            ..Self::new(self.config, now)
        };
    }

    /// Moves everything up to a time.
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

    /// When something happens even if nothing comes in.
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
            // There is no script, so it stands.
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

    /// Home is without pulses.
    fn go_home(&mut self) {
        for servo in &mut self.servos {
            servo.set_target(0);
        }
    }
}
