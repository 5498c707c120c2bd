//! Whatever a driver does, the mediator keeps running, reports the problem with a hint, and
//! restarts the driver.

use std::fs;

use amber_proto::mediator::{ChangeDriver, DriverState, change_driver, reply, request};
use nix::sys::signal::Signal;

use crate::common::{Mediator, device, is_running, signal, wait_for};

#[test]
fn a_killed_driver_restarts_without_affecting_others() {
    let mediator = Mediator::start(&["5:0=cat", "77:3=cat"]);
    let peer = mediator.peer();
    peer.wait_for_echo(device("5:0"), b"x");
    let (first, other) = (
        mediator.describe("5:0").pid(),
        mediator.describe("77:3").pid(),
    );
    for _ in 0..3 {
        let pid = mediator.wait_for_state("5:0", DriverState::Up).pid();
        signal(pid, Signal::SIGKILL);
        wait_for("the death", || {
            (mediator.describe("5:0").pid() != pid).then_some(())
        });
    }
    let back = mediator.wait_for_state("5:0", DriverState::Up);
    assert_ne!(back.pid(), first);
    assert_eq!(back.restarts(), 3);
    assert_eq!(back.last_exit(), "killed by signal 9 (SIGKILL)");
    assert_eq!(mediator.describe("77:3").pid(), other);
    peer.wait_for_echo(device("5:0"), b"y");
}

#[test]
fn a_driver_that_closes_its_stdin_is_restarted() {
    let mediator = Mediator::start(&["5:0=sh -c 'exec 0<&-; exec sleep 1000'", "77:3=cat"]);
    let driver = wait_for("a restart", || {
        let driver = mediator.describe("5:0");
        (driver.restarts() > 0).then_some(driver)
    });
    assert!(
        driver.last_exit().starts_with("closed its stdin"),
        "{driver:?}"
    );
    mediator.peer().wait_for_echo(device("77:3"), b"x");
}

#[test]
fn without_a_grace_time_stubborn_drivers_end_and_nothing_hangs() {
    let (mut mediator, _folder) = Mediator::configured(
        "
        [[driver]]
        device = '5:0'
        command = ['sleep', '1000']
        grace_ms = 0

        [[driver]]
        device = '77:3'
        command = ['cat']
    ",
    );
    let peer = mediator.peer();
    for (action, state) in [
        (change_driver::Action::Restart, DriverState::Up),
        (change_driver::Action::Stop, DriverState::Down),
        (change_driver::Action::Start, DriverState::Up),
    ] {
        let before = mediator.describe("5:0").pid;
        change(&mediator, "5:0", action);
        let after = wait_for("the change", || {
            let driver = mediator.describe("5:0");
            (driver.state() == state && driver.pid != before).then_some(driver)
        });
        assert_eq!(after.pid.is_some(), state == DriverState::Up);
        peer.wait_for_echo(device("77:3"), b"x");
    }
    signal(mediator.pid(), Signal::SIGTERM);
    assert!(mediator.wait().success());
}

#[test]
fn many_drivers_that_end_at_once_all_restart() {
    let names: Vec<_> = (0..30).map(|id| format!("80:{id}")).collect();
    let drivers: Vec<_> = names.iter().map(|name| format!("{name}=cat")).collect();
    let drivers: Vec<_> = drivers.iter().map(String::as_str).collect();
    let mediator = Mediator::start(&drivers);
    let up = |name| mediator.wait_for_state(name, DriverState::Up).pid();
    let pids: Vec<_> = names.iter().map(|name| up(name)).collect();
    // One signal may report the end of all of them.
    signal(mediator.pid(), Signal::SIGSTOP);
    for pid in &pids {
        signal(*pid, Signal::SIGKILL);
    }
    wait_for("their end", || {
        (!pids.iter().any(|pid| is_running(*pid))).then_some(())
    });
    signal(mediator.pid(), Signal::SIGCONT);
    let peer = mediator.peer();
    for (name, pid) in names.iter().zip(pids) {
        peer.wait_for_echo(device(name), b"back");
        let driver = mediator.describe(name);
        assert_eq!(driver.restarts(), 1, "{driver:?}");
        assert_eq!(driver.last_exit(), "killed by signal 9 (SIGKILL)");
        assert!(fs::metadata(format!("/proc/{pid}")).is_err(), "a zombie");
    }
}

#[test]
fn drivers_that_cannot_start_get_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("driver.py");
    fs::write(&script, "print('hello')\n").unwrap();
    let script = script.to_str().unwrap();
    let not_executable = format!("80:1={script}");
    let mediator = Mediator::start(&[
        "80:0=no-such-program-anywhere",
        &not_executable,
        "80:2=/no/such/path",
        "77:3=cat",
    ]);
    for (name, reason, hint) in [
        (
            "80:0",
            "program no-such-program-anywhere does not exist",
            "looked up in PATH",
        ),
        ("80:1", "is not executable", "chmod +x"),
        (
            "80:2",
            "file /no/such/path does not exist",
            "check the path",
        ),
    ] {
        let driver = mediator.wait_for_state(name, DriverState::Backoff);
        assert!(
            driver.reason().starts_with("could not be started: "),
            "{}",
            driver.reason()
        );
        assert!(driver.reason().contains(reason), "{}", driver.reason());
        assert!(driver.hint().contains(hint), "{}", driver.hint());
        let line = mediator.wait_for_line(reason);
        assert!(line.contains(hint) && line.contains(name), "{line}");
    }
    mediator.peer().wait_for_echo(device("77:3"), b"goes on");
}

#[test]
fn a_driver_that_dies_at_once_is_given_up_with_its_last_output() {
    let (mediator, _folder) = Mediator::configured(
        "[[driver]]\ndevice = '80:0'\ndeaths = 3\nbackoff_min_ms = 300\n\
         command = ['sh', '-c', 'echo no such port >&2; exit 3']\n\
         [[driver]]\ndevice = '77:3'\ncommand = ['cat']\n",
    );
    let driver = mediator.wait_for_state("80:0", DriverState::Backoff);
    assert_eq!(driver.reason(), "exited with code 3");
    assert!(
        driver
            .hint()
            .contains("run it by hand to see the reason: sh -c"),
        "{}",
        driver.hint()
    );
    assert_eq!(driver.last_words[0], "no such port");
    mediator.wait_for_line("no such port");

    let driver = mediator.wait_for_state("80:0", DriverState::Failed);
    assert!(
        driver
            .reason()
            .starts_with("died 3 times within 60 s, last: exited with code 3")
    );
    let line = mediator.wait_for_line("given up");
    assert!(
        line.contains("`amber start 80:0` starts it again"),
        "{line}"
    );
    assert!(line.contains("no such port"), "{line}");
    mediator.peer().wait_for_echo(device("77:3"), b"goes on");
}

#[test]
fn printing_to_stdout_is_reported() {
    let mediator = Mediator::start(&["80:0=sh -c 'echo Starting up; exec cat'"]);
    let line = mediator.wait_for_line("stdout carries the protocol");
    assert!(line.contains("Starting up"), "{line}");
    assert!(line.contains("53 74 61 72 74"), "{line}");
    let driver = mediator.wait_for_state("80:0", DriverState::Backoff);
    assert!(
        driver.reason().starts_with("wrote an invalid frame"),
        "{}",
        driver.reason()
    );
}

#[test]
fn a_driver_that_closes_its_stdout_is_restarted() {
    let mediator = Mediator::start(&["80:0=sh -c 'exec >&-; sleep 1000'"]);
    mediator.wait_for_line("closed its stdout");
    wait_for("the restart", || {
        (mediator.describe("80:0").restarts() > 0).then_some(())
    });
}

#[test]
fn a_driver_that_hangs_is_restarted() {
    let (mediator, _folder) = Mediator::configured(
        "[[driver]]\ndevice = 'dummy:0'\ncommand = ['amber', 'driver', 'dummy']\n\
         ping_interval_ms = 100\n",
    );
    wait_for("its first PONG", || {
        mediator.describe("dummy:0").answers_ping.filter(|a| *a)
    });
    let pid = mediator.describe("dummy:0").pid();
    signal(pid, Signal::SIGSTOP);
    mediator.wait_for_line("is unresponsive: 3 PINGs unanswered, no other output");
    // SIGTERM does not reach a stopped process, but SIGKILL does.
    wait_for("another process", || {
        (mediator.describe("dummy:0").pid() != pid).then_some(())
    });
    mediator.wait_for_state("dummy:0", DriverState::Up);
    wait_for("the end", || (!is_running(pid)).then_some(()));
}

#[test]
fn stopping_escalates_from_sigterm_to_sigkill() {
    // This driver ends neither at the end of stdin nor on SIGTERM.
    let mediator = Mediator::start(&["80:0=sh -c 'trap \"\" TERM; while :; do sleep 1; done'"]);
    let pid = mediator.wait_for_state("80:0", DriverState::Up).pid();
    assert!(matches!(
        change(&mediator, "80:0", change_driver::Action::Stop),
        reply::What::Done(_)
    ));
    let driver = mediator.wait_for_state("80:0", DriverState::Down);
    assert!(
        driver.last_exit().contains("killed by signal 9"),
        "{}",
        driver.last_exit()
    );
    wait_for("the end", || (!is_running(pid)).then_some(()));
    assert!(matches!(
        change(&mediator, "80:0", change_driver::Action::Start),
        reply::What::Done(_)
    ));
    mediator.wait_for_state("80:0", DriverState::Up);
}

#[test]
fn a_driver_gets_its_identity_in_the_environment() {
    let mediator = Mediator::start(&["hokuyo:2=sh -c 'env | grep ^AMBER_ >&2; exec cat'"]);
    for line in [
        "AMBER_DEVICE=hokuyo:2",
        "AMBER_DEVICE_TYPE=4",
        "AMBER_DEVICE_ID=2",
    ] {
        mediator.wait_for_line(line);
    }
    mediator.wait_for_line(&format!("AMBER_MEDIATOR={}", mediator.address));
}

fn change(mediator: &Mediator, name: &str, action: change_driver::Action) -> reply::What {
    let device = device(name);
    let device = amber_proto::mediator::Device {
        r#type: device.device_type.0,
        id: device.id.0,
    };
    let change = ChangeDriver {
        device,
        action: action.into(),
    };
    mediator.peer().ask(request::What::ChangeDriver(change))
}
