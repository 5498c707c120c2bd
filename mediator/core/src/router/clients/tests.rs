//! The eviction order, compared with a plain table; and the size of the tables.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use amber_proto::Device;
use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A datagram comes from a port of a host; host 0 is this machine.
    Datagram(u8, u16),
    /// The same, and a use begins.
    Use(u8, u16),
    Prove(u8, u16),
    Leave(u8, u16),
    DriverDown,
    PerHost(usize),
    Time(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let (host, port) = (0u8..4, 1u16..6);
    prop_oneof![
        8 => (host.clone(), port.clone()).prop_map(|(host, port)| Step::Datagram(host, port)),
        4 => (host.clone(), port.clone()).prop_map(|(host, port)| Step::Use(host, port)),
        2 => (host.clone(), port.clone()).prop_map(|(host, port)| Step::Prove(host, port)),
        2 => (host, port).prop_map(|(host, port)| Step::Leave(host, port)),
        1 => Just(Step::DriverDown),
        1 => (1usize..5).prop_map(Step::PerHost),
        2 => (0u64..12).prop_map(Step::Time),
    ]
}

fn address(host: u8, port: u16) -> PackedAddress {
    let ip = match host {
        0 => Ipv4Addr::LOCALHOST,
        _ => Ipv4Addr::new(10, 0, 0, host),
    };
    PackedAddress::from(ClientAddress {
        socket: 0,
        address: (ip, port).into(),
    })
}

/// What a plain table knows about a client.
#[derive(Debug)]
struct Known {
    id: ClientId,
    /// Its standing when it was last heard.
    standing: usize,
    /// Its standing among the clients of its host; `None` for a host's only client.
    among_its_host: Option<usize>,
    /// When it was last heard, and the order of those heard at the same time.
    heard: Moment,
    at: u64,
}

impl Known {
    fn is_silent(&self, now: Moment) -> bool {
        now.duration_since(self.heard) >= limits::SILENT
    }
}

#[derive(Debug)]
struct World {
    clients: Clients,
    now: Moment,
    known: BTreeMap<(u8, u16), Known>,
    steps: u64,
    per_host: usize,
}

impl World {
    const LIMIT: usize = 7;
    const DRIVER: DriverKey = DriverKey(0);

    fn new(start: Instant) -> Self {
        let clients = Clients::new(start, NonZeroUsize::new(Self::LIMIT).unwrap());
        Self {
            now: clients.moment(start),
            clients,
            known: BTreeMap::new(),
            steps: 0,
            per_host: limits::CLIENTS_PER_HOST,
        }
    }

    fn of(&self, host: u8) -> impl Iterator<Item = (&(u8, u16), &Known)> {
        self.known
            .iter()
            .filter(move |((other, _), _)| *other == host)
    }

    fn expected(&self, host: u8) -> Option<((u8, u16), RoomFor)> {
        if self.of(host).count() >= self.per_host {
            let first = self.of(host).min_by_key(|(_, it)| {
                let stays = it.among_its_host.is_some() && !it.is_silent(self.now);
                (stays, it.among_its_host, it.at)
            });
            return Some((*first?.0, RoomFor::ItsHost));
        }
        if self.known.len() < Self::LIMIT {
            return None;
        }
        let first = self.known.iter().min_by_key(|(_, it)| {
            let may_be_forged = it.standing == Standing::Newcomer as usize;
            let stays = !may_be_forged && !it.is_silent(self.now);
            (stays, it.standing, it.at)
        });
        Some((*first?.0, RoomFor::AnyHost))
    }

    fn forget(&mut self, at: (u8, u16)) {
        let Some(known) = self.known.remove(&at) else {
            return;
        };
        assert_eq!(
            self.clients.remove(known.id).unwrap().address,
            address(at.0, at.1)
        );
        let mut left = self.known.iter_mut().filter(|((host, _), _)| *host == at.0);
        if let (Some((_, last)), None) = (left.next(), left.next()) {
            last.among_its_host = None;
        }
    }

    fn datagram(&mut self, host: u8, port: u16) {
        self.steps += 1;
        let at = address(host, port);
        if self.clients.heard(self.now, &at, 1).is_none() {
            while let Some((gone, room)) = self.expected(host) {
                let id = self.known[&gone].id;
                assert_eq!(self.clients.to_evict(self.now, &at), Some((id, room)));
                let its_own = gone.0 == host;
                assert!(
                    room == RoomFor::AnyHost || its_own,
                    "others are not affected"
                );
                self.forget(gone);
            }
            assert_eq!(self.clients.to_evict(self.now, &at), None);
            let id = ClientId(self.steps as i32);
            self.clients.add(self.now, id, at, 1);
            // The only client of a host now joins the lists of its host.
            for ((other, _), known) in &mut self.known {
                if *other == host && known.among_its_host.is_none() {
                    let client = self.clients.client(known.id).unwrap();
                    known.among_its_host = Some(client.standing() as usize);
                }
            }
        }
        let alone = self.of(host).all(|(known, _)| *known == (host, port));
        let client = self
            .clients
            .client(self.clients.id_at(&at).unwrap())
            .unwrap();
        let standing = client.standing() as usize;
        let known = Known {
            id: client.id,
            standing,
            among_its_host: (!alone).then_some(standing),
            heard: self.now,
            at: self.steps,
        };
        self.known.insert((host, port), known);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Datagram(host, port) => self.datagram(host, port),
            Step::Use(host, port) => {
                self.datagram(host, port);
                let id = self.known[&(host, port)].id;
                let uses = &mut self.clients.client_mut(id).unwrap().uses;
                if uses.find(Self::DRIVER, Device::MEDIATOR).is_none() {
                    uses.begin(Self::DRIVER, Device::MEDIATOR, 0);
                    self.ranks_again(host, port);
                }
            }
            Step::Prove(host, port) => {
                if !self.known.contains_key(&(host, port)) {
                    return;
                }
                self.datagram(host, port);
                let id = self.known[&(host, port)].id;
                self.clients.client_mut(id).unwrap().prove();
                self.ranks_again(host, port);
            }
            Step::Leave(host, port) => self.forget((host, port)),
            Step::DriverDown => self.driver_down(),
            Step::PerHost(limit) => {
                self.per_host = limit;
                self.clients.set_per_host(NonZeroUsize::new(limit).unwrap());
            }
            Step::Time(seconds) => self.now = self.now + Duration::from_secs(seconds),
        }
    }

    /// The client that was just heard has another standing.
    fn ranks_again(&mut self, host: u8, port: u16) {
        let known = self.known.get_mut(&(host, port)).unwrap();
        self.clients.rank_again(known.id);
        known.standing = self.clients.client(known.id).unwrap().standing() as usize;
        known.among_its_host = known.among_its_host.map(|_| known.standing);
    }

    fn driver_down(&mut self) {
        if self.clients.driver_down(Self::DRIVER).is_empty() {
            return;
        }
        // In the order in which they were heard; of the slots, if at the same time.
        let mut all: Vec<&Client> = self.clients.slots.iter().flatten().collect();
        all.sort_by_key(|client| client.heard);
        for client in all {
            if client.standing() != Standing::Idle {
                continue;
            }
            self.steps += 1;
            let known = (self.known.values_mut()).find(|known| known.id == client.id);
            let known = known.unwrap();
            (known.standing, known.at) = (Standing::Idle as usize, self.steps);
            let among = known.among_its_host.as_mut();
            if let Some(standing) = among {
                *standing = Standing::Idle as usize;
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.clients.len(), self.known.len());
        assert!(self.clients.len() <= Self::LIMIT);
        for (at, known) in &self.known {
            assert_eq!(self.clients.id_at(&address(at.0, at.1)), Some(known.id));
        }
        for host in 0..4 {
            let expected = self
                .expected(host)
                .map(|(at, room)| (self.known[&at].id, room));
            assert_eq!(
                self.clients.to_evict(self.now, &address(host, 99)),
                expected
            );
        }
    }
}

impl Clients {
    fn id_at(&self, address: &PackedAddress) -> Option<ClientId> {
        self.slots[self.slot_at(address)? as usize]
            .as_ref()
            .map(|client| client.id)
    }

    /// The size of the tables, without the spare capacity of vectors, which was never touched.
    fn bytes(&self) -> usize {
        let slots = self.slots.len() * size_of::<Option<Client>>();
        let indices = self.by_address.bytes() + self.by_id.bytes();
        slots + indices + self.links.bytes() + self.hosts.bytes()
    }
}

proptest! {
    /// The evicted client is the one that a full search finds; at a host's limit, one of that
    /// host's own.
    #[test]
    fn evictions_match_a_full_search(steps in prop::collection::vec(step(), 0..120)) {
        let mut world = World::new(Instant::now());
        for step in steps {
            world.step(step);
            world.check();
        }
    }
}

/// For any distribution over hosts.
#[test]
fn a_client_takes_less_than_200_bytes() {
    for count in [4096u32, 20_000] {
        for of_one_host in [1, 2, 3, 10, count] {
            let start = Instant::now();
            let mut clients = Clients::new(start, NonZeroUsize::MAX);
            for i in 0..count {
                let ip = Ipv4Addr::from_bits(0x0a00_0000 + i / of_one_host);
                let address = (ip, (1 + i % of_one_host) as u16).into();
                let at = PackedAddress::from(ClientAddress { socket: 0, address });
                clients.add(clients.moment(start), ClientId(i as i32 + 1), at, 1);
            }
            let each = clients.bytes() / count as usize;
            assert!(
                each <= 200,
                "{count} clients, {of_one_host} of a host: {each} bytes each"
            );
        }
    }
}
