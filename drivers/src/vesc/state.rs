//! What the VESCs report of themselves, and when it disables driving. PURE.

use std::time::{Duration, Instant};

use super::note::VescNote;
use super::protocol::{Fault, Values};
use super::units::Unit;
use crate::wheels::BatteryReading;

/// From this temperature on a VESC is hot, in tenths of a degree Celsius. By default it reduces the
/// power of its motor from 85 degrees on.
const HOT: i16 = 800;
/// Below this temperature it is cool again.
const COOL: i16 = 700;
/// The same fault is not logged again before.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// The last values of both VESCs.
#[derive(Debug, Default)]
pub(super) struct State {
    values: [Option<(Instant, Values)>; 2],
    is_hot: [bool; 2],
    problem: Option<VescNote>,
    /// The last problem that was logged, and whether it is the one of now.
    said: Option<(VescNote, Instant)>,
    is_said: bool,
}

impl State {
    /// Forgets all values: the connection is new.
    pub(super) fn clear(&mut self) {
        self.values = [None; 2];
        self.problem = None;
    }

    /// Takes the values of a VESC. Returns what must be logged.
    pub(super) fn read(&mut self, now: Instant, unit: Unit, values: Values) -> Vec<VescNote> {
        let before = self.problem;
        self.values[unit.index()] = Some((now, values));
        self.problem = match unit {
            // Old values of the other one are no news.
            Unit::First => before.or_else(|| problem_of(unit, values)),
            Unit::Second => self.first_problem(),
        };
        let temperature = self.temperature(unit, values.temperature);
        let change = match self.problem {
            None => std::mem::take(&mut self.is_said).then_some(VescNote::Clean),
            Some(note) if before != Some(note) => {
                self.is_said = self.is_news(now, note);
                self.is_said.then_some(note)
            }
            Some(_) => None,
        };
        temperature.into_iter().chain(change).collect()
    }

    /// Why the wheels cannot be driven.
    pub(super) fn problem(&self) -> Option<VescNote> {
        self.problem
    }

    /// The speeds of both motors, in electrical turns per minute.
    pub(super) fn erpm(&self) -> Option<[i32; 2]> {
        let [first, second] = self.values;
        Some([first?.1.erpm, second?.1.erpm])
    }

    /// The battery, as the first VESC has measured it.
    pub(super) fn battery(&self, now: Instant) -> Option<BatteryReading> {
        let (then, values) = self.values[0]?;
        let is_low = |(_, values): &(Instant, Values)| values.fault == Fault::BATTERY_LOW;
        Some(BatteryReading {
            mv: u32::try_from(values.battery_dv).ok()? * 100,
            is_low: self.values.iter().flatten().any(is_low),
            age: now.saturating_duration_since(then),
        })
    }

    fn first_problem(&self) -> Option<VescNote> {
        Unit::BOTH.into_iter().find_map(|unit| {
            let (_, values) = self.values[unit.index()]?;
            problem_of(unit, values)
        })
    }

    fn temperature(&mut self, unit: Unit, tenths: i16) -> Option<VescNote> {
        let is_hot = &mut self.is_hot[unit.index()];
        let changes = match *is_hot {
            true => tenths < COOL,
            false => tenths >= HOT,
        };
        *is_hot ^= changes;
        let is_hot = *is_hot;
        changes.then_some(VescNote::Temperature {
            unit,
            is_hot,
            tenths,
        })
    }

    /// Whether a problem must be logged. A fault ends by itself after half a second, and comes again
    /// with the next command.
    fn is_news(&mut self, now: Instant, note: VescNote) -> bool {
        let is_old = |(said, then): (VescNote, Instant)| {
            said == note && now.saturating_duration_since(then) < SAY_AGAIN
        };
        let is_news = !self.said.is_some_and(is_old);
        if is_news {
            self.said = Some((note, now));
        }
        is_news
    }
}

fn problem_of(unit: Unit, values: Values) -> Option<VescNote> {
    match values.fault {
        Fault::NONE => (values.is_switched_off).then_some(VescNote::SwitchedOff(unit)),
        fault => Some(VescNote::Fault(unit, fault)),
    }
}
