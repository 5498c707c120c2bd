//! The frames that wait, per client: whose turn it is, and who has most. PURE.
//!
//! Clients take turns in rounds. Who has had a turn in this round waits for the
//! next one; who has not goes first, so that a client which asks now and then
//! need not wait for one that floods. Only so many may join a round that has
//! begun, lest a stream of newcomers keeps it from ever ending.
//!
//! Everything here costs the logarithm of the number of clients that wait, at
//! most.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use amber_proto::ClientId;

use crate::hash::{Map, Set};

/// So many may join a round at least, however few wait.
const JOINERS: usize = 8;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Waiting {
    lines: Map<ClientId, Line>,
    /// Clients with frames, in the order of their turns.
    turns: BTreeMap<Turn, ClientId>,
    round: Round,
    by_frames: BTreeSet<(usize, ClientId)>,
    by_bytes: BTreeSet<(usize, ClientId)>,
    last_place: i64,
    first_place: i64,
    frames: usize,
    bytes: usize,
}

/// When a client has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    round: u64,
    place: i64,
}

/// The round of the last turn.
#[derive(Debug)]
struct Round {
    number: u64,
    /// Who had a turn in it, and nothing more that waited.
    served: Set<ClientId>,
    /// How many more may join it.
    open: usize,
}

impl Default for Round {
    fn default() -> Self {
        Self {
            number: 0,
            served: Set::default(),
            open: JOINERS,
        }
    }
}

/// What waits from one client; never empty.
#[derive(Debug)]
struct Line {
    turn: Turn,
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
        let joins = self.round.open > 0 && !self.round.served.contains(&client);
        let turn = Turn {
            round: self.round.number + u64::from(!joins),
            place: self.last_place + 1,
        };
        if self.change(client, turn, frame.len(), |line| line.push_back(frame)) {
            self.last_place += 1;
            self.round.open -= usize::from(joins);
        }
    }

    /// Gives back what was the oldest frame of a client, whose turn it was.
    pub(super) fn push_front(&mut self, client: ClientId, frame: Box<[u8]>) {
        let turn = Turn {
            round: self.round.number,
            place: self.first_place - 1,
        };
        if self.change(client, turn, frame.len(), |line| line.push_front(frame)) {
            self.first_place -= 1;
        }
    }

    /// The oldest frame of the client whose turn it is; then the next has its turn.
    pub(super) fn next(&mut self) -> Option<(ClientId, Box<[u8]>)> {
        let (Turn { round, .. }, client) = self.turns.pop_first()?;
        if self.round.number < round {
            self.round = Round {
                number: round,
                served: Set::default(),
                open: JOINERS.max(self.lines.len()),
            };
        }
        let frame = self.take_oldest(client)?;
        match self.lines.get_mut(&client) {
            Some(line) => {
                self.last_place += 1;
                line.turn = Turn {
                    round: round + 1,
                    place: self.last_place,
                };
                self.turns.insert(line.turn, client);
            }
            None => drop(self.round.served.insert(client)),
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
        turn: Turn,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The clients of the next turns, as long as somebody waits.
    fn turns(waiting: &mut Waiting, count: usize) -> Vec<i32> {
        let next = || Some(waiting.next()?.0.0);
        std::iter::from_fn(next).take(count).collect()
    }

    fn push(waiting: &mut Waiting, client: i32) {
        waiting.push_back(ClientId(client), Box::from([0]));
    }

    #[test]
    fn who_asks_now_and_then_does_not_wait_for_who_floods() {
        let mut waiting = Waiting::default();
        for _ in 0..100 {
            push(&mut waiting, 1);
        }
        assert_eq!(turns(&mut waiting, 2), [1, 1]);
        push(&mut waiting, 2);
        assert_eq!(
            turns(&mut waiting, 1),
            [2],
            "it has had no turn in this round"
        );
        push(&mut waiting, 2);
        assert_eq!(turns(&mut waiting, 3), [1, 2, 1], "now it had");
    }

    #[test]
    fn all_get_the_same_share_whether_they_flood_or_wait_for_answers() {
        let mut waiting = Waiting::default();
        for _ in 0..1000 {
            push(&mut waiting, 1);
        }
        for client in 2..=4 {
            push(&mut waiting, client);
        }
        let mut counts = [0; 5];
        for _ in 0..400 {
            let client = turns(&mut waiting, 1)[0];
            counts[client as usize] += 1;
            if client != 1 {
                push(&mut waiting, client);
            }
        }
        assert!(
            counts[1..].iter().all(|count| (99..=101).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn a_stream_of_newcomers_keeps_nobody_from_his_turn() {
        let mut waiting = Waiting::default();
        for _ in 0..100 {
            push(&mut waiting, 1);
        }
        let mut newcomers = 2..;
        let mut last = 0;
        for turn in 0..1000 {
            // Two come for each that goes.
            for client in newcomers.by_ref().take(2) {
                push(&mut waiting, client);
            }
            if turns(&mut waiting, 1) == [1] {
                last = turn;
            }
            assert!(
                turn - last <= 2 * JOINERS.max(waiting.frames()),
                "turn {turn}"
            );
        }
        assert!(last > 0);
    }
}
