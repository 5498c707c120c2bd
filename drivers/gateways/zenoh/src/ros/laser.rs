//! What a laser scanner can do, as far as its scans show it. PURE.
//!
//! Scans of Amber do not say how long one took, and what the scanner measures at most. The robot device
//! may know the time of a turn. The rest is learned.

use std::time::Duration;

use amber_values::Scan;

use super::convert::Laser;

/// The intervals of which the middle one counts: a scan that is lost now and then does not.
const INTERVALS: usize = 9;

/// What is known about a scanner.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    turn: Option<Duration>,
    last: Option<Duration>,
    intervals: Vec<Duration>,
    farthest_m: f64,
}

impl Learned {
    /// `turn` is the time of one turn, if the robot device says it.
    #[must_use]
    pub fn new(turn: Option<Duration>) -> Self {
        Self {
            turn: turn.filter(|turn| !turn.is_zero()),
            ..Self::default()
        }
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
        let usual = Laser::default();
        let period = self.period().unwrap_or(self.turn.unwrap_or(usual.turn));
        Laser {
            // A scanner does not turn more slowly than its scans come; some scans may be left out.
            turn: self.turn.unwrap_or(usual.turn.min(period)),
            period,
            min_m: usual.min_m,
            max_m: usual.max_m.max(self.farthest_m),
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
    use super::*;

    fn scan(far_mm: i32) -> Scan {
        Scan::new(&[-1.0, 0.0, 1.0], &[500, far_mm, 0], None).unwrap()
    }

    #[test]
    fn times_and_range_of_another_scanner_are_learned() {
        let mut learned = Learned::new(None);
        let ms = Duration::from_millis;
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
        let ms = Duration::from_millis;
        let mut learned = Learned::new(Some(ms(50)));
        let mut laser = learned.handle(&scan(3_000), ms(0));
        assert_eq!((laser.turn, laser.period), (ms(50), ms(50)));
        for number in 1..10 {
            laser = learned.handle(&scan(3_000), ms(200 * number));
        }
        assert_eq!((laser.turn, laser.period), (ms(50), ms(200)));
        // Scans come slowly from a scanner whose time is unknown.
        let mut learned = Learned::new(None);
        for number in 0..10 {
            laser = learned.handle(&scan(3_000), ms(200 * number));
        }
        assert_eq!((laser.turn, laser.period), (ms(100), ms(200)));
    }
}
