//! Reads a value repeatedly, and reports it only when it is confirmed. PURE.

use std::time::{Duration, Instant};

use crate::roboclaw::protocol::{Fault, Status};
use crate::roboclaw::units::Unit;

/// The delay before a critical value is read again.
const REPEAT: Duration = Duration::from_millis(200);

/// How often a reading may fail before it is skipped until the next turn.
const MAX_FAILURES: u8 = 3;

/// Errors and warnings of all controllers, bit by bit.
#[derive(Debug)]
pub(super) struct StatusWatch {
    interval: Duration,
    repeats: u8,
    due: Instant,
    units: &'static [Unit],
    /// The status of the first controllers in this round.
    seen: Vec<Status>,
    /// A suspected status of each, and how many more readings must confirm it.
    suspected: Option<(Vec<Status>, u8)>,
    /// The confirmed status of each.
    known: Vec<Option<Status>>,
}

/// The result of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing new.
    Nothing,
    /// These faults are confirmed now.
    New(Vec<(Unit, Fault)>),
    /// All faults are gone.
    Clean,
}

impl StatusWatch {
    pub(super) fn new(
        now: Instant,
        units: &'static [Unit],
        interval: Duration,
        repeats: u8,
    ) -> Self {
        Self {
            interval,
            repeats,
            due: now,
            units,
            seen: Vec::new(),
            suspected: None,
            known: vec![None; units.len()],
        }
    }

    /// Starts over; confirmed faults remain until a reading shows that they are gone.
    pub(super) fn begin(&mut self, now: Instant) {
        self.due = now;
        self.seen.clear();
        self.suspected = None;
    }

    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// The controller to read now.
    pub(super) fn next(&self, now: Instant) -> Option<Unit> {
        let unit = self.units.get(self.seen.len()).copied();
        unit.filter(|_| now >= self.due)
    }

    /// A controller has reported its status.
    pub(super) fn read(&mut self, now: Instant, unit: Unit, status: Status) -> Verdict {
        if self.units.get(self.seen.len()) == Some(&unit) {
            self.seen.push(status);
        }
        if self.seen.len() < self.units.len() {
            return Verdict::Nothing;
        }
        let seen = std::mem::take(&mut self.seen);
        self.round(now, seen)
    }

    /// A fault that disables driving.
    pub(super) fn error(&self) -> Option<(Unit, Fault)> {
        let known = self.units.iter().zip(&self.known);
        known
            .flat_map(|(unit, status)| {
                let faults = status.iter().flat_map(|status| status.faults());
                faults.map(move |fault| (*unit, fault))
            })
            .find(|(_, fault)| matches!(fault, Fault::Error(_)))
    }

    /// Forgets all confirmed faults.
    pub(super) fn forget(&mut self) {
        self.known.fill(None);
        self.suspected = None;
    }

    fn round(&mut self, now: Instant, seen: Vec<Status>) -> Verdict {
        self.due = now + self.interval;
        let had_any = self.known.iter().flatten().any(|known| !known.is_clean());
        for (known, seen) in self.known.iter_mut().zip(&seen) {
            *known = known.map(|known| known.and(*seen));
        }
        let (seen, left) = match self.suspected.take() {
            None => (seen, self.repeats),
            Some((before, left)) => {
                let both = before.into_iter().zip(seen);
                (
                    both.map(|(before, seen)| before.and(seen)).collect(),
                    left - 1,
                )
            }
        };
        let new = self.new_faults(&seen);
        if new.is_empty() {
            let has_any = self.known.iter().flatten().any(|known| !known.is_clean());
            return match had_any && !has_any {
                true => Verdict::Clean,
                false => Verdict::Nothing,
            };
        }
        if left > 0 {
            self.suspected = Some((seen, left));
            self.due = now + REPEAT.min(self.interval);
            return Verdict::Nothing;
        }
        for (known, seen) in self.known.iter_mut().zip(seen) {
            let before = known.map_or(0, |known| known.bits);
            *known = Some(Status {
                bits: before | seen.bits,
                ..seen
            });
        }
        Verdict::New(new)
    }

    fn new_faults(&self, seen: &[Status]) -> Vec<(Unit, Fault)> {
        let mut new = Vec::new();
        for ((unit, seen), known) in self.units.iter().zip(seen).zip(&self.known) {
            let bits = seen.bits & !known.map_or(0, |known| known.bits);
            let status = Status { bits, ..*seen };
            new.extend(status.faults().map(|fault| (*unit, fault)));
        }
        new
    }
}

/// Two values that are read together at intervals.
#[derive(Debug)]
pub(super) struct Watch {
    interval: Option<Duration>,
    due: Instant,
    first: Option<i32>,
    confirmed: u8,
    failures: u8,
    has_complained: bool,
    said: Option<i32>,
}

impl Watch {
    pub(super) fn new(now: Instant, interval: Option<Duration>) -> Self {
        Self {
            interval,
            due: now,
            first: None,
            confirmed: 0,
            failures: 0,
            has_complained: false,
            said: None,
        }
    }

    /// Starts over; the device may support more than before.
    pub(super) fn begin(&mut self, now: Instant) {
        self.due = now;
        self.first = None;
        self.confirmed = 0;
        self.failures = 0;
        self.has_complained = false;
    }

    /// When the next reading is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.interval.map(|_| self.due)
    }

    /// The one of the two to read now.
    pub(super) fn next(&self, now: Instant) -> Option<usize> {
        let is_due = self.due().is_some_and(|due| now >= due);
        is_due.then_some(usize::from(self.first.is_some()))
    }

    /// Adds a value. Returns both after the second one.
    pub(super) fn read(&mut self, now: Instant, value: i32) -> Option<[i32; 2]> {
        self.failures = 0;
        let Some(first) = self.first.take() else {
            self.first = Some(value);
            return None;
        };
        self.due = now + self.interval.unwrap_or_default();
        Some([first, value])
    }

    /// A reading failed. Returns whether to log it. The driver keeps reading, because the cause may
    /// be a noisy line; it logs old firmware only once.
    pub(super) fn failed(&mut self, now: Instant) -> bool {
        self.failures += 1;
        if self.failures < MAX_FAILURES {
            self.due = now + REPEAT;
            return false;
        }
        self.failures = 0;
        // Next time both are read: the first one may have changed.
        self.first = None;
        self.due = now + self.interval.unwrap_or_default();
        !std::mem::replace(&mut self.has_complained, true)
    }

    /// Whether a condition has now been seen often enough.
    pub(super) fn confirms(&mut self, now: Instant, seen: bool, times: u8) -> bool {
        if !seen {
            self.confirmed = 0;
            return false;
        }
        self.confirmed += 1;
        if self.confirmed >= times {
            self.confirmed = 0;
            return true;
        }
        self.due = now + REPEAT;
        false
    }

    /// Whether a value differs by this distance from the last value for which this was true.
    pub(super) fn has_moved_by(&mut self, value: i32, distance: i32) -> bool {
        let has = self
            .said
            .is_none_or(|said| (said - value).abs() >= distance);
        if has {
            self.said = Some(value);
        }
        has
    }
}
