//! The frames that wait: whose turn it is, and who has most. PURE.
//!
//! Hosts take turns, and within its turns the clients of a host do: a host gains
//! nothing by opening ports. When there are too many frames, the client that has most
//! of the host that has most loses its oldest.
//!
//! Turns come in rounds. Who has had a turn in this round waits for the
//! next one; who has not goes first, so that a client which asks now and then
//! need not wait for one that floods. Only so many may join a round that has
//! begun, lest a stream of newcomers keeps it from ever ending.
//!
//! Everything here costs the logarithm of the number of hosts and clients that wait,
//! at most.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::Hash;

use amber_proto::ClientId;

use super::Source;
use crate::hash::{Map, Set};

/// So many may join a round at least, however few wait.
const JOINERS: usize = 8;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Waiting {
    hosts: Group<Source, Group<ClientId, Line>>,
    /// Whose clients they are. Nothing is forgotten here before a client is gone, or
    /// nothing waits.
    host_of: Map<ClientId, Source>,
}

/// What there is most of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Most {
    Frames,
    Bytes,
}

impl Waiting {
    pub(super) fn frames(&self) -> usize {
        self.hosts.frames
    }

    pub(super) fn bytes(&self) -> usize {
        self.hosts.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hosts.frames == 0
    }

    /// Adds the newest frame of a client.
    pub(super) fn push_back(&mut self, source: Source, client: ClientId, frame: Box<[u8]>) {
        self.host_of.insert(client, source);
        self.hosts.push(source, client, End::Back, |clients| {
            clients.push(client, client, End::Back, |line| line.push_back(frame));
        });
    }

    /// Gives back what was the oldest frame of a client, whose turn it was.
    pub(super) fn push_front(&mut self, source: Source, client: ClientId, frame: Box<[u8]>) {
        self.host_of.insert(client, source);
        self.hosts.push(source, client, End::Front, |clients| {
            clients.push(client, client, End::Front, |line| line.push_front(frame));
        });
    }

    /// The oldest frame of the client whose turn it is; then the next has its turn.
    pub(super) fn next(&mut self) -> Option<(Source, ClientId, Box<[u8]>)> {
        let (source, (client, frame)) = self.hosts.next(|clients| clients.next(Line::pop))?;
        self.tidy();
        Some((source, client, frame))
    }

    /// Takes the oldest frame of whoever has most; ties go to the newest client.
    pub(super) fn drop_oldest(&mut self, most: Most) -> bool {
        let dropped = (self.hosts).of_most(most, |clients| clients.of_most(most, Line::pop));
        self.tidy();
        dropped.is_some()
    }

    /// Drops all that waits from a client. Returns how many frames that were.
    pub(super) fn forget(&mut self, client: ClientId) -> u64 {
        self.drop_of(client, |_| true)
    }

    /// Drops what waits from a client and begins with this header. Returns how
    /// many frames that were.
    pub(super) fn forget_headed(&mut self, client: ClientId, header: &[u8]) -> u64 {
        self.drop_of(client, |frame| frame.starts_with(header))
    }

    fn drop_of(&mut self, client: ClientId, is_dropped: impl Fn(&[u8]) -> bool) -> u64 {
        let Some(source) = self.host_of.get(&client) else {
            return 0;
        };
        let before = self.frames();
        let drop_some = |line: &mut Line| line.retain(|frame| !is_dropped(frame));
        (self.hosts).change(*source, |clients| clients.change(client, drop_some));
        if !self.has(client) {
            self.host_of.remove(&client);
        }
        (before - self.frames()) as u64
    }

    fn has(&self, client: ClientId) -> bool {
        let host = self.host_of.get(&client);
        let clients = host.and_then(|host| self.hosts.members.get(host));
        clients.is_some_and(|clients| clients.of.members.contains_key(&client))
    }

    fn tidy(&mut self) {
        if self.is_empty() {
            self.host_of.clear();
        }
    }
}

/// What has frames, and how many.
trait Holds: Default {
    fn frames(&self) -> usize;
    fn bytes(&self) -> usize;
}

/// The frames of one client.
#[derive(Debug, Default)]
struct Line {
    frames: VecDeque<Box<[u8]>>,
    bytes: usize,
}

impl Line {
    fn push_back(&mut self, frame: Box<[u8]>) {
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }

    fn push_front(&mut self, frame: Box<[u8]>) {
        self.bytes += frame.len();
        self.frames.push_front(frame);
    }

    fn pop(&mut self) -> Option<Box<[u8]>> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }

    fn retain(&mut self, is_kept: impl Fn(&[u8]) -> bool) {
        self.frames.retain(|frame| is_kept(frame));
        self.bytes = self.frames.iter().map(|frame| frame.len()).sum();
    }
}

impl Holds for Line {
    fn frames(&self) -> usize {
        self.frames.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Those who take turns: hosts, or the clients of one host. None of them is empty.
#[derive(Debug)]
struct Group<K, T> {
    members: Map<K, Member<T>>,
    /// In the order of their turns.
    turns: BTreeMap<Turn, K>,
    round: Round<K>,
    /// By what they have; of equals, by the client that came first.
    by_frames: BTreeSet<(usize, ClientId, K)>,
    by_bytes: BTreeSet<(usize, ClientId, K)>,
    last_place: i64,
    first_place: i64,
    frames: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Member<T> {
    turn: Turn,
    /// The client whose frame was the first to wait.
    first: ClientId,
    of: T,
}

/// When a member has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    round: u64,
    place: i64,
}

/// The round of the last turn.
#[derive(Debug)]
struct Round<K> {
    number: u64,
    /// Who had a turn in it, and nothing more that waited.
    served: Set<K>,
    /// How many more may join it.
    open: usize,
}

/// Where a frame is added, and with it a member that had none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

impl<K, T> Default for Group<K, T> {
    fn default() -> Self {
        Self {
            members: Map::default(),
            turns: BTreeMap::new(),
            round: Round::new(0, JOINERS),
            by_frames: BTreeSet::new(),
            by_bytes: BTreeSet::new(),
            last_place: 0,
            first_place: 0,
            frames: 0,
            bytes: 0,
        }
    }
}

impl<K, T> Holds for Group<K, T> {
    fn frames(&self) -> usize {
        self.frames
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<K: Copy + Ord + Hash, T: Holds> Group<K, T> {
    /// Adds a frame of a client to a member, which gets a turn if it has none.
    fn push(&mut self, key: K, client: ClientId, end: End, add: impl FnOnce(&mut T)) {
        if !self.members.contains_key(&key) {
            let turn = self.new_turn(key, end);
            self.turns.insert(turn, key);
            let member = Member {
                turn,
                first: client,
                of: T::default(),
            };
            self.list(key, member);
        }
        self.change(key, add);
    }

    fn new_turn(&mut self, key: K, end: End) -> Turn {
        let number = self.round.number;
        if end == End::Front {
            self.first_place -= 1;
            return Turn {
                round: number,
                place: self.first_place,
            };
        }
        let joins = self.round.open > 0 && !self.round.served.contains(&key);
        self.round.open -= usize::from(joins);
        self.last_place += 1;
        Turn {
            round: number + u64::from(!joins),
            place: self.last_place,
        }
    }

    /// Takes something from the member whose turn it is; then the next has its turn.
    fn next<R>(&mut self, take: impl FnOnce(&mut T) -> Option<R>) -> Option<(K, R)> {
        let (Turn { round, .. }, key) = self.turns.first_key_value().map(|(t, k)| (*t, *k))?;
        if self.round.number < round {
            self.round = Round::new(round, JOINERS.max(self.members.len()));
        }
        let taken = self.change(key, take)??;
        match self.members.get_mut(&key) {
            Some(member) => {
                self.last_place += 1;
                self.turns.remove(&member.turn);
                member.turn = Turn {
                    round: round + 1,
                    place: self.last_place,
                };
                self.turns.insert(member.turn, key);
            }
            None => drop(self.round.served.insert(key)),
        }
        Some((key, taken))
    }

    /// Takes something from whoever has most.
    fn of_most<R>(&mut self, most: Most, take: impl FnOnce(&mut T) -> Option<R>) -> Option<R> {
        let longest = match most {
            Most::Frames => self.by_frames.last(),
            Most::Bytes => self.by_bytes.last(),
        };
        let (_, _, key) = *longest?;
        self.change(key, take)?
    }

    /// Changes what a member has; one that has nothing left is no member any more.
    fn change<R>(&mut self, key: K, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut member = self.members.remove(&key)?;
        self.by_frames
            .remove(&(member.of.frames(), member.first, key));
        self.by_bytes
            .remove(&(member.of.bytes(), member.first, key));
        self.frames -= member.of.frames();
        self.bytes -= member.of.bytes();
        let result = change(&mut member.of);
        if member.of.frames() == 0 {
            self.turns.remove(&member.turn);
            if member.turn.round > self.round.number {
                // What it had was dropped. Its next frame must not join this round once more.
                self.round.served.insert(key);
            }
        } else {
            self.list(key, member);
        }
        Some(result)
    }

    fn list(&mut self, key: K, member: Member<T>) {
        let (frames, bytes) = (member.of.frames(), member.of.bytes());
        self.by_frames.insert((frames, member.first, key));
        self.by_bytes.insert((bytes, member.first, key));
        self.frames += frames;
        self.bytes += bytes;
        self.members.insert(key, member);
    }
}

impl<K> Round<K> {
    fn new(number: u64, open: usize) -> Self {
        Self {
            number,
            served: Set::default(),
            open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The clients of the next turns, as long as somebody waits.
    fn turns(waiting: &mut Waiting, count: usize) -> Vec<i32> {
        let next = || Some(waiting.next()?.1.0);
        std::iter::from_fn(next).take(count).collect()
    }

    fn push(waiting: &mut Waiting, client: i32) {
        push_from(waiting, client, client);
    }

    /// A frame of a client of a host.
    fn push_from(waiting: &mut Waiting, host: i32, client: i32) {
        let source = Source::Alone(ClientId(host));
        waiting.push_back(source, ClientId(client), Box::from([0]));
    }

    #[test]
    fn hosts_take_turns_before_their_clients_do() {
        let mut waiting = Waiting::default();
        for client in 10..1010 {
            push_from(&mut waiting, 1, client);
        }
        // One client of another host, and two of a third.
        for _ in 0..3 {
            push_from(&mut waiting, 2, 2);
        }
        push_from(&mut waiting, 3, 3);
        push_from(&mut waiting, 3, 4);
        let order = turns(&mut waiting, 9);
        assert_eq!(order, [10, 2, 3, 11, 2, 4, 12, 2, 13]);
    }

    #[test]
    fn too_many_frames_are_taken_from_the_host_that_has_most() {
        let mut waiting = Waiting::default();
        for client in 10..1010 {
            push_from(&mut waiting, 1, client);
        }
        for _ in 0..5 {
            push_from(&mut waiting, 2, 2);
        }
        // No client of the large host has more than one frame; the newest gives way.
        for _ in 0..995 {
            assert!(waiting.drop_oldest(Most::Frames));
        }
        assert_eq!(turns(&mut waiting, 9), [10, 2, 11, 2, 12, 2, 13, 2, 14]);
        assert_eq!(turns(&mut waiting, 9), [2]);
    }

    /// What waits, told in the simplest way: a list of frames.
    type Model = Vec<(i32, i32, u8)>;

    proptest::proptest! {
        /// Whatever comes and goes: nothing is lost or doubled, counts are right, and a
        /// host that always has something waiting gets its share of the turns.
        #[test]
        fn hosts_get_equal_shares(steps in proptest::collection::vec((0u8..10, 1i32..4, 0i32..3, 0u8..3), 1..300)) {
            let (mut waiting, mut model) = (Waiting::default(), Model::new());
            let mut since_turn = [0usize; 4];
            for (what, host, port, header) in steps {
                let client = 10 * host + port;
                match what {
                    0..4 => {
                        let source = Source::Alone(ClientId(host));
                        waiting.push_back(source, ClientId(client), Box::from([header, 1]));
                        model.push((host, client, header));
                    }
                    4..7 => {
                        let next = waiting.next();
                        proptest::prop_assert_eq!(next.is_some(), !model.is_empty());
                        if let Some((Source::Alone(from), id, frame)) = next {
                            let oldest = model.iter().position(|(_, client, _)| *client == id.0);
                            let (host, _, header) = model.remove(oldest.unwrap());
                            proptest::prop_assert_eq!((from.0, frame[0]), (host, header));
                            for other in 1..4 {
                                let waits = model.iter().any(|(of, ..)| *of == other) && other != host;
                                let turns = &mut since_turn[other as usize];
                                *turns = if waits { *turns + 1 } else { 0 };
                                // Two others had theirs, and one that came late to the round.
                                proptest::prop_assert!(*turns <= 4, "host {other} waits for {turns} turns");
                            }
                        }
                    }
                    7 => {
                        let dropped = waiting.drop_oldest(Most::Frames);
                        proptest::prop_assert_eq!(dropped, !model.is_empty());
                        let many = |host: i32| model.iter().filter(|(of, ..)| *of == host).count();
                        let most = (1..4).map(many).max().unwrap();
                        let left: Vec<_> = (1..4).map(|host| waiting.hosts.members.get(&Source::Alone(ClientId(host))).map_or(0, |m| m.of.frames)).collect();
                        let from = (1..4).find(|host| many(*host) > left[*host as usize - 1]);
                        if let Some(host) = from {
                            proptest::prop_assert_eq!(many(host), most);
                            let clients = (0..3).map(|port| 10 * host + port);
                            let lost = clients.clone().find(|client| {
                                let source = Source::Alone(ClientId(host));
                                let line = waiting.hosts.members.get(&source).and_then(|m| m.of.members.get(&ClientId(*client)));
                                line.map_or(0, |m| m.of.frames.len()) < model.iter().filter(|(_, of, _)| of == client).count()
                            });
                            let oldest = model.iter().position(|(_, client, _)| Some(*client) == lost);
                            model.remove(oldest.unwrap());
                        }
                    }
                    8 => {
                        let before = model.len();
                        model.retain(|(_, of, _)| *of != client);
                        proptest::prop_assert_eq!(waiting.forget(ClientId(client)), (before - model.len()) as u64);
                    }
                    _ => {
                        let before = model.len();
                        model.retain(|(_, of, with)| (*of, *with) != (client, header));
                        let forgotten = waiting.forget_headed(ClientId(client), &[header]);
                        proptest::prop_assert_eq!(forgotten, (before - model.len()) as u64);
                    }
                }
                for host in 1..4 {
                    if !model.iter().any(|(of, ..)| *of == host) {
                        // It gave up its place.
                        since_turn[host as usize] = 0;
                    }
                }
                proptest::prop_assert_eq!(waiting.frames(), model.len());
                proptest::prop_assert_eq!(waiting.bytes(), 2 * model.len());
                proptest::prop_assert_eq!(waiting.hosts.turns.len(), waiting.hosts.members.len());
            }
        }
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
