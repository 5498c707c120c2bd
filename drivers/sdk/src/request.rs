//! Requests to a driver. PURE.

use amber_proto::{ClientId, Device, SynNum};

/// A DATA message from a client or from another driver.
#[derive(Clone, Debug, PartialEq)]
pub struct Request<M> {
    /// What it says.
    pub message: M,
    /// Whom the answer goes to.
    pub origin: Origin,
}

/// Where a request comes from, and so where its answer goes.
///
/// Worth keeping when the answer takes longer than the handler may:
/// [`Link::answer`](crate::Link::answer) sends it later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Who asks: one client, usually. Drivers have ids of the same kind.
    pub clients: Vec<ClientId>,
    /// Which of our devices is asked; only in a process that serves several.
    pub device: Option<Device>,
    /// The number of the request. Without one it cannot be answered.
    pub syn: Option<SynNum>,
}

impl<M> Request<M> {
    /// Who asks.
    pub fn client(&self) -> Option<ClientId> {
        self.origin.clients.first().copied()
    }
}
