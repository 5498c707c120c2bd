//! The speeds of the wheels from the counts of the sensor stream. PURE.
//!
//! The robot sends a frame exactly every 15 ms, but an adapter or a busy machine holds frames back. So
//! the time of a frame is that of the one before plus 15 ms, and follows the arrivals only slowly.

use std::time::{Duration, Instant};

use crate::wheels::encoders::{Encoders, Reading, Scale};
use crate::wheels::{Sides, Wiring};

/// The interval between two frames.
pub const FRAME: Duration = Duration::from_millis(15);
/// Each frame corrects the time by this fraction of its error.
const FOLLOWS: u32 = 16;
/// With a larger error, frames are missing.
const MAX_ERROR: Duration = Duration::from_millis(50);

/// Encoder counts per turn of a wheel, and the diameter of the wheels.
const COUNTS_PER_TURN: f64 = 508.8;
const WHEEL_DIAMETER_MM: f64 = 72.0;

/// Both encoders, and the time of their counts.
#[derive(Clone, Debug)]
pub struct Odometer {
    encoders: Encoders,
    counts: Option<[u16; 2]>,
    /// How far the wheels have turned, in counts.
    turned: [i32; 2],
    time: Option<Instant>,
}

impl Odometer {
    /// Without counts. No wheel is faster than this for long.
    pub fn new(fastest_mm_s: f64) -> Self {
        let scale = Scale::new(COUNTS_PER_TURN, WHEEL_DIAMETER_MM, Wiring::default());
        Self {
            encoders: Encoders::new(scale, fastest_mm_s),
            counts: None,
            turned: [0; 2],
            time: None,
        }
    }

    /// Adds the counts of a frame, behind so many that were lost.
    pub fn read(&mut self, now: Instant, counts: [u16; 2], missed: u32) {
        let before = self.counts.replace(counts).unwrap_or(counts);
        for (side, turned) in self.turned.iter_mut().enumerate() {
            // They wrap in both directions.
            let step = counts[side].wrapping_sub(before[side]).cast_signed();
            *turned = turned.wrapping_add(step.into());
        }
        let time = self.time_of(now, missed);
        self.time = Some(time);
        self.encoders.read(Reading {
            asked: time,
            answered: now.max(time),
            counts: self.turned,
        });
    }

    /// The mean speeds of the last tenth of a second, and the middle of their time.
    pub fn speeds(&self) -> Option<(Sides, Instant)> {
        let (speeds, middle) = self.encoders.speeds_mm_s()?;
        // They saturate.
        let [left_mm_s, right_mm_s] = speeds.map(|speed| speed.round() as i32);
        let sides = Sides {
            left_mm_s,
            right_mm_s,
        };
        Some((sides, middle))
    }

    fn time_of(&self, now: Instant, missed: u32) -> Instant {
        let Some(last) = self.time else {
            return now;
        };
        let expected = last + FRAME.saturating_mul(missed.saturating_add(1));
        let late = now.saturating_duration_since(expected);
        let early = expected.saturating_duration_since(now);
        match late.max(early) <= MAX_ERROR {
            true => expected + late / FOLLOWS - early / FOLLOWS,
            false => now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 200 mm/s ahead and 100 mm/s back, as counts after so many frames.
    fn counts(frame: u32) -> [u16; 2] {
        let mm = f64::from(frame) * FRAME.as_secs_f64();
        let count = |mm_s: f64| (mm * mm_s / 0.444_565).floor() as i64 as u16;
        // Both wrap soon.
        [
            count(200.0).wrapping_add(65_500),
            count(-100.0).wrapping_add(30),
        ]
    }

    /// The largest error of the speeds in mm/s, if frames arrive so late.
    fn error_mm_s(late_ms: impl Fn(u32) -> Option<u64>) -> i32 {
        let mut odometer = Odometer::new(500.0);
        let begin = Instant::now();
        let mut largest = 0;
        let mut missed = 0;
        for frame in 0..2_000 {
            let Some(late_ms) = late_ms(frame) else {
                missed += 1;
                continue;
            };
            let now = begin + FRAME * frame + Duration::from_millis(late_ms);
            odometer.read(now, counts(frame), std::mem::take(&mut missed));
            if let Some((sides, _)) = odometer.speeds().filter(|_| frame > 100) {
                let errors = [sides.left_mm_s - 200, sides.right_mm_s + 100];
                largest = errors.iter().map(|it| it.abs()).fold(largest, i32::max);
            }
        }
        largest
    }

    #[test]
    fn counts_that_wrap_give_the_speeds_of_a_tenth_of_a_second() {
        // A count is 4.2 mm/s in this time.
        assert!(error_mm_s(|_| Some(0)) <= 5);
    }

    #[test]
    fn frames_that_an_adapter_holds_back_give_the_same_speeds() {
        // Every 16 ms, it passes on what it has.
        let adapter = |frame: u32| Some(u64::from(16 - frame * 15 % 16));
        let error = error_mm_s(adapter);
        assert!(error <= 12, "{error}");
        // The machine is busy now and then.
        let error = error_mm_s(|frame| {
            Some(match frame % 40 {
                0 => 40,
                1 => 25,
                2 => 10,
                _ => 2,
            })
        });
        assert!(error <= 15, "{error}");
    }

    #[test]
    fn lost_frames_give_the_same_speeds() {
        let error = error_mm_s(|frame| (frame % 4 != 0).then_some(1));
        assert!(error <= 5, "{error}");
    }

    #[test]
    fn after_a_gap_the_speeds_are_right_again() {
        let mut odometer = Odometer::new(500.0);
        let begin = Instant::now();
        for frame in (0..100).chain(200..300) {
            odometer.read(begin + FRAME * frame, counts(frame), 0);
        }
        let (sides, middle) = odometer.speeds().unwrap();
        assert!((sides.left_mm_s - 200).abs() <= 5, "{sides:?}");
        let age = begin + FRAME * 299 - middle;
        assert!((40..=60).contains(&age.as_millis()), "{age:?}");
    }
}
