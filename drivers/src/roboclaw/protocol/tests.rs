//! Tests of packets against bytes of real controllers and of the vendor's library.

use proptest::prelude::*;

use super::*;

const FRONT: u8 = 0x81;
const REAR: u8 = 0x80;
const TURN: Command = Command::Drive {
    m1: 1484,
    m2: -1484,
};
const STOP: Command = Command::Drive { m1: 0, m2: 0 };

#[test]
fn writes_have_the_documented_bytes() {
    let other_pid = Pid {
        d: 0,
        p: 327_680,
        i: 262_144,
        max_qpps: 13_800,
    };
    let pid = Pid {
        d: 16_384,
        p: 65_536,
        i: 32_768,
        max_qpps: 13_800,
    };
    let pid1 = Command::SetPid(Motor::M1, pid);
    let mode = Command::SetQuadrature(Motor::M1);
    for (address, command, check, expected) in [
        (
            FRONT,
            TURN,
            Check::Legacy,
            "81 25 00 00 05 CC FF FF FA 34 23",
        ),
        (
            FRONT,
            TURN,
            Check::LegacyAck,
            "81 25 00 00 05 CC FF FF FA 34 A3",
        ),
        (
            FRONT,
            TURN,
            Check::Crc16,
            "81 25 00 00 05 CC FF FF FA 34 AE CE",
        ),
        (
            REAR,
            TURN,
            Check::Legacy,
            "80 25 00 00 05 CC FF FF FA 34 22",
        ),
        (
            REAR,
            TURN,
            Check::Crc16,
            "80 25 00 00 05 CC FF FF FA 34 C1 8B",
        ),
        (
            FRONT,
            STOP,
            Check::Legacy,
            "81 25 00 00 00 00 00 00 00 00 26",
        ),
        (
            REAR,
            STOP,
            Check::Legacy,
            "80 25 00 00 00 00 00 00 00 00 25",
        ),
        (
            FRONT,
            STOP,
            Check::Crc16,
            "81 25 00 00 00 00 00 00 00 00 5B 41",
        ),
        (
            REAR,
            STOP,
            Check::Crc16,
            "80 25 00 00 00 00 00 00 00 00 34 04",
        ),
        (
            REAR,
            Command::Release,
            Check::Legacy,
            "80 22 00 00 00 00 22",
        ),
        (
            FRONT,
            Command::Release,
            Check::Crc16,
            "81 22 00 00 00 00 DD B7",
        ),
        (
            REAR,
            Command::Release,
            Check::Crc16,
            "80 22 00 00 00 00 98 17",
        ),
        (
            FRONT,
            pid1,
            Check::Legacy,
            "81 1C 00 00 40 00 00 01 00 00 00 00 80 00 00 00 35 E8 7B",
        ),
        (
            REAR,
            pid1,
            Check::Crc16,
            "80 1C 00 00 40 00 00 01 00 00 00 00 80 00 00 00 35 E8 9C 16",
        ),
        (
            REAR,
            Command::SetPid(Motor::M1, other_pid),
            Check::Legacy,
            "80 1C 00 00 00 00 00 05 00 00 00 04 00 00 00 00 35 E8 42",
        ),
        (REAR, mode, Check::Legacy, "80 5C 00 5C"),
        (REAR, mode, Check::Crc16, "80 5C 00 70 88"),
        (FRONT, Command::Speed(Motor::M1), Check::Crc16, "81 12"),
        (REAR, Command::Status, Check::Legacy, "80 5A"),
        (FRONT, Command::Temperature, Check::Legacy, "81 52"),
        (REAR, Command::MainBattery, Check::Legacy, "80 18"),
    ] {
        let packet = command.encode(address, check);
        assert_eq!(packet, bytes(expected), "{command:?} {check:?}");
    }
}

#[test]
fn replies_are_decoded() {
    let speed = Command::Speed(Motor::M1);
    let status = |bits, width| Reply::Status(Status { bits, width });
    for (address, command, check, reply, expected) in [
        (
            FRONT,
            speed,
            Check::Legacy,
            "00 00 05 CC 00 64",
            Reply::Number(1484),
        ),
        (
            FRONT,
            speed,
            Check::Crc16,
            "00 00 05 CC 00 3A 95",
            Reply::Number(1484),
        ),
        (
            FRONT,
            speed,
            Check::Legacy,
            "FF FF FA 34 01 40",
            Reply::Number(-1484),
        ),
        (
            FRONT,
            speed,
            Check::Crc16,
            "FF FF FA 34 01 6E B3",
            Reply::Number(-1484),
        ),
        (
            REAR,
            Command::Status,
            Check::Legacy,
            "00 5A",
            status(0, StatusWidth::U8),
        ),
        (
            REAR,
            Command::Status,
            Check::Crc16,
            "00 00 44 37",
            status(0, StatusWidth::U16),
        ),
        (
            REAR,
            Command::Status,
            Check::Crc16,
            "00 00 00 00 87 BC",
            status(0, StatusWidth::U32),
        ),
        (
            FRONT,
            Command::Status,
            Check::Legacy,
            "20 7B",
            status(0x20, StatusWidth::U8),
        ),
        (
            FRONT,
            Command::Temperature,
            Check::Legacy,
            "01 38 0C",
            Reply::Number(312),
        ),
        (
            FRONT,
            Command::Temperature,
            Check::Crc16,
            "01 38 1F 48",
            Reply::Number(312),
        ),
        (
            REAR,
            Command::MainBattery,
            Check::Legacy,
            "00 79 11",
            Reply::Number(121),
        ),
        (
            REAR,
            Command::MainBattery,
            Check::Crc16,
            "00 79 D8 44",
            Reply::Number(121),
        ),
        (FRONT, TURN, Check::Legacy, "", Reply::Accepted),
        (FRONT, TURN, Check::LegacyAck, "FF", Reply::Accepted),
        (FRONT, TURN, Check::Crc16, "FF", Reply::Accepted),
    ] {
        let reply = bytes(reply);
        assert_eq!(
            command.decode(address, check, &reply),
            Ok(expected),
            "{command:?} {reply:02X?}"
        );
        // A reply to another request has the wrong checksum here.
        if reply.len() > 1 {
            let other = command.decode(address ^ 1, check, &reply);
            assert_eq!(other, Err(BadReply::Check));
        }
    }
    for reply in ["", "00", "FF FF"] {
        let refused = TURN.decode(FRONT, Check::Crc16, &bytes(reply));
        assert_eq!(refused, Err(BadReply::Refused));
    }
}

#[test]
fn a_checksum_of_a_real_controller_is_valid() {
    // A reply to `80 10` (encoder M1) that a user of a controller published.
    let reply = bytes("00 00 00 06 80 16");
    let data = checked(REAR, 16, Check::Legacy, &reply);
    assert_eq!(data, Ok(&bytes("00 00 00 06 80")[..]));
}

#[test]
fn the_version_reveals_the_generation() {
    let text = b"USB Roboclaw 2x30a v4.1.11\n\0";
    for (check, tail) in [(Check::Crc16, 2), (Check::Legacy, 1)] {
        let all = [&[FRONT, 21], &text[..]].concat();
        let mut reply = text.to_vec();
        match check {
            Check::Crc16 => reply.extend(crc16(&all).to_be_bytes()),
            _ => reply.push(sum7(&all)),
        }
        assert_eq!(reply.len(), text.len() + tail);
        let version = Reply::Version("USB Roboclaw 2x30a v4.1.11".into(), check);
        assert_eq!(
            Command::Version.decode(FRONT, Check::Legacy, &reply),
            Ok(version)
        );
        reply[3] ^= 4;
        assert_eq!(
            Command::Version.decode(FRONT, Check::Legacy, &reply),
            Err(BadReply::Check)
        );
    }
}

#[test]
fn the_same_bit_has_different_meanings() {
    let faults = |bits, width| Status { bits, width }.faults().collect::<Vec<_>>();
    for (bits, width, expected) in [
        (0x20, StatusWidth::U8, vec![Fault::BatteryLow]),
        (
            0x20,
            StatusWidth::U16,
            vec![Fault::Error("main battery high")],
        ),
        (
            0x20,
            StatusWidth::U32,
            vec![Fault::Error("logic battery low")],
        ),
        (0x800, StatusWidth::U16, vec![Fault::BatteryLow]),
        (0x8_0000, StatusWidth::U32, vec![Fault::BatteryLow]),
        (
            0x21,
            StatusWidth::U8,
            vec![Fault::Error("M1 over-current"), Fault::BatteryLow],
        ),
        (
            0x8000,
            StatusWidth::U16,
            vec![Fault::Warning("an unknown bit")],
        ),
        (0, StatusWidth::U32, vec![]),
    ] {
        assert_eq!(faults(bits, width), expected, "{bits:x} {width:?}");
    }
}

#[test]
fn the_dialect_determines_the_length_of_a_reply() {
    let dialect = |check, status| Some(Dialect { check, status });
    for (command, dialect, shape) in [
        (Command::Version, None, Shape::UntilSilence),
        (Command::Status, None, Shape::UntilSilence),
        (
            Command::Status,
            dialect(Check::Crc16, StatusWidth::U16),
            Shape::Bytes(4),
        ),
        (
            Command::Speed(Motor::M2),
            dialect(Check::Legacy, StatusWidth::U8),
            Shape::Bytes(6),
        ),
        (
            STOP,
            dialect(Check::Legacy, StatusWidth::U8),
            Shape::Nothing,
        ),
        (
            STOP,
            dialect(Check::LegacyAck, StatusWidth::U8),
            Shape::Bytes(1),
        ),
    ] {
        assert_eq!(command.shape(dialect), shape, "{command:?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        reply in prop::collection::vec(any::<u8>(), 0..70),
        address in any::<u8>(),
    ) {
        for command in [
            Command::Version,
            Command::Status,
            Command::Speed(Motor::M1),
            Command::MainBattery,
            STOP,
        ] {
            for check in [Check::Legacy, Check::LegacyAck, Check::Crc16] {
                if let Ok(Reply::Status(status)) = command.decode(address, check, &reply) {
                    let _ = status.faults().count();
                }
            }
        }
    }

    #[test]
    fn one_flipped_bit_is_detected(speed in any::<i32>(), byte in 0_usize..7, bit in 0..8) {
        let mut reply = [&speed.to_be_bytes()[..], &[u8::from(speed < 0)]].concat();
        let all = [&[REAR, 18], &reply[..]].concat();
        reply.extend(crc16(&all).to_be_bytes());
        let command = Command::Speed(Motor::M1);
        prop_assert_eq!(command.decode(REAR, Check::Crc16, &reply), Ok(Reply::Number(speed)));
        reply[byte] ^= 1_u8 << bit;
        prop_assert_eq!(command.decode(REAR, Check::Crc16, &reply), Err(BadReply::Check));
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}
