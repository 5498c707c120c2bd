//! `scripts/attack`: all attacks, and a verdict. IO.
#![allow(clippy::print_stdout, clippy::print_stderr)] // What a program is for.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use amber_attack::driver::{self, Driver};
use amber_attack::net;
use amber_attack::site::{self, Programs};
use amber_attack::suite::{self, Context, Seen, Verdict};
use anyhow::ensure;
use clap::{Parser, Subcommand};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Attacks a mediator, and reports expected and actual results:
/// docs/reliability.md
///
/// Attacks from other machines run in network namespaces, which needs root.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    command: Option<Hidden>,
    /// The program to attack; `amber` beside this program when it is missing
    #[arg(long)]
    amber: Option<PathBuf>,
    /// Run these attacks only
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    only: Vec<String>,
    /// Seed for everything random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run the short form, as CI does
    #[arg(long)]
    quick: bool,
    /// Print one JSON object per attack
    #[arg(long)]
    json: bool,
    /// List the attacks and end
    #[arg(long)]
    list: bool,
}

#[derive(Subcommand)]
enum Hidden {
    /// Run a driver of the suite
    #[command(hide = true, subcommand)]
    Driver(Driver),
}

fn main() -> ExitCode {
    run().unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

/// Ends what runs when this program is interrupted.
fn watch_signals() -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            net::restore_buffers();
            site::end_all();
            #[allow(clippy::exit)] // Nothing is left to unwind.
            std::process::exit(130);
        }
    });
    Ok(())
}

fn run() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    if let Some(Hidden::Driver(driver)) = &options.command {
        // The mediator has closed the pipes: no error.
        let _ = driver::run(driver);
        return Ok(ExitCode::SUCCESS);
    }
    let mut attacks = suite::all();
    for name in &options.only {
        let known = attacks.iter().any(|attack| attack.name == *name);
        ensure!(known, "unknown attack '{name}'\nhint: --list shows all");
    }
    attacks
        .retain(|attack| options.only.is_empty() || options.only.iter().any(|n| n == attack.name));
    if options.list {
        for attack in &attacks {
            println!("{:20} {}", attack.name, attack.expected);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let this = std::env::current_exe()?;
    let amber = options
        .amber
        .unwrap_or_else(|| this.with_file_name("amber"));
    let context = Context {
        programs: Programs {
            amber: std::path::absolute(amber)?,
            this,
        },
        quick: options.quick,
        seed: options.seed,
    };
    ensure!(
        context.programs.amber.is_file(),
        "program {} does not exist\nhint: build it, or name another with --amber",
        context.programs.amber.display()
    );
    fastrand::seed(options.seed);
    watch_signals()?;

    let mut counts = [0; 3];
    for attack in &attacks {
        let start = Instant::now();
        let seen = (attack.run)(&context)
            .unwrap_or_else(|error| Seen::new(false, format!("error: {error:#}")));
        let seconds = start.elapsed().as_secs_f64();
        counts[seen.verdict as usize] += 1;
        if options.json {
            let line = serde_json::json!({
                "attack": attack.name,
                "expected": attack.expected,
                "seen": seen.text,
                "verdict": seen.verdict.to_string(),
                "seconds": seconds,
            });
            println!("{line}");
        } else {
            let verdict = seen.verdict;
            let (name, expected, text) = (attack.name, attack.expected, seen.text);
            println!("{verdict} {name}: expected: {expected}; seen: {text} ({seconds:.1} s)");
        }
        std::io::stdout().flush()?;
    }
    let [passed, failed, skipped] = counts;
    eprintln!(
        "{passed} passed, {failed} failed, {skipped} skipped (seed {})",
        options.seed
    );
    Ok(match counts[Verdict::Fail as usize] {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
