//! Tests of the commands, the packets and the modes.

use super::*;

const MS: Duration = Duration::from_millis(1);
const NOTHING: [u8; 0] = [];

/// A robot in this mode.
fn robot(mode: Mode) -> Create2 {
    let mut robot = Create2::default();
    say(&mut robot, Duration::ZERO, &[128]);
    robot.enter(mode);
    robot
}

/// What it answers.
fn say(robot: &mut Create2, now: Duration, bytes: &[u8]) -> Vec<u8> {
    robot.handle_bytes(now, bytes);
    std::iter::from_fn(|| robot.poll_output())
        .flatten()
        .collect()
}

/// Turns the wheels so far since the start.
fn turn(robot: &mut Create2, left_mm: f64, right_mm: f64) {
    let reading = |mm: f64| Reading {
        pulses: pulses_of(mm / 1_000.0).round() as i64,
        ..Reading::default()
    };
    let readings = [left_mm, right_mm, left_mm, right_mm].map(reading);
    robot.handle_readings(Duration::ZERO, readings);
}

/// The commanded speeds of the left and the right wheel, in mm/s.
fn speeds(robot: &Create2) -> [i32; 2] {
    let [front_left, front_right, rear_left, rear_right] = robot.drives();
    assert_eq!((front_left, front_right), (rear_left, rear_right));
    [front_left, front_right].map(|drive| match drive {
        Drive::Speed { qpps, .. } => (metres_per_second(qpps) * 1_000.0).round() as i32,
        Drive::Duty(duty) => (duty * 1_000.0).round() as i32,
    })
}

#[test]
fn it_obeys_only_in_the_modes_safe_and_full() {
    for (mode, expected) in [
        (Mode::Off, [0, 0]),
        (Mode::Passive, [0, 0]),
        (Mode::Safe, [-56, 200]),
        (Mode::Full, [-56, 200]),
    ] {
        let mut robot = robot(mode);
        // The right wheel comes first.
        say(&mut robot, MS, &[145, 0x00, 0xC8, 0xFF, 0xC8]);
        assert_eq!(speeds(&robot), expected, "{mode:?}");
    }
    let mut fresh = Create2::default();
    for (bytes, mode) in [
        (&[131][..], Mode::Off),
        (&[128], Mode::Passive),
        (&[131], Mode::Safe),
        (&[132], Mode::Full),
        (&[128], Mode::Passive),
        (&[130], Mode::Safe),
        (&[135], Mode::Passive),
        (&[173], Mode::Off),
        (&[132], Mode::Off),
    ] {
        say(&mut fresh, MS, bytes);
        assert_eq!(fresh.mode(), mode, "{bytes:?}");
    }
}

#[test]
fn all_commands_for_the_wheels_are_understood() {
    for (bytes, expected) in [
        // DRIVE: straight on, twice; on the spot to the left and to the right; a circle to the left.
        ([137, 0, 100, 0x80, 0x00], [100, 100]),
        ([137, 0, 100, 0x7F, 0xFF], [100, 100]),
        ([137, 0, 100, 0, 1], [-100, 100]),
        ([137, 0, 100, 0xFF, 0xFF], [100, -100]),
        ([137, 0, 100, 0, 235], [50, 150]),
        ([145, 0x03, 0xE8, 0xFC, 0x18], [-500, 500]),
        ([146, 0, 255, 0xFF, 0x80], [-502, 1_000]),
    ] {
        let mut robot = robot(Mode::Safe);
        say(&mut robot, MS, &bytes);
        assert_eq!(speeds(&robot), expected, "{bytes:?}");
        // The last command stays in force.
        robot.advance(MS * 600_000);
        assert_eq!(speeds(&robot), expected);
    }
}

#[test]
fn packets_are_answered_without_an_id() {
    let mut robot = robot(Mode::Passive);
    turn(&mut robot, -10.0, 30_000.0);
    // -23 and 67481 counts, of which 16 bits are left.
    let counts = [0xFF, 0xE9, 0x07, 0x99];
    assert_eq!(say(&mut robot, MS, &[142, 35]), [1]);
    assert_eq!(say(&mut robot, MS, &[149, 2, 43, 44]), counts);
    for (group, length) in [
        (0, 26),
        (1, 10),
        (2, 6),
        (3, 10),
        (4, 14),
        (5, 12),
        (6, 52),
        (100, 80),
        (101, 28),
        (106, 12),
        (107, 9),
        (99, 0),
    ] {
        let answer = say(&mut robot, MS, &[142, group]);
        assert_eq!(answer.len(), length, "{group}");
    }
    // The way and the angle since they were last asked for.
    turn(&mut robot, 90.0, 30_200.0);
    assert_eq!(say(&mut robot, MS, &[149, 2, 19, 20]), [0, 150, 0, 24]);
    assert_eq!(say(&mut robot, MS, &[149, 2, 19, 20]), [0, 0, 0, 0]);
}

#[test]
fn the_stream_comes_every_15_ms_with_a_sum_of_0() {
    let mut robot = robot(Mode::Safe);
    turn(&mut robot, -2.6, 1.9);
    assert_eq!(say(&mut robot, MS, &[148, 3, 7, 43, 44]), NOTHING);
    robot.advance(MS * 15);
    assert_eq!(robot.poll_output(), None);
    robot.advance(MS * 16);
    let frame = robot.poll_output().unwrap();
    assert_eq!(frame[..10], [19, 8, 7, 0, 43, 0xFF, 0xFA, 44, 0, 4]);
    let sum = frame.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    assert_eq!((frame.len(), sum), (11, 0));
    robot.advance(MS * 61);
    assert_eq!(std::iter::from_fn(|| robot.poll_output()).count(), 3);
    say(&mut robot, MS * 61, &[150, 0]);
    assert_eq!(say(&mut robot, MS * 200, &[]), NOTHING);
    say(&mut robot, MS * 200, &[150, 1]);
    assert_eq!(say(&mut robot, MS * 215, &[]).len(), 11);
    say(&mut robot, MS * 215, &[173]);
    assert_eq!(robot.next_timeout(), None);
}

#[test]
fn danger_ends_safe_mode_and_full_mode_ignores_it() {
    let free = Around::default();
    let lifted = Around {
        is_lifted: true,
        ..free
    };
    let docked = Around {
        is_docked: true,
        ..free
    };
    let charger = Around {
        has_charger: true,
        ..free
    };
    let cliff = Around {
        has_cliff: true,
        ..free
    };
    let bumped = Around {
        bumps: [true, false],
        ..free
    };
    let (ahead, back) = ([145, 0, 100, 0, 100], [145, 255, 156, 255, 156]);
    for (around, command, mode) in [
        (lifted, back, Mode::Passive),
        (docked, back, Mode::Passive),
        (charger, back, Mode::Passive),
        (cliff, ahead, Mode::Passive),
        (cliff, back, Mode::Safe),
        (bumped, ahead, Mode::Safe),
    ] {
        let mut safe = robot(Mode::Safe);
        say(&mut safe, MS, &command);
        safe.handle_around(around);
        assert_eq!(safe.mode(), mode, "{around:?}");
        assert_eq!(speeds(&safe) == [0, 0], mode == Mode::Passive);
        let mut full = robot(Mode::Full);
        say(&mut full, MS, &command);
        full.handle_around(around);
        assert_eq!(full.mode(), Mode::Full);
        assert_ne!(speeds(&full), [0, 0]);
    }
    for (around, answer) in [
        (free, [0, 0, 0]),
        (bumped, [2, 0, 0]),
        (lifted, [12, 0, 0]),
        (cliff, [0, 1, 0]),
        (charger, [0, 0, 1]),
        (docked, [0, 0, 2]),
    ] {
        let mut robot = robot(Mode::Passive);
        robot.handle_around(around);
        assert_eq!(say(&mut robot, MS, &[149, 3, 7, 11, 34]), answer);
    }
}

#[test]
fn other_commands_are_skipped_with_their_data() {
    let mut robot = robot(Mode::Safe);
    // LEDs, a song, its start, digits, a schedule, brushes, and an unknown one.
    let others: &[&[u8]] = &[
        &[139, 132, 132, 132],
        &[140, 0, 2, 132, 132, 132, 132],
        &[141, 132],
        &[164, 132, 132, 132, 132],
        &[
            167, 132, 132, 132, 132, 132, 132, 132, 132, 132, 132, 132, 132, 132, 132, 132,
        ],
        &[144, 132, 132, 132],
        &[0],
    ];
    for other in others {
        say(&mut robot, MS, other);
        let mode = say(&mut robot, MS, &[142, 35]);
        assert_eq!(mode, [2], "{other:?}");
    }
}
