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
fn answers(scanner: &mut Ydlidar, hex: &str) -> Vec<u8> {
    scanner.handle_bytes(SECOND, &bytes(hex));
    std::iter::from_fn(|| scanner.poll_output())
        .flatten()
        .collect()
}

/// The packets until a time, in a world where everything is 2 m away.
fn packets(scanner: &mut Ydlidar, until: Duration) -> Vec<(Duration, Vec<u8>)> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut found = Vec::new();
    while let Some(due) = scanner.next_packet().filter(|due| *due <= until) {
        scanner.measure(due, &mut random, |_, _| Some(2.0));
        found.extend(std::iter::from_fn(|| Some((due, scanner.poll_output()?))));
    }
    found
}

#[test]
fn packets_have_the_bytes_of_the_description() {
    for (form, kind, degrees, points, expected) in [
        (
            Form::Plain,
            0x8D,
            [0.5, 0.5],
            &[1_000.0][..],
            "aa 55 8d 01 41 00 41 00 87 5b a0 0f",
        ),
        (
            Form::Plain,
            0,
            [223.78125, 225.78125],
            &[1_000.0, 2_000.25, 0.0],
            "aa 55 00 03 e5 6f e5 70 4b 59 a0 0f 41 1f 00 00",
        ),
        (
            Form::Whole,
            1,
            [348.64, 348.64],
            &[0.0],
            "aa 55 01 01 53 ae 53 ae ab 54 00 00",
        ),
        (
            Form::Strength,
            1,
            [348.64, 348.64],
            &[0.0],
            "aa 55 01 01 53 ae 53 ae ab 54 00 00 00",
        ),
    ] {
        assert_eq!(packet(form, kind, degrees, points), bytes(expected));
    }
    assert_eq!(packet::time(123_456), bytes("aa 66 6f 40 e2 01 00 00"));
}

#[test]
fn questions_are_answered_like_by_a_real_x4() {
    let mut x4 = Ydlidar::new(Model::X4, Duration::ZERO);
    for (request, expected) in [
        (
            "a5 90",
            "a5 5a 14 00 00 00 04 06 05 01 01 02 00 01 08 01 00 02 00 00 00 00 00 04 00 01 09",
        ),
        ("a5 91", "a5 5a 03 00 00 00 06 00 00 00"),
        // After noise; an unknown command; a start, which is damaged at first.
        ("00 13 a5 92", "a5 5a 03 00 00 00 06 00 00 00"),
        ("a5 0d", ""),
        ("a4 60", ""),
        ("a5 60", "a5 5a 05 00 00 40 81"),
    ] {
        assert_eq!(answers(&mut x4, request), bytes(expected), "{request}");
    }
    x4.block(true);
    let fault = bytes("a5 5a 03 00 00 00 06 02 04 00");
    assert_eq!(answers(&mut x4, "a5 92"), fault);
    // A newer one says what its sensor is, too.
    let mut t_mini = Ydlidar::new(Model::TMini, Duration::ZERO);
    assert_eq!(answers(&mut t_mini, "a5 60").len(), 7 + 27);
}

#[test]
fn points_come_at_the_pace_of_the_model() {
    for (model, rate, turns, point_length) in [
        (Model::X2, 3_000, 7, 2),
        (Model::X4, 5_000, 7, 2),
        (Model::X4Pro, 5_000, 7, 2),
        (Model::G2, 5_000, 7, 3),
        (Model::G4, 9_000, 7, 2),
        (Model::TMini, 4_000, 10, 3),
    ] {
        let mut scanner = Ydlidar::new(model, Duration::ZERO);
        scanner.handle_bytes(Duration::ZERO, &[0xA5, 0x60]);
        let all = packets(&mut scanner, 3 * SECOND);
        let is_counted = |(due, packet): &&(Duration, Vec<u8>)| {
            *due > 2 * SECOND && packet.starts_with(&[0xAA, 0x55])
        };
        let counted: Vec<_> = all.iter().filter(is_counted).collect();
        let points: usize = counted.iter().map(|(_, it)| usize::from(it[3])).sum();
        assert!(points.abs_diff(rate) <= 45, "{model:?}: {points}");
        for (_, packet) in &counted {
            assert_eq!(packet.len(), 10 + point_length * usize::from(packet[3]));
        }
        let starts = counted.iter().filter(|(_, packet)| packet[2] & 1 == 1);
        let started = starts.clone().count();
        assert!(started.abs_diff(turns) <= 1, "{model:?}: {started}");
        for (_, packet) in starts {
            assert_eq!(packet[3], 1);
            let told = usize::from(packet[2] >> 1);
            assert!(told == turns * 10 || model == Model::X4 && told == 0);
        }
    }
}

#[test]
fn most_models_obey_and_the_others_do_not() {
    let mut x4 = Ydlidar::new(Model::X4, Duration::ZERO);
    assert_eq!(x4.next_packet(), None);
    // In pieces.
    x4.handle_bytes(SECOND, &[0xA5]);
    x4.handle_bytes(SECOND, &[0x60]);
    assert!(x4.next_packet().is_some_and(|due| due > SECOND));
    // A question does not end the scan.
    x4.handle_bytes(SECOND, &[0xA5, 0x90]);
    assert!(x4.next_packet().is_some());
    x4.handle_bytes(SECOND, &[0xA5, 0x00, 0xA5, 0x65]);
    assert_eq!(x4.next_packet(), None);
    let mut x2 = Ydlidar::new(Model::X2, Duration::ZERO);
    assert_eq!(x2.poll_output().map(|info| info.len()), Some(27));
    x2.handle_bytes(SECOND, &[0xA5, 0x00, 0xA5, 0x65, 0xA5, 0x90]);
    assert!(x2.next_packet().is_some() && x2.poll_output().is_none());
}

#[test]
fn a_pause_of_the_simulation_leaves_packets_out() {
    let mut scanner = Ydlidar::new(Model::X2, Duration::ZERO);
    scanner.poll_output();
    let mut random = fastrand::Rng::with_seed(1);
    scanner.measure(3_600 * SECOND, &mut random, |_, _| None);
    let made = std::iter::from_fn(|| scanner.poll_output()).count();
    // Half a second: 1500 points.
    assert!((38..=50).contains(&made), "{made}");
}
