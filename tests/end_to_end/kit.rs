//! Tests of the tools for authors of drivers and clients, as commands.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use amber_sim::robot::Device;
use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{AMBER, Mediator, signal, wait_for};

#[track_caller]
fn run(command: &mut Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn amber(args: &[&str]) -> (i32, String, String) {
    run(Command::new(AMBER).args(args).env_remove("AMBER_MEDIATOR"))
}

/// A timeout longer than any reply takes, even on a busy machine.
const PATIENCE: [&str; 2] = ["--timeout", "30"];

#[test]
fn the_built_in_drivers_follow_the_protocol() {
    let sim = Sim::start();
    let mut checks = vec![("dummy", vec![], 0), ("robot", vec![], 0)];
    for device in Device::built_in() {
        // From `amber driver NAME` on.
        let options = |place: &str| device.driver(place).split_off(3);
        checks.push((device.name(), options(&sim.port(device.name())), 0));
        let mut nowhere = options("/nowhere/port");
        // The port, without the files beside it.
        nowhere.truncate(2);
        // Without its device, a driver cannot answer requests; this one has none with an answer.
        let notes = u32::from(device != amber_sim::maestro::DEVICE);
        checks.push((device.name(), nowhere, notes));
    }
    // Each check mostly waits for messages that must not arrive.
    thread::scope(|scope| {
        for (kind, options, notes) in &checks {
            scope.spawn(|| built_in_driver_keeps_the_protocol(kind, options, *notes));
        }
    });
}

fn built_in_driver_keeps_the_protocol(kind: &str, options: &[String], notes: u32) {
    let mut check = Command::new(AMBER);
    check.args(["check", "--json", "--as", kind]);
    match notes {
        0 => check.args(PATIENCE),
        // Checks without a device wait for a timeout.
        _ => check.args(["--timeout", "10"]),
    };
    check.args(["--", "amber", "driver", kind]).args(options);
    let (code, out, err) = run(&mut check);
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(code, 0, "{kind}: {out} {err}");
    assert_eq!(report["notes"], notes, "{kind}: {out}");
}

/// A driver keeps the protocol with its device and without it. `notes` is the number of checks that
/// are not possible without it. `driver` adds the driver and its options, with one of the `places` of
/// the device, of which nothing is at the second.
pub fn with_and_without(
    kind: &str,
    notes: u32,
    places: [&str; 2],
    driver: impl Fn(&mut Command, &str) + Sync,
) {
    let driver = &driver;
    // Each check mostly waits for messages that must not arrive.
    thread::scope(|scope| {
        for (place, notes) in places.into_iter().zip([0, notes]) {
            scope.spawn(move || {
                let mut check = Command::new(AMBER);
                check.args(["check", "--json", "--as", kind, "--timeout", "10", "--"]);
                driver(check.args(["amber", "driver"]), place);
                let (code, out, err) = run(&mut check);
                let report: Value = serde_json::from_str(&out).expect(&err);
                assert_eq!(code, 0, "{kind} at {place}: {out} {err}");
                assert_eq!(report["notes"], notes, "{kind} at {place}: {out}");
            });
        }
    });
}

/// `amber sim` in its own folder.
struct Sim {
    child: Child,
    folder: TempDir,
}

impl Sim {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(AMBER);
        command
            .args(["sim", "--dir"])
            .arg(folder.path().join("sim"));
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let sim = Self { child, folder };
        wait_for("the simulated devices", || {
            let there = |device: Device| Path::new(&sim.port(device.name())).exists();
            Device::built_in().all(there).then_some(())
        });
        sim
    }

    fn port(&self, device: &str) -> String {
        let path = self.folder.path().join("sim").join(device);
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        signal(self.child.id(), Signal::SIGTERM);
        self.child.wait().unwrap();
    }
}

#[test]
fn a_failed_check_is_explained_and_counted() {
    let (code, out, err) = amber(&["check", "--only", "ping", "--", "cat"]);
    assert_eq!(code, 1);
    for words in ["FAIL  ping ", "the answer is a PING", "fix  ", "1 FAILED"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert_eq!(err, "error: 1 check failed\n");
    let (code, _, err) = amber(&["check", "--only", "pings", "--", "cat"]);
    assert_eq!(code, 2);
    assert!(err.contains("did you mean 'ping'?"), "{err}");
    let (code, _, err) = amber(&["check", "--", "no such driver"]);
    assert_eq!(code, 2);
    assert!(err.contains("separate the arguments"), "{err}");
    for verb in ["check", "check-client"] {
        let (code, out, _) = amber(&[verb, "--list"]);
        assert_eq!(code, 0);
        assert!(out.lines().count() > 10, "{out}");
    }
}

#[test]
fn our_own_clients_pass_every_client_check() {
    let mut check = vec!["check-client", "--strict", "--timeout", "60", "--json"];
    check.extend(["--", "amber", "call", "dummy", "status", "--timeout", "3"]);
    let (code, out, err) = amber(&check);
    assert_eq!(code, 0, "{out} {err}");
}

#[test]
fn bytes_and_their_errors_are_explained() {
    let (code, out, _) = amber(&["decode", "0004", "0805", "1000", "0002", "1002"]);
    assert_eq!(code, 0);
    assert!(
        out.ends_with("     8  10 02                         type = PING\n"),
        "{out}"
    );
    let (code, _, err) = amber(&["decode", "0400", "0805", "1000"]);
    assert_eq!(code, 1);
    assert!(
        err.starts_with("error: byte 0: the header should have 1024 bytes"),
        "{err}"
    );

    let folder = tempfile::tempdir().unwrap();
    let proto = folder.path().join("my_device.proto");
    let schema = "syntax = \"proto2\";\nimport \"drivermsg.proto\";\n\
                  extend amber.DriverMsg { optional string greeting = 110; }\n";
    fs::write(&proto, schema).unwrap();
    let proto = proto.to_str().unwrap();
    let decode = [
        "decode",
        "--json",
        "--message",
        "--proto",
        proto,
        "1001f206026869",
    ];
    let (_, out, err) = amber(&decode);
    assert!(out.contains("\"greeting\":\"hi\""), "{out} {err}");
    fs::write(proto, "syntax = \"proto2\";\nextend what").unwrap();
    let (code, _, err) = amber(&decode);
    assert_eq!(code, 2);
    assert!(
        err.contains("my_device.proto") && err.contains("hint: "),
        "{err}"
    );
}

#[test]
fn a_user_defined_device_is_called_by_its_fields() {
    let mediator = Mediator::start(&["dummy:0=amber driver dummy"]);
    mediator.wait_for_line("up driver=dummy:0");
    let call = |args: &[&str]| run(&mut mediator.amber(&[&["call", "dummy"], args].concat()));
    let (code, out, _) = call(&["get_status=true", "--timeout", "20"]);
    assert_eq!(
        (code, out.as_str()),
        (0, "enable: false  message: \"Message\"\n")
    );
    let (code, _, err) = call(&["message=hi", "--no-answer"]);
    assert_eq!(code, 0, "{err}");
    let (_, out, _) = call(&["status"]);
    assert!(out.contains("hi"), "{out}");
    let (code, _, err) = call(&["message=hi", "--timeout", "0.05"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("no answer from dummy:0 within") && err.contains("--no-answer"),
        "{err}"
    );
    let (code, _, err) = call(&["raw", "ff"]);
    assert_eq!(code, 2);
    assert!(err.contains("not a DriverMsg"), "{err}");
    let (code, out, _) = call(&[]);
    assert_eq!(code, 0);
    let list = "REQUEST            WHAT IT DOES\n\
                status             The flag and the text\n\
                enable true|false  Sets the flag\n";
    assert!(out.starts_with(list), "{out}");
}

#[test]
fn frames_of_a_driver_are_shown_live() {
    let mediator = Mediator::start(&["dummy:0=amber driver dummy"]);
    mediator.wait_for_line("up driver=dummy:0");
    let trace = mediator
        .amber(&["trace", "dummy", "-n", "6", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Until it has recorded enough frames.
    let ask = AtomicBool::new(true);
    let output = thread::scope(|scope| {
        scope.spawn(|| {
            while ask.load(Ordering::Relaxed) {
                run(&mut mediator.amber(&["call", "dummy", "status"]));
            }
        });
        let output = trace.wait_with_output().unwrap();
        ask.store(false, Ordering::Relaxed);
        output
    });
    assert!(output.status.success());
    let lines = String::from_utf8(output.stdout).unwrap();
    let frames: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(frames.len(), 6);
    let has = |direction: &str, field: &str| {
        frames
            .iter()
            .any(|frame| frame["direction"] == direction && !frame["message"][field].is_null())
    };
    assert!(
        has("to-driver", "get_status") && has("from-driver", "enable"),
        "{lines}"
    );
}

#[test]
fn settings_of_the_original_become_a_configuration_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("driver.sh");
    fs::write(
        &script,
        "#!/bin/sh\necho \"got [$1] [$2] $#\" >&2\nexec cat\n",
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let settings = folder.path().join("settings.config");
    let text = "% drivers\n{supervised_node, {udpserver, {udpserver}}, []}.\n\
                {supervised_driver, {driver, {echo}}, {77, 3},\n [{cdriver, \"driver.sh\"}, \
                {config_file, \"a b.conf\"}, {log_config_file, \"\"}, {colour, red}]}.\n";
    fs::write(&settings, text).unwrap();
    let (code, toml, err) = amber(&["import", settings.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("line 4: option 'colour'"), "{err}");
    let file = folder.path().join("amber.toml");
    fs::write(&file, toml).unwrap();
    let mut command = Command::new(AMBER);
    command
        .args(["mediator", "--listen", "127.0.0.1:0", "-c"])
        .arg(&file);
    let mediator = Mediator::run(command);
    mediator.wait_for_line("got [a b.conf] [] 2");

    fs::write(&settings, "{supervised_driver, x}.").unwrap();
    let (code, _, err) = amber(&["import", settings.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(
        err.contains("settings.config: 1:1: a supervised_driver has"),
        "{err}"
    );
}

#[test]
fn endless_input_is_an_error_and_needs_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let zeros = folder.path().join("zeros");
    let file = fs::File::create(&zeros).unwrap();
    file.set_len(100 * 1024 * 1024).unwrap();
    let zeros = zeros.to_str().unwrap();
    for (args, code, words) in [
        (
            &["check", "--only", "ping", "--", "cat", "/dev/zero"][..],
            1,
            "1 FAILED",
        ),
        (&["decode", zeros], 2, "is longer than 32 MiB"),
        (&["decode", "/dev/zero"], 2, "is longer than 32 MiB"),
        (
            &["decode", "--proto", "/dev/zero", "00"],
            2,
            "not a regular file",
        ),
        (&["sim", "--map", "/dev/zero"], 2, "not a regular file"),
    ] {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v 1000000; exec \"$0\" \"$@\"", AMBER]);
        let output = command.args(args).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(words), "{args:?}: {text}");
    }
}
