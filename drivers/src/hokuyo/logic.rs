//! Decides what to do with the scanner, and when. PURE.
//!
//! Report each event to [`ScannerLogic`], drain [`ScannerLogic::poll_output`] after every change, and carry out
//! each output. Call [`ScannerLogic::handle_timeout`] at [`ScannerLogic::wake_at`].
//!
//! ```text
//!  Absent --opened--> Waking --silence--> Setting --all answered--> Ready
//!    ^                  |                    |                        |
//!    +------------------+---- no answer -----+------------------------+
//! ```
//!
//! In `Ready`, each request gets its own scan (`GD`). While a client is subscribed, the scanner
//! sends continuously (`MD`), and requests get the next of those scans. Requests to a scanner
//! without `GD` also use `MD`. After some time without requests and subscribers the laser is turned
//! off (`QT`).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_driver::Origin;
use amber_proto::hokuyo::{Scan, Scanner};

pub use self::note::Note;
pub use self::settings::{Angles, Settings};
use super::description::{self, Description};
use super::scip::{Geometry, Parser, REFUSED_BY_SCIP_1, Reply};
use crate::outage::Outage;

mod note;
mod phases;
mod settings;

/// Time limit for the first scan after the laser was turned on.
const SPIN_UP: Duration = Duration::from_secs(2);

/// How long bytes may arrive without a single valid scan.
const USELESS: Duration = Duration::from_secs(5);

/// How long a client is assumed to wait for a scan.
const PATIENCE: Duration = Duration::from_secs(3);

/// Maximum number of requests that wait for a scan.
const MAX_ASKERS: usize = 256;

/// How often a request is sent before the scanner counts as disconnected.
const MAX_TRIES: u8 = 3;

/// How long the scanner may keep sending before it must be silent.
const MAX_WAKING: Duration = Duration::from_secs(3);

/// Stops a scanner whatever it is doing.
const CALM_DOWN: &str = "QT\nRS\nQT\n";

/// An action for the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open the connection, then call [`ScannerLogic::opened`] or [`ScannerLogic::failed`].
    Open,
    /// Close the connection.
    Close,
    /// Send this to the scanner.
    Write(String),
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
    /// When it was read, in milliseconds since 1970.
    pub timestamp_ms: i64,
}

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Scans read.
    pub scans: u64,
    /// Replies that match no request.
    pub strays: u64,
    /// Requests for a scan that got no reply.
    pub unanswered: u64,
}

/// The state of the scanner, its requests and its subscribers.
#[derive(Debug)]
pub struct ScannerLogic {
    settings: Settings,
    phase: Phase,
    parser: Parser,
    /// The request that the scanner has not answered yet.
    asked: Option<Asked>,
    /// When the scanner last sent something, or should have started to.
    heard: Instant,
    last_scan: Instant,
    is_lit: bool,
    /// The first scan after the laser went on takes longer.
    spins_up: bool,
    streams: bool,
    /// The scanner supports `GD`, or this is not known yet.
    has_gd: bool,
    listeners: usize,
    askers: VecDeque<(Origin, Instant)>,
    wanted: Instant,
    geometry: Geometry,
    angles: Vec<f64>,
    description: Description,
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
    /// The parser's count of invalid replies at the last check.
    spoilt: u64,
}

impl ScannerLogic {
    /// Starts without a connection.
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
            description: Description::default(),
            outage: Outage::default(),
            outputs: VecDeque::new(),
            counters: Counters::default(),
        };
        logic.proceed(now);
        logic
    }

    /// A client requests a scan.
    ///
    /// The reply holds a scan read after this call. Without a scanner there is no reply, and the
    /// client's request times out.
    pub fn ask(&mut self, now: Instant, origin: Origin) {
        self.forget_askers(now);
        if self.askers.len() == MAX_ASKERS {
            self.askers.pop_front();
            self.counters.unanswered += 1;
        }
        self.askers.push_back((origin, now));
        self.proceed(now);
    }

    /// Sets the number of subscribers.
    pub fn handle_listeners(&mut self, now: Instant, listeners: usize) {
        if self.listeners != listeners {
            self.wanted = now;
            self.listeners = listeners;
            self.proceed(now);
        }
    }

    /// The connection is open.
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

    /// The connection cannot be opened, or has failed.
    pub fn failed(&mut self, now: Instant, reason: &str) {
        self.give_up(now, reason.to_owned());
    }

    /// Bytes from the scanner; `timestamp_ms` is the time since 1970.
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
                    "the device never stops sending, so it is not a SCIP scanner".into(),
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

    /// Handles expired timers.
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

    /// Shuts down: turns the laser off, then returns [`Output::End`].
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

    /// The next action for the caller.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`ScannerLogic::handle_timeout`] if nothing happens earlier.
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

    /// Event counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The reason why there are no scans, if there is a problem.
    pub fn trouble(&self) -> Option<&str> {
        self.outage.trouble()
    }

    /// What the scanner can measure.
    ///
    /// # Errors
    /// No scanner is connected: the reason.
    pub fn scanner(&self) -> Result<Scanner, &str> {
        match self.is_ready() {
            true => Ok(self.description.message(self.geometry, &self.angles)),
            false => Err(self.trouble().unwrap_or("the scanner is still starting")),
        }
    }

    /// Whether scans are available.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }
}

/// Replies.
impl ScannerLogic {
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
            // The scanner turned the laser off by itself.
            ("GD", "10") if asked.tries < MAX_TRIES => self.is_lit = false,
            ("GD", "0C" | "0D" | "0E" | "0F") if self.has_gd => {
                self.has_gd = false;
                self.outputs.push_back(Output::Say(Note::NoSingleScans));
            }
            ("PP", "00") => match Geometry::of(&reply) {
                Some(geometry) => {
                    self.geometry = geometry;
                    self.description.read_parameters(&reply);
                }
                None => self.give_up(now, "the scanner does not report its geometry".into()),
            },
            ("VV", "00") => self.description.read_version(&reply),
            // The motor may turn more slowly than usual.
            ("II", "00") => {
                self.geometry.rpm = description::rpm(&reply).unwrap_or(self.geometry.rpm);
            }
            // Optional requests: not every scanner supports them.
            ("HS" | "CR" | "II", _) => {}
            (request, status) => {
                self.give_up(now, format!("the scanner answers {request} with {status}"));
            }
        }
    }

    fn is_of_stream(&self, reply: &Reply) -> bool {
        // The last two digits count the remaining scans.
        let request = self.geometry.continuous(self.skipped());
        reply.echo.len() == request.len() && reply.echo[..13] == request[..13]
    }

    fn handle_scan(&mut self, now: Instant, timestamp_ms: i64, reply: &Reply) {
        match &*reply.status {
            "00" | "99" => {}
            // It restarts after a pause.
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
        // The scanner counts to the left, but angles grow to the right.
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
