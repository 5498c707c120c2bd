//! Sensors say themselves what they are: the laser scanner its limits, the wheels their battery. Other
//! programs get it through the gateways.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::WebSocket;

use crate::common::{AMBER, Mediator, demo_with_all, wait_for};
use crate::robot::Robot;

const GATEWAY: &str = "gateway:0=amber driver rosbridge --listen 127.0.0.1:0";

/// What a command prints as JSON; `None` if it fails.
fn said(mediator: &Mediator, words: &[&str]) -> Option<Value> {
    let output = mediator.amber(words).arg("--json").output().unwrap();
    let is_well = output.status.success();
    is_well.then(|| serde_json::from_slice(&output.stdout).ok())?
}

/// A client of the gateway that is subscribed to a topic.
fn subscribed(mediator: &Mediator, topic: &str) -> WebSocket<TcpStream> {
    let address = wait_for("the gateway", || {
        let status = said(mediator, &["call", "gateway", "status"])?;
        Some(status.pointer("/listening/0")?.as_str()?.to_owned())
    });
    let stream = TcpStream::connect(&address).unwrap();
    let (mut client, _) = tungstenite::client(format!("ws://{address}/"), stream).unwrap();
    let subscribe = json!({"op": "subscribe", "topic": topic});
    client.send(subscribe.to_string().into()).unwrap();
    client
}

/// The next message of its topic.
fn next(client: &mut WebSocket<TcpStream>) -> Value {
    loop {
        let message = client.read().unwrap();
        // The gateway also sends pings.
        if !message.is_text() {
            continue;
        }
        let text = message.to_text().unwrap();
        let mut value: Value = serde_json::from_str(text).unwrap();
        if value["op"] == "publish" {
            return value["msg"].take();
        }
    }
}

/// A simulated robot with another laser scanner. It ends with this.
struct Utm {
    folder: TempDir,
    process: Child,
}

impl Utm {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(AMBER);
        command.args(["sim", "--until-eof", "--hokuyo", "utm-30lx", "--dir"]);
        command.arg(folder.path()).stdin(Stdio::piped());
        let process = command.stdout(Stdio::null()).spawn().unwrap();
        let port = folder.path().join("hokuyo");
        wait_for("the simulated scanner", || port.exists().then_some(()));
        Self { folder, process }
    }

    fn driver(&self) -> String {
        let port = self.folder.path().join("hokuyo");
        format!("hokuyo:0=amber driver hokuyo --port {}", port.display())
    }
}

impl Drop for Utm {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn laser_scans_for_ros_have_the_limits_of_the_scanner() {
    let utm = Utm::start();
    let mediator = Mediator::start(&[&utm.driver(), GATEWAY]);
    let scanner = wait_for("the scanner", || {
        said(&mediator, &["call", "hokuyo", "scanner"])
    });
    assert_eq!(scanner["model"], "UTM-30LX", "{scanner}");
    assert_eq!(scanner["max_distance"], 60_000, "{scanner}");
    assert_eq!(scanner["turn_time"], 25_000, "{scanner}");

    let mut client = subscribed(&mediator, "/scan");
    // The gateway learns the limits within a second.
    let scan = wait_for("the limits", || {
        let scan = next(&mut client);
        (scan["range_max"] == 60.0).then_some(scan)
    });
    assert_eq!(scan["range_min"], 0.023);
    let ranges = scan["ranges"].as_array().unwrap();
    assert_eq!(ranges.len(), 1_081);
    let measured: Vec<_> = ranges.iter().filter_map(Value::as_f64).collect();
    assert!(measured.len() > 500, "{}", measured.len());
    assert!(
        measured
            .iter()
            .all(|range_m| (0.023..=60.0).contains(range_m))
    );
    // 270 of 360 degrees take 18.75 ms.
    let step_s = scan["time_increment"].as_f64().unwrap();
    assert!((step_s * 1_080.0 - 0.018_75).abs() < 1e-6, "{step_s}");
}

#[test]
fn the_battery_of_the_wheels_is_that_of_the_robot() {
    let battery = "battery:0=amber driver battery --of roboclaw --cells 3 --chemistry li-po";
    let robot = Robot::of(demo_with_all(&[battery.to_owned(), GATEWAY.to_owned()]));
    let state = wait_for("the battery", || {
        said(&robot.demo, &["call", "battery", "state"])
    });
    // The simulated battery is nearly full.
    let (mv, percent) = (state["voltage"].as_f64(), state["charge"].as_f64());
    assert!((12_000.0..=12_700.0).contains(&mv.unwrap()), "{state}");
    assert!((75.0..=100.0).contains(&percent.unwrap()), "{state}");

    let mut client = subscribed(&robot.demo, "/battery_state");
    let published = next(&mut client);
    assert_eq!(published["present"], true, "{published}");
    assert_eq!(published["current"], Value::Null, "it is not measured");
    let volts = published["voltage"].as_f64().unwrap();
    assert!((12.0..=12.7).contains(&volts), "{published}");

    assert!(robot.sim(&["fault", "low-battery"]));
    let is_low = || {
        let output = robot.demo.amber(&["status", "battery"]).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        shown.contains("the battery is low").then_some(())
    };
    wait_for("the low battery", is_low);
    let state = wait_for("the low voltage", || {
        let state = said(&robot.demo, &["call", "battery", "state"])?;
        (state["voltage"].as_f64()? < 10_500.0).then_some(state)
    });
    assert_eq!(state["health"], "LOW", "{state}");
}
