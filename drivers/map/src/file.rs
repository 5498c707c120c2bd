//! Map files of both formats: `.roson`, or the YAML file of a map of ROS map_server. PURE: the caller
//! passes the function that reads a file.

use std::io;
use std::path::{Path, PathBuf};

use crate::grid::{Cell, Occupancy};
use crate::map::{Map, MapError};
use crate::ros_map::{Description, RosMapError};
use crate::{Point, Pose, Walls};

/// The hint for an invalid map.
const HINT: &str = "a map is a .roson file, or the YAML file of a map of ROS map_server; \
                    docs/maps.md describes both";
/// A robot that starts has this much room around its centre, in metres: it can turn.
const ROOM_M: f64 = 0.27;
/// The number of places that are tried for the start: each is compared with all walls.
const MAX_PLACES: usize = 1_000;

/// A map in one of the two formats.
#[derive(Clone, Debug, PartialEq)]
pub enum MapFile {
    /// Straight walls.
    Roson {
        /// The content of the file.
        text: String,
        /// Its meaning.
        map: Map,
    },
    /// An image.
    Grid {
        /// Its meaning.
        grid: Occupancy,
        /// Why the meaning may be another one, and what to do.
        doubt: Option<String>,
    },
}

/// The reason why a map file is rejected.
#[derive(Debug, thiserror::Error)]
pub enum MapFileError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file is not text.
    #[error("{}: the file is not text", .0.display())]
    NotText(PathBuf),
    /// It is not a `.roson` map.
    #[error("{}: {error}", path.display())]
    Roson {
        /// The file.
        path: PathBuf,
        /// Why.
        error: MapError,
    },
    /// It is not a map of ROS.
    #[error("{}: {error}", path.display())]
    Ros {
        /// The YAML file, or the image.
        path: PathBuf,
        /// Why.
        error: RosMapError,
    },
}

impl MapFileError {
    /// How to correct it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        HINT
    }
}

impl MapFile {
    /// Whether a file is a map of ROS, by its name.
    #[must_use]
    pub fn is_ros(path: &Path) -> bool {
        let extension = path.extension().unwrap_or_default();
        extension.eq_ignore_ascii_case("yaml") || extension.eq_ignore_ascii_case("yml")
    }

    /// Reads a map, and the image of a map of ROS.
    ///
    /// # Errors
    /// A file cannot be read, or is invalid. The error names it.
    pub fn read(
        path: &Path,
        read: impl Fn(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Self, MapFileError> {
        let read = |path: &Path| {
            read(path).map_err(|error| MapFileError::Read {
                path: path.to_owned(),
                error,
            })
        };
        let text = String::from_utf8(read(path)?);
        let text = text.map_err(|_| MapFileError::NotText(path.to_owned()))?;
        if !Self::is_ros(path) {
            return Self::roson(text).map_err(|error| MapFileError::Roson {
                path: path.to_owned(),
                error,
            });
        }
        let invalid = |path: &Path, error| MapFileError::Ros {
            path: path.to_owned(),
            error,
        };
        let description: Description = text.parse().map_err(|error| invalid(path, error))?;
        let image = path.with_file_name(&description.image);
        let bytes = read(&image)?;
        let grid = description.occupancy(&bytes);
        Ok(Self::Grid {
            grid: grid.map_err(|error| invalid(&image, error))?,
            doubt: (description.doubt(&bytes)).map(|doubt| format!("{}: {doubt}", path.display())),
        })
    }

    /// A problem of a map that can be used, which names the file.
    #[must_use]
    pub fn doubt(&self) -> Option<&str> {
        match self {
            Self::Roson { .. } => None,
            Self::Grid { doubt, .. } => doubt.as_deref(),
        }
    }

    /// A map from the text of a `.roson` file.
    ///
    /// # Errors
    /// The text is not such a map.
    pub fn roson(text: String) -> Result<Self, MapError> {
        let map = Map::parse(&text)?;
        Ok(Self::Roson { text, map })
    }

    /// The map as straight walls. The cells of an image become lines, and the robot starts at the
    /// origin, where most programs begin a map, or at the place with most room.
    ///
    /// # Errors
    /// The image has no occupied cells, or too many.
    pub fn into_walls(self) -> Result<Map, MapError> {
        match self {
            Self::Roson { map, .. } => Ok(map),
            Self::Grid { grid, .. } => {
                let walls = grid.lines();
                let mut map = Map {
                    thicknesses_m: vec![0.0; walls.len()],
                    walls,
                    ..Map::default()
                };
                map.check()?;
                map.robots = starts(&grid, &map.walls);
                Ok(map)
            }
        }
    }
}

/// Possible start positions of a robot: the origin if there is room, and the place with most room.
fn starts(grid: &Occupancy, walls: &[crate::Segment]) -> Vec<Pose> {
    let layout = grid.layout();
    let walls = Walls::new(walls.to_vec());
    let step = ((layout.cells() as f64 / MAX_PLACES as f64).sqrt().ceil() as usize).max(1);
    let places = (0..layout.rows).step_by(step).flat_map(|row| {
        let columns = (0..layout.columns).step_by(step);
        columns.map(move |column| (column, row))
    });
    let free = places.filter(|(column, row)| grid.cell(*column, *row) == Cell::Free);
    let widest = free
        .map(|(column, row)| layout.centre(column, row))
        .map(|at| (walls.clearance_m(at), at))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, at)| at);
    let origin = Point::default();
    let is_free = |at: Point| {
        let cell = layout.cell_at(at);
        cell.is_some_and(|(column, row)| grid.cell(column, row) == Cell::Free)
    };
    let origin = Some(origin).filter(|at| is_free(*at) && walls.clearance_m(*at) >= ROOM_M);
    let all = origin.into_iter().chain(widest);
    all.map(|at| Pose { at, heading: 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::grid::Layout;
    use crate::ros_map;

    const FLAT: &str = include_str!("../maps/flat.roson");

    /// The flat as an image, with its origin in the hall.
    fn grid() -> Occupancy {
        let faces = Map::flat().faces();
        let layout = Layout::around_walls(&faces, 0.5, 0.05).unwrap();
        let cells = Occupancy::from_walls(layout, &faces);
        let start = Map::flat().robots[0].at;
        let moved = Layout {
            low: layout.low.minus(start),
            ..layout
        };
        let all = (0..layout.cells()).map(|cell| {
            let (column, row) = (cell % layout.columns, cell / layout.columns);
            cells.cell(column, row)
        });
        Occupancy::from_cells(moved, all.collect()).unwrap()
    }

    fn plain(grid: Occupancy) -> MapFile {
        MapFile::Grid { grid, doubt: None }
    }

    fn files() -> HashMap<&'static str, Vec<u8>> {
        let (yaml, pgm) = ros_map::write(&grid(), "image.pgm");
        let no_image = yaml.replace("image.pgm", "gone.pgm");
        let doubtful = no_image
            .replace("gone.pgm", "unknown.pgm")
            .replace("free_thresh: 0.196", "free_thresh: 0.25");
        HashMap::from([
            ("maps/flat.roson", FLAT.as_bytes().to_vec()),
            ("maps/flat.yaml", yaml.into_bytes()),
            ("maps/image.pgm", pgm),
            ("maps/gone.yaml", no_image.into_bytes()),
            ("maps/doubtful.yaml", doubtful.into_bytes()),
            ("maps/unknown.pgm", b"P2 3 1 255 0 205 254".to_vec()),
            ("maps/broken.roson", b"{".to_vec()),
            ("maps/broken.yml", b"image: a.pgm".to_vec()),
            ("maps/picture.png", b"\x89PNG\xff".to_vec()),
        ])
    }

    fn read(name: &str) -> Result<MapFile, MapFileError> {
        let files = files();
        MapFile::read(Path::new(name), |path| {
            let file = path.to_str().and_then(|path| files.get(path));
            file.cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
        })
    }

    #[test]
    fn both_formats_are_read() {
        let MapFile::Roson { text, map } = read("maps/flat.roson").unwrap() else {
            panic!("not walls");
        };
        assert_eq!((text.as_str(), map), (FLAT, Map::flat()));
        assert_eq!(read("maps/flat.yaml").unwrap(), plain(grid()));
        let doubtful = read("maps/doubtful.yaml").unwrap();
        let doubt = doubtful.doubt().unwrap();
        assert!(
            doubt.starts_with("maps/doubtful.yaml: free_thresh"),
            "{doubt}"
        );
    }

    #[test]
    fn errors_name_the_file() {
        for (name, part) in [
            ("maps/none.roson", "cannot read maps/none.roson: "),
            ("maps/gone.yaml", "cannot read maps/gone.pgm: "),
            ("maps/broken.roson", "maps/broken.roson: not a .roson map"),
            ("maps/broken.yml", "maps/broken.yml: "),
            ("maps/picture.png", "maps/picture.png: the file is not text"),
        ] {
            let error = read(name).unwrap_err();
            assert!(error.to_string().starts_with(part), "{error}");
        }
    }

    #[test]
    fn an_image_becomes_walls_with_a_start_at_its_origin() {
        let map = read("maps/flat.yaml").unwrap().into_walls().unwrap();
        assert_eq!(map.robots[0], Pose::default());
        let start = Map::flat().robots[0];
        let (flat, image) = (Walls::new(Map::flat().faces()), Walls::new(map.walls));
        // Straight at walls: a slanted beam may pass a corner on one map and not on the other.
        for degrees in (0..360).step_by(90) {
            let angle = f64::from(degrees).to_radians();
            let [a, b] = [
                flat.cast(start.at, angle, 10.0),
                image.cast(Point::default(), angle, 10.0),
            ];
            // The first cell that a wall touches, and the centre of this cell.
            let (a, b) = (a.unwrap_or(10.0), b.unwrap_or(10.0));
            assert!((a - b).abs() < 0.15, "{degrees}: {a} {b}");
        }
    }

    #[test]
    fn without_room_at_the_origin_the_robot_starts_at_the_widest_place() {
        let grid = grid();
        let low = grid.layout().low;
        let layout = Layout {
            low: Point::new(1.0, 1.0),
            ..*grid.layout()
        };
        let all =
            (0..layout.cells()).map(|cell| grid.cell(cell % layout.columns, cell / layout.columns));
        let moved = Occupancy::from_cells(layout, all.collect()).unwrap();
        let map = plain(moved).into_walls().unwrap();
        assert_eq!(map.robots.len(), 1);
        // In a room of the flat, and not in the border around it.
        let at = map.robots[0].at.minus(layout.low).plus(low);
        let at = at.plus(Map::flat().robots[0].at);
        let flat = Walls::new(Map::flat().faces());
        assert!(flat.clearance_m(at) > 0.6, "{at:?}");
        let (low, high) = flat.bounds();
        assert!(at.x > low.x && at.x < high.x && at.y > low.y && at.y < high.y);
    }

    #[test]
    fn an_empty_image_has_no_walls() {
        let layout = Layout {
            low: Point::default(),
            cell_m: 0.05,
            columns: 10,
            rows: 10,
        };
        let empty = Occupancy::from_cells(layout, vec![Cell::Free; 100]).unwrap();
        let error = plain(empty).into_walls().unwrap_err();
        assert_eq!(error.to_string(), "the map has no walls");
    }
}
