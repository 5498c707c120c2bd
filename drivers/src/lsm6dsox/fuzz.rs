//! Fuzz targets: the chips of the driver, and the simulated sensor. IO: they read the clock once.

use amber_sim::lsm6dsox::{Lsm6dsox, Model as Product};

use super::Settings;
use crate::fuzz::Target;
use crate::motion_sensor::fuzz;

/// All of them.
pub const TARGETS: &[Target] = &[("lsm6dsox_driver", driver), ("lsm6dsox_device", device)];

const PRODUCTS: [Product; 4] = [
    Product::Lsm6dsox,
    Product::Lsm6ds33,
    Product::Lsm6dsr,
    Product::Alone,
];

fn product(choice: u8) -> Lsm6dsox {
    Lsm6dsox::of_seed(PRODUCTS[usize::from(choice) % PRODUCTS.len()], 1)
}

fn driver(data: &[u8]) {
    fuzz::driver(&Settings::default(), product, data);
}

fn device(data: &[u8]) {
    fuzz::device(product, [0x6A, 0x1C], data);
}
