//! The speeds of four wheels. PURE.

use amber_proto::{collision_avoidance, roboclaw};

/// One speed per wheel in mm/s, positive = forward.
///
/// ```
/// # use amber_values as amber_client;
/// use amber_client::WheelSpeeds;
///
/// // The left side is faster: a curve to the right.
/// let curve = WheelSpeeds::sides(300, 200);
/// assert_eq!((curve.rear_left_mm_s, curve.rear_right_mm_s), (300, 200));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WheelSpeeds {
    /// Front left, mm/s.
    pub front_left_mm_s: i32,
    /// Front right, mm/s.
    pub front_right_mm_s: i32,
    /// Rear left, mm/s.
    pub rear_left_mm_s: i32,
    /// Rear right, mm/s.
    pub rear_right_mm_s: i32,
}

impl WheelSpeeds {
    /// All wheels stopped.
    pub const STOP: Self = Self::all(0);

    /// The same speed for all wheels: straight on, or back when negative.
    pub const fn all(mm_s: i32) -> Self {
        Self::sides(mm_s, mm_s)
    }

    /// One speed for each side. The robot turns to its slower side, and on the
    /// spot with `sides(v, -v)` (to the right when `v` is positive).
    pub const fn sides(left_mm_s: i32, right_mm_s: i32) -> Self {
        Self {
            front_left_mm_s: left_mm_s,
            front_right_mm_s: right_mm_s,
            rear_left_mm_s: left_mm_s,
            rear_right_mm_s: right_mm_s,
        }
    }

    /// The largest absolute speed of the four wheels, mm/s.
    pub fn fastest_mm_s(self) -> u32 {
        [
            self.front_left_mm_s,
            self.front_right_mm_s,
            self.rear_left_mm_s,
            self.rear_right_mm_s,
        ]
        .map(i32::unsigned_abs)
        .into_iter()
        .fold(0, u32::max)
    }
}

/// Two devices have their own messages with the same fields.
macro_rules! wheel_speeds {
    ($message:ty) => {
        impl From<WheelSpeeds> for $message {
            fn from(speeds: WheelSpeeds) -> Self {
                Self {
                    front_left_speed: Some(speeds.front_left_mm_s),
                    front_right_speed: Some(speeds.front_right_mm_s),
                    rear_left_speed: Some(speeds.rear_left_mm_s),
                    rear_right_speed: Some(speeds.rear_right_mm_s),
                }
            }
        }

        /// A speed that is missing is 0.
        impl From<$message> for WheelSpeeds {
            fn from(speeds: $message) -> Self {
                Self {
                    front_left_mm_s: speeds.front_left_speed.unwrap_or(0),
                    front_right_mm_s: speeds.front_right_speed.unwrap_or(0),
                    rear_left_mm_s: speeds.rear_left_speed.unwrap_or(0),
                    rear_right_mm_s: speeds.rear_right_speed.unwrap_or(0),
                }
            }
        }
    };
}

wheel_speeds!(roboclaw::MotorsSpeed);
wheel_speeds!(collision_avoidance::MotorsSpeed);

#[cfg(test)]
mod tests {
    use amber_proto::roboclaw::MotorsSpeed;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_fastest_wheel_is_found_in_both_directions() {
        let speeds = WheelSpeeds {
            rear_left_mm_s: i32::MIN,
            ..WheelSpeeds::STOP
        };
        assert_eq!(speeds.fastest_mm_s(), 1 << 31);
        assert_eq!(WheelSpeeds::sides(-300, 200).fastest_mm_s(), 300);
    }

    #[test]
    fn a_missing_speed_is_0() {
        let message = MotorsSpeed {
            rear_right_speed: Some(-70),
            ..MotorsSpeed::default()
        };
        let expected = WheelSpeeds {
            rear_right_mm_s: -70,
            ..WheelSpeeds::STOP
        };
        assert_eq!(WheelSpeeds::from(message), expected);
    }

    proptest! {
        #[test]
        fn a_message_keeps_each_speed(speeds in any::<[i32; 4]>()) {
            let [front_left_mm_s, front_right_mm_s, rear_left_mm_s, rear_right_mm_s] = speeds;
            let speeds = WheelSpeeds {
                front_left_mm_s,
                front_right_mm_s,
                rear_left_mm_s,
                rear_right_mm_s,
            };
            let message = MotorsSpeed::from(speeds);
            prop_assert_eq!(message.front_left_speed, Some(front_left_mm_s));
            prop_assert_eq!(message.rear_right_speed, Some(rear_right_mm_s));
            prop_assert_eq!(WheelSpeeds::from(message), speeds);
        }
    }
}
