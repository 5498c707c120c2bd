//! The growing map as a drawing for the terminal. PURE.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use amber_client::values::Target;
use amber_map::{MapPose, Point, Pose};
use amber_navigation::drive_to_point::DriveToPoint;
use amber_navigation::scan::Scan;
use amber_scene::{Drive, Ground, Located, Part, Place, Scene, plane_to_place};

use super::mapper::Report;
use crate::map::show::plot;

/// Number of scans to keep: the pose of a scan comes some scans later.
const MAX_SCANS: usize = 5;
/// A pose belongs to a scan if their times differ by less than this (rounding).
const SAME_TIME: Duration = Duration::from_millis(1);

/// The last scans. Each is drawn at the pose that the robot had during the measurement.
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

    /// The points of the scan that belongs to this pose.
    fn places(&self, time: Duration, pose: Pose) -> Vec<Place> {
        let mut scans = self.0.iter();
        let scan = scans.find(|(middle, _)| middle.abs_diff(time) < SAME_TIME);
        let points = scan.into_iter().flat_map(|(_, points)| points);
        points
            .map(|point| plane_to_place(pose.global(*point)))
            .collect()
    }
}

/// The map so far, and the robot on it.
pub(super) fn scene(report: &Report, scans: &LastScans, drive: Drive) -> Scene {
    let map = match &report.grid {
        Some(grid) => Ok(Arc::new(Ground::Grid(grid.as_ref().clone()))),
        None => Err("it is drawn after the first metres".to_owned()),
    };
    let located = report.pose.map(|added| Located {
        pose: MapPose {
            quality: added.overlap,
            ..MapPose::from(added.pose)
        },
        quality: None,
    });
    let scan = report
        .pose
        .map(|added| scans.places(added.time, added.pose));
    let waits = || "there is no scan yet".to_owned();
    Scene {
        map,
        located: located.ok_or_else(waits),
        scan: scan.ok_or_else(waits),
        particles: Part::Ok(Vec::new()),
        drive: Ok(drive),
    }
}

/// The target of an exploring robot.
pub(super) fn drive(state: &str, driver: Option<&DriveToPoint>) -> Drive {
    let targets = driver.into_iter().flat_map(DriveToPoint::next_targets);
    let targets = targets.map(|target| {
        let (x_m, y_m) = plane_to_place(target.at);
        Target {
            radius_m: target.radius_m,
            ..Target::new(x_m, y_m)
        }
    });
    let path = driver.map(DriveToPoint::rest_of_path).unwrap_or_default();
    Drive {
        state: state.to_owned(),
        remaining_m: driver.and_then(DriveToPoint::remaining_m),
        path: path.into_iter().map(plane_to_place).collect(),
        targets: targets.collect(),
        ..Drive::default()
    }
}

/// The drawing with lines below it, in at most this many columns and rows.
pub(super) fn draw(
    scene: &Scene,
    lines: &[String],
    (columns, rows): (usize, usize),
    has_colours: bool,
) -> String {
    let rows = rows.saturating_sub(lines.len());
    let mut text = plot::draw(scene, columns, rows, has_colours);
    for line in lines {
        text.extend(line.chars().take(columns.saturating_sub(1)));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use amber_map::{Cell, Layout, Occupancy};
    use amber_navigation::scan::{Beam, Echo};
    use amber_navigation::slam::Added;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A room of 2 m x 2 m; the robot in its middle looks up.
    fn report() -> Report {
        let layout = Layout {
            low: Point::new(-1.0, -1.0),
            cell_m: 0.1,
            columns: 20,
            rows: 20,
        };
        let cells = (0..layout.cells()).map(|cell| {
            let (column, row) = (cell % 20, cell / 20);
            match [0, 19].contains(&column) || [0, 19].contains(&row) {
                true => Cell::Occupied,
                false => Cell::Free,
            }
        });
        let grid = Occupancy::from_cells(layout, cells.collect()).unwrap();
        Report {
            pose: Some(Added {
                time: 50 * MS,
                pose: Pose::new(0.0, 0.0, std::f64::consts::FRAC_PI_2),
                overlap: 0.9,
                is_key: true,
            }),
            grid: Some(Arc::new(grid)),
            ..Report::default()
        }
    }

    /// One beam, half a metre ahead of a laser that is 0.1 m ahead.
    fn scans(middle: Duration) -> LastScans {
        let mut scans = LastScans::default();
        let scan = Scan {
            start: middle,
            beam_time: Duration::ZERO,
            beams: vec![Beam {
                angle_rad: 0.0,
                echo: Echo::At(0.5),
            }],
        };
        scans.add(&scan, Pose::new(0.1, 0.0, 0.0));
        scans
    }

    #[test]
    fn the_map_the_robot_and_its_scan_are_drawn_with_the_lines_below() {
        let scene = scene(&report(), &scans(50 * MS), drive("by hand", None));
        // Up is a smaller y.
        let [(x_m, y_m)] = scene.scan.as_ref().unwrap()[..] else {
            panic!("{scene:?}");
        };
        assert!(x_m.abs() < 1e-9 && (y_m + 0.6).abs() < 1e-9, "{x_m} {y_m}");
        let lines = ["1 m driven".to_owned(), "left 200".to_owned()];
        let text = draw(&scene, &lines, (60, 24), false);
        assert!(text.contains('↑'), "{text}");
        assert!(text.contains("drive: by hand\n"), "{text}");
        assert!(text.ends_with("1 m driven\nleft 200\n"), "{text}");
        assert!(!text.contains("particles"), "{text}");
        assert!(text.lines().count() <= 24, "{text}");
        let long = ["x".repeat(200)];
        let text = draw(&scene, &long, (60, 24), false);
        assert!(
            text.lines().all(|line| line.chars().count() <= 60),
            "{text}"
        );
    }

    #[test]
    fn a_scan_is_drawn_only_with_its_own_pose() {
        let scene = scene(&report(), &scans(250 * MS), Drive::default());
        assert_eq!(scene.scan.as_deref(), Ok(&[][..]));
    }

    #[test]
    fn before_the_first_scan_the_reasons_are_shown() {
        let scene = scene(&Report::default(), &LastScans::default(), Drive::default());
        let text = draw(&scene, &["0 m driven".to_owned()], (60, 24), false);
        assert!(text.contains("no map: "), "{text}");
        assert!(text.contains("no pose: there is no scan yet\n"), "{text}");
        assert!(text.ends_with("0 m driven\n"), "{text}");
    }
}
