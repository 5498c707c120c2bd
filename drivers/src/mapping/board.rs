//! What the task of the robot knows about a map, for answers. PURE.

use std::collections::VecDeque;
use std::time::Duration;

use amber_map::{Point, Pose};
use amber_navigation::drive_to_point::{Skipped, Target};
use amber_navigation::explore::{Explorer, State};
use amber_navigation::scan::Scan;
use amber_navigation::slam::Added;

/// Number of scans to keep: the pose of a scan comes some scans later.
const MAX_SCANS: usize = 5;
/// A pose belongs to a scan if their times differ by less than this (rounding).
const SAME_TIME: Duration = Duration::from_millis(1);

/// The state of an exploration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Exploration {
    #[default]
    Never,
    Runs(State),
    /// A client has stopped it, or is gone.
    StoppedEarly,
}

/// What is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Board {
    pub(super) exploration: Exploration,
    /// The reason why data is missing.
    pub(super) trouble: Option<String>,
    pub(super) not_returned: Option<Skipped>,
    pub(super) unreachable: usize,
    /// The time of the last pose, in milliseconds since 1970.
    pub(super) pose_unix_ms: Option<i64>,
    /// The points of the scan that belongs to the last pose.
    pub(super) scan: Vec<Point>,
    pub(super) path: Vec<Point>,
    pub(super) remaining_m: Option<f64>,
    pub(super) target: Option<Target>,
    /// Wheel speeds that were too high to be true.
    pub(super) invalid_speeds: u64,
}

impl Board {
    /// Notes how the robot explores.
    pub(super) fn note(&mut self, explorer: &Explorer) {
        self.exploration = Exploration::Runs(explorer.state());
        self.not_returned = explorer.not_returned();
        self.unreachable = explorer.skipped().len();
        let drive = explorer.drive();
        self.path = drive.rest_of_path();
        self.remaining_m = drive.remaining_m();
        self.target = drive.next_targets().next();
    }

    /// The exploration has ended before it was done.
    pub(super) fn stop_early(&mut self) {
        self.exploration = Exploration::StoppedEarly;
        self.stand();
    }

    /// The map grows no longer.
    pub(super) fn end(&mut self) {
        match self.exploration {
            Exploration::Runs(state) if !state.is_over() => self.stop_early(),
            _ => self.stand(),
        }
        self.trouble = None;
    }

    /// The robot goes nowhere.
    pub(super) fn stand(&mut self) {
        self.path.clear();
        self.remaining_m = None;
        self.target = None;
    }
}

/// The last scans. Each is shown at the pose that the robot had during the measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct LastScans(VecDeque<(Duration, Vec<Point>)>);

impl LastScans {
    /// Keeps a scan of a scanner at this position on the robot.
    pub(super) fn add(&mut self, scan: &Scan, mount: Pose) {
        let ends = scan.beams.iter().filter_map(|beam| {
            let way = Point::new(beam.distance_m()?, 0.0);
            Some(mount.global(way.turned(beam.angle_rad)))
        });
        self.0.push_back((scan.middle(), ends.collect()));
        if self.0.len() > MAX_SCANS {
            self.0.pop_front();
        }
    }

    /// The points of the scan that belongs to this pose, on the map.
    pub(super) fn points(&self, added: &Added) -> Vec<Point> {
        let mut scans = self.0.iter();
        let scan = scans.find(|(middle, _)| middle.abs_diff(added.time) < SAME_TIME);
        let points = scan.into_iter().flat_map(|(_, points)| points);
        points.map(|point| added.pose.global(*point)).collect()
    }
}

#[cfg(test)]
mod tests {
    use amber_navigation::scan::{Beam, Echo};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_scan_is_shown_only_with_its_own_pose() {
        let mut scans = LastScans::default();
        let scan = |ms| Scan {
            start: ms * MS,
            beam_time: Duration::ZERO,
            beams: vec![Beam {
                angle_rad: 0.0,
                echo: Echo::At(0.5),
            }],
        };
        // Half a metre ahead of a laser that is 0.1 m ahead.
        scans.add(&scan(50), Pose::new(0.1, 0.0, 0.0));
        let at = |ms| Added {
            time: ms * MS,
            pose: Pose::new(0.0, 1.0, std::f64::consts::FRAC_PI_2),
            overlap: 0.9,
            is_key: true,
        };
        let points = scans.points(&at(50));
        assert!(
            points[0].minus(Point::new(0.0, 1.6)).length() < 1e-9,
            "{points:?}"
        );
        assert_eq!(scans.points(&at(150)), []);
        for ms in 2..=6 {
            scans.add(&scan(50 * ms), Pose::default());
        }
        assert_eq!(scans.points(&at(50)), [], "old ones are forgotten");
    }
}
