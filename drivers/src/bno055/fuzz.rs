//! Fuzz targets: the chip of the driver, and the simulated sensor. IO: they read the clock once.

use amber_sim::bno055::{Bno055, Model as Product};

use super::Settings;
use crate::fuzz::Target;
use crate::motion_sensor::fuzz;

/// All of them.
pub const TARGETS: &[Target] = &[("bno055_driver", driver), ("bno055_device", device)];

fn product(_choice: u8) -> Bno055 {
    Bno055::of_seed(Product::Bno055, 1)
}

fn driver(data: &[u8]) {
    fuzz::driver(&Settings::default(), product, data);
}

fn device(data: &[u8]) {
    fuzz::device(product, [0x28, 0x28], data);
}
