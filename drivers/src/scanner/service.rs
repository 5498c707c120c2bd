//! Who wants scans, and whether the scanner works: what the logic of every model keeps. PURE.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_driver::Origin;
use amber_proto::hokuyo::Scan;

use super::Note;
use super::filter::mark_lonely;
use super::layout::Layout;
use super::sectors::Sectors;
use super::turns::Turn;
use crate::outage::{CLIENT_PATIENCE, Outage};

/// Maximum number of requests that wait for a scan.
const MAX_ASKERS: usize = 256;

/// A scan may be published earlier than due by this part of the interval: turns differ in length.
const EARLY: u32 = 5;

/// An action for the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open the connection, then call `opened` or `failed`.
    Open,
    /// Close the connection.
    Close,
    /// Send this to the scanner.
    Write(Vec<u8>),
    /// The reply to a request.
    Answer(Origin, Measured),
    /// A message for all subscribers.
    Publish(Measured),
    /// A log message.
    Say(Note),
    /// Nothing is left to do.
    End,
}

/// A scan and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Degrees and millimetres.
    pub scan: Scan,
    /// When it was complete or was read, in milliseconds since 1970.
    pub timestamp_ms: i64,
}

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Complete scans.
    pub scans: u64,
    /// Data of the scanner that could not be used.
    pub strays: u64,
    /// Requests for a scan that got no reply.
    pub unanswered: u64,
}

/// The requests, the subscribers, the outage, and the actions that the caller has not taken yet.
#[derive(Debug)]
pub struct Service {
    /// What the scanner and its clients did.
    pub counters: Counters,
    publish: Duration,
    publish_at: Option<Instant>,
    listeners: usize,
    askers: VecDeque<(Origin, Instant)>,
    wanted: Instant,
    /// What the robot device masks.
    masked: Sectors,
    outage: Outage,
    outputs: VecDeque<Output>,
}

impl Service {
    /// Without clients. `publish` is the minimum interval between two published scans.
    pub fn new(publish: Duration, now: Instant) -> Self {
        Self {
            counters: Counters::default(),
            publish,
            publish_at: None,
            listeners: 0,
            askers: VecDeque::new(),
            wanted: now,
            masked: Sectors::default(),
            outage: Outage::default(),
            outputs: VecDeque::new(),
        }
    }

    /// Adds a request.
    pub fn ask(&mut self, now: Instant, origin: Origin) {
        self.forget_askers(now);
        if self.askers.len() == MAX_ASKERS {
            self.askers.pop_front();
            self.counters.unanswered += 1;
        }
        self.askers.push_back((origin, now));
    }

    /// Sets the number of subscribers. Returns whether it has changed.
    pub fn set_listeners(&mut self, now: Instant, listeners: usize) -> bool {
        let changes = self.listeners != listeners;
        if changes {
            self.wanted = now;
            self.listeners = listeners;
        }
        changes
    }

    /// Sets the sectors in which nothing is known, from the next scan on.
    pub fn set_masked(&mut self, masked: Sectors) {
        self.masked = masked;
    }

    /// These sectors: a model that makes its scans itself masks them.
    pub fn masked(&self) -> &Sectors {
        &self.masked
    }

    /// Whether a request waits.
    pub fn has_askers(&self) -> bool {
        !self.askers.is_empty()
    }

    /// Whether a client is subscribed.
    pub fn has_listeners(&self) -> bool {
        self.listeners > 0
    }

    /// When a scan was last wanted.
    pub fn wanted(&self) -> Instant {
        self.wanted
    }

    /// Drops requests whose clients no longer wait.
    pub fn forget_askers(&mut self, now: Instant) {
        while let Some((_, since)) = self.askers.front() {
            if now.saturating_duration_since(*since) < CLIENT_PATIENCE {
                break;
            }
            self.askers.pop_front();
            self.counters.unanswered += 1;
        }
    }

    /// Answers all requests with a scan.
    pub fn answer(&mut self, now: Instant, measured: &Measured) {
        self.forget_askers(now);
        if self.has_askers() {
            self.wanted = now;
        }
        for (origin, _) in self.askers.drain(..) {
            (self.outputs).push_back(Output::Answer(origin, measured.clone()));
        }
    }

    /// Publishes a scan, unless nobody is subscribed or the last one is too recent.
    pub fn publish(&mut self, now: Instant, measured: Measured) {
        if !self.has_listeners() {
            return;
        }
        let due = self.publish_at.unwrap_or(now);
        if now + self.publish / EARLY < due {
            return;
        }
        // Counted from when it was due, so that small differences do not add up.
        let next = due + self.publish;
        self.publish_at = Some(if next < now { now + self.publish } else { next });
        self.outputs.push_back(Output::Publish(measured));
    }

    /// Makes a scan of a turn, answers all requests with it, and publishes it. The turn ended at
    /// `timestamp_ms` since 1970. `filters` says that lonely points are invalid.
    pub fn give(
        &mut self,
        now: Instant,
        timestamp_ms: i64,
        mut turn: Turn,
        layout: &Layout,
        filters: bool,
    ) {
        self.counters.scans += 1;
        if filters {
            mark_lonely(&mut turn.samples);
        }
        self.masked.mask_samples(&mut turn.samples);
        let measured = Measured {
            scan: layout.scan(&turn.samples),
            timestamp_ms,
        };
        self.answer(now, &measured);
        self.publish(now, measured);
    }

    /// The scanner works.
    pub fn works(&mut self, now: Instant, name: impl FnOnce() -> String) {
        self.wanted = now;
        let note = match self.outage.over(now) {
            Some(after) => Note::Back(after),
            None => Note::Ready(name()),
        };
        self.say(note);
    }

    /// The scanner does not work: closes the connection. Logs the problem unless it was already
    /// logged. Requests get no reply. Returns when to try again.
    pub fn fails(&mut self, now: Instant, trouble: String) -> Instant {
        if self.outage.complain(now, &trouble) {
            self.say(Note::Trouble(trouble));
        }
        self.counters.unanswered += self.askers.len() as u64;
        self.askers.clear();
        self.push(Output::Close);
        self.outage.try_again_at(now)
    }

    /// Logs a message.
    pub fn say(&mut self, note: Note) {
        self.push(Output::Say(note));
    }

    /// Adds an action for the caller.
    pub fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// The next action for the caller.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The reason why there are no scans, if there is a problem.
    pub fn trouble(&self) -> Option<&str> {
        self.outage.trouble()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of the scans of a scanner with this turn are published within two seconds.
    fn published(publish_ms: u64, turn_ms: f64) -> usize {
        let begin = Instant::now();
        let mut service = Service::new(Duration::from_millis(publish_ms), begin);
        service.set_listeners(begin, 1);
        let mut count = 0;
        for turn in 1.. {
            let after = Duration::from_secs_f64(turn_ms / 1000.0) * turn;
            if after > Duration::from_secs(2) {
                break;
            }
            let measured = Measured {
                scan: Scan::default(),
                timestamp_ms: 0,
            };
            service.publish(begin + after, measured);
            count += usize::from(service.poll_output().is_some());
        }
        count
    }

    #[test]
    fn scans_are_published_at_most_once_per_interval() {
        assert_eq!(published(0, 25.0), 80);
        assert_eq!(published(100, 25.0), 20);
        // A turn that is a little shorter than the interval: not every second one is left out.
        assert_eq!(published(100, 99.0), 20);
        assert_eq!(published(100, 200.0), 10);
    }

    #[test]
    fn requests_are_limited_in_number_and_time() {
        let begin = Instant::now();
        let mut service = Service::new(Duration::ZERO, begin);
        for _ in 0..MAX_ASKERS + 5 {
            service.ask(begin, Origin::default());
        }
        assert_eq!(service.counters.unanswered, 5);
        service.forget_askers(begin + CLIENT_PATIENCE);
        assert!(!service.has_askers());
        assert_eq!(service.counters.unanswered, MAX_ASKERS as u64 + 5);
    }
}
