//! The position on Earth as a message of ROS 2. PURE.

use amber_proto::gps::Fix;
use amber_ros2::messages::{Header, NavSatFix, NavSatStatus};

use super::convert::Frames;

/// The service of GPS. Receivers use the satellites of all systems.
const GPS: u16 = 1;

/// A position on Earth, or that there is none. What is unknown is not a number.
#[must_use]
pub fn nav_sat_fix(fix: &Fix, frames: &Frames, stamp_ns: u64) -> NavSatFix {
    let place = amber_values::NavSatFix::from(fix);
    NavSatFix {
        header: Header::new(stamp_ns, &frames.base),
        status: NavSatStatus {
            status: place.status,
            service: GPS,
        },
        latitude: place.latitude_deg,
        longitude: place.longitude_deg,
        altitude: place.altitude_m,
        position_covariance: place.covariance_m2,
        position_covariance_type: place.covariance_kind,
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::gps::fix::Kind;

    use super::*;

    #[test]
    fn a_position_is_that_of_the_robot() {
        let fix = Fix {
            kind: Some(Kind::ThreeD.into()),
            latitude: Some(-33.5),
            longitude: Some(-70.25),
            height: Some(80.0),
            ..Fix::default()
        };
        let message = nav_sat_fix(&fix, &Frames::with_prefix("r1/"), 1_000_000_002);
        assert_eq!(message.header.frame_id, "r1/base_link");
        assert_eq!(message.header.stamp.nanosec, 2);
        assert_eq!(
            (message.status.status, message.position_covariance_type),
            (0, 0)
        );
        assert_eq!((message.latitude, message.longitude), (-33.5, -70.25));
        assert_eq!(message.altitude, 80.0);
        let none = nav_sat_fix(&Fix::default(), &Frames::with_prefix(""), 0);
        assert!(none.status.status == -1 && none.latitude.is_nan());
    }
}
