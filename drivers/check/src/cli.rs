//! `amber check`: the command line of the kit. IO.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use amber_client::cli::{Failure, print, show, table};
use amber_proto::{Device, DeviceType};

use crate::bench::Running;
use crate::report::Checked;
use crate::run::{Plan, run_with};
use crate::{checks, devices};

/// Which driver, and what of it.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  amber check -- python3 my_driver.py
  amber check --as hokuyo -- ./hokuyo_driver hokuyo.conf log.conf
  amber check --only stdin-end --verbose -- node driver.js
  amber check --list

The driver is started as the mediator starts it, several times. Exit code 0: it keeps the
protocol (notes are about what is optional), 1: it does not, 2: it cannot be started.")]
pub struct Options {
    /// Whose messages it knows, e.g. hokuyo: these are checked, too
    #[arg(long = "as", value_name = "KIND", value_parser = kind)]
    speaks: Option<DeviceType>,
    /// The device that it is told to be [default: --as with id 0, or 110:0]
    #[arg(long)]
    device: Option<Device>,
    /// A request of your own device that it answers: a DATA message in hex, without synNum
    #[arg(long, value_name = "HEX")]
    request: Option<String>,
    /// Do only this check (may be given several times)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Do not do this check (may be given several times)
    #[arg(long, value_name = "NAME")]
    skip: Vec<String>,
    /// How long an answer, and the end of the driver, may take
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    timeout: f64,
    /// Let notes count as failures
    #[arg(long)]
    strict: bool,
    /// Show what the driver writes to stderr
    #[arg(short, long)]
    verbose: bool,
    /// Show what is checked, and why
    #[arg(long)]
    list: bool,
    /// The driver: program and arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "list")]
    command: Vec<String>,
}

fn kind(text: &str) -> Result<DeviceType, String> {
    let kind: DeviceType = text.parse().map_err(|error| format!("{error}"))?;
    match devices::known(kind) {
        Some(_) => Ok(kind),
        None => Err("nothing is known about that; leave --as out, or see --request".into()),
    }
}

impl Options {
    /// Does what was asked.
    ///
    /// # Errors
    /// The driver does not keep the protocol, or the request was wrong.
    pub fn run(self, json: bool) -> Result<(), Failure> {
        if self.list {
            return list(json);
        }
        let strict = self.strict;
        let plan = self.plan()?;
        let running = Running::default();
        let report = until_interrupt(&plan, &running, json)?;
        if json {
            show(&report, true)?;
        } else {
            print(format!("\n{}", report.summary()).as_bytes())?;
        }
        let bad = report.failed + if strict { report.notes } else { 0 };
        match bad {
            0 => Ok(()),
            1 => Err(Failure::new("1 check failed")),
            many => Err(Failure::new(format!("{many} checks failed"))),
        }
    }

    fn plan(self) -> Result<Plan, Failure> {
        for name in self.only.iter().chain(&self.skip) {
            known_check(name)?;
        }
        let timeout = Duration::try_from_secs_f64(self.timeout)
            .ok()
            .filter(|timeout| !timeout.is_zero() && timeout.as_secs() < 600)
            .ok_or_else(|| {
                Failure::wrong(format!(
                    "--timeout {}: not a time above 0 and below 600",
                    self.timeout
                ))
            })?;
        let device = match (self.device, self.speaks) {
            (Some(device), _) => device,
            (None, Some(kind)) => Device::new(kind, 0),
            // The first number that is free for users.
            (None, None) => Device::new(DeviceType(110), 0),
        };
        let plan = Plan::new(self.command, device);
        let request = match self.request {
            None => None,
            Some(hex) => Some(amber_client::cli::read_hex(&hex)?),
        };
        Ok(Plan {
            speaks: self.speaks.or(plan.speaks),
            request,
            timeout,
            only: self.only,
            skip: self.skip,
            verbose: self.verbose,
            ..plan
        })
    }
}

fn known_check(name: &str) -> Result<(), Failure> {
    if checks::ALL.iter().any(|check| check.name == name) {
        return Ok(());
    }
    let distance = |known: &str| strsim::damerau_levenshtein(name, known);
    let nearest = checks::ALL.iter().min_by_key(|check| distance(check.name));
    let failure = Failure::wrong(format!("there is no check '{name}'"));
    Err(match nearest {
        Some(check) if distance(check.name) <= 3 => {
            failure.hint(format!("did you mean '{}'?", check.name))
        }
        _ => failure.hint("`amber check --list` shows all"),
    })
}

/// Checks on a thread of its own, so that Ctrl-C ends the driver, too.
fn until_interrupt(plan: &Plan, running: &Running, json: bool) -> Result<crate::Report, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    let (for_thread, in_thread) = (plan.clone(), running.clone());
    let work = move || {
        let live = Live::new(json);
        live.begin();
        run_with(&for_thread, &in_thread, |checked| live.show(checked))
    };
    runtime.block_on(async {
        tokio::select! {
            done = tokio::task::spawn_blocking(work) => match done {
                Ok(Ok(report)) => Ok(report),
                Ok(Err(error)) => Err(cannot_start(plan, &error)),
                Err(error) => Err(Failure::new(format!("the check itself failed: {error}"))),
            },
            _ = tokio::signal::ctrl_c() => {
                running.kill();
                // The thread may be anywhere: it ends with the process.
                #[allow(clippy::exit)]
                std::process::exit(130)
            }
        }
    })
}

fn cannot_start(plan: &Plan, error: &io::Error) -> Failure {
    let program = &plan.command[0];
    let failure = Failure::wrong(format!("cannot start '{program}': {error}"));
    match error.kind() {
        io::ErrorKind::NotFound if program.contains(' ') => {
            failure.hint("write the words apart: `amber check -- python3 my_driver.py`")
        }
        io::ErrorKind::NotFound => failure.hint("check the name; a path needs a '/'"),
        io::ErrorKind::PermissionDenied => failure.hint(format!("try `chmod +x {program}`")),
        _ => failure,
    }
}

/// Results as they come.
struct Live {
    json: bool,
    terminal: bool,
}

impl Live {
    fn new(json: bool) -> Self {
        let terminal = io::stderr().is_terminal() && io::stdout().is_terminal();
        Self { json, terminal }
    }

    fn begin(&self) {
        self.progress("...");
    }

    fn show(&self, checked: &Checked) {
        if self.json {
            return;
        }
        self.progress("");
        let text = checked.line() + &checked.explanation();
        // A reader that has gone away does not end the check: the exit code counts.
        let _ = print(text.as_bytes());
        self.progress("...");
    }

    /// A sign of life that is overwritten.
    fn progress(&self, text: &str) {
        if self.terminal && !self.json {
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.progress("");
    }
}

fn list(json: bool) -> Result<(), Failure> {
    let mut out = String::new();
    if json {
        for (name, title, why) in checks::list() {
            let line = serde_json::json!({ "name": name, "title": title, "why": why });
            out += &format!("{line}\n");
        }
    } else {
        let rows: Vec<_> = checks::list()
            .map(|(name, title, _)| [name.to_owned(), title.to_owned()])
            .collect();
        out = table(["CHECK", "THE DRIVER"], &rows);
    }
    print(out.as_bytes())
}
