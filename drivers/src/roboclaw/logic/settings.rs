//! How the robot is made, and what the driver may do with it. PURE.

use std::time::Duration;

use crate::roboclaw::protocol::{Check, Pid};
use crate::roboclaw::units::Wheel;

/// How often the controllers are asked for their status when nothing else says
/// how often: they must be known to be there.
const HEARTBEAT: Duration = Duration::from_millis(700);

/// How the robot is made, and what it may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The address of the front controller.
    pub front: u8,
    /// The address of the rear controller.
    pub rear: u8,
    /// How packets end; `None` to find out.
    pub check: Option<Check>,
    /// The wheels.
    pub wheel: Wheel,
    /// How all motors keep their speed.
    pub pid: Pid,
    /// Commands with a faster wheel are dropped, in mm/s; `None` for any speed.
    pub max_speed_mm_s: Option<u32>,
    /// The wheels stop so long after the last command.
    pub idle_stop: Option<Duration>,
    /// The controllers are reset so long after the last command, if they can be.
    pub idle_reset: Option<Duration>,
    /// Which lines there are beside the bus.
    pub lines: Lines,
    /// How long the controllers need after a reset.
    pub reset_delay: Duration,
    /// How often errors are looked for.
    pub error_interval: Option<Duration>,
    /// How often the batteries are measured.
    pub battery_interval: Option<Duration>,
    /// How often the temperature is measured.
    pub temperature_interval: Option<Duration>,
    /// Too hot to drive, in tenths of a degree Celsius.
    pub temperature_critical: i32,
    /// Cool enough again.
    pub temperature_drop: i32,
    /// How often something critical is read again before it is believed.
    pub repeats: u8,
    /// Controllers stop when they hear nothing for so many tenths of a second.
    pub watchdog_tenths: Option<u8>,
    /// Whose death stops the wheels.
    pub stop_for: StopFor,
}

/// Which lines there are beside the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Resets both controllers.
    pub reset: bool,
    /// Lit while all is well.
    pub green: bool,
    /// Lit while something is wrong.
    pub red: bool,
}

/// Whose death stops the wheels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopFor {
    /// Only that of the client whose command is in force.
    #[default]
    Commander,
    /// That of any client, as the original did.
    Anyone,
}

impl Settings {
    /// How often the controllers are asked for their status: as often as errors
    /// are looked for, and often enough that their own watchdog sleeps.
    pub(super) fn status_interval(&self) -> Duration {
        let errors = self.error_interval.unwrap_or(HEARTBEAT);
        let watchdog =
            (self.watchdog_tenths).map(|tenths| Duration::from_millis(100) * tenths.into());
        watchdog.map_or(errors, |watchdog| errors.min(watchdog / 3))
    }

    /// How long after the last command the controllers are reset, if they can be.
    pub(super) fn idle_reset(&self) -> Option<Duration> {
        self.idle_reset.filter(|_| self.lines.reset)
    }
}
