//! The drivers that move the robot, in the demo: to places, around walls, and to a stop when
//! something is lost. The simulated world counts contacts.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;

use amber_client::{Client, DriveEnd, OrderState, Target, WheelSpeeds, new_order_id};
use amber_map::{Layout, Map, Occupancy, ros_map};
use amber_proto::mediator::DriverState;
use nix::sys::signal::Signal;

use crate::common::{AMBER, Mediator, demo_on, root, signal, wait_for};
use crate::robot::{AT_ONCE_S, Robot, drives, stands};

const DRIVER: &str = "drive-to-point:0";
/// A place in another room, and one in a room that is two doors away.
pub const NEAR: [&str; 3] = ["goto", "1.4", "1"];
pub const FAR: [&str; 3] = ["goto", "5.7", "4.4"];

/// A robot that knows where it is.
pub fn robot() -> Robot {
    robot_of(Robot::start())
}

/// Waits until a robot knows where it is.
pub fn robot_of(robot: Robot) -> Robot {
    wait_for("a pose", || {
        let mut asked = robot.demo.amber(&["call", "location", "pose", "--json"]);
        let output = asked.output().ok()?;
        let pose: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        (pose["p"].as_f64()? > 0.9).then_some(())
    });
    robot
}

/// Starts to drive to a point.
pub fn going(robot: &Robot, to: &[&str]) -> Child {
    let mut command = robot.demo.amber(to);
    let going = command.stdout(Stdio::null()).spawn().unwrap();
    robot.until("it drives", drives);
    going
}

#[test]
fn goto_drives_through_doors_without_contact() {
    let robot = robot();
    for (to, x_m, y_m) in [(NEAR, 1.4, 1.0), (FAR, 5.7, 4.4)] {
        let output = robot.demo.amber(&to).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let state = robot.state();
        let distance_m = (state.x_m - x_m).hypot(state.y_m - y_m);
        assert!(distance_m < 0.35, "{distance_m} m from {to:?}");
        assert_eq!(state.contacts, 0);
    }
    let output = robot.demo.amber(&["goto", "9", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("cannot reach (9 m, 1 m)"), "{error}");
}

/// Two rooms that look alike but for a pillar behind the robot, which stands in the right one.
fn two_rooms() -> String {
    let room = |left_m: f64| {
        [
            (0.0, 0.0, 4.0, 0.0),
            (4.0, 0.0, 4.0, 3.0),
            (4.0, 3.0, 0.0, 3.0),
            (0.0, 3.0, 0.0, 0.0),
            // A cupboard, so that the room looks otherwise when turned.
            (3.2, 0.0, 3.2, 0.6),
            (3.2, 0.6, 4.0, 0.6),
        ]
        .map(|(x1, y1, x2, y2)| (left_m + x1, y1, left_m + x2, y2))
    };
    let pillar = [
        (0.0, 1.2, 0.4, 1.2),
        (0.4, 1.2, 0.4, 1.8),
        (0.4, 1.8, 0.0, 1.8),
    ];
    let walls = [&room(0.0)[..], &pillar, &room(6.0)].concat();
    let wall = |(index, (x1, y1, x2, y2)): (usize, &(f64, f64, f64, f64))| {
        serde_json::json!({
            "id": format!("W{index}"),
            "from": {"x": x1, "y": y1},
            "to": {"x": x2, "y": y2},
        })
    };
    let walls: Vec<_> = walls.iter().enumerate().map(wall).collect();
    let start = serde_json::json!([{"location": {"x": 8.0, "y": 1.5, "alpha": 0.0}}]);
    serde_json::json!({"name": "two rooms", "walls": walls, "robots": start}).to_string()
}

#[test]
fn a_robot_that_may_be_in_either_of_two_rooms_turns_before_it_drives() {
    let folder = tempfile::tempdir().unwrap();
    let map = folder.path().join("rooms.roson");
    fs::write(&map, two_rooms()).unwrap();
    let robot = Robot::of(demo_on(&map, "dummy:2=amber driver dummy"));
    let output = robot.demo.amber(&["goto", "9.2", "2"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    let states = ["searching", "following", "arrived"];
    let places = states.map(|state| shown.find(state));
    assert!(places.iter().all(Option::is_some), "{shown}");
    assert!(places.is_sorted(), "{shown}");
    let state = robot.state();
    let distance_m = (state.x_m - 9.2).hypot(state.y_m - 2.0);
    assert!(distance_m < 0.35, "{distance_m} m: {shown}");
    assert_eq!(state.contacts, 0);
}

#[test]
fn an_image_and_a_graph_of_nodes_are_maps_to_drive_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let flat = Map::flat();
    fs::write(path("flat.roson"), flat.to_roson()).unwrap();
    let faces = flat.faces();
    let layout = Layout::around_walls(&faces, 0.3, 0.05).unwrap();
    let (yaml, pgm) = ros_map::write(&Occupancy::from_walls(layout, &faces), "flat.pgm");
    fs::write(path("flat.yaml"), yaml).unwrap();
    fs::write(path("flat.pgm"), pgm).unwrap();
    let by_graph = format!(
        "drive_to_point:1=amber driver drive_to_point --laser-offset-mm 0 --planner graph --map {}",
        path("flat.roson").display()
    );
    let map = path("flat.yaml");
    let mut robot = robot_of(Robot::of(demo_on(&map, &by_graph)));
    let start = robot.state();
    // There and back: by the cells of the image, then by nodes and links.
    let home = [start.x_m, start.y_m].map(|number| format!("{number:.2}"));
    let back = ["goto", &home[0], &home[1], "--device", "drive_to_point:1"];
    for (to, x_m, y_m) in [(&NEAR[..], 1.4, 1.0), (&back, start.x_m, start.y_m)] {
        let output = robot.demo.amber(to).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let state = robot.state();
        let distance_m = (state.x_m - x_m).hypot(state.y_m - y_m);
        assert!(distance_m < 0.35, "{distance_m} m from {to:?}");
        assert_eq!(state.contacts, 0);
    }
    let shown = robot.demo.amber(&["map", "show"]).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");
    // Its copy of the map goes with the demo.
    let copies = robot.folder().join("sim");
    assert!(copies.join("map.pgm").exists());
    signal(robot.demo.pid(), Signal::SIGINT);
    assert!(robot.demo.wait().success());
    assert!(!copies.exists());
}

#[test]
fn the_robot_stops_when_goto_ends() {
    let robot = robot();
    // A killed command cannot say that it ends: it does not keep its lease.
    let mut killed = going(&robot, &FAR);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let stood = robot.until("it stands", stands);
    let left_m = (stood.x_m - 5.7).hypot(stood.y_m - 4.4);
    assert!(
        left_m > 1.0,
        "it drove on, up to {left_m} m from the target"
    );
    // Ctrl-C and Ctrl-Z.
    for how in [Signal::SIGINT, Signal::SIGTSTP] {
        let mut interrupted = going(&robot, &FAR);
        signal(interrupted.id(), how);
        let told = robot.state();
        let stood = robot.until("it stands", stands);
        let took_s = stood.time_s - told.time_s;
        assert!(took_s < AT_ONCE_S, "{how}: {took_s} s");
        assert_eq!(interrupted.wait().unwrap().code(), Some(1));
    }
}

#[test]
fn goto_without_a_pose_says_so_at_once_and_gives_up() {
    let robot = robot();
    // When it starts again, it has forgotten the pose.
    for driver in ["location", DRIVER] {
        assert!(robot.amber(&["stop", driver]));
        robot.demo.wait_for_state(driver, DriverState::Down);
    }
    assert!(robot.amber(&["start", DRIVER]));
    robot.demo.wait_for_state(DRIVER, DriverState::Up);
    let output = robot.demo.amber(&NEAR).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let why = "drive-to-point:0 cannot drive: the pose of the robot is unknown";
    // On a busy machine, it may also lose its lease.
    assert_eq!(
        said.lines().next(),
        Some(&*format!("waiting: {why}")),
        "{said}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn an_order_that_another_client_replaces_ends_and_says_by_whom_also_later() {
    let robot = robot();
    crate::robot::runtime().block_on(async {
        let client = Client::connect(robot.demo.address).await.unwrap();
        let other = Client::connect(robot.demo.address).await.unwrap();
        let drive = client.drive_to_point(0);
        let (first, second) = (new_order_id(), new_order_id());
        let far = [Target::new(5.7, 4.4)];
        let driving = drive.drive_through(&far).with_id(first).into_future();
        let replacing = async {
            while !drives(&robot.state()) {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            let drive = other.drive_to_point(0);
            let near = [Target::new(1.4, 1.0)];
            drive.go(second, &near, Some("a test")).await.unwrap()
        };
        let (end, begun) = tokio::join!(driving, replacing);
        assert_eq!(begun.state(), OrderState::Running);
        let DriveEnd::Ended(order) = end.unwrap() else {
            panic!("it arrived");
        };
        assert_eq!(order.state(), OrderState::Replaced);
        assert!(order.reason().starts_with("replaced by a test (client "));
        other.close().await;
        robot.until("it stands", stands);
        let lost = drive.order(second).await.unwrap();
        assert_eq!(lost.state(), OrderState::ClientLost);
        assert_eq!(drive.order(first).await.unwrap(), order);
        client.close().await;
    });
}

#[test]
fn without_a_laser_the_robot_stops_says_why_and_goes_on_later() {
    let robot = robot();
    let mut going = going(&robot, &FAR);
    assert!(robot.sim(&["fault", "unplug", "hokuyo"]));
    robot.until("it stands", stands);
    wait_for("the reason", || {
        let troubles = robot.demo.describe(DRIVER).troubles;
        let mut texts = troubles.into_iter().map(|trouble| trouble.text);
        texts.find(|text| text.contains("hokuyo:0"))
    });
    assert!(robot.sim(&["fault", "replug", "hokuyo"]));
    robot.until("it drives again", drives);
    assert!(going.wait().unwrap().success());
    assert_eq!(robot.state().contacts, 0);
}

#[test]
fn collision_avoidance_stops_before_a_wall() {
    let robot = Robot::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let client = Client::connect(robot.demo.address).await.unwrap();
        // Near the wall, it refuses what this test commands.
        let guarded = client.collision_avoidance(0).without_waiting(|_| ());
        let ahead = WheelSpeeds::sides(300, 300);
        let start = robot.state();
        // The start is three metres from the wall ahead. On a busy machine the robot may stop before,
        // and go on, because scans come late.
        loop {
            guarded.drive(ahead).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            let state = robot.state();
            if state.travelled_m > 1.0 && stands(&state) {
                break;
            }
            let late = state.time_s > start.time_s + 60.0;
            assert!(!late, "it did not drive to the wall and stop: {state:?}");
        }
        client.close().await;
    });
    assert_eq!(robot.state().contacts, 0);
}

#[test]
fn drivers_of_one_mediator_use_the_devices_of_another() {
    let robot = Robot::start();
    let options = format!("--laser-offset-mm 0 --devices-of {}", robot.demo.address);
    let map = root().join("drivers/map/maps/flat.roson");
    let location = format!(
        "location:0=amber driver location {options} --map {}",
        map.display()
    );
    let guard = format!("collision-avoidance:0=amber driver collision_avoidance {options}");
    let other = Mediator::start(&[&location, &guard]);
    let found = wait_for("a pose", || {
        let mut asked = other.amber(&["call", "location", "pose", "--json"]);
        let output = asked.output().ok()?;
        let pose: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        (pose["p"].as_f64()? > 0.9).then_some(pose)
    });
    let state = robot.state();
    let [x_m, y_m] = ["x", "y"].map(|name| found[name].as_f64().unwrap());
    let error_m = (state.x_m - x_m).hypot(state.y_m - y_m);
    assert!(error_m < 0.15, "{error_m} m: {found} and {state:?}");

    crate::robot::runtime().block_on(async {
        let client = Client::connect(other.address).await.unwrap();
        let guarded = client.collision_avoidance(0).without_waiting(|_| ());
        while !drives(&robot.state()) {
            guarded.drive(WheelSpeeds::sides(150, 150)).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        // The drivers end with their mediator, and the wheels with them.
        signal(other.pid(), Signal::SIGKILL);
        robot.until("it stands", stands);
        client.close().await;
    });
    assert_eq!(robot.state().contacts, 0);
}

#[test]
fn the_drivers_keep_the_protocol_and_share_the_description_of_the_robot() {
    let folder = tempfile::tempdir().unwrap();
    let robot = folder.path().join("robot.toml");
    let text = "laser_offset_mm = 100\ntrack_mm = 400\nlength_mm = 370\nwidth_mm = 330\n\
                max_speed_mm_s = 700\nimu = \"ninedof:0\"\nscan_turn_ms = 100\n";
    std::fs::write(&robot, text).unwrap();
    let robot = robot.to_str().unwrap();
    let drivers = [
        ("collision_avoidance", "collision-avoidance"),
        ("drive_support", "roboclaw"),
        ("drive_to_point", "drive-to-point"),
        ("location", "location"),
        ("pid_follow_trajectory", "pid-follow-trajectory"),
    ];
    let check = |driver, device, more: &[&str]| {
        let mut command = Command::new(AMBER);
        command.args(["check", "--as", device, "--", AMBER, "driver", driver]);
        let output = command.args(more).output().unwrap();
        assert!(output.status.success(), "{driver} {more:?}: {output:?}");
    };
    // Each check mostly waits for messages that must not arrive.
    thread::scope(|scope| {
        for (driver, device) in drivers {
            scope.spawn(move || check(driver, device, &["--robot", robot]));
            // Without the offset, it waits for the robot device, and keeps the protocol.
            scope.spawn(move || check(driver, device, &[]));
        }
    });
}
