//! The places where the robot may be, and how probable each is. PURE.
//!
//! Each place is a pose that follows the odometry, is fitted to each scan, and has a score: the part
//! of the scan that the map explains, less the part that it forbids. While the robot stands, all scans
//! are one view of the room, so they count once; each new view adds to what is known. From the sums
//! follow the probabilities of the places, of which exactly one is right.

use amber_map::{Point, Pose, wrap};

use super::map::LocationMap;
use super::refine::refine;
use super::{Config, evenly};
use crate::likelihood::{Verdict, verdict_of};

/// So many beams tell how well a place fits.
const BEAMS: usize = 120;
/// So many fit it to the map.
const FIT_BEAMS: usize = 60;
/// The logarithm of the odds between two places whose scores differ by 1, for one view: as if a view
/// had so many independent beams.
const WEIGHT: f64 = 60.0;
/// How fast the score follows that of the last scan.
const SPEED: f64 = 0.4;
/// Less probable places are forgotten.
const FORGOTTEN_LOG: f64 = -14.0;
/// The maximum number of places.
const MAX_PLACES: usize = 24;
/// Poses this close to each other are one place.
const SAME_M: f64 = 0.2;
const SAME_RAD: f64 = 0.2;
/// A fit may move a place by this much.
const FIT_M: f64 = 0.3;
const FIT_RAD: f64 = 0.25;
/// The view is new after a motion by this much.
const VIEW_M: f64 = 0.15;
const VIEW_RAD: f64 = 0.2;
/// Below this score, the beams may have been fitted to the far side of a wall of about this
/// thickness.
const SIDE_SCORE: f64 = 0.9;
const WALL_M: f64 = 0.08;
const SIDE_GAIN: f64 = 0.02;
/// Places that are worse than the best one by this are not looked at more closely. A fit to the far sides
/// of walls can cost the right place half of its score.
const HOPELESS: f64 = 0.6;
/// The score of a place counts after so many scans.
const SURE_SCANS: u32 = 3;

/// A scan for all places.
#[derive(Clone, Debug)]
pub(super) struct View<'a> {
    pub(super) map: &'a LocationMap,
    /// Some points of the scan, and fewer of them for fits.
    points: Vec<Point>,
    few: Vec<Point>,
    /// The position of the scanner.
    laser: Point,
    sigma_m: f64,
}

/// A place where the robot may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) pose: Pose,
    /// The average score of the scans of this view.
    pub(super) score: f64,
    /// What earlier views say.
    log: f64,
    scans: u32,
}

/// All places.
#[derive(Clone, Debug, Default)]
pub(super) struct Rivals {
    /// The best first.
    places: Vec<Place>,
    way_m: f64,
    turned_rad: f64,
}

impl Place {
    fn sum(&self) -> f64 {
        self.log + WEIGHT * self.score
    }

    /// Whether its score is that of several scans.
    pub(super) fn is_sure(&self) -> bool {
        self.scans >= SURE_SCANS
    }
}

impl<'a> View<'a> {
    pub(super) fn new(map: &'a LocationMap, config: &Config, points: &[Point]) -> Self {
        Self {
            map,
            points: evenly(points, BEAMS),
            few: evenly(points, FIT_BEAMS),
            laser: config.mount.at,
            sigma_m: config.sharp.sigma_m,
        }
    }

    pub(super) fn verdict(&self, pose: Pose) -> Verdict {
        verdict_of(
            &self.map.field,
            pose,
            self.laser,
            &self.points,
            self.sigma_m,
        )
    }

    fn score(&self, pose: Pose) -> f64 {
        match self.map.free.is_free(&self.map.field, pose.at) {
            true => self.verdict(pose).score(),
            false => -1.0,
        }
    }

    /// The pose fitted to the scan, and its score.
    fn fit(&self, start: Pose) -> (Pose, f64) {
        let fit = refine(&self.map.field, start, &self.few, self.sigma_m);
        let fitted = fit.map_or(start, |fit| fit.pose);
        let way = fitted.at.minus(start.at).length();
        let turn = wrap(fitted.heading - start.heading).abs();
        let pose = match way <= FIT_M && turn <= FIT_RAD {
            true => Pose {
                heading: wrap(fitted.heading),
                ..fitted
            },
            false => start,
        };
        (pose, self.score(pose))
    }

    /// The best of a fitted pose and those at the other sides of walls.
    fn on_the_right_side(&self, mut best: (Pose, f64)) -> (Pose, f64) {
        if best.1 >= SIDE_SCORE {
            return best;
        }
        for (ahead, left) in [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)] {
            let way = Pose::new(ahead * WALL_M, left * WALL_M, 0.0);
            let other = self.fit(best.0.global_pose(way));
            if other.1 > best.1 + SIDE_GAIN {
                best = other;
            }
        }
        best
    }
}

impl Rivals {
    /// Forgets all places.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The best place.
    pub(super) fn best(&self) -> Option<&Place> {
        self.places.first()
    }

    /// The places, the best first.
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// The robot has moved, and a scan shows what is around it.
    pub(super) fn follow(&mut self, motion: Pose, view: &View<'_>) {
        self.way_m += motion.at.length();
        self.turned_rad += wrap(motion.heading).abs();
        let is_new = self.way_m >= VIEW_M || self.turned_rad >= VIEW_RAD;
        if is_new {
            (self.way_m, self.turned_rad) = (0.0, 0.0);
        }
        for place in &mut self.places {
            let (pose, score) = view.fit(place.pose.global_pose(motion));
            place.pose = pose;
            if is_new {
                place.log = place.sum();
                place.score = score;
                place.scans = place.scans.max(1);
            } else {
                place.score += SPEED * (score - place.score);
            }
            place.scans = place.scans.saturating_add(1);
        }
        self.sort();
    }

    /// Adds places. `prior` is the logarithm of the odds that somebody knows better.
    pub(super) fn add(&mut self, poses: &[Pose], prior: f64, view: &View<'_>) {
        let fits: Vec<(Pose, f64)> = poses.iter().map(|start| view.fit(*start)).collect();
        let scores = fits.iter().map(|(_, score)| *score);
        let scores = scores.chain(self.places.iter().map(|place| place.score));
        let best = scores.fold(f64::NEG_INFINITY, f64::max);
        let mut known: Vec<Place> = Vec::new();
        for fit in fits {
            if fit.1 < best - HOPELESS {
                continue;
            }
            let (pose, score) = view.on_the_right_side(fit);
            known.push(Place {
                pose,
                score,
                log: 0.0,
                scans: 1,
            });
        }
        // Without a past, a place is as good as the best one was, relative to its present score.
        let best_log = self.places.first().map_or(0.0, |best| best.log);
        for place in &mut known {
            place.log = best_log + prior;
        }
        self.places.extend(known);
        self.sort();
    }

    fn sort(&mut self) {
        self.places.sort_by(|a, b| b.sum().total_cmp(&a.sum()));
        let mut kept: Vec<Place> = Vec::new();
        for place in &self.places {
            let best = kept.first().map_or(place.sum(), Place::sum);
            let is_known = kept
                .iter_mut()
                .find(|other| is_same(other.pose, place.pose));
            if let Some(known) = is_known {
                known.scans = known.scans.max(place.scans);
            } else if kept.len() < MAX_PLACES && place.sum() - best > FORGOTTEN_LOG {
                kept.push(*place);
            }
        }
        let zero = kept.first().map_or(0.0, |best| best.log);
        for place in &mut kept {
            place.log -= zero;
        }
        self.places = kept;
    }

    /// The poses with their probabilities, if one of them is right.
    pub(super) fn poses(&self) -> impl Iterator<Item = (Pose, f64)> + '_ {
        let probability = self.probability();
        let best = self.places.first().map_or(0.0, Place::sum);
        let part = move |place: &Place| (place.pose, probability * (place.sum() - best).exp());
        self.places.iter().map(part)
    }

    /// The probability of the best place, if one of them is right.
    pub(super) fn probability(&self) -> f64 {
        let Some(best) = self.places.first() else {
            return 0.0;
        };
        let odds = self
            .places
            .iter()
            .map(|place| (place.sum() - best.sum()).exp());
        1.0 / odds.sum::<f64>()
    }
}

/// Whether two poses are one place.
pub(super) fn is_same(a: Pose, b: Pose) -> bool {
    a.at.minus(b.at).length() < SAME_M && wrap(a.heading - b.heading).abs() < SAME_RAD
}
