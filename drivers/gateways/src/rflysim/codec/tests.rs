//! Recorded and worked packets, every length and magic number, and bad packets.

use proptest::prelude::*;

use super::*;
use crate::testing::unhex;

/// Vehicle 1 at N 1, E 2, D -10 with yaw 1.5.
const FULL_ESTIMATE: &str = "
    ffffffff 70000000 40e20100 01000000 ce04ef17 93c54b45 50c30000 64000000
    ceffffff 00000000 ce04ef17 93c54b45 50c30000 10270000 905f0100 0c000000
    03000000 00000000 00000000 00000000 0000c03f 0000803f 00000040 000020c1
    0000803f 000000bf 00000000 cdcc4c3f 9a99993f 0000803f";
const TRUTH_200: &str = "
    ffffffff 98000000 01000000 03000000 00000000 00002940 0000803f 000000bf
    00000000 0000803f 00000040 000020c1 00000000 00000000 0000c03f f74f3b3f
    00000000 00000000 e17f2e3f 00007a45 00007a45 00007a45 00007a45 00000000
    00000000 00000000 00000000 00000000 00000000 cdcc1cc1 00000000 00000000
    cdcccc3d 00000000 55ccf742 b7134440 a0877f7d 99105d40 00000000 00004e40
    00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
    00000000 00000000";
const EXTERNAL: &str = "
    da029649 01000000 00000000 00002940 cdcccc3d cdcc4c3e 9a99993e cdcccc3e
    00000000 00000000 00000000 000080bf";
const SIMPLE_ESTIMATE: &str = "
    d2029649 ce04ef17 93c54b45 50c30000 00000000 00000000 0000c03f 0000803f
    00000040 000020c1 0000803f 000000bf 00000000";

const HOME: [i32; 3] = [401_540_302, 1_162_593_683, 50_000];

#[test]
fn full_estimate_packet() {
    let state = FullEstimate {
        time_boot_ms: 123_456,
        copter_id: 1,
        gps_position: HOME,
        gps_velocity_cm_s: [100, -50, 0],
        gps_home: HOME,
        relative_altitude_mm: 10_000,
        heading_mdeg: 90_000,
        satellites_visible: 12,
        fix_type: 3,
        reserved_int: 0,
        angles_rad: [0.0, 0.0, 1.5],
        position_m: [1.0, 2.0, -10.0],
        velocity_m_s: [1.0, -0.5, 0.0],
        horizontal_accuracy_m: 0.8,
        vertical_accuracy_m: 1.2,
        reserved_float: 1.0,
    };
    check(FULL_ESTIMATE, Packet::FullEstimate(NO_COLLISION, state));
}

#[test]
fn true_state_packet() {
    let state = Truth200 {
        copter_id: 1,
        vehicle_type: 3,
        time_s: 12.5,
        velocity_m_s: [1.0, -0.5, 0.0],
        position_m: [1.0, 2.0, -10.0],
        angles_rad: [0.0, 0.0, 1.5],
        quaternion: [0.731_688_9, 0.0, 0.0, 0.681_638_8],
        motors_rpm: [4000.0, 4000.0, 4000.0, 4000.0, 0.0, 0.0, 0.0, 0.0],
        acceleration_m_s2: [0.0, 0.0, -9.8],
        rates_rad_s: [0.0, 0.0, 0.1],
        padding: Padding,
        gps_position: [40.154_030_2, 116.259_368_3, 60.0],
    };
    check(TRUTH_200, Packet::Truth200(NO_COLLISION, state));
}

#[test]
fn external_packet() {
    let message = ExternalMessage {
        copter_id: 1,
        time_s: 12.5,
        controls: [0.1, 0.2, 0.3, 0.4, 0.0, 0.0, 0.0, -1.0],
    };
    check(EXTERNAL, Packet::External(message));
}

#[test]
fn simple_estimate_packet() {
    let state = SimpleEstimate {
        gps_home: HOME,
        angles_rad: [0.0, 0.0, 1.5],
        position_m: [1.0, 2.0, -10.0],
        velocity_m_s: [1.0, -0.5, 0.0],
    };
    check(
        SIMPLE_ESTIMATE,
        Packet::SimpleEstimate(SimpleKind::State, state),
    );
}

/// Sent by the Python program of RflySim at its start: disarm.
#[test]
fn recorded_disarm() {
    let disarm = ShortCommand {
        mode: 9,
        controls: [0.0; 4],
    };
    assert_eq!(ControlMode::from_number(disarm.mode), ControlMode::Arm);
    let hex = "d2029649 09000000 00000000 00000000 00000000 00000000";
    check(hex, Packet::ShortCommand(disarm));
}

/// `SendVelFRD(0.5, 0, 0, 0.2)` of the Python program in the mode `UDP_Simple`.
#[test]
fn recorded_short_velocity() {
    let drive = ShortCommand {
        mode: 1,
        controls: [0.5, 0.0, 0.0, 0.2],
    };
    let hex = "d2029649 01000000 0000003f 00000000 00000000 cdcc4c3e";
    check(hex, Packet::ShortCommand(drive));
}

/// The same call in the mode `UDP_Full`: the parts that were recorded.
#[test]
fn recorded_full_velocity() {
    let drive = FullCommand {
        time_boot_ms: 0,
        copter_id: 1,
        modes: ignored::POSITION | ignored::ACCELERATION | 1 << 9 | ignored::YAW,
        flags: FRAME_BODY,
        position_m: [0.0; 3],
        velocity_m_s: [0.5, 0.0, 0.0],
        acceleration_m_s2: [0.0; 3],
        yaw_rad: 0.0,
        yaw_rate_rad_s: 0.2,
        unused: [0.0; 5],
    };
    assert_eq!(drive.modes, 0x7c7);
    let bytes = Packet::FullCommand(drive).encode();
    assert_eq!(bytes.len(), 120);
    assert_eq!(bytes[..8], unhex("03000000 50000000"));
    assert_eq!(bytes[16..24], unhex("c7070000 08000000"));
    assert_eq!(bytes[36..40], unhex("0000003f"));
    assert_eq!(bytes[64..68], unhex("cdcc4c3e"));
    assert_eq!(
        decode(Port::Control, &bytes),
        Ok(Packet::FullCommand(drive))
    );
}

#[test]
fn bytes_that_align_or_fill_may_have_any_value() {
    let mut truth = unhex(TRUTH_200);
    let clean = decode(Port::Truth, &truth).unwrap();
    truth[132..136].fill(0xaa);
    truth[160..].fill(0x55);
    assert_eq!(decode(Port::Truth, &truth), Ok(clean));
}

#[test]
fn wrong_body_lengths_are_rejected() {
    // The manual says that the length is 120 or 200; programs check for 112 and 152.
    for (hex, port, wrong) in [
        (FULL_ESTIMATE, Port::Estimate, 120),
        (TRUTH_200, Port::Truth, 200),
    ] {
        let mut bytes = unhex(hex);
        bytes[4] = wrong;
        let error = BadPacket::BodyLength {
            length: bytes.len(),
            written: i32::from(wrong),
        };
        assert_eq!(decode(port, &bytes), Err(error));
    }
}

#[test]
fn numbers_that_are_not_finite_are_noticed() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut bytes = unhex(FULL_ESTIMATE);
        assert!(decode(Port::Estimate, &bytes).unwrap().is_finite());
        bytes[84..88].copy_from_slice(&value.to_le_bytes());
        assert!(!decode(Port::Estimate, &bytes).unwrap().is_finite());
    }
}

#[test]
fn mavlink_is_recognised() {
    for first in [0xfd, 0xfe] {
        for length in [1, 17, 24, 120] {
            let bytes = [&[first][..], &vec![0; length - 1]].concat();
            assert_eq!(decode(Port::Control, &bytes), Err(BadPacket::Mavlink));
            assert_eq!(decode(Port::Estimate, &bytes), Err(BadPacket::Mavlink));
        }
    }
    // A vehicle that has hit number 253 or 254 also begins with this byte.
    for hit in [0xfd, 0xfe] {
        let mut bytes = unhex(FULL_ESTIMATE);
        bytes[..4].copy_from_slice(&[hit, 0, 0, 0]);
        let Ok(Packet::FullEstimate(tag, _)) = decode(Port::Estimate, &bytes) else {
            panic!("not a full estimate");
        };
        assert_eq!(tag, i32::from(hit));
    }
}

/// Every packet: its port, its length, the magic numbers (or `None` for a tag) and the length
/// that is written behind the tag.
type Form = (Port, usize, &'static [i32], Option<i32>);
const FORMS: &[Form] = &[
    (Port::Estimate, 120, &[NO_COLLISION, 0, 7], Some(112)),
    (
        Port::Estimate,
        52,
        &[1234567890, 1234567891, 1234567892],
        None,
    ),
    (Port::Truth, 200, &[NO_COLLISION, 0, 7], Some(152)),
    (Port::Truth, 168, &[123456789], None),
    (Port::Truth, 112, &[1234567891], None),
    (Port::Truth, 264, &[1234567890], None),
    (Port::Truth, 32, &[1234567890], None),
    (Port::Truth, 12, &[1234567890], None),
    (Port::External, 48, &[1234567898], None),
    (Port::Control, 24, &[1234567890], None),
    (Port::Control, 120, &[3], Some(80)),
    (Port::Control, 8, &[987654321], None),
    (Port::Model, 120, SETS, None),
    (Port::Model, 232, SETS, None),
    (Port::Model, 232, HELD, None),
    (
        Port::Model,
        264,
        &[1234567891, 1234567892, 1234567899],
        None,
    ),
    (Port::Model, 528, &[1234567893], None),
    (Port::Model, 80, &[1234567896], None),
    (Port::Model, 60, &[1234567890], None),
    (Port::Model, 88, &[1234567880, 1234567881], None),
];
const SETS: &[i32] = &[
    1234567897, 1234567801, 1234567802, 1234567803, 1234567804, 1234567805,
];
const HELD: &[i32] = &[1234567901, 1234567902, 1234567903, 1234567904, 1234567905];

/// A datagram of this form, filled with the given bytes.
fn datagram((_, length, _, written): Form, magic: i32, fill: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = fill.iter().copied().cycle().take(length).collect();
    bytes[..4].copy_from_slice(&magic.to_le_bytes());
    if let Some(written) = written {
        bytes[4..8].copy_from_slice(&written.to_le_bytes());
    }
    bytes
}

#[test]
fn every_length_with_right_and_wrong_magic_numbers() {
    for &form in FORMS {
        let (port, length, numbers, written) = form;
        for &magic in numbers {
            let packet = decode(port, &datagram(form, magic, &[0])).unwrap();
            assert_eq!(packet.port(), port);
            assert_eq!(packet.encode(), datagram(form, magic, &[0]), "{packet:?}");
        }
        for magic in [
            0,
            4,
            2,
            1234567806,
            1234567900,
            1234567906,
            i32::MIN,
            i32::MAX,
        ] {
            let decoded = decode(port, &datagram(form, magic, &[0]));
            match written {
                // A tag is the id of another vehicle, so any is right.
                Some(112 | 152) => assert!(decoded.is_ok()),
                _ => assert_eq!(decoded, Err(BadPacket::Magic { length, magic })),
            }
        }
    }
}

#[test]
fn every_other_length_is_rejected() {
    for port in Port::ALL {
        for length in 0..600 {
            if !FORMS.iter().any(|form| (form.0, form.1) == (port, length)) {
                let decoded = decode(port, &vec![0; length]);
                assert_eq!(decoded, Err(BadPacket::Length(length)));
            }
        }
    }
}

proptest! {
    /// What is decoded is written again as the same bytes, but for those without a meaning.
    #[test]
    fn round_trip(form in prop::sample::select(FORMS), fill in prop::collection::vec(any::<u8>(), 1..600)) {
        for &magic in form.2 {
            let mut bytes = datagram(form, magic, &fill);
            let again = decode(form.0, &bytes).unwrap().encode();
            match (form.0, form.1) {
                (Port::Truth, 200) => {
                    bytes[132..136].fill(0);
                    bytes[160..].fill(0);
                }
                (Port::Control, 120) => bytes[88..].fill(0),
                _ => {}
            }
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn no_input_panics(port in prop::sample::select(&Port::ALL[..]), bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        if let Ok(packet) = decode(port, &bytes) {
            packet.is_finite();
        }
    }
}

#[track_caller]
fn check(hex: &str, packet: Packet) {
    let bytes = unhex(hex);
    assert_eq!(decode(packet.port(), &bytes).as_ref(), Ok(&packet));
    assert_eq!(packet.encode(), bytes);
}
