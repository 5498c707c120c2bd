//! Decides what to do with the scanner, and when. PURE.
//!
//! See [`Model`] for how to use it.
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
use std::mem;
use std::time::{Duration, Instant};

use amber_proto::hokuyo::{Scan, Scanner};

pub use self::settings::{Angles, Settings};
use super::description::{self, Description};
use super::scip::{Geometry, Parser, REFUSED_BY_SCIP_1, Reply};
use crate::scanner::{Measured, Model, Note, Output, Service};

mod phases;
mod settings;

/// Time limit for the first scan after the laser was turned on.
const SPIN_UP: Duration = Duration::from_secs(2);

/// How long bytes may arrive without a single valid scan.
const USELESS: Duration = Duration::from_secs(5);

/// How often a request is sent before the scanner counts as disconnected.
const MAX_TRIES: u8 = 3;

/// Asks for the name of the scanner, which also answers it between scans.
const PROBE: &str = "VV";

/// How long the scanner may keep sending before it must be silent.
const MAX_WAKING: Duration = Duration::from_secs(3);

/// For the log.
const NO_SINGLE_SCANS: &str =
    "the scanner does not support single scans (GD); using continuous scans (MD)";

/// Stops a scanner whatever it is doing.
const CALM_DOWN: &str = "QT\nRS\nQT\n";

/// The state of the scanner.
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
    /// The stream has stopped, and the scanner was asked for a sign of life.
    is_probed: bool,
    /// The scanner supports `GD`, or this is not known yet.
    has_gd: bool,
    geometry: Geometry,
    angles: Vec<f64>,
    description: Description,
    service: Service,
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

impl Model for ScannerLogic {
    type Settings = Settings;

    fn new(settings: Settings, now: Instant) -> Self {
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
            is_probed: false,
            has_gd: true,
            geometry: Geometry::URG_04LX,
            angles: Vec::new(),
            description: Description::default(),
            // The scanner itself leaves out scans.
            service: Service::new(Duration::ZERO, now),
        };
        logic.proceed(now);
        logic
    }

    fn service(&self) -> &Service {
        &self.service
    }

    fn service_mut(&mut self) -> &mut Service {
        &mut self.service
    }

    fn handle_demand(&mut self, now: Instant) {
        self.proceed(now);
    }

    fn opened(&mut self, now: Instant) {
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
        self.service.push(Output::Write(CALM_DOWN.into()));
    }

    fn failed(&mut self, now: Instant, reason: &str) {
        self.give_up(now, reason.to_owned());
    }

    fn handle_bytes(&mut self, now: Instant, timestamp_ms: i64, bytes: &[u8]) {
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

    fn handle_timeout(&mut self, now: Instant) {
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
                self.service
                    .push(Output::Write(format!("SCIP2.0\n{CALM_DOWN}").into()));
            }
            Phase::Waking { .. } => self.give_up(now, "the scanner does not answer".into()),
            Phase::Stopping { .. } => self.phase = Phase::Ended,
            Phase::Setting { .. } | Phase::Ready => {
                if self.silent_at().is_some_and(|due| now >= due) {
                    self.break_silence(now);
                }
            }
        }
        self.proceed(now);
    }

    fn shut_down(&mut self, now: Instant) {
        self.asked = None;
        self.phase = match self.phase {
            Phase::Absent { .. } | Phase::Opening | Phase::Ended => Phase::Ended,
            _ => {
                self.service.push(Output::Write(CALM_DOWN.into()));
                Phase::Stopping {
                    until: now + self.settings.timeout,
                }
            }
        };
        self.proceed(now);
    }

    fn wake_at(&self) -> Option<Instant> {
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

    fn scanner(&self) -> Result<Scanner, &str> {
        match self.is_ready() {
            true => Ok(self.description.message(self.geometry, &self.angles)),
            false => Err(self.trouble().unwrap_or("the scanner is still starting")),
        }
    }
}

impl ScannerLogic {
    /// Whether scans are available.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    fn handle_reply(&mut self, now: Instant, timestamp_ms: i64, reply: Reply) {
        if self.streams && self.is_of_stream(&reply) {
            return self.handle_scan(now, timestamp_ms, &reply);
        }
        let Some(asked) = self.asked.take_if(|asked| asked.request == reply.echo) else {
            self.service.counters.strays += 1;
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
                self.service.say(Note::Property(NO_SINGLE_SCANS));
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
            self.service.counters.strays += 1;
            return;
        };
        self.service.counters.scans += 1;
        self.last_scan = now;
        self.spins_up = false;
        // The stream goes on. Whether the scanner also answers in the middle of it does not matter.
        if mem::take(&mut self.is_probed) {
            self.asked.take_if(|asked| asked.request == PROBE);
        }
        // The scanner counts to the left, but angles grow to the right.
        distances.reverse();
        let mut scan = Scan {
            angles: self.angles.clone(),
            distances,
        };
        self.service.masked().mask_points(&mut scan);
        let measured = Measured { scan, timestamp_ms };
        self.service.answer(now, &measured);
        if self.streams {
            self.service.publish(now, measured);
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
