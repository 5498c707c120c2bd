//! Positions on Earth as other robot systems have them. PURE.

use amber_proto::gps::Fix;
use amber_proto::gps::fix::{Correction, Kind};

/// A position on Earth in the terms of `sensor_msgs/NavSatFix` of ROS, which are those of
/// `foxglove.LocationFix`. What is unknown is not a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NavSatFix {
    /// The status of ROS: -1 no position, 0 a position, 1 with corrections, 2 with those of a station
    /// (RTK).
    pub status: i8,
    /// Positive in the north.
    pub latitude_deg: f64,
    /// Positive in the east.
    pub longitude_deg: f64,
    /// Above the ellipsoid WGS 84. If the receiver does not tell how far that is below the sea: above
    /// the mean sea level.
    pub altitude_m: f64,
    /// The covariance to the east, to the north and up, in square metres: three rows.
    pub covariance_m2: [f64; 9],
    /// How well it is known: 0 not at all, 1 estimated, 2 its diagonal.
    pub covariance_kind: u8,
}

impl NavSatFix {
    /// Whether there is a position.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.status >= 0
    }
}

impl From<&Fix> for NavSatFix {
    fn from(fix: &Fix) -> Self {
        let place = fix.latitude.zip(fix.longitude);
        let place = place.filter(|_| fix.kind() != Kind::None);
        let (latitude_deg, longitude_deg) = place.unwrap_or((f64::NAN, f64::NAN));
        let mut covariance_m2 = [0.0; 9];
        let mut covariance_kind = 0;
        if let Some(horizontal_m) = fix.horizontal_accuracy.filter(|_| place.is_some()) {
            // That of both directions together.
            let variance_m2 = horizontal_m.powi(2) / 2.0;
            // Of a fix in two dimensions, nothing is known upwards.
            let vertical_m = fix.vertical_accuracy.unwrap_or(UNKNOWN_M);
            [covariance_m2[0], covariance_m2[4]] = [variance_m2; 2];
            covariance_m2[8] = vertical_m.powi(2);
            covariance_kind = if fix.accuracy_is_estimated() { 1 } else { 2 };
        }
        Self {
            status: match fix.correction() {
                _ if place.is_none() => -1,
                Correction::NoCorrection => 0,
                Correction::Differential => 1,
                Correction::RtkFloat | Correction::RtkFixed => 2,
            },
            latitude_deg,
            longitude_deg,
            altitude_m: fix.height.or(fix.altitude).unwrap_or(f64::NAN),
            covariance_m2,
            covariance_kind,
        }
    }
}

/// The standard deviation of an unknown altitude.
const UNKNOWN_M: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_position_nothing_is_a_number() {
        let none = Fix {
            kind: Some(Kind::None.into()),
            satellites: Some(3),
            ..Fix::default()
        };
        let found = NavSatFix::from(&none);
        assert!(!found.is_known() && found.latitude_deg.is_nan());
        assert!(found.longitude_deg.is_nan() && found.altitude_m.is_nan());
        assert_eq!((found.status, found.covariance_kind), (-1, 0));
        // A driver of someone else that leaves an old place there.
        let wrong = Fix {
            latitude: Some(0.0),
            longitude: Some(0.0),
            ..none
        };
        assert!(NavSatFix::from(&wrong).latitude_deg.is_nan());
    }

    #[test]
    fn a_position_has_its_height_and_its_errors() {
        let mut fix = Fix {
            kind: Some(Kind::ThreeD.into()),
            latitude: Some(-33.5),
            longitude: Some(-70.25),
            altitude: Some(100.0),
            height: Some(80.0),
            horizontal_accuracy: Some(2.0),
            vertical_accuracy: Some(3.0),
            accuracy_is_estimated: Some(true),
            correction: Some(Correction::RtkFixed.into()),
            ..Fix::default()
        };
        let found = NavSatFix::from(&fix);
        let expected = NavSatFix {
            status: 2,
            latitude_deg: -33.5,
            longitude_deg: -70.25,
            altitude_m: 80.0,
            covariance_m2: [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 9.0],
            covariance_kind: 1,
        };
        assert_eq!(found, expected);
        assert!(found.is_known());
        fix.accuracy_is_estimated = Some(false);
        (fix.height, fix.correction) = (None, None);
        let found = NavSatFix::from(&fix);
        assert_eq!((found.altitude_m, found.status), (100.0, 0));
        assert_eq!(found.covariance_kind, 2);
        (fix.altitude, fix.vertical_accuracy) = (None, None);
        let found = NavSatFix::from(&fix);
        assert!(found.altitude_m.is_nan() && found.covariance_m2[8] == 1e6);
        fix.horizontal_accuracy = None;
        let found = NavSatFix::from(&fix);
        assert_eq!((found.covariance_kind, found.covariance_m2), (0, [0.0; 9]));
    }
}
