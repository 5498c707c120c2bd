//! What to do with the scanner, and when. PURE.
//!
//! Tell [`Logic`] what happens, then drain [`Logic::poll_output`] after every
//! change and carry out what comes; call [`Logic::handle_timeout`] at
//! [`Logic::wake_at`].
//!
//! ```text
//!  Absent --opened--> Waking --silence--> Setting --all answered--> Ready
//!    ^                  |                    |                        |
//!    +------------------+---- no answer -----+------------------------+
//! ```
//!
//! In `Ready`, each request gets a scan of its own (`GD`). While a client is
//! subscribed, the scanner sends by itself (`MD`), and requests get the next
//! scan of those; so do all requests if the scanner has no `GD`. After some
//! time without requests and subscribers the laser goes off (`QT`).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_driver::Origin;
use amber_proto::hokuyo::Scan;

pub use self::note::Note;
pub use self::settings::{Angles, Settings};
use super::scip::{Geometry, Parser, REFUSED_BY_SCIP_1, Reply};
use crate::outage::Outage;

mod note;
mod phases;
mod settings;

/// How long the scanner may need for its first scan after the laser went on.
const SPIN_UP: Duration = Duration::from_secs(2);

/// How long bytes may come without a single good scan among them.
const USELESS: Duration = Duration::from_secs(5);

/// How long somebody who asks for a scan is taken to be waiting.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many may wait for a scan.
const MAX_ASKERS: usize = 256;

/// How often something is asked before the scanner counts as gone.
const MAX_TRIES: u8 = 3;

/// How long the scanner may talk before it must be silent.
const MAX_WAKING: Duration = Duration::from_secs(3);

/// What brings a scanner back from whatever it is doing.
const CALM_DOWN: &str = "QT\nRS\nQT\n";

/// Something to be done outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open the way to the scanner, then call [`Logic::opened`] or
    /// [`Logic::failed`].
    Open,
    /// Close it.
    Close,
    /// Send this to the scanner.
    Write(String),
    /// The answer to somebody who has asked.
    Answer(Origin, Measured),
    /// What all subscribers get.
    Publish(Measured),
    /// A line for the log.
    Say(Note),
    /// There is nothing more to do.
    End,
}

/// A scan and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Degrees and millimetres.
    pub scan: Scan,
    /// When it was read, in milliseconds since 1970.
    pub timestamp_ms: i64,
}

/// How often what has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Scans that were read.
    pub scans: u64,
    /// Replies that nobody waited for.
    pub strays: u64,
    /// Questions for a scan that nobody could answer.
    pub unanswered: u64,
}

/// The scanner, and who wants what of it.
#[derive(Debug)]
pub struct Logic {
    settings: Settings,
    phase: Phase,
    parser: Parser,
    /// What the scanner has been asked and not answered yet.
    asked: Option<Asked>,
    /// When the scanner was last heard, or should have begun to speak.
    heard: Instant,
    last_scan: Instant,
    is_lit: bool,
    /// The first scan after the laser went on takes longer.
    spins_up: bool,
    streams: bool,
    /// The scanner knows `GD`, or has not been asked yet.
    has_gd: bool,
    listeners: usize,
    askers: VecDeque<(Origin, Instant)>,
    wanted: Instant,
    geometry: Geometry,
    angles: Vec<f64>,
    name: String,
    outage: Outage,
    outputs: VecDeque<Output>,
    counters: Counters,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Absent {
        until: Instant,
    },
    Opening,
    Waking {
        since: Instant,
        is_old: bool,
        answered: bool,
    },
    Setting {
        left: VecDeque<String>,
    },
    Ready,
    Stopping {
        until: Instant,
    },
    Ended,
}

#[derive(Clone, Debug)]
struct Asked {
    request: String,
    tries: u8,
    /// How many replies were spoilt before.
    spoilt: u64,
}

impl Logic {
    /// Begins with no way to the scanner.
    pub fn new(settings: Settings, now: Instant) -> Self {
        let mut logic = Self {
            settings,
            phase: Phase::Absent { until: now },
            parser: Parser::default(),
            asked: None,
            heard: now,
            last_scan: now,
            is_lit: false,
            spins_up: false,
            streams: false,
            has_gd: true,
            listeners: 0,
            askers: VecDeque::new(),
            wanted: now,
            geometry: Geometry::URG_04LX,
            angles: Vec::new(),
            name: String::new(),
            outage: Outage::default(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
        };
        logic.proceed(now);
        logic
    }

    /// Somebody wants a scan.
    ///
    /// Only what is read after this is an answer. When there is no scanner
    /// there is none, and whoever asks finds out by waiting.
    pub fn ask(&mut self, now: Instant, origin: Origin) {
        self.forget_askers(now);
        if self.askers.len() == MAX_ASKERS {
            self.askers.pop_front();
            self.counters.unanswered += 1;
        }
        self.askers.push_back((origin, now));
        self.proceed(now);
    }

    /// So many are subscribed.
    pub fn handle_listeners(&mut self, now: Instant, listeners: usize) {
        if self.listeners != listeners {
            self.wanted = now;
            self.listeners = listeners;
            self.proceed(now);
        }
    }

    /// The way to the scanner is open.
    pub fn opened(&mut self, now: Instant) {
        self.parser.clear();
        self.asked = None;
        self.is_lit = false;
        self.streams = false;
        self.heard = now;
        self.phase = Phase::Waking {
            since: now,
            is_old: false,
            answered: false,
        };
        self.outputs.push_back(Output::Write(CALM_DOWN.into()));
    }

    /// It cannot be opened, or has failed.
    pub fn failed(&mut self, now: Instant, reason: &str) {
        self.give_up(now, reason.to_owned());
    }

    /// The scanner has said something; `timestamp_ms` is the time since 1970.
    pub fn handle_bytes(&mut self, now: Instant, timestamp_ms: i64, bytes: &[u8]) {
        self.heard = now;
        self.parser.push(bytes);
        if let Phase::Waking {
            since,
            is_old,
            answered,
        } = &mut self.phase
        {
            while let Some(reply) = self.parser.poll() {
                match &*reply.status {
                    REFUSED_BY_SCIP_1 => *is_old = true,
                    _ => *answered |= matches!(&*reply.echo, "QT" | "RS" | "SCIP2.0"),
                }
            }
            let talks_on = now.saturating_duration_since(*since) > MAX_WAKING;
            if talks_on {
                self.give_up(
                    now,
                    "the device talks without end, as no scanner does".into(),
                );
            }
            return;
        }
        while let Some(reply) = self.parser.poll() {
            self.handle_reply(now, timestamp_ms, reply);
        }
        self.retry_spoilt(now);
        self.proceed(now);
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.wake_at().is_none_or(|due| now < due) {
            return;
        }
        match self.phase.clone() {
            Phase::Absent { .. } | Phase::Opening | Phase::Ended => {}
            Phase::Waking { answered: true, .. } => self.begin_setting(now),
            Phase::Waking { is_old: true, .. } => {
                self.phase = Phase::Waking {
                    since: now,
                    is_old: false,
                    answered: false,
                };
                self.heard = now;
                self.parser.clear();
                (self.outputs).push_back(Output::Write(format!("SCIP2.0\n{CALM_DOWN}")));
            }
            Phase::Waking { .. } => self.give_up(now, "the scanner does not answer".into()),
            Phase::Stopping { .. } => self.phase = Phase::Ended,
            Phase::Setting { .. } | Phase::Ready => {
                if self.silent_at().is_some_and(|due| now >= due) {
                    self.ask_again(now);
                }
            }
        }
        self.proceed(now);
    }

    /// The end: the laser goes off, and then there is [`Output::End`].
    pub fn shut_down(&mut self, now: Instant) {
        self.asked = None;
        self.phase = match self.phase {
            Phase::Absent { .. } | Phase::Opening | Phase::Ended => Phase::Ended,
            _ => {
                self.outputs.push_back(Output::Write(CALM_DOWN.into()));
                Phase::Stopping {
                    until: now + self.settings.timeout,
                }
            }
        };
        self.proceed(now);
    }

    /// What is to be done outside.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Logic::handle_timeout`] is to be called, if nothing happens before.
    pub fn wake_at(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Absent { until } | Phase::Stopping { until } => Some(*until),
            Phase::Opening | Phase::Ended => None,
            Phase::Waking { .. } => Some(self.heard + self.settings.timeout),
            Phase::Setting { .. } => self.silent_at(),
            Phase::Ready => [self.silent_at(), self.dark_at()]
                .into_iter()
                .flatten()
                .min(),
        }
    }

    /// How often what has happened.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Why there are no scans, if something is wrong.
    pub fn trouble(&self) -> Option<&str> {
        self.outage.trouble()
    }

    /// Whether scans can be had.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }
}

/// Replies.
impl Logic {
    fn handle_reply(&mut self, now: Instant, timestamp_ms: i64, reply: Reply) {
        if self.streams && self.is_of_stream(&reply) {
            return self.handle_scan(now, timestamp_ms, &reply);
        }
        let Some(asked) = self.asked.take_if(|asked| asked.request == reply.echo) else {
            self.counters.strays += 1;
            return;
        };
        match (&asked.request[..2], &*reply.status) {
            ("BM", "00" | "02") => self.light(true),
            ("QT", "00") => {
                self.streams = false;
                self.light(false);
            }
            ("MD", "00") => {
                self.streams = true;
                self.last_scan = now;
                self.light(true);
            }
            ("GD", "00") => self.handle_scan(now, timestamp_ms, &reply),
            // The scanner has turned the laser off by itself.
            ("GD", "10") if asked.tries < MAX_TRIES => self.is_lit = false,
            ("GD", "0C" | "0D" | "0E" | "0F") if self.has_gd => {
                self.has_gd = false;
                self.outputs.push_back(Output::Say(Note::NoSingleScans));
            }
            ("PP", "00") => match Geometry::of(&reply) {
                Some(geometry) => self.geometry = geometry,
                None => self.give_up(now, "the scanner does not say how it sees".into()),
            },
            ("VV", "00") => {
                let value = |key| reply.value(key).unwrap_or("?");
                self.name = format!("{}, firmware {}", value("PROD"), value("FIRM"));
            }
            // Not every scanner can do this, nor needs to be told.
            ("HS" | "CR" | "II", _) => {}
            (request, status) => {
                self.give_up(now, format!("the scanner answers {request} with {status}"));
            }
        }
    }

    fn is_of_stream(&self, reply: &Reply) -> bool {
        // The last two digits count the scans that are left.
        let request = self.geometry.continuous(self.skipped());
        reply.echo.len() == request.len() && reply.echo[..13] == request[..13]
    }

    fn handle_scan(&mut self, now: Instant, timestamp_ms: i64, reply: &Reply) {
        match &*reply.status {
            "00" | "99" => {}
            // It begins again after a pause.
            "98" => return,
            status => {
                return self.give_up(now, format!("the scanner stops scanning with {status}"));
            }
        }
        let Some((_, mut distances)) = reply.scan(self.geometry.points()) else {
            self.counters.strays += 1;
            return;
        };
        self.counters.scans += 1;
        self.last_scan = now;
        self.spins_up = false;
        // The scanner counts to the left, angles grow to the right.
        distances.reverse();
        let measured = Measured {
            scan: Scan {
                angles: self.angles.clone(),
                distances,
            },
            timestamp_ms,
        };
        self.forget_askers(now);
        if !self.askers.is_empty() {
            self.wanted = now;
        }
        for (origin, _) in self.askers.drain(..) {
            (self.outputs).push_back(Output::Answer(origin, measured.clone()));
        }
        if self.streams && self.listeners > 0 {
            self.outputs.push_back(Output::Publish(measured));
        }
    }

    fn retry_spoilt(&mut self, now: Instant) {
        let spoilt = self.parser.spoilt();
        let is_spoilt = |asked: &mut Asked| asked.spoilt != spoilt && !self.streams;
        if self.asked.as_mut().is_some_and(is_spoilt) {
            self.ask_again(now);
        }
    }
}

#[cfg(test)]
mod tests;
