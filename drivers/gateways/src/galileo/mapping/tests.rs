// Rounded numbers are no constants.
#![allow(clippy::approx_constant)]

use amber_values::Vector;
use proptest::prelude::*;

use super::*;

/// A laser with as many digits as there can be.
fn far() -> Laser {
    Laser {
        max_m: 60.0,
        ..Laser::default()
    }
}

fn parsed(text: &[u8]) -> Value {
    assert!(fits(text), "{} bytes", text.len());
    serde_json::from_slice(text).unwrap()
}

#[test]
fn paths_name_topics_and_devices() {
    let device = |kind, id| Some(Path::Device(Device::new(kind, id)));
    for (path, expected) in [
        ("cmd_vel", Some(Path::CmdVel)),
        ("odom", Some(Path::Odom)),
        ("galileo/status", Some(Path::Status)),
        ("scan", Some(Path::Scan)),
        ("scan/", Some(Path::Scan)),
        ("imu", Some(Path::Imu)),
        ("pose", Some(Path::Pose)),
        ("goal", Some(Path::Goal)),
        ("amber/2/0", device(DeviceType::ROBOCLAW, 0)),
        ("amber/77/3", device(DeviceType(77), 3)),
        ("roboclaw/0", device(DeviceType::ROBOCLAW, 0)),
        ("drive_to_point/0", device(DeviceType::DRIVE_TO_POINT, 0)),
        ("maestro/1", device(DeviceType::MAESTRO, 1)),
        ("amber/0/0", None),
        ("mediator/0", None),
        ("amber/2/-1", None),
        ("amber/2", None),
        ("cmd_vel2", None),
        ("", None),
    ] {
        assert_eq!(Path::parse(path), expected, "{path}");
    }
}

#[test]
fn a_twist_may_lack_members() {
    for (text, expected) in [
        (
            r#"{"linear":{"x":0.2},"angular":{"z":-1}}"#,
            Some((0.2, -1.0)),
        ),
        (r#"{"linear":{"x":0.2,"y":9,"z":9}}"#, Some((0.2, 0.0))),
        (r#"{"angular":{"z":0.5}}"#, Some((0.0, 0.5))),
        ("{}", Some((0.0, 0.0))),
        (r#"{"linear":{"x":1e999}}"#, None),
        (r#"{"linear":{"x":null}}"#, None),
        (r#"{"linear":{"x":"NaN"}}"#, None),
        (r#"{"linear":0.2}"#, None),
        ("0.2", None),
        ("", None),
        ("{", None),
    ] {
        let expected = expected.map(|(forward, turn)| Twist::new(forward, turn));
        assert_eq!(read_twist(text.as_bytes()), expected, "{text}");
    }
    let bomb = "[".repeat(8_000);
    assert_eq!(read_twist(bomb.as_bytes()), None);
}

#[test]
fn targets_have_y_up() {
    let target = |x_m, y_m, radius_m| Target { x_m, y_m, radius_m };
    for (text, expected) in [
        (
            r#"{"targets":[{"x":1,"y":2,"radius":0.5},{"x":3,"y":-4}]}"#,
            Some(vec![target(1.0, -2.0, 0.5), target(3.0, 4.0, 0.3)]),
        ),
        (r#"{"targets":[]}"#, Some(vec![])),
        (
            r#"{"header":{},"pose":{"position":{"x":1,"y":2,"z":0},"orientation":{"w":1}}}"#,
            Some(vec![target(1.0, -2.0, 0.3)]),
        ),
        (r#"{"targets":[{"x":1,"y":2,"radius":0}]}"#, None),
        (r#"{"targets":[{"x":1}]}"#, None),
        (r#"{"x":1,"y":2}"#, None),
    ] {
        assert_eq!(read_targets(text.as_bytes()), expected, "{text}");
    }
    let many = vec![r#"{"x":1,"y":2}"#; 51].join(",");
    assert_eq!(
        read_targets(format!(r#"{{"targets":[{many}]}}"#).as_bytes()),
        None
    );
}

#[test]
fn odometry_has_pose_and_motion() {
    let pose = MapPose::new(1.0, -2.0, -std::f64::consts::FRAC_PI_2);
    let message = parsed(&odometry(1_500, Some(pose), Twist::new(0.2, -0.5)));
    assert_eq!(
        message["header"]["stamp"],
        json!({ "secs": 1, "nsecs": 500_000_000 })
    );
    let there = &message["pose"]["pose"];
    assert_eq!(there["position"], json!({ "x": 1.0, "y": 2.0, "z": 0.0 }));
    assert_eq!(there["orientation"]["z"], 0.7071);
    assert_eq!(message["twist"]["twist"]["linear"]["x"], 0.2);
    assert_eq!(message["twist"]["twist"]["angular"]["z"], -0.5);
    for unknown in [None, Some(MapPose::default())] {
        let message = parsed(&odometry(0, unknown, Twist::STOP));
        assert_eq!(message["pose"], Value::Null);
    }
}

#[test]
fn the_status_has_all_members() {
    let message = parsed(&status(&Status {
        commanded: Twist::new(0.3, 0.1),
        measured: Twist::new(0.2, 0.0),
        has_pose: true,
        visited: 2,
        left: 1,
        distance_m: Some(1.23456),
    }));
    for (name, expected) in [
        ("navStatus", json!(1)),
        ("visualStatus", json!(1)),
        ("chargeStatus", json!(0)),
        ("loopStatus", json!(0)),
        ("power", json!(0.0)),
        ("targetNumID", json!(2)),
        ("targetStatus", json!(1)),
        ("targetDistance", json!(1.2346)),
        ("angleGoalStatus", json!(0)),
        ("controlSpeedX", json!(0.3)),
        ("controlSpeedTheta", json!(0.1)),
        ("currentSpeedX", json!(0.2)),
        ("currentSpeedTheta", json!(0.0)),
    ] {
        assert_eq!(message[name], expected, "{name}");
    }
    assert_eq!(message.as_object().unwrap().len(), 13);
}

#[test]
fn a_scan_has_the_nearest_points_from_right_to_left() {
    let values = Scan::new(&[-90.0, -30.0, 30.0, 90.0], &[1000, 2000, 0, 4000], None).unwrap();
    let message = parsed(&scan(0, &values, &far()).unwrap());
    assert_eq!(message["ranges"], json!([4.0, 0.0, 2.0, 1.0]));
    assert_eq!(message["angle_min"], json!(-1.5708));
    assert_eq!(message["angle_max"], json!(1.5708));
    let step = message["angle_increment"].as_f64().unwrap();
    assert!((step - 60_f64.to_radians()).abs() < 1e-9);
    let empty = Scan::new(&[], &[], None).unwrap();
    assert_eq!(scan(0, &empty, &far()), None);
}

#[test]
fn a_scan_has_the_limits_of_the_laser() {
    let laser = Laser {
        min_m: 0.023,
        max_m: 10.0,
        ..Laser::default()
    };
    let distances = [22, 23, 10_000, 10_001];
    let values = Scan::new(&[-3.0, -1.0, 1.0, 3.0], &distances, None).unwrap();
    let message = parsed(&scan(0, &values, &laser).unwrap());
    assert_eq!(message["range_min"], json!(0.023));
    assert_eq!(message["range_max"], json!(10.0));
    // Rounded to centimetres, and yet within the limits.
    assert_eq!(message["ranges"], json!([0.0, 10.0, 0.023, 0.0]));
    // A distance beyond the limits does not hide one within them.
    let many: Vec<f64> = (0..320).map(f64::from).map(|at| at / 2.0).collect();
    let mut distances = vec![0; 320];
    (distances[0], distances[1]) = (21, 4_000);
    let values = Scan::new(&many, &distances, None).unwrap();
    let message = parsed(&scan(0, &values, &laser).unwrap());
    let ranges = message["ranges"].as_array().unwrap();
    assert_eq!(ranges.last(), Some(&json!(4.0)));
}

#[test]
fn a_scan_of_682_points_fits_into_one_frame() {
    let angles: Vec<f64> = (0..682)
        .map(|at| f64::from(at).mul_add(0.352, -120.0))
        .collect();
    let mut distances = vec![59_990; 682];
    distances[300] = 512;
    let values = Scan::new(&angles, &distances, None).unwrap();
    let message = parsed(&scan(u64::from(u32::MAX) * 1000, &values, &far()).unwrap());
    let ranges = message["ranges"].as_array().unwrap();
    assert!(ranges.len() > 100, "{}", ranges.len());
    let nearest = ranges.iter().position(|range| range == 0.51).unwrap();
    let angle = message["angle_min"].as_f64().unwrap()
        + f64::from(u32::try_from(nearest).unwrap()) * message["angle_increment"].as_f64().unwrap();
    assert!(
        (angle.to_degrees() - 14.4).abs() < 2.0,
        "{}",
        angle.to_degrees()
    );
}

#[test]
fn the_imu_has_x_ahead() {
    let reading = ImuReading {
        acceleration_mg: Some(Vector {
            x: 0.0,
            y: 100.0,
            z: 1000.0,
        }),
        rate_deg_s: Some(Vector {
            x: 10.0,
            y: 0.0,
            z: 90.0,
        }),
        ..ImuReading::default()
    };
    let message = parsed(&imu(0, &reading));
    let expected = json!({ "x": 0.9807, "y": 0.0, "z": 9.8067 });
    assert_eq!(message["linear_acceleration"], expected);
    let expected = json!({ "x": 0.0, "y": -0.1745, "z": 1.5708 });
    assert_eq!(message["angular_velocity"], expected);
}

#[test]
fn a_pose_has_y_up() {
    let mut there = MapPose::new(1.0, 2.0, 0.5);
    there.quality = 0.75;
    let expected = json!({ "x": 1.0, "y": -2.0, "theta": -0.5, "p": 0.75, "stamp": 7 });
    assert_eq!(parsed(&pose(7, there)), expected);
    there.timestamp_ms = Some(9);
    assert_eq!(parsed(&pose(7, there))["stamp"], 9);
}

#[test]
fn of_many_targets_as_many_as_fit_are_sent() {
    let many = vec![Target::new(1.234_56, -9.876_54); 60];
    let message = parsed(&targets(&many[..5], &many));
    assert_eq!(message["next"].as_array().unwrap().len(), 5);
    assert!(message["visited"].as_array().unwrap().len() > 10);
    let message = parsed(&targets(&many, &many));
    assert_eq!(message["visited"], json!([]));
    assert!(message["next"].as_array().unwrap().len() > 15);
}

proptest! {
    #[test]
    fn scans_always_fit(points in prop::collection::vec((-180.0..180.0, 0..70_000), 0..800)) {
        let (angles, distances): (Vec<f64>, Vec<i32>) = points.into_iter().unzip();
        let values = Scan::new(&angles, &distances, None).unwrap();
        if let Some(message) = scan(u64::MAX / 2, &values, &far()) {
            prop_assert!(fits(&message));
        } else {
            prop_assert!(angles.len() < 2);
        }
    }

    #[test]
    fn foreign_text_never_panics(bytes: Vec<u8>, text in "\\{\"(targets|linear|pose)\":.{0,40}\\}") {
        for text in [&bytes[..], text.as_bytes()] {
            let _ = read_twist(text);
            let _ = read_targets(text);
        }
    }
}
