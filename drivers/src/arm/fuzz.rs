//! Fuzz targets: calibration files. PURE.

use super::calibration;
use super::joints::{Arm, Model, Stored};
use crate::fuzz::{Input, Target};

/// All of them.
pub const TARGETS: &[Target] = &[("arm_calibration", file)];

/// The text of a file, for an arm of any model.
fn file(data: &[u8]) {
    let mut input = Input(data);
    let model = match input.byte() % 3 {
        0 => None,
        1 => Some(Model::So101),
        _ => Some(Model::Koch),
    };
    let angle_deg = f64::from(input.number()) / 100.0;
    let text = String::from_utf8_lossy(input.0);
    let Ok(calibration) = calibration::read(&text) else {
        return;
    };
    let Ok(arm) = Arm::new(model, Some(calibration)) else {
        return;
    };
    assert!(arm.is_calibrated());
    let stored = Stored {
        limits_deg: Some((0.0, 360.0)),
        homing_offset_deg: Some(angle_deg),
    };
    for joint in &arm.joints {
        let position = joint.position(angle_deg);
        let back = position.and_then(|position| joint.angle_deg(position));
        assert!(position.is_some_and(f64::is_finite));
        assert!(back.is_some_and(f64::is_finite));
        assert!(joint.per_degree() > 0.0);
        if let Some((least, most)) = joint.limits(stored) {
            assert!(least <= most);
        }
        let _ = joint.mismatch(stored);
    }
    let positions: Vec<_> = arm.joints.iter().map(|it| it.position(angle_deg)).collect();
    let _ = arm.hand(&positions);
}
