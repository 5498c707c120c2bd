//! No process started by a driver outlives the driver or the mediator, however these end.

use std::env;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;
use std::time::Duration;

use amber_harness::processes::{Marked, marked};
use amber_proto::mediator::change_driver::Action;
use amber_proto::mediator::{ChangeDriver, DriverState, request};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpgid, getppid, setpgid};
use tempfile::TempDir;

use crate::common::{AMBER, Mediator, device, is_running, signal, wait_for};

/// A mediator with a driver that has started children, one of which ignores SIGTERM; and the pids
/// of all of them.
fn family() -> (Mediator, Vec<u32>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = folder.path().join("driver.sh");
    let text = format!(
        "echo $$ > {0}.new
         sleep 1000 & echo $! >> {0}.new
         (trap '' TERM; while :; do sleep 1000; done) & echo $! >> {0}.new
         mv {0}.new {0}
         while :; do sleep 1000; done",
        pids.display()
    );
    fs::write(&script, text).unwrap();
    let mediator = Mediator::start(&[&format!("80:0=sh {}", script.display())]);
    let pids = wait_for("the pids", || fs::read_to_string(&pids).ok());
    let pids: Vec<u32> = pids.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(pids.len(), 3);
    assert!(pids.iter().all(|pid| is_running(*pid)));
    (mediator, pids, folder)
}

#[track_caller]
fn wait_for_end_of(pids: &[u32]) {
    wait_for("the end of all of them", || {
        (!pids.iter().any(|pid| is_running(*pid))).then_some(())
    });
}

fn check(end: Signal) {
    let (mut mediator, pids, _folder) = family();
    signal(mediator.pid(), end);
    let status = mediator.wait();
    assert_eq!(status.success(), end != Signal::SIGKILL, "{status}");
    wait_for_end_of(&pids);
}

#[test]
fn after_sigterm() {
    check(Signal::SIGTERM);
}

#[test]
fn after_sigint() {
    check(Signal::SIGINT);
}

#[test]
fn after_sigkill() {
    check(Signal::SIGKILL);
}

#[test]
fn after_a_second_sigterm() {
    let (mut mediator, pids, _folder) = family();
    signal(mediator.pid(), Signal::SIGTERM);
    mediator.wait_for_line("a second signal exits immediately");
    signal(mediator.pid(), Signal::SIGTERM);
    assert_eq!(mediator.wait().code(), Some(1));
    wait_for_end_of(&pids);
}

#[test]
fn after_sigkill_with_a_restarted_guard() {
    let (mut mediator, pids, _folder) = family();
    let guard = guard_of(&mediator).unwrap();
    signal(guard, Signal::SIGKILL);
    wait_for("another guard", || {
        guard_of(&mediator).filter(|other| *other != guard)
    });
    // The mediator sent it the driver before its pipe closes.
    signal(mediator.pid(), Signal::SIGKILL);
    assert!(!mediator.wait().success());
    wait_for_end_of(&pids);
}

#[test]
fn children_of_a_driver_end_with_it() {
    let (mediator, pids, _folder) = family();
    signal(pids[0], Signal::SIGKILL);
    wait_for_end_of(&pids);
    mediator.wait_for_state("80:0", DriverState::Up);
}

#[test]
fn drivers_start_even_after_the_guard_was_killed() {
    let mediator = Mediator::start(&["5:0=cat"]);
    mediator.wait_for_state("5:0", DriverState::Up);
    let guard = guard_of(&mediator).unwrap();
    signal(guard, Signal::SIGKILL);
    wait_for("the end of the guard", || {
        (!is_running(guard)).then_some(())
    });
    // Before the next guard has started.
    let pid = mediator.describe("5:0").pid();
    signal(pid, Signal::SIGKILL);
    wait_for("the restart", || {
        (mediator.describe("5:0").restarts() > 0).then_some(())
    });
    mediator.peer().wait_for_echo(device("5:0"), b"x");
    assert_eq!(
        mediator.describe("5:0").last_exit(),
        "killed by signal 9 (SIGKILL)"
    );
}

fn guard_of(mediator: &Mediator) -> Option<u32> {
    let pid = mediator.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let is_guard = |child: &u32| {
        fs::read(format!("/proc/{child}/cmdline")).is_ok_and(|line| line.ends_with(b"\0guard\0"))
    };
    let mut children = children
        .split_whitespace()
        .map(|child| child.parse().unwrap());
    children.find(is_guard)
}

/// Drivers that start processes which leave the process group, and the total number of processes of
/// each.
const FUGITIVES: [(&str, usize); 5] = [
    // `timeout` creates its own process group.
    ("bash -c 'timeout 1000 sleep 999; true'", 3),
    // A shell with job control does, too.
    ("bash -c 'set -m; sleep 999 & wait'", 2),
    ("bash -c 'setsid sleep 999 & wait'", 2),
    // An orphan in its own session, like a daemon, with a child.
    (
        "bash -c '(setsid bash -c \"sleep 999 & wait\" &) ; while :; do sleep 999; done'",
        4,
    ),
    // An orphan that ignores SIGTERM.
    (
        "bash -c '(trap \"\" TERM; setsid sleep 999 &); while :; do sleep 999; done'",
        3,
    ),
];

fn order(mediator: &Mediator, name: &str, action: Action) {
    let device = device(name);
    let change = ChangeDriver {
        device: amber_proto::mediator::Device {
            r#type: device.device_type.0,
            id: device.id.0,
        },
        action: action.into(),
    };
    mediator.peer().ask(request::What::ChangeDriver(change));
}

/// A mediator whose processes all have `mark` in their environment.
struct Family {
    mediator: Mediator,
    mark: String,
    _folder: TempDir,
}

impl Family {
    fn start(drivers: &[String]) -> Self {
        Self::run(Command::new(AMBER), drivers)
    }

    fn run(mut command: Command, drivers: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().display().to_string();
        command.args(["mediator", "--listen", "127.0.0.1:0"]);
        for (number, driver) in drivers.iter().enumerate() {
            command
                .arg("--driver")
                .arg(format!("{}:0={driver}", 80 + number));
        }
        command.env("AMBER_TEST_MARK", &mark);
        Self {
            mediator: Mediator::run(command),
            mark: format!("AMBER_TEST_MARK={mark}"),
            _folder: folder,
        }
    }

    /// A mediator with all [`FUGITIVES`], once all their processes run.
    fn of_fugitives() -> Self {
        let drivers = FUGITIVES.map(|(driver, _)| driver.to_owned());
        let family = Self::start(&drivers);
        family.wait_for_processes(FUGITIVES.iter().map(|(_, processes)| processes).sum());
        family
    }

    /// All its processes except the mediator and its guard.
    fn processes(&self) -> Vec<Marked> {
        let mut processes = marked(&self.mark);
        processes.retain(|process| {
            process.pid != self.mediator.pid() && !process.command.ends_with(" guard")
        });
        processes
    }

    #[track_caller]
    fn wait_for_processes(&self, count: usize) {
        wait_for(&format!("{count} processes of drivers"), || {
            // Until it executes another program, a process counts as one of its parent.
            let processes = self.processes();
            let is_new = |process: &&Marked| process.command.contains(AMBER);
            let ready = processes.len() == count && processes.iter().find(is_new).is_none();
            ready.then_some(())
        });
    }

    #[track_caller]
    fn wait_for_end_of_all(&self) {
        wait_for("the end of all processes", || {
            marked(&self.mark).is_empty().then_some(())
        });
    }
}

#[test]
fn fugitives_end_with_their_drivers() {
    for (driver, processes) in FUGITIVES {
        let family = Family::start(&[driver.to_owned()]);
        family.wait_for_processes(processes);
        let first = family.processes();
        // The driver ends by itself and is restarted.
        signal(family.mediator.describe("80:0").pid(), Signal::SIGKILL);
        wait_for("the end of its children", || {
            first.iter().all(|p| !is_running(p.pid)).then_some(())
        });
        family.wait_for_processes(processes);
        // It is stopped.
        order(&family.mediator, "80:0", Action::Stop);
        family.wait_for_processes(0);
        family.mediator.wait_for_state("80:0", DriverState::Down);
    }
}

#[test]
fn fugitives_end_with_the_mediator() {
    let mut family = Family::of_fugitives();
    let guard = wait_for("the guard", || guard_of(&family.mediator));
    signal(family.mediator.pid(), Signal::SIGTERM);
    assert!(family.mediator.wait().success());
    // The guard ends right after the mediator. While it exits, it has no command line any more.
    let mut left = family.processes();
    left.retain(|process| process.pid != guard);
    assert_eq!(left, [], "no process is left when it has ended");
    family.wait_for_end_of_all();
}

#[test]
fn fugitives_end_when_the_mediator_is_killed() {
    let mut family = Family::of_fugitives();
    signal(family.mediator.pid(), Signal::SIGKILL);
    family.mediator.wait();
    family.wait_for_end_of_all();
}

#[test]
fn fugitives_end_when_all_processes_named_amber_are_killed() {
    let mut family = Family::of_fugitives();
    // The effect of `killall -9 amber`, limited to this mediator.
    wait_for("the guard's own name", || {
        let guard = guard_of(&family.mediator)?;
        (name_of(guard) != "amber").then_some(())
    });
    for process in marked(&family.mark) {
        if name_of(process.pid) == "amber" {
            signal(process.pid, Signal::SIGKILL);
        }
    }
    family.mediator.wait();
    family.wait_for_end_of_all();
}

fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    name.unwrap_or_default().trim_end().to_owned()
}

/// A driver rather than a test of its own: it stays in the mediator's process group, ignores
/// SIGTERM and the end of stdin, and does not die with its parent.
#[test]
fn stubborn_driver() {
    if env::var_os("AMBER_TEST_STUBBORN").is_some() {
        set_pdeathsig(None).unwrap();
        let group = getpgid(Some(getppid())).unwrap();
        setpgid(Pid::from_raw(0), group).unwrap();
        let ready = env::var_os("AMBER_TEST_STUBBORN").unwrap();
        File::create(ready).unwrap();
        loop {
            thread::sleep(Duration::from_secs(1000));
        }
    }
}

/// A mediator with [`stubborn_driver`], and the pid of the driver.
fn stubborn() -> (Family, u32) {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let test = env::current_exe().unwrap();
    // Its stdout stays open, but nothing is printed there.
    let driver = format!(
        "sh -c 'trap \"\" TERM; AMBER_TEST_STUBBORN={} exec {} --exact --nocapture \
         no_survivors::stubborn_driver 3>&1 >/dev/null'",
        ready.display(),
        test.display()
    );
    let mut family = Family::start(&[driver]);
    wait_for("the driver", || ready.exists().then_some(()));
    let pid = family.mediator.describe("80:0").pid();
    let own = Pid::from_raw(family.mediator.pid() as i32);
    assert_eq!(
        getpgid(Some(Pid::from_raw(pid as i32))),
        getpgid(Some(own)),
        "it has left its group"
    );
    family._folder = folder;
    (family, pid)
}

#[test]
fn a_driver_in_the_group_of_the_mediator_can_be_stopped() {
    let (family, pid) = stubborn();
    order(&family.mediator, "80:0", Action::Stop);
    wait_for("the end of the driver", || (!is_running(pid)).then_some(()));
    family.mediator.wait_for_state("80:0", DriverState::Down);
}

#[test]
fn a_driver_in_the_group_of_the_mediator_ends_with_it() {
    for end in [Signal::SIGTERM, Signal::SIGKILL] {
        let (mut family, pid) = stubborn();
        signal(family.mediator.pid(), end);
        family.mediator.wait();
        wait_for("the end of the driver", || (!is_running(pid)).then_some(()));
        family.wait_for_end_of_all();
    }
}

/// A daemon without any reference to its origin.
fn daemon(pid: &std::path::Path) -> String {
    format!(
        "(env -i setsid sh -c \"echo \\$\\$ >{0}.new; mv {0}.new {0}; exec sleep 999\" &)",
        pid.display()
    )
}

fn pid_in(path: &std::path::Path) -> u32 {
    wait_for("a pid", || {
        fs::read_to_string(path).ok()?.trim().parse().ok()
    })
}

#[test]
fn a_daemon_without_an_environment_ends_with_the_last_driver() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pid");
    let driver = format!("bash -c '{}; sleep 999'", daemon(&path));
    let family = Family::start(&[driver, "sleep 998".into()]);
    let daemon = pid_in(&path);
    let stop = |device| {
        order(&family.mediator, device, Action::Stop);
        family.mediator.wait_for_state(device, DriverState::Down);
    };
    stop("80:0");
    // The daemon may belong to the other driver.
    assert!(is_running(daemon));
    stop("81:0");
    wait_for("the end of the daemon", || {
        (!is_running(daemon)).then_some(())
    });
}

#[test]
fn a_daemon_without_an_environment_ends_with_the_mediator() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pid");
    let driver = format!("bash -c '{}; sleep 999'", daemon(&path));
    let mut family = Family::start(&[driver, "sleep 998".into()]);
    let daemon = pid_in(&path);
    signal(family.mediator.pid(), Signal::SIGTERM);
    assert!(family.mediator.wait().success());
    assert!(!is_running(daemon));
}

#[test]
fn processes_not_started_by_the_mediator_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pid");
    // As in the entry point of a container.
    let mut command = Command::new("sh");
    let script = format!(
        "sleep 999 & echo $! >{}; exec \"$0\" \"$@\"",
        path.display()
    );
    command.args(["-c", &script, AMBER]);
    let mut family = Family::run(command, &["sleep 998".into()]);
    let inherited = pid_in(&path);
    signal(family.mediator.describe("80:0").pid(), Signal::SIGKILL);
    wait_for("the restart", || {
        (family.mediator.describe("80:0").restarts() > 0).then_some(())
    });
    signal(family.mediator.pid(), Signal::SIGTERM);
    assert!(family.mediator.wait().success());
    assert!(is_running(inherited));
    signal(inherited, Signal::SIGKILL);
}

#[test]
fn a_guard_that_was_frozen_knows_the_running_drivers() {
    let driver = "sh -c 'trap \"\" TERM; exec sleep 999'";
    let family = &mut Family::start(&[driver.into()]);
    let mediator = &mut family.mediator;
    mediator.wait_for_state("80:0", DriverState::Up);
    let guard = guard_of(mediator).unwrap();
    signal(guard, Signal::SIGSTOP);
    // A pipe with one message per change would be full after about three hundred.
    let pipe = File::open(format!("/proc/{guard}/fd/0")).unwrap();
    fcntl(pipe.as_fd(), FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    for _ in 0..350 {
        let pid = mediator.describe("80:0").pid();
        signal(pid, Signal::SIGKILL);
        order(mediator, "80:0", Action::Restart);
        wait_for("another process", || {
            let driver = mediator.describe("80:0");
            (driver.pid() != 0 && driver.pid() != pid).then_some(())
        });
    }
    signal(mediator.pid(), Signal::SIGKILL);
    mediator.wait();
    signal(guard, Signal::SIGCONT);
    family.wait_for_end_of_all();
}
