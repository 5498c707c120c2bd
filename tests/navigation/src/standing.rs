//! Robots that stand: after a start at an unknown place, or after somebody has carried them. PURE.

use std::time::Duration;

use amber_map::{Pose, Walls, wrap};
use amber_navigation::kinematics::Wheels;
use amber_navigation::location::{Config, Location, LocationMap};

use super::laser::{Errors, Laser, Scanner};
use super::noise::Noise;
use super::{Course, MOUNT};

/// A pose is wrong if it is off by more than this.
const WRONG_M: f64 = 0.25;
const WRONG_RAD: f64 = 0.262;
/// Above this quality, a pose counts as certain.
const CERTAIN: f64 = 0.9;
/// The robot stands at least this far from walls.
const ROOM_M: f64 = 0.25;
const ERRORS: Errors = Errors {
    noise: Noise::Full,
    bias_m: 0.02,
    short_beams: 0.02,
};

/// The result of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stood {
    /// When the pose was decided and right, and stayed so.
    pub right_s: Option<f64>,
    /// Whether the pose was decided at the end.
    pub is_decided: bool,
    /// Whether a decided pose was wrong at the end.
    pub is_wrong: bool,
    /// Estimates with a quality above 0.9, ...
    pub certain: u64,
    /// ...and those of them that were wrong.
    pub certain_and_wrong: u64,
}

/// The course of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// At an unknown place.
    Unknown,
    /// At a known place; then somebody carries the robot to another one within a second.
    Carried,
}

/// A robot stands at a random place for some seconds.
#[must_use]
pub fn stand(course: &Course, map: &LocationMap, begins: Begins, seconds: u64, seed: u64) -> Stood {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x57a2d);
    let mut place = || {
        let mut at = course.inside.first().copied().unwrap_or_default();
        for _ in 0..1000 {
            let Some(drawn) = map.free().draw(map.field(), &mut random) else {
                break;
            };
            if map.field().distance_m(drawn) >= ROOM_M {
                at = drawn;
                break;
            }
        }
        Pose::new(at.x, at.y, (random.f64() - 0.5) * std::f64::consts::TAU)
    };
    let (first, second) = (place(), place());
    let mut random = fastrand::Rng::with_seed(seed ^ 0x1a5e2);
    let laser = Laser::new(
        Scanner::Urg04Lx,
        MOUNT.into(),
        ERRORS,
        course.walls.len(),
        &mut random,
    );
    let walls = Walls::new(course.walls.clone());
    let mut config = Config::new(MOUNT);
    config.seed = seed;
    let mut location = Location::new(map.clone(), config);
    let carried = match begins {
        Begins::Unknown => Duration::ZERO,
        Begins::Carried => Duration::from_secs(2),
    };
    let pose_at = |time: Duration| if time < carried { first } else { second };
    if begins == Begins::Carried {
        location.place(Duration::ZERO, first, 0.02, 0.02);
    }
    let mut result = Stood::default();
    let end = carried + Duration::from_secs(seconds);
    for turn in 0.. {
        let sweep = laser.sweep(turn);
        let now = laser.end_of(sweep) + Duration::from_millis(10);
        if now > end {
            break;
        }
        location.handle_wheels(sweep.start, Wheels::STOP);
        location.handle_wheels(now, Wheels::STOP);
        // The scans while it is carried show arms and floors.
        if (carried..carried + Duration::from_secs(1)).contains(&now) && begins == Begins::Carried {
            continue;
        }
        location.handle_scan(laser.scan(&walls, pose_at, sweep, &mut random));
        let Some(estimate) = location.update(now) else {
            continue;
        };
        let truth = pose_at(estimate.time);
        let is_wrong = estimate.pose.at.minus(truth.at).length() > WRONG_M
            || wrap(estimate.pose.heading - truth.heading).abs() > WRONG_RAD;
        if estimate.quality > CERTAIN {
            result.certain += 1;
            result.certain_and_wrong += u64::from(is_wrong);
        }
        result.is_decided = estimate.decided;
        result.is_wrong = estimate.decided && is_wrong;
        if estimate.decided && !is_wrong && now > carried {
            let since_s = now.saturating_sub(carried).as_secs_f64();
            result.right_s.get_or_insert(since_s);
        } else {
            result.right_s = None;
        }
    }
    result
}
