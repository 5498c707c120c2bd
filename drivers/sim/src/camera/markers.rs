//! ArUco markers on the walls: black squares with a code, by which programs find out where they are.
//! PURE.
//!
//! They are those of `DICT_4X4_50` of OpenCV: 6 x 6 cells, of which the outer ones are black. Around
//! them is a white edge of one cell.

use std::fmt::Write;

use amber_map::{MapPose, Point, Pose, Segment, Walls};

use super::HEIGHT_M;

/// The file with the markers, in the folder of the devices.
pub const FILE: &str = "wall_markers.toml";

/// The side of a marker, without its white edge.
pub const SIDE_M: f64 = 0.25;
/// Shorter walls have no marker.
const MIN_WALL_M: f64 = 1.0;
/// A longer wall has several.
const WALL_OF_EACH_M: f64 = 3.0;
/// A robot can see a marker from here, and stand here.
const IN_FRONT_M: f64 = 0.4;
const FREE_M: f64 = 0.2;
/// The cells of a side, with the border.
const CELLS: f64 = 6.0;

/// The codes by id: 16 bits, row by row from the top left; 1 is white.
const CODES: [u16; 50] = [
    0xb532, 0x0f9a, 0x332d, 0x9946, 0x549e, 0x79cd, 0x9e2e, 0xc4f2, 0xfeda, 0xcf56, 0xf991, 0x11a7,
    0x0eb7, 0x2a0f, 0x24b1, 0x263e, 0x4665, 0x6600, 0x6c5e, 0x76af, 0x868b, 0xb02b, 0xccd5, 0xdd82,
    0xfe47, 0x9471, 0xace4, 0xa554, 0x2123, 0x346f, 0x4415, 0x57b2, 0x9ecf, 0xf0cb, 0x08ae, 0x0929,
    0x1875, 0x04ff, 0x0df6, 0x1c5a, 0x1718, 0x2a28, 0x328c, 0x38b2, 0x24e8, 0x2eeb, 0x2d3f, 0x4b64,
    0x502e, 0x5013,
];

/// A marker on a wall. Its centre is at the height of the camera.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WallMarker {
    /// Its number in the dictionary.
    pub id: u8,
    /// Its centre, and the direction in which it looks: away from the wall.
    pub pose: Pose,
}

/// All markers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WallMarkers {
    markers: Vec<WallMarker>,
}

impl WallMarkers {
    /// One in the middle of each side of a wall that a robot can see, and several on long ones, in the
    /// order of the map.
    #[must_use]
    pub fn on(segments: &[Segment]) -> Self {
        let walls = Walls::new(segments.to_vec());
        let long = segments
            .iter()
            .filter(|wall| wall.to.minus(wall.from).length() > MIN_WALL_M);
        let sides = long.flat_map(|wall| {
            let along = wall.to.minus(wall.from);
            let count = (along.length() / WALL_OF_EACH_M).ceil();
            (0..count as u32).flat_map(move |index| {
                let part = (f64::from(index) + 0.5) / count;
                let at = wall.from.plus(along.times(part));
                [1.0, -1.0].map(|side| {
                    let facing = Point::new(-along.y, along.x).times(side);
                    Pose {
                        at,
                        heading: facing.y.atan2(facing.x),
                    }
                })
            })
        });
        let seen = sides.filter(|pose| {
            let in_front = pose.global(Point::new(IN_FRONT_M, 0.0));
            let surrounded = (0..8).all(|ray| {
                let angle = f64::from(ray) * 45f64.to_radians() + 0.01;
                walls.cast(in_front, angle, f64::INFINITY).is_some()
            });
            // Otherwise it looks into a thick wall.
            let looks_out = walls.is_open(pose.global(Point::new(0.01, 0.0)), in_front);
            surrounded && looks_out && walls.clearance_m(in_front) > FREE_M
        });
        let markers = seen.zip(0..).take(CODES.len());
        Self {
            markers: markers.map(|(pose, id)| WallMarker { id, pose }).collect(),
        }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &[WallMarker] {
        &self.markers
    }

    /// A file for people and programs, in map coordinates: metres with y down, degrees clockwise.
    #[must_use]
    pub fn file(&self) -> String {
        let mut text = format!(
            "# ArUco markers (DICT_4X4_50) on the walls: metres with y down, degrees clockwise.\n\
             # The heading is the direction in which the marker looks.\n\
             side_m = {SIDE_M}\nheight_m = {HEIGHT_M}\n"
        );
        for WallMarker { id, pose } in &self.markers {
            let MapPose {
                x_m,
                y_m,
                heading_rad,
                ..
            } = (*pose).into();
            let heading_deg = heading_rad.to_degrees();
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n[[marker]]\nid = {id}\nx_m = {x_m:.4}\ny_m = {y_m:.4}\n\
                 heading_deg = {heading_deg:.4}\n"
            );
        }
        text
    }
}

/// Whether a marker is white at a place: to the right of its centre as one sees it, and above it.
/// `None` beside its white edge.
pub(super) fn is_white(id: u8, right_m: f64, up_m: f64) -> Option<bool> {
    let cell = |from_edge_m: f64| (from_edge_m * CELLS / SIDE_M).floor();
    let (column, row) = (cell(right_m + SIDE_M / 2.0), cell(SIDE_M / 2.0 - up_m));
    let is_in = |low: f64, high: f64| (low..=high).contains(&column) && (low..=high).contains(&row);
    if !is_in(-1.0, CELLS) {
        return None;
    }
    if !is_in(0.0, CELLS - 1.0) {
        return Some(true);
    }
    if !is_in(1.0, CELLS - 2.0) {
        return Some(false);
    }
    let bit = (row as u32 - 1) * 4 + column as u32 - 1;
    let code = CODES.get(usize::from(id)).copied().unwrap_or_default();
    Some((code >> (15 - bit)) & 1 == 1)
}

/// Beyond this distance from its centre there is nothing of a marker.
pub(super) const REACH_M: f64 = SIDE_M * (0.5 + 1.0 / CELLS);

#[cfg(test)]
mod tests {
    use amber_map::Map;

    use super::*;

    #[test]
    fn codes_are_the_dictionary_of_opencv() {
        // Marker 0, as OpenCV draws it.
        let rows = ["......", ".#.##.", "..#.#.", "...##.", "...#..", "......"];
        let cell_m = SIDE_M / CELLS;
        for (row, cells) in rows.iter().enumerate() {
            for (column, cell) in cells.chars().enumerate() {
                let right_m = (column as f64 - 2.5) * cell_m;
                let up_m = (2.5 - row as f64) * cell_m;
                assert_eq!(
                    is_white(0, right_m, up_m),
                    Some(cell == '#'),
                    "{row} {column}"
                );
            }
        }
        assert_eq!(
            is_white(0, SIDE_M * 0.55, 0.0),
            Some(true),
            "the white edge"
        );
        assert_eq!(is_white(0, SIDE_M * 0.7, 0.0), None);
    }

    #[test]
    fn the_flat_has_markers_that_look_into_its_rooms() {
        let map = Map::flat();
        let segments = map.faces();
        let markers = WallMarkers::on(&segments);
        let count = markers.all().len();
        assert!((8..=50).contains(&count), "{count}");
        let walls = Walls::new(segments);
        for marker in markers.all() {
            assert!(walls.clearance_m(marker.pose.at) < 1e-9);
            let in_front = marker.pose.global(Point::new(0.3, 0.0));
            assert!(walls.is_open(marker.pose.global(Point::new(0.01, 0.0)), in_front));
        }
        let file = markers.file();
        assert_eq!(file.matches("[[marker]]").count(), count);
        assert!(file.contains("side_m = 0.25\nheight_m = 0.25\n"), "{file}");
    }

    #[test]
    fn both_sides_of_a_thin_wall_have_one() {
        let corners = [(0.0, 0.0), (4.0, 0.0), (4.0, 3.0), (0.0, 3.0), (0.0, 0.0)];
        let corner = |(x, y): (f64, f64)| Point::new(x, y);
        let mut walls: Vec<Segment> = (corners.windows(2))
            .map(|ends| Segment {
                from: corner(ends[0]),
                to: corner(ends[1]),
            })
            .collect();
        // The long ones have two.
        assert_eq!(WallMarkers::on(&walls).all().len(), 6);
        walls.push(Segment {
            from: Point::new(2.0, 0.5),
            to: Point::new(2.0, 2.5),
        });
        let markers = WallMarkers::on(&walls);
        assert_eq!(markers.all().len(), 8);
        assert_eq!(markers.all()[7].id, 7);
    }
}
