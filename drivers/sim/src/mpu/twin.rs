//! The sensor in the robot. PURE.

use std::time::Duration;

use super::{Model, Mpu};
use crate::device::{Connection, Device, Kind};
use crate::i2c::{Reply, Transfer};
use crate::ninedof::Motion;
use crate::twin::{Setup, Twin};
use crate::world::World;

/// The motion sensor, on its own bus.
pub const DEVICE: Device = Device {
    name: "mpu",
    connection: Connection::I2c,
    is_extra: true,
    driver: "mpu",
    options: &[],
    files: &[],
    demonstrations: &[],
};

/// The variants of the motion sensor.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Options {
    /// Add a motion sensor of the MPU family, on a bus of its own
    #[arg(id = "mpu", long, value_name = "MODEL", value_enum)]
    pub model: Option<Model>,
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let twin = |model| Box::new(Mpu::of_seed(model, setup.seed)) as Box<dyn Twin>;
        let twins = self.model.map(twin).into_iter();
        twins.map(|twin| (DEVICE, twin)).collect()
    }
}

impl Twin for Mpu {
    fn handle_transfer(&mut self, now: Duration, transfer: &Transfer, world: &World) -> Reply {
        self.transfer(now, transfer, &|time| Motion::of(world, time))
    }

    fn handle_plug_in(&mut self, now: Duration) {
        self.restart(now);
    }
}
