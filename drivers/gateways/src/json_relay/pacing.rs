//! Images on their way to one receiver: one at a time, and not in bursts. PURE.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::limits::{PACE_BYTES, PACE_PERIOD};

/// The datagrams of an image.
pub(super) type Datagrams = VecDeque<Bytes>;

/// The image that is being sent, and at most one that waits.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    sending: Datagrams,
    waiting: Option<Datagrams>,
    due: Duration,
}

impl Pacing {
    /// Takes an image. Returns whether it has replaced one that waited.
    pub(super) fn push(&mut self, image: Datagrams) -> bool {
        if self.sending.is_empty() {
            self.sending = image;
            return false;
        }
        self.waiting.replace(image).is_some()
    }

    /// The next datagrams to send: a few at a time.
    pub(super) fn poll(&mut self, now: Duration) -> Vec<Bytes> {
        let mut sent = Vec::new();
        if self.next_due().is_none_or(|due| now < due) {
            return sent;
        }
        let mut bytes = 0;
        while bytes < PACE_BYTES {
            let Some(datagram) = self.sending.pop_front() else {
                break;
            };
            bytes += datagram.len();
            sent.push(datagram);
        }
        if self.sending.is_empty() {
            self.sending = self.waiting.take().unwrap_or_default();
        }
        self.due = now + PACE_PERIOD;
        sent
    }

    /// When [`Self::poll`] returns something.
    pub(super) fn next_due(&self) -> Option<Duration> {
        (!self.sending.is_empty()).then_some(self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(first: u8, count: usize) -> Datagrams {
        (0..count)
            .map(|_| Bytes::from(vec![first; 30_000]))
            .collect()
    }

    #[test]
    fn one_image_at_a_time_and_the_newest_waits() {
        let mut pacing = Pacing::default();
        assert!(!pacing.push(image(1, 4)));
        assert!(!pacing.push(image(2, 1)));
        assert!(pacing.push(image(3, 1)), "the second image is replaced");
        let mut sent = Vec::new();
        let mut now = Duration::ZERO;
        while let Some(due) = pacing.next_due() {
            now = now.max(due);
            let batch = pacing.poll(now).into_iter().map(|datagram| datagram[0]);
            sent.push((now.as_millis(), batch.collect::<Vec<_>>()));
        }
        assert_eq!(sent, [(0, vec![1, 1, 1]), (1, vec![1]), (2, vec![3])]);
        assert!(pacing.poll(now).is_empty());
    }
}
