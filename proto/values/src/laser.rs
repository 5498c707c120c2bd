//! A laser scanner, and its scans as `sensor_msgs/LaserScan` of ROS has them. PURE.
//!
//! Scanners say themselves what they measure ([`Scanner`]). What one does not say, such as one with a
//! driver of the original system, is learned from its scans as far as they show it. All gateways make
//! their scans here, so that they agree.

use std::f64::consts::TAU;
use std::time::Duration;

use amber_proto::hokuyo::Scanner;

use crate::{EvenScan, Scan};

/// The intervals of which the middle one counts: a scan that is lost now and then does not.
const INTERVALS: usize = 9;

/// What is known about a laser scanner. The default is the Hokuyo URG-04LX of the Capo robot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Laser {
    /// The time of one turn.
    pub turn: Duration,
    /// The time between two scans: longer if some turns are left out.
    pub period: Duration,
    /// The shortest distance that it measures, in metres.
    pub min_m: f64,
    /// The longest distance that it measures, in metres.
    pub max_m: f64,
    /// Whether it turns to the right, and measures the left first.
    pub turns_right: bool,
}

/// A scan in the form of ROS. The first ray is the one that was measured first.
#[derive(Clone, Debug, PartialEq)]
pub struct LaserScan {
    /// The time from the first ray to the last one, whose time is that of the scan.
    pub duration: Duration,
    /// The angle of the first ray, counter-clockwise.
    pub first_rad: f64,
    /// The angle of the last ray.
    pub last_rad: f64,
    /// The angle between two rays; negative if the scanner turns to the right.
    pub step_rad: f64,
    /// The time between two rays, in seconds.
    pub step_s: f64,
    /// The time between two scans, in seconds.
    pub period_s: f64,
    /// The shortest valid distance.
    pub min_m: f64,
    /// The longest valid distance.
    pub max_m: f64,
    /// The distances. Infinite: nothing is in range. Not a number: no measurement.
    pub ranges_m: Vec<f64>,
}

impl Default for Laser {
    fn default() -> Self {
        Self {
            turn: Duration::from_millis(100),
            period: Duration::from_millis(100),
            min_m: 0.02,
            max_m: 5.6,
            turns_right: false,
        }
    }
}

impl Laser {
    /// One of its scans. The last ray was measured at the time of the scan.
    ///
    /// Distances beyond the limits are none: ROS takes them for errors.
    #[must_use]
    pub fn scan(&self, scan: &Scan) -> LaserScan {
        let even = EvenScan::from(scan);
        let (turn_s, step_rad) = (self.turn.as_secs_f64(), even.step_rad());
        let span_rad = even.end_rad - even.start_rad;
        let share = (span_rad / TAU).clamp(0.0, 1.0);
        let mut ranges_m = even.ranges_m;
        for range_m in &mut ranges_m {
            if *range_m > self.max_m {
                *range_m = f64::INFINITY;
            } else if *range_m < self.min_m {
                *range_m = f64::NAN;
            }
        }
        let (mut first_rad, mut last_rad) = (even.start_rad, even.end_rad);
        if self.turns_right {
            ranges_m.reverse();
            std::mem::swap(&mut first_rad, &mut last_rad);
        }
        LaserScan {
            duration: self.turn.mul_f64(share),
            first_rad,
            last_rad,
            step_rad: if self.turns_right {
                -step_rad
            } else {
                step_rad
            },
            step_s: turn_s * step_rad / TAU,
            period_s: self.period.as_secs_f64(),
            min_m: self.min_m,
            max_m: self.max_m,
            ranges_m,
        }
    }
}

/// What is known about a scanner: what it says, and the rest from its scans.
#[derive(Clone, Debug, Default)]
pub struct LearnedLaser {
    /// The time of one turn, if somebody else says it.
    stated_turn: Option<Duration>,
    told: Option<Scanner>,
    last: Option<Duration>,
    intervals: Vec<Duration>,
    farthest_m: f64,
}

impl LearnedLaser {
    /// `turn` is the time of one turn, for scanners that do not say it.
    #[must_use]
    pub fn new(turn: Option<Duration>) -> Self {
        Self {
            stated_turn: turn.filter(|turn| !turn.is_zero()),
            ..Self::default()
        }
    }

    /// The scanner describes itself.
    pub fn describe(&mut self, scanner: Scanner) {
        self.told = Some(scanner);
    }

    /// A scan that was complete at this time of a clock that does not jump. Returns the scanner.
    pub fn handle(&mut self, scan: &Scan, ended: Duration) -> Laser {
        let interval = self.last.and_then(|last| ended.checked_sub(last));
        self.last = Some(ended);
        if let Some(interval) = interval.filter(|interval| !interval.is_zero()) {
            if self.intervals.len() >= INTERVALS {
                self.intervals.remove(0);
            }
            self.intervals.push(interval);
        }
        let points = scan.points().iter().filter(|point| point.is_valid());
        let farthest_mm = points
            .map(|point| f64::from(point.distance_mm))
            .fold(0.0, f64::max);
        self.farthest_m = self.farthest_m.max(farthest_mm / 1000.0);
        self.laser()
    }

    fn laser(&self) -> Laser {
        let (usual, told) = (Laser::default(), self.told.as_ref());
        let metres = |mm: u32| f64::from(mm) / 1000.0;
        let turn_us = told.and_then(|told| told.turn_time).filter(|us| *us > 0);
        let told_turn = turn_us.map(|us| Duration::from_micros(us.into()));
        let turn = told_turn.or(self.stated_turn);
        let period = self.period().unwrap_or(turn.unwrap_or(usual.turn));
        let limits_mm = told.map(|told| (told.min_distance, told.max_distance));
        // A range that ends before it begins says nothing.
        let (min_mm, max_mm) = limits_mm
            .filter(|(min, max)| max.is_none_or(|max| max > min.unwrap_or(0)))
            .unwrap_or_default();
        Laser {
            // A scanner does not turn more slowly than its scans come; some scans may be left out.
            turn: turn.unwrap_or(usual.turn.min(period)),
            period,
            min_m: min_mm.map_or(usual.min_m, metres),
            max_m: max_mm.map_or(usual.max_m.max(self.farthest_m), metres),
            turns_right: told.is_some_and(|told| told.turns_right()),
        }
    }

    fn period(&self) -> Option<Duration> {
        let mut sorted = self.intervals.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    fn scan(far_mm: i32) -> Scan {
        Scan::new(&[-1.0, 0.0, 1.0], &[500, far_mm, 0], None).unwrap()
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The UTM-30LX says so.
    fn utm() -> Scanner {
        Scanner {
            min_distance: Some(23),
            max_distance: Some(30_000),
            turn_time: Some(25_000),
            ..Scanner::default()
        }
    }

    #[test]
    fn a_scan_turns_to_the_left_from_its_first_ray_on() {
        let scan = Scan::new(&[-90.0, 0.0, 90.0], &[3000, 0, 7], None).unwrap();
        let even = Laser::default().scan(&scan);
        // A quarter of a turn from one ray to the next.
        assert_eq!(even.duration, ms(50));
        assert!((even.step_s - 0.025).abs() < 1e-9);
        assert!((even.first_rad + FRAC_PI_2).abs() < 1e-9);
        assert!((even.last_rad - FRAC_PI_2).abs() < 1e-9);
        assert!((even.step_rad - FRAC_PI_2).abs() < 1e-9);
        assert!(even.ranges_m[0].is_nan());
        assert_eq!(even.ranges_m[1..], [f64::INFINITY, 3.0]);
        let right = Laser {
            turns_right: true,
            ..Laser::default()
        };
        let even = right.scan(&scan);
        assert_eq!(even.ranges_m[..2], [3.0, f64::INFINITY]);
        assert!((even.first_rad - FRAC_PI_2).abs() < 1e-9 && even.step_rad < 0.0);
        assert!(even.step_s > 0.0);
    }

    #[test]
    fn scans_without_points_or_with_one_have_a_finite_form() {
        for scan in [
            Scan::new(&[], &[], None).unwrap(),
            Scan::new(&[5.0], &[500], None).unwrap(),
        ] {
            let even = Laser::default().scan(&scan);
            assert_eq!(even.duration, Duration::ZERO);
            assert_eq!((even.step_rad, even.step_s), (0.0, 0.0));
        }
    }

    #[test]
    fn a_scanner_that_describes_itself_has_its_own_limits_and_times() {
        let mut learned = LearnedLaser::new(Some(ms(100)));
        learned.describe(utm());
        let mut laser = learned.handle(&scan(3_000), ms(0));
        assert_eq!((laser.turn, laser.period), (ms(25), ms(25)));
        assert_eq!((laser.min_m, laser.max_m), (0.023, 30.0));
        // Some turns are left out. Distances beyond the limits do not change the limits.
        for number in 1..10 {
            laser = learned.handle(&scan(45_000), ms(100 * number));
        }
        assert_eq!((laser.turn, laser.period), (ms(25), ms(100)));
        assert_eq!(laser.max_m, 30.0);
        let far = Scan::new(&[-1.0, 0.0, 1.0], &[45_000, 30_000, 21], None).unwrap();
        let ranges = laser.scan(&far).ranges_m;
        assert!(ranges[0].is_nan(), "too near");
        assert_eq!(ranges[1..], [30.0, f64::INFINITY]);
    }

    #[test]
    fn a_description_without_sense_counts_for_nothing() {
        let mut learned = LearnedLaser::default();
        learned.describe(Scanner {
            min_distance: Some(30_000),
            max_distance: Some(20),
            turn_time: Some(0),
            ..Scanner::default()
        });
        assert_eq!(learned.handle(&scan(3_000), ms(0)), Laser::default());
    }

    #[test]
    fn times_and_range_of_another_scanner_are_learned() {
        let mut learned = LearnedLaser::new(None);
        let first = learned.handle(&scan(3_000), ms(1_000));
        assert_eq!(first, Laser::default());
        let mut laser = first;
        for number in 1..20 {
            // One of them is lost.
            let lost = if number > 12 { 25 } else { 0 };
            laser = learned.handle(&scan(12_000), ms(1_000 + 25 * number + lost));
        }
        assert_eq!(
            (laser.turn, laser.period, laser.max_m),
            (ms(25), ms(25), 12.0)
        );
        // The farthest distance stays.
        let laser = learned.handle(&scan(1_000), ms(1_550));
        assert_eq!(laser.max_m, 12.0);
    }

    #[test]
    fn the_robot_device_knows_the_time_of_a_turn() {
        let mut learned = LearnedLaser::new(Some(ms(50)));
        let mut laser = learned.handle(&scan(3_000), ms(0));
        assert_eq!((laser.turn, laser.period), (ms(50), ms(50)));
        for number in 1..10 {
            laser = learned.handle(&scan(3_000), ms(200 * number));
        }
        assert_eq!((laser.turn, laser.period), (ms(50), ms(200)));
        // Scans come slowly from a scanner whose time is unknown.
        let mut learned = LearnedLaser::new(None);
        for number in 0..10 {
            laser = learned.handle(&scan(3_000), ms(200 * number));
        }
        assert_eq!((laser.turn, laser.period), (ms(100), ms(200)));
    }
}
