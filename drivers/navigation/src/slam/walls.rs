//! Straight walls from surfaces. PURE.
//!
//! The surfaces of all scans are averaged in small cells, apart for each direction that they face.
//! Lines grow from the best supported cells and are fitted to all that lie on them. Where most walls
//! have one direction or stand at right angles, walls that nearly do are turned to do so; otherwise
//! no direction is preferred. Two faces at the same place are one thin wall.

use std::collections::BTreeMap;
use std::f64::consts::{FRAC_PI_2, TAU};

use amber_map::{Point, Segment};

use super::chart::Chart;
use super::surface::{Surface, main_axis};

/// The size of the cells in which surfaces are averaged, and of the chart that they must agree with.
pub const CELL_M: f64 = 0.025;
const AVERAGED_M: f64 = 0.04;
/// The directions that are averaged apart.
const SECTORS: f64 = 8.0;
/// Cells with less weight are noise: that of a few near beams, or more distant ones.
const MIN_WEIGHT: f64 = 3e4;
/// A cell lies on a line within this distance and cosine of the angle.
const ON_LINE_M: f64 = 0.03;
const ON_LINE_COS: f64 = 0.9;
/// A line has gained a cell that lies beside it within these.
const BESIDE_M: f64 = 0.06;
const BESIDE_COS: f64 = 0.6;
/// A larger gap ends a line.
const GAP_M: f64 = 0.12;
/// Shorter walls are left out, and those with fewer cells.
const MIN_LENGTH_M: f64 = 0.06;
const MIN_CELLS: usize = 3;
/// Rounds of growth.
const MAX_ROUNDS: usize = 100;
/// Directions agree if the walls with the same one make up this part.
const MAIN_STRENGTH: f64 = 0.8;
/// Walls that differ by less are turned.
const MAIN_RAD: f64 = 0.06;
/// Walls on one line are one wall, up to this distance beside each other and this gap.
const JOIN_M: f64 = 0.025;
const JOIN_RAD: f64 = 0.05;
const JOIN_GAP_M: f64 = 0.15;
/// Both faces of a thin wall are closer than this...
const THIN_M: f64 = 0.055;
/// ...along at least this part of the shorter one.
const THIN_PART: f64 = 0.6;
/// Ends that are this close to a corner are moved into it.
const CORNER_M: f64 = 0.12;
/// A corner needs at least this angle: the sine.
const CORNER_SIN: f64 = 0.5;

/// Averaged surfaces.
#[derive(Clone, Copy, Debug)]
struct Cell {
    at: Point,
    normal: Point,
    weight: f64,
}

/// A wall that is being built.
#[derive(Clone, Copy, Debug)]
struct Face {
    centre: Point,
    /// The direction along the face. Its left is the side that was seen.
    direction: Point,
    /// The ends, as distances from the centre.
    from_m: f64,
    to_m: f64,
    weight: f64,
    /// Whether both sides were seen.
    both_sides: bool,
}

/// The walls on which the surfaces lie. With a chart, only surfaces on occupied cells count.
#[must_use]
pub fn walls_of(surfaces: &[Surface], chart: Option<&Chart>) -> Vec<Segment> {
    let mut faces = grow(&averaged(surfaces, chart));
    straighten(&mut faces);
    join(&mut faces, Face::continues);
    join(&mut faces, Face::is_other_side);
    meet(&mut faces);
    let segments = faces.iter().filter(|face| face.length_m() >= MIN_LENGTH_M);
    segments.map(Face::segment).collect()
}

fn averaged(surfaces: &[Surface], chart: Option<&Chart>) -> Vec<Cell> {
    let mut sums: BTreeMap<(i64, i64, i64), Cell> = BTreeMap::new();
    for surface in surfaces {
        let index = |value: f64| (value / AVERAGED_M).floor() as i64;
        let angle = surface.normal.y.atan2(surface.normal.x).rem_euclid(TAU);
        let sector = (angle / TAU * SECTORS) as i64;
        let sum = sums
            .entry((index(surface.at.x), index(surface.at.y), sector))
            .or_insert(Cell {
                at: Point::default(),
                normal: Point::default(),
                weight: 0.0,
            });
        sum.at = sum.at.plus(surface.at.times(surface.weight));
        sum.normal = sum.normal.plus(surface.normal.times(surface.weight));
        sum.weight += surface.weight;
    }
    let mut cells: Vec<Cell> = sums
        .into_values()
        .filter(|sum| sum.normal.length() > 0.0)
        .map(|sum| Cell {
            at: sum.at.times(1.0 / sum.weight),
            normal: sum.normal.times(1.0 / sum.normal.length()),
            weight: sum.weight,
        })
        .collect();
    cells.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    cells.retain(|cell| {
        let is_there = |chart: &Chart| {
            let behind = cell.normal.times(-CELL_M);
            [cell.at, cell.at.plus(behind), cell.at.minus(behind)]
                .into_iter()
                .any(|at| chart.is_occupied(at))
        };
        cell.weight >= MIN_WEIGHT && chart.is_none_or(is_there)
    });
    cells
}

/// Lines through cells, which are sorted by weight.
fn grow(cells: &[Cell]) -> Vec<Face> {
    let mut used = vec![false; cells.len()];
    let mut faces = Vec::new();
    for seed in 0..cells.len() {
        if used[seed] {
            continue;
        }
        used[seed] = true;
        let mut face = Face::at(&cells[seed]);
        let mut count = 1;
        for _ in 0..MAX_ROUNDS {
            let on_line: Vec<&Cell> = (0..cells.len())
                .filter(|index| {
                    (!used[*index] || *index == seed)
                        && face.has(&cells[*index], ON_LINE_M, ON_LINE_COS, GAP_M)
                })
                .map(|index| &cells[index])
                .collect();
            let Some(grown) = Face::through(&on_line) else {
                break;
            };
            let is_same = on_line.len() == count;
            (face, count) = (grown, on_line.len());
            if is_same {
                break;
            }
        }
        if count < MIN_CELLS || face.length_m() < MIN_LENGTH_M {
            continue;
        }
        for (index, cell) in cells.iter().enumerate() {
            if face.has(cell, BESIDE_M, BESIDE_COS, AVERAGED_M) {
                used[index] = true;
            }
        }
        faces.push(face);
    }
    faces
}

/// The direction that most walls have, or at right angles to it: -45° to 45°.
#[must_use]
pub fn main_direction(walls: &[Segment]) -> Option<f64> {
    main_of(walls.iter().map(|wall| {
        let way = wall.to.minus(wall.from);
        (way.length(), way.y.atan2(way.x))
    }))
}

/// The same, from lengths and directions.
fn main_of(walls: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut all_m, mut sum) = (0.0, Point::default());
    for (length_m, angle) in walls {
        all_m += length_m;
        // Four times the angle is the same for right angles.
        sum = sum.plus(Point::new(length_m, 0.0).turned(4.0 * angle));
    }
    let agree = all_m > 0.0 && sum.length() >= MAIN_STRENGTH * all_m;
    agree.then(|| sum.y.atan2(sum.x) / 4.0)
}

/// Turns walls into the main directions, if there are any.
fn straighten(faces: &mut [Face]) {
    let all = faces.iter().map(|face| (face.length_m(), face.angle()));
    let Some(main) = main_of(all) else {
        return;
    };
    for face in faces {
        let quarters = ((face.angle() - main) / FRAC_PI_2).round();
        let straight = main + quarters * FRAC_PI_2;
        if amber_map::wrap(face.angle() - straight).abs() <= MAIN_RAD {
            face.direction = Point::new(1.0, 0.0).turned(straight);
        }
    }
}

/// Joins pairs of walls until none belong together.
fn join(faces: &mut Vec<Face>, belong: impl Fn(&Face, &Face) -> bool) {
    let mut index = 0;
    while index < faces.len() {
        let partner =
            (0..faces.len()).find(|other| *other != index && belong(&faces[index], &faces[*other]));
        let Some(partner) = partner else {
            index += 1;
            continue;
        };
        let (first, second) = (index.min(partner), index.max(partner));
        let removed = faces.remove(second);
        faces[first] = faces[first].joined(&removed);
        index = 0;
    }
}

/// Moves ends into the corners next to them.
fn meet(faces: &mut [Face]) {
    for index in 0..faces.len() {
        let face = faces[index];
        let corners: Vec<f64> = (0..faces.len())
            .filter(|other| *other != index)
            .filter_map(|other| face.crossing_m(&faces[other]))
            .collect();
        let nearest = |end_m: f64| {
            let near = corners
                .iter()
                .copied()
                .filter(|corner_m| (corner_m - end_m).abs() <= CORNER_M);
            near.min_by(|a, b| (a - end_m).abs().total_cmp(&(b - end_m).abs()))
        };
        let (from, to) = (nearest(face.from_m), nearest(face.to_m));
        let middle_m = f64::midpoint(face.from_m, face.to_m);
        if let Some(from_m) = from.filter(|from_m| *from_m < middle_m) {
            faces[index].from_m = from_m;
        }
        if let Some(to_m) = to.filter(|to_m| *to_m > middle_m) {
            faces[index].to_m = to_m;
        }
    }
}

impl Face {
    fn at(cell: &Cell) -> Self {
        Self {
            centre: cell.at,
            direction: cell.normal.turned(-FRAC_PI_2),
            from_m: 0.0,
            to_m: 0.0,
            weight: cell.weight,
            both_sides: false,
        }
    }

    /// The line with the smallest squares.
    fn through(cells: &[&Cell]) -> Option<Self> {
        let weight: f64 = cells.iter().map(|cell| cell.weight).sum();
        if cells.len() < 2 || weight <= 0.0 {
            return None;
        }
        let mean = |value: &dyn Fn(&Cell) -> Point| {
            let sum = cells.iter().fold(Point::default(), |sum, cell| {
                sum.plus(value(cell).times(cell.weight))
            });
            sum.times(1.0 / weight)
        };
        let centre = mean(&|cell| cell.at);
        let normal = mean(&|cell| cell.normal);
        let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
        for cell in cells {
            let way = cell.at.minus(centre);
            xx += cell.weight * way.x * way.x;
            xy += cell.weight * way.x * way.y;
            yy += cell.weight * way.y * way.y;
        }
        let (axis, ..) = main_axis(xx, xy, yy);
        let is_seen_left = axis.turned(FRAC_PI_2).dot(normal) >= 0.0;
        let direction = if is_seen_left { axis } else { axis.times(-1.0) };
        let along = |cell: &&Cell| cell.at.minus(centre).dot(direction);
        Some(Self {
            centre,
            direction,
            from_m: cells.iter().map(along).fold(f64::INFINITY, f64::min),
            to_m: cells.iter().map(along).fold(f64::NEG_INFINITY, f64::max),
            weight,
            both_sides: false,
        })
    }

    fn angle(&self) -> f64 {
        self.direction.y.atan2(self.direction.x)
    }

    fn normal(&self) -> Point {
        self.direction.turned(FRAC_PI_2)
    }

    fn length_m(&self) -> f64 {
        self.to_m - self.from_m
    }

    fn point(&self, along_m: f64) -> Point {
        self.centre.plus(self.direction.times(along_m))
    }

    fn segment(&self) -> Segment {
        Segment {
            from: self.point(self.from_m),
            to: self.point(self.to_m),
        }
    }

    /// Whether a cell lies on the line, or in the extension by a gap.
    fn has(&self, cell: &Cell, beside_m: f64, min_cos: f64, gap_m: f64) -> bool {
        let way = cell.at.minus(self.centre);
        let along_m = way.dot(self.direction);
        way.dot(self.normal()).abs() <= beside_m
            && cell.normal.dot(self.normal()) >= min_cos
            && along_m >= self.from_m - gap_m
            && along_m <= self.to_m + gap_m
    }

    /// Where the ends of another wall are along this one, and the larger distance beside it.
    fn span(&self, other: &Self) -> (f64, f64, f64) {
        let ends =
            [other.point(other.from_m), other.point(other.to_m)].map(|end| end.minus(self.centre));
        let along = ends.map(|end| end.dot(self.direction));
        let beside = ends.map(|end| end.dot(self.normal()).abs());
        (
            along[0].min(along[1]),
            along[0].max(along[1]),
            beside[0].max(beside[1]),
        )
    }

    fn is_parallel(&self, other: &Self) -> bool {
        let turned = self.direction.x * other.direction.y - self.direction.y * other.direction.x;
        turned.abs() <= JOIN_RAD
    }

    /// Whether the other wall is the same, seen from the same side.
    fn continues(&self, other: &Self) -> bool {
        let (from_m, to_m, beside_m) = self.span(other);
        let gap_m = (from_m - self.to_m).max(self.from_m - to_m);
        self.is_parallel(other)
            && self.direction.dot(other.direction) > 0.0
            && beside_m <= JOIN_M
            && gap_m <= JOIN_GAP_M
    }

    /// Whether the other wall is this one, seen from the other side.
    fn is_other_side(&self, other: &Self) -> bool {
        let (from_m, to_m, beside_m) = self.span(other);
        let common_m = to_m.min(self.to_m) - from_m.max(self.from_m);
        self.is_parallel(other)
            && !self.both_sides
            && !other.both_sides
            && self.direction.dot(other.direction) < 0.0
            && beside_m <= THIN_M
            && common_m >= THIN_PART * self.length_m().min(other.length_m())
    }

    fn joined(&self, other: &Self) -> Self {
        let (from_m, to_m, _) = self.span(other);
        let both_sides = self.direction.dot(other.direction) < 0.0;
        let beside_m = other.centre.minus(self.centre).dot(self.normal());
        // Both faces of a thin wall count the same: each has its own error of colour.
        let part = if both_sides {
            0.5
        } else {
            other.weight / (self.weight + other.weight)
        };
        let heavier = if self.weight >= other.weight {
            self.direction
        } else {
            other.direction
        };
        let sign = if heavier.dot(self.direction) < 0.0 {
            -1.0
        } else {
            1.0
        };
        Self {
            centre: self.centre.plus(self.normal().times(part * beside_m)),
            direction: heavier.times(sign),
            from_m: from_m.min(self.from_m),
            to_m: to_m.max(self.to_m),
            weight: self.weight + other.weight,
            both_sides,
        }
    }

    /// Where the line of another wall crosses this one, if the other reaches there.
    fn crossing_m(&self, other: &Self) -> Option<f64> {
        let sine = self.direction.dot(other.normal());
        if sine.abs() < CORNER_SIN {
            return None;
        }
        let along_m = other.centre.minus(self.centre).dot(other.normal()) / sine;
        let there_m = self.point(along_m).minus(other.centre).dot(other.direction);
        let reaches = there_m >= other.from_m - CORNER_M && there_m <= other.to_m + CORNER_M;
        reaches.then_some(along_m)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Surfaces along one side of a line, with its left in free space.
    fn side(from: Point, to: Point) -> Vec<Surface> {
        let way = to.minus(from);
        let normal = way.turned(FRAC_PI_2).times(1.0 / way.length());
        let count = (way.length() / 0.03) as usize;
        (0..=count)
            .map(|index| Surface {
                at: from.plus(way.times(index as f64 / count as f64)),
                normal,
                weight: 1e5,
            })
            .collect()
    }

    fn sorted(mut walls: Vec<Segment>) -> Vec<Segment> {
        walls.sort_by(|a, b| {
            let key = |wall: &Segment| {
                (wall.from.plus(wall.to).x * 1e3).round() + wall.from.plus(wall.to).y
            };
            key(a).total_cmp(&key(b))
        });
        walls
    }

    fn has(walls: &[Segment], from: Point, to: Point) -> bool {
        let near = |a: Point, b: Point| a.minus(b).length() < 0.03;
        walls.iter().any(|wall| {
            near(wall.from, from) && near(wall.to, to) || near(wall.from, to) && near(wall.to, from)
        })
    }

    #[test]
    fn a_turned_room_has_four_walls_that_meet() {
        let corner = |x, y| Point::new(x, y).turned(0.4);
        let corners = [
            corner(0.0, 0.0),
            corner(3.0, 0.0),
            corner(3.0, 2.0),
            corner(0.0, 2.0),
        ];
        let surfaces: Vec<Surface> = (0..4)
            .flat_map(|index| side(corners[index], corners[(index + 1) % 4]))
            .collect();
        let walls = walls_of(&surfaces, None);
        assert_eq!(walls.len(), 4, "{walls:?}");
        for index in 0..4 {
            assert!(
                has(&walls, corners[index], corners[(index + 1) % 4]),
                "{walls:?}"
            );
        }
    }

    #[test]
    fn thick_walls_keep_both_faces_and_thin_ones_become_one() {
        let along = |y: f64, flip: bool| {
            let ends = [Point::new(0.0, y), Point::new(2.0, y)];
            let side_of = |ends: [Point; 2]| side(ends[0], ends[1]);
            if flip {
                side_of([ends[1], ends[0]])
            } else {
                side_of(ends)
            }
        };
        let thick = [along(0.1, false), along(0.0, true)].concat();
        assert_eq!(walls_of(&thick, None).len(), 2);
        let thin = [along(0.02, false), along(-0.02, true)].concat();
        let walls = walls_of(&thin, None);
        assert!(
            walls.len() == 1 && has(&walls, Point::new(0.0, 0.0), Point::new(2.0, 0.0)),
            "{walls:?}"
        );
    }

    #[test]
    fn a_door_stays_open_and_slanted_walls_stay_slanted() {
        let surfaces = [
            side(Point::new(0.0, 0.0), Point::new(1.0, 0.0)),
            side(Point::new(1.5, 0.0), Point::new(2.5, 0.0)),
            side(Point::new(3.0, 0.5), Point::new(3.7, 1.7)),
        ]
        .concat();
        let walls = sorted(walls_of(&surfaces, None));
        assert_eq!(walls.len(), 3, "{walls:?}");
        assert!(
            has(&walls, Point::new(0.0, 0.0), Point::new(1.0, 0.0)),
            "{walls:?}"
        );
        assert!(
            has(&walls, Point::new(3.0, 0.5), Point::new(3.7, 1.7)),
            "{walls:?}"
        );
    }
}
