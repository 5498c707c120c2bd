//! Tests of the lines and of the rules for the motors.

use super::*;

const MS: Duration = Duration::from_millis(1);

/// A board that has started.
fn board(firmware: Firmware) -> Diffdrive {
    Diffdrive::new(firmware, Duration::ZERO)
}

/// What it answers.
fn say(board: &mut Diffdrive, now: Duration, text: &str) -> String {
    board.handle_bytes(now, text.as_bytes());
    let lines = std::iter::from_fn(|| board.poll_output()).flatten();
    String::from_utf8(lines.collect()).unwrap()
}

fn turn(board: &mut Diffdrive, left: i64, right: i64) {
    let reading = |pulses| Reading {
        pulses,
        ..Reading::default()
    };
    board.handle_readings(BOOT, [left, right, left, right].map(reading));
}

fn speeds(board: &Diffdrive) -> [f64; 2] {
    let [front_left, front_right, rear_left, rear_right] = board.drives();
    assert_eq!((front_left, front_right), (rear_left, rear_right));
    [front_left, front_right].map(|drive| match drive {
        Drive::Speed { qpps, .. } => qpps,
        Drive::Duty(duty) => panic!("{duty}"),
    })
}

#[test]
fn commands_are_answered_in_the_words_of_the_firmware() {
    for (text, bridge, andino) in [
        ("\r", "Invalid Command\r\n", "Unknown command.\r\n"),
        ("b\r", "57600\r\n", "Unknown command.\r\n"),
        ("e\r", "0 0\r\n", "0 0\r\n"),
        ("e\r\ne\r\n", "0 0\r\n0 0\r\n", "0 0\r\n0 0\r\n"),
        ("r\r", "OK\r\n", "OK\r\n"),
        ("m 10 -10\r", "OK\r\n", "OK\r\n"),
        ("o 0 0\r", "OK\r\n", "OK\r\n"),
        (
            "u 30:20:0:100\r",
            "OK\r\n",
            "PID Updated: 30 0 0 0\r\nOK\r\n",
        ),
        (
            "u 30 20 10 50\r",
            "OK\r\n",
            "PID Updated: 30 20 10 50\r\nOK\r\n",
        ),
        ("a 3\r", "0\r\n", "Unknown command.\r\n"),
        ("h\r", "Invalid Command\r\n", "0\r\n"),
        ("z\r", "Invalid Command\r\n", "Unknown command.\r\n"),
        ("xxe\r", "0 0\r\n", "0 0\r\n"),
        ("m 1", "", ""),
    ] {
        for (firmware, answer) in [(Firmware::Bridge, bridge), (Firmware::Andino, andino)] {
            let found = say(&mut board(firmware), BOOT, text);
            assert_eq!(found, answer, "{firmware:?} {text:?}");
        }
    }
}

#[test]
fn numbers_are_those_of_an_arduino() {
    for (text, number) in [
        ("m 17\r", 17),
        ("m -17x\r", -17),
        ("m x\r", 0),
        ("m \r", 0),
        ("m\r", 0),
        ("m +5\r", 5),
        ("m 32768\r", i16::MIN),
        // The sixteenth character has no room.
        ("m 0000000000000012\r", 1),
    ] {
        let mut input = Input::default();
        let lines: Vec<_> = text.bytes().filter_map(|byte| input.push(byte)).collect();
        assert_eq!(lines.len(), 1);
        assert_eq!(
            (lines[0].letter, lines[0].number(0)),
            (b'm', number),
            "{text:?}"
        );
    }
}

#[test]
fn a_board_that_starts_hears_nothing_and_counts_from_0() {
    let mut board = board(Firmware::Bridge);
    turn(&mut board, 1_000, -1_000);
    assert_eq!(say(&mut board, BOOT - MS, "e\r"), "");
    assert_eq!(say(&mut board, BOOT, "e\r"), "1000 -1000\r\n");
    turn(&mut board, 5_000_000_000, 7);
    assert_eq!(say(&mut board, BOOT, "e\r"), "705032704 7\r\n", "32 bits");
    say(&mut board, BOOT, "m 5 5\r");
    let mut board = board.restarted(BOOT);
    assert_eq!(board.drives(), [Drive::RELEASED; 4]);
    assert_eq!(say(&mut board, BOOT + MS, "e\r"), "");
    assert_eq!(say(&mut board, BOOT * 2, "e\r"), "0 0\r\n");
}

#[test]
fn speeds_are_per_frame_or_per_second() {
    let mut bridge = board(Firmware::Bridge);
    say(&mut bridge, BOOT, "m 17 -17\r");
    assert_eq!(speeds(&bridge), [510.0, -510.0]);
    let mut andino = board(Firmware::Andino);
    say(&mut andino, BOOT, "m 510 -539\r");
    assert_eq!(speeds(&andino), [510.0, -510.0]);
    say(&mut andino, BOOT, "r\r");
    assert_eq!(speeds(&andino), [0.0, 0.0]);
    say(&mut andino, BOOT, "o 128 -999\r");
    let [left, right, ..] = andino.drives();
    assert_eq!(
        (left, right),
        (Drive::Duty(128.0 / 255.0), Drive::Duty(-1.0))
    );
}

#[test]
fn the_motors_stop_two_seconds_after_the_last_command_for_them() {
    let after = |firmware, now: Duration| {
        let mut board = board(firmware);
        say(&mut board, BOOT, "m 17 17\r");
        // Reading the encoders does not count.
        say(&mut board, BOOT + MS * 1_900, "e\r");
        board.advance(BOOT + now);
        board.drives() == [Drive::RELEASED; 4]
    };
    for firmware in [Firmware::Bridge, Firmware::Andino] {
        assert!(!after(firmware, MS * 1_999), "{firmware:?}");
        assert!(after(firmware, MS * 2_000), "{firmware:?}");
    }
    assert!(!after(Firmware::BridgeWithoutStop, MS * 100_000));
    let mut board = board(Firmware::Bridge);
    assert_eq!(board.next_timeout(), None);
    say(&mut board, BOOT, "m 17 17\r");
    assert_eq!(board.next_timeout(), Some(BOOT + AUTO_STOP));
    say(&mut board, BOOT + MS, "m 0 0\r");
    assert_eq!(
        (board.drives(), board.next_timeout()),
        ([Drive::RELEASED; 4], None)
    );
}
