//! The motion sensors of the demo's robot report its true motion, and recover after an outage. The
//! simulated world provides the true state.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use amber_client::blocking::Client;
use amber_client::{ImuReading, Sensors, WheelSpeeds};
use amber_sim::control::SimulationState;
use tempfile::TempDir;

use crate::common::{AMBER, Mediator, Running, ready_demo, wait_for};

const PATIENCE: Duration = Duration::from_secs(60);

/// A demo whose drivers are ready.
fn ready() -> (Mediator, TempDir) {
    let (demo, folder) = ready_demo();
    // Before that the robot stands still and the driver measures the bias.
    demo.wait_for_line("gyroscope bias");
    (demo, folder)
}

#[test]
fn turn_rate_and_gravity_are_correct_within_2_percent() {
    let (demo, folder) = ready();
    let client = Client::connect(demo.address).unwrap();
    let ninedof = client.ninedof(0);
    let period = Duration::from_millis(20);
    let mut readings = ninedof.readings(period, Sensors::ALL).unwrap();
    let wheels = client.roboclaw(0);
    let turn = || wheels.drive(WheelSpeeds::sides(-200, 200)).unwrap();
    let begin = Instant::now();
    // Reach the speed.
    while begin.elapsed() < Duration::from_secs(2) {
        turn();
        next(&mut readings);
    }
    // The rate by the driver's clock over about ten seconds; the true heading is read at both ends.
    // The turn is slow enough to be tracked between two readings.
    let (mut turned_deg, mut gravity, mut count) = (0.0, 0.0, 0.0);
    let mut truth = Turned::default();
    truth.look(&state(&folder));
    let first = next(&mut readings);
    let mut last = first;
    let began = first.timestamp_ms.unwrap();
    while last.timestamp_ms.unwrap() - began < 10_000 {
        assert!(begin.elapsed() < PATIENCE, "readings come slowly");
        turn();
        let reading = next(&mut readings);
        let passed_ms = reading.timestamp_ms.unwrap() - last.timestamp_ms.unwrap();
        let rate = |reading: ImuReading| reading.rate_deg_s.unwrap().z;
        turned_deg += (rate(last) + rate(reading)) / 2.0 * f64::from(passed_ms) / 1000.0;
        let felt = reading.acceleration_mg.unwrap();
        gravity += (felt.x.powi(2) + felt.y.powi(2) + felt.z.powi(2)).sqrt();
        count += 1.0;
        last = reading;
        truth.look(&state(&folder));
    }
    wheels.stop().unwrap();
    let took_s = f64::from(last.timestamp_ms.unwrap() - began) / 1000.0;
    let (told, truth) = (turned_deg / took_s, truth.rate_deg_s());
    assert!(truth > 40.0, "{truth} deg/s");
    assert!((told / truth - 1.0).abs() < 0.02, "{told} of {truth} deg/s");
    let gravity = gravity / count / 1000.0;
    assert!((gravity - 1.0).abs() < 0.02, "{gravity} g");
    client.close();
}

fn next(readings: &mut amber_client::blocking::Subscription<ImuReading>) -> ImuReading {
    readings.next_within(PATIENCE).expect("a reading").message
}

/// The true turn so far, counter-clockwise.
#[derive(Default)]
struct Turned {
    first_s: Option<f64>,
    last: Option<(f64, f64)>,
    turned_deg: f64,
}

impl Turned {
    fn look(&mut self, state: &SimulationState) {
        // On the map, angles are clockwise.
        let heading = -state.heading_deg;
        if let Some((_, before)) = self.last {
            self.turned_deg += (heading - before + 180.0).rem_euclid(360.0) - 180.0;
        }
        self.first_s.get_or_insert(state.time_s);
        self.last = Some((state.time_s, heading));
    }

    fn rate_deg_s(&self) -> f64 {
        self.turned_deg / (self.last.unwrap().0 - self.first_s.unwrap())
    }
}

#[test]
fn an_uncalibrated_heading_is_marked() {
    let (demo, _folder) = ready();
    let asked = demo.amber(&["call", "ninedof", "data"]).output().unwrap();
    let reading = String::from_utf8(asked.stdout).unwrap();
    assert!(reading.contains(" (uncalibrated) pitch "), "{reading}");
    let notes = String::from_utf8(asked.stderr).unwrap();
    assert!(notes.contains("calibrate-magnet"), "{notes}");

    let client = Client::connect(demo.address).unwrap();
    let reading = client.ninedof(0).data(Sensors::ALL).unwrap();
    assert!(!reading.attitude.unwrap().heading_calibrated);
    client.close();
}

#[test]
fn an_unplugged_board_is_reported_and_recovers() {
    let (demo, folder) = ready();
    let pid = demo.describe("ninedof:0").pid();
    let mut watch = Running::start(
        &demo,
        &["watch", "ninedof", "--period", "20ms", "--sensors", "gyro"],
    );
    assert!(watch.line().starts_with("gyro "));
    for (fault, trouble) in [
        (
            "unplug",
            "accelerometer: no answer; gyroscope: no answer; magnetometer: no answer",
        ),
        ("stall", "the bus is stuck"),
    ] {
        sim(&folder, &["fault", fault, "ninedof"]);
        wait_for("its trouble", || {
            let troubles = demo.describe("ninedof:0").troubles;
            troubles.into_iter().find(|told| told.text == trouble)
        });
        let asked = demo.amber(&["call", "ninedof", "data"]).output().unwrap();
        assert_eq!(
            asked.status.code(),
            Some(1),
            "old values must not be returned"
        );

        sim(&folder, &["fault", "clear"]);
        wait_for("a reading", || {
            let asked = demo.amber(&["call", "ninedof", "data"]).output().unwrap();
            asked.status.success().then_some(())
        });
        wait_for("no trouble", || {
            demo.describe("ninedof:0").troubles.is_empty().then_some(())
        });
        assert!(watch.line().starts_with("gyro "), "it continues");
    }
    watch.interrupt();
    let driver = demo.describe("ninedof:0");
    assert_eq!((driver.pid(), driver.restarts()), (pid, 0));
}

#[test]
fn a_calibration_outlives_the_driver() {
    let (demo, folder) = ready();
    let file = folder.path().join("ninedof.toml");
    let bus = format!("sim:{}", folder.path().join("sim/ninedof").display());
    let driver = format!(
        "ninedof:7=amber driver ninedof --bus {bus} --calibration {}",
        file.display()
    );
    // Two drivers can share the bus.
    let mediator = Mediator::start(&[&driver]);
    mediator.wait_for_line("INFO ready: magnetometer");
    for (request, lines) in [
        ("self-test", &["accel   ok", "gyro    ok", "magnet  ok"][..]),
        ("calibrate-gyro", &["gyro    ok", "file    ok"]),
    ] {
        let mut command = mediator.amber(&["call", "ninedof:7", request]);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        for (line, expected) in text.lines().zip(lines) {
            assert!(line.starts_with(expected), "{text}");
        }
        assert_eq!(text.lines().count(), lines.len(), "{text}");
    }
    let kept = fs::read_to_string(&file).unwrap();
    assert!(kept.contains("[gyro]\nbias_deg_s = ["), "{kept}");

    let restarted = mediator.amber(&["restart", "ninedof:7"]).output().unwrap();
    assert!(restarted.status.success(), "{restarted:?}");
    wait_for("a rate of nothing at rest", || {
        let mut command = mediator.amber(&["call", "ninedof:7", "data", "gyro", "--json"]);
        let output = command.output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        let rate = |axis: &str| json["rate_deg_s"][axis].as_f64().unwrap().abs();
        // Five times the noise.
        (["x", "y", "z"].into_iter().all(|axis| rate(axis) < 1.0)).then_some(())
    });
    drop(demo);
}

#[test]
fn the_driver_follows_the_protocol() {
    let (_demo, folder) = ready();
    let bus = format!("sim:{}", folder.path().join("sim/ninedof").display());
    let mut command = Command::new(AMBER);
    command.args(["check", "--as", "ninedof", "--timeout", "60", "--", AMBER]);
    command.args(["driver", "ninedof"]);
    let output = command.args(["--bus", &bus]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn state(folder: &TempDir) -> SimulationState {
    let socket = folder.path().join("sim");
    match amber_sim::control::ask(&socket, &amber_sim::control::Request::State) {
        Ok(amber_sim::control::Answer::State(state)) => *state,
        other => panic!("{other:?}"),
    }
}

fn sim(folder: &TempDir, args: &[&str]) {
    let mut command = Command::new(AMBER);
    let socket: &Path = folder.path();
    command.args(["sim", "--dir"]).arg(socket.join("sim"));
    let output = command.args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
