//! Gamepads: the driver of the device `gamepad`, and `amber drive --gamepad`. A simulated gamepad, or a
//! socket, is the gamepad, and the simulated robot shows what it does.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Stdio};

use amber_client::blocking::Client;
use amber_proto::gamepad::gamepad_state::Button;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{Running, demo_of, wait_for};
use crate::kit::with_and_without;
use crate::robot::{Robot, drives, stands};

const KEY: u16 = 1;
const STICK: u16 = 3;
const HOLD: u16 = 0x136;
const AHEAD: u16 = 1;

/// A gamepad that `amber drive` has opened.
struct Gamepad {
    socket: UnixStream,
    drive: Child,
}

impl Gamepad {
    fn of(robot: &Robot) -> Self {
        let path = robot.folder().join("gamepad");
        let listener = UnixListener::bind(&path).unwrap();
        let which = format!("--gamepad=sim:{}", path.display());
        let mut drive = robot.demo.amber(&["drive", &which]);
        drive.stdout(Stdio::piped()).stderr(Stdio::piped());
        let drive = drive.spawn().unwrap();
        let (mut socket, _) = listener.accept().unwrap();
        // The axes of a PlayStation pad, whose rest is 128.
        socket
            .write_all(
                b"{\"name\": \"a pad\", \"axes\": {\"0\": {\"min\": 0, \"max\": 255}, \
                  \"1\": {\"min\": 0, \"max\": 255}}}\n",
            )
            .unwrap();
        Self { socket, drive }
    }

    /// One report.
    fn says(&mut self, kind: u16, code: u16, value: i32) {
        for (kind, code, value) in [(kind, code, value), (0, 0, 0)] {
            let mut event = vec![0; 16];
            event.extend(kind.to_ne_bytes());
            event.extend(code.to_ne_bytes());
            event.extend(value.to_ne_bytes());
            self.socket.write_all(&event).unwrap();
        }
    }
}

#[test]
fn the_stick_drives_while_the_button_is_held_and_the_gamepad_is_there() {
    let robot = Robot::start();
    let mut gamepad = Gamepad::of(&robot);
    gamepad.says(STICK, AHEAD, 128);
    gamepad.says(STICK, AHEAD, 60);
    gamepad.says(KEY, HOLD, 1);
    robot.until("it drives", drives);
    let (x_m, y_m) = (robot.state().x_m, robot.state().y_m);
    gamepad.says(KEY, HOLD, 0);
    robot.until("it stands", stands);
    gamepad.says(KEY, HOLD, 1);
    robot.until("it drives again", drives);
    assert_ne!((robot.state().x_m, robot.state().y_m), (x_m, y_m));

    // Unplugged.
    let Gamepad { socket, mut drive } = gamepad;
    drop(socket);
    robot.until("it stands again", stands);
    assert_eq!(drive.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    drive.stderr.unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("the gamepad is gone"), "{said}");
    let mut shown = String::new();
    drive.stdout.unwrap().read_to_string(&mut shown).unwrap();
    assert!(
        shown.starts_with("a pad: hold the left shoulder"),
        "{shown}"
    );
}

/// A demo with wheels and a gamepad.
fn robot_with_gamepad() -> (Robot, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("robot.toml");
    let text = "name = \"a\"\n[parts]\nroboclaw = true\ngamepad = \"playstation\"\n";
    std::fs::write(&file, text).unwrap();
    (Robot::of(demo_of(file.to_str().unwrap())), folder)
}

fn troubles(robot: &Robot) -> Vec<String> {
    let driver = robot.demo.describe("gamepad:0");
    driver.troubles.into_iter().map(|it| it.text).collect()
}

/// What the device says; null without an answer.
fn told(robot: &Robot) -> Value {
    let mut call = robot.demo.amber(&["call", "gamepad", "state", "--json"]);
    serde_json::from_slice(&call.output().unwrap().stdout).unwrap_or_default()
}

fn is_connected(robot: &Robot) -> bool {
    told(robot)["connected"] == true
}

#[test]
fn the_device_tells_what_a_person_holds_and_that_its_gamepad_is_gone() {
    let (robot, _file) = robot_with_gamepad();
    let client = Client::connect(robot.demo.address).unwrap();
    let gamepad = client.gamepad(0);
    wait_for("the gamepad", || {
        gamepad.state().ok().filter(|it| it.connected())
    });
    assert!(robot.sim(&["hold", "south", "right-x=-1", "left-trigger=1"]));
    let state = wait_for("what is held", || {
        let state = gamepad.state().ok()?;
        (state.right_x() < -0.9 && state.left_trigger() == 1.0).then_some(state)
    });
    assert_eq!(state.buttons().collect::<Vec<_>>(), [Button::South]);
    assert_eq!(state.left_y, Some(0.0));

    let told = told(&robot);
    assert_eq!(told["connected"], true, "{told}");
    assert_eq!(told["buttons"], serde_json::json!(["SOUTH"]), "{told}");
    let mut watch = Running::start(&robot.demo, &["watch", "gamepad"]);
    let line = watch.line();
    assert!(line.contains("right_x"), "{line}");
    watch.interrupt();

    assert!(robot.sim(&["fault", "unplug", "gamepad"]));
    let none = wait_for("no gamepad", || {
        let state = gamepad.state().ok()?;
        let is_gone = state.trouble().ends_with("gamepad does not exist");
        (is_gone && !state.connected()).then_some(state)
    });
    assert!(
        none.buttons.is_empty() && none.right_x.is_none(),
        "{none:?}"
    );
    wait_for("its trouble", || {
        troubles(&robot)
            .contains(&none.trouble().to_owned())
            .then_some(())
    });
    assert!(robot.sim(&["fault", "clear"]));
    wait_for("the gamepad", || {
        gamepad.state().ok().filter(|it| it.connected())
    });
    assert_eq!(troubles(&robot), [""; 0]);
    client.close();
}

#[test]
fn the_gamepad_of_the_robot_drives_while_its_button_is_held() {
    let (robot, _file) = robot_with_gamepad();
    wait_for("the gamepad", || is_connected(&robot).then_some(()));
    let mut command = robot.demo.amber(&["drive", "--gamepad=gamepad:0"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut drive = command.spawn().unwrap();
    // It has the wheels as soon as it says what to do.
    let mut said = [0; 1];
    drive
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut said)
        .unwrap();
    assert!(robot.sim(&["hold", "left-y=0.8"]));
    assert!(robot.sim(&["hold", "left-y=0.8", "left-shoulder"]));
    robot.until("it drives", drives);
    assert!(robot.sim(&["hold", "left-y=0.8"]));
    robot.until("it stands", stands);
    assert!(robot.sim(&["hold", "left-y=0.8", "left-shoulder"]));
    robot.until("it drives again", drives);
    assert!(robot.sim(&["fault", "unplug", "gamepad"]));
    robot.until("it stands without the gamepad", stands);
    assert!(robot.sim(&["fault", "clear"]));
    wait_for("the gamepad", || is_connected(&robot).then_some(()));
    // What was held all the time does not count before its release. Another button shows that the
    // release has been seen.
    assert!(robot.sim(&["hold", "south"]));
    wait_for("the release", || {
        (told(&robot)["buttons"] == serde_json::json!(["SOUTH"])).then_some(())
    });
    assert!(robot.sim(&["hold", "left-y=0.8", "left-shoulder"]));
    robot.until("it drives once more", drives);
    // The driver is killed.
    assert!(robot.amber(&["stop", "gamepad"]));
    robot.until("it stands without the driver", stands);
    drive.kill().unwrap();
    drive.wait().unwrap();
}

#[test]
fn a_device_without_a_gamepad_does_not_drive() {
    let (robot, _file) = robot_with_gamepad();
    assert!(robot.sim(&["fault", "unplug", "gamepad"]));
    wait_for("its trouble", || {
        (!troubles(&robot).is_empty()).then_some(())
    });
    let output = robot
        .demo
        .amber(&["drive", "--gamepad=gamepad"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("gamepad:0 has no gamepad: "), "{said}");
}

#[test]
fn the_driver_follows_the_protocol_with_and_without_a_gamepad() {
    let (robot, _file) = robot_with_gamepad();
    robot.demo.amber(&["stop", "gamepad"]).status().unwrap();
    let port = robot.folder().join("sim/gamepad").display().to_string();
    with_and_without("gamepad", 0, [&port, "/nowhere/event5"], |check, port| {
        check.args(["gamepad", "--port", port]);
    });
}
