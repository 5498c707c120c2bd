//! Decides what to do with the ODrive, and when. PURE.
//!
//! ```text
//!           opened           it tells its firmware          all values read
//!  Absent ----------> Waking ---------------------> Starting ---------------> Ready
//!    ^                  |                              |                        |
//!    +------------------+------- three failures -------+------------------------+   shutdown: Ended
//! ```
//!
//! The rules that keep the wheels under control:
//!
//! - The newest command is sent at once, and again and again; the watchdog of the ODrive releases a motor
//!   that gets none. Commands are not answered, so errors are read all the time.
//! - One question at a time. After a missing or unexpected answer, an empty line ends what may have
//!   arrived of a command, and the line must be silent for a moment.
//! - Every problem stops the wheels of both sides.
//! - The motors are controlled only from the first command until some seconds after a stop. The last
//!   word is a stop, and then the watchdog releases them.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Settings;
use super::note::OdriveNote;
use super::protocol::{
    Axis, Command, Damaged, INVALID_STATE, Lines, WATCHDOG_EXPIRED, feedback, firmware, number,
};
use crate::wheels::{
    BatteryReading, Model, Note, Refusal, Service, StopReason, StreamAction, StreamModel,
};

/// The interval between repetitions of a command.
const REPEAT: Duration = Duration::from_millis(100);
/// The shortest time between two new commands that turn the wheels: a serial line has room for so many.
const GAP: Duration = Duration::from_millis(10);
/// How long the motors hold the wheels after a stop.
const HOLDS: Duration = Duration::from_secs(3);
/// How long an axis may take until it controls its motor.
const ARMS: Duration = Duration::from_secs(1);
/// When a motor that was not controlled may be commanded again.
const ARM_AGAIN: Duration = Duration::from_secs(5);
/// How long an ODrive may take until it answers.
const STARTS: Duration = Duration::from_secs(3);
/// How long the line must be silent before the next question, after a failure.
const SILENCE: Duration = Duration::from_millis(50);
/// So many failures in a row, and the ODrive is gone.
const MAX_FAILURES: u32 = 3;
/// The state of an axis that controls its motor.
const CONTROLS: u8 = 8;
/// The first firmware whose answers with a sum have an end.
const OLDEST: [u8; 3] = [0, 5, 3];

/// Errors that hurt nobody: this driver was late, or an axis refused to control its motor.
const FORGIVEN: u32 = WATCHDOG_EXPIRED | INVALID_STATE;

const UNFIT: &str = "sends answers that do not fit";

/// Read in turns: each round one of them.
const RARE: [Command; 3] = [
    Command::State(Axis::Zero),
    Command::State(Axis::One),
    Command::Voltage,
];

/// The state of the ODrive.
#[derive(Debug)]
pub struct OdriveLogic {
    settings: Settings,
    phase: Phase,
    is_open: bool,
    has_heard: bool,
    actions: VecDeque<StreamAction>,
    lines: Lines,
    firmware: [u8; 3],
    exchange: Option<Exchange>,
    /// When a silence after a failure began, and when something was last heard.
    silence: Option<(Instant, Instant)>,
    /// The questions that are left in this round.
    round: VecDeque<Command>,
    round_at: Instant,
    rare: usize,
    failures: u32,
    untold: bool,
    told: Instant,
    told_new: Instant,
    /// Since when both axes are told to control their motors.
    armed: Option<Instant>,
    /// Whether motors may be controlled, and until when they hold the wheels after a stop.
    holds: bool,
    hold_until: Instant,
    turns_s: [f64; 2],
    errors: [u32; 2],
    not_controlled: Option<(Axis, Instant)>,
    is_said: Option<OdriveNote>,
    battery: Option<(Instant, f64)>,
    service: Service<OdriveNote>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent { until: Instant },
    Opening,
    Waking { since: Instant },
    Starting,
    Ready,
    Ended,
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    command: Command,
    sent: Instant,
}

impl Model for OdriveLogic {
    type Special = OdriveNote;

    fn service(&self) -> &Service<OdriveNote> {
        &self.service
    }

    fn service_mut(&mut self) -> &mut Service<OdriveNote> {
        &mut self.service
    }

    fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    fn refusal(&self) -> Option<Refusal> {
        match self.is_ready() {
            true => self.problem().map(|_| Refusal::Errors),
            false => Some(Refusal::Away),
        }
    }

    fn handle_command(&mut self, _now: Instant) {
        self.untold = true;
    }

    fn handle_stop(&mut self) {
        self.untold = true;
    }

    fn shut_down(&mut self) {
        self.service.motion.forget();
        self.actions.clear();
        self.stop_for_good();
        self.phase = Phase::Ended;
    }

    fn battery(&self, now: Instant) -> Result<BatteryReading, Cow<'_, str>> {
        if let Some(trouble) = self.service.trouble() {
            return Err(trouble.into());
        }
        let measured = self.battery.filter(|_| self.is_ready());
        let (then, volts) = measured.ok_or("the ODrive has not reported the battery")?;
        Ok(BatteryReading {
            // It saturates.
            mv: (volts * 1_000.0).round() as u32,
            is_low: false,
            age: now.saturating_duration_since(then),
        })
    }

    fn trouble(&self) -> Option<Cow<'_, str>> {
        match (self.service.trouble(), self.problem()) {
            (Some(trouble), _) => Some(trouble.into()),
            (None, problem) => problem.map(|note| format!("driving disabled: {note}").into()),
        }
    }
}

impl StreamModel for OdriveLogic {
    type Settings = Settings;

    fn new(settings: Settings, now: Instant) -> Self {
        Self {
            phase: Phase::Absent { until: now },
            is_open: false,
            has_heard: false,
            actions: VecDeque::new(),
            lines: Lines::default(),
            firmware: OLDEST,
            exchange: None,
            silence: None,
            round: VecDeque::new(),
            round_at: now,
            rare: 0,
            failures: 0,
            untold: false,
            told: now,
            told_new: now,
            armed: None,
            holds: false,
            hold_until: now,
            turns_s: [0.0; 2],
            errors: [0; 2],
            not_controlled: None,
            is_said: None,
            battery: None,
            service: Service::new(now, settings.rules.publishing_each()),
            settings,
        }
    }

    fn opened(&mut self, now: Instant) {
        self.is_open = true;
        self.has_heard = false;
        self.lines.clear();
        self.round.clear();
        self.failures = 0;
        self.untold = false;
        self.errors = [0; 2];
        self.not_controlled = None;
        self.battery = None;
        if self.phase != Phase::Ended {
            self.phase = Phase::Waking { since: now };
            // What has arrived there before is no beginning of a command.
            self.be_silent(now);
        }
    }

    fn failed(&mut self, now: Instant, reason: &str) {
        // The last words to a port that has failed, too, fail.
        if !matches!(self.phase, Phase::Absent { .. } | Phase::Ended) {
            self.give_up(now, reason.to_owned());
        }
    }

    fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        self.has_heard = true;
        if let Some((_, heard)) = &mut self.silence {
            *heard = now;
            return;
        }
        for byte in bytes {
            if let Some(line) = self.lines.push(*byte) {
                self.handle_line(now, line);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.silence_ends().is_some_and(|ends| now >= ends) {
            self.silence = None;
            self.lines.clear();
        }
        if self.exchange_ends().is_some_and(|ends| now >= ends) {
            self.handle_failure(now, "does not answer");
        }
        if let Phase::Waking { since } = self.phase
            && now >= since + STARTS
        {
            self.give_up(now, self.never_woke());
        }
    }

    fn poll_action(&mut self, now: Instant) -> Option<StreamAction> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        match self.phase {
            Phase::Absent { .. } if std::mem::take(&mut self.is_open) => {
                return Some(StreamAction::Close);
            }
            Phase::Absent { until } if now >= until => {
                self.phase = Phase::Opening;
                return Some(StreamAction::Open);
            }
            Phase::Absent { .. } | Phase::Opening => {}
            Phase::Ended => return Some(StreamAction::End),
            Phase::Waking { .. } | Phase::Starting => self.ask_next(now),
            Phase::Ready => {
                let sent = (!self.untold).then_some(self.told);
                self.stop_in_time(now, sent, self.settings.watchdog);
                if now >= self.tell_at() {
                    self.tell(now);
                }
                self.ask_next(now);
            }
        }
        self.actions.pop_front()
    }

    fn wake_at(&self) -> Option<Instant> {
        let waits = [self.silence_ends(), self.exchange_ends()];
        let due = match self.phase {
            Phase::Absent { until } => return Some(until),
            Phase::Opening | Phase::Ended => return None,
            Phase::Waking { since } => [Some(since + STARTS), None, None],
            Phase::Starting => [None; 3],
            Phase::Ready => {
                let is_waiting = waits.iter().any(Option::is_some);
                let round = (!is_waiting).then_some(self.round_at);
                [
                    Some(self.tell_at()),
                    round,
                    self.service.motion.idle_stop_due(),
                ]
            }
        };
        due.into_iter().chain(waits).flatten().min()
    }
}

/// Commands.
impl OdriveLogic {
    /// When the newest command must be sent, perhaps again.
    fn tell_at(&self) -> Instant {
        match (self.untold, self.service.motion.turns()) {
            (true, true) => self.told_new + GAP,
            (true, false) => self.told,
            (false, _) => self.told + REPEAT,
        }
    }

    fn tell(&mut self, now: Instant) {
        let is_new = std::mem::take(&mut self.untold);
        let turns = self.service.motion.turns();
        self.told = now;
        if is_new {
            self.told_new = now;
        }
        if is_new || turns {
            self.hold_until = now + HOLDS;
        }
        self.holds |= turns;
        if self.holds && now >= self.hold_until {
            self.holds = false;
            self.armed = None;
            self.send(Axis::BOTH.map(|axis| Command::Control(axis, false)));
        }
        let sides = self.service.sides();
        let turns_s = self.settings.wheels.turns_s(sides);
        self.send(Axis::BOTH.map(|axis| match self.holds {
            true => Command::Velocity(axis, turns_s[axis.index()]),
            false => Command::Feed(axis),
        }));
        // An axis begins with the last velocity that it was told.
        if turns && self.armed.is_none() {
            self.armed = Some(now);
            self.send(Axis::BOTH.map(|axis| Command::Control(axis, true)));
        }
    }

    /// Nothing is sent after this: stops the wheels, and lets the watchdog release the motors. Without
    /// a motor to release, it would leave an error.
    fn stop_for_good(&mut self) {
        let holds = std::mem::take(&mut self.holds);
        self.armed = None;
        // Nothing is sent to what never said that it is an ODrive.
        if self.is_open && matches!(self.phase, Phase::Starting | Phase::Ready) {
            self.send([Command::Empty]);
            self.send(Axis::BOTH.map(|axis| match holds {
                true => Command::Velocity(axis, 0.0),
                false => Command::Watchdog(axis, 0.0),
            }));
        }
    }

    fn send<const N: usize>(&mut self, commands: [Command; N]) {
        let bytes = commands.map(Command::encode).concat();
        self.actions.push_back(StreamAction::Write(bytes));
    }
}

/// Questions.
impl OdriveLogic {
    fn ask_next(&mut self, now: Instant) {
        if self.exchange.is_some() || self.silence.is_some() {
            return;
        }
        let Some(command) = self.next_question(now) else {
            return;
        };
        self.exchange = Some(Exchange { command, sent: now });
        self.send([command]);
    }

    fn next_question(&mut self, now: Instant) -> Option<Command> {
        if let Phase::Waking { .. } = self.phase {
            return Some(Command::Information);
        }
        if self.round.is_empty() {
            if now < self.round_at {
                return None;
            }
            // Missed rounds are left out.
            self.round_at = (self.round_at + self.settings.rules.speeds_interval).max(now);
            self.service.questions.start(now);
            self.round.extend(Axis::BOTH.map(Command::Feedback));
            self.round.extend(Axis::BOTH.map(Command::Error));
            self.round.push_back(RARE[self.rare]);
            self.rare = (self.rare + 1) % RARE.len();
        }
        self.round.front().copied()
    }

    fn handle_line(&mut self, now: Instant, line: Result<String, Damaged>) {
        let Some(Exchange { command, .. }) = self.exchange else {
            return;
        };
        if let Phase::Waking { .. } = self.phase {
            if let Some(firmware) = line.ok().and_then(|line| firmware(&line)) {
                self.wake(now, firmware);
            }
            return;
        }
        let read = line.ok().and_then(|line| self.read(now, command, &line));
        if read.is_none() {
            return self.handle_failure(now, UNFIT);
        }
        self.exchange = None;
        self.failures = 0;
        self.round.pop_front();
        self.handle_problem(now);
        if self.round.is_empty() {
            self.handle_round(now);
        }
    }

    fn wake(&mut self, now: Instant, firmware: [u8; 3]) {
        self.firmware = firmware;
        if !(OLDEST..[0, 6, 0]).contains(&firmware) {
            let [major, minor, revision] = firmware;
            let trouble = format!(
                "the ODrive has firmware {major}.{minor}.{revision}, and this driver needs 0.5.3 to 0.5.6"
            );
            return self.give_up(now, trouble);
        }
        self.phase = Phase::Starting;
        // The rest of the lines.
        self.be_silent(now);
        // Another program, or a driver before this one, may have left wheels that turn.
        self.holds = true;
        self.hold_until = now + HOLDS;
        self.send(Axis::BOTH.map(|axis| Command::Velocity(axis, 0.0)));
        let watchdog_s = self.settings.watchdog.as_secs_f64();
        self.send(Axis::BOTH.map(|axis| Command::Watchdog(axis, watchdog_s)));
        self.send([Command::ClearErrors]);
        self.round.extend(Axis::BOTH.map(Command::Feedback));
        self.round.extend(Axis::BOTH.map(Command::Error));
        self.round.extend(RARE);
    }

    /// Takes an answer; `None` if it does not fit.
    fn read(&mut self, now: Instant, command: Command, line: &str) -> Option<()> {
        match command {
            Command::Feedback(axis) => self.turns_s[axis.index()] = feedback(line)?.1,
            Command::Error(axis) => {
                let error = line.parse().ok()?;
                self.errors[axis.index()] = error;
                if error & INVALID_STATE != 0 {
                    self.not_controlled = Some((axis, now));
                }
            }
            Command::State(axis) => {
                let state: u8 = line.parse().ok()?;
                let is_late = self.armed.is_some_and(|since| now >= since + ARMS);
                if is_late && state != CONTROLS {
                    self.not_controlled = Some((axis, now));
                }
            }
            Command::Voltage => self.battery = Some((now, number(line).filter(|it| *it >= 0.0)?)),
            _ => {}
        }
        Some(())
    }

    fn handle_problem(&mut self, now: Instant) {
        if (self.not_controlled).is_some_and(|(_, since)| now >= since + ARM_AGAIN) {
            self.not_controlled = None;
        }
        let problem = self.problem();
        if problem != self.is_said {
            self.is_said = problem;
            self.say(problem.unwrap_or(OdriveNote::Clean));
        }
        if problem.is_some() && self.armed.take().is_some() {
            self.stop(StopReason::Errors);
        }
        let all = self.errors[0] | self.errors[1];
        if self.round.is_empty() && all != 0 && all & !FORGIVEN == 0 {
            self.send([Command::ClearErrors]);
        }
    }

    fn problem(&self) -> Option<OdriveNote> {
        let error = Axis::BOTH.into_iter().find_map(|axis| {
            let error = self.errors[axis.index()] & !INVALID_STATE;
            (error != 0).then_some(OdriveNote::Error(axis, error))
        });
        let not_controlled = |(axis, _)| OdriveNote::NotControlled(axis);
        error.or(self.not_controlled.map(not_controlled))
    }

    fn handle_round(&mut self, now: Instant) {
        if self.phase == Phase::Starting {
            let [major, minor, revision] = self.firmware;
            (self.service).works(now, || {
                format!("ODrive with firmware {major}.{minor}.{revision}")
            });
            self.phase = Phase::Ready;
            self.round_at = now + self.settings.rules.speeds_interval;
            return;
        }
        if let Some(measured) = self.service.questions.complete(now) {
            let speeds = self.settings.wheels.sides(self.turns_s).wheels();
            (self.service).tell(speeds, measured.askers, measured.published);
        }
    }

    /// A question was not answered, or by something else. The same is asked again.
    fn handle_failure(&mut self, now: Instant, problem: &str) {
        if self.exchange.take().is_none() {
            return;
        }
        if let Phase::Waking { .. } = self.phase {
            return self.be_silent(now);
        }
        self.service.counters.bad_replies += 1;
        self.failures += 1;
        if self.failures == MAX_FAILURES {
            let trouble = format!("the ODrive {problem}: check its supply and its cable");
            return self.give_up(now, trouble);
        }
        self.be_silent(now);
    }

    /// Starts over. Logs the problem unless it was already logged.
    fn give_up(&mut self, now: Instant, trouble: String) {
        let until = self.service.give_up(now, trouble);
        self.exchange = None;
        self.silence = None;
        self.actions.clear();
        self.stop_for_good();
        self.phase = Phase::Absent { until };
    }

    fn never_woke(&self) -> String {
        let baud = self.settings.baud;
        match self.has_heard {
            false => format!(
                "the ODrive does not answer at {baud} baud: check its supply, --port and --baud"
            ),
            true => format!(
                "what arrives at {baud} baud is not from an ODrive with the ASCII protocol: check --port \
                 and --baud"
            ),
        }
    }

    fn be_silent(&mut self, now: Instant) {
        self.exchange = None;
        self.silence = Some((now, now));
        self.send([Command::Empty]);
    }

    fn silence_ends(&self) -> Option<Instant> {
        let (began, heard) = self.silence?;
        Some((heard + SILENCE).min(began + self.settings.reply_timeout.max(SILENCE)))
    }

    fn exchange_ends(&self) -> Option<Instant> {
        Some(self.exchange?.sent + self.settings.reply_timeout)
    }

    fn say(&mut self, note: OdriveNote) {
        self.service.say(Note::Special(note));
    }
}

#[cfg(test)]
mod tests;
