//! Runs of DriveToPoint and PidFollowTrajectory. PURE.

use std::f64::consts::FRAC_PI_4;
use std::time::Duration;

use amber_map::{Map, MapPose, Point, Pose, Segment};
use amber_navigation::drive_to_point::{ClientId, Config, DriveToPoint, State, Target};
use amber_navigation::kinematics::{SkidSteer, Wheels};
use amber_navigation::path::Path;
use amber_navigation::planner::Planner;
use amber_navigation::pose_tracker;
use amber_navigation::trajectory::{self, Trajectory, Waypoint};
use amber_sim::world::{OUTLINE, find_start};

use super::laser::Scanner;
use super::robot::{Blindness, Event, Robot, Sensors, box_of, is_due};

/// How often the drivers decide.
const PERIOD: Duration = Duration::from_millis(20);
/// The radius of targets.
const RADIUS_M: f64 = 0.25;
const CLIENT: ClientId = ClientId(1);
/// The client sets the targets when the pose is known, and at this time at the earliest.
const STARTS: Duration = Duration::from_millis(500);
/// How often something that moves takes a step, ...
const MOVES_EVERY: Duration = Duration::from_millis(50);
/// ...and its distance from the robot.
const KEPT_M: f64 = 0.1;
/// The effective tracks that the driver assumes; the true one is 0.42 m.
const TRACKS_M: [f64; 2] = [0.38, 0.46];

/// Points of the map frame as targets.
#[must_use]
pub fn targets(places: &[(f64, f64)]) -> Vec<Target> {
    let target = |(x, y): &(f64, f64)| Target {
        at: Pose::from(MapPose::new(*x, *y, 0.0)).at,
        radius_m: RADIUS_M,
    };
    places.iter().map(target).collect()
}

/// All rooms of a map, always the nearest one next, and back. Empty if the map has no nodes.
#[must_use]
pub fn tour(map: &Map) -> Vec<Target> {
    let Ok(planner) = Planner::new(Default::default(), &map.walls) else {
        return Vec::new();
    };
    let mut rest = map.nodes.clone();
    if rest.is_empty() {
        return Vec::new();
    }
    let first = rest.remove(0);
    let mut tour = vec![first];
    let mut last = first;
    loop {
        let way = |to: &Point| planner.plan(last, *to, RADIUS_M, &[]);
        let nearest = (0..rest.len())
            .filter_map(|index| Some((way(&rest[index]).ok()?.length_m(), index)))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, index)) = nearest else {
            break;
        };
        last = rest.remove(index);
        tour.push(last);
    }
    tour.push(first);
    let target = |at| Target {
        at,
        radius_m: RADIUS_M,
    };
    tour.into_iter().map(target).collect()
}

/// A free pose at a place, in one of eight directions.
#[must_use]
pub fn start_at(walls: &[Segment], at: Point) -> Pose {
    let turns = (0..8).map(|turn| f64::from(turn) * FRAC_PI_4);
    let poses: Vec<Pose> = turns.map(|heading| Pose { at, heading }).collect();
    find_start(walls, &poses).unwrap_or(Pose { at, heading: 0.0 })
}

/// Something that happens during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Incident {
    /// Nothing.
    None,
    /// The robot is carried away after this time.
    Kidnap(Duration, Pose),
    /// The scans end.
    LaserOff(Duration),
    /// The laser sees nothing any more.
    Blind(Duration, Blindness),
    /// The poses end.
    PoseOff(Duration),
    /// The targets are cleared.
    Cleared(Duration),
    /// A box appears on the path, this far ahead.
    Box(Duration, f64),
    /// Something walks or drives to and fro across the path. It stops before the robot.
    Crossing(Duration, Crossing),
    /// Somebody closes a door.
    Door(Door),
}

/// A door that somebody closes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Door {
    /// Where it is, as a wall when it is closed.
    pub at: Segment,
    /// When it is closed.
    pub closes: Closes,
    /// When it is opened again.
    pub opens: Option<Duration>,
}

/// When a door is closed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Closes {
    /// The centre of the robot is this near, for the first time.
    Ahead(f64),
    /// The robot has just passed.
    Behind,
}

/// A robot whose centre was this near to a door has been in it, ...
const IN_DOOR_M: f64 = 0.15;
/// ...and has passed when it is this far away: its corners reach 0.25 m.
const PASSED_M: f64 = 0.3;

/// A door and what has happened to it.
#[derive(Clone, Copy, Debug)]
struct Doorway {
    door: Door,
    was_in: bool,
    closed: Option<Duration>,
}

impl Doorway {
    /// Closes or opens it, if it is time to.
    fn step(&mut self, walls: &[Segment], robot: &mut Robot) {
        let now = robot.now();
        if let Some(closed) = self.closed {
            if (self.door.opens).is_some_and(|opens| now >= closed + opens) {
                self.door.opens = None;
                // The robot cannot stand in it.
                let _ = robot.world.set_walls(walls.to_vec());
            }
            return;
        }
        let away_m = self.door.at.distance(robot.world.pose().at);
        self.was_in |= away_m <= IN_DOOR_M;
        let closes = match self.door.closes {
            Closes::Ahead(ahead_m) => away_m <= ahead_m,
            Closes::Behind => self.was_in && away_m >= PASSED_M,
        };
        if closes && robot.world.add_walls(&[self.door.at]).is_ok() {
            self.closed = Some(now);
        }
    }
}

/// Something that moves across the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// Where it crosses the path, from the place of the robot on.
    pub ahead_m: f64,
    /// Its size along and across its way.
    pub size_m: [f64; 2],
    pub speed_m_s: f64,
    /// How far it goes to both sides of the path.
    pub reach_m: f64,
}

impl Crossing {
    /// Somebody who walks.
    pub const PERSON: Self = Self {
        ahead_m: 1.0,
        size_m: [0.3, 0.3],
        speed_m_s: 0.4,
        reach_m: 0.7,
    };
    /// Another robot.
    pub const VEHICLE: Self = Self {
        ahead_m: 1.2,
        size_m: [0.37, 0.33],
        speed_m_s: 0.2,
        reach_m: 0.7,
    };
}

/// A crossing that has begun.
#[derive(Clone, Copy, Debug)]
struct Mover {
    crossing: Crossing,
    /// Where it crosses the path, with the heading of the path.
    across: Pose,
    /// How far it is to the left of the path, and whether it moves to the left.
    left_m: f64,
    goes_left: bool,
}

impl Mover {
    fn new(crossing: Crossing, across: Pose) -> Self {
        Self {
            crossing,
            across,
            left_m: crossing.reach_m,
            goes_left: false,
        }
    }

    /// Moves on, if the robot and the walls leave room.
    fn step(&mut self, walls: &[Segment], robot: &mut Robot, dt_s: f64) {
        let step_m = self.crossing.speed_m_s * dt_s;
        let to_m = self.left_m + if self.goes_left { step_m } else { -step_m };
        if to_m.abs() > self.crossing.reach_m {
            self.goes_left = !self.goes_left;
            return;
        }
        let [along_m, across_m] = self.crossing.size_m;
        let half = Point::new(across_m / 2.0, along_m / 2.0);
        let corners = [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)];
        let corners = corners.map(|(x, y)| {
            let offset = Point::new(x * half.x, to_m + y * half.y);
            self.across.global(offset)
        });
        let centre = self.across.global(Point::new(0.0, to_m));
        // It keeps clear of the robot, as a person does.
        let away_m = centre.minus(robot.world.pose().at).length();
        let room_m = half.length() + OUTLINE.radius_m() + KEPT_M;
        if away_m < room_m && away_m < self.away_m(robot) {
            return;
        }
        let faces = (0..4).map(|index| Segment {
            from: corners[index],
            to: corners[(index + 1) % 4],
        });
        let all = walls.iter().copied().chain(faces).collect();
        if robot.world.set_walls(all).is_ok() {
            self.left_m = to_m;
        }
    }

    fn away_m(&self, robot: &Robot) -> f64 {
        let centre = self.across.global(Point::new(0.0, self.left_m));
        centre.minus(robot.world.pose().at).length()
    }
}

impl Incident {
    fn at(self) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::Kidnap(at, _)
            | Self::LaserOff(at)
            | Self::Blind(at, _)
            | Self::PoseOff(at)
            | Self::Cleared(at)
            | Self::Box(at, _)
            | Self::Crossing(at, _) => Some(at),
            Self::Door(_) => None,
        }
    }
}

/// A run of DriveToPoint.
#[derive(Clone, Debug)]
pub struct Errand {
    /// The walls around the robot, which the map has, too.
    pub walls: Vec<Segment>,
    /// The start pose of the robot.
    pub start: Pose,
    pub targets: Vec<Target>,
    /// The course of events.
    pub incident: Incident,
    /// The measurements of the robot.
    pub sensors: Sensors,
    /// The configuration; the track differs in each run.
    pub config: Config,
    /// The end of the run.
    pub limit: Duration,
}

/// The result of an [`Errand`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The targets that were visited.
    pub visited: usize,
    /// The targets that were skipped.
    pub skipped: usize,
    /// How often the robot touched a wall.
    pub contacts: u64,
    /// The smallest distance of the footprint from walls.
    pub clearance_m: f64,
    /// From the targets to the end.
    pub time_s: f64,
    /// How far the robot drove.
    pub way_m: f64,
    /// From the incident to the zero command.
    pub stop_s: Option<f64>,
    /// When the first target was skipped.
    pub skipped_s: Option<f64>,
    /// The time in each state.
    pub states: Vec<(State, f64)>,
    /// The times and places of contacts.
    pub touched: Vec<(f64, Pose)>,
    /// When and where an obstacle began to block the robot.
    pub blocked: Vec<(f64, Pose)>,
    /// The largest error of the poses of a [`amber_navigation::location::Location`].
    pub location_error_m: f64,
}

impl Errand {
    /// To the targets without incidents, with noisy poses.
    #[must_use]
    pub fn new(walls: &[Segment], start: Pose, targets: &[Target]) -> Self {
        let sensors = Sensors::NOISY;
        Self {
            walls: walls.to_vec(),
            start,
            targets: targets.to_vec(),
            incident: Incident::None,
            sensors,
            config: Config::new(sensors.mount),
            limit: Duration::from_secs(300),
        }
    }

    /// The same with poses of a [`amber_navigation::location::Location`].
    #[must_use]
    pub fn located(self) -> Self {
        Self {
            sensors: Sensors::LOCATED,
            ..self
        }
    }

    /// The same with another scanner.
    #[must_use]
    pub fn with_scanner(mut self, scanner: Scanner) -> Self {
        self.sensors.scanner = scanner;
        self
    }

    /// The same with an incident.
    #[must_use]
    pub fn with(self, incident: Incident) -> Self {
        Self { incident, ..self }
    }

    /// The same, up to this time.
    #[must_use]
    pub fn until_s(self, limit_s: u64) -> Self {
        let limit = Duration::from_secs(limit_s);
        Self { limit, ..self }
    }

    /// Drives. The run is empty if the start is not free or the map is too large.
    #[must_use]
    pub fn run(&self, seed: u64) -> Run {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x77);
        let mut config = self.config;
        config.collision.drive.track_m = TRACKS_M[0] + (TRACKS_M[1] - TRACKS_M[0]) * random.f64();
        let robot = Robot::new(&self.walls, self.start, seed, self.sensors);
        let driver = DriveToPoint::new(config, &self.walls);
        match (robot, driver) {
            (Ok(robot), Ok(driver)) => self.drive(robot, driver),
            _ => Run::default(),
        }
    }

    fn drive(&self, mut robot: Robot, mut driver: DriveToPoint) -> Run {
        let mut run = Run::default();
        let mut started = None;
        let mut happened = None;
        let mut state = State::Idle;
        let mut mover = None;
        let mut doorway = match self.incident {
            Incident::Door(door) => Some(Doorway {
                door,
                was_in: false,
                closed: None,
            }),
            _ => None,
        };
        while robot.now() < self.limit {
            for event in robot.step() {
                match event {
                    Event::Scan(scan) => driver.handle_scan(&scan),
                    Event::Wheels(time, wheels) => driver.handle_wheels(time, wheels),
                    Event::Pose(reading) => driver.handle_pose(reading),
                }
            }
            let now = robot.now();
            let error_m = robot.location_error_m().unwrap_or_default();
            run.location_error_m = run.location_error_m.max(error_m);
            if robot.world.contacts() > run.contacts {
                run.contacts = robot.world.contacts();
                run.touched.push((now.as_secs_f64(), robot.world.pose()));
            }
            if started.is_none() && now >= STARTS {
                driver.set_targets(now, CLIENT, &self.targets);
                started = Some(now);
            }
            let Some(since) = started.map(|start| now - start) else {
                continue;
            };
            if happened.is_none() && self.incident.at().is_some_and(|at| since >= at) {
                happened = Some(now);
                self.happen(&mut robot, &mut driver);
                mover = self.crossing(&robot, &driver);
            }
            if let Some(mover) = &mut mover
                && is_due(now, MOVES_EVERY)
            {
                mover.step(&self.walls, &mut robot, MOVES_EVERY.as_secs_f64());
            }
            if let Some(doorway) = &mut doorway {
                doorway.step(&self.walls, &mut robot);
            }
            if is_due(now, PERIOD) {
                let decision = driver.step(now);
                robot.send(decision.wheels);
                if let Some(happened) = happened
                    && decision.wheels == Wheels::STOP
                {
                    run.stop_s.get_or_insert((now - happened).as_secs_f64());
                }
                if !driver.skipped_targets().is_empty() {
                    run.skipped_s.get_or_insert(since.as_secs_f64());
                }
                if driver.state() == State::Blocked && state != State::Blocked {
                    let pose = robot.world.pose();
                    run.blocked.push((now.as_secs_f64(), pose));
                }
                state = driver.state();
                run.spend(state);
                run.time_s = since.as_secs_f64();
                if state == State::Idle && !robot.is_moving() {
                    break;
                }
            }
        }
        run.visited = driver.visited_targets().len();
        run.skipped = driver.skipped_targets().len();
        run.clearance_m = robot.clearance_m();
        run.way_m = robot.world.travelled_m();
        run
    }

    fn crossing(&self, robot: &Robot, driver: &DriveToPoint) -> Option<Mover> {
        let Incident::Crossing(_, crossing) = self.incident else {
            return None;
        };
        let path = driver.path()?;
        let here_m = path
            .project(robot.world.pose().at, 0.0, f64::INFINITY)
            .way_m;
        let way_m = here_m + crossing.ahead_m;
        let across = Pose {
            at: path.at(way_m),
            heading: path.direction_rad(way_m),
        };
        Some(Mover::new(crossing, across))
    }

    fn happen(&self, robot: &mut Robot, driver: &mut DriveToPoint) {
        match self.incident {
            Incident::None | Incident::Crossing(..) | Incident::Door(_) => {}
            // A place that is not free changes nothing, and the result shows it.
            Incident::Kidnap(_, pose) => {
                let _ = robot.world.place(pose);
            }
            Incident::LaserOff(_) => robot.laser_on = false,
            Incident::Blind(_, blind) => robot.blind = Some(blind),
            Incident::PoseOff(_) => robot.pose_on = false,
            Incident::Cleared(_) => driver.set_targets(robot.now(), CLIENT, &[]),
            Incident::Box(_, ahead_m) => {
                let pose = robot.world.pose();
                let centre = driver.path().map_or_else(
                    || pose.global(Point::new(ahead_m, 0.0)),
                    |path| {
                        let here = path.project(pose.at, 0.0, f64::INFINITY).way_m;
                        path.at(here + ahead_m)
                    },
                );
                let _ = robot.world.add_walls(&box_of(centre, 0.15, 0.15));
            }
        }
    }
}

impl Run {
    /// The mean speed.
    #[must_use]
    pub fn mean_m_s(&self) -> f64 {
        self.way_m / self.time_s.max(0.001)
    }

    fn spend(&mut self, state: State) {
        let time_s = PERIOD.as_secs_f64();
        match self.states.iter_mut().find(|(other, _)| *other == state) {
            Some((_, sum_s)) => *sum_s += time_s,
            None => self.states.push((state, time_s)),
        }
    }
}

/// The result of a trajectory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tracking {
    /// The distance beside the path.
    pub rms_m: f64,
    /// The largest one.
    pub max_m: f64,
    /// The distance from the end of the path at the end.
    pub end_m: f64,
    /// The time that it took.
    pub time_s: f64,
    /// The length of the path.
    pub length_m: f64,
    /// Whether the end was reached.
    pub finished: bool,
}

/// A room of the size of the laboratory with two boxes, so that no two places look alike.
fn room() -> Vec<Segment> {
    let mut walls = box_of(Point::new(1.5, -2.45), 3.0, 4.9);
    walls.extend(box_of(Point::new(2.5, -0.6), 0.5, 0.3));
    walls.extend(box_of(Point::new(2.6, -3.2), 0.3, 0.6));
    walls
}

/// Follows the corners of a closed path with points between them.
#[must_use]
pub fn follow(
    corners: &[(f64, f64)],
    spacing_m: f64,
    track_m: f64,
    mut sensors: Sensors,
    seed: u64,
) -> Tracking {
    let corners: Vec<Point> = corners
        .iter()
        .map(|(x, y)| Pose::from(MapPose::new(*x, *y, 0.0)).at)
        .collect();
    let Some(outline) = Path::new(corners.iter().copied()) else {
        return Tracking::default();
    };
    let mut points = Vec::new();
    for (index, pair) in corners.windows(2).enumerate() {
        let length_m = pair[1].minus(pair[0]).length();
        let steps = (length_m / spacing_m).round().max(1.0);
        for step in u32::from(index > 0)..=steps as u32 {
            points.push(Waypoint {
                at: pair[0].plus(pair[1].minus(pair[0]).times(f64::from(step) / steps)),
                time: Duration::ZERO,
            });
        }
    }
    let drive = SkidSteer {
        track_m,
        ..SkidSteer::default()
    };
    if let super::robot::Poses::Location { track_m: assumed } = &mut sensors.poses {
        *assumed = track_m;
    }
    let start = Pose {
        at: corners[0],
        heading: outline.direction_rad(0.0),
    };
    let mut driver = Trajectory::new(drive, pose_tracker::Config::default());
    let ready = driver.set(trajectory::Config::default(), &points).is_ok();
    let robot = Robot::new(&room(), start, seed, sensors);
    let (Ok(mut robot), true) = (robot, ready) else {
        return Tracking::default();
    };
    let (mut squares, mut count) = (0.0, 0);
    let mut result = Tracking {
        length_m: outline.length_m(),
        ..Tracking::default()
    };
    let mut way_m = 0.0;
    let mut began = None;
    while robot.now() < Duration::from_secs(90) {
        for event in robot.step() {
            match event {
                Event::Scan(_) => {}
                Event::Wheels(time, wheels) => driver.handle_wheels(time, wheels),
                Event::Pose(reading) => driver.handle_pose(reading),
            }
        }
        let now = robot.now();
        if !is_due(now, PERIOD) {
            continue;
        }
        if began.is_none() && now >= STARTS {
            began = driver.start(CLIENT).is_ok().then_some(now);
        }
        robot.send(driver.step(now));
        let Some(began) = began else { continue };
        let at = robot.world.pose().at;
        let place = outline.project(at, way_m - 0.3, way_m + 0.4);
        way_m = f64::max(way_m, place.way_m);
        squares += place.left_m * place.left_m;
        count += 1;
        result.max_m = result.max_m.max(place.left_m.abs());
        result.time_s = (now - began).as_secs_f64();
        result.finished = driver.state() == trajectory::State::Finished;
        if result.finished && !robot.is_moving() {
            break;
        }
    }
    result.rms_m = (squares / f64::from(count.max(1))).sqrt();
    result.end_m = robot.world.pose().at.minus(outline.end()).length();
    result
}
