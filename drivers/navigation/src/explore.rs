//! Drives autonomously through an unknown area until all of it has been seen. PURE.
//!
//! ```text
//!             a survey with frontiers       none left            at the start again
//!   Waiting -------------------> Exploring ----------> Returning ------------> Finished
//!                                  |    ^
//!                                  +----+ visited, gone, or out of reach: the next frontier
//! ```
//!
//! A frontier is the boundary between free space and unseen cells (Yamauchi, "A frontier-based
//! approach for autonomous exploration", CIRA 1997); see [`mod@frontier`]. The robot drives to one of
//! them with [`DriveToPoint`], so it goes around obstacles, and the collision monitor is the last
//! filter before the wheels. A [`Survey`] of the grid takes some time; another thread can make it.
//!
//! Call the `handle_*` functions when data arrives, and [`Explorer::step`] at least 20 times per
//! second.

pub mod frontier;

use std::time::Duration;

use amber_map::{Occupancy, Point, Pose};

use self::frontier::{Frontier, frontiers};
use crate::collision::{Decision, Reason, Touch};
use crate::drive_to_point::{self, ClientId, DriveToPoint, Event, Skipped, Target};
use crate::grid::{DistanceField, GridError};
use crate::kinematics::Wheels;
use crate::planner::{self, Planner};
use crate::pose_tracker::PoseReading;
use crate::scan::Scan;

/// A frontier is visited when the robot is this near: it sees across.
const RADIUS_M: f64 = 0.3;
/// If a frontier is still there after that, the robot goes as near as this: it must stand in a gate to
/// see what is behind it.
const CLOSE_M: f64 = 0.1;
/// Such a frontier goes after others, as if the way were so much longer.
const AGAIN_M: f64 = 20.0;
/// If no path leads to one, the robot may come this much nearer to unknown cells than to walls: beside
/// a frontier there are some, and a narrow door is full of them.
const BOLD_M: f64 = 0.15;
/// And so much nearer to walls: noise makes the walls of a gate of 0.51 m thicker on the grid, and the
/// robot would not fit through. The collision monitor keeps its own margin.
const TIGHT_M: f64 = 0.02;
/// Frontiers that are this close to each other are the same, in two surveys.
const SAME_M: f64 = 0.4;
/// A frontier this close to a closely visited or skipped one is not visited again.
const DONE_M: f64 = 0.3;
/// A robot with this clearance can turn on the spot.
const TURNING_M: f64 = 0.27;
/// Where it only just fits, it goes last: as if the way were so much longer.
const NARROW_M: f64 = 100.0;
/// A large frontier is worth a detour: so many metres of way for each metre of its length...
const GAIN: f64 = 1.0;
/// ...up to this length.
const MAX_GAIN_M: f64 = 2.0;
/// Without a new survey for this long while the robot stands, there is nothing to see here.
const PATIENCE: Duration = Duration::from_secs(6);
/// Without scans or wheel speeds for this long, the robot stands and waits for them.
const SILENCE: Duration = Duration::from_millis(600);
/// The robot has returned when it is this near to its start.
const HOME_M: f64 = 0.2;
/// The robot tries so often to return to its start, each time with a newer map.
const MAX_RETURNS: u32 = 3;
/// The map has gaps while it is made. A wall that the laser has seen counts until the map has it here.
const COVERS_M: f64 = 0.05;
/// The targets belong to the explorer itself.
const SELF: ClientId = ClientId(0);

/// The explored area, and the possible destinations.
#[derive(Clone, Debug)]
pub struct Survey {
    planner: Planner,
    /// Keeps less distance from unknown cells and walls.
    bold: Planner,
    frontiers: Vec<Frontier>,
}

impl Survey {
    /// Looks for frontiers that a robot at this position can reach.
    #[must_use]
    pub fn new(config: planner::Config, occupancy: &Occupancy, robot: Point) -> Self {
        let turning_m = TURNING_M.max(config.clearance_m);
        let field = DistanceField::from_occupancy(occupancy, 2.0 * turning_m);
        let bold = planner::Config {
            unknown_m: BOLD_M,
            clearance_m: config.clearance_m - TIGHT_M,
            ..config
        };
        let clearances = [bold.clearance_m, turning_m];
        Self {
            planner: Planner::of_occupancy(config, occupancy),
            bold: Planner::of_occupancy(bold, occupancy),
            frontiers: frontiers(occupancy, &field, robot, clearances),
        }
    }

    /// The frontiers, those with room to turn first.
    #[must_use]
    pub fn frontiers(&self) -> &[Frontier] {
        &self.frontiers
    }
}

/// The activity of the robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for the first survey.
    Waiting,
    /// It drives to a frontier, or waits for the next survey.
    Exploring,
    /// It has seen everything, and drives back to its start.
    Returning,
    /// It stands at its start.
    Finished,
    /// It stands, because it could not return to its start.
    NotReturned,
}

impl State {
    /// Whether the exploration has ended.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::NotReturned)
    }
}

/// Explores.
#[derive(Clone, Debug)]
pub struct Explorer {
    drive: DriveToPoint,
    state: State,
    /// The usual planner and the bold one.
    planners: Option<(Planner, Planner)>,
    is_bold: bool,
    frontiers: Vec<Frontier>,
    goal: Option<Point>,
    /// Frontiers that were visited, but not closely.
    visited: Vec<Point>,
    /// Closely visited and skipped frontiers.
    done: Vec<Point>,
    start: Option<Pose>,
    scanned: Option<Duration>,
    measured: Option<Duration>,
    /// Since when there is no goal.
    idle_since: Option<Duration>,
    skipped: Vec<(Point, Skipped)>,
    not_returned: Option<Skipped>,
    /// How often the robot could not return.
    returns: u32,
    /// When it tries again without a new survey.
    tries_again: Option<Duration>,
}

impl Explorer {
    /// Creates an explorer that waits for measurements.
    ///
    /// # Errors
    /// Never: there is no map yet.
    pub fn new(config: drive_to_point::Config) -> Result<Self, GridError> {
        let config = drive_to_point::Config {
            map_covers_m: COVERS_M,
            ..config
        };
        Ok(Self {
            drive: DriveToPoint::new(config, &[])?,
            state: State::Waiting,
            planners: None,
            is_bold: false,
            frontiers: Vec::new(),
            goal: None,
            visited: Vec::new(),
            done: Vec::new(),
            start: None,
            scanned: None,
            measured: None,
            idle_since: None,
            skipped: Vec::new(),
            not_returned: None,
            returns: 0,
            tries_again: None,
        })
    }

    /// A scan has arrived.
    pub fn handle_scan(&mut self, scan: &Scan) {
        self.scanned = Some(scan.end());
        self.drive.handle_scan(scan);
    }

    /// The speeds of the wheels were measured.
    pub fn handle_wheels(&mut self, time: Duration, wheels: Wheels) {
        self.measured = Some(time);
        self.drive.handle_wheels(time, wheels);
    }

    /// The bumpers were read, see [`Monitor::handle_touches`](crate::collision::Monitor::handle_touches).
    pub fn handle_touches(&mut self, time: Duration, touches: &[Touch]) {
        self.drive.handle_touches(time, touches);
    }

    /// The map says where the robot was.
    pub fn handle_pose(&mut self, reading: PoseReading) {
        self.start.get_or_insert(reading.pose);
        self.drive.handle_pose(reading);
    }

    /// A new survey is there.
    pub fn handle_survey(&mut self, now: Duration, survey: Survey) {
        self.planners = Some((survey.planner, survey.bold));
        self.use_map();
        self.frontiers = survey.frontiers;
        self.idle_since = None;
        if self.state == State::Waiting {
            self.state = State::Exploring;
        }
        if self.tries_again.is_some() {
            self.go_home(now);
        }
        if self.state != State::Exploring {
            return;
        }
        let is_left = |goal: Point| self.open().any(|frontier| near(frontier.at, goal, SAME_M));
        if self.goal.is_none_or(|goal| !is_left(goal)) {
            self.choose(now);
        }
    }

    /// The speeds for the wheels now.
    pub fn step(&mut self, now: Duration) -> Decision {
        let is_silent =
            |last: Option<Duration>| last.is_none_or(|last| now.saturating_sub(last) > SILENCE);
        if is_silent(self.scanned) || is_silent(self.measured) {
            // The driver of targets would give them up, one after the other.
            return Decision::stop(Reason::ScanTimeout);
        }
        let decision = self.drive.step(now);
        while let Some(event) = self.drive.poll_event() {
            match (event, self.state) {
                (Event::Visited(target), State::Exploring) if target.radius_m > CLOSE_M => {
                    self.visited.push(target.at);
                    self.leave(now, target.at);
                }
                (Event::Visited(target), State::Exploring) => {
                    self.done.push(target.at);
                    self.leave(now, target.at);
                }
                (Event::Skipped(target, Skipped::Unreachable(_)), State::Exploring)
                    if !self.is_bold =>
                {
                    self.is_bold = true;
                    self.use_map();
                    self.go(now, target.at, target.radius_m);
                }
                (Event::Skipped(target, why), State::Exploring) => {
                    self.skipped.push((target.at, why));
                    self.done.push(target.at);
                    self.leave(now, target.at);
                }
                (Event::Visited(_), State::Returning) => {
                    self.not_returned = None;
                    self.state = State::Finished;
                }
                (Event::Skipped(target, Skipped::Unreachable(_)), State::Returning)
                    if !self.is_bold =>
                {
                    self.is_bold = true;
                    self.use_map();
                    self.go(now, target.at, HOME_M);
                }
                (Event::Skipped(_, why), State::Returning) => self.fail_to_return(now, why),
                _ => {}
            }
        }
        let is_over = |since: Duration| now.saturating_sub(since) >= PATIENCE;
        if self.state == State::Exploring && self.idle_since.is_some_and(is_over) {
            self.go_home(now);
        }
        if self.tries_again.is_some_and(|time| time <= now) {
            self.go_home(now);
        }
        decision
    }

    /// The activity of the robot.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// How it drives to its present goal.
    #[must_use]
    pub fn drive(&self) -> &DriveToPoint {
        &self.drive
    }

    /// The frontiers that the robot could not reach, and why.
    #[must_use]
    pub fn skipped(&self) -> &[(Point, Skipped)] {
        &self.skipped
    }

    /// The reason why the robot could not return to its start.
    #[must_use]
    pub fn not_returned(&self) -> Option<Skipped> {
        self.not_returned
    }

    fn open(&self) -> impl Iterator<Item = &Frontier> {
        let is_open = |frontier: &&Frontier| {
            let mut done = self.done.iter();
            !done.any(|done| near(frontier.at, *done, DONE_M))
        };
        self.frontiers.iter().filter(is_open)
    }

    /// Leaves a frontier, at least until the next survey.
    fn leave(&mut self, now: Duration, at: Point) {
        self.frontiers
            .retain(|frontier| !near(frontier.at, at, DONE_M));
        self.goal = None;
        self.choose(now);
    }

    fn was_visited(&self, at: Point) -> bool {
        (self.visited.iter()).any(|visited| near(*visited, at, DONE_M))
    }

    fn use_map(&mut self) {
        if let Some((planner, bold)) = &self.planners {
            let planner = if self.is_bold { bold } else { planner };
            self.drive.set_map(planner.clone());
        }
    }

    /// Drives to the frontier that is worth its way most; waits if there is none.
    fn choose(&mut self, now: Duration) {
        self.be_usual();
        let price = |frontier: &&Frontier| {
            let narrow_m = if frontier.is_narrow { NARROW_M } else { 0.0 };
            let again_m = if self.was_visited(frontier.at) {
                AGAIN_M
            } else {
                0.0
            };
            frontier.way_m + narrow_m + again_m - GAIN * frontier.length_m.min(MAX_GAIN_M)
        };
        let best = self
            .open()
            .min_by(|a, b| price(a).total_cmp(&price(b)))
            .copied();
        self.goal = best.map(|frontier| frontier.at);
        match self.goal {
            Some(at) if self.was_visited(at) => self.go(now, at, CLOSE_M),
            Some(at) => self.go(now, at, RADIUS_M),
            None => {
                self.drive.set_targets(now, SELF, &[]);
                self.idle_since.get_or_insert(now);
            }
        }
    }

    fn fail_to_return(&mut self, now: Duration, why: Skipped) {
        self.not_returned = Some(why);
        self.returns += 1;
        if self.returns < MAX_RETURNS {
            self.tries_again = Some(now + PATIENCE);
        } else {
            self.state = State::NotReturned;
        }
    }

    fn be_usual(&mut self) {
        if self.is_bold {
            self.is_bold = false;
            self.use_map();
        }
    }

    fn go_home(&mut self, now: Duration) {
        self.be_usual();
        self.state = State::Returning;
        self.tries_again = None;
        match self.start {
            Some(start) => self.go(now, start.at, HOME_M),
            None => self.state = State::Finished,
        }
    }

    fn go(&mut self, now: Duration, at: Point, radius_m: f64) {
        self.drive
            .set_targets(now, SELF, &[Target { at, radius_m }]);
    }
}

fn near(a: Point, b: Point, within_m: f64) -> bool {
    a.minus(b).length() <= within_m
}

#[cfg(test)]
mod tests {
    use amber_map::{Cell, Layout};

    use super::*;
    use crate::scan::{Beam, Echo};

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A room of 3 m x 3 m around the origin. With a door, nobody has seen what is behind it.
    fn survey(has_door: bool) -> Survey {
        let layout = Layout {
            low: Point::new(-1.5, -1.5),
            cell_m: 0.05,
            columns: 60,
            rows: 60,
        };
        let is_edge = |at: usize| at == 0 || at == 59;
        let cells = (0..layout.cells()).map(|cell| {
            let (column, row) = (cell % 60, cell / 60);
            match column == 59 && (20..40).contains(&row) && has_door {
                true => Cell::Unknown,
                false if is_edge(column) || is_edge(row) => Cell::Occupied,
                false => Cell::Free,
            }
        });
        let occupancy = Occupancy::from_cells(layout, cells.collect()).unwrap();
        Survey::new(planner::Config::default(), &occupancy, Point::default())
    }

    /// A robot in the middle of the room.
    struct Run {
        explorer: Explorer,
        now: Duration,
    }

    impl Run {
        fn new(has_door: bool) -> Self {
            let mut robot = Self {
                explorer: Explorer::new(drive_to_point::Config::new(Pose::default())).unwrap(),
                now: Duration::ZERO,
            };
            robot.hear(10);
            robot.explorer.handle_survey(robot.now, survey(has_door));
            robot
        }

        /// Measurements and poses, ten times per second, and the decision at the end.
        fn hear(&mut self, times: u32) -> Decision {
            let mut decision = Decision::stop(Reason::Idle);
            for _ in 0..times {
                self.now += ms(100);
                let beams = (-120..=120).map(|degrees| Beam {
                    angle_rad: f64::from(degrees).to_radians(),
                    echo: Echo::At(1.4),
                });
                self.explorer.handle_wheels(self.now, Wheels::STOP);
                self.explorer.handle_scan(&Scan {
                    start: self.now,
                    beam_time: Duration::ZERO,
                    beams: beams.collect(),
                });
                self.explorer.handle_pose(PoseReading {
                    time: self.now,
                    pose: Pose::default(),
                    quality: 1.0,
                });
                decision = self.explorer.step(self.now);
            }
            decision
        }
    }

    #[test]
    fn it_drives_to_the_door_and_stops_while_nothing_is_measured() {
        let mut robot = Run::new(true);
        assert!(robot.hear(1).wheels.fastest_m_s() > 0.05);
        assert_eq!(robot.explorer.state(), State::Exploring);
        let silent = robot.now + SILENCE + ms(50);
        assert_eq!(robot.explorer.step(silent).wheels, Wheels::STOP);
        // Silence is no reason to give up a goal.
        robot.now += Duration::from_secs(60);
        assert!(robot.hear(2).wheels.fastest_m_s() > 0.05);
        assert!(robot.explorer.skipped().is_empty());
    }

    #[test]
    fn in_a_closed_room_it_is_finished_at_once() {
        let mut robot = Run::new(false);
        let waits = PATIENCE.as_millis() as u32 / 100 + 2;
        assert_eq!(robot.hear(waits).wheels, Wheels::STOP);
        assert_eq!(robot.explorer.state(), State::Finished);
    }

    #[test]
    fn a_robot_that_cannot_return_says_so() {
        let mut robot = Run::new(false);
        // Its start is behind a wall.
        robot.explorer.start = Some(Pose {
            at: Point::new(9.0, 9.0),
            heading: 0.0,
        });
        let waits = PATIENCE.as_millis() as u32 / 100 + 2;
        for _ in 1..MAX_RETURNS {
            assert_eq!(robot.hear(waits).wheels, Wheels::STOP);
            assert_eq!(robot.explorer.state(), State::Returning);
        }
        assert_eq!(robot.hear(waits).wheels, Wheels::STOP);
        assert_eq!(robot.explorer.state(), State::NotReturned);
        assert!(robot.explorer.state().is_over());
        let why = robot.explorer.not_returned();
        assert!(matches!(why, Some(Skipped::Unreachable(_))), "{why:?}");
        assert!(robot.explorer.skipped().is_empty(), "the place is explored");
    }

    #[test]
    fn without_a_survey_it_stands() {
        let mut explorer = Explorer::new(drive_to_point::Config::new(Pose::default())).unwrap();
        assert_eq!(explorer.step(ms(100)).wheels, Wheels::STOP);
        assert_eq!(explorer.state(), State::Waiting);
    }
}
