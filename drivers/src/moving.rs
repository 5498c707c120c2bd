//! What drivers that move the robot have in common: they watch other devices and command its wheels.
//!
//! ```text
//!  hokuyo, roboclaw, ninedof, location --> feeds --inputs--> Robot --> pilot (PURE): wheel speeds?
//!                                                              |
//!  roboclaw <-------------------- speeds ----------------------+
//! ```
//!
//! `convert`, `links`, `guard`, `waiting` and the pilots are PURE. `feeds` (one task per device) and `robot` (the task
//! that owns the wheels) are IO. `options` describes the robot, the same for all these drivers.

pub(crate) mod convert;
pub(crate) mod feeds;
pub(crate) mod guard;
pub(crate) mod links;
pub mod options;
pub(crate) mod pilot;
pub(crate) mod robot;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod waiting;
