//! Notices when the mediator is unavailable or was restarted. PURE.
//!
//! UDP has no connections, and a restarted mediator has forgotten all subscriptions. So
//! while there are subscriptions, the client requests the mediator's statistics every
//! two seconds. The uptime shows even a quick restart. Two missing answers, or an error
//! of the network, show an outage, after which the mediator may have removed this client.
//! It may also do so unnoticed, because our answers got lost or its table was full. Then
//! it knows us by another client id. The request also announces us to a new mediator.
//!
//! A mediator that has never answered may be one of the original system. It gets few
//! requests, in case it is a new one that was unreachable.

use std::time::{Duration, Instant};

use amber_proto::ClientId;

/// The time between requests to a mediator that answers.
pub(crate) const INTERVAL: Duration = Duration::from_secs(2);
/// The deadline of its answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

const INTERVAL_SILENT: Duration = Duration::from_secs(10);
const INTERVAL_UNREACHABLE: Duration = Duration::from_millis(250);
/// During an outage, requests do not wait for the answers to earlier ones: data continues this soon
/// after the network does.
const INTERVAL_OUTAGE: Duration = Duration::from_millis(500);
/// Missing answers that count as an outage: one may get lost.
const MISSES: u32 = 2;
/// The tolerance: the uptime is in whole milliseconds, and clocks drift.
const SLACK: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(crate) struct Liveness {
    next_at: Option<Instant>,
    last: Option<Sample>,
    known_as: Option<ClientId>,
    missed: u32,
    /// When the last request with an answer was sent.
    answered_request: Option<Instant>,
    ever_answered: bool,
    outage: bool,
}

/// The start of the mediator, by its last answer.
#[derive(Clone, Copy, Debug)]
struct Sample {
    latest_start: Option<Instant>,
    uptime: Duration,
}

/// The conclusion from an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Same,
    Restarted,
    Forgotten,
    BackAfterOutage,
}

/// When to renew the subscriptions after this client has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// When the mediator answers, which it is asked to.
    WithAnswer,
    /// Immediately: this mediator may be one that never answers.
    Now,
}

/// The content of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    /// The uptime of the mediator.
    pub(crate) uptime: Option<Duration>,
    /// Our client id; older mediators do not report it.
    pub(crate) client_id: Option<ClientId>,
}

impl Liveness {
    /// Whether there are subscriptions.
    pub(crate) fn watch(&mut self, now: Instant, wanted: bool) {
        if !wanted {
            self.next_at = None;
            self.last = None;
            self.known_as = None;
            self.missed = 0;
            self.outage = false;
        } else if self.next_at.is_none() {
            self.next_at = Some(now);
        }
    }

    /// The time of the next request to the mediator.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.next_at
    }

    /// Whether a request is due now. If so, [`Self::answered`] or [`Self::missed`] must
    /// follow.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        if self.next_at.is_none_or(|at| at > now) {
            return false;
        }
        self.next_at = Some(match self.outage && self.ever_answered {
            true => now + INTERVAL_OUTAGE,
            // The result of the request sets the next time.
            false => now + 2 * PATIENCE,
        });
        true
    }

    /// The mediator sent its own message: it is not one of the original system.
    pub(crate) fn heard(&mut self) {
        self.ever_answered = true;
    }

    pub(crate) fn ever_answered(&self) -> bool {
        self.ever_answered
    }

    /// The answer to a request.
    pub(crate) fn answered(&mut self, asked: Instant, now: Instant, answer: Answer) -> Verdict {
        self.heard();
        self.missed = 0;
        self.answered_request = self.answered_request.max(Some(asked));
        self.next_at = self.next_at.map(|_| now + INTERVAL);
        let restarted = (answer.uptime).is_some_and(|up| self.has_restarted(asked, now, up));
        let before = self.known_as;
        self.known_as = answer.client_id.or(before);
        if std::mem::take(&mut self.outage) {
            Verdict::BackAfterOutage
        } else if restarted {
            Verdict::Restarted
        } else if before.is_some() && self.known_as != before {
            Verdict::Forgotten
        } else {
            Verdict::Same
        }
    }

    fn has_restarted(&mut self, asked: Instant, now: Instant, uptime: Duration) -> bool {
        let sample = Sample {
            latest_start: now.checked_sub(uptime),
            uptime,
        };
        let earliest_start = asked.checked_sub(uptime);
        let restarted = self.last.is_some_and(|last| {
            uptime < last.uptime
                || matches!((earliest_start, last.latest_start), (Some(now), Some(before))
                    if now > before + SLACK)
        });
        self.last = Some(sample);
        restarted
    }

    /// The answer is missing. Returns whether this is an outage.
    pub(crate) fn missed(&mut self, asked: Instant, now: Instant) -> bool {
        if !self.ever_answered {
            self.next_at = self.next_at.map(|_| now + INTERVAL_SILENT);
            return false;
        }
        // Requests of an outage may be overdue after it has ended.
        if self.outage || self.answered_request.is_some_and(|last| asked <= last) {
            return false;
        }
        self.next_at = self.next_at.map(|_| now);
        self.missed += 1;
        self.outage = self.missed >= MISSES;
        self.outage
    }

    /// The network reports that nothing listens at the address.
    pub(crate) fn unreachable(&mut self, now: Instant) {
        self.next_at = self.next_at.map(|_| now + INTERVAL_UNREACHABLE);
        self.outage = self.next_at.is_some();
    }

    /// Packets take another way to the mediator.
    pub(crate) fn moved(&mut self, now: Instant) -> Renewal {
        self.next_at = self.next_at.map(|_| now);
        self.outage = self.next_at.is_some();
        match self.ever_answered {
            true => Renewal::WithAnswer,
            false => Renewal::Now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const SECOND: Duration = Duration::from_secs(1);

    fn up(uptime: Duration) -> Answer {
        Answer {
            uptime: Some(uptime),
            client_id: None,
        }
    }

    #[test]
    fn the_same_mediator_only_gets_older() {
        let start = Instant::now();
        let mut liveness = Liveness::default();
        assert_eq!(liveness.next_timeout(), None);
        liveness.watch(start, true);
        assert!(liveness.handle_timeout(start));
        assert!(!liveness.handle_timeout(start));
        for k in 0..5 {
            let asked = start + k * INTERVAL;
            let uptime = 7 * SECOND + k * INTERVAL;
            // The answer may be slow.
            let verdict = liveness.answered(asked, asked + k * 100 * MS, up(uptime + 50 * MS));
            assert_eq!(verdict, Verdict::Same);
        }
    }

    #[test]
    fn a_quick_restart_is_seen_by_the_uptime() {
        let start = Instant::now();
        for uptime in [100 * MS, 1900 * MS] {
            let mut liveness = Liveness::default();
            liveness.watch(start, true);
            // The old mediator may have been young as well: the uptime need not decrease.
            liveness.answered(start, start + MS, up(SECOND));
            let asked = start + INTERVAL;
            let verdict = liveness.answered(asked, asked + MS, up(uptime));
            assert_eq!(verdict, Verdict::Restarted, "{uptime:?}");
        }
    }

    #[test]
    fn two_misses_or_a_refusal_are_an_outage_and_end_with_an_answer() {
        let now = Instant::now();
        let later = now + MS;
        let mut liveness = Liveness::default();
        liveness.watch(now, true);
        liveness.answered(now, now, up(SECOND));
        assert!(!liveness.missed(later, later));
        assert!(liveness.missed(later, later));
        assert!(!liveness.missed(later, later));
        let back = liveness.answered(later, later, up(SECOND));
        assert_eq!(back, Verdict::BackAfterOutage);
        let same = liveness.answered(later, later, up(SECOND));
        assert_eq!(same, Verdict::Same);
        liveness.unreachable(now);
        assert_eq!(liveness.next_timeout(), Some(now + INTERVAL_UNREACHABLE));
        let back = liveness.answered(later, later, up(SECOND));
        assert_eq!(back, Verdict::BackAfterOutage);
    }

    #[test]
    fn requests_are_frequent_in_an_outage_and_those_without_answers_do_not_prolong_it() {
        let start = Instant::now();
        let mut liveness = Liveness::default();
        liveness.watch(start, true);
        liveness.answered(start, start, up(SECOND));
        let mut now = start + INTERVAL;
        for _ in 0..MISSES {
            assert!(liveness.handle_timeout(now));
            now += PATIENCE;
            liveness.missed(now - PATIENCE, now);
        }
        let mut asked = Vec::new();
        for _ in 0..4 {
            assert!(liveness.handle_timeout(now));
            asked.push(now);
            now += INTERVAL_OUTAGE;
            assert_eq!(liveness.next_timeout(), Some(now));
        }
        let last = asked[3];
        let verdict = liveness.answered(last, now, up(10 * SECOND));
        assert_eq!(verdict, Verdict::BackAfterOutage);
        for asked in asked {
            assert!(!liveness.missed(asked, asked + PATIENCE));
        }
        assert_eq!(liveness.next_timeout(), Some(now + INTERVAL));
    }

    #[test]
    fn after_a_move_the_mediator_is_asked_at_once() {
        let now = Instant::now();
        let mut liveness = Liveness::default();
        liveness.watch(now, true);
        assert_eq!(liveness.moved(now), Renewal::Now, "it may never answer");
        liveness.answered(now, now, up(SECOND));
        assert_eq!(liveness.moved(now + SECOND), Renewal::WithAnswer);
        assert!(liveness.handle_timeout(now + SECOND));
        let verdict = liveness.answered(now + SECOND, now + SECOND, up(2 * SECOND));
        assert_eq!(verdict, Verdict::BackAfterOutage);
        // Without subscriptions, nobody waits for data.
        liveness.watch(now, false);
        liveness.moved(now);
        assert_eq!(liveness.next_timeout(), None);
    }

    #[test]
    fn a_mediator_that_never_answered_gets_few_requests_and_has_no_outage() {
        let now = Instant::now();
        let mut liveness = Liveness::default();
        liveness.watch(now, true);
        for _ in 0..5 {
            assert!(!liveness.missed(now, now));
            assert_eq!(liveness.next_timeout(), Some(now + INTERVAL_SILENT));
        }
    }

    #[test]
    fn there_are_no_requests_without_subscriptions() {
        let now = Instant::now();
        let mut liveness = Liveness::default();
        liveness.watch(now, true);
        liveness.watch(now, false);
        assert!(!liveness.handle_timeout(now));
        liveness.answered(now, now, up(SECOND));
        assert_eq!(liveness.next_timeout(), None);
    }

    #[test]
    fn another_number_shows_that_the_mediator_had_forgotten_us() {
        let now = Instant::now();
        let mut liveness = Liveness::default();
        liveness.watch(now, true);
        let mut known_as = |number: Option<i32>| {
            let client_id = number.map(ClientId);
            liveness.answered(
                now,
                now,
                Answer {
                    client_id,
                    ..up(SECOND)
                },
            )
        };
        assert_eq!(known_as(Some(7)), Verdict::Same);
        assert_eq!(known_as(Some(7)), Verdict::Same);
        assert_eq!(known_as(Some(9)), Verdict::Forgotten);
        assert_eq!(known_as(Some(9)), Verdict::Same);
        assert_eq!(known_as(None), Verdict::Same, "it does not say");
        assert_eq!(known_as(Some(9)), Verdict::Same);
    }
}
