//! The driver DriveToPoint: drives from target to target through a map. IO.
//!
//! ```text
//!  clients --targets--> driver --> logic: path, pursuit, collision monitor --speeds--> roboclaw
//!                                    ^
//!     location, hokuyo, roboclaw ----+
//! ```
//!
//! Guarantees for clients:
//!
//! - New targets replace the old ones, and the robot starts immediately. An empty list stops it.
//! - A target is visited when the robot is within its radius, in the order of the list. A target
//!   that the robot cannot reach is skipped: it is not among the visited ones.
//! - The targets end with the client that set them, or with `--any-client-stops` with any client.
//! - The robot stops while its pose is unknown, after a jump of the pose until the pose is reliable
//!   again, and without scans or wheel speeds. `amber events` shows the reason.
//! - Without its map file, the driver waits for it, and says so.

use std::path::{Path, PathBuf};

use amber_driver::Driver;
use amber_driver::devices::drive_to_point;
use amber_map::{MapFile, MapFileError};
use amber_navigation::drive_to_point::{self as logic, Config};
use amber_navigation::planner::{self, Planner};
use amber_navigation::{collision, pursuit};
use amber_proto::{Device, DeviceType};

use self::driver::DriveToPoint;
use self::pilot::ToPoint;
use crate::options::{OptionsError, check};
use crate::robot_options::{RobotOptions, Setup};

mod driver;
mod pilot;

/// Options of the driver.
#[derive(Clone, Debug, Default, clap::Args)]
// The map also covers the area behind the robot, so the option has no effect here.
#[command(mut_arg("look_before_reversing", |arg| arg.hide(true)))]
pub struct Options {
    #[command(flatten)]
    robot: RobotOptions,
    /// Map: a .roson file, or the YAML file of a map of ROS map_server; without one the robot drives
    /// straight to its targets
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// How to find a path through the map
    #[arg(long, value_enum, default_value_t, requires = "map")]
    planner: Plans,
    /// The pose on the map [default: location:0]
    #[arg(long, value_name = "DEVICE")]
    location: Option<Device>,
    /// Maximum speed of the robot [default: 380]
    #[arg(long, value_name = "MM/S")]
    speed_mm_s: Option<f64>,
    /// Stop when any client leaves, not only the one that set the targets
    #[arg(long)]
    any_client_stops: bool,
}

impl Options {
    /// Creates the driver from these options.
    ///
    /// # Errors
    /// A value is invalid, or the map does not suit it.
    pub fn driver(self) -> Result<impl Driver + use<>, OptionsError> {
        let speed_mm_s = check(
            "speed_mm_s",
            self.speed_mm_s.unwrap_or(380.0),
            1.0..=2_000.0,
        )?;
        let plan = Plan {
            map: self.map,
            planner: self.planner,
            poses: (self.location).unwrap_or(Device::new(DeviceType::LOCATION, 0)),
            speed_mm_s,
            any_client_stops: self.any_client_stops,
        };
        let stated = self.robot.stated()?;
        // The map is checked at the start: the robot device only says how wide the robot is.
        let ready = match stated.setup().ok().map(|setup| plan.pilot(setup)) {
            Some(Ok(ready)) => Some(ready),
            Some(Err(NoPilot::Options(error))) => return Err(error),
            // The driver says what is wrong with the file, until it is there.
            Some(Err(NoPilot::Map(_))) | None => None,
        };
        Ok(drive_to_point::driver(DriveToPoint::new(
            stated, plan, ready,
        )))
    }
}

/// How to make the pilot of a robot.
#[derive(Clone, Debug)]
struct Plan {
    map: Option<PathBuf>,
    planner: Plans,
    poses: Device,
    speed_mm_s: f64,
    any_client_stops: bool,
}

/// The reason why there is no pilot.
#[derive(Debug, thiserror::Error)]
enum NoPilot {
    /// The map cannot be read, or is none. It may be there later.
    #[error(transparent)]
    Map(#[from] MapFileError),
    /// The options do not fit the map.
    #[error(transparent)]
    Options(#[from] OptionsError),
}

impl Plan {
    /// The pilot of this robot, which reads the map.
    fn pilot(&self, mut setup: Setup) -> Result<(Setup, ToPoint), NoPilot> {
        setup.devices.poses = Some(self.poses);
        let config = config(&setup, self.speed_mm_s, self.any_client_stops);
        let mut logic = logic::DriveToPoint::without_map(config);
        if let Some(path) = &self.map {
            logic.set_map(planner(path, config.planner, self.planner)?);
        }
        Ok((setup, ToPoint::new(logic, self.speed_mm_s)))
    }
}

/// The configuration of the logic for a robot.
fn config(setup: &Setup, speed_mm_s: f64, any_client_stops: bool) -> Config {
    let usual = Config::new(setup.collision.laser);
    // The same margin on both sides of a robot of any width.
    let margin_m = usual.planner.clearance_m - usual.collision.outline.half_width_m;
    Config {
        collision: collision::Config {
            limit_zone_m: usual.collision.limit_zone_m,
            stop_ahead_m: usual.collision.stop_ahead_m,
            drift_m: usual.collision.drift_m,
            reverses_blindly: usual.collision.reverses_blindly,
            ..setup.collision
        },
        planner: planner::Config {
            clearance_m: setup.collision.outline.half_width_m + margin_m,
            ..usual.planner
        },
        pursuit: pursuit::Config {
            max_m_s: speed_mm_s / 1000.0,
            ..usual.pursuit
        },
        any_client_stops,
        ..usual
    }
}

/// How the driver finds a path through the map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Plans {
    /// Anywhere the robot fits
    #[default]
    Grid,
    /// Along the nodes of a .roson map and their links
    Graph,
}

fn planner(path: &Path, config: planner::Config, plans: Plans) -> Result<Planner, NoPilot> {
    let unsuitable = |problem: String, hint: &str| OptionsError::Unusable {
        problem: format!("{}: {problem}", path.display()),
        hint: hint.to_owned(),
    };
    let no_graph = |problem: String| {
        let hint = "use --planner grid, or link the nodes of the map: docs/maps.md describes how";
        unsuitable(problem, hint)
    };
    let file = MapFile::open(path)?;
    if let Some(doubt) = file.doubt() {
        tracing::warn!("{doubt}");
    }
    let map = match file {
        MapFile::Roson { map, .. } => map,
        MapFile::Grid { .. } if plans == Plans::Graph => {
            return Err(no_graph("a map of ROS has no graph of nodes".into()).into());
        }
        MapFile::Grid { grid, .. } => return Ok(Planner::of_occupancy(config, &grid)),
    };
    let planner = Planner::new(config, &map.faces()).map_err(|error| {
        let hint = "split the map, or leave out its distant walls";
        unsuitable(error.to_string(), hint)
    })?;
    if plans == Plans::Grid {
        return Ok(planner);
    }
    let links = map.graph.edges.len();
    let planner = planner.with_graph(map.graph);
    let planner = planner.map_err(|error| no_graph(error.to_string()))?;
    match planner.narrow_links() {
        0 => {}
        all if all == links => {
            return Err(no_graph("the robot does not fit along any link".into()).into());
        }
        some => tracing::warn!("the robot does not fit along {some} of the {links} links of nodes"),
    }
    Ok(planner)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use amber_map::{Edge, Graph, Layout, Map, Occupancy, ros_map};

    use super::*;

    const FLAT: &str = include_str!("../map/maps/flat.roson");
    const MAZE: &str = include_str!("../map/maps/maze.roson");

    fn check(file: &Path, plans: Plans, expected: Result<(), &str>) {
        let options = Options {
            robot: RobotOptions::with_central_laser(),
            map: Some(file.to_owned()),
            planner: plans,
            ..Options::default()
        };
        let found = options.driver().map(|_| ());
        match (found, expected) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(part)) => {
                assert!(error.to_string().contains(part), "{error}");
                assert!(error.hint().is_some(), "{error}");
            }
            (found, expected) => panic!("{}: {found:?} {expected:?}", file.display()),
        }
    }

    #[test]
    fn maps_of_both_formats_and_graphs_are_checked_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("flat.roson"), FLAT).unwrap();
        fs::write(path("maze.roson"), MAZE.replace("node-nodes", "other")).unwrap();
        let faces = Map::flat().faces();
        let layout = Layout::around_walls(&faces, 0.5, 0.05).unwrap();
        let (yaml, pgm) = ros_map::write(&Occupancy::from_walls(layout, &faces), "flat.pgm");
        fs::write(path("flat.yaml"), yaml).unwrap();
        fs::write(path("flat.pgm"), pgm).unwrap();
        // Its only link goes through walls.
        let mut narrow = Map::flat();
        narrow.graph = Graph {
            places: vec![narrow.nodes[1], narrow.nodes[3]],
            edges: vec![Edge {
                from: 0,
                to: 1,
                cost: 1.0,
            }],
        };
        fs::write(path("narrow.roson"), narrow.to_roson()).unwrap();
        for (name, plans, expected) in [
            ("flat.roson", Plans::Grid, Ok(())),
            ("flat.roson", Plans::Graph, Ok(())),
            ("flat.yaml", Plans::Grid, Ok(())),
            ("flat.yaml", Plans::Graph, Err("a map of ROS has no graph")),
            ("maze.roson", Plans::Graph, Err("the map has no links")),
            ("narrow.roson", Plans::Graph, Err("does not fit along any")),
            // The driver waits for its map.
            ("none.roson", Plans::Grid, Ok(())),
            ("none.roson", Plans::Graph, Ok(())),
        ] {
            check(&path(name), plans, expected);
        }
    }

    #[test]
    fn paths_keep_the_margin_of_a_wide_robot() {
        let robot = RobotOptions {
            width_mm: Some(500.0),
            ..RobotOptions::with_central_laser()
        };
        let setup = robot.setup().unwrap();
        let wide = config(&setup, 380.0, false).planner.clearance_m;
        assert!((wide - 0.285).abs() < 1e-9, "{wide}");
        let usual = RobotOptions::with_central_laser().setup().unwrap();
        let usual = config(&usual, 380.0, false).planner;
        assert!((usual.clearance_m - planner::Config::default().clearance_m).abs() < 1e-9);
    }
}
