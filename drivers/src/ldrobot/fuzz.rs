//! Fuzz targets: the driver's half and the simulated device. IO: they read the clock once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Instant;

use super::Options;
use super::logic::LdrobotLogic;
use super::packet::{LENGTH, Parser};
use crate::fuzz::{Input, Target};
use crate::scanner::{self, Model as _};

/// All of them.
pub const TARGETS: &[Target] = &[("ldrobot_packets", packets), ("ldrobot_driver", driver)];

/// Packets, in pieces: the same ones, however they are cut.
fn packets(data: &[u8]) {
    let mut input = Input(data);
    let cut = usize::from(input.byte()) + 1;
    let (mut whole, mut pieces) = (Parser::default(), Parser::default());
    whole.push(input.0);
    let all: Vec<_> = std::iter::from_fn(|| whole.poll()).collect();
    let mut found = Vec::new();
    for piece in input.0.chunks(cut) {
        pieces.push(piece);
        found.extend(std::iter::from_fn(|| pieces.poll()));
    }
    assert_eq!(all, found);
    assert!(all.len() <= data.len() / LENGTH);
}

/// The driver's logic, with a device that sends anything at any time.
fn driver(data: &[u8]) {
    let now = Instant::now();
    let (settings, _) = Options::default().settings().expect("defaults are good");
    let logic = LdrobotLogic::new(settings, now);
    scanner::fuzz::driver(Input(data), now, logic, |input, _| {
        let (first, speed) = (input.number(), input.number());
        amber_sim::ldrobot::packet(&amber_sim::ldrobot::Packet {
            speed_deg_s: speed,
            first,
            last: input.number(),
            points: [(input.number(), input.byte()); 12],
            stamp_ms: input.number(),
        })
        .to_vec()
    });
}
