//! The turns of the laser, which have the same length until the speed changes. PURE.

use std::time::Duration;

use super::model::{Model, Sweep};

/// The motor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turns {
    model: Model,
    /// Set by the `CR` command: this many percent slower.
    speed: u32,
    /// The start of turn 0.
    from: Duration,
}

impl Turns {
    /// Creates a motor at normal speed.
    pub(super) fn new(model: Model, now: Duration) -> Self {
        Self {
            model,
            speed: 0,
            from: now,
        }
    }

    /// The speed set by the `CR` command.
    pub(super) fn speed(&self) -> u32 {
        self.speed
    }

    pub(super) fn rpm(&self) -> u32 {
        self.model.rpm() * (100 - self.speed) / 100
    }

    /// Sets the speed. Returns whether it changed; turns are then counted from zero again.
    pub(super) fn set_speed(&mut self, now: Duration, speed: u32) -> bool {
        let changes = speed != self.speed;
        if changes {
            self.speed = speed;
            self.from = now;
        }
        changes
    }

    /// The time of a turn.
    pub(super) fn sweep(&self, turn: u64) -> Sweep {
        let length = self.length();
        let nanos = length.as_nanos().saturating_mul(u128::from(turn));
        let after = Duration::from_nanos(nanos.try_into().unwrap_or(u64::MAX));
        Sweep {
            start: self.from.saturating_add(after),
            turn: length,
        }
    }

    /// When the last step of a turn has been measured.
    pub(super) fn finished(&self, sweep: Sweep) -> Duration {
        let time = self.model.sweep_time(sweep.turn);
        sweep.start.saturating_add(time)
    }

    /// The last finished turn; 0 also if there is none yet.
    pub(super) fn last_finished(&self, now: Duration) -> u64 {
        let length = self.length();
        let since = now
            .saturating_sub(self.from)
            .saturating_sub(self.model.sweep_time(length));
        count(since.as_nanos() / length.as_nanos())
    }

    /// The first turn that starts at this time or later.
    pub(super) fn first_from(&self, time: Duration) -> u64 {
        let since = time.saturating_sub(self.from);
        count(since.as_nanos().div_ceil(self.length().as_nanos()))
    }

    /// The number of turns within this time.
    pub(super) fn within(&self, time: Duration) -> u64 {
        count(time.as_nanos() / self.length().as_nanos())
    }

    fn length(&self) -> Duration {
        Duration::from_secs(60) * 100 / (self.model.rpm() * (100 - self.speed))
    }
}

fn count(turns: u128) -> u64 {
    turns.try_into().unwrap_or(u64::MAX)
}
