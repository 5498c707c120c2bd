//! When the robot touches a point if it stays on its arc. PURE.
//!
//! Seen from the robot, a fixed point moves on a circle around the centre of the turn, or on a line
//! if the robot drives straight on. The time of the first crossing with the footprint is computed
//! exactly, so there is no step width that a thin post could slip through.

use std::f64::consts::TAU;

use amber_map::Point;

use crate::kinematics::Twist;

/// Arcs with a larger radius count as straight lines: over one metre the error is 0.5 mm.
const STRAIGHT_RADIUS_M: f64 = 1_000.0;

/// A rectangle around the robot's centre: x ahead, y to the left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Footprint {
    /// From the centre to the front.
    pub front_m: f64,
    /// From the centre to the rear.
    pub rear_m: f64,
    /// From the centre to either side.
    pub half_width_m: f64,
}

impl Footprint {
    /// Whether a point is inside.
    #[must_use]
    pub fn contains(&self, point: Point) -> bool {
        point.x <= self.front_m && point.x >= -self.rear_m && point.y.abs() <= self.half_width_m
    }

    /// The distance from a point to the rectangle; 0 inside.
    #[must_use]
    pub fn distance_m(&self, point: Point) -> f64 {
        let ahead = (point.x - self.front_m)
            .max(-self.rear_m - point.x)
            .max(0.0);
        let beside = (point.y.abs() - self.half_width_m).max(0.0);
        ahead.hypot(beside)
    }

    /// The distance from a point to the edge of the rectangle; negative inside.
    #[must_use]
    pub fn signed_distance_m(&self, point: Point) -> f64 {
        let ahead = (point.x - self.front_m).max(-self.rear_m - point.x);
        let beside = point.y.abs() - self.half_width_m;
        if ahead < 0.0 && beside < 0.0 {
            ahead.max(beside)
        } else {
            ahead.max(0.0).hypot(beside.max(0.0))
        }
    }

    /// The distance of the farthest corner from the centre.
    #[must_use]
    pub fn radius_m(&self) -> f64 {
        self.front_m.max(self.rear_m).hypot(self.half_width_m)
    }

    /// The time in seconds until the robot touches a point if it keeps this motion; `None` if it
    /// never does, 0 if the point is inside.
    #[must_use]
    pub fn time_to_contact_s(&self, point: Point, twist: Twist) -> Option<f64> {
        if self.contains(point) {
            return Some(0.0);
        }
        let Twist {
            forward_m_s,
            turn_rad_s,
        } = twist;
        if turn_rad_s.abs() * STRAIGHT_RADIUS_M <= forward_m_s.abs() {
            self.straight_s(point, forward_m_s)
        } else {
            self.curved_s(point, forward_m_s / turn_rad_s, turn_rad_s)
        }
    }

    fn straight_s(&self, point: Point, forward_m_s: f64) -> Option<f64> {
        let way_m = if forward_m_s > 0.0 {
            point.x - self.front_m
        } else {
            -self.rear_m - point.x
        };
        (forward_m_s != 0.0 && way_m >= 0.0 && point.y.abs() <= self.half_width_m)
            .then(|| way_m / forward_m_s.abs())
    }

    /// The centre of the turn is `centre_m` to the left of the robot's centre.
    fn curved_s(&self, point: Point, centre_m: f64, turn_rad_s: f64) -> Option<f64> {
        let from_centre = Point::new(point.x, point.y - centre_m);
        let radius_m = from_centre.length();
        let start_rad = from_centre.y.atan2(from_centre.x);
        // Seen from the robot, the point turns the other way.
        let direction = -turn_rad_s.signum();
        let mut first_rad = f64::INFINITY;
        let mut crossing = |x: f64, y: f64| {
            let angle = (y - centre_m).atan2(x);
            first_rad = first_rad.min(((angle - start_rad) * direction).rem_euclid(TAU));
        };
        for x in [self.front_m, -self.rear_m] {
            let square = radius_m * radius_m - x * x;
            if square >= 0.0 {
                for y in [centre_m + square.sqrt(), centre_m - square.sqrt()] {
                    if y.abs() <= self.half_width_m {
                        crossing(x, y);
                    }
                }
            }
        }
        for y in [self.half_width_m, -self.half_width_m] {
            let square = radius_m * radius_m - (y - centre_m) * (y - centre_m);
            if square >= 0.0 {
                for x in [square.sqrt(), -square.sqrt()] {
                    if x <= self.front_m && x >= -self.rear_m {
                        crossing(x, y);
                    }
                }
            }
        }
        first_rad.is_finite().then(|| first_rad / turn_rad_s.abs())
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use amber_map::Pose;
    use proptest::prelude::*;

    use super::*;

    const FOOTPRINT: Footprint = Footprint {
        front_m: 0.2,
        rear_m: 0.15,
        half_width_m: 0.1,
    };

    fn time(x: f64, y: f64, forward: f64, turn: f64) -> Option<f64> {
        FOOTPRINT.time_to_contact_s(Point::new(x, y), Twist::new(forward, turn))
    }

    #[test]
    fn a_straight_way_ends_at_the_front_or_the_rear() {
        for (x, y, forward, expected) in [
            (0.7, 0.0, 0.5, Some(1.0)),
            (0.7, 0.09, 0.5, Some(1.0)),
            (0.7, 0.11, 0.5, None),
            (0.7, 0.0, -0.5, None),
            (-0.65, 0.0, -0.5, Some(1.0)),
            (0.7, 0.0, 0.0, None),
            (0.1, 0.0, 0.0, Some(0.0)),
        ] {
            let found = time(x, y, forward, 0.0);
            let same = match (found, expected) {
                (Some(found), Some(expected)) => f64::abs(found - expected) < 1e-9,
                (found, expected) => found == expected,
            };
            assert!(same, "{x} {y} {forward}: {found:?}");
        }
    }

    #[test]
    fn a_turn_on_the_spot_reaches_points_within_its_corners() {
        // The front left corner is 0.2236 m away, at 26.6 degrees.
        let angle = 0.1_f64.atan2(0.2);
        let expected = FRAC_PI_2 - angle;
        // Above the corner's circle there is no contact; inside it the corner or the side comes.
        assert_eq!(time(0.0, 0.23, 0.0, 1.0), None);
        let found = time(0.0, 0.223_6, 0.0, 1.0).expect("contact");
        assert!((found - expected).abs() < 0.01, "{found}");
    }

    /// Whether the robot is at the point, by following the arc in small steps.
    fn brute_force(point: Point, twist: Twist, limit_s: f64) -> Option<f64> {
        let step_s = 0.001;
        (0..=(limit_s / step_s) as u32)
            .map(|step| f64::from(step) * step_s)
            .find(|time_s| {
                let pose = Pose::default()
                    .along_arc(twist.forward_m_s * time_s, twist.turn_rad_s * time_s);
                FOOTPRINT.contains(pose.local(point))
            })
    }

    proptest! {
        #[test]
        fn it_equals_small_steps_along_the_arc(
            x in -1.0..1.0, y in -1.0..1.0, forward in -0.7..0.7, turn in -2.0..2.0,
        ) {
            let (point, twist) = (Point::new(x, y), Twist::new(forward, turn));
            let limit_s = 3.0;
            let found = FOOTPRINT.time_to_contact_s(point, twist);
            match brute_force(point, twist, limit_s) {
                // A corner may pass a point between two steps, but not the other way round.
                None => {}
                Some(expected) => {
                    let found = found.expect("contact");
                    prop_assert!(found <= expected + 1e-6, "{found} {expected}");
                }
            }
            if let Some(found) = found.filter(|found| *found < limit_s) {
                let at = Pose::default().along_arc(forward * found, turn * found);
                prop_assert!(FOOTPRINT.distance_m(at.local(point)) < 1e-6);
                // Just before, there is no contact.
                if found > 0.002 {
                    let before = found - 0.001;
                    let at = Pose::default().along_arc(forward * before, turn * before);
                    prop_assert!(!FOOTPRINT.contains(at.local(point)));
                }
            }
        }
    }
}
