//! The clients to which promises apply. IO.
//!
//! Each runs in its own thread until it is stopped. Then it waits for its outstanding replies, and
//! reports the outcome of all requests.

pub mod echo;
pub mod sdk;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::anyhow;

use crate::ledger::Ledger;

/// What a client may expect from its driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// The driver is healthy and independent: each request is answered once and correctly.
    Everything,
    /// Faults affect the driver, or its device may be silent: requests may stay unanswered, but no
    /// reply is wrong or duplicated.
    NothingWrong,
}

/// The outcome of the requests of one client.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The name of the client.
    pub name: String,
    /// The promise to it.
    pub promise: Promise,
    /// The numbers of answered and lost requests.
    pub ledger: Ledger,
    /// The first few errors.
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

    /// The broken promises. This number of requests may be lost, because the system dropped them
    /// before they reached the mediator.
    pub fn broken(outcomes: &[Self], excused: u64) -> Vec<String> {
        let mut broken = Vec::new();
        let mut lost = 0;
        for outcome in outcomes {
            let name = &outcome.name;
            broken.extend(outcome.wrong.iter().map(|wrong| format!("{name}: {wrong}")));
            if outcome.ledger.answered == 0 {
                broken.push(format!("{name} never got a reply"));
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
        // One error often has many effects.
        if self.wrong.len() < 5 {
            self.wrong.push(what);
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, ledger) = (&self.name, self.ledger);
        let promise = match self.promise {
            Promise::Everything => "all requests are answered",
            Promise::NothingWrong => "some requests may be lost",
        };
        let (sent, lost) = (ledger.sent, ledger.lost);
        write!(f, "{name} ({promise}): {sent} requests, {lost} lost")
    }
}

/// A running client.
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

    /// Stops further requests.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for the outcome.
    ///
    /// # Errors
    /// The client failed.
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

/// The rate of an action; missed actions are skipped.
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

    /// The time until the next action is due.
    fn wait(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    fn done(&mut self) {
        self.next = Instant::now().max(self.next + self.pause);
    }
}
