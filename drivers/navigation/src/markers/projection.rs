//! From places to pixels and back: the optics of a camera, and squares seen from anywhere. PURE.

use super::picture::{Px, cross, minus};

/// A place or a way: three numbers.
pub type Vector = [f64; 3];

/// A place in front of a camera is not nearer than this, in metres.
const NEAR_M: f64 = 0.01;

/// How a camera maps places to pixels, as ROS and OpenCV describe it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optics {
    /// The focal lengths, in pixels.
    pub focal_px: Px,
    /// Where the axis of the camera meets the picture.
    pub centre_px: Px,
    /// How the lens bends.
    pub lens: Lens,
}

/// How a lens bends what one sees.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Lens {
    /// Not at all.
    #[default]
    Straight,
    /// k1, k2, p1, p2, k3, k4, k5 and k6: `plumb_bob` is this with the last three at 0.
    Polynomial([f64; 8]),
    /// k1 to k4: a lens with a wide view.
    Equidistant([f64; 4]),
}

impl Optics {
    /// A straight lens that sees this angle from left to right, in the middle of the picture.
    #[must_use]
    pub fn of_view(width: usize, height: usize, view_rad: f64) -> Self {
        let [width, height] = [width, height].map(|size| size as f64);
        let focal_px = width / 2.0 / (view_rad / 2.0).tan();
        Self {
            focal_px: [focal_px; 2],
            centre_px: [(width - 1.0) / 2.0, (height - 1.0) / 2.0],
            lens: Lens::Straight,
        }
    }

    /// The same camera with pictures that were made smaller by this factor.
    #[must_use]
    pub fn smaller(self, factor: f64) -> Self {
        Self {
            focal_px: self.focal_px.map(|px| px / factor),
            centre_px: self.centre_px.map(|px| (px + 0.5) / factor - 0.5),
            lens: self.lens,
        }
    }

    /// The direction in which a pixel looks: right and down per metre ahead. `None` beyond what the lens
    /// can show.
    pub(super) fn direction(&self, [x, y]: Px) -> Option<Px> {
        const ROUNDS: usize = 20;
        const MAX_ERROR: f64 = 1e-5;
        let bent = [
            (x - self.centre_px[0]) / self.focal_px[0],
            (y - self.centre_px[1]) / self.focal_px[1],
        ];
        let mut straight = bent;
        if self.lens != Lens::Straight {
            for _ in 0..ROUNDS {
                let now = self.lens.bend(straight);
                straight = [
                    straight[0] + bent[0] - now[0],
                    straight[1] + bent[1] - now[1],
                ];
            }
        }
        let error = minus(self.lens.bend(straight), bent);
        (error[0].hypot(error[1]) < MAX_ERROR).then_some(straight)
    }

    /// The mean of both focal lengths: so many pixels is a radian, near the centre.
    pub(super) fn px_per_rad(&self) -> f64 {
        (self.focal_px[0] * self.focal_px[1]).sqrt()
    }
}

impl Lens {
    /// Where a direction appears.
    fn bend(self, [x, y]: Px) -> Px {
        let square = x * x + y * y;
        match self {
            Self::Straight => [x, y],
            Self::Polynomial([k1, k2, p1, p2, k3, k4, k5, k6]) => {
                let series =
                    |a: f64, b: f64, c: f64| 1.0 + square * (a + square * (b + square * c));
                let radial = series(k1, k2, k3) / series(k4, k5, k6);
                [
                    x * radial + 2.0 * p1 * x * y + p2 * (square + 2.0 * x * x),
                    y * radial + p1 * (square + 2.0 * y * y) + 2.0 * p2 * x * y,
                ]
            }
            Self::Equidistant([k1, k2, k3, k4]) => {
                let radius = square.sqrt();
                let angle = radius.atan();
                let square = angle * angle;
                let series = 1.0 + square * (k1 + square * (k2 + square * (k3 + square * k4)));
                let factor = match radius {
                    radius if radius > 1e-9 => angle * series / radius,
                    _ => 1.0,
                };
                [x * factor, y * factor]
            }
        }
    }
}

/// A place in front of the camera, as right and down per metre ahead.
pub(super) fn seen([x, y, z]: Vector) -> Px {
    let z = z.max(NEAR_M);
    [x / z, y / z]
}

/// Maps a square, whose corners are (0, 0), (1, 0), (1, 1) and (0, 1), to a quadrilateral.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Homography {
    /// Row by row.
    rows: [Vector; 3],
}

impl Homography {
    /// The map to these corners. `None` if three of them are on a line.
    pub(super) fn of_square(corners: [Px; 4]) -> Option<Self> {
        let [first, second, third, fourth] = corners;
        let (one, other) = (minus(second, third), minus(fourth, third));
        let sum = [
            first[0] - second[0] + third[0] - fourth[0],
            first[1] - second[1] + third[1] - fourth[1],
        ];
        let all = cross(one, other);
        if all.abs() < 1e-12 {
            return None;
        }
        let (g, h) = (cross(sum, other) / all, cross(one, sum) / all);
        let row = |axis: usize| {
            [
                second[axis] - first[axis] + g * second[axis],
                fourth[axis] - first[axis] + h * fourth[axis],
                first[axis],
            ]
        };
        Some(Self {
            rows: [row(0), row(1), [g, h, 1.0]],
        })
    }

    pub(super) fn at(&self, [x, y]: Px) -> Px {
        let [right, down, scale] = self.rows.map(|row| row[0] * x + row[1] * y + row[2]);
        [right / scale, down / scale]
    }

    /// What is multiplied by the coordinate with this number.
    pub(super) fn column(&self, index: usize) -> Vector {
        self.rows.map(|row| row[index])
    }
}

pub(super) fn dot(one: Vector, other: Vector) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

pub(super) fn times(way: Vector, factor: f64) -> Vector {
    way.map(|part| part * factor)
}

pub(super) fn plus(one: Vector, other: Vector) -> Vector {
    [one[0] + other[0], one[1] + other[1], one[2] + other[2]]
}

pub(super) fn norm(way: Vector) -> f64 {
    dot(way, way).sqrt()
}

pub(super) fn across(one: Vector, other: Vector) -> Vector {
    [
        one[1] * other[2] - one[2] * other[1],
        one[2] * other[0] - one[0] * other[2],
        one[0] * other[1] - one[1] * other[0],
    ]
}

/// A rotation: where it turns the three axes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotation {
    /// The axes x, y and z after it.
    pub(super) axes: [Vector; 3],
}

impl Rotation {
    /// None.
    pub const NONE: Self = Self {
        axes: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    };

    /// By an angle, which is the length of the axis, counter-clockwise around it.
    #[must_use]
    pub fn around(axis: Vector) -> Self {
        let angle = norm(axis);
        if angle < 1e-12 {
            return Self::NONE;
        }
        let unit = times(axis, 1.0 / angle);
        let (sin, cos) = angle.sin_cos();
        let turned = |way: Vector| {
            let along = times(unit, dot(unit, way) * (1.0 - cos));
            plus(plus(times(way, cos), times(across(unit, way), sin)), along)
        };
        Self {
            axes: Self::NONE.axes.map(turned),
        }
    }

    /// The axes of this rotation, made square: the first two are right within a few degrees.
    pub(super) fn near(x: Vector, y: Vector) -> Option<Self> {
        let z = across(x, y);
        let length = norm(z);
        let is_plane = length > 1e-9;
        if !is_plane {
            return None;
        }
        let z = times(z, 1.0 / length);
        // Both are turned by the same angle.
        let middle = plus(times(x, 1.0 / norm(x)), times(y, 1.0 / norm(y)));
        let middle = times(middle, 1.0 / norm(middle));
        let beside = across(z, middle);
        let half = std::f64::consts::FRAC_1_SQRT_2;
        let axes = [
            plus(times(middle, half), times(beside, -half)),
            plus(times(middle, half), times(beside, half)),
            z,
        ];
        Some(Self { axes })
    }

    /// A way after this rotation.
    #[must_use]
    pub fn turn(&self, way: Vector) -> Vector {
        let [x, y, z] = self.axes;
        plus(plus(times(x, way[0]), times(y, way[1])), times(z, way[2]))
    }

    /// The way that this rotation turns to `way`.
    #[must_use]
    pub fn turn_back(&self, way: Vector) -> Vector {
        self.axes.map(|axis| dot(axis, way))
    }

    /// This rotation, and then `next`.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        Self {
            axes: self.axes.map(|axis| next.turn(axis)),
        }
    }

    /// The angle between this rotation and another one, in radians.
    pub(super) fn angle_to(&self, other: &Self) -> f64 {
        let trace: f64 = (0..3)
            .map(|axis| dot(self.axes[axis], other.axes[axis]))
            .sum();
        ((trace - 1.0) / 2.0).clamp(-1.0, 1.0).acos()
    }

    /// The same as a quaternion: x, y, z and w.
    #[must_use]
    pub fn quaternion(&self) -> [f64; 4] {
        let [x, y, z] = self.axes;
        let part = |sum: f64| (1.0 + sum).max(0.0).sqrt() / 2.0;
        let sizes = [
            part(x[0] - y[1] - z[2]),
            part(y[1] - x[0] - z[2]),
            part(z[2] - x[0] - y[1]),
            part(x[0] + y[1] + z[2]),
        ];
        let [qx, qy, qz, qw] = sizes;
        // From the largest one, the others follow with their signs.
        let largest = sizes.into_iter().fold(0.0, f64::max);
        let by = 4.0 * largest;
        if qw >= largest {
            [
                (y[2] - z[1]) / by,
                (z[0] - x[2]) / by,
                (x[1] - y[0]) / by,
                qw,
            ]
        } else if qx >= largest {
            [
                qx,
                (x[1] + y[0]) / by,
                (z[0] + x[2]) / by,
                (y[2] - z[1]) / by,
            ]
        } else if qy >= largest {
            [
                (x[1] + y[0]) / by,
                qy,
                (y[2] + z[1]) / by,
                (z[0] - x[2]) / by,
            ]
        } else {
            [
                (z[0] + x[2]) / by,
                (y[2] + z[1]) / by,
                qz,
                (x[1] - y[0]) / by,
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(one: &[f64], other: &[f64]) -> bool {
        one.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-6)
    }

    #[test]
    fn a_square_is_mapped_to_its_corners() {
        let corners = [[3.0, 4.0], [20.0, 6.0], [25.0, 30.0], [1.0, 22.0]];
        let map = Homography::of_square(corners).unwrap();
        let square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]];
        for (from, to) in square.into_iter().zip(corners) {
            assert!(near(&map.at(from), &to));
        }
        assert_eq!(Homography::of_square([[1.0, 1.0]; 4]), None);
    }

    #[test]
    fn pixels_look_where_the_lens_bends_them_from() {
        for lens in [
            Lens::Straight,
            Lens::Polynomial([-0.3, 0.1, 0.001, -0.002, 0.01, 0.0, 0.0, 0.0]),
            Lens::Polynomial([0.2, 0.1, 0.0, 0.0, 0.01, 0.1, 0.05, 0.0]),
            Lens::Equidistant([0.05, -0.01, 0.002, 0.0]),
        ] {
            let optics = Optics {
                focal_px: [450.0, 460.0],
                centre_px: [320.0, 240.0],
                lens,
            };
            for direction in [[0.0, 0.0], [0.4, -0.2], [-0.5, 0.3]] {
                let [x, y] = lens.bend(direction);
                let px = [320.0 + 450.0 * x, 240.0 + 460.0 * y];
                let found = optics.direction(px).unwrap();
                assert!(near(&found, &direction), "{lens:?} {direction:?} {found:?}");
            }
        }
        // This lens shows nothing there.
        let optics = Optics {
            lens: Lens::Polynomial([-0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
            ..Optics::of_view(640, 480, 1.2)
        };
        assert_eq!(optics.direction([5_000.0, 0.0]), None);
    }

    #[test]
    fn smaller_pictures_have_the_same_view() {
        let optics = Optics::of_view(640, 480, 1.2);
        let half = Optics::of_view(320, 240, 1.2);
        assert!(near(&optics.smaller(2.0).centre_px, &half.centre_px));
        assert!(near(&optics.smaller(2.0).focal_px, &half.focal_px));
    }

    #[test]
    fn quaternions_turn_as_rotations_do() {
        for axis in [
            [0.0, 0.0, 0.0],
            [0.3, -0.2, 0.9],
            [3.0, 0.1, 0.0],
            [0.1, 3.0, 0.2],
            [0.0, 0.2, -3.0],
        ] {
            let rotation = Rotation::around(axis);
            let [x, y, z, w] = rotation.quaternion();
            let angle = norm(axis);
            assert!((w.abs() - (angle / 2.0).cos().abs()).abs() < 1e-9);
            let part = (angle / 2.0).sin() / angle.max(1e-9) * w.signum();
            assert!(near(&[x, y, z], &times(axis, part)), "{axis:?}");
            let there = rotation.turn([1.0, 2.0, 3.0]);
            assert!(near(&rotation.turn_back(there), &[1.0, 2.0, 3.0]));
        }
    }

    #[test]
    fn axes_are_made_square() {
        let rotation = Rotation::near([2.0, 0.1, 0.0], [0.1, 3.0, 0.0]).unwrap();
        assert!(near(&rotation.axes[2], &[0.0, 0.0, 1.0]));
        assert!(dot(rotation.axes[0], rotation.axes[1]).abs() < 1e-12);
        assert!((norm(rotation.axes[0]) - 1.0).abs() < 1e-12);
        assert_eq!(Rotation::near([1.0, 0.0, 0.0], [2.0, 0.0, 0.0]), None);
    }
}
