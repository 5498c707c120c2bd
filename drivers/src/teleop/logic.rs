//! Decides whether and where the follower goes. PURE.
//!
//! Report each event to [`TeleopLogic`], then carry out what [`TeleopLogic::poll_output`] says until it
//! says nothing. Call [`TeleopLogic::handle_timeout`] at [`TeleopLogic::wake_at`].

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use amber_driver::{ClientId, StopCause};
use amber_proto::Device;
use amber_proto::arm::{ArmState, JointState, arm_state};
use amber_proto::motion::MotionState;
use amber_proto::teleop::teleop_outcome::End;
use amber_proto::teleop::teleop_state::Activity;
use amber_proto::teleop::{FollowLeader, TeleopJoint, TeleopOutcome, TeleopState};

use crate::moving::heard::Heard;
use crate::moving::refusal::refusal;

/// A measurement of the leader that is older than this is not followed.
const MAX_DELAY: Duration = Duration::from_millis(150);
/// It ends after this time, unless the request says something else.
const LIMIT: Duration = Duration::from_secs(600);
/// The time for which the rate counts.
const RATE_TIME: Duration = Duration::from_secs(1);
/// What an arm does not do if it is silent.
const SILENCE: &str = "does not say where its joints are";

/// A joint of the follower, and the joint of the leader that it follows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pair {
    pub(super) leader: String,
    pub(super) follower: String,
    /// The position of the leader is multiplied by this, ...
    pub(super) scale: f64,
    /// ... and then this is added to it.
    pub(super) offset: f64,
}

/// What to do with the follower.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Output {
    /// These joints are to be here now.
    Follow(Vec<(String, f64)>),
    /// It stops.
    Stop,
}

/// Event counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Positions for the follower.
    pub(super) told: u64,
    /// Measurements of the leader that came too late.
    pub(super) late: u64,
}

/// One of the two arms.
#[derive(Debug)]
struct Arm {
    device: Device,
    heard: Heard,
    state: Option<ArmState>,
}

/// The follower follows.
#[derive(Debug)]
struct Following {
    client: Option<ClientId>,
    until: Instant,
}

/// The logic of the driver.
#[derive(Debug)]
pub(super) struct TeleopLogic {
    /// `None`: joints with the same name follow each other.
    pairs: Option<Vec<Pair>>,
    leader: Arm,
    follower: Arm,
    /// When the leader was measured for the last time, and how old that was.
    led_at: Option<Instant>,
    delay: Duration,
    following: Option<Following>,
    /// When the follower was told something in the last second.
    told: VecDeque<Instant>,
    outputs: VecDeque<Output>,
    ends: VecDeque<TeleopOutcome>,
    is_fresh: bool,
    trouble: Option<String>,
    pub(super) counters: Counters,
}

impl Arm {
    fn new(device: Device, now: Instant) -> Self {
        Self {
            device,
            heard: Heard::new(device, SILENCE, now),
            state: None,
        }
    }

    /// Its state, or why it is not known.
    fn known(&self, now: Instant) -> Result<&ArmState, String> {
        match (self.heard.absence(now), &self.state) {
            (None, Some(state)) => Ok(state),
            (absence, _) => Err(absence.unwrap_or_default()),
        }
    }

    fn joint<'a>(&self, state: &'a ArmState, name: &str) -> Result<&'a JointState, String> {
        let mut joints = state.joints.iter();
        let found = joints.find(|joint| joint.name() == name);
        found.ok_or_else(|| format!("{} has no joint {name}", self.device))
    }
}

impl TeleopLogic {
    /// Two arms that were not heard yet.
    pub(super) fn new(
        leader: Device,
        follower: Device,
        pairs: Option<Vec<Pair>>,
        now: Instant,
    ) -> Self {
        Self {
            pairs,
            leader: Arm::new(leader, now),
            follower: Arm::new(follower, now),
            led_at: None,
            delay: Duration::ZERO,
            following: None,
            told: VecDeque::new(),
            outputs: VecDeque::new(),
            ends: VecDeque::new(),
            is_fresh: false,
            trouble: None,
            counters: Counters::default(),
        }
    }

    /// The leader was measured, and this is how old that is.
    pub(super) fn handle_leader(&mut self, now: Instant, delay: Duration, state: ArmState) {
        self.leader.heard.measured(now);
        self.leader.state = Some(state);
        (self.led_at, self.delay) = (Some(now), delay);
        self.is_fresh = true;
        self.look(now);
        if self.following.is_none() {
            return;
        }
        if delay > MAX_DELAY {
            self.counters.late += 1;
            return;
        }
        let joints = self.joints(now).unwrap_or_default().into_iter();
        let targets = joints.filter_map(|joint| joint.name.zip(joint.target));
        let targets: Vec<_> = targets.collect();
        if targets.is_empty() {
            return;
        }
        self.counters.told += 1;
        self.told.push_back(now);
        // What waits to be sent is outdated.
        let is_stop = |output: &Output| *output == Output::Stop;
        self.outputs.retain(is_stop);
        self.outputs.push_back(Output::Follow(targets));
    }

    /// The leader does not say where it is.
    pub(super) fn leader_failed(&mut self, now: Instant, why: String) {
        self.leader.heard.failed(why);
        self.look(now);
    }

    /// The follower was measured.
    pub(super) fn handle_follower(&mut self, now: Instant, state: ArmState) {
        self.follower.heard.measured(now);
        self.follower.state = Some(state);
        self.look(now);
    }

    /// The follower does not say where it is.
    pub(super) fn follower_failed(&mut self, now: Instant, why: String) {
        self.follower.heard.failed(why);
        self.look(now);
    }

    /// From now on, the follower follows. [`Self::poll_end`] has the outcome.
    ///
    /// # Errors
    /// It cannot: why.
    pub(super) fn follow(
        &mut self,
        now: Instant,
        client: Option<ClientId>,
        command: FollowLeader,
    ) -> Result<(), String> {
        self.check(now)?;
        self.end(End::Replaced, "a newer request has replaced it");
        let limit = command.limit.map(|ms| Duration::from_millis(ms.into()));
        self.following = Some(Following {
            client,
            until: now + limit.unwrap_or(LIMIT),
        });
        Ok(())
    }

    /// Who moves the follower.
    pub(super) fn handle_motion(&mut self, state: &MotionState) {
        let clients = self.following.as_ref().and_then(|it| it.client);
        if let Some(why) = refusal(self.follower.device, state, clients.as_slice()) {
            self.end(End::Failed, &why);
        }
    }

    /// Whether to ask who moves the follower: it does not say when it refuses.
    pub(super) fn wants_motion_state(&self) -> bool {
        self.following.is_some()
    }

    /// Stops the follower, because a client wants it, or for another cause.
    pub(super) fn stop(&mut self, cause: Option<&StopCause>) {
        self.outputs.clear();
        self.outputs.push_back(Output::Stop);
        let why = cause.map_or_else(|| "a client has stopped it".to_owned(), ToString::to_string);
        self.end(End::Stopped, &why);
    }

    /// The driver ends: what moves stops.
    pub(super) fn shut_down(&mut self) {
        if self.following.is_some() {
            self.stop(None);
        }
    }

    /// A timer may have expired.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.leader.heard.looked(now);
        self.follower.heard.looked(now);
        self.look(now);
    }

    /// When to call [`Self::handle_timeout`] if nothing happens earlier.
    pub(super) fn wake_at(&self) -> Instant {
        let silent = self.leader.heard.look_at();
        let silent = silent.min(self.follower.heard.look_at());
        let until = self.following.as_ref().map(|following| following.until);
        until.map_or(silent, |until| until.min(silent))
    }

    /// What to do next.
    pub(super) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// How it ended, for the client that waits for it. They come in the order of the requests.
    pub(super) fn poll_end(&mut self) -> Option<TeleopOutcome> {
        self.ends.pop_front()
    }

    /// Whether the leader was measured since the last call.
    pub(super) fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.is_fresh)
    }

    /// The client for which the follower moves.
    pub(super) fn client(&self) -> Option<ClientId> {
        self.following.as_ref()?.client
    }

    /// Why the driver does not work.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// What both arms do.
    ///
    /// # Errors
    /// One of them is not known: why.
    pub(super) fn state(&mut self, now: Instant) -> Result<TeleopState, String> {
        let joints = self.joints(now)?;
        while (self.told.front()).is_some_and(|at| now.saturating_duration_since(*at) >= RATE_TIME)
        {
            self.told.pop_front();
        }
        Ok(TeleopState {
            activity: Some(self.activity(now).into()),
            joints,
            delay: Some(self.delay.as_millis().try_into().unwrap_or(u32::MAX)),
            rate: Some(self.told.len() as u32),
            problem: self.check(now).err(),
        })
    }

    fn activity(&self, now: Instant) -> Activity {
        let is_late = |at: Instant| now.saturating_duration_since(at) + self.delay > MAX_DELAY;
        let follower = self.follower.state.as_ref().map(ArmState::activity);
        match follower {
            _ if self.following.is_none() => Activity::Idle,
            _ if self.led_at.is_none_or(is_late) => Activity::Waiting,
            Some(arm_state::Activity::Following) => Activity::Following,
            _ => Activity::Approaching,
        }
    }

    /// The joints of the follower that follow, with where they should be.
    fn joints(&self, now: Instant) -> Result<Vec<TeleopJoint>, String> {
        let leader = self.leader.known(now)?;
        let follower = self.follower.known(now)?;
        let joint = |pair: &Pair| {
            let leading = self.leader.joint(leader, &pair.leader)?;
            let following = self.follower.joint(follower, &pair.follower)?;
            Ok(TeleopJoint {
                name: following.name.clone(),
                target: leading.position.map(|it| it * pair.scale + pair.offset),
                position: following.position,
            })
        };
        self.pairs(leader, follower).iter().map(joint).collect()
    }

    fn pairs(&self, leader: &ArmState, follower: &ArmState) -> Vec<Pair> {
        let alike = || {
            let both = leader.joints.iter().filter(|joint| {
                let mut others = follower.joints.iter();
                others.any(|other| other.name == joint.name)
            });
            both.map(|joint| Pair {
                leader: joint.name().to_owned(),
                follower: joint.name().to_owned(),
                scale: 1.0,
                offset: 0.0,
            })
        };
        self.pairs.clone().unwrap_or_else(|| alike().collect())
    }

    /// Whether the follower can follow now, or why not.
    fn check(&self, now: Instant) -> Result<(), String> {
        let leader = self.leader.known(now)?;
        let follower = self.follower.known(now)?;
        let (leads, follows) = (self.leader.device, self.follower.device);
        let pairs = self.pairs(leader, follower);
        if pairs.is_empty() {
            return Err(format!(
                "no joint of {follows} has the name of one of {leads}"
            ));
        }
        for pair in &pairs {
            let leading = self.leader.joint(leader, &pair.leader)?;
            if leading.torque == Some(true) {
                return Err(format!(
                    "the motor of {} of {leads} is on: a person moves it by hand",
                    pair.leader
                ));
            }
            let following = self.follower.joint(follower, &pair.follower)?;
            if following.torque == Some(false) {
                return Err(format!(
                    "the motor of {} of {follows} is off",
                    pair.follower
                ));
            }
        }
        match &follower.problem {
            Some(problem) => Err(format!("{follows}: {problem}")),
            None => Ok(()),
        }
    }

    /// Notes whether there is a trouble, and whether the follower still follows.
    fn look(&mut self, now: Instant) {
        let absence = |arm: &Arm| {
            let absence = arm.heard.absence(now);
            absence.filter(|_| !arm.heard.is_starting(now))
        };
        self.trouble = absence(&self.leader).or_else(|| absence(&self.follower));
        let Some(following) = &self.following else {
            return;
        };
        if now >= following.until {
            self.end(End::Limit, "its time is over");
        } else if let Err(why) = self.check(now) {
            self.end(End::Failed, &why);
        }
    }

    /// The follower holds its place soon: what it was told last is not valid for long.
    fn end(&mut self, end: End, why: &str) {
        if self.following.take().is_some() {
            self.ends.push_back(TeleopOutcome {
                end: end.into(),
                reason: Some(why.to_owned()),
            });
        }
    }
}

#[cfg(test)]
mod tests;
