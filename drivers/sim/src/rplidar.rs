//! A simulated RPLIDAR of Slamtec: time and requests in, answers and points out. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. At
//! [`Rplidar::next_packet`], call [`Rplidar::measure`], which asks for the distance of each point at
//! its own time and angle; then drain [`Rplidar::poll_output`].
//!
//! It follows the public description of the protocol, and the answers of a real A1. It answers
//! nothing that it does not know or that is damaged. A request ends the scan. A scan has no points
//! until the motor has its speed, half a second after its start. Distances are up to 15 mm off; those
//! of models that triangulate are measured sideways.

mod model;
mod packet;
#[cfg(test)]
mod tests;
mod twin;

use std::collections::VecDeque;
use std::time::Duration;

pub use self::model::Model;
use self::model::{Mode, Starter};
pub use self::packet::{Format, Sample, answer, capsule, node, stream};
pub use self::twin::{DEVICE, Options};
use crate::scanner::{measured_mm, seen_m};

/// The motor gets up to its speed in this time.
const SPINS_UP: Duration = Duration::from_millis(500);
/// After a restart, it is deaf for this time, and in its middle sends a text.
const RESTARTS: Duration = Duration::from_millis(40);
const TEXT: &[u8] = b"RP LIDAR System.\r\nFirmware Ver 1.29 - rtm, HW Ver 7\r\nModel: 18\r\n";
/// Older points than this are not measured after a pause of the simulation: the world has forgotten
/// where the robot was.
const MEMORY: Duration = Duration::from_millis(500);
const USUAL_PWM: u16 = 660;
const USUAL_RPM: u16 = 600;
/// What it says after it was blocked: an error, and its code.
const BLOCKED_HEALTH: [u8; 3] = [2, 4, 0];
const SERIAL: [u8; 16] = *b"\x92\xd8\xed\x93\xc0\xea\x98\xc9\xa5\xe6\x98\xf2\x07\x06\x46\x69";

/// A laser scanner.
#[derive(Clone, Debug)]
pub struct Rplidar {
    model: Model,
    motor: Option<Motor>,
    scan: Option<Scan>,
    is_blocked: bool,
    /// It has stopped to protect itself.
    is_protected: bool,
    restarts: Option<Duration>,
    /// How far the last point was behind the head.
    behind_deg: f64,
    /// The beginning of a request.
    input: Vec<u8>,
    outputs: VecDeque<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
struct Motor {
    hz: f64,
    since: Duration,
}

/// A scan that was started.
#[derive(Clone, Debug)]
struct Scan {
    mode: Mode,
    since: Duration,
    /// How many points were measured.
    count: u32,
    /// Those that are not sent yet.
    samples: Vec<Sample>,
    is_first: bool,
    /// The turn of the last node.
    turn: Option<f64>,
}

impl Rplidar {
    /// Creates a scanner that was just switched on.
    #[must_use]
    pub fn new(model: Model, now: Duration) -> Self {
        let starts = model.starter() == Starter::Power;
        Self {
            model,
            motor: starts.then_some(Motor {
                hz: model.usual_hz(),
                since: now,
            }),
            scan: None,
            is_blocked: false,
            is_protected: false,
            restarts: None,
            behind_deg: 0.0,
            input: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    /// The same device after a power cycle.
    #[must_use]
    pub fn restarted(&self, now: Duration) -> Self {
        Self::new(self.model, now)
    }

    /// Blocks the motor or releases it. A scanner protects itself until it is reset.
    pub fn block(&mut self, is_blocked: bool) {
        self.is_blocked = is_blocked;
        if is_blocked {
            self.is_protected = true;
            self.scan = None;
        }
    }

    /// Bytes from the host.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        if self.restarts.is_some() {
            return;
        }
        self.input.extend_from_slice(bytes);
        while let Some(&first) = self.input.first() {
            let length = match (first, self.input.get(1), self.input.get(2)) {
                (0xA5, Some(0..0x80), _) => 2,
                (0xA5, Some(_), Some(length)) => usize::from(*length) + 4,
                (0xA5, ..) => return,
                _ => 1,
            };
            if self.input.len() < length {
                return;
            }
            let request: Vec<u8> = self.input.drain(..length).collect();
            match &*request {
                [_, command] => self.handle_request(now, *command, &[]),
                [head @ .., sum] if head.iter().fold(0, |sum, byte| sum ^ byte) == *sum => {
                    if let [_, command, _, data @ ..] = head {
                        self.handle_request(now, *command, data);
                    }
                }
                _ => {}
            }
        }
    }

    fn handle_request(&mut self, now: Duration, command: u8, data: &[u8]) {
        let number = match data {
            [low, high, ..] => u16::from_le_bytes([*low, *high]),
            _ => 0,
        };
        match command {
            // The speed of the motor may change while it scans.
            0xF0 if self.model.starter() == Starter::Pwm => self.turn(now, number, USUAL_PWM),
            0xA8 if self.model.starter() == Starter::Rpm => self.turn(now, number, USUAL_RPM),
            _ => {
                self.scan = None;
                self.handle_question(now, command, data);
            }
        }
    }

    fn handle_question(&mut self, now: Duration, command: u8, data: &[u8]) {
        let modes = self.model.modes();
        let us = |mode: usize| (modes[mode].sample_us.round() as u16).to_le_bytes();
        match (command, data) {
            (0x20 | 0x21, _) => self.start(now, Some(modes[0])),
            (0x25, _) if self.model.starter() == Starter::Scan => self.motor = None,
            (0x40, _) => {
                self.is_protected = self.is_blocked;
                self.restarts = Some(now + RESTARTS);
            }
            (0x50, _) => {
                let info = [&self.model.identity()[..], &[7], &SERIAL].concat();
                self.outputs.push_back(answer(0x04, &info));
            }
            (0x52, _) => {
                let health = if self.is_protected {
                    BLOCKED_HEALTH
                } else {
                    [0; 3]
                };
                self.outputs.push_back(answer(0x06, &health));
            }
            (0x59, _) => self
                .outputs
                .push_back(answer(0x15, &[us(0), us(1)].concat())),
            (0x82, [mode, ..]) => {
                let mode = modes.get(usize::from(*mode)).copied();
                // Mode 0 is the old express mode, where there is one.
                let old = modes.iter().find(|mode| mode.format == Format::Express);
                let is_old = mode.is_some_and(|mode| mode.format == Format::Nodes);
                self.start(now, if is_old { old.copied() } else { mode });
            }
            (0x84, [setting, 0, 0, 0]) => self.configure(*setting, 0),
            (0x84, [setting, 0, 0, 0, low, high]) => {
                self.configure(*setting, u16::from_le_bytes([*low, *high]));
            }
            (0xFF, _) if self.model.starter() == Starter::Pwm => {
                self.outputs.push_back(answer(0xFF, &[1, 0, 0, 0]));
            }
            _ => {}
        }
    }

    /// Answers a question about the configuration.
    fn configure(&mut self, setting: u8, number: u16) {
        let modes = self.model.modes();
        let mode = modes.get(usize::from(number));
        let fixed = |value: f64| ((value * 256.0) as u32).to_le_bytes().to_vec();
        let value = match (setting, mode) {
            (0x01, _) => [USUAL_RPM.to_le_bytes(), USUAL_PWM.to_le_bytes()].concat(),
            (0x70, _) => (modes.len() as u16).to_le_bytes().to_vec(),
            (0x7C, _) => self.model.typical().to_le_bytes().to_vec(),
            (0x71, Some(mode)) => fixed(mode.sample_us),
            (0x74, Some(_)) => fixed(self.model.range_mm().1 / 1_000.0),
            (0x75, Some(mode)) => vec![mode.format as u8],
            (0x7F, Some(mode)) => [mode.name.as_bytes(), &[0]].concat(),
            _ => Vec::new(),
        };
        let echo = [setting, 0, 0, 0];
        self.outputs
            .push_back(answer(0x20, &[&echo[..], &value].concat()));
    }

    fn turn(&mut self, now: Duration, number: u16, usual: u16) {
        let hz = self.model.usual_hz() * f64::from(number) / f64::from(usual);
        self.motor = (number > 0).then_some(Motor { hz, since: now });
        if let Some(scan) = &mut self.scan {
            *scan = Scan::new(scan.mode, now);
        }
    }

    fn start(&mut self, now: Duration, mode: Option<Mode>) {
        let Some(mode) = mode.filter(|_| !self.is_protected) else {
            return;
        };
        self.outputs.push_back(stream(mode.format));
        if self.model.starter() == Starter::Scan && self.motor.is_none() {
            self.turn(now, 1, 1);
        }
        self.scan = Some(Scan::new(mode, now));
    }

    /// When it next sends something.
    #[must_use]
    pub fn next_packet(&self) -> Option<Duration> {
        if let Some(until) = self.restarts {
            return Some(until);
        }
        let (scan, motor) = (self.scan.as_ref()?, self.motor?);
        Some(scan.time(motor, scan.missing()))
    }

    /// Sends everything up to now. `distance_m` gives the distance in metres of what the scanner sees
    /// at a time, in a direction in degrees clockwise from its front; `None` without an echo.
    pub fn measure(
        &mut self,
        now: Duration,
        random: &mut fastrand::Rng,
        mut distance_m: impl FnMut(Duration, f64) -> Option<f64>,
    ) {
        while let Some(due) = self.next_packet().filter(|due| *due <= now) {
            if self.restarts.take().is_some() {
                if self.model.looks_sideways() {
                    self.outputs.push_back(TEXT.to_vec());
                }
                continue;
            }
            let (Some(mut scan), Some(motor)) = (self.scan.take(), self.motor) else {
                return;
            };
            if now - due > MEMORY {
                scan.count += scan.missing();
                scan.samples.clear();
                scan.is_first = true;
            } else {
                for _ in 0..scan.missing() {
                    let time = scan.time(motor, 0);
                    let (head_deg, format) = (self.turned_deg(time), scan.mode.format);
                    let seen = |angle_deg| distance_m(time, angle_deg);
                    let sample = self.sample(head_deg, format, random, seen);
                    scan.samples.push(sample);
                    scan.count += 1;
                }
                self.outputs.push_back(scan.packet());
            }
            self.scan = Some(scan);
        }
    }

    /// How far the head has turned from its front at a time, in degrees.
    #[must_use]
    pub fn turned_deg(&self, time: Duration) -> f64 {
        self.motor.map_or(0.0, |motor| {
            360.0 * motor.hz * time.saturating_sub(motor.since).as_secs_f64()
        })
    }

    /// The next bytes for the host.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }

    /// Measures a point. A triangulating scanner looks sideways, the more so the farther it sees.
    fn sample(
        &mut self,
        head_deg: f64,
        format: Format,
        random: &mut fastrand::Rng,
        at: impl FnMut(f64) -> Option<f64>,
    ) -> Sample {
        let shift = |mm| match self.model.looks_sideways() {
            true => format.behind_deg(behind_deg(mm)),
            false => 0.0,
        };
        let seen_m = seen_m(&mut self.behind_deg, head_deg, shift, at);
        let mm = measured_mm(seen_m, self.model.range_mm(), random).unwrap_or(0.0);
        Sample {
            head_deg,
            behind_deg: self.behind_deg,
            mm,
        }
    }
}

impl Scan {
    fn new(mode: Mode, since: Duration) -> Self {
        Self {
            mode,
            since,
            count: 0,
            samples: Vec::new(),
            is_first: true,
            turn: None,
        }
    }

    /// The points to measure before something can be sent: a capsule of differences also needs the
    /// first point of the next one.
    fn missing(&self) -> u32 {
        let ahead = usize::from(self.mode.format == Format::Ultra);
        let wanted = self.mode.format.points() + ahead;
        wanted.saturating_sub(self.samples.len()) as u32
    }

    /// When the point behind so many others is measured.
    fn time(&self, motor: Motor, behind: u32) -> Duration {
        let begin = self.since.max(motor.since + SPINS_UP);
        let count = f64::from(self.count) + f64::from(behind);
        begin + Duration::from_secs_f64(count * self.mode.sample_us / 1e6)
    }

    /// The bytes of the oldest points.
    fn packet(&mut self) -> Vec<u8> {
        let format = self.mode.format;
        let next = self.samples.get(format.points()).copied();
        let samples: Vec<_> = self.samples.drain(..format.points()).collect();
        if format != Format::Nodes {
            let is_first = std::mem::take(&mut self.is_first);
            return capsule(format, &samples, next.unwrap_or_default(), is_first);
        }
        let mut bytes = Vec::new();
        for sample in samples {
            let turn = ((sample.head_deg - sample.behind_deg) / 360.0).floor();
            // Its angle may jump back.
            let starts = self.turn.is_some_and(|last| turn > last);
            bytes.extend(node(sample, starts));
            self.turn = Some(self.turn.map_or(turn, |last| turn.max(last)));
        }
        bytes
    }
}

/// How far what is seen at a distance is behind the head, as the SDK of the maker has it.
fn behind_deg(mm: f64) -> f64 {
    if mm < 50.0 {
        return 7.5;
    }
    let near = (98_361.0 / (4.0 * mm)).floor();
    let radians = (64.0 * near + (near.powi(3) / 98_304.0).floor()) / 65_536.0;
    8.0 - radians.to_degrees()
}
