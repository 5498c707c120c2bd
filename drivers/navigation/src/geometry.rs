//! Checks what a robot is told about its own geometry by its measurements. PURE.
//!
//! A laser that is mounted upside down, swapped wheels, a wrong delay of the scans or a wrong track give no
//! error: the map bends, and poses jump in turns. But they can be measured. [`Geometry`] takes the same
//! scans and wheel speeds as localization:
//!
//! - The scans alone tell how the laser moves: each is fitted to one of the last.
//! - The turns by the scans against those by the wheels tell the delay of the scans, the effective
//!   track, and whether something is mirrored, swapped or reversed.
//! - The direction of straight ways tells the angle of the laser.
//! - What turns with the robot in its scans, as near as its outline, is a part of it.
//! - A gyroscope tells whether the scans or the wheels turn the wrong way. Without one, both are possible.
//!
//! A value counts once its uncertainty is small, and is *wrong* if it differs from the configured one
//! by more than a threshold and by more than three standard deviations: see [`Findings`].

mod findings;
mod gyro;
mod own_parts;
mod scans;
mod straights;
mod turns;
mod watch;

use std::collections::VecDeque;
use std::time::Duration;

use amber_map::{Outline, Pose};

pub use self::findings::{Estimate, Fault, Finding, Findings};
use self::gyro::Gyro;
use self::own_parts::OwnParts;
use self::scans::{Optics, ScanMotion, Way};
use self::straights::{Driven, Straights};
use self::turns::Turns;
pub use self::watch::Watch;
use crate::collision;
use crate::kinematics::{SkidSteer, Wheels};
use crate::odometry::{Motion, Odometry};
use crate::scan::Scan;

/// Scans that wait for wheel speeds. A scan needs them until [`turns::LATEST`] after it.
const MAX_WAITING: usize = 16;
/// The robot rests if it moves less around a scan. Then scans tell nothing and cost time.
const REST_M: f64 = 0.005;
const REST_RAD: f64 = 0.01;

/// The configured geometry.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The pose of the scanner on the robot.
    pub mount: Pose,
    /// Whether the scanner is mounted upside down.
    pub is_mirrored: bool,
    /// The effective distance between left and right wheels in turns, in metres.
    pub track_m: f64,
    /// The time from the end of a scan to its timestamp.
    pub scan_delay: Duration,
    /// The outline of the robot.
    pub outline: Outline,
    /// The sectors in which nothing is seen because parts of the robot are there: from the left to the
    /// right border, in degrees to the right, as scans have them.
    pub masked_deg: Vec<(f64, f64)>,
    /// Beams shorter than this are ignored, in metres.
    pub min_range_m: f64,
    /// Beams longer than this are ignored, in metres.
    pub max_range_m: f64,
}

impl Config {
    /// The defaults, for a scanner mounted at this pose on the robot.
    #[must_use]
    pub fn new(mount: Pose) -> Self {
        Self {
            mount,
            is_mirrored: false,
            track_m: SkidSteer::default().track_m,
            scan_delay: Duration::ZERO,
            outline: collision::Config::new(mount).outline,
            masked_deg: Vec::new(),
            min_range_m: 0.05,
            max_range_m: 5.6,
        }
    }
}

/// How much motion the estimates rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The turns in both directions, by the scans and by the wheels, in radians.
    pub seen_rad: f64,
    /// By the wheels.
    pub driven_rad: f64,
    /// How often the turn rate has changed.
    pub changes: u32,
    /// The length of straight ways, in metres.
    pub straight_m: f64,
}

/// Counts of events since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Scans compared with the one before.
    pub scans: u64,
    /// Scans while the robot was at rest.
    pub scans_at_rest: u64,
    /// Scans that could not be compared: nothing was seen, or the scan before is missing.
    pub scans_apart: u64,
    /// Scans without wheel speeds around them.
    pub scans_without_odometry: u64,
}

/// Compares scans and wheels.
#[derive(Clone, Debug)]
pub struct Geometry {
    config: Config,
    odometry: Odometry,
    waiting: VecDeque<Scan>,
    scans: ScanMotion,
    turns: Turns,
    straights: Straights,
    /// By the wheels, since the key scan.
    driven: Driven,
    gyro: Gyro,
    own_parts: OwnParts,
    counters: Counters,
}

impl Geometry {
    /// Starts without measurements.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let drive = SkidSteer {
            track_m: config.track_m,
            ..SkidSteer::default()
        };
        Self {
            own_parts: OwnParts::new(&config),
            config,
            odometry: Odometry::new(drive),
            waiting: VecDeque::new(),
            scans: ScanMotion::default(),
            turns: Turns::default(),
            straights: Straights::default(),
            driven: Driven::default(),
            gyro: Gyro::default(),
            counters: Counters::default(),
        }
    }

    /// The configured geometry.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The speeds of the wheels were measured.
    pub fn handle_wheels(&mut self, time: Duration, wheels: Wheels) {
        self.odometry.handle_wheels(time, wheels);
    }

    /// A gyroscope has measured the turn rate, counter-clockwise.
    pub fn handle_turn_rate(&mut self, time: Duration, turn_rad_s: f64) {
        self.gyro.add(time, turn_rad_s, &self.odometry);
    }

    /// A scan has arrived. It is used once the speeds of the wheels around it are known.
    pub fn handle_scan(&mut self, scan: Scan) {
        self.waiting.push_back(scan);
        let latest = self.odometry.latest().unwrap_or_default();
        while let Some(first) = self.waiting.front() {
            let is_covered = first.middle() + turns::LATEST <= latest;
            if !is_covered && self.waiting.len() <= MAX_WAITING {
                return;
            }
            let Some(scan) = self.waiting.pop_front() else {
                return;
            };
            if is_covered {
                self.use_scan(&scan);
            } else {
                self.counters.scans_without_odometry += 1;
                self.interrupt();
            }
        }
    }

    /// How much motion the estimates rest on.
    #[must_use]
    pub fn evidence(&self) -> Evidence {
        Evidence {
            seen_rad: self.turns.seen_rad,
            driven_rad: self.turns.driven_rad,
            changes: self.turns.changes,
            straight_m: self.straights.way_m,
        }
    }

    /// The counts of events.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// What the measurements say so far.
    #[must_use]
    pub fn findings(&self) -> Findings {
        Findings::new(
            &self.config,
            self.evidence(),
            self.turns.compare(),
            self.straights.direction(),
            self.straights.is_backwards(),
            self.gyro.verdict(),
            &self.own_parts.parts(),
        )
    }

    fn use_scan(&mut self, scan: &Scan) {
        let time = scan.middle();
        let around = self
            .odometry
            .motion(time.saturating_sub(turns::EARLIEST), time + turns::LATEST);
        if around.unknown_s > 0.0 {
            self.counters.scans_without_odometry += 1;
            self.interrupt();
            return;
        }
        if is_rest(&around) {
            self.counters.scans_at_rest += 1;
            // A stop ends a way.
            if let Some(way) = self.scans.interrupt() {
                self.end_way(&way);
            }
            return;
        }
        (self.own_parts).add(scan, &around, self.config.is_mirrored);
        let optics = Optics {
            mount: self.config.mount,
            min_range_m: self.config.min_range_m,
            max_range_m: self.config.max_range_m,
        };
        let Some(step) = self.scans.handle_scan(scan, &optics) else {
            self.counters.scans_apart += 1;
            self.driven = Driven::default();
            return;
        };
        self.counters.scans += 1;
        (self.turns).add(step.from, step.to, step.turn_rad, &self.odometry);
        let motion = self.odometry.motion(step.from, step.to);
        (self.driven).add(motion.pose.at.x, motion.path_m, step.turn_rad);
        if let Some(way) = step.way {
            self.end_way(&way);
        }
    }

    fn end_way(&mut self, way: &Way) {
        (self.straights).add(way, self.config.mount, &self.driven);
        self.driven = Driven::default();
    }

    /// The motion is unknown for a while.
    fn interrupt(&mut self) {
        self.scans.interrupt();
        self.driven = Driven::default();
    }
}

fn is_rest(around: &Motion) -> bool {
    around.path_m < REST_M && around.turns_rad < REST_RAD
}

#[cfg(test)]
mod tests;
