//! Tests of a running simulation from the outside.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use super::*;
use crate::control::ask;
use crate::{hokuyo, roboclaw};

const PATIENCE: Duration = Duration::from_secs(20);

/// A simulation in its own thread, until it is dropped.
struct Running {
    folder: tempfile::TempDir,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

fn config(folder: &Path) -> Config {
    Config {
        map: Map::flat(),
        folder: folder.to_owned(),
        start: Some((3.5, 2.6, 0.0)),
        seed: 1,
        speed: 1.0,
        devices: Devices::default(),
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

fn start(change: impl FnOnce(&mut Config)) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    change(&mut config);
    let (end, ended) = oneshot::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let thread = thread::spawn(move || {
        block_on(async {
            let simulator = Simulator::open(config).await.unwrap();
            ready.send(()).unwrap();
            simulator.run(async { drop(ended.await) }).await.unwrap();
        });
    });
    is_ready.recv().unwrap();
    Running {
        folder,
        end: Some(end),
        thread: Some(thread),
    }
}

impl Running {
    fn open(&self, device: Device) -> File {
        let flags = rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::NONBLOCK;
        File::options()
            .read(true)
            .write(true)
            .custom_flags(flags.bits() as i32)
            .open(self.folder.path().join(device.name()))
            .unwrap()
    }

    fn state(&self) -> SimulationState {
        match ask(self.folder.path(), &Request::State).unwrap() {
            Answer::State(state) => *state,
            other => panic!("{other:?}"),
        }
    }

    fn ask(&self, request: &Request) -> Answer {
        ask(self.folder.path(), request).unwrap()
    }

    fn until(&self, what: &str, condition: impl Fn(&SimulationState) -> bool) -> SimulationState {
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            let state = self.state();
            if condition(&state) {
                return state;
            }
            assert!(std::time::Instant::now() < deadline, "{what}: {state:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.end.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || matches!(ended, Some(Ok(()))));
    }
}

/// Reads this number of bytes, or fewer if the port hangs up.
fn receive(port: &mut File, count: usize) -> Vec<u8> {
    let deadline = std::time::Instant::now() + PATIENCE;
    let mut received = Vec::new();
    while received.len() < count {
        let mut buffer = [0; 100];
        match port.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => received.extend(&buffer[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                assert!(std::time::Instant::now() < deadline, "{received:?}");
                thread::sleep(Duration::from_millis(1));
            }
            Err(_) => break,
        }
    }
    received
}

fn drive(port: &mut File, qpps: i32) {
    for address in [0x81, 0x80] {
        let speed = qpps.to_be_bytes();
        let mut packet = [&[address, 37], speed.as_slice(), &speed].concat();
        packet.extend(roboclaw::crc16(&packet).to_be_bytes());
        port.write_all(&packet).unwrap();
        assert_eq!(receive(port, 1), [0xFF]);
    }
}

#[test]
fn bytes_sent_to_the_port_move_the_robot() {
    let running = start(|config| config.speed = 10.0);
    let mut port = running.open(roboclaw::DEVICE);
    drive(&mut port, 1484);
    let moving = running.until("it moves", |state| state.travelled_m > 0.5);
    assert!((moving.wheels_mm_per_s.rear_left - 300.0).abs() < 9.0);
    drive(&mut port, 0);
    let standing = running.until("it stands", |state| state.wheels_mm_per_s.front_left == 0.0);
    assert!(standing.x_m > 4.0, "{standing:?}");
    assert!((standing.y_m - 2.6).abs() < 1e-6);
    assert_eq!(standing.contacts, 0);
}

#[test]
fn an_unplugged_port_hangs_up_and_returns_at_the_same_path() {
    let running = start(|_| ());
    let mut port = running.open(hokuyo::DEVICE);
    port.write_all(b"BM\n").unwrap();
    assert_eq!(receive(&mut port, 8), b"BM\n00P\n\n");
    let unplug = |seconds| Request::Fault {
        fault: "unplug".to_owned(),
        about: Some("hokuyo".to_owned()),
        seconds,
    };
    assert_eq!(running.ask(&unplug(None)), Answer::Done);
    assert_eq!(running.state().faults, ["unplug hokuyo"]);
    assert_eq!(receive(&mut port, 1), b"");
    assert!(port.write_all(b"BM\n").is_err());
    let link = running.folder.path().join("hokuyo");
    assert!(!link.exists());

    let device = "hokuyo".to_owned();
    assert_eq!(running.ask(&Request::Replug { device }), Answer::Done);
    assert!(running.state().faults.is_empty() && link.exists());
    let mut port = running.open(hokuyo::DEVICE);
    port.write_all(b"BM\n").unwrap();
    assert_eq!(receive(&mut port, 8), b"BM\n00P\n\n", "it lost power");

    assert_eq!(running.ask(&unplug(Some(0.05))), Answer::Done);
    running.until("it comes back by itself", |state| state.faults.is_empty());
    assert!(link.exists());
}

#[test]
fn the_reset_line_resets() {
    let running = start(|_| ());
    let mut port = running.open(roboclaw::DEVICE);
    let mut packet = vec![0x80, 92, 1];
    packet.extend(roboclaw::crc16(&packet).to_be_bytes());
    port.write_all(&packet).unwrap();
    assert_eq!(receive(&mut port, 1), [0xFF]);
    let mode = |port: &mut File| {
        port.write_all(&[0x80, 91]).unwrap();
        receive(port, 4)[0]
    };
    assert_eq!(mode(&mut port), 1);
    let line = running.folder.path().join(RESET_LINE);
    for level in ["0\n", "1\n"] {
        fs::write(&line, level).unwrap();
    }
    // The controllers do not answer for a while; repeat the request until they do.
    let deadline = std::time::Instant::now() + PATIENCE;
    let mut answer = [0; 4];
    loop {
        thread::sleep(Duration::from_millis(20));
        port.write_all(&[0x80, 91]).unwrap();
        thread::sleep(Duration::from_millis(20));
        match port.read(&mut answer) {
            Ok(4) if answer[0] == 0 => break,
            _ => assert!(std::time::Instant::now() < deadline, "{answer:?}"),
        }
    }
}

#[test]
fn a_folder_is_used_by_one_simulation_at_a_time() {
    let running = start(|_| ());
    let second = block_on(Simulator::open(config(running.folder.path())));
    let error = second.expect_err("the folder is in use");
    assert!(matches!(error, Error::InUse(_)), "{error}");
    assert!(error.hint().is_some());
    let folder = running.folder.path().to_owned();
    let seen = running.state().time_s;
    assert!(
        running
            .until("it keeps running", |state| state.time_s > seen)
            .contacts
            == 0
    );
    drop(running);
    assert!(ask(&folder, &Request::State).is_err());
}

#[test]
fn invalid_requests_are_answered() {
    let running = start(|_| ());
    for (fault, about, seconds) in [
        ("melt", None, None),
        ("unplug", Some("sonar"), None),
        ("low-battery", None, Some(-1.0)),
    ] {
        let request = Request::Fault {
            fault: fault.to_owned(),
            about: about.map(str::to_owned),
            seconds,
        };
        assert!(matches!(running.ask(&request), Answer::Error(_)), "{fault}");
    }
    let on_wall = Request::Place {
        x_m: 0.0,
        y_m: 0.0,
        heading_deg: 0.0,
    };
    assert!(matches!(running.ask(&on_wall), Answer::Error(_)));
    let mut raw =
        std::os::unix::net::UnixStream::connect(running.folder.path().join(crate::control::SOCKET))
            .unwrap();
    raw.write_all(b"invalid\n").unwrap();
    let mut answer = [0; 10];
    raw.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"{\"error\":\"");
}

#[test]
fn invalid_configurations_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    for (change, error) in [
        (
            (|config: &mut Config| config.speed = 0.0) as fn(&mut Config),
            "the speed must be above 0 and at most 1000, not 0",
        ),
        (
            |config| config.start = Some((0.0, 0.0, 0.0)),
            "a robot cannot stand there: a wall is closer than 0.25 m",
        ),
        (
            |config| config.start = Some((f64::NAN, 0.0, 0.0)),
            "the start must be three finite numbers",
        ),
    ] {
        let mut config = config(folder.path());
        change(&mut config);
        let refused = block_on(Simulator::open(config)).expect_err(error);
        assert_eq!(refused.to_string(), error);
    }
}
