//! `amber logs`: the stderr output of drivers and the mediator's messages about them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use amber_proto::mediator::DriverState;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::{AMBER, Mediator, signal, wait_for};

fn lines(mediator: &Mediator, options: &[&str]) -> Vec<Value> {
    let arguments = [&["logs", "--json"], options].concat();
    let output = mediator.amber(&arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line| serde_json::from_str(line).unwrap();
    text.lines().map(line).collect()
}

fn texts(lines: &[Value]) -> Vec<&str> {
    let texts = lines.iter().map(|line| line["text"].as_str());
    texts.map(|text| text.unwrap_or("missing")).collect()
}

#[test]
fn the_log_of_a_driver_is_kept_across_its_restarts() {
    let driver = "5:0=sh -c 'echo WARN first line >&2; printf \"\\033[2J%s\\n\" x >&2; exec cat'";
    let mediator = Mediator::start(&[driver, "77:3=cat"]);
    let first = mediator.wait_for_state("5:0", DriverState::Up);
    signal(first.pid(), Signal::SIGKILL);
    wait_for("a restart", || {
        let driver = mediator.describe("5:0");
        (driver.restarts() == 1 && driver.state() == DriverState::Up).then_some(())
    });
    let log = lines(&mediator, &["dummy"]);
    let own: Vec<_> = texts(&log)
        .into_iter()
        .filter(|text| !text.starts_with("started as process "))
        .collect();
    let life = ["WARN first line", "\u{1b}[2Jx", "up"];
    let end = ["killed by signal 9 (SIGKILL)"];
    assert_eq!(own, [&life[..], &end, &life].concat());
    assert_eq!(
        (&log[0]["number"], &log[0]["source"]),
        (&1.into(), &"mediator".into())
    );
    let warning = log.iter().find(|line| line["text"] == life[0]).unwrap();
    assert_eq!(
        (&warning["level"], &warning["source"]),
        (&"warn".into(), &"driver".into())
    );

    assert_eq!(lines(&mediator, &["77:3"]).len(), 2);
    assert_eq!(lines(&mediator, &[]).len(), log.len() + 2);
    assert_eq!(
        lines(&mediator, &["dummy", "-n", "2"]),
        log[log.len() - 2..]
    );
    assert_eq!(lines(&mediator, &["dummy", "--since", "1h"]), log);

    let shown = mediator.amber(&["logs", "dummy"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains(" dummy:0: WARN first line\n"), "{shown}");
    assert!(
        shown.contains(" dummy:0: \\x1b[2Jx\n"),
        "no escape reaches the terminal: {shown}"
    );
    assert!(shown.contains(" dummy:0 [amber]: up\n"), "{shown}");

    // Times are those of this user's place.
    let places: &[(&str, i64)] = match Path::new("/usr/share/zoneinfo/Asia/Tokyo").exists() {
        true => &[("UTC", 0), ("Asia/Tokyo", 9), ("IST-5", 5)],
        false => &[("UTC", 0), ("IST-5", 5)],
    };
    for (place, hours_ahead) in places {
        let mut logs = mediator.amber(&["logs", "dummy", "-n", "1"]);
        let shown = logs.env("TZ", place).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        let hour = |time: &str| time[11..13].parse::<i64>().unwrap();
        let utc = hour(log.last().unwrap()["time"].as_str().unwrap());
        assert_eq!(hour(&shown), (utc + hours_ahead) % 24, "{place}: {shown}");
    }

    let unknown = mediator.amber(&["logs", "9:9"]).output().unwrap();
    assert!(!unknown.status.success());
    let error = String::from_utf8(unknown.stderr).unwrap();
    assert!(error.contains("no driver serves"), "{error}");
}

#[test]
fn a_flood_is_followed_without_a_silent_loss() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let script = format!(
        "while [ ! -e {0} ]; do sleep 0.05; done; seq 1 30000 >&2; exec cat",
        go.display()
    );
    let mediator = Mediator::start(&[&format!("5:0=sh -c '{script}'"), "77:3=cat"]);
    mediator.wait_for_state("77:3", DriverState::Up);
    let out = folder.path().join("out");
    let mut following = Command::new(AMBER)
        .args([
            "logs",
            "-f",
            "--json",
            "dummy",
            "-m",
            &mediator.address.to_string(),
        ])
        .stdout(fs::File::create(&out).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let read = || fs::read_to_string(&out).unwrap();
    wait_for("the first lines", || {
        read().contains("started").then_some(())
    });
    fs::write(&go, "").unwrap();
    wait_for("the last line", || {
        read().contains("\"text\":\"30000\"").then_some(())
    });
    following.kill().unwrap();
    following.wait().unwrap();
    let (mut number, mut seen, mut missing) = (0, 0, 0);
    for line in read().lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if let Some(gap) = line["missing"].as_u64() {
            missing += gap;
            number += gap;
            continue;
        }
        seen += 1;
        number += 1;
        assert_eq!(line["number"], number);
    }
    assert!(seen >= 1000, "the newest lines are kept");
    // Lines of the mediator may come after the last one of the driver.
    let all = mediator.describe("dummy").counters.unwrap().stderr_lines();
    assert_eq!(all, 30_000);
    assert!(
        (30_001..=30_002).contains(&(seen + missing)),
        "{seen} + {missing}"
    );
    let quiet = texts(&lines(&mediator, &["77:3"])).len();
    assert_eq!(quiet, 2, "the lines of another driver stay");
}

#[test]
fn following_goes_on_after_a_restart_of_the_mediator() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let start = |listen: &str| {
        let mut command = Command::new(AMBER);
        command.args(["mediator", "--listen", listen, "--driver", "5:0=cat"]);
        Mediator::run(command)
    };
    let first = start("127.0.0.1:0");
    first.wait_for_state("5:0", DriverState::Up);
    let address = first.address.to_string();
    let mut following = Command::new(AMBER)
        .args(["logs", "--follow", "-m", &address])
        .stdout(fs::File::create(&out).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ups = || {
        fs::read_to_string(&out)
            .unwrap()
            .matches("[amber]: up\n")
            .count()
    };
    wait_for("the first life", || (ups() == 1).then_some(()));
    drop(first);
    let _second = start(&address);
    wait_for("the second life", || (ups() == 2).then_some(()));
    following.kill().unwrap();
    following.wait().unwrap();
    let text = fs::read_to_string(&out).unwrap();
    assert!(
        text.contains("... the mediator was restarted ...\n"),
        "{text}"
    );
}

/// Its pipe is full, so it still shows old lines when the mediator ends.
#[test]
fn following_goes_on_after_a_restart_while_old_lines_are_shown() {
    let start = |listen: &str| {
        let old_lines = "5:0=sh -c 'yes \"$(printf %0200d 0)\" | head -n 900 >&2; exec cat'";
        let mut command = Command::new(AMBER);
        command.args(["mediator", "--listen", listen, "--driver", old_lines]);
        let mediator = Mediator::run(command);
        wait_for("all old lines", || {
            let counters = mediator.describe("5:0").counters.unwrap();
            (counters.stderr_lines() == 900).then_some(())
        });
        mediator
    };
    let first = start("127.0.0.1:0");
    let address = first.address.to_string();
    let mut following = Command::new(AMBER)
        .args(["logs", "--follow", "-m", &address])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut shown = BufReader::with_capacity(1, following.stdout.take().unwrap());
    assert!(!shown.fill_buf().unwrap().is_empty());
    drop(first);
    let _second = start(&address);
    let mut lines = shown.lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "... the mediator was restarted ..."));
    following.kill().unwrap();
    following.wait().unwrap();
}
