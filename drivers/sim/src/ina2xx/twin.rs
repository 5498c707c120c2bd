//! The sensor in the robot. PURE.

use std::time::Duration;

use super::{Ina, Model};
use crate::device::{Connection, Device, Kind};
use crate::i2c::{Reply, Transfer};
use crate::twin::{Setup, Twin};
use crate::wheels::Reading;
use crate::world::World;

/// The sensor of the battery, on its own bus.
pub const DEVICE: Device = Device {
    name: "ina2xx",
    connection: Connection::I2c,
    is_extra: true,
    driver: "ina2xx",
    options: &[],
    files: &[],
    model_option: None,
    demonstrations: &[("call battery state", "voltage and current")],
};

/// The variants of the sensor.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq)]
#[group(skip)]
pub struct Options {
    /// Add a sensor for the voltage and the current of the battery, on a bus of its own
    #[arg(id = "ina2xx", long, value_name = "MODEL", value_enum)]
    pub model: Option<Model>,
    /// Volts and amperes that it measures instead of those of the battery, for tests.
    #[arg(skip)]
    pub fixed: Option<(f64, f64)>,
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, _setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let twin = |model| {
            let mut sensor = Ina::new(model);
            sensor.fixed = self.fixed;
            (DEVICE, Box::new(sensor) as Box<dyn Twin>)
        };
        self.model.map(twin).into_iter().collect()
    }
}

impl Twin for Ina {
    fn handle_transfer(&mut self, now: Duration, transfer: &Transfer, _world: &World) -> Reply {
        self.transfer(now, transfer)
    }

    fn handle_plug_in(&mut self, now: Duration) {
        self.restart(now);
    }

    fn set_battery_v(&mut self, volts: Option<f64>) {
        self.battery.force_v(volts);
    }

    fn set_battery_sag(&mut self, sags: bool) {
        self.battery.set_sag(sags);
    }

    fn handle_readings(&mut self, now: Duration, readings: [Reading; 4]) {
        self.battery.handle_readings(now, readings);
    }
}
