//! The page in a real browser.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::{Dashboard, address_of, stands_at_once, start};
use crate::common::{Mediator, Running, browser_tests, root, wait_for};
use crate::languages::has;
use crate::robot::{Robot, drives, stands};

#[test]
fn a_browser_drives_by_mouse_and_touch_and_stops_when_the_tab_is_closed() {
    let Some(script) = browser_tests() else {
        return;
    };
    let (robot, dashboard) = start();
    let mut browser = Browser::start(&script, "drive.mjs", &dashboard);
    for held in ["mouse", "touch", "keys", "gamepad"] {
        browser.expect(&format!("held by {held}"));
        robot.until(held, drives);
        browser.next();
        browser.expect(&format!("released by {held}"));
        stands_at_once(&robot, held);
        browser.next();
    }
    browser.expect("held after a click on a button");
    robot.until("a button has the focus", drives);
    browser.next();
    browser.expect("stopped by the space bar");
    stands_at_once(&robot, "space bar");
    browser.next();
    browser.expect("hidden while held");
    robot.until("it stands", stands);
    robot.carry(2.0, 2.6);
    let before = robot.state();
    browser.next();
    browser.expect("clicked on the map");
    // The page may lose the robot on the way, and then clicks again.
    browser.next();
    browser.expect("arrived");
    let way_m = robot.state().travelled_m - before.travelled_m;
    assert!(way_m > 0.1, "{way_m} m to the target");
    browser.next();
    browser.expect("held before closing");
    robot.until("driving before closing", drives);
    browser.next();
    browser.expect("closed");
    stands_at_once(&robot, "tab closed");
    browser.end();
}

#[test]
fn a_browser_has_room_for_the_controls_on_every_screen_and_says_what_does_not_work() {
    let Some(script) = browser_tests() else {
        return;
    };
    let (robot, dashboard) = start();
    let mut browser = Browser::start(&script, "shown.mjs", &dashboard);
    for (part, device) in [("wheels", "roboclaw"), ("laser", "hokuyo")] {
        browser.expect(&format!("unplug the {part}"));
        assert!(robot.sim(&["fault", "unplug", device]));
        browser.next();
        browser.expect(&format!("plug the {part} in"));
        assert!(robot.sim(&["fault", "replug", device]));
        browser.next();
    }
    browser.expect("shown");
    browser.end();
}

#[test]
fn a_browser_shows_what_the_robot_sees_and_a_camera_that_no_page_shows_is_switched_off() {
    let Some(script) = browser_tests() else {
        return;
    };
    let (robot, dashboard) = start();
    let mut browser = Browser::start(&script, "camera.mjs", &dashboard);
    for step in ["begin", "seen"] {
        browser.expect(step);
        // The time code of the simulated camera is that of the simulation.
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let ahead_ms = (wall.as_secs_f64() - robot.state().time_s) * 1000.0;
        browser.say(&ahead_ms.to_string());
    }
    browser.expect("unplug the camera");
    assert!(robot.sim(&["fault", "unplug", "camera"]));
    browser.next();
    browser.expect("plug the camera in");
    assert!(robot.sim(&["fault", "replug", "camera"]));
    browser.next();
    browser.expect("hidden");
    wait_for("a camera that is off", || {
        let mut info = robot.demo.amber(&["call", "camera", "info", "--json"]);
        let told: Value = serde_json::from_slice(&info.output().unwrap().stdout).ok()?;
        (told["is_on"] == false).then_some(())
    });
    browser.next();
    browser.expect("closed");
    browser.end();
}

#[test]
fn a_page_of_one_file_drives_the_robot_as_a_client_of_its_own() {
    let Some(script) = browser_tests() else {
        return;
    };
    let (robot, dashboard) = start();
    let mut browser = Browser::start(&script, "program.mjs", &dashboard);
    browser.expect("held");
    robot.until("a button is held", drives);
    let holder = wait_for("a lease", || {
        let mut status = robot.demo.amber(&["status", "roboclaw", "--json"]);
        let told = String::from_utf8(status.output().unwrap().stdout).unwrap();
        told.contains("drive.html").then_some(told)
    });
    assert!(holder.contains("roboclaw:0"), "{holder}");
    browser.next();
    browser.expect("released");
    robot.until("it stands", stands);
    browser.next();
    browser.expect("held after the connection was lost");
    robot.until("driving again", drives);
    browser.next();
    browser.expect("closed");
    stands_at_once(&robot, "tab closed");
    browser.end();
}

#[test]
fn the_page_of_the_readme_drives_when_it_is_opened_from_disk() {
    let Some(script) = browser_tests() else {
        return;
    };
    let robot = Robot::start();
    let args = ["dashboard", "--listen", "127.0.0.1:0", "--origin", "null"];
    let mut process = Running::start(&robot.demo, &args);
    let address = address_of(&process.line());
    let pid = process.pid();
    let mut browser = Browser::start(&script, "from_disk.mjs", &Dashboard { address, pid });
    browser.expect("clicked again and again");
    robot.until("the button is clicked", drives);
    browser.next();
    browser.expect("clicked no more");
    robot.until("it stands", stands);
    browser.next();
    browser.expect("closed");
    browser.end();
    process.interrupt();
}

#[test]
fn a_page_uses_a_device_of_a_user_by_its_description() {
    let Some(script) = browser_tests() else {
        return;
    };
    if !has("own devices in pages", "python3 -c import\tgrpc_tools") {
        return;
    }
    let path = |file: &str| root().join(file).display().to_string();
    let sdk = path("client-sdk/python/src");
    let driver = path("client-sdk/js/test/lamp/lamp_driver.py");
    let lamp = format!("201:0=env PYTHONPATH={sdk} python3 -u {driver}");
    let mediator = Mediator::start(&[&lamp]);
    mediator.wait_for_line("up driver=201:0");
    let mut process = Running::start(&mediator, &["dashboard", "--listen", "0.0.0.0:0"]);
    // The addresses with the tokens, of which the second is for viewing.
    let mut url = || {
        let line = process.line();
        let (_, address) = line.rsplit_once(':').unwrap();
        format!("http://127.0.0.1:{address}")
    };
    let (drive, look) = (url(), url());
    let output = Command::new("node")
        .args(["own_device.mjs", &drive, &look])
        .current_dir(&script)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "used\n");
    process.interrupt();
}

/// A script in a browser, which waits after each step.
struct Browser {
    process: Child,
    steps: Lines<BufReader<ChildStdout>>,
    go_on: ChildStdin,
}

impl Browser {
    fn start(folder: &Path, script: &str, dashboard: &Dashboard) -> Self {
        let mut process = Command::new("node")
            .arg(script)
            .arg(format!("http://{}", dashboard.address))
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let steps = BufReader::new(process.stdout.take().unwrap()).lines();
        let go_on = process.stdin.take().unwrap();
        Self {
            process,
            steps,
            go_on,
        }
    }

    #[track_caller]
    fn expect(&mut self, step: &str) {
        assert_eq!(self.steps.next().unwrap().unwrap(), step);
    }

    fn next(&mut self) {
        self.say("");
    }

    fn say(&mut self, line: &str) {
        writeln!(self.go_on, "{line}").unwrap();
    }

    #[track_caller]
    fn end(mut self) {
        assert!(self.process.wait().unwrap().success());
    }
}
