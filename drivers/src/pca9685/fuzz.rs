//! Fuzz targets: the logic of the driver on a bus that says anything, and the simulated chip. IO: they
//! read the clock once.

#![allow(clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_sim::i2c::{Reply, Transfer};
use amber_sim::pca9685::Pca9685;

use super::logic::{Action, ServoLogic};
use super::registers::Timing;
use super::{chip, registers::CHANNELS};
use crate::fuzz::{Input, Target};
use crate::i2c::{Bus, BusError};
use crate::servos::{Model, Order};

/// All of them.
pub const TARGETS: &[Target] = &[("pca9685_driver", driver), ("pca9685_device", device)];

const ADDRESS: u8 = 0x40;

/// The logic, with orders of clients and a bus that spoils what goes over it.
fn driver(data: &[u8]) {
    let mut input = Input(data);
    let start = Instant::now();
    let mut now = start;
    let timing = Timing::new(25e6, 50.0);
    let mut logic = ServoLogic::new(timing, [0, 5].into(), now);
    let mut twin = Pca9685::new(ADDRESS, Duration::ZERO);
    while !input.is_empty() {
        now += Duration::from_millis(input.byte().into());
        let servo = input.byte() % CHANNELS;
        let order = match input.byte() % 3 {
            0 => Order::Turn {
                servo,
                angle: 0,
                us: 600.0 + 7.0 * f64::from(input.byte()),
            },
            1 => Order::Speed {
                servo,
                speed: input.byte().into(),
            },
            _ => Order::Release { servo },
        };
        if logic.is_connected() {
            logic.carry_out(now, &[order]);
        }
        let mut actions = 0;
        while let Some(action) = logic.poll_action(now) {
            let bus = &mut AnyBus {
                input: &mut input,
                twin: &mut twin,
                now: now - start,
            };
            match action {
                Action::Open => logic.opened(now, Ok(())),
                Action::SetUp => {
                    let done = chip::make_ready(bus, ADDRESS, timing);
                    logic.handle_set_up(now, done);
                }
                Action::Check => {
                    let kept = chip::has_kept(bus, ADDRESS, timing);
                    logic.handle_check(now, kept);
                }
                Action::Write(writes) => {
                    let written = chip::write(bus, ADDRESS, &writes);
                    logic.handle_written(now, written);
                }
                Action::End => unreachable!("the driver does not end"),
            }
            actions += 1;
            assert!(actions < 16, "the logic is never content");
        }
        while logic.service.poll_note().is_some() {}
    }
}

/// A chip behind wires that spoil what goes over them.
struct AnyBus<'a, 'b> {
    input: &'a mut Input<'b>,
    twin: &'a mut Pca9685,
    now: Duration,
}

impl Bus for AnyBus<'_, '_> {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        let transfer = Transfer {
            address,
            written: written.to_vec(),
            read: u8::try_from(read.len()).expect("a few registers"),
        };
        let reply = self.twin.transfer(self.now, &transfer);
        match (self.input.byte() % 64, reply) {
            (1, _) => return Err(BusError::Nak),
            (2, _) => return Err(BusError::Broken("stuck".into())),
            (3, _) => read.fill_with(|| self.input.byte()),
            (_, Reply::Ack(bytes)) => read.copy_from_slice(&bytes),
            (_, Reply::Nak) => return Err(BusError::Nak),
        }
        Ok(())
    }
}

/// The simulated chip: every transfer is answered with as many bytes as were wanted, or by nobody.
fn device(data: &[u8]) {
    let mut input = Input(data);
    let mut twin = Pca9685::new(ADDRESS, Duration::ZERO);
    let mut now = Duration::ZERO;
    while !input.is_empty() {
        now += Duration::from_millis(u64::from(input.byte() % 64));
        let transfer = Transfer {
            address: match input.byte() % 4 {
                0 => input.byte(),
                _ => ADDRESS,
            },
            written: input.piece().to_vec(),
            read: input.byte(),
        };
        if let Reply::Ack(bytes) = twin.transfer(now, &transfer) {
            assert_eq!(bytes.len(), usize::from(transfer.read));
        }
    }
}
