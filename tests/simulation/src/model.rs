//! An independent account of what was promised to whom. PURE.
//!
//! It sees what the wires see: each datagram and frame that goes into the core,
//! each that comes out, and each that a process has read. From these it knows
//! who used what, who was told what, and so what must come next. Of the core it
//! asks only who is known now, and the counters, which it compares with its own.

mod accounts;
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
use amber_proto::limits::MAX_PART;
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
    /// Something was sent to it.
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
        for (to, _) in call.sent {
            if let Some(person) = self.people.get_mut(to) {
                person.sent = true;
            }
        }
        self.note_said_dead(changes.said_dead);
        self.forget_down(&changes.down);
        self.check_accounts(&changes, copies.len())
    }

    /// Who is known now.
    fn census(&mut self, core: &Core, changes: &mut Changes<'_>) -> Check {
        for life in self.lives.values() {
            if let Some(id) = life.id.filter(|_| changes.down.contains(&life.pid)) {
                self.owners.remove(&id);
                self.ended.entry(id).or_default().push((self.seq, None));
            }
        }
        let known: BTreeMap<SocketAddr, ClientId> = (core.router.clients.in_order().into_iter())
            .map(|client| (client.address(), client.id))
            .collect();
        let gone =
            |address: &SocketAddr, person: &mut Person| known.get(address) != Some(&person.id);
        changes.gone = self.people.extract_if(.., gone).collect();
        for person in changes.gone.values() {
            self.owners.remove(&person.id);
            self.ended
                .entry(person.id)
                .or_default()
                .push((self.seq, None));
        }
        for (address, id) in known {
            if self.people.contains_key(&address) {
                continue;
            }
            let person = Person {
                id,
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
        Ok(())
    }

    fn take_id(&mut self, id: ClientId, owner: Owner) -> Check {
        let before = self.owners.insert(id, owner);
        holds(Invariant::IdsUnique, before.is_none() && id.0 > 0, || {
            format!("{owner:?} gets id {}, which {before:?} has", id.0)
        })
    }

    /// What a datagram, or a frame for another driver, changes.
    fn take_note(&mut self, changes: &Changes<'_>) -> Check {
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
            None if changes.dropped(Drop::AccessDenied) == 0 => self.spoken_to(asked),
            None => {}
            Some(device) if accepted => {
                let ip = asked.from.ip();
                holds(
                    Invariant::AccessHolds,
                    self.access.allows(ip, device),
                    || format!("{ip} reaches {device}, which no rule allows"),
                )?;
                let id = self.people.get(&asked.from).map(|person| person.id);
                holds(Invariant::IdsUnique, id.is_some(), || {
                    format!("{} asks {device} and is not known", asked.from)
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
            Some(_) => {}
        }
        Ok(())
    }

    /// The mediator itself is spoken to.
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
                // What it asked before waited for that.
                person.announced |= person.has_asked;
                person.ponged = true;
                person.proved |=
                    said.ack().is_some() && said.ack() == self.cookies.get(&asked.from).copied();
            }
            _ => {}
        }
    }

    /// Something for a driver was accepted. Says whether it was a good-bye.
    fn accepted(
        &mut self,
        core: &Core,
        id: ClientId,
        owner: Owner,
        device: Device,
        message: &[u8],
    ) -> bool {
        let key = core.router.driver_of(device);
        if is_client_died(message) {
            self.ended
                .entry(id)
                .or_default()
                .push((self.seq, Some(device)));
            for life in self.lives.values_mut() {
                if life.up() && Some(life.key) == key {
                    life.leaving.insert((device, id));
                }
            }
            return true;
        }
        self.asked.insert((device, id), self.seq);
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

    /// The datagrams to which a frame of a driver must lead.
    fn expected_copies(&mut self, call: &Call<'_>) -> Vec<(SocketAddr, Vec<u8>)> {
        let Cause::Frame(pid, header, message) = call.cause else {
            return Vec::new();
        };
        let (Ok(header), Some(life)) = (Header::parse(header), self.lives.get(&pid)) else {
            return Vec::new();
        };
        if !life.up() || !header.has_clients() || message.len() > MAX_PART {
            return Vec::new();
        }
        let device = match (&life.devices[..], header.device()) {
            ([only], _) => *only,
            (several, Some(device)) if several.contains(&device) => device,
            _ => return Vec::new(),
        };
        let datagram = messages::frame(Some(device), message);
        let mut copies = Vec::new();
        for id in messages::ids(&header) {
            match self.owners.get(&id) {
                Some(Owner::Client(address)) => copies.push((*address, datagram.clone())),
                Some(Owner::Process(asker)) => {
                    if let Some(asker) = self.lives.get_mut(asker) {
                        asker.copies.push((device, message.to_vec()));
                    }
                }
                None => self.seen.unknown += 1,
            }
        }
        copies
    }

    /// Takes the copies off what is sent; the rest is the mediator's own.
    fn check_copies<'a>(
        &mut self,
        changes: &Changes<'a>,
        copies: &[(SocketAddr, Vec<u8>)],
    ) -> Result<Vec<&'a (SocketAddr, Vec<u8>)>, crate::Broken> {
        let mut own = Vec::new();
        let mut expected = copies.iter();
        let mut next = expected.next();
        for sent in changes.call.sent {
            let to = sent.0;
            holds(
                Invariant::NothingToStrangers,
                self.spoke.contains(&to),
                || format!("{to} has never spoken and gets {} bytes", sent.1.len()),
            )?;
            if next == Some(sent) {
                next = expected.next();
            } else {
                own.push(sent);
            }
        }
        holds(Invariant::RepliesReachTheNamed, next.is_none(), || {
            format!(
                "{:?} is named and gets nothing, or in another order",
                next.map(|(to, _)| to)
            )
        })?;
        Ok(own)
    }

    fn take_rules(&mut self, config: &Config) {
        self.access = config.access.clone();
        for (address, person) in &mut self.people {
            let ip = address.ip();
            let forbidden = |device: &Device| !self.access.allows(ip, *device);
            for device in person.used.extract_if(.., forbidden) {
                let ended = self.ended.entry(person.id).or_default();
                ended.push((self.seq, Some(device)));
            }
            person.announced &= self.access.allows(ip, Device::MEDIATOR);
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
        self.access.allows(address.ip(), device)
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
