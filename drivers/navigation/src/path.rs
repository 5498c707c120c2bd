//! A path: straight pieces between points, by the distance from its start. PURE.

use amber_map::Point;

/// Points closer than this to the one before are left out.
const SAME_M: f64 = 1e-6;

/// A path of at least one point.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    points: Vec<Point>,
    /// The distance of each point from the start.
    ways_m: Vec<f64>,
}

/// A place on a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The distance from the start of the path.
    pub way_m: f64,
    /// How far a position is to the left of the path; negative is right.
    pub left_m: f64,
}

impl Path {
    /// Creates a path; `None` without points.
    #[must_use]
    pub fn new(points: impl IntoIterator<Item = Point>) -> Option<Self> {
        let mut points = points.into_iter();
        let mut new = Self {
            points: vec![points.next()?],
            ways_m: vec![0.0],
        };
        for point in points {
            let step_m = point.minus(new.end()).length();
            if step_m > SAME_M {
                new.ways_m.push(new.length_m() + step_m);
                new.points.push(point);
            }
        }
        Some(new)
    }

    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The length in metres.
    #[must_use]
    pub fn length_m(&self) -> f64 {
        self.ways_m.last().copied().unwrap_or_default()
    }

    /// The last point.
    #[must_use]
    pub fn end(&self) -> Point {
        self.points.last().copied().unwrap_or_default()
    }

    /// The distance of a point of [`Path::points`] from the start.
    #[must_use]
    pub fn way_of_m(&self, index: usize) -> f64 {
        self.ways_m.get(index).copied().unwrap_or(self.length_m())
    }

    /// The point at a distance from the start; the ends before and behind the path.
    #[must_use]
    pub fn at(&self, way_m: f64) -> Point {
        let index = self.piece_at(way_m);
        let Some(to) = self.points.get(index + 1) else {
            return self.points[index];
        };
        let from = self.points[index];
        let (start_m, end_m) = (self.ways_m[index], self.ways_m[index + 1]);
        let part = ((way_m - start_m) / (end_m - start_m)).clamp(0.0, 1.0);
        from.plus(to.minus(from).times(part))
    }

    /// The direction at a distance from the start, in radians; 0 for a single point.
    #[must_use]
    pub fn direction_rad(&self, way_m: f64) -> f64 {
        let index = self.piece_at(way_m);
        let last = self.points.len().saturating_sub(2);
        let index = index.min(last);
        self.points.get(index + 1).map_or(0.0, |to| {
            let way = to.minus(self.points[index]);
            way.y.atan2(way.x)
        })
    }

    /// The nearest place to a position between two distances from the start.
    ///
    /// Where the path comes back to itself, the window keeps the progress in order.
    #[must_use]
    pub fn project(&self, position: Point, from_m: f64, to_m: f64) -> Place {
        let (from_m, to_m) = (from_m.max(0.0), to_m.min(self.length_m()));
        let mut nearest = (
            f64::INFINITY,
            Place {
                way_m: from_m.min(to_m),
                left_m: 0.0,
            },
        );
        let (first, last) = (self.piece_at(from_m), self.piece_at(to_m));
        for index in first..=last {
            let Some(to) = self.points.get(index + 1) else {
                continue;
            };
            let from = self.points[index];
            let along = to.minus(from);
            let length_m = self.ways_m[index + 1] - self.ways_m[index];
            let offset = position.minus(from);
            let way_m = (self.ways_m[index] + offset.dot(along) / length_m).clamp(
                self.ways_m[index].max(from_m),
                self.ways_m[index + 1].min(to_m).max(from_m),
            );
            let distance_m = position.minus(self.at(way_m)).length();
            if distance_m < nearest.0 {
                let left_m = (along.x * offset.y - along.y * offset.x) / length_m;
                let sign = if left_m < 0.0 { -1.0 } else { 1.0 };
                let left_m = sign * distance_m;
                nearest = (distance_m, Place { way_m, left_m });
            }
        }
        if nearest.0.is_infinite() {
            let offset_m = position.minus(self.at(from_m)).length();
            nearest.1.left_m = offset_m;
        }
        nearest.1
    }

    /// The index of the piece at a distance from the start.
    fn piece_at(&self, way_m: f64) -> usize {
        let after = self.ways_m.partition_point(|other_m| *other_m <= way_m);
        after
            .saturating_sub(1)
            .min(self.points.len().saturating_sub(2))
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use proptest::prelude::*;

    use super::*;

    fn corner() -> Path {
        let points = [(0.0, 0.0), (0.0, 0.0), (2.0, 0.0), (2.0, 1.0)];
        Path::new(points.map(|(x, y)| Point::new(x, y))).unwrap()
    }

    #[test]
    fn a_path_is_measured_from_its_start() {
        let path = corner();
        assert_eq!(path.points().len(), 3, "without the double point");
        assert_eq!(path.length_m(), 3.0);
        for (way_m, x, y) in [
            (-1.0, 0.0, 0.0),
            (0.5, 0.5, 0.0),
            (2.5, 2.0, 0.5),
            (9.0, 2.0, 1.0),
        ] {
            assert_eq!(path.at(way_m), Point::new(x, y), "{way_m}");
        }
        assert_eq!(path.direction_rad(1.0), 0.0);
        assert_eq!(path.direction_rad(2.5), FRAC_PI_2);
        assert_eq!(path.direction_rad(9.0), FRAC_PI_2);
        assert_eq!(Path::new([]), None);
    }

    #[test]
    fn a_position_has_a_nearest_place() {
        let path = corner();
        for (x, y, way_m, left_m) in [
            (0.5, 0.1, 0.5, 0.1),
            (0.5, -0.1, 0.5, -0.1),
            (1.9, 0.5, 2.5, 0.1),
            (-1.0, 0.0, 0.0, 1.0),
            (2.0, 3.0, 3.0, 2.0),
        ] {
            let place = path.project(Point::new(x, y), 0.0, 9.0);
            assert!((place.way_m - way_m).abs() < 1e-9, "{x} {y}: {place:?}");
            assert!((place.left_m - left_m).abs() < 1e-9, "{x} {y}: {place:?}");
        }
        let window = path.project(Point::new(2.0, 1.0), 0.0, 1.0);
        assert_eq!(window.way_m, 1.0, "the rest of the path is out of sight");
        let single = Path::new([Point::new(1.0, 1.0)]).unwrap();
        assert_eq!(single.project(Point::new(1.0, 3.0), 0.0, 9.0).left_m, 2.0);
        assert_eq!(single.at(1.0), Point::new(1.0, 1.0));
    }

    proptest! {
        #[test]
        fn the_nearest_place_is_the_nearest(
            ends in prop::collection::vec((-2.0..2.0, -2.0..2.0), 1..8),
            x in -3.0..3.0,
            y in -3.0..3.0,
        ) {
            let path = Path::new(ends.into_iter().map(|(x, y)| Point::new(x, y))).unwrap();
            let position = Point::new(x, y);
            let place = path.project(position, 0.0, f64::INFINITY);
            let found_m = position.minus(path.at(place.way_m)).length();
            prop_assert!((found_m - place.left_m.abs()).abs() < 1e-6);
            for step in 0..=100 {
                let other = path.at(path.length_m() * f64::from(step) / 100.0);
                prop_assert!(found_m <= position.minus(other).length() + 1e-9);
            }
        }
    }
}
