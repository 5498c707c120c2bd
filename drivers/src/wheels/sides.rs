//! One speed for both wheels of a side, as bases with two driven wheels have it. PURE.

use amber_values::WheelSpeeds;

/// The speeds of the two sides of a base, in mm/s, positive forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sides {
    /// The left side.
    pub left_mm_s: i32,
    /// The right side.
    pub right_mm_s: i32,
}

impl Sides {
    /// The mean of the wheels of each side.
    pub fn of(speeds: WheelSpeeds) -> Self {
        Self {
            left_mm_s: mean(speeds.front_left_mm_s, speeds.rear_left_mm_s),
            right_mm_s: mean(speeds.front_right_mm_s, speeds.rear_right_mm_s),
        }
    }

    /// The same speed for both wheels of a side.
    pub fn wheels(self) -> WheelSpeeds {
        WheelSpeeds::sides(self.left_mm_s, self.right_mm_s)
    }
}

/// The mean, truncated towards zero.
fn mean(front: i32, rear: i32) -> i32 {
    let mean = (i64::from(front) + i64::from(rear)) / 2;
    // Between two numbers of 32 bits.
    mean as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_wheels_of_a_side_have_one_speed() {
        let speeds = WheelSpeeds::sides(-300, 200);
        let sides = Sides::of(speeds);
        assert_eq!((sides.left_mm_s, sides.right_mm_s), (-300, 200));
        assert_eq!(sides.wheels(), speeds);
        let twisted = WheelSpeeds {
            front_left_mm_s: 100,
            front_right_mm_s: i32::MAX,
            rear_left_mm_s: -300,
            rear_right_mm_s: i32::MAX,
        };
        let sides = Sides::of(twisted);
        assert_eq!((sides.left_mm_s, sides.right_mm_s), (-100, i32::MAX));
    }
}
