//! A disk that stalls while recording: the effects on clients and on the recording. IO.
//!
//! ```text
//!   amber record -- pipe --> a thread that stalls --> FILE.mcap
//! ```

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use amber_bench::load;
use amber_bench::process::{Programs, Setting};
use amber_bench::results::Candidate;
use amber_record::Info;
use anyhow::ensure;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde::Serialize;

use super::{Load, Options, Recorder, Recording, SETTLED, flood};

/// Less than what comes during the stall, so that there is a gap.
const BUFFER: &str = "1MB";

/// What clients and the recording say.
#[derive(Debug, Serialize)]
pub(super) struct Stall {
    phases: Vec<Phase>,
    /// Messages that clients have sent and got.
    passed: u64,
    recorded: u64,
    /// Messages in the gaps, as the file says.
    missing: u64,
    gaps: usize,
    gap_s: f64,
}

/// A time with the disk in one state.
#[derive(Debug, Serialize)]
struct Phase {
    name: &'static str,
    lost: u64,
    p50_us: f64,
    p99_us: f64,
    longest_ms: f64,
}

impl Stall {
    /// Whether there was a gap, and the file says exactly how much is missing. What the system has
    /// lost between clients and the mediator is in neither or in one of the numbers.
    pub(super) fn is_exact(&self) -> bool {
        let lost: u64 = self.phases.iter().map(|phase| phase.lost).sum();
        self.missing > 0 && (self.recorded + self.missing).abs_diff(self.passed) <= lost
    }

    pub(super) fn print(&self) {
        println!(
            "| the disk | lost | round trip, median, us | 99th percentile, us | longest, ms |"
        );
        println!("|---|---:|---:|---:|---:|");
        for phase in &self.phases {
            println!(
                "| {} | {} | {:.0} | {:.0} | {:.1} |",
                phase.name, phase.lost, phase.p50_us, phase.p99_us, phase.longest_ms
            );
        }
        println!(
            "\nclients sent and got {} messages; {} are in the file, which says that {} are missing in {} gaps \
             of {:.1} s",
            self.passed, self.recorded, self.missing, self.gaps, self.gap_s
        );
    }
}

/// Runs the load while the disk writes, stalls, and writes again.
pub(super) fn measure(
    options: &Options,
    programs: &Programs,
    folder: &Path,
    stall: Duration,
) -> anyhow::Result<Stall> {
    let mediator = programs.start(Candidate::Amber, &Setting::default())?;
    load::first_answer(mediator.address)?;
    let pipe = folder.join("bench-stalled.pipe");
    mkfifo(&pipe, Mode::from_bits_truncate(0o600))?;
    let file = folder.join("bench-stalled.mcap");
    let disk = Disk::start(&pipe, &file);
    let buffer = ["--buffer", BUFFER];
    let recorder = Recorder::start(options, programs, mediator.address, &pipe, &buffer)?;
    let (mut phases, mut passed) = (Vec::new(), 0);
    for (name, is_stalled) in [("writes", false), ("stalls", true), ("writes again", false)] {
        disk.is_stalled.store(is_stalled, Ordering::Relaxed);
        let Load { scans, mut small } = flood(options, mediator.address, mediator.pid(), stall)?;
        // Each load begins with a request of its own.
        passed += [&scans, &small]
            .iter()
            .map(|it| it.sent + it.received + 2)
            .sum::<u64>();
        phases.push(Phase {
            name,
            lost: scans.sent + small.sent - scans.received - small.received,
            p50_us: small.times.quantile_us(0.5),
            p99_us: small.times.quantile_us(0.99),
            longest_ms: small.times.quantile_us(1.0) / 1000.0,
        });
    }
    thread::sleep(SETTLED);
    let report = recorder.finish()?;
    disk.finish()?;
    let found = Recording::read(&file)?.found();
    let info = Info::read(File::open(&file)?)?;
    let _ = std::fs::remove_file(&file);
    let _ = std::fs::remove_file(&pipe);
    let missing = info.gaps.iter().map(|gap| gap.messages).sum();
    ensure!(report["missing_messages"] == missing, "{report}: {missing}");
    let gap_ns = info.gaps.iter().map(|gap| gap.last_ns - gap.first_ns);
    Ok(Stall {
        phases,
        passed,
        recorded: found.requests + found.echoes,
        missing,
        gaps: info.gaps.len(),
        gap_s: gap_ns.sum::<u64>() as f64 / 1e9,
    })
}

/// Takes what is written to a pipe, but for the time in which it stalls.
struct Disk {
    is_stalled: Arc<AtomicBool>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl Disk {
    fn start(pipe: &Path, file: &Path) -> Self {
        let is_stalled = Arc::new(AtomicBool::new(false));
        let (pipe, file): (PathBuf, PathBuf) = (pipe.to_owned(), file.to_owned());
        let stalls = is_stalled.clone();
        let thread = thread::spawn(move || {
            let (mut pipe, mut file) = (File::open(pipe)?, File::create(file)?);
            let mut bytes = vec![0; 1 << 20];
            loop {
                while stalls.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(5));
                }
                match pipe.read(&mut bytes)? {
                    0 => return Ok(()),
                    count => file.write_all(&bytes[..count])?,
                }
            }
        });
        Self { is_stalled, thread }
    }

    fn finish(self) -> anyhow::Result<()> {
        self.thread
            .join()
            .map_err(|_| anyhow::anyhow!("the disk panicked"))?
    }
}
