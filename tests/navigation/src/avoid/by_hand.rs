//! Laps with a joystick, while the collision monitor keeps the robot from walls. PURE.

use std::collections::VecDeque;
use std::time::Duration;

use amber_map::{Point, Pose};
use amber_navigation::collision::Config;
use amber_navigation::kinematics::Twist;
use amber_navigation::random::gaussian;

use super::{COMMANDS, Guarded};
use crate::Course;
use crate::robot::{LASER, is_due};

/// Somebody with a joystick drives this fast, ...
const BY_HAND_M_S: f64 = 0.3;
/// ...heads for the point of the tour that is this far away, ...
const AHEAD_M: f64 = 0.25;
/// ...and turns by so much too far or too little.
const UNSTEADY: f64 = 0.3;
/// Somebody whose robot stands for this long backs up for as long, ...
const BLOCKED: Duration = Duration::from_secs(1);
/// ...this fast.
const BACK_BY_HAND_M_S: f64 = 0.15;
/// The nearest point of a tour is one of the next ones.
const LOOK_POINTS: usize = 30;

/// The result of a [`lap`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lap {
    /// The mean speed; 0 if the lap was not finished.
    pub mean_m_s: f64,
    /// The length of the tour.
    pub length_m: f64,
    /// Contacts.
    pub contacts: u64,
    /// The smallest distance from a wall.
    pub clearance_m: f64,
}

/// Somebody drives the tour of a course with a joystick: ten commands per second, 0.2 s late, with
/// unsteady hands.
#[must_use]
pub fn lap(course: &Course, seed: u64) -> Lap {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x1a9);
    let (first, second) = (course.path[0], course.path[5 % course.path.len()]);
    let way = second.minus(first);
    let start = Pose {
        at: first,
        heading: way.y.atan2(way.x),
    };
    let length_m = course.length_m();
    let mut guarded = Guarded::new(&course.walls, start, seed, LASER);
    let drive = Config::new(Pose::default()).drive;
    let mut index = 0;
    let mut late = VecDeque::from([Twist::STOP; 2]);
    let mut command = Twist::STOP;
    // When the robot last moved, and until when it backs up.
    let mut moved = Duration::ZERO;
    let mut backs_until = Duration::ZERO;
    let limit = Duration::from_secs_f64(length_m / 0.1);
    while index + 1 < course.path.len() && guarded.robot.now() < limit {
        if is_due(guarded.robot.now(), COMMANDS) {
            let pose = guarded.robot.world.pose();
            index = nearest_ahead(&course.path, index, pose.at);
            let now = guarded.robot.now();
            if guarded.is_moving() {
                moved = now;
            } else if now > moved + BLOCKED {
                (moved, backs_until) = (now, now + BLOCKED);
            }
            late.push_back(if now < backs_until {
                Twist::new(-BACK_BY_HAND_M_S, 0.0)
            } else {
                steered(&course.path, index, pose, &mut random)
            });
            command = late.pop_front().unwrap_or_default();
        }
        guarded.step(Some(drive.wheels(command)));
    }
    let is_done = index + 1 >= course.path.len();
    let time_s = guarded.robot.now().as_secs_f64();
    Lap {
        mean_m_s: if is_done { length_m / time_s } else { 0.0 },
        length_m,
        contacts: guarded.robot.world.contacts(),
        clearance_m: guarded.robot.clearance_m(),
    }
}

/// The nearest of the next points of a tour.
fn nearest_ahead(path: &[Point], index: usize, at: Point) -> usize {
    let last = (index + LOOK_POINTS).min(path.len() - 1);
    let away_m = |index: &usize| path[*index].minus(at).length();
    let nearest = (index..=last).min_by(|a, b| away_m(a).total_cmp(&away_m(b)));
    nearest.unwrap_or(index)
}

/// What somebody requests who looks a bit ahead on a tour.
fn steered(path: &[Point], index: usize, pose: Pose, random: &mut fastrand::Rng) -> Twist {
    let is_ahead = |other: &usize| path[*other].minus(pose.at).length() >= AHEAD_M;
    let ahead = (index..path.len()).find(is_ahead).unwrap_or(path.len() - 1);
    let local = pose.local(path[ahead]);
    let bearing = local.y.atan2(local.x);
    let unsteady = 1.0 + UNSTEADY * gaussian(random);
    if bearing.abs() > 0.7 {
        let turn_rad_s = (2.0 * bearing).clamp(-1.2, 1.2);
        return Twist::new(0.0, turn_rad_s * unsteady);
    }
    Twist::new(BY_HAND_M_S, 2.0 * bearing * unsteady)
}
