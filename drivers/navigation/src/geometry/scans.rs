//! The motion of the robot by its scans alone. PURE.
//!
//! Each scan is fitted to a *key scan*: one of the last scans. Nothing here knows the wheels, so what
//! they say can be compared with it. The turn during a scan is corrected with the motion from the scan
//! before.

use std::time::Duration;

use amber_map::Pose;

use crate::deskew::deskew;
use crate::kinematics::{SkidSteer, Twist};
use crate::location::refine::{Matrix, invert};
use crate::odometry::Odometry;
use crate::scan::Scan;
use crate::slam::reference::{Aligned, Reference};
use crate::slam::surface::{Surface, surfaces_of};

/// A later scan becomes the key scan after this way or turn...
const KEY_M: f64 = 0.5;
const KEY_RAD: f64 = 0.5;
/// ...or after these if less of it lies on the key scan.
const SHORT_M: f64 = 0.2;
const SHORT_RAD: f64 = 0.25;
const KEY_OVERLAP: f64 = 0.75;
/// A fit with a smaller overlap is wrong: the motion is unknown.
const MIN_OVERLAP: f64 = 0.45;
/// If the expected pose does not fit, these turns beside it are tried.
const OTHER_TURNS_RAD: [f64; 4] = [-0.06, 0.06, -0.12, 0.12];
/// Scans with fewer surfaces are ignored.
const MIN_SURFACES: usize = 25;
/// Scans farther apart are not compared.
const MAX_GAP: Duration = Duration::from_millis(350);
/// A scan is corrected again if its turn rate differs more from the expected one.
const SURPRISE_RAD_S: f64 = 0.1;
/// The motion during a scan is assumed to be steady for this time before and after its middle.
const STEADY: Duration = Duration::from_millis(200);

/// Follows the robot by its scans.
#[derive(Clone, Debug, Default)]
pub(super) struct ScanMotion {
    key: Option<Key>,
}

/// A motion between two scans, by the scans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    /// The times of both scans.
    pub(super) from: Duration,
    pub(super) to: Duration,
    /// The turn.
    pub(super) turn_rad: f64,
    /// The motion since the key scan, if the later scan is the next key scan.
    pub(super) way: Option<Way>,
}

/// A motion between two key scans, by the scans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Way {
    /// The later pose in the frame of the earlier one.
    pub(super) pose: Pose,
    /// The standard deviation of the position in the direction in which it is known least.
    pub(super) sigma_m: f64,
}

#[derive(Clone, Debug)]
struct Key {
    reference: Reference,
    /// The last scan.
    last: Duration,
    /// Its pose in the frame of the key scan.
    pose: Pose,
    /// How well that is known.
    sigma_m: f64,
    /// The motion per second before it, in its own frame.
    velocity: Pose,
}

/// The part of the configuration that reads scans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Optics {
    pub(super) mount: Pose,
    pub(super) min_range_m: f64,
    pub(super) max_range_m: f64,
}

impl ScanMotion {
    /// The next scan will not be compared with those before. Returns the motion since the key scan.
    pub(super) fn interrupt(&mut self) -> Option<Way> {
        Some(self.key.take()?.way())
    }

    /// Adds a scan. Returns the motion since the last one if it is known.
    pub(super) fn handle_scan(&mut self, scan: &Scan, optics: &Optics) -> Option<Step> {
        let time = scan.middle();
        let known = self.key.as_ref().map(|key| key.last);
        let is_next = known.is_some_and(|last| last < time && time <= last + MAX_GAP);
        if !is_next {
            self.key = Key::first(scan, optics);
            return None;
        }
        let key = self.key.as_mut()?;
        let Some((aligned, surfaces)) = key.fit(scan, optics) else {
            self.key = Key::first(scan, optics);
            return None;
        };
        let passed_s = (time - key.last).as_secs_f64();
        let motion = key.pose.local_pose(aligned.pose);
        let mut step = Step {
            from: key.last,
            to: time,
            turn_rad: motion.heading,
            way: None,
        };
        key.last = time;
        key.pose = aligned.pose;
        key.sigma_m = sigma_m(&aligned.information);
        key.velocity = Pose {
            at: motion.at.times(1.0 / passed_s),
            heading: motion.heading / passed_s,
        };
        let (way_m, turn_rad) = (aligned.pose.at.length(), aligned.pose.heading.abs());
        let is_far = way_m >= KEY_M
            || turn_rad >= KEY_RAD
            || aligned.overlap < KEY_OVERLAP && (way_m >= SHORT_M || turn_rad >= SHORT_RAD);
        if is_far {
            step.way = Some(key.way());
            *key = Key::new(time, &surfaces, key.velocity);
        }
        Some(step)
    }
}

impl Key {
    fn new(time: Duration, surfaces: &[Surface], velocity: Pose) -> Self {
        Self {
            reference: Reference::new(surfaces),
            last: time,
            pose: Pose::default(),
            sigma_m: f64::INFINITY,
            velocity,
        }
    }

    fn way(&self) -> Way {
        Way {
            pose: self.pose,
            sigma_m: self.sigma_m,
        }
    }

    /// A key scan of a robot of which no motion is known.
    fn first(scan: &Scan, optics: &Optics) -> Option<Self> {
        let surfaces = seen(scan, optics, Pose::default())?;
        Some(Self::new(scan.middle(), &surfaces, Pose::default()))
    }

    /// The pose of a scan in the frame of the key scan, and its surfaces.
    fn fit(&self, scan: &Scan, optics: &Optics) -> Option<(Aligned, Vec<Surface>)> {
        let passed_s = (scan.middle() - self.last).as_secs_f64();
        let mut velocity = self.velocity;
        let mut found = None;
        // The second time with the motion that the first one has found.
        for _ in 0..2 {
            let surfaces = seen(scan, optics, velocity)?;
            let expected = self.pose.global_pose(Pose {
                at: velocity.at.times(passed_s),
                heading: velocity.heading * passed_s,
            });
            let aligned = self.align(&surfaces, expected)?;
            let motion = self.pose.local_pose(aligned.pose);
            let before = velocity;
            velocity = Pose {
                at: motion.at.times(1.0 / passed_s),
                heading: motion.heading / passed_s,
            };
            found = Some((aligned, surfaces));
            if (velocity.heading - before.heading).abs() < SURPRISE_RAD_S {
                break;
            }
        }
        found
    }

    fn align(&self, surfaces: &[Surface], expected: Pose) -> Option<Aligned> {
        let fit = |turn_rad: f64| {
            let start = Pose {
                at: expected.at,
                heading: expected.heading + turn_rad,
            };
            let aligned = self.reference.align(surfaces, start, None);
            aligned.filter(|aligned| aligned.overlap >= MIN_OVERLAP)
        };
        fit(0.0).or_else(|| {
            let others = OTHER_TURNS_RAD.into_iter().filter_map(fit);
            others.max_by(|a, b| a.overlap.total_cmp(&b.overlap))
        })
    }
}

/// The surfaces of a scan by a robot that moves steadily.
fn seen(scan: &Scan, optics: &Optics, velocity: Pose) -> Option<Vec<Surface>> {
    let time = scan.middle();
    let valid = optics.min_range_m..=optics.max_range_m;
    let motion = steady(Twist::new(velocity.at.x, velocity.heading), time);
    let is_valid = |distance_m| valid.contains(&distance_m);
    let ends = deskew(scan, &motion, optics.mount, time, is_valid);
    let surfaces = surfaces_of(&ends, optics.mount.at);
    (surfaces.len() >= MIN_SURFACES).then_some(surfaces)
}

/// A motion that does not change around a time.
fn steady(twist: Twist, time: Duration) -> Odometry {
    let drive = SkidSteer {
        max_wheel_m_s: f64::INFINITY,
        ..SkidSteer::default()
    };
    let mut odometry = Odometry::new(drive);
    let wheels = drive.wheels(twist);
    for time in [time.saturating_sub(STEADY), time + STEADY] {
        odometry.handle_wheels(time, wheels);
    }
    odometry
}

/// The largest standard deviation of a position; infinite if a direction is not known at all.
fn sigma_m(information: &Matrix) -> f64 {
    let Some(covariance) = invert(information) else {
        return f64::INFINITY;
    };
    let [[xx, xy, _], [_, yy, _], _] = covariance;
    let largest = f64::midpoint(xx, yy) + ((xx - yy) / 2.0).hypot(xy);
    if largest >= 0.0 {
        largest.sqrt()
    } else {
        f64::INFINITY
    }
}
