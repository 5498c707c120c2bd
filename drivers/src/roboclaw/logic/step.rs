//! What the logic wants done outside, and what can come of it. PURE.

use std::time::Duration;

use amber_driver::Origin;

#[cfg(doc)]
use super::Logic;
use super::Note;
use crate::roboclaw::protocol::Shape;
use crate::roboclaw::units::WheelSpeeds;

/// Something to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Open the port, then call [`Logic::opened`] or [`Logic::open_failed`].
    Open,
    /// Close the port.
    Close,
    /// Write a packet and read the reply, then call [`Logic::exchanged`].
    Exchange {
        /// What to write.
        packet: Vec<u8>,
        /// What to read.
        shape: Shape,
    },
    /// Make a line active or not.
    Set(Line, bool),
    /// Do nothing on the bus for so long.
    Wait(Duration),
    /// There is nothing more to do.
    End,
}

/// A line beside the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Resets both controllers while active.
    Reset,
    /// Lit while active.
    Green,
    /// Lit while active.
    Red,
}

/// What others get to know.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The answer to somebody who has asked.
    Answer(Origin, WheelSpeeds),
    /// A line for the log.
    Say(Note),
}

/// Why there is no whole reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// Nothing came.
    #[error("does not answer")]
    Silent,
    /// The reply ended too early.
    #[error("answers half")]
    Half,
    /// The port has failed.
    #[error("{0}")]
    Port(String),
}
