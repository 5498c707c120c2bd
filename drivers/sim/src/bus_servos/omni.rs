//! The wheels of a base like LeKiwi, which servos turn. PURE.
//!
//! Three omni wheels stand around the centre of the robot: front left, at the back, and front right. Each
//! rolls around the centre, counter-clockwise if its servo turns forward, and slides across that
//! direction on its rollers.

use std::f64::consts::PI;

use crate::control::BusServo;
use crate::world::BodySpeed;

/// The radius of a wheel.
const WHEEL_RADIUS_M: f64 = 0.05;
/// From the centre of the robot to a wheel.
const BASE_RADIUS_M: f64 = 0.125;
/// In a turn of a servo.
const STEPS: f64 = 4096.0;

/// The ids of the servos.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OmniWheels {
    left: u8,
    back: u8,
    right: u8,
}

impl OmniWheels {
    /// Those of LeKiwi.
    pub(crate) const LEKIWI: Self = Self {
        left: 7,
        back: 8,
        right: 9,
    };

    /// How the robot moves if these servos turn so. One that is not there stands still.
    pub(crate) fn body(self, servos: impl Iterator<Item = BusServo>) -> BodySpeed {
        let (mut left, mut back, mut right) = (0.0, 0.0, 0.0);
        for servo in servos {
            let rim_m_s = servo.steps_per_s / STEPS * 2.0 * PI * WHEEL_RADIUS_M;
            match servo.id {
                id if id == self.left => left = rim_m_s,
                id if id == self.back => back = rim_m_s,
                id if id == self.right => right = rim_m_s,
                _ => {}
            }
        }
        BodySpeed {
            ahead_m_s: (right - left) / 3_f64.sqrt(),
            left_m_s: (left - 2.0 * back + right) / 3.0,
            turn_rad_s: (left + back + right) / (3.0 * BASE_RADIUS_M),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turning(steps_per_s: [f64; 3]) -> BodySpeed {
        let servo = |(id, steps_per_s)| BusServo {
            id,
            steps: 0.0,
            steps_per_s,
            torque: true,
            memory_writes: 0,
        };
        let all = [6, 7, 8, 9].into_iter();
        let [left, back, right] = steps_per_s;
        let servos = all.zip([500.0, left, back, right]).map(servo);
        OmniWheels::LEKIWI.body(servos)
    }

    #[test]
    fn the_robot_moves_as_lekiwi_does() {
        for (steps_per_s, ahead_m_s, left_m_s, turn_deg_s) in [
            ([0.0, 0.0, 0.0], 0.0, 0.0, 0.0),
            ([-1_129.0, 0.0, 1_129.0], 0.1, 0.0, 0.0),
            ([652.0, -1_304.0, 652.0], 0.0, 0.1, 0.0),
            ([853.0, 853.0, 853.0], 0.0, 0.0, 30.0),
        ] {
            let found = turning(steps_per_s);
            assert!((found.ahead_m_s - ahead_m_s).abs() < 1e-4, "{found:?}");
            assert!((found.left_m_s - left_m_s).abs() < 1e-4, "{found:?}");
            let found_deg_s = found.turn_rad_s.to_degrees();
            assert!((found_deg_s - turn_deg_s).abs() < 0.05, "{found:?}");
        }
    }
}
