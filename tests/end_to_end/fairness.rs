//! A client that floods a driver takes no more than its turn.

use std::fs;

use amber_proto::MsgType;

use crate::common::{Mediator, device, frame, message, wait_for};

/// Whole frames are written to a driver, and these have all the same length: it
/// reads one after the other, and takes its time for each.
const SLOW_ECHO: &str = "80:0=sh -c 'while dd bs=80 count=1 2>/dev/null; do sleep 0.01; done'";
/// What the lengths and a header with one short id leave of it.
const MESSAGE: usize = 80 - 4 - 3;

#[test]
fn a_flood_of_a_slow_driver_leaves_others_their_turn() {
    let mediator = Mediator::start(&[SLOW_ECHO]);
    let slow = device("80:0");
    let (flooder, bystander) = (mediator.peer(), mediator.peer());
    // Both are known, and the driver runs.
    flooder.wait_for_echo(slow, &[1; MESSAGE]);
    bystander.wait_for_echo(slow, &[2; MESSAGE]);
    for _ in 0..500 {
        flooder.send(slow, &[3; MESSAGE]);
    }
    // By then it is known how slow the driver is.
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
    // One that it is at, one in its pipe, and one whose turn it is; and more when
    // this test gets no time to count. In a pipe alone all would have come first.
    let left = 500 - answered;
    assert!(before < left / 2, "{before} of {left} came first");
    assert_eq!(mediator.dropped("driver_queue_full"), 0);
}

/// The frame of a command with two bytes is as long as that of the news that its client died.
const SLOW_FOR_TINY_FRAMES: &str =
    "80:0=sh -c 'while dd bs=9 count=1 2>/dev/null; do sleep 0.01; done'";

#[test]
fn the_news_of_a_death_overtakes_what_the_client_had_queued() {
    const COMMANDS: u64 = 600;
    let mediator = Mediator::start(&[SLOW_FOR_TINY_FRAMES]);
    let slow = device("80:0");
    let client = mediator.peer();
    // The driver runs, and its pace is not known yet.
    client.wait_for_echo(slow, b"go");
    for _ in 0..COMMANDS {
        client.send(slow, b"ab");
    }
    client.send(slow, &message(MsgType::ClientDied));
    let counters = wait_for("the driver to have all that it gets", || {
        let counters = mediator.describe("80:0").counters.unwrap();
        // The news, too.
        let came = counters.frames_in() > COMMANDS + 1;
        (came && counters.queued() == 0).then_some(counters)
    });
    // In a pipe of 4 KiB there were 455 commands before the news, 10 ms each.
    assert!(counters.frames_written() < 100, "{counters:?}");
    assert!(counters.dropped_client_gone() > 500, "{counters:?}");
}

#[test]
fn a_socket_that_was_busy_is_heard_when_there_is_little_and_sleeps_when_there_is_nothing() {
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
        // Nothing is asked twice: each wakes the mediator, whatever was before.
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
