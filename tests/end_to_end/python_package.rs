//! The Python package drives the demo robot, and makes drivers.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{AMBER, Mediator, READY, demo, root};

const SOURCE: &str = "client-sdk/python/src";

/// Whether Python has what the programs need; says so if not.
fn can_run(test: &str, modules: &str) -> bool {
    let found = Command::new("python3")
        .args(["-c", &format!("import {modules}")])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        let _ = writeln!(std::io::stderr(), "SKIP {test}: no python3 with {modules}");
    }
    found
}

fn python(program: &str, mediator: &Mediator) -> Command {
    let mut command = Command::new("python3");
    command
        .arg(program)
        .current_dir(root())
        .env("PYTHONPATH", root().join(SOURCE))
        .env("AMBER_MEDIATOR", mediator.address.to_string());
    command
}

fn output(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// What the world says of the robot.
fn truth(folder: &Path, name: &str) -> f64 {
    let mut command = Command::new(AMBER);
    command.args(["sim", "state", "--json"]);
    command.env("AMBER_SIM_DIR", folder.join("sim"));
    let state: serde_json::Value = serde_json::from_str(&output(command)).unwrap();
    state[name].as_f64().unwrap()
}

#[test]
fn wander_drives_the_demo_robot_and_touches_nothing() {
    if !can_run("python wander", "google.protobuf") {
        return;
    }
    let (demo, folder) = demo();
    for ready in READY {
        demo.wait_for_line(ready);
    }
    let mut wander = python("client-sdk/python/examples/wander.py", &demo);
    wander.arg("6");
    let words = output(wander);
    assert!(words.contains(" 0 missed"), "{words}");
    assert!(truth(folder.path(), "travelled_m") > 0.5);
    assert_eq!(truth(folder.path(), "contacts"), 0.0);
}

#[test]
fn a_driver_with_messages_of_its_own_answers() {
    if !can_run("python thermometer", "google.protobuf, grpc_tools") {
        return;
    }
    // The driver finds the package in the environment of the mediator.
    let mut command = Command::new(AMBER);
    command
        .args(["mediator", "--listen", "127.0.0.1:0", "--driver"])
        .arg("201:0=python3 drivers/examples/python/thermometer_driver.py")
        .env("PYTHONPATH", root().join(SOURCE))
        .current_dir(root());
    let mediator = Mediator::run(command);
    mediator.wait_for_line("up driver=201:0");
    let words = output(python(
        "drivers/examples/python/thermometer_client.py",
        &mediator,
    ));
    let lines: Vec<_> = words.lines().collect();
    assert_eq!(lines.len(), 4, "{words}");
    let is_reading = |line: &&str| line.contains("degrees") || *line == "no sensor";
    assert!(lines.iter().all(is_reading), "{words}");
}
