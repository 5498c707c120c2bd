//! Fuzz targets: packets, the driver's half, and the simulated servos. IO: they read the clock once.

use amber_sim::dynamixel::{self as sim, Type};

use super::{Robot, protocol};
use crate::bus_servos::fuzz;
use crate::fuzz::Target;

/// All of them.
pub const TARGETS: &[Target] = &[
    ("dynamixel_packets", |data| {
        fuzz::packets(data, protocol::find)
    }),
    ("dynamixel_driver", |data| {
        let servos = [(1, Type::Xl430), (2, Type::Xl330), (7, Type::Xl330)];
        drop(fuzz::driver::<Robot, _>(data, sim::Dynamixel::new(servos)));
    }),
    ("dynamixel_device", |data| {
        let twin = sim::Dynamixel::new([(1, Type::Xl430), (2, Type::Xl330)]);
        fuzz::device(data, twin, sim::packet, |servo| &mut servo.motor);
    }),
];
