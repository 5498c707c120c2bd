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
    mediator.wait_for_line("a second signal ends at once");
    signal(mediator.pid(), Signal::SIGTERM);
    assert_eq!(mediator.wait().code(), Some(1));
    wait_for_end_of(&pids);
}

#[test]
fn after_sigkill_with_a_guard_that_came_later() {
    let (mut mediator, pids, _folder) = family();
    let guard = guard_of(&mediator).unwrap();
    signal(guard, Signal::SIGKILL);
    wait_for("another guard", || {
        guard_of(&mediator).filter(|other| *other != guard)
    });
    // It was told of the driver before its pipe ends.
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
fn a_guard_that_was_killed_is_no_reason_not_to_start() {
    let mediator = Mediator::start(&["5:0=cat"]);
    mediator.wait_for_state("5:0", DriverState::Up);
    let guard = guard_of(&mediator).unwrap();
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
