//! Fuzz targets: the driver's half and the simulated VESCs. IO: they read the clock once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_driver::Origin;
use amber_proto::ClientId;
use amber_sim::vesc::{CAN_ID, Firmware, Vescs, framed};
use amber_sim::wheels::{Drive, Reading};

use super::Options;
use super::logic::{VescAction, VescLogic};
use super::protocol::Frames;
use super::units::Unit;
use crate::fuzz::{Input, Target};
use crate::wheels::Model as _;
use crate::wheels::fuzz::{check_output, speeds};

/// All of them.
pub const TARGETS: &[Target] = &[("vesc_driver", driver), ("vesc_device", device)];

/// 1200 mm/s of wheels with 120 mm, and motors with 7 pole pairs and a gear of 10.
const FASTEST_ERPM: i32 = 13_369;

/// The driver's logic, with VESCs that say anything at any time.
fn driver(data: &[u8]) {
    let mut input = Input(data);
    let mut now = Instant::now();
    let has_bus = input.flag();
    let options = Options {
        can_id: has_bus.then_some(CAN_ID),
        second_port: (!has_bus).then(|| "/dev/ttyACM1".into()),
        pole_pairs: Some(7),
        gear_ratio: Some(10.0),
        wheel_diameter_mm: Some(120.0),
        reverse_right: Some(input.flag()),
        ..Options::default()
    };
    let (settings, ..) = options.settings().expect("they are good");
    let mut logic = VescLogic::new(settings, now);
    while !input.is_empty() {
        let port = match has_bus || input.flag() {
            true => Unit::First,
            false => Unit::Second,
        };
        match input.byte() % 10 {
            0 => now += Duration::from_millis(input.number().into()),
            1 => {
                let speeds = speeds(&mut input);
                logic.drive(now, &[ClientId(1)], speeds);
            }
            2 => logic.ask(now, Origin::default()),
            3 => logic.client_died(ClientId(input.byte().into())),
            4 if input.byte() == 0 => logic.shut_down(),
            5 => logic.failed(now, "unplugged"),
            6 => logic.handle_bytes(now, port, input.piece()),
            7 => logic.set_listened(now, input.flag()),
            _ => logic.handle_bytes(now, port, &framed(&answer(&mut input))),
        }
        now += Duration::from_millis(1);
        logic.handle_timeout(now);
        let mut actions = 0;
        while let Some(action) = logic.poll_action(now) {
            actions += 1;
            assert!(actions < 100, "it never comes to rest: {action:?}");
            match action {
                VescAction::Open => match input.flag() {
                    true => logic.opened(now),
                    false => logic.failed(now, "not there"),
                },
                VescAction::Write(port, bytes) => {
                    assert!(port == Unit::First || !has_bus);
                    check(&bytes, has_bus);
                }
                VescAction::Close => {}
                VescAction::End => return,
            }
        }
        let _ = (logic.trouble(), logic.battery(now));
        logic.battery_to_publish(now);
        while let Some(output) = logic.poll_output() {
            check_output(output);
        }
    }
}

/// A payload like that of a version or of values, with random bytes at its end or in the middle.
fn answer(input: &mut Input<'_>) -> Vec<u8> {
    if input.flag() {
        return [&[0, 6, 2, b'a', 0], input.piece()].concat();
    }
    let mut payload = vec![4; 74];
    let piece = input.piece();
    let start = usize::from(input.byte() % 74);
    for (byte, new) in payload.iter_mut().skip(start).zip(piece) {
        *byte = *new;
    }
    payload[53] = input.byte() % 8 / 7;
    payload[58] = CAN_ID - u8::from(input.flag());
    payload
}

/// Whole frames with commands that store nothing, and no speed beyond the limit.
fn check(bytes: &[u8], has_bus: bool) {
    let mut frames = Frames::default();
    frames.push(bytes);
    let mut count = 0;
    while let Some(payload) = frames.next_payload() {
        count += payload.len() + 5;
        let payload = match payload.strip_prefix(&[34, CAN_ID]) {
            Some(payload) if has_bus => payload,
            _ => &payload,
        };
        match payload {
            [0 | 4] => {}
            [7, brake @ ..] => assert_eq!(brake, 5_000_i32.to_be_bytes()),
            [8, erpm @ ..] => {
                let erpm = i32::from_be_bytes(erpm.try_into().expect("four bytes"));
                assert!((900..=FASTEST_ERPM).contains(&erpm.abs()), "{erpm}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(count, bytes.len());
}

/// The simulated VESCs, which take whatever is said to them.
fn device(data: &[u8]) {
    let mut input = Input(data);
    let mut now = Duration::ZERO;
    let firmware = match input.byte() % 4 {
        0 => Firmware::V6_02,
        1 => Firmware::V5_02,
        2 => Firmware::V3_40,
        _ => Firmware::WithoutTimeout,
    };
    let mut vescs = Vescs::new(firmware);
    while !input.is_empty() {
        match input.byte() % 5 {
            0 => {
                now += Duration::from_millis(input.number().into());
                vescs.advance(now);
            }
            1 => {
                let readings = std::array::from_fn(|_| Reading {
                    pulses: i64::from(input.number()) << 20,
                    speed_qpps: i32::from(input.number()) << 15,
                    ..Reading::default()
                });
                vescs.handle_readings(now, readings);
            }
            2 if input.byte() == 0 => vescs.handle_hang_up(),
            3 => vescs.handle_bytes(now, &framed(input.piece())),
            _ => vescs.handle_bytes(now, input.piece()),
        }
        while let Some(answer) = vescs.poll_output() {
            let mut frames = Frames::default();
            frames.push(&answer);
            let payload = frames.next_payload().expect("a whole frame");
            assert!(payload.len() <= 78 && matches!(payload[0], 0 | 4 | 50));
        }
        assert!(vescs.next_timeout().is_none_or(|due| due > now));
        for drive in vescs.drives() {
            match drive {
                Drive::Duty(duty) => assert!((-1.0..=1.0).contains(&duty), "{duty}"),
                Drive::Speed { qpps, .. } => assert!(qpps.is_finite()),
            }
        }
    }
}
