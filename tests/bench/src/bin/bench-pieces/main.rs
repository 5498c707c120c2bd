//! Messages that are longer than a frame: how many pictures of a camera arrive whole, how late, and
//! what that costs. IO.
//!
//! ```text
//!   subscribers -- (network) -- UDP -- mediator -- pipes -- this program as a camera
//! ```
//!
//! Each subscriber is a process. The network with its loss is a part of it: see [`link`]. [`cases`] has
//! the demands. [`phone`] measures the real driver of a camera instead.
#![allow(clippy::print_stdout, clippy::print_stderr)] // What a program is for.

mod cases;
mod ends;
mod figures;
mod link;
mod phone;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use amber_bench::process::{CpuMeter, Programs, Running, Setting};
use amber_bench::results::Candidate;
use amber_harness::Program;
use amber_harness::processes::children;
use amber_harness::usage::memory_of;
use anyhow::{Context, anyhow, ensure};
use clap::Parser;
use nix::sys::signal::Signal;

use self::cases::{Beside, CASES, Case, Subscriber};
use self::ends::{Camera, subscribe, subscribe_like_an_old_client};
use self::figures::{HEAD, Round, Row, Seen};
use self::link::Rule;

/// How long a subscriber is stopped.
const STOPPED: Duration = Duration::from_secs(5);
/// The same if everything is only to be shown to work.
const BRIEFLY_STOPPED: Duration = Duration::from_secs(2);

/// Measure messages that travel in pieces
#[derive(Parser)]
enum Options {
    /// Print a table of the cases
    Measure(Measure),
    /// A camera: a driver that publishes pictures of BYTES, HERTZ times per second
    #[command(hide = true)]
    Camera { bytes: usize, hertz: f64 },
    /// A camera program: writes JPEG files to stdout in turn, HERTZ times per second
    #[command(hide = true)]
    Film {
        hertz: f64,
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// A subscriber; prints what it has seen as JSON
    #[command(hide = true)]
    Subscriber {
        mediator: SocketAddr,
        seconds: f64,
        /// LOSS_PERCENT,DELAY_MS,MBIT_S,QUEUE of the network; without, the mediator is local
        network: Option<Rule>,
    },
}

#[derive(clap::Args)]
struct Measure {
    /// Seconds of each case in each round
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Rounds of each case; the table has their medians, and the worst round
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Only check in seconds that everything works
    #[arg(long)]
    quick: bool,
    /// Only cases with this text in their name
    #[arg(long, default_value = "")]
    only: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Measure {
    fn stop(&self) -> Duration {
        match self.quick {
            true => BRIEFLY_STOPPED,
            false => STOPPED,
        }
    }
}

fn main() -> anyhow::Result<ExitCode> {
    // Without a subcommand, it measures.
    let mut words: Vec<_> = std::env::args().collect();
    let is_own = |word: &String| ["camera", "film", "subscriber", "help"].contains(&&word[..]);
    if !words.get(1).is_some_and(is_own) {
        words.insert(1, "measure".into());
    }
    match Options::parse_from(words) {
        Options::Camera { bytes, hertz } => Ok(amber_driver::serve(Camera {
            period: Duration::from_secs(1).div_f64(hertz),
            bytes,
            sequence: 0,
        })),
        Options::Film { hertz, files } => {
            phone::show_film(hertz, &files)?;
            Ok(ExitCode::SUCCESS)
        }
        Options::Subscriber {
            mediator,
            seconds,
            network,
        } => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let begins = || println!("begins");
            let seen = runtime.block_on(subscribe(mediator, seconds, network, begins))?;
            println!("{}", serde_json::to_string(&seen)?);
            Ok(ExitCode::SUCCESS)
        }
        Options::Measure(options) => measure(options),
    }
}

fn measure(mut options: Measure) -> anyhow::Result<ExitCode> {
    if options.quick {
        (options.seconds, options.rounds) = (2.0, 1);
    }
    let programs = Programs::beside_this(None)?;
    let mut all_good = true;
    let cases = CASES
        .iter()
        .filter(|case| case.name.contains(&options.only));
    if !options.json && cases.clone().next().is_some() {
        println!("{HEAD}");
    }
    let has_python = has_python();
    for case in cases {
        if case.subscriber == Subscriber::Python && !has_python {
            eprintln!("SKIP {}: needs python3 with protobuf", case.name);
            continue;
        }
        let rounds = (0..options.rounds).map(|_| run(&programs, case, &options));
        let rounds = rounds.collect::<anyhow::Result<Vec<_>>>();
        let row = Row::of(case, &rounds.with_context(|| case.name)?)?;
        all_good &= row.unmet.is_empty();
        match options.json {
            true => println!("{}", serde_json::to_string(&row)?),
            false => println!("{}", row.line()),
        }
    }
    if phone::NAME.contains(&options.only) {
        let row = phone::measure(&programs, options.seconds, options.rounds);
        let row = row.context(phone::NAME)?;
        all_good &= row.unmet.is_empty();
        match options.json {
            true => println!("{}", serde_json::to_string(&row)?),
            false => println!("\n{}\n{}", phone::HEAD, row.line()),
        }
    }
    // A short run on a busy computer only shows that everything works.
    Ok(ExitCode::from(u8::from(!all_good && !options.quick)))
}

/// The Python SDK, and the subscriber that uses it.
fn python_files() -> [std::path::PathBuf; 2] {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    [
        here.join("../../client-sdk/python/src"),
        here.join("pieces.py"),
    ]
}

fn has_python() -> bool {
    let mut python = Command::new("python3");
    python.args(["-c", "import google.protobuf"]);
    python.stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

fn run(programs: &Programs, case: &Case, options: &Measure) -> anyhow::Result<Round> {
    let this = std::env::current_exe()?;
    let this = this.to_str().context("the path is not valid UTF-8")?;
    let driver = format!("110:0='{this}' camera {} {}", case.bytes, case.hertz);
    let setting = Setting {
        driver: Some(&driver),
        ..Setting::default()
    };
    let mediator = programs.start(Candidate::Amber, &setting)?;
    let stops = case.beside == Beside::Stopped;
    let stopped_s = if stops {
        options.stop().as_secs_f64()
    } else {
        0.0
    };
    let seconds = options.seconds.max(2.0) + stopped_s;
    let start = |subscriber: Subscriber, network: Option<&str>| {
        let mut command = match subscriber {
            Subscriber::Rust => {
                let mut command = Command::new(this);
                command.arg("subscriber");
                command
            }
            Subscriber::Python => {
                let [sdk, script] = python_files();
                let mut command = Command::new("python3");
                command.env("PYTHONPATH", sdk).arg(script);
                command
            }
        };
        command.args([&mediator.address.to_string(), &seconds.to_string()]);
        command.args(network);
        anyhow::Ok(Program::of(command.stdout(Stdio::piped()).spawn()?))
    };
    let subscribers = (0..case.subscribers)
        .map(|_| start(case.subscriber, case.network))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let stopped = stops.then(|| start(Subscriber::Rust, None)).transpose()?;
    for subscriber in subscribers.iter().chain(&stopped) {
        subscriber.line_with(&["begins"])?;
    }
    let (cpu, began) = (CpuMeter::start(mediator.pid()), Instant::now());
    let (mut camera, mut pieces_to_old) = (None, None);
    match (case.beside, &stopped) {
        (Beside::Stopped, Some(stopped)) => {
            // By then, the camera keeps as many pictures as it ever does.
            thread::sleep(Duration::from_secs(1));
            camera = memory_of_camera(&mediator);
            stopped.signal(Signal::SIGSTOP)?;
            thread::sleep(options.stop());
            stopped.signal(Signal::SIGCONT)?;
        }
        (Beside::Old, _) => {
            let time = Duration::from_secs_f64(0.9 * seconds);
            pieces_to_old = Some(subscribe_like_an_old_client(mediator.address, time)?);
        }
        _ => {}
    }
    let all = subscribers
        .into_iter()
        .map(result)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mediator_percent = 100.0 * cpu.elapsed().as_secs_f64() / began.elapsed().as_secs_f64();
    let after = memory_of_camera(&mediator);
    let grown = camera.zip(after);
    Ok(Round {
        all,
        mediator_percent,
        stopped: stopped.map(result).transpose()?,
        camera_grew_bytes: grown.map(|(before, after)| after - before),
        pieces_to_old,
    })
}

/// What a subscriber has seen.
fn result(program: Program) -> anyhow::Result<Seen> {
    let (status, lines) = program.finish()?;
    ensure!(status.success(), "a subscriber failed");
    let last = lines
        .last()
        .ok_or_else(|| anyhow!("a subscriber printed nothing"))?;
    Ok(serde_json::from_str(last)?)
}

/// Resident memory in bytes.
fn memory_of_camera(mediator: &Running) -> Option<i64> {
    let cameras = children(&[mediator.pid()]);
    let (pid, _) = (cameras.iter()).find(|(_, name)| name.starts_with("bench-"))?;
    i64::try_from(memory_of(*pid)?).ok()
}
