//! The long messages of a driver: when to send which pieces, to whom, and again. PURE.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::Long;
use crate::limits::MAX_LONG;
use crate::{ClientId, Device, MissingPieces};

/// The maximum number of pieces in a burst.
const BURST: usize = 16;
/// The maximum number of bytes in a burst.
const BURST_BYTES: usize = 256_000;
/// The longest pause between two bursts.
const PAUSE: Duration = Duration::from_millis(5);
/// The shortest one: two messages may come at the same time.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// How long a message is kept behind its last piece.
const KEEP: Duration = Duration::from_millis(500);
/// The maximum number of clients that one kept message remembers having called.
const MAX_CALLERS: usize = 256;

/// Pieces to send now to the same clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The device that sends them, in a process that serves several.
    pub device: Option<Device>,
    /// The receivers.
    pub clients: Vec<ClientId>,
    /// Messages.
    pub pieces: Vec<Bytes>,
}

/// The long messages that a driver is sending or may have to send again.
#[derive(Debug, Default)]
pub struct Paced {
    /// The oldest first.
    kept: VecDeque<Kept>,
    again: VecDeque<Burst>,
    /// When the latest message of a stream was added. The key has the first client, because clients
    /// may get a stream at different rates.
    latest: BTreeMap<(Option<Device>, u32, ClientId), Instant>,
}

#[derive(Debug)]
struct Kept {
    long: Long,
    device: Option<Device>,
    clients: Vec<ClientId>,
    piece_bytes: usize,
    /// The next piece.
    next: u32,
    /// When to send the next burst, and behind the last one, when to forget the message.
    due: Instant,
    pause: Duration,
    /// How many pieces each client got again.
    again: BTreeMap<ClientId, u32>,
}

impl Paced {
    /// Begins to send a message. The first burst is due at once.
    pub fn push(
        &mut self,
        now: Instant,
        long: Long,
        device: Option<Device>,
        clients: Vec<ClientId>,
        piece_bytes: usize,
    ) {
        let Some(first) = clients.first().copied() else {
            return;
        };
        let before = long.stream.and_then(|stream| {
            let key = (device, stream, first);
            self.latest.insert(key, now)
        });
        let period = before.map(|before| now.saturating_duration_since(before));
        let bursts = long.count(piece_bytes).div_ceil(burst(piece_bytes));
        if long.stream.is_some() {
            self.drop_overtaken(&long, device, &clients);
        }
        self.kept.push_back(Kept {
            long,
            device,
            clients,
            piece_bytes,
            next: 0,
            due: now,
            pause: pause(period, bursts),
            again: BTreeMap::new(),
        });
        while self.bytes() > MAX_LONG && self.kept.len() > 1 {
            self.kept.pop_front();
        }
    }

    /// The next burst, if one is due. Those that were called for come first.
    pub fn poll(&mut self, now: Instant) -> Option<Burst> {
        if let Some(burst) = self.again.pop_front() {
            return Some(burst);
        }
        self.kept
            .retain(|it| it.due > now || it.next < it.long.count(it.piece_bytes));
        let kept = (self.kept.iter_mut())
            .filter(|it| it.due <= now)
            .min_by_key(|it| it.due)?;
        Some(kept.burst(now))
    }

    /// When [`Self::poll`] has something to do.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.kept.iter().map(|it| it.due).min()
    }

    /// A client calls for missing pieces. Pieces that were not sent yet are not sent earlier.
    pub fn missing(&mut self, client: ClientId, call: &MissingPieces) {
        let kept = (self.kept.iter_mut())
            .find(|it| it.long.number == call.message() && it.clients.contains(&client));
        let Some(kept) = kept else {
            return;
        };
        let count = kept.long.count(kept.piece_bytes);
        if kept.again.len() == MAX_CALLERS && !kept.again.contains_key(&client) {
            return;
        }
        let sent = kept.again.entry(client).or_default();
        // 20 bytes of a call must not cost more than the message once more.
        let room = (count - *sent) as usize;
        let wanted = call.index.iter().filter(|index| **index < kept.next);
        let pieces: Vec<_> = wanted
            .take(room)
            .filter_map(|index| kept.long.piece(kept.piece_bytes, *index))
            .collect();
        *sent += pieces.len() as u32;
        for pieces in pieces.chunks(burst(kept.piece_bytes) as usize) {
            self.again.push_back(Burst {
                device: kept.device,
                clients: vec![client],
                pieces: pieces.to_vec(),
            });
        }
    }

    /// A client is gone.
    pub fn forget(&mut self, client: ClientId) {
        for kept in &mut self.kept {
            kept.clients.retain(|it| *it != client);
        }
        self.kept.retain(|it| !it.clients.is_empty());
        self.again.retain(|it| it.clients != [client]);
        self.latest.retain(|(_, _, it), _| *it != client);
    }

    /// The bytes of all messages that are kept. Copies for clients with other pieces share them.
    pub(super) fn bytes(&self) -> usize {
        let mut bytes = 0;
        let mut last = None;
        for kept in &self.kept {
            if last != Some(kept.long.number) {
                bytes += kept.long.bytes.len();
            }
            last = Some(kept.long.number);
        }
        bytes
    }

    /// Two messages of a stream may be under way to the same clients. A third drops the oldest.
    fn drop_overtaken(&mut self, newest: &Long, device: Option<Device>, clients: &[ClientId]) {
        let is_waiting = |it: &Kept| {
            it.device == device
                && it.long.stream == newest.stream
                && it.clients == clients
                && it.next < it.long.count(it.piece_bytes)
        };
        if self.kept.iter().filter(|it| is_waiting(it)).count() >= 2
            && let Some(oldest) = self.kept.iter().position(is_waiting)
        {
            self.kept.remove(oldest);
        }
    }
}

impl Kept {
    fn burst(&mut self, now: Instant) -> Burst {
        let count = self.long.count(self.piece_bytes);
        let end = count.min(self.next + burst(self.piece_bytes));
        let pieces = (self.next..end).filter_map(|index| self.long.piece(self.piece_bytes, index));
        let pieces = pieces.collect();
        self.next = end;
        self.due = match end == count {
            true => now + KEEP,
            // From the time that was planned, so that late wake-ups do not add up.
            false => (self.due + self.pause).max(now),
        };
        Burst {
            device: self.device,
            clients: self.clients.clone(),
            pieces,
        }
    }
}

/// The number of pieces in a burst.
fn burst(piece_bytes: usize) -> u32 {
    BURST.min(BURST_BYTES / piece_bytes.max(1)).max(1) as u32
}

/// The pause between the bursts of a message: at most 80 % of the time between two messages in all.
fn pause(period: Option<Duration>, bursts: u32) -> Duration {
    let most = period.map_or(PAUSE, |period| period * 4 / 5 / bursts.max(1));
    most.clamp(SHORTEST_PAUSE, PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_fit_into_the_period() {
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1000.0);
        // The time between two messages, bursts, pause.
        let table = [
            (None, 4, 5.0),
            (Some(100.0), 11, 5.0),
            (Some(33.0), 4, 5.0),
            (Some(33.0), 11, 2.4),
            (Some(0.0), 11, 1.0),
            (Some(10_000.0), 1, 5.0),
        ];
        for (period, bursts, expected) in table {
            assert_eq!(pause(period.map(ms), bursts), ms(expected), "{period:?}");
        }
    }

    #[test]
    fn bursts_have_16_pieces_and_at_most_256_000_bytes() {
        assert_eq!(burst(1_180), 16);
        assert_eq!(burst(32_000), 8);
        assert_eq!(burst(300_000), 1);
    }
}
