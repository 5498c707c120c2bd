//! Gives points their times. PURE.
//!
//! They are measured at equal intervals, but arrive in pieces, and some pieces are late.

use std::time::{Duration, Instant};

/// If points arrive so late, others before them were lost. Smaller differences are corrected
/// slowly: by this part.
const LOST: Duration = Duration::from_millis(50);
const SLOWLY: u32 = 16;
/// So old are the first points: times are never negative.
const BEFORE: Duration = Duration::from_secs(60);

/// The clock of the points of one connection.
#[derive(Clone, Copy, Debug)]
pub struct PointClock {
    /// The connection was opened here.
    opened: Instant,
    last: Option<Duration>,
}

impl PointClock {
    /// For a connection that was opened at this time.
    #[must_use]
    pub fn new(opened: Instant) -> Self {
        let last = None;
        Self { opened, last }
    }

    /// This moment, as the times of points are counted.
    #[must_use]
    pub fn at(&self, now: Instant) -> Duration {
        BEFORE + now.saturating_duration_since(self.opened)
    }

    /// A scan begins: the next points follow no others.
    pub fn clear(&mut self) {
        self.last = None;
    }

    /// The times of further points, the last of which arrives at this time; never earlier than
    /// before.
    pub fn times(
        &mut self,
        count: usize,
        step: Duration,
        arrives: Duration,
    ) -> impl Iterator<Item = Duration> + use<> {
        let before = self.last.unwrap_or_default();
        let last = self.time(count, step, arrives);
        (0..count).rev().map(move |later| {
            let time = last.saturating_sub(step.mul_f64(later as f64));
            time.max(before)
        })
    }

    fn time(&mut self, count: usize, step: Duration, arrives: Duration) -> Duration {
        let expected = self.last.map(|last| last + step.mul_f64(count as f64));
        let time = match expected {
            Some(expected) if expected < arrives && arrives - expected < LOST => {
                expected + (arrives - expected) / SLOWLY
            }
            // Nothing arrives before it was measured.
            _ => arrives,
        };
        self.last = Some(time);
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_pieces_do_not_move_points_in_time() {
        let ms = Duration::from_millis;
        let mut clock = PointClock::new(Instant::now());
        let mut last = Duration::ZERO;
        for piece in 0..300 {
            let measured = ms(1_000 + 10 * piece);
            let arrives = measured + ms(piece * 7 % 5 * 2);
            let times: Vec<_> = clock.times(10, ms(1), arrives).collect();
            assert!(times[0] >= last && times.is_sorted(), "{piece}");
            let time = times[9];
            assert!(time <= arrives, "{piece}");
            if piece > 100 {
                assert!(
                    time >= measured && time < measured + ms(2),
                    "{piece}: {time:?}"
                );
            }
            last = time;
        }
        // Others before these were lost.
        let arrives = last + ms(500);
        assert_eq!(clock.times(10, ms(1), arrives).last(), Some(arrives));
    }
}
