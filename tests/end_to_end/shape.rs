//! The robot device says which shape the robot has, and everything asks it.

use std::fs;

use amber_client::Client;
use amber_proto::mediator::DriverState;
use serde_json::Value;

use crate::common::{Mediator, demo, wait_for};

fn robot(mediator: &Mediator) -> Option<Value> {
    let mut command = mediator.amber(&["robot", "show", "--json"]);
    serde_json::from_slice(&command.output().unwrap().stdout).ok()
}

#[test]
fn a_change_of_the_file_reaches_the_drivers_that_asked() {
    let (demo, folder) = demo();
    let first = wait_for("the robot", || robot(&demo));
    assert_eq!(first["laser"]["offset_mm"], 0.0);
    assert_eq!(first["roles"][0]["device"], "roboclaw:0");
    assert_eq!(first["driven_by"], Value::Null);
    demo.wait_until_ready();
    let file = folder.path().join("sim/robot.toml");
    let text = fs::read_to_string(&file).unwrap();
    let ahead = text.replace("laser_offset_mm = 0", "laser_offset_mm = 120");
    assert_ne!(ahead, text);
    fs::write(&file, ahead).unwrap();
    wait_for("the new place", || {
        robot(&demo).filter(|it| it["laser"]["offset_mm"] == 120.0)
    });
    demo.wait_for_line("the robot has changed");
    // The processes are the same: they begin again by themselves.
    for device in ["location:0", "collision-avoidance:0", "drive-to-point:0"] {
        let driver = demo.describe(device);
        assert_eq!(driver.restarts(), 0, "{device}");
        assert_eq!(driver.state(), DriverState::Up, "{device}");
    }
    // A mistake changes nothing, and is said.
    fs::write(&file, "laser_ofset_mm = 7\n").unwrap();
    wait_for("the complaint", || {
        let troubles = demo.describe("robot:0").troubles;
        let text = &troubles.first()?.text;
        text.contains("laser_ofset_mm").then_some(())
    });
    let still = robot(&demo).unwrap();
    assert_eq!(still["laser"]["offset_mm"], 120.0);
}

#[test]
fn what_the_file_masks_is_hidden_in_the_scans_and_seen_again_without_a_restart() {
    let (demo, folder) = demo();
    demo.wait_until_ready();
    let runtime = crate::robot::runtime();
    let client = runtime.block_on(Client::connect(demo.address)).unwrap();
    let laser = client.hokuyo(0);
    // How many points within 40 degrees ahead are unknown, and how many there are.
    let hidden = || {
        let scan = runtime.block_on(laser.scan()).ok()?;
        let points = scan.points().iter();
        let ahead: Vec<_> = points.filter(|it| it.angle_deg.abs() < 20.0).collect();
        let unknown = ahead.iter().filter(|it| it.distance_mm == 1);
        Some((unknown.count(), ahead.len()))
    };
    let file = folder.path().join("sim/robot.toml");
    let text = fs::read_to_string(&file).unwrap();
    let (before, all) = wait_for("a scan", hidden);
    assert!(before == 0 && all > 80, "{before} of {all}");
    let masked = format!("{text}\nlaser_masked_deg = \"-20:10\"\n");
    fs::write(&file, masked).unwrap();
    let expected = all * 3 / 4;
    wait_for("hidden points", || {
        hidden().filter(|(count, _)| count.abs_diff(expected) <= 2)
    });
    let shown = robot(&demo).unwrap();
    assert_eq!(shown["laser_masked_deg"], "-20:10");
    // Exchanged borders change nothing.
    fs::write(&file, format!("{text}\nlaser_masked_deg = \"10:-20\"\n")).unwrap();
    wait_for("the complaint", || {
        let troubles = demo.describe("robot:0").troubles;
        let text = &troubles.first()?.text;
        text.contains("hides 330 of 360 degrees").then_some(())
    });
    let (still, _) = wait_for("a scan", hidden);
    assert!(still.abs_diff(expected) <= 2, "{still} of {all}");
    fs::write(&file, text).unwrap();
    wait_for("all points", || hidden().filter(|(count, _)| *count == 0));
    assert_eq!(demo.describe("hokuyo:0").restarts(), 0);
}

#[test]
fn the_robot_is_drawn_and_told_as_urdf() {
    let (demo, folder) = demo();
    wait_for("the robot", || robot(&demo));
    let output = demo.amber(&["robot", "show"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("370 x 330 mm") && text.contains("front"),
        "{text}"
    );
    assert!(
        text.contains("driven by:") && text.contains("nobody"),
        "{text}"
    );
    let picture = folder.path().join("robot.png");
    let mut command = demo.amber(&["robot", "show", "--png"]);
    assert!(command.arg(&picture).status().unwrap().success());
    assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
    let output = demo.amber(&["robot", "show", "--urdf"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("<?xml") && text.contains("<link name=\"laser\">"),
        "{text}"
    );
}

#[test]
fn without_a_robot_device_the_error_says_what_to_do() {
    let mediator = Mediator::start(&[
        "location:0=amber driver location",
        "dummy:0=amber driver dummy",
    ]);
    let output = mediator.amber(&["robot", "show"]).output().unwrap();
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("amber driver robot"), "{text}");
    // A driver that needs the shape waits for it, and says so.
    wait_for("the complaint", || {
        let troubles = mediator.describe("location:0").troubles;
        let text = &troubles.first()?.text;
        text.contains("robot").then_some(())
    });
}
