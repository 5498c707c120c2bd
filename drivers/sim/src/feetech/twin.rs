//! The servos in the robot, which are an arm, or an arm on a base with three wheels. PURE.

use super::{Family, Feetech};
use crate::device;

/// What the servos are.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The arm SO-100 or SO-101: six STS3215 with the ids 1 to 6
    #[value(name = "so101")]
    So101,
    /// LeKiwi: the same arm, and instead of the RoboClaws three omni wheels with the ids 7 to 9
    Lekiwi,
}

// Its process waits for the processor, on a busy machine for longer than real servos take.
device::extra! {
    /// Add servos of Feetech on a bus
    "feetech" by Serial, told by "--preset", with ["--reply-timeout-ms", "500"]:
    Model => |model, _| servos(model);
    "call bus-servos servos": "what the servos of the arm do"
}

fn servos(model: Model) -> Feetech {
    let of = |last| Feetech::new((1..=last).map(|id| (id, Family::Sts)));
    match model {
        Model::So101 => of(6),
        Model::Lekiwi => of(9).on_wheels(),
    }
}
