//! An independent model of the expected behaviour. PURE.
//!
//! It sees the traffic: each datagram and frame that enters the core, each that leaves it, and each
//! that a process has read. From these it derives which client used which device and which
//! notifications were sent, and thus what must follow. From the core it takes only the known
//! clients, and the counters, which it compares with its own.

mod accounts;
mod census;
mod copies;
mod hosts;
mod lives;
mod voice;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Instant;

use amber_core::Core;
use amber_core::access::Access;
use amber_core::address::DriverKey;
use amber_core::config::Config;
use amber_core::counters::{Count, Counters, DropReason, Stage};
use amber_core::queue::Bounds;
use amber_core::router::Unreachable;
use amber_proto::{ClientId, Device, DeviceMessage, DeviceType, Frame, Header, MsgType, SynNum};

use self::accounts::Seen;
use self::lives::Life;
use crate::invariant::{Check, Invariant, holds};
use crate::messages::{self, Token};

/// See the [module](self).
pub struct Model {
    /// Counts the inputs of the core.
    seq: u64,
    access: Access,
    bounds: Bounds,
    clients: usize,
    clients_per_host: usize,
    spoke: BTreeSet<SocketAddr>,
    people: BTreeMap<SocketAddr, Person>,
    owners: BTreeMap<ClientId, Owner>,
    /// When ids, or their use of a device, ended.
    ended: BTreeMap<ClientId, Vec<(u64, Option<Device>)>>,
    /// When a client last sent a request to a device.
    asked: BTreeMap<(Device, ClientId), u64>,
    arrivals: BTreeMap<Token, Vec<Arrival>>,
    lives: BTreeMap<u32, Life>,
    credit: BTreeMap<SocketAddr, Credit>,
    cookies: BTreeMap<SocketAddr, SynNum>,
    seen: Seen,
}

/// The owner of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Client(SocketAddr),
    Process(u32),
}

/// A client that the mediator knows.
#[derive(Clone, Debug)]
struct Person {
    id: ClientId,
    /// When it was last heard.
    heard: Instant,
    announced: bool,
    /// It has contacted the mediator, even if that is forbidden now.
    has_asked: bool,
    proved: bool,
    ponged: bool,
    /// Something was sent to it since its last datagram.
    sent: bool,
    used: BTreeSet<Device>,
    /// The devices whose death was reported to it since its last request.
    told: BTreeSet<Device>,
}

/// An accepted request.
#[derive(Clone, Debug)]
struct Arrival {
    seq: u64,
    id: ClientId,
    owner: Owner,
    device: Device,
    message: Vec<u8>,
}

/// The bytes received from an address, and the mediator's own bytes sent to it.
#[derive(Clone, Copy, Debug, Default)]
struct Credit {
    came: u64,
    went: u64,
}

/// An input of the core.
#[derive(Clone, Copy, Debug)]
pub enum Cause<'a> {
    Datagram(SocketAddr, &'a [u8]),
    /// A frame written by a process: header and message.
    Frame(u32, &'a [u8], &'a [u8]),
    /// An address is unreachable.
    Unreachable(SocketAddr, Unreachable),
    /// A new configuration.
    Reload(&'a Config),
    /// Any other input.
    Other,
}

/// One call of the core and its result.
pub struct Call<'a> {
    /// The virtual time.
    pub now: Instant,
    /// The input.
    pub cause: Cause<'a>,
    /// The counters before the call.
    pub before: &'a Counters,
    /// The core after the call.
    pub core: &'a Core,
    /// The datagrams to send.
    pub sent: &'a [(SocketAddr, Vec<u8>)],
}

/// A datagram that is a valid frame.
#[derive(Clone, Copy, Debug)]
struct Asked<'a> {
    from: SocketAddr,
    /// `None` for the mediator itself.
    device: Option<Device>,
    message: &'a [u8],
}

/// A call and its changes.
struct Changes<'a> {
    call: &'a Call<'a>,
    after: Counters,
    asked: Option<Asked<'a>>,
    /// Clients that are gone now.
    gone: BTreeMap<SocketAddr, Person>,
    /// Processes that have become unavailable.
    down: Vec<u32>,
    /// A process that declared itself unavailable.
    said_dead: Option<u32>,
}

impl Changes<'_> {
    fn counted(&self, what: Count) -> u64 {
        self.after.counted(what) - self.call.before.counted(what)
    }

    fn dropped(&self, why: DropReason) -> u64 {
        self.after.dropped(why) - self.call.before.dropped(why)
    }

    /// Whether the datagram was dropped before its receiver was determined.
    fn ignored(&self) -> bool {
        let heard = [
            DropReason::UnknownDevice,
            DropReason::DriverDown,
            DropReason::AccessDenied,
            DropReason::NothingToTell,
            DropReason::DatagramTooLong,
        ];
        let at_input = |why: &&DropReason| why.stage() == Stage::Input && !heard.contains(why);
        DropReason::ALL
            .iter()
            .filter(at_input)
            .any(|why| self.dropped(*why) > 0)
    }

    fn refused(&self) -> bool {
        let refusals = [
            DropReason::UnknownDevice,
            DropReason::DriverDown,
            DropReason::AccessDenied,
        ];
        refusals.iter().any(|why| self.dropped(*why) > 0)
    }
}

impl Model {
    /// Creates the model of a mediator without known clients.
    pub fn new(config: &Config) -> Self {
        Self {
            seq: 0,
            access: config.access.clone(),
            bounds: config.limits.queue,
            clients: config.limits.clients.get(),
            clients_per_host: config.limits.clients_per_host.get(),
            spoke: BTreeSet::new(),
            people: BTreeMap::new(),
            owners: BTreeMap::new(),
            ended: BTreeMap::new(),
            asked: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            lives: BTreeMap::new(),
            credit: BTreeMap::new(),
            cookies: BTreeMap::new(),
            seen: Seen::default(),
        }
    }

    /// Checks a call of the core.
    ///
    /// # Errors
    /// Its result violates an invariant.
    pub fn after(&mut self, call: &Call<'_>) -> Check {
        self.seq += 1;
        let copies = self.expected_copies(call);
        let mut changes = Changes {
            call,
            after: call.core.router().totals(),
            asked: None,
            gone: BTreeMap::new(),
            down: self.down(call.core),
            said_dead: self.said_dead(call),
        };
        if let Cause::Datagram(from, bytes) = call.cause {
            changes.asked = asked(from, bytes);
        }
        self.census(call.core, &mut changes)?;
        self.take_note(&changes)?;
        let voice = self.check_copies(&changes, &copies)?;
        self.check_voice(&changes, &voice)?;
        if let Cause::Reload(config) = call.cause {
            self.take_rules(config);
        }
        self.check_gone(&changes)?;
        if let Some(asked) = &changes.asked
            && let Some(person) = self.people.get_mut(&asked.from)
        {
            // A later network error would refer to the earlier program at this address.
            person.sent = false;
        }
        for (to, _) in call.sent {
            if let Some(person) = self.people.get_mut(to) {
                person.sent = true;
            }
        }
        self.note_said_dead(changes.said_dead);
        self.forget_down(&changes.down);
        self.check_accounts(&changes, copies.len())
    }

    fn take_rules(&mut self, config: &Config) {
        self.access = config.access.clone();
        self.clients_per_host = config.limits.clients_per_host.get();
        let mut ended = Vec::new();
        for (address, person) in &mut self.people {
            person.used.retain(|device| {
                let is_allowed = self.access.allows(*address, *device);
                if !is_allowed {
                    ended.push((person.id, *device));
                }
                is_allowed
            });
            person.announced &= self.access.allows(*address, Device::MEDIATOR);
        }
        for (id, device) in ended {
            self.ends(id, Some(device));
        }
    }

    /// Checks that clients that must be gone are gone.
    fn check_gone(&self, changes: &Changes<'_>) -> Check {
        let left = match changes.call.cause {
            Cause::Unreachable(at, Unreachable::PortClosed) => {
                self.people.get(&at).is_some_and(|person| person.sent)
            }
            Cause::Datagram(..) => changes.asked.is_some_and(|asked| {
                let said = messages::envelope(asked.message).and_then(|said| said.kind());
                asked.device.is_none()
                    && said == Some(MsgType::ClientDied)
                    && !changes.ignored()
                    && changes.dropped(DropReason::AccessDenied) == 0
                    && self.people.contains_key(&asked.from)
            }),
            _ => false,
        };
        holds(Invariant::GoodbyeForgets, !left, || {
            format!("it is still known after {:?}", changes.call.cause)
        })
    }

    /// The known addresses that have answered a PING.
    pub fn who_answered(&self) -> impl Iterator<Item = SocketAddr> {
        let answered = self
            .people
            .iter()
            .filter(|(_, person)| person.ponged && person.announced);
        answered.map(|(address, _)| *address)
    }

    /// Whether the mediator knows an address.
    pub fn knows(&self, address: SocketAddr) -> bool {
        self.people.contains_key(&address)
    }

    /// Whether the access rules allow it.
    pub fn allows(&self, address: SocketAddr, device: Device) -> bool {
        self.access.allows(address, device)
    }
}

/// Parses a datagram and determines its receiver.
fn asked(from: SocketAddr, bytes: &[u8]) -> Option<Asked<'_>> {
    let frame = Frame::from_datagram(bytes).ok()?;
    let header = Header::parse(frame.header).ok()?;
    let device = header.device();
    Some(Asked {
        from,
        device: device.filter(|device| device.device_type != DeviceType::MEDIATOR),
        message: frame.message,
    })
}

/// Whether this is a goodbye to one device, as the mediator recognizes it.
fn is_client_died(message: &[u8]) -> bool {
    message.len() <= 24
        && message.starts_with(&[0x10, MsgType::ClientDied as u8])
        && messages::envelope(message).and_then(|said| said.kind()) == Some(MsgType::ClientDied)
}

/// A started process.
#[derive(Clone, Debug)]
pub struct Started {
    pub pid: u32,
    pub key: DriverKey,
    /// The devices that it serves.
    pub devices: Vec<Device>,
}
