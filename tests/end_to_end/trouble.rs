//! A device that does not work is reported, while its driver stays up.

use std::path::Path;
use std::process::Command;

use amber_proto::mediator::DriverState;

use crate::common::{AMBER, Mediator, Running, ready_demo, wait_for};

#[test]
fn an_unplugged_device_is_reported_and_recovers() {
    let (demo, folder) = ready_demo();
    let mut events = Running::start(&demo, &["events"]);
    assert!(events.note().contains("waiting for events"));
    for (name, device) in [("hokuyo", "hokuyo:0"), ("roboclaw", "roboclaw:0")] {
        sim(folder.path(), &["fault", "unplug", name]);
        let trouble = next_of(&mut events, device);
        let (_, trouble) = trouble.split_once(" trouble: ").expect(&trouble);
        assert!(trouble.contains(name), "{trouble}");

        // More reports may follow, such as why the port cannot be reopened.
        let pid = demo.describe(device).pid();
        let all = output(&demo, &["devices"]);
        assert!(all.contains(&format!("{device} is up, but: ")), "{all}");
        let one = output(&demo, &["status", name]);
        assert!(one.contains("\nbut: ") && one.contains("(since "), "{one}");
        let json = output(&demo, &["status", name, "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["troubles"][0]["device"], device);
        assert_eq!(json["state"], "up");

        sim(folder.path(), &["fault", "clear"]);
        let last = loop {
            let line = next_of(&mut events, device);
            if !line.contains(" trouble: ") {
                break line;
            }
        };
        assert!(last.contains(" recovered: after "), "{last}");
        let driver = demo.describe(device);
        assert!(driver.troubles.is_empty(), "{driver:?}");
        assert_eq!((driver.pid(), driver.restarts()), (pid, 0));
    }
    events.interrupt();
}

#[test]
fn a_driver_in_any_language_can_report_trouble() {
    // No header, and a DATA message with `health`: TROUBLE, "lost".
    let frame = r"\000\000\000\015\020\001\272\013\010\010\002\022\004lost";
    let driver = format!("77:0=sh -c 'printf \"{frame}\"; cat >/dev/null'");
    let mediator = Mediator::start(&[&driver]);
    let trouble = wait_for("its trouble", || {
        mediator.describe("77:0").troubles.into_iter().next()
    });
    assert_eq!(trouble.text, "lost");
    assert_eq!(mediator.dropped("message_for_mediator_unreadable"), 0);
}

#[test]
fn the_log_keeps_the_level_of_the_driver_and_reports_trouble_once() {
    let mediator = Mediator::start(&["hokuyo:0=amber driver hokuyo --port /nowhere/hokuyo"]);
    let line = mediator.wait_for_line("/nowhere/hokuyo does not exist; retrying");
    assert_eq!(line.matches("WARN").count(), 1, "{line}");
    assert!(
        !line.contains("INFO") && !line.contains("amber_drivers"),
        "{line}"
    );
    assert!(line.contains("driver=hokuyo:0"), "{line}");
    mediator.wait_for_state("hokuyo:0", DriverState::Up);
    let trouble = wait_for("its trouble", || {
        mediator.describe("hokuyo:0").troubles.into_iter().next()
    });
    assert_eq!(trouble.text, "/nowhere/hokuyo does not exist");
}

#[test]
fn commands_report_why_an_unplugged_device_does_not_answer() {
    let (demo, folder) = ready_demo();
    for name in ["hokuyo", "roboclaw"] {
        sim(folder.path(), &["fault", "unplug", name]);
    }
    for device in ["hokuyo:0", "roboclaw:0"] {
        wait_for("its trouble", || {
            demo.describe(device).troubles.into_iter().next()
        });
    }
    for args in [
        &["scan"][..],
        &["call", "hokuyo", "scan", "--timeout", "0.3"],
        &["call", "roboclaw", "speeds"],
        &["call", "roboclaw", "drive", "100", "100"],
        &["drive", "--left", "100", "--right", "100", "--for", "0.5"],
    ] {
        let error = refused(&demo, args);
        assert!(error.contains("(since "), "{args:?}: {error}");
        assert!(error.contains("hint: `amber status "), "{args:?}: {error}");
        assert!(!error.contains("sent ("), "{args:?}: {error}");
    }
    let mut watch = Running::start(&demo, &["watch", "hokuyo"]);
    let note = watch.note();
    assert!(
        note.contains("hokuyo:0 has published nothing for 3 s: "),
        "{note}"
    );
    assert!(note.contains("(since "), "{note}");
    watch.interrupt();
}

#[test]
fn rejected_commands_fail() {
    let (demo, _folder) = ready_demo();
    for (args, words) in [
        (
            &[
                "call",
                "maestro",
                "setAngleCommand={\"servoAddress\": 99, \"angle\": 45}",
                "--no-answer",
            ][..],
            "99",
        ),
        (&["call", "maestro", "set-angle", "3", "9999"], "9999"),
        (&["call", "roboclaw", "drive", "3000", "3000"], "3000"),
        (
            &["drive", "--left", "2000", "--right", "2000", "--for", "1"],
            "2000",
        ),
        (&["start", "maestro"], "maestro:0 is already running"),
    ] {
        // The driver does not log the same refusal again so soon, and yet reports it.
        for _ in 0..3 {
            let error = refused(&demo, args);
            assert!(error.contains(words), "{args:?}: {error}");
        }
    }
    output(&demo, &["call", "maestro", "set-angle", "3", "45"]);
    output(&demo, &["call", "roboclaw", "drive", "100", "100"]);
    // No driver can carry this out, so it is not sent.
    let args = ["call", "maestro", "set-angle", "99", "45"];
    let refused = demo.amber(&args).output().unwrap();
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(
        error.contains("'99' is out of range: from 0 to 23"),
        "{error}"
    );
}

/// The stderr of a command that fails.
#[track_caller]
fn refused(mediator: &Mediator, args: &[&str]) -> String {
    let output = mediator.amber(args).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {error}");
    assert!(output.stdout.is_empty(), "{args:?}: {:?}", output.stdout);
    error
}

#[track_caller]
fn next_of(events: &mut Running, device: &str) -> String {
    loop {
        let line = events.line();
        if line.contains(device) {
            return line;
        }
    }
}

#[track_caller]
fn output(mediator: &Mediator, args: &[&str]) -> String {
    let output = mediator.amber(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn sim(folder: &Path, args: &[&str]) {
    let mut command = Command::new(AMBER);
    command.arg("sim").args(args);
    command.env("AMBER_SIM_DIR", folder.join("sim"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
