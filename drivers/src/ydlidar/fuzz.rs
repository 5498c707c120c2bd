//! Fuzz targets: the driver's half and the simulated device. IO: they read the clock once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_sim::ydlidar as sim;

use super::logic::YdlidarLogic;
use super::packet::{HEAD, Parser};
use super::{Options, Product};
use crate::fuzz::{Input, Target};
use crate::scanner::{self, Model as _};

/// All of them.
pub const TARGETS: &[Target] = &[
    ("ydlidar_packets", packets),
    ("ydlidar_driver", driver),
    ("ydlidar_device", device),
];

const PRODUCTS: [Product; 4] = [Product::X2, Product::X4, Product::G2, Product::TMini];

/// Packets, in pieces: the same ones, however they are cut.
fn packets(data: &[u8]) {
    let mut input = Input(data);
    let product = PRODUCTS[usize::from(input.byte() % 4)];
    let cut = usize::from(input.byte()) + 1;
    let forms = product.forms();
    let (mut whole, mut pieces) = (Parser::new(forms), Parser::new(forms));
    whole.push(input.0);
    let all: Vec<_> = std::iter::from_fn(|| whole.poll()).collect();
    let mut found = Vec::new();
    for piece in input.0.chunks(cut) {
        pieces.push(piece);
        found.extend(std::iter::from_fn(|| pieces.poll()));
    }
    assert_eq!(all, found);
    assert!(all.len() <= data.len() / HEAD);
    for packet in &all {
        for point in 0..packet.points.len() {
            assert!((0.0..360.0).contains(&packet.angle_deg(point)));
        }
    }
}

/// The driver's logic, with a device that sends anything at any time.
fn driver(data: &[u8]) {
    let mut input = Input(data);
    let now = Instant::now();
    let options = Options {
        model: Some(PRODUCTS[usize::from(input.byte() % 4)]),
        ..Options::default()
    };
    let (settings, _) = options.settings().expect("defaults are good");
    let form = match settings.product {
        Product::TMini | Product::G2 => sim::Form::Strength,
        _ => sim::Form::Plain,
    };
    let logic = YdlidarLogic::new(settings, now);
    scanner::fuzz::driver(input, now, logic, |input, now| {
        if input.flag() {
            let kind = input.byte();
            return amber_sim::rplidar::answer(kind, input.piece());
        }
        let degrees = [input.number(), input.number()].map(|it| f64::from(it) / 64.0);
        let mm = [f64::from(input.number() >> 2); 40];
        let count = usize::from(input.byte() % 40) + 1;
        *now += Duration::from_millis(8);
        sim::packet(form, input.byte(), degrees, &mm[..count])
    });
}

/// A simulated scanner, which takes whatever is said to it.
fn device(data: &[u8]) {
    let mut input = Input(data);
    let models = [sim::Model::X2, sim::Model::X4, sim::Model::TMini];
    let model = models[usize::from(input.byte() % 3)];
    let mut now = Duration::ZERO;
    let mut scanner = sim::Ydlidar::new(model, now);
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
