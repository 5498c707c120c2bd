//! The pose of the robot: a particle filter with scans and wheel speeds. PURE.
//!
//! ```text
//!   wheel speeds ──> odometry ──────┐ motion since the last scan
//!                       │           v
//!   scan ──> queue ──> deskew ──> predict, weigh ──> heaviest cluster ──> fit to the map ──> estimate
//!                                   ^      │
//!                                   └ resample <── search for poses, while the match is bad
//! ```
//!
//! [`Location`] takes measurements in any order of arrival and never waits: [`Location::handle_wheels`]
//! and [`Location::handle_scan`] only store. [`Location::update`] computes the estimate for at most
//! one scan, as soon as the wheel speeds for its time are there or have been waited for long enough;
//! [`Location::next_timeout`] tells when that is. [`Location::estimate`] and [`Location::pose_at`]
//! answer at once.
//!
//! An estimate is the pose in the middle of a scan, so it has a time. It is *decided* if one pose
//! has explained the scans for a while; until then, and when the robot is lost, the quality stays
//! below 0.3.

pub mod bias;
pub mod config;
pub mod direction;
pub mod estimate;
pub mod filter;
pub mod map;
pub mod motion;
pub mod particles;
pub mod refine;
mod rivals;
mod search;
mod seen;
mod sweep;

use std::collections::VecDeque;
use std::f64::consts::FRAC_PI_8;
use std::time::Duration;

use amber_map::{Point, Pose, wrap};

use self::bias::Biases;
pub use self::config::Config;
use self::estimate::{Cluster, heaviest};
use self::filter::Filter;
pub use self::map::LocationMap;
use self::particles::Particle;
use self::refine::{Matrix, invert, refine};
use self::search::Doubts;
use crate::deskew::deskew;
use crate::kinematics::{SkidSteer, Wheels};
use crate::likelihood::{Likelihood, Verdict, verdict_of};
use crate::odometry::Odometry;
use crate::random::gaussian;
use crate::scan::Scan;
use crate::sight::{Pace, Sight, View};

/// Scans that wait for odometry; the oldest is dropped.
const MAX_SCANS: usize = 4;
/// Less motion than this is none: 2 mm and 0.1 degrees.
const STILL_M: f64 = 0.002;
const STILL_RAD: f64 = 0.001_7;
/// At rest, a match that is worse by this factor is news.
const STILL_MATCH: f64 = 0.8;
/// So is a score that is worse by this.
const STILL_SCORE: f64 = 0.15;
/// A match like this gives full quality: beams that hit no wall of the map are normal.
const GOOD_MATCH: f64 = 0.8;
/// A worse match is no reason to decide for a pose.
const DECIDE_MATCH: f64 = 0.6;
/// The average match below which a decided pose is doubted.
const LOST_MATCH: f64 = 0.45;
/// Below this score, the beams may have been fitted to the wrong side of a wall...
const SIDE_SCORE: f64 = 0.9;
/// ...of about this thickness. The right side is better by this.
const WALL_M: f64 = 0.08;
const SIDE_GAIN: f64 = 0.05;
/// Fits take time: one scan in so many is compared with the other sides, and one whose score is worse than
/// the average by this.
const SIDE_EVERY: u64 = 4;
const SIDE_WORSE: f64 = 0.05;
/// How fast the average of the match follows it.
const MATCH_SPEED: f64 = 0.3;
/// So many updates in a row must agree before a pose is decided.
const DECIDE_UPDATES: u32 = 3;
/// While undecided, the quality stays below that of any known pose.
const UNDECIDED_QUALITY: f64 = 0.29;
/// The fit may move the pose of the cluster by this much.
const FIT_M: f64 = 0.2;
const FIT_RAD: f64 = 0.2;
/// One particle in this many is placed near the fitted pose.
const FITTED_ONE_IN: usize = 20;
const FITTED_SIGMA_M: f64 = 0.01;
const FITTED_SIGMA_RAD: f64 = 0.01;
/// One particle in this many is placed near a pose that another system has measured.
const MEASURED_ONE_IN: usize = 10;
/// After a hint, other poses are searched only after so many updates. The robot may also be this far
/// from it.
const HINT_UPDATES: u32 = 20;
const HINT_REACH_M: f64 = 0.3;
/// The covariance of an estimate is at least this: 1 mm and 0.06 degrees.
const MIN_VARIANCE: [f64; 3] = [1e-6, 1e-6, 1e-6];

/// A pose of the robot with its quality.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The time of the pose.
    pub time: Duration,
    pub pose: Pose,
    /// 0 to 1: below 0.3 while the pose is not known, above 0.9 while it is known well.
    pub quality: f64,
    /// The part of the scan that the map explains at this pose, 0 to 1; see
    /// [`match_of`](crate::likelihood::match_of).
    pub matching: f64,
    /// The part of all particles, by weight, in the cluster of this pose, 0 to 1.
    pub mass: f64,
    /// The covariance of x, y and heading: m², m·rad, rad².
    pub covariance: Matrix,
    /// Whether one pose has explained the scans for a while.
    pub decided: bool,
}

/// Where the robot is, as somebody says, with standard deviations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hint {
    pub pose: Pose,
    /// The error of the position in metres.
    pub sigma_m: f64,
    /// The error of the heading in radians.
    pub sigma_rad: f64,
}

/// Counts of events since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Scans that gave an estimate.
    pub scans: u64,
    /// Scans dropped because too many waited.
    pub scans_dropped: u64,
    /// Scans dropped because a later one was used before, or somebody has since said where the robot is.
    pub scans_late: u64,
    /// Scans with too few valid beams, and those of a blind laser.
    pub scans_blind: u64,
    /// Scans used without complete odometry.
    pub scans_without_odometry: u64,
    /// Samples of wheel speeds that were refused.
    pub speeds_refused: u64,
    /// Poses measured by another system.
    pub poses: u64,
    /// Poses inserted by the search.
    pub injected: u64,
    /// How often a decided pose was lost.
    pub lost: u64,
}

/// The localization of one robot in one map.
#[derive(Clone, Debug)]
pub struct Location {
    config: Config,
    map: LocationMap,
    sharp: Likelihood,
    blurred: Likelihood,
    odometry: Odometry,
    scans: VecDeque<Scan>,
    /// For so many updates, only poses near the hint count.
    hinted: u32,
    /// The time of the last hint: older scans may show another place.
    hinted_at: Duration,
    sight: Sight,
    view: View,
    filter: Filter,
    biases: Biases,
    /// The time of the particles.
    filter_time: Option<Duration>,
    estimate: Option<Estimate>,
    doubts: Doubts,
    /// The pose that was known until now.
    last_known: Option<Pose>,
    match_average: f64,
    agreeing: u32,
    counters: Counters,
    random: fastrand::Rng,
}

impl Location {
    /// Creates a localization that does not know where the robot is.
    #[must_use]
    pub fn new(map: LocationMap, config: Config) -> Self {
        let mut random = fastrand::Rng::with_seed(config.seed);
        Self {
            sharp: Likelihood::new(config.sharp, &map.field),
            blurred: Likelihood::new(config.blurred, &map.field),
            odometry: Odometry::new(SkidSteer {
                track_m: config.track_m,
                ..SkidSteer::default()
            }),
            scans: VecDeque::new(),
            hinted: 0,
            hinted_at: Duration::ZERO,
            sight: Sight::new(config.large_rooms),
            view: View::Clear,
            filter: Filter::everywhere(&map, config.size, &mut random),
            biases: Biases::new(&map.walls),
            filter_time: None,
            estimate: None,
            doubts: Doubts::default(),
            last_known: None,
            match_average: 0.0,
            agreeing: 0,
            counters: Counters::default(),
            random,
            config,
            map,
        }
    }

    /// Tells where the robot is at a time, with standard deviations.
    pub fn place(&mut self, time: Duration, pose: Pose, sigma_m: f64, sigma_rad: f64) {
        self.filter
            .place(pose, sigma_m, sigma_rad, &mut self.random);
        self.filter_time = Some(time);
        self.agreeing = DECIDE_UPDATES;
        self.doubts.settle();
        self.match_average = 1.0;
        self.estimate = Some(Estimate {
            time,
            pose,
            quality: GOOD_MATCH,
            matching: GOOD_MATCH,
            mass: 1.0,
            covariance: diagonal([sigma_m.powi(2), sigma_m.powi(2), sigma_rad.powi(2)]),
            decided: true,
        });
    }

    /// Stores the speeds of the wheels.
    pub fn handle_wheels(&mut self, time: Duration, wheels: Wheels) {
        if !self.odometry.handle_wheels(time, wheels) {
            self.counters.speeds_refused += 1;
        }
    }

    /// Another system has measured the pose, with standard deviations. It weighs the particles, and
    /// some particles move to it, so that it can also end a search. The next scan gives an estimate.
    pub fn handle_pose(&mut self, time: Duration, pose: Pose, sigma_m: f64, sigma_rad: f64) {
        let since = *self.filter_time.get_or_insert(time);
        let now = pose.global_pose(self.odometry.motion(time, since).pose);
        self.filter.weigh_by_pose(now, sigma_m, sigma_rad);
        let mut draw = |sigma: f64| sigma * gaussian(&mut self.random);
        let near: Vec<Pose> = (0..self.filter.particles().len() / MEASURED_ONE_IN)
            .map(|_| {
                Pose::new(
                    now.at.x + draw(sigma_m),
                    now.at.y + draw(sigma_m),
                    now.heading + draw(sigma_rad),
                )
            })
            .collect();
        self.filter.resample(&near, &mut self.random);
        if !self.is_decided() {
            self.doubts.measured = vec![now];
        }
        self.counters.poses += 1;
    }

    /// Somebody says where the robot is. The pose is known when the next scans agree. `false` if the
    /// robot cannot be there or nearby; then nothing changes.
    pub fn handle_hint(&mut self, time: Duration, hint: Hint) -> bool {
        let Hint { pose, sigma_m, .. } = hint;
        let reach_m = sigma_m.max(HINT_REACH_M);
        let around = (0..=16).map(|index| match index {
            0 => pose.at,
            _ => {
                let way = Point::new(reach_m, 0.0);
                pose.at.plus(way.turned(f64::from(index) * FRAC_PI_8))
            }
        });
        if !around
            .into_iter()
            .any(|at| self.map.free.is_free(&self.map.field, at))
        {
            return false;
        }
        self.filter_time = None;
        self.agreeing = 0;
        self.doubts.settle();
        self.doubts.hint = Some(hint);
        self.last_known = None;
        self.hinted = HINT_UPDATES;
        self.hinted_at = time;
        self.estimate = None;
        true
    }

    /// Stores a scan.
    pub fn handle_scan(&mut self, scan: Scan) {
        let place = self
            .scans
            .partition_point(|other| other.start <= scan.start);
        self.scans.insert(place, scan);
        if self.scans.len() > MAX_SCANS {
            self.scans.pop_front();
            self.counters.scans_dropped += 1;
        }
    }

    /// When [`Location::update`] will have something to do; at once if the time has passed.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let scan = self.scans.front()?;
        if self.has_odometry_for(scan) {
            Some(scan.end())
        } else {
            Some(scan.end() + self.config.wait)
        }
    }

    /// Computes the estimate for the oldest waiting scan, if it can be computed now.
    pub fn update(&mut self, now: Duration) -> Option<Estimate> {
        if self.next_timeout()? > now {
            return None;
        }
        let scan = self.scans.pop_front()?;
        let is_old = self.estimate.is_some_and(|last| scan.middle() <= last.time);
        if is_old || scan.start < self.hinted_at {
            self.counters.scans_late += 1;
            return None;
        }
        if !self.has_odometry_for(&scan) {
            self.counters.scans_without_odometry += 1;
        }
        self.use_scan(&scan)
    }

    /// The last estimate.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        self.estimate
    }

    /// The pose at another time: the last estimate, moved by odometry.
    #[must_use]
    pub fn pose_at(&self, time: Duration) -> Option<Pose> {
        let last = self.estimate?;
        let pose = last
            .pose
            .global_pose(self.odometry.motion(last.time, time).pose);
        Some(Pose {
            heading: wrap(pose.heading),
            ..pose
        })
    }

    /// What the last scan shows. [`View::Blind`] only after a while.
    #[must_use]
    pub fn view(&self, now: Duration) -> View {
        match (self.view, self.sight.pace(now)) {
            (View::Blind, Pace::Free | Pace::Crawl) => View::Clear,
            (view, _) => view,
        }
    }

    /// All particles; their weights sum up to 1.
    #[must_use]
    pub fn particles(&self) -> &[Particle] {
        self.filter.particles()
    }

    #[must_use]
    pub fn map(&self) -> &LocationMap {
        &self.map
    }

    /// The counts of events.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The memory of the map and the particles in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.map.bytes() + self.filter.bytes() + self.biases.bytes()
    }

    fn has_odometry_for(&self, scan: &Scan) -> bool {
        self.odometry
            .latest()
            .is_some_and(|latest| latest >= scan.end())
    }

    fn use_scan(&mut self, scan: &Scan) -> Option<Estimate> {
        let time = scan.middle();
        self.view = (self.sight).look(scan, self.config.mount, &self.odometry);
        let points = self.points(scan);
        if self.view == View::Blind || points.len() < self.config.min_beams {
            self.counters.scans_blind += 1;
            return None;
        }
        self.counters.scans += 1;
        self.notice_carrying(scan);
        if !self.is_decided() {
            return self.search(time, &points);
        }
        let fit_points = evenly(&points, self.config.fit_beams);
        let some = evenly(&points, self.config.beams);
        if let Some(same) = self.still(time, &some) {
            self.estimate = Some(same);
            self.doubt(same.pose, Pose::default(), &points);
            return self.checked();
        }
        let motion = match self.filter_time {
            Some(since) => self.odometry.motion(since, time).pose,
            None => Pose::default(),
        };
        self.move_particles(time);
        let model = (&self.sharp, &self.map.field);
        self.filter
            .weigh(&self.map, model, &some, self.config.sharpness);
        let cluster = self.best_cluster(time, &some)?;
        let (pose, covariance) = self.fit(&cluster, &fit_points);
        let verdict = self.verdict(pose, &some);
        let better = self.on_the_right_side(&cluster, verdict, &fit_points, &some);
        let is_better = better.is_some();
        let (pose, covariance, verdict) = better.unwrap_or((pose, covariance, verdict));
        let matching = verdict.matching;
        let pose = self.without_bias(pose, matching, &fit_points);
        let score = self.verdict(pose, &some).score();
        self.estimate = Some(Estimate {
            time,
            pose,
            quality: self.quality(&cluster, score),
            matching,
            mass: cluster.mass,
            covariance,
            decided: true,
        });
        self.doubt(pose, motion, &points);
        self.judge(matching);
        let mut inserted = self.inserted(pose);
        if is_better {
            let count = self.filter.particles().len() / MEASURED_ONE_IN;
            inserted.extend(std::iter::repeat_n(pose, count));
        }
        self.filter.resample(&inserted, &mut self.random);
        self.checked()
    }

    /// The heaviest cluster. If it is not at the expected place, and explains the scan no better than a pose
    /// there, the particles were misled, for example by a marker that was read wrongly.
    fn best_cluster(&mut self, time: Duration, points: &[Point]) -> Option<Cluster> {
        let cluster = heaviest(self.filter.particles())?;
        let expected = self.pose_at(time)?;
        let score = |pose| self.verdict(pose, points).score();
        if rivals::is_same(cluster.pose, expected) || score(cluster.pose) > score(expected) {
            return Some(cluster);
        }
        let (sigma_m, sigma_rad) = (search::FOUND_SIGMA_M, search::FOUND_SIGMA_RAD);
        self.filter
            .place(expected, sigma_m, sigma_rad, &mut self.random);
        let model = (&self.sharp, &self.map.field);
        self.filter
            .weigh(&self.map, model, points, self.config.sharpness);
        heaviest(self.filter.particles())
    }

    /// The estimate, unless the pose has just been given up.
    fn checked(&mut self) -> Option<Estimate> {
        if !self.is_decided()
            && let Some(estimate) = &mut self.estimate
        {
            estimate.decided = false;
            estimate.quality = estimate.quality.min(UNDECIDED_QUALITY);
        }
        self.estimate
    }

    /// The ends of valid beams in the frame of the robot in the middle of the scan.
    fn points(&self, scan: &Scan) -> Vec<Point> {
        let valid = self.config.min_range_m..=self.config.max_range_m;
        deskew(
            scan,
            &self.odometry,
            self.config.mount,
            scan.middle(),
            |distance_m| valid.contains(&distance_m),
        )
    }

    /// The last estimate with a new time, if the robot has not moved and the scan is not new either:
    /// the same errors must not be counted again and again.
    fn still(&self, time: Duration, points: &[Point]) -> Option<Estimate> {
        let (last, since) = (self.estimate?, self.filter_time?);
        let motion = self.odometry.motion(since, time);
        let moved =
            motion.path_m > STILL_M || motion.turns_rad > STILL_RAD || motion.unknown_s > 0.0;
        if moved || !last.decided || time >= since + self.config.idle {
            return None;
        }
        let verdict = self.verdict(last.pose, points);
        let is_same = verdict.matching >= STILL_MATCH * last.matching
            && verdict.score() >= self.doubts.score - STILL_SCORE;
        is_same.then_some(Estimate { time, ..last })
    }

    fn move_particles(&mut self, time: Duration) {
        if let Some(since) = self.filter_time {
            let motion = self.odometry.motion(since, time);
            let spread = self.config.motion.spread(&motion);
            self.filter.predict(&motion, spread, &mut self.random);
        }
        self.filter_time = Some(time);
    }

    /// The pose of a cluster, fitted to the map, and its covariance.
    fn fit(&self, cluster: &Cluster, points: &[Point]) -> (Pose, Matrix) {
        let fitted = refine(
            &self.map.field,
            cluster.pose,
            points,
            self.config.fit_width_m,
        );
        let Some(fitted) = fitted.filter(|fitted| {
            let way_m = fitted.pose.at.minus(cluster.pose.at).length();
            let turn = wrap(fitted.pose.heading - cluster.pose.heading);
            way_m <= FIT_M && turn.abs() <= FIT_RAD
        }) else {
            return (cluster.pose, cluster.covariance);
        };
        let pose = Pose {
            heading: wrap(fitted.pose.heading),
            ..fitted.pose
        };
        (pose, self.covariance(cluster, &fitted.information))
    }

    /// A pose nearby with a clearly better score, if that of the fitted one is not good: the beams may
    /// have been fitted to the far side of a wall, which looks the same to the distance field.
    fn on_the_right_side(
        &self,
        cluster: &Cluster,
        verdict: Verdict,
        fit_points: &[Point],
        points: &[Point],
    ) -> Option<(Pose, Matrix, Verdict)> {
        let score = verdict.score();
        let is_due = self.counters.scans.is_multiple_of(SIDE_EVERY)
            || score < self.doubts.score - SIDE_WORSE;
        if score >= SIDE_SCORE || !is_due || !self.is_decided() {
            return None;
        }
        let ways = [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)];
        ways.into_iter()
            .map(|(ahead, left)| {
                let way = Pose::new(ahead * WALL_M, left * WALL_M, 0.0);
                let beside = Cluster {
                    pose: cluster.pose.global_pose(way),
                    ..*cluster
                };
                let (pose, covariance) = self.fit(&beside, fit_points);
                (pose, covariance, self.verdict(pose, points))
            })
            .max_by(|a, b| a.2.score().total_cmp(&b.2.score()))
            .filter(|(.., found)| found.score() >= score + SIDE_GAIN)
    }

    /// The pose when the biases of walls are known, too. A pose that may be wrong must not teach
    /// them.
    fn without_bias(&mut self, pose: Pose, matching: f64, points: &[Point]) -> Pose {
        if !self.is_decided() || matching < DECIDE_MATCH {
            return pose;
        }
        let better = self.biases.fit(pose, self.config.mount.at, points);
        better.map_or(pose, |better| Pose {
            heading: wrap(better.heading),
            ..better
        })
    }

    /// Both sources of information together: the points, and the particles where the points say
    /// nothing, such as along a corridor.
    fn covariance(&self, cluster: &Cluster, information: &Matrix) -> Matrix {
        let mut from_particles = cluster.covariance;
        for (index, row) in from_particles.iter_mut().enumerate() {
            row[index] += MIN_VARIANCE[index];
        }
        let Some(mut sum) = invert(&from_particles) else {
            return from_particles;
        };
        let factor = 1.0 / self.config.fit_width_m.powi(2);
        for (row, other) in sum.iter_mut().zip(information) {
            for (value, other) in row.iter_mut().zip(other) {
                *value += factor * other;
            }
        }
        let mut covariance = invert(&sum).unwrap_or(from_particles);
        for (index, row) in covariance.iter_mut().enumerate() {
            row[index] += MIN_VARIANCE[index];
        }
        covariance
    }

    fn verdict(&self, pose: Pose, points: &[Point]) -> Verdict {
        let sigma_m = self.config.sharp.sigma_m;
        verdict_of(&self.map.field, pose, self.config.mount.at, points, sigma_m)
    }

    fn is_decided(&self) -> bool {
        self.agreeing >= DECIDE_UPDATES
    }

    /// Gives up a pose that no longer explains the scans.
    fn judge(&mut self, matching: f64) {
        self.match_average += MATCH_SPEED * (matching - self.match_average);
        if self.is_decided() && self.match_average < LOST_MATCH {
            self.lose();
        }
    }

    fn quality(&self, cluster: &Cluster, score: f64) -> f64 {
        let quality = cluster.mass * (score / GOOD_MATCH).clamp(0.0, 1.0);
        if self.is_decided() {
            quality
        } else {
            quality.min(UNDECIDED_QUALITY)
        }
    }

    /// Poses to add to the particles, near the fitted pose.
    fn inserted(&mut self, pose: Pose) -> Vec<Pose> {
        let mut draw = |sigma: f64| sigma * gaussian(&mut self.random);
        let near = self.filter.particles().len() / FITTED_ONE_IN;
        (0..near)
            .map(|_| {
                Pose::new(
                    pose.at.x + draw(FITTED_SIGMA_M),
                    pose.at.y + draw(FITTED_SIGMA_M),
                    pose.heading + draw(FITTED_SIGMA_RAD),
                )
            })
            .collect()
    }
}

/// About `count` of the points, evenly spaced.
fn evenly(points: &[Point], count: usize) -> Vec<Point> {
    if points.len() <= count || count == 0 {
        return points.to_vec();
    }
    let step = points.len() as f64 / count as f64;
    (0..count)
        .map(|index| points[((index as f64 + 0.5) * step) as usize])
        .collect()
}

fn diagonal(values: [f64; 3]) -> Matrix {
    let mut matrix = [[0.0; 3]; 3];
    for (index, value) in values.into_iter().enumerate() {
        matrix[index][index] = value;
    }
    matrix
}

#[cfg(test)]
mod tests;
