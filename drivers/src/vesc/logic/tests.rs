//! Tests of the rules with a simulated clock and the simulated VESCs.

use amber_sim::vesc::{CAN_ID, Firmware, framed};
use amber_sim::wheels::Drive;
use amber_values::WheelSpeeds;

use super::*;
use crate::wheels::Output;
use crate::wheels::testing::{ALICE, BOB};

use self::robot::{AHEAD, Cable, MS, Robot, brake, erpm, options};

mod robot;

#[test]
fn both_are_asked_for_their_firmware_and_stopped_first() {
    let passed_on = |payload: &[u8]| [&[34, CAN_ID], payload].concat();
    for (firmware, version) in [
        (Firmware::V6_02, "6.02"),
        (Firmware::V5_02, "5.02"),
        (Firmware::V3_40, "3.40"),
    ] {
        let mut robot = Robot::starting(firmware, |_| {});
        assert_eq!(robot.drive(ALICE, AHEAD), Some(Refusal::Away));
        robot.until(|robot| robot.logic.is_ready());
        let sent: Vec<_> = robot
            .sent
            .iter()
            .map(|(.., payload)| payload.clone())
            .collect();
        let expected = [
            vec![0],
            brake(),
            vec![4],
            passed_on(&[0]),
            passed_on(&brake()),
            passed_on(&[4]),
        ];
        assert_eq!(sent, expected, "{firmware:?}");
        assert!(!robot.turns());
        let ready = format!(
            "ready: VESCs with firmware {version} on 60_MK5 and {version} on 60_MK5, speeds from 9 mm/s"
        );
        assert_eq!(robot.heard.notes, [ready]);
    }
}

#[test]
fn each_may_have_a_port_of_its_own() {
    let mut robot = Robot::with(Firmware::V6_02, |options| {
        options.can_id = None;
        options.second_port = Some("/dev/ttyACM1".into());
        options.reverse_right = Some(true);
    });
    assert!(robot.sent.iter().all(|(.., payload)| payload[0] != 34));
    robot.sent.clear();
    robot.drive(ALICE, WheelSpeeds::sides(300, 200));
    let motors: Vec<_> = robot
        .sent
        .iter()
        .map(|(_, port, it)| (*port, it.clone()))
        .collect();
    let [first, second] = [erpm(3_342), erpm(-2_228)];
    assert_eq!(motors[..2], [(Unit::First, first), (Unit::Second, second)]);
    robot.advance(200);
    robot.ask();
    robot.advance(60);
    assert_eq!(robot.heard.answers, [WheelSpeeds::sides(300, 200)]);
    // The first one is stopped when the second one is gone, and not only by its own time limit.
    robot.plugged = false;
    robot.sent.clear();
    robot.until(|robot| robot.closed > 0);
    let last = robot.sent[robot.sent.len() - 2..].iter();
    let last: Vec<_> = last.map(|(_, port, it)| (*port, it.clone())).collect();
    assert_eq!(last, [(Unit::First, brake()), (Unit::Second, brake())]);
}

#[test]
fn commands_are_sent_at_once_and_repeated_until_the_idle_stop() {
    let mut robot = Robot::new();
    robot.sent.clear();
    robot.drive(ALICE, WheelSpeeds::sides(300, -200));
    let sent = robot.now;
    let turn = erpm(3_342);
    assert_eq!(robot.sent[0].2, turn);
    assert_eq!(robot.sent[1].2, [&[34, CAN_ID], &erpm(-2_228)[..]].concat());
    robot.advance(3_900);
    assert!(robot.turns(), "longer than the VESCs themselves allow");
    let motors = robot.motors();
    assert!((35..=41).contains(&motors.len()), "{}", motors.len());
    assert!(motors.iter().all(|payload| *payload == turn));
    robot.until(|robot| robot.stands());
    // From 300 mm/s with 2 m/s².
    let took = robot.now - sent;
    assert!((4_000..4_400).contains(&took.as_millis()), "{took:?}");
    let stopped = "stopped the wheels: no command has arrived";
    assert_eq!(robot.heard.notes[1..], [stopped]);
    robot.motors();
    robot.advance(3_500);
    let motors = robot.motors();
    assert!((25..=33).contains(&motors.len()), "{}", motors.len());
    assert!(motors.iter().all(|payload| *payload == brake()));
    // Then the wheels can be turned by hand.
    robot.advance(60_000);
    assert_eq!(robot.motors(), [[0; 0]; 0]);
    assert_eq!(robot.drives(), [Drive::RELEASED; 2]);
}

#[test]
fn without_the_driver_the_vescs_release_the_motors_or_not() {
    for (firmware, releases) in [(Firmware::V6_02, true), (Firmware::WithoutTimeout, false)] {
        let mut robot = Robot::with(firmware, |_| {});
        robot.drive(ALICE, AHEAD);
        robot.advance(1_700);
        // The driver does not run.
        robot.pass(robot.now + 1_500 * MS);
        assert_eq!(robot.turns(), !releases, "{firmware:?}");
        // It goes on, and does not drive on.
        robot.logic.handle_timeout(robot.now);
        robot.advance(500);
        assert!(!robot.turns(), "{firmware:?}");
        let why = "stopped the wheels: no command has reached the controllers for some time";
        assert!(
            robot.heard.notes.contains(&why.to_owned()),
            "{:?}",
            robot.heard.notes
        );
    }
}

#[test]
fn a_flood_of_commands_is_thinned_out_and_a_stop_is_not() {
    let mut robot = Robot::new();
    robot.sent.clear();
    robot.logic.set_listened(robot.now, true);
    for step in 0..1_000 {
        robot.drive(ALICE, WheelSpeeds::all(300 + step % 2 * 100));
        robot.advance(1);
    }
    // The harness takes 2 ms for each packet.
    let passed = robot.time().as_millis() as usize;
    let count = robot.motors().len();
    assert!(
        (passed / 20..=passed / 10).contains(&count),
        "{count} in {passed} ms"
    );
    assert!(
        robot.heard.published.len() > passed / 70,
        "{}",
        robot.heard.published.len()
    );
    robot.sent.clear();
    robot.drive(ALICE, AHEAD);
    robot.drive(ALICE, WheelSpeeds::STOP);
    assert_eq!(robot.motors().last(), Some(&brake()));
    assert!(!robot.turns());
}

#[test]
fn speeds_are_measured_after_the_request_and_published() {
    let mut robot = Robot::new();
    robot.drive(ALICE, WheelSpeeds::sides(300, -200));
    robot.advance(100);
    robot.ask();
    robot.ask();
    assert_eq!(robot.heard.answers, []);
    robot.advance(60);
    assert_eq!(robot.heard.answers, [WheelSpeeds::sides(300, -200); 2]);
    assert_eq!(robot.heard.published, []);
    robot.logic.set_listened(robot.now, true);
    robot.advance(1_000);
    assert!(
        (19..=21).contains(&robot.heard.published.len()),
        "{:?}",
        robot.heard.published
    );
    for (speeds, age) in &robot.heard.published {
        assert_eq!(*speeds, WheelSpeeds::sides(300, -200));
        assert!(*age <= 5 * MS, "{age:?}");
    }
}

#[test]
fn the_battery_is_told_and_published_once_a_second() {
    let mut robot = Robot::new();
    let battery = robot.logic.battery(robot.now).unwrap();
    assert_eq!((battery.mv, battery.is_low), (12_600, false));
    robot.advance(60);
    assert!(robot.logic.battery(robot.now).unwrap().age <= 60 * MS);
    let mut count = 0;
    for _ in 0..35 {
        robot.advance(50);
        count += usize::from(robot.logic.battery_to_publish(robot.now).is_some());
    }
    assert_eq!(count, 2);
    robot.cable = Cable::Silent;
    robot.advance(2_000);
    let refused = robot.logic.battery(robot.now).unwrap_err();
    assert!(refused.contains("first VESC does not answer"), "{refused}");
}

#[test]
fn the_rules_of_all_wheels_hold() {
    let mut robot = Robot::new();
    assert_eq!(
        robot.drive(ALICE, WheelSpeeds::all(-1_201)),
        Some(Refusal::TooFast {
            fastest_mm_s: 1_201,
            max_mm_s: 1_200
        })
    );
    assert!(!robot.turns());
    robot.drive(ALICE, AHEAD);
    robot.drive(BOB, AHEAD);
    robot.advance(20);
    robot.logic.client_died(ALICE);
    robot.advance(20);
    assert!(robot.turns(), "Bob has taken over");
    robot.logic.client_died(BOB);
    robot.advance(20);
    assert!(!robot.turns());
    robot.motors();
    let twisted = WheelSpeeds {
        rear_left_mm_s: 100,
        ..AHEAD
    };
    for _ in 0..2 {
        robot.drive(ALICE, twisted);
        robot.advance(20);
        assert_eq!(robot.motors()[0], erpm(2_228));
    }
    // As slow as the speed control does not hold.
    for _ in 0..2 {
        robot.drive(ALICE, WheelSpeeds::sides(8, -8));
        robot.advance(20);
        assert_eq!(robot.motors().last(), Some(&brake()));
    }
    for words in ["two speeds for one side", "holds no speed below 9 mm/s"] {
        let is_about = |note: &&String| note.contains(words);
        assert_eq!(
            robot.heard.notes.iter().filter(is_about).count(),
            1,
            "{words}"
        );
    }
}

#[test]
fn a_fault_of_one_stops_both_and_ends_by_itself() {
    let mut robot = Robot::new();
    robot.drive(ALICE, AHEAD);
    robot.advance(200);
    robot.vescs.set_battery_v(Some(10.0));
    robot.until(|robot| robot.logic.refusal().is_some());
    let fault = "the first VESC reports UNDER_VOLTAGE: check the battery and its wires, and the \
                 voltage limits in VESC Tool";
    assert_eq!(robot.trouble(), format!("driving disabled: {fault}"));
    assert!(robot.logic.battery(robot.now).unwrap().is_low);
    robot.motors();
    assert_eq!(robot.drive(ALICE, AHEAD), Some(Refusal::Errors));
    robot.advance(1_000);
    assert!(robot.motors().iter().all(|payload| *payload == brake()));
    let said =
        |robot: &Robot, text: &str| robot.heard.notes.iter().filter(|it| *it == text).count();
    assert_eq!(said(&robot, fault), 1);
    assert_eq!(
        said(&robot, "stopped the wheels: a controller has an error"),
        1
    );
    robot.vescs.set_battery_v(None);
    robot.advance(100);
    assert_eq!(robot.trouble(), "");
    assert_eq!(said(&robot, "the VESCs report no more faults"), 1);
    assert!(!robot.turns(), "an old command");
    // It comes again and again: logged every ten seconds.
    for _ in 0..30 {
        robot.vescs.set_battery_v(Some(10.0));
        robot.advance(400);
        robot.vescs.set_battery_v(None);
        robot.advance(100);
    }
    assert_eq!(said(&robot, fault), 2);
    assert_eq!(said(&robot, "the VESCs report no more faults"), 2);
    assert_eq!(robot.drive(ALICE, AHEAD), None);
    assert!(robot.turns());
}

/// The payload of values: the number on the CAN bus, the temperature in tenths of a degree, the state.
fn values(id: u8, tenths: i16, status: u8) -> Vec<u8> {
    let mut payload = vec![0; 74];
    payload[0] = 4;
    payload[1..3].copy_from_slice(&tenths.to_be_bytes());
    payload[58] = id;
    payload[73] = status;
    payload
}

/// The payload of a version with this kind of device.
fn version(kind: u8) -> Vec<u8> {
    [&[0, 6, 2, b'a', 0][..], &[0; 14], &[kind]].concat()
}

/// The logic after these answers, one to each question, and what it has logged.
fn after(answers: &[Vec<u8>]) -> (VescLogic, Vec<String>) {
    let (settings, ..) = options().settings().unwrap();
    let mut now = Instant::now();
    let mut logic = VescLogic::new(settings, now);
    let mut notes = Vec::new();
    assert_eq!(logic.poll_action(now), Some(VescAction::Open));
    logic.opened(now);
    for answer in answers {
        now += 60 * MS;
        while logic.poll_action(now).is_some() {}
        logic.handle_bytes(now, Unit::First, &framed(answer));
        while let Some(output) = logic.poll_output() {
            if let Output::Say(note) = output {
                notes.push(note.to_string());
            }
        }
    }
    (logic, notes)
}

#[test]
fn a_kill_switch_and_heat_are_told() {
    let mut answers = vec![
        version(0),
        values(11, 250, 0),
        version(0),
        values(CAN_ID, 799, 0),
        values(11, 801, 0),
        values(CAN_ID, 750, 2),
    ];
    let (logic, notes) = after(&answers);
    let hot =
        "the first VESC is hot: 80.1 C; when it gets hotter it reduces the power of its motor";
    let off = "a switch at the second VESC keeps its motor off: check its kill switch";
    assert_eq!(notes[1..], [hot, off]);
    assert_eq!(logic.refusal(), Some(Refusal::Errors));
    let trouble = logic.trouble().unwrap().into_owned();
    assert_eq!(trouble, format!("driving disabled: {off}"));
    // The state of the second one is that of the last round, until it has answered.
    answers.push(values(11, 699, 0));
    let (logic, notes) = after(&answers);
    assert_eq!(notes[3..], ["the first VESC is cool enough: 69.9 C"]);
    assert_eq!(logic.refusal(), Some(Refusal::Errors));
    answers.push(values(CAN_ID, 750, 1));
    let (logic, notes) = after(&answers);
    assert_eq!(notes[4..], ["the VESCs report no more faults"]);
    assert_eq!((logic.refusal(), logic.trouble()), (None, None));
}

#[test]
fn one_bad_answer_does_no_harm() {
    for cable in [Cable::Silent, Cable::Garbled, Cable::Noisy] {
        let mut robot = Robot::new();
        robot.drive(ALICE, AHEAD);
        robot.advance(1_000);
        robot.logic.set_listened(robot.now, true);
        for _ in 0..10 {
            robot.cable = cable;
            let count = robot.sent.len();
            robot.until(|robot| {
                let mut new = robot.sent[count..].iter();
                new.any(|(.., payload)| payload.ends_with(&[4]))
            });
            robot.cable = Cable::Well;
            robot.drive(ALICE, AHEAD);
            robot.advance(500);
        }
        assert_eq!((robot.opened, robot.closed), (1, 0), "{cable:?}");
        assert!(robot.turns());
        let bad = robot.logic.service.counters.bad_replies;
        assert_eq!(bad >= 5, cable != Cable::Noisy, "{cable:?}: {bad}");
        assert!(
            robot.heard.published.len() > 40,
            "{cable:?}: {}",
            robot.heard.published.len()
        );
        assert!(
            robot
                .heard
                .published
                .iter()
                .all(|(speeds, _)| *speeds == AHEAD)
        );
    }
}

#[test]
fn vescs_that_are_gone_are_stopped_blindly_and_wait_for_a_new_command_when_they_are_back() {
    for (cable, bus_works, problem) in [
        (
            Cable::Silent,
            true,
            "the first VESC does not answer: check its power",
        ),
        (
            Cable::Garbled,
            true,
            "the first VESC does not answer: check its power",
        ),
        (
            Cable::Well,
            false,
            "the second VESC (CAN id 12) does not answer: check its power and the wires of the CAN",
        ),
    ] {
        let mut robot = Robot::new();
        robot.drive(ALICE, AHEAD);
        robot.advance(1_000);
        robot.cable = cable;
        robot.vescs.set_bus_works(bus_works);
        robot.until(|robot| robot.closed > 0);
        let last = robot.sent[robot.sent.len() - 2..]
            .iter()
            .map(|(.., payload)| payload);
        assert!(
            last.clone().all(|payload| payload.ends_with(&brake())),
            "{cable:?}"
        );
        assert!(robot.trouble().starts_with(problem), "{}", robot.trouble());
        for _ in 0..10 {
            assert_eq!(robot.drive(ALICE, AHEAD), Some(Refusal::Away));
            robot.ask();
            robot.advance(100);
        }
        assert_eq!(robot.heard.answers, []);
        robot.cable = Cable::Well;
        robot.vescs.set_bus_works(true);
        robot.motors();
        robot.advance(4_000);
        assert!(robot.logic.is_ready(), "{:?}", robot.heard.notes);
        let motors = robot.motors();
        assert!(!motors.is_empty() && motors.iter().all(|payload| *payload == brake()));
        assert!(
            robot
                .heard
                .notes
                .last()
                .unwrap()
                .contains("10 commands were dropped")
        );
        robot.drive(ALICE, AHEAD);
        assert!(robot.turns());
    }
}

#[test]
fn an_unplugged_port_is_opened_again_and_the_wheels_wait_for_a_new_command() {
    let mut robot = Robot::new();
    robot.drive(ALICE, AHEAD);
    robot.advance(1_000);
    robot.plugged = false;
    robot.advance(5_000);
    assert_eq!(robot.trouble(), "it does not exist");
    assert!(robot.stands(), "the VESCs have released them");
    robot.plugged = true;
    let back = robot.now;
    robot.until(|robot| robot.logic.is_ready());
    assert!(robot.now - back < 2_200 * MS, "{:?}", robot.now - back);
    robot.advance(1_000);
    assert!(!robot.turns());
    robot.drive(ALICE, AHEAD);
    assert!(robot.turns());
}

#[test]
fn shutdown_brakes_the_wheels() {
    let mut robot = Robot::new();
    robot.drive(ALICE, AHEAD);
    robot.advance(100);
    robot.motors();
    robot.logic.shut_down();
    robot.advance(10);
    assert!(robot.ended && !robot.turns());
    assert_eq!(robot.motors(), [brake()]);
    let mut absent = Robot::starting(Firmware::V6_02, |_| {});
    absent.plugged = false;
    absent.advance(100);
    absent.logic.shut_down();
    absent.advance(10);
    assert!(absent.ended && absent.sent.is_empty());
}

#[test]
fn vescs_that_never_answer_are_explained_and_get_no_command() {
    for (cable, can_id, problem) in [
        (
            Cable::Silent,
            CAN_ID,
            "the first VESC does not answer at 115200 baud: check its power, its port and --baud",
        ),
        (
            Cable::Garbled,
            CAN_ID,
            "what arrives from the first VESC at 115200 baud is not from a VESC",
        ),
        (
            Cable::Well,
            5,
            "no VESC with the CAN id 5 answers through the first one: check --can-id, its power",
        ),
        (
            Cable::Well,
            11,
            "the first VESC itself has the CAN id 11: --can-id must be that of the second one",
        ),
    ] {
        let mut robot = Robot::starting(Firmware::V6_02, |options| options.can_id = Some(can_id));
        robot.cable = cable;
        robot.advance(10_000);
        assert!(robot.trouble().starts_with(problem), "{}", robot.trouble());
        assert_eq!(robot.heard.notes.len(), 1, "{:?}", robot.heard.notes);
        let is_question = |payload: &Vec<u8>| payload.ends_with(&[0]) || *payload == [4];
        let is_stop = |payload: &Vec<u8>| payload.ends_with(&brake());
        for (.., payload) in &robot.sent {
            let is_allowed = is_question(payload) || cable == Cable::Well && is_stop(payload);
            assert!(is_allowed, "{payload:?}");
        }
    }
}

#[test]
fn answers_that_do_not_fit_are_explained() {
    let first = values(11, 250, 0);
    for (answers, trouble) in [
        (
            vec![vec![0, 2, 18]],
            "the first VESC has firmware 2.18, and this driver needs 3.33 or newer: update it",
        ),
        (
            vec![version(0), first, version(1)],
            "the second VESC is not for motors, its firmware is 6.02 on a: check --port, --can-id",
        ),
        (
            vec![vec![0, 6]],
            "the first VESC sends answers that do not fit: update its firmware with VESC Tool",
        ),
        (
            vec![version(0), vec![4; 53]],
            "the first VESC sends answers that do not fit",
        ),
        (
            vec![version(0), values(CAN_ID, 250, 0)],
            "the first VESC itself has the CAN id 12: --can-id must be that of the second one",
        ),
        // A text for VESC Tool, and what nobody has asked for.
        (vec![vec![21, b'h', b'i'], vec![4, 4, 4]], ""),
    ] {
        let (logic, _) = after(&answers);
        let said = logic.trouble().unwrap_or_default().into_owned();
        let is_right = said.starts_with(trouble) && said.is_empty() == trouble.is_empty();
        assert!(is_right, "{said}");
    }
}

#[test]
fn a_late_answer_of_the_other_one_is_not_taken() {
    let mut robot = Robot::new();
    let mut second = values(CAN_ID, 250, 0);
    second[23..27].copy_from_slice(&9_999_i32.to_be_bytes());
    while robot.logic.question.is_none() {
        robot.pass(robot.now + MS);
        robot.logic.poll_action(robot.now);
    }
    (robot.logic).handle_bytes(robot.now, Unit::First, &framed(&second));
    assert!(robot.logic.question.is_some());
    robot.logic.set_listened(robot.now, true);
    robot.advance(500);
    assert!(robot.heard.published.len() > 3);
    assert!(
        robot
            .heard
            .published
            .iter()
            .all(|(speeds, _)| *speeds == WheelSpeeds::STOP)
    );
}
