//! Conversions between mm/s and encoder pulses; M1 is the right motor, M2 the left one. PURE.

use amber_values::WheelSpeeds;

use super::protocol::{Command, Motor};

/// One of the two controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The controller of the front wheels.
    Front,
    /// The controller of the rear wheels.
    Rear,
}

impl Unit {
    /// Both controllers, in the order of the bus.
    pub const BOTH: [Self; 2] = [Self::Front, Self::Rear];

    /// `front` or `rear`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Front => "front",
            Self::Rear => "rear",
        }
    }
}

/// The four motors in the order in which their speeds are read.
pub const WHEELS: [(Unit, Motor); 4] = [
    (Unit::Front, Motor::M1),
    (Unit::Front, Motor::M2),
    (Unit::Rear, Motor::M1),
    (Unit::Rear, Motor::M2),
];

/// A wheel and its encoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wheel {
    /// In millimetres.
    pub radius_mm: f64,
    /// Encoder pulses per turn.
    pub pulses_per_turn: f64,
}

impl Wheel {
    /// Pulses per second at a speed in mm/s. Truncated towards zero in both directions, as clients
    /// of the original expect.
    #[allow(clippy::cast_possible_truncation)] // It saturates.
    pub fn qpps(self, mm_s: i32) -> i32 {
        (f64::from(mm_s) * self.pulses_per_mm()) as i32
    }

    /// The speed in mm/s for this number of pulses per second.
    #[allow(clippy::cast_possible_truncation)] // It saturates.
    pub fn mm_s(self, qpps: i32) -> i32 {
        (f64::from(qpps) / self.pulses_per_mm()) as i32
    }

    /// The drive command for a controller.
    pub fn drive(self, unit: Unit, speeds: WheelSpeeds) -> Command {
        let (right_mm_s, left_mm_s) = match unit {
            Unit::Front => (speeds.front_right_mm_s, speeds.front_left_mm_s),
            Unit::Rear => (speeds.rear_right_mm_s, speeds.rear_left_mm_s),
        };
        Command::Drive {
            m1: self.qpps(right_mm_s),
            m2: self.qpps(left_mm_s),
        }
    }

    /// Converts pulses per second, in the order of [`WHEELS`].
    pub fn speeds(self, qpps: [i32; 4]) -> WheelSpeeds {
        let [
            front_right_mm_s,
            front_left_mm_s,
            rear_right_mm_s,
            rear_left_mm_s,
        ] = qpps.map(|qpps| self.mm_s(qpps));
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
        let read = CAPO.speeds([1484, 495, 4947, 2474]);
        assert_eq!((read.front_right_mm_s, read.front_left_mm_s), (299, 100));
        assert_eq!((read.rear_right_mm_s, read.rear_left_mm_s), (999, 500));
    }
}
