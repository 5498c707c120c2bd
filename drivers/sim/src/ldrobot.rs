//! A simulated laser scanner of LDROBOT: time in, packets of 12 points out. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. At
//! [`Ldrobot::next_packet`], call [`Ldrobot::measure`], which asks for the distance of each point at
//! its own time and angle; then drain [`Ldrobot::poll_output`].
//!
//! It follows the public description of the packets and measurements of a real LD06: 0.5 s after it
//! was switched on it sends, and two seconds after that the motor has its speed. Distances are up to
//! 15 mm off, and about one point in 3000 is a ghost: a weak echo a few centimetres away.

mod model;
mod packet;
#[cfg(test)]
mod tests;
mod twin;

use std::collections::VecDeque;
use std::time::Duration;

pub use self::model::Model;
use self::model::Motor;
pub use self::packet::{POINTS, Packet, command, packet};
pub use self::twin::{DEVICE, Options};
use crate::scanner::{measured_mm, seen_m};

/// How often a point is a ghost, and what it looks like.
const GHOST_ONE_IN: u32 = 3_000;
const GHOST_MM: std::ops::RangeInclusive<u16> = 18..=79;
const GHOST_STRENGTH: std::ops::RangeInclusive<u8> = 38..=80;
/// The strength of the echo of a white wall.
const STRENGTH: u8 = 200;
/// The time stamp wraps here, in ms.
const STAMP_END_MS: u128 = 30_000;
/// Older packets than this are not made after a pause of the simulation: the world has forgotten
/// where the robot was.
const MEMORY: Duration = Duration::from_millis(500);
/// A laser scanner.
#[derive(Clone, Debug)]
pub struct Ldrobot {
    model: Model,
    /// `None` while the motor is stopped: nothing is sent.
    motor: Option<Motor>,
    /// How many packets were made since the motor started.
    packets: u32,
    /// How far the last point was behind the head.
    behind_deg: f64,
    /// The beginning of a command.
    input: Vec<u8>,
    outputs: VecDeque<Vec<u8>>,
}

impl Ldrobot {
    /// Creates a scanner that was just switched on.
    #[must_use]
    pub fn new(model: Model, now: Duration) -> Self {
        Self {
            model,
            motor: Some(Motor::starts(model.usual_hz(), now)),
            packets: 0,
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

    /// Bytes from the host. Only an LD14P has a wire for them.
    pub fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        if self.model != Model::Ld14p {
            return;
        }
        self.input.extend_from_slice(bytes);
        while self.input.len() >= packet::COMMAND {
            let code = packet::code_of(&self.input[..packet::COMMAND]);
            let used = if code.is_some() { packet::COMMAND } else { 1 };
            let command: Vec<u8> = self.input.drain(..used).collect();
            match code {
                Some((0xA0, _)) if self.motor.is_none() => {
                    self.turn(Motor::starts(self.model.usual_hz(), now));
                }
                Some((0xA1, _)) => self.motor = None,
                Some((0xA2, deg_s)) if (720..=2_880).contains(&deg_s) => {
                    let from_deg = self.turned_deg(now);
                    self.turn(Motor::continues(f64::from(deg_s) / 360.0, from_deg, now));
                }
                _ => {}
            }
            if code.is_some() {
                // The maker does not describe the answer; some units send the command back.
                self.outputs.push_back(command);
            }
        }
    }

    fn turn(&mut self, motor: Motor) {
        self.motor = Some(motor);
        self.packets = 0;
    }

    /// When the next packet is complete; `None` while the motor is stopped.
    #[must_use]
    pub fn next_packet(&self) -> Option<Duration> {
        let motor = self.motor.as_ref()?;
        Some(motor.sends_from() + self.point_time(self.packets + 1, 0))
    }

    /// Makes all packets up to now. `distance_m` gives the distance in metres of what the scanner sees
    /// at a time, in a direction in degrees clockwise from its front; `None` without an echo.
    pub fn measure(
        &mut self,
        now: Duration,
        random: &mut fastrand::Rng,
        mut distance_m: impl FnMut(Duration, f64) -> Option<f64>,
    ) {
        while let Some(due) = self.next_packet().filter(|due| *due <= now) {
            if now - due <= MEMORY {
                let packet = self.one(random, &mut distance_m);
                self.outputs.push_back(packet);
            }
            self.packets += 1;
        }
    }

    /// How far the head has turned from its front at a time, in degrees.
    #[must_use]
    pub fn turned_deg(&self, time: Duration) -> f64 {
        self.motor
            .as_ref()
            .map_or(0.0, |motor| motor.turned_deg(time))
    }

    /// The next bytes for the host.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }

    /// The time from the first point to this point of a packet.
    fn point_time(&self, packet: u32, point: u32) -> Duration {
        let points = f64::from(packet) * POINTS as f64 + f64::from(point);
        Duration::from_secs_f64(points / self.model.rate_hz())
    }

    fn one(
        &mut self,
        random: &mut fastrand::Rng,
        distance_m: &mut impl FnMut(Duration, f64) -> Option<f64>,
    ) -> Vec<u8> {
        let Some(motor) = self.motor else {
            return Vec::new();
        };
        let time = |point: u32| motor.sends_from() + self.point_time(self.packets, point);
        let last = time(POINTS as u32 - 1);
        let hundredths = |time| ((motor.turned_deg(time) * 100.0).round() as u64 % 36_000) as u16;
        let mut made = Packet {
            speed_deg_s: motor.speed_deg_s(last).round() as u16,
            first: hundredths(time(0)),
            last: hundredths(last),
            points: [(0, 0); POINTS],
            stamp_ms: (last.as_millis() % STAMP_END_MS) as u16,
        };
        let times: [Duration; POINTS] = std::array::from_fn(|point| time(point as u32));
        for (point, time) in made.points.iter_mut().zip(times) {
            let head_deg = motor.turned_deg(time);
            let (shift, at) = (|mm| self.model.behind_deg(mm), |deg| distance_m(time, deg));
            let seen_m = seen_m(&mut self.behind_deg, head_deg, shift, at);
            *point = self.reported(seen_m, random);
        }
        packet(&made).to_vec()
    }

    /// The distance in mm and the strength of its echo, as reported.
    fn reported(&self, seen_m: Option<f64>, random: &mut fastrand::Rng) -> (u16, u8) {
        if self.model.has_ghosts() && random.u32(..GHOST_ONE_IN) == 0 {
            return (random.u16(GHOST_MM), random.u8(GHOST_STRENGTH));
        }
        let mm = measured_mm(seen_m, self.model.range_mm(), random);
        mm.map_or((0, 0), |mm| (mm.round().max(1.0) as u16, STRENGTH))
    }
}
