//! The steps that the logic requests, and their results. PURE.

use std::time::Duration;

#[cfg(doc)]
use super::WheelLogic;
use crate::roboclaw::protocol::Shape;

/// An action for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerAction {
    /// Open the port, then call [`WheelLogic::opened`] or [`WheelLogic::open_failed`].
    Open,
    /// Close the port.
    Close,
    /// Write a packet and read the reply, then call [`WheelLogic::exchanged`].
    Exchange {
        /// The packet to write.
        packet: Vec<u8>,
        /// The reply to read.
        shape: Shape,
    },
    /// Set a line active or inactive.
    Set(Line, bool),
    /// Leave the bus idle for this time.
    Wait(Duration),
    /// Nothing is left to do.
    End,
}

/// A GPIO line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Resets both controllers while active.
    Reset,
    /// Lit while active.
    Green,
    /// Lit while active.
    Red,
}

/// The reason why an exchange gave no complete reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// No reply arrived.
    #[error("does not answer")]
    Silent,
    /// The reply ended too early.
    #[error("sends incomplete replies")]
    Half,
    /// The port has failed.
    #[error("{0}")]
    Port(String),
}
