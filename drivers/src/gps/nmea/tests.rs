//! Sentences of the hardware sheet and of real receivers, and broken ones.

use proptest::prelude::*;

use super::*;

const GGA: &str = "$GNGGA,101530.00,5003.98230,N,01955.04210,E,1,11,0.92,223.4,M,39.6,M,,*4D\r\n";

fn sentences(text: &str) -> (Vec<Sentence>, u64) {
    let mut parser = Parser::default();
    parser.push(text.as_bytes());
    let found = std::iter::from_fn(|| parser.poll()).collect();
    (found, parser.broken())
}

fn only(text: &str) -> Sentence {
    let (found, broken) = sentences(&format!("{text}\r\n"));
    assert_eq!((found.len(), broken), (1, 0), "{text}");
    found[0]
}

/// A sentence with its sum.
fn summed(body: &str) -> String {
    let sum = body.bytes().fold(0, |sum, byte| sum ^ byte);
    format!("${body}*{sum:02X}")
}

fn place(latitude_deg: f64, longitude_deg: f64) -> Place {
    Place {
        latitude_deg,
        longitude_deg,
    }
}

#[track_caller]
fn assert_near(found: Option<Place>, expected: Place) {
    let found = found.unwrap();
    let north_deg = found.latitude_deg - expected.latitude_deg;
    let east_deg = found.longitude_deg - expected.longitude_deg;
    assert!(north_deg.abs() < 1e-9 && east_deg.abs() < 1e-9, "{found:?}");
}

const SATELLITES: Quality = Quality::Satellites(Correction::NoCorrection);
const AT_10_15_30_MS: u32 = ((10 * 60 + 15) * 60 + 30) * 1_000;

#[test]
fn gga_has_the_position_and_how_good_it_is() {
    let Sentence::Gga(gga) = only(GGA.trim_end()) else {
        panic!("no GGA");
    };
    assert_near(gga.place, place(50.066_371_666_67, 19.917_368_333_33));
    let expected = Gga {
        time_ms: Some(AT_10_15_30_MS),
        place: gga.place,
        quality: SATELLITES,
        satellites: Some(11),
        hdop: Some(0.92),
        altitude_m: Some(223.4),
        separation_m: Some(39.6),
    };
    assert_eq!(gga, expected);
}

#[test]
fn south_and_west_are_negative() {
    let text = "$GPGGA,101530.00,3351.36500,S,15112.91100,W,4,17,0.61,12.0,M,-21.3,M,1.0,0120*68";
    let Sentence::Gga(gga) = only(text) else {
        panic!("no GGA");
    };
    assert_near(gga.place, place(-33.856_083_333_33, -151.215_183_333_33));
    let fixed = Quality::Satellites(Correction::RtkFixed);
    assert_eq!((gga.quality, gga.separation_m), (fixed, Some(-21.3)));
}

#[test]
fn rmc_has_speed_course_and_date() {
    let text = "$GNRMC,101530.00,A,5003.98230,N,01955.04210,E,0.583,271.4,251126,,,A,V*38";
    let Sentence::Rmc(rmc) = only(text) else {
        panic!("no RMC");
    };
    assert_near(rmc.place, place(50.066_371_666_67, 19.917_368_333_33));
    assert!((rmc.speed_m_s.unwrap() - 0.299_92).abs() < 1e-5);
    assert_eq!((rmc.course_deg, rmc.quality), (Some(271.4), SATELLITES));
    let date = Date {
        year: 2026,
        month: 11,
        day: 25,
    };
    assert_eq!(rmc.date, Some(date));
    assert_eq!(date.unix_ms(AT_10_15_30_MS), 1_795_601_730_000);
}

#[test]
fn without_a_position_there_is_none_and_empty_fields_are_no_zeros() {
    for text in [
        "$GNGGA,101531.00,,,,,0,00,99.99,,,,,,*7F",
        // Some receivers tell zeros, or the last position.
        &summed("GPGGA,101531.00,0000.0000,N,00000.0000,E,0,00,0.0,0.0,M,0.0,M,,"),
        &summed("GPGGA,101531.00,5003.98230,N,01955.04210,E,0,03,,,M,,M,,"),
        // A position that a person has told the receiver.
        &summed("GPGGA,101531.00,5003.98230,N,01955.04210,E,7,03,,,M,,M,,"),
    ] {
        let Sentence::Gga(gga) = only(text) else {
            panic!("no GGA");
        };
        assert_eq!((gga.place, gga.quality), (None, Quality::None), "{text}");
        assert_eq!(gga.hdop, None, "{text}");
    }
    let empty = only("$GNGGA,101531.00,,,,,0,00,99.99,,,,,,*7F");
    let expected = Gga {
        time_ms: Some(AT_10_15_30_MS + 1_000),
        satellites: Some(0),
        ..Gga::default()
    };
    assert_eq!(empty, Sentence::Gga(expected));
    let date = Date {
        year: 2026,
        month: 11,
        day: 25,
    };
    let lost = only("$GNRMC,101531.00,V,,,,,,,251126,,,N,V*1D");
    let expected = Rmc {
        time_ms: Some(AT_10_15_30_MS + 1_000),
        date: Some(date),
        ..Rmc::default()
    };
    assert_eq!(lost, Sentence::Rmc(expected));
    let first = only("$GNRMC,,V,,,,,,,,,,N,V*37");
    assert_eq!(first, Sentence::Rmc(Rmc::default()));
    // The letter of a side is missing.
    let Sentence::Rmc(half) = only(&summed(
        "GNRMC,101530.00,A,5003.98230,,01955.04210,E,0.5,,251126,,,A",
    )) else {
        panic!("no RMC");
    };
    assert_eq!((half.place, half.course_deg), (None, None));
}

#[test]
fn satellites_and_errors_are_read() {
    let gsa = only("$GNGSA,A,3,02,05,12,15,20,25,29,,,,,,1.61,0.92,1.32,1*02");
    let three = Gsa {
        dimensions: Some(3),
        vdop: Some(1.32),
    };
    assert_eq!(gsa, Sentence::Gsa(three));
    // That of old receivers, and a real one of BeiDou.
    assert_eq!(only("$GPGSA,A,1,,,,*32"), Sentence::Gsa(Gsa::default()));
    let beidou = only("$BDGSA,A,3,08,10,19,20,23,27,,,,,,,1.25,0.66,1.06*15");
    assert!(matches!(beidou, Sentence::Gsa(gsa) if gsa.vdop == Some(1.06)));
    let gst = Gst {
        time_ms: Some(AT_10_15_30_MS),
        latitude_m: Some(1.2),
        longitude_m: Some(1.4),
        altitude_m: Some(2.6),
    };
    let text = "$GNGST,101530.00,22,,,,1.2,1.4,2.6*4D";
    assert_eq!(only(text), Sentence::Gst(gst));
}

#[test]
fn sentences_of_real_receivers_are_read() {
    let text = "$GNRMC,021152.000,A,2929.000108,N,10629.000282,E,0.003,316.55,020717,,E,A*09";
    let Sentence::Rmc(rmc) = only(text) else {
        panic!("no RMC");
    };
    assert_near(rmc.place, place(29.483_335_133_33, 106.483_338_033_33));
    assert_eq!(rmc.date.map(|date| date.year), Some(2017));
    let text =
        "$GPGGA,155655.00,4033.87277548,N,01546.28098555,E,2,06,1.5,816.973,M,47.753,M,1.0,0161*4B";
    let Sentence::Gga(gga) = only(text) else {
        panic!("no GGA");
    };
    assert_near(gga.place, place(40.564_546_258, 15.771_349_759_17));
    let differential = Quality::Satellites(Correction::Differential);
    assert_eq!(gga.quality, differential);
    // Further sentences are no errors.
    for text in [
        "$GNVTG,271.4,T,,M,0.583,N,1.080,K,A*14",
        &summed("GPGSV,1,1,01,02,45,120,42"),
        &summed("PUBX,00,101530.00"),
        &summed("PGRMC,A"),
        &summed("GNTXT,01,01,02,u-blox AG - www.u-blox.com"),
    ] {
        assert_eq!(only(text), Sentence::Other, "{text}");
    }
}

#[test]
fn talkers_of_all_systems_are_understood() {
    for talker in ["GP", "GN", "GL", "GA", "GB", "BD", "GQ"] {
        let text = summed(&format!(
            "{talker}RMC,101530.00,A,5003.98230,N,01955.04210,E,,,,,,A"
        ));
        assert!(matches!(only(&text), Sentence::Rmc(it) if it.place.is_some()));
    }
}

#[test]
fn the_quality_has_its_letters_and_numbers() {
    use Correction::{Differential, NoCorrection, RtkFixed, RtkFloat};
    for (number, quality) in [
        ("0", Quality::None),
        ("", Quality::None),
        ("1", Quality::Satellites(NoCorrection)),
        ("2", Quality::Satellites(Differential)),
        ("4", Quality::Satellites(RtkFixed)),
        ("5", Quality::Satellites(RtkFloat)),
        ("6", Quality::DeadReckoning),
        ("8", Quality::Satellites(NoCorrection)),
    ] {
        let text = summed(&format!(
            "GNGGA,101530.00,5003.98,N,01955.04,E,{number},11,,,,,,,"
        ));
        assert!(matches!(only(&text), Sentence::Gga(it) if it.quality == quality));
    }
    for (status, mode, quality) in [
        // Of NMEA 2.0.
        ("A", "", Quality::Satellites(NoCorrection)),
        ("V", "", Quality::None),
        ("V", ",A", Quality::None),
        ("A", ",N", Quality::None),
        ("A", ",A", Quality::Satellites(NoCorrection)),
        ("A", ",D", Quality::Satellites(Differential)),
        ("A", ",F", Quality::Satellites(RtkFloat)),
        ("A", ",R", Quality::Satellites(RtkFixed)),
        ("A", ",E", Quality::DeadReckoning),
    ] {
        let text = summed(&format!(
            "GPRMC,101530.00,{status},5003.98,N,01955.04,E,0.5,10.0,251126,,{mode}"
        ));
        let is_right = matches!(only(&text), Sentence::Rmc(it) if it.quality == quality);
        assert!(is_right, "{text}");
    }
}

#[test]
fn the_state_of_the_antenna_is_read() {
    for (text, antenna) in [
        ("ANTSTATUS=OPEN", Antenna::Open),
        ("ANTSTATUS=SHORT", Antenna::Short),
        ("ANTENNA OPEN", Antenna::Open),
        ("ANTENNA OK", Antenna::Well),
    ] {
        let text = summed(&format!("GNTXT,01,01,02,{text}"));
        assert_eq!(only(&text), Sentence::Antenna(antenna));
    }
    let unknown = only(&summed("GNTXT,01,01,02,ANTSTATUS=DONTKNOW"));
    assert_eq!(unknown, Sentence::Other);
}

#[test]
fn broken_sentences_are_counted_and_dropped() {
    for text in [
        // Without a sum, with a wrong one, and with half of one.
        "$GPGSA,A,1,,,,",
        "$GPGSA,A,1,,,,*33",
        "$GPGSA,A,1,,,,*3",
        "$GPGSA,A,1,,,,*+2",
        "$GPGSA,A,1,,,,*032",
        "$*00",
        "$",
        // The end is lost.
        "$GPGSA,A,1$GPGSA,A,1,,,,*32\x07",
        "$GPGSA,A,\u{e9},,,,*32",
    ] {
        let (found, broken) = sentences(&format!("{text}\r\n"));
        assert!(found.is_empty() && broken > 0, "{text}: {found:?}");
    }
    let (found, broken) = sentences(&format!("${}\r\n{GGA}", "1".repeat(5_000)));
    assert_eq!((found.len(), broken), (1, 1));
}

#[test]
fn impossible_values_are_broken_although_the_sum_is_right() {
    let gga = |place: &str, rest: &str| summed(&format!("GPGGA,101530.00,{place},{rest}"));
    let good = ["5003.98230,N,01955.04210,E", "1,11,0.92,223.4,M,39.6,M,,"];
    only(&gga(good[0], good[1]));
    for place in [
        "9000.00001,N,01955.04210,E",
        "5060.00000,N,01955.04210,E",
        "5003.98230,E,01955.04210,E",
        "5003.98230,N,18000.00001,E",
        "5003.98230,N,01975.00000,E",
        "-5003.98230,N,01955.04210,E",
        "5003.9x230,N,01955.04210,E",
        "inf,N,01955.04210,E",
        "5e3,N,01955.04210,E",
    ] {
        let (found, broken) = sentences(&format!("{}\r\n", gga(place, good[1])));
        assert_eq!((found.len(), broken), (0, 1), "{place}");
    }
    for body in [
        "GPGGA,101530.00,5003.98230,N,01955.04210,E,9,11,0.92,223.4,M,39.6,M,,",
        "GPGGA,101530.00,5003.98230,N,01955.04210,E,1,-1,0.92,223.4,M,39.6,M,,",
        "GPGGA,241530.00,5003.98230,N,01955.04210,E,1,11,0.92,223.4,M,39.6,M,,",
        "GPGGA,106030.00,5003.98230,N,01955.04210,E,1,11,0.92,223.4,M,39.6,M,,",
        "GPRMC,101530.00,A,5003.98230,N,01955.04210,E,-5.0,271.4,251126,,,A",
        "GPRMC,101530.00,A,5003.98230,N,01955.04210,E,0.5,371.4,251126,,,A",
        "GPRMC,101530.00,A,5003.98230,N,01955.04210,E,0.5,271.4,251326,,,A",
        "GPRMC,101530.00,B,5003.98230,N,01955.04210,E,0.5,271.4,251126,,,A",
        "GPGSA,A,4,,,,",
    ] {
        let (found, broken) = sentences(&format!("{}\r\n", summed(body)));
        assert_eq!((found.len(), broken), (0, 1), "{body}");
    }
}

#[test]
fn times_and_dates_end() {
    let time = |text: &str| {
        let text = summed(&format!("GPRMC,{text},V,,,,,,,,,,N"));
        only(&text).time_ms().unwrap()
    };
    assert_eq!(time("000000"), Some(0));
    assert_eq!(time("235959.999"), Some(86_399_999));
    // A leap second.
    assert_eq!(time("235960.00"), Some(86_400_000));
    for (year, month, day, days) in [
        (1980, 1, 6, 3_657),
        (2000, 3, 1, 11_017),
        (2026, 1, 1, 20_454),
        (2028, 2, 29, 21_243),
        (2028, 3, 1, 21_244),
        (2079, 12, 31, 40_176),
    ] {
        let date = Date { year, month, day };
        assert_eq!(date.unix_ms(5), days * 86_400_000 + 5, "{date:?}");
    }
}

#[test]
fn the_next_sentence_is_found_after_any_bytes() {
    for before in [
        &b"\r\n"[..],
        b"N,01955.04210,E,1,11,0.92,223.4,M,39.6,M,,*4D\r\n",
        b"$GNGGA,1015",
        // A message of u-blox, in which a dollar may be.
        b"\xb5\x62\x01\x07$\x00\xff",
        b"$$$",
        &[b'x'; 5_000],
    ] {
        let mut parser = Parser::default();
        parser.push(&[before, GGA.as_bytes()].concat());
        assert!(
            matches!(parser.poll(), Some(Sentence::Gga(_))),
            "{before:?}"
        );
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut parser = Parser::default();
        parser.push(&bytes);
        while parser.poll().is_some() {}
        parser.push(b"\r\n");
        parser.clear();
        parser.push(GGA.as_bytes());
        prop_assert!(matches!(parser.poll(), Some(Sentence::Gga(_))));
    }

    #[test]
    fn one_wrong_byte_never_goes_unnoticed(place in 1..71usize, byte in any::<u8>()) {
        let mut bytes = GGA.as_bytes().to_vec();
        // With a dollar, another sentence begins.
        prop_assume!(bytes[place] != byte && byte != b'$');
        bytes[place] = byte;
        let mut parser = Parser::default();
        parser.push(&bytes);
        prop_assert_eq!(parser.poll(), None);
    }
}
