//! Which datagrams a listener takes: allowed networks, and token buckets. PURE.
//!
//! A source with a session has a bucket of its own, by address and port. Sources without one share
//! a bucket per IP address and the bucket of the listener, so a flood from outside does not slow
//! down sessions.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;

use crate::limits::{LISTENER_RATE, MAX_SOURCES, SOURCE_RATE, SWEEP_PERIOD};

/// The gate of one gateway.
#[derive(Debug)]
pub struct Gate {
    allowed: Vec<IpNet>,
    limits: GateLimits,
    strangers: Bucket,
    sources: HashMap<(IpAddr, u16), Bucket>,
    swept: Option<Duration>,
}

/// How fast sources may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateLimits {
    /// Datagrams per second from one source.
    pub source_per_s: u32,
    /// Datagrams per second from all sources without a session.
    pub listener_per_s: u32,
}

impl Default for GateLimits {
    fn default() -> Self {
        Self {
            source_per_s: SOURCE_RATE,
            listener_per_s: LISTENER_RATE,
        }
    }
}

/// Why a datagram is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No allowed network contains the source.
    NotAllowed,
    /// The source sends too fast.
    SourceTooFast,
    /// All sources without a session together send too fast.
    ListenerTooFast,
}

impl Refusal {
    /// The reason, for counters and log lines.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::NotAllowed => "source not allowed",
            Self::SourceTooFast => "source too fast",
            Self::ListenerTooFast => "too many datagrams from unknown sources",
        }
    }
}

impl Gate {
    /// Creates one for these networks.
    #[must_use]
    pub fn new(allowed: Vec<IpNet>, limits: GateLimits) -> Self {
        Self {
            allowed,
            limits,
            strangers: Bucket::new(limits.listener_per_s),
            sources: HashMap::new(),
            swept: None,
        }
    }

    /// Whether a datagram is taken. `is_known` says whether its source has a session.
    ///
    /// # Errors
    /// The reason to drop it.
    pub fn admit(
        &mut self,
        now: Duration,
        from: SocketAddr,
        is_known: bool,
    ) -> Result<(), Refusal> {
        let ip = from.ip().to_canonical();
        if !self.allowed.iter().any(|network| network.contains(&ip)) {
            return Err(Refusal::NotAllowed);
        }
        let key = (ip, if is_known { from.port() } else { 0 });
        // The number of sessions is limited elsewhere.
        if !is_known && !self.sources.contains_key(&key) && self.sources.len() >= MAX_SOURCES {
            self.sweep(now);
            if self.sources.len() >= MAX_SOURCES {
                return Err(Refusal::ListenerTooFast);
            }
        }
        let rate = self.limits.source_per_s;
        let bucket = (self.sources.entry(key)).or_insert_with(|| Bucket::new(rate));
        if !bucket.take(now) {
            return Err(Refusal::SourceTooFast);
        }
        if !is_known && !self.strangers.take(now) {
            return Err(Refusal::ListenerTooFast);
        }
        Ok(())
    }

    /// Forgets sources whose bucket is full: it says no more than a new one.
    fn sweep(&mut self, now: Duration) {
        if (self.swept).is_some_and(|swept| now.saturating_sub(swept) < SWEEP_PERIOD) {
            return;
        }
        self.swept = Some(now);
        self.sources.retain(|_, bucket| !bucket.is_full(now));
    }
}

/// A token bucket that holds what comes in one second.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    per_s: f64,
    tokens: f64,
    filled: Duration,
}

impl Bucket {
    /// Creates a full one.
    #[must_use]
    pub fn new(per_s: u32) -> Self {
        let per_s = f64::from(per_s);
        Self {
            per_s,
            tokens: per_s,
            filled: Duration::ZERO,
        }
    }

    /// Takes one token; `false` if there is none.
    pub fn take(&mut self, now: Duration) -> bool {
        self.take_many(now, 1)
    }

    /// Takes several tokens, or none if there are too few.
    pub fn take_many(&mut self, now: Duration, count: u32) -> bool {
        self.tokens = self.level(now);
        self.filled = self.filled.max(now);
        let enough = self.tokens >= f64::from(count);
        if enough {
            self.tokens -= f64::from(count);
        }
        enough
    }

    fn is_full(&self, now: Duration) -> bool {
        self.level(now) >= self.per_s
    }

    fn level(&self, now: Duration) -> f64 {
        let passed = now.saturating_sub(self.filled).as_secs_f64();
        (self.tokens + passed * self.per_s).min(self.per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::from_secs(100);

    fn gate() -> Gate {
        let networks = ["127.0.0.0/8", "10.0.0.0/8", "::1/128"];
        let allowed = networks.iter().map(|it| it.parse().unwrap()).collect();
        Gate::new(allowed, GateLimits::default())
    }

    fn source(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_allowed_networks_pass() {
        let mut gate = gate();
        for (from, passes) in [
            ("127.0.0.1:5", true),
            ("[::1]:5", true),
            ("[::ffff:127.0.0.1]:5", true),
            ("10.1.2.3:5", true),
            ("192.168.0.1:5", false),
            ("[fe80::1]:5", false),
        ] {
            let verdict = gate.admit(START, source(from), false);
            assert_eq!(verdict.is_ok(), passes, "{from}: {verdict:?}");
        }
    }

    #[test]
    fn a_source_may_send_500_datagrams_per_second() {
        let mut gate = gate();
        let from = source("127.0.0.1:5");
        let passed = |gate: &mut Gate, now| {
            let admitted = (0..2000).filter(|_| gate.admit(now, from, false).is_ok());
            admitted.count()
        };
        assert_eq!(passed(&mut gate, START), 500);
        assert_eq!(passed(&mut gate, START + Duration::from_millis(100)), 50);
        assert_eq!(
            gate.admit(START + Duration::from_millis(100), from, false),
            Err(Refusal::SourceTooFast)
        );
        assert_eq!(passed(&mut gate, START + Duration::from_secs(60)), 500);
    }

    #[test]
    fn a_flood_from_strangers_does_not_stop_a_session() {
        let mut gate = gate();
        let session = source("127.0.0.1:7");
        let mut refused = 0;
        for number in 0..6000_u32 {
            let [_, b, c, d] = number.to_be_bytes();
            let from = SocketAddr::from(([10, b, c, d], 5));
            if gate.admit(START, from, false) == Err(Refusal::ListenerTooFast) {
                refused += 1;
            }
        }
        // The table has room for 1024 sources.
        assert_eq!(refused, 6000 - MAX_SOURCES);
        assert_eq!(gate.admit(START, session, true), Ok(()));
        // Sources that have stopped make room.
        let later = START + Duration::from_millis(200);
        assert_eq!(gate.admit(later, source("10.200.0.1:5"), false), Ok(()));
        assert!(gate.sources.len() < 10);
    }

    #[test]
    fn all_strangers_together_may_send_2000_datagrams_per_second() {
        let mut gate = gate();
        let passed = (0..5000_u32)
            .filter(|number| {
                let [.., a] = number.to_be_bytes();
                gate.admit(START, SocketAddr::from(([10, 0, 0, a % 100], 5)), false)
                    .is_ok()
            })
            .count();
        assert_eq!(passed, 2000);
    }
}
