//! The servos in the robot, which are an arm, or an arm on a base with three wheels. PURE.
//!
//! They do not move the robot in its world, and have a supply of their own.

use std::time::Duration;

use super::{Family, Feetech};
use crate::ceiling::Ceiling;
use crate::control::{self, SimulationState};
use crate::device::{Connection, Device, Kind};
use crate::twin::{Setup, Surroundings, Twin};
use crate::world::World;

/// The servos of an arm, and those behind them.
const ARM: std::ops::RangeInclusive<u8> = 1..=6;
const WHEELS: std::ops::RangeInclusive<u8> = 7..=9;

/// The adapter of the bus.
pub const DEVICE: Device = Device {
    name: "feetech",
    connection: Connection::Serial,
    is_extra: true,
    driver: "feetech",
    // Its process waits for the processor, on a busy machine for longer than real servos take.
    options: &["--reply-timeout-ms", "500"],
    files: &[],
    model_option: Some("--preset"),
    demonstrations: &[("call bus-servos servos", "what the servos of the arm do")],
};

/// What the servos are.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The arm SO-100 or SO-101: six STS3215 with the ids 1 to 6
    #[value(name = "so101")]
    So101,
    /// LeKiwi: the same arm, and three wheels with the ids 7 to 9
    Lekiwi,
}

/// The variants of the servos.
#[derive(clap::Args, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[group(skip)]
pub struct Options {
    /// Add servos of Feetech on a bus
    #[arg(id = "feetech", long, value_name = "MODEL", value_enum)]
    pub model: Option<Model>,
}

impl Kind for Options {
    const DEVICES: &'static [Device] = &[DEVICE];

    fn twins(&self, _setup: &Setup<'_>) -> Vec<(Device, Box<dyn Twin>)> {
        let twin = |model| Box::new(servos(model)) as Box<dyn Twin>;
        let twins = self.model.map(twin).into_iter();
        twins.map(|twin| (DEVICE, twin)).collect()
    }
}

fn servos(model: Model) -> Feetech {
    let last = match model {
        Model::So101 => *ARM.end(),
        Model::Lekiwi => *WHEELS.end(),
    };
    Feetech::new((*ARM.start()..=last).map(|id| (id, Family::Sts)))
}

impl Twin for Feetech {
    fn advance(&mut self, now: Duration, _around: &mut Surroundings<'_>) {
        Feetech::advance(self, now);
    }

    fn handle_bytes(&mut self, now: Duration, bytes: &[u8]) {
        Feetech::handle_bytes(self, now, bytes);
    }

    fn poll_output(&mut self, now: Duration) -> Option<Vec<u8>> {
        Feetech::poll_output(self, now)
    }

    fn next_timeout(&self) -> Option<Duration> {
        Feetech::next_timeout(self)
    }

    fn show(&self, _world: &World, _ceiling: &Ceiling, state: &mut SimulationState) {
        let shown = |servo: &super::Servo| control::BusServo {
            id: servo.id(),
            steps: servo.steps(),
            steps_per_s: servo.speed(),
            torque: servo.has_torque(),
            memory_writes: servo.memory_writes,
        };
        state.bus_servos = self.servos().iter().map(shown).collect();
    }
}
