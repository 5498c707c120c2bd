//! Limits the rate of data: the newest counts. PURE.

use std::time::Duration;

/// Forwards messages, at most one per period. A message that comes too early waits, and a newer
/// one replaces it.
#[derive(Debug)]
pub struct Pacing<T> {
    period: Duration,
    passed: Option<Duration>,
    waiting: Option<T>,
    replaced: u64,
}

impl<T> Pacing<T> {
    /// One message per period; a period of 0 passes all.
    #[must_use]
    pub fn new(period: Duration) -> Self {
        Self {
            period,
            passed: None,
            waiting: None,
            replaced: 0,
        }
    }

    /// A new message. Then call [`Pacing::poll`].
    pub fn offer(&mut self, message: T) {
        if self.waiting.replace(message).is_some() {
            self.replaced += 1;
        }
    }

    /// The message to send now.
    pub fn poll(&mut self, now: Duration) -> Option<T> {
        if self.next_due().is_none_or(|due| now < due) {
            return None;
        }
        self.passed = Some(now);
        self.waiting.take()
    }

    /// When [`Pacing::poll`] has a message.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.waiting.as_ref()?;
        Some(self.passed.map_or(Duration::ZERO, |at| at + self.period))
    }

    /// The messages that newer ones have replaced since the last call.
    pub fn take_replaced(&mut self) -> u64 {
        std::mem::take(&mut self.replaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_message_of_each_period_is_sent() {
        let ms = Duration::from_millis;
        let mut pacing = Pacing::new(ms(100));
        let mut sent = Vec::new();
        for at in 0..=250 {
            if at % 40 == 0 {
                pacing.offer(at);
            }
            if let Some(message) = pacing.poll(ms(at)) {
                sent.push((at, message));
            }
        }
        assert_eq!(sent, [(0, 0), (100, 80), (200, 200)]);
        // That of 40 ms was replaced by that of 80, that of 120 by those of 160 and 200.
        assert_eq!(pacing.take_replaced(), 3);
        assert_eq!(pacing.next_due(), Some(ms(300)));
    }

    #[test]
    fn without_a_period_all_messages_pass() {
        let mut pacing = Pacing::new(Duration::ZERO);
        for at in [0, 0, 1] {
            pacing.offer(at);
            assert_eq!(pacing.poll(Duration::from_millis(at)), Some(at));
        }
        assert_eq!(pacing.take_replaced(), 0);
        assert_eq!(pacing.next_due(), None);
    }
}
