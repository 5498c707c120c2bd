//! Simulated drives with seeds, for tests and measurements. PURE.
//!
//! A [`Drive`] is everything that happens in one run: the true poses of a robot on a closed tour
//! through a map, and what its wheels and its scanner measure, with noise. It does not depend on the
//! software under test, so all variants see the same measurements. The same seed gives the same
//! drive.
//!
//! [`Scenario::ALL`] is the list of scenarios; [`run`] lets a [`Location`] work on a drive on a
//! virtual clock; [`Score`] compares its estimates with the truth.
//!
//! In the other runs, the software under test drives a [`robot::Robot`] in the simulated world:
//! - [`goto`]: to targets, or along a trajectory, with poses of a [`Location`];
//! - [`avoid`]: at obstacles, with the collision monitor;
//! - [`geometry`]: whether wrong geometry is found;
//! - [`exploring`]: through an unknown place, with the poses of its own map;
//! - [`matrix`]: all runs with their goals.

pub mod avoid;
mod by_hand;
pub mod clutter;
pub mod corridor;
mod course;
pub mod exploring;
mod floor;
pub mod furnished;
pub mod geometry;
pub mod goto;
mod laser;
pub mod matrix;
mod noise;
pub mod robot;
pub mod routes;
mod score;
pub mod standing;
mod vehicle;

use std::time::Duration;

use amber_map::{Point, Pose, Segment, Walls};
use amber_navigation::kinematics::Wheels;
use amber_navigation::location::{Config, Estimate, Location, LocationMap};
use amber_navigation::scan::Scan;

use self::clutter::Clutter;
pub use self::course::Course;
pub use self::floor::office_floor;
pub use self::laser::{Errors, Fitting, Round, Scanner};
use self::laser::{Laser, noisy};
pub use self::noise::Noise;
pub use self::score::{Score, Summary};
use self::vehicle::Vehicle;

/// The length of a run in the list of scenarios.
const LENGTH: Duration = Duration::from_secs(50);
/// The time step of the robot.
const STEP: Duration = Duration::from_millis(5);
/// The time between samples of the wheels.
const SPEEDS_EVERY: Duration = Duration::from_millis(50);
/// How long measurements take to arrive.
const SPEEDS_DELAY: Duration = Duration::from_millis(12);
const SCAN_DELAY: Duration = Duration::from_millis(8);
/// When a kidnapping happens in the list of scenarios.
const KIDNAP_AT: Duration = Duration::from_secs(20);
/// How far away the robot is moved at least.
const KIDNAP_MIN_M: f64 = 1.0;
/// The side of an additional box.
const BOX_M: f64 = 0.3;
/// The errors of a known start.
const START_SIGMA_M: f64 = 0.05;
const START_SIGMA_RAD: f64 = 0.05;
/// The pose of the scanner in all scenarios: 100 mm ahead.
pub const MOUNT: Pose = Pose::new(0.1, 0.0, 0.0);

/// The course of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// A short name.
    pub name: &'static str,
    /// The scanner.
    pub scanner: Scanner,
    /// The noise of the scanner.
    pub noise: Noise,
    /// Each surface seems nearer or farther by up to this, in metres: colours differ.
    pub bias_m: f64,
    /// The share of beams that end before the wall.
    pub short_beams: f64,
    /// The effective track that the software assumes, as a part of the true one.
    pub track: f64,
    /// Whether two walls of the map are missing and a box has been added.
    pub changed: bool,
    /// Whether the software is told where the robot starts.
    pub known_start: bool,
    /// When the robot is moved to another place.
    pub kidnap_at: Option<Duration>,
    /// The length of the run.
    pub length: Duration,
}

impl Scenario {
    const TRACKING: Self = Self {
        name: "tracking",
        scanner: Scanner::Urg04Lx,
        noise: Noise::Full,
        bias_m: 0.02,
        short_beams: 0.02,
        track: 1.0,
        changed: false,
        known_start: true,
        kidnap_at: None,
        length: LENGTH,
    };

    /// All scenarios.
    pub const ALL: [Self; 13] = [
        Self {
            name: "tracking, white noise",
            noise: Noise::White,
            bias_m: 0.0,
            ..Self::TRACKING
        },
        Self {
            name: "tracking, no bias",
            bias_m: 0.0,
            ..Self::TRACKING
        },
        Self {
            name: "tracking, bias 5 mm",
            bias_m: 0.005,
            ..Self::TRACKING
        },
        Self {
            name: "tracking, bias 10 mm",
            bias_m: 0.01,
            ..Self::TRACKING
        },
        Self::TRACKING,
        Self {
            name: "20 % short beams",
            short_beams: 0.2,
            ..Self::TRACKING
        },
        Self {
            name: "track 20 % too small",
            track: 0.8,
            ..Self::TRACKING
        },
        Self {
            name: "track 20 % too large",
            track: 1.2,
            ..Self::TRACKING
        },
        Self {
            name: "2 walls missing, 1 box",
            changed: true,
            ..Self::TRACKING
        },
        Self {
            name: "global start",
            known_start: false,
            ..Self::TRACKING
        },
        Self {
            name: "global, 20 % short",
            known_start: false,
            short_beams: 0.2,
            ..Self::TRACKING
        },
        Self {
            name: "kidnap",
            kidnap_at: Some(KIDNAP_AT),
            ..Self::TRACKING
        },
        Self {
            name: "kidnap, 20 % short",
            kidnap_at: Some(KIDNAP_AT),
            short_beams: 0.2,
            ..Self::TRACKING
        },
    ];

    fn errors(&self) -> Errors {
        Errors {
            noise: self.noise,
            bias_m: self.bias_m,
            short_beams: self.short_beams,
        }
    }

    /// The scenario with a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name == name)
    }

    /// When the software must find the pose: at the start or after the kidnapping.
    #[must_use]
    pub fn search_starts(&self) -> Option<Duration> {
        let start = (!self.known_start).then_some(Duration::ZERO);
        self.kidnap_at.or(start)
    }
}

/// A measurement and when it arrives.
#[derive(Clone, Debug)]
pub enum Arrival {
    /// The speeds of the wheels at a time.
    Wheels(Duration, Wheels),
    Scan(Scan),
}

/// One run.
#[derive(Clone, Debug)]
pub struct Drive {
    /// True poses, one per [`STEP`].
    poses: Vec<Pose>,
    arrivals: Vec<(Duration, Arrival)>,
    start: Pose,
}

impl Drive {
    /// Simulates a run.
    #[must_use]
    pub fn new(course: &Course, scenario: &Scenario, seed: u64) -> Self {
        Self::with_laser(course, scenario, MOUNT.into(), seed)
    }

    /// Simulates a run of a robot whose laser is mounted in another way.
    #[must_use]
    pub fn with_laser(course: &Course, scenario: &Scenario, fitting: Fitting, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x5EED_0000_0000);
        let walls = if scenario.changed {
            changed(course, &mut random)
        } else {
            course.walls.clone()
        };
        Self::simulate(course, &Clutter::none(walls), scenario, fitting, random)
    }

    /// Simulates a run in furnished rooms.
    #[must_use]
    pub fn among(course: &Course, clutter: &Clutter, scenario: &Scenario, seed: u64) -> Self {
        let random = fastrand::Rng::with_seed(seed ^ 0x5EED_0000_0000);
        Self::simulate(course, clutter, scenario, MOUNT.into(), random)
    }

    fn simulate(
        course: &Course,
        clutter: &Clutter,
        scenario: &Scenario,
        fitting: Fitting,
        mut random: fastrand::Rng,
    ) -> Self {
        let errors = scenario.errors();
        let laser = Laser::new(
            scenario.scanner,
            fitting,
            errors,
            clutter.solid.len(),
            &mut random,
        );
        let mut walls = Walls::new(clutter.solid.clone());
        let mut vehicle = Vehicle::new(course, &mut random);
        let mut new = Self {
            poses: vec![vehicle.pose()],
            arrivals: Vec::new(),
            start: vehicle.pose(),
        };
        let mut sweep = laser.sweep(0);
        sweep.start += sweep.turn.mul_f64(random.f64());
        let mut now = Duration::ZERO;
        while now < scenario.length {
            now += STEP;
            vehicle.step(course, STEP.as_secs_f64());
            if scenario.kidnap_at == Some(now) {
                vehicle.kidnap(course, KIDNAP_MIN_M, &mut random);
            }
            new.poses.push(vehicle.pose());
            if now.as_millis().is_multiple_of(SPEEDS_EVERY.as_millis()) {
                let (time, wheels) = vehicle.measure(now, &mut random);
                let arrival = Arrival::Wheels(time, wheels);
                new.arrivals.push((now + SPEEDS_DELAY, arrival));
            }
            let scan_ends = laser.end_of(sweep);
            if scan_ends <= now {
                let duration = sweep.start..=scan_ends;
                let kidnapped = scenario.kidnap_at.is_some_and(|at| duration.contains(&at));
                if !kidnapped {
                    let pose_at = |time| new.pose_at(time);
                    if clutter.moves() {
                        walls = Walls::new(clutter.at(now, new.pose_at(now).at));
                    }
                    let pane = |from, direction, solid_m| {
                        clutter.pane_m(from, direction, solid_m).unwrap_or(solid_m)
                    };
                    let mut scan = laser.scan_through(&walls, pane, pose_at, sweep, &mut random);
                    clutter.tilt(&mut scan, &mut random);
                    let arrives = scan_ends + SCAN_DELAY;
                    new.arrivals.push((arrives, Arrival::Scan(scan)));
                }
                sweep.start += sweep.turn;
            }
        }
        new.arrivals.sort_by_key(|(arrives, _)| *arrives);
        new
    }

    /// The true pose at a time.
    #[must_use]
    pub fn pose_at(&self, time: Duration) -> Pose {
        let steps = time.as_secs_f64() / STEP.as_secs_f64();
        let index = (steps as usize).min(self.poses.len() - 2);
        let part = (steps - index as f64).clamp(0.0, 1.0);
        let (a, b) = (self.poses[index], self.poses[index + 1]);
        let local = a.local_pose(b);
        let way = Pose {
            at: local.at.times(part),
            heading: local.heading * part,
        };
        a.global_pose(way)
    }

    /// All measurements with the times at which they arrive, in this order.
    #[must_use]
    pub fn arrivals(&self) -> &[(Duration, Arrival)] {
        &self.arrivals
    }
}

/// The walls of the course without two of them, and with a box.
fn changed(course: &Course, random: &mut fastrand::Rng) -> Vec<Segment> {
    let mut walls = course.walls.clone();
    for _ in 0..2 {
        let long: Vec<usize> = (0..walls.len())
            .filter(|index| walls[*index].to.minus(walls[*index].from).length() > 0.2)
            .collect();
        if let Some(index) = random.choice(long) {
            walls.remove(index);
        }
    }
    let near_path = |at: Point| {
        course
            .path
            .iter()
            .map(|other| other.minus(at).length())
            .fold(f64::MAX, f64::min)
    };
    for _ in 0..1000 {
        let start = course.path[random.usize(..course.path.len())];
        let way = Point::new(0.35 + 0.35 * random.f64(), 0.0);
        let at = start.plus(way.turned(random.f64() * std::f64::consts::TAU));
        // Half the box's diagonal beside half the robot.
        if near_path(at) > BOX_M * 0.71 + 0.13 {
            let half = BOX_M / 2.0;
            let corner = |x: f64, y: f64| at.plus(Point::new(x * half, y * half));
            let corners = [
                (-1.0, -1.0),
                (1.0, -1.0),
                (1.0, 1.0),
                (-1.0, 1.0),
                (-1.0, -1.0),
            ];
            walls.extend(corners.windows(2).map(|pair| Segment {
                from: corner(pair[0].0, pair[0].1),
                to: corner(pair[1].0, pair[1].1),
            }));
            break;
        }
    }
    walls
}

/// The settings of a scenario.
#[must_use]
pub fn config(scenario: &Scenario, seed: u64) -> Config {
    let mut config = Config::new(MOUNT);
    config.track_m = vehicle::DRIVE.track_m * scenario.track;
    config.seed = seed;
    config
}

/// Lets a localization work on a drive. `update` calls [`Location::update`], and may measure how
/// long it takes.
pub fn run(
    course: &Course,
    scenario: &Scenario,
    config: Config,
    seed: u64,
    update: impl FnMut(&mut Location, Duration) -> Option<Estimate>,
) -> Score {
    let map = LocationMap::from_walls(
        &course.walls,
        &course.inside,
        config.cell_m,
        config.limit_m(),
    );
    let Ok(map) = map else {
        return Score::new(*scenario);
    };
    run_in(map, course, scenario, config, seed, update)
}

/// Like [`run`], in a map of any origin. It must have the frame of the course.
pub fn run_in(
    map: LocationMap,
    course: &Course,
    scenario: &Scenario,
    config: Config,
    seed: u64,
    mut update: impl FnMut(&mut Location, Duration) -> Option<Estimate>,
) -> Score {
    let drive = Drive::new(course, scenario, seed);
    let mut location = Location::new(map, config);
    let mut random = fastrand::Rng::with_seed(seed ^ 0x57A2_7000_0000);
    if scenario.known_start {
        let start = noisy(drive.start, START_SIGMA_M, START_SIGMA_RAD, &mut random);
        location.place(Duration::ZERO, start, START_SIGMA_M, START_SIGMA_RAD);
    }
    let mut score = Score::new(*scenario);
    let mut arrivals = drive.arrivals.iter().peekable();
    let mut now = Duration::ZERO;
    while now < scenario.length {
        now += STEP;
        while let Some((_, arrival)) = arrivals.next_if(|(arrives, _)| *arrives <= now) {
            match arrival {
                Arrival::Wheels(time, wheels) => location.handle_wheels(*time, *wheels),
                Arrival::Scan(scan) => location.handle_scan(scan.clone()),
            }
        }
        if location
            .next_timeout()
            .is_some_and(|timeout| timeout <= now)
            && let Some(estimate) = update(&mut location, now)
        {
            score.add(
                &estimate,
                drive.pose_at(estimate.time),
                location.particles().len(),
            );
        }
    }
    score.finish(location.bytes());
    score
}

#[cfg(test)]
mod tests;
