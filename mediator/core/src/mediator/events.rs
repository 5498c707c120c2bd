//! The events that listeners get. PURE.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use amber_proto::mediator::{self, Event};
use amber_proto::{ClientId, DeviceMessage, SynNum};
use prost::Message;

/// The subscribers to events, and the number of the next event.
#[derive(Debug)]
pub(super) struct Events {
    listeners: BTreeSet<ClientId>,
    count: u64,
    wall_clock: fn() -> SystemTime,
}

impl Events {
    pub(super) fn new(wall_clock: fn() -> SystemTime) -> Self {
        Self {
            listeners: BTreeSet::new(),
            count: 0,
            wall_clock,
        }
    }

    pub(super) fn subscribe(&mut self, id: ClientId) {
        self.listeners.insert(id);
    }

    pub(super) fn unsubscribe(&mut self, id: ClientId) {
        self.listeners.remove(&id);
    }

    pub(super) fn has(&self, id: ClientId) -> bool {
        self.listeners.contains(&id)
    }

    pub(super) fn listeners(&self) -> usize {
        self.listeners.len()
    }

    /// Forgets the listeners for which `is_known` is false.
    pub(super) fn retain(&mut self, is_known: impl Fn(ClientId) -> bool) {
        self.listeners.retain(|id| is_known(*id));
    }

    /// Numbers an event, and gives it to `send` for each listener. Those for which `send` returns
    /// false are forgotten.
    pub(super) fn publish(
        &mut self,
        mut event: Event,
        mut send: impl FnMut(ClientId, &[u8]) -> bool,
    ) {
        self.count += 1;
        if self.listeners.is_empty() {
            return;
        }
        event.number = Some(self.count);
        event.time_ms = self
            .since_epoch()
            .and_then(|time| time.as_millis().try_into().ok());
        let mut message = mediator::DriverMsg::data();
        message.set_ack(Some(SynNum(0)));
        message.event = Some(event);
        let message = message.encode_to_vec();
        self.listeners.retain(|id| send(*id, &message));
    }

    /// The time since the Unix epoch; `None` if the clock is before it.
    pub(super) fn since_epoch(&self) -> Option<Duration> {
        (self.wall_clock)()
            .duration_since(SystemTime::UNIX_EPOCH)
            .ok()
    }
}
