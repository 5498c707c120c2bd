//! The figures of rounds, their medians, and the table. PURE.

use amber_bench::samples::{Samples, median};
use amber_proto::limits::PIECE_BYTES;
use anyhow::ensure;
use serde::{Deserialize, Serialize};

use crate::cases::{Beside, CAMERA_GROWS_BYTES, Case, LONGEST_DATAGRAM, RESUMES_MS};

/// What a subscriber has seen.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Seen {
    pub(crate) whole: u64,
    /// From the first picture to the last one, as the camera counts them.
    pub(crate) sent: u64,
    /// What its client has counted as missed.
    pub(crate) missed: u64,
    pub(crate) latencies_ns: Vec<u64>,
    /// Pieces that came to its network.
    pub(crate) pieces: u64,
    /// The longest datagram with a piece, in bytes.
    pub(crate) longest: usize,
    /// From the end of a stop to a new picture.
    pub(crate) resumed_ms: Option<f64>,
    /// CPU time in percent of a core, if it measures that.
    pub(crate) cpu_percent: Option<f64>,
}

/// What was measured in one round.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) all: Vec<Seen>,
    pub(crate) mediator_percent: f64,
    /// The subscriber that was stopped.
    pub(crate) stopped: Option<Seen>,
    /// How much the memory of the camera has grown meanwhile.
    pub(crate) camera_grew_bytes: Option<i64>,
    /// Pieces that a client got that does not know them.
    pub(crate) pieces_to_old: Option<u64>,
}

/// The figures of a round.
#[derive(Debug)]
struct Figures {
    whole_percent: f64,
    median_ms: f64,
    p99_ms: f64,
    lost: u64,
    missed: u64,
    mediator_percent: f64,
    subscriber_percent: Option<f64>,
    extra_percent: Option<f64>,
    longest_datagram: Option<usize>,
    resumed_ms: Option<f64>,
    camera_grew_bytes: Option<i64>,
    pieces_to_old: Option<u64>,
}

/// A case: medians of all rounds, and the worst ones.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    case: &'static str,
    bytes: usize,
    hertz: u32,
    rounds: usize,
    whole_percent: f64,
    worst_whole_percent: f64,
    /// Pictures that did not arrive whole, in all rounds.
    lost: u64,
    /// Those of them, and pictures that were not read in time, that clients have counted.
    missed: u64,
    median_ms: f64,
    worst_median_ms: f64,
    p99_ms: f64,
    mediator_percent: f64,
    worst_mediator_percent: f64,
    subscriber_percent: Option<f64>,
    extra_percent: Option<f64>,
    /// The longest of all rounds, as the figures below are the worst.
    longest_datagram: Option<usize>,
    resumed_ms: Option<f64>,
    camera_grew_bytes: Option<i64>,
    pieces_to_old: Option<u64>,
    /// The demands that are not met, by the medians and the worst figures.
    pub(crate) unmet: Vec<String>,
}

pub(crate) const HEAD: &str = "\
| case | bytes | Hz | whole, % | worst | lost | counted | median, ms | worst | p99, ms | mediator, % | worst \
| more pieces, % | datagram, B | |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|";

fn figures(case: &Case, round: &Round) -> anyhow::Result<Figures> {
    let all = &round.all;
    let sum = |of: fn(&Seen) -> u64| all.iter().map(of).sum::<u64>();
    let (whole, sent) = (sum(|seen| seen.whole), sum(|seen| seen.sent));
    ensure!(sent > 0, "{}: no pictures arrived", case.name);
    let mut times = Samples::default();
    for ns in all.iter().flat_map(|seen| &seen.latencies_ns) {
        times.add(*ns);
    }
    let needed = sent * (case.bytes as u64).div_ceil(PIECE_BYTES as u64);
    let extra = 100.0 * (sum(|seen| seen.pieces) as f64 / needed as f64 - 1.0);
    let longest = all.iter().map(|seen| seen.longest).max();
    let is_networked = case.network.is_some();
    Ok(Figures {
        whole_percent: 100.0 * whole as f64 / sent as f64,
        median_ms: times.quantile_us(0.5) / 1e3,
        p99_ms: times.quantile_us(0.99) / 1e3,
        lost: sent - whole,
        missed: sum(|seen| seen.missed),
        mediator_percent: round.mediator_percent,
        subscriber_percent: worst(all.iter().filter_map(|seen| seen.cpu_percent)),
        extra_percent: is_networked.then_some(extra),
        longest_datagram: longest.filter(|_| is_networked),
        resumed_ms: round.stopped.as_ref().and_then(|seen| seen.resumed_ms),
        camera_grew_bytes: round.camera_grew_bytes,
        pieces_to_old: round.pieces_to_old,
    })
}

/// The largest figure.
fn worst(figures: impl Iterator<Item = f64>) -> Option<f64> {
    figures.reduce(f64::max)
}

impl Row {
    /// # Errors
    /// In a round, no pictures arrived.
    pub(crate) fn of(case: &Case, rounds: &[Round]) -> anyhow::Result<Self> {
        let rounds = rounds.iter().map(|round| figures(case, round));
        let rounds = rounds.collect::<anyhow::Result<Vec<_>>>()?;
        let each = |of: fn(&Figures) -> f64| rounds.iter().map(of).collect::<Vec<_>>();
        let medians = |of| median(&each(of));
        let largest = |of| worst(each(of).into_iter()).unwrap_or(f64::NAN);
        let known = |of: fn(&Figures) -> Option<f64>| {
            let known = rounds.iter().filter_map(of).collect::<Vec<_>>();
            (!known.is_empty()).then(|| median(&known))
        };
        let mut row = Self {
            case: case.name,
            bytes: case.bytes,
            hertz: case.hertz,
            rounds: rounds.len(),
            whole_percent: medians(|it| it.whole_percent),
            worst_whole_percent: -largest(|it| -it.whole_percent),
            lost: rounds.iter().map(|it| it.lost).sum(),
            missed: rounds.iter().map(|it| it.missed).sum(),
            median_ms: medians(|it| it.median_ms),
            worst_median_ms: largest(|it| it.median_ms),
            p99_ms: medians(|it| it.p99_ms),
            mediator_percent: medians(|it| it.mediator_percent),
            worst_mediator_percent: largest(|it| it.mediator_percent),
            subscriber_percent: known(|it| it.subscriber_percent),
            extra_percent: known(|it| it.extra_percent),
            longest_datagram: rounds.iter().filter_map(|it| it.longest_datagram).max(),
            resumed_ms: worst(rounds.iter().filter_map(|it| it.resumed_ms)),
            camera_grew_bytes: rounds.iter().filter_map(|it| it.camera_grew_bytes).max(),
            pieces_to_old: rounds.iter().filter_map(|it| it.pieces_to_old).max(),
            unmet: Vec::new(),
        };
        row.unmet = row.judge(case, &rounds);
        Ok(row)
    }

    fn judge(&self, case: &Case, rounds: &[Figures]) -> Vec<String> {
        let demands = &case.demands;
        let mut unmet = Vec::new();
        let mut demand = |is_met: bool, what: String| {
            if !is_met {
                unmet.push(what);
            }
        };
        let least = demands.whole_percent;
        demand(
            self.whole_percent >= least,
            format!("whole below {least} %"),
        );
        for (what, figure, most) in [
            ("median, ms", Some(self.median_ms), demands.median_ms),
            (
                "mediator, %",
                Some(self.mediator_percent),
                demands.mediator_percent,
            ),
            (
                "subscriber, %",
                self.subscriber_percent,
                demands.subscriber_percent,
            ),
            ("more pieces, %", self.extra_percent, demands.extra_percent),
            (
                "longest datagram, bytes",
                self.longest_datagram.map(|it| it as f64),
                Some(LONGEST_DATAGRAM as f64),
            ),
            ("new picture, ms", self.resumed_ms, Some(RESUMES_MS)),
            (
                "camera has grown, bytes",
                self.camera_grew_bytes.map(|it| it as f64),
                Some(CAMERA_GROWS_BYTES as f64),
            ),
            (
                "pieces to a client that does not know them",
                self.pieces_to_old.map(|it| it as f64),
                Some(0.0),
            ),
        ] {
            if let (Some(figure), Some(most)) = (figure, most) {
                demand(figure <= most, format!("{what}: above {most}"));
            }
        }
        let stops = case.beside == Beside::Stopped;
        let all_resumed = rounds.iter().all(|it| it.resumed_ms.is_some());
        demand(!stops || all_resumed, "no new picture after a stop".into());
        unmet
    }

    /// A line of the table.
    pub(crate) fn line(&self) -> String {
        let optional = |it: Option<String>| it.unwrap_or_else(|| "-".into());
        let mut remarks = self.unmet.clone();
        remarks.extend((self.resumed_ms).map(|ms| format!("new picture {ms:.0} ms after a stop")));
        remarks
            .extend((self.camera_grew_bytes).map(|bytes| format!("camera {:+} kB", bytes / 1000)));
        remarks
            .extend((self.pieces_to_old).map(|pieces| format!("{pieces} pieces to the old one")));
        remarks.extend(
            (self.subscriber_percent).map(|cpu| format!("CPU of the subscriber {cpu:.1} %")),
        );
        format!(
            "| {} | {} | {} | {:.2} | {:.2} | {} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | {} | {} | {} |",
            self.case,
            self.bytes,
            self.hertz,
            self.whole_percent,
            self.worst_whole_percent,
            self.lost,
            self.missed,
            self.median_ms,
            self.worst_median_ms,
            self.p99_ms,
            self.mediator_percent,
            self.worst_mediator_percent,
            optional(self.extra_percent.map(|it| format!("{it:.1}"))),
            optional(self.longest_datagram.map(|it| it.to_string())),
            remarks.join("; "),
        )
    }
}
