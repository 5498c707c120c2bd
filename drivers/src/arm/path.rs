//! How joints get from where they are to where they should be. PURE.

use std::time::Duration;

/// The fastest part of a smooth way, compared with its average.
const PEAK: f64 = 1.5;
/// Points of a recording are that exact, so shorter ways are not too fast.
const SMALL_DEG: f64 = 2.0;

/// Positions at times from the start.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path {
    points: Vec<(Duration, Vec<f64>)>,
    /// Whether it begins and ends slowly.
    is_smooth: bool,
}

/// A joint would have to move faster than it may.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TooFast {
    /// Which one of the path.
    pub(super) joint: usize,
    /// How fast.
    pub(super) speed: f64,
    /// When it should be there.
    pub(super) at: Duration,
}

impl Path {
    /// From one place to another, so that no joint is faster than its speed. With `at`, the path takes
    /// this time.
    ///
    /// # Errors
    /// A joint would be too fast.
    pub(super) fn smooth(
        from: Vec<f64>,
        to: Vec<f64>,
        speeds: &[f64],
        at: Option<Duration>,
    ) -> Result<Self, TooFast> {
        let ways = from.iter().zip(&to).map(|(from, to)| (to - from).abs());
        let times_s = ways.zip(speeds).map(|(way, speed)| PEAK * way / speed);
        let slowest = times_s.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        let (joint, least_s) = slowest.unwrap_or_default();
        let takes_s = match at {
            None => least_s,
            Some(at) if at.as_secs_f64() >= least_s => at.as_secs_f64(),
            Some(at) => {
                return Err(TooFast {
                    joint,
                    speed: speeds[joint] * least_s / at.as_secs_f64(),
                    at,
                });
            }
        };
        Ok(Self {
            points: vec![
                (Duration::ZERO, from),
                (Duration::from_secs_f64(takes_s), to),
            ],
            is_smooth: true,
        })
    }

    /// Along points with their times, in straight lines. `per_degree` is what a degree of each servo is
    /// for its position.
    ///
    /// # Errors
    /// A joint would be too fast.
    pub(super) fn through(
        from: Vec<f64>,
        points: impl IntoIterator<Item = (Duration, Vec<f64>)>,
        speeds: &[f64],
        per_degree: &[f64],
    ) -> Result<Self, TooFast> {
        let mut all = vec![(Duration::ZERO, from)];
        for (at, positions) in points {
            if let Some((before, last)) = all.last() {
                let time_s = at.saturating_sub(*before).as_secs_f64();
                for (joint, (from, to)) in last.iter().zip(&positions).enumerate() {
                    let way = (to - from).abs();
                    let is_small = way <= SMALL_DEG * per_degree[joint];
                    if !is_small && way > speeds[joint] * time_s {
                        let speed = way / time_s;
                        return Err(TooFast { joint, speed, at });
                    }
                }
            }
            all.push((at, positions));
        }
        Ok(Self {
            points: all,
            is_smooth: false,
        })
    }

    /// When it ends.
    pub(super) fn takes(&self) -> Duration {
        self.points.last().map_or(Duration::ZERO, |(at, _)| *at)
    }

    /// Where it ends.
    pub(super) fn end(&self) -> &[f64] {
        self.points.last().map_or(&[], |(_, positions)| positions)
    }

    /// The positions at a time.
    pub(super) fn at(&self, time: Duration) -> Vec<f64> {
        let next = self.points.iter().position(|(at, _)| *at > time);
        let Some(next) = next else {
            return self.end().to_vec();
        };
        let Some((before, from)) = next.checked_sub(1).map(|last| &self.points[last]) else {
            return self.points[next].1.clone();
        };
        let (after, to) = &self.points[next];
        let part = (time - *before).as_secs_f64() / (*after - *before).as_secs_f64();
        let part = match self.is_smooth {
            true => part * part * (3.0 - 2.0 * part),
            false => part,
        };
        let pairs = from.iter().zip(to);
        pairs.map(|(from, to)| from + (to - from) * part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn joints_start_and_arrive_together_and_none_is_too_fast() {
        let speeds = [60.0, 60.0];
        let path = Path::smooth(vec![0.0, 10.0], vec![90.0, -20.0], &speeds, None).unwrap();
        assert_eq!(path.takes(), Duration::from_secs_f64(1.5 * 90.0 / 60.0));
        assert_eq!(path.at(Duration::ZERO), [0.0, 10.0]);
        assert_eq!(path.at(path.takes()), [90.0, -20.0]);
        assert_eq!(path.at(path.takes() + 1_000 * MS), [90.0, -20.0]);
        let half = path.at(path.takes() / 2);
        assert!((half[0] - 45.0).abs() < 1e-6 && (half[1] + 5.0).abs() < 1e-6);
        let mut fastest = 0.0_f64;
        for ms in 0..2_250 {
            let [now, next] = [ms, ms + 1].map(|ms| path.at(ms * MS));
            for joint in 0..2 {
                fastest = fastest.max((next[joint] - now[joint]).abs() / 0.001);
            }
        }
        assert!((59.0..60.01).contains(&fastest), "{fastest}");
    }

    #[test]
    fn a_path_of_no_length_is_over_at_once() {
        let path = Path::smooth(vec![5.0], vec![5.0], &[60.0], None).unwrap();
        assert_eq!((path.takes(), path.at(MS)), (Duration::ZERO, vec![5.0]));
    }

    #[test]
    fn a_path_takes_the_time_that_it_is_given() {
        let smooth = |at| Path::smooth(vec![0.0, 0.0], vec![10.0, 40.0], &[60.0; 2], Some(at));
        assert_eq!(smooth(2_000 * MS).unwrap().takes(), 2_000 * MS);
        let error = smooth(500 * MS).unwrap_err();
        assert_eq!((error.joint, error.at), (1, 500 * MS));
        assert!((error.speed - 120.0).abs() < 1e-6, "{}", error.speed);
    }

    #[test]
    fn points_of_a_recording_are_followed_in_time() {
        let through = |points: &[(u32, f64)]| {
            let points = points.iter().map(|(ms, to)| (*ms * MS, vec![*to]));
            Path::through(vec![0.0], points, &[100.0], &[1.0])
        };
        let path = through(&[(0, 1.0), (100, 5.0), (300, -5.0)]).unwrap();
        assert_eq!(path.at(Duration::ZERO), [1.0]);
        for (ms, expected) in [(50, 3.0), (100, 5.0), (200, 0.0), (300, -5.0), (400, -5.0)] {
            assert!((path.at(ms * MS)[0] - expected).abs() < 1e-9, "{ms}");
        }
        let error = through(&[(0, 1.0), (100, 20.0)]).unwrap_err();
        assert_eq!((error.joint, error.at), (0, 100 * MS));
        assert!((error.speed - 190.0).abs() < 1e-6, "{}", error.speed);
        assert!(through(&[(0, 5.0)]).is_err());
    }
}
