//! The wheels of a skid-steer robot: wheel speeds, the motion of the body, and speed limits. PURE.
//!
//! Four wheels; those on one side turn alike. Such a robot turns by skidding, as if its wheels were
//! farther apart than they are: the *effective track* is about 1.6 times the real one (Mandow et
//! al., "Experimental kinematics for wheeled skid-steer mobile robots", IROS 2007). It depends on
//! the floor, so it is measured, not read from a drawing.
//!
//! Metres, radians and seconds; turns are counter-clockwise. Everything that limits speeds scales
//! all wheels by the same factor, so the robot stays on its arc.

/// The motion of the robot's body.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Twist {
    /// Metres per second ahead; negative is backwards.
    pub forward_m_s: f64,
    /// Radians per second, counter-clockwise.
    pub turn_rad_s: f64,
}

/// The speeds of the wheels in metres per second, positive forward.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wheels {
    /// Front left.
    pub front_left_m_s: f64,
    /// Front right.
    pub front_right_m_s: f64,
    /// Rear left.
    pub rear_left_m_s: f64,
    /// Rear right.
    pub rear_right_m_s: f64,
}

/// The drive of the robot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SkidSteer {
    /// The effective track in metres: the distance between left and right wheels at which turns
    /// come out right.
    pub track_m: f64,
    /// The maximum speed of a wheel in metres per second.
    pub max_wheel_m_s: f64,
}

/// The Capo robot: 0.42 m as in both original Location drivers, 1200 mm/s as its RoboClaw driver
/// accepts.
impl Default for SkidSteer {
    fn default() -> Self {
        Self {
            track_m: 0.42,
            max_wheel_m_s: 1.2,
        }
    }
}

impl SkidSteer {
    /// The wheel speeds for a motion of the body. If a wheel would exceed the maximum, all wheels are
    /// slowed down by the same factor.
    #[must_use]
    pub fn wheels(&self, twist: Twist) -> Wheels {
        let half = twist.turn_rad_s * self.track_m / 2.0;
        let wheels = Wheels::sides(twist.forward_m_s - half, twist.forward_m_s + half);
        wheels.limited(self.max_wheel_m_s)
    }

    /// The motion of the body at these wheel speeds.
    #[must_use]
    pub fn twist(&self, wheels: Wheels) -> Twist {
        let (left, right) = (wheels.left_m_s(), wheels.right_m_s());
        Twist {
            forward_m_s: (left + right) / 2.0,
            turn_rad_s: (right - left) / self.track_m,
        }
    }
}

impl Twist {
    /// No motion.
    pub const STOP: Self = Self {
        forward_m_s: 0.0,
        turn_rad_s: 0.0,
    };

    /// Creates a motion from metres per second and radians per second.
    #[must_use]
    pub const fn new(forward_m_s: f64, turn_rad_s: f64) -> Self {
        Self {
            forward_m_s,
            turn_rad_s,
        }
    }

    /// The same arc at another speed.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self::new(self.forward_m_s * factor, self.turn_rad_s * factor)
    }
}

impl Wheels {
    /// All wheels at rest.
    pub const STOP: Self = Self::sides(0.0, 0.0);

    /// One speed for each side.
    #[must_use]
    pub const fn sides(left_m_s: f64, right_m_s: f64) -> Self {
        Self {
            front_left_m_s: left_m_s,
            front_right_m_s: right_m_s,
            rear_left_m_s: left_m_s,
            rear_right_m_s: right_m_s,
        }
    }

    /// The four speeds in the order of [`Wheels::all_m_s`].
    #[must_use]
    pub const fn of(speeds_m_s: [f64; 4]) -> Self {
        let [
            front_left_m_s,
            front_right_m_s,
            rear_left_m_s,
            rear_right_m_s,
        ] = speeds_m_s;
        Self {
            front_left_m_s,
            front_right_m_s,
            rear_left_m_s,
            rear_right_m_s,
        }
    }

    /// The four speeds: front left, front right, rear left, rear right.
    #[must_use]
    pub fn all_m_s(self) -> [f64; 4] {
        [
            self.front_left_m_s,
            self.front_right_m_s,
            self.rear_left_m_s,
            self.rear_right_m_s,
        ]
    }

    /// The mean speed of the left side.
    #[must_use]
    pub fn left_m_s(self) -> f64 {
        f64::midpoint(self.front_left_m_s, self.rear_left_m_s)
    }

    /// The mean speed of the right side.
    #[must_use]
    pub fn right_m_s(self) -> f64 {
        f64::midpoint(self.front_right_m_s, self.rear_right_m_s)
    }

    /// The largest absolute speed.
    #[must_use]
    pub fn fastest_m_s(self) -> f64 {
        self.all_m_s()
            .into_iter()
            .fold(0.0, |fastest, speed| fastest.max(speed.abs()))
    }

    /// All speeds times a factor.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            front_left_m_s: self.front_left_m_s * factor,
            front_right_m_s: self.front_right_m_s * factor,
            rear_left_m_s: self.rear_left_m_s * factor,
            rear_right_m_s: self.rear_right_m_s * factor,
        }
    }

    /// These speeds, slowed down by one factor so that no wheel exceeds a maximum.
    #[must_use]
    pub fn limited(self, max_m_s: f64) -> Self {
        let fastest_m_s = self.fastest_m_s();
        if fastest_m_s > max_m_s {
            self.scaled(max_m_s / fastest_m_s)
        } else {
            self
        }
    }

    /// Whether all speeds are finite numbers.
    #[must_use]
    pub fn is_finite(self) -> bool {
        self.all_m_s().into_iter().all(f64::is_finite)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DRIVE: SkidSteer = SkidSteer {
        track_m: 0.4,
        max_wheel_m_s: 1.0,
    };

    #[test]
    fn faster_right_wheels_turn_the_robot_left() {
        for (left, right, forward, turn) in [
            (0.3, 0.3, 0.3, 0.0),
            (-0.2, 0.2, 0.0, 1.0),
            (0.1, 0.3, 0.2, 0.5),
            (-0.3, -0.1, -0.2, 0.5),
        ] {
            let twist = DRIVE.twist(Wheels::sides(left, right));
            assert!((twist.forward_m_s - forward).abs() < 1e-9, "{twist:?}");
            assert!((twist.turn_rad_s - turn).abs() < 1e-9, "{twist:?}");
        }
    }

    #[test]
    fn the_wheels_of_a_side_are_averaged() {
        let wheels = Wheels {
            front_left_m_s: 0.2,
            rear_left_m_s: 0.4,
            ..Wheels::sides(0.0, -0.1)
        };
        assert!((wheels.left_m_s() - 0.3).abs() < 1e-9);
        assert!((wheels.right_m_s() + 0.1).abs() < 1e-9);
    }

    fn speed() -> impl Strategy<Value = f64> {
        -3.0..3.0
    }

    proptest! {
        #[test]
        fn a_limit_never_speeds_up_a_wheel_and_keeps_the_ratio(
            speeds in prop::array::uniform4(speed()),
            max_m_s in 0.0..3.0,
        ) {
            let [front_left_m_s, front_right_m_s, rear_left_m_s, rear_right_m_s] = speeds;
            let before = Wheels { front_left_m_s, front_right_m_s, rear_left_m_s, rear_right_m_s };
            let after = before.limited(max_m_s);
            prop_assert!(after.fastest_m_s() <= max_m_s + 1e-12);
            let (before, after) = (before.all_m_s(), after.all_m_s());
            for (one, slowed) in before.iter().zip(after) {
                prop_assert!(slowed.abs() <= one.abs() + 1e-12);
                for (other, other_slowed) in before.iter().zip(after) {
                    prop_assert!((one * other_slowed - other * slowed).abs() < 1e-9);
                }
            }
        }

        #[test]
        fn wheels_and_twist_are_inverse(forward in -0.4..0.4, turn in -2.0..2.0) {
            let twist = DRIVE.twist(DRIVE.wheels(Twist::new(forward, turn)));
            prop_assert!((twist.forward_m_s - forward).abs() < 1e-9);
            prop_assert!((twist.turn_rad_s - turn).abs() < 1e-9);
        }
    }
}
