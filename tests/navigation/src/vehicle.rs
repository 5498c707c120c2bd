//! A robot that drives the tour by its true pose. PURE.

use std::time::Duration;

use amber_map::{Pose, wrap};
use amber_navigation::kinematics::{SkidSteer, Twist, Wheels};
use amber_navigation::random::gaussian;

use super::Course;

/// The true drive.
pub(super) const DRIVE: SkidSteer = SkidSteer {
    track_m: 0.42,
    max_wheel_m_s: 1.2,
};
/// The speed on straight parts.
const SPEED_M_S: f64 = 0.3;
const ACCELERATION_M_S2: f64 = 0.5;
/// The robot heads for the point of the tour at this distance.
const AHEAD_M: f64 = 0.2;
const MAX_TURN_RAD_S: f64 = 1.2;
const TURN_ACCELERATION_RAD_S2: f64 = 4.0;
/// The noise of the measured wheel speeds.
const SPEED_NOISE: f64 = 0.03;

pub(super) struct Vehicle {
    pose: Pose,
    /// The point of the tour beside the robot.
    index: usize,
    speed_m_s: f64,
    turn_rad_s: f64,
}

impl Vehicle {
    /// At rest, anywhere on the tour.
    pub(super) fn new(course: &Course, random: &mut fastrand::Rng) -> Self {
        let index = random.usize(..course.path.len());
        let ahead = course.path[(index + 5) % course.path.len()].minus(course.path[index]);
        Self {
            pose: Pose {
                at: course.path[index],
                heading: ahead.y.atan2(ahead.x),
            },
            index,
            speed_m_s: 0.0,
            turn_rad_s: 0.0,
        }
    }

    pub(super) fn pose(&self) -> Pose {
        self.pose
    }

    /// Moves the robot to another part of the tour.
    pub(super) fn kidnap(&mut self, course: &Course, min_m: f64, random: &mut fastrand::Rng) {
        for _ in 0..1000 {
            let other = Self::new(course, random);
            if other.pose.at.minus(self.pose.at).length() >= min_m {
                *self = other;
                return;
            }
        }
    }

    /// Drives on.
    pub(super) fn step(&mut self, course: &Course, dt_s: f64) {
        let count = course.path.len();
        // The nearest of the next points.
        let distance = |index: usize| course.path[index % count].minus(self.pose.at).length();
        let next = |index: usize| {
            let mut near = 1..=course.look_points;
            near.find(|points| distance(index + points) <= distance(index))
        };
        while let Some(points) = next(self.index) {
            self.index += points;
        }
        let mut target = self.index;
        while distance(target) < AHEAD_M && target < self.index + 100 {
            target += 1;
        }
        let way = course.path[target % count].minus(self.pose.at);
        let bearing = wrap(way.y.atan2(way.x) - self.pose.heading);
        let curvature = 2.0 * bearing.sin() / way.length().max(0.05);
        let limited = SPEED_M_S.min(MAX_TURN_RAD_S / curvature.abs().max(1e-6));
        let (wanted, turn) = if bearing.abs() > 1.0 {
            (0.0, MAX_TURN_RAD_S * bearing.signum())
        } else {
            (limited, limited * curvature)
        };
        let follow = |value: &mut f64, wanted: f64, limit: f64| {
            *value += (wanted - *value).clamp(-limit * dt_s, limit * dt_s);
        };
        follow(&mut self.speed_m_s, wanted, ACCELERATION_M_S2);
        follow(&mut self.turn_rad_s, turn, TURN_ACCELERATION_RAD_S2);
        self.pose = self
            .pose
            .along_arc(self.speed_m_s * dt_s, self.turn_rad_s * dt_s);
    }

    /// The measurements of the controllers: whole millimetres per second, with noise.
    pub(super) fn measure(&self, time: Duration, random: &mut fastrand::Rng) -> (Duration, Wheels) {
        let exact = DRIVE.wheels(Twist::new(self.speed_m_s, self.turn_rad_s));
        let mut wheel = |speed: f64| {
            let noisy = speed * (1.0 + SPEED_NOISE * gaussian(random));
            (noisy * 1000.0).trunc() / 1000.0
        };
        let (left_m_s, right_m_s) = (wheel(exact.left_m_s()), wheel(exact.right_m_s()));
        (time, Wheels::sides(left_m_s, right_m_s))
    }
}
