//! Conversions between mm/s and turns per second, and which axis drives which wheels. PURE.

use crate::wheels::{Sides, Wiring};

/// The wheels and their motors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wheels {
    /// Turns of a motor for a way of 1 mm.
    pub turns_per_mm: f64,
    /// How the motors are connected.
    pub wiring: Wiring,
}

impl Wheels {
    /// The velocities of both axes, in turns per second.
    pub fn turns_s(&self, sides: Sides) -> [f64; 2] {
        let wheels = [sides.left_mm_s, sides.right_mm_s].map(f64::from);
        (self.wiring.motors(wheels)).map(|mm_s| mm_s * self.turns_per_mm)
    }

    /// The speeds, for the velocities of both axes in turns per second. They saturate.
    pub fn sides(&self, turns_s: [f64; 2]) -> Sides {
        let motors_mm_s = turns_s.map(|turns_s| turns_s / self.turns_per_mm);
        let [left_mm_s, right_mm_s] =
            (self.wiring.wheels(motors_mm_s)).map(|mm_s| mm_s.round() as i32);
        Sides {
            left_mm_s,
            right_mm_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_become_turns_per_second_and_back() {
        let wheels = Wheels {
            turns_per_mm: 1.0 / (std::f64::consts::PI * 170.0),
            wiring: Wiring {
                swaps_sides: false,
                reverses_left: false,
                reverses_right: true,
            },
        };
        let sides = Sides {
            left_mm_s: 500,
            right_mm_s: -1000,
        };
        let [zero, one] = wheels.turns_s(sides);
        assert!((zero - 0.9362).abs() < 1e-4 && (one - 1.8724).abs() < 1e-4);
        assert_eq!(wheels.sides([zero, one]), sides);
        assert_eq!(wheels.sides([f64::MAX, 0.0]).left_mm_s, i32::MAX);
    }
}
