//! Common code of drivers that move the robot: they watch other devices and command its wheels.
//!
//! ```text
//!  hokuyo, roboclaw, ninedof, bumper, location --> feeds --inputs--> WheelTask --> pilot (PURE): wheel speeds?
//!                                                                  |
//!  roboclaw <-------------------- speeds --------------------------+
//! ```
//!
//! `convert`, `sources`, `guard`, `heard`, `refusal`, `waiting`, `repeating` and the pilots are PURE. `feeds` (one task per device),
//! `wheel_task` (owns the wheels), `lease` (of the wheels) and `guarded` (wheels that clients
//! command) are IO.

pub(crate) mod convert;
pub(crate) mod feeds;
pub(crate) mod guard;
pub(crate) mod guarded;
pub(crate) mod heard;
pub(crate) mod lease;
pub(crate) mod pilot;
pub(crate) mod refusal;
pub(crate) mod repeating;
pub(crate) mod sources;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod waiting;
pub(crate) mod wheel_task;
