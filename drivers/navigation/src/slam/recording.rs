//! Builds a map: takes measurements, and returns poses, progress and the finished map. PURE.
//!
//! ```text
//!   scans, wheel speeds --> handle_scan, handle_wheels --> pose, progress
//!   work ----> another thread: Work::run (a second or less) ----> apply
//!   finish --> walls and grid
//! ```

use std::time::Duration;

use amber_map::{Map, Occupancy, Point, Pose};

use super::clutter::clutter_of;
use super::{Added, Chart, Config, Correction, Counters, Slam, Task};
use crate::explore::Survey;
use crate::geometry::{self, Finding, Watch};
use crate::grid::{Cell, GridError};
use crate::kinematics::Wheels;
use crate::planner;
use crate::scan::Scan;

/// The time between two tasks, if the one before is done.
const WORK_EVERY: Duration = Duration::from_secs(2);
/// Measurements that come later than this after the ones before leave a gap.
const GAP: Duration = Duration::from_millis(500);
/// The cells of the grid that shows progress and frontiers.
pub const CELL_M: f64 = 0.025;
/// A larger area gets cells of twice this size, so that a survey stays below a second.
const MAX_CELLS: usize = 1_000_000;
/// A scan that overlaps less with the map does not tell where the robot is.
pub const SURE_OVERLAP: f64 = 0.4;

/// Missing measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    last: Option<Duration>,
    /// How often there was nothing for longer than 0.5 s.
    pub count: u64,
    /// The longest time without.
    pub longest: Duration,
}

impl Gaps {
    fn add(&mut self, time: Duration) {
        let before = self.last.replace(time).unwrap_or(time);
        let gap = time.saturating_sub(before);
        if gap > GAP {
            self.count += 1;
            self.longest = self.longest.max(gap);
        }
    }
}

/// How far a map is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// The pose of the robot.
    pub pose: Pose,
    /// The part of the last scan that matches the map, 0 to 1.
    pub overlap: f64,
    /// The way of the robot, in metres.
    pub way_m: f64,
    /// The key scans that make up the map.
    pub keys: usize,
    /// The free area in square metres, as of the last work.
    pub free_m2: f64,
    /// Counts of events.
    pub counters: Counters,
    /// Missing scans.
    pub scan_gaps: Gaps,
    /// Missing wheel speeds.
    pub wheels_gaps: Gaps,
}

/// Makes a map.
#[derive(Clone, Debug)]
pub struct Recording {
    slam: Slam,
    /// Whether the configured geometry is right, if that is checked.
    geometry: Option<Watch>,
    /// How to look for frontiers, if at all.
    survey: Option<planner::Config>,
    /// Whether a survey is missing, even if the robot stands and nothing else is new.
    lacks_survey: bool,
    next_work: Duration,
    is_working: bool,
    free_m2: f64,
    scan_gaps: Gaps,
    wheels_gaps: Gaps,
}

/// Work that takes longer than the time between two scans. It owns its data.
#[derive(Clone, Debug)]
pub struct Work {
    task: Task,
    scanner: Point,
    survey: Option<planner::Config>,
}

/// The result of [`Work`].
#[derive(Clone, Debug)]
pub struct Worked {
    correction: Correction,
    /// The grid.
    pub occupancy: Option<Occupancy>,
    /// The frontiers, if wanted.
    pub survey: Option<Survey>,
}

/// A finished map.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Straight walls, and then short ones for what stands there and is none.
    pub map: Map,
    /// The number of straight walls.
    pub walls: usize,
    /// The grid.
    pub occupancy: Occupancy,
    /// The results.
    pub progress: Progress,
    /// What is wrong with the geometry of the robot: the map is bent.
    pub found: Vec<Finding>,
}

impl Recording {
    /// Starts with an empty map. With the configuration of a planner, work also looks for frontiers.
    #[must_use]
    pub fn new(config: Config, survey: Option<planner::Config>) -> Self {
        Self {
            slam: Slam::new(config),
            geometry: None,
            survey,
            lacks_survey: false,
            next_work: Duration::ZERO,
            is_working: false,
            free_m2: 0.0,
            scan_gaps: Gaps::default(),
            wheels_gaps: Gaps::default(),
        }
    }

    /// The same, and checks the geometry of the robot.
    #[must_use]
    pub fn checking(self, geometry: geometry::Config) -> Self {
        Self {
            geometry: Some(Watch::new(geometry)),
            ..self
        }
    }

    /// What is wrong with the geometry of the robot.
    #[must_use]
    pub fn found(&self) -> &[Finding] {
        let watch = self.geometry.as_ref();
        watch.map_or(&[], |watch| &watch.findings().found)
    }

    /// From now on, work looks for frontiers, or no longer.
    pub fn set_survey(&mut self, survey: Option<planner::Config>) {
        self.survey = survey;
        self.lacks_survey = survey.is_some();
    }

    /// The speeds of the wheels were measured.
    pub fn handle_wheels(&mut self, time: Duration, wheels: Wheels) {
        self.wheels_gaps.add(time);
        if let Some(geometry) = &mut self.geometry {
            geometry.handle_wheels(time, wheels);
        }
        self.slam.handle_wheels(time, wheels);
    }

    /// A scan has arrived. Returns the newest pose.
    pub fn handle_scan(&mut self, scan: Scan) -> Option<Added> {
        self.scan_gaps.add(scan.end());
        if let Some(geometry) = &mut self.geometry {
            geometry.handle_scan(&scan);
        }
        self.slam.add_scan(scan)
    }

    /// Work, if it is time for some. Pass its result to [`Recording::apply`].
    #[must_use]
    pub fn work(&mut self, now: Duration) -> Option<Work> {
        if self.is_working || now < self.next_work {
            return None;
        }
        let task = match self.slam.task() {
            Some(task) => task,
            None if self.lacks_survey => self.slam.task_again()?,
            None => return None,
        };
        self.lacks_survey = false;
        self.is_working = true;
        self.next_work = now + WORK_EVERY;
        Some(Work {
            task,
            scanner: self.slam.config().mount.at,
            survey: self.survey,
        })
    }

    /// Whether there is work whose result has not arrived.
    #[must_use]
    pub fn is_working(&self) -> bool {
        self.is_working
    }

    /// Takes the result of work.
    pub fn apply(&mut self, worked: &Worked) {
        self.is_working = false;
        self.slam.apply(worked.correction.clone());
        if let Some(occupancy) = &worked.occupancy {
            self.free_m2 = free_m2(occupancy);
        }
    }

    /// How far the map is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let last = self.slam.last();
        Progress {
            pose: last.map(|last| last.pose).unwrap_or_default(),
            overlap: last.map_or(0.0, |last| last.overlap),
            way_m: self.slam.way_m(),
            keys: self.slam.keys().len(),
            free_m2: self.free_m2,
            counters: self.slam.counters(),
            scan_gaps: self.scan_gaps,
            wheels_gaps: self.wheels_gaps,
        }
    }

    /// Finishes the map: most walls are parallel to its axes, and the start of the robot is the
    /// origin. The grid has cells of this size.
    ///
    /// # Errors
    /// No scan was usable, or the area is too large for the cells.
    pub fn finish(mut self, name: &str, cell_m: f64) -> Result<Finished, GridError> {
        self.slam.finish();
        self.slam.straighten();
        let occupancy = self.slam.chart(cell_m)?.occupancy()?;
        self.free_m2 = free_m2(&occupancy);
        let mut map = self.slam.map(name);
        let walls = map.walls.len();
        map.walls.extend(clutter_of(&occupancy, &map.walls));
        map.thicknesses_m.resize(map.walls.len(), 0.0);
        Ok(Finished {
            map,
            walls,
            occupancy,
            progress: self.progress(),
            found: self.found().to_vec(),
        })
    }
}

impl Work {
    /// Looks for loops, corrects all poses, and draws the grid.
    #[must_use]
    pub fn run(self) -> Worked {
        let keys = self.task.keys().to_vec();
        let correction = self.task.run();
        let chart = |cell_m| Chart::new(&keys, correction.poses(), self.scanner, cell_m).ok();
        let fine = chart(CELL_M).filter(|chart| chart.layout().cells() <= MAX_CELLS);
        let chart = fine.or_else(|| chart(2.0 * CELL_M));
        let occupancy = chart.and_then(|chart| chart.occupancy().ok());
        let robot = correction.poses().last().copied().unwrap_or_default();
        let survey = self.survey.zip(occupancy.as_ref());
        let survey = survey.map(|(config, occupancy)| Survey::new(config, occupancy, robot.at));
        Worked {
            correction,
            occupancy,
            survey,
        }
    }
}

/// The area of the free cells.
fn free_m2(occupancy: &Occupancy) -> f64 {
    let layout = occupancy.layout();
    let cells =
        (0..layout.rows).flat_map(|row| (0..layout.columns).map(move |column| (column, row)));
    let free = cells.filter(|(column, row)| occupancy.cell(*column, *row) == Cell::Free);
    free.count() as f64 * layout.cell_m.powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_scans_there_is_no_map() {
        let mut recording = Recording::new(Config::new(Pose::default()), None);
        recording.handle_wheels(Duration::ZERO, Wheels::STOP);
        assert!(recording.work(Duration::ZERO).is_none());
        assert_eq!(recording.finish("no", 0.05).unwrap_err(), GridError::Empty);
    }
}
