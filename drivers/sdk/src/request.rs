//! Requests to a driver, and answers that are too long. PURE.

use std::time::Instant;

use amber_proto::limits::{MAX_LONG, MAX_PART};
use amber_proto::pieces::Ability;
use amber_proto::{ClientId, Device, SynNum};

use crate::motion::StopCause;

/// A DATA message from a client or from another driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Request<M> {
    /// The contents of the message.
    pub message: M,
    /// The receiver of the answer.
    pub origin: Origin,
}

/// The source of a request, to which the answer goes.
///
/// Keep it if the answer takes longer than the handler may run:
/// [`Link::answer`](crate::Link::answer) sends the answer later.
///
/// New versions may have more fields: if you make one, in a test, end it with `..Origin::default()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The sender: usually one client. Drivers have ids of the same kind.
    pub clients: Vec<ClientId>,
    /// The addressed device; only in a process that serves several.
    pub device: Option<Device>,
    /// The number of the request. A request without a number cannot be answered.
    pub syn: Option<SynNum>,
    /// The sender asked for the outcome of the request: see
    /// [`Link::accepted`](crate::Link::accepted) and
    /// [`Link::refused`](crate::Link::refused).
    pub wants_outcome: bool,
    /// When the request is no longer valid, if the sender said so. The harness stops the device
    /// then.
    pub valid_until: Option<Instant>,
    /// If the harness itself sends the request, to stop the device: the reason.
    pub stop_cause: Option<StopCause>,
    /// The client of the sender, if it is a driver that moves this device for one.
    pub for_client: Option<ClientId>,
    /// What the sender joins: an answer may have so many bytes. `None`: not more than a frame.
    pub joins: Option<Ability>,
}

/// The message is too long, or too long for a frame and the client does not join pieces; it was not
/// sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a message of {0} bytes is too long: the limit is {MAX_PART}, or {MAX_LONG} for clients that \
     join pieces"
)]
pub struct MessageTooLong(pub usize);

impl<M> Request<M> {
    /// The sender, if it is a single client.
    pub fn client(&self) -> Option<ClientId> {
        self.origin.client()
    }
}

impl Origin {
    /// The origin of messages from one client, in a process that serves one device.
    pub fn of(client: ClientId) -> Self {
        Self {
            clients: vec![client],
            ..Self::default()
        }
    }

    /// The sender, if it is a single client.
    pub fn client(&self) -> Option<ClientId> {
        self.clients.first().copied()
    }
}
