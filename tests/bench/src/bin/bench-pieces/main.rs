//! Messages that are longer than a frame: how many pictures of a camera arrive whole, how late, and
//! what that costs. IO.
//!
//! ```text
//!   subscribers -- (network) -- UDP -- mediator -- pipes -- this program as a camera
//! ```
//!
//! Each subscriber is a process. The network with its loss is a part of it: see [`link`].
#![allow(clippy::print_stdout)] // What a program is for.

mod link;

use std::net::SocketAddr;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use amber_bench::process::{CpuMeter, Programs, Running, Setting};
use amber_bench::results::Candidate;
use amber_bench::samples::Samples;
use amber_client::Client;
use amber_client::transport::UdpTransport;
use amber_driver::{Driver, Request};
use amber_harness::Program;
use amber_harness::processes::children;
use amber_harness::usage::memory_of;
use amber_proto::{Device, DeviceMessage, DeviceType};
use anyhow::{Context, bail, ensure};
use clap::Parser;
use nix::sys::signal::Signal;
use prost::Message;
use serde::{Deserialize, Serialize};

use self::link::{Counts, Link, Rule};

/// A device of a user.
const CAMERA: Device = Device::new(DeviceType(110), 0);
/// How long a subscriber is stopped.
const STOPPED: Duration = Duration::from_secs(5);
/// A pause after which a subscriber was stopped.
const PAUSE: Duration = Duration::from_secs(1);
/// A picture of this age is a new one.
const FRESH: Duration = Duration::from_millis(100);

/// Measure messages that travel in pieces
#[derive(Parser)]
enum Options {
    /// Print a table of the cases
    Measure(Measure),
    /// A camera: a driver that publishes pictures of BYTES, HERTZ times per second
    #[command(hide = true)]
    Camera { bytes: usize, hertz: f64 },
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
    /// Seconds of each case
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
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

/// What is measured, and what is demanded.
struct Case {
    name: &'static str,
    bytes: usize,
    hertz: u32,
    subscribers: usize,
    network: Option<&'static str>,
    /// Whether another subscriber is stopped for a while.
    stops_one: bool,
    /// Pictures that arrive whole, in percent.
    whole: f64,
    /// The median time to a whole picture, in milliseconds.
    median_ms: Option<f64>,
    /// The mediator's CPU time, in percent of a core.
    mediator: Option<f64>,
    /// Pieces beyond those of each picture, in percent.
    extra: Option<f64>,
}

const CASES: &[Case] = &[
    Case {
        mediator: Some(2.0),
        median_ms: Some(2.0),
        ..case("loopback, 5 subscribers", 200_000, 30, 5, None, 99.0)
    },
    Case {
        mediator: Some(10.0),
        // Pieces for other computers, without loss.
        ..case("20 subscribers", 60_000, 30, 20, Some("0,0,0,0"), 99.0)
    },
    Case {
        extra: Some(5.0),
        ..case("1 % loss", 60_000, 30, 1, Some("1,5,0,0"), 99.5)
    },
    Case {
        extra: Some(5.0),
        ..case("3 % loss", 60_000, 30, 1, Some("3,5,0,0"), 98.0)
    },
    case("1 % loss, large", 200_000, 30, 1, Some("1,5,0,0"), 95.0),
    case("30 Mbit/s", 200_000, 10, 1, Some("0,0,30,100"), 95.0),
    Case {
        stops_one: true,
        ..case("one is stopped", 200_000, 30, 2, None, 99.0)
    },
];

const fn case(
    name: &'static str,
    bytes: usize,
    hertz: u32,
    subscribers: usize,
    network: Option<&'static str>,
    whole: f64,
) -> Case {
    Case {
        name,
        bytes,
        hertz,
        subscribers,
        network,
        stops_one: false,
        whole,
        median_ms: None,
        mediator: None,
        extra: None,
    }
}

fn main() -> anyhow::Result<ExitCode> {
    // Without a subcommand, it measures.
    let mut words: Vec<_> = std::env::args().collect();
    let is_own = |word: &String| ["camera", "subscriber", "help"].contains(&&word[..]);
    if !words.get(1).is_some_and(is_own) {
        words.insert(1, "measure".into());
    }
    match Options::parse_from(words) {
        Options::Camera { bytes, hertz } => Ok(amber_driver::serve(Camera {
            period: Duration::from_secs(1).div_f64(hertz),
            bytes,
            sequence: 0,
        })),
        Options::Subscriber {
            mediator,
            seconds,
            network,
        } => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let seen = runtime.block_on(subscribe(mediator, seconds, network))?;
            println!("{}", serde_json::to_string(&seen)?);
            Ok(ExitCode::SUCCESS)
        }
        Options::Measure(options) => measure(options),
    }
}

fn measure(mut options: Measure) -> anyhow::Result<ExitCode> {
    if options.quick {
        options.seconds = 2.0;
    }
    let programs = Programs::beside_this(None)?;
    let mut all_good = true;
    let cases = CASES
        .iter()
        .filter(|case| case.name.contains(&options.only));
    if !options.json {
        println!(
            "| case | bytes | Hz | whole, % | median, ms | p99, ms | mediator, % | more pieces, % \
             | datagram, B | |\n|---|---|---|---|---|---|---|---|---|---|"
        );
    }
    for case in cases {
        let row = run(&programs, case, &options)?;
        all_good &= row.missed.is_empty();
        match options.json {
            true => println!("{}", serde_json::to_string(&row)?),
            false => println!("{}", row.line()),
        }
    }
    // A short run on a busy computer only shows that everything works.
    Ok(ExitCode::from(u8::from(!all_good && !options.quick)))
}

/// The figures of a case.
#[derive(Debug, Serialize)]
struct Row {
    case: &'static str,
    bytes: usize,
    hertz: u32,
    whole_percent: f64,
    median_ms: f64,
    p99_ms: f64,
    mediator_percent: f64,
    extra_percent: Option<f64>,
    longest_datagram: Option<usize>,
    /// From the end of the stop to a new picture.
    resumed_ms: Option<f64>,
    /// How much the memory of the camera has grown meanwhile.
    camera_grew_bytes: Option<i64>,
    /// The demands that are not met.
    missed: Vec<String>,
}

impl Row {
    fn line(&self) -> String {
        let optional = |it: Option<String>| it.unwrap_or_else(|| "-".into());
        let mut remarks = self.missed.clone();
        remarks.extend((self.resumed_ms).map(|ms| format!("new picture {ms:.0} ms after a stop")));
        remarks
            .extend((self.camera_grew_bytes).map(|bytes| format!("camera {:+} kB", bytes / 1000)));
        format!(
            "| {} | {} | {} | {:.2} | {:.1} | {:.1} | {:.1} | {} | {} | {} |",
            self.case,
            self.bytes,
            self.hertz,
            self.whole_percent,
            self.median_ms,
            self.p99_ms,
            self.mediator_percent,
            optional(self.extra_percent.map(|it| format!("{it:.1}"))),
            optional(self.longest_datagram.map(|it| it.to_string())),
            remarks.join("; "),
        )
    }
}

fn run(programs: &Programs, case: &Case, options: &Measure) -> anyhow::Result<Row> {
    let this = std::env::current_exe()?;
    let this = this.to_str().context("the path is not valid UTF-8")?;
    let driver = format!("110:0='{this}' camera {} {}", case.bytes, case.hertz);
    let setting = Setting {
        driver: Some(&driver),
        ..Setting::default()
    };
    let mediator = programs.start(Candidate::Amber, &setting)?;
    let stopped_s = if case.stops_one {
        STOPPED.as_secs_f64()
    } else {
        0.0
    };
    let seconds = options.seconds.max(2.0) + stopped_s;
    let start = |network: Option<&str>| {
        let mut command = Command::new(this);
        command.args(["subscriber", &mediator.address.to_string()]);
        command.arg(seconds.to_string()).args(network);
        anyhow::Ok(Program::of(command.stdout(Stdio::piped()).spawn()?))
    };
    let subscribers = (0..case.subscribers)
        .map(|_| start(case.network))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let stopped = case.stops_one.then(|| start(None)).transpose()?;
    for subscriber in subscribers.iter().chain(&stopped) {
        subscriber.line_with(&["begins"])?;
    }
    let (cpu, began) = (CpuMeter::start(mediator.pid()), Instant::now());
    let camera = memory_of_camera(&mediator);
    if let Some(stopped) = &stopped {
        thread::sleep(Duration::from_secs(1));
        stopped.signal(Signal::SIGSTOP)?;
        thread::sleep(STOPPED);
        stopped.signal(Signal::SIGCONT)?;
    }
    let seen = subscribers
        .into_iter()
        .map(Seen::of)
        .collect::<anyhow::Result<Vec<_>>>()?;
    let mediator_percent = 100.0 * cpu.elapsed().as_secs_f64() / began.elapsed().as_secs_f64();
    let after = memory_of_camera(&mediator);
    let grown = camera.zip(after).map(|(before, after)| after - before);
    let resumed = stopped.map(Seen::of).transpose()?;
    let grown = grown.filter(|_| case.stops_one);
    row(case, &seen, mediator_percent, resumed, grown)
}

/// Resident memory in bytes.
fn memory_of_camera(mediator: &Running) -> Option<i64> {
    let cameras = children(&[mediator.pid()]);
    let (pid, _) = (cameras.iter()).find(|(_, name)| name.starts_with("bench-"))?;
    i64::try_from(memory_of(*pid)?).ok()
}

fn row(
    case: &Case,
    all: &[Seen],
    mediator_percent: f64,
    resumed: Option<Seen>,
    camera_grew_bytes: Option<i64>,
) -> anyhow::Result<Row> {
    let whole: u64 = all.iter().map(|seen| seen.whole).sum();
    let sent: u64 = all.iter().map(|seen| seen.sent).sum();
    ensure!(sent > 0, "{}: no pictures arrived", case.name);
    let mut times = Samples::default();
    for ns in all.iter().flat_map(|seen| &seen.latencies_ns) {
        times.add(*ns);
    }
    let needed = sent * (case.bytes as u64).div_ceil(amber_proto::limits::PIECE_BYTES as u64);
    let pieces: u64 = all.iter().map(|seen| seen.pieces).sum();
    let is_networked = case.network.is_some();
    let mut row = Row {
        case: case.name,
        bytes: case.bytes,
        hertz: case.hertz,
        whole_percent: 100.0 * whole as f64 / sent as f64,
        median_ms: times.quantile_us(0.5) / 1e3,
        p99_ms: times.quantile_us(0.99) / 1e3,
        mediator_percent,
        extra_percent: is_networked.then(|| 100.0 * (pieces as f64 / needed as f64 - 1.0)),
        longest_datagram: is_networked.then(|| all.iter().map(|it| it.longest).max().unwrap_or(0)),
        resumed_ms: resumed.and_then(|seen| seen.resumed_ms),
        camera_grew_bytes,
        missed: Vec::new(),
    };
    let mut demand = |is_met: bool, what: String| {
        if !is_met {
            row.missed.push(what);
        }
    };
    demand(
        row.whole_percent >= case.whole,
        format!("whole below {} %", case.whole),
    );
    if let Some(most) = case.median_ms {
        demand(row.median_ms <= most, format!("median above {most} ms"));
    }
    if let Some(most) = case.mediator {
        demand(
            row.mediator_percent <= most,
            format!("mediator above {most} %"),
        );
    }
    if let Some(most) = case.extra {
        let extra = row.extra_percent.unwrap_or(0.0);
        demand(extra <= most, format!("more than {most} % more pieces"));
    }
    if case.stops_one {
        let resumed = row.resumed_ms.is_some_and(|ms| ms <= 200.0);
        demand(resumed, "no new picture 200 ms after the stop".into());
    }
    if let Some(longest) = row.longest_datagram {
        demand(longest <= 1232, "a datagram above 1232 bytes".into());
    }
    Ok(row)
}

/// What a subscriber has seen.
#[derive(Debug, Deserialize, Serialize)]
struct Seen {
    whole: u64,
    /// From the first picture to the last one, as they are counted by the camera.
    sent: u64,
    latencies_ns: Vec<u64>,
    /// Pieces that came to its network.
    pieces: u64,
    longest: usize,
    resumed_ms: Option<f64>,
}

impl Seen {
    /// The result of a subscriber.
    fn of(program: Program) -> anyhow::Result<Self> {
        let (status, lines) = program.finish()?;
        ensure!(status.success(), "a subscriber failed");
        let last = lines.last().context("a subscriber printed nothing")?;
        Ok(serde_json::from_str(last)?)
    }
}

async fn subscribe(
    mediator: SocketAddr,
    seconds: f64,
    network: Option<Rule>,
) -> anyhow::Result<Seen> {
    let counts = Arc::new(Counts::default());
    let client = match network {
        Some(rule) => {
            let transport = UdpTransport::connect(mediator).await?;
            let client = Client::over(Link::new(transport, rule, counts.clone()));
            // Announces itself; the first ones may be lost.
            let mediator = client.device(Device::MEDIATOR);
            let mut tries = 0..9;
            while mediator.ping().await.is_err() {
                tries.next().context("the mediator does not answer")?;
            }
            client
        }
        None => Client::connect(mediator).await?,
    };
    let mut pictures = client.device(CAMERA).subscribe_raw().await?;
    // The first pictures are cut by the beginning, and the camera measures its period.
    for _ in 0..3 {
        pictures.next().await.context("the client has ended")?;
    }
    println!("begins");
    let pieces_before = counts.pieces.load(Ordering::Relaxed);
    let mut seen = Seen {
        whole: 0,
        sent: 0,
        latencies_ns: Vec::new(),
        pieces: 0,
        longest: 0,
        resumed_ms: None,
    };
    let (mut first, mut last) = (None, 0);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let (mut before, mut stopped) = (Instant::now(), None);
    while Instant::now() < end {
        let next = tokio::time::timeout(Duration::from_secs(3), pictures.next());
        let Ok(update) = next.await else {
            bail!("no picture for 3 s");
        };
        let update = update.context("the client has ended")?;
        let now = Instant::now();
        let picture = Picture::decode(&update.message[..])?;
        let (sequence, age) = read(picture.data.as_deref().unwrap_or_default())?;
        if now > before + PAUSE {
            stopped = Some(now);
        }
        before = now;
        if let Some(stop) = stopped
            && age < FRESH
        {
            seen.resumed_ms = Some((now - stop).as_secs_f64() * 1e3);
            stopped = None;
        }
        seen.whole += 1;
        seen.latencies_ns.push(age.as_nanos() as u64);
        first.get_or_insert(sequence);
        last = sequence;
    }
    seen.sent = first.map_or(0, |first| last - first + 1);
    seen.pieces = counts.pieces.load(Ordering::Relaxed) - pieces_before;
    seen.longest = counts.longest.load(Ordering::Relaxed);
    client.close().await;
    Ok(seen)
}

/// The number and the age of a picture.
fn read(data: &[u8]) -> anyhow::Result<(u64, Duration)> {
    let (numbers, _) = data.as_chunks::<8>();
    let [sequence, sent_ns, ..] = numbers else {
        bail!("a picture of {} bytes", data.len());
    };
    let sent = Duration::from_nanos(u64::from_le_bytes(*sent_ns));
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok((u64::from_le_bytes(*sequence), now.saturating_sub(sent)))
}

/// The message of the device.
#[derive(Clone, PartialEq, Message)]
struct Picture {
    #[prost(int32, optional, tag = "2")]
    r#type: Option<i32>,
    #[prost(uint32, optional, tag = "3")]
    syn_num: Option<u32>,
    #[prost(uint32, optional, tag = "4")]
    ack_num: Option<u32>,
    /// Sequence and time, then anything.
    #[prost(bytes = "vec", optional, tag = "110")]
    data: Option<Vec<u8>>,
}
amber_proto::device_message!(Picture);

struct Camera {
    period: Duration,
    bytes: usize,
    sequence: u64,
}

impl Driver for Camera {
    type Message = Picture;

    async fn request(&mut self, _: Request<Picture>) -> Option<Picture> {
        None
    }

    fn period(&self) -> Option<Duration> {
        Some(self.period)
    }

    async fn publish(&mut self) -> Option<Picture> {
        self.sequence += 1;
        let sent = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        let mut data = vec![0x5a; self.bytes];
        let numbers = [self.sequence, u64::try_from(sent.as_nanos()).ok()?];
        for (place, number) in data.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        Some(Picture {
            data: Some(data),
            ..DeviceMessage::data()
        })
    }
}
