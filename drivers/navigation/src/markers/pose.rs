//! Where a marker is, relative to the camera. PURE.
//!
//! From afar, a marker that is turned a little to the left looks almost as one that is turned a little to
//! the right. So there are two poses, and often only the better one explains the corners.

use super::fit::{N, Step, fit};
use super::picture::{Px, area, length, minus};
use super::projection::{
    Homography, Optics, Rotation, Vector, across, dot, norm, plus, seen, times,
};

/// The corners of a marker of side 1, as they are seen clockwise from its upper left one: x to its right,
/// y up.
pub(super) const CORNERS: [Px; 4] = [[-0.5, 0.5], [0.5, 0.5], [0.5, -0.5], [-0.5, -0.5]];

/// The other pose is possible as well if its error is not larger than this times that of the better one.
/// Errors below the second number, in pixels, are noise.
const ALIKE: f64 = 2.0;
const NOISE_PX: f64 = 0.2;
/// Poses that differ by less are the same, in radians.
const SAME_RAD: f64 = 0.09;

/// The pose of a marker in the optical frame of a camera: x to the right, y down, z ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarkerPose {
    /// Its centre, in metres.
    pub at: Vector,
    /// From its own axes: x to its right as one sees it, y up, z out of it.
    pub rotation: Rotation,
    /// The distance in pixels between corners as they should be and as they are: the root of the mean
    /// square.
    pub error_px: f64,
}

/// The poses that a marker may have, the better one first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Poses {
    /// The one that explains the corners best.
    pub best: MarkerPose,
    /// The other one, if there is one.
    pub other: Option<MarkerPose>,
}

impl Poses {
    /// Whether the corners do not tell which of both it is.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        let best_px = self.best.error_px.max(NOISE_PX);
        (self.other).is_some_and(|other| other.error_px < ALIKE * best_px)
    }

    /// Both.
    pub(super) fn all(&self) -> impl Iterator<Item = MarkerPose> {
        [Some(self.best), self.other].into_iter().flatten()
    }
}

/// The poses of a marker with this side and these corners. `None` if it cannot be seen like this.
#[must_use]
pub fn poses(optics: &Optics, corners: &[Px; 4], side_m: f64) -> Option<Poses> {
    let mut directions = [[0.0; 2]; 4];
    for (direction, corner) in directions.iter_mut().zip(corners) {
        *direction = optics.direction(*corner)?;
    }
    if area(&directions) <= 0.0 {
        return None;
    }
    let first = refined(optics, &directions, side_m, rough(&directions, side_m)?)?;
    let second = refined(optics, &directions, side_m, flipped(&first));
    let second = second.filter(|it| it.rotation.angle_to(&first.rotation) > SAME_RAD);
    Some(match second {
        Some(second) if second.error_px < first.error_px => Poses {
            best: second,
            other: Some(first),
        },
        other => Poses { best: first, other },
    })
}

/// A first estimate.
fn rough(directions: &[Px; 4], side_m: f64) -> Option<MarkerPose> {
    let square = Homography::of_square(*directions)?;
    let (right, down) = (square.column(0), square.column(1));
    let scale = side_m / (norm(right) * norm(down)).sqrt();
    let rotation = Rotation::near(right, times(down, -1.0))?;
    let centre = plus(plus(times(right, 0.5), times(down, 0.5)), square.column(2));
    let at = times(centre, scale);
    (at[2] > 0.0 && scale.is_finite()).then_some(MarkerPose {
        at,
        rotation,
        error_px: f64::INFINITY,
    })
}

/// The pose that looks alike: turned to the other side of the line of sight.
fn flipped(pose: &MarkerPose) -> MarkerPose {
    let normal = pose.rotation.turn([0.0, 0.0, 1.0]);
    let back = times(pose.at, -1.0 / norm(pose.at));
    let axis = across(normal, back);
    let angle = norm(axis).atan2(dot(normal, back));
    let turn = match norm(axis) {
        long if long > 1e-6 => times(axis, 2.0 * angle / long),
        // It looks at the camera.
        _ => [0.0; 3],
    };
    MarkerPose {
        rotation: pose.rotation.then(&Rotation::around(turn)),
        ..*pose
    }
}

fn refined(
    optics: &Optics,
    directions: &[Px; 4],
    side_m: f64,
    start: MarkerPose,
) -> Option<MarkerPose> {
    let scale = optics.px_per_rad();
    let residuals = |pose: &MarkerPose| -> Vec<f64> {
        let pairs = CORNERS.iter().zip(directions);
        let errors = pairs.flat_map(|([x, y], direction)| {
            let corner = pose.rotation.turn([x * side_m, y * side_m, 0.0]);
            minus(seen(plus(corner, pose.at)), *direction)
        });
        errors.map(|it| it * scale).collect()
    };
    let changed = |pose: &MarkerPose, step: &Step| {
        let [x, y, z, a, b, c] = *step;
        MarkerPose {
            at: plus(pose.at, [x, y, z]),
            rotation: pose.rotation.then(&Rotation::around([a, b, c])),
            ..*pose
        }
    };
    let found = fit(start, residuals, changed);
    let pose = MarkerPose {
        error_px: (found.cost / 4.0).sqrt(),
        ..found.best
    };
    let looks_here = dot(pose.rotation.turn([0.0, 0.0, 1.0]), pose.at) < 0.0;
    let is_usable = pose.error_px.is_finite() && pose.at[2] > 0.0 && looks_here;
    is_usable.then_some(pose)
}

/// The mean length of the sides, in pixels.
#[must_use]
pub fn side_px(corners: &[Px; 4]) -> f64 {
    let sides = (0..4).map(|index| length(minus(corners[(index + 1) % 4], corners[index])));
    sides.sum::<f64>() / 4.0
}

const _: () = assert!(N == 6, "a place and a rotation");

#[cfg(test)]
mod tests {
    use super::*;

    const SIDE_M: f64 = 0.25;

    fn optics() -> Optics {
        Optics::of_view(640, 480, 70f64.to_radians())
    }

    /// The pixels of the corners of a marker at a place, turned around an axis.
    fn corners(at: Vector, turn: Vector) -> [Px; 4] {
        let optics = optics();
        let facing = Rotation::around([std::f64::consts::PI, 0.0, 0.0]);
        let rotation = facing.then(&Rotation::around(turn));
        CORNERS.map(|[x, y]| {
            let corner = plus(at, rotation.turn([x * SIDE_M, y * SIDE_M, 0.0]));
            let [x, y] = seen(corner);
            [
                optics.centre_px[0] + x * optics.focal_px[0],
                optics.centre_px[1] + y * optics.focal_px[1],
            ]
        })
    }

    #[test]
    fn poses_are_found_for_any_place_and_turn() {
        for at in [[0.0, 0.0, 1.0], [0.5, -0.2, 2.0], [-1.0, 0.3, 3.0]] {
            for turn in [
                [0.0, 0.0, 0.0],
                [0.0, 0.9, 0.0],
                [0.4, -0.5, 0.0],
                [0.0, 0.3, 2.5],
            ] {
                let poses = poses(&optics(), &corners(at, turn), SIDE_M).unwrap();
                let all: Vec<_> = poses.all().collect();
                let is_right = |pose: &MarkerPose| {
                    let facing = Rotation::around([std::f64::consts::PI, 0.0, 0.0]);
                    let expected = facing.then(&Rotation::around(turn));
                    norm(plus(pose.at, times(at, -1.0))) < 1e-3
                        && pose.rotation.angle_to(&expected) < 1e-2
                };
                assert!(all.iter().any(is_right), "{at:?} {turn:?} {all:?}");
                assert!(poses.best.error_px < 0.01, "{poses:?}");
            }
        }
    }

    #[test]
    fn far_markers_are_ambiguous_and_near_ones_are_not() {
        let far = poses(
            &optics(),
            &corners([0.0, 0.0, 6.0], [0.0, 0.3, 0.0]),
            SIDE_M,
        )
        .unwrap();
        assert!(far.is_ambiguous(), "{far:?}");
        let near = poses(
            &optics(),
            &corners([0.0, 0.0, 0.6], [0.0, 0.6, 0.0]),
            SIDE_M,
        )
        .unwrap();
        assert!(!near.is_ambiguous(), "{near:?}");
        let front = poses(&optics(), &corners([0.0, 0.0, 0.6], [0.0; 3]), SIDE_M).unwrap();
        assert_eq!(front.other, None);
    }

    #[test]
    fn impossible_corners_have_no_pose() {
        let mut mirrored = corners([0.0, 0.0, 1.0], [0.0; 3]);
        mirrored.reverse();
        for corners in [mirrored, [[5.0, 5.0]; 4], [[f64::NAN; 2]; 4]] {
            assert_eq!(poses(&optics(), &corners, SIDE_M), None);
        }
    }
}
