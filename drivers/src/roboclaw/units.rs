//! Millimetres per second and encoder pulses. PURE.

use amber_proto::roboclaw::MotorsSpeed;

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

/// A speed for every wheel, in mm/s, positive = forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WheelSpeeds {
    /// M2 of the front controller.
    pub front_left: i32,
    /// M1 of the front controller.
    pub front_right: i32,
    /// M2 of the rear controller.
    pub rear_left: i32,
    /// M1 of the rear controller.
    pub rear_right: i32,
}

impl WheelSpeeds {
    /// All wheels stand still.
    pub const ZERO: Self = Self {
        front_left: 0,
        front_right: 0,
        rear_left: 0,
        rear_right: 0,
    };

    /// The largest of the four absolute values.
    pub fn fastest(self) -> u32 {
        [
            self.front_left,
            self.front_right,
            self.rear_left,
            self.rear_right,
        ]
        .map(i32::unsigned_abs)
        .into_iter()
        .fold(0, u32::max)
    }

    /// The drive command for a controller.
    pub fn command(self, unit: Unit, wheel: Wheel) -> Command {
        let (right, left) = match unit {
            Unit::Front => (self.front_right, self.front_left),
            Unit::Rear => (self.rear_right, self.rear_left),
        };
        Command::Drive {
            m1: wheel.qpps(right),
            m2: wheel.qpps(left),
        }
    }

    /// Converts pulses per second, in the order of [`WHEELS`].
    pub fn of_qpps(qpps: [i32; 4], wheel: Wheel) -> Self {
        let [front_right, front_left, rear_right, rear_left] = qpps.map(|qpps| wheel.mm_s(qpps));
        Self {
            front_left,
            front_right,
            rear_left,
            rear_right,
        }
    }
}

impl From<MotorsSpeed> for WheelSpeeds {
    fn from(speeds: MotorsSpeed) -> Self {
        Self {
            front_left: speeds.front_left_speed.unwrap_or(0),
            front_right: speeds.front_right_speed.unwrap_or(0),
            rear_left: speeds.rear_left_speed.unwrap_or(0),
            rear_right: speeds.rear_right_speed.unwrap_or(0),
        }
    }
}

impl From<WheelSpeeds> for MotorsSpeed {
    fn from(speeds: WheelSpeeds) -> Self {
        Self {
            front_left_speed: Some(speeds.front_left),
            front_right_speed: Some(speeds.front_right),
            rear_left_speed: Some(speeds.rear_left),
            rear_right_speed: Some(speeds.rear_right),
        }
    }
}

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
            front_left: 100,
            front_right: 300,
            rear_left: 500,
            rear_right: 1000,
        };
        assert_eq!(
            speeds.command(Unit::Front, CAPO),
            Command::Drive { m1: 1484, m2: 494 }
        );
        assert_eq!(
            speeds.command(Unit::Rear, CAPO),
            Command::Drive { m1: 4947, m2: 2473 }
        );
        let read = WheelSpeeds::of_qpps([1484, 495, 4947, 2474], CAPO);
        assert_eq!((read.front_right, read.front_left), (299, 100));
        assert_eq!((read.rear_right, read.rear_left), (999, 500));
    }

    #[test]
    fn the_fastest_wheel_is_found_in_both_directions() {
        let speeds = WheelSpeeds {
            rear_left: i32::MIN,
            ..WheelSpeeds::ZERO
        };
        assert_eq!(speeds.fastest(), 1 << 31);
    }
}
