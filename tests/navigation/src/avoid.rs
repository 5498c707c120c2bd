//! Runs of the collision monitor: straight at obstacles, along walls, through a gate, and without a
//! client. PURE.

use std::f64::consts::{FRAC_PI_4, PI, TAU};
use std::time::Duration;

use amber_map::{Point, Pose, Segment};
use amber_navigation::collision::{Config, Monitor, Reason};
use amber_navigation::kinematics::{Twist, Wheels};
use amber_sim::wheels::Wheel;
use amber_sim::world::{OUTLINE, STEP};

use super::laser::{Errors, Scanner};
use super::robot::{Blindness, Event, LASER, Robot, Sensors, box_of, is_due};

mod by_hand;

pub use self::by_hand::{Lap, lap};

/// The period of the monitor.
const PERIOD: Duration = Duration::from_millis(20);
/// The period of a client's commands.
const COMMANDS: Duration = Duration::from_millis(100);

/// A motion no longer leads away from walls when they are this much nearer than before.
const PAST_BEST_M: f64 = 0.002;
/// A robot stands if it moves less than this in a second.
const STANDS_M: f64 = 0.005;

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
    pub robot: Robot,
    /// The monitor under test.
    pub monitor: Monitor,
    reasons: Vec<(Duration, Reason)>,
    /// When the latest scan was begun.
    begun: Option<Duration>,
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
        Self::with_scanner(walls, start, seed, laser, Scanner::Urg04Lx)
    }

    /// The same with another scanner.
    ///
    /// # Panics
    /// The start is not free.
    #[must_use]
    pub fn with_scanner(
        walls: &[Segment],
        start: Pose,
        seed: u64,
        laser: Errors,
        scanner: Scanner,
    ) -> Self {
        let sensors = Sensors {
            scanner,
            laser,
            ..Sensors::NOISY
        };
        Self {
            robot: Robot::new(walls, start, seed, sensors).expect("a free start"),
            monitor: Monitor::new(Config::new(sensors.mount)),
            reasons: Vec::new(),
            begun: None,
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
                    self.begun = Some(scan.start);
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

/// Drives at an obstacle; with a negative speed backwards.
#[must_use]
pub fn approach(
    obstacle: Obstacle,
    scanner: Scanner,
    speed_m_s: f64,
    seed: u64,
    clock: Clock,
) -> Run {
    let mut random = fastrand::Rng::with_seed(seed ^ 0xa0);
    let way_m = 1.2 + random.f64();
    let (y, heading) = ((random.f64() - 0.5) * 0.1, (random.f64() - 0.5) * 0.1);
    let sign = speed_m_s.signum();
    let start = match sign < 0.0 {
        true => Pose::new(0.0, y, PI + heading),
        false => Pose::new(0.0, y, heading),
    };
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
    let mut guarded = Guarded::with_scanner(&walls, start, seed, laser, scanner);
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
            let centre = pose.global(Point::new(sign * (away_m + 0.1), 0.0));
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

/// Drives at 0.4 m/s when a box appears this far ahead of the front. The client sends its last command
/// at the same moment.
#[must_use]
pub fn last_command(ahead_m: f64, seed: u64) -> Run {
    let walls = box_of(Point::new(2.0, 0.0), 8.0, 8.0);
    let mut guarded = Guarded::new(&walls, Pose::default(), seed, LASER);
    let command = Some(Wheels::sides(0.4, 0.4));
    while guarded.robot.world.pose().at.x < 1.0 || !is_due(guarded.robot.now(), COMMANDS) {
        guarded.step(command);
    }
    let centre = Point::new(OUTLINE.half_length_m + ahead_m + 0.1, 0.0);
    let centre = guarded.robot.world.pose().global(centre);
    let added = guarded.robot.world.add_walls(&box_of(centre, 0.2, 0.2));
    added.expect("a free place");
    guarded.robot.measure_clearance_again();
    let end = guarded.robot.now() + Duration::from_secs(3);
    while guarded.robot.now() < end {
        guarded.step(None);
    }
    Run {
        contacts: guarded.robot.world.contacts(),
        stop_m: guarded.robot.footprint_clearance_m(),
        stopped: !guarded.is_moving(),
        ..Run::default()
    }
}

/// A box appears 70 mm before the front at 0.3 m/s: the time from the arrival of the first scan that
/// was begun after that to the zero command.
#[must_use]
pub fn reaction(seed: u64) -> Duration {
    let walls = box_of(Point::new(2.0, 0.0), 8.0, 8.0);
    let mut guarded = Guarded::new(&walls, Pose::default(), seed, LASER);
    let command = Some(Wheels::sides(0.3, 0.3));
    // Each seed has another moment within a turn of the scanner.
    let start = Duration::from_millis(2000 + 7 * seed % 100);
    while guarded.robot.now() < start {
        guarded.step(command);
    }
    let centre = Point::new(OUTLINE.half_length_m + 0.17, 0.0);
    let centre = guarded.robot.world.pose().global(centre);
    let added = guarded.robot.world.add_walls(&box_of(centre, 0.2, 0.2));
    added.expect("a free place");
    let appeared = guarded.robot.now();
    let mut shown = None;
    while guarded.robot.now() < appeared + Duration::from_secs(2) {
        guarded.step(command);
        let is_new = |begun: &Duration| *begun >= appeared;
        if shown.is_none() && guarded.begun.as_ref().is_some_and(is_new) {
            shown = Some(guarded.robot.now());
        }
        let stopped = guarded.reasons.last();
        if stopped.is_some_and(|(_, reason)| matches!(reason, Reason::Blocked | Reason::Momentum)) {
            // A scan that was under way may already show it.
            return shown.map_or(Duration::ZERO, |shown| guarded.robot.now() - shown);
        }
    }
    Duration::MAX
}

/// The result of [`blinded`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Blinded {
    /// Contacts.
    pub contacts: u64,
    /// From the first scan without sight to the standing robot, in seconds; infinite if it never stands.
    pub stop_s: f64,
    /// How far the robot drove meanwhile.
    pub way_m: f64,
    /// Whether the monitor names the laser as the reason.
    pub is_said: bool,
    /// Whether the robot drives again when the laser sees.
    pub goes_on: bool,
}

/// Drives towards a wall at 0.2 to 0.7 m/s when the laser sees nothing any more; the client goes on for
/// eight seconds, and then the laser sees again.
#[must_use]
pub fn blinded(kind: Blindness, seed: u64) -> Blinded {
    let mut random = fastrand::Rng::with_seed(seed ^ 0xb1);
    let walls = box_of(Point::new(2.0, 0.0), 6.0, 3.0 + 2.0 * random.f64());
    let start = Pose::new(0.0, random.f64() - 0.5, 0.6 * (random.f64() - 0.5));
    let mut guarded = Guarded::new(&walls, start, seed, LASER);
    let speed_m_s = 0.2 + 0.5 * random.f64();
    let ahead = Some(Wheels::sides(speed_m_s, speed_m_s));
    let begins = Duration::from_millis(1000 + random.u64(..3000));
    let run = |guarded: &mut Guarded, time: Duration, stood: &mut Option<Duration>| {
        let end = guarded.robot.now() + time;
        while guarded.robot.now() < end {
            guarded.step(ahead);
            match guarded.is_moving() {
                true => *stood = None,
                false => *stood = stood.or(Some(guarded.robot.now())),
            }
        }
    };
    run(&mut guarded, begins, &mut None);
    let (since, before_m) = (guarded.robot.now(), guarded.robot.world.travelled_m());
    guarded.robot.blind = Some(kind);
    let mut stood = None;
    run(&mut guarded, Duration::from_secs(8), &mut stood);
    let way_m = guarded.robot.world.travelled_m() - before_m;
    let is_said = guarded.reasons.last().map(|it| it.1) == Some(Reason::Blind);
    guarded.robot.blind = None;
    run(&mut guarded, Duration::from_millis(500), &mut None);
    let now = guarded.reasons.last().map(|it| it.1);
    Blinded {
        contacts: guarded.robot.world.contacts(),
        stop_s: stood.map_or(f64::INFINITY, |stood| (stood - since).as_secs_f64()),
        way_m,
        is_said,
        goes_on: now != Some(Reason::Blind),
    }
}

/// The result of [`leave`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Left {
    /// The distance from the walls at the start.
    pub from_m: f64,
    /// The greatest distance during the motion.
    pub to_m: f64,
    /// The motion.
    pub twist: Twist,
    /// Contacts.
    pub contacts: u64,
}

/// The robot stands 2 to 12 mm from the walls of a corner, in any direction. A client requests the
/// straight motion, or the turn on the spot, that leads away from them, as long as it does, for at most
/// nine seconds: where the robot has not looked, it drives at 45 mm/s. `None` if no such motion exists.
#[must_use]
pub fn leave(seed: u64) -> Option<Left> {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x1e);
    let walls = box_of(Point::new(2.0, 2.0), 4.0, 4.0);
    let heading = random.f64() * TAU;
    let gap_m = 0.002 + 0.01 * random.f64();
    // In the corner, or at one wall.
    let other_m = if random.bool() { gap_m } else { 1.0 };
    let (sin, cos) = (heading.sin().abs(), heading.cos().abs());
    let (length_m, width_m) = (OUTLINE.half_length_m, OUTLINE.half_width_m);
    let start = Pose {
        at: Point::new(
            length_m * cos + width_m * sin + gap_m,
            length_m * sin + width_m * cos + other_m,
        ),
        heading,
    };
    // The distances from both walls after a motion, from the corners of the robot.
    let rooms_m = |pose: Pose| {
        let corners = [(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0)]
            .map(|(x, y)| pose.global(Point::new(x * length_m, y * width_m)));
        let least = |value: fn(&Point) -> f64| corners.iter().map(value).fold(f64::MAX, f64::min);
        [least(|corner| corner.x), least(|corner| corner.y)]
    };
    let leads_away = |twist: &&Twist| {
        let step = |part: u32| {
            let time_s = f64::from(part) * 0.02;
            let end = start.along_arc(twist.forward_m_s * time_s, twist.turn_rad_s * time_s);
            rooms_m(end)
        };
        (1..=20).all(|part| {
            let (before, after) = (step(part - 1), step(part));
            before
                .iter()
                .zip(after)
                .all(|(before, after)| after >= before - 1e-9)
        }) && step(20)[0] > step(0)[0] + 0.005
    };
    let motions = [
        Twist::new(-0.1, 0.0),
        Twist::new(0.1, 0.0),
        Twist::new(0.0, 0.4),
        Twist::new(0.0, -0.4),
    ];
    let twist = *motions.iter().find(leads_away)?;
    let mut guarded = Guarded::new(&walls, start, seed, LASER);
    let command = Some(Config::new(Pose::default()).drive.wheels(twist));
    while guarded.robot.now() < Duration::from_millis(500) {
        guarded.step(None);
    }
    // A turn that goes on brings the next corner nearer.
    let mut to_m = gap_m;
    while guarded.robot.now() < Duration::from_millis(9500) && to_m < 0.05 {
        guarded.step(command);
        let clearance_m = guarded.robot.footprint_clearance_m();
        if clearance_m < to_m - PAST_BEST_M {
            break;
        }
        to_m = to_m.max(clearance_m);
    }
    Some(Left {
        from_m: gap_m,
        to_m,
        twist,
        contacts: guarded.robot.world.contacts(),
    })
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
    let walls = box_of(Point::default(), 8.0, 8.0);
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
    let walls = box_of(Point::default(), 8.0, 8.0);
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
    let walls = box_of(Point::default(), 8.0, 8.0);
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

/// The robot drives against something that is lower than its laser, and the client goes on: the time
/// from the first contact to the report.
#[must_use]
pub fn pressed(seed: u64) -> Duration {
    let mut random = fastrand::Rng::with_seed(seed ^ 0xb7);
    let walls = box_of(Point::new(2.0, 0.0), 8.0, 6.0);
    let mut guarded = Guarded::new(&walls, Pose::default(), seed, LASER);
    // Up to 20 degrees off the right angle, so the robot does not slide along it.
    let half = Point::new(0.0, 1.0).turned(0.7 * (random.f64() - 0.5));
    let centre = Point::new(1.0 + random.f64(), 0.0);
    let bar = Segment {
        from: centre.minus(half),
        to: centre.plus(half),
    };
    let added = guarded.robot.add_low_walls(&[bar]);
    added.expect("a free place");
    let speed_m_s = 0.1 + 0.4 * random.f64();
    let command = Some(Wheels::sides(speed_m_s, speed_m_s));
    let is_stuck = |guarded: &Guarded| {
        let last = guarded.reasons.last();
        last.is_some_and(|(_, reason)| *reason == Reason::Stuck)
    };
    let mut touched = None;
    while guarded.robot.now() < Duration::from_secs(40) && !is_stuck(&guarded) {
        guarded.step(command);
        if guarded.robot.world.contacts() > 0 {
            touched.get_or_insert(guarded.robot.now());
        }
    }
    match touched {
        Some(touched) if is_stuck(&guarded) => guarded.robot.now() - touched,
        _ => Duration::MAX,
    }
}

/// The result of a [`closing_gate`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Closed {
    /// How often the robot touched something.
    pub contacts: u64,
    /// Its distance from the closed gate when it stood.
    pub stop_m: f64,
    /// Whether it passed after the gate was opened again.
    pub passed: bool,
}

/// A gate of 0.9 m closes before the robot, which a client lets go on, and opens again after some
/// seconds. `is_behind`: it closes when the robot has passed; the client turns it round, and comes back.
#[must_use]
pub fn closing_gate(is_behind: bool, seed: u64) -> Closed {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x6a7e);
    let (gate_x_m, half_m) = (1.5, 0.45);
    let mut open = box_of(Point::new(1.5, 0.0), 5.0, 3.0);
    for side in [-1.0, 1.0] {
        open.push(Segment {
            from: Point::new(gate_x_m, side * half_m),
            to: Point::new(gate_x_m, side * 1.5),
        });
    }
    let gate = Segment {
        from: Point::new(gate_x_m, -half_m),
        to: Point::new(gate_x_m, half_m),
    };
    let start = Pose::new(0.0, 0.1 * (random.f64() - 0.5), 0.1 * (random.f64() - 0.5));
    let mut guarded = Guarded::new(&open, start, seed, LASER);
    let speed_m_s = 0.2 + 0.2 * random.f64();
    let ahead = Some(Wheels::sides(speed_m_s, speed_m_s));
    // The front is 0.35 to 0.65 m before it.
    let close_x_m = gate_x_m - OUTLINE.half_length_m - 0.35 - 0.3 * random.f64();
    let until = |guarded: &mut Guarded, command, is_there: &dyn Fn(Pose) -> bool| {
        let end = guarded.robot.now() + Duration::from_secs(15);
        while guarded.robot.now() < end && !is_there(guarded.robot.world.pose()) {
            guarded.step(command);
        }
    };
    if is_behind {
        let passed_m = gate_x_m + OUTLINE.half_length_m + 0.1;
        until(&mut guarded, ahead, &|pose| pose.at.x >= passed_m);
    } else {
        until(&mut guarded, ahead, &|pose| pose.at.x >= close_x_m);
    }
    if guarded.robot.world.add_walls(&[gate]).is_err() {
        return Closed::default();
    }
    if is_behind {
        until(&mut guarded, ahead, &|pose| pose.at.x >= gate_x_m + 0.8);
        let round = Some(Wheels::sides(-0.15, 0.15));
        until(&mut guarded, round, &|pose| pose.heading.cos() <= -0.995);
    }
    let run = |guarded: &mut Guarded, time: Duration| {
        let end = guarded.robot.now() + time;
        while guarded.robot.now() < end {
            guarded.step(ahead);
        }
        guarded.robot.world.pose().at
    };
    let before = run(&mut guarded, Duration::from_secs(7));
    let at = run(&mut guarded, Duration::from_secs(1));
    let mut result = Closed {
        stop_m: guarded.robot.footprint_clearance_m(),
        ..Closed::default()
    };
    let stood = at.minus(before).length() < STANDS_M;
    if guarded.robot.world.set_walls(open).is_ok() && stood {
        let is_through = |pose: Pose| match is_behind {
            true => pose.at.x <= gate_x_m - 0.3,
            false => pose.at.x >= gate_x_m + 0.3,
        };
        until(&mut guarded, ahead, &is_through);
        result.passed = is_through(guarded.robot.world.pose());
    }
    result.contacts = guarded.robot.world.contacts();
    result
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
