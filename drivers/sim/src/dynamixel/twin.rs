//! The servos in the robot, which are an arm. PURE.

use super::{Dynamixel, Type};
use crate::device;

/// What the servos are.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The arm Koch v1.1: two XL430 with the ids 1 and 2, four XL330 with 3 to 6
    Koch,
}

// Its process waits for the processor, on a busy machine for longer than real servos take.
device::extra! {
    /// Add servos of Dynamixel on a bus
    "dynamixel" by Serial, told by "--preset", with ["--reply-timeout-ms", "500"]:
    Model => |model, _| servos(model);
    "call bus-servos servos": "what the servos of the arm do"
}

fn servos(model: Model) -> Dynamixel {
    let type_of = |id| match id {
        1 | 2 => Type::Xl430,
        _ => Type::Xl330,
    };
    match model {
        Model::Koch => Dynamixel::new((1..=6).map(|id| (id, type_of(id)))),
    }
}
