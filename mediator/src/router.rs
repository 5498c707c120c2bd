//! Who gets what: the routing table. PURE.
//!
//! [`Router::datagram`] and [`Router::driver_frame`] are called for every
//! frame. They rewrite headers and put frames into the queue of a driver or
//! into the [`Outbox`]; messages pass untouched and unread. What is addressed
//! to the mediator itself is handed back as [`ForMediator`].
//!
//! | from   | header                  | to                                             |
//! |--------|-------------------------|------------------------------------------------|
//! | client | a device                | its driver, `clientIDs` = the sender           |
//! | client | no device, or type 0    | the mediator                                   |
//! | driver | `clientIDs`             | each of them, in order, from the driver's device |
//! | driver | a device, no clients    | that device's driver, `clientIDs` = the sender |
//! | driver | neither, or type 0, or its own device | the mediator                     |
//!
//! Clients and drivers share one number space. A driver has an id while its
//! process runs; the next process gets a new one.

mod clients;
mod outbox;
mod tap;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::time::Instant;

use amber_proto::frame::Frame;
use amber_proto::limits::{MAX_PART, OLD_CLIENT_DATAGRAM};
use amber_proto::{ClientId, Device, DeviceType, DriverMsg, Header, HeaderBytes, MsgType};
use prost::Message;
use tracing::warn;

pub use self::clients::{Client, Clients, Silence, Unreachable};
pub use self::outbox::{ClientAddress, Outbox, Written};
pub use self::tap::{Copied, Direction, Tap};
use crate::counters::{Count, Counters, Drop};
use crate::queue::{Bounds, Lane, Queue};

/// What the mediator answers to a driver waits like the answers of others, and
/// gives way like them: a driver may ask without end and never read. No client
/// has this id.
const ANSWERS: Lane = Lane::Client(ClientId(0));

/// A configured driver, whether it runs or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DriverKey(pub u32);

/// What a driver has done, for `amber status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames for its stdin.
    pub frames_in: u64,
    /// Bytes for its stdin.
    pub bytes_in: u64,
    /// Frames from its stdout.
    pub frames_out: u64,
    /// Bytes from its stdout.
    pub bytes_out: u64,
    /// Frames for it that came while it did not run.
    pub dropped_down: u64,
}

/// A driver as the router sees it.
#[derive(Debug)]
pub struct Route {
    /// The devices that it serves; at least one.
    pub devices: Vec<Device>,
    /// Its id in the number space of the clients, while its process runs.
    pub id: Option<ClientId>,
    /// What waits for it.
    pub queue: Queue,
    /// What it has done.
    pub traffic: Traffic,
    /// The drivers that it has asked something.
    used: Vec<DriverKey>,
    /// It has spoken to the mediator as a client does.
    announced: bool,
    warned_of_long_messages: bool,
    over_long: u64,
    /// It stands in [`Router::dirty`].
    dirty: bool,
    /// Its frames are copied.
    tapped: bool,
}

/// A message for the mediator itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForMediator<'a> {
    /// Who sent it.
    pub from: Sender,
    /// Which of its own devices a driver speaks of; `None` for all of them, or
    /// when it is not a driver that speaks of itself.
    pub about: Option<Device>,
    /// An encoded `DriverMsg`, if all is well.
    pub message: &'a [u8],
}

/// Who speaks to the mediator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A client, known or not.
    Client(ClientAddress),
    /// A driver about itself: PONG, DRIVER_DIED, the health of its devices.
    Driver(DriverKey),
    /// A driver that uses the mediator as a device.
    DriverAsClient(DriverKey),
}

/// See the [module](self).
#[derive(Debug)]
pub struct Router {
    /// Who the clients are.
    pub clients: Clients,
    /// What was counted.
    pub counters: Counters,
    /// Copies for those who look on.
    pub tap: Tap,
    routes: HashMap<DriverKey, Route>,
    devices: HashMap<Device, DriverKey>,
    running: HashMap<ClientId, DriverKey>,
    /// Drivers that have got something since [`Router::poll_dirty`].
    dirty: Vec<DriverKey>,
    next_id: i32,
    bounds: Bounds,
}

impl Router {
    /// A router that knows nobody yet.
    pub fn new(clients: NonZeroUsize, bounds: Bounds) -> Self {
        Self {
            clients: Clients::new(clients),
            counters: Counters::default(),
            tap: Tap::default(),
            routes: HashMap::new(),
            devices: HashMap::new(),
            running: HashMap::new(),
            dirty: Vec::new(),
            next_id: 1,
            bounds,
        }
    }

    /// A driver is configured. The devices must not be served by another.
    pub fn add_driver(&mut self, key: DriverKey, devices: Vec<Device>) {
        for device in &devices {
            self.devices.insert(*device, key);
        }
        let queue = Queue::new(self.bounds);
        self.routes.insert(
            key,
            Route {
                devices,
                id: None,
                queue,
                traffic: Traffic::default(),
                used: Vec::new(),
                announced: false,
                warned_of_long_messages: false,
                over_long: 0,
                dirty: false,
                tapped: false,
            },
        );
    }

    /// The devices of a driver are no longer its own, though it may still run.
    pub fn release_devices(&mut self, key: DriverKey) {
        self.devices.retain(|_, driver| *driver != key);
    }

    /// A driver is no longer configured; it has been taken down before.
    pub fn remove_driver(&mut self, key: DriverKey) {
        self.release_devices(key);
        self.routes.remove(&key);
    }

    /// The process of a driver runs.
    pub fn driver_up(&mut self, key: DriverKey) {
        let id = self.free_id();
        if let Some(route) = self.routes.get_mut(&key) {
            route.id = Some(id);
            self.running.insert(id, key);
        }
    }

    /// The process of a driver has ended, or is about to be ended. Every
    /// announced client that has used it is told, and so is every driver that
    /// it has used.
    pub fn driver_down(&mut self, key: DriverKey, out: &mut Outbox) {
        let Some(route) = self.routes.get_mut(&key) else {
            return;
        };
        let Some(id) = route.id.take() else { return };
        let lost = route.queue.clear();
        self.counters.drop_many(Drop::DriverGone, lost);
        route.announced = false;
        let (used, devices) = (std::mem::take(&mut route.used), route.devices.clone());
        self.running.remove(&id);
        self.client_died(id, &used);
        self.announce_death(key, &devices, out);
    }

    /// A driver says of itself that it cannot be used any more. Its clients
    /// are told as if it had died.
    pub fn driver_says_dead(&mut self, key: DriverKey, out: &mut Outbox) {
        if let Some(route) = self.routes.get(&key) {
            let devices = route.devices.clone();
            self.announce_death(key, &devices, out);
        }
    }

    /// A client has left, or is lost, or makes room: every driver that it used
    /// is told, and it is forgotten.
    pub fn client_gone(&mut self, id: ClientId) -> Option<Client> {
        let client = self.clients.remove(id)?;
        self.counters.count(Count::ClientsGone);
        self.client_died(id, &client.used);
        Some(client)
    }

    /// A datagram has come.
    pub fn datagram<'a>(
        &mut self,
        now: Instant,
        from: ClientAddress,
        bytes: &'a [u8],
        out: &mut Outbox,
    ) -> Option<ForMediator<'a>> {
        self.counters.count(Count::Datagrams);
        if from.address.port() == 0 {
            self.counters.drop(Drop::DatagramSource);
            return None;
        }
        let frame = match Frame::from_datagram(bytes) {
            Ok(frame) => frame,
            Err(error) => {
                self.counters.drop(error.into());
                return None;
            }
        };
        let Ok(header) = Header::parse(frame.header) else {
            self.counters.drop(Drop::DatagramHeader);
            return None;
        };
        let Some(device) = other_device(&header) else {
            return Some(ForMediator {
                from: Sender::Client(from),
                about: None,
                message: frame.message,
            });
        };
        if frame.message.len() > MAX_PART {
            self.counters.drop(Drop::DatagramTooLong);
            let dropped = self.counters.dropped(Drop::DatagramTooLong);
            if dropped.is_power_of_two() {
                let (client, bytes) = (from.address, frame.message.len());
                warn!(%client, %device, bytes, dropped, "message over 32767 bytes dropped");
            }
            return None;
        }
        let Some(driver) = self.devices.get(&device).copied() else {
            self.refuse(now, from, device, frame.message, out);
            return None;
        };
        let id = match self.clients.heard(now, &from) {
            Some((id, client)) => {
                client.received += 1;
                client.uses(driver);
                id
            }
            None => {
                let id = self.new_client(now, from);
                if let Some(client) = self.clients.client_mut(id) {
                    client.received += 1;
                    client.uses(driver);
                }
                id
            }
        };
        if !self.request(driver, device, id, frame.message) {
            // The driver has not seen it: there is nothing to tell it later.
            if let Some(client) = self.clients.client_mut(id) {
                client.used.retain(|used| *used != driver);
            }
            self.refuse(now, from, device, frame.message, out);
        }
        None
    }

    /// A driver has written a frame. The header is parsed already, because
    /// bytes that are no header are the end of that driver.
    pub fn driver_frame<'a>(
        &mut self,
        key: DriverKey,
        header: &Header<'_>,
        frame: Frame<'a>,
        out: &mut Outbox,
    ) -> Option<ForMediator<'a>> {
        self.counters.count(Count::DriverFrames);
        let route = self.routes.get_mut(&key)?;
        route.traffic.frames_out += 1;
        route.traffic.bytes_out += frame.wire_len() as u64;
        if route.tapped {
            self.tap.copy(key, Direction::FromDriver, frame);
        }
        let Some(id) = route.id else {
            self.counters.drop(Drop::DriverStopping);
            return None;
        };
        if frame.message.len() > MAX_PART {
            route.over_long += 1;
            if route.over_long.is_power_of_two() {
                let (bytes, dropped) = (frame.message.len(), route.over_long);
                warn!(driver = %route.devices[0], bytes, dropped,
                    "message over 32767 bytes dropped");
            }
            self.counters.drop(Drop::DriverTooLong);
            return None;
        }
        if header.has_clients() {
            self.deliver(key, header, frame.message, out);
            return None;
        }
        match (header.device_type, header.device()) {
            (None, _) => Some(ForMediator {
                from: Sender::Driver(key),
                about: None,
                message: frame.message,
            }),
            // About itself; nobody asks himself.
            (_, Some(device)) if route.devices.contains(&device) => Some(ForMediator {
                from: Sender::Driver(key),
                about: Some(device),
                message: frame.message,
            }),
            (Some(_), Some(device)) if device.device_type != DeviceType::MEDIATOR => {
                self.ask_other(key, id, device, frame.message);
                None
            }
            _ => Some(ForMediator {
                from: Sender::DriverAsClient(key),
                about: None,
                message: frame.message,
            }),
        }
    }

    /// Sends a message of the mediator itself to somebody who has spoken to it.
    pub fn reply(&mut self, to: Sender, message: &[u8], out: &mut Outbox) {
        match to {
            Sender::Client(address) => self.send(address, Device::MEDIATOR, message, out),
            Sender::DriverAsClient(key) => {
                let header = HeaderBytes::new(Some(Device::MEDIATOR), None);
                self.tell_driver(key, ANSWERS, header, message);
            }
            Sender::Driver(key) => {
                self.tell_driver(key, ANSWERS, HeaderBytes::new(None, None), message);
            }
        }
    }

    /// Asks a driver whether it is there.
    pub fn ping_driver(&mut self, key: DriverKey, ping: &[u8]) {
        self.tell_driver(key, Lane::LifeCycle, HeaderBytes::new(None, None), ping);
    }

    /// Sends a message of the mediator itself to a client, or a driver that is
    /// one; false when there is no such client any more.
    pub fn tell_client(&mut self, id: ClientId, message: &[u8], out: &mut Outbox) -> bool {
        if let Some(driver) = self.running.get(&id).copied() {
            self.reply(Sender::DriverAsClient(driver), message, out);
            return true;
        }
        let Some(client) = self.clients.client_mut(id) else {
            return false;
        };
        client.sent += 1;
        let address = client.address;
        self.send(address, Device::MEDIATOR, message, out);
        true
    }

    /// Somebody has said something valid to the mediator itself, and is known
    /// and announced from now on. Returns its id.
    pub fn announce(&mut self, now: Instant, from: Sender) -> Option<ClientId> {
        match from {
            Sender::Client(address) => {
                let id = match self.clients.heard(now, &address) {
                    Some((id, _)) => id,
                    None => self.new_client(now, address),
                };
                if let Some(client) = self.clients.client_mut(id) {
                    client.received += 1;
                }
                self.clients.announce(id);
                Some(id)
            }
            Sender::Driver(key) => self.routes.get(&key)?.id,
            Sender::DriverAsClient(key) => {
                let route = self.routes.get_mut(&key)?;
                route.announced = true;
                route.id
            }
        }
    }

    /// The id of somebody who is known already.
    pub fn id_of(&mut self, now: Instant, from: Sender) -> Option<ClientId> {
        match from {
            Sender::Client(address) => self.clients.heard(now, &address).map(|(id, _)| id),
            Sender::Driver(key) | Sender::DriverAsClient(key) => self.routes.get(&key)?.id,
        }
    }

    /// Whether somebody has this id.
    pub fn knows(&self, id: ClientId) -> bool {
        self.running.contains_key(&id) || self.clients.client(id).is_some()
    }

    /// Whether the frames of a driver are copied from now on.
    pub fn set_tapped(&mut self, key: DriverKey, tapped: bool) {
        if let Some(route) = self.routes.get_mut(&key) {
            route.tapped = tapped;
        }
    }

    /// One driver.
    pub fn route(&self, key: DriverKey) -> Option<&Route> {
        self.routes.get(&key)
    }

    /// What waits for one driver, for the shell to write.
    pub fn queue_mut(&mut self, key: DriverKey) -> Option<&mut Queue> {
        self.routes.get_mut(&key).map(|route| &mut route.queue)
    }

    /// The driver that serves a device.
    pub fn driver_of(&self, device: Device) -> Option<DriverKey> {
        self.devices.get(&device).copied()
    }

    /// A driver whose queue has something new; each is named once.
    pub fn poll_dirty(&mut self) -> Option<DriverKey> {
        let key = self.dirty.pop()?;
        if let Some(route) = self.routes.get_mut(&key) {
            route.dirty = false;
        }
        Some(key)
    }

    /// A reply or publication: one copy to each client that the header names.
    fn deliver(&mut self, key: DriverKey, header: &Header<'_>, message: &[u8], out: &mut Outbox) {
        let Some(route) = self.routes.get_mut(&key) else {
            return;
        };
        let device = match (route.devices.as_slice(), header.device()) {
            ([only], _) => *only,
            (several, Some(device)) if several.contains(&device) => device,
            (several, named) => {
                self.counters.drop(Drop::WrongDevice);
                let dropped = self.counters.dropped(Drop::WrongDevice);
                if dropped.is_power_of_two() {
                    let named = named.map_or("none".into(), |device| device.to_string());
                    warn!(driver = %several[0], named, dropped,
                        "a driver of several devices must name one of them in its answers");
                }
                return;
            }
        };
        if message.len() + 2 * 11 > OLD_CLIENT_DATAGRAM && !route.warned_of_long_messages {
            route.warned_of_long_messages = true;
            let bytes = message.len();
            warn!(driver = %device, bytes, "old Java and Python clients cannot receive this");
        }
        let header_out = HeaderBytes::new(Some(device), None);
        let Ok(frame) = out.write(header_out.as_slice(), message) else {
            return self.counters.drop(Drop::DriverTooLong);
        };
        let Some(own_id) = route.id else { return };
        for id in header.client_ids() {
            if let Some(client) = self.clients.client_mut(id) {
                client.sent += 1;
                out.send(client.address, &frame);
            } else if let Some(asker) = self.running.get(&id).copied() {
                let frame = Frame {
                    header: header_out.as_slice(),
                    message,
                };
                self.push(asker, Lane::Client(own_id), frame);
            } else {
                self.counters.drop(Drop::UnknownClient);
            }
        }
    }

    /// A driver asks the driver of another device.
    fn ask_other(&mut self, key: DriverKey, id: ClientId, device: Device, message: &[u8]) {
        let other = self.devices.get(&device).copied();
        let asked = other.filter(|other| self.request(*other, device, id, message));
        if other.is_none() {
            self.counters.drop(Drop::UnknownDevice);
        }
        let Some(route) = self.routes.get_mut(&key) else {
            return;
        };
        match asked {
            Some(other) if route.used.contains(&other) => {}
            Some(other) => route.used.push(other),
            None if route.announced => {
                let answer = driver_died(syn_num(message));
                self.tell_driver(key, ANSWERS, HeaderBytes::new(Some(device), None), &answer);
            }
            None => {}
        }
    }

    /// Queues a request for a driver; false when its process does not run.
    fn request(&mut self, key: DriverKey, device: Device, from: ClientId, message: &[u8]) -> bool {
        let Some(route) = self.routes.get_mut(&key) else {
            return false;
        };
        if route.id.is_none() {
            route.traffic.dropped_down += 1;
            self.counters.drop(Drop::DriverDown);
            return false;
        }
        // A driver of one device sees exactly the header of the original.
        let device = (route.devices.len() > 1).then_some(device);
        let header = HeaderBytes::new(device, Some(from));
        self.push(
            key,
            Lane::Client(from),
            Frame {
                header: header.as_slice(),
                message,
            },
        );
        true
    }

    /// Sends a driver something on the mediator's own account.
    fn tell_driver(&mut self, key: DriverKey, lane: Lane, header: HeaderBytes, message: &[u8]) {
        if self
            .routes
            .get(&key)
            .is_some_and(|route| route.id.is_some())
        {
            let frame = Frame {
                header: header.as_slice(),
                message,
            };
            self.push(key, lane, frame);
        }
    }

    fn push(&mut self, key: DriverKey, lane: Lane, frame: Frame<'_>) {
        let Some(route) = self.routes.get_mut(&key) else {
            return;
        };
        match route.queue.push(lane, frame) {
            Ok(dropped) => {
                self.counters.count(Count::DriverFramesQueued);
                self.counters.drop_many(Drop::QueueFull, dropped);
                route.traffic.frames_in += 1;
                route.traffic.bytes_in += frame.wire_len() as u64;
                if route.tapped {
                    self.tap.copy(key, Direction::ToDriver, frame);
                }
            }
            // Messages were measured when they came in; headers of ours are short.
            Err(_) => self.counters.drop(Drop::DatagramTooLong),
        }
        if !route.dirty {
            route.dirty = true;
            self.dirty.push(key);
        }
    }

    fn send(&mut self, to: ClientAddress, device: Device, message: &[u8], out: &mut Outbox) {
        match out.write(HeaderBytes::new(Some(device), None).as_slice(), message) {
            Ok(frame) => out.send(to, &frame),
            Err(_) => self.counters.drop(Drop::SendFailed),
        }
    }

    /// Nobody serves that device. An announced client is told, so that its
    /// caller fails at once; others see nothing, as from the original.
    fn refuse(
        &mut self,
        now: Instant,
        from: ClientAddress,
        device: Device,
        message: &[u8],
        out: &mut Outbox,
    ) {
        if self.driver_of(device).is_none() {
            self.counters.drop(Drop::UnknownDevice);
        }
        let Some((_, client)) = self.clients.heard(now, &from) else {
            return;
        };
        if !client.announced {
            return;
        }
        if !client.may_be_refused(now) {
            return self.counters.drop(Drop::AnswerRateLimited);
        }
        client.sent += 1;
        self.send(from, device, &driver_died(syn_num(message)), out);
    }

    /// Tells everybody who has used a driver, and may be told.
    fn announce_death(&mut self, key: DriverKey, devices: &[Device], out: &mut Outbox) {
        let message = driver_died(None);
        for (id, address) in self.clients.driver_down(key) {
            for device in devices {
                self.send(address, *device, &message, out);
                if let Some(client) = self.clients.client_mut(id) {
                    client.sent += 1;
                }
            }
        }
        let mut askers = Vec::new();
        for (asker, route) in &mut self.routes {
            let before = route.used.len();
            route.used.retain(|used| *used != key);
            if route.used.len() < before && route.announced {
                askers.push(*asker);
            }
        }
        for asker in askers {
            for device in devices {
                let header = HeaderBytes::new(Some(*device), None);
                self.tell_driver(asker, Lane::LifeCycle, header, &message);
            }
        }
    }

    /// Tells the drivers that somebody has used that it is gone: exactly one
    /// id, because that is what old drivers can read.
    fn client_died(&mut self, id: ClientId, used: &[DriverKey]) {
        let message = DriverMsg {
            r#type: MsgType::ClientDied.into(),
            ..DriverMsg::default()
        };
        let message = message.encode_to_vec();
        for key in used {
            let Some(route) = self.routes.get(key) else {
                continue;
            };
            let headers: Vec<_> = match route.devices.as_slice() {
                [_] => vec![HeaderBytes::new(None, Some(id))],
                // A process that serves several devices is told once for each.
                several => several
                    .iter()
                    .map(|device| HeaderBytes::new(Some(*device), Some(id)))
                    .collect(),
            };
            for header in headers {
                self.tell_driver(*key, Lane::ClientDied(id), header, &message);
            }
        }
    }

    fn new_client(&mut self, now: Instant, address: ClientAddress) -> ClientId {
        if let Some(oldest) = self.clients.to_evict() {
            self.counters.count(Count::ClientsEvicted);
            self.client_gone(oldest);
        }
        self.counters.count(Count::ClientsSeen);
        let id = self.free_id();
        self.clients.add(now, id, address);
        id
    }

    /// The next id that nobody has: upwards from 1, and around.
    fn free_id(&mut self) -> ClientId {
        loop {
            let id = ClientId(self.next_id);
            self.next_id = self.next_id.checked_add(1).unwrap_or(1);
            if !self.knows(id) {
                return id;
            }
        }
    }
}

/// The device of a header, unless that is the mediator itself.
fn other_device(header: &Header<'_>) -> Option<Device> {
    header
        .device()
        .filter(|device| device.device_type != DeviceType::MEDIATOR)
}

/// Best effort: the one look into a message that is not for the mediator, so
/// that an answer on the driver's behalf finds its request.
fn syn_num(message: &[u8]) -> Option<u32> {
    DriverMsg::decode(message).ok()?.syn_num
}

fn driver_died(ack_num: Option<u32>) -> Vec<u8> {
    let r#type = MsgType::DriverDied.into();
    DriverMsg {
        r#type,
        ack_num,
        ..DriverMsg::default()
    }
    .encode_to_vec()
}
