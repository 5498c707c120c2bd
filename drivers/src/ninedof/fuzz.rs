//! Fuzz targets: the driver's half and the simulated chips. IO: they read the clock once.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_driver::Origin;
use amber_proto::ninedof::{DataRequest, SubscribeAction};
use amber_proto::{ClientId, SynNum};
use amber_sim::i2c::{Reply, Transfer};
use amber_sim::ninedof::{Errors, Motion, NineDof};

use super::board::Board;
use super::units::Numbers;
use super::{ImuLogic, Settings};
use crate::fuzz::{Input, Target};
use crate::i2c::{Bus, BusError};
use crate::motion_sensor::calibration::Calibration;
use crate::motion_sensor::logic::{ImuAction, Output};

/// All of them.
pub const TARGETS: &[Target] = &[("ninedof_driver", driver), ("ninedof_device", device)];

/// Readings that may be kept for those who wait, and lines for the log.
const MOST_OUTPUTS: usize = 2000;

/// The driver: its logic and its chips, on a bus that says anything, and between
/// clients that want anything.
fn driver(data: &[u8]) {
    let mut input = Input(data);
    let start = Instant::now();
    let mut now = start;
    let settings = Settings {
        numbers: match input.flag() {
            true => Numbers::Right,
            false => Numbers::Compatible,
        },
        measures_bias: input.flag(),
    };
    let mut board = Board::new(settings.gain(), now);
    let mut logic = ImuLogic::new(settings, Calibration::default(), now);
    let mut chips = NineDof::new(Errors::of_seed(1), Duration::ZERO);
    while !input.is_empty() {
        let client = ClientId(i32::from(input.byte() % 4) + 1);
        let origin = Origin {
            clients: vec![client],
            syn: Some(SynNum(1)),
            ..Origin::default()
        };
        match input.byte() % 8 {
            0 => now += Duration::from_millis(input.number().into()),
            1 => logic.ask(now, origin, request(&mut input)),
            2 => {
                let wanted = request(&mut input);
                let action = SubscribeAction {
                    freq: Some(input.number().into()),
                    accel: wanted.accel,
                    gyro: wanted.gyro,
                    magnet: wanted.magnet,
                    extended: wanted.extended,
                };
                logic.subscribe(now, &origin, action);
            }
            3 => logic.publish(),
            4 => logic.client_died(client),
            _ => {}
        }
        // A few steps: there may always be one more.
        for _ in 0..8 {
            let Some(step) = logic.poll_action(now) else {
                break;
            };
            match step {
                ImuAction::Open if input.byte() % 8 == 0 => logic.failed(now, "not there"),
                ImuAction::Open => {
                    board.reopened(now);
                    logic.opened(now);
                }
                ImuAction::Close => {}
                ImuAction::Read(sensors) => {
                    let mut bus = AnyBus {
                        input: &mut input,
                        chips: &mut chips,
                        now: now - start,
                    };
                    let reading = board.read(now, &mut bus, sensors);
                    now += Duration::from_millis(1);
                    match reading {
                        Ok(reading) => logic.read(now, reading, board.trouble()),
                        Err(why) => logic.failed(now, &why),
                    }
                }
                ImuAction::Store(_) if input.flag() => logic.stored(Some(Err("full".into()))),
                ImuAction::Store(_) => logic.stored(Some(Ok("there".into()))),
            }
            while board.poll_note().is_some() {}
            let outputs: Vec<Output> = std::iter::from_fn(|| logic.poll_output()).collect();
            assert!(outputs.len() < MOST_OUTPUTS, "{} outputs", outputs.len());
        }
        // Whoever sleeps until then finds something to do, or the next time.
        let _ = logic.wake_at();
    }
}

fn request(input: &mut Input<'_>) -> DataRequest {
    let mut flag = || Some(input.flag());
    DataRequest {
        accel: flag(),
        gyro: flag(),
        magnet: flag(),
        extended: flag(),
    }
}

/// Real chips behind wires that spoil what goes over them.
struct AnyBus<'a, 'b> {
    input: &'a mut Input<'b>,
    chips: &'a mut NineDof,
    now: Duration,
}

impl Bus for AnyBus<'_, '_> {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        let transfer = Transfer {
            address,
            written: written.to_vec(),
            read: u8::try_from(read.len()).expect("a few registers"),
        };
        let reply = self.chips.transfer(self.now, &transfer, &still);
        match (self.input.byte() % 16, reply) {
            (1, _) => return Err(BusError::Nak),
            (2, _) => return Err(BusError::Broken("stuck".into())),
            (3, _) => read.fill_with(|| self.input.byte()),
            (_, Reply::Ack(bytes)) => read.copy_from_slice(&bytes),
            (_, Reply::Nak) => return Err(BusError::Nak),
        }
        Ok(())
    }
}

fn still(_: Duration) -> Motion {
    Motion {
        specific_force_g: [0.0, 0.0, 1.0],
        turn_deg_s: [0.0; 3],
        field_gauss: [0.0, 0.2, -0.45],
        speed_m_s: 0.0,
    }
}

/// The simulated chips, on a bus where anything may go: every transfer is
/// answered with as many bytes as were wanted, or by nobody.
fn device(data: &[u8]) {
    let mut input = Input(data);
    let mut chips = NineDof::new(Errors::of_seed(1), Duration::ZERO);
    let mut now = Duration::ZERO;
    while !input.is_empty() {
        now += Duration::from_millis(u64::from(input.byte() % 64));
        // Mostly for one of the chips.
        if let Some(address) = [0x19, 0x1E, 0x6B].get(usize::from(input.byte() % 4)) {
            let transfer = Transfer {
                address: *address,
                written: input.piece().to_vec(),
                read: input.byte(),
            };
            let reply = chips.transfer(now, &transfer, &still);
            let wanted = usize::from(transfer.read);
            assert!(matches!(reply, Reply::Ack(bytes) if bytes.len() == wanted));
        } else if let Some((transfer, length)) = Transfer::parse(input.0) {
            chips.transfer(now, &transfer, &still);
            input.0 = &input.0[length..];
        } else {
            break;
        }
    }
}
