//! Lines of CARMEN logs, as public recordings of real robots are stored. PURE.
//!
//! The format is described at <http://carmen.sourceforge.net/logger_playback.html>; positions have y to the
//! left, and angles are counter-clockwise.

use std::str::{FromStr, SplitAsciiWhitespace};
use std::time::{Duration, SystemTime};

use amber_client::Scan;
use amber_map::Pose;

use super::log::Measured;

/// A scanner with more beams is none.
const MAX_BEAMS: usize = 10_000;
/// Longer distances mean that nothing was detected.
const FAR_M: f64 = 60.0;
/// The field of view of the scanners of FLASER lines.
const VIEW_DEG: f64 = 180.0;

/// What a line says, in the order of its measurement.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) measured: Vec<Measured>,
    /// The position of the laser on the robot.
    pub(super) mount: Option<Pose>,
}

/// Reads a line. One of another kind, such as a comment, says nothing. `None` if the line is invalid.
pub(super) fn read(line: &str) -> Option<Line> {
    let mut words = Words(line.split_ascii_whitespace());
    match words.0.next() {
        Some("ODOM") => odometry(words),
        Some("FLASER") => front_laser(words),
        Some("ROBOTLASER1") => robot_laser(words),
        _ => Some(Line::default()),
    }
}

/// `ODOM x y theta tv rv accel time host logger_time`
fn odometry(mut words: Words<'_>) -> Option<Line> {
    let pose = words.pose()?;
    words.skip(3)?;
    let time = words.time()?;
    Some(Line {
        measured: vec![Measured::Odometry(time, pose)],
        mount: None,
    })
}

/// `FLASER n range... x y theta odom_x odom_y odom_theta time host logger_time`, ranges from right to left.
fn front_laser(mut words: Words<'_>) -> Option<Line> {
    let ranges = words.ranges()?;
    let (laser, robot) = (words.pose()?, words.pose()?);
    let time = words.time()?;
    // 180 or 360 beams leave out the last one of the half circle.
    let steps = ranges.len() - ranges.len() % 2;
    let step_deg = VIEW_DEG / steps.max(1) as f64;
    let scan = scan(&ranges, -VIEW_DEG / 2.0, step_deg, FAR_M)?;
    Some(Line {
        measured: vec![Measured::Odometry(time, robot), Measured::Scan(time, scan)],
        mount: Some(robot.local_pose(laser)),
    })
}

/// `ROBOTLASER1 type start view step max accuracy mode n range... m remission... laser robot tv rv
/// forward_margin side_margin turn_axis time host logger_time`, angles in radians.
fn robot_laser(mut words: Words<'_>) -> Option<Line> {
    words.skip(1)?;
    let first_deg = words.number()?.to_degrees();
    words.skip(1)?;
    let step_deg = words.number()?.to_degrees();
    let max_m = words.number()?;
    words.skip(2)?;
    let ranges = words.ranges()?;
    let remissions: usize = words.next()?;
    if remissions > MAX_BEAMS {
        return None;
    }
    words.skip(remissions)?;
    let (laser, robot) = (words.pose()?, words.pose()?);
    words.skip(5)?;
    let time = words.time()?;
    let scan = scan(&ranges, first_deg, step_deg, max_m.min(FAR_M))?;
    Some(Line {
        measured: vec![Measured::Odometry(time, robot), Measured::Scan(time, scan)],
        mount: Some(robot.local_pose(laser)),
    })
}

/// A scan of these distances in metres, counter-clockwise from the first one.
fn scan(ranges_m: &[f64], first_deg: f64, step_deg: f64, max_m: f64) -> Option<Scan> {
    // Angles of messages are clockwise and ascending.
    let point = |(index, range_m): (usize, &f64)| {
        let angle_deg = -step_deg.mul_add(index as f64, first_deg);
        let is_echo = (0.0..max_m).contains(range_m);
        // A cast saturates.
        let distance_mm = if is_echo {
            (range_m * 1000.0).round() as i32
        } else {
            0
        };
        (angle_deg, distance_mm)
    };
    let points = ranges_m.iter().enumerate().rev().map(point);
    let (angles, distances): (Vec<_>, Vec<_>) = points.unzip();
    Scan::new(&angles, &distances, None).ok()
}

/// The rest of a line.
struct Words<'a>(SplitAsciiWhitespace<'a>);

impl Words<'_> {
    fn next<T: FromStr>(&mut self) -> Option<T> {
        self.0.next()?.parse().ok()
    }

    fn number(&mut self) -> Option<f64> {
        self.next().filter(|number: &f64| number.is_finite())
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        (0..count).try_for_each(|_| self.0.next().map(|_| ()))
    }

    fn pose(&mut self) -> Option<Pose> {
        Some(Pose::new(self.number()?, self.number()?, self.number()?))
    }

    /// A number, and as many distances.
    fn ranges(&mut self) -> Option<Vec<f64>> {
        let count: usize = self.next()?;
        if count > MAX_BEAMS {
            return None;
        }
        (0..count).map(|_| self.number()).collect()
    }

    fn time(&mut self) -> Option<SystemTime> {
        let since = Duration::try_from_secs_f64(self.number()?).ok()?;
        SystemTime::UNIX_EPOCH.checked_add(since)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(ms: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(ms)
    }

    fn scan_of(line: &Line) -> &Scan {
        let [Measured::Odometry(..), Measured::Scan(_, scan)] = &line.measured[..] else {
            panic!("{line:?}");
        };
        scan
    }

    #[test]
    fn odometry_has_a_pose_and_a_time() {
        let line = read("ODOM 1.5 -2 0.25 0.3 0 0 976052857.25 nohost 0.8").unwrap();
        let [Measured::Odometry(at, pose)] = line.measured[..] else {
            panic!("{line:?}");
        };
        assert_eq!(pose, Pose::new(1.5, -2.0, 0.25));
        assert_eq!(at, time(976_052_857_250));
    }

    #[test]
    fn a_front_laser_measures_from_right_to_left() {
        let line = "FLASER 4 1.0 2.0 81.9 4.0 1.1 2.0 0.0 1.0 2.0 0.0 10.5 host 0.1";
        let line = read(line).unwrap();
        let points = scan_of(&line).points();
        let found: Vec<_> = points
            .iter()
            .map(|it| (it.angle_deg, it.distance_mm))
            .collect();
        assert_eq!(found, [(-45.0, 4000), (0.0, 0), (45.0, 2000), (90.0, 1000)]);
        let mount = line.mount.unwrap();
        assert!((mount.at.x - 0.1).abs() < 1e-9 && mount.heading.abs() < 1e-9);
    }

    #[test]
    fn half_circles_have_both_ends_or_one() {
        for (beams, last_deg) in [(180, -89.0), (181, -90.0), (360, -89.5), (361, -90.0)] {
            let ranges = " 1".repeat(beams);
            let line = format!("FLASER {beams}{ranges} 0 0 0 0 0 0 1.0 host 1.0");
            let line = read(&line).unwrap();
            let first = scan_of(&line).points()[0];
            assert_eq!(first.angle_deg, last_deg, "{beams}");
        }
    }

    #[test]
    fn a_robot_laser_says_its_angles() {
        let line = "ROBOTLASER1 0 -1.5707963 3.1415927 1.5707963 20 0.01 0 3 1 25 3 1 0 \
                    0 0 0 0.5 0 0 0 0 0.3 0.3 1e6 7.0 host 0.5";
        let line = read(line).unwrap();
        let points = scan_of(&line).points();
        let found: Vec<_> = points
            .iter()
            .map(|it| (it.angle_deg.round(), it.distance_mm))
            .collect();
        assert_eq!(found, [(-90.0, 3000), (0.0, 0), (90.0, 1000)]);
        assert!((line.mount.unwrap().at.x + 0.5).abs() < 1e-9);
    }

    #[test]
    fn other_lines_say_nothing_and_broken_ones_are_none() {
        for text in ["", "# comment", "PARAM robot_width 0.5 0 host 0", "SYNC x"] {
            assert!(read(text).unwrap().measured.is_empty(), "{text}");
        }
        for text in [
            "ODOM 1 2",
            "ODOM 1 2 nan 0 0 0 1 h 1",
            "FLASER 99999999",
            "FLASER 2 1",
        ] {
            assert!(read(text).is_none(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_line_can_be_read(text in "(ODOM|FLASER|ROBOTLASER1)( [0-9.e-]{1,8}){0,30}") {
            let _ = read(&text);
        }
    }
}
