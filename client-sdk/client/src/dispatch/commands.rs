//! What handles and the task tell each other. IO: channels.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
        /// For callers that do not wait for the answer.
        sent: Option<oneshot::Sender<Result<()>>>,
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
    /// Which drivers report the outcomes of commands.
    pub(crate) reports: Reports,
}

/// Which drivers report the outcomes of commands, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Reports(Mutex<HashMap<Device, bool>>);

impl Reports {
    pub(crate) fn does(&self, device: Device) -> Option<bool> {
        self.known().get(&device).copied()
    }

    /// Takes note. A single report counts more than many missing ones: they may be lost.
    pub(crate) fn note(&self, device: Device, does: bool) {
        let mut known = self.known();
        let before = known.entry(device).or_insert(does);
        *before |= does;
    }

    /// The driver will be another process.
    pub(crate) fn forget(&self, device: Device) {
        self.known().remove(&device);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Device, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
