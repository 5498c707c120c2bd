//! Fuzz targets: the chips of the driver, and the simulated sensor. IO: they read the clock once.

#![allow(clippy::expect_used)]

use std::time::{Duration, Instant};

use amber_sim::i2c::{Reply, Transfer};
use amber_sim::mpu::{Model as Product, Mpu};
use amber_sim::ninedof::Motion;

use super::Settings;
use crate::fuzz::{Input, Target};
use crate::motion_sensor::Model;
use crate::motion_sensor::board::Board;
use crate::motion_sensor::bus::{Bus, BusError};
use crate::motion_sensor::sensors::Sensors;

/// All of them.
pub const TARGETS: &[Target] = &[("mpu_driver", driver), ("mpu_device", device)];

const PRODUCTS: [Product; 5] = [
    Product::Mpu9250,
    Product::Mpu6050,
    Product::Mpu6500,
    Product::Mpu9255,
    Product::Copy,
];

fn product(input: &mut Input<'_>) -> Mpu {
    Mpu::of_seed(PRODUCTS[usize::from(input.byte()) % PRODUCTS.len()], 1)
}

/// The chips of the driver, on a bus that says anything.
fn driver(data: &[u8]) {
    let mut input = Input(data);
    let start = Instant::now();
    let mut now = start;
    let mut board = Board::of(Settings::default().chips(), now);
    let mut chips = product(&mut input);
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
            let values = [
                reading.raw.accel_mg,
                reading.raw.gyro_deg_s,
                reading.raw.magnet_mgauss,
            ];
            let mut values = values.into_iter().flatten().flatten();
            assert!(values.all(f64::is_finite));
        }
        let notes = std::iter::from_fn(|| board.poll_note());
        assert!(notes.count() < 8);
    }
}

/// A sensor behind wires that spoil what goes over them.
struct AnyBus<'a, 'b> {
    input: &'a mut Input<'b>,
    chips: &'a mut Mpu,
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

/// The simulated sensor: every transfer is answered with as many bytes as were wanted, or by nobody.
fn device(data: &[u8]) {
    let mut input = Input(data);
    let mut chips = product(&mut input);
    let mut now = Duration::ZERO;
    while !input.is_empty() {
        now += Duration::from_millis(u64::from(input.byte() % 64));
        let address = match input.byte() % 4 {
            0 => input.byte(),
            1 => 0x0C,
            _ => 0x68,
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
