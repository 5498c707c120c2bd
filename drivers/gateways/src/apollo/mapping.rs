//! Converts between the messages of Apollo and those of Amber. PURE.
//!
//! Apollo: metres to the east and north, radians counter-clockwise from east. Amber's map is shown
//! with east along x and north along y (up), moved by a configured origin.

use std::f64::consts::FRAC_PI_2;

use amber_map::{Pose, wrap};
use amber_navigation::kinematics::{SkidSteer, Wheels};
use amber_values::{MapPose, Scan, Target, WheelSpeeds};

use super::limits::{MAX_TARGETS, TARGET_RADIUS_M, TARGET_SPACING_M};
use super::messages::{
    AdcTrajectory, Chassis, GearPosition, Header, LocalizationEstimate, PointCloud, PointEnu,
    PointXyzit, Pose as ApolloPose, Quaternion, WheelSpeed, wheel_speed::Direction,
};

/// The origin of Amber's map in Apollo's coordinates, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Origin {
    /// To the east.
    pub east_m: f64,
    /// To the north.
    pub north_m: f64,
}

/// The area of the map that trajectories must not leave, in metres, y up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// From this x to that.
    pub x_m: [f64; 2],
    /// From this y to that.
    pub y_m: [f64; 2],
}

impl Area {
    fn contains(&self, x: f64, y: f64) -> bool {
        let within = |[from, to]: [f64; 2], value| (from..=to).contains(&value);
        within(self.x_m, x) && within(self.y_m, y)
    }
}

/// The report of the vehicle.
pub fn chassis(header: Header, drive: SkidSteer, speeds: WheelSpeeds) -> Chassis {
    let forward_m_s = drive.twist(Wheels::from(speeds)).forward_m_s;
    let wheel = |mm_s: i32| {
        let direction = match mm_s {
            1.. => Direction::Forward,
            0 => Direction::Standstill,
            ..0 => Direction::Backward,
        };
        (
            Some(true),
            Some(direction.into()),
            Some(f64::from(mm_s.unsigned_abs()) / 1000.0),
        )
    };
    let rear_right = wheel(speeds.rear_right_mm_s);
    let rear_left = wheel(speeds.rear_left_mm_s);
    let front_right = wheel(speeds.front_right_mm_s);
    let front_left = wheel(speeds.front_left_mm_s);
    Chassis {
        engine_started: Some(true),
        speed_mps: Some(forward_m_s as f32),
        header: Some(header),
        wheel_speed: Some(WheelSpeed {
            is_wheel_spd_rr_valid: rear_right.0,
            wheel_direction_rr: rear_right.1,
            wheel_spd_rr: rear_right.2,
            is_wheel_spd_rl_valid: rear_left.0,
            wheel_direction_rl: rear_left.1,
            wheel_spd_rl: rear_left.2,
            is_wheel_spd_fr_valid: front_right.0,
            wheel_direction_fr: front_right.1,
            wheel_spd_fr: front_right.2,
            is_wheel_spd_fl_valid: front_left.0,
            wheel_direction_fl: front_left.1,
            wheel_spd_fl: front_left.2,
        }),
    }
}

/// The wheel speeds of a vehicle that reports only its speed. `None` if it does not.
pub fn wheel_speeds(chassis: &Chassis) -> Option<WheelSpeeds> {
    let speed_m_s = chassis.speed_mps.filter(|speed| speed.is_finite())?;
    // Casts from floating point saturate.
    Some(WheelSpeeds::all(
        (f64::from(speed_m_s) * 1000.0).round() as i32
    ))
}

/// The pose of the robot.
pub fn localization(header: Header, origin: Origin, pose: MapPose) -> LocalizationEstimate {
    let measured = pose.timestamp_ms.map(|ms| ms as f64 / 1000.0);
    let measurement_time = measured.or(header.timestamp_sec);
    let pose = Pose::from(pose);
    // The vehicle's axes are right and forward, so its forward axis is y.
    let (sin, cos) = ((pose.heading - FRAC_PI_2) / 2.0).sin_cos();
    LocalizationEstimate {
        header: Some(header),
        pose: Some(ApolloPose {
            position: Some(PointEnu {
                x: Some(pose.at.x + origin.east_m),
                y: Some(pose.at.y + origin.north_m),
                z: Some(0.0),
            }),
            orientation: Some(Quaternion {
                qx: Some(0.0),
                qy: Some(0.0),
                qz: Some(sin),
                qw: Some(cos),
            }),
            heading: Some(pose.heading),
        }),
        measurement_time,
    }
}

/// A pose on Amber's map. `None` if the message has none, or it is not finite.
pub fn map_pose(estimate: &LocalizationEstimate, origin: Origin) -> Option<MapPose> {
    let pose = estimate.pose.as_ref()?;
    let position = pose.position.as_ref()?;
    let heading = pose.heading.or_else(|| {
        let q = pose.orientation.as_ref()?;
        let (x, y, z, w) = (q.qx(), q.qy(), q.qz(), q.qw());
        let yaw = (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z));
        Some(yaw + FRAC_PI_2)
    })?;
    let (x, y) = (position.x? - origin.east_m, position.y? - origin.north_m);
    if !(x.is_finite() && y.is_finite() && heading.is_finite()) {
        return None;
    }
    let time_s = estimate
        .header
        .as_ref()
        .and_then(|header| header.timestamp_sec);
    Some(MapPose {
        // Casts from floating point saturate.
        timestamp_ms: time_s
            .map(|time_s| (time_s * 1000.0) as i64)
            .filter(|ms| *ms > 0),
        ..MapPose::from(Pose::new(x, y, wrap(heading)))
    })
}

/// The valid points of a scan.
pub fn point_cloud(header: Header, scan: &Scan, stamps: bool) -> PointCloud {
    let measured_ms = scan.timestamp_ms();
    let time_s = measured_ms
        .map(|ms| ms as f64 / 1000.0)
        .or(header.timestamp_sec);
    let stamp = time_s
        .filter(|_| stamps)
        .map(|time_s| (time_s * 1e9) as u64);
    let points: Vec<_> = scan
        .valid_points()
        .map(|point| {
            let (front, right) = point.x_y_m();
            PointXyzit {
                x: Some(front as f32),
                y: Some(-right as f32),
                z: Some(0.0),
                intensity: Some(0),
                timestamp: stamp,
            }
        })
        .collect();
    PointCloud {
        header: Some(header),
        frame_id: Some("laser".to_owned()),
        is_dense: Some(true),
        width: u32::try_from(points.len()).ok(),
        height: Some(1),
        point: points,
        measurement_time: time_s,
    }
}

/// The command in a trajectory.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// Drive through these points.
    Drive(Vec<Target>),
    /// Stop: an emergency stop, a gear other than drive, or no points.
    Stop,
}

/// A trajectory that is not followed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadTrajectory {
    /// A coordinate is infinite or NaN.
    #[error("a point is not finite")]
    NotFinite,
    /// It leaves the area.
    #[error("a point is outside of the area")]
    Outside,
}

impl BadTrajectory {
    /// The reason, for counters and log lines.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFinite => "trajectory point is not finite",
            Self::Outside => "trajectory leaves the area",
        }
    }
}

/// The targets of a trajectory: its points, not too close to each other, and not too many. Its end
/// replaces a point that is too close to it.
///
/// # Errors
/// A point is not finite or outside of the area.
pub fn wish(trajectory: &AdcTrajectory, origin: Origin, area: Area) -> Result<Wish, BadTrajectory> {
    let stops = trajectory
        .estop
        .as_ref()
        .is_some_and(|stop| stop.is_estop());
    let gear = trajectory.gear.map(GearPosition::try_from);
    if stops || gear.is_some_and(|gear| gear != Ok(GearPosition::GearDrive)) {
        return Ok(Wish::Stop);
    }
    let points = trajectory
        .trajectory_point
        .iter()
        .filter_map(|point| point.path_point.as_ref());
    let mut places: Vec<(f64, f64)> = Vec::new();
    let mut end = None;
    for point in points {
        let (x, y) = (point.x() - origin.east_m, point.y() - origin.north_m);
        if !(x.is_finite() && y.is_finite()) {
            return Err(BadTrajectory::NotFinite);
        }
        if !area.contains(x, y) {
            return Err(BadTrajectory::Outside);
        }
        let is_near = |last: &(f64, f64)| (x - last.0).hypot(y - last.1) < TARGET_SPACING_M;
        if places.last().is_some_and(is_near) {
            end = Some((x, y));
        } else if places.len() < MAX_TARGETS {
            places.push((x, y));
            end = None;
        }
    }
    match (places.last_mut(), end) {
        (None, _) => return Ok(Wish::Stop),
        (Some(last), Some(end)) => *last = end,
        (Some(_), None) => {}
    }
    let targets = places.into_iter().map(|(x, y)| {
        let place = MapPose::from(Pose::new(x, y, 0.0));
        Target {
            x_m: place.x_m,
            y_m: place.y_m,
            radius_m: TARGET_RADIUS_M,
        }
    });
    Ok(Wish::Drive(targets.collect()))
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::super::messages::{EStop, PathPoint, TrajectoryPoint};
    use super::*;

    const ORIGIN: Origin = Origin {
        east_m: 500_000.0,
        north_m: 4_000_000.0,
    };
    const AREA: Area = Area {
        x_m: [-10.0, 10.0],
        y_m: [-10.0, 10.0],
    };

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    fn trajectory(points: impl IntoIterator<Item = (f64, f64)>) -> AdcTrajectory {
        let points = points.into_iter().map(|(x, y)| TrajectoryPoint {
            path_point: Some(PathPoint {
                x: Some(x + ORIGIN.east_m),
                y: Some(y + ORIGIN.north_m),
                z: None,
            }),
            v: None,
        });
        AdcTrajectory {
            trajectory_point: points.collect(),
            ..AdcTrajectory::default()
        }
    }

    #[test]
    fn a_pose_to_apollo_and_back() {
        let header = Header {
            timestamp_sec: Some(1000.5),
            ..Header::default()
        };
        // Heading up on the map, which is north.
        let pose = MapPose::new(2.0, -3.0, -FRAC_PI_2);
        let estimate = localization(header, ORIGIN, pose);
        let sent = estimate.pose.as_ref().unwrap();
        let position = sent.position.as_ref().unwrap();
        assert!(close(position.x(), 500_002.0) && close(position.y(), 4_000_003.0));
        assert!(close(sent.heading(), FRAC_PI_2));
        // To the north the axes are not turned.
        let orientation = sent.orientation.as_ref().unwrap();
        assert!(close(orientation.qw(), 1.0) && close(orientation.qz(), 0.0));

        let mut without_heading = estimate.clone();
        without_heading.pose.as_mut().unwrap().heading = None;
        for estimate in [&estimate, &without_heading] {
            let again = map_pose(estimate, ORIGIN).unwrap();
            assert!(close(again.x_m, 2.0) && close(again.y_m, -3.0));
            assert!(close(again.heading_rad, -FRAC_PI_2));
            assert_eq!(again.timestamp_ms, Some(1_000_500));
        }
        let mut nan = estimate;
        nan.pose.as_mut().unwrap().heading = Some(f64::NAN);
        assert_eq!(map_pose(&nan, ORIGIN), None);
        assert_eq!(map_pose(&LocalizationEstimate::default(), ORIGIN), None);
    }

    #[test]
    fn wheels_of_a_robot_that_turns() {
        let drive = SkidSteer {
            track_m: 0.4,
            max_wheel_m_s: 1.0,
        };
        let message = chassis(Header::default(), drive, WheelSpeeds::sides(-100, 300));
        assert!(close(message.speed_mps().into(), 0.1));
        let wheels = message.wheel_speed.unwrap();
        assert_eq!(wheels.wheel_direction_rl(), Direction::Backward);
        assert_eq!((wheels.wheel_spd_rl(), wheels.wheel_spd_fr()), (0.1, 0.3));
        let speeds = |speed_mps| {
            wheel_speeds(&Chassis {
                speed_mps,
                ..Chassis::default()
            })
        };
        assert_eq!(speeds(Some(-0.25)), Some(WheelSpeeds::all(-250)));
        assert_eq!(speeds(Some(f32::NAN)), None);
        assert_eq!(speeds(None), None);
    }

    #[test]
    fn a_scan_of_682_points_has_13_or_20_frames() {
        let angles: Vec<f64> = (0..682).map(|i| f64::from(i) * 0.352 - 120.0).collect();
        let scan = Scan::new(&angles, &[1000; 682], Some(1_700_000_000_000)).unwrap();
        let header = || Header {
            timestamp_sec: Some(1_700_000_000.0),
            module_name: Some("amber".into()),
            sequence_num: Some(1),
        };
        for (stamps, frames) in [(false, 13), (true, 20)] {
            let cloud = point_cloud(header(), &scan, stamps);
            assert_eq!((cloud.width(), cloud.height()), (682, 1));
            assert_eq!(cloud.encode_to_vec().len().div_ceil(1024), frames);
        }
        // To the right is negative.
        let scan = Scan::new(&[90.0, 0.0], &[2000, 0], None).unwrap();
        let cloud = point_cloud(header(), &scan, false);
        assert_eq!(cloud.point.len(), 1);
        assert!(close(cloud.point[0].y().into(), -2.0) && close(cloud.point[0].x().into(), 0.0));
    }

    #[test]
    fn targets_are_half_a_metre_apart_and_at_most_50() {
        let dense = trajectory((0..200).map(|i| (f64::from(i) * 0.05, -1.0)));
        let Ok(Wish::Drive(targets)) = wish(&dense, ORIGIN, AREA) else {
            panic!("no targets");
        };
        assert_eq!(targets.len(), 20);
        assert!(close(targets[1].x_m, 0.5) && close(targets[1].y_m, 1.0));
        // The end is 0.45 m after the last of the others.
        assert!(close(targets[19].x_m, 9.95));
        let long = trajectory((0..200).map(|i| (0.0, f64::from(i % 2) * 5.0)));
        let Ok(Wish::Drive(targets)) = wish(&long, ORIGIN, AREA) else {
            panic!("no targets");
        };
        assert_eq!(targets.len(), MAX_TARGETS);
    }

    #[test]
    fn stops_and_bad_trajectories() {
        let good = || trajectory([(1.0, 1.0)]);
        let with = |change: fn(&mut AdcTrajectory)| {
            let mut trajectory = good();
            change(&mut trajectory);
            wish(&trajectory, ORIGIN, AREA)
        };
        assert_eq!(
            with(|it| it.estop = Some(EStop {
                is_estop: Some(true)
            })),
            Ok(Wish::Stop)
        );
        assert_eq!(
            with(|it| it.gear = Some(GearPosition::GearReverse.into())),
            Ok(Wish::Stop)
        );
        assert_eq!(with(|it| it.gear = Some(77)), Ok(Wish::Stop));
        assert_eq!(with(|it| it.trajectory_point.clear()), Ok(Wish::Stop));
        let drive = with(|it| it.gear = Some(GearPosition::GearDrive.into()));
        assert!(matches!(drive, Ok(Wish::Drive(_))));
        let bad = |point| wish(&trajectory([(1.0, 1.0), point]), ORIGIN, AREA);
        assert_eq!(bad((10.1, 0.0)), Err(BadTrajectory::Outside));
        assert_eq!(bad((f64::NAN, 0.0)), Err(BadTrajectory::NotFinite));
        assert_eq!(bad((f64::INFINITY, 0.0)), Err(BadTrajectory::NotFinite));
    }
}
