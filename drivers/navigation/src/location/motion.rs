//! The motion model: where a particle may be after a motion that odometry measured. PURE.
//!
//! The velocity model of Probabilistic Robotics (Thrun, Burgard, Fox, 2005), chapter 5.3, for a
//! robot that turns by skidding: speed, sideways speed and turn rate each have an error, which is
//! constant during the motion and grows with both speed and turn rate.

use amber_map::{Point, Pose};

use crate::odometry::Motion;
use crate::random::gaussian;

/// The standard deviations of the errors of odometry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MotionNoise {
    /// The error of a distance, per metre driven.
    pub way_per_way: f64,
    /// The error of a distance in metres, per radian turned.
    pub way_per_turn_m: f64,
    /// The error of a speed in metres per second, also at rest.
    pub speed_m_s: f64,
    /// The sideways error in metres, per radian turned: the centre of rotation of a robot that skids
    /// is not known.
    pub side_per_turn_m: f64,
    /// The error of a turn, per radian turned: mostly a wrong effective track.
    pub turn_per_turn: f64,
    /// The error of a turn in radians, per metre driven.
    pub turn_per_way_rad: f64,
    /// The error of a turn rate in radians per second, also at rest.
    pub turn_rad_s: f64,
    /// The speed in metres per second, and the turn rate in radians per second, that are possible
    /// while samples of the wheels are missing.
    pub unknown: [f64; 2],
}

impl Default for MotionNoise {
    fn default() -> Self {
        Self {
            way_per_way: 0.10,
            way_per_turn_m: 0.02,
            speed_m_s: 0.01,
            side_per_turn_m: 0.02,
            turn_per_turn: 0.15,
            turn_per_way_rad: 0.2,
            turn_rad_s: 0.02,
            unknown: [0.3, 0.5],
        }
    }
}

/// The standard deviations of one motion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Along the path, in metres.
    pub ahead_m: f64,
    /// Across the path, in metres.
    pub side_m: f64,
    /// Of the heading, in radians.
    pub turn_rad: f64,
}

impl MotionNoise {
    /// The standard deviations of a motion.
    #[must_use]
    pub fn spread(&self, motion: &Motion) -> Spread {
        let (way_m, turns) = (motion.path_m, motion.turns_rad);
        let known_s = motion.time_s - motion.unknown_s;
        Spread {
            ahead_m: self.way_per_way * way_m
                + self.way_per_turn_m * turns
                + self.speed_m_s * known_s
                + self.unknown[0] * motion.unknown_s,
            side_m: self.side_per_turn_m * turns,
            turn_rad: self.turn_per_turn * turns
                + self.turn_per_way_rad * way_m
                + self.turn_rad_s * known_s
                + self.unknown[1] * motion.unknown_s,
        }
    }
}

impl Spread {
    /// A pose after a motion with random errors.
    pub fn draw(&self, pose: Pose, motion: &Motion, random: &mut fastrand::Rng) -> Pose {
        let turn_error = self.turn_rad * gaussian(random);
        let error = Point::new(
            self.ahead_m * gaussian(random),
            self.side_m * gaussian(random),
        );
        let middle = (motion.pose.heading + turn_error) / 2.0;
        // The error of the turn grows during the motion, so it bends the path by half of it.
        let at = motion
            .pose
            .at
            .turned(turn_error / 2.0)
            .plus(error.turned(middle));
        let heading = motion.pose.heading + turn_error;
        pose.global_pose(Pose { at, heading })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poses_scatter_around_the_motion() {
        let motion = Motion {
            pose: Pose::default().along_arc(0.3, 0.4),
            path_m: 0.3,
            turns_rad: 0.4,
            time_s: 1.0,
            unknown_s: 0.0,
        };
        let spread = MotionNoise::default().spread(&motion);
        assert!((spread.ahead_m - 0.048).abs() < 1e-9, "{spread:?}");
        assert!((spread.turn_rad - 0.14).abs() < 1e-9, "{spread:?}");
        let mut random = fastrand::Rng::with_seed(1);
        let start = Pose::new(1.0, 2.0, 3.0);
        let poses: Vec<Pose> = (0..20_000)
            .map(|_| spread.draw(start, &motion, &mut random))
            .collect();
        let expected = start.global_pose(motion.pose);
        let count = poses.len() as f64;
        let mean = poses
            .iter()
            .fold(Point::default(), |sum, pose| sum.plus(pose.at))
            .times(1.0 / count);
        assert!(
            mean.minus(expected.at).length() < 2e-3,
            "{mean:?} {expected:?}"
        );
        let variance = |value: &dyn Fn(&Pose) -> f64| {
            poses.iter().map(|pose| value(pose).powi(2)).sum::<f64>() / count
        };
        let turn_rad = variance(&|pose| pose.heading - expected.heading).sqrt();
        assert!((turn_rad - spread.turn_rad).abs() < 0.003, "{turn_rad}");
        let way = expected.at.minus(start.at);
        let ahead_m = variance(&|pose| pose.at.minus(start.at).length() - way.length()).sqrt();
        assert!((ahead_m - spread.ahead_m).abs() < 0.003, "{ahead_m}");
    }

    #[test]
    fn without_samples_anything_is_possible() {
        let motion = Motion {
            time_s: 2.0,
            unknown_s: 2.0,
            ..Motion::default()
        };
        let spread = MotionNoise::default().spread(&motion);
        assert_eq!((spread.ahead_m, spread.turn_rad), (0.6, 1.0));
    }
}
