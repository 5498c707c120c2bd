//! The commands of `amber` that are clients of a mediator. IO.
//!
//! Each command computes one value and shows it to people or, with `--json`, to
//! programs. Data goes to stdout and everything else to stderr.

use std::io;

use amber_client::{Client, MediatorAddress};
use amber_proto::Device;
use amber_terminal::Failure;
use clap::{Args, Subcommand};

use self::change::Done;

mod bench;
mod call;
mod capture;
mod change;
pub mod complete;
mod customs;
pub mod decode;
pub mod describe;
mod descriptions;
mod devices;
mod drive;
mod events;
mod file;
mod ping;
mod reason;
mod scan;
mod status;
mod trace;
mod views;
mod watch;

/// The heading of the options of all commands, last in every help.
const GLOBAL: &str = "Global options";

/// The options of all commands.
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
    #[command(after_help = "Example:\n  amber devices")]
    Devices,
    /// Show the state of the mediator, or of the driver of one device
    #[command(
        after_help = "Examples:\n  amber status\n  amber status hokuyo\n  amber status --json"
    )]
    Status {
        /// Device, e.g. hokuyo, hokuyo:0 or 4:0
        device: Option<Device>,
    },
    /// Show events of drivers and clients, until Ctrl-C
    #[command(after_help = "Example:\n  amber events")]
    Events,
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
    /// Send a request to a device and show the reply
    #[command(after_help = call::HELP)]
    Call(call::Options),
    /// Show a laser scan as text or as a picture
    #[command(after_help = scan::HELP)]
    Scan(scan::Options),
    /// Drive with the keyboard, or at given speeds for a given time
    #[command(after_help = drive::HELP)]
    Drive(drive::Options),
    /// Start the driver of a device
    #[command(after_help = "Example:\n  amber start dummy:0")]
    Start {
        /// Device
        device: Device,
    },
    /// Stop the driver of a device
    #[command(after_help = "Example:\n  amber stop dummy:0")]
    Stop {
        /// Device
        device: Device,
    },
    /// Restart the driver of a device
    #[command(after_help = "Example:\n  amber restart dummy:0")]
    Restart {
        /// Device
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

/// Runs a command.
///
/// # Errors
/// The command failed, or its options are invalid.
pub fn run(verb: Verb, options: &Options) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    runtime.block_on(async {
        // Invalid options are found before anything is sent.
        let work = match verb {
            Verb::Bench(bench) => Work::Bench(bench.read()?),
            Verb::Call(call) => {
                let call = call.read()?;
                if call.is_list() {
                    return call.show_list(options.json);
                }
                Work::Call(call)
            }
            Verb::Drive(drive) => Work::Other(Verb::Drive(drive.checked(options.json)?)),
            Verb::Scan(scan) => Work::Other(Verb::Scan(scan.checked(options.json)?)),
            Verb::Watch(watch) => Work::Watch(Box::new(watch.read()?)),
            verb => Work::Other(verb),
        };
        let client = Client::connect(options.mediator.to_string()).await?;
        let done = match carry_out(work, &client, options.json).await {
            Err(failure) => Err(reason::explain(&client, failure).await),
            done => done,
        };
        client.close().await;
        done
    })
}

impl Verb {
    /// The help for a device and its request or stream, if the command names a device.
    ///
    /// # Errors
    /// The device has no description, or not this request or stream.
    pub fn device_help(&self) -> Option<Result<String, Failure>> {
        match self {
            Self::Call(call) => Some(call.help()),
            Self::Watch(watch) => Some(watch.help()),
            _ => None,
        }
    }
}

/// A command whose options are valid.
enum Work {
    Bench(bench::Checked),
    Call(call::Call),
    Watch(Box<watch::Watch>),
    Other(Verb),
}

async fn carry_out(work: Work, client: &Client, json: bool) -> Result<(), Failure> {
    match work {
        Work::Bench(bench) => bench::run(client, bench, json).await,
        Work::Call(call) => call.run(client, json).await,
        Work::Watch(watch) => until_interrupt(watch::run(client, *watch, json)).await,
        Work::Other(verb) => other(verb, client, json).await,
    }
}

async fn other(verb: Verb, client: &Client, json: bool) -> Result<(), Failure> {
    let mediator = client.mediator();
    match verb {
        // These are other work.
        Verb::Bench(_) | Verb::Call(_) | Verb::Watch(_) => Ok(()),
        Verb::Devices => devices::run(&mediator, json).await,
        Verb::Status {
            device: None | Some(Device::MEDIATOR),
        } => status::mediator(&mediator, json).await,
        Verb::Status {
            device: Some(device),
        } => status::driver(&mediator, device, json).await,
        Verb::Events => until_interrupt(events::run(&mediator, json)).await,
        Verb::Ping(options) => ping::run(client, options, json).await,
        Verb::Trace(options) => until_interrupt(trace::run(client, options, json)).await,
        Verb::Scan(options) => until_interrupt(scan::run(client, options, json)).await,
        // It handles Ctrl-C itself, because it must stop the wheels first.
        Verb::Drive(options) => drive::run(client, options, json).await,
        Verb::Start { device } => change::start(&mediator, device, json).await,
        Verb::Stop { device } => {
            let done = Done::to_driver("stop", device);
            change::show(done, mediator.stop(device).await, json)
        }
        Verb::Restart { device } => {
            let done = Done::to_driver("restart", device);
            change::show(done, mediator.restart(device).await, json)
        }
        Verb::Reload => change::show(Done::of("reload"), mediator.reload().await, json),
        Verb::LogLevel { filter } => {
            let done = Done::log_level(&filter);
            change::show(done, mediator.set_log_level(filter).await, json)
        }
    }
}

/// Ctrl-C ends an endless command: that is a success.
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
