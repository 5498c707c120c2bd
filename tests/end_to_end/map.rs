//! `amber map make` in the demo: the robot explores, its map is used, and it stops when something is
//! lost. The simulated world provides the true pose.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use amber_client::{Client, MapPose};
use amber_map::{Map, Pose};
use amber_proto::mapping::SaveMap;
use amber_sim::control::SimulationState;
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::common::{PATIENCE, demo_with, signal, wait_for};
use crate::robot::{AT_ONCE_S, Robot, drives, stands};
use crate::terminal::Terminal;

/// The distance from the true position that counts as found.
const NEAR_M: f64 = 0.1;

/// The walls that a robot in the flat has seen at least when it knows 12 m²: a circle of that area has a
/// border of 12 m, and at most half of it is open.
const WALLS_M: f64 = 6.0;

/// The turn after which a laser that sees 240 degrees has seen everything around.
const TURNED_RAD: f64 = 2.1;
/// So many scans show the walls around, if they are made in one turn.
const KEYS: u64 = 12;

/// A demo with a location driver for a map that does not exist yet.
fn robot(folder: &TempDir, map: &str) -> Robot {
    let driver = format!(
        "location:1=amber driver location --laser-offset-mm 0 --map {}",
        folder.path().join(map).display()
    );
    Robot::of(demo_with(&driver))
}

fn make(robot: &Robot, output: &Path, more: &[&str]) -> Child {
    let mut command = robot.demo.amber(&["map", "make", "--json", "-o"]);
    command.arg(output).args(more);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// The pose in the map frame of messages as one of the plane frame.
fn truth(robot: &Robot) -> Pose {
    let state = robot.state();
    MapPose::new(state.x_m, state.y_m, state.heading_deg.to_radians()).into()
}

#[test]
fn the_robot_explores_and_finds_itself_on_its_map() {
    let folder = tempfile::tempdir().unwrap();
    let robot = robot(&folder, "flat.yaml");
    let start = truth(&robot);
    let output = folder.path().join("flat");
    let mut making = make(&robot, &output, &["--explore"]);
    let lines = BufReader::new(making.stdout.take().unwrap()).lines();
    let mut reports = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let deadline = Instant::now() + 3 * PATIENCE;
    // It reports once a second. Little is enough: a busy machine makes the robot slow.
    let explored = reports.find(|report| {
        assert!(Instant::now() < deadline, "{report}");
        report["way_m"].as_f64() > Some(0.5) && report["area_m2"].as_f64() > Some(12.0)
    });
    assert!(explored.is_some());
    signal(making.id(), Signal::SIGINT);
    let last = reports.last().unwrap();
    assert!(making.wait().unwrap().success(), "{last}");
    robot.until("it stands", stands);
    assert_eq!(robot.state().contacts, 0);
    assert_eq!(last["files"].as_array().unwrap().len(), 3, "{last}");
    let text = std::fs::read_to_string(output.with_extension("roson")).unwrap();
    let map = Map::parse(&text).unwrap();
    // The walls in sight, however many pieces they are in.
    let walls_m: f64 = map
        .walls
        .iter()
        .map(|wall| wall.to.minus(wall.from).length())
        .sum();
    assert!(walls_m > WALLS_M, "{walls_m} m of walls for {last}");

    // The same place in both maps.
    let mapped = map.robots[0];
    let now = truth(&robot);
    let expected = mapped.global_pose(start.local_pose(now));
    assert!(robot.amber(&["restart", "location:1"]));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let client = Client::connect(robot.demo.address).await.unwrap();
        let location = client.location(1);
        let finding = async {
            loop {
                let found = location.pose().await.ok().map(Pose::from);
                if found.is_some_and(|found| found.at.minus(expected.at).length() < NEAR_M) {
                    return;
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        let found = timeout(PATIENCE, finding).await;
        assert!(found.is_ok(), "{:#?}", robot.demo.output());
        client.close().await;
    });

    // An existing map is not replaced by accident.
    let again = make(&robot, &output, &["--for", "1"]);
    assert_eq!(again.wait_with_output().unwrap().status.code(), Some(2));
    assert_eq!(
        std::fs::read_to_string(output.with_extension("roson")).unwrap(),
        text
    );
}

#[cfg(feature = "record")]
#[test]
fn a_recorded_drive_makes_a_map_without_the_robot() {
    let folder = tempfile::tempdir().unwrap();
    let robot = robot(&folder, "flat.roson");
    let log = folder.path().join("drive.mcap");
    let mut record = robot.demo.amber(&["record", "--json", "-o"]);
    record.arg(&log).stdout(Stdio::piped());
    let mut record = record.spawn().unwrap();
    let mut lines = BufReader::new(record.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().is_ok());
    let before = robot.state();
    let turn = ["drive", "--left", "-150", "--right", "150", "--for", "8s"];
    assert!(robot.amber(&turn));
    let turned = robot.until("it stands", stands);
    assert!(turned.time_s - before.time_s > 4.0);
    signal(record.id(), Signal::SIGINT);
    lines.for_each(drop);
    assert!(record.wait().unwrap().success());

    let from = |log: &Path, more: &[&str]| {
        let output = folder.path().join("again");
        let mut command = robot
            .demo
            .amber(&["map", "make", "--json", "--force", "-o"]);
        command.arg(output).arg("--from").arg(log).args(more);
        // The robot is not needed.
        command.env("AMBER_MEDIATOR", "127.0.0.1:9");
        command.output().unwrap()
    };
    // The demo's robot device says where the laser is.
    let made = from(&log, &[]);
    let text = String::from_utf8_lossy(&made.stdout);
    assert!(
        made.status.success(),
        "{text} {}",
        String::from_utf8_lossy(&made.stderr)
    );
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(last["area_m2"].as_f64() > Some(8.0), "{last}");
    assert!(last["scans"].as_u64() > Some(KEYS), "{last}");
    let roson = std::fs::read_to_string(folder.path().join("again.roson")).unwrap();
    let map = Map::parse(&roson).unwrap();
    let walls_m = map
        .walls
        .iter()
        .map(|wall| wall.to.minus(wall.from).length());
    assert!(walls_m.sum::<f64>() > WALLS_M, "{last}");

    let other = folder.path().join("other.log");
    std::fs::write(&other, "hello\n").unwrap();
    for (log, part) in [
        (&other, "is no log of a drive"),
        (&folder.path().join("none"), "cannot read"),
    ] {
        let refused = from(log, &[]);
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(
            refused.status.code() == Some(2) && text.contains(part),
            "{text}"
        );
    }
    let refused = from(&log, &["--laser", "hokuyo:3"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has no scans"));
}

#[test]
fn the_exploring_robot_stops_without_laser_or_wheels_and_at_ctrl_c() {
    let folder = tempfile::tempdir().unwrap();
    let robot = robot(&folder, "flat.roson");
    let output = folder.path().join("flat");
    // On a machine that is too busy, the command loses its lease. A real error is repeatable.
    let mut problems = Vec::new();
    let (told, made) = loop {
        let mut making = make(&robot, &output, &["--explore", "--force"]);
        match drives_again(&robot, &mut making) {
            Ok(()) => {
                signal(making.id(), Signal::SIGINT);
                break (robot.state(), making);
            }
            Err(problem) => problems.push(problem),
        }
        assert!(problems.len() < 4, "{problems:?}");
    };
    let stood = robot.until("it stands", stands);
    let took_s = stood.time_s - told.time_s;
    assert!(took_s < AT_ONCE_S, "{took_s} s");
    let made = made.wait_with_output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let lines = String::from_utf8(made.stdout).unwrap();
    let last: Value = serde_json::from_str(lines.lines().next_back().unwrap()).unwrap();
    let missing = last["missing"].to_string();
    assert!(missing.contains("gaps between scans"), "{missing}");
    assert!(missing.contains("gaps between wheel speeds"), "{missing}");
    assert!(output.with_extension("pgm").exists());
    assert_eq!(robot.state().contacts, 0);
}

/// Unplugs one device after the other while the robot explores. An error if the command ends.
fn drives_again(robot: &Robot, making: &mut Child) -> Result<(), String> {
    for device in ["hokuyo", "roboclaw"] {
        until(robot, making, "it drives", drives)?;
        assert!(robot.sim(&["fault", "unplug", device]));
        robot.until("it stands", stands);
        assert!(robot.sim(&["fault", "replug", device]));
    }
    until(robot, making, "it drives again", drives)
}

/// Waits for a state of the robot. An error if the command ends before.
fn until(
    robot: &Robot,
    making: &mut Child,
    what: &str,
    is_true: impl Fn(&SimulationState) -> bool,
) -> Result<(), String> {
    wait_for(what, || match making.try_wait().unwrap() {
        Some(status) => Some(Err(format!("not '{what}', but {status}"))),
        None => is_true(&robot.state()).then_some(Ok(())),
    })
}

/// Lets another client turn the robot on the spot until the laser has seen everything around, and the
/// growing map has scans of it. `progress` has the heading of the robot and the number of key scans.
pub fn look_around(robot: &Robot, mut progress: impl FnMut() -> Option<(f64, u64)>) {
    let turn = || {
        let mut command = robot.demo.amber(&["drive", "--for", "600s"]);
        command.args(["--left", "150", "--right", "-150"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let mut driving = turn();
    wait_for("a look around", || {
        // On a machine that is too busy, it loses its lease.
        if driving.try_wait().unwrap().is_some() {
            driving = turn();
        }
        progress().filter(|(heading_rad, keys)| heading_rad.abs() > TURNED_RAD && *keys >= KEYS)
    });
    signal(driving.id(), Signal::SIGINT);
    driving.wait().unwrap();
    robot.until("it stands", stands);
}

/// The heading of the robot on the growing map, and the number of its key scans.
pub fn heading_and_keys(robot: &Robot) -> Option<(f64, u64)> {
    let mut asked = robot.demo.amber(&["call", "mapping", "progress", "--json"]);
    let shown: Value = serde_json::from_slice(&asked.output().ok()?.stdout).ok()?;
    let heading_rad = shown["location"]["alfa"].as_f64()?;
    Some((heading_rad, shown["key_scans"].as_u64()?))
}

#[test]
fn a_map_is_made_while_another_client_drives() {
    let folder = tempfile::tempdir().unwrap();
    let robot = Robot::start();
    let output = folder.path().join("hand");
    let mut making = make(&robot, &output, &[]);
    let lines = BufReader::new(making.stdout.take().unwrap()).lines();
    let mut reports = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    look_around(&robot, || {
        let report = reports.next()?;
        Some((
            report["heading_rad"].as_f64()?,
            report["key_scans"].as_u64()?,
        ))
    });
    signal(making.id(), Signal::SIGINT);
    let last = reports.last().unwrap();
    assert!(making.wait().unwrap().success(), "{last}");
    let text = std::fs::read_to_string(output.with_extension("roson")).unwrap();
    assert!(Map::parse(&text).unwrap().walls.len() > 3, "{text}");
}

#[test]
fn keys_drive_while_the_growing_map_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let robot = Robot::start();
    let output = folder.path().join("keys");
    // On a machine that is too busy, the command loses its lease. A real error is repeatable.
    let mut problems = Vec::new();
    let mut terminal = loop {
        let mut command =
            (robot.demo).amber(&["map", "make", "--drive", "--live", "--force", "-o"]);
        command.arg(&output);
        let mut terminal = Terminal::of(command);
        match turns_twice(&robot, &mut terminal) {
            Ok(()) => break terminal,
            Err(_) => problems.push(terminal.shown()),
        }
        assert!(problems.len() < 4, "{problems:?}");
    };
    // As when the terminal is closed.
    signal(terminal.process.id(), Signal::SIGHUP);
    let told = robot.state();
    let stood = robot.until("it stands", stands);
    let took_s = stood.time_s - told.time_s;
    assert!(took_s < AT_ONCE_S, "{took_s} s");
    assert!(terminal.process.wait().unwrap().success());
    wait_for("the old screen and the result", || {
        let shown = terminal.shown();
        let result = shown.rsplit("\x1b[?1049l").next()?;
        (shown.contains("\x1b[?1049l") && result.contains("wrote ")).then_some(())
    });
    assert!(output.with_extension("roson").exists());
}

/// Holds a key twice. An error if the command ends.
fn turns_twice(robot: &Robot, terminal: &mut Terminal) -> Result<(), String> {
    wait_for("the robot on a map", || {
        let shown = terminal.shown();
        (shown.contains(" robot") && shown.contains("arrows or WASD")).then_some(())
    });
    // A key that is held comes again and again.
    let Terminal { process, keys, .. } = terminal;
    let mut hold = || {
        until(robot, process, "it turns", |state| {
            // If the command has just ended, this fails.
            let _ = (&*keys).write_all(b"a");
            drives(state)
        })
    };
    hold()?;
    robot.until("it stands without a key", stands);
    hold()
}

/// The time until the wheels have their stop, and the braking ramp, with a margin for a busy machine;
/// less than the idle stop of the wheels.
const SOON_S: f64 = 2.5;

#[test]
fn a_robot_no_longer_explores_when_its_command_freezes_or_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let robot = Robot::start();
    for (name, fatal) in [("frozen", Signal::SIGSTOP), ("killed", Signal::SIGKILL)] {
        let mut making = make(&robot, &folder.path().join(name), &["--explore"]);
        robot.until("it drives", drives);
        signal(making.id(), fatal);
        let told = robot.state();
        let stood = robot.until("it stands", stands);
        let took_s = stood.time_s - told.time_s;
        assert!(took_s < SOON_S, "{name}: {took_s} s");
        making.kill().unwrap();
        making.wait().unwrap();
        // The map also ends with its client.
        wait_for("the end of the map", || {
            let mut asked = robot.demo.amber(&["call", "mapping", "progress", "--json"]);
            let shown = String::from_utf8(asked.output().ok()?.stdout).ok()?;
            shown.contains("\"stopped\"").then_some(())
        });
    }
}

#[test]
fn one_lease_covers_the_exploration_and_others_are_told_who_explores() {
    let folder = tempfile::tempdir().unwrap();
    let robot = Robot::start();
    let making = make(&robot, &folder.path().join("first"), &["--explore"]);
    robot.until("it drives", drives);
    let error_of = |args: &[&str]| {
        let output = robot.demo.amber(args).output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    wait_for("the lease of the wheels", || {
        let motions = robot.demo.describe("roboclaw:0").motions;
        let holder = motions.first()?.holder.clone()?;
        holder
            .contains("amber map make via mapping:0")
            .then_some(())
    });
    // A busy machine may delay an answer of the wheels.
    wait_for("a refusal with the name of the holder", || {
        let error = error_of(&["drive", "--left", "200", "--right", "200", "--for", "1s"]);
        error.contains("amber map make via mapping:0").then_some(())
    });
    let second = folder.path().join("second");
    let error = error_of(&["map", "make", "-o", second.to_str().unwrap()]);
    assert!(error.contains("mapping:0 makes a map already"), "{error}");
    // Everybody may stop it. The command ends then, and still writes its map.
    assert!(robot.amber(&["halt"]));
    robot.until("it stands", stands);
    assert!(!making.wait_with_output().unwrap().status.success());
    assert!(folder.path().join("first.roson").exists());
    assert!(robot.amber(&["halt", "--release"]));
}

#[test]
fn without_the_driver_the_command_says_what_to_add() {
    let folder = tempfile::tempdir().unwrap();
    let robot = Robot::start();
    let output = folder.path().join("map");
    let args = [
        "map",
        "make",
        "--mapping",
        "mapping:7",
        "-o",
        output.to_str().unwrap(),
    ];
    let made = robot.demo.amber(&args).output().unwrap();
    assert!(!made.status.success());
    let error = String::from_utf8(made.stderr).unwrap();
    assert!(error.contains("mapping:7"), "{error}");
    assert!(
        error.contains("device = \"mapping:7\"") && error.contains("\"mapping\""),
        "{error}"
    );
}

#[test]
fn a_program_saves_the_map_on_the_robot_and_the_location_driver_uses_it() {
    let robot = Robot::start();
    // The map goes on without the client that has begun it.
    assert!(robot.amber(&["call", "mapping", "start-map"]));
    look_around(&robot, || heading_and_keys(&robot));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let client = Client::connect(robot.demo.address).await.unwrap();
        let mapping = client.mapping(0);
        let wanted = SaveMap {
            name: Some("saved".into()),
            upload: Some(true),
            ..SaveMap::default()
        };
        let saved = mapping.save_map(wanted).await.unwrap();
        mapping.stop_map().await.unwrap();
        assert!(saved.uploaded());
        let file = saved
            .files
            .iter()
            .find(|file| file.ends_with("saved.roson"));
        let text = std::fs::read_to_string(file.unwrap()).unwrap();
        assert_eq!(client.location(0).map().await.unwrap().roson(), text);
        client.close().await;
    });
}
