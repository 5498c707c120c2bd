use amber_proto::motion::{Halt, LeaseClient};

use super::*;

const ME: Option<ClientId> = Some(ClientId(7));
const MS: Duration = Duration::from_millis(1);
const PERIOD: Duration = Duration::from_millis(20);

fn device(text: &str) -> Device {
    text.parse().unwrap()
}

/// An arm with these joints, and whether their motors are on.
fn arm(is_on: bool, joints: &[(&str, f64)]) -> ArmState {
    let joint = |(name, position): &(&str, f64)| JointState {
        name: Some((*name).into()),
        position: Some(*position),
        torque: Some(is_on),
        ..JointState::default()
    };
    ArmState {
        activity: Some(arm_state::Activity::Following.into()),
        joints: joints.iter().map(joint).collect(),
        ..ArmState::default()
    }
}

fn leader(elbow_deg: f64) -> ArmState {
    arm(false, &[("elbow", elbow_deg), ("wrist", 10.0)])
}

fn follower() -> ArmState {
    arm(true, &[("shoulder", 0.0), ("elbow", 5.0), ("wrist", 5.0)])
}

/// Both arms have just been measured.
fn logic(pairs: Option<Vec<Pair>>) -> (TeleopLogic, Instant) {
    let now = Instant::now();
    let mut logic = TeleopLogic::new(device("arm:1"), device("arm:0"), pairs, now);
    logic.handle_leader(now, Duration::ZERO, leader(20.0));
    logic.handle_follower(now, follower());
    (logic, now)
}

/// The follower follows.
fn following() -> (TeleopLogic, Instant) {
    let (mut logic, now) = logic(None);
    logic.follow(now, ME, FollowLeader::default()).unwrap();
    (logic, now)
}

#[track_caller]
fn expect_end(logic: &mut TeleopLogic, end: End, why: &str) {
    let outcome = logic.poll_end().unwrap();
    assert_eq!((outcome.end(), outcome.reason()), (end, why));
    assert_eq!(logic.poll_end(), None);
}

#[test]
fn joints_with_the_same_name_follow_each_other() {
    let (mut logic, now) = logic(None);
    assert_eq!(logic.poll_output(), None, "nobody wants it yet");
    let idle = logic.state(now).unwrap();
    assert_eq!((idle.activity(), idle.rate()), (Activity::Idle, 0));
    logic.follow(now, ME, FollowLeader::default()).unwrap();
    assert_eq!(logic.client(), ME);
    for count in 1..=100 {
        let now = now + PERIOD * count;
        logic.handle_leader(now, Duration::ZERO, leader(f64::from(count)));
        logic.handle_follower(now, follower());
        let expected = vec![("elbow".into(), f64::from(count)), ("wrist".into(), 10.0)];
        assert_eq!(logic.poll_output(), Some(Output::Follow(expected)));
        assert_eq!(logic.poll_output(), None);
    }
    let state = logic.state(now + PERIOD * 100).unwrap();
    assert_eq!((state.activity(), state.rate()), (Activity::Following, 50));
    let [elbow, wrist] = &state.joints[..] else {
        panic!("{state:?}");
    };
    assert_eq!((elbow.target, elbow.position), (Some(100.0), Some(5.0)));
    assert_eq!((wrist.target, wrist.position), (Some(10.0), Some(5.0)));
}

#[test]
fn positions_are_scaled_and_moved_as_configured() {
    let pair = |leader: &str, follower: &str, scale, offset| Pair {
        leader: leader.into(),
        follower: follower.into(),
        scale,
        offset,
    };
    let pairs = vec![pair("elbow", "shoulder", -0.5, 3.0)];
    let (mut logic, now) = logic(Some(pairs));
    logic.follow(now, ME, FollowLeader::default()).unwrap();
    logic.handle_leader(now, Duration::ZERO, leader(20.0));
    let expected = vec![("shoulder".into(), -7.0)];
    assert_eq!(logic.poll_output(), Some(Output::Follow(expected)));

    let (mut logic, now) = self::logic(Some(vec![pair("elbow", "tail", 1.0, 0.0)]));
    let refused = logic.follow(now, ME, FollowLeader::default());
    assert_eq!(refused, Err("arm:0 has no joint tail".into()));
}

#[test]
fn arms_that_cannot_be_used_so_are_refused() {
    let ready = || (leader(0.0), follower());
    let held = arm(true, &[("elbow", 0.0)]);
    let limp = arm(false, &[("elbow", 0.0)]);
    let other = arm(true, &[("knee", 0.0)]);
    let mut broken = follower();
    broken.problem = Some("the arm has no calibration".into());
    for ((leader, follower), why) in [
        (
            (held, ready().1),
            "the motor of elbow of arm:1 is on: a person moves it by hand",
        ),
        ((ready().0, limp), "the motor of elbow of arm:0 is off"),
        (
            (ready().0, other),
            "no joint of arm:0 has the name of one of arm:1",
        ),
        ((ready().0, broken), "arm:0: the arm has no calibration"),
    ] {
        // At first ...
        let (mut logic, now) = logic(None);
        logic.handle_leader(now, Duration::ZERO, leader.clone());
        logic.handle_follower(now, follower.clone());
        let refused = logic.follow(now, ME, FollowLeader::default());
        assert_eq!(refused, Err(why.into()));
        assert_eq!(logic.state(now).unwrap().problem(), why);
        // ... and later.
        let (mut logic, now) = following();
        let (was_leader, was_follower) = ready();
        if leader != was_leader {
            logic.handle_leader(now, Duration::ZERO, leader);
        }
        if follower != was_follower {
            logic.handle_follower(now, follower);
        }
        expect_end(&mut logic, End::Failed, why);
        assert_eq!(logic.poll_output(), None);
    }
}

#[test]
fn a_leader_that_is_silent_or_late_is_waited_for_and_then_given_up() {
    let (mut logic, now) = following();
    let late = now + MS * 100;
    logic.handle_leader(late, MS * 200, leader(30.0));
    assert_eq!(logic.poll_output(), None);
    assert_eq!(logic.state(late).unwrap().activity(), Activity::Waiting);
    assert_eq!(logic.counters.late, 1);
    let again = late + PERIOD;
    logic.handle_leader(again, MS * 20, leader(30.0));
    assert!(matches!(logic.poll_output(), Some(Output::Follow(_))));
    assert_eq!(logic.state(again).unwrap().activity(), Activity::Following);
    let silent = again + MS * 300;
    logic.handle_follower(silent, follower());
    assert_eq!(logic.state(silent).unwrap().activity(), Activity::Waiting);
    assert_eq!(logic.poll_end(), None);

    let gone = again + MS * 601;
    logic.leader_failed(gone, "no answer".into());
    let why = "arm:1 does not say where its joints are: no answer";
    expect_end(&mut logic, End::Failed, why);
    let refused = logic.follow(gone, ME, FollowLeader::default());
    assert_eq!(refused, Err(why.into()));
    // At the start, its driver may start, too.
    assert_eq!(logic.trouble(), None);
    let later = now + MS * 3_001;
    logic.handle_timeout(later);
    assert_eq!(logic.trouble(), Some(why));
    logic.handle_leader(later, Duration::ZERO, leader(0.0));
    logic.handle_follower(later, follower());
    assert_eq!(logic.trouble(), None);
    assert_eq!(logic.poll_output(), None, "it does not go on by itself");
}

#[test]
fn it_ends_with_its_time_and_stops_when_a_client_wants_it() {
    let (mut logic, now) = logic(None);
    let command = FollowLeader { limit: Some(500) };
    logic.follow(now, ME, command).unwrap();
    logic.follow(now, None, command).unwrap();
    expect_end(&mut logic, End::Replaced, "a newer request has replaced it");
    assert_eq!(logic.wake_at(), now + MS * 500);
    logic.handle_timeout(now + MS * 499);
    assert_eq!(logic.poll_end(), None);
    logic.handle_timeout(now + MS * 500);
    expect_end(&mut logic, End::Limit, "its time is over");
    assert_eq!(logic.poll_output(), None, "the follower holds by itself");

    logic.follow(now, ME, command).unwrap();
    logic.handle_leader(now, Duration::ZERO, leader(0.0));
    logic.stop(None);
    expect_end(&mut logic, End::Stopped, "a client has stopped it");
    assert_eq!(logic.poll_output(), Some(Output::Stop));
    assert_eq!(logic.poll_output(), None);
    // A stop is always obeyed, and the driver stops what it moves at its end.
    logic.stop(None);
    assert_eq!(logic.poll_output(), Some(Output::Stop));
    logic.shut_down();
    assert_eq!(logic.poll_output(), None);
}

#[test]
fn a_follower_that_does_not_obey_ends_it() {
    let held = |client_id, for_client| MotionState {
        holder: Some(LeaseClient {
            client_id,
            for_client,
            name: Some("Bob".into()),
            ..LeaseClient::default()
        }),
        ..MotionState::default()
    };
    let halt = Halt {
        by: Some("Ann".into()),
        ..Halt::default()
    };
    let halted = MotionState {
        halt: Some(halt),
        ..MotionState::default()
    };
    for (state, why) in [
        (MotionState::default(), None),
        (held(1, Some(7)), None),
        (held(1, Some(8)), Some("Bob holds the lease of arm:0")),
        (halted, Some("arm:0 was halted by Ann")),
    ] {
        let (mut logic, _) = following();
        assert!(logic.wants_motion_state());
        logic.handle_motion(&state);
        assert_eq!(logic.wants_motion_state(), why.is_none());
        match why {
            None => assert_eq!(logic.poll_end(), None),
            Some(why) => expect_end(&mut logic, End::Failed, why),
        }
    }
    let (logic, _) = logic(None);
    assert!(!logic.wants_motion_state(), "nobody wants the follower");
}
