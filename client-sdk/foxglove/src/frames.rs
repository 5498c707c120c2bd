//! Poses and times in the form of Foxglove. PURE.

use amber_map::{MapPose, Mounting, Point, Pose};
use amber_proto::robot::Place;
use prost_types::Timestamp;

use crate::limits::{MAX_AGE_NS, MAX_EARLY_NS};
use crate::messages;

/// The frame of the map.
pub(crate) const MAP: &str = "map";
/// The frame of the robot: the centre between its wheels.
pub(crate) const ROBOT: &str = "base_link";

/// The frame of a laser scanner.
pub(crate) fn laser(device_id: i32) -> String {
    match device_id {
        0 => "laser".to_owned(),
        other => format!("laser_{other}"),
    }
}

/// The optical frame of a camera, with the name that it has for ROS.
pub(crate) fn camera(device_id: i32) -> String {
    match device_id {
        0 => "camera_optical_frame".to_owned(),
        other => format!("camera_{other}_optical_frame"),
    }
}

/// A time in nanoseconds since 1970.
pub(crate) fn timestamp(time_ns: u64) -> Option<Timestamp> {
    Some(Timestamp {
        seconds: (time_ns / 1_000_000_000) as i64,
        nanos: (time_ns % 1_000_000_000) as i32,
    })
}

/// The time of a measurement: that of the device, if its clock agrees with that of the receiver.
pub(crate) fn measured_ns(says_ms: Option<i64>, received_ns: u64) -> u64 {
    let says_ns = says_ms.and_then(|ms| u64::try_from(ms).ok()?.checked_mul(1_000_000));
    agreed_ns(says_ns, received_ns)
}

/// The same for a time in nanoseconds since 1970.
pub(crate) fn agreed_ns(says_ns: Option<u64>, received_ns: u64) -> u64 {
    let earliest = received_ns.saturating_sub(MAX_AGE_NS);
    let latest = received_ns.saturating_add(MAX_EARLY_NS);
    match says_ns {
        Some(says_ns) if (earliest..=latest).contains(&says_ns) => says_ns,
        _ => received_ns,
    }
}

/// A point at this height.
pub(crate) fn position(at: Point, z: f64) -> messages::Vector3 {
    messages::Vector3 {
        x: at.x,
        y: at.y,
        z,
    }
}

/// The rotation of a part.
pub(crate) fn rotation(place: impl Into<Mounting>) -> messages::Quaternion {
    let [x, y, z, w] = place.into().quaternion();
    messages::Quaternion { x, y, z, w }
}

/// The rotation from the robot to the optical frame of a camera at this place: x to the right in the
/// picture, y down, z into the scene.
pub(crate) fn optical(place: &Place) -> messages::Quaternion {
    // Around x, y and z of the robot: a turn to the left is positive, and so is one downwards.
    let roll = match place.upside_down() {
        true => std::f64::consts::PI,
        false => 0.0,
    };
    let around = |axis: usize, angle: f64| {
        let (sin, cos) = (angle / 2.0).sin_cos();
        let mut turn = [0.0, 0.0, 0.0, cos];
        turn[axis] = sin;
        turn
    };
    let body = product(
        product(around(2, place.yaw()), around(1, place.pitch())),
        around(0, roll),
    );
    let [x, y, z, w] = product(body, LOOKING_AHEAD);
    messages::Quaternion { x, y, z, w }
}

/// The rotation from x ahead, y left and z up to x right, y down and z ahead.
const LOOKING_AHEAD: [f64; 4] = [-0.5, 0.5, -0.5, 0.5];

/// The rotation `a`, and within its frame the rotation `b`: x, y, z, w.
fn product(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    let [ax, ay, az, aw] = a;
    let [bx, by, bz, bw] = b;
    [
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    ]
}

/// A pose at this height.
pub(crate) fn pose(pose: Pose, z: f64) -> Option<messages::Pose> {
    Some(messages::Pose {
        position: Some(position(pose.at, z)),
        orientation: Some(rotation(pose)),
    })
}

/// A point on the map in the frame [`MAP`].
pub(crate) fn on_map(x_m: f64, y_m: f64) -> Point {
    Pose::from(MapPose::new(x_m, y_m, 0.0)).at
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    #[test]
    fn y_is_up_and_angles_are_counter_clockwise() {
        // The robot looks down on the map of Amber.
        let pose = pose(MapPose::new(1.0, 2.0, FRAC_PI_2).into(), 0.0).unwrap();
        let position = pose.position.unwrap();
        assert_eq!((position.x, position.y), (1.0, -2.0));
        let turn = pose.orientation.unwrap();
        let heading = 2.0 * turn.z.atan2(turn.w);
        assert!((heading + FRAC_PI_2).abs() < 1e-9);
        assert!((turn.z.hypot(turn.w) - 1.0).abs() < 1e-9);
    }

    /// Where an axis of the picture points on the robot.
    fn seen(place: &Place, axis: [f64; 3]) -> [f64; 3] {
        let messages::Quaternion { x, y, z, w } = optical(place);
        let [a, b, c] = axis;
        let turned = product(product([x, y, z, w], [a, b, c, 0.0]), [-x, -y, -z, w]);
        [turned[0], turned[1], turned[2]]
    }

    #[test]
    fn a_camera_looks_where_its_place_says() {
        let place = |yaw, pitch, upside_down| Place {
            yaw: Some(yaw),
            pitch: Some(pitch),
            upside_down: Some(upside_down),
            ..Place::default()
        };
        let level = optical(&Place::default());
        let numbers = [level.x, level.y, level.z, level.w];
        assert_eq!(numbers, [-0.5, 0.5, -0.5, 0.5]);
        // Right in the picture, down in the picture, and into the scene, as x ahead, y left, z up.
        let quarter = FRAC_PI_2;
        for (place, right, down, ahead) in [
            (
                place(0.0, 0.0, false),
                [0.0, -1.0, 0.0],
                [0.0, 0.0, -1.0],
                [1.0, 0.0, 0.0],
            ),
            // To the left of the robot.
            (
                place(quarter, 0.0, false),
                [1.0, 0.0, 0.0],
                [0.0, 0.0, -1.0],
                [0.0, 1.0, 0.0],
            ),
            // To the floor.
            (
                place(0.0, quarter, false),
                [0.0, -1.0, 0.0],
                [-1.0, 0.0, 0.0],
                [0.0, 0.0, -1.0],
            ),
            (
                place(0.0, 0.0, true),
                [0.0, 1.0, 0.0],
                [0.0, 0.0, 1.0],
                [1.0, 0.0, 0.0],
            ),
            // To the left, and from there to the floor.
            (
                place(quarter, quarter, false),
                [1.0, 0.0, 0.0],
                [0.0, -1.0, 0.0],
                [0.0, 0.0, -1.0],
            ),
        ] {
            let axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
            for (axis, expected) in axes.into_iter().zip([right, down, ahead]) {
                let found = seen(&place, axis);
                let is_near = |(a, b): (&f64, f64)| (a - b).abs() < 1e-9;
                assert!(
                    found.iter().zip(expected).all(is_near),
                    "{place:?}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn the_time_of_a_device_counts_only_if_its_clock_agrees() {
        let received_ns = 1_700_000_000_500_000_000;
        for (says_ms, expected) in [
            (Some(1_700_000_000_450), 1_700_000_000_450_000_000),
            (Some(1_700_000_000_504), 1_700_000_000_504_000_000),
            (None, received_ns),
            (Some(1_700_000_000_600), received_ns),
            (Some(1_699_999_990_000), received_ns),
            (Some(-5), received_ns),
            (Some(0), received_ns),
            (Some(i64::MAX), received_ns),
        ] {
            assert_eq!(measured_ns(says_ms, received_ns), expected, "{says_ms:?}");
        }
        assert_eq!(
            timestamp(1_700_000_000_450_000_000),
            Some(Timestamp {
                seconds: 1_700_000_000,
                nanos: 450_000_000
            })
        );
    }
}
