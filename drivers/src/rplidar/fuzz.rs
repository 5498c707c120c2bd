//! Fuzz targets: the driver's half and the simulated device. IO: they read the clock once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_sim::rplidar as sim;

use super::Options;
use super::capsule::Format;
use super::logic::RplidarLogic;
use super::stream::Stream;
use crate::fuzz::{Input, Target};
use crate::scanner::{self, Model as _};

/// All of them.
pub const TARGETS: &[Target] = &[
    ("rplidar_points", points),
    ("rplidar_driver", driver),
    ("rplidar_device", device),
];

/// A scan, in pieces: the same points, however it is cut.
fn points(data: &[u8]) {
    let mut input = Input(data);
    let kind = 0x81 + input.byte() % 6;
    let cut = usize::from(input.byte()) + 1;
    let Some(format) = Format::of(kind) else {
        return;
    };
    let (mut whole, mut pieces) = (Stream::new(format), Stream::new(format));
    whole.push(input.0);
    let all: Vec<_> = std::iter::from_fn(|| whole.poll()).flatten().collect();
    let mut found = Vec::new();
    for piece in input.0.chunks(cut) {
        pieces.push(piece);
        found.extend(std::iter::from_fn(|| pieces.poll()).flatten());
    }
    assert_eq!(all, found);
    assert!(all.len() <= data.len() / format.length() * format.points());
    assert!(all.iter().all(|point| point.angle_deg.is_finite()));
}

/// The driver's logic, with a device that sends anything at any time.
fn driver(data: &[u8]) {
    let now = Instant::now();
    let (settings, _) = Options::default().settings().expect("defaults are good");
    let logic = RplidarLogic::new(settings, now);
    scanner::fuzz::driver(Input(data), now, logic, |input, now| {
        match input.byte() % 3 {
            0 => {
                let kind = input.byte();
                sim::answer(kind, input.piece())
            }
            1 => sim::stream(sim::Format::Dense).to_vec(),
            _ => {
                let head_deg = f64::from(input.number()) / 64.0;
                let sample = sim::Sample {
                    head_deg,
                    behind_deg: 0.0,
                    mm: f64::from(input.number()),
                };
                *now += Duration::from_millis(8);
                sim::capsule(sim::Format::Dense, &[sample; 40], sample, input.flag())
            }
        }
    });
}

/// A simulated scanner, which takes whatever is said to it.
fn device(data: &[u8]) {
    let mut input = Input(data);
    let models = [
        sim::Model::A1,
        sim::Model::A2,
        sim::Model::C1,
        sim::Model::S2,
    ];
    let model = models[usize::from(input.byte() % 4)];
    let mut now = Duration::ZERO;
    let mut scanner = sim::Rplidar::new(model, now);
    let mut random = fastrand::Rng::with_seed(1);
    while !input.is_empty() {
        match input.byte() % 4 {
            0 => now += Duration::from_millis(u64::from(input.number()) % 200),
            1 => scanner.block(input.flag()),
            _ => scanner.handle_bytes(now, input.piece()),
        }
        scanner.measure(now, &mut random, |_, _| Some(1.0));
        let mut bytes = 0;
        while let Some(output) = scanner.poll_output() {
            bytes += output.len();
        }
        assert!(bytes < 1 << 20, "{bytes} bytes at once");
        assert!(scanner.next_packet().is_none_or(|due| due > now));
    }
}
