//! `amber doctor`: checks whether Amber can work on this machine, and gives advice. IO.
//!
//! [`facts`] reads the state of the machine, and [`judge`] finds the problems in it. [`network`] checks
//! the way to a robot, and [`safety`] how soon its wheels stop.

pub(super) mod facts;
mod judge;
mod network;
mod safety;

use std::fmt::Write as _;
use std::path::PathBuf;

use amber_client::MediatorAddress;
use amber_terminal::{Failure, Human};
use serde::Serialize;

use self::facts::Facts;
use self::network::Network;

/// The configuration of the packaged service.
const SERVICE_CONFIGURATION: &str = "/etc/amber/amber.toml";

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  amber doctor
  amber doctor -c amber.toml        (also asks each device whether it is there)
  amber doctor -m 192.168.1.7       (also checks the network to that robot)
  sudo -u amber amber doctor        (checks the rights of the service)
  amber doctor --safety             (turns the wheels, which must be off the ground)

Without --safety, it changes nothing. The exit code is 1 if there is a problem; warnings do not count.")]
pub(crate) struct Options {
    /// Check this configuration, its programs and device files [default: /etc/amber/amber.toml if that exists]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Turn the wheels, and measure how soon they stop when the program that drives is frozen or
    /// killed, or loses its network. The wheels must be off the ground
    #[arg(long, conflicts_with = "config")]
    safety: bool,
    /// Do not ask whether the wheels are off the ground
    #[arg(long, requires = "safety")]
    yes: bool,
}

impl Options {
    pub(crate) fn run(self, options: &amber_cli::Options) -> Result<(), Failure> {
        if self.safety {
            safety::confirm(self.yes)?;
            let checks = safety::measure(&options.mediator)?;
            return conclude(Report { checks }, options.json);
        }
        let config = self.config.or_else(|| {
            let path = PathBuf::from(SERVICE_CONFIGURATION);
            path.exists().then_some(path)
        });
        let mut checks = judge::all(&Facts::read(config));
        // Only for another machine: the port check finds a mediator on this one.
        if options.mediator.host() != MediatorAddress::default().host() {
            checks.push(network::judge(&Network::measure(&options.mediator)));
        }
        conclude(Report { checks }, options.json)
    }
}

fn conclude(report: Report, json: bool) -> Result<(), Failure> {
    amber_terminal::show(&report, json)?;
    match report.count(Level::Problem) {
        0 => Ok(()),
        1 => Err(Failure::new("1 problem was found")),
        many => Err(Failure::new(format!("{many} problems were found"))),
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Check {
    /// A short, stable name of the check.
    check: &'static str,
    level: Level,
    found: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    /// Something could work better.
    Warning,
    /// Something does not work.
    Problem,
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "PROBLEM",
        }
    }
}

impl Check {
    fn new(check: &'static str, level: Level, found: impl Into<String>) -> Self {
        Self {
            check,
            level,
            found: found.into(),
            hint: None,
        }
    }

    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Level::Ok, found)
    }

    fn warning(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Level::Warning, found)
    }

    fn problem(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Level::Problem, found)
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

#[derive(Serialize)]
struct Report {
    checks: Vec<Check>,
}

impl Report {
    fn count(&self, level: Level) -> usize {
        let checks = self.checks.iter();
        checks.filter(|check| check.level == level).count()
    }
}

impl Human for Report {
    fn human(&self) -> String {
        let mut out = String::new();
        for check in &self.checks {
            let level = check.level.name();
            let _ = writeln!(out, "{level:8} {:14} {}", check.check, check.found);
            if let Some(hint) = &check.hint {
                let _ = writeln!(out, "{:23} hint: {hint}", "");
            }
        }
        let (warnings, problems) = (self.count(Level::Warning), self.count(Level::Problem));
        let _ = writeln!(
            out,
            "\n{} checks: {problems} problems, {warnings} warnings",
            self.checks.len()
        );
        out
    }
}
