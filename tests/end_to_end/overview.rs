//! `amber top` and `amber metrics`: all counters at a glance, for people and for other programs.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;

use amber_proto::mediator::DriverState;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::{Mediator, PATIENCE, Running, root, signal};

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
    let ask_for = |host: &str, accept: &str| {
        let mut page = TcpStream::connect(address).unwrap();
        let request =
            format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{accept}\r\n");
        page.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        page.read_to_string(&mut answer).unwrap();
        answer
    };
    let ask = |host: &str| ask_for(host, "");
    // A foreign site can point its own name to this machine.
    assert!(ask("evil.example").starts_with("HTTP/1.1 403 "));
    let answer = ask(address);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    assert!(body.ends_with("\n# EOF\n"), "{body}");
    let older = ask_for(address, "Accept: text/plain;version=0.0.4\r\n");
    let (head, body) = older.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(
        body.contains("\n# TYPE amber_mediator_drops_total counter\n"),
        "{body}"
    );
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

/// The words in a text that begin with `amber_`.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("amber_")).collect()
}

/// All texts of a JSON value under one of these names.
fn texts<'a>(value: &'a Value, names: &[&str], found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if names.contains(&name.as_str()) => found.push(text),
                    other => texts(other, names, found),
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                texts(value, names, found);
            }
        }
        _ => {}
    }
}

#[test]
fn grafana_uses_only_metrics_that_exist() {
    let mediator = mediator();
    let printed = text(mediator.amber(&["metrics"]).output().unwrap());
    let samples = printed.lines().filter(|line| !line.starts_with('#'));
    let exist: BTreeSet<_> = samples
        .map(|line| line.split(['{', ' ']).next().unwrap())
        .collect();

    let folder = root().join("docs/grafana");
    let dashboard = fs::read_to_string(folder.join("amber.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let mut queries = Vec::new();
    texts(&dashboard, &["expr", "query", "definition"], &mut queries);
    let alerts = fs::read_to_string(folder.join("alerts.yaml")).unwrap();
    let rules = alerts.lines().filter_map(|line| line.split_once("expr: "));
    let rules: Vec<_> = rules.map(|(_, rule)| rule).collect();
    assert!(queries.len() > 30 && rules.len() > 5);
    for query in queries.iter().chain(&rules) {
        for metric in metrics_in(query) {
            assert!(exist.contains(metric), "{metric} in {query}");
        }
    }
    let shown: BTreeSet<_> = queries.iter().flat_map(|query| metrics_in(query)).collect();
    let drops = exist
        .iter()
        .filter(|it| it.contains("_dropped_") && !it.contains("_lines_"));
    for drop in drops {
        assert!(shown.contains(drop), "no panel shows {drop}");
    }

    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has an id of its own");
}

#[test]
fn devices_are_watched_without_a_terminal() {
    let mediator = mediator();
    let mut watching = mediator
        .amber(&["devices", "--watch", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (sender, changes) = mpsc::channel::<Value>();
    let out = BufReader::new(watching.stdout.take().unwrap());
    let reader = thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            let _ = sender.send(serde_json::from_str(&line).unwrap());
        }
    });
    let next = || changes.recv_timeout(PATIENCE).unwrap();
    let first = next();
    assert_eq!(
        (&first["device"], &first["state"]),
        (&"dummy:0".into(), &"up".into())
    );
    let pid = mediator.describe("dummy:0").pid();
    signal(pid, Signal::SIGKILL);
    // It may be back before the next look.
    let back = loop {
        let change = next();
        assert_eq!(change["reason"], "killed by signal 9 (SIGKILL)", "{change}");
        if change["state"] == "up" {
            break change;
        }
        if change["state"] == "starting" {
            continue;
        }
        assert_eq!(
            (&change["state"], &change["pid"]),
            (&"backoff".into(), &Value::Null)
        );
    };
    assert_eq!(back["restarts"], 1);
    assert_ne!(back["pid"], pid);
    watching.kill().unwrap();
    watching.wait().unwrap();
    reader.join().unwrap();
}
