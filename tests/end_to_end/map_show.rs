//! `amber map show` with the robot of the demo.

use std::fs;
use std::io::Write;
use std::process::Output;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::{AMBER, root, signal, wait_for};
use crate::driving::robot;
use crate::robot::Robot;
use crate::terminal::Terminal;

fn show(robot: &Robot, args: &[&str]) -> Output {
    let mut command = robot.demo.amber(&["map", "show"]);
    command.args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_map_of_the_driver_and_all_parts_are_shown() {
    let robot = robot();
    // On a busy machine, an answer may be late.
    let shown = wait_for("all parts", || {
        let output = show(&robot, &["--json"]);
        let shown: Value = serde_json::from_slice(&output.stdout).ok()?;
        (shown["missing"] == serde_json::json!({})).then_some(shown)
    });
    assert_eq!(shown["map"]["walls"].as_array().unwrap().len(), 24);
    assert!(shown["particles"].as_array().unwrap().len() > 100);
    // Nearly all points of the laser are on a wall: at most 50 mm beside its centre line.
    let number = |value: &Value| value.as_f64().unwrap();
    let walls = shown["map"]["walls"].as_array().unwrap();
    let is_near = |point: &&Value| {
        let (x, y) = (number(&point[0]), number(&point[1]));
        walls.iter().any(|wall| {
            let [[ax, ay], [bx, by]] =
                [0, 1].map(|end| [0, 1].map(|axis| number(&wall[end][axis])));
            let (dx, dy) = (bx - ax, by - ay);
            let share = ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy);
            let share = share.clamp(0.0, 1.0);
            (x - ax - share * dx).hypot(y - ay - share * dy) < 0.12
        })
    };
    let scan = shown["scan"].as_array().unwrap();
    let near = scan.iter().filter(is_near).count();
    assert!(
        scan.len() > 300 && near * 100 > scan.len() * 95,
        "{near} of {}",
        scan.len()
    );

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("map.png");
    let output = show(&robot, &["--png", file.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    assert!(fs::read(&file).unwrap().starts_with(b"\x89PNG"));

    let drawing = wait_for("a drawing with the laser", || {
        let drawing = text(&show(&robot, &[]).stdout);
        drawing.contains("* laser").then_some(drawing)
    });
    for part in [
        "→ robot",
        "* laser",
        "particles",
        "quality",
        "┤ 1 m",
        "drive: idle",
    ] {
        assert!(drawing.contains(part), "{part}: {drawing}");
    }
}

#[test]
fn missing_parts_are_said_and_not_fatal() {
    let robot = robot();
    for device in ["hokuyo:0", "drive_to_point:0"] {
        assert!(robot.amber(&["stop", device]));
    }
    let output = show(&robot, &[]);
    assert!(output.status.success(), "{output:?}");
    let drawing = text(&output.stdout);
    assert!(
        drawing.contains("no laser: hokuyo:0 is unavailable"),
        "{drawing}"
    );
    assert!(
        drawing.contains("no path: drive-to-point:0 is unavailable"),
        "{drawing}"
    );
    assert!(robot.amber(&["stop", "location:0"]));
    let output = show(&robot, &[]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(
        error.contains("there is nothing to show: location:0"),
        "{error}"
    );
    // A file needs no driver, and no mediator either.
    let map = root().join("drivers/map/maps/maze.roson");
    let map = map.to_str().unwrap();
    assert!(show(&robot, &["--map", map]).status.success());
    let mut command = std::process::Command::new(AMBER);
    let output = command
        .args(["-m", "127.0.0.1:9", "map", "show", "--map", map])
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(text(&output.stdout).contains("no pose: no mediator at"));
}

#[test]
fn live_draws_in_place_and_restores_the_terminal_at_each_end() {
    let robot = robot();
    for end in [
        Ok(&b"q"[..]),
        Ok(b"\x03"),
        Err(Signal::SIGTERM),
        Err(Signal::SIGHUP),
    ] {
        let mut terminal = Terminal::of(robot.demo.amber(&["map", "show", "--live"]));
        wait_for("three frames with the robot", || {
            let shown = terminal.shown();
            (shown.matches("→ robot").count() >= 3).then_some(())
        });
        match end {
            Ok(key) => terminal.keys.write_all(key).unwrap(),
            Err(number) => signal(terminal.process.id(), number),
        }
        assert!(terminal.process.wait().unwrap().success(), "{end:?}");
        wait_for("the old screen", || {
            terminal
                .shown()
                .ends_with("\x1b[?25h\x1b[?1049l")
                .then_some(())
        });
        let shown = terminal.shown();
        assert!(shown.starts_with("\x1b[?1049h\x1b[?25l"));
        // Each frame begins in the upper left corner and never scrolls.
        assert!(!shown.contains("\n\x1b[?2026l"), "{shown:?}");
        assert!(shown.contains("\x1b[31m"), "colours");
    }
}
