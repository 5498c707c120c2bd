//! `amber record` and the commands for recordings.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use amber_proto::hokuyo;
use amber_record::{Entry, Info, Messages};
use nix::sys::signal::Signal;
use prost::Message;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{
    AMBER, Mediator, PATIENCE, device, frame, lines_of, ready_demo, signal, wait_for,
};

/// A running `amber record --json`.
pub(crate) struct Recorder {
    child: Child,
    lines: Receiver<String>,
}

impl Recorder {
    /// Starts it in a folder, and waits until everything is recorded.
    pub(crate) fn start(mediator: &Mediator, folder: &TempDir, args: &[&str]) -> Self {
        let mut command = mediator.amber(&["record", "--json"]);
        command.args(args).current_dir(folder);
        // Sockets of this test alone.
        command.env("XDG_RUNTIME_DIR", folder.path());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let recorder = Self { child, lines };
        recorder.wait_for("started");
        recorder
    }

    /// The next line of this kind.
    #[track_caller]
    pub(crate) fn wait_for(&self, state: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).expect(state);
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["state"] == state {
                return line;
            }
        }
    }

    /// Sends Ctrl-C. Returns the report.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Value {
        signal(self.child.id(), Signal::SIGINT);
        let report = self.wait_for("finished");
        assert!(self.child.wait().unwrap().success());
        report
    }

    fn kill(mut self) {
        signal(self.child.id(), Signal::SIGKILL);
        self.child.wait().unwrap();
    }
}

/// `cat` answers every request with the request.
fn echo() -> (Mediator, TempDir) {
    let mediator = Mediator::start(&["5:0=cat"]);
    mediator.peer().wait_for_echo(device("dummy"), b"hello");
    (mediator, tempfile::tempdir().unwrap())
}

/// Sends a message that names its number, and waits for the answer.
fn exchange(peer: &crate::common::Peer, number: u32, bytes: usize) -> Duration {
    let message = numbered(number, bytes);
    let start = Instant::now();
    peer.send(device("dummy"), &message);
    assert_eq!(peer.receive(), frame(Some(device("dummy")), &message));
    start.elapsed()
}

fn numbered(number: u32, bytes: usize) -> Vec<u8> {
    let mut message = format!("number {number} ").into_bytes();
    message.resize(message.len().max(bytes), b'.');
    message
}

/// Topic and message of each frame.
pub(crate) fn frames(path: &Path) -> Vec<(String, Vec<u8>)> {
    let (mut messages, mut all) = (
        Messages::new(File::open(path).unwrap()).unwrap(),
        Vec::new(),
    );
    while messages
        .next(|channels, entry| {
            if let Entry::Message { channel, data, .. } = entry {
                let stored = &channels[&channel];
                let message = stored
                    .message(data)
                    .map(|(_, message)| message.into_owned());
                all.extend(message.map(|message| (stored.topic.clone(), message)));
            }
        })
        .unwrap()
    {}
    all
}

/// What a recording of exchanges must have.
fn both_ways(numbers: std::ops::Range<u32>, bytes: usize) -> Vec<(String, Vec<u8>)> {
    let topics = ["/dummy/0/requests/message", "/dummy/0/message"];
    let of_number = |number| topics.map(|topic| (topic.to_owned(), numbered(number, bytes)));
    numbers.flat_map(of_number).collect()
}

fn info(path: &Path) -> Info {
    Info::read(File::open(path).unwrap()).unwrap()
}

/// Runs a command for recordings in a folder.
fn run(folder: &TempDir, args: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(AMBER);
    let output = command.args(args).current_dir(folder).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    (output.status.success(), out, err)
}

const CHECK: &str = "
import json, sys
from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory
with open(sys.argv[1], 'rb') as file:
    reader = make_reader(file, decoder_factories=[DecoderFactory()])
    scans, speeds, beside, may_draw, due_ns = [], 0, {}, [], 0
    for schema, channel, message, value in reader.iter_decoded_messages():
        if channel.topic == '/hokuyo/0/scan':
            scans.append((list(value.scan.angles), list(value.scan.distances)))
            # At most 50 per second are drawn; a busy machine sends some at once.
            may_draw.append(message.log_time >= due_ns)
            due_ns = message.log_time + 20_000_000 if may_draw[-1] else due_ns
        if channel.topic.startswith('/foxglove/'):
            beside.setdefault(channel.topic, []).append(value)
        speeds += channel.topic == '/roboclaw/0/currentSpeed' and value.HasField('currentSpeed')
    metadata = {it.name: it.metadata for it in reader.iter_metadata()}
assert metadata['amber.end']['complete'] == 'yes', metadata
assert speeds > 0
seen = [(scan['angles'], scan['distances']) for scan in json.load(sys.stdin)]
at = scans.index(seen[0])
assert scans[at:at + len(seen)] == seen
# Viewers draw the same scans, counter-clockwise and in metres, where the robot is on its map.
drawn = [list(it.ranges)[::-1] for it in beside['/foxglove/hokuyo/0/scan']]
metres = lambda mm: mm / 1000 if mm >= 20 else float('inf') if mm == 0 else None
assert any(may_draw[at:at + len(seen)])
for (_, distances), is_drawn in zip(seen, may_draw[at:]):
    wanted = [metres(mm) for mm in distances]
    others = [sum(b is not None and a != b for a, b in zip(it, wanted)) for it in drawn if len(it) == len(wanted)]
    assert not is_drawn or 0 in others, (len(wanted), [len(it) for it in drawn], others)
pose = beside['/foxglove/location/0/pose'][-1].pose.position
assert abs(pose.x - 3.5) < 0.2 and abs(pose.y + 2.6) < 0.2, pose
frames = {(it.parent_frame_id, it.child_frame_id) for it in beside['/foxglove/tf'][-1].transforms}
fixed = {('base_link', 'laser'), ('base_link', 'camera_optical_frame')}
assert frames == {('map', 'base_link')} | fixed, frames
assert len(beside['/foxglove/location/0/walls'][0].entities[0].cubes) > 5
assert beside['/foxglove/robot']
";

#[test]
fn a_recording_has_what_a_client_saw() {
    let (demo, folder) = ready_demo();
    let recorder = Recorder::start(&demo, &folder, &["-o", "demo.mcap"]);
    let client = amber_client::blocking::Client::connect(demo.address).unwrap();
    let mut scans = client.device(device("hokuyo")).subscribe_raw().unwrap();
    let seen: Vec<_> = (0..5).map(|_| scans.next().unwrap().message).collect();
    drop(scans);
    // The first poses of the location driver are guesses.
    let mut poses = client.location(0).poses().unwrap();
    let is_sure = |it: &amber_client::MapPose| it.quality > 0.9;
    while !is_sure(&poses.next().unwrap().message.current_location) {}
    // Its map is recorded when somebody asks for it; other drivers may have done so before.
    client.location(0).map().unwrap();
    let path = folder.path().join("demo.mcap");
    wait_for("pose and walls in the file", || {
        let info = Info::read(File::open(&path).unwrap()).ok()?;
        let has = |topic: &str| info.channels.iter().any(|it| it.topic == topic);
        let is_there = |name| has(&format!("/foxglove/location/0/{name}"));
        ["pose", "walls"].into_iter().all(is_there).then_some(())
    });
    let report = recorder.finish();
    assert_eq!(
        (&report["complete"], &report["gaps"]),
        (&json!(true), &json!(0))
    );
    let all = frames(&path);
    let is_scan = |(topic, _): &&(String, Vec<u8>)| topic == "/hokuyo/0/scan";
    let recorded: Vec<_> = all
        .iter()
        .filter(is_scan)
        .map(|(_, message)| message)
        .collect();
    let at = recorded
        .iter()
        .position(|message| **message == seen[0])
        .unwrap();
    assert!(
        recorded[at..]
            .iter()
            .zip(&seen)
            .all(|(recorded, seen)| **recorded == seen[..])
    );
    assert!(recorded.len() >= at + seen.len());
    for topic in ["/hokuyo/0/requests/subscribe", "/roboclaw/0/currentSpeed"] {
        assert!(all.iter().any(|(other, _)| other == topic), "{topic}");
    }
    // The same through the schemas in the file.
    let (is_done, lines, _) = run(&folder, &["export", "demo.mcap", "--jsonl", "hokuyo"]);
    assert!(is_done);
    let decode = |message: &[u8]| hokuyo::DriverMsg::decode(message).unwrap().scan.unwrap();
    let first = decode(&seen[0]);
    let has_first = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["message"]["scan"]["distances"] == json!(first.distances)
    };
    assert!(lines.lines().any(has_first));
    let table = [
        "export",
        "demo.mcap",
        "--csv",
        "--topic",
        "/roboclaw/0/currentSpeed",
        "-o",
        "t.csv",
    ];
    assert!(run(&folder, &table).0);
    let table = fs::read_to_string(folder.path().join("t.csv")).unwrap();
    assert!(table.starts_with("time_ns,topic,"), "{table}");
    assert!(
        table
            .lines()
            .next()
            .unwrap()
            .contains("currentSpeed.frontLeftSpeed")
    );
    // A reader that has enough, such as `head`, is no error.
    let mut export = Command::new(AMBER);
    export.args(["export", "demo.mcap", "--csv", "hokuyo"]);
    let (out, err) = (Stdio::piped(), Stdio::piped());
    let export = export.current_dir(&folder).stdout(out).stderr(err);
    let mut export = export.spawn().unwrap();
    drop(export.stdout.take());
    let output = export.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");

    if !has_python() {
        return;
    }
    let seen: Vec<_> = seen.iter().map(|message| decode(message)).collect();
    let seen: Vec<_> = seen
        .iter()
        .map(|scan| json!({ "angles": scan.angles, "distances": scan.distances }))
        .collect();
    let mut python = Command::new("python3");
    python.args(["-c", CHECK]).arg(path).stdin(Stdio::piped());
    let mut python = python.spawn().unwrap();
    let input = serde_json::to_vec(&seen).unwrap();
    python.stdin.take().unwrap().write_all(&input).unwrap();
    assert!(python.wait().unwrap().success());
}

fn has_python() -> bool {
    let mut modules = Command::new("python3");
    modules
        .args(["-c", "import mcap, mcap_protobuf"])
        .stderr(Stdio::null());
    let found = modules.status().is_ok_and(|status| status.success());
    if !found {
        let text = "SKIP recordings of the demo read by Python: no python3 with mcap and \
                    mcap-protobuf-support";
        let _ = writeln!(io::stderr(), "{text}");
    }
    found
}

#[test]
fn nothing_is_missing_under_load_and_files_follow_each_other() {
    let (mediator, folder) = echo();
    let args = ["-o", "load.mcap", "--max-size", "3MB", "--compress"];
    let recorder = Recorder::start(&mediator, &folder, &args);
    let (peer, count, bytes) = (mediator.peer(), 3000, 2000);
    for number in 0..count {
        exchange(&peer, number, bytes);
    }
    let report = recorder.finish();
    assert_eq!(report["missing_messages"], 0);
    let files = report["files"].as_array().unwrap();
    let paths = files
        .iter()
        .map(|file| folder.path().join(file["file"].as_str().unwrap()));
    let paths: Vec<PathBuf> = paths.collect();
    assert!(paths[0].ends_with("load-001.mcap"), "{paths:?}");
    let recorded: Vec<_> = paths.iter().flat_map(|path| frames(path)).collect();
    assert!(recorded == both_ways(0..count, bytes));
    assert!(paths.iter().all(|path| info(path).is_complete()));
}

#[test]
fn a_killed_recorder_leaves_a_file_that_is_recovered() {
    let (mediator, folder) = echo();
    let recorder = Recorder::start(&mediator, &folder, &["-o", "killed.mcap"]);
    let (peer, path) = (mediator.peer(), folder.path().join("killed.mcap"));
    for number in 0..100 {
        exchange(&peer, number, 100);
    }
    wait_for("the messages on the disk", || {
        let info = Info::read(File::open(&path).unwrap()).ok()?;
        let topics = info
            .channels
            .iter()
            .filter(|it| it.topic.starts_with("/dummy/0/"));
        (topics.map(|it| it.messages).sum::<u64>() == 200).then_some(())
    });
    recorder.kill();
    assert!(!info(&path).finished);
    let (is_done, out, _) = run(&folder, &["recover", "killed.mcap"]);
    assert!(is_done && out.contains("finished now"), "{out}");
    let path = folder.path().join("killed-recovered.mcap");
    assert!(frames(&path) == both_ways(0..100, 100));
    let info = info(&path);
    assert!(info.finished && !info.is_complete());
    let (_, out, _) = run(&folder, &["info", "killed-recovered.mcap"]);
    assert!(out.contains("complete:  no: recovered"), "{out}");
}

#[test]
fn two_stop_signals_a_moment_apart_are_one() {
    let (mediator, folder) = echo();
    // At each of these times the recorder was at another place when the second one came.
    for (number, apart_ms) in (0_u32..).zip([0, 1, 3, 10]) {
        let name = format!("{apart_ms}.mcap");
        let recorder = Recorder::start(&mediator, &folder, &["-o", &name]);
        let peer = mediator.peer();
        for message in 0..50 {
            exchange(&peer, 50 * number + message, 100);
        }
        let process = recorder.child.id();
        signal(process, Signal::SIGINT);
        // A pause, not a wait: the second signal must come while the recorder finishes.
        thread::sleep(Duration::from_millis(apart_ms));
        // It may have ended already.
        let pid = nix::unistd::Pid::from_raw(process.cast_signed());
        let _ = nix::sys::signal::kill(pid, Signal::SIGINT);
        let mut recorder = recorder;
        assert!(recorder.child.wait().unwrap().success(), "{apart_ms} ms");
        assert!(info(&folder.path().join(name)).is_complete());
    }
}

#[test]
fn a_damaged_recording_keeps_what_is_intact_and_the_loss_is_said() {
    let (mediator, folder) = echo();
    let recorder = Recorder::start(&mediator, &folder, &["-o", "drive.mcap"]);
    let peer = mediator.peer();
    // About three chunks.
    for number in 0..1000 {
        exchange(&peer, number, 2000);
    }
    recorder.finish();
    let path = folder.path().join("drive.mcap");
    let mut bytes = fs::read(&path).unwrap();
    let wanted = numbered(600, 2000);
    let at = bytes
        .windows(wanted.len())
        .position(|it| *it == wanted)
        .unwrap();
    bytes[at + 100] ^= 1;
    fs::write(&path, &bytes).unwrap();

    // Readers say it.
    let (_, out, _) = run(&folder, &["info", "drive.mcap"]);
    assert!(out.contains("damage:") && out.contains("checksum"), "{out}");
    assert!(out.contains("complete:  no: it is damaged"), "{out}");
    let (_, _, err) = run(&folder, &["export", "drive.mcap", "--jsonl"]);
    assert!(err.contains("drive.mcap is damaged"), "{err}");

    // The source stays, because something would be lost.
    let (is_done, out, err) = run(&folder, &["recover", "drive.mcap", "-o", "drive.mcap"]);
    assert!(!is_done && err.contains("was not replaced"), "{out}{err}");
    assert_eq!(fs::read(&path).unwrap(), bytes);

    let (is_done, out, err) = run(&folder, &["recover", "drive.mcap"]);
    assert!(!is_done && err.contains("is lost"), "{out}{err}");
    assert!(
        out.contains("damage: the checksum of a chunk is wrong"),
        "{out}"
    );
    let new = folder.path().join("drive-recovered.mcap");
    let kept = frames(&new);
    assert!(kept.len() > 800 && kept.len() < 2000, "{}", kept.len());
    let all = both_ways(0..1000, 2000);
    assert!(kept.iter().all(|frame| all.contains(frame)));
    let (_, out, _) = run(&folder, &["info", "drive-recovered.mcap"]);
    assert!(out.contains("complete:  no: recovered"), "{out}");
    assert!(out.contains("gap: "), "{out}");

    // A file that loses nothing is replaced, in one step.
    let (is_done, out, _) = run(
        &folder,
        &["recover", "drive-recovered.mcap", "-o", "drive.mcap"],
    );
    assert!(is_done, "{out}");
    let same = ["recover", "drive.mcap", "-o", "drive.mcap"];
    assert!(run(&folder, &same).0);
    assert!(frames(&path) == kept);
}

#[test]
fn a_disk_that_stalls_delays_nobody_and_the_gap_is_exact() {
    let (mediator, folder) = echo();
    let path = folder.path().join("pipe");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    // Until it is told, it only holds the pipe open.
    let (go, gone) = std::sync::mpsc::channel::<()>();
    let disk = thread::spawn({
        let path = path.clone();
        move || {
            let mut pipe = File::open(path).unwrap();
            gone.recv().unwrap();
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).unwrap();
            bytes
        }
    });
    let recorder = Recorder::start(&mediator, &folder, &["-o", "pipe", "--buffer", "1MB"]);
    let (peer, bytes) = (mediator.peer(), 30_000);
    let (count, mut longest) = (600, Duration::ZERO);
    for number in 0..count {
        longest = longest.max(exchange(&peer, number, bytes));
    }
    // One that waits for the disk would wait forever.
    assert!(longest < Duration::from_secs(2), "{longest:?}");
    go.send(()).unwrap();
    let report = recorder.finish();
    let file = disk.join().unwrap();
    let info = Info::read(io::Cursor::new(&file[..])).unwrap();
    let missing: u64 = info.gaps.iter().map(|gap| gap.messages).sum();
    let missing_bytes: u64 = info.gaps.iter().map(|gap| gap.bytes).sum();
    let topics = info
        .channels
        .iter()
        .filter(|it| it.topic.starts_with("/dummy/0/"));
    let recorded: u64 = topics.map(|it| it.messages).sum();
    assert!(missing > 0 && recorded > 0, "{missing} {recorded}");
    assert_eq!(recorded + missing, 2 * u64::from(count));
    assert_eq!(missing_bytes, missing * bytes as u64);
    assert_eq!(report["missing_messages"], missing);
    assert_eq!(
        (&report["complete"], info.is_complete()),
        (&json!(false), false)
    );
}

#[test]
fn a_snapshot_has_the_last_seconds_when_it_is_asked_for_or_a_driver_dies() {
    let (mediator, folder) = echo();
    let recorder = Recorder::start(&mediator, &folder, &["--snapshot", "30s"]);
    let snapshot = |remark: &str| {
        let mut command = mediator.amber(&["snapshot", "--json", remark]);
        command.env("XDG_RUNTIME_DIR", folder.path());
        command.output().unwrap()
    };
    for number in 0..50 {
        exchange(&mediator.peer(), number, 100);
    }
    let output = snapshot("it turned left");
    let written: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(written["reason"], "it turned left");
    let path = PathBuf::from(written["file"].as_str().unwrap());
    assert!(frames(&path) == both_ways(0..50, 100));
    assert!(info(&path).is_complete());
    assert_eq!(
        info(&path).metadata["amber.snapshot"]["reason"],
        "it turned left"
    );
    assert_eq!(recorder.wait_for("snapshot")["messages"], 100);
    // What was ordered is no surprise, but a death is.
    let restarted = mediator.amber(&["restart", "dummy"]).output().unwrap();
    assert!(restarted.status.success());
    mediator.peer().wait_for_echo(device("dummy"), b"again");
    signal(mediator.describe("dummy").pid(), Signal::SIGKILL);
    let own = recorder.wait_for("snapshot");
    let reason = own["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("dummy:0 is down: killed by signal 9"),
        "{reason}"
    );
    let path = folder.path().join(own["file"].as_str().unwrap());
    assert!(frames(&path).starts_with(&both_ways(0..50, 100)));
    assert_eq!(recorder.finish()["files"].as_array().unwrap().len(), 2);
    let late = snapshot("");
    assert!(!late.status.success());
    let text = String::from_utf8(late.stderr).unwrap();
    assert!(
        text.contains("no recorder holds") && text.contains("hint: "),
        "{text}"
    );
}

#[test]
fn a_recorder_says_why_it_cannot_record() {
    let (mediator, folder) = echo();
    fs::write(folder.path().join("old.mcap"), "precious").unwrap();
    for (args, text) in [
        (&["-o", "old.mcap"][..], "old.mcap already exists\nhint: "),
        (&["-o", "none/new.mcap"], "No such file or directory"),
        (
            &["-o", "/dev/full", "--for", "0.1"],
            "the disk is full\nhint: ",
        ),
        (&["--max-size", "20kB"], "--max-size is too small\nhint: "),
        (
            &["-o", "-", "--snapshot", "5"],
            "snapshots cannot go to stdout\nhint: ",
        ),
    ] {
        let mut command = mediator.amber(&["record"]);
        let output = command.args(args).current_dir(&folder).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && said.contains(text),
            "{args:?}: {said}"
        );
    }
    let old = fs::read(folder.path().join("old.mcap")).unwrap();
    assert_eq!(old, b"precious");
    let (is_done, _, said) = run(&folder, &["info", "old.mcap"]);
    assert!(
        !is_done && said.contains("old.mcap is not a recording"),
        "{said}"
    );
    assert!(said.contains("\nhint: "), "{said}");
}

#[test]
fn the_end_of_the_mediator_ends_a_recording() {
    let (mut mediator, folder) = echo();
    let [orderly, killed] = ["orderly.mcap", "killed.mcap"].map(|name| folder.path().join(name));
    let recorder = Recorder::start(&mediator, &folder, &["-o", "orderly.mcap"]);
    signal(mediator.pid(), Signal::SIGTERM);
    assert_eq!(recorder.wait_for("finished")["complete"], true);
    assert!(mediator.wait().success() && info(&orderly).is_complete());
    let (mut mediator, _) = echo();
    let mut recorder = Recorder::start(&mediator, &folder, &["-o", "killed.mcap"]);
    exchange(&mediator.peer(), 0, 100);
    signal(mediator.pid(), Signal::SIGKILL);
    mediator.wait();
    assert_eq!(recorder.wait_for("finished")["complete"], false);
    assert!(!recorder.child.wait().unwrap().success());
    let end = &info(&killed).metadata["amber.end"];
    assert_eq!(end["end"], "the connection to the mediator was lost");
}

#[test]
fn a_recording_has_the_shape_of_the_robot() {
    let (demo, _devices) = ready_demo();
    let asked = || demo.amber(&["call", "robot", "shape"]).output().unwrap();
    wait_for("the robot device", || {
        asked().status.success().then_some(())
    });
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::start(&demo, &folder, &["-o", "shape.mcap"]);
    recorder.finish();
    let frames = frames(&folder.path().join("shape.mcap"));
    let shape = frames.iter().find(|(topic, _)| topic == "/robot/0/shape");
    let (_, message) = shape.unwrap_or_else(|| {
        let topics: std::collections::BTreeSet<_> = frames.iter().map(|(topic, _)| topic).collect();
        panic!("{topics:?}")
    });
    let message = amber_proto::robot::DriverMsg::decode(&message[..]).unwrap();
    assert_eq!(message.shape.unwrap().length, Some(0.37));
}
