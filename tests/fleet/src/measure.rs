//! One run: what is measured, in which order. IO.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use amber_harness::usage::shared_memory_of;
use amber_zenoh::fleet::{Fleet, devices, look};
use amber_zenoh::health::State;
use anyhow::{bail, ensure};
use tokio::time::{interval, sleep, timeout};
use zenoh::Session;

use crate::clock::monotonic_ns;
use crate::faults;
use crate::figures::{Commands, Presence, Ratios, Report, RouterCost, Usage, WayFigures, goals};
use crate::raw::link;
use crate::samples::Samples;
use crate::site::{Programs, Role, Site};
use crate::usage::Reading;
use crate::watch::Tally;
use crate::ways::{Listening, Mediators, Way, Ways, zenoh_failed};

/// The settings of the measurement.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) robots: usize,
    /// Measurement time for each path.
    pub(crate) duration: Duration,
    /// The ways take turns so often.
    pub(crate) rounds: u32,
}

/// Longer than anything takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How long a list waits for a robot that does not answer.
pub(crate) const LOOK: Duration = Duration::from_millis(500);
/// The devices of each robot.
const DEVICES: usize = 2;
/// Scans of each robot before a measurement begins.
const WARM_UP_SCANS: u64 = 3;
/// The time between two calls: a hundred per second, to one robot after the other.
const CALL_PERIOD: Duration = Duration::from_millis(10);
/// The processes that are counted together, and their names.
const ROLES: [(Role, &str); 5] = [
    (Role::Router, "router"),
    (Role::AmberZenoh, "`amber-zenoh robot`"),
    (Role::Mediator, "mediators, with their guards"),
    (Role::Driver, "drivers of the bench"),
    (Role::Raw, "raw peers"),
];

/// Starts everything, and measures all.
pub(crate) async fn run(programs: &Programs, plan: &Plan) -> anyhow::Result<Report> {
    let began = Instant::now();
    let mut site = Site::start(programs, plan.robots)?;
    let session = amber_zenoh::session::open(&link(&site.endpoint)?).await?;
    let listed = wait_until_listed(&session, plan.robots).await?;
    let start_s = began.elapsed().as_secs_f64();
    let devices = devices(&session, LOOK).await.map_err(zenoh_failed)?;
    let tokens = devices.len() + listed.robots.iter().map(|it| it.starts).sum::<usize>();
    let presence = Presence {
        start_s,
        newcomer_ms: newcomer(&site, plan.robots).await?.as_secs_f64() * 1e3,
        tokens,
    };
    site.start_raw(programs)?;
    let mut ways = Ways::open(&site, Mediators::Here).await?;
    let measured = measure_ways(&site, &mut ways, plan).await?;
    let commands = command_all(&mut ways).await?;
    let dropped = dropped(&look(&session, LOOK).await.map_err(zenoh_failed)?);
    // Nothing but the fleet is needed from now on.
    ways.leave_mediators();
    crate::process::end(std::mem::take(&mut site.raw));
    let faults = faults::all(programs, &mut site, &ways, &session).await?;
    session.close().await.map_err(zenoh_failed)?;
    let ratios = Ratios::of(&measured.ways);
    Ok(Report {
        robots: plan.robots,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        measured_s: plan.duration.as_secs_f64(),
        rounds: plan.rounds,
        goals: goals(&presence, &ratios, &faults),
        presence,
        ways: measured.ways,
        ratios,
        usage: measured.usage,
        router: measured.router,
        commands,
        faults,
        dropped,
    })
}

/// Whether all robots are listed with their mediators, and all devices work.
pub(crate) fn is_complete(fleet: &Fleet, robots: usize) -> bool {
    let is_complete = fleet.robots.iter().map(|row| {
        let info = row.info.as_ref();
        info.is_some_and(|info| {
            let up = info.devices.iter().filter(|it| it.state == State::Up);
            info.mediator && up.count() == DEVICES
        })
    });
    is_complete.filter(|it| *it).count() == robots
}

/// Lists the fleet until it is complete.
pub(crate) async fn wait_until_listed(session: &Session, robots: usize) -> anyhow::Result<Fleet> {
    let until = Instant::now() + PATIENCE;
    loop {
        let fleet = look(session, LOOK).await.map_err(zenoh_failed)?;
        if is_complete(&fleet, robots) {
            return Ok(fleet);
        }
        let count = fleet.robots.len();
        ensure!(
            Instant::now() < until,
            "only {count} of {robots} robots are listed and work"
        );
        sleep(Duration::from_millis(10)).await;
    }
}

/// The time that a new program needs for a complete list: the median of several.
async fn newcomer(site: &Site, robots: usize) -> anyhow::Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..5 {
        let began = Instant::now();
        let session = amber_zenoh::session::open(&link(&site.endpoint)?).await?;
        wait_until_listed(&session, robots).await?;
        times.push(began.elapsed());
        session.close().await.map_err(zenoh_failed)?;
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// Waits until each robot has sent so many scans, the last of them made after a time.
pub(crate) async fn wait_for_scans(
    listening: &mut Listening,
    tally: &mut Tally,
    scans: u64,
    after_ns: u64,
) -> anyhow::Result<()> {
    let flow = async {
        while !tally.missing(scans, after_ns).is_empty() {
            match listening.arrivals.recv().await {
                Some(arrival) => tally.take(&arrival),
                None => bail!("the streams have ended"),
            }
        }
        Ok(())
    };
    let ended = timeout(PATIENCE, flow).await;
    ended.unwrap_or_else(|_| bail!("no scans of robots {:?}", tally.missing(scans, after_ns)))
}

/// The results of the paths.
struct Measured {
    ways: Vec<WayFigures>,
    usage: Vec<Usage>,
    router: RouterCost,
}

/// The results of one path so far.
struct Sums {
    way: Way,
    tally: Tally,
    calls: Samples,
    calls_failed: u64,
    duration: Duration,
    /// CPU time of [`ROLES`].
    cpu: [Duration; ROLES.len()],
}

impl Sums {
    fn new(way: Way, robots: usize) -> Self {
        Self {
            way,
            tally: Tally::new(robots),
            calls: Samples::default(),
            calls_failed: 0,
            duration: Duration::ZERO,
            cpu: [Duration::ZERO; ROLES.len()],
        }
    }

    /// The figures, and the CPU time of the router per scan in microseconds.
    fn figures(self) -> (WayFigures, f64) {
        let router = self.cpu[0];
        let figures = WayFigures {
            way: self.way,
            streams: self.tally.streams(self.duration),
            calls: self.calls.times(),
            calls_failed: self.calls_failed,
        };
        let per_scan_us = router.as_secs_f64() * 1e6 / figures.streams.got as f64;
        (figures, per_scan_us)
    }
}

async fn measure_ways(site: &Site, ways: &mut Ways, plan: &Plan) -> anyhow::Result<Measured> {
    let pids = ROLES.map(|(role, _)| site.pids(role));
    let all = pids.concat();
    let turn = plan.duration / plan.rounds;
    let robots = ways.robots();
    let mut sums = [Way::Direct, Way::Raw, Way::Fleet].map(|way| Sums::new(way, robots));
    for round in 0..plan.rounds as usize {
        // Each is the first as often as the others.
        for step in 0..sums.len() {
            let index = (round + step) % sums.len();
            measure_way(ways, &mut sums[index], turn, &pids).await?;
        }
    }
    let mut fast = Sums::new(Way::FastRaw, robots);
    measure_way(ways, &mut fast, turn, &pids).await?;
    let (fast, fast_us) = fast.figures();
    let before = Reading::of(all.clone());
    sleep(plan.duration.min(Duration::from_secs(10))).await;
    let idle = Reading::of(all);
    let of_fleet = &sums[2];
    let usage = ROLES
        .iter()
        .zip(&pids)
        .enumerate()
        .map(|(at, ((_, what), pids))| {
            let (used, time) = idle.since(&before, pids);
            let (rss, pss) = shared_memory_of(pids);
            Usage {
                what,
                processes: pids.len(),
                idle_percent: percent(used, time),
                busy_percent: percent(of_fleet.cpu[at], of_fleet.duration),
                rss_mb: rss as f64 / 1e6,
                pss_mb: pss as f64 / 1e6,
            }
        });
    let usage = usage.collect();
    let (ways, costs): (Vec<_>, Vec<_>) = sums.map(Sums::figures).into_iter().unzip();
    Ok(Measured {
        ways,
        usage,
        router: RouterCost {
            fleet_us: costs[2],
            raw_us: costs[1],
            fast_us,
            fast_per_s: fast.streams.messages_per_s,
            fast_lost: fast.streams.lost,
        },
    })
}

fn percent(used: Duration, time: Duration) -> f64 {
    100.0 * used.as_secs_f64() / time.as_secs_f64()
}

/// Listens to all robots on one way for a while, and calls one after the other meanwhile.
async fn measure_way(
    ways: &mut Ways,
    sums: &mut Sums,
    turn: Duration,
    pids: &[Vec<u32>; ROLES.len()],
) -> anyhow::Result<()> {
    let mut listening = ways.listen(sums.way).await?;
    let mut tally = Tally::new(ways.robots());
    wait_for_scans(&mut listening, &mut tally, WARM_UP_SCANS, 0).await?;
    for robot in 0..ways.robots() {
        ways.call(sums.way, robot).await?;
    }
    while let Ok(arrival) = listening.arrivals.try_recv() {
        tally.take(&arrival);
    }
    tally.reset();
    let before = Reading::of(pids.concat());
    let began = Instant::now();
    let calls = async {
        let mut ticks = interval(CALL_PERIOD);
        let (mut calls, mut failed) = (Samples::default(), 0);
        for robot in (0..ways.robots()).cycle() {
            ticks.tick().await;
            if began.elapsed() >= turn {
                break;
            }
            let asked_ns = monotonic_ns();
            match ways.call(sums.way, robot).await {
                Ok(_) => calls.add(asked_ns, monotonic_ns()),
                Err(_) => failed += 1,
            }
        }
        (calls, failed)
    };
    let counting = async {
        while let Some(arrival) = listening.arrivals.recv().await {
            tally.take(&arrival);
        }
    };
    let (calls, failed) = tokio::select! {
        calls = calls => calls,
        () = counting => bail!("the streams have ended"),
    };
    let duration = began.elapsed();
    let after = Reading::of(pids.concat());
    for (sum, pids) in sums.cpu.iter_mut().zip(pids) {
        *sum += after.since(&before, pids).0;
    }
    sums.duration += duration;
    sums.tally.join(tally);
    sums.calls.extend(calls);
    sums.calls_failed += failed;
    Ok(())
}

/// Commands each robot at its own speed, and watches its wheels until they stand still again.
async fn command_all(ways: &mut Ways) -> anyhow::Result<Commands> {
    let began = Instant::now();
    let mut commanded = Vec::new();
    let mut confirmed = 0;
    for robot in 0..ways.robots() {
        let speed_mm_s = 100 + robot as i32;
        ways.drive(robot, speed_mm_s).await?;
        commanded.push(Instant::now());
        confirmed += usize::from(ways.call(Way::Fleet, robot).await? == speed_mm_s);
    }
    let all_ms = began.elapsed().as_secs_f64() * 1e3;
    let mut stopped: BTreeMap<usize, Duration> = BTreeMap::new();
    while stopped.len() < ways.robots() {
        ensure!(began.elapsed() < PATIENCE, "some wheels do not stop");
        for (robot, since) in commanded.iter().enumerate() {
            if !stopped.contains_key(&robot) && ways.call(Way::Fleet, robot).await? == 0 {
                stopped.insert(robot, since.elapsed());
            }
        }
    }
    let times = stopped.values().map(|it| it.as_secs_f64() * 1e3);
    Ok(Commands {
        confirmed,
        all_ms,
        stop_ms: [
            times.clone().fold(f64::INFINITY, f64::min),
            times.fold(0.0, f64::max),
        ],
    })
}

/// The total of messages that robots have counted as dropped, missed or refused.
fn dropped(fleet: &Fleet) -> Vec<(String, u64)> {
    let is_loss = |name: &str| {
        let parts = ["missed", "not_sent", "dropped", "refused", "replaced"];
        parts.iter().any(|part| name.contains(part))
    };
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    let infos = fleet.robots.iter().filter_map(|it| it.info.as_ref());
    for (name, count) in infos.flat_map(|info| &info.counters) {
        if is_loss(name) {
            *sums.entry(name.clone()).or_default() += count;
        }
    }
    sums.into_iter().collect()
}
