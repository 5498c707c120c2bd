//! The robot on its map: what `amber map show` and the dashboard draw.
//!
//! [`Devices`] asks the devices for the parts, [`State`] keeps the last answers, and a [`Scene`]
//! has all parts in the frame of the map: metres, y down, angles clockwise. [`Growing`] makes one of
//! a map that the driver Mapping is making. [`mount`] finds the position of the laser on the robot,
//! and [`moving`] the devices that move. [`trip`] drives to targets for others.
//!
//! The first lines of each module contain PURE or IO. PURE code only computes; IO code talks to the
//! outside.

mod devices;
mod growing;
pub mod mount;
pub mod moving;
mod scene;
mod state;
pub mod trip;

pub use devices::Devices;
pub use growing::Growing;
pub use scene::{
    Bounds, Drive, Ground, Located, Part, Place, Scene, Track, place_to_plane, plane_to_place,
    scan_places,
};
pub use state::{Kept, State};
