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
//! There are two frames, both in metres and radians:
//!
//! - **The map frame** of files, messages and the command line: x to the right, **y down**, angles
//!   clockwise from x.
//! - **The plane frame** of all types in this crate: x to the right, y up, angles counter-clockwise
//!   from x.
//!
//! [`from_map`] and [`to_map`] convert between them. The whole crate is PURE: it has no IO, clock
//! or randomness. Callers read the files.

mod geometry;
mod map;
mod outline;
mod walls;

pub use geometry::{Point, Pose, Segment, wrap};
pub use map::{Map, MapError, from_map, to_map};
pub use outline::Outline;
pub use walls::Walls;
