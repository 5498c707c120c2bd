//! Conversions between mm/s and electrical turns per minute, and which VESC drives which wheels. PURE.

use super::protocol::Command;
use crate::wheels::{Sides, Wiring};

/// One of the two VESCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The one at the port.
    First,
    /// The one behind it on the CAN bus, or at a port of its own.
    Second,
}

impl Unit {
    /// Both, in the order in which they are asked.
    pub const BOTH: [Self; 2] = [Self::First, Self::Second];

    /// The place in a list of both.
    pub fn index(self) -> usize {
        self as usize
    }

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first VESC",
            Self::Second => "second VESC",
        }
    }
}

/// The wheels and their motors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wheels {
    /// Electrical turns per minute at 1 mm/s.
    pub erpm_per_mm_s: f64,
    /// The speed control of the VESCs holds no lower speed, in electrical turns per minute.
    pub min_erpm: i32,
    /// The current that stops a wheel, in milliamperes.
    pub brake_ma: i32,
    /// How the motors are connected.
    pub wiring: Wiring,
}

impl Wheels {
    /// The commands for both VESCs. A speed that the speed control does not hold is a stop: new
    /// firmware would let the wheel roll, old firmware would keep the current.
    pub fn commands(&self, sides: Sides) -> [Command; 2] {
        let wheels = [sides.left_mm_s, sides.right_mm_s].map(|mm_s| self.erpm(mm_s));
        self.wiring.motors(wheels).map(|erpm| match erpm {
            0 => self.stop(),
            erpm => Command::Erpm(erpm),
        })
    }

    /// The command that stops a wheel.
    pub fn stop(&self) -> Command {
        Command::Brake(self.brake_ma)
    }

    /// The speeds, for those that both VESCs have measured. They saturate.
    pub fn sides(&self, erpm: [i32; 2]) -> Sides {
        let motors_mm_s = erpm.map(|erpm| f64::from(erpm) / self.erpm_per_mm_s);
        let [left_mm_s, right_mm_s] =
            (self.wiring.wheels(motors_mm_s)).map(|mm_s| mm_s.round() as i32);
        Sides {
            left_mm_s,
            right_mm_s,
        }
    }

    /// Whether a side stands although it was commanded to turn.
    pub fn is_too_slow(&self, sides: Sides) -> bool {
        let all = [sides.left_mm_s, sides.right_mm_s].into_iter();
        all.filter(|mm_s| *mm_s != 0)
            .any(|mm_s| self.erpm(mm_s) == 0)
    }

    /// The lowest speed that the speed control holds, in mm/s.
    pub fn slowest_mm_s(&self) -> f64 {
        f64::from(self.min_erpm.max(1)) / self.erpm_per_mm_s
    }

    /// 0 for speeds that the speed control does not hold.
    fn erpm(&self, mm_s: i32) -> i32 {
        // It saturates; each number also has its negative.
        let erpm = ((f64::from(mm_s) * self.erpm_per_mm_s).round() as i32).max(-i32::MAX);
        match erpm.abs() < self.min_erpm {
            true => 0,
            false => erpm,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Motors of hoverboards: 15 pole pairs in wheels of 170 mm.
    const HUBS: Wheels = Wheels {
        erpm_per_mm_s: 60.0 * 15.0 / (std::f64::consts::PI * 170.0),
        min_erpm: 100,
        brake_ma: 5_000,
        wiring: Wiring {
            swaps_sides: false,
            reverses_left: false,
            reverses_right: false,
        },
    };

    fn sides(left_mm_s: i32, right_mm_s: i32) -> Sides {
        Sides {
            left_mm_s,
            right_mm_s,
        }
    }

    #[test]
    fn speeds_become_electrical_turns_per_minute_and_back() {
        for (mm_s, erpm) in [(100, 169), (500, 843), (1000, 1685), (-1000, -1685)] {
            let commands = HUBS.commands(sides(mm_s, -mm_s));
            let expected = [Command::Erpm(erpm), Command::Erpm(-erpm)];
            assert_eq!(commands, expected, "{mm_s}");
            assert_eq!(HUBS.sides([erpm, -erpm]), sides(mm_s, -mm_s));
        }
        let most = HUBS.commands(sides(i32::MAX, i32::MIN));
        assert_eq!(most, [Command::Erpm(i32::MAX), Command::Erpm(-i32::MAX)]);
        let fastest = HUBS.sides([i32::MAX, i32::MIN]);
        assert!(fastest.left_mm_s > 1_000_000_000 && fastest.right_mm_s < -1_000_000_000);
    }

    #[test]
    fn what_the_speed_control_does_not_hold_is_a_stop() {
        let stop = Command::Brake(5_000);
        assert_eq!(HUBS.commands(sides(0, 0)), [stop; 2]);
        assert_eq!(HUBS.commands(sides(59, -59)), [stop; 2]);
        let held = [Command::Erpm(101), Command::Erpm(-101)];
        assert_eq!(HUBS.commands(sides(60, -60)), held);
        assert!((HUBS.slowest_mm_s() - 59.3).abs() < 0.1);
        assert!(HUBS.is_too_slow(sides(59, 500)) && HUBS.is_too_slow(sides(0, -1)));
        assert!(!HUBS.is_too_slow(sides(0, 60)) && !HUBS.is_too_slow(sides(0, 0)));
        let all = Wheels {
            min_erpm: 0,
            ..HUBS
        };
        assert_eq!(all.commands(sides(1, 0)), [Command::Erpm(2), stop]);
    }

    #[test]
    fn motors_that_are_connected_in_another_way_turn_and_report_in_the_right_way() {
        let wheels = Wheels {
            wiring: Wiring {
                swaps_sides: true,
                reverses_right: true,
                ..HUBS.wiring
            },
            ..HUBS
        };
        let commands = wheels.commands(sides(500, 1000));
        assert_eq!(commands, [Command::Erpm(-1685), Command::Erpm(843)]);
        assert_eq!(wheels.sides([-1685, 843]), sides(500, 1000));
    }
}
