//! The network changes while clients run: they go on soon after it is back.

use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, lines_of, root, wait_for};
use crate::network::{Killed, LAPTOP, Network, ROBOT};
use crate::python_package::{SOURCE, can_run};

/// The name of the robot on the laptop.
const NAME: &str = "robot.test";
/// Data comes again within this time after the network is back.
const GAP: Duration = Duration::from_secs(2);

/// Listens to the dummy, and drives it ten times per second.
const PYTHON: &str = r#"
import sys, threading, time
import amber

robot = amber.Client(sys.argv[1])

def command():
    while True:
        try:
            robot.dummy().enable(True)
        except amber.Unreachable:
            print("not sent", flush=True)
        time.sleep(0.1)

threading.Thread(target=command, daemon=True).start()
for text in robot.dummy().messages():
    print("data", flush=True)
"#;

/// A client on the laptop that prints what it receives.
struct Listener {
    name: &'static str,
    /// The text that shows that data has come.
    data: &'static str,
    lines: Receiver<String>,
    _process: Killed,
}

impl Listener {
    fn start(name: &'static str, data: &'static str, mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout: ChildStdout = child.stdout.take().unwrap();
        Self {
            name,
            data,
            lines: lines_of(stdout),
            _process: Killed(child),
        }
    }

    /// Waits for a line with this text that is printed from now on.
    fn next(&self, text: &str) -> Duration {
        while self.lines.try_recv().is_ok() {}
        let began = Instant::now();
        loop {
            let rest = PATIENCE.saturating_sub(began.elapsed());
            let line = self.lines.recv_timeout(rest);
            let line = line.unwrap_or_else(|_| panic!("no {text:?} from {}", self.name));
            if line.contains(text) {
                return began.elapsed();
            }
        }
    }
}

/// A robot with a dummy that publishes 20 times per second.
fn start_robot(network: &Network) -> Killed {
    let dummy = format!(
        "dummy:0={} driver dummy --period-ms 50",
        crate::common::AMBER
    );
    let words = ["mediator", "--listen", "0.0.0.0:26233", "--driver", &dummy];
    let mut command = Network::on(&network.robot, &words);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let robot = Killed(command.spawn().unwrap());
    wait_for("the robot", || {
        let words = ["-m", ROBOT, "ping", "dummy", "-c", "1"];
        let asked = Network::on(&network.laptop, &words).output().unwrap();
        asked.status.success().then_some(())
    });
    robot
}

/// The example client in C, which asks once per second.
fn example_in_c(folder: &Path) -> Option<PathBuf> {
    let source = root().join("drivers/examples/c");
    let program = folder.join("client");
    let files = ["client.c", "connection.c", "amber.c"].map(|name| source.join(name));
    let built = Command::new("cc")
        .args(["-std=c11", "-D_DEFAULT_SOURCE", "-o"])
        .arg(&program)
        .args(files)
        .status();
    match built {
        Ok(status) => {
            assert!(status.success(), "the example in C does not compile");
            Some(program)
        }
        Err(_) => {
            eprintln!("SKIP the network changes in C: needs cc");
            None
        }
    }
}

fn listeners(network: &Network, folder: &Path) -> Vec<Listener> {
    let amber = |words: &[&str]| {
        let mut command = Network::on(&network.laptop, &["-m", NAME]);
        command.args(words).stderr(Stdio::null());
        command
    };
    let mut found = vec![
        Listener::start("watch", "", amber(&["watch", "dummy"])),
        Listener::start(
            "ping",
            "ms",
            amber(&["ping", "dummy", "-i", "0.1", "-c", "1000000"]),
        ),
    ];
    if let Some(program) = example_in_c(folder) {
        let mut client = Network::program_on(&network.laptop, program.to_str().unwrap());
        client.args([NAME, "26233", "1000000"]);
        client.stderr(Stdio::null());
        found.push(Listener::start("C", "the dummy says", client));
    }
    if can_run("the network changes in Python", "google.protobuf") {
        let mut python = Network::program_on(&network.laptop, "python3");
        python.args(["-c", PYTHON, NAME]);
        python.env("PYTHONPATH", root().join(SOURCE));
        found.push(Listener::start("Python", "data", python));
    }
    found
}

/// Waits until data has come to all, and checks that it does within this time from now on.
fn all_go_on(listeners: &mut [Listener], what: &str, within: Option<Duration>) {
    thread::scope(|scope| {
        for listener in listeners {
            scope.spawn(move || {
                let gap = listener.next(listener.data);
                eprintln!("{what}: {} after {gap:?}", listener.name);
                // The example in C is not told of changes: it asks once per second, and waits a
                // second for each of two answers.
                let own = if listener.name == "C" {
                    GAP
                } else {
                    Duration::ZERO
                };
                if let Some(within) = within {
                    assert!(
                        gap < within + own,
                        "{what}: {} after {gap:?}",
                        listener.name
                    );
                }
            });
        }
    });
}

#[test]
fn clients_go_on_when_the_network_changes() {
    let Some(network) = Network::new("roaming") else {
        eprintln!("SKIP clients in a network that changes: needs root and the program ip");
        return;
    };
    network.name(NAME, ROBOT);
    let _robot = start_robot(&network);
    let folder = tempfile::tempdir().unwrap();
    let mut listeners = listeners(&network, folder.path());
    all_go_on(&mut listeners, "at first", None);

    // Another Wi-Fi.
    network.laptop(&format!("addr del {LAPTOP}/24 dev l0"));
    if let Some(python) = listeners.iter().find(|it| it.name == "Python") {
        // A command that cannot be sent is an error to its caller.
        python.next("not sent");
    }
    network.laptop("addr add 10.77.0.3/24 dev l0");
    all_go_on(&mut listeners, "another address", Some(GAP));

    // DHCP: the old address is gone when the new one comes.
    network.laptop("addr del 10.77.0.3/24 dev l0");
    network.laptop("addr add 10.77.0.4/24 dev l0");
    all_go_on(&mut listeners, "an address in place of another", Some(GAP));

    // The cable is out on the other side: no error shows that.
    network.robot("link set r0 down");
    thread::sleep(Duration::from_secs(6));
    network.robot("link set r0 up");
    network.wait_for_link();
    all_go_on(&mut listeners, "a silent network", Some(GAP));

    // The robot gets another address.
    network.robot(&format!("addr del {ROBOT}/24 dev r0"));
    network.robot("addr add 10.77.0.9/24 dev r0");
    network.name(NAME, "10.77.0.9");
    all_go_on(&mut listeners, "another address of the robot", None);
}

#[test]
fn a_network_that_loses_long_datagrams_is_named_and_lists_still_work() {
    let Some(network) = Network::new("long") else {
        eprintln!("SKIP a network that loses long datagrams: needs root and the program ip");
        return;
    };
    let _robot = start_robot(&network);
    let run = |words: &[&str]| {
        let mut command = Network::on(&network.laptop, &["-m", ROBOT]);
        command.args(words).output().unwrap()
    };
    let said = |words: &[&str]| {
        let done = run(words);
        assert!(done.status.success(), "{words:?}: {done:?}");
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let doctor = || String::from_utf8_lossy(&run(&["doctor"]).stdout).into_owned();
    let whole = format!("100, 1400, 7000 bytes pass to {ROBOT}:26233 and back");
    let judged = doctor();
    assert!(judged.contains(&whole), "{judged}");

    // The laptop drops longer packets without a word, as such networks do.
    network.laptop("link set l0 mtu 1260");
    let judged = doctor();
    let lost = format!("7000 bytes from {ROBOT}:26233");
    for words in ["your network loses fragments", &*lost] {
        assert!(judged.contains(words), "{judged}");
    }
    assert!(said(&["devices"]).contains("dummy:0"));
    let status = said(&["status"]);
    assert!(status.contains("counted: nothing"), "{status}");
    said(&["logs"]);
}

#[test]
fn commands_that_run_for_long_wait_for_a_network() {
    let Some(network) = Network::new("later") else {
        eprintln!("SKIP a network that comes later: needs root and the program ip");
        return;
    };
    let _robot = start_robot(&network);
    network.laptop(&format!("addr del {LAPTOP}/24 dev l0"));
    let mut waiting = Vec::new();
    for (words, then) in [
        (
            vec!["metrics", "--listen", "127.0.0.1:0"],
            "metrics are at http://",
        ),
        // It has reached the mediator, which lets only its own machine record.
        (vec!["record", "dummy"], "machine"),
    ] {
        let mut command = Network::on(&network.laptop, &["-m", ROBOT]);
        command.args(words).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(child.stderr.take().unwrap());
        let line = lines.recv_timeout(PATIENCE).unwrap();
        assert!(line.starts_with("waiting for the network: "), "{line}");
        waiting.push((Killed(child), lines, then));
    }
    network.laptop(&format!("addr add {LAPTOP}/24 dev l0"));
    for (_process, lines, then) in &waiting {
        let line = lines.recv_timeout(PATIENCE).unwrap();
        assert!(line.contains(then), "{line}");
    }
}
