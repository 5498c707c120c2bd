//! The cost of a recorder: at the mediator, and compared with pure writers of MCAP files. IO.
//!
//! ```text
//!   this program -- UDP -- mediator -- pipes -- bench-echo (answers with the request)
//!                             |
//!                             +-- Unix socket -- amber record -- FILE.mcap
//! ```
//!
//! In each round, the same loads run without and with a recorder. What it has written is then
//! written again by the `mcap` libraries for Rust and for Python alone, from memory. With `--stall`,
//! the disk stalls meanwhile: see [`stall`].
#![allow(clippy::print_stdout)] // What a program is for.

mod stall;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use amber_bench::load::{self, Flood, Seen};
use amber_bench::process::{CpuMeter, Programs, Setting};
use amber_bench::results::Candidate;
use amber_harness::Program;
use amber_record::{Entry, Messages};
use anyhow::{Context, ensure};
use clap::Parser;
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use serde_json::Value;

/// Measure what a recorder costs
#[derive(Parser)]
struct Options {
    /// Rounds, each without and with a recorder
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of the load in each round
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// Small messages per second, requests and replies together
    #[arg(long, default_value_t = 100_000.0)]
    small: f64,
    /// Messages of the size of a scan per second, requests and replies together
    #[arg(long, default_value_t = 1000)]
    scans: u32,
    /// Compress the recordings
    #[arg(long)]
    compress: bool,
    /// Measure a disk that stalls for so many seconds instead
    #[arg(long, value_name = "SECONDS", conflicts_with = "compress")]
    stall: Option<f64>,
    /// Only check in seconds that everything works
    #[arg(long)]
    quick: bool,
    /// Folder for the recordings [default: one for temporary files]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The size of a scan, in bytes.
const SCAN_BYTES: usize = 6800;
/// The size of a small message, in bytes.
const SMALL_BYTES: usize = 64;
/// The time for the recorder to write what it holds.
const SETTLED: Duration = Duration::from_millis(1500);

fn main() -> anyhow::Result<ExitCode> {
    let mut options = Options::parse();
    if options.quick {
        (options.rounds, options.seconds, options.small) = (1, 0.3, 2000.0);
        options.scans = 50;
    }
    let programs = Programs::beside_this(None)?;
    let temporary = tempfile::tempdir()?;
    let folder = options.folder.as_deref().unwrap_or(temporary.path());
    if let Some(seconds) = options.stall {
        let time = Duration::from_secs_f64(seconds);
        let stall = stall::measure(&options, &programs, folder, time)?;
        match options.json {
            true => println!("{}", serde_json::to_string(&stall)?),
            false => stall.print(),
        }
        return Ok(ExitCode::from(u8::from(!stall.is_exact())));
    }
    let mut rounds = Vec::new();
    for _ in 0..options.rounds {
        rounds.push(round(&options, &programs, folder)?);
    }
    match options.json {
        true => println!("{}", serde_json::to_string(&rounds)?),
        false => print_table(&rounds),
    }
    let complete = rounds.iter().all(Round::is_complete);
    Ok(ExitCode::from(u8::from(!complete)))
}

/// The figures of a round.
#[derive(Debug, Serialize)]
struct Round {
    without: Figures,
    with: Figures,
    /// Messages in the recording.
    recorded: u64,
    found: Found,
    /// Messages that the mediator has dropped: the load was too high for this machine.
    dropped: u64,
    /// Messages that the recorder says are missing.
    missing: u64,
    /// Bytes of the recording.
    file_bytes: u64,
    /// CPU time of the recorder in seconds.
    recorder_cpu_s: f64,
    /// The length of the recording in seconds.
    recorded_s: f64,
    /// CPU time of the library for Rust alone, for the same messages.
    rust_cpu_s: f64,
    /// The same for Python, if it is there.
    python_cpu_s: Option<f64>,
}

/// What the recording has.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Found {
    requests: u64,
    echoes: u64,
}

/// What clients saw.
#[derive(Debug, Serialize)]
struct Figures {
    /// Echoes that came in time.
    received: u64,
    scans_per_s: f64,
    scans_lost_percent: f64,
    small_per_s: f64,
    small_lost_percent: f64,
    small_p50_us: f64,
    small_p99_us: f64,
    /// CPU time of the mediator per second.
    mediator_cpu: f64,
    /// Replies per second, as fast as possible with 64 requests in flight.
    best_per_s: f64,
    best_cpu_us: f64,
}

impl Round {
    /// Each request is there with its echo, unless the mediator has dropped it, and each echo that
    /// a client got.
    fn is_complete(&self) -> bool {
        let Found { requests, echoes } = self.found;
        let unanswered = requests.abs_diff(echoes);
        self.missing == 0 && unanswered <= self.dropped && echoes >= self.with.received
    }
}

fn round(options: &Options, programs: &Programs, folder: &Path) -> anyhow::Result<Round> {
    let setting = Setting::default();
    let mediator = programs.start(Candidate::Amber, &setting)?;
    load::first_answer(mediator.address)?;
    let without = figures(options, mediator.address, mediator.pid())?;
    drop(mediator);

    let mediator = programs.start(Candidate::Amber, &setting)?;
    load::first_answer(mediator.address)?;
    let path = folder.join("bench-record.mcap");
    let recorder = Recorder::start(options, programs, mediator.address, &path, &[])?;
    let with = figures(options, mediator.address, mediator.pid())?;
    // It writes what is buffered.
    thread::sleep(SETTLED);
    let recorder_cpu_s = recorder.cpu.elapsed().as_secs_f64();
    let report = recorder.finish()?;
    let recording = Recording::read(&path)?;
    let found = recording.found();
    let file_bytes = path.metadata()?.len();
    let rust_cpu_s = recording.write_alone(&folder.join("bench-alone.mcap"))?;
    let python_cpu_s = python_alone(&path, &folder.join("bench-python.mcap"))?;
    for name in ["bench-record.mcap", "bench-alone.mcap", "bench-python.mcap"] {
        let _ = std::fs::remove_file(folder.join(name));
    }
    Ok(Round {
        without,
        with,
        recorded: recording.messages.len() as u64,
        found,
        dropped: report["dropped_by_mediator"]
            .as_u64()
            .context("no report")?,
        missing: report["missing_messages"].as_u64().context("no report")?,
        file_bytes,
        recorder_cpu_s,
        recorded_s: report["seconds"].as_f64().context("no report")?,
        rust_cpu_s,
        python_cpu_s,
    })
}

/// Both loads at once, and then small messages as fast as possible.
fn figures(options: &Options, to: SocketAddr, pid: u32) -> anyhow::Result<Figures> {
    let duration = Duration::from_secs_f64(options.seconds);
    let cpu = CpuMeter::start(pid);
    let start = Instant::now();
    let Load { scans, mut small } = flood(options, to, pid, duration)?;
    let mediator_cpu = cpu.elapsed().as_secs_f64() / start.elapsed().as_secs_f64();
    let shortly = duration.min(Duration::from_secs(2));
    let best = load::flood(to, pid, 1, Flood::Window(64), SMALL_BYTES, shortly)?;
    let per_second = Seen::per_second;
    Ok(Figures {
        received: scans.received + small.received + best.received,
        scans_per_s: per_second(&scans),
        scans_lost_percent: scans.lost_percent(),
        small_per_s: per_second(&small),
        small_lost_percent: small.lost_percent(),
        small_p50_us: small.times.quantile_us(0.5),
        small_p99_us: small.times.quantile_us(0.99),
        mediator_cpu,
        best_per_s: per_second(&best),
        best_cpu_us: best.cpu_us(),
    })
}

/// What clients saw of both loads.
struct Load {
    scans: Seen,
    small: Seen,
}

/// Both loads at once.
fn flood(options: &Options, to: SocketAddr, pid: u32, duration: Duration) -> anyhow::Result<Load> {
    // Each request has an echo.
    let [scans, small] = [f64::from(options.scans), options.small].map(|it| it / 2.0);
    let scans = thread::spawn(move || {
        load::flood(to, pid, 1, Flood::PerSecond(scans), SCAN_BYTES, duration)
    });
    let flood = Flood::PerSecond(small);
    let small = load::flood(to, pid, 1, flood, SMALL_BYTES, duration)?;
    let scans = scans
        .join()
        .map_err(|_| anyhow::anyhow!("the load panicked"))??;
    Ok(Load { scans, small })
}

/// A running `amber record`.
struct Recorder {
    program: Program,
    cpu: CpuMeter,
}

impl Recorder {
    fn start(
        options: &Options,
        programs: &Programs,
        mediator: SocketAddr,
        path: &Path,
        more: &[&str],
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(programs.path("amber"));
        command.args([
            "record",
            "--json",
            "--force",
            "-m",
            &mediator.to_string(),
            "-o",
        ]);
        command
            .arg(path)
            .args(more)
            .args(options.compress.then_some("--compress"));
        let program = Program::of(command.stdout(Stdio::piped()).spawn()?);
        let cpu = CpuMeter::start(program.pid());
        program.line_with(&["started"])?;
        Ok(Self { program, cpu })
    }

    fn finish(self) -> anyhow::Result<Value> {
        self.program.signal(Signal::SIGINT)?;
        let (status, lines) = self.program.finish()?;
        ensure!(status.success(), "the recorder failed");
        let report = lines.last().context("the recorder printed nothing")?;
        Ok(serde_json::from_str(report)?)
    }
}

/// The messages of a recording, in memory.
struct Recording {
    channels: BTreeMap<u16, amber_record::Stored>,
    messages: Vec<(mcap::records::MessageHeader, Vec<u8>)>,
}

impl Recording {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let mut reader = Messages::new(File::open(path)?)?;
        let mut messages = Vec::new();
        while reader.next(|_, entry| {
            if let Entry::Message { header, data, .. } = entry {
                messages.push((header, data.to_vec()));
            }
        })? {}
        let channels = reader.channels().clone();
        Ok(Self { channels, messages })
    }

    /// Requests and echoes.
    fn found(&self) -> Found {
        let mut found = Found::default();
        for (header, data) in &self.messages {
            let stored = &self.channels[&header.channel_id];
            if stored.message(data).is_none() || stored.topic.contains("/dropped/") {
                continue;
            }
            match stored.topic.contains("/requests/") {
                true => found.requests += 1,
                false => found.echoes += 1,
            }
        }
        found
    }

    /// Writes them by the library alone. Returns the CPU time without that for the index, which is
    /// written when the recorder is no longer measured.
    fn write_alone(&self, path: &Path) -> anyhow::Result<f64> {
        let start = thread_cpu()?;
        let mut writer = mcap::WriteOptions::new()
            .compression(None)
            .chunk_size(Some(1024 * 1024))
            .create(BufWriter::with_capacity(256 * 1024, File::create(path)?))?;
        let mut ids = BTreeMap::new();
        for (id, stored) in &self.channels {
            let schema =
                writer.add_schema(&stored.schema, &stored.schema_encoding, &stored.descriptors)?;
            let made =
                writer.add_channel(schema, &stored.topic, &stored.encoding, &stored.about)?;
            ids.insert(*id, made);
        }
        for (header, data) in &self.messages {
            let mut header = *header;
            header.channel_id = ids[&header.channel_id];
            writer.write_to_known_channel(&header, data)?;
        }
        writer.flush()?;
        let took = thread_cpu()? - start;
        writer.finish()?;
        Ok(took.as_secs_f64())
    }
}

fn thread_cpu() -> anyhow::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

const PYTHON: &str = "
import sys, time
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer
with open(sys.argv[1], 'rb') as file:
    all = list(make_reader(file).iter_messages(log_time_order=False))
start = time.process_time()
with open(sys.argv[2], 'wb') as file:
    writer = Writer(file, chunk_size=1 << 20, compression=CompressionType.NONE)
    writer.start()
    ids = {}
    for schema, channel, message in all:
        id = ids.get(channel.id)
        if id is None:
            made = writer.register_schema(schema.name, schema.encoding, schema.data)
            id = writer.register_channel(channel.topic, channel.message_encoding, made)
            ids[channel.id] = id
        writer.add_message(id, message.log_time, message.data, message.publish_time)
    print(time.process_time() - start)
    writer.finish()
";

/// The same by the library for Python; `None` if it is not installed.
fn python_alone(from: &Path, to: &Path) -> anyhow::Result<Option<f64>> {
    let mut command = Command::new("python3");
    command.args(["-c", PYTHON]).arg(from).arg(to);
    let output = command.output();
    match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8(output.stdout)?;
            Ok(Some(text.trim().parse()?))
        }
        Ok(output) if !String::from_utf8_lossy(&output.stderr).contains("ModuleNotFound") => {
            anyhow::bail!("{}", String::from_utf8_lossy(&output.stderr))
        }
        _ => {
            let _ = writeln!(
                std::io::stderr(),
                "SKIP the writer for Python: mcap is missing"
            );
            Ok(None)
        }
    }
}

fn median(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    let mut all: Vec<_> = rounds.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

fn print_table(rounds: &[Round]) {
    println!("| | without | with a recorder | ratio |\n|---|---:|---:|---:|");
    type Of = fn(&Figures) -> f64;
    let rows: [(&str, Of); 9] = [
        ("replies of 6.8 kB per second", |it| it.scans_per_s),
        ("lost of these, percent", |it| it.scans_lost_percent),
        ("replies of 64 B per second", |it| it.small_per_s),
        ("lost of these, percent", |it| it.small_lost_percent),
        ("round trip, median, us", |it| it.small_p50_us),
        ("round trip, 99th percentile, us", |it| it.small_p99_us),
        ("CPU of the mediator, cores", |it| it.mediator_cpu),
        ("replies per second, as fast as possible", |it| {
            it.best_per_s
        }),
        ("CPU of the mediator per reply, us", |it| it.best_cpu_us),
    ];
    for (name, of) in rows {
        let without = median(rounds, |round| of(&round.without));
        let with = median(rounds, |round| of(&round.with));
        // Within each round.
        let ratio = median(rounds, |round| of(&round.with) / of(&round.without));
        println!("| {name} | {without:.2} | {with:.2} | {ratio:.2} |");
    }
    let messages = median(rounds, |round| round.recorded as f64);
    let megabytes = median(rounds, |round| round.file_bytes as f64 / 1e6);
    let seconds = median(rounds, |round| round.recorded_s);
    println!("\n{messages:.0} messages and {megabytes:.1} MB in {seconds:.1} s; missing:");
    for round in rounds {
        let Found { requests, echoes } = round.found;
        println!(
            "- {} by the recorder; {requests} requests and {echoes} echoes are in the file, {} \
             were dropped by the mediator, {} echoes came to the clients",
            round.missing, round.dropped, round.with.received
        );
    }
    println!("\n| | CPU us per message | MB per CPU second | ratio |\n|---|---:|---:|---:|");
    type Cpu = fn(&Round) -> f64;
    let writers: [(&str, Cpu); 3] = [
        ("`amber record`", |it| it.recorder_cpu_s),
        ("`mcap` for Rust alone", |it| it.rust_cpu_s),
        ("`mcap` for Python alone", |it| {
            it.python_cpu_s.unwrap_or(f64::NAN)
        }),
    ];
    for (name, cpu) in writers {
        let per_message = median(rounds, |it| 1e6 * cpu(it) / it.recorded as f64);
        let speed = median(rounds, |it| it.file_bytes as f64 / 1e6 / cpu(it));
        let ratio = median(rounds, |it| cpu(it) / it.rust_cpu_s);
        println!("| {name} | {per_message:.2} | {speed:.0} | {ratio:.2} |");
    }
}
