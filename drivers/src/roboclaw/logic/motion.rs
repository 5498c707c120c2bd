//! The newest command, the clients that sent it, and the controllers that have received it. PURE.

use std::time::{Duration, Instant};

use amber_driver::ClientId;
use amber_values::WheelSpeeds;

use super::Settings;
use crate::roboclaw::units::Unit;

/// The newest command; a command that was replaced is never sent.
#[derive(Debug)]
pub(super) struct Motion {
    target: WheelSpeeds,
    /// Controllers that have not received the target yet.
    untold: [bool; 2],
    commanders: Vec<ClientId>,
    /// The controller that received the last command.
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
    /// Starts with the wheels standing still.
    pub(super) fn new(now: Instant, settings: &Settings) -> Self {
        Self {
            target: WheelSpeeds::STOP,
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

    pub(super) fn command(&mut self, now: Instant, clients: &[ClientId], speeds: WheelSpeeds) {
        self.target = speeds;
        self.untold = [true; 2];
        self.commanders = clients.to_vec();
        self.last_command = now;
        self.has_idled = false;
        self.postpone_reset(now);
    }

    /// Stops the wheels. Returns whether they were commanded to turn.
    pub(super) fn stop(&mut self) -> bool {
        let turned = self.target != WheelSpeeds::STOP;
        // Sending a stop again does no harm.
        self.untold = [true; 2];
        if turned {
            self.target = WheelSpeeds::STOP;
            self.commanders.clear();
        }
        turned
    }

    /// Drops the command; it need not be sent any more.
    pub(super) fn forget(&mut self) {
        self.target = WheelSpeeds::STOP;
        self.untold = [false; 2];
        self.commanders.clear();
    }

    /// Whether this client sent the current command.
    pub(super) fn is_of(&self, client: ClientId) -> bool {
        self.commanders.contains(&client)
    }

    /// The speeds to send.
    pub(super) fn target(&self) -> WheelSpeeds {
        self.target
    }

    /// Whether both controllers have received the target.
    pub(super) fn is_told(&self) -> bool {
        self.untold == [false; 2]
    }

    /// The controller that receives the target next.
    pub(super) fn next(&self) -> Option<Unit> {
        // Alternates, so that fast commands do not starve the rear controller.
        let order = match self.last_told {
            Unit::Front => [Unit::Rear, Unit::Front],
            Unit::Rear => Unit::BOTH,
        };
        order.into_iter().find(|unit| self.untold[*unit as usize])
    }

    /// Whether sending the target comes before all other jobs. A stop always does; after both
    /// controllers have received another command, one other job may run.
    pub(super) fn comes_first(&mut self, next: Option<Unit>) -> bool {
        let is_stop = self.target == WheelSpeeds::STOP;
        let first = next.is_some() && (is_stop || !self.yields);
        self.yields = first && next == Some(Unit::Rear);
        first
    }

    /// A controller has received a command.
    pub(super) fn told(&mut self, unit: Unit, speeds: WheelSpeeds) {
        self.last_told = unit;
        // If they differ, a newer command has arrived meanwhile.
        self.untold[unit as usize] &= speeds != self.target;
    }

    /// When the wheels stop because no command arrives.
    pub(super) fn idle_stop_due(&self) -> Option<Instant> {
        let idle_stop = self.idle_stop.filter(|_| !self.has_idled)?;
        Some(self.last_command + idle_stop)
    }

    /// The wheels have stopped for this reason, until the next command.
    pub(super) fn idles(&mut self) {
        self.has_idled = true;
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
