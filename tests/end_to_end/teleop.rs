//! An arm that follows another one: the real drivers of both arms, of their servos and of the
//! teleoperation, at simulated servos that a person turns by hand.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};

use amber_client::blocking::Client;
use amber_proto::teleop::TeleopOutcome;
use amber_proto::teleop::teleop_outcome::End;
use amber_proto::teleop::teleop_state::Activity;
use amber_sim::control::{self, Answer, BusServo, Request};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::arm::calibration;
use crate::common::{AMBER, Mediator, Running, root, signal, wait_for};
use crate::kit::with_and_without;
use crate::motion_sensors::Robot;

/// Where a simulated servo begins, and where a person turns it, in steps.
const MIDDLE: f64 = 2048.0;
const TURNED: f64 = 2600.0;
/// An arm that is told to be at a place is so near to it, in steps.
const NEAR: f64 = 6.0;

struct Arms {
    leader: Robot,
    follower: Robot,
    mediator: Mediator,
    /// That of the leader, if it is another one.
    _of_leader: Option<(Mediator, TempDir)>,
    _folder: TempDir,
}

impl Arms {
    /// Both at one mediator.
    fn start() -> Self {
        Self::with(false)
    }

    /// With the configuration of docs/arms.md, at one mediator or at two. A busy machine answers late.
    fn with(are_apart: bool) -> Self {
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
        let of_leader = are_apart.then(|| {
            let drivers = text.split_inclusive("\n\n");
            let (leads, follows): (Vec<_>, Vec<_>) = drivers.partition(|it| it.contains(":1\"\n"));
            let of_leader = Mediator::configured(&leads.concat());
            let option = format!("\"--leader-of\", \"{}\", \"--leader\"", of_leader.0.address);
            text = follows.concat().replace("\"--leader\"", &option);
            of_leader
        });
        let (mediator, folder) = Mediator::configured(&text);
        let arms = Self {
            leader,
            follower,
            mediator,
            _of_leader: of_leader,
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

    /// What a command of the page prints.
    #[track_caller]
    fn amber(&self, line: &str) -> String {
        let words: Vec<_> = line.split(' ').skip(1).collect();
        let output = self.mediator.amber(&words).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn client(&self) -> Client {
        Client::connect(self.mediator.address).unwrap()
    }

    /// The follower is switched on. The next measurement tells the driver so.
    fn switch_on(&self) {
        self.amber("amber call arm:0 set-torque true");
        let client = self.client();
        wait_for("a driver that knows it", || {
            let state = client.teleop(0).state().unwrap();
            state.problem.is_none().then_some(())
        });
        client.close();
    }

    /// The follower is switched on, and follows for this program.
    fn follow(&self) -> JoinHandle<amber_client::Result<TeleopOutcome>> {
        self.switch_on();
        let client = self.client();
        let following = thread::spawn(move || {
            let outcome = client.teleop(0).follow(None);
            client.close();
            outcome
        });
        self.wait_until_it_follows();
        following
    }

    fn wait_until_it_follows(&self) {
        let client = self.client();
        wait_for("a follower that follows", || {
            let state = client.teleop(0).state().unwrap();
            (state.activity() == Activity::Following).then_some(())
        });
        client.close();
    }

    /// A person moves the leader, and the follower stays where it was.
    #[track_caller]
    fn expect_no_follower(&self, what: &str) {
        turn(&self.leader, MIDDLE);
        self.wait_for_place("the leader", &self.leader, MIDDLE);
        let held = servo(&self.follower, 3);
        assert!((held.steps - TURNED).abs() < NEAR, "{what}: {held:?}");
        assert!(held.torque, "{what}: it does not fall");
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

/// The commands of docs/arms.md.
#[test]
fn an_arm_follows_one_that_a_person_moves() {
    let arms = Arms::start();
    let client = arms.client();
    let refused = client.teleop(0).follow(None).unwrap_err().to_string();
    assert!(refused.contains("of arm:0 is off"), "{refused}");

    arms.switch_on();
    let words = ["call", "teleop", "follow", "limit=600s"];
    let mut following = arms.mediator.amber(&words);
    let following = following.stdout(Stdio::piped()).spawn().unwrap();
    arms.wait_until_it_follows();
    let folder = arms.leader.folder.path().join("sim");
    for steps in [TURNED, MIDDLE, TURNED] {
        let to = steps.to_string();
        let mut hand = Command::new(AMBER);
        hand.args(["sim", "--dir"]).arg(&folder);
        let output = hand.args(["turn", "3", &to]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        arms.wait_for_place("the leader", &arms.leader, steps);
        arms.wait_for_place("the follower", &arms.follower, steps);
    }
    let state = client.teleop(0).state().unwrap();
    assert_eq!(state.joints.len(), 6);
    assert!(state.rate() > 0, "{state:?}");
    let said = arms.amber("amber call teleop state");
    assert!(
        said.contains("FOLLOWING") && said.contains("elbow_flex"),
        "{said}"
    );
    let mut watched = Running::start(&arms.mediator, &["watch", "teleop"]);
    while !watched.line().contains("elbow_flex") {}
    arms.amber("amber call teleop stop");
    let output = following.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("STOPPED"), "{said}");
    arms.expect_no_follower("stopped");
    client.close();
}

#[test]
fn the_leader_may_be_an_arm_of_another_mediator() {
    let arms = Arms::with(true);
    let following = arms.follow();
    turn(&arms.leader, TURNED);
    arms.wait_for_place("the follower", &arms.follower, TURNED);
    arms.amber("amber call teleop stop");
    let outcome = following.join().unwrap().unwrap();
    assert_eq!(outcome.end(), End::Stopped, "{outcome:?}");
}

#[test]
fn what_the_arms_do_not_allow_ends_it_with_a_reason() {
    for (line, reason) in [
        ("amber call arm:1 set-torque true", "of arm:1 is on"),
        ("amber call arm:0 set-torque false", "of arm:0 is off"),
        ("amber halt arm:0", "arm:0 was halted by "),
    ] {
        let arms = Arms::start();
        let following = arms.follow();
        arms.amber(line);
        let outcome = following.join().unwrap().unwrap();
        assert_eq!(outcome.end(), End::Failed, "{line}: {outcome:?}");
        assert!(outcome.reason().contains(reason), "{line}: {outcome:?}");
    }
}

#[test]
fn a_follower_holds_its_place_when_a_driver_or_the_program_is_gone() {
    for gone in ["teleop:0", "arm:1", "the program"] {
        let arms = Arms::start();
        arms.switch_on();
        let mut following = arms.mediator.amber(&["call", "teleop", "follow"]);
        let mut following = following.stdout(Stdio::null()).spawn().unwrap();
        arms.wait_until_it_follows();
        turn(&arms.leader, TURNED);
        arms.wait_for_place("the follower", &arms.follower, TURNED);
        if gone == "the program" {
            following.kill().unwrap();
            let client = arms.client();
            wait_for("the end", || {
                let state = client.teleop(0).state().unwrap();
                (state.activity() == Activity::Idle).then_some(())
            });
            client.close();
        } else {
            // Frozen: it is not started again.
            signal(arms.mediator.describe(gone).pid(), Signal::SIGSTOP);
        }
        arms.expect_no_follower(gone);
        let _ = following.kill();
        following.wait().unwrap();
    }
}

#[test]
fn the_driver_follows_the_protocol_without_arms() {
    with_and_without("teleop", 0, ["arm:1", "arm:2"], |check, leader| {
        check.args(["teleop", "--leader", leader]);
    });
}
