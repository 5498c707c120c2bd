//! Faults of controllers and of the line, resets, and the lamps that show them.

use super::*;

#[test]
fn a_silent_controller_stops_the_other_and_is_logged_once() {
    for (mood, words) in [
        (Mood::Silent, "the rear controller does not answer"),
        (Mood::Garbled, "the rear controller sends invalid replies"),
        (Mood::Half, "the rear controller sends incomplete replies"),
    ] {
        let mut robot = Robot::new(Check::Crc16);
        robot.advance(seconds(10));
        robot.drive(ALICE, AHEAD);
        robot.pair.mood[1] = mood;
        robot.advance(seconds(2));
        assert!(!robot.logic.is_ready());
        assert_eq!(robot.pair.speeds[0], [0; 2], "{mood:?}");
        for _ in 0..80 {
            robot.advance(Duration::from_millis(100));
            robot.drive(ALICE, AHEAD);
            robot.ask(1);
        }
        let warnings = robot.warnings();
        // In a reply of unknown length, a missing end is just an invalid reply.
        let expected = if mood == Mood::Half { 2 } else { 1 };
        assert_eq!(warnings.len(), expected, "{warnings:?}");
        assert!(warnings[0].starts_with(words), "{warnings:?}");
        assert_eq!(robot.answers, []);

        robot.pair.mood[1] = Mood::Well;
        robot.advance(seconds(4));
        assert!(robot.logic.is_ready());
        let Some(Note::Back { refused: 80, .. }) = robot.notes.last() else {
            panic!("{:?}", robot.notes);
        };
        assert!(!robot.turns(), "commands sent meanwhile are dropped");
        robot.answers.clear();
        robot.ask(2);
        assert_eq!(robot.answers.len(), 1);
        robot.drive(ALICE, AHEAD);
        assert!(robot.turns());
    }
}

#[test]
fn an_unplugged_port_is_reopened_and_the_settings_are_sent_again() {
    let mut robot = Robot::new(Check::Crc16);
    robot.advance(seconds(10));
    robot.drive(ALICE, AHEAD);
    robot.plugged = false;
    robot.advance(seconds(10));
    assert_eq!(robot.warnings().len(), 2, "{:?}", robot.warnings());
    robot.plugged = true;
    robot.pair.heard.clear();
    robot.advance(Duration::from_millis(2_100));
    assert!(robot.logic.is_ready() && !robot.turns());
    assert_eq!((robot.opened, robot.pair.take(28).len()), (2, 2));
    robot.advance(seconds(3));
    assert!(!robot.turns());
}

#[test]
fn after_one_invalid_reply_the_reading_is_repeated() {
    let mut robot = Robot::new(Check::Crc16);
    robot.pair.speeds = [[1484; 2]; 2];
    let origin = Origin::default();
    robot.logic.ask(robot.now, origin);
    let Some(ControllerAction::Exchange { .. }) = robot.logic.poll_action(robot.now) else {
        panic!("it reads");
    };
    robot.logic.exchanged(robot.now, Ok(vec![0; 7]));
    let step = robot.logic.poll_action(robot.now);
    assert_eq!(
        step,
        Some(ControllerAction::Wait(PACKET_GAP)),
        "both sides discard the packet"
    );
    robot.settle();
    assert_eq!(robot.answers.len(), 1);
    assert_eq!(robot.answers[0].1.front_right_mm_s, 299);
    assert_eq!(robot.logic.counters().bad_replies, 1);
    assert_eq!(robot.warnings(), [""; 0]);
}

#[test]
fn each_error_bit_counts_once_it_is_confirmed() {
    let mut robot = Robot::new(Check::Legacy);
    robot.drive(ALICE, AHEAD);
    // The error lasts only for a moment.
    robot.pair.status = [1, 0];
    robot.advance(Duration::from_millis(500));
    robot.pair.status = [2, 0];
    robot.advance(Duration::from_millis(500));
    robot.pair.status = [0, 0];
    robot.advance(seconds(1));
    robot.drive(ALICE, AHEAD);
    assert!(robot.turns());
    assert_eq!(robot.warnings(), [""; 0]);

    // One bit stays set while another one flickers.
    for bits in [0x05, 0x04, 0x05, 0x04, 0x04, 0x04] {
        robot.pair.status = [0, bits];
        robot.advance(Duration::from_millis(250));
    }
    assert!(!robot.turns());
    assert_eq!(robot.warnings()[0], "rear controller: emergency stop");
    robot.drive(ALICE, AHEAD);
    assert!(!robot.turns(), "not while the error lasts");
    robot.pair.status = [0, 0];
    robot.advance(seconds(1));
    assert_eq!(
        robot.notes.last(),
        Some(&Note::Special(ControllerNote::Clean))
    );
    robot.drive(ALICE, AHEAD);
    assert!(robot.turns());
}

#[test]
fn a_low_battery_survives_a_reset_and_an_outage() {
    let mut robot = Robot::with(Check::Legacy, |settings| settings.lines.reset = true);
    robot.drive(ALICE, AHEAD);
    // Together with an error that leads to a reset.
    robot.pair.status = [0x21, 0];
    robot.advance(seconds(2));
    assert!(!robot.turns());
    assert_eq!(robot.logic.counters().resets, 1, "once per episode");
    robot.pair.status = [0, 0];
    robot.advance(seconds(8));
    assert_eq!(robot.logic.counters().resets, 2, "and when idle");
    robot.plugged = false;
    robot.advance(seconds(2));
    robot.plugged = true;
    robot.advance(seconds(3));
    assert!(robot.logic.is_ready());
    robot.drive(ALICE, AHEAD);
    assert!(!robot.turns());
    robot.ask(1);
    assert_eq!(robot.answers.len(), 1, "requests are still answered");
}

#[test]
fn the_low_battery_bit_depends_on_the_firmware() {
    for (status_bytes, bits, low) in [
        (1, 0x20, true),
        (2, 0x20, false),
        (2, 0x800, true),
        (4, 0x8_0000, true),
        (4, 0x20, false),
    ] {
        let check = if status_bytes == 1 {
            Check::Legacy
        } else {
            Check::Crc16
        };
        let mut robot = Robot::new(check);
        robot.pair.status_bytes = status_bytes;
        robot.plugged = false;
        robot.advance(seconds(1));
        robot.plugged = true;
        robot.advance(seconds(1));
        robot.pair.status = [bits, 0];
        robot.advance(seconds(3));
        let refusal = robot.logic.monitors.refusal();
        assert_eq!(
            refusal == Some(Refusal::BatteryLow),
            low,
            "{status_bytes} {bits:x}"
        );
    }
}

#[test]
fn a_high_temperature_is_confirmed_and_ends_only_below_the_lower_limit() {
    let mut robot = Robot::new(Check::Crc16);
    let at = |robot: &mut Robot, tenths| {
        robot.pair.temperature = tenths;
        robot.advance(seconds(6));
        robot.drive(ALICE, AHEAD);
        robot.turns()
    };
    assert!(at(&mut robot, 700));
    assert!(!at(&mut robot, 701));
    assert!(!at(&mut robot, 650));
    assert!(!at(&mut robot, 600));
    assert!(at(&mut robot, 599));
    assert!(at(&mut robot, 650));
    let is_of_temperature =
        |note: &&Note| matches!(note, Note::Special(ControllerNote::Temperature { .. }));
    assert_eq!(robot.notes.iter().filter(is_of_temperature).count(), 2);
}

#[test]
fn a_reset_is_a_pulse_a_pause_and_the_settings_again() {
    let mut robot = Robot::with(Check::Crc16, |settings| settings.lines.reset = true);
    robot.drive(ALICE, AHEAD);
    robot.pair.heard.clear();
    let before = robot.now;
    robot.now += seconds(7);
    // Until the pause.
    while robot.lines != [(Line::Reset, true), (Line::Reset, false)] {
        let step = robot.logic.poll_action(robot.now).unwrap();
        robot.carry_out(step);
    }
    robot.drain();
    robot.logic.drive(robot.now, &[ALICE], AHEAD);
    robot.logic.ask(robot.now, Origin::default());
    robot.drain();
    assert_eq!(robot.answers.last().unwrap().1, WheelSpeeds::STOP);
    assert_eq!(robot.logic.counters().refused, 1);
    robot.settle();
    assert!(robot.now - before >= seconds(7) + Duration::from_millis(260));
    assert_eq!(robot.pair.take(28).len(), 2);
    assert!(robot.logic.is_ready() && !robot.turns());
    robot.advance(seconds(15));
    assert_eq!(robot.logic.counters().resets, 3, "every 7 s from then on");
}

#[test]
fn the_leds_show_the_state() {
    let mut robot = Robot::with(Check::Crc16, |settings| {
        settings.lines.green = true;
        settings.lines.red = true;
    });
    assert_eq!(
        robot.lines,
        [
            (Line::Green, false),
            (Line::Red, false),
            (Line::Green, true)
        ]
    );
    robot.lines.clear();
    robot.drive(ALICE, AHEAD);
    assert_eq!(robot.lines, [(Line::Green, false), (Line::Green, true)]);
    robot.lines.clear();
    robot.plugged = false;
    robot.advance(seconds(1));
    assert_eq!(robot.lines, [(Line::Green, false), (Line::Red, true)]);
}

#[test]
fn firmware_with_fewer_commands_is_accepted() {
    let mut robot = Robot::new(Check::Crc16);
    robot.pair.unknown = vec![14, 82];
    robot.plugged = false;
    robot.advance(seconds(1));
    robot.plugged = true;
    robot.notes.clear();
    robot.advance(seconds(30));
    assert!(robot.logic.is_ready());
    assert_eq!(
        robot.warnings(),
        ["the controllers do not report the temperature"]
    );
    robot.drive(ALICE, AHEAD);
    assert!(robot.turns());
    // The line may have caused the failure, so the driver keeps trying.
    robot.pair.unknown.clear();
    robot.pair.temperature = 800;
    robot.advance(seconds(7));
    assert!(!robot.turns());
}
