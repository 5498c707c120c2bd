//! Tests of the packets and of their pace.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.split_ascii_whitespace();
    digits
        .map(|it| u8::from_str_radix(it, 16).unwrap())
        .collect()
}

/// Where a packet has a word.
fn word(packet: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([packet[at], packet[at + 1]])
}

/// The packets until a time, in a world where everything is 2 m away.
fn packets(scanner: &mut Ldrobot, until: Duration) -> Vec<(Duration, Vec<u8>)> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut found = Vec::new();
    while let Some(due) = scanner.next_packet().filter(|due| *due <= until) {
        scanner.measure(due, &mut random, |_, _| Some(2.0));
        found.extend(std::iter::from_fn(|| Some((due, scanner.poll_output()?))));
    }
    found
}

#[test]
fn packets_and_commands_have_the_bytes_of_the_maker() {
    let mut points = [(0, 0); POINTS];
    for (index, point) in points.iter_mut().enumerate() {
        *point = (1_000 + 10 * index as u16, 200 + index as u8);
    }
    let made = packet(&Packet {
        speed_deg_s: 3_600,
        first: 35_000,
        last: 35_880,
        points,
        stamp_ms: 12_345,
    });
    let expected = "54 2c 10 0e b8 88 e8 03 c8 f2 03 c9 fc 03 ca 06 04 cb 10 04 cc 1a 04 cd 24 04 \
                    ce 2e 04 cf 38 04 d0 42 04 d1 4c 04 d2 56 04 d3 28 8c 39 30 d1";
    assert_eq!(made.to_vec(), bytes(expected));
    for (code, number, expected) in [
        (0xA0, 0, "54 a0 04 00 00 00 00 5e"),
        (0xA1, 0, "54 a1 04 00 00 00 00 4a"),
        (0xA2, 2_160, "54 a2 04 70 08 00 00 a1"),
        (0xA2, 1_440, "54 a2 04 a0 05 00 00 6f"),
        (0xA2, 2_880, "54 a2 04 40 0b 00 00 c8"),
    ] {
        let made = command(code, number);
        assert_eq!(made.to_vec(), bytes(expected));
        assert_eq!(packet::code_of(&made), Some((code, number)));
    }
}

#[test]
fn packets_come_at_the_pace_of_the_real_scanner() {
    let mut scanner = Ldrobot::new(Model::Ld19, Duration::ZERO);
    let all = packets(&mut scanner, Duration::from_secs(4));
    assert!(all[0].0 > Duration::from_millis(500), "it starts");
    let at_speed: Vec<_> = (all.iter())
        .filter(|(due, _)| *due > Duration::from_secs(3))
        .collect();
    // 4500 points per second, 12 in each.
    assert!((374..=376).contains(&at_speed.len()), "{}", at_speed.len());
    for pair in at_speed.windows(2) {
        let [(before, sooner), (after, later)] = pair else {
            panic!("two");
        };
        let period = (*after - *before).as_secs_f64();
        assert!((period - 12.0 / 4_500.0).abs() < 1e-6, "{period}");
        assert_eq!((sooner.len(), word(later, 2)), (47, 3_600));
        // A step of 0.8 degrees from the last point to the next.
        let step = (u32::from(word(later, 4)) + 36_000 - u32::from(word(sooner, 42))) % 36_000;
        assert!((79..=81).contains(&step), "{step}");
        let passed = (word(later, 44) + 30_000 - word(sooner, 44)) % 30_000;
        assert!((2..=3).contains(&passed), "{passed} ms");
        let mm = word(later, 6);
        assert!((1_985..=2_015).contains(&mm) || mm < 80, "{mm}");
    }
}

#[test]
fn an_ld14p_obeys_and_the_others_do_not() {
    let second = Duration::from_secs(1);
    let mut scanner = Ldrobot::new(Model::Ld14p, Duration::ZERO);
    packets(&mut scanner, 3 * second);
    // In pieces, after noise.
    let stop = command(0xA1, 0);
    scanner.handle_bytes(3 * second, &[1, 2, 3, stop[0], stop[1]]);
    scanner.handle_bytes(3 * second, &stop[2..]);
    assert_eq!(scanner.poll_output(), Some(stop.to_vec()));
    assert_eq!(scanner.next_packet(), None);
    scanner.handle_bytes(4 * second, &command(0xA0, 0));
    assert_eq!(scanner.poll_output(), Some(command(0xA0, 0).to_vec()));
    packets(&mut scanner, 7 * second);
    scanner.handle_bytes(7 * second, &command(0xA2, 4 * 360));
    scanner.poll_output();
    let all = packets(&mut scanner, 8 * second);
    assert_eq!(word(&all[0].1, 2), 1_440);
    let mut deaf = Ldrobot::new(Model::Ld19, Duration::ZERO);
    deaf.handle_bytes(second, &stop);
    assert!(deaf.next_packet().is_some() && deaf.poll_output().is_none());
}

#[test]
fn a_pause_of_the_simulation_leaves_packets_out() {
    let mut scanner = Ldrobot::new(Model::Ld19, Duration::ZERO);
    let mut random = fastrand::Rng::with_seed(1);
    scanner.measure(Duration::from_secs(3_600), &mut random, |_, _| None);
    let made = std::iter::from_fn(|| scanner.poll_output()).count();
    assert!((180..=190).contains(&made), "{made}");
}
