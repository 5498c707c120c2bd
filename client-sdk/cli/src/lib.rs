//! The commands of `amber` that are clients of a mediator. IO.
//!
//! Each command computes one value and shows it to people or, with `--json`, to
//! programs. Data goes to stdout and everything else to stderr.

use std::io;

use amber_client::MediatorAddress;
use amber_proto::Device;
use amber_terminal::Failure;
use clap::{Args, Subcommand};
use tokio::runtime::Runtime;

pub use self::events::{event_json, event_line};
pub use self::map::{LogMapper, LoggedMap, NewLogMapper};

use self::change::Done;
use self::session::Session;

mod arm;
mod bench;
mod call;
mod camera;
mod canvas;
mod capture;
mod change;
pub mod complete;
mod customs;
pub mod decode;
pub mod describe;
mod descriptions;
mod devices;
mod drive;
mod end;
mod events;
mod file;
mod goto;
mod halt;
mod lease;
mod location;
mod logs;
mod map;
mod message;
mod metrics;
pub mod names;
mod overview;
mod ping;
mod platform;
mod reason;
#[cfg(all(feature = "record", target_os = "linux"))]
mod record;
#[cfg(feature = "record")]
mod recordings;
mod robot;
mod scan;
mod screen;
mod session;
mod sightings;
mod silence;
mod status;
#[cfg(feature = "top")]
mod top;
mod trace;
mod views;
mod watch;

/// The heading of the options of all commands, last in every help.
const GLOBAL: &str = "Global options";

/// Options shared by all commands.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Mediator to use
    #[arg(
        short,
        long,
        global = true,
        help_heading = GLOBAL,
        value_name = "HOST[:PORT]",
        env = "AMBER_MEDIATOR",
        default_value_t
    )]
    pub mediator: MediatorAddress,
    /// Print JSON: one object per line
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,
}

/// The client commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Verb {
    /// List devices and the state of their drivers
    #[command(after_help = devices::HELP)]
    Devices(devices::Options),
    /// Show the state of the mediator, or of the driver of one device
    #[command(
        after_help = "Examples:\n  amber status\n  amber status hokuyo\n  amber status --json"
    )]
    Status {
        /// Device, e.g. hokuyo, hokuyo:0 or 4:0
        #[arg(value_parser = amber_terminal::device)]
        device: Option<Device>,
    },
    /// Watch devices, clients and drops, with rates, CPU time and memory
    #[cfg(feature = "top")]
    #[command(after_help = top::HELP)]
    Top(top::Options),
    /// Print or serve all counters as metrics for Prometheus and others (OpenMetrics)
    #[command(after_help = metrics::HELP)]
    Metrics(metrics::Options),
    /// Show events of drivers and clients, until Ctrl-C
    #[command(after_help = "Example:\n  amber events")]
    Events,
    /// Show the stderr output of drivers and the mediator's messages about them
    #[command(after_help = logs::HELP)]
    Logs(logs::Options),
    /// Measure the round-trip time to a driver
    #[command(after_help = "Examples:\n  amber ping dummy\n  amber ping mediator -c 5 -i 0.2")]
    Ping(ping::Options),
    /// Benchmark latency and throughput to the mediator and its drivers
    #[command(after_help = bench::HELP)]
    Bench(bench::Options),
    /// Show the messages that a device publishes, until Ctrl-C
    #[command(after_help = watch::HELP)]
    Watch(watch::Options),
    /// Show the frames between the mediator and a driver, until Ctrl-C
    #[command(after_help = trace::HELP)]
    Trace(trace::Options),
    /// Record everything between clients and drivers to a file (MCAP), until Ctrl-C
    #[cfg(all(feature = "record", target_os = "linux"))]
    #[command(after_help = record::HELP)]
    Record(record::Options),
    /// Write the last seconds that `amber record --snapshot` keeps in memory
    #[cfg(all(feature = "record", target_os = "linux"))]
    #[command(after_help = record::snapshot::HELP)]
    Snapshot(record::snapshot::Options),
    /// Show the contents of a recording
    #[cfg(feature = "record")]
    #[command(after_help = recordings::info::HELP)]
    Info(recordings::info::Options),
    /// Repair a recording whose recorder was killed
    #[cfg(feature = "record")]
    #[command(after_help = recordings::recover::HELP)]
    Recover(recordings::recover::Options),
    /// Write messages of a recording as JSON or as a table (CSV)
    #[cfg(feature = "record")]
    #[command(after_help = recordings::export::HELP)]
    Export(recordings::export::Options),
    /// Send a request to a device and show the reply
    #[command(after_help = call::HELP)]
    Call(call::Options),
    /// Show or save pictures of a camera, or serve them over HTTP
    #[command(after_help = camera::HELP)]
    Camera(camera::Options),
    /// Show a laser scan as text or as a picture
    #[command(after_help = scan::HELP)]
    Scan(scan::Options),
    /// Drive with the keyboard, or at given speeds for a given time
    #[command(after_help = drive::HELP)]
    Drive(drive::Options),
    /// Drive to a point on the map, around obstacles
    #[command(after_help = goto::HELP)]
    Goto(goto::Options),
    /// Tell the robot where it is
    Location(location::Options),
    /// Calibrate an arm
    Arm(arm::Options),
    /// Stop devices, and keep them from moving until the halt is released
    #[command(after_help = halt::HELP)]
    Halt(halt::Options),
    /// Make a map, or show it
    Map(map::Options),
    /// Show the shape of the robot, and who drives it
    Robot(robot::Options),
    /// Start the driver of a device
    #[command(after_help = "Example:\n  amber start dummy:0")]
    Start {
        /// Device
        #[arg(value_parser = amber_terminal::device)]
        device: Device,
    },
    /// Stop the driver of a device
    #[command(after_help = "Example:\n  amber stop dummy:0")]
    Stop {
        /// Device
        #[arg(value_parser = amber_terminal::device)]
        device: Device,
    },
    /// Restart the driver of a device
    #[command(after_help = "Example:\n  amber restart dummy:0")]
    Restart {
        /// Device
        #[arg(value_parser = amber_terminal::device)]
        device: Device,
    },
    /// Reload the configuration of the mediator
    #[command(after_help = "Example:\n  amber reload")]
    Reload,
    /// Change the log level of the mediator
    #[command(after_help = "Example:\n  amber log-level debug")]
    LogLevel {
        /// A level, or levels for targets as in info,amber_mediator=debug
        filter: String,
    },
}

/// Runs a command. `new_mapper` makes maps from logs.
///
/// # Errors
/// The command failed, or its options are invalid.
pub fn run(verb: Verb, options: &Options, new_mapper: NewLogMapper) -> Result<(), Failure> {
    runtime()?.block_on(async {
        let mut session = Session::new(options);
        let done = carry_out(verb, &mut session, new_mapper).await;
        session.end(done).await
    })
}

fn runtime() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build();
    runtime.map_err(|error| Failure::new(format!("cannot start: {error}")))
}

impl Verb {
    /// The help for a device and its request or stream, if the command names a device with a
    /// description. The mediator may have the description.
    ///
    /// # Errors
    /// The description is invalid, or does not have this request or stream.
    pub fn device_help(&self, options: &Options) -> Option<Result<String, Failure>> {
        let help = match self {
            Self::Call(call) => call.help(&options.mediator),
            Self::Watch(watch) => watch.help(&options.mediator),
            _ => return None,
        };
        help.transpose()
    }
}

/// Each command checks its options before it uses the connection.
async fn carry_out(
    verb: Verb,
    session: &mut Session<'_>,
    new_mapper: NewLogMapper,
) -> Result<(), Failure> {
    let json = session.options.json;
    match verb {
        Verb::Devices(options) => devices::run(&session.mediator().await?, &options, json).await,
        Verb::Status {
            device: None | Some(Device::MEDIATOR),
        } => status::mediator(&session.mediator().await?, json).await,
        Verb::Status {
            device: Some(device),
        } => status::driver(session.client().await?, device, json).await,
        #[cfg(feature = "top")]
        Verb::Top(options) => top::run(session.client().await?, &options, json).await,
        Verb::Metrics(options) => metrics::run(session, &options, json).await,
        Verb::Events => until_interrupt(events::run(&session.mediator().await?, json)).await,
        Verb::Logs(options) => {
            until_interrupt(logs::run(session.mediator().await?, &options, json)).await
        }
        Verb::Ping(options) => ping::run(session.client().await?, options, json).await,
        Verb::Bench(options) => {
            let bench = options.read(session).await?;
            bench::run(session.client().await?, bench, json).await
        }
        Verb::Watch(options) => {
            let watch = options.read(session).await?;
            until_interrupt(watch::run(session.client().await?, watch, json)).await
        }
        Verb::Trace(options) => {
            until_interrupt(trace::run(session.client().await?, options, json)).await
        }
        // This command handles Ctrl-C itself, because it must finish the file first.
        #[cfg(all(feature = "record", target_os = "linux"))]
        Verb::Record(options) => record::run(session, options).await,
        #[cfg(all(feature = "record", target_os = "linux"))]
        Verb::Snapshot(options) => record::snapshot::run(&session.options.mediator, &options, json),
        #[cfg(feature = "record")]
        Verb::Info(options) => recordings::info::run(&options, json),
        #[cfg(feature = "record")]
        Verb::Recover(options) => recordings::recover::run(&options, json),
        #[cfg(feature = "record")]
        Verb::Export(options) => recordings::export::run(&options, json),
        Verb::Call(options) => {
            let call = options.read(session).await?;
            if call.is_list() {
                return call.show_list(json);
            }
            call.run(session.client().await?, json).await
        }
        Verb::Scan(options) => {
            let options = options.checked(json)?;
            until_interrupt(scan::run(session.client().await?, options, json)).await
        }
        // This command handles Ctrl-C itself, because it may have changed the terminal.
        Verb::Camera(options) => {
            let options = options.checked(json)?;
            camera::run(session, &options, json).await
        }
        // This command handles Ctrl-C itself, because it must stop the wheels first.
        Verb::Drive(options) => {
            let options = options.checked(json)?;
            drive::run(session.client().await?, options, json).await
        }
        Verb::Goto(options) => {
            let options = options.checked()?;
            goto::run(session.client().await?, options, json).await
        }
        Verb::Location(options) => {
            let options = options.checked()?;
            location::run(session.client().await?, options, json).await
        }
        Verb::Arm(options) => {
            let options = options.checked()?;
            until_interrupt(arm::run(session.client().await?, options, json)).await
        }
        Verb::Halt(options) => halt::run(session.client().await?, &options, json).await,
        Verb::Map(options) => map::run(session, options, json, new_mapper).await,
        Verb::Robot(options) => {
            let options = options.checked(json)?;
            robot::run(session.client().await?, options, json).await
        }
        Verb::Start { device } => change::start(&session.mediator().await?, device, json).await,
        Verb::Stop { device } => {
            let done = session.mediator().await?.stop(device).await;
            change::show(Done::to_driver("stop", device), done, json)
        }
        Verb::Restart { device } => {
            let done = session.mediator().await?.restart(device).await;
            change::show(Done::to_driver("restart", device), done, json)
        }
        Verb::Reload => {
            let done = session.mediator().await?.reload().await;
            change::show(Done::of("reload"), done, json)
        }
        Verb::LogLevel { filter } => {
            let shown = Done::log_level(&filter);
            let done = session.mediator().await?.set_log_level(filter).await;
            change::show(shown, done, json)
        }
    }
}

/// Ctrl-C ends an endless command successfully.
async fn until_interrupt(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::select! {
        done = work => done,
        _ = interrupt() => Ok(()),
    }
}

/// Resolves at Ctrl-C.
async fn interrupt() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verbs_are_well_formed() {
        #[derive(clap::Parser)]
        struct Cli {
            #[command(flatten)]
            _options: Options,
            #[command(subcommand)]
            _verb: Verb,
        }
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
