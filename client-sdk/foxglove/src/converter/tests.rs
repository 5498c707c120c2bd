use std::f64::consts::FRAC_PI_2;

use amber_map::Point;
use amber_proto::DeviceMessage;
use amber_scene::{place_to_plane, scan_places};

use super::*;
use crate::messages::{Grid, LaserScan, SceneUpdate};

const NOW_NS: u64 = 1_700_000_000_000_000_000;
const NOW_MS: i64 = 1_700_000_000_000;

fn device(device_type: DeviceType) -> Device {
    Device::new(device_type, 0)
}

fn of<T: Message + Default>(all: &[Published], topic: &str) -> T {
    let found = all.iter().find(|it| it.topic == topic);
    let found = found.unwrap_or_else(|| panic!("no {topic} in {all:?}"));
    T::decode(&found.data[..]).unwrap()
}

fn topics(all: &[Published]) -> Vec<&str> {
    all.iter().map(|it| &*it.topic).collect()
}

fn scan_message(angles: &[f64], distances: &[i32], timestamp: Option<i64>) -> Vec<u8> {
    let mut message = hokuyo::DriverMsg::data();
    message.scan = Some(hokuyo::Scan {
        angles: angles.to_vec(),
        distances: distances.to_vec(),
    });
    message.timestamp = timestamp;
    message.encode_to_vec()
}

fn pose_message(pose: MapPose) -> Vec<u8> {
    let mut message = location::DriverMsg::data();
    message.current_location = Some(pose.into());
    message.encode_to_vec()
}

/// The pose of a frame in that above it.
fn place_of(transforms: &FrameTransforms, parent: &str, child: &str) -> Mounting {
    let is = |it: &&FrameTransform| it.parent_frame_id == parent && it.child_frame_id == child;
    let found = transforms.transforms.iter().find(is).unwrap();
    let (at, turn) = (found.translation.unwrap(), found.rotation.unwrap());
    let is_upside_down = turn.x != 0.0 || turn.y != 0.0;
    let half = match is_upside_down {
        true => turn.y.atan2(turn.x),
        false => turn.z.atan2(turn.w),
    };
    Mounting {
        pose: Pose::new(at.x, at.y, 2.0 * half),
        is_upside_down,
    }
}

fn shape(laser: impl Into<Mounting>) -> robot::Shape {
    let Mounting {
        pose,
        is_upside_down,
    } = laser.into();
    robot::Shape {
        length: Some(0.5),
        width: Some(0.4),
        laser: Some(robot::Place {
            x: Some(pose.at.x),
            y: Some(pose.at.y),
            yaw: Some(pose.heading),
            upside_down: Some(is_upside_down),
            ..robot::Place::default()
        }),
        ..robot::Shape::default()
    }
}

#[test]
fn points_of_a_scan_are_where_amber_draws_them() {
    for is_upside_down in [false, true] {
        points_are_where_amber_draws_them(Mounting {
            pose: Pose::new(0.12, -0.03, 0.4),
            is_upside_down,
        });
    }
}

fn points_are_where_amber_draws_them(mount: Mounting) {
    let poses = [
        MapPose::new(1.0, 2.0, 0.0),
        MapPose::new(3.0, 0.5, FRAC_PI_2),
        MapPose::new(-1.0, -2.0, -2.5),
    ];
    let angles: Vec<f64> = (-120..=120).map(f64::from).collect();
    let distances: Vec<i32> = (0..241).map(|step| 500 + 10 * step).collect();
    for pose in poses {
        let mut converter = Converter::new();
        // A recording has the shape as a message.
        let said = robot::DriverMsg {
            shape: Some(shape(mount)),
            ..robot::DriverMsg::data()
        };
        let said = said.encode_to_vec();
        assert_eq!(converter.message(0, device(DeviceType::ROBOT), &said), []);
        let bytes = pose_message(pose);
        let _ = converter.message(NOW_NS, device(DeviceType::LOCATION), &bytes);
        let bytes = scan_message(&angles, &distances, None);
        let all = converter.message(NOW_NS + 1, device(DeviceType::HOKUYO), &bytes);
        let scan: LaserScan = of(&all, "/foxglove/hokuyo/0/scan");
        let bytes = pose_message(pose);
        let all = converter.message(NOW_NS + 2, device(DeviceType::LOCATION), &bytes);
        let transforms: FrameTransforms = of(&all, "/foxglove/tf");
        let robot = place_of(&transforms, "map", "base_link").pose;
        let laser = place_of(&transforms, "base_link", "laser");
        let step = (scan.end_angle - scan.start_angle) / (scan.ranges.len() - 1) as f64;
        let found = scan.ranges.iter().enumerate().map(|(index, range)| {
            let angle = scan.start_angle + index as f64 * step;
            let at = Point::new(range * angle.cos(), range * angle.sin());
            robot.global(laser.on_robot(at))
        });
        let drawn = scan_places(&Scan::new(&angles, &distances, None).unwrap(), pose, mount);
        let found: Vec<_> = found.collect();
        assert_eq!(found.len(), drawn.len());
        // From right to left, and from left to right.
        for (found, drawn) in found.iter().rev().zip(drawn) {
            let off_m = found.minus(place_to_plane(drawn)).length();
            assert!(off_m < 1e-9, "{pose:?}: {found:?} instead of {drawn:?}");
        }
    }
}

#[test]
fn a_scan_and_a_pose_have_the_time_at_which_they_were_measured() {
    let mut converter = Converter::new();
    let bytes = scan_message(&[0.0, 1.0], &[500, 500], Some(NOW_MS - 10));
    let all = converter.message(NOW_NS, device(DeviceType::HOKUYO), &bytes);
    let scan: LaserScan = of(&all, "/foxglove/hokuyo/0/scan");
    assert_eq!(
        scan.timestamp,
        timestamp(NOW_NS - 60_000_000),
        "the middle of the turn"
    );
    let pose = MapPose {
        timestamp_ms: Some(NOW_MS - 60),
        ..MapPose::new(1.0, 2.0, 0.5)
    };
    let all = converter.message(NOW_NS, device(DeviceType::LOCATION), &pose_message(pose));
    let found: PoseInFrame = of(&all, "/foxglove/location/0/pose");
    assert_eq!(found.timestamp, scan.timestamp);
    let transforms: FrameTransforms = of(&all, "/foxglove/tf");
    let times = transforms.transforms.iter().map(|it| it.timestamp);
    assert!(times.clone().count() == 2 && times.into_iter().all(|it| it == scan.timestamp));
}

#[test]
fn without_a_pose_the_laser_is_shown_on_the_robot_and_repeated_every_second() {
    let mut converter = Converter::new();
    let bytes = scan_message(&[0.0], &[500], None);
    let mut at = |ns| converter.message(NOW_NS + ns, device(DeviceType::HOKUYO), &bytes);
    let scan = "/foxglove/hokuyo/0/scan";
    let all = [scan, "/foxglove/tf", "/foxglove/robot"];
    assert_eq!(topics(&at(0)), all);
    assert_eq!(topics(&at(100_000_000)), [scan]);
    assert_eq!(topics(&at(REPEAT_NS)), all);
    assert_eq!(topics(&at(REPEAT_NS + 1)), [scan]);
    // Another laser.
    let second = Device::new(DeviceType::HOKUYO, 3);
    let all = converter.message(NOW_NS + REPEAT_NS + 2, second, &bytes);
    assert_eq!(topics(&all), ["/foxglove/hokuyo/3/scan", "/foxglove/tf"]);
    let transforms: FrameTransforms = of(&all, "/foxglove/tf");
    assert_eq!(
        place_of(&transforms, "base_link", "laser_3"),
        Mounting::default()
    );
    assert!(
        transforms
            .transforms
            .iter()
            .all(|it| it.parent_frame_id == "base_link")
    );
}

#[test]
fn an_unknown_or_invalid_pose_is_left_out() {
    let mut converter = Converter::new();
    let location = device(DeviceType::LOCATION);
    let unknown = MapPose {
        quality: 0.0,
        ..MapPose::default()
    };
    assert!(
        converter
            .message(NOW_NS, location, &pose_message(unknown))
            .is_empty()
    );
    assert_eq!(converter.invalid(), 0);
    let invalid = MapPose::new(f64::NAN, 0.0, 0.0);
    assert!(
        converter
            .message(NOW_NS, location, &pose_message(invalid))
            .is_empty()
    );
    assert_eq!(converter.invalid(), 1);
    for device_type in [
        DeviceType::HOKUYO,
        DeviceType::LOCATION,
        DeviceType::DRIVE_TO_POINT,
    ] {
        assert!(
            converter
                .message(NOW_NS, device(device_type), b"\xff")
                .is_empty()
        );
    }
    let unequal = scan_message(&[0.0], &[], None);
    assert!(
        converter
            .message(NOW_NS, device(DeviceType::HOKUYO), &unequal)
            .is_empty()
    );
    assert_eq!(converter.invalid(), 5);
    assert!(
        converter
            .message(NOW_NS, device(DeviceType::ROBOCLAW), b"\xff")
            .is_empty()
    );
    assert_eq!(converter.invalid(), 5);
}

#[test]
fn a_robot_that_is_lost_has_no_place_and_is_grey() {
    let mut converter = Converter::new();
    let location = device(DeviceType::LOCATION);
    let message = |quality| {
        let pose = MapPose {
            quality,
            ..MapPose::new(1.0, 2.0, 0.5)
        };
        let mut message = location::DriverMsg::data();
        message.current_location = Some(pose.into());
        message.quality = Some(location::Quality::default());
        message.encode_to_vec()
    };
    let places = |published: &[Published]| {
        let all = published.iter().filter(|it| it.topic == "/foxglove/tf");
        let all = all.map(|it| FrameTransforms::decode(&it.data[..]).unwrap());
        let transforms = all.flat_map(|it| it.transforms);
        transforms
            .filter(|it| it.child_frame_id == "base_link")
            .count()
    };
    let shade = |published: &[Published]| {
        let robot: SceneUpdate = of(published, "/foxglove/robot");
        let color = robot.entities[0].cubes[0].color.unwrap();
        color.b - color.r
    };
    let known = converter.message(NOW_NS, location, &message(0.9));
    assert_eq!(places(&known), 1);
    assert!(shade(&known) > 0.5);
    let lost = converter.message(NOW_NS + 1, location, &message(0.2));
    assert_eq!(topics(&lost), ["/foxglove/robot"]);
    assert!(shade(&lost) < 0.1);
    // Viewers that come later do not get the old place.
    let repeated = converter.repeated(
        NOW_NS + 2_000_000_000,
        [device(DeviceType::HOKUYO)].into_iter(),
    );
    assert_eq!(places(&repeated), 0);
    assert!(shade(&repeated) < 0.1);
    let found = converter.message(NOW_NS + 3_000_000_000, location, &message(0.9));
    assert_eq!(places(&found), 1);
    assert!(shade(&found) > 0.5);
}

#[test]
fn the_location_device_with_the_lowest_number_moves_the_robot() {
    let mut converter = Converter::new();
    let mut at = |id, x| {
        let device = Device::new(DeviceType::LOCATION, id);
        converter.message(NOW_NS, device, &pose_message(MapPose::new(x, 0.0, 0.0)))
    };
    assert!(topics(&at(1, 1.0)).contains(&"/foxglove/tf"));
    let all = at(0, 2.0);
    assert_eq!(
        place_of(&of(&all, "/foxglove/tf"), "map", "base_link")
            .pose
            .at
            .x,
        2.0
    );
    assert_eq!(topics(&at(1, 3.0)), ["/foxglove/location/1/pose"]);
}

#[test]
fn a_map_is_published_when_it_has_changed_and_again_for_the_next_file() {
    let mut converter = Converter::new();
    let location = device(DeviceType::LOCATION);
    let map = |roson: String| {
        let mut message = location::DriverMsg::data();
        message.map = Some(location::Map {
            roson: Some(roson),
            grid: None,
        });
        message.encode_to_vec()
    };
    let flat = map(Map::flat().to_roson());
    let all = converter.message(NOW_NS, location, &flat);
    let walls: SceneUpdate = of(&all, "/foxglove/location/0/walls");
    assert_eq!(walls.entities[0].frame_id, "map");
    assert!(converter.message(NOW_NS, location, &flat).is_empty());
    assert_eq!(converter.again(), all);
    assert!(
        converter
            .message(NOW_NS, location, &map("no map".into()))
            .is_empty()
    );
    assert_eq!(converter.invalid(), 1);

    let layout = amber_map::Layout::around_walls(&Map::flat().faces(), 0.5, 0.05).unwrap();
    let cells = amber_map::Occupancy::from_walls(layout, &Map::flat().faces());
    let mut message = location::DriverMsg::data();
    message.map = Some(location::Map {
        roson: None,
        grid: Some(location::Grid {
            x: Some(layout.low.x),
            y: Some(-layout.high().y),
            resolution: Some(0.05),
            png: Some(ros_map::png(&cells).unwrap().into()),
        }),
    });
    let all = converter.message(NOW_NS, location, &message.encode_to_vec());
    let grid: Grid = of(&all, "/foxglove/location/0/grid");
    let corner = grid.pose.unwrap().position.unwrap();
    assert!((corner.y - layout.low.y).abs() < 1e-9 && corner.x == layout.low.x);
    assert_eq!(converter.again(), all, "only the last map counts");
}

#[test]
fn particles_path_and_targets_are_on_the_map() {
    let mut converter = Converter::new();
    let mut message = location::DriverMsg::data();
    message.particles = Some(location::Particles {
        particles: vec![location::Particle {
            x: Some(1.0),
            y: Some(2.0),
            alfa: Some(0.5),
            weight: Some(1.0),
        }],
    });
    let bytes = message.encode_to_vec();
    let all = converter.message(NOW_NS, device(DeviceType::LOCATION), &bytes);
    let particles: PosesInFrame = of(&all, "/foxglove/location/0/particles");
    assert_eq!(particles.poses[0].position.unwrap().y, -2.0);

    let mut message = drive_to_point::DriverMsg::data();
    message.progress = Some(drive_to_point::Progress {
        path: Some(drive_to_point::Path {
            xs: vec![1.0, 2.0],
            ys: vec![3.0, 4.0],
        }),
        ..drive_to_point::Progress::default()
    });
    let bytes = message.encode_to_vec();
    let all = converter.message(NOW_NS, device(DeviceType::DRIVE_TO_POINT), &bytes);
    let path: SceneUpdate = of(&all, "/foxglove/drive-to-point/0/path");
    assert_eq!(path.entities[0].lines[0].points.len(), 2);

    let mut message = drive_to_point::DriverMsg::data();
    message.targets = Some(drive_to_point::Targets {
        longitudes: vec![1.0],
        latitudes: vec![2.0],
        radiuses: vec![0.1],
    });
    let to_point = device(DeviceType::DRIVE_TO_POINT);
    let bytes = message.encode_to_vec();
    assert!(
        converter.message(NOW_NS, to_point, &bytes).is_empty(),
        "of another request"
    );
    message.get_next_targets = Some(true);
    let all = converter.message(NOW_NS, to_point, &message.encode_to_vec());
    let targets: SceneUpdate = of(&all, "/foxglove/drive-to-point/0/targets");
    assert_eq!(targets.entities[0].cylinders.len(), 1);
}

#[test]
fn the_robot_is_drawn_with_its_own_size() {
    let mut converter = Converter::new();
    let size = |all: &[Published]| {
        let drawn: SceneUpdate = of(all, "/foxglove/robot");
        drawn.entities[0].cubes[0].size.unwrap()
    };
    let usual = size(&converter.repeated(NOW_NS, [device(DeviceType::HOKUYO)].into_iter()));
    converter.set_shape(&shape(Pose::default()));
    let own = size(&converter.repeated(2 * NOW_NS, [device(DeviceType::HOKUYO)].into_iter()));
    assert_eq!((own.x, own.y, own.z), (0.5, 0.4, usual.z));
}

#[test]
fn what_the_robot_touches_is_drawn_at_its_edge_and_removed() {
    let mut converter = Converter::new();
    converter.set_shape(&robot::Shape {
        length: Some(0.5),
        width: Some(0.4),
        ..robot::Shape::default()
    });
    let said = |pressed: [bool; 2]| {
        let contact = |(angle, pressed)| bumper::Contact {
            kind: Some(bumper::contact::Kind::Bumper.into()),
            angle: Some(angle),
            arc: Some(90.0),
            pressed: Some(pressed),
        };
        let mut message = bumper::DriverMsg::data();
        message.contacts = Some(bumper::Contacts {
            contacts: [0.0, -90.0].into_iter().zip(pressed).map(contact).collect(),
            time: Some(7_000_000),
        });
        message.encode_to_vec()
    };
    let topic = "/foxglove/bumper/0/contacts";
    let bumper = device(DeviceType::BUMPER);
    for (pressed, expected) in [
        ([true, false], vec![(0.25, 0.0)]),
        ([false, true], vec![(0.0, -0.2)]),
        ([true, true], vec![(0.25, 0.0), (0.0, -0.2)]),
    ] {
        let all = converter.message(NOW_NS, bumper, &said(pressed));
        let update: SceneUpdate = of(&all, topic);
        let entity = &update.entities[0];
        assert_eq!(entity.timestamp, timestamp(7_000_000_000));
        let cubes = entity.cubes.iter();
        let places: Vec<_> = cubes
            .map(|cube| {
                let at = cube.pose.unwrap().position.unwrap();
                let mm = |m: f64| (m * 1_000.0).round() / 1_000.0 + 0.0;
                (mm(at.x), mm(at.y))
            })
            .collect();
        assert_eq!(places, expected);
    }
    let all = converter.message(NOW_NS, bumper, &said([false; 2]));
    let update: SceneUpdate = of(&all, topic);
    assert!(update.entities.is_empty() && update.deletions[0].id == "contacts");
    assert_eq!(converter.invalid(), 0);
}

#[test]
fn a_position_on_earth_is_drawn_and_none_is_not() {
    let mut converter = Converter::new();
    let said = |fix: gps::Fix| {
        let mut message = gps::DriverMsg::data();
        message.fix = Some(fix);
        message.encode_to_vec()
    };
    let fix = gps::Fix {
        kind: Some(gps::fix::Kind::ThreeD.into()),
        latitude: Some(-33.5),
        longitude: Some(-70.25),
        height: Some(80.0),
        horizontal_accuracy: Some(2.0),
        vertical_accuracy: Some(3.0),
        time: Some(NOW_MS - 200),
        ..gps::Fix::default()
    };
    let all = converter.message(NOW_NS, device(DeviceType::GPS), &said(fix));
    let drawn: LocationFix = of(&all, "/foxglove/gps/0/fix");
    assert_eq!(
        (drawn.latitude, drawn.longitude, drawn.altitude),
        (-33.5, -70.25, 80.0)
    );
    assert_eq!(
        drawn.position_covariance,
        [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 9.0]
    );
    assert_eq!(drawn.position_covariance_type, 2);
    assert_eq!(drawn.timestamp, timestamp(NOW_NS - 200_000_000));
    // In a tunnel.
    let none = gps::Fix {
        kind: Some(gps::fix::Kind::None.into()),
        time: Some(NOW_MS),
        ..gps::Fix::default()
    };
    assert_eq!(
        converter.message(NOW_NS, device(DeviceType::GPS), &said(none)),
        []
    );
    assert_eq!(converter.invalid(), 0);
}

fn picture_message(width: u32, captured: i64) -> Vec<u8> {
    let mut message = amber_proto::camera::DriverMsg::data();
    message.picture = Some(Picture {
        data: Some(b"\xff\xd8 a file \xff\xd9"[..].into()),
        format: Some(amber_proto::camera::Format::Jpeg.into()),
        width: Some(width),
        height: Some(width * 3 / 4),
        captured: Some(captured),
        sequence: Some(1),
        damaged: None,
    });
    message.encode_to_vec()
}

fn info_message() -> Vec<u8> {
    let mut message = amber_proto::camera::DriverMsg::data();
    message.camera_info = Some(CameraInfo {
        calibration: Some(Calibration {
            width: Some(640),
            height: Some(480),
            fx: Some(500.0),
            fy: Some(500.0),
            cx: Some(319.5),
            cy: Some(239.5),
            ..Calibration::default()
        }),
        ..CameraInfo::default()
    });
    message.encode_to_vec()
}

#[test]
fn pictures_have_the_optics_of_their_size_and_the_place_of_the_camera() {
    use crate::messages::{CameraCalibration, CompressedImage};

    let camera = device(DeviceType::CAMERA);
    let mut converter = Converter::new();
    converter.set_shape(&robot::Shape {
        camera: Some(robot::Place {
            x: Some(0.1),
            z: Some(0.25),
            ..robot::Place::default()
        }),
        ..robot::Shape::default()
    });
    let captured = NOW_MS * 1000 - 20_000;
    let made = converter.message(NOW_NS, camera, &picture_message(640, captured));
    let expected = [
        "/foxglove/camera/0/picture",
        "/foxglove/tf",
        "/foxglove/robot",
    ];
    assert_eq!(topics(&made), expected, "no optics are known");
    let image: CompressedImage = of(&made, "/foxglove/camera/0/picture");
    assert_eq!(
        (&*image.format, &image.data[..2]),
        ("jpeg", &b"\xff\xd8"[..])
    );
    assert_eq!(image.timestamp, timestamp(NOW_NS - 20_000_000));
    let tf: FrameTransforms = of(&made, "/foxglove/tf");
    let place = &tf.transforms[0];
    assert_eq!(
        (&*place.parent_frame_id, &*place.child_frame_id),
        ("base_link", &*image.frame_id)
    );
    let (at, turn) = (place.translation.unwrap(), place.rotation.unwrap());
    assert_eq!((at.x, at.y, at.z), (0.1, 0.0, 0.25));
    assert_eq!((turn.x, turn.y, turn.z, turn.w), (-0.5, 0.5, -0.5, 0.5));

    // The optics come for the size of the pictures, and again after a second.
    let topic = "/foxglove/camera/0/calibration";
    let made = converter.message(NOW_NS + 1, camera, &info_message());
    assert_eq!(topics(&made), [topic]);
    let mut at = |after_ms: u64, width: u32| {
        let made = converter.message(
            NOW_NS + after_ms * 1_000_000,
            camera,
            &picture_message(width, captured),
        );
        let is_there = topics(&made).contains(&topic);
        is_there.then(|| of::<CameraCalibration>(&made, topic))
    };
    assert_eq!(at(10, 640), None);
    let small = at(20, 320).unwrap();
    assert_eq!((small.width, small.k[0], small.k[2]), (320, 250.0, 159.5));
    assert_eq!(at(30, 320), None);
    assert!(at(1100, 320).is_some());
    // Another file begins.
    let _ = converter.again();
    let made = converter.message(NOW_NS + 1_200_000_000, camera, &picture_message(320, 0));
    assert!(topics(&made).contains(&topic) && topics(&made).contains(&"/foxglove/tf"));
    assert_eq!(converter.invalid(), 0);
}

#[test]
fn a_recording_has_a_picture_once() {
    let camera = device(DeviceType::CAMERA);
    let mut converter = Converter::new();
    let message = picture_message(640, NOW_MS * 1000);
    let carrier = converter.carrier(NOW_NS, camera, &message).unwrap();
    assert_eq!(carrier.topic, "/foxglove/camera/0/picture");
    assert!(message[carrier.part].starts_with(b"\xff\xd8"));
    let beside = Companion::message(&mut converter, NOW_NS, camera, &message);
    assert!(
        beside
            .iter()
            .all(|it| it.schema != "foxglove.CompressedImage")
    );
    assert!(!beside.is_empty(), "the place of the camera");
    assert_eq!(converter.carrier(NOW_NS, camera, &info_message()), None);
    assert!(!converter.carries(device(DeviceType::HOKUYO)));
}
