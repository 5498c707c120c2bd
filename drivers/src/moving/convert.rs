//! Poses and motion sensors of messages in the plane frame of navigation. PURE.
//!
//! `amber_navigation` itself reads scans and wheel speeds.

use std::time::Duration;

use amber_map::Pose;
use amber_navigation::collision::Imu;
use amber_navigation::pose_tracker::PoseReading;
use amber_values::{ImuReading, MapPose};

/// Standard gravity, of which the sensors report thousandths.
const GRAVITY_M_S2: f64 = 9.806_65;

/// A reading of the motion sensors; `None` if it lacks acceleration or turn rate.
pub(crate) fn imu(reading: &ImuReading) -> Option<Imu> {
    let (acceleration, rate) = (reading.acceleration_mg?, reading.rate_deg_s?);
    let m_s2 = |mg: f64| mg / 1000.0 * GRAVITY_M_S2;
    Some(Imu {
        turn_rad_s: rate.z.to_radians(),
        ahead_m_s2: m_s2(acceleration.y),
        // The sensor has x to the right.
        left_m_s2: -m_s2(acceleration.x),
    })
}

/// A pose of the location driver; `None` if it does not know the pose.
pub(crate) fn pose(pose: MapPose, time: Duration) -> Option<PoseReading> {
    pose.is_known().then(|| PoseReading {
        time,
        pose: Pose::from(pose),
        quality: pose.quality,
    })
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    #[test]
    fn a_pose_has_y_up_and_zeros_are_no_pose() {
        let time = Duration::from_secs(1);
        let read = pose(MapPose::new(1.0, 2.0, 0.5), time).unwrap();
        assert_eq!(read.pose, Pose::new(1.0, -2.0, -0.5));
        assert_eq!(pose(MapPose::default(), time), None);
    }

    #[test]
    fn the_sensors_have_x_to_the_right() {
        use amber_values::Vector;
        let reading = ImuReading {
            acceleration_mg: Some(Vector {
                x: 100.0,
                y: 200.0,
                z: 1000.0,
            }),
            rate_deg_s: Some(Vector {
                x: 0.0,
                y: 0.0,
                z: 90.0,
            }),
            ..ImuReading::default()
        };
        let imu = super::imu(&reading).unwrap();
        assert!((imu.left_m_s2 + 0.980_665).abs() < 1e-9, "{imu:?}");
        assert!((imu.ahead_m_s2 - 1.961_33).abs() < 1e-9);
        assert!((imu.turn_rad_s - FRAC_PI_2).abs() < 1e-9);
    }
}
