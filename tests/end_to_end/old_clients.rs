//! A client that never spoke to the mediator itself sees only what drivers
//! send it: some take every datagram for the answer that they wait for.

use amber_proto::mediator::{self, DriverState};
use amber_proto::{Frame, HeaderBytes};
use nix::sys::signal::Signal;
use prost::Message;

use crate::common::{Mediator, device, frame, message, signal};

/// Whether this says that a device cannot be used, and gives a reason.
fn is_death(datagram: &[u8], of: &str, without_reason: &[u8]) -> bool {
    let sent = Frame::from_datagram(datagram).unwrap();
    let mut message = mediator::DriverMsg::decode(sent.message).unwrap();
    assert!(message.unavailable.take().is_some());
    let header = HeaderBytes::new(Some(device(of)), None);
    sent.header == header.as_slice() && message.encode_to_vec() == without_reason
}

#[test]
fn an_old_client_hears_nothing_of_deaths_and_unknown_devices() {
    let mediator = Mediator::start(&["77:3=cat"]);
    let (old, new) = (mediator.peer(), mediator.peer());
    new.announce();
    for peer in [&old, &new] {
        peer.wait_for_echo(device("77:3"), b"hello");
    }
    for peer in [&old, &new] {
        peer.send(device("123:4"), b"\x10\x01\x18\x09");
    }
    // The mediator has one thread: what it answers the one, it has decided for
    // the other.
    let answer = new.receive();
    assert!(is_death(&answer, "123:4", b"\x10\x05\x20\x09"));

    let first = mediator.describe("77:3").pid();
    signal(first, Signal::SIGKILL);
    assert!(is_death(&new.receive(), "77:3", b"\x10\x05"));
    mediator.wait_for_line("killed by signal 9");
    let up = mediator.wait_for_state("77:3", DriverState::Up);
    assert_ne!(up.pid(), first);
    assert!(!old.has_datagram(), "{:02x?}", old.receive());

    // Neither has it lost anything.
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
fn a_ping_of_an_old_kind_is_forwarded_like_any_message() {
    let mediator = Mediator::start(&["77:3=cat"]);
    let old = mediator.peer();
    let ping = message(amber_proto::MsgType::Ping);
    old.send(device("77:3"), &ping);
    assert_eq!(old.receive(), frame(Some(device("77:3")), &ping));
}
