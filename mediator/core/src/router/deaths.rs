//! Tells drivers about lost clients, and clients about ended drivers. PURE.
//!
//! Each is told once: a driver about each client that has used it since its process started, a
//! client about each of its devices whose driver has ended.

use std::collections::BTreeSet;

use amber_proto::mediator::Unavailable;
use amber_proto::{ClientId, Device};

use super::voice::{client_died, not_allowed};
use super::{Client, Outbox, Router, Use};
use crate::access::Access;
use crate::address::DriverKey;
use crate::counters::{Count, DropReason};
use crate::queue::Lane;

impl Router {
    /// The process of a driver has started.
    pub fn driver_up(&mut self, key: DriverKey) {
        let id = self.free_id();
        self.routes.started(key, id);
        if let Some(route) = self.routes.get_mut(key) {
            route.absence = None;
            let device = route.devices[0].to_string();
            self.feeds.note(|writer| writer.peer(id, &device));
        }
    }

    /// Sets why a driver is unavailable, for announced clients that send requests to it. It
    /// applies until the driver is up again.
    pub fn set_absence(&mut self, key: DriverKey, why: Unavailable) {
        if let Some(route) = self.routes.get_mut(key) {
            route.absence = Some(why);
        }
    }

    /// The process of a driver has ended, or is about to be stopped. Tells every announced
    /// client and every driver that has used it.
    pub fn driver_down(&mut self, key: DriverKey, out: &mut Outbox) {
        let Some(id) = self.routes.ended(key) else {
            return;
        };
        self.feeds.note(|writer| writer.peer_gone(id));
        let Some(route) = self.routes.get_mut(key) else {
            return;
        };
        route.queue.clear();
        route.announced = false;
        route.untold.clear();
        let own_uses = route.uses.end(|_| true);
        let why = route.absence.clone();
        self.tell_client_is_gone(id, &own_uses);

        let mut users = self.clients.driver_down(key);
        for route in self.routes.all_mut() {
            let uses = route.uses.end(|used| used.driver == key);
            if let Some(id) = route.id.filter(|_| !uses.is_empty()) {
                users.push((id, uses));
            }
        }
        users.sort_unstable_by_key(|(id, _)| *id);
        for (user, uses) in users {
            for used in uses.iter().filter(|used| !used.told) {
                self.tell_of_death(user, used.device, why.as_ref(), out);
            }
        }
    }

    /// A driver reports that one of its devices is unavailable, or that all are, but its process
    /// lives on. The users are told as if it had died, once after each of their requests and after
    /// data that comes in between. The driver is still told when one of them is gone.
    pub fn driver_says_dead(
        &mut self,
        key: DriverKey,
        about: Option<Device>,
        why: &Unavailable,
        out: &mut Outbox,
    ) {
        self.counters.count(Count::DriversSaidDead);
        let untold = self
            .routes
            .get_mut(key)
            .map(|route| std::mem::take(&mut route.untold));
        for user in untold.into_iter().flatten() {
            let Some(uses) = self.uses_mut(user) else {
                continue;
            };
            let devices = uses.tell(key, about);
            if uses.has_untold(key)
                && let Some(route) = self.routes.get_mut(key)
            {
                // About another device of the same driver.
                route.untold.insert(user);
            }
            for device in devices {
                self.tell_of_death(user, device, Some(why), out);
            }
        }
    }

    /// A client has left, is lost, or was evicted. Tells every driver that it uses, and forgets
    /// the client.
    pub fn client_gone(&mut self, id: ClientId) -> Option<Client> {
        let mut client = self.clients.remove(id)?;
        self.counters.count(Count::ClientsGone);
        self.tell_client_is_gone(id, &client.uses.end(|_| true));
        self.feeds.note(|writer| writer.peer_gone(id));
        Some(client)
    }

    /// Sets new access rules. Uses that they forbid end: the driver is told that the client
    /// died, and the client that access is denied.
    pub fn set_access(&mut self, access: Access, out: &mut Outbox) {
        if !self.admission.set_access(access) {
            return;
        }
        for id in self.clients.ids() {
            let (admission, clients) = (&self.admission, &mut self.clients);
            let Some(client) = clients.client_mut(id) else {
                continue;
            };
            let address = client.address();
            let ip = address.ip();
            let forbidden = client
                .uses
                .end(|used| !admission.allows(address, used.device));
            self.tell_uses_ended(id, &forbidden);
            for used in forbidden {
                let why = not_allowed(ip, used.device);
                self.tell_of_death(id, used.device, Some(&why), out);
            }
            if !self.admission.allows(address, Device::MEDIATOR) {
                self.clients.renounce(id);
            }
        }
    }

    /// A client tells one driver that it leaves. The message is forwarded unchanged.
    pub(super) fn client_leaves(
        &mut self,
        id: ClientId,
        driver: DriverKey,
        device: Device,
        message: &[u8],
    ) {
        let is_it = |used: &Use| used.driver == driver && used.device == device;
        let ended = self.uses_mut(id).map(|uses| uses.end(is_it));
        if ended.is_none_or(|ended| ended.is_empty()) {
            return self.counters.drop(DropReason::NothingToTell);
        }
        self.clients.rank_again(id);
        match self.lane_for_leaving(id, driver) {
            Some(lane) => {
                self.counters.count(Count::Requests);
                let header = self.header_for(driver, device, Some(id));
                self.record_request(device, Some(id), message);
                self.push(driver, lane, header, message);
            }
            None => self.counters.drop(DropReason::NothingToTell),
        }
    }

    /// Tells drivers that a client no longer uses some of their devices. It may use others.
    fn tell_uses_ended(&mut self, id: ClientId, ended: &[Use]) {
        let drivers: BTreeSet<DriverKey> = ended.iter().map(|used| used.driver).collect();
        for driver in drivers {
            // Called once per driver, because the call also forgets unseen frames.
            let Some(lane) = self.lane_for_leaving(id, driver) else {
                continue;
            };
            for used in ended.iter().filter(|used| used.driver == driver) {
                let (header, message) = (
                    self.header_for(driver, used.device, Some(id)),
                    client_died(),
                );
                self.record_request(used.device, Some(id), &message);
                self.push(driver, lane, header, &message);
            }
        }
    }

    /// How to tell a driver that a client no longer uses one of its devices; `None` if the driver
    /// has never seen a frame of that client.
    fn lane_for_leaving(&mut self, id: ClientId, driver: DriverKey) -> Option<Lane> {
        if self
            .uses_mut(id)
            .is_some_and(|uses| uses.has_driver(driver))
        {
            // Waiting frames may be for another device of the same process.
            return Some(Lane::Left(id));
        }
        let route = self.routes.get_mut(driver)?;
        route.untold.remove(&id);
        (!route.queue.forget_unseen(id)).then_some(Lane::ClientDied(id))
    }

    /// Tells the drivers that a client has used that it is gone: one frame for each device,
    /// with exactly one id, because old drivers cannot read more.
    fn tell_client_is_gone(&mut self, id: ClientId, uses: &[Use]) {
        let drivers: BTreeSet<DriverKey> = uses.iter().map(|used| used.driver).collect();
        for driver in drivers {
            let Some(route) = self.routes.get_mut(driver) else {
                continue;
            };
            route.untold.remove(&id);
            if route.queue.forget_unseen(id) {
                continue;
            }
            for used in uses.iter().filter(|used| used.driver == driver) {
                let (header, message) = (
                    self.header_for(driver, used.device, Some(id)),
                    client_died(),
                );
                self.record_request(used.device, Some(id), &message);
                self.push(driver, Lane::ClientDied(id), header, &message);
            }
        }
    }
}
