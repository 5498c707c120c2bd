//! rosbridge 2: web pages (`roslibjs`) and Python programs (`roslibpy`) written for ROS drive an
//! Amber robot over a WebSocket.
//!
//! The protocol is described at
//! <https://github.com/RobotWebTools/rosbridge_suite/blob/ros2/ROSBRIDGE_PROTOCOL.md>: one JSON
//! object per WebSocket message, with the operation in `op`. Messages of the robot may also be CBOR.

mod actions;
pub mod codec;
mod definitions;
pub mod driver;
mod encoding;
pub mod messages;
pub mod published;
mod rosapi;
pub mod server;
pub mod session;
pub mod topics;
