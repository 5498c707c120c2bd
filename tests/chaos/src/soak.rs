//! Normal operation for hours, with measurements of the mediator. IO.
//!
//! A robot with all its drivers; clients that send requests and subscribe all the time; other
//! clients that connect and disconnect, cleanly or not; and an occasional driver restart. In total
//! a few hundred messages per second. The memory of this program itself does not grow.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use amber_client::blocking::Client;
use amber_client::{Result, Sensors};
use amber_core::counters::{Count, Counters};
use amber_harness::usage::{self, Footprint};
use amber_harness::wait_for;
use amber_proto::{Device, MsgType};
use nix::sys::signal::Signal;

use crate::accounts;
use crate::clients::echo::{self, frame};
use crate::clients::{Outcome, Promise, Worker, sdk};
use crate::fleet::{self, DUMMIES, ECHO, LASER};
use crate::site::Site;
use crate::slope::Slope;

/// The leak check ignores the first minutes, in which pages are touched for the first time and
/// tables grow to their working size.
const WARM_UP: Duration = Duration::from_secs(300);

/// Growth counts as a leak above this amount per hour and in total; less is allocator noise.
const LEAK_KIB: f64 = 512.0;

/// The interval between visits of a client, ...
const VISIT: Duration = Duration::from_secs(2);
/// ... and between driver restarts.
const RESTART: Duration = Duration::from_secs(30);

const ALL: Sensors = Sensors {
    accel: true,
    gyro: true,
    magnet: true,
};

/// Drivers that are never restarted: an echo, and those of the robot without its laser.
fn unharmed() -> Vec<Device> {
    let robot = fleet::robot().filter(|device| *device != LASER);
    robot.chain([ECHO]).collect()
}

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program under test.
    pub amber: PathBuf,
    pub duration: Duration,
    /// The interval between samples.
    pub every: Duration,
    /// The file for samples, as one JSON object per line.
    pub json: Option<PathBuf>,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The results of a run.
#[derive(Debug)]
pub struct Report {
    duration: Duration,
    looks: u64,
    visits: u64,
    restarts: u64,
    messages: u64,
    dropped: u64,
    first: Footprint,
    warm: Footprint,
    last: Footprint,
    slope_kib_per_hour: Option<f64>,
    warm_slope_kib_per_hour: Option<f64>,
    outcomes: Vec<Outcome>,
    /// The broken promises.
    pub broken: Vec<String>,
}

/// Runs the test. The report lists broken promises.
///
/// # Errors
/// The test could not run.
pub fn run(plan: &Plan) -> anyhow::Result<Report> {
    let mut site = Site::start(&plan.amber, fleet::everyday)?;
    let control = site.client()?;
    site.all_up(&control)?;
    let workers = start_clients(site.address, plan.seed)?;
    let mut watch = Watch::new(plan)?;
    let mut life = Life::new(plan.seed);
    let start = Instant::now();
    while start.elapsed() < plan.duration {
        site.check_alive()?;
        life.go_on(&site, &control)?;
        watch.look(&site, &control, start.elapsed())?;
        thread::sleep(Duration::from_millis(100));
    }

    let mut broken = watch.broken;
    site.all_up(&control)?;
    let first = watch.first;
    let back = wait_for("descriptors and threads to be as at first", || {
        let now = site.footprint()?;
        let back = now.descriptors == first.descriptors && now.threads == first.threads;
        Ok(back.then_some(()))
    });
    broken.extend(back.err().map(|error| error.to_string()));
    let last = site.footprint()?;
    let outcomes: anyhow::Result<Vec<_>> = workers.into_iter().map(Worker::outcome).collect();
    let outcomes = outcomes?;
    let excused = usage::dropped_by_system(site.address);
    broken.extend(Outcome::broken(&outcomes, excused));
    let drivers = control.mediator().drivers()?;
    broken.extend(accounts::unharmed(&drivers, &unharmed()));
    broken.extend(site.check_counters(&control).err().map(|e| e.to_string()));
    let counters =
        accounts::counters(&control.mediator().statistics()?).map_err(anyhow::Error::msg)?;
    broken.extend(site.end().err().map(|error| format!("{error:#}")));

    let warm_slope = watch.warm_line.value();
    let grown = last.resident_kib as f64 - watch.warm.resident_kib as f64;
    if grown > LEAK_KIB && warm_slope.is_some_and(|slope| slope > LEAK_KIB) {
        broken.push("memory grows".into());
    }
    Ok(Report {
        duration: start.elapsed(),
        looks: watch.looks,
        visits: life.visits,
        restarts: life.restarts,
        messages: messages(&counters),
        dropped: accounts::dropped(&counters),
        first,
        warm: watch.warm,
        last,
        slope_kib_per_hour: watch.line.value(),
        warm_slope_kib_per_hour: warm_slope,
        outcomes,
        broken,
    })
}

fn start_clients(at: SocketAddr, seed: u64) -> anyhow::Result<Vec<Worker>> {
    use Promise::{Everything, NothingWrong};
    let asker = |what: &str, rate, ask: fn(&Client) -> Result<()>| {
        sdk::asker(at, what, NothingWrong, rate, ask)
    };
    // The device may be too slow for its driver, and the dummies and the laser are restarted at
    // times.
    let mut workers = vec![
        echo::start(at, ECHO, Everything, 100.0, seed)?,
        asker("the wheels", 20.0, |c| c.roboclaw(0).speeds().map(drop)),
        asker("the sensors", 20.0, |c| c.ninedof(0).data(ALL).map(drop)),
        asker("the laser", 5.0, |c| c.hokuyo(0).scan().map(drop)),
        sdk::dummy(at, DUMMIES[0].id.0, NothingWrong, 20.0),
        sdk::listener(at, DUMMIES[0].id.0, NothingWrong),
        sdk::listener(at, DUMMIES[1].id.0, NothingWrong),
    ];
    for device in fleet::robot() {
        let readings = sdk::reading(device);
        workers.extend(
            readings.map(|ask| sdk::asker(at, &device.to_string(), NothingWrong, 5.0, ask)),
        );
    }
    Ok(workers)
}

/// Visiting clients and driver restarts.
struct Life {
    rng: fastrand::Rng,
    next_visit: Instant,
    next_restart: Instant,
    visits: u64,
    restarts: u64,
}

impl Life {
    fn new(seed: u64) -> Self {
        Self {
            rng: fastrand::Rng::with_seed(seed),
            next_visit: Instant::now(),
            next_restart: Instant::now() + RESTART,
            visits: 0,
            restarts: 0,
        }
    }

    fn go_on(&mut self, site: &Site, control: &Client) -> anyhow::Result<()> {
        let now = Instant::now();
        if now >= self.next_visit {
            self.next_visit = now + VISIT;
            self.visits += 1;
            match self.rng.bool() {
                true => visit(site.address)?,
                false => vanish(site.address)?,
            }
        }
        if now >= self.next_restart {
            self.next_restart = now + RESTART;
            self.restarts += 1;
            let devices = [DUMMIES[0], DUMMIES[1], LASER];
            let device = devices[self.rng.usize(..devices.len())];
            match control.mediator().driver(device)?.pid {
                Some(pid) if self.rng.bool() => {
                    site.signal(pid, Signal::SIGKILL);
                }
                _ => {
                    control.mediator().restart(device)?;
                }
            }
        }
        Ok(())
    }
}

/// A client sends requests, subscribes for a moment, and disconnects cleanly.
fn visit(mediator: SocketAddr) -> anyhow::Result<()> {
    let client = Client::connect(mediator)?.with_deadline(Duration::from_millis(500));
    // The driver may be starting: a missing reply is not an error.
    let _ = client.dummy(1).status();
    let _ = client.maestro(0).set_angle(3, 45);
    if let Ok(mut updates) = client.dummy(0).messages() {
        updates.next_within(Duration::from_millis(300));
    }
    client.close();
    Ok(())
}

/// A client subscribes and vanishes without a goodbye.
fn vanish(mediator: SocketAddr) -> anyhow::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(mediator)?;
    for (device, kind) in [
        (Device::MEDIATOR, MsgType::Ping),
        (DUMMIES[0], MsgType::Subscribe),
        (DUMMIES[1], MsgType::Ping),
    ] {
        let _ = socket.send(&frame(device, &[0x10, kind as u8]));
    }
    Ok(())
}

/// Samples the mediator from time to time, and keeps only sums.
struct Watch {
    every: Duration,
    warm_up: Duration,
    json: Option<File>,
    next: Duration,
    looks: u64,
    first: Footprint,
    warm: Footprint,
    line: Slope,
    warm_line: Slope,
    broken: Vec<String>,
}

impl Watch {
    fn new(plan: &Plan) -> anyhow::Result<Self> {
        Ok(Self {
            every: plan.every,
            warm_up: WARM_UP.min(plan.duration / 4),
            json: plan.json.as_ref().map(File::create).transpose()?,
            next: plan.every,
            looks: 0,
            first: Footprint::default(),
            warm: Footprint::default(),
            line: Slope::default(),
            warm_line: Slope::default(),
            broken: Vec::new(),
        })
    }

    fn look(&mut self, site: &Site, control: &Client, age: Duration) -> anyhow::Result<()> {
        if self.looks > 0 && age < self.next {
            return Ok(());
        }
        self.next = age + self.every;
        let now = site.footprint()?;
        let (hours, kib) = (age.as_secs_f64() / 3600.0, now.resident_kib as f64);
        self.line.add(hours, kib);
        if self.looks == 0 {
            self.first = now;
        }
        if age >= self.warm_up {
            if self.warm_line.is_empty() {
                self.warm = now;
            }
            self.warm_line.add(hours, kib);
        }
        self.looks += 1;
        let adds_up = site.check_counters(control);
        if let Err(wrong) = &adds_up
            && self.broken.len() < 5
        {
            self.broken.push(format!("after {age:?}: {wrong}"));
        }
        if let Some(file) = &mut self.json {
            let statistics = control.mediator().statistics()?;
            let counters = accounts::counters(&statistics).map_err(anyhow::Error::msg)?;
            let line = serde_json::json!({
                "seconds": age.as_secs_f64(),
                "resident_kib": now.resident_kib,
                "descriptors": now.descriptors,
                "threads": now.threads,
                "cpu_s": now.cpu.as_secs_f64(),
                "clients": statistics.clients(),
                "messages": messages(&counters),
                "dropped": accounts::dropped(&counters),
                "adds_up": adds_up.is_ok(),
            });
            writeln!(file, "{line}")?;
        }
        Ok(())
    }
}

/// The number of messages received from clients and drivers.
fn messages(counters: &Counters) -> u64 {
    counters.counted(Count::Datagrams) + counters.counted(Count::DriverFrames)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.duration.as_secs_f64();
        let per_second = self.messages as f64 / seconds;
        let cpu = 100.0 * (self.last.cpu - self.first.cpu).as_secs_f64() / seconds;
        let slope = |slope: Option<f64>| slope.map_or("-".into(), |kib| format!("{kib:+.0}"));
        let rows = [
            (
                "time",
                format!("{:.0} min, {} looks", seconds / 60.0, self.looks),
            ),
            (
                "load",
                format!(
                    "{per_second:.0} messages/s, {} visitors, {} driver restarts",
                    self.visits, self.restarts
                ),
            ),
            (
                "resident memory",
                format!(
                    "{} KiB at the start, {} KiB after warm-up, {} KiB at the end",
                    self.first.resident_kib, self.warm.resident_kib, self.last.resident_kib
                ),
            ),
            (
                "memory slope",
                format!(
                    "{} KiB/h, {} KiB/h after warm-up",
                    slope(self.slope_kib_per_hour),
                    slope(self.warm_slope_kib_per_hour)
                ),
            ),
            (
                "descriptors",
                format!(
                    "{} at the start, {} at the end",
                    self.first.descriptors, self.last.descriptors
                ),
            ),
            (
                "threads",
                format!(
                    "{} at the start, {} at the end",
                    self.first.threads, self.last.threads
                ),
            ),
            ("CPU", format!("{cpu:.1} %")),
            (
                "counters",
                format!(
                    "{} messages, {} dropped by cause",
                    self.messages, self.dropped
                ),
            ),
        ];
        writeln!(f, "| | |\n|---|---|")?;
        for (name, value) in rows {
            writeln!(f, "| {name} | {value} |")?;
        }
        for outcome in &self.outcomes {
            writeln!(f, "{outcome}")?;
        }
        match &self.broken[..] {
            [] => write!(f, "all promises held"),
            broken => write!(f, "broken:\n  {}", broken.join("\n  ")),
        }
    }
}
