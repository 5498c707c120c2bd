//! `amber demo`: a mediator with something to play with. IO.

use std::env;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use amber_client::cli::{self as client, Failure};
use amber_mediator::config::DEFAULT_PORT;

use super::mediator;

const PYTHON_DRIVER: &str = "drivers/examples/python/dummy_driver.py";

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Example:
  amber demo

Then type in another terminal what it shows. Ctrl-C ends it.")]
pub(crate) struct Options {
    /// Listen on this port of the loopback address; 0 picks one
    #[arg(long, default_value_t = DEFAULT_PORT)]
    port: u16,
}

impl Options {
    pub(crate) fn run(self, options: &client::Options) -> Result<(), Failure> {
        let python = python_driver();
        let second = match &python {
            Ok(script) => {
                format!(
                    "python3 -u {}",
                    shell_words::quote(&script.to_string_lossy())
                )
            }
            Err(_) => "amber driver dummy".to_owned(),
        };
        let mediator = mediator::Options {
            listen: vec![(Ipv4Addr::LOCALHOST, self.port).into()],
            driver: vec![
                "dummy:0=amber driver dummy".to_owned(),
                format!("dummy:1={second}"),
            ],
            log: "info".into(),
            hangup: mediator::Hangup::End,
            ..mediator::Options::default()
        };
        mediator.serve(options, |addresses| {
            introduce(addresses, &second, python.err())
        })
    }
}

/// Says what runs and what to type.
fn introduce(addresses: &[SocketAddr], second: &str, missing: Option<String>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for address in addresses {
        writeln!(out, "listening on {address}")?;
    }
    let amber = amber_command();
    let to = match addresses.first() {
        Some(address) if address.port() != DEFAULT_PORT => format!(" -m {address}"),
        _ => String::new(),
    };
    writeln!(out, "\nTwo drivers run, each in a process of its own:")?;
    writeln!(out, "  dummy:0   amber driver dummy")?;
    writeln!(out, "  dummy:1   {second}")?;
    if let Some(missing) = missing {
        writeln!(out, "            (not the Python example: {missing})")?;
    }
    writeln!(out, "\nType in another terminal:")?;
    let commands = [
        ("devices", "what runs"),
        ("ping dummy", "how long a message takes"),
        ("call dummy message hello", "tell a device something"),
        ("call dummy status", "ask it"),
        ("watch dummy", "see what it publishes; Ctrl-C ends"),
        (
            "events",
            "then kill a driver, by the pid that `devices` shows",
        ),
    ]
    .map(|(command, what)| (format!("{amber}{to} {command}"), what));
    let width = commands
        .iter()
        .map(|(command, _)| command.len())
        .max()
        .unwrap_or(0);
    for (command, what) in commands {
        writeln!(out, "  {command:width$}   # {what}")?;
    }
    writeln!(
        out,
        "\nCtrl-C here ends the mediator and both drivers. Its log follows.\n"
    )?;
    out.flush()
}

/// The Python example, or why it cannot run.
fn python_driver() -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .join(PYTHON_DRIVER);
    let script = [PathBuf::from(PYTHON_DRIVER), source]
        .into_iter()
        .find(|script| script.is_file())
        .ok_or_else(|| format!("{PYTHON_DRIVER} is not here"))?;
    let check = Command::new("python3")
        .args(["-c", "import google.protobuf"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match check {
        Ok(status) if status.success() => Ok(script),
        Ok(_) => Err("`pip install protobuf` is missing".into()),
        Err(_) => Err("there is no python3".into()),
    }
}

/// How the user can call this very program.
fn amber_command() -> String {
    let Ok(program) = env::current_exe() else {
        return "amber".into();
    };
    let in_path = env::var_os("PATH").is_some_and(|path| {
        env::split_paths(&path).any(|directory| directory.join("amber") == program)
    });
    if in_path {
        return "amber".into();
    }
    let here = env::current_dir().ok();
    let relative = here.and_then(|here| program.strip_prefix(here).ok().map(Path::to_owned));
    relative.unwrap_or(program).display().to_string()
}
