//! All gateways at the rates of busy robots, at the same time: what that costs, and whether anything is
//! lost. IO.
//!
//! ```text
//!   Galileo     64 sessions, a PING of each side and a scan ten times per second in each
//!   rosbridge   10 pages that subscribe to the scan
//!   JSON relay  an image of 1 MB from a robot to a control, ten times per second
//!   Apollo      a PointCloud of 682 points, 40 times per second
//!   RflySim     10 vehicles: true state, estimate and message of the autopilot, 100 times per second
//! ```

mod programs;
mod scans;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use amber_client::blocking::Client;
use amber_harness::Program;
use amber_proto::gateway::GatewayStatus;
use anyhow::Context;
use serde::Serialize;

use self::programs::{Images, Page, Sessions, receive_clouds, receiver, send_telemetry};
pub(crate) use self::scans::scanners;
use super::start;

const SESSIONS: usize = 64;
const PAGES: usize = 10;
const VEHICLES: u16 = 10;
const IMAGE: usize = 1_000_000;
/// The bytes of an image in one fragment: a multiple of three.
const FRAGMENT: usize = 42_000;
const POINTS: u16 = 682;
/// Slow and fast scanners: scans per second.
const SCANS: [u64; 2] = [10, 40];
/// Scans tell their number by this distance and this step, and begin again after so many.
const FIRST_MM: i32 = 500;
/// See [`FIRST_MM`].
const STEP_MM: i32 = 10;
/// See [`FIRST_MM`].
const NUMBERS: u32 = 400;
/// From then on the memory of a process should not grow.
const WARM_UP: Duration = Duration::from_secs(30);
/// What is on its way arrives within this time.
const LAST: Duration = Duration::from_secs(2);

/// What a gateway has cost.
#[derive(Serialize)]
pub(super) struct Row {
    gateway: &'static str,
    load: String,
    cpu_percent: f64,
    /// After the first 30 s, and at the end.
    memory_mb: [f64; 2],
    sent: u64,
    arrived: u64,
    /// Counted by the gateway itself, with the reasons.
    dropped: u64,
    reasons: Vec<String>,
}

impl Row {
    /// Whether all has arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.sent == self.arrived && self.dropped == 0 && self.sent > 0
    }
}

/// What was sent to a gateway or should come from it, and what has arrived.
#[derive(Default)]
struct Count {
    sent: u64,
    arrived: u64,
}

/// Runs all loads at the same time.
pub(super) fn measure(amber: &Path, duration: Duration) -> anyhow::Result<Vec<Row>> {
    let this = std::env::current_exe()?;
    let folder = tempfile::tempdir()?;
    let clouds = receiver("127.0.0.1:0")?;
    let first = u16::try_from(1 + 16 * (std::process::id() % 250))?;
    let galileo = "listen = \"127.0.0.1:0\"\nmax_sessions_per_ip = 64\n".to_owned();
    let apollo = format!(
        "[[send]]\nmessage = \"point-cloud\"\ndevice = \"hokuyo:1\"\nto = \"{}\"\nrate_hz = 40\n",
        clouds.local_addr()?
    );
    let vehicles = (1..=VEHICLES).map(|id| {
        let number = first + id - 1;
        format!(
            "[[foreign]]\nnumber = {number}\nlocation = \"location:{id}\"\n\
             imu = \"ninedof:{id}\"\nwheels = \"roboclaw:{id}\"\n"
        )
    });
    let mut drivers = vec![format!("hokuyo:0,hokuyo:1='{}' scanners", this.display())];
    let emulated = (1..=VEHICLES).map(|id| format!(",location:{id},ninedof:{id},roboclaw:{id}"));
    for (number, devices, name, options) in [
        (0, String::new(), "galileo", galileo),
        (
            1,
            String::new(),
            "rosbridge",
            "listen = \"127.0.0.1:0\"\n".to_owned(),
        ),
        (
            2,
            String::new(),
            "json-relay",
            "listen = \"127.0.0.1:0\"\n".to_owned(),
        ),
        (3, String::new(), "apollo", apollo),
        (4, emulated.collect(), "rflysim", vehicles.collect()),
    ] {
        let file = folder.path().join(format!("{name}.toml"));
        fs::write(&file, options)?;
        drivers.push(format!(
            "gateway:{number}{devices}=amber driver {name} --config {}",
            file.display()
        ));
    }
    let (mediator, address) = start(amber, &drivers)?;
    let client = Client::connect(address)?;
    let at = |gateway| super::listening(&client, gateway);
    let (galileo, rosbridge, relay) = (at(0)?, at(1)?, at(2)?);
    // It has no socket of its own before it sends.
    at(3)?;
    at(4)?;

    let ends = Arc::new(AtomicBool::new(false));
    let sessions = Sessions::open(galileo)?;
    let pages = (0..PAGES).map(|_| Page::open(rosbridge));
    let pages = pages.collect::<anyhow::Result<Vec<_>>>()?;
    let images = Images::open(relay)?;
    let begin = status_of_all(&client)?;
    let processes = Processes::find(&mediator)?;
    let started = Instant::now();
    let cpu = processes.cpu()?;
    let telemetry_sent = Arc::new(AtomicU64::new(0));
    let (sessions, pages, images, clouds, telemetry) = {
        let run = |ends: &Arc<AtomicBool>| ends.clone();
        let sessions = thread::spawn({
            let ends = run(&ends);
            move || sessions.run(&ends)
        });
        let pages: Vec<_> = (pages.into_iter())
            .map(|page| {
                let ends = run(&ends);
                thread::spawn(move || page.run(&ends))
            })
            .collect();
        let images = thread::spawn({
            let ends = run(&ends);
            move || images.run(&ends)
        });
        let clouds = thread::spawn({
            let ends = run(&ends);
            move || receive_clouds(&clouds, &ends)
        });
        let telemetry = thread::spawn({
            let (ends, sent) = (run(&ends), telemetry_sent.clone());
            move || send_telemetry(first, &sent, &ends)
        });
        (sessions, pages, images, clouds, telemetry)
    };
    let warm = duration.min(WARM_UP);
    thread::sleep(warm);
    let before = processes.memory_mb()?;
    thread::sleep(duration.saturating_sub(warm));
    let after = processes.memory_mb()?;
    let spent = processes.cpu()?;
    let passed_s = started.elapsed().as_secs_f64();
    ends.store(true, Ordering::Relaxed);
    telemetry
        .join()
        .map_err(|_| anyhow::anyhow!("telemetry"))??;
    thread::sleep(LAST);
    let end = status_of_all(&client)?;
    let galileo = joined(sessions)?;
    let mut rosbridge = Count::default();
    for page in pages {
        let count = joined(page)?;
        rosbridge.sent += count.sent;
        rosbridge.arrived += count.arrived;
    }
    let rflysim = Count {
        sent: telemetry_sent.load(Ordering::Relaxed),
        arrived: end[4].rx() - begin[4].rx(),
    };
    let counts = [
        galileo,
        rosbridge,
        joined(images)?,
        joined(clouds)?,
        rflysim,
    ];
    let loads = [
        format!("{SESSIONS} sessions: scans and PINGs, 10 Hz each"),
        format!("{PAGES} pages: scans at 10 Hz"),
        "images of 1 MB at 10 Hz".to_owned(),
        "PointCloud at 40 Hz".to_owned(),
        format!("{VEHICLES} vehicles: 3 packets at 100 Hz each"),
    ];
    let rows = (NAMES.iter().zip(loads).zip(counts)).enumerate();
    let rows = rows.map(|(index, ((gateway, load), count))| Row {
        gateway,
        load,
        cpu_percent: (spent[index] - cpu[index]) / passed_s * 100.0,
        memory_mb: [before[index], after[index]],
        sent: count.sent,
        arrived: count.arrived,
        dropped: end[index].lost() - begin[index].lost(),
        reasons: end[index].reasons(),
    });
    Ok(rows.collect())
}

/// The commands of the gateways, by the numbers of their devices.
const NAMES: [&str; 5] = ["galileo", "rosbridge", "json-relay", "apollo", "rflysim"];

fn joined(thread: thread::JoinHandle<anyhow::Result<Count>>) -> anyhow::Result<Count> {
    thread
        .join()
        .map_err(|_| anyhow::anyhow!("a load has failed"))?
}

/// A gateway's own counters.
struct Counters(GatewayStatus);

impl Counters {
    fn rx(&self) -> u64 {
        self.0.rx.unwrap_or_default()
    }

    fn lost(&self) -> u64 {
        self.0.bad.unwrap_or_default() + self.0.dropped.unwrap_or_default()
    }

    fn reasons(&self) -> Vec<String> {
        let reasons = self.0.reasons.iter();
        let text = reasons.map(|it| format!("{} {}", it.count(), it.text()));
        text.collect()
    }
}

fn status_of_all(client: &Client) -> anyhow::Result<Vec<Counters>> {
    let status = (0..).take(NAMES.len()).map(|number| {
        let status = client.gateway(number).status();
        Ok(Counters(status?))
    });
    status.collect()
}

/// The processes of the gateways.
struct Processes(Vec<u32>);

impl Processes {
    fn find(mediator: &Program) -> anyhow::Result<Self> {
        let output = Command::new("ps")
            .args(["-e", "-o", "pid=,ppid=,args="])
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mediator = mediator.pid().to_string();
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|it| it.split_whitespace().collect())
            .collect();
        let parents: HashMap<&str, &str> = lines.iter().map(|line| (line[0], line[1])).collect();
        let is_inside = |pid: &str| {
            std::iter::successors(Some(pid), |pid| parents.get(pid).copied())
                .any(|it| it == mediator)
        };
        let find = |name: &&str| {
            let command = format!("driver {name} --config");
            let mut found = lines
                .iter()
                .filter(|line| line.join(" ").contains(&command));
            let line = found.find(|line| line[0] != mediator && is_inside(line[0]));
            let line = line.with_context(|| format!("no process of {name}"))?;
            Ok(line[0].parse()?)
        };
        Ok(Self(NAMES.iter().map(find).collect::<anyhow::Result<_>>()?))
    }

    /// Seconds of CPU time so far.
    fn cpu(&self) -> anyhow::Result<Vec<f64>> {
        let seconds = self.0.iter().map(|pid| {
            let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
            let (_, rest) = text.rsplit_once(')').context("no process name")?;
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
            let per_s = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)?.unwrap_or(100);
            Ok(ticks as f64 / per_s as f64)
        });
        seconds.collect()
    }

    fn memory_mb(&self) -> anyhow::Result<Vec<f64>> {
        let memory = self.0.iter().map(|pid| {
            let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
            let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kb: f64 = line
                .context("no VmRSS")?
                .trim()
                .trim_end_matches(" kB")
                .parse()?;
            Ok(kb / 1024.0)
        });
        memory.collect()
    }
}

/// Prints the table of docs/gateways.md.
pub(super) fn print_table(rows: &[Row], duration: Duration) {
    println!("{} s:", duration.as_secs());
    println!("| gateway | load | CPU | memory after 30 s | at the end | sent | lost |");
    println!("|---|---|---:|---:|---:|---:|---:|");
    for row in rows {
        let [before, after] = row.memory_mb;
        println!(
            "| {} | {} | {:.1} % | {before:.1} MB | {after:.1} MB | {} | {} |",
            row.gateway,
            row.load,
            row.cpu_percent,
            row.sent,
            row.sent.saturating_sub(row.arrived),
        );
    }
    for row in rows.iter().filter(|row| !row.reasons.is_empty()) {
        println!("{}: {}", row.gateway, row.reasons.join(", "));
    }
}
