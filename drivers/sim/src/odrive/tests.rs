//! Tests of the lines, and of the rules for the motors.

use super::*;

const MS: Duration = Duration::from_millis(1);

/// What it answers.
fn say(odrive: &mut Odrive, now: Duration, text: &str) -> String {
    odrive.handle_bytes(now, text.as_bytes());
    let lines = std::iter::from_fn(|| odrive.poll_output()).flatten();
    String::from_utf8(lines.collect()).unwrap()
}

fn sides(odrive: &Odrive) -> [Option<f64>; 2] {
    let [left, right, ..] = odrive.drives();
    [left, right].map(|drive| match drive {
        Drive::Speed { qpps, .. } => Some(qpps / PULSES_PER_TURN),
        Drive::Duty(_) => None,
    })
}

#[test]
fn commands_are_answered_as_by_the_firmware() {
    for (text, answer) in [
        ("\n;\r", "unknown command\r\nunknown command\r\n"),
        ("f 0\n", "0.000000 0.000000\r\n"),
        ("f 0*118\n", "0.000000 0.000000*32\r\n"),
        // A wrong sum.
        ("f 0*117\n", ""),
        ("r vbus_voltage *93 ; a comment\n", "12.600000*43\r\n"),
        ("r axis0.error*55\r", "0*48\r\n"),
        ("r axis1.current_state\n", "1\r\n"),
        ("r axis2.error\n", "invalid property\r\n"),
        ("f 2\n", "invalid motor 2\r\n"),
        ("v 0 x\n", "invalid command format\r\n"),
        ("hello\n", "unknown command\r\n"),
        ("v 0 1.5*108\n", ""),
        ("ss\n", ""),
    ] {
        let found = say(&mut Odrive::new(Variant::Calibrated), MS, text);
        assert_eq!(found, answer, "{text:?}");
    }
    let mut odrive = Odrive::new(Variant::Calibrated);
    let information =
        "Hardware version: 3.6-56V\r\nFirmware version: 0.5.6\r\nSerial number: 5A5A5A\r\n";
    assert_eq!(say(&mut odrive, MS, "i\n"), information);
    let long = format!("{}\nf 0\n", "f".repeat(1_000));
    assert_eq!(say(&mut odrive, MS, &long), "0.000000 0.000000\r\n");
    let reading = |pulses, speed_qpps| Reading {
        pulses,
        speed_qpps,
        ..Reading::default()
    };
    odrive.handle_readings(MS, [1_865, -3_730, 0, 0].map(|it| reading(it, it as i32)));
    assert_eq!(say(&mut odrive, MS, "f 1\n"), "-2.000000 -2.000000\r\n");
}

#[test]
fn motors_turn_only_while_they_are_controlled() {
    let mut odrive = Odrive::new(Variant::Calibrated);
    say(&mut odrive, MS, "v 0 1.5\n");
    assert_eq!(sides(&odrive), [None, None]);
    say(&mut odrive, MS, "w axis0.requested_state 8\nv 0 1.5\n");
    assert_eq!(sides(&odrive), [Some(1.5), None]);
    // No calibration.
    say(&mut odrive, MS, "w axis1.requested_state 3\n");
    assert_eq!(sides(&odrive)[1], None);
    assert_eq!(say(&mut odrive, MS, "r axis1.error\n"), "1\r\n");
    odrive.set_error(0, 0x40);
    assert_eq!(sides(&odrive)[0], None);
    say(&mut odrive, MS, "w axis0.requested_state 8\n");
    assert_eq!(sides(&odrive)[0], None);
    // With the velocity of before.
    say(&mut odrive, MS, "sc\nw axis0.requested_state 8\n");
    assert_eq!(sides(&odrive)[0], Some(1.5));
    say(&mut odrive, MS, "w axis0.requested_state 1\n");
    assert_eq!(sides(&odrive)[0], None);
    let mut odrive = Odrive::new(Variant::Uncalibrated);
    say(&mut odrive, MS, "w axis0.requested_state 8\n");
    assert_eq!(sides(&odrive)[0], None);
    let errors = "r axis0.error\nw axis0.requested_state 1\nr axis0.error\n";
    assert_eq!(say(&mut odrive, MS, errors), "1\r\n0\r\n");
}

#[test]
fn the_watchdog_releases_a_motor() {
    let mut odrive = Odrive::new(Variant::Calibrated);
    let text = "w axis0.config.watchdog_timeout 0.5\nw axis0.config.enable_watchdog 1\n\
                w axis0.requested_state 8\nv 0 1\n";
    say(&mut odrive, MS, text);
    assert_eq!(odrive.next_timeout(), Some(MS * 501));
    say(&mut odrive, MS * 400, "f 0\nu 0\n");
    odrive.advance(MS * 899);
    assert_eq!(sides(&odrive)[0], Some(1.0));
    odrive.advance(MS * 900);
    assert_eq!((sides(&odrive)[0], odrive.next_timeout()), (None, None));
    assert_eq!(say(&mut odrive, MS * 900, "r axis0.error\n"), "2048\r\n");
    // Without food, it expires again.
    say(&mut odrive, MS * 1_000, "sc\n");
    assert_eq!(say(&mut odrive, MS * 1_001, "r axis0.error\n"), "2048\r\n");
    say(&mut odrive, MS * 1_002, "sc\nw axis0.requested_state 8\n");
    assert_eq!(sides(&odrive)[0], Some(1.0));
    say(
        &mut odrive,
        MS * 1_003,
        "w axis0.config.enable_watchdog 0\n",
    );
    assert_eq!(odrive.next_timeout(), None);
}
