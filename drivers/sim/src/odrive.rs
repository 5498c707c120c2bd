//! A simulated ODrive with two axes and firmware 0.5: lines in, lines out. PURE.
//!
//! Axis 0 drives the wheels of the left side, axis 1 those of the right side; what they measure is that
//! of the front wheels. Both motors are calibrated, and one turn of a motor is one of its wheel.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. After each `handle_*`,
//! drain [`Odrive::poll_output`] until `None`. Pass [`Odrive::drives`] to the world, and its measurements
//! to [`Odrive::handle_readings`] before the next bytes.
//!
//! It follows the source of the ASCII protocol: a line ends with LF, CR or `!`, what follows a `;` is a
//! comment, a line with a wrong sum is ignored, and answers have a sum if the line had one. Commands
//! that turn the motor by other means or store something do nothing.

#[cfg(test)]
mod tests;
mod twin;

use std::collections::VecDeque;
use std::time::Duration;

pub use self::twin::{DEVICE, Options};
use crate::battery::Battery;
use crate::wheels::{Drive, PULSES_PER_TURN, Reading, Wheel};

/// The longest line.
const MAX_LINE: usize = 256;
/// The state of a released axis, and of one that controls its motor.
const IDLE: u8 = 1;
const CLOSED_LOOP: u8 = 8;
/// An axis cannot do what it was told.
const INVALID_STATE: u32 = 0x1;
/// The watchdog has released the motor.
const WATCHDOG_EXPIRED: u32 = 0x800;

/// The variant of the ODrive.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Firmware 0.5.6
    #[value(name = "0.5.6")]
    Calibrated,
    /// The same with motors that are not calibrated
    Uncalibrated,
}

/// An ODrive.
#[derive(Clone, Debug)]
pub struct Odrive {
    variant: Variant,
    input: Vec<u8>,
    is_too_long: bool,
    axes: [Axis; 2],
    battery: Battery,
    outputs: VecDeque<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
struct Axis {
    state: u8,
    error: u32,
    /// Turns per second. It stays when the motor is released.
    velocity: f64,
    watchdog_s: f64,
    has_watchdog: bool,
    /// When the watchdog expires unless it is fed.
    expires: Duration,
    reading: Reading,
}

impl Odrive {
    /// Creates an ODrive that was just switched on.
    #[must_use]
    pub fn new(variant: Variant) -> Self {
        let axis = Axis {
            state: IDLE,
            error: 0,
            velocity: 0.0,
            watchdog_s: 0.0,
            has_watchdog: false,
            expires: Duration::ZERO,
            reading: Reading::default(),
        };
        Self {
            variant,
            input: Vec::new(),
            is_too_long: false,
            axes: [axis; 2],
            battery: Battery::default(),
            outputs: VecDeque::new(),
        }
    }

    /// Bytes from the host.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        self.advance(now);
        for byte in bytes {
            if !matches!(byte, b'\n' | b'\r' | b'!') {
                self.is_too_long |= self.input.len() == MAX_LINE;
                if !self.is_too_long {
                    self.input.push(*byte);
                }
                continue;
            }
            let line = std::mem::take(&mut self.input);
            if !std::mem::take(&mut self.is_too_long) {
                self.handle_line(now, &String::from_utf8_lossy(&line));
            }
        }
    }

    /// Releases the motors if it is time to.
    pub fn advance(&mut self, now: Duration) {
        for axis in &mut self.axes {
            if axis.due().is_some_and(|due| due <= now) {
                axis.error |= WATCHDOG_EXPIRED;
                axis.state = IDLE;
            }
        }
    }

    /// When a watchdog expires.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        self.axes.iter().filter_map(Axis::due).min()
    }

    /// The next bytes for the host.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }

    /// The commands for the motors, per [`Wheel`].
    #[must_use]
    pub fn drives(&self) -> [Drive; 4] {
        let [left, right] = self.axes.map(|axis| match axis.state {
            CLOSED_LOOP => Drive::Speed {
                qpps: axis.velocity * PULSES_PER_TURN,
                acceleration_qpps2: None,
            },
            _ => Drive::RELEASED,
        });
        [left, right, left, right]
    }

    /// Measurements, per [`Wheel`].
    pub fn handle_readings(&mut self, now: Duration, readings: [Reading; 4]) {
        self.advance(now);
        self.battery.handle_readings(now, readings);
        for (axis, wheel) in (self.axes.iter_mut()).zip([Wheel::FrontLeft, Wheel::FrontRight]) {
            axis.reading = readings[wheel.index()];
        }
    }

    /// From now on the battery has this voltage; `None` for its own.
    pub fn set_battery_v(&mut self, volts: Option<f64>) {
        self.battery.force_v(volts);
    }

    /// Whether something draws a large current from the battery.
    pub fn set_battery_sag(&mut self, sags: bool) {
        self.battery.set_sag(sags);
    }

    /// An axis has this error from now on, until errors are cleared.
    pub fn set_error(&mut self, axis: usize, error: u32) {
        self.axes[axis].error = error;
        self.axes[axis].state = IDLE;
    }

    fn handle_line(&mut self, now: Duration, line: &str) {
        let line = line.split(';').next().unwrap_or_default();
        let (line, has_sum) = match line.rsplit_once('*') {
            None => (line, false),
            Some((line, given)) => {
                if given.trim().parse() != Ok(sum(line)) {
                    return;
                }
                (line, true)
            }
        };
        for answer in self.answers(now, line.trim()) {
            let sum = match has_sum {
                true => format!("*{}", sum(&answer)),
                false => String::new(),
            };
            self.outputs
                .push_back(format!("{answer}{sum}\r\n").into_bytes());
        }
    }

    fn answers(&mut self, now: Duration, line: &str) -> Vec<String> {
        let words: Vec<_> = line.split_whitespace().collect();
        let one = |answer: String| vec![answer];
        match words[..] {
            ["i"] => [
                "Hardware version: 3.6-56V",
                "Firmware version: 0.5.6",
                "Serial number: 5A5A5A",
            ]
            .map(str::to_owned)
            .into(),
            ["sc"] => {
                for axis in &mut self.axes {
                    axis.error = 0;
                }
                Vec::new()
            }
            ["f" | "u" | "v", number, ..] if !matches!(number, "0" | "1") => {
                one(format!("invalid motor {number}"))
            }
            ["f", number] => {
                let reading = self.axes[index(number)].reading;
                let turns = reading.pulses as f64 / PULSES_PER_TURN;
                let turns_s = f64::from(reading.speed_qpps) / PULSES_PER_TURN;
                one(format!("{turns:.6} {turns_s:.6}"))
            }
            ["u", number] => {
                self.axes[index(number)].feed(now);
                Vec::new()
            }
            ["v", number, velocity, ..] => {
                match velocity.parse().ok().filter(|it: &f64| it.is_finite()) {
                    Some(velocity) => {
                        let axis = &mut self.axes[index(number)];
                        axis.velocity = velocity;
                        axis.feed(now);
                        Vec::new()
                    }
                    None => one("invalid command format".to_owned()),
                }
            }
            ["r", property] => one(self.property(property)),
            ["w", property, value] => match self.set(now, property, value) {
                Some(()) => Vec::new(),
                None => one("invalid property".to_owned()),
            },
            ["p" | "q" | "c" | "t" | "sr" | "ss" | "se", ..] => Vec::new(),
            _ => one("unknown command".to_owned()),
        }
    }

    fn property(&self, property: &str) -> String {
        // Nine characters of a value.
        let cut = |value: String| value.chars().take(9).collect();
        if property == "vbus_voltage" {
            return cut(format!("{:.6}", self.battery.volts()));
        }
        let axis = property
            .strip_prefix("axis")
            .and_then(|it| it.split_once('.'));
        match axis {
            Some((number @ ("0" | "1"), "error")) => {
                cut(self.axes[index(number)].error.to_string())
            }
            Some((number @ ("0" | "1"), "current_state")) => {
                cut(self.axes[index(number)].state.to_string())
            }
            _ => "invalid property".to_owned(),
        }
    }

    fn set(&mut self, now: Duration, property: &str, value: &str) -> Option<()> {
        let (number, name) = property.strip_prefix("axis")?.split_once('.')?;
        let errors = self.axes[0].error | self.axes[1].error;
        let axis = match number {
            "0" | "1" => &mut self.axes[index(number)],
            _ => return None,
        };
        match name {
            "requested_state" => {
                axis.error &= !INVALID_STATE;
                let is_able = errors & !INVALID_STATE == 0 && self.variant == Variant::Calibrated;
                match value {
                    "8" if is_able => {
                        axis.state = CLOSED_LOOP;
                        axis.feed(now);
                    }
                    "1" => axis.state = IDLE,
                    // Nor does it turn the motor to calibrate it.
                    _ => {
                        axis.state = IDLE;
                        axis.error |= INVALID_STATE;
                    }
                }
            }
            "config.watchdog_timeout" => {
                let seconds = value.parse().ok();
                axis.watchdog_s = seconds.filter(|it| (0.0..1e6).contains(it))?;
            }
            "config.enable_watchdog" => {
                axis.has_watchdog = value == "1";
            }
            _ => return None,
        }
        Some(())
    }
}

impl Axis {
    fn feed(&mut self, now: Duration) {
        self.expires = now + Duration::from_secs_f64(self.watchdog_s);
    }

    /// When the watchdog expires.
    fn due(&self) -> Option<Duration> {
        let watches = self.has_watchdog && self.error & WATCHDOG_EXPIRED == 0;
        watches.then_some(self.expires)
    }
}

fn index(number: &str) -> usize {
    usize::from(number == "1")
}

fn sum(text: &str) -> u8 {
    text.bytes().fold(0, |sum, byte| sum ^ byte)
}
