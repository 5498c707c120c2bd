//! The log: lines to stderr that never block the data path. IO.
//!
//! Lines go through a bounded queue to a thread that writes them. If a terminal or disk is too
//! slow, lines are dropped and counted.
//!
//! This is our own code instead of the crate tracing-appender: the queue here is a dozen lines
//! over a channel of the standard library. The crate would not replace the rate limit, the
//! escaping, the journal's priorities or the flush before an abort; its guard prints to stdout
//! if the queue is full, and it brings nine dependencies.

mod filter;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fmt as std_fmt, panic, process, thread};

use amber_proto::printable;
use nix::sys::stat::fstat;
use tracing::{Event, Level, Subscriber, error};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{Format as Lines, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Registry, fmt, reload};

pub use self::filter::HINT;
use self::filter::parse;
use amber_core::limits::{LOG_LINES_PER_SECOND, LOG_QUEUE_LINES};
use amber_core::rate::{Rate, RateLimit};

/// How long the program waits for the last lines before it exits.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text for people.
    Text,
    /// One JSON object per line.
    Json,
    /// For the systemd journal, which adds the time itself and reads the priority from a number
    /// at the start of a line.
    Journal,
}

impl Format {
    /// The format that fits the destination of stderr.
    pub fn for_stderr() -> Self {
        let journal = env::var("JOURNAL_STREAM").ok();
        let is_journal = journal.is_some_and(|journal| {
            fstat(io::stderr())
                .is_ok_and(|stderr| journal == format!("{}:{}", stderr.st_dev, stderr.st_ino))
        });
        match is_journal {
            true => Self::Journal,
            false => Self::Text,
        }
    }
}

/// The log; the last lines are written when this is dropped.
pub struct Log {
    filter: reload::Handle<Targets, Registry>,
    queue: Queue,
}

#[derive(Clone)]
struct Queue {
    items: SyncSender<Item>,
    lost: Arc<AtomicU64>,
    pace: Arc<Mutex<Pace>>,
    escape: Escape,
}

/// How to escape lines, which may contain text of drivers and clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    /// All control characters.
    All,
    /// All except ESC, because colours need it; tracing escapes the ESC of others.
    AllButColours,
    /// JSON escapes them itself.
    Nothing,
}

impl Escape {
    fn apply(self, line: Vec<u8>) -> Vec<u8> {
        if self == Self::Nothing {
            return line;
        }
        let text = String::from_utf8_lossy(&line);
        let escaped = match self {
            Self::AllButColours if text.contains('\x1b') => {
                let parts: Vec<_> = text.split('\x1b').map(printable).collect();
                parts.join("\x1b").into()
            }
            _ => printable(&text),
        };
        match escaped {
            Cow::Borrowed(same) if same.len() == line.len() => line,
            escaped => escaped.into_owned().into_bytes(),
        }
    }
}

/// Limits the lines per second. Only threads that log wait for this lock.
struct Pace {
    rate: Rate,
    gate: RateLimit,
}

enum Item {
    Line(Vec<u8>),
    /// Reports when all lines before this were written.
    Flush(SyncSender<()>),
}

impl Log {
    /// Starts logging with a filter such as `info` or `info,amber_mediator=debug`. Call it once
    /// per process.
    ///
    /// # Errors
    /// The filter is invalid ([`HINT`] says what to write), or there is already a logger.
    pub fn start(filter: &str, format: Format) -> Result<Self, String> {
        let (filter, handle) = reload::Layer::new(parse(filter)?);
        let (items, received) = mpsc::sync_channel(LOG_QUEUE_LINES);
        thread::spawn(move || {
            for item in received {
                // If stderr is closed, the lines are lost.
                let _ = match item {
                    Item::Line(line) => io::stderr().lock().write_all(&line),
                    Item::Flush(done) => done.try_send(()).map_err(io::Error::other),
                };
            }
        });
        let no_colour = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = io::stderr().is_terminal() && !no_colour && format == Format::Text;
        let queue = Queue {
            escape: match format {
                Format::Json => Escape::Nothing,
                Format::Text | Format::Journal if colour => Escape::AllButColours,
                Format::Text | Format::Journal => Escape::All,
            },
            items,
            lost: Arc::default(),
            pace: Arc::new(Mutex::new(Pace {
                rate: Rate::per_second(LOG_LINES_PER_SECOND),
                gate: RateLimit::default(),
            })),
        };
        let registry = tracing_subscriber::registry().with(filter);
        let lines = fmt::layer()
            .with_ansi(colour)
            .with_target(false)
            .with_writer(queue.clone());
        match format {
            Format::Text => registry.with(lines).try_init(),
            Format::Json => registry.with(lines.json()).try_init(),
            Format::Journal => {
                let plain = Lines::default().without_time().with_target(false);
                let lines = lines.with_ansi(false).event_format(WithPriority(plain));
                registry.with(lines).try_init()
            }
        }
        .map_err(|error| error.to_string())?;
        Ok(Self {
            filter: handle,
            queue,
        })
    }

    /// From now on a panic on any thread ends the program with SIGABRT, after earlier lines
    /// were written. Half a mediator is worse than none, and its service manager starts a new
    /// one.
    pub fn abort_on_panic(&self) {
        let queue = self.queue.clone();
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            // Also if the log cannot be written.
            thread::spawn(|| {
                thread::sleep(2 * LAST_LINES);
                process::abort();
            });
            error!("this is a bug, please report it: {panic}");
            queue.flush();
            report(panic);
            process::abort();
        }));
    }

    /// A function that changes the log filter.
    pub fn level(&self) -> impl Fn(&str) -> Result<(), String> + use<> {
        let handle = self.filter.clone();
        move |filter| {
            handle
                .reload(parse(filter)?)
                .map_err(|error| error.to_string())
        }
    }

    /// A function that changes the maximum number of lines per second.
    pub fn rate(&self) -> impl Fn(u32) + use<> {
        let queue = self.queue.clone();
        move |per_second| queue.pace().rate = Rate::per_second(per_second)
    }

    /// A function that returns the number of lost lines.
    pub fn lost(&self) -> impl Fn() -> u64 + use<> {
        let lost = self.queue.lost.clone();
        move || lost.load(Ordering::Relaxed)
    }
}

impl Drop for Log {
    /// Writes the remaining lines, unless that takes too long.
    fn drop(&mut self) {
        self.queue.flush();
    }
}

impl Queue {
    /// Waits until all lines are written, but not too long.
    fn flush(&self) {
        let (done, written) = mpsc::sync_channel(1);
        if self.items.try_send(Item::Flush(done)).is_ok() {
            let _ = written.recv_timeout(LAST_LINES);
        }
    }
}

/// Puts the priority before each line; see sd-daemon(3).
struct WithPriority(Lines<Full, ()>);

impl<S, N> FormatEvent<S, N> for WithPriority
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> std_fmt::Result {
        write!(line, "<{}>", priority(*event.metadata().level()))?;
        self.0.format_event(context, line, event)
    }
}

fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

/// A log line that is being formatted.
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
        let line = self.queue.escape.apply(std::mem::take(&mut self.bytes));
        let line = Item::Line(line);
        let full = |queue: &Queue| {
            let sent = queue.items.try_send(line);
            matches!(sent, Err(TrySendError::Full(_)))
        };
        if !self.queue.pace().passes(Instant::now()) || full(self.queue) {
            self.queue.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn foreign_control_characters_are_escaped_in_log_lines() {
        for (escape, line, written) in [
            (Escape::All, "a\0b\rc\x1b[2J\n", "a\\x00b\\rc\\x1b[2J\n"),
            (
                Escape::AllButColours,
                "\x1b[32mINFO\x1b[0m a\0b\r\n",
                "\x1b[32mINFO\x1b[0m a\\x00b\\r\n",
            ),
            (Escape::Nothing, "{}\n", "{}\n"),
        ] {
            let line = escape.apply(line.as_bytes().to_vec());
            assert_eq!(String::from_utf8(line).unwrap(), written);
        }
    }

    const IN_A_PROCESS_OF_ITS_OWN: &str = "AMBER_TEST_PANIC";

    #[test]
    fn a_panic_in_any_thread_is_logged_and_ends_the_program() {
        if env::var_os(IN_A_PROCESS_OF_ITS_OWN).is_some() {
            return panic_in_a_thread();
        }
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture"])
            .arg("log::tests::a_panic_in_any_thread_is_logged_and_ends_the_program")
            .env(IN_A_PROCESS_OF_ITS_OWN, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(6), "SIGABRT: {text}");
        let before = text.find("the line before");
        let report = text.find("this is a bug, please report it: panicked at");
        assert!(before.is_some() && before < report, "{text}");
        assert!(text.contains("the last straw"), "{text}");
    }

    /// Without the hook, only that thread would end.
    fn panic_in_a_thread() {
        let log = Log::start("info", Format::Text).unwrap();
        log.abort_on_panic();
        tracing::info!("the line before");
        let thread = thread::spawn(|| panic!("the last straw"));
        let _ = thread.join();
    }
}
