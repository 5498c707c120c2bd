//! Driver for the current and voltage sensors INA219, INA226 and INA260 on an I2C bus: they measure
//! the battery of the robot. IO.
//!
//! `gauge` has what all drivers of the battery share, and says what they guarantee. Here, the current
//! is the voltage at the shunt divided by its resistance, computed by the driver. The registers of the
//! sensors for calibration, current and power are not used: they lose their values when the supply dips.
//!
//! ```text
//! part      the identities, registers and scales      monitor   sets the sensor up, and reads it
//! ```

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use amber_driver::devices::battery_state::{self, BatteryLink};
use amber_driver::{Driver, now};
use amber_proto::battery_state::BatteryState;
use serde::Deserialize;

pub use self::monitor::{Measured, Monitor, Note, Settings};
use self::part::ADDRESSES;
pub use self::part::Part;
use crate::device_task::on_a_thread;
pub use crate::gauge::cells::Chemistry;
use crate::gauge::cells::Pack;
use crate::gauge::driver::{GaugeDriver, Source};
use crate::gauge::logic::Pace;
use crate::i2c::registers::Problem;
use crate::i2c::{Bus, BusLocation, OpenBus};
use crate::options::{OptionsError, layered, read};
use crate::stream::say;

#[cfg(feature = "fuzz")]
pub mod fuzz;
mod monitor;
mod part;
pub(crate) mod probe;
#[cfg(test)]
mod tests;

/// The sensor gives new values seven times per second. A dip that lasts a second is not low, and a low
/// battery is known within 6 s.
pub const PACE: Pace = Pace {
    period: Duration::from_millis(250),
    low_for: Duration::from_secs(5),
    max_age: Duration::from_secs(2),
};

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `shunt_mohm = 10`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// The I2C bus, or sim:PATH for the bus of `amber sim` [default: /dev/i2c-1]
    #[arg(long, value_name = "BUS")]
    pub bus: Option<String>,
    /// Address of the sensor, from 0x40 to 0x4f [default: the first where one is recognized]
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// The sensor; needed with --address if it is not recognized [default: what it says itself]
    #[arg(long, value_enum)]
    pub chip: Option<Part>,
    /// Resistance of the shunt in milliohms, as printed on it: R100 is 100, R010 is 10, R002 is 2. An
    /// INA260 has its own [default: 100]
    #[arg(long, value_name = "MOHM")]
    pub shunt_mohm: Option<f64>,
    /// Whether the battery is at the pin IN- of the sensor, not at IN+ [default: false]
    #[arg(long, value_name = "BOOL")]
    pub invert_current: Option<bool>,
    /// The number of cells in series; with the chemistry, the driver estimates from the voltage how
    /// full the battery is
    #[arg(long, value_name = "NUMBER")]
    pub cells: Option<u32>,
    /// The chemistry of the cells
    #[arg(long, value_enum)]
    pub chemistry: Option<Chemistry>,
    /// The battery is low below this voltage [default: by the cells and their chemistry]
    #[arg(long, value_name = "MV")]
    pub low_mv: Option<u32>,
    /// Resistance of the battery with its wires: its voltage without load is computed with it
    /// [default: 0]
    #[arg(long, value_name = "MOHM")]
    pub resistance_mohm: Option<u32>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver + use<>, OptionsError> {
        let (settings, pack, location) = self.complete()?.settings()?;
        Ok(driver(settings, pack, location))
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
    pub fn settings(self) -> Result<(Settings, Pack, BusLocation), OptionsError> {
        let value = |name| move |problem| OptionsError::Value { name, problem };
        let location = self.bus.as_deref().unwrap_or("/dev/i2c-1");
        let location = location.parse().map_err(value("bus"))?;
        let address = self.address.as_deref().map(address).transpose();
        let shunt_mohm = shunt(self.shunt_mohm, self.chip).map_err(value("shunt_mohm"))?;
        let settings = Settings {
            address: address.map_err(value("address"))?,
            part: self.chip,
            shunt_mohm,
            inverts_current: self.invert_current.unwrap_or(false),
        };
        let resistance_mohm = self.resistance_mohm.unwrap_or(0);
        if resistance_mohm > MAX_RESISTANCE_MOHM {
            let problem = format!("{resistance_mohm} is not from 0 to {MAX_RESISTANCE_MOHM}");
            return Err(value("resistance_mohm")(problem));
        }
        let pack = Pack {
            resistance_mohm,
            ..Pack::of(self.cells, self.chemistry, self.low_mv)?
        };
        Ok((settings, pack, location))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: bus address chip shunt_mohm invert_current cells chemistry low_mv
            resistance_mohm)
    }
}

/// More is no battery of a robot.
const MAX_RESISTANCE_MOHM: u32 = 2_000;

/// Reads `0x40` or `40`.
fn address(text: &str) -> Result<u8, String> {
    let number = u8::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16);
    let valid = number.ok().filter(|number| ADDRESSES.contains(number));
    valid.ok_or_else(|| format!("{text:?} is not from 0x40 to 0x4f"))
}

fn shunt(mohm: Option<f64>, part: Option<Part>) -> Result<f64, String> {
    match mohm {
        Some(_) if part == Some(Part::Ina260) => Err("an INA260 has its own shunt".into()),
        Some(mohm) if !(0.01..=10_000.0).contains(&mohm) => {
            Err(format!("{mohm} is not from 0.01 to 10000"))
        }
        _ => Ok(mohm.unwrap_or(100.0)),
    }
}

/// The driver of a sensor whose bus is at `place`.
pub(crate) fn driver<B: OpenBus>(settings: Settings, pack: Pack, place: B) -> impl Driver + use<B> {
    let sensor = Sensor(Some(Hardware::new(settings, place)));
    battery_state::driver(GaugeDriver::new(pack, PACE, sensor))
}

/// The sensor, and how to reach it. `None` while a thread has it.
struct Sensor<B>(Option<Hardware<B>>);

struct Hardware<B> {
    monitor: Monitor,
    place: B,
    bus: Option<Box<dyn Bus>>,
}

impl<B: OpenBus> Source for Sensor<B> {
    async fn measure(&mut self, _link: &BatteryLink) -> Result<BatteryState, String> {
        let hardware = self.0.take().ok_or("a transfer is unfinished")?;
        let (hardware, measured) = on_a_thread(hardware, Hardware::measure).await;
        self.0 = Some(hardware);
        measured
    }
}

impl<B: OpenBus> Hardware<B> {
    fn new(settings: Settings, place: B) -> Self {
        Self {
            monitor: Monitor::new(settings),
            place,
            bus: None,
        }
    }

    /// Blocks for a few milliseconds, or for a second if the bus is stuck.
    fn measure(&mut self) -> Result<BatteryState, String> {
        let bus = match &mut self.bus {
            Some(bus) => bus,
            closed => closed.insert(self.place.open()?),
        };
        let measured = self.monitor.measure(now(), bus.as_mut());
        while let Some(note) = self.monitor.poll_note() {
            say(&note, note.is_warning());
        }
        match measured {
            Ok(measured) => {
                let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
                let us = since_1970.ok().map(|since| since.as_micros());
                let time = us.and_then(|us| us.try_into().ok());
                Ok(BatteryState {
                    time,
                    ..measured.state()
                })
            }
            Err(Problem::Chip(why)) => Err(why),
            Err(Problem::Bus(why)) => {
                self.bus = None;
                Err(why)
            }
        }
    }
}
