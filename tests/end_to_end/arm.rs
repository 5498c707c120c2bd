//! An arm: the real drivers of an arm and of its servos, at simulated servos of Feetech and Dynamixel. What
//! moves stops when the driver of the arm is killed.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use amber_client::blocking::Client;
use amber_proto::arm::arm_outcome::End;
use amber_proto::arm::arm_state::Activity;
use amber_proto::arm::{ArmState, HandPose, JointPositions, MoveArm};
use amber_sim::control::{self, Answer, BusServo, Request, SimulationState};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::common::{Mediator, root, signal, wait_for};
use crate::kit::with_and_without;
use crate::motion_sensors::Robot;
use crate::python_package::{SOURCE, can_run};

/// Servos hold their places this long after the last command of a driver that was killed or frozen ...
const VALIDITY_S: f64 = 0.3;
/// ... and a margin for a busy machine.
const MARGIN_S: f64 = 1.0;
/// An arm that does not move for so long rests.
const STILL_S: f64 = 0.5;
const NAMES: [&str; 6] = [
    "shoulder_pan",
    "shoulder_lift",
    "elbow_flex",
    "wrist_flex",
    "wrist_roll",
    "gripper",
];

/// The middle of each joint is where the simulated servos begin.
pub(crate) fn calibration(robot: &Robot) -> String {
    let joints = NAMES.iter().zip(1..).map(|(name, id)| {
        format!(
            "\"{name}\": {{\"id\": {id}, \"drive_mode\": 0, \"homing_offset\": 0, \
             \"range_min\": 1024, \"range_max\": 3072}}"
        )
    });
    let joints: Vec<_> = joints.collect();
    let path = robot.folder.path().join("arm.json");
    fs::write(&path, format!("{{{}}}", joints.join(",\n"))).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The simulated arms: the driver of their servos, its preset, and the model of the arm.
const ARMS: [[&str; 3]; 2] = [["feetech", "so101", "so101"], ["dynamixel", "koch", "koch"]];

struct Arm {
    robot: Robot,
    mediator: Mediator,
    _folder: TempDir,
}

impl Arm {
    /// Its drivers are ready, and not started again. A busy machine answers late.
    fn start([driver, preset, model]: [&'static str; 3]) -> Self {
        let robot = Robot::with_device(driver, preset);
        let (port, calibration) = (robot.socket(), calibration(&robot));
        let (mediator, folder) = Mediator::configured(&format!(
            "[[driver]]\ndevice = 'bus-servos:0'\nrestart = 'never'\n\
             command = ['amber', 'driver', '{driver}', '--port', '{port}', '--preset', '{preset}', \
             '--reply-timeout-ms', '500', '--interval-ms', '20']\n\
             [[driver]]\ndevice = 'arm:0'\nrestart = 'never'\ngrace_ms = 100\n\
             command = ['amber', 'driver', 'arm', '--model', '{model}', \
             '--calibration', '{calibration}']\n"
        ));
        mediator.wait_for_line("INFO ready: 6 joints");
        Self {
            robot,
            mediator,
            _folder: folder,
        }
    }

    fn so101() -> Self {
        Self::start(ARMS[0])
    }

    fn client(&self) -> Client {
        Client::connect(self.mediator.address).unwrap()
    }

    fn simulation(&self) -> SimulationState {
        match control::ask(&self.robot.folder.path().join("sim"), &Request::State) {
            Ok(Answer::State(state)) => *state,
            other => panic!("{other:?}"),
        }
    }

    /// A servo as it really is.
    fn servo(&self, id: u8) -> BusServo {
        let mut servos = self.simulation().bus_servos.into_iter();
        servos.find(|servo| servo.id == id).unwrap()
    }

    /// Nothing turns, and the arm does not fall. Returns the time of the simulation when it began. A
    /// servo that is told where to be fifty times a second also rests in between.
    #[track_caller]
    fn wait_for_rest(&self) -> f64 {
        let mut last = (Vec::new(), 0.0);
        let at_s = wait_for("the end of all motion", || {
            let state = self.simulation();
            let steps: Vec<_> = state.bus_servos.iter().map(|servo| servo.steps).collect();
            if steps != last.0 {
                last = (steps, state.time_s);
            }
            (state.time_s - last.1 > STILL_S).then_some(last.1)
        });
        assert!(self.servo(1).torque);
        at_s
    }

    /// The first joint moves slowly, far away, as long as the thread runs.
    fn set(&self) -> thread::JoinHandle<amber_client::Result<amber_proto::arm::ArmOutcome>> {
        let client = self.client();
        let arm = client.arm(0);
        arm.set_torque(true, None).unwrap();
        let moving = thread::spawn(move || {
            let command = MoveArm {
                speed: Some(5.0),
                ..to(&[("shoulder_pan", 80.0)])
            };
            let outcome = client.arm(0).move_to(None, command);
            client.close();
            outcome
        });
        wait_for("a joint that moves", || {
            (self.servo(1).steps > 2_060.0).then_some(())
        });
        moving
    }

    /// The first joint has not come to its target.
    #[track_caller]
    fn expect_short(&self) {
        let steps = self.servo(1).steps;
        assert!((2_060.0..2_900.0).contains(&steps), "{steps}");
    }
}

fn to(targets: &[(&str, f64)]) -> MoveArm {
    MoveArm {
        targets: JointPositions {
            joints: targets.iter().map(|(name, _)| (*name).into()).collect(),
            positions: targets.iter().map(|(_, position)| *position).collect(),
        },
        ..MoveArm::default()
    }
}

/// The step of a servo at a position of its joint, as LeRobot counts.
fn step(position_deg: f64) -> f64 {
    2048.0 + position_deg * 4095.0 / 360.0
}

fn position(state: &ArmState, index: usize) -> f64 {
    state.joints[index].position.unwrap()
}

#[test]
fn an_arm_of_each_maker_moves_and_follows() {
    for which in ARMS {
        let arm = Arm::start(which);
        let client = arm.client();
        let device = client.arm(0);
        let description = device.description().unwrap();
        assert_eq!(
            (description.model(), description.calibrated()),
            (which[2], true)
        );
        let names: Vec<_> = description.joints.iter().map(|it| it.name()).collect();
        assert_eq!(names, NAMES);
        let pan = &description.joints[0];
        assert!((pan.lowest() + 90.0).abs() < 0.1 && (pan.highest() - 90.0).abs() < 0.1);
        let gripper = &description.joints[5];
        assert_eq!((gripper.lowest(), gripper.highest()), (0.0, 100.0));

        let limp = device.state().unwrap();
        assert_eq!(limp.activity(), Activity::Limp);
        assert!(position(&limp, 0).abs() < 0.1 && (position(&limp, 5) - 50.0).abs() < 0.1);
        assert_eq!(limp.hand.is_some(), which[2] == "so101");
        let refused = device.move_to(None, to(&[("elbow_flex", 20.0)]));
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("the motor of elbow_flex is off"),
            "{refused}"
        );

        let on = device.set_torque(true, None).unwrap();
        assert_eq!(on.activity(), Activity::Holding);
        let command = MoveArm {
            speed: Some(100.0),
            ..to(&[("elbow_flex", 20.0), ("gripper", 60.0)])
        };
        let outcome = device.move_to(None, command).unwrap();
        assert_eq!(outcome.end(), End::Arrived, "{outcome:?}");
        wait_for("the elbow", || {
            ((arm.servo(3).steps - step(20.0)).abs() < 2.0).then_some(())
        });
        // 60 % of 2048 steps.
        assert!((arm.servo(6).steps - 2_252.8).abs() < 3.0);
        let refused = device.move_to(None, to(&[("elbow_flex", 120.0)]));
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("elbow_flex moves from -90.0 to 90.0 degrees"),
            "{refused}"
        );

        // Fifty times a second, until it is there.
        let target = [("elbow_flex".to_owned(), -10.0)];
        wait_for("the elbow that follows", || {
            device.follow(&target).unwrap();
            thread::sleep(Duration::from_millis(20));
            ((arm.servo(3).steps - step(-10.0)).abs() < 2.0).then_some(())
        });
        wait_for("an arm that holds", || {
            let state = device.state().unwrap();
            (state.activity() == Activity::Holding).then_some(())
        });
        assert!((arm.servo(3).steps - step(-10.0)).abs() < 2.0);
        let off = device.set_torque(false, None).unwrap();
        assert_eq!(off.activity(), Activity::Limp);
        let servos = arm.simulation().bus_servos.into_iter();
        assert_eq!(servos.map(|servo| servo.memory_writes).sum::<u32>(), 0);
        client.close();
    }
}

#[test]
fn the_hand_moves_to_a_place_and_the_command_line_says_where_it_is() {
    let arm = Arm::so101();
    let amber = |words: &[&str]| {
        let output = arm.mediator.amber(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    amber(&["call", "arm", "set-torque", "true"]);
    for line in [
        "call arm move-to shoulder_pan=20 gripper=80",
        "call arm move-to none hand.x=280 hand.y=80 hand.z=150 hand.pitch=-30",
    ] {
        let said = amber(&line.split(' ').collect::<Vec<_>>());
        assert!(said.contains("ARRIVED"), "{line}: {said}");
    }
    let client = arm.client();
    let state = client.arm(0).state().unwrap();
    let HandPose { x, y, z, pitch, .. } = state.hand.unwrap();
    for (is, expected) in [(x, 280.0), (y, 80.0), (z, 150.0), (pitch, -30.0)] {
        assert!((is - expected).abs() < 1.0, "{state:?}");
    }
    assert!((position(&state, 5) - 80.0).abs() < 0.5);
    let said = amber(&["call", "arm", "move-to", "shoulder_pan=0", "elbow_flex=10"]);
    assert!(said.contains("ARRIVED"), "{said}");
    let said = amber(&["call", "arm", "state"]);
    assert!(
        said.contains("HOLDING") && said.contains("wrist_flex"),
        "{said}"
    );
    client.close();
}

#[test]
fn what_moves_stops_when_the_driver_of_the_arm_is_killed_or_frozen() {
    for how in [Signal::SIGKILL, Signal::SIGSTOP] {
        let arm = Arm::so101();
        let moving = arm.set();
        let pid = arm.mediator.describe("arm:0").pid();
        let begin_s = arm.simulation().time_s;
        signal(pid, how);
        let took_s = arm.wait_for_rest() - begin_s;
        assert!(took_s < VALIDITY_S + MARGIN_S, "{how}: {took_s} s");
        arm.expect_short();
        if how == Signal::SIGKILL {
            assert!(moving.join().unwrap().is_err());
        } else {
            signal(pid, Signal::SIGCONT);
            let client = arm.client();
            client.arm(0).stop().unwrap();
            let outcome = moving.join().unwrap().unwrap();
            assert_eq!(outcome.end(), End::Stopped, "{outcome:?}");
            client.close();
        }
    }
}

#[test]
fn a_halt_stops_an_arm_and_refuses_more() {
    let arm = Arm::so101();
    let moving = arm.set();
    let halt = |words: &[&str]| {
        let output = arm.mediator.amber(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    halt(&["halt", "arm"]);
    arm.wait_for_rest();
    arm.expect_short();
    let outcome = moving.join().unwrap().unwrap();
    assert_eq!(outcome.end(), End::Stopped);
    assert!(outcome.reason().contains("halted"), "{outcome:?}");
    let client = arm.client();
    let device = client.arm(0);
    let refused = device.move_to(None, to(&[("gripper", 0.0)]));
    assert!(refused.unwrap_err().to_string().contains("halted"));
    halt(&["halt", "arm", "--release"]);
    let outcome = device.move_to(None, to(&[("gripper", 40.0)])).unwrap();
    assert_eq!(outcome.end(), End::Arrived, "{outcome:?}");
    client.close();
}

#[test]
fn an_outage_of_the_servos_is_reported_and_nothing_moves_after_it() {
    let arm = Arm::so101();
    let moving = arm.set();
    arm.robot.fault(&["unplug", "feetech"]);
    let outcome = moving.join().unwrap().unwrap();
    assert_eq!(outcome.end(), End::Failed, "{outcome:?}");
    let trouble = wait_for("its trouble", || {
        let troubles = arm.mediator.describe("arm:0").troubles.into_iter();
        troubles.map(|told| told.text).next()
    });
    assert!(
        trouble.contains("bus-servos:0") || trouble.contains("servo"),
        "{trouble}"
    );
    let client = arm.client();
    let device = client.arm(0);
    wait_for("a refusal", || device.state().is_err().then_some(()));
    let before = arm.servo(2).steps;
    arm.robot.fault(&["clear"]);
    wait_for("no trouble", || {
        let troubles = arm.mediator.describe("arm:0").troubles;
        troubles.is_empty().then_some(())
    });
    arm.wait_for_rest();
    assert!((arm.servo(2).steps - before).abs() < 5.0);
    let outcome = device.move_to(None, to(&[("shoulder_pan", 0.0)])).unwrap();
    assert_eq!(outcome.end(), End::Arrived, "{outcome:?}");
    client.close();
}

/// The files and the program of docs/arms.md.
#[test]
fn the_page_about_arms_works() {
    let page = fs::read_to_string(root().join("docs/arms.md")).unwrap();
    let block = |language: &str| {
        let (_, rest) = page.split_once(&format!("```{language}\n")).unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    let robot = Robot::with_device("feetech", "so101");
    let calibration = robot.folder.path().join("arm.json");
    fs::write(&calibration, block("json")).unwrap();
    let text = (block("toml").replace("\"arm/feetech\"", &format!("\"{}\"", robot.socket())))
        .replace("\"arm.json\"", &format!("\"{}\"", calibration.display()))
        // A busy machine answers late.
        .replace("\"20\"", "\"20\", \"--reply-timeout-ms\", \"500\"");
    let (mediator, folder) = Mediator::configured(&text);
    mediator.wait_for_line("INFO ready: 6 joints");
    let arm = Arm {
        robot,
        mediator,
        _folder: folder,
    };
    if !can_run("the program for an arm", "google.protobuf") {
        return;
    }
    let program = block("python").replace("127.0.0.1", &arm.mediator.address.to_string());
    let output = Command::new("python3")
        .args(["-c", &program])
        .env("PYTHONPATH", root().join(SOURCE))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("ARRIVED"), "{said}");
    assert!(
        said.contains("shoulder_pan") && said.contains("gripper"),
        "{said}"
    );
    assert!((arm.servo(3).steps - step(20.0)).abs() < 3.0);
    arm.wait_for_rest();
}

/// The arm is measured as often as its servos.
#[test]
fn an_arm_publishes_what_its_servos_measure() {
    let arm = Arm::so101();
    let client = arm.client();
    let mut states = client.arm(0).state_updates().unwrap();
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < 20 {
        let state = states.next().unwrap().message;
        assert_eq!(state.joints.len(), 6);
        times.push(state.time.unwrap());
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
    times.dedup();
    assert!(times.len() > 10, "{times:?}");
    client.close();
}

#[test]
fn the_driver_follows_the_protocol_with_and_without_its_calibration() {
    let robot = Robot::with_device("feetech", "so101");
    let calibration = calibration(&robot);
    with_and_without("arm", 0, [&*calibration, ""], |check, calibration| {
        check.args(["arm", "--model", "so101"]);
        if !calibration.is_empty() {
            check.args(["--calibration", calibration]);
        }
    });
}
