//! Where the hand of an SO-101 is, and how its joints get it to a place. PURE.
//!
//! The geometry is that of the maker's description of the robot, in which each joint is 0 in the
//! middle of its range. Millimetres; x is ahead of the arm, y to its left, z up. Angles are in
//! radians here.
//!
//! The inverse is a closed form. The axes of the second to fourth joint are parallel, so in the plane
//! of the arm they are two links with a hand. Where the hand is in front of the last of them depends on
//! its roll alone, so that is looked up first.

use std::f64::consts::{FRAC_PI_2, PI};

/// The joints before the gripper, from the foot on.
pub(super) const JOINTS: usize = 5;

/// Where a joint is in the frame of the one before: its place, and its rotations about x, y and z.
/// Each turns about its own z.
const ORIGINS: [([f64; 3], [f64; 3]); JOINTS] = [
    ([38.84, 0.0, 62.4], [PI, 0.0, -PI]),
    ([-30.40, -18.28, -54.2], [-FRAC_PI_2, -FRAC_PI_2, 0.0]),
    ([-112.57, -28.0, 0.0], [0.0, 0.0, FRAC_PI_2]),
    ([-134.9, 5.2, 0.0], [0.0, 0.0, -FRAC_PI_2]),
    ([0.0, -61.1, 18.1], [FRAC_PI_2, 0.0487, PI]),
];
/// The point between the tips of the jaws, in the frame of the last joint.
const TIP: [f64; 3] = [-7.9, -0.218, -98.127];

/// More than this beyond what the links can reach is beyond it, and not an error of rounding.
const ROUNDING: f64 = 1e-9;

/// Where the hand is, and where it points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Hand {
    /// x, y and z.
    pub(super) at_mm: [f64; 3],
    /// 0 is ahead, a quarter turn is up.
    pub(super) pitch_rad: f64,
    /// The angle of the last joint.
    pub(super) roll_rad: f64,
}

/// Where the hand is at these angles.
pub(super) fn forward(joints: [f64; JOINTS]) -> Hand {
    let [_, lift, elbow, wrist, roll] = joints;
    Hand {
        at_mm: frames(joints)[JOINTS],
        pitch_rad: wrap(-(lift + elbow + wrist)),
        roll_rad: roll,
    }
}

/// All angles at which the hand is there: none, two or four. They may be beyond the limits of the
/// joints.
pub(super) fn inverse(hand: Hand) -> Vec<[f64; JOINTS]> {
    let Hand {
        at_mm: [x, y, z],
        pitch_rad: pitch,
        roll_rad: roll,
    } = hand;
    let [pan_at, lift_at, elbow_at, wrist_at, _, tip_at] = frames([0.0, 0.0, 0.0, 0.0, roll]);
    // The tip from the wrist while the hand points ahead, and the links.
    let [ahead, left, up] = [
        tip_at[0] - wrist_at[0],
        tip_at[1] - pan_at[1],
        tip_at[2] - wrist_at[2],
    ];
    let (upper, upper_at_zero) = link(lift_at, elbow_at);
    let (lower, lower_at_zero) = link(elbow_at, wrist_at);

    let (x, y) = (x - pan_at[0], y - pan_at[1]);
    let reach_squared = x * x + y * y - left * left;
    if !reach_squared.is_finite() || reach_squared < 0.0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    // The arm may also reach back over its foot.
    for reach in [reach_squared.sqrt(), -reach_squared.sqrt()] {
        let pan = left.atan2(reach) - y.atan2(x);
        let (sin, cos) = pitch.sin_cos();
        let out = reach - (lift_at[0] - pan_at[0]) - ahead * cos + up * sin;
        let above = z - lift_at[2] - ahead * sin - up * cos;
        let bend =
            (out * out + above * above - upper * upper - lower * lower) / (2.0 * upper * lower);
        if bend.abs() > 1.0 + ROUNDING {
            continue;
        }
        for bend in [1.0, -1.0].map(|side| side * bend.clamp(-1.0, 1.0).acos()) {
            let beside = (lower * bend.sin()).atan2(upper + lower * bend.cos());
            let upper_angle = above.atan2(out) - beside;
            let lift = upper_at_zero - upper_angle;
            let elbow = lower_at_zero - lift - upper_angle - bend;
            let wrist = -pitch - lift - elbow;
            found.push([wrap(pan), wrap(lift), wrap(elbow), wrap(wrist), roll]);
        }
    }
    found
}

/// The length of a link, and its angle above the horizontal, while all joints are 0.
fn link(from: [f64; 3], to: [f64; 3]) -> (f64, f64) {
    let (out, above) = (to[0] - from[0], to[2] - from[2]);
    (out.hypot(above), above.atan2(out))
}

/// Where each joint is at these angles, and at the end the hand.
fn frames(joints: [f64; JOINTS]) -> [[f64; 3]; JOINTS + 1] {
    let mut turned = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let mut at = [0.0; 3];
    let mut found = [[0.0; 3]; JOINTS + 1];
    for (k, ((place, [roll, pitch, yaw]), angle)) in ORIGINS.into_iter().zip(joints).enumerate() {
        at = sum(at, apply(turned, place));
        found[k] = at;
        for rotation in [about_z(yaw), about_y(pitch), about_x(roll), about_z(angle)] {
            turned = product(turned, rotation);
        }
    }
    found[JOINTS] = sum(at, apply(turned, TIP));
    found
}

type Matrix = [[f64; 3]; 3];

fn about_x(angle: f64) -> Matrix {
    let (sin, cos) = angle.sin_cos();
    [[1.0, 0.0, 0.0], [0.0, cos, -sin], [0.0, sin, cos]]
}

fn about_y(angle: f64) -> Matrix {
    let (sin, cos) = angle.sin_cos();
    [[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]]
}

fn about_z(angle: f64) -> Matrix {
    let (sin, cos) = angle.sin_cos();
    [[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]]
}

fn product(left: Matrix, right: Matrix) -> Matrix {
    left.map(|row| [0, 1, 2].map(|k| (0..3).map(|i| row[i] * right[i][k]).sum()))
}

fn apply(matrix: Matrix, vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
}

fn sum(left: [f64; 3], right: [f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|k| left[k] + right[k])
}

/// The same angle from minus half a turn to half a turn.
fn wrap(angle: f64) -> f64 {
    angle.sin().atan2(angle.cos())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the maker's description allows.
    const LIMITS: [(f64, f64); JOINTS] = [
        (-1.91986, 1.91986),
        (-1.74533, 1.74533),
        (-1.69, 1.69),
        (-1.65806, 1.65806),
        (-2.74385, 2.84121),
    ];

    fn distance_mm(one: [f64; 3], other: [f64; 3]) -> f64 {
        let squares = one.iter().zip(other).map(|(a, b)| (a - b) * (a - b));
        squares.sum::<f64>().sqrt()
    }

    /// A hundredth of a millimetre is the accuracy of the vectors.
    #[test]
    fn the_hand_is_where_other_programs_compute_it() {
        let deg = f64::to_radians;
        for (joints, expected) in [
            ([0.0; 5], [391.36, -0.01, 226.47]),
            ([deg(30.0), 0.0, 0.0, 0.0, 0.0], [344.13, -176.27, 226.47]),
            ([0.0, deg(45.0), 0.0, 0.0, 0.0], [374.70, -0.01, -33.49]),
            ([0.0, 0.0, deg(45.0), 0.0, 0.0], [303.30, -0.01, 19.28]),
            ([0.0, 0.0, 0.0, deg(45.0), 0.0], [339.14, -0.01, 116.19]),
            ([0.5, -0.6, 0.7, -0.4, 0.3], [282.60, -135.85, 256.82]),
        ] {
            let hand = forward(joints);
            let away_mm = distance_mm(hand.at_mm, expected);
            assert!(away_mm < 0.012, "{joints:?}: {:?}", hand.at_mm);
            let [_, lift, elbow, wrist, roll] = joints;
            let pitch = -(lift + elbow + wrist);
            assert!((hand.pitch_rad - pitch).abs() < 1e-12);
            assert!((hand.roll_rad - roll).abs() < 1e-12);
        }
    }

    #[test]
    fn the_joints_of_each_place_in_reach_are_found() {
        let mut random = fastrand::Rng::with_seed(44);
        for _ in 0..10_000 {
            let joints = LIMITS.map(|(least, most)| least + (most - least) * random.f64());
            let hand = forward(joints);
            let found = inverse(hand);
            let is_same = |other: &[f64; JOINTS]| {
                let pairs = other.iter().zip(joints);
                pairs.clone().all(|(a, b)| (a - b).abs() < 1e-5)
            };
            assert!(found.iter().any(is_same), "{joints:?}: {found:?}");
            for other in found {
                let away_mm = distance_mm(forward(other).at_mm, hand.at_mm);
                assert!(away_mm < 1e-6, "{joints:?}: {away_mm} mm");
            }
        }
    }

    #[test]
    fn what_is_too_far_away_has_no_joints() {
        let hand = |x, y, z| Hand {
            at_mm: [x, y, z],
            pitch_rad: 0.0,
            roll_rad: 0.0,
        };
        assert!(inverse(hand(600.0, 0.0, 200.0)).is_empty());
        assert!(inverse(hand(100.0, 0.0, 700.0)).is_empty());
        assert!(!inverse(hand(300.0, 0.0, 200.0)).is_empty());
        let other = Hand {
            at_mm: [f64::NAN; 3],
            ..hand(0.0, 0.0, 0.0)
        };
        assert!(inverse(other).is_empty());
    }
}
