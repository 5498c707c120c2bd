//! Runs of the collision monitor: straight at obstacles, along walls, through a gate, and without a
//! client. PURE.

use std::f64::consts::FRAC_PI_4;
use std::time::Duration;

use amber_map::{Point, Pose, Segment};
use amber_sim::wheels::Wheel;
use amber_sim::world::STEP;

use super::laser::Errors;
use super::robot::{Event, LASER, Robot, Sensors, box_of, is_due};
use crate::collision::{Config, Monitor, Reason};
use crate::kinematics::{Twist, Wheels};

/// The period of the monitor.
const PERIOD: Duration = Duration::from_millis(20);
/// The period of a client's commands.
const COMMANDS: Duration = Duration::from_millis(100);

/// What stands in the way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Obstacle {
    /// A wall across the way.
    Wall,
    /// A post of 30 mm.
    Post,
    /// A wall at 45 degrees.
    SlantedWall,
    /// A box that appears when the robot is this far from it, from its centre.
    Appears(f64),
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// How often the robot touched something.
    pub contacts: u64,
    /// The distance between the robot and the obstacle at the end.
    pub stop_m: f64,
    /// The longest time for a scan or a step of the monitor.
    pub worst: Duration,
    /// The mean of these times.
    pub mean: Duration,
    /// Whether the robot stood still at the end.
    pub stopped: bool,
}

/// A clock for the time that computations take.
pub type Clock = fn() -> Duration;

/// A robot with a monitor and a client.
#[derive(Debug)]
pub struct Guarded {
    /// The robot.
    pub robot: Robot,
    /// The monitor under test.
    pub monitor: Monitor,
    reasons: Vec<(Duration, Reason)>,
    clock: Clock,
    spent: Vec<Duration>,
}

impl Guarded {
    /// A robot at rest.
    ///
    /// # Panics
    /// The start is not free.
    #[must_use]
    pub fn new(walls: &[Segment], start: Pose, seed: u64, laser: Errors) -> Self {
        let sensors = Sensors {
            laser,
            ..Sensors::NOISY
        };
        Self {
            robot: Robot::new(walls, start, seed, sensors).expect("a free start"),
            monitor: Monitor::new(Config::new(sensors.mount)),
            reasons: Vec::new(),
            clock: || Duration::ZERO,
            spent: Vec::new(),
        }
    }

    /// Advances by one step of the world; the command is repeated as a client does.
    pub fn step(&mut self, command: Option<Wheels>) {
        let mut has_scan = false;
        for event in self.robot.step() {
            match event {
                Event::Scan(scan) => {
                    let start = (self.clock)();
                    self.monitor.handle_scan(&scan);
                    self.spent.push((self.clock)() - start);
                    has_scan = true;
                }
                Event::Wheels(time, wheels) => self.monitor.handle_wheels(time, wheels),
                Event::Pose(_) => {}
            }
        }
        let now = self.robot.now();
        if let Some(command) = command
            && is_due(now, COMMANDS)
        {
            self.monitor.handle_command(now, command);
        }
        if is_due(now, PERIOD) || has_scan {
            let start = (self.clock)();
            let decision = self.monitor.step(now);
            self.spent.push((self.clock)() - start);
            self.robot.send(decision.wheels);
            if self.reasons.last().map(|it| it.1) != Some(decision.reason) {
                self.reasons.push((now, decision.reason));
            }
        }
    }

    fn is_moving(&self) -> bool {
        let speeds = self.robot.world.wheel_speeds();
        speeds.into_iter().any(|speed| speed.abs() > 0.005)
    }
}

/// Drives at an obstacle.
#[must_use]
pub fn approach(obstacle: Obstacle, speed_m_s: f64, seed: u64, clock: Clock) -> Run {
    let mut random = fastrand::Rng::with_seed(seed ^ 0xa0);
    let way_m = 1.2 + random.f64();
    let start = Pose::new(0.0, (random.f64() - 0.5) * 0.1, (random.f64() - 0.5) * 0.1);
    let wall = |turn: f64| {
        let half = Point::new(0.0, 1.5).turned(turn);
        let centre = Point::new(way_m, 0.0);
        vec![Segment {
            from: centre.minus(half),
            to: centre.plus(half),
        }]
    };
    let mut walls = box_of(Point::new(2.0, 0.0), 8.0, 8.0);
    let ahead = match obstacle {
        Obstacle::Wall => wall(0.0),
        Obstacle::SlantedWall => wall(FRAC_PI_4),
        Obstacle::Post => box_of(Point::new(way_m, 0.0), 0.03, 0.03),
        Obstacle::Appears(_) => Vec::new(),
    };
    walls.extend(&ahead);
    let laser = Errors {
        short_beams: 0.01,
        ..LASER
    };
    let mut guarded = Guarded::new(&walls, start, seed, laser);
    guarded.clock = clock;
    let mut placed = !ahead.is_empty();
    let mut run = Run::default();
    let mut rest = Duration::ZERO;
    let command = Wheels::sides(speed_m_s, speed_m_s);
    while guarded.robot.now() < Duration::from_secs(15) && rest < Duration::from_millis(600) {
        guarded.step(Some(command));
        let pose = guarded.robot.world.pose();
        if let Obstacle::Appears(away_m) = obstacle
            && !placed
            && pose.at.x > way_m - 0.5
        {
            placed = true;
            let centre = pose.global(Point::new(away_m + 0.1, 0.0));
            let walls = box_of(centre, 0.2, 0.2);
            guarded.robot.world.add_walls(&walls).expect("a free place");
            guarded.robot.measure_clearance_again();
        }
        let started = guarded.robot.now() > Duration::from_secs(1);
        rest = if guarded.is_moving() || !started {
            Duration::ZERO
        } else {
            rest + STEP
        };
    }
    run.contacts = guarded.robot.world.contacts();
    run.stop_m = guarded.robot.footprint_clearance_m();
    run.stopped = rest >= Duration::from_millis(600);
    run.worst = guarded.spent.iter().max().copied().unwrap_or_default();
    run.mean = guarded.spent.iter().sum::<Duration>() / guarded.spent.len().max(1) as u32;
    run
}

/// Drives along a wall; the mean speed after the start.
#[must_use]
pub fn along_wall(gap_m: f64, seed: u64) -> (f64, u64) {
    let mut walls = box_of(Point::new(4.0, 0.0), 12.0, 8.0);
    walls.push(Segment {
        from: Point::new(-1.0, 0.165 + gap_m),
        to: Point::new(9.0, 0.165 + gap_m),
    });
    let mut guarded = Guarded::new(&walls, Pose::default(), seed, LASER);
    let command = Some(Wheels::sides(0.4, 0.4));
    let run = |guarded: &mut Guarded, until_s: u64| {
        while guarded.robot.now() < Duration::from_secs(until_s) {
            guarded.step(command);
        }
        guarded.robot.world.pose().at.x
    };
    let start_m = run(&mut guarded, 2);
    let end_m = run(&mut guarded, 12);
    ((end_m - start_m) / 10.0, guarded.robot.world.contacts())
}

/// Passes a gate of 0.51 m; the slowest speed within a metre of it, and contacts.
#[must_use]
pub fn gate(offset_m: f64, seed: u64) -> (f64, u64) {
    let mut walls = box_of(Point::new(1.0, 0.0), 8.0, 4.0);
    for side in [-1.0, 1.0] {
        walls.push(Segment {
            from: Point::new(1.0, side * 0.255),
            to: Point::new(1.0, side * 2.0),
        });
    }
    let mut guarded = Guarded::new(&walls, Pose::new(0.0, offset_m, 0.0), seed, LASER);
    let mut slowest_m_s = f64::INFINITY;
    while guarded.robot.now() < Duration::from_secs(15) && guarded.robot.world.pose().at.x < 2.0 {
        guarded.step(Some(Wheels::sides(0.4, 0.4)));
        if guarded.robot.now() > Duration::from_secs(1) {
            slowest_m_s = slowest_m_s.min(guarded.robot.world.wheel_speeds()[0]);
        }
    }
    if guarded.robot.world.pose().at.x < 2.0 {
        slowest_m_s = 0.0;
    }
    (slowest_m_s, guarded.robot.world.contacts())
}

/// One command and then silence: the time until the wheels are at rest.
#[must_use]
pub fn silence(seed: u64) -> Duration {
    let walls = box_of(Point::default(), 20.0, 20.0);
    let mut guarded = Guarded::new(&walls, Pose::default(), seed, LASER);
    while guarded.robot.now() < Duration::from_secs(2) {
        guarded.step(Some(Wheels::sides(0.4, 0.4)));
    }
    let last = guarded.robot.now();
    while guarded.monitor.step(guarded.robot.now()).wheels != Wheels::STOP {
        guarded.step(None);
    }
    guarded.robot.now() - last
}

/// The laser is switched off at 0.4 m/s: the time until the command is zero.
#[must_use]
pub fn laser_off(seed: u64) -> Duration {
    let walls = box_of(Point::default(), 20.0, 20.0);
    let mut guarded = Guarded::new(&walls, Pose::default(), seed, LASER);
    let command = Some(Wheels::sides(0.4, 0.4));
    while guarded.robot.now() < Duration::from_secs(2) {
        guarded.step(command);
    }
    guarded.robot.laser_on = false;
    let last = guarded.robot.now();
    while guarded.monitor.step(guarded.robot.now()).wheels != Wheels::STOP {
        guarded.step(command);
    }
    guarded.robot.now() - last
}

/// The wheels are blocked at 0.3 m/s: the time until the monitor reports it.
#[must_use]
pub fn stuck(seed: u64) -> Duration {
    let walls = box_of(Point::default(), 20.0, 20.0);
    let mut guarded = Guarded::new(&walls, Pose::default(), seed, LASER);
    let command = Some(Wheels::sides(0.3, 0.3));
    while guarded.robot.now() < Duration::from_secs(2) {
        guarded.step(command);
    }
    for wheel in Wheel::ALL {
        guarded.robot.world.set_stuck(wheel, true);
    }
    let start = guarded.robot.now();
    let is_reported = |guarded: &Guarded| {
        let last = guarded.reasons.last();
        last.is_some_and(|(_, reason)| *reason == Reason::Stuck)
    };
    while !is_reported(&guarded) && guarded.robot.now() < start + Duration::from_secs(10) {
        guarded.step(command);
    }
    guarded.robot.now() - start
}

/// The result of a [`random_driver`].
#[derive(Clone, Debug, Default)]
pub struct Wandering {
    /// The times and poses of contacts.
    pub touched: Vec<(Duration, Pose)>,
    /// The smallest distance from a wall.
    pub clearance_m: f64,
    /// How far the robot drove.
    pub way_m: f64,
}

/// A random driver with the guard on.
#[must_use]
pub fn random_driver(walls: &[Segment], start: Pose, seconds: u64, seed: u64) -> Wandering {
    let mut guarded = Guarded::new(walls, start, seed, LASER);
    let mut random = fastrand::Rng::with_seed(seed ^ 0xd1);
    let mut twist = Twist::STOP;
    let drive = Config::new(Pose::default()).drive;
    let mut until = Duration::ZERO;
    let mut result = Wandering::default();
    while guarded.robot.now() < Duration::from_secs(seconds) {
        if guarded.robot.now() >= until {
            until = guarded.robot.now() + Duration::from_millis(300 + random.u64(..2500));
            let forward = random.f64() * 1.1 - 0.4;
            twist = Twist::new(forward, (random.f64() - 0.5) * 4.0);
            if random.f64() < 0.2 {
                twist.forward_m_s = 0.0;
            }
        }
        guarded.step(Some(drive.wheels(twist)));
        let world = &guarded.robot.world;
        if world.contacts() > result.touched.len() as u64 {
            result.touched.push((world.now(), world.pose()));
        }
    }
    result.clearance_m = guarded.robot.clearance_m();
    result.way_m = guarded.robot.world.travelled_m();
    result
}
