//! Tests of the rules with a simulated clock and the simulated scanner.

use amber_sim::ldrobot as sim;
use proptest::prelude::*;

use super::*;
use crate::ldrobot::{Options, Product};
use crate::scanner::layout::Points;
use crate::scanner::testing::{self, BEGIN_MS, check};

type Bench = testing::Bench<LdrobotLogic, sim::Ldrobot>;

impl Bench {
    fn new(options: Options, model: sim::Model) -> Self {
        let (settings, _) = options.settings().unwrap();
        Self::of(settings, sim::Ldrobot::new(model, Duration::ZERO))
    }
}

fn options(model: Product) -> Options {
    Options {
        model: Some(model),
        ..Options::default()
    }
}

#[test]
fn every_model_is_measured_as_the_world_is() {
    for (product, model, turn_ms, points) in [
        (Product::Ld06, sim::Model::Ld06, 100, 400),
        (Product::Ld19, sim::Model::Ld19, 100, 400),
        (Product::Stl27l, sim::Model::Stl27l, 100, 972),
        (Product::Ld14p, sim::Model::Ld14p, 167, 340),
    ] {
        let mut bench = Bench::new(options(product), model);
        bench.advance(5, 10);
        let last = bench.published.len().saturating_sub(10);
        assert!(last > 5, "{product:?}: {last}");
        for (_, measured) in &bench.published[last..] {
            assert_eq!(measured.scan.angles.len(), points);
            let measured = check(&measured.scan, 0.0, false, 17.0);
            assert!(measured >= points - 5, "{product:?}: {measured}");
        }
        let scanner = bench.logic.scanner().unwrap();
        let off_us = scanner.turn_time().abs_diff(turn_ms * 1_000);
        assert!(off_us <= 1_000, "{product:?}: {scanner:?}");
        assert_eq!(scanner.model(), product.name());
        assert!(scanner.turns_right());
    }
}

#[test]
fn a_scanner_may_be_mounted_in_any_way() {
    for (angle_deg, mirrored) in [(90.0, false), (-45.0, true), (180.0, true)] {
        let mount = Options {
            angle_deg: Some(angle_deg),
            mirrored: Some(mirrored),
            ..options(Product::Ld19)
        };
        let mut bench = Bench::new(mount, sim::Model::Ld19);
        bench.advance(4, 10);
        let (_, measured) = bench.published.last().unwrap();
        assert!(check(&measured.scan, angle_deg, mirrored, 17.0) > 390);
        assert_eq!(bench.logic.scanner().unwrap().turns_right(), !mirrored);
    }
}

#[test]
fn old_programs_get_682_points() {
    let old = Options {
        points: Some(Points::Compatible),
        ..options(Product::Ld19)
    };
    let mut bench = Bench::new(old, sim::Model::Ld19);
    bench.advance(4, 10);
    let (_, measured) = bench.published.last().unwrap();
    assert_eq!(measured.scan.angles.len(), 682);
    assert_eq!(measured.scan.angles[0], -119.885);
    assert!(check(&measured.scan, 0.0, false, 20.0) > 675);
    let scanner = bench.logic.scanner().unwrap();
    assert_eq!(
        (scanner.first_angle(), scanner.last_angle()),
        (-119.885, 119.885)
    );
}

#[test]
fn a_scan_has_the_time_of_its_last_point_however_its_bytes_arrive() {
    for piece_ms in [1, 7, 150] {
        let mut bench = Bench::new(options(Product::Ld19), sim::Model::Ld19);
        bench.advance(5, piece_ms);
        let last = bench.published.len().saturating_sub(10);
        assert!(last > 10, "{piece_ms}: {last}");
        for (arrived, measured) in &bench.published[last..] {
            let ended_ms = measured.timestamp_ms - BEGIN_MS;
            // When the head was at the rear.
            let truth = bench
                .scanner
                .turned_deg(Duration::from_millis(ended_ms as u64));
            let off_ms = ((truth - 180.0 + 180.0).rem_euclid(360.0) - 180.0) / 3.6;
            // Bytes arrive within a piece after they were sent, and that a packet later.
            let late_ms = piece_ms as f64 + 5.0;
            assert!((-2.0..late_ms).contains(&off_ms), "{piece_ms}: {off_ms} ms");
            assert!(arrived.as_millis() as i64 >= ended_ms);
        }
    }
}

#[test]
fn a_scan_of_a_turning_robot_can_be_straightened() {
    let mut bench = Bench::new(options(Product::Ld14p), sim::Model::Ld14p);
    // In the time of a turn, 20 degrees: 100 mm.
    bench.turn_deg_s = 120.0;
    bench.advance(6, 5);
    for (_, measured) in bench.last(10) {
        bench.check_straightened(measured, 25.0);
    }
}

#[test]
fn an_ld14p_is_started_and_stopped() {
    let mut bench = Bench::new(options(Product::Ld14p), sim::Model::Ld14p);
    // Another program has stopped it.
    bench.scanner.handle_bytes(Duration::ZERO, &STOP);
    bench.advance(4, 10);
    assert_eq!(bench.written, [START.to_vec()]);
    assert!(bench.published.len() > 5);
    bench.logic.shut_down(bench.begin + bench.time);
    assert_eq!(
        bench.logic.poll_output(),
        Some(Output::Write(STOP.to_vec()))
    );
    assert_eq!(bench.logic.poll_output(), Some(Output::End));
    let mut others = Bench::new(options(Product::Ld19), sim::Model::Ld19);
    others.advance(1, 10);
    others.logic.shut_down(others.begin + others.time);
    assert_eq!(others.logic.poll_output(), Some(Output::End));
    assert!(others.written.is_empty(), "it has no wire for commands");
}

#[test]
fn no_point_of_a_damaged_packet_is_published() {
    let mut bench = Bench::new(options(Product::Ld19), sim::Model::Ld19);
    bench.advance(3, 3);
    bench.published.clear();
    bench.spoil = |bytes, random| {
        // One packet in ten.
        if !bytes.is_empty() && random.u32(..10) == 0 {
            let at = random.usize(..bytes.len());
            bytes[at] ^= 1 << random.u32(..8);
        }
    };
    bench.advance(5, 3);
    assert!(bench.published.len() > 40, "{}", bench.published.len());
    for (_, measured) in &bench.published {
        assert!(check(&measured.scan, 0.0, false, 17.0) > 250);
    }
    assert!(bench.logic.service().counters.strays > 50);
    assert!(bench.logic.is_ready());
}

#[test]
fn after_garbage_the_second_turn_is_complete() {
    let mut bench = Bench::new(options(Product::Ld19), sim::Model::Ld19);
    bench.advance(3, 10);
    bench.spoil = |bytes, random| bytes.iter_mut().for_each(|byte| *byte = random.u8(..));
    bench.advance(1, 10);
    bench.published.clear();
    bench.spoil = |_, _| {};
    bench.advance(1, 10);
    assert!(bench.published.len() >= 8, "{}", bench.published.len());
    for (_, measured) in &bench.published {
        assert!(check(&measured.scan, 0.0, false, 17.0) > 390);
    }
}

proptest! {
    #[test]
    fn time_stamps_may_wrap(steps in proptest::collection::vec(0_u16..20_000, 1..50)) {
        let mut clock = StampClock::default();
        let mut stamp = 0_u32;
        let first = clock.time(0);
        let mut expected = first;
        for step in steps {
            stamp = (stamp + u32::from(step)) % u32::from(STAMP_END_MS);
            expected += Duration::from_millis(step.into());
            prop_assert_eq!(clock.time(stamp as u16), expected);
        }
    }
}
