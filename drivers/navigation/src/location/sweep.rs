//! A systematic search: compares a scan with poses all over the map, some in each update. PURE.
//!
//! Random poses find a place sooner or later. A sweep is done at a known time: then each place that
//! fits is among those it has found, and a pose without a rival is the right one.
//!
//! Each free position of a coarse grid is tried with headings from the directions of the walls, or
//! with all headings if map or scan have no main direction. A few beams are compared with the blurred
//! map. In each block of the map, only the best pose is fitted.

use std::f64::consts::{FRAC_PI_2, TAU};

use amber_map::{Point, Pose, wrap};

use super::direction;
use super::map::LocationMap;
use crate::likelihood::Likelihood;

/// A scan has a main direction if its walls agree at least this much.
const MIN_STRENGTH: f64 = 0.4;
/// The number of headings otherwise.
const HEADINGS: usize = 72;
/// The best pose of a block of this size is kept, ...
const BLOCK_M: f64 = 0.4;
/// ...and so many blocks of one update.
const KEPT: usize = 12;
/// The number of beams for the comparison.
pub(super) const BEAMS: usize = 20;

/// The progress of a sweep.
#[derive(Clone, Debug, Default)]
pub(super) struct Sweep {
    next: usize,
    /// How often the whole map was swept.
    pub(super) rounds: u32,
}

impl Sweep {
    /// Begins again.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Tries about so many poses, and returns the best ones. `points` are all points of the scan, in
    /// the order of their angles, and `few` some of them.
    pub(super) fn run(
        &mut self,
        map: &LocationMap,
        blurred: &Likelihood,
        points: &[Point],
        few: &[Point],
        poses: usize,
    ) -> Vec<Pose> {
        let headings = headings(map, points);
        let places = map.free.places();
        if places == 0 {
            self.rounds += 1;
            return Vec::new();
        }
        let count = (poses / headings.len()).max(1).min(places - self.next);
        let mut best = Best::default();
        for index in self.next..self.next + count {
            let at = map.free.place(&map.field, index);
            for (number, heading) in headings.iter().enumerate() {
                let pose = Pose {
                    at,
                    heading: *heading,
                };
                best.offer(pose, number, blurred.log_of(&map.rough, pose, few));
            }
        }
        self.next += count;
        if self.next >= places {
            self.next = 0;
            self.rounds += 1;
        }
        best.take()
    }
}

/// The best of some poses. At most one per place.
pub(super) fn best_of(
    map: &LocationMap,
    blurred: &Likelihood,
    few: &[Point],
    poses: impl Iterator<Item = Pose>,
) -> Vec<Pose> {
    let mut best = Best::default();
    for pose in poses {
        let sector = (wrap(pose.heading) * 6.0).round() as i64;
        best.offer(
            pose,
            sector.unsigned_abs() as usize,
            blurred.log_of(&map.rough, pose, few),
        );
    }
    best.take()
}

fn headings(map: &LocationMap, points: &[Point]) -> Vec<f64> {
    let scan = direction::of_points(points).filter(|found| found.strength >= MIN_STRENGTH);
    match map.direction.zip(scan) {
        Some((map, scan)) => {
            let first = map.angle_rad - scan.angle_rad;
            let quarter = |turn: u32| wrap(first + f64::from(turn) * FRAC_PI_2);
            (0..4).map(quarter).collect()
        }
        None => (0..HEADINGS)
            .map(|turn| wrap(TAU * turn as f64 / HEADINGS as f64))
            .collect(),
    }
}

/// The best pose of each block.
#[derive(Default)]
struct Best {
    blocks: std::collections::BTreeMap<(i64, i64, usize), (f64, Pose)>,
}

impl Best {
    fn offer(&mut self, pose: Pose, number: usize, log: f64) {
        let block = |m: f64| (m / BLOCK_M).floor() as i64;
        let key = (block(pose.at.x), block(pose.at.y), number);
        let best = self.blocks.entry(key).or_insert((log, pose));
        if log > best.0 {
            *best = (log, pose);
        }
    }

    fn take(self) -> Vec<Pose> {
        let mut all: Vec<(f64, Pose)> = self.blocks.into_values().collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        all.truncate(KEPT);
        all.into_iter().map(|(_, pose)| pose).collect()
    }
}
