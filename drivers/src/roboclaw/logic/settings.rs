//! Settings of the robot and the driver. PURE.

use std::time::Duration;

use crate::roboclaw::protocol::{Check, Pid};
use crate::roboclaw::units::{Layout, Wheel};
use crate::wheels::{Rules, StopFor};

/// The interval between status requests when no other setting requires more: they show that the
/// controllers are connected.
const HEARTBEAT: Duration = Duration::from_millis(700);

/// Settings of the robot and the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The controllers.
    pub layout: Layout,
    /// The packet format; `None` to detect it.
    pub check: Option<Check>,
    /// The wheels.
    pub wheel: Wheel,
    /// What is changed in the controllers.
    pub tuning: Tuning,
    /// Commands with a faster wheel are dropped, in mm/s; `None` for no limit.
    pub max_speed_mm_s: Option<u32>,
    /// The wheels stop this long after the last command.
    pub idle_stop: Option<Duration>,
    /// The controllers are reset this long after the last command, if there is a reset line.
    pub idle_reset: Option<Duration>,
    /// The connected GPIO lines.
    pub lines: Lines,
    /// How long the controllers need after a reset.
    pub reset_delay: Duration,
    /// The interval between checks for errors.
    pub error_interval: Option<Duration>,
    /// The interval between battery measurements.
    pub battery_interval: Option<Duration>,
    /// The interval between temperature measurements.
    pub temperature_interval: Option<Duration>,
    /// Driving is disabled above this, in tenths of a degree Celsius.
    pub temperature_critical: i32,
    /// Driving is enabled again below this.
    pub temperature_drop: i32,
    /// The number of repeated readings that confirm an alarm.
    pub repeats: u8,
    /// Controllers stop after this time without packets, in tenths of a second.
    pub watchdog_tenths: Option<u8>,
    /// The clients whose death stops the wheels.
    pub stop_for: StopFor,
    /// The interval between measurements of the speeds for subscribers.
    pub speeds_interval: Duration,
}

/// What the driver changes in the controllers, for all motors. Everything else stays as the controllers
/// have it stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// The proportional constant, times 65536.
    pub p: Option<u32>,
    /// The integral constant, times 65536.
    pub i: Option<u32>,
    /// The differential constant, times 65536.
    pub d: Option<u32>,
    /// Pulses per second at full power.
    pub max_qpps: Option<u32>,
    /// Whether the encoders are set to quadrature.
    pub quadrature: bool,
}

impl Tuning {
    /// The speed control if all of it is stated.
    pub(super) fn whole(self) -> Option<Pid> {
        Some(Pid {
            p: self.p?,
            i: self.i?,
            d: self.d?,
            max_qpps: self.max_qpps?,
        })
    }

    /// Whether a part of the speed control is stated.
    pub(super) fn has_pid(self) -> bool {
        let Self {
            p, i, d, max_qpps, ..
        } = self;
        [p, i, d, max_qpps].iter().any(Option::is_some)
    }

    /// What is stated, and the rest as it is stored.
    pub(super) fn over(self, stored: Pid) -> Pid {
        Pid {
            p: self.p.unwrap_or(stored.p),
            i: self.i.unwrap_or(stored.i),
            d: self.d.unwrap_or(stored.d),
            max_qpps: self.max_qpps.unwrap_or(stored.max_qpps),
        }
    }
}

/// The connected GPIO lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Resets both controllers.
    pub reset: bool,
    /// Lit while there are no problems.
    pub green: bool,
    /// Lit while there is a problem.
    pub red: bool,
}

impl Settings {
    /// The rules that all wheels have.
    pub(super) fn rules(&self) -> Rules {
        Rules {
            max_speed_mm_s: self.max_speed_mm_s,
            idle_stop: self.idle_stop,
            stop_for: self.stop_for,
            speeds_interval: self.speeds_interval,
        }
    }

    /// The interval between status requests: short enough for the error checks, and for the
    /// controllers' watchdog not to expire.
    pub(super) fn status_interval(&self) -> Duration {
        let errors = self.error_interval.unwrap_or(HEARTBEAT);
        let watchdog =
            (self.watchdog_tenths).map(|tenths| Duration::from_millis(100) * tenths.into());
        watchdog.map_or(errors, |watchdog| errors.min(watchdog / 3))
    }

    /// How long after the last command the controllers are reset, if there is a reset line.
    pub(super) fn idle_reset(&self) -> Option<Duration> {
        self.idle_reset.filter(|_| self.lines.reset)
    }
}
