//! Tells whether messages of a connection may be old, because the network has just stalled. PURE.
//!
//! TCP delivers everything, in order: after ten seconds without a network, the commands of these ten
//! seconds arrive at once. Their senders do not say when they sent them, but they answer pings, in
//! the same order. So a peer that used to answer and is silent has stalled. Messages after the
//! silence are old until it answers a ping of this moment.

use std::time::Duration;

use amber_robot::lag::Lag;

use crate::limits::MOTION_LAG;

/// The time between two pings: two may get lost before a silence is a stall.
pub const PING_PERIOD: Duration = Duration::from_millis(200);

/// The time after a silence in which messages may be old. The kernel sends what has waited within a
/// few round trips. A peer that then answers no pings, because it only reads now and then, drives
/// again after this time.
const DRAINED: Duration = Duration::from_secs(2);

/// One connection.
#[derive(Debug)]
pub struct Stall {
    lag: Lag,
    heard: Duration,
    /// When the newest ping that the peer has answered was sent.
    answered: Option<Duration>,
    /// When the first message after a silence has arrived.
    ended: Option<Duration>,
}

impl Stall {
    /// A connection that is new.
    #[must_use]
    pub fn new(now: Duration) -> Self {
        Self {
            lag: Lag::default(),
            heard: now,
            answered: None,
            ended: None,
        }
    }

    /// Anything has arrived. Call this before all else.
    pub fn heard(&mut self, now: Duration) {
        let used_to_answer = (self.answered)
            .is_some_and(|pinged| self.heard.saturating_sub(pinged) <= PING_PERIOD + MOTION_LAG);
        if used_to_answer && now.saturating_sub(self.heard) > MOTION_LAG {
            self.ended = Some(now);
        }
        self.heard = now;
    }

    /// The answer to a ping has arrived that was sent at this time.
    pub fn answered(&mut self, now: Duration, pinged: Duration) {
        let sent_ns = u64::try_from(pinged.as_nanos()).unwrap_or(u64::MAX);
        self.answered = self.answered.max(Some(pinged));
        if self.lag.arrived(now, sent_ns) <= MOTION_LAG {
            self.ended = None;
        }
    }

    /// Whether a message that arrives now may be older than [`MOTION_LAG`].
    #[must_use]
    pub fn is_old(&self, now: Duration) -> bool {
        (self.ended).is_some_and(|ended| now.saturating_sub(ended) < DRAINED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A peer that answers pings 20 ms after they were sent, until this time.
    fn answering(until_ms: u64) -> Stall {
        let mut stall = Stall::new(ms(0));
        for pinged in (0..until_ms).step_by(200) {
            stall.heard(ms(pinged + 20));
            stall.answered(ms(pinged + 20), ms(pinged));
            assert!(!stall.is_old(ms(pinged + 20)));
        }
        stall
    }

    #[test]
    fn what_comes_after_a_silence_is_old_until_a_ping_is_answered() {
        let mut stall = answering(3_000);
        // Twelve seconds without a network.
        for at in 15_000..15_050 {
            stall.heard(ms(at));
            assert!(stall.is_old(ms(at)), "{at}");
        }
        // An answer to a ping before the silence proves nothing, one to a ping during it neither.
        for pinged in [3_000, 9_000, 14_400] {
            stall.answered(ms(15_050), ms(pinged));
            assert!(stall.is_old(ms(15_050)), "{pinged}");
        }
        stall.answered(ms(15_060), ms(15_040));
        assert!(!stall.is_old(ms(15_061)));
    }

    #[test]
    fn a_short_silence_changes_nothing() {
        let mut stall = answering(3_000);
        stall.heard(ms(3_300));
        assert!(!stall.is_old(ms(3_300)));
    }

    #[test]
    fn a_peer_that_never_answers_is_believed() {
        let mut stall = Stall::new(ms(0));
        for at in [10, 5_000, 20_000] {
            stall.heard(ms(at));
            assert!(!stall.is_old(ms(at)), "{at}");
        }
    }

    #[test]
    fn a_peer_that_no_longer_answers_drives_again_soon_and_always() {
        let mut stall = answering(1_000);
        stall.heard(ms(5_000));
        assert!(stall.is_old(ms(5_000)));
        assert!(!stall.is_old(ms(7_000)));
        // It has stopped to answer before the next silence.
        stall.heard(ms(8_000));
        stall.heard(ms(12_000));
        assert!(!stall.is_old(ms(12_000)));
    }

    #[test]
    fn a_slow_network_is_the_usual_one() {
        let mut stall = Stall::new(ms(0));
        for pinged in (0..30_000).step_by(200) {
            stall.heard(ms(pinged + 900));
            stall.answered(ms(pinged + 900), ms(pinged));
            assert!(!stall.is_old(ms(pinged + 900)), "{pinged}");
        }
    }
}
