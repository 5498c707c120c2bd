//! Driver for the iRobot Create 2 and the Roomba 500 to 900, by their Open Interface. IO.
//!
//! ```text
//!  wheels: requests --> logic: phases, modes --> protocol: commands
//!                         |      ^                  |
//!      speeds <-- odometer       hindrance <-- frames of the sensor stream --> contacts --> bumper
//! ```
//!
//! `protocol`, `hindrance`, `contacts`, `odometer`, `note` and `logic` are pure. `wheels` carries out the actions of
//! `logic`, and says what all wheels guarantee. Further guarantees for clients:
//!
//! - Both wheels of a side have the same speed: the mean of what was commanded.
//! - Measured speeds are the mean of the last tenth of a second.
//! - The robot is in safe mode while it drives: it stops by itself if a wheel drops or at a cliff.
//! - While the bumper is pressed or a cliff is in front, it drives only back or turns. In the air, on its
//!   dock and with a charger, it does not drive at all.
//! - The robot has no watchdog. If the driver is killed, a guard process stops the wheels at once, and
//!   one second after the driver hangs. If the cable is pulled out, nothing stops them.
//! - If the mediator names several devices for this process, what the robot feels is the device
//!   `bumper`, and what it measures of its battery the device `battery`.
//! - No command for brushes, vacuum, buttons or cleaning is ever sent.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::devices::roboclaw;
use amber_driver::{Device, Devices, Driver};
use serde::Deserialize;

use self::logic::Create2Logic;
pub use self::note::RobotNote;
use self::port::WakingPort;
use self::protocol::MAX_MM_S;
use crate::connection::Endpoint;
use crate::options::{OptionsError, check, layered, millis, read, serial};
use crate::wheels::{self, Rules, StopFor, besides};

pub mod contacts;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod hindrance;
pub mod logic;
mod note;
pub mod odometer;
mod port;
pub(crate) mod probe;
pub mod protocol;

/// What the robot has unless it was told otherwise when it was switched on.
const BAUD: u32 = 115_200;
const SLOW_BAUD: u32 = 19_200;

/// Settings of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The rules that all wheels have.
    pub rules: Rules,
    /// Bits per second, for log messages.
    pub baud: u32,
}

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `port = "/dev/ttyUSB0"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the robot [default: /dev/ttyUSB0]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// Bits per second: 115200, or 19200 if the robot was switched on with BRC low [default: 115200]
    #[arg(long)]
    pub baud: Option<u32>,
    /// Drop commands with a wheel faster than this, at most 500 [default: 500]
    #[arg(long, value_name = "MM_S")]
    pub max_speed_mm_s: Option<u32>,
    /// Stop the wheels this long after the last command; 0 for never [default: 4000]
    #[arg(long, value_name = "MS")]
    pub idle_stop_ms: Option<u64>,
    /// Clients whose death stops the wheels [default: commander]
    #[arg(long, value_enum)]
    pub stop_for: Option<StopFor>,
    /// Interval between measurements of the speeds for subscribers [default: 50]
    #[arg(long, value_name = "MS")]
    pub speeds_interval_ms: Option<u64>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (settings, endpoint) = self.complete()?.settings()?;
        let port = WakingPort::new(endpoint);
        let driver = wheels::stream::driver::<Create2Logic, _>(settings, port);
        Ok(roboclaw::driver(driver))
    }

    /// Creates the drivers of several devices of the robot: its wheels, and its bumper and its battery
    /// if they are among them.
    ///
    /// # Errors
    /// The file cannot be read, a value is invalid, or the robot has no such device.
    pub fn devices(self, named: &[Device]) -> Result<Devices, OptionsError> {
        let (settings, endpoint) = self.complete()?.settings()?;
        let port = WakingPort::new(endpoint);
        besides::devices(named, |besides| {
            let driver =
                wheels::stream::driver_and_besides::<Create2Logic, _>(settings, port, besides);
            roboclaw::driver(driver)
        })
    }

    /// These options, with those of the file.
    pub(crate) fn complete(self) -> Result<Self, OptionsError> {
        let file: Self = read(self.config.as_deref())?;
        Ok(self.or(file))
    }

    /// The settings for these options. Ignores `config`.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn settings(self) -> Result<(Settings, Endpoint), OptionsError> {
        let baud = self.baud.unwrap_or(BAUD);
        if ![BAUD, SLOW_BAUD].contains(&baud) {
            return Err(OptionsError::Value {
                name: "baud",
                problem: format!("{baud} is neither {BAUD} nor {SLOW_BAUD}"),
            });
        }
        let endpoint = serial((self.port, "/dev/ttyUSB0"), (self.baud, BAUD), BAUD)?;
        let fastest = MAX_MM_S.unsigned_abs();
        let max_speed_mm_s = self.max_speed_mm_s.unwrap_or(fastest);
        let max_speed_mm_s = check("max_speed_mm_s", max_speed_mm_s, 1..=fastest)?;
        let speeds_interval_ms = self.speeds_interval_ms.unwrap_or(50);
        let speeds_interval_ms = check("speeds_interval_ms", speeds_interval_ms, 15..=1_000)?;
        let settings = Settings {
            rules: Rules {
                max_speed_mm_s: Some(max_speed_mm_s),
                idle_stop: millis(self.idle_stop_ms, 4_000),
                stop_for: self.stop_for.unwrap_or_default(),
                speeds_interval: Duration::from_millis(speeds_interval_ms),
            },
            baud,
        };
        Ok((settings, endpoint))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port baud max_speed_mm_s idle_stop_ms stop_for speeds_interval_ms)
    }
}

#[cfg(test)]
mod tests;
