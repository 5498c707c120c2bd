//! The frames that driver processes have read, and the consequences. PURE.

use std::collections::{BTreeMap, BTreeSet};

use amber_core::Core;
use amber_core::address::DriverKey;
use amber_proto::{ClientId, Device, DeviceMessage, Frame, Header, MsgType};

use super::{Call, Cause, Model, Owner, Started, is_client_died};
use crate::invariant::{Check, Invariant, broken, holds};
use crate::messages;

/// A process.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) pid: u32,
    pub(super) key: DriverKey,
    pub(super) devices: Vec<Device>,
    /// Its id, until it becomes unavailable.
    pub(super) id: Option<ClientId>,
    /// Clients that it knows and that have not died for it.
    pub(super) known: BTreeMap<(Device, ClientId), Option<Owner>>,
    /// Clients that have left a device, and when, until the process gets their goodbye.
    pub(super) leaving: BTreeMap<(Device, ClientId), u64>,
    /// Replies of other devices that it has not read yet.
    pub(super) copies: Vec<(Device, Vec<u8>)>,
    /// The last frame that it has read from each client.
    last: BTreeMap<ClientId, u64>,
    /// When it last read something from each client for any device, including invalid data.
    heard: BTreeMap<ClientId, u64>,
    /// The devices that each client uses now.
    pub(super) users: BTreeSet<(ClientId, Device)>,
    /// When each client started to use any device of the process, having used none before.
    began: BTreeMap<ClientId, Vec<u64>>,
    /// The CLIENT_DIED that it has read for each client.
    told: BTreeMap<(Device, ClientId), u64>,
    since: u64,
}

impl Life {
    pub(super) fn up(&self) -> bool {
        self.id.is_some()
    }

    /// A client starts to use a device of the process.
    pub(super) fn begins_to_use(&mut self, id: ClientId, device: Device, now: u64) {
        if !self.users.iter().any(|(user, _)| *user == id) {
            self.began.entry(id).or_default().push(now);
        }
        self.users.insert((id, device));
    }

    /// Whether it has read anything from a client, for any device, in the use of the process
    /// that ended at this time.
    fn has_heard(&self, id: ClientId, end: u64) -> bool {
        let mut began = self.began.get(&id).into_iter().flatten();
        let began = began.rfind(|began| **began <= end);
        let heard = self.heard.get(&id);
        heard.is_some_and(|heard| began.is_some_and(|began| heard >= began))
    }
}

impl Model {
    /// A process was started.
    ///
    /// # Errors
    /// Its id belongs to another client.
    pub fn started(&mut self, started: Started, core: &Core) -> Check {
        let Started { pid, key, devices } = started;
        self.seen.starts += 1;
        let id = core.router().route(key).and_then(|route| route.id);
        let life = Life {
            pid,
            key,
            devices,
            id,
            known: BTreeMap::new(),
            leaving: BTreeMap::new(),
            copies: Vec::new(),
            last: BTreeMap::new(),
            heard: BTreeMap::new(),
            users: BTreeSet::new(),
            began: BTreeMap::new(),
            told: BTreeMap::new(),
            since: self.seq,
        };
        self.lives.insert(pid, life);
        match id {
            Some(id) => self.take_id(id, Owner::Process(pid)),
            None => Ok(()),
        }
    }

    /// A process has ended and reads nothing more.
    pub fn ended(&mut self, pid: u32) {
        self.lives.remove(&pid);
    }

    /// The processes that have become unavailable since the last call.
    pub(super) fn down(&self, core: &Core) -> Vec<u32> {
        let is_down = |life: &&Life| {
            let id = core.router().route(life.key).and_then(|route| route.id);
            life.up() && id != life.id
        };
        self.lives
            .values()
            .filter(is_down)
            .map(|life| life.pid)
            .collect()
    }

    pub(super) fn forget_down(&mut self, down: &[u32]) {
        for pid in down {
            let Some(life) = self.lives.get_mut(pid) else {
                continue;
            };
            life.id = None;
            for person in self.people.values_mut() {
                for device in &life.devices {
                    person.used.remove(device);
                    person.told.remove(device);
                }
            }
        }
    }

    /// A process has declared itself unavailable. No client is notified until its next request or
    /// until data comes, even one without access.
    pub(super) fn note_said_dead(&mut self, said_dead: Option<u32>) {
        let Some(life) = said_dead.and_then(|pid| self.lives.get(&pid)) else {
            return;
        };
        for person in self.people.values_mut() {
            let used = life
                .devices
                .iter()
                .filter(|device| person.used.contains(device));
            person.told.extend(used);
        }
    }

    /// The process that declares itself unavailable in this call.
    pub(super) fn said_dead(&self, call: &Call<'_>) -> Option<u32> {
        let Cause::Frame(pid, header, message) = call.cause else {
            return None;
        };
        let life = self.lives.get(&pid).filter(|life| life.up())?;
        let header = Header::parse(header).ok()?;
        let about_itself = !header.has_clients()
            && match (header.device_type, header.device()) {
                (None, _) => true,
                (_, Some(device)) => life.devices.contains(&device),
                _ => false,
            };
        let dead = messages::envelope(message)?.kind() == Some(MsgType::DriverDied);
        (about_itself && dead).then_some(pid)
    }

    /// A process has read a frame.
    ///
    /// # Errors
    /// It must not get this frame.
    pub fn reads(&mut self, pid: u32, bytes: &[u8]) -> Check {
        let frame = Frame::from_stream(bytes);
        let header = frame.map(|frame| (Header::parse(frame.header), frame.message));
        let Some((Ok(header), message)) = header else {
            return Err(broken(
                Invariant::FramesWhole,
                format!("{pid} reads an invalid frame"),
            ));
        };
        let Some(life) = self.lives.get_mut(&pid) else {
            return Ok(());
        };
        if !header.has_clients() {
            return from_device(life, &header, message);
        }
        let ids = messages::ids(&header);
        let device = match (&life.devices[..], header.device()) {
            ([only], None) => Some(*only),
            ([_, _, ..], device) => device.filter(|device| life.devices.contains(device)),
            _ => None,
        };
        let (Some(device), [id]) = (device, &ids[..]) else {
            let what = format!("{pid} reads the header {header:?}");
            return Err(broken(Invariant::BytesUntouched, what));
        };
        if is_client_died(message) {
            return self.obituary(pid, device, *id);
        }
        self.request(pid, device, *id, message)
    }

    fn request(&mut self, pid: u32, device: Device, id: ClientId, message: &[u8]) -> Check {
        let Some(life) = self.lives.get_mut(&pid) else {
            return Ok(());
        };
        let Some(token) = messages::token(message) else {
            // Invalid data, possibly of any client.
            life.known.entry((device, id)).or_insert(None);
            life.heard.insert(id, self.seq);
            return Ok(());
        };
        let last = life.last.get(&id).copied().unwrap_or(0);
        let arrivals = self.arrivals.get(&token).into_iter().flatten();
        let mut its = arrivals.filter(|arrival| {
            (arrival.id, arrival.device) == (id, device) && arrival.message == message
        });
        let Some(first) = its.next() else {
            let what =
                format!("{pid} reads {token:?} for {device} from {id:?}, which never sent it");
            return Err(broken(Invariant::BytesUntouched, what));
        };
        let told = life.told.get(&(device, id)).copied().unwrap_or(0);
        let fresh = std::iter::once(first).chain(its);
        let fresh: Vec<_> = fresh.filter(|arrival| arrival.seq > last).collect();
        holds(Invariant::InOrderAndOnce, !fresh.is_empty(), || {
            format!("{pid} reads {token:?} from {id:?} twice, or after a later one")
        })?;
        // An evicted client is gone before the new client gets its id.
        let Some(arrival) = fresh.into_iter().find(|arrival| arrival.seq >= told) else {
            let what = format!("{pid} reads {token:?} from {id:?} after its CLIENT_DIED");
            return Err(broken(Invariant::NothingAfterObituary, what));
        };
        life.last.insert(id, arrival.seq);
        life.heard.insert(id, arrival.seq);
        if (life.leaving.get(&(device, id))).is_some_and(|left| *left < arrival.seq) {
            // The client has returned. The process must get the goodbye only if it has read
            // something from before.
            life.leaving.remove(&(device, id));
            let knew = life.known.contains_key(&(device, id));
            holds(Invariant::ObituaryTold, !knew, || {
                format!("{pid} reads {token:?} from {id:?}, but not its goodbye to {device}")
            })?;
        }
        let before = life
            .known
            .insert((device, id), Some(arrival.owner))
            .flatten();
        let same = before.is_none_or(|before| before == arrival.owner);
        holds(Invariant::IdNotReused, same, || {
            format!(
                "{pid} knows {id:?} as {before:?}, but now it is {:?}",
                arrival.owner
            )
        })
    }

    fn obituary(&mut self, pid: u32, device: Device, id: ClientId) -> Check {
        let Some(life) = self.lives.get_mut(&pid) else {
            return Ok(());
        };
        life.leaving.remove(&(device, id));
        let told = life.told.get(&(device, id)).copied().unwrap_or(life.since);
        let knew = life.known.remove(&(device, id)).is_some();
        // The id may have belonged to several clients.
        let ends = self.ended.get(&id).into_iter().flatten();
        let ends = ends.filter(|(at, of)| *at > told && of.is_none_or(|of| of == device));
        let ends: Vec<u64> = ends.map(|(at, _)| *at).collect();
        let Some(end) = ends.first() else {
            let what =
                format!("{pid} gets CLIENT_DIED for {id:?} at {device}, which is still known");
            return Err(broken(Invariant::ObituaryOnce, what));
        };
        let knew = knew || ends.iter().any(|end| life.has_heard(id, *end));
        holds(Invariant::ObituaryOnce, knew, || {
            format!("{pid} gets CLIENT_DIED for {id:?} at {device}, which it does not know")
        })?;
        life.told.insert((device, id), *end);
        Ok(())
    }

    /// A process has read all its input.
    ///
    /// # Errors
    /// It knows a client for which it should have got CLIENT_DIED.
    pub fn has_read_all(&self, pid: u32) -> Check {
        let Some(life) = self.lives.get(&pid).filter(|life| life.up()) else {
            return Ok(());
        };
        for ((device, id), owner) in &life.known {
            let now = self.owners.get(id);
            let there = match owner {
                Some(owner) => now == Some(owner),
                None => now.is_some(),
            };
            let allowed = match now {
                Some(Owner::Client(address)) => self.access.allows(*address, *device),
                _ => true,
            };
            holds(Invariant::ObituaryTold, there && allowed, || {
                format!("{pid} has read everything, but still knows {id:?}, {owner:?}, at {device}")
            })?;
        }
        // A goodbye goes only to a driver that has read something from the client.
        let left = life
            .leaving
            .keys()
            .find(|left| life.known.contains_key(left));
        holds(Invariant::ObituaryTold, left.is_none(), || {
            format!("{pid} has read everything, but not the goodbye of {left:?}")
        })
    }
}

/// A frame without clients: from another device, or from the mediator itself.
fn from_device(life: &mut Life, header: &Header<'_>, message: &[u8]) -> Check {
    let Some(device) = header.device().filter(|device| *device != Device::MEDIATOR) else {
        return Ok(());
    };
    let kind = messages::envelope(message).and_then(|said| said.kind());
    if kind == Some(MsgType::DriverDied) {
        return Ok(());
    }
    let copy = (life.copies.iter()).position(|copy| (copy.0, &copy.1[..]) == (device, message));
    let Some(copy) = copy else {
        let what = format!(
            "{} reads a reply that {device} did not send to it",
            life.pid
        );
        return Err(broken(Invariant::RepliesReachTheNamed, what));
    };
    life.copies.remove(copy);
    Ok(())
}
