//! The commands that run on a robot, or in its place: mediator, drivers, simulation and their tools.
//! They need Linux. IO.

#[cfg(feature = "discovery")]
mod announce;
mod demo;
mod doctor;
mod import;
mod init;
mod log_map;
mod mediator;
#[cfg(feature = "record")]
pub(super) mod play;
mod reference;
mod servo;

use std::io;
use std::process::ExitCode;

use amber_cli::Options;
use amber_terminal::{Failure, exit_code};
use clap::{CommandFactory, Parser, Subcommand};

pub(super) use self::log_map::new as new_log_map;

use super::{Cli, Verb};

/// What starts a robot, or a part of it.
#[derive(Subcommand)]
pub(super) enum Start {
    /// Run a mediator with a simulated robot and its drivers, on this machine only
    Demo(demo::Options),
    /// Run the mediator
    Mediator(mediator::Options),
    /// Run a built-in driver on stdin and stdout, as the mediator does
    #[command(after_help = "Example:\n  amber mediator --driver 'dummy:0=amber driver dummy'")]
    Driver(DriverOptions),
    /// Run a simulated robot with devices that any program can open
    Sim(Box<amber_sim::cli::Options>),
}

/// What prepares a machine.
#[derive(Subcommand)]
pub(super) enum Setup {
    /// Check this machine for problems, and explain how to fix them
    Doctor(doctor::Options),
    /// Look what is plugged in, and write the configuration for it
    Init(init::Options),
    /// Find servos on a bus, and give them ids, a speed and a middle
    Servo(servo::Options),
    /// Convert the settings of the original mediator to a configuration
    Import(import::Options),
}

/// What tests the programs of users.
#[derive(Subcommand)]
pub(super) enum Kit {
    /// Test a driver against the protocol, and explain how to fix errors
    Check(amber_check::cli::Options),
    /// Test a client against a deliberately misbehaving mediator
    CheckClient(amber_check::cli::ClientOptions),
}

/// What only programs start.
#[derive(Subcommand)]
pub(super) enum Internal {
    /// Write man pages, and the pages of docs/reference
    #[command(hide = true, subcommand)]
    Reference(reference::Options),
    /// Announce a mediator in the network; started by the mediator itself
    #[cfg(feature = "discovery")]
    #[command(hide = true)]
    Announce(announce::Options),
    /// End drivers if the mediator is killed; started by the mediator itself
    #[command(hide = true)]
    Guard,
}

#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct DriverOptions {
    /// List the built-in drivers
    #[arg(long)]
    list: bool,
    #[command(subcommand)]
    driver: Option<Driver>,
}

#[derive(Subcommand)]
enum Driver {
    #[command(flatten)]
    Device(amber_drivers::BuiltIn),
    #[command(flatten)]
    Gateway(amber_gateways::Gateway),
    /// All devices of a recording (`amber play` runs it)
    #[cfg(feature = "record")]
    Play(amber_play::DriverOptions),
}

/// The built-in driver that a command of a configuration starts; `amber` is this program.
fn built_in(command: &[String]) -> Option<amber_drivers::BuiltIn> {
    if command.first()? != "amber" {
        return None;
    }
    match Cli::try_parse_from(command).ok()?.verb {
        Verb::Start(Start::Driver(DriverOptions {
            driver: Some(Driver::Device(driver)),
            ..
        })) => Some(driver),
        _ => None,
    }
}

impl Start {
    /// Runs the command and reports the result.
    pub(super) fn run(self, options: &Options) -> ExitCode {
        exit_code(match self {
            Self::Demo(demo) => demo.run(options),
            Self::Mediator(mediator) => mediator.run(options),
            Self::Driver(DriverOptions {
                driver: Some(driver),
                ..
            }) => return driver.run(),
            Self::Driver(DriverOptions { driver: None, .. }) => list_drivers(options),
            Self::Sim(sim) => amber_sim::cli::run(&sim, options.json).map_err(simulation_failed),
        })
    }
}

impl Setup {
    /// Runs the command.
    pub(super) fn run(self, options: &Options) -> Result<(), Failure> {
        match self {
            Self::Doctor(doctor) => doctor.run(options),
            Self::Init(init) => init.run(options),
            Self::Servo(servo) => servo.run(options),
            Self::Import(import) => import.run(),
        }
    }
}

impl Kit {
    /// Runs the command.
    pub(super) fn run(self, json: bool) -> Result<(), Failure> {
        match self {
            Self::Check(check) => check.run(json),
            Self::CheckClient(check) => check.run(json),
        }
    }
}

impl Internal {
    /// Runs the command and reports the result.
    #[cfg_attr(not(feature = "discovery"), expect(unused_variables))]
    pub(super) fn run(self, options: &Options) -> ExitCode {
        exit_code(match self {
            Self::Reference(reference) => reference.run(Cli::command()),
            #[cfg(feature = "discovery")]
            Self::Announce(announce) => announce.run(&options.mediator.to_string()),
            Self::Guard => return amber_mediator::shell::guard(),
        })
    }
}

impl Driver {
    /// Serves on stdin and stdout until stdin ends.
    fn run(self) -> ExitCode {
        match self {
            Self::Device(driver) => driver.run(),
            Self::Gateway(gateway) => gateway.run(),
            #[cfg(feature = "record")]
            Self::Play(play) => play.run(),
        }
    }

    /// Name and description of each driver.
    fn list() -> Vec<(String, String)> {
        let all = Self::augment_subcommands(clap::Command::new("driver"));
        let line = |driver: &clap::Command| {
            let about = driver.get_about().map(ToString::to_string);
            (driver.get_name().to_owned(), about.unwrap_or_default())
        };
        all.get_subcommands().map(line).collect()
    }
}

fn list_drivers(options: &Options) -> Result<(), Failure> {
    let drivers = Driver::list();
    let mut out = String::new();
    for (name, about) in drivers {
        if options.json {
            let line = serde_json::json!({ "name": name, "about": about });
            out.push_str(&format!("{line}\n"));
        } else {
            out.push_str(&format!("{name:21} {about}\n"));
        }
    }
    amber_terminal::print(out.as_bytes())
}

fn simulation_failed(failure: amber_sim::cli::Failure) -> Failure {
    let shown = match failure.wrong_request {
        true => Failure::wrong(failure.message),
        false => Failure::new(failure.message),
    };
    failure.hint.into_iter().fold(shown, Failure::hint)
}

/// A system error, with the action that failed.
fn failed(what: &str, error: &io::Error) -> Failure {
    Failure::new(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_driver_has_a_description() {
        let list = Driver::list();
        assert!(list.iter().any(|(name, _)| name == "collision_avoidance"));
        assert!(list.iter().any(|(name, _)| name == "rosbridge"));
        for (name, about) in list {
            assert!(!about.is_empty(), "{name}");
            assert!(!about.contains('\n') && about.len() < 60, "{name}: {about}");
        }
    }
}
