//! The messages that wait for one page or viewer. PURE.
//!
//! Only the newest message of each channel waits: a slow peer gets fewer, not older ones. Lines
//! (texts, events, answers) all wait, up to a limit. Everything that is dropped is counted.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

/// A message to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    Text(String),
    /// Bytes.
    Binary(Bytes),
}

/// How many lines may wait.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Their number.
    pub lines: usize,
    pub line_bytes: usize,
}

/// The frames that wait for one peer. `C` is the subject of a measurement.
#[derive(Debug)]
pub struct Backlog<C> {
    room: Room,
    newest: BTreeMap<C, Frame>,
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

impl<C: Ord> Backlog<C> {
    /// An empty one.
    #[must_use]
    pub fn new(room: Room) -> Self {
        Self {
            room,
            newest: BTreeMap::new(),
            lines: VecDeque::new(),
            line_bytes: 0,
            dropped: 0,
        }
    }

    /// Adds a frame of a channel. One that still waits is dropped.
    pub fn show(&mut self, channel: C, frame: Frame) {
        if self.newest.insert(channel, frame).is_some() {
            self.dropped += 1;
        }
    }

    /// Adds a line. If too many wait, or too long ones, the oldest are dropped.
    pub fn line(&mut self, frame: Frame) {
        self.line_bytes += frame.len();
        self.lines.push_back(frame);
        // The newest always has room: it may be the answer to a large request.
        while self.lines.len() > 1
            && (self.lines.len() > self.room.lines || self.line_bytes > self.room.line_bytes)
        {
            let dropped = self.lines.pop_front();
            self.line_bytes -= dropped.map_or(0, |it| it.len());
            self.dropped += 1;
        }
    }

    /// Removes the waiting frame of a channel that has ended.
    pub fn forget(&mut self, channel: &C) {
        self.newest.remove(channel);
    }

    /// Takes all frames: the lines in their order, then the newest of each channel.
    pub fn take(&mut self) -> Vec<Frame> {
        let newest = std::mem::take(&mut self.newest);
        self.line_bytes = 0;
        self.lines.drain(..).chain(newest.into_values()).collect()
    }

    /// The number of frames that were dropped because the peer was too slow.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room {
        lines: 256,
        line_bytes: 1024 * 1024,
    };

    fn text(text: &str) -> Frame {
        Frame::Text(text.into())
    }

    #[test]
    fn a_slow_peer_gets_the_newest_measurement_and_drops_are_counted() {
        let mut backlog = Backlog::new(ROOM);
        for k in 0..5 {
            backlog.show("pose", text(&k.to_string()));
        }
        backlog.show("wheels", text("w"));
        backlog.line(text("first"));
        assert_eq!(backlog.take(), [text("first"), text("4"), text("w")]);
        assert_eq!(backlog.dropped(), 4);
        assert!(backlog.take().is_empty());
        backlog.show("pose", text("5"));
        assert_eq!(backlog.dropped(), 4, "the last one was taken");
        backlog.forget(&"pose");
        assert!(backlog.take().is_empty());
    }

    #[test]
    fn long_lines_of_a_peer_that_does_not_read_take_bounded_memory() {
        let mut backlog = Backlog::<u32>::new(ROOM);
        for _ in 0..ROOM.lines {
            backlog.line(text(&"x".repeat(60_000)));
        }
        let kept: usize = backlog.take().iter().map(Frame::len).sum();
        assert!(kept <= ROOM.line_bytes, "{kept}");
        assert!(kept > ROOM.line_bytes / 2, "{kept}");
        // One that is longer alone still comes.
        backlog.line(text(&"x".repeat(2 * ROOM.line_bytes)));
        assert_eq!(backlog.take().len(), 1);
    }

    #[test]
    fn lines_keep_their_order_and_are_bounded() {
        let mut backlog = Backlog::<u32>::new(ROOM);
        for k in 0..ROOM.lines + 3 {
            backlog.line(text(&k.to_string()));
        }
        let taken = backlog.take();
        assert_eq!(taken.len(), ROOM.lines);
        assert_eq!(taken[0], text("3"));
        assert_eq!(backlog.dropped(), 3);
    }
}
