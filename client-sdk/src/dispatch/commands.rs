//! What handles and the task tell each other. PURE.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use amber_proto::Device;
use bytes::Bytes;
use tokio::sync::{Notify, oneshot};

use crate::error::Result;
use crate::pending::CallId;
use crate::subscription::Queue;
use crate::subscriptions::{Fields, ListenerId, Terms};

/// Commands of handles.
#[derive(Debug)]
pub(crate) enum Command {
    Call {
        id: CallId,
        device: Device,
        message: Bytes,
        started: Instant,
        deadline: Instant,
        answer: oneshot::Sender<Result<Bytes>>,
    },
    Send {
        device: Device,
        message: Bytes,
        sent: oneshot::Sender<Result<()>>,
    },
    Subscribe {
        device: Device,
        listener: ListenerId,
        terms: Terms,
        fields: Fields,
        queue: Arc<Queue>,
        sent: oneshot::Sender<Result<()>>,
    },
    Close,
}

/// Commands that handles cancel.
#[derive(Debug)]
pub(crate) enum Cancellation {
    Call(CallId),
    Listener(Device, ListenerId),
}

/// The state that the task shares with its handles.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// The reason why the task has ended.
    pub(crate) cause: OnceLock<Arc<str>>,
    /// Whether the mediator itself has ever sent a message.
    pub(crate) heard: AtomicBool,
    /// Notified once, when the task has ended.
    pub(crate) ended: Notify,
}
