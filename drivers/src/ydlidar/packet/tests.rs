//! Packets of the maker's documents and of a real X4, packets computed from their description, and
//! damaged ones.

use proptest::prelude::*;

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.split_ascii_whitespace();
    digits
        .map(|it| u8::from_str_radix(it, 16).unwrap())
        .collect()
}

/// Three points in form A, whose angles are 223.78 to 225.78 degrees.
const THREE: &str = "aa 55 00 03 e5 6f e5 70 4b 59 a0 0f 41 1f 00 00";

const BOTH: &[Form] = &[Form::Plain, Form::Strength8];

/// All packets in these bytes, which arrive in pieces of this length.
fn packets(forms: &'static [Form], bytes: &[u8], piece: usize) -> Vec<Packet> {
    let mut parser = Parser::new(forms);
    let mut found = Vec::new();
    for piece in bytes.chunks(piece.max(1)) {
        parser.push(piece);
        found.extend(std::iter::from_fn(|| parser.poll()));
        let longest = HEAD + 3 * usize::from(MAX_POINTS);
        assert!(parser.bytes.len() < longest, "only a partial packet");
    }
    found
}

fn plain(hex: &str) -> Vec<Packet> {
    packets(&[Form::Plain], &bytes(hex), 1_000)
}

#[test]
fn the_first_packet_of_a_turn_has_one_point_and_may_tell_the_rate() {
    for (hex, angle_deg, quarter_mm) in [
        // The maker's document, a real X4, and one that turns 7.0 times per second.
        ("aa 55 01 01 53 ae 53 ae ab 54 00 00", 348.64, 0),
        ("aa 55 01 01 03 42 03 42 ab 54 00 00", 132.02, 0),
        ("aa 55 8d 01 41 00 41 00 87 5b a0 0f", 0.5, 4_000),
    ] {
        let found = plain(hex);
        assert_eq!(found.len(), 1, "{hex}");
        assert!(found[0].starts_turn && found[0].points.len() == 1);
        assert!((found[0].angle_deg(0) - angle_deg).abs() < 0.01, "{hex}");
        assert_eq!(found[0].points[0].quarter_mm, quarter_mm);
    }
    let strong = bytes("aa 55 01 01 53 ae 53 ae ab 54 00 00 00");
    assert_eq!(packets(&[Form::Strength8], &strong, 1_000).len(), 1);
}

#[test]
fn each_form_is_read() {
    let point = |quarter_mm, strength| Point {
        quarter_mm,
        strength,
        is_doubtful: false,
    };
    for (form, hex, expected) in [
        (
            Form::Plain,
            THREE,
            vec![point(4_000, 0), point(8_001, 0), point(0, 0)],
        ),
        (
            Form::Strength8,
            "aa 55 00 03 e5 6f e5 70 b0 59 32 a0 0f c8 40 1f 00 00 00",
            vec![point(4_000, 50), point(8_000, 200), point(0, 0)],
        ),
        // 287 and 1023 of 1023.
        (
            Form::Strength10,
            "aa 55 00 03 e5 6f e5 70 0c 29 1f a1 0f ff e7 6f 00 00 00",
            vec![point(4_000, 71), point(28_644, 255), point(0, 0)],
        ),
    ] {
        let bytes = bytes(hex);
        let packet = Packet::read(form, &bytes).unwrap();
        assert_eq!(packet.points, expected);
        assert_eq!(packet.length, bytes.len());
        assert!(!packet.starts_turn);
        for (index, angle_deg) in [(0, 223.781), (1, 224.781), (2, 225.781)] {
            assert!((packet.angle_deg(index) - angle_deg).abs() < 0.001);
        }
    }
    let flagged = |word: u16| Form::Flagged.point(&word.to_le_bytes());
    assert_eq!(flagged(4_000), point(4_000, 0));
    assert!(flagged(4_001).is_doubtful);
    let glass = Form::Strength8.point(&[9, 0xA2, 0x0F]);
    assert!(glass.is_doubtful && glass.quarter_mm == 4_000);
}

#[test]
fn an_angle_may_pass_zero() {
    let packet = Packet {
        starts_turn: false,
        first: 359 * 64,
        last: 64,
        points: vec![Form::Plain.point(&[0, 0]); 5],
        length: 20,
    };
    assert!((packet.span_deg() - 2.0).abs() < 1e-9);
    for (index, angle_deg) in [359.0, 359.5, 0.0, 0.5, 1.0].into_iter().enumerate() {
        assert!((packet.angle_deg(index) - angle_deg).abs() < 1e-9);
    }
}

#[test]
fn the_form_is_found_by_the_checksum() {
    let strong = bytes("aa 55 00 03 e5 6f e5 70 b0 59 32 a0 0f c8 40 1f 00 00 00");
    // The checksum of this one fits both forms.
    let unclear = bytes("aa 55 01 01 53 ae 53 ae ab 54 00 00 00");
    let found = packets(
        BOTH,
        &[&unclear[..], &strong, &unclear, &strong].concat(),
        7,
    );
    let counts: Vec<_> = found.iter().map(|packet| packet.points.len()).collect();
    assert_eq!(counts, [0, 3, 1, 3]);
    let found = packets(BOTH, &[&bytes(THREE)[..], &bytes(THREE)].concat(), 7);
    assert_eq!(found.len(), 2);
    assert!(
        found
            .iter()
            .all(|packet| packet.points[1].quarter_mm == 8_001)
    );
}

#[test]
fn bytes_around_a_packet_do_not_hide_it() {
    let packet = bytes(THREE);
    for before in [
        // The answer to the start, the time, heads that are none, and a damaged packet.
        "a5 5a 05 00 00 40 81",
        "aa 66 6f 40 e2 01 00 00",
        "aa aa",
        "aa 55 00",
        "aa 55 00 50 41 00",
        "aa 55 00 03 e5 6f e5 70 4b 59 a1 0f 41 1f 00 00",
    ] {
        // Behind it, there are enough bytes for the longest packet.
        let all = [&bytes(before)[..], &packet, &[0; 300]].concat();
        for piece in [1, 7, 1_000] {
            let found = packets(&[Form::Plain], &all, piece);
            assert_eq!(found.len(), 1, "{before} in pieces of {piece}");
        }
    }
    let mut parser = Parser::new(&[Form::Plain]);
    parser.push(&bytes("aa 66 6f 40 e2 01 00 00"));
    assert!(parser.poll().is_none());
    assert_eq!(parser.skipped(), 0, "the time is no damage");
}

#[test]
fn damage_is_noticed() {
    let good = bytes(THREE);
    for bit in 0..good.len() * 8 {
        let mut damaged = good.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Packet::read(Form::Plain, &damaged), None, "bit {bit}");
    }
}

proptest! {
    #[test]
    fn random_bytes_are_no_problem(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        packets(BOTH, &bytes, 100);
    }

    #[test]
    fn a_packet_is_found_after_noise(
        noise in proptest::collection::vec(any::<u8>(), 0..500),
        piece in 1_usize..100,
    ) {
        let packet = bytes(THREE);
        let all = [&noise[..], &packet, &packet, &[0; 300]].concat();
        let found = packets(&[Form::Plain], &all, piece);
        prop_assert!(!found.is_empty());
    }
}
