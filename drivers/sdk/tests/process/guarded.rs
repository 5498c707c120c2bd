//! Tests of the guard of a driver: what arrives at the device when the driver is killed, hangs or ends,
//! and when the guard itself is killed.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout};
use std::time::Duration;
use std::{env, fs, thread};

use amber_driver::proto::dummy::DriverMsg;
use amber_driver::{Driver, Guard, Link, Request};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{start, this};

/// The variable with the path of the device.
const DEVICE: &str = "TEST_DEVICE";

/// Only a test that fails takes so long.
const LIMIT: Duration = Duration::from_secs(60);

/// A driver whose device must be stopped.
#[derive(Default)]
pub(crate) struct Guarded(Option<UnixStream>);

impl Driver for Guarded {
    type Message = DriverMsg;

    async fn start(&mut self, link: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let path = env::var_os(DEVICE).ok_or("no device")?;
        let mut device = UnixStream::connect(path)?;
        let guard = Guard::start(device.try_clone()?)?;
        guard.arm(&[b"stop ".to_vec(), b"all.".to_vec()]);
        device.write_all(b"armed.")?;
        self.0 = Some(device.try_clone()?);
        tokio::spawn(async move {
            loop {
                guard.changed().await;
                if guard.has_acted() {
                    let _ = device.write_all(b"acted.");
                }
                match guard.trouble() {
                    Some(trouble) => link.trouble(&trouble),
                    None => link.recovered(),
                }
            }
        });
        Ok(())
    }

    async fn request(&mut self, _: Request<DriverMsg>) -> Option<DriverMsg> {
        None
    }
}

/// The same, but it disarms the guard at its end.
#[derive(Default)]
pub(crate) struct Disarms(Option<(UnixStream, Guard)>);

impl Driver for Disarms {
    type Message = DriverMsg;

    async fn start(&mut self, _: Link<DriverMsg>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let path = env::var_os(DEVICE).ok_or("no device")?;
        let mut device = UnixStream::connect(path)?;
        let guard = Guard::start(device.try_clone()?)?;
        guard.arm(&[b"stop all.".to_vec()]);
        device.write_all(b"armed.")?;
        self.0 = Some((device, guard));
        Ok(())
    }

    async fn request(&mut self, _: Request<DriverMsg>) -> Option<DriverMsg> {
        None
    }

    async fn shutdown(&mut self) {
        if let Some((device, guard)) = &mut self.0 {
            guard.disarm();
            let _ = device.write_all(b"ended.");
        }
    }
}

pub(crate) fn run() {
    a_killed_driver_is_stopped_by_its_guard();
    a_guard_survives_the_signals_that_end_a_driver();
    a_driver_that_hangs_is_stopped_and_told();
    a_lost_guard_is_reported_and_replaced();
    a_disarmed_guard_writes_nothing();
}

/// A driver, and the device that it has connected to.
struct Robot {
    driver: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    device: UnixStream,
}

impl Robot {
    fn with(driver: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("device");
        let listener = UnixListener::bind(&path).unwrap();
        let mut command = this(driver);
        command.env(DEVICE, &path).env("AMBER_DEVICE", "dummy:0");
        let (driver, stdin, stdout) = start(command);
        let (device, _) = listener.accept().unwrap();
        device.set_read_timeout(Some(LIMIT)).unwrap();
        let stdin = Some(stdin);
        let mut robot = Self {
            driver,
            stdin,
            stdout,
            device,
        };
        robot.expect("armed.");
        robot
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.driver.id().cast_signed())
    }

    /// The guards of the driver, also those that were not waited for.
    fn guards(&self) -> Vec<Pid> {
        let path = format!("/proc/{0}/task/{0}/children", self.pid());
        let children = fs::read_to_string(path).unwrap();
        let pids = children.split_whitespace();
        pids.map(|pid| Pid::from_raw(pid.parse().unwrap()))
            .collect()
    }

    /// Waits until the device has received this next.
    #[track_caller]
    fn expect(&mut self, text: &str) {
        let mut received = vec![0; text.len()];
        self.device.read_exact(&mut received).unwrap();
        assert_eq!(String::from_utf8_lossy(&received), text);
    }

    /// Waits until neither the driver nor a guard has the device.
    #[track_caller]
    fn expect_end(&mut self) {
        let mut rest = String::new();
        match self.device.read_to_string(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
        }
        assert_eq!(rest, "");
        self.driver.wait().unwrap();
    }
}

fn a_killed_driver_is_stopped_by_its_guard() {
    let mut robot = Robot::with("guarded");
    robot.driver.kill().unwrap();
    robot.expect("stop all.");
    robot.expect_end();
}

fn a_guard_survives_the_signals_that_end_a_driver() {
    let mut robot = Robot::with("guarded");
    let guards = robot.guards();
    assert_eq!(guards.len(), 1);
    let guard = guards[0];
    until_it_is_a_guard(guard);
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        kill(guard, signal).unwrap();
    }
    robot.driver.kill().unwrap();
    robot.expect("stop all.");
    robot.expect_end();
    // Without this driver, nobody waits for it.
    until(|| !Path::new(&format!("/proc/{guard}/fd/0")).exists());
}

fn a_driver_that_hangs_is_stopped_and_told() {
    let mut robot = Robot::with("guarded");
    kill(robot.pid(), Signal::SIGSTOP).unwrap();
    robot.expect("stop all.");
    kill(robot.pid(), Signal::SIGCONT).unwrap();
    robot.expect("acted.");
    // The end of the driver drops the guard while it is armed.
    robot.stdin = None;
    robot.expect("stop all.");
    robot.expect_end();
}

fn a_lost_guard_is_reported_and_replaced() {
    let mut robot = Robot::with("guarded");
    let first = robot.guards();
    assert_eq!(first.len(), 1);
    kill(first[0], Signal::SIGKILL).unwrap();
    let lost = "nothing would stop what it moves";
    let words = format!("{lost}: the guard has ended (signal: 9 (SIGKILL))");
    let mut received = Vec::new();
    let mut bytes = [0; 1024];
    // Then the driver says that it is well: the new guard has the device.
    until(|| {
        let count = robot.stdout.read(&mut bytes).unwrap();
        assert!(count > 0, "the driver has ended");
        received.extend(&bytes[..count]);
        let said = frames(&received);
        said.iter().any(|it| it.contains(&words))
            && said.last().is_some_and(|it| !it.contains(lost))
    });
    let guards = robot.guards();
    assert!(guards.len() == 1 && guards != first, "{guards:?}");
    robot.driver.kill().unwrap();
    robot.expect("stop all.");
    robot.expect_end();
}

fn a_disarmed_guard_writes_nothing() {
    let mut robot = Robot::with("disarms");
    robot.stdin = None;
    robot.expect("ended.");
    robot.expect_end();
}

/// The whole frames in these bytes, each with its length before it.
fn frames(mut bytes: &[u8]) -> Vec<String> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length));
        let Some((frame, rest)) = rest.split_at_checked(length) else {
            break;
        };
        frames.push(String::from_utf8_lossy(frame).into_owned());
        bytes = rest;
    }
    frames
}

/// Waits until a process has become what it was started for.
fn until_it_is_a_guard(pid: Pid) {
    let path = format!("/proc/{pid}/comm");
    until(|| fs::read_to_string(&path).is_ok_and(|name| name.trim() == "motion-guard"));
}

#[track_caller]
fn until(mut condition: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LIMIT, "it does not happen");
        thread::sleep(Duration::from_millis(5));
    }
}
