//! How the motors of a base are connected. PURE.

use std::ops::Neg;

/// How the two motors of a base are connected, with their encoders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wiring {
    /// Whether the left wheel is connected as the right one.
    pub swaps_sides: bool,
    /// Whether the left wheel turns and counts backwards.
    pub reverses_left: bool,
    /// Whether the right wheel turns and counts backwards.
    pub reverses_right: bool,
}

impl Wiring {
    /// The numbers for the motors that are connected as the left and the right one, from those of the
    /// left and the right wheel.
    pub fn motors<T: Neg<Output = T>>(self, wheels: [T; 2]) -> [T; 2] {
        self.swapped(self.reversed(wheels))
    }

    /// The numbers of the left and the right wheel, from those of the motors.
    pub fn wheels<T: Neg<Output = T>>(self, motors: [T; 2]) -> [T; 2] {
        self.reversed(self.swapped(motors))
    }

    fn swapped<T>(self, [left, right]: [T; 2]) -> [T; 2] {
        match self.swaps_sides {
            false => [left, right],
            true => [right, left],
        }
    }

    fn reversed<T: Neg<Output = T>>(self, [left, right]: [T; 2]) -> [T; 2] {
        let turned = |number: T, reverses| if reverses { -number } else { number };
        [
            turned(left, self.reverses_left),
            turned(right, self.reverses_right),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_are_swapped_and_reversed() {
        for (swaps_sides, reverses_left, reverses_right, motors) in [
            (false, false, false, [1, 2]),
            (true, false, false, [2, 1]),
            (false, true, false, [-1, 2]),
            (true, true, false, [2, -1]),
            (true, false, true, [-2, 1]),
        ] {
            let wiring = Wiring {
                swaps_sides,
                reverses_left,
                reverses_right,
            };
            assert_eq!(wiring.motors([1, 2]), motors);
            assert_eq!(wiring.wheels(motors), [1, 2]);
        }
    }
}
