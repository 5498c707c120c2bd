//! Sensors that say themselves what they are: a laser scanner of another model, the battery, a camera.

use amber_ros2::messages::{BatteryState, CameraInfo, CompressedImage};

use super::common::amber;
use super::*;

#[test]
fn another_scanner_and_the_battery_are_those_of_the_robot() {
    let router = Router::start();
    let folder = tempfile::tempdir().unwrap();
    let devices = folder.path().join("sim");
    let mut sim = amber();
    sim.args(["sim", "--hokuyo", "utm-30lx", "--dir"])
        .arg(&devices);
    let _sim = Process::start(sim);
    let port = |name: &str| {
        let port = devices.join(name);
        wait_for("the simulated devices", || port.exists().then_some(()));
        port.display().to_string()
    };
    let mut mediator = amber();
    mediator.args(["mediator", "--listen", "127.0.0.1:0"]);
    for driver in [
        format!("hokuyo:0=amber driver hokuyo --port {}", port("hokuyo")),
        format!(
            "roboclaw:0=amber driver roboclaw --port {}",
            port("roboclaw")
        ),
        "battery:0=amber driver battery".to_owned(),
    ] {
        mediator.args(["--driver", &driver]);
    }
    let mediator = Process::start(mediator);
    let address = mediator.line("listening on ");
    let desk = Operator::new(&router, "desk");
    let scans = attached::<LaserScan>(&desk, "/r1/scan");
    let states = attached::<BatteryState>(&desk, "/r1/battery_state");
    let _robot = robot("r1", ROS, folder.path(), &address, &router);

    let (_, state) = states.recv_timeout(PATIENCE).unwrap();
    assert_eq!(state.header.frame_id, "r1/base_link");
    assert!((11.0..13.0).contains(&state.voltage), "{state:?}");
    assert!(state.present && state.percentage.is_nan(), "{state:?}");

    // The limits are known soon after the first scan.
    let scan = wait_for("the limits", || {
        let (_, scan) = scans.recv_timeout(PATIENCE).unwrap();
        (scan.range_max == 60.0).then_some(scan)
    });
    assert_eq!((scan.ranges.len(), scan.range_min), (1_081, 0.023));
    let finite = scan.ranges.iter().filter(|range| range.is_finite());
    assert!(finite.clone().count() > 500);
    assert!(finite.clone().all(|range| *range <= scan.range_max));
    // One turn takes 25 ms.
    let turn_s = f64::from(scan.time_increment) * 1_440.0;
    assert!((turn_s - 0.025).abs() < 1e-4, "{turn_s}");
}

#[test]
fn nodes_see_what_the_camera_sees_and_its_optics_have_the_same_time() {
    let router = Router::start();
    let folder = tempfile::tempdir().unwrap();
    let devices = folder.path().join("sim");
    let mut sim = amber();
    sim.args(["sim", "--camera", "--camera-size", "320x240", "--dir"])
        .arg(&devices);
    let sim = Process::start(sim);
    let camera = sim.line("camera ");
    let shape = folder.path().join("robot.toml");
    let text = "laser_offset_mm = 100\ncamera_offset_mm = 150\ncamera_height_mm = 200\n";
    std::fs::write(&shape, text).unwrap();
    let mut mediator = amber();
    mediator.args(["mediator", "--listen", "127.0.0.1:0"]);
    for driver in [
        format!(
            "camera:0=amber driver camera --url http://{camera}/stream --calibration {}",
            devices.join("camera.yaml").display()
        ),
        format!("robot:0=amber driver robot --config {}", shape.display()),
    ] {
        mediator.args(["--driver", &driver]);
    }
    let mediator = Process::start(mediator);
    let address = mediator.line("listening on ");
    let desk = Operator::new(&router, "desk");
    let infos = attached::<CameraInfo>(&desk, "/r1/camera/camera_info");
    let config = format!("{ROS}\npicture_width = 200\ncamera_hz = 20\n");
    let _robot = robot("r1", &config, folder.path(), &address, &router);

    // Without subscribers to its pictures, the optics are those of the whole picture.
    let (_, info) = infos.recv_timeout(PATIENCE).unwrap();
    assert_eq!((info.width, info.height), (320, 240));
    assert_eq!(info.header.frame_id, "r1/camera_optical_frame");

    let images = attached::<CompressedImage>(&desk, "/r1/camera/image_raw/compressed");
    let mut seen: Vec<CompressedImage> = Vec::new();
    let (image, info) = wait_for("a picture with its optics", || {
        seen.extend(images.try_iter().map(|(_, image)| image));
        let (_, info) = infos.recv_timeout(PATIENCE).unwrap();
        seen.extend(images.try_iter().map(|(_, image)| image));
        let stamp = info.header.stamp;
        let image = seen.iter().find(|image| image.header.stamp == stamp)?;
        Some((image.clone(), info))
    });
    assert_eq!(
        (&*image.format, &image.data[..3]),
        ("jpeg", &[0xff, 0xd8, 0xff][..])
    );
    assert_eq!(image.data[image.data.len() - 2..], [0xff, 0xd9]);
    assert_eq!(image.header.frame_id, "r1/camera_optical_frame");
    assert_eq!((info.width, info.height), (160, 120));
    // Half of what it is in the whole picture.
    assert!((info.k[0] - 114.25).abs() < 0.1, "{info:?}");
    assert_eq!((info.k[2], info.p[2]), (79.5, 79.5));

    let fixed = latched::<TfMessage>(&desk, &key::<TfMessage>("/tf_static")).unwrap();
    let mut frames = fixed.transforms.iter();
    let frame = frames.find(|it| it.child_frame_id == "r1/camera_optical_frame");
    let frame = frame.unwrap_or_else(|| panic!("{fixed:?}"));
    assert_eq!(frame.header.frame_id, "r1/base_link");
    let (at, turn) = (frame.transform.translation, frame.transform.rotation);
    assert_eq!((at.x, at.y, at.z), (0.15, 0.0, 0.2));
    assert_eq!((turn.x, turn.y, turn.z, turn.w), (-0.5, 0.5, -0.5, 0.5));
}
