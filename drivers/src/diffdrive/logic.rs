//! Decides what to do with the board, and when. PURE.
//!
//! ```text
//!           opened            it answers           counts read
//!  Absent ----------> Waking -----------> SettingUp ----------> Ready
//!    ^                  |                     |                   |
//!    +------------------+--- three failures --+-------------------+   shutdown: Stopping, Ended
//! ```
//!
//! The rules that keep the wheels under control:
//!
//! - One exchange at a time. After a missing or unexpected answer, an empty line ends what the board may
//!   have of a command, and the line must be silent for a moment: no answer is taken for that of another
//!   command.
//! - The newest command is sent first, and again and again while the wheels turn: the firmware stops them
//!   2 s after the last one.
//! - Every problem stops the wheels: at every start, before the board is given up, and at the end.
//! - Opening the port restarts most boards. Nothing is sent to them before they answer, except an empty
//!   line.

use std::time::{Duration, Instant};

use super::protocol::{Command, Family, Line, Lines};
use super::{BoardNote, Firmware, Settings};
use crate::wheels::encoders::{Encoders, Reading, Verdict};
use crate::wheels::{Model, Note, Refusal, Service, Sides, StreamAction, StreamModel};

/// How often a board that starts is asked.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// How long a board may start: its boot loader waits up to 2 s for a new program.
const STARTS: Duration = Duration::from_secs(5);
/// How long the line must be silent before the next command, after a failure.
const SILENCE: Duration = Duration::from_millis(50);
/// So many failures in a row, and the board is gone.
const MAX_FAILURES: u32 = 3;
/// The interval between repetitions of a command.
const REPEAT: Duration = Duration::from_millis(500);
/// The firmware stops the motors this long after the last command for them.
const FIRMWARE_STOPS: Duration = Duration::from_secs(2);
/// The time limit for answers at the end: the driver must end in time.
const LAST_ANSWER: Duration = Duration::from_millis(250);

/// What is wrong with an answer.
const UNFIT: &str = "sends answers that do not fit";

const STAND: Command = Command::Speeds { left: 0, right: 0 };

/// The state of the board.
#[derive(Debug)]
pub struct DiffdriveLogic {
    settings: Settings,
    phase: Phase,
    is_open: bool,
    family: Family,
    /// Whether the board must be told to stop before the port is closed.
    says_farewell: bool,
    /// Whether anything has arrived since the port was opened.
    has_heard: bool,
    lines: Lines,
    exchange: Option<Exchange>,
    recovery: Option<Recovery>,
    /// In a row.
    failures: u32,
    /// Whether the newest command must be sent, and when it was sent last.
    untold: bool,
    told: Instant,
    poll_at: Instant,
    encoders: Encoders,
    service: Service<BoardNote>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent { until: Instant },
    Opening,
    Waking { since: Instant },
    SettingUp(Step),
    Ready,
    Stopping,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Stand,
    Gains,
    Counts,
}

/// A command that has not been answered yet.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    command: Command,
    sent: Instant,
}

/// What follows a failure.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    began: Instant,
    /// Whether the empty line was sent.
    is_sent: bool,
    /// Whether it was answered.
    is_answered: bool,
    heard: Instant,
}

impl Recovery {
    fn new(now: Instant) -> Self {
        Self {
            began: now,
            is_sent: false,
            is_answered: false,
            heard: now,
        }
    }

    /// When the next command may be sent.
    fn ends(&self, reply_timeout: Duration) -> Instant {
        let latest = self.began + reply_timeout.max(SILENCE);
        match self.is_answered {
            true => (self.heard + SILENCE).min(latest),
            false => latest,
        }
    }
}

impl Model for DiffdriveLogic {
    type Special = BoardNote;

    fn service(&self) -> &Service<BoardNote> {
        &self.service
    }

    fn service_mut(&mut self) -> &mut Service<BoardNote> {
        &mut self.service
    }

    fn is_ready(&self) -> bool {
        self.phase == Phase::Ready
    }

    fn refusal(&self) -> Option<Refusal> {
        (!self.is_ready()).then_some(Refusal::Away)
    }

    fn handle_command(&mut self, _now: Instant) {
        self.untold = true;
    }

    fn handle_stop(&mut self) {
        self.untold = true;
    }

    fn shut_down(&mut self) {
        // Before it has answered, the board was never told to move.
        self.phase = match self.phase {
            Phase::SettingUp(_) | Phase::Ready => Phase::Stopping,
            _ => Phase::Ended,
        };
        self.failures = 0;
        self.exchange = None;
        self.service.motion.forget();
    }
}

impl StreamModel for DiffdriveLogic {
    type Settings = Settings;

    fn new(settings: Settings, now: Instant) -> Self {
        Self {
            phase: Phase::Absent { until: now },
            is_open: false,
            family: Family::Bridge,
            says_farewell: false,
            has_heard: false,
            lines: Lines::default(),
            exchange: None,
            recovery: None,
            failures: 0,
            untold: false,
            told: now,
            poll_at: now,
            encoders: settings.encoders(),
            service: Service::new(now, settings.rules.publishing_each()),
            settings,
        }
    }

    fn opened(&mut self, now: Instant) {
        self.is_open = true;
        self.has_heard = false;
        self.failures = 0;
        self.lines.clear();
        self.encoders = self.settings.encoders();
        self.phase = match self.phase {
            Phase::Ended => Phase::Ended,
            _ => Phase::Waking { since: now },
        };
    }

    fn failed(&mut self, now: Instant, reason: &str) {
        // A farewell to a port that has failed, too, fails.
        if !matches!(self.phase, Phase::Absent { .. } | Phase::Ended) {
            self.give_up(now, reason.to_owned());
        }
    }

    fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        self.has_heard = true;
        if let Some(recovery) = &mut self.recovery {
            recovery.heard = now;
            recovery.is_answered |= recovery.is_sent && bytes.contains(&b'\n');
            return;
        }
        for byte in bytes {
            if let Some(line) = self.lines.push(*byte) {
                self.handle_line(now, line);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if (self.recovery).is_some_and(|it| now >= it.ends(self.reply_limit())) {
            self.recovery = None;
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
        match self.phase {
            Phase::Absent { .. } if std::mem::take(&mut self.says_farewell) => {
                // Behind the end of what it may have of another command.
                let commands = [Command::Empty, STAND].map(|it| it.encode(self.family));
                return Some(StreamAction::Write(commands.concat()));
            }
            Phase::Absent { .. } if self.is_open => {
                self.is_open = false;
                return Some(StreamAction::Close);
            }
            Phase::Absent { until } => {
                if now < until {
                    return None;
                }
                self.phase = Phase::Opening;
                return Some(StreamAction::Open);
            }
            Phase::Opening => return None,
            Phase::Ended => return Some(StreamAction::End),
            Phase::Waking { .. } | Phase::SettingUp(_) | Phase::Ready | Phase::Stopping => {}
        }
        if let Some(recovery) = &mut self.recovery {
            let is_sent = std::mem::replace(&mut recovery.is_sent, true);
            return (!is_sent).then(|| StreamAction::Write(Command::Empty.encode(self.family)));
        }
        if self.exchange.is_some() {
            return None;
        }
        let command = self.next_command(now)?;
        self.exchange = Some(Exchange { command, sent: now });
        Some(StreamAction::Write(command.encode(self.family)))
    }

    fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Absent { until } => return Some(until),
            Phase::Opening | Phase::Ended => return None,
            Phase::Waking { .. } | Phase::SettingUp(_) | Phase::Ready | Phase::Stopping => {}
        }
        let recovered = (self.recovery).map(|it| it.ends(self.reply_limit()));
        let woken = match self.phase {
            Phase::Waking { since } => Some(since + STARTS),
            _ => None,
        };
        let ready = (self.is_ready() && self.exchange.is_none() && self.recovery.is_none())
            .then(|| [Some(self.poll_at), self.repeat_at()])
            .into_iter()
            .flatten();
        let idle = self.service.motion.idle_stop_due();
        let idle = idle.filter(|_| self.is_ready());
        [recovered, self.exchange_ends(), woken, idle]
            .into_iter()
            .chain(ready)
            .flatten()
            .min()
    }
}

impl DiffdriveLogic {
    fn next_command(&mut self, now: Instant) -> Option<Command> {
        match self.phase {
            Phase::Waking { .. } => Some(match self.settings.firmware {
                Firmware::Auto => Command::Empty,
                // It may answer nothing to an empty line.
                Firmware::Bridge | Firmware::Andino => Command::Counts,
            }),
            Phase::SettingUp(Step::Stand) | Phase::Stopping => Some(STAND),
            Phase::SettingUp(Step::Gains) => match self.settings.gains {
                Some(gains) => Some(Command::Gains(gains)),
                None => {
                    self.phase = Phase::SettingUp(Step::Counts);
                    Some(Command::Counts)
                }
            },
            Phase::SettingUp(Step::Counts) => Some(Command::Counts),
            Phase::Ready => self.ready_command(now),
            Phase::Absent { .. } | Phase::Opening | Phase::Ended => None,
        }
    }

    fn ready_command(&mut self, now: Instant) -> Option<Command> {
        let sent = (!self.untold).then_some(self.told);
        self.stop_in_time(now, sent, FIRMWARE_STOPS);
        let must_tell = self.untold || self.repeat_at().is_some_and(|at| now >= at);
        let is_doubtful = self.failures > 0;
        let polls = now >= self.poll_at || is_doubtful;
        // A stop comes first. Other commands leave room for the encoders, however often they come. After
        // a failure, the counts show whether the board has restarted.
        let tells_first = (self.told < self.poll_at && !is_doubtful) || !polls;
        if must_tell && (tells_first || !self.service.motion.turns()) {
            self.untold = false;
            self.told = now;
            let unit = self.settings.unit(self.family);
            return Some(self.settings.wheels.command(self.service.sides(), unit));
        }
        if !polls {
            return None;
        }
        let interval = self.settings.rules.speeds_interval;
        // Missed ones are left out.
        self.poll_at = (self.poll_at + interval).max(now);
        self.service.questions.start(now);
        Some(Command::Counts)
    }

    /// When the newest command must be sent again.
    fn repeat_at(&self) -> Option<Instant> {
        (self.service.motion.turns()).then(|| self.told + REPEAT)
    }

    fn handle_line(&mut self, now: Instant, line: Line) {
        let Some(Exchange { command, sent }) = self.exchange else {
            return;
        };
        if let Phase::Waking { .. } = self.phase {
            return self.handle_waking(now, command, line);
        }
        match (command, line) {
            (Command::Gains(_), Line::Updated) => {}
            (Command::Speeds { .. } | Command::Gains(_), Line::Done) => self.done(now),
            (Command::Counts, Line::Counts(counts)) => {
                let verdict = self.encoders.read(Reading {
                    asked: sent,
                    answered: now,
                    counts,
                });
                if verdict == Verdict::Doubted {
                    return self.handle_failure(now, UNFIT);
                }
                self.done(now);
                self.handle_counts(now, verdict == Verdict::Jumped);
            }
            _ => self.handle_failure(now, UNFIT),
        }
    }

    /// While a board starts, its boot loader and its program may send anything.
    fn handle_waking(&mut self, now: Instant, command: Command, line: Line) {
        self.family = match (self.settings.firmware, command, line) {
            (Firmware::Auto, Command::Empty, Line::Invalid(family)) => family,
            (Firmware::Bridge, Command::Counts, Line::Counts(_)) => Family::Bridge,
            (Firmware::Andino, Command::Counts, Line::Counts(_)) => Family::Andino,
            _ => return,
        };
        self.exchange = None;
        // Answers to earlier questions may follow.
        self.recovery = Some(Recovery::new(now));
        self.phase = Phase::SettingUp(Step::Stand);
    }

    /// A command was carried out.
    fn done(&mut self, now: Instant) {
        self.exchange = None;
        self.failures = 0;
        self.phase = match self.phase {
            Phase::SettingUp(Step::Stand) => Phase::SettingUp(Step::Gains),
            Phase::SettingUp(Step::Gains) => Phase::SettingUp(Step::Counts),
            Phase::SettingUp(Step::Counts) => {
                let name = self.settings.name(self.family);
                self.service.works(now, || name);
                self.untold = false;
                self.poll_at = now + self.settings.rules.speeds_interval;
                Phase::Ready
            }
            Phase::Stopping => Phase::Ended,
            other => other,
        };
    }

    fn handle_counts(&mut self, now: Instant, has_restarted: bool) {
        if has_restarted {
            self.service.counters.resets += 1;
            self.service.motion.forget();
            self.untold = true;
            self.service.say(Note::Special(BoardNote::Restarted));
        }
        // Without speeds, requests wait for the next counts.
        let Some((speeds, middle)) = self.encoders.speeds_mm_s() else {
            return;
        };
        // They saturate.
        let [left_mm_s, right_mm_s] = speeds.map(|speed| speed.round() as i32);
        let sides = Sides {
            left_mm_s,
            right_mm_s,
        };
        if let Some(measured) = self.service.questions.complete(now) {
            let age = now.saturating_duration_since(middle);
            let published = measured.published.map(|_| age);
            (self.service).tell(sides.wheels(), measured.askers, published);
        }
    }

    /// A command was not answered, or by something else.
    fn handle_failure(&mut self, now: Instant, problem: &str) {
        let Some(Exchange { command, .. }) = self.exchange.take() else {
            return;
        };
        if let Phase::Waking { .. } = self.phase {
            return;
        }
        self.service.counters.bad_replies += 1;
        self.failures += 1;
        self.recovery = Some(Recovery::new(now));
        match self.phase {
            Phase::Stopping if self.failures < MAX_FAILURES => {}
            Phase::Stopping => self.phase = Phase::Ended,
            // Sent once: some firmware is damaged by it.
            Phase::SettingUp(Step::Gains) => {
                self.service.say(Note::Special(BoardNote::GainsRefused));
                self.phase = Phase::SettingUp(Step::Counts);
            }
            _ if self.failures == MAX_FAILURES => {
                let trouble = format!(
                    "the board {problem}: check its supply and its cable, or restart it with its button"
                );
                self.says_farewell = true;
                self.give_up(now, trouble);
            }
            _ => self.untold |= matches!(command, Command::Speeds { .. }),
        }
    }

    /// Starts over. Logs the problem unless it was already logged.
    fn give_up(&mut self, now: Instant, trouble: String) {
        let until = self.service.give_up(now, trouble);
        self.exchange = None;
        self.recovery = None;
        self.phase = match self.phase {
            Phase::Stopping | Phase::Ended => Phase::Ended,
            _ => Phase::Absent { until },
        };
    }

    fn never_woke(&self) -> String {
        let baud = self.settings.baud;
        match self.has_heard {
            false => format!(
                "the board does not answer at {baud} baud: check --baud (57600 or 115200), --port, and \
                 whether its firmware is that of ros_arduino_bridge"
            ),
            true => format!(
                "what arrives at {baud} baud is not from firmware like ros_arduino_bridge: check --baud \
                 (57600 or 115200), --port and --firmware"
            ),
        }
    }

    /// When the answer to the command must have arrived.
    fn exchange_ends(&self) -> Option<Instant> {
        self.exchange.map(|it| it.sent + self.reply_limit())
    }

    fn reply_limit(&self) -> Duration {
        match self.phase {
            Phase::Waking { .. } => ASK_AGAIN,
            Phase::Stopping => self.settings.reply_timeout.min(LAST_ANSWER),
            _ => self.settings.reply_timeout,
        }
    }
}

#[cfg(test)]
mod tests;
