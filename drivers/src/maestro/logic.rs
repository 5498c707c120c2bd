//! Decides what to send to a Maestro, and tracks its errors. PURE.
//!
//! Report each event to [`ServoLogic`], drain [`ServoLogic::poll_output`] after every change, and carry out
//! each output. Call [`ServoLogic::handle_timeout`] at [`ServoLogic::wake_at`].
//!
//! A Maestro never sends anything unasked, so the driver reads its errors: at the start, which
//! shows that it is connected, and then once a second. Commands are sent immediately. While the
//! device is disconnected they are dropped: a command carried out seconds later does more harm than
//! good. Speed limits are sent again after a reconnect, since without them servos turn at full
//! speed.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::protocol::{Command, Framing, errors};
use crate::outage::Outage;

/// The interval between two requests for errors.
const POLL: Duration = Duration::from_secs(1);

/// Time limit for a reply.
const ANSWER: Duration = Duration::from_millis(300);

/// How often a request is sent before the device counts as disconnected.
const MAX_TRIES: u8 = 3;

/// How many different rejections are logged.
const MAX_REFUSALS: usize = 32;

/// How to communicate with the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How packets start and end.
    pub framing: Framing,
    /// Send the byte from which a device on a serial line detects the baud rate.
    pub detect_baud: bool,
}

/// An action for the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open the connection, then call [`ServoLogic::opened`] or [`ServoLogic::failed`].
    Open,
    /// Close the connection.
    Close,
    /// Send this to the device.
    Write(Vec<u8>),
    /// A log message.
    Say(Note),
    /// Nothing is left to do.
    End,
}

/// A log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The device answers.
    Ready,
    /// The device works again after an outage of this length.
    Back(Duration),
    /// The device does not answer, or reports errors.
    Trouble(String),
    /// A request was rejected.
    Refused(String),
}

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands sent.
    pub sent: u64,
    /// Commands dropped because the device was disconnected.
    pub dropped: u64,
    /// Rejected requests.
    pub refused: u64,
    /// Replies of the device that report errors.
    pub errors: u64,
}

/// The state of the device and of its servos.
#[derive(Debug)]
pub struct ServoLogic {
    settings: Settings,
    phase: Phase,
    speeds: BTreeMap<u8, u16>,
    /// The last angle sent to each servo.
    angles: BTreeMap<u8, i32>,
    answer: Vec<u8>,
    /// The last logged state is that the device works.
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

impl ServoLogic {
    /// Starts without a connection.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            phase: Phase::Opening,
            speeds: BTreeMap::new(),
            angles: BTreeMap::new(),
            answer: Vec::new(),
            is_ready: false,
            refusals: Vec::new(),
            outage: Outage::default(),
            outputs: VecDeque::from([Output::Open]),
            counters: Counters::default(),
        }
    }

    /// Sends these commands together, which turn servos to these angles. Returns whether they are
    /// sent.
    pub fn command(&mut self, commands: &[Command], angles: &[(u8, i32)]) -> bool {
        for command in commands {
            if let Command::SetSpeed { servo, speed } = *command {
                self.speeds.insert(servo, speed);
            }
        }
        let count = commands.len() as u64;
        match self.phase {
            Phase::Asked { .. } | Phase::Idle { .. } => {
                self.counters.sent += count;
                self.angles.extend(angles.iter().copied());
                self.send(commands);
                true
            }
            Phase::Absent { .. } | Phase::Opening | Phase::Ended => {
                self.counters.dropped += count;
                false
            }
        }
    }

    /// The last angle sent to each servo.
    pub fn angles(&self) -> impl Iterator<Item = (u32, i32)> {
        let angles = self.angles.iter();
        angles.map(|(servo, angle)| (u32::from(*servo), *angle))
    }

    /// Rejects a request. Each reason is logged once.
    pub fn refuse(&mut self, why: String) {
        self.counters.refused += 1;
        if self.refusals.len() < MAX_REFUSALS && !self.refusals.contains(&why) {
            self.refusals.push(why.clone());
            self.outputs.push_back(Output::Say(Note::Refused(why)));
        }
    }

    /// The connection is open.
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

    /// The connection is closed or could not be opened.
    pub fn failed(&mut self, now: Instant, problem: &str) {
        self.give_up(now, problem.to_owned());
    }

    /// Bytes from the device.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        let Phase::Asked { .. } = self.phase else {
            // No request is pending.
            return;
        };
        self.answer.extend(bytes);
        let Some(answer) = self.answer.first_chunk().copied() else {
            return;
        };
        // An oversized reply, or undefined error bits, indicate a bad line.
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

    /// Handles expired timers.
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
                false => self.give_up(now, "the Maestro sends invalid replies".to_owned()),
            },
            Phase::Absent { .. }
            | Phase::Opening
            | Phase::Asked { .. }
            | Phase::Idle { .. }
            | Phase::Ended => {}
        }
    }

    /// Shuts down. Servos stay where they are, as when a client leaves.
    pub fn shut_down(&mut self) {
        self.phase = Phase::Ended;
        self.outputs.push_back(Output::End);
    }

    /// The next action for the caller.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`ServoLogic::handle_timeout`] if nothing happens earlier.
    pub fn wake_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Absent { until } | Phase::Asked { until, .. } | Phase::Idle { until } => {
                Some(until)
            }
            Phase::Opening | Phase::Ended => None,
        }
    }

    /// Event counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The problem of the device, if any.
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

    /// Starts over.
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
    /// Whether to log it as a warning.
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
            Self::Refused(text) => write!(f, "rejected: {text} (logged once)"),
        }
    }
}

#[cfg(test)]
mod tests;
