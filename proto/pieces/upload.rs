//! A long request: its sender waits for receipts of the driver. PURE.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::Long;

/// The maximum number of pieces ahead of the receipts.
const AHEAD: usize = 64;
/// The maximum number of bytes ahead of the receipts: half of what a mediator queues for a driver.
const AHEAD_BYTES: usize = 256_000;
/// The time without a receipt after which a piece is sent again. It doubles with each try.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often that is done before the driver counts as one that cannot join.
const TRIES: u32 = 3;
/// The time without progress after which an upload ends.
const GIVE_UP: Duration = Duration::from_secs(5);

/// Whether an upload goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    GoesOn,
    /// The driver has sent no receipt at all: it cannot join pieces.
    NotUnderstood,
    /// There was no progress for long.
    Stuck,
}

/// A request in pieces under way to a driver.
#[derive(Debug)]
pub struct Upload {
    long: Long,
    piece_bytes: usize,
    count: u32,
    /// The next piece that was never sent.
    next: u32,
    /// All pieces before this one have arrived; `None` before the first receipt.
    upto: Option<u32>,
    again: VecDeque<u32>,
    /// When the last receipt with progress came.
    progress_at: Instant,
    due: Instant,
    tries: u32,
}

impl Upload {
    /// Begins with the first piece alone.
    pub fn new(now: Instant, long: Long, piece_bytes: usize) -> Self {
        Self {
            count: long.count(piece_bytes),
            long,
            piece_bytes,
            next: 0,
            upto: None,
            again: VecDeque::new(),
            progress_at: now,
            due: now + PATIENCE,
            tries: 0,
        }
    }

    /// The message.
    pub fn long(&self) -> &Long {
        &self.long
    }

    /// The next piece that may be sent now.
    pub fn poll(&mut self) -> Option<Bytes> {
        let index = match self.again.pop_front() {
            Some(index) => index,
            None => {
                let index = self.next;
                if index >= self.end() {
                    return None;
                }
                self.next += 1;
                index
            }
        };
        self.long.piece(self.piece_bytes, index)
    }

    /// A receipt of the driver. Returns whether all pieces have arrived.
    pub fn receipt(&mut self, now: Instant, upto: u32) -> bool {
        let upto = upto.min(self.next);
        if self.upto.is_none_or(|before| upto > before) {
            self.upto = Some(upto);
            self.progress_at = now;
            self.due = now + PATIENCE;
            self.tries = 0;
            self.again.retain(|index| *index >= upto);
        }
        self.is_done()
    }

    /// The driver calls for missing pieces.
    pub fn missing(&mut self, index: &[u32]) {
        let upto = self.upto.unwrap_or(0);
        for index in index {
            if (upto..self.next).contains(index) && !self.again.contains(index) {
                self.again.push_back(*index);
            }
        }
    }

    /// The time of [`Self::next_timeout`] may have come.
    pub fn timeout(&mut self, now: Instant) -> Verdict {
        if now < self.due {
            return Verdict::GoesOn;
        }
        if self.upto.is_none() && self.tries == TRIES {
            return Verdict::NotUnderstood;
        }
        if now >= self.progress_at + GIVE_UP {
            return Verdict::Stuck;
        }
        let first = self.upto.unwrap_or(0);
        if first < self.next && !self.again.contains(&first) {
            self.again.push_back(first);
        }
        self.due = now + PATIENCE * 2_u32.pow(self.tries.min(TRIES));
        self.tries += 1;
        Verdict::GoesOn
    }

    /// When to call [`Self::timeout`].
    pub fn next_timeout(&self) -> Instant {
        self.due
    }

    fn is_done(&self) -> bool {
        self.upto == Some(self.count)
    }

    /// The end of the pieces that may be under way.
    fn end(&self) -> u32 {
        let Some(upto) = self.upto else {
            return 1;
        };
        let ahead = AHEAD.min(AHEAD_BYTES / self.piece_bytes.max(1)).max(1);
        self.count.min(upto.saturating_add(ahead as u32))
    }
}
