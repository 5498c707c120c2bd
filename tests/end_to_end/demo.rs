//! Tests that `amber demo` shows commands, and that they work.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use amber_sim::robot::Device;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use tempfile::TempDir;

use crate::common::{AMBER, Mediator, demo, demo_of, root, signal, wait_for};

#[test]
fn every_command_that_the_demo_shows_works() {
    let simulated = Device::built_in().map(|device| format!("{device}:0"));
    let simulated: Vec<_> = simulated.chain(["camera:0".to_owned()]).collect();
    all_work(demo(), &simulated, 18);
}

#[test]
fn every_command_that_the_demo_of_the_turtle_shows_works() {
    let turtle = [
        "roboclaw:0",
        "hokuyo:0",
        "ninedof:0",
        "battery:0",
        "camera:0",
    ];
    all_work(demo_of("turtle"), &turtle.map(str::to_owned), 16);
}

#[test]
fn every_command_that_the_demo_of_lekiwi_shows_works() {
    let lekiwi = ["hokuyo:0", "camera:0", "bus-servos:0", "base:0", "arm:0"];
    all_work(demo_of("lekiwi"), &lekiwi.map(str::to_owned), 18);
}

#[test]
fn the_robot_of_the_page_about_hardware_has_its_parts() {
    let page = fs::read_to_string(root().join("docs/hardware.md")).unwrap();
    let (_, page) = page.split_once("# my-robot.toml\n").unwrap();
    let (text, _) = page.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my-robot.toml");
    fs::write(&file, text).unwrap();
    let (demo, _devices) = demo_of(file.to_str().unwrap());
    for device in [
        "roboclaw:0",
        "hokuyo:0",
        "ninedof:0",
        "maestro:0",
        "battery:0",
    ] {
        demo.wait_for_line_with(&["INFO ready: ", &format!(" driver={device}")]);
    }
    let said = output(&mut demo.amber(&["call", "laser", "scanner", "--json"]));
    assert!(said.contains("RPLIDAR"), "{said}");
    let said = output(&mut demo.amber(&["call", "robot", "shape", "--json"]));
    assert!(said.contains("\"mine\""), "{said}");
}

/// What a command prints.
#[track_caller]
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Types all commands that a demo with these simulated devices shows.
#[track_caller]
fn all_work((mut demo, folder): (Mediator, TempDir), simulated: &[String], expected: usize) {
    let others = ["dummy:0", "dummy:1", "location:0", "drive-to-point:0"].map(str::to_owned);
    for device in simulated.iter().chain(&others) {
        demo.wait_for_line(&format!("up driver={device}"));
    }
    for device in simulated {
        demo.wait_for_line_with(&["INFO ready: ", &format!(" driver={device}")]);
    }
    let lines = demo.output();
    let mut tried = 0;
    // Each remark stands beside its command, or on the line before it.
    let commands = (lines.iter())
        .map(|line| line.split("# ").next().unwrap().trim_end())
        .skip_while(|line| *line != "Type in another terminal:")
        .skip(1)
        .take_while(|line| !line.starts_with("Ctrl-C"))
        .filter(|line| !line.is_empty());
    for line in commands {
        let words = shell_words::split(line).unwrap();
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .current_dir(root())
            .env("AMBER_SIM_DIR", folder.path().join("sim"))
            .stdin(Stdio::null());
        if line.ends_with(" drive") {
            // By hand, at a terminal.
            continue;
        }
        if line.contains(" ping ") {
            command.args(["-c", "1"]);
        }
        if line.contains(" watch ") || line.contains(" events") {
            // These run until Ctrl-C.
            let mut child = command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut first = [0];
            let stream: &mut dyn std::io::Read = match line.contains(" watch ") {
                true => child.stdout.as_mut().unwrap(),
                false => child.stderr.as_mut().unwrap(),
            };
            stream.read_exact(&mut first).unwrap();
            signal(child.id(), Signal::SIGINT);
            assert!(child.wait().unwrap().success(), "{line}");
        } else {
            let output = command.output().unwrap();
            assert!(output.status.success(), "{line}: {output:?}");
        }
        tried += 1;
    }
    assert_eq!(tried, expected, "{lines:?}");
    signal(demo.pid(), Signal::SIGINT);
    assert!(demo.wait().success());
}

#[test]
fn the_demo_ends_with_its_terminal() {
    let (mut demo, _folder) = demo();
    signal(demo.pid(), Signal::SIGHUP);
    assert!(demo.wait().success());
}

#[test]
fn a_second_demo_and_an_invalid_map_give_an_error_with_a_hint() {
    let (first, folder) = demo();
    let start = |args: &[&str]| {
        let output = Command::new(AMBER)
            .args(["demo", "--port", "0"])
            .args(args)
            .env("AMBER_SIM_DIR", folder.path().join("sim"))
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), error)
    };
    let (code, error) = start(&[]);
    assert_eq!(code, Some(1), "{error}");
    assert!(
        error.contains("choose another folder with --dir"),
        "{error}"
    );
    let other = folder.path().join("other");
    let dir = other.to_str().unwrap();
    let (code, error) = start(&["--map", "/no/such.roson", "--dir", dir]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("cannot read /no/such.roson"), "{error}");
    assert!(
        !error.contains("--dir") && !error.contains("AMBER_SIM_DIR"),
        "{error}"
    );

    let mut command = Command::new(AMBER);
    command.args(["demo", "--port", "0", "--dir", dir]);
    let second = Mediator::run(command);
    second.wait_for_line(&format!("sim state --dir {dir}"));
    first.wait_for_line("sim state --dir ");
}

#[test]
fn ctrl_c_ends_the_demo_quietly_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let devices = folder.path().join("sim");
    let mut command = Command::new(AMBER);
    command.args(["demo", "-v", "--port", "0", "--dir"]);
    command.arg(&devices);
    // Ctrl-C goes to all processes in the foreground.
    command.process_group(0);
    let mut demo = Mediator::run(command);
    demo.wait_until_ready();
    assert!(devices.is_dir());
    // On a busy machine, devices may answer late at the beginning.
    let before = demo.output().len();
    killpg(Pid::from_raw(demo.pid() as i32), Signal::SIGINT).unwrap();
    assert!(demo.wait().success());
    let lines = demo.output().into_iter().skip(before);
    let warnings: Vec<_> = lines.filter(|line| line.contains("WARN")).collect();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(!devices.exists());
}

#[test]
fn the_address_of_the_page_is_the_last_line_until_something_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(AMBER);
    command.args(["demo", "--port", "0", "--dir"]);
    command.arg(folder.path().join("sim"));
    let demo = Mediator::run(command);
    let address = demo.wait_for_line("in a browser to see the robot");
    let knows_its_pose = || {
        let mut asked = demo.amber(&["call", "location", "pose", "--json"]);
        let pose: serde_json::Value = serde_json::from_slice(&asked.output().ok()?.stdout).ok()?;
        (pose["p"].as_f64()? > 0.5).then_some(())
    };
    wait_for("the pose", knows_its_pose);
    let lines = demo.output();
    let after = lines.iter().skip_while(|it| **it != address);
    // On a busy machine, a driver may have something to say.
    let is_quiet = |line: &&String| !line.contains(" INFO ") && !line.contains("amber");
    let loud: Vec<_> = after.skip(2).filter(|it| !is_quiet(it)).collect();
    assert!(loud.is_empty(), "{lines:#?}");
    let pid = demo.describe("dummy:0").pid();
    signal(pid, Signal::SIGKILL);
    demo.wait_for_line_with(&["WARN", "dummy:0"]);
}

#[test]
fn the_python_example_takes_part() {
    let has_python = Command::new("python3")
        .args(["-c", "import google.protobuf"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !has_python {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP python in the demo: no python3 with protobuf"
        );
        return;
    }
    let (demo, _folder) = demo();
    demo.wait_for_line("python3 -u drivers/examples/python/dummy_driver.py");
    demo.wait_for_line("up driver=dummy:1");
    for words in [
        &["call", "dummy:1", "message", "hi"][..],
        &["call", "dummy:1", "status"],
    ] {
        let output = demo.amber(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let output = demo.amber(&["call", "dummy:1", "status"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("message: hi"),
        "{output:?}"
    );

    // Run the client of the example against the mediator.
    let mut client = Command::new("python3");
    client
        .arg("drivers/examples/python/dummy_client.py")
        .arg(demo.address.to_string());
    let output = client.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
