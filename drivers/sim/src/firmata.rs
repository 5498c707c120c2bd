//! A simulated Arduino with StandardFirmata 2.5: bytes in, bytes out. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. Call
//! [`Firmata::advance`] before any other call with a time; then drain [`Firmata::poll_output`].
//! [`Firmata::connect`] and [`Firmata::set_volts`] say what is at its inputs.
//!
//! It follows the sources of the program, with its peculiarities: at the start all pins without an analog
//! input are outputs, what arrives while it shows its version waits in 63 bytes, a sysex takes all bytes
//! until its end, a servo turns to the middle when it gets its pin, and nothing stops when the host is
//! gone.

mod model;
mod parser;
#[cfg(test)]
mod tests;
mod twin;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub use self::model::Model;
use self::parser::{Command, Parser};
pub use self::twin::{DEVICE, Options};
use crate::battery::Battery;

/// How long the boot loader waits for a new program.
const BOOT: Duration = Duration::from_millis(1_600);
/// How long the program then shows its version with its light.
const BLINK: Duration = Duration::from_millis(2_100);
/// The bytes for which the board has room meanwhile.
const ROOM: usize = 63;

/// The eight pins of a port are sent together.
const PORTS: usize = 16;
const CHANNELS: usize = 16;
/// The supply is the reference voltage.
const REFERENCE_V: f64 = 5.0;
/// The largest value of the converter.
const MAX_READING: f64 = 1023.0;
/// The longest time between two analog values.
const USUAL_INTERVAL: Duration = Duration::from_millis(19);

/// Smaller numbers for a servo are angles.
const MIN_PULSE_US: u16 = 544;
const MAX_PULSE_US: u16 = 2400;
const MIDDLE_US: u16 = 1500;

const INPUT: u8 = 0;
const OUTPUT: u8 = 1;
const ANALOG: u8 = 2;
const PWM: u8 = 3;
const SERVO: u8 = 4;
const I2C: u8 = 6;
const PULL_UP: u8 = 11;
/// The pins of the serial line.
const IGNORED: u8 = 0x7F;

const PROGRAM: &str = "StandardFirmata.ino";

/// A pin of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// How it is used, as a number of the protocol.
    pub mode: u8,
    /// What it was told last.
    pub state: u16,
    /// The pulse of a servo, in microseconds; 0 for none.
    pub pulse_us: u16,
    range_us: (u16, u16),
}

impl Pin {
    const fn with(mode: u8) -> Self {
        Self {
            mode,
            state: 0,
            pulse_us: 0,
            range_us: (MIN_PULSE_US, MAX_PULSE_US),
        }
    }

    fn is_input(self) -> bool {
        matches!(self.mode, INPUT | PULL_UP)
    }
}

/// A board.
#[derive(Clone, Debug)]
pub struct Firmata {
    model: Model,
    hears_from: Duration,
    starts_at: Duration,
    has_started: bool,
    /// What has arrived before the start.
    waiting: Vec<u8>,
    parser: Parser,
    pins: Vec<Pin>,
    /// Which ports and channels it sends, and which levels it has sent.
    ports: [bool; PORTS],
    sent: [u8; PORTS],
    channels: [bool; CHANNELS],
    interval: Duration,
    sampled: Duration,
    /// The levels that something outside gives to pins. At others nothing is connected.
    levels: BTreeMap<u8, bool>,
    volts: [f64; CHANNELS],
    outputs: VecDeque<Vec<u8>>,
    pub(crate) battery: Battery,
}

impl Firmata {
    /// Creates a board that was just switched on.
    #[must_use]
    pub fn new(model: Model, now: Duration) -> Self {
        let mut board = Self {
            model,
            hears_from: now + BOOT,
            starts_at: now + BOOT + BLINK,
            has_started: false,
            waiting: Vec::new(),
            parser: Parser::default(),
            pins: vec![Pin::with(IGNORED); model.pins().into()],
            ports: [false; PORTS],
            sent: [0; PORTS],
            channels: [false; CHANNELS],
            interval: USUAL_INTERVAL,
            sampled: now,
            levels: BTreeMap::new(),
            volts: [0.0; CHANNELS],
            outputs: VecDeque::new(),
            battery: Battery::default(),
        };
        board.reset();
        board
    }

    /// The same board after a restart. What is connected to it stays.
    #[must_use]
    pub fn restarted(&self, now: Duration) -> Self {
        Self {
            levels: self.levels.clone(),
            volts: self.volts,
            battery: self.battery.clone(),
            ..Self::new(self.model, now)
        }
    }

    /// Connects a pin to a level, or leaves it open.
    pub fn connect(&mut self, pin: u8, level: Option<bool>) {
        match level {
            Some(level) => self.levels.insert(pin, level),
            None => self.levels.remove(&pin),
        };
    }

    /// Sets the voltage at an analog input. Channels that do not exist are ignored.
    pub fn set_volts(&mut self, channel: u8, volts: f64) {
        if let Some(of_channel) = self.volts.get_mut(usize::from(channel)) {
            *of_channel = volts;
        }
    }

    /// Brings the board to a time.
    pub fn advance(&mut self, now: Duration) {
        if !self.has_started {
            if now < self.starts_at {
                return;
            }
            self.has_started = true;
            self.sampled = self.starts_at;
            self.send(vec![0xF9, 2, 5]);
            self.send_firmware();
            let waiting = std::mem::take(&mut self.waiting);
            self.obey(&waiting);
        }
        self.send_changes();
        if !self.channels.contains(&true) {
            self.sampled = now;
        }
        while self.sampled + self.interval <= now {
            self.sampled += self.interval;
            self.send_values();
        }
    }

    /// Bytes from the host.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        self.advance(now);
        if self.has_started {
            self.obey(bytes);
            self.send_changes();
        } else if now >= self.hears_from {
            let free = ROOM - self.waiting.len();
            self.waiting.extend(bytes.iter().take(free));
        }
    }

    /// The next bytes for the host.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }

    /// When it sends something without further input.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        if !self.has_started {
            return Some(self.starts_at);
        }
        let samples = self.channels.contains(&true);
        samples.then(|| self.sampled + self.interval)
    }

    /// Its pins, from number 0.
    #[must_use]
    pub fn pins(&self) -> &[Pin] {
        &self.pins
    }

    fn obey(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(command) = self.parser.push(*byte) {
                self.carry_out(&command);
            }
        }
    }

    fn carry_out(&mut self, command: &Command) {
        match command {
            Command::Version => self.send(vec![0xF9, 2, 5]),
            Command::Reset => self.reset(),
            Command::Mode(pin, mode) => self.set_mode(*pin, *mode),
            Command::Level(pin, level) => {
                if let Some(pin) = self.pins.get_mut(usize::from(*pin))
                    && pin.mode == OUTPUT
                {
                    pin.state = (*level).into();
                }
            }
            Command::Port(port, levels) => self.set_port(*port, *levels),
            Command::Value(pin, value) => self.set_value(*pin, *value),
            Command::ReportPort(port, is_on) => {
                self.ports[usize::from(*port)] = *is_on;
                if *is_on {
                    self.send_port(usize::from(*port));
                }
            }
            Command::ReportChannel(channel, is_on) => self.report_channel(*channel, *is_on),
            Command::Sysex(data) => self.handle_sysex(data),
        }
    }

    fn handle_sysex(&mut self, data: &[u8]) {
        match data {
            [0x79, ..] => self.send_firmware(),
            [0x6B, ..] => self.send_abilities(),
            [0x69, ..] => {
                let pins = 0..self.model.pins();
                let channels = pins.map(|pin| self.model.channel(pin).unwrap_or(0x7F));
                let answer = [0xF0, 0x6A].into_iter().chain(channels).chain([0xF7]);
                let answer = answer.collect();
                self.send(answer);
            }
            [0x6D, pin, ..] => self.send_state(*pin),
            [0x6F, pin, value @ ..] if !value.is_empty() => {
                let bits = value.iter().zip([0, 7, 14]);
                let value = bits.fold(0_u32, |sum, (byte, shift)| {
                    sum | (u32::from(*byte) << shift)
                });
                // It has 16 bits there.
                self.set_value(*pin, value as u16);
            }
            [0x70, pin, min_low, min_high, max_low, max_high, ..] => {
                let range = (
                    kept_limit(MIN_PULSE_US, join(*min_low, *min_high)),
                    kept_limit(MAX_PULSE_US, join(*max_low, *max_high)),
                );
                if self.model.is_digital(*pin) {
                    self.pins[usize::from(*pin)].pulse_us = 0;
                    self.attach(*pin, range);
                    self.set_mode(*pin, SERVO);
                }
            }
            [0x7A, low, high, ..] => {
                let ms = join(*low, *high).max(1);
                self.interval = Duration::from_millis(ms.into());
            }
            _ => {}
        }
    }

    /// All pins as at the start.
    fn reset(&mut self) {
        (self.ports, self.sent) = ([false; PORTS], [0; PORTS]);
        for number in 0..self.model.pins() {
            self.pins[usize::from(number)] = Pin::with(match self.model.channel(number) {
                Some(_) => ANALOG,
                None if self.model.is_digital(number) => OUTPUT,
                None => IGNORED,
            });
        }
        self.channels = [false; CHANNELS];
    }

    fn set_mode(&mut self, number: u8, mode: u8) {
        let channel = self.model.channel(number);
        let can = (
            self.model.is_digital(number),
            self.model.is_pwm(number),
            self.model.is_i2c(number),
        );
        let Some(pin) = self.pins.get_mut(usize::from(number)) else {
            return;
        };
        if pin.mode == IGNORED {
            return;
        }
        if mode != SERVO {
            pin.pulse_us = 0;
        }
        pin.state = 0;
        match (mode, can) {
            (ANALOG, _) if channel.is_some() => pin.mode = ANALOG,
            (INPUT | OUTPUT, (true, ..)) => pin.mode = mode,
            (PULL_UP, (true, ..)) => (pin.mode, pin.state) = (PULL_UP, 1),
            (PWM, (_, true, _)) => pin.mode = PWM,
            (I2C, (.., true)) => pin.mode = I2C,
            (SERVO, (true, ..)) => {
                pin.mode = SERVO;
                if pin.pulse_us == 0 {
                    self.attach(number, (MIN_PULSE_US, MAX_PULSE_US));
                }
            }
            (ANALOG | INPUT | OUTPUT | PULL_UP | PWM | I2C | SERVO, _) => {}
            _ => self.send_text(&[0x71], "Unknown pin mode"),
        }
        if let Some(channel) = channel {
            self.report_channel(channel, mode == ANALOG);
        }
    }

    /// The library has a place for each servo, and begins in the middle.
    fn attach(&mut self, number: u8, range_us: (u16, u16)) {
        let others = self.pins.iter().filter(|pin| pin.pulse_us > 0).count();
        if others >= self.model.servos() {
            return self.send_text(&[0x71], "Max servos attached");
        }
        let pin = &mut self.pins[usize::from(number)];
        pin.range_us = range_us;
        pin.pulse_us = MIDDLE_US;
    }

    fn set_port(&mut self, port: u8, levels: u8) {
        for bit in 0..8 {
            let number = usize::from(port) * 8 + bit;
            let level = levels & (1 << bit) != 0;
            match self.pins.get_mut(number) {
                Some(pin) if pin.mode == OUTPUT => pin.state = level.into(),
                // A level at an input is its resistor.
                Some(pin) if pin.mode == INPUT => pin.state = level.into(),
                _ => {}
            }
        }
    }

    fn set_value(&mut self, number: u8, value: u16) {
        let Some(pin) = self.pins.get_mut(usize::from(number)) else {
            return;
        };
        match pin.mode {
            PWM => pin.state = value,
            SERVO if pin.pulse_us > 0 => {
                pin.state = value;
                let (min_us, max_us) = pin.range_us;
                let us = match value {
                    0..MIN_PULSE_US => {
                        let way = i32::from(max_us) - i32::from(min_us);
                        i32::from(min_us) + way * i32::from(value.min(180)) / 180
                    }
                    us => i32::from(us).clamp(min_us.min(max_us).into(), max_us.into()),
                };
                // Within 14 bits.
                pin.pulse_us = us as u16;
            }
            _ => {}
        }
    }

    fn report_channel(&mut self, channel: u8, is_on: bool) {
        if usize::from(channel) >= self.model.channels() {
            return;
        }
        self.channels[usize::from(channel)] = is_on;
        if is_on {
            self.send_value(channel);
        }
    }

    fn send_values(&mut self) {
        for number in 0..self.model.pins() {
            let is_analog = self.pins[usize::from(number)].mode == ANALOG;
            let channel = self.model.channel(number).filter(|_| is_analog);
            if let Some(channel) = channel.filter(|it| self.channels[usize::from(*it)]) {
                self.send_value(channel);
            }
        }
    }

    fn send_value(&mut self, channel: u8) {
        let share = (self.volts[usize::from(channel)] / REFERENCE_V).clamp(0.0, 1.0);
        let [low, high] = halves((share * MAX_READING).round() as u16);
        self.send(vec![0xE0 | channel, low, high]);
    }

    fn send_changes(&mut self) {
        for port in 0..PORTS {
            if self.ports[port] && self.levels_of(port) != self.sent[port] {
                self.send_port(port);
            }
        }
    }

    fn send_port(&mut self, port: usize) {
        let levels = self.levels_of(port);
        self.sent[port] = levels;
        let [low, high] = halves(levels.into());
        // There are 16.
        self.send(vec![0x90 | port as u8, low, high]);
    }

    /// The levels of the inputs among eight pins.
    fn levels_of(&self, port: usize) -> u8 {
        let level = |bit: usize| {
            let number = port * 8 + bit;
            let pin = self.pins.get(number).filter(|pin| pin.is_input())?;
            let outside = u8::try_from(number)
                .ok()
                .and_then(|it| self.levels.get(&it));
            // Without a resistor an open pin has no certain level.
            Some(outside.copied().unwrap_or(pin.state == 1))
        };
        (0..8).fold(0, |levels, bit| {
            levels | (u8::from(level(bit) == Some(true)) << bit)
        })
    }

    fn send_firmware(&mut self) {
        self.send_text(&[0x79, 2, 5], PROGRAM);
    }

    fn send_abilities(&mut self) {
        let mut answer = vec![0xF0, 0x6C];
        for pin in 0..self.model.pins() {
            if self.model.is_digital(pin) {
                answer.extend([INPUT, 1, PULL_UP, 1, OUTPUT, 1]);
            }
            if self.model.channel(pin).is_some() {
                answer.extend([ANALOG, 10]);
            }
            if self.model.is_pwm(pin) {
                answer.extend([PWM, 8]);
            }
            if self.model.is_digital(pin) {
                answer.extend([SERVO, 14]);
            }
            if self.model.is_i2c(pin) {
                answer.extend([I2C, 1]);
            }
            answer.push(0x7F);
        }
        answer.push(0xF7);
        self.send(answer);
    }

    fn send_state(&mut self, number: u8) {
        let mut answer = vec![0xF0, 0x6E, number];
        if let Some(pin) = self.pins.get(usize::from(number)) {
            answer.extend([pin.mode, (pin.state & 0x7F) as u8]);
            if pin.state > 0x7F {
                answer.push((pin.state >> 7) as u8 & 0x7F);
            }
        }
        answer.push(0xF7);
        self.send(answer);
    }

    /// Each letter has two bytes.
    fn send_text(&mut self, head: &[u8], text: &str) {
        let letters: Vec<_> = text.bytes().flat_map(|letter| [letter, 0]).collect();
        self.send([&[0xF0][..], head, &letters, &[0xF7]].concat());
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.outputs.push_back(bytes);
    }
}

fn join(low: u8, high: u8) -> u16 {
    u16::from(low) | (u16::from(high) << 7)
}

/// The limit of a pulse as the servo library keeps it: its distance from the usual one in steps
/// of 4 us, in eight bits. What does not fit wraps.
fn kept_limit(usual_us: u16, us: u16) -> u16 {
    let steps = (i32::from(usual_us) - i32::from(us)) / 4;
    // Never negative: the usual ones are above 512.
    (i32::from(usual_us) - i32::from(steps as i8) * 4) as u16
}

fn halves(value: u16) -> [u8; 2] {
    [(value & 0x7F) as u8, (value >> 7) as u8 & 0x7F]
}
