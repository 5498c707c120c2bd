//! The Maestro in the robot. PURE.

use std::time::Duration;

use super::{Config, Maestro, Servo};
use crate::ceiling::Ceiling;
use crate::control::{self, SimulationState};
use crate::device::{Connection, Device, Kind};
use crate::twin::{Setup, Surroundings, Twin};
use crate::world::World;

/// The servo controller.
pub const DEVICE: Device = Device {
    name: "maestro",
    connection: Connection::Serial,
    is_extra: false,
    driver: "maestro",
    options: &[],
    files: &[],
    model_option: None,
    demonstrations: &[("call maestro set-angle 3 45", "turn a servo")],
};

impl Kind for Config {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, _setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        vec![(DEVICE, Box::new(Maestro::new(*self, Duration::ZERO)))]
    }
}

impl Twin for Maestro {
    fn advance(&mut self, now: Duration, _around: &mut Surroundings<'_>) {
        Maestro::advance(self, now);
    }

    fn handle_bytes(&mut self, _now: Duration, bytes: &[u8]) {
        Maestro::handle_bytes(self, bytes);
    }

    fn poll_output(&mut self, _now: Duration) -> Option<Vec<u8>> {
        Maestro::poll_output(self)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Maestro::next_timeout(self)
    }

    fn handle_plug_in(&mut self, now: Duration) {
        self.restart(now);
    }

    fn show(&self, _world: &World, _ceiling: &Ceiling, state: &mut SimulationState) {
        let servo = |servo: &Servo| control::Servo {
            target_us: servo.target_us(),
            pulse_us: servo.pulse_us(),
            angle_deg: servo.angle_deg(),
        };
        state.servos = self.servos().iter().map(servo).collect();
    }
}
