//! Tests of frames against the worked ones of other programs for VESCs.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.split_ascii_whitespace();
    digits
        .map(|digits| u8::from_str_radix(digits, 16).unwrap())
        .collect()
}

fn payloads(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Frames::default();
    frames.push(bytes);
    std::iter::from_fn(|| frames.next_payload()).collect()
}

#[test]
fn commands_are_framed_as_by_other_programs() {
    for (command, can_id, hex) in [
        (Command::Values, None, "02 01 04 40 84 03"),
        (Command::Version, None, "02 01 00 00 00 03"),
        (Command::Erpm(3000), None, "02 05 08 00 00 0B B8 F8 04 03"),
        (Command::Erpm(-3000), None, "02 05 08 FF FF F4 48 90 24 03"),
        (Command::Erpm(0), None, "02 05 08 00 00 00 00 02 2D 03"),
        (Command::Brake(5000), None, "02 05 07 00 00 13 88 21 74 03"),
        (
            Command::Erpm(3000),
            Some(1),
            "02 07 22 01 08 00 00 0B B8 B3 B1 03",
        ),
        (Command::Values, Some(1), "02 03 22 01 04 9B 13 03"),
    ] {
        let frame = bytes(hex);
        assert_eq!(command.encode(can_id), frame, "{command:?}");
        let payload = &frame[2..frame.len() - 3];
        assert_eq!(payloads(&frame), [payload], "{command:?}");
    }
}

/// A frame around a payload.
fn framed(payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16;
    let head = match length {
        ..=255 => vec![2, length as u8],
        _ => [&[3][..], &length.to_be_bytes()].concat(),
    };
    [&head[..], payload, &crc16(payload).to_be_bytes(), &[3]].concat()
}

#[test]
fn frames_are_found_however_they_are_cut() {
    let short = vec![7; 255];
    let long: Vec<u8> = (0..=255).cycle().take(512).collect();
    let stream = [framed(&short), framed(&long), framed(&[1])].concat();
    let expected = [short, long, vec![1]];
    assert_eq!(payloads(&stream), expected);
    for size in [1, 2, 3, 7, 300] {
        let mut frames = Frames::default();
        let mut found = Vec::new();
        for piece in stream.chunks(size) {
            frames.push(piece);
            found.extend(std::iter::from_fn(|| frames.next_payload()));
        }
        assert_eq!(found, expected, "{size}");
    }
}

#[test]
fn after_garbage_the_next_frame_is_found() {
    let good = framed(&[4, 5]);
    for garbage in [
        "00",
        "FF FE FD",
        "02 00",
        "03 00 FE",
        "03 02 01",
        "02 01 09 00 00 03",
        "02 01 04 40 84 04",
    ] {
        let stream = [bytes(garbage), good.clone()].concat();
        assert_eq!(payloads(&stream), [[4, 5]], "{garbage}");
    }
    // A wrong length may hide a frame, until it is known to be wrong.
    let mut frames = Frames::default();
    frames.push(&[[2, 20].as_slice(), &good].concat());
    assert_eq!(frames.next_payload(), None);
    frames.push(&[0; 20]);
    assert_eq!(frames.next_payload(), Some(vec![4, 5]));
    // What has begun can be forgotten.
    frames.push(&[2, 20]);
    assert_eq!(frames.next_payload(), None);
    frames.clear();
    frames.push(&good);
    assert_eq!(frames.next_payload(), Some(vec![4, 5]));
}

#[test]
fn one_wrong_bit_makes_a_frame_invalid() {
    let good = framed(&[4, 0, 0, 0, 200]);
    for place in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[place / 8] ^= 1 << (place % 8);
        assert_eq!(payloads(&bad), [[0; 0]; 0], "{place}");
    }
}

/// 31.2 C, 3000 electrical turns per minute, 24.1 V, the number 7 on the bus.
fn values(fault: u8, status: u8) -> Vec<u8> {
    let mut payload = vec![0; 74];
    payload[0] = 4;
    payload[1..3].copy_from_slice(&312_i16.to_be_bytes());
    payload[23..27].copy_from_slice(&3000_i32.to_be_bytes());
    payload[27..29].copy_from_slice(&241_i16.to_be_bytes());
    payload[53] = fault;
    payload[58] = 7;
    payload[73] = status;
    payload
}

#[test]
fn values_end_as_early_as_the_firmware_is_old() {
    let expected = Values {
        temperature: 312,
        erpm: 3000,
        battery_dv: 241,
        fault: Fault(4),
        can_id: Some(7),
        is_switched_off: true,
    };
    let payload = values(4, 3);
    assert_eq!(Values::decode(&payload), Some(expected));
    for (length, can_id) in [
        (73, Some(7)),
        (65, Some(7)),
        (59, Some(7)),
        (58, None),
        (54, None),
    ] {
        let values = Values {
            can_id,
            is_switched_off: false,
            ..expected
        };
        assert_eq!(Values::decode(&payload[..length]), Some(values), "{length}");
    }
    assert_eq!(Values::decode(&payload[..53]), None);
    assert_eq!(Values::decode(&[]), None);
    // A time limit that has passed is no switch.
    assert!(!Values::decode(&values(0, 1)).unwrap().is_switched_off);
    assert_eq!(Values::decode(&[&[0], &payload[1..]].concat()), None);
}

#[test]
fn versions_have_more_and_more_fields() {
    let name = b"60_MK5\0";
    let serial = [1; 12];
    let full = |kind| [&[0, 6, 2], &name[..], &serial, &[0, 0, kind, 0, 0, 0, 0]].concat();
    for (payload, text, drives_motor) in [
        (full(0), "6.02 on 60_MK5", true),
        (full(1), "6.02 on 60_MK5", false),
        (
            [&[0, 3, 40], &name[..], &serial].concat(),
            "3.40 on 60_MK5",
            true,
        ),
        (vec![0, 2, 18], "2.18", true),
        (vec![0, 6, 2, b'a', 7, 0xFF], "6.02 on a?\u{FFFD}", true),
    ] {
        let version = Version::decode(&payload).unwrap();
        assert_eq!(
            (version.to_string().as_str(), version.drives_motor),
            (text, drives_motor)
        );
    }
    assert_eq!(Version::decode(&[0, 6]), None);
    assert_eq!(Version::decode(&[1, 6, 2]), None);
}

#[test]
fn faults_say_what_to_check() {
    for (number, text) in [
        (2, "UNDER_VOLTAGE: check the battery"),
        (4, "ABS_OVER_CURRENT: check whether a wheel is blocked"),
        (18, "UNBALANCED_CURRENTS: check the wires of the motor"),
        (29, "LV_OUTPUT_FAULT: check what"),
        (30, "number 30: look it up in VESC Tool"),
    ] {
        let said = Fault(number).to_string();
        assert!(said.starts_with(text), "{said}");
    }
}
