//! `amber discover`: finds robots in the network. IO.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use amber_discovery::FoundRobot;
use amber_terminal::{Failure, Human};
use serde::Serialize;

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  amber discover
  amber discover --for 10 --json
  amber -m 192.168.1.7 devices      (with an address that was found)

Mediators of other machines answer by mDNS (multicast, UDP port 5353), unless they listen on
loopback addresses only or have `announce = false` in [mediator].")]
pub(crate) struct Options {
    /// How long to search
    #[arg(long = "for", value_name = "SECONDS", default_value = "3", value_parser = amber_terminal::seconds)]
    time: Duration,
}

impl Options {
    pub(crate) fn run(&self, json: bool) -> Result<(), Failure> {
        let found = amber_discovery::search(self.time, |_| {});
        let robots = found.map_err(|error| Failure::new(error.to_string()))?;
        let none = robots.is_empty();
        let list = List {
            robots: robots.into_iter().map(Row::from).collect(),
        };
        if none && !json {
            return Err(Failure::new(format!(
                "no robot answered within {}",
                amber_terminal::duration(self.time)
            ))
            .hint(
                "is it in this network, and does the network forward multicast? `amber -m ADDRESS` \
                 needs neither",
            ));
        }
        amber_terminal::show(&list, json)
    }
}

#[derive(Serialize)]
struct List {
    robots: Vec<Row>,
}

/// The displayed data of a robot.
#[derive(Serialize)]
struct Row {
    name: String,
    /// The addresses, the best one first.
    addresses: Vec<SocketAddr>,
    version: Option<String>,
    devices: Vec<String>,
    /// The number of devices that did not fit into the announcement.
    more_devices: u32,
}

impl From<FoundRobot> for Row {
    fn from(robot: FoundRobot) -> Self {
        Self {
            name: robot.name,
            addresses: robot.addresses,
            version: robot.version,
            devices: robot.devices.iter().map(ToString::to_string).collect(),
            more_devices: robot.more_devices,
        }
    }
}

impl Human for List {
    fn human(&self) -> String {
        let rows = self.robots.iter().map(|robot| {
            let mut devices = robot.devices.join(" ");
            if robot.more_devices > 0 {
                let _ = write!(devices, " and {} more", robot.more_devices);
            }
            [
                robot.name.clone(),
                robot
                    .addresses
                    .first()
                    .map_or_else(String::new, ToString::to_string),
                robot.version.clone().unwrap_or_default(),
                devices,
            ]
        });
        let rows: Vec<_> = rows.collect();
        amber_terminal::table(["ROBOT", "ADDRESS", "VERSION", "DEVICES"], &rows)
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::{Device, DeviceType};

    use super::*;

    #[test]
    fn robots_are_listed_with_the_address_to_try() {
        let robot = FoundRobot {
            name: "r2".into(),
            addresses: vec!["192.168.1.7:26233".parse().unwrap()],
            version: Some("0.2.0".into()),
            devices: vec![Device::new(DeviceType::HOKUYO, 0)],
            more_devices: 2,
        };
        let list = List {
            robots: vec![robot.into()],
        };
        assert_eq!(
            list.human(),
            "ROBOT  ADDRESS            VERSION  DEVICES\n\
             r2     192.168.1.7:26233  0.2.0    hokuyo:0 and 2 more\n"
        );
    }
}
