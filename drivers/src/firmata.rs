//! Driver for an Arduino or a similar board with a program that speaks Firmata, such as
//! StandardFirmata. IO.
//!
//! ```text
//!  board: pins, orders --> logic: phases, settings, checks --> protocol: bytes
//!                            |                                     |
//!                values <----+---------- messages <----------------+
//! ```
//!
//! `board` has what all boards with pins share, and says what they guarantee. `protocol`, `abilities` and
//! `logic` are pure; `driver` carries out the actions of `logic`.
//!
//! Such a board has no watchdog: its outputs stay as they are when nobody is there. So a guard process
//! gives them their safe values when the driver is killed or hangs.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::devices::board;
use serde::Deserialize;

use crate::board::{PinOptions, Pins};
use crate::connection::Endpoint;
use crate::options::{OptionsError, check, layered, read, serial};

mod abilities;
pub(crate) mod driver;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
pub(crate) mod probe;
pub mod protocol;

/// That of StandardFirmata.
const BAUD: u32 = 57_600;

/// Settings of the driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The pins, and how they are used.
    pub pins: Pins,
    /// The reference voltage of the analog inputs.
    pub reference_v: f64,
    /// The time between two analog values of the board.
    pub sampling_interval: Duration,
    /// The time between two publications of analog values.
    pub publish_interval: Duration,
    /// Bits per second, for log messages.
    pub baud: u32,
}

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `port = "/dev/ttyACM0"`, and a `[[pin]]` section for
    /// each pin
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the board [default: /dev/ttyACM0]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// Bits per second, as in the program of the board: 57600 for StandardFirmata, 115200 for
    /// FirmataExpress [default: 57600]
    #[arg(long)]
    pub baud: Option<u32>,
    /// A pin that is used, such as led=13:output or light=A0:analog; once for each. Modes: input,
    /// input-pull-up, output, analog, pwm, servo. A third part is the safe value: motor=5:pwm:0
    #[arg(long, value_name = "[NAME=]PIN:MODE[:SAFE]")]
    pub pin: Option<Vec<PinOptions>>,
    /// Reference voltage of the analog inputs: 3.3 for many boards [default: 5]
    #[arg(long, value_name = "V")]
    pub reference_v: Option<f64>,
    /// Time between two analog values of the board [default: 20]
    #[arg(long, value_name = "MS")]
    pub sampling_interval_ms: Option<u16>,
    /// Time between two publications of analog values [default: 100]
    #[arg(long, value_name = "MS")]
    pub publish_interval_ms: Option<u16>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let (settings, endpoint) = self.complete()?.settings()?;
        Ok(board::driver(driver::driver(settings, endpoint)))
    }

    /// These options over those of the file.
    pub(crate) fn complete(self) -> Result<Self, OptionsError> {
        let file = read(self.config.as_deref())?;
        Ok(self.or(file))
    }

    /// The settings for these options. Ignores `config`.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn settings(self) -> Result<(Settings, Endpoint), OptionsError> {
        let endpoint = serial((self.port, "/dev/ttyACM0"), (self.baud, BAUD), 2_000_000)?;
        let pins = Pins::new(&self.pin.unwrap_or_default());
        let reference_v = self.reference_v.unwrap_or(5.0);
        let sampling_ms = self.sampling_interval_ms.unwrap_or(20);
        let sampling_ms = check("sampling_interval_ms", sampling_ms, 5..=1_000)?;
        let publish_ms = self.publish_interval_ms.unwrap_or(100);
        let publish_ms = check("publish_interval_ms", publish_ms, 10..=10_000)?;
        let settings = Settings {
            pins: pins.map_err(|problem| OptionsError::Value {
                name: "pin",
                problem,
            })?,
            reference_v: check("reference_v", reference_v, 0.5..=50.0)?,
            sampling_interval: Duration::from_millis(sampling_ms.into()),
            publish_interval: Duration::from_millis(publish_ms.into()),
            baud: self.baud.unwrap_or(BAUD),
        };
        Ok((settings, endpoint))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port baud pin reference_v sampling_interval_ms publish_interval_ms)
    }
}

#[cfg(test)]
mod tests;
