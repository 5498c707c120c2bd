//! Counters of a gateway by reason, and at most one log line per second for each. PURE, except for
//! the log.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use amber_proto::gateway::Reason;

use crate::limits::LOG_PERIOD;

/// The counters of a gateway since it started.
#[derive(Debug, Default)]
pub struct Tally {
    received: u64,
    sent: u64,
    last_received: Option<Duration>,
    reasons: BTreeMap<(Kind, &'static str), Line>,
}

/// The problem of a datagram or command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It does not follow the protocol.
    Bad,
    /// It follows the protocol, but is not forwarded.
    Dropped,
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    count: u64,
    logged: u64,
    at: Option<Duration>,
}

impl Tally {
    /// Counts a received datagram.
    pub fn received(&mut self, now: Duration) {
        self.received += 1;
        self.last_received = Some(now);
    }

    /// Counts a sent datagram.
    pub fn sent(&mut self) {
        self.sent += 1;
    }

    /// Counts a datagram that does not follow the protocol. `from` is for the log.
    pub fn bad(&mut self, now: Duration, reason: &'static str, from: impl fmt::Display) {
        self.log(now, Kind::Bad, reason, from);
    }

    /// Counts a datagram or command that is not forwarded. `from` is for the log.
    pub fn dropped(&mut self, now: Duration, reason: &'static str, from: impl fmt::Display) {
        self.log(now, Kind::Dropped, reason, from);
    }

    /// Counts several things that are lost.
    pub fn dropped_many(
        &mut self,
        now: Duration,
        reason: &'static str,
        from: impl fmt::Display,
        count: u64,
    ) {
        let line = self.reasons.entry((Kind::Dropped, reason)).or_default();
        // `log` counts the last one.
        line.count += count.saturating_sub(1);
        if count > 0 {
            self.log(now, Kind::Dropped, reason, from);
        }
    }

    /// How often this reason has occurred.
    #[must_use]
    pub fn count(&self, reason: &str) -> u64 {
        let lines = self.reasons.iter();
        let found = lines.filter(|((_, text), _)| *text == reason);
        found.map(|(_, line)| line.count).sum()
    }

    /// The sum of all reasons of a kind.
    #[must_use]
    pub fn total(&self, kind: Kind) -> u64 {
        let lines = self.reasons.iter();
        let found = lines.filter(|((its, _), _)| *its == kind);
        found.map(|(_, line)| line.count).sum()
    }

    /// Datagrams received.
    #[must_use]
    pub fn received_count(&self) -> u64 {
        self.received
    }

    /// Datagrams sent.
    #[must_use]
    pub fn sent_count(&self) -> u64 {
        self.sent
    }

    /// The time since the last datagram.
    #[must_use]
    pub fn silence(&self, now: Duration) -> Option<Duration> {
        Some(now.saturating_sub(self.last_received?))
    }

    /// All reasons with their counters.
    #[must_use]
    pub fn reasons(&self) -> Vec<Reason> {
        let lines = self.reasons.iter();
        let reason = |(&(_, text), line): (&(Kind, &str), &Line)| Reason {
            text: Some(text.to_owned()),
            count: Some(line.count),
        };
        lines.map(reason).collect()
    }

    fn log(&mut self, now: Duration, kind: Kind, reason: &'static str, from: impl fmt::Display) {
        let Some(count) = self.note(now, kind, reason) else {
            return;
        };
        let kind = match kind {
            Kind::Bad => "bad datagram",
            Kind::Dropped => "dropped",
        };
        tracing::warn!(count, "{kind}: {reason} (last from {from})");
    }

    /// The number to log, if a line for this reason is due.
    fn note(&mut self, now: Duration, kind: Kind, reason: &'static str) -> Option<u64> {
        let line = self.reasons.entry((kind, reason)).or_default();
        line.count += 1;
        if (line.at).is_some_and(|at| now.saturating_sub(at) < LOG_PERIOD) {
            return None;
        }
        let unlogged = line.count - line.logged;
        line.logged = line.count;
        line.at = Some(now);
        Some(unlogged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_logged_once_per_second_with_the_count_since() {
        let mut tally = Tally::default();
        let mut logged = Vec::new();
        for ms in 0..2_500 {
            let now = Duration::from_millis(ms);
            if let Some(count) = tally.note(now, Kind::Bad, "too short") {
                logged.push((ms, count));
            }
        }
        assert_eq!(logged, [(0, 1), (1_000, 1_000), (2_000, 1_000)]);
        assert_eq!(tally.note(Duration::ZERO, Kind::Dropped, "full"), Some(1));
        assert_eq!(tally.count("too short"), 2_500);
        assert_eq!(tally.total(Kind::Bad), 2_500);
        assert_eq!(tally.total(Kind::Dropped), 1);
        assert_eq!(tally.reasons().len(), 2);
    }
}
