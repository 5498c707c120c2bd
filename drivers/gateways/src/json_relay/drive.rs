//! Commands of the JSON relay as wheel speeds, and the reverse. PURE.
//!
//! There is no command to stop, so each command is a pulse: without another one the robot stops
//! after half a second.

use std::collections::HashMap;
use std::time::Duration;

use amber_robot::controls::{Controls, Seat};
use amber_robot::limits::MOTION_LIFE;
use amber_robot::robot::{RobotSetup, User, UserOrder};
use amber_values::WheelSpeeds;

use super::codec::Command;
use super::limits::{DUPLICATE_PERIOD, SLOWEST_MM_S};
use crate::shared::clock::Now;
use crate::shared::machine::Outputs;

/// The speeds of the robot for a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Speeds {
    /// Forward and backward, in mm/s.
    pub forward_mm_s: i32,
    /// Each side when turning, in mm/s.
    pub turn_mm_s: i32,
}

impl Default for Speeds {
    fn default() -> Self {
        Self {
            forward_mm_s: 200,
            turn_mm_s: 150,
        }
    }
}

impl Speeds {
    pub fn of(self, command: Command) -> WheelSpeeds {
        let (forward, turn) = (self.forward_mm_s, self.turn_mm_s);
        match command {
            Command::Forward => WheelSpeeds::all(forward),
            Command::Backward => WheelSpeeds::all(-forward),
            Command::Left => WheelSpeeds::sides(-turn, turn),
            Command::Right => WheelSpeeds::sides(turn, -turn),
        }
    }
}

/// The command that is nearest to these wheel speeds; `None` if they are too slow.
pub fn nearest(speeds: WheelSpeeds) -> Option<Command> {
    let side = |front: i32, rear: i32| f64::midpoint(front.into(), rear.into());
    let left = side(speeds.front_left_mm_s, speeds.rear_left_mm_s);
    let right = side(speeds.front_right_mm_s, speeds.rear_right_mm_s);
    // The second is the speed of each side when the robot turns on the spot.
    let (forward, turn) = (f64::midpoint(left, right), (right - left) / 2.0);
    if forward.abs().max(turn.abs()) < SLOWEST_MM_S {
        None
    } else if forward.abs() >= turn.abs() {
        Some(if forward > 0.0 {
            Command::Forward
        } else {
            Command::Backward
        })
    } else {
        Some(if turn > 0.0 {
            Command::Left
        } else {
            Command::Right
        })
    }
}

/// Drives Amber's robot by the commands of controls.
#[derive(Debug)]
pub(super) struct Driving {
    robot: RobotSetup,
    speeds: Speeds,
    controls: Controls<User>,
    last: HashMap<User, (Duration, Command, u64)>,
}

impl Driving {
    pub(super) fn new(robot: RobotSetup, seat: Seat, speeds: Speeds) -> Self {
        Self {
            robot,
            speeds,
            controls: Controls::new(seat),
            last: HashMap::new(),
        }
    }

    /// Whether a command has just come, and this is a copy of its datagram.
    pub(super) fn is_duplicate(
        &mut self,
        now: Now,
        user: User,
        command: Command,
        timestamp: u64,
    ) -> bool {
        let is_copy = self.last.get(&user).is_some_and(|&(at, last, stamp)| {
            (last, stamp) == (command, timestamp) && now.since(at) < DUPLICATE_PERIOD
        });
        // Copies do not prolong the period: otherwise, a program that always sends the same
        // timestamp would not be heard.
        if !is_copy {
            self.last.insert(user, (now.elapsed, command, timestamp));
        }
        is_copy
    }

    /// Follows a command, or says why not.
    pub(super) fn command(
        &mut self,
        now: Now,
        user: User,
        command: Command,
        out: &mut Outputs,
    ) -> Result<(), &'static str> {
        let speeds = self.speeds.of(command);
        let driven = self.controls.drive(now.elapsed, user, speeds, MOTION_LIFE);
        self.settle(now, out);
        driven.map_err(|_| "another session drives")
    }

    /// The user is gone.
    pub(super) fn release(&mut self, now: Now, user: User, out: &mut Outputs) {
        self.controls.release(user);
        self.last.remove(&user);
        self.settle(now, out);
    }

    /// Sends the orders that are due.
    pub(super) fn settle(&mut self, now: Now, out: &mut Outputs) {
        while let Some((user, speeds)) = self.controls.poll(now.elapsed) {
            out.order(user, UserOrder::Drive(self.robot.wheels, speeds));
        }
    }

    pub(super) fn next_due(&self) -> Option<Duration> {
        self.controls.next_due()
    }

    /// The user who holds the seat now.
    pub(super) fn seated(&self, now: Now) -> Option<User> {
        self.controls.seated(now.elapsed)
    }

    pub(super) fn holder(&self) -> Option<User> {
        self.controls.holder()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_speeds() {
        let speeds = Speeds::default();
        for (command, left, right) in [
            (Command::Forward, 200, 200),
            (Command::Backward, -200, -200),
            (Command::Left, -150, 150),
            (Command::Right, 150, -150),
        ] {
            assert_eq!(speeds.of(command), WheelSpeeds::sides(left, right));
            assert_eq!(nearest(speeds.of(command)), Some(command));
        }
    }

    #[test]
    fn the_nearest_command() {
        for (left, right, expected) in [
            (0, 0, None),
            (29, 29, None),
            (-29, 29, None),
            (30, 30, Some(Command::Forward)),
            (-30, -30, Some(Command::Backward)),
            (0, 100, Some(Command::Forward)),
            (10, 100, Some(Command::Forward)),
            (-10, 100, Some(Command::Left)),
            (-60, 50, Some(Command::Left)),
            (60, -50, Some(Command::Right)),
            (i32::MAX, i32::MIN, Some(Command::Right)),
        ] {
            assert_eq!(
                nearest(WheelSpeeds::sides(left, right)),
                expected,
                "{left} {right}"
            );
        }
    }
}
