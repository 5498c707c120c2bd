//! Joins pieces, and calls for missing ones. PURE.
//!
//! After each change, drain [`Joiner::poll_call`], [`Joiner::poll_receipt`] and
//! [`Joiner::poll_lost`].

use std::collections::VecDeque;
use std::ops::Add;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::limits::{MAX_LONG, MAX_MISSING, MAX_PART, MAX_PIECES};
use crate::{MissingPieces, Piece, Receipt};

/// The maximum number of unfinished messages of one sender.
const MAX_OF_SENDER: usize = 4;
/// The same of all senders.
const MAX_PARTIALS: usize = 64;
/// The maximum memory of unfinished messages, in bytes.
const MAX_BYTES: usize = 2 * MAX_LONG;
/// The memory that each unfinished message is taken to need in addition to its bytes.
const OVERHEAD: usize = 256;
/// How many messages are remembered that are complete or given up, so that late pieces of them start
/// nothing and count nothing again.
const MAX_FINISHED: usize = 256;
/// How long a finished message makes earlier ones of its stream outdated. Only for a while: a driver
/// that was restarted may count from a smaller number.
const OUTDATES: Duration = Duration::from_secs(1);
/// How long a gap may be the work of packets that overtake each other.
const GAP: Duration = Duration::from_millis(5);
/// The silence after which a message that is not finished misses its last pieces. More than the pause
/// between two bursts.
const TAIL: Duration = Duration::from_millis(10);
/// The shortest time between two calls for pieces of one message. With 30 messages per second, a
/// second call must come before the next message.
const AGAIN: Duration = Duration::from_millis(12);
/// The maximum number of calls for a message of a stream.
const STREAM_CALLS: u32 = 3;
/// The maximum number of calls for another message without progress.
const OTHER_CALLS: u32 = 8;
/// With more than a quarter of its pieces missing, the network is congested, and a call does harm ...
const CONGESTED_PART: u32 = 4;
/// ... unless so few are missing.
const FEW: u32 = 4;
/// A message of a stream is given up after so long without a new piece; another one after...
const STREAM_AGE: Duration = Duration::from_secs(1);
/// ... so long.
const OTHER_AGE: Duration = Duration::from_secs(5);
/// A receipt is given for at least so many bytes.
const RECEIPT_BYTES: usize = 32_000;

/// Joins the pieces of any number of senders, within bounds. Times are of any clock, such as
/// [`Instant`], or the time since any moment.
///
/// ```
/// use std::time::Instant;
///
/// use amber_proto::pieces::{Joiner, Long};
/// use amber_proto::{DriverMsg, SynNum};
/// use prost::Message;
///
/// let bytes = vec![7; 3000];
/// let long = Long { number: 1, stream: None, syn: Some(SynNum(4)), bytes: bytes.clone().into() };
/// let mut joiner = Joiner::default();
/// let mut joined = None;
/// for index in [2, 0, 1] {
///     let message = DriverMsg::decode(long.piece(1024, index).unwrap()).unwrap();
///     joined = joiner.piece(Instant::now(), "camera:0", &message.piece.unwrap());
/// }
/// assert_eq!(joined.unwrap().message, bytes);
/// ```
#[derive(Debug)]
pub struct Joiner<K, T = Instant> {
    /// The oldest first.
    partials: Vec<Partial<K, T>>,
    finished: VecDeque<Finished<K, T>>,
    /// The memory of all partials, in bytes.
    bytes: usize,
    gives_receipts: bool,
    calls: VecDeque<(K, MissingPieces)>,
    receipts: VecDeque<(K, Receipt)>,
    lost: VecDeque<Lost<K>>,
    counters: Counters,
}

/// A complete message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined<T = Instant> {
    /// Usually a `DriverMsg`.
    pub message: Bytes,
    /// Its stream; `None` for answers and requests.
    pub stream: Option<u32>,
    /// When its first piece arrived.
    pub first_at: T,
}

/// A message that was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost<K> {
    /// Its sender.
    pub sender: K,
    /// Its stream.
    pub stream: Option<u32>,
    /// The number of pieces that never arrived.
    pub missing: u32,
}

/// What has happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Joined messages.
    pub joined: u64,
    /// Messages that were given up.
    pub lost: u64,
    /// Calls for missing pieces.
    pub calls: u64,
    /// The pieces that were called for.
    pub called_pieces: u64,
    /// Calls that were left out because too much was missing.
    pub congested: u64,
    /// Pieces that had arrived before, or came after a newer message.
    pub late: u64,
    /// Pieces that contradict themselves or others of their message.
    pub malformed: u64,
    /// Pieces of messages that are longer than the limit.
    pub too_long: u64,
}

/// A message of which nothing more is needed.
#[derive(Clone, Copy, Debug)]
struct Finished<K, T> {
    sender: K,
    number: u32,
    end: End<T>,
}

#[derive(Clone, Copy, Debug)]
enum End<T> {
    Joined {
        stream: Option<u32>,
        at: T,
    },
    /// With the number of its pieces: a recorder may still join a copy with pieces of another length.
    GivenUp {
        count: u32,
    },
}

/// A piece that does not contradict itself.
#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    number: u32,
    index: u32,
    count: u32,
    data: &'a [u8],
    stream: Option<u32>,
}

/// A message of which pieces are missing.
#[derive(Debug)]
struct Partial<K, T> {
    sender: K,
    number: u32,
    count: u32,
    stream: Option<u32>,
    /// The length of each piece but the last, once one has arrived.
    length: Option<usize>,
    /// All pieces but the last, in their places.
    data: Vec<u8>,
    last: Option<Vec<u8>>,
    /// One bit for each piece.
    has: Vec<u64>,
    received: u32,
    /// All pieces before this one have arrived.
    upto: u32,
    highest: u32,
    first_at: T,
    /// When the latest new piece arrived.
    last_at: T,
    /// When a gap was noticed that nobody has called for.
    gap_at: Option<T>,
    called_at: Option<T>,
    calls: u32,
    /// The `upto` of the last receipt.
    told: Option<u32>,
}

enum Added {
    New,
    Again,
    Malformed,
    TooLong,
}

impl<K, T> Default for Joiner<K, T> {
    fn default() -> Self {
        Self {
            partials: Vec::new(),
            finished: VecDeque::new(),
            bytes: 0,
            gives_receipts: false,
            calls: VecDeque::new(),
            receipts: VecDeque::new(),
            lost: VecDeque::new(),
            counters: Counters::default(),
        }
    }
}

impl<K: Copy + PartialEq, T: Copy + Ord + Add<Duration, Output = T>> Joiner<K, T> {
    /// One whose senders wait for receipts: that of a driver.
    pub fn with_receipts() -> Self {
        Self {
            gives_receipts: true,
            ..Self::default()
        }
    }

    /// A piece has arrived. Returns the message if it was the last missing one.
    pub fn piece(&mut self, now: T, sender: K, piece: &Piece) -> Option<Joined<T>> {
        let Some(part) = Part::of(piece) else {
            self.counters.malformed += 1;
            return None;
        };
        let at = match self.find(sender, &part) {
            Some(known) => known,
            None => match self.end_of(sender, &part) {
                Some(end) => {
                    self.counters.late += 1;
                    if matches!(end, End::Joined { .. }) {
                        self.give_receipt(sender, part.number, part.count);
                    }
                    return None;
                }
                None if self.is_outdated(now, sender, &part) => {
                    self.counters.late += 1;
                    self.lose(sender, &part);
                    return None;
                }
                None => self.begin(now, sender, &part),
            },
        };
        let partial = &mut self.partials[at];
        let before = partial.memory();
        let added = partial.add(now, &part);
        self.bytes = self.bytes + partial.memory() - before;
        match added {
            Added::New => {}
            Added::Again => {
                self.counters.late += 1;
                let upto = partial.upto;
                self.give_receipt(sender, part.number, upto);
                return None;
            }
            Added::Malformed => {
                self.counters.malformed += 1;
                return None;
            }
            Added::TooLong => {
                self.counters.too_long += 1;
                self.give_up(at);
                return None;
            }
        }
        if partial.is_complete() {
            return Some(self.finish(now, at));
        }
        if self.gives_receipts && partial.takes_receipt() {
            let upto = partial.upto;
            self.give_receipt(sender, part.number, upto);
        }
        while self.bytes > MAX_BYTES {
            self.give_up_one();
        }
        None
    }

    /// The time of [`Self::next_timeout`] may have come.
    pub fn timeout(&mut self, now: T) {
        while let Some(at) = self.partials.iter().position(|it| it.ends_at() <= now) {
            self.give_up(at);
        }
        for partial in &mut self.partials {
            if partial.call_at().is_none_or(|due| due > now) {
                continue;
            }
            let index = partial.call(now, self.gives_receipts);
            let most = (partial.count / CONGESTED_PART).max(FEW);
            if partial.stream.is_some() && index.len() > most as usize {
                // A later call would find as much missing.
                partial.calls = STREAM_CALLS;
                self.counters.congested += 1;
            } else if !index.is_empty() {
                self.counters.calls += 1;
                self.counters.called_pieces += index.len() as u64;
                let message = Some(partial.number);
                let call = MissingPieces { message, index };
                self.calls.push_back((partial.sender, call));
            }
        }
    }

    /// When to call [`Self::timeout`].
    pub fn next_timeout(&self) -> Option<T> {
        let times = self.partials.iter().map(|partial| {
            let ends_at = partial.ends_at();
            partial.call_at().map_or(ends_at, |due| due.min(ends_at))
        });
        times.min()
    }

    /// The next call to send.
    pub fn poll_call(&mut self) -> Option<(K, MissingPieces)> {
        self.calls.pop_front()
    }

    /// The next receipt to send; there are some only [with receipts](Self::with_receipts).
    pub fn poll_receipt(&mut self) -> Option<(K, Receipt)> {
        self.receipts.pop_front()
    }

    /// The next message that was given up.
    pub fn poll_lost(&mut self) -> Option<Lost<K>> {
        self.lost.pop_front()
    }

    /// These senders are gone, and others may get their names and numbers.
    pub fn forget(&mut self, mut is_gone: impl FnMut(K) -> bool) {
        while let Some(at) = self.partials.iter().position(|it| is_gone(it.sender)) {
            self.give_up(at);
        }
        self.finished.retain(|it| !is_gone(it.sender));
    }

    /// What has happened so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The memory of all unfinished messages, in bytes.
    pub fn memory(&self) -> usize {
        self.bytes
    }

    /// How the message of a piece has ended, if it has.
    fn end_of(&self, sender: K, part: &Part<'_>) -> Option<End<T>> {
        let is_it = |it: &&Finished<K, T>| {
            it.sender == sender
                && it.number == part.number
                && match it.end {
                    End::Joined { .. } => true,
                    End::GivenUp { count } => count == part.count,
                }
        };
        self.finished.iter().rev().find(is_it).map(|it| it.end)
    }

    /// Whether a newer message of the stream is complete.
    fn is_outdated(&self, now: T, sender: K, part: &Part<'_>) -> bool {
        part.stream.is_some()
            && self.finished.iter().any(|it| match it.end {
                End::Joined { stream, at } => {
                    it.sender == sender
                        && stream == part.stream
                        && is_newer(it.number, part.number)
                        && now < at + OUTDATES
                }
                End::GivenUp { .. } => false,
            })
    }

    /// The message of a piece. A recorder also sees copies with pieces of another length.
    fn find(&self, sender: K, part: &Part<'_>) -> Option<usize> {
        self.partials.iter().position(|it| {
            it.sender == sender && it.number == part.number && it.count == part.count
        })
    }

    fn begin(&mut self, now: T, sender: K, part: &Part<'_>) -> usize {
        let is_of_sender = |it: &Partial<K, T>| it.sender == sender;
        if self.partials.iter().filter(|it| is_of_sender(it)).count() >= MAX_OF_SENDER
            && let Some(oldest) = self.partials.iter().position(is_of_sender)
        {
            self.give_up(oldest);
        }
        if self.partials.len() >= MAX_PARTIALS {
            self.give_up_one();
        }
        let partial = Partial::new(now, sender, part);
        self.bytes += partial.memory();
        self.partials.push(partial);
        self.partials.len() - 1
    }

    fn finish(&mut self, now: T, at: usize) -> Joined<T> {
        let done = self.remove(at);
        self.give_receipt(done.sender, done.number, done.count);
        while let Some(copy) = (self.partials.iter())
            .position(|it| it.sender == done.sender && it.number == done.number)
        {
            drop(self.remove(copy));
        }
        while let Some(old) = self.partials.iter().position(|it| {
            it.sender == done.sender
                && it.stream.is_some()
                && it.stream == done.stream
                && is_newer(done.number, it.number)
        }) {
            self.give_up(old);
        }
        let stream = done.stream;
        self.remember(done.sender, done.number, End::Joined { stream, at: now });
        self.counters.joined += 1;
        Joined {
            stream,
            first_at: done.first_at,
            message: done.joined(),
        }
    }

    fn remember(&mut self, sender: K, number: u32, end: End<T>) {
        if self.finished.len() == MAX_FINISHED {
            self.finished.pop_front();
        }
        self.finished.push_back(Finished {
            sender,
            number,
            end,
        });
    }

    fn give_receipt(&mut self, sender: K, number: u32, upto: u32) {
        if self.gives_receipts {
            let receipt = Receipt {
                message: Some(number),
                upto: Some(upto),
            };
            self.receipts.push_back((sender, receipt));
        }
    }

    /// Gives up the oldest message of the sender that needs most memory: a sender must not displace
    /// the messages of others.
    fn give_up_one(&mut self) {
        let of = |sender| {
            let its = self.partials.iter().filter(|it| it.sender == sender);
            its.map(Partial::memory).sum::<usize>()
        };
        let greedy = (self.partials.iter().map(|it| it.sender)).max_by_key(|sender| of(*sender));
        let oldest = self
            .partials
            .iter()
            .position(|it| Some(it.sender) == greedy);
        self.give_up(oldest.unwrap_or(0));
    }

    fn give_up(&mut self, at: usize) {
        let partial = self.remove(at);
        let count = partial.count;
        self.remember(partial.sender, partial.number, End::GivenUp { count });
        self.counters.lost += 1;
        self.lost.push_back(Lost {
            sender: partial.sender,
            stream: partial.stream,
            missing: partial.count - partial.received,
        });
    }

    /// Gives up a message before it begins: all its pieces come behind a newer message.
    fn lose(&mut self, sender: K, part: &Part<'_>) {
        let count = part.count;
        self.remember(sender, part.number, End::GivenUp { count });
        self.counters.lost += 1;
        self.lost.push_back(Lost {
            sender,
            stream: part.stream,
            missing: count,
        });
    }

    fn remove(&mut self, at: usize) -> Partial<K, T> {
        let partial = self.partials.remove(at);
        self.bytes -= partial.memory();
        partial
    }
}

impl<'a> Part<'a> {
    fn of(piece: &'a Piece) -> Option<Self> {
        let data = piece.data.as_deref().unwrap_or_default();
        let (index, count) = (piece.index(), piece.count());
        let is_sound = (2..=MAX_PIECES).contains(&count)
            && index < count
            && (1..=MAX_PART).contains(&data.len());
        is_sound.then_some(Self {
            number: piece.message(),
            index,
            count,
            data,
            stream: piece.stream,
        })
    }

    fn is_last(&self) -> bool {
        self.index + 1 == self.count
    }
}

impl<K, T: Copy + Ord + Add<Duration, Output = T>> Partial<K, T> {
    fn new(now: T, sender: K, part: &Part<'_>) -> Self {
        Self {
            sender,
            number: part.number,
            count: part.count,
            stream: part.stream,
            length: None,
            data: Vec::new(),
            last: None,
            has: vec![0; part.count.div_ceil(64) as usize],
            received: 0,
            upto: 0,
            highest: 0,
            first_at: now,
            last_at: now,
            gap_at: None,
            called_at: None,
            calls: 0,
            told: None,
        }
    }

    fn add(&mut self, now: T, part: &Part<'_>) -> Added {
        if part.stream != self.stream {
            return Added::Malformed;
        }
        if self.has(part.index) {
            return Added::Again;
        }
        let before_last = (self.count - 1) as usize;
        let last_length = match part.is_last() {
            true => part.data.len(),
            false => self.last.as_ref().map_or(1, Vec::len),
        };
        let length = match (self.length, part.is_last()) {
            (None, true) => None,
            (None, false) => Some(part.data.len()),
            (Some(length), is_last) if is_last || part.data.len() == length => Some(length),
            (Some(_), _) => return Added::Malformed,
        };
        // Nothing is allocated before this.
        if let Some(length) = length {
            if last_length > length {
                return Added::Malformed;
            }
            if before_last * length + last_length > MAX_LONG {
                return Added::TooLong;
            }
        }
        match part.is_last() {
            true => self.last = Some(part.data.to_vec()),
            false => {
                let length = part.data.len();
                if self.length.is_none() {
                    self.length = Some(length);
                    self.data = vec![0; before_last * length];
                }
                let from = part.index as usize * length;
                self.data[from..from + length].copy_from_slice(part.data);
            }
        }
        self.note(now, part.index);
        Added::New
    }

    fn note(&mut self, now: T, index: u32) {
        self.has[index as usize / 64] |= 1 << (index % 64);
        self.received += 1;
        self.last_at = now;
        self.highest = self.highest.max(index);
        let before = self.upto;
        while self.upto < self.count && self.has(self.upto) {
            self.upto += 1;
        }
        if self.upto > before && self.stream.is_none() {
            self.calls = 0;
        }
        match self.upto > self.highest {
            true => self.gap_at = None,
            false => self.gap_at = self.gap_at.or(Some(now)),
        }
    }

    fn has(&self, index: u32) -> bool {
        self.has[index as usize / 64] & (1 << (index % 64)) != 0
    }

    fn is_complete(&self) -> bool {
        self.received == self.count
    }

    fn joined(mut self) -> Bytes {
        self.data.extend(self.last.unwrap_or_default());
        self.data.into()
    }

    fn memory(&self) -> usize {
        let last = self.last.as_ref().map_or(0, Vec::len);
        OVERHEAD + 8 * self.has.len() + self.data.len() + last
    }

    /// Whether it is time for a receipt; notes that it is given.
    fn takes_receipt(&mut self) -> bool {
        let every = self
            .length
            .map_or(1, |length| (RECEIPT_BYTES / length).max(1));
        let is_due = (self.told).is_none_or(|told| self.upto >= told + every as u32);
        if is_due {
            self.told = Some(self.upto);
        }
        is_due
    }

    /// When to give up.
    fn ends_at(&self) -> T {
        self.last_at
            + match self.stream {
                Some(_) => STREAM_AGE,
                None => OTHER_AGE,
            }
    }

    /// When to call for what is missing.
    fn call_at(&self) -> Option<T> {
        let calls = match self.stream {
            Some(_) => STREAM_CALLS,
            None => OTHER_CALLS,
        };
        if self.calls >= calls {
            return None;
        }
        let tail = self.last_at + TAIL;
        let due = self.gap_at.map_or(tail, |at| tail.min(at + GAP));
        Some(self.called_at.map_or(due, |at| due.max(at + AGAIN)))
    }

    /// The pieces to call for now. The sender of an upload cares for its last pieces itself, which it
    /// has perhaps not sent yet.
    fn call(&mut self, now: T, is_upload: bool) -> Vec<u32> {
        let is_tail = self.last_at + TAIL <= now;
        let end = match is_tail && !is_upload {
            true => self.count,
            false => self.highest,
        };
        self.gap_at = None;
        self.called_at = Some(now);
        self.calls += 1;
        let missing = (self.upto..end).filter(|index| !self.has(*index));
        missing.take(MAX_MISSING).collect()
    }
}

/// Whether a number was counted after another one.
fn is_newer(number: u32, than: u32) -> bool {
    let ahead = number.wrapping_sub(than);
    (1..1 << 31).contains(&ahead)
}
