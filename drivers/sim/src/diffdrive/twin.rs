//! The board in the robot, which drives its wheels instead of the usual controllers. PURE.

use std::time::Duration;

use super::{Diffdrive, Firmware};
use crate::device::{Connection, Device, Kind};
use crate::twin::{Setup, Surroundings, Twin};
use crate::wheels::Reading;
use crate::world::Drives;

/// The board.
pub const DEVICE: Device = Device {
    name: "diffdrive",
    connection: Connection::Serial,
    is_extra: true,
    driver: "diffdrive",
    // The wheels of the simulated robot. Its process waits for the processor, on a busy machine for
    // longer than a real board takes.
    options: &[
        "--counts-per-turn",
        "1865",
        "--wheel-diameter-mm",
        "120",
        "--reply-timeout-ms",
        "1000",
    ],
    files: &[],
    model_option: None,
    demonstrations: &[("call wheels speeds", "wheel speeds")],
};

/// The variants of the board.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Options {
    /// Drive the wheels by an Arduino with this firmware instead of the RoboClaws
    #[arg(id = "diffdrive", long, value_name = "FIRMWARE", value_enum)]
    pub firmware: Option<Firmware>,
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, _setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let twin = |firmware| Box::new(Diffdrive::new(firmware, Duration::ZERO)) as Box<dyn Twin>;
        let twins = self.firmware.map(twin).into_iter();
        twins.map(|twin| (DEVICE, twin)).collect()
    }
}

impl Twin for Diffdrive {
    fn advance(&mut self, now: Duration, _around: &mut Surroundings<'_>) {
        Diffdrive::advance(self, now);
    }

    fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        Diffdrive::handle_bytes(self, now, bytes);
    }

    fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
        Diffdrive::poll_output(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Diffdrive::next_timeout(self)
    }

    /// It gets its power by USB; the motors have their own.
    fn handle_plug_in(&mut self, now: Duration) {
        *self = self.restarted(now);
    }

    fn drives(&self) -> Option<Drives> {
        Some(Diffdrive::drives(self).into())
    }

    fn handle_readings(&mut self, now: Duration, readings: [Reading; 4]) {
        Diffdrive::handle_readings(self, now, readings);
    }
}
