//! Who the clients are: address to id and back, bounded. PURE.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::time::Instant;

use amber_proto::ClientId;
use lru::LruCache;

use super::{ClientAddress, DriverKey};
use crate::limits;

/// What is known of one client.
#[derive(Debug)]
pub struct Client {
    /// Where it is.
    pub address: ClientAddress,
    /// It has spoken to the mediator itself, so it may be spoken to.
    pub announced: bool,
    /// When its last datagram came.
    pub heard: Instant,
    /// Frames that came from it.
    pub received: u64,
    /// Frames that went to it.
    pub sent: u64,
    /// The drivers that have had a frame from it since they were started.
    pub used: Vec<DriverKey>,
    keepalive: Keepalive,
    refusals: Refusals,
    no_route: Option<NoRoute>,
}

/// Whether a client answers PINGs is learned.
#[derive(Debug, Default)]
struct Keepalive {
    answers: bool,
    unanswered: u8,
    /// The last PING that it has not shown to have survived, or, as long as it
    /// has never answered, when it was looked at first.
    pinged: Option<Instant>,
}

#[derive(Debug)]
struct Refusals {
    since: Instant,
    count: u32,
}

/// What the network says of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// Nobody listens there: the program has ended.
    PortClosed,
    /// It cannot be reached, for the moment or for good.
    NoRoute,
}

/// An address cannot be reached.
#[derive(Debug)]
struct NoRoute {
    since: Instant,
    last: Instant,
}

/// What the silence of a client calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Ask whether it is there.
    Ping,
    /// It used to answer and does not any more.
    Lost,
}

impl Client {
    fn new(now: Instant, address: ClientAddress) -> Self {
        Self {
            address,
            announced: false,
            heard: now,
            received: 0,
            sent: 0,
            used: Vec::new(),
            keepalive: Keepalive::default(),
            refusals: Refusals {
                since: now,
                count: 0,
            },
            no_route: None,
        }
    }

    /// The network says that it is not there. Says whether it counts as lost.
    ///
    /// A closed port is certain. Everything else may pass, as when a laptop
    /// changes its access point: it has to go on for a while without a word
    /// from the client. Somebody to whom nothing was sent cannot be unreachable:
    /// that is made up.
    pub fn unreachable(&mut self, now: Instant, how: Unreachable) -> bool {
        if self.sent == 0 {
            return false;
        }
        if how == Unreachable::PortClosed {
            return true;
        }
        let goes_on = |trouble: &&mut NoRoute| {
            self.heard <= trouble.since && now.duration_since(trouble.last) < limits::UNREACHABLE
        };
        match self.no_route.as_mut().filter(goes_on) {
            Some(trouble) => {
                trouble.last = now;
                now.duration_since(trouble.since) >= limits::UNREACHABLE
            }
            None => {
                self.no_route = Some(NoRoute {
                    since: now,
                    last: now,
                });
                false
            }
        }
    }

    /// It has used a driver.
    pub fn uses(&mut self, driver: DriverKey) {
        // Nearly always the driver that it used last.
        if self.used.last() != Some(&driver) && !self.used.contains(&driver) {
            self.used.push(driver);
        }
    }

    /// Whether one more unknown-device answer may be sent to it.
    pub fn may_be_refused(&mut self, now: Instant) -> bool {
        if now.duration_since(self.refusals.since).as_secs() >= 1 {
            self.refusals = Refusals {
                since: now,
                count: 0,
            };
        }
        self.refusals.count += 1;
        self.refusals.count <= limits::REFUSALS_PER_SECOND
    }

    /// It has answered a PING.
    pub fn answered_ping(&mut self) {
        self.keepalive = Keepalive {
            answers: true,
            ..Keepalive::default()
        };
    }

    fn silence(&mut self, now: Instant) -> Option<Silence> {
        let keepalive = &mut self.keepalive;
        let since = if keepalive.answers {
            if keepalive.pinged.is_some_and(|pinged| self.heard > pinged) {
                // Anything that comes after a PING shows that it lives.
                keepalive.pinged = None;
                keepalive.unanswered = 0;
            }
            keepalive.pinged.unwrap_or(self.heard)
        } else {
            // It is asked however much it says: the end of one that never
            // pauses would not be noticed otherwise.
            *keepalive.pinged.get_or_insert(now)
        };
        if now.duration_since(since) < limits::CLIENT_PING_INTERVAL {
            return None;
        }
        if keepalive.unanswered < limits::CLIENT_PINGS {
            keepalive.unanswered += 1;
            keepalive.pinged = Some(now);
            return Some(Silence::Ping);
        }
        keepalive.answers.then_some(Silence::Lost)
    }
}

/// All clients.
#[derive(Debug)]
pub struct Clients {
    /// By address, in the order in which they were last heard.
    ids: LruCache<ClientAddress, ClientId>,
    clients: HashMap<ClientId, Client>,
    announced: BTreeSet<ClientId>,
}

impl Clients {
    /// Room for so many.
    pub fn new(limit: NonZeroUsize) -> Self {
        Self {
            // Takes no memory for clients that may never come.
            ids: LruCache::sparse(limit),
            clients: HashMap::new(),
            announced: BTreeSet::new(),
        }
    }

    /// The client at an address, which has just been heard.
    pub fn heard(&mut self, now: Instant, from: &ClientAddress) -> Option<(ClientId, &mut Client)> {
        let id = *self.ids.get(from)?;
        let client = self.clients.get_mut(&id)?;
        client.heard = now;
        Some((id, client))
    }

    /// The client at an address, which has not been heard.
    pub fn at(&self, address: &ClientAddress) -> Option<ClientId> {
        self.ids.peek(address).copied()
    }

    /// The client that makes room for the next new one, when there is no room.
    pub fn to_evict(&self) -> Option<ClientId> {
        let full = self.ids.len() >= self.ids.cap().get();
        full.then(|| self.ids.peek_lru())
            .flatten()
            .map(|(_, id)| *id)
    }

    /// Adds a client; the caller has made room.
    pub fn add(&mut self, now: Instant, id: ClientId, address: ClientAddress) -> &mut Client {
        self.ids.put(address, id);
        self.clients
            .entry(id)
            .or_insert_with(|| Client::new(now, address))
    }

    /// Forgets a client.
    pub fn remove(&mut self, id: ClientId) -> Option<Client> {
        let client = self.clients.remove(&id)?;
        self.ids.pop(&client.address);
        self.announced.remove(&id);
        Some(client)
    }

    /// From now on the mediator may speak to it on its own account.
    pub fn announce(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.announced = true;
            self.announced.insert(id);
        }
    }

    /// One client.
    pub fn client(&self, id: ClientId) -> Option<&Client> {
        self.clients.get(&id)
    }

    /// One client.
    pub fn client_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        self.clients.get_mut(&id)
    }

    /// A driver has ended: the next process knows none of its clients. Returns
    /// those that want to hear of it.
    pub fn driver_down(&mut self, driver: DriverKey) -> Vec<(ClientId, ClientAddress)> {
        let mut told = Vec::new();
        for (id, client) in &mut self.clients {
            let before = client.used.len();
            client.used.retain(|used| *used != driver);
            if client.used.len() < before && client.announced {
                told.push((*id, client.address));
            }
        }
        told.sort_unstable_by_key(|(id, _)| *id);
        told
    }

    /// The announced clients whose silence calls for something.
    pub fn silent(&mut self, now: Instant) -> Vec<(ClientId, Silence)> {
        let Self {
            clients, announced, ..
        } = self;
        (announced.iter())
            .filter_map(|id| Some((*id, clients.get_mut(id)?.silence(now)?)))
            .collect()
    }

    /// Whether any client is announced, so that silence has to be watched.
    pub fn any_announced(&self) -> bool {
        !self.announced.is_empty()
    }

    /// All of them, in the order of their ids.
    pub fn sorted(&self) -> Vec<(ClientId, &Client)> {
        let mut all: Vec<_> = self
            .clients
            .iter()
            .map(|(id, client)| (*id, client))
            .collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }
}
