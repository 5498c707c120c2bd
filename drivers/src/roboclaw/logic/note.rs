//! What the log says about the controllers. PURE.

use std::fmt;
use std::time::{Duration, Instant};

use amber_driver::ClientId;

use crate::roboclaw::protocol::{Check, Fault};
use crate::roboclaw::units::Unit;

/// How often the log tells of commands that are too fast.
const SAY_TOO_FAST: Duration = Duration::from_secs(1);

/// How often it repeats what it has told before.
const SAY_AGAIN: Duration = Duration::from_secs(10);

/// A line for the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// Commands reach the wheels from now on.
    Ready {
        /// The firmware of the front and rear controller.
        versions: [String; 2],
        /// How packets end.
        check: Check,
    },
    /// The same after some trouble.
    Back {
        /// How long it took.
        after: Duration,
        /// How many commands were dropped meanwhile.
        refused: u64,
    },
    /// The controllers cannot be reached.
    Trouble(String),
    /// The wheels were turning, and are stopped.
    Stopped(StopReason),
    /// Commands were dropped.
    Refused {
        /// Why the last one was.
        refusal: Refusal,
        /// How many since the last time this was said.
        count: u64,
    },
    /// A controller complains.
    Fault(Unit, Fault),
    /// None does any more.
    Clean,
    /// Errors make us reset the controllers.
    ResetForErrors,
    /// Too hot to drive, or cool again.
    Temperature {
        /// Whether it is too hot.
        hot: bool,
        /// Tenths of a degree Celsius.
        tenths: i32,
    },
    /// How the batteries are, in tenths of a volt.
    Battery {
        /// What drives the motors.
        main_dv: i32,
        /// What feeds the electronics.
        logic_dv: i32,
    },
    /// Something cannot be measured, by this firmware or for now.
    Unknown(&'static str),
}

/// Why the wheels are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// No command has come for long.
    Idle,
    /// A client is gone.
    ClientDied(ClientId),
    /// The battery is low.
    BatteryLow,
    /// A controller has an error.
    Errors,
    /// A controller is too hot.
    Hot,
}

/// Why a command is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A wheel would be faster than it may be.
    TooFast {
        /// The fastest wheel.
        fastest_mm_s: u32,
        /// What is allowed.
        max_mm_s: u32,
    },
    /// The controllers cannot be reached.
    Away,
    /// The controllers are being reset.
    Resetting,
    /// The battery was low once.
    BatteryLow,
    /// A controller has an error.
    Errors,
    /// A controller is too hot.
    Hot,
}

impl Note {
    /// Whether somebody should look at it.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::Ready { .. }
            | Self::Back { .. }
            | Self::Clean
            | Self::Battery { .. }
            | Self::Temperature { hot: false, .. }
            | Self::Stopped(StopReason::Idle | StopReason::ClientDied(_)) => false,
            Self::Trouble(_)
            | Self::Stopped(_)
            | Self::Refused { .. }
            | Self::Fault(..)
            | Self::ResetForErrors
            | Self::Temperature { hot: true, .. }
            | Self::Unknown(_) => true,
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready { versions, check } => {
                let [front, rear] = versions;
                write!(
                    f,
                    "ready: front '{front}', rear '{rear}', {check:?} packets"
                )
            }
            Self::Back { after, refused } => write!(
                f,
                "works again after {:.1} s; wheels stand, {refused} commands were dropped",
                after.as_secs_f64()
            ),
            Self::Trouble(text) => write!(f, "{text}; trying again"),
            Self::Stopped(reason) => write!(f, "stopped the wheels: {reason}"),
            Self::Refused { refusal, count: 1 } => write!(f, "dropped a command: {refusal}"),
            Self::Refused { refusal, count } => write!(f, "dropped {count} commands: {refusal}"),
            Self::Fault(unit, fault) => match fault {
                Fault::BatteryLow => write!(
                    f,
                    "{} controller: battery low; no more driving until it is charged and this \
                     driver restarted",
                    unit.name()
                ),
                Fault::Error(text) => write!(f, "{} controller: {text}", unit.name()),
                Fault::Warning(text) => write!(f, "{} controller warns: {text}", unit.name()),
            },
            Self::Clean => write!(f, "the controllers have no errors any more"),
            Self::ResetForErrors => write!(f, "resetting the controllers"),
            Self::Temperature { hot, tenths } => {
                let word = if *hot {
                    "too hot to drive"
                } else {
                    "cool enough"
                };
                write!(f, "{word}: {}.{} C", tenths / 10, tenths % 10)
            }
            Self::Battery { main_dv, logic_dv } => write!(
                f,
                "main battery {}.{} V, logic battery {}.{} V",
                main_dv / 10,
                main_dv % 10,
                logic_dv / 10,
                logic_dv % 10
            ),
            Self::Unknown(what) => write!(f, "the controllers do not tell the {what}"),
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("no command has come"),
            Self::ClientDied(client) => write!(f, "client {client} is gone"),
            Self::BatteryLow => f.write_str("battery low"),
            Self::Errors => f.write_str("a controller has an error"),
            Self::Hot => f.write_str("too hot"),
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
            Self::Away => f.write_str("the controllers cannot be reached"),
            Self::Resetting => f.write_str("the controllers are being reset"),
            Self::BatteryLow => f.write_str("the battery was low; restart this driver"),
            Self::Errors => f.write_str("a controller has an error"),
            Self::Hot => f.write_str("a controller is too hot"),
        }
    }
}

/// Commands that were dropped and not told of yet.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    kinds: Vec<Kind>,
}

#[derive(Debug)]
struct Kind {
    refusal: Refusal,
    said: Instant,
    since: u64,
}

impl Refusals {
    /// Counts one; how many there are to be told of, if it is time.
    pub(super) fn say(&mut self, now: Instant, refusal: Refusal) -> Option<u64> {
        let is_same = |kind: &&mut Kind| {
            std::mem::discriminant(&kind.refusal) == std::mem::discriminant(&refusal)
        };
        let Some(kind) = self.kinds.iter_mut().find(is_same) else {
            self.kinds.push(Kind {
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
