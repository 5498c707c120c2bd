//! The newest command, and the clients that sent it. PURE.

use std::time::{Duration, Instant};

use amber_driver::ClientId;
use amber_values::WheelSpeeds;

/// The newest command; a command that was replaced is never sent.
#[derive(Debug)]
pub struct Motion {
    target: WheelSpeeds,
    commanders: Vec<ClientId>,
    idle_stop: Option<Duration>,
    last_command: Instant,
    has_idled: bool,
}

impl Motion {
    /// Starts with the wheels standing still. They stop `idle_stop` after the last command.
    pub fn new(now: Instant, idle_stop: Option<Duration>) -> Self {
        Self {
            target: WheelSpeeds::STOP,
            commanders: Vec::new(),
            idle_stop,
            last_command: now,
            has_idled: false,
        }
    }

    /// Takes a command.
    pub fn command(&mut self, now: Instant, clients: &[ClientId], speeds: WheelSpeeds) {
        self.target = speeds;
        self.commanders = clients.to_vec();
        self.last_command = now;
        self.has_idled = false;
    }

    /// Whether the wheels are commanded to turn.
    pub fn turns(&self) -> bool {
        self.target != WheelSpeeds::STOP
    }

    /// Stops the wheels. Returns whether they were commanded to turn.
    pub fn stop(&mut self) -> bool {
        let turned = self.turns();
        if turned {
            self.forget();
        }
        turned
    }

    /// Drops the command.
    pub fn forget(&mut self) {
        self.target = WheelSpeeds::STOP;
        self.commanders.clear();
    }

    /// Whether this client sent the current command.
    pub fn is_of(&self, client: ClientId) -> bool {
        self.commanders.contains(&client)
    }

    /// The speeds to send.
    pub fn target(&self) -> WheelSpeeds {
        self.target
    }

    /// When the wheels stop because no command arrives.
    pub fn idle_stop_due(&self) -> Option<Instant> {
        let idle_stop = self.idle_stop.filter(|_| !self.has_idled)?;
        Some(self.last_command + idle_stop)
    }

    /// The wheels have stopped for this reason, until the next command.
    pub fn idles(&mut self) {
        self.has_idled = true;
    }
}
