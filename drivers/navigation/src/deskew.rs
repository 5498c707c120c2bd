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
