//! The gamepad beside the robot. PURE.

use std::time::Duration;

use super::{Gamepad, Model};
use crate::device;
use crate::twin::{Surroundings, Twin};

device::extra! {
    /// Add a gamepad, which `amber sim hold` moves
    "gamepad" by Serial: Model => |model, _| Gamepad::new(model);
    "call gamepad state": "sticks and buttons of a gamepad"
}

impl Twin for Gamepad {
    fn advance(&mut self, now: Duration, _around: &mut Surroundings<'_>) {
        self.handle_timeout(now);
    }

    fn handle_bytes(&mut self, _now: Duration, bytes: &[u8]) {
        Self::handle_bytes(self, bytes);
    }

    fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
        Self::poll_output(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Self::next_timeout(self)
    }

    fn handle_plug_in(&mut self, _now: Duration) {
        self.restart();
    }
}
