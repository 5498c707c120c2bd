//! GPS receivers: the real driver and the simulated receiver give the position of device type 14.

use amber_client::blocking::Client;
use amber_proto::gps::fix::Kind;
use serde_json::Value;

use crate::common::{Mediator, Running, wait_for};
use crate::kit::with_and_without;
use crate::motion_sensors::Robot;

fn troubles(mediator: &Mediator) -> Vec<String> {
    let driver = mediator.describe("gps:0");
    driver.troubles.into_iter().map(|it| it.text).collect()
}

#[test]
fn a_receiver_tells_where_the_robot_is_and_recovers() {
    let robot = Robot::with_device("gps", "neo-m8");
    let port = robot.socket();
    let mediator = Mediator::start(&[&format!("gps:0=amber driver gps --port {port}")]);
    mediator.wait_for_line("INFO the receiver has a position");
    let client = Client::connect(mediator.address).unwrap();
    let gps = client.gps(0);
    let position = || gps.fix().ok().filter(|fix| fix.kind() == Kind::ThreeD);
    let fix = wait_for("a position", position);
    // A few metres from the origin of the map.
    assert!((fix.latitude() - 50.0682).abs() < 3e-4, "{fix:?}");
    assert!((fix.longitude() - 19.9126).abs() < 3e-4, "{fix:?}");
    assert!(fix.age() < 3_000 && fix.satellites() == 11, "{fix:?}");

    let output = mediator.amber(&["call", "gps", "fix", "--json"]).output();
    let told: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(told["kind"], "THREE_D", "{told}");
    let mut watch = Running::start(&mediator, &["watch", "gps"]);
    assert!(watch.line().contains("latitude"), "{}", watch.line());
    watch.interrupt();

    // In a tunnel, the receiver still answers.
    robot.fault(&["tunnel"]);
    wait_for("the tunnel", || {
        troubles(&mediator)
            .contains(&COVERED.to_owned())
            .then_some(())
    });
    let lost = gps.fix().unwrap();
    assert_eq!((lost.kind(), lost.latitude), (Kind::None, None));
    robot.fault(&["clear"]);
    wait_for("a position", position);
    assert_eq!(troubles(&mediator), [""; 0]);

    robot.fault(&["unplug", "gps"]);
    let trouble = format!("{port} does not exist");
    wait_for("its trouble", || {
        troubles(&mediator).contains(&trouble).then_some(())
    });
    let refused = gps.fix().unwrap_err().to_string();
    assert!(refused.contains(&trouble), "{refused}");
    robot.fault(&["clear"]);
    wait_for("a position", position);
    client.close();
}

const COVERED: &str =
    "no position: the antenna must see the sky; the first position takes a minute";

#[test]
fn the_driver_follows_the_protocol_with_and_without_its_receiver() {
    let robot = Robot::with_device("gps", "zed-f9p");
    // Without the receiver, it answers with the reason.
    let places = [&*robot.socket(), "/nowhere/port"];
    with_and_without("gps", 0, places, |check, port| {
        check.args(["gps", "--port", port]);
    });
}
