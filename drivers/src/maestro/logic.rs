//! What to tell a Maestro, and whether it is well. PURE.
//!
//! Tell [`Logic`] what happens, then drain [`Logic::poll_output`] after every
//! change and carry out what comes; call [`Logic::handle_timeout`] at
//! [`Logic::wake_at`].
//!
//! A Maestro says nothing by itself, so it is asked for its errors: at first,
//! which shows that it is there, and then once a second. Commands go out at
//! once. While it is not there they are dropped: one that is carried out
//! seconds later is worse than none. Speeds are told again when it is back,
//! since without them it would turn as fast as it can.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::protocol::{Command, Framing, errors};
use crate::outage::Outage;

/// Between two questions for errors.
const POLL: Duration = Duration::from_secs(1);

/// How long an answer may take.
const ANSWER: Duration = Duration::from_millis(300);

/// How often it is asked before it counts as gone.
const MAX_TRIES: u8 = 3;

/// How many different refusals are logged.
const MAX_REFUSALS: usize = 32;

/// How the device is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How packets begin and end.
    pub framing: Framing,
    /// Send the byte by which a serial one finds out the speed of the line.
    pub detect_baud: bool,
}

/// Something to be done outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open the way to the device, then call [`Logic::opened`] or
    /// [`Logic::failed`].
    Open,
    /// Close it.
    Close,
    /// Send this to the device.
    Write(Vec<u8>),
    /// A line for the log.
    Say(Note),
    /// There is nothing more to do.
    End,
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// It answers.
    Ready,
    /// The same after some trouble that lasted so long.
    Back(Duration),
    /// It does not, or is not well.
    Trouble(String),
    /// Something was not done.
    Refused(String),
}

/// How often what has happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands that were sent.
    pub sent: u64,
    /// Commands that came while the device was not there.
    pub dropped: u64,
    /// Requests that cannot be carried out.
    pub refused: u64,
    /// Times at which the device has told of errors.
    pub errors: u64,
}

/// The device, and what was asked of it.
#[derive(Debug)]
pub struct Logic {
    settings: Settings,
    phase: Phase,
    speeds: BTreeMap<u8, u16>,
    answer: Vec<u8>,
    /// It was said that all is well, and is so still.
    is_ready: bool,
    refusals: Vec<String>,
    outage: Outage,
    outputs: VecDeque<Output>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent { until: Instant },
    Opening,
    Asked { until: Instant, tries: u8 },
    Idle { until: Instant },
    Ended,
}

impl Logic {
    /// Begins with no way to the device.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            phase: Phase::Opening,
            speeds: BTreeMap::new(),
            answer: Vec::new(),
            is_ready: false,
            refusals: Vec::new(),
            outage: Outage::default(),
            outputs: VecDeque::from([Output::Open]),
            counters: Counters::default(),
        }
    }

    /// Somebody wants these, in one go.
    pub fn command(&mut self, commands: &[Command]) {
        for command in commands {
            if let Command::SetSpeed { servo, speed } = *command {
                self.speeds.insert(servo, speed);
            }
        }
        let count = commands.len() as u64;
        match self.phase {
            Phase::Asked { .. } | Phase::Idle { .. } => {
                self.counters.sent += count;
                self.send(commands);
            }
            Phase::Absent { .. } | Phase::Opening | Phase::Ended => {
                self.counters.dropped += count;
            }
        }
    }

    /// Somebody wants what cannot be done: each such thing is logged once.
    pub fn refuse(&mut self, why: String) {
        self.counters.refused += 1;
        if self.refusals.len() < MAX_REFUSALS && !self.refusals.contains(&why) {
            self.refusals.push(why.clone());
            self.outputs.push_back(Output::Say(Note::Refused(why)));
        }
    }

    /// The way to the device is open.
    pub fn opened(&mut self, now: Instant) {
        if self.settings.detect_baud {
            self.outputs.push_back(Output::Write(vec![0xAA]));
        }
        let speed = |(servo, speed): (&u8, &u16)| Command::SetSpeed {
            servo: *servo,
            speed: *speed,
        };
        let speeds: Vec<_> = self.speeds.iter().map(speed).collect();
        self.send(&speeds);
        self.ask(now, 1);
    }

    /// The way to the device is closed, or could not be opened.
    pub fn failed(&mut self, now: Instant, problem: &str) {
        self.give_up(now, problem.to_owned());
    }

    /// Bytes from the device.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        let Phase::Asked { .. } = self.phase else {
            // Nobody has asked.
            return;
        };
        self.answer.extend(bytes);
        let Some(answer) = self.answer.first_chunk().copied() else {
            return;
        };
        // More than an answer, or errors that there are none, come from a bad line.
        match errors(answer).filter(|_| self.answer.len() == answer.len()) {
            None => {}
            Some(errors) if errors.is_empty() => {
                self.phase = Phase::Idle { until: now + POLL };
                self.is_well(now);
            }
            Some(errors) => {
                self.phase = Phase::Idle { until: now + POLL };
                self.counters.errors += 1;
                let errors = errors.join(", ");
                self.complain(now, format!("the Maestro reports errors: {errors}"));
            }
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.phase {
            Phase::Absent { until } if now >= until => {
                self.phase = Phase::Opening;
                self.outputs.push_back(Output::Open);
            }
            Phase::Idle { until } if now >= until => self.ask(now, 1),
            Phase::Asked { until, tries } if now >= until => match tries < MAX_TRIES {
                true => self.ask(now, tries + 1),
                false if self.answer.is_empty() => {
                    self.give_up(now, "the Maestro does not answer".to_owned());
                }
                false => self.give_up(now, "the Maestro answers nonsense".to_owned()),
            },
            Phase::Absent { .. }
            | Phase::Opening
            | Phase::Asked { .. }
            | Phase::Idle { .. }
            | Phase::Ended => {}
        }
    }

    /// The end: servos stay where they are, as when a client goes.
    pub fn shut_down(&mut self) {
        self.phase = Phase::Ended;
        self.outputs.push_back(Output::End);
    }

    /// What is to be done outside.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When [`Logic::handle_timeout`] is to be called, if nothing happens before.
    pub fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Absent { until } | Phase::Asked { until, .. } | Phase::Idle { until } => {
                Some(until)
            }
            Phase::Opening | Phase::Ended => None,
        }
    }

    /// How often what has happened.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What is wrong with the device, if something is.
    pub fn trouble(&self) -> Option<&str> {
        self.outage.trouble()
    }

    fn send(&mut self, commands: &[Command]) {
        let framing = self.settings.framing;
        let bytes = commands.iter().flat_map(|command| command.bytes(framing));
        let bytes: Vec<_> = bytes.collect();
        if !bytes.is_empty() {
            self.outputs.push_back(Output::Write(bytes));
        }
    }

    fn ask(&mut self, now: Instant, tries: u8) {
        self.answer.clear();
        self.send(&[Command::GetErrors]);
        let until = now + ANSWER;
        self.phase = Phase::Asked { until, tries };
    }

    fn is_well(&mut self, now: Instant) {
        let was_well = std::mem::replace(&mut self.is_ready, true);
        let note = match self.outage.over(now) {
            Some(after) => Note::Back(after),
            None => Note::Ready,
        };
        if !was_well {
            self.outputs.push_back(Output::Say(note));
        }
    }

    fn complain(&mut self, now: Instant, trouble: String) {
        self.is_ready = false;
        if self.outage.complain(now, &trouble) {
            (self.outputs).push_back(Output::Say(Note::Trouble(trouble)));
        }
    }

    /// Begins anew.
    fn give_up(&mut self, now: Instant, trouble: String) {
        if self.phase == Phase::Ended {
            return;
        }
        self.complain(now, trouble);
        self.outputs.push_back(Output::Close);
        self.phase = Phase::Absent {
            until: self.outage.try_again_at(now),
        };
    }
}

impl Note {
    /// Whether somebody should look at it.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Trouble(_) | Self::Refused(_))
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready => f.write_str("ready: Maestro"),
            Self::Back(after) => write!(f, "works again after {:.1} s", after.as_secs_f64()),
            Self::Trouble(text) => f.write_str(text),
            Self::Refused(text) => write!(f, "not done: {text} (logged once)"),
        }
    }
}

#[cfg(test)]
mod tests;
