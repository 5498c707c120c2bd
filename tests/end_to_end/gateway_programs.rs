//! Programs for other robots, as people have them and as the documentation shows them, drive the
//! robot of the demo.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Output};

use amber_proto::roboclaw::DriverMsg;
use prost::Message;
use serde_json::Value;

use crate::common::{demo_with, root, wait_for};
use crate::robot::{Robot, stands};

/// The demo with this gateway, and the addresses where it listens.
fn start(driver: &str) -> (Robot, Vec<SocketAddr>) {
    let robot = Robot::of(demo_with(&format!("gateway:0=amber driver {driver}")));
    let listening = wait_for("the gateway", || {
        let mut command = robot.demo.amber(&["call", "gateway", "status", "--json"]);
        let status: Value = serde_json::from_slice(&command.output().ok()?.stdout).ok()?;
        let addresses = status["listening"].as_array()?.iter();
        let addresses: Option<Vec<_>> = addresses.map(|it| it.as_str()?.parse().ok()).collect();
        addresses.filter(|it| !it.is_empty())
    });
    assert!(robot.sim(&["place", "1.5,2.6,0"]));
    (robot, listening)
}

/// A port where nothing listens now.
fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

/// Whether a program can run here; otherwise it says so.
fn can_run(program: &str, arguments: &[&str], test: &str) -> bool {
    let works = Command::new(program).args(arguments).output();
    let works = works.is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("SKIP {test}: `{program}` does not work here");
    }
    works
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

/// The clients read a reply and frames in two ways: exactly, and into a buffer whose length they
/// forget.
#[test]
fn clients_of_galileo_in_node_and_python_drive_one_metre() {
    let folder = root().join("drivers/gateways/examples/galileo");
    let (robot, listening) = start("galileo --listen 127.0.0.1:0");
    let address = listening[0];
    let (both, port) = (address.to_string(), address.port().to_string());
    let programs: [(&str, &[&str]); 2] = [
        ("node", &["drive.mjs", &both]),
        ("python3", &["drive.py", "127.0.0.1", &port]),
    ];
    for (program, arguments) in programs {
        if !can_run(program, &["--version"], "Galileo") {
            continue;
        }
        robot.carry(1.5, 2.6);
        let before = robot.state().travelled_m;
        let mut command = Command::new(program);
        let output = command
            .args(arguments)
            .current_dir(&folder)
            .output()
            .unwrap();
        succeeds(&output);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["refused"], true, "{program}");
        let ranges = report["ranges"].as_u64().unwrap();
        assert!((100..=160).contains(&ranges), "{program}: {ranges}");
        assert_ne!(report["padded"], false, "{program}");
        let answer = report["answer"].as_str().unwrap();
        // Behind the number of the frame and the length of the record.
        let bytes = (0..answer.len()).step_by(2).skip(6);
        let bytes = bytes.map(|at| u8::from_str_radix(&answer[at..at + 2], 16).unwrap());
        let answer = DriverMsg::decode(&*bytes.collect::<Vec<_>>()).unwrap();
        assert_eq!(answer.ack_num, Some(1), "{program}");
        assert!(answer.current_speed.is_some(), "{program}");
        robot.until("it stands", stands);
        let (seen_m, way_m) = (
            report["way_m"].as_f64().unwrap(),
            robot.state().travelled_m - before,
        );
        assert!(
            seen_m >= 1.0 && (0.9..2.0).contains(&way_m),
            "{program}: {seen_m} {way_m}"
        );
    }
}

/// The first program in this language on a page.
fn shown(page: &str, language: &str) -> String {
    let page = fs::read_to_string(root().join("docs/gateways").join(page)).unwrap();
    let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// The way of two seconds of commands for 0.2 m/s, also on a busy machine, where the clock of the
/// simulation is slower than that of the program.
const SECONDS_M: Range<f64> = 0.05..0.9;
/// The way of one such command, which holds for half a second.
const COMMAND_M: Range<f64> = 0.01..0.3;

/// The program drives the robot about this far.
fn drives_ahead(robot: &Robot, program: &str, text: &str, expected_m: Range<f64>) {
    let before = robot.state().travelled_m;
    let output = Command::new(program).args(["-c", text]).output().unwrap();
    succeeds(&output);
    robot.until("it stands", stands);
    let way_m = robot.state().travelled_m - before;
    assert!(expected_m.contains(&way_m), "{way_m} m with {text}");
}

#[test]
fn the_programs_in_the_documentation_of_gateways_work() {
    if !can_run("python3", &["--version"], "programs of the documentation") {
        return;
    }
    let (robot, listening) = start("galileo --listen 127.0.0.1:0");
    let port = listening[0].port().to_string();
    let text = shown("galileo.md", "python").replace("3547", &port);
    drives_ahead(&robot, "python3", &text, SECONDS_M);

    // The same program, through the proxy of another gateway.
    let page = fs::read_to_string(root().join("docs/gateways/galileo.md")).unwrap();
    let (_, proxy) = page
        .split_once("```toml\n[proxy]\n[[proxy.robots]]")
        .unwrap();
    let (options, _) = proxy.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join("proxy.toml");
    let listen = free_port();
    let options = format!(
        "[proxy]\nlisten = \"127.0.0.1:{listen}\"\n[[proxy.robots]]{options}ports = [{port}]\n"
    );
    fs::write(&file, options).unwrap();
    let driver = format!("galileo --listen 127.0.0.1:0 --config {}", file.display());
    let proxy = crate::common::Mediator::start(&[&format!("gateway:1=amber driver {driver}")]);
    wait_for("the proxy", || {
        let status = proxy
            .amber(&["call", "gateway:1", "status", "--json"])
            .output();
        let text = String::from_utf8(status.ok()?.stdout).ok()?;
        text.contains(&format!("127.0.0.1:{listen}")).then_some(())
    });
    assert!(robot.sim(&["place", "1.5,2.6,0"]));
    let text = shown("galileo.md", "python")
        .replace("3547", &listen.to_string())
        .replace(
            &format!("udp://127.0.0.1:{listen}/"),
            &format!("udp://7C9EBD3A.{port}.robot1.bwbot.org/"),
        );
    drives_ahead(&robot, "python3", &text, SECONDS_M);

    let (robot, listening) = start("json-relay --listen 127.0.0.1:0");
    let port = listening[0].port().to_string();
    let text = shown("json-relay.md", "python").replace("8080", &port);
    drives_ahead(&robot, "python3", &text, SECONDS_M);
    if can_run("nc", &["-h"], "the shell program of the JSON relay") {
        assert!(robot.sim(&["place", "1.5,2.6,0"]));
        let text = shown("json-relay.md", "sh")
            .replace("8080", &port)
            .replace("9999", &free_port().to_string());
        drives_ahead(&robot, "sh", &text, COMMAND_M);
    }

    let number = 1000 + std::process::id() % 3000;
    let (robot, listening) = start(&format!("rflysim --vehicle {number} --allow-arm"));
    let port = listening[0].port().to_string();
    let text = shown("rflysim.md", "python").replace("20100", &port);
    drives_ahead(&robot, "python3", &text, SECONDS_M);
}
