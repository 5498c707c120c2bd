//! Gateways: programs that speak another robot protocol use Amber's devices, and Amber's clients
//! use the robots of that protocol.
//!
//! Each protocol has a folder with a codec (bytes to messages and back), a session (what to send
//! and when; the time is an argument), a mapping (its words to Amber's devices) and a driver (the
//! options). The common parts of all protocols are in [`shared`].
//!
//! # How to write a gateway
//!
//! Implement [`Machine`], and call [`runner::serve`]
//! with it and the checked [`NetworkOptions`](shared::options::NetworkOptions). The runner owns the
//! sockets, the clock and everything of Amber; the machine only decides:
//!
//! | the machine gets | and answers with |
//! |---|---|
//! | `start` | [`Output::Bind`](shared::machine::Output) for each of its sockets |
//! | datagrams that the [`gate`](shared::gate) has admitted | `Send`; `Open` for a new session, `Order` for its commands, `Close` at its end |
//! | [`Event::Measured`](shared::event::Event) after `Watch` of a [`Topic`](amber_robot::robot::Topic) | `Send` |
//! | [`Event::Asked`](shared::event::Event): a client of Amber uses an emulated device | `Send`; `Show` for what the foreign robot reports |
//! | a timeout, at the time of `next_timeout` | anything |
//!
//! - **Motion** goes through a [`Helm`](amber_robot::helm::Helm): `drive` with each command, `begin` with
//!   targets, `release` when a session ends, and `send` after each change and at `next_due`. It keeps
//!   the seat, limits the rate, and stops the wheels when a command is not repeated. A gateway with
//!   nothing but wheels can use [`Controls`](amber_robot::controls::Controls). For messages that clients
//!   send to a device as they are, [`motion::of`](amber_robot::motion::of) says what they move.
//!   [`RobotSetup::speeds`](amber_robot::robot::RobotSetup::speeds) turns a motion of the body into wheel speeds.
//! - **Drops** are counted in `out.tally` with a reason, which also logs them.
//! - **Other orders** (messages, targets) take a token from a [`Bucket`](amber_robot::bucket::Bucket) of
//!   the session.
//! - **Guessing** of tokens or sessions is noted in [`Offences`](shared::offences::Offences).
//!
//! Emulated devices run in the same process: the configuration of the mediator names them,
//! `devices = ["gateway:0", "roboclaw:1"]`, and [`Machine::emulated`](shared::machine::Machine)
//! returns them.
//!
//! The first lines of each module contain PURE or IO. PURE code only computes: it uses no sockets,
//! files, clocks or tasks, and gets the time as an argument. IO code uses them.

use std::process::ExitCode;

use amber_driver::options::OptionsError;
use clap::Subcommand;

use self::json_relay::driver::Relay;
use self::json_relay::end::End;
use self::shared::machine::Machine;
use self::shared::options::Network;
use self::shared::runner;

pub mod apollo;
pub mod galileo;
pub mod json_relay;
pub mod limits;
pub mod rflysim;
pub mod rosbridge;
pub mod shared;
#[cfg(test)]
mod testing;

/// A gateway and its options.
#[derive(Clone, Debug, Subcommand)]
pub enum Gateway {
    /// For programs written for robots of bwbot (Galileo UDP)
    Galileo(Box<galileo::driver::Options>),
    /// For web pages and programs that use rosbridge of ROS
    Rosbridge(Box<rosbridge::driver::Options>),
    /// For programs and robots of the JSON relay
    JsonRelay(Box<json_relay::driver::Options>),
    /// For the driving system Apollo with its UDP bridge
    Apollo(Box<apollo::driver::Options>),
    /// For programs and vehicles of the simulator RflySim
    Rflysim(Box<rflysim::driver::Options>),
}

impl Gateway {
    /// Serves on stdin and stdout until stdin ends.
    pub fn run(self) -> ExitCode {
        match self {
            Self::Galileo(options) => serve(options.gateway()),
            Self::Rosbridge(options) => serve(options.setup()),
            Self::JsonRelay(options) => match options.setup() {
                Ok((Relay::Server(server), network)) => serve(Ok((*server, network))),
                Ok((Relay::End(end), network)) => serve(Ok((*end, network))),
                Err(error) => serve::<End>(Err(error)),
            },
            Self::Apollo(options) => serve(options.setup()),
            Self::Rflysim(options) => serve(options.setup()),
        }
    }
}

fn serve<M: Machine>(gateway: Result<(M, Network), OptionsError>) -> ExitCode {
    amber_driver::init_logging();
    match gateway {
        Ok((machine, network)) => runner::serve(machine, network),
        Err(error) => amber_driver::options::rejected(&error),
    }
}

/// A gateway of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demonstration {
    /// The command of its driver.
    pub command: &'static str,
    /// The protocol, and the address for programs.
    pub about: &'static str,
}

/// The gateways that `amber demo --gateways` runs, all on the loopback address: the first is
/// gateway:0.
pub const DEMO: &[Demonstration] = &[
    Demonstration {
        command: "amber driver galileo",
        about: "Galileo: udp://127.0.0.1:3547/cmd_vel, and other paths",
    },
    Demonstration {
        command: "amber driver rosbridge",
        about: "rosbridge: ws://127.0.0.1:9090, and a page for browsers at http://127.0.0.1:9090",
    },
    Demonstration {
        command: "amber driver json-relay",
        about: "JSON relay: UDP port 8080",
    },
    Demonstration {
        command: "amber driver apollo --trajectory 127.0.0.1:8905 --area=-50,50,-50,50",
        about: "Apollo: messages to UDP ports 8900, 8901 and 8904, trajectories from 8905",
    },
    Demonstration {
        command: "amber driver rflysim --allow-arm",
        about: "RflySim: vehicle 1, UDP ports 20100, 20101 and 30101",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_valid() {
        Gateway::augment_subcommands(clap::Command::new("driver")).debug_assert();
    }
}
