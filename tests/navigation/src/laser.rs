//! The laser scanners of the simulated runs. PURE.

use std::f64::consts::{PI, TAU};
use std::time::Duration;

use amber_map::{Point, Pose, Walls};
use amber_navigation::random::gaussian;
use amber_navigation::scan::{Beam, Scan};
use amber_sim::hokuyo::{Model, Sweep};

use super::noise::{self, Noise, Ray};

/// A turn of a URG-04LX: 600 per minute.
pub(super) const TURN: Duration = Duration::from_millis(100);
/// A wall farther away gives no echo.
const FAR_M: f64 = 30.0;

/// The model of a scanner.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Scanner {
    /// A Hokuyo URG-04LX: 240 degrees ahead, counter-clockwise.
    #[default]
    Urg04Lx,
    /// It looks all around.
    Round(Round),
}

/// A scanner that looks all around, clockwise, from the rear to the rear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Its name.
    pub name: &'static str,
    /// The time of a turn.
    pub turn: Duration,
    /// The number of beams in a turn.
    pub beams: u32,
    /// The smallest and the largest distance, in metres.
    pub range_m: (f64, f64),
    /// The standard deviation of a distance, in metres, and as a part of the distance: the larger
    /// counts.
    pub sigma: (f64, f64),
}

impl Round {
    /// An LDROBOT LD19.
    pub const LD19: Self = Self {
        name: "LD19",
        turn: Duration::from_millis(100),
        beams: 450,
        range_m: (0.02, 12.0),
        sigma: (0.01, 0.0),
    };
    /// A Slamtec RPLIDAR A1 in its mode with 4000 points per second.
    pub const A1: Self = Self {
        name: "A1",
        turn: Duration::from_millis(182),
        beams: 727,
        range_m: (0.15, 12.0),
        sigma: (0.005, 0.01),
    };
    /// The same in the mode that all of its programs know, with 2000 points per second.
    pub const A1_STANDARD: Self = Self {
        name: "A1, 1°",
        beams: 364,
        ..Self::A1
    };
    /// An YDLIDAR X2 at its slowest.
    pub const X2: Self = Self {
        name: "X2, 5 Hz",
        turn: Duration::from_millis(200),
        beams: 600,
        range_m: (0.1, 8.0),
        sigma: (0.01, 0.01),
    };
    /// All of them.
    pub const ALL: [Self; 4] = [Self::LD19, Self::A1, Self::A1_STANDARD, Self::X2];
}

impl Scanner {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let round = Round::ALL.into_iter().map(Self::Round);
        [Self::Urg04Lx].into_iter().chain(round)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Urg04Lx => "URG-04LX",
            Self::Round(round) => round.name,
        }
    }

    /// The time of a turn.
    pub(super) fn turn(self) -> Duration {
        match self {
            Self::Urg04Lx => TURN,
            Self::Round(round) => round.turn,
        }
    }

    /// When the last beam of a turn is measured.
    pub(super) fn end_of(self, sweep: Sweep) -> Duration {
        match self {
            Self::Urg04Lx => sweep.start + Model::Urg04Lx.sweep_time(sweep.turn),
            Self::Round(round) => sweep.start + sweep.turn / round.beams * (round.beams - 1),
        }
    }

    /// When each beam of a turn is measured, and its direction on the scanner.
    fn beams(self, sweep: Sweep) -> Vec<(Duration, f64)> {
        match self {
            Self::Urg04Lx => {
                let model = Model::Urg04Lx;
                (model.first_step()..=model.last_step())
                    .map(|step| (model.beam_time(sweep, step), model.angle(step)))
                    .collect()
            }
            Self::Round(round) => (0..round.beams)
                .map(|index| {
                    let part = f64::from(index) / f64::from(round.beams);
                    (sweep.start + sweep.turn.mul_f64(part), PI - TAU * part)
                })
                .collect(),
        }
    }
}

/// The errors of a scanner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// The noise of the beams.
    pub noise: Noise,
    /// Each surface seems nearer or farther by up to this, in metres: colours differ. Not with
    /// [`Noise::White`].
    pub bias_m: f64,
    /// The share of beams that end before the wall.
    pub short_beams: f64,
}

/// How a scanner is mounted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fitting {
    /// Its pose on the robot.
    pub mount: Pose,
    /// Whether it is upside down.
    pub is_mirrored: bool,
}

impl From<Pose> for Fitting {
    /// The right way up.
    fn from(mount: Pose) -> Self {
        Self {
            mount,
            is_mirrored: false,
        }
    }
}

/// A scanner on the robot.
#[derive(Clone, Debug)]
pub(super) struct Laser {
    scanner: Scanner,
    fitting: Fitting,
    errors: Errors,
    /// One per wall.
    biases_m: Vec<f64>,
}

impl Laser {
    pub(super) fn new(
        scanner: Scanner,
        fitting: Fitting,
        errors: Errors,
        walls: usize,
        random: &mut fastrand::Rng,
    ) -> Self {
        let biases_m = (0..walls)
            .map(|_| errors.bias_m * noise::bias(random))
            .collect();
        Self {
            scanner,
            fitting,
            errors,
            biases_m,
        }
    }

    /// A turn of the scanner, counted from the first one.
    pub(super) fn sweep(&self, turn: u32) -> Sweep {
        let time = self.scanner.turn();
        Sweep {
            start: time * turn,
            turn: time,
        }
    }

    /// When the last beam of a turn is measured.
    pub(super) fn end_of(&self, sweep: Sweep) -> Duration {
        self.scanner.end_of(sweep)
    }

    /// The measurements of the scanner in a turn. It measures angles as if it were mounted the right
    /// way up.
    pub(super) fn scan(
        &self,
        walls: &Walls,
        pose_at: impl Fn(Duration) -> Pose,
        sweep: Sweep,
        random: &mut fastrand::Rng,
    ) -> Scan {
        self.scan_through(walls, |_, _, solid_m| solid_m, pose_at, sweep, random)
    }

    /// The same with other things before the walls. `nearest_m` gets where a beam starts, its direction,
    /// and the distance to the wall.
    pub(super) fn scan_through(
        &self,
        walls: &Walls,
        nearest_m: impl Fn(Point, f64, f64) -> f64,
        pose_at: impl Fn(Duration) -> Pose,
        sweep: Sweep,
        random: &mut fastrand::Rng,
    ) -> Scan {
        let directions = self.scanner.beams(sweep);
        let rays: Vec<Ray> = (directions.iter())
            .map(|&(time, angle_rad)| {
                let robot = pose_at(time);
                let laser = robot.global_pose(self.fitting.mount);
                let direction = if self.fitting.is_mirrored {
                    laser.heading - angle_rad
                } else {
                    laser.heading + angle_rad
                };
                let wall_m = walls.cast(laser.at, direction, FAR_M).unwrap_or(FAR_M);
                let distance_m = nearest_m(laser.at, direction, wall_m);
                Ray::new(angle_rad, distance_m, laser.at, direction)
            })
            .collect();
        let echoes = self.errors.noise.measure(
            self.scanner,
            &rays,
            walls,
            &self.biases_m,
            self.errors.short_beams,
            random,
        );
        let beams = rays.iter().zip(echoes).map(|(ray, echo)| Beam {
            angle_rad: ray.angle_rad,
            echo,
        });
        let steps_per_turn = match self.scanner {
            Scanner::Urg04Lx => Model::Urg04Lx.steps_per_turn(),
            Scanner::Round(round) => round.beams,
        };
        Scan {
            start: directions.first().map_or(sweep.start, |it| it.0),
            beam_time: sweep.turn / steps_per_turn,
            beams: beams.collect(),
        }
    }
}

/// A pose with independent errors of each coordinate.
pub(super) fn noisy(pose: Pose, sigma_m: f64, sigma_rad: f64, random: &mut fastrand::Rng) -> Pose {
    let mut draw = |sigma: f64| sigma * gaussian(random);
    Pose::new(
        pose.at.x + draw(sigma_m),
        pose.at.y + draw(sigma_m),
        pose.heading + draw(sigma_rad),
    )
}
