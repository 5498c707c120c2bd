//! A robot of Amber as a node of ROS 2. PURE.
//!
//! So far the conversions; nothing publishes them yet.

pub mod convert;
