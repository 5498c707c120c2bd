//! The ends of beams as they would be if the robot had stood still during the scan. PURE.
//!
//! A scanner with 600 turns a minute needs 67 ms for 240 degrees. A robot that turns by 1 rad/s
//! meanwhile turns by 4 degrees, so the first and the last wall of a scan do not fit together.

use std::time::Duration;

use amber_map::{Point, Pose};

use crate::odometry::Odometry;
use crate::scan::{Beam, Scan};

/// The end of one beam in the odometry frame, for the pose of the robot when it was measured.
/// `mount` is the pose of the scanner on the robot.
#[must_use]
pub fn end_of(beam: Beam, distance_m: f64, robot: Pose, mount: Pose) -> Point {
    let on_robot = Point::new(distance_m, 0.0).turned(mount.heading + beam.angle_rad);
    robot.global(mount.at.plus(on_robot))
}

/// The ends of all beams with a distance that `is_valid`, in the frame of the robot at a time.
#[must_use]
pub fn deskew(
    scan: &Scan,
    odometry: &Odometry,
    mount: Pose,
    reference: Duration,
    is_valid: impl Fn(f64) -> bool,
) -> Vec<Point> {
    let frame = odometry.pose_at(reference);
    let beams = scan.beams.iter().enumerate();
    let end = |(index, beam): (usize, &Beam)| {
        let distance_m = beam
            .distance_m()
            .filter(|distance_m| is_valid(*distance_m))?;
        let robot = odometry.pose_at(scan.time_of(index));
        Some(frame.local(end_of(*beam, distance_m, robot, mount)))
    };
    beams.filter_map(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinematics::{SkidSteer, Wheels};
    use crate::scan::Echo;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A robot turns on the spot, and its scanner sees a post behind it. De-skewed by the direction of
    /// the scanner, the post is in its place.
    #[test]
    fn a_post_stays_in_its_place_for_scanners_that_turn_in_either_direction() {
        let mut odometry = Odometry::new(SkidSteer::default());
        for step in 0..40 {
            odometry.handle_wheels(ms(step * 10), Wheels::sides(-0.21, 0.21));
        }
        let post = Point::new(-1.5, 0.8);
        let (start, turn, count) = (ms(150), ms(100), 400_u32);
        for turns_right in [false, true] {
            let angle_deg =
                |index: u32| (f64::from(index) + 0.5) * 360.0 / f64::from(count) - 180.0;
            let measured = (0..count).map(|index| {
                let order = if turns_right {
                    index
                } else {
                    count - 1 - index
                };
                let robot = odometry.pose_at(start + turn * order / count);
                let seen = robot.local(post);
                let off_rad = seen.y.atan2(seen.x) + angle_deg(index).to_radians();
                let is_post = off_rad.abs() < 0.02;
                (angle_deg(index), if is_post { seen.length() } else { 4.0 })
            });
            let (angles, distances): (Vec<_>, Vec<_>) = measured
                .map(|(angle_deg, m)| (angle_deg, (m * 1000.0).round() as i32))
                .unzip();
            let values = amber_values::Scan::new(&angles, &distances, None).unwrap();
            let laser = crate::scan::Laser {
                turn,
                turns_right,
                ..crate::scan::Laser::default()
            };
            let end = start + turn * (count - 1) / count;
            let error_m = |laser| {
                let scan = Scan::from_values(&values, end, laser);
                let robot = odometry.pose_at(end);
                let is_post = |distance_m: f64| distance_m < 3.0;
                let ends = deskew(&scan, &odometry, Pose::default(), end, is_post);
                assert!(ends.len() >= 2, "{ends:?}");
                let errors = ends.iter().map(|it| robot.global(*it).minus(post).length());
                errors.fold(0.0, f64::max)
            };
            assert!(error_m(&laser) < 0.05, "{turns_right}: {}", error_m(&laser));
            let wrong = crate::scan::Laser {
                turns_right: !turns_right,
                ..laser
            };
            assert!(error_m(&wrong) > 0.1, "{turns_right}: {}", error_m(&wrong));
        }
    }

    /// A scan of a straight wall 2 m ahead by a robot that drives and turns.
    #[test]
    fn a_straight_wall_stays_straight() {
        let mut odometry = Odometry::new(SkidSteer::default());
        for step in 0..40 {
            odometry.handle_wheels(ms(step * 10), Wheels::sides(0.1, 0.5));
        }
        let mount = Pose::new(0.1, 0.02, 0.05);
        let reference = ms(200);
        let frame = odometry.pose_at(reference);
        let beam_time = Duration::from_micros(500);
        let beams = (0..200).map(|index| {
            let angle_rad = (f64::from(index) - 100.0) * 0.005;
            let robot = frame.local_pose(odometry.pose_at(ms(150) + beam_time * index));
            let laser = robot.global_pose(mount);
            let distance_m = (2.0 - laser.at.x) / (laser.heading + angle_rad).cos();
            Beam {
                angle_rad,
                echo: Echo::At(distance_m),
            }
        });
        let scan = Scan {
            start: ms(150),
            beam_time,
            beams: beams.collect(),
        };
        let ends = deskew(&scan, &odometry, mount, reference, |_| true);
        assert!(
            ends.iter().all(|end| (end.x - 2.0).abs() < 1e-3),
            "{ends:?}"
        );
        let at_rest = Odometry::new(SkidSteer::default());
        let still = deskew(&scan, &at_rest, mount, reference, |_| true);
        assert!(still.iter().any(|end| (end.x - 2.0).abs() > 0.03));
    }
}
