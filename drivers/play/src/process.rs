//! The process that serves all devices of a recording: `amber driver play`. IO.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use amber_driver::{Devices, SendError, now};
use amber_proto::Device;
use amber_proto::mediator::Event;
use amber_record::play::{Answers, MAX_RATE, MIN_RATE, PlayError, Played, Player, Recorded, Span};
use amber_reflect::Schemas;
use prost::Message as _;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::control::{Command, Report, Status, line};
use crate::device::{Playback, Shared, count, lock};
use crate::limits;
use crate::message::Message;

/// The recording and the playback options.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Options {
    /// Recording: one file, the files of one run, or a folder with them
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Rate, relative to the recording: 0.01 to 1000
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = rate)]
    pub rate: f64,
    /// Restart at the end
    #[arg(long = "loop")]
    pub repeat: bool,
    /// Start at this time of the recording
    #[arg(long, value_name = "SECONDS", value_parser = amber_terminal::seconds)]
    pub from: Option<Duration>,
    /// Start paused; space continues
    #[arg(long)]
    pub paused: bool,
}

/// Options of `amber driver play`.
#[derive(Clone, Debug, clap::Args)]
pub struct DriverOptions {
    #[command(flatten)]
    options: Options,
    /// The socket of the terminal that controls the player.
    #[arg(long, value_name = "SOCKET", hide = true)]
    control: Option<PathBuf>,
}

/// The reason why a recording cannot be played, and a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// The reason.
    pub text: String,
    /// The hint.
    pub hint: Option<String>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok();
    rate.filter(|rate| (MIN_RATE..=MAX_RATE).contains(rate))
        .ok_or_else(|| format!("not a factor from {MIN_RATE} to {MAX_RATE}"))
}

/// The files of a recording, in order of time, and their combined contents.
pub struct Opened {
    /// The contents of the recording.
    pub recorded: Recorded,
    /// Its files.
    pub paths: Vec<PathBuf>,
}

/// Reads the indexes of the files of a recording. A folder stands for all recordings in it.
///
/// # Errors
/// A file cannot be played, or they do not follow each other in time.
pub fn open(given: &[PathBuf]) -> Result<Opened, Failure> {
    let mut files = Vec::new();
    for path in given {
        match path.is_dir() {
            true => files.extend(recordings(path)?),
            false => files.push(path.clone()),
        }
    }
    let opened: Result<Vec<_>, Failure> = files
        .into_iter()
        .map(|path| Ok((open_file(&path)?, path)))
        .collect();
    let mut opened = opened?;
    opened.sort_by_key(|(recorded, _)| recorded.span().first_ns);
    let (all, paths): (Vec<_>, Vec<_>) = opened.into_iter().unzip();
    let recorded = Recorded::join(all).map_err(|(number, error)| {
        let shown = |number: usize| paths[number].display();
        Failure {
            text: format!(
                "cannot play {} after {}: {error}",
                shown(number),
                shown(number - 1)
            ),
            hint: Some(
                "play one recording at a time: one file, or the files of one `amber record \
                 --max-size`"
                    .into(),
            ),
        }
    })?;
    Ok(Opened { recorded, paths })
}

/// The recordings in a folder.
fn recordings(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |text: String| Failure { text, hint: None };
    let shown = folder.display();
    let entries = folder
        .read_dir()
        .map_err(|error| failed(format!("cannot read {shown}: {error}")))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let found: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "mcap"))
        .collect();
    match found.is_empty() {
        true => Err(failed(format!("no recordings in {shown}"))),
        false => Ok(found),
    }
}

fn open_file(path: &Path) -> Result<Recorded, Failure> {
    let shown = path.display();
    let failed = |error: PlayError| Failure {
        text: format!("cannot play {shown}: {error}"),
        hint: match error {
            PlayError::Unfinished => Some(format!(
                "`amber recover {shown}` writes a copy that can be played"
            )),
            _ => None,
        },
    };
    let file = File::open(path).map_err(|error| failed(error.into()))?;
    Recorded::open(file).map_err(failed)
}

/// The devices to serve: all that were recorded, or these.
///
/// # Errors
/// The recording does not have one of them, has none at all, or too many.
pub fn devices(recorded: &Recorded, wanted: &[Device]) -> Result<BTreeSet<Device>, Failure> {
    let known = recorded.devices();
    let list = |devices: &BTreeSet<Device>| {
        let names: Vec<_> = devices.iter().map(ToString::to_string).collect();
        names.join(", ")
    };
    if let Some(missing) = wanted.iter().find(|device| !known.contains(device)) {
        return Err(Failure {
            text: format!("the recording has no {missing}"),
            hint: Some(format!("it has {}", list(&known))),
        });
    }
    let devices = match wanted {
        [] => known,
        _ => wanted.iter().copied().collect(),
    };
    match devices.len() {
        0 => Err(Failure {
            text: "the recording has no devices".into(),
            hint: None,
        }),
        count if count > limits::DEVICES => Err(Failure {
            text: format!(
                "the recording has {count} devices; at most {} can be played",
                limits::DEVICES
            ),
            hint: Some("select some with --devices".into()),
        }),
        _ => Ok(devices),
    }
}

impl Options {
    /// The start time, in nanoseconds since 1970.
    ///
    /// # Errors
    /// It is after the end.
    pub fn start_ns(&self, span: &Span) -> Result<u64, Failure> {
        let from = self.from.unwrap_or_default();
        if from > span.length() {
            return Err(Failure {
                text: format!("--from {} s is after the end", from.as_secs_f64()),
                hint: Some(format!(
                    "the recording has {:.1} s",
                    span.length().as_secs_f64()
                )),
            });
        }
        let from_ns = u64::try_from(from.as_nanos()).unwrap_or(u64::MAX);
        Ok(span.first_ns.saturating_add(from_ns))
    }

    /// The same options as words of a command line.
    pub fn words(&self) -> Vec<String> {
        let files = self.files.iter();
        let mut words: Vec<_> = files.map(|it| it.to_string_lossy().into_owned()).collect();
        words.extend(["--rate".to_owned(), self.rate.to_string()]);
        words.extend(self.repeat.then(|| "--loop".to_owned()));
        let from = self
            .from
            .map(|from| ["--from".to_owned(), from.as_secs_f64().to_string()]);
        words.extend(from.into_iter().flatten());
        words.extend(self.paused.then(|| "--paused".to_owned()));
        words
    }
}

impl DriverOptions {
    /// Serves on stdin and stdout until stdin ends.
    pub fn run(self) -> ExitCode {
        amber_driver::claim_stdout();
        amber_driver::init_logging();
        match self.prepared() {
            Ok(devices) => amber_driver::serve_many(devices),
            Err(failure) => {
                tracing::error!("{}", failure.text);
                if let Some(hint) = &failure.hint {
                    tracing::error!("hint: {hint}");
                }
                ExitCode::from(2)
            }
        }
    }

    fn prepared(self) -> Result<Devices, Failure> {
        let wanted = amber_driver::named_devices();
        let Self { options, control } = self;
        served(&options, &wanted, control)
    }
}

/// The drivers of the recorded devices. The player begins when all have started.
pub(crate) fn served(
    options: &Options,
    wanted: &[Device],
    control: Option<PathBuf>,
) -> Result<Devices, Failure> {
    let Opened { recorded, paths } = open(&options.files)?;
    let recorded = Arc::new(recorded);
    let devices = devices(&recorded, wanted)?;
    let failed = |error: amber_record::Error| Failure {
        text: format!("cannot play {}: {error}", paths[0].display()),
        hint: None,
    };
    let files = || {
        let opened: io::Result<Vec<_>> = paths.iter().map(File::open).collect();
        opened.map_err(|error| failed(error.into()))
    };
    let player = Player::new(recorded.clone(), files()?, &devices, options.repeat);
    let mut player = player.map_err(failed)?;
    let span = player.clock().span();
    let (start_ns, now) = (options.start_ns(&span)?, now());
    player.jump(now, start_ns).map_err(failed)?;
    player.set_rate(now, options.rate);
    let answers = Answers::new(recorded.clone(), files()?);
    let paused = options.paused;
    let begin = Box::new(move |shared| {
        tokio::spawn(run(shared, control, paused));
    });
    let shared = Arc::new(Shared::new(player, answers, devices.len(), begin));
    let mut served = Devices::new();
    for device in devices {
        let device_type = device.device_type;
        let built_in = amber_reflect::built_in().iter();
        let is_known = built_in
            .map(|it| it.device_type)
            .any(|known| known == device_type.0);
        let description = recorded.description(device_type).filter(|_| !is_known);
        let schemas = description
            .as_ref()
            .and_then(|set| Schemas::from_descriptors(set).ok());
        let schemas = schemas.unwrap_or_else(Schemas::built_in);
        // It lives as long as the process: once per device.
        let description = description.map(|set| &*set.leak());
        let playback = Playback::new(device, schemas, description, shared.clone());
        served = served.add(device, playback);
    }
    Ok(served)
}

/// Plays until the process ends.
async fn run(shared: Arc<Shared>, control: Option<PathBuf>, paused: bool) {
    let (reports, written) = mpsc::channel(limits::REPORTS);
    if let Some(socket) = control {
        tokio::spawn(controlled(shared.clone(), socket, written));
    }
    if !paused {
        let resumed = lock(&shared.player).resume(now());
        report_problem(&reports, resumed);
    }
    let mut next_report = Instant::now();
    let mut batch = 0;
    loop {
        let (played, due) = {
            let mut player = lock(&shared.player);
            let played = player.poll(now());
            (played, player.due(now()))
        };
        if Instant::now() >= next_report {
            next_report = Instant::now() + limits::REPORT;
            report(&reports, Report::Status(status(&shared)));
        }
        match played {
            Ok(Some((time_ns, played))) => {
                shared.carry_out(time_ns, played, &reports).await;
                batch += 1;
                if batch == limits::BATCH {
                    batch = 0;
                    yield_now().await;
                }
                continue;
            }
            Ok(None) => {}
            Err(error) => report_problem(&reports, Err(error)),
        }
        batch = 0;
        let due = due.map(Instant::from_std);
        let wake = due.map_or(next_report, |due| due.min(next_report));
        tokio::select! {
            () = sleep_until(wake) => {}
            () = shared.changed.notified() => next_report = Instant::now(),
        }
    }
}

impl Shared {
    async fn carry_out(&self, time_ns: u64, played: Played, reports: &mpsc::Sender<Report>) {
        match played {
            Played::Published {
                device,
                clients,
                message,
            } => self.publish(device, time_ns, &clients, &message).await,
            Played::Event(event) => report(reports, Report::Event(timed(time_ns, &event))),
            Played::Gap(gap) => {
                let gap = gap.into();
                tracing::info!("{}", crate::line::gap(&gap));
                report(reports, Report::Gap(gap));
            }
            Played::Damaged(what, gap) => {
                let gap = gap.into();
                tracing::warn!("{}", crate::line::damaged(&what, &gap));
                report(reports, Report::Damaged(what, gap));
            }
            Played::Again => report(reports, Report::Again),
            Played::End => {
                report(reports, Report::Status(status(self)));
                report(reports, Report::End);
            }
        }
    }

    /// Sends a published message to the subscribers.
    async fn publish(&self, device: Device, time_ns: u64, clients: &[i32], message: &[u8]) {
        let Some(link) = lock(&self.links).get(&device).cloned() else {
            return;
        };
        let origins: Option<Vec<_>> = lock(&self.streams).get_mut(&device).and_then(|streams| {
            if !streams.has(message) {
                return None;
            }
            Some(match streams.follows(time_ns, clients) {
                true => streams.due(time_ns),
                false => Vec::new(),
            })
        });
        let is_empty = origins.as_ref().is_none_or(Vec::is_empty);
        if is_empty && link.subscriptions() == 0 {
            return;
        }
        let Ok(message) = Message::decode(message) else {
            return count(&self.counts.not_sent);
        };
        let until = Instant::now() + limits::FULL;
        let sent = match origins {
            None => sent(until, || link.publish(message.clone())).await,
            Some(origins) => {
                let mut all = Ok(());
                for origin in origins {
                    let sent = sent(until, || link.publish_to(&origin, message.clone())).await;
                    all = all.and(sent);
                }
                all
            }
        };
        match sent {
            Ok(()) => count(&self.counts.published),
            Err(error) => {
                count(&self.counts.not_sent);
                tracing::debug!(%device, "a message was not sent: {error}");
            }
        }
    }
}

/// An event with its time, which the feed stores separately.
fn timed(time_ns: u64, event: &[u8]) -> Vec<u8> {
    let Ok(mut event) = Event::decode(event) else {
        return event.to_vec();
    };
    event.time_ms.get_or_insert(time_ns / 1_000_000);
    event.encode_to_vec()
}

/// Sends a message as soon as there is room.
async fn sent(until: Instant, send: impl Fn() -> Result<(), SendError>) -> Result<(), SendError> {
    loop {
        match send() {
            Err(SendError::Full) if Instant::now() < until => yield_now().await,
            sent => return sent,
        }
    }
}

fn status(shared: &Shared) -> Status {
    let player = lock(&shared.player);
    let (clock, counts) = (player.clock(), &shared.counts);
    let time_ns = clock.position_ns(now());
    Status {
        time_ns,
        position_s: clock.span().offset(time_ns).as_secs_f64(),
        length_s: clock.span().length().as_secs_f64(),
        rate: clock.rate(),
        paused: clock.is_paused(),
        published: counts.published.load(Ordering::Relaxed),
        answered: counts.answered.load(Ordering::Relaxed),
        refused: counts.refused.load(Ordering::Relaxed),
        not_sent: counts.not_sent.load(Ordering::Relaxed),
    }
}

/// A report that does not fit is left out: the next status follows soon, and the log has the rest.
fn report(reports: &mpsc::Sender<Report>, report: Report) {
    let _ = reports.try_send(report);
}

fn report_problem(reports: &mpsc::Sender<Report>, result: Result<(), amber_record::Error>) {
    if let Err(error) = result {
        tracing::error!("cannot continue: {error}");
        report(reports, Report::Problem(error.to_string()));
    }
}

/// Exchanges commands and reports with a terminal.
async fn controlled(shared: Arc<Shared>, socket: PathBuf, mut reports: mpsc::Receiver<Report>) {
    let stream = match UnixStream::connect(&socket).await {
        Ok(stream) => stream,
        Err(error) => {
            let socket = socket.display();
            return tracing::error!("cannot connect to the terminal at {socket}: {error}");
        }
    };
    let (reader, mut writer) = stream.into_split();
    let write = async {
        while let Some(report) = reports.recv().await {
            writer.write_all(line(&report).as_bytes()).await?;
        }
        io::Result::Ok(())
    };
    let ended = tokio::select! {
        ended = write => ended,
        ended = obey(&shared, reader) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!("the terminal is gone: {error}");
    }
}

async fn obey(shared: &Shared, reader: OwnedReadHalf) -> io::Result<()> {
    let mut reader = BufReader::new(reader);
    let mut text = String::new();
    while (&mut reader)
        .take(limits::LINE_BYTES)
        .read_line(&mut text)
        .await?
        > 0
    {
        let command = serde_json::from_str(&text);
        text.clear();
        match command {
            Ok(command) => carry_out(shared, command),
            Err(error) => tracing::warn!("not a command: {error}"),
        }
    }
    Ok(())
}

fn carry_out(shared: &Shared, command: Command) {
    let now = now();
    let mut player = lock(&shared.player);
    let done = match command {
        Command::Toggle if player.clock().is_paused() => player.resume(now),
        Command::Toggle => {
            player.pause(now);
            Ok(())
        }
        Command::Step => {
            player.step(now);
            Ok(())
        }
        Command::JumpMs(by_ms) => player.jump_by(now, by_ms),
        Command::Faster(factor) => {
            let rate = player.clock().rate() * factor;
            player.set_rate(now, rate);
            Ok(())
        }
    };
    drop(player);
    if let Err(error) = done {
        tracing::error!("cannot continue: {error}");
    }
    shared.changed.notify_one();
}
