//! The pose of the robot now, from late poses and dead reckoning. PURE.
//!
//! The location driver reports where the robot *was*. Between its poses, and up to now, the wheels
//! provide the motion. A pose far from the expected one is a jump: the filter has found its error,
//! or the robot was carried. The robot then waits until several poses agree.

use std::time::Duration;

use amber_map::{MapPose, Pose, wrap};

use crate::odometry::Odometry;

/// The configuration of a [`PoseTracker`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// A pose farther than this from the expected one is a jump, in metres...
    pub jump_m: f64,
    /// ...or turned by more than this, in radians.
    pub jump_rad: f64,
    /// Poses with a lower quality (0 to 1) are ignored...
    pub min_quality: f64,
    /// ...and after so many of them in a row, the pose is lost.
    pub poor_poses: u32,
    /// After a jump, only poses with at least this quality count...
    pub sure_quality: f64,
    /// ...and so many of them must agree.
    pub sure_poses: u32,
    /// An older pose no longer counts.
    pub timeout: Duration,
    /// The weight of a new pose against the expected one: 1 trusts it fully.
    pub weight: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            jump_m: 0.25,
            jump_rad: 15.0_f64.to_radians(),
            min_quality: MapPose::DECIDED,
            poor_poses: 3,
            sure_quality: 0.8,
            sure_poses: 3,
            timeout: Duration::from_millis(600),
            weight: 0.3,
        }
    }
}

/// A pose as the location driver reports it, in the plane frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoseReading {
    /// When the robot was there.
    pub time: Duration,
    /// The pose on the map.
    pub pose: Pose,
    /// From 0, lost, to 1.
    pub quality: f64,
}

/// Whether the pose can be used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tracked {
    /// The pose now.
    At(Pose),
    /// No pose has arrived yet.
    Unknown,
    /// The pose has jumped, and is not sure again.
    Jumped,
    /// The last pose is old, or those after it are poor.
    Lost,
    /// The source looks for the pose: it has some, but is not sure of any.
    Undecided,
}

/// The poor poses since the last good one.
#[derive(Clone, Copy, Debug, Default)]
struct Poor {
    count: u32,
    /// The time and the quality of the last one.
    last: Duration,
    quality: f64,
}

/// Combines poses and dead reckoning.
#[derive(Clone, Debug)]
pub struct PoseTracker {
    config: Config,
    /// A time, the pose on the map and the pose by dead reckoning.
    anchor: Option<(Duration, Pose, Pose)>,
    /// Poses that agree with the anchor since the last jump.
    agreeing: u32,
    poor: Poor,
    jumps: u64,
}

impl PoseTracker {
    /// Creates a tracker without a pose.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            anchor: None,
            agreeing: 0,
            poor: Poor::default(),
            jumps: 0,
        }
    }

    /// A pose has arrived. Late, invalid and poor ones are ignored.
    pub fn handle_pose(&mut self, reading: PoseReading, motion: &Odometry) {
        let PoseReading {
            time,
            pose,
            quality,
        } = reading;
        let valid = [pose.at.x, pose.at.y, pose.heading, quality]
            .into_iter()
            .all(f64::is_finite);
        let is_late = self.anchor.is_some_and(|(last, ..)| time <= last);
        if !valid || is_late {
            return;
        }
        if quality < self.config.min_quality {
            // The same pose may be sent again.
            if time > self.poor.last {
                self.poor = Poor {
                    count: self.poor.count.saturating_add(1),
                    last: time,
                    quality,
                };
            }
            return;
        }
        self.poor.count = 0;
        let reckoned = motion.pose_at(time);
        let Some((_, mapped, was)) = self.anchor else {
            self.anchor = Some((time, pose, reckoned));
            self.agreeing = u32::from(quality >= self.config.sure_quality);
            return;
        };
        let expected = moved(mapped, was, reckoned);
        let way = pose.at.minus(expected.at);
        let turn = wrap(pose.heading - expected.heading);
        if way.length() > self.config.jump_m || turn.abs() > self.config.jump_rad {
            self.jumps += u64::from(self.agreeing >= self.config.sure_poses);
            self.agreeing = 0;
            self.anchor = Some((time, pose, reckoned));
            return;
        }
        if quality >= self.config.sure_quality {
            self.agreeing = self.agreeing.saturating_add(1);
        }
        let weight = self.config.weight;
        let blended = Pose {
            at: expected.at.plus(way.times(weight)),
            heading: expected.heading + turn * weight,
        };
        self.anchor = Some((time, blended, reckoned));
    }

    #[must_use]
    pub fn pose(&self, now: Duration, motion: &Odometry) -> Tracked {
        let is_poor = self.poor.count >= self.config.poor_poses;
        let is_new = now.saturating_sub(self.poor.last) <= self.config.timeout;
        if is_poor && is_new && self.poor.quality > 0.0 {
            return Tracked::Undecided;
        }
        let Some((time, mapped, was)) = self.anchor else {
            return Tracked::Unknown;
        };
        if is_poor || now.saturating_sub(time) > self.config.timeout {
            Tracked::Lost
        } else if self.agreeing < self.config.sure_poses {
            Tracked::Jumped
        } else {
            Tracked::At(moved(mapped, was, motion.pose_at(now)))
        }
    }

    /// The last pose with its time, for whoever asks.
    #[must_use]
    pub fn last(&self) -> Option<(Duration, Pose)> {
        self.anchor.map(|(time, pose, _)| (time, pose))
    }

    /// How often a sure pose has jumped.
    #[must_use]
    pub fn jumps(&self) -> u64 {
        self.jumps
    }
}

/// A pose on the map after the motion between two poses by dead reckoning.
fn moved(mapped: Pose, was: Pose, is: Pose) -> Pose {
    mapped.global_pose(was.local_pose(is))
}

#[cfg(test)]
mod tests {
    use crate::kinematics::{SkidSteer, Wheels};

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn reading(time: u64, x: f64, quality: f64) -> PoseReading {
        PoseReading {
            time: ms(time),
            pose: Pose::new(x, 2.0, 0.0),
            quality,
        }
    }

    /// A robot that drives at 0.4 m/s from x = 1 m at 0 ms.
    fn tracked() -> (PoseTracker, Odometry) {
        let mut motion = Odometry::new(SkidSteer::default());
        for time in (0..=1000).step_by(50) {
            motion.handle_wheels(ms(time), Wheels::sides(0.4, 0.4));
        }
        let mut tracker = PoseTracker::new(Config::default());
        for time in [0, 100, 200] {
            let x = 1.0 + 0.4 * time as f64 / 1000.0;
            tracker.handle_pose(reading(time, x, 1.0), &motion);
        }
        (tracker, motion)
    }

    #[test]
    fn the_pose_follows_the_wheels_between_readings() {
        let (tracker, motion) = tracked();
        let Tracked::At(pose) = tracker.pose(ms(500), &motion) else {
            panic!("no pose");
        };
        assert!((pose.at.x - 1.2).abs() < 1e-9, "{pose:?}");
    }

    #[test]
    fn an_old_pose_is_lost() {
        let (tracker, motion) = tracked();
        assert!(matches!(tracker.pose(ms(800), &motion), Tracked::At(_)));
        assert_eq!(tracker.pose(ms(801), &motion), Tracked::Lost);
        let none = PoseTracker::new(Config::default());
        assert_eq!(none.pose(ms(0), &motion), Tracked::Unknown);
    }

    #[test]
    fn after_a_jump_three_poses_must_agree() {
        let (mut tracker, motion) = tracked();
        for (time, quality, sure) in [
            (300, 1.0, false),
            (400, 1.0, false),
            (450, 0.5, false),
            (500, 1.0, false),
            (600, 1.0, true),
        ] {
            let x = 3.0 + 0.4 * time as f64 / 1000.0;
            tracker.handle_pose(reading(time, x, quality), &motion);
            let pose = tracker.pose(ms(time), &motion);
            assert_eq!(matches!(pose, Tracked::At(_)), sure, "{time}: {pose:?}");
        }
        assert_eq!(tracker.jumps(), 1);
    }

    #[test]
    fn a_source_that_no_longer_knows_the_pose_is_believed_before_the_timeout() {
        let (mut tracker, motion) = tracked();
        for (time, is_known) in [(250, true), (300, true), (350, false)] {
            tracker.handle_pose(reading(time, 1.0, 0.1), &motion);
            let pose = tracker.pose(ms(time), &motion);
            assert_eq!(matches!(pose, Tracked::At(_)), is_known, "{time}: {pose:?}");
        }
        assert_eq!(tracker.pose(ms(350), &motion), Tracked::Undecided);
        assert_eq!(tracker.pose(ms(1000), &motion), Tracked::Lost);
        tracker.handle_pose(reading(400, 1.16, 0.9), &motion);
        assert!(matches!(tracker.pose(ms(400), &motion), Tracked::At(_)));
    }

    #[test]
    fn only_a_source_with_some_pose_is_undecided() {
        let (_, motion) = tracked();
        for (quality, expected) in [(0.0, Tracked::Unknown), (0.1, Tracked::Undecided)] {
            let mut tracker = PoseTracker::new(Config::default());
            for time in [200, 250, 300] {
                tracker.handle_pose(reading(time, 0.0, quality), &motion);
            }
            assert_eq!(tracker.pose(ms(300), &motion), expected);
        }
    }

    #[test]
    fn poor_late_and_invalid_poses_are_ignored() {
        let (mut tracker, motion) = tracked();
        let before = tracker.last();
        for bad in [
            reading(300, 9.0, 0.2),
            reading(200, 9.0, 1.0),
            reading(300, f64::NAN, 1.0),
        ] {
            tracker.handle_pose(bad, &motion);
            assert_eq!(tracker.last(), before);
        }
    }
}
