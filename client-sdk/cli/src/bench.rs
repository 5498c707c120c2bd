//! `amber bench`: latency and throughput to the mediator and its drivers. IO.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use amber_client::{Client, DEFAULT_DEADLINE, Error, Proxy};
use amber_proto::mediator::DriverState;
use amber_proto::{Device, DeviceType};
use amber_terminal::{Failure, Human};
use bytes::Bytes;
use serde::Serialize;
use tokio::task::JoinSet;

use self::rows::{RoundTrips, Row, Stream};
use self::series::Series;
use super::session::Session;
use super::{call, file, message};

mod plot;
mod rows;
mod series;

pub(super) const HELP: &str = "\
Without a device, it measures the mediator and all running drivers. It sends one request at a time;
--window allows more. Ctrl-C shows the result so far.

Examples:
  amber bench
  amber bench roboclaw --seconds 10
  amber bench hokuyo --request scan --svg scan.svg
  amber bench hokuyo --subscribe
  amber bench dummy --window 16 --json";

/// Options of `amber bench`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Device, e.g. hokuyo, hokuyo:0, 4:0 or mediator [default: all running devices]
    #[arg(value_parser = amber_terminal::device)]
    device: Option<Device>,
    /// Duration for each device
    #[arg(short, long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    seconds: Duration,
    /// Number of concurrent requests
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    window: u16,
    /// Request instead of a PING: a name as in `amber call`, or 'raw HEX'
    #[arg(
        short,
        long,
        value_name = "REQUEST",
        requires = "device",
        conflicts_with = "subscribe"
    )]
    request: Option<String>,
    /// Measure the rate and the jitter of published messages instead
    #[arg(long, requires = "device", conflicts_with = "window")]
    subscribe: bool,
    /// Write a chart of all times to a file, or to stdout for `-`
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// The longest measurement, because all times are kept in memory.
const LONGEST: Duration = Duration::from_secs(300);

/// A device counts as unresponsive if this many requests are lost at the beginning.
const PATIENCE: usize = 3;

/// Update interval of the progress line.
const PROGRESS: Duration = Duration::from_millis(200);

fn seconds(text: &str) -> Result<Duration, String> {
    let duration = amber_terminal::seconds(text)?;
    match duration <= LONGEST {
        true => Ok(duration),
        false => Err(format!("at most {} seconds", LONGEST.as_secs())),
    }
}

impl Options {
    /// Reads the options before anything is sent.
    pub(super) async fn read(self, session: &mut Session<'_>) -> Result<Checked, Failure> {
        if let Some(path) = &self.svg {
            file::check("--svg", path)?;
        }
        Ok(Checked {
            question: self.question(session).await?,
            options: self,
        })
    }

    /// Shows the result, unless stdout carries the chart.
    fn show(&self, result: &(impl Serialize + Human), json: bool) -> Result<(), Failure> {
        match self.svg.as_deref().is_some_and(file::is_stdout) {
            true => Ok(()),
            false => amber_terminal::show(result, json),
        }
    }

    /// The request, unless that is a PING.
    async fn question(&self, session: &mut Session<'_>) -> Result<Option<Bytes>, Failure> {
        let (Some(device), Some(request)) = (self.device, &self.request) else {
            return Ok(None);
        };
        call::question(device, request, session).await.map(Some)
    }
}

/// Valid options.
#[derive(Debug)]
pub(super) struct Checked {
    options: Options,
    /// The request, unless that is a PING.
    question: Option<Bytes>,
}

pub(super) async fn run(client: &Client, bench: Checked, json: bool) -> Result<(), Failure> {
    let Checked { options, question } = bench;
    if let (Some(device), true) = (options.device, options.subscribe) {
        return subscription(client, device, &options, json).await;
    }
    let devices = match options.device {
        Some(device) => vec![device],
        None => all(client).await?,
    };
    let mut bench = Bench::default();
    for device in devices {
        bench.devices.push(RoundTrips::new(device));
        let Some(trips) = bench.devices.last_mut() else {
            break;
        };
        let proxy = client.device(device).with_deadline(DEFAULT_DEADLINE);
        // Ctrl-C ends the measurement, and the result is still shown.
        let interrupted = tokio::select! {
            done = round_trips(&proxy, question.as_ref(), &options, trips) => done.map(|()| false)?,
            _ = super::interrupt() => true,
        };
        if interrupted {
            break;
        }
    }
    clear_progress();
    options.show(&bench.shown(), json)?;
    write_svg(&options, &bench.pictures())?;
    match bench.devices.iter().all(|trips| trips.times.is_empty()) {
        true => Err(bench.nothing_came_back()),
        false => Ok(()),
    }
}

/// The mediator and all devices with a running driver.
async fn all(client: &Client) -> Result<Vec<Device>, Failure> {
    let mut devices = vec![Device::MEDIATOR];
    for driver in client.mediator().drivers().await? {
        let named = driver.devices.iter();
        if matches!(driver.state(), DriverState::Up | DriverState::Starting) {
            devices.extend(named.map(|named| Device::new(DeviceType(named.r#type), named.id)));
        }
    }
    Ok(devices)
}

/// Sends requests. Those without an answer within the deadline of the proxy are lost.
async fn round_trips(
    proxy: &Proxy,
    question: Option<&Bytes>,
    options: &Options,
    trips: &mut RoundTrips,
) -> Result<(), Failure> {
    let begin = Instant::now();
    let mut progress = Progress::new();
    let mut asked = JoinSet::new();
    let ask = |asked: &mut JoinSet<_>| {
        let (proxy, question) = (proxy.clone(), question.cloned());
        asked.spawn(async move {
            let start = Instant::now();
            let answer = match question {
                Some(question) => proxy.request_raw(question).await.map(drop),
                None => proxy.ping().await.map(drop),
            };
            (start, start.elapsed(), answer)
        });
    };
    (0..options.window).for_each(|_| ask(&mut asked));
    while let Some(answer) = asked.join_next().await {
        let Ok((start, took, answer)) = answer else {
            continue;
        };
        match answer {
            Ok(()) => trips.times.add(start - begin, took),
            Err(error @ Error::TimedOut { .. }) => {
                trips.lost += 1;
                trips.error = Some(error);
            }
            Err(error @ Error::Closed { .. }) => return Err(error.into()),
            // A refusal comes immediately, and repeating the request would not help.
            Err(error) => {
                trips.lost += 1;
                trips.error = Some(error);
                return Ok(());
            }
        }
        trips.lasted = begin.elapsed();
        progress.show(|| trips.progress());
        let hopeless = trips.times.is_empty() && trips.lost >= PATIENCE;
        if trips.lasted < options.seconds && !hopeless {
            ask(&mut asked);
        }
    }
    Ok(())
}

async fn subscription(
    client: &Client,
    device: Device,
    options: &Options,
    json: bool,
) -> Result<(), Failure> {
    let mut stream = Stream::new(device);
    let mut updates = client.device(device).subscribe_raw().await?;
    let listen = async {
        let mut progress = Progress::new();
        // The measurement starts with the first message.
        let mut begin = None;
        loop {
            let update = message::next(&mut updates, device).await?;
            let at = *begin.get_or_insert_with(Instant::now);
            stream.add(at.elapsed(), update.message.len(), update.missed);
            progress.show(|| stream.progress());
            if at.elapsed() >= options.seconds {
                return Ok::<_, Failure>(());
            }
        }
    };
    // This also ends if the device publishes nothing or stops publishing.
    let patience = options.seconds + DEFAULT_DEADLINE;
    tokio::select! {
        done = listen => done?,
        () = tokio::time::sleep(patience) => {}
        _ = super::interrupt() => {}
    }
    clear_progress();
    options.show(&stream.shown(), json)?;
    let title = format!("{device}: time between two messages");
    write_svg(options, &[(title, &stream.intervals)])?;
    match stream.messages {
        0 => Err(Failure::new(format!("{device} published nothing"))
            .hint("`amber devices` shows whether its driver runs")),
        _ => Ok(()),
    }
}

fn write_svg(options: &Options, pictures: &[(String, &Series)]) -> Result<(), Failure> {
    let Some(path) = &options.svg else {
        return Ok(());
    };
    file::write(path, plot::svg(pictures).as_bytes())?;
    file::wrote(path);
    Ok(())
}

/// All devices, one after the other.
#[derive(Debug, Default)]
struct Bench {
    devices: Vec<RoundTrips>,
}

#[derive(Debug, Serialize)]
struct Shown {
    devices: Vec<Row>,
    #[serde(skip)]
    distribution: String,
}

impl Bench {
    fn shown(&self) -> Shown {
        let distribution = match &self.devices[..] {
            [only] => plot::distribution(&only.times),
            _ => String::new(),
        };
        Shown {
            devices: self.devices.iter().map(RoundTrips::row).collect(),
            distribution,
        }
    }

    fn pictures(&self) -> Vec<(String, &Series)> {
        let title = |trips: &RoundTrips| format!("{}: round trips", trips.device);
        (self.devices.iter())
            .map(|trips| (title(trips), &trips.times))
            .collect()
    }

    fn nothing_came_back(&self) -> Failure {
        let names: Vec<_> = self
            .devices
            .iter()
            .map(|trips| trips.device.to_string())
            .collect();
        let failure = Failure::new(format!("no reply from {}", names.join(", ")));
        let hints = self.devices.iter().filter_map(|trips| trips.error.as_ref());
        match hints.filter_map(Error::hint).next() {
            Some(hint) => failure.hint(hint),
            None => failure.hint("some drivers never answer PING: try --request"),
        }
    }
}

impl Human for Shown {
    fn human(&self) -> String {
        rows::table(&self.devices) + &self.distribution
    }
}

/// The progress line, on terminals only.
struct Progress {
    next: Instant,
    wanted: bool,
}

impl Progress {
    fn new() -> Self {
        Self {
            next: Instant::now() + PROGRESS,
            wanted: io::stderr().is_terminal(),
        }
    }

    fn show(&mut self, line: impl FnOnce() -> String) {
        if self.wanted && Instant::now() >= self.next {
            self.next = Instant::now() + PROGRESS;
            // Progress is optional.
            let _ = write!(io::stderr(), "\r\x1b[K{}", line());
        }
    }
}

fn clear_progress() {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}
