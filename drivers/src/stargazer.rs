//! Driver for a Hagisonic StarGazer, a sensor that observes markers on the ceiling, over a serial
//! port. IO.
//!
//! `protocol`, `setup`, `markers`, `plausible` and `logic` are pure; `driver` carries out the
//! outputs of `logic`.
//!
//! Guarantees for clients:
//!
//! - Positions are centimetres and headings degrees. Without a marker file they are the values of
//!   the device: relative to the marker, with y up. With a marker file they are map coordinates: x
//!   to the right, y down. Headings are clockwise in both cases.
//! - Fixes have no checksum. The driver discards text that is not a valid fix, and accepts a fix
//!   after a jump only if the next one confirms it.
//! - With no marker in view the driver publishes nothing, and a reply holds the last fix and its
//!   age (`lostMs`). Before the first fix a reply holds none. While the device does not work there
//!   is no reply.
//! - A client that subscribes by a request gets every fix, or the last one after each period, as
//!   requested. A client that sends SUBSCRIBE gets every fix.
//! - The driver only listens to the device, unless parameters are to be `set`.

use std::path::PathBuf;
use std::time::Duration;

use amber_driver::Driver;
use amber_driver::devices::stargazer;
use serde::Deserialize;

use self::driver::Stargazer;
use self::logic::Settings;
use self::markers::{MarkerFile, Markers};
use self::protocol::is_word;
use self::setup::Parameter;
use crate::connection::Endpoint;
use crate::options::{OptionsError, check, layered, read, serial};

pub mod driver;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
pub mod markers;
mod plausible;
pub(crate) mod probe;
pub mod protocol;
pub mod setup;

/// The parameters that can be set. The baud rate is not among them: the driver would lose the
/// device.
const PARAMETERS: [&str; 7] = [
    "IDNum",
    "RefID",
    "HeightFix",
    "MarkHeight",
    "MarkType",
    "MarkMode",
    "ThrVal",
];

/// Options of the driver. The command line overrides the file; the defaults fit the Capo robot.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `port = "/dev/ttyO0"`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Serial port of the device [default: /dev/ttyO0]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// Bits per second [default: 115200]
    #[arg(long)]
    pub baud: Option<u32>,
    /// TOML file with the positions of markers: poses are then map coordinates
    #[arg(long, value_name = "FILE")]
    pub markers: Option<PathBuf>,
    /// The reference marker of the device, if it has its own map
    #[arg(long, value_name = "ID")]
    pub reference: Option<u32>,
    /// The heading that the device reports when the robot faces 0 degrees [default: 0]
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true)]
    pub mounted_deg: Option<f64>,
    /// A parameter of the device, such as MarkType=HLD1S; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Option<Vec<String>>,
    /// Delay between two characters sent to the device [default: 30]
    #[arg(long, value_name = "MS")]
    pub pause_ms: Option<u64>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// A file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let options = self.complete()?;
        let markers = read(options.markers.as_deref())?;
        let (settings, endpoint) = options.settings(markers)?;
        Ok(stargazer::driver(Stargazer::new(settings, endpoint)))
    }

    /// These options over those of the file.
    pub(crate) fn complete(self) -> Result<Self, OptionsError> {
        let file = read(self.config.as_deref())?;
        Ok(self.or(file))
    }

    /// The settings for these options. Ignores `config` and `markers`.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn settings(self, markers: MarkerFile) -> Result<(Settings, Endpoint), OptionsError> {
        let port = (self.port, "/dev/ttyO0");
        let endpoint = serial(port, (self.baud, 115_200), 4_000_000)?;
        let mounted_deg = self.mounted_deg.unwrap_or(0.0);
        let mounted_deg = check("mounted_deg", mounted_deg, -360.0..=360.0)?;
        let markers = Markers::new(markers, self.reference, mounted_deg).map_err(|error| {
            let problem = error.to_string();
            OptionsError::Value {
                name: "markers",
                problem,
            }
        })?;
        let set = self.set.unwrap_or_default();
        let parameters = set
            .iter()
            .map(|text| parameter(text))
            .collect::<Result<_, _>>()?;
        let pause_ms = check("pause_ms", self.pause_ms.unwrap_or(30), 0..=1_000)?;
        let settings = Settings {
            markers,
            parameters,
            pause: Duration::from_millis(pause_ms),
        };
        Ok((settings, endpoint))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port baud markers reference mounted_deg set pause_ms)
    }
}

fn parameter(text: &str) -> Result<Parameter, OptionsError> {
    let wrong = |problem: String| OptionsError::Value {
        name: "set",
        problem,
    };
    let (name, value) = text.split_once('=').ok_or_else(|| {
        wrong(format!(
            "'{text}' is not of the form NAME=VALUE, such as MarkType=HLD1S"
        ))
    })?;
    if !PARAMETERS.contains(&name) {
        let known = PARAMETERS.join(", ");
        return Err(wrong(format!(
            "unknown parameter '{name}'; valid parameters: {known}"
        )));
    }
    if !is_word(value) {
        return Err(wrong(format!("'{value}' is not a valid value for {name}")));
    }
    Ok(Parameter {
        name: name.to_owned(),
        value: value.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fit_the_capo_robot() {
        let (settings, endpoint) = Options::default().settings(MarkerFile::default()).unwrap();
        assert_eq!(endpoint.to_string(), "/dev/ttyO0 at 115200 baud");
        assert_eq!(settings.pause, Duration::from_millis(30));
        assert!(settings.parameters.is_empty() && !settings.markers.is_map());
    }

    #[test]
    fn flags_override_the_file() {
        let file: Options = toml::from_str("set = [\"RefID=24\"]\nbaud = 19200\n").unwrap();
        let flags = Options {
            baud: Some(57_600),
            ..Options::default()
        };
        let (settings, endpoint) = flags.or(file).settings(MarkerFile::default()).unwrap();
        assert_eq!(endpoint.to_string(), "/dev/ttyO0 at 57600 baud");
        let wanted = Parameter {
            name: "RefID".into(),
            value: "24".into(),
        };
        assert_eq!(settings.parameters, [wanted]);
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (text, error) in [
            ("baud = 1", "baud: 1 is not within 2400 to 4000000"),
            (
                "mounted_deg = 400.0",
                "mounted_deg: 400 is not within -360 to 360",
            ),
            (
                "set = [\"RefID\"]",
                "set: 'RefID' is not of the form NAME=VALUE, such as MarkType=HLD1S",
            ),
            (
                "set = [\"RefID=`\"]",
                "set: '`' is not a valid value for RefID",
            ),
            (
                "set = [\"BaudRate=9600\"]",
                "set: unknown parameter 'BaudRate'; valid parameters: IDNum, RefID, HeightFix, \
                 MarkHeight, MarkType, MarkMode, ThrVal",
            ),
            (
                "reference = 3",
                "markers: the reference marker 3 is not among the markers",
            ),
        ] {
            let options: Options = toml::from_str(text).unwrap();
            let found = options.settings(MarkerFile::default()).unwrap_err();
            assert_eq!(found.to_string(), error);
        }
    }
}
