//! The motor controllers in the robot: they drive its wheels. PURE.

use std::time::Duration;

use super::{Config, Firmware, PACKET_PAUSE, Roboclaws};
use crate::device::{Connection, Device, Kind};
use crate::twin::{Setup, Twin};
use crate::wheels::Reading;
use crate::world::Drives;

/// The bus of the motor controllers.
pub const DEVICE: Device = Device {
    name: "roboclaw",
    connection: Connection::Serial,
    is_extra: false,
    driver: "roboclaw",
    // Its process waits for the processor, on a busy machine for longer than real controllers take.
    options: &["--reply-timeout-ms", "1000"],
    files: &[],
    model_option: None,
    demonstrations: &[("call roboclaw speeds", "wheel speeds")],
};

/// The variant of the motor controllers.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Options {
    /// Firmware of the motor controllers
    #[arg(
        long = "roboclaw",
        value_name = "ROBOCLAW",
        value_enum,
        default_value_t
    )]
    pub firmware: Firmware,
    /// One motor controller instead of two, at the address 128; each motor drives the wheels of a side
    #[arg(long)]
    pub one_roboclaw: bool,
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let controllers = Roboclaws::new(Config {
            firmware: self.firmware,
            is_single: self.one_roboclaw,
            latency: Duration::ZERO,
            packet_pause: PACKET_PAUSE.mul_f64(setup.speed.max(1.0)),
        });
        vec![(DEVICE, Box::new(controllers))]
    }
}

impl Twin for Roboclaws {
    fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        Roboclaws::handle_bytes(self, now, bytes);
    }

    fn handle_hang_up(&mut self) {
        self.handle_unplug();
    }

    fn poll_output(&mut self, now: Duration) -> Option<Vec<u8>> {
        Roboclaws::poll_output(self, now)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Roboclaws::next_timeout(self)
    }

    fn handle_reset(&mut self, now: Duration) {
        Roboclaws::handle_reset(self, now);
    }

    fn set_battery_v(&mut self, volts: Option<f64>) {
        Roboclaws::set_battery_v(self, volts);
    }

    fn set_battery_sag(&mut self, sags: bool) {
        Roboclaws::set_battery_sag(self, sags);
    }

    fn drives(&self) -> Option<Drives> {
        Some(Roboclaws::drives(self).into())
    }

    fn handle_readings(&mut self, now: Duration, readings: [Reading; 4]) {
        Roboclaws::handle_readings(self, now, readings);
    }
}
