//! The frames that wait, per client: whose turn it is, and who has most. PURE.
//!
//! Everything here costs the logarithm of the number of clients that wait, at
//! most.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use amber_proto::ClientId;

use crate::hash::Map;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Waiting {
    lines: Map<ClientId, Line>,
    /// Clients with frames, in the order of their turns.
    turns: BTreeMap<i64, ClientId>,
    by_frames: BTreeSet<(usize, ClientId)>,
    by_bytes: BTreeSet<(usize, ClientId)>,
    next_turn: i64,
    first_turn: i64,
    frames: usize,
    bytes: usize,
}

/// What waits from one client; never empty.
#[derive(Debug)]
struct Line {
    turn: i64,
    frames: VecDeque<Box<[u8]>>,
    bytes: usize,
}

/// What there is most of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Most {
    Frames,
    Bytes,
}

impl Waiting {
    pub(super) fn frames(&self) -> usize {
        self.frames
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// Adds the newest frame of a client.
    pub(super) fn push_back(&mut self, client: ClientId, frame: Box<[u8]>) {
        let turn = self.next_turn;
        if self.change(client, turn, frame.len(), |line| line.push_back(frame)) {
            self.next_turn += 1;
        }
    }

    /// Gives back what was the oldest frame of a client, whose turn it was.
    pub(super) fn push_front(&mut self, client: ClientId, frame: Box<[u8]>) {
        let turn = self.first_turn - 1;
        if self.change(client, turn, frame.len(), |line| line.push_front(frame)) {
            self.first_turn = turn;
        }
    }

    /// The oldest frame of the client whose turn it is; then the next has its turn.
    pub(super) fn next(&mut self) -> Option<(ClientId, Box<[u8]>)> {
        let (turn, client) = self.turns.pop_first()?;
        self.first_turn = turn;
        let frame = self.take_oldest(client)?;
        if let Some(line) = self.lines.get_mut(&client) {
            line.turn = self.next_turn;
            self.turns.insert(line.turn, client);
            self.next_turn += 1;
        }
        Some((client, frame))
    }

    /// Takes the oldest frame of whoever has most; of several, of who came last.
    pub(super) fn drop_oldest(&mut self, most: Most) -> bool {
        let longest = match most {
            Most::Frames => self.by_frames.last(),
            Most::Bytes => self.by_bytes.last(),
        };
        longest
            .copied()
            .and_then(|(_, client)| self.take_oldest(client))
            .is_some()
    }

    /// Drops all that waits from a client. Returns how many frames that were.
    pub(super) fn forget(&mut self, client: ClientId) -> u64 {
        let Some(line) = self.lines.remove(&client) else {
            return 0;
        };
        self.unlist(client, &line);
        self.turns.remove(&line.turn);
        self.frames -= line.frames.len();
        self.bytes -= line.bytes;
        line.frames.len() as u64
    }

    /// Drops what waits from a client and begins with this header. Returns how
    /// many frames that were.
    pub(super) fn forget_headed(&mut self, client: ClientId, header: &[u8]) -> u64 {
        let Some(mut line) = self.lines.remove(&client) else {
            return 0;
        };
        self.unlist(client, &line);
        let (frames, bytes) = (line.frames.len(), line.bytes);
        line.frames.retain(|frame| !frame.starts_with(header));
        line.bytes = line.frames.iter().map(|frame| frame.len()).sum();
        let forgotten = frames - line.frames.len();
        self.frames -= forgotten;
        self.bytes -= bytes - line.bytes;
        if line.frames.is_empty() {
            self.turns.remove(&line.turn);
        } else {
            self.list(client, line);
        }
        forgotten as u64
    }

    /// Adds a frame; true when the client had none and took that turn.
    fn change(
        &mut self,
        client: ClientId,
        turn: i64,
        bytes: usize,
        add: impl FnOnce(&mut VecDeque<Box<[u8]>>),
    ) -> bool {
        let known = self.lines.remove(&client);
        let is_new = known.is_none();
        let mut line = match known {
            Some(line) => {
                self.unlist(client, &line);
                line
            }
            None => {
                self.turns.insert(turn, client);
                Line {
                    turn,
                    frames: VecDeque::new(),
                    bytes: 0,
                }
            }
        };
        add(&mut line.frames);
        line.bytes += bytes;
        self.frames += 1;
        self.bytes += bytes;
        self.list(client, line);
        is_new
    }

    fn take_oldest(&mut self, client: ClientId) -> Option<Box<[u8]>> {
        let mut line = self.lines.remove(&client)?;
        self.unlist(client, &line);
        let frame = line.frames.pop_front()?;
        line.bytes -= frame.len();
        self.frames -= 1;
        self.bytes -= frame.len();
        if line.frames.is_empty() {
            self.turns.remove(&line.turn);
        } else {
            self.list(client, line);
        }
        Some(frame)
    }

    fn list(&mut self, client: ClientId, line: Line) {
        self.by_frames.insert((line.frames.len(), client));
        self.by_bytes.insert((line.bytes, client));
        self.lines.insert(client, line);
    }

    fn unlist(&mut self, client: ClientId, line: &Line) {
        self.by_frames.remove(&(line.frames.len(), client));
        self.by_bytes.remove(&(line.bytes, client));
    }
}
