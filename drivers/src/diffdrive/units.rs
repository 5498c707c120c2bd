//! Conversions between mm/s and encoder counts, and how wheels are connected. PURE.

use super::protocol::Command;
use crate::wheels::Sides;
use crate::wheels::encoders::Scale;

/// The wheels, their encoders, and the speed control of the firmware.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wheels {
    /// The encoders. The motors are connected in the same way.
    pub scale: Scale,
    /// Frames of the speed control per second.
    pub frame_hz: u16,
}

/// The unit of commanded speeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpeedUnit {
    /// Counts per frame of the speed control, as in ros_arduino_bridge
    Frame,
    /// Counts per second, as in Andino
    Second,
}

impl Wheels {
    /// The command for these speeds. The firmware knows only whole counts per frame.
    pub fn command(&self, sides: Sides, unit: SpeedUnit) -> Command {
        let wheels = [sides.left_mm_s, sides.right_mm_s].map(|mm_s| self.argument(mm_s, unit));
        let [left, right] = self.scale.wiring.motors(wheels);
        Command::Speeds { left, right }
    }

    /// The difference between two speeds that the firmware tells apart.
    pub fn step_mm_s(&self) -> f64 {
        f64::from(self.frame_hz) / self.scale.counts_per_mm
    }

    fn argument(&self, mm_s: i32, unit: SpeedUnit) -> i16 {
        // The firmware reads 16 bits, and divides a speed per second by its frames.
        let per_frame = match unit {
            SpeedUnit::Frame => 1,
            SpeedUnit::Second => self.frame_hz.cast_signed(),
        };
        let limit = f64::from(i16::MAX / per_frame);
        let frames = (f64::from(mm_s) / self.step_mm_s()).round();
        frames.clamp(-limit, limit) as i16 * per_frame
    }
}

#[cfg(test)]
mod tests {
    use super::SpeedUnit::{Frame, Second};
    use super::*;
    use crate::wheels::Wiring;

    /// 3436 counts per turn, wheels of 66 mm.
    const USUAL: Wheels = Wheels {
        scale: Scale {
            counts_per_mm: 3436.0 / (std::f64::consts::PI * 66.0),
            wiring: Wiring {
                swaps_sides: false,
                reverses_left: false,
                reverses_right: false,
            },
        },
        frame_hz: 30,
    };

    fn command(wheels: Wheels, unit: SpeedUnit, left_mm_s: i32, right_mm_s: i32) -> (i16, i16) {
        let sides = Sides {
            left_mm_s,
            right_mm_s,
        };
        match wheels.command(sides, unit) {
            Command::Speeds { left, right } => (left, right),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn speeds_are_rounded_to_whole_counts_per_frame() {
        assert!((USUAL.step_mm_s() - 1.81).abs() < 0.002);
        for (mm_s, count) in [
            (0, 0),
            (1, 1),
            (100, 55),
            (300, 166),
            (500, 276),
            (1000, 552),
        ] {
            assert_eq!(
                command(USUAL, Frame, mm_s, -mm_s),
                (count, -count),
                "{mm_s}"
            );
        }
        // Multiples of the frames: the firmware divides without a remainder.
        assert_eq!(command(USUAL, Second, 100, -300), (55 * 30, -166 * 30));
        assert_eq!(
            command(USUAL, Frame, i32::MAX, i32::MIN),
            (i16::MAX, -i16::MAX)
        );
        assert_eq!(command(USUAL, Second, i32::MAX, 0), (1092 * 30, 0));
    }

    #[test]
    fn wheels_that_are_connected_in_another_way_turn_and_count_in_the_right_way() {
        let mut wheels = USUAL;
        wheels.scale.wiring.swaps_sides = true;
        wheels.scale.wiring.reverses_right = true;
        assert_eq!(command(wheels, Frame, 100, 300), (-166, 55));
        let [left_mm, right_mm] = wheels.scale.ways_mm([-166, 55]);
        assert!((left_mm - 3.32).abs() < 0.01, "{left_mm}");
        assert!((right_mm - 10.02).abs() < 0.01, "{right_mm}");
    }
}
