//! The simulated robot from the view of its programs: scans, measured wheel speeds and poses arrive
//! late and with noise, on a virtual clock. PURE.

use std::time::Duration;

use amber_map::{Point, Pose, Segment, Walls, wrap};
use amber_navigation::kinematics::Wheels;
use amber_navigation::location::{Config, Location, LocationMap};
use amber_navigation::pose_tracker::PoseReading;
use amber_navigation::scan::{Echo, Scan};
use amber_sim::wheels::{Drive, metres_per_second, pulses_of};
use amber_sim::world::{OUTLINE, STEP, StartError, World};

use super::laser::{Errors, Laser, Scanner, noisy};
use super::noise::Noise;

/// The time that a finished scan needs to arrive.
const SCAN_LATENCY: Duration = Duration::from_millis(20);
/// The time that a command needs to reach the motors.
const COMMAND_LATENCY: Duration = Duration::from_millis(10);
/// The period of measured wheel speeds.
const WHEELS_PERIOD: Duration = Duration::from_millis(50);
/// The period of poses with noise, and their age: how often DriveToPoint of the original asked the
/// location driver, and the age of a scan that was just evaluated.
const POSE_PERIOD: Duration = Duration::from_millis(90);
const POSE_AGE: Duration = Duration::from_millis(50);
/// The time that an estimate of the filter needs to arrive.
const POSE_LATENCY: Duration = Duration::from_millis(5);

/// The sensors of the robot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensors {
    /// The scanner.
    pub scanner: Scanner,
    /// Its pose on the robot.
    pub mount: Pose,
    /// The errors of the scanner.
    pub laser: Errors,
    /// The source of poses.
    pub poses: Poses,
}

/// The source of poses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Poses {
    /// The truth with independent errors, each with this standard deviation.
    Noisy {
        /// Of each coordinate, in metres.
        sigma_m: f64,
        /// Of the heading.
        sigma_rad: f64,
    },
    /// A [`Location`] that has to find the robot first.
    Location {
        /// The effective track that it assumes, in metres.
        track_m: f64,
    },
}

/// The scanner of the simulated robot at its centre, with 2 % short beams.
pub const LASER: Errors = Errors {
    noise: Noise::Captured,
    bias_m: 0.0,
    short_beams: 0.02,
};

impl Sensors {
    /// True poses.
    pub const EXACT: Self = Self::with_noise(0.0, 0.0);
    /// Poses with the noise of the fact sheet: 20 mm and 0.6 degrees.
    pub const NOISY: Self = Self::with_noise(0.02, 0.010_5);
    /// Poses of a [`Location`].
    pub const LOCATED: Self = Self {
        poses: Poses::Location { track_m: 0.42 },
        ..Self::EXACT
    };

    const fn with_noise(sigma_m: f64, sigma_rad: f64) -> Self {
        Self {
            scanner: Scanner::Urg04Lx,
            mount: Pose::new(0.0, 0.0, 0.0),
            laser: LASER,
            poses: Poses::Noisy { sigma_m, sigma_rad },
        }
    }
}

/// How a laser sees nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blindness {
    /// No beam has an echo: the laser is dead, or its window is covered.
    NoEcho,
    /// All beams end too near: something lies on the laser.
    TooNear,
    /// A single beam has an echo.
    OneBeam,
}

impl Blindness {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::NoEcho, Self::TooNear, Self::OneBeam];

    fn cover(self, scan: &mut Scan) {
        let kept = scan.beams.len() / 3;
        for (index, beam) in scan.beams.iter_mut().enumerate() {
            beam.echo = match (self, beam.echo) {
                (Self::OneBeam, echo) if index == kept => echo,
                (Self::TooNear, _) => Echo::TooNear,
                (Self::NoEcho | Self::OneBeam, _) => Echo::Nothing,
            };
        }
    }
}

/// Input for the program under test.
#[derive(Clone, Debug)]
pub enum Event {
    Scan(Scan),
    /// The speeds of the wheels at a time.
    Wheels(Duration, Wheels),
    /// A pose on the map.
    Pose(PoseReading),
}

/// The simulated robot.
#[derive(Debug)]
pub struct Robot {
    /// The world with the robot.
    pub world: World,
    /// Whether scans arrive.
    pub laser_on: bool,
    /// Whether the laser sees nothing.
    pub blind: Option<Blindness>,
    /// Whether poses arrive.
    pub pose_on: bool,
    laser: Laser,
    /// The field of view of the laser, if it is limited.
    seen: Option<Walls>,
    poses: Poses,
    location: Option<Box<Location>>,
    /// Poses on their way.
    readings: Vec<(Duration, PoseReading)>,
    random: fastrand::Rng,
    turn: u32,
    next_wheels: Duration,
    next_pose: Duration,
    wanted: Vec<(Duration, Wheels)>,
    drives: [Drive; 4],
    clearance_m: f64,
}

impl Robot {
    /// A robot at rest.
    ///
    /// # Errors
    /// It would overlap a wall.
    pub fn new(
        walls: &[Segment],
        start: Pose,
        seed: u64,
        sensors: Sensors,
    ) -> Result<Self, StartError> {
        let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed);
        let world = World::new(walls.to_vec(), start, seed)?;
        let laser = Laser::new(
            sensors.scanner,
            sensors.mount.into(),
            sensors.laser,
            walls.len(),
            &mut random,
        );
        let location = match sensors.poses {
            Poses::Noisy { .. } => None,
            Poses::Location { track_m } => {
                let config = Config {
                    track_m,
                    seed,
                    ..Config::new(sensors.mount)
                };
                let limit_m = config.limit_m();
                let map = LocationMap::from_walls(walls, &[start.at], config.cell_m, limit_m);
                map.ok().map(|map| Box::new(Location::new(map, config)))
            }
        };
        Ok(Self {
            world,
            laser_on: true,
            blind: None,
            pose_on: true,
            laser,
            seen: None,
            poses: sensors.poses,
            location,
            readings: Vec::new(),
            random,
            turn: 0,
            next_wheels: Duration::ZERO,
            next_pose: Duration::ZERO,
            wanted: Vec::new(),
            drives: [Drive::RELEASED; 4],
            clearance_m: f64::INFINITY,
        })
    }

    /// The time since the start.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.world.now()
    }

    /// Whether a wheel turns.
    #[must_use]
    pub fn is_moving(&self) -> bool {
        let speeds = self.world.wheel_speeds();
        speeds.into_iter().any(|speed| speed.abs() > 0.002)
    }

    /// The smallest distance of the footprint from a wall since the start or since
    /// [`Robot::measure_clearance_again`].
    #[must_use]
    pub fn clearance_m(&self) -> f64 {
        self.clearance_m
    }

    /// Forgets the smallest clearance so far.
    pub fn measure_clearance_again(&mut self) {
        self.clearance_m = f64::INFINITY;
    }

    /// Adds something that is lower than the laser, so it never sees it.
    ///
    /// # Errors
    /// The robot stands there; nothing has changed.
    pub fn add_low_walls(&mut self, walls: &[Segment]) -> Result<(), StartError> {
        let seen = self.world.walls().clone();
        self.world.add_walls(walls)?;
        self.seen.get_or_insert(seen);
        Ok(())
    }

    /// Sends speeds to the motors.
    pub fn send(&mut self, wheels: Wheels) {
        // The messages have whole millimetres per second.
        let rounded = |speed: f64| (speed * 1000.0).round() / 1000.0;
        self.wanted.push((
            self.now() + COMMAND_LATENCY,
            Wheels::of(wheels.all_m_s().map(rounded)),
        ));
    }

    /// Advances by one step of the world and returns what arrives.
    pub fn step(&mut self) -> Vec<Event> {
        while let Some((_, wheels)) = self.wanted.first().filter(|it| it.0 <= self.now()) {
            self.drives = wheels.all_m_s().map(|speed| Drive::Speed {
                qpps: pulses_of(speed),
                acceleration_qpps2: None,
            });
            self.wanted.remove(0);
        }
        self.world.step(self.drives);
        let now = self.now();
        let mut events = Vec::new();
        if now >= self.next_wheels {
            self.next_wheels += WHEELS_PERIOD;
            let wheels = self.measured_wheels();
            if let Some(location) = &mut self.location {
                location.handle_wheels(now, wheels);
            }
            events.push(Event::Wheels(now, wheels));
            self.clearance_m = self.clearance_m.min(self.footprint_clearance_m());
        }
        let sweep = self.laser.sweep(self.turn);
        if now >= self.laser.end_of(sweep) + SCAN_LATENCY {
            self.turn += 1;
            if self.laser_on {
                let world = &self.world;
                let pose_at = |time| world.pose_at(time);
                let walls = self.seen.as_ref().unwrap_or(world.walls());
                let mut scan = (self.laser).scan(walls, pose_at, sweep, &mut self.random);
                if let Some(blind) = self.blind {
                    blind.cover(&mut scan);
                }
                if let Some(location) = &mut self.location {
                    location.handle_scan(scan.clone());
                }
                events.push(Event::Scan(scan));
            }
        }
        events.extend(self.poses_at(now).into_iter().map(Event::Pose));
        events
    }

    /// The poses that arrive now.
    fn poses_at(&mut self, now: Duration) -> Vec<PoseReading> {
        if let Some(location) = &mut self.location
            && location.next_timeout().is_some_and(|due| due <= now)
            && let Some(estimate) = location.update(now)
        {
            let reading = PoseReading {
                time: estimate.time,
                pose: estimate.pose,
                quality: estimate.quality,
            };
            self.readings.push((now + POSE_LATENCY, reading));
        }
        if let Poses::Noisy { sigma_m, sigma_rad } = self.poses
            && now >= self.next_pose
        {
            self.next_pose += POSE_PERIOD;
            let time = now.saturating_sub(POSE_AGE);
            let pose = noisy(
                self.world.pose_at(time),
                sigma_m,
                sigma_rad,
                &mut self.random,
            );
            let reading = PoseReading {
                time,
                pose: Pose {
                    heading: wrap(pose.heading),
                    ..pose
                },
                quality: 1.0,
            };
            self.readings.push((now, reading));
        }
        let due = self
            .readings
            .partition_point(|(arrives, _)| *arrives <= now);
        let arrived = self.readings.drain(..due).map(|(_, reading)| reading);
        let arrived: Vec<PoseReading> = arrived.collect();
        if self.pose_on { arrived } else { Vec::new() }
    }

    /// How far the last estimate of the [`Location`] was from the truth.
    #[must_use]
    pub fn location_error_m(&self) -> Option<f64> {
        let location = self.location.as_ref()?;
        let estimate = location.estimate().filter(|estimate| estimate.decided)?;
        let truth = self.world.pose_at(estimate.time);
        Some(estimate.pose.at.minus(truth.at).length())
    }

    fn measured_wheels(&self) -> Wheels {
        Wheels::of(self.world.readings().map(|reading| {
            let mm_s = metres_per_second(f64::from(reading.speed_qpps)) * 1000.0;
            mm_s.trunc() / 1000.0
        }))
    }

    /// The distance of the footprint from the nearest wall.
    #[must_use]
    pub fn footprint_clearance_m(&self) -> f64 {
        let pose = self.world.pose();
        let (length, width) = (OUTLINE.half_length_m, OUTLINE.half_width_m);
        let corners = [(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0)]
            .map(|(x, y)| pose.global(Point::new(x * length, y * width)));
        let outside = |end: Point| {
            let local = pose.local(end);
            let x = (local.x.abs() - length).max(0.0);
            let y = (local.y.abs() - width).max(0.0);
            x.hypot(y)
        };
        let walls = self.world.walls().segments().iter();
        walls
            .map(|wall| {
                let corner = corners.map(|corner| wall.distance(corner));
                corner
                    .into_iter()
                    .chain([outside(wall.from), outside(wall.to)])
                    .fold(f64::INFINITY, f64::min)
            })
            .fold(f64::INFINITY, f64::min)
    }
}

/// Whether a time is a multiple of a period: when a loop with this period runs.
#[must_use]
pub fn is_due(now: Duration, period: Duration) -> bool {
    now.as_nanos() % period.as_nanos() < STEP.as_nanos()
}

/// A box, counter-clockwise.
#[must_use]
pub fn box_of(centre: Point, width_m: f64, height_m: f64) -> Vec<Segment> {
    let corners = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
        .map(|(x, y)| centre.plus(Point::new(x * width_m / 2.0, y * height_m / 2.0)));
    (0..4)
        .map(|index| Segment {
            from: corners[index],
            to: corners[(index + 1) % 4],
        })
        .collect()
}
