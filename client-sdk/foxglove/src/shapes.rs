//! Shapes: the robot, walls, grids, paths and targets. PURE.

use amber_map::{Cell, Map, Occupancy, Point, Pose, Segment};
use amber_proto::bumper::Contacts;

use crate::frames::{MAP, ROBOT, on_map, pose, position, timestamp};
use crate::limits::MAX_GRID_CELLS;
use crate::messages::packed_element_field::NumericType;
use crate::messages::{
    ArrowPrimitive, Color, CubePrimitive, CylinderPrimitive, Grid, LinePrimitive,
    PackedElementField, Point3, SceneEntity, SceneEntityDeletion, SceneUpdate, Vector2, Vector3,
    line_primitive, scene_entity_deletion,
};

/// Length and width of a robot whose shape is unknown, and the height if that is: those of the
/// dashboard.
const ROBOT_SIZE_M: (f64, f64) = (0.46, 0.38);
pub(crate) const ROBOT_HEIGHT_M: f64 = 0.16;
/// The height of walls and of the robot, so that they are also visible from the side.
const WALL_HEIGHT_M: f64 = 0.3;
/// Walls whose thickness is unknown.
const THIN_WALL_M: f64 = 0.02;
/// The path lies a bit above the floor.
const PATH_HEIGHT_M: f64 = 0.02;
const PATH_WIDTH_M: f64 = 0.03;
/// The width of what the robot touches.
const CONTACT_M: f64 = 0.06;
/// The radius of a target that has none.
const TARGET_M: f64 = 0.05;

const ROBOT_COLOR: Color = color(0.16, 0.45, 0.85, 0.85);
const FRONT_COLOR: Color = color(1.0, 0.75, 0.1, 1.0);
const LOST_COLOR: Color = color(0.5, 0.52, 0.55, 0.6);
const WALL_COLOR: Color = color(0.55, 0.58, 0.62, 1.0);
const PATH_COLOR: Color = color(0.15, 0.7, 0.3, 1.0);
const CONTACT_COLOR: Color = color(0.95, 0.1, 0.1, 1.0);
const TARGET_COLOR: Color = color(0.9, 0.25, 0.2, 0.6);

const fn color(r: f64, g: f64, b: f64, a: f64) -> Color {
    Color { r, g, b, a }
}

/// The robot: a box with an arrow to its front; grey if its position is unknown.
pub(crate) fn robot(time_ns: u64, size_m: Option<(f64, f64, f64)>, is_known: bool) -> SceneUpdate {
    let (body, front) = match is_known {
        true => (ROBOT_COLOR, FRONT_COLOR),
        false => (LOST_COLOR, LOST_COLOR),
    };
    let usual_m = (ROBOT_SIZE_M.0, ROBOT_SIZE_M.1, ROBOT_HEIGHT_M);
    let (length, width, height) = size_m.unwrap_or(usual_m);
    let at = |x, z| pose(Pose::new(x, 0.0, 0.0), z);
    shown(SceneEntity {
        frame_locked: true,
        cubes: vec![CubePrimitive {
            pose: at(0.0, height / 2.0),
            size: Some(size(length, width, height)),
            color: Some(body),
        }],
        arrows: vec![ArrowPrimitive {
            pose: at(0.0, height),
            shaft_length: length * 0.3,
            shaft_diameter: 0.04,
            head_length: length * 0.2,
            head_diameter: 0.1,
            color: Some(front),
        }],
        ..entity("robot", ROBOT, time_ns)
    })
}

/// What the robot feels: a box at its edge for each contact that is pressed. Without any, the previous
/// ones are removed.
pub(crate) fn contacts(
    time_ns: u64,
    size_m: Option<(f64, f64, f64)>,
    contacts: &Contacts,
) -> SceneUpdate {
    let (length, width, height) =
        size_m.unwrap_or((ROBOT_SIZE_M.0, ROBOT_SIZE_M.1, ROBOT_HEIGHT_M));
    let pressed = contacts.contacts.iter().filter(|contact| contact.pressed());
    let cubes: Vec<_> = pressed
        .filter(|contact| contact.angle().is_finite())
        .map(|contact| {
            let angle_rad = contact.angle().to_radians();
            let (sin, cos) = angle_rad.sin_cos();
            let edge_m = (length / 2.0 / cos.abs()).min(width / 2.0 / sin.abs());
            let at = Pose::new(edge_m * cos, edge_m * sin, angle_rad);
            CubePrimitive {
                pose: pose(at, height / 2.0),
                size: Some(size(CONTACT_M / 2.0, CONTACT_M, height)),
                color: Some(CONTACT_COLOR),
            }
        })
        .collect();
    if cubes.is_empty() {
        return removed("contacts", time_ns);
    }
    shown(SceneEntity {
        frame_locked: true,
        cubes,
        ..entity("contacts", ROBOT, time_ns)
    })
}

pub(crate) fn walls(map: &Map, time_ns: u64) -> SceneUpdate {
    let widths = map.thicknesses_m.iter().copied();
    let walls = map.walls.iter().zip(widths.chain(std::iter::repeat(0.0)));
    shown(SceneEntity {
        cubes: walls.map(|(wall, width_m)| cube(wall, width_m)).collect(),
        ..entity("walls", MAP, time_ns)
    })
}

fn cube(wall: &Segment, width_m: f64) -> CubePrimitive {
    let way = wall.to.minus(wall.from);
    let centre = wall.from.plus(way.times(0.5));
    let heading = way.y.atan2(way.x);
    let width_m = width_m.max(THIN_WALL_M);
    CubePrimitive {
        pose: pose(Pose::new(centre.x, centre.y, heading), WALL_HEIGHT_M / 2.0),
        // Walls that meet at a corner fill it.
        size: Some(size(way.length() + width_m, width_m, WALL_HEIGHT_M)),
        color: Some(WALL_COLOR),
    }
}

/// A map of cells: occupied ones are dark, free ones are light, and unknown ones are transparent.
/// `None` if there are too many.
pub(crate) fn grid(cells: &Occupancy, time_ns: u64) -> Option<Grid> {
    let layout = cells.layout();
    if layout.cells() > MAX_GRID_CELLS {
        return None;
    }
    let mut data = Vec::with_capacity(2 * layout.cells());
    for row in 0..layout.rows {
        for column in 0..layout.columns {
            data.extend(match cells.cell(column, row) {
                Cell::Occupied => [40, 255],
                Cell::Free => [235, 255],
                Cell::Unknown => [128, 0],
            });
        }
    }
    let field = |name: &str, offset| PackedElementField {
        name: name.to_owned(),
        offset,
        r#type: NumericType::Uint8.into(),
    };
    Some(Grid {
        timestamp: timestamp(time_ns),
        frame_id: MAP.to_owned(),
        pose: pose(Pose::new(layout.low.x, layout.low.y, 0.0), 0.0),
        // At most MAX_GRID_CELLS.
        column_count: layout.columns as u32,
        cell_size: Some(Vector2 {
            x: layout.cell_m,
            y: layout.cell_m,
        }),
        row_stride: 2 * layout.columns as u32,
        cell_stride: 2,
        fields: vec![
            field("red", 0),
            field("green", 0),
            field("blue", 0),
            field("alpha", 1),
        ],
        data,
    })
}

/// A path over these points on the map. With fewer than two points, the previous path is removed.
pub(crate) fn path(places: impl Iterator<Item = (f64, f64)>, time_ns: u64) -> SceneUpdate {
    let places: Vec<Point> = places.map(|(x, y)| on_map(x, y)).collect();
    if places.len() < 2 {
        return removed("path", time_ns);
    }
    let point = |at: &Point| Point3 {
        x: at.x,
        y: at.y,
        z: PATH_HEIGHT_M,
    };
    shown(SceneEntity {
        lines: vec![LinePrimitive {
            r#type: line_primitive::Type::LineStrip.into(),
            pose: pose(Pose::default(), 0.0),
            thickness: PATH_WIDTH_M,
            scale_invariant: false,
            points: places.iter().map(point).collect(),
            color: Some(PATH_COLOR),
            colors: Vec::new(),
            indices: Vec::new(),
        }],
        ..entity("path", MAP, time_ns)
    })
}

/// Targets: x, y and radius of each. Without any, the previous ones are removed.
pub(crate) fn targets(all: &[(f64, f64, f64)], time_ns: u64) -> SceneUpdate {
    if all.is_empty() {
        return removed("targets", time_ns);
    }
    let cylinder = |&(x, y, radius_m): &(f64, f64, f64)| {
        let across = 2.0 * radius_m.max(TARGET_M);
        CylinderPrimitive {
            pose: pose(
                Pose {
                    at: on_map(x, y),
                    heading: 0.0,
                },
                PATH_HEIGHT_M / 2.0,
            ),
            size: Some(size(across, across, PATH_HEIGHT_M)),
            bottom_scale: 1.0,
            top_scale: 1.0,
            color: Some(TARGET_COLOR),
        }
    };
    shown(SceneEntity {
        cylinders: all.iter().map(cylinder).collect(),
        ..entity("targets", MAP, time_ns)
    })
}

fn size(x: f64, y: f64, z: f64) -> Vector3 {
    position(Point::new(x, y), z)
}

fn entity(id: &str, frame: &str, time_ns: u64) -> SceneEntity {
    SceneEntity {
        timestamp: timestamp(time_ns),
        frame_id: frame.to_owned(),
        id: id.to_owned(),
        ..SceneEntity::default()
    }
}

fn shown(entity: SceneEntity) -> SceneUpdate {
    SceneUpdate {
        deletions: Vec::new(),
        entities: vec![entity],
    }
}

fn removed(id: &str, time_ns: u64) -> SceneUpdate {
    SceneUpdate {
        deletions: vec![SceneEntityDeletion {
            timestamp: timestamp(time_ns),
            r#type: scene_entity_deletion::Type::MatchingId.into(),
            id: id.to_owned(),
        }],
        entities: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use amber_map::Layout;

    use super::*;

    #[test]
    fn a_wall_is_a_box_around_its_line() {
        let wall = Segment {
            from: Point::new(1.0, -1.0),
            to: Point::new(1.0, -3.0),
        };
        let cube = cube(&wall, 0.1);
        let found = cube.pose.unwrap();
        let (at, turn) = (found.position.unwrap(), found.orientation.unwrap());
        assert_eq!((at.x, at.y, at.z), (1.0, -2.0, WALL_HEIGHT_M / 2.0));
        assert!((2.0 * turn.z.atan2(turn.w) + FRAC_PI_2).abs() < 1e-9);
        assert_eq!(cube.size.unwrap().x, 2.1);
        assert_eq!(
            walls(&Map::flat(), 0).entities[0].cubes.len(),
            Map::flat().walls.len()
        );
    }

    #[test]
    fn a_grid_begins_at_its_lower_left_corner() {
        let layout = Layout {
            low: Point::new(-1.0, -2.0),
            cell_m: 0.5,
            columns: 3,
            rows: 2,
        };
        let line = Segment {
            from: Point::new(0.25, -1.9),
            to: Point::new(0.3, -1.9),
        };
        let cells = Occupancy::from_walls(layout, &[line]);
        let grid = grid(&cells, 0).unwrap();
        let corner = grid.pose.unwrap().position.unwrap();
        assert_eq!((corner.x, corner.y), (-1.0, -2.0));
        assert_eq!(
            (grid.column_count, grid.row_stride, grid.cell_stride),
            (3, 6, 2)
        );
        assert_eq!(grid.data.len(), 12);
        // x is 0 to 0.5, and y is -2 to -1.5.
        assert_eq!(grid.data[4], 40, "{:?}", grid.data);
        assert_eq!(
            grid.data
                .iter()
                .step_by(2)
                .filter(|grey| **grey == 40)
                .count(),
            1
        );
    }

    #[test]
    fn a_path_has_y_up_and_an_empty_one_removes_the_last() {
        let update = path([(1.0, 2.0), (3.0, 4.0)].into_iter(), 0);
        let points = &update.entities[0].lines[0].points;
        assert_eq!((points[1].x, points[1].y), (3.0, -4.0));
        for update in [path([(1.0, 2.0)].into_iter(), 9), targets(&[], 9)] {
            assert!(update.entities.is_empty());
            assert_eq!(update.deletions[0].timestamp.unwrap().nanos, 9);
        }
        let target = &targets(&[(1.0, 2.0, 0.0)], 0).entities[0].cylinders[0];
        assert_eq!(target.size.unwrap().x, 2.0 * TARGET_M);
        let at = target.pose.unwrap().position.unwrap();
        assert_eq!((at.x, at.y), (1.0, -2.0));
    }
}
