//! A map that is made in furnished rooms, and the pose on it a day later. PURE.

use std::time::Duration;

use amber_map::{Cell, Map, Occupancy, Pose, Segment};
use amber_navigation::location::{Config, Location, LocationMap};
use amber_navigation::slam;
use amber_navigation::slam::recording::{Finished, Recording};

use super::clutter::Clutter;
use super::{Arrival, Course, Drive, MOUNT, Noise, Scenario};

/// The size of the cells of the map.
const CELL_M: f64 = 0.05;
/// An occupied cell belongs to a wall that is this near.
const BESIDE_M: f64 = 0.08;
/// The pose is good above this quality.
const GOOD: f64 = 0.6;
/// The length of a drive.
pub const LENGTH: Duration = Duration::from_secs(90);

/// The pose on one kind of map.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Located {
    /// The part of the poses with a quality above 0.6.
    pub good: f64,
    /// How often the pose was lost.
    pub lost: u64,
}

/// The results of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Furnished {
    /// The part of the occupied cells that belongs to straight walls, and to all segments of the `.roson`.
    pub walls: f64,
    pub segments: f64,
    /// The length of the `.roson` in bytes.
    pub bytes: usize,
    /// On the grid, on the `.roson`, and on its straight walls alone.
    pub grid: Located,
    pub roson: Located,
    pub straight: Located,
}

/// Makes a map of furnished rooms, and drives there again on another way. People walk elsewhere.
#[must_use]
pub fn furnished(course: &Course, seed: u64) -> Option<Furnished> {
    let scenario = Scenario {
        noise: Noise::Captured,
        bias_m: 0.0,
        length: LENGTH,
        ..Scenario::named("tracking")?
    };
    let clutter = Clutter::new(course, seed);
    let first = Drive::among(&course.by_hand(seed), &clutter, &scenario, seed);
    let (made, frame) = mapped(&first)?;
    let walls = &made.map.walls;
    let straight = &walls[..made.walls];
    let text = made.map.to_roson();
    let parsed = Map::parse(&text).ok()?;
    let again = Drive::among(
        &course.by_hand(seed + 1000),
        &clutter.another_day(course, seed),
        &scenario,
        seed + 1000,
    );
    let config = Config::new(MOUNT);
    let of_walls = |walls: &[Segment]| {
        LocationMap::from_walls(walls, &parsed.nodes, config.cell_m, config.limit_m()).ok()
    };
    let grid = LocationMap::from_occupancy(&made.occupancy, config.limit_m());
    let locate = |map: LocationMap| located(map, &again, frame, seed);
    Some(Furnished {
        walls: covered(&made.occupancy, straight),
        segments: covered(&made.occupancy, walls),
        bytes: text.len(),
        grid: locate(grid),
        roson: locate(of_walls(&parsed.walls)?),
        straight: locate(of_walls(straight)?),
    })
}

/// The map of a drive, and the frame of the course on it.
fn mapped(drive: &Drive) -> Option<(Finished, Pose)> {
    let mut recording = Recording::new(slam::Config::new(MOUNT), None);
    let mut first = None;
    for (now, arrival) in drive.arrivals() {
        match arrival {
            Arrival::Wheels(time, wheels) => recording.handle_wheels(*time, *wheels),
            Arrival::Scan(scan) => {
                recording.handle_scan(scan.clone());
                first.get_or_insert(scan.middle());
            }
        }
        if let Some(work) = recording.work(*now) {
            recording.apply(&work.run());
        }
    }
    let made = recording.finish("furnished", CELL_M).ok()?;
    let start = *made.map.robots.first()?;
    let truth = drive.pose_at(first?);
    let frame = start.global_pose(truth.local_pose(Pose::default()));
    Some((made, frame))
}

/// The pose of a drive on a map, from a known start on.
fn located(map: LocationMap, drive: &Drive, frame: Pose, seed: u64) -> Located {
    let mut config = Config::new(MOUNT);
    config.seed = seed;
    let mut location = Location::new(map, config);
    let start = frame.global_pose(drive.pose_at(Duration::ZERO));
    location.place(Duration::ZERO, start, 0.1, 0.1);
    let (mut all, mut good) = (0_u32, 0_u32);
    for (now, arrival) in drive.arrivals() {
        match arrival {
            Arrival::Wheels(time, wheels) => location.handle_wheels(*time, *wheels),
            Arrival::Scan(scan) => location.handle_scan(scan.clone()),
        }
        if let Some(estimate) = location.update(*now) {
            all += 1;
            good += u32::from(estimate.quality > GOOD);
        }
    }
    Located {
        good: f64::from(good) / f64::from(all.max(1)),
        lost: location.counters().lost,
    }
}

/// The part of the occupied cells that is near to segments.
fn covered(occupancy: &Occupancy, segments: &[Segment]) -> f64 {
    let layout = occupancy.layout();
    let (mut all, mut near) = (0_u32, 0_u32);
    for row in 0..layout.rows {
        for column in 0..layout.columns {
            if occupancy.cell(column, row) == Cell::Occupied {
                let at = layout.centre(column, row);
                let is_near = segments.iter().any(|it| it.distance(at) <= BESIDE_M);
                all += 1;
                near += u32::from(is_near);
            }
        }
    }
    f64::from(near) / f64::from(all.max(1))
}
