//! `amber check` and `amber check-client`: the command line of the kit. IO.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use amber_proto::printable;
use amber_proto::{Device, DeviceType};
use amber_reflect::Schemas;
use amber_terminal::{Failure, print, seconds, show, table};

use crate::bench::Running;
use crate::client::{self, ClientPlan};
use crate::report::{Checked, Report};
use crate::run::{Plan, run_with};
use crate::{checks, devices};

/// Options of `amber check`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  amber check -- python3 my_driver.py
  amber check --as hokuyo -- ./hokuyo_driver hokuyo.conf log.conf
  amber check --proto my_device.proto --request get_temperature=true -- ./my_driver
  amber check --only stdin-end --verbose -- node driver.js
  amber check --list

This command starts the driver several times, as the mediator does. Exit code 0: the driver
follows the protocol (notes are about optional behaviour), 1: it does not, 2: it cannot be started.")]
pub struct Options {
    /// Device type of the driver, e.g. hokuyo: also check the messages of this type
    #[arg(long = "as", value_name = "KIND", value_parser = kind)]
    speaks: Option<DeviceType>,
    /// Device that the driver serves [default: --as with id 0, or 110:0]
    #[arg(long, value_parser = amber_terminal::device)]
    device: Option<Device>,
    /// A request that the driver answers: a field of --proto, or a DATA message in hex (may be given
    /// several times)
    #[arg(long, value_name = "FIELD=VALUE|HEX")]
    request: Vec<String>,
    /// Messages of your own device (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    #[command(flatten)]
    which: Which,
    /// Time limit for an answer, and for the end of the driver
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    timeout: Duration,
    /// Show the stderr of the driver
    #[arg(short, long)]
    verbose: bool,
    /// The driver: program and arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "list")]
    command: Vec<String>,
}

/// Options of `amber check-client`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  amber check-client -- python3 my_client.py {}
  amber check-client -- ./my_client {host} {port}
  amber check-client --proto my_device.proto --answer 110:0=greeting=hi -- node client.js {}
  amber check-client --listen 127.0.0.1:26233

This command starts the client once for each kind of misbehaviour. {} stands for the address of
the test mediator, {host} and {port} for its parts; AMBER_MEDIATOR also has the address. Without a
command, start the client yourself when prompted. The test mediator has all devices with a name,
and those of --answer.")]
pub struct ClientOptions {
    /// Address to listen on [default: a free port of 127.0.0.1]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Your own device and its answer to requests and subscribers: a field of --proto, or a
    /// DATA message in hex (may be given several times)
    #[arg(long, value_name = "DEVICE=FIELD=VALUE|HEX")]
    answer: Vec<String>,
    /// Messages of your own device (may be given several times)
    #[arg(long, value_name = "FILE")]
    proto: Vec<PathBuf>,
    #[command(flatten)]
    which: Which,
    /// Time limit for one run of the client
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
    /// The client: program and arguments [default: you start it yourself]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The selection of checks.
#[derive(Clone, Debug, clap::Args)]
struct Which {
    /// Run only this check (may be given several times)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Skip this check (may be given several times)
    #[arg(long, value_name = "NAME")]
    skip: Vec<String>,
    /// Treat notes as failures
    #[arg(long)]
    strict: bool,
    /// List the checks; with --json, also their reasons
    #[arg(long)]
    list: bool,
}

/// Name, title, reason.
type Listed = (&'static str, &'static str, &'static str);

fn kind(text: &str) -> Result<DeviceType, String> {
    let kind: DeviceType = text.parse().map_err(|error| format!("{error}"))?;
    match devices::interface(&Schemas::built_in(), kind) {
        Some(_) => Ok(kind),
        None => Err("this type has no known messages; use --request instead of --as".into()),
    }
}

impl Options {
    /// Runs the command.
    ///
    /// # Errors
    /// The driver violates the protocol, or the options are invalid.
    pub fn run(self, json: bool) -> Result<(), Failure> {
        if self.which.list {
            return list("THE DRIVER", checks::list(), json);
        }
        self.which.check_names(checks::list(), "check")?;
        let strict = self.which.strict;
        let plan = self.plan()?;
        let program = plan.command.first().cloned();
        let work = move |running: &Running, live: &Live| {
            run_with(&plan, running, |checked| live.show(checked))
        };
        conclude(&until_interrupt(program, work, json)?, strict, json)
    }

    fn plan(self) -> Result<Plan, Failure> {
        let schemas = Schemas::with(&self.proto)?;
        let device = match (self.device, self.speaks) {
            (Some(device), _) => device,
            (None, Some(kind)) => Device::new(kind, 0),
            // The first device type for users.
            (None, None) => Device::new(schemas.described_type().unwrap_or(DeviceType(110)), 0),
        };
        let speaks = self.speaks.unwrap_or(device.device_type);
        let interface = devices::interface(&schemas, speaks).cloned();
        let schemas = schemas.for_device(Some(speaks)).clone();
        let read = |request: String| {
            let message = client::read_message(device.device_type, &request, &schemas)?;
            Ok((request, message))
        };
        let requests = self.request.into_iter().map(read);
        let requests = requests.collect::<Result<_, Failure>>()?;
        Ok(Plan {
            interface,
            requests,
            schemas,
            timeout: self.timeout,
            only: self.which.only,
            skip: self.which.skip,
            verbose: self.verbose,
            ..Plan::new(self.command, device)
        })
    }
}

impl ClientOptions {
    /// Runs the command.
    ///
    /// # Errors
    /// The client violates the protocol, or the options are invalid.
    pub fn run(self, json: bool) -> Result<(), Failure> {
        if self.which.list {
            return list("THE CLIENT", client::list(), json);
        }
        self.which.check_names(client::list(), "check-client")?;
        let schemas = Schemas::with(&self.proto)?;
        let answers = self.answer.iter();
        let answers = answers.map(|text| client::read_answer(text, &schemas));
        let answers = answers.collect::<Result<_, _>>()?;
        let plan = ClientPlan::new(self.command);
        let plan = ClientPlan {
            listen: self.listen.unwrap_or(plan.listen),
            answers,
            schemas,
            patience: self.timeout,
            only: self.which.only,
            skip: self.which.skip,
            ..plan
        };
        let program = plan.command.first().cloned();
        let work = move |running: &Running, live: &Live| {
            client::run_client_with(&plan, running, |checked| live.show(checked))
        };
        conclude(
            &until_interrupt(program, work, json)?,
            self.which.strict,
            json,
        )
    }
}

impl Which {
    fn check_names(&self, all: impl Iterator<Item = Listed>, verb: &str) -> Result<(), Failure> {
        let all: Vec<_> = all.map(|(known, ..)| known).collect();
        for name in self.only.iter().chain(&self.skip) {
            if all.contains(&name.as_str()) {
                continue;
            }
            let distance = |known: &str| strsim::damerau_levenshtein(name, known);
            let nearest = all.iter().min_by_key(|known| distance(known));
            let failure = Failure::wrong(format!("unknown check '{name}'"));
            return Err(match nearest {
                Some(known) if distance(known) <= 3 => {
                    failure.hint(format!("did you mean '{known}'?"))
                }
                _ => failure.hint(format!("`amber {verb} --list` shows all checks")),
            });
        }
        Ok(())
    }
}

/// Runs the checks on a separate thread, so that Ctrl-C also ends the program
/// under test.
fn until_interrupt(
    program: Option<String>,
    work: impl FnOnce(&Running, &Live) -> io::Result<Report> + Send + 'static,
    json: bool,
) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    let running = Running::default();
    let in_thread = running.clone();
    let work = move || {
        let live = Live::new(json);
        live.begin();
        work(&in_thread, &live)
    };
    runtime.block_on(async {
        tokio::select! {
            done = tokio::task::spawn_blocking(work) => match done {
                Ok(Ok(report)) => Ok(report),
                Ok(Err(error)) => Err(cannot_start(program, &error)),
                Err(error) => Err(Failure::new(format!("internal error in the check: {error}"))),
            },
            _ = tokio::signal::ctrl_c() => {
                running.kill();
                // The thread cannot be interrupted: it ends with the process.
                #[allow(clippy::exit)]
                std::process::exit(130)
            }
        }
    })
}

fn cannot_start(program: Option<String>, error: &io::Error) -> Failure {
    let Some(program) = program else {
        return Failure::new(format!("cannot listen: {error}"));
    };
    let failure = Failure::wrong(format!("cannot start '{program}': {error}"));
    match error.kind() {
        io::ErrorKind::NotFound if program.contains(' ') => {
            failure.hint("separate the arguments: `amber check -- python3 my_driver.py`")
        }
        io::ErrorKind::NotFound => {
            failure.hint("check the spelling; a program in this folder needs './'")
        }
        io::ErrorKind::PermissionDenied => failure.hint(format!("try `chmod +x {program}`")),
        _ => failure,
    }
}

/// Shows the end of a report, and decides the exit code.
fn conclude(report: &Report, strict: bool, json: bool) -> Result<(), Failure> {
    if json {
        show(report, true)?;
    } else {
        print(printable(&format!("\n{}", report.summary())).as_bytes())?;
    }
    match report.failed + if strict { report.notes } else { 0 } {
        0 => Ok(()),
        1 => Err(Failure::new("1 check failed")),
        many => Err(Failure::new(format!("{many} checks failed"))),
    }
}

/// Shows each result at once.
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
        // A closed stdout does not end the check: the exit code still counts.
        let _ = print(printable(&text).as_bytes());
        self.progress("...");
    }

    /// Shows progress; the next output overwrites it.
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

fn list(heading: &str, all: impl Iterator<Item = Listed>, json: bool) -> Result<(), Failure> {
    let mut out = String::new();
    if json {
        for (name, title, why) in all {
            let line = serde_json::json!({ "name": name, "title": title, "why": why });
            out += &format!("{line}\n");
        }
    } else {
        let rows: Vec<_> = all
            .map(|(name, title, _)| [name.to_owned(), title.to_owned()])
            .collect();
        out = table(["CHECK", heading], &rows);
    }
    print(out.as_bytes())
}
