//! What is known of each joint, and where its servo is told to be. PURE.

use std::time::{Duration, Instant};

use amber_proto::arm::arm_state::Activity;
use amber_proto::arm::{ArmDescription, ArmState, HandPose, JointDescription, JointState};
use amber_proto::bus_servos::ServoState;

use super::{ArmLogic, Doing, NEAR_DEG};
use crate::arm::joints::{Joint, Stored};

/// A set point is at most so far ahead of its joint: more than it lags behind at its fastest, so that a
/// joint that is held does not jump when it is free.
const AHEAD_DEG: f64 = 25.0;
/// A joint that is farther than this from its set point, and does not move ...
const STUCK_DEG: f64 = 5.0;
const STILL_DEG_S: f64 = 2.0;
/// ... for this time, is stuck. Then the set point stays so near that the servo is not overloaded, but
/// a gripper still holds what it has.
const STUCK: Duration = Duration::from_millis(500);
/// A servo holds its place if it is not farther beyond its limits.
const BEYOND_DEG: f64 = 2.0;

/// What was measured of a joint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    /// At the angle of its servo.
    angle_deg: f64,
    /// `None` without a calibration.
    position: Option<f64>,
    speed_deg_s: f64,
    load_percent: Option<f64>,
    current_ma: Option<f64>,
    temperature_c: Option<i32>,
    has_torque: bool,
}

/// What is known of a joint.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// `None` while its servo does not answer.
    pub(super) found: Option<Found>,
    pub(super) stored: Stored,
    /// What is wrong with its servo, as what follows its name.
    pub(super) problem: Option<String>,
    /// Where it is told to be. `None` if it must begin where it is.
    pub(super) set_point: Option<f64>,
    /// Whether its set point has been where a client wants it, since it began.
    pub(super) has_caught_up: bool,
    still_since: Option<Instant>,
}

/// A joint cannot be moved: why, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// Its servo does not answer, or is broken.
    Missing(String),
    /// Its motor is off.
    Off(String),
}

impl From<Unusable> for String {
    fn from(unusable: Unusable) -> Self {
        match unusable {
            Unusable::Missing(why) | Unusable::Off(why) => why,
        }
    }
}

impl Known {
    /// Its servo was measured. `None`: no such servo is configured.
    pub(super) fn handle(&mut self, now: Instant, joint: &Joint, state: Option<&ServoState>) {
        let Some(state) = state else {
            *self = Self {
                problem: Some("is not among the servos: check --ids of their driver".to_owned()),
                ..Self::default()
            };
            return;
        };
        let Some(angle_deg) = state.angle else {
            *self = Self {
                problem: state.problem.clone(),
                ..Self::default()
            };
            return;
        };
        self.stored = Stored {
            limits_deg: state.lowest.zip(state.highest),
            homing_offset_deg: state.homing_offset,
        };
        self.problem.clone_from(&state.problem);
        self.found = Some(Found {
            angle_deg,
            position: joint.position(angle_deg),
            speed_deg_s: state.speed.unwrap_or_default(),
            load_percent: state.load,
            current_ma: state.current,
            temperature_c: state.temperature,
            has_torque: state.torque == Some(true),
        });
        if state.torque != Some(true) {
            self.forget_set_point();
        }
        // One that is stuck stays so until it moves.
        let limit_deg = match self.still_since {
            None => STUCK_DEG,
            Some(_) => STUCK_DEG / 2.0,
        };
        let limit = limit_deg * joint.per_degree();
        let is_away = self.away().is_some_and(|away| away > limit);
        let is_still = state.speed.is_none_or(|speed| speed.abs() < STILL_DEG_S);
        self.still_since = match is_away && is_still {
            true => self.still_since.or(Some(now)),
            false => None,
        };
    }

    /// Whether it does not turn, as far as is known.
    pub(super) fn is_at_rest(&self) -> bool {
        self.found
            .is_none_or(|found| found.speed_deg_s.abs() < STILL_DEG_S)
    }

    pub(super) fn position(&self) -> Option<f64> {
        self.found?.position
    }

    pub(super) fn has_torque(&self) -> Option<bool> {
        Some(self.found?.has_torque)
    }

    /// Whether it would jump if its motor were switched on.
    pub(super) fn is_beyond_its_limits(&self) -> bool {
        let (Some(found), Some((least, most))) = (self.found, self.stored.limits_deg) else {
            return false;
        };
        let allowed = least - BEYOND_DEG..=most + BEYOND_DEG;
        !found.has_torque && !allowed.contains(&found.angle_deg)
    }

    /// It begins to move from here.
    pub(super) fn begin(&mut self, start: f64) {
        self.set_point = Some(start);
        self.has_caught_up = false;
        self.still_since = None;
    }

    /// Next time, it begins where it is.
    pub(super) fn forget_set_point(&mut self) {
        self.set_point = None;
        self.has_caught_up = false;
        self.still_since = None;
    }

    /// Moves the set point towards a target, by at most `most`.
    pub(super) fn approach(&mut self, now: Instant, target: f64, most: f64, per_degree: f64) {
        let (Some(set_point), Some(position)) = (self.set_point, self.position()) else {
            return;
        };
        let next = set_point + (target - set_point).clamp(-most, most);
        let ahead = match self.is_stuck(now) {
            true => STUCK_DEG * per_degree,
            false => AHEAD_DEG * per_degree,
        };
        let next = next.clamp(position - ahead, position + ahead);
        self.set_point = Some(next);
        self.has_caught_up |= (target - next).abs() <= NEAR_DEG * per_degree;
    }

    /// Whether something holds it, or it is too weak.
    fn is_stuck(&self, now: Instant) -> bool {
        let since = self.still_since;
        since.is_some_and(|since| now.saturating_duration_since(since) >= STUCK)
    }

    /// How far it is from its set point.
    fn away(&self) -> Option<f64> {
        Some((self.position()? - self.set_point?).abs())
    }
}

impl ArmLogic {
    /// Whether a joint can be moved: if not, why.
    pub(super) fn usable(&self, index: usize) -> Result<(), Unusable> {
        let (joint, known) = (&self.arm.joints[index], &self.known[index]);
        let problem = || {
            let what = known.problem.as_deref().unwrap_or("was not measured yet");
            format!("{} {what}", joint.label())
        };
        match (&known.found, &known.problem) {
            (None, _) => Err(Unusable::Missing(problem())),
            // A command that is streamed would switch it on again.
            (Some(_), _) if self.is_switched_off(index) => Err(Unusable::Off(format!(
                "the motor of {} is being switched off",
                joint.name
            ))),
            (Some(found), _) if found.has_torque => Ok(()),
            // Its servo has switched it off by itself.
            (Some(_), Some(_)) => Err(Unusable::Missing(problem())),
            (Some(_), None) => Err(Unusable::Off(format!(
                "the motor of {} is off: switch it on with set-torque",
                joint.name
            ))),
        }
    }

    /// Whether a client wants the motor of this joint off, and its servo has not done it yet.
    fn is_switched_off(&self, index: usize) -> bool {
        let switching = self.switching.as_ref().filter(|it| !it.on);
        switching.is_some_and(|it| it.joints.contains(&index))
    }

    /// Where a joint begins to move: where it was told to be if it is there, else where it is.
    pub(super) fn start(&self, index: usize) -> f64 {
        let (joint, known) = (&self.arm.joints[index], &self.known[index]);
        let position = known.position().unwrap_or_default();
        let near = super::THERE_DEG * joint.per_degree();
        let told = known.set_point.filter(|it| (it - position).abs() <= near);
        told.unwrap_or(position)
    }

    pub(super) fn limits(&self, index: usize) -> Option<(f64, f64)> {
        self.arm.joints[index].limits(self.known[index].stored)
    }
}

/// What the arm does.
pub(super) fn state(logic: &ArmLogic) -> ArmState {
    let known = || logic.known.iter();
    let activity = match &logic.doing {
        Doing::Moving(_) => Activity::Moving,
        Doing::Following { targets, .. } => {
            let mut targets = targets.iter();
            match targets.all(|(index, _)| logic.known[*index].has_caught_up) {
                true => Activity::Following,
                false => Activity::Approaching,
            }
        }
        Doing::Nothing if known().any(|it| it.has_torque() == Some(true)) => Activity::Holding,
        Doing::Nothing => Activity::Limp,
    };
    let positions: Vec<_> = known().map(Known::position).collect();
    let joints = logic.arm.joints.iter().zip(known());
    let hand = logic.arm.hand(&positions).map(|hand| {
        let [x, y, z] = hand.at_mm;
        HandPose {
            x,
            y,
            z,
            pitch: hand.pitch_rad.to_degrees(),
            roll: Some(hand.roll_rad.to_degrees()),
        }
    });
    ArmState {
        activity: Some(activity.into()),
        joints: joints
            .map(|(joint, known)| joint_state(logic, joint, known))
            .collect(),
        hand,
        problem: logic.problem(),
        time: logic.time_us,
    }
}

fn joint_state(logic: &ArmLogic, joint: &Joint, known: &Known) -> JointState {
    let found = known.found.as_ref();
    let stuck = || {
        let is_stuck = logic.measured_at.is_some_and(|now| known.is_stuck(now));
        is_stuck.then(|| "does not move on: something holds it, or it is too weak".to_owned())
    };
    let problem = known
        .problem
        .clone()
        .or_else(|| joint.mismatch(known.stored));
    JointState {
        name: Some(joint.name.clone()),
        position: known.position(),
        speed: found.and_then(|it| joint.speed(it.speed_deg_s)),
        target: known.set_point,
        load: found.and_then(|it| it.load_percent),
        current: found.and_then(|it| it.current_ma),
        temperature: found.and_then(|it| it.temperature_c),
        torque: known.has_torque(),
        problem: problem.or_else(stuck),
    }
}

/// What the arm is.
pub(super) fn description(logic: &ArmLogic) -> ArmDescription {
    let joints = logic.arm.joints.iter().enumerate();
    let joints = joints.map(|(index, joint)| {
        let is_known = logic.known[index].found.is_some();
        let limits = logic.limits(index).filter(|_| is_known);
        JointDescription {
            name: Some(joint.name.clone()),
            kind: Some(joint.kind().into()),
            servo: Some(joint.id.into()),
            lowest: limits.map(|(least, _)| least),
            highest: limits.map(|(_, most)| most),
            fastest: Some(logic.rules.max_speed_deg_s * joint.per_degree()),
        }
    });
    ArmDescription {
        model: logic.arm.model.map(|model| model.name().to_owned()),
        joints: joints.collect(),
        calibrated: Some(logic.arm.is_calibrated()),
    }
}
