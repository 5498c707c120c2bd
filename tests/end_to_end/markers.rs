//! Markers on walls: the real drivers of markers and of the camera, with the simulated camera.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use amber_client::blocking::Client;
use amber_proto::markers::{RobotPose, Sightings};
use tempfile::TempDir;

use crate::common::{AMBER, Mediator, Running, wait_for};
use crate::kit::with_and_without;

/// A place from which the camera sees the whole of these two markers.
const PLACE: (f64, f64, f64) = (1.7, 4.3, 205.0);
const IN_VIEW: [u32; 2] = [8, 15];

const SHAPE: &str = "laser_offset_mm = 0\ncamera_offset_mm = 100\ncamera_height_mm = 250\n";

/// A simulated robot with a camera. It ends when this is dropped, because its stdin ends.
struct Robot {
    folder: TempDir,
    process: Child,
    /// Where the camera listens.
    url: String,
}

impl Robot {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (x, y, deg) = PLACE;
        let mut command = Command::new(AMBER);
        command.args(["sim", "--until-eof", "--camera", "--camera-rate", "5"]);
        command.arg(format!("--start={x},{y},{deg}"));
        command.arg("--dir").arg(folder.path().join("sim"));
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = process.unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let place = lines.find_map(|line| Some(line.strip_prefix("camera ")?.to_owned()));
        let place = place.expect("the camera listens");
        std::fs::write(folder.path().join("robot.toml"), SHAPE).unwrap();
        Self {
            folder,
            process,
            url: format!("http://{place}/stream"),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("sim").join(name)
    }

    /// The drivers of the camera, with these options, and of the robot.
    fn drivers(&self, options: &str) -> [String; 2] {
        let shape = self.folder.path().join("robot.toml");
        [
            format!("camera:0=amber driver camera --url {} {options}", self.url),
            format!("robot:0=amber driver robot --config {}", shape.display()),
        ]
    }

    fn calibration(&self) -> String {
        format!("--calibration {}", self.file("camera.yaml").display())
    }

    /// The driver of markers, with a file of their places.
    fn markers(&self, file: &str) -> String {
        let file = self.file(file).display().to_string();
        format!("markers:0=amber driver markers --markers {file}")
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn mediator(drivers: &[String]) -> Mediator {
    Mediator::start(&drivers.iter().map(String::as_str).collect::<Vec<_>>())
}

fn troubles(mediator: &Mediator, device: &str) -> Vec<String> {
    let driver = mediator.describe(device);
    driver.troubles.into_iter().map(|it| it.text).collect()
}

#[track_caller]
fn check(pose: &RobotPose) {
    let (x, y, deg) = PLACE;
    let error_m = (pose.x() - x).hypot(pose.y() - y);
    let turn = pose.heading().to_degrees() - deg;
    let error_deg = (turn + 180.0).rem_euclid(360.0) - 180.0;
    assert!(error_m <= 0.05 && error_deg.abs() <= 1.0, "{pose:?}");
    assert_eq!(pose.used, IN_VIEW);
}

fn ids(seen: &Sightings) -> Vec<u32> {
    seen.found.iter().map(|it| it.id()).collect()
}

#[test]
fn markers_tell_where_the_robot_is_and_the_camera_is_off_when_nobody_asks() {
    let robot = Robot::new();
    let mut drivers = robot
        .drivers(&format!("{} --idle-s 1", robot.calibration()))
        .to_vec();
    drivers.push(robot.markers("wall_markers.toml"));
    let mediator = mediator(&drivers);
    let client = Client::connect(mediator.address).unwrap();
    // One picture. At first, the robot device may not have said yet where the camera is.
    let markers = client.markers(0);
    let seen = wait_for("a pose", || {
        markers.sightings().ok().filter(|seen| seen.robot.is_some())
    });
    check(seen.robot.as_ref().unwrap());
    assert_eq!(ids(&seen), IN_VIEW);
    assert_eq!((seen.width(), seen.height()), (640, 480));
    for sighting in &seen.found {
        assert!((0.8..2.0).contains(&sighting.distance()), "{sighting:?}");
        assert!(sighting.known() && sighting.error() < 0.5, "{sighting:?}");
        assert_eq!(sighting.corners.len(), 4);
    }
    // A stream.
    let mut updates = markers.sightings_updates().unwrap();
    let mut last = 0;
    for _ in 0..3 {
        let seen = updates.next_within(Duration::from_secs(20));
        let seen = seen.expect("markers").message;
        check(seen.robot.as_ref().unwrap());
        assert!(seen.captured() > last);
        last = seen.captured();
    }
    drop(updates);
    let camera = client.camera(0);
    wait_for("the camera is off", || {
        (!camera.info().ok()?.is_on()).then_some(())
    });
    // People see a line.
    let mut watch = Running::start(&mediator, &["watch", "markers"]);
    let line = watch.line();
    assert!(line.starts_with("robot x   1.7"), "{line}");
    assert!(
        line.contains("  | 8: 1.") && line.contains("  | 15: 1."),
        "{line}"
    );
    watch.interrupt();
    client.close();
}

#[test]
fn a_camera_without_a_calibration_is_refused_unless_its_view_is_given() {
    let robot = Robot::new();
    let mut drivers = robot.drivers("").to_vec();
    drivers.push(robot.markers("wall_markers.toml"));
    let file = robot.file("wall_markers.toml");
    let given = format!(
        "markers:1=amber driver markers --fov-deg 70 --markers {}",
        file.display()
    );
    drivers.push(given);
    let mediator = mediator(&drivers);
    let client = Client::connect(mediator.address).unwrap();
    let why = "camera:0 is not calibrated: give its driver --calibration, or this one --fov-deg";
    wait_for("its trouble", || {
        (troubles(&mediator, "markers:0") == [why]).then_some(())
    });
    let refused = client.markers(0).sightings().unwrap_err().to_string();
    assert!(refused.contains(why), "{refused}");
    let seen = wait_for("a pose", || {
        client
            .markers(1)
            .sightings()
            .ok()
            .filter(|seen| seen.robot.is_some())
    });
    check(seen.robot.as_ref().unwrap());
    client.close();
}

#[test]
fn a_marker_elsewhere_than_in_the_file_gives_no_pose() {
    let robot = Robot::new();
    let text = std::fs::read_to_string(robot.file("wall_markers.toml")).unwrap();
    let mut file: toml::Table = text.parse().unwrap();
    let all = file["marker"].as_array_mut().unwrap();
    let moved = all.iter_mut().find(|it| it["id"].as_integer() == Some(8));
    let moved = moved.unwrap().as_table_mut().unwrap();
    // Along its wall, which goes from top to bottom or from left to right.
    let axis = match moved["heading_deg"].as_float().unwrap().abs() {
        turn if (turn - 90.0).abs() < 1.0 => "x_m",
        _ => "y_m",
    };
    let place_m = moved[axis].as_float().unwrap() + 0.6;
    moved.insert(axis.to_owned(), place_m.into());
    std::fs::write(robot.file("wrong.toml"), file.to_string()).unwrap();
    let mut drivers = robot.drivers(&robot.calibration()).to_vec();
    drivers.push(robot.markers("wrong.toml"));
    let mediator = mediator(&drivers);
    let client = Client::connect(mediator.address).unwrap();
    let markers = client.markers(0);
    let said = wait_for("why there is no pose", || {
        let seen = markers.sightings().ok()?;
        assert_eq!(seen.robot, None);
        seen.no_pose
            .filter(|why| why.starts_with("markers 8 and 15 "))
    });
    assert!(
        said.ends_with("one stands elsewhere than in the file"),
        "{said}"
    );
    client.close();
}

#[test]
fn the_driver_follows_the_protocol_without_a_camera() {
    with_and_without("markers", 0, ["640", "320"], |check, width| {
        check.args(["markers", "--max-width", width]);
    });
}
