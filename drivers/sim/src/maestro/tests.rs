//! Tests of the device through its bytes.

use super::*;

const MS: Duration = Duration::from_millis(1);

fn maestro() -> Maestro {
    Maestro::new(Config::default(), Duration::ZERO)
}

fn tell(maestro: &mut Maestro, bytes: &[u8]) -> Vec<u8> {
    maestro.handle_bytes(bytes);
    std::iter::from_fn(|| maestro.poll_output())
        .flatten()
        .collect()
}

#[track_caller]
fn check_targets(bytes: &[u8], targets: &[(usize, f64)]) {
    let mut maestro = maestro();
    assert_eq!(tell(&mut maestro, bytes), [0; 0], "{bytes:02x?}");
    for (channel, us) in targets {
        let servo = maestro.servos()[*channel];
        assert_eq!(servo.target_us(), *us, "{bytes:02x?}");
    }
    assert_eq!(tell(&mut maestro, &[0xA1]), [0, 0], "{bytes:02x?}");
}

#[test]
fn the_bytes_of_the_manual_set_targets() {
    check_targets(&[0x84, 0x00, 0x70, 0x2E], &[(0, 1500.0)]);
    check_targets(&[0xAA, 0x0C, 0x04, 0x00, 0x70, 0x2E], &[(0, 1500.0)]);
    check_targets(&[0xAA, 0x0D, 0x04, 0x00, 0x70, 0x2E], &[(0, 0.0)]);
    check_targets(&[0x84, 0x00, 0x00, 0x4B], &[(0, 2400.0)]);
    check_targets(&[0x84, 0x00, 0x78, 0x3C], &[(0, 1950.0)]);
    check_targets(&[0x84, 0x00, 0x68, 0x20], &[(0, 1050.0)]);
    check_targets(&[0x84, 0x00, 0x60, 0x12], &[(0, 600.0)]);
    check_targets(
        &[0x9F, 0x02, 0x03, 0x00, 0x00, 0x70, 0x2E],
        &[(3, 0.0), (4, 1500.0)],
    );
    check_targets(&[0xFF, 0x01, 0x00], &[(1, 1023.75)]);
    check_targets(&[0xFF, 0x01, 0x7F], &[(1, 1500.0)]);
    check_targets(&[0xFF, 0x01, 0xFE], &[(1, 1976.25)]);
    // Targets beyond the limits.
    check_targets(&[0x84, 0x02, 0x7F, 0x7F], &[(2, 2400.0)]);
    check_targets(&[0x84, 0x02, 0x01, 0x00], &[(2, 600.0)]);
}

#[test]
fn positions_are_plain_bytes() {
    let mut maestro = maestro();
    tell(&mut maestro, &[0x84, 0x00, 0x70, 0x2E]);
    assert_eq!(tell(&mut maestro, &[0x90, 0x00]), [0x70, 0x17]);
    assert_eq!(tell(&mut maestro, &[0xAA, 0x0C, 0x10, 0x00]), [0x70, 0x17]);
    assert_eq!(tell(&mut maestro, &[0x93]), [0]);
    assert_eq!(tell(&mut maestro, &[0xAE]), [1]);
    assert_eq!(tell(&mut maestro, &[0xA2]), [0; 0]);
    assert_eq!(tell(&mut maestro, &[0x90, 0x00]), [0, 0]);
}

#[test]
fn with_crc_enabled_packets_need_a_crc() {
    assert_eq!(crc7(&[0x83, 0x01]), 0x17);
    assert_eq!(crc7(&[0x84, 0x00, 0x70, 0x2E]), 0x2B);
    let config = Config {
        crc: true,
        ..Config::default()
    };
    let mut maestro = Maestro::new(config, Duration::ZERO);
    tell(&mut maestro, &[0x84, 0x00, 0x70, 0x2E, 0x2B]);
    assert_eq!(maestro.servos()[0].target_us(), 1500.0);
    tell(&mut maestro, &[0x84, 0x01, 0x70, 0x2E, 0x2B]);
    let errors = [0xA1, crc7(&[0xA1])];
    assert_eq!(tell(&mut maestro, &errors), [0x08, 0]);
    assert_eq!(maestro.servos()[0].target_us(), 0.0, "it goes home");
}

#[test]
fn errors_are_reported_once() {
    for bytes in [
        &[0x84, 0x00, 0x84, 0x00, 0x70, 0x2E][..],
        &[0x00],
        &[0x81],
        &[0x84, 0x0C, 0x70, 0x2E],
        &[0x90, 0x0C],
        &[0x9F, 0x02, 0x0B, 0x70, 0x2E, 0x70, 0x2E],
    ] {
        let mut maestro = maestro();
        tell(&mut maestro, bytes);
        assert_eq!(tell(&mut maestro, &[0xA1]), [0x10, 0], "{bytes:02x?}");
        assert_eq!(tell(&mut maestro, &[0xA1]), [0, 0]);
    }
}

#[test]
fn a_command_that_interrupts_a_packet_is_carried_out() {
    for unfinished in [
        &[0xAA][..],
        &[0xAA, 0x0C],
        &[0x84, 0x00],
        &[0x9F, 0x02, 0x03],
    ] {
        for (command, answer) in [
            (&[0x93][..], &[0][..]),
            (&[0xAE], &[1]),
            (&[0xA1], &[0x10, 0]),
            (&[0xAA, 0x0C, 0x21], &[0x10, 0]),
            (&[0x90, 0x00], &[0, 0]),
        ] {
            let mut maestro = maestro();
            tell(&mut maestro, unfinished);
            let said = tell(&mut maestro, command);
            assert_eq!(said, answer, "{unfinished:02x?} {command:02x?}");
        }
        // This one interrupts, the next ones do not.
        let mut maestro = maestro();
        tell(&mut maestro, unfinished);
        for _ in 0..3 {
            assert_eq!(tell(&mut maestro, &[0x93]), [0]);
        }
        assert_eq!(tell(&mut maestro, &[0xA1]), [0x10, 0]);
        assert_eq!(tell(&mut maestro, &[0xA1]), [0, 0]);
    }
}

#[test]
fn at_an_unknown_baud_rate_the_first_byte_only_reveals_the_rate() {
    let config = Config {
        detects_baud: true,
        ..Config::default()
    };
    let mut maestro = Maestro::new(config, Duration::ZERO);
    assert_eq!(tell(&mut maestro, &[0x93, 0xA1]), [0; 0]);
    assert_eq!(tell(&mut maestro, &[0xAA, 0xA1]), [0, 0]);
    maestro.restart(MS);
    assert_eq!(tell(&mut maestro, &[0xA1]), [0; 0]);
}

#[test]
fn a_limited_speed_takes_its_time() {
    let mut maestro = maestro();
    tell(&mut maestro, &[0x84, 0x05, 0x00, 0x4B]);
    maestro.advance(1000 * MS);
    assert!((maestro.servos()[5].angle_deg()).abs() < 1e-6);
    // 140 quarters per 10 ms: 3.5 us per ms.
    tell(&mut maestro, &[0x87, 0x05, 0x0C, 0x01]);
    tell(&mut maestro, &[0x84, 0x05, 0x60, 0x12]);
    assert_eq!(tell(&mut maestro, &[0x93]), [1]);
    maestro.advance(1200 * MS);
    assert!((maestro.servos()[5].pulse_us() - 1700.0).abs() < 1e-6);
    maestro.advance(1500 * MS);
    assert_eq!(maestro.next_timeout(), Some(1520 * MS));
    maestro.advance(2000 * MS);
    assert_eq!(tell(&mut maestro, &[0x93]), [0]);
    assert!((maestro.servos()[5].angle_deg() - 180.0).abs() < 1e-6);
    assert_eq!(maestro.next_timeout(), None);
}

#[test]
fn acceleration_starts_and_ends_gently() {
    let mut maestro = maestro();
    tell(&mut maestro, &[0x84, 0x00, 0x00, 0x4B]);
    tell(&mut maestro, &[0x89, 0x00, 0x08, 0x00]);
    tell(&mut maestro, &[0x84, 0x00, 0x70, 0x2E]);
    let mut last = 2400.0;
    let mut steps = Vec::new();
    for time in 1..2000 {
        maestro.advance(20 * MS * time);
        let pulse = maestro.servos()[0].pulse_us();
        if pulse == 1500.0 {
            break;
        }
        steps.push(last - pulse);
        last = pulse;
    }
    let fastest = steps.iter().copied().fold(0.0, f64::max);
    let end = steps.len() - 1;
    assert!(
        steps[0] < fastest / 10.0 && steps[end] < fastest / 4.0,
        "{steps:?}"
    );
    assert!((40..200).contains(&steps.len()), "{}", steps.len());
    assert!(steps.iter().all(|step| *step > 0.0), "{steps:?}");
}

#[test]
fn without_power_shafts_stay() {
    let mut maestro = maestro();
    tell(&mut maestro, &[0x84, 0x00, 0x00, 0x4B]);
    maestro.advance(1000 * MS);
    maestro.restart(1000 * MS);
    maestro.advance(2000 * MS);
    let servo = maestro.servos()[0];
    assert!(servo.angle_deg().abs() < 1e-6 && servo.pulse_us() == 0.0);
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        let mut maestro = maestro();
        tell(&mut maestro, &bytes);
        maestro.advance(100 * MS);
        tell(&mut maestro, &[0, 0, 0, 0, 0xA1]);
        proptest::prop_assert_eq!(maestro.servos().len(), CHANNELS);
    }
}
