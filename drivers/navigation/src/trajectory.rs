//! Follows given points, in given times: the logic of the driver PidFollowTrajectory. PURE.
//!
//! ```text
//!   Empty --set--> Ready --start, step--> Running --last point--> Finished
//!                    ^                       |                       |
//!                    +------- stop, owner left, step done -----------+
//! ```
//!
//! The robot follows the points by regulated pure pursuit ([`crate::pursuit`]), slowly in corners
//! and at the end. If all points have increasing times, they set the speed: the robot drives as fast
//! as the next time demands and corrects when it is late or early, within the limits of the
//! configuration.
//!
//! The original steers by a weighted sum of heading error and distance from the path. Its weights
//! (0.95 and 0.05, times a scale of 6) bring the robot back to the path only after many metres, so
//! this driver ignores them. Look-ahead, speed, sideways acceleration and period keep their meaning.
//!
//! The points belong to the client that started them; when it leaves, the robot stops.

use std::f64::consts::FRAC_PI_3;
use std::time::Duration;

use amber_map::{MAX_EXTENT_M, Point, Pose};

use crate::drive_to_point::ClientId;
use crate::kinematics::{SkidSteer, Twist, Wheels};
use crate::odometry::Odometry;
use crate::path::Path;
use crate::pose_tracker::{self, PoseReading, PoseTracker, Tracked};
use crate::pursuit::{self, Follower};

/// More points do not fit into a message of 32,767 bytes.
pub const MAX_POINTS: usize = 2_048;
/// The end is reached this near to it, in metres.
const END_M: f64 = 0.015;
/// How strongly the speed corrects a delay, in 1/s.
const CATCH_UP_PER_S: f64 = 1.0;
/// The look-ahead that follows corners best, in metres.
const LOOKAHEAD_M: f64 = 0.25;

/// The configuration from the message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The maximum look-ahead in metres.
    pub max_lookahead_m: f64,
    /// The maximum sideways acceleration in m/s².
    pub max_centripetal_m_s2: f64,
    /// The maximum speed in m/s.
    pub max_m_s: f64,
    /// The duration of a single step.
    pub step_time: Duration,
}

/// The values of the example client.
impl Default for Config {
    fn default() -> Self {
        Self {
            max_lookahead_m: 0.6,
            max_centripetal_m_s2: 0.5,
            max_m_s: 0.35,
            step_time: Duration::from_secs(1),
        }
    }
}

/// A point of the trajectory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoint {
    /// Its place in the plane frame.
    pub at: Point,
    /// When the robot should be there, after the start; zero is any time.
    pub time: Duration,
}

/// The activity of the robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is no trajectory.
    Empty,
    /// The trajectory waits for its start.
    Ready,
    /// The robot follows it.
    Running,
    /// The robot waits for a pose.
    WaitingForPose,
    /// The robot is at the last point.
    Finished,
}

/// The reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The robot follows a trajectory now.
    #[error("the robot follows a trajectory; stop it first")]
    Running,
    /// There is no trajectory.
    #[error("there is no trajectory; set the targets first")]
    Empty,
    /// A value is invalid.
    #[error("invalid trajectory: {0}")]
    Invalid(&'static str),
}

/// Follows a trajectory.
#[derive(Clone, Debug)]
pub struct Trajectory {
    drive: SkidSteer,
    motion: Odometry,
    tracker: PoseTracker,
    config: Config,
    points: Vec<Waypoint>,
    /// The distance of each point from the first, along the path.
    ways_m: Vec<f64>,
    run: Option<Run>,
    finished: bool,
    waits: bool,
    /// How many points are passed.
    passed: usize,
}

#[derive(Clone, Debug)]
struct Run {
    owner: ClientId,
    until: Option<Duration>,
    started: Option<Duration>,
    follower: Follower,
}

impl Trajectory {
    /// Creates a driver without a trajectory.
    #[must_use]
    pub fn new(drive: SkidSteer, pose: pose_tracker::Config) -> Self {
        Self {
            drive,
            motion: Odometry::new(drive),
            tracker: PoseTracker::new(pose),
            config: Config::default(),
            points: Vec::new(),
            ways_m: Vec::new(),
            run: None,
            finished: false,
            waits: false,
            passed: 0,
        }
    }

    /// Sets the points.
    ///
    /// # Errors
    /// The robot follows a trajectory, or a value is invalid. The old points stay.
    pub fn set(&mut self, config: Config, points: &[Waypoint]) -> Result<(), Refused> {
        if self.run.is_some() {
            return Err(Refused::Running);
        }
        check(config, points)?;
        self.config = config;
        self.points = points.to_vec();
        let mut way_m = 0.0;
        self.ways_m = vec![0.0];
        for pair in points.windows(2) {
            way_m += pair[1].at.minus(pair[0].at).length();
            self.ways_m.push(way_m);
        }
        self.passed = 0;
        self.finished = false;
        Ok(())
    }

    /// Sets the points and starts at the first one, also while the robot follows other points.
    ///
    /// # Errors
    /// A value is invalid. The robot goes on with the old points.
    pub fn follow_instead(
        &mut self,
        client: ClientId,
        config: Config,
        points: &[Waypoint],
    ) -> Result<(), Refused> {
        check(config, points)?;
        self.stop();
        self.set(config, points)?;
        self.start(client)
    }

    /// Starts at the first point, or goes on after a stop.
    ///
    /// # Errors
    /// There is no trajectory, or it runs already.
    pub fn start(&mut self, client: ClientId) -> Result<(), Refused> {
        self.run(client, None)
    }

    /// Follows the trajectory for one period and stops.
    ///
    /// # Errors
    /// There is no trajectory, or it runs already.
    pub fn single_step(&mut self, now: Duration, client: ClientId) -> Result<(), Refused> {
        self.run(client, Some(now + self.config.step_time))
    }

    /// Stops the robot. The trajectory stays, and starts again at its first point.
    pub fn stop(&mut self) {
        self.run = None;
        self.passed = 0;
        self.finished = false;
    }

    /// The client for which it drives.
    pub fn owner(&self) -> Option<ClientId> {
        self.run.as_ref().map(|run| run.owner)
    }

    /// A client has left. The robot stops if this client started it.
    pub fn handle_client_left(&mut self, client: ClientId) {
        if self.run.as_ref().is_some_and(|run| run.owner == client) {
            self.stop();
        }
    }

    /// A pose has arrived.
    pub fn handle_pose(&mut self, reading: PoseReading) {
        self.tracker.handle_pose(reading, &self.motion);
    }

    /// The speeds of the wheels were measured.
    pub fn handle_wheels(&mut self, time: Duration, wheels: Wheels) {
        self.motion.handle_wheels(time, wheels);
    }

    /// The speeds for the wheels now. Pass them through a collision monitor if there is a scanner.
    pub fn step(&mut self, now: Duration) -> Wheels {
        let is_over = self
            .run
            .as_ref()
            .is_some_and(|run| run.until.is_some_and(|until| now >= until));
        if is_over {
            // Unlike after a stop, the next step goes on here.
            self.run = None;
        }
        let pose = self.tracker.pose(now, &self.motion);
        self.waits = !matches!(pose, Tracked::At(_));
        match pose {
            Tracked::At(pose) => {
                let twist = self.follow(now, pose);
                self.drive.wheels(twist)
            }
            Tracked::Unknown | Tracked::Jumped | Tracked::Lost | Tracked::Undecided => Wheels::STOP,
        }
    }

    /// The activity of the robot.
    #[must_use]
    pub fn state(&self) -> State {
        match &self.run {
            Some(_) if self.waits => State::WaitingForPose,
            Some(_) => State::Running,
            None if self.points.is_empty() => State::Empty,
            None if self.finished => State::Finished,
            None => State::Ready,
        }
    }

    /// The points ahead.
    #[must_use]
    pub fn next_points(&self) -> &[Waypoint] {
        &self.points[self.passed..]
    }

    /// The points behind.
    #[must_use]
    pub fn visited_points(&self) -> &[Waypoint] {
        &self.points[..self.passed]
    }

    /// How far the robot is to the left of the path, while it runs.
    #[must_use]
    pub fn left_m(&self, now: Duration) -> Option<f64> {
        let run = self.run.as_ref()?;
        let Tracked::At(pose) = self.tracker.pose(now, &self.motion) else {
            return None;
        };
        let way_m = run.follower.way_m();
        let place = run
            .follower
            .path()
            .project(pose.at, way_m - 0.1, way_m + 0.3);
        Some(place.left_m)
    }

    /// The length of the rest of the path, while it runs.
    #[must_use]
    pub fn remaining_m(&self) -> Option<f64> {
        let follower = &self.run.as_ref()?.follower;
        Some(follower.path().length_m() - follower.way_m())
    }

    fn run(&mut self, client: ClientId, until: Option<Duration>) -> Result<(), Refused> {
        if self.run.is_some() {
            return Err(Refused::Running);
        }
        if self.finished {
            self.stop();
        }
        // After a single step, the points behind stay behind.
        let rest = self.passed.saturating_sub(1);
        let points = self.points[rest..].iter().map(|point| point.at);
        let path = Path::new(points).ok_or(Refused::Empty)?;
        let lookahead_m = self.config.max_lookahead_m.min(LOOKAHEAD_M);
        let config = pursuit::Config {
            max_m_s: self.config.max_m_s,
            min_m_s: 0.05_f64.min(self.config.max_m_s),
            lookahead_min_m: lookahead_m,
            lookahead_max_m: lookahead_m,
            slow_radius_m: 0.4,
            slow_clearance_m: 0.0,
            half_clearance_m: -1.0,
            lateral_m_s2: self.config.max_centripetal_m_s2,
            turn_from_rad: FRAC_PI_3,
            ..pursuit::Config::default()
        };
        self.run = Some(Run {
            owner: client,
            until,
            started: None,
            follower: Follower::new(config, path),
        });
        Ok(())
    }

    fn follow(&mut self, now: Duration, pose: Pose) -> Twist {
        let Some(run) = self.run.as_mut() else {
            return Twist::STOP;
        };
        let first = self.points.len() - run.follower.path().points().len().min(self.points.len());
        let before_m = self.ways_m.get(first).copied().unwrap_or_default();
        // The time runs from the first point on.
        let started = *run.started.get_or_insert(now);
        let speed_m_s = self.motion.latest_twist().forward_m_s;
        let motion = run.follower.step(pose, speed_m_s, 0.0, |_| f64::INFINITY);
        let way_m = before_m + run.follower.way_m();
        let reached = |reached_m: &&f64| **reached_m <= way_m + END_M;
        self.passed = self
            .passed
            .max(self.ways_m.iter().take_while(reached).count());
        if motion.rest_m <= END_M {
            self.passed = self.points.len();
            self.run = None;
            self.finished = true;
            return Twist::STOP;
        }
        let Some(wanted_m_s) = self.timed_speed(now.saturating_sub(started), way_m) else {
            return motion.twist;
        };
        let forward_m_s = motion.twist.forward_m_s;
        if motion.is_turning || forward_m_s <= wanted_m_s {
            motion.twist
        } else {
            motion.twist.scaled(wanted_m_s / forward_m_s)
        }
    }

    /// The speed that the times demand, if all points have one.
    fn timed_speed(&self, elapsed: Duration, way_m: f64) -> Option<f64> {
        let times: Vec<f64> = self.points.iter().map(|it| it.time.as_secs_f64()).collect();
        let increasing = times.windows(2).all(|pair| pair[0] < pair[1]);
        if times.len() < 2 || !increasing {
            return None;
        }
        let now_s = elapsed.as_secs_f64();
        let index = times.partition_point(|time_s| *time_s <= now_s);
        let (wanted_m, speed_m_s) = if index == 0 {
            (0.0, 0.0)
        } else if index == times.len() {
            (self.ways_m[index - 1], 0.0)
        } else {
            let (start_s, end_s) = (times[index - 1], times[index]);
            let (start_m, end_m) = (self.ways_m[index - 1], self.ways_m[index]);
            let speed_m_s = (end_m - start_m) / (end_s - start_s);
            (start_m + speed_m_s * (now_s - start_s), speed_m_s)
        };
        Some((speed_m_s + CATCH_UP_PER_S * (wanted_m - way_m)).max(0.0))
    }
}

/// Whether the robot can follow these points with this configuration.
fn check(config: Config, points: &[Waypoint]) -> Result<(), Refused> {
    let limits = [
        config.max_lookahead_m,
        config.max_centripetal_m_s2,
        config.max_m_s,
    ];
    if !limits
        .into_iter()
        .all(|limit| limit.is_finite() && limit > 0.0)
    {
        return Err(Refused::Invalid("the limits must be positive numbers"));
    }
    if points.is_empty() || points.len() > MAX_POINTS {
        return Err(Refused::Invalid("it needs 1 to 2048 points"));
    }
    let is_place = |point: &Waypoint| {
        let coordinates = [point.at.x, point.at.y];
        coordinates.iter().all(|it| it.abs() <= MAX_EXTENT_M)
    };
    if !points.iter().all(is_place) {
        return Err(Refused::Invalid(
            "the coordinates must be numbers of at most 10000 m",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: ClientId = ClientId(7);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn line(times_s: [u64; 3]) -> [Waypoint; 3] {
        [0, 1, 2].map(|index| Waypoint {
            at: Point::new(index as f64, 0.0),
            time: Duration::from_secs(times_s[index]),
        })
    }

    fn driver(points: &[Waypoint]) -> Trajectory {
        let mut driver = Trajectory::new(SkidSteer::default(), pose_tracker::Config::default());
        driver.set(Config::default(), points).unwrap();
        driver
    }

    /// Runs with ideal wheels; returns the times at which x was 1 m and 2 m.
    fn run(driver: &mut Trajectory, from_ms: u64, to_ms: u64, pose: &mut Pose) -> Vec<u64> {
        let mut times = Vec::new();
        for time in (from_ms..to_ms).step_by(50) {
            driver.handle_pose(PoseReading {
                time: ms(time),
                pose: *pose,
                quality: 1.0,
            });
            let wheels = driver.step(ms(time));
            driver.handle_wheels(ms(time), wheels);
            let twist = SkidSteer::default().twist(wheels);
            let before = pose.at.x;
            *pose = pose.along_arc(twist.forward_m_s * 0.05, twist.turn_rad_s * 0.05);
            for mark in [1.0, 1.98] {
                if before < mark && pose.at.x >= mark {
                    times.push(time - from_ms);
                }
            }
        }
        times
    }

    #[test]
    fn a_run_ends_by_itself_and_counts_each_point_once() {
        let mut driver = driver(&line([0, 0, 0]));
        let mut pose = Pose::default();
        driver.start(CLIENT).unwrap();
        assert_eq!(
            driver.set(Config::default(), &line([0; 3])),
            Err(Refused::Running)
        );
        assert_eq!(driver.start(CLIENT), Err(Refused::Running));
        run(&mut driver, 0, 4000, &mut pose);
        assert_eq!(driver.state(), State::Running);
        assert_eq!(
            (driver.visited_points().len(), driver.next_points().len()),
            (2, 1)
        );
        run(&mut driver, 4000, 9000, &mut pose);
        assert_eq!(driver.state(), State::Finished);
        assert_eq!(
            (driver.visited_points().len(), driver.next_points().len()),
            (3, 0)
        );
        assert!((pose.at.x - 2.0).abs() < 0.03, "{pose:?}");
        assert_eq!(driver.step(ms(9000)), Wheels::STOP);
    }

    #[test]
    fn times_set_the_speed() {
        let mut driver = driver(&line([0, 5, 15]));
        driver.start(CLIENT).unwrap();
        let times = run(&mut driver, 0, 20_000, &mut Pose::default());
        let [first, last] = times[..] else {
            panic!("{times:?}");
        };
        assert!((4_000..6_500).contains(&first), "{times:?}");
        assert!((13_500..16_500).contains(&last), "{times:?}");
    }

    #[test]
    fn a_single_step_ends_after_its_period() {
        let mut driver = driver(&line([0, 0, 0]));
        let mut pose = Pose::default();
        run(&mut driver, 0, 500, &mut pose);
        driver.single_step(ms(500), CLIENT).unwrap();
        run(&mut driver, 500, 3000, &mut pose);
        assert!((0.2..0.4).contains(&pose.at.x), "{pose:?}");
        assert_eq!(driver.state(), State::Ready);
    }

    #[test]
    fn the_robot_stops_when_its_client_leaves_or_the_pose_is_lost() {
        let mut driver = driver(&line([0, 0, 0]));
        assert_eq!(driver.step(ms(0)), Wheels::STOP);
        driver.start(CLIENT).unwrap();
        driver.step(ms(0));
        assert_eq!(driver.state(), State::WaitingForPose);
        run(&mut driver, 0, 1000, &mut Pose::default());
        assert_eq!(driver.state(), State::Running);
        assert_eq!(driver.step(ms(2000)), Wheels::STOP);
        assert_eq!(driver.state(), State::WaitingForPose);
        driver.handle_client_left(ClientId(8));
        assert_eq!(driver.state(), State::WaitingForPose);
        driver.handle_client_left(CLIENT);
        assert_eq!(driver.state(), State::Ready);
    }

    #[test]
    fn other_points_replace_those_that_the_robot_follows_unless_they_are_invalid() {
        let mut driver = driver(&line([0; 3]));
        let mut pose = Pose::default();
        driver.start(CLIENT).unwrap();
        run(&mut driver, 0, 4_000, &mut pose);
        assert_eq!(driver.visited_points().len(), 2);
        let rest_m = driver.remaining_m().unwrap();
        assert!((2.0 - pose.at.x - rest_m).abs() < 0.05, "{rest_m}");
        let config = Config::default();
        assert!(driver.follow_instead(ClientId(8), config, &[]).is_err());
        assert_eq!(driver.owner(), Some(CLIENT));
        let back = [Waypoint {
            at: pose.at,
            time: Duration::ZERO,
        }];
        driver.follow_instead(ClientId(8), config, &back).unwrap();
        assert_eq!(driver.owner(), Some(ClientId(8)));
        run(&mut driver, 4_000, 4_100, &mut pose);
        assert_eq!(
            (driver.state(), driver.remaining_m()),
            (State::Finished, None)
        );
    }

    #[test]
    fn invalid_requests_are_refused() {
        let mut driver = Trajectory::new(SkidSteer::default(), pose_tracker::Config::default());
        assert_eq!(driver.start(CLIENT), Err(Refused::Empty));
        assert_eq!(driver.state(), State::Empty);
        let bad = Config {
            max_m_s: f64::NAN,
            ..Config::default()
        };
        assert!(driver.set(bad, &line([0; 3])).is_err());
        assert!(driver.set(Config::default(), &[]).is_err());
        for x in [f64::INFINITY, f64::NAN, 1e308] {
            let nowhere = Waypoint {
                at: Point::new(x, 0.0),
                time: Duration::ZERO,
            };
            assert!(driver.set(Config::default(), &[nowhere]).is_err(), "{x}");
        }
    }
}
