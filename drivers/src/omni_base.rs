//! Driver of a base on three omni wheels that servos on a bus turn, such as LeKiwi. IO.
//!
//! ```text
//!  clients --velocity--> driver --> logic (PURE): expiry, limits --wheel speeds--> bus-servos
//!          <--state----                odometry <----------------- measurements --
//! ```
//!
//! `amber_navigation::omni` has the kinematics, and `logic` all decisions. `driver` is a client of the
//! servos, whose driver owns the bus: the servos of an arm are on the same one.
//!
//! Guarantees for clients:
//!
//! - The newest command counts. It ends after `idle_stop_ms`, or earlier if it says so; also with its
//!   client, at a halt, and when the lease is lost.
//! - If a wheel would be too fast, all of them are slowed down by the same factor.
//! - The base stops, and refuses commands, while a wheel is not measured or does not answer. It does not
//!   go on by itself afterwards.
//! - If this driver ends or is killed, the driver of the servos stops the wheels. If it hangs, a command for
//!   the wheels holds for 300 ms.
//! - It does not take the lease of the servos, which an arm needs, too. While another client holds that
//!   lease, or the servos are halted, commands are refused with that reason.

use std::path::PathBuf;

use amber_driver::Driver;
use amber_driver::devices::base;
use amber_navigation::omni::OmniBase;
use amber_proto::{Device, DeviceType};
use serde::Deserialize;

use self::driver::OmniBaseDriver;
use self::logic::{Rules, Wheel};
use crate::options::{OptionsError, check, layered, millis, read};

mod driver;
mod logic;

/// Bases whose shape is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// LeKiwi: left, back and right wheel are the servos 7, 8 and 9
    #[default]
    Lekiwi,
}

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `wheel_radius_mm = 51`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// The servos that turn the wheels [default: bus-servos:0]
    #[arg(long, value_name = "DEVICE")]
    pub servos: Option<String>,
    /// The base, unless further options say otherwise [default: lekiwi]
    #[arg(long, value_enum)]
    pub model: Option<Model>,
    /// The servos of the three wheels [default: 7,8,9]
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub ids: Option<Vec<u8>>,
    /// Where these wheels are, counter-clockwise from ahead [default: 60,180,-60]
    #[arg(
        long,
        value_name = "DEG,...",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub angles_deg: Option<Vec<f64>>,
    /// Those of these servos that turn the other way round [default: none]
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub reversed: Option<Vec<u8>>,
    /// Radius of a wheel [default: 50]
    #[arg(long, value_name = "MM")]
    pub wheel_radius_mm: Option<f64>,
    /// Distance of the wheels from the centre [default: 125]
    #[arg(long, value_name = "MM")]
    pub base_radius_mm: Option<f64>,
    /// The fastest turn of a wheel; the driver of the servos has its own limit [default: 260]
    #[arg(long, value_name = "DEG_S")]
    pub max_wheel_speed_deg_s: Option<f64>,
    /// Stop this long after the last command; 0 for never [default: 500]
    #[arg(long, value_name = "MS")]
    pub idle_stop_ms: Option<u64>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver + use<>, OptionsError> {
        let file: Self = read(self.config.as_deref())?;
        let (servos, rules) = self.or(file).settings()?;
        Ok(base::driver(OmniBaseDriver::new(servos, rules)))
    }

    /// The servos and the rules for these options. Ignores `config`.
    fn settings(self) -> Result<(Device, Rules), OptionsError> {
        let invalid = |name, problem: String| OptionsError::Value { name, problem };
        let Model::Lekiwi = self.model.unwrap_or_default();
        let text = self.servos.as_deref().unwrap_or("bus-servos:0");
        let servos: Device = text
            .parse()
            .map_err(|error| invalid("servos", format!("{error}")))?;
        if servos.device_type != DeviceType::BUS_SERVOS {
            let problem = format!("{servos} has no servos on a bus: use a bus-servos");
            return Err(invalid("servos", problem));
        }
        let ids = three("ids", self.ids, [7, 8, 9])?;
        let angles_deg = three("angles_deg", self.angles_deg, [60.0, 180.0, -60.0])?;
        for angle_deg in angles_deg {
            check("angles_deg", angle_deg, -360.0..=360.0)?;
        }
        if ids[0] == ids[1] || ids[1] == ids[2] || ids[2] == ids[0] {
            return Err(invalid("ids", "the wheels have different servos".into()));
        }
        let reversed = self.reversed.unwrap_or_default();
        if let Some(other) = reversed.iter().find(|id| !ids.contains(id)) {
            let problem = format!("servo {other} is no wheel");
            return Err(invalid("reversed", problem));
        }
        let number =
            |name, given: Option<f64>, usual, range| check(name, given.unwrap_or(usual), range);
        let wheel_radius_mm = number("wheel_radius_mm", self.wheel_radius_mm, 50.0, 5.0..=1_000.0)?;
        let base_radius_mm = number("base_radius_mm", self.base_radius_mm, 125.0, 10.0..=5_000.0)?;
        let name = "max_wheel_speed_deg_s";
        let fastest_deg_s = number(name, self.max_wheel_speed_deg_s, 260.0, 1.0..=1_000.0)?;
        let wheel_radius_m = wheel_radius_mm / 1_000.0;
        let base = OmniBase::new(
            angles_deg.map(f64::to_radians),
            base_radius_mm / 1_000.0,
            fastest_deg_s.to_radians() * wheel_radius_m,
        );
        let wheel = |id| Wheel {
            id,
            is_reversed: reversed.contains(&id),
        };
        let rules = Rules {
            wheels: ids.map(wheel),
            wheel_radius_m,
            base: base.map_err(|error| invalid("angles_deg", error.to_string()))?,
            idle_stop: millis(self.idle_stop_ms, 500),
        };
        Ok((servos, rules))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: servos model ids angles_deg reversed wheel_radius_mm base_radius_mm
            max_wheel_speed_deg_s idle_stop_ms)
    }
}

/// A value for each wheel.
fn three<T>(
    name: &'static str,
    given: Option<Vec<T>>,
    usual: [T; 3],
) -> Result<[T; 3], OptionsError> {
    let Some(given) = given else {
        return Ok(usual);
    };
    let count = given.len();
    given.try_into().map_err(|_| OptionsError::Value {
        name,
        problem: format!("a base has three wheels, not {count}"),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn settings(text: &str) -> Result<(Device, Rules), String> {
        let options: Options = toml::from_str(text).unwrap();
        options.settings().map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_those_of_lekiwi() {
        let (servos, rules) = settings("").unwrap();
        assert_eq!(servos.to_string(), "bus-servos:0");
        assert_eq!(rules.wheels.map(|wheel| wheel.id), [7, 8, 9]);
        assert_eq!(rules.idle_stop, Some(Duration::from_millis(500)));
        let limits = rules.base.limits();
        assert!((limits.left_m_s - 0.2269).abs() < 1e-4, "{limits:?}");
        assert_eq!(settings("model = 'lekiwi'").unwrap(), (servos, rules));
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let file: Options = toml::from_str("idle_stop_ms = 0\nreversed = [8]").unwrap();
        let flags = Options {
            reversed: Some(vec![9]),
            ..Options::default()
        };
        let (_, rules) = flags.or(file).settings().unwrap();
        assert_eq!(rules.idle_stop, None);
        let reversed = rules.wheels.map(|wheel| wheel.is_reversed);
        assert_eq!(reversed, [false, false, true]);
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (text, problem) in [
            (
                "servos = 'servos:0'",
                "servos: maestro:0 has no servos on a bus",
            ),
            ("servos = 'bus-servo'", "did you mean 'bus-servos'?"),
            ("ids = [7, 8]", "ids: a base has three wheels, not 2"),
            ("ids = [7, 8, 7]", "ids: the wheels have different servos"),
            ("reversed = [1]", "reversed: servo 1 is no wheel"),
            (
                "angles_deg = [0, 0, 180]",
                "angles_deg: a base with wheels at these angles",
            ),
            ("angles_deg = [0, 120, 500]", "angles_deg: 500"),
            ("wheel_radius_mm = 0", "wheel_radius_mm: 0"),
            ("base_radius_mm = 9000", "base_radius_mm: 9000"),
            ("max_wheel_speed_deg_s = 0", "max_wheel_speed_deg_s: 0"),
        ] {
            let error = settings(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
