//! What recorders get of the frames that pass, and of those that do not. PURE.

use std::time::Instant;

use amber_proto::feed::Direction as Way;
use amber_proto::{ClientId, Device, Header};

use super::Router;
use crate::counters::DropReason;
use crate::feeds::Drops;

impl Router {
    /// Records a frame that is queued for a driver.
    pub(super) fn record_request(
        &mut self,
        device: Device,
        client: Option<ClientId>,
        message: &[u8],
    ) {
        if self.feeds.is_open() {
            let client = || client.into_iter();
            (self.feeds).frame(Way::ToDriver, device, None, client, message);
        }
    }

    /// Records a frame that a driver does not get.
    pub(super) fn record_dropped_request(
        &mut self,
        device: Device,
        why: DropReason,
        client: Option<ClientId>,
        message: &[u8],
    ) {
        if self.feeds.is_open() {
            let client = || client.into_iter();
            (self.feeds).frame(Way::ToDriver, device, Some(why), client, message);
        }
    }

    /// Records a frame of a driver that is not forwarded.
    pub(super) fn record_dropped_answer(
        &mut self,
        device: Device,
        why: DropReason,
        header: &Header<'_>,
        message: &[u8],
    ) {
        if self.feeds.is_open() && header.has_clients() {
            let clients = || header.client_ids();
            (self.feeds).frame(Way::FromDriver, device, Some(why), clients, message);
        }
    }

    /// The drops of the router, and those of the queue of each driver.
    pub(crate) fn drops(&self, now: Instant) -> Drops {
        let drivers = self.routes.all_with_keys();
        let drivers = drivers.map(|(key, route)| (key, route.devices[0], route.queue.tally()));
        Drops::new(now, self.totals(), drivers)
    }

    /// The ids in use: those of clients with their addresses, and those of drivers with their
    /// devices.
    pub(crate) fn peers(&self) -> Vec<(ClientId, String)> {
        let clients = self.clients.in_order().into_iter();
        let clients = clients.map(|client| (client.id, client.address().to_string()));
        let drivers =
            (self.routes.all()).filter_map(|route| Some((route.id?, route.devices[0].to_string())));
        clients.chain(drivers).collect()
    }
}
