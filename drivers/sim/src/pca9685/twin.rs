//! The chip in the robot. PURE.

use std::time::Duration;

use super::Pca9685;
use crate::ceiling::Ceiling;
use crate::control::SimulationState;
use crate::device::{Connection, Device, Kind};
use crate::i2c::{Reply, Transfer};
use crate::twin::{Setup, Surroundings, Twin};
use crate::world::World;

/// The servo controller, on its own bus.
pub const DEVICE: Device = Device {
    name: "pca9685",
    connection: Connection::I2c,
    is_extra: true,
    driver: "pca9685",
    options: &[],
    files: &[],
    model_option: None,
    demonstrations: &[("call servos set-angle 3 45", "turn a servo")],
};

/// Whether the robot has one.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Options {
    /// Add a servo controller PCA9685, on a bus of its own, at the address 0x40
    #[arg(id = "pca9685", long = "pca9685")]
    pub is_fitted: bool,
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, _setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let twin = || Box::new(Pca9685::new(0x40, Duration::ZERO)) as Box<dyn Twin>;
        let twins = self.is_fitted.then(|| (DEVICE, twin()));
        twins.into_iter().collect()
    }
}

impl Twin for Pca9685 {
    fn advance(&mut self, now: Duration, _around: &mut Surroundings<'_>) {
        Pca9685::advance(self, now);
    }

    fn handle_transfer(&mut self, now: Duration, transfer: &Transfer, _world: &World) -> Reply {
        self.transfer(now, transfer)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Pca9685::next_timeout(self)
    }

    fn handle_plug_in(&mut self, now: Duration) {
        self.restart(now);
    }

    fn show(&self, _world: &World, _ceiling: &Ceiling, state: &mut SimulationState) {
        state.i2c_servos = self.servos().collect();
    }
}
