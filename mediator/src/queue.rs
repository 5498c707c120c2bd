//! What waits for one driver. PURE.
//!
//! While the pipe takes everything, frames are gathered in one buffer and
//! written at once. When either is full the rest waits per client: clients take
//! turns, so that none of them fills the driver alone, and beyond the bounds
//! the *oldest* frame of whoever has most waiting is dropped, because a stale
//! motion command is worse than none. Life-cycle frames (a client died, PING)
//! go before all others and are never dropped. What still waits from a client
//! that died is dropped: nothing of it comes after the news of its death. A
//! frame of which the pipe has taken a part is always finished.

use std::collections::{HashMap, VecDeque};

use amber_proto::frame::PartTooLong;
use amber_proto::{ClientId, Frame};

use crate::limits;

/// Which frames give way when there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// From the mediator itself: first in line, never dropped.
    LifeCycle,
    /// The same, and says that this client died.
    ClientDied(ClientId),
    /// From a client, or from another driver.
    Client(ClientId),
}

/// The bounds of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Client frames that may wait.
    pub frames: usize,
    /// Bytes of client frames that may wait.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            frames: limits::QUEUE_FRAMES,
            bytes: limits::QUEUE_BYTES,
        }
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Queue {
    bounds: Bounds,
    /// Offered to the pipe as it is.
    batch: Vec<u8>,
    /// The frames in `batch`: who sent each, and where it ends.
    ends: Vec<(Lane, usize)>,
    /// How much of `batch` the pipe has taken.
    written: usize,
    /// The pipe is full: wait until it says otherwise.
    blocked: bool,
    life_cycle: VecDeque<(Lane, Box<[u8]>)>,
    clients: HashMap<ClientId, VecDeque<Box<[u8]>>>,
    /// Clients with frames, in the order of their turns.
    turns: VecDeque<ClientId>,
    frames: usize,
    bytes: usize,
    dropped: u64,
}

impl Queue {
    /// An empty queue.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            ..Self::default()
        }
    }

    /// Adds a frame. Returns how many frames of clients were dropped for it.
    ///
    /// # Errors
    /// A part is longer than 32 767 bytes; the queue is as it was.
    pub fn push(&mut self, lane: Lane, frame: Frame<'_>) -> Result<u64, PartTooLong> {
        let room = !self.blocked && self.batch.len() < limits::WRITE_BYTES;
        if room && self.turns.is_empty() && self.life_cycle.is_empty() {
            frame.encode(&mut self.batch)?;
            self.ends.push((lane, self.batch.len()));
            return Ok(0);
        }
        let mut bytes = Vec::with_capacity(frame.wire_len());
        frame.encode(&mut bytes)?;
        Ok(self.wait(lane, bytes.into()) + self.enforce())
    }

    /// What to write now; empty when there is nothing to do, or when the pipe
    /// is full and [`Queue::writable`] has not been called since.
    pub fn chunk(&self) -> &[u8] {
        if self.blocked {
            &[]
        } else {
            &self.batch[self.written..]
        }
    }

    /// The pipe took `bytes` of [`Queue::chunk`]. When that was not all, it is
    /// full. Returns how many frames of clients were dropped.
    pub fn wrote(&mut self, bytes: usize) -> u64 {
        self.written += bytes;
        if self.written == self.batch.len() {
            self.batch.clear();
            self.ends.clear();
            self.written = 0;
            self.refill();
            return 0;
        }
        self.blocked = true;
        self.set_rest_aside() + self.enforce()
    }

    /// The pipe takes bytes again.
    pub fn writable(&mut self) {
        self.blocked = false;
        self.refill();
    }

    /// Whether the owner has to wait for the pipe.
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Frames that wait, partly written ones included.
    pub fn len(&self) -> usize {
        self.ends.len() + self.life_cycle.len() + self.frames
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Client frames that were dropped because there were too many.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Forgets everything that waits, for a driver that is gone. Returns how
    /// many client frames that were.
    pub fn clear(&mut self) -> u64 {
        let in_batch = self
            .ends
            .iter()
            .filter(|(lane, _)| matches!(lane, Lane::Client(_)))
            .count();
        let lost = (in_batch + self.frames) as u64;
        *self = Self {
            bounds: self.bounds,
            dropped: self.dropped,
            ..Self::default()
        };
        lost
    }

    /// Moves the frames of the batch that the pipe has not begun to take back
    /// to where they can be overtaken and dropped. Returns how many were.
    fn set_rest_aside(&mut self) -> u64 {
        let begun = self.ends.partition_point(|(_, end)| *end <= self.written);
        let starts = |i: usize| if i == 0 { 0 } else { self.ends[i - 1].1 };
        // The first frame that is not written at all.
        let first = if starts(begun) == self.written {
            begun
        } else {
            begun + 1
        };
        let keep = starts(begun)..starts(first);
        let rest: Vec<(Lane, Box<[u8]>)> = (first..self.ends.len())
            .map(|i| (self.ends[i].0, self.batch[starts(i)..self.ends[i].1].into()))
            .collect();

        let lane = self.ends.get(begun).map(|(lane, _)| *lane);
        self.written -= keep.start;
        self.batch.truncate(keep.end);
        self.batch.drain(..keep.start);
        self.ends.clear();
        if let Some(lane) = lane.filter(|_| !keep.is_empty()) {
            self.ends.push((lane, self.batch.len()));
        }
        for (lane, frame) in rest.into_iter().rev() {
            self.wait_first(lane, frame);
        }
        // The news of a death has overtaken what that client sent before.
        let died = |(lane, _): &(Lane, _)| match lane {
            Lane::ClientDied(client) => Some(*client),
            Lane::LifeCycle | Lane::Client(_) => None,
        };
        let dead: Vec<ClientId> = self.life_cycle.iter().filter_map(died).collect();
        dead.into_iter().map(|client| self.forget(client)).sum()
    }

    /// Drops all that waits from a client. Returns how many frames that were.
    fn forget(&mut self, client: ClientId) -> u64 {
        let Some(waiting) = self.clients.remove(&client) else {
            return 0;
        };
        self.turns.retain(|turn| *turn != client);
        self.frames -= waiting.len();
        self.bytes -= waiting.iter().map(|frame| frame.len()).sum::<usize>();
        self.dropped += waiting.len() as u64;
        waiting.len() as u64
    }

    /// Adds a frame to those that wait. Returns how many were dropped for it.
    fn wait(&mut self, lane: Lane, frame: Box<[u8]>) -> u64 {
        match lane {
            Lane::LifeCycle => self.life_cycle.push_back((lane, frame)),
            Lane::ClientDied(client) => {
                self.life_cycle.push_back((lane, frame));
                return self.forget(client);
            }
            Lane::Client(client) => {
                self.frames += 1;
                self.bytes += frame.len();
                let waiting = self.clients.entry(client).or_default();
                if waiting.is_empty() {
                    self.turns.push_back(client);
                }
                waiting.push_back(frame);
            }
        }
        0
    }

    fn wait_first(&mut self, lane: Lane, frame: Box<[u8]>) {
        match lane {
            Lane::LifeCycle | Lane::ClientDied(_) => self.life_cycle.push_front((lane, frame)),
            Lane::Client(client) => {
                self.frames += 1;
                self.bytes += frame.len();
                let waiting = self.clients.entry(client).or_default();
                if waiting.is_empty() {
                    self.turns.push_front(client);
                }
                waiting.push_front(frame);
            }
        }
    }

    fn refill(&mut self) {
        while self.batch.len() < limits::WRITE_BYTES {
            let Some((lane, frame)) = self.next() else {
                break;
            };
            self.batch.extend_from_slice(&frame);
            self.ends.push((lane, self.batch.len()));
        }
    }

    fn next(&mut self) -> Option<(Lane, Box<[u8]>)> {
        if let Some(first) = self.life_cycle.pop_front() {
            return Some(first);
        }
        let client = self.turns.pop_front()?;
        let frame = self.take_oldest(client)?;
        if self.clients.contains_key(&client) {
            self.turns.push_back(client);
        }
        Some((Lane::Client(client), frame))
    }

    /// Takes the oldest waiting frame of a client; its turns are the caller's.
    fn take_oldest(&mut self, client: ClientId) -> Option<Box<[u8]>> {
        let waiting = self.clients.get_mut(&client)?;
        let frame = waiting.pop_front()?;
        if waiting.is_empty() {
            self.clients.remove(&client);
        }
        self.frames -= 1;
        self.bytes -= frame.len();
        Some(frame)
    }

    fn enforce(&mut self) -> u64 {
        let mut dropped = 0;
        while self.frames > self.bounds.frames || self.bytes > self.bounds.bytes {
            let too_many = self.frames > self.bounds.frames;
            let longest = self.clients.iter().max_by_key(|(_, waiting)| {
                if too_many {
                    waiting.len()
                } else {
                    waiting.iter().map(|frame| frame.len()).sum()
                }
            });
            let Some((&client, _)) = longest else { break };
            self.take_oldest(client);
            if !self.clients.contains_key(&client) {
                self.turns.retain(|turn| *turn != client);
            }
            dropped += 1;
        }
        self.dropped += dropped;
        dropped
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: Lane = Lane::Client(ClientId(1));
    const B: Lane = Lane::Client(ClientId(2));

    fn bounds(frames: usize) -> Bounds {
        Bounds {
            frames,
            bytes: usize::MAX,
        }
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

    /// The messages of a number of whole frames, one after the other.
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
            out.extend_from_slice(queue.chunk());
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
        assert_eq!(messages(queue.chunk()), b"onetwothree");
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
    fn a_cut_between_frames_keeps_none_back() {
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
    fn the_oldest_of_the_longest_is_dropped_and_counted() {
        let mut queue = blocked(bounds(3));
        push(&mut queue, B, b"B");
        for frame in [b"1", b"2", b"3"] {
            push(&mut queue, A, frame);
        }
        assert_eq!(queue.dropped(), 2);
        assert_eq!(queue.len(), 3);
        assert_eq!(messages(&drain(&mut queue)), b"2B3");
    }

    #[test]
    fn bytes_are_bounded_too() {
        let mut queue = blocked(Bounds {
            frames: 100,
            bytes: 5 + 2 * 8,
        });
        for _ in 0..5 {
            push(&mut queue, B, b"1234");
        }
        assert_eq!(queue.dropped(), 3);
        assert_eq!(messages(&drain(&mut queue)), b"x12341234");
    }

    #[test]
    fn too_many_bytes_are_taken_from_whoever_has_most_bytes() {
        let mut queue = blocked(Bounds {
            frames: 100,
            bytes: 1000,
        });
        for _ in 0..5 {
            push(&mut queue, A, b"a");
        }
        for _ in 0..3 {
            push(&mut queue, B, &[b'b'; 400]);
        }
        assert_eq!(queue.dropped(), 1);
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
        assert_eq!(queue.len() as u64 + queue.dropped(), 2000);
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
    fn nothing_of_a_client_comes_after_the_news_of_its_death() {
        const A_DIED: Lane = Lane::ClientDied(ClientId(1));
        // While the pipe is full.
        let mut queue = blocked(bounds(10));
        push(&mut queue, A, b"a");
        push(&mut queue, B, b"b");
        push(&mut queue, A_DIED, b"!");
        assert_eq!(queue.dropped(), 2);
        assert_eq!(messages(&drain(&mut queue)), b"!b");

        // Before the pipe is found full: one frame is begun, the next is not.
        let mut queue = Queue::default();
        push(&mut queue, A, b"1");
        push(&mut queue, A, b"2");
        push(&mut queue, B, b"b");
        push(&mut queue, A_DIED, b"!");
        let mut out = queue.chunk()[..3].to_vec();
        assert_eq!(queue.wrote(3), 1);
        out.extend(drain(&mut queue));
        assert_eq!(messages(&out), b"1!b");

        // With a pipe that takes everything nothing is lost.
        let mut queue = Queue::default();
        push(&mut queue, A, b"a");
        push(&mut queue, A_DIED, b"!");
        assert_eq!(messages(&drain(&mut queue)), b"a!");
    }

    #[test]
    fn clearing_counts_what_is_lost() {
        let mut queue = blocked(bounds(10));
        push(&mut queue, Lane::LifeCycle, b"!");
        push(&mut queue, B, b"b");
        assert_eq!(queue.clear(), 2);
        assert!(queue.is_empty() && !queue.is_blocked());
    }

    proptest! {
        /// Whatever the pipe takes when: whole frames come out, each at most
        /// once, those of one client in order, and in = out + dropped.
        #[test]
        fn nothing_is_torn_doubled_or_lost_unseen(
            steps in prop::collection::vec((0u8..8, 0u8..3, 1usize..40), 1..200),
        ) {
            let mut queue = Queue::new(bounds(6));
            let mut out = Vec::new();
            let mut pushed = 0u64;
            for (what, client, size) in steps {
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
            prop_assert_eq!(pushed, read + queue.dropped());
        }
    }
}
