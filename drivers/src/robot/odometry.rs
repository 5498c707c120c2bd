//! The odometry of the robot: its pose by the wheels alone, with its covariance. PURE.
//!
//! The pose starts at zero when the driver starts, and continues when clients come and go, and when
//! the robot gets another shape. It drifts, so the covariance of the pose grows with each metre and
//! each turn.

use std::time::Duration;

use amber_driver::devices::robot::{Covariance, Odometry as Message};
use amber_map::Pose;
use amber_navigation::kinematics::{SkidSteer, Twist, Wheels};
use amber_navigation::odometry::Odometry as Motion;

/// How wrong the wheels are, as standard deviations: of the way ahead and aside per square root of a
/// metre, and of the heading per square root of a metre and of a radian.
const AHEAD_M: f64 = 0.02;
const ASIDE_M: f64 = 0.01;
const HEADING_PER_M: f64 = 0.02;
const HEADING_PER_RAD: f64 = 0.05;
/// The standard deviation of a measured speed and turn rate, and their parts of the value.
const SPEED_M_S: f64 = 0.01;
const TURN_RAD_S: f64 = 0.02;
const SPEED_PART: f64 = 0.03;
const TURN_PART: f64 = 0.05;

/// The longest gap between two measurements in which the speeds are taken to change evenly. A busy
/// machine measures this rarely.
const EVEN: Duration = Duration::from_secs(2);
/// In a longer gap, up to this one, each wheel is taken to have turned with the speed that it has
/// before as well as after it. What happened in a gap that is even longer is unknown.
const BRIDGED: Duration = Duration::from_secs(10);
/// The standard deviation of the way and of the turn in a gap above [`FILLED_EVERY`], as a part of
/// them.
const GAP_PART: f64 = 0.3;
/// The time between two speeds that fill a gap: less than [`Motion`] takes for a gap.
const FILLED_EVERY: Duration = Duration::from_millis(250);

/// The pose, and how certain it is.
#[derive(Clone, Debug)]
pub(super) struct Odometry {
    drive: SkidSteer,
    motion: Motion,
    /// The pose at the start of `motion`.
    base: Pose,
    last: Option<Duration>,
    wheels: Wheels,
    twist: Twist,
    /// Of x, y and heading.
    covariance: [[f64; 3]; 3],
}

impl Odometry {
    /// At zero, where the pose is certain.
    pub(super) fn new(drive: SkidSteer) -> Self {
        Self {
            drive,
            motion: Motion::new(drive),
            base: Pose::default(),
            last: None,
            wheels: Wheels::default(),
            twist: Twist::STOP,
            covariance: [[0.0; 3]; 3],
        }
    }

    /// The robot has another shape. The pose continues.
    pub(super) fn set_drive(&mut self, drive: SkidSteer) {
        if drive != self.drive {
            self.base = self.pose();
            self.drive = drive;
            self.motion = Motion::new(drive);
            self.last = None;
        }
    }

    /// New speeds. Returns whether they are useful: later than those before, and finite.
    pub(super) fn handle_wheels(&mut self, time: Duration, wheels: Wheels) -> bool {
        let is_late = self.last.is_some_and(|last| time <= last);
        if is_late || !self.motion.handle_wheels(time, wheels) {
            return false;
        }
        if let Some(last) = self.last {
            self.fill(last, time, wheels);
            self.spread(last, time);
        }
        self.last = Some(time);
        self.wheels = wheels;
        self.twist = self.drive.twist(wheels);
        true
    }

    /// Fills a gap between two measurements that is not too long.
    fn fill(&mut self, last: Duration, time: Duration, wheels: Wheels) {
        let gap = time - last;
        if gap > BRIDGED {
            return;
        }
        let before = self.wheels;
        let mut since = FILLED_EVERY;
        while since < gap {
            let part = since.div_duration_f64(gap);
            let between = |before: f64, after: f64| match gap <= EVEN {
                true => before + (after - before) * part,
                false => common(before, after),
            };
            let speeds = Wheels {
                front_left_m_s: between(before.front_left_m_s, wheels.front_left_m_s),
                front_right_m_s: between(before.front_right_m_s, wheels.front_right_m_s),
                rear_left_m_s: between(before.rear_left_m_s, wheels.rear_left_m_s),
                rear_right_m_s: between(before.rear_right_m_s, wheels.rear_right_m_s),
            };
            self.motion.handle_wheels(last + since, speeds);
            since += FILLED_EVERY;
        }
    }

    /// The pose at the last measurement.
    fn pose(&self) -> Pose {
        let last = self.last.unwrap_or_default();
        self.base.global_pose(self.motion.pose_at(last))
    }

    /// Makes the pose less certain by the motion between two measurements.
    fn spread(&mut self, from: Duration, to: Duration) {
        let moved = self.motion.motion(from, to);
        let before = self.base.global_pose(self.motion.pose_at(from));
        let way = moved.pose.at.turned(before.heading);
        // An error of the heading turns the way.
        let jacobian = [[1.0, 0.0, -way.y], [0.0, 1.0, way.x], [0.0, 0.0, 1.0]];
        let mut covariance = [[0.0; 3]; 3];
        for (row, of_row) in jacobian.iter().enumerate() {
            for (column, of_column) in jacobian.iter().enumerate() {
                covariance[row][column] = (0..3)
                    .flat_map(|i| (0..3).map(move |j| (i, j)))
                    .map(|(i, j)| of_row[i] * self.covariance[i][j] * of_column[j])
                    .sum();
            }
        }
        let (sin, cos) = before.heading.sin_cos();
        let in_gap = if to - from > FILLED_EVERY {
            GAP_PART
        } else {
            0.0
        };
        let ahead = AHEAD_M * AHEAD_M * moved.path_m + (in_gap * moved.path_m).powi(2);
        let aside = ASIDE_M * ASIDE_M * moved.path_m;
        covariance[0][0] += ahead * cos * cos + aside * sin * sin;
        covariance[1][1] += ahead * sin * sin + aside * cos * cos;
        covariance[0][1] += (ahead - aside) * sin * cos;
        covariance[1][0] += (ahead - aside) * sin * cos;
        covariance[2][2] += HEADING_PER_M * HEADING_PER_M * moved.path_m
            + HEADING_PER_RAD * HEADING_PER_RAD * moved.turns_rad
            + (in_gap * moved.turns_rad).powi(2);
        self.covariance = covariance;
    }

    /// The message; `None` before the first measurement. `since_1970_us` is the time of the last
    /// measurement.
    pub(super) fn message(&self, since_1970_us: u64) -> Option<Message> {
        self.last?;
        let pose = self.pose();
        let [
            [xx, xy, x_heading],
            [_, yy, y_heading],
            [_, _, heading_heading],
        ] = self.covariance;
        let deviation = |least: f64, part: f64, value: f64| least.max(part * value.abs());
        let speed = deviation(SPEED_M_S, SPEED_PART, self.twist.forward_m_s);
        let turn = deviation(TURN_RAD_S, TURN_PART, self.twist.turn_rad_s);
        Some(Message {
            x: Some(pose.at.x),
            y: Some(pose.at.y),
            heading: Some(pose.heading),
            forward: Some(self.twist.forward_m_s),
            turn: Some(self.twist.turn_rad_s),
            time: Some(since_1970_us),
            covariance: Some(Covariance {
                xx: Some(xx),
                xy: Some(xy),
                yy: Some(yy),
                x_heading: Some(x_heading),
                y_heading: Some(y_heading),
                heading_heading: Some(heading_heading),
            }),
            forward_variance: Some(speed * speed),
            turn_variance: Some(turn * turn),
        })
    }
}

/// The speed that two speeds in the same direction have in common, or zero.
fn common(before: f64, after: f64) -> f64 {
    match before * after > 0.0 {
        true => before.abs().min(after.abs()).copysign(before),
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_millis(50);

    /// Drives with the same speeds for some steps.
    fn drive(odometry: &mut Odometry, from: u32, steps: u32, left: f64, right: f64) {
        for step in from..from + steps {
            assert!(odometry.handle_wheels(STEP * step, Wheels::sides(left, right)));
        }
    }

    #[test]
    fn a_straight_way_is_certain_along_and_less_aside() {
        let mut odometry = Odometry::new(SkidSteer::default());
        assert_eq!(odometry.message(1), None);
        drive(&mut odometry, 0, 101, 0.4, 0.4);
        let message = odometry.message(7).unwrap();
        assert!((message.x() - 2.0).abs() < 1e-9, "{message:?}");
        assert_eq!((message.y(), message.time()), (0.0, 7));
        assert_eq!((message.forward(), message.turn()), (0.4, 0.0));
        let covariance = message.covariance.unwrap();
        assert!((covariance.xx() - AHEAD_M * AHEAD_M * 2.0).abs() < 1e-9);
        assert!((covariance.heading_heading() - HEADING_PER_M.powi(2) * 2.0).abs() < 1e-9);
        // The error of the heading grows into one aside.
        assert!(covariance.yy() > covariance.xx(), "{covariance:?}");
        assert!(covariance.y_heading() > 0.0);
    }

    #[test]
    fn a_robot_that_stands_stays_where_it_is() {
        let mut odometry = Odometry::new(SkidSteer::default());
        drive(&mut odometry, 0, 20, 0.3, -0.3);
        // It brakes between two measurements.
        drive(&mut odometry, 20, 1, 0.0, 0.0);
        let before = odometry.message(0).unwrap();
        drive(&mut odometry, 21, 200, 0.0, 0.0);
        assert_eq!(odometry.message(0).unwrap(), before);
        // Turning to the right is negative.
        assert!(before.heading() < -0.5, "{before:?}");
    }

    #[test]
    fn the_way_in_a_gap_of_a_busy_machine_counts_and_is_less_certain() {
        for (gap_ms, way_m) in [(700, 0.28), (1_900, 0.76), (5_000, 2.0), (12_000, 0.2)] {
            let mut odometry = Odometry::new(SkidSteer::default());
            drive(&mut odometry, 0, 1, 0.4, 0.4);
            let end = Duration::from_millis(gap_ms);
            assert!(odometry.handle_wheels(end, Wheels::sides(0.4, 0.4)));
            let message = odometry.message(0).unwrap();
            assert!(
                (message.x() - way_m).abs() < 1e-9,
                "{gap_ms} ms: {}",
                message.x()
            );
        }
        // What nobody measured is less certain than what somebody did.
        let certainty = |step_ms: u32| {
            let mut odometry = Odometry::new(SkidSteer::default());
            for time_ms in (0..=3_000).step_by(step_ms as usize) {
                let time = Duration::from_millis(time_ms);
                assert!(odometry.handle_wheels(time, Wheels::sides(0.4, 0.4)));
            }
            odometry.message(0).unwrap().covariance.unwrap().xx()
        };
        assert!((certainty(3_000) - certainty(50) - (GAP_PART * 1.2).powi(2)).abs() < 1e-9);
        // In a long gap, the robot may have stopped at once, but it did not turn round.
        for (after, way_m) in [(0.2, 0.2 * 5.0 + 0.025), (0.0, 0.05), (-0.4, 0.0)] {
            let mut odometry = Odometry::new(SkidSteer::default());
            drive(&mut odometry, 0, 1, 0.4, 0.4);
            let end = Duration::from_secs(5);
            assert!(odometry.handle_wheels(end, Wheels::sides(after, after)));
            let x = odometry.message(0).unwrap().x();
            assert!((x - way_m).abs() < 1e-9, "{after}: {x}");
        }
        // In a short one, the speeds change evenly.
        let mut odometry = Odometry::new(SkidSteer::default());
        drive(&mut odometry, 0, 1, 0.4, 0.4);
        assert!(odometry.handle_wheels(Duration::from_secs(1), Wheels::default()));
        assert!((odometry.message(0).unwrap().x() - 0.2).abs() < 1e-9);
    }

    #[test]
    fn late_and_invalid_speeds_are_ignored() {
        let mut odometry = Odometry::new(SkidSteer::default());
        drive(&mut odometry, 5, 1, 0.1, 0.1);
        assert!(!odometry.handle_wheels(STEP * 5, Wheels::sides(1.0, 1.0)));
        assert!(!odometry.handle_wheels(STEP * 4, Wheels::sides(1.0, 1.0)));
        assert!(!odometry.handle_wheels(STEP * 6, Wheels::sides(f64::NAN, 1.0)));
        assert_eq!(odometry.message(0).unwrap().forward(), 0.1);
    }

    #[test]
    fn the_pose_continues_with_another_shape() {
        let mut odometry = Odometry::new(SkidSteer::default());
        drive(&mut odometry, 0, 50, 0.2, 0.3);
        let before = odometry.message(0).unwrap();
        odometry.set_drive(SkidSteer {
            track_m: 0.5,
            ..SkidSteer::default()
        });
        drive(&mut odometry, 51, 1, 0.2, 0.3);
        let after = odometry.message(0).unwrap();
        assert!(
            (after.x() - before.x()).abs() < 0.02,
            "{before:?} {after:?}"
        );
        assert!((after.heading() - before.heading()).abs() < 0.02);
        assert!(after.covariance.unwrap().xx() >= before.covariance.unwrap().xx());
    }
}
