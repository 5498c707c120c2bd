//! The command line: options that all commands share, and their dispatch. IO.

mod completions;
mod demo;
#[cfg(feature = "discovery")]
mod discover;
mod doctor;
#[cfg(test)]
mod documented;
mod import;
mod init;
mod log_map;
mod mediator;
#[cfg(feature = "record")]
mod play;
mod reference;
mod usage;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use amber_proto::printable;
use amber_terminal::Failure;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

/// Access the devices of a robot, and run the mediator and drivers that serve them.
#[derive(Parser)]
#[command(
    name = "amber",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Start with `amber demo` in one terminal and `amber devices` in another."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    options: amber_cli::Options,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a mediator with a simulated robot and its drivers, on this machine only
    Demo(demo::Options),
    /// Run the mediator
    Mediator(mediator::Options),
    /// Run a built-in driver on stdin and stdout, as the mediator does
    #[command(after_help = "Example:\n  amber mediator --driver 'dummy:0=amber driver dummy'")]
    Driver(DriverOptions),
    /// Run a simulated robot with devices that any program can open
    Sim(amber_sim::cli::Options),
    #[command(flatten)]
    Client(amber_cli::Verb),
    /// Play a recording: serve its devices to clients
    #[cfg(feature = "record")]
    Play(play::Options),
    /// Show the robot in a browser, and drive it there
    #[cfg(feature = "web")]
    Dashboard(amber_dashboard::Options),
    /// Show the robot in Foxglove or Lichtblick
    #[cfg(feature = "web")]
    Foxglove(amber_foxglove::live::Options),
    /// Find robots in the local network
    #[cfg(feature = "discovery")]
    Discover(discover::Options),
    /// Check this machine for problems, and explain how to fix them
    Doctor(doctor::Options),
    /// Look what is plugged in, and write the configuration for it
    Init(init::Options),
    /// Convert the settings of the original mediator to a configuration
    Import(import::Options),
    /// Explain bytes of the protocol, and show where they are invalid
    Decode(amber_cli::decode::Options),
    /// Show the interface of a device: requests, streams, fields and units
    Describe(amber_cli::describe::Options),
    /// Test a driver against the protocol, and explain how to fix errors
    Check(amber_check::cli::Options),
    /// Test a client against a deliberately misbehaving mediator
    CheckClient(amber_check::cli::ClientOptions),
    /// Print a completion script for your shell
    #[command(
        after_help = "Example:\n  amber completions bash > ~/.local/share/bash-completion/completions/amber"
    )]
    Completions {
        /// Shell
        shell: Shell,
    },
    /// Print candidates for the last word; called by the completion scripts
    #[command(hide = true, disable_help_flag = true, disable_version_flag = true)]
    Complete {
        /// The command line without `amber`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Write man pages, and the pages of docs/reference
    #[command(hide = true, subcommand)]
    Reference(reference::Options),
    /// Announce a mediator in the network; started by the mediator itself
    #[cfg(feature = "discovery")]
    #[command(hide = true)]
    Announce(discover::AnnounceOptions),
    /// End drivers if the mediator is killed; started by the mediator itself
    #[command(hide = true)]
    Guard,
}

#[derive(clap::Args)]
#[command(arg_required_else_help = true)]
struct DriverOptions {
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

/// Reads the command line and runs the command.
pub(crate) fn run() -> ExitCode {
    match parse(std::env::args_os()) {
        Ok(cli) => cli.run(),
        // Help and version go to stdout.
        Err(error) if !error.use_stderr() => match device_help(&error) {
            Some(help) => {
                amber_terminal::exit_code(help.and_then(|help| amber_terminal::print_text(&help)))
            }
            None => {
                let _ = error.print();
                ExitCode::SUCCESS
            }
        },
        Err(error) if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(2)
        }
        Err(error) => {
            let text = usage::missing_feature(&error)
                .unwrap_or_else(|| usage::explained(&error.to_string()));
            let _ = write!(io::stderr(), "{}", printable(&text));
            ExitCode::from(2)
        }
    }
}

/// Reads a command line. If it names a device of a user, it is read again with the names that its
/// sources know.
fn parse(words: impl Iterator<Item = OsString>) -> clap::error::Result<Cli> {
    let words: Vec<_> = words.collect();
    let read = Cli::try_parse_from(&words);
    if !read.as_ref().is_err_and(completions::is_about_name) {
        return read;
    }
    completions::matches(words.iter(), amber_cli::names::FOR_COMMANDS);
    Cli::try_parse_from(&words)
}

/// The help of commands like `amber call roboclaw --help`, from the description of the device.
fn device_help(error: &clap::Error) -> Option<Result<String, Failure>> {
    if error.kind() != ErrorKind::DisplayHelp {
        return None;
    }
    let is_help = |word: &OsString| word == "--help" || word == "-h";
    let words = std::env::args_os().filter(|word| !is_help(word));
    let cli = parse(words).ok()?;
    match cli.verb {
        Verb::Client(verb) => verb.device_help(&cli.options),
        _ => None,
    }
}

impl Cli {
    /// Runs the command and reports the result.
    fn run(self) -> ExitCode {
        let options = self.options;
        let result = match self.verb {
            Verb::Demo(demo) => demo.run(&options),
            Verb::Mediator(mediator) => mediator.run(&options),
            Verb::Driver(DriverOptions {
                driver: Some(driver),
                ..
            }) => return driver.run(),
            Verb::Driver(DriverOptions { driver: None, .. }) => list_drivers(&options),
            Verb::Sim(sim) => amber_sim::cli::run(&sim, options.json).map_err(simulation_failed),
            Verb::Client(verb) => amber_cli::run(verb, &options, log_map::new),
            #[cfg(feature = "record")]
            Verb::Play(play) => play.run(&options),
            #[cfg(feature = "web")]
            Verb::Dashboard(dashboard) => {
                amber_dashboard::run(&dashboard, options.mediator.to_string())
            }
            #[cfg(feature = "web")]
            Verb::Foxglove(foxglove) => {
                amber_foxglove::live::run(&foxglove, options.mediator.to_string())
            }
            #[cfg(feature = "discovery")]
            Verb::Discover(discover) => discover.run(options.json),
            #[cfg(feature = "discovery")]
            Verb::Announce(announce) => announce.run(&options.mediator.to_string()),
            Verb::Doctor(doctor) => doctor.run(&options),
            Verb::Init(init) => init.run(&options),
            Verb::Import(import) => import.run(),
            Verb::Decode(decode) => decode.run(options.json),
            Verb::Describe(describe) => describe.run(&options),
            Verb::Check(check) => check.run(options.json),
            Verb::CheckClient(check) => check.run(options.json),
            Verb::Completions { shell } => {
                let script = completions::script(shell, &mut Self::command());
                amber_terminal::print(script.as_bytes())
            }
            Verb::Complete { words } => {
                let lines: String = (completions::candidates(&words).into_iter())
                    .map(|candidate| {
                        let [word, about] =
                            [&*candidate.word, &*candidate.about].map(amber_proto::printable_line);
                        format!("{word}\t{about}\n")
                    })
                    .collect();
                amber_terminal::print_text(&lines)
            }
            Verb::Reference(reference) => reference.run(Self::command()),
            Verb::Guard => return amber_mediator::shell::guard(),
        };
        amber_terminal::exit_code(result)
    }
}

fn list_drivers(options: &amber_cli::Options) -> Result<(), Failure> {
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
