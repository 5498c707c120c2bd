//! The drawing, in the frame of the map. PURE.

use std::collections::VecDeque;
use std::sync::Arc;

use amber_client::proxy::DriveToPointProgress;
use amber_client::values::Target;
use amber_client::{MapPose, Scan};
use amber_map::ros_map::{self, RosMapError};
use amber_map::{Cell, Map, MapError, Mounting, Occupancy, Point, Pose, Segment};
use amber_proto::location::{self, Particle, Quality};

/// A point on the map in metres: to the right and down.
pub type Place = (f64, f64);

/// A part of the drawing, or the reason why it is missing.
pub type Part<T> = Result<T, String>;

/// A map of one of both kinds.
#[derive(Clone, Debug)]
pub enum Ground {
    /// Straight walls.
    Walls(Map),
    /// A grid of cells.
    Grid(Occupancy),
}

/// The pose of the robot and its quality.
#[derive(Clone, Debug)]
pub struct Located {
    pub pose: MapPose,
    /// Drivers of the original system do not have it.
    pub quality: Option<Quality>,
}

impl Located {
    /// Whether the robot is there. Otherwise, the pose is a guess, or old.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.pose.is_decided(self.quality.is_some())
    }
}

/// The whole drawing.
#[derive(Clone, Debug)]
pub struct Scene {
    pub map: Part<Arc<Ground>>,
    /// The robot.
    pub located: Part<Located>,
    /// The points of the laser scan.
    pub scan: Part<Vec<Place>>,
    /// The hypotheses of the location driver.
    pub particles: Part<Vec<Particle>>,
    /// Its path and targets.
    pub drive: Part<Drive>,
}

/// The path and the targets of the robot.
#[derive(Clone, Debug, Default)]
pub struct Drive {
    /// For people, such as "following".
    pub state: String,
    /// The reason for the current speed, for people.
    pub reason: Option<String>,
    /// The length of the rest of the path.
    pub remaining_m: Option<f64>,
    /// The rest of the path.
    pub path: Vec<Place>,
    /// The targets that are still to be reached.
    pub targets: Vec<Target>,
}

impl Ground {
    /// The map in the answer of a driver.
    ///
    /// # Errors
    /// The map is invalid.
    pub fn of_message(map: &location::Map) -> Part<Self> {
        if let Some(grid) = &map.grid {
            let corner = place_to_plane((grid.x(), grid.y()));
            let occupancy = ros_map::from_png(grid.png(), corner, grid.resolution());
            return Ok(Self::Grid(occupancy.map_err(|error: RosMapError| {
                format!("the driver's map is invalid: {error}")
            })?));
        }
        let walls = Map::parse(map.roson());
        let walls =
            walls.map_err(|error: MapError| format!("the driver's map is invalid: {error}"));
        Ok(Self::Walls(walls?))
    }

    /// The walls with their thickness in metres; a grid has none.
    pub fn walls(&self) -> impl Iterator<Item = (Place, Place, f64)> {
        let map = match self {
            Self::Walls(map) => Some(map),
            Self::Grid(_) => None,
        };
        let walls = map.into_iter().flat_map(|map| {
            let widths = map.thicknesses_m.iter().copied();
            map.walls.iter().zip(widths.chain(std::iter::repeat(0.0)))
        });
        walls.map(|(wall, width_m)| (plane_to_place(wall.from), plane_to_place(wall.to), width_m))
    }

    /// The occupied cells of a grid: the upper left corner and the side length of each.
    pub fn occupied(&self) -> impl Iterator<Item = (Place, f64)> {
        let grid = match self {
            Self::Walls(_) => None,
            Self::Grid(occupancy) => Some(occupancy),
        };
        grid.into_iter().flat_map(|grid| {
            cells(grid, Cell::Occupied).map(|(column, row)| {
                let cell_m = grid.layout().cell_m;
                let (x, y) = plane_to_place(grid.layout().centre(column, row));
                ((x - cell_m / 2.0, y - cell_m / 2.0), cell_m)
            })
        })
    }

    /// The part of the plane that the map covers.
    #[must_use]
    pub fn bounds(&self) -> Option<Bounds> {
        match self {
            Self::Walls(map) => {
                let ends = |wall: &Segment| [plane_to_place(wall.from), plane_to_place(wall.to)];
                Bounds::around(map.walls.iter().flat_map(ends))
            }
            Self::Grid(grid) => {
                // Without the unknown border.
                let known = [Cell::Occupied, Cell::Free]
                    .into_iter()
                    .flat_map(|cell| cells(grid, cell));
                let centre = |(column, row)| plane_to_place(grid.layout().centre(column, row));
                Bounds::around(known.map(centre))
            }
        }
    }
}

fn cells(grid: &Occupancy, cell: Cell) -> impl Iterator<Item = (usize, usize)> {
    let layout = grid.layout();
    let rows = 0..layout.rows;
    let all = rows.flat_map(|row| (0..layout.columns).map(move |column| (column, row)));
    all.filter(move |&(column, row)| grid.cell(column, row) == cell)
}

impl Drive {
    /// The answer of the driver.
    #[must_use]
    pub fn of(progress: &DriveToPointProgress, targets: Vec<Target>) -> Self {
        let progress = &progress.progress;
        let path = progress.path.as_ref();
        let path = path.map(|path| path.xs.iter().copied().zip(path.ys.iter().copied()));
        let state = progress.state().as_str_name();
        Self {
            state: state.to_lowercase().replace('_', " "),
            reason: progress.reason.clone().filter(|reason| !reason.is_empty()),
            remaining_m: progress.remaining,
            path: path.into_iter().flatten().collect(),
            targets,
        }
    }
}

/// A rectangle on the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The upper left corner.
    pub low: Place,
    /// The lower right corner.
    pub high: Place,
}

/// Around the map there is space for the robot.
const BORDER_M: f64 = 0.2;
/// Without a map, at least this is drawn.
const SMALLEST_M: f64 = 3.0;

impl Bounds {
    fn around(places: impl Iterator<Item = Place>) -> Option<Self> {
        let finite = places.filter(|(x, y)| x.is_finite() && y.is_finite());
        finite.fold(None, |bounds: Option<Self>, (x, y)| {
            let Self { low, high } = bounds.unwrap_or(Self {
                low: (x, y),
                high: (x, y),
            });
            Some(Self {
                low: (low.0.min(x), low.1.min(y)),
                high: (high.0.max(x), high.1.max(y)),
            })
        })
    }

    /// Width and height.
    #[must_use]
    pub fn size_m(&self) -> (f64, f64) {
        (self.high.0 - self.low.0, self.high.1 - self.low.1)
    }

    fn grown(self, border_m: f64) -> Self {
        Self {
            low: (self.low.0 - border_m, self.low.1 - border_m),
            high: (self.high.0 + border_m, self.high.1 + border_m),
        }
    }
}

impl Scene {
    /// The area of the drawing: the map, or else all known parts. `None` if there are none.
    pub fn bounds(&self) -> Option<Bounds> {
        if let Some(bounds) = self.map.as_ref().ok().and_then(|map| map.bounds()) {
            return Some(bounds.grown(BORDER_M));
        }
        let robot = self.located.as_ref().ok().map(|located| located.pose);
        let robot = robot.map(|pose| (pose.x_m, pose.y_m));
        let scan = self.scan.iter().flatten().copied();
        let path = self.drive.iter().flat_map(|drive| drive.path.clone());
        let bounds = Bounds::around(robot.into_iter().chain(scan).chain(path))?;
        let (width_m, height_m) = bounds.size_m();
        let lacking_m = (SMALLEST_M - width_m.max(height_m)).max(0.0);
        Some(bounds.grown(BORDER_M + lacking_m / 2.0))
    }

    /// The names of the missing parts, with reasons.
    pub fn missing(&self) -> Vec<(&'static str, &str)> {
        let parts = [
            ("map", self.map.as_ref().err()),
            ("pose", self.located.as_ref().err()),
            ("laser", self.scan.as_ref().err()),
            ("particles", self.particles.as_ref().err()),
            ("path", self.drive.as_ref().err()),
        ];
        let missing = parts.into_iter();
        missing
            .filter_map(|(name, why)| Some((name, why?.as_str())))
            .collect()
    }
}

/// A position in the plane frame as a point on the map.
#[must_use]
pub fn plane_to_place(at: Point) -> Place {
    let pose = MapPose::from(Pose { at, heading: 0.0 });
    (pose.x_m, pose.y_m)
}

/// A point on the map as a position in the plane frame.
pub fn place_to_plane((x_m, y_m): Place) -> Point {
    Pose::from(MapPose::new(x_m, y_m, 0.0)).at
}

/// The points of a scan on the map. `mount` is the position of the laser on the robot.
pub fn scan_places(scan: &Scan, pose: MapPose, mount: Mounting) -> Vec<Place> {
    let robot = Pose::from(pose);
    let points = scan.valid_points().map(|point| {
        let (ahead_m, right_m) = point.x_y_m();
        plane_to_place(robot.global(mount.on_robot(Point::new(ahead_m, -right_m))))
    });
    points.collect()
}

/// The last poses and scans. A scan is drawn at the pose that the robot had during the measurement.
#[derive(Clone, Debug, Default)]
pub struct Track {
    poses: VecDeque<MapPose>,
    scans: VecDeque<Scan>,
}

/// Enough for more than a second.
const MAX_POSES: usize = 20;
/// The newest scan may be newer than the newest pose.
const MAX_SCANS: usize = 3;
/// A scan carries the time of its end. The middle of a turn of most lasers is this much earlier.
const MIDDLE_MS: i64 = 50;

/// The robot does not drive this far between two poses: the driver has found it elsewhere.
const JUMP_M: f64 = 0.5;

impl Track {
    /// A pose has arrived.
    pub fn handle_pose(&mut self, pose: MapPose) {
        let is_new = |last: &MapPose| last.timestamp_ms != pose.timestamp_ms;
        if pose.timestamp_ms.is_none() || self.poses.back().is_none_or(is_new) {
            self.poses.push_back(pose);
        }
        if self.poses.len() > MAX_POSES {
            self.poses.pop_front();
        }
    }

    /// A scan has arrived.
    pub fn handle_scan(&mut self, scan: Scan) {
        self.scans.push_back(scan);
        if self.scans.len() > MAX_SCANS {
            self.scans.pop_front();
        }
    }

    /// The poses until now no longer count.
    pub fn handle_no_pose(&mut self) {
        self.poses.clear();
    }

    /// The newest scan with a pose, and the pose of that time.
    pub fn last(&self) -> Option<(&Scan, MapPose)> {
        // The clocks differ, or there are no times.
        let newest = || Some((self.scans.back()?, *self.poses.back()?));
        self.of_its_time().or_else(newest)
    }

    /// The newest scan whose pose was measured, and this pose.
    pub fn of_its_time(&self) -> Option<(&Scan, MapPose)> {
        self.scans.iter().rev().find_map(|scan| {
            let middle_ms = scan.timestamp_ms()? - MIDDLE_MS;
            Some((scan, self.at(middle_ms)?))
        })
    }

    /// The pose at a time between two others.
    fn at(&self, time_ms: i64) -> Option<MapPose> {
        let poses: Vec<_> = self.poses.iter().collect();
        poses.windows(2).find_map(|pair| {
            let [before, after] = [pair[0].timestamp_ms?, pair[1].timestamp_ms?];
            let is_between = before < after && (before..=after).contains(&time_ms);
            let share = (time_ms - before) as f64 / (after - before).max(1) as f64;
            is_between.then(|| between(*pair[0], *pair[1], share))
        })
    }
}

fn between(from: MapPose, to: MapPose, share: f64) -> MapPose {
    if (to.x_m - from.x_m).hypot(to.y_m - from.y_m) > JUMP_M {
        return to;
    }
    let part = |from: f64, to: f64| from + share * (to - from);
    let turn = amber_map::wrap(to.heading_rad - from.heading_rad);
    MapPose {
        x_m: part(from.x_m, to.x_m),
        y_m: part(from.y_m, to.y_m),
        heading_rad: from.heading_rad + share * turn,
        ..to
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    fn near(found: Place, expected: Place) -> bool {
        (found.0 - expected.0).hypot(found.1 - expected.1) < 1e-9
    }

    #[test]
    fn a_scan_is_drawn_from_the_laser_with_y_down_and_clockwise_angles() {
        // The robot looks down; the laser is 0.1 m ahead of its centre.
        let pose = MapPose::new(1.0, 2.0, FRAC_PI_2);
        let mount = Mounting::from(Pose::new(0.1, 0.0, 0.0));
        let scan = Scan::new(&[0.0, 90.0, 10.0], &[1000, 500, 0], None).unwrap();
        let places = scan_places(&scan, pose, mount);
        assert_eq!(places.len(), 2);
        assert!(near(places[0], (1.0, 3.1)), "ahead is down: {places:?}");
        assert!(near(places[1], (0.5, 2.1)), "its right is left: {places:?}");
        let upside_down = Mounting {
            is_upside_down: true,
            ..mount
        };
        let places = scan_places(&scan, pose, upside_down);
        assert!(near(places[0], (1.0, 3.1)), "ahead stays ahead: {places:?}");
        assert!(
            near(places[1], (1.5, 2.1)),
            "its right is right: {places:?}"
        );
    }

    fn pose(x_m: f64, heading_rad: f64, timestamp_ms: i64) -> MapPose {
        MapPose {
            timestamp_ms: Some(timestamp_ms),
            ..MapPose::new(x_m, 0.0, heading_rad)
        }
    }

    fn scan(timestamp_ms: Option<i64>) -> Scan {
        Scan::new(&[0.0], &[1000], timestamp_ms).unwrap()
    }

    #[test]
    fn a_scan_has_the_pose_of_the_time_of_its_middle() {
        let mut track = Track::default();
        track.handle_scan(scan(Some(1_100)));
        assert_eq!(track.last(), None, "without a pose");
        track.handle_pose(pose(0.0, 3.1, 1_000));
        track.handle_pose(pose(0.4, -3.1, 1_100));
        let (_, found) = track.last().unwrap();
        assert!((found.x_m - 0.2).abs() < 1e-9, "{found:?}");
        assert!(
            found.heading_rad.abs() > 3.1,
            "the short way round: {found:?}"
        );
        // The pose of a newer scan is not known yet.
        track.handle_scan(scan(Some(1_300)));
        assert_eq!(track.last().unwrap().0.timestamp_ms(), Some(1_100));
    }

    #[test]
    fn no_pose_is_between_two_places_of_a_jump() {
        let mut track = Track::default();
        track.handle_pose(pose(1.0, 0.0, 1_000));
        track.handle_pose(pose(6.0, 0.0, 1_100));
        track.handle_scan(scan(Some(1_100)));
        assert_eq!(track.last().unwrap().1.x_m, 6.0);
    }

    #[test]
    fn a_scan_of_another_clock_has_the_newest_pose() {
        for timestamp_ms in [None, Some(5), Some(i64::MAX)] {
            let mut track = Track::default();
            track.handle_pose(pose(1.0, 0.0, 1_000));
            track.handle_pose(pose(2.0, 0.0, 1_100));
            track.handle_scan(scan(timestamp_ms));
            assert_eq!(track.last().unwrap().1.x_m, 2.0, "{timestamp_ms:?}");
        }
    }

    #[test]
    fn the_map_of_a_driver_is_read_in_both_forms() {
        let flat = Map::flat();
        let roson = location::Map {
            roson: Some(flat.to_roson()),
            grid: None,
        };
        let walls = Ground::of_message(&roson).unwrap();
        assert_eq!(walls.walls().count(), flat.walls.len());
        let layout = amber_map::Layout::around_walls(&flat.faces(), 0.5, 0.05).unwrap();
        let occupancy = Occupancy::from_walls(layout, &flat.faces());
        let corner = plane_to_place(Point::new(layout.low.x, layout.high().y));
        let grid = location::Map {
            roson: None,
            grid: Some(location::Grid {
                x: Some(corner.0),
                y: Some(corner.1),
                resolution: Some(0.05),
                png: Some(ros_map::png(&occupancy).unwrap().into()),
            }),
        };
        let cells = Ground::of_message(&grid).unwrap();
        assert!(cells.occupied().count() > 100);
        let far = |(x, y): Place| {
            let walls = flat.faces();
            let at = place_to_plane((x + 0.025, y + 0.025));
            walls.iter().all(|wall| wall.distance(at) > 0.06)
        };
        assert!(!cells.occupied().any(|(at, _)| far(at)));
        let broken = location::Map::default();
        assert!(Ground::of_message(&broken).unwrap_err().contains("invalid"));
    }

    #[test]
    fn the_drawing_covers_the_map_or_else_what_is_known() {
        let none = || Err("not known".to_owned());
        let mut scene = Scene {
            map: none(),
            located: Err(String::new()),
            scan: Err(String::new()),
            particles: Err(String::new()),
            drive: Err(String::new()),
        };
        assert_eq!(scene.bounds(), None);
        assert_eq!(scene.missing().len(), 5);
        scene.scan = Ok(vec![(1.0, 1.0), (f64::NAN, 3.0)]);
        let (width_m, height_m) = scene.bounds().unwrap().size_m();
        assert!(width_m >= SMALLEST_M && height_m >= SMALLEST_M);
        scene.map = Ok(Arc::new(Ground::Walls(Map::flat())));
        let bounds = scene.bounds().unwrap();
        assert!(near(bounds.low, (-BORDER_M, -BORDER_M)), "{bounds:?}");
        assert!(
            near(bounds.high, (7.0 + BORDER_M, 5.6 + BORDER_M)),
            "{bounds:?}"
        );
    }
}
