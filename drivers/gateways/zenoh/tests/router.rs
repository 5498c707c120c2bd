//! What `amber-zenoh router` does for others: real processes.

// The helpers are no tests for clippy.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use amber_proto::{DeviceMessage, dummy};
use serde_json::{Value, json};
use zenoh::qos::CongestionControl;
use zenoh::{Config, Session, Wait};

use self::common::{Operator, Process, Router, dummy_mediator, next, robot, wait_for, with_rights};

#[allow(dead_code)]
mod common;

const CHATTER: &str = "0/chatter/std_msgs::msg::dds_::String_/RIHS01_df668c";

/// A session as a node with `rmw_zenoh` opens it.
fn node(router: &Router, tls: Option<&Path>) -> Session {
    let mut config = json!({
        "mode": "peer",
        "connect": { "endpoints": [router.endpoint] },
        "listen": { "endpoints": ["tcp/localhost:0"] },
        "scouting": {
            "multicast": { "enabled": false },
            "gossip": { "enabled": true, "target": { "peer": ["router"] } },
        },
        "adminspace": { "enabled": true },
    });
    if let Some(folder) = tls {
        config["transport"]["link"]["tls"] = json!({
            "root_ca_certificate": folder.join("ca.pem"),
            "connect_certificate": folder.join("alice.pem"),
            "connect_private_key": folder.join("alice.key"),
            "enable_mtls": true,
        });
    }
    let config = Config::from_json5(&config.to_string()).unwrap();
    wait_for("a session", || zenoh::open(config.clone()).wait().ok())
}

/// Two nodes of one computer hear each other.
fn hear_each_other(router: &Router, tls: Option<&Path>) {
    let (talker, listener) = (node(router, tls), node(router, tls));
    let heard = listener.declare_subscriber(CHATTER).wait().unwrap();
    wait_for("a message", || {
        talker.put(CHATTER, "hello").wait().unwrap();
        heard
            .recv_timeout(Duration::from_millis(100))
            .ok()
            .flatten()
    });
}

#[test]
fn nodes_of_ros_2_find_each_other_behind_the_router() {
    hear_each_other(&Router::start(), None);
    let rights = "
        ros = {}
        [[robot]]
        name = 'r1'
        [[operator]]
        name = 'alice'
        watches = ['r1']";
    let (_kept, folder, router) = with_rights(rights);
    hear_each_other(&router, Some(&folder));
}

#[test]
fn a_huge_message_takes_no_memory_and_closes_no_link() {
    let router = Router::start();
    let (_mediator, address) = dummy_mediator();
    let mut operator = Operator::new(&router, "alice");
    let tokens = operator.tokens("amber/r1/*/*/alive/*");
    let robot = robot("r1", &address, &router);
    next(&tokens, true);
    let status = || dummy::DriverMsg {
        get_status: Some(true),
        syn_num: Some(1),
        ..dummy::DriverMsg::data()
    };
    operator.ask("amber/r1/dummy/0/call", status()).unwrap();
    let before = [peak_kb(&robot), router.with_process(peak_kb)];
    // The router forwards the first one, and the robot drops it.
    for megabytes in [32, 128] {
        let message = vec![0u8; megabytes << 20];
        let put = operator
            .session
            .put("amber/r1/dummy/0/drive/alice", message);
        put.congestion_control(CongestionControl::Block)
            .wait()
            .unwrap();
        operator.ask("amber/r1/dummy/0/call", status()).unwrap();
    }
    let grown = [
        peak_kb(&robot) - before[0],
        router.with_process(peak_kb) - before[1],
    ];
    assert!(grown[0] < 12 << 10, "the robot: {grown:?} kB");
    assert!(grown[1] < 110 << 10, "the router: {grown:?} kB");
    let info: Value = operator.json("amber/r1/info").unwrap();
    assert!(info["uptime_ms"].is_u64());
    // It is still the same link.
    assert!(tokens.recv_timeout(Duration::ZERO).is_err());
}

/// The most memory that a process has had.
fn peak_kb(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
