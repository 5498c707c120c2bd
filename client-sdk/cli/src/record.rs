//! `amber record`: records all traffic between clients and drivers to MCAP files. IO.
//!
//! ```text
//!  mediator --Unix socket--> writer thread --> FILE.mcap
//!                        |                     (or a ring, and a file for each snapshot)
//!                        +--> standby thread, while the disk is slow
//! ```
//!
//! The command itself waits for signals, shows progress and asks for snapshots. It runs on the robot,
//! with Linux.

mod feed;
mod intake;
mod limits;
mod names;
mod output;
mod progress;
mod report;
pub(super) mod snapshot;
mod viewers;
mod watched;
mod writer;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use amber_foxglove::Converter;
use amber_proto::Device;
use amber_reflect::Schemas;
use amber_terminal::{Failure, note, show};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};

use self::feed::OpenFeed;
use self::intake::Intake;
use self::names::Names;
use self::progress::Shown;
use self::report::Report;
use self::snapshot::{Asked, Socket};
use self::watched::Watched;
use self::writer::{Content, Plan, Target, Writer};
use super::end::End;
use super::session::Session;
use crate::recordings::size;

pub(super) const HELP: &str = "\
All messages between clients and drivers are recorded: requests, replies and streams, unchanged and
with the times at which the mediator received them. Missing messages are reported in the file and
at the end. Run it on the machine of the mediator, as its user.

A camera sends pictures only to clients that ask for them. With --watch, the recorder is such a
client: it asks for each picture, or for as many per second and as wide as you say.

With --snapshot, the last seconds stay in memory. They are written to a file by `amber snapshot`,
and automatically when a driver dies or reports trouble.

Examples:
  amber record
  amber record -o drive.mcap hokuyo roboclaw --for 60
  amber record --max-size 1GB --compress
  amber record --watch camera:0
  amber record --watch camera:0@10Hz,640px
  amber record --snapshot 30s
  amber info drive.mcap";

/// Options of `amber record`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Devices to record, e.g. hokuyo roboclaw:0 [default: all]
    #[arg(value_parser = amber_terminal::device)]
    devices: Vec<Device>,
    /// File or folder to write to, or - for stdout [default: a file with the date in its name]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Stop after this time, e.g. 90 or 0.5s [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = amber_terminal::seconds)]
    length: Option<Duration>,
    /// Start a new file at this size, e.g. 500MB; with --snapshot, the maximum memory to use
    /// [default: 256MB]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    max_size: Option<u64>,
    /// Compress the files (zstd)
    #[arg(long)]
    compress: bool,
    /// Camera to ask for pictures, if wanted with a rate and a maximum width, as in
    /// camera:0@10Hz,640px (may be given several times)
    #[arg(long, value_name = "CAMERA")]
    watch: Vec<Watched>,
    /// Keep the last seconds in memory, and write them on request
    #[arg(long, value_name = "TIME", value_parser = amber_terminal::seconds)]
    snapshot: Option<Duration>,
    /// Buffer size for a slow disk
    #[arg(long, value_name = "SIZE", default_value = limits::BUFFER, value_parser = size::parse)]
    buffer: u64,
    /// Omit the messages for Foxglove and Lichtblick
    #[arg(long)]
    raw: bool,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Messages of your own device (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
}

impl Options {
    fn checked(&self) -> Result<(), Failure> {
        let output = self.output.as_deref();
        if let Some(path) = output {
            super::file::check("-o", path)?;
        }
        let is_stdout = output.is_some_and(super::file::is_stdout);
        if is_stdout && self.snapshot.is_some() {
            return Err(Failure::wrong("snapshots cannot go to stdout")
                .hint("name a file or a folder: `-o FOLDER`"));
        }
        if is_stdout && self.max_size.is_some() {
            return Err(Failure::wrong("stdout cannot be split into several files")
                .hint("leave out --max-size, or name a file"));
        }
        match self.max_size {
            Some(bytes) if bytes < limits::MIN_FILE_BYTES => {
                let least = size::shown(limits::MIN_FILE_BYTES);
                Err(Failure::wrong("--max-size is too small").hint(format!(
                    "at least {least}: the descriptions of devices need space"
                )))
            }
            _ => Ok(()),
        }
    }

    fn plan(&self, schemas: Schemas, viewers: Option<Converter>) -> Plan {
        let is_snapshot = self.snapshot.is_some();
        let names = Names::new(self.output.clone(), is_snapshot, self.max_size.is_some());
        let target = match self.snapshot {
            Some(span) => Target::Ring {
                span,
                max_bytes: self.max_size.unwrap_or(limits::RING_BYTES),
            },
            None => Target::Files {
                max_bytes: self.max_size,
            },
        };
        Plan {
            content: Content {
                schemas: Arc::new(schemas),
                compress: self.compress,
                viewers,
            },
            names,
            target,
            force: self.force,
        }
    }
}

pub(super) async fn run(session: &mut Session<'_>, mut options: Options) -> Result<(), Failure> {
    options.checked()?;
    if !options.devices.is_empty() {
        // Nobody asks for pictures and leaves them out.
        let watched = options.watch.iter().map(|it| it.device);
        let left_out = watched.filter(|it| !options.devices.contains(it));
        let left_out: Vec<_> = left_out.collect();
        options.devices.extend(left_out);
    }
    let json = session.options.json;
    let port = session.options.mediator.port();
    let schemas = Schemas::with(&options.proto)?;
    let client = session.client_when_network_is_there().await?;
    let shape = viewers::shape(client, &options.devices).await;
    let cameras = watched::cameras(client, &options.devices).await;
    let viewers = match options.raw {
        true => None,
        false => {
            let mut made = viewers::converter(client, &options.devices, shape.as_ref()).await;
            for (device, info) in &cameras {
                made.set_camera(device.id.0, info);
            }
            Some(made)
        }
    };
    let feed = OpenFeed::open(client, &options.devices, schemas).await?;
    let mut end = End::new()?;
    let stream = feed.stream.try_clone().map_err(cannot_read)?;
    let intake = Intake::new(stream, options.buffer).map_err(cannot_read)?;
    // The first file is created before anything is said about it.
    let mut writer = Writer::start(options.plan(feed.schemas, viewers), intake.clone())?;
    let mut socket = match options.snapshot {
        Some(_) => Some(Socket::open(port)?),
        None => None,
    };
    let shown = Shown::new(json, io::stderr().is_terminal());
    // From the first record on, everything is recorded.
    if timeout(limits::END_PATIENCE, writer.begun()).await.is_err() {
        return Err(Failure::new("the mediator sends nothing"));
    }
    if shape.is_some() {
        viewers::shape(client, &options.devices).await;
    }
    // So that the recording has what the cameras say about themselves.
    watched::cameras(client, &options.devices).await;
    let watching = watched::watch(client, &options.watch);
    watched::hint(&cameras, &options.watch);
    shown.started(&options.devices, &writer.progress(), options.snapshot)?;
    let until = options.length.map(|length| Instant::now() + length);
    let mut ticks = interval(limits::PROGRESS_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut said_missing = 0;
    loop {
        tokio::select! {
            () = end.wait() => break,
            () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => break,
            () = writer.ended() => break,
            Some(asked) = asked(&mut socket) => intake.ask(asked),
            _ = ticks.tick() => {
                let progress = writer.progress();
                for written in writer.snapshots() {
                    shown.snapshot(&written)?;
                }
                if progress.totals.missing > said_missing {
                    shown.missing(progress.totals.missing - said_missing)?;
                    said_missing = progress.totals.missing;
                }
                shown.progress(&progress)?;
            }
        }
    }
    // It cancels its subscriptions.
    drop(watching);
    // The mediator sends what it still has, and then the end.
    feed::leave(&feed.stream);
    let hung = async {
        // Before, it may have had nothing to send.
        sleep(limits::END_PATIENCE).await;
        while !intake.waits_for_longer_than(limits::END_PATIENCE) {
            sleep(limits::PROGRESS_INTERVAL).await;
        }
        feed::give_up(&feed.stream);
    };
    tokio::select! {
        () = writer.ended() => {}
        () = hung => writer.ended().await,
        () = end.wait() => {
            shown.clear()?;
            return Err(Failure::new("stopped while data waited for the disk")
                .hint("run `amber recover FILE` to repair the file"));
        }
    }
    shown.clear()?;
    for written in writer.snapshots() {
        shown.snapshot(&written)?;
    }
    let outcome = writer.outcome()?;
    let lost = intake.lost().map(|error| error.to_string());
    let report = Report::new(outcome, options.snapshot.is_some());
    match session_output(&options) {
        true => note(report.brief()),
        false => show(&report, json)?,
    }
    match (report.is_ended(), lost) {
        (true, _) => Ok(()),
        (false, why) => Err(feed::lost(why)),
    }
}

/// Whether stdout has the recording.
fn session_output(options: &Options) -> bool {
    let output = options.output.as_deref();
    output.is_some_and(super::file::is_stdout)
}

async fn asked(socket: &mut Option<Socket>) -> Option<Asked> {
    match socket {
        Some(socket) => socket.next().await,
        None => None,
    }
}

fn cannot_read(error: io::Error) -> Failure {
    Failure::new(format!("cannot read from the mediator: {error}"))
}
