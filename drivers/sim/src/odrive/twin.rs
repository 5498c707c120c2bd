//! The ODrive in the robot, which drives its wheels instead of the usual controllers. PURE.

use std::time::Duration;

use super::{Odrive, Variant};
use crate::device::{Connection, Device, Kind};
use crate::twin::{Setup, Surroundings, Twin};
use crate::wheels::Reading;
use crate::world::Drives;

/// The ODrive.
pub const DEVICE: Device = Device {
    name: "odrive",
    connection: Connection::Serial,
    is_extra: true,
    driver: "odrive",
    // The wheels of the simulated robot. On a busy machine, its process and that of the driver wait for
    // the processor, for longer than a real ODrive takes or gives.
    options: &[
        "--wheel-diameter-mm",
        "120",
        "--reply-timeout-ms",
        "1000",
        "--watchdog-ms",
        "1000",
    ],
    files: &[],
    model_option: None,
    demonstrations: &[("call wheels speeds", "wheel speeds")],
};

/// The variants of the ODrive.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Options {
    /// Drive the wheels by an ODrive instead of the RoboClaws
    #[arg(id = "odrive", long, value_name = "VARIANT", value_enum)]
    pub variant: Option<Variant>,
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, _setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let twin = |variant| Box::new(Odrive::new(variant)) as Box<dyn Twin>;
        let twins = self.variant.map(twin).into_iter();
        twins.map(|twin| (DEVICE, twin)).collect()
    }
}

/// The battery supplies it, so it does not notice when the port is plugged in again.
impl Twin for Odrive {
    fn advance(&mut self, now: Duration, _around: &mut Surroundings<'_>) {
        Odrive::advance(self, now);
    }

    fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        Odrive::handle_bytes(self, now, bytes);
    }

    fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
        Odrive::poll_output(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Odrive::next_timeout(self)
    }

    fn set_battery_v(&mut self, volts: Option<f64>) {
        Odrive::set_battery_v(self, volts);
    }

    fn set_battery_sag(&mut self, sags: bool) {
        Odrive::set_battery_sag(self, sags);
    }

    fn drives(&self) -> Option<Drives> {
        Some(Odrive::drives(self).into())
    }

    fn handle_readings(&mut self, now: Duration, readings: [Reading; 4]) {
        Odrive::handle_readings(self, now, readings);
    }
}
