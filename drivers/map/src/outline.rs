//! The outline of a robot, and its overlap with walls. PURE.

use crate::geometry::{Point, Pose, Segment};

/// An overlap up to this is not a contact: a millionth of a millimetre.
pub(crate) const TOLERANCE_M: f64 = 1e-9;

/// A rectangle centred on the robot's pose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outline {
    /// Half of its length, along the heading, in metres.
    pub half_length_m: f64,
    /// Half of its width, in metres.
    pub half_width_m: f64,
}

impl Outline {
    /// The distance of its corners from its centre, in metres.
    #[must_use]
    pub fn radius_m(&self) -> f64 {
        self.half_length_m.hypot(self.half_width_m)
    }

    /// The shortest vector that moves a robot at this pose off the wall, if they overlap.
    pub(crate) fn way_off(&self, pose: Pose, wall: &Segment) -> Option<Point> {
        let (from, to) = (pose.local(wall.from), pose.local(wall.to));
        let along = to.minus(from);
        let length = along.length();
        let mut axes = vec![
            (Point::new(1.0, 0.0), self.half_length_m),
            (Point::new(0.0, 1.0), self.half_width_m),
        ];
        if length > 0.0 {
            let normal = Point::new(-along.y, along.x).times(1.0 / length);
            let reach = self.half_length_m * normal.x.abs() + self.half_width_m * normal.y.abs();
            axes.push((normal, reach));
        }
        let mut shortest: Option<Point> = None;
        for (axis, reach) in axes {
            let (a, b) = (from.dot(axis), to.dot(axis));
            // The distances that move the robot completely below or above the wall.
            let (down, up) = (a.min(b) - reach, a.max(b) + reach);
            if down >= -TOLERANCE_M || up <= TOLERANCE_M {
                return None;
            }
            let way = axis.times(if -down < up { down } else { up });
            if shortest.is_none_or(|other| way.length() < other.length()) {
                shortest = Some(way);
            }
        }
        shortest.map(|way| way.turned(pose.heading))
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use proptest::prelude::*;

    use super::*;

    const OUTLINE: Outline = Outline {
        half_length_m: 0.2,
        half_width_m: 0.1,
    };

    fn place() -> impl Strategy<Value = Point> {
        (-4.0..4.0, -4.0..4.0).prop_map(|(x, y)| Point::new(x, y))
    }

    proptest! {
        #[test]
        fn the_way_off_a_wall_ends_the_overlap(from in place(), to in place(), heading in -PI..PI) {
            let wall = Segment { from, to };
            let pose = Pose { at: Point::default(), heading };
            if let Some(way) = OUTLINE.way_off(pose, &wall) {
                let at = way.times(1.0 + 1e-6);
                let after = Pose { at, heading };
                prop_assert!(OUTLINE.way_off(after, &wall).is_none());
            }
        }
    }
}
