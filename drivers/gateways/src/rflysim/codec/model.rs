//! Inputs of the simulated vehicle: bodies of the packets on port 30100. PURE.

use super::layout::layouts;

layouts! {
/// Integers and floats for the model, 120 bytes with their magic number.
pub struct IntFloatInputs {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// The model defines their meaning.
    integers: [i32; 8],
    /// The model defines their meaning.
    floats: [f32; 20],
}

/// 28 numbers for the model, 232 bytes with their magic number.
pub struct DoubleInputs {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// The model defines their meaning.
    inputs: [f64; 28],
}

/// Parameters of the model, 264 bytes with their magic number.
pub struct Parameters {
    /// The parameters that are set, one bit each.
    mask: u32,
    values: [f64; 32],
}

/// Numbers from the 3D display to the model, 264 bytes with their magic number.
pub struct DisplayInputs {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// The model defines their meaning.
    inputs: [f64; 32],
}

/// Parameters that change while the model runs, 528 bytes with their magic number.
pub struct DynamicParameters {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// The parameters that are set, one bit each.
    mask: u64,
    values: [f64; 64],
}

/// A message `rfly_ctrl` for the autopilot, 80 bytes with its magic number.
pub struct RflyControl {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// The program in the autopilot defines its meaning.
    modes: u32,
    /// The program in the autopilot defines its meaning.
    flags: u32,
    /// The program in the autopilot defines their meaning.
    controls: [f32; 16],
}

/// Distances to obstacles, 60 bytes with their magic number.
pub struct CollisionRays {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// Size of the vehicle.
    size: f32,
    /// Velocity.
    velocity: [f32; 3],
    /// Distances to the front, back, left, right, up and down.
    rays: [f32; 6],
    /// Position.
    position: [f32; 3],
}

/// Twenty numbers about collisions or the terrain, 88 bytes with their magic number.
pub struct TwentyFloats {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// The terrain uses the first fifteen.
    values: [f32; 20],
}
}
