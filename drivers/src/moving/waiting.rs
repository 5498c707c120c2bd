//! Requests that wait for a measurement. PURE.

use std::time::Duration;

/// Maximum number of waiting requests. Further ones are dropped; their clients time out.
const MAX_WAITING: usize = 64;
/// A client has given up after this time.
const PATIENCE: Duration = Duration::from_secs(1);

/// Requests that wait for a measurement: the first one after the start, or the next after a pause.
#[derive(Debug)]
pub(crate) struct Waiting<Q> {
    questions: Vec<(Duration, Q)>,
    dropped: u64,
}

impl<Q> Default for Waiting<Q> {
    fn default() -> Self {
        Self {
            questions: Vec::new(),
            dropped: 0,
        }
    }
}

impl<Q> Waiting<Q> {
    /// A request has arrived.
    pub(crate) fn push(&mut self, now: Duration, question: Q) {
        if self.questions.len() < MAX_WAITING {
            self.questions.push((now, question));
        } else {
            self.dropped += 1;
        }
    }

    /// Tries to answer all requests. `answer` returns those that must wait. Returns those that have
    /// waited too long.
    pub(crate) fn answer(
        &mut self,
        now: Duration,
        answer: impl Fn(Q) -> Result<(), Q>,
    ) -> impl Iterator<Item = Q> {
        let mut late = Vec::new();
        for (asked, question) in std::mem::take(&mut self.questions) {
            match answer(question) {
                Ok(()) => {}
                Err(question) if now.saturating_sub(asked) > PATIENCE => late.push(question),
                Err(question) => self.questions.push((asked, question)),
            }
        }
        self.dropped += late.len() as u64;
        late.into_iter()
    }

    /// The number of requests without an answer.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_for_a_second() {
        let ms = Duration::from_millis;
        let mut waiting = Waiting::default();
        waiting.push(ms(0), 1);
        waiting.push(ms(500), 2);
        waiting.push(ms(500), 3);
        let wait = |question| if question == 3 { Ok(()) } else { Err(question) };
        assert_eq!(waiting.answer(ms(1000), wait).count(), 0);
        let late: Vec<i32> = waiting.answer(ms(1001), wait).collect();
        assert_eq!(late, [1]);
        assert_eq!(waiting.answer(ms(1500), |_| Ok(())).count(), 0);
        assert_eq!(waiting.answer(ms(9000), Err).count(), 0);
        for number in 0..100 {
            waiting.push(ms(9000), number);
        }
        assert_eq!(waiting.dropped(), 1 + 100 - MAX_WAITING as u64);
    }
}
