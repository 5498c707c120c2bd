//! Fuzz targets: the driver's half and the simulated device. IO: they read the clock once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_driver::Origin;
use amber_proto::{ClientId, SynNum};
use amber_sim::roboclaw::{Config, Firmware, Roboclaws, Spoil, crc16, sum7};
use amber_sim::wheels::{Drive, Reading};

use super::logic::{ControllerAction, ExchangeError, WheelLogic};
use super::protocol::{Check, Command, Dialect, Motor, Pid, Reply, Shape, StatusWidth};
use super::{Options, Preset};
use crate::fuzz::{Input, Target};
use crate::wheels::Model as _;
use crate::wheels::fuzz::speeds;

/// All of them.
pub const TARGETS: &[Target] = &[
    ("roboclaw_reply", reply),
    ("roboclaw_driver", driver),
    ("roboclaw_device", device),
];

const CHECKS: [Check; 3] = [Check::Legacy, Check::LegacyAck, Check::Crc16];
const FIRMWARES: [Firmware; 6] = [
    Firmware::Legacy,
    Firmware::LegacyAck,
    Firmware::V4_1_11,
    Firmware::V4_1_34,
    Firmware::V4_2_4,
    Firmware::Mcp,
];

fn commands(number: i32) -> [Command; 13] {
    let pid = Pid {
        p: number as u32,
        i: 1,
        d: 2,
        max_qpps: u32::MAX,
    };
    [
        Command::Version,
        Command::Status,
        Command::Speed(Motor::M1),
        Command::Speed(Motor::M2),
        Command::Pid(Motor::M1),
        Command::MainBattery,
        Command::LogicBattery,
        Command::Temperature,
        Command::Drive { m1: number, m2: -1 },
        Command::Release,
        Command::SetPid(Motor::M1, pid),
        Command::SetQuadrature(Motor::M2),
        Command::SetTimeout(number as u8),
    ]
}

/// Replies, as they are and with the right check.
fn reply(data: &[u8]) {
    let mut input = Input(data);
    let (address, number) = (input.byte(), i32::from(input.number()));
    for check in CHECKS {
        for command in commands(number) {
            for status in [StatusWidth::U8, StatusWidth::U16, StatusWidth::U32] {
                let shape = command.shape(Some(Dialect { check, status }));
                assert!(!matches!(shape, Shape::Bytes(count) if count > 64));
            }
            let _ = command.decode(address, check, input.0);
            let mut right = [&[address, command.number()], input.0].concat();
            match check {
                Check::Crc16 => right.extend(crc16(&right).to_be_bytes()),
                Check::Legacy | Check::LegacyAck => right.push(sum7(&right)),
            }
            if let Ok(Reply::Status(status)) = command.decode(address, check, &right[2..]) {
                assert_eq!(status.is_clean(), status.faults().count() == 0);
            }
        }
    }
}

/// The driver's logic, with controllers that say anything.
fn driver(data: &[u8]) {
    let mut input = Input(data);
    let mut now = Instant::now();
    // One byte decides as before, so that the corpus keeps its meaning.
    let kind = input.byte();
    let options = Options {
        address: (kind & 2 != 0).then_some(0x80),
        preset: (kind & 4 == 0).then_some(Preset::Capo),
        max_qpps: (kind & 8 != 0).then_some(13_800),
        ..Options::default()
    };
    let setup = options.setup().expect("these are good").0;
    let mut settings = setup.settings;
    settings.lines.reset = kind & 1 == 0;
    settings.check = CHECKS.get(usize::from(input.byte() % 4)).copied();
    let mut logic = WheelLogic::new(settings, now);
    while !input.is_empty() {
        match input.byte() % 8 {
            0 => now += Duration::from_millis(input.number().into()),
            1 => {
                let speeds = speeds(&mut input);
                logic.drive(now, &[ClientId(1)], speeds);
            }
            2 => logic.ask(
                now,
                Origin {
                    clients: vec![ClientId(2)],
                    syn: Some(SynNum(1)),
                    ..Origin::default()
                },
            ),
            3 => logic.client_died(ClientId(input.byte().into())),
            4 if input.byte() == 0 => logic.shut_down(),
            _ => {}
        }
        // A few steps: there is always one more thing to ask.
        for _ in 0..16 {
            let Some(step) = logic.poll_action(now) else {
                break;
            };
            match step {
                ControllerAction::Open => match input.byte() % 4 {
                    0 => logic.open_failed(now, "not there"),
                    _ => logic.opened(),
                },
                ControllerAction::Exchange { packet, shape } => {
                    assert!(packet.len() >= 2 && packet.len() < 64);
                    let result = exchange(&mut input, &packet, shape);
                    now += Duration::from_millis(1);
                    logic.exchanged(now, result);
                }
                ControllerAction::Wait(time) => now += time,
                ControllerAction::Close | ControllerAction::Set(..) => {}
                ControllerAction::End => return,
            }
            while logic.poll_output().is_some() {}
        }
    }
}

fn exchange(input: &mut Input<'_>, packet: &[u8], shape: Shape) -> Result<Vec<u8>, ExchangeError> {
    let kind = input.byte() % 8;
    match (kind, shape) {
        (0, _) => Err(ExchangeError::Silent),
        (1, _) => Err(ExchangeError::Half),
        (2, _) => Err(ExchangeError::Port("unplugged".into())),
        (3, _) => Ok(input.piece().to_vec()),
        (_, Shape::Nothing) => Ok(Vec::new()),
        (_, Shape::Bytes(1)) => Ok(vec![0xFF]),
        // Data with the right check.
        (kind, _) => {
            let mut reply = match shape {
                Shape::Bytes(count) => {
                    let data = count - if kind == 4 { 1 } else { 2 };
                    (0..data).map(|_| input.byte()).collect()
                }
                _ => input.piece().to_vec(),
            };
            let all = [&packet[..2], &reply].concat();
            match kind {
                4 => reply.push(sum7(&all)),
                _ => reply.extend(crc16(&all).to_be_bytes()),
            }
            Ok(reply)
        }
    }
}

/// Simulated controllers, which take whatever is said to them.
fn device(data: &[u8]) {
    let mut input = Input(data);
    let mut now = Duration::ZERO;
    let mut claws = Roboclaws::new(Config {
        firmware: FIRMWARES[usize::from(input.byte()) % FIRMWARES.len()],
        latency: Duration::from_millis(u64::from(input.byte() % 8)),
        ..Config::default()
    });
    while !input.is_empty() {
        match input.byte() % 8 {
            0 => now += Duration::from_millis(input.number().into()),
            1 => claws.spoil_next(match input.byte() % 3 {
                0 => Spoil::Drop,
                1 => Spoil::Corrupt,
                _ => Spoil::Delay(Duration::from_millis(input.byte().into())),
            }),
            2 if input.byte() == 0 => claws.handle_reset(now),
            3 => claws.handle_readings(now, readings(&mut input)),
            // A packet with a right check.
            4 | 5 => {
                let (address, number) = (0x80 + input.byte() % 2, input.byte());
                let mut packet = vec![address, number];
                packet.extend_from_slice(input.piece());
                match input.byte() % 2 {
                    0 => packet.push(sum7(&packet) | input.byte() & 0x80),
                    _ => packet.extend(crc16(&packet).to_be_bytes()),
                }
                claws.handle_bytes(now, &packet);
            }
            _ => claws.handle_bytes(now, input.piece()),
        }
        let mut replies = 0;
        while let Some(reply) = claws.poll_output(now) {
            assert!(reply.len() <= 64, "{} bytes", reply.len());
            replies += 1;
        }
        // At most one for each packet, of two bytes at least, that waited for it.
        assert!(replies <= data.len(), "{replies} replies");
        for drive in claws.drives() {
            match drive {
                Drive::Duty(duty) => assert!((-1.0..=1.0).contains(&duty), "{duty}"),
                Drive::Speed {
                    qpps,
                    acceleration_qpps2,
                } => {
                    assert!(qpps.is_finite());
                    assert!(acceleration_qpps2.is_none_or(f64::is_finite));
                }
            }
        }
        let _ = claws.next_timeout();
    }
}

fn readings(input: &mut Input<'_>) -> [Reading; 4] {
    std::array::from_fn(|_| Reading {
        speed_qpps: i32::from(input.number().cast_signed()),
        pulses: i64::from(input.number()) << 20,
        current_a: f64::from(input.byte()),
        duty: f64::from(input.byte().cast_signed()) / 128.0,
    })
}
