//! Pictures in recordings, in viewers and played again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use amber_client::blocking::Client;
use amber_proto::camera::{self, Picture, PictureRequest, PictureStream};
use amber_proto::mediator::DriverState;
use amber_record::{Entry, Info, Messages};
use prost::Message;
use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::client::IntoClientRequest;

use crate::camera::Robot;
use crate::common::{AMBER, Mediator, PATIENCE, Running, wait_for};

/// A mediator with a calibrated camera in its place on the robot.
fn camera(folder: &TempDir, size: &str) -> (Robot, Mediator) {
    let robot = Robot::with_pictures_of(size);
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let calibration = file("camera.yaml", &robot.file("camera.yaml"));
    let shape = "laser_offset_mm = 100\ntrack_mm = 400\nlength_mm = 370\nwidth_mm = 330\n\
                 camera_offset_mm = 120\ncamera_height_mm = 250\n";
    let shape = file("robot.toml", shape);
    let place = &robot.place;
    let mediator = Mediator::start(&[
        &format!(
            "camera:0=amber driver camera --url http://{place}/stream --idle-s 1 \
             --calibration {calibration}"
        ),
        &format!("robot:0=amber driver robot --config {shape}"),
    ]);
    let ready = format!("INFO ready: pictures of {}", size.replace('x', " x "));
    mediator.wait_for_line(&ready);
    mediator.wait_for_line("up driver=robot:0");
    (robot, mediator)
}

/// Time and content of the pictures of a recording.
fn pictures(path: &Path) -> Vec<(u64, Picture)> {
    let mut messages = Messages::new(File::open(path).unwrap()).unwrap();
    let mut all = Vec::new();
    while messages
        .next(|channels, entry| {
            let Entry::Message {
                channel,
                header,
                data,
                ..
            } = entry
            else {
                return;
            };
            let stored = &channels[&channel];
            if stored
                .about
                .get("direction")
                .is_some_and(|it| it == "from driver")
                && stored.about["device"] == "camera:0"
            {
                let (framing, message) = stored.message(data).unwrap();
                assert!(!framing.clients.is_empty());
                let message = camera::DriverMsg::decode(&*message).unwrap();
                all.extend(message.picture.map(|picture| (header.log_time, picture)));
            }
        })
        .unwrap()
    {}
    all
}

/// Records until the recording has so many pictures.
fn record(mediator: &Mediator, folder: &TempDir, watch: &str, least: u64, more: &[&str]) -> Value {
    let mut args = vec!["record", "--json", "--watch", watch, "-o"];
    let path = folder.path().join("drive.mcap");
    args.push(path.to_str().unwrap());
    args.extend(more);
    let mut recorder = Running::start(mediator, &args);
    wait_for("pictures", || {
        let line: Value = serde_json::from_str(&recorder.line()).unwrap();
        // Some are requests, and others are about the camera and the robot.
        (line["messages"].as_u64()? > 2 * least).then_some(())
    });
    recorder.interrupt();
    let info = mediator
        .amber(&["info", "--json", path.to_str().unwrap()])
        .output();
    serde_json::from_slice(&info.unwrap().stdout).unwrap()
}

fn channel<'a>(info: &'a Value, topic: &str) -> Option<&'a Value> {
    let channels = info["channels"].as_array().unwrap();
    channels.iter().find(|it| it["topic"] == topic)
}

#[test]
fn every_picture_is_recorded_once_exported_and_played() {
    let folder = tempfile::tempdir().unwrap();
    let (robot, mediator) = camera(&folder, "640x480");
    // Another client gets each picture, too.
    let (told, last) = mpsc::channel();
    let address = mediator.address;
    let other = thread::spawn(move || watch_until(address, &last));
    let info = record(&mediator, &folder, "camera:0", 60, &[]);
    let path = folder.path().join("drive.mcap");
    let file = path.to_str().unwrap();
    assert_eq!(info["complete"], true, "{info}");

    let recorded = pictures(&path);
    let numbers: BTreeSet<u32> = recorded.iter().map(|(_, it)| it.sequence()).collect();
    let (first, last) = (*numbers.first().unwrap(), *numbers.last().unwrap());
    told.send(last).unwrap();
    let seen = other.join().unwrap();
    assert!(seen.range(first..=last).count() > 20, "{seen:?}");
    let missing: Vec<_> = seen
        .range(first..=last)
        .filter(|it| !numbers.contains(it))
        .collect();
    assert!(missing.is_empty(), "{missing:?} of {first} to {last}");
    assert_eq!(numbers.len(), (last - first + 1) as usize, "{numbers:?}");

    // Each is in the file once, and little else.
    let mut known = BTreeMap::new();
    for (_, picture) in &recorded {
        assert!(picture.data().starts_with(b"\xff\xd8\xff"));
        assert!(
            known.insert(picture.sequence(), picture.clone()).is_none(),
            "twice"
        );
    }
    let bytes: usize = recorded.iter().map(|(_, it)| it.data().len()).sum();
    let whole = fs::metadata(&path).unwrap().len() as usize;
    let others = whole - bytes - fixed_part(&path);
    assert!(
        others * 20 <= bytes,
        "{others} bytes beside {bytes} of pictures"
    );
    let stored = channel(&info, "/foxglove/camera/0/picture").unwrap();
    assert_eq!(stored["messages"], recorded.len());
    assert_eq!(stored["schema"], "foxglove.CompressedImage");
    assert!(channel(&info, "/camera/0/picture").is_none(), "{info}");
    assert!(channel(&info, "/camera/0/camera_info").is_some(), "{info}");
    assert!(
        channel(&info, "/foxglove/camera/0/calibration").is_some(),
        "{info}"
    );

    export(&mediator, &folder, &known);
    check_with_python(file, recorded.len());
    drop((mediator, robot));
    play(file, &known);
}

/// The numbers of the pictures that a client gets, until a later one than the last that matters.
fn watch_until(mediator: SocketAddr, last: &mpsc::Receiver<u32>) -> BTreeSet<u32> {
    let client = Client::connect(mediator).unwrap();
    let each = Duration::from_millis(1);
    let camera = client.camera(0);
    let mut pictures = camera.pictures(each, PictureStream::default()).unwrap();
    let (mut seen, mut until) = (BTreeSet::new(), None);
    while until.is_none_or(|until| seen.last().is_none_or(|number| *number <= until)) {
        let update = pictures.next_within(PATIENCE).unwrap();
        seen.insert(update.message.sequence());
        until = until.or_else(|| last.try_recv().ok());
    }
    client.close();
    seen
}

/// The descriptions of devices, which the file has twice.
fn fixed_part(path: &Path) -> usize {
    let mut messages = Messages::new(File::open(path).unwrap()).unwrap();
    while messages.next(|_, _| {}).unwrap() {}
    let mut schemas = BTreeMap::new();
    for stored in messages.channels().values() {
        schemas.insert(stored.schema.clone(), stored.descriptors.len());
    }
    2 * schemas.values().sum::<usize>()
}

fn export(mediator: &Mediator, folder: &TempDir, known: &BTreeMap<u32, Picture>) {
    let path = folder.path().join("drive.mcap");
    let to = folder.path().join("pictures");
    let (file, to_text) = (path.to_str().unwrap(), to.to_str().unwrap());
    let args = ["export", file, "camera:0", "--jpeg", to_text, "--json"];
    let output = mediator.amber(&args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["pictures"], known.len(), "{told}");
    let index = fs::read_to_string(to.join("index.csv")).unwrap();
    let mut rows = index.lines();
    let head = "file,captured_us,sequence,width,height,damaged";
    assert_eq!(rows.next(), Some(head));
    let rows: Vec<Vec<_>> = rows.map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), known.len());
    for row in &rows {
        let number: u32 = row[2].parse().unwrap();
        let picture = &known[&number];
        assert_eq!(fs::read(to.join(row[0])).unwrap(), picture.data());
        let captured = picture.captured().to_string();
        let expected = [&*captured, row[2], "640", "480", "false"];
        assert_eq!(row[1..], expected);
    }
    // Nothing is replaced.
    let output = mediator.amber(&args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("is not empty"),
        "{said}"
    );
    // Tables have no pictures.
    let args = [
        "export",
        file,
        "--csv",
        "--topic",
        "/foxglove/camera/0/picture",
    ];
    let output = mediator.amber(&args).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(
        table.contains(" bytes>") && table.lines().all(|line| line.len() < 300),
        "{table}"
    );
}

/// What programs for Python read, without Amber.
const CHECK: &str = "
import sys
from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory
from foxglove_schemas_protobuf.CameraCalibration_pb2 import CameraCalibration
from foxglove_schemas_protobuf.CompressedImage_pb2 import CompressedImage
found = {}
with open(sys.argv[1], 'rb') as file:
    reader = make_reader(file, decoder_factories=[DecoderFactory()])
    for schema, channel, message, value in reader.iter_decoded_messages():
        found.setdefault(channel.topic, []).append((schema.name, message, value))
pictures = found['/foxglove/camera/0/picture']
assert len(pictures) == int(sys.argv[2]), len(pictures)
for name, message, value in pictures:
    for image in (value, CompressedImage.FromString(message.data)):
        assert name == 'foxglove.CompressedImage' and image.format == 'jpeg'
        assert image.data[:2] == b'\\xff\\xd8' and image.frame_id == 'camera_optical_frame'
        assert abs(image.timestamp.ToNanoseconds() - message.log_time) < 5_000_000_000
name, message, value = found['/foxglove/camera/0/calibration'][0]
for optics in (value, CameraCalibration.FromString(message.data)):
    assert (optics.width, optics.height, optics.frame_id) == (640, 480, 'camera_optical_frame')
    assert abs(optics.K[0] - 457.0) < 0.1 and optics.K[2] == 319.5, optics
    assert len(optics.R) == 9 and len(optics.P) == 12
transforms = [it for _, _, tf in found['/foxglove/tf'] for it in tf.transforms]
place = [it for it in transforms if it.child_frame_id == 'camera_optical_frame'][-1]
at, turn = place.translation, place.rotation
assert place.parent_frame_id == 'base_link'
assert (at.x, at.y, at.z) == (0.12, 0, 0.25), at
assert (turn.x, turn.y, turn.z, turn.w) == (-0.5, 0.5, -0.5, 0.5), turn
";

fn check_with_python(file: &str, count: usize) {
    let python = |args: &[&str]| Command::new("python3").args(args).output();
    let modules = "import mcap, mcap_protobuf, foxglove_schemas_protobuf";
    if !python(&["-c", modules]).is_ok_and(|it| it.status.success()) {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP pictures read by Python: no python3 with mcap, mcap-protobuf-support and \
             foxglove-schemas-protobuf"
        );
        return;
    }
    let output = python(&["-c", CHECK, file, &count.to_string()]).unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn play(file: &str, known: &BTreeMap<u32, Picture>) {
    let mut command = Command::new(AMBER);
    command.args(["play", "--listen", "127.0.0.1:0", "--loop", file]);
    command.stdin(Stdio::null());
    let player = Mediator::run(command);
    player.wait_for_state("camera", DriverState::Up);
    let client = Client::connect(player.address).unwrap();
    let client = client.with_deadline(PATIENCE);
    let camera = client.camera(0);
    // Whatever its size, it is the recorded picture.
    let small = PictureRequest {
        max_width: Some(160),
        ..PictureRequest::default()
    };
    let picture = camera.picture(small).unwrap();
    assert_eq!(known[&picture.sequence()], picture);
    let calibration = camera.info().unwrap().calibration.unwrap();
    assert_eq!(calibration.cx(), 319.5);
    let steps = |period_ms: u64| {
        let period = Duration::from_millis(period_ms);
        let mut pictures = camera.pictures(period, PictureStream::default()).unwrap();
        let mut numbers = Vec::new();
        while numbers.len() < 6 {
            let update = pictures.next_within(PATIENCE).unwrap();
            let picture = update.message;
            assert_eq!(known[&picture.sequence()], picture);
            numbers.push(picture.sequence());
        }
        let pairs = numbers.windows(2);
        let steps = pairs.filter_map(|pair| pair[1].checked_sub(pair[0]));
        steps.max().unwrap()
    };
    assert!(steps(1) < steps(1000), "one each second");
    client.close();
}

#[test]
fn a_recorder_asks_as_it_is_told_and_hints_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let (_robot, mediator) = camera(&folder, "320x240");
    wait_for("a camera that is off", || {
        let client = Client::connect(mediator.address).unwrap();
        let info = client.camera(0).info().unwrap();
        client.close();
        (!info.is_on()).then_some(())
    });
    let path = folder.path().join("without.mcap");
    let path = path.to_str().unwrap();
    let output = mediator
        .amber(&["record", "--for", "0.5", "-o", path])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success() && said.contains("`--watch camera:0`"),
        "{said}"
    );

    // The raw form, and of a device that was not named.
    let more = ["--raw", "robot:0"];
    let info = record(&mediator, &folder, "camera:0@2Hz,160px", 5, &more);
    let raw = channel(&info, "/camera/0/picture").unwrap();
    assert!(
        channel(&info, "/foxglove/camera/0/picture").is_none(),
        "{info}"
    );
    let recorded = pictures(&folder.path().join("drive.mcap"));
    assert_eq!(raw["messages"], recorded.len());
    assert!(recorded.iter().all(|(_, it)| it.width() == 160));
    let spread_us = recorded.last().unwrap().1.captured() - recorded[0].1.captured();
    let mean_us = spread_us / (recorded.len() as i64 - 1);
    assert!(mean_us > 300_000, "{mean_us}");

    let output = mediator
        .amber(&["record", "--watch", "hokuyo"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("hokuyo:0 is no camera"),
        "{said}"
    );
}

#[test]
fn a_viewer_switches_the_camera_on_and_sees_its_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let (_robot, mediator) = camera(&folder, "320x240");
    let mut server = Running::start(&mediator, &["foxglove", "--listen", "127.0.0.1:0"]);
    let line = server.line();
    let address = line.rsplit("ws://").next().unwrap().trim_end_matches('/');
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut request = format!("ws://{address}/").into_client_request().unwrap();
    let protocol = "foxglove.sdk.v1".parse().unwrap();
    request
        .headers_mut()
        .insert("sec-websocket-protocol", protocol);
    let (mut viewer, _) = tungstenite::client(request, stream).unwrap();
    let wanted = [
        "/foxglove/camera/0/picture",
        "/foxglove/camera/0/calibration",
        "/foxglove/tf",
    ];
    let mut channels = BTreeMap::new();
    while channels.len() < wanted.len() {
        let tungstenite::Message::Text(text) = viewer.read().unwrap() else {
            continue;
        };
        let told: Value = serde_json::from_str(&text).unwrap();
        for channel in told["channels"].as_array().into_iter().flatten() {
            if let Some(number) = wanted.iter().position(|it| channel["topic"] == **it) {
                channels.insert(number, channel["id"].clone());
            }
        }
    }
    let subscriptions: Vec<_> = channels
        .iter()
        .map(|(number, id)| json!({ "id": number, "channelId": id }))
        .collect();
    let subscribe = json!({ "op": "subscribe", "subscriptions": subscriptions });
    viewer
        .send(tungstenite::Message::text(subscribe.to_string()))
        .unwrap();
    // Operation, subscription, time, data.
    const HEAD: usize = 1 + 4 + 8;
    let mut seen: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    while seen.len() < wanted.len() {
        if let tungstenite::Message::Binary(bytes) = viewer.read().unwrap() {
            let subscription = u32::from_le_bytes(bytes[1..5].try_into().unwrap());
            seen.insert(subscription, bytes[HEAD..].to_vec());
        }
    }
    let has = |number: u32, text: &[u8]| seen[&number].windows(text.len()).any(|it| it == text);
    assert!(has(0, b"\xff\xd8\xff") && has(0, b"camera_optical_frame"));
    assert!(has(1, b"plumb_bob") && has(2, b"camera_optical_frame"));

    // Without the viewer, it is off again.
    drop(viewer);
    let client = Client::connect(mediator.address).unwrap();
    wait_for("a camera that is off", || {
        (!client.camera(0).info().unwrap().is_on()).then_some(())
    });
    client.close();
    server.interrupt();
}

#[test]
fn a_camera_that_nobody_watches_has_no_pictures_to_export() {
    let folder = tempfile::tempdir().unwrap();
    let mediator = Mediator::start(&["dummy:0=amber driver dummy"]);
    let path = folder.path().join("dummy.mcap");
    let path = path.to_str().unwrap();
    assert!(
        mediator
            .amber(&["record", "--for", "0.5", "-o", path])
            .status()
            .unwrap()
            .success()
    );
    let to = folder.path().join("pictures");
    let args = ["export", path, "--jpeg", to.to_str().unwrap()];
    let output = mediator.amber(&args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("no such pictures"),
        "{said}"
    );
    assert!(!to.exists());
    // The recording is complete nevertheless.
    assert!(Info::read(File::open(path).unwrap()).unwrap().is_complete());
}
