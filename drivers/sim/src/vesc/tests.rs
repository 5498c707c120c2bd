//! Tests of the frames against worked ones of other programs, and of the rules for the motors.

use super::*;

const MS: Duration = Duration::from_millis(1);

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.split_ascii_whitespace();
    digits
        .map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect()
}

/// What it answers to bytes.
fn say(vescs: &mut Vescs, now: Duration, bytes: &[u8]) -> Vec<u8> {
    vescs.handle_bytes(now, bytes);
    std::iter::from_fn(|| vescs.poll_output())
        .flatten()
        .collect()
}

/// A command with an argument, for the first or for the second one.
fn command(vescs: &mut Vescs, now: Duration, is_second: bool, number: u8, argument: i32) {
    let mut payload = match is_second {
        true => vec![34, CAN_ID],
        false => Vec::new(),
    };
    payload.push(number);
    payload.extend(argument.to_be_bytes());
    assert_eq!(say(vescs, now, &framed(&payload)), [0; 0]);
}

fn sides(vescs: &Vescs) -> [Drive; 2] {
    let [front_left, front_right, rear_left, rear_right] = vescs.drives();
    assert_eq!((front_left, front_right), (rear_left, rear_right));
    [front_left, front_right]
}

#[test]
fn questions_are_answered_as_by_the_firmware() {
    let mut vescs = Vescs::new(Firmware::V6_02);
    let version = say(&mut vescs, MS, &bytes("02 01 00 00 00 03"));
    assert_eq!(
        version[..12],
        [&[2, 30, 0, 6, 2], &b"60_MK5\0"[..]].concat()
    );
    for (firmware, length) in [
        (Firmware::V6_02, 74),
        (Firmware::V5_02, 73),
        (Firmware::V3_40, 59),
    ] {
        let mut vescs = Vescs::new(firmware);
        let first = say(&mut vescs, MS, &bytes("02 01 04 40 84 03"));
        assert_eq!((first[1], first.len()), (length, usize::from(length) + 5));
        assert_eq!((first[2], first[2 + 58]), (4, FIRST_ID));
        let second = say(&mut vescs, MS, &framed(&[34, CAN_ID, 4]));
        assert_eq!((second[1], second[2], second[2 + 58]), (length, 4, CAN_ID));
    }
    // Nobody has this number, and the second one passes nothing on.
    assert_eq!(say(&mut vescs, MS, &framed(&[34, CAN_ID + 1, 4])), [0; 0]);
    assert_eq!(
        say(&mut vescs, MS, &framed(&[34, CAN_ID, 34, CAN_ID, 4])),
        [0; 0]
    );
    vescs.set_bus_works(false);
    assert_eq!(say(&mut vescs, MS, &framed(&[34, CAN_ID, 4])), [0; 0]);
}

#[test]
fn chosen_values_are_those_of_the_worked_frame() {
    let measured = Measured {
        transistors_c: 31.2,
        motor_c: 0.0,
        motor_a: 2.5,
        battery_a: 0.0,
        duty: 0.0,
        erpm: 3_000,
        battery_v: 24.1,
        tachometer: 12_345,
        fault: 0,
        id: 7,
    };
    let chosen = measured.encode(0xA180);
    let frame = framed(&[&bytes("32 00 00 A1 80")[..], &chosen].concat());
    let expected = "02 10 32 00 00 A1 80 00 00 0B B8 00 F1 00 00 30 39 00 5D F5 03";
    assert_eq!(frame, bytes(expected));
    let all = measured.encode(u32::MAX);
    assert_eq!(all.len(), 73);
    assert_eq!(all[..8], [1, 56, 0, 0, 0, 0, 0, 250]);
    assert_eq!((all[52], all[57]), (0, 7));
    let mut vescs = Vescs::new(Firmware::V6_02);
    let asked = bytes("02 05 32 00 00 A1 80 F7 AA 03");
    assert_eq!(say(&mut vescs, MS, &asked).len(), 21);
}

#[test]
fn commands_turn_and_brake_the_motor_that_they_are_for() {
    let mut vescs = Vescs::new(Firmware::V6_02);
    assert_eq!(sides(&vescs), [Drive::RELEASED; 2]);
    command(&mut vescs, MS, false, 8, 3_000);
    command(&mut vescs, MS, true, 8, -3_000);
    let [
        Drive::Speed { qpps: left, .. },
        Drive::Speed { qpps: right, .. },
    ] = sides(&vescs)
    else {
        panic!("{vescs:?}");
    };
    // 70 electrical turns are one of a wheel.
    assert!(
        (left - 3_000.0 / 60.0 / 70.0 * 1_865.0).abs() < 1e-6,
        "{left}"
    );
    assert_eq!(right, -left);
    let brake = Drive::Speed {
        qpps: 0.0,
        acceleration_qpps2: Some(10_000.0),
    };
    for (number, argument, drive) in [
        (8, 99, Drive::RELEASED),
        (8, 0, Drive::RELEASED),
        (7, 5_000, brake),
        (7, 0, Drive::RELEASED),
        (5, 50_000, Drive::Duty(0.5)),
        (5, -200_000, Drive::Duty(-1.0)),
        (6, 2_000, Drive::Duty(0.1)),
        (6, 0, Drive::RELEASED),
    ] {
        command(&mut vescs, MS, true, number, argument);
        assert_eq!(sides(&vescs)[1], drive, "{number} {argument}");
        assert!(matches!(sides(&vescs)[0], Drive::Speed { .. }));
    }
    // Storing a configuration is ignored.
    let before = format!("{vescs:?}");
    assert_eq!(say(&mut vescs, MS, &framed(&[13, 1, 2, 3])), [0; 0]);
    assert_eq!(format!("{vescs:?}"), before);
}

#[test]
fn a_motor_is_released_a_second_after_the_last_command_for_it() {
    for (firmware, is_released) in [
        (Firmware::V6_02, true),
        (Firmware::V3_40, true),
        (Firmware::WithoutTimeout, false),
    ] {
        let mut vescs = Vescs::new(firmware);
        command(&mut vescs, MS, false, 8, 3_000);
        command(&mut vescs, MS * 500, true, 8, 3_000);
        assert_eq!(vescs.next_timeout(), is_released.then_some(MS * 1_001));
        // A question does not count.
        say(&mut vescs, MS * 1_000, &bytes("02 01 04 40 84 03"));
        vescs.advance(MS * 1_001);
        let released = sides(&vescs).map(|drive| drive == Drive::RELEASED);
        assert_eq!(released, [is_released, false], "{firmware:?}");
        // COMM_ALIVE does.
        say(&mut vescs, MS * 1_400, &framed(&[34, CAN_ID, 30]));
        vescs.advance(MS * 2_399);
        assert_ne!(sides(&vescs)[1], Drive::RELEASED);
        vescs.advance(MS * 2_400);
        assert_eq!(
            sides(&vescs)[1] == Drive::RELEASED,
            is_released,
            "{firmware:?}"
        );
    }
}

#[test]
fn frames_are_found_after_garbage_and_in_pieces() {
    let mut vescs = Vescs::new(Firmware::V6_02);
    for garbage in [
        "00 FF",
        "02 00",
        "03 00 05",
        "02 01 04 40 85 03",
        "03 FF FF",
    ] {
        let stream = [bytes(garbage), bytes("02 01 04 40 84 03")].concat();
        let mut answers = Vec::new();
        for byte in stream {
            answers.extend(say(&mut vescs, MS, &[byte]));
        }
        assert_eq!(answers.len(), 79, "{garbage}");
    }
    // Long payloads have a long frame.
    let long = framed(&[0; 300]);
    assert_eq!((&long[..3], long.len()), (&[3, 1, 44][..], 306));
    assert_ne!(say(&mut vescs, MS, &long), [0; 0]);
    // What has begun ends with the connection.
    say(&mut vescs, MS, &[2, 200]);
    vescs.handle_hang_up();
    assert_eq!(say(&mut vescs, MS, &bytes("02 01 04 40 84 03")).len(), 79);
}

#[test]
fn a_low_battery_is_a_fault_that_keeps_the_motors_off() {
    let mut vescs = Vescs::new(Firmware::V6_02);
    command(&mut vescs, MS, false, 8, 3_000);
    vescs.set_battery_v(Some(10.0));
    assert_eq!(sides(&vescs), [Drive::RELEASED; 2]);
    let values = say(&mut vescs, MS, &bytes("02 01 04 40 84 03"));
    assert_eq!((values[2 + 28], values[2 + 53]), (100, 2));
    vescs.set_battery_v(None);
    let values = say(&mut vescs, MS, &bytes("02 01 04 40 84 03"));
    assert_eq!((values[2 + 28], values[2 + 53]), (126, 0));
}
