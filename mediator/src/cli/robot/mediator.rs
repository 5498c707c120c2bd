//! `amber mediator`. IO.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::{io, process};

use amber_cli::names::described;
use amber_core::config::{Config, ConfigError, DEFAULT_PORT, DriverConfig};
use amber_mediator::config_file;
use amber_mediator::log::{self, Format, Log};
use amber_mediator::shell::{
    BindError, CompanionFor, Ending, Hangup, Hooks, Mediator, NO_FILES, is_out_of_files,
    this_program,
};
use amber_terminal::Failure;
use clap::Parser;

use super::failed;
use crate::cli::Cli;
use crate::cli::usage::Explained;

#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  amber mediator --driver 'dummy:0=amber driver dummy'
  amber mediator -c amber.toml --listen 127.0.0.1:26233

It prints `listening on ADDRESS:PORT`, one line for each address, to stdout and
logs to stderr. Ctrl-C or SIGTERM ends it and all drivers; SIGHUP or
`amber reload` reads the configuration again.")]
pub(crate) struct Options {
    /// Read the configuration from FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address to listen on [default: all addresses, port 26233]; may be given several times; port 0 picks a free port
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    pub(crate) listen: Vec<SocketAddr>,
    /// Run a driver: split like a shell would, without a shell (may be given several times)
    #[arg(long, value_name = "DEVICE=COMMAND ARGS...")]
    pub(crate) driver: Vec<String>,
    /// Description of your own devices: --driver may use their names (may be given several times)
    #[arg(long, value_name = "FILE")]
    pub(crate) proto: Vec<PathBuf>,
    /// Log filter: a level, or levels for targets, such as `warn` or `info,amber_mediator=debug`
    #[arg(long, value_name = "FILTER", default_value = "info", env = "AMBER_LOG")]
    pub(crate) log: String,
    /// Log format: text for people, one JSON object per line (as with --json), or with priorities for the journal of systemd (the default when stderr goes there)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// Print the effective configuration and exit
    #[arg(long)]
    pub(crate) print_config: bool,
    /// The reaction to a closed terminal.
    #[arg(skip)]
    pub(crate) hangup: Hangup,
}

// Documentation of the values would double the length of the help.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
    Journal,
}

impl Options {
    pub(crate) fn run(self, options: &amber_cli::Options) -> Result<(), Failure> {
        if self.print_config {
            let config = self.effective().map_err(|error| wrong(&error))?;
            return amber_terminal::print(config.to_toml().as_bytes());
        }
        self.serve(options, |addresses| {
            for address in addresses {
                writeln!(io::stdout(), "listening on {address}")?;
            }
            io::stdout().flush()
        })
    }

    /// Runs the mediator; `ready` is called when it listens.
    pub(crate) fn serve(
        self,
        options: &amber_cli::Options,
        ready: impl FnOnce(&[SocketAddr]) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let hangup = self.hangup;
        let format = match self.log_format {
            Some(LogFormat::Text) => Format::Text,
            Some(LogFormat::Json) => Format::Json,
            Some(LogFormat::Journal) => Format::Journal,
            None if options.json => Format::Json,
            None => Format::for_stderr(),
        };
        let log = Log::start(&self.log, format)
            .map_err(|error| Failure::wrong(format!("--log: {error}")).hint(log::HINT))?;
        log.abort_on_panic();
        let config = self.effective().map_err(|error| wrong(&error))?;
        if config.drivers.is_empty() {
            tracing::warn!(
                "no drivers: add --driver 'dummy:0=amber driver dummy', or [[driver]] in a file"
            );
        }
        let hooks = Hooks {
            reload: Arc::new(move || self.effective()),
            set_log_level: Box::new(log.level()),
            set_log_rate: Box::new(log.rate()),
            log_lines_lost: Box::new(log.lost()),
            amber: this_program().map_err(|error| failed("cannot find this program", &error))?,
            companion: companion(&config),
            hangup,
        };
        let mediator = Mediator::bind(config, hooks).map_err(|error| cannot_listen(&error))?;
        // The mediator runs even if its output is not read.
        let _ = ready(mediator.addresses());
        match mediator.run() {
            Ok(Ending::Orderly) => Ok(()),
            #[allow(clippy::exit)] // Nothing may hold it up.
            Ok(Ending::Hurried) => process::exit(1),
            Err(error) if is_out_of_files(&error) => {
                Err(failed("cannot run", &error).hint(NO_FILES))
            }
            Err(error) => Err(failed("cannot run", &error)),
        }
    }

    /// The configuration from the file and the command line.
    fn effective(&self) -> Result<Config, ConfigError> {
        let mut config = match &self.config {
            Some(path) => config_file::read_config(path, &described)?,
            None => Config::default(),
        };
        if !self.listen.is_empty() {
            config.set_listen(&self.listen)?;
        }
        config.add_proto(&self.proto, &described)?;
        for driver in &self.driver {
            config.add_driver(driver)?;
        }
        config.drivers.iter().try_for_each(check_command)?;
        Ok(config)
    }
}

/// Checks the command of a built-in driver. Otherwise a typo is found only when the driver starts, and
/// the mediator would start it again and again.
fn check_command(driver: &DriverConfig) -> Result<(), ConfigError> {
    let [program, verb, ..] = &driver.command[..] else {
        return Ok(());
    };
    // `amber` is this program; others may be another version.
    if program != "amber" || verb != "driver" {
        return Ok(());
    }
    let Err(error) = Cli::try_parse_from(&driver.command) else {
        return Ok(());
    };
    let Explained { text, hints } = Explained::of(&error.to_string());
    let device = driver.devices.first().map(ToString::to_string);
    Err(ConfigError::Entry {
        place: format!("driver {}", device.unwrap_or_default()),
        message: format!(
            "`{}`: {}",
            shell_words::join(&driver.command),
            text.trim_start_matches("error: ")
        ),
        hint: Some(hints.join("; ")),
    })
}

/// The processes that run next to the mediator.
#[cfg(feature = "discovery")]
fn companion(config: &Config) -> CompanionFor {
    let config = config.clone();
    Box::new(move |listening| super::announce::companion(&config, listening))
}

#[cfg(not(feature = "discovery"))]
fn companion(_: &Config) -> CompanionFor {
    Box::new(|_| None)
}

/// Reads `ADDRESS:PORT`; the port may be left out.
pub(super) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    match text.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => Ok((address, DEFAULT_PORT).into()),
        Err(_) => Err("expected ADDRESS:PORT, e.g. 127.0.0.1:26233 or [::1]:0".to_owned()),
    }
}

fn wrong(error: &ConfigError) -> Failure {
    let failure = Failure::wrong(error.to_string());
    match error.hint() {
        _ if matches!(error, ConfigError::Read { error, .. } if is_out_of_files(error)) => {
            failure.hint(NO_FILES)
        }
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn cannot_listen(error: &BindError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        BindError::InUse { address, .. } => failure.hint(format!(
            "another mediator may be running: `amber devices` shows; \
             `amber demo --port 0` or `amber mediator --listen {}:0` picks a free port",
            if address.is_ipv6() {
                "[::1]"
            } else {
                "127.0.0.1"
            },
        )),
        BindError::Poll(_) => failure.hint(NO_FILES),
        BindError::Other(_, error) if is_out_of_files(error) => failure.hint(NO_FILES),
        BindError::Other(..) | BindError::TooMany(_) | BindError::Nothing => {
            failure.hint("`--listen 127.0.0.1:26233` serves programs on this machine only")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_in_the_command_of_a_built_in_driver_is_an_error() {
        let check = |command: &str| {
            let mut config = Config::default();
            config.add_driver(&format!("4:0={command}")).unwrap();
            check_command(&config.drivers[0])
        };
        for fine in [
            "amber driver hokuyo --port /dev/ttyACM0",
            "/opt/amber driver hokuyu",
            "python3 driver hokuyu",
            "amber",
        ] {
            assert!(check(fine).is_ok(), "{fine}");
        }
        let error = check("amber driver hokuyu").unwrap_err();
        assert_eq!(
            error.to_string(),
            "driver hokuyo:0: `amber driver hokuyu`: unrecognized subcommand 'hokuyu'"
        );
        let hint = error.hint().unwrap();
        assert!(hint.contains("'hokuyo'"), "{hint}");
        let error = check("amber driver hokuyo --prot /dev/ttyACM0").unwrap_err();
        assert!(error.to_string().contains("'--prot'"), "{error}");
    }

    #[test]
    fn an_address_without_port_gets_the_default_port() {
        for (text, address) in [
            ("127.0.0.1", "127.0.0.1:26233"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("::1", "[::1]:26233"),
            ("[::1]", "[::1]:26233"),
            ("[::]:7", "[::]:7"),
        ] {
            assert_eq!(listen_address(text).unwrap().to_string(), address, "{text}");
        }
        for text in ["", "robot", "127.0.0.1:", "127.0.0.1:70000"] {
            let error = listen_address(text).unwrap_err();
            assert!(error.contains("e.g. 127.0.0.1:26233"), "{error}");
        }
    }
}
