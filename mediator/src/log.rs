//! The log: to stderr, never in the way of the data path. IO.
//!
//! Lines go through a bounded queue to a thread that writes them. When nobody
//! reads them in time they are dropped and counted, instead of everything
//! waiting for a slow terminal or disk.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, thread};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use crate::limits::{LOG_LINES_PER_SECOND, LOG_QUEUE_LINES};
use crate::rate::{Gate, Rate};

/// How long the end of the program waits for the last lines to be written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

/// The log, while this lives.
pub struct Log {
    filter: reload::Handle<EnvFilter, Registry>,
    queue: Queue,
    finished: Receiver<()>,
}

#[derive(Clone)]
struct Queue {
    items: SyncSender<Item>,
    lost: Arc<AtomicU64>,
    pace: Arc<Mutex<Pace>>,
}

/// How many lines may be written in a second. Only those who log wait for it.
struct Pace {
    rate: Rate,
    gate: Gate,
}

enum Item {
    Line(Vec<u8>),
    End,
}

impl Log {
    /// Starts logging what `filter` says, such as `info` or
    /// `amber_mediator=debug`. Once in the life of a program.
    ///
    /// # Errors
    /// The filter cannot be read, or something logs already.
    pub fn start(filter: &str, format: Format) -> Result<Self, String> {
        let (filter, handle) = reload::Layer::new(parse(filter)?);
        let (items, received) = mpsc::sync_channel(LOG_QUEUE_LINES);
        let (finish, finished) = mpsc::channel();
        thread::spawn(move || {
            while let Ok(Item::Line(line)) = received.recv() {
                // There is nobody to tell when stderr is gone.
                let _ = io::stderr().lock().write_all(&line);
            }
            let _ = finish.send(());
        });
        let queue = Queue {
            items,
            lost: Arc::default(),
            pace: Arc::new(Mutex::new(Pace {
                rate: Rate::per_second(LOG_LINES_PER_SECOND),
                gate: Gate::default(),
            })),
        };
        let no_colour = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = io::stderr().is_terminal() && !no_colour;
        let registry = tracing_subscriber::registry().with(filter);
        let lines = fmt::layer()
            .with_ansi(colour)
            .with_target(false)
            .with_writer(queue.clone());
        match format {
            Format::Text => registry.with(lines).try_init(),
            Format::Json => registry.with(lines.json()).try_init(),
        }
        .map_err(|error| error.to_string())?;
        Ok(Self {
            filter: handle,
            queue,
            finished,
        })
    }

    /// Changes what is logged, from another owner.
    pub fn level(&self) -> impl Fn(&str) -> Result<(), String> + use<> {
        let handle = self.filter.clone();
        move |filter| {
            handle
                .reload(parse(filter)?)
                .map_err(|error| error.to_string())
        }
    }

    /// Changes how many lines are written in a second, from another owner.
    pub fn rate(&self) -> impl Fn(u32) + use<> {
        let queue = self.queue.clone();
        move |per_second| queue.pace().rate = Rate::per_second(per_second)
    }

    /// How many lines were lost, from another owner.
    pub fn lost(&self) -> impl Fn() -> u64 + use<> {
        let lost = self.queue.lost.clone();
        move || lost.load(Ordering::Relaxed)
    }
}

impl Drop for Log {
    /// Writes what is left, unless nobody reads it.
    fn drop(&mut self) {
        if self.queue.items.try_send(Item::End).is_ok() {
            let _ = self.finished.recv_timeout(LAST_LINES);
        }
    }
}

fn parse(filter: &str) -> Result<EnvFilter, String> {
    // A bare word that is no level would be a module, and silence all others.
    let bare = filter.split(',').map(str::trim).find(|part| {
        !part.contains('=') && !part.contains('[') && part.parse::<LevelFilter>().is_err()
    });
    if let Some(word) = bare {
        return Err(format!("'{word}' is no log level"));
    }
    EnvFilter::builder()
        .parse(filter)
        .map_err(|error| error.to_string())
}

/// One line of the log on its way.
struct Line<'a> {
    bytes: Vec<u8>,
    queue: &'a Queue,
}

impl Queue {
    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pace {
    fn passes(&mut self, now: Instant) -> bool {
        self.gate.pass(now, self.rate)
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line {
            bytes: Vec::new(),
            queue: self,
        }
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        let line = Item::Line(std::mem::take(&mut self.bytes));
        let full = |queue: &Queue| {
            let sent = queue.items.try_send(line);
            matches!(sent, Err(TrySendError::Full(_)))
        };
        if !self.queue.pace().passes(Instant::now()) || full(self.queue) {
            self.queue.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}
