//! Fuzz targets: the chips of the driver, and the simulated sensor. IO: they read the clock once.

use amber_sim::mpu::{Model as Product, Mpu};

use super::Settings;
use crate::fuzz::Target;
use crate::motion_sensor::fuzz;

/// All of them.
pub const TARGETS: &[Target] = &[("mpu_driver", driver), ("mpu_device", device)];

const PRODUCTS: [Product; 5] = [
    Product::Mpu9250,
    Product::Mpu6050,
    Product::Mpu6500,
    Product::Mpu9255,
    Product::Copy,
];

fn product(choice: u8) -> Mpu {
    Mpu::of_seed(PRODUCTS[usize::from(choice) % PRODUCTS.len()], 1)
}

fn driver(data: &[u8]) {
    fuzz::driver(&Settings::default(), product, data);
}

fn device(data: &[u8]) {
    fuzz::device(product, [0x68, 0x0C], data);
}
