//! The calibration of an arm, in the file of LeRobot. PURE.
//!
//! ```json
//! {
//!     "shoulder_pan": {"id": 1, "drive_mode": 0, "homing_offset": 530, "range_min": 866, "range_max": 3231}
//! }
//! ```
//!
//! LeRobot counts in steps, of which a turn has 4096. The range is what a joint can do; its middle is 0
//! degrees. The homing offset is also stored in the servo, which adds or subtracts it by itself.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// Steps in a turn.
const STEPS: f64 = 4096.0;
/// What LeRobot divides by: the largest step.
const LAST_STEP: f64 = 4095.0;
/// The id of all servos together, and one that some makers reserve.
const MAX_ID: u8 = 252;
/// The most joints of a file, which are more than a bus has servos.
const MAX_JOINTS: usize = 64;
/// Names are shown, and sent with each position.
const MAX_NAME: usize = 40;
/// Servos that count several turns have larger numbers than others.
const MAX_STEPS: i32 = 1_048_575;

/// What LeRobot knows of a joint.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct JointCalibration {
    /// The id of its servo.
    pub(super) id: u8,
    /// 1: the percent of a gripper are counted the other way round.
    drive_mode: u8,
    /// As it is stored in the servo, in steps.
    pub(super) homing_offset: i32,
    range_min: i32,
    range_max: i32,
}

/// The reason why a file is no calibration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CalibrationError {
    /// It is no JSON, or has other keys.
    #[error("{0}")]
    Syntax(#[from] serde_json::Error),
    /// It contradicts itself.
    #[error("{0}")]
    Contents(String),
}

/// Reads the file. The joints are in the order of their ids.
///
/// # Errors
/// It is no calibration.
pub(super) fn read(text: &str) -> Result<Vec<(String, JointCalibration)>, CalibrationError> {
    let joints: BTreeMap<String, JointCalibration> = serde_json::from_str(text)?;
    let wrong = |problem: String| Err(CalibrationError::Contents(problem));
    if joints.is_empty() || joints.len() > MAX_JOINTS {
        return wrong(format!(
            "it has {} joints, not 1 to {MAX_JOINTS}",
            joints.len()
        ));
    }
    let mut ids = BTreeSet::new();
    for (name, joint) in &joints {
        let is_printable = name.chars().all(|it| it.is_ascii_graphic());
        if name.is_empty() || name.len() > MAX_NAME || !is_printable {
            return wrong(format!("{name:?} is no name of a joint"));
        }
        let JointCalibration {
            id,
            drive_mode,
            homing_offset,
            range_min,
            range_max,
        } = *joint;
        if id > MAX_ID {
            return wrong(format!("{name}: the id {id} is not within 0 to {MAX_ID}"));
        }
        if !ids.insert(id) {
            return wrong(format!("{name}: another joint has the id {id}, too"));
        }
        if drive_mode > 1 {
            return wrong(format!(
                "{name}: the drive mode {drive_mode} is neither 0 nor 1"
            ));
        }
        let steps = [homing_offset, range_min, range_max];
        if let Some(steps) = steps.into_iter().find(|it| !is_within(*it)) {
            return wrong(format!("{name}: {steps} steps are too many"));
        }
        if range_min >= range_max {
            return wrong(format!(
                "{name}: its range from {range_min} to {range_max} is empty"
            ));
        }
    }
    let mut joints: Vec<_> = joints.into_iter().collect();
    joints.sort_by_key(|(_, joint)| joint.id);
    Ok(joints)
}

fn is_within(steps: i32) -> bool {
    (-MAX_STEPS..=MAX_STEPS).contains(&steps)
}

/// The step of a servo at its own angle, of which 180 degrees are the middle of a turn.
pub(super) fn step(servo_deg: f64) -> f64 {
    servo_deg * STEPS / 360.0
}

/// The same the other way round.
pub(super) fn servo_deg(step: f64) -> f64 {
    step * 360.0 / STEPS
}

impl JointCalibration {
    /// The position of a joint in degrees.
    pub(super) fn degrees(&self, step: f64) -> f64 {
        (step - self.middle()) * 360.0 / LAST_STEP
    }

    /// The same the other way round.
    pub(super) fn step_of_degrees(&self, degrees: f64) -> f64 {
        degrees * LAST_STEP / 360.0 + self.middle()
    }

    /// The position of a gripper in percent. A step beyond the range counts as its end. `may_reverse`
    /// says whether the drive mode is for this, as for servos of Feetech, and not for the servo itself.
    pub(super) fn percent(&self, step: f64, may_reverse: bool) -> f64 {
        let step = step.clamp(self.range_min.into(), self.range_max.into());
        let percent = 100.0 * (step - f64::from(self.range_min)) / self.width();
        match may_reverse && self.drive_mode == 1 {
            true => 100.0 - percent,
            false => percent,
        }
    }

    /// The same the other way round.
    pub(super) fn step_of_percent(&self, percent: f64, may_reverse: bool) -> f64 {
        let percent = match may_reverse && self.drive_mode == 1 {
            true => 100.0 - percent,
            false => percent,
        };
        f64::from(self.range_min) + self.width() * percent / 100.0
    }

    /// The first and the last step that it can reach.
    pub(super) fn range(&self) -> (f64, f64) {
        (self.range_min.into(), self.range_max.into())
    }

    fn middle(&self) -> f64 {
        f64::midpoint(self.range_min.into(), self.range_max.into())
    }

    fn width(&self) -> f64 {
        f64::from(self.range_max - self.range_min)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// That of a real SO-101.
    pub(in crate::arm) const SO101: &str = r#"{
    "shoulder_pan": {"id": 1, "drive_mode": 0, "homing_offset": 530, "range_min": 866, "range_max": 3231},
    "shoulder_lift": {"id": 2, "drive_mode": 0, "homing_offset": -369, "range_min": 896, "range_max": 3211},
    "elbow_flex": {"id": 3, "drive_mode": 0, "homing_offset": -98, "range_min": 866, "range_max": 3066},
    "wrist_flex": {"id": 4, "drive_mode": 0, "homing_offset": 725, "range_min": 1039, "range_max": 3121},
    "wrist_roll": {"id": 5, "drive_mode": 0, "homing_offset": 1704, "range_min": 123, "range_max": 3955},
    "gripper": {"id": 6, "drive_mode": 0, "homing_offset": 1573, "range_min": 2027, "range_max": 3483}
}"#;

    fn joint(drive_mode: u8, range_min: i32, range_max: i32) -> JointCalibration {
        JointCalibration {
            id: 1,
            drive_mode,
            homing_offset: 0,
            range_min,
            range_max,
        }
    }

    #[test]
    fn a_file_of_lerobot_is_read() {
        let joints = read(SO101).unwrap();
        let names: Vec<_> = joints.iter().map(|(name, _)| &**name).collect();
        let expected = [
            "shoulder_pan",
            "shoulder_lift",
            "elbow_flex",
            "wrist_flex",
            "wrist_roll",
            "gripper",
        ];
        assert_eq!(names, expected, "in the order of the ids");
        assert_eq!(joints[1].1.homing_offset, -369);
        assert_eq!(joints[5].1.range(), (2027.0, 3483.0));
    }

    #[test]
    fn positions_are_those_of_lerobot() {
        let usual = joint(0, 800, 3200);
        assert!((usual.degrees(2048.0) - 4.22).abs() < 0.005);
        assert!((usual.percent(2048.0, true) - 52.0).abs() < 1e-9);
        let reversed = joint(1, 800, 3200);
        assert!((reversed.percent(2048.0, true) - 48.0).abs() < 1e-9);
        assert!((reversed.percent(2048.0, false) - 52.0).abs() < 1e-9);
        assert!(
            (reversed.degrees(2048.0) - 4.22).abs() < 0.005,
            "only of percent"
        );
        for (step, percent) in [(0.0, 0.0), (4095.0, 100.0)] {
            assert!((usual.percent(step, true) - percent).abs() < 1e-9, "{step}");
        }
    }

    /// LeRobot takes the whole step below; a servo takes the nearest one.
    #[test]
    fn a_position_becomes_the_step_that_it_was() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..1_000 {
            let (min, max) = (random.i32(0..2_000), random.i32(2_100..4_096));
            let joint = joint(random.u8(0..2), min, max);
            let step = random.i32(0..4_096);
            let deg = joint.degrees(step.into());
            // In whole numbers: twice the way from the middle.
            let lerobot = f64::from(2 * step - min - max) * 180.0 / 4095.0;
            assert!((deg - lerobot).abs() < 1e-9, "{deg} {lerobot}");
            assert!((joint.step_of_degrees(deg) - f64::from(step)).abs() < 1e-6);
            let step = random.i32(min..=max);
            for may_reverse in [true, false] {
                let percent = joint.percent(step.into(), may_reverse);
                assert!((0.0..=100.0).contains(&percent));
                let back = joint.step_of_percent(percent, may_reverse);
                assert!((back - f64::from(step)).abs() < 1e-6);
            }
            assert!((self::step(servo_deg(f64::from(step))) - f64::from(step)).abs() < 1e-9);
        }
    }

    #[test]
    fn what_is_no_calibration_is_named() {
        let one = |text: &str| format!("{{\"elbow\": {{{text}}}}}");
        let whole =
            r#""id": 3, "drive_mode": 0, "homing_offset": 0, "range_min": 0, "range_max": 4095"#;
        assert!(read(&one(whole)).is_ok());
        for (from, to, problem) in [
            ("3,", "253,", "elbow: the id 253 is not within 0 to 252"),
            (
                "\"range_max\": 4095",
                "\"range_max\": 0",
                "its range from 0 to 0 is empty",
            ),
            ("\"drive_mode\": 0", "\"drive_mode\": 2", "the drive mode 2"),
            (
                "\"homing_offset\": 0",
                "\"homing_offset\": -2000000",
                "-2000000 steps are too many",
            ),
            ("\"id\": 3,", "", "missing field `id`"),
        ] {
            let text = one(&whole.replacen(from, to, 1));
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
        for (text, problem) in [
            ("{}", "it has 0 joints"),
            ("[]", "invalid type"),
            ("", "EOF"),
            (
                &one(whole).replace("elbow", ""),
                "\"\" is no name of a joint",
            ),
            (
                &format!("{{\"a\": {{{whole}}}, \"b\": {{{whole}}}}}"),
                "b: another joint has the id 3, too",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
