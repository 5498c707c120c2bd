//! The path that the robot has driven, and the motion back along it. PURE.
//!
//! The robot fits where it has just been. In a place that is too narrow for a turn, it therefore
//! drives back the same path: each pose of the trail in reverse order, without turning around.
//!
//! Poses are in the odometry frame: over some metres it is smooth, while a map corrects its poses.

use std::collections::VecDeque;

use amber_map::{Pose, wrap};

use crate::kinematics::Twist;
use crate::pursuit::{curvature, turn_rate};

/// A pose is kept after this way...
const STEP_M: f64 = 0.03;
/// ...or this turn.
const STEP_RAD: f64 = 0.15;
/// The maximum number of poses: 3 m, or a metre and four full turns.
const MAX_POSES: usize = 100;
/// A pose of the trail is reached when the robot is this near...
const REACHED_M: f64 = 0.03;
/// ...and turned by less than this.
const REACHED_RAD: f64 = 0.12;
/// A radian counts like this distance in the search for the nearest pose of the trail.
const RADIAN_M: f64 = 0.2;
/// The nearest pose is one of the newest ones.
const NEWEST: usize = 10;
/// Farther away from the trail, it is of no use.
const LOST_M: f64 = 0.15;
/// The robot steers to the pose of the trail that is this far away.
const AHEAD_M: f64 = 0.12;
/// It does not look beyond a turn by this angle.
const BEND_RAD: f64 = 0.4;
/// The tightest curve, in 1/m.
const MAX_CURVATURE: f64 = 6.0;
/// If that curve is not clear, these are tried: tighter and wider by this, in 1/m.
const ASIDE_CURVATURE: f64 = 4.0;
/// Motions are compared after this time, in seconds.
const LOOK_S: f64 = 0.3;
/// Turns on the spot, in rad/s and rad/s².
const TURN_RAD_S: f64 = 0.4;
const TURN_BRAKING_RAD_S2: f64 = 2.0;

/// The trail of the robot.
#[derive(Clone, Debug, Default)]
pub(super) struct Trail {
    poses: VecDeque<Pose>,
}

impl Trail {
    /// Forgets everything: the robot was carried away.
    pub(super) fn clear(&mut self) {
        self.poses.clear();
    }

    /// Whether the way is unknown.
    pub(super) fn is_empty(&self) -> bool {
        self.poses.is_empty()
    }

    /// The robot is at a pose.
    pub(super) fn note(&mut self, pose: Pose) {
        let is_new = self.poses.back().is_none_or(|last| {
            let way = last.local_pose(pose);
            way.at.length() >= STEP_M || wrap(way.heading).abs() >= STEP_RAD
        });
        if is_new {
            self.poses.push_back(pose);
        }
        while self.poses.len() > MAX_POSES {
            self.poses.pop_front();
        }
    }

    /// The motion from a pose back along the trail; `None` at its beginning. Forgets what the robot
    /// has passed. `is_clear` tells whether the robot may make a motion; of those that lead back, the
    /// first clear one is taken.
    pub(super) fn back(
        &mut self,
        pose: Pose,
        speed_m_s: f64,
        is_clear: impl Fn(Twist) -> bool,
    ) -> Option<Twist> {
        self.forget_passed(pose);
        let first = pose.local_pose(*self.poses.back()?);
        if first.at.length() > LOST_M {
            self.poses.clear();
            return None;
        }
        let turn = wrap(first.heading);
        if first.at.length() < REACHED_M && turn.abs() >= REACHED_RAD {
            let turn_rad_s = turn_rate(turn, TURN_RAD_S, TURN_BRAKING_RAD_S2);
            return Some(Twist::new(0.0, turn_rad_s));
        }
        let ways = self.poses.iter().rev().map(|at| pose.local_pose(*at));
        let mut target = first;
        for way in ways {
            let turns = wrap(way.heading).abs() > BEND_RAD;
            // Where the robot has changed its direction, it does so again.
            let returns = way.at.x * first.at.x < 0.0;
            if turns || returns {
                break;
            }
            target = way;
            if target.at.length() >= AHEAD_M {
                break;
            }
        }
        let forward_m_s = speed_m_s.copysign(target.at.x);
        let along = |curvature: f64| Twist::new(forward_m_s, forward_m_s * curvature);
        let best = curvature(target.at).clamp(-MAX_CURVATURE, MAX_CURVATURE);
        let turn = Twist::new(0.0, TURN_RAD_S.copysign(target.heading));
        let others = [
            along(best + ASIDE_CURVATURE),
            along(best - ASIDE_CURVATURE),
            turn,
            along(0.0),
        ];
        // The one that leads nearest to the trail.
        let left_m = |twist: &Twist| {
            let after =
                Pose::default().along_arc(twist.forward_m_s * LOOK_S, twist.turn_rad_s * LOOK_S);
            let left = after.local_pose(target);
            left.at.length() + RADIAN_M * wrap(left.heading).abs()
        };
        let usual = along(best);
        if is_clear(usual) {
            return Some(usual);
        }
        let clear = others.into_iter().filter(|twist| is_clear(*twist));
        let nearest = clear.min_by(|a, b| left_m(a).total_cmp(&left_m(b)));
        Some(nearest.unwrap_or(usual))
    }

    fn forget_passed(&mut self, pose: Pose) {
        let away_m = |at: &Pose| {
            let way = pose.local_pose(*at);
            way.at.length() + RADIAN_M * wrap(way.heading).abs()
        };
        let newest = self.poses.iter().rev().take(NEWEST).enumerate();
        let nearest = newest.min_by(|a, b| away_m(a.1).total_cmp(&away_m(b.1)));
        let passed = nearest.map_or(0, |(index, _)| index);
        self.poses.truncate(self.poses.len() - passed);
        let is_reached = |at: &Pose| {
            let way = pose.local_pose(*at);
            way.at.length() < REACHED_M && wrap(way.heading).abs() < REACHED_RAD
        };
        while self.poses.back().is_some_and(is_reached) {
            self.poses.pop_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    const DT_S: f64 = 0.05;

    /// Drives from a pose with these motions, each for some seconds.
    fn drive(trail: &mut Trail, mut pose: Pose, motions: &[(Twist, f64)]) -> Pose {
        for (twist, time_s) in motions {
            for _ in 0..(time_s / DT_S).round() as u32 {
                trail.note(pose);
                pose = pose.along_arc(twist.forward_m_s * DT_S, twist.turn_rad_s * DT_S);
            }
        }
        trail.note(pose);
        pose
    }

    /// Drives back to the beginning; the final pose and the poses on the way.
    fn back(trail: &mut Trail, mut pose: Pose) -> (Pose, Vec<Pose>) {
        let mut poses = Vec::new();
        for _ in 0..2000 {
            let Some(twist) = trail.back(pose, 0.1, |_| true) else {
                return (pose, poses);
            };
            pose = pose.along_arc(twist.forward_m_s * DT_S, twist.turn_rad_s * DT_S);
            poses.push(pose);
        }
        panic!("the robot does not arrive: {pose:?}");
    }

    #[test]
    fn the_robot_drives_back_along_curves_and_turns() {
        let mut trail = Trail::default();
        let start = Pose::new(0.3, -0.2, 1.0);
        let end = drive(
            &mut trail,
            start,
            &[
                (Twist::new(0.2, 0.0), 3.0),
                (Twist::new(0.0, 0.8), FRAC_PI_2 / 0.8),
                (Twist::new(0.2, -0.4), 3.0),
            ],
        );
        let forward = trail.poses.clone();
        let (returned, way) = back(&mut trail, end);
        let error = start.local_pose(returned);
        assert!(
            error.at.length() < 0.04 && error.heading.abs() < 0.15,
            "{error:?}"
        );
        for pose in way {
            let beside_m = forward.iter().map(|at| at.at.minus(pose.at).length());
            let beside_m = beside_m.fold(f64::INFINITY, f64::min);
            assert!(beside_m < 0.03, "{pose:?}: {beside_m}");
        }
    }

    #[test]
    fn from_beside_the_trail_the_robot_comes_back_to_it() {
        let mut trail = Trail::default();
        let end = drive(&mut trail, Pose::default(), &[(Twist::new(0.2, 0.0), 5.0)]);
        let aside = Pose::new(end.at.x, 0.03, 0.1);
        let (returned, way) = back(&mut trail, aside);
        assert!(returned.at.y.abs() < 0.015, "{returned:?}");
        assert!(way.iter().all(|pose| pose.at.y.abs() < 0.06));
    }

    #[test]
    fn where_the_way_back_is_not_clear_the_robot_takes_another_motion() {
        let mut trail = Trail::default();
        let motions = [(Twist::new(0.2, 0.0), 2.0), (Twist::new(0.1, -0.4), 1.0)];
        let end = drive(&mut trail, Pose::default(), &motions);
        let usual = trail.back(end, 0.1, |_| true).unwrap();
        assert!(
            usual.forward_m_s < 0.0 && usual.turn_rad_s > 0.0,
            "{usual:?}"
        );
        let turn = trail.back(end, 0.1, |twist| twist.forward_m_s == 0.0);
        assert_eq!(turn, Some(Twist::new(0.0, TURN_RAD_S)));
        assert_eq!(trail.back(end, 0.1, |_| false), Some(usual));
    }

    #[test]
    fn without_a_trail_or_far_from_it_there_is_no_way_back() {
        let mut trail = Trail::default();
        assert_eq!(trail.back(Pose::default(), 0.1, |_| true), None);
        drive(&mut trail, Pose::default(), &[(Twist::new(0.2, 0.0), 5.0)]);
        assert_eq!(trail.back(Pose::new(5.0, 5.0, 0.0), 0.1, |_| true), None);
        assert!(trail.poses.is_empty());
    }

    #[test]
    fn the_trail_is_bounded() {
        let mut trail = Trail::default();
        drive(&mut trail, Pose::default(), &[(Twist::new(0.5, 0.1), 60.0)]);
        assert_eq!(trail.poses.len(), MAX_POSES);
        drive(&mut trail, Pose::default(), &[(Twist::STOP, 60.0)]);
        assert_eq!(trail.poses.len(), MAX_POSES);
    }
}
