//! Dead reckoning: the pose from measured wheel speeds. PURE.
//!
//! The pose starts at the origin of a frame of its own, the *odometry frame*. It drifts, but over
//! the few seconds for which obstacles are remembered the drift is small.

use std::collections::VecDeque;
use std::time::Duration;

use amber_map::Pose;

use crate::kinematics::{SkidSteer, Twist, Wheels};

/// How long poses are remembered: longer than a scan is late.
const HISTORY: Duration = Duration::from_millis(1500);
/// The longest time for which one measurement holds. A longer gap counts as standing still.
const MAX_GAP: Duration = Duration::from_millis(500);
/// The maximum number of remembered poses: 1.5 s at 200 measurements per second.
const MAX_POSES: usize = 300;

/// The pose in the odometry frame.
#[derive(Clone, Debug)]
pub struct DeadReckoning {
    drive: SkidSteer,
    past: VecDeque<(Duration, Pose)>,
    twist: Twist,
    updated: Option<Duration>,
}

impl DeadReckoning {
    /// Creates a pose at the origin.
    #[must_use]
    pub fn new(drive: SkidSteer) -> Self {
        Self {
            drive,
            past: VecDeque::new(),
            twist: Twist::STOP,
            updated: None,
        }
    }

    /// The wheels were measured. Late and invalid measurements are ignored.
    pub fn handle_wheels(&mut self, time: Duration, wheels: Wheels) {
        if !wheels.is_finite() || self.updated.is_some_and(|updated| time <= updated) {
            return;
        }
        let now = self.drive.twist(wheels);
        let pose = match self.updated {
            None => Pose::default(),
            Some(_) => {
                // The speed changes evenly between two measurements.
                let mean = Twist::new(
                    f64::midpoint(self.twist.forward_m_s, now.forward_m_s),
                    f64::midpoint(self.twist.turn_rad_s, now.turn_rad_s),
                );
                self.ahead(mean, time)
            }
        };
        self.past.push_back((time, pose));
        while self.past.len() > MAX_POSES || self.past[0].0 + HISTORY < time {
            self.past.pop_front();
        }
        self.twist = now;
        self.updated = Some(time);
    }

    /// The pose at a time: interpolated in the past, extrapolated in the future.
    #[must_use]
    pub fn pose_at(&self, time: Duration) -> Pose {
        let after = self.past.partition_point(|(at, _)| *at <= time);
        match (
            after.checked_sub(1).map(|index| self.past[index]),
            self.past.get(after),
        ) {
            (Some(before), Some(next)) => {
                let part = (time - before.0).as_secs_f64() / (next.0 - before.0).as_secs_f64();
                let way = next.1.at.minus(before.1.at);
                let turn = next.1.heading - before.1.heading;
                Pose {
                    at: before.1.at.plus(way.times(part)),
                    heading: before.1.heading + turn * part,
                }
            }
            (Some(_), None) => self.ahead(self.twist, time),
            (None, Some(first)) => first.1,
            (None, None) => Pose::default(),
        }
    }

    /// The last measured motion.
    #[must_use]
    pub fn twist(&self) -> Twist {
        self.twist
    }

    /// When the wheels were last measured.
    #[must_use]
    pub fn updated(&self) -> Option<Duration> {
        self.updated
    }

    /// The pose after the last one at a constant motion.
    fn ahead(&self, twist: Twist, time: Duration) -> Pose {
        let Some((updated, pose)) = self.past.back() else {
            return Pose::default();
        };
        let dt_s = time.saturating_sub(*updated).min(MAX_GAP).as_secs_f64();
        pose.along_arc(twist.forward_m_s * dt_s, twist.turn_rad_s * dt_s)
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_circle_returns_to_its_start() {
        let drive = SkidSteer::default();
        let mut odometry = DeadReckoning::new(drive);
        // One turn in 4 s.
        let wheels = drive.wheels(Twist::new(0.3, PI / 2.0));
        for step in 0..=80 {
            odometry.handle_wheels(ms(50 * step), wheels);
        }
        let pose = odometry.pose_at(ms(4000));
        assert!(pose.at.length() < 1e-9, "{pose:?}");
        assert!((pose.heading - 2.0 * PI).abs() < 1e-9);
        let half = odometry.pose_at(ms(3000));
        assert!((half.heading - 1.5 * PI).abs() < 1e-9);
    }

    #[test]
    fn poses_are_interpolated_and_extrapolated() {
        let mut odometry = DeadReckoning::new(SkidSteer::default());
        for time in [1000, 1100, 1200] {
            odometry.handle_wheels(ms(time), Wheels::sides(0.5, 0.5));
        }
        for (time, x) in [(900, 0.0), (1050, 0.025), (1150, 0.075), (1300, 0.15)] {
            assert!((odometry.pose_at(ms(time)).at.x - x).abs() < 1e-9, "{time}");
        }
        // Without measurements it stands still after a while.
        assert!((odometry.pose_at(ms(60_000)).at.x - 0.35).abs() < 1e-9);
    }

    #[test]
    fn invalid_and_late_measurements_are_ignored() {
        let mut odometry = DeadReckoning::new(SkidSteer::default());
        odometry.handle_wheels(ms(1000), Wheels::sides(0.5, 0.5));
        odometry.handle_wheels(ms(900), Wheels::sides(9.0, 9.0));
        odometry.handle_wheels(ms(1100), Wheels::sides(f64::NAN, 0.0));
        assert_eq!(odometry.updated(), Some(ms(1000)));
        assert_eq!(odometry.twist(), Twist::new(0.5, 0.0));
    }

    #[test]
    fn memory_is_bounded() {
        let mut odometry = DeadReckoning::new(SkidSteer::default());
        for time in 0..10_000 {
            odometry.handle_wheels(ms(time), Wheels::STOP);
        }
        assert!(odometry.past.len() <= MAX_POSES);
    }
}
