//! Measured times and their statistics. PURE.

use std::time::Duration;

/// Durations, each with its start.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    values: Vec<(Duration, Duration)>,
}

impl Series {
    pub(super) fn add(&mut self, at: Duration, time: Duration) {
        self.values.push((at, time));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Starts and times, in the order of their ends.
    pub(super) fn values(&self) -> &[(Duration, Duration)] {
        &self.values
    }

    /// Sorted from the shortest to the longest.
    pub(super) fn sorted(&self) -> Vec<Duration> {
        let mut times: Vec<_> = self.values.iter().map(|(_, time)| *time).collect();
        times.sort_unstable();
        times
    }
}

/// The quantile of the times for this part (0 to 1).
pub(super) fn quantile(sorted: &[Duration], part: f64) -> Option<Duration> {
    let last = sorted.len().checked_sub(1)?;
    Some(sorted[(part * last as f64).round() as usize])
}

/// In milliseconds.
pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Three significant digits.
pub(super) fn shown(ms: f64) -> String {
    match ms {
        ms if ms >= 99.95 => format!("{ms:.0} ms"),
        ms if ms >= 9.995 => format!("{ms:.1} ms"),
        ms => format!("{ms:.3} ms"),
    }
}
