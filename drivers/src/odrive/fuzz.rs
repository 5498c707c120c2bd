//! Fuzz targets: the driver's half and the simulated ODrive. IO: they read the clock once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use amber_sim::odrive::{Odrive, Variant};
use amber_sim::wheels::{Drive, Reading};

use super::Options;
use super::logic::OdriveLogic;
use crate::fuzz::{Input, Target};
use crate::wheels::fuzz::run;

/// All of them.
pub const TARGETS: &[Target] = &[("odrive_driver", driver), ("odrive_device", device)];

/// What an ODrive may say, without the sum.
const LINES: [&str; 8] = [
    "Firmware version: 0.5.6",
    "0.500000 1.250000",
    "-0.500000 -1000000.250000",
    "0",
    "8",
    "2048",
    "24.087744",
    "unknown command",
];

/// The driver's logic, with an ODrive that says anything at any time.
fn driver(data: &[u8]) {
    let mut input = Input(data);
    let options = Options {
        wheel_diameter_mm: Some(120.0),
        reverse_right: Some(input.flag()),
        ..Options::default()
    };
    let (settings, _) = options.settings().expect("they are good");
    run::<OdriveLogic>(&mut input, settings, answer, |_, bytes| check(bytes));
}

/// An intact line.
fn answer(input: &mut Input<'_>) -> Vec<u8> {
    let line = LINES[usize::from(input.byte()) % LINES.len()];
    let sum = line.bytes().fold(0, |sum, byte| sum ^ byte);
    format!("{line}*{sum}\r\n").into_bytes()
}

/// Commands that store nothing and calibrate nothing, and no speed beyond the limit.
fn check(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).expect("a text");
    assert!(text.ends_with('\n'));
    for line in text.split_terminator('\n') {
        let (line, _) = line.rsplit_once('*').unwrap_or((line, ""));
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["" | "i" | "sc"] | ["f" | "u", "0" | "1"] | ["r", _] => {}
            ["v", "0" | "1", turns_s] => {
                let turns_s: f64 = turns_s.parse().expect("a number");
                // 1200 mm/s.
                assert!(turns_s.abs() < 3.1832, "{line}");
            }
            ["w", name, value] => assert!(
                name.contains(".config.") || name.ends_with("state") && ["1", "8"].contains(&value),
                "{line}"
            ),
            _ => panic!("{line}"),
        }
    }
}

/// The simulated ODrive, which takes whatever is said to it.
fn device(data: &[u8]) {
    let mut input = Input(data);
    let mut now = Duration::ZERO;
    let mut odrive = Odrive::new(match input.flag() {
        true => Variant::Calibrated,
        false => Variant::Uncalibrated,
    });
    while !input.is_empty() {
        match input.byte() % 4 {
            0 => {
                now += Duration::from_millis(input.number().into());
                odrive.advance(now);
            }
            1 => {
                let readings = std::array::from_fn(|_| Reading {
                    pulses: i64::from(input.number()) << 20,
                    ..Reading::default()
                });
                odrive.handle_readings(now, readings);
            }
            _ => odrive.handle_bytes(now, input.piece()),
        }
        while let Some(answer) = odrive.poll_output() {
            assert!(answer.ends_with(b"\r\n"));
        }
        for drive in odrive.drives() {
            match drive {
                Drive::Duty(duty) => assert!((-1.0..=1.0).contains(&duty), "{duty}"),
                Drive::Speed { qpps, .. } => assert!(!qpps.is_nan()),
            }
        }
    }
}
