//! The demo's robot reports its pose from markers and turns its servos on request, and both devices
//! recover after an outage. The simulated world provides the true state.

use std::process::Command;

use amber_client::blocking::Client;
use amber_client::{Pose, WheelSpeeds};
use amber_sim::control::SimulationState;
use tempfile::TempDir;

use crate::common::{AMBER, Mediator, Running, ready_demo, wait_for};

/// A demo whose drivers are ready.
fn ready() -> (Mediator, TempDir) {
    let (demo, folder) = ready_demo();
    (demo, folder)
}

#[test]
fn poses_are_true_within_20_mm_and_1_degree_along_a_drive() {
    let (demo, folder) = ready();
    let client = Client::connect(demo.address).unwrap();
    let (wheels, stargazer) = (client.roboclaw(0), client.stargazer(0));
    let mut fixes = stargazer.poses(None).unwrap();
    for (left, right) in [(300, 300), (200, -200), (250, 150), (-300, -300)] {
        let begin = state(&folder);
        // The number of fixes per second controls the loop.
        for _ in 0..10 {
            wheels.drive(WheelSpeeds::sides(left, right)).unwrap();
            fixes.next().unwrap();
        }
        wheels.stop().unwrap();
        let stands = |state: &SimulationState| {
            let wheels = state.wheels_mm_per_s;
            wheels.front_left == 0.0 && wheels.rear_right == 0.0
        };
        let truth = wait_for("it stands", || Some(state(&folder)).filter(stands));
        let moved = (truth.x_m, truth.heading_deg) != (begin.x_m, begin.heading_deg);
        assert!(moved, "{truth:?}");
        // Fixes measured during the drive may still be in transit.
        wait_for("a likely fix", || {
            let fix = fixes.next()?.message;
            is_likely(&fix, &truth).then_some(())
        });
        let at_rest: Vec<Pose> = (0..20).map(|_| fixes.next().unwrap().message).collect();
        for fix in &at_rest {
            assert!(is_likely(fix, &truth), "{fix:?} differs from {truth:?}");
        }
        let (way_mm, turn_deg) = mean_error(&at_rest, &truth);
        assert!(
            way_mm <= 20.0 && turn_deg <= 1.0,
            "{way_mm} mm, {turn_deg} deg"
        );
        let asked = stargazer.pose().unwrap().unwrap();
        assert!(
            is_likely(&asked, &truth) && asked.lost_ms.is_none(),
            "{asked:?}"
        );
        assert_eq!(asked.marker, truth.markers[0]);
    }
    client.close();
}

/// The difference between a fix and the true pose: x and y in millimetres, and degrees.
fn error(fix: &Pose, truth: &SimulationState) -> [f64; 3] {
    let turn_deg = (fix.heading_deg - truth.heading_deg + 540.0).rem_euclid(360.0) - 180.0;
    [
        fix.x_cm * 10.0 - truth.x_m * 1000.0,
        fix.y_cm * 10.0 - truth.y_m * 1000.0,
        turn_deg,
    ]
}

/// Whether a fix is within five times the noise of the sensor, 20 mm and 1 degree.
fn is_likely(fix: &Pose, truth: &SimulationState) -> bool {
    let [x_mm, y_mm, turn_deg] = error(fix, truth);
    x_mm.abs() <= 100.0 && y_mm.abs() <= 100.0 && turn_deg.abs() <= 5.0
}

/// The remaining error after averaging the noise.
fn mean_error(fixes: &[Pose], truth: &SimulationState) -> (f64, f64) {
    let mut sum = [0.0; 3];
    for fix in fixes {
        for (sum, error) in sum.iter_mut().zip(error(fix, truth)) {
            *sum += error;
        }
    }
    let [x_mm, y_mm, turn_deg] = sum.map(|sum| sum / fixes.len() as f64);
    (x_mm.hypot(y_mm), turn_deg.abs())
}

#[test]
fn poses_can_be_requested_and_watched() {
    let (demo, folder) = ready();
    let shown = output(&demo, &["call", "stargazer", "pose", "--json"]);
    let pose: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(pose["device"], "stargazer:0");
    let mut watch = Running::start(&demo, &["watch", "stargazer", "--period", "50ms"]);
    assert!(watch.line().starts_with("x "));
    assert!(watch.line().contains(" cm  heading "));
    watch.interrupt();

    // To a place without a visible marker.
    sim(&folder, &["place", "0.4,2.9"]);
    let lost = wait_for("an old pose", || {
        let shown = output(&demo, &["call", "stargazer", "pose"]);
        shown.contains("lost: ").then_some(shown)
    });
    assert!(lost.starts_with("x "), "{lost}");
    assert!(state(&folder).markers.is_empty());
}

#[test]
fn servos_turn_within_1_degree_for_each_request() {
    let (demo, folder) = ready();
    for (request, angles) in [
        (&["set-angle", "3", "45"][..], &[(3, 45.0)][..]),
        (&["set-same-angle", "0,1", "120"], &[(0, 120.0), (1, 120.0)]),
        (&["set-angles", "0=10", "3=170"], &[(0, 10.0), (3, 170.0)]),
    ] {
        let words = [&["call", "maestro"], request].concat();
        output(&demo, &words);
        wait_for("the servos to turn", || {
            let servos = state(&folder).servos;
            let near = |(id, angle): &(usize, f64)| (servos[*id].angle_deg - angle).abs() < 1.0;
            angles.iter().all(near).then_some(())
        });
    }
    // At 50 degrees per second: about 3 s from 10 to 160.
    output(&demo, &["call", "maestro", "set-speed", "0", "20"]);
    let begin = state(&folder).time_s;
    output(&demo, &["call", "maestro", "set-angle", "0", "160"]);
    let end = wait_for("a slow servo", || {
        let state = state(&folder);
        ((state.servos[0].angle_deg - 160.0).abs() < 1.0).then_some(state.time_s)
    });
    assert!(end - begin > 2.5, "only {} s", end - begin);
    // A rejected command fails with the reason that the driver logs.
    let refusal = "servo 3 turns from 0 to 180 degrees, not to 181";
    let words = ["call", "maestro", "set-angle", "3", "181"];
    let refused = demo.amber(&words).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains(refusal), "{error}");
    demo.wait_for_line(refusal);
}

#[test]
fn both_report_that_they_are_unplugged_and_recover() {
    let (demo, folder) = ready();
    for (name, request) in [
        ("stargazer", &["call", "stargazer", "pose"][..]),
        ("maestro", &["call", "maestro", "set-angle", "3", "90"]),
    ] {
        let device = format!("{name}:0");
        let pid = demo.describe(&device).pid();
        sim(&folder, &["fault", "unplug", name]);
        let trouble = wait_for("its trouble", || {
            demo.describe(&device).troubles.into_iter().next()
        });
        assert!(trouble.text.contains(name), "{trouble:?}");
        if name == "stargazer" {
            let asked = demo.amber(request).output().unwrap();
            assert_eq!(
                asked.status.code(),
                Some(1),
                "an old pose must not be returned"
            );
            let error = String::from_utf8(asked.stderr).unwrap();
            assert!(error.contains("(since "), "{error}");
            assert!(error.contains("hint: `amber status "), "{error}");
        }
        sim(&folder, &["fault", "clear"]);
        wait_for("no trouble", || {
            demo.describe(&device).troubles.is_empty().then_some(())
        });
        output(&demo, request);
        let driver = demo.describe(&device);
        assert_eq!((driver.pid(), driver.restarts()), (pid, 0));
    }
    wait_for("the servo to turn", || {
        let servo = state(&folder).servos[3];
        ((servo.angle_deg - 90.0).abs() < 1.0 && servo.target_us == 1500.0).then_some(())
    });
}

fn state(folder: &TempDir) -> SimulationState {
    let text = sim(folder, &["state", "--json"]);
    serde_json::from_str(&text).unwrap()
}

#[track_caller]
fn output(mediator: &Mediator, args: &[&str]) -> String {
    checked(mediator.amber(args))
}

#[track_caller]
fn sim(folder: &TempDir, args: &[&str]) -> String {
    let mut command = Command::new(AMBER);
    command.arg("sim").args(args);
    command.env("AMBER_SIM_DIR", folder.path().join("sim"));
    checked(command)
}

#[track_caller]
fn checked(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
