//! A simulated laser scanner of YDLIDAR: time and requests in, answers and packets out. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. At
//! [`Ydlidar::next_packet`], call [`Ydlidar::measure`], which asks for the distance of each point at
//! its own time and angle; then drain [`Ydlidar::poll_output`].
//!
//! It follows the public description of the protocol, and the answer of a real X4. It answers nothing
//! that it does not know. Questions do not end a scan. A packet is sent as fast as the line allows
//! after its last point. The first one of a turn has one point. Distances are up to 15 mm off; those
//! of models that triangulate are measured sideways.

mod model;
mod packet;
#[cfg(test)]
mod tests;
mod twin;

use std::collections::VecDeque;
use std::time::Duration;

pub use self::model::Model;
pub use self::packet::{Form, packet};
pub use self::twin::{DEVICE, Options};
use crate::rplidar::answer;
use crate::scanner::{measured_mm, seen_m};

/// The motor gets up to its speed in this time.
const SPINS_UP: Duration = Duration::from_millis(500);
/// The most points of a packet.
const MAX_POINTS: u32 = 40;
/// Older points than this are not measured after a pause of the simulation: the world has forgotten
/// where the robot was.
const MEMORY: Duration = Duration::from_millis(500);
/// The digits of its serial number.
const SERIAL: [u8; 16] = [2, 0, 1, 8, 1, 0, 2, 0, 0, 0, 0, 0, 4, 0, 1, 9];
/// What it says after it was blocked: an error, and its code.
const BLOCKED_HEALTH: [u8; 3] = [2, 4, 0];

/// A laser scanner.
#[derive(Clone, Debug)]
pub struct Ydlidar {
    model: Model,
    scan: Option<Scan>,
    is_blocked: bool,
    /// How far the last point was behind the head.
    behind_deg: f64,
    /// The beginning of a request.
    input: Vec<u8>,
    outputs: VecDeque<Vec<u8>>,
}

/// A scan that was started, with its motor.
#[derive(Clone, Copy, Debug)]
struct Scan {
    model: Model,
    since: Duration,
    /// How many points were sent.
    count: u32,
    /// Until then, the line is busy.
    busy: Duration,
}

impl Ydlidar {
    /// Creates a scanner that was just switched on.
    #[must_use]
    pub fn new(model: Model, now: Duration) -> Self {
        let mut scanner = Self {
            model,
            scan: None,
            is_blocked: false,
            behind_deg: 0.0,
            input: Vec::new(),
            outputs: VecDeque::new(),
        };
        if !model.takes_commands() {
            scanner.outputs.push_back(scanner.info());
            scanner.scan = Some(Scan::new(model, now));
        }
        scanner
    }

    /// The same device after a power cycle.
    #[must_use]
    pub fn restarted(&self, now: Duration) -> Self {
        Self::new(self.model, now)
    }

    /// Blocks the motor or releases it.
    pub fn block(&mut self, is_blocked: bool) {
        self.is_blocked = is_blocked;
    }

    fn info(&self) -> Vec<u8> {
        answer(0x04, &[&self.model.identity()[..], &SERIAL].concat())
    }

    /// Bytes from the host. Some models have no wire for them.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        if !self.model.takes_commands() {
            return;
        }
        self.input.extend_from_slice(bytes);
        while let [first, rest @ ..] = &self.input[..] {
            let used = match (*first, rest) {
                (0xA5, []) => return,
                (0xA5, [command, ..]) => {
                    self.handle_command(now, *command);
                    2
                }
                _ => 1,
            };
            self.input.drain(..used);
        }
    }

    fn handle_command(&mut self, now: Duration, command: u8) {
        match command {
            0x00 | 0x65 => self.scan = None,
            0x60 | 0x61 => {
                self.outputs
                    .push_back(vec![0xA5, 0x5A, 5, 0, 0, 0x40, 0x81]);
                if self.model.is_new() {
                    self.outputs.push_back(self.info());
                }
                self.scan = Some(Scan::new(self.model, now));
            }
            0x90 => self.outputs.push_back(self.info()),
            0x91 | 0x92 => {
                let health = if self.is_blocked {
                    BLOCKED_HEALTH
                } else {
                    [0; 3]
                };
                self.outputs.push_back(answer(0x06, &health));
            }
            _ => {}
        }
    }

    /// When the next packet is sent; `None` while it does not scan.
    #[must_use]
    pub fn next_packet(&self) -> Option<Duration> {
        self.scan.map(Scan::sent)
    }

    /// Makes all packets up to now. `distance_m` gives the distance in metres of what the scanner sees
    /// at a time, in a direction in degrees clockwise from its front; `None` without an echo.
    pub fn measure(
        &mut self,
        now: Duration,
        random: &mut fastrand::Rng,
        mut distance_m: impl FnMut(Duration, f64) -> Option<f64>,
    ) {
        while let Some(scan) = self.scan.filter(|scan| scan.sent() <= now) {
            let due = scan.sent();
            if now - due <= MEMORY && !self.is_blocked {
                let points = scan.count..scan.end();
                let points: Vec<_> = points
                    .map(|point| self.point(scan, point, random, &mut distance_m))
                    .collect();
                self.send(scan, &points);
            }
            self.scan = Some(Scan {
                count: scan.end(),
                busy: due,
                ..scan
            });
        }
    }

    /// Measures a point: its distance in mm, 0 without an echo.
    fn point(
        &mut self,
        scan: Scan,
        point: u32,
        random: &mut fastrand::Rng,
        distance_m: &mut impl FnMut(Duration, f64) -> Option<f64>,
    ) -> f64 {
        let (time, head_deg) = (scan.time(point), scan.head_deg(point));
        let (shift, at) = (|mm| self.model.behind_deg(mm), |deg| distance_m(time, deg));
        let seen_m = seen_m(&mut self.behind_deg, head_deg, shift, at);
        measured_mm(seen_m, self.model.range_mm(), random).unwrap_or(0.0)
    }

    fn send(&mut self, scan: Scan, points: &[f64]) {
        let degrees = [scan.count, scan.end() - 1].map(|point| scan.head_deg(point));
        let speed = match self.model.tells_speed() {
            true => (self.model.usual_hz() * 10.0) as u8,
            false => 0,
        };
        let is_first = scan.starts_turn(scan.count);
        let kind = if is_first { 1 | (speed << 1) } else { 0 };
        self.outputs
            .push_back(packet(self.model.form(), kind, degrees, points));
        if is_first && self.model.is_new() {
            let ms = scan.time(scan.count).as_millis() as u32;
            self.outputs.push_back(packet::time(ms));
        }
    }

    /// How far the head has turned from its front at a time, in degrees.
    #[must_use]
    pub fn turned_deg(&self, time: Duration) -> f64 {
        self.scan.map_or(0.0, |scan| scan.turned_deg(time))
    }

    /// The next bytes for the host.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }
}

impl Scan {
    fn new(model: Model, since: Duration) -> Self {
        Self {
            model,
            since,
            count: 0,
            busy: Duration::ZERO,
        }
    }

    fn time(self, point: u32) -> Duration {
        let measured = Duration::from_secs_f64(f64::from(point) / self.model.rate_hz());
        self.since + SPINS_UP + measured
    }

    fn turned_deg(self, time: Duration) -> f64 {
        360.0 * self.model.usual_hz() * time.saturating_sub(self.since).as_secs_f64()
    }

    fn head_deg(self, point: u32) -> f64 {
        self.turned_deg(self.time(point))
    }

    /// Whether this point is the first one of a turn.
    fn starts_turn(self, point: u32) -> bool {
        let turn = |point| (self.head_deg(point) / 360.0).floor();
        point == 0 || turn(point) > turn(point - 1)
    }

    /// The first point behind the next packet.
    fn end(self) -> u32 {
        if self.starts_turn(self.count) {
            return self.count + 1;
        }
        let all = self.count + 1..self.count + MAX_POINTS;
        let next = all.clone().find(|point| self.starts_turn(*point));
        next.unwrap_or(all.end)
    }

    /// When the next packet is sent.
    fn sent(self) -> Duration {
        let (head, point) = match self.model.form() {
            Form::Plain | Form::Whole => (10, 2),
            Form::Strength => (10, 3),
        };
        let bits = f64::from(head + point * (self.end() - self.count)) * 10.0;
        let line = Duration::from_secs_f64(bits / self.model.baud());
        self.time(self.end() - 1).max(self.busy) + line
    }
}
