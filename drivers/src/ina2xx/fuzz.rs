//! Fuzz targets: the driver without its bus, and the simulated sensor. IO: they read the clock once.

#![allow(clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_sim::i2c::{Reply, Transfer};
use amber_sim::ina2xx::{Ina, Model};

use super::{Monitor, PACE, Settings};
use crate::fuzz::{Input, Target};
use crate::gauge::cells::{Cells, Chemistry, Pack};
use crate::gauge::logic::BatteryLogic;
use crate::i2c::registers::Problem;
use crate::i2c::{Bus, BusError};

/// All of them.
pub const TARGETS: &[Target] = &[("ina2xx_driver", driver), ("ina2xx_device", device)];

const MODELS: [Model; 3] = [Model::Ina219, Model::Ina226, Model::Ina260];

fn sensor(input: &mut Input<'_>) -> Ina {
    let mut sensor = Ina::new(MODELS[usize::from(input.byte()) % MODELS.len()]);
    sensor.set_fixed(12.1, f64::from(input.byte()) - 128.0);
    sensor
}

/// The driver, on a bus that says anything.
fn driver(data: &[u8]) {
    let mut input = Input(data);
    let start = Instant::now();
    let mut now = start;
    let mut sensor = sensor(&mut input);
    let mut monitor = Monitor::new(Settings {
        address: None,
        part: None,
        shunt_mohm: 0.01,
        inverts_current: input.flag(),
    });
    let pack = Pack {
        cells: Some(Cells {
            number: 3,
            chemistry: Chemistry::LiPo,
        }),
        low_mv: Some(10_500),
        resistance_mohm: 80,
    };
    let mut logic = BatteryLogic::new(pack, PACE, now);
    while !input.is_empty() {
        now += Duration::from_millis(u64::from(input.byte()) * 4);
        let mut bus = AnyBus {
            input: &mut input,
            sensor: &mut sensor,
            now: now - start,
        };
        let measured = monitor.measure(now, &mut bus);
        if let Ok(measured) = measured {
            assert!(measured.mv <= 40_960);
            assert!(measured.current_ma.is_none_or(|ma| ma.abs() <= 32_000_000));
        }
        let state = measured.map(super::Measured::state);
        logic.handle(
            now,
            state.map_err(|(Problem::Chip(why) | Problem::Bus(why))| why),
        );
        if let Ok(state) = logic.state(now) {
            assert!(state.charge.is_none_or(|it| (0.0..=100.0).contains(&it)));
        }
        let notes = std::iter::from_fn(|| monitor.poll_note());
        assert!(notes.count() < 4);
    }
}

/// A sensor behind wires that spoil what goes over them.
struct AnyBus<'a, 'b> {
    input: &'a mut Input<'b>,
    sensor: &'a mut Ina,
    now: Duration,
}

impl Bus for AnyBus<'_, '_> {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        let transfer = Transfer {
            address,
            written: written.to_vec(),
            read: u8::try_from(read.len()).expect("a register"),
        };
        let reply = self.sensor.transfer(self.now, &transfer);
        if matches!(reply, Reply::Nak) {
            return Err(BusError::Nak);
        }
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

/// The simulated sensor: every transfer is answered with as many bytes as were wanted, or by nobody.
fn device(data: &[u8]) {
    let mut input = Input(data);
    let mut sensor = sensor(&mut input);
    let mut now = Duration::ZERO;
    while !input.is_empty() {
        now += Duration::from_millis(u64::from(input.byte() % 64));
        let transfer = Transfer {
            address: if input.flag() { 0x40 } else { input.byte() },
            written: input.piece().to_vec(),
            read: input.byte(),
        };
        if let Reply::Ack(bytes) = sensor.transfer(now, &transfer) {
            assert_eq!(bytes.len(), usize::from(transfer.read));
        }
    }
}
