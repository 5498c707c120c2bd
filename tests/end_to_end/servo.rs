//! `amber servo`: a person finds simulated servos of Feetech and changes what they keep.

use std::process::Command;

use amber_client::blocking::Client;
use amber_sim::control::{self, Answer, BusServo, Request};
use serde_json::Value;

use crate::common::{AMBER, Mediator, wait_for};
use crate::motion_sensors::Robot;

/// An arm, and a mediator with its driver.
fn arm() -> (Robot, Mediator) {
    let robot = Robot::with_device("feetech", "so101");
    let port = robot.socket();
    let driver = format!(
        "bus-servos:0=amber driver feetech --port {port} --preset so101 --reply-timeout-ms 500"
    );
    let mediator = Mediator::start(&[&driver]);
    mediator.wait_for_line("INFO ready: 6 servos");
    (robot, mediator)
}

/// What the command says on stdout, or on stderr if it fails. A busy machine answers late.
fn amber(robot: &Robot, words: &[&str]) -> Result<String, String> {
    let port = robot.socket();
    let mut command = Command::new(AMBER);
    command.args(["servo"]).args(words);
    command.args(["--port", &port, "--reply-timeout-ms", "500"]);
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    match output.status.success() {
        true => Ok(text(output.stdout)),
        false => Err(text(output.stderr)),
    }
}

#[track_caller]
fn refused(robot: &Robot, words: &[&str], parts: &[&str]) {
    let said = amber(robot, words).unwrap_err();
    for part in parts {
        assert!(said.contains(part), "{words:?}: {said}");
    }
}

fn scan(robot: &Robot) -> Vec<Value> {
    let said = amber(robot, &["scan", "--ids", "1-8", "--json"]).unwrap();
    let said: Value = serde_json::from_str(&said).unwrap();
    said["servos"].as_array().unwrap().clone()
}

fn servos(robot: &Robot) -> Vec<BusServo> {
    match control::ask(&robot.folder.path().join("sim"), &Request::State) {
        Ok(Answer::State(state)) => state.bus_servos,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_person_finds_servos_and_changes_what_they_keep() {
    let (robot, mediator) = arm();
    refused(
        &robot,
        &["scan", "--ids", "1"],
        &[
            "error: another program uses ",
            "hint: a driver must be stopped first",
        ],
    );
    let client = Client::connect(mediator.address).unwrap();
    client.bus_servos(0).move_to(&[(1, 200.0)], None).unwrap();
    let target = 200.0 * 4096.0 / 360.0;
    wait_for("the target", || {
        ((servos(&robot)[0].steps - target).abs() < 1.0).then_some(())
    });
    // It holds the angle that it had when its client went.
    client.close();
    drop(mediator);
    wait_for("rest", || {
        (servos(&robot)[0].steps_per_s == 0.0).then_some(())
    });
    let stands_deg = servos(&robot)[0].steps * 360.0 / 4096.0;
    assert!(stands_deg > 190.0, "{stands_deg}");

    let found = scan(&robot);
    assert_eq!(found.len(), 6, "{found:?}");
    assert_eq!(
        (&found[0]["id"], &found[0]["model"]),
        (&1.into(), &"STS3215".into())
    );
    assert_eq!(
        (&found[0]["torque"], &found[0]["baud"]),
        (&true.into(), &1_000_000.into())
    );
    let shown = amber(&robot, &["scan", "--ids", "1"]).unwrap();
    let row = format!("1   STS3215  1000000  {stands_deg:.1} deg  on     7.4 V");
    assert!(shown.contains(&row), "{row} {shown}");

    refused(
        &robot,
        &["center", "1"],
        &["servo 1 is on", "hint: ", "--release"],
    );
    assert_eq!(
        amber(&robot, &["center", "1", "--release"]),
        Ok("servo 1 stands at 180 degrees now: the middle of its turn\n".to_owned())
    );
    let centered = &scan(&robot)[0];
    assert_eq!(centered["torque"], false);
    let angle_deg = centered["angle_deg"].as_f64().unwrap();
    assert!((angle_deg - 180.0).abs() < 0.2, "{angle_deg}");

    refused(
        &robot,
        &["id", "1", "2"],
        &["another servo on the bus has the id 2", "hint: "],
    );
    amber(&robot, &["id", "1", "8"]).unwrap();
    refused(
        &robot,
        &["id", "1", "9"],
        &["servo 1 does not answer", "hint: `amber servo scan`"],
    );
    let ids: Vec<_> = scan(&robot)
        .iter()
        .map(|servo| servo["id"].clone())
        .collect();
    assert_eq!(ids, [2, 3, 4, 5, 6, 8]);

    refused(
        &robot,
        &["baud", "8", "9600"],
        &["the STS3215 cannot use 9600 bits per second, but 1000000, 500000"],
    );
    let said = amber(&robot, &["baud", "8", "500000"]).unwrap();
    assert_eq!(said, "servo 8 has 500000 bits per second now\n");
    // It has this speed: nothing is written.
    let said = amber(&robot, &["baud", "2", "1000000"]).unwrap();
    assert_eq!(said, "servo 2 has 1000000 bits per second now\n");

    // The others are as they were.
    let written = servos(&robot)
        .into_iter()
        .map(|servo| servo.memory_writes > 0);
    assert_eq!(
        written.collect::<Vec<_>>(),
        [true, false, false, false, false, false]
    );
}

#[test]
fn a_bus_without_servos_is_an_error_with_what_to_check() {
    let robot = Robot::with_device("feetech", "so101");
    refused(
        &robot,
        &["scan", "--ids", "100"],
        &[
            "error: no servo has answered at ",
            "hint: do they have a supply",
        ],
    );
    let nowhere = Command::new(AMBER)
        .args(["servo", "scan", "--port", "/nowhere/port"])
        .output()
        .unwrap();
    let said = String::from_utf8(nowhere.stderr).unwrap();
    assert!(
        said.contains("error: /nowhere/port does not exist"),
        "{said}"
    );
}

#[test]
fn servos_of_dynamixel_get_another_id_and_a_middle() {
    let robot = Robot::with_device("dynamixel", "koch");
    let amber = |words: &[&str]| {
        let words = [words, &["--maker", "dynamixel", "--baud", "1000000"]].concat();
        amber(&robot, &words)
    };
    let shown = amber(&["scan", "--ids", "1-3"]).unwrap();
    assert_eq!(shown.matches("XL430-W250").count(), 2, "{shown}");
    amber(&["id", "1", "9"]).unwrap();
    let said = amber(&["id", "1", "8"]).unwrap_err();
    assert!(
        said.contains("servo 1 does not answer at 1000000"),
        "{said}"
    );
    amber(&["center", "9"]).unwrap();
    let shown = amber(&["scan", "--ids", "9", "--json"]).unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let angle_deg = shown["servos"][0]["angle_deg"].as_f64().unwrap();
    assert!((angle_deg - 180.0).abs() < 0.2, "{angle_deg}");
    amber(&["baud", "9", "57600"]).unwrap();
}
