//! Detects that the robot is stuck, slips, or was hit. PURE.
//!
//! - **Stuck**: the wheels are told to turn but do not; or they turn, and for a second the laser
//!   sees the same distances ahead and behind as before.
//! - **Slip**: the wheels say that the robot turns differently from what the gyroscope measures.
//! - **Bump**: the acceleration jumps.
//!
//! After a detection the wheels stop. A command in another direction passes at once, so that a
//! client can free the robot; the same command passes again after [`WatchConfig::hold`].
//!
//! The measured acceleration never changes the speed otherwise: the robot itself causes most of
//! it.

use std::collections::VecDeque;
use std::time::Duration;

use amber_map::{Point, Pose};

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
/// Distances that differ by less are equal: three standard deviations of the noise.
const EQUAL_M: f64 = 0.03;
/// The robot stands still if this share of the beams is as before...
const SAME_SHARE: f64 = 0.7;
/// ...and only this share is as it should be after the motion. Along a corridor both fit, so the
/// laser says nothing there.
const MOVED_SHARE: f64 = 0.5;
/// The beams of a scan that are compared: every eighth.
const EVERY: usize = 8;
/// At least this many of them must have a distance.
const MIN_BEAMS: usize = 10;
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

/// What the watch has detected.
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
    measured: Twist,
    imu: Option<Imu>,
    blocked_since: Option<Duration>,
    slips_since: Option<Duration>,
    scans: VecDeque<(Duration, Pose, Vec<Beam>)>,
    trouble: Option<(Duration, Trouble, Twist)>,
    sent: Twist,
}

impl Watch {
    /// Creates a watch that has seen nothing yet.
    #[must_use]
    pub fn new(config: WatchConfig) -> Self {
        Self {
            config,
            measured: Twist::STOP,
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

    /// The motion that was sent to the wheels.
    pub fn handle_sent(&mut self, now: Duration, sent: Twist) {
        self.sent = sent;
        let wanted = size(sent);
        let is_blocked = (sent.forward_m_s.abs() > MIN_FORWARD_M_S
            || sent.turn_rad_s.abs() > MIN_TURN_RAD_S)
            && size(self.measured) < BLOCKED_PART * wanted;
        if lasts(&mut self.blocked_since, is_blocked, now, self.config.stuck) {
            self.stop(now, Trouble::Stuck);
        }
    }

    /// The motion that the wheels have measured.
    pub fn handle_motion(&mut self, now: Duration, measured: Twist) {
        self.measured = measured;
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

    /// A scan.
    pub fn handle_scan(&mut self, scan: &Scan, odometry: &Odometry) {
        let now = scan.end();
        let pose = odometry.pose_at(now);
        let beams: Vec<Beam> = scan.beams.iter().step_by(EVERY).copied().collect();
        while self
            .scans
            .get(1)
            .is_some_and(|(time, _, _)| *time + self.config.stuck <= now)
            || self.scans.len() >= MAX_SCANS
        {
            self.scans.pop_front();
        }
        if let Some((time, before, old)) = self.scans.front() {
            let way = before.local(pose.at);
            let turned = (pose.heading - before.heading).abs();
            // Only straight ways: a turn changes all distances.
            let straight = turned < 0.1 && way.x.abs() > MIN_WAY_M;
            let long_enough = now.saturating_sub(*time) >= self.config.stuck;
            if straight && long_enough && is_same_view(old, &beams, way.x) {
                self.stop(now, Trouble::Stuck);
                self.scans.clear();
            }
        }
        self.scans.push_back((now, pose, beams));
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

/// Whether a scan looks as if the robot stood still, and not as if it had moved this far ahead.
fn is_same_view(old: &[Beam], new: &[Beam], way_m: f64) -> bool {
    let (Some(first), Some(last)) = (old.first(), old.last()) else {
        return false;
    };
    let spread_rad = last.angle_rad - first.angle_rad;
    let old_at = |angle_rad: f64| {
        let place = (angle_rad - first.angle_rad) / spread_rad * (old.len() - 1) as f64;
        let inside = place >= 0.0 && place <= (old.len() - 1) as f64;
        inside
            .then(|| old[place.round() as usize].distance_m())
            .flatten()
    };
    let (mut beams, mut same, mut moved) = (0, 0, 0);
    for beam in new {
        let Some(distance_m) = beam.distance_m() else {
            continue;
        };
        let Some(before_m) = old_at(beam.angle_rad) else {
            continue;
        };
        beams += 1;
        same += usize::from((before_m - distance_m).abs() < EQUAL_M);
        // The same point as seen from where the robot should have been before.
        let end = Point::new(distance_m, 0.0).turned(beam.angle_rad);
        let seen = end.plus(Point::new(way_m, 0.0));
        let fits = old_at(seen.y.atan2(seen.x))
            .is_none_or(|before_m| (before_m - seen.length()).abs() < EQUAL_M);
        moved += usize::from(fits);
    }
    let share = |count: usize| count as f64 / beams as f64;
    beams >= MIN_BEAMS && share(same) > SAME_SHARE && share(moved) < MOVED_SHARE
}
