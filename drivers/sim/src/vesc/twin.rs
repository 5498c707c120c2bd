//! The VESCs in the robot, which drive its wheels instead of the usual controllers. PURE.

use std::time::Duration;

use super::{Firmware, Vescs};
use crate::device::{Connection, Device, Kind};
use crate::twin::{Setup, Surroundings, Twin};
use crate::wheels::Reading;
use crate::world::Drives;

/// The port of the first VESC.
pub const DEVICE: Device = Device {
    name: "vesc",
    connection: Connection::Serial,
    is_extra: true,
    driver: "vesc",
    // The motors and wheels of the simulated robot. Its process waits for the processor, on a busy
    // machine for longer than real VESCs take.
    options: &[
        "--can-id",
        "12",
        "--pole-pairs",
        "7",
        "--gear-ratio",
        "10",
        "--wheel-diameter-mm",
        "120",
        "--min-erpm",
        "100",
        "--reply-timeout-ms",
        "1000",
    ],
    files: &[],
    model_option: None,
    demonstrations: &[("call wheels speeds", "wheel speeds")],
};

/// The variants of the VESCs.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Options {
    /// Drive the wheels by two VESCs with this firmware instead of the RoboClaws: one at a port, the
    /// other one behind it on the CAN bus, with the number 12
    #[arg(id = "vesc", long, value_name = "FIRMWARE", value_enum)]
    pub firmware: Option<Firmware>,
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, _setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let twin = |firmware| Box::new(Vescs::new(firmware)) as Box<dyn Twin>;
        let twins = self.firmware.map(twin).into_iter();
        twins.map(|twin| (DEVICE, twin)).collect()
    }
}

/// The battery supplies them, so they do not notice when the port is plugged in again.
impl Twin for Vescs {
    fn advance(&mut self, now: Duration, _around: &mut Surroundings<'_>) {
        Vescs::advance(self, now);
    }

    fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        Vescs::handle_bytes(self, now, bytes);
    }

    fn handle_hang_up(&mut self) {
        Vescs::handle_hang_up(self);
    }

    fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
        Vescs::poll_output(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Vescs::next_timeout(self)
    }

    fn set_battery_v(&mut self, volts: Option<f64>) {
        Vescs::set_battery_v(self, volts);
    }

    fn set_battery_sag(&mut self, sags: bool) {
        Vescs::set_battery_sag(self, sags);
    }

    fn drives(&self) -> Option<Drives> {
        Some(Vescs::drives(self).into())
    }

    fn handle_readings(&mut self, now: Duration, readings: [Reading; 4]) {
        Vescs::handle_readings(self, now, readings);
    }
}
