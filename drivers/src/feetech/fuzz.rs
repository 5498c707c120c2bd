//! Fuzz targets: packets, the driver's half, and the simulated servos. IO: they read the clock once.

use amber_sim::feetech::{self as sim, Family};

use super::{Robot, protocol};
use crate::bus_servos::fuzz;
use crate::fuzz::Target;

/// All of them.
pub const TARGETS: &[Target] = &[
    ("feetech_packets", |data| {
        fuzz::packets(data, protocol::find)
    }),
    ("feetech_driver", driver),
    ("feetech_device", |data| {
        let twin = sim::Feetech::new([(1, Family::Sts), (2, Family::Scs)]);
        fuzz::device(data, twin, sim::packet, |servo| &mut servo.motor);
    }),
];

fn driver(data: &[u8]) {
    let servos = [(1, Family::Sts), (2, Family::Scs), (7, Family::Sts)];
    let twin = fuzz::driver::<Robot, _>(data, sim::Feetech::new(servos));
    let written: u32 = twin.servos().iter().map(|servo| servo.memory_writes).sum();
    assert_eq!(written, 0, "the driver writes no memory");
}
