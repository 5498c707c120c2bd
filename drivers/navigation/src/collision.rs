//! The collision monitor: it forwards wheel speeds, reduces them near obstacles, and stops the
//! wheels when something is in the way or a source is silent. PURE.
//!
//! ```text
//!   scans ----> obstacles (now seen, or remembered) --+
//!   wheel speeds -> odometry ------------------------+|   +----------------------+
//!   commands ---------------------------------------->+-->| step: one factor for |--> wheels
//!   gyro, accelerometer -> stuck, bump --------------->   | all wheels, a reason |    reason
//!   bumpers, cliffs ---------------------------------->   |                      |
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
//! - **Unseen.** Backwards, the robot drives only where it has looked or has been, see `looked`: most
//!   lasers do not look there. It may leave an obstacle slowly, and where it has no room for a turn.
//! - **Momentum.** The same law for the *measured* motion with hard braking: if a new command would
//!   be free but the old motion ends in an obstacle, the wheels stop first.
//! - **Sources.** Old scans slow the robot down and then stop it; so do old commands, and a laser that
//!   sees nothing although it should, see [`crate::sight`]. With a slow scanner, what is old is older,
//!   and the robot keeps more distance, see `rhythm`.
//! - **Stuck and bump.** See [`Watch`].
//! - **Touch.** A pressed bumper and a cliff stop what goes that way, see `touch`.
//!
//! Call the `handle_*` functions when data arrives, and [`Monitor::step`] at each command and at
//! least 20 times per second.

mod config;
mod contact;
mod decision;
mod fan;
mod looked;
mod obstacles;
mod retreat;
mod rhythm;
mod rules;
mod touch;
mod watch;

use std::f64::consts::{FRAC_1_SQRT_2, PI};
use std::time::Duration;

use amber_map::{Outline, Point, Pose};

pub use self::config::Config;
pub use self::contact::Footprint;
pub use self::decision::{Decision, Reason};
pub use self::rules::safe_speed_m_s;
pub use self::touch::{Felt, Touch};
pub use self::watch::{Imu, Trouble, Watch, WatchConfig};

use self::looked::Looked;
use self::obstacles::Obstacles;
use self::retreat::{Kind, Margins, Surroundings};
use self::rhythm::Rhythm;
use self::touch::Touches;
use crate::kinematics::{Twist, Wheels};
use crate::odometry::Odometry;
use crate::scan::{Beam, Echo, Scan};
use crate::sight::{Pace, Sight, View};

/// The speed of the fastest wheel while the robot leaves a narrow place. Slower than what has
/// momentum, and fast enough for the motors.
const RETREAT_M_S: f64 = 0.045;
/// If wheels were not measured for this long, the monitor assumes that they follow its commands.
const WHEELS_TIMEOUT: Duration = Duration::from_millis(300);
/// A scan with fewer valid beams than this share is useless, e.g. of a covered scanner.
const MIN_USEFUL_BEAMS: f64 = 0.3;
/// The robot looks behind it if this share of the beams there is valid: no part of it is in the way.
const MIN_REAR_BEAMS: f64 = 0.95;

/// Counters of ignored input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Scans with too few valid beams.
    pub useless_scans: u64,
    /// Scans in which the laser saw nothing although it should have.
    pub blind_scans: u64,
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
    looked: Looked,
    sight: Sight,
    rhythm: Rhythm,
    /// Whether the last scan shows what is behind the robot.
    sees_behind: bool,
    scanned: Option<Duration>,
    /// When the last scan was measured, blind ones included.
    heard: Option<Duration>,
    command: Option<(Duration, Wheels)>,
    /// Whether the command is a careful one, see [`Monitor::handle_careful_command`].
    is_careful: bool,
    sent: Wheels,
    watch: Watch,
    touches: Touches,
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
            looked: Looked::default(),
            sight: Sight::new(config.large_rooms),
            rhythm: Rhythm::default(),
            sees_behind: false,
            scanned: None,
            heard: None,
            command: None,
            is_careful: false,
            sent: Wheels::STOP,
            watch: Watch::new(config.watch),
            touches: Touches::default(),
            counters: Counters::default(),
        }
    }

    /// A scan has arrived.
    pub fn handle_scan(&mut self, scan: &Scan) {
        if scan.beams.is_empty() {
            self.counters.useless_scans += 1;
            return;
        }
        if self.heard.is_some_and(|last| scan.end() <= last) {
            self.counters.late_scans += 1;
            return;
        }
        let view = (self.sight).look(scan, self.config.laser, &self.odometry);
        let useful = scan.beams.iter().filter(|beam| beam.echo != Echo::Invalid);
        if (useful.count() as f64) < MIN_USEFUL_BEAMS * scan.beams.len() as f64 {
            self.counters.useless_scans += 1;
            return;
        }
        self.heard = Some(scan.end());
        self.rhythm.handle_scan(scan);
        if view == View::Blind {
            self.counters.blind_scans += 1;
            return;
        }
        let Config { laser, memory, .. } = self.config;
        self.sees_behind = scan.is_round() && shows_rear(scan, laser);
        let steady = self.rhythm.steady();
        self.obstacles
            .handle_scan(scan, laser, &self.odometry, memory, steady);
        if !self.config.reverses_blindly {
            self.looked.handle_scan(scan, laser, &self.odometry);
        }
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

    /// The bumpers and the sensors for cliffs were read: all that the robot feels now.
    pub fn handle_touches(&mut self, time: Duration, touches: &[Touch]) {
        self.touches.handle(time, touches);
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
        self.looked.clear();
        self.sight.forget();
        self.scanned = None;
    }

    /// When the last valid scan was measured.
    #[must_use]
    pub fn scanned(&self) -> Option<Duration> {
        self.scanned
    }

    /// Whether the laser has seen nothing for so long, although it should, that the robot stands.
    #[must_use]
    pub fn is_blind(&self, now: Duration) -> bool {
        self.sight.pace(now) == Pace::Stop
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
        self.turn_room_with_m(now, angle_rad, |_| 0.0)
    }

    /// The same, with an allowance for each obstacle in the frame of the robot: it counts as farther
    /// away by this length, in metres. A negative one is a margin.
    #[must_use]
    pub fn turn_room_with_m(
        &self,
        now: Duration,
        angle_rad: f64,
        allowance_m: impl Fn(Point) -> f64,
    ) -> f64 {
        let points = self.around(self.odometry.pose_at(now));
        retreat::turn_room_m(self.footprint(), points, angle_rad, allowance_m)
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
        if self.is_blind(now) {
            return stop(Reason::Blind);
        }
        if self.scanned.is_none() {
            return stop(Reason::NoScan);
        }
        if self.config.has_bumper && self.touches.is_unknown(now) {
            return stop(Reason::Unfelt);
        }
        let twist = self.config.drive.twist(wheels);
        if let Some(reason) = self.touches.against(self.config.outline, twist) {
            return stop(reason);
        }
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
        if self.is_unseen(robot, twist) && approach.1 != Reason::Retreat {
            let around = self.surroundings(robot, false);
            let may_leave = around.allow_away(drive, twist)
                || self.turn_room_m(now, PI) < 0.0
                || self.watch.is_alarmed(now)
                || self.touches.any();
            if !may_leave {
                return stop(Reason::Unseen);
            }
            let slow = (RETREAT_M_S / speed_m_s).min(1.0);
            if slow < approach.0 {
                approach = (slow, Reason::Retreat);
            }
        }
        let (scale, reason) = [
            approach,
            (self.scan_factor(now), Reason::ScanTimeout),
            (self.blind_factor(now, speed_m_s), Reason::Blind),
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

/// Whether the beams to the rear are valid.
fn shows_rear(scan: &Scan, laser: Pose) -> bool {
    let is_behind = |beam: &&Beam| (beam.angle_rad + laser.heading).cos() < -FRAC_1_SQRT_2;
    let behind = scan.beams.iter().filter(is_behind);
    let (valid, count) = behind.fold((0, 0), |(valid, count), beam| {
        (valid + u32::from(beam.echo != Echo::Invalid), count + 1)
    });
    f64::from(valid) >= MIN_REAR_BEAMS * f64::from(count)
}

#[cfg(test)]
mod tests;
