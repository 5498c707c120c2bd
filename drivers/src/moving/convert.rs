//! Poses and motion sensors of messages in the plane frame of navigation. PURE.
//!
//! `amber_navigation` itself reads scans and wheel speeds.

use std::time::Duration;

use amber_map::Pose;
use amber_navigation::collision::{Felt, Imu, Touch};
use amber_navigation::pose_tracker::PoseReading;
use amber_proto::bumper::contact::Kind;
use amber_proto::bumper::{Contact, Contacts};
use amber_values::{ImuReading, MapPose};

/// A reading of the motion sensors; `None` if it lacks acceleration or turn rate.
pub(crate) fn imu(reading: &ImuReading) -> Option<Imu> {
    let [ahead_m_s2, left_m_s2, _] = reading.acceleration_m_s2()?;
    let [.., turn_rad_s] = reading.rate_rad_s()?;
    Some(Imu {
        turn_rad_s,
        ahead_m_s2,
        left_m_s2,
    })
}

/// The contacts that are pressed.
pub(crate) fn touches(contacts: &Contacts) -> Vec<Touch> {
    let pressed = contacts.contacts.iter().filter(|contact| contact.pressed());
    let touch = |contact: &Contact| Touch {
        felt: match contact.kind() {
            Kind::Bumper => Felt::Bumper,
            Kind::Cliff => Felt::Cliff,
            Kind::WheelDrop => Felt::WheelDrop,
        },
        angle_rad: contact.angle().to_radians(),
        arc_rad: contact.arc().to_radians(),
    };
    pressed.map(touch).collect()
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
    fn only_what_is_pressed_is_felt() {
        let contact = |kind: Kind, angle, pressed| Contact {
            kind: Some(kind.into()),
            angle: Some(angle),
            arc: Some(90.0),
            pressed: Some(pressed),
        };
        let contacts = Contacts {
            contacts: vec![
                contact(Kind::Bumper, 45.0, false),
                contact(Kind::Cliff, -90.0, true),
            ],
            time: None,
        };
        let touch = Touch {
            felt: Felt::Cliff,
            angle_rad: -FRAC_PI_2,
            arc_rad: FRAC_PI_2,
        };
        assert_eq!(touches(&contacts), [touch]);
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
