//! `amber announce`: tells the network of the mediator of this robot. IO.

use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use amber_client::blocking::Client;
use amber_core::config::Config;
use amber_core::limits::NAME_BYTES;
use amber_discovery::Announcement;
use amber_proto::{Device, DeviceType};
use amber_terminal::Failure;

/// The interval at which the list of devices is compared with the announced one.
const LOOK: Duration = Duration::from_secs(10);

/// The arguments of `amber announce` for a mediator, if other machines can reach it.
pub(crate) fn companion(config: &Config, listening: &[SocketAddr]) -> Option<Vec<String>> {
    let reachable = listening.iter().find(|it| !it.ip().is_loopback())?;
    if !config.announce {
        return None;
    }
    let name = config.name.clone().unwrap_or_else(machine);
    let here = match reachable.ip().is_unspecified() {
        true if reachable.is_ipv4() => SocketAddr::from(([127, 0, 0, 1], reachable.port())),
        true => SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), reachable.port()),
        false => *reachable,
    };
    let words = [
        "--mediator",
        &here.to_string(),
        "announce",
        "--name",
        &name,
        "--port",
    ];
    let port = reachable.port().to_string();
    Some(words.into_iter().map(str::to_owned).chain([port]).collect())
}

/// The name of this machine.
fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut name = name.trim().to_owned();
    while name.len() > NAME_BYTES {
        name.pop();
    }
    match name.is_empty() {
        true => "robot".to_owned(),
        false => name,
    }
}

/// `amber announce`: the process next to a mediator that answers searches.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// The name of the robot
    #[arg(long)]
    name: String,
    /// The port of its mediator
    #[arg(long)]
    port: u16,
}

impl Options {
    /// Announces the mediator and its devices until stdin ends.
    pub(crate) fn run(&self, mediator: &str) -> Result<(), Failure> {
        let failed = |error: amber_discovery::Error| Failure::new(error.to_string());
        let (ended, end) = mpsc::channel();
        thread::spawn(move || {
            let _ = io::stdin().read_to_end(&mut Vec::new());
            let _ = ended.send(());
        });
        let mut announcement = Announcement::new(&self.name, self.port).map_err(failed)?;
        let client = Client::connect(mediator)?;
        loop {
            // If the mediator is busy, the request is repeated.
            if let Ok(drivers) = client.mediator().drivers() {
                let devices = drivers.iter().flat_map(|driver| &driver.devices);
                let devices: Vec<_> = devices
                    .map(|device| Device::new(DeviceType(device.r#type), device.id))
                    .collect();
                let version = env!("CARGO_PKG_VERSION");
                announcement.update(version, &devices).map_err(failed)?;
            }
            if end.recv_timeout(LOOK) != Err(mpsc::RecvTimeoutError::Timeout) {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mediators_that_others_reach_are_announced() {
        let local = [
            "127.0.0.1:26233".parse().unwrap(),
            "[::1]:26233".parse().unwrap(),
        ];
        let any = [
            "127.0.0.1:1".parse().unwrap(),
            "0.0.0.0:26233".parse().unwrap(),
        ];
        let one = ["192.168.1.7:7".parse().unwrap()];
        let mut config = Config {
            name: Some("r2".into()),
            ..Config::default()
        };
        let words = |config: &Config, listening: &[SocketAddr]| {
            companion(config, listening).map(|words| words.join(" "))
        };
        assert_eq!(words(&config, &local), None);
        assert_eq!(
            words(&config, &any).as_deref(),
            Some("--mediator 127.0.0.1:26233 announce --name r2 --port 26233")
        );
        assert_eq!(
            words(&config, &one).as_deref(),
            Some("--mediator 192.168.1.7:7 announce --name r2 --port 7")
        );
        config.announce = false;
        assert_eq!(words(&config, &any), None);
    }
}
