//! Makes a path of a request to move. PURE.

use std::collections::BTreeSet;
use std::time::Duration;

use amber_proto::arm::{HandPose, JointPositions, MoveArm};

use super::ArmLogic;
use crate::arm::kinematics::{self, Hand};
use crate::arm::path::{Path, TooFast};

/// The most points on the way: half a minute with fifty of them a second.
const MAX_POINTS: usize = 1_500;

impl ArmLogic {
    /// The joints of a motion, and their path.
    ///
    /// # Errors
    /// The arm cannot move so: why.
    pub(super) fn plan(&self, command: &MoveArm) -> Result<(Vec<usize>, Path), String> {
        let most = self.rules.max_speed_deg_s;
        let speed_deg_s = match command.speed {
            None => most / 2.0,
            Some(speed) if (1.0..=most).contains(&speed) => speed,
            Some(speed) => return Err(format!("joints turn with 1 to {most} deg/s, not {speed}")),
        };
        let mut targets = self.pairs(&command.targets)?;
        let named = targets.len();
        if let Some(hand) = &command.hand {
            if let Some((index, _)) = targets.iter().find(|it| it.0 < kinematics::JOINTS) {
                let name = &self.arm.joints[*index].name;
                return Err(format!(
                    "the place of the hand says where {name} is: leave it out"
                ));
            }
            targets.extend(self.reach(hand)?.into_iter().enumerate());
        }
        if targets.is_empty() {
            return Err("no joint is named".to_owned());
        }
        let (joints, end): (Vec<_>, Vec<_>) = targets.into_iter().unzip();
        for index in &joints {
            self.usable(*index)?;
        }
        self.check_positions(&joints, &end)?;
        let from = joints.iter().map(|index| self.start(*index)).collect();
        let per_degree = |index: &usize| self.arm.joints[*index].per_degree();
        let degrees: Vec<_> = joints.iter().map(per_degree).collect();
        let speeds = |deg_s: f64| degrees.iter().map(|it| deg_s * it).collect::<Vec<_>>();
        let at = command.at.map(ms);
        let via = command.via.as_ref().map_or(&[][..], |via| &via.points);
        let path = match via {
            [] if at.is_some() => Path::smooth(from, end, &speeds(most), at),
            [] => Path::smooth(from, end, &speeds(speed_deg_s), None),
            via => {
                let Some(at) = at else {
                    return Err("points on the way need the time of their end: at".to_owned());
                };
                if command.hand.is_some() {
                    return Err("points on the way are for joints, not for the hand".to_owned());
                }
                if via.len() > MAX_POINTS {
                    return Err(format!("{} points are more than {MAX_POINTS}", via.len()));
                }
                let mut before = None;
                for (number, point) in via.iter().enumerate() {
                    let wrong = |why: &str| Err(format!("point {number} {why}"));
                    if point.positions.len() != named {
                        return wrong("has another number of positions than the targets");
                    }
                    if before.is_some_and(|before| point.at <= before) || ms(point.at) >= at {
                        return wrong("is not later than the one before and earlier than the end");
                    }
                    before = Some(point.at);
                    self.check_positions(&joints, &point.positions)?;
                }
                let via = via
                    .iter()
                    .map(|point| (ms(point.at), point.positions.clone()));
                Path::through(from, via.chain([(at, end)]), &speeds(most), &degrees)
            }
        };
        let path = path.map_err(|TooFast { joint, speed, at }| {
            let joint = &self.arm.joints[joints[joint]];
            format!(
                "{} would have to move with {speed:.0}{}/s to be there after {:.3} s; it may move with \
                 {:.0}",
                joint.name,
                joint.unit(),
                at.as_secs_f64(),
                most * joint.per_degree(),
            )
        })?;
        Ok((joints, path))
    }

    /// The positions of the joints before the gripper at which the hand is there.
    fn reach(&self, hand: &HandPose) -> Result<Vec<f64>, String> {
        let positions: Vec<_> = self.known.iter().map(|known| known.position()).collect();
        let roll = hand
            .roll
            .or_else(|| *positions.get(kinematics::JOINTS - 1)?);
        let Some(roll) = roll else {
            return Err("the roll of the hand is not known".to_owned());
        };
        let hand = Hand {
            at_mm: [hand.x, hand.y, hand.z],
            pitch_rad: hand.pitch.to_radians(),
            roll_rad: roll.to_radians(),
        };
        self.arm.reach(hand, &positions, |index| self.limits(index))
    }

    /// Whether these positions are within the limits of the joints.
    fn check_positions(&self, joints: &[usize], positions: &[f64]) -> Result<(), String> {
        for (index, position) in joints.iter().zip(positions) {
            let joint = &self.arm.joints[*index];
            let limits = self.limits(*index);
            let is_within = limits.is_some_and(|(least, most)| (least..=most).contains(position));
            if !is_within {
                let (least, most) = limits.unwrap_or_default();
                return Err(format!(
                    "{} moves from {least:.1} to {most:.1}{}, not to {position}",
                    joint.name,
                    joint.unit(),
                ));
            }
        }
        Ok(())
    }

    /// The joints that are named, each with its position.
    pub(super) fn pairs(&self, command: &JointPositions) -> Result<Vec<(usize, f64)>, String> {
        let JointPositions { joints, positions } = command;
        if joints.len() != positions.len() {
            return Err(format!(
                "{} joints have {} positions",
                joints.len(),
                positions.len()
            ));
        }
        let mut named = BTreeSet::new();
        let pair = |(name, position): (&String, &f64)| {
            let index = self.index(name)?;
            if !named.insert(index) {
                return Err(format!("{name} is named twice"));
            }
            match position.is_finite() {
                true => Ok((index, *position)),
                false => Err(format!("{position} is no position of {name}")),
            }
        };
        joints.iter().zip(positions).map(pair).collect()
    }

    /// The joint with this name.
    pub(super) fn index(&self, name: &str) -> Result<usize, String> {
        self.arm.index(name).ok_or_else(|| {
            let names = self.arm.joints.iter().map(|joint| &*joint.name);
            let names = names.collect::<Vec<_>>().join(", ");
            format!("the arm has no joint {name:?}, only {names}")
        })
    }
}

fn ms(time: u32) -> Duration {
    Duration::from_millis(time.into())
}
