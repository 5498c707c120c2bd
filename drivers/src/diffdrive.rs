//! Driver for bases with two driven wheels and an Arduino with the firmware of ros_arduino_bridge, or
//! one that speaks like it, such as Andino. IO.
//!
//! ```text
//!  wheels: requests --> logic: phases, one exchange at a time --> protocol: lines
//!                         |                                         |
//!          speeds <-- encoders: counts, believed or not <-----------+
//! ```
//!
//! `protocol`, `units`, `note` and `logic` are pure. `wheels` has the encoders, carries out the actions
//! of `logic`, and says what all wheels guarantee. Further guarantees for clients:
//!
//! - Both wheels of a side have the same speed: the mean of what was commanded, rounded to what the
//!   firmware can tell apart.
//! - Measured speeds are the mean of the last tenth of a second.
//! - If the driver is killed or frozen, the firmware stops the motors 2 s after the last command, unless
//!   it is a variant without this rule.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::devices::roboclaw;
use serde::Deserialize;

use self::logic::DiffdriveLogic;
pub use self::note::BoardNote;
use self::protocol::{Family, Gains};
use self::units::{SpeedUnit, Wheels};
use crate::connection::Endpoint;
use crate::options::{OptionsError, check, layered, read, serial};
use crate::wheels::encoders::{Encoders, Scale};
use crate::wheels::{self, Rules, StopFor, Wiring};

#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
mod note;
pub(crate) mod probe;
pub mod protocol;
pub mod units;

/// As both originals of the firmware.
const BAUD: u32 = 57_600;
/// Without a speed limit, no wheel is faster than this.
const FASTEST_MM_S: u32 = 5_000;

/// Settings of the base and the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The rules that all wheels have.
    pub rules: Rules,
    /// The firmware.
    pub firmware: Firmware,
    /// The wheels.
    pub wheels: Wheels,
    /// The unit of commanded speeds; `None` for that of the firmware.
    pub speed_unit: Option<SpeedUnit>,
    /// The constants of the speed control; `None` for those of the firmware.
    pub gains: Option<Gains>,
    /// Time limit for an answer.
    pub reply_timeout: Duration,
    /// Bits per second, for log messages.
    pub baud: u32,
}

/// The firmware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Firmware {
    /// Detect it
    #[default]
    Auto,
    /// That of ros_arduino_bridge, and its forks
    Bridge,
    /// That of the robot Andino
    Andino,
}

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `port = "/dev/ttyUSB0"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the board [default: /dev/ttyUSB0]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// Bits per second, as the firmware was compiled: 57600 or 115200 [default: 57600]
    #[arg(long)]
    pub baud: Option<u32>,
    /// The firmware [default: auto]
    #[arg(long, value_enum)]
    pub firmware: Option<Firmware>,
    /// Encoder counts per turn of a wheel; required
    #[arg(long, value_name = "COUNT")]
    pub counts_per_turn: Option<f64>,
    /// Diameter of the wheels; required
    #[arg(long, value_name = "MM")]
    pub wheel_diameter_mm: Option<f64>,
    /// Frames of the firmware's speed control per second [default: 30]
    #[arg(long, value_name = "HZ")]
    pub pid_rate_hz: Option<u16>,
    /// The unit of commanded speeds, for unusual firmware [default: as the firmware has it]
    #[arg(long, value_enum)]
    pub speed_unit: Option<SpeedUnit>,
    /// Constants of the firmware's speed control, told to it at each start [default: its own]
    #[arg(long, value_name = "KP:KD:KI:KO")]
    pub gains: Option<Gains>,
    /// Whether the left wheel is connected as the right one [default: false]
    #[arg(long, value_name = "BOOL")]
    pub swap_sides: Option<bool>,
    /// Whether the left wheel turns and counts backwards [default: false]
    #[arg(long, value_name = "BOOL")]
    pub reverse_left: Option<bool>,
    /// Whether the right wheel turns and counts backwards [default: false]
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
    /// Time limit for an answer of the board [default: 200]
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
        let driver = wheels::stream::driver::<DiffdriveLogic, _>(settings, endpoint);
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
        let counts = self.counts_per_turn.ok_or(OptionsError::Missing {
            name: "--counts-per-turn",
            hint: "turn a wheel by hand ten times, and see how far `e` counts in a serial monitor",
        })?;
        let diameter_mm = self.wheel_diameter_mm.ok_or(OptionsError::Missing {
            name: "--wheel-diameter-mm",
            hint: "measure a wheel",
        })?;
        let counts = check("counts_per_turn", counts, 1.0..=10_000_000.0)?;
        let diameter_mm = check("wheel_diameter_mm", diameter_mm, 1.0..=10_000.0)?;
        let endpoint = serial((self.port, "/dev/ttyUSB0"), (self.baud, BAUD), 2_000_000)?;
        let reply_timeout_ms = self.reply_timeout_ms.unwrap_or(200);
        let reply_timeout_ms = check("reply_timeout_ms", reply_timeout_ms, 50..=5_000)?;
        let rules = Rules::of(
            self.max_speed_mm_s,
            self.idle_stop_ms,
            self.stop_for,
            self.speeds_interval_ms,
        )?;
        let wiring = Wiring::of(self.swap_sides, self.reverse_left, self.reverse_right);
        let settings = Settings {
            rules,
            firmware: self.firmware.unwrap_or_default(),
            wheels: Wheels {
                scale: Scale::new(counts, diameter_mm, wiring),
                frame_hz: check("pid_rate_hz", self.pid_rate_hz.unwrap_or(30), 1..=1_000)?,
            },
            speed_unit: self.speed_unit,
            gains: self.gains,
            reply_timeout: Duration::from_millis(reply_timeout_ms),
            baud: self.baud.unwrap_or(BAUD),
        };
        Ok((settings, endpoint))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port baud firmware counts_per_turn wheel_diameter_mm pid_rate_hz
            speed_unit gains swap_sides reverse_left reverse_right max_speed_mm_s idle_stop_ms stop_for
            reply_timeout_ms speeds_interval_ms)
    }
}

impl Settings {
    /// The unit of commanded speeds, with firmware of this family.
    fn unit(&self, family: Family) -> SpeedUnit {
        self.speed_unit.unwrap_or(match family {
            Family::Bridge => SpeedUnit::Frame,
            Family::Andino => SpeedUnit::Second,
        })
    }

    /// Encoders without readings.
    fn encoders(&self) -> Encoders {
        let fastest_mm_s = self.rules.max_speed_mm_s.unwrap_or(FASTEST_MM_S);
        Encoders::new(self.wheels.scale, fastest_mm_s.into())
    }

    /// What is connected, for people.
    fn name(&self, family: Family) -> String {
        let name = match family {
            Family::Bridge => "ros_arduino_bridge",
            Family::Andino => "Andino",
        };
        let step_mm_s = self.wheels.step_mm_s();
        format!("firmware of {name}, speeds in steps of {step_mm_s:.2} mm/s")
    }
}

#[cfg(test)]
mod tests;
