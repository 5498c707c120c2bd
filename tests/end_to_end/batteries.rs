//! Sensors of the battery: the real driver and the simulated sensor give the state of device type 13.

use std::fs;
use std::process::Command;

use amber_client::blocking::Client;

use crate::common::{AMBER, Mediator, wait_for};
use crate::kit::with_and_without;
use crate::motion_sensors::Robot;

fn troubles(mediator: &Mediator) -> Vec<String> {
    let driver = mediator.describe("battery:0");
    driver.troubles.into_iter().map(|it| it.text).collect()
}

#[test]
fn a_sensor_measures_the_battery_and_recovers() {
    let robot = Robot::with_device("ina2xx", "ina226");
    let bus = robot.socket();
    let mediator = Mediator::start(&[&format!(
        "battery:0=amber driver ina2xx --bus sim:{bus} --shunt-mohm 2 --cells 3 --chemistry li-po"
    )]);
    mediator.wait_for_line("INFO ready: INA226 at 0x40, up to 41.0 A with a shunt of 2 mohm");
    let client = Client::connect(mediator.address).unwrap();
    let battery = client.battery(0);
    let state = wait_for("the state", || battery.state().ok());
    // Nearly full; the computer draws half an ampere.
    assert!((12_000..=12_650).contains(&state.voltage()), "{state:?}");
    assert!((-510..=-490).contains(&state.current()), "{state:?}");
    assert!(state.charge() >= 75.0 && state.present(), "{state:?}");

    for (fault, trouble) in [
        ("unplug", "no answer at 0x40 to 0x4f: check its power"),
        ("stall", "the bus is stuck"),
    ] {
        robot.fault(&[fault, "ina2xx"]);
        wait_for("its trouble", || {
            let mut troubles = troubles(&mediator).into_iter();
            troubles.find(|told| told.starts_with(trouble))
        });
        let refused = battery.state().unwrap_err().to_string();
        assert!(refused.contains(trouble), "{refused}");
        robot.fault(&["clear"]);
        wait_for("no trouble", || {
            troubles(&mediator).is_empty().then_some(())
        });
        battery.state().unwrap();
    }

    robot.fault(&["low-battery"]);
    wait_for("the low battery", || {
        let output = mediator.amber(&["status", "battery"]).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_low = shown.contains("the battery is low (below 10.5 V): charge it");
        is_low.then_some(())
    });
    client.close();
}

#[test]
fn the_driver_follows_the_protocol_with_and_without_its_sensor() {
    let robot = Robot::with_device("ina2xx", "ina219");
    // Without the sensor, it answers with the reason.
    let places = [&*robot.socket(), "/nowhere/bus"];
    with_and_without("battery", 0, places, |check, bus| {
        check.args(["ina2xx", "--bus", &format!("sim:{bus}")]);
    });
}

#[test]
fn amber_init_finds_it() {
    let robot = Robot::with_device("ina2xx", "ina219");
    let root = robot.folder.path().join("root");
    let folder = root.join("sys/bus/i2c/devices/i2c-1");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("name"), "bcm2835 (i2c@7e804000)\n").unwrap();
    fs::create_dir_all(root.join("dev")).unwrap();
    std::os::unix::fs::symlink(robot.socket(), root.join("dev/i2c-1")).unwrap();
    let mut init = Command::new(AMBER);
    init.arg("init").arg(robot.folder.path().join("home"));
    init.args(["--yes", "--root"]).arg(&root);
    let output = init.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for line in [
        "battery:0     battery sensor: probably INA219 at 0x40",
        "works         battery:0: 12.",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let written = fs::read_to_string(robot.folder.path().join("home/amber.toml")).unwrap();
    assert!(
        written.contains("\"--address=0x40\", \"--chip=ina219\""),
        "{written}"
    );
}
