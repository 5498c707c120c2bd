//! Maps for Amber: walls, `.roson` files, geometry and ray casting.
//!
//! ```
//! use amber_map::{Map, Walls};
//!
//! let map = Map::flat();
//! let walls = Walls::new(map.faces());
//! let start = map.robots[0];
//! let ahead_m = walls.cast(start.at, start.heading, 30.0);
//! assert!(ahead_m.is_some_and(|distance_m| distance_m > 0.2));
//! ```
//!
//! A [`Map`] has straight walls; an [`Occupancy`] grid is the map of ROS map_server, see [`ros_map`].
//! A [`MapFile`] is either of them. A [`DistanceField`] and a [`FreeSpace`] are made from both, and
//! [`tiles`] carry a growing grid to other programs.
//!
//! There are two frames, both in metres and radians:
//!
//! - **The map frame** of files, messages and the command line: x to the right, **y down**, angles
//!   clockwise from x. Only [`MapPose`] uses it.
//! - **The plane frame** of all other types: x to the right, y up, angles counter-clockwise
//!   from x.
//!
//! `From` converts between [`MapPose`] and [`Pose`]. The crate is PURE, with no IO or clock and
//! randomness only from its callers, except that [`MapFile::open`] reads files.

mod disk;
mod field;
mod file;
mod free;
mod geometry;
mod graph;
mod grid;
mod map;
mod map_pose;
mod mounting;
mod outline;
pub mod ros_map;
mod roson;
pub mod tiles;
mod walls;

pub use amber_values::MapPose;
pub use field::{DistanceField, MAX_DISTANCE_M};
pub use file::{MapFile, MapFileError};
pub use free::FreeSpace;
pub use geometry::{Point, Pose, Segment, wrap};
pub use graph::{Edge, Graph};
pub use grid::{Cell, GridError, Layout, MAX_CELLS, Occupancy};
pub use map::{BUILT_IN, MAX_EXTENT_M, Map, MapError};
pub use mounting::Mounting;
pub use outline::Outline;
pub use walls::Walls;
