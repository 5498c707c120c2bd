//! The bus: one exchange at a time, with the time that its bytes take. PURE.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use super::Maker;
use super::wire::{Line, Request, Status};

/// After a missing answer, the line is left alone: it may be late.
const SETTLE: Duration = Duration::from_millis(3);
/// A byte has a start and a stop bit.
const BITS: u32 = 10;

/// A half-duplex line: whoever sends while an answer is due destroys it.
#[derive(Debug)]
pub(crate) struct Bus<M> {
    line: Line,
    exchange: Option<Exchange>,
    /// When everything that was sent is on the wire.
    sent_at: Instant,
    settled_at: Instant,
    byte_time: Duration,
    patience: Duration,
    maker: PhantomData<fn() -> M>,
}

#[derive(Debug)]
struct Exchange {
    request: Request,
    /// Who has not answered.
    awaited: Vec<u8>,
    deadline: Instant,
}

/// A request that some have not answered in time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Who has not.
    pub(crate) ids: Vec<u8>,
    /// Whether anything damaged has arrived instead.
    pub(crate) is_damaged: bool,
}

impl<M: Maker> Bus<M> {
    pub(crate) fn new(now: Instant, baud: u32, patience: Duration) -> Self {
        Self {
            line: Line::default(),
            exchange: None,
            sent_at: now,
            settled_at: now,
            byte_time: Duration::from_secs(BITS.into()) / baud,
            patience,
            maker: PhantomData,
        }
    }

    /// Whether something may be sent.
    pub(crate) fn is_free(&self, now: Instant) -> bool {
        self.exchange.is_none() && now >= self.settled_at
    }

    /// Drops the exchange: the connection is new or gone.
    pub(crate) fn reset(&mut self, now: Instant) {
        self.exchange = None;
        (self.sent_at, self.settled_at) = (now, now);
    }

    /// The bytes of a request that nobody answers.
    pub(crate) fn write(&mut self, now: Instant, request: &Request) -> Vec<u8> {
        let bytes = M::encode(request);
        self.sent_at = self.sent_at.max(now) + self.time(bytes.len());
        bytes
    }

    /// The bytes of a request, whose answers are awaited from now on.
    pub(crate) fn ask(&mut self, now: Instant, request: Request) -> Vec<u8> {
        let bytes = self.write(now, &request);
        let awaited = request.asked().to_vec();
        let answers = awaited.len() * M::answer_length(request.count());
        self.line.begin();
        self.exchange = Some(Exchange {
            deadline: self.sent_at + self.time(answers) + self.patience,
            awaited,
            request,
        });
        bytes
    }

    /// Bytes have arrived.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.line.push(bytes);
    }

    /// The next answer, with the first register that was asked for. What nobody has asked for is no
    /// answer, such as an echo of the request.
    pub(crate) fn next(&mut self) -> Option<(u16, Status)> {
        loop {
            let exchange = self.exchange.as_mut()?;
            let status = self.line.next(M::find)?;
            let at = match exchange.request {
                Request::Read { at, .. } | Request::GroupRead { at, .. } => at,
                Request::Ping(_) | Request::GroupWrite { .. } => 0,
            };
            let awaited = exchange.awaited.iter().position(|id| *id == status.id);
            if let Some(index) = awaited.filter(|_| status.data.len() == exchange.request.count()) {
                exchange.awaited.remove(index);
                if exchange.awaited.is_empty() {
                    self.exchange = None;
                }
                return Some((at, status));
            }
        }
    }

    /// Those who have not answered in time. The exchange is over then.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Missing> {
        let exchange = self.exchange.take_if(|it| now >= it.deadline)?;
        self.settled_at = now + SETTLE;
        Some(Missing {
            ids: exchange.awaited,
            is_damaged: self.line.damaged() > 0,
        })
    }

    /// When to call [`Bus::expire`], or to look whether it is free.
    pub(crate) fn wake_at(&self, now: Instant) -> Option<Instant> {
        let deadline = self.exchange.as_ref().map(|it| it.deadline);
        deadline.or((now < self.settled_at).then_some(self.settled_at))
    }

    fn time(&self, bytes: usize) -> Duration {
        // A packet has less than 64 KiB.
        self.byte_time * bytes as u32
    }
}
