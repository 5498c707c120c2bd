//! Fuzz targets: the chips of the driver, and the simulated sensor. IO: they read the clock once.

use amber_sim::icm20948::{Icm20948, Model as Product};

use super::Settings;
use crate::fuzz::Target;
use crate::motion_sensor::fuzz;

/// All of them.
pub const TARGETS: &[Target] = &[("icm20948_driver", driver), ("icm20948_device", device)];

fn product(_choice: u8) -> Icm20948 {
    Icm20948::of_seed(Product::Icm20948, 1)
}

fn driver(data: &[u8]) {
    fuzz::driver(&Settings::default(), product, data);
}

fn device(data: &[u8]) {
    fuzz::device(product, [0x69, 0x0C], data);
}
