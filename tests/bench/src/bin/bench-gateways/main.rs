//! The time that gateways add to a command, alone and under a flood. IO.
//!
//! ```text
//!   this program -- foreign protocol --> gateway --> mediator --> robot (a driver) --+
//!         ^       -- Amber's protocol ------------->                                 |
//!         +------------------------ one datagram for each command ------------------+
//! ```
//!
//! Commands to all gateways and the direct ones take turns in one run, so that the ways are compared
//! under the same conditions. Then each way is measured by itself, without and with a flood: in
//! turns, the way before has just woken the mediator, which makes the next one faster.
//! `bench-gateways robot ADDRESS` is the driver of the wheels, `bench-gateways scanners` that of two
//! laser scanners.
//!
//! With `--load`, it runs all gateways at the rates of busy robots instead: see [`load`].
#![allow(clippy::print_stdout)] // What a program is for.

mod flood;
mod load;
mod ways;

use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use amber_bench::samples::Samples;
use amber_client::blocking::Client;
use amber_driver::devices::roboclaw::{self, RoboclawDriver};
use amber_driver::{Devices, Outcome, Reply};
use amber_harness::Program;
use amber_proto::battery_state::BatteryState;
use amber_proto::roboclaw::MotorsSpeed;
use amber_proto::{Device, DeviceType};
use clap::Parser;
use serde::Serialize;

use self::flood::Flood;
use self::ways::{Apollo, Direct, Galileo, JsonRelay, RflySim, Rosbridge, Way};
use Measured::{All, Only};

/// Measure the latency that each gateway adds to a motion command
#[derive(Parser)]
struct Options {
    /// The program to measure [default: `amber` beside this program]
    #[arg(long, value_name = "PATH")]
    amber: Option<PathBuf>,
    /// Commands on each way
    #[arg(long, default_value_t = 1000, value_name = "N")]
    commands: usize,
    /// Datagrams per second of a flood
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    flood: u32,
    /// Measure CPU, memory and losses at full rate instead
    #[arg(long)]
    load: bool,
    /// How long, in seconds, or with a unit, such as 30m
    #[arg(long = "for", default_value = "60s", value_name = "TIME", value_parser = time, requires = "load")]
    duration: Duration,
    /// Only check in seconds that everything works
    #[arg(long)]
    quick: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const WHEELS: Device = Device::new(DeviceType::ROBOCLAW, 0);
/// A session may send 50 commands per second.
const PERIOD: Duration = Duration::from_millis(25);
/// A way that is not measured gets a command after so many turns: 0.3 s. After 0.5 s, its gateway
/// would stop the wheels, and hold the next command back for as long as its rate limit demands.
const KEEP_ALIVE: usize = 12;
/// A command that has no effect for so long is lost.
const LOST: Duration = Duration::from_millis(500);

fn main() -> anyhow::Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [robot, effects] = &words[..]
        && robot == "robot"
    {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(effects)?;
        return Ok(amber_driver::serve_many(
            Devices::new().add(WHEELS, roboclaw::driver(Robot(socket))),
        ));
    }
    if words == ["scanners"] {
        return Ok(load::scanners());
    }
    let mut options = Options::parse();
    if options.quick {
        options.commands = 40;
        options.duration = Duration::from_secs(3);
    }
    if options.load {
        return measure_load(&options);
    }
    let rows = measure(&options)?;
    if options.json {
        println!("{}", serde_json::to_string(&rows)?);
    } else {
        print_table(&rows);
    }
    let lost: usize = rows.iter().map(Row::lost).sum();
    Ok(ExitCode::from(u8::from(lost > 0)))
}

/// Reads a time such as 90, 90s or 30m.
fn time(text: &str) -> Result<Duration, String> {
    let (number, unit_s) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60),
        None => (text.strip_suffix('s').unwrap_or(text), 1),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "a time needs a unit, such as 30m".to_owned())?;
    Ok(Duration::from_secs(number * unit_s))
}

/// Reports each command.
struct Robot(UdpSocket);

impl RoboclawDriver for Robot {
    async fn drive(&mut self, speeds: MotorsSpeed, outcome: Outcome) {
        let speed = speeds.front_left_speed.unwrap_or_default();
        let _ = self.0.send(&speed.to_le_bytes());
        outcome.done();
    }

    async fn speeds(&mut self, reply: Reply<MotorsSpeed>) {
        reply.send(MotorsSpeed::default());
    }

    async fn battery(&mut self, reply: Reply<BatteryState>) {
        reply.refuse("no voltage is measured");
    }
}

/// A figure for each way.
#[derive(Serialize)]
struct Row {
    way: &'static str,
    alone: Times,
    /// Not for the direct way.
    flood: Option<Flooded>,
    /// Commands without effect while another way was measured.
    lost_meanwhile: usize,
}

impl Row {
    /// All commands without effect.
    fn lost(&self) -> usize {
        let flood = self.flood.map_or(0, |it| it.before.lost + it.during.lost);
        self.alone.lost + flood + self.lost_meanwhile
    }
}

/// A way by itself, before and while another program floods the gateway.
#[derive(Clone, Copy, Serialize)]
struct Flooded {
    before: Times,
    during: Times,
}

#[derive(Clone, Copy, Serialize)]
struct Times {
    p50_us: f64,
    p99_us: f64,
    lost: usize,
}

/// The load alone; its losses are an error.
fn measure_load(options: &Options) -> anyhow::Result<ExitCode> {
    let rows = load::measure(&amber(options)?, options.duration)?;
    if options.json {
        println!("{}", serde_json::to_string(&rows)?);
    } else {
        load::print_table(&rows, options.duration);
    }
    let is_complete = rows.iter().all(load::Row::is_complete);
    Ok(ExitCode::from(u8::from(!is_complete)))
}

/// The program to measure.
fn amber(options: &Options) -> anyhow::Result<PathBuf> {
    Ok(match &options.amber {
        Some(path) => path.clone(),
        None => std::env::current_exe()?.with_file_name("amber"),
    })
}

/// Starts a mediator with these drivers: DEVICE=COMMAND.
fn start(amber: &Path, drivers: &[String]) -> anyhow::Result<(Program, SocketAddr)> {
    let mut command = Command::new(amber);
    command.args(["mediator", "--listen", "127.0.0.1:0", "--log", "error"]);
    command.args(drivers.iter().flat_map(|driver| ["--driver", driver]));
    let mediator = Program::of(command.stdout(Stdio::piped()).spawn()?);
    let address = mediator.after("listening on ")?.parse()?;
    Ok((mediator, address))
}

/// Where a gateway listens, as soon as it does.
fn listening(client: &Client, gateway: i32) -> anyhow::Result<SocketAddr> {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Instant::now() < deadline {
        if let Ok(status) = client.gateway(gateway).status()
            && let Some(address) = status.listening.last()
        {
            return Ok(address.parse()?);
        }
        thread::sleep(Duration::from_millis(20));
    }
    anyhow::bail!("gateway:{gateway} does not listen")
}

fn measure(options: &Options) -> anyhow::Result<Vec<Row>> {
    let this = std::env::current_exe()?;
    let effects = UdpSocket::bind("127.0.0.1:0")?;
    effects.set_read_timeout(Some(LOST))?;
    let vehicle = 1000 + std::process::id() % 3000;
    let folder = tempfile::tempdir()?;
    let apollo = folder.path().join("apollo.toml");
    std::fs::write(
        &apollo,
        "[[receive]]\nmessage = \"raw\"\ndevice = \"roboclaw:0\"\n\
         bind = \"127.0.0.1:0\"\npeer = \"127.0.0.1\"\n",
    )?;
    let gateways = [
        "galileo --listen 127.0.0.1:0".to_owned(),
        "rosbridge --listen 127.0.0.1:0".to_owned(),
        "json-relay --listen 127.0.0.1:0".to_owned(),
        format!("rflysim --vehicle {vehicle} --allow-arm"),
        format!("apollo --config {}", apollo.display()),
    ];
    let robot = format!("'{}' robot {}", this.display(), effects.local_addr()?);
    let mut drivers = vec![format!("roboclaw:0={robot}")];
    let gateways = gateways.iter().enumerate();
    // Otherwise only one of them would drive: it would hold the lease of the wheels.
    drivers.extend(gateways.map(|(number, gateway)| {
        format!("gateway:{number}=amber driver {gateway} --shared-controls")
    }));
    let (_mediator, address) = start(&amber(options)?, &drivers)?;
    let client = Client::connect(address)?;
    let listening = |number| listening(&client, number);
    let mut ways: Vec<Box<dyn Way>> = vec![
        Box::new(Direct::new(address)?),
        Box::new(Galileo::new(listening(0)?)?),
        Box::new(Rosbridge::new(listening(1)?)?),
        Box::new(JsonRelay::new(listening(2)?)?),
        Box::new(RflySim::new(listening(3)?)?),
        Box::new(Apollo::new(listening(4)?)?),
    ];
    // The first commands open sessions and connections.
    take_turns(&mut ways, All, &effects, 20)?;
    let alone = take_turns(&mut ways, All, &effects, options.commands)?;
    let mut rows: Vec<Row> = (ways.iter().zip(alone))
        .map(|(way, alone)| Row {
            way: way.name(),
            alone,
            flood: None,
            lost_meanwhile: 0,
        })
        .collect();
    for index in 0..ways.len() {
        let Some(gateway) = ways[index].gateway() else {
            continue;
        };
        let count = options.commands.div_ceil(2);
        let before = take_turns(&mut ways, Only(index), &effects, count)?;
        let flood = Flood::start(gateway, options.flood)?;
        let during = take_turns(&mut ways, Only(index), &effects, count)?;
        drop(flood);
        for (way, row) in rows.iter_mut().enumerate() {
            if way != index {
                row.lost_meanwhile += before[way].lost + during[way].lost;
            }
        }
        rows[index].flood = Some(Flooded {
            before: before[index],
            during: during[index],
        });
    }
    Ok(rows)
}

/// The ways that are measured.
#[derive(Clone, Copy, PartialEq)]
enum Measured {
    All,
    /// The others get some commands, too: a gateway ends silent sessions.
    Only(usize),
}

/// Sends a command on each way in turns, and waits for its effect. Returns the times of all ways.
fn take_turns(
    ways: &mut [Box<dyn Way>],
    measured: Measured,
    effects: &UdpSocket,
    count: usize,
) -> anyhow::Result<Vec<Times>> {
    let mut samples = vec![Samples::default(); ways.len()];
    let mut lost = vec![0; ways.len()];
    for number in 0..count {
        let turn = Instant::now();
        // Each is the first as often as the others: that one wakes up the processes.
        for step in 0..ways.len() {
            let index = (number + step) % ways.len();
            let is_measured = measured == All || measured == Only(index);
            if !is_measured && number % KEEP_ALIVE != 0 {
                continue;
            }
            let start = Instant::now();
            let speed = ways[index].command(number as i32 * 7 + index as i32)?;
            match arrives(effects, speed, start) {
                true => samples[index].add(start.elapsed().as_nanos() as u64),
                false => lost[index] += 1,
            }
        }
        thread::sleep(PERIOD.saturating_sub(turn.elapsed()));
    }
    let times = samples.iter_mut().zip(lost).map(|(samples, lost)| Times {
        p50_us: samples.quantile_us(0.5),
        p99_us: samples.quantile_us(0.99),
        lost,
    });
    Ok(times.collect())
}

/// Waits for the effect of a command; others, such as stops, are not counted.
fn arrives(effects: &UdpSocket, speed: i32, start: Instant) -> bool {
    let mut bytes = [0; 4];
    while start.elapsed() < LOST {
        if effects.recv(&mut bytes).is_ok() && i32::from_le_bytes(bytes) == speed {
            return true;
        }
    }
    false
}

fn print_table(rows: &[Row]) {
    let direct = rows.first().map(|row| row.alone);
    println!(
        "| way | p50 | p99 | added p50 | added p99 | by itself p50 | p99 | flooded p50 | p99 | lost |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for row in rows {
        let added = |own: f64, base: Option<f64>| match base {
            Some(base) if row.flood.is_some() => format!("{:.0} µs", own - base),
            _ => String::new(),
        };
        let flood = |pick: fn(&Flooded) -> f64| {
            let times = row.flood.as_ref();
            times.map_or(String::new(), |times| format!("{:.0} µs", pick(times)))
        };
        println!(
            "| {} | {:.0} µs | {:.0} µs | {} | {} | {} | {} | {} | {} | {} |",
            row.way,
            row.alone.p50_us,
            row.alone.p99_us,
            added(row.alone.p50_us, direct.map(|it| it.p50_us)),
            added(row.alone.p99_us, direct.map(|it| it.p99_us)),
            flood(|it| it.before.p50_us),
            flood(|it| it.before.p99_us),
            flood(|it| it.during.p50_us),
            flood(|it| it.during.p99_us),
            row.lost(),
        );
    }
}
