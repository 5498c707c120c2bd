//! Cameras: the real driver and the simulated network camera.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use amber_client::blocking::Client;
use amber_proto::camera::{ControlValue, Format, Picture, PictureRequest, PictureStream};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{AMBER, Mediator, root, wait_for};
use crate::kit::with_and_without;

mod command;

/// A simulated robot with a camera. It ends when this is dropped, because its stdin ends.
pub struct Robot {
    folder: TempDir,
    process: Child,
    /// Where the camera listens.
    pub place: String,
}

impl Robot {
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// The same with more options.
    fn with(options: &[&str]) -> Self {
        Self::of("320x240", options)
    }

    pub fn with_pictures_of(size: &str) -> Self {
        Self::of(size, &[])
    }

    pub fn of(size: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(AMBER);
        command.args(["sim", "--until-eof", "--camera", "--camera-size", size]);
        command.arg("--dir").arg(folder.path().join("sim"));
        command.args(options);
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = process.unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let place = lines.find_map(|line| Some(line.strip_prefix("camera ")?.to_owned()));
        Self {
            folder,
            process,
            place: place.expect("the camera listens"),
        }
    }

    fn fault(&self, words: &[&str]) {
        let mut command = Command::new(AMBER);
        command.args(["sim", "fault"]).args(words);
        command.env("AMBER_SIM_DIR", self.folder.path().join("sim"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    pub fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A file that the simulation has written.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("sim").join(name)
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn troubles(mediator: &Mediator) -> Vec<String> {
    let driver = mediator.describe("camera:0");
    driver.troubles.into_iter().map(|it| it.text).collect()
}

fn is_jpeg(picture: &Picture) -> bool {
    picture.data().starts_with(&[0xFF, 0xD8, 0xFF]) && picture.data().ends_with(&[0xFF, 0xD9])
}

#[test]
fn clients_see_what_the_robot_sees() {
    let robot = Robot::new();
    let url = format!("http://{}/stream", robot.place);
    let mediator = Mediator::start(&[&format!("camera:0=amber driver camera --url {url}")]);
    mediator.wait_for_line("INFO ready: pictures of 320 x 240");
    let client = Client::connect(mediator.address).unwrap();
    let camera = client.camera(0);
    let picture = camera.picture(PictureRequest::default()).unwrap();
    assert_eq!((picture.width(), picture.height()), (320, 240));
    assert!(is_jpeg(&picture) && picture.data().len() > 5_000);

    let small = PictureRequest {
        max_width: Some(160),
        format: Some(Format::Gray8.into()),
        ..PictureRequest::default()
    };
    let small = camera.picture(small).unwrap();
    assert_eq!(small.data().len(), 160 * 120);

    let period = Duration::from_millis(200);
    let stream = PictureStream {
        quality: Some(30),
        ..PictureStream::default()
    };
    let mut pictures = camera.pictures(period, stream).unwrap();
    let mut next = || {
        let update = pictures.next_within(Duration::from_secs(5));
        update.expect("a picture").message
    };
    let (first, second) = (next(), next());
    assert!(is_jpeg(&first) && first.data().len() < picture.data().len());
    assert!(second.sequence() > first.sequence());
    assert!(second.captured() > first.captured());

    let output = mediator
        .amber(&["call", "camera", "info", "--json"])
        .output();
    let told: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(
        (&told["source"], &told["width"]),
        (&url.into(), &320.into()),
        "{told}"
    );
    assert_eq!(told["is_on"], true, "{told}");

    robot.fault(&["half-picture"]);
    wait_for("a damaged picture", || next().damaged().then_some(()));
    robot.fault(&["clear"]);
    wait_for("a whole picture", || (!next().damaged()).then_some(()));

    robot.fault(&["unplug", "camera"]);
    let is_closed = |text: &String| text.ends_with("has closed the connection");
    wait_for("its trouble", || {
        troubles(&mediator).iter().any(is_closed).then_some(())
    });
    robot.fault(&["clear"]);
    wait_for("pictures again", || {
        troubles(&mediator).is_empty().then_some(())
    });
    assert!(is_jpeg(&next()));
    client.close();
}

/// A library that answers the calls of V4L2 instead of a kernel. Its structures are those of the kernel's
/// header.
pub fn shim(folder: &Path) -> PathBuf {
    let shim = folder.join("shim.so");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
        .arg(&shim);
    compiler.arg(root().join("tests/v4l2/shim.c")).arg("-ldl");
    let compiled = compiler.output().expect("a C compiler");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    shim
}

#[test]
#[cfg(target_os = "linux")]
fn a_usb_camera_is_unplugged_and_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let shim = shim(folder.path());
    let device = folder.path().join("video0");
    let plug = || std::fs::write(&device, "").unwrap();
    plug();
    let (shown, library) = (device.display(), shim.display());
    let driver = format!(
        "camera:0=env LD_PRELOAD={library} SHIM_DEVICE={shown} {AMBER} driver camera --device {shown} --rate 30"
    );
    let mediator = Mediator::start(&[&driver]);
    mediator.wait_for_line("INFO ready: pictures of 320 x 240");
    let client = Client::connect(mediator.address).unwrap();
    let camera = client.camera(0);
    let picture = camera.picture(PictureRequest::default()).unwrap();
    assert!(is_jpeg(&picture), "its pixels are encoded");
    let info = camera.info().unwrap();
    let mode = &info.modes[0];
    assert_eq!((mode.format(), mode.width()), ("YUYV", 320));
    assert!((mode.max_rate() - 30.0).abs() < 0.01);
    let control = &info.controls[0];
    assert_eq!(
        (control.name(), control.value(), control.maximum()),
        ("Brightness", 128, 255)
    );
    let wanted = |value| ControlValue {
        name: Some("brightness".into()),
        value: Some(value),
        ..ControlValue::default()
    };
    assert_eq!(camera.set_control(wanted(200)).unwrap().value(), 200);
    let refused = camera.set_control(wanted(300)).unwrap_err().to_string();
    assert!(
        refused.contains("goes from 0 to 255, not to 300"),
        "{refused}"
    );

    std::fs::remove_file(&device).unwrap();
    let trouble = format!("{shown} does not exist: plug the camera in");
    wait_for("its trouble", || {
        troubles(&mediator).contains(&trouble).then_some(())
    });
    let refused = camera
        .picture(PictureRequest::default())
        .unwrap_err()
        .to_string();
    assert!(refused.contains(&trouble), "{refused}");
    plug();
    wait_for("pictures again", || {
        camera.picture(PictureRequest::default()).ok()
    });
    assert_eq!(troubles(&mediator), [""; 0]);
    client.close();
}

#[test]
fn programs_get_the_places_of_the_markers_and_the_calibration() {
    let robot = Robot::new();
    let markers: toml::Table = robot.file("wall_markers.toml").parse().unwrap();
    assert!(markers["marker"].as_array().unwrap().len() >= 8);
    let folder = tempfile::tempdir().unwrap();
    let calibration = folder.path().join("camera.yaml");
    std::fs::write(&calibration, robot.file("camera.yaml")).unwrap();
    let place = &robot.place;
    let calibration = calibration.to_str().unwrap();
    let driver = format!(
        "camera:0=amber driver camera --url http://{place}/esp32 --calibration {calibration}"
    );
    let mediator = Mediator::start(&[&driver]);
    let client = Client::connect(mediator.address).unwrap();
    let info = client.camera(0).info().unwrap();
    let calibration = info.calibration.unwrap();
    assert_eq!((calibration.width(), calibration.cx()), (320, 159.5));
    assert!((calibration.fx() - 228.5).abs() < 0.1, "{calibration:?}");
    client.close();
}

#[test]
fn pictures_in_pieces_follow_the_protocol() {
    let robot = Robot::with_pictures_of("800x600");
    let mut check = Command::new(AMBER);
    check.args(["check", "--json", "--as", "camera", "--timeout", "30"]);
    check.args(["--only", "requests", "--only", "pieces", "--"]);
    check.args(["amber", "driver", "camera", "--url"]);
    let output = check.arg(format!("http://{}/stream", robot.place)).output();
    let output = output.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success(), "{report}");
    let pieces = report["checks"][1]["summary"].as_str().unwrap();
    assert!(
        pieces.starts_with("'picture': ") && pieces.ends_with(" pieces"),
        "{report}"
    );
}

#[test]
fn the_driver_follows_the_protocol_with_and_without_its_camera() {
    let robot = Robot::new();
    // Without the camera, it answers with the reason.
    let places = [&*robot.place, "127.0.0.1:1"];
    with_and_without("camera", 0, places, |check, place| {
        let url = format!("http://{place}/stream");
        check.args(["camera", "--url", &url]);
    });
}
