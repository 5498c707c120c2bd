//! A client that floods a driver gets no more than its share.

use std::fs;

use amber_proto::MsgType;

use crate::common::{Mediator, device, frame, message, wait_for};

/// A driver receives whole frames, all of the same length here. It reads one after the other, with
/// a delay for each.
const SLOW_ECHO: &str = "80:0=sh -c 'while dd bs=80 count=1 2>/dev/null; do sleep 0.01; done'";
/// The message size that remains after the lengths and a header with one short id.
const MESSAGE: usize = 80 - 4 - 3;

#[test]
fn a_flood_of_a_slow_driver_leaves_other_clients_their_share() {
    let mediator = Mediator::start(&[SLOW_ECHO]);
    let slow = device("80:0");
    let (flooder, bystander) = (mediator.peer(), mediator.peer());
    // Both clients are known, and the driver runs.
    flooder.wait_for_echo(slow, &[1; MESSAGE]);
    bystander.wait_for_echo(slow, &[2; MESSAGE]);
    for _ in 0..500 {
        flooder.send(slow, &[3; MESSAGE]);
    }
    // By then the mediator knows how slow the driver is.
    let mut answered = 0;
    while answered < 60 {
        flooder.receive();
        answered += 1;
    }
    while flooder.has_datagram() {
        flooder.receive();
        answered += 1;
    }
    bystander.send(slow, &[4; MESSAGE]);
    bystander.receive();
    let mut before = 0;
    while flooder.has_datagram() {
        flooder.receive();
        before += 1;
    }
    // One frame in progress, one in the pipe, and one next in the queue; more if this test gets no
    // CPU time for counting. With only a pipe, all would be ahead.
    let left = 500 - answered;
    assert!(before < left / 2, "{before} of {left} were ahead");
    assert_eq!(mediator.dropped("driver_queue_full"), 0);
}

/// A command of two bytes makes a frame as long as that of CLIENT_DIED.
const SLOW_FOR_TINY_FRAMES: &str =
    "80:0=sh -c 'while dd bs=9 count=1 2>/dev/null; do sleep 0.01; done'";

#[test]
fn client_died_overtakes_queued_requests_of_that_client() {
    const COMMANDS: u64 = 600;
    let mediator = Mediator::start(&[SLOW_FOR_TINY_FRAMES]);
    let slow = device("80:0");
    let client = mediator.peer();
    // The driver runs, and its rate is not known yet.
    client.wait_for_echo(slow, b"go");
    for _ in 0..COMMANDS {
        client.send(slow, b"ab");
    }
    client.send(slow, &message(MsgType::ClientDied));
    let counters = wait_for("the driver to have all that it gets", || {
        let counters = mediator.describe("80:0").counters.unwrap();
        // CLIENT_DIED is counted, too.
        let came = counters.frames_in() > COMMANDS + 1;
        (came && counters.queued() == 0).then_some(counters)
    });
    // A pipe of 4 KiB would hold 455 commands before it, 10 ms each.
    assert!(counters.frames_written() < 100, "{counters:?}");
    assert!(counters.dropped_client_gone() > 500, "{counters:?}");
}

#[test]
fn after_a_busy_phase_the_socket_is_still_read_and_the_mediator_sleeps_when_idle() {
    let mediator = Mediator::start(&["80:0=cat"]);
    let peer = mediator.peer();
    peer.wait_for_echo(device("80:0"), &[0]);
    // As many as the socket of this test holds.
    const FLOOD: u8 = 100;
    for _ in 0..100 {
        for number in 0..FLOOD {
            peer.send(device("80:0"), &[number]);
        }
        for number in 0..FLOOD {
            assert_eq!(peer.receive(), frame(Some(device("80:0")), &[number]));
        }
        // Each message is sent once and must wake the mediator, whatever came before.
        for message in [b"one", b"two"] {
            peer.send(device("80:0"), message);
            assert_eq!(peer.receive(), frame(Some(device("80:0")), message));
        }
    }
    wait_for("it to sleep", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", mediator.pid())).unwrap();
        stat.rsplit(") ").next()?.starts_with('S').then_some(())
    });
}
