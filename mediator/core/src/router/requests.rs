//! Requests from clients and drivers to the driver of a device. PURE.

use std::time::Instant;

use amber_proto::{ClientId, Device, HeaderBytes};
use tracing::warn;

use super::voice::{is_client_died, request_number};
use super::{Outbox, Router, Uses};
use crate::address::{ClientAddress, DriverKey, Host, PackedAddress};
use crate::counters::{Count, DropReason};
use crate::limits;
use crate::queue::Lane;

impl Router {
    /// A client sends a request to a device.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn client_asks(
        &mut self,
        now: Instant,
        from: ClientAddress,
        known: Option<ClientId>,
        device: Device,
        message: &[u8],
        bytes: usize,
        out: &mut Outbox,
    ) {
        let moment = self.clients.moment(now);
        let driver = self.routes.of_device(device);
        let client = known.and_then(|id| self.clients.client_mut(id));
        let used = driver.and_then(|driver| client?.uses.find(driver, device));
        let allowed = used
            .as_ref()
            .is_some_and(|used| used.rules == self.admission.version());
        if !allowed && !self.admission.allows(from.address, device) {
            return self.deny(now, from, known, device, message, out);
        }
        let Some(driver) = driver else {
            let why = DropReason::UnknownDevice;
            self.counters.drop(why);
            self.record_dropped_request(device, why, known, message);
            return self.refuse(now, known, device, message, out);
        };
        let Some(route) = self
            .routes
            .get_mut(driver)
            .filter(|route| route.id.is_some())
        else {
            let why = DropReason::DriverDown;
            self.counters.drop(why);
            if let Some(route) = self.routes.get_mut(driver) {
                route.traffic.dropped_down += 1;
            }
            self.record_dropped_request(device, why, known, message);
            return self.refuse(now, known, device, message, out);
        };
        if is_client_died(message) {
            return match known {
                Some(id) => self.client_leaves(id, driver, device, message),
                None => self.counters.drop(DropReason::NothingToTell),
            };
        }
        let lane = match (used, known) {
            (Some(used), Some(id)) => {
                used.rules = self.admission.version();
                used.note(message);
                if std::mem::take(&mut used.told) {
                    route.untold.insert(id);
                }
                if let Some(rate) = used.asked(moment)
                    && !used.asks_anew(request_number(message))
                {
                    self.name_loop(now, driver, device, &from.address.to_string(), rate);
                }
                Lane::Client(id)
            }
            (_, known) => {
                let id = known.unwrap_or_else(|| self.new_client(now, from, bytes));
                self.begin_use(id, driver, device, message)
            }
        };
        let host = PackedAddress::from(from).host();
        self.pass_on(driver, device, Some(host), lane, message);
    }

    /// A driver sends a request to the device of another driver.
    pub(super) fn driver_asks(
        &mut self,
        now: Instant,
        key: DriverKey,
        id: ClientId,
        device: Device,
        message: &[u8],
    ) {
        let driver = self.routes.of_device(device);
        let is_running =
            |driver: &DriverKey| self.routes.get(*driver).is_some_and(|r| r.id.is_some());
        let Some(driver) = driver.filter(is_running) else {
            let why = match driver.and_then(|driver| self.routes.get_mut(driver)) {
                Some(route) => {
                    route.traffic.dropped_down += 1;
                    DropReason::DriverDown
                }
                None => DropReason::UnknownDevice,
            };
            self.counters.drop(why);
            self.record_dropped_request(device, why, Some(id), message);
            return self.refuse_driver(key, device, message);
        };
        if is_client_died(message) {
            return self.client_leaves(id, driver, device, message);
        }
        let moment = self.clients.moment(now);
        let asker = self.routes.get_mut(key);
        let used = asker.and_then(|asker| asker.uses.find(driver, device));
        let lane = match used {
            Some(used) => {
                let (was_told, rate) = (std::mem::take(&mut used.told), used.asked(moment));
                let rate = rate.filter(|_| !used.asks_anew(request_number(message)));
                if was_told && let Some(route) = self.routes.get_mut(driver) {
                    route.untold.insert(id);
                }
                if let Some(rate) = rate {
                    let asker = self
                        .routes
                        .get(key)
                        .map(|asker| asker.devices[0].to_string());
                    self.name_loop(now, driver, device, &asker.unwrap_or_default(), rate);
                }
                Lane::Client(id)
            }
            None => self.begin_use(id, driver, device, message),
        };
        self.pass_on(driver, device, None, lane, message);
    }

    /// The first request from this client or driver to a device since the device's process
    /// started.
    fn begin_use(
        &mut self,
        id: ClientId,
        driver: DriverKey,
        device: Device,
        message: &[u8],
    ) -> Lane {
        let rules = self.admission.version();
        let Some(uses) = self.uses_mut(id) else {
            return Lane::Client(id);
        };
        let seen = uses.has_driver(driver);
        uses.begin(driver, device, rules);
        if let Some(used) = uses.find(driver, device) {
            used.note(message);
        }
        self.clients.rank_again(id);
        if let Some(route) = self.routes.get_mut(driver) {
            route.untold.insert(id);
        }
        if seen {
            Lane::Client(id)
        } else {
            Lane::NewClient(id)
        }
    }

    /// The uses of a client, or of a driver that sends requests.
    pub(super) fn uses_mut(&mut self, id: ClientId) -> Option<&mut Uses> {
        match self.routes.of_id(id) {
            Some(driver) => Some(&mut self.routes.get_mut(driver)?.uses),
            None => Some(&mut self.clients.client_mut(id)?.uses),
        }
    }

    /// Queues a request for a driver.
    fn pass_on(
        &mut self,
        driver: DriverKey,
        device: Device,
        host: Option<Host>,
        lane: Lane,
        message: &[u8],
    ) {
        let from = match lane {
            Lane::Client(id) | Lane::NewClient(id) | Lane::ClientDied(id) | Lane::Left(id) => {
                Some(id)
            }
            Lane::LifeCycle => None,
        };
        self.counters.count(Count::Requests);
        let header = self.header_for(driver, device, from);
        self.record_request(device, from, message);
        self.push_from(driver, host, lane, header, message);
    }

    /// The header of a frame about a client. A driver with one device gets exactly the header
    /// that the original mediator sent.
    pub(super) fn header_for(
        &self,
        driver: DriverKey,
        device: Device,
        client: Option<ClientId>,
    ) -> HeaderBytes {
        let several = self
            .routes
            .get(driver)
            .is_some_and(|route| route.devices.len() > 1);
        HeaderBytes::new(several.then_some(device), client)
    }

    fn name_loop(
        &mut self,
        now: Instant,
        driver: DriverKey,
        device: Device,
        with: &str,
        rate: u64,
    ) {
        self.counters.count(Count::Loops);
        let Some(route) = self.routes.get_mut(driver) else {
            return;
        };
        let recently = |named: Instant| now.duration_since(named) < limits::LOOP_NEWS;
        if !route.loop_named.is_some_and(recently) {
            route.loop_named = Some(now);
            warn!("{device} and {with} exchange {rate} frames/s: do they answer each other?");
        }
    }
}
