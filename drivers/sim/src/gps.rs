//! A simulated GPS receiver that sends NMEA 0183: time in, sentences out. PURE.
//!
//! Time is a [`Duration`] since the start of the simulation and never decreases. While
//! [`Receiver::poll_epoch`] returns a time, pass the motion of the robot at that time to
//! [`Receiver::measure`]; then drain [`Receiver::poll_output`]. What the host sends is ignored.
//!
//! The receiver has no time in its first second, and no position in its first three: real ones need up
//! to a minute. Its clock starts on 1 June 2026 at 8:00 UTC.

mod model;
#[cfg(test)]
mod tests;
mod text;
mod twin;

use std::collections::VecDeque;
use std::time::Duration;

pub use self::model::Model;
pub use self::text::sentence;
use self::text::{angle, course, date, time};
pub use self::twin::{DEVICE, Options, Origin};
use crate::wheels::gaussian;

/// So long after it was switched on, it has the time, and a position.
const HAS_TIME: Duration = Duration::from_millis(1_500);
const HAS_POSITION: Duration = Duration::from_secs(3);
/// The world has forgotten where the robot was before.
const MEMORY: Duration = Duration::from_millis(500);
/// The time of the satellites at the start of the simulation.
const START_UNIX_S: u64 = 1_780_300_800;
/// The slow part of the error of a position changes in about this time.
const WALK_S: f64 = 60.0;
/// A slower receiver does not know where it goes.
const MIN_COURSE_M_S: f64 = 0.1;
const KNOT_M_S: f64 = 1_852.0 / 3_600.0;
/// The sea level at the origin above the ellipsoid, and the receiver above the sea level.
const SEPARATION_M: f64 = 39.6;
const ALTITUDE_M: f64 = 223.4;
/// The satellites of GPS and GLONASS that it uses.
const IN_USE: [&str; 2] = ["02,05,12,15,20,25,29,,,,,", "66,67,76,82,,,,,,,,"];
const SATELLITES: u32 = 11;

/// The motion of the robot, in the frame of the world.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Motion {
    /// The place: x and y.
    pub at_m: [f64; 2],
    /// The velocity in the directions of x and y.
    pub velocity_m_s: [f64; 2],
}

/// A receiver.
#[derive(Clone, Debug)]
pub struct Receiver {
    model: Model,
    origin: Origin,
    random: fastrand::Rng,
    /// 1, or 0 for a receiver without noise.
    noise: f64,
    /// The slow part of the error, to the north and to the east.
    walk_m: [f64; 2],
    started: Duration,
    next: Duration,
    start_unix_s: u64,
    is_covered: bool,
    outputs: VecDeque<Vec<u8>>,
}

impl Receiver {
    /// Creates a receiver that was just switched on.
    #[must_use]
    pub fn new(model: Model, origin: Origin, seed: u64, now: Duration) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let walk_m = [(); 2].map(|()| model.walk_m() * gaussian(&mut random));
        let mut receiver = Self {
            model,
            origin,
            random,
            noise: 1.0,
            walk_m,
            started: now,
            next: now,
            start_unix_s: START_UNIX_S,
            is_covered: false,
            outputs: VecDeque::new(),
        };
        receiver.restart(now);
        receiver
    }

    /// A power cycle.
    pub fn restart(&mut self, now: Duration) {
        self.outputs.clear();
        self.started = now;
        // Measurements are at whole seconds of the satellites, and their parts.
        let period = self.model.period();
        let passed = now.as_nanos() / period.as_nanos() + 1;
        self.next = period * u32::try_from(passed).unwrap_or(u32::MAX);
    }

    /// Turns noise off, so that positions are exact to the last digit.
    pub fn set_noise(&mut self, is_on: bool) {
        self.noise = f64::from(u8::from(is_on));
    }

    /// Sets the time of the satellites at the start of the simulation, in seconds since 1970.
    pub fn set_start(&mut self, unix_s: u64) {
        self.start_unix_s = unix_s;
    }

    /// Whether something is between it and the sky.
    pub fn set_covered(&mut self, is_covered: bool) {
        self.is_covered = is_covered;
    }

    /// The true latitude and longitude of a place in degrees.
    #[must_use]
    pub fn truth(&self, at_m: [f64; 2]) -> [f64; 2] {
        self.origin.moved(self.origin.turned(at_m))
    }

    /// The time of a measurement that is due.
    pub fn poll_epoch(&mut self, now: Duration) -> Option<Duration> {
        let period = self.model.period();
        while self.next + MEMORY < now {
            self.next += period;
        }
        let due = self.next;
        (due <= now).then(|| {
            self.next += period;
            due
        })
    }

    /// When the next measurement is due.
    #[must_use]
    pub fn next_epoch(&self) -> Duration {
        self.next
    }

    /// Measures, and tells it.
    pub fn measure(&mut self, now: Duration, motion: &Motion) {
        let age = now.saturating_sub(self.started);
        let unix = Duration::from_secs(self.start_unix_s) + now;
        let (time, date) = match age < HAS_TIME {
            true => (String::new(), String::new()),
            false => (time(unix, self.model.time_digits()), date(unix)),
        };
        let errors_m = self.errors_m();
        if age < HAS_POSITION || self.is_covered {
            return self.say_lost(&time, &date);
        }
        let [mut north_m, mut east_m] = self.origin.turned(motion.at_m);
        north_m += errors_m[0];
        east_m += errors_m[1];
        let altitude_m = ALTITUDE_M + errors_m[2];
        let [latitude_deg, longitude_deg] = self.origin.moved([north_m, east_m]);
        let digits = self.model.digits();
        let place = format!(
            "{},{}",
            angle(latitude_deg, 2, digits, ["N", "S"]),
            angle(longitude_deg, 3, digits, ["E", "W"])
        );
        let [north_m_s, east_m_s] = self.origin.turned(motion.velocity_m_s);
        let speed_m_s = north_m_s.hypot(east_m_s);
        let knots = speed_m_s / KNOT_M_S;
        let course = match speed_m_s < MIN_COURSE_M_S {
            true => String::new(),
            false => course(north_m_s, east_m_s),
        };
        let (quality, mode, hdop, station) = match self.model {
            Model::ZedF9p => (4, "R", 0.61, "1.0,0120"),
            Model::NeoM8 | Model::L76 => (1, "A", 0.92, ","),
        };
        let talker = self.model.talker();
        let status = if self.model.is_newer() { ",V" } else { "" };
        let rmc =
            format!("{talker}RMC,{time},A,{place},{knots:.3},{course},{date},,,{mode}{status}");
        let km_h = speed_m_s * 3.6;
        let vtg = format!("{talker}VTG,{course},T,,M,{knots:.3},N,{km_h:.3},K,{mode}");
        let gga = format!(
            "{talker}GGA,{time},{place},{quality},{SATELLITES:02},{hdop:.2},{altitude_m:.1},M,\
             {SEPARATION_M:.1},M,{station}"
        );
        let gsa = self.gsa(&format!("3,{{}},1.61,{hdop:.2},1.32"));
        let gsv = "GPGSV,1,1,03,02,45,120,42,05,60,210,44,12,30,300,39".to_owned();
        let gll = format!("{talker}GLL,{place},{time},A,{mode}");
        self.say(match self.model {
            Model::NeoM8 => [vec![rmc, vtg, gga], gsa, vec![gsv, gll]].concat(),
            Model::L76 => [vec![gga], gsa, vec![gsv, rmc, vtg]].concat(),
            Model::ZedF9p => {
                let gst = format!("{talker}GST,{time},8.0,,,,0.010,0.010,0.020");
                [vec![rmc, vtg, gga], gsa, vec![gsv, gll, gst]].concat()
            }
        });
    }

    /// The next sentence.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.outputs.pop_front()
    }

    /// It has no position, and perhaps no time.
    fn say_lost(&mut self, time: &str, date: &str) {
        let talker = self.model.talker();
        let status = if self.model.is_newer() { ",V" } else { "" };
        let rmc = format!("{talker}RMC,{time},V,,,,,,,{date},,,N{status}");
        let vtg = format!("{talker}VTG,,,,,,,,,N");
        let gga = format!("{talker}GGA,{time},,,,,0,00,99.99,,,,,,");
        let gsa = self.gsa("1,,,,,,,,,,,,,99.99,99.99,99.99");
        let gll = format!("{talker}GLL,,,,,{time},V,N");
        self.say(match self.model {
            Model::NeoM8 | Model::ZedF9p => [vec![rmc, vtg, gga], gsa, vec![gll]].concat(),
            Model::L76 => [vec![gga], gsa, vec![rmc, vtg]].concat(),
        });
    }

    /// GSA for both systems; `{}` stands for the satellites.
    fn gsa(&self, rest: &str) -> Vec<String> {
        let talker = self.model.talker();
        let systems = IN_USE.iter().zip(1..).map(|(satellites, system)| {
            let rest = rest.replace("{}", satellites);
            let system = match self.model.is_newer() {
                true => format!(",{system}"),
                false => String::new(),
            };
            format!("{talker}GSA,A,{rest}{system}")
        });
        systems.collect()
    }

    fn say(&mut self, bodies: Vec<String>) {
        self.outputs
            .extend(bodies.iter().map(|body| sentence(body)));
    }

    /// The errors to the north, to the east and up.
    fn errors_m(&mut self) -> [f64; 3] {
        let (walk_m, white_m) = (self.model.walk_m(), self.model.white_m());
        let kept = (-self.model.period().as_secs_f64() / WALK_S).exp();
        let mut random = || gaussian(&mut self.random);
        for error_m in &mut self.walk_m {
            *error_m = *error_m * kept + walk_m * (1.0 - kept * kept).sqrt() * random();
        }
        let [north_m, east_m] = self.walk_m;
        let errors_m = [north_m, east_m, 0.0].map(|error_m| error_m + white_m * random());
        errors_m.map(|error_m| error_m * self.noise)
    }
}
