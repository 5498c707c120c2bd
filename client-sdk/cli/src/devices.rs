//! `amber devices`: the devices and their drivers in a table. IO.

mod changes;
mod watch;

use amber_client::Mediator;
use amber_proto::mediator::{Device as WireDevice, Driver, DriverState, Trouble};
use amber_proto::{Device, DeviceType, printable_line};
use amber_terminal::{Failure, Human, millis, show, table};
use serde::Serialize;

pub(super) const HELP: &str = "\
With --watch on a terminal, the table stays up to date until q or Ctrl-C. Without a terminal, each
change is a line, and with --json an object.

Examples:
  amber devices
  amber devices --watch
  amber devices --watch --json";

/// Options of `amber devices`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Keep watching, until q or Ctrl-C
    #[arg(short, long)]
    watch: bool,
}

pub(super) async fn run(mediator: &Mediator, options: &Options, json: bool) -> Result<(), Failure> {
    if options.watch {
        return watch::run(mediator, json).await;
    }
    let drivers = mediator.drivers().await?;
    show(&Devices::new(&drivers), json)
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Devices {
    devices: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    device: String,
    state: &'static str,
    pid: Option<u32>,
    restarts: u32,
    state_ms: u64,
    next_start_ms: Option<u64>,
    last_exit: Option<String>,
    reason: Option<String>,
    /// The problem of the device while its driver is up.
    trouble: Option<String>,
    trouble_ms: Option<u64>,
    /// The holder of its lease, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    driven_by: Option<String>,
    /// Who halted it, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    halted_by: Option<String>,
}

impl Devices {
    pub(super) fn new(drivers: &[Driver]) -> Self {
        let rows = drivers.iter().flat_map(|driver| {
            driver.devices.iter().map(|device| {
                let of_device = |trouble: &&Trouble| trouble.device == *device;
                let trouble = driver.troubles.iter().find(of_device);
                let motion = driver.motions.iter().find(|it| it.device == *device);
                Row {
                    device: name(device),
                    state: state_name(driver.state()),
                    pid: driver.pid,
                    restarts: driver.restarts(),
                    state_ms: driver.state_ms(),
                    next_start_ms: driver.next_start_ms,
                    last_exit: driver.last_exit.clone(),
                    reason: driver.reason.clone(),
                    trouble: trouble.map(|trouble| trouble.text.clone()),
                    trouble_ms: trouble.map(|trouble| trouble.since_ms),
                    driven_by: motion.and_then(|it| it.holder.clone()),
                    halted_by: motion.and_then(|it| it.halted_by.clone()),
                }
            })
        });
        Self {
            devices: rows.collect(),
        }
    }
}

impl Human for Devices {
    fn human(&self) -> String {
        if self.devices.is_empty() {
            return "no drivers are configured\n".into();
        }
        let rows: Vec<_> = self
            .devices
            .iter()
            .map(|row| {
                [
                    row.device.clone(),
                    match row.trouble {
                        Some(_) => format!("{}, but", row.state),
                        None => row.state.into(),
                    },
                    row.pid.map_or_else(|| "-".into(), |pid| pid.to_string()),
                    row.restarts.to_string(),
                    millis(row.state_ms),
                    row.last_exit
                        .as_deref()
                        .map_or_else(|| "-".into(), shortened),
                ]
            })
            .collect();
        let mut out = table(
            ["DEVICE", "STATE", "PID", "RESTARTS", "SINCE", "LAST EXIT"],
            &rows,
        );
        for row in &self.devices {
            if let (Some(text), Some(ms)) = (&row.trouble, row.trouble_ms) {
                let (device, state) = (&row.device, row.state);
                let trouble = trouble(text, ms);
                let line = format!("{device} is {state}, but: {trouble}");
                out.push_str(&printable_line(&line));
                out.push('\n');
            }
            if let Some(words) = motion(row.driven_by.as_deref(), row.halted_by.as_deref()) {
                let line = format!("{} is {words}", row.device);
                out.push_str(&printable_line(&line));
                out.push('\n');
            }
        }
        out
    }
}

/// `amber status` shows the whole text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_LAST_EXIT_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// With this width, the table fits into 120 columns.
const MAX_LAST_EXIT_CHARS: usize = 60;

/// The problem and its duration.
pub(super) fn trouble(text: &str, since_ms: u64) -> String {
    format!("{text} (since {})", millis(since_ms))
}

/// Who moves a device, or keeps it from moving.
pub(super) fn motion(driven_by: Option<&str>, halted_by: Option<&str>) -> Option<String> {
    let driven = driven_by.map(|holder| format!("driven by {holder}"));
    let halted = halted_by.map(|by| format!("halted by {by}"));
    let words: Vec<_> = halted.into_iter().chain(driven).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

pub(super) fn name(device: &WireDevice) -> String {
    Device::new(DeviceType(device.r#type), device.id).to_string()
}

pub(super) fn state_name(state: DriverState) -> &'static str {
    match state {
        DriverState::Down => "down",
        DriverState::Starting => "starting",
        DriverState::Up => "up",
        DriverState::Stopping => "stopping",
        DriverState::Backoff => "backoff",
        DriverState::Failed => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_last_exit_is_cut_in_the_table() {
        let driver = Driver {
            devices: vec![WireDevice { r#type: 5, id: 0 }],
            last_exit: Some("ż".repeat(200)),
            ..Driver::default()
        };
        let devices = Devices::new(&[driver]);
        let human = devices.human();
        assert!(
            human.ends_with(&format!("  {}...\n", "ż".repeat(60))),
            "{human}"
        );
        let json = serde_json::to_value(&devices).unwrap();
        assert_eq!(json["devices"][0]["last_exit"], "ż".repeat(200));
    }

    #[test]
    fn a_table_and_its_json() {
        let driver = Driver {
            devices: vec![
                WireDevice { r#type: 5, id: 0 },
                WireDevice { r#type: 77, id: 3 },
            ],
            state: DriverState::Up.into(),
            pid: Some(42),
            state_ms: Some(192_000),
            restarts: Some(1),
            last_exit: Some("killed by signal 9 (SIGKILL)".into()),
            ..Driver::default()
        };
        let devices = Devices::new(&[driver]);
        assert_eq!(
            devices.human(),
            "\
DEVICE   STATE  PID  RESTARTS  SINCE   LAST EXIT
dummy:0  up     42   1         3m 12s  killed by signal 9 (SIGKILL)
77:3     up     42   1         3m 12s  killed by signal 9 (SIGKILL)
"
        );
        let json = serde_json::to_value(&devices).unwrap();
        assert_eq!(json["devices"][1]["device"], "77:3");
        assert_eq!(json["devices"][1]["state_ms"], 192_000);
    }

    #[test]
    fn a_device_in_trouble_has_a_line_below_the_table() {
        let trouble = Trouble {
            device: WireDevice { r#type: 4, id: 0 },
            text: "/dev/ttyACM0 is gone".into(),
            since_ms: 12_000,
        };
        let driver = Driver {
            devices: vec![
                WireDevice { r#type: 4, id: 0 },
                WireDevice { r#type: 4, id: 1 },
            ],
            state: DriverState::Up.into(),
            troubles: vec![trouble],
            ..Driver::default()
        };
        let devices = Devices::new(&[driver]);
        assert_eq!(
            devices.human(),
            "\
DEVICE    STATE    PID  RESTARTS  SINCE  LAST EXIT
hokuyo:0  up, but  -    0         0.0s   -
hokuyo:1  up       -    0         0.0s   -
hokuyo:0 is up, but: /dev/ttyACM0 is gone (since 12s)
"
        );
        let json = serde_json::to_value(&devices).unwrap();
        assert_eq!(json["devices"][0]["state"], "up");
        assert_eq!(json["devices"][0]["trouble"], "/dev/ttyACM0 is gone");
        assert_eq!(json["devices"][0]["trouble_ms"], 12_000);
        assert_eq!(json["devices"][1]["trouble"], serde_json::Value::Null);
    }

    #[test]
    fn no_drivers_are_a_sentence() {
        assert_eq!(Devices::new(&[]).human(), "no drivers are configured\n");
    }
}
