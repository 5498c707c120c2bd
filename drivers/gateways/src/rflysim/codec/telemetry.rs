//! Packets of the simulator: bodies of the packets on the odd ports. PURE.
//!
//! Axes: N, E, D are north, east, down; F, R, D are forward, right, down of the vehicle.

use super::layout::{Padding, layouts};

layouts! {
/// The state that the autopilot estimates, in the mode `UDP_Full`; 120 bytes with its head.
pub struct FullEstimate {
    /// Time since the start of the autopilot, in milliseconds.
    time_boot_ms: u32,
    /// The number of the vehicle, from 1.
    copter_id: u32,
    /// Latitude and longitude in 1e-7 degrees, altitude in millimetres.
    gps_position: [i32; 3],
    /// Speed towards N, E, D, in cm/s.
    gps_velocity_cm_s: [i32; 3],
    /// The take-off point, with the units of `gps_position`.
    gps_home: [i32; 3],
    /// Height above the take-off point, in millimetres.
    relative_altitude_mm: i32,
    /// Heading, in thousandths of a degree. Some versions may send hundredths.
    heading_mdeg: i32,
    /// Number of satellites in view.
    satellites_visible: i32,
    /// Kind of position fix; 3 is a fix in three dimensions.
    fix_type: i32,
    /// Unused.
    reserved_int: i32,
    /// Roll, pitch and yaw, in radians.
    angles_rad: [f32; 3],
    /// Position from the take-off point towards N, E, D, in metres.
    position_m: [f32; 3],
    /// Velocity towards N, E, D, in m/s.
    velocity_m_s: [f32; 3],
    /// Horizontal accuracy of the position, in metres.
    horizontal_accuracy_m: f32,
    /// Vertical accuracy of the position, in metres.
    vertical_accuracy_m: f32,
    /// Above 0.5: the estimate has a fix in three dimensions.
    reserved_float: f32,
}

/// The state that the autopilot estimates, in the mode `UDP_Simple`; 52 bytes with its head.
pub struct SimpleEstimate {
    /// Take-off point: latitude and longitude in 1e-7 degrees, altitude in millimetres. In a
    /// collision packet the second number is the id of the other object.
    gps_home: [i32; 3],
    /// Roll, pitch and yaw, in radians.
    angles_rad: [f32; 3],
    /// Position from the take-off point towards N, E, D, in metres.
    position_m: [f32; 3],
    /// Velocity towards N, E, D, in m/s.
    velocity_m_s: [f32; 3],
}

/// The true state, 200 bytes with its head.
pub struct Truth200 {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// Kind of vehicle.
    vehicle_type: i32,
    /// Time since the start of the simulation, in seconds.
    time_s: f64,
    /// Velocity towards N, E, D, in m/s.
    velocity_m_s: [f32; 3],
    /// Position towards N, E, D, in metres.
    position_m: [f32; 3],
    /// Roll, pitch and yaw, in radians.
    angles_rad: [f32; 3],
    /// Orientation as a quaternion w, x, y, z.
    quaternion: [f32; 4],
    /// Speeds of the motors, in rpm.
    motors_rpm: [f32; 8],
    /// Acceleration along F, R, D, in m/s².
    acceleration_m_s2: [f32; 3],
    /// Rates of turn about F, R, D, in rad/s.
    rates_rad_s: [f32; 3],
    /// Aligns the next field.
    padding: Padding<4>,
    /// Latitude and longitude in degrees, altitude in metres. Some versions may send the
    /// longitude first.
    gps_position: [f64; 3],
}

/// The true state in newer versions, 168 bytes with its magic number.
pub struct Truth168 {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// Kind of vehicle.
    vehicle_type: i32,
    /// Unused.
    reserved: i32,
    /// Velocity towards N, E, D, in m/s.
    velocity_m_s: [f32; 3],
    /// Roll, pitch and yaw, in radians.
    angles_rad: [f32; 3],
    /// Orientation as a quaternion w, x, y, z.
    quaternion: [f32; 4],
    /// Speeds of the motors, in rpm.
    motors_rpm: [f32; 8],
    /// Acceleration along F, R, D, in m/s².
    acceleration_m_s2: [f32; 3],
    /// Rates of turn about F, R, D, in rad/s.
    rates_rad_s: [f32; 3],
    /// Time since the start of the simulation, in seconds.
    time_s: f64,
    /// Position towards N, E, D, in metres.
    position_m: [f64; 3],
    /// Latitude and longitude in degrees, altitude in metres.
    gps_position: [f64; 3],
}

/// The true state in its short form, 112 bytes with its magic number.
pub struct Truth112 {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// Kind of vehicle.
    vehicle_type: i32,
    /// Latitude and longitude in 1e-7 degrees, altitude in millimetres.
    gps_position: [i32; 3],
    /// Speeds of the motors, in rpm.
    motors_rpm: [f32; 8],
    /// Velocity towards N, E, D, in m/s.
    velocity_m_s: [f32; 3],
    /// Roll, pitch and yaw, in radians.
    angles_rad: [f32; 3],
    /// Position towards N, E, D, in metres.
    position_m: [f64; 3],
    /// Time since the start of the simulation, in seconds.
    time_s: f64,
}

/// Outputs of the simulated model, 264 bytes with their magic number.
pub struct ModelOutputs {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// The model defines their meaning.
    outputs: [f64; 32],
}

/// The GPS coordinates of the origin of the map, 32 bytes with their magic number.
pub struct MapOrigin {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// Latitude and longitude in degrees, altitude in metres.
    origin: [f64; 3],
}

/// A collision, 12 bytes with its magic number.
pub struct CollisionTarget {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// The object that the vehicle hit.
    target_id: i32,
}

/// A message of the autopilot for outside programs (PX4ExtMsg), 48 bytes with its magic number.
pub struct ExternalMessage {
    /// The number of the vehicle, from 1.
    copter_id: i32,
    /// Time since the start of the simulation, in seconds.
    time_s: f64,
    /// The program in the autopilot defines their meaning.
    controls: [f32; 8],
}
}
