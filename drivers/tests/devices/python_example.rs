//! Tests that the Python driver fulfils the contract of a Dummy, and that its generated modules
//! match the schemas.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use amber_driver::devices::dummy;
use amber_drivers::dummy::{Dummy, Options};
use amber_proto::{DriverHdr, FrameCodec, Packet};
use bytes::BytesMut;
use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::UdpSocket;
use tokio_util::codec::Decoder;

#[tokio::test]
async fn the_python_example_fulfils_the_contract_of_a_dummy() {
    if !has_protobuf() {
        return;
    }
    let mut driver = tokio::process::Command::new("python3")
        .arg("dummy_driver.py")
        .current_dir(example())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let (stdin, stdout) = (driver.stdin.take().unwrap(), driver.stdout.take().unwrap());
    super::common::check_dummy(stdout, stdin).await;
    assert!(driver.wait().await.unwrap().success());
}

#[tokio::test]
async fn the_python_client_talks_to_a_dummy() {
    if !has_protobuf() {
        return;
    }
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let client = tokio::process::Command::new("python3")
        .args(["dummy_client.py", &socket.local_addr().unwrap().to_string()])
        .current_dir(example())
        .kill_on_drop(true)
        .output();
    let (to_driver, reader) = duplex(4096);
    let (writer, from_driver) = duplex(4096);
    let dummy = dummy::driver(Dummy::new(Options { period_ms: 100 }));
    let output = tokio::select! {
        output = client => output.unwrap(),
        () = mediate(socket, to_driver, from_driver) => unreachable!(),
        _ = amber_driver::serve_on(dummy, reader, writer) => unreachable!(),
    };
    let responses = (1..=10)
        .map(|n| format!("Response {n}\n"))
        .collect::<String>();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        format!("enable: False\nmessage: hello from Python\n{responses}")
    );
    assert!(output.status.success());
}

/// A mediator for one client and one driver.
async fn mediate(socket: UdpSocket, mut to_driver: DuplexStream, mut from_driver: DuplexStream) {
    let (mut datagram, mut client) = (vec![0; 65_536], None);
    let mut stream = BytesMut::new();
    loop {
        tokio::select! {
            received = socket.recv_from(&mut datagram) => {
                let (length, address) = received.unwrap();
                client = Some(address);
                let datagram = datagram[..length].to_vec().into();
                let mut packet = Packet::from_datagram(&datagram).unwrap();
                let device = (packet.header.device_type, packet.header.device_id);
                if device == (Some(0), Some(0)) {
                    // The client announces itself or leaves: a message for the mediator.
                    continue;
                }
                assert_eq!(device, (Some(5), Some(0)));
                packet.header = DriverHdr { client_ids: vec![1], ..DriverHdr::default() };
                to_driver.write_all(&packet.encode().unwrap()).await.unwrap();
            }
            _ = from_driver.read_buf(&mut stream) => {}
        }
        while let Some(mut packet) = FrameCodec.decode(&mut stream).unwrap() {
            assert_eq!(packet.header.client_ids, [1]);
            packet.header = DriverHdr {
                device_type: Some(5),
                device_id: Some(0),
                client_ids: vec![],
            };
            let datagram = packet.encode().unwrap();
            socket.send_to(&datagram, client.unwrap()).await.unwrap();
        }
    }
}

#[test]
fn the_generated_modules_are_up_to_date() {
    if !has_protobuf() {
        return;
    }
    let schemas = FileDescriptorSet::decode(amber_proto::DESCRIPTORS).unwrap();
    for (module, file) in [
        ("drivermsg_pb2", "drivermsg.proto"),
        ("interface_pb2", "interface.proto"),
        ("dummy_pb2", "dummy.proto"),
    ] {
        let print = format!("import {module} as m; print(m.DESCRIPTOR.serialized_pb.hex())");
        let hex = python(&print).unwrap_or_else(|error| panic!("{module}: {error}"));
        let generated = FileDescriptorProto::decode(&*bytes(hex.trim())).unwrap();
        let schema = schemas
            .file
            .iter()
            .find(|schema| schema.name() == file)
            .unwrap();
        assert_eq!(
            essence(generated),
            essence(schema.clone()),
            "run generate.sh"
        );
    }
}

/// The parts on which compilers agree: no comments, and no derived names.
fn essence(mut file: FileDescriptorProto) -> FileDescriptorProto {
    file.source_code_info = None;
    // Remove the default value.
    file.syntax = file.syntax.filter(|syntax| syntax != "proto2");
    let fields = file
        .message_type
        .iter_mut()
        .flat_map(|message| &mut message.field);
    for field in fields.chain(&mut file.extension) {
        field.json_name = None;
    }
    file
}

/// Whether the tests can run; prints the reason if not.
fn has_protobuf() -> bool {
    match python("import google.protobuf") {
        Ok(_) => true,
        Err(reason) => {
            // Not eprintln!, whose output the test harness hides.
            let _ = writeln!(io::stderr(), "SKIP python example: {reason}");
            false
        }
    }
}

/// The output of a few lines of Python, or why they failed.
fn python(code: &str) -> Result<String, String> {
    let output = Command::new("python3")
        .args(["-c", code])
        .current_dir(example())
        .output()
        .map_err(|error| format!("cannot run python3: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(error.lines().last().unwrap_or("python3 failed").into())
}

fn example() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "examples", "python"]
        .iter()
        .collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}
