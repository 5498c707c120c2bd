//! Fuzz targets: the driver's half and the simulated board. IO: they read the clock once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use amber_sim::diffdrive as sim;
use amber_sim::wheels::{Drive, Reading};

use super::logic::DiffdriveLogic;
use super::{Firmware, Options};
use crate::fuzz::{Input, Target};
use crate::wheels::fuzz::run;

/// All of them.
pub const TARGETS: &[Target] = &[("diffdrive_driver", driver), ("diffdrive_device", device)];

/// What a board may say.
const LINES: [&[u8]; 8] = [
    b"OK\r\n",
    b"Invalid Command\r\n",
    b"Unknown command.\r\n",
    b"PID Updated: 1 2 3 4\r\n",
    b"0 0\r\n",
    b"120 -120\r\n",
    b"65536 256\r\n",
    b"1",
];

/// The driver's logic, with a board that says anything at any time.
fn driver(data: &[u8]) {
    let mut input = Input(data);
    let options = Options {
        counts_per_turn: Some(1_865.0),
        wheel_diameter_mm: Some(120.0),
        firmware: [None, Some(Firmware::Bridge), Some(Firmware::Andino)]
            [usize::from(input.byte() % 3)],
        gains: input.flag().then(|| "20:12:0:50".parse().expect("good")),
        ..Options::default()
    };
    let (settings, _) = options.settings().expect("they are good");
    run::<DiffdriveLogic>(&mut input, settings, answer, |_, bytes| check(bytes));
}

fn answer(input: &mut Input<'_>) -> Vec<u8> {
    LINES[usize::from(input.byte()) % LINES.len()].to_vec()
}

/// Commands that the firmware has room for, and no speed beyond the limit.
fn check(bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).expect("a text");
    assert!(text.ends_with('\r'));
    for line in text.split_terminator('\r') {
        let mut words = line.split(' ');
        let letter = words.next();
        assert!(matches!(letter, Some("" | "e" | "m" | "u")), "{line:?}");
        for word in words {
            assert!((1..=15).contains(&word.len()), "{line:?}");
            if letter == Some("m") {
                let speed: i16 = word.parse().expect("16 bits");
                // 1200 mm/s are 5937 counts per second.
                assert!(speed.abs() <= 5_940, "{line:?}");
            }
        }
    }
}

/// The simulated board, which takes whatever is said to it.
fn device(data: &[u8]) {
    let mut input = Input(data);
    let mut now = Duration::ZERO;
    let firmware = match input.byte() % 3 {
        0 => sim::Firmware::Bridge,
        1 => sim::Firmware::BridgeWithoutStop,
        _ => sim::Firmware::Andino,
    };
    let mut board = sim::Diffdrive::new(firmware, now);
    while !input.is_empty() {
        match input.byte() % 4 {
            0 => {
                now += Duration::from_millis(input.number().into());
                board.advance(now);
            }
            1 => {
                let readings = std::array::from_fn(|_| Reading {
                    pulses: i64::from(input.number()) << 20,
                    ..Reading::default()
                });
                board.handle_readings(now, readings);
            }
            2 if input.byte() == 0 => board = board.restarted(now),
            _ => board.handle_bytes(now, input.piece()),
        }
        while let Some(answer) = board.poll_output() {
            assert!(answer.ends_with(b"\r\n") && answer.len() <= 64);
        }
        assert!(board.next_timeout().is_none_or(|due| due > now));
        for drive in board.drives() {
            match drive {
                Drive::Duty(duty) => assert!((-1.0..=1.0).contains(&duty), "{duty}"),
                Drive::Speed { qpps, .. } => assert!(qpps.is_finite()),
            }
        }
    }
}
