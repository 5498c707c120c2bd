//! The joints of an arm: their names, their positions, and their limits. PURE.

use std::collections::BTreeSet;

use amber_proto::arm::joint_description;
use serde::Deserialize;

use super::calibration::{JointCalibration, servo_deg, step};
use super::kinematics::{self, Hand};

/// The ids of the joints of a known arm begin here.
const FIRST_ID: u8 = 1;
/// What the name of a gripper ends with.
const GRIPPER: &str = "gripper";
/// Joints of a robot that has both, such as LeKiwi: those of its arm, and its wheels.
const OF_ARM: &str = "arm_";
const OF_BASE: &str = "base_";

/// The arms that are known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// The arm SO-101, or SO-100 with the same calibration; also that of LeKiwi
    #[value(name = "so101")]
    So101,
    /// The arm Koch v1.1
    Koch,
}

impl Model {
    /// As in the options.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::So101 => "so101",
            Self::Koch => "koch",
        }
    }

    /// The joints, from the foot on.
    fn joints(self) -> [&'static str; 6] {
        match self {
            Self::So101 | Self::Koch => [
                "shoulder_pan",
                "shoulder_lift",
                "elbow_flex",
                "wrist_flex",
                "wrist_roll",
                "gripper",
            ],
        }
    }
}

/// What a position means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is in degrees.
    Turning,
    /// It is in percent.
    Gripper,
}

/// What is known of the servo of a joint.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Stored {
    /// Its limits, at its own angles.
    pub(super) limits_deg: Option<(f64, f64)>,
    /// Its homing offset.
    pub(super) homing_offset_deg: Option<f64>,
}

/// A joint.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Joint {
    pub(super) name: String,
    /// The id of its servo.
    pub(super) id: u8,
    pub(super) kind: Kind,
    calibration: Option<JointCalibration>,
    /// Whether the drive mode of the calibration is for the percent.
    may_reverse: bool,
}

/// An arm as it is configured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arm {
    pub(super) model: Option<Model>,
    /// From the foot on.
    pub(super) joints: Vec<Joint>,
}

impl Arm {
    /// An arm of this model with these calibrated joints: at least one of both is given.
    ///
    /// # Errors
    /// They do not fit together: why.
    pub(super) fn new(
        model: Option<Model>,
        calibration: Option<Vec<(String, JointCalibration)>>,
    ) -> Result<Self, String> {
        let Some(calibrated) = calibration else {
            let names = model.map(Model::joints).into_iter().flatten();
            let joints = names.zip(FIRST_ID..).map(|(name, id)| Joint::new(name, id));
            return Ok(Self {
                model,
                joints: joints.collect(),
            });
        };
        // The wheels of the same robot are no joints.
        let of_arm = calibrated
            .into_iter()
            .filter(|(name, _)| !name.starts_with(OF_BASE));
        let joints: Vec<_> = of_arm
            .map(|(name, calibration)| {
                let name = name.strip_prefix(OF_ARM).unwrap_or(&name);
                Joint {
                    calibration: Some(calibration.clone()),
                    may_reverse: model != Some(Model::Koch),
                    ..Joint::new(name, calibration.id)
                }
            })
            .collect();
        let names: BTreeSet<_> = joints.iter().map(|joint| &*joint.name).collect();
        if names.len() < joints.len() {
            return Err("two of its joints have the same name".to_owned());
        }
        let Some(model) = model else {
            return Ok(Self { model, joints });
        };
        let of_model = model.joints();
        if let Some(missing) = of_model.iter().find(|name| !names.contains(*name)) {
            return Err(format!("it lacks the joint {missing} of {}", model.name()));
        }
        if let Some(other) = names.iter().find(|name| !of_model.contains(*name)) {
            return Err(format!("{} has no joint {other}", model.name()));
        }
        let index = |joint: &Joint| of_model.iter().position(|name| *name == joint.name);
        let mut joints = joints;
        joints.sort_by_key(index);
        Ok(Self {
            model: Some(model),
            joints,
        })
    }

    pub(super) fn is_calibrated(&self) -> bool {
        self.joints.iter().all(|joint| joint.calibration.is_some())
    }

    /// The joint with this name.
    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.joints.iter().position(|joint| joint.name == name)
    }

    /// The positions of all joints, if they say where the hand is.
    pub(super) fn hand(&self, positions: &[Option<f64>]) -> Option<Hand> {
        if self.model != Some(Model::So101) {
            return None;
        }
        let mut joints = [0.0; kinematics::JOINTS];
        for (joint, position) in joints.iter_mut().zip(positions) {
            *joint = (*position)?.to_radians();
        }
        Some(kinematics::forward(joints))
    }

    /// The positions of the first joints at which the hand is there, nearest to those that they have.
    ///
    /// # Errors
    /// There are none: why.
    pub(super) fn reach(
        &self,
        hand: Hand,
        positions: &[Option<f64>],
        limits: impl Fn(usize) -> Option<(f64, f64)>,
    ) -> Result<Vec<f64>, String> {
        if self.model != Some(Model::So101) {
            return Err("the geometry of this arm is not known: move its joints".to_owned());
        }
        let found = kinematics::inverse(hand);
        if found.is_empty() {
            return Err("the hand cannot get there: it is too far away".to_owned());
        }
        let is_within = |joints: &&Vec<f64>| {
            let mut joints = joints.iter().enumerate();
            joints.all(|(index, position)| {
                limits(index).is_some_and(|(least, most)| (least..=most).contains(position))
            })
        };
        let farthest = |joints: &Vec<f64>| {
            let ways = joints.iter().zip(positions);
            let ways = ways.map(|(to, from)| from.map_or(0.0, |from| (to - from).abs()));
            ways.fold(0.0, f64::max)
        };
        let in_degrees = found.iter().map(|it| it.map(f64::to_degrees).to_vec());
        let in_degrees: Vec<_> = in_degrees.collect();
        let allowed = in_degrees.iter().filter(is_within);
        let nearest = allowed.min_by(|a, b| farthest(a).total_cmp(&farthest(b)));
        let beyond = "the hand cannot get there: joints would be beyond their limits";
        nearest.cloned().ok_or_else(|| beyond.to_owned())
    }
}

impl Joint {
    fn new(name: &str, id: u8) -> Self {
        Self {
            name: name.to_owned(),
            id,
            kind: match name.ends_with(GRIPPER) {
                true => Kind::Gripper,
                false => Kind::Turning,
            },
            calibration: None,
            may_reverse: false,
        }
    }

    /// Its name, and which servo it has.
    pub(super) fn label(&self) -> String {
        format!("{} (servo {})", self.name, self.id)
    }

    /// The position at an angle of its servo. `None` without a calibration.
    pub(super) fn position(&self, angle_deg: f64) -> Option<f64> {
        let calibration = self.calibration.as_ref()?;
        let step = step(angle_deg);
        Some(match self.kind {
            Kind::Turning => calibration.degrees(step),
            Kind::Gripper => calibration.percent(step, self.may_reverse),
        })
    }

    /// The same the other way round.
    pub(super) fn angle_deg(&self, position: f64) -> Option<f64> {
        let calibration = self.calibration.as_ref()?;
        Some(servo_deg(match self.kind {
            Kind::Turning => calibration.step_of_degrees(position),
            Kind::Gripper => calibration.step_of_percent(position, self.may_reverse),
        }))
    }

    /// What a degree of its servo is for its position. Positive, and 1 without a calibration.
    pub(super) fn per_degree(&self) -> f64 {
        match (&self.calibration, self.kind) {
            (Some(calibration), Kind::Gripper) => {
                let (first, last) = calibration.range();
                100.0 / servo_deg(last - first)
            }
            _ => 1.0,
        }
    }

    /// How its speed counts, compared with that of its servo.
    pub(super) fn speed(&self, servo_deg_s: f64) -> Option<f64> {
        let (zero, one) = (self.at_middle(0.0)?, self.at_middle(1.0)?);
        Some(servo_deg_s * (one - zero))
    }

    /// The position so many degrees of the servo after the middle of the range, which no end cuts off.
    fn at_middle(&self, degrees: f64) -> Option<f64> {
        let (first, last) = self.calibration.as_ref()?.range();
        self.position(servo_deg(f64::midpoint(first, last)) + degrees)
    }

    /// The lowest and the highest position: those of the calibration that the servo allows, too.
    /// `None` if there are none.
    pub(super) fn limits(&self, stored: Stored) -> Option<(f64, f64)> {
        let (first, last) = self.calibration.as_ref()?.range();
        let (mut first, mut last) = (servo_deg(first), servo_deg(last));
        if let Some((least, most)) = stored.limits_deg {
            (first, last) = (first.max(least), last.min(most));
        }
        if first >= last {
            return None;
        }
        let (one, other) = (self.position(first)?, self.position(last)?);
        Some((one.min(other), one.max(other)))
    }

    /// Why its calibration is not that of its servo, if that is so.
    pub(super) fn mismatch(&self, stored: Stored) -> Option<String> {
        let calibration = self.calibration.as_ref()?;
        if let Some(offset_deg) = stored.homing_offset_deg {
            let (is, should) = (step(offset_deg).round(), calibration.homing_offset);
            if (is - f64::from(should)).abs() > 0.5 {
                return Some(format!(
                    "has the homing offset {is}, but {should} in its calibration: calibrate the arm \
                     again"
                ));
            }
        }
        let none = "has limits that do not fit its calibration: calibrate the arm again";
        self.limits(stored).is_none().then(|| none.to_owned())
    }

    /// As in messages.
    pub(super) fn kind(&self) -> joint_description::Kind {
        match self.kind {
            Kind::Turning => joint_description::Kind::Turning,
            Kind::Gripper => joint_description::Kind::Gripper,
        }
    }

    /// The unit of its position, as it follows a number.
    pub(super) fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Turning => " degrees",
            Kind::Gripper => " %",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::calibration::read;
    use super::super::calibration::tests::SO101;
    use super::*;

    fn so101() -> Arm {
        Arm::new(Some(Model::So101), Some(read(SO101).unwrap())).unwrap()
    }

    fn names(arm: &Arm) -> Vec<&str> {
        arm.joints.iter().map(|joint| &*joint.name).collect()
    }

    #[test]
    fn a_model_and_a_calibration_must_fit_together() {
        let check = |model, text: &str, expected: Result<&[&str], &str>| {
            let arm = Arm::new(model, Some(read(text).unwrap()));
            match (&arm, expected) {
                (Ok(arm), Ok(expected)) => assert_eq!(names(arm), expected),
                (Err(why), Err(expected)) => assert!(why.contains(expected), "{why}"),
                other => panic!("{text}: {other:?}"),
            }
        };
        let all = Model::So101.joints();
        check(Some(Model::So101), SO101, Ok(&all));
        check(None, SO101, Ok(&all));
        // The order is that of the arm, also with other ids.
        let exchanged = SO101.replace("\"id\": 1,", "\"id\": 11,");
        check(Some(Model::Koch), &exchanged, Ok(&all));
        let of_lekiwi = SO101.replace("    \"", "    \"arm_").replacen(
            '{',
            "{\"base_left_wheel\": {\"id\": 7, \"drive_mode\": 0, \"homing_offset\": 0, \
                      \"range_min\": 0, \"range_max\": 4095},",
            1,
        );
        check(Some(Model::So101), &of_lekiwi, Ok(&all));
        let without = SO101.replace("elbow_flex", "elbow");
        check(
            Some(Model::So101),
            &without,
            Err("it lacks the joint elbow_flex of so101"),
        );
        check(
            None,
            &without,
            Ok(&[
                "shoulder_pan",
                "shoulder_lift",
                "elbow",
                "wrist_flex",
                "wrist_roll",
                "gripper",
            ]),
        );
        let twice = SO101.replace("elbow_flex", "arm_gripper");
        check(None, &twice, Err("the same name"));
    }

    #[test]
    fn a_model_alone_has_joints_without_positions() {
        let arm = Arm::new(Some(Model::Koch), None).unwrap();
        let ids: Vec<_> = arm.joints.iter().map(|joint| joint.id).collect();
        assert_eq!(ids, [1, 2, 3, 4, 5, 6]);
        assert!(!arm.is_calibrated());
        assert_eq!(arm.joints[0].position(180.0), None);
        assert_eq!(arm.joints[0].limits(Stored::default()), None);
    }

    #[test]
    fn limits_are_those_of_both() {
        let arm = so101();
        let pan = &arm.joints[0];
        let (least, most) = pan.limits(Stored::default()).unwrap();
        let half_deg = (3231.0 - 866.0) / 2.0 * 360.0 / 4095.0;
        assert!((least + half_deg).abs() < 1e-9 && (most - half_deg).abs() < 1e-9);
        let stored = Stored {
            limits_deg: Some((180.0, 360.0)),
            homing_offset_deg: None,
        };
        let (least, most) = pan.limits(stored).unwrap();
        assert!((pan.angle_deg(least).unwrap() - 180.0).abs() < 1e-9);
        assert!((most - half_deg).abs() < 1e-9);
        assert_eq!(arm.joints[5].limits(Stored::default()), Some((0.0, 100.0)));
        let elsewhere = Stored {
            limits_deg: Some((300.0, 360.0)),
            homing_offset_deg: None,
        };
        assert!(
            pan.mismatch(elsewhere)
                .unwrap()
                .contains("do not fit its calibration")
        );
    }

    #[test]
    fn another_homing_offset_is_named() {
        let arm = so101();
        let stored = |steps: f64| Stored {
            limits_deg: None,
            homing_offset_deg: Some(servo_deg(steps)),
        };
        assert_eq!(arm.joints[1].mismatch(stored(-369.0)), None);
        let why = arm.joints[1].mismatch(stored(0.0)).unwrap();
        assert!(
            why.starts_with("has the homing offset 0, but -369"),
            "{why}"
        );
    }

    #[test]
    fn speeds_count_like_positions() {
        let arm = so101();
        let speed = arm.joints[0].speed(10.0).unwrap();
        assert!((speed - 10.0 * 4096.0 / 4095.0).abs() < 1e-9, "{speed}");
        let gripper = &arm.joints[5];
        let speed = gripper.speed(10.0).unwrap();
        assert!(
            (speed - 10.0 * gripper.per_degree()).abs() < 1e-9,
            "{speed}"
        );
        assert!((gripper.per_degree() - 100.0 / 128.0).abs() < 0.01);
    }

    #[test]
    fn the_hand_gets_where_it_was() {
        let arm = so101();
        let positions = [20.0, -30.0, 40.0, 10.0, 50.0, 30.0];
        let positions = positions.map(Some);
        let hand = arm.hand(&positions).unwrap();
        let limits = |index: usize| arm.joints[index].limits(Stored::default());
        let found = arm.reach(hand, &positions, limits).unwrap();
        for (is, expected) in found.iter().zip(positions.into_iter().flatten()) {
            assert!((is - expected).abs() < 1e-6, "{found:?}");
        }
        let far = Hand {
            at_mm: [900.0, 0.0, 0.0],
            ..hand
        };
        assert!(
            arm.reach(far, &positions, limits)
                .unwrap_err()
                .contains("too far away")
        );
        let behind = Hand {
            at_mm: [-300.0, 0.0, 100.0],
            ..hand
        };
        assert!(arm.reach(behind, &positions, limits).is_err());
        let mut missing = positions;
        missing[2] = None;
        assert_eq!(arm.hand(&missing), None);
    }
}
