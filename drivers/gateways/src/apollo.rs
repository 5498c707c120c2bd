//! Apollo bridge: the UDP link between the driving system Apollo and other programs.
//!
//! - [`frame`]: the bytes of one datagram (PURE)
//! - [`split`]: from a message to datagrams (PURE)
//! - [`reassembly`]: from datagrams to messages (PURE)
//! - [`messages`]: the messages, as Apollo numbers their fields
//! - [`mapping`]: converts between these messages and those of Amber (PURE)
//! - [`session`]: the messages to send, and the accepted senders (PURE)
//! - `driver`: the options of `amber driver apollo` (IO)
//! - [`limits`]: every maximum, with its reason

pub mod driver;
pub mod frame;
pub mod limits;
pub mod mapping;
pub mod reassembly;
pub mod session;
pub mod split;

/// The messages that the gateway uses, generated from `messages.proto`.
#[allow(unreachable_pub)]
pub mod messages {
    include!(concat!(env!("OUT_DIR"), "/amber.apollo.rs"));
}
