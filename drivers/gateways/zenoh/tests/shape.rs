//! The shape of the robot may become known later, and change: real processes.

// The helpers are no tests for clippy.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::sync::mpsc;
use std::time::Instant;

use amber_ros2::messages::TfMessage;
use amber_ros2::{DataKey, RosMessage, decode};
use zenoh::Wait;
use zenoh_ext::{AdvancedSubscriberBuilderExt, HistoryConfig};

use self::common::{Operator, PATIENCE, Process, Router, amber, mediator_with, robot_with};

#[allow(dead_code)]
mod common;

#[test]
fn another_shape_is_used_without_a_restart() {
    let router = Router::start();
    let folder = tempfile::tempdir().unwrap();
    let shape = folder.path().join("robot.toml");
    let driver = format!("robot:0=amber driver robot --config {}", shape.display());
    // The driver has no file yet, so the robot begins without a shape.
    let (_mediator, address) = mediator_with(&driver);
    let settings = folder.path().join("r1.toml");
    std::fs::write(&settings, "[ros]\n").unwrap();
    let robot: Process = robot_with("r1", &address, &router, &settings);
    robot.line("a node of ROS 2");
    let desk = Operator::new(&router, "desk");
    let (sender, frames) = mpsc::channel();
    let key = DataKey::new(0, "/tf_static", &TfMessage::TYPE).to_string();
    let _subscriber = (desk.session.declare_subscriber(key))
        .history(HistoryConfig::default().detect_late_publishers())
        .callback(move |sample| {
            let _ = sender.send(decode::<TfMessage>(&sample.payload().to_bytes()).unwrap());
        })
        .wait()
        .unwrap();
    // Waits until the laser is so far ahead.
    let laser_at = |ahead_m: f64| {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let found = frames.recv_timeout(left).expect("this place of the laser");
            let mut all = found.transforms.iter();
            let laser = all.find(|it| it.child_frame_id == "r1/laser").unwrap();
            if (laser.transform.translation.x - ahead_m).abs() < 1e-6 {
                return;
            }
        }
    };
    laser_at(0.0);
    std::fs::write(&shape, "laser_offset_mm = 100\n").unwrap();
    // The driver has failed without its file.
    let mut start = amber();
    start.env("AMBER_MEDIATOR", &address);
    start.args(["restart", "robot:0"]);
    assert!(start.output().unwrap().status.success());
    laser_at(0.1);
    robot.line("the robot has another shape");
    // It changes.
    std::fs::write(&shape, "laser_offset_mm = 250\n").unwrap();
    laser_at(0.25);
    // Without the device, the last shape counts.
    let mut stop = amber();
    stop.env("AMBER_MEDIATOR", &address);
    stop.args(["stop", "robot:0"]);
    assert!(stop.output().unwrap().status.success());
    assert!(
        frames
            .recv_timeout(std::time::Duration::from_secs(3))
            .is_err()
    );
}
