//! Sentences that belong together, and those that do not.

use super::*;
use crate::gps::nmea::Parser;

const RMC: &str = "GNRMC,101530.00,A,5003.98230,N,01955.04210,E,1.583,271.4,251126,,,A";
const GGA: &str = "GNGGA,101530.00,5003.98230,N,01955.04210,E,1,11,0.92,223.4,M,39.6,M,,";
const GSA: &str = "GNGSA,A,3,02,05,12,15,20,25,29,,,,,,1.61,0.92,1.32";
const GST: &str = "GNGST,101530.00,22,,,,1.2,1.4,2.6";

fn parsed(bodies: &[&str]) -> Vec<Sentence> {
    let mut parser = Parser::default();
    for body in bodies {
        parser.push(&amber_sim::gps::sentence(body));
    }
    let found: Vec<_> = std::iter::from_fn(|| parser.poll()).collect();
    assert_eq!(found.len(), bodies.len(), "{bodies:?}");
    found
}

/// The one epoch that these sentences make.
fn joined(bodies: &[&str]) -> Epoch {
    let mut joiner = Joiner::default();
    for sentence in parsed(bodies) {
        assert_eq!(joiner.push(&sentence), None);
    }
    joiner.end().unwrap()
}

fn fix(bodies: &[&str]) -> Fix {
    joined(bodies).fix(5.0).unwrap()
}

#[track_caller]
fn assert_near(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    assert!((found - expected).abs() < 1e-6, "{found} {expected}");
}

#[test]
fn the_sentences_of_one_moment_are_one_fix() {
    for order in [
        [RMC, GGA, GSA, GST],
        [GGA, GST, GSA, RMC],
        [GST, RMC, GGA, GSA],
    ] {
        let fix = fix(&order);
        assert_eq!(
            (fix.kind(), fix.correction()),
            (Kind::ThreeD, Correction::NoCorrection)
        );
        assert_near(fix.latitude, 50.066_371_667);
        assert_near(fix.longitude, 19.917_368_333);
        assert_near(fix.altitude, 223.4);
        assert_near(fix.height, 263.0);
        assert_near(fix.horizontal_accuracy, 1.843_909);
        assert_near(fix.vertical_accuracy, 2.6);
        assert_eq!(fix.accuracy_is_estimated, Some(false));
        assert_eq!((fix.satellites, fix.hdop), (Some(11), Some(0.92)));
        assert_near(fix.speed, 0.814_366);
        assert_eq!(fix.course, Some(271.4));
        assert_eq!(fix.time, Some(1_795_601_730_000));
        assert_eq!(fix.age, None);
    }
}

#[test]
fn without_gst_the_errors_are_estimated() {
    let fix = fix(&[RMC, GGA, GSA]);
    assert_near(fix.horizontal_accuracy, 4.6);
    assert_near(fix.vertical_accuracy, 6.6);
    assert_eq!(fix.accuracy_is_estimated, Some(true));
}

#[test]
fn one_sentence_is_enough_if_the_receiver_sends_no_more() {
    let gga = fix(&[GGA]);
    assert_eq!(
        (gga.kind(), gga.time, gga.speed),
        (Kind::ThreeD, None, None)
    );
    let rmc = fix(&[RMC]);
    assert_eq!(
        (rmc.kind(), rmc.altitude, rmc.hdop),
        (Kind::TwoD, None, None)
    );
    assert_eq!(
        (rmc.accuracy_is_estimated, rmc.horizontal_accuracy),
        (None, None)
    );
    assert_eq!(rmc.time, Some(1_795_601_730_000));
    assert_eq!(joined(&[GST]).fix(5.0), Err(Useless::Empty));
}

#[test]
fn the_worse_word_counts() {
    let lost_rmc = "GNRMC,101530.00,V,,,,,,,251126,,,N";
    let lost_gga = "GNGGA,101530.00,,,,,0,03,99.99,,,,,,";
    for bodies in [[lost_rmc, GGA], [RMC, lost_gga], [lost_rmc, lost_gga]] {
        let fix = fix(&bodies);
        assert_eq!(
            (fix.kind(), fix.latitude, fix.longitude),
            (Kind::None, None, None)
        );
        assert_eq!(
            (fix.altitude, fix.speed, fix.correction),
            (None, None, None)
        );
        assert_eq!(fix.time, Some(1_795_601_730_000), "it has a clock");
    }
    let reckoned = fix(&[
        &RMC.replace(",,,A", ",,,E"),
        &GGA.replace("E,1,11", "E,6,00"),
    ]);
    assert_eq!(
        (reckoned.kind(), reckoned.correction),
        (Kind::DeadReckoning, None)
    );
    let fixed = fix(&[
        &RMC.replace(",,,A", ",,,R"),
        &GGA.replace("E,1,11", "E,4,17"),
    ]);
    assert_eq!(fixed.correction(), Correction::RtkFixed);
}

#[test]
fn a_fix_in_two_dimensions_has_no_altitude() {
    let two = GSA.replace("A,3,", "A,2,");
    let fix = fix(&[RMC, GGA, &two]);
    assert_eq!(
        (fix.kind(), fix.altitude, fix.height),
        (Kind::TwoD, None, None)
    );
    assert_eq!(fix.vertical_accuracy, None);
    // One system of satellites may not have enough of its own.
    let none = "GNGSA,A,1,66,,,,,,,,,,,,99.99,99.99,99.99";
    assert_eq!(self::fix(&[RMC, GGA, GSA, none]).kind(), Kind::ThreeD);
}

#[test]
fn a_slow_robot_has_no_course() {
    let slow = RMC.replace("1.583", "0.583");
    let fix = fix(&[&slow, GGA]);
    assert_near(fix.speed, 0.299_921);
    assert_eq!(fix.course, None);
}

#[test]
fn different_positions_are_a_contradiction() {
    let moved = |digits: &str| RMC.replace("5003.98230", digits);
    let same = fix(&[&moved("5003.9823"), GGA]);
    assert_near(same.latitude, 50.066_371_667);
    for other in ["5003.98530", "5003.93230", "5013.98230"] {
        let epoch = joined(&[&moved(other), GGA]);
        assert_eq!(epoch.fix(5.0), Err(Useless::Contradiction), "{other}");
    }
    // At the date line, both sides are near.
    let east = RMC.replace("01955.04210,E", "17959.99999,E");
    let west = GGA.replace("01955.04210,E", "17959.99999,W");
    assert_near(fix(&[&east, &west]).longitude, -179.999_999_833);
}

#[test]
fn an_old_year_is_no_time() {
    let old = RMC.replace("251126", "120407");
    let epoch = joined(&[&old, GGA]);
    assert_eq!(epoch.old_year(), Some(2007));
    let fix = epoch.fix(5.0).unwrap();
    assert_eq!((fix.time, fix.kind()), (None, Kind::ThreeD));
    assert_eq!(joined(&[RMC]).old_year(), None);
    assert_eq!(joined(&[GGA]).old_year(), None);
}

#[test]
fn the_time_goes_on_at_midnight() {
    let time = |time: &str, date: &str| {
        let rmc = RMC.replace("101530.00", time).replace("251126", date);
        let gga = GGA.replace("101530.00", time);
        fix(&[&gga, &rmc]).time
    };
    assert_eq!(time("235959.80", "311226"), Some(1_798_761_599_800));
    assert_eq!(time("000000.00", "010127"), Some(1_798_761_600_000));
    assert_eq!(time("235960.00", "311226"), Some(1_798_761_600_000));
}

#[test]
fn an_epoch_ends_when_the_time_changes_or_a_sentence_repeats() {
    let next = |body: &str| body.replace("101530", "101531");
    let mut joiner = Joiner::default();
    let mut ended = Vec::new();
    for sentence in parsed(&[RMC, GGA, GSA, &next(GGA), &next(RMC), GSA]) {
        ended.extend(joiner.push(&sentence));
    }
    assert_eq!(ended, [joined(&[RMC, GGA, GSA])]);
    assert_eq!(joiner.end(), Some(joined(&[&next(GGA), &next(RMC), GSA])));
    assert_eq!(joiner.end(), None, "it is told once");

    // Without a clock.
    let bare = "GNRMC,,V,,,,,,,,,,N";
    let [first, second] = parsed(&[bare, bare])[..] else {
        panic!("two sentences");
    };
    assert_eq!(joiner.push(&first), None);
    assert_eq!(joiner.push(&second), Some(joined(&[bare])));
}

#[test]
fn what_comes_late_is_added() {
    let mut joiner = Joiner::default();
    let sentences = parsed(&[RMC, GGA]);
    joiner.push(&sentences[0]);
    assert_eq!(joiner.end(), Some(joined(&[RMC])));
    assert!(!joiner.is_new());
    assert_eq!(joiner.push(&sentences[1]), None);
    assert_eq!(joiner.end(), Some(joined(&[RMC, GGA])));
}
