//! Fuzz targets: the driver's half and the simulated device. IO: they read the clock once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_driver::Origin;

use super::Options;
use super::logic::LdrobotLogic;
use super::packet::{LENGTH, Parser};
use crate::fuzz::{Input, Target};
use crate::scanner::{Model as _, Output};

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
    let mut input = Input(data);
    let mut now = Instant::now();
    let (settings, _) = Options::default().settings().expect("defaults are good");
    let mut logic = LdrobotLogic::new(settings, now);
    let mut opened = false;
    while !input.is_empty() {
        match input.byte() % 8 {
            0 => now += Duration::from_millis(input.number().into()),
            1 => logic.ask(now, Origin::default()),
            2 => logic.handle_listeners(now, usize::from(input.byte() % 3)),
            3 if opened => logic.failed(now, "unplugged"),
            4 => logic.handle_timeout(now),
            5 if opened => {
                let (first, speed) = (input.number(), input.number());
                let packet = amber_sim::ldrobot::packet(&amber_sim::ldrobot::Packet {
                    speed_deg_s: speed,
                    first,
                    last: input.number(),
                    points: [(input.number(), input.byte()); 12],
                    stamp_ms: input.number(),
                });
                logic.handle_bytes(now, 0, &packet);
            }
            6 if input.byte() == 0 => logic.shut_down(now),
            _ if opened => logic.handle_bytes(now, 0, input.piece()),
            _ => {}
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
                Output::Answer(_, measured) | Output::Publish(measured) => {
                    let scan = &measured.scan;
                    assert_eq!((scan.angles.len(), scan.distances.len()), (400, 400));
                    assert!(scan.angles.is_sorted_by(|a, b| a < b));
                }
                Output::Write(_) | Output::Say(_) | Output::End => {}
            }
        }
    }
}
