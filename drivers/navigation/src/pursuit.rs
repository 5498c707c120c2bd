//! The motion along a path: regulated pure pursuit. PURE.
//!
//! The robot steers onto the arc to a point ahead on the path (Coulter, "Implementation of the pure
//! pursuit path tracking algorithm", CMU-RI-TR-92-01): for a point at `(x, y)` in its frame, at
//! distance `L`, the curvature is `2 y / L^2`. The speed is regulated (Macenski et al., "Regulated
//! pure pursuit for robot path tracking", 2023): lower in tight curves, near walls and before the
//! end. If the path starts in another direction, the robot first turns on the spot.

use std::f64::consts::PI;

use amber_map::{Point, Pose, wrap};

use crate::kinematics::Twist;
use crate::path::Path;

/// The progress is searched this far behind and ahead of the last one.
const WINDOW_BACK_M: f64 = 0.05;
const WINDOW_AHEAD_M: f64 = 0.6;
/// Steps of the search for the slowest place ahead.
const LOOK_STEP_M: f64 = 0.05;

/// The configuration of a [`Follower`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The maximum speed in m/s.
    pub max_m_s: f64,
    /// The minimum speed in m/s, except at the end.
    pub min_m_s: f64,
    /// The point ahead is as far as the robot drives in this time, in seconds...
    pub lookahead_s: f64,
    /// ...but at least this far...
    pub lookahead_min_m: f64,
    /// ...and at most this far.
    pub lookahead_max_m: f64,
    /// In curves with a smaller radius the speed is reduced in proportion, in metres.
    pub slow_radius_m: f64,
    /// Below this distance from walls the speed is reduced, in metres. Turns on the spot have half
    /// their rate there, because the corners of the robot come near to the walls.
    pub slow_clearance_m: f64,
    /// At this distance from walls the speed is half, in metres.
    pub half_clearance_m: f64,
    /// The braking before the end, in m/s².
    pub braking_m_s2: f64,
    /// The acceleration, in m/s².
    pub acceleration_m_s2: f64,
    /// From this angle on, the robot turns on the spot...
    pub turn_from_rad: f64,
    /// ...until the angle is smaller than this.
    pub turn_until_rad: f64,
    /// The maximum turn rate in rad/s.
    pub max_turn_rad_s: f64,
    /// The braking of turns in rad/s².
    pub turn_braking_rad_s2: f64,
    /// The maximum sideways acceleration in curves, in m/s².
    pub lateral_m_s2: f64,
}

/// The speed of DriveToPoint; distances for a maze with gates of half a metre.
impl Default for Config {
    fn default() -> Self {
        Self {
            max_m_s: 0.38,
            min_m_s: 0.08,
            lookahead_s: 0.8,
            lookahead_min_m: 0.2,
            lookahead_max_m: 0.35,
            slow_radius_m: 0.45,
            slow_clearance_m: 0.3,
            half_clearance_m: 0.15,
            braking_m_s2: 0.4,
            acceleration_m_s2: 0.8,
            turn_from_rad: PI / 4.0,
            turn_until_rad: 0.15,
            max_turn_rad_s: 1.8,
            turn_braking_rad_s2: 2.5,
            lateral_m_s2: 0.5,
        }
    }
}

/// Follows a path.
#[derive(Clone, Debug)]
pub struct Follower {
    config: Config,
    path: Path,
    way_m: f64,
    is_turning: bool,
}

/// The motion at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motion {
    /// The motion to request.
    pub twist: Twist,
    /// Whether the robot turns on the spot.
    pub is_turning: bool,
    /// The direction of the point ahead on the path, in the frame of the robot.
    pub bearing_rad: f64,
    /// How far it is to the left of the path.
    pub left_m: f64,
    /// The remaining length of the path.
    pub rest_m: f64,
}

/// The curvature of the arc from the robot to a point in its frame, in 1/m; positive to the left.
#[must_use]
pub fn curvature(local: Point) -> f64 {
    let square = local.dot(local);
    if square == 0.0 {
        0.0
    } else {
        2.0 * local.y / square
    }
}

impl Follower {
    /// Starts at the beginning of a path.
    #[must_use]
    pub fn new(config: Config, path: Path) -> Self {
        Self {
            config,
            path,
            way_m: 0.0,
            is_turning: false,
        }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The distance of the robot from the start, along the path. It never decreases.
    #[must_use]
    pub fn way_m(&self) -> f64 {
        self.way_m
    }

    /// The motion at a pose. `clearance_m` is the distance of a position from walls, `speed_m_s` the
    /// present speed, and `end_m_s` the speed at the end of the path.
    pub fn step(
        &mut self,
        pose: Pose,
        speed_m_s: f64,
        end_m_s: f64,
        clearance_m: impl Fn(Point) -> f64,
    ) -> Motion {
        let config = self.config;
        let place = self.path.project(
            pose.at,
            self.way_m - WINDOW_BACK_M,
            self.way_m + WINDOW_AHEAD_M,
        );
        self.way_m = self.way_m.max(place.way_m);
        let lookahead_m = (speed_m_s.abs() * config.lookahead_s)
            .clamp(config.lookahead_min_m, config.lookahead_max_m);
        let rest_m = self.path.length_m() - self.way_m;
        let local = pose.local(self.ahead(lookahead_m));
        let bearing = local.y.atan2(local.x);
        let limit = if self.is_turning {
            config.turn_until_rad
        } else {
            config.turn_from_rad
        };
        self.is_turning = bearing.abs() > limit;
        let motion = |twist, is_turning| Motion {
            twist,
            is_turning,
            bearing_rad: bearing,
            left_m: place.left_m,
            rest_m,
        };
        if self.is_turning {
            let is_tight = clearance_m(pose.at) < config.slow_clearance_m;
            let max_rad_s = config.max_turn_rad_s * if is_tight { 0.5 } else { 1.0 };
            let turn = turn_rate(bearing, max_rad_s, config.turn_braking_rad_s2);
            return motion(Twist::new(0.0, turn), true);
        }
        let curvature = curvature(local);
        // A corner ahead counts like the curve that it will be.
        let path_end_m = self.path.length_m().min(self.way_m + lookahead_m);
        let corner =
            wrap(self.path.direction_rad(path_end_m) - self.path.direction_rad(self.way_m));
        let bend = curvature.abs().max(corner.abs() / lookahead_m);
        let by_curve_m_s = if bend * config.slow_radius_m > 1.0 {
            config.max_m_s / (bend * config.slow_radius_m)
        } else {
            config.max_m_s
        };
        let by_lateral_m_s = (config.lateral_m_s2 / bend).sqrt();
        let by_wall_m_s = self.speed_by_clearance(lookahead_m, &clearance_m);
        let forward_m_s = by_curve_m_s
            .min(by_lateral_m_s)
            .min(by_wall_m_s)
            .max(config.min_m_s);
        // The limits that hold in any case.
        let by_end_m_s = (end_m_s * end_m_s + 2.0 * config.braking_m_s2 * rest_m).sqrt();
        let by_turn_m_s = config.max_turn_rad_s / bend;
        let forward_m_s = forward_m_s.min(by_end_m_s).min(by_turn_m_s);
        motion(Twist::new(forward_m_s, forward_m_s * curvature), false)
    }

    /// The point ahead on the path, or behind its end in its last direction.
    fn ahead(&self, lookahead_m: f64) -> Point {
        let way_m = self.way_m + lookahead_m;
        let beyond_m = way_m - self.path.length_m();
        let point = self.path.at(way_m);
        if beyond_m > 0.0 {
            let direction = self.path.direction_rad(self.path.length_m());
            point.plus(Point::new(beyond_m, 0.0).turned(direction))
        } else {
            point
        }
    }

    fn speed_by_clearance(&self, ahead_m: f64, clearance_m: impl Fn(Point) -> f64) -> f64 {
        let config = self.config;
        let steps = (ahead_m / LOOK_STEP_M).ceil() as u32;
        let least_m = (0..=steps)
            .map(|step| self.path.at(self.way_m + f64::from(step) * LOOK_STEP_M))
            .map(clearance_m)
            .fold(f64::INFINITY, f64::min);
        let (low_m, high_m) = (config.half_clearance_m, config.slow_clearance_m);
        let part = ((least_m - low_m) / (high_m - low_m)).clamp(0.0, 1.0);
        config.max_m_s * (0.5 + 0.5 * part)
    }
}

/// The turn rate for a turn by an angle that ends without overshooting.
#[must_use]
pub fn turn_rate(angle_rad: f64, max_rad_s: f64, braking_rad_s2: f64) -> f64 {
    let angle = wrap(angle_rad);
    let size = (2.0 * braking_rad_s2 * angle.abs()).sqrt().min(max_rad_s);
    // The motors lag: close to the end the rate is proportional to the angle.
    size.min(4.0 * angle.abs()).copysign(angle)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn straight() -> Path {
        Path::new([Point::new(0.0, 0.0), Point::new(5.0, 0.0)]).unwrap()
    }

    fn step(follower: &mut Follower, pose: Pose, clearance_m: f64) -> Motion {
        follower.step(pose, 0.3, 0.0, |_| clearance_m)
    }

    #[test]
    fn on_a_straight_path_the_robot_drives_straight_at_full_speed() {
        let mut follower = Follower::new(Config::default(), straight());
        let motion = step(&mut follower, Pose::new(0.3, 0.0, 0.0), 1.0);
        assert_eq!(motion.twist, Twist::new(0.38, 0.0));
    }

    #[test]
    fn beside_the_path_the_robot_steers_back() {
        for (y, heading) in [(0.1, 0.0), (0.0, 0.3)] {
            let mut follower = Follower::new(Config::default(), straight());
            let motion = step(&mut follower, Pose::new(0.2, y, heading), 1.0);
            assert!(motion.twist.turn_rad_s < -0.1, "{motion:?}");
            let mut follower = Follower::new(Config::default(), straight());
            let mirrored = step(&mut follower, Pose::new(0.2, -y, -heading), 1.0);
            assert!((motion.twist.turn_rad_s + mirrored.twist.turn_rad_s).abs() < 1e-9);
        }
    }

    #[test]
    fn near_walls_and_before_the_end_the_robot_slows_down() {
        let speed = |x: f64, clearance_m| {
            let mut follower = Follower::new(Config::default(), straight());
            follower.way_m = x;
            step(&mut follower, Pose::new(x, 0.0, 0.0), clearance_m)
                .twist
                .forward_m_s
        };
        assert_eq!(speed(1.0, 1.0), 0.38);
        assert_eq!(speed(1.0, 0.15), 0.19);
        assert!((speed(4.9, 1.0) - (2.0_f64 * 0.4 * 0.1).sqrt()).abs() < 1e-9);
        assert_eq!(speed(5.0, 1.0), 0.0);
    }

    #[test]
    fn in_the_wrong_direction_the_robot_turns_on_the_spot_until_it_is_right() {
        let mut follower = Follower::new(Config::default(), straight());
        for (heading, turns) in [
            (0.7, false),
            (0.9, true),
            (0.3, true),
            (0.1, false),
            (0.3, false),
        ] {
            let motion = step(&mut follower, Pose::new(0.0, 0.0, heading), 1.0);
            assert_eq!(motion.is_turning, turns, "{heading}");
            assert_eq!(motion.twist.forward_m_s == 0.0, turns);
        }
    }

    proptest! {
        #[test]
        fn the_arc_passes_through_the_point(x in 0.1..1.0, y in -1.0..1.0) {
            let local = Point::new(x, y);
            let curvature = curvature(local);
            // The angle between the tangent and the chord is half the turn.
            let turn = 2.0 * y.atan2(x);
            let way_m = if curvature == 0.0 { x } else { turn / curvature };
            let end = Pose::default().along_arc(way_m, way_m * curvature);
            prop_assert!(end.at.minus(local).length() < 1e-9);
        }

        #[test]
        fn a_turn_ends_at_its_angle(angle in -PI..PI) {
            let (mut left, mut rate, dt) = (angle, 0.0, 0.02);
            for _ in 0..500 {
                // Motors with a lag of 0.1 s.
                let wanted = turn_rate(left, 1.6, 2.5);
                rate += (wanted - rate) * dt / 0.1;
                left -= rate * dt;
                prop_assert!(left * angle.signum() > -0.1, "overshoot of {left}");
            }
            prop_assert!(left.abs() < 0.01);
        }
    }
}
