//! A robot with one controller, and where its motors look.

use super::*;

/// With one controller, at the address of the rear one.
fn single(change: impl FnOnce(&mut Options)) -> Robot {
    let mut options = Options {
        address: Some(0x80),
        ..Options::default()
    };
    change(&mut options);
    let mut robot = Robot::with(Check::Crc16, |all| *all = settings(options));
    assert!(robot.logic.is_ready());
    robot.pair.mood[0] = Mood::Silent;
    robot.pair.heard.clear();
    robot
}

#[test]
fn one_controller_drives_two_wheels() {
    let mut robot = single(|_| {});
    let speeds = WheelSpeeds {
        front_left_mm_s: -300,
        rear_left_mm_s: -100,
        ..AHEAD
    };
    robot.drive(ALICE, speeds);
    assert_eq!(robot.pair.take(37).len(), 1);
    assert_eq!(robot.pair.speeds, [[0; 2], [1484, -989]]);
    robot.pair.speeds[1] = [1484, -494];
    robot.ask(1);
    let (_, read) = robot.answers.last().unwrap();
    assert_eq!(*read, WheelSpeeds::sides(-99, 299));
    robot.advance(seconds(10));
    assert!(!robot.turns(), "4 s after the last command");
    assert!(robot.logic.is_ready() && robot.logic.trouble().is_none());
    robot.drive(ALICE, AHEAD);
    robot.pair.mood[1] = Mood::Silent;
    robot.advance(seconds(2));
    assert_eq!(
        robot.warnings(),
        ["the controller does not answer; retrying"]
    );
}

#[test]
fn faults_of_the_only_controller_disable_driving() {
    let mut robot = single(|_| {});
    robot.drive(ALICE, AHEAD);
    robot.pair.status[1] = 1;
    robot.advance(seconds(3));
    assert!(!robot.turns());
    assert_eq!(robot.warnings()[0], "controller: emergency stop");
    robot.pair.status[1] = 0;
    robot.advance(seconds(3));
    robot.pair.temperature = 701;
    robot.drive(ALICE, AHEAD);
    assert!(robot.turns());
    robot.advance(seconds(8));
    robot.drive(ALICE, AHEAD);
    assert!(!robot.turns(), "too hot");
}

#[test]
fn motors_that_look_to_both_sides_turn_in_opposite_directions() {
    let mut robot = single(|options| options.reverse_right = Some(true));
    robot.drive(ALICE, AHEAD);
    assert_eq!(robot.pair.speeds[1], [-1484, 1484]);
    robot.ask(1);
    let (_, read) = robot.answers.last().unwrap();
    assert_eq!(*read, WheelSpeeds::sides(299, 299));
}
