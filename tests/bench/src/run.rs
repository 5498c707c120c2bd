//! One round of every load on every candidate. IO.

use std::io::{IsTerminal, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use amber_harness::usage::{memory_of, sleeps_of};
use anyhow::{Context, ensure};
use clap::ValueEnum;

use crate::fairness::{self, FLOODED};
use crate::goals::{Cores, FAN_OUTS, FLOODS, ROUND_TRIPS, flood_name};
use crate::load::{self, Flood, Seen};
use crate::process::{CpuMeter, OnOneCore, Programs, Running, Setting};
use crate::results::{Candidate, Results};
use crate::samples::median;

/// The default length of a driver queue, in frames (`[limits]` of the configuration).
const QUEUE_FRAMES: usize = 1024;

/// Groups of loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// Round trips of one client
    Rtt,
    /// Many requests at once
    Flood,
    /// Many subscribers
    FanOut,
    /// Many idle clients and drivers
    Flat,
    /// Twice the maximum rate
    Overload,
    /// Memory, start time, and idle load
    Resources,
    /// Client and driver written with the SDKs
    Sdk,
    /// One client next to another that floods the same driver
    Fairness,
}

/// How often two compared settings take turns within a round.
const FLAT_TURNS: usize = 3;

/// The settings of a round.
pub struct Bench {
    /// The programs to start.
    pub programs: Programs,
    /// The candidates that take turns.
    pub candidates: Vec<Candidate>,
    /// Only loads with one of these texts in their names; all if empty.
    pub only: Vec<String>,
    /// The duration of each load.
    pub duration: Duration,
    /// Small numbers of everything, only to check that it works.
    pub quick: bool,
    /// The number of the round.
    pub round: usize,
    /// The results of this round.
    pub results: Results,
}

impl Bench {
    /// Measures all loads of a section once.
    ///
    /// # Errors
    /// A candidate does not start or does not answer.
    pub fn section(&mut self, section: Section) -> anyhow::Result<()> {
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

    fn wants(&self, load: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| load.contains(only))
    }

    /// The complete mediators, which support more than `floor`.
    fn mediators(&self) -> Vec<Candidate> {
        let mediators = self.candidates.iter().copied();
        mediators
            .filter(|candidate| candidate.is_mediator())
            .collect()
    }

    /// The mediators and their reference.
    fn batching(&self) -> Vec<Candidate> {
        let candidates = self.candidates.iter().copied();
        candidates
            .filter(|candidate| *candidate != Candidate::Floor)
            .collect()
    }

    fn rtt(&mut self) -> anyhow::Result<()> {
        for (load, cores, bytes) in ROUND_TRIPS {
            if !self.wants(load) {
                continue;
            }
            for candidate in self.candidates.clone() {
                self.at(load, candidate);
                let (running, _here) = self.start_on(cores, candidate, &Setting::default())?;
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
        for (load, clients, flood, bytes) in FLOODS {
            for (cores, _) in Cores::ALL {
                let load = flood_name(load, cores);
                if !self.wants(&load) {
                    continue;
                }
                // Without batches is only for orientation.
                let candidates = match cores {
                    Cores::One => self.candidates.clone(),
                    _ => self.batching(),
                };
                for candidate in candidates {
                    self.at(&load, candidate);
                    let (running, _here) = self.start_on(cores, candidate, &Setting::default())?;
                    let seen = self.flooded(&running, clients, flood, bytes)?;
                    let rate = seen.per_second();
                    self.results.add(&load, "per_s", candidate, rate);
                    self.results.add(&load, "cpu_us", candidate, seen.cpu_us());
                    self.add_loss(&load, candidate, &seen);
                }
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
        for (load, cores, clients, hertz, bytes) in FAN_OUTS {
            if !self.wants(load) {
                continue;
            }
            for candidate in self.candidates.clone() {
                self.at(load, candidate);
                let echo = format!("pub {clients} {bytes} {hertz}");
                let setting = Setting {
                    echo: &echo,
                    ..Setting::default()
                };
                let (running, _here) = self.start_on(cores, candidate, &setting)?;
                let mut seen = load::subscriptions(
                    running.address,
                    running.pid(),
                    clients,
                    hertz.into(),
                    // Most of the time is idle.
                    2 * self.duration,
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
        if !self.wants(load) {
            return Ok(());
        }
        let (clients, drivers) = if self.quick { (100, 5) } else { (10_000, 200) };
        for candidate in self.mediators() {
            // Alternates in short turns: compared settings must be measured close in time.
            self.at(load, candidate);
            let start = |drivers: usize, clients: u32| -> anyhow::Result<Running> {
                let setting = Setting {
                    clients: Some(20_000),
                    more_drivers: drivers - 1,
                    ..Setting::default()
                };
                let running = self.start(candidate, &setting)?;
                let answered = load::newcomers(running.address, clients)?;
                ensure!(
                    answered == clients,
                    "only {answered} of {clients} clients got a reply"
                );
                Ok(running)
            };
            let (few, many) = (start(1, 1)?, start(drivers, clients)?);
            let [mut few_us, mut many_us] = [Vec::new(), Vec::new()];
            for _ in 0..FLAT_TURNS {
                for (running, us) in [(&few, &mut few_us), (&many, &mut many_us)] {
                    let flood = Flood::Window(64);
                    us.push(self.flooded(running, 1, flood, 64)?.cpu_us());
                }
            }
            let (few_us, many_us) = (median(&few_us), median(&many_us));
            let results = &mut self.results;
            results.add(load, "cpu_us_of_1_and_1", candidate, few_us);
            results.add(load, "cpu_us", candidate, many_us);
            results.add(load, "times_cpu_of_1_and_1", candidate, many_us / few_us);
        }
        Ok(())
    }

    fn overload(&mut self) -> anyhow::Result<()> {
        let load = "overload, twice the best";
        if !self.wants(load) {
            return Ok(());
        }
        for candidate in self.candidates.clone() {
            if candidate == Candidate::Floor {
                continue;
            }
            self.at(load, candidate);
            let running = self.start(candidate, &Setting::default())?;
            // The same conditions: the same clients, but they wait for replies.
            let best = self
                .flooded(&running, 16, Flood::Window(4), 64)?
                .per_second();
            let mut over = self.flooded(&running, 16, Flood::PerSecond(2.0 * best), 64)?;
            let held = load::held_on_the_way(16, 64, QUEUE_FRAMES)?;
            let p99_us = over.times.quantile_us(0.99);
            let before = over.per_second() * p99_us / 1e6;
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
            results.add(load, "p99_us", candidate, p99_us);
            results.add(load, "p99_of_what_is_held", candidate, before / held as f64);
        }
        Ok(())
    }

    fn resources(&mut self) -> anyhow::Result<()> {
        for candidate in self.mediators() {
            self.memory(candidate)?;
            self.memory_of_clients(candidate)?;
        }
        for candidate in self.candidates.clone() {
            let setting = Setting::default();
            self.first_answer("start to first answer, bench-echo", candidate, &setting)?;
        }
        for candidate in self.mediators() {
            let setting = Setting {
                driver: Some("dummy:0=amber driver dummy"),
                ..Setting::default()
            };
            self.first_answer("start to first answer, dummy", candidate, &setting)?;
            self.idle(candidate)?;
        }
        Ok(())
    }

    fn memory(&mut self, candidate: Candidate) -> anyhow::Result<()> {
        let load = "4 drivers, 10 clients";
        if !self.wants(load) {
            return Ok(());
        }
        self.at(load, candidate);
        let setting = Setting {
            more_drivers: 3,
            ..Setting::default()
        };
        let running = self.start(candidate, &setting)?;
        self.flooded(&running, 10, Flood::Window(8), 64)?;
        let resident = memory(&running)? / 1e6;
        self.results.add(load, "resident_mb", candidate, resident);
        Ok(())
    }

    fn memory_of_clients(&mut self, candidate: Candidate) -> anyhow::Result<()> {
        let load = "20 000 clients";
        if !self.wants(load) {
            return Ok(());
        }
        self.at(load, candidate);
        let count = if self.quick { 200 } else { 20_000 };
        let setting = Setting {
            clients: Some(30_000),
            ..Setting::default()
        };
        let running = self.start(candidate, &setting)?;
        load::newcomers(running.address, 100)?;
        let before = memory(&running)?;
        load::newcomers(running.address, 100 + count)?;
        let each = (memory(&running)? - before) / f64::from(count);
        self.results.add(load, "bytes_per_client", candidate, each);
        Ok(())
    }

    fn first_answer(
        &mut self,
        load: &str,
        candidate: Candidate,
        setting: &Setting<'_>,
    ) -> anyhow::Result<()> {
        if !self.wants(load) {
            return Ok(());
        }
        self.at(load, candidate);
        let start = Instant::now();
        let running = self.start(candidate, setting)?;
        load::first_answer(running.address)?;
        let took = start.elapsed().as_secs_f64() * 1e3;
        self.results.add(load, "ms", candidate, took);
        Ok(())
    }

    fn idle(&mut self, candidate: Candidate) -> anyhow::Result<()> {
        let load = "10 idle drivers";
        if !self.wants(load) {
            return Ok(());
        }
        self.at(load, candidate);
        let setting = Setting {
            more_drivers: 9,
            ..Setting::default()
        };
        let running = self.start(candidate, &setting)?;
        let (settle, time) = if self.quick { (0.1, 0.2) } else { (1.5, 5.0) };
        std::thread::sleep(Duration::from_secs_f64(settle));
        let before = sleeps_of(running.pid());
        let cpu = CpuMeter::start(running.pid());
        std::thread::sleep(Duration::from_secs_f64(time));
        let wakeups = (sleeps_of(running.pid()) - before) as f64 / time;
        let percent = 100.0 * cpu.elapsed().as_secs_f64() / time;
        self.results.add(load, "wakeups_per_s", candidate, wakeups);
        self.results.add(load, "cpu_percent", candidate, percent);
        Ok(())
    }

    fn sdk(&mut self) -> anyhow::Result<()> {
        for candidate in self.mediators() {
            self.sdk_round_trips(candidate)?;
            self.sdk_scans(candidate)?;
        }
        Ok(())
    }

    fn sdk_round_trips(&mut self, candidate: Candidate) -> anyhow::Result<()> {
        let load = "client and driver by SDK, rtt";
        if !self.wants(load) {
            return Ok(());
        }
        self.at(load, candidate);
        let running = self.start(candidate, &Setting::default())?;
        let mut raw = load::round_trips(running.address, running.pid(), 64, self.duration)?;
        let raw = raw.times.quantile_us(0.5);
        drop(running);
        let setting = Setting {
            driver: Some("dummy:0=amber driver dummy"),
            ..Setting::default()
        };
        let running = self.start(candidate, &setting)?;
        let sdk = self.by_sdk("ask", &running)?[0];
        self.results.add(load, "p50_us", candidate, sdk);
        self.results.add(load, "raw_p50_us", candidate, raw);
        self.results.add(load, "times_raw", candidate, sdk / raw);
        Ok(())
    }

    fn sdk_scans(&mut self, candidate: Candidate) -> anyhow::Result<()> {
        let load = "subscriber of 1000 scans/s by SDK";
        if !self.wants(load) {
            return Ok(());
        }
        self.at(load, candidate);
        let scanner = self.programs.path("bench-sdk");
        let driver = format!("hokuyo:0='{}' scanner 1000", scanner.display());
        let setting = Setting {
            driver: Some(&driver),
            ..Setting::default()
        };
        let running = self.start(candidate, &setting)?;
        let listened = self.by_sdk("listen", &running)?;
        let (scans, cpu_us) = (listened[0], listened[1]);
        let per_s = scans / self.duration.as_secs_f64();
        let results = &mut self.results;
        results.add(load, "per_s", candidate, per_s);
        results.add(load, "cpu_us_per_scan", candidate, cpu_us);
        // Per 1000 scans, whatever rate the driver reached.
        results.add(load, "cpu_percent", candidate, cpu_us * 1000.0 / 1e4);
        Ok(())
    }

    /// Runs a client written with the SDK; returns the numbers that it prints.
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
        let slow = self.programs.path("bench-slow").display().to_string();
        for (load, flood, each_us) in FLOODED {
            if !self.wants(load) {
                continue;
            }
            // Nothing can overtake the frames that the floor puts into the pipe of a slow driver.
            let candidates = match each_us {
                Some(_) => self.mediators(),
                None => self.batching(),
            };
            for candidate in candidates {
                self.at(load, candidate);
                let driver = each_us.map(|us| format!("5:0='{slow}' {us}"));
                let setting = Setting {
                    driver: driver.as_deref(),
                    ..Setting::default()
                };
                let running = self.start(candidate, &setting)?;
                let seen =
                    fairness::bystander(running.address, running.pid(), flood, self.duration)?;
                seen.quantities(|quantity, value| {
                    self.results.add(load, quantity, candidate, value);
                });
            }
        }
        Ok(())
    }

    fn start(&self, candidate: Candidate, setting: &Setting<'_>) -> anyhow::Result<Running> {
        self.programs.start(candidate, setting)
    }

    /// The same on these cores; this thread stays on its own core until the second value is
    /// dropped.
    fn start_on(
        &self,
        cores: Cores,
        candidate: Candidate,
        setting: &Setting<'_>,
    ) -> anyhow::Result<(Running, OnOneCore)> {
        let theirs = OnOneCore::last()?;
        let running = self.start(candidate, setting)?;
        if matches!(cores, Cores::Alone | Cores::Beside) {
            running.move_drivers_to_first_core()?;
        }
        if matches!(cores, Cores::One | Cores::Beside) {
            return Ok((running, theirs));
        }
        drop(theirs);
        Ok((running, OnOneCore::first()?))
    }

    fn add_loss(&mut self, load: &str, candidate: Candidate, seen: &Seen) {
        self.results.add(load, "lost", candidate, seen.lost());
    }

    fn at(&self, load: &str, candidate: Candidate) {
        progress(&format!("round {}: {load}, {candidate}", self.round));
    }
}

/// The resident memory in bytes.
fn memory(running: &Running) -> anyhow::Result<f64> {
    let bytes = memory_of(running.pid()).context("the candidate has ended")?;
    Ok(bytes as f64)
}

/// Shows the progress on the terminal.
pub fn progress(text: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K{text}");
    }
}
