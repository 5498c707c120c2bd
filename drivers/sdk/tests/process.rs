//! Tests of drivers as processes: their end, and their output on stdout.
//!
//! This program is the test and, with an argument, a driver: a test harness would print to the
//! wire.

#![allow(clippy::unwrap_used)] // Helpers of tests are tests.

#[cfg(target_os = "linux")]
#[path = "process/guarded.rs"]
mod guarded;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Output, Stdio};
use std::{env, error, fs, io, thread};

use amber_driver::proto::dummy::DriverMsg;
use amber_driver::proto::{DeviceMessage, DeviceType, DriverHdr, Packet};
use amber_driver::{Device, Devices, Driver, Link, Request};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use prost::Message;

/// PING and PONG of client 5 with number 7.
const PING: &[u8] = b"\0\x03\x1a\x01\x05\0\x04\x10\x02\x18\x07";
const PONG: &[u8] = b"\0\x03\x1a\x01\x05\0\x04\x10\x03\x20\x07";
/// A request for the status, and the answer of a new Dummy.
const ASK: &[u8] = b"\0\x03\x1a\x01\x05\0\x07\x10\x01\x18\x08\xa0\x03\x01";
const STATUS: &[u8] = b"\0\x03\x1a\x01\x05\0\x11\x10\x01\x20\x08\x90\x03\0\x9a\x03\x07Message";
/// A health report of a driver: no device, `health` with state and text.
const TROUBLE: &[u8] = b"\0\0\0\x0d\x10\x01\xba\x0b\x08\x08\x02\x12\x04lost";

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        Some("chatty") => return amber_driver::serve(Chatty),
        Some("prints before it serves") => return prints_before_it_serves(),
        Some("several") => return amber_driver::serve_many(several()),
        Some("panics") => return amber_driver::serve(Panics),
        Some("panics in a task") => return amber_driver::serve(PanicsInATask),
        #[cfg(target_os = "linux")]
        Some("guarded") => return amber_driver::serve(guarded::Guarded::default()),
        #[cfg(target_os = "linux")]
        Some("disarms") => return amber_driver::serve(guarded::Disarms::default()),
        _ => {}
    }
    the_documented_dummy_answers();
    files_work_like_pipes();
    sigterm_ends_a_driver_cleanly();
    the_end_of_stdin_is_a_failure_if_nothing_reads_stdout();
    an_invalid_frame_ends_the_driver_with_an_error();
    printed_output_does_not_corrupt_the_wire();
    output_before_serving_goes_to_the_log();
    trouble_is_reported_only_to_mediators_that_know_it();
    a_panic_ends_the_process();
    several_devices_share_a_process();
    #[cfg(target_os = "linux")]
    guarded::run();
    ExitCode::SUCCESS
}

fn the_documented_dummy_answers() {
    let output = run(dummy(), &[PING, ASK].concat());
    assert_eq!(output.stdout, [PONG, STATUS].concat());
    assert!(output.status.success());
}

fn files_work_like_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    fs::write(&input, [PING, ASK].concat()).unwrap();
    let status = dummy()
        .stdin(fs::File::open(input).unwrap())
        .stdout(fs::File::create(&output).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(fs::read(output).unwrap(), [PONG, STATUS].concat());
}

fn sigterm_ends_a_driver_cleanly() {
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        let (mut child, mut stdin, mut stdout) = start(dummy());
        stdin.write_all(PING).unwrap();
        let mut pong = vec![0; PONG.len()];
        stdout.read_exact(&mut pong).unwrap();
        assert_eq!(pong, PONG);
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let status = child.wait().unwrap();
        assert!(status.success(), "{signal}: {status}");
    }
}

fn the_end_of_stdin_is_a_failure_if_nothing_reads_stdout() {
    let (mut child, mut stdin, stdout) = start(dummy());
    drop(stdout);
    // The driver may have exited before this write.
    let _ = stdin.write_all(PING);
    drop(stdin);
    // The mediator is gone, and has not stopped the driver.
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

fn an_invalid_frame_ends_the_driver_with_an_error() {
    let output = run(dummy(), b"Hello, driver!\n");
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("cannot read from the mediator: "), "{log}");
}

fn printed_output_does_not_corrupt_the_wire() {
    let output = run(this("chatty"), PING);
    assert_eq!(output.stdout, PONG);
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("printed") && log.contains("logged"), "{log}");
}

fn prints_before_it_serves() -> ExitCode {
    amber_driver::claim_stdout();
    assert!(writeln!(io::stdout(), "printed early").is_ok());
    amber_driver::claim_stdout();
    let child = Command::new("echo").arg("printed by a child").status();
    assert!(child.unwrap().success());
    amber_driver::serve(Chatty)
}

fn output_before_serving_goes_to_the_log() {
    let output = run(this("prints before it serves"), PING);
    assert_eq!(output.stdout, PONG);
    let log = String::from_utf8(output.stderr).unwrap();
    for line in ["printed early", "printed by a child", "printed"] {
        assert!(log.lines().any(|found| found == line), "{line}: {log}");
    }
}

fn trouble_is_reported_only_to_mediators_that_know_it() {
    let mut driver = this("chatty");
    driver.env("AMBER_DEVICE", "dummy:0");
    let output = run(driver, PING);
    let written = output.stdout;
    let told = [TROUBLE, PONG].concat();
    assert!(written == told || written == [PONG, TROUBLE].concat());
    // The mediator uses the level, and adds the name of the driver.
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.lines().any(|line| line == " INFO logged"), "{log}");

    let output = run(this("chatty"), PING);
    assert_eq!(output.stdout, PONG);
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains(" INFO process: logged"), "{log}");
}

fn a_panic_ends_the_process() {
    for driver in ["panics", "panics in a task"] {
        let (child, mut stdin, _stdout) = start(this(driver));
        stdin.write_all(ASK).unwrap();
        // stdin stays open, so its end is not the reason for the exit.
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(101));
        let log = String::from_utf8(output.stderr).unwrap();
        assert!(log.contains("the motor is on fire"), "{log}");
    }
}

fn several_devices_share_a_process() {
    let frame = |id, message: &DriverMsg| {
        let header = DriverHdr {
            device_type: Some(DeviceType::DUMMY.0),
            device_id: Some(id),
            client_ids: vec![5],
        };
        let message = message.encode_to_vec().into();
        Packet { header, message }.encode().unwrap()
    };
    let ask = DriverMsg {
        syn_num: Some(8),
        ..DriverMsg::data()
    };
    let answer = |text: &str| DriverMsg {
        ack_num: Some(8),
        message: Some(text.into()),
        ..DriverMsg::data()
    };
    for (id, text) in [(1, "one"), (2, "two")] {
        let output = run(this("several"), &frame(id, &ask));
        assert_eq!(output.stdout, frame(id, &answer(text)));
        assert!(output.status.success());
    }
    // Device 3 panics.
    let output = run(this("several"), &frame(3, &ask));
    assert_eq!(output.status.code(), Some(101));
}

fn several() -> Devices {
    let dummy = |id| Device::new(DeviceType::DUMMY, id);
    Devices::new()
        .add(dummy(1), Says("one"))
        .add(dummy(2), Says("two"))
        .add(dummy(3), Panics)
}

struct Says(&'static str);

impl Driver for Says {
    type Message = DriverMsg;

    async fn request(&mut self, _: Request<DriverMsg>) -> Option<DriverMsg> {
        Some(DriverMsg {
            message: Some(self.0.into()),
            ..DriverMsg::default()
        })
    }
}

struct Chatty;

impl Driver for Chatty {
    type Message = DriverMsg;

    async fn start(
        &mut self,
        link: Link<DriverMsg>,
    ) -> Result<(), Box<dyn error::Error + Send + Sync>> {
        link.trouble("lost");
        writeln!(io::stdout(), "printed")?;
        tracing::info!("logged");
        Ok(())
    }

    async fn request(&mut self, _: Request<DriverMsg>) -> Option<DriverMsg> {
        None
    }
}

struct Panics;

impl Driver for Panics {
    type Message = DriverMsg;

    async fn request(&mut self, _: Request<DriverMsg>) -> Option<DriverMsg> {
        panic!("the motor is on fire");
    }
}

struct PanicsInATask;

impl Driver for PanicsInATask {
    type Message = DriverMsg;

    async fn request(&mut self, _: Request<DriverMsg>) -> Option<DriverMsg> {
        tokio::spawn(async { panic!("the motor is on fire") });
        None
    }
}

/// The Dummy of the documentation. `cargo test` builds the examples first, unless it builds only
/// one test.
fn dummy() -> Command {
    let this = env::current_exe().unwrap();
    let folder: PathBuf = this.ancestors().nth(2).unwrap().join("examples");
    let program = folder.join(format!("dummy{}", env::consts::EXE_SUFFIX));
    assert!(program.exists(), "run `cargo build --examples` first");
    Command::new(program)
}

fn this(driver: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.arg(driver);
    command
}

fn start(mut driver: Command) -> (Child, ChildStdin, ChildStdout) {
    let mut child = driver
        .env_remove("AMBER_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, stdin, stdout)
}

/// Runs a driver with exactly this on its stdin.
fn run(driver: Command, input: &[u8]) -> Output {
    let (child, mut stdin, mut stdout) = start(driver);
    let input = input.to_vec();
    let writer = thread::spawn(move || stdin.write_all(&input).unwrap());
    let mut written = Vec::new();
    stdout.read_to_end(&mut written).unwrap();
    writer.join().unwrap();
    let mut output = child.wait_with_output().unwrap();
    output.stdout = written;
    output
}
