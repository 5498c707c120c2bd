//! Drivers that use other devices: the examples follow a wall with the demo's laser and wheels, and
//! stop whenever a device or client is missing.

use std::process::{Child, Stdio};

use nix::sys::signal::Signal;

use crate::common::{Mediator, demo_with, rust_examples, signal, wait_for};
use crate::languages::has;
use crate::robot::{AT_ONCE_S, Robot, drives, stands};

/// The device of the example driver.
const DEVICE: &str = "202:0";

#[test]
fn the_example_in_rust() {
    follows_a_wall(rust_examples().join("follow_wall").to_str().unwrap());
}

#[test]
fn the_example_in_python() {
    if has("follow a wall in Python", "python3 -c import\tgrpc_tools") {
        follows_a_wall("python3 drivers/examples/python/follow_wall.py");
    }
}

fn follows_a_wall(command: &str) {
    let robot = Robot::of(demo_with(&format!("{DEVICE}={command}")));
    robot.demo.wait_for_line(&format!("up driver={DEVICE}"));
    // On a busy machine, Python starts for longer than a client waits for an answer.
    let proto = crate::common::root().join("drivers/examples/follow_wall.proto");
    let mut call = robot
        .demo
        .amber(&["call", DEVICE, "status", "--timeout", "60", "--proto"]);
    let output = call.arg(&proto).output().unwrap();
    assert!(output.status.success(), "{output:?}");

    // The robot starts in the middle of a corridor, and then follows its wall.
    let mut follower = Follower::start(&robot.demo);
    let begin = robot.state();
    let way = robot.until("a way along the wall", |state| {
        state.travelled_m > begin.travelled_m + 1.5
    });
    assert_eq!(way.contacts, 0);
    let walls = follower.walls();
    let near = walls.iter().filter(|wall_mm| (500..700).contains(*wall_mm));
    assert!(near.count() > walls.len() / 2, "{walls:?}");

    // The client that started the robot leaves, in different ways.
    signal(follower.child.id(), Signal::SIGINT);
    stands_soon(&robot, "the client has said stop");
    assert!(follower.child.wait().unwrap().success());
    let mut follower = Follower::start(&robot.demo);
    robot.until("it drives", drives);
    signal(follower.child.id(), Signal::SIGKILL);
    follower.child.wait().unwrap();
    robot.until("it stands without its client", stands);
    // Like `amber call`: it sends a request and leaves.
    let mut call = robot
        .demo
        .amber(&["call", DEVICE, "follow=true", "--proto"]);
    let output = call.arg(&proto).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("following: true"), "{said}");
    wait_for("the driver to have no followers", || {
        let words = ["call", DEVICE, "status", "--json", "--proto"];
        let mut call = robot.demo.amber(&words);
        let output = call.arg(&proto).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        said.contains("\"following\":false").then_some(())
    });

    // Without scans the robot stops, reports the reason, and resumes when scans return.
    let follower = Follower::start(&robot.demo);
    robot.until("it drives", drives);
    assert!(robot.amber(&["stop", "hokuyo:0"]));
    robot.until("it stands without eyes", stands);
    let status = || robot.demo.describe(DEVICE);
    let trouble = wait_for("its trouble", || status().troubles.first().cloned());
    assert_eq!(trouble.text, "no scans from hokuyo:0");
    assert!(robot.amber(&["start", "hokuyo:0"]));
    robot.until("it drives and sees", drives);
    wait_for("its recovery", || {
        status().troubles.is_empty().then_some(())
    });

    // The driver itself ends.
    assert!(robot.amber(&["stop", DEVICE]));
    stands_soon(&robot, "the driver has ended");
    assert_eq!(robot.state().contacts, 0);
    drop(follower);
}

#[track_caller]
fn stands_soon(robot: &Robot, why: &str) {
    let told = robot.state();
    let took_s = robot.until(why, stands).time_s - told.time_s;
    assert!(took_s < AT_ONCE_S, "{why}: {took_s} s");
}

/// The example client, which makes the robot go while it runs.
struct Follower {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Follower {
    fn start(mediator: &Mediator) -> Self {
        let mut command = std::process::Command::new(rust_examples().join("follow_wall_client"));
        command.arg(mediator.address.to_string());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = crate::common::lines_of(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The distances shown so far, in mm.
    fn walls(&self) -> Vec<i32> {
        let number = |line: String| line.split(' ').nth(3)?.parse().ok();
        self.lines.try_iter().filter_map(number).collect()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
