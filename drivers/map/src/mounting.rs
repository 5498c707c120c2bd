//! The place of a scanner on the robot, which may be mounted upside down. PURE.

use crate::{Point, Pose};

/// The place of a scanner on the robot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mounting {
    /// Its position, and the direction of its front.
    pub pose: Pose,
    /// Whether it is turned by half a turn around the direction of its front, so that its left is on
    /// the right.
    pub is_upside_down: bool,
}

impl From<Pose> for Mounting {
    /// The right way up.
    fn from(pose: Pose) -> Self {
        Self {
            pose,
            is_upside_down: false,
        }
    }
}

impl Mounting {
    /// A position in the frame of the robot; `at` is in that of the scanner: x ahead, y to its left.
    #[must_use]
    pub fn on_robot(self, at: Point) -> Point {
        let y = if self.is_upside_down { -at.y } else { at.y };
        self.pose.global(Point::new(at.x, y))
    }

    /// Its rotation as a quaternion: x, y, z, w.
    #[must_use]
    pub fn quaternion(self) -> [f64; 4] {
        let (sin, cos) = (self.pose.heading / 2.0).sin_cos();
        if self.is_upside_down {
            [cos, sin, 0.0, 0.0]
        } else {
            [0.0, 0.0, sin, cos]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vector turned by a quaternion.
    fn turned([x, y, z, w]: [f64; 4], [vx, vy, vz]: [f64; 3]) -> [f64; 3] {
        let cross = |a: [f64; 3], b: [f64; 3]| {
            [
                a[1] * b[2] - a[2] * b[1],
                a[2] * b[0] - a[0] * b[2],
                a[0] * b[1] - a[1] * b[0],
            ]
        };
        let v = [vx, vy, vz];
        let axis = [x, y, z];
        let half = cross(axis, v);
        let inner = [0, 1, 2].map(|index| half[index] + w * v[index]);
        let outer = cross(axis, inner);
        [0, 1, 2].map(|index| v[index] + 2.0 * outer[index])
    }

    #[test]
    fn the_rotation_and_the_points_agree() {
        for is_upside_down in [false, true] {
            let mounting = Mounting {
                pose: Pose::new(0.2, -0.1, 0.7),
                is_upside_down,
            };
            for at in [Point::new(1.0, 0.0), Point::new(0.5, 2.0)] {
                let [x, y, z] = turned(mounting.quaternion(), [at.x, at.y, 0.0]);
                let expected = mounting.on_robot(at).minus(mounting.pose.at);
                assert!((x - expected.x).abs() < 1e-12 && (y - expected.y).abs() < 1e-12);
                assert!(z.abs() < 1e-12);
            }
        }
        let upside_down = Mounting {
            pose: Pose::default(),
            is_upside_down: true,
        };
        let left = upside_down.on_robot(Point::new(0.0, 1.0));
        assert_eq!(left, Point::new(0.0, -1.0));
    }
}
