//! Decides what clients are told of the gamepad, and when. PURE.
//!
//! ```text
//!  Absent --opened--> Waiting --its description--> Ready
//!    ^                   |                           |
//!    +-------------------+---------------------------+  unplugged, or what arrives is no gamepad
//! ```
//!
//! The gamepad sends changes only, so its silence is no fault.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use amber_gamepad::{Event, Pad, REPORT, Reader, SYN, Said};
use amber_proto::gamepad::GamepadState;

use crate::outage::Outage;

/// The times between published states: at least, and at most.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_millis(500);
/// How long the gamepad may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(1);

const MUTE: &str = "the gamepad does not say what it is: is --port that of a gamepad?";
const GARBAGE: &str = "what arrives are not the events of a gamepad: is --port that of a gamepad?";

/// Settings of the driver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Sticks and triggers that are moved less than this part of their way are at rest.
    pub dead_zone: f64,
}

/// An action for the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Open the gamepad, then call [`GamepadLogic::opened`] or [`GamepadLogic::failed`].
    Open,
    /// Close it.
    Close,
    /// What a person does with it now.
    Publish(GamepadState),
    /// A log message.
    Say(Note),
    /// Nothing is left to do.
    End,
}

/// A log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The gamepad works: its name.
    Ready(String),
    /// The gamepad works again after an outage of this length.
    Back(Duration),
    /// There is no gamepad: why.
    Trouble(String),
}

impl Note {
    /// Whether to log it as a warning.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Trouble(_))
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(name) => write!(f, "ready: {name}"),
            Self::Back(after) => write!(f, "works again after {:.1} s", after.as_secs_f64()),
            Self::Trouble(text) => write!(f, "{text}; retrying"),
        }
    }
}

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events of the gamepad.
    pub events: u64,
    /// Published states.
    pub states: u64,
}

/// The state of the gamepad.
#[derive(Debug)]
pub struct GamepadLogic {
    settings: Settings,
    phase: Phase,
    reader: Reader,
    /// `Some` while there is a gamepad.
    pad: Option<Pad>,
    /// When something last came from it.
    heard: Instant,
    /// What was last published, without its age, and when.
    published: GamepadState,
    published_at: Instant,
    /// Whether the state may be another one than that.
    has_news: bool,
    outage: Outage,
    outputs: VecDeque<Output>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Absent { until: Instant },
    Opening,
    Waiting { until: Instant },
    Ready,
    Ended,
}

impl GamepadLogic {
    /// Starts without a gamepad.
    pub fn new(settings: Settings, now: Instant) -> Self {
        Self {
            settings,
            phase: Phase::Opening,
            reader: Reader::default(),
            pad: None,
            heard: now,
            published: GamepadState::default(),
            published_at: now,
            has_news: true,
            outage: Outage::default(),
            outputs: VecDeque::from([Output::Open]),
            counters: Counters::default(),
        }
    }

    /// What a person does with it.
    pub fn state(&self, now: Instant) -> GamepadState {
        let age = now.saturating_duration_since(self.heard).as_millis();
        match &self.pad {
            Some(pad) => GamepadState {
                age: u32::try_from(age).ok(),
                ..pad.state()
            },
            None => GamepadState {
                connected: Some(false),
                trouble: self.outage.trouble().map(str::to_owned),
                ..GamepadState::default()
            },
        }
    }

    /// The gamepad is open.
    pub fn opened(&mut self, now: Instant) {
        self.reader = Reader::default();
        self.phase = Phase::Waiting {
            until: now + PATIENCE,
        };
    }

    /// The gamepad is gone, or cannot be opened.
    pub fn failed(&mut self, now: Instant, problem: &str) {
        self.give_up(now, problem);
        self.publish(now);
    }

    /// Bytes of the gamepad.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        if !matches!(self.phase, Phase::Waiting { .. } | Phase::Ready) {
            return;
        }
        self.reader.push(bytes);
        loop {
            match self.reader.poll() {
                Ok(Some(said)) => self.hear(now, said),
                Ok(None) => break,
                Err(_) => {
                    self.give_up(now, GARBAGE);
                    break;
                }
            }
        }
        self.publish(now);
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.phase {
            Phase::Absent { until } if now >= until => {
                self.phase = Phase::Opening;
                self.outputs.push_back(Output::Open);
            }
            Phase::Waiting { until } if now >= until => self.give_up(now, MUTE),
            _ => {}
        }
        self.publish(now);
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

    /// When to call [`GamepadLogic::handle_timeout`] if nothing happens earlier.
    pub fn wake_at(&self) -> Option<Instant> {
        let period = if self.has_news { SHORTEST } else { LONGEST };
        let publish = self.published_at + period;
        match self.phase {
            Phase::Absent { until } | Phase::Waiting { until } => Some(until.min(publish)),
            Phase::Opening | Phase::Ready => Some(publish),
            Phase::Ended => None,
        }
    }

    /// The reason why there is no gamepad.
    pub fn trouble(&self) -> Option<&str> {
        self.outage.trouble()
    }

    /// Event counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn hear(&mut self, now: Instant, said: Said) {
        self.heard = now;
        match said {
            Said::Description(description) => {
                let ready = Note::Ready(description.name.clone());
                self.pad = Some(Pad::new(description, self.settings.dead_zone));
                self.phase = Phase::Ready;
                self.has_news = true;
                let back = self.outage.over(now).map(Note::Back);
                let notes = back.into_iter().chain([ready]);
                self.outputs.extend(notes.map(Output::Say));
            }
            Said::Event(event) => {
                self.counters.events += 1;
                if let Some(pad) = &mut self.pad {
                    pad.handle(event);
                }
                // The events of one moment belong together.
                let Event { kind, code, .. } = event;
                self.has_news |= (kind, code) == (SYN, REPORT);
            }
        }
    }

    /// Publishes the state if it is another one, or if it was not published for long.
    fn publish(&mut self, now: Instant) {
        let since = now.saturating_duration_since(self.published_at);
        let is_old = since >= LONGEST;
        let is_due = is_old || self.has_news && since >= SHORTEST;
        if self.phase == Phase::Ended || !is_due {
            return;
        }
        self.has_news = false;
        let state = self.state(now);
        let without_age = GamepadState {
            age: None,
            ..state.clone()
        };
        if is_old || without_age != self.published {
            self.published = without_age;
            self.published_at = now;
            self.counters.states += 1;
            self.outputs.push_back(Output::Publish(state));
        }
    }

    /// Starts over. Logs the problem unless it was already logged.
    fn give_up(&mut self, now: Instant, trouble: &str) {
        if self.phase == Phase::Ended {
            return;
        }
        if self.outage.complain(now, trouble) {
            let note = Note::Trouble(trouble.to_owned());
            self.outputs.push_back(Output::Say(note));
        }
        self.pad = None;
        self.has_news = true;
        self.outputs.push_back(Output::Close);
        self.phase = Phase::Absent {
            until: self.outage.try_again_at(now),
        };
    }
}

#[cfg(test)]
mod tests;
