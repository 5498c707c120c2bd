//! Decides what to do with the controllers, and when. PURE.
//!
//! Report each event to [`WheelLogic`] ([`WheelLogic::drive`], [`WheelLogic::ask`], ...), then carry out the steps
//! of [`WheelLogic::poll_action`] one after the other, report the result of each, and drain
//! [`WheelLogic::poll_output`] after every change. When there is no step, wait for the next event or for
//! [`WheelLogic::wake_at`].
//!
//! ```text
//!             opened              script done
//!  Absent ------------> Starting -------------> Ready <-----> Resetting
//!    ^                      |                     |
//!    +------ LettingGo <----+----- no answer -----+     shutdown: Stopping, Ended
//! ```
//!
//! The rules that keep the wheels under control:
//!
//! - One step at a time on the bus. Drive commands come first, and only the newest: a command that
//!   was replaced, or that arrived while the controllers were unreachable, is never sent.
//! - Every problem stops the wheels: before the settings at every start, before giving up a silent
//!   controller, and at the end.
//! - The controllers stop by themselves after some time without packets.

use std::borrow::Cow;
use std::time::Instant;

use amber_driver::Origin;
use amber_values::WheelSpeeds;

pub use self::action::{ControllerAction, ExchangeError, Line};
use self::controllers::Controllers;
use self::monitors::{Finding, Monitors};
pub use self::note::ControllerNote;
use self::reading::Reading;
use self::script::{Script, ScriptStep};
pub use self::settings::{Lines, Settings, Tuning};
use self::telling::Telling;
use super::protocol::{Command, Motor, PACKET_GAP, Pid, Reply};
use super::units::Unit;
use crate::wheels::{self, BatteryReading, Counters, Model, Refusal, Service, StopReason};

mod action;
mod battery;
mod controllers;
mod monitors;
mod note;
mod reading;
mod script;
mod settings;
mod telling;
mod watch;

/// A log message.
pub type Note = wheels::Note<ControllerNote>;

/// The state of the controllers, with the clients' commands and requests.
#[derive(Debug)]
pub struct WheelLogic {
    settings: Settings,
    phase: Phase,
    port_is_open: bool,
    /// The steps before the next phase.
    script: Script,
    /// The purpose of the current exchange.
    current: Option<Job>,
    /// Whether the bus must stay idle for a moment.
    pauses: bool,
    controllers: Controllers,
    service: Service<ControllerNote>,
    telling: Telling,
    reading: Reading,
    monitors: Monitors,
    /// The turn that comes next.
    turn: Turn,
    reset_is_active: bool,
    lit: [Option<bool>; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent { until: Instant },
    Starting,
    Ready,
    Resetting,
    LettingGo,
    Stopping,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Script(Unit, Command),
    Drive(Unit, Command, WheelSpeeds),
    Speed(Unit, Command),
    Status(Unit),
    Temperature(Unit),
    Battery(Unit, Command),
}

/// What takes turns on the bus while nothing is urgent, so that none of them starves on a slow bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// A command that the controllers know already.
    Repeat,
    /// A reading of the monitors.
    Monitor,
    /// The speeds of all wheels. They are measured without a break, so that they belong together.
    Measure,
}

impl Turn {
    /// This one, and the others in their order.
    fn order(self) -> [Self; 3] {
        match self {
            Self::Repeat => [Self::Repeat, Self::Monitor, Self::Measure],
            Self::Monitor => [Self::Monitor, Self::Measure, Self::Repeat],
            Self::Measure => [Self::Measure, Self::Repeat, Self::Monitor],
        }
    }
}

impl WheelLogic {
    /// Starts with the port closed.
    pub fn new(settings: Settings, now: Instant) -> Self {
        Self {
            phase: Phase::Absent { until: now },
            port_is_open: false,
            script: Script::new(),
            current: None,
            pauses: false,
            controllers: Controllers::new(&settings),
            service: Service::new(now, settings.rules()),
            telling: Telling::new(now, &settings),
            reading: Reading::of(settings.layout.units()),
            monitors: Monitors::new(now, &settings),
            turn: Turn::Repeat,
            reset_is_active: false,
            lit: [None; 2],
            settings,
        }
    }

    /// The port is open.
    pub fn opened(&mut self) {
        self.port_is_open = true;
        self.phase = Phase::Starting;
        self.controllers = Controllers::new(&self.settings);
        self.script = script::start(&self.settings);
    }

    /// The port cannot be opened.
    pub fn open_failed(&mut self, now: Instant, reason: &str) {
        self.service.complain(now, reason.to_owned());
        self.wait_for_port(now);
    }

    /// Reports the result of an exchange.
    pub fn exchanged(&mut self, now: Instant, result: Result<Vec<u8>, ExchangeError>) {
        let Some(job) = self.current.take() else {
            return;
        };
        let (unit, command) = job.target();
        let reply = match result {
            Err(ExchangeError::Port(reason)) => {
                self.service.complain(now, reason);
                return self.wait_for_port(now);
            }
            Err(error) => Err(error.to_string()),
            Ok(bytes) => self.controllers.decode(unit, command, &bytes),
        };
        match reply {
            Ok(reply) => self.succeeded(now, job, reply),
            Err(problem) => self.failed(now, job, &problem),
        }
    }

    /// The next step, if any.
    pub fn poll_action(&mut self, now: Instant) -> Option<ControllerAction> {
        if let Some(step) = self.light() {
            return Some(step);
        }
        if std::mem::take(&mut self.pauses) {
            return Some(ControllerAction::Wait(PACKET_GAP));
        }
        loop {
            match self.phase {
                Phase::Absent { .. } if self.port_is_open => {
                    self.port_is_open = false;
                    return Some(ControllerAction::Close);
                }
                Phase::Absent { until } => return (now >= until).then_some(ControllerAction::Open),
                Phase::Ended => return Some(ControllerAction::End),
                Phase::Ready => match self.ready_job(now) {
                    Some(job) => return Some(self.exchange(job)),
                    None if matches!(self.phase, Phase::Ready) => return None,
                    None => {}
                },
                Phase::Starting | Phase::Resetting | Phase::LettingGo | Phase::Stopping => {
                    if let Some(step) = self.script_step() {
                        return Some(step);
                    }
                    self.script_done(now);
                }
            }
        }
    }

    /// When to call [`WheelLogic::poll_action`] if nothing happens earlier.
    pub fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Absent { until } => Some(until),
            Phase::Ready => [
                self.service.motion.idle_stop_due(),
                self.telling.idle_reset_due(),
                self.monitors.due(),
                self.service.questions.due(),
            ]
            .into_iter()
            .flatten()
            .min(),
            _ => None,
        }
    }

    /// Event counters.
    pub fn counters(&self) -> Counters {
        self.service.counters()
    }
}

impl Model for WheelLogic {
    type Special = ControllerNote;

    fn service(&self) -> &Service<ControllerNote> {
        &self.service
    }

    fn service_mut(&mut self) -> &mut Service<ControllerNote> {
        &mut self.service
    }

    fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    fn refusal(&self) -> Option<Refusal> {
        match self.phase {
            Phase::Resetting => Some(Refusal::Resetting),
            Phase::Ready => self.monitors.refusal(),
            _ => Some(Refusal::Away),
        }
    }

    fn handle_command(&mut self, now: Instant) {
        self.telling.begin();
        self.telling.postpone_reset(now);
    }

    fn handle_stop(&mut self) {
        self.telling.begin();
    }

    /// During a reset the wheels stand still, so the reply is zero.
    fn ask(&mut self, now: Instant, origin: Origin) {
        match self.phase {
            Phase::Resetting => self.service.tell(WheelSpeeds::STOP, vec![origin], None),
            Phase::Stopping | Phase::Ended => self.service.questions.refuse(),
            _ => self.service.questions.ask(now, origin),
        }
    }

    /// Stops the wheels, then returns [`ControllerAction::End`].
    fn shut_down(&mut self) {
        self.script.clear();
        self.current = None;
        if self.reset_is_active {
            self.script.push_back(ScriptStep::Set(Line::Reset, false));
        }
        if self.port_is_open {
            self.script.extend(script::release(&self.settings));
        }
        self.phase = Phase::Stopping;
    }

    fn battery(&self, now: Instant) -> Result<BatteryReading, Cow<'_, str>> {
        self.newest_battery(now)
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        match self.service.trouble() {
            Some(trouble) => Some(trouble.into()),
            None => self.monitors.trouble().map(Cow::from),
        }
    }
}

/// The decisions while the controllers work.
impl WheelLogic {
    fn ready_job(&mut self, now: Instant) -> Option<Job> {
        let is_due = |due: Option<Instant>| due.is_some_and(|due| now >= due);
        if is_due(self.service.motion.idle_stop_due()) {
            self.service.motion.idles();
            self.stop(StopReason::Idle);
        }
        if is_due(self.telling.idle_reset_due()) {
            self.telling.postpone_reset(now);
            self.reset();
            return None;
        }
        let next = self.telling.next();
        let target = self.service.motion.target();
        let drive = next.map(|unit| {
            let command = self.settings.wheel.drive(unit, target);
            Job::Drive(unit, command, target)
        });
        if self.telling.comes_first(next, target) {
            return drive;
        }
        for turn in self.turn.order() {
            let job = match turn {
                Turn::Repeat => drive,
                Turn::Monitor => self.monitors.next(now),
                Turn::Measure => self.service.questions.start(now).then(|| {
                    let (unit, motor) = self.reading.next();
                    Job::Speed(unit, Command::Speed(motor))
                }),
            };
            if job.is_some() {
                let [_, next, _] = turn.order();
                self.turn = if turn == Turn::Measure { turn } else { next };
                return job;
            }
        }
        None
    }
}

/// The results of exchanges.
impl WheelLogic {
    fn succeeded(&mut self, now: Instant, job: Job, reply: Reply) {
        let (unit, _) = job.target();
        self.controllers.answered(unit);
        match (job, reply) {
            (Job::Script(_, Command::Pid(motor)), Reply::Pid(stored)) => {
                self.script.pop_front();
                self.tune(unit, motor, stored);
            }
            (Job::Script(..), reply) => {
                self.script.pop_front();
                self.controllers.learn(unit, reply);
            }
            (Job::Drive(unit, _, speeds), _) => {
                let target = self.service.motion.target();
                self.telling.told(unit, speeds, target);
            }
            (Job::Speed(..), Reply::Number(qpps)) => self.speed_read(now, qpps),
            (Job::Status(unit), Reply::Status(status)) => {
                let findings = self.monitors.status_read(now, unit, status);
                self.act_on(findings);
            }
            (Job::Temperature(_), Reply::Number(tenths)) => {
                let findings = self.monitors.temperature_read(now, tenths);
                self.act_on(findings);
            }
            (Job::Battery(..), Reply::Number(tenths)) => {
                let findings = self.monitors.battery_read(now, tenths);
                self.act_on(findings);
            }
            // Each command has its own type of reply.
            _ => {}
        }
    }

    fn failed(&mut self, now: Instant, job: Job, problem: &str) {
        self.service.counters.bad_replies += 1;
        self.pauses = true;
        let (unit, _) = job.target();
        match job {
            Job::Temperature(_) => {
                let note = self.monitors.temperature_failed(now);
                self.act_on(note.map(Finding::Say));
            }
            Job::Battery(..) => {
                let note = self.monitors.battery_failed(now);
                self.act_on(note.map(Finding::Say));
            }
            Job::Script(..) if !matches!(self.script.front(), Some(ScriptStep::Tell(..))) => {
                self.script.pop_front();
            }
            _ if self.controllers.failed(now, unit) => {
                self.service
                    .complain(now, format!("the {} {problem}", unit.name()));
                self.let_go();
            }
            _ => {}
        }
    }

    /// Completes what is stated of the speed control by what is stored, and sets it if it differs.
    fn tune(&mut self, unit: Unit, motor: Motor, stored: Pid) {
        let wanted = self.settings.tuning.over(stored);
        if wanted != stored {
            let command = Command::SetPid(motor, wanted);
            self.script.push_front(ScriptStep::Tell(unit, command));
        }
    }

    fn speed_read(&mut self, now: Instant, qpps: i32) {
        if let Some(qpps) = self.reading.add(qpps)
            && let Some(measured) = self.service.questions.complete(now)
        {
            self.turn = Turn::Repeat;
            let speeds = self.settings.wheel.speeds(qpps);
            (self.service).tell(speeds, measured.askers, measured.published);
        }
    }

    fn act_on(&mut self, findings: impl IntoIterator<Item = Finding>) {
        for finding in findings {
            match finding {
                Finding::Say(note) => self.say(note),
                Finding::Stop(reason) => self.stop(reason),
                Finding::Reset if self.settings.lines.reset => {
                    self.say(ControllerNote::ResetForErrors);
                    self.reset();
                }
                Finding::Reset => {}
            }
        }
    }
}

/// Phases.
impl WheelLogic {
    fn script_step(&mut self) -> Option<ControllerAction> {
        loop {
            let action = *self.script.front()?;
            match action {
                ScriptStep::Tell(unit, command) | ScriptStep::Try(unit, command) => {
                    return Some(self.exchange(Job::Script(unit, command)));
                }
                ScriptStep::Shout(unit, command) => {
                    // A controller that never reported its format was never told to move.
                    if self.controllers.is_known(unit) {
                        return Some(self.exchange(Job::Script(unit, command)));
                    }
                    self.script.pop_front();
                }
                ScriptStep::Set(line, active) => {
                    self.script.pop_front();
                    if line == Line::Reset {
                        self.reset_is_active = active;
                    }
                    return Some(ControllerAction::Set(line, active));
                }
                ScriptStep::Wait(duration) => {
                    self.script.pop_front();
                    return Some(ControllerAction::Wait(duration));
                }
            }
        }
    }

    fn script_done(&mut self, now: Instant) {
        match self.phase {
            Phase::Starting => {
                self.get_ready(now);
                let controllers = &self.controllers;
                self.service.works(now, || controllers.name());
            }
            Phase::Resetting => self.get_ready(now),
            Phase::LettingGo => self.wait_for_port(now),
            Phase::Stopping => self.phase = Phase::Ended,
            Phase::Absent { .. } | Phase::Ready | Phase::Ended => {}
        }
    }

    fn get_ready(&mut self, now: Instant) {
        self.phase = Phase::Ready;
        self.forget();
        self.monitors.begin(now);
    }

    fn reset(&mut self) {
        self.service.counters.resets += 1;
        self.phase = Phase::Resetting;
        self.forget();
        // The wheels stand still, so waiting requests get zero.
        let askers = self.service.questions.take_all();
        self.service.tell(WheelSpeeds::STOP, askers, None);
        self.script = script::reset(&self.settings);
    }

    /// A controller does not answer: all must stop.
    fn let_go(&mut self) {
        self.phase = Phase::LettingGo;
        self.forget();
        self.service.questions.give_up_reading();
        self.script = script::stand(&self.settings);
    }

    fn wait_for_port(&mut self, now: Instant) {
        self.forget();
        self.service.questions.give_up_reading();
        self.script.clear();
        self.phase = match self.phase {
            Phase::Stopping | Phase::Ended => Phase::Ended,
            _ => Phase::Absent {
                until: self.service.try_again_at(now),
            },
        };
    }

    /// Drops the command and what was measured.
    fn forget(&mut self) {
        self.service.motion.forget();
        self.telling.forget();
        self.reading = Reading::of(self.settings.layout.units());
    }

    fn light(&mut self) -> Option<ControllerAction> {
        let is_bad = self.service.trouble().is_some() || self.monitors.refusal().is_some();
        let green = self.is_ready() && self.telling.is_told();
        let lines = self.settings.lines;
        for (i, (line, exists, lit)) in [
            (Line::Green, lines.green, green),
            (Line::Red, lines.red, is_bad),
        ]
        .into_iter()
        .enumerate()
        {
            let lit = lit && self.phase != Phase::Ended;
            if exists && self.lit[i] != Some(lit) {
                self.lit[i] = Some(lit);
                return Some(ControllerAction::Set(line, lit));
            }
        }
        None
    }

    fn exchange(&mut self, job: Job) -> ControllerAction {
        self.current = Some(job);
        let (unit, command) = job.target();
        self.controllers.exchange(unit, command)
    }

    fn say(&mut self, note: ControllerNote) {
        self.service.say(Note::Special(note));
    }
}

impl Job {
    fn target(self) -> (Unit, Command) {
        match self {
            Self::Script(unit, command)
            | Self::Drive(unit, command, _)
            | Self::Speed(unit, command)
            | Self::Battery(unit, command) => (unit, command),
            Self::Status(unit) => (unit, Command::Status),
            Self::Temperature(unit) => (unit, Command::Temperature),
        }
    }
}

#[cfg(test)]
mod tests;
