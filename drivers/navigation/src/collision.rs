//! The collision monitor: it passes wheel speeds on, slows them down near obstacles, and stops the
//! wheels when something is in the way or a source is silent. PURE.
//!
//! ```text
//!   scans ----> obstacles (now seen, or remembered) --+
//!   wheel speeds -> odometry ------------------------+|   +----------------------+
//!   commands ---------------------------------------->+-->| step: one factor for |--> wheels
//!   gyro, accelerometer -> stuck, bump --------------->   | all wheels, a reason |    reason
//!                                                         +----------------------+
//! ```
//!
//! Several rules look at each command; each gives a factor from 0 to 1, and the smallest one wins,
//! as in the collision monitor of Nav2 (zones *stop*, *limit* and *approach*). All wheels are
//! scaled by the same factor, so the robot slows down on its arc and never leaves it.
//!
//! - **Approach and stop.** For each obstacle, the distance that the fastest wheel rolls until the
//!   footprint touches it ([`Footprint::time_to_contact_s`]). From distance `d` a robot that reacts
//!   after `t` and brakes with `a` stops in time if its speed `u` fulfils `u t + u^2 / (2 a) <= d`.
//!   The footprint is larger by [`Config::stop_ahead_m`] in the direction of motion and by
//!   [`Config::stop_beside_m`] at the sides. For an obstacle inside this margin the footprint ends
//!   just before it: each motion towards it is refused, each one along it or away from it passes.
//! - **Limit.** An obstacle within [`Config::limit_zone_m`] limits speed and turn.
//! - **Retreat.** Where these margins leave no motion, one that leads away from the nearest surface
//!   and brings no other one nearer passes slowly, see `retreat`. So a robot in a narrow place can get
//!   out.
//! - **Momentum.** The same law for the *measured* motion with hard braking: if a new command would
//!   be free but the old motion ends in an obstacle, the wheels stop first.
//! - **Sources.** Old scans slow the robot down and then stop it; so do old commands.
//! - **Stuck and bump.** See [`Watch`].
//!
//! Call the `handle_*` functions when data arrives, and [`Monitor::step`] at each command and at
//! least 20 times per second.

mod contact;
mod obstacles;
mod retreat;
mod watch;

use std::fmt;
use std::time::Duration;

use amber_map::{Outline, Point, Pose};

pub use self::contact::Footprint;
pub use self::watch::{Imu, Trouble, Watch, WatchConfig};

use self::obstacles::Obstacles;
use self::retreat::{Kind, Margins, Surroundings};
use crate::kinematics::{SkidSteer, Twist, Wheels};
use crate::odometry::Odometry;
use crate::scan::{Echo, Scan};

/// An obstacle inside the margin ends the footprint this much before it.
const GAP_M: f64 = 0.001;
/// Slower wheels do not count as moving.
const CREEP_M_S: f64 = 0.02;
/// Slower wheels have no momentum to speak of.
const MOMENTUM_M_S: f64 = 0.05;
/// The speed of the fastest wheel while the robot leaves a narrow place. Slower than what has
/// momentum, and fast enough for the motors.
const RETREAT_M_S: f64 = 0.045;
/// If wheels were not measured for this long, the monitor assumes that they follow its commands.
const WHEELS_TIMEOUT: Duration = Duration::from_millis(300);
/// A scan with fewer valid beams than this share is useless, e.g. of a covered scanner.
const MIN_USEFUL_BEAMS: f64 = 0.3;

/// The configuration of a [`Monitor`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// The wheels.
    pub drive: SkidSteer,
    /// The outline of the robot.
    pub outline: Outline,
    /// The pose of the scanner on the robot: x ahead, y to the left of the centre. Measure it; a
    /// wrong value is worse than noise.
    pub laser: Pose,
    /// The robot stops this far before an obstacle, in metres. With 0.08 m a Capo can still turn on
    /// the spot in front of a wall: its corners need 0.063 m.
    pub stop_ahead_m: f64,
    /// The margin at the sides, in metres.
    pub stop_beside_m: f64,
    /// The braking that the robot certainly has, in m/s².
    pub braking_m_s2: f64,
    /// The time from a change in the world to braking wheels: the age of a scan, its period, and
    /// the lag of the motors. In seconds.
    pub reaction_s: f64,
    /// Obstacles within this distance limit the speed, in metres; 0 switches the limit off.
    pub limit_zone_m: f64,
    /// The speed limit in that zone, in m/s.
    pub limit_forward_m_s: f64,
    /// The limit of turns in that zone, in rad/s.
    pub limit_turn_rad_s: f64,
    /// The speed limit backwards, where the laser does not look, in m/s.
    pub limit_reverse_m_s: f64,
    /// The limit of the sideways acceleration in curves, in m/s².
    pub lateral_m_s2: f64,
    /// Up to this age a scan allows full speed.
    pub scan_fresh: Duration,
    /// From this age on, the wheels stop.
    pub scan_timeout: Duration,
    /// From this age on, a command no longer counts.
    pub command_timeout: Duration,
    /// Obstacles that the laser no longer sees are remembered for this long. With 3 s a robot that
    /// turns and backs up at random touched walls behind it.
    pub memory: Duration,
    /// Points that the laser no longer sees count as this much nearer, in metres, because dead
    /// reckoning drifts: by 7 mm within the memory, in turns at random.
    pub drift_m: f64,
    /// The detection of a stuck or bumped robot.
    pub watch: WatchConfig,
}

impl Config {
    /// The defaults of a Capo robot with its scanner at this pose.
    #[must_use]
    pub fn new(laser: Pose) -> Self {
        Self {
            drive: SkidSteer::default(),
            outline: Outline {
                half_length_m: 0.185,
                half_width_m: 0.165,
            },
            laser,
            stop_ahead_m: 0.08,
            stop_beside_m: 0.015,
            braking_m_s2: 1.0,
            reaction_s: 0.25,
            limit_zone_m: 0.15,
            limit_forward_m_s: 0.2,
            limit_turn_rad_s: 1.0,
            limit_reverse_m_s: 0.15,
            lateral_m_s2: 1.5,
            scan_fresh: Duration::from_millis(300),
            scan_timeout: Duration::from_millis(600),
            command_timeout: Duration::from_millis(500),
            memory: Duration::from_secs(10),
            drift_m: 0.015,
            watch: WatchConfig::default(),
        }
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The speeds for the wheels.
    pub wheels: Wheels,
    /// The factor by which the command was slowed down: 1 is unchanged, 0 is stopped.
    pub scale: f64,
    /// The rule that gave this factor.
    pub reason: Reason,
    /// The time until a contact if the robot followed the command unchanged, in seconds.
    pub time_to_contact_s: Option<f64>,
}

impl Decision {
    /// The wheels stop.
    #[must_use]
    pub const fn stop(reason: Reason) -> Self {
        Self {
            wheels: Wheels::STOP,
            scale: 0.0,
            reason,
            time_to_contact_s: None,
        }
    }
}

/// Why the wheels turn as they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The command passes unchanged.
    Free,
    /// The command is to stand still.
    Idle,
    /// An obstacle is ahead on the arc: the robot slows down.
    Approach,
    /// An obstacle is in the way: the robot stops.
    Blocked,
    /// An obstacle is within the margin, and the motion brings nothing nearer.
    Retreat,
    /// An obstacle is near: the speed is limited.
    Limit,
    /// The robot drives backwards, where the laser does not look.
    Reverse,
    /// The curve is too fast.
    Lateral,
    /// The robot still moves towards an obstacle: it stops before it follows the command.
    Momentum,
    /// No scan has arrived yet.
    NoScan,
    /// The last scan is old.
    ScanTimeout,
    /// The last command is old.
    CommandTimeout,
    /// The robot does not move as its wheels should.
    Stuck,
    /// The wheels turn differently from what the gyroscope measures.
    Slip,
    /// The robot was hit.
    Bump,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Free => "free",
            Self::Idle => "no motion requested",
            Self::Approach => "slowing down for an obstacle",
            Self::Blocked => "an obstacle is in the way",
            Self::Retreat => "leaving an obstacle slowly",
            Self::Limit => "speed limit near an obstacle",
            Self::Reverse => "speed limit in reverse",
            Self::Lateral => "speed limit in a curve",
            Self::Momentum => "braking before an obstacle",
            Self::NoScan => "no scan yet",
            Self::ScanTimeout => "no new scan",
            Self::CommandTimeout => "no new command",
            Self::Stuck => "the robot is stuck",
            Self::Slip => "the wheels slip",
            Self::Bump => "the robot was hit",
        })
    }
}

/// Counters of ignored input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Scans with too few valid beams.
    pub useless_scans: u64,
    /// Scans that were older than the one before.
    pub late_scans: u64,
    /// Commands with invalid speeds.
    pub invalid_commands: u64,
}

/// The collision monitor of a robot.
#[derive(Clone, Debug)]
pub struct Monitor {
    config: Config,
    odometry: Odometry,
    obstacles: Obstacles,
    scanned: Option<Duration>,
    command: Option<(Duration, Wheels)>,
    /// Whether the command is a careful one, see [`Monitor::handle_careful_command`].
    is_careful: bool,
    sent: Wheels,
    watch: Watch,
    counters: Counters,
}

impl Monitor {
    /// Creates a monitor that waits for its first scan.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            odometry: Odometry::new(config.drive),
            obstacles: Obstacles::default(),
            scanned: None,
            command: None,
            is_careful: false,
            sent: Wheels::STOP,
            watch: Watch::new(config.watch),
            counters: Counters::default(),
        }
    }

    /// A scan has arrived.
    pub fn handle_scan(&mut self, scan: &Scan) {
        let useful = scan.beams.iter().filter(|beam| beam.echo != Echo::Invalid);
        if (useful.count() as f64) < MIN_USEFUL_BEAMS * scan.beams.len() as f64
            || scan.beams.is_empty()
        {
            self.counters.useless_scans += 1;
            return;
        }
        if self.scanned.is_some_and(|last| scan.end() <= last) {
            self.counters.late_scans += 1;
            return;
        }
        let Config { laser, memory, .. } = self.config;
        self.obstacles
            .handle_scan(scan, laser, &self.odometry, memory);
        self.watch.handle_scan(scan, laser, &self.odometry);
        self.scanned = Some(scan.end());
    }

    /// The speeds of the wheels were measured.
    pub fn handle_wheels(&mut self, time: Duration, wheels: Wheels) {
        self.odometry.handle_wheels(time, wheels);
        self.watch.handle_motion(time, self.odometry.latest_twist());
    }

    /// The gyroscope and the accelerometer were read.
    pub fn handle_imu(&mut self, time: Duration, imu: Imu) {
        self.watch.handle_imu(time, imu);
    }

    /// A client wants these wheel speeds, although obstacles may be within the margin ahead: the robot
    /// drives back the way that it came. Where it is that near, it drives slowly, and keeps the margin
    /// of the sides.
    pub fn handle_careful_command(&mut self, now: Duration, wheels: Wheels) {
        self.handle_command(now, wheels);
        self.is_careful = true;
    }

    /// A client wants these wheel speeds.
    pub fn handle_command(&mut self, now: Duration, wheels: Wheels) {
        self.is_careful = false;
        if wheels.is_finite() {
            let wheels = wheels.limited(self.config.drive.max_wheel_m_s);
            self.command = Some((now, wheels));
        } else {
            self.counters.invalid_commands += 1;
        }
    }

    /// The speeds for the wheels now.
    pub fn step(&mut self, now: Duration) -> Decision {
        let silent = |updated: Duration| now.saturating_sub(updated) > WHEELS_TIMEOUT;
        if self.odometry.latest().is_none_or(silent) {
            self.odometry.handle_wheels(now, self.sent);
        }
        let decision = self.decide(now);
        self.sent = decision.wheels;
        let twist = self.config.drive.twist(decision.wheels);
        self.watch.handle_sent(now, twist);
        decision
    }

    /// The dead reckoning of the robot.
    #[must_use]
    pub fn odometry(&self) -> &Odometry {
        &self.odometry
    }

    /// The obstacles of the latest scan in the frame of the robot: x ahead, y to the left.
    pub fn seen(&self, now: Duration) -> impl Iterator<Item = Point> + '_ {
        let robot = self.odometry.pose_at(now);
        self.obstacles.seen().map(move |point| robot.local(point))
    }

    /// Points of walls that are known from a map, where the laser does not look, in the frame of the
    /// robot at this time. They replace the ones before.
    pub fn set_known(&mut self, time: Duration, points: impl Iterator<Item = Point>) {
        let robot = self.odometry.pose_at(time);
        let known = points.map(|point| robot.global(point)).collect();
        self.obstacles.set_known(known);
    }

    /// Forgets points that the laser no longer sees if they are of this kind. The points are in the
    /// frame of the robot at this time.
    pub fn forget_if(&mut self, time: Duration, is_useless: impl Fn(Point) -> bool) {
        let robot = self.odometry.pose_at(time);
        let is_useless = |point| is_useless(robot.local(point));
        self.obstacles.forget_if(is_useless);
    }

    /// Forgets all obstacles and waits for a new scan: the robot was carried away.
    pub fn forget(&mut self) {
        self.obstacles.clear();
        self.scanned = None;
    }

    /// When the last valid scan was measured.
    #[must_use]
    pub fn scanned(&self) -> Option<Duration> {
        self.scanned
    }

    /// Counters of ignored input.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The smallest distance between the footprint and obstacles while the robot turns on the spot by
    /// this angle. Negative if it would touch one; infinite without obstacles.
    #[must_use]
    pub fn turn_room_m(&self, now: Duration, angle_rad: f64) -> f64 {
        let points = self.around(self.odometry.pose_at(now));
        retreat::turn_room_m(self.footprint(), points, angle_rad)
    }

    /// Whether a careful command for this motion passes.
    #[must_use]
    pub fn allows(&self, now: Duration, twist: Twist) -> bool {
        let robot = self.odometry.pose_at(now);
        self.surroundings(robot, true)
            .allow(self.config.drive, twist)
    }

    /// A slow motion that leads away from the obstacles around, if the robot is between some and there
    /// is one.
    #[must_use]
    pub fn way_out(&self, now: Duration) -> Option<Twist> {
        let robot = self.odometry.pose_at(now);
        let unit = self.surroundings(robot, true).way_out(self.config.drive)?;
        Some(unit.scaled(RETREAT_M_S))
    }

    fn surroundings(&self, robot: Pose, is_careful: bool) -> Surroundings {
        let beside_m = self.config.stop_beside_m;
        let margins = Margins {
            ahead_m: if is_careful {
                beside_m
            } else {
                self.config.stop_ahead_m
            },
            beside_m,
            drift_m: self.config.drift_m,
        };
        Surroundings::new(self.footprint(), margins, self.around(robot))
    }

    /// All points in the frame of the robot.
    fn around(&self, robot: Pose) -> impl Iterator<Item = (Kind, Point)> + '_ {
        let seen = self.obstacles.seen().map(|point| (Kind::Seen, point));
        let known = self.obstacles.known().map(|point| (Kind::Known, point));
        let remembered = self.obstacles.remembered();
        let remembered = remembered.map(|point| (Kind::Remembered, point));
        let all = seen.chain(known).chain(remembered);
        all.map(move |(kind, point)| (kind, robot.local(point)))
    }

    fn decide(&self, now: Duration) -> Decision {
        let stop = Decision::stop;
        let Some((commanded, wheels)) = self.command else {
            return stop(Reason::Idle);
        };
        if now.saturating_sub(commanded) > self.config.command_timeout {
            return stop(Reason::CommandTimeout);
        }
        let speed_m_s = wheels.fastest_m_s();
        if speed_m_s == 0.0 {
            return stop(Reason::Idle);
        }
        let Some(scanned) = self.scanned else {
            return stop(Reason::NoScan);
        };
        let twist = self.config.drive.twist(wheels);
        if let Some(trouble) = self.watch.trouble(now, twist) {
            return stop(match trouble {
                Trouble::Stuck => Reason::Stuck,
                Trouble::Slip => Reason::Slip,
                Trouble::Bump => Reason::Bump,
            });
        }
        let robot = self.odometry.pose_at(now);
        let reach_m = self.reach_m(speed_m_s);
        let is_near = |point: &Point| point.length() <= reach_m;
        let remembered = self.obstacles.remembered().map(|point| robot.local(point));
        let near: Vec<Point> = self
            .obstacles
            .sure()
            .map(|point| robot.local(point))
            .filter(is_near)
            .chain(remembered.filter(is_near).map(|point| self.drifted(point)))
            .collect();
        if self.has_momentum(&near, wheels) {
            return stop(Reason::Momentum);
        }
        let contact_s = self.contact_s(&near, twist);
        let mut approach = self.approach(contact_s, speed_m_s);
        let drive = self.config.drive;
        let may_retreat = || {
            let around = self.surroundings(robot, self.is_careful);
            match self.is_careful {
                true => around.allow(drive, twist),
                false => around.allow_away(drive, twist),
            }
        };
        if approach.1 == Reason::Blocked && may_retreat() {
            approach = ((RETREAT_M_S / speed_m_s).min(1.0), Reason::Retreat);
        }
        let (scale, reason) = [
            approach,
            (self.scan_factor(now, scanned), Reason::ScanTimeout),
            (self.limit(&near, twist), Reason::Limit),
            (self.reverse(twist), Reason::Reverse),
            (self.lateral(twist), Reason::Lateral),
        ]
        .into_iter()
        .fold((1.0, Reason::Free), |least, other| {
            if other.0 < least.0 { other } else { least }
        });
        Decision {
            wheels: wheels.scaled(scale),
            scale,
            reason,
            time_to_contact_s: contact_s,
        }
    }

    /// Obstacles farther away than this do not matter at this speed.
    fn reach_m(&self, speed_m_s: f64) -> f64 {
        let Config { braking_m_s2, .. } = self.config;
        let moving_m_s = self
            .config
            .drive
            .wheels(self.odometry.latest_twist())
            .fastest_m_s()
            .max(speed_m_s);
        let stopping_m =
            moving_m_s * self.config.reaction_s + moving_m_s * moving_m_s / (2.0 * braking_m_s2);
        let margin_m = self.config.stop_ahead_m.max(self.config.limit_zone_m);
        self.config.outline.radius_m() + margin_m + stopping_m + 0.1
    }

    /// The time until the first contact, in seconds.
    fn contact_s(&self, near: &[Point], twist: Twist) -> Option<f64> {
        let beside_m = self.beside_m(near);
        near.iter()
            .filter_map(|point| self.point_contact_s(*point, twist, beside_m))
            .min_by(f64::total_cmp)
    }

    /// The margins at the left and the right side. Beside a wall that is nearer than the margin they
    /// end at this wall, so that the robot may drive along it.
    fn beside_m(&self, near: &[Point]) -> [f64; 2] {
        let Footprint {
            front_m,
            rear_m,
            half_width_m,
        } = self.footprint();
        let mut sides_m = [self.config.stop_beside_m; 2];
        for point in near {
            let side_m = point.y.abs() - half_width_m;
            if side_m >= 0.0 && point.x <= front_m && point.x >= -rear_m {
                let margin_m = &mut sides_m[usize::from(point.y < 0.0)];
                *margin_m = margin_m.min((side_m - GAP_M).max(0.0));
            }
        }
        sides_m
    }

    fn point_contact_s(&self, point: Point, twist: Twist, beside_m: [f64; 2]) -> Option<f64> {
        let footprint = self.footprint();
        if footprint.contains(point) {
            // It may be noise, or the robot touches. Only leaving is allowed.
            return deepens(&footprint, point, twist).then_some(0.0);
        }
        let beside_m = beside_m[usize::from(point.y < 0.0)];
        self.margin(point, twist.forward_m_s, beside_m)
            .time_to_contact_s(point, twist)
    }

    /// The footprint with its margins, but at most up to just before a point.
    fn margin(&self, point: Point, forward_m_s: f64, beside_m: f64) -> Footprint {
        let Footprint {
            front_m,
            rear_m,
            half_width_m,
        } = self.footprint();
        let is_ahead = point.x > 0.0;
        let (end_m, way_m) = if is_ahead {
            (front_m, point.x - front_m)
        } else {
            (rear_m, -point.x - rear_m)
        };
        // On the spot, or away from the point, there is no direction of motion to guard.
        let towards = if is_ahead {
            forward_m_s > 0.0
        } else {
            forward_m_s < 0.0
        };
        let mut ahead_m = if towards {
            self.config.stop_ahead_m
        } else {
            self.config.stop_beside_m
        };
        let side_m = point.y.abs() - half_width_m;
        if way_m < ahead_m && side_m <= beside_m {
            ahead_m = (way_m - GAP_M).max(0.0);
        }
        let grown_m = end_m + ahead_m;
        let other_m = self.config.stop_beside_m;
        Footprint {
            front_m: if is_ahead { grown_m } else { front_m + other_m },
            rear_m: if is_ahead { rear_m + other_m } else { grown_m },
            half_width_m: half_width_m + beside_m,
        }
    }

    fn approach(&self, contact_s: Option<f64>, speed_m_s: f64) -> (f64, Reason) {
        let Some(contact_s) = contact_s else {
            return (1.0, Reason::Free);
        };
        let safe_m_s = safe_speed_m_s(
            contact_s * speed_m_s,
            self.config.braking_m_s2,
            self.config.reaction_s,
        );
        if safe_m_s < CREEP_M_S {
            (0.0, Reason::Blocked)
        } else {
            (safe_m_s / speed_m_s, Reason::Approach)
        }
    }

    /// Whether the robot is so fast that it must brake hard now.
    fn has_momentum(&self, near: &[Point], command: Wheels) -> bool {
        let moving = self.odometry.latest_twist();
        let wheels = self.config.drive.wheels(moving);
        let speed_m_s = wheels.fastest_m_s();
        let mut pairs = wheels.all_m_s().into_iter().zip(command.all_m_s());
        let opposes = pairs.by_ref().map(|(now, next)| now * next).sum::<f64>() < -1e-9;
        if speed_m_s < MOMENTUM_M_S || opposes {
            return false;
        }
        // Twice the braking that is certain, and half the reaction: no scan has to arrive.
        let stopping_m = speed_m_s * self.config.reaction_s / 2.0
            + speed_m_s * speed_m_s / (4.0 * self.config.braking_m_s2);
        let footprint = self.footprint();
        near.iter()
            .filter(|point| !footprint.contains(**point))
            .filter_map(|point| footprint.time_to_contact_s(*point, moving))
            .any(|contact_s| contact_s * speed_m_s < stopping_m)
    }

    fn scan_factor(&self, now: Duration, scanned: Duration) -> f64 {
        let Config {
            scan_fresh,
            scan_timeout,
            ..
        } = self.config;
        let age = now.saturating_sub(scanned);
        if age <= scan_fresh {
            1.0
        } else if age >= scan_timeout {
            0.0
        } else {
            (scan_timeout - age).as_secs_f64() / (scan_timeout - scan_fresh).as_secs_f64()
        }
    }

    fn limit(&self, near: &[Point], twist: Twist) -> f64 {
        let zone_m = self.config.limit_zone_m;
        let Footprint {
            front_m,
            rear_m,
            half_width_m,
        } = self.footprint();
        let zone = Footprint {
            front_m: front_m + if twist.forward_m_s > 0.0 { zone_m } else { 0.0 },
            rear_m: rear_m + if twist.forward_m_s < 0.0 { zone_m } else { 0.0 },
            half_width_m: half_width_m + zone_m,
        };
        if zone_m <= 0.0 || !near.iter().any(|point| zone.contains(*point)) {
            return 1.0;
        }
        let forward = self.config.limit_forward_m_s / twist.forward_m_s.abs();
        let turn = self.config.limit_turn_rad_s / twist.turn_rad_s.abs();
        forward.min(turn).min(1.0)
    }

    fn reverse(&self, twist: Twist) -> f64 {
        if twist.forward_m_s < 0.0 {
            (self.config.limit_reverse_m_s / -twist.forward_m_s).min(1.0)
        } else {
            1.0
        }
    }

    fn lateral(&self, twist: Twist) -> f64 {
        let lateral_m_s2 = (twist.forward_m_s * twist.turn_rad_s).abs();
        // Both factors of the product are scaled.
        (self.config.lateral_m_s2 / lateral_m_s2).sqrt().min(1.0)
    }

    /// A remembered point, nearer to the footprint by the drift of dead reckoning, but not in it.
    fn drifted(&self, point: Point) -> Point {
        let Footprint {
            front_m,
            rear_m,
            half_width_m,
        } = self.footprint();
        let beside = Point::new(
            point.x.clamp(-rear_m, front_m),
            point.y.clamp(-half_width_m, half_width_m),
        );
        let way = point.minus(beside);
        let distance_m = way.length();
        let left_m = (distance_m - self.config.drift_m).max(GAP_M);
        if left_m < distance_m {
            beside.plus(way.times(left_m / distance_m))
        } else {
            point
        }
    }

    fn footprint(&self) -> Footprint {
        let Outline {
            half_length_m,
            half_width_m,
        } = self.config.outline;
        Footprint {
            front_m: half_length_m,
            rear_m: half_length_m,
            half_width_m,
        }
    }
}

/// The highest speed from which a robot stops within a distance, if it reacts after `reaction_s` and
/// then brakes evenly.
#[must_use]
pub fn safe_speed_m_s(distance_m: f64, braking_m_s2: f64, reaction_s: f64) -> f64 {
    let distance_m = distance_m.max(0.0);
    braking_m_s2 * ((reaction_s * reaction_s + 2.0 * distance_m / braking_m_s2).sqrt() - reaction_s)
}

/// Whether a point inside the footprint gets deeper inside with this motion.
fn deepens(footprint: &Footprint, point: Point, twist: Twist) -> bool {
    // The velocity of the point as seen from the robot.
    let velocity = Point::new(
        -twist.forward_m_s + twist.turn_rad_s * point.y,
        -twist.turn_rad_s * point.x,
    );
    let (outward, _) = [
        (Point::new(1.0, 0.0), footprint.front_m - point.x),
        (Point::new(-1.0, 0.0), point.x + footprint.rear_m),
        (Point::new(0.0, 1.0), footprint.half_width_m - point.y),
        (Point::new(0.0, -1.0), point.y + footprint.half_width_m),
    ]
    .into_iter()
    .min_by(|a, b| a.1.total_cmp(&b.1))
    .unwrap_or_default();
    velocity.dot(outward) < 0.0
}

#[cfg(test)]
mod tests;
