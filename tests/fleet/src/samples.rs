//! Many measured times, and statistics about them. PURE.

use serde::Serialize;

/// Times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<u64>);

/// Times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Times {
    pub(crate) samples: usize,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) max_us: f64,
}

impl Samples {
    /// Adds the time between two readings of a clock.
    pub(crate) fn add(&mut self, from_ns: u64, to_ns: u64) {
        self.0.push(to_ns.saturating_sub(from_ns));
    }

    /// Adds all of another series.
    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// The statistics.
    pub(crate) fn times(mut self) -> Times {
        self.0.sort_unstable();
        let quantile = |part: f64| {
            let last = self.0.len().checked_sub(1)?;
            Some(self.0[(part * last as f64).round() as usize] as f64 / 1e3)
        };
        Times {
            samples: self.0.len(),
            p50_us: quantile(0.5).unwrap_or_default(),
            p99_us: quantile(0.99).unwrap_or_default(),
            max_us: quantile(1.0).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        assert_eq!(Samples::default().times(), Times::default());
        let mut samples = Samples::default();
        (0..=100u64)
            .rev()
            .for_each(|us| samples.add(5_000, 5_000 + us * 1_000));
        let times = samples.times();
        assert_eq!(
            (times.p50_us, times.p99_us, times.max_us),
            (50.0, 99.0, 100.0)
        );
    }
}
