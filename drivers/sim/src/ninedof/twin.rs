//! The board in the robot. PURE.

use std::time::Duration;

use super::{Errors, Motion, NineDof};
use crate::device::{Connection, Device, Kind};
use crate::i2c::{Reply, Transfer};
use crate::twin::{Setup, Twin};
use crate::world::World;

/// The board with accelerometer, gyroscope and magnetometer, on its own bus.
pub const DEVICE: Device = Device {
    name: "ninedof",
    connection: Connection::I2c,
    is_extra: false,
    driver: "ninedof",
    options: &[],
    files: &[],
    model_option: None,
    demonstrations: &[
        ("call ninedof data", "motion sensors"),
        (
            "watch ninedof --period 100ms --sensors accel,gyro",
            "the same, ten times a second; Ctrl-C ends",
        ),
    ],
};

/// The board has no variants.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Options {}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let board = NineDof::new(Errors::of_seed(setup.seed), Duration::ZERO);
        vec![(DEVICE, Box::new(board))]
    }
}

impl Twin for NineDof {
    fn handle_transfer(&mut self, now: Duration, transfer: &Transfer, world: &World) -> Reply {
        self.transfer(now, transfer, &|time| Motion::of(world, time))
    }

    fn handle_plug_in(&mut self, now: Duration) {
        self.restart(now);
    }
}
