//! The speeds of the motors, which are read one after the other. PURE.

use crate::roboclaw::protocol::Motor;
use crate::roboclaw::units::Unit;

const MOTORS: [Motor; 2] = [Motor::M1, Motor::M2];

/// The speeds read so far, in pulses per second: M1 and M2 of each controller.
#[derive(Debug)]
pub(super) struct Reading {
    units: &'static [Unit],
    qpps: [[i32; 2]; 2],
    done: usize,
}

impl Reading {
    pub(super) fn of(units: &'static [Unit]) -> Self {
        Self {
            units,
            qpps: [[0; 2]; 2],
            done: 0,
        }
    }

    /// The motor to read next.
    pub(super) fn next(&self) -> (Unit, Motor) {
        (self.units[self.done / 2], MOTORS[self.done % 2])
    }

    /// Adds the speed of a motor. After the last one, returns those at the front and at the rear, and
    /// starts over. With one controller they are the same.
    pub(super) fn add(&mut self, qpps: i32) -> Option<[[i32; 2]; 2]> {
        self.qpps[self.done / 2][self.done % 2] = qpps;
        self.done = (self.done + 1) % (2 * self.units.len());
        let [first, second] = self.qpps;
        (self.done == 0).then_some(match self.units.len() {
            1 => [first, first],
            _ => [first, second],
        })
    }
}
