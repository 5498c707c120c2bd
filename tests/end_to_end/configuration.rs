//! Tests of the configuration file: read, shown and reloaded; errors are explained.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use amber_proto::mediator::{DriverState, reply};
use nix::sys::signal::Signal;

use crate::common::{AMBER, Mediator, device, signal, wait_for};

struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    fn with(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let this = Self { folder };
        this.write(text);
        this
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("amber.toml")
    }

    fn write(&self, text: &str) {
        fs::write(self.file(), text).unwrap();
    }

    fn start(&self) -> Mediator {
        let mut command = Command::new(AMBER);
        command.arg("mediator").arg("-c").arg(self.file());
        Mediator::run(command)
    }
}

const LISTEN: &str = "[mediator]\nlisten = ['127.0.0.1:0']\n";

fn driver(device: &str, command: &str) -> String {
    format!("[[driver]]\ndevice = '{device}'\ncommand = [{command}]\n")
}

#[test]
fn a_reload_leaves_unchanged_drivers_alone() {
    let same = driver("5:0", "'cat'");
    let before = driver("77:3", "'cat'") + &driver("78:0", "'cat'");
    let folder = Folder::with(&format!("{LISTEN}{same}{before}"));
    let mediator = folder.start();
    let kept = mediator.wait_for_state("5:0", DriverState::Up).pid();
    let changed = mediator.wait_for_state("77:3", DriverState::Up).pid();
    let removed = mediator.wait_for_state("78:0", DriverState::Up).pid();

    let after = driver("77:3", "'cat', '-u'") + &driver("79:0", "'cat'");
    folder.write(&format!("{LISTEN}{same}{after}"));
    signal(mediator.pid(), Signal::SIGHUP);
    mediator.wait_for_line("drivers unchanged: 1, restarted: 1, added: 1, removed: 1");
    wait_for("the restart", || {
        (mediator.describe("77:3").pid() != changed).then_some(())
    });
    mediator.wait_for_state("79:0", DriverState::Up);
    assert_eq!(mediator.describe("5:0").pid(), kept);
    wait_for("the removal", || {
        (!crate::common::is_running(removed)).then_some(())
    });

    // An invalid file changes nothing.
    folder.write("[[driver]]\ndevise = '5:0'\n");
    let reply::What::Refused(refusal) = mediator.reload() else {
        panic!("refused")
    };
    assert!(
        refusal
            .message
            .contains("amber.toml:2:1: unknown field `devise`")
    );
    assert_eq!(refusal.hint(), "did you mean `device`?");
    assert_eq!(mediator.describe("5:0").pid(), kept);
}

#[test]
fn a_reload_of_an_emptied_file_keeps_the_drivers() {
    let folder = Folder::with(&format!("{LISTEN}{}", driver("5:0", "'cat'")));
    let mediator = folder.start();
    let kept = mediator.wait_for_state("5:0", DriverState::Up).pid();
    for text in ["", LISTEN] {
        folder.write(text);
        let reply::What::Refused(refusal) = mediator.reload() else {
            panic!("refused")
        };
        assert!(refusal.message.contains("no drivers"), "{refusal:?}");
        assert!(refusal.hint().contains("`driver = []`"), "{refusal:?}");
        assert_eq!(mediator.describe("5:0").pid(), kept);
    }
    folder.write(&format!("driver = []\n{LISTEN}"));
    let reply::What::Done(_) = mediator.reload() else {
        panic!("a file that says so removes all drivers")
    };
    wait_for("the removal", || {
        (!crate::common::is_running(kept)).then_some(())
    });
}

#[test]
fn paths_are_relative_to_the_file() {
    let folder = Folder::with(&(LISTEN.to_owned() + &driver("5:0", "'./bin/echo.sh', 'data'")));
    fs::create_dir(folder.folder.path().join("bin")).unwrap();
    fs::write(folder.folder.path().join("data"), "").unwrap();
    let script = folder.folder.path().join("bin/echo.sh");
    fs::write(&script, "#!/bin/sh\ntest -f \"$1\" && exec cat\n").unwrap();
    executable(&script);
    folder.start().peer().wait_for_echo(device("5:0"), b"x");

    // Also if the path of the file is relative.
    let name = folder.folder.path().file_name().unwrap();
    let mut command = Command::new(AMBER);
    command
        .current_dir(folder.folder.path().parent().unwrap())
        .args(["mediator", "-c"])
        .arg(Path::new(name).join("amber.toml"));
    let mediator = Mediator::run(command);
    mediator.peer().wait_for_echo(device("5:0"), b"x");
}

#[test]
fn the_environment_of_a_driver_is_set() {
    let text = LISTEN.to_owned()
        + "[[driver]]\ndevice = '5:0'\ncommand = ['sh', '-c', 'echo setting=$MY_SETTING >&2; cat']\n\
           env = { MY_SETTING = 'one two' }\n";
    Folder::with(&text).start().wait_for_line("setting=one two");
}

#[test]
fn the_effective_configuration_can_be_shown_and_read_again() {
    let folder = Folder::with(&driver("hokuyo:0", "'amber', 'driver', 'hokuyo'"));
    let shown = print_config(&[
        "-c",
        folder.file().to_str().unwrap(),
        "--driver",
        "77:3=cat",
    ]);
    assert!(shown.status.success());
    let shown = String::from_utf8(shown.stdout).unwrap();
    for part in [
        "listen = [\"0.0.0.0:26233\", \"[::]:26233\"]",
        "\"hokuyo:0\"",
        "\"77:3\"",
    ] {
        assert!(shown.contains(part), "{part} is not in:\n{shown}");
    }
    folder.write(&shown);
    let again = print_config(&["-c", folder.file().to_str().unwrap()]);
    let again = String::from_utf8(again.stdout).unwrap();
    let without_directory = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("directory"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(without_directory(&again), without_directory(&shown));
}

#[test]
fn invalid_configurations_end_with_an_error_a_hint_and_code_2() {
    let folder = Folder::with("[[driver]]\ndevise = '5:0'\n");
    let output = print_config(&["-c", folder.file().to_str().unwrap()]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.starts_with("error: "), "{text}");
    assert!(
        text.contains("amber.toml:2:1: unknown field `devise`"),
        "{text}"
    );
    assert!(text.contains("\nhint: did you mean `device`?"), "{text}");

    let output = print_config(&["-c", "/no/such/file.toml"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("cannot read /no/such/file.toml"), "{text}");
}

fn print_config(args: &[&str]) -> Output {
    Command::new(AMBER)
        .args(["mediator", "--print-config"])
        .args(args)
        .output()
        .unwrap()
}

fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn requests_are_answered_while_many_drivers_are_started() {
    const MANY: u64 = 150;
    let folder = Folder::with(&format!("{LISTEN}{}", driver("5:0", "'cat'")));
    let mediator = folder.start();
    mediator.wait_for_state("5:0", DriverState::Up);
    let many: String = (0..MANY)
        .map(|id| driver(&format!("90:{id}"), "'cat'"))
        .collect();
    folder.write(&format!("{LISTEN}{}{many}", driver("5:0", "'cat'")));
    signal(mediator.pid(), Signal::SIGHUP);
    let mut meanwhile = 0;
    wait_for("all of them", || {
        mediator.peer().wait_for_echo(device("5:0"), b"meanwhile");
        let started = mediator.counted("driver_starts");
        meanwhile += u64::from((2..=MANY).contains(&started));
        (started == 1 + MANY).then_some(())
    });
    // None would be answered if all drivers were started in one turn.
    assert!(meanwhile > 3, "{meanwhile}");
    mediator.wait_for_state(&format!("90:{}", MANY - 1), DriverState::Up);
}

#[test]
fn drivers_that_are_removed_before_their_start_are_not_started() {
    let folder = Folder::with(LISTEN);
    let mediator = folder.start();
    let many: String = (0..100)
        .map(|id| driver(&format!("90:{id}"), "'cat'"))
        .collect();
    folder.write(&format!("{LISTEN}{many}"));
    mediator.reload();
    // Most of them are still waiting.
    folder.write(LISTEN);
    let reply::What::Done(_) = mediator.reload() else {
        panic!("the second reload failed");
    };
    wait_for("no driver", || {
        let drivers = mediator.statistics().drivers;
        (drivers == Some(0)).then_some(())
    });
}
