//! The Python package drives the demo robot and implements drivers.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::common::{AMBER, Mediator, lines_of, root, signal, wait_for};

pub const SOURCE: &str = "client-sdk/python/src";

/// Whether Python has the required modules; prints a message if not.
pub fn can_run(test: &str, modules: &str) -> bool {
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

/// The true state of the robot.
pub fn truth(folder: &Path, name: &str) -> f64 {
    let mut command = Command::new(AMBER);
    command.args(["sim", "state", "--json"]);
    command.env("AMBER_SIM_DIR", folder.join("sim"));
    let state: serde_json::Value = serde_json::from_str(&output(command)).unwrap();
    state[name].as_f64().unwrap()
}

/// Each halts the robot, or releases the halt if it has an argument, and prints the devices.
const HALTS: [&str; 2] = [
    "\
import sys, amber
with amber.Robot(connect_timeout=60, deadline=60) as robot:
    act = robot.release_halt if sys.argv[1:] else robot.halt
    print(*act('a program'))",
    "\
import asyncio, sys, amber
async def main():
    async with amber.aio.Robot(connect_timeout=60, deadline=60) as robot:
        act = robot.release_halt if sys.argv[1:] else robot.halt
        print(*await act('a program'))
asyncio.run(main())",
];

#[test]
fn a_halt_in_python_keeps_the_robot_from_moving_until_its_release() {
    if !can_run("python halts", "google.protobuf") {
        return;
    }
    let robot = crate::robot::Robot::start();
    robot.demo.wait_until_ready();
    let turn = ["drive", "--left", "200", "--right", "-200", "--for", "1s"];
    for program in HALTS {
        let run = |more: &[&str]| {
            let mut command = python("-c", &robot.demo);
            command.arg(program).args(more);
            output(command)
        };
        let halted = run(&[]);
        let moves = |device: &str| halted.contains(device);
        assert!(moves("roboclaw:0") && !moves("hokuyo:0"), "{halted}");
        let refused = robot.demo.amber(&turn).output().unwrap();
        let error = String::from_utf8(refused.stderr).unwrap();
        assert!(error.contains("halted by a program"), "{error}");
        assert_eq!(run(&["release"]), halted);
        assert!(robot.amber(&turn));
    }
}

#[test]
fn the_robot_returns_home_at_enter_and_stops_at_an_interrupt_in_python() {
    if !can_run("python return_home", "google.protobuf") {
        return;
    }
    let robot = crate::driving::robot();
    let mut command = python("client-sdk/python/examples/return_home.py", &robot.demo);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut returning = command.spawn().unwrap();
    let lines = lines_of(returning.stdout.take().unwrap());
    assert!(lines.recv().unwrap().starts_with("home is "));
    assert!(robot.amber(&["goto", "3.35", "1"]));
    let mut keys = returning.stdin.take().unwrap();
    keys.write_all(b"\n").unwrap();
    assert!(lines.recv().unwrap().starts_with("arrived at "));
    let state = robot.state();
    assert!((state.x_m - 3.5).hypot(state.y_m - 2.6) < 0.35);
    // Away and back again, but not the whole way.
    assert!(robot.amber(&["goto", "3.35", "1"]));
    keys.write_all(b"\n").unwrap();
    robot.until("it drives", crate::robot::drives);
    signal(returning.id(), nix::sys::signal::Signal::SIGINT);
    assert!(returning.wait().unwrap().success());
    robot.until("it stands", crate::robot::stands);
    assert_eq!(robot.state().contacts, 0);
}

#[test]
fn a_driver_with_user_defined_messages_answers() {
    if !can_run("python thermometer", "google.protobuf, grpc_tools") {
        return;
    }
    // The driver inherits the Python path from the mediator.
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

/// The program or schema that a page shows after naming its file.
pub(crate) fn shown(page: &str, file: &str) -> String {
    let (_, rest) = page.split_once(&format!("This is `{file}`")).unwrap();
    let (_, rest) = rest.split_once("```").unwrap();
    let (_language, rest) = rest.split_once('\n').unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_programs_in_write_a_driver_work() {
    if !can_run("write a driver", "google.protobuf, grpc_tools") {
        return;
    }
    let page = fs::read_to_string(root().join("docs/write-a-driver.md")).unwrap();
    let folder = TempDir::new().unwrap();
    for file in ["lamp.proto", "lamp_driver.py", "lamp_client.py"] {
        fs::write(folder.path().join(file), shown(&page, file)).unwrap();
    }
    let here = |program: &str| {
        let mut command = Command::new(program);
        command
            .current_dir(folder.path())
            .env("PYTHONPATH", root().join(SOURCE));
        command
    };
    let mut check = here(AMBER);
    check.args(["check", "--timeout", "20", "--proto", "lamp.proto"]);
    check.args(["--request", "set_brightness=10", "--"]);
    check.args(["python3", "lamp_driver.py"]);
    output(check);

    let mut command = here(AMBER);
    command.args(["mediator", "--listen", "127.0.0.1:0"]);
    command.args(["--driver", "201:0=python3 lamp_driver.py"]);
    let mediator = Mediator::run(command);
    mediator.wait_for_line("up driver=201:0");
    let address = mediator.address.to_string();
    let mut call = here(AMBER);
    // It is up, but Python may still be loading it.
    wait_for("its description", || {
        let mut describe = here(AMBER);
        describe.args(["describe", "lamp"]);
        let described = describe.env("AMBER_MEDIATOR", &address).output().unwrap();
        described.status.success().then_some(())
    });
    call.args(["call", "lamp", "--timeout", "20", "set-brightness", "40"]);
    call.env("AMBER_MEDIATOR", &address);
    assert_eq!(output(call), "brightness: 40 %\n");
    mediator.wait_for_line("the lamp shines with 0 percent");
    let mut client = here("python3");
    client.arg("lamp_client.py").env("AMBER_MEDIATOR", &address);
    assert_eq!(
        output(client),
        "the lamp shines with 70 percent\npublished: 70\n"
    );
}

/// The folder with a battery gauge: its description, its driver and a client.
fn battery_gauge() -> TempDir {
    let folder = TempDir::new().unwrap();
    for file in ["battery.proto", "battery_driver.py", "battery_client.py"] {
        let original = root().join("client-sdk/python/tests").join(file);
        fs::copy(original, folder.path().join(file)).unwrap();
    }
    folder
}

#[test]
fn a_described_device_has_typed_clients_and_a_driver_class() {
    if !can_run("python battery gauge", "google.protobuf, grpc_tools") {
        return;
    }
    let folder = battery_gauge();
    let here = |program: &str| {
        let mut command = Command::new(program);
        command
            .current_dir(folder.path())
            .env("PYTHONPATH", root().join(SOURCE));
        command
    };
    let mut check = here(AMBER);
    check.args(["check", "--timeout", "20", "--proto", "battery.proto"]);
    check.args(["--request", "get_charge=true", "--"]);
    check.args(["python3", "battery_driver.py"]);
    output(check);

    let mut command = here(AMBER);
    command.args(["mediator", "--listen", "127.0.0.1:0"]);
    command.args(["--driver", "210:0=python3 battery_driver.py"]);
    let mediator = Mediator::run(command);
    mediator.wait_for_line("up driver=210:0");
    let client = |kind: &str| {
        let mut client = here("python3");
        client.args(["battery_client.py", kind]);
        output({
            client.env("AMBER_MEDIATOR", mediator.address.to_string());
            client
        })
    };
    assert_eq!(
        client("asyncio"),
        "charge 80\nhistory [(1, 12.0)]\nvolts 12.5\ncharges 60\n"
    );
    let words = client("plain");
    let lines: Vec<_> = words.lines().collect();
    let expected = [
        "charge 80",
        "history [(1, 12.0), (2, 11.5)]",
        "test 300 None for ", // and the number of the client
        "210:0 refused the request: too much",
        "volts 12.5",
        "charges 40",
        "described 80",
        "statistics 1",
        "driver always",
        "log level: info",
        "configuration: ",
        "traced 210",
        "210:0: restarting",
        "state ['up']",
    ];
    assert_eq!(lines.len(), expected.len(), "{words}");
    for (line, start) in lines.iter().zip(expected) {
        assert!(line.starts_with(start), "no {start} in {words}");
    }
}
