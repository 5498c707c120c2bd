//! How often scans come, and what follows from it for a robot that drives. PURE.
//!
//! The defaults of the monitor are those for ten scans per second. Many scanners that look all around
//! make five to eight: what a scan shows is older then, and the next one comes later.

use std::collections::VecDeque;
use std::time::Duration;

use super::Config;
use crate::scan::Scan;

/// The time of a turn, and that between two scans, for which the defaults are made.
const USUAL: Duration = Duration::from_millis(100);
/// A slower scanner counts as this slow: scans that come more rarely are late.
const SLOWEST: Duration = Duration::from_millis(500);
/// So many times between scans are remembered. A lost scan does not change their median...
const REMEMBERED: usize = 5;
/// ...which needs so many.
const ENOUGH: usize = 3;
/// So many times the period, a scan is fresh, and then counts less and less.
const FRESH_PERIODS: f64 = 2.5;
const TIMEOUT_PERIODS: f64 = 5.0;
/// However slow the scanner is, older scans do not count as fresh, or do not count at all.
const MAX_FRESH: Duration = Duration::from_millis(600);
const MAX_TIMEOUT: Duration = Duration::from_millis(1_000);
/// The averages of near points are about the scans of so many periods.
const STEADY_PERIODS: f64 = 4.5;

/// The times of the last scans.
#[derive(Clone, Debug, Default)]
pub(super) struct Rhythm {
    last: Option<Duration>,
    intervals: VecDeque<Duration>,
    turn: Duration,
}

impl Rhythm {
    /// A scan that is newer than the one before.
    pub(super) fn handle_scan(&mut self, scan: &Scan) {
        let end = scan.end();
        if let Some(last) = self.last.replace(end) {
            self.intervals.truncate(REMEMBERED - 1);
            self.intervals.push_front(end.saturating_sub(last));
        }
        self.turn = scan.turn_time();
    }

    /// The time between two scans.
    fn period(&self) -> Duration {
        let mut sorted: Vec<Duration> = self.intervals.iter().copied().collect();
        sorted.sort_unstable();
        let median = match sorted.len() {
            ENOUGH.. => sorted[sorted.len() / 2],
            _ => Duration::ZERO,
        };
        median.max(self.turn).clamp(USUAL, SLOWEST)
    }

    /// The time from a change in the world to braking wheels, in seconds: beams in the middle of a
    /// scan are half a turn old when it ends.
    pub(super) fn reaction_s(&self, config: &Config) -> f64 {
        let turn = self.turn.clamp(USUAL, SLOWEST);
        let longer = (self.period() - USUAL) + (turn - USUAL) / 2;
        config.reaction_s + longer.as_secs_f64()
    }

    /// Up to this age a scan allows full speed.
    pub(super) fn fresh(&self, config: &Config) -> Duration {
        let fresh = self.period().mul_f64(FRESH_PERIODS).min(MAX_FRESH);
        config.scan_fresh.max(fresh)
    }

    /// From this age on, a scan says nothing.
    pub(super) fn timeout(&self, config: &Config) -> Duration {
        let timeout = self.period().mul_f64(TIMEOUT_PERIODS).min(MAX_TIMEOUT);
        config.scan_timeout.max(timeout)
    }

    /// The time of the scans of which near points are averaged.
    pub(super) fn steady(&self) -> Duration {
        self.period().mul_f64(STEADY_PERIODS)
    }
}

#[cfg(test)]
mod tests {
    use amber_map::Pose;

    use super::*;
    use crate::scan::{Beam, Echo};

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A turn of a scanner with 360 beams.
    fn turn(end: Duration, turn: Duration) -> Scan {
        let beams = (0..360).map(|degrees| Beam {
            angle_rad: f64::from(180 - degrees).to_radians(),
            echo: Echo::At(1.0),
        });
        Scan {
            start: end.saturating_sub(turn * 359 / 360),
            beam_time: turn / 360,
            beams: beams.collect(),
        }
    }

    #[test]
    fn slow_scanners_need_more_time() {
        let config = Config::new(Pose::default());
        for (turn_ms, reaction_s, fresh_ms, timeout_ms) in [
            (25, 0.25, 300, 600),
            (100, 0.25, 300, 600),
            (182, 0.373, 455, 910),
            (200, 0.4, 500, 1_000),
            (500, 0.85, 600, 1_000),
            (2_000, 0.85, 600, 1_000),
        ] {
            let mut rhythm = Rhythm::default();
            // The third one is lost.
            for count in [1, 2, 4, 5, 6, 7] {
                rhythm.handle_scan(&turn(ms(10_000 + turn_ms * count), ms(turn_ms)));
            }
            let difference_s = rhythm.reaction_s(&config) - reaction_s;
            assert!(difference_s.abs() < 0.001, "{turn_ms}: {difference_s}");
            let near = |time: Duration, expected_ms| time.abs_diff(ms(expected_ms)) < ms(1);
            let (fresh, timeout) = (rhythm.fresh(&config), rhythm.timeout(&config));
            assert!(near(fresh, fresh_ms), "{turn_ms}: {fresh:?}");
            assert!(near(timeout, timeout_ms), "{turn_ms}: {timeout:?}");
        }
    }

    #[test]
    fn scans_that_are_sent_more_rarely_than_measured_count() {
        let config = Config::new(Pose::default());
        let mut rhythm = Rhythm::default();
        assert!((rhythm.reaction_s(&config) - 0.25).abs() < 1e-9);
        for count in 1..10 {
            rhythm.handle_scan(&turn(ms(300 * count), ms(100)));
        }
        assert!((rhythm.reaction_s(&config) - 0.45).abs() < 0.001);
    }
}
