//! How close estimates are to the truth. PURE.

use std::time::Duration;

use amber_map::{Pose, wrap};
use amber_navigation::location::Estimate;

use super::Scenario;

/// The pose is known when the errors are at most this.
const KNOWN_M: f64 = 0.15;
const KNOWN_RAD: f64 = 0.175;
/// It is lost again beyond this.
const LOST_M: f64 = 0.3;
/// A change of the error by more than this between two estimates is a jump.
const JUMP_M: f64 = 0.25;

/// The errors of one run.
#[derive(Clone, Debug)]
pub struct Score {
    scenario: Scenario,
    samples: Vec<Sample>,
    particles: u64,
    /// The memory of the localization in bytes.
    pub bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    time: Duration,
    error: (f64, f64),
    error_m: f64,
    error_rad: f64,
    quality: f64,
}

impl Score {
    pub(super) fn new(scenario: Scenario) -> Self {
        Self {
            scenario,
            samples: Vec::new(),
            particles: 0,
            bytes: 0,
        }
    }

    pub(super) fn add(&mut self, estimate: &Estimate, truth: Pose, particles: usize) {
        let way = estimate.pose.at.minus(truth.at);
        self.particles += particles as u64;
        self.samples.push(Sample {
            time: estimate.time,
            error: (way.x, way.y),
            error_m: way.length(),
            error_rad: wrap(estimate.pose.heading - truth.heading).abs(),
            quality: estimate.quality,
        });
    }

    pub(super) fn finish(&mut self, bytes: usize) {
        self.bytes = bytes;
    }

    /// The samples from the start of the search, if the scenario has one.
    fn judged(&self) -> &[Sample] {
        let start = self.scenario.search_starts().unwrap_or_default();
        let first = self.samples.partition_point(|sample| sample.time <= start);
        &self.samples[first..]
    }

    /// The first sample from which on the pose is known and not lost again.
    fn found(&self) -> Option<usize> {
        let judged = self.judged();
        // The pose must be known to the end.
        let after_loss = judged.iter().rposition(|sample| sample.error_m > LOST_M);
        let start = after_loss.map_or(0, |index| index + 1);
        let known = |sample: &Sample| sample.error_m <= KNOWN_M && sample.error_rad <= KNOWN_RAD;
        judged[start..]
            .iter()
            .position(known)
            .map(|index| start + index)
    }

    /// How long the search took, in seconds. `None` if the pose was not found, or lost again and not
    /// found until the end.
    #[must_use]
    pub fn search_s(&self) -> Option<f64> {
        let start = self.scenario.search_starts().unwrap_or_default();
        let sample = self.judged()[self.found()?];
        Some((sample.time - start).as_secs_f64())
    }

    /// The samples after the search; before a kidnapping, too.
    fn tracked(&self) -> Vec<Sample> {
        let mut all = Vec::new();
        if self.scenario.kidnap_at.is_some() {
            let count = self.samples.len() - self.judged().len();
            all.extend(&self.samples[..count]);
        }
        if let Some(found) = self.found() {
            all.extend(&self.judged()[found..]);
        }
        all
    }
}

/// The errors of all runs of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// The number of runs.
    pub runs: usize,
    /// Runs in which the pose was found and not lost until the end.
    pub found: usize,
    /// Position errors in millimetres while the pose was known: root mean square, 95 %, maximum.
    pub rms_mm: f64,
    /// 95 % of the position errors are smaller.
    pub p95_mm: f64,
    /// The largest position error.
    pub max_mm: f64,
    /// The largest root mean square of a single run.
    pub worst_run_mm: f64,
    /// 95 % of the heading errors are smaller, in degrees.
    pub heading_p95_deg: f64,
    /// Jumps of the error by more than 0.25 m while the pose was known.
    pub jumps: usize,
    /// The times of the search in seconds, sorted; only of runs with success.
    pub search_s: Vec<f64>,
    /// The smallest quality (5 % are smaller) while the pose was known.
    pub quality_p05: f64,
    /// The share of estimates that were wrong by more than 0.3 m and had a quality above 0.3.
    pub wrong_and_sure: f64,
    /// The mean number of particles.
    pub particles: f64,
}

impl Summary {
    /// Summarizes runs.
    #[must_use]
    pub fn new(scores: &[Score]) -> Self {
        let tracked: Vec<Vec<Sample>> = scores.iter().map(Score::tracked).collect();
        let all: Vec<Sample> = tracked.iter().flatten().copied().collect();
        let errors_mm = sorted(all.iter().map(|sample| sample.error_m * 1000.0));
        let headings_deg = sorted(all.iter().map(|sample| sample.error_rad.to_degrees()));
        let qualities = sorted(all.iter().map(|sample| sample.quality));
        let rms = |samples: &[Sample]| {
            let sum: f64 = samples.iter().map(|sample| sample.error_m.powi(2)).sum();
            (sum / samples.len().max(1) as f64).sqrt() * 1000.0
        };
        let jumps = |samples: &Vec<Sample>| {
            let jump = |pair: &&[Sample]| {
                let (a, b) = (pair[0].error, pair[1].error);
                (b.0 - a.0).hypot(b.1 - a.1) > JUMP_M
            };
            samples.windows(2).filter(jump).count()
        };
        let every: Vec<&Sample> = scores.iter().flat_map(|score| &score.samples).collect();
        let wrong = every
            .iter()
            .filter(|sample| sample.error_m > LOST_M && sample.quality > 0.3);
        let particles: u64 = scores.iter().map(|score| score.particles).sum();
        Self {
            runs: scores.len(),
            found: scores
                .iter()
                .filter(|score| score.found().is_some())
                .count(),
            rms_mm: rms(&all),
            p95_mm: quantile(&errors_mm, 0.95),
            max_mm: quantile(&errors_mm, 1.0),
            worst_run_mm: tracked.iter().map(|run| rms(run)).fold(0.0, f64::max),
            heading_p95_deg: quantile(&headings_deg, 0.95),
            jumps: tracked.iter().map(jumps).sum(),
            search_s: sorted(scores.iter().filter_map(Score::search_s)),
            quality_p05: quantile(&qualities, 0.05),
            wrong_and_sure: wrong.count() as f64 / every.len().max(1) as f64,
            particles: particles as f64 / every.len().max(1) as f64,
        }
    }

    /// The share of all runs that found the pose within a time.
    #[must_use]
    pub fn found_within(&self, seconds: f64) -> f64 {
        let count = self
            .search_s
            .partition_point(|search_s| *search_s <= seconds);
        count as f64 / self.runs.max(1) as f64
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// A quantile of sorted values; 0 without values.
pub(super) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let index = (part * sorted.len() as f64).ceil() as usize;
    sorted
        .get(index.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}
