//! The map data for localization. PURE.

use amber_map::{Point, Segment};

use super::direction::{self, Direction};
use crate::grid::{DistanceField, FreeSpace, GridError, Layout, Occupancy};

/// The field reaches this far around the map.
const BORDER_M: f64 = 0.5;
/// The robot's centre is never closer to a wall.
const CLEARANCE_M: f64 = 0.12;
/// The map has a main direction if its walls agree at least this much.
const MIN_STRENGTH: f64 = 0.5;
/// The field for a search has cells of this many cells: 80 mm instead of 20 mm.
const ROUGH_CELLS: usize = 4;

/// A map for localization: distances to walls, free space and the main direction.
#[derive(Clone, Debug)]
pub struct LocationMap {
    pub(crate) field: DistanceField,
    /// The same with larger cells. A search compares poses all over the map, and that of a large map
    /// would not fit into the cache of a processor.
    pub(crate) rough: DistanceField,
    pub(crate) free: FreeSpace,
    pub(crate) direction: Option<Direction>,
    /// Empty if the map is an image.
    pub(crate) walls: Vec<Segment>,
}

impl LocationMap {
    /// A map of straight walls. `inside` are positions where the robot can be, such as the nodes of
    /// the map; without any, everything that walls enclose is free.
    ///
    /// # Errors
    /// There are no walls, or the map is too large for the cell size.
    pub fn from_walls(
        walls: &[Segment],
        inside: &[Point],
        cell_m: f64,
        limit_m: f64,
    ) -> Result<Self, GridError> {
        let layout = Layout::around_walls(walls, BORDER_M, cell_m)?;
        let field = DistanceField::from_walls(layout, walls, limit_m);
        let free = FreeSpace::new(&field, CLEARANCE_M, inside);
        Ok(Self::new(field, free, walls.to_vec()))
    }

    /// A map from an occupancy grid. The robot can be in its free cells.
    #[must_use]
    pub fn from_occupancy(occupancy: &Occupancy, limit_m: f64) -> Self {
        let field = DistanceField::from_occupancy(occupancy, limit_m);
        let free = FreeSpace::of_occupancy(&field, CLEARANCE_M, occupancy);
        Self::new(field, free, Vec::new())
    }

    fn new(field: DistanceField, free: FreeSpace, walls: Vec<Segment>) -> Self {
        let direction = direction::of_field(&field);
        Self {
            direction: direction.filter(|found| found.strength >= MIN_STRENGTH),
            rough: field.coarse(ROUGH_CELLS),
            field,
            free,
            walls,
        }
    }

    /// The distances to walls.
    #[must_use]
    pub fn field(&self) -> &DistanceField {
        &self.field
    }

    /// The possible positions of the robot.
    #[must_use]
    pub fn free(&self) -> &FreeSpace {
        &self.free
    }

    /// The memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let fields = self.field.bytes() + self.rough.bytes();
        fields + self.free.bytes() + self.walls.len() * size_of::<Segment>()
    }
}
