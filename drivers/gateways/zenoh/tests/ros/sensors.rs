//! Sensors that say themselves what they are: a laser scanner of another model, and the battery.

use amber_ros2::messages::BatteryState;

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
