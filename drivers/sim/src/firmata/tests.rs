//! Tests with the bytes of the protocol.

use super::*;

const MS: Duration = Duration::from_millis(1);
const STARTED: Duration = Duration::from_millis(3_700);
const NOTHING: [u8; 0] = [];

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.split_ascii_whitespace();
    digits
        .map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect()
}

fn said(board: &mut Firmata) -> Vec<u8> {
    std::iter::from_fn(|| board.poll_output())
        .flatten()
        .collect()
}

/// A board that has started.
fn board(model: Model) -> Firmata {
    let mut board = Firmata::new(model, Duration::ZERO);
    board.advance(STARTED);
    said(&mut board);
    board
}

/// What it answers.
#[track_caller]
fn check(board: &mut Firmata, hex: &str, answer: &str) {
    board.handle_bytes(STARTED, &bytes(hex));
    assert_eq!(said(board), bytes(answer), "{hex}");
}

fn text(text: &str) -> String {
    let letters = text.bytes().map(|letter| format!("{letter:02X} 00 "));
    letters.collect()
}

#[test]
fn it_tells_its_version_when_it_has_started() {
    let mut board = Firmata::new(Model::Uno, Duration::ZERO);
    // The boot loader takes this one.
    board.handle_bytes(1_599 * MS, &[0xF9]);
    board.handle_bytes(1_600 * MS, &[0xF9]);
    board.advance(STARTED - MS);
    assert_eq!(said(&mut board), NOTHING);
    assert_eq!(board.next_timeout(), Some(STARTED));
    board.advance(STARTED);
    let name = text("StandardFirmata.ino");
    let banner = format!("F9 02 05 F0 79 02 05 {name}F7");
    assert_eq!(said(&mut board), bytes(&format!("{banner} F9 02 05")));
    assert_eq!(board.next_timeout(), None);
    check(&mut board, "F0 79 F7", &banner[9..]);
    // Only so many bytes have room.
    let mut board = board.restarted(STARTED);
    board.handle_bytes(STARTED + 2_000 * MS, &[0xF9; 100]);
    board.advance(STARTED * 2);
    let answers = said(&mut board)
        .windows(3)
        .filter(|it| *it == [0xF9, 2, 5])
        .count();
    assert_eq!(answers, 1 + ROOM);
}

#[test]
fn it_tells_what_its_pins_can_do() {
    let mut uno = board(Model::Uno);
    uno.handle_bytes(STARTED, &bytes("F0 6B F7"));
    let answer = said(&mut uno);
    let plain = "00 01 0B 01 01 01";
    let expected = format!("F0 6C 7F 7F {plain} 04 0E 7F {plain} 03 08 04 0E 7F");
    assert!(answer.starts_with(&bytes(&expected)), "{answer:02x?}");
    let last = format!("7F {plain} 02 0A 04 0E 06 01 7F F7");
    assert!(answer.ends_with(&bytes(&last)), "{answer:02x?}");
    assert_eq!(answer.iter().filter(|byte| **byte == 0x7F).count(), 20);
    let none = "7F ".repeat(14);
    check(
        &mut uno,
        "F0 69 F7",
        &format!("F0 6A {none} 00 01 02 03 04 05 F7"),
    );
    let mut mega = board(Model::Mega);
    mega.handle_bytes(STARTED, &bytes("F0 69 F7"));
    let answer = said(&mut mega);
    assert_eq!(answer.len(), 70 + 3);
    assert!(answer.ends_with(&bytes(
        "7F 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F F7"
    )));
}

#[test]
fn outputs_do_what_they_are_told() {
    let mut board = board(Model::Uno);
    let state = |board: &Firmata, pin: usize| (board.pins()[pin].mode, board.pins()[pin].state);
    assert_eq!(state(&board, 13), (OUTPUT, 0), "at the start");
    assert_eq!(state(&board, 14), (ANALOG, 0), "at the start");
    check(&mut board, "F5 0D 01", "");
    assert_eq!(state(&board, 13), (OUTPUT, 1));
    check(&mut board, "F0 6D 0D F7", "F0 6E 0D 01 01 F7");
    check(&mut board, "91 00 00", "");
    assert_eq!(state(&board, 13), (OUTPUT, 0));
    check(&mut board, "91 20 00", "");
    assert_eq!(state(&board, 13), (OUTPUT, 1));
    // A new mode is low.
    check(&mut board, "F4 0D 01", "");
    assert_eq!(state(&board, 13), (OUTPUT, 0));
    check(&mut board, "F4 05 03 E5 7F 01", "");
    assert_eq!(state(&board, 5), (PWM, 255));
    check(&mut board, "F0 6D 05 F7", "F0 6E 05 03 7F 01 F7");
    check(&mut board, "F0 6F 05 00 01 F7", "");
    assert_eq!(state(&board, 5), (PWM, 128));
    // It cannot.
    check(&mut board, "F4 04 03", "");
    assert_eq!(state(&board, 4), (OUTPUT, 0));
    check(&mut board, "F5 05 01", "");
    assert_eq!(state(&board, 5), (PWM, 128));
    check(&mut board, "F0 6D 00 F7", "F0 6E 00 7F 00 F7");
    check(&mut board, "F0 6D 63 F7", "F0 6E 63 F7");
    let unknown = text("Unknown pin mode");
    check(&mut board, "F4 0D 0C", &format!("F0 71 {unknown}F7"));
    check(&mut board, "FF", "");
    assert_eq!(
        (state(&board, 5), state(&board, 13)),
        ((OUTPUT, 0), (OUTPUT, 0))
    );
}

#[test]
fn servos_begin_in_the_middle() {
    let mut board = board(Model::Uno);
    check(&mut board, "F4 09 04", "");
    assert_eq!(board.pins()[9].pulse_us, 1500);
    for (hex, us) in [
        ("E9 5C 0B", 1500),
        ("E9 00 00", 544),
        ("E9 34 01", 2400),
        ("E9 5A 00", 1472),
        ("E9 20 04", 544),
        ("E9 7F 7F", 2400),
    ] {
        check(&mut board, hex, "");
        assert_eq!(board.pins()[9].pulse_us, us, "{hex}");
    }
    // 1000 to 2000.
    check(&mut board, "F0 70 0A 68 07 50 0F F7 EA 00 00", "");
    assert_eq!(board.pins()[10].pulse_us, 1000);
    // In steps of 4 us: 1003 to 2000.
    check(&mut board, "F0 70 0A 6B 07 50 0F F7 EA 00 00", "");
    assert_eq!(board.pins()[10].pulse_us, 1000);
    // 100 to 16383, as far as eight bits reach: both wrap.
    check(&mut board, "F0 70 0A 64 00 7F 7F F7 EA 00 00", "");
    assert_eq!(board.pins()[10].pulse_us, 100);
    check(&mut board, "EA 7F 7F", "");
    assert_eq!(board.pins()[10].pulse_us, 2044);
    check(&mut board, "F4 09 01", "");
    assert_eq!(
        (board.pins()[9].pulse_us, board.pins()[9].mode),
        (0, OUTPUT)
    );
    for pin in 2..13 {
        check(&mut board, &format!("F4 {pin:02X} 04"), "");
    }
    let full = text("Max servos attached");
    check(&mut board, "F4 0D 04", "");
    check(&mut board, "F4 0E 04", &format!("F0 71 {full}F7"));
}

#[test]
fn inputs_are_sent_at_once_and_when_they_change() {
    let mut board = board(Model::Uno);
    check(&mut board, "F4 02 0B F4 03 00 D0 01", "90 04 00");
    board.connect(2, Some(false));
    board.connect(3, Some(true));
    board.advance(STARTED);
    assert_eq!(said(&mut board), [0x90, 0x08, 0x00]);
    board.advance(STARTED);
    assert_eq!(said(&mut board), NOTHING, "no change");
    board.connect(2, None);
    check(&mut board, "", "90 0C 00");
    // An output is not sent, and pin 7 has its own byte.
    check(&mut board, "F4 02 01", "90 08 00");
    board.connect(7, Some(true));
    check(&mut board, "F4 07 00 D0 01", "90 08 01");
    check(&mut board, "D0 00", "");
    board.connect(7, Some(false));
    check(&mut board, "", "");
}

#[test]
fn analog_values_are_sent_after_each_interval() {
    let mut board = board(Model::Uno);
    board.set_volts(1, 678.0 / 1023.0 * 5.0);
    // The mode begins it, and so does the command.
    check(&mut board, "F4 0F 02", "E1 26 05");
    check(&mut board, "C1 01", "E1 26 05");
    assert_eq!(board.next_timeout(), Some(STARTED + 19 * MS));
    board.advance(STARTED + 38 * MS);
    assert_eq!(said(&mut board), bytes("E1 26 05 E1 26 05"));
    board.set_volts(1, 9.0);
    board.handle_bytes(STARTED + 38 * MS, &bytes("F0 7A 64 00 F7"));
    assert_eq!(board.next_timeout(), Some(STARTED + 138 * MS));
    board.advance(STARTED + 138 * MS);
    assert_eq!(said(&mut board), bytes("E1 7F 07"));
    board.handle_bytes(STARTED + 138 * MS, &bytes("C1 00"));
    assert_eq!(board.next_timeout(), None);
    // After a pause, nothing is sent belatedly.
    board.advance(STARTED * 3);
    board.handle_bytes(STARTED * 3, &bytes("C1 01"));
    board.advance(STARTED * 3);
    assert_eq!(said(&mut board), bytes("E1 7F 07"));
}

#[test]
fn it_reads_like_the_program() {
    let mut board = board(Model::Uno);
    // A command in a sysex is lost until its end.
    check(&mut board, "F0 79 F5 0D 01", "");
    assert_eq!(board.pins()[13].state, 0);
    board.handle_bytes(STARTED, &bytes("F7 F5 0D 01"));
    assert_eq!(board.pins()[13].state, 1);
    said(&mut board);
    // Another command ends one that has begun, but not this byte.
    check(&mut board, "F5 0D F9 00", "F9 02 05");
    assert_eq!(board.pins()[13].state, 0);
    check(&mut board, "F5 0D F5 0D 01", "");
    assert_eq!(board.pins()[13].state, 1);
    check(&mut board, "00 7F 05 F7", "");
    // Longer ones lose their end.
    let long = format!("F0 7A 05 00 {} F7", "01 ".repeat(1_000));
    check(&mut board, &long, "");
    check(&mut board, "F0 6F F7 F0 70 09 F7 F0 F7 F0 6D F7", "");
}
