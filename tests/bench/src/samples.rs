//! Many measured times, and statistics about them. PURE.

use std::time::Duration;

/// Times in nanoseconds, up to four seconds each.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    ns: Vec<u32>,
}

impl Samples {
    /// Adds a time.
    pub fn add(&mut self, ns: u64) {
        self.ns.push(u32::try_from(ns).unwrap_or(u32::MAX));
    }

    /// The number of times.
    pub fn len(&self) -> usize {
        self.ns.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ns.is_empty()
    }

    /// The quantile (0 to 1); zero if there are none.
    pub fn quantile(&mut self, part: f64) -> Duration {
        if self.ns.is_empty() {
            return Duration::ZERO;
        }
        let at = (part * (self.ns.len() - 1) as f64) as usize;
        let (_, ns, _) = self.ns.select_nth_unstable(at);
        Duration::from_nanos((*ns).into())
    }

    /// The same in microseconds.
    pub fn quantile_us(&mut self, part: f64) -> f64 {
        self.quantile(part).as_nanos() as f64 / 1e3
    }
}

/// The median; for an even number, the mean of the two middle values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_match_the_sorted_values() {
        let mut samples = Samples::default();
        assert_eq!(samples.quantile(0.5), Duration::ZERO);
        (0..=100).rev().for_each(|ns| samples.add(ns));
        assert_eq!(samples.quantile(0.5).as_nanos(), 50);
        assert_eq!(samples.quantile(0.99).as_nanos(), 99);
        assert_eq!(samples.quantile(1.0).as_nanos(), 100);
        samples.add(u64::MAX);
        assert_eq!(samples.quantile(1.0).as_nanos(), u128::from(u32::MAX));
    }

    #[test]
    fn the_median_ignores_nan() {
        assert_eq!(median(&[3.0, f64::NAN, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0]), 1.5);
        assert!(median(&[]).is_nan());
    }
}
