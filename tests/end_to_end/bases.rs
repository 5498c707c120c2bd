//! A base on omni wheels: the real drivers of its servos and of the base, and a simulated LeKiwi, whose
//! world shows whether it moves as the driver says.

use std::f64::consts::PI;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use amber_client::blocking::{Base, Client};
use amber_client::lease::Terms;
use amber_client::values::WheelSpeeds;
use amber_proto::base::{BaseState, Odometry, Velocity};
use amber_sim::control::{self, Answer, Request, SimulationState};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::common::{Mediator, device, root, signal, wait_for};
use crate::kit::with_and_without;
use crate::motion_sensors::Robot;
use crate::python_package::{SOURCE, can_run};
use crate::robot::runtime;

/// The base stops this long after the last command, after the end of its driver, ...
const STOPS_S: f64 = 0.5;
/// ... and a margin for a busy machine.
const MARGIN_S: f64 = 1.0;
/// The side of the square.
const SIDE_MM: f64 = 400.0;

/// A room with enough space, in map coordinates.
const START: Request = Request::Place {
    x_m: 5.6,
    y_m: 4.7,
    heading_deg: 0.0,
};

fn lekiwi() -> Robot {
    let robot = Robot::with_device("feetech", "lekiwi");
    assert_eq!(ask(&robot, &START), Answer::Done);
    robot
}

/// A mediator with its drivers, which are not started again.
fn mediator(robot: &Robot) -> (Mediator, TempDir) {
    mediator_with(robot, &[])
}

/// The same with further drivers.
fn mediator_with(robot: &Robot, further: &[(&str, &str)]) -> (Mediator, TempDir) {
    let port = robot.socket();
    let servos = format!("feetech --port {port} --preset lekiwi --reply-timeout-ms 500");
    let own = [
        ("bus-servos:0", &*servos),
        ("base:0", "omni_base"),
        ("roboclaw:0", "base_wheels"),
    ];
    let drivers = own.iter().chain(further).map(|(device, driver)| {
        let command: Vec<_> = ["amber", "driver"]
            .into_iter()
            .chain(driver.split(' '))
            .collect();
        format!(
            "[[driver]]\ndevice = '{device}'\nrestart = 'never'\ngrace_ms = 100\n\
             command = {command:?}\n"
        )
    });
    let (mediator, folder) = Mediator::configured(&drivers.collect::<String>());
    mediator.wait_for_line("INFO ready: 9 servos");
    mediator.wait_for_line("INFO ready: three wheels");
    (mediator, folder)
}

fn ask(robot: &Robot, request: &Request) -> Answer {
    control::ask(&robot.folder.path().join("sim"), request).unwrap()
}

fn world(robot: &Robot) -> SimulationState {
    match ask(robot, &Request::State) {
        Answer::State(state) => *state,
        other => panic!("{other:?}"),
    }
}

/// How fast the wheels turn, in steps per second.
fn turns(robot: &Robot) -> [f64; 3] {
    let servos = world(robot).bus_servos;
    [7, 8, 9].map(|id| {
        servos
            .iter()
            .find(|servo| servo.id == id)
            .unwrap()
            .steps_per_s
    })
}

fn is_turning(robot: &Robot) -> bool {
    turns(robot).iter().any(|speed| *speed != 0.0)
}

fn velocity(forward: f64, left: f64, turn: f64) -> Velocity {
    Velocity {
        forward: Some(forward),
        left: Some(left),
        turn: Some(turn),
    }
}

fn odometry(state: &BaseState) -> Odometry {
    state.odometry.unwrap()
}

/// Repeats a command until the base is where it should be. On a busy machine, the base may be silent for
/// a moment, and refuses commands then.
fn drive_until(base: &Base, wanted: Velocity, is_there: impl Fn(&BaseState) -> bool) {
    let mut commanded = None::<Instant>;
    wait_for("the way", || {
        if commanded.is_none_or(|at| at.elapsed() > Duration::from_millis(50)) {
            let _ = base.drive(wanted);
            commanded = Some(Instant::now());
        }
        base.state().ok().filter(&is_there)
    });
}

/// The base stands, and has measured it.
fn stand(robot: &Robot, base: &Base) -> BaseState {
    base.drive(Velocity::default()).unwrap();
    wait_for("the end of all motion", || {
        (!is_turning(robot)).then_some(())
    });
    let before = base.state().ok().and_then(|state| state.time);
    wait_for("a measurement", || {
        base.state().ok().filter(|state| state.time > before)
    })
}

/// Waits until nothing turns. Returns the time of the simulation since `begin_s`.
#[track_caller]
fn stopped_after_s(robot: &Robot, begin_s: f64) -> f64 {
    let at_s = wait_for("the end of all motion", || {
        let state = world(robot);
        let rests = state
            .bus_servos
            .iter()
            .all(|servo| servo.steps_per_s == 0.0);
        rests.then_some(state.time_s)
    });
    at_s - begin_s
}

fn begin_to_drive(robot: &Robot, base: &Base, wanted: Velocity) {
    wait_for("wheels that turn", || {
        let _ = base.drive(wanted);
        is_turning(robot).then_some(())
    });
}

#[test]
fn a_square_is_driven_sideways_as_the_driver_says() {
    let robot = lekiwi();
    let (mediator, _folder) = mediator(&robot);
    let client = Client::connect(mediator.address).unwrap();
    let base = client.base(0);
    let begin = world(&robot);
    let state = wait_for("a measurement", || base.state().ok());
    assert_eq!(state.measured, Some(velocity(0.0, 0.0, 0.0)));
    let limits = state.limits.unwrap();
    assert!((limits.forward().round(), limits.left().round()) == (262.0, 227.0));

    // To the left, ahead, to the right, backwards, without a turn.
    drive_until(&base, velocity(0.0, 150.0, 0.0), |state| {
        odometry(state).y() >= SIDE_MM
    });
    drive_until(&base, velocity(150.0, 0.0, 0.0), |state| {
        odometry(state).x() >= SIDE_MM
    });
    let corner = stand(&robot, &base);
    let there = world(&robot);
    drive_until(&base, velocity(0.0, -150.0, 0.0), |state| {
        odometry(state).y() <= 0.0
    });
    drive_until(&base, velocity(-150.0, 0.0, 0.0), |state| {
        odometry(state).x() <= 0.0
    });
    let end = stand(&robot, &base);
    // The map has y down.
    for (state, world) in [(corner, there), (end, world(&robot))] {
        let said = odometry(&state);
        let x_mm = (world.x_m - begin.x_m) * 1_000.0;
        let y_mm = (begin.y_m - world.y_m) * 1_000.0;
        let error_mm = (said.x() - x_mm).hypot(said.y() - y_mm);
        // 2 % of the way.
        assert!(error_mm < 0.02 * 4.0 * SIDE_MM, "{said:?}: {x_mm} {y_mm}");
        assert!(said.heading().abs() < 1.0, "{said:?}");
        assert!(world.heading_deg.abs() < 1.0, "{world:?}");
        assert_eq!(world.contacts, 0);
    }
    let way_m = world(&robot).travelled_m - begin.travelled_m;
    assert!(way_m > 3.8 * SIDE_MM / 1_000.0, "{way_m}");

    // Around itself, more than a turn of its wheels.
    drive_until(&base, velocity(0.0, 0.0, 80.0), |state| {
        odometry(state).heading() >= 170.0
    });
    let said = odometry(&stand(&robot, &base));
    // The map has angles clockwise.
    let error_deg = (said.heading() + world(&robot).heading_deg).rem_euclid(360.0);
    assert!(!(3.0..357.0).contains(&error_deg), "{said:?}");
    client.close();
}

#[test]
fn the_base_stops_without_commands_without_its_client_and_without_its_driver() {
    let robot = lekiwi();
    let (mediator, _folder) = mediator(&robot);
    let wanted = velocity(0.0, 0.0, 40.0);
    // Nobody repeats the command.
    let client = Client::connect(mediator.address).unwrap();
    begin_to_drive(&robot, &client.base(0), wanted);
    let took_s = stopped_after_s(&robot, world(&robot).time_s);
    assert!(took_s < STOPS_S + MARGIN_S, "{took_s}");
    // The client leaves.
    begin_to_drive(&robot, &client.base(0), wanted);
    client.close();
    let took_s = stopped_after_s(&robot, world(&robot).time_s);
    assert!(took_s < STOPS_S + MARGIN_S, "{took_s}");
    let client = Client::connect(mediator.address).unwrap();
    for how in [Signal::SIGSTOP, Signal::SIGKILL] {
        begin_to_drive(&robot, &client.base(0), wanted);
        let pid = mediator.describe("base:0").pid();
        let begin_s = world(&robot).time_s;
        signal(pid, how);
        let took_s = stopped_after_s(&robot, begin_s);
        assert!(took_s < STOPS_S + MARGIN_S, "{how}: {took_s}");
        if how == Signal::SIGSTOP {
            signal(pid, Signal::SIGCONT);
        }
    }
    client.close();
}

#[test]
fn the_base_stops_when_the_program_that_drives_is_killed() {
    if !can_run("a program that drives a base", "google.protobuf") {
        return;
    }
    let robot = lekiwi();
    let (mediator, _folder) = mediator(&robot);
    let address = mediator.address;
    let program = format!(
        "import time, amber\n\
         with amber.Client('{address}') as robot:\n    \
         while True:\n        \
         robot.base().drive(left_mm_s=20, turn_deg_s=40)\n        \
         time.sleep(0.1)\n"
    );
    let mut python = Command::new("python3");
    python.args(["-c", &program]);
    let mut driving = python
        .env("PYTHONPATH", root().join(SOURCE))
        .spawn()
        .unwrap();
    wait_for("wheels that turn", || is_turning(&robot).then_some(()));
    driving.kill().unwrap();
    driving.wait().unwrap();
    let took_s = stopped_after_s(&robot, world(&robot).time_s);
    assert!(took_s < STOPS_S + MARGIN_S, "{took_s}");
}

#[test]
fn the_program_in_the_documents_drives_sideways() {
    if !can_run("the program for a base", "google.protobuf") {
        return;
    }
    let page = fs::read_to_string(root().join("docs/hardware.md")).unwrap();
    let (_, section) = page.split_once("\n## LeKiwi").unwrap();
    let (_, rest) = section.split_once("```python\n").unwrap();
    let (program, _) = rest.split_once("```").unwrap();
    let robot = lekiwi();
    let (mediator, _folder) = mediator(&robot);
    let begin = world(&robot);
    let program = program.replace("127.0.0.1", &mediator.address.to_string());
    let output = Command::new("python3")
        .args(["-c", &program])
        .env("PYTHONPATH", root().join(SOURCE))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // About 200 mm. A busy machine is slower, the program or the simulation.
    let state = world(&robot);
    let left_m = begin.y_m - state.y_m;
    assert!((0.05..0.9).contains(&left_m), "{state:?}");
    assert!((state.x_m - begin.x_m).abs() < 0.02, "{state:?}");
}

#[test]
fn programs_that_know_only_wheels_drive_the_base() {
    let robot = lekiwi();
    let (mediator, _folder) = mediator(&robot);
    let client = Client::connect(mediator.address).unwrap();
    let wheels = client.roboclaw(0);
    let begin = world(&robot);
    // 100 mm/s ahead, and 0.48 rad/s to the left: they are 420 mm apart.
    let speeds = WheelSpeeds {
        front_left_mm_s: 0,
        front_right_mm_s: 200,
        rear_left_mm_s: 0,
        rear_right_mm_s: 200,
    };
    let moved = wait_for("a way", || {
        let _ = wheels.drive(speeds);
        let world = world(&robot);
        (world.travelled_m > begin.travelled_m + 0.1).then_some(world)
    });
    let near = |is: i32, wanted: i32| (is - wanted).abs() <= 5;
    wait_for("the measured speeds", || {
        let _ = wheels.drive(speeds);
        let found = wheels.speeds().ok()?;
        let sides = [found.front_left_mm_s, found.rear_right_mm_s];
        (near(sides[0], 0) && near(sides[1], 200)).then_some(())
    });
    // Clockwise is positive there.
    let turned_rad = -(moved.heading_deg - begin.heading_deg).to_radians();
    let expected = (moved.travelled_m - begin.travelled_m) / 0.21;
    assert!((turned_rad - expected).abs() < 0.1 * PI, "{turned_rad}");

    client.close();
    // A lease of the wheels is one of the base, in the same name.
    runtime().block_on(async {
        let ann = amber_client::Client::connect(mediator.address)
            .await
            .unwrap();
        let [wheels, base] = ["roboclaw:0", "base:0"].map(|name| ann.device(device(name)));
        let lease = Terms::new("Ann").take(&wheels).await.unwrap();
        let until = |expected: Option<&'static str>| {
            let base = base.clone();
            async move {
                let holder = async || base.motion_state().await.ok()?.holder?.name;
                while holder().await.as_deref() != expected {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        };
        let patience = Duration::from_secs(60);
        let found = tokio::time::timeout(patience, until(Some("Ann via roboclaw:0"))).await;
        found.expect("the base has no such holder");
        lease.release().await.unwrap();
        let found = tokio::time::timeout(patience, until(None)).await;
        found.expect("the base still has a holder");
    });
}

#[test]
fn drive_to_point_drives_a_base_as_any_wheels() {
    let robot = lekiwi();
    let scanner = robot.folder.path().join("sim/hokuyo");
    let map = root().join("drivers/map/maps/flat.roson");
    let map = map.display();
    let (mediator, _folder) = mediator_with(
        &robot,
        &[
            ("hokuyo:0", &format!("hokuyo --port {}", scanner.display())),
            (
                "location:0",
                &format!("location --laser-offset-mm 0 --map {map}"),
            ),
            (
                "drive-to-point:0",
                &format!("drive_to_point --laser-offset-mm 0 --map {map}"),
            ),
        ],
    );
    // It is refused until the pose is known.
    let there = wait_for("the arrival", || {
        let output = mediator.amber(&["goto", "5.0", "4.3"]).output().unwrap();
        output.status.success().then(|| world(&robot))
    });
    let left_m = (there.x_m - 5.0).hypot(there.y_m - 4.3);
    assert!(left_m < 0.4, "{there:?}");
    assert!(there.travelled_m > 0.1, "{there:?}");
    assert_eq!(there.contacts, 0);
}

#[test]
fn a_wheel_that_is_away_stops_the_base_and_a_halt_too() {
    let robot = lekiwi();
    let (mediator, _folder) = mediator(&robot);
    let client = Client::connect(mediator.address).unwrap();
    let base = client.base(0);
    robot.fault(&["stall", "feetech"]);
    let trouble = wait_for("its trouble", || {
        let troubles = mediator.describe("base:0").troubles.into_iter();
        troubles.map(|told| told.text).next()
    });
    assert!(trouble.contains("servo"), "{trouble}");
    // On a busy machine, the report of the driver may be late.
    let refused = wait_for("a refusal", || base.drive(velocity(0.0, 0.0, 40.0)).err());
    assert!(refused.to_string().contains("servo"), "{refused}");
    assert!(base.state().is_err());
    robot.fault(&["clear"]);
    wait_for("no trouble", || {
        let troubles = mediator.describe("base:0").troubles;
        troubles.is_empty().then_some(())
    });
    assert!(!is_turning(&robot), "it does not go on by itself");
    begin_to_drive(&robot, &base, velocity(0.0, 0.0, 40.0));
    for device in ["base", "bus-servos"] {
        let halt = |more: &[&str]| {
            let output = mediator.amber(&[&["halt", device], more].concat()).output();
            assert!(output.unwrap().status.success());
        };
        halt(&[]);
        wait_for("a refusal", || {
            let refused = base.drive(velocity(0.0, 0.0, 40.0)).err()?;
            refused.to_string().contains("halted").then_some(())
        });
        wait_for("the end of all motion", || {
            (!is_turning(&robot)).then_some(())
        });
        halt(&["--release"]);
        begin_to_drive(&robot, &base, velocity(0.0, 0.0, 40.0));
    }
    client.close();
}

#[test]
fn the_driver_follows_the_protocol_without_its_servos() {
    with_and_without(
        "base",
        0,
        ["bus-servos:0", "bus-servos:1"],
        |check: &mut Command, servos| {
            check.args(["omni_base", "--servos", servos]);
        },
    );
}
