//! Start and end of motion.

use amber_proto::{Device, DeviceType, roboclaw};
use amber_robot::errand::stop_trajectory;
use amber_robot::robot::{User, UserOrder};
use amber_values::WheelSpeeds;
use prost::Message;

use super::*;
use crate::testing::robot;

#[test]
fn a_motion_drives_the_wheels_and_holds_half_a_second() {
    let mut world = World::new();
    let id = world.session("cmd_vel");
    assert_eq!(
        world.outputs,
        [Output::Open(User(1), Some(address(CLIENT)))]
    );
    world.text(id, r#"{"linear":{"x":0.2},"angular":{"z":0.5}}"#);
    assert_eq!(world.driven(), [WheelSpeeds::sides(100, 300)]);
    world.wait(499, CLIENT);
    assert_eq!(world.driven(), []);
    world.wait(1, CLIENT);
    assert_eq!(world.driven(), [WheelSpeeds::STOP]);
    world.text(id, r#"{"linear":{"x":1e999}}"#);
    world.text(id, "hello");
    assert_eq!(world.driven(), []);
    assert_eq!(world.count("invalid motion"), 2);
}

#[test]
fn close_silence_and_the_end_of_the_gateway_stop_the_wheels() {
    let go = r#"{"linear":{"x":0.2}}"#;
    let end = [UserOrder::Drive(robot().wheels, WheelSpeeds::STOP)];
    let mut world = World::new();
    let id = world.session("cmd_vel");
    world.text(id, go);
    world.outputs.clear();
    assert!(world.frame(CLIENT, id, Op::Close).is_empty());
    let expected = [
        Output::Order(User(1), end[0].clone()),
        Output::Close(User(1)),
    ];
    assert_eq!(world.outputs, expected);
    assert!(world.server.sessions.is_empty());

    let mut world = World::new();
    let id = world.session("cmd_vel");
    world.text(id, go);
    world.outputs.clear();
    world.server.stop(world.now, &mut world.out);
    world.drain();
    assert_eq!(closes(&world.sent_to(CLIENT)), 1);
    assert_eq!(world.outputs, expected);
}

#[test]
fn one_session_holds_the_controls() {
    let mut world = World::new();
    let first = world.session("cmd_vel");
    let other = "192.168.0.10:1";
    let second = world.connect(other, "cmd_vel").unwrap();
    let go = Op::Text(br#"{"linear":{"x":0.1}}"#);
    world.frame(CLIENT, first, go);
    world.frame(other, second, go);
    assert_eq!(world.driven().len(), 1);
    assert_eq!(world.count("another session drives"), 1);
    let drives: Vec<_> = world
        .server
        .sessions(world.now)
        .iter()
        .map(|it| it.drives)
        .collect();
    assert_eq!(drives, [true, false]);
    world.frame(CLIENT, first, Op::Close);
    world.frame(other, second, go);
    assert_eq!(world.driven(), [WheelSpeeds::STOP, WheelSpeeds::all(100)]);
}

#[test]
fn a_raw_motors_command_obeys_the_same_rules() {
    let mut world = World::new();
    let id = world.session("roboclaw/0");
    let all = |speed| {
        let wheels = ["frontLeft", "frontRight", "rearLeft", "rearRight"];
        let members = wheels.map(|wheel| format!("\"{wheel}Speed\":{speed}"));
        format!("{{\"motorsCommand\":{{{}}}}}", members.join(","))
    };
    world.text(id, &all(4_000));
    assert_eq!(world.driven(), [WheelSpeeds::all(400)]);
    world.wait(500, CLIENT);
    assert_eq!(world.driven(), [WheelSpeeds::STOP]);
}

#[test]
fn motion_through_the_collision_avoidance_obeys_the_same_rules() {
    let speeds = r#"{"frontLeftSpeed":9000,"frontRightSpeed":9000,
        "rearLeftSpeed":9000,"rearRightSpeed":9000}"#;
    for command in [
        "setSpeed\":true,\"motorsSpeed",
        "[amber.roboclaw_proto.motorsCommand]",
    ] {
        let mut world = World::new();
        let driver = world.session("amber/9/0");
        let other = "192.168.0.10:1";
        let second = world.connect(other, "cmd_vel").unwrap();
        world.outputs.clear();
        world.text(driver, &format!("{{\"{command}\":{speeds}}}"));
        let guarded = Device::new(DeviceType::COLLISION_AVOIDANCE, 0);
        let drive = |mm_s| {
            let order = UserOrder::Drive(guarded, WheelSpeeds::all(mm_s));
            Output::Order(User(1), order)
        };
        assert_eq!(world.outputs, [drive(400)], "{command}");
        // The wheels are the same.
        world.frame(other, second, Op::Text(br#"{"linear":{"x":0.1}}"#));
        assert_eq!(world.count("another session drives"), 1);
        world.outputs.clear();
        world.wait(500, CLIENT);
        world.outputs.retain(|it| matches!(it, Output::Order(..)));
        assert_eq!(world.outputs, [drive(0)]);
    }
}

#[test]
fn targets_and_trajectories_need_the_seat_and_end_with_their_session() {
    let targets = Device::new(DeviceType::DRIVE_TO_POINT, 0);
    let path = Device::new(DeviceType::PID_FOLLOW_TRAJECTORY, 0);
    let no_targets = UserOrder::Targets(targets, Vec::new());
    let no_path = UserOrder::Message(path, stop_trajectory());
    let go = r#"{"targets":[{"x":1,"y":2}]}"#;
    let as_message =
        r#"{"setTargets":true,"targets":{"longitudes":[1],"latitudes":[2],"radiuses":[1]}}"#;
    for (name, start, end) in [
        ("goal", go, &no_targets),
        ("amber/8/0", as_message, &no_targets),
        ("amber/10/0", r#"{"startExecution":true}"#, &no_path),
        ("amber/10/0", r#"{"stepExecution":true}"#, &no_path),
    ] {
        let mut world = World::new();
        let id = world.session(name);
        let other = "192.168.0.10:1";
        let driver = world.connect(other, "cmd_vel").unwrap();
        let drive = Op::Text(br#"{"linear":{"x":0.1}}"#);
        world.frame(other, driver, drive);
        world.outputs.clear();
        world.text(id, start);
        assert_eq!(world.outputs, [], "{name}");
        assert_eq!(world.count("another session drives"), 1);

        world.frame(other, driver, Op::Close);
        world.outputs.clear();
        world.text(id, start);
        assert_eq!(world.outputs.len(), 1, "{name}: {:?}", world.outputs);
        world.frame(CLIENT, id, Op::Close);
        let ends = Output::Order(User(1), end.clone());
        assert_eq!(world.outputs[1], ends, "{name}");
    }
}

#[test]
fn commands_are_limited_to_fifty_per_second() {
    let mut world = World::new();
    let id = world.session("cmd_vel");
    for _ in 0..1_000 {
        world.text(id, r#"{"linear":{"x":0.2}}"#);
        world.wait(1, CLIENT);
    }
    let driven = world.driven().len();
    assert!((49..=51).contains(&driven), "{driven}");
    let id = world.session("goal");
    for _ in 0..60 {
        world.text(id, r#"{"targets":[]}"#);
    }
    assert_eq!(world.count("too many messages"), 10);
}

#[test]
fn motion_in_one_message_with_a_request_obeys_the_same_rules() {
    let mut world = World::new();
    let id = world.session("roboclaw/0");
    world.outputs.clear();
    let both = r#"{"synNum":7,"currentSpeedRequest":true,"motorsCommand":{
        "frontLeftSpeed":100,"frontRightSpeed":100,"rearLeftSpeed":100,"rearRightSpeed":100}}"#;
    world.text(id, both);
    let passed_on = world.outputs.iter().find_map(|output| match output {
        Output::Order(_, UserOrder::Message(_, message)) => Some(message.clone()),
        _ => None,
    });
    let message = roboclaw::DriverMsg::decode(passed_on.unwrap()).unwrap();
    assert_eq!(message.motors_command, None);
    assert_eq!(message.current_speed_request, Some(true));
    assert_eq!(message.syn_num, Some(7));
    // The motion ends by itself.
    world.wait(600, CLIENT);
    assert_eq!(world.driven(), [WheelSpeeds::all(100), WheelSpeeds::STOP]);
}
