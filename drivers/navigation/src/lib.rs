//! Navigation for Amber. PURE.
//!
//! Everything here computes in the plane frame of [`amber_map`]: metres and radians, x to the
//! right, y up, angles counter-clockwise. Time is an argument and randomness comes from a seed, so
//! the same calls give the same result, bit for bit.
//!
//! - [`grid`]: occupancy grids and distance fields, shared by everything that plans or localizes.

pub mod grid;
