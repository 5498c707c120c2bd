//! A robot in the fleet: real processes, and a real router.

// The helpers are no tests for clippy.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use amber_client::WheelSpeeds;
use amber_client::blocking::Client;
use amber_proto::{DeviceMessage, DriverMsg, dummy, roboclaw};
use amber_zenoh::problem::Kind;
use prost::Message;

use self::common::{
    Operator, PATIENCE, Process, Router, amber, amber_path, amber_zenoh, connects, demo,
    dummy_mediator, fleet, kill, next, robot, robot_with, seat, secure_robot, settings, wait_for,
    with_rights,
};

#[allow(dead_code)]
mod common;

const DUMMY: &str = "amber/r1/dummy/0";
const WHEELS: &str = "amber/r1/roboclaw/0";

fn status(number: u32) -> dummy::DriverMsg {
    dummy::DriverMsg {
        get_status: Some(true),
        syn_num: Some(number),
        ..dummy::DriverMsg::data()
    }
}

fn command(speed_mm_s: i32) -> roboclaw::DriverMsg {
    roboclaw::DriverMsg {
        motors_command: Some(WheelSpeeds::all(speed_mm_s).into()),
        ..roboclaw::DriverMsg::data()
    }
}

#[test]
fn a_program_without_amber_uses_a_device() {
    let router = Router::start();
    let (_mediator, address) = dummy_mediator();
    let mut operator = Operator::new(&router, "alice");
    let tokens = operator.tokens("amber/r1/*/*/alive/*");
    let mut robot = robot("r1", &address, &router);
    assert!(next(&tokens, true).starts_with("amber/r1/dummy/0/alive/"));

    // Published data, numbered.
    let published = operator.published(&format!("{DUMMY}/data"));
    let mut numbers = Vec::new();
    for _ in 0..3 {
        let (stamp, message) = published.recv_timeout(PATIENCE).unwrap();
        let message = dummy::DriverMsg::decode(message).unwrap();
        assert!(message.message().starts_with("Response"), "{message:?}");
        let stamp = stamp.unwrap();
        assert!(stamp.time_ns > 1_600_000_000_000_000_000);
        numbers.push(stamp.sequence);
    }
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");

    // A message without an answer, and one with.
    let tell = dummy::DriverMsg {
        message: Some("hello".into()),
        ..dummy::DriverMsg::data()
    };
    let call = format!("{DUMMY}/call");
    assert!(operator.ask(&call, tell).unwrap().is_empty());
    let answer = operator.ask(&call, status(4_000_000_007)).unwrap();
    let answer = dummy::DriverMsg::decode(answer).unwrap();
    assert_eq!(answer.message(), "hello");
    assert_eq!(answer.ack_num, Some(4_000_000_007));
    let ping = DriverMsg {
        r#type: amber_proto::MsgType::Ping.into(),
        ..DriverMsg::default()
    };
    operator.ask(&call, ping).unwrap();

    // Errors come as they are.
    let error = operator
        .ask("amber/r1/dummy/5/call", status(1))
        .unwrap_err();
    assert_eq!(error.kind, Kind::NoSuchDevice);
    assert!(error.message.contains("dummy:5"), "{error:?}");
    let error = operator
        .ask("amber/r1/mediator/0/call", status(1))
        .unwrap_err();
    assert_eq!(error.kind, Kind::NoSuchDevice);
    let subscribe = dummy::DriverMsg::of_kind(amber_proto::MsgType::Subscribe);
    let error = operator.ask(&call, subscribe).unwrap_err();
    assert_eq!(error.kind, Kind::BadRequest);

    // Facts.
    let _token = operator.token("r1");
    let health = operator.json(&format!("{DUMMY}/health")).unwrap();
    assert_eq!(health["state"], "up");
    assert_eq!(operator.json("amber/*/*/*/health"), Some(health));
    let info = operator.json("amber/*/info").unwrap();
    assert_eq!(info["robot"], "r1");
    assert_eq!(info["devices"][0]["device"], "dummy:0");
    assert_eq!(info["operators"][0]["who"], "alice");
    assert!(info["counters"]["data_sent"].as_u64() >= Some(3), "{info}");
    let descriptions = operator.session.get(format!("{DUMMY}/description"));
    let descriptions = zenoh::Wait::wait(descriptions).unwrap();
    let description = descriptions.recv().unwrap();
    let files = description.result().unwrap().payload().to_bytes();
    assert!(files.windows(5).any(|part| part == b"dummy"));
    // Nobody: an answer at once that there is none.
    assert_eq!(operator.json("amber/r2/info"), None);

    let listed = fleet(&router, &[]);
    assert_eq!(listed["robots"][0]["robot"], "r1");
    assert_eq!(listed["robots"][0]["starts"], 1);
    assert_eq!(listed["robots"][0]["info"]["devices"][0]["state"], "up");

    // The robot leaves.
    robot.signal("TERM");
    assert_eq!(robot.wait(), Some(0));
    next(&tokens, false);
}

#[test]
fn drivers_robots_and_routers_that_die_are_missed_and_come_back() {
    let mut router = Router::start();
    let (_mediator, address) = dummy_mediator();
    let mut operator = Operator::new(&router, "alice");
    let devices = operator.tokens("amber/r1/*/*/alive/*");
    let robots = operator.tokens("amber/r1/alive/*");
    let mut first = robot("r1", &address, &router);
    let boot = next(&robots, true);
    next(&devices, true);

    let client = Client::connect(&address).unwrap();
    let pid = client.mediator().drivers().unwrap()[0].pid.unwrap();
    kill(pid, "KILL");
    next(&devices, false);
    next(&devices, true);

    // Without a router for a while, as if its machine were restarted.
    router.end();
    first.line("lost the router");
    router.begin();
    first.line("found a router");
    assert_eq!(next(&robots, true), boot);
    wait_for("an answer", || operator.json("amber/r1/info"));
    let call = format!("{DUMMY}/call");
    operator.ask(&call, status(1)).unwrap();

    first.signal("KILL");
    first.wait();
    while next(&robots, false) != boot {}
    let _second = robot("r1", &address, &router);
    assert_ne!(next(&robots, true), boot);
}

#[test]
fn access_rules_bind_keys_to_certificates() {
    let (_kept, folder, router) = with_rights(
        "
        [[robot]]
        name = 'r1'
        [[robot]]
        name = 'r2'
        [[operator]]
        name = 'alice'
        drives = ['r1']
        watches = ['r2']
        [[operator]]
        name = 'slow'
        watches = ['r1']
        own_rate = ['r1']
        [[operator]]
        name = 'stranger'",
    );
    let (_first, first) = dummy_mediator();
    let (_second, second) = dummy_mediator();
    let _r1 = secure_robot("r1", "r1", &folder, &first, &router);
    let _r2 = secure_robot("r2", "r2", &folder, &second, &router);
    // r2 says that it is r3.
    let _forger = secure_robot("r3", "r2", &folder, &second, &router);

    let mut alice = Operator::secure(&router, "alice", "alice", &folder);
    let mut posing = Operator::secure(&router, "bob", "alice", &folder);
    let mut stranger = Operator::secure(&router, "stranger", "stranger", &folder);
    let tokens = alice.tokens("amber/*/*/*/alive/*");
    let unseen = stranger.tokens("amber/*/*/*/alive/*");
    let mut seen = [next(&tokens, true), next(&tokens, true)].map(|key| key[..8].to_owned());
    seen.sort();
    assert_eq!(seen, ["amber/r1", "amber/r2"]);

    // She hears and asks both, and drives one.
    for robot in ["r1", "r2"] {
        let data = alice.published(&format!("amber/{robot}/dummy/0/data"));
        data.recv_timeout(PATIENCE).unwrap();
        assert_eq!(
            alice.json(&format!("amber/{robot}/info")).unwrap()["robot"],
            robot
        );
        let call = format!("amber/{robot}/dummy/0/call");
        assert!(alice.ask(&call, status(1)).is_ok());
        // Nobody can use the name of another operator.
        assert!(posing.try_ask(&call, status(1)).is_none());
        assert!(stranger.try_ask(&call, status(1)).is_none());
        let drive = format!("amber/{robot}/dummy/0/drive");
        assert_eq!(alice.try_ask(&drive, status(1)).is_some(), robot == "r1");
    }
    // This one hears only what the robot publishes at the rate of this operator.
    let mut slow = Operator::secure(&router, "slow", "slow", &folder);
    let all = slow.published(&format!("{DUMMY}/data"));
    let others = slow.published(&format!("{DUMMY}/data/alice"));
    let own = slow.published(&format!("{DUMMY}/data/slow"));
    for _ in 0..3 {
        own.recv_timeout(PATIENCE).unwrap();
    }
    assert!(all.try_recv().is_err() && others.try_recv().is_err());
    let call = format!("{DUMMY}/call");
    assert!(slow.ask(&call, status(1)).is_ok());
    assert_eq!(slow.json("amber/r1/seat").unwrap()["id"], 0);
    assert!(slow.json("amber/r1/seat/slow").is_none());

    let _token = alice.token("r1");
    let info = wait_for("the token", || {
        let info = alice.json("amber/r1/info")?;
        let operators = info["operators"].as_array()?.len();
        (operators > 0).then_some(info)
    });
    assert_eq!(info["operators"][0]["who"], "alice", "{info}");
    assert_eq!(alice.json("amber/r3/info"), None);
    assert!(unseen.try_recv().is_err());

    let listed = fleet(&router, &["--config", &settings("alice", "alice", &folder)]);
    let robots = listed["robots"].as_array().unwrap().iter();
    let robots: Vec<_> = robots.map(|row| &row["info"]["robot"]).collect();
    assert_eq!(robots, ["r1", "r2"], "{listed}");
    // Without a certificate there is no link.
    assert!(!connects(&router, &folder));
}

/// With the packages `eclipse-zenoh` and `protobuf` from PyPI. The test says so if they are missing.
#[test]
fn a_python_program_drives() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
    let python = |args: &[&str]| {
        let mut python = Command::new("python3");
        python.args(args).current_dir(root);
        python.env("PYTHONPATH", "client-sdk/python/src");
        python.stdin(Stdio::null());
        python
    };
    let mut probe = python(&["-c", "import zenoh, google.protobuf"]);
    let has_packages = probe.stderr(Stdio::null()).status();
    if !has_packages.is_ok_and(|status| status.success()) {
        let why = "SKIP drive.py: no python3 with eclipse-zenoh and protobuf";
        let _ = writeln!(std::io::stderr(), "{why}");
        return;
    }
    let router = Router::start();
    let (_demo, address, _folder) = demo();
    let client = Client::connect(&address).unwrap();
    let wheels = client.roboclaw(0);
    let speed = || wheels.speeds().ok().map(|speeds| speeds.front_left_mm_s);
    wait_for("the wheels", speed);
    let _robot = robot("r1", &address, &router);
    let watcher = Operator::new(&router, "watcher");
    next(&watcher.tokens("amber/r1/roboclaw/0/alive/*"), true);
    let script = "drivers/gateways/zenoh/examples/drive.py";
    let mut drive = python(&[script, &router.endpoint, "r1", "--seconds", "30"]);
    let mut drive = drive.spawn().unwrap();
    wait_for("motion", || speed().filter(|speed| *speed > 100));
    // The program is killed while it drives.
    kill(drive.id(), "KILL");
    drive.wait().unwrap();
    wait_for("a stop", || speed().filter(|speed| speed.abs() < 20));
}

#[test]
fn the_wheels_stop_by_the_clock_of_the_robot() {
    let router = Router::start();
    let (demo, address, _folder) = demo();
    demo.line("INFO ready: ");
    let client = Client::connect(&address).unwrap();
    let wheels = client.roboclaw(0);
    let speed = || wheels.speeds().ok().map(|speeds| speeds.front_left_mm_s);
    let moves = || speed().filter(|speed| *speed > 100);
    let stands = || speed().filter(|speed| speed.abs() < 20);
    wait_for("the wheels", speed);
    let robot = robot("r1", &address, &router);
    let mut alice = Operator::new(&router, "alice");
    let mut bob = Operator::new(&router, "bob");
    let tokens = alice.tokens("amber/r1/roboclaw/0/alive/*");
    next(&tokens, true);
    let drive = format!("{WHEELS}/drive");

    // Orders on the key for requests move nothing.
    let error = alice
        .ask(&format!("{WHEELS}/call"), command(200))
        .unwrap_err();
    assert_eq!(error.kind, Kind::Refused);

    // Alice drives, and others do not.
    let token = alice.token("r1");
    wait_for("motion", || {
        alice.put(&drive, command(200));
        moves()
    });
    alice.put(&drive, command(200));
    let error = bob.ask(&drive, command(-200)).unwrap_err();
    assert_eq!(error.kind, Kind::Occupied);
    assert!(
        alice.json("amber/r1/info").unwrap()["operators"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["who"] == "alice" && it["drives"] == true)
    );

    // Silence stops the wheels, long before the driver itself would after four seconds.
    alice.put(&drive, command(200));
    let silent = Instant::now();
    wait_for("a stop", stands);
    let took = silent.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");

    // A lost operator, too: the last order of the session is not the last word.
    wait_for("motion", || {
        alice.put(&drive, command(200));
        moves()
    });
    drop(token);
    drop(alice);
    wait_for("a stop", stands);

    // The seat is free.
    wait_for("motion", || {
        bob.put(&drive, command(200));
        moves()
    });
    // The whole robot is frozen and killed: the mediator misses its clients.
    robot.signal("KILL");
    wait_for("a stop", stands);
    // Keep the connection until here.
    thread::yield_now();
}

#[test]
fn an_operator_and_programs_of_the_robot_drive_one_at_a_time() {
    let router = Router::start();
    let (demo, address, _folder) = demo();
    demo.line("INFO ready: ");
    let client = Client::connect(&address).unwrap();
    let wheels = client.roboclaw(0);
    let speed = || wheels.speeds().ok().map(|speeds| speeds.front_left_mm_s);
    wait_for("the wheels", speed);
    // `amber goto` needs it.
    wait_for("the pose", || {
        let pose = client.location(0).pose().ok()?;
        (pose.quality > 0.8).then_some(())
    });
    let _robot = robot("r1", &address, &router);
    let mut alice = Operator::new(&router, "alice");
    next(&alice.tokens("amber/r1/roboclaw/0/alive/*"), true);
    let turn = |left: &'static str, right: &'static str| {
        ["drive", "--left", left, "--right", right, "--for", "600s"]
    };
    let goto = ["goto", "1.4", "1"];

    // An operator drives with the command line, and the programs of the robot are told so.
    let mut with = amber_zenoh();
    let (path, more) = (amber_path(), std::env::var("PATH").unwrap());
    with.env(
        "PATH",
        format!("{}:{more}", path.parent().unwrap().display()),
    );
    with.args(["with", "--connect", &router.endpoint, "--robot", "r1"]);
    with.args([
        "--operator",
        "bob",
        "--devices",
        "roboclaw:0",
        "--",
        "amber",
    ]);
    with.args(turn("150", "-150"));
    let mut bob = Process::start(with);
    wait_for("motion", || speed().filter(|speed| *speed > 100));
    for local in [&turn("-150", "150")[..], &goto] {
        let output = amber().args(["-m", &address]).args(local).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{error}");
        assert!(error.contains("bob"), "{error}");
        assert!(speed().is_some_and(|speed| speed > 100));
    }
    bob.signal("INT");
    bob.wait();
    wait_for("a stop", || speed().filter(|speed| speed.abs() < 20));

    // A program of the robot drives, and the operator is told so.
    for (name, args) in [
        ("amber drive", &turn("150", "-150")[..]),
        ("amber goto", &goto),
    ] {
        let mut program = amber();
        program.args(["-m", &address]).args(args);
        let mut local = Process::start(program);
        wait_for("motion", || speed().filter(|speed| speed.abs() > 50));
        // The robot asks for the lease after its first answer.
        wait_for("a refusal with the name", || {
            let refusal = alice.ask(&format!("{WHEELS}/drive"), command(-200)).err()?;
            refusal.message.contains(name).then_some(())
        });
        local.signal("INT");
        local.wait();
        wait_for("a stop", || speed().filter(|speed| speed.abs() < 20));
    }
}

#[test]
fn operators_ask_for_the_seat() {
    let router = Router::start();
    let (_mediator, address) = dummy_mediator();
    let mut alice = Operator::new(&router, "alice");
    let bob = Operator::new(&router, "bob");
    let tokens = alice.tokens("amber/r1/dummy/0/alive/*");
    let changes = alice.published("amber/r1/seat");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fleet.toml");
    std::fs::write(&file, "fleet = { may_force = ['bob'] }").unwrap();
    let _robot = robot_with("r1", &address, &router, &file);
    next(&tokens, true);
    let holder = |info: &serde_json::Value| {
        let who = info["holder"]["who"].as_str();
        who.unwrap_or("nobody").to_owned()
    };
    let change = || {
        let (_, info) = changes.recv_timeout(PATIENCE).unwrap();
        serde_json::from_slice::<serde_json::Value>(&info).unwrap()
    };
    let drive = "amber/r1/roboclaw/0/drive";

    let info = alice.json("amber/r1/seat").unwrap();
    assert_eq!(holder(&info), "nobody");
    let info = alice.json("amber/r1/seat/alice?action=take").unwrap();
    assert_eq!(holder(&info), "alice");
    assert_eq!(holder(&change()), "alice");
    // Who asks must wait, and the one who drives learns that.
    let info = bob.json("amber/r1/seat/bob?action=take").unwrap();
    assert_eq!(holder(&info), "alice");
    assert_eq!(change()["waiting"][0]["who"], "bob");
    let error = bob.problem("amber/r1/seat/bob?action=steal");
    assert_eq!(error.kind, Kind::BadRequest);

    // A request by hand that ends in vain does not win later.
    alice.json("amber/r1/seat/alice?action=take").unwrap();
    let mut take = amber_zenoh();
    take.args([
        "seat",
        "--robot",
        "r1",
        "--operator",
        "bob",
        "--deadline",
        "100ms",
    ]);
    take.args(["--connect", &router.endpoint, "take"]);
    wait_for("a link in time", || {
        alice.json("amber/r1/seat/alice?action=take").unwrap();
        let output = take.output().unwrap();
        assert!(!output.status.success());
        let error = String::from_utf8(output.stderr).unwrap();
        error.contains("alice keeps the seat of r1").then_some(())
    });
    let info = alice.json("amber/r1/seat/alice?action=release").unwrap();
    assert_eq!(holder(&info), "nobody", "{info}");

    // By hand.
    let taken = seat(&router, "bob", &["take", "--deadline", "60s"]);
    assert!(taken.starts_with("bob has the seat of r1"), "{taken}");
    let error = alice.ask(drive, command(100)).unwrap_err();
    assert!(
        error.message.starts_with("occupied by bob, free in "),
        "{error:?}"
    );
    seat(&router, "bob", &["release"]);
    // There are no wheels, so the command goes nowhere; but it is accepted.
    alice.ask(drive, command(100)).unwrap();
    assert!(seat(&router, "bob", &[]).starts_with("alice drives r1"));
    let info = bob.json("amber/r1/seat/bob?action=force").unwrap();
    assert_eq!(holder(&info), "bob");
    assert_eq!(
        alice.problem("amber/r1/seat/alice?action=force").kind,
        Kind::Refused
    );
    // Claims end by themselves.
    wait_for("a free seat", || {
        (holder(&alice.json("amber/r1/seat").unwrap()) == "nobody").then_some(())
    });
    while holder(&change()) != "nobody" {}
}

#[test]
fn an_operator_gets_data_at_a_rate_of_its_own() {
    let router = Router::start();
    let (_mediator, address) = dummy_mediator();
    let operator = Operator::new(&router, "bob");
    let tokens = operator.tokens("amber/r1/dummy/0/alive/*");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fleet.toml");
    std::fs::write(&file, "[[rate]]\noperator = 'bob'\nmax_hz = 2").unwrap();
    let _robot = robot_with("r1", &address, &router, &file);
    next(&tokens, true);

    let all = operator.published(&format!("{DUMMY}/data"));
    let own = operator.published(&format!("{DUMMY}/data/bob"));
    let stamps: Vec<_> = (0..4)
        .map(|_| own.recv_timeout(PATIENCE).unwrap().0.unwrap())
        .collect();
    for pair in stamps.windows(2) {
        assert_eq!(pair[1].sequence, pair[0].sequence + 1);
        let between_ms = (pair[1].time_ns - pair[0].time_ns) / 1_000_000;
        assert!(between_ms >= 490, "{between_ms} ms");
    }
    // The others get everything, ten messages per second.
    for _ in 0..15 {
        all.recv_timeout(PATIENCE).unwrap();
    }
    let info = operator.json("amber/r1/info").unwrap();
    assert!(
        info["counters"]["own_data_replaced"].as_u64() >= Some(4),
        "{info}"
    );
    assert!(
        info["counters"]["own_data_sent"].as_u64() >= Some(4),
        "{info}"
    );
    assert_eq!(info["counters"]["data_replaced"].as_u64(), None, "{info}");
}
