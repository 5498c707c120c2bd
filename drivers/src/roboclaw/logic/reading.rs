//! The speeds of the four motors, which are read one after the other. PURE.

use crate::roboclaw::protocol::Motor;
use crate::roboclaw::units::{Unit, WHEELS};

/// The speeds read so far, in pulses per second, in the order of [`WHEELS`].
#[derive(Debug, Default)]
pub(super) struct Reading {
    qpps: [i32; 4],
    done: usize,
}

impl Reading {
    /// The motor to read next.
    pub(super) fn next(&self) -> (Unit, Motor) {
        WHEELS[self.done]
    }

    /// Adds the speed of a motor. After the last one, returns all speeds and starts over.
    pub(super) fn add(&mut self, qpps: i32) -> Option<[i32; 4]> {
        self.qpps[self.done] = qpps;
        self.done = (self.done + 1) % WHEELS.len();
        (self.done == 0).then_some(self.qpps)
    }
}
