//! Tests of `amber bench`: it measures running drivers and reports missing ones.

use std::fs;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::{Mediator, signal, wait_for};

const DUMMY: &str = "dummy:0=amber driver dummy --period-ms 5";

fn bench(mediator: &Mediator, args: &[&str]) -> Command {
    let mut command = mediator.amber(&["bench", "--json"]);
    command.args(args);
    if !args.contains(&"--seconds") {
        command.args(["--seconds", "0.2"]);
    }
    command
}

/// Runs a command that must succeed; returns its output.
#[track_caller]
fn json(mediator: &Mediator, args: &[&str]) -> Value {
    let output = bench(mediator, args).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args:?}: {err}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn all_running_drivers_are_measured() {
    let mediator = Mediator::start(&[DUMMY, "77:3=cat"]);
    let devices = &json(&mediator, &[])["devices"];
    for (i, device) in ["mediator:0", "dummy:0", "77:3"].into_iter().enumerate() {
        let row = &devices[i];
        assert_eq!(row["device"], device);
        let times = ["min_ms", "p50_ms", "p90_ms", "p99_ms", "max_ms"];
        let times = times.map(|name| row[name].as_f64().unwrap_or_else(|| panic!("{row}")));
        assert!(times[0] > 0.0 && times.is_sorted(), "{row}");
        assert_eq!(row["lost_percent"], 0.0, "{row}");
    }
}

#[test]
fn requests_in_flight_and_a_chart() {
    let mediator = Mediator::start(&[DUMMY]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("times.svg");
    let svg = file.to_str().unwrap();
    let args = [
        "dummy",
        "--window",
        "8",
        "--request",
        "status",
        "--svg",
        svg,
    ];
    let row = &json(&mediator, &args)["devices"][0];
    assert!(row["received"].as_u64() > Some(8), "{row}");
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .contains("dummy:0: round trips")
    );
}

#[test]
fn a_subscription_has_a_rate() {
    let mediator = Mediator::start(&[DUMMY]);
    let shown = json(&mediator, &["dummy", "--subscribe"]);
    assert!(shown["messages"].as_u64() > Some(2), "{shown}");
    assert!(shown["jitter_ms"].as_f64() >= Some(0.0), "{shown}");
    assert_eq!(shown["missed"], 0);
}

#[test]
fn an_unresponsive_driver_is_reported_without_a_long_wait() {
    // This driver never reads and never writes.
    let mediator = Mediator::start(&["77:3=sleep 600"]);
    for (args, words) in [
        (&["hokuyo"][..], "no reply from hokuyo:0"),
        (&["77:3"], "no answer from 77:3"),
        (&["77:3", "--subscribe"], "77:3 published nothing"),
        (
            &["dummy", "--request", "message hello"],
            "is not a request to measure",
        ),
        (&["dummy", "--request", "statu"], "did you mean 'status'?"),
        (&["dummy", "--seconds", "301"], "at most 300 seconds"),
    ] {
        let output = bench(&mediator, args).output().unwrap();
        let all = [output.stdout, output.stderr].concat();
        let all = String::from_utf8(all).unwrap();
        assert!(
            !output.status.success() && all.contains(words),
            "{args:?}: {all}"
        );
    }
}

#[test]
fn ctrl_c_shows_the_result_so_far() {
    let mediator = Mediator::start(&[DUMMY]);
    let mut command = bench(&mediator, &["dummy", "--seconds", "300"]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    // The benchmark has started when the driver has received requests.
    wait_for("requests", || {
        let counters = mediator.describe("dummy:0").counters?;
        (counters.frames_in() > 20).then_some(())
    });
    signal(child.id(), Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        shown["devices"][0]["received"].as_u64() > Some(10),
        "{shown}"
    );
}
