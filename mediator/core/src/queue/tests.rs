use proptest::prelude::*;

use super::*;

const A: Lane = Lane::Client(ClientId(1));
const B: Lane = Lane::Client(ClientId(2));

fn bounds(frames: usize) -> Bounds {
    Bounds {
        frames,
        bytes: usize::MAX,
        ..Bounds::default()
    }
}

fn dropped(queue: &Queue) -> u64 {
    let tally = queue.tally();
    tally.dropped_full + tally.dropped_client_gone
}

/// Every frame is accounted for.
fn check_tally(queue: &Queue) {
    let tally = queue.tally();
    let gone = tally.dropped_full + tally.dropped_client_gone + tally.dropped_driver_gone;
    assert_eq!(tally.queued, tally.written + gone + queue.len() as u64);
}

fn push(queue: &mut Queue, lane: Lane, message: &[u8]) {
    queue
        .push(
            lane,
            Frame {
                header: b"",
                message,
            },
        )
        .unwrap();
}

/// The messages of several whole frames, in order.
fn messages(mut bytes: &[u8]) -> Vec<u8> {
    let mut messages = Vec::new();
    while let Some(frame) = Frame::from_stream(bytes) {
        messages.extend_from_slice(frame.message);
        bytes = &bytes[frame.wire_len()..];
    }
    assert!(bytes.is_empty(), "a frame was torn");
    messages
}

/// Writes everything that the queue offers.
fn drain(queue: &mut Queue) -> Vec<u8> {
    let mut out = Vec::new();
    queue.writable();
    while !queue.chunk().is_empty() {
        out.extend_from_slice(&queue.chunk());
        queue.wrote(queue.chunk().len());
        queue.writable();
    }
    out
}

fn blocked(bounds: Bounds) -> Queue {
    let mut queue = Queue::new(bounds);
    push(&mut queue, A, b"x");
    queue.wrote(0);
    queue
}

#[test]
fn frames_that_fit_are_written_at_once_and_in_order() {
    let mut queue = Queue::default();
    push(&mut queue, A, b"one");
    push(&mut queue, B, b"two");
    push(&mut queue, A, b"three");
    assert_eq!(messages(&queue.chunk()), b"onetwothree");
    queue.wrote(11 + 3 * 4);
    assert!(queue.is_empty());
}

#[test]
fn a_begun_frame_is_finished_before_all_others() {
    let mut queue = Queue::default();
    push(&mut queue, A, b"one");
    push(&mut queue, B, b"two");
    push(&mut queue, A, b"six");
    let mut out = queue.chunk()[..8].to_vec();
    queue.wrote(8);
    assert!(queue.chunk().is_empty(), "the pipe is full");
    push(&mut queue, Lane::LifeCycle, b"!");
    out.extend(drain(&mut queue));
    assert_eq!(messages(&out), b"onetwo!six");
}

#[test]
fn a_write_that_ends_between_frames_keeps_no_frame_back() {
    let mut queue = Queue::default();
    push(&mut queue, A, b"one");
    push(&mut queue, B, b"two");
    queue.wrote(7);
    push(&mut queue, Lane::LifeCycle, b"!");
    assert_eq!(messages(&drain(&mut queue)), b"!two");
}

#[test]
fn clients_take_turns() {
    let mut queue = blocked(bounds(100));
    for _ in 0..4 {
        push(&mut queue, A, b"a");
    }
    push(&mut queue, B, b"b");
    push(&mut queue, B, b"b");
    assert_eq!(messages(&drain(&mut queue)), b"xbabaaa");
}

#[test]
fn frames_beyond_the_room_wait_and_take_turns() {
    let mut queue = Queue::new(bounds(100));
    for _ in 0..3 {
        push(&mut queue, A, b"a");
    }
    push(&mut queue, B, b"b");
    let mut out = Vec::new();
    // One byte of room means one frame; the frames behind it return to the waiting frames.
    queue.offer(1);
    out.extend_from_slice(&queue.chunk());
    queue.wrote(5);
    check_tally(&queue);
    assert!(queue.is_blocked());
    push(&mut queue, B, b"b");
    // Two frames, and then no more until the next offer.
    queue.offer(6);
    queue.writable();
    out.extend_from_slice(&queue.chunk());
    queue.wrote(10);
    assert!(!queue.is_blocked() && queue.chunk().is_empty());
    assert_eq!(messages(&out), b"aab");
    assert_eq!(queue.len(), 2);
    queue.offer(usize::MAX);
    assert_eq!(messages(&drain(&mut queue)), b"ab");
    check_tally(&queue);
}

#[test]
fn a_begun_frame_is_finished_even_without_room() {
    let mut queue = Queue::default();
    push(&mut queue, A, b"one");
    push(&mut queue, B, b"two");
    let mut out = queue.chunk()[..3].to_vec();
    queue.wrote(3);
    queue.offer(0);
    queue.writable();
    out.extend_from_slice(&queue.chunk());
    queue.wrote(queue.chunk().len());
    assert_eq!(messages(&out), b"one");
    // The next frame must wait.
    queue.offer(0);
    assert!(queue.chunk().is_empty());
    assert_eq!(queue.len(), 1);
    check_tally(&queue);
}

#[test]
fn a_begun_frame_counts_against_the_next_room() {
    let mut queue = Queue::default();
    push(&mut queue, A, b"one");
    push(&mut queue, B, b"two");
    let mut out = queue.chunk()[..8].to_vec();
    queue.wrote(8);
    queue.offer(1);
    queue.writable();
    out.extend_from_slice(&queue.chunk());
    assert_eq!(messages(&out), b"onetwo");
}

#[test]
fn the_oldest_frame_of_the_longest_line_is_dropped_and_counted() {
    let mut queue = blocked(bounds(3));
    push(&mut queue, B, b"B");
    for frame in [b"1", b"2", b"3"] {
        push(&mut queue, A, frame);
    }
    assert_eq!(dropped(&queue), 2);
    assert_eq!(queue.len(), 3);
    assert_eq!(messages(&drain(&mut queue)), b"2B3");
}

#[test]
fn waiting_bytes_are_bounded() {
    let mut queue = blocked(Bounds {
        frames: 100,
        bytes: 5 + 2 * 8,
        ..Bounds::default()
    });
    for _ in 0..5 {
        push(&mut queue, B, b"1234");
    }
    assert_eq!(dropped(&queue), 3);
    assert_eq!(messages(&drain(&mut queue)), b"x12341234");
}

#[test]
fn too_many_bytes_cost_the_client_with_most_bytes() {
    let mut queue = blocked(Bounds {
        frames: 100,
        bytes: 1000,
        ..Bounds::default()
    });
    for _ in 0..5 {
        push(&mut queue, A, b"a");
    }
    for _ in 0..3 {
        push(&mut queue, B, &[b'b'; 400]);
    }
    assert_eq!(dropped(&queue), 1);
    let out = messages(&drain(&mut queue));
    assert_eq!(out.iter().filter(|byte| **byte == b'a').count(), 5);
}

#[test]
fn bytes_are_bounded_before_the_pipe_is_known_to_be_full() {
    let mut queue = Queue::default();
    let message = [7; 1000];
    for _ in 0..2000 {
        push(&mut queue, A, &message);
    }
    let most = limits::WRITE_BYTES + limits::QUEUE_BYTES + 1004;
    assert!(queue.len() * 1004 <= most, "{} frames", queue.len());
    assert_eq!(queue.len() as u64 + dropped(&queue), 2000);
}

#[test]
fn life_cycle_frames_are_never_dropped() {
    let mut queue = blocked(bounds(1));
    for _ in 0..100 {
        push(&mut queue, Lane::LifeCycle, b"!");
        push(&mut queue, A, b"a");
    }
    let out = messages(&drain(&mut queue));
    assert_eq!(out.iter().filter(|byte| **byte == b'!').count(), 100);
    assert_eq!(out.len(), 101);
}

#[test]
fn no_frame_of_a_client_follows_the_news_of_its_death() {
    const A_DIED: Lane = Lane::ClientDied(ClientId(1));
    // With a full pipe.
    let mut queue = blocked(bounds(10));
    push(&mut queue, A, b"a");
    push(&mut queue, B, b"b");
    push(&mut queue, A_DIED, b"!");
    assert_eq!(dropped(&queue), 2);
    assert_eq!(messages(&drain(&mut queue)), b"!b");

    // Before the pipe is known to be full: one frame is begun, the next is not.
    let mut queue = Queue::default();
    push(&mut queue, A, b"1");
    push(&mut queue, A, b"2");
    push(&mut queue, B, b"b");
    push(&mut queue, A_DIED, b"!");
    let mut out = queue.chunk()[..3].to_vec();
    queue.wrote(3);
    assert_eq!(dropped(&queue), 1);
    out.extend(drain(&mut queue));
    assert_eq!(messages(&out), b"1!b");

    // With a pipe that takes everything, no frame is lost.
    let mut queue = Queue::default();
    push(&mut queue, A, b"a");
    push(&mut queue, A_DIED, b"!");
    assert_eq!(messages(&drain(&mut queue)), b"a!");
}

#[test]
fn clearing_counts_the_lost_frames() {
    let mut queue = blocked(bounds(10));
    push(&mut queue, Lane::LifeCycle, b"!");
    push(&mut queue, B, b"b");
    queue.clear();
    assert_eq!(queue.tally().dropped_driver_gone, 3);
    assert!(queue.is_empty() && !queue.is_blocked());
}

#[test]
fn ties_cost_the_newest_client() {
    let mut queue = blocked(bounds(2));
    push(&mut queue, A, b"a");
    push(&mut queue, B, b"b");
    for id in 3..100 {
        push(&mut queue, Lane::NewClient(ClientId(id)), b"?");
    }
    assert_eq!(messages(&drain(&mut queue)), b"ab");
}

#[test]
fn the_death_of_a_client_that_the_driver_never_saw_is_not_told() {
    const NEW: Lane = Lane::NewClient(ClientId(9));
    let mut queue = blocked(bounds(1));
    push(&mut queue, NEW, b"1");
    push(&mut queue, A, b"a");
    assert!(queue.forget_unseen(ClientId(9)));
    assert!(!queue.forget_unseen(ClientId(1)), "an old one may be known");
    assert_eq!(messages(&drain(&mut queue)), b"a");
    push(&mut queue, NEW, b"1");
    assert!(!queue.forget_unseen(ClientId(9)), "it is on its way");
    check_tally(&queue);
}

#[test]
fn a_driver_that_reads_no_life_cycle_frames_is_deaf() {
    let mut queue = blocked(Bounds {
        life_cycle: 10,
        ..Bounds::default()
    });
    for _ in 0..10 {
        push(&mut queue, Lane::LifeCycle, b"!");
        assert!(!queue.is_deaf());
    }
    push(&mut queue, Lane::LifeCycle, b"!");
    assert!(queue.is_deaf());
    queue.clear();
    assert!(!queue.is_deaf());
}

/// What a driver reads of a client: a request, news that it left one device, or news of its
/// death.
const ASKED: u8 = 0;
const LEFT: u8 = 1;
const DIED: u8 = 2;

/// A step of a random schedule; clients and devices by index.
#[derive(Clone, Copy, Debug)]
enum Step {
    Ask(usize, u8),
    Leave(usize, u8),
    Die(usize),
    Offer(usize),
    Writable,
    Write(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..3, 0u8..2).prop_map(|(client, device)| Step::Ask(client, device)),
        2 => (0usize..3, 0u8..2).prop_map(|(client, device)| Step::Leave(client, device)),
        1 => (0usize..3).prop_map(Step::Die),
        1 => (0usize..60).prop_map(Step::Offer),
        1 => Just(Step::Writable),
        3 => (0usize..60).prop_map(Step::Write),
    ]
}

/// A client as the router sees it. It begins a new life each time it returns.
struct Life {
    id: u8,
    life: u8,
    uses: [bool; 2],
}

impl Life {
    fn new(id: u8) -> Self {
        Self {
            id,
            life: 0,
            uses: [false; 2],
        }
    }

    fn client(&self) -> ClientId {
        ClientId(self.id.into())
    }

    fn push(&self, queue: &mut Queue, lane: Lane, device: u8, what: u8) {
        push_headed(queue, lane, &[device, self.id], &[self.id, self.life, what]);
    }

    fn ask(&mut self, queue: &mut Queue, device: u8) {
        let lane = if self.uses == [false; 2] {
            self.life += 1;
            Lane::NewClient(self.client())
        } else {
            Lane::Client(self.client())
        };
        self.uses[usize::from(device)] = true;
        self.push(queue, lane, device, ASKED);
    }

    fn leave(&mut self, queue: &mut Queue, device: u8) {
        if self.uses == [true; 2] {
            self.uses[usize::from(device)] = false;
            self.push(queue, Lane::Left(self.client()), device, LEFT);
        } else if self.uses[usize::from(device)] {
            self.die(queue);
        }
    }

    fn die(&mut self, queue: &mut Queue) {
        let uses = std::mem::take(&mut self.uses);
        if uses == [false; 2] || queue.forget_unseen(self.client()) {
            return;
        }
        for device in (0..2).filter(|device| uses[usize::from(*device)]) {
            self.push(queue, Lane::ClientDied(self.client()), device, DIED);
        }
    }
}

proptest! {
    /// Clients use two devices of a process, leave one or both, and return, while the pipe
    /// takes arbitrary parts. The driver is told about the end of exactly those lives of which
    /// it has read a frame.
    #[test]
    fn clients_deaths_are_told_exactly(steps in prop::collection::vec(step(), 1..200)) {
        let mut queue = Queue::new(bounds(4));
        let mut out = Vec::new();
        let mut clients: Vec<Life> = (1..=3).map(Life::new).collect();
        for step in steps {
            match step {
                Step::Ask(i, device) => clients[i].ask(&mut queue, device),
                Step::Leave(i, device) => clients[i].leave(&mut queue, device),
                Step::Die(i) => clients[i].die(&mut queue),
                Step::Offer(room) => queue.offer(room),
                Step::Writable => queue.writable(),
                Step::Write(_) if queue.chunk().is_empty() => {}
                Step::Write(size) => {
                    let taken = size.min(queue.chunk().len());
                    out.extend_from_slice(&queue.chunk()[..taken]);
                    queue.wrote(taken);
                }
            }
            check_tally(&queue);
        }
        for client in &mut clients {
            client.die(&mut queue);
        }
        queue.offer(usize::MAX);
        out.extend(drain(&mut queue));
        prop_assert!(queue.is_empty() && queue.unseen.is_empty(), "{:?}", queue);
        check_tally(&queue);
        let out = messages(&out);
        let events: Vec<_> = out.chunks(3).map(|event| (event[0], event[1], event[2])).collect();
        for (at, (id, life, what)) in events.iter().enumerate() {
            let same = |event: &&(u8, u8, u8)| (event.0, event.1) == (*id, *life);
            let asked = events[..at].iter().filter(same).any(|event| event.2 == ASKED);
            let mut later = events[at + 1..].iter().filter(same).map(|event| event.2);
            match *what {
                ASKED => prop_assert!(later.any(|what| what == DIED), "{} {} of {:?}", id, life, events),
                LEFT => prop_assert!(asked, "{} {} of {:?}", id, life, events),
                _ => {
                    prop_assert!(asked, "{} {} of {:?}", id, life, events);
                    prop_assert!(later.all(|what| what == DIED), "{} {} of {:?}", id, life, events);
                }
            }
        }
    }

    /// For any sequence of partial writes: the output consists of whole frames, each at most
    /// once, those of one client in order, and input = output + drops.
    #[test]
    fn no_frame_is_torn_doubled_or_lost_uncounted(
        steps in prop::collection::vec((0u8..8, 0u8..3, 1usize..40), 1..200),
    ) {
        let mut queue = Queue::new(bounds(6));
        let mut out = Vec::new();
        let mut pushed = 0u64;
        for (what, client, size) in steps {
            check_tally(&queue);
            match what {
                0..5 => {
                    pushed += 1;
                    let mut frame = vec![client; size];
                    frame[0] = size as u8;
                    frame.extend(pushed.to_be_bytes());
                    let lane = [A, B, Lane::Client(ClientId(3))][usize::from(client)];
                    push(&mut queue, lane, &frame);
                }
                5 => queue.writable(),
                _ => {
                    let taken = size.min(queue.chunk().len());
                    if taken > 0 {
                        out.extend_from_slice(&queue.chunk()[..taken]);
                        queue.wrote(taken);
                    }
                }
            }
        }
        out.extend(drain(&mut queue));

        let out = messages(&out);
        let mut rest = &out[..];
        let mut last = [0; 3];
        let mut read = 0;
        while !rest.is_empty() {
            let size = usize::from(rest[0]);
            let client = if size > 1 { usize::from(rest[1]) } else { 3 };
            prop_assert!(rest[1..size].iter().all(|byte| usize::from(*byte) == client));
            let number = u64::from_be_bytes(rest[size..size + 8].try_into().unwrap());
            if client < 3 {
                prop_assert!(number > last[client]);
                last[client] = number;
            }
            rest = &rest[size + 8..];
            read += 1;
        }
        prop_assert_eq!(pushed, read + dropped(&queue));
    }
}

/// A frame whose header names a device.
fn push_headed(queue: &mut Queue, lane: Lane, header: &[u8], message: &[u8]) {
    queue.push(lane, Frame { header, message }).unwrap();
}

#[test]
fn no_frame_for_a_device_follows_the_news_that_its_client_left() {
    const LEFT: Lane = Lane::Left(ClientId(1));
    let mut queue = blocked(bounds(9));
    push_headed(&mut queue, A, b"one", b"a");
    push_headed(&mut queue, A, b"two", b"b");
    push_headed(&mut queue, B, b"other", b"c");
    push_headed(&mut queue, LEFT, b"one", b"!");
    check_tally(&queue);
    assert_eq!(dropped(&queue), 1);
    // The client returns.
    push_headed(&mut queue, A, b"one", b"d");
    assert_eq!(messages(&drain(&mut queue)), b"!xcbd");
    check_tally(&queue);
}

#[test]
fn offered_frames_do_not_follow_the_news_that_their_client_left() {
    const LEFT: Lane = Lane::Left(ClientId(1));
    let mut queue = Queue::new(bounds(9));
    push_headed(&mut queue, A, b"two", b"a");
    push_headed(&mut queue, A, b"one", b"b");
    push_headed(&mut queue, A, b"two", b"c");
    push_headed(&mut queue, LEFT, b"one", b"!");
    // The pipe takes part of the first frame.
    let mut out = queue.chunk()[..3].to_vec();
    queue.wrote(3);
    check_tally(&queue);
    out.extend(drain(&mut queue));
    assert_eq!(messages(&out), b"a!c");
    check_tally(&queue);
}
