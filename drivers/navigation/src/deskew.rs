//! The ends of beams as they would be if the robot had stood still during the scan. PURE.
//!
//! A scanner with 600 turns a minute needs 67 ms for 240 degrees. A robot that turns by 1 rad/s
//! meanwhile turns by 4 degrees, so the first and the last wall of a scan do not fit together.

use std::time::Duration;

use amber_map::{Point, Pose};

use crate::odometry::{Odometry, compose};
use crate::scan::Scan;

/// The pose during the scan is computed at this many times; between them it changes linearly.
const KNOTS: usize = 8;

/// The ends of all beams in the frame of the robot at a time. `mount` is the pose of the scanner on
/// the robot.
#[must_use]
pub fn deskew(scan: &Scan, odometry: &Odometry, mount: Pose, reference: Duration) -> Vec<Point> {
    let length = scan.end() - scan.time;
    let knot = |index: usize| {
        let time = scan.time + length.mul_f64(index as f64 / KNOTS as f64);
        odometry.motion(reference, time).pose
    };
    let poses: Vec<Pose> = (0..=KNOTS).map(knot).collect();
    let length_s = length.as_secs_f64();
    let end_of = |beam: &crate::scan::Beam| {
        let place = if length_s > 0.0 {
            (beam.delay_s / length_s).clamp(0.0, 1.0) * KNOTS as f64
        } else {
            0.0
        };
        let index = (place as usize).min(KNOTS - 1);
        let robot = between(poses[index], poses[index + 1], place - index as f64);
        let (sin, cos) = beam.angle_rad.sin_cos();
        let local = Point::new(cos, sin).times(beam.distance_m);
        let on_robot = mount.at.plus(local.turned(mount.heading));
        compose(
            robot,
            Pose {
                at: on_robot,
                heading: 0.0,
            },
        )
        .at
    };
    scan.beams.iter().map(end_of).collect()
}

fn between(a: Pose, b: Pose, part: f64) -> Pose {
    Pose {
        at: a.at.plus(b.at.minus(a.at).times(part)),
        heading: a.heading + (b.heading - a.heading) * part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::odometry::Speeds;
    use crate::scan::Beam;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A scan of a straight wall 2 m ahead by a robot that drives and turns.
    #[test]
    fn a_straight_wall_stays_straight() {
        let mut odometry = Odometry::new(0.42);
        for step in 0..40 {
            odometry.handle_speeds(Speeds {
                time: ms(step * 10),
                left_m_s: 0.1,
                right_m_s: 0.5,
            });
        }
        let mount = Pose::new(0.1, 0.02, 0.05);
        let reference = ms(200);
        let start = odometry.motion(reference, ms(150)).pose;
        let beams = (0..200).map(|index| {
            let delay_s = f64::from(index) * 0.1 / 200.0;
            let angle_rad = f64::from(index - 100) * 0.005;
            let way = odometry.motion(ms(150), ms(150) + Duration::from_secs_f64(delay_s));
            let robot = compose(start, way.pose);
            let laser = compose(robot, mount);
            let distance_m = (2.0 - laser.at.x) / (laser.heading + angle_rad).cos();
            Beam {
                angle_rad,
                distance_m,
                delay_s,
            }
        });
        let scan = Scan {
            time: ms(150),
            beams: beams.collect(),
        };
        let ends = deskew(&scan, &odometry, mount, reference);
        assert!(
            ends.iter().all(|end| (end.x - 2.0).abs() < 1e-3),
            "{ends:?}"
        );
        let still = deskew(&scan, &Odometry::new(0.42), mount, reference);
        assert!(still.iter().any(|end| (end.x - 2.0).abs() > 0.03));
    }
}
