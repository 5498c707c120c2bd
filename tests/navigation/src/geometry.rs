//! Whether wrong geometry of a robot is found in its first turns. PURE.

use std::time::Duration;

use amber_map::Pose;
use amber_navigation::geometry::{Config, Fault, Findings, Geometry};
use amber_navigation::kinematics::Wheels;
use amber_navigation::random::gaussian;

use super::laser::Fitting;
use super::vehicle::DRIVE;
use super::{Arrival, Course, Drive, MOUNT, Scenario};

/// How often the findings are read.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The time between two readings of the gyroscope, and its errors.
const GYRO_EVERY: Duration = Duration::from_millis(50);
const GYRO_SIGMA_RAD_S: f64 = 0.02;
const GYRO_BIAS_RAD_S: f64 = 0.01;

/// What the wheels report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reported {
    /// How they turn.
    AsTheyTurn,
    /// The left wheels as the right ones.
    Swapped,
    /// The left and the right wheels with these signs.
    Signs(f64, f64),
}

/// What the configuration gets wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wrong {
    /// A short name.
    pub name: &'static str,
    /// The laser is upside down.
    pub mirrored: bool,
    /// The scans are older than the configuration says.
    pub delay: Duration,
    /// The laser points this far to the right of where it should.
    pub angle_deg: f64,
    /// What the wheels report.
    pub wheels: Reported,
    /// The configured track as a part of the true one.
    pub track: f64,
    /// Whether there is a gyroscope.
    pub gyro: bool,
    /// The errors of the measurements: the name of a [`Scenario`].
    pub scenario: &'static str,
    /// What must be found.
    pub fault: Option<Fault>,
}

impl Wrong {
    /// Nothing is wrong.
    pub const NOTHING: Self = Self {
        name: "right",
        mirrored: false,
        delay: Duration::ZERO,
        angle_deg: 0.0,
        wheels: Reported::AsTheyTurn,
        track: 1.0,
        gyro: false,
        scenario: "tracking",
        fault: None,
    };

    /// All of the matrix.
    pub const ALL: [Self; 16] = [
        Self {
            name: "right, with a gyroscope",
            gyro: true,
            ..Self::NOTHING
        },
        Self::NOTHING,
        Self {
            name: "right, 20 % short beams",
            scenario: "20 % short beams",
            ..Self::NOTHING
        },
        Self {
            name: "right, carried away",
            scenario: "kidnap",
            ..Self::NOTHING
        },
        Self {
            name: "laser upside down, with a gyroscope",
            mirrored: true,
            gyro: true,
            fault: Some(Fault::LaserMirrored),
            ..Self::NOTHING
        },
        Self {
            name: "laser upside down",
            mirrored: true,
            fault: Some(Fault::LaserMirroredOrWheelsSwapped),
            ..Self::NOTHING
        },
        Self {
            name: "wheels swapped, with a gyroscope",
            wheels: Reported::Swapped,
            gyro: true,
            fault: Some(Fault::WheelsSwapped),
            ..Self::NOTHING
        },
        Self {
            name: "wheels swapped",
            wheels: Reported::Swapped,
            fault: Some(Fault::LaserMirroredOrWheelsSwapped),
            ..Self::NOTHING
        },
        Self {
            name: "left wheels with the wrong sign",
            wheels: Reported::Signs(-1.0, 1.0),
            fault: Some(Fault::SideReversed),
            ..Self::NOTHING
        },
        Self {
            name: "right wheels with the wrong sign",
            wheels: Reported::Signs(1.0, -1.0),
            fault: Some(Fault::SideReversed),
            ..Self::NOTHING
        },
        Self {
            name: "all wheels with the wrong sign, with a gyroscope",
            wheels: Reported::Signs(-1.0, -1.0),
            gyro: true,
            fault: Some(Fault::WheelsReversed),
            ..Self::NOTHING
        },
        Self {
            name: "scan delay 0 instead of 120 ms",
            delay: Duration::from_millis(120),
            fault: Some(Fault::ScanDelay),
            ..Self::NOTHING
        },
        Self {
            name: "laser 5° to the right",
            angle_deg: 5.0,
            fault: Some(Fault::LaserAngle),
            ..Self::NOTHING
        },
        Self {
            name: "laser 5° to the left",
            angle_deg: -5.0,
            fault: Some(Fault::LaserAngle),
            ..Self::NOTHING
        },
        Self {
            name: "track 15 % too small",
            track: 0.85,
            fault: Some(Fault::Track),
            ..Self::NOTHING
        },
        Self {
            name: "track 15 % too large",
            track: 1.15,
            fault: Some(Fault::Track),
            ..Self::NOTHING
        },
    ];

    /// The value that the check should find: milliseconds, degrees to the right or millimetres.
    #[must_use]
    pub fn truth(&self) -> Option<f64> {
        match self.fault? {
            Fault::ScanDelay => Some(self.delay.as_secs_f64() * 1000.0),
            Fault::LaserAngle => Some(self.angle_deg),
            Fault::Track => Some(DRIVE.track_m * 1000.0),
            _ => None,
        }
    }
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// When the fault was found first.
    pub found_s: Option<f64>,
    /// Other faults that were found at any time: false alarms.
    pub false_alarms: Vec<Fault>,
    /// The last findings.
    pub last: Findings,
}

/// Checks the geometry while a robot drives a tour for this time. `None` if there is no such scenario.
#[must_use]
pub fn check(course: &Course, length: Duration, wrong: &Wrong, seed: u64) -> Option<Checked> {
    let scenario = Scenario {
        length,
        ..Scenario::named(wrong.scenario)?
    };
    let fitting = Fitting {
        mount: Pose {
            heading: MOUNT.heading - wrong.angle_deg.to_radians(),
            ..MOUNT
        },
        is_mirrored: wrong.mirrored,
    };
    let drive = Drive::with_laser(course, &scenario, fitting, seed);
    let mut random = fastrand::Rng::with_seed(seed ^ 0x6E0);
    let mut geometry = Geometry::new(Config {
        track_m: DRIVE.track_m * wrong.track,
        ..Config::new(MOUNT)
    });
    let (mut found_s, mut false_alarms) = (None, Vec::new());
    let (mut look, mut gyro) = (LOOK_EVERY, GYRO_EVERY);
    for (arrives, arrival) in drive.arrivals() {
        match arrival {
            Arrival::Wheels(time, wheels) => geometry.handle_wheels(*time, wrong.wheels(*wheels)),
            Arrival::Scan(scan) => {
                let mut scan = scan.clone();
                scan.start += wrong.delay;
                geometry.handle_scan(scan);
            }
        }
        while wrong.gyro && gyro <= *arrives {
            let before = drive.pose_at(gyro.saturating_sub(GYRO_EVERY));
            let turned_rad = before.local_pose(drive.pose_at(gyro)).heading;
            let rate_rad_s = turned_rad / GYRO_EVERY.as_secs_f64();
            let error_rad_s = GYRO_BIAS_RAD_S + GYRO_SIGMA_RAD_S * gaussian(&mut random);
            geometry.handle_turn_rate(gyro, rate_rad_s + error_rad_s);
            gyro += GYRO_EVERY;
        }
        if *arrives < look {
            continue;
        }
        look += LOOK_EVERY;
        for finding in geometry.findings().found {
            if Some(finding.fault) == wrong.fault {
                found_s.get_or_insert(arrives.as_secs_f64());
            } else if !false_alarms.contains(&finding.fault) {
                false_alarms.push(finding.fault);
            }
        }
    }
    Some(Checked {
        found_s,
        false_alarms,
        last: geometry.findings(),
    })
}

impl Wrong {
    fn wheels(&self, wheels: Wheels) -> Wheels {
        let (left_m_s, right_m_s) = (wheels.left_m_s(), wheels.right_m_s());
        match self.wheels {
            Reported::AsTheyTurn => wheels,
            Reported::Swapped => Wheels::sides(right_m_s, left_m_s),
            Reported::Signs(left, right) => Wheels::sides(left * left_m_s, right * right_m_s),
        }
    }
}
