//! `scripts/bench`: all loads on all candidates in turns, a table, and the
//! chapter about performance. IO.
#![allow(clippy::print_stdout)] // What a program is for.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use amber_bench::fairness::{self, FLOODED};
use amber_bench::goals::{FAN_OUTS, FLOODS, ROUND_TRIPS};
use amber_bench::load::{self, Flood, Seen};
use amber_bench::process::{Programs, Running, Setting, memory_of, sleeps_of};
use amber_bench::report::{self, Conditions};
use amber_bench::results::{Candidate, Results};
use anyhow::Context;
use clap::{Parser, ValueEnum};

/// Measures the mediator against the least code that can do its job
#[derive(Parser)]
struct Options {
    /// What to measure [default: all]
    #[arg(value_enum)]
    sections: Vec<Section>,
    /// Rounds, in which the candidates take turns
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds for each load in each round
    #[arg(long, default_value_t = 0.7)]
    seconds: f64,
    /// One short round of everything, to see that it works; nothing is written
    #[arg(long)]
    quick: bool,
    /// Print JSON: all values of all rounds
    #[arg(long)]
    json: bool,
    /// Do not write docs/performance.md
    #[arg(long)]
    no_docs: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Round trips of one client
    Rtt,
    /// Many requests at once
    Flood,
    /// Many subscribers
    FanOut,
    /// Many clients and drivers that do nothing
    Flat,
    /// Twice what it can carry
    Overload,
    /// Memory, start, and doing nothing
    Resources,
    /// Client and driver written with the SDKs
    Sdk,
    /// One client beside another that floods the same driver
    Fairness,
}

/// Where the results of the last runs are, section by section.
const RESULTS: &str = "target/bench/results.json";

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let sections = match options.sections.is_empty() {
        true => Section::value_variants().to_vec(),
        false => options.sections.clone(),
    };
    let (rounds, seconds) = match options.quick {
        true => (1, 0.05),
        false => (options.rounds, options.seconds),
    };
    let mut bench = Bench {
        programs: Programs::beside_this()?,
        results: Results::default(),
        duration: Duration::from_secs_f64(seconds),
        quick: options.quick,
        round: 0,
    };
    for round in 1..=rounds {
        bench.round = round;
        for section in &sections {
            bench.section(*section)?;
        }
    }
    progress("");
    let results = bench.results;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&results)?);
    } else {
        println!("{}\n{}", report::table(&results), report::goals(&results));
    }
    if !options.quick {
        save(results, options.no_docs)?;
    }
    Ok(())
}

struct Bench {
    programs: Programs,
    results: Results,
    duration: Duration,
    quick: bool,
    round: usize,
}

impl Bench {
    fn section(&mut self, section: Section) -> anyhow::Result<()> {
        match section {
            Section::Rtt => self.rtt(),
            Section::Flood => self.flood(),
            Section::FanOut => self.fan_out(),
            Section::Flat => self.flat(),
            Section::Overload => self.overload(),
            Section::Resources => self.resources(),
            Section::Sdk => self.sdk(),
            Section::Fairness => self.fairness(),
        }
    }

    fn rtt(&mut self) -> anyhow::Result<()> {
        for candidate in Candidate::ALL {
            let running = self.start(candidate, &Setting::default())?;
            for (load, bytes) in ROUND_TRIPS {
                self.at(load, candidate);
                let mut seen =
                    load::round_trips(running.address, running.pid(), bytes, self.duration)?;
                let times = [("p50_us", 0.5), ("p99_us", 0.99)];
                for (quantity, part) in times {
                    let value = seen.times.quantile_us(part);
                    self.results.add(load, quantity, candidate, value);
                }
                self.results.add(load, "cpu_us", candidate, seen.cpu_us());
                self.add_loss(load, candidate, &seen);
            }
        }
        Ok(())
    }

    fn flood(&mut self) -> anyhow::Result<()> {
        for candidate in Candidate::ALL {
            let running = self.start(candidate, &Setting::default())?;
            for (load, clients, window, bytes) in FLOODS {
                self.at(load, candidate);
                let flood = Flood::Window(window);
                let seen = self.flooded(&running, clients, flood, bytes)?;
                self.results
                    .add(load, "per_s", candidate, seen.per_second());
                self.results.add(load, "cpu_us", candidate, seen.cpu_us());
                self.add_loss(load, candidate, &seen);
            }
        }
        Ok(())
    }

    fn flooded(
        &self,
        to: &Running,
        clients: usize,
        flood: Flood,
        bytes: usize,
    ) -> anyhow::Result<Seen> {
        load::flood(to.address, to.pid(), clients, flood, bytes, self.duration)
    }

    fn fan_out(&mut self) -> anyhow::Result<()> {
        for candidate in Candidate::ALL {
            for (load, clients, hertz, bytes) in FAN_OUTS {
                self.at(load, candidate);
                let echo = format!("pub {clients} {bytes} {hertz}");
                let setting = Setting {
                    echo: &echo,
                    ..Setting::default()
                };
                let running = self.start(candidate, &setting)?;
                let mut seen = load::subscriptions(
                    running.address,
                    running.pid(),
                    clients,
                    hertz.into(),
                    self.duration,
                )?;
                let p50 = seen.times.quantile_us(0.5);
                self.results.add(load, "p50_us", candidate, p50);
                self.results.add(load, "cpu_us", candidate, seen.cpu_us());
                self.add_loss(load, candidate, &seen);
            }
        }
        Ok(())
    }

    fn flat(&mut self) -> anyhow::Result<()> {
        let load = "10 000 clients, 200 drivers";
        let (clients, drivers) = if self.quick { (100, 5) } else { (10_000, 200) };
        let mut cpu = Vec::new();
        for (clients, drivers) in [(1, 1), (clients, drivers)] {
            self.at(load, Candidate::Amber);
            let setting = Setting {
                clients: Some(20_000),
                more_drivers: drivers - 1,
                ..Setting::default()
            };
            let running = self.start(Candidate::Amber, &setting)?;
            load::newcomers(running.address, clients)?;
            let seen = self.flooded(&running, 1, Flood::Window(64), 64)?;
            cpu.push(seen.cpu_us());
        }
        let ratio = cpu[1] / cpu[0];
        self.results
            .add(load, "times_cpu_of_1_and_1", Candidate::Amber, ratio);
        Ok(())
    }

    fn overload(&mut self) -> anyhow::Result<()> {
        let load = "overload, twice the best";
        for candidate in [Candidate::FloorBatched, Candidate::Amber] {
            self.at(load, candidate);
            let running = self.start(candidate, &Setting::default())?;
            // All else being equal: the same clients, but they wait for answers.
            let best = self
                .flooded(&running, 16, Flood::Window(4), 64)?
                .per_second();
            let mut over = self.flooded(&running, 16, Flood::PerSecond(2.0 * best), 64)?;
            let results = &mut self.results;
            results.add(load, "best_per_s", candidate, best);
            results.add(load, "per_s", candidate, over.per_second());
            results.add(load, "part_of_best", candidate, over.per_second() / best);
            results.add(
                load,
                "offered_part_of_best",
                candidate,
                over.sent as f64 / over.elapsed.as_secs_f64() / best,
            );
            results.add(load, "p99_us", candidate, over.times.quantile_us(0.99));
        }
        Ok(())
    }

    fn resources(&mut self) -> anyhow::Result<()> {
        let amber = Candidate::Amber;

        self.at("memory", amber);
        let setting = Setting {
            more_drivers: 3,
            ..Setting::default()
        };
        let running = self.start(amber, &setting)?;
        self.flooded(&running, 10, Flood::Window(8), 64)?;
        let memory = memory_of(running.pid()) / 1e6;
        self.results
            .add("4 drivers, 10 clients", "resident_mb", amber, memory);
        drop(running);

        let count = if self.quick { 200 } else { 20_000 };
        let setting = Setting {
            clients: Some(30_000),
            ..Setting::default()
        };
        let running = self.start(amber, &setting)?;
        load::newcomers(running.address, 100)?;
        let before = memory_of(running.pid());
        load::newcomers(running.address, 100 + count)?;
        let each = (memory_of(running.pid()) - before) / f64::from(count);
        self.results
            .add("20 000 clients", "bytes_per_client", amber, each);
        drop(running);

        for candidate in Candidate::ALL {
            let setting = Setting::default();
            self.first_answer("start to first answer, bench-echo", candidate, &setting)?;
        }
        let setting = Setting {
            driver: Some("dummy:0=amber driver dummy"),
            ..Setting::default()
        };
        self.first_answer("start to first answer, dummy", amber, &setting)?;

        self.at("idle", amber);
        let setting = Setting {
            more_drivers: 9,
            ..Setting::default()
        };
        let running = self.start(amber, &setting)?;
        let (settle, time) = if self.quick { (0.1, 0.2) } else { (1.5, 5.0) };
        std::thread::sleep(Duration::from_secs_f64(settle));
        let before = sleeps_of(running.pid());
        std::thread::sleep(Duration::from_secs_f64(time));
        let wakeups = (sleeps_of(running.pid()) - before) / time;
        self.results
            .add("10 idle drivers", "wakeups_per_s", amber, wakeups);
        Ok(())
    }

    fn first_answer(
        &mut self,
        load: &str,
        candidate: Candidate,
        setting: &Setting<'_>,
    ) -> anyhow::Result<()> {
        self.at(load, candidate);
        let start = Instant::now();
        let running = self.start(candidate, setting)?;
        load::first_answer(running.address)?;
        let took = start.elapsed().as_secs_f64() * 1e3;
        self.results.add(load, "ms", candidate, took);
        Ok(())
    }

    fn sdk(&mut self) -> anyhow::Result<()> {
        let amber = Candidate::Amber;
        let load = "client and driver by SDK, rtt";
        self.at(load, amber);
        let running = self.start(amber, &Setting::default())?;
        let mut raw = load::round_trips(running.address, running.pid(), 64, self.duration)?;
        let raw = raw.times.quantile_us(0.5);
        drop(running);
        let setting = Setting {
            driver: Some("dummy:0=amber driver dummy"),
            ..Setting::default()
        };
        let running = self.start(amber, &setting)?;
        let sdk = self.by_sdk("ask", &running)?[0];
        self.results.add(load, "p50_us", amber, sdk);
        self.results.add(load, "raw_p50_us", amber, raw);
        self.results.add(load, "times_raw", amber, sdk / raw);
        drop(running);

        let load = "subscriber of 1000 scans/s by SDK";
        self.at(load, amber);
        let scanner = self.programs.path("bench-sdk");
        let driver = format!("hokuyo:0='{}' scanner 1000", scanner.display());
        let setting = Setting {
            driver: Some(&driver),
            ..Setting::default()
        };
        let running = self.start(amber, &setting)?;
        let listened = self.by_sdk("listen", &running)?;
        let per_s = listened[0] / self.duration.as_secs_f64();
        self.results.add(load, "per_s", amber, per_s);
        self.results
            .add(load, "cpu_us_per_scan", amber, listened[1]);
        // Of 1000 scans, whatever the driver managed.
        self.results.add(
            load,
            "cpu_percent",
            amber,
            listened[1] * 1000.0 / 1e6 * 100.0,
        );
        Ok(())
    }

    /// Runs a client that is written with the SDK; returns the numbers it says.
    fn by_sdk(&self, what: &str, to: &Running) -> anyhow::Result<Vec<f64>> {
        let output = Command::new(self.programs.path("bench-sdk"))
            .args([
                what,
                &to.address.to_string(),
                &self.duration.as_secs_f64().to_string(),
            ])
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        let numbers: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
        numbers
            .ok()
            .filter(|numbers| !numbers.is_empty())
            .with_context(|| {
                format!(
                    "bench-sdk {what}: {}",
                    String::from_utf8_lossy(&output.stderr)
                )
            })
    }

    fn fairness(&mut self) -> anyhow::Result<()> {
        let amber = Candidate::Amber;
        let slow = self.programs.path("bench-slow").display().to_string();
        for (load, flood, each_us) in FLOODED {
            self.at(load, amber);
            let driver = each_us.map(|us| format!("5:0='{slow}' {us}"));
            let setting = Setting {
                driver: driver.as_deref(),
                ..Setting::default()
            };
            let running = self.start(amber, &setting)?;
            let seen = fairness::bystander(running.address, running.pid(), flood, self.duration)?;
            seen.quantities(|quantity, value| self.results.add(load, quantity, amber, value));
        }
        Ok(())
    }

    fn start(&self, candidate: Candidate, setting: &Setting<'_>) -> anyhow::Result<Running> {
        self.programs.start(candidate, setting)
    }

    fn add_loss(&mut self, load: &str, candidate: Candidate, seen: &Seen) {
        let lost = seen.lost_percent();
        self.results.add(load, "lost_percent", candidate, lost);
    }

    fn at(&self, load: &str, candidate: Candidate) {
        progress(&format!("round {}: {load}, {candidate}", self.round));
    }
}

/// Where we are, for people who watch.
fn progress(text: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K{text}");
    }
}

/// Adds to what was measured before, and writes the chapter.
fn save(newer: Results, no_docs: bool) -> anyhow::Result<()> {
    let known = fs::read_to_string(RESULTS).ok();
    let mut results: Results = known
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    results.update(newer);
    fs::create_dir_all("target/bench")?;
    fs::write(RESULTS, serde_json::to_string_pretty(&results)?)?;
    if no_docs {
        return Ok(());
    }
    let (chapter, charts) = report::chapter(&results, &conditions());
    fs::write("docs/performance.md", chapter)?;
    fs::create_dir_all("docs/performance")?;
    for (name, svg) in charts {
        fs::write(
            Path::new("docs/performance")
                .join(name)
                .with_extension("svg"),
            svg,
        )?;
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
    }
}
