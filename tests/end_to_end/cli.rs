//! Tests of the command line: its output for people and programs, and its exit codes.

use std::fs;
use std::net::UdpSocket;
use std::process::{Command, Output};

use amber_proto::mediator::DriverState;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::{AMBER, Mediator, Running, signal, wait_for};

const DUMMY: &str = "dummy:0=amber driver dummy";

fn run(command: &mut Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn amber(mediator: &Mediator, args: &[&str]) -> (i32, String, String) {
    run(&mut mediator.amber(args))
}

/// Runs a command that must succeed; returns its output.
#[track_caller]
fn ok(mediator: &Mediator, args: &[&str]) -> String {
    let (code, out, err) = amber(mediator, args);
    assert_eq!(code, 0, "{args:?}: {err}");
    out
}

#[track_caller]
fn json(mediator: &Mediator, args: &[&str]) -> Value {
    let out = ok(mediator, &[args, &["--json"]].concat());
    assert_eq!(out.lines().count(), 1, "one object: {out}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_mistyped_command_is_pointed_out() {
    let (code, out, err) = run(Command::new(AMBER).arg("devises"));
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("'devices'"), "{err}");
    let (code, _, err) = run(Command::new(AMBER).args(["ping", "hokujo"]));
    assert_eq!(code, 2);
    assert!(err.contains("did you mean 'hokuyo'?"), "{err}");
}

#[test]
fn without_a_mediator_there_is_an_error_with_a_hint() {
    let (code, out, err) = run(Command::new(AMBER).args(["devices", "-m", "127.0.0.1:9"]));
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("error: "), "{err}");
    assert!(err.contains("\nhint: "), "{err}");
}

#[test]
fn devices_and_status() {
    let mediator = Mediator::start(&[DUMMY, "77:3=sh -c 'echo last words >&2; exec cat'"]);
    mediator.wait_for_state("dummy:0", DriverState::Up);
    mediator.wait_for_line("last words");
    let out = ok(&mediator, &["devices"]);
    assert!(
        out.contains("dummy:0") && out.contains("77:3") && out.contains("up"),
        "{out}"
    );

    let devices = json(&mediator, &["devices"]);
    assert_eq!(devices["devices"][0]["device"], "dummy:0");
    assert_eq!(devices["devices"][0]["state"], "up");
    assert!(devices["devices"][0]["pid"].as_u64().unwrap() > 1);

    let status = ok(&mediator, &["status", "77:3"]);
    assert!(
        status.contains("last words") && status.contains("exec cat"),
        "{status}"
    );

    mediator.peer().send_datagram(b"\x01");
    let short = || json(&mediator, &["status"])["dropped"]["datagram_short"].as_u64();
    wait_for("the counter", || short().filter(|count| *count == 1));

    let (code, _, err) = amber(&mediator, &["status", "hokuyo"]);
    assert_eq!(code, 2);
    assert!(
        err.contains("no driver serves hokuyo:0") && err.contains("hint: "),
        "{err}"
    );
}

#[test]
fn control_characters_of_drivers_are_escaped_in_status_and_log() {
    let words = r"\033]0;title\007red\033[31m\rnul\000end";
    let driver = format!("77:3=sh -c 'printf \"{words}\\n\" >&2; exec cat'");
    let mediator = Mediator::start(&[&driver]);
    let escaped = r"\x1b]0;title\x07red\x1b[31m\rnul\x00end";
    let logged = mediator.wait_for_line("title");
    assert!(logged.contains(escaped), "{logged:?}");
    let status = wait_for("the line", || {
        Some(ok(&mediator, &["status", "77:3"])).filter(|status| status.contains("title"))
    });
    assert!(status.contains(escaped), "{status:?}");
    let is_control = |c: char| c.is_control() && c != '\n';
    assert!(!status.contains(is_control), "{status:?}");
}

#[test]
fn ping_call_and_watch() {
    let mediator = Mediator::start(&[DUMMY]);
    let out = ok(&mediator, &["ping", "dummy", "-c", "3", "-i", "0.01"]);
    assert!(out.contains("3 sent, 3 received"), "{out}");
    assert!(ok(&mediator, &["ping", "mediator", "-c", "1"]).contains("1 received"));

    ok(&mediator, &["call", "dummy", "message", "hello"]);
    ok(&mediator, &["call", "dummy", "enable", "true"]);
    let status = json(&mediator, &["call", "dummy", "status"]);
    assert_eq!(
        status,
        serde_json::json!({ "enable": true, "message": "hello" })
    );

    let (code, _, err) = amber(&mediator, &["call", "dummy", "statu"]);
    assert_eq!(code, 2);
    assert!(err.contains("did you mean 'status'?"), "{err}");
    let (code, _, err) = amber(&mediator, &["ping", "hokuyo", "-c", "1"]);
    assert_eq!(code, 1, "{err}");

    let mut watch = Running::start(&mediator, &["watch", "dummy"]);
    assert_eq!(watch.line(), "message: \"Response 1\"");
    assert_eq!(watch.line(), "message: \"Response 2\"");
    watch.interrupt();
    // The command has unsubscribed and disconnected.
    wait_for("its goodbye", || {
        let clients = json(&mediator, &["status"])["clients"].as_u64()?;
        (clients <= 1).then_some(())
    });
}

#[test]
fn watch_resumes_after_a_restart_and_events_show_it() {
    let mediator = Mediator::start(&[DUMMY]);
    mediator.wait_for_state("dummy:0", DriverState::Up);
    let mut events = Running::start(&mediator, &["events", "--json"]);
    let mut watch = Running::start(&mediator, &["watch", "dummy", "--json"]);
    let number = |line: &str| -> u64 {
        let (_, number) = line.split_once("Response ").expect("a response");
        number.split('"').next().unwrap().parse().unwrap()
    };
    let mut last = number(&watch.line());
    // The subscription is active once another event has arrived.
    wait_for("the listener", || {
        let all = json(&mediator, &["status"])["clients"].as_u64()?;
        (all >= 3).then_some(())
    });
    signal(mediator.describe("dummy:0").pid(), Signal::SIGKILL);
    loop {
        let now = number(&watch.line());
        if now <= last {
            break;
        }
        last = now;
    }
    watch.interrupt();
    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.push(events.line());
        seen.retain(|line| line.contains("dummy:0"));
    }
    assert!(
        seen[0].contains("down") && seen[0].contains("SIGKILL"),
        "{seen:?}"
    );
    assert!(seen[1].contains("up"), "{seen:?}");
    events.interrupt();
}

#[test]
fn drivers_are_stopped_and_started_by_name() {
    let mediator = Mediator::start(&[DUMMY]);
    ok(&mediator, &["stop", "dummy"]);
    mediator.wait_for_state("dummy:0", DriverState::Down);
    let (code, _, err) = amber(&mediator, &["call", "dummy", "status"]);
    assert_eq!(code, 1);
    assert!(err.contains("dummy:0"), "{err}");
    ok(&mediator, &["start", "dummy"]);
    let first = mediator.wait_for_state("dummy:0", DriverState::Up).pid();
    ok(&mediator, &["restart", "dummy"]);
    wait_for("another process", || {
        (mediator.describe("dummy:0").pid() != first).then_some(())
    });
    mediator.wait_for_state("dummy:0", DriverState::Up);
    // The mediator was started without a file, so a reload changes nothing.
    let out = ok(&mediator, &["reload"]);
    assert!(out.contains("unchanged: 1, restarted: 0"), "{out}");
    ok(&mediator, &["log-level", "debug"]);
    ok(&mediator, &["log-level", "info,amber_mediator=debug"]);
    // As a regular expression, the last one took seconds and a gigabyte.
    let bomb = format!("a[{{x=(a|b)*a{}}}]=trace", "(a|b)".repeat(20));
    for wrong in ["==", "silly", "a[{x}]=trace", &bomb] {
        let (code, _, err) = amber(&mediator, &["log-level", wrong]);
        assert_ne!(code, 0, "{err}");
        assert!(err.contains("hint: "), "{err}");
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mediator = Mediator::start(&[DUMMY]);
    let mut watch = Running::start(&mediator, &["watch", "dummy"]);
    watch.line();
    watch.close_pipe();
}

#[test]
fn logs_are_json_on_request_and_the_address_stays_on_its_own_line() {
    let mut command = Command::new(AMBER);
    command.args([
        "mediator",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--driver",
        DUMMY,
    ]);
    let mediator = Mediator::run(command);
    let line = mediator.wait_for_line("started");
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["fields"]["driver"], "dummy:0");
    assert_eq!(line["level"], "INFO");
}

#[test]
fn an_address_in_use_is_explained() {
    let mediator = Mediator::start(&[]);
    let port = mediator.address.port().to_string();
    // A running demo may use the default folder.
    let folder = tempfile::tempdir().unwrap();
    let mut demo = Command::new(AMBER);
    demo.args(["demo", "--port", &port]);
    demo.env("AMBER_SIM_DIR", folder.path().join("sim"));
    let (code, _, err) = run(&mut demo);
    assert_eq!(code, 1);
    assert!(
        err.contains(&format!("127.0.0.1:{port} is in use by 'amber' (process ")),
        "{err}"
    );
    assert!(err.contains("hint: ") && err.contains("--port"), "{err}");
}

#[test]
fn an_invalid_entry_of_old_settings_is_skipped_and_the_rest_imported() {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("settings.config");
    let text = "{supervised_driver, roboclaw, {2, 0}, []}.\n\
        {supervised_driver, {driver, {dummy}}, {5, 0}, [{cdriver, \"x\"}, {config_file, \"\"},\n\
        {log_config_file, \"\"}]}.\n";
    std::fs::write(&settings, text).unwrap();
    let (code, out, err) = run(Command::new(AMBER).arg("import").arg(&settings));
    assert_eq!(code, 1, "{err}");
    assert!(out.contains("device = \"dummy:0\""), "{out}");
    assert!(
        err.contains("settings.config: 1:21: expected {driver, {name}}: entry left out"),
        "{err}"
    );
    assert!(
        err.contains("error: 1 entry was left out") && err.contains("hint: "),
        "{err}"
    );
}

#[test]
fn the_built_in_drivers_are_listed_and_completions_are_printed() {
    let (code, out, _) = run(Command::new(AMBER).args(["driver", "--list"]));
    assert_eq!(code, 0);
    assert!(out.starts_with("arm "), "{out}");
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, _) = run(Command::new(AMBER).args(["completions", shell]));
        assert_eq!(code, 0);
        assert!(out.contains("amber complete -- "), "{shell}");
    }
    // In a real shell. Bash splits words at : and =.
    for (line, expected) in [
        ("call roboclaw s", "speeds stop"),
        ("call roboclaw:0 sp", "speeds"),
        ("call maestro set-angle ", "servo-address= angle="),
        ("call maestro:0 set-angle servo-address=3 a", "angle="),
        ("watch ninedof ", "readings"),
        ("describe hok", "hokuyo"),
        ("completions fi", "fish"),
    ] {
        let line = format!("amber {line}");
        let words = line.replace(':', " : ").replace('=', " = ");
        let last = if line.ends_with(' ') { "''" } else { "" };
        let script = format!(
            "PATH={}:$PATH; export AMBER_MEDIATOR=127.0.0.1:1; source <(amber completions bash); COMP_WORDS=({words} {last}); \
             COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _amber amber \"${{COMP_WORDS[COMP_CWORD]}}\" x; echo \"${{COMPREPLY[@]}}\"",
            std::path::Path::new(AMBER).parent().unwrap().display()
        );
        let (code, out, err) = run(Command::new("bash").args(["-c", &script]));
        assert_eq!(code, 0, "{err}");
        assert_eq!(out.trim(), expected, "{line}: {err}");
    }
}

#[test]
fn help_knows_devices_and_their_requests() {
    let help = |args: &[&str]| {
        let (code, out, err) = run(Command::new(AMBER).args(args));
        assert_eq!((code, err.as_str()), (0, ""), "{args:?}");
        out
    };
    let roboclaw = help(&["call", "roboclaw", "--help"]);
    assert!(roboclaw.contains("Four driven wheels"), "{roboclaw}");
    let drive = help(&["call", "roboclaw", "drive", "-h"]);
    assert!(
        drive.contains("front-left-speed   int32, from -10000 to 10000 mm/s"),
        "{drive}"
    );
    let watch = help(&["watch", "hokuyo", "--help"]);
    assert!(
        watch.contains("distances  list of int32, from 0 to 65535 mm"),
        "{watch}"
    );
    let own = help(&["call", "--help"]);
    assert!(
        own.contains("Usage: amber call [OPTIONS] <DEVICE>"),
        "{own}"
    );
    let (code, _, err) = run(Command::new(AMBER).args(["call", "roboclaw", "fly", "--help"]));
    assert_eq!(code, 2);
    assert!(
        err.contains("its requests are: drive, speeds, battery, stop, raw"),
        "{err}"
    );
}

#[test]
fn help_for_an_unknown_device_is_general_and_has_a_hint() {
    let mediator = Mediator::start(&[DUMMY]);
    // It never answers, like a host that is switched off.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let reachable = (mediator.address.to_string(), "has not sent a description");
    let silent = (silent.local_addr().unwrap().to_string(), "does not answer");
    let closed = ("127.0.0.1:1".to_owned(), "does not answer");
    for (address, why) in [reachable, silent, closed] {
        for verb in ["call", "watch"] {
            let args = [verb, "211", "--help", "-m", &address];
            let (code, out, err) = run(Command::new(AMBER).args(args));
            assert_eq!(code, 0, "{args:?}: {err}");
            assert!(out.contains(&format!("Usage: amber {verb} ")), "{out}");
            assert!(err.starts_with("hint: 211:0 is not described: "), "{err}");
            assert!(err.contains(why) && err.contains("--proto"), "{err}");
        }
        let args = ["describe", "211", "-m", &address];
        let (code, out, err) = run(Command::new(AMBER).args(args));
        assert_eq!((code, out.as_str()), (2, ""));
        assert!(
            err.contains("no description of device type 211\nhint: "),
            "{err}"
        );
        assert!(err.contains(why), "{err}");
        let args = ["complete", "--", "-m", &address, "call", "211", ""];
        let (code, out, err) = run(Command::new(AMBER).args(args));
        assert_eq!((code, out.as_str(), err.as_str()), (0, "", ""));
    }
}

#[test]
fn the_description_of_a_device_is_a_proto_file() {
    let (code, out, err) = run(Command::new(AMBER).args(["describe", "maestro", "--as", "proto"]));
    assert_eq!((code, err.as_str()), (0, ""));
    for words in [
        "package amber.maestro_proto;",
        "// Turns one servo.",
        "rpc SetAngle(",
    ] {
        assert!(out.contains(words), "no {words:?} in {out}");
    }
    let (code, _, err) = run(Command::new(AMBER).args(["describe", "--as", "proto"]));
    assert_eq!(code, 2);
    assert!(err.contains("needs a device"), "{err}");
}

#[test]
fn devices_are_described_without_a_mediator() {
    let (code, out, err) = run(Command::new(AMBER).args(["describe", "hokuyo"]));
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("hokuyo or laser (device type 4)"), "{out}");
    let (code, out, _) = run(Command::new(AMBER).args(["describe", "maestro", "--json"]));
    assert_eq!(code, 0);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["methods"][0]["command"], "set-angle");
    let (code, out, err) = run(Command::new(AMBER).args(["describe", "77"]));
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(
        err.contains("no description of device type 77\nhint: "),
        "{err}"
    );
}

#[test]
fn a_description_cannot_command_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string("drivers/examples/thermometer.proto")
        .or_else(|_| fs::read_to_string("../drivers/examples/thermometer.proto"))
        .unwrap();
    // A window title, a cleared screen, an 8-bit control sequence, and text from right to left.
    let hostile = "\x1b]0;owned\x07\x1b[2J\u{9b}31m\u{202e}";
    let text = text.replace(
        "The temperature of",
        &format!("The {hostile} temperature of"),
    );
    let text = text.replace("The same, once", &format!("The {hostile} same, once"));
    let text = text.replace("The name of", &format!("The {hostile} name of"));
    let proto = folder.path().join("hostile.proto");
    fs::write(&proto, text).unwrap();
    let proto = proto.to_str().unwrap();
    for words in [
        &["call", "201:0", "--proto", proto, "--help"][..],
        &["call", "201:0", "--proto", proto],
        &["watch", "201:0", "--proto", proto, "--help"],
        &["describe", "--proto", proto, "201"],
        &["describe", "--proto", proto, "201", "--markdown"],
        &["describe", "--proto", proto, "201", "--as", "proto"],
        &["describe", "--proto", proto, "201", "--json"],
    ] {
        let (_, out, err) = run(Command::new(AMBER).args(words));
        let all = out + &err;
        let is_command = |c: char| c.is_control() && c != '\n' && c != '\t' || c == '\u{202e}';
        assert!(!all.contains(is_command), "{words:?}: {all:?}");
        // What was escaped is there.
        assert!(all.contains("owned"), "{words:?}: {all}");
    }
}
