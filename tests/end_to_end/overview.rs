//! `amber top` and `amber metrics`: all counters at a glance, for people and for other programs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

use amber_proto::mediator::DriverState;

use crate::common::{Mediator, Running};

fn mediator() -> Mediator {
    let mediator = Mediator::start(&["dummy:0=amber driver dummy"]);
    mediator.wait_for_state("dummy:0", DriverState::Up);
    mediator
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn top_shows_rates_processor_time_and_memory() {
    let mediator = mediator();
    let top = ["top", "--json", "--count", "2", "--every", "0.2"];
    let shown = text(mediator.amber(&top).output().unwrap());
    let looks: Vec<serde_json::Value> = (shown.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(looks.len(), 2);
    let look = &looks[1];
    let device = &look["devices"][0];
    assert_eq!(
        (&device["device"], &device["state"]),
        (&"dummy:0".into(), &"up".into())
    );
    // The PINGs of this very program, five times a second.
    assert!(device["in_per_s"].as_f64() > Some(1.0), "{look}");
    assert!(device["round_trip_ms"].as_f64() > Some(0.0), "{look}");
    for of in [device, &look["mediator"]] {
        assert!(of["memory_bytes"].as_u64() > Some(1_000_000), "{look}");
        assert!(of["cpu_percent"].as_f64() >= Some(0.0), "{look}");
    }
    let table = text(mediator.amber(&["top", "-n", "1"]).output().unwrap());
    assert!(table.contains("\nDEVICE   STATE  IN/s"), "{table}");
}

#[test]
fn metrics_are_valid_for_prometheus() {
    let mediator = mediator();
    let metrics = text(mediator.amber(&["metrics"]).output().unwrap());
    assert!(
        metrics.contains("\namber_driver_state{device=\"dummy:0\",amber_driver_state=\"up\"} 1\n")
    );
    assert!(metrics.ends_with("\n# EOF\n"), "{metrics}");

    let mut serving = Running::start(&mediator, &["metrics", "--listen", "127.0.0.1:0"]);
    let note = serving.note();
    let (_, place) = note.split_once("http://").unwrap();
    let (address, path) = place.trim().split_once('/').unwrap();
    let mut page = TcpStream::connect(address).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    page.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    page.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    assert!(body.ends_with("\n# EOF\n"), "{body}");
    serving.interrupt();

    let check = "\
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
found = {it.name: it for it in read(sys.stdin.read())}
assert found['amber_driver_frames_in'].type == 'counter'
assert found['amber_mediator_uptime_seconds'].samples[0].value > 0
assert found['amber_mediator_dropped_unknown_device'].documentation.startswith('A message for a')
";
    let mut python = Command::new("python3");
    python
        .args(["-c", "import prometheus_client"])
        .stderr(Stdio::null());
    if !python.status().is_ok_and(|status| status.success()) {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP metrics read by Prometheus' own parser: no python3 with prometheus_client"
        );
        return;
    }
    let mut python = Command::new("python3");
    let mut python = python
        .args(["-c", check])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    python
        .stdin
        .take()
        .unwrap()
        .write_all(metrics.as_bytes())
        .unwrap();
    assert!(python.wait().unwrap().success());
}
