//! The chips on the bus: sets them up, reads them, and detects chips that are missing, lost power,
//! or stopped. PURE, except for the [`Bus`].
//!
//! ```text
//!  Absent --answers and keeps its settings--> Warming --first sample--> Ready
//!    ^                                           |                        |
//!    +---- no answer, other settings, no new samples for some time -------+
//! ```
//!
//! Each chip is independent: if one is missing, the others are still read. Only a chip that is
//! behind the first one waits for it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::chip::{Chip, Digits, Sample, SetUp};
use super::sensors::Sensors;
use crate::i2c::Bus;
use crate::i2c::registers::Problem;
use crate::outage::Outage;

/// A chip without a new sample for this time has stopped measuring; chips take hundreds of samples
/// per second.
const STOPPED: Duration = Duration::from_millis(100);

/// After a change of its range, a chip has taken samples with the right one: two of the slowest, with
/// 220 Hz.
const SETTLE: Duration = Duration::from_millis(10);

/// Time limit for the first sample.
const WARM_UP: Duration = Duration::from_secs(1);

/// How long a chip must work before its problem counts as solved: some problems come and go.
const STABLE: Duration = Duration::from_secs(2);

/// How often a chip is looked for that the board lacks: it may be another board by now.
const LOOK_FOR_LACKING: Duration = Duration::from_secs(5);

/// The result of a reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading<D> {
    /// The digits of the requested sensors that could be read.
    pub raw: D,
    /// The requested sensors that will deliver their first sample soon.
    pub settling: Sensors,
    /// The sensors that this board does not have.
    pub lacking: Sensors,
}

/// A log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A chip works.
    Ready(&'static str, String),
    /// A chip works again after an outage of this length.
    Back(&'static str, Duration),
    /// A chip does not work.
    Trouble(&'static str, String),
}

/// The chips.
#[derive(Debug)]
pub struct Board<D> {
    slots: Vec<Slot<D>>,
    notes: VecDeque<Note>,
}

/// A chip, and its state.
#[derive(Debug)]
struct Slot<D> {
    chip: Box<dyn Chip<D>>,
    state: State,
    is_lacking: bool,
    outage: Outage,
    /// When it started to work.
    works: Option<Instant>,
    was_ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent {
        until: Instant,
    },
    /// The next step of its set-up is due.
    SettingUp {
        step: usize,
        until: Instant,
        settle: Duration,
    },
    Warming {
        since: Instant,
    },
    Ready {
        fresh: Instant,
    },
}

impl<D: Digits> Board<D> {
    /// Creates a board with these chips, in an unknown state.
    pub fn of(chips: impl IntoIterator<Item = Box<dyn Chip<D>>>, now: Instant) -> Self {
        let slot = |chip| Slot {
            chip,
            state: State::Absent { until: now },
            is_lacking: false,
            outage: Outage::default(),
            works: None,
            was_ready: false,
        };
        Self {
            slots: chips.into_iter().map(slot).collect(),
            notes: VecDeque::new(),
        }
    }

    /// The bus was reopened, so the chips may be different ones.
    pub fn reopened(&mut self, now: Instant) {
        for slot in &mut self.slots {
            slot.state = State::Absent { until: now };
            slot.chip.forget();
        }
    }

    /// Reads some sensors, and sets up chips that need it.
    ///
    /// # Errors
    /// The bus does not work.
    pub fn read(
        &mut self,
        now: Instant,
        bus: &mut dyn Bus,
        wanted: Sensors,
    ) -> Result<Reading<D>, String> {
        let mut reading: Reading<D> = Reading::default();
        let is_wanted = |slot: &Slot<D>| wanted.meet(slot.chip.sensors());
        let needs_first =
            (self.slots.iter()).any(|slot| slot.chip.is_behind_first() && is_wanted(slot));
        let mut first = None;
        for slot in &mut self.slots {
            if is_wanted(slot) || (first.is_none() && needs_first) {
                match slot.read_behind(first, now, bus, &mut self.notes) {
                    Ok(digits) => reading.raw = reading.raw.and(digits.unwrap_or_default()),
                    Err(Problem::Chip(problem)) => {
                        slot.fails(now, problem, &mut self.notes);
                        let until = slot.outage.try_again_at(now);
                        slot.state = State::Absent { until };
                        slot.chip.forget();
                    }
                    Err(Problem::Bus(problem)) => return Err(problem),
                }
                if matches!(slot.state, State::SettingUp { .. } | State::Warming { .. }) {
                    reading.settling = reading.settling.and(slot.chip.sensors());
                }
            }
            if slot.is_lacking {
                reading.lacking = reading.lacking.and(slot.chip.sensors());
            }
            first.get_or_insert(slot.state);
        }
        Ok(reading)
    }

    /// The current problem of the chips, or one that ended a moment ago.
    pub fn trouble(&self) -> Option<String> {
        let troubles = self.slots.iter().filter_map(|slot| {
            let trouble = slot.outage.trouble()?;
            Some(format!("{}: {trouble}", slot.chip.name()))
        });
        let troubles: Vec<_> = troubles.collect();
        (!troubles.is_empty()).then(|| troubles.join("; "))
    }

    /// The next log message.
    pub fn poll_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }
}

impl<D: Digits> Slot<D> {
    /// Reads the chip if the first one of the board, if it is behind that, makes it visible.
    fn read_behind(
        &mut self,
        first: Option<State>,
        now: Instant,
        bus: &mut dyn Bus,
        notes: &mut VecDeque<Note>,
    ) -> Result<Option<D>, Problem> {
        match first.filter(|_| self.chip.is_behind_first()) {
            // The problem of the first one is enough.
            Some(State::Absent { .. }) => {
                self.state = State::Absent { until: now };
                self.chip.forget();
                Ok(None)
            }
            Some(State::SettingUp { .. }) => {
                self.state = State::SettingUp {
                    step: 0,
                    until: now,
                    settle: Duration::ZERO,
                };
                Ok(None)
            }
            _ => self.read(now, bus, notes),
        }
    }

    fn read(
        &mut self,
        now: Instant,
        bus: &mut dyn Bus,
        notes: &mut VecDeque<Note>,
    ) -> Result<Option<D>, Problem> {
        match self.state {
            State::Absent { until } | State::SettingUp { until, .. } if now < until => {
                return Ok(None);
            }
            State::Absent { .. } => self.set_up(now, bus, 0, Duration::ZERO, notes)?,
            State::SettingUp { step, settle, .. } => self.set_up(now, bus, step, settle, notes)?,
            State::Warming { .. } | State::Ready { .. } => {}
        }
        match self.state {
            State::Absent { .. } | State::SettingUp { .. } => return Ok(None),
            State::Warming { since } if now < since || !self.chip.has_begun(bus)? => {
                return self.await_first(now);
            }
            State::Warming { .. } | State::Ready { .. } => {}
        }
        match (self.chip.sample(bus)?, self.state) {
            (Sample::Fresh(digits), _) => {
                self.state = State::Ready { fresh: now };
                self.works(now, notes);
                Ok(Some(digits))
            }
            (Sample::Old(digits), State::Ready { fresh })
                if now.saturating_duration_since(fresh) < STOPPED =>
            {
                Ok(Some(digits))
            }
            // It lost power, perhaps between two readings.
            (Sample::Old(_) | Sample::Reset, State::Ready { .. }) => {
                self.state = State::Absent { until: now };
                self.read(now, bus, notes)
            }
            (Sample::Old(_), _) => self.await_first(now),
            (Sample::Reset, _) => Err(Problem::Chip("does not keep its settings".into())),
            (Sample::Changed(change), _) => {
                self.set_up_again(now, bus, change.to_string(), notes)?;
                Ok(None)
            }
            (Sample::Lost(why), _) => {
                self.set_up_again(now, bus, why.into(), notes)?;
                Ok(None)
            }
            (Sample::Overflow, _) => {
                self.state = State::Ready { fresh: now };
                let text = "the magnetic field is out of range";
                self.fails(now, text.into(), notes);
                Ok(None)
            }
        }
    }

    /// The first sample is not ready; the registers would read as zeros.
    fn await_first(&self, now: Instant) -> Result<Option<D>, Problem> {
        match self.state {
            State::Warming { since } if now.saturating_duration_since(since) >= WARM_UP => {
                Err(Problem::Chip("does not start measuring".into()))
            }
            _ => Ok(None),
        }
    }

    /// A step of the set-up. `settle` is the shortest time until samples are used.
    fn set_up(
        &mut self,
        now: Instant,
        bus: &mut dyn Bus,
        step: usize,
        settle: Duration,
        notes: &mut VecDeque<Note>,
    ) -> Result<(), Problem> {
        let done = self.chip.set_up(step, bus)?;
        self.is_lacking = done == SetUp::Lacking;
        self.state = match done {
            SetUp::Continues(wait) => State::SettingUp {
                step: step + 1,
                until: now + wait,
                settle,
            },
            SetUp::Done { name, settle: own } => {
                if !std::mem::replace(&mut self.was_ready, true) {
                    notes.push_back(Note::Ready(self.chip.name(), name));
                }
                State::Warming {
                    since: now + settle.max(own),
                }
            }
            SetUp::Lacking => {
                // One that was never there has no problem: a bit of another chip was wrong.
                if !self.was_ready {
                    self.outage.over(now);
                }
                State::Absent {
                    until: now + LOOK_FOR_LACKING,
                }
            }
        };
        Ok(())
    }

    /// The settings are not those that were set. The next sample may have the other range.
    fn set_up_again(
        &mut self,
        now: Instant,
        bus: &mut dyn Bus,
        why: String,
        notes: &mut VecDeque<Note>,
    ) -> Result<(), Problem> {
        self.fails(now, why, notes);
        self.set_up(now, bus, 0, SETTLE, notes)
    }

    fn works(&mut self, now: Instant, notes: &mut VecDeque<Note>) {
        let since = *self.works.get_or_insert(now);
        let is_stable = now.saturating_duration_since(since) >= STABLE;
        if (is_stable || self.outage.trouble().is_none())
            && let Some(lasted) = self.outage.over(now)
        {
            notes.push_back(Note::Back(self.chip.name(), lasted));
        }
    }

    fn fails(&mut self, now: Instant, problem: String, notes: &mut VecDeque<Note>) {
        self.works = None;
        if self.outage.complain(now, &problem) {
            notes.push_back(Note::Trouble(self.chip.name(), problem));
        }
    }
}

impl Note {
    /// Whether to log it as a warning.
    pub fn is_warning(&self) -> bool {
        matches!(self, Self::Trouble(..))
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready(chip, name) => write!(f, "ready: {chip} {name}"),
            Self::Back(chip, after) => {
                write!(f, "{chip}: works again after {:.1} s", after.as_secs_f64())
            }
            Self::Trouble(chip, text) => write!(f, "{chip}: {text}; retrying"),
        }
    }
}
