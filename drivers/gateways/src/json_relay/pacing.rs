//! Images on their way to one receiver: one at a time, and not in bursts. PURE.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::limits::{MAX_WAITING_IMAGES, PACE_BYTES, PACE_PERIOD};

/// The datagrams of an image.
pub(super) type Datagrams = VecDeque<Bytes>;

/// The image that is being sent, and a few that wait.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    sending: Datagrams,
    waiting: VecDeque<Datagrams>,
    due: Duration,
}

impl Pacing {
    /// Accepts an image. Returns whether the oldest waiting image is dropped for it.
    pub(super) fn push(&mut self, image: Datagrams) -> bool {
        if self.sending.is_empty() {
            self.sending = image;
            return false;
        }
        self.waiting.push_back(image);
        let is_full = self.waiting.len() > MAX_WAITING_IMAGES;
        if is_full {
            self.waiting.pop_front();
        }
        is_full
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
            self.sending = self.waiting.pop_front().unwrap_or_default();
        }
        self.due = now + PACE_PERIOD;
        sent
    }

    /// When [`Self::poll`] is due.
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
    fn one_image_at_a_time_and_the_newest_wait() {
        let mut pacing = Pacing::default();
        assert!(!pacing.push(image(1, 4)));
        for number in 2..=4 {
            assert!(!pacing.push(image(number, 1)), "{number}");
        }
        assert!(pacing.push(image(5, 1)), "the second image is dropped");
        let mut sent = Vec::new();
        let mut now = Duration::ZERO;
        while let Some(due) = pacing.next_due() {
            now = now.max(due);
            let batch = pacing.poll(now).into_iter().map(|datagram| datagram[0]);
            sent.push((now.as_millis(), batch.collect::<Vec<_>>()));
        }
        let expected = [
            (0, vec![1, 1, 1]),
            (1, vec![1]),
            (2, vec![3]),
            (3, vec![4]),
            (4, vec![5]),
        ];
        assert_eq!(sent, expected);
        assert!(pacing.poll(now).is_empty());
    }
}
