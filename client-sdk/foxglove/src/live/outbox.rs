//! The messages that wait for one viewer. PURE.
//!
//! Only the newest message of each subscription waits: a slow viewer gets fewer, not older ones.
//! Texts and lines of a log all wait, up to a limit. Everything that is dropped is counted.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::limits::{MAX_LINE_BYTES, MAX_LINES};

/// A message to a viewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Text(String),
    Binary(Bytes),
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Outbox {
    newest: BTreeMap<u32, Bytes>,
    lines: VecDeque<Frame>,
    line_bytes: usize,
    dropped: u64,
}

impl Frame {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }
}

impl Outbox {
    /// Adds a message of a subscription. One that still waits is dropped.
    pub(super) fn show(&mut self, subscription: u32, message: Bytes) {
        if self.newest.insert(subscription, message).is_some() {
            self.dropped += 1;
        }
    }

    /// Adds a text or a line of a log. If too many wait, or too long ones, the oldest are dropped.
    pub(super) fn line(&mut self, frame: Frame) {
        self.line_bytes += frame.len();
        self.lines.push_back(frame);
        // The newest always has room.
        while self.lines.len() > 1
            && (self.lines.len() > MAX_LINES || self.line_bytes > MAX_LINE_BYTES)
        {
            let dropped = self.lines.pop_front();
            self.line_bytes -= dropped.map_or(0, |it| it.len());
            self.dropped += 1;
        }
    }

    /// Removes the waiting message of a subscription that has ended.
    pub(super) fn forget(&mut self, subscription: u32) {
        self.newest.remove(&subscription);
    }

    /// Takes everything: first the texts, in their order.
    pub(super) fn take(&mut self) -> Vec<Frame> {
        let newest = std::mem::take(&mut self.newest).into_values();
        self.line_bytes = 0;
        self.lines
            .drain(..)
            .chain(newest.map(Frame::Binary))
            .collect()
    }

    /// The messages that were dropped because the viewer was too slow.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_viewer_gets_the_newest_message_and_drops_are_counted() {
        let mut outbox = Outbox::default();
        for number in 0..5u8 {
            outbox.show(7, vec![number].into());
        }
        outbox.show(9, vec![9].into());
        outbox.line(Frame::Text("first".into()));
        let frames = outbox.take();
        let binary = |number: u8| Frame::Binary(vec![number].into());
        assert_eq!(frames, [Frame::Text("first".into()), binary(4), binary(9)]);
        assert_eq!(outbox.dropped(), 4);
        outbox.show(7, vec![1].into());
        outbox.forget(7);
        assert!(outbox.take().is_empty());
    }

    #[test]
    fn long_texts_of_a_viewer_that_does_not_read_take_bounded_memory() {
        let mut outbox = Outbox::default();
        for _ in 0..MAX_LINES {
            outbox.line(Frame::Text("x".repeat(60_000)));
        }
        let kept: usize = outbox.take().iter().map(Frame::len).sum();
        assert!(kept <= MAX_LINE_BYTES, "{kept}");
        outbox.line(Frame::Text("x".repeat(2 * MAX_LINE_BYTES)));
        assert_eq!(outbox.take().len(), 1);
    }

    #[test]
    fn lines_are_bounded() {
        let mut outbox = Outbox::default();
        for number in 0..MAX_LINES + 3 {
            outbox.line(Frame::Text(number.to_string()));
        }
        let taken = outbox.take();
        assert_eq!(taken.len(), MAX_LINES);
        assert_eq!(taken[0], Frame::Text("3".into()));
        assert_eq!(outbox.dropped(), 3);
    }
}
