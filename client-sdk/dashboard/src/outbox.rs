//! The frames that wait for one page. PURE.
//!
//! Only the newest measurement of each channel waits: a slow page gets fewer, not older ones.
//! Lines (events, answers) all wait, up to a limit. Everything that is dropped is counted.

use std::collections::{BTreeMap, VecDeque};

use amber_proto::Device;
use bytes::Bytes;

use crate::limits::{MAX_LINE_BYTES, MAX_LINES};

/// A message to a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// JSON.
    Text(String),
    /// Points, with their kind in the first four bytes.
    Binary(Bytes),
}

/// The subject of a frame: of each channel, only the newest frame waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// The mediator and its drivers.
    Drivers,
    /// The page that drives.
    Seat,
    /// The shape of the robot.
    Shape,
    /// The map.
    Map,
    /// The pose.
    Pose,
    /// The scan.
    Scan,
    /// The hypotheses of the location driver.
    Particles,
    /// The path and the targets.
    Path,
    /// The state of the map that is being made.
    Mapping,
    /// The wheel speeds.
    Wheels,
    /// The motion sensors.
    Imu,
    /// The angles of the servos.
    Servos,
    /// The description and the driver of a device that has a panel.
    About(PanelKey),
    /// A value in the panel of a device, by the name of its method.
    Value(PanelKey, String),
}

/// A device, as a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PanelKey(i32, i32);

impl From<Device> for PanelKey {
    fn from(device: Device) -> Self {
        Self(device.device_type.0, device.id.0)
    }
}

/// The frames that wait for one page.
#[derive(Debug, Default)]
pub struct Outbox {
    newest: BTreeMap<Channel, Frame>,
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
    /// Adds a frame of a channel. One that still waits is dropped.
    pub fn show(&mut self, channel: Channel, frame: Frame) {
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
            && (self.lines.len() > MAX_LINES || self.line_bytes > MAX_LINE_BYTES)
        {
            let dropped = self.lines.pop_front();
            self.line_bytes -= dropped.map_or(0, |it| it.len());
            self.dropped += 1;
        }
    }

    /// Takes all frames: the lines in their order, then the newest of each channel.
    pub fn take(&mut self) -> Vec<Frame> {
        let newest = std::mem::take(&mut self.newest);
        self.line_bytes = 0;
        self.lines.drain(..).chain(newest.into_values()).collect()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty() && self.lines.is_empty()
    }

    /// The number of frames that were dropped because the page was too slow.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Frame {
        Frame::Text(text.into())
    }

    #[test]
    fn a_slow_page_gets_the_newest_measurement_and_drops_are_counted() {
        let mut outbox = Outbox::default();
        for k in 0..5 {
            outbox.show(Channel::Pose, text(&k.to_string()));
        }
        outbox.show(Channel::Wheels, text("w"));
        assert_eq!(outbox.take(), [text("4"), text("w")]);
        assert_eq!(outbox.dropped(), 4);
        assert!(outbox.is_empty() && outbox.take().is_empty());
        outbox.show(Channel::Pose, text("5"));
        assert_eq!(outbox.dropped(), 4, "the last one was taken");
    }

    #[test]
    fn long_lines_of_a_page_that_does_not_read_take_bounded_memory() {
        let mut outbox = Outbox::default();
        for _ in 0..MAX_LINES {
            outbox.line(text(&"x".repeat(60_000)));
        }
        let kept: usize = outbox.take().iter().map(Frame::len).sum();
        assert!(kept <= MAX_LINE_BYTES, "{kept}");
        assert!(kept > MAX_LINE_BYTES / 2, "{kept}");
        // One that is longer alone still comes.
        outbox.line(text(&"x".repeat(2 * MAX_LINE_BYTES)));
        assert_eq!(outbox.take().len(), 1);
    }

    #[test]
    fn lines_keep_their_order_and_are_bounded() {
        let mut outbox = Outbox::default();
        for k in 0..MAX_LINES + 3 {
            outbox.line(text(&k.to_string()));
        }
        let taken = outbox.take();
        assert_eq!(taken.len(), MAX_LINES);
        assert_eq!(taken[0], text("3"));
        assert_eq!(outbox.dropped(), 3);
    }
}
