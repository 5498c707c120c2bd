//! The messages of a recording in order of time, chunk by chunk. PURE except for the files.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::io::{Read, Seek};

use super::chunk::Chunk;
use super::recorded::Recorded;
use crate::{Error, GapInfo};

/// What a reader finds.
pub(super) enum Next<'a> {
    /// Time, channel and data of a message.
    Message(u64, u16, &'a [u8]),
    /// A chunk cannot be read: why, and when.
    Damaged(String, GapInfo),
}

/// Reads messages in order of time.
pub(super) struct Reader {
    channels: BTreeSet<u16>,
    from_ns: u64,
    /// The chunks to read, in order of time.
    waiting: VecDeque<usize>,
    /// The chunks with messages that are to come: of several only if they overlap in time.
    open: Vec<Option<Chunk>>,
    /// The next message of each: time, place in `open`, number.
    next: BinaryHeap<Reverse<(u64, usize, usize)>>,
}

impl Reader {
    pub(super) fn new(recorded: &Recorded, channels: &BTreeSet<u16>, from_ns: u64) -> Self {
        Self {
            channels: channels.clone(),
            from_ns,
            waiting: recorded.chunks_from(channels, from_ns),
            open: Vec::new(),
            next: BinaryHeap::new(),
        }
    }

    /// Reads on, and lets `each` have what is next. Returns false at the end.
    pub(super) fn next(
        &mut self,
        recorded: &Recorded,
        files: &mut [impl Read + Seek],
        each: impl FnOnce(Next<'_>),
    ) -> Result<bool, Error> {
        loop {
            let due_ns = self.next.peek().map(|Reverse((time_ns, ..))| *time_ns);
            let first = self.waiting.front().copied();
            let first = first.map(|place| (place, recorded.chunk(place)));
            match (first, due_ns) {
                (Some((place, index)), due_ns)
                    if due_ns.is_none_or(|due_ns| index.message_start_time <= due_ns) =>
                {
                    self.waiting.pop_front();
                    let mut chunk = recorded.read_chunk(files, place)?;
                    if let Some(what) = chunk.damage.take() {
                        let gap = GapInfo {
                            first_ns: index.message_start_time,
                            last_ns: index.message_end_time,
                            messages: 0,
                            bytes: index.chunk_length,
                        };
                        each(Next::Damaged(what, gap));
                        return Ok(true);
                    }
                    self.add(chunk);
                }
                (_, None) => return Ok(false),
                (_, Some(_)) => {
                    let Some(Reverse((_, open, number))) = self.next.pop() else {
                        return Ok(false);
                    };
                    let Some(chunk) = self.open[open].take() else {
                        continue;
                    };
                    if let Some((time_ns, channel, data)) = chunk.message(number) {
                        each(Next::Message(time_ns, channel, data));
                    }
                    self.put(open, chunk, number + 1);
                    return Ok(true);
                }
            }
        }
    }

    fn add(&mut self, chunk: Chunk) {
        let free = self.open.iter().position(Option::is_none);
        let open = free.unwrap_or_else(|| {
            self.open.push(None);
            self.open.len() - 1
        });
        self.put(open, chunk, 0);
    }

    /// Keeps a chunk until its next message is due, unless it has none.
    fn put(&mut self, open: usize, chunk: Chunk, from: usize) {
        let mut rest = chunk.messages.iter().enumerate().skip(from);
        let next = rest.find(|(_, (time_ns, channel, ..))| {
            *time_ns >= self.from_ns && self.channels.contains(channel)
        });
        if let Some((number, (time_ns, ..))) = next {
            self.next.push(Reverse((*time_ns, open, number)));
            self.open[open] = Some(chunk);
        }
    }
}
