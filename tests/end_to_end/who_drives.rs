//! Lease, halt and expiry in the demo: real programs, drivers and signals. `scripts/safety` measures
//! more of them.

use std::process::{Command, Output};

use nix::sys::signal::Signal;

use crate::common::{signal, wait_for};
use crate::driving::{FAR, NEAR, going, robot};
use crate::robot::{Robot, stands};

/// The time until the wheels have their stop, and the braking ramp, with a margin for a busy machine;
/// less than the idle stop of the wheels.
const SOON_S: f64 = 2.5;

fn output(mut command: Command) -> Output {
    command.output().unwrap()
}

fn error_of(command: Command) -> String {
    let output = output(command);
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn wheels_stop_soon_when_the_client_or_the_mediator_freezes() {
    for frozen in ["client", "mediator"] {
        let robot = Robot::start();
        let mut driver = robot.turning();
        let pid = match frozen {
            "client" => driver.id(),
            _ => robot.demo.pid(),
        };
        signal(pid, Signal::SIGSTOP);
        let begin = robot.state();
        let stood = robot.until("it stands", stands);
        let took_s = stood.time_s - begin.time_s;
        signal(pid, Signal::SIGCONT);
        assert!(took_s < SOON_S, "{frozen}: {took_s} s");
        driver.kill().unwrap();
        driver.wait().unwrap();
    }
}

#[test]
fn one_goto_at_a_time_drives_and_the_other_is_told_who_does() {
    let robot = robot();
    let mut first = going(&robot, &FAR);
    let error = error_of(robot.demo.amber(&NEAR));
    let who = "amber goto holds the lease of this device";
    assert!(error.contains(who), "{error}");
    // One lease covers the chain: the wheels refuse others, too.
    wait_for("the lease of the wheels", || {
        let motions = robot.demo.describe("roboclaw:0").motions;
        motions
            .first()?
            .holder
            .clone()
            .filter(|it| it.contains("amber goto via"))
    });
    let turn = ["drive", "--left", "200", "--right", "-200", "--for", "1s"];
    let error = error_of(robot.demo.amber(&turn));
    assert!(error.contains("amber goto via drive-to-point:0"), "{error}");

    signal(first.id(), Signal::SIGSTOP);
    let begin = robot.state();
    let stood = robot.until("it stands", stands);
    assert!(stood.time_s - begin.time_s < SOON_S);
    // It may also have stood for a moment because of late data.
    wait_for("the end of the lease", || {
        let motions = robot.demo.describe("drive-to-point:0").motions;
        let is_free = motions.iter().all(|it| it.holder.is_none());
        is_free.then_some(())
    });
    let output = robot.demo.amber(&NEAR).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn goto_takes_over_by_force() {
    let robot = robot();
    let mut first = going(&robot, &FAR);
    let [goto, x, y] = NEAR;
    assert!(robot.amber(&[goto, x, y, "--force"]));
    assert_eq!(first.wait().unwrap().code(), Some(1));
}

#[test]
fn a_halt_stops_the_robot_until_its_release_and_survives_a_restart() {
    let robot = Robot::start();
    let mut driver = robot.turning();
    assert!(robot.amber(&["halt"]));
    let begin = robot.state();
    let stood = robot.until("it stands", stands);
    assert!(stood.time_s - begin.time_s < SOON_S);
    driver.kill().unwrap();
    driver.wait().unwrap();

    assert!(robot.amber(&["restart", "roboclaw"]));
    wait_for("the driver is up again", || {
        let up = robot.demo.describe("roboclaw:0").state();
        (up == amber_proto::mediator::DriverState::Up).then_some(())
    });
    let shown = output(robot.demo.amber(&["status", "roboclaw"])).stdout;
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("halted by amber halt"), "{shown}");
    let turn = ["drive", "--left", "200", "--right", "-200", "--for", "1s"];
    let error = error_of(robot.demo.amber(&turn));
    assert!(error.contains("halted by amber halt"), "{error}");
    assert!(stands(&robot.state()));

    assert!(robot.amber(&["halt", "--release"]));
    assert!(robot.amber(&turn));
}

#[test]
fn doctor_measures_how_soon_the_wheels_stop_after_asking_whether_they_may_turn() {
    let robot = Robot::start();
    let error = error_of(robot.demo.amber(&["doctor", "--safety"]));
    assert!(error.contains("wheels must be off the ground"), "{error}");
    assert!(error.contains("--yes"), "{error}");
    assert!(stands(&robot.state()));

    // A busy machine may be too slow for the goal, which is not the subject here.
    let shown = output(robot.demo.amber(&["doctor", "--safety", "--yes", "--json"])).stdout;
    let report: serde_json::Value = serde_json::from_slice(&shown).unwrap();
    let checks = report["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 4, "{report}");
    for check in checks {
        let found = check["found"].as_str().unwrap();
        assert!(found.contains("the wheels stand after"), "{report}");
    }
    // Below 10 mm/s counts as standing; simulated time, in which the wheels get slower, may be slow.
    robot.until("the wheels stand", stands);
}
