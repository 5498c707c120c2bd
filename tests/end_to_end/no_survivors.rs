//! No process of a driver outlives the mediator, however the mediator ends.

use std::fs;

use amber_proto::mediator::DriverState;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::common::{Mediator, device, is_running, signal, wait_for};

/// A mediator with a driver that has started children of its own, one of which
/// ignores SIGTERM; and the pids of all of them.
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

fn check(end: Signal) {
    let (mut mediator, pids, _folder) = family();
    signal(mediator.pid(), end);
    let status = mediator.wait();
    assert_eq!(status.success(), end != Signal::SIGKILL, "{status}");
    for pid in pids {
        wait_for("the end of all of them", || {
            (!is_running(pid)).then_some(())
        });
    }
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
fn children_of_a_driver_end_with_it() {
    let (mediator, pids, _folder) = family();
    signal(pids[0], Signal::SIGKILL);
    for pid in &pids {
        wait_for("the end of all of them", || {
            (!is_running(*pid)).then_some(())
        });
    }
    mediator.wait_for_state("80:0", DriverState::Up);
}

#[test]
fn a_guard_that_was_killed_is_no_reason_not_to_start() {
    let mediator = Mediator::start(&["5:0=cat"]);
    mediator.wait_for_state("5:0", DriverState::Up);
    let guard = guard_of(&mediator);
    signal(guard, Signal::SIGKILL);
    wait_for("the end of the guard", || {
        (!is_running(guard)).then_some(())
    });
    // Before another guard is there.
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

fn guard_of(mediator: &Mediator) -> u32 {
    let pid = mediator.pid();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let is_guard = |child: &u32| {
        fs::read(format!("/proc/{child}/cmdline")).is_ok_and(|line| line.ends_with(b"\0guard\0"))
    };
    let mut children = children
        .split_whitespace()
        .map(|child| child.parse().unwrap());
    children.find(is_guard).unwrap()
}
