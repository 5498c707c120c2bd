//! Fuzz targets: the driver's half and the simulated robot. IO: they read the clock once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_sim::create2 as sim;
use amber_sim::wheels::{Drive, Reading};

use super::Options;
use super::logic::Create2Logic;
use crate::fuzz::{Input, Target};
use crate::wheels::fuzz::run;
use crate::wheels::{Model as _, StreamModel as _};

/// All of them.
pub const TARGETS: &[Target] = &[("create2_driver", driver), ("create2_device", device)];

/// The driver's logic, with a robot that says anything at any time.
fn driver(data: &[u8]) {
    let mut input = Input(data);
    let (settings, _) = Options::default().settings().expect("they are good");
    run::<Create2Logic>(&mut input, settings, frame, |logic, bytes| {
        check(bytes, logic.hindrance().is_some());
        if let Ok(felt) = logic.contacts(Instant::now()) {
            assert_eq!(felt.contacts.len(), 8);
        }
    });
}

/// An intact frame.
fn frame(input: &mut Input<'_>) -> Vec<u8> {
    let (touch, cliff) = (input.byte() & 15, input.byte() & 1);
    let (sources, mode) = (input.byte() & 3, input.byte() & 3);
    let [left, right] = [input.number(), input.number()].map(u16::to_be_bytes);
    let mut frame = vec![19, 23, 7, touch, 9, cliff, 10, 0, 11, 0, 12, 0, 22, 61, 184];
    frame.extend([
        34, sources, 35, mode, 43, left[0], left[1], 44, right[0], right[1],
    ]);
    let sum = frame.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    frame.push(sum.wrapping_neg());
    frame
}

/// Only harmless commands, no speed beyond the limit, and none ahead if something is in the way.
fn check(bytes: &[u8], is_hindered: bool) {
    let mut rest = bytes;
    while let [opcode, data @ ..] = rest {
        let length = match opcode {
            // Passive and safe mode.
            128 | 131 => 0,
            145 => 4,
            148 => 1 + usize::from(data[0]),
            150 => 1,
            _ => panic!("{bytes:?}"),
        };
        let (data, behind) = data.split_at(length);
        rest = behind;
        if *opcode == 145 {
            let speed = |at: usize| i32::from(i16::from_be_bytes([data[at], data[at + 1]]));
            let (right, left) = (speed(0), speed(2));
            assert!(right.abs() <= 500 && left.abs() <= 500, "{bytes:?}");
            assert!(!is_hindered || left + right <= 0, "{bytes:?}");
        }
    }
}

/// The simulated robot, which takes whatever is said to it.
fn device(data: &[u8]) {
    let mut input = Input(data);
    let mut now = Duration::ZERO;
    let mut robot = sim::Create2::default();
    while !input.is_empty() {
        match input.byte() % 4 {
            0 => {
                now += Duration::from_millis(u64::from(input.number()) % 1_000);
                robot.advance(now);
            }
            1 => {
                let readings = std::array::from_fn(|_| Reading {
                    pulses: i64::from(input.number()) << 20,
                    ..Reading::default()
                });
                robot.handle_readings(now, readings);
            }
            2 => robot.handle_around(sim::Around {
                bumps: [input.flag(), input.flag()],
                is_lifted: input.flag(),
                has_cliff: input.flag(),
                has_charger: input.flag(),
                is_docked: input.flag(),
            }),
            _ => robot.handle_bytes(now, input.piece()),
        }
        while robot.poll_output().is_some() {}
        assert!(robot.next_timeout().is_none_or(|due| due > now));
        let turns = robot.drives() != [Drive::RELEASED; 4];
        let obeys = matches!(robot.mode(), sim::Mode::Safe | sim::Mode::Full);
        assert!(obeys || !turns);
        for drive in robot.drives() {
            match drive {
                Drive::Duty(duty) => assert!((-1.0..=1.0).contains(&duty), "{duty}"),
                Drive::Speed { qpps, .. } => assert!(qpps.abs() < 2_500.0, "{qpps}"),
            }
        }
    }
}
