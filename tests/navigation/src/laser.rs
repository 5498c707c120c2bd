//! The laser scanner of all simulated runs. PURE.

use std::time::Duration;

use amber_map::{Point, Pose, Walls};
use amber_navigation::random::gaussian;
use amber_navigation::scan::{Beam, Scan};
use amber_sim::hokuyo::{Model, Sweep};

use super::noise::{self, Noise, Ray};

/// A turn of the scanner: 600 per minute.
pub(super) const TURN: Duration = Duration::from_millis(100);
/// A wall farther away gives no echo.
const FAR_M: f64 = 30.0;

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

/// A URG-04LX on the robot.
#[derive(Clone, Debug)]
pub(super) struct Laser {
    fitting: Fitting,
    errors: Errors,
    /// One per wall.
    biases_m: Vec<f64>,
}

impl Laser {
    pub(super) fn new(
        fitting: Fitting,
        errors: Errors,
        walls: usize,
        random: &mut fastrand::Rng,
    ) -> Self {
        let biases_m = (0..walls)
            .map(|_| errors.bias_m * noise::bias(random))
            .collect();
        Self {
            fitting,
            errors,
            biases_m,
        }
    }

    /// When the last beam of a turn is measured.
    pub(super) fn end_of(sweep: Sweep) -> Duration {
        sweep.start + Model::Urg04Lx.sweep_time(sweep.turn)
    }

    /// The measurements of the scanner in a turn. It turns counter-clockwise, and measures angles as
    /// if it were mounted the right way up.
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
        let model = Model::Urg04Lx;
        let rays: Vec<Ray> = (model.first_step()..=model.last_step())
            .map(|step| {
                let robot = pose_at(model.beam_time(sweep, step));
                let laser = robot.global_pose(self.fitting.mount);
                let angle_rad = model.angle(step);
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
        Scan {
            start: model.beam_time(sweep, model.first_step()),
            beam_time: sweep.turn / model.steps_per_turn(),
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
