//! Poses and times in the form of Foxglove. PURE.

use amber_map::{MapPose, Mounting, Point, Pose};
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
