//! Places that were seen before. PURE.
//!
//! A new key scan is compared with older ones near it. A loop is refused if the scan does not
//! overlap well with the old ones, or fits them at a second, quite different pose. What still is
//! false, the robust kernel of the [`graph`] removes.

use amber_map::Pose;

use super::graph::{self, Edge, Optimized};
use super::reference::Reference;
use super::search::{Tables, Window};
use super::surface::Surface;
use super::{Key, in_frame_of};

/// Key scans that are this close in the order of time are no loop.
const MIN_GAP: usize = 20;
/// Key scans farther apart do not see enough of the same.
const MAX_DISTANCE_M: f64 = 1.2;
/// A turn by one radian counts like this distance: another view.
const TURN_M: f64 = 0.3;
/// Two loops of the same key scan are at least this far apart in time.
const APART: usize = 30;
/// Loops per key scan.
const MAX_LOOPS: usize = 2;
/// Each place is seen by this many key scans before and after.
const AROUND: usize = 7;
/// The drift since the last loop: where the pose is searched.
const DRIFT_M: f64 = 0.15;
const DRIFT_PER_M: f64 = 0.02;
const MAX_DRIFT_M: f64 = 0.8;
const DRIFT_RAD: f64 = 0.08;
const DRIFT_RAD_PER_M: f64 = 0.01;
const MAX_DRIFT_RAD: f64 = 0.4;
/// Limits for a loop: the part that overlaps, and the score of a second pose.
const MIN_OVERLAP: f64 = 0.6;
pub(super) const MAX_SECOND: f64 = 0.85;
/// The fit moves the pose that was found by no more.
const MAX_FIT_M: f64 = 0.15;
const MAX_FIT_RAD: f64 = 0.1;
/// The errors of a loop are never less than this.
const MIN_SIGMA_M: f64 = 0.008;
const MIN_SIGMA_RAD: f64 = 0.004;

/// Work that takes longer than the time between two scans.
#[derive(Clone, Debug)]
pub struct Task {
    keys: Vec<Key>,
    poses: Vec<Pose>,
    edges: Vec<Edge>,
    first: usize,
}

/// The result of a [`Task`].
#[derive(Clone, Debug, Default)]
pub struct Correction {
    pub(super) poses: Vec<Pose>,
    pub(super) loops: Vec<Edge>,
    pub(super) refused: u64,
    pub(super) optimized: Option<Optimized>,
}

impl Correction {
    /// The corrected poses of the key scans.
    #[must_use]
    pub fn poses(&self) -> &[Pose] {
        &self.poses
    }

    /// The new loops.
    #[must_use]
    pub fn loops(&self) -> &[Edge] {
        &self.loops
    }
}

impl Task {
    pub(super) fn new(keys: Vec<Key>, poses: Vec<Pose>, edges: Vec<Edge>, first: usize) -> Self {
        Self {
            keys,
            poses,
            edges,
            first,
        }
    }

    /// The key scans.
    #[must_use]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Looks for loops of the new key scans, and optimizes all poses if there are any.
    #[must_use]
    pub fn run(mut self) -> Correction {
        let mut correction = Correction::default();
        let mut linked = self.last_linked();
        for index in self.first..self.keys.len() {
            for old in self.candidates(index) {
                match self.close(index, old, linked) {
                    Some(edge) => {
                        linked = Some(index);
                        correction.loops.push(edge);
                    }
                    None => correction.refused += 1,
                }
            }
        }
        if !correction.loops.is_empty() {
            self.edges.extend(&correction.loops);
            correction.optimized = Some(graph::optimize(&mut self.poses, &self.edges));
        }
        correction.poses = self.poses;
        correction
    }

    /// The last key scan with a loop.
    fn last_linked(&self) -> Option<usize> {
        let loops = self.edges.iter().filter(|edge| edge.is_loop);
        loops.map(|edge| edge.to).max()
    }

    /// Older key scans near a new one, the best first.
    fn candidates(&self, index: usize) -> Vec<usize> {
        let here = self.poses[index];
        let cost = |old: usize| {
            let other = here.local_pose(self.poses[old]);
            let distance_m = other.at.length();
            let turn = amber_map::wrap(other.heading).abs();
            (distance_m <= MAX_DISTANCE_M).then_some((distance_m + TURN_M * turn, old))
        };
        let mut near: Vec<(f64, usize)> = (0..index.saturating_sub(MIN_GAP))
            .filter_map(cost)
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut chosen: Vec<usize> = Vec::new();
        for (_, old) in near {
            if chosen.len() < MAX_LOOPS && chosen.iter().all(|other| other.abs_diff(old) >= APART) {
                chosen.push(old);
            }
        }
        chosen
    }

    /// Fits a key scan to an older place.
    fn close(&self, index: usize, old: usize, linked: Option<usize>) -> Option<Edge> {
        let frame = self.poses[old];
        let surfaces: Vec<Surface> = around(old, index.saturating_sub(MIN_GAP))
            .flat_map(|near| {
                let pose = frame.local_pose(self.poses[near]);
                self.keys[near]
                    .surfaces
                    .iter()
                    .map(move |surface| surface.moved(pose))
            })
            .collect();
        let reference = Reference::new(&surfaces);
        let scan = &self.keys[index].surfaces;
        let way_m = self.way_m(linked.unwrap_or(old).max(old), index);
        let window = Window {
            pose: frame.local_pose(self.poses[index]),
            reach_m: (DRIFT_M + DRIFT_PER_M * way_m).min(MAX_DRIFT_M),
            reach_rad: (DRIFT_RAD + DRIFT_RAD_PER_M * way_m).min(MAX_DRIFT_RAD),
        };
        let found = Tables::new(&reference, window.pose.at).search(scan, &window)?;
        if found.second > MAX_SECOND * found.score {
            return None;
        }
        let fit = reference.align(scan, found.pose, None)?;
        let off = found.pose.local_pose(fit.pose);
        let fits = fit.overlap >= MIN_OVERLAP
            && off.at.length() <= MAX_FIT_M
            && off.heading.abs() <= MAX_FIT_RAD;
        fits.then(|| Edge {
            from: old,
            to: index,
            motion: fit.pose,
            information: in_frame_of(
                Pose::default(),
                &fit.information,
                MIN_SIGMA_M,
                MIN_SIGMA_RAD,
            ),
            is_loop: true,
        })
    }

    /// The way between two key scans.
    fn way_m(&self, from: usize, to: usize) -> f64 {
        let ways = self.poses[from.min(to)..=to].windows(2);
        ways.map(|pair| pair[1].at.minus(pair[0].at).length()).sum()
    }
}

/// The key scans around one, before a limit.
pub(super) fn around(index: usize, limit: usize) -> std::ops::Range<usize> {
    index.saturating_sub(AROUND)..(index + AROUND + 1).min(limit.max(index + 1))
}
