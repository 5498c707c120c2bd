//! An independent account of what was promised to whom. PURE.
//!
//! It sees what the wires see: each datagram and frame that goes into the core,
//! each that comes out, and each that a process has read. From these it knows
//! who used what, who was told what, and so what must come next. Of the core it
//! asks only who is known now, and the counters, which it compares with its own.

mod accounts;
mod census;
mod copies;
mod hosts;
mod lives;
mod voice;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use amber_mediator::access::Access;
use amber_mediator::config::Config;
use amber_mediator::core::Core;
use amber_mediator::counters::{Count, Counters, Drop, Stage};
use amber_mediator::queue::Bounds;
use amber_mediator::router::{DriverKey, Unreachable};
use amber_proto::{ClientId, Device, DeviceMessage, DeviceType, Frame, Header, MsgType, SynNum};

use self::accounts::Seen;
use self::lives::Life;
use crate::invariant::{Check, Invariant, holds};
use crate::messages::{self, Token};

/// See the [module](self).
pub struct Model {
    /// Counts what the core was told.
    seq: u64,
    access: Access,
    bounds: Bounds,
    clients: usize,
    clients_per_host: usize,
    spoke: BTreeSet<SocketAddr>,
    people: BTreeMap<SocketAddr, Person>,
    owners: BTreeMap<ClientId, Owner>,
    /// When ids, or what they used, came to an end.
    ended: BTreeMap<ClientId, Vec<(u64, Option<Device>)>>,
    /// When somebody last asked for a device.
    asked: BTreeMap<(Device, ClientId), u64>,
    arrivals: BTreeMap<Token, Vec<Arrival>>,
    lives: BTreeMap<u32, Life>,
    credit: BTreeMap<SocketAddr, Credit>,
    cookies: BTreeMap<SocketAddr, SynNum>,
    seen: Seen,
}

/// Who has an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Client(SocketAddr),
    Process(u32),
}

/// A client that the mediator knows.
#[derive(Clone, Debug)]
struct Person {
    id: ClientId,
    announced: bool,
    /// It has spoken to the mediator, be it that this is forbidden now.
    has_asked: bool,
    proved: bool,
    ponged: bool,
    /// Something was sent to it since something came from it.
    sent: bool,
    used: BTreeSet<Device>,
    /// The devices of whose end it has heard since it last asked.
    told: BTreeSet<Device>,
}

/// A request that was accepted.
#[derive(Clone, Debug)]
struct Arrival {
    seq: u64,
    id: ClientId,
    owner: Owner,
    device: Device,
    message: Vec<u8>,
}

/// What came from an address, and what the mediator itself sent there, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Credit {
    came: u64,
    went: u64,
}

/// What the core was told.
#[derive(Clone, Copy, Debug)]
pub enum Cause<'a> {
    /// A datagram has come.
    Datagram(SocketAddr, &'a [u8]),
    /// A process has written a frame: header and message.
    Frame(u32, &'a [u8], &'a [u8]),
    /// An address cannot be reached.
    Unreachable(SocketAddr, Unreachable),
    /// There is another configuration.
    Reload(&'a Config),
    /// Something else.
    Other,
}

/// One call of the core, and what came of it.
pub struct Call<'a> {
    /// What it was told.
    pub cause: Cause<'a>,
    /// The counters before.
    pub before: &'a Counters,
    /// The core after.
    pub core: &'a Core,
    /// What is to be sent.
    pub sent: &'a [(SocketAddr, Vec<u8>)],
}

/// A datagram that is a frame.
#[derive(Clone, Copy, Debug)]
struct Asked<'a> {
    from: SocketAddr,
    /// `None` for the mediator itself.
    device: Option<Device>,
    message: &'a [u8],
}

/// A call with what it has changed.
struct Changes<'a> {
    call: &'a Call<'a>,
    after: Counters,
    asked: Option<Asked<'a>>,
    /// Clients that are gone since.
    gone: BTreeMap<SocketAddr, Person>,
    /// Processes that cannot be used any more.
    down: Vec<u32>,
    /// A process that says so of itself.
    said_dead: Option<u32>,
}

impl Changes<'_> {
    fn counted(&self, what: Count) -> u64 {
        self.after.counted(what) - self.call.before.counted(what)
    }

    fn dropped(&self, why: Drop) -> u64 {
        self.after.dropped(why) - self.call.before.dropped(why)
    }

    /// The datagram was thrown away before anybody looked at whom it is for.
    fn ignored(&self) -> bool {
        let heard = [
            Drop::UnknownDevice,
            Drop::DriverDown,
            Drop::AccessDenied,
            Drop::NothingToTell,
            Drop::DatagramTooLong,
        ];
        let at_input = |why: &&Drop| why.stage() == Stage::Input && !heard.contains(why);
        Drop::ALL
            .iter()
            .filter(at_input)
            .any(|why| self.dropped(*why) > 0)
    }

    fn refused(&self) -> bool {
        let refusals = [Drop::UnknownDevice, Drop::DriverDown, Drop::AccessDenied];
        refusals.iter().any(|why| self.dropped(*why) > 0)
    }
}

impl Model {
    /// Of a mediator that knows nobody yet.
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

    /// The core was told something.
    ///
    /// # Errors
    /// What came of it breaks a promise.
    pub fn after(&mut self, call: &Call<'_>) -> Check {
        self.seq += 1;
        let copies = self.expected_copies(call);
        let mut changes = Changes {
            call,
            after: call.core.router.totals(),
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
            // What the network says now is about the program that was there before.
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
            let forbidden = |device: &Device| !self.access.allows(*address, *device);
            let forbidden = person.used.extract_if(.., forbidden);
            ended.extend(forbidden.map(|device| (person.id, device)));
            person.announced &= self.access.allows(*address, Device::MEDIATOR);
        }
        for (id, device) in ended {
            self.ends(id, Some(device));
        }
    }

    /// Those who must be gone are.
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
                    && changes.dropped(Drop::AccessDenied) == 0
                    && self.people.contains_key(&asked.from)
            }),
            _ => false,
        };
        holds(Invariant::GoodbyeForgets, !left, || {
            format!("after {:?} it is still known", changes.call.cause)
        })
    }

    /// The addresses that have ever answered a PING and are known.
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

    /// Whether rules allow it.
    pub fn allows(&self, address: SocketAddr, device: Device) -> bool {
        self.access.allows(address, device)
    }
}

/// A datagram that is a frame, and whom it is for.
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

/// A good-bye to one device, as the mediator recognizes it.
fn is_client_died(message: &[u8]) -> bool {
    message.len() <= 24
        && message.starts_with(&[0x10, MsgType::ClientDied as u8])
        && messages::envelope(message).and_then(|said| said.kind()) == Some(MsgType::ClientDied)
}

/// Whose process serves a key.
#[derive(Clone, Debug)]
pub struct Started {
    /// The process.
    pub pid: u32,
    /// Whose it is.
    pub key: DriverKey,
    /// What it serves.
    pub devices: Vec<Device>,
}
