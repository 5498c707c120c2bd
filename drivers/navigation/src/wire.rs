//! Scans and wheel speeds as messages carry them, in the plane frame. PURE.
//!
//! This is the only place that knows the units and signs of both. A scan of the messages has
//! degrees to the right in ascending order, so from left to right. Most scanners turn to the left, and
//! measured the beams in the reverse order; others turn to the right.

use std::time::Duration;

use amber_values::{WheelSpeeds, scan::VALID_MM};

use crate::kinematics::Wheels;
use crate::scan::{Beam, Echo, Laser, Scan};

/// The code of a scanner for "no object within range".
const NOTHING: i32 = 0;
/// The code for an object that is too near.
const TOO_NEAR: i32 = 6;
const M_PER_MM: f64 = 0.001;

impl Scan {
    /// A scan with this timestamp, by this scanner.
    #[must_use]
    pub fn from_values(scan: &amber_values::Scan, timestamp: Duration, laser: &Laser) -> Self {
        let points = scan.points();
        let angle_deg = |index: usize| points.get(index).map_or(0.0, |point| point.angle_deg);
        let intervals = points.len().saturating_sub(1).max(1);
        let width_deg = (angle_deg(points.len().saturating_sub(1)) - angle_deg(0)).abs();
        let beam_time = laser
            .turn
            .mul_f64((width_deg / 360.0).min(1.0) / intervals as f64);
        // Upside down, what a scan has on the right is on the left.
        let side = if laser.is_mirrored { 1.0 } else { -1.0 };
        let beam = |point: &amber_values::Point| Beam {
            angle_rad: side * point.angle_deg.to_radians(),
            echo: match point.distance_mm {
                NOTHING => Echo::Nothing,
                TOO_NEAR => Echo::TooNear,
                mm if VALID_MM.contains(&mm) => Echo::At(f64::from(mm) * M_PER_MM),
                _ => Echo::Invalid,
            },
        };
        let mut new = Self {
            start: Duration::ZERO,
            beam_time,
            beams: match laser.turns_right {
                true => points.iter().map(beam).collect(),
                false => points.iter().rev().map(beam).collect(),
            },
        };
        new.start = timestamp.saturating_sub(laser.delay + new.end());
        new
    }
}

impl From<WheelSpeeds> for Wheels {
    fn from(speeds: WheelSpeeds) -> Self {
        let m_s = |mm_s: i32| f64::from(mm_s) * M_PER_MM;
        Self {
            front_left_m_s: m_s(speeds.front_left_mm_s),
            front_right_m_s: m_s(speeds.front_right_mm_s),
            rear_left_m_s: m_s(speeds.rear_left_mm_s),
            rear_right_m_s: m_s(speeds.rear_right_mm_s),
        }
    }
}

/// Rounded to whole millimetres per second.
impl From<Wheels> for WheelSpeeds {
    fn from(wheels: Wheels) -> Self {
        // A cast to an integer saturates.
        let [
            front_left_mm_s,
            front_right_mm_s,
            rear_left_mm_s,
            rear_right_mm_s,
        ] = wheels.all_m_s().map(|m_s| (m_s / M_PER_MM).round() as i32);
        Self {
            front_left_mm_s,
            front_right_mm_s,
            rear_left_mm_s,
            rear_right_mm_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    const TURN: Duration = Duration::from_millis(100);
    const LASER: Laser = Laser {
        turn: TURN,
        delay: Duration::ZERO,
        is_mirrored: false,
        turns_right: false,
    };

    #[test]
    fn the_rightmost_beam_is_the_first_and_has_a_negative_angle() {
        let values = amber_values::Scan::new(&[-90.0, 0.0, 90.0], &[1500, 0, 6], None).unwrap();
        let end = Duration::from_millis(300);
        let scan = Scan::from_values(&values, end, &LASER);
        assert_eq!((scan.start, scan.end()), (Duration::from_millis(250), end));
        assert!((scan.beams[0].angle_rad + FRAC_PI_2).abs() < 1e-9);
        assert!((scan.beams[2].angle_rad - FRAC_PI_2).abs() < 1e-9);
        let echoes = scan.beams.iter().map(|beam| beam.echo);
        let expected = [Echo::TooNear, Echo::Nothing, Echo::At(1.5)];
        assert_eq!(echoes.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn upside_down_the_first_beam_is_the_leftmost_and_as_early() {
        let values = amber_values::Scan::new(&[-90.0, 0.0, 90.0], &[1500, 0, 6], None).unwrap();
        let laser = Laser {
            delay: Duration::from_millis(20),
            is_mirrored: true,
            ..LASER
        };
        let scan = Scan::from_values(&values, Duration::from_millis(320), &laser);
        assert_eq!(scan.start, Duration::from_millis(250));
        assert!((scan.beams[0].angle_rad - FRAC_PI_2).abs() < 1e-9);
        assert_eq!(scan.beams[0].echo, Echo::TooNear);
        assert!((scan.beams[2].angle_rad + FRAC_PI_2).abs() < 1e-9);
    }

    #[test]
    fn a_scanner_that_turns_to_the_right_measures_the_leftmost_beam_first() {
        let values = amber_values::Scan::new(&[-90.0, 0.0, 90.0], &[1500, 0, 6], None).unwrap();
        for (is_mirrored, first_rad) in [(false, FRAC_PI_2), (true, -FRAC_PI_2)] {
            let laser = Laser {
                turns_right: true,
                is_mirrored,
                ..LASER
            };
            let end = Duration::from_millis(300);
            let scan = Scan::from_values(&values, end, &laser);
            assert_eq!((scan.start, scan.end()), (Duration::from_millis(250), end));
            assert!((scan.beams[0].angle_rad - first_rad).abs() < 1e-9);
            assert_eq!(scan.beams[0].echo, Echo::At(1.5));
            assert!((scan.beams[2].angle_rad + first_rad).abs() < 1e-9);
        }
    }

    #[test]
    fn codes_are_not_distances_and_short_scans_do_no_harm() {
        for (mm, echo) in [
            (-1, Echo::Invalid),
            (19, Echo::Invalid),
            (20, Echo::At(0.02)),
        ] {
            let values = amber_values::Scan::new(&[0.0], &[mm], None).unwrap();
            let scan = Scan::from_values(&values, TURN, &LASER);
            assert_eq!((scan.start, scan.beams[0].echo), (TURN, echo));
        }
        let values = amber_values::Scan::new(&[], &[], None).unwrap();
        assert!(Scan::from_values(&values, TURN, &LASER).beams.is_empty());
    }

    #[test]
    fn wheel_speeds_survive_both_conversions() {
        let speeds = WheelSpeeds {
            front_left_mm_s: 1,
            front_right_mm_s: -200,
            rear_left_mm_s: 1200,
            rear_right_mm_s: 0,
        };
        assert_eq!(WheelSpeeds::from(Wheels::from(speeds)), speeds);
        assert_eq!(Wheels::from(speeds).rear_left_m_s, 1.2);
    }
}
