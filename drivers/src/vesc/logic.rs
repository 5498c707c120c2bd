//! Decides what to do with the VESCs, and when. PURE.
//!
//! ```text
//!           opened              both have told their firmware and values
//!  Absent ----------> Starting ------------------------------------------> Ready
//!    ^                   |                                                   |
//!    +-------------------+----------------- three failures ------------------+   shutdown: Ended
//! ```
//!
//! The rules that keep the wheels under control:
//!
//! - The newest command is sent at once, and again and again while the wheels turn: a VESC releases its
//!   motor 1 s after the last one. A VESC answers no command, so the values of both are read all the time.
//! - One question at a time. What arrives before it is forgotten, and its answer must be from the VESC
//!   that was asked.
//! - Every problem stops the wheels of both sides: at every start, when a VESC reports a fault or does
//!   not answer, and at the end.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Settings;
use super::note::VescNote;
use super::protocol::{Command, Frames, Values, Version};
use super::state::State;
use super::units::Unit;
use crate::wheels::{BatteryReading, Model, Note, Refusal, Service, StopReason};

/// The interval between repetitions of a command.
const REPEAT: Duration = Duration::from_millis(100);
/// The shortest time between two commands that turn the wheels: a serial line has room for so many.
const GAP: Duration = Duration::from_millis(10);
/// A VESC releases its motor this long after the last command, unless it is configured otherwise.
const VESC_RELEASES: Duration = Duration::from_secs(1);
/// How long a stop is repeated: wheels that are braked stand after this time.
const BRAKES: Duration = Duration::from_secs(3);
/// So many questions in a row without an answer, and a VESC is gone.
const MAX_FAILURES: u32 = 3;

/// An action at the ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VescAction {
    /// Open all ports, then call [`VescLogic::opened`] or [`VescLogic::failed`].
    Open,
    /// Close them.
    Close,
    /// Send this to a port: that of the first VESC, or that of the second one.
    Write(Unit, Vec<u8>),
    /// Nothing is left to do.
    End,
}

/// The state of both VESCs, with the clients' commands and requests.
///
/// Report each event, then carry out the actions of [`VescLogic::poll_action`] one after the other.
/// Call [`VescLogic::handle_timeout`] at [`VescLogic::wake_at`].
#[derive(Debug)]
pub struct VescLogic {
    settings: Settings,
    phase: Phase,
    is_open: bool,
    actions: VecDeque<VescAction>,
    /// What has arrived at each port.
    frames: [Frames; 2],
    /// Whether anything has arrived at each port since it was opened.
    has_heard: [bool; 2],
    versions: [Option<Version>; 2],
    /// The question that has not been answered yet.
    question: Option<Question>,
    /// The VESC whose values are read next, in a round that has begun.
    round: Option<Unit>,
    round_at: Instant,
    /// In a row.
    failures: u32,
    /// Whether the newest command must be sent, when one was sent last, and when a new one.
    untold: bool,
    told: Instant,
    told_new: Instant,
    /// A stop is repeated until then.
    brakes_until: Instant,
    state: State,
    has_stood: bool,
    service: Service<VescNote>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent { until: Instant },
    Opening,
    Starting,
    Ready,
    Ended,
}

#[derive(Clone, Copy, Debug)]
struct Question {
    unit: Unit,
    command: Command,
    sent: Instant,
}

impl VescLogic {
    /// Starts without a connection.
    pub fn new(settings: Settings, now: Instant) -> Self {
        Self {
            phase: Phase::Absent { until: now },
            is_open: false,
            actions: VecDeque::new(),
            frames: Default::default(),
            has_heard: [false; 2],
            versions: [None, None],
            question: None,
            round: None,
            round_at: now,
            failures: 0,
            untold: false,
            told: now,
            told_new: now,
            brakes_until: now,
            state: State::default(),
            has_stood: false,
            service: Service::new(now, settings.rules.publishing_each()),
            settings,
        }
    }

    /// The ports are open.
    pub fn opened(&mut self, now: Instant) {
        self.is_open = true;
        self.frames = Default::default();
        self.has_heard = [false; 2];
        self.versions = [None, None];
        self.question = None;
        self.round = None;
        self.failures = 0;
        self.untold = false;
        self.brakes_until = now;
        self.state.clear();
        self.phase = match self.phase {
            Phase::Ended => Phase::Ended,
            _ => Phase::Starting,
        };
    }

    /// A port cannot be opened, or has failed.
    pub fn failed(&mut self, now: Instant, reason: &str) {
        // The last words to a port that has failed, too, fail.
        if !matches!(self.phase, Phase::Absent { .. } | Phase::Ended) {
            self.give_up(now, reason.to_owned());
        }
    }

    /// Bytes that arrived at the port of this VESC.
    pub fn handle_bytes(&mut self, now: Instant, port: Unit, bytes: &[u8]) {
        self.has_heard[port.index()] = true;
        self.frames[port.index()].push(bytes);
        while let Some(payload) = self.frames[port.index()].next_payload() {
            self.handle_payload(now, port, &payload);
        }
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.question_ends().is_some_and(|ends| now >= ends) {
            self.handle_failure(now);
        }
    }

    /// The next action, if any.
    pub fn poll_action(&mut self, now: Instant) -> Option<VescAction> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        match self.phase {
            Phase::Absent { .. } if std::mem::take(&mut self.is_open) => {
                return Some(VescAction::Close);
            }
            Phase::Absent { until } if now >= until => {
                self.phase = Phase::Opening;
                return Some(VescAction::Open);
            }
            Phase::Absent { .. } | Phase::Opening => {}
            Phase::Ended => return Some(VescAction::End),
            Phase::Starting => self.ask_next(now),
            Phase::Ready => {
                let sent = (!self.untold).then_some(self.told);
                self.stop_in_time(now, sent, VESC_RELEASES);
                if self.tell_at().is_some_and(|at| now >= at) {
                    self.tell(now);
                }
                self.ask_next(now);
            }
        }
        self.actions.pop_front()
    }

    /// When to call [`VescLogic::handle_timeout`] if nothing happens earlier.
    pub fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Absent { until } => Some(until),
            Phase::Opening | Phase::Ended => None,
            Phase::Starting => self.question_ends(),
            Phase::Ready => {
                let next = self.question_ends().unwrap_or(self.round_at);
                let idle = self.service.motion.idle_stop_due();
                let due = [Some(next), self.tell_at(), idle].into_iter();
                due.flatten().min()
            }
        }
    }
}

impl Model for VescLogic {
    type Special = VescNote;

    fn service(&self) -> &Service<VescNote> {
        &self.service
    }

    fn service_mut(&mut self) -> &mut Service<VescNote> {
        &mut self.service
    }

    fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    fn refusal(&self) -> Option<Refusal> {
        match self.is_ready() {
            true => self.state.problem().map(|_| Refusal::Errors),
            false => Some(Refusal::Away),
        }
    }

    fn handle_command(&mut self, _now: Instant) {
        self.untold = true;
        let sides = self.service.sides();
        if self.settings.wheels.is_too_slow(sides) && !self.has_stood {
            self.has_stood = true;
            let slowest_mm_s = self.settings.wheels.slowest_mm_s();
            self.say(VescNote::TooSlow { slowest_mm_s });
        }
    }

    fn handle_stop(&mut self) {
        self.untold = true;
    }

    fn shut_down(&mut self) {
        self.service.motion.forget();
        self.actions.clear();
        if self.is_open {
            self.stop_wheels();
        }
        self.question = None;
        self.phase = Phase::Ended;
    }

    fn battery(&self, now: Instant) -> Result<BatteryReading, Cow<'_, str>> {
        if let Some(trouble) = self.service.trouble() {
            return Err(trouble.into());
        }
        let battery = self.state.battery(now).filter(|_| self.is_ready());
        battery.ok_or_else(|| "the VESCs have not reported the battery".into())
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        match (self.service.trouble(), self.state.problem()) {
            (Some(trouble), _) => Some(trouble.into()),
            (None, problem) => problem.map(|note| format!("driving disabled: {note}").into()),
        }
    }
}

/// Commands.
impl VescLogic {
    /// When the newest command must be sent, perhaps again.
    fn tell_at(&self) -> Option<Instant> {
        let again = self.told + REPEAT;
        match (self.untold, self.service.motion.turns()) {
            (true, true) => Some(self.told_new + GAP),
            // At once.
            (true, false) => Some(self.told),
            (false, true) => Some(again),
            (false, false) => (again <= self.brakes_until).then_some(again),
        }
    }

    fn tell(&mut self, now: Instant) {
        let is_new = std::mem::take(&mut self.untold);
        if is_new {
            self.told_new = now;
        }
        if is_new && !self.service.motion.turns() {
            self.brakes_until = now + BRAKES;
        }
        self.told = now;
        let sides = self.service.sides();
        self.command(self.settings.wheels.commands(sides).map(Some));
    }

    fn stop_wheels(&mut self) {
        self.command([Some(self.settings.wheels.stop()); 2]);
    }

    /// Sends a command to each VESC. What never said that it is one gets none.
    fn command(&mut self, commands: [Option<Command>; 2]) {
        let mut bytes = [Vec::new(), Vec::new()];
        for (unit, command) in Unit::BOTH.into_iter().zip(commands) {
            let Some(command) = command.filter(|_| self.versions[unit.index()].is_some()) else {
                continue;
            };
            let port = self.settings.reach.port(unit);
            bytes[port.index()].extend(command.encode(self.settings.reach.can_id(unit)));
        }
        for (port, bytes) in Unit::BOTH.into_iter().zip(bytes) {
            if !bytes.is_empty() {
                self.actions.push_back(VescAction::Write(port, bytes));
            }
        }
    }
}

/// Questions.
impl VescLogic {
    fn ask_next(&mut self, now: Instant) {
        if self.question.is_some() {
            return;
        }
        let Some((unit, command)) = self.next_question(now) else {
            return;
        };
        let port = self.settings.reach.port(unit);
        self.frames[port.index()].clear();
        self.question = Some(Question {
            unit,
            command,
            sent: now,
        });
        let bytes = command.encode(self.settings.reach.can_id(unit));
        self.actions.push_back(VescAction::Write(port, bytes));
    }

    fn next_question(&mut self, now: Instant) -> Option<(Unit, Command)> {
        let unit = match (self.round, self.phase) {
            (Some(unit), _) => unit,
            (None, Phase::Ready) if now < self.round_at => return None,
            (None, Phase::Ready) => {
                // Missed rounds are left out.
                self.round_at = (self.round_at + self.settings.rules.speeds_interval).max(now);
                self.service.questions.start(now);
                Unit::First
            }
            (None, _) => Unit::First,
        };
        self.round = Some(unit);
        let command = match self.versions[unit.index()] {
            Some(_) => Command::Values,
            None => Command::Version,
        };
        Some((unit, command))
    }

    fn handle_payload(&mut self, now: Instant, port: Unit, payload: &[u8]) {
        let Some(Question { unit, command, .. }) = self.question else {
            return;
        };
        let is_answer = payload.first() == Some(&command.number());
        // VESCs send texts for VESC Tool, too.
        if !is_answer || port != self.settings.reach.port(unit) {
            return;
        }
        let fits = match command {
            Command::Version => {
                Version::decode(payload).map(|version| self.handle_version(now, unit, version))
            }
            _ => Values::decode(payload).map(|values| self.handle_values(now, unit, values)),
        };
        if fits.is_none() {
            let trouble = format!(
                "the {} sends answers that do not fit: update its firmware with VESC Tool",
                unit.name()
            );
            self.give_up(now, trouble);
        }
    }

    fn handle_version(&mut self, now: Instant, unit: Unit, version: Version) {
        let name = unit.name();
        if !version.drives_motor {
            let trouble = format!(
                "the {name} is not for motors, its firmware is {version}: check --port, --can-id"
            );
            return self.give_up(now, trouble);
        }
        if version.firmware < Version::OLDEST {
            let (major, minor) = Version::OLDEST;
            let trouble = format!(
                "the {name} has firmware {version}, and this driver needs {major}.{minor} or newer: \
                 update it with VESC Tool"
            );
            return self.give_up(now, trouble);
        }
        self.versions[unit.index()] = Some(version);
        self.answered();
        // It may still turn its motor for somebody else.
        let mut commands = [None, None];
        commands[unit.index()] = Some(self.settings.wheels.stop());
        self.command(commands);
    }

    fn handle_values(&mut self, now: Instant, unit: Unit, values: Values) {
        if let Some(second_id) = self.settings.reach.can_id(Unit::Second)
            && let Some(id) = values.can_id
            && (unit == Unit::Second) != (id == second_id)
        {
            if self.phase == Phase::Starting && unit == Unit::First {
                let trouble = format!(
                    "the first VESC itself has the CAN id {id}: --can-id must be that of the second \
                     one, and both must differ"
                );
                self.give_up(now, trouble);
            }
            // A late answer of the other one.
            return;
        }
        self.answered();
        for note in self.state.read(now, unit, values) {
            self.say(note);
        }
        if self.state.problem().is_some() && self.service.motion.turns() {
            self.stop(StopReason::Errors);
        }
        self.round = match unit {
            Unit::First => Some(Unit::Second),
            Unit::Second => None,
        };
        match (self.round, self.phase) {
            (None, Phase::Starting) => self.start_driving(now),
            (None, _) => self.tell_speeds(now),
            (Some(_), _) => {}
        }
    }

    fn start_driving(&mut self, now: Instant) {
        let settings = &self.settings;
        let versions = &self.versions;
        self.service.works(now, || name(settings, versions));
        self.phase = Phase::Ready;
        self.round_at = now + self.settings.rules.speeds_interval;
    }

    fn tell_speeds(&mut self, now: Instant) {
        let Some(erpm) = self.state.erpm() else {
            return;
        };
        let speeds = self.settings.wheels.sides(erpm).wheels();
        if let Some(measured) = self.service.questions.complete(now) {
            (self.service).tell(speeds, measured.askers, measured.published);
        }
    }

    fn answered(&mut self) {
        self.question = None;
        self.failures = 0;
    }

    /// A question was not answered. The same is asked again.
    fn handle_failure(&mut self, now: Instant) {
        let Some(Question { unit, .. }) = self.question.take() else {
            return;
        };
        self.service.counters.bad_replies += 1;
        self.failures += 1;
        if self.failures == MAX_FAILURES {
            self.give_up(now, self.silence(unit));
        }
    }

    /// Starts over. Logs the problem unless it was already logged.
    fn give_up(&mut self, now: Instant, trouble: String) {
        let until = self.service.give_up(now, trouble);
        self.question = None;
        self.actions.clear();
        if self.is_open {
            self.stop_wheels();
        }
        self.phase = Phase::Absent { until };
    }

    /// Why a VESC does not answer.
    fn silence(&self, unit: Unit) -> String {
        let name = unit.name();
        let port = self.settings.reach.port(unit);
        let baud = self.settings.baud;
        let was_there = self.versions[unit.index()].is_some();
        match (self.settings.reach.can_id(unit), was_there) {
            (None, true) => {
                format!("the {name} does not answer: check its power and its cable")
            }
            (Some(id), true) => format!(
                "the {name} (CAN id {id}) does not answer: check its power and the wires of the CAN \
                 bus"
            ),
            (Some(id), false) => format!(
                "no VESC with the CAN id {id} answers through the first one: check --can-id, its \
                 power and the wires of the CAN bus"
            ),
            (None, false) if self.has_heard[port.index()] => format!(
                "what arrives from the {name} at {baud} baud is not from a VESC: check its port and \
                 --baud"
            ),
            (None, false) => format!(
                "the {name} does not answer at {baud} baud: check its power, its port and --baud, and \
                 at a UART whether VESC Tool has switched it on (App Settings, General, App to Use)"
            ),
        }
    }

    /// When the answer to the question must have arrived.
    fn question_ends(&self) -> Option<Instant> {
        let question = self.question?;
        Some(question.sent + self.settings.reply_timeout)
    }

    fn say(&mut self, note: VescNote) {
        self.service.say(Note::Special(note));
    }
}

/// What is connected, for people.
fn name(settings: &Settings, versions: &[Option<Version>; 2]) -> String {
    let texts = versions.iter().flatten().map(Version::to_string);
    let firmware = texts.collect::<Vec<_>>().join(" and ");
    let slowest_mm_s = settings.wheels.slowest_mm_s();
    format!("VESCs with firmware {firmware}, speeds from {slowest_mm_s:.0} mm/s")
}

#[cfg(test)]
mod tests;
