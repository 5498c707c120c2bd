//! Decides what the joints of an arm do. PURE.
//!
//! ```text
//!            follow                 no command in time, or stop
//!  Nothing ----------> Following ------------------------------> Nothing
//!     |                   ^
//!     | move_to           | follow
//!     +---------------> Moving --> there, not there, stopped, failed --> Nothing
//! ```
//!
//! Every joint has a set point, which is where its servo is told to be. It moves towards its target with
//! limited speed, and never far ahead of the joint itself.
//!
//! Report each event to [`ArmLogic`], then carry out what [`ArmLogic::poll_output`] says until it says
//! nothing. Call [`ArmLogic::handle_timeout`] at [`ArmLogic::wake_at`].

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use amber_driver::{ClientId, StopCause};
use amber_proto::arm::arm_outcome::End;
use amber_proto::arm::{ArmDescription, ArmOutcome, ArmState, ArmTorque, JointPositions, MoveArm};
use amber_proto::bus_servos::ServoStates;

use super::joints::Arm;
use super::path::Path;
use crate::outage::Outage;
use crate::servos::Note;

mod known;
mod plan;

use self::known::{Known, Unusable};

/// The time between two set points ...
const PERIOD: Duration = Duration::from_millis(20);
/// ... and the shortest, if a command has come.
const MIN_PERIOD: Duration = Duration::from_millis(5);
/// After a longer pause than this, joints do not make up for it.
const MAX_STEP: Duration = Duration::from_millis(100);
/// A command to follow holds for this time, unless it says something else.
const FOLLOW: Duration = Duration::from_millis(500);
/// Until a joint has caught up with what it follows, in degrees per second of its servo.
const APPROACH_DEG_S: f64 = 30.0;
/// A joint so near to its set point has caught up with it.
const NEAR_DEG: f64 = 2.0;
/// A joint so near to its target is there. Under a load, a servo stays a little behind.
const THERE_DEG: f64 = 3.0;
/// At the end of a path, a joint may need this time.
const SETTLE: Duration = Duration::from_secs(2);
/// A motion without a limit ends this long after its path.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long servos may need to switch their motors.
const TORQUE: Duration = Duration::from_secs(2);

/// The rules for an arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rules {
    /// The fastest turn of a servo, in degrees per second.
    pub(super) max_speed_deg_s: f64,
}

/// What to do with the servos.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Output {
    /// Turn them to these angles.
    Move {
        targets: Vec<(u32, f64)>,
        /// Nothing follows for now: they hold it.
        is_last: bool,
    },
    /// Stop all of them where they are.
    Stop,
    /// Switch motors on or off.
    Torque { on: bool, ids: Vec<u32> },
}

/// What a client waits for. They come in the order of the requests of each kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ended {
    Move(ArmOutcome),
    Torque(Result<(), String>),
}

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Measurements of the servos.
    measured: u64,
    /// Set points for the servos.
    told: u64,
    /// Commands to follow.
    followed: u64,
    /// Motions to positions.
    moved: u64,
}

#[derive(Debug, PartialEq)]
enum Doing {
    Nothing,
    Following {
        targets: Vec<(usize, f64)>,
        until: Instant,
    },
    Moving(Motion),
}

/// A motion to positions.
#[derive(Debug, PartialEq)]
struct Motion {
    /// The joints of the path.
    joints: Vec<usize>,
    path: Path,
    began: Instant,
    limit: Instant,
}

/// Motors are being switched.
#[derive(Debug)]
struct Switching {
    on: bool,
    joints: Vec<usize>,
    until: Instant,
}

/// The logic of an arm.
#[derive(Debug)]
pub(super) struct ArmLogic {
    arm: Arm,
    rules: Rules,
    /// What is known of each joint.
    known: Vec<Known>,
    /// Why the servos cannot be reached.
    absence: Option<String>,
    measured_at: Option<Instant>,
    /// The same as the servos say it.
    time_us: Option<i64>,
    is_fresh: bool,
    doing: Doing,
    switching: Option<Switching>,
    /// Who has commanded last.
    client: Option<ClientId>,
    stepped: Instant,
    step_at: Option<Instant>,
    outputs: VecDeque<Output>,
    ends: VecDeque<Ended>,
    notes: VecDeque<Note>,
    outage: Outage,
    trouble: Option<String>,
    was_ready: bool,
    counters: Counters,
}

impl ArmLogic {
    /// An arm whose servos were not measured yet.
    pub(super) fn new(arm: Arm, rules: Rules, now: Instant) -> Self {
        let known = arm.joints.iter().map(|_| Known::default()).collect();
        Self {
            arm,
            rules,
            known,
            absence: Some("the servos were not measured yet".to_owned()),
            measured_at: None,
            time_us: None,
            is_fresh: false,
            doing: Doing::Nothing,
            switching: None,
            client: None,
            stepped: now,
            step_at: None,
            outputs: VecDeque::new(),
            ends: VecDeque::new(),
            notes: VecDeque::new(),
            outage: Outage::default(),
            trouble: None,
            was_ready: false,
            counters: Counters::default(),
        }
    }

    /// The servos were measured.
    pub(super) fn handle_servos(&mut self, now: Instant, servos: &ServoStates) {
        self.counters.measured += 1;
        for (joint, known) in self.arm.joints.iter().zip(&mut self.known) {
            let mut states = servos.servos.iter();
            let state = states.find(|state| state.id == Some(joint.id.into()));
            known.handle(now, joint, state);
        }
        self.absence = None;
        self.measured_at = Some(now);
        self.time_us = servos.time;
        self.is_fresh = true;
        if let Doing::Moving(motion) = &self.doing {
            let mut joints = motion.joints.iter();
            if let Some(why) = joints.find_map(|index| self.usable(*index).err()) {
                self.outputs.push_back(Output::Stop);
                self.end(End::Failed, Some(why.into()));
            }
        }
        self.finish_switching();
        self.judge(now);
    }

    /// The servos cannot be reached.
    pub(super) fn handle_absence(&mut self, now: Instant, why: String) {
        for known in &mut self.known {
            *known = Known::default();
        }
        self.end(End::Failed, Some(why.clone()));
        self.absence = Some(why);
        self.judge(now);
    }

    /// Moves joints to positions at once.
    ///
    /// # Errors
    /// The arm cannot: why.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        client: Option<ClientId>,
        valid_until: Option<Instant>,
        command: &JointPositions,
    ) -> Result<(), String> {
        self.check()?;
        let mut targets = Vec::new();
        let mut missing = None;
        for (index, position) in self.pairs(command)? {
            match (self.usable(index), self.limits(index)) {
                (Ok(()), Some((least, most))) => targets.push((index, position.clamp(least, most))),
                (Err(Unusable::Off(why)), _) => return Err(why),
                (Err(Unusable::Missing(why)), _) => missing = missing.or(Some(why)),
                // Its calibration does not fit, so the arm is not moved at all.
                (Ok(()), None) => {}
            }
        }
        if targets.is_empty() {
            return Err(missing.unwrap_or_else(|| "no joint is named".to_owned()));
        }
        let before = match &self.doing {
            Doing::Following { targets, .. } => targets.iter().map(|(index, _)| *index).collect(),
            Doing::Nothing | Doing::Moving(_) => BTreeSet::new(),
        };
        for (index, _) in &targets {
            if !before.contains(index) {
                let start = self.start(*index);
                self.known[*index].begin(start);
            }
        }
        let goes_on = matches!(self.doing, Doing::Following { .. });
        self.begin(now, client, goes_on);
        let until = valid_until.unwrap_or(now + FOLLOW);
        self.doing = Doing::Following { targets, until };
        self.counters.followed += 1;
        Ok(())
    }

    /// Moves joints to positions, together. [`Self::poll_end`] has the outcome.
    ///
    /// # Errors
    /// The arm cannot: why.
    pub(super) fn move_to(
        &mut self,
        now: Instant,
        client: Option<ClientId>,
        command: &MoveArm,
    ) -> Result<(), String> {
        self.check()?;
        let (joints, path) = self.plan(command)?;
        let limit = match command.limit {
            Some(ms) => Duration::from_millis(ms.into()),
            None => path.takes() + PATIENCE,
        };
        let starts: Vec<_> = joints.iter().map(|index| self.start(*index)).collect();
        for (index, start) in joints.iter().zip(starts) {
            self.known[*index].begin(start);
        }
        self.begin(now, client, false);
        self.doing = Doing::Moving(Motion {
            joints,
            path,
            began: now,
            limit: now + limit,
        });
        self.counters.moved += 1;
        Ok(())
    }

    /// Switches motors on or off. [`Self::poll_end`] says whether the servos have done so.
    ///
    /// # Errors
    /// The arm cannot: why.
    pub(super) fn set_torque(
        &mut self,
        now: Instant,
        client: Option<ClientId>,
        command: &ArmTorque,
    ) -> Result<(), String> {
        if let Some(why) = &self.absence {
            return Err(why.clone());
        }
        let joints: Vec<_> = match &command.only {
            None => (0..self.known.len()).collect(),
            Some(only) => {
                let joints = only.joints.iter().map(|name| self.index(name));
                joints.collect::<Result<_, String>>()?
            }
        };
        if joints.is_empty() {
            return Err("no joint is named".to_owned());
        }
        for index in &joints {
            let joint = &self.arm.joints[*index];
            if let Err(Unusable::Missing(why)) = self.usable(*index)
                && self.known[*index].found.is_none()
            {
                return Err(why);
            }
            if command.on && self.known[*index].is_beyond_its_limits() {
                return Err(format!(
                    "{} is beyond the limits of its servo: turn it back by hand",
                    joint.label()
                ));
            }
        }
        if self.doing != Doing::Nothing {
            self.outputs.push_back(Output::Stop);
            self.end(End::Stopped, Some("motors were switched".to_owned()));
        }
        self.end_switching(Err("a newer request has replaced it".to_owned()));
        for index in &joints {
            self.known[*index].forget_set_point();
        }
        self.client = client;
        let ids = joints.iter().map(|index| self.arm.joints[*index].id.into());
        self.outputs.push_back(Output::Torque {
            on: command.on,
            ids: ids.collect(),
        });
        self.switching = Some(Switching {
            on: command.on,
            joints,
            until: now + TORQUE,
        });
        Ok(())
    }

    /// Stops the arm, because a client wants it, or for another cause.
    pub(super) fn stop(&mut self, cause: Option<&StopCause>) {
        match cause {
            Some(StopCause::Expired) => self.hold(),
            _ => {
                let is_torque = |output: &Output| matches!(output, Output::Torque { .. });
                self.outputs.retain(is_torque);
                self.outputs.push_back(Output::Stop);
                for known in &mut self.known {
                    known.forget_set_point();
                }
            }
        }
        let why = cause.map_or_else(|| "a client has stopped it".to_owned(), ToString::to_string);
        self.end(End::Stopped, Some(why));
    }

    /// The driver ends: what moves stops.
    pub(super) fn shut_down(&mut self) {
        if self.doing != Doing::Nothing {
            self.stop(None);
        }
    }

    /// A timer may have expired.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.step_at.is_some_and(|due| now >= due) {
            self.step(now);
        }
        if let Some(switching) = self.switching.take_if(|it| now >= it.until) {
            let on = if switching.on { "on" } else { "off" };
            let mut late = switching.joints.iter();
            let late = late.find(|index| self.known[**index].has_torque() != Some(switching.on));
            let which = late.map_or_else(String::new, |index| self.arm.joints[*index].label());
            let why = format!("{which} does not switch its motor {on}: check its supply");
            self.ends.push_back(Ended::Torque(Err(why)));
        }
    }

    /// When to call [`Self::handle_timeout`] if nothing happens earlier.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let switching = self.switching.as_ref().map(|it| it.until);
        self.step_at.into_iter().chain(switching).min()
    }

    /// What to do next.
    pub(super) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// What a client waits for.
    pub(super) fn poll_end(&mut self) -> Option<Ended> {
        self.ends.pop_front()
    }

    /// The next log message.
    pub(super) fn poll_note(&mut self) -> Option<Note> {
        self.notes.pop_front()
    }

    /// Whether there are measurements that were not published.
    pub(super) fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.is_fresh) && self.absence.is_none()
    }

    /// The client for which the servos move.
    pub(super) fn client(&self) -> Option<ClientId> {
        self.client
    }

    /// The problem of the arm, if any.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Event counters.
    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    /// What the arm does.
    ///
    /// # Errors
    /// The servos cannot be reached: why.
    pub(super) fn state(&self) -> Result<ArmState, String> {
        match &self.absence {
            Some(why) => Err(why.clone()),
            None => Ok(known::state(self)),
        }
    }

    /// What the arm is.
    pub(super) fn description(&self) -> ArmDescription {
        known::description(self)
    }

    /// A motion begins; what the arm did before ends.
    fn begin(&mut self, now: Instant, client: Option<ClientId>, goes_on: bool) {
        self.client = client;
        if goes_on {
            self.step_at = Some(now.max(self.stepped + MIN_PERIOD));
            return;
        }
        self.end(
            End::Replaced,
            Some("a newer command has replaced it".to_owned()),
        );
        self.stepped = now;
        self.step_at = Some(now);
    }

    /// What the arm does ends.
    fn end(&mut self, end: End, reason: Option<String>) {
        self.step_at = None;
        let done = std::mem::replace(&mut self.doing, Doing::Nothing);
        let Doing::Moving(motion) = done else {
            return;
        };
        let mut errors = JointPositions::default();
        for (index, target) in motion.joints.iter().zip(motion.path.end()) {
            if let Some(is) = self.known[*index].position() {
                errors.joints.push(self.arm.joints[*index].name.clone());
                errors.positions.push(is - target);
            }
        }
        self.ends.push_back(Ended::Move(ArmOutcome {
            end: end.into(),
            reason,
            errors: Some(errors),
        }));
    }

    /// Tells the servos the set points of now for as long as nothing else comes.
    fn hold(&mut self) {
        let joints: Vec<_> = match &self.doing {
            Doing::Nothing => return,
            Doing::Following { targets, .. } => targets.iter().map(|(index, _)| *index).collect(),
            Doing::Moving(motion) => motion.joints.clone(),
        };
        self.tell(joints, true);
    }

    fn tell(&mut self, joints: impl IntoIterator<Item = usize>, is_last: bool) {
        let angle = |index: usize| {
            let joint = &self.arm.joints[index];
            let known = &self.known[index];
            let mut angle_deg = joint.angle_deg(known.set_point?)?;
            // A joint that was pushed a little beyond its limits begins there.
            if let Some((least, most)) = known.stored.limits_deg {
                angle_deg = angle_deg.max(least).min(most);
            }
            Some((joint.id.into(), angle_deg))
        };
        let targets: Vec<_> = joints.into_iter().filter_map(angle).collect();
        if !targets.is_empty() {
            self.counters.told += 1;
            self.outputs.push_back(Output::Move { targets, is_last });
        }
    }

    /// Moves the set points.
    fn step(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.stepped);
        let passed = elapsed.min(MAX_STEP);
        if let Doing::Moving(motion) = &mut self.doing {
            // This driver was frozen. The path goes on where it was.
            motion.began += elapsed - passed;
            motion.limit += elapsed - passed;
        }
        self.stepped = now;
        self.step_at = Some(now + PERIOD);
        match &self.doing {
            Doing::Nothing => self.step_at = None,
            Doing::Following { until, .. } if now >= *until => {
                self.hold();
                self.end(End::Stopped, None);
            }
            Doing::Following { targets, .. } => {
                let targets = targets.clone();
                for (index, target) in &targets {
                    let has_caught_up = self.known[*index].has_caught_up;
                    let speed_deg_s = match has_caught_up {
                        true => self.rules.max_speed_deg_s,
                        false => self.rules.max_speed_deg_s.min(APPROACH_DEG_S),
                    };
                    self.approach(now, *index, *target, speed_deg_s, passed);
                }
                self.tell(targets.into_iter().map(|(index, _)| index), false);
            }
            Doing::Moving(motion) => {
                let time = now.saturating_duration_since(motion.began);
                let wanted = motion.path.at(time);
                let joints = motion.joints.clone();
                for (index, target) in joints.iter().zip(wanted) {
                    let most = self.rules.max_speed_deg_s;
                    self.approach(now, *index, target, most, passed);
                }
                match self.arrival(now) {
                    None => self.tell(joints, false),
                    Some((end, reason)) => {
                        self.tell(joints, true);
                        self.end(end, reason);
                    }
                }
            }
        }
    }

    /// Moves a set point towards its target. A joint that is missing is left out.
    fn approach(
        &mut self,
        now: Instant,
        index: usize,
        target: f64,
        speed_deg_s: f64,
        passed: Duration,
    ) {
        if self.usable(index).is_err() {
            return self.known[index].forget_set_point();
        }
        if self.known[index].set_point.is_none() {
            let start = self.start(index);
            self.known[index].begin(start);
        }
        let per_degree = self.arm.joints[index].per_degree();
        let most = speed_deg_s * per_degree * passed.as_secs_f64();
        self.known[index].approach(now, target, most, per_degree);
    }

    /// Whether a motion is over, and how.
    fn arrival(&self, now: Instant) -> Option<(End, Option<String>)> {
        let Doing::Moving(motion) = &self.doing else {
            return None;
        };
        let over = motion.began + motion.path.takes();
        let is_measured = self.measured_at.is_some_and(|at| at > over);
        let ends = motion.joints.iter().zip(motion.path.end());
        let away = ends.filter_map(|(index, target)| {
            let joint = &self.arm.joints[*index];
            let away = self.known[*index].position()? - target;
            let is_away = away.abs() > THERE_DEG * joint.per_degree();
            is_away.then(|| {
                format!(
                    "{} is {:.1}{} away from its target",
                    joint.name,
                    away.abs(),
                    joint.unit()
                )
            })
        });
        let away: Vec<_> = away.collect();
        // A joint that is near and still turns gets nearer.
        let rests = |index: &usize| self.known[*index].is_at_rest();
        let is_there = away.is_empty() && motion.joints.iter().all(rests);
        if now >= over && is_measured && is_there {
            return Some((End::Arrived, None));
        }
        let is_late = now >= motion.limit || now >= over + SETTLE;
        is_late.then(|| match away.is_empty() {
            true if now >= over => (End::Arrived, None),
            true => (End::NotThere, Some("its time is over".to_owned())),
            false => (End::NotThere, Some(away.join(", "))),
        })
    }

    /// Ends a request for torque, if the servos have done it.
    fn finish_switching(&mut self) {
        let is_done = self.switching.as_ref().is_some_and(|switching| {
            let mut joints = switching.joints.iter();
            joints.all(|index| self.known[*index].has_torque() == Some(switching.on))
        });
        if is_done {
            self.end_switching(Ok(()));
        }
    }

    fn end_switching(&mut self, how: Result<(), String>) {
        if self.switching.take().is_some() {
            self.ends.push_back(Ended::Torque(how));
        }
    }

    /// Finds out whether there is a trouble, and says so.
    fn judge(&mut self, now: Instant) {
        // Servos that are being found are no news.
        let is_unmeasured = |known: &Known| known.found.is_none() && known.problem.is_none();
        if self.absence.is_none() && self.known.iter().any(is_unmeasured) {
            return;
        }
        let of_joints = || {
            let mut joints = self.arm.joints.iter().zip(&self.known);
            joints.find_map(|(joint, known)| {
                let problem = known.problem.as_ref()?;
                Some(format!("{} {problem}", joint.label()))
            })
        };
        let trouble = self.absence.clone().or_else(|| self.problem());
        let trouble = trouble.or_else(of_joints);
        match &trouble {
            // At the start, their driver may start, too.
            Some(_) if self.measured_at.is_none() && self.trouble.is_none() => {}
            Some(text) if self.outage.complain(now, text) => {
                self.notes.push_back(Note::Trouble(text.clone()));
            }
            None if self.trouble.is_some() || !self.was_ready => {
                self.was_ready = true;
                self.notes.push_back(match self.outage.over(now) {
                    Some(after) => Note::Back(after),
                    None => Note::Ready(format!("{} joints", self.known.len())),
                });
            }
            Some(_) | None => {}
        }
        self.trouble = trouble;
    }

    /// Why no joint can be moved.
    fn problem(&self) -> Option<String> {
        if !self.arm.is_calibrated() {
            return Some(
                "the arm has no calibration: give the file of LeRobot with --calibration"
                    .to_owned(),
            );
        }
        let mut joints = self.arm.joints.iter().zip(&self.known);
        joints.find_map(|(joint, known)| {
            let mismatch = joint.mismatch(known.stored)?;
            Some(format!("{} {mismatch}", joint.label()))
        })
    }

    fn check(&self) -> Result<(), String> {
        let why = self.absence.clone().or_else(|| self.problem());
        why.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests;
