//! Tests of the answers, of the packets and of their pace.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.split_ascii_whitespace();
    digits
        .map(|it| u8::from_str_radix(it, 16).unwrap())
        .collect()
}

const SECOND: Duration = Duration::from_secs(1);

/// What the scanner sends at once after a request.
fn answers(scanner: &mut Rplidar, now: Duration, hex: &str) -> Vec<u8> {
    scanner.handle_bytes(now, &bytes(hex));
    std::iter::from_fn(|| scanner.poll_output())
        .flatten()
        .collect()
}

/// The packets until a time, in a world where everything is 2 m away.
fn packets(scanner: &mut Rplidar, until: Duration) -> Vec<(Duration, Vec<u8>)> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut found = Vec::new();
    while let Some(due) = scanner.next_packet().filter(|due| *due <= until) {
        scanner.measure(due, &mut random, |_, _| Some(2.0));
        found.extend(std::iter::from_fn(|| Some((due, scanner.poll_output()?))));
    }
    found
}

#[test]
fn questions_are_answered_like_by_a_real_a1() {
    let mut a1 = Rplidar::new(Model::A1, Duration::ZERO);
    for (request, expected) in [
        (
            "a5 50",
            "a5 5a 14 00 00 00 04 18 1d 01 07 92 d8 ed 93 c0 ea 98 c9 a5 e6 98 f2 07 06 46 69",
        ),
        ("a5 52", "a5 5a 03 00 00 00 06 00 00 00"),
        ("a5 59", "a5 5a 04 00 00 00 15 fc 01 fe 00"),
        (
            "a5 84 04 70 00 00 00 55",
            "a5 5a 06 00 00 00 20 70 00 00 00 05 00",
        ),
        (
            "a5 84 04 7c 00 00 00 59",
            "a5 5a 06 00 00 00 20 7c 00 00 00 03 00",
        ),
        (
            "a5 84 06 71 00 00 00 00 00 56",
            "a5 5a 08 00 00 00 20 71 00 00 00 00 fc 01 00",
        ),
        (
            "a5 84 06 74 00 00 00 01 00 52",
            "a5 5a 08 00 00 00 20 74 00 00 00 00 0c 00 00",
        ),
        (
            "a5 84 06 75 00 00 00 00 00 52",
            "a5 5a 05 00 00 00 20 75 00 00 00 81",
        ),
        (
            "a5 84 06 7f 00 00 00 00 00 58",
            "a5 5a 0d 00 00 00 20 7f 00 00 00 53 74 61 6e 64 61 72 64 00",
        ),
        (
            "a5 84 04 01 00 00 00 24",
            "a5 5a 08 00 00 00 20 01 00 00 00 58 02 94 02",
        ),
        // After noise; a wrong checksum, an unknown command, and no board.
        ("00 13 a5 52", "a5 5a 03 00 00 00 06 00 00 00"),
        ("a5 84 04 70 00 00 00 56", ""),
        ("a5 33", ""),
        ("a5 ff 04 00 00 00 00 5e", ""),
        ("a5 82 05 03 00 00 00 00 21", "a5 5a 84 00 00 40 84"),
        ("a5 82 05 00 00 00 00 00 22", "a5 5a 54 00 00 40 82"),
        ("a5 20", "a5 5a 05 00 00 40 81"),
    ] {
        assert_eq!(
            answers(&mut a1, SECOND, request),
            bytes(expected),
            "{request}"
        );
    }
    let mut a2 = Rplidar::new(Model::A2, Duration::ZERO);
    let board = answers(&mut a2, SECOND, "a5 ff 04 00 00 00 00 5e");
    assert_eq!(board, bytes("a5 5a 04 00 00 00 ff 01 00 00 00"));
}

#[test]
fn nodes_and_capsules_have_the_bytes_of_the_description() {
    let sample = |head_deg, behind_deg, mm| Sample {
        head_deg,
        behind_deg,
        mm,
    };
    assert_eq!(
        node(sample(90.5, 0.0, 2345.25), false)[1..],
        bytes("41 2d a5 24")
    );
    assert_eq!(
        node(sample(359.984, 0.0, 0.0), false).to_vec(),
        bytes("02 ff b3 00 00")
    );
    let none = Sample::default();
    let express: Vec<_> = (0..32)
        .map(|k| sample(10.0, 7.0, 1000.0 + f64::from(k)))
        .collect();
    let made = capsule(Format::Express, &express, none, true);
    assert_eq!(
        made[..14],
        bytes("a2 50 80 82 a3 0f a7 0f 88 ab 0f af 0f 88")
    );
    assert_eq!(made.len(), 84);
    let dense: Vec<_> = (0..40)
        .map(|k| sample(350.0, 0.0, 1500.0 + 10.0 * f64::from(k)))
        .collect();
    let made = capsule(Format::Dense, &dense, none, true);
    assert_eq!(made[..8], bytes("a7 5d 80 d7 dc 05 e6 05"));
    assert_eq!(made[82..], bytes("62 07"));
    let ultra: Vec<_> = (0..96)
        .map(|k| sample(100.0, 0.0, 1000.0 + 2.0 * f64::from(k)))
        .collect();
    let made = capsule(Format::Ultra, &ultra, sample(0.0, 0.0, 1192.0), true);
    assert_eq!(made[..12], bytes("a9 5b 00 99 f4 12 c0 ff f7 12 c0 ff"));
    assert_eq!(made[128..], bytes("51 13 c0 ff"));
}

#[test]
fn points_come_at_the_pace_of_the_mode() {
    for (model, request, per_second, points, length) in [
        (Model::A1, "a5 20", 1_969, 16, 80),
        (Model::A1, "a5 82 05 01 00 00 00 00 23", 3_937, 32, 84),
        (Model::A1, "a5 82 05 03 00 00 00 00 21", 7_874, 96, 132),
        (Model::C1, "a5 82 05 01 00 00 00 00 23", 5_000, 40, 84),
    ] {
        let mut scanner = Rplidar::new(model, Duration::ZERO);
        scanner.handle_bytes(SECOND, &bytes(request));
        scanner.poll_output();
        assert!(scanner.next_packet().is_some_and(|due| due > SECOND));
        let all = packets(&mut scanner, 4 * SECOND);
        let counted = all.iter().filter(|(due, _)| *due > 3 * SECOND);
        let found = counted.count() * points;
        assert!(
            found.abs_diff(per_second) <= points,
            "{model:?} {request}: {found}"
        );
        assert!(all.iter().all(|(_, packet)| packet.len() == length));
        // A request ends the scan.
        scanner.handle_bytes(4 * SECOND, &bytes("a5 25"));
        assert_eq!(scanner.next_packet(), None);
    }
}

#[test]
fn motors_wait_for_their_command() {
    for (model, request, stop) in [
        (Model::A2, "a5 f0 02 94 02 c1", "a5 f0 02 00 00 57"),
        (Model::S2, "a5 a8 02 58 02 55", "a5 a8 02 00 00 0f"),
    ] {
        let mut scanner = Rplidar::new(model, Duration::ZERO);
        assert_eq!(
            answers(&mut scanner, SECOND, "a5 20"),
            bytes("a5 5a 05 00 00 40 81")
        );
        assert_eq!(scanner.next_packet(), None, "it does not turn");
        scanner.handle_bytes(SECOND, &bytes(request));
        assert!(
            scanner
                .next_packet()
                .is_some_and(|due| due > SECOND + SPINS_UP)
        );
        // Ten turns per second.
        let turned = scanner.turned_deg(2 * SECOND);
        assert!((turned - 3_600.0).abs() < 1e-6, "{turned}");
        scanner.handle_bytes(2 * SECOND, &bytes(stop));
        assert_eq!(scanner.next_packet(), None);
    }
}

#[test]
fn a_blocked_scanner_protects_itself_until_it_is_reset() {
    let mut a1 = Rplidar::new(Model::A1, Duration::ZERO);
    a1.handle_bytes(SECOND, &bytes("a5 20"));
    a1.poll_output();
    a1.block(true);
    assert_eq!(a1.next_packet(), None);
    a1.block(false);
    let health = bytes("a5 5a 03 00 00 00 06 02 04 00");
    assert_eq!(answers(&mut a1, SECOND, "a5 52"), health);
    assert!(
        answers(&mut a1, SECOND, "a5 20").is_empty(),
        "it does not scan"
    );
    a1.handle_bytes(SECOND, &bytes("a5 40"));
    assert!(answers(&mut a1, SECOND, "a5 52").is_empty(), "it is deaf");
    let text = packets(&mut a1, 2 * SECOND);
    assert_eq!(text.len(), 1);
    assert!(
        text[0]
            .1
            .starts_with(b"RP LIDAR System.\r\nFirmware Ver 1.29")
    );
    assert_eq!(
        answers(&mut a1, 2 * SECOND, "a5 52"),
        bytes("a5 5a 03 00 00 00 06 00 00 00")
    );
}

#[test]
fn a_pause_of_the_simulation_leaves_packets_out() {
    let mut scanner = Rplidar::new(Model::C1, Duration::ZERO);
    scanner.handle_bytes(Duration::ZERO, &bytes("a5 82 05 01 00 00 00 00 23"));
    scanner.poll_output();
    let mut random = fastrand::Rng::with_seed(1);
    scanner.measure(3_600 * SECOND, &mut random, |_, _| None);
    let made = std::iter::from_fn(|| scanner.poll_output()).count();
    // Half a second.
    assert!((60..=65).contains(&made), "{made}");
}
