//! Tests with a service manager: readiness, watchdog, reload, log, and a shutdown in bounded time.

use std::collections::HashMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;

use amber_harness::copy_program;
use amber_proto::mediator::DriverState;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use crate::common::{
    AMBER, Mediator, PATIENCE, device, is_running, lines_of, root, signal, wait_for,
};

/// Receives the notifications for systemd.
struct Manager {
    socket: UnixDatagram,
    folder: TempDir,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, folder }
    }

    fn start(&self, command: &mut Command) {
        command
            .env("NOTIFY_SOCKET", self.folder.path().join("notify"))
            .env("WATCHDOG_USEC", "200000");
    }

    /// The next message.
    fn next(&self) -> HashMap<String, String> {
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).expect("a message");
        let text = std::str::from_utf8(&buffer[..length]).unwrap();
        let lines = text.lines().filter_map(|line| line.split_once('='));
        lines.map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
    }

    /// Waits for a message with this key.
    fn wait_for(&self, key: &str) -> HashMap<String, String> {
        wait_for(key, || Some(self.next()).filter(|m| m.contains_key(key)))
    }
}

fn mediator(arguments: &[&str]) -> Command {
    let mut command = Command::new(AMBER);
    command.args(["mediator", "--listen", "127.0.0.1:0"]);
    command.args(arguments);
    command
}

/// A configuration file in its own folder.
fn configuration(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("amber.toml");
    fs::write(&file, text).unwrap();
    (folder, file)
}

#[test]
fn a_service_manager_is_notified_of_readiness_reload_watchdog_and_end() {
    let manager = Manager::new();
    let (_folder, file) = configuration(
        "[[driver]]\ndevice = '5:0'\n\
         command = ['sh', '-c', 'env | grep -E \"NOTIFY|WATCHDOG|AMBER\" >&2; exec cat']\n",
    );
    let mut command = mediator(&["-c", file.to_str().unwrap()]);
    manager.start(&mut command);
    let mut mediator = Mediator::run(command);

    manager.wait_for("READY");
    mediator.wait_for_state("5:0", DriverState::Up);
    wait_for("the state of the drivers", || {
        let message = manager.next();
        assert_eq!(message["WATCHDOG"], "1");
        message["STATUS"]
            .starts_with("drivers up: 1 of 1")
            .then_some(())
    });
    signal(mediator.pid(), Signal::SIGHUP);
    let reloading = manager.wait_for("RELOADING");
    assert!(!reloading.contains_key("READY"));
    assert!(reloading["MONOTONIC_USEC"].parse::<u64>().unwrap() > 0);
    manager.wait_for("READY");

    signal(mediator.pid(), Signal::SIGTERM);
    let stopping = manager.wait_for("STOPPING");
    // Twice the grace time plus three seconds, as documented.
    assert_eq!(stopping["EXTEND_TIMEOUT_USEC"], "5000000");
    assert!(mediator.wait().success());

    let output = mediator.output();
    assert!(
        output
            .iter()
            .any(|line| line.contains("AMBER_DEVICE=dummy:0"))
    );
    for ours in ["NOTIFY_SOCKET", "WATCHDOG_USEC"] {
        let seen = output.iter().any(|line| line.contains(ours));
        assert!(!seen, "a driver sees {ours}");
    }
}

#[test]
fn a_mediator_that_hangs_feeds_no_watchdog() {
    let manager = Manager::new();
    let mut command = mediator(&[]);
    manager.start(&mut command);
    let mediator = Mediator::run(command);
    manager.wait_for("WATCHDOG");
    signal(mediator.pid(), Signal::SIGSTOP);
    // Messages in transit, and then no more.
    manager
        .socket
        .set_read_timeout(Some(2 * PATIENCE / 30))
        .unwrap();
    wait_for("silence", || {
        manager.socket.recv(&mut [0; 4096]).is_err().then_some(())
    });
    signal(mediator.pid(), Signal::SIGCONT);
    manager.socket.set_read_timeout(Some(PATIENCE)).unwrap();
    manager.wait_for("WATCHDOG");
}

/// A file whose opening is delayed by a lease, until this is dropped.
struct Slow {
    process: Child,
    says: Receiver<String>,
}

impl Slow {
    fn new(file: &Path) -> Self {
        // 1024 is F_SETLEASE. Perl handles a signal between two operations, so no read may block:
        // a signal just before it would wait for its end.
        let script = "$SIG{IO} = sub { syswrite STDOUT, \"wanted\\n\" };
             open F, '+<', $ARGV[0] or die; fcntl F, 1024, F_WRLCK or die;
             syswrite STDOUT, \"held\\n\"; my $in = ''; vec($in, 0, 1) = 1;
             while (!select(my $ready = $in, undef, undef, 0.05) || sysread STDIN, my $byte, 1) {}";
        let mut process = Command::new("perl")
            .args(["-MFcntl", "-e", script])
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let says = lines_of(process.stdout.take().unwrap());
        let slow = Self { process, says };
        slow.wait_for("held");
        slow
    }

    /// Waits until a process opens the file.
    fn wait_for_reader(&self) {
        self.wait_for("wanted");
    }

    #[track_caller]
    fn wait_for(&self, line: &str) {
        assert_eq!(self.says.recv_timeout(PATIENCE).unwrap(), line);
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn a_slow_configuration_file_blocks_nothing() {
    let (_folder, file) = configuration("[[driver]]\ndevice = '5:0'\ncommand = ['cat']\n");
    let mut mediator = Mediator::run(mediator(&["-c", file.to_str().unwrap()]));
    mediator.peer().wait_for_echo(device("5:0"), b"before");
    let slow = Slow::new(&file);
    signal(mediator.pid(), Signal::SIGHUP);
    slow.wait_for_reader();
    mediator.peer().wait_for_echo(device("5:0"), b"meanwhile");
    drop(slow);
    mediator.wait_for_line("drivers unchanged: 1");

    // It does not delay the shutdown either.
    let slow = Slow::new(&file);
    signal(mediator.pid(), Signal::SIGHUP);
    slow.wait_for_reader();
    signal(mediator.pid(), Signal::SIGTERM);
    assert!(mediator.wait().success());
}

#[test]
fn a_reload_requested_during_another_follows_it() {
    let (_folder, file) = configuration("[[driver]]\ndevice = '5:0'\ncommand = ['cat']\n");
    let manager = Manager::new();
    let mut command = mediator(&["-c", file.to_str().unwrap()]);
    manager.start(&mut command);
    let mediator = Mediator::run(command);
    manager.wait_for("READY");
    let drivers = |device| {
        let driver = |device| format!("[[driver]]\ndevice = '{device}'\ncommand = ['cat']\n");
        driver("5:0") + &driver(device)
    };
    fs::write(&file, drivers("77:1")).unwrap();
    let first = Slow::new(&file);
    signal(mediator.pid(), Signal::SIGHUP);
    first.wait_for_reader();
    let reloading = manager.wait_for("RELOADING");
    signal(mediator.pid(), Signal::SIGHUP);
    // The mediator has seen that signal when it answers.
    mediator.peer().wait_for_echo(device("5:0"), b"meanwhile");
    // The next reload finds another file.
    fs::remove_file(&file).unwrap();
    fs::write(&file, drivers("77:2")).unwrap();
    drop(first);
    let peer = mediator.peer();
    peer.wait_for_echo(device("77:2"), b"the second one");
    mediator.wait_for_line("drivers unchanged: 1, restarted: 0, added: 1, removed: 0");
    mediator.wait_for_line("drivers unchanged: 1, restarted: 0, added: 1, removed: 1");
    let again = wait_for("the second one", || {
        let message = manager.wait_for("MONOTONIC_USEC");
        (message["MONOTONIC_USEC"] != reloading["MONOTONIC_USEC"]).then_some(message)
    });
    assert!(!again.contains_key("READY"));
    manager.wait_for("READY");
}

#[test]
fn a_pipe_as_configuration_is_refused_and_later_files_are_read() {
    let (_folder, file) = configuration("[[driver]]\ndevice = '5:0'\ncommand = ['cat']\n");
    let mediator = Mediator::run(mediator(&["-c", file.to_str().unwrap()]));
    let text = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    mkfifo(&file, Mode::S_IRWXU).unwrap();
    signal(mediator.pid(), Signal::SIGHUP);
    mediator.wait_for_line("it is a pipe, not a regular file");
    fs::remove_file(&file).unwrap();
    fs::write(&file, text).unwrap();
    signal(mediator.pid(), Signal::SIGHUP);
    mediator.wait_for_line("drivers unchanged: 1");
}

#[test]
fn lines_for_the_journal_start_with_their_priority() {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec \"$@\"",
        "sh",
        AMBER,
        "mediator",
        "--listen",
        "127.0.0.1:0",
        "--driver",
        "5:0=no-such-program",
    ]);
    let mediator = Mediator::run(command);
    let warning = mediator.wait_for_line("program no-such-program does not exist");
    assert!(warning.starts_with("<4> WARN "), "{warning}");
}

#[test]
fn the_log_is_json_on_request() {
    let driver = ["--driver", "5:0=no-such-program", "--log-format", "json"];
    let mediator = Mediator::run(mediator(&driver));
    let line = mediator.wait_for_line("program no-such-program does not exist");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["level"], "WARN");
    assert_eq!(line["fields"]["driver"], "dummy:0");
}

/// Ignores the end of stdin and SIGTERM, and has such children.
const STUBBORN: &str = "trap \"\" TERM; (while :; do sleep 1000; done) & while :; do sleep 1; done";

fn stubborn(grace_ms: u32) -> (Mediator, u32, TempDir) {
    let text = format!(
        "[[driver]]\ndevice = '80:0'\ncommand = ['sh', '-c', '{STUBBORN}']\n\
         grace_ms = {grace_ms}\n"
    );
    let (folder, file) = configuration(&text);
    let mediator = Mediator::run(mediator(&["-c", file.to_str().unwrap()]));
    let pid = mediator.wait_for_state("80:0", DriverState::Up).pid();
    (mediator, pid, folder)
}

#[test]
fn a_driver_that_ignores_everything_does_not_delay_the_shutdown() {
    let (mut mediator, pid, _folder) = stubborn(100);
    signal(mediator.pid(), Signal::SIGTERM);
    assert!(mediator.wait().success());
    assert!(!is_running(pid));
}

#[test]
fn a_second_signal_shortens_the_shutdown() {
    // Without intervention the shutdown would take longer than this test waits.
    let (mut mediator, pid, _folder) = stubborn(10 * PATIENCE.as_millis() as u32);
    signal(mediator.pid(), Signal::SIGTERM);
    mediator.wait_for_line("a second signal exits immediately");
    signal(mediator.pid(), Signal::SIGTERM);
    assert_eq!(mediator.wait().code(), Some(1));
    wait_for("the guard to end the driver", || {
        (!is_running(pid)).then_some(())
    });
}

/// The value of a key in the unit.
fn of_the_unit(key: &str) -> String {
    let unit = fs::read_to_string(root().join("scripts/systemd/amber.service")).unwrap();
    let line = unit
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    line.expect(key).to_owned()
}

#[test]
fn systemd_accepts_the_unit() {
    let unit = fs::read_to_string(root().join("scripts/systemd/amber.service")).unwrap();
    // The program and the user of the unit do not exist here.
    let unit = unit.replace("/usr/local/bin/amber", AMBER);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("amber.service");
    fs::write(&file, unit).unwrap();
    let verify = Command::new("systemd-analyze")
        .arg("verify")
        .arg(&file)
        .output();
    let Ok(verify) = verify else {
        eprintln!("SKIP systemd_accepts_the_unit: systemd-analyze is missing");
        return;
    };
    let text = String::from_utf8_lossy(&verify.stderr);
    let about_it: Vec<_> = text.lines().filter(|line| line.contains("amber")).collect();
    assert!(about_it.is_empty(), "{about_it:#?}");
}

#[test]
fn systemd_stops_it_cleanly() {
    let mut mediator = Mediator::start(&["80:0=sh -c 'cat; echo bye >&2'"]);
    mediator.wait_for_state("80:0", DriverState::Up);
    // systemd turns two dollar signs into one.
    let stop = shell_words::split(&of_the_unit("ExecStop").replace("$$", "$")).unwrap();
    let mut stop = Command::new(&stop[0])
        .args(&stop[1..])
        .env("MAINPID", mediator.pid().to_string())
        .spawn()
        .unwrap();
    assert!(mediator.wait().success());
    assert!(stop.wait().unwrap().success());
    // The driver had time to end by itself.
    mediator.wait_for_line("bye");
}

#[test]
fn no_privileges_are_needed() {
    const NOBODY: u32 = 65534;
    // If another user runs the tests, they have already shown this.
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let amber = folder.path().join("amber");
    copy_program(AMBER.as_ref(), &amber).unwrap();
    let mut command = Command::new(amber);
    command
        .args(["mediator", "--listen", "127.0.0.1:0", "--driver", "5:0=cat"])
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY);
    let mut mediator = Mediator::run(command);
    mediator.peer().wait_for_echo(device("5:0"), b"x");
    signal(mediator.pid(), Signal::SIGTERM);
    assert!(mediator.wait().success());
}
