//! `scripts/bench`: runs all loads on all candidates in turns, and writes a table and the page
//! about performance. IO.
#![allow(clippy::print_stdout)] // What a program is for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use amber_bench::process::Programs;
use amber_bench::report::{self, Conditions};
use amber_bench::results::{Candidate, Results};
use amber_bench::run::{Bench, Section, progress};
use anyhow::ensure;
use clap::{Parser, ValueEnum};

/// Compare the mediator with a minimal implementation of its job
///
/// Every round is stored at once in target/bench/results.json, and docs/performance.md is generated
/// from that, so a run can be done in pieces.
#[derive(Parser)]
struct Options {
    /// What to measure [default: all]
    #[arg(value_enum)]
    sections: Vec<Section>,
    /// Only loads with this text in their names; may be repeated
    #[arg(long, value_name = "LOAD")]
    only: Vec<String>,
    /// Number of rounds, in which the candidates take turns
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds per load in each round; five rounds take about 11 minutes with the default
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Add rounds to the stored results instead of replacing them
    #[arg(long)]
    more: bool,
    /// Also measure another build, for a comparison
    #[arg(long, value_name = "AMBER")]
    before: Option<PathBuf>,
    /// Measure nothing; write the page from the stored results
    #[arg(long)]
    report: bool,
    /// One short round of everything, to check that it works; writes nothing
    #[arg(long)]
    quick: bool,
    /// Print JSON: all values of all rounds
    #[arg(long)]
    json: bool,
    /// Do not store results and do not write docs/performance.md
    #[arg(long)]
    no_docs: bool,
}

/// The stored results of the last runs.
const RESULTS: &str = "target/bench/results.json";
/// The table that `scripts/bench neighbours` has stored.
const NEIGHBOURS: &str = "target/bench/neighbours.md";

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let mut kept = kept();
    if options.report {
        return write_chapter(&kept);
    }
    let keeps = !(options.quick || options.no_docs || options.before.is_some());
    let (rounds, seconds) = match options.quick {
        true => (1, 0.05),
        false => (options.rounds, options.seconds),
    };
    let sections = match options.sections.is_empty() {
        true => Section::value_variants().to_vec(),
        false => options.sections.clone(),
    };
    let mut candidates = Candidate::ALL.to_vec();
    candidates.extend(options.before.as_ref().map(|_| Candidate::Before));
    let mut bench = Bench {
        programs: Programs::beside_this(options.before)?,
        candidates,
        only: options.only,
        duration: Duration::from_secs_f64(seconds),
        quick: options.quick,
        round: 0,
        results: Results::default(),
    };
    let mut results = Results::default();
    for round in 1..=rounds {
        bench.round = round;
        for section in &sections {
            bench.section(*section)?;
        }
        let newer = std::mem::take(&mut bench.results);
        ensure!(!newer.series.is_empty(), "no load has this name");
        results.extend(&newer);
        if keeps {
            if round == 1 && !options.more {
                kept.forget_loads_of(&newer);
            }
            kept.extend(&newer);
            fs::create_dir_all("target/bench")?;
            fs::write(RESULTS, serde_json::to_string_pretty(&kept)?)?;
        }
    }
    progress("");
    if options.json {
        println!("{}", serde_json::to_string_pretty(&results)?);
    } else {
        println!("{}\n{}", report::table(&results), report::goals(&results));
    }
    match keeps {
        true => write_chapter(&kept),
        false => Ok(()),
    }
}

fn kept() -> Results {
    let known = fs::read_to_string(RESULTS).ok();
    known
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default()
}

fn write_chapter(results: &Results) -> anyhow::Result<()> {
    ensure!(!results.series.is_empty(), "nothing was measured yet");
    let (chapter, charts) = report::chapter(results, &conditions());
    fs::write("docs/performance.md", chapter)?;
    fs::create_dir_all("docs/performance")?;
    for (name, svg) in charts {
        let path = Path::new("docs/performance").join(name);
        fs::write(path.with_extension("svg"), svg)?;
    }
    Ok(())
}

fn conditions() -> Conditions {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = (info.lines())
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |(_, name)| name.trim());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let system = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    Conditions {
        machine: format!(
            "{processor}, {cores} cores, Linux {}, loopback",
            system.trim()
        ),
        version: version.unwrap_or_default(),
        neighbours: fs::read_to_string(NEIGHBOURS).unwrap_or_else(|_| {
            "Not measured: run `scripts/bench neighbours`, then `scripts/bench --report`.".into()
        }),
    }
}
