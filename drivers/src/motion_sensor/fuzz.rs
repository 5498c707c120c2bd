//! What the fuzz targets of motion sensors share. IO: they read the clock once.

#![allow(clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_sim::i2c::{Reply, Transfer};
use amber_sim::motion_sensor::{Board as Twin, Chips};
use amber_sim::ninedof::Motion;

use super::board::Board;
use super::calibration::Calibration;
use super::model::Model;
use super::sensors::Sensors;
use crate::fuzz::Input;
use crate::i2c::{Bus, BusError};

/// The chips of a driver, on a bus that says anything. The first byte chooses the product.
pub(crate) fn driver<M: Model, C: Chips>(model: &M, product: fn(u8) -> Twin<C>, data: &[u8]) {
    let mut input = Input(data);
    let start = Instant::now();
    let mut now = start;
    let mut board = Board::of(model.chips(), now);
    let mut chips = product(input.byte());
    while !input.is_empty() {
        now += Duration::from_millis(input.byte().into());
        let wanted = Sensors {
            accel: input.flag(),
            gyro: input.flag(),
            magnet: input.flag(),
        };
        let mut bus = AnyBus {
            input: &mut input,
            chips: &mut chips,
            now: now - start,
        };
        if let Ok(reading) = board.read(now, &mut bus, wanted) {
            let measured = model.measured(reading.raw, &Calibration::default());
            let values = [
                measured.accel_mg,
                measured.gyro_deg_s,
                measured.magnet_mgauss,
            ];
            let mut values = values.into_iter().flatten().flatten();
            assert!(values.all(f64::is_finite));
        }
        let notes = std::iter::from_fn(|| board.poll_note());
        assert!(notes.count() < 8);
    }
}

/// A sensor behind wires that spoil what goes over them.
struct AnyBus<'a, 'b, C: Chips> {
    input: &'a mut Input<'b>,
    chips: &'a mut Twin<C>,
    now: Duration,
}

impl<C: Chips> Bus for AnyBus<'_, '_, C> {
    fn transfer(&mut self, address: u8, written: &[u8], read: &mut [u8]) -> Result<(), BusError> {
        let transfer = Transfer {
            address,
            written: written.to_vec(),
            read: u8::try_from(read.len()).expect("a few registers"),
        };
        let reply = self.chips.transfer(self.now, &transfer, &still);
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

fn still(_: Duration) -> Motion {
    Motion {
        specific_force_g: [0.0, 0.0, 1.0],
        turn_deg_s: [0.0; 3],
        field_gauss: [0.0, 0.2, -0.45],
        speed_m_s: 0.0,
    }
}

/// A simulated sensor, mostly at its usual addresses: every transfer is answered with as many bytes as
/// were wanted, or by nobody. The first byte chooses the product.
pub(crate) fn device<C: Chips>(product: fn(u8) -> Twin<C>, usual: [u8; 2], data: &[u8]) {
    let mut input = Input(data);
    let mut chips = product(input.byte());
    let mut now = Duration::ZERO;
    while !input.is_empty() {
        now += Duration::from_millis(u64::from(input.byte() % 64));
        let address = match input.byte() % 4 {
            0 => input.byte(),
            1 => usual[1],
            _ => usual[0],
        };
        let transfer = Transfer {
            address,
            written: input.piece().to_vec(),
            read: input.byte(),
        };
        if let Reply::Ack(bytes) = chips.transfer(now, &transfer, &still) {
            assert_eq!(bytes.len(), usize::from(transfer.read));
        }
    }
}
