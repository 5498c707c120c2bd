//! The range of each joint of an arm, as it is moved by hand, and the calibration file of LeRobot. PURE.

use std::fmt::Write as _;

use amber_proto::bus_servos::{ServoState, ServoStates};

/// Steps in a turn of a servo.
const STEPS: f64 = 4096.0;
/// A joint that was moved less than this was not moved: a fifteenth of a turn.
const LEAST_STEPS: i32 = 270;

/// Joints that are moved by hand.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sweep {
    joints: Vec<Joint>,
}

#[derive(Clone, Debug, PartialEq)]
struct Joint {
    name: String,
    /// The id of its servo.
    id: u32,
    found: Option<Range>,
}

/// Where a joint has been, in steps. What it counts goes on beyond the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    homing_offset: i32,
    last: f64,
    least: f64,
    most: f64,
}

impl Sweep {
    /// Joints with these names, whose servos have the ids from 1 on.
    pub(super) fn new(names: &[String]) -> Self {
        let joints = names.iter().zip(1..).map(|(name, id)| Joint {
            name: name.clone(),
            id,
            found: None,
        });
        Self {
            joints: joints.collect(),
        }
    }

    /// The servos were measured.
    ///
    /// # Errors
    /// A joint cannot be calibrated: why.
    pub(super) fn handle(&mut self, servos: &ServoStates) -> Result<(), String> {
        for joint in &mut self.joints {
            let mut states = servos.servos.iter();
            let state = states.find(|state| state.id == Some(joint.id));
            joint.handle(state)?;
        }
        Ok(())
    }

    /// A row for each joint: its name, its id, its lowest step, the last one, and the highest.
    pub(super) fn rows(&self) -> Vec<[String; 5]> {
        let row = |joint: &Joint| {
            let steps = |of: fn(Range) -> f64| {
                (joint.found).map_or_else(|| "-".to_owned(), |range| format!("{:.0}", of(range)))
            };
            [
                joint.name.clone(),
                joint.id.to_string(),
                steps(|it| it.least),
                steps(|it| it.last),
                steps(|it| it.most),
            ]
        };
        self.joints.iter().map(row).collect()
    }

    /// The calibration file.
    ///
    /// # Errors
    /// A joint was not moved, or passes the end of its turn: which one, and what to do.
    pub(super) fn file(&self) -> Result<String, String> {
        let mut file = "{\n".to_owned();
        for (number, joint) in self.joints.iter().enumerate() {
            let label = joint.label();
            let range = joint
                .found
                .ok_or_else(|| format!("{label} was not measured"))?;
            let (min, max) = (range.least.round() as i32, range.most.round() as i32);
            if max - min < LEAST_STEPS {
                return Err(format!(
                    "{label} was moved by {} steps only: move it from one end to the other",
                    max - min
                ));
            }
            if min < 0 || f64::from(max) >= STEPS {
                return Err(format!(
                    "{label} passes the end of the turn of its servo: move it to its middle, and make \
                     that the middle of the turn with `amber servo center {}`",
                    joint.id
                ));
            }
            let comma = if number + 1 < self.joints.len() {
                ","
            } else {
                ""
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                file,
                "    {:?}: {{\n        \"id\": {},\n        \"drive_mode\": 0,\n        \
                 \"homing_offset\": {},\n        \"range_min\": {min},\n        \
                 \"range_max\": {max}\n    }}{comma}",
                joint.name, joint.id, range.homing_offset
            );
        }
        file += "}\n";
        Ok(file)
    }
}

impl Joint {
    fn label(&self) -> String {
        format!("{} (servo {})", self.name, self.id)
    }

    fn handle(&mut self, state: Option<&ServoState>) -> Result<(), String> {
        let label = self.label();
        let Some(state) = state else {
            return Err(format!("{label} is not among the servos"));
        };
        let (Some(angle_deg), Some(torque)) = (state.angle, state.torque) else {
            let why = state.problem.as_deref().unwrap_or("was not measured yet");
            return Err(format!("{label} {why}"));
        };
        if torque {
            return Err(format!(
                "the motor of {label} is on, so it cannot be moved by hand"
            ));
        }
        let Some(offset_deg) = state.homing_offset else {
            return Err(format!(
                "{label} has no homing offset, which the file needs"
            ));
        };
        let step = |deg: f64| deg * STEPS / 360.0;
        let is = step(angle_deg);
        self.found = Some(match self.found {
            None => Range {
                homing_offset: step(offset_deg).round() as i32,
                last: is,
                least: is,
                most: is,
            },
            Some(range) => {
                // The shorter way, also beyond the end of a turn.
                let way = (is - range.last + STEPS / 2.0).rem_euclid(STEPS) - STEPS / 2.0;
                let last = range.last + way;
                Range {
                    last,
                    least: range.least.min(last),
                    most: range.most.max(last),
                    ..range
                }
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn servos(steps: [f64; 2]) -> ServoStates {
        let states = steps.iter().zip(1..).map(|(steps, id)| ServoState {
            id: Some(id),
            angle: Some(steps * 360.0 / STEPS),
            torque: Some(false),
            homing_offset: Some(-369.0 * 360.0 / STEPS),
            ..ServoState::default()
        });
        ServoStates {
            servos: states.collect(),
            time: None,
        }
    }

    fn sweep() -> Sweep {
        Sweep::new(&["pan".to_owned(), "gripper".to_owned()])
    }

    /// Moves the first joint there from 2048, and the second one enough.
    fn moved(steps: &[f64]) -> Sweep {
        let mut sweep = sweep();
        for steps in [2048.0].iter().chain(steps) {
            sweep
                .handle(&servos([*steps, 2000.0 + steps / 4.0]))
                .unwrap();
        }
        sweep
    }

    #[test]
    fn a_file_has_the_ranges_of_the_joints() {
        let sweep = moved(&[900.0, 2000.0, 3211.0, 2048.0]);
        let file: Value = serde_json::from_str(&sweep.file().unwrap()).unwrap();
        let pan = serde_json::json!({
            "id": 1, "drive_mode": 0, "homing_offset": -369, "range_min": 900, "range_max": 3211
        });
        assert_eq!(file["pan"], pan);
        assert_eq!(file["gripper"]["id"], 2);
        assert_eq!(sweep.rows()[0], ["pan", "1", "900", "2048", "3211"]);
    }

    #[test]
    fn a_joint_that_cannot_be_calibrated_is_named() {
        for (steps, why) in [
            (&[2100.0][..], "pan (servo 1) was moved by 52 steps only"),
            (&[1000.0, 100.0, 4000.0], "`amber servo center 1`"),
            (&[3000.0, 4000.0, 50.0], "`amber servo center 1`"),
        ] {
            let refused = moved(steps).file().unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        assert!(
            sweep()
                .file()
                .unwrap_err()
                .contains("pan (servo 1) was not measured")
        );
        let mut on = servos([2048.0; 2]);
        on.servos[1].torque = Some(true);
        assert!(
            sweep()
                .handle(&on)
                .unwrap_err()
                .contains("the motor of gripper (servo 2) is on")
        );
        on.servos.pop();
        assert!(
            sweep()
                .handle(&on)
                .unwrap_err()
                .contains("gripper (servo 2) is not among")
        );
        on.servos[0].angle = None;
        on.servos[0].problem = Some("does not answer".to_owned());
        assert!(
            sweep()
                .handle(&on)
                .unwrap_err()
                .contains("pan (servo 1) does not answer")
        );
    }
}
