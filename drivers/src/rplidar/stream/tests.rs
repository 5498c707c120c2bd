//! Streams in pieces, with a wrong byte, and behind garbage.

use proptest::prelude::*;

use super::*;

const FORMATS: [Format; 5] = [
    Format::Nodes,
    Format::Express,
    Format::Ultra,
    Format::Dense,
    Format::UltraDense,
];

/// A node or a capsule of half a degree for each point; its distances tell its number.
fn unit(format: Format, number: u16) -> Vec<u8> {
    let mm = 1_000 + number;
    let angle = |number: u16| (u32::from(number) * format.points() as u32 * 32 % (360 * 64)) as u16;
    if format == Format::Nodes {
        let [low, high] = ((angle(number) << 1) | 1).to_le_bytes();
        let [near, far] = (4 * mm).to_le_bytes();
        return vec![0x3E, low, high, near, far];
    }
    let before_angle = if format == Format::UltraDense { 6 } else { 0 };
    let mut rest = vec![0; before_angle];
    rest.extend((angle(number) | (u16::from(number == 0) << 15)).to_le_bytes());
    while rest.len() < format.length() - 2 {
        match format {
            Format::Express => rest.extend((mm << 2).to_le_bytes()),
            _ => rest.extend(mm.to_le_bytes()),
        }
        // The fifth byte of a cabin.
        let is_cabin = matches!(format, Format::Express | Format::UltraDense);
        if is_cabin && (rest.len() - before_angle - 2) % 5 == 4 {
            rest.push(0);
        }
    }
    rest.truncate(format.length() - 2);
    let sum = rest.iter().fold(0, |sum, byte| sum ^ byte);
    [&[0xA0 | (sum & 15), 0x50 | (sum >> 4)][..], &rest].concat()
}

fn units(format: Format, count: u16) -> Vec<u8> {
    (0..count).flat_map(|number| unit(format, number)).collect()
}

/// All points in these bytes, which arrive in pieces of this length.
fn points(format: Format, bytes: &[u8], piece: usize) -> Vec<Point> {
    let mut stream = Stream::new(format);
    let mut found = Vec::new();
    for piece in bytes.chunks(piece) {
        stream.push(piece);
        found.extend(std::iter::from_fn(|| stream.poll()).flatten());
        assert!(stream.bytes.len() < format.length().max(25));
    }
    found
}

#[test]
fn every_point_is_found_once_however_the_bytes_arrive() {
    for format in FORMATS {
        let bytes = units(format, 30);
        let whole = points(format, &bytes, bytes.len());
        // The last capsule waits for the next.
        let capsules = if format == Format::Nodes { 30 } else { 29 };
        assert_eq!(whole.len(), capsules * format.points(), "{format:?}");
        for piece in [1, 7, 100] {
            assert_eq!(points(format, &bytes, piece), whole, "{format:?} {piece}");
        }
        for pair in whole.windows(2) {
            let step = apart_deg(pair[0].head_deg, pair[1].head_deg);
            assert!((step - 0.5).abs() < 0.02, "{format:?} {pair:?}");
        }
    }
}

#[test]
fn no_point_of_a_damaged_capsule_is_found() {
    for format in &FORMATS[1..] {
        let (length, good) = (format.length(), units(*format, 8));
        let whole = points(*format, &good, 100);
        for at in 3 * length..4 * length {
            let mut bytes = good.clone();
            bytes[at] ^= 4;
            // The third capsule has no neighbour, and the damaged one is lost.
            let left = points(*format, &bytes, 100);
            let count = format.points();
            let expected = [&whole[..2 * count], &whole[4 * count..]].concat();
            assert_eq!(left, expected, "{format:?} {at}");
            bytes.remove(at);
            assert_eq!(points(*format, &bytes, 100), expected, "{format:?} {at}");
        }
    }
}

#[test]
fn few_nodes_around_a_missing_byte_are_wrong() {
    let good = units(Format::Nodes, 100);
    for at in 200..205 {
        let mut bytes = good.clone();
        bytes.remove(at);
        let found = points(Format::Nodes, &bytes, 9);
        assert!(found.len() >= 98, "{}", found.len());
        let is_wrong = |point: &&Point| {
            let number = f64::from(point.mm) - 1_000.0;
            apart_deg(number * 0.5, point.angle_deg).abs() > 0.1
        };
        let wrong = found.iter().filter(is_wrong).count();
        assert!(wrong <= 3, "{at}: {wrong}");
    }
}

#[test]
fn the_head_does_not_jump_back() {
    // Behind a near object, the corrected angle is smaller than before.
    let angles = [10.0, 11.0, 18.0, 12.0, 13.0, 14.0, 19.0, 20.0, 30.0, 31.0];
    let node = |deg: &f64| {
        let [low, high] = ((((deg * 64.0) as u16) << 1) | 1).to_le_bytes();
        [0x3E, low, high, 0xA0, 0x0F]
    };
    let bytes: Vec<_> = angles.iter().flat_map(node).collect();
    let found = points(Format::Nodes, &bytes, 100);
    let heads: Vec<_> = found.iter().map(|it| it.head_deg).collect();
    assert!(heads.is_sorted(), "{heads:?}");
    assert_eq!(found.len(), angles.len());
    assert_eq!(found[3].angle_deg, 12.0);
}

#[test]
fn a_first_capsule_does_not_belong_to_those_before_it() {
    let format = Format::Dense;
    let bytes = [units(format, 3), units(format, 3)].concat();
    assert_eq!(points(format, &bytes, 50).len(), 4 * format.points());
    // Others are missing between these two.
    let bytes = [unit(format, 1), unit(format, 8)].concat();
    assert!(points(format, &bytes, 50).is_empty());
}

proptest! {
    #[test]
    fn anything_may_come_before(
        noise in proptest::collection::vec(any::<u8>(), 0..600),
        piece in 1_usize..200,
        format in 0_usize..5,
    ) {
        let format = FORMATS[format];
        let good = units(format, 80);
        let found = points(format, &[noise, good.clone()].concat(), piece);
        let whole = points(format, &good, piece);
        // Noise may look like a capsule, or like nodes. The head of a node that is ahead of the real
        // ones waits for them.
        let of_noise = (3 * format.points()).max(8);
        let ahead = match format {
            Format::Nodes => (MAX_STEP_DEG / 0.5) as usize,
            _ => 0,
        };
        prop_assert!(found.len() >= whole.len() - of_noise);
        let end = |points: &[Point], skipped: usize| points[points.len() + skipped - whole.len()..].to_vec();
        let angles = |points: &[Point]| {
            let points = end(points, of_noise);
            points.iter().map(|it| (it.angle_deg, it.mm, it.quality)).collect::<Vec<_>>()
        };
        prop_assert_eq!(angles(&found), angles(&whole));
        let skipped = of_noise + ahead;
        prop_assert_eq!(end(&found, skipped), end(&whole, skipped));
    }
}
