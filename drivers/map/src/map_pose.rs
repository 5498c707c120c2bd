//! Poses in the map frame, and in the plane. PURE.

use amber_values::MapPose;

use crate::geometry::{Pose, wrap};

impl From<MapPose> for Pose {
    fn from(pose: MapPose) -> Self {
        Self::new(pose.x_m, -pose.y_m, -pose.heading_rad)
    }
}

/// The heading is in (-pi, pi].
impl From<Pose> for MapPose {
    fn from(pose: Pose) -> Self {
        // A difference, so that 0 stays positive.
        Self::new(pose.at.x, 0.0 - pose.at.y, wrap(-pose.heading))
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, PI};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn in_the_map_frame_y_points_down_and_angles_are_clockwise() {
        let pose = Pose::from(MapPose::new(1.0, 2.0, FRAC_PI_2));
        assert_eq!(pose, Pose::new(1.0, -2.0, -FRAC_PI_2));
        let origin = MapPose::from(Pose::default());
        assert!(origin.y_m.is_sign_positive() && origin.heading_rad == 0.0);
        let turned = MapPose::from(Pose::new(0.0, 0.0, 5.0 * FRAC_PI_2));
        assert!((turned.heading_rad + FRAC_PI_2).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn a_pose_survives_both_conversions(x in -9.0..9.0, y in -9.0..9.0, heading in -PI..PI) {
            let pose = MapPose::new(x, y, heading);
            let back = MapPose::from(Pose::from(pose));
            prop_assert_eq!((back.x_m, back.y_m), (x, y));
            prop_assert!((back.heading_rad - heading).abs() < 1e-9);
        }
    }
}
