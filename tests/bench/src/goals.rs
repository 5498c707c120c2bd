//! The performance goals of the mediator. PURE.

use self::Cores::{Alone, Apart, Beside, One};
use crate::fairness::FLOODED;
use crate::load::Flood;
use crate::results::{Candidate, Results};

#[derive(Clone, Debug)]
pub struct Goal {
    pub load: String,
    /// The quantity with its unit.
    pub quantity: &'static str,
    pub limit: Limit,
}

/// The limit of a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// At most this multiple of `floor -b`.
    TimesFloorAtMost(f64),
    /// At least this multiple of `floor -b`.
    TimesFloorAtLeast(f64),
    /// An absolute maximum.
    AtMost(f64),
    /// An absolute minimum.
    AtLeast(f64),
}

/// The result of a goal.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub goal: Goal,
    /// The measured ratio or quantity.
    pub value: f64,
    /// Whether the goal was reached.
    pub reached: bool,
}

/// The assignment of processes to cores. Without one, the system chooses and changes it at random,
/// so the results have two modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cores {
    /// Load, candidate and driver on one core.
    One,
    /// Candidate and driver on one core, the load on another, as if it were another machine.
    Apart,
    /// The candidate on one core, driver and load on another.
    Alone,
    /// Candidate and load on one core, the driver on another.
    Beside,
}

impl Cores {
    /// All of them, with the name of each.
    pub const ALL: [(Self, &str); 4] = [
        (One, "on one core"),
        (Apart, "apart"),
        (Alone, "mediator alone"),
        (Beside, "driver alone"),
    ];

    /// Its name in the names of loads.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.iter().find(|(cores, _)| *cores == self);
        named.map_or("", |(_, name)| name)
    }
}

/// The round-trip loads, with the message size in bytes.
pub const ROUND_TRIPS: [(&str, Cores, usize); 9] = [
    ("rtt on one core, 64 B", One, 64),
    ("rtt on one core, 1 KiB", One, 1024),
    ("rtt on one core, 6.8 kB", One, 6800),
    ("rtt apart, 64 B", Apart, 64),
    ("rtt apart, 1 KiB", Apart, 1024),
    ("rtt apart, 6.8 kB", Apart, 6800),
    ("rtt, mediator alone, 64 B", Alone, 64),
    ("rtt, mediator alone, 1 KiB", Alone, 1024),
    ("rtt, mediator alone, 6.8 kB", Alone, 6800),
];

/// The flood loads: clients, requests in flight per client, bytes. Each is measured with all
/// [assignments](Cores::ALL): see [`flood_name`]. Programs usually have one request in flight. A
/// client that passes many to the system in one call does so as NATS clients do.
pub const FLOODS: [(&str, usize, Flood, usize); 11] = [
    ("1 client x 64, 64 B", 1, Flood::Window(64), 64),
    ("1 client x 64 at once, 64 B", 1, Flood::AtOnce(64), 64),
    ("4 clients x 1, 64 B", 4, Flood::Window(1), 64),
    ("16 clients x 1, 64 B", 16, Flood::Window(1), 64),
    ("64 clients x 1, 64 B", 64, Flood::Window(1), 64),
    ("256 clients x 1, 64 B", 256, Flood::Window(1), 64),
    ("16 clients x 4, 64 B", 16, Flood::Window(4), 64),
    ("1 client x 64, 1 KiB", 1, Flood::Window(64), 1024),
    ("1 client x 64, 6.8 kB", 1, Flood::Window(64), 6800),
    ("16 clients x 1, 6.8 kB", 16, Flood::Window(1), 6800),
    ("16 clients x 4, 6.8 kB", 16, Flood::Window(4), 6800),
];

/// The name of a flood load with an assignment.
pub fn flood_name(load: &str, cores: Cores) -> String {
    format!("{load}, {}", cores.name())
}

/// The loads with subscribers: their number, messages per second, bytes.
pub const FAN_OUTS: [(&str, Cores, usize, u32, usize); 8] = [
    ("10 subscribers on one core, 50 Hz, 64 B", One, 10, 50, 64),
    ("100 subscribers on one core, 50 Hz, 64 B", One, 100, 50, 64),
    (
        "1000 subscribers on one core, 50 Hz, 64 B",
        One,
        1000,
        50,
        64,
    ),
    (
        "100 subscribers on one core, 40 Hz, 6.8 kB",
        One,
        100,
        40,
        6800,
    ),
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
    let (load, quantity) = (&goal.load, goal.quantity);
    let value = match goal.limit {
        Limit::TimesFloorAtMost(_) | Limit::TimesFloorAtLeast(_) => {
            results.ratio(load, quantity, amber, floor)?
        }
        Limit::AtMost(_) | Limit::AtLeast(_) => results.shown(load, quantity, amber)?,
    };
    let reached = match goal.limit {
        Limit::TimesFloorAtMost(limit) | Limit::AtMost(limit) => value <= limit,
        Limit::TimesFloorAtLeast(limit) | Limit::AtLeast(limit) => value >= limit,
    };
    Some(Verdict {
        goal,
        value,
        reached,
    })
}

fn goals() -> Vec<Goal> {
    let mut goals = Vec::new();
    let mut add = |load: &str, quantity, limit| {
        goals.push(Goal {
            load: load.into(),
            quantity,
            limit,
        });
    };
    for (load, ..) in ROUND_TRIPS {
        add(load, "p50_us", Limit::TimesFloorAtMost(1.10));
        add(load, "p99_us", Limit::TimesFloorAtMost(1.2));
        add(load, "cpu_us", Limit::TimesFloorAtMost(1.15));
        add(load, "lost", Limit::AtMost(0.0));
    }
    for (load, ..) in FLOODS {
        for (cores, _) in Cores::ALL {
            let load = flood_name(load, cores);
            add(&load, "per_s", Limit::TimesFloorAtLeast(0.95));
            add(&load, "cpu_us", Limit::TimesFloorAtMost(1.08));
            add(&load, "lost", Limit::AtMost(0.0));
        }
    }
    for (load, ..) in FAN_OUTS {
        add(load, "cpu_us", Limit::TimesFloorAtMost(1.1));
        add(load, "lost", Limit::AtMost(0.0));
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
        add(load, "lost", Limit::AtMost(0.0));
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
            results.add("1 client x 64, 64 B, apart", "per_s", candidate, value);
            results.add("rtt apart, 64 B", "p50_us", candidate, value);
        }
        // One lost request in any round is too many.
        for lost in [0.0, 0.0, 1.0] {
            let load = "16 clients x 1, 64 B, apart";
            results.add(load, "lost", Candidate::Amber, lost);
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
                ("lost", 1.0, false),
                ("wakeups_per_s", 4.0, true)
            ]
        );
    }
}
