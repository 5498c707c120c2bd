//! The clients to whom promises were made. IO.
//!
//! Each has a thread of its own, and works until it is told to stop. Then it waits
//! for what it has asked for, and says what became of all of it.

pub mod echo;
pub mod sdk;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::anyhow;

use crate::ledger::Ledger;

/// What a client may expect of the driver that it uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Nobody does the driver any harm, and it depends on nobody: each request is
    /// answered, once, and rightly.
    Everything,
    /// Trouble is made for the driver, or its device may be silent: requests may
    /// stay without an answer, but no answer is wrong or comes twice.
    NothingWrong,
}

/// What became of the requests of one client.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which client.
    pub name: String,
    /// What it was promised.
    pub promise: Promise,
    /// How many were answered, and how many lost.
    pub ledger: Ledger,
    /// What was wrong, the first few.
    pub wrong: Vec<String>,
}

impl Outcome {
    fn new(name: String, promise: Promise) -> Self {
        Self {
            name,
            promise,
            ledger: Ledger::default(),
            wrong: Vec::new(),
        }
    }

    /// What clients were promised and did not get. So many requests may be lost:
    /// the system has dropped them before the mediator saw them.
    pub fn broken(outcomes: &[Self], excused: u64) -> Vec<String> {
        let mut broken = Vec::new();
        let mut lost = 0;
        for outcome in outcomes {
            let name = &outcome.name;
            broken.extend(outcome.wrong.iter().map(|wrong| format!("{name}: {wrong}")));
            if outcome.ledger.answered == 0 {
                broken.push(format!("{name} never got an answer"));
            }
            if outcome.promise == Promise::Everything {
                lost += outcome.ledger.lost;
            }
        }
        if lost > excused {
            broken.push(format!("clients of healthy drivers have lost {lost}"));
        }
        broken
    }

    fn wrong(&mut self, what: String) {
        // One mistake often has many effects.
        if self.wrong.len() < 5 {
            self.wrong.push(what);
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, ledger) = (&self.name, self.ledger);
        let promise = match self.promise {
            Promise::Everything => "all are answered",
            Promise::NothingWrong => "some may be lost",
        };
        let (sent, lost) = (ledger.sent, ledger.lost);
        write!(f, "{name} ({promise}): {sent} requests, {lost} lost")
    }
}

/// A client at work.
pub struct Worker {
    name: String,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<anyhow::Result<Outcome>>,
}

impl Worker {
    fn start(
        name: &str,
        promise: Promise,
        work: impl FnOnce(&AtomicBool, &mut Outcome) -> anyhow::Result<()> + Send + 'static,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut outcome = Outcome::new(name.to_owned(), promise);
        let told = stop.clone();
        let thread = thread::spawn(move || {
            work(&told, &mut outcome)?;
            Ok(outcome)
        });
        Self {
            name: name.to_owned(),
            stop,
            thread,
        }
    }

    /// Tells it to stop asking.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits until it has all that it will get.
    ///
    /// # Errors
    /// It could not do its work.
    pub fn outcome(self) -> anyhow::Result<Outcome> {
        self.stop();
        let name = self.name;
        let outcome = self.thread.join();
        outcome.map_err(|_| anyhow!("{name} panicked"))?
    }
}

fn is_told(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}

/// How often something is done; what is late is not made up for.
struct Pace {
    pause: Duration,
    next: Instant,
}

impl Pace {
    fn per_second(rate: f64) -> Self {
        Self {
            pause: Duration::from_secs_f64(1.0 / rate),
            next: Instant::now(),
        }
    }

    /// How long to wait until the next is due.
    fn wait(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    fn done(&mut self) {
        self.next = Instant::now().max(self.next + self.pause);
    }
}
