//! Tests of limits: no client or driver gets more than its share, and excess is logged.

use std::fs;

use amber_proto::Device;
use amber_proto::Frame;
use amber_proto::mediator::{self, DriverState, unavailable::Reason};
use nix::sys::signal::Signal;
use prost::Message;

use crate::common::{Mediator, PATIENCE, device, signal, wait_for};

/// `cat` that first sends thirty requests to 77:3.
const STARTS_A_LOOP: &str = r"5:0=sh -c 'for i in $(seq 30); do printf \\000\\004\\010\\115\\020\\003\\000\\001x; done; exec cat'";

#[test]
fn two_drivers_that_answer_each_other_are_logged_and_do_not_starve_others() {
    let mediator = Mediator::start(&["77:3=cat", "6:0=cat", STARTS_A_LOOP]);
    let line = mediator.wait_for_line("do they answer each other?");
    assert!(line.contains("77:3 and dummy:0 exchange"), "{line}");
    // Other clients are served meanwhile.
    let peer = mediator.peer();
    for i in 0u8..100 {
        peer.wait_for_echo(device("6:0"), &[i]);
    }
    let counters = mediator.describe("77:3").counters.unwrap();
    assert!(counters.frames_in() > 20_000, "{counters:?}");
}

#[test]
fn access_rules_hold_and_change_with_a_reload() {
    let drivers = "
        [[driver]]
        device = '77:3'
        command = ['cat']

        [[driver]]
        device = '77:4'
        command = ['cat']
    ";
    let rules = "
        [[access]]
        action = 'deny'
        from = ['127.0.0.0/8']
        devices = ['77:4']
    ";
    let (mediator, folder) = Mediator::configured(&format!("{rules}{drivers}"));
    let peer = mediator.peer();
    peer.wait_for_echo(device("77:3"), b"open");
    peer.announce();
    peer.send(device("77:4"), b"\x10\x01\x18\x07");
    let answer = peer.receive();
    let message = mediator::DriverMsg::decode(Frame::from_datagram(&answer).unwrap().message);
    let why = message.unwrap().unavailable.unwrap();
    assert_eq!(why.reason(), Reason::NotAllowed);
    mediator.wait_for_line("access denied");
    assert_eq!(mediator.dropped("access_denied"), 1);

    fs::write(folder.path().join("amber.toml"), drivers).unwrap();
    mediator.reload();
    peer.wait_for_echo(device("77:4"), b"open now");
}

#[cfg(target_os = "linux")]
#[test]
fn datagrams_dropped_by_the_full_socket_are_counted() {
    let mediator = Mediator::start(&["77:3=cat"]);
    let peer = mediator.peer();
    signal(mediator.pid(), Signal::SIGSTOP);
    // More than a socket buffer holds.
    let count = 1000;
    for _ in 0..count {
        peer.send_datagram(&[0xff; 20_000]);
    }
    signal(mediator.pid(), Signal::SIGCONT);
    mediator.wait_for_line("datagrams were lost");
    // Once the first reply arrives there is space again; until then, some may be lost.
    peer.wait_for_echo(device("77:3"), b"room");
    let lost = mediator.dropped("receive_buffer_full");
    let malformed = mediator.dropped("datagram_header_length");
    assert!(lost > 0 && malformed > 0, "{lost} {malformed}");
    let all = malformed + lost;
    assert!((count..count + 50).contains(&all), "{lost} + {malformed}");
}

#[test]
fn the_client_limit_per_host_holds_and_changes_with_a_reload() {
    let config = |limit: u32| {
        format!(
            "
            [limits]
            clients_per_host = {limit}

            [[driver]]
            device = '77:3'
            command = ['cat']
            "
        )
    };
    let (mediator, folder) = Mediator::configured(&config(5));
    let come_and_ask = || {
        let peers: Vec<_> = (0..20).map(|_| mediator.peer()).collect();
        for peer in &peers {
            peer.wait_for_echo(device("77:3"), b"x");
        }
    };
    come_and_ask();
    mediator.wait_for_line("`clients_per_host` under [limits]");
    assert_eq!(mediator.statistics().clients(), 5);
    let shown = mediator.amber(&["status"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("clients_evicted_for_their_host"), "{shown}");

    fs::write(folder.path().join("amber.toml"), config(100)).unwrap();
    mediator.reload();
    let evicted = mediator.counted("clients_evicted_for_their_host");
    assert!(evicted >= 15, "{evicted}");
    come_and_ask();
    assert_eq!(mediator.counted("clients_evicted_for_their_host"), evicted);
    assert!(mediator.statistics().clients() >= 20);
}

#[test]
fn clients_that_arrive_together_at_a_full_host_are_all_served() {
    let (mediator, _folder) = Mediator::configured(
        "
        [limits]
        clients_per_host = 100

        [[driver]]
        device = '77:3'
        command = ['cat']
        ",
    );
    // They never say goodbye.
    let old: Vec<_> = (0..120).map(|_| mediator.peer()).collect();
    for peer in &old {
        peer.wait_for_echo(device("77:3"), b"old");
    }
    let before = mediator.counted("clients_evicted_for_local_clients");
    assert!(before >= 20, "{before}");
    let new: Vec<_> = (0..64).map(|_| mediator.peer()).collect();
    for peer in &new {
        peer.send(device("77:3"), b"new");
    }
    for peer in &new {
        let answer = peer.receive();
        assert_eq!(Frame::from_datagram(&answer).unwrap().message, b"new");
    }
    let shown = mediator.amber(&["status"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let full = "clients:   100 of 4096; most from this machine: 100 of 100";
    assert!(shown.contains(full), "{shown}");
}

#[test]
fn silent_clients_that_hold_nothing_are_forgotten_after_the_configured_time() {
    let (mediator, _folder) = Mediator::configured(
        "
        [limits]
        forget_clients_s = 1

        [[driver]]
        device = '77:3'
        command = ['cat']
        ",
    );
    let peers: Vec<_> = (0..5).map(|_| mediator.peer()).collect();
    for peer in &peers {
        peer.wait_for_echo(device("77:3"), b"x");
    }
    wait_for("them to be forgotten", || {
        (mediator.counted("clients_forgotten") >= 5).then_some(())
    });
    // They are served again.
    for peer in &peers {
        peer.wait_for_echo(device("77:3"), b"y");
    }
}

#[test]
fn the_log_rate_is_limited_and_dropped_lines_are_counted() {
    let (mediator, _folder) = Mediator::configured(
        "
        [limits]
        log_lines_per_second = 5
        stderr_lines_per_second = 1000

        [[driver]]
        device = '77:3'
        command = ['sh', '-c', 'for i in $(seq 500); do echo line $i >&2; done; exec cat']
        ",
    );
    wait_for("its last line", || {
        let words = mediator.describe("77:3").last_words;
        words.contains(&"line 500".to_owned()).then_some(())
    });
    assert!(mediator.dropped("log_lines") >= 400);
}

#[test]
fn a_client_may_use_the_port_number_of_the_mediator_like_the_original_in_c_sharp() {
    let mediator = Mediator::start(&["77:3=cat"]);
    // Another address of this machine with the same port.
    let other = std::net::UdpSocket::bind(("127.0.0.2", mediator.address.port())).unwrap();
    other.connect(mediator.address).unwrap();
    other.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = crate::common::frame(Some(device("77:3")), b"\x10\x01");
    wait_for("the driver", || {
        other.send(&request).unwrap();
        (mediator.describe("77:3").counters?.frames_out() > 0).then_some(())
    });
    let mut buffer = [0; 100];
    let length = other.recv(&mut buffer).unwrap();
    assert!(buffer[..length].ends_with(b"\x10\x01"));
    // The mediator itself sends nothing to such a port, because another mediator may use it.
    let hello = crate::common::frame(Some(Device::MEDIATOR), b"\x10\x02");
    other.send(&hello).unwrap();
    wait_for("the count", || {
        (mediator.dropped("datagram_from_mediator_port") == 1).then_some(())
    });
    other.set_nonblocking(true).unwrap();
    while let Ok(length) = other.recv(&mut buffer) {
        assert!(buffer[..length].ends_with(b"\x10\x01"), "an echo");
    }
}

#[test]
fn a_request_to_a_stopped_driver_is_refused_at_once() {
    let mediator = Mediator::start(&["dummy:0=amber driver dummy"]);
    mediator.wait_for_state("dummy:0", DriverState::Up);
    assert!(
        mediator
            .amber(&["stop", "dummy"])
            .output()
            .unwrap()
            .status
            .success()
    );
    mediator.wait_for_state("dummy:0", DriverState::Down);
    let call = mediator
        .amber(&["call", "dummy", "status"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&call.stderr);
    assert_eq!(call.status.code(), Some(1), "{said}");
    assert!(
        said.contains("dummy:0 is unavailable: it is down: stopped"),
        "{said}"
    );
    assert!(
        said.contains("hint: `amber start dummy:0` starts it"),
        "{said}"
    );
}
