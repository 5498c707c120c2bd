//! Driver for servos of Feetech on a serial bus: STS, SMS and SCS, such as those of the arms SO-100 and
//! SO-101, and of LeKiwi. IO.
//!
//! ```text
//!  bus_servos: requests, rounds, orders --> registers: values --> protocol: packets
//!                                       <-- measurements <---
//! ```
//!
//! `protocol` and `registers` are pure. `bus_servos` has the logic, and says what all servos on a bus
//! guarantee. Such a bus has no watchdog, so a guard process stops what moves when the driver is killed
//! or hangs.

use std::path::PathBuf;

use amber_driver::Driver;
use amber_driver::devices::bus_servos;
use serde::Deserialize;

use crate::bus_servos::driver::ServosDriver;
use crate::bus_servos::port::QuickPort;
use crate::bus_servos::wire::{Found, Request};
use crate::bus_servos::{Maker, Rules, SharedOptions};
use crate::connection::Endpoint;
use crate::options::{OptionsError, layered, read, serial};

#[cfg(feature = "fuzz")]
pub mod fuzz;
mod memory;
pub mod protocol;
pub mod registers;
#[cfg(test)]
mod tests;

/// That of the factory.
const BAUD: u32 = 1_000_000;

/// The servos of Feetech.
#[derive(Clone, Copy, Debug)]
pub struct Feetech;

impl Maker for Feetech {
    type Model = registers::Model;

    const IDENTITY: (u16, u8) = registers::IDENTITY;
    const STATE: (u16, u8) = registers::STATE;

    fn encode(request: &Request) -> Vec<u8> {
        protocol::encode(request)
    }

    fn find(bytes: &[u8]) -> Found {
        protocol::find(bytes)
    }

    fn answer_length(values: usize) -> usize {
        protocol::answer_length(values)
    }
}

/// Robots whose servos are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// The arm SO-100 or SO-101: the ids 1 to 6
    #[value(name = "so101")]
    So101,
    /// LeKiwi: the same arm, and wheels with the ids 7 to 9
    Lekiwi,
}

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `port = "/dev/ttyACM0"` and `ids = [1, 2, 3]`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the bus [default: /dev/ttyACM0]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// Bits per second [default: 1000000]
    #[arg(long)]
    pub baud: Option<u32>,
    /// The servos of a known robot, unless --ids or --wheels says otherwise
    #[arg(long, value_enum)]
    pub preset: Option<Preset>,
    /// The servos that turn to angles, by their ids, such as 1,2,3
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub ids: Option<Vec<u8>>,
    /// The servos that turn on and on, as motors do
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub wheels: Option<Vec<u8>>,
    /// The fastest turn to an angle [default: 120]
    #[arg(long, value_name = "DEG_S")]
    pub max_speed_deg_s: Option<u32>,
    /// The fastest turn of a wheel [default: 270]
    #[arg(long, value_name = "DEG_S")]
    pub max_wheel_speed_deg_s: Option<u32>,
    /// Stop the wheels this long after the last command; 0 for never [default: 4000]
    #[arg(long, value_name = "MS")]
    pub idle_stop_ms: Option<u64>,
    /// Time between two measurements [default: 50]
    #[arg(long, value_name = "MS")]
    pub interval_ms: Option<u64>,
    /// How long an answer may take [default: 20]
    #[arg(long, value_name = "MS")]
    pub reply_timeout_ms: Option<u64>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let file = read(self.config.as_deref())?;
        let (rules, endpoint) = self.or(file).settings()?;
        let driver = ServosDriver::<Feetech, _>::new(rules, QuickPort::new(endpoint));
        Ok(bus_servos::driver(driver))
    }

    /// The settings for these options. Ignores `config`.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn settings(self) -> Result<(Rules, Endpoint), OptionsError> {
        let baud = self.baud.unwrap_or(BAUD);
        let endpoint = serial((self.port, "/dev/ttyACM0"), (self.baud, BAUD), BAUD)?;
        let (ids, wheels) = match (self.ids, self.wheels, self.preset) {
            (None, None, Some(Preset::So101)) => (Some((1..=6).collect()), None),
            (None, None, Some(Preset::Lekiwi)) => {
                (Some((1..=6).collect()), Some((7..=9).collect()))
            }
            (ids, wheels, _) => (ids, wheels),
        };
        let shared = SharedOptions {
            ids,
            wheels,
            max_speed_deg_s: self.max_speed_deg_s,
            max_wheel_speed_deg_s: self.max_wheel_speed_deg_s,
            idle_stop_ms: self.idle_stop_ms,
            interval_ms: self.interval_ms,
            reply_timeout_ms: self.reply_timeout_ms,
        };
        Ok((shared.rules(baud)?, endpoint))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port baud preset ids wheels max_speed_deg_s max_wheel_speed_deg_s
            idle_stop_ms interval_ms reply_timeout_ms)
    }
}
