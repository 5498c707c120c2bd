//! A recording is played: its devices are served to clients.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use amber_client::{Client, WheelSpeeds};
use amber_proto::feed::{Direction, Gap, Record, Writer};
use amber_proto::mediator::{self, DriverState, event};
use amber_proto::{ClientId, Device, DeviceMessage, DeviceType, SynNum};
use amber_proto::{hokuyo, ninedof, roboclaw};
use amber_record::Recording;
use amber_reflect::Schemas;
use nix::pty::openpty;
use prost::Message;
use tempfile::TempDir;

use crate::common::{AMBER, Mediator, PATIENCE, wait_for};

const HOKUYO: Device = Device::new(DeviceType::HOKUYO, 0);
const ROBOCLAW: Device = Device::new(DeviceType::ROBOCLAW, 0);
const NINEDOF: Device = Device::new(DeviceType::NINEDOF, 0);

/// The number of scans in the recording, one each 50 ms.
const SCANS: i32 = 20;

fn scan(number: i32) -> Vec<u8> {
    let mut message = hokuyo::DriverMsg::data();
    message.set_ack(Some(SynNum(0)));
    message.scan = Some(hokuyo::Scan {
        angles: vec![-1.0, 1.0],
        distances: vec![1000 + number, 7],
    });
    message.encode_to_vec()
}

fn speeds(message: impl FnOnce(&mut roboclaw::DriverMsg)) -> Vec<u8> {
    let mut speeds = roboclaw::DriverMsg::data();
    message(&mut speeds);
    speeds.encode_to_vec()
}

fn measured(value: i32) -> Vec<u8> {
    let mut message = ninedof::DriverMsg::data();
    message.set_ack(Some(SynNum(0)));
    let axis = ninedof::AxisData {
        x_axis: value,
        ..ninedof::AxisData::default()
    };
    message.sensor_data = Some(ninedof::SensorData {
        gyro: Some(axis),
        ..ninedof::SensorData::default()
    });
    message.encode_to_vec()
}

/// One second of a robot. The speeds were asked for once, and were 123 mm/s.
fn record(writer: &mut Writer<'_>) {
    const MS: u64 = 1_000_000;
    let start = 1_700_000_000_000 * MS;
    let client = [ClientId(3)];
    writer.time_ns = start;
    writer.start("1.2.3");
    for number in 0..SCANS {
        writer.time_ns = start + number as u64 * 50 * MS;
        let both = [ClientId(3), ClientId(9)];
        writer.frame(Direction::FromDriver, HOKUYO, "", both, &scan(number));
        for (client, value) in [(3, number), (9, -1)] {
            let client = [ClientId(client)];
            writer.frame(Direction::FromDriver, NINEDOF, "", client, &measured(value));
        }
        if number == 5 {
            let asked = speeds(|message| {
                message.set_syn(Some(SynNum(77)));
                message.current_speed_request = Some(true);
            });
            writer.frame(Direction::ToDriver, ROBOCLAW, "", client, &asked);
            let answer = speeds(|message| {
                message.set_ack(Some(SynNum(77)));
                message.current_speed = Some(WheelSpeeds::sides(123, 123).into());
            });
            writer.frame(Direction::FromDriver, ROBOCLAW, "", client, &answer);
        }
        if number == 10 {
            let event = mediator::Event {
                kind: event::Kind::DeviceDown.into(),
                text: Some("killed by signal 9".into()),
                ..mediator::Event::default()
            };
            writer.event(&event.encode_to_vec());
            writer.gap(&Gap {
                first_ns: writer.time_ns - 20 * MS,
                last_ns: writer.time_ns,
                messages: 4,
                bytes: 100,
            });
        }
    }
    writer.finish();
}

fn recording() -> (PathBuf, TempDir) {
    let mut bytes = Vec::new();
    let mut writer = Writer {
        bytes: &mut bytes,
        time_ns: 0,
    };
    record(&mut writer);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("robot yesterday.mcap");
    let file = File::create(&path).unwrap();
    let mut recording = Recording::new(file, Arc::new(Schemas::built_in())).unwrap();
    let mut rest = &bytes[..];
    while let Some((record, length)) = Record::parse(rest).unwrap() {
        recording.add(&record).unwrap();
        rest = &rest[length..];
    }
    recording.finish(None).unwrap();
    (path, folder)
}

fn play(file: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(AMBER);
    command
        .args(["play", "--listen", "127.0.0.1:0"])
        .arg(file)
        .args(more);
    command
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("in time") });
}

#[test]
fn clients_see_the_robot_of_the_recording() {
    let (file, _folder) = recording();
    let mediator = Mediator::run(play(&file, &["--loop", "--rate", "2"]));
    run(async {
        let client = Client::connect(mediator.address).await.unwrap();
        let client = client.with_deadline(PATIENCE);
        // From before the first scan: this test may notice it late.
        let start = Instant::now();
        let mut scans = client.hokuyo(0).scans().await.unwrap();
        let mut numbers = Vec::new();
        while numbers.len() < 2 * SCANS as usize {
            let update = scans.next().await.unwrap();
            let point = update.message.points()[0];
            numbers.push(point.distance_mm - 1000);
            // A scan each 25 ms. One may come late, but none early.
            let least = Duration::from_millis(25) * (numbers.len() as u32).saturating_sub(6);
            assert!(start.elapsed() >= least, "{numbers:?}");
        }
        let follows = |pair: &[i32]| pair[1] == (pair[0] + 1) % SCANS;
        assert!(numbers.windows(2).all(follows), "{numbers:?}");

        // A recorded answer, and a published value.
        let speeds = client.roboclaw(0).speeds().await.unwrap();
        assert_eq!(speeds, WheelSpeeds::sides(123, 123));
        let scan = client.hokuyo(0).scan().await.unwrap();
        assert!((1000..1020).contains(&scan.points()[0].distance_mm));
        client.hokuyo(0).ping().await.unwrap();
        client.close().await;
    });
    wait_for("its output", || {
        let text = mediator.output().join("\n");
        let has_all = text.contains("down: killed by signal 9")
            && text.contains("gap: 4 messages (100 bytes)")
            && text.contains("the recording starts again");
        has_all.then_some(())
    });
}

#[test]
fn what_is_not_in_the_recording_is_refused() {
    let (_file, folder) = recording();
    // The folder stands for the recording in it.
    let mediator = Mediator::run(play(folder.path(), &[]));
    for device in ["roboclaw", "ninedof"] {
        mediator.wait_for_state(device, DriverState::Up);
    }
    let command = "this is a recording: it carries out no commands";
    for (words, why) in [
        (["call", "roboclaw", "drive", "100", "100"], command),
        // As with a driver that does not know the request.
        (
            ["call", "ninedof", "data", "accel", "--timeout=0.5"],
            "no answer from ninedof:0",
        ),
    ] {
        let output = mediator.amber(&words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{said}");
    }
    mediator.wait_for_line("refused a request to ninedof:0: the recording has no answer");
}

#[test]
fn a_stream_that_starts_by_a_request_is_that_of_one_client() {
    let (file, _folder) = recording();
    let mediator = Mediator::run(play(&file, &["--loop"]));
    let words = ["watch", "ninedof", "-n", "10", "--json"];
    let output = mediator.amber(&words).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(text.lines().count(), 10, "{text}");
    assert!(!text.contains("-1"), "{text}");
}

#[test]
fn some_devices_are_played_for_a_mediator_of_your_own() {
    let (file, _folder) = recording();
    let driver = format!(
        "hokuyo:0=amber driver play {} --loop",
        shell_words::quote(file.to_str().unwrap())
    );
    let mediator = Mediator::start(&[&driver, "dummy:0=amber driver dummy"]);
    run(async {
        let client = Client::connect(mediator.address).await.unwrap();
        let mut scans = client.hokuyo(0).scans().await.unwrap();
        for _ in 0..3 {
            scans.next().await.unwrap();
        }
        client.close().await;
    });
}

#[test]
fn a_file_that_cannot_be_played_is_an_error() {
    let (file, folder) = recording();
    let whole = fs::read(&file).unwrap();
    let cut = folder.path().join("cut.mcap");
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "hello").unwrap();
    for (file, more, expected) in [
        (&cut, &[][..], "amber recover"),
        (&text, &[], "cannot play"),
        (&folder.path().join("missing"), &[], "No such file"),
        (
            &file,
            &["--devices", "maestro"],
            "it has ninedof:0, roboclaw:0, hokuyo:0",
        ),
        (&file, &["--from", "5"], "the recording has 0.9 s"),
        (&file, &["--rate", "0"], "0.01 to 1000"),
        (&file, &[file.to_str().unwrap()], "the two overlap in time"),
        (&empty, &[], "no recordings in"),
    ] {
        let output = play(file, more).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

/// A process that ends with the test.
struct Player(Child);

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn keys_control_the_player() {
    let (file, _folder) = recording();
    let terminal = openpty(None, None).unwrap();
    let mut keys = File::from(terminal.master);
    let end = || File::from(terminal.slave.try_clone().unwrap());
    let mut child = Player(
        play(&file, &["--paused"])
            .stdin(end())
            .stdout(end())
            .spawn()
            .unwrap(),
    );
    let mut screen = keys.try_clone().unwrap();
    let (sender, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = screen.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    let mut seen = String::new();
    let mut wait_for_text = |text: &str| {
        let until = Instant::now() + PATIENCE;
        while !seen.contains(text) {
            let left = until.saturating_duration_since(Instant::now());
            let more = received.recv_timeout(left);
            let more = more.unwrap_or_else(|_| panic!("no {text:?} in {seen:?}"));
            seen.push_str(&String::from_utf8_lossy(&more));
        }
        seen.clear();
    };
    wait_for_text("q quits");
    wait_for_text("paused  0:00.0 of 0:00.9 (0 %)  rate 1 ");
    for (key, shown) in [
        (&b"+"[..], "rate 2 "),
        (b"-", "rate 1 "),
        // Right arrow: to the end.
        (b"\x1b[C", "(100 %)"),
        (b"\x1b[D", "paused  0:00.0 of 0:00.9 (0 %)"),
        (b" ", "the recording has ended"),
    ] {
        keys.write_all(key).unwrap();
        wait_for_text(shown);
    }
    keys.write_all(b"q").unwrap();
    wait_for_text("\n");
    assert!(child.0.wait().unwrap().success());
}
