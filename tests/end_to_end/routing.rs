//! Frames are routed through real sockets and pipes, and no input stops the mediator.

use std::io::Write;
use std::thread;

use amber_proto::mediator::{self, reply, request};

use crate::common::{Mediator, device, frame};

/// `cat` is an echo driver: it copies stdin to stdout.
const ECHO: &str = "77:3=cat";

#[test]
fn an_echo_of_every_size() {
    let mediator = Mediator::start(&[ECHO]);
    let peer = mediator.peer();
    for size in [0, 1, 100, 3000, 20_000, 32_767] {
        let message: Vec<u8> = (0..size).map(|i| (i * 7) as u8).collect();
        peer.send(device("77:3"), &message);
        assert!(
            peer.receive() == frame(Some(device("77:3")), &message),
            "{size} bytes"
        );
    }
}

#[test]
fn many_simultaneous_clients_each_get_their_own_replies() {
    let mediator = Mediator::start(&[ECHO]);
    thread::scope(|scope| {
        for client in 0u32..8 {
            let peer = mediator.peer();
            scope.spawn(move || {
                for number in 0u32..200 {
                    let message = [client.to_be_bytes(), number.to_be_bytes()].concat();
                    peer.send(device("77:3"), &message);
                    assert_eq!(peer.receive(), frame(Some(device("77:3")), &message));
                }
            });
        }
    });
}

/// Datagrams passed to the system as one packet arrive as separate datagrams, in order.
#[test]
fn replies_sent_at_once_arrive_as_separate_datagrams() {
    // The driver collects a hundred frames of 20 bytes and writes them at once. One of them is a
    // PING, so the last frames are never completed.
    let gather = "77:3=dd bs=2000 iflag=fullblock status=none";
    let mediator = Mediator::start(&[gather]);
    let peer = mediator.peer();
    let message = |number: u32| format!("message {number:5}").into_bytes();
    (0..150).for_each(|number| peer.send(device("77:3"), &message(number)));
    for number in 0..90 {
        assert_eq!(
            peer.receive(),
            frame(Some(device("77:3")), &message(number))
        );
    }
}

#[test]
fn malformed_datagrams_change_only_counters() {
    let mediator = Mediator::start(&[ECHO]);
    let (good, bad) = (mediator.peer(), mediator.peer());
    good.wait_for_echo(device("77:3"), b"before");
    let malformed: [(&str, &[u8]); 7] = [
        ("datagram_empty", b""),
        ("datagram_short", b"\x01"),
        ("datagram_short", b"\0\x04\x08"),
        ("datagram_header_length", b"\xff\xff\x08\x4d\x10\x03\0\0"),
        (
            "datagram_message_length_too_long",
            b"\0\x04\x08\x4d\x10\x03\0\x09x",
        ),
        (
            "datagram_message_length_too_short",
            b"\0\x04\x08\x4d\x10\x03\0\x01xyz",
        ),
        (
            "datagram_header_unreadable",
            b"\0\x04\xff\xff\xff\xff\0\x01x",
        ),
    ];
    let sum = |mediator: &Mediator| -> u64 {
        let dropped = mediator.statistics().dropped;
        dropped
            .iter()
            .filter(|c| c.name.starts_with("datagram_"))
            .map(|c| c.value)
            .sum()
    };
    for (name, bytes) in malformed {
        let (before, all) = (mediator.dropped(name), sum(&mediator));
        for _ in 0..10 {
            bad.send_datagram(bytes);
        }
        good.wait_for_echo(device("77:3"), b"still here");
        assert_eq!(mediator.dropped(name) - before, 10, "{name}");
        assert_eq!(sum(&mediator) - all, 10, "{name}: no other counter");
    }
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..300 {
        let junk: Vec<u8> = (0..random.usize(0..2000)).map(|_| random.u8(..)).collect();
        bad.send_datagram(&junk);
    }
    good.wait_for_echo(device("77:3"), b"after");
    assert!(!bad.has_datagram());
    assert_eq!(mediator.describe("77:3").restarts(), 0);
}

#[test]
fn addresses_of_both_families_are_kept_apart() {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("SKIP addresses_of_both_families_are_kept_apart: this machine has no IPv6");
        return;
    }
    let mut command = std::process::Command::new(crate::common::AMBER);
    command.args(["mediator", "--listen", "127.0.0.1:0"]);
    command.args(["--listen", "[::1]:0", "--driver", ECHO]);
    let mediator = Mediator::run(command);
    mediator.peer().wait_for_echo(device("77:3"), b"four");
    let line = mediator.wait_for_line("listening on [::1]");
    let socket = std::net::UdpSocket::bind("[::1]:0").unwrap();
    socket
        .connect(line.trim_start_matches("listening on "))
        .unwrap();
    socket.send(&frame(Some(device("77:3")), b"six")).unwrap();
    socket
        .set_read_timeout(Some(crate::common::PATIENCE))
        .unwrap();
    socket.recv(&mut [0; 100]).unwrap();

    let list = request::What::ListClients(mediator::ListClients::default());
    let reply::What::Clients(list) = mediator.peer().ask(list) else {
        panic!("clients")
    };
    let address = socket.local_addr().unwrap().to_string();
    let known: Vec<_> = list.clients.iter().map(|client| &client.address).collect();
    assert!(known.contains(&&address), "{address} is not in {known:?}");
}

#[test]
fn a_listener_on_ipv6() {
    let mut command = std::process::Command::new(crate::common::AMBER);
    command.args(["mediator", "--listen", "[::1]:0", "--driver", ECHO]);
    let has_ipv6 = std::net::UdpSocket::bind("[::1]:0").is_ok();
    if !has_ipv6 {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP a_listener_on_ipv6: this machine has no IPv6"
        );
        return;
    }
    let mediator = Mediator::run(command);
    let socket = std::net::UdpSocket::bind("[::1]:0").unwrap();
    socket.connect(mediator.address).unwrap();
    socket.send(&frame(Some(device("77:3")), b"six")).unwrap();
    socket
        .set_read_timeout(Some(crate::common::PATIENCE))
        .unwrap();
    let mut buffer = [0; 100];
    let length = socket.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], frame(Some(device("77:3")), b"six"));
}
