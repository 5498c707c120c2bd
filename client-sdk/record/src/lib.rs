//! Recordings of robots: MCAP files with all messages between clients and drivers.
//!
//! ```text
//!  mediator --feed (Unix socket)--> Recording --> FILE.mcap --> Messages --> info, export
//! ```
//!
//! **The feed** ([`amber_proto::feed`]) has every frame once, in order, with the time at which the
//! mediator received it. The mediator never waits for a recorder: if a disk is slow, frames are
//! left out, and a gap records their number and time.
//!
//! **A channel** is one kind of message of one device: `/hokuyo/0/scan` contains messages of the
//! device, `/roboclaw/0/requests/motorSpeedCommand` requests of clients. The name is that of the
//! first field in the message, or else of its type, such as `subscribe`. Messages that the mediator
//! dropped are in separate channels, `/hokuyo/0/dropped/requests/get_status`.
//!
//! **A message** is the frame's message, byte for byte, after one more field: `frame`, number 1,
//! with the clients and the reason of a drop. Protobuf joins fields by writing them one after the
//! other, so nothing is decoded while recording, and the original bytes can be played back. The
//! schema of a device is `amber.recorded.Hokuyo` and the like: the fields that its driver and its
//! clients send, in one message, instead of extensions of `DriverMsg`, which few tools can read.
//! Devices without a description are recorded as bytes (`amber.recorded.Unknown`).
//!
//! **In addition** there are `/amber/events`, `/amber/peers` (the addresses of the ids in
//! `frame.clients`), `/amber/dropped` (counters) and `/amber/gaps`. The metadata record
//! `amber.start` has versions, `amber.end` shows whether the recording is complete.
//!
//! **A [`Companion`]** writes messages for other programs into the same file, such as those that
//! Foxglove draws. They are not frames: [`Stored::message`] ignores them. A picture would double the
//! file, so the file has it only in the form for other programs, a [`Carrier`], followed by what this
//! form lacks. [`Stored::message`] reads the message from it again, byte for byte.
//!
//! **Files stay readable.** Chunks are written whole, at least every second. A file that was not
//! finished has them all; [`recover`] copies them to a finished file. Where a file is damaged, all
//! readers continue at the next record, and say what is damaged.
//!
//! - [`Recording`] writes a file from the records of a feed. PURE except for the file.
//! - [`Ring`] keeps the last seconds of a feed in memory. PURE.
//! - [`Messages`] reads one, [`Info`] sums it up, [`recover`] repairs it, [`Table`] exports it.
//! - [`play`] finds the messages of a time, and the recorded answers.

#![warn(missing_docs)]

mod chunk;
mod companion;
mod damage;
mod descriptors;
mod export;
mod info;
mod known;
mod limits;
mod messages;
mod payload;
mod pieces;
pub mod play;
mod record;
mod recording;
mod recover;
mod ring;
mod scan;
mod summary;
#[cfg(test)]
mod tests;
mod topic;
mod window;
mod writer;

pub use chunk::Check;
pub use companion::{Beside, Carrier, Companion};
pub use damage::{Damage, Effect};
pub use descriptors::Descriptors;
pub use export::{Form, Table, json_line};
pub use info::{ChannelInfo, GapInfo, Info};
pub use known::Known;
pub use messages::{Entry, Messages, Stored};
pub use payload::Framing;
pub use recording::{Recording, Totals};
pub use recover::{Recovered, Unverified, recover};
pub use ring::{Ring, Snapshot};
pub use scan::Attached;

/// The reason why a file cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is not an MCAP file.
    #[error("{0}")]
    Mcap(mcap::McapError),
}

impl From<mcap::McapError> for Error {
    fn from(error: mcap::McapError) -> Self {
        match error {
            mcap::McapError::Io(error) => Self::Io(error),
            other => Self::Mcap(other),
        }
    }
}
