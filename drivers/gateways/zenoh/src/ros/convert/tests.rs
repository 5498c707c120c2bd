use std::f64::consts::{FRAC_PI_2, PI};

use amber_map::{Layout, Point, Segment};
use amber_values::Vector;
use proptest::prelude::*;

use super::*;

fn frames() -> Frames {
    Frames::with_prefix("r1/")
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

#[test]
fn a_scan_turns_to_the_left_and_has_the_time_of_its_first_ray() {
    // 90 degrees to the right first, as Amber has it.
    let amber = Scan::new(&[-90.0, 0.0, 90.0], &[3000, 0, 7], None).unwrap();
    let ros = scan(&amber, &Laser::default(), &frames(), 1_000_000_000);
    assert_eq!(ros.header.frame_id, "r1/laser");
    // The last ray was at the end, the first one half a turn before.
    assert_eq!(ros.header.stamp.nanosec, 950_000_000);
    assert!(near(ros.angle_min.into(), -FRAC_PI_2) && near(ros.angle_max.into(), FRAC_PI_2));
    assert!(near(ros.angle_increment.into(), FRAC_PI_2));
    assert!(near(ros.time_increment.into(), 0.025));
    // The left comes last: 3 m. To the right the laser has failed; ahead is nothing.
    assert!(ros.ranges[0].is_nan());
    assert_eq!(ros.ranges[1..], [f32::INFINITY, 3.0]);
    assert!(ros.intensities.is_empty());
}

#[test]
fn sensors_have_x_ahead_and_si_units() {
    let vector = |x, y, z| Some(Vector { x, y, z });
    let reading = ImuReading {
        acceleration_mg: vector(0.0, 1000.0, 0.0),
        rate_deg_s: vector(0.0, 0.0, 180.0),
        field_mgauss: vector(-200.0, 0.0, 400.0),
        ..ImuReading::default()
    };
    let message = imu(&reading, &frames(), 7).unwrap();
    assert!(near(message.linear_acceleration.x, 9.806_65));
    assert!(near(message.angular_velocity.z, PI));
    assert!(near(message.orientation_covariance[0], -1.0));
    // Zero would mean a perfect sensor.
    for covariance in [
        message.angular_velocity_covariance,
        message.linear_acceleration_covariance,
    ] {
        assert!([0, 4, 8].iter().all(|index| covariance[*index] > 0.0));
    }
    assert_eq!(message.header.frame_id, "r1/imu");
    let field = magnetic_field(&reading, &frames(), 7)
        .unwrap()
        .magnetic_field;
    assert!((field.y - 2e-5).abs() < 1e-12 && (field.z - 4e-5).abs() < 1e-12);
    assert_eq!(imu(&ImuReading::default(), &frames(), 7), None);
}

#[test]
fn a_plan_looks_along_its_points() {
    // Amber has y down.
    let path = plan(
        [(0.0, 0.0), (1.0, 0.0), (1.0, -2.0)].into_iter(),
        &frames(),
        7,
    );
    assert_eq!(path.header.frame_id, "map");
    let poses = path
        .poses
        .iter()
        .map(|it| (it.pose.position, it.pose.orientation));
    let poses: Vec<_> = poses
        .map(|(at, turn)| (at.x, at.y, 2.0 * turn.z.atan2(turn.w)))
        .collect();
    assert_eq!(poses.len(), 3);
    assert!(near(poses[0].2, 0.0) && near(poses[1].2, FRAC_PI_2) && near(poses[2].2, FRAC_PI_2));
    assert_eq!((poses[2].0, poses[2].1), (1.0, 2.0));
}

#[test]
fn faster_right_wheels_turn_the_robot_left() {
    let drive = SkidSteer {
        track_m: 0.4,
        max_wheel_m_s: 1.0,
    };
    let mut state = WheelState::new(drive, 0.05);
    let mut moved = None;
    for step in 0..=10u64 {
        let time = Duration::from_millis(100 * step);
        moved = state.handle(time, 5, WheelSpeeds::sides(100, 300), &frames());
    }
    let Moved {
        odometry,
        transform,
        joints,
    } = moved.unwrap();
    let twist = odometry.twist.twist;
    assert!(near(twist.linear.x, 0.2) && near(twist.angular.z, 0.5));
    assert!(near(odometry.pose.pose.orientation.yaw(), 0.5));
    // An arc to the left with the radius 0.4 m.
    assert!(near(odometry.pose.pose.position.x, 0.4 * 0.5f64.sin()));
    assert!(near(
        odometry.pose.pose.position.y,
        0.4 * (1.0 - 0.5f64.cos())
    ));
    assert_eq!(odometry.header.frame_id, "r1/odom");
    assert_eq!(odometry.child_frame_id, "r1/base_link");
    assert_eq!(transform.transform.rotation, odometry.pose.pose.orientation);
    assert!(near(joints.velocity[0], 2.0) && near(joints.position[0], 2.0));
    assert!(near(joints.position[1], 6.0));
    // Speeds out of order do not count.
    let late = state.handle(Duration::ZERO, 5, WheelSpeeds::STOP, &frames());
    assert_eq!(late, None);
}

#[test]
fn the_map_and_the_wheels_meet_at_the_robot() {
    let drive = SkidSteer {
        track_m: 0.4,
        max_wheel_m_s: 1.0,
    };
    let mut state = WheelState::new(drive, 0.05);
    for step in 0..=10u64 {
        let time = Duration::from_millis(100 * step);
        state.handle(time, 5, WheelSpeeds::sides(100, 300), &frames());
    }
    // The location driver tells where the robot was a while ago.
    let then = Duration::from_millis(600);
    let found = MapPose::new(3.0, -1.0, 0.7);
    let odom = state.map_to_odom(then, &found).unwrap();
    let robot = odom.global_pose(state.odometry.pose_at(then));
    assert!(near(robot.at.x, 3.0) && near(robot.at.y, 1.0) && near(robot.heading, -0.7));
    assert_eq!(state.map_to_odom(then, &MapPose::default()), None);
    let sent = odom_frame(odom, &frames(), 7);
    assert_eq!(sent.header.frame_id, "map");
    assert_eq!(sent.child_frame_id, "r1/odom");
}

#[test]
fn poses_and_goals_have_y_up() {
    let quality = Quality {
        covariance: Some(Covariance {
            xx: Some(0.01),
            xy: Some(0.002),
            yy: Some(0.02),
            x_alfa: Some(0.003),
            y_alfa: Some(0.004),
            alfa_alfa: Some(0.04),
        }),
        ..Quality::default()
    };
    let found = MapPose::new(1.0, 2.0, FRAC_PI_2);
    let message = pose(&found, Some(&quality), &frames(), 7).unwrap();
    let at = message.pose.pose;
    assert!(near(at.position.x, 1.0) && near(at.position.y, -2.0));
    assert!(near(at.orientation.yaw(), -FRAC_PI_2));
    // What has changed its direction once changes its sign.
    let covariance = message.pose.covariance;
    for (row, column, expected) in [
        (0, 0, 0.01),
        (1, 1, 0.02),
        (5, 5, 0.04),
        (0, 1, -0.002),
        (1, 0, -0.002),
        (0, 5, -0.003),
        (5, 1, 0.004),
    ] {
        assert!(near(covariance[row][column], expected), "{row} {column}");
    }
    assert_eq!(message.header.frame_id, "map");
    assert_eq!(pose(&MapPose::default(), None, &frames(), 7), None);
    let broken = MapPose::new(f64::NAN, 0.0, 0.0);
    assert_eq!(pose(&broken, None, &frames(), 7), None);
    let plain = pose(&found, None, &frames(), 7).unwrap();
    assert!(near(plain.pose.covariance[0][0], 0.01) && near(plain.pose.covariance[0][1], 0.0));

    let mut wanted = PoseStamped {
        header: Header::new(0, "map"),
        pose: RosPose::flat(1.0, -2.0, 0.3),
    };
    assert_eq!(goal(&wanted, &frames()), Ok(Target::new(1.0, 2.0)));
    wanted.pose.position.x = f64::INFINITY;
    assert_eq!(goal(&wanted, &frames()), Err(Refusal::NotFinite));
    wanted.header.frame_id = "r1/odom".into();
    assert!(matches!(
        goal(&wanted, &frames()),
        Err(Refusal::Frame { .. })
    ));
}

#[test]
fn a_map_begins_at_its_lower_left_corner() {
    let layout = Layout {
        low: Point::new(-1.0, -2.0),
        cell_m: 0.5,
        columns: 3,
        rows: 2,
    };
    let wall = Segment {
        from: Point::new(0.25, -1.9),
        to: Point::new(0.3, -1.9),
    };
    let cells = Occupancy::from_walls(layout, &[wall]);
    let grid = map(&cells, &frames(), 7).unwrap();
    assert_eq!((grid.info.width, grid.info.height), (3, 2));
    assert!(near(grid.info.origin.position.y, -2.0));
    // x is 0 to 0.5, and y is -2 to -1.5.
    let occupied = grid.data.iter().position(|cell| *cell == 100);
    assert_eq!((occupied, grid.data.len()), (Some(2), 6));
}

proptest! {
    #[test]
    fn commands_are_finite_or_refused(x: f64, z: f64, other: f64) {
        let mut twist = Twist::default();
        (twist.linear.x, twist.angular.z, twist.linear.y) = (x, z, other);
        match motion(&twist) {
            Ok(motion) => prop_assert!(motion.forward_m_s == x && motion.turn_rad_s == z),
            Err(_) => prop_assert!(!(x.is_finite() && z.is_finite() && other.is_finite())),
        }
    }
}
