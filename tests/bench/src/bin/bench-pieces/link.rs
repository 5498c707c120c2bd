//! A network between a client and its mediator, in the client: loss, delay, and a slow link with a
//! short queue. IO.

use std::collections::VecDeque;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use amber_client::transport::{Role, Transport, TransportError, UdpTransport};
use amber_proto::{DriverMsg, Packet};
use anyhow::Context as _;
use prost::Message;
use tokio::time::{Instant, Sleep, sleep};

/// IP and UDP, in bytes.
const HEADERS: usize = 28;

/// The properties of the network, as LOSS_PERCENT,DELAY_MS,MBIT_S,QUEUE; no limit with 0 Mbit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rule {
    loss_percent: f64,
    delay: Duration,
    mbit_s: f64,
    /// Packets that wait for the slow link.
    queue: usize,
}

impl FromStr for Rule {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut parts = text.split(',');
        let mut next = || parts.next().context("LOSS_PERCENT,DELAY_MS,MBIT_S,QUEUE");
        Ok(Self {
            loss_percent: next()?.parse()?,
            delay: Duration::from_millis(next()?.parse()?),
            mbit_s: next()?.parse()?,
            queue: next()?.parse()?,
        })
    }
}

/// What came to the network from the mediator.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) pieces: AtomicU64,
    /// The longest datagram with a piece, in bytes.
    pub(crate) longest: AtomicUsize,
}

/// The transport of a client behind such a network.
pub(crate) struct Link {
    inner: UdpTransport,
    rule: Rule,
    counts: Arc<Counts>,
    random: u64,
    down: VecDeque<(Instant, Packet)>,
    up: VecDeque<(Instant, Packet)>,
    /// When the slow link has sent what waits for it.
    free_at: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl Link {
    pub(crate) fn new(inner: UdpTransport, rule: Rule, counts: Arc<Counts>) -> Self {
        Self {
            inner,
            rule,
            counts,
            random: 0x5851_f42d_4c95_7f2d,
            down: VecDeque::new(),
            up: VecDeque::new(),
            free_at: Instant::now(),
            sleep: Box::pin(sleep(Duration::ZERO)),
        }
    }

    fn is_lost(&mut self) -> bool {
        self.random = (self.random)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let part = (self.random >> 40) as f64 / (1_u64 << 24) as f64;
        part * 100.0 < self.rule.loss_percent
    }

    /// A packet from the mediator.
    fn arrive(&mut self, packet: Packet) {
        let bytes = 4 + packet.header.encoded_len() + packet.message.len();
        let is_piece = DriverMsg::decode(&packet.message[..]).is_ok_and(|it| it.piece.is_some());
        if is_piece {
            self.counts.pieces.fetch_add(1, Ordering::Relaxed);
            self.counts.longest.fetch_max(bytes, Ordering::Relaxed);
        }
        let now = Instant::now();
        if self.is_lost() {
            return;
        }
        let mut at = now;
        if self.rule.mbit_s > 0.0 {
            let needed = (8 * (bytes + HEADERS)) as f64 / (self.rule.mbit_s * 1e6);
            let waits = self.free_at.saturating_duration_since(now);
            if waits.as_secs_f64() > self.rule.queue as f64 * needed {
                return;
            }
            at = now + waits + Duration::from_secs_f64(needed);
            self.free_at = at;
        }
        self.down.push_back((at + self.rule.delay, packet));
    }

    fn send_due(&mut self, cx: &mut Context<'_>) {
        while let Some((at, packet)) = self.up.front() {
            if *at > Instant::now() || self.inner.poll_send(cx, packet).is_pending() {
                return;
            }
            self.up.pop_front();
        }
    }
}

impl Transport for Link {
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
    ) -> Poll<Result<(), TransportError>> {
        if !self.is_lost() {
            let at = Instant::now() + self.rule.delay;
            self.up.push_back((at, packet.clone()));
            self.send_due(cx);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, TransportError>> {
        loop {
            while let Poll::Ready(received) = self.inner.poll_receive(cx) {
                match received {
                    Ok(packet) => self.arrive(packet),
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            self.send_due(cx);
            let first = |queue: &VecDeque<(Instant, Packet)>| queue.front().map(|(at, _)| *at);
            let (down, up) = (first(&self.down), first(&self.up));
            if down.is_some_and(|at| at <= Instant::now())
                && let Some((_, packet)) = self.down.pop_front()
            {
                return Poll::Ready(Ok(packet));
            }
            let Some(at) = [down, up].into_iter().flatten().min() else {
                return Poll::Pending;
            };
            self.sleep.as_mut().reset(at);
            ready!(self.sleep.as_mut().poll(cx));
        }
    }

    fn role(&self) -> Role {
        Role::Client
    }
}
