//! The shared values keep the paths that programs already use.

use amber_client::{Pose, Scan, WheelSpeeds};

#[test]
fn shared_values_are_the_same_types_under_all_paths() {
    let wheels: amber_client::proxy::WheelSpeeds = WheelSpeeds::STOP;
    assert_eq!(wheels, amber_values::WheelSpeeds::all(0));

    let scan: amber_client::scan::Scan = Scan::new(&[0.0], &[400], None).unwrap();
    let point: amber_client::Point = scan.points()[0];
    assert!(amber_client::scan::VALID_MM.contains(&point.distance_mm));
    let _: amber_client::scan::Point = point;
    let error: amber_client::ScanError = Scan::new(&[0.0], &[], None).unwrap_err();
    assert_eq!(
        error,
        amber_client::scan::ScanError::UnequalLengths {
            angles: 1,
            distances: 0
        }
    );

    let pose = Pose {
        x_cm: 1.0,
        y_cm: 2.0,
        z_cm: 240.0,
        heading_deg: 90.0,
        marker: 7,
        timestamp_ms: None,
        lost_ms: None,
    };
    let same: amber_client::proxy::Pose = pose;
    let _: amber_values::MarkerPose = same;
}
