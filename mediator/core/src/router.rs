//! The routing table: selects the destination of each frame. PURE.
//!
//! [`Router::datagram`] and [`Router::driver_frame`] are called for every frame. They rewrite
//! headers and put frames into the queue of a driver or into the [`Outbox`]; messages are not
//! changed. A message for the mediator itself is returned as [`ForMediator`].
//!
//! | from   | header                  | to                                             |
//! |--------|-------------------------|------------------------------------------------|
//! | client | a device                | its driver, `clientIDs` = the sender           |
//! | client | no device, or type 0    | the mediator                                   |
//! | driver | `clientIDs`             | each of them, in order, from the driver's device |
//! | driver | a device, no clients    | that device's driver, `clientIDs` = the sender |
//! | driver | neither, or type 0, or its own device | the mediator                     |
//!
//! Clients and drivers share one number space. A driver has an id while its process runs; the
//! next process gets a new id.
//!
//! The router looks into four kinds of messages for others. It notes by the first two bytes
//! whether a request is SUBSCRIBE or UNSUBSCRIBE. It decodes a short message that
//! begins like CLIENT_DIED, so that a driver is told only once that a client leaves it. It
//! reads the number of a request that cannot be forwarded, so that the answer reaches the
//! caller. And it looks whether a message that is too long for old clients is a piece, which they
//! never get, until it has warned about the driver.

mod admission;
mod client;
mod clients;
mod deaths;
mod delivery;
mod eviction_order;
mod hosts;
mod outbox;
mod recording;
mod requests;
mod route;
mod routes;
mod streams;
mod tap;
#[cfg(test)]
mod tests;
mod uses;
mod voice;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::time::Instant;

use amber_proto::frame::Frame;
use amber_proto::limits::MAX_PART;
use amber_proto::{ClientId, Device, DeviceType, Header, HeaderBytes};
use tracing::warn;

use self::admission::Admission;
pub use self::client::{Client, Silence, Unreachable};
pub use self::clients::{Clients, Evicted, Fullness, RoomFor};
pub use self::delivery::Portion;
pub use self::outbox::{Message, Outbox, Run, Written};
pub use self::route::{Route, Traffic};
use self::routes::Routes;
pub use self::streams::StreamRates;
use self::streams::Streams;
pub use self::tap::{Copied, Direction, Tap};
pub use self::uses::{Use, Uses};
use self::voice::is_client_died;
use crate::address::{ClientAddress, DriverKey, Host, PackedAddress};
use crate::counters::{Count, Counters, DropReason};
use crate::feeds::Feeds;
use crate::links::Interface;
use crate::queue::{Bounds, Lane, Queue, Tally};
use crate::rate::Digest;

/// The queue treats answers of the mediator to a driver like those of other devices, and may
/// drop them: a driver may send requests endlessly and never read. No client has this id.
const ANSWERS: Lane = Lane::Client(ClientId(0));

/// A message for the mediator itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForMediator<'a> {
    pub from: Sender,
    /// The device that a driver reports about; `None` for all its devices, or if the sender is
    /// not a driver that reports about itself.
    pub about: Option<Device>,
    /// An encoded `DriverMsg`, if it is valid.
    pub message: &'a [u8],
    /// The length of the whole datagram.
    pub bytes: usize,
}

/// The sender of a message to the mediator.
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
    /// The client table.
    pub clients: Clients,
    /// The counters, except those of the queues: see [`Router::totals`].
    pub counters: Counters,
    /// Copies of frames for `amber trace`.
    pub tap: Tap,
    /// Copies of frames for recorders.
    pub feeds: Feeds,
    routes: Routes,
    /// Drivers with new frames since [`Router::poll_dirty`].
    dirty: Vec<DriverKey>,
    /// Drivers that leave too many frames unread.
    deaf: Vec<DriverKey>,
    /// Evicted clients.
    evicted: Vec<Evicted>,
    next_id: i32,
    bounds: Bounds,
    admission: Admission,
    streams: Streams,
    duplicates: Digest,
    /// The counters of queues of drivers that are no longer configured.
    past: Tally,
    /// The key for the numbers that prove client addresses.
    secret: u64,
}

impl Router {
    /// A router without clients and drivers. Clients must not be able to guess `secret`.
    pub fn new(now: Instant, clients: NonZeroUsize, bounds: Bounds, secret: u64) -> Self {
        let life_cycle = bounds.life_cycle.max(clients.get().saturating_mul(2));
        Self {
            clients: Clients::new(now, clients),
            counters: Counters::default(),
            tap: Tap::default(),
            feeds: Feeds::default(),
            routes: Routes::default(),
            dirty: Vec::new(),
            deaf: Vec::new(),
            evicted: Vec::new(),
            next_id: 1,
            bounds: Bounds {
                life_cycle,
                ..bounds
            },
            admission: Admission::default(),
            streams: Streams::default(),
            duplicates: Digest::default(),
            past: Tally::default(),
            secret,
        }
    }

    /// Sets the addresses that this mediator listens on. A datagram from such a port on another
    /// machine may come from a mediator, and two mediators could answer each other endlessly.
    /// But the original C# client also sends from that port. So its requests are forwarded at a
    /// limited rate, and the mediator sends none of its own messages there.
    pub fn set_listening(&mut self, addresses: &[SocketAddr]) {
        self.admission.set_listening(addresses);
    }

    /// Sets the next id to assign, if it is free. For tests only, to make ids wrap around.
    #[doc(hidden)]
    pub fn set_next_id(&mut self, id: ClientId) {
        self.next_id = id.0.max(1);
    }

    /// Sets how many datagrams a client may send per second.
    pub fn set_datagram_rate(&mut self, per_second: u32) {
        self.admission.set_rate(per_second);
    }

    /// Sets the addresses and networks of this machine.
    pub fn set_interfaces(&mut self, interfaces: &[Interface]) {
        self.streams.set_interfaces(interfaces);
    }

    /// Sets how much drivers may send to clients that have not proved their address.
    pub fn set_stream_rates(&mut self, rates: StreamRates) {
        self.streams.rates = rates;
    }

    /// Sets how many clients one host may have.
    pub fn set_clients_per_host(&mut self, limit: NonZeroUsize) {
        self.clients.set_per_host(limit);
    }

    /// Adds a driver. No other driver may serve its devices.
    pub fn add_driver(&mut self, key: DriverKey, devices: Vec<Device>) {
        let route = Route::new(devices, Queue::new(self.bounds));
        self.routes.add(key, route);
    }

    /// Makes the devices of a driver available to others, although it may still run.
    pub fn release_devices(&mut self, key: DriverKey) {
        self.routes.release_devices(key);
    }

    /// Removes a driver that is no longer configured and has been taken down.
    pub fn remove_driver(&mut self, key: DriverKey) {
        if let Some(mut route) = self.routes.remove(key) {
            route.queue.clear();
            self.past += route.queue.tally();
        }
    }

    /// Counts a datagram with a source that is not genuine: see
    /// [`OwnAddresses`](crate::origin::OwnAddresses).
    pub fn refuse_datagram(&mut self, why: DropReason) {
        self.counters.count(Count::Datagrams);
        self.counters.drop(why);
    }

    /// Handles a datagram.
    pub fn datagram<'a>(
        &mut self,
        now: Instant,
        from: ClientAddress,
        bytes: &'a [u8],
        out: &mut Outbox,
    ) -> Option<ForMediator<'a>> {
        self.counters.count(Count::Datagrams);
        if let Err(why) = self.can_be_answered(from.address) {
            self.counters.drop(why);
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
            self.counters.drop(DropReason::DatagramHeader);
            return None;
        };
        let (moment, address) = (self.clients.moment(now), PackedAddress::from(from));
        let may_be_mediator = self.admission.may_be_mediator(from.address);
        let known = match self.clients.heard(moment, &address, bytes.len()) {
            Some(client) => {
                let rate = self.admission.rate_for(from.address, may_be_mediator);
                let id = client.id;
                if !client.is_proved() {
                    self.streams.heard(address.host());
                }
                if rate.is_some_and(|rate| !client.datagrams.pass(moment, rate)) {
                    let why = DropReason::RateLimited;
                    self.counters.drop(why);
                    if let Some(device) = other_device(&header) {
                        self.record_dropped_request(device, why, Some(id), frame.message);
                    }
                    return None;
                }
                Some(id)
            }
            None => None,
        };
        let device = other_device(&header);
        if may_be_mediator && device.is_none() && !is_client_died(frame.message) {
            // It may be an answer of another mediator to one of our messages.
            self.counters.drop(DropReason::DatagramFromMediator);
            return None;
        }
        let Some(device) = device else {
            if !self.admission.allows(from.address, Device::MEDIATOR) {
                self.deny(now, from, known, Device::MEDIATOR, frame.message, out);
                return None;
            }
            self.counters.count(Count::ForMediator);
            return Some(ForMediator {
                from: Sender::Client(from),
                about: None,
                message: frame.message,
                bytes: bytes.len(),
            });
        };
        if frame.message.len() > MAX_PART {
            self.counters.drop(DropReason::DatagramTooLong);
            let dropped = self.counters.dropped(DropReason::DatagramTooLong);
            if dropped.is_power_of_two() {
                let (client, bytes) = (from.address, frame.message.len());
                warn!(%client, %device, bytes, dropped, "message over 32767 bytes dropped");
            }
            let why = DropReason::DatagramTooLong;
            self.record_dropped_request(device, why, known, frame.message);
            return None;
        }
        self.client_asks(now, from, known, device, frame.message, bytes.len(), out);
        None
    }

    /// Handles a frame from a driver. The caller has parsed the header, because an invalid
    /// header ends the driver. `at` is the offset of the frame in a buffer that the caller will
    /// [lend](Outbox::lend) to the outbox, if any. While `portion` is unfinished afterwards, the
    /// caller calls again with the same frame and portion, and new limits.
    #[allow(clippy::too_many_arguments)]
    pub fn driver_frame<'a>(
        &mut self,
        now: Instant,
        key: DriverKey,
        header: &Header<'_>,
        frame: Frame<'a>,
        at: Option<usize>,
        portion: &mut Portion,
        out: &mut Outbox,
    ) -> Option<ForMediator<'a>> {
        if portion.done > 0 {
            // It was counted with its first portion. If the driver has ended, the rest is gone.
            if let Some(id) = self.routes.get(key).and_then(|route| route.id) {
                let message = message_of(frame, at);
                self.deliver(now, key, id, header, message, portion, out);
            }
            return None;
        }
        self.counters.count(Count::DriverFrames);
        let Some(route) = self.routes.get_mut(key) else {
            self.counters.drop(DropReason::DriverStopping);
            return None;
        };
        route.traffic.frames_out += 1;
        route.traffic.bytes_out += frame.wire_len() as u64;
        if route.tapped {
            self.tap.copy(key, Direction::FromDriver, frame);
        }
        let Some(id) = route.id else {
            route.traffic.dropped_stopping += 1;
            let (device, why) = (route.devices[0], DropReason::DriverStopping);
            self.counters.drop(why);
            self.record_dropped_answer(device, why, header, frame.message);
            return None;
        };
        if frame.message.len() > MAX_PART {
            route.over_long += 1;
            if route.over_long.is_power_of_two() {
                let (bytes, dropped) = (frame.message.len(), route.over_long);
                warn!(driver = %route.devices[0], bytes, dropped,
                    "message over 32767 bytes dropped");
            }
            let (device, why) = (route.devices[0], DropReason::DriverTooLong);
            self.counters.drop(why);
            self.record_dropped_answer(device, why, header, frame.message);
            return None;
        }
        if header.has_clients() {
            let message = message_of(frame, at);
            self.deliver(now, key, id, header, message, portion, out);
            return None;
        }
        let (from, about) = match (header.device_type, header.device()) {
            (None, _) => (Sender::Driver(key), None),
            // About itself: a driver does not send requests to itself.
            (_, Some(device)) if route.devices.contains(&device) => {
                (Sender::Driver(key), Some(device))
            }
            (Some(_), Some(device)) if device.device_type != DeviceType::MEDIATOR => {
                self.driver_asks(now, key, id, device, frame.message);
                return None;
            }
            _ => (Sender::DriverAsClient(key), None),
        };
        self.counters.count(Count::ForMediator);
        Some(ForMediator {
            from,
            about,
            message: frame.message,
            bytes: frame.wire_len(),
        })
    }

    /// Whether a client or driver has this id.
    pub fn knows(&self, id: ClientId) -> bool {
        self.routes.of_id(id).is_some() || self.clients.client(id).is_some()
    }

    /// Sets whether the frames of a driver are copied.
    pub fn set_tapped(&mut self, key: DriverKey, tapped: bool) {
        if let Some(route) = self.routes.get_mut(key) {
            route.tapped = tapped;
        }
    }

    /// One driver.
    pub fn route(&self, key: DriverKey) -> Option<&Route> {
        self.routes.get(key)
    }

    /// The queue of a driver, for the shell to write.
    pub fn queue_mut(&mut self, key: DriverKey) -> Option<&mut Queue> {
        self.routes.get_mut(key).map(|route| &mut route.queue)
    }

    /// The driver that serves a device.
    pub fn driver_of(&self, device: Device) -> Option<DriverKey> {
        self.routes.of_device(device)
    }

    /// The next driver with new frames; each driver is returned once.
    pub fn poll_dirty(&mut self) -> Option<DriverKey> {
        let key = self.dirty.pop()?;
        if let Some(route) = self.routes.get_mut(key) {
            route.dirty = false;
        }
        Some(key)
    }

    /// The next driver that leaves too many life-cycle frames unread.
    pub fn poll_deaf(&mut self) -> Option<DriverKey> {
        self.deaf.pop()
    }

    /// The next evicted client. Its drivers were already told.
    pub fn poll_evicted(&mut self) -> Option<Evicted> {
        self.evicted.pop()
    }

    /// All counters, including those of the queues.
    pub fn totals(&self) -> Counters {
        let mut tally = self.past;
        for route in self.routes.all() {
            tally += route.queue.tally();
        }
        let mut totals = self.counters.clone();
        totals.count_many(Count::DriverFramesQueued, tally.queued);
        totals.count_many(Count::DriverFramesWritten, tally.written);
        totals.drop_many(DropReason::QueueFull, tally.dropped_full);
        totals.drop_many(DropReason::ClientGone, tally.dropped_client_gone);
        totals.drop_many(DropReason::DriverGone, tally.dropped_driver_gone);
        totals
    }

    /// The number of frames that wait for drivers.
    pub fn waiting(&self) -> u64 {
        let waiting = |route: &Route| route.queue.len() as u64;
        self.routes.all().map(waiting).sum()
    }

    fn can_be_answered(&self, from: SocketAddr) -> Result<(), DropReason> {
        let nowhere = match from.ip() {
            IpAddr::V4(v4) => v4.is_unspecified() || v4.is_broadcast() || v4.is_multicast(),
            // IPv4 has its own sockets, so IPv4 addresses never come this way.
            IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
                return Err(DropReason::DatagramForged);
            }
            IpAddr::V6(v6) => v6.is_unspecified() || v6.is_multicast(),
        };
        if nowhere || from.port() == 0 {
            return Err(DropReason::DatagramSource);
        }
        Ok(())
    }

    fn push(&mut self, key: DriverKey, lane: Lane, header: HeaderBytes, message: &[u8]) {
        self.push_from(key, None, lane, header, message);
    }

    /// The same, for a client of a host.
    fn push_from(
        &mut self,
        key: DriverKey,
        host: Option<Host>,
        lane: Lane,
        header: HeaderBytes,
        message: &[u8],
    ) {
        let Some(route) = self.routes.get_mut(key) else {
            return;
        };
        let frame = Frame {
            header: header.as_slice(),
            message,
        };
        // It fits: messages were measured on arrival, and our own headers are short.
        if route.queue.push_from(host, lane, frame).is_ok() {
            route.traffic.bytes_in += frame.wire_len() as u64;
            if route.tapped {
                self.tap.copy(key, Direction::ToDriver, frame);
            }
        }
        if !route.dirty {
            route.dirty = true;
            self.dirty.push(key);
        }
        if route.queue.is_deaf() && !self.deaf.contains(&key) {
            self.deaf.push(key);
        }
    }

    fn new_client(&mut self, now: Instant, address: ClientAddress, bytes: usize) -> ClientId {
        let address = PackedAddress::from(address);
        let now = self.clients.moment(now);
        while let Some((id, room)) = self.clients.to_evict(now, &address) {
            self.counters.count(Count::ClientsEvicted);
            if room == RoomFor::ItsHost {
                self.counters.count(Count::ClientsEvictedForHost);
            }
            if address.is_loopback() {
                self.counters.count(Count::ClientsEvictedForLocal);
            }
            let newcomer = address.address();
            let evicted = self.client_gone(id).map(|client| Evicted {
                client,
                room,
                newcomer,
            });
            self.evicted.extend(evicted);
        }
        self.counters.count(Count::ClientsSeen);
        let id = self.free_id();
        self.clients.add(now, id, address, bytes);
        if self.feeds.is_open() {
            let address = address.address().to_string();
            self.feeds.note(|writer| writer.peer(id, &address));
        }
        id
    }

    /// The next free id: upwards from 1, then again from the start.
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

/// The message of a frame at this offset in a buffer.
fn message_of(frame: Frame<'_>, at: Option<usize>) -> Message<'_> {
    Message {
        bytes: frame.message,
        at: at.map(|at| at + frame.wire_len() - frame.message.len()),
    }
}

/// The device in a header, unless it is the mediator itself.
fn other_device(header: &Header<'_>) -> Option<Device> {
    header
        .device()
        .filter(|device| device.device_type != DeviceType::MEDIATOR)
}
