//! Measures a fleet of simulated robots on this machine. IO.
//!
//! ```text
//!   driver -- mediator -- amber-zenoh robot --+
//!   (of each robot)                           +-- amber-zenoh router -- this program:
//!   raw peer (one beside each robot) ---------+                         watcher and operator
//! ```
//!
//! All of them are separate processes. The same scans and calls take three paths, in turns: through
//! the fleet, directly to the mediators without Zenoh, and from raw peers that are nothing but Zenoh.
//! So one run shows what each part adds. `fleet driver` is the driver of a robot, and `fleet raw` a
//! raw peer; this program starts both itself. `scripts/bench fleet` builds and runs it.
//!
//! With `--links`, the link between one robot and an operator who drives loses, delays and cuts
//! frames instead: see [`links`].

mod clock;
mod driver;
mod faults;
mod figures;
mod frames;
mod links;
mod measure;
mod motion;
mod net;
mod process;
mod raw;
mod report;
mod samples;
mod site;
mod usage;
mod watch;
mod ways;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use amber_terminal::{Failure, exit_code, note, seconds, show};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use self::site::Programs;

/// Measure a fleet of simulated robots on this machine
#[derive(Parser)]
struct Options {
    /// Robots, each with a mediator, a driver and `amber-zenoh robot`
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u16).range(3..=500))]
    robots: u16,
    /// Measurement time for each path
    #[arg(long = "for", default_value = "20s", value_name = "TIME", value_parser = seconds)]
    duration: Duration,
    /// Number of turns between the paths in this time
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Instead, cause faults of the link between one robot and an operator who drives; needs root
    #[arg(long)]
    links: bool,
    /// Only check in seconds that everything works: 3 robots
    #[arg(long)]
    quick: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The mediator [default: `target/release/amber` of the main workspace]
    #[arg(long, value_name = "PATH")]
    amber: Option<PathBuf>,
    /// The program to measure [default: `amber-zenoh` of this build]
    #[arg(long, value_name = "PATH")]
    amber_zenoh: Option<PathBuf>,
    /// Write the logs of all processes to this folder
    #[arg(long, value_name = "FOLDER")]
    logs: Option<PathBuf>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("driver") => return driver::serve(words.get(1).map(String::as_str)),
        Some("raw") => return exit_code(raw::run(&words[1..]).map_err(failed)),
        _ => {}
    }
    let mut options = Options::parse();
    if options.quick {
        options.robots = options.robots.min(3);
        options.duration = options.duration.min(Duration::from_secs(2));
        options.rounds = 1;
    }
    if options.links
        && let Err(error) = net::leave_host()
    {
        note(format_args!("SKIP faults of links: {error:#}"));
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => exit_code(runtime.block_on(run(&options))),
        Err(error) => exit_code(Err(failed(error.into()))),
    }
}

async fn run(options: &Options) -> Result<(), Failure> {
    let programs = Programs::find(
        options.amber.as_deref(),
        options.amber_zenoh.as_deref(),
        options.logs.clone(),
    );
    let programs = programs.map_err(failed)?;
    if options.links {
        let report = tokio::select! {
            report = links::run(programs, options.quick) => report.map_err(failed)?,
            () = interrupted() => return Err(Failure::new("interrupted")),
        };
        show(&report, options.json)?;
        return match report.is_well() {
            true => Ok(()),
            false => Err(Failure::new("a promise was not kept: see the table")),
        };
    }
    let plan = measure::Plan {
        robots: usize::from(options.robots),
        duration: options.duration,
        rounds: options.rounds,
    };
    let report = tokio::select! {
        report = measure::run(&programs, &plan) => report.map_err(failed)?,
        // All processes end with the future.
        () = interrupted() => return Err(Failure::new("interrupted")),
    };
    show(&report, options.json)
}

async fn interrupted() {
    let signals = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    );
    match signals {
        (Ok(mut interrupt), Ok(mut terminate)) => tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        },
        _ => std::future::pending().await,
    }
}

fn failed(error: anyhow::Error) -> Failure {
    Failure::new(format!("{error:#}"))
}
