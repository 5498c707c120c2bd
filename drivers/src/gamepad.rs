//! Driver for gamepads: those that Linux has as an input device, with a wire, a dongle or Bluetooth. IO.
//!
//! ```text
//! port      opens the gamepad                     logic   what clients are told, and when
//! amber-gamepad: its events, and its state
//! ```
//!
//! `logic` is pure; `driver` carries out its outputs.
//!
//! Guarantees for clients:
//!
//! - Without a gamepad, the answer is that there is none, and all is at rest: within 20 ms after it was
//!   unplugged, also for subscribers.
//! - A stick counts only after it was at rest once, and a button that is held at the start only after its
//!   release.
//! - Subscribers get each change, at most every 20 ms, and twice a second without one. So a client that
//!   hears nothing for a second knows that something is wrong.
//! - `age` says how long ago the gamepad told something: one without a wire may be out of reach without a
//!   word.

use std::path::PathBuf;

use amber_driver::Driver;
use amber_driver::devices::gamepad;
use amber_gamepad::DEAD_ZONE;
use serde::Deserialize;

use self::driver::Gamepad;
use self::logic::Settings;
pub use self::port::GamepadPort;
use crate::options::{OptionsError, check, layered, read};

pub mod driver;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod logic;
mod port;

/// Options of the driver. The command line overrides the file.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// TOML file with the same options, such as `dead_zone = 0.2`
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Input device, such as /dev/input/event5, or a link to it in /dev/input/by-id [default: the first
    /// gamepad that is found]
    #[arg(long, value_name = "FILE")]
    pub port: Option<PathBuf>,
    /// Sticks and triggers that are moved less than this part of their way are at rest [default: 0.12]
    #[arg(long, value_name = "PART")]
    pub dead_zone: Option<f64>,
}

impl Options {
    /// Creates the driver from these options and those of the file.
    ///
    /// # Errors
    /// The file cannot be read, or a value is invalid.
    pub fn driver(self) -> Result<impl Driver, OptionsError> {
        let file = read(self.config.as_deref())?;
        let (settings, port) = self.or(file).settings()?;
        Ok(gamepad::driver(Gamepad::new(settings, port)))
    }

    /// The settings for these options. Ignores `config`.
    ///
    /// # Errors
    /// A value is invalid.
    pub fn settings(self) -> Result<(Settings, GamepadPort), OptionsError> {
        let dead_zone = self.dead_zone.unwrap_or(DEAD_ZONE);
        let settings = Settings {
            dead_zone: check("dead_zone", dead_zone, 0.0..=0.9)?,
        };
        Ok((settings, GamepadPort { path: self.port }))
    }

    fn or(self, file: Self) -> Self {
        layered!(self over file: port dead_zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_override_the_file() {
        let file: Options = toml::from_str("port = \"/dev/pad\"\ndead_zone = 0.3").unwrap();
        let flags = Options {
            dead_zone: Some(0.2),
            ..Options::default()
        };
        let (settings, port) = flags.or(file).settings().unwrap();
        assert_eq!(
            (settings.dead_zone, port.path),
            (0.2, Some("/dev/pad".into()))
        );
        let (settings, port) = Options::default().settings().unwrap();
        assert_eq!((settings.dead_zone, port.path), (DEAD_ZONE, None));
        let wrong: Options = toml::from_str("dead_zone = 1.0").unwrap();
        let error = wrong.settings().unwrap_err().to_string();
        assert_eq!(error, "dead_zone: 1 is not within 0 to 0.9");
    }
}
