//! The motion of the robot from the speeds of its wheels. PURE.
//!
//! The robot turns by skidding: with an effective track `W`, its speed is `(right + left) / 2` and
//! its turn rate `(right - left) / W`. Between two samples the speeds change linearly; each interval
//! is an exact arc with the mean speeds. Probabilistic Robotics (Thrun, Burgard, Fox, 2005), chapter
//! 5.3, has the arc.

use std::collections::VecDeque;
use std::time::Duration;

use amber_map::{Point, Pose};

/// How long samples are remembered: longer than a scan takes and waits.
const MEMORY: Duration = Duration::from_secs(3);
/// The maximum number of remembered samples: 1 kHz for [`MEMORY`].
const MAX_SAMPLES: usize = 3_000;
/// After the last sample the speeds count as constant for this time, and then as zero.
const HOLD: Duration = Duration::from_millis(300);

/// The speeds of the left and right wheels at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Speeds {
    /// When they were measured, since any fixed start.
    pub time: Duration,
    /// The mean of the left wheels in metres per second, positive forward.
    pub left_m_s: f64,
    /// The mean of the right wheels in metres per second, positive forward.
    pub right_m_s: f64,
}

/// Speed and turn rate of the robot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Twist {
    /// Metres per second ahead.
    pub speed_m_s: f64,
    /// Radians per second, counter-clockwise.
    pub turn_rad_s: f64,
}

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

/// The recent speeds of the wheels.
#[derive(Clone, Debug)]
pub struct Odometry {
    track_m: f64,
    samples: VecDeque<Speeds>,
}

impl Odometry {
    /// Creates an odometry without samples, for an effective track in metres.
    #[must_use]
    pub fn new(track_m: f64) -> Self {
        Self {
            track_m,
            samples: VecDeque::new(),
        }
    }

    /// Adds a sample. Samples may arrive in any order; a second sample with the same time replaces
    /// the first. Returns whether the sample is useful: its speeds are finite and it is not older
    /// than the memory.
    pub fn handle_speeds(&mut self, speeds: Speeds) -> bool {
        let latest = self.latest().unwrap_or_default().max(speeds.time);
        let too_old = speeds.time + MEMORY < latest;
        if too_old || !speeds.left_m_s.is_finite() || !speeds.right_m_s.is_finite() {
            return false;
        }
        let place = self
            .samples
            .partition_point(|other| other.time < speeds.time);
        match self.samples.get_mut(place) {
            Some(other) if other.time == speeds.time => *other = speeds,
            _ => self.samples.insert(place, speeds),
        }
        while self.samples.len() > MAX_SAMPLES
            || self
                .samples
                .front()
                .is_some_and(|first| first.time + MEMORY < latest)
        {
            self.samples.pop_front();
        }
        true
    }

    /// The time of the newest sample.
    #[must_use]
    pub fn latest(&self) -> Option<Duration> {
        self.samples.back().map(|speeds| speeds.time)
    }

    /// Speed and turn rate at a time.
    #[must_use]
    pub fn twist(&self, time: Duration) -> Twist {
        self.known_twist(time).unwrap_or_default()
    }

    /// The motion between two times. If the second is earlier, the pose is that of the way back.
    #[must_use]
    pub fn motion(&self, from: Duration, to: Duration) -> Motion {
        if to < from {
            let there = self.motion(to, from);
            return Motion {
                pose: inverse(there.pose),
                ..there
            };
        }
        let mut motion = Motion::default();
        let first = self.samples.partition_point(|speeds| speeds.time <= from);
        let mut at = from;
        let knots = self.samples.range(first..).map(|speeds| speeds.time);
        let hold_ends = self.latest().map(|latest| latest + HOLD);
        for knot in knots
            .chain(hold_ends)
            .filter(|knot| *knot > from && *knot < to)
            .chain([to])
        {
            let dt_s = knot.saturating_sub(at).as_secs_f64();
            let middle = at + knot.saturating_sub(at) / 2;
            let twist = self.known_twist(middle);
            let (way_m, turn) = twist.map_or((0.0, 0.0), |twist| {
                (twist.speed_m_s * dt_s, twist.turn_rad_s * dt_s)
            });
            motion.pose = arc(motion.pose, way_m, turn);
            motion.path_m += way_m.abs();
            motion.turns_rad += turn.abs();
            motion.time_s += dt_s;
            if twist.is_none() {
                motion.unknown_s += dt_s;
            }
            at = knot;
        }
        motion
    }

    fn known_twist(&self, time: Duration) -> Option<Twist> {
        let after = self.samples.partition_point(|speeds| speeds.time <= time);
        let before = self.samples.get(after.checked_sub(1)?)?;
        let Some(next) = self.samples.get(after) else {
            return (time <= before.time + HOLD)
                .then(|| self.twist_of(before.left_m_s, before.right_m_s));
        };
        let length_s = (next.time - before.time).as_secs_f64();
        let part = (time - before.time).as_secs_f64() / length_s;
        let between = |a: f64, b: f64| a + (b - a) * part;
        Some(self.twist_of(
            between(before.left_m_s, next.left_m_s),
            between(before.right_m_s, next.right_m_s),
        ))
    }

    fn twist_of(&self, left_m_s: f64, right_m_s: f64) -> Twist {
        Twist {
            speed_m_s: (left_m_s + right_m_s) / 2.0,
            turn_rad_s: (right_m_s - left_m_s) / self.track_m,
        }
    }
}

/// The pose after driving and turning at the same time.
#[must_use]
pub fn arc(pose: Pose, way_m: f64, turn: f64) -> Pose {
    let half = turn / 2.0;
    let chord_m = if half.abs() < 1e-9 {
        way_m
    } else {
        way_m * half.sin() / half
    };
    Pose {
        at: pose
            .at
            .plus(Point::new(chord_m, 0.0).turned(pose.heading + half)),
        heading: pose.heading + turn,
    }
}

/// A pose in the frame of another pose, in the frame of the plane.
#[must_use]
pub fn compose(base: Pose, local: Pose) -> Pose {
    Pose {
        at: base.at.plus(local.at.turned(base.heading)),
        heading: base.heading + local.heading,
    }
}

/// The origin in the frame of a pose.
#[must_use]
pub fn inverse(pose: Pose) -> Pose {
    Pose {
        at: Point::default().minus(pose.at).turned(-pose.heading),
        heading: -pose.heading,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRACK_M: f64 = 0.42;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn speeds(time_ms: u64, left_m_s: f64, right_m_s: f64) -> Speeds {
        let time = ms(time_ms);
        Speeds {
            time,
            left_m_s,
            right_m_s,
        }
    }

    #[track_caller]
    fn assert_near(a: Pose, b: Pose) {
        let near = a.at.minus(b.at).length() < 1e-9 && (a.heading - b.heading).abs() < 1e-9;
        assert!(near, "{a:?} {b:?}");
    }

    #[test]
    fn equal_speeds_are_a_straight_line_and_a_faster_right_side_turns_left() {
        let mut odometry = Odometry::new(TRACK_M);
        for time_ms in [0, 1000] {
            odometry.handle_speeds(speeds(time_ms, 0.2, 0.2));
        }
        assert_near(
            odometry.motion(ms(0), ms(500)).pose,
            Pose::new(0.1, 0.0, 0.0),
        );
        odometry.handle_speeds(speeds(1001, 0.0, 0.42));
        odometry.handle_speeds(speeds(2001, 0.0, 0.42));
        let motion = odometry.motion(ms(1001), ms(2001));
        assert_near(motion.pose, arc(Pose::default(), 0.21, 1.0));
        assert!((motion.turns_rad - 1.0).abs() < 1e-9 && motion.unknown_s == 0.0);
    }

    #[test]
    fn speeds_change_linearly_between_samples() {
        let mut odometry = Odometry::new(TRACK_M);
        odometry.handle_speeds(speeds(0, 0.0, 0.0));
        odometry.handle_speeds(speeds(1000, 1.0, 1.0));
        let way_m = odometry.motion(ms(0), ms(1000)).pose.at.x;
        assert!((way_m - 0.5).abs() < 1e-9);
        assert!((odometry.twist(ms(250)).speed_m_s - 0.25).abs() < 1e-9);
    }

    #[test]
    fn the_last_speeds_hold_for_a_short_time() {
        let mut odometry = Odometry::new(TRACK_M);
        odometry.handle_speeds(speeds(0, 1.0, 1.0));
        let motion = odometry.motion(ms(0), ms(1000));
        assert!((motion.pose.at.x - 0.3).abs() < 1e-9, "{motion:?}");
        assert!((motion.unknown_s - 0.7).abs() < 1e-9, "{motion:?}");
    }

    #[test]
    fn useless_samples_are_refused() {
        let mut odometry = Odometry::new(TRACK_M);
        assert!(odometry.handle_speeds(speeds(10_000, 0.0, 0.0)));
        assert!(!odometry.handle_speeds(speeds(10, 0.0, 0.0)));
        assert!(!odometry.handle_speeds(speeds(10_001, f64::NAN, 0.0)));
        for time_ms in 0..10_000 {
            odometry.handle_speeds(speeds(10_000 + time_ms, 0.0, 0.0));
        }
        assert!(odometry.samples.len() <= MAX_SAMPLES + 1);
    }

    proptest! {
        #[test]
        fn the_order_of_arrival_does_not_matter(
            mut samples in prop::collection::vec((0..2000u64, -1.0..1.0, -1.0..1.0), 1..20),
        ) {
            samples.sort_by_key(|sample| sample.0);
            samples.dedup_by_key(|sample| sample.0);
            let motion = |samples: &[(u64, f64, f64)]| {
                let mut odometry = Odometry::new(TRACK_M);
                for (time_ms, left, right) in samples {
                    odometry.handle_speeds(speeds(*time_ms, *left, *right));
                }
                odometry.motion(ms(100), ms(1900))
            };
            let sorted = motion(&samples);
            samples.reverse();
            prop_assert_eq!(sorted, motion(&samples));
        }

        #[test]
        fn a_motion_is_the_sum_of_its_parts(
            samples in prop::collection::vec((1..150u64, -1.0..1.0, -1.0..1.0), 2..20),
            middle_share in 0.0..1.0,
        ) {
            let mut odometry = Odometry::new(TRACK_M);
            let mut end_ms = 0;
            for (gap_ms, left, right) in samples {
                end_ms += gap_ms;
                odometry.handle_speeds(speeds(end_ms, left, right));
            }
            let middle_ms = (end_ms as f64 * middle_share) as u64;
            // A knot in the middle changes nothing but the arc of its own interval: at most 0.15 m
            // long, and turned by less than 0.7 rad.
            let whole = odometry.motion(ms(0), ms(end_ms));
            let first = odometry.motion(ms(0), ms(middle_ms));
            let second = odometry.motion(ms(middle_ms), ms(end_ms));
            let sum = compose(first.pose, second.pose);
            prop_assert!(sum.at.minus(whole.pose.at).length() < 0.05, "{sum:?} {whole:?}");
            prop_assert!((sum.heading - whole.pose.heading).abs() < 1e-6);
            let back = odometry.motion(ms(end_ms), ms(0)).pose;
            let origin = compose(whole.pose, back);
            prop_assert!(origin.at.length() < 1e-9 && origin.heading.abs() < 1e-9);
        }
    }
}
