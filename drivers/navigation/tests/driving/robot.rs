//! The simulated robot as the programs on it see it: scans, measured wheel speeds and poses arrive
//! late and with noise, on a virtual clock.

use std::time::Duration;

use amber_map::{Point, Pose, Segment, wrap};
use amber_navigation::kinematics::Wheels;
use amber_navigation::random::gaussian;
use amber_navigation::scan::{Beam, Echo, Scan};
use amber_sim::hokuyo::{Model, Sweep, is_dark};
use amber_sim::wheels::{Drive, metres_per_second, pulses_of};
use amber_sim::world::{OUTLINE, STEP, World};

/// A turn of the laser, and the time that a finished scan needs to arrive.
const TURN: Duration = Duration::from_millis(100);
const SCAN_LATENCY: Duration = Duration::from_millis(20);
/// The time that a command needs to reach the motors.
const COMMAND_LATENCY: Duration = Duration::from_millis(10);
/// The period of measured wheel speeds.
const WHEELS_PERIOD: Duration = Duration::from_millis(50);
/// The period of poses: how often DriveToPoint asked the location driver.
const POSE_PERIOD: Duration = Duration::from_millis(90);

/// Settings of the noise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    /// The share of beams that return a random shorter distance.
    pub(crate) outliers: f64,
    /// The standard deviation of each coordinate of a pose.
    pub(crate) pose_m: f64,
    /// The standard deviation of the heading of a pose.
    pub(crate) heading_rad: f64,
}

/// The noise of poses of the fact sheet.
pub(crate) const SHEET: Noise = Noise {
    outliers: 0.02,
    pose_m: 0.02,
    heading_rad: 0.0105,
};

/// Input for the program under test.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Scan(Scan),
    Wheels(Duration, Wheels),
    Pose(Duration, Pose),
}

/// The simulated robot.
pub(crate) struct Robot {
    pub(crate) world: World,
    pub(crate) laser_on: bool,
    pub(crate) pose_on: bool,
    pub(crate) noise: Noise,
    random: fastrand::Rng,
    turn: u32,
    next_wheels: Duration,
    next_pose: Duration,
    wanted: Vec<(Duration, Wheels)>,
    drives: [Drive; 4],
    /// The smallest distance of the footprint from a wall so far.
    pub(crate) clearance_m: f64,
}

impl Robot {
    pub(crate) fn new(walls: Vec<Segment>, start: Pose, seed: u64, noise: Noise) -> Self {
        let world = World::new(walls, start, seed).expect("a free start");
        Self {
            world,
            laser_on: true,
            pose_on: true,
            noise,
            random: fastrand::Rng::with_seed(seed ^ 0x5eed),
            turn: 0,
            next_wheels: Duration::ZERO,
            next_pose: Duration::ZERO,
            wanted: Vec::new(),
            drives: [Drive::RELEASED; 4],
            clearance_m: f64::INFINITY,
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.world.now()
    }

    /// Sends speeds to the motors.
    pub(crate) fn send(&mut self, wheels: Wheels) {
        // The messages have whole millimetres per second.
        let rounded = |speed: f64| (speed * 1000.0).round() / 1000.0;
        let [
            front_left_m_s,
            front_right_m_s,
            rear_left_m_s,
            rear_right_m_s,
        ] = wheels.all_m_s().map(rounded);
        let wheels = Wheels {
            front_left_m_s,
            front_right_m_s,
            rear_left_m_s,
            rear_right_m_s,
        };
        self.wanted.push((self.now() + COMMAND_LATENCY, wheels));
    }

    /// Advances by one step of the world and returns what arrives.
    pub(crate) fn step(&mut self) -> Vec<Event> {
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
            events.push(Event::Wheels(now, self.measured_wheels()));
            self.clearance_m = self.clearance_m.min(self.footprint_clearance_m());
        }
        let sweep = Sweep {
            start: TURN * self.turn,
            turn: TURN,
        };
        if now >= sweep.start + Model::Urg04Lx.sweep_time(TURN) + SCAN_LATENCY {
            self.turn += 1;
            if self.laser_on {
                events.push(Event::Scan(self.scan(sweep)));
            }
        }
        if now >= self.next_pose {
            self.next_pose += POSE_PERIOD;
            if self.pose_on {
                // As late as a scan that was just evaluated.
                let time = now.saturating_sub(Duration::from_millis(50));
                events.push(Event::Pose(time, self.noisy_pose(time)));
            }
        }
        events
    }

    fn measured_wheels(&self) -> Wheels {
        let speeds = self.world.readings().map(|reading| {
            let mm_s = metres_per_second(f64::from(reading.speed_qpps)) * 1000.0;
            mm_s.trunc() / 1000.0
        });
        Wheels {
            front_left_m_s: speeds[0],
            front_right_m_s: speeds[1],
            rear_left_m_s: speeds[2],
            rear_right_m_s: speeds[3],
        }
    }

    fn noisy_pose(&mut self, time: Duration) -> Pose {
        let pose = self.world.pose_at(time);
        let [x, y, turn] = [(); 3].map(|()| gaussian(&mut self.random));
        Pose {
            at: pose.at.plus(Point::new(x, y).times(self.noise.pose_m)),
            heading: wrap(pose.heading + turn * self.noise.heading_rad),
        }
    }

    fn scan(&mut self, sweep: Sweep) -> Scan {
        let model = Model::Urg04Lx;
        let limit_m = f64::from(model.max_mm()) / 1000.0;
        let world = &self.world;
        let distances: Vec<_> = (0..=model.last_step())
            .map(|step| {
                if step < model.first_step() {
                    return None;
                }
                let time = model.beam_time(sweep, step);
                let angle = model.angle(step);
                let way_m = world.beam(time, angle, limit_m)?;
                let end = world.pose_at(time);
                let end = end.global(Point::new(way_m, 0.0).turned(angle));
                (!is_dark(end)).then_some(way_m)
            })
            .collect();
        let measured = model.measure(&distances, &mut self.random);
        let beams = (model.first_step()..=model.last_step()).map(|step| {
            let mm = measured.distances[step as usize];
            let echo = match mm {
                0 => Echo::Nothing,
                6 => Echo::TooNear,
                1..20 => Echo::Invalid,
                _ if self.random.f64() < self.noise.outliers => {
                    Echo::At(0.02 + self.random.f64() * f64::from(mm) / 1000.0)
                }
                _ => Echo::At(f64::from(mm) / 1000.0),
            };
            Beam {
                angle_rad: model.angle(step),
                echo,
            }
        });
        Scan {
            start: model.beam_time(sweep, model.first_step()),
            beam_time: TURN / model.steps_per_turn(),
            beams: beams.collect(),
        }
    }

    /// The distance of the footprint from the nearest wall.
    pub(crate) fn footprint_clearance_m(&self) -> f64 {
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
pub(crate) fn is_due(now: Duration, period: Duration) -> bool {
    now.as_nanos() % period.as_nanos() < STEP.as_nanos()
}

/// A box, counter-clockwise.
pub(crate) fn box_of(centre: Point, width_m: f64, height_m: f64) -> Vec<Segment> {
    let corners = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
        .map(|(x, y)| centre.plus(Point::new(x * width_m / 2.0, y * height_m / 2.0)));
    (0..4)
        .map(|index| Segment {
            from: corners[index],
            to: corners[(index + 1) % 4],
        })
        .collect()
}
