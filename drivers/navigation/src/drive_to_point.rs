//! Drives from target to target: the logic of the driver DriveToPoint. PURE.
//!
//! ```text
//!            set_targets             a pose
//!   Idle ---------------> Waiting -----------> Driving (turn, follow) --> next target or Idle
//!    ^                       ^  pose lost,      |  ^   blocked, no progress,
//!    | no targets left       +---- jumped ------+  |   or no room for a turn
//!    | or the client left                       v  |
//!    +------------------------------------- Recovering: plan around, drive back, wait
//! ```
//!
//! Each target is *visited* when the robot is within its radius, or *skipped* when there is no path
//! or the robot does not get there. The targets belong to the client that set them; when it leaves,
//! the robot stops. While the location driver is undecided, the robot turns once on the spot, to see
//! more of the room.
//!
//! Call the `handle_*` functions when data arrives, [`DriveToPoint::step`] at least 20 times per
//! second, and then [`DriveToPoint::poll_event`] until it returns `None`. All wheel speeds pass the
//! collision monitor.

mod obstacles;
mod recovery;
mod search;
mod trail;

use std::collections::VecDeque;
use std::f64::consts::TAU;
use std::time::Duration;

use amber_map::{MAX_EXTENT_M, Point, Pose, Segment};

use self::obstacles::{NOT_ON_MAP_M, Obstacle};
use self::recovery::Recovery;
use self::search::Search;
use self::trail::Trail;

use crate::collision::{self, Decision, Imu, Monitor, Reason, Touch};
use crate::grid::GridError;
use crate::kinematics::{Twist, Wheels};
use crate::path::Path;
use crate::planner::{self, NoPath, Planner};
use crate::pose_tracker::{self, PoseReading, PoseTracker, Tracked};
use crate::pursuit::{self, Follower};
use crate::scan::Scan;

/// More targets do not fit into an answer of 32,767 bytes, together with the pose.
pub const MAX_TARGETS: usize = 1_300;
/// The path is planned again at most this often.
const REPLAN_PERIOD: Duration = Duration::from_secs(1);
/// The path is planned again if the robot is this far from it.
const OFF_PATH_M: f64 = 0.3;
/// On a new map, a path stays if it keeps this part of the clearance.
const PATH_KEEPS: f64 = 0.85;
/// Driven beyond this, earlier failures are forgotten.
const GOOD_WAY_M: f64 = 0.5;

/// A wall may enter the footprint by this during a turn on the spot: that much is noise or a margin, and
/// the robot fits between walls of the map.
const TURN_ROOM_M: f64 = -0.012;
/// What is not on the map keeps this distance from a turn: it may move.
const TURN_MARGIN_M: f64 = 0.02;

/// The configuration of a [`DriveToPoint`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The last filter before the wheels.
    pub collision: collision::Config,
    /// The path through the map.
    pub planner: planner::Config,
    /// The motion along the path.
    pub pursuit: pursuit::Config,
    /// The use of poses.
    pub pose: pose_tracker::Config,
    /// The robot must get on by [`Config::progress_m`] within this time.
    pub progress_time: Duration,
    /// See [`Config::progress_time`], in metres.
    pub progress_m: f64,
    /// How long an obstacle may stop the robot before it looks for another way.
    pub blocked_time: Duration,
    /// A point that the laser no longer sees is forgotten if a wall of the map is this near to it: the map
    /// knows better. In metres.
    pub map_covers_m: f64,
    /// How far the robot drives back at least, in metres.
    pub back_up_m: f64,
    /// How fast it drives back, in m/s.
    pub back_up_m_s: f64,
    /// How long the robot waits for an obstacle to go away; the second time, twice as long.
    pub wait_time: Duration,
    /// The speed past a target when another one follows, in m/s.
    pub passing_m_s: f64,
    /// Whether the robot stops when any client leaves, as the original does. By default only when
    /// the client leaves that set the targets.
    pub any_client_stops: bool,
}

impl Config {
    /// The defaults of a Capo robot with its scanner at this pose.
    #[must_use]
    pub fn new(laser: Pose) -> Self {
        Self {
            collision: collision::Config {
                // The follower slows down near the walls of the map.
                limit_zone_m: 0.0,
                stop_ahead_m: 0.06,
                // The walls of the map do not drift, and are known behind the robot.
                drift_m: 0.0,
                reverses_blindly: true,
                ..collision::Config::new(laser)
            },
            planner: planner::Config::default(),
            pursuit: pursuit::Config::default(),
            pose: pose_tracker::Config::default(),
            progress_time: Duration::from_secs(8),
            progress_m: 0.2,
            blocked_time: Duration::from_millis(1500),
            map_covers_m: NOT_ON_MAP_M,
            back_up_m: 0.2,
            back_up_m_s: 0.1,
            wait_time: Duration::from_secs(2),
            passing_m_s: 0.25,
            any_client_stops: false,
        }
    }
}

/// A client of the mediator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientId(pub i32);

/// A place to visit, in the plane frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Its centre.
    pub at: Point,
    /// The robot has visited it when its centre is this near, in metres.
    pub radius_m: f64,
}

impl Target {
    /// Whether the robot could drive there: the coordinates are those of a place that can be on a map,
    /// and the radius is positive.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let is_place = [self.at.x, self.at.y]
            .iter()
            .all(|it| it.abs() <= MAX_EXTENT_M);
        is_place && self.radius_m.is_finite() && self.radius_m > 0.0
    }
}

/// The activity of the robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There are no targets.
    Idle,
    /// No pose has arrived yet, or the robot does not know its pose and has looked around.
    NoPose,
    /// The pose is undecided: the robot turns on the spot to see more of the room.
    Searching,
    /// The pose has jumped: the robot waits until it is sure again.
    PoseJumped,
    /// The last pose is old.
    PoseLost,
    /// The robot turns on the spot.
    Turning,
    /// It follows its path.
    Following,
    /// An obstacle or a missing scan stops it.
    Blocked,
    /// It drives back the way that it came.
    BackingUp,
    /// It waits for an obstacle to go away.
    Waiting,
}

/// The reason why a target was skipped.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Skipped {
    /// There is no path.
    #[error("{0}")]
    Unreachable(#[from] NoPath),
    /// The robot did not get there.
    #[error("the robot made no progress after {0} attempts")]
    NoProgress(u32),
    /// Its coordinates or its radius are invalid.
    #[error(
        "invalid target: coordinates must be at most {MAX_EXTENT_M} m, and the radius a positive number"
    )]
    Invalid,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A target was visited.
    Visited(Target),
    /// A target was skipped.
    Skipped(Target, Skipped),
    /// No targets are left.
    Finished,
    /// The client that had set the targets has left.
    ClientLeft(ClientId),
    /// The state has changed.
    State(State),
}

/// Drives from target to target.
#[derive(Clone, Debug)]
pub struct DriveToPoint {
    config: Config,
    planner: Option<Planner>,
    monitor: Monitor,
    tracker: PoseTracker,
    owner: Option<ClientId>,
    next: VecDeque<Target>,
    visited: Vec<Target>,
    skipped: Vec<(Target, Skipped)>,
    events: VecDeque<Event>,
    state: State,
    follower: Option<Follower>,
    obstacles: Vec<Obstacle>,
    planned: Duration,
    obstacles_ahead: bool,
    attempts: u32,
    /// How often the robot has driven back on its way to the target.
    retreats: u32,
    recovery: Option<Recovery>,
    search: Option<Search>,
    trail: Trail,
    /// When the robot last got on, and how far it was along its path.
    progress: (Duration, f64),
    blocked_since: Option<Duration>,
}

impl DriveToPoint {
    /// Creates a driver without targets. Without walls it drives straight to its targets.
    ///
    /// # Errors
    /// The map is too large.
    pub fn new(config: Config, walls: &[Segment]) -> Result<Self, GridError> {
        let mut new = Self::without_map(config);
        if !walls.is_empty() {
            new.planner = Some(Planner::new(config.planner, walls)?);
        }
        Ok(new)
    }

    /// Creates a driver without targets, which drives straight to them.
    #[must_use]
    pub fn without_map(config: Config) -> Self {
        Self {
            config,
            planner: None,
            monitor: Monitor::new(config.collision),
            tracker: PoseTracker::new(config.pose),
            owner: None,
            next: VecDeque::new(),
            visited: Vec::new(),
            skipped: Vec::new(),
            events: VecDeque::new(),
            state: State::Idle,
            follower: None,
            obstacles: Vec::new(),
            planned: Duration::ZERO,
            obstacles_ahead: false,
            attempts: 0,
            retreats: 0,
            recovery: None,
            search: None,
            trail: Trail::default(),
            progress: (Duration::ZERO, 0.0),
            blocked_since: None,
        }
    }

    /// Replaces the map. The targets stay; a path that no longer is free is planned again.
    pub fn set_map(&mut self, planner: Planner) {
        let clearance_m = PATH_KEEPS * self.config.planner.clearance_m;
        let is_free = self
            .rest_of_path()
            .into_iter()
            // The robot itself may stand in a narrow place.
            .skip(1)
            .all(|at| planner.clearance_m(at) >= clearance_m);
        if !is_free {
            self.follower = None;
        }
        self.planner = Some(planner);
    }

    /// A client replaces all targets and starts at once. No targets stop the robot.
    pub fn set_targets(&mut self, now: Duration, client: ClientId, targets: &[Target]) {
        self.next.clear();
        self.visited.clear();
        self.skipped.clear();
        self.owner = (!targets.is_empty()).then_some(client);
        for target in targets.iter().take(MAX_TARGETS) {
            if target.is_valid() {
                self.next.push_back(*target);
            } else {
                self.skip(*target, Skipped::Invalid);
            }
        }
        self.begin_target(now);
    }

    /// The client for which it drives.
    pub fn owner(&self) -> Option<ClientId> {
        self.owner
    }

    /// Stops the robot. The visited targets stay.
    pub fn stop(&mut self, now: Duration) {
        if self.owner.take().is_some() {
            self.next.clear();
            self.begin_target(now);
        }
    }

    /// A client has left. The targets end with the client that set them.
    pub fn handle_client_left(&mut self, now: Duration, client: ClientId) {
        if self.owner == Some(client) || (self.config.any_client_stops && self.owner.is_some()) {
            self.owner = None;
            self.next.clear();
            self.events.push_back(Event::ClientLeft(client));
            self.begin_target(now);
        }
    }

    /// A pose has arrived.
    pub fn handle_pose(&mut self, reading: PoseReading) {
        self.tracker.handle_pose(reading, self.monitor.odometry());
    }

    /// The speeds of the wheels were measured.
    pub fn handle_wheels(&mut self, time: Duration, wheels: Wheels) {
        self.monitor.handle_wheels(time, wheels);
    }

    /// The inertial sensors were read.
    pub fn handle_imu(&mut self, time: Duration, imu: Imu) {
        self.monitor.handle_imu(time, imu);
    }

    /// The bumpers were read, see [`Monitor::handle_touches`]. The robot remembers the places.
    pub fn handle_touches(&mut self, time: Duration, touches: &[Touch]) {
        self.monitor.handle_touches(time, touches);
        if let Tracked::At(pose) = self.tracker.pose(time, self.monitor.odometry()) {
            self.remember_touches(time, pose, touches);
        }
    }

    /// A scan has arrived.
    pub fn handle_scan(&mut self, scan: &Scan) {
        self.monitor.handle_scan(scan);
        let now = scan.end();
        if let Tracked::At(pose) = self.tracker.pose(now, self.monitor.odometry()) {
            self.remember_obstacles(now, pose);
            self.use_map_behind(scan, pose);
        }
    }

    /// The speeds for the wheels now.
    pub fn step(&mut self, now: Duration) -> Decision {
        let pose = self.tracker.pose(now, self.monitor.odometry());
        let is_blind = self.monitor.is_blind(now);
        let (state, twist) = match pose {
            _ if self.next.is_empty() => (State::Idle, Twist::STOP),
            // The targets stay until the laser sees again.
            Tracked::At(_) | Tracked::Undecided if is_blind => {
                self.progress.0 = now;
                (State::Blocked, Twist::STOP)
            }
            Tracked::At(pose) => self.drive(now, pose),
            Tracked::Undecided => self.search(now),
            Tracked::Unknown => (State::NoPose, Twist::STOP),
            Tracked::Jumped => (State::PoseJumped, Twist::STOP),
            Tracked::Lost => (State::PoseLost, Twist::STOP),
        };
        if matches!(pose, Tracked::At(_)) {
            self.search = None;
        } else {
            // The old path no longer fits.
            self.follower = None;
            self.recovery = None;
        }
        if pose == Tracked::Jumped && self.state != State::PoseJumped {
            // What was around the robot is somewhere else.
            self.obstacles.clear();
            self.monitor.forget();
            self.trail.clear();
        }
        if !matches!(self.recovery, Some(Recovery::Retreat(_))) {
            self.trail.note(self.monitor.odometry().pose_at(now));
        }
        let wheels = self.config.collision.drive.wheels(twist);
        if matches!(self.recovery, Some(Recovery::Retreat(_))) {
            self.monitor.handle_careful_command(now, wheels);
        } else {
            self.monitor.handle_command(now, wheels);
        }
        let mut decision = self.monitor.step(now);
        if is_blind && decision.reason == Reason::Idle {
            decision.reason = Reason::Blind;
        }
        let wants_to_move = twist != Twist::STOP;
        let is_blocked = wants_to_move && decision.wheels == Wheels::STOP;
        if !is_blocked {
            self.blocked_since = None;
        } else if decision.reason != Reason::Momentum {
            self.blocked_since.get_or_insert(now);
        }
        self.set_state(if is_blocked { State::Blocked } else { state });
        decision
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The targets that are not visited yet, in order.
    pub fn next_targets(&self) -> impl Iterator<Item = Target> + '_ {
        self.next.iter().copied()
    }

    /// The visited targets in order. Skipped ones are not among them.
    #[must_use]
    pub fn visited_targets(&self) -> &[Target] {
        &self.visited
    }

    #[must_use]
    pub fn skipped_targets(&self) -> &[(Target, Skipped)] {
        &self.skipped
    }

    /// The last pose with its time.
    #[must_use]
    pub fn pose(&self) -> Option<(Duration, Pose)> {
        self.tracker.last()
    }

    /// The activity of the robot.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// The path to the next target.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.follower.as_ref().map(Follower::path)
    }

    /// The rest of this path, from the place of the robot on.
    #[must_use]
    pub fn rest_of_path(&self) -> Vec<Point> {
        let Some(follower) = &self.follower else {
            return Vec::new();
        };
        let (path, way_m) = (follower.path(), follower.way_m());
        let ahead = path.points().iter().enumerate();
        let ahead = ahead.filter(|(index, _)| path.way_of_m(*index) > way_m);
        std::iter::once(path.at(way_m))
            .chain(ahead.map(|(_, point)| *point))
            .collect()
    }

    /// The length of the rest of the path.
    #[must_use]
    pub fn remaining_m(&self) -> Option<f64> {
        let follower = self.follower.as_ref()?;
        Some(follower.path().length_m() - follower.way_m())
    }

    /// The collision monitor.
    #[must_use]
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    fn drive(&mut self, now: Duration, pose: Pose) -> (State, Twist) {
        while let Some(target) = self.next.front().copied() {
            if pose.at.minus(target.at).length() < target.radius_m {
                self.next.pop_front();
                self.visited.push(target);
                self.events.push_back(Event::Visited(target));
                self.begin_target(now);
                continue;
            }
            if let Some(motion) = self.recover(now) {
                return motion;
            }
            if self.needs_plan(now, pose) {
                match self.plan(pose.at, target) {
                    Ok(path) => {
                        self.follower = Some(Follower::new(self.config.pursuit, path));
                        self.planned = now;
                        self.progress = (now, 0.0);
                        self.obstacles_ahead = false;
                    }
                    Err(error) if !self.has_path_on_map(pose.at, target) => {
                        self.next.pop_front();
                        self.skip(target, error.into());
                        self.begin_target(now);
                        continue;
                    }
                    Err(_) => {
                        // An obstacle closes the way. It may go away.
                        self.fail_to_plan(now, target);
                        continue;
                    }
                }
            }
            return self.follow(now, pose, target);
        }
        (State::Idle, Twist::STOP)
    }

    fn follow(&mut self, now: Duration, pose: Pose, target: Target) -> (State, Twist) {
        let Some(follower) = self.follower.as_mut() else {
            return (State::Idle, Twist::STOP);
        };
        let speed_m_s = self.monitor.odometry().latest_twist().forward_m_s;
        let end_m_s = if self.next.len() > 1 {
            self.config.passing_m_s
        } else {
            0.0
        };
        let planner = self.planner.as_ref();
        let clearance =
            |at: Point| planner.map_or(f64::INFINITY, |planner| planner.clearance_m(at));
        let motion = follower.step(pose, speed_m_s, end_m_s, clearance);
        let way_m = follower.way_m();
        if way_m >= self.progress.1 + self.config.progress_m {
            self.progress = (now, way_m);
            if way_m > GOOD_WAY_M {
                self.attempts = 0;
            }
        }
        let stands = now.saturating_sub(self.progress.0) > self.config.progress_time;
        let is_blocked = self
            .blocked_since
            .is_some_and(|since| now.saturating_sub(since) > self.config.blocked_time);
        if stands || is_blocked {
            self.fail(now, target);
            return (State::Blocked, Twist::STOP);
        }
        if !motion.is_turning {
            return (State::Following, motion.twist);
        }
        match self.turn(now, pose, motion.bearing_rad) {
            Some(direction) => (State::Turning, motion.twist.scaled(direction)),
            None => {
                self.fail_to_turn(now, target);
                (State::Blocked, Twist::STOP)
            }
        }
    }

    /// Whether the robot has room for a turn on the spot: 1 for the shorter way, -1 for the longer
    /// one.
    fn turn(&self, now: Duration, pose: Pose, angle_rad: f64) -> Option<f64> {
        let has_room = |angle_rad: f64, wall_m: f64| {
            let allowance_m = |local: Point| {
                if self.is_on_map(pose.global(local)) {
                    wall_m
                } else {
                    -TURN_MARGIN_M
                }
            };
            self.monitor.turn_room_with_m(now, angle_rad, allowance_m) >= 0.0
        };
        let longer_rad = angle_rad - TAU.copysign(angle_rad);
        if has_room(angle_rad, -TURN_ROOM_M) {
            Some(1.0)
        } else {
            has_room(longer_rad, 0.0).then_some(-1.0)
        }
    }

    fn needs_plan(&self, now: Duration, pose: Pose) -> bool {
        let Some(follower) = &self.follower else {
            return true;
        };
        let way_m = follower.way_m();
        let place = follower.path().project(pose.at, way_m - 0.1, way_m + 0.5);
        let is_off = place.left_m.abs() > OFF_PATH_M;
        (is_off || self.obstacles_ahead) && now.saturating_sub(self.planned) >= REPLAN_PERIOD
    }

    /// Whether there is a path without the obstacles that are not on the map.
    fn has_path_on_map(&self, from: Point, target: Target) -> bool {
        self.planner.as_ref().is_some_and(|planner| {
            let path = planner.plan(from, target.at, target.radius_m, &[]);
            path.is_ok()
        })
    }

    fn plan(&self, from: Point, target: Target) -> Result<Path, NoPath> {
        let Some(planner) = &self.planner else {
            return Path::new([from, target.at]).ok_or(NoPath::Goal);
        };
        let obstacles: Vec<Point> = self.sure_obstacles().collect();
        planner.plan(from, target.at, target.radius_m, &obstacles)
    }

    fn begin_target(&mut self, now: Duration) {
        self.follower = None;
        self.recovery = None;
        self.search = None;
        self.attempts = 0;
        self.retreats = 0;
        self.blocked_since = None;
        self.progress = (now, 0.0);
        if self.next.is_empty() {
            if self.owner.take().is_some() {
                self.events.push_back(Event::Finished);
            }
            self.set_state(State::Idle);
        }
    }

    fn skip(&mut self, target: Target, why: Skipped) {
        self.skipped.push((target, why));
        self.events.push_back(Event::Skipped(target, why));
    }

    fn set_state(&mut self, state: State) {
        if state != self.state {
            self.state = state;
            self.events.push_back(Event::State(state));
        }
        // Nobody may listen.
        while self.events.len() > MAX_EVENTS {
            self.events.pop_front();
        }
    }
}

/// Unread events are dropped beyond this, the oldest first.
const MAX_EVENTS: usize = 1_000;

#[cfg(test)]
mod tests;
