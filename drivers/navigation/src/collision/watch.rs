//! Detects that the robot is stuck, slips, or was hit. PURE.
//!
//! - **Stuck**: the wheels are told to turn but do not; or they turn, and a second later the laser
//!   sees everything where it was. Only objects that would look different after the motion count: a
//!   wall along the way looks the same in any case.
//! - **Slip**: the turn rate of the wheels differs from that of the gyroscope.
//! - **Bump**: the acceleration jumps.
//!
//! After a detection the wheels stop. A command in another direction passes at once, so that a
//! client can free the robot; the same command passes again after [`WatchConfig::hold`].
//!
//! The measured acceleration never changes the speed otherwise: the robot itself causes most of
//! it.

use std::collections::VecDeque;
use std::time::Duration;

use amber_map::{Point, Pose, Segment};

use crate::kinematics::Twist;
use crate::odometry::Odometry;
use crate::scan::{Beam, Scan};

/// Wheels that turn slower than this part of what they should are blocked.
const BLOCKED_PART: f64 = 0.3;
/// Slower commands are not watched.
const MIN_FORWARD_M_S: f64 = 0.04;
const MIN_TURN_RAD_S: f64 = 0.2;
/// The wheels must have moved this far before the laser can contradict them.
const MIN_WAY_M: f64 = 0.1;
/// Every eighth beam of a new scan is compared with all beams of the old one, or more of them if a
/// scan has only a few hundred: at least so many.
const EVERY: usize = 8;
const COMPARED: usize = 64;
/// A point is where an old scan saw something if it is this near to its outline...
const NEAR_M: f64 = 0.03;
/// ...or this part of its distance: three standard deviations of the noise.
const NEAR: f64 = 0.03;
/// A point that is this much farther than that from the outline is somewhere else.
const ELSEWHERE: f64 = 2.0;
/// The outline is looked up within so many beams around the direction of a point.
const NEIGHBOURS: usize = 3;
/// Neighbouring beams farther apart than this are on different objects. On a wall 0.2 m beside the
/// robot they are 0.25 m apart at a distance of 3 m.
const SAME_OBJECT_M: f64 = 0.3;
/// The robot stands still if at least so many of the compared beams say so...
const MIN_BEAMS: usize = 10;
/// ...and so many times more than say that it has moved.
const MAJORITY: usize = 3;
/// The maximum number of remembered scans: 40 per second for the window.
const MAX_SCANS: usize = 80;

/// The configuration of a [`Watch`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WatchConfig {
    /// The robot is stuck if it does not move for this long.
    pub stuck: Duration,
    /// The wheels slip if they disagree with the gyroscope for this long...
    pub slip: Duration,
    /// ...by more than this, in rad/s.
    pub slip_rad_s: f64,
    /// A jump of the acceleration by more than this is a bump, in m/s².
    pub bump_m_s2: f64,
    /// How long the wheels stop.
    pub hold: Duration,
}

impl Default for WatchConfig {
    fn default() -> Self {
        Self {
            stuck: Duration::from_secs(1),
            slip: Duration::from_millis(500),
            slip_rad_s: 0.5,
            // 600 mG.
            bump_m_s2: 5.9,
            hold: Duration::from_secs(1),
        }
    }
}

/// A reading of the inertial sensors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Imu {
    /// The turn rate in rad/s, counter-clockwise.
    pub turn_rad_s: f64,
    /// The acceleration ahead in m/s².
    pub ahead_m_s2: f64,
    /// The acceleration to the left in m/s².
    pub left_m_s2: f64,
}

/// A detection of the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The robot does not move as its wheels should.
    Stuck,
    /// The wheels turn differently from what the gyroscope measures.
    Slip,
    /// The robot was hit.
    Bump,
}

/// Compares what the robot should do with what its sensors say.
#[derive(Clone, Debug)]
pub struct Watch {
    config: WatchConfig,
    /// Since when the wheels should turn.
    turns_since: Option<Duration>,
    imu: Option<Imu>,
    blocked_since: Option<Duration>,
    slips_since: Option<Duration>,
    scans: VecDeque<SeenPoints>,
    trouble: Option<(Duration, Trouble, Twist)>,
    sent: Twist,
}

impl Watch {
    /// Creates a watch that has seen nothing yet.
    #[must_use]
    pub fn new(config: WatchConfig) -> Self {
        Self {
            config,
            turns_since: None,
            imu: None,
            blocked_since: None,
            slips_since: None,
            scans: VecDeque::new(),
            trouble: None,
            sent: Twist::STOP,
        }
    }

    /// Whether this motion must wait.
    #[must_use]
    pub fn trouble(&self, now: Duration, wanted: Twist) -> Option<Trouble> {
        let (since, trouble, stopped) = self.trouble?;
        let same_way = wanted.forward_m_s * stopped.forward_m_s
            + wanted.turn_rad_s * stopped.turn_rad_s * 0.04
            > 0.0;
        let waits = now.saturating_sub(since) < self.config.hold;
        (waits && (same_way || trouble == Trouble::Bump)).then_some(trouble)
    }

    /// Whether something was detected a moment ago.
    #[must_use]
    pub fn is_alarmed(&self, now: Duration) -> bool {
        self.trouble
            .is_some_and(|(since, ..)| now.saturating_sub(since) < self.config.hold)
    }

    /// The motion that was sent to the wheels.
    pub fn handle_sent(&mut self, now: Duration, sent: Twist) {
        self.sent = sent;
        let turns =
            sent.forward_m_s.abs() > MIN_FORWARD_M_S || sent.turn_rad_s.abs() > MIN_TURN_RAD_S;
        if turns {
            self.turns_since.get_or_insert(now);
        } else {
            self.turns_since = None;
            self.blocked_since = None;
        }
    }

    /// The motion that the wheels have measured. Only measurements count as time in which the wheels
    /// did not turn: without them, nothing is known.
    pub fn handle_motion(&mut self, now: Duration, measured: Twist) {
        let should_turn = self.turns_since.is_some_and(|since| since <= now);
        let is_blocked = should_turn && size(measured) < BLOCKED_PART * size(self.sent);
        if lasts(&mut self.blocked_since, is_blocked, now, self.config.stuck) {
            self.stop(now, Trouble::Stuck);
        }
        let slips = self.imu.is_some_and(|imu| {
            (imu.turn_rad_s - measured.turn_rad_s).abs() > self.config.slip_rad_s
        });
        if lasts(&mut self.slips_since, slips, now, self.config.slip) {
            self.stop(now, Trouble::Slip);
        }
    }

    /// A reading of the inertial sensors.
    pub fn handle_imu(&mut self, now: Duration, imu: Imu) {
        if let Some(before) = self.imu {
            let jump_m_s2 =
                (imu.ahead_m_s2 - before.ahead_m_s2).hypot(imu.left_m_s2 - before.left_m_s2);
            if jump_m_s2 > self.config.bump_m_s2 {
                self.stop(now, Trouble::Bump);
            }
        }
        self.imu = Some(imu);
    }

    /// A scan of a laser with this pose on the robot.
    pub fn handle_scan(&mut self, scan: &Scan, laser: Pose, odometry: &Odometry) {
        let now = scan.end();
        let robot = odometry.pose_at(now);
        let eye = robot.global_pose(laser);
        while self
            .scans
            .get(1)
            .is_some_and(|old| old.time + self.config.stuck <= now)
            || self.scans.len() >= MAX_SCANS
        {
            self.scans.pop_front();
        }
        let seen = SeenPoints::new(now, robot, eye, &scan.beams);
        if let Some(old) = self.scans.front() {
            let way = old.robot.local(robot.at);
            let turned = (robot.heading - old.robot.heading).abs();
            // Dead reckoning knows the distance of a turn less well than that of a straight way.
            let straight = turned < 0.1 && way.x.abs() > MIN_WAY_M;
            let long_enough = now.saturating_sub(old.time) >= self.config.stuck;
            if straight && long_enough && old.shows_no_motion_to(&seen) {
                self.stop(now, Trouble::Stuck);
                self.scans.clear();
            }
        }
        self.scans.push_back(seen);
    }

    fn stop(&mut self, now: Duration, trouble: Trouble) {
        let was = self.sent;
        self.trouble = Some((now, trouble, was));
    }
}

/// The size of a motion: the speed of the fastest side of a robot of usual width.
fn size(twist: Twist) -> f64 {
    twist.forward_m_s.abs() + twist.turn_rad_s.abs() * 0.2
}

/// Whether a condition has lasted for some time. Starts again after it did.
fn lasts(since: &mut Option<Duration>, holds: bool, now: Duration, length: Duration) -> bool {
    if !holds {
        *since = None;
        return false;
    }
    let first = *since.get_or_insert(now);
    let is_over = now.saturating_sub(first) >= length;
    if is_over {
        *since = None;
    }
    is_over
}

/// The points of a scan in the frame of the laser.
#[derive(Clone, Debug)]
struct SeenPoints {
    time: Duration,
    robot: Pose,
    /// The laser in the odometry frame.
    eye: Pose,
    first_rad: f64,
    spread_rad: f64,
    points: Vec<Option<Point>>,
}

impl SeenPoints {
    fn new(time: Duration, robot: Pose, eye: Pose, beams: &[Beam]) -> Self {
        let angle = |beam: Option<&Beam>| beam.map_or(0.0, |beam| beam.angle_rad);
        let first_rad = angle(beams.first());
        let point = |beam: &Beam| {
            let distance_m = beam.distance_m().filter(|distance_m| *distance_m > 0.0)?;
            Some(Point::new(distance_m, 0.0).turned(beam.angle_rad))
        };
        Self {
            time,
            robot,
            eye,
            first_rad,
            spread_rad: angle(beams.last()) - first_rad,
            points: beams.iter().map(point).collect(),
        }
    }

    /// Whether a newer scan looks as if the robot had stood still, and not as if it had moved as
    /// dead reckoning says.
    fn shows_no_motion_to(&self, new: &Self) -> bool {
        let moved = self.eye.local_pose(new.eye);
        let (mut stood, mut drove) = (0, 0);
        let every = (new.points.len() / COMPARED).clamp(1, EVERY);
        for point in new.points.iter().step_by(every).flatten() {
            let near_m = NEAR_M.max(NEAR * point.length());
            let expected = moved.global(*point);
            let (Some(standing_m), Some(moving_m)) =
                (self.distance_m(*point), self.distance_m(expected))
            else {
                continue;
            };
            let is_elsewhere = |distance_m: f64| distance_m > ELSEWHERE * near_m;
            stood += usize::from(standing_m < near_m && is_elsewhere(moving_m));
            drove += usize::from(moving_m < near_m && is_elsewhere(standing_m));
        }
        stood >= MIN_BEAMS && stood > MAJORITY * drove
    }

    /// The distance of a point from the outline near its direction; `None` if nothing was seen
    /// there.
    fn distance_m(&self, point: Point) -> Option<f64> {
        let angle = point.y.atan2(point.x);
        let last = self.points.len().checked_sub(1)?;
        let place = (angle - self.first_rad) / self.spread_rad * last as f64;
        if !(0.0..=last as f64).contains(&place) {
            return None;
        }
        let index = place.round() as usize;
        let window =
            &self.points[index.saturating_sub(NEIGHBOURS)..=(index + NEIGHBOURS).min(last)];
        let alone = window.iter().flatten().map(|it| it.minus(point).length());
        let joined = window.windows(2).filter_map(|pair| {
            let (from, to) = (pair[0]?, pair[1]?);
            let is_same = to.minus(from).length() < SAME_OBJECT_M;
            is_same.then(|| Segment { from, to }.distance(point))
        });
        alone.chain(joined).min_by(f64::total_cmp)
    }
}
