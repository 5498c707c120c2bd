//! Plays recordings: due messages, and recorded answers.
//!
//! ```text
//!  FILE --index--> Recorded --> Player   messages when they are due
//!                          \--> Answers  the recorded answer to a request
//! ```
//!
//! Only the indexes of the files are in memory. [`Player`] and [`Answers`] read the parts of the files
//! that they need, each with its own file handles. Time is an argument. PURE except for the files.

mod answers;
mod chunk;
mod clock;
mod limits;
mod player;
mod reader;
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

/// The reason why a recording cannot be played.
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
    /// The files have too many different channels.
    #[error("the files together have more than 65536 channels")]
    TooManyChannels,
    /// It begins before the end of the file before.
    #[error("the two overlap in time")]
    Overlap,
    /// It begins too long after the file before.
    #[error("there are {} s between the two", .0.as_secs())]
    Apart(std::time::Duration),
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
