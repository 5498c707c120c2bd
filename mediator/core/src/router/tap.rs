//! Copies of a driver's frames for `amber trace`. PURE.
//!
//! A route without a tap costs one comparison. Copies wait until the end of the turn, and their
//! number is bounded.

use amber_proto::Frame;

use crate::address::DriverKey;
use crate::limits::{TRACE_BYTES, TRACE_WAITING};

/// The direction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Queued for the driver's stdin.
    ToDriver,
    /// Read from the driver's stdout.
    FromDriver,
}

/// A copy of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    pub driver: DriverKey,
    pub direction: Direction,
    /// The header as on the pipe.
    pub header: Vec<u8>,
    /// The message, at most [`TRACE_BYTES`] of it.
    pub message: Vec<u8>,
    /// The length of the message.
    pub message_bytes: usize,
}

/// The copies of this turn.
#[derive(Debug, Default)]
pub struct Tap {
    copies: Vec<Copied>,
    /// The number of frames that were not copied, by driver.
    missed: Vec<(DriverKey, u64)>,
}

impl Tap {
    /// Copies a frame, if there is room.
    pub fn copy(&mut self, driver: DriverKey, direction: Direction, frame: Frame<'_>) {
        if self.copies.len() == TRACE_WAITING {
            match self.missed.iter_mut().find(|(missed, _)| *missed == driver) {
                Some((_, count)) => *count += 1,
                None => self.missed.push((driver, 1)),
            }
            return;
        }
        self.copies.push(Copied {
            driver,
            direction,
            header: frame.header.to_vec(),
            message: frame.message[..frame.message.len().min(TRACE_BYTES)].to_vec(),
            message_bytes: frame.message.len(),
        });
    }

    /// Whether there are no copies.
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Takes all copies, and the number of frames of each driver that were not copied.
    pub fn take(&mut self) -> (Vec<Copied>, Vec<(DriverKey, u64)>) {
        (
            std::mem::take(&mut self.copies),
            std::mem::take(&mut self.missed),
        )
    }
}
