//! Decides what to do with a StarGazer, and distributes its fixes. PURE.
//!
//! Report each event to [`MarkerLogic`], drain [`MarkerLogic::poll_output`] after every change, and carry out
//! each output. Call [`MarkerLogic::handle_timeout`] at [`MarkerLogic::wake_at`].
//!
//! ```text
//!  Absent --opened--> Setting ---- all answered ----> Ready
//!    ^   \               |                            ^  |
//!    |    +-------> Listening ---- a message --------+  |
//!    |                   |                               |
//!    +---- no answer ----+----- nothing, or garbage -----+
//! ```
//!
//! The device sends by itself, so the driver listens. It configures the device first only if
//! parameters are set. A silent device may have been stopped, so the driver starts it before giving
//! up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use amber_driver::{ClientId, Device, Origin, Periodic};
use amber_values::MarkerPose;

pub use self::note::Note;
use super::markers::Markers;
use super::plausible::Plausible;
use super::protocol::{Message, Parser, Sighting};
use super::setup::{Parameter, Talk};
use crate::outage::Outage;

mod note;

/// A fix older than this is outdated; a device sends ten per second.
const FRESH: Duration = Duration::from_secs(1);

/// How long the device may be silent.
const SILENCE: Duration = Duration::from_secs(2);

/// Maximum number of subscribers to every fix; further ones are rejected.
const MAX_LISTENERS: usize = 1024;

/// How many unknown markers are named in the log.
const MAX_STRANGERS: usize = 16;

/// Settings of the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The marker positions.
    pub markers: Markers,
    /// The parameters that the device must have.
    pub parameters: Vec<Parameter>,
    /// The delay between two characters sent to the device.
    pub pause: Duration,
}

/// An action for the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open the connection, then call [`MarkerLogic::opened`] or [`MarkerLogic::failed`].
    Open,
    /// Close the connection.
    Close,
    /// Send this to the device.
    Write(u8),
    /// The reply to a request.
    Answer(Origin, Known),
    /// A fix for the clients that requested it.
    PublishTo(Origin, Fix),
    /// A fix for all other subscribers.
    Publish(Fix),
    /// A log message.
    Say(Note),
    /// Nothing is left to do.
    End,
}

/// A pose and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fix {
    /// The pose of the robot, without times.
    pub pose: MarkerPose,
    /// The time since the driver started.
    pub since_start: Duration,
}

/// The known position when a request arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// Nothing.
    Nothing,
    /// The pose of the robot.
    Fresh(Fix),
    /// The last position and its age; no marker has been in view since.
    Old(Fix, Duration),
}

/// How often a client gets a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Every fix.
    EachFix,
    /// The last fix after each period.
    Period(Duration),
}

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Forwarded fixes.
    pub fixes: u64,
    /// Fixes that are implausible after the previous one.
    pub implausible: u64,
    /// Fixes from markers that are not on the map.
    pub strangers: u64,
    /// Requests made while the device did not work.
    pub unanswered: u64,
}

/// The state of the device, its requests and its subscribers.
#[derive(Debug)]
pub struct MarkerLogic {
    settings: Settings,
    start: Instant,
    phase: Phase,
    parser: Parser,
    /// When the last message arrived, or the first one was due.
    heard: Instant,
    /// Bytes have arrived that form no message.
    got_garbage: bool,
    plausible: Plausible,
    fix: Option<(Fix, Instant)>,
    in_view: bool,
    strangers: BTreeSet<u32>,
    each_fix: BTreeMap<Option<Device>, BTreeSet<ClientId>>,
    periodic: Periodic<()>,
    outage: Outage,
    outputs: VecDeque<Output>,
    counters: Counters,
}

#[derive(Clone, Debug)]
enum Phase {
    Absent { until: Instant },
    Opening,
    Setting(Box<Talk>),
    Listening,
    Ready,
    Ended,
}

impl MarkerLogic {
    /// Starts without a connection.
    pub fn new(settings: Settings, now: Instant) -> Self {
        let plausible = Plausible::new(settings.markers.is_map());
        Self {
            settings,
            start: now,
            phase: Phase::Opening,
            parser: Parser::default(),
            heard: now,
            got_garbage: false,
            plausible,
            fix: None,
            in_view: false,
            strangers: BTreeSet::new(),
            each_fix: BTreeMap::new(),
            periodic: Periodic::default(),
            outage: Outage::default(),
            outputs: VecDeque::from([Output::Open]),
            counters: Counters::default(),
        }
    }

    /// A client requests the position. While the device does not work there is no reply, and the
    /// client's request times out.
    pub fn ask(&mut self, now: Instant, origin: Origin) {
        if self.outage.trouble().is_some() {
            self.counters.unanswered += 1;
            return;
        }
        let known = self.known(now);
        self.outputs.push_back(Output::Answer(origin, known));
    }

    /// A client subscribes to fixes.
    pub fn subscribe(&mut self, now: Instant, origin: &Origin, rate: Rate) {
        let fits = match rate {
            Rate::Period(period) => self.periodic.subscribe(now, origin, period, ()),
            Rate::EachFix => {
                let others: usize = self.each_fix.values().map(BTreeSet::len).sum();
                let fits = others + origin.clients.len() <= MAX_LISTENERS;
                if fits {
                    let clients = self.each_fix.entry(origin.device).or_default();
                    clients.extend(&origin.clients);
                }
                fits
            }
        };
        if !fits {
            self.outputs.push_back(Output::Say(Note::TooMany));
        }
    }

    /// A client ends one kind of subscription; the other kind continues.
    pub fn unsubscribe(&mut self, origin: &Origin, rate: Rate) {
        match rate {
            Rate::Period(_) => self.periodic.unsubscribe(origin),
            Rate::EachFix => {
                if let Some(clients) = self.each_fix.get_mut(&origin.device) {
                    clients.retain(|client| !origin.clients.contains(client));
                }
            }
        }
    }

    /// A client is gone.
    pub fn client_died(&mut self, client: ClientId) {
        self.periodic.remove(client);
        for clients in self.each_fix.values_mut() {
            clients.remove(&client);
        }
    }

    /// The connection is open.
    pub fn opened(&mut self, now: Instant) {
        self.parser.clear();
        self.heard = now;
        self.got_garbage = false;
        let Settings {
            parameters, pause, ..
        } = &self.settings;
        self.phase = match parameters.is_empty() {
            true => Phase::Listening,
            false => Phase::Setting(Talk::set_up(now, *pause, parameters.clone()).into()),
        };
        self.proceed(now);
    }

    /// The connection is closed or could not be opened.
    pub fn failed(&mut self, now: Instant, problem: &str) {
        self.give_up(now, problem.to_owned());
    }

    /// Bytes from the device.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        self.got_garbage = true;
        self.parser.push(bytes);
        while let Some(message) = self.parser.poll() {
            self.heard = now;
            self.got_garbage = false;
            self.handle_message(now, &message);
        }
        self.proceed(now);
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.proceed(now);
        for (origin, ()) in self.periodic.take_due(now) {
            if let Known::Fresh(fix) = self.known(now) {
                self.outputs.push_back(Output::PublishTo(origin, fix));
            }
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

    /// When to call [`MarkerLogic::handle_timeout`] if nothing happens earlier.
    pub fn wake_at(&self) -> Option<Instant> {
        let silent = Some(self.heard + SILENCE);
        let device = match &self.phase {
            Phase::Absent { until } => Some(*until),
            Phase::Setting(talk) => talk.wake_at(),
            Phase::Listening | Phase::Ready => silent,
            Phase::Opening | Phase::Ended => None,
        };
        [device, self.periodic.next_due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Event counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The number of frames that were discarded as invalid.
    pub fn spoilt(&self) -> u64 {
        self.parser.spoilt()
    }

    /// The reason why the device does not work, if there is a problem. Having no marker in view is
    /// not a problem.
    pub fn trouble(&self) -> Option<&str> {
        self.outage.trouble()
    }

    fn known(&self, now: Instant) -> Known {
        match self.fix {
            None => Known::Nothing,
            Some((fix, at)) => match now.saturating_duration_since(at) {
                age if self.in_view && age <= FRESH => Known::Fresh(fix),
                age => Known::Old(fix, age),
            },
        }
    }
}

/// Messages.
impl MarkerLogic {
    fn handle_message(&mut self, now: Instant, message: &Message) {
        if let Phase::Setting(talk) = &mut self.phase {
            talk.handle_message(now, message);
        }
        match message {
            Message::Fix(seen) => self.handle_sightings(now, seen),
            Message::DeadZone => self.view(false),
            Message::MapId(_) | Message::Done(_) | Message::Value { .. } => {}
        }
        let says_where = matches!(message, Message::Fix(_) | Message::DeadZone);
        let is_enough = match &self.phase {
            Phase::Listening => true,
            Phase::Setting(talk) => says_where && talk.only_wakes(),
            _ => false,
        };
        if is_enough {
            self.get_ready(now, None);
        }
    }

    fn handle_sightings(&mut self, now: Instant, seen: &[Sighting]) {
        let pose = match self.settings.markers.pose(seen) {
            Ok(pose) => pose,
            Err(stranger) => {
                self.counters.strangers += 1;
                if self.strangers.len() < MAX_STRANGERS && self.strangers.insert(stranger) {
                    (self.outputs).push_back(Output::Say(Note::Stranger(stranger)));
                }
                return self.view(false);
            }
        };
        if !self.plausible.accepts(now, pose) {
            self.counters.implausible += 1;
            return;
        }
        self.view(true);
        self.counters.fixes += 1;
        let since_start = now.saturating_duration_since(self.start);
        let fix = Fix { pose, since_start };
        self.fix = Some((fix, now));
        self.outputs.push_back(Output::Publish(fix));
        for (device, clients) in &self.each_fix {
            if clients.is_empty() {
                continue;
            }
            let origin = Origin {
                clients: clients.iter().copied().collect(),
                device: *device,
                ..Origin::default()
            };
            self.outputs.push_back(Output::PublishTo(origin, fix));
        }
    }

    fn view(&mut self, in_view: bool) {
        if self.in_view != in_view {
            self.in_view = in_view;
            self.outputs.push_back(Output::Say(Note::InView(in_view)));
        }
    }
}

/// Phases.
impl MarkerLogic {
    /// Performs the next step, if one is possible now.
    fn proceed(&mut self, now: Instant) {
        let is_silent = now.saturating_duration_since(self.heard) >= SILENCE;
        match &mut self.phase {
            Phase::Absent { until } if now >= *until => {
                self.phase = Phase::Opening;
                self.outputs.push_back(Output::Open);
            }
            Phase::Setting(talk) => {
                if let Err(problem) = talk.handle_timeout(now) {
                    return self.give_up(now, problem);
                }
                if let Some(byte) = talk.poll_byte(now) {
                    self.outputs.push_back(Output::Write(byte));
                }
                if talk.is_done() {
                    let talk = talk.clone();
                    self.get_ready(now, Some(&talk));
                }
            }
            Phase::Listening if is_silent => {
                let talk = Talk::wake_up(now, self.settings.pause);
                self.phase = Phase::Setting(talk.into());
                self.proceed(now);
            }
            Phase::Ready if is_silent => {
                let problem = match self.got_garbage {
                    true => "the StarGazer sends only invalid data",
                    false => "the StarGazer is silent",
                };
                self.give_up(now, problem.to_owned());
            }
            Phase::Absent { .. }
            | Phase::Opening
            | Phase::Listening
            | Phase::Ready
            | Phase::Ended => {}
        }
    }

    fn get_ready(&mut self, now: Instant, talk: Option<&Talk>) {
        self.phase = Phase::Ready;
        self.heard = now;
        let written = talk.map(Talk::written).unwrap_or_default();
        if !written.is_empty() {
            let written = Note::Written(written.join(", "));
            self.outputs.push_back(Output::Say(written));
        }
        let note = match self.outage.over(now) {
            Some(after) => Note::Back(after),
            None => Note::Ready(talk.and_then(Talk::version).map(str::to_owned)),
        };
        self.outputs.push_back(Output::Say(note));
    }

    /// Starts over. Logs the problem unless it was already logged.
    fn give_up(&mut self, now: Instant, trouble: String) {
        if matches!(self.phase, Phase::Ended) {
            return;
        }
        if self.outage.complain(now, &trouble) {
            (self.outputs).push_back(Output::Say(Note::Trouble(trouble)));
        }
        self.parser.clear();
        self.in_view = false;
        self.outputs.push_back(Output::Close);
        self.phase = Phase::Absent {
            until: self.outage.try_again_at(now),
        };
    }
}

#[cfg(test)]
mod tests;
