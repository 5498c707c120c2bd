//! Recovery of a robot that makes no progress. PURE.
//!
//! It plans around, drives back to where it has room, waits for obstacles to go away, and at last skips
//! the target.

use std::f64::consts::PI;
use std::time::Duration;

use amber_map::{Point, Pose};

use super::{DriveToPoint, Skipped, State, Target};
use crate::kinematics::Twist;

/// The robot drives back for at most this long.
const RETREAT_TIME: Duration = Duration::from_secs(20);
/// With this room, the robot can turn on the spot.
const ROOM_M: f64 = 0.02;
/// If something stops the robot on its way back for this long, it moves away from obstacles first...
const BLOCKED_TIME: Duration = Duration::from_millis(500);
/// ...for at most this long...
const WRIGGLE_TIME: Duration = Duration::from_secs(3);
/// ...and at most so often.
const MAX_WRIGGLES: u32 = 2;
/// The last waits are longer by this factor.
const LAST_WAIT: u32 = 2;
/// The robot drives back at most so often on its way to a target.
const MAX_RETREATS: u32 = 5;

/// The action of the robot before it retries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Recovery {
    /// It drives back the way that it came, to a place where it can turn.
    Retreat(Retreat),
    /// It waits for an obstacle to go away.
    Wait {
        /// The end.
        until: Duration,
    },
}

/// The way back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retreat {
    /// Its start, in the odometry frame.
    from: Point,
    until: Duration,
    wriggles: u32,
    /// Until when the robot moves away from obstacles.
    wriggles_until: Option<Duration>,
}

impl DriveToPoint {
    /// The robot does not get on: it plans around, then drives back, then waits, then gives up.
    pub(super) fn fail(&mut self, now: Duration, target: Target) {
        self.retry(now, target, true);
    }

    /// Obstacles close the way. Where the robot can turn, it waits: a way back gains nothing, and may
    /// lead to what closes the way.
    pub(super) fn fail_to_plan(&mut self, now: Duration, target: Target) {
        self.retry(now, target, !self.has_room(now));
    }

    fn retry(&mut self, now: Duration, target: Target, drives_back: bool) {
        self.attempts += 1;
        self.follower = None;
        self.blocked_since = None;
        self.progress = (now, 0.0);
        match self.attempts {
            1 => {}
            2 | 4 if drives_back => self.retreat(now, target),
            2..=5 => {
                let times = if self.attempts <= 3 { 1 } else { LAST_WAIT };
                self.recovery = Some(Recovery::Wait {
                    until: now + self.config.wait_time * times,
                });
            }
            attempts => self.give_up(now, target, attempts - 1),
        }
    }

    /// The robot has no room for the turn that it needs: it drives back.
    pub(super) fn fail_to_turn(&mut self, now: Duration, target: Target) {
        self.attempts += 1;
        self.follower = None;
        self.blocked_since = None;
        self.progress = (now, 0.0);
        self.retreat(now, target);
    }

    /// Whether it can turn on the spot.
    fn has_room(&self, now: Duration) -> bool {
        self.monitor.turn_room_m(now, PI) >= ROOM_M
    }

    fn retreat(&mut self, now: Duration, target: Target) {
        self.retreats += 1;
        if self.retreats > MAX_RETREATS {
            self.give_up(now, target, self.attempts);
            return;
        }
        self.recovery = Some(Recovery::Retreat(Retreat {
            from: self.monitor.odometry().pose_at(now).at,
            until: now + RETREAT_TIME,
            wriggles: 0,
            wriggles_until: None,
        }));
    }

    fn give_up(&mut self, now: Duration, target: Target, attempts: u32) {
        self.next.pop_front();
        self.skip(target, Skipped::NoProgress(attempts));
        self.begin_target(now);
    }

    /// The motion of the recovery, if there is one.
    pub(super) fn recover(&mut self, now: Duration) -> Option<(State, Twist)> {
        match self.recovery? {
            Recovery::Retreat(mut retreat) => {
                let motion = self.drive_back(now, &mut retreat);
                self.recovery = Some(Recovery::Retreat(retreat));
                if let Some(twist) = motion {
                    return Some((State::BackingUp, twist));
                }
            }
            Recovery::Wait { until } => {
                if now < until {
                    return Some((State::Waiting, Twist::STOP));
                }
                self.forget_unseen_obstacles(now);
            }
        }
        self.recovery = None;
        self.blocked_since = None;
        None
    }

    fn drive_back(&mut self, now: Duration, retreat: &mut Retreat) -> Option<Twist> {
        let robot = self.monitor.odometry().pose_at(now);
        let way_m = robot.at.minus(retreat.from).length();
        let is_far = way_m >= self.config.back_up_m;
        if now >= retreat.until || is_far && self.has_room(now) {
            return None;
        }
        if let Some(twist) = self.wriggle(now, retreat) {
            return Some(twist);
        }
        let is_blocked = |since| now.saturating_sub(since) > BLOCKED_TIME;
        if self.blocked_since.is_some_and(is_blocked) {
            self.blocked_since = None;
            if retreat.wriggles == MAX_WRIGGLES || self.trail.is_empty() {
                return None;
            }
            retreat.wriggles += 1;
            retreat.wriggles_until = Some(now + WRIGGLE_TIME);
        }
        self.back(now, robot, is_far)
    }

    /// The motion back along the trail; without a trail, straight back a little.
    fn back(&mut self, now: Duration, robot: Pose, is_far: bool) -> Option<Twist> {
        let speed_m_s = self.config.back_up_m_s;
        let monitor = &self.monitor;
        let is_clear = |twist| monitor.allows(now, twist);
        let along_trail = self.trail.back(robot, speed_m_s, is_clear);
        along_trail.or_else(|| (!is_far).then(|| Twist::new(-speed_m_s, 0.0)))
    }

    /// A motion away from the obstacles around the robot.
    fn wriggle(&mut self, now: Duration, retreat: &mut Retreat) -> Option<Twist> {
        let is_over = now >= retreat.wriggles_until?;
        let way_out = self.monitor.way_out(now).filter(|_| !is_over);
        if way_out.is_none() {
            retreat.wriggles_until = None;
        }
        way_out
    }
}
