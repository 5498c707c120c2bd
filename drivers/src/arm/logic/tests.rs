//! The logic at servos that do what they are told, with a speed limit of their own.

use amber_proto::arm::arm_state::Activity;
use amber_proto::arm::{ArmPoint, ArmPoints, HandPose, JointNames};
use amber_proto::bus_servos::ServoState;

use super::*;
use crate::arm::calibration::read;
use crate::arm::joints::Model;

const ME: Option<ClientId> = Some(ClientId(7));
const MS: Duration = Duration::from_millis(1);
/// The fastest that a usual servo turns.
const SERVO_DEG_S: f64 = 120.0;
/// Each joint turns from -90 to 90 degrees about the middle of its servo.
const HALF_STEPS: i32 = 1024;

fn calibration(offset: i32) -> String {
    let names = [
        "shoulder_pan",
        "shoulder_lift",
        "elbow_flex",
        "wrist_flex",
        "wrist_roll",
        "gripper",
    ];
    let joints = names.iter().zip(1..).map(|(name, id)| {
        let (min, max) = (2048 - HALF_STEPS, 2048 + HALF_STEPS);
        format!(
            "\"{name}\": {{\"id\": {id}, \"drive_mode\": 0, \"homing_offset\": {offset}, \
             \"range_min\": {min}, \"range_max\": {max}}}"
        )
    });
    format!("{{{}}}", joints.collect::<Vec<_>>().join(", "))
}

/// A servo.
#[derive(Clone, Debug)]
struct Servo {
    angle_deg: f64,
    goal_deg: f64,
    speed_deg_s: f64,
    is_on: bool,
    is_mute: bool,
    /// It does not turn beyond this.
    stop_deg: f64,
}

struct Bench {
    logic: ArmLogic,
    servos: Vec<Servo>,
    /// The fastest that these servos turn.
    servo_deg_s: f64,
    now: Instant,
    ms: u32,
    outputs: Vec<Output>,
    ends: Vec<Ended>,
    /// The fastest change of a goal, in degrees per second.
    fastest: f64,
}

impl Bench {
    fn of(arm: Arm) -> Self {
        let now = Instant::now();
        let servo = Servo {
            angle_deg: 180.0,
            goal_deg: 180.0,
            speed_deg_s: 0.0,
            is_on: false,
            is_mute: false,
            stop_deg: 360.0,
        };
        let rules = Rules {
            max_speed_deg_s: 60.0,
        };
        let mut bench = Self {
            logic: ArmLogic::new(arm, rules, now),
            servos: vec![servo; 6],
            servo_deg_s: SERVO_DEG_S,
            now,
            ms: 0,
            outputs: Vec::new(),
            ends: Vec::new(),
            fastest: 0.0,
        };
        bench.run(100 * MS);
        bench
    }

    fn new() -> Self {
        let calibration = read(&calibration(0)).unwrap();
        Self::of(Arm::new(Some(Model::So101), Some(calibration)).unwrap())
    }

    /// With all motors on.
    fn on() -> Self {
        let mut bench = Self::new();
        bench.torque(true, &[]).unwrap();
        bench.run(100 * MS);
        assert_eq!(bench.ends, [Ended::Torque(Ok(()))]);
        bench.ends.clear();
        bench
    }

    /// Servos are measured twenty times a second.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += MS;
            self.ms += 1;
            for servo in &mut self.servos {
                let most = self.servo_deg_s / 1_000.0;
                let way = (servo.goal_deg - servo.angle_deg).clamp(-most, most);
                let next = (servo.angle_deg + way).min(servo.stop_deg);
                let moves = servo.is_on && !servo.is_mute;
                servo.speed_deg_s = if moves {
                    (next - servo.angle_deg) * 1_000.0
                } else {
                    0.0
                };
                if moves {
                    servo.angle_deg = next;
                }
            }
            if self.ms.is_multiple_of(50) {
                self.measure();
            }
            if self.logic.wake_at().is_some_and(|at| at <= self.now) {
                self.logic.handle_timeout(self.now);
            }
            self.act();
        }
    }

    fn measure(&mut self) {
        let states = self.servos.iter().zip(1..).map(|(servo, id)| {
            let there = !servo.is_mute;
            ServoState {
                id: Some(id),
                angle: there.then_some(servo.angle_deg),
                speed: there.then_some(servo.speed_deg_s),
                torque: there.then_some(servo.is_on),
                problem: (!there).then(|| "does not answer".to_owned()),
                lowest: there.then_some(0.0),
                highest: there.then_some(359.9),
                homing_offset: there.then_some(0.0),
                ..ServoState::default()
            }
        });
        let servos = ServoStates {
            servos: states.collect(),
            time: Some(1),
        };
        self.logic.handle_servos(self.now, &servos);
    }

    fn act(&mut self) {
        while let Some(output) = self.logic.poll_output() {
            match &output {
                Output::Move { targets, .. } => {
                    for (id, angle_deg) in targets {
                        let servo = &mut self.servos[*id as usize - 1];
                        servo.goal_deg = *angle_deg;
                    }
                }
                Output::Stop => {
                    for servo in &mut self.servos {
                        servo.goal_deg = servo.angle_deg;
                    }
                }
                Output::Torque { on, ids } => {
                    for id in ids {
                        let servo = &mut self.servos[*id as usize - 1];
                        (servo.is_on, servo.goal_deg) = (*on, servo.angle_deg);
                    }
                }
            }
            self.outputs.push(output);
        }
        self.ends
            .extend(std::iter::from_fn(|| self.logic.poll_end()));
    }

    fn torque(&mut self, on: bool, joints: &[&str]) -> Result<(), String> {
        let only = (!joints.is_empty()).then(|| JointNames {
            joints: joints.iter().map(|it| (*it).to_owned()).collect(),
        });
        let done = (self.logic).set_torque(self.now, ME, &ArmTorque { on, only });
        self.act();
        done
    }

    fn follow(&mut self, targets: &[(&str, f64)]) -> Result<(), String> {
        self.logic.follow(self.now, ME, None, &positions(targets))
    }

    fn move_to(&mut self, targets: &[(&str, f64)]) -> Result<(), String> {
        let command = MoveArm {
            targets: positions(targets),
            ..MoveArm::default()
        };
        self.logic.move_to(self.now, ME, &command)
    }

    /// Follows a target for a time, with a command each 20 ms.
    fn stream(&mut self, targets: &[(&str, f64)], time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.follow(targets).unwrap();
            let before = self.goals();
            self.run(20 * MS);
            for (before, after) in before.iter().zip(self.goals()) {
                self.fastest = self.fastest.max((after - before).abs() / 0.02);
            }
        }
    }

    fn goals(&self) -> Vec<f64> {
        self.servos.iter().map(|it| it.goal_deg).collect()
    }

    /// The outcome of the only motion that has ended.
    #[track_caller]
    fn outcome(&mut self) -> ArmOutcome {
        match self.ends.as_slice() {
            [Ended::Move(outcome)] => {
                let outcome = outcome.clone();
                self.ends.clear();
                outcome
            }
            other => panic!("{other:?}"),
        }
    }

    fn activity(&self) -> Activity {
        self.logic.state().unwrap().activity()
    }

    fn position(&self, index: usize) -> f64 {
        self.logic.state().unwrap().joints[index].position.unwrap()
    }
}

fn positions(targets: &[(&str, f64)]) -> JointPositions {
    JointPositions {
        joints: targets.iter().map(|(name, _)| (*name).to_owned()).collect(),
        positions: targets.iter().map(|(_, to)| *to).collect(),
    }
}

#[track_caller]
fn expect_refusal(done: Result<(), String>, why: &str) {
    let refused = done.unwrap_err();
    assert!(refused.contains(why), "{refused}");
}

#[test]
fn nothing_moves_at_the_start() {
    let mut bench = Bench::new();
    assert_eq!(bench.logic.trouble(), None);
    assert_eq!(
        bench.logic.poll_note(),
        Some(Note::Ready("6 joints".into()))
    );
    assert_eq!(bench.activity(), Activity::Limp);
    let refused = bench.follow(&[("shoulder_pan", 0.0)]);
    expect_refusal(
        refused,
        "the motor of shoulder_pan is off: switch it on with set-torque",
    );
    bench.run(1_000 * MS);
    assert_eq!(bench.outputs, []);
    let state = bench.logic.state().unwrap();
    assert_eq!(state.joints.len(), 6);
    assert!((state.joints[5].position() - 50.0).abs() < 0.1, "{state:?}");
    assert!((state.hand.unwrap().x - 391.0).abs() < 1.0);
}

#[test]
fn an_arm_without_a_calibration_has_no_positions() {
    let mut bench = Bench::of(Arm::new(Some(Model::So101), None).unwrap());
    assert!(bench.logic.trouble().unwrap().contains("no calibration"));
    expect_refusal(bench.move_to(&[("elbow_flex", 1.0)]), "--calibration");
    let state = bench.logic.state().unwrap();
    assert_eq!(
        (state.joints[0].position, state.joints[0].torque),
        (None, Some(false))
    );
    assert!(state.problem.is_some() && state.hand.is_none());
    // It can be moved by hand, and calibrated.
    bench.torque(true, &["gripper"]).unwrap();
    bench.run(100 * MS);
    assert_eq!(bench.ends, [Ended::Torque(Ok(()))]);
}

#[test]
fn a_calibration_of_another_arm_is_refused() {
    let calibration = read(&calibration(500)).unwrap();
    let mut bench = Bench::of(Arm::new(None, Some(calibration)).unwrap());
    let why = "shoulder_pan (servo 1) has the homing offset 0, but 500 in its calibration";
    assert!(bench.logic.trouble().unwrap().starts_with(why));
    bench.torque(true, &[]).unwrap();
    bench.run(100 * MS);
    expect_refusal(bench.follow(&[("gripper", 1.0)]), why);
}

#[test]
fn it_approaches_slowly_and_then_follows() {
    let mut bench = Bench::on();
    let target = [("shoulder_pan", 60.0), ("gripper", 80.0)];
    bench.stream(&target, 1_000 * MS);
    assert_eq!(bench.activity(), Activity::Approaching);
    assert!(
        (25.0..31.0).contains(&bench.position(0)),
        "{}",
        bench.position(0)
    );
    assert!((28.0..31.0).contains(&bench.fastest), "{}", bench.fastest);
    bench.stream(&target, 1_500 * MS);
    assert_eq!(bench.activity(), Activity::Following);
    assert!((bench.position(0) - 60.0).abs() < 0.1);
    assert!((bench.position(5) - 80.0).abs() < 0.1);
    bench.stream(&[("shoulder_pan", 0.0), ("gripper", 80.0)], 1_200 * MS);
    assert!((bench.position(0)).abs() < 0.1);
    assert!((58.0..61.0).contains(&bench.fastest), "{}", bench.fastest);
}

#[test]
fn without_commands_it_holds_the_last_set_point() {
    let mut bench = Bench::on();
    bench.stream(&[("elbow_flex", 60.0)], 500 * MS);
    bench.run(600 * MS);
    assert_eq!(bench.activity(), Activity::Holding);
    let last = bench.outputs.last().unwrap();
    assert!(
        matches!(last, Output::Move { is_last: true, .. }),
        "{last:?}"
    );
    let held = bench.position(2);
    bench.run(1_000 * MS);
    assert!((bench.position(2) - held).abs() < 0.5);
    assert!((20.0..32.0).contains(&held), "{held}");
    // A command that holds less long.
    let until = Some(bench.now + 100 * MS);
    let command = positions(&[("elbow_flex", 60.0)]);
    bench.logic.follow(bench.now, ME, until, &command).unwrap();
    bench.run(90 * MS);
    assert_eq!(bench.activity(), Activity::Approaching);
    bench.run(60 * MS);
    assert_eq!(bench.activity(), Activity::Holding);
}

#[test]
fn positions_beyond_limits_are_followed_to_the_limit_and_refused_otherwise() {
    let mut bench = Bench::on();
    bench.stream(&[("wrist_roll", 200.0)], 4_000 * MS);
    assert!(
        (bench.position(4) - 90.0).abs() < 0.1,
        "{}",
        bench.position(4)
    );
    let refused = bench.move_to(&[("wrist_roll", 200.0)]);
    expect_refusal(
        refused,
        "wrist_roll moves from -90.0 to 90.0 degrees, not to 200",
    );
    for (targets, why) in [
        (
            &[("gripper", 101.0)][..],
            "gripper moves from 0.0 to 100.0 %, not to 101",
        ),
        (
            &[("tail", 0.0)],
            "the arm has no joint \"tail\", only shoulder_pan",
        ),
        (
            &[("gripper", 1.0), ("gripper", 2.0)],
            "gripper is named twice",
        ),
        (&[("gripper", f64::NAN)], "NaN is no position of gripper"),
        (&[], "no joint is named"),
    ] {
        expect_refusal(bench.move_to(targets), why);
        if !targets.contains(&("gripper", 101.0)) {
            expect_refusal(bench.follow(targets), why);
        }
    }
}

#[test]
fn a_motion_ends_where_it_should() {
    let mut bench = Bench::on();
    bench
        .move_to(&[("shoulder_pan", 60.0), ("elbow_flex", -20.0)])
        .unwrap();
    bench.run(1_000 * MS);
    assert_eq!(bench.activity(), Activity::Moving);
    // They are as far on their ways.
    let parts = bench.position(0) / 60.0 - bench.position(2) / -20.0;
    assert!(parts.abs() < 0.05, "{parts}");
    // 60 degrees with at most 30 degrees per second.
    bench.run(2_200 * MS);
    let outcome = bench.outcome();
    assert_eq!((outcome.end(), outcome.reason), (End::Arrived, None));
    let errors = outcome.errors.unwrap();
    assert_eq!(errors.joints, ["shoulder_pan", "elbow_flex"]);
    assert!(errors.positions.iter().all(|error| error.abs() < 0.5));
    assert_eq!(bench.activity(), Activity::Holding);
}

#[test]
fn a_motion_through_points_is_in_time() {
    let mut bench = Bench::on();
    let point = |at, to| ArmPoint {
        at,
        positions: vec![to],
    };
    let via = |points| Some(ArmPoints { points });
    let mut command = MoveArm {
        targets: positions(&[("wrist_flex", 0.0)]),
        via: via(vec![point(1_000, 30.0), point(1_500, 20.0)]),
        at: Some(2_500),
        ..MoveArm::default()
    };
    bench.logic.move_to(bench.now, ME, &command).unwrap();
    for (ms, expected) in [(1_000, 30.0), (500, 20.0), (500, 10.0)] {
        bench.run(ms * MS);
        assert!(
            (bench.position(3) - expected).abs() < 4.0,
            "{}",
            bench.position(3)
        );
    }
    bench.run(700 * MS);
    assert_eq!(bench.outcome().end(), End::Arrived);
    command.via = via(vec![point(100, 30.0)]);
    let refused = bench.logic.move_to(bench.now, ME, &command);
    expect_refusal(refused, "wrist_flex would have to move with 300 degrees/s");
    command.via = via(vec![point(1_000, 5.0), point(900, 5.0)]);
    let refused = bench.logic.move_to(bench.now, ME, &command);
    expect_refusal(refused, "point 1 is not later");
    command.at = None;
    expect_refusal(
        bench.logic.move_to(bench.now, ME, &command),
        "the time of their end",
    );
}

#[test]
fn the_hand_moves_to_a_place() {
    let mut bench = Bench::on();
    let mut command = MoveArm {
        targets: positions(&[("gripper", 90.0)]),
        hand: Some(HandPose {
            x: 280.0,
            y: 80.0,
            z: 150.0,
            pitch: -30.0,
            roll: None,
        }),
        ..MoveArm::default()
    };
    bench.logic.move_to(bench.now, ME, &command).unwrap();
    bench.run(6_000 * MS);
    assert_eq!(bench.outcome().end(), End::Arrived);
    let hand = bench.logic.state().unwrap().hand.unwrap();
    assert!(
        (hand.x - 280.0).abs() < 0.5 && (hand.y - 80.0).abs() < 0.5,
        "{hand:?}"
    );
    assert!(
        (hand.z - 150.0).abs() < 0.5 && (hand.pitch + 30.0).abs() < 0.1,
        "{hand:?}"
    );
    assert!((bench.position(5) - 90.0).abs() < 0.1);
    command.targets = positions(&[("wrist_flex", 0.0)]);
    let refused = bench.logic.move_to(bench.now, ME, &command);
    expect_refusal(refused, "says where wrist_flex is");
}

#[test]
fn after_a_pause_a_motion_goes_on_where_it_was() {
    let mut bench = Bench::on();
    bench.move_to(&[("shoulder_pan", 60.0)]).unwrap();
    bench.run(1_000 * MS);
    let before = bench.servos[0].goal_deg;
    // Nothing runs for two seconds.
    bench.now += 2_000 * MS;
    for _ in 0..50 {
        let last = bench.servos[0].goal_deg;
        bench.run(20 * MS);
        let way_deg = bench.servos[0].goal_deg - last;
        assert!((0.0..=0.1 * 31.0).contains(&way_deg), "{way_deg}");
    }
    assert!(bench.servos[0].goal_deg - before < 35.0);
    bench.run(2_000 * MS);
    assert_eq!(bench.outcome().end(), End::Arrived);
}

#[test]
fn a_newer_command_and_a_stop_end_a_motion() {
    let mut bench = Bench::on();
    let target = [("shoulder_lift", 80.0)];
    bench.move_to(&target).unwrap();
    bench.run(300 * MS);
    bench.move_to(&target).unwrap();
    bench.act();
    assert_eq!(bench.outcome().end(), End::Replaced);
    bench.run(300 * MS);
    let before = bench.position(1);
    bench.logic.stop(Some(&StopCause::ClientGone));
    bench.run(1_000 * MS);
    let outcome = bench.outcome();
    assert_eq!(outcome.end(), End::Stopped);
    assert_eq!(outcome.reason.as_deref(), Some("the client is gone"));
    // As far as it has come since it was measured.
    assert!((bench.position(1) - before).abs() < 5.0);
    assert_eq!(bench.activity(), Activity::Holding);
    assert_eq!(bench.logic.wake_at(), None);
}

#[test]
fn a_joint_that_is_held_is_not_forced_and_does_not_jump() {
    let mut bench = Bench::on();
    bench.servos[5].stop_deg = 190.0;
    bench.move_to(&[("gripper", 100.0)]).unwrap();
    bench.run(7_000 * MS);
    let outcome = bench.outcome();
    assert_eq!(outcome.end(), End::NotThere);
    let why = outcome.reason.unwrap();
    assert!(why.starts_with("gripper is 44"), "{why}");
    let pressed_deg = bench.servos[5].goal_deg - 190.0;
    assert!(
        (4.0..6.0).contains(&pressed_deg),
        "it holds what it has: {pressed_deg}"
    );
    // The same while it follows.
    bench.stream(&[("gripper", 100.0)], 1_500 * MS);
    let joint = bench.logic.state().unwrap().joints.remove(5);
    assert!(joint.problem().contains("something holds it"), "{joint:?}");
    for _ in 0..100 {
        bench.stream(&[("gripper", 100.0)], 20 * MS);
        assert!(bench.servos[5].goal_deg - 190.0 < 6.0);
    }
    bench.servos[5].stop_deg = 360.0;
    bench.fastest = 0.0;
    bench.stream(&[("gripper", 100.0)], 4_000 * MS);
    assert!((bench.position(5) - 100.0).abs() < 0.1);
    assert!(bench.fastest < 61.0, "{}", bench.fastest);
}

#[test]
fn the_others_go_on_without_a_missing_servo() {
    let mut bench = Bench::on();
    let target = [("shoulder_pan", 40.0), ("elbow_flex", 40.0)];
    bench.stream(&target, 500 * MS);
    bench.servos[2].is_mute = true;
    bench.stream(&target, 1_500 * MS);
    assert_eq!(
        bench.logic.trouble(),
        Some("elbow_flex (servo 3) does not answer")
    );
    assert!((bench.position(0) - 40.0).abs() < 0.1);
    // It is back where it was when it was lost.
    let before = bench.servos[2].angle_deg;
    (bench.servos[2].is_mute, bench.servos[2].goal_deg) = (false, before);
    bench.fastest = 0.0;
    bench.stream(&target, 200 * MS);
    assert!((bench.servos[2].angle_deg - before).abs() < 6.0);
    assert!(bench.fastest < 31.0, "{}", bench.fastest);
    bench.stream(&target, 1_500 * MS);
    assert!((bench.position(2) - 40.0).abs() < 0.1);
    assert_eq!(bench.logic.trouble(), None);
    // A motion needs all of its joints.
    bench.move_to(&[("elbow_flex", -40.0)]).unwrap();
    bench.run(300 * MS);
    bench.servos[2].is_mute = true;
    bench.run(100 * MS);
    let outcome = bench.outcome();
    assert_eq!(outcome.end(), End::Failed);
    assert!(
        outcome
            .reason()
            .contains("elbow_flex (servo 3) does not answer")
    );
}

#[test]
fn an_arm_without_servos_refuses_and_ends_its_motion() {
    let mut bench = Bench::on();
    bench.move_to(&[("elbow_flex", -40.0)]).unwrap();
    bench.run(100 * MS);
    bench
        .logic
        .handle_absence(bench.now, "bus-servos:0: no port".into());
    bench.act();
    assert_eq!(bench.outcome().end(), End::Failed);
    assert_eq!(bench.logic.trouble(), Some("bus-servos:0: no port"));
    expect_refusal(bench.follow(&[("gripper", 0.0)]), "no port");
    expect_refusal(bench.torque(true, &[]), "no port");
    assert!(bench.logic.state().is_err());
    let outputs = bench.outputs.len();
    bench.run(200 * MS);
    assert_eq!(bench.outputs.len(), outputs, "nothing moves by itself");
    assert_eq!(bench.logic.trouble(), None);
}

#[test]
fn motors_are_switched_and_said_to_be() {
    let mut bench = Bench::on();
    bench.move_to(&[("elbow_flex", -40.0)]).unwrap();
    bench.run(100 * MS);
    bench.torque(false, &["gripper"]).unwrap();
    bench.run(100 * MS);
    let [Ended::Move(outcome), Ended::Torque(Ok(()))] = bench.ends.as_slice() else {
        panic!("{:?}", bench.ends);
    };
    assert_eq!(outcome.end(), End::Stopped);
    bench.ends.clear();
    expect_refusal(
        bench.move_to(&[("gripper", 0.0)]),
        "the motor of gripper is off",
    );
    // A servo that does not do it.
    bench.servos[5].is_mute = true;
    bench.run(100 * MS);
    expect_refusal(bench.torque(true, &["gripper"]), "does not answer");
    bench.torque(false, &["elbow_flex"]).unwrap();
    bench.servos[2].is_on = true;
    bench.run(2_100 * MS);
    let [Ended::Torque(Err(why))] = bench.ends.as_slice() else {
        panic!("{:?}", bench.ends);
    };
    assert!(
        why.starts_with("elbow_flex (servo 3) does not switch its motor off"),
        "{why}"
    );
}

#[test]
fn what_moves_stops_when_the_driver_ends() {
    let mut bench = Bench::on();
    bench.outputs.clear();
    bench.logic.shut_down();
    bench.act();
    assert_eq!(bench.outputs, [], "it does not move");
    bench.follow(&[("gripper", 0.0)]).unwrap();
    bench.run(50 * MS);
    bench.logic.shut_down();
    bench.act();
    assert_eq!(bench.outputs.last(), Some(&Output::Stop));
}

/// A client that leaves stops what it moves: then the joints would stay short of their targets.
#[test]
fn a_motion_has_arrived_when_its_joints_are_at_rest() {
    let mut bench = Bench::on();
    bench.servo_deg_s = 20.0;
    bench.move_to(&[("elbow_flex", 30.0)]).unwrap();
    bench.run(4_000 * MS);
    let outcome = bench.outcome();
    assert_eq!(outcome.end(), End::Arrived);
    let errors = outcome.errors.unwrap().positions;
    assert!(errors[0].abs() < 0.2, "{errors:?}");
}

#[test]
fn motors_are_switched_off_although_a_program_streams() {
    let mut bench = Bench::on();
    bench.stream(&[("elbow_flex", 5.0)], 200 * MS);
    bench.torque(false, &[]).unwrap();
    bench.outputs.clear();
    for _ in 0..20 {
        let why = bench.follow(&[("elbow_flex", 5.0)]).unwrap_err();
        assert!(why.contains("the motor of elbow_flex is"), "{why}");
        bench.run(20 * MS);
    }
    assert!(bench.servos.iter().all(|servo| !servo.is_on));
    let moves = |output: &Output| matches!(output, Output::Move { .. });
    assert!(!bench.outputs.iter().any(moves));
    assert_eq!(bench.ends, [Ended::Torque(Ok(()))]);
}
