//! Log messages about wheels. PURE.

use std::fmt;
use std::time::{Duration, Instant};

use amber_driver::ClientId;

/// The minimum interval between log messages about commands that are too fast.
const SAY_TOO_FAST: Duration = Duration::from_secs(1);

/// The minimum interval between repeated log messages.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// A log message that only one model has.
pub trait Special: fmt::Display + Send + 'static {
    /// Whether to log it as a warning.
    fn is_warning(&self) -> bool;
}

/// A log message; `S` are those that only one model has.
#[derive(Clone, Debug, PartialEq)]
pub enum Note<S> {
    /// Commands reach the wheels from now on. What is connected.
    Ready(String),
    /// The controllers work again after an outage.
    Back {
        /// The length of the outage.
        after: Duration,
        /// The number of commands dropped meanwhile.
        refused: u64,
    },
    /// The controllers are unreachable.
    Trouble(String),
    /// The turning wheels were stopped.
    Stopped(StopReason),
    /// Commands were dropped.
    Refused {
        /// The reason for the last one.
        refusal: Refusal,
        /// The number since the last such message.
        count: u64,
    },
    /// The wheels of one side of a base that has one speed for both were commanded to turn at different
    /// speeds.
    Twisted,
    /// A message of this model.
    Special(S),
}

/// The reason why the wheels are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// No command has arrived for some time.
    Idle,
    /// A client is gone.
    ClientDied(ClientId),
    /// The battery is low.
    BatteryLow,
    /// A controller has an error.
    Errors,
    /// A controller is too hot.
    Hot,
    /// No command has reached the controllers for so long that they, or a guard, have stopped the wheels.
    Late,
    /// The base senses this.
    Hindered(&'static str),
}

/// The reason why a command is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A wheel would exceed the speed limit.
    TooFast {
        /// The fastest wheel.
        fastest_mm_s: u32,
        /// The speed limit.
        max_mm_s: u32,
    },
    /// The controllers are unreachable.
    Away,
    /// The controllers are being reset.
    Resetting,
    /// A low battery was reported earlier.
    BatteryLow,
    /// A controller has an error.
    Errors,
    /// A controller is too hot.
    Hot,
    /// The base senses this.
    Hindered(&'static str),
}

impl<S: Special> Note<S> {
    /// Whether to log it as a warning.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Ready(_)
            | Self::Back { .. }
            | Self::Stopped(StopReason::Idle | StopReason::ClientDied(_)) => false,
            Self::Trouble(_) | Self::Stopped(_) | Self::Refused { .. } | Self::Twisted => true,
            Self::Special(special) => special.is_warning(),
        }
    }
}

impl<S: fmt::Display> fmt::Display for Note<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(name) => write!(f, "ready: {name}"),
            Self::Back { after, refused } => write!(
                f,
                "works again after {:.1} s; the wheels stand still, {refused} commands were dropped",
                after.as_secs_f64()
            ),
            Self::Trouble(text) => write!(f, "{text}; retrying"),
            Self::Stopped(reason) => write!(f, "stopped the wheels: {reason}"),
            Self::Refused { refusal, count: 1 } => write!(f, "dropped a command: {refusal}"),
            Self::Refused { refusal, count } => write!(f, "dropped {count} commands: {refusal}"),
            Self::Twisted => f.write_str(
                "a command has two speeds for one side: this base turns its wheels at their mean \
                 (logged once)",
            ),
            Self::Special(special) => special.fmt(f),
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("no command has arrived"),
            Self::ClientDied(client) => write!(f, "client {client} is gone"),
            Self::BatteryLow => f.write_str("battery low"),
            Self::Errors => f.write_str("a controller has an error"),
            Self::Hot => f.write_str("too hot"),
            Self::Late => f.write_str("no command has reached the controllers for some time"),
            Self::Hindered(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFast {
                fastest_mm_s,
                max_mm_s,
            } => write!(
                f,
                "{fastest_mm_s} mm/s is more than max_speed_mm_s = {max_mm_s}"
            ),
            Self::Away => f.write_str("the controllers are unreachable"),
            Self::Resetting => f.write_str("the controllers are being reset"),
            Self::BatteryLow => f.write_str("the battery was low; restart this driver"),
            Self::Errors => f.write_str("a controller has an error"),
            Self::Hot => f.write_str("a controller is too hot"),
            Self::Hindered(why) => f.write_str(why),
        }
    }
}

/// Dropped commands that were not logged yet.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    kinds: Vec<RefusalCount>,
}

#[derive(Debug)]
struct RefusalCount {
    refusal: Refusal,
    said: Instant,
    since: u64,
}

impl Refusals {
    /// Counts a dropped command. Returns the number to log, when a log message is due.
    pub(super) fn say(&mut self, now: Instant, refusal: Refusal) -> Option<u64> {
        let is_same = |kind: &&mut RefusalCount| {
            std::mem::discriminant(&kind.refusal) == std::mem::discriminant(&refusal)
        };
        let Some(kind) = self.kinds.iter_mut().find(is_same) else {
            self.kinds.push(RefusalCount {
                refusal,
                said: now,
                since: 0,
            });
            return Some(1);
        };
        let pause = match refusal {
            Refusal::TooFast { .. } => SAY_TOO_FAST,
            _ => SAY_AGAIN,
        };
        kind.since += 1;
        if now.saturating_duration_since(kind.said) < pause {
            return None;
        }
        kind.said = now;
        Some(std::mem::take(&mut kind.since))
    }
}
