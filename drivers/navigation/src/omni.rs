//! Three omni wheels around a robot, as on LeKiwi: wheel speeds, and the motion of the body. PURE.
//!
//! An omni wheel rolls in one direction, and slides freely across it on its rollers. With three of them
//! around its centre, a robot drives in any direction, and turns at the same time.
//!
//! ```text
//!              ahead, x
//!                 |          Each wheel is known by its angle, counter-clockwise from ahead,
//!    left, 60  /  |  \       seen from above. Its rim is at the floor at the distance `radius_m`
//!             /   |   \      from the centre, and rolls around the centre: counter-clockwise
//!   y -------- centre         is positive.
//!                 |   \  right, -60
//!              back, 180
//! ```
//!
//! Metres, radians and seconds; turns are counter-clockwise. What limits speeds scales all of them by the
//! same factor, so the robot stays on its way.

use amber_map::{Point, Pose};

/// The motion of a body that can also move sideways.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Velocity {
    /// Metres per second ahead; negative is backwards.
    pub forward_m_s: f64,
    /// Metres per second to the left; negative is to the right.
    pub left_m_s: f64,
    /// Radians per second, counter-clockwise.
    pub turn_rad_s: f64,
}

/// A base with three omni wheels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OmniBase {
    /// How the rim of each wheel moves with the body.
    rows: [Row; 3],
    /// The inverse.
    columns: [Row; 3],
    max_rim_m_s: f64,
}

/// Factors for forward, left and turn.
type Row = [f64; 3];

/// No base has such wheels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImpossibleBase {
    /// Two wheels at the same place, for example.
    #[error("a base with wheels at these angles cannot move in all directions")]
    Angles,
    /// Not a positive number.
    #[error("the wheels need a distance from the centre and a speed")]
    Size,
}

/// With less, small errors of a wheel become large ones of the body.
const LEAST_SPREAD: f64 = 0.2;

impl Velocity {
    /// No motion.
    pub const STOP: Self = Self::new(0.0, 0.0, 0.0);

    /// Creates a motion from metres per second ahead and to the left, and radians per second.
    #[must_use]
    pub const fn new(forward_m_s: f64, left_m_s: f64, turn_rad_s: f64) -> Self {
        Self {
            forward_m_s,
            left_m_s,
            turn_rad_s,
        }
    }

    /// The same way at another speed.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let [forward_m_s, left_m_s, turn_rad_s] = self.all().map(|part| part * factor);
        Self::new(forward_m_s, left_m_s, turn_rad_s)
    }

    /// Whether all parts are finite numbers.
    #[must_use]
    pub fn is_finite(self) -> bool {
        self.all().into_iter().all(f64::is_finite)
    }

    /// Where a body is that had this velocity for a time.
    #[must_use]
    pub fn moved(self, pose: Pose, time_s: f64) -> Pose {
        let way = Point::new(self.forward_m_s, self.left_m_s).times(time_s);
        pose.along(way, self.turn_rad_s * time_s)
    }

    fn all(self) -> Row {
        [self.forward_m_s, self.left_m_s, self.turn_rad_s]
    }
}

impl OmniBase {
    /// Creates a base from the angles of its wheels, their distance from the centre, and the fastest
    /// speed of a rim.
    ///
    /// # Errors
    /// It could not move in all directions.
    pub fn new(
        angles_rad: [f64; 3],
        radius_m: f64,
        max_rim_m_s: f64,
    ) -> Result<Self, ImpossibleBase> {
        let is_size = |size: f64| size.is_finite() && size > 0.0;
        if !is_size(radius_m) || !is_size(max_rim_m_s) {
            return Err(ImpossibleBase::Size);
        }
        let rows = angles_rad.map(|angle| [-angle.sin(), angle.cos(), radius_m]);
        let [first, second, third] = rows;
        let columns = [
            cross(second, third),
            cross(third, first),
            cross(first, second),
        ];
        let spread = dot(first, columns[0]);
        // 2.6 for wheels at equal angles.
        if spread.is_nan() || (spread / radius_m).abs() < LEAST_SPREAD {
            return Err(ImpossibleBase::Angles);
        }
        Ok(Self {
            rows,
            columns: columns.map(|column| column.map(|part| part / spread)),
            max_rim_m_s,
        })
    }

    /// The speeds of the rims for a motion of the body, in metres per second, also if they are too fast.
    #[must_use]
    pub fn rims_m_s(&self, velocity: Velocity) -> [f64; 3] {
        self.rows.map(|row| dot(row, velocity.all()))
    }

    /// The motion of the body at these speeds of the rims, in metres per second.
    #[must_use]
    pub fn velocity(&self, rims_m_s: [f64; 3]) -> Velocity {
        let mut sum = [0.0; 3];
        for (column, rim_m_s) in self.columns.iter().zip(rims_m_s) {
            for (part, factor) in sum.iter_mut().zip(column) {
                *part += factor * rim_m_s;
            }
        }
        let [forward_m_s, left_m_s, turn_rad_s] = sum;
        Velocity::new(forward_m_s, left_m_s, turn_rad_s)
    }

    /// The same way, as fast as the wheels can if they cannot be so fast.
    #[must_use]
    pub fn limited(&self, velocity: Velocity) -> Velocity {
        let rims = self.rims_m_s(velocity).into_iter();
        let fastest_m_s = rims.fold(0.0, |fastest: f64, rim| fastest.max(rim.abs()));
        if fastest_m_s > self.max_rim_m_s {
            velocity.scaled(self.max_rim_m_s / fastest_m_s)
        } else {
            velocity
        }
    }

    /// The fastest ahead, to the left and around, each if the base does nothing else.
    #[must_use]
    pub fn limits(&self) -> Velocity {
        let fastest = |index: usize| {
            let rows = self.rows.iter().map(|row| row[index].abs());
            self.max_rim_m_s / rows.fold(f64::MIN_POSITIVE, f64::max)
        };
        Velocity::new(fastest(0), fastest(1), fastest(2))
    }
}

fn dot(one: Row, other: Row) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn cross([a, b, c]: Row, [x, y, z]: Row) -> Row {
    [b * z - c * y, c * x - a * z, a * y - b * x]
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, PI};

    use proptest::prelude::*;

    use super::*;

    /// Left, back and right wheel of LeKiwi, whose servos turn with at most 3000 steps of 4096 in a turn
    /// per second.
    fn lekiwi() -> OmniBase {
        let angles = [60.0, 180.0, -60.0].map(f64::to_radians);
        OmniBase::new(angles, 0.125, 3_000.0 / STEPS_PER_M).unwrap()
    }

    /// The wheels have a radius of 50 mm.
    const STEPS_PER_M: f64 = 4096.0 / (2.0 * PI * 0.05);

    #[test]
    fn the_wheels_turn_as_those_of_lekiwi() {
        for (forward, left, turn_deg_s, expected) in [
            (0.1, 0.0, 0.0, [-1_129, 0, 1_129]),
            (0.0, 0.1, 0.0, [652, -1_304, 652]),
            (0.0, 0.0, 30.0, [853, 853, 853]),
            (0.3, 0.0, 0.0, [-3_000, 0, 3_000]),
        ] {
            let velocity = Velocity::new(forward, left, f64::to_radians(turn_deg_s));
            let rims = lekiwi().rims_m_s(lekiwi().limited(velocity));
            let steps = rims.map(|rim| (rim * STEPS_PER_M).round() as i32);
            for (step, expected) in steps.into_iter().zip(expected) {
                assert!((step - expected).abs() <= 1, "{velocity:?}: {steps:?}");
            }
        }
    }

    #[test]
    fn all_parts_are_slowed_down_alike() {
        let wanted = Velocity::new(0.2, -0.1, f64::to_radians(60.0));
        let rims = lekiwi().rims_m_s(wanted);
        let steps = rims.map(|rim| (rim * STEPS_PER_M).round());
        assert_eq!(steps, [-1_203.0, 3_010.0, 3_313.0]);
        let driven = lekiwi().limited(wanted);
        let factor = driven.forward_m_s / wanted.forward_m_s;
        assert!((factor - 0.9055).abs() < 1e-4, "{factor}");
        for (driven, wanted) in driven.all().into_iter().zip(wanted.all()) {
            assert!((driven - wanted * factor).abs() < 1e-9);
        }
        let slow = Velocity::new(0.01, 0.02, 0.1);
        assert_eq!(lekiwi().limited(slow), slow);
    }

    #[test]
    fn the_limits_are_those_of_the_wheels() {
        let limits = lekiwi().limits();
        assert!((limits.forward_m_s - 0.2657).abs() < 1e-4, "{limits:?}");
        assert!((limits.left_m_s - 0.2301).abs() < 1e-4, "{limits:?}");
        let turn_deg_s = limits.turn_rad_s.to_degrees();
        assert!((turn_deg_s - 105.5).abs() < 0.1, "{turn_deg_s}");
    }

    #[test]
    fn bases_that_cannot_drive_everywhere_are_rejected() {
        for (angles, radius, speed, problem) in [
            ([0.0, 0.0, 180.0], 0.1, 1.0, ImpossibleBase::Angles),
            ([0.0, 5.0, 355.0], 0.1, 1.0, ImpossibleBase::Angles),
            ([f64::NAN, 5.0, 355.0], 0.1, 1.0, ImpossibleBase::Angles),
            ([0.0, 120.0, 240.0], 0.0, 1.0, ImpossibleBase::Size),
            ([0.0, 120.0, 240.0], 0.1, f64::NAN, ImpossibleBase::Size),
        ] {
            let base = OmniBase::new(angles.map(f64::to_radians), radius, speed);
            assert_eq!(base, Err(problem), "{angles:?}");
        }
    }

    #[test]
    fn a_body_moves_on_an_arc() {
        // A quarter of a circle of 1 m to the left.
        let ahead = Velocity::new(FRAC_PI_2, 0.0, FRAC_PI_2);
        let pose = ahead.moved(Pose::default(), 1.0);
        assert!((pose.at.x - 1.0).abs() < 1e-9 && (pose.at.y - 1.0).abs() < 1e-9);
        assert!((pose.heading - FRAC_PI_2).abs() < 1e-9);
        // The same circle, with its side ahead.
        let left = Velocity::new(0.0, FRAC_PI_2, FRAC_PI_2);
        let pose = left.moved(Pose::default(), 1.0);
        assert!((pose.at.x + 1.0).abs() < 1e-9 && (pose.at.y - 1.0).abs() < 1e-9);
        let straight = Velocity::new(0.0, -0.5, 0.0).moved(Pose::new(1.0, 2.0, FRAC_PI_2), 2.0);
        assert!((straight.at.x - 2.0).abs() < 1e-9, "{straight:?}");
    }

    proptest! {
        #[test]
        fn wheels_and_body_are_inverse(
            forward in -0.3..0.3, left in -0.3..0.3, turn in -2.0..2.0,
            first in -20.0..20.0_f64, radius in 0.05..0.5,
        ) {
            let angles = [60.0 + first, 180.0 - first, -60.0].map(f64::to_radians);
            let base = OmniBase::new(angles, radius, 1.0).unwrap();
            let velocity = Velocity::new(forward, left, turn);
            let back = base.velocity(base.rims_m_s(velocity));
            for (there, back) in velocity.all().into_iter().zip(back.all()) {
                prop_assert!((there - back).abs() < 1e-9, "{velocity:?} {back:?}");
            }
        }

        #[test]
        fn no_wheel_is_too_fast(
            forward in -3.0..3.0, left in -3.0..3.0, turn in -20.0..20.0,
        ) {
            let driven = lekiwi().limited(Velocity::new(forward, left, turn));
            for rim_m_s in lekiwi().rims_m_s(driven) {
                prop_assert!(rim_m_s.abs() * STEPS_PER_M < 3_000.001);
            }
        }

        #[test]
        fn a_way_ahead_is_an_arc(way in -1.0..1.0, turn in -7.0..7.0, heading in -4.0..4.0) {
            let start = Pose::new(0.3, -0.2, heading);
            let [arc, moved] = [start.along_arc(way, turn), start.along(Point::new(way, 0.0), turn)];
            prop_assert!(arc.at.minus(moved.at).length() < 1e-9);
            prop_assert!((arc.heading - moved.heading).abs() < 1e-9);
        }
    }
}
