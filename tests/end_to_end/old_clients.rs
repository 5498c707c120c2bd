//! A client that never contacted the mediator itself receives only messages from drivers, because
//! some old clients take every datagram for their reply.

use std::time::Duration;

use amber_client::blocking::Client;
use amber_proto::camera::PictureStream;
use amber_proto::limits::MAX_PART;
use amber_proto::mediator::{self, DriverState};
use amber_proto::{DriverMsg, Frame, HeaderBytes};
use nix::sys::signal::Signal;
use prost::Message;

use crate::camera::Robot;
use crate::common::{Mediator, PATIENCE, device, frame, message, signal, wait_for};

/// Whether this reports that a device is unavailable, with a reason.
fn is_death(datagram: &[u8], of: &str, without_reason: &[u8]) -> bool {
    let sent = Frame::from_datagram(datagram).unwrap();
    let mut message = mediator::DriverMsg::decode(sent.message).unwrap();
    assert!(message.unavailable.take().is_some());
    let header = HeaderBytes::new(Some(device(of)), None);
    sent.header == header.as_slice() && message.encode_to_vec() == without_reason
}

#[test]
fn an_old_client_gets_no_messages_about_deaths_and_unknown_devices() {
    let mediator = Mediator::start(&["77:3=cat"]);
    let (old, new) = (mediator.peer(), mediator.peer());
    new.announce();
    for peer in [&old, &new] {
        peer.wait_for_echo(device("77:3"), b"hello");
    }
    for peer in [&old, &new] {
        peer.send(device("123:4"), b"\x10\x01\x18\x09");
    }
    // The mediator has one thread: when it has answered this client, it has also handled the other.
    let answer = new.receive();
    assert!(is_death(&answer, "123:4", b"\x10\x05\x20\x09"));

    let first = mediator.describe("77:3").pid();
    signal(first, Signal::SIGKILL);
    assert!(is_death(&new.receive(), "77:3", b"\x10\x05"));
    mediator.wait_for_line("killed by signal 9");
    let up = mediator.wait_for_state("77:3", DriverState::Up);
    assert_ne!(up.pid(), first);
    assert!(!old.has_datagram(), "{:02x?}", old.receive());

    // It has not lost anything either.
    old.wait_for_echo(device("77:3"), b"again");
    assert!(!old.has_datagram());
}

#[test]
fn the_end_of_the_mediator_is_silent_for_old_clients() {
    let mut mediator = Mediator::start(&["77:3=cat"]);
    let (old, new) = (mediator.peer(), mediator.peer());
    new.announce();
    for peer in [&old, &new] {
        peer.wait_for_echo(device("77:3"), b"hello");
    }
    signal(mediator.pid(), Signal::SIGTERM);
    assert!(mediator.wait().success());
    assert!(is_death(&new.receive(), "77:3", b"\x10\x05"));
    assert!(!old.has_datagram());
}

#[test]
fn an_old_style_ping_is_forwarded_like_any_message() {
    let mediator = Mediator::start(&["77:3=cat"]);
    let old = mediator.peer();
    let ping = message(amber_proto::MsgType::Ping);
    old.send(device("77:3"), &ping);
    assert_eq!(old.receive(), frame(Some(device("77:3")), &ping));
}

/// SUBSCRIBE as the clients of the original in Java and in Python send it: without and with a number.
const OLD_SUBSCRIBE: [&[u8]; 2] = [b"\x10\x06", b"\x10\x06\x18\x01"];

#[test]
fn old_clients_beside_a_camera_get_nothing_of_its_long_messages() {
    let robot = Robot::of("800x600", &["--camera-rate", "30"]);
    let mediator = Mediator::start(&[
        &format!(
            "camera:0=amber driver camera --url http://{}/stream",
            robot.place
        ),
        "dummy:0=amber driver dummy",
    ]);
    mediator.wait_for_line("INFO ready: pictures of 800 x 600");
    let devices = ["camera:0", "dummy:0"].map(device);
    let old = OLD_SUBSCRIBE.map(|subscribe| {
        let peer = mediator.peer();
        for device in devices {
            peer.send(device, subscribe);
        }
        peer
    });
    // A client that joins pieces gets pictures that are longer than a frame.
    let client = Client::connect(mediator.address).unwrap();
    let camera = client.camera(0);
    let each = Duration::from_millis(1);
    let mut pictures = camera.pictures(each, PictureStream::default()).unwrap();
    for _ in 0..30 {
        let picture = pictures.next_within(PATIENCE).unwrap().message;
        assert!(picture.data().len() > MAX_PART, "{}", picture.data().len());
    }
    for peer in old {
        let mut wanted = devices.to_vec();
        wait_for("published data of both devices", || {
            let datagram = peer.receive();
            let frame = Frame::from_datagram(&datagram).unwrap();
            let DriverMsg {
                piece,
                missing,
                receipt,
                joins,
                ..
            } = DriverMsg::decode(frame.message).unwrap();
            assert_eq!((piece, missing, receipt, joins), Default::default());
            wanted.retain(|it| frame.header != HeaderBytes::new(Some(*it), None).as_slice());
            // Everything that has come meanwhile, too.
            (wanted.is_empty() && !peer.has_datagram()).then_some(())
        });
    }
    client.close();
}
