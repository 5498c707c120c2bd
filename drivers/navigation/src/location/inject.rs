//! Poses for a search: random free positions, with headings from the directions of the walls. PURE.
//!
//! The idea of sensor resetting (Lenser and Veloso, "Sensor resetting localization for poorly
//! modelled mobile robots", ICRA 2000): new particles come from the measurement instead of from a
//! uniform distribution. Many random poses are compared with a few beams; the best are fitted to the
//! map, compared again with more beams, and those that remain become particles.

use std::f64::consts::{FRAC_PI_2, TAU};

use amber_map::{Point, Pose, wrap};

use super::direction;
use super::map::LocationMap;
use super::refine::refine;
use crate::likelihood::{Likelihood, match_of};
use crate::random::gaussian;

/// The error of the scan's main direction.
const DIRECTION_SIGMA_RAD: f64 = 0.03;
/// A scan has a main direction if its walls agree at least this much.
const MIN_STRENGTH: f64 = 0.4;
/// Poses closer than this are the same.
const SAME_M: f64 = 0.1;
const SAME_RAD: f64 = 0.17;
/// At least this many poses are drawn per square metre of free space, up to a multiple of
/// [`Search::drawn`].
const DRAWN_PER_M2: f64 = 20.0;
const MAX_MULTIPLE: usize = 4;

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// The number of random poses; more for a large map.
    pub drawn: usize,
    /// The number of beams for the first comparison.
    pub beams: usize,
    /// The number of poses that are fitted to the map.
    pub fitted: usize,
    /// The number of poses that are returned.
    pub best: usize,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            drawn: 1000,
            beams: 16,
            fitted: 24,
            best: 10,
        }
    }
}

/// The points of a scan, in the frame of the robot.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// All points, in the order of their angles.
    pub points: &'a [Point],
    /// Some of them.
    pub some: &'a [Point],
    /// The position of the scanner.
    pub laser: Point,
}

/// A pose and how well it matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    pub pose: Pose,
    /// See [`match_of`].
    pub matching: f64,
}

impl Search {
    /// Poses at which a scan fits the map; the best first.
    #[must_use]
    pub fn run(
        &self,
        map: &LocationMap,
        blurred: &Likelihood,
        seen: &Seen<'_>,
        sigma_m: f64,
        random: &mut fastrand::Rng,
    ) -> Vec<Found> {
        let few = super::evenly(seen.some, self.beams);
        let headings = Headings::new(map, seen.points);
        let by_area = (map.free.area_m2() * DRAWN_PER_M2) as usize;
        let count = self.drawn.max(by_area.min(self.drawn * MAX_MULTIPLE));
        let mut drawn: Vec<(f64, Pose)> = Vec::with_capacity(count);
        for _ in 0..count {
            let Some(at) = map.free.draw(&map.field, random) else {
                break;
            };
            let heading = headings.draw(random);
            let pose = Pose { at, heading };
            drawn.push((blurred.log_of(&map.rough, pose, &few), pose));
        }
        let fitted = self.fitted.min(drawn.len());
        if fitted == 0 {
            return Vec::new();
        }
        drawn.select_nth_unstable_by(fitted - 1, |a, b| b.0.total_cmp(&a.0));
        let mut found: Vec<Found> = Vec::new();
        for (_, start) in &drawn[..fitted] {
            let pose =
                refine(&map.field, *start, seen.some, sigma_m).map_or(*start, |fit| fit.pose);
            if !map.free.is_free(&map.field, pose.at)
                || found.iter().any(|other| same(other.pose, pose))
            {
                continue;
            }
            let matching = match_of(&map.field, pose, seen.laser, seen.some, sigma_m);
            found.push(Found { pose, matching });
        }
        found.sort_by(|a, b| b.matching.total_cmp(&a.matching));
        found.truncate(self.best);
        found
    }
}

fn same(a: Pose, b: Pose) -> bool {
    a.at.minus(b.at).length() < SAME_M && wrap(a.heading - b.heading).abs() < SAME_RAD
}

/// The possible headings of the robot.
struct Headings {
    /// One of four, if map and scan have main directions.
    first: Option<f64>,
}

impl Headings {
    fn new(map: &LocationMap, points: &[Point]) -> Self {
        let scan = direction::of_points(points).filter(|found| found.strength >= MIN_STRENGTH);
        let first = map
            .direction
            .zip(scan)
            .map(|(map, scan)| map.angle_rad - scan.angle_rad);
        Self { first }
    }

    fn draw(&self, random: &mut fastrand::Rng) -> f64 {
        match self.first {
            Some(first) => {
                let quarter = f64::from(random.u32(..4)) * FRAC_PI_2;
                wrap(first + quarter + DIRECTION_SIGMA_RAD * gaussian(random))
            }
            None => wrap(random.f64() * TAU),
        }
    }
}
