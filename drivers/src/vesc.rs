//! Driver for two VESC motor controllers: one at a port, the other one behind it on the CAN bus or at a
//! port of its own. Each drives the wheels of one side. IO.
//!
//! ```text
//!  wheels: requests --> logic: phases, one question at a time --> protocol: frames
//!                         ^                                          |
//!          state: faults, battery, speeds <---- answers <------------+
//! ```
//!
//! `protocol`, `units`, `state`, `note` and `logic` are pure; `driver` carries out the actions of
//! `logic`. `wheels` says what all wheels guarantee. Further guarantees for clients:
//!
//! - Both wheels of a side have the same speed: the mean of what was commanded. Speeds that the speed
//!   control of the VESCs does not hold are a stop.
//! - To stop, the wheels are braked; after some seconds they can be turned by hand.
//! - If the driver is killed or frozen, the VESCs release the motors 1 s after the last command, unless
//!   they are configured otherwise, and the wheels roll out.
//! - While a VESC reports a fault, the wheels of both sides are stopped and commands are refused.
//! - The driver never changes what a VESC stores.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::devices::roboclaw;
use serde::Deserialize;

pub use self::note::VescNote;
use self::units::{Unit, Wheels};
use crate::connection::Endpoint;
use crate::options::{OptionsError, check, layered, read, serial};
use crate::wheels::{Rules, StopFor, Wiring};

pub(crate) mod driver;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
mod note;
pub(crate) mod probe;
pub mod protocol;
mod state;
pub mod units;

const BAUD: u32 = 115_200;
const FASTEST_BAUD: u32 = 2_000_000;

/// Settings of the base and the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The rules that all wheels have.
    pub rules: Rules,
    /// The wheels and their motors.
    pub wheels: Wheels,
    /// How the second VESC is reached.
    pub reach: Reach,
    /// Time limit for an answer.
    pub reply_timeout: Duration,
    /// Bits per second, for log messages.
    pub baud: u32,
}

/// How the second VESC is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By the first one, with this number on the CAN bus.
    Can(u8),
    /// At a port of its own.
    Port,
}

impl Reach {
    /// The VESC at whose port this one is reached.
    fn port(self, unit: Unit) -> Unit {
        match self {
            Self::Can(_) => Unit::First,
            Self::Port => unit,
        }
    }

    /// Its number on the CAN bus, if it is reached by that.
    fn can_id(self, unit: Unit) -> Option<u8> {
        match (self, unit) {
            (Self::Can(id), Unit::Second) => Some(id),
            _ => None,
        }
    }
}

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `port = "/dev/ttyACM0"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the first VESC, which drives the left side [default: /dev/ttyACM0]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// Bits per second, at a UART [default: 115200]
    #[arg(long)]
    pub baud: Option<u32>,
    /// Number of the second VESC on the CAN bus, 0 to 254; this or --second-port is required
    #[arg(long, value_name = "ID", conflicts_with = "second_port")]
    pub can_id: Option<u8>,
    /// Serial port of the second VESC, if it is not on the CAN bus of the first one
    #[arg(long, value_name = "FILE")]
    pub second_port: Option<PathBuf>,
    /// Pole pairs of the motors: half of their magnets; required
    #[arg(long, value_name = "COUNT")]
    pub pole_pairs: Option<u32>,
    /// Turns of the motor per turn of its wheel [default: 1]
    #[arg(long, value_name = "RATIO")]
    pub gear_ratio: Option<f64>,
    /// Diameter of the wheels; required
    #[arg(long, value_name = "MM")]
    pub wheel_diameter_mm: Option<f64>,
    /// Lowest speed of the VESCs' speed control, in electrical turns per minute: Minimum ERPM in VESC
    /// Tool [default: 900]
    #[arg(long, value_name = "ERPM")]
    pub min_erpm: Option<u32>,
    /// Current that brakes a wheel to stop it; 0 lets it roll [default: 5000]
    #[arg(long, value_name = "MA")]
    pub brake_ma: Option<u32>,
    /// Whether the first VESC drives the right side [default: false]
    #[arg(long, value_name = "BOOL")]
    pub swap_sides: Option<bool>,
    /// Whether the left wheels turn backwards [default: false]
    #[arg(long, value_name = "BOOL")]
    pub reverse_left: Option<bool>,
    /// Whether the right wheels turn backwards [default: false]
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
    /// Time limit for an answer of a VESC [default: 200]
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
        let (settings, first, second) = self.complete()?.settings()?;
        Ok(roboclaw::driver(driver::driver(settings, first, second)))
    }

    /// These options, with those of the file.
    pub(crate) fn complete(self) -> Result<Self, OptionsError> {
        let file: Self = read(self.config.as_deref())?;
        Ok(self.or(file))
    }

    /// The settings for these options, and the ports of the VESCs. Ignores `config`.
    ///
    /// # Errors
    /// A value is missing or invalid.
    pub fn settings(self) -> Result<(Settings, Endpoint, Option<Endpoint>), OptionsError> {
        // A wrong guess would be a wrong speed.
        let pole_pairs = self.pole_pairs.ok_or(OptionsError::Missing {
            name: "--pole-pairs",
            hint: "half of Motor Poles in VESC Tool, Motor Settings, Additional Info",
        })?;
        let diameter_mm = self.wheel_diameter_mm.ok_or(OptionsError::Missing {
            name: "--wheel-diameter-mm",
            hint: "measure a wheel",
        })?;
        let pole_pairs = check("pole_pairs", pole_pairs, 1..=200)?;
        let diameter_mm = check("wheel_diameter_mm", diameter_mm, 1.0..=10_000.0)?;
        let gear_ratio = check("gear_ratio", self.gear_ratio.unwrap_or(1.0), 0.01..=1_000.0)?;
        let min_erpm = check("min_erpm", self.min_erpm.unwrap_or(900), 0..=100_000)?;
        let brake_ma = check("brake_ma", self.brake_ma.unwrap_or(5_000), 0..=500_000)?;
        let baud = (self.baud, BAUD);
        let first = serial((self.port, "/dev/ttyACM0"), baud, FASTEST_BAUD)?;
        let (reach, second) = match (self.can_id, self.second_port) {
            (Some(id), None) => (Reach::Can(check("can_id", id, 0..=254)?), None),
            (None, Some(port)) => {
                let second = serial((Some(port), ""), baud, FASTEST_BAUD)?;
                (Reach::Port, Some(second))
            }
            (None, None) => {
                return Err(OptionsError::Missing {
                    name: "--can-id",
                    hint: "VESC Tool shows it for the second VESC: App Settings, General, VESC ID; one \
                           with a port of its own needs --second-port instead",
                });
            }
            (Some(_), Some(_)) => {
                let problem =
                    "is for a second VESC on the CAN bus, second_port for one with a port";
                return Err(OptionsError::Value {
                    name: "can_id",
                    problem: problem.to_owned(),
                });
            }
        };
        let reply_timeout_ms = self.reply_timeout_ms.unwrap_or(200);
        let reply_timeout_ms = check("reply_timeout_ms", reply_timeout_ms, 50..=5_000)?;
        let rules = Rules::of(
            self.max_speed_mm_s,
            self.idle_stop_ms,
            self.stop_for,
            self.speeds_interval_ms,
        )?;
        let turns_per_mm = gear_ratio / (std::f64::consts::PI * diameter_mm);
        let settings = Settings {
            rules,
            wheels: Wheels {
                erpm_per_mm_s: 60.0 * f64::from(pole_pairs) * turns_per_mm,
                min_erpm: min_erpm.cast_signed(),
                brake_ma: brake_ma.cast_signed(),
                wiring: Wiring::of(self.swap_sides, self.reverse_left, self.reverse_right),
            },
            reach,
            reply_timeout: Duration::from_millis(reply_timeout_ms),
            baud: self.baud.unwrap_or(BAUD),
        };
        Ok((settings, first, second))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port baud can_id second_port pole_pairs gear_ratio wheel_diameter_mm
            min_erpm brake_ma swap_sides reverse_left reverse_right max_speed_mm_s idle_stop_ms stop_for
            reply_timeout_ms speeds_interval_ms)
    }
}

#[cfg(test)]
mod tests;
