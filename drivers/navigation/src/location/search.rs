//! The search for the pose while it is unknown, and the doubts while it is known. PURE.
//!
//! While the pose is unknown, a sweep tries the whole map, and the places that fit are rivals until one
//! is left. A known pose is doubted only for evidence that a closed door or a person does not give: the
//! laser sees through walls of the map, or the map explains little, *and* another place explains scan
//! after scan clearly better. A scan that has little in common with the last one, or with the last one
//! that fitted, shows that somebody has carried the robot.

use std::sync::Arc;
use std::time::Duration;

use amber_map::{Point, Pose, wrap};

use super::rivals::{Rivals, View, is_same};
use super::seen::Seen;
use super::sweep::{self, Sweep, best_of};
use super::{Cluster, Estimate, Hint, Location, UNDECIDED_QUALITY, diagonal, evenly};
use crate::scan::Scan;

/// The number of poses that an update tries while the pose is unknown, and while it is doubted.
const SEARCHED: usize = 20_000;
const SEARCHED_IN_DOUBT: usize = 5_000;
/// A place must be this probable, and have this score, to become the known pose.
const DECIDE_PROBABILITY: f64 = 0.99;
const DECIDE_SCORE: f64 = 0.6;
/// The logarithm of the odds for a pose that another system has measured.
const MEASURED_PRIOR: f64 = 6.0;
/// The same for the last known pose.
const LAST_PRIOR: f64 = 1.0;
/// A known pose is doubted if the map forbids this part of the scans, on average, ...
const DOUBT_THROUGH: f64 = 0.08;
/// ...or if their average score is below this.
const DOUBT_SCORE: f64 = 0.6;
/// It is given up if another place has a score that is better by this...
const LOST_BY: f64 = 0.2;
/// ...for so many updates in a row.
const LOST_UPDATES: u32 = 5;
/// How fast the averages follow the last scan.
const SPEED: f64 = 0.3;
/// The robot was carried if two scans have less than this part in common...
const CARRIED_PART: f64 = 0.35;
/// ...although the second is at most so much later.
const LAST_SCAN: Duration = Duration::from_secs(3);
/// Less motion than this is none.
const AT_REST_M: f64 = 0.01;
const AT_REST_RAD: f64 = 0.01;
/// The errors of a pose that has just been found.
pub(super) const FOUND_SIGMA_M: f64 = 0.03;
pub(super) const FOUND_SIGMA_RAD: f64 = 0.03;
/// If nothing shows that the robot was carried, it is elsewhere only when it has seen more than one side
/// of its surroundings: after a way of this length, or a turn of this angle.
const LOOKED_M: f64 = 0.3;
const LOOKED_RAD: f64 = 1.0;
/// After an interruption, a scan with this score shows that the robot is still where it was.
const SAME_SCORE: f64 = 0.8;
/// A scan fits the known pose if its score is not lower than the average less this.
const FITTED_SCORE: f64 = 0.15;
/// A hint stands for so many poses along each axis.
const HINT_STEPS: i32 = 4;

/// The state of search and doubts.
#[derive(Clone, Debug)]
pub(super) struct Doubts {
    pub(super) rivals: Rivals,
    pub(super) sweep: Sweep,
    /// Poses that were measured or suggested since the last scan.
    pub(super) measured: Vec<Pose>,
    pub(super) hint: Option<Hint>,
    /// The average score of the known pose, and the average part of the scans that the map forbids.
    pub(super) score: f64,
    through: f64,
    lost_for: u32,
    /// No scan came for a while, so nobody knows whether the robot was carried.
    is_interrupted: bool,
    /// The pose that was given up, if nothing shows that the robot was carried.
    left: Option<Left>,
    /// The last scan, and the last one that the known pose explained.
    last: Option<Arc<Seen>>,
    fitted: Option<Arc<Seen>>,
}

impl Default for Doubts {
    fn default() -> Self {
        Self {
            rivals: Rivals::default(),
            sweep: Sweep::default(),
            measured: Vec::new(),
            hint: None,
            score: 1.0,
            through: 0.0,
            lost_for: 0,
            is_interrupted: false,
            left: None,
            last: None,
            fitted: None,
        }
    }
}

/// A pose that was given up, moved by the wheels since.
#[derive(Clone, Copy, Debug)]
struct Left {
    pose: Pose,
    way_m: f64,
    turned_rad: f64,
    /// The current scan shows that the robot is not there: it has little in common with the last one
    /// that fitted, or the laser sees through walls of the map.
    is_disproved: bool,
}

impl Left {
    fn follow(&mut self, motion: Pose) {
        self.pose = self.pose.global_pose(motion);
        self.way_m += motion.at.length();
        self.turned_rad += wrap(motion.heading).abs();
    }

    /// Whether this place can be the right one. A closed door that fills the view looks like a wall in
    /// another room.
    fn permits(&self, pose: Pose) -> bool {
        let has_looked = self.way_m >= LOOKED_M || self.turned_rad >= LOOKED_RAD;
        has_looked || self.is_disproved || is_same(self.pose, pose)
    }
}

impl Doubts {
    /// The pose is known.
    pub(super) fn settle(&mut self) {
        *self = Self {
            last: self.last.take(),
            ..Self::default()
        };
    }

    fn are_strong(&self) -> bool {
        self.through > DOUBT_THROUGH || self.score < DOUBT_SCORE
    }
}

impl Location {
    /// Gives up the known pose if the robot was carried while its wheels stood still. A pose that is given
    /// up for other reasons stays possible, until the scan has little in common with what was seen there.
    pub(super) fn notice_carrying(&mut self, scan: &Scan) {
        let seen = Arc::new(Seen::new(scan));
        let last = self.doubts.last.replace(Arc::clone(&seen));
        if !self.is_decided() {
            let is_far = self.doubts.fitted.as_ref().is_some_and(|fitted| {
                let motion = self.odometry.motion(fitted.time, seen.time);
                let is_near = motion.path_m < LOOKED_M && motion.turns_rad < LOOKED_RAD;
                is_near && self.is_elsewhere(fitted, &seen)
            });
            if let Some(left) = &mut self.doubts.left {
                left.is_disproved = is_far;
            }
            return;
        }
        let Some(last) = last else {
            return;
        };
        let motion = self.odometry.motion(last.time, seen.time);
        let is_at_rest = motion.path_m < AT_REST_M && motion.turns_rad < AT_REST_RAD;
        let is_late = seen.time.saturating_sub(last.time) > LAST_SCAN;
        self.doubts.is_interrupted |= is_late;
        if is_at_rest && !is_late && self.is_elsewhere(&last, &seen) {
            self.lose();
            self.doubts.left = None;
        }
    }

    /// Whether the wheels do not explain how different two scans are.
    fn is_elsewhere(&self, before: &Seen, now: &Seen) -> bool {
        let motion = self.odometry.motion(before.time, now.time).pose;
        let mount = self.config.mount;
        let moved = mount.local_pose(motion.global_pose(mount));
        let common = before.common(now, moved, self.config.min_beams);
        common.is_some_and(|part| part < CARRIED_PART)
    }

    /// Gives up the known pose.
    pub(super) fn lose(&mut self) {
        self.agreeing = 0;
        self.counters.lost += 1;
        self.doubts.sweep.restart();
        if let Some(last) = self.estimate {
            self.doubts.measured.clear();
            self.last_known = Some(last.pose);
            self.doubts.left = (!self.doubts.is_interrupted).then_some(Left {
                pose: last.pose,
                way_m: 0.0,
                turned_rad: 0.0,
                is_disproved: false,
            });
        }
    }

    /// How well the known pose explains a scan, and whether another one does it so much better that this
    /// one is given up. `motion` is that since the last scan.
    pub(super) fn doubt(&mut self, pose: Pose, motion: Pose, points: &[Point]) {
        let view = View::new(&self.map, &self.config, points);
        let verdict = view.verdict(pose);
        let doubts = &mut self.doubts;
        doubts.is_interrupted &= verdict.score() < SAME_SCORE;
        if verdict.score() >= doubts.score - FITTED_SCORE && verdict.through <= DOUBT_THROUGH {
            doubts.fitted.clone_from(&doubts.last);
        }
        doubts.score += SPEED * (verdict.score() - doubts.score);
        doubts.through += SPEED * (verdict.through - doubts.through);
        if !doubts.are_strong() {
            doubts.lost_for = 0;
            doubts.rivals.clear();
            doubts.sweep.restart();
            return;
        }
        doubts.rivals.follow(motion, &view);
        let few = evenly(points, sweep::BEAMS);
        let found = (doubts.sweep).run(&self.map, &self.blurred, points, &few, SEARCHED_IN_DOUBT);
        doubts.rivals.add(&found, 0.0, &view);
        let score = doubts.score;
        let is_better = doubts.rivals.places().iter().any(|place| {
            place.is_sure() && !is_same(place.pose, pose) && place.score > score + LOST_BY
        });
        doubts.lost_for = if is_better { doubts.lost_for + 1 } else { 0 };
        if doubts.lost_for >= LOST_UPDATES {
            self.lose();
        }
    }

    /// Looks for the pose.
    pub(super) fn search(&mut self, time: Duration, points: &[Point]) -> Option<Estimate> {
        let since = self.filter_time.unwrap_or(time);
        let motion = self.odometry.motion(since, time).pose;
        self.filter_time = Some(time);
        let few = evenly(points, sweep::BEAMS);
        let view = View::new(&self.map, &self.config, points);
        let doubts = &mut self.doubts;
        doubts.rivals.follow(motion, &view);
        if let Some(left) = &mut doubts.left {
            left.follow(motion);
            left.is_disproved |= view.verdict(left.pose).through > DOUBT_THROUGH;
        }
        let measured = std::mem::take(&mut doubts.measured);
        if !measured.is_empty() {
            doubts.left = None;
        }
        doubts.rivals.add(&measured, MEASURED_PRIOR, &view);
        if let Some(last) = self.last_known.take() {
            doubts
                .rivals
                .add(&[last.global_pose(motion)], LAST_PRIOR, &view);
        }
        if let Some(hint) = doubts.hint.take() {
            let near = best_of(&self.map, &self.blurred, &few, around(hint));
            doubts.rivals.add(&near, 0.0, &view);
        }
        self.hinted = self.hinted.saturating_sub(1);
        if self.hinted == 0 {
            let found = (doubts.sweep).run(&self.map, &self.blurred, points, &few, SEARCHED);
            self.counters.injected += found.len() as u64;
            doubts.rivals.add(&found, 0.0, &view);
        }
        let best = *doubts.rivals.best()?;
        let verdict = view.verdict(best.pose);
        let probability = doubts.rivals.probability();
        let is_complete = doubts.sweep.rounds > 0 || self.hinted > 0;
        let is_sure = is_complete
            && best.is_sure()
            && (doubts.left).is_none_or(|left| left.permits(best.pose))
            && probability >= DECIDE_PROBABILITY
            && best.score >= DECIDE_SCORE;
        self.agreeing = if is_sure { self.agreeing + 1 } else { 0 };
        let decided = self.is_decided();
        let cluster = Cluster {
            pose: best.pose,
            mass: probability,
            covariance: diagonal([
                FOUND_SIGMA_M.powi(2),
                FOUND_SIGMA_M.powi(2),
                FOUND_SIGMA_RAD.powi(2),
            ]),
        };
        if decided {
            self.filter
                .place(best.pose, FOUND_SIGMA_M, FOUND_SIGMA_RAD, &mut self.random);
            self.match_average = verdict.matching;
            self.hinted = 0;
            self.doubts.settle();
            self.doubts.score = best.score;
        } else {
            self.filter.show(self.doubts.rivals.poses());
        }
        let quality = match decided {
            true => self.quality(&cluster, verdict.score()),
            false => UNDECIDED_QUALITY * probability * best.score.max(0.0),
        };
        self.estimate = Some(Estimate {
            time,
            pose: best.pose,
            quality,
            matching: verdict.matching,
            mass: probability,
            covariance: cluster.covariance,
            decided,
        });
        self.estimate
    }
}

/// Poses that a hint stands for.
fn around(hint: Hint) -> impl Iterator<Item = Pose> {
    let steps = || -HINT_STEPS..=HINT_STEPS;
    let step = move |sigma: f64, index: i32| 2.0 * sigma * f64::from(index) / f64::from(HINT_STEPS);
    steps().flat_map(move |x| {
        steps().flat_map(move |y| {
            steps().map(move |turn| Pose {
                at: hint
                    .pose
                    .at
                    .plus(Point::new(step(hint.sigma_m, x), step(hint.sigma_m, y))),
                heading: wrap(hint.pose.heading + step(hint.sigma_rad, turn)),
            })
        })
    })
}
