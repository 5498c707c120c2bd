//! The figures of a run. PURE.

use serde::Serialize;

use crate::samples::Times;
use crate::watch::Streams;
use crate::ways::Way;

/// All figures.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) robots: usize,
    pub(crate) cores: usize,
    /// The measurement time of each path.
    pub(crate) measured_s: f64,
    pub(crate) rounds: u32,
    pub(crate) presence: Presence,
    pub(crate) ways: Vec<WayFigures>,
    pub(crate) ratios: Ratios,
    pub(crate) usage: Vec<Usage>,
    pub(crate) router: RouterCost,
    pub(crate) commands: Commands,
    pub(crate) faults: Vec<Fault>,
    /// The total of messages that robots have counted as dropped or missed.
    pub(crate) dropped: Vec<(String, u64)>,
    pub(crate) goals: Vec<Goal>,
}

/// How fast robots are seen.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Presence {
    /// From the start of all processes until all robots and devices are listed.
    pub(crate) start_s: f64,
    /// For a program that has just been started, while all robots are there.
    pub(crate) newcomer_ms: f64,
    /// Tokens of robots and devices.
    pub(crate) tokens: usize,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct WayFigures {
    pub(crate) way: Way,
    pub(crate) streams: Streams,
    pub(crate) calls: Times,
    pub(crate) calls_failed: u64,
}

/// How the fleet compares with raw Zenoh in the same run.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Ratios {
    /// From the robot's process to the watcher, median and 99th percentile.
    pub(crate) scan_in_zenoh: [f64; 2],
    /// From the driver to the watcher, compared with raw Zenoh alone.
    pub(crate) scan_total: [f64; 2],
    /// A call, compared with raw Zenoh alone.
    pub(crate) call_total: [f64; 2],
    /// From the driver to the watcher, compared with the sum of raw Zenoh and the mediator.
    pub(crate) scan_sum: f64,
    /// The same of a call.
    pub(crate) call_sum: f64,
}

/// The total resource usage of one kind of processes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Usage {
    pub(crate) what: &'static str,
    pub(crate) processes: usize,
    /// Of one core, without subscribers.
    pub(crate) idle_percent: f64,
    /// Of one core, while all streams of the fleet and calls run.
    pub(crate) busy_percent: f64,
    pub(crate) rss_mb: f64,
    pub(crate) pss_mb: f64,
}

/// The cost of a message for the router.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct RouterCost {
    /// CPU time per scan while the fleet runs; calls are a tenth of the load.
    pub(crate) fleet_us: f64,
    /// The same while raw peers run.
    pub(crate) raw_us: f64,
    /// The same while raw peers send ten times as many scans.
    pub(crate) fast_us: f64,
    /// Scans per second that arrived meanwhile.
    pub(crate) fast_per_s: f64,
    /// The scans of them that were lost.
    pub(crate) fast_lost: u64,
}

/// One motion command for each robot.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Commands {
    /// Robots whose wheels have turned at the speed that was commanded.
    pub(crate) confirmed: usize,
    /// The time for all of them, one after the other, each with a look at the wheels.
    pub(crate) all_ms: f64,
    /// From a command until its wheels stand, without a second command: of the fastest and the
    /// slowest robot.
    pub(crate) stop_ms: [f64; 2],
}

/// The effect of a fault, and its detection time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Fault {
    pub(crate) what: &'static str,
    /// How soon it should be noticed.
    pub(crate) notice_s: f64,
    /// The detectors, with their detection times.
    pub(crate) noticed: Vec<(&'static str, f64)>,
    /// The recovered parts, with their times after the repair.
    pub(crate) back: Vec<(&'static str, f64)>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Goal {
    pub(crate) what: String,
    pub(crate) at_most: f64,
    pub(crate) got: f64,
    pub(crate) is_met: bool,
}

impl Goal {
    fn new(what: impl Into<String>, got: f64, at_most: f64) -> Self {
        Self {
            what: what.into(),
            at_most,
            got,
            is_met: got <= at_most,
        }
    }
}

impl Ratios {
    /// Compares the ways of a run.
    pub(crate) fn of(ways: &[WayFigures]) -> Self {
        let pick = |way: Way, time: fn(&WayFigures) -> f64| {
            let found = ways.iter().find(|it| it.way == way);
            found.map_or(f64::NAN, time)
        };
        let (direct, raw, fleet) = (Way::Direct, Way::Raw, Way::Fleet);
        let scan: [fn(&WayFigures) -> f64; 2] =
            [|it| it.streams.total.p50_us, |it| it.streams.total.p99_us];
        let zenoh: [fn(&WayFigures) -> f64; 2] = [
            |it| it.streams.in_zenoh.p50_us,
            |it| it.streams.in_zenoh.p99_us,
        ];
        let call: [fn(&WayFigures) -> f64; 2] = [|it| it.calls.p50_us, |it| it.calls.p99_us];
        let sum = |time: fn(&WayFigures) -> f64| {
            pick(fleet, time) / (pick(direct, time) + pick(raw, time))
        };
        Self {
            scan_in_zenoh: zenoh.map(|time| pick(fleet, time) / pick(raw, time)),
            scan_total: scan.map(|time| pick(fleet, time) / pick(raw, time)),
            call_total: call.map(|time| pick(fleet, time) / pick(raw, time)),
            scan_sum: sum(scan[0]),
            call_sum: sum(call[0]),
        }
    }
}

/// The calculated needs of more robots, from the measurements.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Outlook {
    pub(crate) robots: f64,
    pub(crate) tokens: f64,
    /// For a program that has just started.
    pub(crate) list_s: f64,
    /// Cores of routers without subscribers.
    pub(crate) idle_cores: f64,
    /// Cores of routers while one robot of a hundred is watched by one program, and all are.
    pub(crate) busy_cores: [f64; 2],
    /// The bandwidth of all scans if all robots are watched by one program: into the routers, and
    /// out again.
    pub(crate) traffic_gbit_s: f64,
}

/// Bytes of a scan with its key and headers.
const SCAN_BYTES: f64 = 6_900.0;
/// Scans per second of each robot.
const SCANS_PER_S: f64 = 10.0;

impl Report {
    /// Calculates what so many robots would need: each figure in proportion to their number.
    pub(crate) fn outlook(&self, robots: f64) -> Outlook {
        let times = robots / self.robots as f64;
        let idle = self
            .usage
            .first()
            .map_or(0.0, |router| router.idle_percent / 100.0);
        let scans = robots * SCANS_PER_S;
        let busy = |part: f64| idle * times + part * scans * self.router.fast_us / 1e6;
        Outlook {
            robots,
            tokens: self.presence.tokens as f64 * times,
            list_s: self.presence.newcomer_ms / 1e3 * times,
            idle_cores: idle * times,
            busy_cores: [busy(0.01), busy(1.0)],
            traffic_gbit_s: scans * SCAN_BYTES * 8.0 / 1e9,
        }
    }
}

/// The goals of a fleet, and whether they are met.
pub(crate) fn goals(presence: &Presence, ratios: &Ratios, faults: &[Fault]) -> Vec<Goal> {
    let mut goals = vec![
        Goal::new("all listed after the start, s", presence.start_s, 5.0),
        Goal::new(
            "scan, robot to watcher, compared with raw Zenoh, p50",
            ratios.scan_in_zenoh[0],
            1.3,
        ),
        Goal::new(
            "scan, robot to watcher, compared with raw Zenoh, p99",
            ratios.scan_in_zenoh[1],
            1.3,
        ),
        Goal::new(
            "scan compared with raw Zenoh + mediator, p50",
            ratios.scan_sum,
            1.3,
        ),
        Goal::new(
            "call compared with raw Zenoh + mediator, p50",
            ratios.call_sum,
            1.3,
        ),
    ];
    for fault in faults {
        let noticed = fault.noticed.iter();
        let limit_s = fault.notice_s;
        goals.extend(
            noticed.map(|(by, s)| Goal::new(format!("{}: {by}, s", fault.what), *s, limit_s)),
        );
        let back = fault.back.iter();
        goals
            .extend(back.map(|(what, s)| Goal::new(format!("{}: {what}, s", fault.what), *s, 5.0)));
    }
    goals
}
