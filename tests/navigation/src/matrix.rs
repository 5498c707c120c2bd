//! All runs with their goals: `scripts/bench nav` prints the table. PURE.
//!
//! Goals are those of the original's fact sheet and of the project. A goal that is not met is a line
//! with "no"; docs/notes/location.md and docs/notes/driving.md have the experiments.

mod avoidance;
mod errands;
mod geometry;
mod location;
mod mapping;
mod trajectories;

use amber_map::Map;

use super::avoid::Clock;

/// The maps of the runs. Those of the original laboratory are not part of the repository.
#[derive(Clone, Debug)]
pub struct Maps {
    /// The flat of `amber demo`.
    pub flat: Map,
    /// `MazeRoboLabFullMap`.
    pub lab: Option<Map>,
    /// `MazeRoboLabSplitIntoRooms8`: the laboratory with nodes in its rooms.
    pub rooms: Option<Map>,
}

/// Runs of the same kind with different seeds.
pub struct Case<'a> {
    /// The driver under test.
    pub driver: &'static str,
    /// The course of events.
    pub name: String,
    pub goal: &'static str,
    /// The usual number of seeds.
    pub seeds: u64,
    measure: Box<dyn Fn(u64) -> Measured + 'a>,
}

/// The result of a [`Case`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// The figures.
    pub text: String,
    /// Whether they reach the goal.
    pub is_met: bool,
}

impl Case<'_> {
    /// Runs the seeds from 0.
    #[must_use]
    pub fn measure(&self, seeds: u64) -> Measured {
        (self.measure)(seeds)
    }
}

impl std::fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.driver, self.name)
    }
}

/// All cases on these maps. `clock` measures the time of computations.
#[must_use]
pub fn cases(maps: &Maps, clock: Clock) -> Vec<Case<'_>> {
    let mut all = Vec::new();
    location::add(maps, clock, &mut all);
    mapping::add(maps, &mut all);
    mapping::add_explorations(maps, &mut all);
    mapping::add_corridors(&mut all);
    avoidance::add(maps, clock, &mut all);
    trajectories::add(&mut all);
    errands::add(maps, &mut all);
    geometry::add(maps, &mut all);
    all
}
