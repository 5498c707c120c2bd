//! The controllers, and conversions between mm/s and encoder pulses. M1 is the right motor, M2 the
//! left one. PURE.

use amber_values::WheelSpeeds;

use super::protocol::Command;
use crate::wheels::{Sides, Wiring};

/// A controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The controller of the front wheels.
    Front,
    /// The controller of the rear wheels.
    Rear,
    /// The only controller. Each motor drives the wheels of a side.
    Only,
}

impl Unit {
    /// Two controllers, in the order of the bus.
    pub const BOTH: [Self; 2] = [Self::Front, Self::Rear];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Front => "front controller",
            Self::Rear => "rear controller",
            Self::Only => "controller",
        }
    }

    /// The place in a list of the controllers.
    pub fn index(self) -> usize {
        match self {
            Self::Front | Self::Only => 0,
            Self::Rear => 1,
        }
    }
}

/// The controllers on the line, with their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Two controllers drive four wheels.
    Pair {
        /// The address of the controller of the front wheels.
        front: u8,
        /// The address of the controller of the rear wheels.
        rear: u8,
    },
    /// One controller drives the wheels of both sides.
    One {
        /// Its address.
        address: u8,
    },
}

impl Layout {
    /// The controllers, in the order of the bus.
    pub fn units(self) -> &'static [Unit] {
        match self {
            Self::Pair { .. } => &Unit::BOTH,
            Self::One { .. } => &[Unit::Only],
        }
    }

    /// The address of a controller.
    pub fn address(self, unit: Unit) -> u8 {
        match (self, unit) {
            (Self::One { address }, _) => address,
            (Self::Pair { front, .. }, Unit::Front | Unit::Only) => front,
            (Self::Pair { rear, .. }, Unit::Rear) => rear,
        }
    }
}

/// The wheels and their encoders.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wheel {
    /// In millimetres.
    pub radius_mm: f64,
    /// Encoder pulses per turn.
    pub pulses_per_turn: f64,
    /// How the motors of each controller are connected.
    pub wiring: Wiring,
}

impl Wheel {
    /// Pulses per second at a speed in mm/s. Truncated towards zero in both directions, as clients
    /// of the original expect.
    #[allow(clippy::cast_possible_truncation)] // It saturates.
    pub fn qpps(self, mm_s: i32) -> i32 {
        // Each number also has its negative.
        ((f64::from(mm_s) * self.pulses_per_mm()) as i32).max(-i32::MAX)
    }

    /// The speed in mm/s for this number of pulses per second.
    #[allow(clippy::cast_possible_truncation)] // It saturates.
    pub fn mm_s(self, qpps: i32) -> i32 {
        ((f64::from(qpps) / self.pulses_per_mm()) as i32).max(-i32::MAX)
    }

    /// The drive command for a controller.
    pub fn drive(self, unit: Unit, speeds: WheelSpeeds) -> Command {
        let sides_mm_s = match unit {
            Unit::Front => [speeds.front_left_mm_s, speeds.front_right_mm_s],
            Unit::Rear => [speeds.rear_left_mm_s, speeds.rear_right_mm_s],
            Unit::Only => {
                let sides = Sides::of(speeds);
                [sides.left_mm_s, sides.right_mm_s]
            }
        };
        let [m2, m1] = self.wiring.motors(sides_mm_s.map(|mm_s| self.qpps(mm_s)));
        Command::Drive { m1, m2 }
    }

    /// Converts pulses per second of M1 and M2, at the front and at the rear.
    pub fn speeds(self, qpps: [[i32; 2]; 2]) -> WheelSpeeds {
        let sides_mm_s = |[m1, m2]: [i32; 2]| {
            let motors_mm_s = [m2, m1].map(|qpps| self.mm_s(qpps));
            self.wiring.wheels(motors_mm_s)
        };
        let [
            [front_left_mm_s, front_right_mm_s],
            [rear_left_mm_s, rear_right_mm_s],
        ] = qpps.map(sides_mm_s);
        WheelSpeeds {
            front_left_mm_s,
            front_right_mm_s,
            rear_left_mm_s,
            rear_right_mm_s,
        }
    }

    fn pulses_per_mm(self) -> f64 {
        self.pulses_per_turn / (std::f64::consts::TAU * self.radius_mm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPO: Wheel = Wheel {
        radius_mm: 60.0,
        pulses_per_turn: 1865.0,
        wiring: Wiring {
            swaps_sides: false,
            reverses_left: false,
            reverses_right: false,
        },
    };

    #[test]
    fn speeds_match_the_original() {
        for (mm_s, qpps, back) in [
            (0, 0, 0),
            (1, 4, 0),
            (100, 494, 99),
            (-100, -494, -99),
            (300, 1484, 299),
            (500, 2473, 499),
            (1000, 4947, 999),
            (1200, 5936, 1199),
        ] {
            assert_eq!((CAPO.qpps(mm_s), CAPO.mm_s(qpps)), (qpps, back), "{mm_s}");
        }
        assert_eq!(CAPO.mm_s(13_800), 2789);
        assert_eq!(CAPO.qpps(i32::MAX), i32::MAX);
    }

    #[test]
    fn m1_is_the_right_wheel_and_m2_the_left_one() {
        let speeds = WheelSpeeds {
            front_left_mm_s: 100,
            front_right_mm_s: 300,
            rear_left_mm_s: 500,
            rear_right_mm_s: 1000,
        };
        assert_eq!(
            CAPO.drive(Unit::Front, speeds),
            Command::Drive { m1: 1484, m2: 494 }
        );
        assert_eq!(
            CAPO.drive(Unit::Rear, speeds),
            Command::Drive { m1: 4947, m2: 2473 }
        );
        let read = CAPO.speeds([[1484, 495], [4947, 2474]]);
        assert_eq!((read.front_right_mm_s, read.front_left_mm_s), (299, 100));
        assert_eq!((read.rear_right_mm_s, read.rear_left_mm_s), (999, 500));
    }

    #[test]
    fn one_controller_drives_both_wheels_of_a_side() {
        let speeds = WheelSpeeds {
            front_left_mm_s: 100,
            front_right_mm_s: 300,
            rear_left_mm_s: 500,
            rear_right_mm_s: 300,
        };
        assert_eq!(
            CAPO.drive(Unit::Only, speeds),
            Command::Drive { m1: 1484, m2: 1484 }
        );
        // The motors of small bases look to both sides, so one of them turns backwards.
        let mirrored = Wheel {
            wiring: Wiring {
                reverses_right: true,
                ..Wiring::default()
            },
            ..CAPO
        };
        let ahead = WheelSpeeds::sides(300, 100);
        assert_eq!(
            mirrored.drive(Unit::Only, ahead),
            Command::Drive { m1: -494, m2: 1484 }
        );
        let read = mirrored.speeds([[-495, 1485]; 2]);
        assert_eq!(read, WheelSpeeds::sides(300, 100));
        let least = mirrored.speeds([[i32::MIN; 2]; 2]);
        assert!(least.front_right_mm_s > 0 && least.front_left_mm_s < 0);
    }
}
