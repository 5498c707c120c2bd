//! Furnished rooms: what real ones have beside straight walls. PURE.
//!
//! Chairs and tables are seen as thin legs, shelves have uneven fronts, some walls are of glass, people
//! walk about, and on an uneven floor the laser sees the floor for a moment.

use std::f64::consts::TAU;
use std::time::Duration;

use amber_map::{Point, Segment};
use amber_navigation::scan::{Echo, Scan};

use super::Course;

/// Things stand at least this far from the tour.
const ASIDE_M: f64 = 0.33;
/// The numbers of things, as far as there is room.
const TABLES: usize = 16;
const POSTS: usize = 10;
const PLANTS: usize = 10;
const SHELVES: usize = 10;
const PEOPLE: usize = 2;
/// The part of the walls that is of glass.
const GLASS: f64 = 0.04;
/// Glass is seen only if a beam comes from ahead, within this angle.
const GLASS_SEEN_RAD: f64 = 0.35;
/// How fast people walk, and the distance and the radius of their legs.
const WALK_M_S: f64 = 0.8;
const STEP_M: f64 = 0.3;
const LEG_M: f64 = 0.06;
/// They keep this distance from the robot.
const KEPT_M: f64 = 0.5;
/// So many scans show the floor, in a sector of this width, at this distance.
const BUMPS: f64 = 0.02;
const BUMP_RAD: f64 = 1.2;
const FLOOR_M: (f64, f64) = (1.2, 2.5);

/// What stands and walks in the rooms of a course.
#[derive(Clone, Debug, Default)]
pub struct Clutter {
    /// Walls without glass, and things.
    pub(super) solid: Vec<Segment>,
    glass: Vec<Segment>,
    /// The ways of people, to and fro.
    ways: Vec<[Point; 2]>,
}

impl Clutter {
    /// The walls alone.
    pub(super) fn none(walls: Vec<Segment>) -> Self {
        Self {
            solid: walls,
            ..Self::default()
        }
    }

    /// Furniture for a course, different for each seed.
    #[must_use]
    pub fn new(course: &Course, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0xC1A7_7E00);
        let (glass, mut solid): (Vec<_>, Vec<_>) = (course.walls.iter().copied())
            .partition(|wall| length_m(wall) < 1.5 && random.f64() < GLASS);
        let room = Room {
            course,
            walls: &course.walls,
        };
        for _ in 0..TABLES {
            let side_m = 0.35 + 0.4 * random.f64();
            room.place(0.75 * side_m, &mut random, |at, random| {
                let turn = random.f64() * TAU;
                for quarter in 0..4 {
                    let angle = turn + f64::from(quarter) * TAU / 4.0;
                    let leg = at.plus(Point::new(0.7 * side_m, 0.0).turned(angle));
                    solid.extend(block(leg, 0.015 + 0.01 * random.f64(), turn));
                }
            });
        }
        for _ in 0..POSTS {
            room.place(0.05, &mut random, |at, random| {
                solid.extend(block(at, 0.01 + 0.03 * random.f64(), random.f64() * TAU));
            });
        }
        for _ in 0..PLANTS {
            room.place(0.2, &mut random, |at, random| {
                for _ in 0..6 {
                    let end = |random: &mut fastrand::Rng| {
                        let way = Point::new(0.2 * random.f64(), 0.0);
                        at.plus(way.turned(random.f64() * TAU))
                    };
                    let (from, to) = (end(random), end(random));
                    solid.push(Segment { from, to });
                }
            });
        }
        for _ in 0..SHELVES {
            solid.extend(room.shelf(&mut random));
        }
        Self {
            ways: ways(course, &mut random),
            glass,
            solid,
        }
    }

    /// The same things, with people on other ways.
    pub(super) fn another_day(&self, course: &Course, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ 0xDA7_0000);
        Self {
            ways: ways(course, &mut random),
            ..self.clone()
        }
    }

    /// Everything solid at a time, while the robot is at this place.
    pub(super) fn at(&self, time: Duration, robot: Point) -> Vec<Segment> {
        let mut all = self.solid.clone();
        for [from, to] in &self.ways {
            let way = to.minus(*from);
            let length_m = way.length().max(0.1);
            let walked = time.as_secs_f64() * WALK_M_S / length_m;
            // To and fro.
            let part = 1.0 - (walked.rem_euclid(2.0) - 1.0).abs();
            let ahead = way.times(1.0 / length_m);
            let stride = STEP_M * (time.as_secs_f64() * TAU).sin();
            let left = ahead.turned(TAU / 4.0).times(0.1);
            let middle = from.plus(way.times(part));
            let away = middle.minus(robot);
            let distance_m = away.length().max(0.01);
            let middle = robot.plus(away.times((KEPT_M / distance_m).max(1.0)));
            for (side, step) in [(1.0, 0.5), (-1.0, -0.5)] {
                let at = middle
                    .plus(left.times(side))
                    .plus(ahead.times(step * stride));
                all.extend(block(at, LEG_M, 0.0));
            }
        }
        all
    }

    /// Whether something moves.
    pub(super) fn moves(&self) -> bool {
        !self.ways.is_empty()
    }

    /// The distance to a pane that a beam sees, before something at `solid_m`.
    pub(super) fn pane_m(&self, from: Point, direction: f64, solid_m: f64) -> Option<f64> {
        let ahead = Point::new(1.0, 0.0).turned(direction);
        let hits = self.glass.iter().filter_map(|pane| {
            let along = pane.to.minus(pane.from);
            let across = cross(ahead, along);
            let start = pane.from.minus(from);
            let distance_m = cross(start, along) / across;
            let part = cross(start, ahead) / across;
            let is_seen = (across / along.length()).abs() >= GLASS_SEEN_RAD.cos();
            (is_seen && (0.0..=1.0).contains(&part) && (0.0..solid_m).contains(&distance_m))
                .then_some(distance_m)
        });
        hits.min_by(f64::total_cmp)
    }

    /// The robot may tilt for a moment.
    pub(super) fn tilt(&self, scan: &mut Scan, random: &mut fastrand::Rng) {
        if !self.moves() || random.f64() >= BUMPS {
            return;
        }
        let middle = (random.f64() - 0.5) * TAU / 2.0;
        let floor_m = FLOOR_M.0 + (FLOOR_M.1 - FLOOR_M.0) * random.f64();
        for beam in &mut scan.beams {
            let off = beam.angle_rad - middle;
            if off.abs() < BUMP_RAD / 2.0
                && let Echo::At(distance_m) = &mut beam.echo
            {
                *distance_m = distance_m.min(floor_m / off.cos());
            }
        }
    }
}

/// Where things may stand.
struct Room<'a> {
    course: &'a Course,
    walls: &'a [Segment],
}

impl Room<'_> {
    /// Puts something of this radius anywhere, if there is room.
    fn place(
        &self,
        radius_m: f64,
        random: &mut fastrand::Rng,
        put: impl FnOnce(Point, &mut fastrand::Rng),
    ) {
        for _ in 0..200 {
            let start = self.course.path[random.usize(..self.course.path.len())];
            let way = Point::new(ASIDE_M + radius_m + random.f64(), 0.0);
            let at = start.plus(way.turned(random.f64() * TAU));
            let is_through = |wall: &Segment| crosses(wall, start, at);
            let is_free = self.is_aside(at, radius_m)
                && self.walls.iter().all(|wall| wall.distance(at) > radius_m)
                && !self.walls.iter().any(is_through);
            if is_free {
                return put(at, random);
            }
        }
    }

    fn is_aside(&self, at: Point, radius_m: f64) -> bool {
        let near = |other: &Point| other.minus(at).length() < ASIDE_M + radius_m;
        !self.course.path.iter().any(near)
    }

    /// Boxes of different depths along a wall.
    fn shelf(&self, random: &mut fastrand::Rng) -> Vec<Segment> {
        let mut front = Vec::new();
        let long: Vec<&Segment> = (self.walls.iter())
            .filter(|wall| length_m(wall) > 0.8)
            .collect();
        let Some(wall) = random.choice(long) else {
            return front;
        };
        let way = wall.to.minus(wall.from).times(1.0 / length_m(wall));
        let middle = wall.from.plus(wall.to).times(0.5);
        // Towards the tour.
        let distance_m = |at: Point| {
            let ways = self
                .course
                .path
                .iter()
                .map(|other| other.minus(at).length());
            ways.fold(f64::MAX, f64::min)
        };
        let left = way.turned(TAU / 4.0);
        let side = [1.0, -1.0].into_iter().min_by(|a, b| {
            let there = |side: f64| distance_m(middle.plus(left.times(0.3 * side)));
            there(*a).total_cmp(&there(*b))
        });
        let inwards = left.times(side.unwrap_or(1.0));
        let mut at_m = 0.1;
        while at_m < length_m(wall) - 0.3 {
            let (width_m, depth_m) = (0.1 + 0.2 * random.f64(), 0.08 + 0.25 * random.f64());
            let corner = |along_m: f64, depth_m: f64| {
                wall.from
                    .plus(way.times(along_m))
                    .plus(inwards.times(depth_m))
            };
            let corners = [
                corner(at_m, 0.0),
                corner(at_m, depth_m),
                corner(at_m + width_m, depth_m),
                corner(at_m + width_m, 0.0),
            ];
            if corners.iter().all(|corner| self.is_aside(*corner, 0.0)) {
                front.extend(corners.windows(2).map(|pair| Segment {
                    from: pair[0],
                    to: pair[1],
                }));
            }
            at_m += width_m + 0.1 * random.f64();
        }
        front
    }
}

fn ways(course: &Course, random: &mut fastrand::Rng) -> Vec<[Point; 2]> {
    let mut place = || course.path[random.usize(..course.path.len())];
    (0..PEOPLE).map(|_| [place(), place()]).collect()
}

/// A square with this half side.
fn block(at: Point, half_m: f64, turn: f64) -> impl Iterator<Item = Segment> {
    let corner = move |quarter: u32| {
        let way = Point::new(half_m * std::f64::consts::SQRT_2, 0.0);
        at.plus(way.turned(turn + f64::from(quarter) * TAU / 4.0))
    };
    (0..4).map(move |quarter| Segment {
        from: corner(quarter),
        to: corner(quarter + 1),
    })
}

fn length_m(wall: &Segment) -> f64 {
    wall.to.minus(wall.from).length()
}

fn cross(a: Point, b: Point) -> f64 {
    a.x * b.y - a.y * b.x
}

/// Whether a wall is between two points.
fn crosses(wall: &Segment, a: Point, b: Point) -> bool {
    let side = |from: Point, to: Point, at: Point| cross(to.minus(from), at.minus(from)) > 0.0;
    side(a, b, wall.from) != side(a, b, wall.to)
        && side(wall.from, wall.to, a) != side(wall.from, wall.to, b)
}
