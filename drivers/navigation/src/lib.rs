//! Navigation for Amber. PURE.
//!
//! Everything here computes in the plane frame of [`amber_map`]: metres and radians, x to the
//! right, y up, angles counter-clockwise. Time is an argument and randomness comes from a seed, so
//! the same calls give the same result, bit for bit.
//!
//! - [`grid`]: occupancy grids and distance fields, shared by everything that plans or localizes.
//! - [`kinematics`], [`odometry`], [`scan`], [`mod@deskew`]: wheels and scans.
//! - [`omni`]: a base on three omni wheels, which also drives sideways.
//! - [`sight`]: whether the laser sees anything.
//! - [`wire`]: scans and wheel speeds of messages in the plane frame.
//! - [`likelihood`]: how well a scan fits a pose.
//! - [`location`]: the pose of the robot.
//! - [`markers`]: markers in pictures, and the pose of the robot by them.
//! - [`geometry`]: whether the configured geometry of the robot is right.
//! - [`slam`]: a map from scans and wheel speeds.
//! - [`planner`], [`path`], [`pursuit`]: a path through the map, and the motion along it.
//! - [`pose_tracker`], [`drive_to_point`]: from target to target through the map.
//! - [`explore`]: exploration, until the whole area is known.
//! - [`trajectory`]: along given points, at given times.
//! - [`collision`]: the collision monitor, which slows down and stops the wheels.

pub mod collision;
pub mod deskew;
pub mod drive_to_point;
pub mod explore;
pub mod geometry;
pub mod grid;
pub mod kinematics;
pub mod likelihood;
pub mod location;
pub mod markers;
pub mod odometry;
pub mod omni;
pub mod path;
pub mod planner;
pub mod pose_tracker;
pub mod pursuit;
pub mod random;
pub mod scan;
pub mod sight;
pub mod slam;
pub mod trajectory;
pub mod wire;
