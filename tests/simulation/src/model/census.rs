//! The known clients and their requests. PURE.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use amber_core::Core;
use amber_core::counters::{Count, DropReason};
use amber_proto::{ClientId, Device, DeviceMessage, Header, MsgType};

use super::{Arrival, Asked, Cause, Changes, Model, Owner, Person, is_client_died};
use crate::invariant::{Check, Invariant, holds};
use crate::messages;

impl Model {
    /// Updates the known clients.
    pub(super) fn census(&mut self, core: &Core, changes: &mut Changes<'_>) -> Check {
        let down = self
            .lives
            .values()
            .filter(|life| changes.down.contains(&life.pid));
        let down: Vec<ClientId> = down.filter_map(|life| life.id).collect();
        for id in down {
            self.owners.remove(&id);
            self.ends(id, None);
        }
        let (now, clients) = (changes.call.now, &core.router().clients);
        let known: BTreeMap<SocketAddr, (ClientId, Instant)> = (clients.in_order().into_iter())
            .map(|client| {
                let heard = now - clients.silent_for(now, client);
                (client.address(), (client.id, heard))
            })
            .collect();
        let of_its_host = match changes.call.cause {
            Cause::Datagram(from, _) => self.of_its_host(&from),
            _ => 0,
        };
        let people = self.people.iter();
        let gone: Vec<SocketAddr> = people
            .filter(|(address, person)| known.get(address).is_none_or(|(id, _)| *id != person.id))
            .map(|(address, _)| *address)
            .collect();
        let gone = gone.iter();
        changes.gone = gone.filter_map(|it| self.people.remove_entry(it)).collect();
        for person in changes.gone.values() {
            self.owners.remove(&person.id);
            self.ends(person.id, None);
        }
        self.check_who_was_evicted(changes)?;
        for (address, (id, heard)) in known {
            if let Some(person) = self.people.get_mut(&address) {
                person.heard = heard;
                continue;
            }
            let person = Person {
                id,
                heard,
                announced: false,
                has_asked: false,
                proved: address.ip().is_loopback(),
                ponged: false,
                sent: false,
                used: BTreeSet::new(),
                told: BTreeSet::new(),
            };
            self.people.insert(address, person);
            self.take_id(id, Owner::Client(address))?;
        }
        self.check_hosts(changes, of_its_host)
    }

    pub(super) fn take_id(&mut self, id: ClientId, owner: Owner) -> Check {
        let before = self.owners.insert(id, owner);
        holds(Invariant::IdsUnique, before.is_none() && id.0 > 0, || {
            format!("{owner:?} gets id {}, which belongs to {before:?}", id.0)
        })
    }

    /// Records the effect of a datagram, or of a frame for another driver.
    pub(super) fn take_note(&mut self, changes: &Changes<'_>) -> Check {
        if let Cause::Frame(pid, header, message) = changes.call.cause {
            return self.driver_asks(pid, header, message, changes);
        }
        let (Some(asked), Cause::Datagram(_, bytes)) = (changes.asked, changes.call.cause) else {
            return Ok(());
        };
        self.credit.entry(asked.from).or_default().came += bytes.len() as u64;
        if changes.ignored() {
            return Ok(());
        }
        self.spoke.insert(asked.from);
        let accepted = changes.counted(Count::Requests) > 0;
        match asked.device {
            None if changes.dropped(DropReason::AccessDenied) == 0 => self.spoken_to(asked),
            None => {}
            Some(device) if accepted => {
                let ip = asked.from.ip();
                holds(
                    Invariant::AccessHolds,
                    self.access.allows(asked.from, device),
                    || format!("{ip} reaches {device}, but no rule allows it"),
                )?;
                let id = self.people.get(&asked.from).map(|person| person.id);
                holds(Invariant::IdsUnique, id.is_some(), || {
                    format!(
                        "{} sent a request to {device}, but is not known",
                        asked.from
                    )
                })?;
                let id = id.unwrap_or(ClientId(0));
                let owner = Owner::Client(asked.from);
                let leaves = self.accepted(changes.call.core, id, owner, device, asked.message);
                if let Some(person) = self.people.get_mut(&asked.from) {
                    if leaves {
                        person.used.remove(&device);
                    } else {
                        person.used.insert(device);
                    }
                    person.told.remove(&device);
                }
            }
            // It leaves a driver that has not read any of its messages and never will.
            Some(device) if changes.dropped(DropReason::NothingToTell) > 0 => {
                if let Some(person) = self.people.get_mut(&asked.from) {
                    person.used.remove(&device);
                    person.told.remove(&device);
                    let id = person.id;
                    self.stops_using(id, Some(device));
                }
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Records a message to the mediator itself.
    fn spoken_to(&mut self, asked: Asked<'_>) {
        let Some(person) = self.people.get_mut(&asked.from) else {
            return;
        };
        let Some(said) = messages::envelope(asked.message) else {
            return;
        };
        match said.kind() {
            Some(MsgType::Ping | MsgType::Subscribe | MsgType::Unsubscribe | MsgType::Data) => {
                (person.announced, person.has_asked) = (true, true);
            }
            Some(MsgType::Pong) => {
                person.ponged = true;
                person.proved |=
                    said.ack().is_some() && said.ack() == self.cookies.get(&asked.from).copied();
            }
            _ => {}
        }
    }

    /// An id, or its use of a device, ends.
    pub(super) fn ends(&mut self, id: ClientId, device: Option<Device>) {
        self.ended.entry(id).or_default().push((self.seq, device));
        self.stops_using(id, device);
    }

    /// A client stops using a device, or all devices.
    fn stops_using(&mut self, id: ClientId, device: Option<Device>) {
        for life in self.lives.values_mut() {
            life.users
                .retain(|(user, used)| *user != id || device.is_some_and(|device| device != *used));
        }
    }

    /// Records an accepted message for a driver. Returns whether it was a goodbye.
    fn accepted(
        &mut self,
        core: &Core,
        id: ClientId,
        owner: Owner,
        device: Device,
        message: &[u8],
    ) -> bool {
        let key = core.router().driver_of(device);
        if is_client_died(message) {
            self.ends(id, Some(device));
            for life in self.lives.values_mut() {
                if life.up() && Some(life.key) == key {
                    life.leaving.insert((device, id), self.seq);
                }
            }
            return true;
        }
        self.asked.insert((device, id), self.seq);
        for life in self.lives.values_mut() {
            if life.up() && Some(life.key) == key {
                life.begins_to_use(id, device, self.seq);
            }
        }
        if let Some(token) = messages::token(message) {
            let arrival = Arrival {
                seq: self.seq,
                id,
                owner,
                device,
                message: message.to_vec(),
            };
            self.arrivals.entry(token).or_default().push(arrival);
        }
        false
    }

    fn driver_asks(
        &mut self,
        pid: u32,
        header: &[u8],
        message: &[u8],
        changes: &Changes<'_>,
    ) -> Check {
        let device = Header::parse(header)
            .ok()
            .and_then(|header| header.device());
        let id = self.lives.get(&pid).and_then(|life| life.id);
        let accepted = changes.counted(Count::Requests) > 0;
        if let (Some(device), Some(id), true) = (device, id, accepted) {
            let owner = Owner::Process(pid);
            self.accepted(changes.call.core, id, owner, device, message);
        }
        Ok(())
    }
}
