//! The pins of an Arduino: the real driver and the simulated board. What moves gets its safe value when
//! the driver is killed, although the board has no watchdog; also when it is the mediator that kills it.

use std::fs;
use std::process::Command;

use amber_client::blocking::{Board, Client};
use amber_proto::board::Pin;
use amber_sim::control::{self, Answer, Request, SimulationState};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::common::{AMBER, Mediator, is_running, signal, wait_for};
use crate::kit::with_and_without;
use crate::motion_sensors::Robot;

/// What moves is safe this long after the driver was killed, and after the last sign of life of one that
/// hangs ...
const GUARD_S: [(Signal, f64); 2] = [(Signal::SIGKILL, 0.2), (Signal::SIGSTOP, 1.2)];
/// ... and a margin for a busy machine.
const MARGIN_S: f64 = 1.0;

fn robot() -> Robot {
    Robot::with_device("firmata", "uno")
}

/// A mediator with the driver, which is not started again. The relay is open when it is high.
fn mediator(robot: &Robot) -> (Mediator, TempDir) {
    let port = robot.socket();
    let (mediator, folder) = Mediator::configured(&format!(
        "[[driver]]\ndevice = 'board:0'\nrestart = 'never'\ngrace_ms = 100\n\
         command = ['amber', 'driver', 'firmata', '--port', '{port}', '--pin', 'led=13:output', \
         '--pin', 'motor=5:pwm', '--pin', 'pan=9:servo', '--pin', 'relay=7:output:high', \
         '--pin', 'bumper=2:input-pull-up', '--pin', 'battery=A0:analog']\n"
    ));
    mediator.wait_for_line("INFO ready: StandardFirmata.ino 2.5, 20 pins");
    (mediator, folder)
}

fn state(robot: &Robot) -> SimulationState {
    match control::ask(&robot.folder.path().join("sim"), &Request::State) {
        Ok(Answer::State(state)) => *state,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn wait_for_value(robot: &Robot, number: u8, value: u16) {
    wait_for("the value of a pin", || {
        let mut outputs = state(robot).board.into_iter();
        let found = outputs.find(|pin| pin.number == number)?;
        (found.value == value).then_some(())
    });
}

fn pin(board: &Board, name: &str) -> Pin {
    let mut pins = board.pins().unwrap().into_iter();
    pins.find(|pin| pin.name() == name).unwrap()
}

/// Sets everything, as long as the client exists.
fn set(robot: &Robot, mediator: &Mediator) -> Client {
    let client = Client::connect(mediator.address).unwrap();
    let board = client.board(0);
    board.set_digital("led", true).unwrap();
    board.set_digital("relay", false).unwrap();
    board.set_pwm("motor", 50.0).unwrap();
    board.set_servo("pan", 90.0).unwrap();
    for (number, value) in [(13, 1), (7, 0), (5, 128), (9, 1472)] {
        wait_for_value(robot, number, value);
    }
    client
}

/// What moves is safe; the light and the servo stay as they are.
#[track_caller]
fn wait_for_safety(robot: &Robot) {
    for (number, value) in [(7, 1), (5, 0), (13, 1), (9, 1472)] {
        wait_for_value(robot, number, value);
    }
}

#[test]
fn a_board_measures_and_refuses_what_it_cannot_do() {
    let robot = robot();
    let (mediator, _folder) = mediator(&robot);
    let client = Client::connect(mediator.address).unwrap();
    let board = client.board(0);
    let battery = pin(&board, "battery");
    // A quarter of the voltage.
    assert!((3.0..3.2).contains(&battery.voltage()), "{battery:?}");
    assert_eq!(battery.number, Some(14));
    assert_eq!(pin(&board, "bumper").high, Some(true));
    assert_eq!(pin(&board, "pan").pulse, None);
    let info = board.info().unwrap();
    assert_eq!((info.protocol(), info.pins.len()), ("Firmata 2.5", 20));
    for (refused, why) in [
        (
            board.set_pwm("led", 50.0),
            "pin 13 (led) is a digital output, not a PWM output",
        ),
        (
            board.set_digital("12", true),
            "pin \"12\" is not configured",
        ),
        (
            board.set_servo("pan", 181.0),
            "pin 9 (pan) turns from 0 to 180 degrees, not to 181",
        ),
    ] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    robot.fault(&["low-battery"]);
    wait_for("the low battery", || {
        (pin(&board, "battery").voltage() < 2.6).then_some(())
    });
    client.close();
}

#[test]
fn what_moves_is_safe_when_the_driver_is_killed_or_frozen() {
    for (how, guard_s) in GUARD_S {
        let robot = robot();
        let (mediator, _folder) = mediator(&robot);
        let client = set(&robot, &mediator);
        let pid = mediator.describe("board:0").pid();
        let begin_s = state(&robot).time_s;
        signal(pid, how);
        wait_for_safety(&robot);
        let took_s = state(&robot).time_s - begin_s;
        assert!(took_s < guard_s + MARGIN_S, "{how}: {took_s} s");
        if how == Signal::SIGSTOP {
            signal(pid, Signal::SIGCONT);
            let board = client.board(0);
            wait_for("what the guard has done", || {
                let mut pins = board.pins().ok()?.into_iter();
                let is_safe = |it: &Pin| it.name() == "motor" && it.duty == Some(0.0);
                pins.any(|it| is_safe(&it)).then_some(())
            });
            board.set_pwm("motor", 50.0).unwrap();
            wait_for_value(&robot, 5, 128);
        }
        client.close();
    }
}

#[test]
fn the_mediator_kills_a_driver_that_hangs_but_not_its_guard() {
    let robot = robot();
    let (mediator, _folder) = mediator(&robot);
    let client = set(&robot, &mediator);
    let pid = mediator.describe("board:0").pid();
    signal(pid, Signal::SIGSTOP);
    let stopped = mediator.amber(&["stop", "board:0"]).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
    wait_for("the end of the driver", || (!is_running(pid)).then_some(()));
    wait_for_safety(&robot);
    client.close();
}

#[test]
fn what_moves_is_safe_without_its_client() {
    let robot = robot();
    let (mediator, _folder) = mediator(&robot);
    let client = set(&robot, &mediator);
    client.close();
    wait_for_safety(&robot);
}

#[test]
fn a_halt_stops_what_moves_and_refuses_more() {
    let robot = robot();
    let (mediator, _folder) = mediator(&robot);
    let client = set(&robot, &mediator);
    let halted = mediator.amber(&["halt", "board"]).output().unwrap();
    assert!(halted.status.success(), "{halted:?}");
    wait_for_safety(&robot);
    let board = client.board(0);
    let refused = board.set_pwm("motor", 50.0).unwrap_err().to_string();
    assert!(refused.contains("halted"), "{refused}");
    let released = mediator.amber(&["halt", "board", "--release"]).output();
    assert!(released.unwrap().status.success());
    board.set_pwm("motor", 50.0).unwrap();
    wait_for_value(&robot, 5, 128);
    client.close();
}

#[test]
fn an_outage_is_reported_and_ends() {
    let robot = robot();
    let (mediator, _folder) = mediator(&robot);
    let client = set(&robot, &mediator);
    for (fault, trouble) in [
        ("stall", "the board sends no values of its analog inputs"),
        ("unplug", "does not exist"),
    ] {
        robot.fault(&[fault, "firmata"]);
        wait_for("its trouble", || {
            let troubles = mediator.describe("board:0").troubles.into_iter();
            troubles
                .map(|told| told.text)
                .find(|text| text.contains(trouble))
        });
        robot.fault(&["clear"]);
        wait_for("no trouble", || {
            let troubles = mediator.describe("board:0").troubles;
            troubles.is_empty().then_some(())
        });
    }
    // It had no power.
    wait_for_value(&robot, 5, 0);
    let board = client.board(0);
    board.set_pwm("motor", 100.0).unwrap();
    wait_for_value(&robot, 5, 255);
    client.close();
}

#[test]
fn the_driver_follows_the_protocol_with_and_without_its_board() {
    let robot = robot();
    let places = [&*robot.socket(), "/nowhere/port"];
    with_and_without("board", 0, places, |check, port| {
        check.args(["firmata", "--port", port]);
        check.args(["--pin", "led=13:output", "--pin", "motor=5:pwm"]);
    });
}

/// Nothing is set: the driver has no pins.
#[test]
fn amber_init_recognizes_it() {
    let robot = robot();
    let root = robot.folder.path().join("root");
    fs::create_dir_all(root.join("dev")).unwrap();
    let mut init = Command::new(AMBER);
    init.arg("init").arg(robot.folder.path().join("home"));
    init.args(["--yes", "--root"]).arg(&root);
    init.args(["--at", &format!("firmata={}", robot.socket())]);
    let output = init.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for line in [
        "board:0       Arduino with Firmata: Firmata 2.5, StandardFirmata.ino 2.5",
        "works         board:0: StandardFirmata.ino 2.5, 20 pins",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let written = fs::read_to_string(robot.folder.path().join("home/amber.toml")).unwrap();
    assert!(written.contains("\"firmata\", \"--port\""), "{written}");
}
