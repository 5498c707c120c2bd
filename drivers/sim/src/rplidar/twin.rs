//! The laser scanner in the robot, at its centre, and what it measures between the walls. PURE.

use std::time::Duration;

use super::{Model, Rplidar};
use crate::device::{Connection, Device, Kind};
use crate::twin::{Setup, Surroundings, Twin};

/// The laser scanner.
pub const DEVICE: Device = Device {
    name: "rplidar",
    connection: Connection::Serial,
    is_extra: true,
    driver: "rplidar",
    options: &[],
    files: &[],
    demonstrations: &[],
};

/// The variants of the laser scanner.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Options {
    /// Add an RPLIDAR, a laser scanner of Slamtec, which sees all around
    #[arg(id = "rplidar", long, value_name = "MODEL", value_enum)]
    pub model: Option<Model>,
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, _setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let twin = |model| Box::new(Rplidar::new(model, Duration::ZERO)) as Box<dyn Twin>;
        let twins = self.model.map(twin).into_iter();
        twins.map(|twin| (DEVICE, twin)).collect()
    }
}

impl Twin for Rplidar {
    fn advance(&mut self, now: Duration, around: &mut Surroundings<'_>) {
        let world = around.world;
        let limit_m = self.model.range_mm().1 / 1_000.0;
        self.measure(now, around.random, |time, angle_deg| {
            // On the robot, angles are counter-clockwise.
            world.beam(time, -angle_deg.to_radians(), limit_m)
        });
    }

    fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        Rplidar::handle_bytes(self, now, bytes);
    }

    fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
        Rplidar::poll_output(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        self.next_packet()
    }

    fn handle_plug_in(&mut self, now: Duration) {
        *self = self.restarted(now);
    }
}
