//! Faults of the link between a robot and its operator, who drives all the time. IO.
//!
//! The robot is in one network namespace, and the router with the operator in another. Frames between
//! both are lost, delayed or cut. The driver of the robot writes down each command, with its time: so
//! it is the witness of all motion.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use amber_harness::usage::shared_memory_of;
use amber_terminal::Human;
use amber_zenoh::limits::ORDER_AGE;
use anyhow::{Context, bail, ensure};
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::clock::monotonic_ns;
use crate::measure::{PATIENCE, wait_for_scans, wait_until_listed};
use crate::motion::{Act, Motion, read, seconds, speeds};
use crate::net::{Networks, OPERATOR};
use crate::samples::Times;
use crate::site::{Programs, Robot, Site, robot_name};
use crate::watch::Tally;
use crate::ways::{Listening, Mediators, Orders, Way, Ways};
use crate::wire::{Conditions, Wire};

/// The time between two orders.
const ORDER_PERIOD: Duration = Duration::from_millis(100);
/// How long an order moves the robot: half a second, and what drivers and threads need.
const LONGEST_S: f64 = 0.55;
/// The latency from the operator to the driver without faults, on a busy machine.
const SLACK_S: f64 = 0.1;
/// How fast driving and streams are back: the router has taken the robot for lost, so it must find a
/// new link.
const BACK_S: f64 = 5.0;
/// A cut that a link survives: shorter than the time without news after which it is lost.
const STALL: Duration = Duration::from_millis(1_500);
/// How long the operator then orders nothing.
const SETTLE: Duration = Duration::from_secs(3);
/// Memory that buffers may take once.
const GROWTH_MB: f64 = 8.0;

/// The robot and its operator, with a wire between them.
struct Trial {
    programs: Programs,
    site: Site,
    wire: Wire,
    ways: Ways,
    listening: Listening,
    tally: Tally,
    log: PathBuf,
    drives: watch::Sender<bool>,
    sent: watch::Receiver<Vec<u64>>,
}

/// The condition of the link.
#[derive(Clone, Copy)]
struct Kind {
    what: &'static str,
    conditions: Conditions,
    duration: Duration,
    meanwhile: Meanwhile,
}

/// A further event during a fault.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    /// The router is killed and started again.
    RouterRestarts,
    /// The operator soon orders nothing more, and again later.
    OperatorLetsGo,
}

/// The results during and after a fault.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LinkFault {
    pub(crate) what: &'static str,
    pub(crate) lasted_s: f64,
    pub(crate) orders: usize,
    pub(crate) motion: Motion,
    /// Orders that the robot refused because they had been held up or overtaken.
    pub(crate) refused_late: u64,
    /// From the end of the fault until an order of after it moved the wheels.
    pub(crate) drives_after_s: f64,
    /// From the end of the fault until scans of after it arrived.
    pub(crate) scans_after_s: f64,
    /// From the last order at the end until the wheels stood.
    pub(crate) stopped_after_s: f64,
    /// Of the robot's `amber-zenoh`, before and after.
    pub(crate) robot_mb: [f64; 2],
    /// Of the router; a router that was started again has no memory from before.
    pub(crate) router_mb: [f64; 2],
    /// Scans that arrived during the fault, and their latencies.
    pub(crate) scans: Times,
    pub(crate) is_well: bool,
}

/// All faults.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LinkReport {
    faults: Vec<LinkFault>,
}

/// Causes all faults, one after the other. With `quick`, they last only some seconds.
pub(crate) async fn run(programs: Programs, quick: bool) -> anyhow::Result<LinkReport> {
    let networks = Networks::new()?;
    let folder = tempfile::tempdir()?;
    let mut trial = Trial::start(programs, &networks, folder.path().join("driver.log")).await?;
    let mut found = Vec::new();
    for kind in kinds(quick) {
        found.push(trial.cause(kind).await.with_context(|| kind.what)?);
    }
    Ok(LinkReport { faults: found })
}

impl LinkReport {
    /// Whether all promises were kept.
    pub(crate) fn is_well(&self) -> bool {
        self.faults.iter().all(|it| it.is_well)
    }
}

impl Human for LinkReport {
    fn human(&self) -> String {
        let mut out = String::from(
            "| fault | for | orders | obeyed | refused as late | longest motion by one order | oldest order obeyed \
             | drives again after | scans again after | stopped after | RSS of `amber-zenoh` \
             | RSS of the router | as promised |\n\
             |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n",
        );
        for it in &self.faults {
            let _ = writeln!(
                out,
                "| {} | {:.1} s | {} | {} | {} | {:.2} s | {:.2} s | {:.1} s | {:.1} s | {:.2} s \
                 | {:.1} -> {:.1} MB | {:.1} -> {:.1} MB | {} |",
                it.what,
                it.lasted_s,
                it.orders,
                it.motion.obeyed,
                it.refused_late,
                it.motion.longest_s,
                it.motion.oldest_s,
                it.drives_after_s,
                it.scans_after_s,
                it.stopped_after_s,
                it.robot_mb[0],
                it.robot_mb[1],
                it.router_mb[0],
                it.router_mb[1],
                if it.is_well { "yes" } else { "**no**" },
            );
        }
        out
    }
}

fn kinds(quick: bool) -> Vec<Kind> {
    let seconds = |long: u64| Duration::from_secs(if quick { 3 } else { long });
    let kind = |what, conditions, long| Kind {
        what,
        conditions,
        duration: seconds(long),
        meanwhile: Meanwhile::Nothing,
    };
    let usual = Conditions::default();
    let cut = Conditions {
        cut_to_robot: true,
        cut_to_operator: true,
        ..usual
    };
    let loss = 0.2;
    let delay = Duration::from_millis(200);
    vec![
        kind("no fault", usual, 10),
        kind("20 % of frames lost", Conditions { loss, ..usual }, 20),
        kind("200 ms delay each way", Conditions { delay, ..usual }, 20),
        kind(
            "both",
            Conditions {
                loss,
                delay,
                ..usual
            },
            20,
        ),
        kind("cut", cut, 10),
        kind(
            "half-open: nothing reaches the robot",
            Conditions {
                cut_to_operator: false,
                ..cut
            },
            10,
        ),
        kind(
            "half-open: nothing reaches the operator",
            Conditions {
                cut_to_robot: false,
                ..cut
            },
            10,
        ),
        Kind {
            duration: STALL,
            meanwhile: Meanwhile::OperatorLetsGo,
            ..kind("cut, and the operator lets go", cut, 0)
        },
        Kind {
            meanwhile: Meanwhile::RouterRestarts,
            ..kind("half-open: router restarts during a cut", cut, 10)
        },
    ]
}

impl Trial {
    async fn start(programs: Programs, networks: &Networks, log: PathBuf) -> anyhow::Result<Self> {
        let wire = Wire::new(&networks.ends)?;
        let endpoint = format!("tcp/{OPERATOR}:7447");
        let router = programs.router(&endpoint)?;
        let name = robot_name(1);
        let robot = networks.robot.run(|| {
            let mediator = programs.logging_mediator(&name, &log)?;
            let address = mediator.after("listening on ")?;
            Ok(Robot {
                zenoh: programs.robot(&name, &address, &endpoint)?,
                name,
                address,
                mediator,
            })
        });
        let site = Site {
            endpoint,
            router,
            robots: vec![robot?],
            raw: Vec::new(),
        };
        let ways = Ways::open(&site, Mediators::Elsewhere).await?;
        wait_until_listed(&ways.session, 1).await?;
        let mut listening = ways.listen(Way::Fleet).await?;
        let mut tally = Tally::new(1);
        wait_for_scans(&mut listening, &mut tally, 1, 0).await?;
        let (drives, driven) = watch::channel(false);
        let (sender, sent) = watch::channel(Vec::new());
        tokio::spawn(drive(ways.orders(0)?, driven, sender));
        Ok(Self {
            programs,
            site,
            wire,
            ways,
            listening,
            tally,
            log,
            drives,
            sent,
        })
    }

    async fn cause(&mut self, kind: Kind) -> anyhow::Result<LinkFault> {
        let mark = self.acts()?.len();
        let first = self.sent.borrow().len();
        self.drives.send_replace(true);
        self.wait_for_act(monotonic_ns()).await?;
        let refused_before = self.refused_late().await?;
        let before = self.memory_mb();
        self.restart_tally();

        let began = Instant::now();
        self.wire.set(kind.conditions);
        match kind.meanwhile {
            Meanwhile::Nothing => {}
            Meanwhile::RouterRestarts => {
                self.site.router.kill();
                self.site.router = self.programs.router(&self.site.endpoint)?;
            }
            Meanwhile::OperatorLetsGo => {
                self.listen_until(began + kind.duration / 2).await?;
                self.drives.send_replace(false);
            }
        }
        self.listen_until(began + kind.duration).await?;
        let scans = self.tally.clone().streams(kind.duration).total;
        self.wire.set(Conditions::default());
        let lasted_s = began.elapsed().as_secs_f64();
        let cleared_ns = monotonic_ns();

        let mut resumed_ns = cleared_ns;
        if kind.meanwhile == Meanwhile::OperatorLetsGo {
            // Until all that TCP has held up has arrived.
            self.listen_until(Instant::now() + SETTLE).await?;
            self.drives.send_replace(true);
            resumed_ns = monotonic_ns();
        }
        let driven_ns = self.wait_for_act(resumed_ns).await?;
        self.restart_tally();
        wait_for_scans(&mut self.listening, &mut self.tally, 1, resumed_ns).await?;
        let scanned_ns = monotonic_ns();
        self.drives.send_replace(false);
        let stopped_after_s = self.wait_for_stop().await?;
        let after = self.memory_mb();

        let acts = self.acts()?.split_off(mark);
        let sent = self.sent.borrow().clone();
        let mut fault = LinkFault {
            what: kind.what,
            lasted_s,
            orders: sent.len() - first,
            motion: Motion::of(&acts, &sent, monotonic_ns()),
            refused_late: self.refused_late().await? - refused_before,
            drives_after_s: seconds(resumed_ns, driven_ns),
            scans_after_s: seconds(resumed_ns, scanned_ns),
            stopped_after_s,
            robot_mb: [before.0, after.0],
            router_mb: [before.1, after.1],
            scans,
            is_well: false,
        };
        // A part of the delay is the usual time, as the robot sees it.
        let oldest_s = ORDER_AGE.as_secs_f64() + kind.conditions.delay.as_secs_f64() + SLACK_S;
        fault.is_well = fault.motion.oldest_s <= oldest_s
            && fault.motion.longest_s <= LONGEST_S
            && fault.stopped_after_s <= LONGEST_S
            && fault.drives_after_s.max(fault.scans_after_s) <= BACK_S
            && (after.0 - before.0).max(after.1 - before.1) <= GROWTH_MB;
        Ok(fault)
    }

    /// The counters of the robot.
    async fn refused_late(&self) -> anyhow::Result<u64> {
        let fleet = wait_until_listed(&self.ways.session, 1).await?;
        let info = fleet.robots.iter().find_map(|row| row.info.as_ref());
        let count = info.and_then(|info| info.counters.get("refused_late"));
        Ok(count.copied().unwrap_or_default())
    }

    /// Counts scans until a moment.
    async fn listen_until(&mut self, until: Instant) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                () = sleep(until.saturating_duration_since(Instant::now())) => return Ok(()),
                arrival = self.listening.arrivals.recv() => match arrival {
                    Some(arrival) => self.tally.take(&arrival),
                    None => bail!("the streams have ended"),
                },
            }
        }
    }

    fn restart_tally(&mut self) {
        while let Ok(arrival) = self.listening.arrivals.try_recv() {
            self.tally.take(&arrival);
        }
        self.tally.reset();
    }

    fn acts(&self) -> anyhow::Result<Vec<Act>> {
        // The driver makes the file when it gets its first command.
        Ok(read(&fs::read_to_string(&self.log).unwrap_or_default()))
    }

    /// Waits until an order that was sent after a time moves the wheels. Returns when.
    async fn wait_for_act(&self, after_ns: u64) -> anyhow::Result<u64> {
        self.wait("an order moves the wheels", |acts, sent_ns| {
            let last = acts.last()?;
            let order = last.order? as usize;
            (*sent_ns.get(order)? > after_ns).then_some(last.at_ns)
        })
        .await
    }

    /// Waits until the wheels stand. Returns how long after the last order that was carried out.
    async fn wait_for_stop(&self) -> anyhow::Result<f64> {
        self.wait("the wheels stand", |acts, _| {
            let (last, before) = acts.split_last()?;
            let order = before.iter().rev().find(|it| it.order.is_some())?;
            last.order
                .is_none()
                .then(|| seconds(order.at_ns, last.at_ns))
        })
        .await
    }

    async fn wait<T>(
        &self,
        what: &str,
        found: impl Fn(&[Act], &[u64]) -> Option<T>,
    ) -> anyhow::Result<T> {
        let began = Instant::now();
        loop {
            if let Some(found) = found(&self.acts()?, &self.sent.borrow()) {
                return Ok(found);
            }
            ensure!(
                began.elapsed() < PATIENCE,
                "waited {PATIENCE:?} until {what}"
            );
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// The memory of the robot's `amber-zenoh`, and of the router.
    fn memory_mb(&self) -> (f64, f64) {
        let of = |pid| shared_memory_of(&[pid]).0 as f64 / 1e6;
        (
            of(self.site.robots[0].zenoh.pid()),
            of(self.site.router.pid()),
        )
    }
}

/// Sends orders while the operator drives, each with its own number.
async fn drive(
    mut orders: Orders,
    driven: watch::Receiver<bool>,
    sent: watch::Sender<Vec<u64>>,
) -> anyhow::Result<()> {
    let mut ticks = interval(ORDER_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if *driven.borrow() {
            let number = sent.borrow().len() as u32;
            sent.send_modify(|sent| sent.push(monotonic_ns()));
            orders.put(speeds(number)).await?;
        }
    }
}
