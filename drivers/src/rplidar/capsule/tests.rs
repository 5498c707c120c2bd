//! Nodes of a real A1, capsules computed from their description, and damaged ones.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.split_ascii_whitespace();
    digits
        .map(|it| u8::from_str_radix(it, 16).unwrap())
        .collect()
}

/// A capsule with these bytes behind its checksum.
fn capsule(format: Format, rest: &[u8]) -> Vec<u8> {
    let sum = rest.iter().fold(0, |sum, byte| sum ^ byte);
    [&[0xA0 | (sum & 15), 0x50 | (sum >> 4)][..], rest].concat()[..format.length()].to_vec()
}

#[track_caller]
fn check(point: Point, angle_deg: f64, mm: u16) {
    let off_deg = (point.angle_deg - angle_deg).rem_euclid(360.0);
    assert!(off_deg.min(360.0 - off_deg) < 0.01, "{point:?} {angle_deg}");
    assert_eq!(point.mm, mm, "{point:?}");
}

#[test]
fn nodes_of_a_real_a1_and_of_the_description_are_read() {
    for (hex, quality, angle_deg, mm) in [
        ("bd 01 00 a0 0f", 47, 0.0, 1_000),
        ("3e 41 2d a5 24", 15, 90.5, 2_345),
        ("02 ff b3 00 00", 0, 359.984, 0),
        // Of a real one. The third has a quality, but no distance.
        ("3e 4b 45 9a 38", 15, 138.578, 3_623),
        ("02 cd 49 00 00", 0, 147.594, 0),
        ("3e 53 46 00 00", 15, 140.641, 0),
        ("3e 75 46 6d 2e", 15, 140.906, 2_971),
        ("3e 65 4a 88 03", 15, 148.781, 226),
    ] {
        let read = node(&bytes(hex)).unwrap();
        check(read, angle_deg, mm);
        assert_eq!(read.quality, quality, "{hex}");
    }
    for wrong in [
        "bc 01 00 a0 0f",
        "bf 01 00 a0 0f",
        "bd 00 00 a0 0f",
        "bd 01 b4 a0 0f",
        "bd 01",
    ] {
        assert_eq!(node(&bytes(wrong)), None, "{wrong}");
    }
}

#[test]
fn an_express_capsule_says_how_far_its_points_are_behind() {
    let a = bytes(
        "a2 50 80 82 a3 0f a7 0f 88 ab 0f af 0f 88 b3 0f b7 0f 88 bb 0f bf 0f 88 c3 0f c7 0f 88 \
         cb 0f cf 0f 88 d3 0f d7 0f 88 db 0f df 0f 88 e3 0f e7 0f 88 eb 0f ef 0f 88 f3 0f f7 0f 88 \
         fb 0f ff 0f 88 03 10 07 10 88 0b 10 0f 10 88 13 10 17 10 88 1b 10 1f 10 88",
    );
    let b = bytes(&format!("aa 5b b3 09 {}", "40 1f 40 1f 11 ".repeat(16)));
    let a = Capsule::read(Format::Express, &a).unwrap();
    let b = Capsule::read(Format::Express, &b).unwrap();
    assert!(a.is_first() && !b.is_first());
    let points = a.points(&b);
    assert_eq!(points.len(), 32);
    check(points[0], 3.0, 1_000);
    check(points[1], 3.9, 1_001);
    check(points[31], 30.9, 1_031);
    assert_eq!(points[0].head_deg, 10.0);
    check(b.points(&a)[0], 38.67, 2_000);
}

#[test]
fn a_dense_capsule_may_pass_the_front() {
    let distances = (0..40).flat_map(|k| (1_500 + 10 * k as u16).to_le_bytes());
    let a: Vec<_> = [0x80, 0xD7].into_iter().chain(distances).collect();
    let a = capsule(Format::Dense, &a);
    assert_eq!(a[..6], bytes("a7 5d 80 d7 dc 05"));
    let b = bytes(&format!("ab 51 1a 01 {}", "b8 0b ".repeat(40)));
    let a = Capsule::read(Format::Dense, &a).unwrap();
    let b = Capsule::read(Format::Dense, &b).unwrap();
    let points = a.points(&b);
    assert_eq!(points.len(), 40);
    check(points[0], 350.0, 1_500);
    check(points[27], 359.72, 1_770);
    check(points[28], 0.08, 1_780);
}

#[test]
fn an_ultra_capsule_has_differences_from_this_and_the_next_distance() {
    // 1000 mm and 2 mm more for each of 96 points, from 100 degrees on; then 1192 mm.
    let group = |major: u16| u32::from(major) | (1 << 12) | (0x3FF << 22);
    let body = (0..32).flat_map(|k| group(0x2F4 + 3 * k).to_le_bytes());
    let a: Vec<_> = [0x00, 0x99].into_iter().chain(body).collect();
    let a = capsule(Format::Ultra, &a);
    assert_eq!(a[..8], bytes("a9 5b 00 99 f4 12 c0 ff"));
    assert_eq!(a[128..], bytes("51 13 c0 ff"));
    let mut b = vec![0x00, 0x1F];
    b.resize(130, 0);
    b[2..6].copy_from_slice(&group(0x354).to_le_bytes());
    let a = Capsule::read(Format::Ultra, &a).unwrap();
    let b = Capsule::read(Format::Ultra, &capsule(Format::Ultra, &b)).unwrap();
    let points = a.points(&b);
    assert_eq!(points.len(), 96);
    for (k, point) in points.iter().enumerate() {
        let mm = 1_000 + 2 * k as u16;
        check(*point, 100.0 + k as f64 * 0.25 - behind_deg(mm), mm);
    }
    // From a distance of 0, differences count from the next one; -512 and 511 are no measurements.
    assert_eq!(predicted((1_000, 1), 0x200), 0);
    assert_eq!(predicted((1_000, 1), 0x1FF), 0);
    assert_eq!(predicted((1_000, 1), 0x3FE), 996);
    assert_eq!(predicted((100, 1), 0x201), 0);
}

#[test]
fn codes_of_distances_are_coarser_farther_away() {
    for (code, mm) in [
        (0, 0),
        (511, 511),
        (0x2F4, 1_000),
        (0x4FF, 2_046),
        (0x500, 2_048),
        (0x700, 4_096),
        (0x9E2, 10_000),
        (0xD00, 16_384),
        (0xF1A, 24_992),
        (0xFFF, 28_656),
    ] {
        assert_eq!(major(code).0, mm, "{code:x}");
    }
}

#[test]
fn triangulated_points_are_behind_the_head() {
    for (mm, expected_deg) in [
        (0, 7.5),
        (50, -20.526),
        (100, -5.839),
        (150, -1.159),
        (200, 1.158),
        (500, 5.257),
        (1_000, 6.657),
        (2_000, 7.328),
        (5_000, 7.776),
        (12_000, 7.888),
    ] {
        let found = behind_deg(mm);
        assert!((found - expected_deg).abs() < 0.001, "{mm} mm: {found}");
    }
}

#[test]
fn an_ultra_dense_capsule_has_strengths() {
    // Each pair of points of the description: 1000 mm, 100 mm more for each, strength 100.
    let head = bytes("a7 5a 40 e2 01 00 00 00 00 b2");
    let first = bytes("d0 47 98 48 66 60 49 28 4a 66");
    let mut rest = [&head[2..], &first].concat();
    rest.resize(172, 0);
    let a = Capsule::read(Format::UltraDense, &capsule(Format::UltraDense, &rest)).unwrap();
    assert!(a.is_first());
    let points = a.points(&a);
    assert_eq!(points.len(), 64);
    for (k, mm) in [1_000, 1_100, 1_200, 1_300, 0].into_iter().enumerate() {
        check(points[k], 200.0, mm);
        assert_eq!(points[k].quality, if mm > 0 { 100 } else { 0 });
    }
    for (word, mm, strength) in [
        (0x647D0, 1_000, 100),
        (0x64FFC, 2_046, 100),
        (0x64001, 2_046, 100),
        (0x64F61, 4_998, 100),
        (0x6400E, 8_199, 100),
        (0x66E26, 19_999, 100),
        (0x6303B, 39_997, 96),
    ] {
        let (found_mm, found, _) = strong_distance(word);
        assert_eq!((found_mm, found), (mm, strength), "{word:x}");
    }
}

#[test]
fn no_damaged_capsule_is_read() {
    for format in [
        Format::Express,
        Format::Ultra,
        Format::Dense,
        Format::UltraDense,
    ] {
        let rest: Vec<_> = (0..format.length() as u8 - 2)
            .map(|byte| byte & 63)
            .collect();
        let good = capsule(format, &rest);
        assert!(Capsule::read(format, &good).is_some());
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                assert_eq!(Capsule::read(format, &bad), None, "{format:?} {at} {bit}");
            }
        }
        assert_eq!(Capsule::read(format, &good[..good.len() - 1]), None);
    }
}
