//! `amber status`: the mediator with its counters, or one driver. IO.

use std::collections::BTreeMap;
use std::time::Duration;

use amber_client::{Client, Mediator};
use amber_proto::mediator::{Counter, Driver, DriverCounters, Statistics};
use amber_proto::{Device, DeviceType, printable_line};
use amber_terminal::{Failure, Human, fields, millis, show};
use serde::Serialize;

use self::gateway::Gateway;
use super::devices::{Devices, motion, name, state_name, trouble};
use super::overview;

mod gateway;

pub(super) async fn mediator(mediator: &Mediator, json: bool) -> Result<(), Failure> {
    let statistics = overview::statistics(mediator).await?;
    let drivers = mediator.drivers().await?;
    show(&MediatorStatus::new(statistics, &drivers), json)
}

/// Working gateways answer sooner. Without an answer, the rest of the status is shown.
const GATEWAY_PATIENCE: Duration = Duration::from_millis(500);

pub(super) async fn driver(client: &Client, device: Device, json: bool) -> Result<(), Failure> {
    let driver = client.mediator().driver(device).await?;
    let mut status = DriverStatus::new(driver);
    if device.device_type == DeviceType::GATEWAY {
        let gateway = client.gateway(device.id.0).with_deadline(GATEWAY_PATIENCE);
        status.gateway = gateway.status().await.ok().map(Gateway::from);
    }
    show(&status, json)
}

#[derive(Debug, Serialize)]
struct MediatorStatus {
    version: Option<String>,
    uptime_ms: u64,
    listening: Vec<String>,
    clients: u32,
    /// The most that the mediator knows at once; an older one does not tell.
    most_clients: Option<u32>,
    fullest_host: Option<FullestHost>,
    counters: BTreeMap<String, u64>,
    dropped: BTreeMap<String, u64>,
    #[serde(flatten)]
    devices: Devices,
}

/// The host with the most clients.
#[derive(Debug, Serialize)]
struct FullestHost {
    host: String,
    clients: u32,
    most_clients: u32,
}

impl MediatorStatus {
    fn new(statistics: Statistics, drivers: &[Driver]) -> Self {
        let most_clients = statistics.most_clients_per_host;
        let fullest_host = statistics.fullest_host.clone().zip(most_clients);
        Self {
            uptime_ms: statistics.uptime_ms(),
            clients: statistics.clients(),
            most_clients: statistics.most_clients,
            fullest_host: fullest_host.map(|(host, most_clients)| FullestHost {
                host,
                clients: statistics.fullest_host_clients(),
                most_clients,
            }),
            version: statistics.version,
            listening: statistics.listening,
            counters: by_name(statistics.counters),
            dropped: by_name(statistics.dropped),
            devices: Devices::new(drivers),
        }
    }
}

impl MediatorStatus {
    /// How full the tables of clients are.
    fn clients_of_most(&self) -> String {
        let mut text = self.clients.to_string();
        if let Some(most) = self.most_clients {
            text.push_str(&format!(" of {most}"));
        }
        if let Some(of) = &self.fullest_host {
            let (host, clients, most) = (&of.host, of.clients, of.most_clients);
            text.push_str(&format!("; most from {host}: {clients} of {most}"));
        }
        text
    }
}

impl Human for MediatorStatus {
    fn human(&self) -> String {
        let mut out = fields(&[
            ("version", self.version.clone()),
            ("uptime", Some(millis(self.uptime_ms))),
            ("listening", Some(self.listening.join(", "))),
            ("clients", Some(self.clients_of_most())),
        ]);
        for (title, counters) in [("counted", &self.counters), ("dropped", &self.dropped)] {
            // People see only counters above 0; programs get all.
            let counters: Vec<_> = counters.iter().filter(|(_, value)| **value > 0).collect();
            if counters.is_empty() {
                out.push_str(&format!("\n{title}: nothing\n"));
                continue;
            }
            let width = counters
                .iter()
                .map(|(name, _)| name.len())
                .max()
                .unwrap_or(0);
            out.push_str(&format!("\n{title}:\n"));
            for (name, value) in counters {
                out.push_str(&format!("  {name:width$}  {value}\n"));
            }
        }
        format!("{out}\n{}", self.devices.human())
    }
}

#[derive(Debug, Serialize)]
struct DriverStatus {
    devices: Vec<String>,
    state: &'static str,
    state_ms: u64,
    pid: Option<u32>,
    restarts: u32,
    restart_policy: Option<String>,
    answers_ping: Option<bool>,
    command: Vec<String>,
    last_exit: Option<String>,
    last_exit_hint: Option<String>,
    next_start_ms: Option<u64>,
    reason: Option<String>,
    hint: Option<String>,
    /// Devices that do not work although their driver is up.
    troubles: Vec<DeviceTrouble>,
    /// Devices with a lease or a halt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    motions: Vec<DeviceMotion>,
    counters: BTreeMap<&'static str, u64>,
    last_words: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway: Option<Gateway>,
}

#[derive(Debug, Serialize)]
struct DeviceTrouble {
    device: String,
    text: String,
    since_ms: u64,
}

#[derive(Debug, Serialize)]
struct DeviceMotion {
    device: String,
    driven_by: Option<String>,
    halted_by: Option<String>,
    waiting: u32,
}

impl DriverStatus {
    fn new(driver: Driver) -> Self {
        Self {
            devices: driver.devices.iter().map(name).collect(),
            state: state_name(driver.state()),
            state_ms: driver.state_ms(),
            pid: driver.pid,
            restarts: driver.restarts(),
            restart_policy: driver.restart_policy,
            answers_ping: driver.answers_ping,
            command: driver.command,
            last_exit: driver.last_exit,
            last_exit_hint: driver.last_exit_hint,
            next_start_ms: driver.next_start_ms,
            reason: driver.reason,
            hint: driver.hint,
            troubles: (driver.troubles.into_iter())
                .map(|trouble| DeviceTrouble {
                    device: name(&trouble.device),
                    text: trouble.text,
                    since_ms: trouble.since_ms,
                })
                .collect(),
            motions: (driver.motions.into_iter())
                .map(|motion| DeviceMotion {
                    device: name(&motion.device),
                    waiting: motion.waiting(),
                    driven_by: motion.holder,
                    halted_by: motion.halted_by,
                })
                .collect(),
            counters: driver.counters.as_ref().map(counters).unwrap_or_default(),
            last_words: driver.last_words,
            gateway: None,
        }
    }
}

impl Human for DriverStatus {
    fn human(&self) -> String {
        let counters = self.counters.iter().filter(|(_, value)| **value > 0);
        let counters: Vec<_> = counters
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let troubles: Vec<_> = (self.troubles.iter())
            .map(|of| {
                let what = trouble(&of.text, of.since_ms);
                match &self.devices[..] {
                    [_] => what,
                    _ => format!("{}: {what}", of.device),
                }
            })
            .collect();
        let motions = self.motions.iter().filter_map(|of| {
            let what = motion(of.driven_by.as_deref(), of.halted_by.as_deref())?;
            let what = match of.waiting {
                0 => what,
                waiting => format!("{what} ({waiting} waiting)"),
            };
            Some(match &self.devices[..] {
                [_] => what,
                _ => format!("{}: {what}", of.device),
            })
        });
        let motions: Vec<_> = motions.collect();
        let list = |list: &[String], between| (!list.is_empty()).then(|| list.join(between));
        let mut out = fields(&[
            ("device", list(&self.devices, ", ")),
            (
                "state",
                Some(format!("{} for {}", self.state, millis(self.state_ms))),
            ),
            ("but", list(&troubles, "; ")),
            ("motion", list(&motions, "; ")),
            ("next start in", self.next_start_ms.map(millis)),
            ("reason", self.reason.clone()),
            ("hint", self.hint.clone()),
            ("pid", self.pid.map(|pid| pid.to_string())),
            ("command", list(&self.command, " ")),
            ("restarts", Some(self.restarts.to_string())),
            ("restart policy", self.restart_policy.clone()),
            ("last exit", self.last_exit.clone()),
            ("hint for that", self.last_exit_hint.clone()),
            ("counted", list(&counters, ", ")),
        ]);
        if !self.last_words.is_empty() {
            out.push_str("last output:\n");
            for line in &self.last_words {
                out.push_str(&format!("  {}\n", printable_line(line)));
            }
        }
        if let Some(gateway) = &self.gateway {
            out.push_str(&gateway.human());
        }
        out
    }
}

fn by_name(counters: Vec<Counter>) -> BTreeMap<String, u64> {
    counters
        .into_iter()
        .map(|counter| (counter.name, counter.value))
        .collect()
}

fn counters(counters: &DriverCounters) -> BTreeMap<&'static str, u64> {
    BTreeMap::from([
        ("frames_in", counters.frames_in()),
        ("bytes_in", counters.bytes_in()),
        ("frames_out", counters.frames_out()),
        ("bytes_out", counters.bytes_out()),
        ("dropped_full", counters.dropped_full()),
        ("dropped_down", counters.dropped_down()),
        ("queued", counters.queued()),
        ("stderr_lines", counters.stderr_lines()),
        ("stderr_dropped", counters.stderr_dropped()),
        ("frames_written", counters.frames_written()),
        ("dropped_client_gone", counters.dropped_client_gone()),
        ("dropped_ended", counters.dropped_ended()),
        ("dropped_stopping", counters.dropped_stopping()),
    ])
}

#[cfg(test)]
mod tests {
    use amber_proto::mediator::{Device as WireDevice, DriverState};

    use super::*;

    #[test]
    fn counters_are_objects_keyed_by_name() {
        let counter = |name: &str, value| Counter {
            name: name.into(),
            value,
        };
        let statistics = Statistics {
            version: Some("0.1.0".into()),
            uptime_ms: Some(61_000),
            listening: vec!["127.0.0.1:26233".into()],
            clients: Some(1),
            drivers: Some(0),
            counters: vec![counter("from_clients", 7)],
            dropped: vec![counter("empty", 0), counter("trailing", 2)],
            ..Statistics::default()
        };
        let older = MediatorStatus::new(statistics.clone(), &[]).human();
        assert!(older.contains("clients:   1\n"), "{older}");
        let statistics = Statistics {
            most_clients: Some(4096),
            most_clients_per_host: Some(1024),
            fullest_host: Some("this machine".into()),
            fullest_host_clients: Some(1),
            ..statistics
        };
        let status = MediatorStatus::new(statistics, &[]);
        let json = serde_json::to_value(&status).unwrap();
        assert_eq!(json["dropped"]["empty"], 0);
        assert_eq!(json["fullest_host"]["most_clients"], 1024);
        assert_eq!(json["devices"], serde_json::json!([]));
        assert_eq!(
            status.human(),
            "\
version:   0.1.0
uptime:    1m 1s
listening: 127.0.0.1:26233
clients:   1 of 4096; most from this machine: 1 of 1024

counted:
  from_clients  7

dropped:
  trailing  2

no drivers are configured
"
        );
    }

    #[test]
    fn a_driver_that_is_up_says_which_of_its_devices_do_not_work() {
        let device = |id| WireDevice { r#type: 4, id };
        let trouble = |id, since_ms| amber_proto::mediator::Trouble {
            device: device(id),
            text: "it is gone".into(),
            since_ms,
        };
        let mut driver = Driver {
            devices: vec![device(0)],
            state: DriverState::Up.into(),
            state_ms: Some(192_000),
            troubles: vec![trouble(0, 12_000)],
            ..Driver::default()
        };
        let human = DriverStatus::new(driver.clone()).human();
        let but = "state:          up for 3m 12s\nbut:            it is gone (since 12s)\n";
        assert!(human.contains(but), "{human}");
        driver.devices.push(device(1));
        driver.troubles.push(trouble(1, 1_000));
        let status = DriverStatus::new(driver);
        let human = status.human();
        let but = "hokuyo:0: it is gone (since 12s); hokuyo:1: it is gone (since 1.0s)\n";
        assert!(human.contains(but), "{human}");
        let json = serde_json::to_value(&status).unwrap();
        assert_eq!(json["troubles"][1]["device"], "hokuyo:1");
        assert_eq!(json["troubles"][1]["since_ms"], 1_000);
    }

    #[test]
    fn a_device_that_moves_says_who_drives_it_and_who_has_halted_it() {
        let status = DriverStatus::new(Driver {
            devices: vec![WireDevice { r#type: 2, id: 0 }],
            state: DriverState::Up.into(),
            motions: vec![amber_proto::mediator::DeviceMotion {
                device: WireDevice { r#type: 2, id: 0 },
                holder: Some("amber goto".into()),
                halted_by: Some("the operator".into()),
                waiting: Some(2),
            }],
            ..Driver::default()
        });
        let human = status.human();
        let line = "halted by the operator, driven by amber goto (2 waiting)";
        assert!(human.contains(line), "{human}");
        let json = serde_json::to_value(&status).unwrap();
        assert_eq!(json["motions"][0]["driven_by"], "amber goto");
    }

    #[test]
    fn a_failed_driver_says_why_and_what_to_do() {
        let status = DriverStatus::new(Driver {
            devices: vec![WireDevice { r#type: 4, id: 0 }],
            state: DriverState::Failed.into(),
            state_ms: Some(5_000),
            restarts: Some(9),
            reason: Some("died 10 times within 60 s".into()),
            hint: Some("`amber start hokuyo:0` starts it again".into()),
            command: vec!["amber".into(), "driver".into(), "hokuyo".into()],
            last_words: vec!["no such port".into()],
            ..Driver::default()
        });
        assert_eq!(
            status.human(),
            "\
device:         hokuyo:0
state:          failed for 5.0s
reason:         died 10 times within 60 s
hint:           `amber start hokuyo:0` starts it again
command:        amber driver hokuyo
restarts:       9
last output:
  no such port
"
        );
    }
}
