//! The binary `amber-zenoh`. IO.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use amber_driver::options::{OptionsError, read};
use amber_proto::Device;
use amber_terminal::{Failure, exit_code, note, seconds, show};
use amber_zenoh::access::{Rights, RightsError, certificates};
use amber_zenoh::certificate::{self, Validity};
use amber_zenoh::config::{FarRobot, File, FleetLink};
use amber_zenoh::diagnosis::{self, Trouble};
use amber_zenoh::names::Name;
use amber_zenoh::router::{Router, RouterError};
use amber_zenoh::{doctor, fleet, private, remote, robot, router, seat, session};
use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

/// Bring robots of Amber into a fleet over Eclipse Zenoh.
#[derive(Parser)]
#[command(
    name = "amber-zenoh",
    version,
    arg_required_else_help = true,
    after_help = "A Zenoh router must run: `amber-zenoh router`, or `zenohd`. docs/fleet.md shows \
        the steps."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Bring the robot of a mediator into the fleet
    #[command(
        after_help = "Example:\n  amber-zenoh robot --name r1 --connect tcp/192.168.0.7:7447"
    )]
    Robot(RobotOptions),
    /// Show devices of far robots as devices of a local mediator, which starts this as their driver
    #[command(after_help = REMOTE_HELP)]
    Remote(RemoteOptions),
    /// Send a request to a device of a far robot; needs no mediator here
    #[command(
        after_help = "Example:\n  amber-zenoh call --robot r2 roboclaw speeds\n\n\
        It runs `amber call` with its own mediator, so `amber` must be installed."
    )]
    Call(CallOptions),
    /// Show what a device of a far robot publishes; needs no mediator here
    #[command(
        after_help = "Example:\n  amber-zenoh watch --robot r2 hokuyo --rate\n\n\
        It runs `amber watch` with its own mediator, so `amber` must be installed."
    )]
    Watch(CallOptions),
    /// Run a program that uses a far robot; needs no mediator here
    #[command(
        after_help = "Examples:\n  amber-zenoh with --robot r2 --devices hokuyo:0 -- amber scan\n  \
        amber-zenoh with --robot r2 --devices roboclaw:0 -- python3 drive.py\n\n\
        The program finds its mediator with the environment variable AMBER_MEDIATOR. `amber` must \
        be installed."
    )]
    With(WithOptions),
    /// List the robots of the fleet and their devices
    Fleet(FleetOptions),
    /// Find out what is wrong between here and the robots
    #[command(after_help = "Example:\n  amber-zenoh doctor --config alice.toml\n\n\
        It shows the link, the days until certificates expire, clocks, and what robots have dropped. \
        The exit code is 1 if something is wrong.")]
    Doctor(DoctorOptions),
    /// Show who drives a robot, request its seat, or release it
    #[command(
        after_help = "Example:\n  amber-zenoh seat --robot r2 --operator alice take\n\n\
        Then drive within 3 s; otherwise the seat is free again."
    )]
    Seat(SeatOptions),
    /// Run a Zenoh router that connects all robots and operators of the fleet
    #[command(after_help = "Examples:\n  amber-zenoh router\n  \
        amber-zenoh router --config certificates/router.json5\n\n\
        For a fleet, it is equivalent to `zenohd` of the Zenoh project.")]
    Router(RouterOptions),
    /// Write certificates for robots and operators, and the access rules of the router
    #[command(
        after_help = "Example:\n  amber-zenoh access rights.toml --out certificates\n  \
        amber-zenoh router --config certificates/router.json5"
    )]
    Access(AccessOptions),
}

#[derive(clap::Args)]
struct RobotOptions {
    /// Configuration file; the command line overrides it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of the robot, unique in the fleet
    #[arg(long)]
    name: Option<Name>,
    /// Mediator of the robot [default: 127.0.0.1]
    #[arg(short, long, env = "AMBER_MEDIATOR", value_name = "HOST[:PORT]")]
    mediator: Option<String>,
    /// Router (may be given several times) [default: tcp/127.0.0.1:7447]
    #[arg(long, value_name = "tcp|tls/HOST:PORT")]
    connect: Vec<String>,
    /// Make the robot a node of ROS 2, with the settings of the table [ros]
    #[arg(long)]
    ros: bool,
}

const REMOTE_HELP: &str = "\
Example, in the configuration of the local mediator:
  [[driver]]
  devices = [\"hokuyo:10\", \"roboclaw:10\"]
  command = [\"amber-zenoh\", \"remote\", \"--robot\", \"r2\", \"--first-id\", \"10\", \"--operator\", \"alice\"]

The devices hokuyo:0 and roboclaw:0 of r2 are hokuyo:10 and roboclaw:10 here.";

/// The far robot, and the operator.
#[derive(clap::Args)]
struct FarOptions {
    /// Configuration file; the command line overrides it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of the robot [default: the robots in the file]
    #[arg(long)]
    robot: Option<Name>,
    /// Name of the operator, as in the certificate
    #[arg(long, value_name = "NAME")]
    operator: Option<Name>,
    /// Router (may be given several times) [default: tcp/127.0.0.1:7447]
    #[arg(long, value_name = "tcp|tls/HOST:PORT")]
    connect: Vec<String>,
}

#[derive(clap::Args)]
struct RemoteOptions {
    #[command(flatten)]
    far: FarOptions,
    /// The local id of the devices that have the id 0 on the robot
    #[arg(long, value_name = "ID", default_value_t = 0, requires = "robot")]
    first_id: i32,
    /// Local devices [default: those that the mediator names]
    #[arg(long, value_name = "DEVICE", value_delimiter = ',')]
    devices: Vec<Device>,
}

#[derive(clap::Args)]
struct CallOptions {
    #[command(flatten)]
    far: FarOptions,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Device of the robot, such as roboclaw or roboclaw:0
    device: Device,
    /// Request or stream and its arguments, as for `amber call` or `amber watch`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    request: Vec<String>,
}

#[derive(clap::Args)]
struct WithOptions {
    #[command(flatten)]
    far: FarOptions,
    /// Devices of the robot that the program uses
    #[arg(long, value_name = "DEVICE", value_delimiter = ',', required = true)]
    devices: Vec<Device>,
    /// Program and its arguments
    #[arg(last = true, required = true)]
    program: Vec<String>,
}

#[derive(clap::Args)]
struct FleetOptions {
    /// Configuration file; only the table [zenoh] is used
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Router (may be given several times) [default: tcp/127.0.0.1:7447]
    #[arg(long, value_name = "tcp|tls/HOST:PORT")]
    connect: Vec<String>,
    /// How long to wait for routers and robots
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = seconds)]
    deadline: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How long to wait for a router and for a robot that has just started.
const PRESENCE: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
struct DoctorOptions {
    /// Configuration file; only the table [zenoh] is used
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Name of the robot [default: all]
    #[arg(long)]
    robot: Option<Name>,
    /// Router (may be given several times) [default: tcp/127.0.0.1:7447]
    #[arg(long, value_name = "tcp|tls/HOST:PORT")]
    connect: Vec<String>,
    /// How long to wait for routers and robots
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = seconds)]
    deadline: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct SeatOptions {
    #[command(flatten)]
    far: FarOptions,
    /// Action
    #[arg(value_enum, default_value_t)]
    action: seat::Action,
    /// How long to wait for a router and for the seat
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = seconds)]
    deadline: Duration,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct RouterOptions {
    /// Configuration of `zenohd`, such as the router.json5 of `amber-zenoh access`
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on (may be given several times) [default: that of the file, or
    /// tcp/127.0.0.1:7447]
    #[arg(long, value_name = "tcp|tls/HOST:PORT")]
    listen: Vec<String>,
}

#[derive(clap::Args)]
struct AccessOptions {
    /// File with the robots, the operators and their rights
    #[arg(value_name = "FILE")]
    rights: PathBuf,
    /// Folder for certificates, keys and router.json5
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Validity of new certificates
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=3_000))]
    days: u32,
}

fn main() -> ExitCode {
    log();
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return exit_code(Err(Failure::new(format!("cannot start: {error}")))),
    };
    exit_code(match cli.verb {
        Verb::Robot(options) => runtime.block_on(run_robot(options)),
        Verb::Fleet(options) => runtime.block_on(run_fleet(options)),
        Verb::Seat(options) => runtime.block_on(run_seat(options)),
        Verb::Doctor(options) => runtime.block_on(run_doctor(options)),
        Verb::Remote(options) => {
            let served = runtime.block_on(run_remote(options));
            // A thread may still wait for stdin.
            runtime.shutdown_background();
            served
        }
        Verb::Call(options) => return runtime.block_on(run_amber("call", options)),
        Verb::Watch(options) => return runtime.block_on(run_amber("watch", options)),
        Verb::With(options) => {
            return runtime.block_on(run_with(&options.far, &options.devices, &options.program));
        }
        Verb::Router(options) => runtime.block_on(run_router(options)),
        Verb::Access(options) => run_access(&options),
    })
}

async fn run_robot(options: RobotOptions) -> Result<(), Failure> {
    let mut file = file(options.config.as_deref())?;
    if options.ros {
        file.ros.get_or_insert_default().enabled = Some(true);
    }
    let config = file.checked(options.name, options.mediator, options.connect);
    let config = config.map_err(rejected)?;
    let stop = terminated().map_err(failed)?;
    robot::run(config, stop).await.map_err(failed)
}

async fn run_remote(options: RemoteOptions) -> Result<(), Failure> {
    let far = options.far;
    let robot = far.robot.map(|name| FarRobot::new(name, options.first_id));
    let config = file(far.config.as_deref())?.checked_remote(robot, far.operator, far.connect);
    let config = config.map_err(rejected)?;
    let devices = match options.devices.is_empty() {
        true => amber_driver::named_devices(),
        false => options.devices,
    };
    let stop = terminated().map_err(failed)?;
    let (reader, writer) = (tokio::io::stdin(), tokio::io::stdout());
    let served = remote::run(config, &devices, stop, reader, writer).await;
    served.map_err(failed)
}

/// Runs `amber VERB` for a device of a far robot.
async fn run_amber(verb: &str, options: CallOptions) -> ExitCode {
    let name = options.device.to_string();
    let mut program = vec!["amber".to_owned(), verb.to_owned(), name];
    program.extend(options.json.then(|| "--json".to_owned()));
    program.extend(options.request);
    run_with(&options.far, &[options.device], &program).await
}

/// Runs a program with its own mediator. Returns the exit code of the program.
async fn run_with(far: &FarOptions, devices: &[Device], program: &[String]) -> ExitCode {
    let ended = async {
        let Some(name) = &far.robot else {
            return Err(Failure::wrong("--robot is required").hint("e.g. --robot r2"));
        };
        // Invalid settings, and a robot that is not there, are reported before anything starts: the
        // program would only know its own mediator.
        let robot = FarRobot::new(name.clone(), 0);
        let (who, connect) = (far.operator.clone(), far.connect.clone());
        let checked = file(far.config.as_deref())?.checked_remote(Some(robot), who, connect);
        check_presence(&checked.map_err(rejected)?.link, name).await?;
        let own = std::env::current_exe().map_err(failed)?;
        let mut driver = vec![own.display().to_string(), "remote".to_owned()];
        let mut option = |name: &str, value: Option<String>| {
            driver.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        option(
            "--config",
            far.config.as_ref().map(|it| it.display().to_string()),
        );
        option("--robot", far.robot.as_ref().map(ToString::to_string));
        option("--operator", far.operator.as_ref().map(ToString::to_string));
        far.connect
            .iter()
            .for_each(|router| option("--connect", Some(router.clone())));
        let stop = terminated().map_err(failed)?;
        private::run(devices, &driver, program, stop).await
    };
    match ended.await {
        Ok(code) => code,
        Err(failure) => exit_code(Err(failure)),
    }
}

async fn run_fleet(options: FleetOptions) -> Result<(), Failure> {
    let link = file(options.config.as_deref())?.zenoh;
    let link = link.checked(options.connect).map_err(rejected)?;
    let session = opened(&link, options.deadline).await?;
    let fleet = fleet::look(&session, options.deadline).await;
    session.close().await.map_err(failed)?;
    show(&fleet.map_err(failed)?, options.json)
}

/// A robot that is not in the fleet is an error.
async fn check_presence(link: &FleetLink, robot: &Name) -> Result<(), Failure> {
    let session = opened(link, PRESENCE).await?;
    let is_there = fleet::awaited(&session, robot, PRESENCE).await;
    session.close().await.map_err(failed)?;
    match is_there.map_err(failed)? {
        true => Ok(()),
        false => {
            let problem = format!(
                "{robot} is not in the fleet, or the rights of this operator do not allow it"
            );
            Err(Failure::new(problem).hint("`amber-zenoh fleet` lists the robots"))
        }
    }
}

async fn run_doctor(options: DoctorOptions) -> Result<(), Failure> {
    let link = file(options.config.as_deref())?.zenoh;
    let link = link.checked(options.connect).map_err(rejected)?;
    let (began, deadline) = (Instant::now(), options.deadline);
    let session = opened(&link, deadline).await?;
    let robot = options.robot.as_ref();
    let report = doctor::examine(&session, &link, robot, began, deadline).await;
    session.close().await.map_err(failed)?;
    let report = report.map_err(failed)?;
    show(&report, options.json)?;
    match report.problems.len() {
        0 => Ok(()),
        1 => Err(Failure::new("1 problem")),
        number => Err(Failure::new(format!("{number} problems"))),
    }
}

async fn run_seat(options: SeatOptions) -> Result<(), Failure> {
    let far = options.far;
    let robot = far.robot.map(|name| FarRobot::new(name, 0));
    let config = file(far.config.as_deref())?.checked_remote(robot, far.operator, far.connect);
    let config = config.map_err(rejected)?;
    let [robot] = &config.robots[..] else {
        return Err(Failure::wrong("the file lists several robots").hint("select one with --robot"));
    };
    let session = opened(&config.link, options.deadline).await?;
    let (who, action) = (&config.who, options.action);
    let shown = seat::ask(&session, &robot.name, who, action, options.deadline).await;
    session.close().await.map_err(failed)?;
    let shown = shown.map_err(|problem| {
        let failure = Failure::new(problem.message);
        match problem.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    show(&shown, options.json)
}

/// A session, if there is a router in time.
async fn opened(link: &FleetLink, deadline: Duration) -> Result<zenoh::Session, Failure> {
    let Ok(session) = tokio::time::timeout(deadline, session::open(link)).await else {
        let Trouble { text, hint } = diagnosis::find(link).await;
        return Err(Failure::new(text).hint(hint));
    };
    let session = session.map_err(failed)?;
    let tls = link.tls.as_ref();
    let all = tls
        .and_then(|tls| certificate::check(tls).ok())
        .unwrap_or_default();
    for problem in all.iter().filter_map(Validity::trouble) {
        note(format_args!("warning: {problem}"));
    }
    Ok(session)
}

async fn run_router(options: RouterOptions) -> Result<(), Failure> {
    let stop = terminated().map_err(failed)?;
    let RouterOptions { config, listen } = options;
    let started = Router::start(&router::Options { config, listen }).await;
    let router = started.map_err(|error| match &error {
        RouterError::Failed { .. } => Failure::new(error.to_string())
            .hint("another router may run there; choose a port with --listen tcp/HOST:PORT"),
        RouterError::Unreadable { .. } | RouterError::Refused(_) => {
            Failure::wrong(error.to_string())
        }
    })?;
    note(format_args!(
        "the router listens on {}",
        router.listen.join(" ")
    ));
    if router.is_open {
        note("warning: anyone who reaches it drives all robots; see `amber-zenoh access --help`");
    }
    stop.await;
    router.close().await.map_err(failed)
}

fn run_access(options: &AccessOptions) -> Result<(), Failure> {
    let rights: Rights = read(Some(&options.rights)).map_err(rejected)?;
    let wrong = |error: RightsError| Failure::wrong(error.to_string());
    rights.check().map_err(wrong)?;
    let made = certificates::make(&rights, &options.out, options.days).map_err(failed)?;
    let folder = std::fs::canonicalize(&options.out).map_err(failed)?;
    let router = serde_json::to_string_pretty(&rights.router(&folder)).map_err(failed)?;
    let path = folder.join("router.json5");
    std::fs::write(&path, router + "\n").map_err(failed)?;
    for name in made {
        note(format_args!(
            "new: {}",
            folder.join(name).with_extension("pem").display()
        ));
    }
    note(format_args!(
        "amber-zenoh router --config {}",
        path.display()
    ));
    Ok(())
}

fn file(path: Option<&Path>) -> Result<File, Failure> {
    read(path).map_err(rejected)
}

fn rejected(error: OptionsError) -> Failure {
    let failure = Failure::wrong(error.to_string());
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string())
}

/// Resolves when the process is asked to end.
fn terminated() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Log lines go to stderr: Amber's from level `info` upwards, those of Zenoh from `error`. The
/// environment variable `AMBER_LOG` changes that.
fn log() {
    let usual = || {
        Targets::new()
            .with_default(tracing::Level::ERROR)
            .with_target("amber_zenoh", tracing::Level::INFO)
            .with_target("amber_client", tracing::Level::INFO)
    };
    let filter = std::env::var("AMBER_LOG").unwrap_or_default();
    let filter = match filter.is_empty() {
        true => usual(),
        false => filter.parse().unwrap_or_else(|_| usual()),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    // Another log cannot have been set up before.
    let _ = tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init();
}
