//! Odometry: motion and pose from measured wheel speeds. PURE.
//!
//! Between two samples the speeds change linearly, and the robot moves on an arc with their mean.
//! Probabilistic Robotics (Thrun, Burgard, Fox, 2005), chapter 5.3, has the arc.
//!
//! The pose starts at the origin of a frame of its own, the *odometry frame*. It drifts, but over a
//! few seconds the drift is small: a scan is corrected with it, and obstacles are remembered in it.

use std::collections::VecDeque;
use std::time::Duration;

use amber_map::Pose;

use crate::kinematics::{SkidSteer, Twist, Wheels};

/// How long samples are remembered: longer than from one scan to the next in a log that somebody has thinned
/// out.
pub const MEMORY: Duration = Duration::from_secs(10);
/// The maximum number of remembered samples: 300 Hz for [`MEMORY`].
const MAX_SAMPLES: usize = 3_000;
/// The longest time for which one sample holds. Then the motion is unknown and counts as none.
const HOLD: Duration = Duration::from_millis(500);

/// A motion between two times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Motion {
    /// The later pose in the frame of the earlier one: x ahead, y to the left.
    pub pose: Pose,
    /// The length of the path, in metres, also of a path back and forth.
    pub path_m: f64,
    /// The sum of all turns in both directions, in radians.
    pub turns_rad: f64,
    /// How long it took, in seconds.
    pub time_s: f64,
    /// The part of this time without samples.
    pub unknown_s: f64,
}

/// The recent motion of the robot.
#[derive(Clone, Debug)]
pub struct Odometry {
    drive: SkidSteer,
    samples: VecDeque<Sample>,
    /// Whether an older sample than the first one has been dropped.
    dropped: bool,
}

/// A sample, with everything that happened until then.
#[derive(Clone, Copy, Debug)]
struct Sample {
    time: Duration,
    twist: Twist,
    since_start: Motion,
}

impl Odometry {
    /// Creates an odometry without samples, at the origin.
    #[must_use]
    pub fn new(drive: SkidSteer) -> Self {
        Self {
            drive,
            samples: VecDeque::new(),
            dropped: false,
        }
    }

    /// Adds a sample. Samples may arrive in any order; a second sample with the same time replaces
    /// the first. Returns whether the sample is useful: its speeds are finite and it is not older
    /// than the memory.
    pub fn handle_wheels(&mut self, time: Duration, wheels: Wheels) -> bool {
        let first = self.samples.front().map(|first| first.time);
        let too_old = self.dropped && first.is_some_and(|first| time < first)
            || self.latest().is_some_and(|latest| time + MEMORY < latest);
        if too_old || !wheels.is_finite() {
            return false;
        }
        let sample = Sample {
            time,
            twist: self.drive.twist(wheels),
            since_start: Motion::default(),
        };
        let place = self.samples.partition_point(|other| other.time < time);
        match self.samples.get_mut(place) {
            Some(other) if other.time == time => *other = sample,
            _ => self.samples.insert(place, sample),
        }
        self.sum_up_from(place);
        while self.samples.len() > MAX_SAMPLES
            // One sample before the memory remains, so that the motion since then is known.
            || self.samples.get(1).zip(self.latest()).is_some_and(|(second, latest)| second.time + MEMORY < latest)
        {
            self.samples.pop_front();
            self.dropped = true;
        }
        true
    }

    /// The time of the newest sample.
    #[must_use]
    pub fn latest(&self) -> Option<Duration> {
        self.samples.back().map(|sample| sample.time)
    }

    /// The last measured motion.
    #[must_use]
    pub fn latest_twist(&self) -> Twist {
        self.samples
            .back()
            .map_or(Twist::STOP, |sample| sample.twist)
    }

    /// Speed and turn rate at a time.
    #[must_use]
    pub fn twist(&self, time: Duration) -> Twist {
        let after = self.samples.partition_point(|sample| sample.time <= time);
        let Some(before) = after.checked_sub(1).map(|index| self.samples[index]) else {
            return Twist::STOP;
        };
        match self.samples.get(after) {
            Some(next) if next.time <= before.time + HOLD => before.twist_between(next, time),
            _ if time <= before.time + HOLD => before.twist,
            _ => Twist::STOP,
        }
    }

    /// The pose at a time, in the odometry frame.
    #[must_use]
    pub fn pose_at(&self, time: Duration) -> Pose {
        self.motion_until(time).pose
    }

    /// The motion between two times. If the second is earlier, the pose is that of the way back.
    #[must_use]
    pub fn motion(&self, from: Duration, to: Duration) -> Motion {
        let (start, end) = (self.motion_until(from), self.motion_until(to));
        let (first, last) = if from <= to {
            (start, end)
        } else {
            (end, start)
        };
        let time_s = from.abs_diff(to).as_secs_f64();
        // Before the first sample nothing is known.
        let before_s = self.samples.front().map_or(time_s, |sample| {
            let end = sample.time.min(from.max(to));
            end.saturating_sub(from.min(to)).as_secs_f64()
        });
        Motion {
            pose: start.pose.local_pose(end.pose),
            path_m: last.path_m - first.path_m,
            turns_rad: last.turns_rad - first.turns_rad,
            time_s,
            unknown_s: last.unknown_s - first.unknown_s + before_s,
        }
    }

    /// The motion from the first sample until a time.
    fn motion_until(&self, time: Duration) -> Motion {
        let after = self.samples.partition_point(|sample| sample.time <= time);
        match (after.checked_sub(1), self.samples.get(after)) {
            (Some(before), next) => self.samples[before].motion_until(next, time),
            (None, Some(first)) => first.since_start,
            (None, None) => Motion::default(),
        }
    }

    /// Sums up all motions again from a sample on.
    fn sum_up_from(&mut self, index: usize) {
        for index in index..self.samples.len() {
            self.samples[index].since_start = match index.checked_sub(1) {
                Some(before) => {
                    let (before, sample) = (self.samples[before], self.samples[index]);
                    before.motion_until(Some(&sample), sample.time)
                }
                None => Motion::default(),
            };
        }
    }
}

impl Sample {
    /// The motion from the start until a time between this sample and the next one.
    fn motion_until(&self, next: Option<&Self>, time: Duration) -> Motion {
        let next = next.filter(|next| next.time <= self.time + HOLD);
        let known = match next {
            Some(_) => time - self.time,
            None => (time - self.time).min(HOLD),
        };
        let known_s = known.as_secs_f64();
        let end = next.map_or(self.twist, |next| self.twist_between(next, time));
        let mean = |a: f64, b: f64| f64::midpoint(a, b) * known_s;
        let before = &self.since_start;
        Motion {
            pose: before.pose.along_arc(
                mean(self.twist.forward_m_s, end.forward_m_s),
                mean(self.twist.turn_rad_s, end.turn_rad_s),
            ),
            path_m: before.path_m + way(self.twist.forward_m_s, end.forward_m_s) * known_s,
            turns_rad: before.turns_rad + way(self.twist.turn_rad_s, end.turn_rad_s) * known_s,
            time_s: before.time_s + (time - self.time).as_secs_f64(),
            unknown_s: before.unknown_s + (time - self.time - known).as_secs_f64(),
        }
    }

    /// The motion at a time between two samples.
    fn twist_between(&self, next: &Self, time: Duration) -> Twist {
        let length_s = (next.time - self.time).as_secs_f64();
        let part = (time - self.time).as_secs_f64() / length_s;
        let between = |a: f64, b: f64| a + (b - a) * part;
        Twist::new(
            between(self.twist.forward_m_s, next.twist.forward_m_s),
            between(self.twist.turn_rad_s, next.twist.turn_rad_s),
        )
    }
}

/// The mean absolute value while a speed changes linearly from one value to another.
fn way(from: f64, to: f64) -> f64 {
    let sum = from.abs() + to.abs();
    if from * to >= 0.0 || sum == 0.0 {
        sum / 2.0
    } else {
        (from * from + to * to) / (2.0 * sum)
    }
}

#[cfg(test)]
mod tests;
