//! Targets end soon after the last sign of life of the program that has set them: real processes.

// The helpers are no tests for clippy.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::io::Write;
use std::process::{Command, Stdio};

use amber_ros2::attachment::Gid;
use amber_ros2::messages::{Header, Pose, PoseStamped};
use amber_ros2::{Attachment, DataKey, Endpoint, EntityKind, Qos, RosMessage, Token, encode};
use serde_json::json;

use self::common::world::World;
use self::common::{Operator, Process, Router, amber_path, amber_zenoh, kill, wait_for};

#[allow(dead_code)]
mod common;

#[test]
fn a_far_operator_that_is_lost_in_any_way_leaves_no_goal_behind() {
    let mut world = World::new("[fleet]\nname = 'r1'\n");
    let path = std::env::var("PATH").unwrap();
    let folder = amber_path();
    let path = format!("{}:{path}", folder.parent().unwrap().display());
    // Sets a goal with the command line, and goes on as long as it is wanted.
    let begin = |world: &mut World| loop {
        let (x, y) = world.goal();
        let mut with = amber_zenoh();
        with.env("PATH", &path);
        with.args(["with", "--robot", "r1", "--operator", "bob", "--connect"]);
        with.args([&world.router.endpoint, "--devices"]);
        with.args(["drive-to-point:0,location:0,roboclaw:0", "--", "amber"]);
        // Amber has y down.
        with.args(["goto", "--", &x.to_string(), &(0.0 - y).to_string()]);
        let operator = Process::start(with);
        if world.holds() {
            return operator;
        }
    };

    // Its own process is frozen.
    let operator = begin(&mut world);
    let pid = pid_of(&["bob", &world.router.endpoint]);
    kill(pid, "STOP");
    // Its mediator kills it sooner or later.
    world.ends("operator frozen");
    drop(operator);

    let operator = begin(&mut world);
    world.router.signal("STOP");
    world.ends("router frozen");
    world.router.signal("CONT");
    drop(operator);

    let operator = begin(&mut world);
    world.cable.cut(true);
    world.ends("cable cut");
    world.cable.cut(false);
    drop(operator);
    assert!(world.abandoned() >= 1);
}

#[test]
fn a_goal_of_a_ros_node_ends_with_the_node_whatever_lease_it_has() {
    let world = World::new("[ros]\n");
    // The robot asks the session of a node, as `rmw_zenoh` opens it. Its lease is a minute.
    let node = loop {
        let (x, y) = world.goal();
        let Some(node) = node(&world.router, x, y) else {
            return;
        };
        if world.holds() {
            break node;
        }
    };
    node.signal("STOP");
    world.ends("node frozen");
    node.signal("CONT");
    drop(node);
    wait_for("the counter", || (world.abandoned() > 0).then_some(()));

    // A session that does not answer must repeat the goal.
    let silent = Operator::with("desk", common::client(&world.router));
    let (token, key) = endpoint(&silent.session.zid().to_string());
    let _token = zenoh::Wait::wait(silent.session.liveliness().declare_token(&token)).unwrap();
    let (x, y) = world.goal();
    let set = |number: i64| {
        let put = silent.session.put(&key, goal(x, y));
        zenoh::Wait::wait(put.attachment(attachment(&token, number))).unwrap();
    };
    wait_for("a goal", || {
        set(1 + i64::from(fastrand::i32(1..1_000_000)));
        world.has_targets().then_some(())
    });
    world.ends("goal not repeated");
}

/// A node in Python that sets a goal and does nothing more; `None` if it cannot run here.
fn node(router: &Router, x_m: f64, y_m: f64) -> Option<Process> {
    let session = format!("{:x}", fastrand::u128(1..));
    let config = json!({
        "id": session,
        "mode": "peer",
        "connect": { "endpoints": [router.endpoint] },
        "listen": { "endpoints": ["tcp/localhost:0"] },
        "scouting": { "multicast": { "enabled": false }, "gossip": { "enabled": true } },
        "adminspace": { "enabled": true },
        "transport": { "link": { "tx": { "lease": 60_000, "keep_alive": 2 } } },
    });
    let (token, key) = endpoint(&session);
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|it| format!("{it:02x}"))
            .collect::<String>()
    };
    let mut probe = Command::new("python3");
    probe.args(["-c", "import zenoh"]).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP nodes of ROS 2: no python3 with eclipse-zenoh"
        );
        return None;
    }
    let mut python = Command::new("python3");
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ros/goal.py"));
    python.args([config.to_string(), token.clone(), key]);
    python.args([hex(&goal(x_m, y_m)), hex(&attachment(&token, 1))]);
    let node = Process::start(python);
    node.line("set");
    Some(node)
}

fn goal(x_m: f64, y_m: f64) -> Vec<u8> {
    encode(&PoseStamped {
        header: Header::new(0, "map"),
        pose: Pose::flat(x_m, y_m, 0.0),
    })
}

/// The token of a publisher of goals, and its key.
fn endpoint(session: &str) -> (String, String) {
    let token = Token {
        domain: 0,
        session: session.to_owned(),
        node: 0,
        entity: 7,
        namespace: "/".to_owned(),
        node_name: "rviz".to_owned(),
        endpoint: Some(Endpoint {
            kind: EntityKind::Publisher,
            name: "/r1/goal_pose".to_owned(),
            dds_type: PoseStamped::TYPE.dds_name(),
            hash: PoseStamped::TYPE.hash_text(),
            qos: Qos::DEFAULT.to_string(),
        }),
    };
    let key = DataKey::new(0, "/r1/goal_pose", &PoseStamped::TYPE);
    (token.to_string(), key.to_string())
}

fn attachment(token: &str, sequence: i64) -> Vec<u8> {
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::UNIX_EPOCH).unwrap();
    let attachment = Attachment {
        sequence,
        source_ns: now.as_nanos().try_into().unwrap(),
        gid: Gid::of_token(token),
    };
    attachment.encode().to_vec()
}

/// The only process of `amber-zenoh remote` with all of these texts in its command line.
fn pid_of(texts: &[&str]) -> u32 {
    let start = format!("{} remote ", env!("CARGO_BIN_EXE_amber-zenoh"));
    let of = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let has_all = texts.iter().all(|text| line.contains(text));
        (line.starts_with(&start) && has_all).then_some(pid)
    };
    let all = std::fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let found: Vec<u32> = pids.filter_map(of).collect();
    assert_eq!(found.len(), 1, "{texts:?}: {found:?}");
    found[0]
}
