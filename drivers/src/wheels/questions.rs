//! Requests for the speeds, the stream to subscribers, and the measurement for both. PURE.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_driver::Origin;

use crate::outage::CLIENT_PATIENCE;

/// Maximum number of requests that wait for the speeds.
const MAX_ASKERS: usize = 256;

/// What a measurement was for.
#[derive(Debug, PartialEq)]
pub struct Measured {
    /// The requests that it answers.
    pub askers: Vec<Origin>,
    /// Its age, if it is for the subscribers, too.
    pub published: Option<Duration>,
}

/// When measurements for subscribers are due.
#[derive(Debug)]
struct Stream {
    period: Duration,
    due: Option<Instant>,
}

impl Stream {
    fn set_listened(&mut self, now: Instant, is_listened: bool) {
        match (is_listened, self.due) {
            (true, None) => self.due = Some(now),
            (false, Some(_)) => self.due = None,
            _ => {}
        }
    }

    /// Whether a measurement is due now. Measurements that were missed are skipped, and the phase is
    /// kept, so that small delays do not add up to a lower rate.
    fn take_due(&mut self, now: Instant) -> bool {
        let Some(due) = self.due.filter(|due| *due <= now) else {
            return false;
        };
        let missed = now.duration_since(due).as_nanos() / self.period.as_nanos().max(1);
        let turns = u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
        self.due = Some(due + self.period.saturating_mul(turns));
        true
    }
}

/// The waiting requests. All requests made before a measurement starts share it.
#[derive(Debug)]
pub struct Questions {
    stream: Stream,
    askers: VecDeque<(Origin, Instant)>,
    reading: Option<Reading>,
    unanswered: u64,
}

/// A measurement that has started.
#[derive(Debug)]
struct Reading {
    started: Instant,
    /// Whether it is also for the subscribers.
    is_published: bool,
    askers: Vec<Origin>,
}

impl Questions {
    /// Without requests and subscribers; `period` is that of measurements for subscribers.
    pub fn new(period: Duration) -> Self {
        Self {
            stream: Stream { period, due: None },
            askers: VecDeque::new(),
            reading: None,
            unanswered: 0,
        }
    }

    /// Adds a request.
    pub fn ask(&mut self, now: Instant, origin: Origin) {
        self.forget_askers(now);
        if self.askers.len() == MAX_ASKERS {
            self.askers.pop_front();
            self.unanswered += 1;
        }
        self.askers.push_back((origin, now));
    }

    /// Counts a request that will never get a reply.
    pub fn refuse(&mut self) {
        self.unanswered += 1;
    }

    /// Starts a measurement if a request is waiting or one for subscribers is due. Returns whether one
    /// has started, now or earlier.
    pub fn start(&mut self, now: Instant) -> bool {
        if self.reading.is_none() {
            self.forget_askers(now);
            let is_published = self.stream.take_due(now);
            if self.askers.is_empty() && !is_published {
                return false;
            }
            self.reading = Some(Reading {
                started: now,
                is_published,
                askers: self.askers.drain(..).map(|(origin, _)| origin).collect(),
            });
        }
        true
    }

    /// The measurement is complete. Returns what it was for.
    pub fn complete(&mut self, now: Instant) -> Option<Measured> {
        let reading = self.reading.take()?;
        // The time of the measurement is the middle.
        let age = now.saturating_duration_since(reading.started) / 2;
        Some(Measured {
            askers: reading.askers,
            published: reading.is_published.then_some(age),
        })
    }

    /// Whether there are subscribers.
    pub fn set_listened(&mut self, now: Instant, is_listened: bool) {
        self.stream.set_listened(now, is_listened);
    }

    /// When the next measurement for subscribers is due.
    pub fn due(&self) -> Option<Instant> {
        match self.reading {
            Some(_) => None,
            None => self.stream.due,
        }
    }

    /// The measurement failed: the requests that it was for get no reply.
    pub fn give_up_reading(&mut self) {
        if let Some(reading) = self.reading.take() {
            self.unanswered += reading.askers.len() as u64;
        }
    }

    /// Takes all waiting requests, for a reply without a measurement.
    pub fn take_all(&mut self) -> Vec<Origin> {
        let reading = self.reading.take().into_iter();
        let read_for = reading.flat_map(|reading| reading.askers);
        let waiting = self.askers.drain(..).map(|(origin, _)| origin);
        read_for.chain(waiting).collect()
    }

    /// The number of requests that never got a reply.
    pub fn unanswered(&self) -> u64 {
        self.unanswered
    }

    fn forget_askers(&mut self, now: Instant) {
        while let Some((_, since)) = self.askers.front() {
            if now.saturating_duration_since(*since) < CLIENT_PATIENCE {
                break;
            }
            self.askers.pop_front();
            self.unanswered += 1;
        }
    }
}
