//! The drivers that come with Amber, each run as `amber driver <name>` in a
//! process of its own.
//!
//! A new driver is a module with an `Options` struct, and one variant of
//! [`BuiltIn`] whose doc comment is its line in the list.
//!
//! Drivers of hardware share `connection` (the way to a device), `outage` (what
//! is said when there is none, and when it is tried again), `desk` (the one task
//! that has the device to itself) and `options` (a TOML file below the command
//! line).
//!
//! In these pages, the first lines of each module say PURE or IO. PURE code only
//! computes: it has no sockets, files, clocks or tasks, and gets the time as an
//! argument. IO code talks to the outside.

use std::process::ExitCode;

use amber_driver::Driver;
use clap::Subcommand;

use self::options::OptionsError;

pub mod connection;
mod desk;
pub mod dummy;
pub mod hokuyo;
pub mod maestro;
pub mod ninedof;
pub mod options;
mod outage;
mod periodic;
pub mod roboclaw;
pub mod stargazer;
#[cfg(test)]
mod testing;

/// A built-in driver and its options.
#[derive(Clone, Debug, Subcommand)]
pub enum BuiltIn {
    /// No hardware: a flag and a text, for trying things out
    Dummy(dummy::Options),
    /// A Hokuyo laser scanner
    Hokuyo(Box<hokuyo::Options>),
    /// Hobby servos on a Pololu Maestro
    Maestro(Box<maestro::Options>),
    /// Acceleration, turn rate and magnetic field by chips on I2C
    Ninedof(Box<ninedof::Options>),
    /// Two RoboClaw motor controllers with four wheels
    Roboclaw(Box<roboclaw::Options>),
    /// A Hagisonic StarGazer: the pose by markers on the ceiling
    Stargazer(Box<stargazer::Options>),
}

impl BuiltIn {
    /// Serves on stdin and stdout until stdin ends.
    pub fn run(self) -> ExitCode {
        match self {
            Self::Dummy(options) => amber_driver::serve(dummy::Dummy::new(options)),
            Self::Hokuyo(options) => serve(options.driver()),
            Self::Maestro(options) => serve(options.driver()),
            Self::Ninedof(options) => serve(options.driver()),
            Self::Roboclaw(options) => serve(options.driver()),
            Self::Stargazer(options) => serve(options.driver()),
        }
    }

    /// Name and one line about each, as `amber driver --list` shows them.
    pub fn list() -> Vec<(String, String)> {
        let all = Self::augment_subcommands(clap::Command::new("driver"));
        let line = |driver: &clap::Command| {
            let about = driver
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            (driver.get_name().to_owned(), about)
        };
        all.get_subcommands().map(line).collect()
    }
}

fn serve<D: Driver>(driver: Result<D, OptionsError>) -> ExitCode {
    amber_driver::init_logging();
    match driver {
        Ok(driver) => amber_driver::serve(driver),
        Err(error) => {
            tracing::error!("{error}");
            if let Some(hint) = error.hint() {
                tracing::error!("hint: {hint}");
            }
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_driver_has_a_line_in_the_list() {
        let list = BuiltIn::list();
        assert_eq!(list[0].0, "dummy");
        for (name, about) in list {
            assert!(!about.is_empty(), "{name}");
            assert!(!about.contains('\n') && about.len() < 60, "{name}: {about}");
        }
    }

    #[test]
    fn the_options_are_well_formed() {
        BuiltIn::augment_subcommands(clap::Command::new("driver")).debug_assert();
    }
}
