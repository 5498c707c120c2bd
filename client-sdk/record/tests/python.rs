//! Recordings are read by the libraries of the MCAP project for Python, with the values that were
//! recorded. IO.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use amber_proto::feed::{Direction, Record, Writer};
use amber_proto::{ClientId, Device, DeviceMessage, DeviceType, SynNum, hokuyo, roboclaw};
use amber_record::Recording;
use amber_reflect::Schemas;
use prost::Message;

const CHECK: &str = "
import sys
from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory
with open(sys.argv[1], 'rb') as file:
    reader = make_reader(file, decoder_factories=[DecoderFactory()])
    found = {}
    for schema, channel, message, value in reader.iter_decoded_messages():
        found.setdefault(channel.topic, []).append((message.log_time, value))
    metadata = {it.name: it.metadata for it in reader.iter_metadata()}
scans = found['/hokuyo/0/scan']
assert len(scans) == 1000, len(scans)
for number, (time, value) in enumerate(scans):
    assert time == 1_700_000_000_000_000_000 + number, time
    assert list(value.scan.distances) == [number, 2000]
    assert list(value.scan.angles) == [0.5, 1.5]
    assert (value.ackNum, list(value.frame.clients)) == (0, [3, 9])
(_, asked), = found['/roboclaw/0/requests/currentSpeedRequest']
assert asked.currentSpeedRequest and asked.synNum == 7
(_, denied), = found['/roboclaw/0/dropped/requests/currentSpeedRequest']
assert denied.frame.dropped == 'access_denied'
(_, opaque), = found['/110/2/message']
assert opaque.message == b'not protobuf'
(_, peer), = found['/amber/peers']
assert (peer.id, peer.address) == (3, '127.0.0.1:4711')
assert metadata['amber.end']['complete'] == 'yes', metadata
";

#[test]
fn python_reads_the_values_that_were_recorded() {
    let mut modules = Command::new("python3");
    modules.args(["-c", "import mcap, mcap_protobuf"]);
    if !modules
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|it| it.success())
    {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP recordings read by Python: no python3 with mcap and mcap-protobuf-support"
        );
        return;
    }
    let mut feed = Vec::new();
    let mut writer = Writer {
        bytes: &mut feed,
        time_ns: 1_700_000_000_000_000_000,
    };
    let hokuyo = Device::new(DeviceType::HOKUYO, 0);
    let roboclaw = Device::new(DeviceType::ROBOCLAW, 0);
    let client = [ClientId(3)];
    writer.start("1.2.3");
    writer.peer(ClientId(3), "127.0.0.1:4711");
    let mut asked = roboclaw::DriverMsg::data();
    asked.current_speed_request = Some(true);
    asked.set_syn(Some(SynNum(7)));
    let asked = asked.encode_to_vec();
    writer.frame(Direction::ToDriver, roboclaw, "", client, &asked);
    writer.frame(
        Direction::ToDriver,
        roboclaw,
        "access_denied",
        client,
        &asked,
    );
    let lamp = Device::new(DeviceType(110), 2);
    writer.frame(Direction::FromDriver, lamp, "", client, b"not protobuf");
    for number in 0..1000 {
        let mut scan = hokuyo::DriverMsg::data();
        scan.set_ack(Some(SynNum(0)));
        scan.scan = Some(hokuyo::Scan {
            angles: vec![0.5, 1.5],
            distances: vec![number, 2000],
        });
        let both = [ClientId(3), ClientId(9)];
        writer.frame(
            Direction::FromDriver,
            hokuyo,
            "",
            both,
            &scan.encode_to_vec(),
        );
        writer.time_ns += 1;
    }
    writer.finish();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("robot.mcap");
    let schemas = Arc::new(Schemas::built_in());
    let mut recording = Recording::new(File::create(&path).unwrap(), schemas).unwrap();
    let mut rest = &feed[..];
    while let Some((record, length)) = Record::parse(rest).unwrap() {
        recording.add(&record).unwrap();
        rest = &rest[length..];
    }
    recording.finish(None).unwrap();
    let mut python = Command::new("python3");
    assert!(
        python
            .args(["-c", CHECK])
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
}
