//! Plays recordings: what is due when, and what was answered.
//!
//! ```text
//!  FILE --index--> Recorded --> Player   messages when they are due
//!                          \--> Answers  the recorded answer to a request
//! ```
//!
//! Only the index of the file is in memory. [`Player`] and [`Answers`] read the parts of the file
//! that they need, each with a file handle of its own. Time is an argument. PURE but for the file.

mod answers;
mod clock;
mod limits;
mod player;
mod recorded;
#[cfg(test)]
mod tests;
mod wire;

use crate::Error;

pub use answers::Answers;
pub use clock::{Clock, Span};
pub use limits::{MAX_RATE, MIN_RATE};
pub use player::{Played, Player};
pub use recorded::Recorded;
pub use wire::{fields, key};

/// Why a recording cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] Error),
    /// The file has no index: its recorder was killed.
    #[error("the recording is not finished, so it has no index")]
    Unfinished,
    /// No message in it.
    #[error("the recording is empty")]
    Empty,
    /// The index is too large.
    #[error("the recording has {0} chunks; at most {max} can be played", max = limits::CHUNKS)]
    TooLong(usize),
}

impl From<std::io::Error> for PlayError {
    fn from(error: std::io::Error) -> Self {
        Self::File(error.into())
    }
}

impl From<mcap::McapError> for PlayError {
    fn from(error: mcap::McapError) -> Self {
        Self::File(error.into())
    }
}
