//! The thread that writes what a feed says, to files or to a ring in memory. IO.

mod files;
mod rings;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use amber_foxglove::Converter;
use amber_proto::feed::Record;
use amber_record::{Error, Recording};
use amber_reflect::Schemas;
use amber_terminal::Failure;
use tokio::sync::watch;

use self::files::Files;
use self::rings::Rings;
use super::intake::{Intake, Taken};
use super::names::Names;
use super::output::Output;
use super::progress::Progress;
use super::report::{Outcome, Written};
use super::snapshot::Asked;
use crate::recordings::cannot_write;

/// What to write, and where.
pub(super) struct Plan {
    pub(super) content: Content,
    pub(super) names: Names,
    pub(super) target: Target,
    pub(super) force: bool,
}

/// What each file has.
#[derive(Clone)]
pub(super) struct Content {
    pub(super) schemas: Arc<Schemas>,
    pub(super) compress: bool,
    /// Makes messages for Foxglove and Lichtblick.
    pub(super) viewers: Option<Converter>,
}

/// Where a feed goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    /// To files of this size.
    Files { max_bytes: Option<u64> },
    /// To memory, until a snapshot is wanted.
    Ring { span: Duration, max_bytes: u64 },
}

/// The thread that writes.
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: JoinHandle<Result<Outcome, Failure>>,
    running: watch::Receiver<bool>,
}

/// What the thread tells while it runs.
#[derive(Default)]
struct Shared {
    progress: Mutex<Progress>,
    snapshots: Mutex<Vec<Result<Written, Failure>>>,
}

enum Sink {
    Files(Box<Files>),
    Rings(Box<Rings>),
}

impl Writer {
    /// Creates the first file, and starts the thread.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(super) fn start(plan: Plan, intake: Arc<Intake>) -> Result<Self, Failure> {
        let shared = Arc::new(Shared::default());
        let sink = match plan.target {
            Target::Files { max_bytes } => Sink::Files(Box::new(Files::new(plan, max_bytes)?)),
            Target::Ring { span, max_bytes } => {
                Sink::Rings(Box::new(Rings::new(plan, span, max_bytes, shared.clone())))
            }
        };
        shared.set(sink.progress());
        let (state, running) = watch::channel(false);
        let thread = thread::spawn({
            let shared = shared.clone();
            move || {
                let done = write(sink, &intake, &shared, || {
                    let _ = state.send(true);
                });
                intake.close();
                // It ends `running`.
                drop(state);
                done
            }
        });
        Ok(Self {
            shared,
            thread,
            running,
        })
    }

    /// Waits for the first record, or for the end of the thread.
    pub(super) async fn begun(&mut self) {
        let _ = self.running.wait_for(|begun| *begun).await;
    }

    /// Waits for the end of the thread. It may be called again.
    pub(super) async fn ended(&mut self) {
        while self.running.changed().await.is_ok() {}
    }

    /// How far it is.
    pub(super) fn progress(&self) -> Progress {
        let progress = self.shared.progress.lock();
        progress.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The snapshots since the last call.
    pub(super) fn snapshots(&self) -> Vec<Result<Written, Failure>> {
        let snapshots = self.shared.snapshots.lock();
        std::mem::take(&mut *snapshots.unwrap_or_else(PoisonError::into_inner))
    }

    /// What was recorded, after the end.
    ///
    /// # Errors
    /// A file could not be written.
    pub(super) fn outcome(self) -> Result<Outcome, Failure> {
        match self.thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Shared {
    fn set(&self, progress: Progress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    fn add_snapshot(&self, snapshot: Result<Written, Failure>) {
        let snapshots = self.snapshots.lock();
        snapshots
            .unwrap_or_else(PoisonError::into_inner)
            .push(snapshot);
    }
}

fn write(
    mut sink: Sink,
    intake: &Intake,
    shared: &Shared,
    begun: impl FnOnce(),
) -> Result<Outcome, Failure> {
    let (mut bytes, mut asked) = (Vec::new(), VecDeque::new());
    let mut begun = Some(begun);
    loop {
        let taken = intake.take(&mut bytes, &mut asked, sink.patience());
        let mut used = 0;
        while let Some((record, length)) = parse(&bytes[used..])? {
            sink.add(&record, &bytes[used..used + length])?;
            used += length;
        }
        if let Some(begun) = begun.take_if(|_| used > 0) {
            begun();
        }
        match used == bytes.len() {
            true => {
                bytes.clear();
                // What a slow disk needed is not kept for a quick one. What is needed each time is.
                if bytes.capacity() > super::limits::KEPT_BYTES {
                    bytes.shrink_to(super::limits::READ_BYTES);
                }
            }
            false => drop(bytes.drain(..used)),
        }
        for asked in asked.drain(..) {
            sink.ask(asked);
        }
        if taken == Taken::Last {
            let outcome = sink.finish()?;
            return Ok(outcome);
        }
        sink.tend()?;
        shared.set(sink.progress());
    }
}

fn parse(bytes: &[u8]) -> Result<Option<(Record<'_>, usize)>, Failure> {
    Record::parse(bytes).map_err(|error| {
        Failure::new(format!(
            "the mediator sent something else than a feed: {error}"
        ))
        .hint("run a recorder and a mediator of the same version")
    })
}

impl Sink {
    fn add(&mut self, record: &Record<'_>, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Files(files) => files.add(record),
            Self::Rings(rings) => {
                rings.add(record, bytes);
                Ok(())
            }
        }
    }

    fn ask(&mut self, asked: Asked) {
        match self {
            Self::Files(_) => asked.refuse(Failure::new("this recorder keeps no snapshot")),
            Self::Rings(rings) => rings.ask(asked),
        }
    }

    /// What is due.
    fn tend(&mut self) -> Result<(), Failure> {
        match self {
            Self::Files(files) => files.flush_if_due(),
            Self::Rings(rings) => {
                rings.write_if_due();
                Ok(())
            }
        }
    }

    /// How long nothing is due.
    fn patience(&self) -> Duration {
        match self {
            Self::Files(files) => files.patience(),
            Self::Rings(rings) => rings.patience(),
        }
    }

    fn progress(&self) -> Progress {
        match self {
            Self::Files(files) => files.progress(),
            Self::Rings(rings) => rings.progress(),
        }
    }

    fn finish(self) -> Result<Outcome, Failure> {
        match self {
            Self::Files(files) => files.finish(),
            Self::Rings(rings) => Ok(rings.finish()),
        }
    }
}

/// Begins a file.
fn begin(output: Output, content: Content) -> Result<Recording<Output>, Failure> {
    let path = output.path().to_owned();
    let begun = match content.compress {
        true => Recording::compressed(output, content.schemas),
        false => Recording::new(output, content.schemas),
    };
    let begun = begun.and_then(|mut recording| {
        if let Some(converter) = content.viewers {
            recording.accompany(Box::new(converter))?;
        }
        Ok(recording)
    });
    // Even a recorder that is killed at once leaves a file that can be read.
    let begun = begun.and_then(|mut recording| recording.flush().map(|()| recording));
    begun.map_err(|error| failed(&path, error))
}

/// A file cannot be written.
fn failed(path: &Path, error: Error) -> Failure {
    match error {
        Error::Io(error) => cannot_write(path, &error),
        other => Failure::new(format!("cannot write {}: {other}", path.display())),
    }
}
