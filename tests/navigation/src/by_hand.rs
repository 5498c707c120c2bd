//! A manually steered tour. PURE.

use std::f64::consts::TAU;

use amber_navigation::grid::{DistanceField, Layout};

use super::Course;
use super::course::{CELL_M, CLEARANCE_M, SPACING_M};

/// The largest distance beside the tour.
const ASIDE_M: f64 = 0.08;
/// The lengths of the swings.
const SWINGS_M: [f64; 3] = [3.1, 1.7, 0.9];
/// The direction of the tour is that between points so many before and after.
const NEAR: usize = 10;
/// The robot turns round before the end of a dead end, at up to half of this distance.
const LOOK_POINTS: usize = 30;
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
            let way =
                self.path[(index + NEAR) % count].minus(self.path[(index + count - NEAR) % count]);
            // Where the tour turns round, a distance beside it would jump to the other side.
            let straight = (way.length() / (2.0 * NEAR as f64 * SPACING_M)).min(1.0);
            let part = index as f64 / count as f64;
            let wave: f64 = swings
                .iter()
                .map(|(waves, start)| (TAU * (waves * part + start)).sin())
                .sum();
            let aside_m = ASIDE_M * wave / swings.len() as f64 * 1.5;
            let left = way.turned(TAU / 4.0).times(1.0 / way.length().max(1e-9));
            let room_m = field
                .as_ref()
                .map_or(0.0, |field| field.distance_m(at) - KEPT_M);
            let limit_m = room_m.clamp(0.0, ASIDE_M) * straight.powi(2);
            at.plus(left.times(aside_m.clamp(-limit_m, limit_m)))
        });
        Self {
            path: moved.collect(),
            look_points: LOOK_POINTS,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use amber_map::Map;

    use super::*;
    use crate::vehicle::Vehicle;

    #[test]
    fn every_tour_by_hand_visits_the_whole_flat_in_three_minutes() {
        let map = Map::flat();
        let course = Course::new(&map, map.faces()).unwrap();
        for seed in 1..=20 {
            let by_hand = course.by_hand(seed);
            let mut random = fastrand::Rng::with_seed(seed);
            let mut vehicle = Vehicle::new(&by_hand, &mut random);
            let mut visited = vec![false; course.path.len()];
            for step in 0..180 * 100 {
                vehicle.step(&by_hand, 0.01);
                if step % 20 == 0 {
                    let at = vehicle.pose().at;
                    for (visited, point) in visited.iter_mut().zip(&course.path) {
                        *visited |= point.minus(at).length() < 0.3;
                    }
                }
            }
            let missed = visited.iter().filter(|visited| !**visited).count();
            assert_eq!(missed, 0, "seed {seed}: of {}", visited.len());
        }
    }
}
