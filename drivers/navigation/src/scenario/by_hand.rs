//! A tour that somebody steers by hand. PURE.

use std::f64::consts::TAU;

use super::Course;
use super::course::{CELL_M, CLEARANCE_M};
use crate::grid::{DistanceField, Layout};

/// The largest distance beside the tour.
const ASIDE_M: f64 = 0.08;
/// The lengths of the swings.
const SWINGS_M: [f64; 3] = [3.1, 1.7, 0.9];
/// The hand keeps this distance from walls.
const KEPT_M: f64 = CLEARANCE_M - 0.02;

impl Course {
    /// The same tour with the swings of imperfect steering, different for each seed.
    #[must_use]
    pub fn by_hand(&self, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0xBA5E_0000_0000);
        let length_m = self.length_m();
        let swings = SWINGS_M.map(|swing_m| ((length_m / swing_m).round().max(1.0), random.f64()));
        let field = Layout::around_walls(&self.walls, 0.1, CELL_M)
            .map(|layout| DistanceField::from_walls(layout, &self.walls, 1.0));
        let count = self.path.len();
        let moved = (0..count).map(|index| {
            let at = self.path[index];
            let way = self.path[(index + 3) % count].minus(self.path[(index + count - 3) % count]);
            let part = index as f64 / count as f64;
            let wave: f64 = swings
                .iter()
                .map(|(waves, start)| (TAU * (waves * part + start)).sin())
                .sum();
            let aside_m = ASIDE_M * wave / swings.len() as f64 * 1.5;
            let left = way.turned(TAU / 4.0).times(1.0 / way.length().max(1e-9));
            let room_m = field.as_ref().map_or(0.0, |field| field.distance_m(at) - KEPT_M);
            let limit_m = room_m.clamp(0.0, ASIDE_M);
            at.plus(left.times(aside_m.clamp(-limit_m, limit_m)))
        });
        Self {
            path: moved.collect(),
            ..self.clone()
        }
    }
}
