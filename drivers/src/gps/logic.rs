//! Decides what to do with the receiver, and what clients are told. PURE.
//!
//! ```text
//!  Absent --opened--> Listening
//!    ^                    |
//!    +--------------------+  silence, or nothing that says where the robot is
//! ```
//!
//! The receiver sends by itself, and the driver sends nothing.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_proto::gps::Fix;
use amber_proto::gps::fix::Kind;

pub use self::note::Note;
use super::epoch::{Epoch, Joiner, Useless, in_words};
use super::nmea::{Antenna, Parser, Sentence};
use crate::outage::Outage;

mod note;

/// An epoch is complete when nothing has arrived for so long.
const QUIET: Duration = Duration::from_millis(50);
/// How long bytes may arrive without a sentence.
const GARBLED: Duration = Duration::from_secs(3);
/// How long sentences may arrive that say nothing: some may be damaged.
const USELESS: Duration = Duration::from_secs(10);
/// A tunnel of this length is no problem.
const COVERED: Duration = Duration::from_secs(5);

const NOTHING_YET: &str = "the receiver has told nothing yet";
const NOTHING_NEW: &str = "what the receiver told last is too old: its sentences are damaged";
const SILENT: &str = "the receiver sends nothing: check its supply, and the wire from its TX";
const NO_SENTENCES: &str = "what arrives is not NMEA 0183: check --baud, --port and the wires, and whether \
                            the receiver sends another protocol";
const NO_POSITIONS: &str = "the receiver sends neither RMC nor GGA, or they are damaged: check its settings \
                            and the wires";
const COVERED_SKY: &str =
    "no position: the antenna must see the sky; the first position takes a minute";
const OPEN_ANTENNA: &str = "no position, and the receiver finds no antenna: check its plug, and that it sees \
                            the sky";
const SHORT_ANTENNA: &str =
    "no position: the receiver reports a short circuit in the cable of its antenna";

/// Settings of the driver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The standard deviation of a position with a dilution of 1.
    pub error_m: f64,
    /// The longest silence, and the age at which a position is none.
    pub timeout: Duration,
}

/// An action for the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open the connection, then call [`GpsLogic::opened`] or [`GpsLogic::failed`].
    Open,
    /// Close the connection.
    Close,
    /// What the receiver says now.
    Publish(Fix),
    /// A log message.
    Say(Note),
    /// Nothing is left to do.
    End,
}

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Published.
    pub fixes: u64,
    /// Epochs with RMC or GGA only, from a receiver that sends both.
    pub incomplete: u64,
    /// Epochs in which RMC and GGA differ.
    pub contradictory: u64,
}

/// The state of the receiver.
#[derive(Debug)]
pub struct GpsLogic {
    settings: Settings,
    phase: Phase,
    parser: Parser,
    joiner: Joiner,
    /// The receiver sends RMC and GGA, so both must agree: their sums do not notice all errors.
    has_pairs: bool,
    /// When bytes, a sentence, and a useful epoch last arrived, or the first one was due.
    heard: Instant,
    read: Instant,
    told: Instant,
    fix: Option<(Instant, Fix)>,
    antenna: Option<Antenna>,
    /// Since when there is no position.
    lost_since: Option<Instant>,
    /// The reason, if that lasts.
    lost: Option<&'static str>,
    has_old_date: bool,
    outage: Outage,
    outputs: VecDeque<Output>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent { until: Instant },
    Opening,
    Listening,
    Ended,
}

impl GpsLogic {
    /// Starts without a connection.
    pub fn new(settings: Settings, now: Instant) -> Self {
        Self {
            settings,
            phase: Phase::Opening,
            parser: Parser::default(),
            joiner: Joiner::default(),
            has_pairs: false,
            heard: now,
            read: now,
            told: now,
            fix: None,
            antenna: None,
            lost_since: None,
            lost: None,
            has_old_date: false,
            outage: Outage::default(),
            outputs: VecDeque::from([Output::Open]),
            counters: Counters::default(),
        }
    }

    /// What the receiver told last.
    ///
    /// # Errors
    /// It tells nothing: the reason.
    pub fn fix(&self, now: Instant) -> Result<Fix, &str> {
        let Some((at, fix)) = self.fix else {
            return Err(self.outage.trouble().unwrap_or(NOTHING_YET));
        };
        let age = now.saturating_duration_since(at);
        if age > self.settings.timeout {
            return Err(NOTHING_NEW);
        }
        let age = u32::try_from(age.as_millis()).ok();
        Ok(Fix { age, ..fix })
    }

    /// The connection is open.
    pub fn opened(&mut self, now: Instant) {
        self.parser.clear();
        self.joiner = Joiner::default();
        self.antenna = None;
        (self.heard, self.read, self.told) = (now, now, now);
        self.phase = Phase::Listening;
    }

    /// The connection is closed or could not be opened.
    pub fn failed(&mut self, now: Instant, problem: &str) {
        self.has_pairs = false;
        self.give_up(now, problem);
    }

    /// Bytes from the receiver.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        if self.phase != Phase::Listening {
            return;
        }
        self.heard = now;
        self.parser.push(bytes);
        while let Some(sentence) = self.parser.poll() {
            self.read = now;
            if let Sentence::Antenna(antenna) = sentence {
                self.antenna = Some(antenna);
            }
            if let Some(epoch) = self.joiner.push(&sentence) {
                self.handle_epoch(now, &epoch);
            }
        }
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.phase {
            Phase::Absent { until } if now >= until => {
                self.phase = Phase::Opening;
                self.outputs.push_back(Output::Open);
            }
            Phase::Listening => {
                if now >= self.heard + QUIET
                    && let Some(epoch) = self.joiner.end()
                {
                    self.handle_epoch(now, &epoch);
                }
                if now >= self.heard + self.settings.timeout {
                    // Another one may be connected.
                    self.has_pairs = false;
                    self.give_up(now, SILENT);
                } else if now >= self.read + GARBLED.max(self.settings.timeout) {
                    self.give_up(now, NO_SENTENCES);
                } else if now >= self.told + USELESS.max(self.settings.timeout) {
                    self.give_up(now, NO_POSITIONS);
                }
            }
            Phase::Absent { .. } | Phase::Opening | Phase::Ended => {}
        }
    }

    /// Shuts down. Nothing has to be brought to rest, so [`Output::End`] follows at once.
    pub fn shut_down(&mut self) {
        self.phase = Phase::Ended;
        self.outputs.push_back(Output::End);
    }

    /// The next action for the caller.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`GpsLogic::handle_timeout`] if nothing happens earlier.
    pub fn wake_at(&self) -> Option<Instant> {
        let timeout = self.settings.timeout;
        match self.phase {
            Phase::Absent { until } => Some(until),
            Phase::Listening => {
                let silence = if self.joiner.is_new() { QUIET } else { timeout };
                let read = self.read + GARBLED.max(timeout);
                let told = self.told + USELESS.max(timeout);
                Some((self.heard + silence).min(read).min(told))
            }
            Phase::Opening | Phase::Ended => None,
        }
    }

    /// The reason why there is no position, if there is a problem.
    pub fn trouble(&self) -> Option<&str> {
        self.outage.trouble().or(self.lost)
    }

    /// Event counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The number of sentences that were dropped.
    pub fn broken(&self) -> u64 {
        self.parser.broken()
    }

    fn handle_epoch(&mut self, now: Instant, epoch: &Epoch) {
        let fix = match epoch.fix(self.settings.error_m) {
            Ok(fix) => fix,
            Err(Useless::Contradiction) => {
                self.counters.contradictory += 1;
                return;
            }
            Err(Useless::Empty) => return,
        };
        if self.has_pairs && !epoch.is_pair() {
            self.counters.incomplete += 1;
            return;
        }
        self.has_pairs = epoch.is_pair();
        self.told = now;
        if self.fix.is_none() {
            let note = self.outage.over(now).map_or(Note::Ready, Note::Back);
            self.say(note);
        }
        if let Some(year) = epoch.old_year().filter(|_| !self.has_old_date) {
            self.has_old_date = true;
            self.say(Note::OldDate(year));
        }
        self.follow(now, &fix);
        self.counters.fixes += 1;
        self.fix = Some((now, fix));
        self.outputs.push_back(Output::Publish(fix));
    }

    /// Notices that the position is lost, or there again.
    fn follow(&mut self, now: Instant, fix: &Fix) {
        let before = self.fix.map(|(_, fix)| fix.kind());
        if fix.kind() != Kind::None {
            (self.lost_since, self.lost) = (None, None);
            if before.is_none_or(|kind| kind == Kind::None) {
                self.say(Note::Position(in_words(fix)));
            }
            return;
        }
        let since = *self.lost_since.get_or_insert(now);
        if now.saturating_duration_since(since) < COVERED {
            return;
        }
        let why = match self.antenna {
            Some(Antenna::Open) => OPEN_ANTENNA,
            Some(Antenna::Short) => SHORT_ANTENNA,
            Some(Antenna::Well) | None => COVERED_SKY,
        };
        if self.lost != Some(why) {
            self.lost = Some(why);
            self.say(Note::Lost(why));
        }
    }

    fn say(&mut self, note: Note) {
        self.outputs.push_back(Output::Say(note));
    }

    /// Starts over. Logs the problem unless it was already logged.
    fn give_up(&mut self, now: Instant, trouble: &str) {
        if self.phase == Phase::Ended {
            return;
        }
        if self.outage.complain(now, trouble) {
            self.say(Note::Trouble(trouble.to_owned()));
        }
        self.fix = None;
        (self.lost_since, self.lost) = (None, None);
        self.outputs.push_back(Output::Close);
        self.phase = Phase::Absent {
            until: self.outage.try_again_at(now),
        };
    }
}

#[cfg(test)]
mod tests;
