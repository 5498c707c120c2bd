//! Driver that serves the battery of the robot as another device measures it. IO.
//!
//! ```text
//!  roboclaw: voltage --once a second--> gauge (PURE): low? how full? --> answers, state-updates
//! ```
//!
//! `gauge` has what all drivers of the battery share, and says what they guarantee.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::client::proxy::Roboclaw;
use amber_driver::devices::battery_state::{self, BatteryLink};
use amber_proto::battery_state::BatteryState;
use amber_proto::{Device, DeviceType};
use serde::Deserialize;

pub use crate::gauge::cells::Chemistry;
use crate::gauge::cells::Pack;
use crate::gauge::driver::{GaugeDriver, Source};
use crate::gauge::logic::Pace;
use crate::options::{OptionsError, layered, read};

/// Controllers of wheels measure the battery only every 10 s, so a dip lasts as long for us.
pub(crate) const PACE: Pace = Pace {
    period: Duration::from_secs(1),
    low_for: Duration::from_secs(10),
    max_age: Duration::from_secs(5),
};
/// Later answers are ignored.
const DEADLINE: Duration = Duration::from_millis(800);

/// The device that measures the battery.
struct Other(Device);

impl Source for Other {
    async fn measure(&mut self, link: &BatteryLink) -> Result<BatteryState, String> {
        let device = self.0;
        let wheels = Roboclaw::new(link.devices().device(device)).with_deadline(DEADLINE);
        let measured = wheels.battery().await;
        measured.map_err(|error| format!("no voltage from {device}: {error}"))
    }
}

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `cells = 3`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// The device that measures the battery: a roboclaw [default: roboclaw:0]
    #[arg(long, value_name = "DEVICE")]
    pub of: Option<String>,
    /// The number of cells in series; with the chemistry, the driver estimates from the voltage how
    /// full the battery is
    #[arg(long, value_name = "NUMBER")]
    pub cells: Option<u32>,
    /// The chemistry of the cells
    #[arg(long, value_enum)]
    pub chemistry: Option<Chemistry>,
    /// The battery is low below this voltage [default: by the cells and their chemistry; if these are
    /// unknown, only the other device decides]
    #[arg(long, value_name = "MV")]
    pub low_mv: Option<u32>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver + use<>, OptionsError> {
        let file: Self = read(self.config.as_deref())?;
        let (pack, device) = self.or(file).settings()?;
        let driver = GaugeDriver::new(pack, PACE, Other(device));
        Ok(battery_state::driver(driver))
    }

    fn settings(self) -> Result<(Pack, Device), OptionsError> {
        let invalid = |problem| OptionsError::Value {
            name: "of",
            problem,
        };
        let text = self.of.as_deref().unwrap_or("roboclaw:0");
        let device: Device = text.parse().map_err(|error| invalid(format!("{error}")))?;
        if device.device_type != DeviceType::ROBOCLAW {
            let problem = format!("{device} measures no battery: use a roboclaw");
            return Err(invalid(problem));
        }
        let pack = Pack::of(self.cells, self.chemistry, self.low_mv)?;
        Ok((pack, device))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: of cells chemistry low_mv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Result<(Pack, Device), String> {
        let options: Options = toml::from_str(text).unwrap();
        options.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_is_known_about_the_battery_unless_it_is_said() {
        let (settings, device) = settings("").unwrap();
        assert_eq!(device.to_string(), "roboclaw:0");
        assert_eq!((settings.cells, settings.low_mv), (None, None));
    }

    #[test]
    fn cells_and_chemistry_say_when_the_battery_is_low() {
        let (known, device) =
            settings("of = 'roboclaw:2'\ncells = 3\nchemistry = 'li-po'").unwrap();
        assert_eq!(device.to_string(), "roboclaw:2");
        assert_eq!(known.low_mv, Some(10_500));
        let (known, _) = settings("cells = 3\nchemistry = 'li-po'\nlow_mv = 11000").unwrap();
        assert_eq!(known.low_mv, Some(11_000));
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let file: Options = toml::from_str("of = 'roboclaw:1'\nlow_mv = 11000").unwrap();
        let flags = Options {
            low_mv: Some(10_000),
            ..Options::default()
        };
        let (settings, device) = flags.or(file).settings().unwrap();
        assert_eq!((settings.low_mv, device.id.0), (Some(10_000), 1));
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (text, problem) in [
            ("of = 'hokuyo:0'", "hokuyo:0 measures no battery"),
            ("of = 'robocla'", "did you mean 'roboclaw'?"),
            ("cells = 3", "chemistry: must be given with cells"),
            ("chemistry = 'li-po'", "cells: must be given with chemistry"),
            ("cells = 0\nchemistry = 'li-po'", "cells"),
            ("low_mv = 12", "low_mv"),
        ] {
            let error = settings(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
