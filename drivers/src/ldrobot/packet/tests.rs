//! Packets of a real LD06, packets computed from their description, and damaged ones.

use proptest::prelude::*;

use super::*;

/// Two packets of a real LD06.
const REAL: [&str; 2] = [
    "54 2c 11 0e b5 7b 1c 12 60 ce 11 94 af 11 d4 80 11 d2 51 11 d2 23 11 d2 f4 10 d4 c5 10 d5 96 10 \
     d4 77 10 d4 58 10 d4 29 10 d4 18 7f ca 1e 74",
    "54 2c 0b 0e 33 7d 22 11 d3 03 11 d4 c5 10 d5 a6 10 d6 77 10 d3 58 10 d4 29 10 d4 19 10 d4 8d 0f \
     d4 7d 0f e2 bc 0f e4 6e 0f e0 9d 80 1d 43 e4",
];

/// 350.0 to 358.8 degrees, 1000 mm and 10 mm more for each point.
const COMPUTED: &str = "54 2c 10 0e b8 88 e8 03 c8 f2 03 c9 fc 03 ca 06 04 cb 10 04 cc 1a 04 cd 24 04 \
     ce 2e 04 cf 38 04 d0 42 04 d1 4c 04 d2 56 04 d3 28 8c 39 30 d1";

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.split_ascii_whitespace();
    digits
        .map(|it| u8::from_str_radix(it, 16).unwrap())
        .collect()
}

/// All packets in these bytes, which arrive in pieces of this length.
fn packets(bytes: &[u8], piece: usize) -> Vec<Packet> {
    let mut parser = Parser::default();
    let mut found = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        parser.push(piece);
        found.extend(std::iter::from_fn(|| parser.poll()));
        assert!(
            parser.bytes.len() < LENGTH,
            "it keeps only a partial packet"
        );
    }
    found
}

fn only(bytes: &[u8]) -> Packet {
    let found = packets(bytes, LENGTH);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0]
}

#[test]
fn a_packet_of_a_real_scanner_is_read() {
    let packet = only(&bytes(REAL[0]));
    assert_eq!((packet.speed_deg_s, packet.stamp_ms), (3601, 7882));
    assert_eq!((packet.first, packet.last), (31_669, 32_536));
    assert_eq!(packet.points[..3], [(4636, 96), (4558, 148), (4527, 212)]);
    assert_eq!(packet.points[11], (4137, 212));
    assert!((packet.span_deg() - 8.67).abs() < 1e-9);
    let other = only(&bytes(REAL[1]));
    assert_eq!((other.speed_deg_s, other.stamp_ms), (3595, 17_181));
    assert_eq!((other.first, other.last), (32_051, 32_925));
}

#[test]
fn points_lie_at_equal_steps_also_across_zero() {
    let packet = only(&bytes(COMPUTED));
    assert_eq!((packet.speed_deg_s, packet.stamp_ms), (3600, 12_345));
    for (k, (mm, intensity)) in packet.points.into_iter().enumerate() {
        assert_eq!((mm, intensity), (1000 + 10 * k as u16, 200 + k as u8));
        assert!((packet.angle_deg(k) - (350.0 + 0.8 * k as f64)).abs() < 1e-9);
    }
    let across = format!(
        "54 2c 10 0e c0 8a {} 00 00 00 90 01 2f 75 2a",
        "d0 07 b4 ".repeat(11)
    );
    let packet = only(&bytes(&across));
    assert_eq!(
        (packet.first, packet.last, packet.stamp_ms),
        (35_520, 400, 29_999)
    );
    assert!((packet.angle_deg(6) - 0.0).abs() < 1e-9);
    assert!((packet.angle_deg(11) - 4.0).abs() < 1e-9);
    assert_eq!(
        (packet.points[10], packet.points[11]),
        ((2000, 180), (0, 0))
    );
}

#[test]
fn a_head_within_the_data_is_data() {
    let hidden = format!(
        "54 2c 10 0e 5c 2b 54 2c c8 {} cc 2e 64 00 fa",
        "e8 03 c8 ".repeat(11)
    );
    let packet = only(&bytes(&hidden));
    assert_eq!(packet.points[0], (0x2C54, 200));
    // The beginning is missing: its data look like the head of a packet.
    let stream = [&bytes(&hidden)[3..], &bytes(COMPUTED), &bytes(REAL[0])].concat();
    assert_eq!(packets(&stream, 5).len(), 2);
}

#[test]
fn checksums_are_those_of_the_maker() {
    assert_eq!(crc(b"123456789"), 0xC3);
    assert_eq!((CRC[1], CRC[255]), (0x4D, 0xA8));
    assert_eq!(START.to_vec(), bytes("54 a0 04 00 00 00 00 5e"));
    assert_eq!(STOP.to_vec(), bytes("54 a1 04 00 00 00 00 4a"));
}

#[test]
fn every_damaged_byte_spoils_its_packet_only() {
    let good = [bytes(REAL[0]), bytes(COMPUTED), bytes(REAL[1])];
    let expected: Vec<_> = good.iter().map(|it| only(it)).collect();
    for at in 0..LENGTH {
        for bit in 0..8 {
            let mut stream = good.concat();
            stream[LENGTH + at] ^= 1 << bit;
            assert_eq!(
                packets(&stream, 100),
                [expected[0], expected[2]],
                "{at} {bit}"
            );
        }
        // A byte is missing.
        let mut stream = good.concat();
        stream.remove(LENGTH + at);
        assert_eq!(packets(&stream, 13), [expected[0], expected[2]], "{at}");
    }
}

proptest! {
    #[test]
    fn anything_may_arrive(noise in proptest::collection::vec(any::<u8>(), 0..600), piece in 1_usize..200) {
        let stream = [noise.clone(), bytes(REAL[0]), bytes(COMPUTED), bytes(REAL[1])].concat();
        let found = packets(&stream, piece);
        // Noise with the right checksum may take the first packet, but no more.
        prop_assert!(found.ends_with(&[only(&bytes(COMPUTED)), only(&bytes(REAL[1]))]));
    }

    #[test]
    fn heads_in_noise_do_no_harm(heads in 0_usize..200, piece in 1_usize..200) {
        let stream = [HEAD.repeat(heads), bytes(REAL[0]), bytes(REAL[1])].concat();
        let found = packets(&stream, piece);
        prop_assert_eq!(found.last(), Some(&only(&bytes(REAL[1]))));
    }
}
