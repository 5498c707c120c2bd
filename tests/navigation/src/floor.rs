//! A large map: the floor of an office building. PURE.

use amber_map::{Map, Point, Segment};

/// The rooms are 5 m x 4 m.
const ROOM_M: Point = Point::new(5.0, 4.0);
const COLUMNS: usize = 10;
const ROWS: usize = 9;
const DOOR_M: f64 = 1.0;
/// The tour visits the first rooms.
const VISITED: usize = 6;

/// A floor of 50 m x 36 m with 90 rooms. Doors are in different places, and each room has a piece
/// of furniture. Its nodes are in the first few rooms.
#[must_use]
pub fn office_floor() -> Map {
    let mut random = fastrand::Rng::with_seed(90);
    let mut map = Map::default();
    let corner =
        |column: usize, row: usize| Point::new(column as f64 * ROOM_M.x, row as f64 * ROOM_M.y);
    let mut wall = |from: Point, to: Point| map.walls.push(Segment { from, to });
    for row in 0..=ROWS {
        for column in 0..COLUMNS {
            let (from, to) = (corner(column, row), corner(column + 1, row));
            let door = (0 < row && row < ROWS).then(|| random.f64());
            with_door(from, to, door, &mut wall);
        }
    }
    for column in 0..=COLUMNS {
        for row in 0..ROWS {
            let (from, to) = (corner(column, row), corner(column, row + 1));
            let door = (0 < column && column < COLUMNS).then(|| random.f64());
            with_door(from, to, door, &mut wall);
        }
    }
    for column in 0..COLUMNS {
        for row in 0..ROWS {
            let offset = Point::new(0.4 + random.f64(), 0.4 + random.f64());
            let from = corner(column, row).plus(offset);
            wall(from, from.plus(Point::new(0.3 + random.f64(), 0.0)));
        }
    }
    map.thicknesses_m = vec![0.0; map.walls.len()];
    let middle = ROOM_M.times(0.5);
    map.nodes = (0..VISITED)
        .map(|index| corner(index % 3, index / 3).plus(middle))
        .collect();
    map
}

/// A wall with a door at a place between its ends, 0 to 1.
fn with_door(from: Point, to: Point, door: Option<f64>, wall: &mut impl FnMut(Point, Point)) {
    let Some(place) = door else {
        return wall(from, to);
    };
    let way = to.minus(from);
    let length_m = way.length();
    let start_m = 0.5 + place * (length_m - DOOR_M - 1.0);
    let at = |distance_m: f64| from.plus(way.times(distance_m / length_m));
    wall(from, at(start_m));
    wall(at(start_m + DOOR_M), to);
}
