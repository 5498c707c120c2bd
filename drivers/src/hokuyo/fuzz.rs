//! Fuzz targets: the driver's half and the simulated device. IO: they read the clock once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_sim::hokuyo::{Hokuyo, Model, Scan, Transport};

use super::Options;
use super::logic::ScannerLogic;
use super::scip::{Geometry, Parser};
use crate::fuzz::{Input, Target};
use crate::scanner::{self, Model as _};

/// All of them.
pub const TARGETS: &[Target] = &[
    ("scip", scip),
    ("hokuyo_driver", driver),
    ("hokuyo_device", device),
];

/// Replies, in pieces: the same ones, however they are cut.
fn scip(data: &[u8]) {
    let mut input = Input(data);
    let cut = usize::from(input.byte()) + 1;
    let (mut whole, mut pieces) = (Parser::default(), Parser::default());
    whole.push(input.0);
    for piece in input.0.chunks(cut) {
        pieces.push(piece);
    }
    assert_eq!(whole.spoilt(), pieces.spoilt());
    loop {
        let reply = whole.poll();
        assert_eq!(reply, pieces.poll());
        let Some(reply) = reply else { break };
        let _ = reply.value("DMIN");
        if let Some(geometry) = Geometry::of(&reply) {
            assert!((1..=10_000).contains(&geometry.points()));
            assert!(geometry.single().len() < 64 && geometry.continuous(9).len() < 64);
        }
        for points in [0, 1, 682, 1081] {
            if let Some((_, distances)) = reply.scan(points) {
                assert_eq!(distances.len(), points);
                assert!(
                    distances
                        .iter()
                        .all(|distance| (0..1 << 18).contains(distance))
                );
            }
        }
    }
}

/// The driver's logic, with a device that says anything at any time.
fn driver(data: &[u8]) {
    let now = Instant::now();
    let (settings, _) = Options::default().settings().expect("defaults are good");
    let logic = ScannerLogic::new(settings, now);
    // The reply that it waits for, but for its status and data.
    scanner::fuzz::driver(Input(data), now, logic, |input, _| {
        let mut reply = input.piece().to_vec();
        for line in [input.piece(), input.piece()] {
            reply.push(b'\n');
            reply.extend_from_slice(line);
            reply.push(amber_sim::hokuyo::sum(line));
        }
        reply.extend_from_slice(b"\n\n");
        reply
    });
}

/// A simulated scanner, which takes whatever is said to it.
fn device(data: &[u8]) {
    let mut input = Input(data);
    let model = [Model::Urg04Lx, Model::Utm30Lx][usize::from(input.byte() % 2)];
    let link = [Transport::Serial, Transport::Ethernet][usize::from(input.byte() % 2)];
    let mut now = Duration::ZERO;
    let mut scanner = Hokuyo::new(model, link, now);
    let steps = model.last_step() as usize + 1;
    let scan = Scan {
        distances: vec![1_000; steps],
        intensities: vec![500; steps],
    };
    while !input.is_empty() {
        match input.byte() % 4 {
            0 => now += Duration::from_millis(input.number().into()),
            1 => scanner.handle_bytes(now, b"BM\nGD0044072501\nMD0044072501000\nMD0044072501099\n"),
            2 if input.byte() == 0 => scanner.handle_hang_up(),
            _ => scanner.handle_bytes(now, input.piece()),
        }
        for turns in 0.. {
            assert!(turns < 10_000, "it never comes to rest");
            let Some(sweep) = scanner.poll_sweep(now) else {
                break;
            };
            scanner.handle_scan(now, sweep, scan.clone());
        }
        let mut bytes = 0;
        while let Some(output) = scanner.poll_output() {
            bytes += output.len();
        }
        assert!(bytes < 16 << 20, "{bytes} bytes at once");
        assert!(scanner.next_timeout().is_none_or(|due| due > now));
    }
}
