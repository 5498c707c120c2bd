//! Members that take turns: hosts, or the clients of one host. PURE.
//!
//! Turns come in rounds. A member that had its turn in this round waits for the next round. A
//! member that had none goes first, so an occasional request does not wait behind a flood. The
//! number of members that may join a running round is limited; otherwise a stream of newcomers
//! could keep it from ending.
//!
//! Members are ranked by what they hold only while frames are being dropped. That is rare, and
//! the ranking costs more than everything else.

use std::collections::{BTreeSet, VecDeque};
use std::hash::Hash;
use std::mem;

use amber_proto::ClientId;

use crate::hash::Map;

/// At least this many members may join a running round.
pub(super) const JOINERS: usize = 8;

/// This many stale turns are allowed for any number of members.
const LEFT_OVER: usize = 16;

/// This many members without frames are remembered within a round. Beyond that, it is forgotten
/// that they had their turn.
const IDLE: usize = 1024;

/// A container of frames.
pub(super) trait Holds: Default {
    fn frames(&self) -> usize;
    fn bytes(&self) -> usize;
    /// Frees memory after the last frame.
    fn shrink(&mut self);
}

/// The place to add a frame, and the member if it is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Front,
    Back,
}

/// The value to compare: the number of frames or their bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::queue) enum Most {
    Frames,
    Bytes,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Group<K, T> {
    /// Members with frames, and members that had frames in this round.
    members: Map<K, Member<T>>,
    schedule: Schedule<K>,
}

/// Everything about a group but its members.
#[derive(Debug)]
struct Schedule<K> {
    /// Members without frames, and some that have new frames since.
    idle: Vec<K>,
    turns: Turns<K>,
    ranking: Option<Ranking<K>>,
    frames: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Member<T> {
    /// Its own entry in the turns, if it has frames.
    turn: Option<Ticket>,
    /// The last round in which it had its turn.
    served: Option<u64>,
    is_listed_idle: bool,
    /// The client whose frame waited first.
    first: ClientId,
    of: T,
}

/// An entry of the turns: its number, and its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticket {
    number: u64,
    round: u64,
}

/// The members that have a turn in this round, and in the next.
#[derive(Debug)]
struct Turns<K> {
    round: u64,
    /// The number of members that may still join this round.
    open: usize,
    this: VecDeque<(Ticket, K)>,
    next: VecDeque<(Ticket, K)>,
    /// Stale entries, whose members have lost their frames since.
    left_over: usize,
    last_number: u64,
}

/// The members by what they hold; among equals, by the client that came first.
#[derive(Debug)]
struct Ranking<K> {
    by_frames: BTreeSet<(usize, ClientId, K)>,
    by_bytes: BTreeSet<(usize, ClientId, K)>,
    /// The ranking is dropped when there are fewer frames than this.
    until_frames: usize,
    until_bytes: usize,
}

impl<K, T> Default for Group<K, T> {
    fn default() -> Self {
        Self {
            members: Map::default(),
            schedule: Schedule {
                idle: Vec::new(),
                turns: Turns {
                    round: 0,
                    open: JOINERS,
                    this: VecDeque::new(),
                    next: VecDeque::new(),
                    left_over: 0,
                    last_number: 0,
                },
                ranking: None,
                frames: 0,
                bytes: 0,
            },
        }
    }
}

impl<K, T> Holds for Group<K, T> {
    fn frames(&self) -> usize {
        self.schedule.frames
    }

    fn bytes(&self) -> usize {
        self.schedule.bytes
    }

    fn shrink(&mut self) {
        // The members have already done so.
    }
}

impl<K: Copy + Ord + Hash, T: Holds> Group<K, T> {
    /// Adds a frame of a client to a member, which gets a turn if it is new.
    pub(super) fn push(&mut self, key: K, client: ClientId, end: End, add: impl FnOnce(&mut T)) {
        let member = self.members.entry(key).or_insert_with(|| Member {
            turn: None,
            served: None,
            is_listed_idle: false,
            first: client,
            of: T::default(),
        });
        if member.turn.is_none() {
            member.turn = Some(self.schedule.turns.join(key, end, member.served));
            member.first = client;
        }
        self.schedule.change(key, member, add);
        self.tidy();
    }

    /// Takes a frame from the member whose turn it is, and ends the turn.
    pub(super) fn next<R>(&mut self, take: impl FnOnce(&mut T) -> Option<R>) -> Option<(K, R)> {
        if self.schedule.frames == 0 {
            return None;
        }
        loop {
            let (ticket, key) = match self.schedule.turns.this.pop_front() {
                Some(entry) => entry,
                None => self.next_round()?,
            };
            let turns = &mut self.schedule.turns;
            let member = self.members.get_mut(&key);
            let Some(member) = member.filter(|member| member.turn == Some(ticket)) else {
                turns.left_over -= 1;
                continue;
            };
            member.served = Some(turns.round);
            // It has no entry now. If it has frames left, it gets another.
            member.turn = None;
            let taken = self.schedule.change(key, member, take);
            self.tidy();
            return Some((key, taken?));
        }
    }

    /// Takes a frame from the member with most.
    pub(super) fn of_most<R>(
        &mut self,
        most: Most,
        take: impl FnOnce(&mut T) -> Option<R>,
    ) -> Option<R> {
        let (until_frames, until_bytes) = (self.schedule.frames / 2, self.schedule.bytes / 2);
        let rank = || Ranking::new(&self.members, until_frames, until_bytes);
        let ranking = self.schedule.ranking.get_or_insert_with(rank);
        let longest = match most {
            Most::Frames => ranking.by_frames.last(),
            Most::Bytes => ranking.by_bytes.last(),
        };
        let (_, _, key) = *longest?;
        self.change(key, take)?
    }

    /// Changes a member, and removes its turn if it becomes empty.
    pub(super) fn change<R>(&mut self, key: K, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let member = self.members.get_mut(&key)?;
        let result = self.schedule.change(key, member, change);
        self.tidy();
        Some(result)
    }

    /// Begins the next round and takes its first turn.
    fn next_round(&mut self) -> Option<(Ticket, K)> {
        let turns = &mut self.schedule.turns;
        // All entries are in the next round, including stale ones.
        let waiting = turns.next.len() - turns.left_over;
        mem::swap(&mut turns.this, &mut turns.next);
        let first = turns.this.pop_front()?;
        turns.round = first.0.round;
        turns.open = JOINERS.max(waiting);
        self.forget_idle();
        Some(first)
    }

    fn forget_idle(&mut self) {
        for key in self.schedule.idle.drain(..) {
            match self.members.get_mut(&key) {
                Some(member) if member.of.frames() > 0 => member.is_listed_idle = false,
                _ => drop(self.members.remove(&key)),
            }
        }
    }

    /// Removes stale entries before they outnumber the others.
    fn tidy(&mut self) {
        if self.schedule.idle.len() > IDLE {
            self.forget_idle();
        }
        let turns = &mut self.schedule.turns;
        if 2 * turns.left_over <= turns.this.len() + turns.next.len() + LEFT_OVER {
            return;
        }
        let members = &self.members;
        for entries in [&mut turns.this, &mut turns.next] {
            entries.retain(|(ticket, key)| {
                let member = members.get(key);
                member.is_some_and(|member| member.turn == Some(*ticket))
            });
        }
        turns.left_over = 0;
    }
}

impl<K: Copy + Ord> Schedule<K> {
    /// Changes a member, and removes its turn if it becomes empty.
    fn change<T: Holds, R>(
        &mut self,
        key: K,
        member: &mut Member<T>,
        change: impl FnOnce(&mut T) -> R,
    ) -> R {
        let before = (member.of.frames(), member.of.bytes());
        let result = change(&mut member.of);
        let after = (member.of.frames(), member.of.bytes());
        self.frames = self.frames + after.0 - before.0;
        self.bytes = self.bytes + after.1 - before.1;
        if after.0 > 0 {
            if member.turn.is_none() {
                member.turn = Some(self.turns.follow(key));
            }
        } else if before.0 > 0 {
            if let Some(ticket) = member.turn.take() {
                self.turns.left_over += 1;
                if ticket.round > self.turns.round {
                    // Its next frame must not join this round again.
                    member.served = Some(self.turns.round);
                }
            }
            member.of.shrink();
            if !mem::replace(&mut member.is_listed_idle, true) {
                self.idle.push(key);
            }
        }
        let first = member.first;
        if let Some(ranking) = &mut self.ranking {
            ranking.change((first, key), before, after);
            let has_less = self.frames < ranking.until_frames && self.bytes < ranking.until_bytes;
            if has_less || self.frames == 0 {
                self.ranking = None;
            }
        }
        result
    }
}

impl<K> Turns<K> {
    /// A turn for a member that had no frames.
    fn join(&mut self, key: K, end: End, served: Option<u64>) -> Ticket {
        if end == End::Front {
            let ticket = self.ticket(self.round);
            self.this.push_front((ticket, key));
            return ticket;
        }
        if self.open == 0 || served == Some(self.round) {
            return self.follow(key);
        }
        self.open -= 1;
        let ticket = self.ticket(self.round);
        self.this.push_back((ticket, key));
        ticket
    }

    /// A turn in the next round.
    fn follow(&mut self, key: K) -> Ticket {
        let ticket = self.ticket(self.round + 1);
        self.next.push_back((ticket, key));
        ticket
    }

    fn ticket(&mut self, round: u64) -> Ticket {
        self.last_number += 1;
        Ticket {
            number: self.last_number,
            round,
        }
    }
}

impl<K: Copy + Ord> Ranking<K> {
    fn new<T: Holds>(members: &Map<K, Member<T>>, until_frames: usize, until_bytes: usize) -> Self {
        let rank = |count: fn(&T) -> usize| {
            let members = members.iter().filter(|(_, member)| member.of.frames() > 0);
            let ranked = members.map(|(key, member)| (count(&member.of), member.first, *key));
            ranked.collect()
        };
        Self {
            by_frames: rank(T::frames),
            by_bytes: rank(T::bytes),
            until_frames,
            until_bytes,
        }
    }

    /// The frames or bytes of a member have changed.
    fn change(
        &mut self,
        (first, key): (ClientId, K),
        before: (usize, usize),
        after: (usize, usize),
    ) {
        if before.0 > 0 {
            self.by_frames.remove(&(before.0, first, key));
            self.by_bytes.remove(&(before.1, first, key));
        }
        if after.0 > 0 {
            self.by_frames.insert((after.0, first, key));
            self.by_bytes.insert((after.1, first, key));
        }
    }
}

#[cfg(test)]
impl<K: Copy + Ord + Hash, T: Holds> Group<K, T> {
    pub(super) fn get(&self, key: &K) -> Option<&T> {
        Some(&self.members.get(key)?.of)
    }

    /// Each member with frames has exactly one turn, and all counts are right.
    pub(super) fn check(&self) {
        let Turns {
            this,
            next,
            left_over,
            ..
        } = &self.schedule.turns;
        let is_own = |(ticket, key): &&(Ticket, K)| {
            self.members
                .get(key)
                .is_some_and(|member| member.turn == Some(*ticket))
        };
        let own = this.iter().chain(next).filter(is_own).count();
        assert_eq!(own + left_over, this.len() + next.len());
        let waiting = || {
            self.members
                .values()
                .filter(|member| member.of.frames() > 0)
        };
        assert_eq!(own, waiting().count());
        assert!(self.members.values().all(|member| {
            (member.of.frames() > 0) == member.turn.is_some()
                && (member.of.frames() > 0 || member.is_listed_idle)
        }));
        assert_eq!(
            self.schedule.frames,
            waiting().map(|member| member.of.frames()).sum::<usize>()
        );
        assert_eq!(
            self.schedule.bytes,
            waiting().map(|member| member.of.bytes()).sum::<usize>()
        );
        if let Some(ranking) = &self.schedule.ranking {
            assert_eq!(
                (ranking.by_frames.len(), ranking.by_bytes.len()),
                (own, own)
            );
        }
        assert!(
            self.schedule.idle.len() <= IDLE + 1
                && 2 * left_over <= this.len() + next.len() + LEFT_OVER
        );
    }
}
