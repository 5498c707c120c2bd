//! The driver `location` as a real process, on a large floor: how long answers and updates take, its
//! memory and its CPU time. IO.
//!
//! ```text
//!   amber demo: simulated robot -- serial bytes -- drivers -- mediator -- UDP -- this program
//!                                                  location
//! ```
//!
//! The driver has a thread for its filter. The kernel counts the CPU time of each thread;
//! while the filter sleeps between two scans, the difference is the time of an update.
#![allow(clippy::print_stdout)] // What a program is for.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use amber_bench::process::CpuMeter;
use amber_client::values::Target;
use amber_client::{Client, LocationService, WheelSpeeds};
use amber_harness::Program;
use amber_map::{MapPose, Pose};
use amber_proto::{Device, DeviceType};
use amber_scenarios::office_floor;
use anyhow::{Context, bail, ensure};
use clap::Parser;
use serde::Serialize;

/// Measure the driver `location` on an office floor of 50 m x 36 m
#[derive(Parser)]
struct Options {
    /// Seconds of driving after each start
    #[arg(long, default_value_t = 30.0)]
    seconds: f64,
    /// Starts of the driver; each has to find the robot
    #[arg(long, default_value_t = 3)]
    starts: u32,
    /// Map (.roson) instead of the office floor
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Only check that everything works
    #[arg(long)]
    quick: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const LOCATION: Device = Device::new(DeviceType::LOCATION, 0);
/// How often a client asks for the pose.
const ASK: Duration = Duration::from_millis(10);
/// How often a command is repeated while the driver searches.
const COMMAND: Duration = Duration::from_millis(100);
/// How often the time of the filter is read.
const SAMPLE: Duration = Duration::from_millis(2);
/// The filter sleeps at least this long between two updates.
const PAUSE: Duration = Duration::from_millis(15);
/// A driver that has not found the robot by then has failed.
const PATIENCE: Duration = Duration::from_secs(120);
/// The radius of targets.
const RADIUS_M: f64 = 0.3;

/// The goals.
const ANSWER_MS: f64 = 5.0;
const MEAN_MS: f64 = 3.0;
const WORST_MS: f64 = 20.0;
const MEMORY_MB: f64 = 30.0;

/// What was measured from one start of the driver to the next.
#[derive(Clone, Debug, Default, Serialize)]
struct Run {
    /// Until the pose was known.
    found_s: f64,
    /// The longest update until then, and after that.
    worst_search_ms: f64,
    worst_ms: f64,
    /// The time of the filter for a scan, after the pose was known.
    mean_ms: f64,
    /// Requests until the answer, all sorted.
    #[serde(skip)]
    answers_ms: Vec<f64>,
    /// Requests without an answer in time.
    lost: u64,
    /// The largest memory of the process's own, and the largest with what it shares with other
    /// drivers: the program file.
    memory_mb: f64,
    resident_mb: f64,
    /// The CPU time of the whole driver while driving, in percent of one core.
    cpu_percent: f64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let mut options = Options::parse();
    if options.quick {
        (options.seconds, options.starts) = (2.0, 1);
    }
    let folder = tempfile::tempdir()?;
    let floor = office_floor();
    let map = match &options.map {
        Some(map) => map.clone(),
        None => {
            let path = folder.path().join("floor.roson");
            fs::write(&path, floor.to_roson())?;
            path
        }
    };
    let demo = Demo::start(&map, &folder.path().join("sim"))?;
    let client = Client::connect(demo.address).await?;
    let mut runs = Vec::new();
    let mut pid = None;
    for start in 0..options.starts {
        if start > 0 {
            client.drive_to_point(0).set_targets(&[]).await?;
            client.mediator().restart(LOCATION).await?;
        }
        // A restart takes effect a moment later.
        let new = pid_of(&client, pid).await?;
        pid = Some(new);
        runs.push(run(&client, &options, new, &floor.nodes).await?);
    }
    client.close().await;
    drop(demo);
    let is_met = report(&runs, options.json)?;
    Ok(ExitCode::from(u8::from(!is_met && !options.quick)))
}

/// One start of the driver, and a drive.
async fn run(
    client: &Client,
    options: &Options,
    pid: u32,
    nodes: &[amber_map::Point],
) -> anyhow::Result<Run> {
    let filter = Filter::watch(pid)?;
    let location = client.location(0);
    let begin = Instant::now();
    let mut run = Run::default();
    let guarded = client.collision_avoidance(0);
    while !location.pose().await.is_ok_and(|pose| pose.quality > 0.9) {
        ensure!(
            begin.elapsed() < PATIENCE,
            "the driver did not find the robot"
        );
        // Many rooms look alike until the robot moves.
        let is_turning = begin.elapsed().as_secs() % 6 >= 4;
        let (left, right) = if is_turning { (-150, 150) } else { (250, 250) };
        guarded.drive(WheelSpeeds::sides(left, right)).await?;
        tokio::time::sleep(COMMAND).await;
    }
    guarded.stop().await?;
    run.found_s = begin.elapsed().as_secs_f64();
    let search = filter.end()?;
    run.worst_search_ms = worst_ms(&search.updates);
    let targets: Vec<Target> = nodes.iter().map(target).collect();
    client.drive_to_point(0).set_targets(&targets).await?;
    let filter = Filter::watch(pid)?;
    let (cpu, first) = (CpuMeter::start(pid), scans(&location).await?);
    let begin = Instant::now();
    let mut ticks = tokio::time::interval(ASK);
    while begin.elapsed().as_secs_f64() < options.seconds {
        ticks.tick().await;
        let sent = Instant::now();
        match location.pose().await {
            Ok(_) => run.answers_ms.push(sent.elapsed().as_secs_f64() * 1000.0),
            Err(_) => run.lost += 1,
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    run.cpu_percent = 100.0 * cpu.elapsed().as_secs_f64() / seconds;
    let updates = scans(&location).await?.saturating_sub(first).max(1);
    let drive = filter.end()?;
    run.worst_ms = worst_ms(&drive.updates);
    run.mean_ms = drive.total.as_secs_f64() * 1000.0 / updates as f64;
    run.memory_mb = search.own_bytes.max(drive.own_bytes) / 1e6;
    run.resident_mb = status(pid, "VmHWM:") / 1e6;
    run.answers_ms.sort_by(f64::total_cmp);
    Ok(run)
}

fn target(at: &amber_map::Point) -> Target {
    let place = MapPose::from(Pose {
        at: *at,
        heading: 0.0,
    });
    Target {
        radius_m: RADIUS_M,
        ..Target::new(place.x_m, place.y_m)
    }
}

async fn scans(location: &LocationService) -> anyhow::Result<u64> {
    Ok(location.quality().await?.scans())
}

/// The process of the driver, once another one runs than before.
async fn pid_of(client: &Client, before: Option<u32>) -> anyhow::Result<u32> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        let driver = client.mediator().driver(LOCATION).await?;
        if let Some(pid) = driver.pid
            && before != Some(pid)
            && filter_of(pid).is_some()
        {
            return Ok(pid);
        }
        tokio::time::sleep(ASK).await;
    }
    bail!("the driver does not start")
}

fn worst_ms(times: &[Duration]) -> f64 {
    times
        .iter()
        .max()
        .map_or(0.0, |time| time.as_secs_f64() * 1000.0)
}

/// A line of the kernel about the memory of a process, in bytes.
fn status(pid: u32, name: &str) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    1024.0 * kilobytes.unwrap_or(f64::NAN)
}

/// The file with the CPU time of the filter's thread.
fn filter_of(pid: u32) -> Option<PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let mut tasks = tasks.flatten().map(|task| task.path());
    let task = tasks.find(|task| {
        let name = fs::read_to_string(task.join("comm"));
        name.is_ok_and(|name| name.trim() == "filter")
    })?;
    Some(task.join("schedstat"))
}

/// What the filter did for a while.
struct Work {
    /// The time of each update, and the sum.
    updates: Vec<Duration>,
    total: Duration,
    /// The largest memory of the process's own.
    own_bytes: f64,
}

/// A thread that measures each update of the filter.
struct Filter {
    ends: Arc<AtomicBool>,
    thread: thread::JoinHandle<Work>,
}

impl Filter {
    fn watch(pid: u32) -> anyhow::Result<Self> {
        let file = filter_of(pid).context("the driver has no thread with the name filter")?;
        let ends = Arc::new(AtomicBool::new(false));
        let ended = ends.clone();
        let thread = thread::spawn(move || {
            let begin = spent(&file);
            let (mut before, mut since_work) = (begin, Duration::MAX);
            let mut updates: Vec<Duration> = Vec::new();
            let mut own_bytes: f64 = 0.0;
            while !ended.load(Ordering::Relaxed) {
                thread::sleep(SAMPLE);
                own_bytes = own_bytes.max(status(pid, "RssAnon:"));
                let now = spent(&file);
                let work = now.saturating_sub(before);
                before = now;
                if work.is_zero() {
                    since_work = since_work.saturating_add(SAMPLE);
                    continue;
                }
                match updates.last_mut() {
                    Some(last) if since_work < PAUSE => *last += work,
                    _ => updates.push(work),
                }
                since_work = Duration::ZERO;
            }
            Work {
                updates,
                total: before.saturating_sub(begin),
                own_bytes,
            }
        });
        Ok(Self { ends, thread })
    }

    fn end(self) -> anyhow::Result<Work> {
        self.ends.store(true, Ordering::Relaxed);
        let joined = self.thread.join();
        joined.map_err(|_| anyhow::anyhow!("the thread that measures has failed"))
    }
}

/// The CPU time of a thread.
fn spent(file: &Path) -> Duration {
    let text = fs::read_to_string(file).unwrap_or_default();
    let nanoseconds = text
        .split_whitespace()
        .next()
        .and_then(|it| it.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// A running `amber demo`, until it is dropped.
struct Demo {
    _program: Program,
    address: SocketAddr,
}

impl Demo {
    fn start(map: &Path, folder: &Path) -> anyhow::Result<Self> {
        let this = std::env::current_exe()?;
        let amber = this.with_file_name("amber");
        ensure!(
            amber.exists(),
            "{} is missing: use scripts/bench location",
            amber.display()
        );
        let mut command = Command::new(amber);
        command.args(["demo", "--port", "0", "--dir"]).arg(folder);
        command.arg("--map").arg(map);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let program = Program::of(command.spawn()?);
        let address = program.after("listening on ")?.parse()?;
        Ok(Self {
            _program: program,
            address,
        })
    }
}

/// Prints the table; whether all goals are met.
fn report(runs: &[Run], json: bool) -> anyhow::Result<bool> {
    let most = |value: fn(&Run) -> f64| runs.iter().map(value).fold(0.0, f64::max);
    let mut answers_ms: Vec<f64> = runs.iter().flat_map(|run| run.answers_ms.clone()).collect();
    answers_ms.sort_by(f64::total_cmp);
    let part = |share: f64| {
        let index = (share * answers_ms.len() as f64) as usize;
        let last = answers_ms.len().saturating_sub(1);
        answers_ms.get(index.min(last)).copied().unwrap_or(f64::NAN)
    };
    let lost: u64 = runs.iter().map(|run| run.lost).sum();
    let mean_ms = most(|run| run.mean_ms);
    let (search_ms, worst_ms) = (most(|run| run.worst_search_ms), most(|run| run.worst_ms));
    let memory_mb = most(|run| run.memory_mb);
    let rows = [
        (
            "answer to a request for the pose, 99 %",
            format!("{ANSWER_MS} ms"),
            format!(
                "{:.2} ms (median {:.2} ms, longest {:.1} ms, {lost} lost)",
                part(0.99),
                part(0.5),
                part(1.0)
            ),
            part(0.99) <= ANSWER_MS && lost == 0,
        ),
        (
            "update, mean",
            format!("{MEAN_MS} ms"),
            format!("{mean_ms:.2} ms"),
            mean_ms <= MEAN_MS,
        ),
        (
            "update, longest while driving",
            format!("{WORST_MS} ms"),
            format!("{worst_ms:.1} ms"),
            worst_ms <= WORST_MS,
        ),
        (
            "update, longest while searching",
            format!("{WORST_MS} ms"),
            format!("{search_ms:.1} ms"),
            search_ms <= WORST_MS,
        ),
        (
            "memory of its own, largest",
            format!("{MEMORY_MB} MB"),
            format!("{memory_mb:.1} MB"),
            memory_mb <= MEMORY_MB,
        ),
        (
            "the same with the program file, which all drivers share",
            "none".into(),
            format!("{:.1} MB", most(|run| run.resident_mb)),
            true,
        ),
        (
            "processor, while driving",
            "none".into(),
            format!("{:.1} % of a core", most(|run| run.cpu_percent)),
            true,
        ),
        (
            "until the pose is known",
            "none".into(),
            format!("{:.1} s", most(|run| run.found_s)),
            true,
        ),
    ];
    if json {
        println!("{}", serde_json::to_string(runs)?);
    } else {
        println!("The worst of {} starts.\n", runs.len());
        println!("| what | goal | measured | met |\n|---|---|---|---|");
        for (what, goal, measured, is_met) in &rows {
            let met = if *is_met { "yes" } else { "**no**" };
            println!("| {what} | {goal} | {measured} | {met} |");
        }
    }
    Ok(rows.iter().all(|(.., is_met)| *is_met))
}
