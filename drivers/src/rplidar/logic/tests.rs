//! Tests of the rules with a simulated clock and the simulated scanner.

use amber_sim::rplidar as sim;

use super::*;
use crate::rplidar::Options;
use crate::scanner::Note;
use crate::scanner::testing::{self, BEGIN_MS, check};

type Bench = testing::Bench<RplidarLogic, sim::Rplidar>;

impl Bench {
    fn new(options: Options, model: sim::Model) -> Self {
        let (settings, _) = options.settings().unwrap();
        Self::of(settings, sim::Rplidar::new(model, Duration::ZERO))
    }

    fn typical(model: sim::Model) -> Self {
        Self::new(Options::default(), model)
    }

    fn mode(model: sim::Model, mode: &str) -> Self {
        let options = Options {
            mode: Some(mode.to_owned()),
            ..Options::default()
        };
        Self::new(options, model)
    }
}

/// The largest error of a distance: that of the scanner, of its format, and of the angle.
const WITHIN_MM: f64 = 20.0;

#[test]
fn every_model_and_mode_is_measured_as_the_world_is() {
    for (model, mode, turn_ms, points) in [
        (sim::Model::A1, "standard", 182, 250),
        (sim::Model::A1, "express", 182, 500),
        (sim::Model::A1, "sensitivity", 182, 1_010),
        (sim::Model::A2, "boost", 100, 700),
        (sim::Model::A3, "express", 100, 720),
        (sim::Model::C1, "standard", 100, 450),
        (sim::Model::C1, "denseboost", 100, 450),
        (sim::Model::S1, "typical", 100, 820),
        (sim::Model::S2, "typical", 100, 1_440),
        (sim::Model::S3, "standard", 100, 1_440),
    ] {
        let mut bench = Bench::mode(model, mode);
        bench.advance(5, 10);
        assert_eq!(bench.troubles(), [""; 0], "{model:?} {mode}");
        let last = bench.published.len().saturating_sub(5);
        assert!(last > 2, "{model:?} {mode}: {last}");
        for (_, measured) in &bench.published[last..] {
            assert_eq!(measured.scan.angles.len(), points, "{model:?} {mode}");
            let measured = check(&measured.scan, 0.0, false, WITHIN_MM);
            assert!(measured * 50 >= points * 48, "{model:?} {mode}: {measured}");
        }
        let scanner = bench.logic.scanner().unwrap();
        let off_us = scanner.turn_time().abs_diff(turn_ms * 1_000);
        assert!(off_us <= 2_000, "{model:?} {mode}: {scanner:?}");
        assert!(scanner.model().starts_with("RPLIDAR "));
        assert!(scanner.turns_right());
    }
}

#[test]
fn a_scanner_says_what_it_is() {
    let mut bench = Bench::typical(sim::Model::A1);
    bench.advance(3, 10);
    let expected = "RPLIDAR A1M8, firmware 1.29, Sensitivity, 1010 points";
    assert_eq!(bench.said, [Note::Ready(expected.to_owned())]);
    let scanner = bench.logic.scanner().unwrap();
    assert_eq!(
        (scanner.model(), scanner.firmware()),
        ("RPLIDAR A1M8", "1.29")
    );
    assert_eq!(scanner.serial_number(), "92D8ED93C0EA98C9A5E698F207064669");
    assert_eq!(
        (scanner.min_distance(), scanner.max_distance()),
        (150, 12_000)
    );
    let mut other = Bench::mode(sim::Model::A1, "fast");
    other.advance(3, 10);
    let list = "Standard, Express, Boost, Sensitivity, Stability";
    let text = format!("the scanner has no mode fast, but {list}: check --mode");
    assert_eq!(other.troubles(), [text]);
}

#[test]
fn a_scanner_may_be_mounted_in_any_way() {
    for (angle_deg, mirrored) in [(90.0, false), (-45.0, true)] {
        let mount = Options {
            angle_deg: Some(angle_deg),
            mirrored: Some(mirrored),
            ..Options::default()
        };
        let mut bench = Bench::new(mount, sim::Model::C1);
        bench.advance(4, 10);
        let (_, measured) = bench.published.last().unwrap();
        assert!(check(&measured.scan, angle_deg, mirrored, WITHIN_MM) > 430);
        assert_eq!(bench.logic.scanner().unwrap().turns_right(), !mirrored);
    }
}

#[test]
fn a_scan_has_the_time_of_its_last_point_however_its_bytes_arrive() {
    for (mode, piece_ms) in [("standard", 7), ("sensitivity", 1), ("sensitivity", 150)] {
        let mut bench = Bench::mode(sim::Model::A1, mode);
        bench.advance(8, piece_ms);
        let last = bench.published.len().saturating_sub(10);
        assert!(last > 5, "{mode} {piece_ms}: {last}");
        for (arrived, measured) in &bench.published[last..] {
            let ended_ms = measured.timestamp_ms - BEGIN_MS;
            // When the head was at the rear.
            let truth = (bench.scanner).turned_deg(Duration::from_millis(ended_ms as u64));
            let off_ms = (truth.rem_euclid(360.0) - 180.0) / (5.5 * 0.36);
            // What is seen at the rear is up to 8 degrees behind the head.
            let late_ms = piece_ms as f64 + 13.0;
            assert!(
                (-3.0..late_ms).contains(&off_ms),
                "{mode} {piece_ms}: {off_ms} ms"
            );
            assert!(arrived.as_millis() as i64 >= ended_ms);
        }
    }
}

#[test]
fn a_scan_of_a_turning_robot_can_be_straightened() {
    let mut bench = Bench::typical(sim::Model::A1);
    // In the time of a turn, 22 degrees: 109 mm.
    bench.turn_deg_s = 120.0;
    bench.advance(6, 5);
    for (_, measured) in bench.last(10) {
        bench.check_straightened(measured, 30.0);
    }
}

#[test]
fn motors_are_started_and_all_is_stopped_at_the_end() {
    for (model, run, stop) in [
        (sim::Model::A1, None, None),
        (sim::Model::C1, None, None),
        (
            sim::Model::A2,
            Some(wire::motor_pwm(660)),
            Some(wire::motor_pwm(0)),
        ),
        (
            sim::Model::S2,
            Some(wire::motor_rpm(600)),
            Some(wire::motor_rpm(0)),
        ),
    ] {
        let mut bench = Bench::typical(model);
        bench.advance(4, 10);
        assert!(bench.logic.is_ready(), "{model:?}: {:?}", bench.said);
        assert_eq!(
            bench.written[0], STOP,
            "another program may have left it scanning"
        );
        let is_motor = |request: &&Vec<u8>| matches!(request[1], 0xA8 | 0xF0);
        let found: Vec<_> = bench.written.iter().filter(is_motor).collect();
        assert_eq!(found, run.iter().collect::<Vec<_>>(), "{model:?}");
        bench.written.clear();
        bench.logic.shut_down(bench.begin + bench.time);
        bench.advance(1, 10);
        let all = [Some(STOP.to_vec()), stop];
        assert_eq!(bench.written, all.into_iter().flatten().collect::<Vec<_>>());
        assert_eq!(bench.logic.wake_at(), None);
    }
}

#[test]
fn a_scan_that_another_program_left_running_is_no_problem() {
    let mut bench = Bench::typical(sim::Model::A1);
    bench.scanner.handle_bytes(Duration::ZERO, &wire::SCAN);
    bench.advance(3, 10);
    assert_eq!(bench.troubles(), [""; 0]);
    assert!(bench.logic.is_ready());
}

#[test]
fn no_point_of_a_damaged_capsule_is_published() {
    for model in [sim::Model::A1, sim::Model::C1] {
        let mut bench = Bench::typical(model);
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
        assert!(bench.published.len() > 10, "{}", bench.published.len());
        for (_, measured) in &bench.published {
            check(&measured.scan, 0.0, false, WITHIN_MM);
        }
        assert!(bench.logic.service().counters.strays > 10);
        assert!(bench.logic.is_ready());
    }
}

#[test]
fn after_garbage_the_second_turn_is_complete() {
    for mode in ["standard", "express", "sensitivity"] {
        let mut bench = Bench::mode(sim::Model::A1, mode);
        bench.advance(3, 10);
        // Not so long that it is given up.
        bench.spoil = |bytes, random| bytes.iter_mut().for_each(|byte| *byte = random.u8(..));
        bench.advance(1, 10);
        bench.published.clear();
        bench.spoil = |_, _| {};
        bench.advance(1, 10);
        assert!(
            bench.published.len() >= 3,
            "{mode}: {}",
            bench.published.len()
        );
        for (_, measured) in &bench.published[1..] {
            let points = measured.scan.angles.len();
            assert!(
                check(&measured.scan, 0.0, false, WITHIN_MM) * 50 >= points * 48,
                "{mode}"
            );
        }
        assert_eq!(bench.troubles(), [""; 0], "{mode}");
    }
}

#[test]
fn each_problem_is_named_once_and_ends() {
    type Spoil = fn(&mut Vec<u8>, &mut fastrand::Rng);
    let cases: [(Spoil, &[&str]); 2] = [
        (|bytes, _| bytes.clear(), &[ENDED, SILENT]),
        (
            |bytes, random| bytes.iter_mut().for_each(|byte| *byte = random.u8(..)),
            &[FOREIGN],
        ),
    ];
    for (spoil, expected) in cases {
        let mut bench = Bench::typical(sim::Model::A1);
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
fn a_scanner_that_protects_itself_is_reset() {
    let mut bench = Bench::typical(sim::Model::A1);
    bench.advance(3, 10);
    bench.scanner.block(true);
    bench.advance(8, 10);
    let stopped = "the scanner has stopped to protect itself (code 0x0004): check whether it is \
                   blocked, and its supply of 5 V";
    assert_eq!(bench.troubles(), [ENDED, stopped]);
    assert_eq!(bench.logic.trouble(), Some(stopped));
    bench.scanner.block(false);
    bench.advance(15, 10);
    assert!(bench.logic.is_ready(), "{:?}", bench.said);
}

#[test]
fn a_motor_that_does_not_turn_is_told() {
    for model in [sim::Model::A2, sim::Model::S2] {
        let mut bench = Bench::typical(model);
        bench.hears = |bytes| !matches!(bytes[1], 0xA8 | 0xF0);
        bench.advance(20, 10);
        assert_eq!(bench.troubles(), [STILL], "{model:?}");
        bench.hears = |_| true;
        bench.advance(20, 10);
        assert!(bench.logic.is_ready(), "{:?}", bench.said);
    }
}

#[test]
fn missing_echoes_are_unknown_unless_the_user_knows_better() {
    for (no_echo, expected) in [(None, 1), (Some(crate::scanner::layout::NoEcho::Free), 0)] {
        let options = Options {
            no_echo,
            ..Options::default()
        };
        let (settings, _) = options.settings().unwrap();
        let now = Instant::now();
        let mut logic = RplidarLogic::new(settings, now);
        logic.handle_listeners(now, 1);
        let mut scanner = sim::Rplidar::new(sim::Model::C1, Duration::ZERO);
        let mut random = fastrand::Rng::with_seed(1);
        let mut scan = None;
        for ms in 1..3_000 {
            let time = Duration::from_millis(ms);
            scanner.measure(time, &mut random, |_, _| None);
            while let Some(bytes) = scanner.poll_output() {
                logic.handle_bytes(now + time, 0, &bytes);
            }
            logic.handle_timeout(now + time);
            while let Some(output) = logic.poll_output() {
                match output {
                    Output::Open => logic.opened(now),
                    Output::Write(bytes) => scanner.handle_bytes(time, &bytes),
                    Output::Publish(measured) => scan = Some(measured.scan),
                    _ => {}
                }
            }
        }
        let scan = scan.expect("a scan");
        let found = scan.distances.iter().filter(|mm| **mm == expected).count();
        assert!(found > 440, "{found}: {:?}", scan.distances);
    }
}
