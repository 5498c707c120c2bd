//! Servos on a bus: the real drivers and simulated servos of Feetech and Dynamixel. What moves stops when
//! the driver is killed, although those of Feetech have no watchdog.

use std::fs;
use std::process::Command;

use amber_client::blocking::{BusServos, Client};
use amber_proto::bus_servos::ServoState;
use amber_sim::control::{self, Answer, BusServo, Request, SimulationState};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::common::{Mediator, root, signal, wait_for};
use crate::kit::with_and_without;
use crate::motion_sensors::Robot;
use crate::python_package::{SOURCE, can_run};

/// The watchdogs of Dynamixel stop them after four times the longest time between two requests.
const WATCHDOG_S: f64 = 2.3;
/// What moves stops this long after the driver was killed, and after the last sign of life of one that
/// hangs ...
const GUARD_S: [(Signal, f64); 2] = [(Signal::SIGKILL, 0.2), (Signal::SIGSTOP, 1.2)];
/// ... and a margin for a busy machine.
const MARGIN_S: f64 = 1.0;

/// An arm on a base with three wheels.
fn robot() -> Robot {
    Robot::with_device("feetech", "lekiwi")
}

/// A mediator with the driver of that robot.
fn mediator(robot: &Robot) -> (Mediator, TempDir) {
    mediator_with(robot, ["feetech", "lekiwi"], "INFO ready: 9 servos")
}

/// A mediator with a driver and its preset, which is not started again. A busy machine answers late.
fn mediator_with(robot: &Robot, driver: [&str; 2], ready: &str) -> (Mediator, TempDir) {
    let ([driver, preset], port) = (driver, robot.socket());
    let (mediator, folder) = Mediator::configured(&format!(
        "[[driver]]\ndevice = 'bus-servos:0'\nrestart = 'never'\ngrace_ms = 100\n\
         command = ['amber', 'driver', '{driver}', '--port', '{port}', '--preset', '{preset}', \
         '--reply-timeout-ms', '500', '--max-speed-deg-s', '30', '--idle-stop-ms', '0']\n"
    ));
    mediator.wait_for_line(ready);
    (mediator, folder)
}

fn state(robot: &Robot) -> SimulationState {
    match control::ask(&robot.folder.path().join("sim"), &Request::State) {
        Ok(Answer::State(state)) => *state,
        other => panic!("{other:?}"),
    }
}

/// A servo as it really is.
fn servo(robot: &Robot, id: u8) -> BusServo {
    let mut servos = state(robot).bus_servos.into_iter();
    servos.find(|servo| servo.id == id).unwrap()
}

/// A servo as the driver says.
fn said(servos: &BusServos, id: u32) -> ServoState {
    let mut all = servos.servos().unwrap().servos.into_iter();
    all.find(|servo| servo.id == Some(id)).unwrap()
}

/// A joint turns slowly, and a wheel fast, as long as the client exists.
fn set(robot: &Robot, mediator: &Mediator) -> Client {
    let client = Client::connect(mediator.address).unwrap();
    let servos = client.bus_servos(0);
    servos.move_to(&[(3, 350.0)], Some(10.0)).unwrap();
    servos.turn(&[(7, 90.0), (8, -90.0)]).unwrap();
    for id in [3, 7, 8] {
        wait_for("a servo that turns", || {
            (servo(robot, id).steps_per_s != 0.0).then_some(())
        });
    }
    client
}

/// Nothing turns, and the arm does not fall. Returns the time of the simulation then.
#[track_caller]
fn wait_for_rest(robot: &Robot) -> f64 {
    let at_s = wait_for("the end of all motion", || {
        let state = state(robot);
        let rests = |servo: &BusServo| servo.steps_per_s == 0.0;
        state.bus_servos.iter().all(rests).then_some(state.time_s)
    });
    assert!(servo(robot, 3).torque);
    assert!(
        servo(robot, 3).steps < 3_900.0,
        "it has not come to its target"
    );
    at_s
}

#[test]
fn servos_measure_turn_and_refuse_what_they_cannot_do() {
    let robot = robot();
    let (mediator, _folder) = mediator(&robot);
    let client = Client::connect(mediator.address).unwrap();
    let servos = client.bus_servos(0);
    let joint = said(&servos, 1);
    assert_eq!((joint.model(), joint.torque), ("STS3215", Some(false)));
    assert_eq!((joint.voltage, joint.temperature), (Some(7.4), Some(31)));
    let before = servos.servos().unwrap();
    assert!(before.time.is_some());
    servos
        .move_to(&[(1, 185.0), (2, 175.0)], Some(10.0))
        .unwrap();
    wait_for("the targets", || {
        let is_at = |id, deg: f64| (servo(&robot, id).steps - deg * 4096.0 / 360.0).abs() < 1.0;
        (is_at(1, 185.0) && is_at(2, 175.0)).then_some(())
    });
    assert_eq!(said(&servos, 1).target.map(f64::round), Some(185.0));
    for (refused, why) in [
        (
            servos.move_to(&[(1, 185.0), (2, 400.0)], None),
            "servo 2 turns from 0.0 to 359.9 degrees, not to 400",
        ),
        (servos.move_to(&[(7, 185.0)], None), "servo 7 is a wheel"),
        (servos.turn(&[(1, 10.0)]), "servo 1 is a joint"),
        (servos.turn(&[(12, 10.0)]), "servo 12 is not configured"),
    ] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    servos.set_torque(false, &[]).unwrap();
    wait_for("the torque", || (!servo(&robot, 1).torque).then_some(()));
    let writes = state(&robot).bus_servos.into_iter();
    assert_eq!(writes.map(|servo| servo.memory_writes).sum::<u32>(), 0);
    client.close();
}

#[test]
fn what_moves_stops_when_the_driver_is_killed_or_frozen() {
    for (how, guard_s) in GUARD_S {
        let robot = robot();
        let (mediator, _folder) = mediator(&robot);
        let client = set(&robot, &mediator);
        let pid = mediator.describe("bus-servos:0").pid();
        let begin_s = state(&robot).time_s;
        signal(pid, how);
        let took_s = wait_for_rest(&robot) - begin_s;
        assert!(took_s < guard_s + MARGIN_S, "{how}: {took_s} s");
        if how == Signal::SIGSTOP {
            signal(pid, Signal::SIGCONT);
            mediator.wait_for_line("its guard has stopped what moved");
            let servos = client.bus_servos(0);
            servos.turn(&[(7, 90.0)]).unwrap();
            wait_for("a wheel that turns again", || {
                (servo(&robot, 7).steps_per_s > 0.0).then_some(())
            });
            assert_eq!(servo(&robot, 8).steps_per_s, 0.0);
            servos.stop().unwrap();
            wait_for_rest(&robot);
        }
        client.close();
    }
}

#[test]
fn what_moves_stops_without_its_client() {
    let robot = robot();
    let (mediator, _folder) = mediator(&robot);
    set(&robot, &mediator).close();
    wait_for_rest(&robot);
}

#[test]
fn a_halt_stops_what_moves_and_refuses_more() {
    let robot = robot();
    let (mediator, _folder) = mediator(&robot);
    let client = set(&robot, &mediator);
    let halted = mediator.amber(&["halt", "bus-servos"]).output().unwrap();
    assert!(halted.status.success(), "{halted:?}");
    wait_for_rest(&robot);
    let servos = client.bus_servos(0);
    let refused = servos.move_to(&[(3, 350.0)], None).unwrap_err().to_string();
    assert!(refused.contains("halted"), "{refused}");
    let released = mediator
        .amber(&["halt", "bus-servos", "--release"])
        .output();
    assert!(released.unwrap().status.success());
    servos.turn(&[(7, 90.0)]).unwrap();
    wait_for("a wheel that turns", || {
        (servo(&robot, 7).steps_per_s > 0.0).then_some(())
    });
    client.close();
}

#[test]
fn an_outage_is_reported_and_nothing_moves_after_it() {
    let robot = robot();
    let (mediator, _folder) = mediator(&robot);
    let client = Client::connect(mediator.address).unwrap();
    let servos = client.bus_servos(0);
    servos.move_to(&[(3, 182.0)], None).unwrap();
    wait_for("the target", || {
        (servo(&robot, 3).steps > 2_070.0).then_some(())
    });
    wait_for_rest(&robot);
    let before = servo(&robot, 3).steps;
    for (fault, trouble) in [
        ("stall", "no servo answers at 1000000 baud"),
        ("unplug", "does not exist"),
    ] {
        robot.fault(&[fault, "feetech"]);
        wait_for("its trouble", || {
            let troubles = mediator.describe("bus-servos:0").troubles.into_iter();
            troubles
                .map(|told| told.text)
                .find(|text| text.contains(trouble))
        });
        let refused = servos.servos().unwrap_err().to_string();
        assert!(refused.contains(trouble), "{refused}");
        robot.fault(&["clear"]);
        wait_for("no trouble", || {
            let troubles = mediator.describe("bus-servos:0").troubles;
            troubles.is_empty().then_some(())
        });
    }
    assert!((servo(&robot, 3).steps - before).abs() < 5.0);
    assert_eq!(said(&servos, 3).torque, Some(true));
    client.close();
}

/// Their guard does it, or their watchdogs.
#[test]
fn servos_of_dynamixel_stop_when_the_driver_is_killed_or_the_cable_is_out() {
    for is_killed in [true, false] {
        let robot = Robot::with_device("dynamixel", "koch");
        let (mediator, _folder) =
            mediator_with(&robot, ["dynamixel", "koch"], "INFO ready: 6 servos");
        let client = Client::connect(mediator.address).unwrap();
        let servos = client.bus_servos(0);
        let joint = said(&servos, 3);
        assert_eq!((joint.model(), joint.torque), ("XL330-M288", Some(false)));
        assert_eq!((joint.voltage, joint.temperature), (Some(5.0), Some(31)));
        let refused = servos.move_to(&[(3, 400.0)], None).unwrap_err().to_string();
        assert!(refused.contains("from 0.0 to 359.9 degrees"), "{refused}");
        servos.move_to(&[(3, 350.0)], Some(10.0)).unwrap();
        wait_for("a servo that turns", || {
            (servo(&robot, 3).steps_per_s != 0.0).then_some(())
        });
        let limit_s = match is_killed {
            true => {
                signal(mediator.describe("bus-servos:0").pid(), Signal::SIGKILL);
                GUARD_S[0].1
            }
            false => {
                robot.fault(&["unplug", "dynamixel"]);
                WATCHDOG_S
            }
        };
        let begin_s = state(&robot).time_s;
        let took_s = wait_for_rest(&robot) - begin_s;
        assert!(took_s < limit_s + MARGIN_S, "{is_killed}: {took_s} s");
        if !is_killed {
            let before = servo(&robot, 3).steps;
            robot.fault(&["clear"]);
            let back = wait_for("the servo", || {
                let all = servos.servos().ok()?.servos.into_iter();
                let mut others = all.filter(|servo| servo.id == Some(3));
                others.find(|servo| servo.torque == Some(true))
            });
            assert_eq!((back.target, &back.problem), (None, &None));
            assert!((servo(&robot, 3).steps - before).abs() < 5.0);
            servos.move_to(&[(3, 180.0)], None).unwrap();
            wait_for("the target", || {
                ((servo(&robot, 3).steps - 2_048.0).abs() < 1.0).then_some(())
            });
        }
        let servos = state(&robot).bus_servos.into_iter();
        assert_eq!(servos.map(|servo| servo.memory_writes).sum::<u32>(), 0);
        client.close();
    }
}

#[test]
fn the_program_in_the_documents_moves_an_arm() {
    if !can_run("the program for an arm", "google.protobuf") {
        return;
    }
    let page = fs::read_to_string(root().join("docs/hardware.md")).unwrap();
    let (_, rest) = page.split_once("```python\n").unwrap();
    let (program, _) = rest.split_once("```").unwrap();
    let robot = robot();
    let (mediator, _folder) = mediator(&robot);
    let program = program.replace("127.0.0.1", &mediator.address.to_string());
    let output = Command::new("python3")
        .args(["-c", &program])
        .env("PYTHONPATH", root().join(SOURCE))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // On a busy machine, three seconds may not be enough for the whole way.
    let moved = servo(&robot, 1).steps - 2_048.0;
    assert!((20.0..240.0).contains(&moved), "{moved}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("STS3215"), "{said}");
}

#[test]
fn the_driver_follows_the_protocol_with_and_without_its_servos() {
    for (driver, preset) in [("feetech", "lekiwi"), ("dynamixel", "koch")] {
        let robot = Robot::with_device(driver, preset);
        let places = [&*robot.socket(), "/nowhere/port"];
        with_and_without("bus-servos", 0, places, |check, port| {
            check.args([driver, "--port", port, "--preset", preset]);
            check.args(["--reply-timeout-ms", "500"]);
        });
    }
}
