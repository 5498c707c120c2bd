//! An arm that follows another one: the real drivers of both arms, of their servos and of the
//! teleoperation, at simulated servos that a person turns by hand.

use std::fs;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use amber_client::blocking::Client;
use amber_proto::teleop::TeleopOutcome;
use amber_proto::teleop::teleop_outcome::End;
use amber_proto::teleop::teleop_state::Activity;
use amber_sim::control::{self, Answer, BusServo, Request};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::arm::calibration;
use crate::common::{Mediator, root, signal, wait_for};
use crate::kit::with_and_without;
use crate::motion_sensors::Robot;

/// Where a simulated servo begins, and where a person turns it, in steps.
const MIDDLE: f64 = 2048.0;
const TURNED: f64 = 2600.0;
/// An arm that is told to be at a place is so near to it, in steps.
const NEAR: f64 = 6.0;
/// A follower that is not told anything holds its place long before this.
const LONG: Duration = Duration::from_secs(1);

struct Arms {
    leader: Robot,
    follower: Robot,
    mediator: Mediator,
    _folder: TempDir,
}

impl Arms {
    /// With the configuration of docs/arms.md. A busy machine answers late.
    fn start() -> Self {
        let page = fs::read_to_string(root().join("docs/arms.md")).unwrap();
        let blocks = page.split("```toml\n").map(|it| it.split("```").next());
        let block = blocks.flatten().find(|it| it.contains("teleop:0")).unwrap();
        let (leader, follower) = (so101(), so101());
        let mut text = block.replace("\"20\"", "\"20\", \"--reply-timeout-ms\", \"500\"");
        for (name, robot) in [("leader", &leader), ("follower", &follower)] {
            text = text
                .replace(&format!("{name}/feetech"), &robot.socket())
                .replace(&format!("{name}.json"), &calibration(robot));
        }
        let (mediator, folder) = Mediator::configured(&text);
        let arms = Self {
            leader,
            follower,
            mediator,
            _folder: folder,
        };
        let client = arms.client();
        let is_idle = || {
            let state = client.teleop(0).state().ok()?;
            (state.activity() == Activity::Idle).then_some(())
        };
        wait_for("both arms", is_idle);
        client.close();
        arms
    }

    fn client(&self) -> Client {
        Client::connect(self.mediator.address).unwrap()
    }

    /// The follower is switched on, and follows.
    fn follow(&self) -> JoinHandle<amber_client::Result<TeleopOutcome>> {
        let client = self.client();
        client.arm(0).set_torque(true, None).unwrap();
        let following = thread::spawn(move || {
            let outcome = client.teleop(0).follow(None);
            client.close();
            outcome
        });
        let client = self.client();
        wait_for("a follower that follows", || {
            let state = client.teleop(0).state().unwrap();
            (state.activity() == Activity::Following).then_some(())
        });
        client.close();
        following
    }

    #[track_caller]
    fn wait_for_place(&self, what: &str, robot: &Robot, steps: f64) {
        wait_for(what, || {
            ((servo(robot, 3).steps - steps).abs() < NEAR).then_some(())
        });
    }
}

fn so101() -> Robot {
    Robot::with_device("feetech", "so101")
}

fn ask(robot: &Robot, request: &Request) -> Answer {
    control::ask(&robot.folder.path().join("sim"), request).unwrap()
}

/// A person turns the elbow.
fn turn(robot: &Robot, steps: f64) {
    assert_eq!(ask(robot, &Request::Turn { servo: 3, steps }), Answer::Done);
}

fn servo(robot: &Robot, id: u8) -> BusServo {
    let Answer::State(state) = ask(robot, &Request::State) else {
        panic!("no state");
    };
    let mut servos = state.bus_servos.into_iter();
    servos.find(|servo| servo.id == id).unwrap()
}

#[test]
fn an_arm_follows_one_that_a_person_moves() {
    let arms = Arms::start();
    let client = arms.client();
    let refused = client.teleop(0).follow(None).unwrap_err().to_string();
    assert!(refused.contains("of arm:0 is off"), "{refused}");

    let following = arms.follow();
    for steps in [TURNED, MIDDLE, TURNED] {
        turn(&arms.leader, steps);
        arms.wait_for_place("the leader", &arms.leader, steps);
        arms.wait_for_place("the follower", &arms.follower, steps);
    }
    let state = client.teleop(0).state().unwrap();
    assert_eq!(state.joints.len(), 6);
    assert!(state.rate() > 0, "{state:?}");
    let mut asked = arms.mediator.amber(&["call", "teleop", "state"]);
    let said = String::from_utf8(asked.output().unwrap().stdout).unwrap();
    assert!(
        said.contains("FOLLOWING") && said.contains("elbow_flex"),
        "{said}"
    );
    client.teleop(0).stop().unwrap();
    let outcome = following.join().unwrap().unwrap();
    assert_eq!(outcome.end(), End::Stopped, "{outcome:?}");
    turn(&arms.leader, MIDDLE);
    arms.wait_for_place("the leader", &arms.leader, MIDDLE);
    assert!((servo(&arms.follower, 3).steps - TURNED).abs() < NEAR);
    client.close();
}

#[test]
fn a_leader_that_gets_power_ends_it() {
    let arms = Arms::start();
    let following = arms.follow();
    let client = arms.client();
    client.arm(1).set_torque(true, None).unwrap();
    let outcome = following.join().unwrap().unwrap();
    assert_eq!(outcome.end(), End::Failed, "{outcome:?}");
    assert!(
        outcome.reason().contains("of arm:1 is on"),
        "{:?}",
        outcome.reason
    );
    client.close();
}

#[test]
fn a_follower_holds_its_place_when_the_driver_or_the_leader_is_gone() {
    for gone in ["teleop:0", "arm:1"] {
        let arms = Arms::start();
        let following = arms.follow();
        turn(&arms.leader, TURNED);
        arms.wait_for_place("the follower", &arms.follower, TURNED);
        // Frozen: it is not started again.
        signal(arms.mediator.describe(gone).pid(), Signal::SIGSTOP);
        thread::sleep(LONG);
        turn(&arms.leader, MIDDLE);
        arms.wait_for_place("the leader", &arms.leader, MIDDLE);
        let held = servo(&arms.follower, 3);
        assert!((held.steps - TURNED).abs() < NEAR, "{gone}: {held:?}");
        assert!(held.torque, "it does not fall");
        if gone == "arm:1" {
            let outcome = following.join().unwrap().unwrap();
            assert_eq!(outcome.end(), End::Failed, "{outcome:?}");
        }
    }
}

#[test]
fn the_driver_follows_the_protocol_without_arms() {
    with_and_without("teleop", 0, ["arm:1", "arm:2"], |check, leader| {
        check.args(["teleop", "--leader", leader]);
    });
}
