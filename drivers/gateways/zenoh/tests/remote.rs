//! Devices of far robots in a local mediator: real processes, and a real router.

// The helpers are no tests for clippy.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use amber_client::blocking::Client;
use amber_client::{Error, Sensors, WheelSpeeds};
use amber_proto::mediator::DriverState;

use self::common::{
    Operator, Router, demo, dummy_mediator, mediator_with, next, private, robot, secure_robot,
    settings, wait_for, with_rights,
};

#[allow(dead_code)]
mod common;

/// The driver of a mediator that shows a far robot.
fn remote(devices: &str, router: &Router, more: &str) -> String {
    let own = env!("CARGO_BIN_EXE_amber-zenoh");
    let connect = &router.endpoint;
    format!("{devices}={own} remote --operator alice --connect {connect} {more}")
}

#[test]
fn a_client_uses_far_devices_like_its_own() {
    let router = Router::start();
    let (_far, far_address) = dummy_mediator();
    let _robot = robot("r2", &far_address, &router);
    let driver = remote("dummy:10", &router, "--robot r2 --first-id 10");
    let (_local, address) = mediator_with(&driver);
    let client = Client::connect(&address).unwrap();
    let dummy = client.dummy(10);
    let far = Client::connect(&far_address).unwrap();
    wait_for("the far device", || dummy.status().ok());

    // Requests, commands, their outcomes and streams.
    dummy.message("hello").unwrap();
    wait_for("the message", || {
        (far.dummy(0).status().ok()?.message == "hello").then_some(())
    });
    assert_eq!(dummy.status().unwrap().message, "hello");
    let mut messages = dummy.messages().unwrap();
    for _ in 0..3 {
        messages.next_within(common::PATIENCE).unwrap();
    }

    // A device that the far mediator does not have, and no robot at all.
    let devices = "dummy:10,dummy:11";
    let two = remote(devices, &router, "--robot nobody --first-id 10");
    let (_nobody, nobody) = mediator_with(&two);
    let nobody = Client::connect(&nobody).unwrap();
    // A busy machine may take longer for the link than requests wait for it.
    let why = "the robot nobody is not in the fleet, or has no dummy:1";
    wait_for(why, || match nobody.dummy(11).status() {
        Err(error @ Error::DriverDied { .. }) => error.to_string().contains(why).then_some(()),
        _ => None,
    });
    wait_for("the report", || {
        let drivers = nobody.mediator().drivers().ok()?;
        let trouble = drivers[0].troubles.iter().find(|it| it.device.id == 11)?;
        trouble.text.contains("the robot nobody").then_some(())
    });
}

#[test]
fn the_death_of_a_far_device_is_told_with_its_reason_and_within_two_seconds() {
    let mut router = Router::start();
    let (_far, far_address) = dummy_mediator();
    let mut r2 = robot("r2", &far_address, &router);
    let (_local, address) = mediator_with(&remote("dummy:0", &router, "--robot r2"));
    let client = Client::connect(&address).unwrap();
    let dummy = client.dummy(0);
    let far = Client::connect(&far_address).unwrap();
    // Asks until there is an error that says why; returns its text.
    let fails = |part: &str| {
        wait_for(part, || match dummy.status() {
            Err(error @ (Error::DriverDied { .. } | Error::Unavailable { .. })) => {
                let text = error.to_string();
                text.contains(part).then_some(text)
            }
            _ => None,
        })
    };
    let works = || wait_for("the far device", || dummy.status().ok());
    works();

    // The far driver stops.
    far.mediator().stop("dummy:0".parse().unwrap()).unwrap();
    let since = Instant::now();
    fails("robot r2: ");
    assert!(
        since.elapsed() < Duration::from_secs(2),
        "{:?}",
        since.elapsed()
    );
    far.mediator().start("dummy:0".parse().unwrap()).unwrap();
    works();

    // The robot is killed.
    r2.signal("KILL");
    r2.wait();
    let since = Instant::now();
    fails("the robot r2 is not in the fleet");
    assert!(
        since.elapsed() < Duration::from_secs(2),
        "{:?}",
        since.elapsed()
    );
    r2 = robot("r2", &far_address, &router);
    works();

    // It falls silent without a word, as if its network were cut. Then it is back.
    r2.signal("STOP");
    fails("the robot r2 is not in the fleet");
    r2.signal("CONT");
    works();

    // The router is gone.
    router.end();
    let since = Instant::now();
    fails("no link to a router");
    assert!(
        since.elapsed() < Duration::from_secs(2),
        "{:?}",
        since.elapsed()
    );
    router.begin();
    works();
    drop(r2);
}

#[test]
fn far_wheels_stop_when_the_local_client_is_gone() {
    let router = Router::start();
    let (_demo, far_address, _folder) = demo();
    let far = Client::connect(&far_address).unwrap();
    let wheels = far.roboclaw(0);
    let speed = || wheels.speeds().ok().map(|speeds| speeds.front_left_mm_s);
    wait_for("the wheels", speed);
    let _robot = robot("r2", &far_address, &router);
    let watcher = Operator::new(&router, "watcher");
    next(&watcher.tokens("amber/r2/roboclaw/0/alive/*"), true);
    let devices = "hokuyo:5,ninedof:5,roboclaw:5";
    let driver = remote(devices, &router, "--robot r2 --first-id 5");
    let (local, address) = mediator_with(&driver);
    let client = Client::connect(&address).unwrap();
    let far_wheels = client.roboclaw(5);
    let moves = || speed().filter(|speed| *speed > 100);
    let stands = || speed().filter(|speed| speed.abs() < 20);
    wait_for("motion", || {
        far_wheels.drive(WheelSpeeds::all(200)).ok()?;
        moves()
    });
    let info = watcher.json("amber/r2/info").unwrap();
    let operators = info["operators"].as_array().unwrap();
    assert!(
        operators
            .iter()
            .any(|it| it["who"] == "alice" && it["drives"] == true),
        "{info}"
    );
    // Scans and readings come from there.
    let scan = wait_for("a scan", || client.hokuyo(5).scan().ok());
    assert!(scan.points().len() > 100);
    let mut readings = client
        .ninedof(5)
        .readings(Duration::from_millis(100), Sensors::ALL)
        .unwrap();
    readings.next_within(common::PATIENCE).unwrap();
    drop(readings);

    // The client leaves while it drives: the far driver learns that.
    wait_for("motion", || {
        far_wheels.drive(WheelSpeeds::all(200)).ok()?;
        moves()
    });
    client.close();
    wait_for("a stop", stands);
    wait_for("the end of the program", || {
        let info = watcher.json("amber/r2/info")?;
        info["operators"].as_array()?.is_empty().then_some(())
    });

    // The whole mediator is killed while somebody drives.
    let client = Client::connect(&address).unwrap();
    wait_for("motion", || {
        client.roboclaw(5).drive(WheelSpeeds::all(200)).ok()?;
        moves()
    });
    local.signal("KILL");
    wait_for("a stop", stands);
}

#[test]
fn one_driver_shows_two_robots_with_the_certificate_of_its_operator() {
    let (_kept, folder, router) = with_rights(
        "
        [[robot]]
        name = 'r2'
        [[robot]]
        name = 'r3'
        [[robot]]
        name = 'r4'
        [[operator]]
        name = 'alice'
        drives = ['r2']
        watches = ['r3']",
    );
    let (_far, far_address) = dummy_mediator();
    let _robots = ["r2", "r3", "r4"].map(|it| secure_robot(it, it, &folder, &far_address, &router));

    let file = settings("alice", "alice", &folder);
    let mut text = std::fs::read_to_string(&file).unwrap();
    text += "[operator]\nname = 'alice'\n";
    for (robot, first_id) in [("r2", 10), ("r3", 20), ("r4", 30)] {
        text += &format!("[[remote]]\nrobot = '{robot}'\nfirst_id = {first_id}\n");
    }
    std::fs::write(&file, text).unwrap();
    let (own, connect) = (env!("CARGO_BIN_EXE_amber-zenoh"), &router.endpoint);
    let devices = "dummy:10,dummy:20,dummy:30";
    let driver = format!("{devices}={own} remote --config {file} --connect {connect}");
    let (_local, address) = mediator_with(&driver);
    let client = Client::connect(&address).unwrap();
    for id in [10, 20] {
        let dummy = client.dummy(id);
        wait_for("the far device", || dummy.status().ok());
        let mut messages = dummy.messages().unwrap();
        messages.next_within(common::PATIENCE).unwrap();
    }
    // She has no right to see this one.
    let why = "the robot r4 is not in the fleet, or has no dummy:0";
    wait_for(why, || match client.dummy(30).status() {
        Err(error @ Error::DriverDied { .. }) => error.to_string().contains(why).then_some(()),
        _ => None,
    });
}

#[test]
fn no_mediator_is_needed_to_call_a_far_device() {
    let router = Router::start();
    let (_far, far_address) = dummy_mediator();
    let far = Client::connect(&far_address).unwrap();
    wait_for("the driver", || {
        let drivers = far.mediator().drivers().ok()?;
        (drivers[0].state() == DriverState::Up).then_some(())
    });
    let _robot = robot("r2", &far_address, &router);
    let called = private(&router, "call", &["--json", "dummy", "message", "hello"]);
    assert!(called.status.success(), "{called:?}");
    let called = private(&router, "call", &["--json", "dummy", "status"]);
    let text = String::from_utf8(called.stdout).unwrap();
    assert!(text.contains("hello"), "{text}");
    let script = [
        "--devices",
        "dummy:0",
        "--",
        "sh",
        "-c",
        "amber ping -c 1 dummy; exit 7",
    ];
    let ended = private(&router, "with", &script);
    assert_eq!(ended.status.code(), Some(7), "{ended:?}");
    let text = String::from_utf8(ended.stdout).unwrap();
    assert!(text.contains("dummy:0"), "{text}");
    let wrong = private(&router, "call", &["dummy", "sing"]);
    assert!(!wrong.status.success());
}
