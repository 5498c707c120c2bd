//! Tests of the rules with a simulated clock and the simulated scanner.

use amber_sim::ydlidar as sim;

use super::*;
use crate::scanner::testing::{self, BEGIN_MS, check};
use crate::ydlidar::Options;

type Bench = testing::Bench<YdlidarLogic, sim::Ydlidar>;

impl Bench {
    fn new(options: Options, model: sim::Model) -> Self {
        let (settings, _) = options.settings().unwrap();
        Self::of(settings, sim::Ydlidar::new(model, Duration::ZERO))
    }

    fn usual(product: Product, model: sim::Model) -> Self {
        Self::new(options(product), model)
    }
}

fn options(model: Product) -> Options {
    Options {
        model: Some(model),
        ..Options::default()
    }
}

/// The largest error of a distance: that of the scanner, and of the angle.
const WITHIN_MM: f64 = 17.0;

#[test]
fn every_model_is_measured_as_the_world_is() {
    for (product, model, turn_us, points) in [
        (Product::X2, sim::Model::X2, 142_857, 380),
        (Product::X4, sim::Model::X4, 142_857, 640),
        (Product::X4Pro, sim::Model::X4Pro, 142_857, 640),
        (Product::G2, sim::Model::G2, 142_857, 640),
        (Product::G4, sim::Model::G4, 142_857, 1_150),
        (Product::TMini, sim::Model::TMini, 100_000, 360),
    ] {
        let mut bench = Bench::usual(product, model);
        bench.advance(5, 10);
        assert_eq!(bench.troubles(), [""; 0], "{product:?}");
        for (_, measured) in bench.last(10) {
            assert_eq!(measured.scan.angles.len(), points);
            let measured = check(&measured.scan, 0.0, false, WITHIN_MM);
            // At the jump, a scanner that looks sideways sees nothing.
            assert!(measured * 100 >= points * 98, "{product:?}: {measured}");
        }
        let scanner = bench.logic.scanner().unwrap();
        let off_us = scanner.turn_time().abs_diff(turn_us);
        assert!(off_us <= 1_500, "{product:?}: {scanner:?}");
        assert_eq!(scanner.model(), format!("YDLIDAR {}", product.name()));
        assert!(scanner.turns_right());
        assert_eq!(bench.logic.service().counters.strays, 0, "{product:?}");
    }
}

#[test]
fn a_scanner_says_what_it_is() {
    let mut bench = Bench::usual(Product::X4, sim::Model::X4);
    bench.advance(3, 10);
    let ready = "YDLIDAR X4, firmware 1.5, 640 points";
    assert_eq!(bench.said, [Note::Ready(ready.to_owned())]);
    let scanner = bench.logic.scanner().unwrap();
    assert_eq!(scanner.firmware(), "1.5");
    assert_eq!(scanner.serial_number(), "2018102000004019");
    let mut other = Bench::usual(Product::TMini, sim::Model::G4);
    other.advance(3, 10);
    let text = "the scanner is a YDLIDAR G4, not T-mini: check --model";
    assert_eq!(other.troubles(), [text]);
}

#[test]
fn a_scanner_may_be_mounted_in_any_way() {
    for (angle_deg, mirrored) in [(90.0, false), (-45.0, true)] {
        for (product, model) in [
            (Product::X4, sim::Model::X4),
            (Product::TMini, sim::Model::TMini),
        ] {
            let mount = Options {
                angle_deg: Some(angle_deg),
                mirrored: Some(mirrored),
                ..options(product)
            };
            let mut bench = Bench::new(mount, model);
            bench.advance(4, 10);
            let (_, measured) = bench.published.last().unwrap();
            assert!(check(&measured.scan, angle_deg, mirrored, WITHIN_MM) > 350);
            assert_eq!(bench.logic.scanner().unwrap().turns_right(), !mirrored);
        }
    }
}

#[test]
fn a_scan_of_a_turning_robot_can_be_straightened() {
    for (product, model) in [
        (Product::X4, sim::Model::X4),
        (Product::TMini, sim::Model::TMini),
    ] {
        for is_mirrored in [false, true] {
            let mounted = Options {
                mirrored: Some(is_mirrored),
                ..options(product)
            };
            let mut bench = Bench::new(mounted, model);
            // In the time of a turn, 17 degrees or 12: 86 mm or 60.
            bench.turn_deg_s = 120.0;
            bench.advance(6, 5);
            for (_, measured) in bench.last(10) {
                bench.check_straightened(measured, 25.0);
            }
        }
    }
}

#[test]
fn a_scan_has_the_time_of_its_last_point_however_its_bytes_arrive() {
    for (product, model, hz) in [
        (Product::X4, sim::Model::X4, 7.0),
        (Product::TMini, sim::Model::TMini, 10.0),
    ] {
        for piece_ms in [1, 7, 120] {
            let mut bench = Bench::usual(product, model);
            bench.advance(8, piece_ms);
            for (arrived, measured) in bench.last(10) {
                let ended_ms = measured.timestamp_ms - BEGIN_MS;
                // When the head was at the rear.
                let ended = Duration::from_millis(ended_ms as u64);
                let head_deg = bench.scanner.turned_deg(ended).rem_euclid(360.0);
                let off_ms = (head_deg - 180.0) / (hz * 0.36);
                // Bytes arrive within a piece after they were sent. What is seen at the rear is up to 8
                // degrees behind the head.
                let late_ms = piece_ms as f64 + 8.0;
                assert!(
                    (-3.0..late_ms).contains(&off_ms),
                    "{product:?} {piece_ms}: {off_ms} ms"
                );
                assert!(arrived.as_millis() as i64 >= ended_ms);
            }
        }
    }
}

#[test]
fn a_scanner_that_measures_at_another_rate_has_the_right_times() {
    for (product, model) in [
        // Faster and slower than the driver expects.
        (Product::X2, sim::Model::X4),
        (Product::X4, sim::Model::X2),
    ] {
        let mut bench = Bench::usual(product, model);
        bench.hears = |_| false;
        bench.scanner.handle_bytes(Duration::ZERO, &SCAN);
        bench.advance(8, 3);
        let turn_us = bench.logic.scanner().unwrap().turn_time();
        assert!(turn_us.abs_diff(142_857) < 1_000, "{turn_us}");
        for pair in bench.last(10).windows(2) {
            let between_ms = pair[1].1.timestamp_ms - pair[0].1.timestamp_ms;
            assert!((139..=147).contains(&between_ms), "{between_ms}");
        }
    }
}

#[test]
fn a_scanner_is_stopped_at_first_and_at_the_end() {
    let mut bench = Bench::usual(Product::G4, sim::Model::G4);
    // Another program has left it running.
    bench.scanner.handle_bytes(Duration::ZERO, &SCAN);
    bench.advance(4, 10);
    assert_eq!(bench.troubles(), [""; 0]);
    assert!(bench.logic.is_ready());
    let all = [&STOP[..], &INFO, &HEALTH[0], &SCAN].concat();
    assert_eq!(bench.written.concat(), all);
    bench.logic.shut_down(bench.begin + bench.time);
    let stop = Output::Write(STOP.to_vec());
    assert_eq!(bench.logic.poll_output(), Some(stop));
    assert_eq!(bench.logic.poll_output(), Some(Output::End));
    assert_eq!(bench.logic.wake_at(), None);
    let mut one_wire = Bench::usual(Product::X2, sim::Model::X2);
    one_wire.advance(4, 10);
    one_wire.logic.shut_down(one_wire.begin + one_wire.time);
    assert_eq!(one_wire.logic.poll_output(), Some(Output::End));
    assert!(one_wire.written.is_empty(), "it has no wire for commands");
}

#[test]
fn the_rest_of_an_old_scan_does_not_hide_an_answer() {
    let (settings, _) = options(Product::X4).settings().unwrap();
    let now = Instant::now();
    let mut logic = YdlidarLogic::new(settings, now);
    logic.opened(now);
    let packet = sim::packet(sim::Form::Plain, 0, [7.0, 27.0], &[1_000.0; 40]);
    logic.handle_bytes(now, 0, &packet.repeat(5));
    logic.handle_timeout(now + QUIET);
    let info = [&[6, 5, 1, 1][..], &[1; 16]].concat();
    for piece in amber_sim::rplidar::answer(INFO_ANSWER, &info).chunks(9) {
        logic.handle_bytes(now + QUIET, 0, piece);
    }
    let outputs = std::iter::from_fn(|| logic.poll_output());
    let written = outputs.filter_map(|output| match output {
        Output::Write(bytes) => Some(bytes),
        _ => None,
    });
    let expected = [&STOP[..], &INFO, &HEALTH[0]].concat();
    assert_eq!(written.collect::<Vec<_>>().concat(), expected);
}

#[test]
fn a_scanner_whose_wire_for_commands_is_not_connected_is_no_problem() {
    for is_late in [false, true] {
        let mut bench = Bench::usual(Product::TMini, sim::Model::TMini);
        bench.hears = |_| false;
        if is_late {
            bench.advance(1, 10);
        }
        let begin = bench.time;
        bench.scanner.handle_bytes(begin, &SCAN);
        bench.advance(8, 10);
        assert!(bench.logic.is_ready(), "{is_late}: {:?}", bench.said);
        assert!(bench.said.contains(&Note::Property(ONE_WIRE)));
        let (_, measured) = bench.published.last().unwrap();
        assert!(check(&measured.scan, 0.0, false, WITHIN_MM) > 350);
    }
}

#[test]
fn no_point_of_a_damaged_packet_is_published() {
    for (product, model) in [(Product::X4, sim::Model::X4), (Product::G2, sim::Model::G2)] {
        let mut bench = Bench::usual(product, model);
        bench.advance(3, 3);
        bench.published.clear();
        bench.spoil = |bytes, random| {
            // One piece in ten.
            if !bytes.is_empty() && random.u32(..10) == 0 {
                let at = random.usize(..bytes.len());
                bytes[at] ^= 1 << random.u32(..8);
            }
        };
        bench.advance(5, 3);
        assert!(bench.published.len() > 20, "{}", bench.published.len());
        for (_, measured) in &bench.published {
            assert!(check(&measured.scan, 0.0, false, WITHIN_MM) > 300);
        }
        assert!(bench.logic.service().counters.strays > 10);
        assert!(bench.logic.is_ready());
    }
}

#[test]
fn after_garbage_the_second_turn_is_complete() {
    let mut bench = Bench::usual(Product::X4, sim::Model::X4);
    bench.advance(3, 10);
    // Not so long that it is given up.
    bench.spoil = |bytes, random| bytes.iter_mut().for_each(|byte| *byte = random.u8(..));
    bench.advance(1, 10);
    bench.published.clear();
    bench.spoil = |_, _| {};
    bench.advance(1, 10);
    assert!(bench.published.len() >= 4, "{}", bench.published.len());
    for (_, measured) in &bench.published {
        assert!(check(&measured.scan, 0.0, false, WITHIN_MM) > 600);
    }
    assert_eq!(bench.troubles(), [""; 0]);
}

#[test]
fn each_problem_is_named_once_and_ends() {
    type Spoil = fn(&mut Vec<u8>, &mut fastrand::Rng);
    let garbled =
        "what arrives is not from a YDLIDAR X4: check --model, --baud, --port and the wires";
    let cases: [(Spoil, &[&str]); 3] = [
        (|bytes, _| bytes.clear(), &[SILENT, DEAF]),
        (
            |bytes, random| bytes.iter_mut().for_each(|byte| *byte = random.u8(..)),
            &[garbled],
        ),
        (
            |bytes, _| {
                // Only packets, which a scan has: the angle stays the same.
                if bytes.starts_with(&[0xAA, 0x55]) {
                    *bytes = sim::packet(sim::Form::Plain, 0, [7.0, 7.0], &[1_000.0; 40]);
                }
            },
            &[STILL],
        ),
    ];
    for (spoil, expected) in cases {
        let mut bench = Bench::usual(Product::X4, sim::Model::X4);
        bench.advance(3, 10);
        bench.spoil = spoil;
        bench.advance(10, 10);
        assert_eq!(bench.troubles(), expected);
        assert!(bench.logic.scanner().is_err());
        bench.spoil = |_, _| {};
        bench.published.clear();
        bench.advance(6, 10);
        assert!(bench.logic.is_ready(), "{:?}", bench.said);
        assert!(bench.published.len() > 5);
    }
}

#[test]
fn a_fault_of_the_scanner_is_told() {
    let mut bench = Bench::usual(Product::X4, sim::Model::X4);
    bench.advance(3, 10);
    bench.scanner.block(true);
    bench.advance(8, 10);
    let fault = "the scanner has a fault (code 0x0004): check whether it is blocked, and its supply \
                 of 5 V";
    assert_eq!(bench.troubles(), [SILENT, fault]);
    bench.scanner.block(false);
    bench.advance(10, 10);
    assert!(bench.logic.is_ready(), "{:?}", bench.said);
}

#[test]
fn a_motor_may_take_ten_seconds_to_start() {
    let mut bench = Bench::usual(Product::X4, sim::Model::X4);
    bench.spoil = |bytes, _| {
        // No packets, but answers.
        if bytes.starts_with(&[0xAA, 0x55]) {
            bytes.clear();
        }
    };
    bench.advance(9, 10);
    assert_eq!(bench.troubles(), [""; 0]);
    bench.spoil = |_, _| {};
    bench.advance(2, 10);
    assert!(bench.logic.is_ready());
}

#[test]
fn the_first_packet_of_a_turn_may_be_anywhere() {
    let mut bench = Bench::usual(Product::X4, sim::Model::X4);
    bench.spoil = |bytes, _| {
        // As a real X4 has sent it.
        let stray = [0xAA, 0x55, 1, 1, 3, 0x42, 3, 0x42, 0xAB, 0x54, 0, 0];
        if bytes.starts_with(&[0xAA, 0x55]) {
            bytes.splice(0..0, stray);
        }
    };
    bench.advance(5, 10);
    let (_, measured) = bench.published.last().unwrap();
    assert!(check(&measured.scan, 0.0, false, WITHIN_MM) > 620);
    assert_eq!(bench.logic.turns.incomplete(), 0);
}

#[test]
fn missing_and_doubtful_measurements_are_unknown() {
    let free = Options {
        no_echo: Some(crate::scanner::layout::NoEcho::Free),
        ..options(Product::TMini)
    };
    for (options, expected) in [(options(Product::TMini), 1), (free, 0)] {
        let (settings, _) = options.settings().unwrap();
        let mut logic = YdlidarLogic::new(settings.clone(), Instant::now());
        let nothing = Point {
            quarter_mm: 0,
            strength: 0,
            is_doubtful: false,
        };
        let glass = Point {
            quarter_mm: 4_000,
            strength: 90,
            is_doubtful: true,
        };
        let points = [(nothing, expected), (glass, 1)];
        for (point, expected) in points {
            let sample = logic.sample(10.0, point, Duration::ZERO);
            let scan = settings.layout.scan(&[sample]);
            let at = scan.angles.iter().position(|angle_deg| *angle_deg == 10.0);
            assert_eq!(scan.distances[at.unwrap()], expected, "{point:?}");
        }
    }
}
