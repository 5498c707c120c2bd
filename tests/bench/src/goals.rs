//! The performance goals of the mediator. PURE.

use self::Cores::{Any, Apart, One};
use crate::fairness::FLOODED;
use crate::load::Flood;
use crate::peers::fastest;
use crate::results::{Candidate, Results};

/// A goal.
#[derive(Clone, Debug)]
pub struct Goal {
    /// The load.
    pub load: &'static str,
    /// The quantity with its unit.
    pub quantity: &'static str,
    /// The limit.
    pub limit: Limit,
}

/// The limit of a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// At most this multiple of `floor -b`.
    TimesFloorAtMost(f64),
    /// At least this multiple of `floor -b`.
    TimesFloorAtLeast(f64),
    /// More than a peer, which reached this multiple of `floor -b`.
    FasterThan(&'static str, f64),
    /// An absolute maximum.
    AtMost(f64),
    /// An absolute minimum.
    AtLeast(f64),
}

/// The result of a goal.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The goal.
    pub goal: Goal,
    /// The measured ratio or quantity.
    pub value: f64,
    /// Whether the goal was reached.
    pub reached: bool,
}

/// The assignment of processes to cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cores {
    /// Chosen by the system, which varies between runs.
    Any,
    /// Load, candidate and driver on one core.
    One,
    /// Candidate and driver on one core, the load on another, as if it were another machine. A load
    /// on the same core would take CPU time from them with each datagram, at random.
    Apart,
}

/// The round-trip loads, with the message size in bytes.
pub const ROUND_TRIPS: [(&str, Cores, usize); 9] = [
    ("rtt, 64 B", Any, 64),
    ("rtt, 1 KiB", Any, 1024),
    ("rtt, 6.8 kB", Any, 6800),
    ("rtt on one core, 64 B", One, 64),
    ("rtt on one core, 1 KiB", One, 1024),
    ("rtt on one core, 6.8 kB", One, 6800),
    ("rtt apart, 64 B", Apart, 64),
    ("rtt apart, 1 KiB", Apart, 1024),
    ("rtt apart, 6.8 kB", Apart, 6800),
];

/// The flood loads: clients, requests in flight per client, bytes.
pub const FLOODS: [(&str, usize, Flood, usize); 6] = [
    ("1 client x 64, 64 B", 1, Flood::Window(64), 64),
    (AT_ONCE, 1, Flood::AtOnce(64), 64),
    ("16 clients x 4, 64 B", 16, Flood::Window(4), 64),
    ("256 clients x 1, 64 B", 256, Flood::Window(1), 64),
    ("1 client x 64, 1 KiB", 1, Flood::Window(64), 1024),
    ("1 client x 64, 6.8 kB", 1, Flood::Window(64), 6800),
];

/// A client that passes many requests to the system in one call, as NATS clients do.
const AT_ONCE: &str = "1 client x 64 at once, 64 B";

/// The loads with subscribers: their number, messages per second, bytes.
pub const FAN_OUTS: [(&str, Cores, usize, u32, usize); 8] = [
    ("10 subscribers, 50 Hz, 64 B", Any, 10, 50, 64),
    ("100 subscribers, 50 Hz, 64 B", Any, 100, 50, 64),
    ("1000 subscribers, 50 Hz, 64 B", Any, 1000, 50, 64),
    ("100 subscribers, 40 Hz, 6.8 kB", Any, 100, 40, 6800),
    ("10 subscribers apart, 50 Hz, 64 B", Apart, 10, 50, 64),
    ("100 subscribers apart, 50 Hz, 64 B", Apart, 100, 50, 64),
    ("1000 subscribers apart, 50 Hz, 64 B", Apart, 1000, 50, 64),
    ("100 subscribers apart, 40 Hz, 6.8 kB", Apart, 100, 40, 6800),
];

/// The verdict for each goal; goals without a measurement are skipped.
pub fn verdicts(results: &Results) -> Vec<Verdict> {
    goals()
        .into_iter()
        .filter_map(|goal| verdict(goal, results))
        .collect()
}

fn verdict(goal: Goal, results: &Results) -> Option<Verdict> {
    let (amber, floor) = (Candidate::Amber, Candidate::FloorBatched);
    let (load, quantity) = (goal.load, goal.quantity);
    let value = match goal.limit {
        Limit::TimesFloorAtMost(_) | Limit::TimesFloorAtLeast(_) | Limit::FasterThan(..) => {
            results.ratio(load, quantity, amber, floor)?
        }
        Limit::AtMost(_) | Limit::AtLeast(_) => results.median(load, quantity, amber)?,
    };
    let reached = match goal.limit {
        Limit::TimesFloorAtMost(limit) | Limit::AtMost(limit) => value <= limit,
        Limit::TimesFloorAtLeast(limit) | Limit::AtLeast(limit) => value >= limit,
        Limit::FasterThan(_, limit) => value > limit,
    };
    Some(Verdict {
        goal,
        value,
        reached,
    })
}

fn goals() -> Vec<Goal> {
    let mut goals = Vec::new();
    let mut add = |load, quantity, limit| {
        goals.push(Goal {
            load,
            quantity,
            limit,
        });
    };
    for (load, ..) in ROUND_TRIPS {
        add(load, "p50_us", Limit::TimesFloorAtMost(1.10));
        add(load, "p99_us", Limit::TimesFloorAtMost(1.2));
        add(load, "cpu_us", Limit::TimesFloorAtMost(1.15));
    }
    for (load, ..) in FLOODS {
        add(load, "per_s", Limit::TimesFloorAtLeast(0.95));
        add(load, "cpu_us", Limit::TimesFloorAtMost(1.15));
    }
    let with_one_client = (FLOODS.iter())
        .filter(|(_, clients, flood, _)| matches!((clients, flood), (1, Flood::Window(_))));
    for (size, (load, ..)) in with_one_client.enumerate() {
        // NATS with short messages is exempt from the goal.
        let nats = Some("NATS").filter(|_| size == 0);
        for (peer, speed) in [fastest(size, nats), nats.and_then(|_| fastest(size, None))]
            .into_iter()
            .flatten()
        {
            add(load, "per_s", Limit::FasterThan(peer, speed));
        }
    }
    if let Some((peer, speed)) = fastest(0, None) {
        add(AT_ONCE, "per_s", Limit::FasterThan(peer, speed));
    }
    for (load, ..) in FAN_OUTS {
        add(load, "cpu_us", Limit::TimesFloorAtMost(1.1));
        add(load, "lost_percent", Limit::AtMost(0.0));
    }
    add(
        "10 000 clients, 200 drivers",
        "times_cpu_of_1_and_1",
        Limit::AtMost(1.1),
    );
    add(
        "overload, twice the best",
        "part_of_best",
        Limit::AtLeast(0.9),
    );
    // While one request waits, at most the contents of the buffers and queues on the way are
    // served.
    add(
        "overload, twice the best",
        "p99_of_what_is_held",
        Limit::AtMost(1.0),
    );
    add("4 drivers, 10 clients", "resident_mb", Limit::AtMost(8.0));
    add("20 000 clients", "bytes_per_client", Limit::AtMost(200.0));
    add(
        "start to first answer, bench-echo",
        "ms",
        Limit::AtMost(10.0),
    );
    add("start to first answer, dummy", "ms", Limit::AtMost(30.0));
    add("10 idle drivers", "wakeups_per_s", Limit::AtMost(5.0));
    add("10 idle drivers", "cpu_percent", Limit::AtMost(0.1));
    add(
        "client and driver by SDK, rtt",
        "times_raw",
        Limit::AtMost(1.5),
    );
    add(
        "subscriber of 1000 scans/s by SDK",
        "per_s",
        Limit::AtLeast(950.0),
    );
    add(
        "subscriber of 1000 scans/s by SDK",
        "cpu_percent",
        Limit::AtMost(10.0),
    );
    for (load, ..) in FLOODED {
        add(load, "times_p99_alone", Limit::AtMost(2.0));
        add(load, "lost_percent", Limit::AtMost(0.0));
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_reached_or_missed_or_not_measured() {
        let mut results = Results::default();
        for (candidate, value) in [(Candidate::FloorBatched, 100.0), (Candidate::Amber, 94.0)] {
            results.add("1 client x 64, 64 B", "per_s", candidate, value);
            results.add("rtt, 64 B", "p50_us", candidate, value);
        }
        results.add("10 idle drivers", "wakeups_per_s", Candidate::Amber, 4.0);
        let verdicts: Vec<_> = (verdicts(&results).into_iter())
            .map(|verdict| (verdict.goal.quantity, verdict.value, verdict.reached))
            .collect();
        assert_eq!(
            verdicts,
            [
                ("p50_us", 0.94, true),
                ("per_s", 0.94, false),
                // More than ZeroMQ, less than NATS.
                ("per_s", 0.94, true),
                ("per_s", 0.94, false),
                ("wakeups_per_s", 4.0, true)
            ]
        );
    }
}
