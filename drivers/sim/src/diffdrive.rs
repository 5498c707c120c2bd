//! A simulated base with two wheels and an Arduino with the firmware of ros_arduino_bridge, or that of
//! Andino: lines in, lines out. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. After each `handle_*`,
//! drain [`Diffdrive::poll_output`] until `None`. Pass [`Diffdrive::drives`] to the world, and its
//! measurements to [`Diffdrive::handle_readings`] before the next bytes. The base is the simulated
//! robot: both wheels of a side turn at the same speed, and the encoders are those of the front wheels.
//!
//! It follows the sources of the firmware, with their sides: the first bytes are lost while the board
//! starts, arguments have at most 15 characters, numbers have 16 bits, and the motors stop 2 s after the
//! last command for them. One thing is better than in reality: the wheels hold the commanded speed,
//! whatever the gains are.

mod line;
#[cfg(test)]
mod tests;
mod twin;

use std::collections::VecDeque;
use std::time::Duration;

use self::line::{Input, Line};
pub use self::twin::{DEVICE, Options};
use crate::wheels::{Drive, Reading, Wheel};

/// Frames of the speed control per second.
const FRAME_HZ: i16 = 30;
/// How long the boot loader waits for a new program.
const BOOT: Duration = Duration::from_millis(1_600);
/// The motors stop this long after the last command for them.
const AUTO_STOP: Duration = Duration::from_secs(2);
/// Full power.
const MAX_PWM: i16 = 255;

/// The firmware.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firmware {
    /// ros_arduino_bridge: speeds in encoder counts per frame of 1/30 s
    Bridge,
    /// A variant that does not stop the motors 2 s after the last command
    BridgeWithoutStop,
    /// Andino: speeds in encoder counts per second
    Andino,
}

/// A board with two motors.
#[derive(Clone, Debug)]
pub struct Diffdrive {
    firmware: Firmware,
    starts_until: Duration,
    input: Input,
    motors: Motors,
    /// When a command for the motors last came.
    commanded: Duration,
    /// The counts of the world, and which of them are zero here.
    pulses: [i64; 2],
    zero: [i64; 2],
    outputs: VecDeque<Vec<u8>>,
}

/// What the motors are told: left and right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Motors {
    Off,
    /// Power, up to 255.
    Power([i16; 2]),
    /// Counts per frame.
    Speed([i16; 2]),
}

impl Diffdrive {
    /// Creates a board that was just switched on.
    #[must_use]
    pub fn new(firmware: Firmware, now: Duration) -> Self {
        Self {
            firmware,
            starts_until: now + BOOT,
            input: Input::default(),
            motors: Motors::Off,
            commanded: now,
            pulses: [0; 2],
            zero: [0; 2],
            outputs: VecDeque::new(),
        }
    }

    /// The same board after a restart: it counts from 0.
    #[must_use]
    pub fn restarted(&self, now: Duration) -> Self {
        Self {
            pulses: self.pulses,
            zero: self.pulses,
            ..Self::new(self.firmware, now)
        }
    }

    /// Bytes from the host.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        self.advance(now);
        if now < self.starts_until {
            return;
        }
        for byte in bytes {
            if let Some(line) = self.input.push(*byte) {
                self.obey(now, &line);
            }
        }
    }

    /// Stops the motors if it is time to.
    pub fn advance(&mut self, now: Duration) {
        if self.next_timeout().is_some_and(|due| due <= now) {
            self.motors = Motors::Off;
        }
    }

    /// When the motors stop.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let stops = self.motors != Motors::Off && self.firmware != Firmware::BridgeWithoutStop;
        stops.then_some(self.commanded + AUTO_STOP)
    }

    /// The next bytes for the host.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }

    /// The commands for the motors, per [`Wheel`].
    #[must_use]
    pub fn drives(&self) -> [Drive; 4] {
        let [left, right] = match self.motors {
            Motors::Off => [Drive::RELEASED; 2],
            Motors::Power(power) => power.map(|power| {
                let power = power.clamp(-MAX_PWM, MAX_PWM);
                Drive::Duty(f64::from(power) / f64::from(MAX_PWM))
            }),
            Motors::Speed(counts) => counts.map(|count| Drive::Speed {
                qpps: f64::from(count) * f64::from(FRAME_HZ),
                acceleration_qpps2: None,
            }),
        };
        [left, right, left, right]
    }

    /// Measurements, per [`Wheel`].
    pub fn handle_readings(&mut self, now: Duration, readings: [Reading; 4]) {
        self.advance(now);
        self.pulses =
            [Wheel::FrontLeft, Wheel::FrontRight].map(|wheel| readings[wheel.index()].pulses);
    }

    fn obey(&mut self, now: Duration, line: &Line) {
        let [first, second] = [0, 1].map(|argument| line.number(argument));
        match (line.letter, self.firmware) {
            (b'e', _) => {
                let [left, right] = self.counts();
                self.say(&format!("{left} {right}"));
            }
            (b'r', _) => {
                self.zero = self.pulses;
                // The speed control stays on, with the target 0.
                if let Motors::Speed(_) = self.motors {
                    self.motors = Motors::Speed([0; 2]);
                }
                self.say("OK");
            }
            (b'm', firmware) => {
                self.commanded = now;
                let per_frame = match firmware {
                    Firmware::Andino => FRAME_HZ,
                    Firmware::Bridge | Firmware::BridgeWithoutStop => 1,
                };
                self.motors = match [first, second] {
                    [0, 0] => Motors::Off,
                    speeds => Motors::Speed(speeds.map(|speed| speed / per_frame)),
                };
                self.say("OK");
            }
            (b'o', _) => {
                self.commanded = now;
                self.motors = Motors::Power([first, second]);
                self.say("OK");
            }
            (b'u', Firmware::Andino) => {
                let gains = [0, 1, 2, 3].map(|argument| line.number(argument).to_string());
                self.say(&format!("PID Updated: {}", gains.join(" ")));
                self.say("OK");
            }
            // Without an IMU.
            (b'h', Firmware::Andino) => self.say("0"),
            (_, Firmware::Andino) => self.say("Unknown command."),
            (b'b', _) => self.say("57600"),
            // All pins read 0.
            (b'a' | b'd' | b'p', _) => self.say("0"),
            (b'c' | b'u' | b'w' | b'x', _) => self.say("OK"),
            _ => self.say("Invalid Command"),
        }
    }

    /// The counts of the left and the right encoder, which wrap.
    fn counts(&self) -> [i32; 2] {
        let count = |side: usize| self.pulses[side].wrapping_sub(self.zero[side]) as i32;
        [count(0), count(1)]
    }

    fn say(&mut self, text: &str) {
        self.outputs.push_back(format!("{text}\r\n").into_bytes());
    }
}
