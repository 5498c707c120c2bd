//! The command line: options that all commands share, and their dispatch. IO.

mod completions;
#[cfg(feature = "discovery")]
mod discover;
#[cfg(test)]
#[cfg(feature = "cli")]
mod documented;
#[cfg(not(feature = "cli"))]
mod no_robot;
#[cfg(feature = "cli")]
mod robot;
mod usage;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use amber_proto::printable;
use amber_terminal::Failure;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

#[cfg(not(feature = "cli"))]
use self::no_robot::new_log_map;
#[cfg(feature = "cli")]
use self::robot::new_log_map;

/// What to try first.
const START: &str = match cfg!(feature = "cli") {
    true => "Start with `amber demo` in one terminal and `amber devices` in another.",
    false => "Start with `amber -m ADDRESS devices`. ADDRESS is that of the robot.",
};

/// Access the devices of a robot, and run the mediator and drivers that serve them.
#[derive(Parser)]
#[command(
    name = "amber",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = START
)]
pub(crate) struct Cli {
    #[command(flatten)]
    options: amber_cli::Options,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    #[cfg(feature = "cli")]
    #[command(flatten)]
    Start(robot::Start),
    #[command(flatten)]
    Client(Box<amber_cli::Verb>),
    /// Play a recording: serve its devices to clients
    #[cfg(all(feature = "cli", feature = "record"))]
    Play(robot::play::Options),
    /// Show the robot in a browser, and drive it there
    #[cfg(feature = "web")]
    Dashboard(amber_dashboard::Options),
    /// Show the robot in Foxglove or Lichtblick
    #[cfg(feature = "web")]
    Foxglove(amber_foxglove::live::Options),
    /// Find robots in the local network
    #[cfg(feature = "discovery")]
    Discover(discover::Options),
    #[cfg(feature = "cli")]
    #[command(flatten)]
    Setup(robot::Setup),
    /// Explain bytes of the protocol, and show where they are invalid
    Decode(amber_cli::decode::Options),
    /// Show the interface of a device: requests, streams, fields and units
    Describe(amber_cli::describe::Options),
    #[cfg(feature = "cli")]
    #[command(flatten)]
    Kit(robot::Kit),
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
    #[cfg(feature = "cli")]
    #[command(flatten)]
    Internal(robot::Internal),
}

/// Reads the command line and runs the command.
pub(crate) fn run() -> ExitCode {
    amber_terminal::prepare_terminal();
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
            #[cfg(feature = "cli")]
            Verb::Start(start) => return start.run(&options),
            Verb::Client(verb) => amber_cli::run(*verb, &options, new_log_map),
            #[cfg(all(feature = "cli", feature = "record"))]
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
            #[cfg(feature = "cli")]
            Verb::Setup(setup) => setup.run(&options),
            Verb::Decode(decode) => decode.run(options.json),
            Verb::Describe(describe) => describe.run(&options),
            #[cfg(feature = "cli")]
            Verb::Kit(kit) => kit.run(options.json),
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
            #[cfg(feature = "cli")]
            Verb::Internal(internal) => return internal.run(&options),
        };
        amber_terminal::exit_code(result)
    }
}
