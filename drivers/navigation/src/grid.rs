//! Occupancy grids and distance fields: those of maps. PURE.

pub use amber_map::{
    Cell, DistanceField, FreeSpace, GridError, Layout, MAX_CELLS, MAX_DISTANCE_M, Occupancy,
};
