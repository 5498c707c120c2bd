//! What the wheels are to do, who wants it, and who knows it. PURE.

use std::time::{Duration, Instant};

use amber_driver::ClientId;

use super::Settings;
use crate::roboclaw::units::{Unit, WheelSpeeds};

/// The newest command; what it has overtaken is never sent.
#[derive(Debug)]
pub(super) struct Motion {
    target: WheelSpeeds,
    /// Who has not been told the target yet.
    untold: [bool; 2],
    commanders: Vec<ClientId>,
    /// Who has been told last.
    last_told: Unit,
    /// Whether drive commands leave room for one other job now.
    yields: bool,
    idle_stop: Option<Duration>,
    idle_reset: Option<Duration>,
    last_command: Instant,
    has_idled: bool,
    next_reset: Instant,
}

impl Motion {
    /// Standing still.
    pub(super) fn new(now: Instant, settings: &Settings) -> Self {
        Self {
            target: WheelSpeeds::ZERO,
            untold: [false; 2],
            commanders: Vec::new(),
            last_told: Unit::Rear,
            yields: false,
            idle_stop: settings.idle_stop,
            idle_reset: settings.idle_reset(),
            last_command: now,
            has_idled: false,
            next_reset: now + settings.idle_reset().unwrap_or_default(),
        }
    }

    /// Somebody wants the wheels to turn.
    pub(super) fn command(&mut self, now: Instant, clients: &[ClientId], speeds: WheelSpeeds) {
        self.target = speeds;
        self.untold = [true; 2];
        self.commanders = clients.to_vec();
        self.last_command = now;
        self.has_idled = false;
        self.postpone_reset(now);
    }

    /// The wheels are to stand. Whether they were to turn.
    pub(super) fn stop(&mut self) -> bool {
        let turned = self.target != WheelSpeeds::ZERO;
        // Where they stand, it costs nothing to say it once more.
        self.untold = [true; 2];
        if turned {
            self.target = WheelSpeeds::ZERO;
            self.commanders.clear();
        }
        turned
    }

    /// What was wanted before is not wanted any more, and need not be told.
    pub(super) fn forget(&mut self) {
        self.target = WheelSpeeds::ZERO;
        self.untold = [false; 2];
        self.commanders.clear();
    }

    /// Whether the command in force is this client's.
    pub(super) fn is_of(&self, client: ClientId) -> bool {
        self.commanders.contains(&client)
    }

    /// What is to be told.
    pub(super) fn target(&self) -> WheelSpeeds {
        self.target
    }

    /// Whether both controllers know it.
    pub(super) fn is_told(&self) -> bool {
        self.untold == [false; 2]
    }

    /// Who is to be told it next.
    pub(super) fn next(&self) -> Option<Unit> {
        // Commands that come faster than they go must reach the rear, too.
        let order = match self.last_told {
            Unit::Front => [Unit::Rear, Unit::Front],
            Unit::Rear => Unit::BOTH,
        };
        order.into_iter().find(|unit| self.untold[*unit as usize])
    }

    /// Whether telling who is next comes before all else. Stopping always does;
    /// other commands let one other job pass when both have been told.
    pub(super) fn comes_first(&mut self, next: Option<Unit>) -> bool {
        let is_stop = self.target == WheelSpeeds::ZERO;
        let first = next.is_some() && (is_stop || !self.yields);
        self.yields = first && next == Some(Unit::Rear);
        first
    }

    /// One has been told.
    pub(super) fn told(&mut self, unit: Unit, speeds: WheelSpeeds) {
        self.last_told = unit;
        // Otherwise a newer command has come meanwhile.
        self.untold[unit as usize] &= speeds != self.target;
    }

    /// When the wheels stop for want of commands.
    pub(super) fn idle_stop_due(&self) -> Option<Instant> {
        let idle_stop = self.idle_stop.filter(|_| !self.has_idled)?;
        Some(self.last_command + idle_stop)
    }

    /// They do now, until the next command.
    pub(super) fn idles(&mut self) {
        self.has_idled = true;
    }

    /// When the controllers are reset for want of commands.
    pub(super) fn idle_reset_due(&self) -> Option<Instant> {
        self.idle_reset.map(|_| self.next_reset)
    }

    /// That takes as long again.
    pub(super) fn postpone_reset(&mut self, now: Instant) {
        self.next_reset = now + self.idle_reset.unwrap_or_default();
    }
}
