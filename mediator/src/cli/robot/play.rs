//! `amber play`: runs a mediator with the devices of a recording. IO.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::absolute;

use amber_core::config::DEFAULT_PORT;
use amber_mediator::shell::Hangup;
use amber_play::{Console, Opened, Shown, devices, open};
use amber_proto::Device;
use amber_proto::mediator::Event;
use amber_terminal::Failure;
use nix::sys::signal::{Signal, kill};
use nix::unistd::getpid;
use prost::Message;
use serde_json::json;

use super::{failed, mediator};

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Keys:
  space        pause and resume; at the end, restart
  left, right  jump 5 s
  .            pause, and play one message
  + and -      double or halve the rate
  q, Ctrl-C    quit

Examples:
  amber play robot.mcap
  amber play robot.mcap --rate 2 --loop --from 10s
  amber play robot-001.mcap robot-002.mcap
  amber play robot.mcap --listen 0.0.0.0:26233
  amber mediator --driver 'hokuyo:0,roboclaw:0=amber driver play robot.mcap'

Then use it like the robot, in another terminal: `amber devices`, `amber watch hokuyo`. Requests
get the recorded answer that is nearest in time. Commands are refused.")]
pub(crate) struct Options {
    #[command(flatten)]
    play: amber_play::Options,
    /// Serve only these devices, separated by commas [default: all in the recording]
    #[arg(long, value_name = "DEVICES", value_delimiter = ',', value_parser = amber_terminal::device)]
    devices: Vec<Device>,
    /// Address to listen on; may be given several times; port 0 picks a free port
    #[arg(long, value_name = "ADDR", value_parser = mediator::listen_address, default_values_t = [SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT))])]
    listen: Vec<SocketAddr>,
}

impl Options {
    pub(crate) fn run(mut self, options: &amber_cli::Options) -> Result<(), Failure> {
        // Mistakes are reported before anything runs.
        let Opened { recorded, paths } = open(&self.play.files).map_err(shown)?;
        let served = devices(&recorded, &self.devices).map_err(shown)?;
        self.play.start_ns(&recorded.span()).map_err(shown)?;
        drop(recorded);
        let paths = paths.into_iter();
        self.play.files = paths.map(|it| absolute(&it).unwrap_or(it)).collect();
        let mut console = Console::new()
            .map_err(|error| failed("cannot make a socket for the player", &error))?;
        let mut words = vec!["amber".to_owned(), "driver".to_owned(), "play".to_owned()];
        words.extend(self.play.words());
        words.push("--control".to_owned());
        words.push(console.socket().to_string_lossy().into_owned());
        let names: Vec<_> = served.iter().map(ToString::to_string).collect();
        let mediator = mediator::Options {
            listen: self.listen,
            driver: vec![format!("{}={}", names.join(","), shell_words::join(words))],
            log: "warn".into(),
            hangup: Hangup::End,
            ..mediator::Options::default()
        };
        let json = options.json;
        let done = mediator.serve(options, |addresses| {
            let quit = || {
                // Like Ctrl-C: the mediator stops the player.
                let _ = kill(getpid(), Signal::SIGTERM);
            };
            let keys = console.start(json, Events { json }, quit)?;
            introduce(addresses, &served, keys, json)
        });
        drop(console);
        done
    }
}

/// Prints the running parts and example commands.
fn introduce(
    addresses: &[SocketAddr],
    devices: &BTreeSet<Device>,
    keys: Option<&str>,
    json: bool,
) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let names: Vec<_> = devices.iter().map(ToString::to_string).collect();
    if json {
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        writeln!(
            out,
            "{}",
            json!({ "listening": addresses, "devices": names })
        )?;
        return out.flush();
    }
    for address in addresses {
        writeln!(out, "listening on {address}")?;
    }
    writeln!(out, "playing {}", names.join(", "))?;
    match keys {
        Some(keys) => writeln!(out, "{keys}")?,
        None => writeln!(out, "Ctrl-C ends it")?,
    }
    out.flush()
}

/// How events of the recording are shown.
struct Events {
    json: bool,
}

impl Shown for Events {
    fn event(&self, event: &[u8]) -> String {
        let Ok(event) = Event::decode(event) else {
            return String::new();
        };
        match self.json {
            true => {
                let line = json!({ "event": amber_cli::event_json(event) });
                amber_proto::printable_json(line.to_string()) + "\n"
            }
            false => amber_cli::event_line(event),
        }
    }
}

fn shown(failure: amber_play::Failure) -> Failure {
    let shown = Failure::wrong(failure.text);
    failure.hint.into_iter().fold(shown, Failure::hint)
}
