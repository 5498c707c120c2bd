//! Points, poses and straight walls in the plane frame. PURE.
//!
//! Metres and radians; x to the right, y up, angles counter-clockwise from x.

use std::f64::consts::PI;

/// A position or a vector, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Up.
    pub y: f64,
}

/// A straight wall without thickness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// One end.
    pub from: Point,
    /// The other end.
    pub to: Point,
}

/// The position and heading of a robot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pose {
    /// The centre of the robot.
    pub at: Point,
    /// The heading in radians, counter-clockwise from x; not wrapped.
    pub heading: f64,
}

impl Point {
    /// Creates a point from its coordinates.
    #[must_use]
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    /// The vector from another point to this one.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self::new(self.x - other.x, self.y - other.y)
    }

    /// This point, moved by a vector.
    #[must_use]
    pub fn plus(self, way: Self) -> Self {
        Self::new(self.x + way.x, self.y + way.y)
    }

    /// This vector, scaled.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self::new(self.x * factor, self.y * factor)
    }

    /// The length of this vector in metres.
    #[must_use]
    pub fn length(self) -> f64 {
        self.x.hypot(self.y)
    }

    /// This vector, rotated counter-clockwise by an angle in radians.
    #[must_use]
    pub fn turned(self, angle: f64) -> Self {
        let (sin, cos) = angle.sin_cos();
        Self::new(self.x * cos - self.y * sin, self.x * sin + self.y * cos)
    }

    fn cross(self, other: Self) -> f64 {
        self.x * other.y - self.y * other.x
    }

    /// The scalar product of two vectors.
    #[must_use]
    pub fn dot(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y
    }
}

impl Pose {
    /// Creates a pose from metres and radians.
    #[must_use]
    pub const fn new(x: f64, y: f64, heading: f64) -> Self {
        let at = Point::new(x, y);
        Self { at, heading }
    }

    /// A position in the frame of this pose: x ahead, y to the left.
    #[must_use]
    pub fn local(self, place: Point) -> Point {
        place.minus(self.at).turned(-self.heading)
    }

    /// The position of a point that is given in the frame of this pose. Inverts [`Pose::local`].
    #[must_use]
    pub fn global(self, local: Point) -> Point {
        self.at.plus(local.turned(self.heading))
    }

    /// Another pose in the frame of this pose.
    #[must_use]
    pub fn local_pose(self, other: Self) -> Self {
        Self {
            at: self.local(other.at),
            heading: other.heading - self.heading,
        }
    }

    /// A pose that is given in the frame of this pose: the pose after a motion. Inverts
    /// [`Pose::local_pose`].
    #[must_use]
    pub fn global_pose(self, local: Self) -> Self {
        Self {
            at: self.global(local.at),
            heading: self.heading + local.heading,
        }
    }

    /// The pose after driving `way_m` ahead while turning by `turn` radians, along one arc.
    #[must_use]
    pub fn along_arc(self, way_m: f64, turn: f64) -> Self {
        let half = turn / 2.0;
        let chord_m = if half.abs() < 1e-9 {
            way_m
        } else {
            way_m * half.sin() / half
        };
        let chord = Point::new(chord_m, 0.0).turned(self.heading + half);
        Self {
            at: self.at.plus(chord),
            heading: self.heading + turn,
        }
    }

    /// The pose after moving by `way` in the frame of this pose while turning by `turn` radians, both
    /// evenly: x of the way is ahead, y to the left. With y = 0, this is [`Pose::along_arc`].
    #[must_use]
    pub fn along(self, way: Point, turn: f64) -> Self {
        let half = turn / 2.0;
        let shorter = if half.abs() < 1e-9 {
            1.0
        } else {
            half.sin() / half
        };
        let chord = way.times(shorter).turned(self.heading + half);
        Self {
            at: self.at.plus(chord),
            heading: self.heading + turn,
        }
    }
}

/// The equivalent angle in (-pi, pi], in radians.
#[must_use]
pub fn wrap(angle: f64) -> f64 {
    let turned = angle.rem_euclid(2.0 * PI);
    if turned > PI {
        turned - 2.0 * PI
    } else {
        turned
    }
}

impl Segment {
    /// The distance of this wall along a beam, in units of `way`.
    pub(crate) fn hit(&self, origin: Point, way: Point) -> Option<f64> {
        let wall = self.to.minus(self.from);
        let spread = way.cross(wall);
        if spread == 0.0 {
            return None;
        }
        let offset = self.from.minus(origin);
        let along_beam = offset.cross(wall) / spread;
        let along_wall = offset.cross(way) / spread;
        (along_beam >= 0.0 && (0.0..=1.0).contains(&along_wall)).then_some(along_beam)
    }

    /// The shortest distance from a point to this wall, in metres.
    #[must_use]
    pub fn distance(&self, point: Point) -> f64 {
        let wall = self.to.minus(self.from);
        let square = wall.dot(wall);
        let part = if square == 0.0 {
            0.0
        } else {
            (point.minus(self.from).dot(wall) / square).clamp(0.0, 1.0)
        };
        point.minus(self.from.plus(wall.times(part))).length()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_a_circle_ends_beside_its_start() {
        let start = Pose::new(1.0, 2.0, 0.0);
        let end = start.along_arc(PI / 2.0, PI / 2.0);
        assert!(end.at.minus(Point::new(2.0, 3.0)).length() < 1e-9);
        assert!((end.heading - PI / 2.0).abs() < 1e-9);
        assert_eq!(start.along_arc(0.5, 0.0), Pose::new(1.5, 2.0, 0.0));
    }

    #[test]
    fn local_and_global_positions_are_inverse() {
        let pose = Pose::new(1.0, 2.0, PI / 2.0);
        let local = pose.local(Point::new(1.0, 3.0));
        assert!(local.minus(Point::new(1.0, 0.0)).length() < 1e-9, "ahead");
        assert!(pose.global(local).minus(Point::new(1.0, 3.0)).length() < 1e-9);
        let other = Pose::new(1.0, 3.0, PI);
        let local = pose.local_pose(other);
        assert!((local.heading - PI / 2.0).abs() < 1e-9 && (local.at.x - 1.0).abs() < 1e-9);
        let back = pose.global_pose(local);
        assert!(back.at.minus(other.at).length() < 1e-9 && (back.heading - PI).abs() < 1e-9);
    }

    #[test]
    fn angles_wrap() {
        for (angle, wrapped) in [
            (0.0, 0.0),
            (PI, PI),
            (-PI, PI),
            (3.0 * PI, PI),
            (-0.5, -0.5),
        ] {
            assert!((wrap(angle) - wrapped).abs() < 1e-9, "{angle}");
        }
    }
}
