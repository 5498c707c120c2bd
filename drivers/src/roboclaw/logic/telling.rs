//! Which controllers have received the newest command, and when they are reset. PURE.

use std::time::{Duration, Instant};

use amber_values::WheelSpeeds;

use super::Settings;
use crate::roboclaw::units::Unit;

/// Who must still be told the newest command.
#[derive(Debug)]
pub(super) struct Telling {
    /// Controllers that have not received the newest command yet.
    untold: [bool; 2],
    /// The speeds that they have received since the last reset.
    known: [Option<WheelSpeeds>; 2],
    units: &'static [Unit],
    /// How many in the list come before the next controller.
    told: usize,
    /// Whether drive commands leave room for one other job now.
    yields: bool,
    idle_reset: Option<Duration>,
    next_reset: Instant,
}

impl Telling {
    /// Starts with nothing to tell.
    pub(super) fn new(now: Instant, settings: &Settings) -> Self {
        Self {
            untold: [false; 2],
            known: [None; 2],
            units: settings.layout.units(),
            told: 0,
            yields: false,
            idle_reset: settings.idle_reset(),
            next_reset: now + settings.idle_reset().unwrap_or_default(),
        }
    }

    /// The target must be sent. Sending it again does no harm.
    pub(super) fn begin(&mut self) {
        for unit in self.units {
            self.untold[unit.index()] = true;
        }
    }

    /// The target need not be sent any more, and the controllers may have lost what they knew.
    pub(super) fn forget(&mut self) {
        self.untold = [false; 2];
        self.known = [None; 2];
    }

    /// Whether all controllers have received the target.
    pub(super) fn is_told(&self) -> bool {
        self.untold == [false; 2]
    }

    /// The controller that receives the target next.
    pub(super) fn next(&self) -> Option<Unit> {
        // Takes turns, so that fast commands do not starve the rear controller.
        let (told, others) = self.units.split_at(self.told);
        let mut order = others.iter().chain(told).copied();
        order.find(|unit| self.untold[unit.index()])
    }

    /// Whether sending the target comes before all other jobs. A stop always does, and speeds that the
    /// controller does not know yet; after all controllers have received them, one other job may run.
    ///
    /// Programs repeat their commands. A repetition tells a controller nothing new, so it takes turns with
    /// the other jobs: on a slow bus, repetitions alone would leave no time for measurements.
    pub(super) fn comes_first(&mut self, next: Option<Unit>, target: WheelSpeeds) -> bool {
        let is_stop = target == WheelSpeeds::STOP;
        let is_new = next.is_some_and(|unit| self.known[unit.index()] != Some(target));
        let first = next.is_some() && (is_stop || is_new && !self.yields);
        self.yields = first && next.as_ref() == self.units.last();
        first
    }

    /// A controller has received these speeds.
    pub(super) fn told(&mut self, unit: Unit, speeds: WheelSpeeds, target: WheelSpeeds) {
        self.told = unit.index() + 1;
        self.known[unit.index()] = Some(speeds);
        // If they differ, a newer command has arrived meanwhile.
        self.untold[unit.index()] &= speeds != target;
    }

    /// When the controllers are reset because no command arrives.
    pub(super) fn idle_reset_due(&self) -> Option<Instant> {
        self.idle_reset.map(|_| self.next_reset)
    }

    /// Restarts the time until the reset.
    pub(super) fn postpone_reset(&mut self, now: Instant) {
        self.next_reset = now + self.idle_reset.unwrap_or_default();
    }
}
