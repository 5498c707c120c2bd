//! A robot of Amber as a node of ROS 2: its topics, services and commands. PURE.
//!
//! ```text
//!   measurements --> convert --> messages of ROS     topics: names, types, quality of service
//!   cmd_vel, goal_pose --> orders --> messages for devices, like those of any operator
//! ```
//!
//! The crate `amber_ros2` has the formats; `robot` publishes and subscribes, in one or more layouts.

pub mod actions;
pub mod battery;
pub mod bumper;
pub mod camera;
pub mod clock;
pub mod config;
pub mod convert;
pub mod diagnostics;
pub mod gps;
pub mod joy;
pub mod layout;
pub mod orders;
pub mod topics;
