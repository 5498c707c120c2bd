//! Whatever happens to the streams of a driver: all its output is read, its end is noticed, and
//! other drivers are not delayed.

use std::fs;
use std::thread;

use amber_core::limits::PARTIAL_FRAME;
use amber_proto::Frame;
use amber_proto::mediator::DriverState;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::common::{Mediator, device, is_running, signal, wait_for};

/// More than a pipe holds, and not a multiple of that.
const FLOOD_BYTES: usize = 1_000_000;

/// Frames for an unknown client.
fn frames(bytes: usize) -> (Vec<u8>, u64) {
    let (mut all, mut count) = (Vec::new(), 0);
    while all.len() < bytes {
        let frame = Frame {
            header: &[0x1a, 1, 99],
            message: b"nothing",
        };
        frame.encode(&mut all).unwrap();
        count += 1;
    }
    (all, count)
}

#[test]
fn the_end_of_stdout_is_noticed_right_after_a_flood() {
    const DRIVERS: usize = 4;
    let folder = tempfile::tempdir().unwrap();
    let flood = folder.path().join("flood");
    let (bytes, count) = frames(FLOOD_BYTES);
    fs::write(&flood, bytes).unwrap();
    let names: Vec<_> = (0..DRIVERS).map(|id| format!("80:{id}")).collect();
    let script = format!("cat {}; exec >&-; sleep 1000", flood.display());
    let drivers: Vec<_> = (names.iter())
        .map(|name| format!("{name}=sh -c '{script}'"))
        .collect();
    let drivers: Vec<_> = drivers.iter().map(String::as_str).collect();
    let mediator = Mediator::start(&drivers);
    for name in &names {
        wait_for("the end of its stdout to be seen", || {
            let driver = mediator.describe(name);
            let closed = driver.last_exit().starts_with("closed its stdout");
            closed.then_some(())
        });
        let counters = mediator.describe(name).counters.unwrap();
        assert!(counters.frames_out() >= count, "{counters:?}");
    }
}

#[test]
fn a_delayed_mediator_does_not_miss_a_complete_frame() {
    let folder = tempfile::tempdir().unwrap();
    let (go, gone) = (folder.path().join("go"), folder.path().join("gone"));
    // One and a half frames; the test triggers the other half.
    let half = r"\000\003\032\001\143\000\002";
    let driver = format!(
        "80:0=sh -c 'printf \"{half}ok{half}\"; while [ ! -e {go} ]; do sleep 0.01; done; \
         printf ok; touch {gone}; exec cat'",
        go = go.display(),
        gone = gone.display(),
    );
    let mediator = Mediator::start(&[&driver]);
    let frames = || mediator.describe("80:0").counters.unwrap().frames_out();
    wait_for("the first frame", || (frames() == 1).then_some(()));
    signal(mediator.pid(), Signal::SIGSTOP);
    fs::write(go, "").unwrap();
    wait_for("the second frame", || gone.exists().then_some(()));
    // The time for which a partial frame is accepted.
    thread::sleep(PARTIAL_FRAME);
    signal(mediator.pid(), Signal::SIGCONT);
    wait_for("the second frame", || (frames() >= 2).then_some(()));
    let driver = mediator.describe("80:0");
    assert_eq!((driver.restarts(), driver.state()), (0, DriverState::Up));
}

#[test]
fn the_last_output_of_a_driver_is_read_completely() {
    // More than one read returns, and a line without an end.
    let script = "head -c 60000 /dev/zero | tr \"\\\\000\" x >&2; echo >&2; \
                  printf \"the last word\" >&2; exit 3";
    let (mediator, _folder) = once(script);
    let driver = mediator.wait_for_state("80:0", DriverState::Failed);
    assert_eq!(driver.last_exit(), "exited with code 3");
    assert_eq!(driver.last_words.last().unwrap(), "the last word");
}

#[test]
fn endless_output_delays_no_other_driver() {
    let mediator = Mediator::start(&["80:0=sh -c 'yes >&2 & exec cat'", "5:0=cat"]);
    mediator.wait_for_line("driver=80:0");
    let peer = mediator.peer();
    for number in 0..100_u8 {
        peer.wait_for_echo(device("80:0"), &[number]);
        peer.wait_for_echo(device("5:0"), &[number]);
    }
    let driver = mediator.describe("80:0");
    assert_eq!((driver.restarts(), driver.state()), (0, DriverState::Up));
}

/// A driver that exits and leaves a process behind that holds its streams. That process is not
/// ended at once: it has left the process group and cleared its environment, so another driver may
/// have started it.
fn check_stray(redirection: &str) {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let script = format!(
        "env -i setsid sh -c \"echo \\$\\$ >{0}; exec sleep 1000\" {redirection} & \
         while [ ! -s {0} ]; do sleep 0.01; done; printf \"the last word\" >&2; exit 3",
        pid.display()
    );
    let (mediator, _folder) = Mediator::configured(&format!(
        "{}\n[[driver]]\ndevice = '81:0'\ncommand = ['cat']\n",
        only_once(&script)
    ));
    let driver = mediator.wait_for_state("80:0", DriverState::Failed);
    assert_eq!(driver.last_exit(), "exited with code 3");
    assert_eq!(driver.last_words, ["the last word"]);
    let stray = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    assert!(is_running(stray));
    drop(mediator);
    assert!(!is_running(stray));
}

#[test]
fn a_stray_that_holds_all_streams_does_not_hide_the_end_of_the_driver() {
    check_stray("");
}

#[test]
fn a_stray_that_holds_stdout_does_not_hide_the_end_of_the_driver() {
    check_stray("2>/dev/null");
}

#[test]
fn a_stray_that_holds_stderr_does_not_hide_the_end_of_the_driver() {
    check_stray(">/dev/null");
}

/// A driver, 80:0, that is started only once.
fn once(script: &str) -> (Mediator, TempDir) {
    Mediator::configured(&only_once(script))
}

fn only_once(script: &str) -> String {
    format!(
        "[[driver]]\ndevice = '80:0'\nrestart = 'never'\ncommand = ['sh', '-c', '''{script}''']\n"
    )
}

#[test]
fn a_driver_works_after_a_flood() {
    let mediator = Mediator::start(&["5:0=cat"]);
    let peer = mediator.peer();
    let message = [b'x'; 1000];
    // Many ports, so that many replies arrive in one turn of the driver.
    let flood: Vec<_> = (0..50).map(|_| mediator.peer()).collect();
    for _ in 0..200 {
        for one in &flood {
            one.send(device("5:0"), &message);
        }
    }
    for round in 0_u8..100 {
        peer.wait_for_echo(device("5:0"), &[round]);
    }
    let counters = mediator.describe("5:0").counters.unwrap();
    assert_eq!(counters.frames_out(), counters.frames_written());
}

/// A process shows no environment while the kernel loads its program. So one without any may be the
/// guard that stops the motors of a driver, which was killed at that moment.
#[test]
fn a_process_that_shows_no_environment_has_a_second_to_stop_motors() {
    let folder = tempfile::tempdir().unwrap();
    let [pid, stopped] = ["pid", "stopped"].map(|name| folder.path().join(name));
    let script = format!(
        "env -i setsid sh -c \"echo \\$\\$ >{0}; sleep 0.3; echo >{1}; exec sleep 1000\" & \
         while [ ! -s {0} ]; do sleep 0.01; done; kill -9 $$",
        pid.display(),
        stopped.display()
    );
    let (mediator, _folder) = Mediator::configured(&only_once(&script));
    wait_for("the stop of the motors", || stopped.exists().then_some(()));
    let stray = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    wait_for("the end of the process", || {
        (!is_running(stray)).then_some(())
    });
    let driver = mediator.wait_for_state("80:0", DriverState::Failed);
    assert_eq!(driver.last_exit(), "killed by signal 9 (SIGKILL)");
}
