//! The datagrams that a listener accepts: allowed networks, and rates. PURE.
//!
//! A source with a session has its own bucket for each socket where it has one, by address and
//! port. Sources without one share
//! a bucket per IP address and the bucket of the listener, so a flood from outside does not slow
//! down sessions.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use amber_robot::bucket::{Bucket, Buckets};
use ipnet::IpNet;

use super::machine::Socket;
use crate::limits::{LISTENER_RATE, SOURCE_RATE};

/// The gate of one gateway.
#[derive(Debug)]
pub struct Gate {
    allowed: Vec<IpNet>,
    strangers: Bucket,
    /// Of sources without a session, by IP address.
    unknown: Buckets<IpAddr>,
    /// Of sources with a session. Their number is limited elsewhere, but they come and go.
    known: Buckets<(Socket, SocketAddr)>,
}

/// The maximum rates of sources.
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

/// The reason why a datagram is dropped.
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
            strangers: Bucket::new(limits.listener_per_s),
            unknown: Buckets::new(limits.source_per_s),
            known: Buckets::new(limits.source_per_s),
        }
    }

    /// Whether a datagram is taken. `is_known` says whether its source has a session.
    ///
    /// # Errors
    /// The reason to drop it.
    pub fn admit(
        &mut self,
        now: Duration,
        socket: Socket,
        from: SocketAddr,
        is_known: bool,
    ) -> Result<(), Refusal> {
        let ip = from.ip().to_canonical();
        if !self.allowed.iter().any(|network| network.contains(&ip)) {
            return Err(Refusal::NotAllowed);
        }
        if is_known {
            return match self.known.take(now, (socket, from)) {
                true => Ok(()),
                false => Err(Refusal::SourceTooFast),
            };
        }
        if !self.unknown.has_room_for(now, &ip) {
            return Err(Refusal::ListenerTooFast);
        }
        if !self.unknown.take(now, ip) {
            return Err(Refusal::SourceTooFast);
        }
        match self.strangers.take(now) {
            true => Ok(()),
            false => Err(Refusal::ListenerTooFast),
        }
    }
}

#[cfg(test)]
mod tests {
    use amber_robot::limits::MAX_SOURCES;

    use super::*;

    const START: Duration = Duration::from_secs(100);
    const SOCKET: Socket = Socket(0);

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
            let verdict = gate.admit(START, SOCKET, source(from), false);
            assert_eq!(verdict.is_ok(), passes, "{from}: {verdict:?}");
        }
    }

    #[test]
    fn a_source_may_send_500_datagrams_per_second() {
        let mut gate = gate();
        let from = source("127.0.0.1:5");
        let passed = |gate: &mut Gate, now| {
            let admitted = (0..2000).filter(|_| gate.admit(now, SOCKET, from, false).is_ok());
            admitted.count()
        };
        assert_eq!(passed(&mut gate, START), 500);
        assert_eq!(passed(&mut gate, START + Duration::from_millis(100)), 50);
        assert_eq!(
            gate.admit(START + Duration::from_millis(100), SOCKET, from, false),
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
            if gate.admit(START, SOCKET, from, false) == Err(Refusal::ListenerTooFast) {
                refused += 1;
            }
        }
        // The table has room for 1024 sources.
        assert_eq!(refused, 6000 - MAX_SOURCES);
        assert_eq!(gate.admit(START, SOCKET, session, true), Ok(()));
        // Sources that have stopped make room.
        let later = START + Duration::from_millis(200);
        assert_eq!(
            gate.admit(later, SOCKET, source("10.200.0.1:5"), false),
            Ok(())
        );
    }

    #[test]
    fn all_strangers_together_may_send_2000_datagrams_per_second() {
        let mut gate = gate();
        let passed = (0..5000_u32)
            .filter(|number| {
                let [.., a] = number.to_be_bytes();
                gate.admit(
                    START,
                    SOCKET,
                    SocketAddr::from(([10, 0, 0, a % 100], 5)),
                    false,
                )
                .is_ok()
            })
            .count();
        assert_eq!(passed, 2000);
    }
}
