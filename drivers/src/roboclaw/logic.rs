//! What to do with the two controllers, and when. PURE.
//!
//! Tell [`Logic`] what happens ([`Logic::drive`], [`Logic::ask`], ...), then
//! carry out [`Logic::poll_step`] one step after the other, report what came of
//! each, and drain [`Logic::poll_output`] after every change. With no step to
//! do, wait for something to happen or for [`Logic::wake_at`].
//!
//! ```text
//!             opened              script done
//!  Absent ------------> Starting -------------> Ready <-----> Resetting
//!    ^                      |                     |
//!    +------ LettingGo <----+----- no answer -----+     shutdown: Stopping, Ended
//! ```
//!
//! The rules that keep the wheels in hand:
//!
//! - One step at a time on the bus, drive commands first, the newest only: what
//!   was overtaken or came while the controllers were away is never sent.
//! - Whatever is wrong, the wheels are stopped: before the settings at every
//!   start, before giving up a silent controller, and at the end.
//! - The controllers themselves stop when they hear nothing for a while.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_driver::{ClientId, Origin};

pub use self::note::{Note, Refusal, StopReason};
use self::watch::{StatusWatch, Verdict, Watch};
use super::protocol::{Check, Command, Dialect, Fault, Motor, PACKET_GAP, Pid, Reply, Shape};
use super::protocol::{Status, StatusWidth};
use super::units::{Unit, WHEELS, Wheel, WheelSpeeds};
use crate::retry::Retry;

mod note;
mod watch;

/// How often a controller may fail to answer before it counts as gone.
const MAX_FAILURES: u32 = 3;

/// How long it must have failed, too: on a noisy line several replies in a row
/// may be wrong, but not so many.
const GONE_AFTER: Duration = Duration::from_millis(300);

/// How many may wait for the speeds.
const MAX_ASKERS: usize = 256;

/// How long somebody who asks for the speeds is taken to be waiting.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long everything must be well before the next trouble is a new one.
const STABLE: Duration = Duration::from_secs(5);

/// How long the reset line is held: the original's 0.5 ms.
const RESET_PULSE: Duration = Duration::from_micros(500);

/// How often the controllers are asked for their status when nothing else says
/// how often: they must be known to be there.
const HEARTBEAT: Duration = Duration::from_millis(700);

/// How the robot is made, and what it may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The address of the front controller.
    pub front: u8,
    /// The address of the rear controller.
    pub rear: u8,
    /// How packets end; `None` to find out.
    pub check: Option<Check>,
    /// The wheels.
    pub wheel: Wheel,
    /// How all motors keep their speed.
    pub pid: Pid,
    /// Commands with a faster wheel are dropped, in mm/s; `None` for any speed.
    pub max_speed_mm_s: Option<u32>,
    /// The wheels stop so long after the last command.
    pub idle_stop: Option<Duration>,
    /// The controllers are reset so long after the last command, if they can be.
    pub idle_reset: Option<Duration>,
    /// Which lines there are beside the bus.
    pub lines: Lines,
    /// How long the controllers need after a reset.
    pub reset_delay: Duration,
    /// How often errors are looked for.
    pub error_interval: Option<Duration>,
    /// How often the batteries are measured.
    pub battery_interval: Option<Duration>,
    /// How often the temperature is measured.
    pub temperature_interval: Option<Duration>,
    /// Too hot to drive, in tenths of a degree Celsius.
    pub temperature_critical: i32,
    /// Cool enough again.
    pub temperature_drop: i32,
    /// How often something critical is read again before it is believed.
    pub repeats: u8,
    /// Controllers stop when they hear nothing for so many tenths of a second.
    pub watchdog_tenths: Option<u8>,
    /// Whose death stops the wheels.
    pub stop_for: StopFor,
}

/// Which lines there are beside the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Resets both controllers.
    pub reset: bool,
    /// Lit while all is well.
    pub green: bool,
    /// Lit while something is wrong.
    pub red: bool,
}

/// Whose death stops the wheels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopFor {
    /// Only that of the client whose command is in force.
    #[default]
    Commander,
    /// That of any client, as the original did.
    Anyone,
}

/// Something to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Open the port, then call [`Logic::opened`] or [`Logic::open_failed`].
    Open,
    /// Close the port.
    Close,
    /// Write a packet and read the reply, then call [`Logic::exchanged`].
    Exchange {
        /// What to write.
        packet: Vec<u8>,
        /// What to read.
        shape: Shape,
    },
    /// Make a line active or not.
    Set(Line, bool),
    /// Do nothing on the bus for so long.
    Wait(Duration),
    /// There is nothing more to do.
    End,
}

/// A line beside the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Resets both controllers while active.
    Reset,
    /// Lit while active.
    Green,
    /// Lit while active.
    Red,
}

/// What others get to know.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The answer to somebody who has asked.
    Answer(Origin, WheelSpeeds),
    /// A line for the log.
    Say(Note),
}

/// Why there is no whole reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// Nothing came.
    #[error("does not answer")]
    Silent,
    /// The reply ended too early.
    #[error("answers half")]
    Half,
    /// The port has failed.
    #[error("{0}")]
    Port(String),
}

/// How often what has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands that were not carried out, whatever the reason.
    pub refused: u64,
    /// Commands that were too fast.
    pub too_fast: u64,
    /// Replies that were missing, cut off or wrong.
    pub bad_replies: u64,
    /// Questions for the speeds that nobody could answer.
    pub unanswered: u64,
    /// How often the controllers were reset.
    pub resets: u64,
}

/// Both controllers, and who wants what of them.
#[derive(Debug)]
pub struct Logic {
    settings: Settings,
    phase: Phase,
    port_is_open: bool,
    /// What is to be done before the next phase.
    script: VecDeque<Action>,
    /// What the exchange that runs is for.
    current: Option<Job>,
    /// Whether the bus is to be left alone for a moment.
    pauses: bool,
    units: [Controller; 2],
    retry: Retry,
    trouble: Trouble,

    target: WheelSpeeds,
    /// Who has not been told the target yet.
    untold: [bool; 2],
    commanders: Vec<ClientId>,
    /// Who has been told last.
    last_told: Unit,
    /// Whether drive commands leave room for one other job now.
    yields: bool,
    last_command: Instant,
    has_idled: bool,
    next_idle_reset: Instant,
    refusals: note::Refusals,

    askers: VecDeque<(Origin, Instant)>,
    reading: Option<Reading>,

    status: StatusWatch,
    temperature: Watch,
    battery: Watch,
    battery_low: bool,
    hot: bool,
    /// Whether the errors that there are have led to a reset.
    reset_for_errors: bool,
    reset_is_active: bool,
    lit: [Option<bool>; 2],

    outputs: VecDeque<Output>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent { until: Instant },
    Starting,
    Ready { since: Instant },
    Resetting,
    LettingGo,
    Stopping,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Tell(Unit, Command),
    /// Firmware that does not know it is fine, too.
    Try(Unit, Command),
    /// Whether it arrives or not.
    Shout(Unit, Command),
    Set(Line, bool),
    Wait(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    Script(Unit, Command),
    Drive(Unit, Command, WheelSpeeds),
    Speed(Unit, Command),
    Status(Unit),
    Temperature(Unit),
    Battery(Command),
}

#[derive(Debug, Default)]
struct Controller {
    check: Option<Check>,
    status: Option<StatusWidth>,
    version: String,
    failures: u32,
    failing_since: Option<Instant>,
}

/// The speeds that have been read so far, in the order of [`WHEELS`].
#[derive(Debug)]
struct Reading {
    qpps: [i32; 4],
    done: usize,
    askers: Vec<Origin>,
}

/// What is wrong with the way to the controllers.
#[derive(Debug, Default)]
struct Trouble {
    since: Option<Instant>,
    said: Vec<String>,
    refused: u64,
    was_ready: bool,
}

impl Logic {
    /// Begins with the port closed.
    pub fn new(settings: Settings, now: Instant) -> Self {
        let idle_reset = settings.idle_reset.unwrap_or_default();
        Self {
            phase: Phase::Absent { until: now },
            port_is_open: false,
            script: VecDeque::new(),
            current: None,
            pauses: false,
            units: Default::default(),
            retry: Retry::default(),
            trouble: Trouble::default(),
            target: WheelSpeeds::ZERO,
            untold: [false; 2],
            commanders: Vec::new(),
            last_told: Unit::Rear,
            yields: false,
            last_command: now,
            has_idled: false,
            next_idle_reset: now + idle_reset,
            refusals: note::Refusals::default(),
            askers: VecDeque::new(),
            reading: None,
            status: StatusWatch::new(now, status_interval(&settings), settings.repeats),
            temperature: Watch::new(now, settings.temperature_interval),
            battery: Watch::new(now, settings.battery_interval),
            battery_low: false,
            hot: false,
            reset_for_errors: false,
            reset_is_active: false,
            lit: [None; 2],
            outputs: VecDeque::new(),
            counters: Counters::default(),
            settings,
        }
    }

    /// Somebody wants the wheels to turn. Counts only when they can.
    pub fn drive(&mut self, now: Instant, clients: &[ClientId], speeds: WheelSpeeds) {
        if let Some(refusal) = self.refusal(speeds) {
            return self.refuse(now, refusal);
        }
        self.target = speeds;
        self.untold = [true; 2];
        self.commanders = clients.to_vec();
        self.last_command = now;
        self.has_idled = false;
        self.next_idle_reset = now + self.settings.idle_reset.unwrap_or_default();
    }

    /// Somebody wants to know the speeds.
    ///
    /// Only what is measured after this is an answer. During a reset the wheels
    /// stand, which is an answer, too. While the controllers are away there is
    /// none, and whoever asks finds out by waiting.
    pub fn ask(&mut self, now: Instant, origin: Origin) {
        match self.phase {
            Phase::Resetting => {
                (self.outputs).push_back(Output::Answer(origin, WheelSpeeds::ZERO));
            }
            Phase::Stopping | Phase::Ended => self.counters.unanswered += 1,
            _ => {
                self.forget_askers(now);
                if self.askers.len() == MAX_ASKERS {
                    self.askers.pop_front();
                    self.counters.unanswered += 1;
                }
                self.askers.push_back((origin, now));
            }
        }
    }

    /// A client is gone.
    pub fn client_died(&mut self, client: ClientId) {
        let stops = match self.settings.stop_for {
            StopFor::Commander => self.commanders.contains(&client),
            StopFor::Anyone => true,
        };
        if stops {
            self.stop(StopReason::ClientDied(client));
        }
    }

    /// The end: the wheels stop, and then there is [`Step::End`].
    pub fn shut_down(&mut self) {
        self.script.clear();
        self.current = None;
        if self.reset_is_active {
            self.script.push_back(Action::Set(Line::Reset, false));
        }
        if self.port_is_open {
            let stop = Command::Drive { m1: 0, m2: 0 };
            for command in [stop, Command::Release] {
                for unit in Unit::BOTH {
                    self.script.push_back(Action::Shout(unit, command));
                }
            }
        }
        self.phase = Phase::Stopping;
    }

    /// The port is open.
    pub fn opened(&mut self) {
        self.port_is_open = true;
        self.phase = Phase::Starting;
        self.units = Default::default();
        let probe = [Command::Version, Command::Status];
        self.script = probe
            .into_iter()
            .flat_map(|command| Unit::BOTH.map(|unit| Action::Tell(unit, command)))
            .collect();
        self.script_settings();
    }

    /// The port cannot be opened.
    pub fn open_failed(&mut self, now: Instant, reason: &str) {
        self.complain(now, format!("cannot open the port: {reason}"));
        self.wait_for_port(now);
    }

    /// What came of an exchange.
    pub fn exchanged(&mut self, now: Instant, result: Result<Vec<u8>, ExchangeError>) {
        let Some(job) = self.current.take() else {
            return;
        };
        let (unit, command) = job.target();
        let address = self.address(unit);
        let reply = match result {
            Err(ExchangeError::Port(reason)) => {
                self.complain(now, format!("the port has failed: {reason}"));
                return self.wait_for_port(now);
            }
            Err(error) => Err(error.to_string()),
            Ok(bytes) => {
                let check = self.unit(unit).check.unwrap_or(Check::Legacy);
                (command.decode(address, check, &bytes)).map_err(|error| error.to_string())
            }
        };
        match reply {
            Ok(reply) => self.succeeded(now, job, reply),
            Err(problem) => self.failed(now, job, &problem),
        }
    }

    /// What to do next, if there is something.
    pub fn poll_step(&mut self, now: Instant) -> Option<Step> {
        if let Some(step) = self.light() {
            return Some(step);
        }
        if std::mem::take(&mut self.pauses) {
            return Some(Step::Wait(PACKET_GAP));
        }
        loop {
            match self.phase {
                Phase::Absent { .. } if self.port_is_open => {
                    self.port_is_open = false;
                    return Some(Step::Close);
                }
                Phase::Absent { until } => return (now >= until).then_some(Step::Open),
                Phase::Ended => return Some(Step::End),
                Phase::Ready { .. } => match self.ready_job(now) {
                    Some(job) => return Some(self.exchange(job)),
                    None if matches!(self.phase, Phase::Ready { .. }) => return None,
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

    /// What others get to know.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When there may be something to do, if nothing happens before.
    pub fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Absent { until } => Some(until),
            Phase::Ready { .. } => [
                self.idle_stop_due(),
                self.idle_reset_due(),
                Some(self.status.due()),
                self.temperature.due(),
                self.battery.due(),
            ]
            .into_iter()
            .flatten()
            .min(),
            _ => None,
        }
    }

    /// How often what has happened.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether commands reach the wheels.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready { .. })
    }
}

/// Commands.
impl Logic {
    fn refusal(&self, speeds: WheelSpeeds) -> Option<Refusal> {
        let max_mm_s = self.settings.max_speed_mm_s.unwrap_or(u32::MAX);
        let fastest_mm_s = speeds.fastest();
        match self.phase {
            Phase::Resetting => Some(Refusal::Resetting),
            Phase::Ready { .. } if self.battery_low => Some(Refusal::BatteryLow),
            Phase::Ready { .. } if self.status.has_errors() => Some(Refusal::Errors),
            Phase::Ready { .. } if self.hot => Some(Refusal::Hot),
            Phase::Ready { .. } if fastest_mm_s > max_mm_s => Some(Refusal::TooFast {
                fastest_mm_s,
                max_mm_s,
            }),
            Phase::Ready { .. } => None,
            _ => Some(Refusal::Away),
        }
    }

    fn refuse(&mut self, now: Instant, refusal: Refusal) {
        self.counters.refused += 1;
        match refusal {
            Refusal::TooFast { .. } => self.counters.too_fast += 1,
            // Told when they are back.
            Refusal::Away => {
                self.trouble.refused += 1;
                return;
            }
            _ => {}
        }
        if let Some(count) = self.refusals.say(now, refusal) {
            self.say(Note::Refused { refusal, count });
        }
    }

    fn stop(&mut self, reason: StopReason) {
        if !self.is_ready() || (self.target == WheelSpeeds::ZERO && self.untold == [false; 2]) {
            // The wheels stand, but it costs nothing to say it once more.
            self.untold = [self.is_ready(); 2];
            return;
        }
        self.target = WheelSpeeds::ZERO;
        self.untold = [true; 2];
        self.commanders.clear();
        self.say(Note::Stopped(reason));
    }

    /// What is to be done while all is well.
    fn ready_job(&mut self, now: Instant) -> Option<Job> {
        if self.idle_stop_due().is_some_and(|due| now >= due) {
            self.has_idled = true;
            self.stop(StopReason::Idle);
        }
        if self.idle_reset_due().is_some_and(|due| now >= due) {
            self.next_idle_reset = now + self.settings.idle_reset.unwrap_or_default();
            self.reset();
            return None;
        }
        let drive = self.drive_job();
        let is_stop = self.target == WheelSpeeds::ZERO;
        if drive.is_some() && (is_stop || !self.yields) {
            self.yields = matches!(drive, Some(Job::Drive(Unit::Rear, ..)));
            return drive;
        }
        self.yields = false;
        self.other_job(now).or(drive)
    }

    fn drive_job(&self) -> Option<Job> {
        // Commands that come faster than they go must reach the rear, too.
        let order = match self.last_told {
            Unit::Front => [Unit::Rear, Unit::Front],
            Unit::Rear => Unit::BOTH,
        };
        let unit = order.into_iter().find(|unit| self.untold[*unit as usize])?;
        let command = self.target.command(unit, self.settings.wheel);
        Some(Job::Drive(unit, command, self.target))
    }

    /// Monitors come first: they are rare, and speeds may be asked for all the time.
    fn other_job(&mut self, now: Instant) -> Option<Job> {
        if let Some(unit) = self.status.next(now) {
            return Some(Job::Status(unit));
        }
        if let Some(index) = self.temperature.next(now) {
            return Some(Job::Temperature(Unit::BOTH[index]));
        }
        if let Some(index) = self.battery.next(now) {
            let commands = [Command::MainBattery, Command::LogicBattery];
            return Some(Job::Battery(commands[index]));
        }
        if self.reading.is_none() {
            self.forget_askers(now);
            if self.askers.is_empty() {
                return None;
            }
            self.reading = Some(Reading {
                qpps: [0; 4],
                done: 0,
                askers: self.askers.drain(..).map(|(origin, _)| origin).collect(),
            });
        }
        let done = self.reading.as_ref().map_or(0, |reading| reading.done);
        let (unit, motor) = WHEELS[done];
        Some(Job::Speed(unit, Command::Speed(motor)))
    }

    fn idle_stop_due(&self) -> Option<Instant> {
        let idle_stop = self.settings.idle_stop.filter(|_| !self.has_idled)?;
        Some(self.last_command + idle_stop)
    }

    fn idle_reset_due(&self) -> Option<Instant> {
        let can_reset = self.settings.lines.reset && self.settings.idle_reset.is_some();
        can_reset.then_some(self.next_idle_reset)
    }

    fn forget_askers(&mut self, now: Instant) {
        while let Some((_, since)) = self.askers.front() {
            if now.saturating_duration_since(*since) < PATIENCE {
                break;
            }
            self.askers.pop_front();
            self.counters.unanswered += 1;
        }
    }
}

/// What comes of exchanges.
impl Logic {
    fn succeeded(&mut self, now: Instant, job: Job, reply: Reply) {
        let (unit, _) = job.target();
        self.units[unit as usize].failures = 0;
        self.units[unit as usize].failing_since = None;
        match (job, reply) {
            (Job::Script(..), reply) => {
                self.script.pop_front();
                match reply {
                    Reply::Version(version, check) => {
                        self.units[unit as usize].version = version;
                        self.units[unit as usize].check = self.settings.check.or(Some(check));
                    }
                    Reply::Status(status) => {
                        self.units[unit as usize].status = Some(status.width);
                    }
                    _ => {}
                }
            }
            (Job::Drive(unit, _, told), _) => {
                self.last_told = unit;
                // Otherwise a newer command has come meanwhile.
                self.untold[unit as usize] &= told != self.target;
            }
            (Job::Speed(..), Reply::Number(qpps)) => self.speed_read(qpps),
            (Job::Status(unit), Reply::Status(status)) => self.status_read(now, unit, status),
            (Job::Temperature(_), Reply::Number(tenths)) => {
                if let Some(values) = self.temperature.read(now, tenths) {
                    self.temperature_read(now, values);
                }
            }
            (Job::Battery(_), Reply::Number(tenths)) => {
                if let Some([main_dv, logic_dv]) = self.battery.read(now, tenths)
                    && self.battery.has_moved_by(main_dv, 5)
                {
                    self.say(Note::Battery { main_dv, logic_dv });
                }
            }
            // A command's reply is of its own kind.
            _ => {}
        }
    }

    fn failed(&mut self, now: Instant, job: Job, problem: &str) {
        self.counters.bad_replies += 1;
        self.pauses = true;
        let (unit, _) = job.target();
        match job {
            Job::Temperature(_) if self.temperature.failed(now) => {
                self.say(Note::Unknown("temperature"));
            }
            Job::Battery(_) if self.battery.failed(now) => self.say(Note::Unknown("batteries")),
            Job::Temperature(_) | Job::Battery(_) => {}
            Job::Script(..) if !matches!(self.script.front(), Some(Action::Tell(..))) => {
                self.script.pop_front();
            }
            _ => {
                let controller = &mut self.units[unit as usize];
                controller.failures += 1;
                let since = *controller.failing_since.get_or_insert(now);
                let is_long = now.saturating_duration_since(since) >= GONE_AFTER;
                if is_long && controller.failures >= MAX_FAILURES {
                    self.complain(now, format!("the {} controller {problem}", unit.name()));
                    self.let_go(now);
                }
            }
        }
    }

    fn speed_read(&mut self, qpps: i32) {
        let Some(reading) = &mut self.reading else {
            return;
        };
        reading.qpps[reading.done] = qpps;
        reading.done += 1;
        if reading.done == WHEELS.len() {
            let speeds = WheelSpeeds::of_qpps(reading.qpps, self.settings.wheel);
            for origin in self
                .reading
                .take()
                .into_iter()
                .flat_map(|reading| reading.askers)
            {
                self.outputs.push_back(Output::Answer(origin, speeds));
            }
        }
    }

    fn status_read(&mut self, now: Instant, unit: Unit, status: Status) {
        let verdict = self.status.read(now, unit, status);
        if self.settings.error_interval.is_none() {
            // It was only to know that somebody is there.
            self.status.forget();
            return;
        }
        match verdict {
            Verdict::Nothing => {}
            Verdict::Clean => {
                self.reset_for_errors = false;
                self.say(Note::Clean);
            }
            Verdict::New(faults) => {
                for (unit, fault) in &faults {
                    self.say(Note::Fault(*unit, *fault));
                }
                if faults.iter().any(|(_, fault)| *fault == Fault::BatteryLow) {
                    self.battery_low = true;
                    self.stop(StopReason::BatteryLow);
                }
                let is_error = |(_, fault): &(Unit, Fault)| matches!(fault, Fault::Error(_));
                if faults.iter().any(is_error) {
                    self.stop(StopReason::Errors);
                    if self.settings.lines.reset && !self.reset_for_errors {
                        self.reset_for_errors = true;
                        self.say(Note::ResetForErrors);
                        self.reset();
                    }
                }
            }
        }
    }

    fn temperature_read(&mut self, now: Instant, values: [i32; 2]) {
        let [front, rear] = values;
        let hottest = front.max(rear);
        let changes = if self.hot {
            hottest < self.settings.temperature_drop
        } else {
            hottest > self.settings.temperature_critical
        };
        if self
            .temperature
            .confirms(now, changes, self.settings.repeats)
        {
            self.hot = !self.hot;
            self.say(Note::Temperature {
                hot: self.hot,
                tenths: hottest,
            });
            if self.hot {
                self.stop(StopReason::Hot);
            }
        }
    }
}

/// Phases.
impl Logic {
    fn script_settings(&mut self) {
        let pid = self.settings.pid;
        let stop = Command::Drive { m1: 0, m2: 0 };
        let stops = Unit::BOTH.map(|unit| Action::Tell(unit, stop));
        self.script.extend(stops);
        for unit in Unit::BOTH {
            let commands = [
                Command::SetPid(Motor::M1, pid),
                Command::SetPid(Motor::M2, pid),
                Command::SetQuadrature(Motor::M1),
                Command::SetQuadrature(Motor::M2),
            ];
            (self.script).extend(commands.map(|command| Action::Tell(unit, command)));
            if let Some(tenths) = self.settings.watchdog_tenths {
                let command = Command::SetTimeout(tenths);
                self.script.push_back(Action::Try(unit, command));
                // Firmware that does not know it understands nothing before a pause.
                self.script.push_back(Action::Wait(2 * PACKET_GAP));
            }
        }
    }

    fn script_step(&mut self) -> Option<Step> {
        loop {
            let action = *self.script.front()?;
            match action {
                Action::Tell(unit, command) | Action::Try(unit, command) => {
                    return Some(self.exchange(Job::Script(unit, command)));
                }
                Action::Shout(unit, command) => {
                    // Who has never said how it wants to be spoken to was never told to move.
                    if self.unit(unit).check.is_some() {
                        return Some(self.exchange(Job::Script(unit, command)));
                    }
                    self.script.pop_front();
                }
                Action::Set(line, active) => {
                    self.script.pop_front();
                    if line == Line::Reset {
                        self.reset_is_active = active;
                    }
                    return Some(Step::Set(line, active));
                }
                Action::Wait(duration) => {
                    self.script.pop_front();
                    return Some(Step::Wait(duration));
                }
            }
        }
    }

    fn script_done(&mut self, now: Instant) {
        match self.phase {
            Phase::Starting => {
                self.get_ready(now);
                let [front, rear] = &self.units;
                let note = match self.trouble.since.take() {
                    Some(since) if self.trouble.was_ready => Note::Back {
                        after: now.saturating_duration_since(since),
                        refused: self.trouble.refused,
                    },
                    _ => Note::Ready {
                        versions: [front.version.clone(), rear.version.clone()],
                        check: front.check.unwrap_or(Check::Legacy),
                    },
                };
                self.trouble = Trouble {
                    was_ready: true,
                    ..Trouble::default()
                };
                self.say(note);
            }
            Phase::Resetting => self.get_ready(now),
            Phase::LettingGo => self.wait_for_port(now),
            Phase::Stopping => self.phase = Phase::Ended,
            Phase::Absent { .. } | Phase::Ready { .. } | Phase::Ended => {}
        }
    }

    fn get_ready(&mut self, now: Instant) {
        self.phase = Phase::Ready { since: now };
        self.forget_motion();
        self.status.begin(now);
        self.temperature.begin(now);
        self.battery.begin(now);
    }

    fn reset(&mut self) {
        self.counters.resets += 1;
        self.phase = Phase::Resetting;
        self.forget_motion();
        // They stand, and whoever asks is told so.
        let reading = self.reading.take().into_iter();
        let askers = reading.flat_map(|reading| reading.askers);
        let waiting = self.askers.drain(..).map(|(origin, _)| origin);
        for origin in askers.chain(waiting) {
            (self.outputs).push_back(Output::Answer(origin, WheelSpeeds::ZERO));
        }
        self.script = VecDeque::from([
            Action::Set(Line::Reset, true),
            Action::Wait(RESET_PULSE),
            Action::Set(Line::Reset, false),
            Action::Wait(self.settings.reset_delay),
        ]);
        self.script_settings();
    }

    /// One controller does not answer: the other one must not drive on alone.
    fn let_go(&mut self, now: Instant) {
        if let Phase::Ready { since } = self.phase
            && now.saturating_duration_since(since) >= STABLE
        {
            self.retry.succeeded();
        }
        self.phase = Phase::LettingGo;
        self.forget_motion();
        self.forget_reading();
        let stop = Command::Drive { m1: 0, m2: 0 };
        (self.script) = Unit::BOTH
            .map(|unit| Action::Shout(unit, stop))
            .into_iter()
            .collect();
    }

    fn wait_for_port(&mut self, now: Instant) {
        if let Phase::Ready { since } = self.phase
            && now.saturating_duration_since(since) >= STABLE
        {
            self.retry.succeeded();
        }
        self.forget_motion();
        self.forget_reading();
        self.script.clear();
        self.phase = match self.phase {
            Phase::Stopping | Phase::Ended => Phase::Ended,
            _ => Phase::Absent {
                until: now + self.retry.failed(),
            },
        };
    }

    /// What was wanted before is not wanted any more.
    fn forget_motion(&mut self) {
        self.target = WheelSpeeds::ZERO;
        self.untold = [false; 2];
        self.commanders.clear();
    }

    fn forget_reading(&mut self) {
        if let Some(reading) = self.reading.take() {
            self.counters.unanswered += reading.askers.len() as u64;
        }
    }

    /// Each thing that is wrong is said once until all is well again.
    fn complain(&mut self, now: Instant, text: String) {
        const MAX_SAID: usize = 8;
        self.trouble.since.get_or_insert(now);
        if self.trouble.said.len() < MAX_SAID && !self.trouble.said.contains(&text) {
            self.trouble.said.push(text.clone());
            self.say(Note::Trouble(text));
        }
    }

    fn light(&mut self) -> Option<Step> {
        let is_bad = self.trouble.since.is_some()
            || self.battery_low
            || self.hot
            || self.status.has_errors();
        let green = self.is_ready() && self.untold == [false; 2];
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
                return Some(Step::Set(line, lit));
            }
        }
        None
    }

    fn exchange(&mut self, job: Job) -> Step {
        self.current = Some(job);
        let (unit, command) = job.target();
        let address = self.address(unit);
        let unit = self.unit(unit);
        let dialect = match (unit.check, unit.status) {
            (Some(check), Some(status)) => Some(Dialect { check, status }),
            _ => None,
        };
        let packet = command.encode(address, unit.check.unwrap_or(Check::Legacy));
        let shape = command.shape(dialect);
        Step::Exchange { packet, shape }
    }

    fn unit(&self, unit: Unit) -> &Controller {
        &self.units[unit as usize]
    }

    fn address(&self, unit: Unit) -> u8 {
        match unit {
            Unit::Front => self.settings.front,
            Unit::Rear => self.settings.rear,
        }
    }

    fn say(&mut self, note: Note) {
        self.outputs.push_back(Output::Say(note));
    }
}

impl Job {
    fn target(self) -> (Unit, Command) {
        match self {
            Self::Script(unit, command)
            | Self::Drive(unit, command, _)
            | Self::Speed(unit, command) => (unit, command),
            Self::Status(unit) => (unit, Command::Status),
            Self::Temperature(unit) => (unit, Command::Temperature),
            // Both controllers hang on the same batteries.
            Self::Battery(command) => (Unit::Front, command),
        }
    }
}

/// How often the controllers are asked for their status: as often as errors are
/// looked for, and often enough that their own watchdog sleeps.
fn status_interval(settings: &Settings) -> Duration {
    let errors = settings.error_interval.unwrap_or(HEARTBEAT);
    let watchdog =
        (settings.watchdog_tenths).map(|tenths| Duration::from_millis(100) * tenths.into());
    watchdog.map_or(errors, |watchdog| errors.min(watchdog / 3))
}

#[cfg(test)]
mod tests;
