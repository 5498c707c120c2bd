//! Driver for an ODrive with two axes and firmware 0.5, by its ASCII protocol. Each axis drives the
//! wheels of one side. IO.
//!
//! ```text
//!  wheels: requests --> logic: phases, one question at a time --> protocol: lines
//!                         ^                                          |
//!            speeds, errors, battery <---------- answers <-----------+
//! ```
//!
//! `protocol`, `units`, `note` and `logic` are pure. `wheels` carries out the actions of `logic`, and
//! says what all wheels guarantee. Further guarantees for clients:
//!
//! - Both wheels of a side have the same speed: the mean of what was commanded.
//! - After a stop the motors hold the wheels for some seconds; then they can be turned by hand.
//! - If the driver is killed or frozen, the watchdog of the ODrive releases the motors, and the wheels
//!   roll out.
//! - While an axis has an error, the wheels of both sides are stopped and commands are refused.
//! - The driver never lets the ODrive store anything, and never calibrates a motor.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::devices::roboclaw;
use serde::Deserialize;

use self::logic::OdriveLogic;
pub use self::note::OdriveNote;
use self::units::Wheels;
use crate::connection::Endpoint;
use crate::options::{OptionsError, check, layered, read, serial};
use crate::wheels::{self, Rules, StopFor, Wiring};

#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
mod note;
pub(crate) mod probe;
pub mod protocol;
pub mod units;

const BAUD: u32 = 115_200;

/// Settings of the base and the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The rules that all wheels have.
    pub rules: Rules,
    /// The wheels and their motors.
    pub wheels: Wheels,
    /// The ODrive releases a motor so long after the last command.
    pub watchdog: Duration,
    /// Time limit for an answer.
    pub reply_timeout: Duration,
    /// Bits per second, for log messages.
    pub baud: u32,
}

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `port = "/dev/ttyACM0"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the ODrive [default: /dev/ttyACM0]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// Bits per second, at a UART [default: 115200]
    #[arg(long)]
    pub baud: Option<u32>,
    /// Turns of the motor per turn of its wheel [default: 1]
    #[arg(long, value_name = "RATIO")]
    pub gear_ratio: Option<f64>,
    /// Diameter of the wheels; required
    #[arg(long, value_name = "MM")]
    pub wheel_diameter_mm: Option<f64>,
    /// Whether axis 0 drives the right side [default: false]
    #[arg(long, value_name = "BOOL")]
    pub swap_sides: Option<bool>,
    /// Whether the left wheels turn and count backwards [default: false]
    #[arg(long, value_name = "BOOL")]
    pub reverse_left: Option<bool>,
    /// Whether the right wheels turn and count backwards [default: false]
    #[arg(long, value_name = "BOOL")]
    pub reverse_right: Option<bool>,
    /// Drop commands with a wheel faster than this; 0 for no limit [default: 1200]
    #[arg(long, value_name = "MM_S")]
    pub max_speed_mm_s: Option<u32>,
    /// Stop the wheels this long after the last command; 0 for never [default: 4000]
    #[arg(long, value_name = "MS")]
    pub idle_stop_ms: Option<u64>,
    /// Clients whose death stops the wheels [default: commander]
    #[arg(long, value_enum)]
    pub stop_for: Option<StopFor>,
    /// Let the ODrive release the motors this long after the last command, 300 to 10000 [default: 500]
    #[arg(long, value_name = "MS")]
    pub watchdog_ms: Option<u64>,
    /// Time limit for an answer of the ODrive [default: 100]
    #[arg(long, value_name = "MS")]
    pub reply_timeout_ms: Option<u64>,
    /// Interval between measurements of the speeds [default: 50]
    #[arg(long, value_name = "MS")]
    pub speeds_interval_ms: Option<u64>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is missing or invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (settings, endpoint) = self.complete()?.settings()?;
        let driver = wheels::stream::driver::<OdriveLogic, _>(settings, endpoint);
        Ok(roboclaw::driver(driver))
    }

    /// These options, with those of the file.
    pub(crate) fn complete(self) -> Result<Self, OptionsError> {
        let file: Self = read(self.config.as_deref())?;
        Ok(self.or(file))
    }

    /// The settings for these options. Ignores `config`.
    ///
    /// # Errors
    /// A value is missing or invalid.
    pub fn settings(self) -> Result<(Settings, Endpoint), OptionsError> {
        // A wrong guess would be a wrong speed.
        let diameter_mm = self.wheel_diameter_mm.ok_or(OptionsError::Missing {
            name: "--wheel-diameter-mm",
            hint: "measure a wheel",
        })?;
        let diameter_mm = check("wheel_diameter_mm", diameter_mm, 1.0..=10_000.0)?;
        let gear_ratio = check("gear_ratio", self.gear_ratio.unwrap_or(1.0), 0.01..=1_000.0)?;
        let endpoint = serial((self.port, "/dev/ttyACM0"), (self.baud, BAUD), 2_000_000)?;
        let watchdog_ms = check("watchdog_ms", self.watchdog_ms.unwrap_or(500), 300..=10_000)?;
        let reply_timeout_ms = self.reply_timeout_ms.unwrap_or(100);
        let reply_timeout_ms = check("reply_timeout_ms", reply_timeout_ms, 20..=5_000)?;
        let rules = Rules::of(
            self.max_speed_mm_s,
            self.idle_stop_ms,
            self.stop_for,
            self.speeds_interval_ms,
        )?;
        let settings = Settings {
            rules,
            wheels: Wheels {
                turns_per_mm: gear_ratio / (std::f64::consts::PI * diameter_mm),
                wiring: Wiring::of(self.swap_sides, self.reverse_left, self.reverse_right),
            },
            watchdog: Duration::from_millis(watchdog_ms),
            reply_timeout: Duration::from_millis(reply_timeout_ms),
            baud: self.baud.unwrap_or(BAUD),
        };
        Ok((settings, endpoint))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port baud gear_ratio wheel_diameter_mm swap_sides reverse_left
            reverse_right max_speed_mm_s idle_stop_ms stop_for watchdog_ms reply_timeout_ms
            speeds_interval_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_diameter_is_required_and_the_rest_has_defaults() {
        let missing = Options::default().settings().unwrap_err().to_string();
        assert_eq!(missing, "--wheel-diameter-mm is required");
        let file: Options =
            toml::from_str("wheel_diameter_mm = 170\nreverse_right = true").unwrap();
        let (settings, endpoint) = file.clone().settings().unwrap();
        assert_eq!(endpoint.to_string(), "/dev/ttyACM0 at 115200 baud");
        assert_eq!(settings.rules.max_speed_mm_s, Some(1_200));
        assert_eq!(settings.watchdog, Duration::from_millis(500));
        assert!((settings.wheels.turns_per_mm - 0.001_872).abs() < 1e-6);
        assert!(settings.wheels.wiring.reverses_right && !settings.wheels.wiring.swaps_sides);
        for text in [
            "wheel_diameter_mm = 0.5",
            "gear_ratio = 0",
            "watchdog_ms = 299",
            "baud = 1",
            "reply_timeout_ms = 19",
            "speeds_interval_ms = 19",
        ] {
            let wrong: Options = toml::from_str(text).unwrap();
            let error = wrong.or(file.clone()).settings().unwrap_err().to_string();
            let name = error.split(':').next().unwrap();
            assert!(text.starts_with(name), "{error}");
        }
    }
}
