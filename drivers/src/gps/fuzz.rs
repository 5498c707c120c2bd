//! Fuzz targets: what the driver reads from its port, and its logic. IO: they read the clock once.

#![allow(clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_proto::gps::Fix;
use amber_proto::gps::fix::Kind;

use super::Options;
use super::logic::{GpsLogic, Output};
use super::nmea::{Parser, Sentence};
use crate::fuzz::{Input, Target};

/// All of them.
pub const TARGETS: &[Target] = &[("gps_sentences", sentences), ("gps_driver", driver)];

/// Sentences, in pieces: the same ones, however they are cut.
fn sentences(data: &[u8]) {
    let mut input = Input(data);
    let cut = usize::from(input.byte()) + 1;
    let (mut whole, mut pieces) = (Parser::default(), Parser::default());
    whole.push(input.0);
    for piece in input.0.chunks(cut) {
        pieces.push(piece);
    }
    assert_eq!(whole.broken(), pieces.broken());
    loop {
        let sentence = whole.poll();
        assert_eq!(sentence, pieces.poll());
        let place = match sentence {
            None => break,
            Some(Sentence::Gga(gga)) => gga.place,
            Some(Sentence::Rmc(rmc)) => rmc.place,
            Some(_) => None,
        };
        if let Some(place) = place {
            assert!(place.latitude_deg.abs() <= 90.0, "{place:?}");
            assert!(place.longitude_deg.abs() <= 180.0, "{place:?}");
        }
    }
}

/// The logic, with a receiver that sends anything at any time: also anything with a right sum.
fn driver(data: &[u8]) {
    let mut input = Input(data);
    let mut now = Instant::now();
    let (settings, _) = Options::default().settings().expect("defaults are good");
    let mut logic = GpsLogic::new(settings, now);
    let mut opened = false;
    while !input.is_empty() {
        match input.byte() % 8 {
            0 => now += Duration::from_millis(input.byte().into()),
            1 => now += Duration::from_millis(u64::from(input.byte()) * 100),
            2 if opened => logic.failed(now, "unplugged"),
            3 => logic.handle_timeout(now),
            4 if opened => logic.handle_bytes(now, input.piece()),
            5 if input.byte() == 0 => logic.shut_down(),
            _ if opened => {
                let body = String::from_utf8_lossy(input.piece()).into_owned();
                logic.handle_bytes(now, &amber_sim::gps::sentence(&body));
            }
            _ => {}
        }
        if let Ok(fix) = logic.fix(now) {
            check(&fix);
            assert!(fix.age() <= 3_000, "{fix:?}");
        }
        let mut outputs = 0;
        while let Some(output) = logic.poll_output() {
            outputs += 1;
            assert!(outputs < 1_000, "it never comes to rest: {output:?}");
            match output {
                Output::Open => {
                    opened = input.flag();
                    match opened {
                        true => logic.opened(now),
                        false => logic.failed(now, "not there"),
                    }
                }
                Output::Close => opened = false,
                Output::Publish(fix) => check(&fix),
                Output::Say(_) | Output::End => {}
            }
        }
    }
}

/// A position is whole or absent.
fn check(fix: &Fix) {
    let is_there = fix.kind() != Kind::None;
    assert_eq!(fix.latitude.is_some(), is_there, "{fix:?}");
    assert_eq!(fix.longitude.is_some(), is_there, "{fix:?}");
    assert!(
        is_there || fix.altitude.is_none() && fix.speed.is_none(),
        "{fix:?}"
    );
    assert!(fix.latitude.is_none_or(|it| it.abs() <= 90.0), "{fix:?}");
    assert!(fix.longitude.is_none_or(|it| it.abs() <= 180.0), "{fix:?}");
}
