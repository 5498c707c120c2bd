//! Reports of the robot to sessions.

use amber_proto::hokuyo::Scanner;
use amber_robot::robot::{Measurement, User, UserOrder};
use amber_values::{MapPose, Scan, Target, WheelSpeeds};

use super::*;
use crate::testing::robot;

#[test]
fn targets_come_with_y_up_and_reports_follow() {
    let mut world = World::new();
    let id = world.session("goal");
    world.outputs.clear();
    world.text(id, r#"{"targets":[{"x":1,"y":2,"radius":0.5}]}"#);
    let target = Target {
        x_m: 1.0,
        y_m: -2.0,
        radius_m: 0.5,
    };
    let order = UserOrder::Targets(robot().targets, vec![target]);
    assert_eq!(world.outputs, [Output::Order(User(1), order)]);
    let measured = Measurement::Targets {
        next: vec![target],
        visited: vec![],
    };
    let sent = world.event(Event::Measured(robot().targets, measured));
    assert_eq!(json(&sent[0])["next"][0]["y"], 2.0);
    world.text(id, "{}");
    assert_eq!(world.count("invalid targets"), 1);
}

#[test]
fn reports_come_ten_times_per_second_while_the_robot_measures() {
    let mut world = World::new();
    let id = world.session("odom");
    let wheels = robot().wheels;
    let watched = [
        Output::Watch(Topic::Wheels(wheels)),
        Output::Watch(Topic::Pose(robot().location)),
    ];
    assert_eq!(world.outputs, watched);
    world.frame(CLIENT, id, Op::Pong);
    world.event(Event::Measured(
        wheels,
        Measurement::Wheels(WheelSpeeds::all(200)),
    ));
    let sent = world.wait(1_000, CLIENT);
    let texts: Vec<_> = sent
        .iter()
        .filter(|(_, bytes)| op(bytes) != Op::Ping)
        .collect();
    assert_eq!(texts.len(), 10);
    assert_eq!(json(&texts[0].1)["twist"]["twist"]["linear"]["x"], 0.2);
    // Old measurements are not repeated.
    let sent = world.wait(1_000, CLIENT);
    assert!(sent.iter().all(|(_, bytes)| op(bytes) == Op::Ping));
    world.outputs.clear();
    world.frame(CLIENT, id, Op::Close);
    assert_eq!(world.outputs.len(), 2);
    assert!(matches!(
        world.outputs[0],
        Output::Unwatch(Topic::Wheels(_))
    ));
}

#[test]
fn a_scan_says_what_its_laser_says() {
    let mut world = World::new();
    let id = world.session("scan");
    world.frame(CLIENT, id, Op::Pong);
    let laser = robot().scanner;
    let scan = |world: &mut World| {
        let scan = Scan::new(&[-1.0, 1.0], &[1_000, 7_000], None).unwrap();
        let sent = world.event(Event::Measured(laser, Measurement::Scan(scan)));
        json(&sent[0])
    };
    // Another scanner than that of the Capo, as its scans show.
    assert_eq!(scan(&mut world)["range_max"], 7.0);
    let told = Measurement::Scanner(Box::new(Scanner {
        min_distance: Some(60),
        max_distance: Some(4_095),
        ..Scanner::default()
    }));
    world.event(Event::Measured(laser, told));
    let sent = scan(&mut world);
    assert_eq!(
        (&sent["range_min"], &sent["range_max"]),
        (&0.06.into(), &4.095.into())
    );
    assert_eq!(sent["ranges"], serde_json::json!([0.0, 1.0]));
}

#[test]
fn a_status_has_what_the_robot_does() {
    let mut world = World::new();
    let go = world.connect("192.168.0.10:1", "cmd_vel").unwrap();
    world.frame("192.168.0.10:1", go, Op::Text(br#"{"linear":{"x":0.3}}"#));
    let id = world.session("galileo/status");
    world.frame(CLIENT, id, Op::Pong);
    world.event(Event::Measured(
        robot().wheels,
        Measurement::Wheels(WheelSpeeds::all(200)),
    ));
    world.event(Event::Measured(
        robot().location,
        Measurement::Pose(MapPose::new(1.0, 0.0, 0.0)),
    ));
    world.event(Event::Measured(
        robot().targets,
        Measurement::Targets {
            next: vec![Target::new(4.0, 4.0)],
            visited: vec![],
        },
    ));
    let sent = world.wait(100, CLIENT);
    let texts: Vec<_> = sent
        .iter()
        .filter(|(_, bytes)| op(bytes) != Op::Ping)
        .collect();
    let status = json(&texts[0].1);
    assert_eq!(status["controlSpeedX"], 0.3);
    assert_eq!(status["currentSpeedX"], 0.2);
    assert_eq!(status["targetDistance"], 5.0);
}

#[test]
fn a_client_whose_motion_is_refused_is_told_why() {
    let mut world = World::new();
    let id = world.session("cmd_vel");
    world.text(id, r#"{"linear":{"x":0.2}}"#);
    let why = "roboclaw:0 refused the request: amber goto holds the lease of this device";
    let sent = world.event(Event::Refused(User(1), why.into()));
    assert_eq!(sent.len(), 1);
    assert_eq!(json(&sent[0]), serde_json::json!({ "refused": why }));
}
