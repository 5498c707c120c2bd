//! Sends datagrams, as many as possible with one system call. IO.
//!
//! Several datagrams for one client are sent as one, which the system splits (UDP segmentation
//! offload); so they pass the network stack only once. Datagrams for different clients are sent
//! with one `sendmmsg`.
//!
//! There are several sockets, because each has its own send buffer, which a slow link or an
//! unanswering address can fill: one socket for programs on this machine, one for each active
//! host on the network ([`Lanes`]), and one for all addresses that may not exist
//! ([`Whereabouts::Unresolved`]). A full buffer affects only those that share it.

use std::io::IoSlice;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::socket::{
    MsgFlags, MultiHeaders, SockaddrIn, SockaddrIn6, SockaddrLike, SockaddrStorage, sendmmsg,
    sendmsg, sendto,
};
use tracing::debug;

use super::neighbours::Neighbours;
use super::udp::Outlets;
use super::{batch, errors};
use amber_core::address::{ClientAddress, PackedAddress};
use amber_core::counters::{Count, Counters, DropReason};
use amber_core::lanes::Lanes;
use amber_core::limits::{DATAGRAMS_PER_TURN, HOST_LANES, SEGMENTS, SEND_TRIES};
use amber_core::links::Whereabouts;
use amber_core::router::{Outbox, Run, Unreachable};

/// Sends the contents of the outbox.
pub(super) struct Sender {
    v4: MultiHeaders<SockaddrIn>,
    v6: MultiHeaders<SockaddrIn6>,
    /// How many datagrams the system may merge.
    segments: usize,
    outlets: Vec<Outlet>,
    neighbours: Neighbours,
}

/// The sending sockets of one address that the mediator listens on.
struct Outlet {
    /// In the order of [`Lane`].
    sockets: Vec<UdpSocket>,
    lanes: Lanes,
    /// The sockets that were full in this turn; one bit for each.
    full: u32,
}

/// One sending socket of one listening address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    outlet: usize,
    lane: usize,
}

/// Programs on this machine.
const LOCAL: usize = 0;
/// Addresses that may not exist.
const DOUBTFUL: usize = 1;
/// The first lane for hosts on the network.
const HOSTS: usize = 2;

/// Up to this many datagrams are sent with little memory: after a pause all of it is cold.
const FEW: usize = 16;

// One bit for each lane.
const _: () = assert!(HOSTS + HOST_LANES <= u32::BITS as usize);

impl From<Outlets> for Outlet {
    fn from(outlets: Outlets) -> Self {
        let mut sockets = vec![outlets.local, outlets.doubtful];
        sockets.extend(outlets.hosts);
        Self {
            sockets,
            lanes: Lanes::default(),
            full: 0,
        }
    }
}

impl Sender {
    /// A sender with these sockets, in the order of the listening addresses.
    pub(super) fn new(outlets: Vec<Outlets>) -> Self {
        Self {
            v4: MultiHeaders::preallocate(DATAGRAMS_PER_TURN, None),
            v6: MultiHeaders::preallocate(DATAGRAMS_PER_TURN, None),
            segments: if cfg!(target_os = "linux") {
                SEGMENTS
            } else {
                1
            },
            outlets: outlets.into_iter().map(Outlet::from).collect(),
            neighbours: Neighbours::default(),
        }
    }

    /// All sending sockets, each with the index of its listening address. Network errors arrive
    /// at any of them.
    pub(super) fn sockets(&self) -> impl Iterator<Item = (u8, &UdpSocket)> {
        let outlets = (0..=u8::MAX).zip(&self.outlets);
        outlets.flat_map(|(index, outlet)| outlet.sockets.iter().map(move |socket| (index, socket)))
    }

    /// The number of datagrams to several machines that the sockets of a listening address have
    /// dropped, modulo 2^32: a sending socket drops these, and receives nothing else.
    pub(super) fn dropped_to_groups(&self, listener: u8) -> u32 {
        let outlet = self.outlets.get(usize::from(listener));
        outlet
            .and_then(|outlet| batch::dropped(&outlet.sockets[DOUBTFUL]))
            .unwrap_or_default()
    }

    /// The socket with this number in [`Sender::sockets`].
    pub(super) fn socket_at(&self, number: usize) -> Option<(u8, &UdpSocket)> {
        self.sockets().nth(number)
    }

    /// Sends everything in order, without waiting. Datagrams that the system does not take are
    /// dropped and counted. Returns the unreachable addresses.
    pub(super) fn send(&mut self, outbox: &Outbox, counters: &mut Counters) -> Vec<ClientAddress> {
        let mut unreachable = Vec::new();
        let mut clock = Clock::default();
        for outlet in &mut self.outlets {
            outlet.full = 0;
        }
        let (mut next, mut tries) = (0, 0);
        while let Some(run) = outbox.run_at(next, self.segments) {
            let Some(way) = self.way(&mut clock, run.to) else {
                counters.drop_many(DropReason::SendFailed, run.len() as u64);
                next += run.len();
                continue;
            };
            if self.outlets[way.outlet].full & 1 << way.lane != 0 {
                counters.drop_many(DropReason::SendBufferFull, run.len() as u64);
                next += run.len();
                continue;
            }
            match self.send_some(&mut clock, way, outbox, next, &run) {
                Ok(sent) => {
                    counters.count_many(Count::DatagramsSent, sent as u64);
                    next += sent;
                    tries = 0;
                }
                Err(Errno::EINTR) => {}
                // The buffer of this socket is full, which does not affect the others.
                Err(Errno::EAGAIN) => {
                    let outlet = &mut self.outlets[way.outlet];
                    outlet.full |= 1 << way.lane;
                    if let Some(lane) = way.lane.checked_sub(HOSTS) {
                        outlet.lanes.note_full(clock.now(), lane);
                    }
                }
                // The queue of a network card is full. The next datagram may use another.
                Err(Errno::ENOBUFS) => {
                    counters.drop_many(DropReason::SendBufferFull, run.len() as u64);
                    next += run.len();
                    tries = 0;
                }
                // The network card, the link or the system does not support it.
                Err(error @ (Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE)) if run.len() > 1 => {
                    debug!(%error, "datagrams are sent one by one from now on");
                    self.segments = 1;
                }
                // Most likely this error concerns an earlier datagram to another address, and
                // is reported only once. This datagram is sent again.
                Err(_) if tries + 1 < SEND_TRIES => {
                    counters.count(Count::SendsRepeated);
                    tries += 1;
                }
                // This address is unreachable; the others are not affected.
                Err(error) => {
                    counters.drop_many(DropReason::SendFailed, run.len() as u64);
                    debug!(%error, "a datagram could not be sent");
                    // A closed port cannot be reported that soon: that error concerns another
                    // address.
                    if errors::classify(error) == Some(Unreachable::NoRoute) {
                        unreachable.push(run.to.into());
                    }
                    next += run.len();
                    tries = 0;
                }
            }
        }
        unreachable
    }

    /// The socket for a datagram. `None` only if there is no such listening address.
    fn way(&mut self, clock: &mut Clock, to: PackedAddress) -> Option<Way> {
        let index = usize::from(to.socket());
        let outlet = self.outlets.get_mut(index)?;
        let lane = if to.is_loopback() {
            LOCAL
        } else {
            let now = clock.now();
            match self.neighbours.find(now, to.address()) {
                Whereabouts::ThisMachine => LOCAL,
                Whereabouts::Unresolved => DOUBTFUL,
                Whereabouts::Resolved => HOSTS + outlet.lanes.lane_for(now, to),
            }
        };
        Some(Way {
            outlet: index,
            lane,
        })
    }

    /// Sends the run that begins with the datagram `next`, or that datagram and the following
    /// single ones that use the same socket. Returns the number of datagrams that the system
    /// has taken, from the first one on.
    fn send_some(
        &mut self,
        clock: &mut Clock,
        way: Way,
        outbox: &Outbox,
        next: usize,
        run: &Run<'_>,
    ) -> nix::Result<usize> {
        if run.len() > 1 {
            return send_run(self.socket(way), run).map(|()| run.len());
        }
        // Most turns have one datagram, which needs no preparation.
        let Some(second) = self.single_at(clock, way, outbox, next + 1) else {
            return send_one(self.socket(way), run).map(|()| 1);
        };
        let first = [*run, second];
        match outbox.datagrams().len() - next {
            ..=FEW => self.send_singles::<FEW>(clock, way, outbox, next, &first),
            _ => self.send_singles::<DATAGRAMS_PER_TURN>(clock, way, outbox, next, &first),
        }
    }

    /// Sends the datagrams of two runs, and at most `MOST` in all.
    fn send_singles<const MOST: usize>(
        &mut self,
        clock: &mut Clock,
        way: Way,
        outbox: &Outbox,
        next: usize,
        [first, second]: &[Run<'_>; 2],
    ) -> nix::Result<usize> {
        let mut datagrams = [Pieces::of(first); MOST];
        let mut addresses = [first.to; MOST];
        (datagrams[1], addresses[1]) = (Pieces::of(second), second.to);
        let mut count = 2;
        while count < MOST
            && let Some(run) = self.single_at(clock, way, outbox, next + count)
        {
            (datagrams[count], addresses[count]) = (Pieces::of(&run), run.to);
            count += 1;
        }
        let (datagrams, addresses) = (&datagrams[..count], &addresses[..count]);
        let socket = &self.outlets[way.outlet].sockets[way.lane];
        // A socket has addresses of one family.
        match first.to.address() {
            SocketAddr::V4(_) => {
                send_many::<_, MOST>(socket, &mut self.v4, datagrams, addresses, v4)
            }
            SocketAddr::V6(_) => {
                send_many::<_, MOST>(socket, &mut self.v6, datagrams, addresses, v6)
            }
        }
    }

    /// The datagram with this number, if it is a single one that uses this socket.
    fn single_at<'a>(
        &mut self,
        clock: &mut Clock,
        way: Way,
        outbox: &'a Outbox,
        number: usize,
    ) -> Option<Run<'a>> {
        let run = outbox.run_at(number, self.segments)?;
        (run.len() == 1 && self.way(clock, run.to) == Some(way)).then_some(run)
    }

    fn socket(&self, way: Way) -> &UdpSocket {
        &self.outlets[way.outlet].sockets[way.lane]
    }
}

/// The time, read at most once, and only for destinations on the network.
#[derive(Default)]
struct Clock(Option<Instant>);

impl Clock {
    fn now(&mut self) -> Instant {
        *self.0.get_or_insert_with(Instant::now)
    }
}

fn v4(address: SocketAddr) -> Option<SockaddrIn> {
    match address {
        SocketAddr::V4(v4) => Some(v4.into()),
        SocketAddr::V6(_) => None,
    }
}

fn v6(address: SocketAddr) -> Option<SockaddrIn6> {
    match address {
        SocketAddr::V4(_) => None,
        SocketAddr::V6(v6) => Some(v6.into()),
    }
}

/// Sends single datagrams with one call, at most `MOST`. It allocates nothing, because after a
/// pause all memory that it touches is cold.
fn send_many<A: SockaddrLike + Copy, const MOST: usize>(
    socket: &UdpSocket,
    headers: &mut MultiHeaders<A>,
    datagrams: &[Pieces<'_>],
    destinations: &[PackedAddress],
    to: impl Fn(SocketAddr) -> Option<A>,
) -> nix::Result<usize> {
    let mut addresses = [None; MOST];
    for (address, destination) in addresses.iter_mut().zip(destinations) {
        *address = to(destination.address());
    }
    let addresses = &addresses[..destinations.len()];
    let flags = MsgFlags::MSG_DONTWAIT;
    let sent = sendmmsg(socket.as_raw_fd(), headers, datagrams, addresses, [], flags)?;
    Ok(sent.count().max(1))
}

/// Sends one datagram, as most turns do: the call for several needs more preparation.
fn send_one(socket: &UdpSocket, run: &Run<'_>) -> nix::Result<()> {
    let to = SockaddrStorage::from(run.to.address());
    let flags = MsgFlags::MSG_DONTWAIT;
    match Pieces::of(run).as_ref() {
        [all] => sendto(socket.as_raw_fd(), all, &to, flags).map(drop),
        pieces => sendmsg(socket.as_raw_fd(), pieces, &[], flags, Some(&to)).map(drop),
    }
}

/// The bytes of a single datagram: all of them, or its header, and its message in the lent buffer.
#[derive(Clone, Copy)]
struct Pieces<'a> {
    slices: [IoSlice<'a>; PIECES],
    count: usize,
}

/// The maximum number of pieces of one datagram.
const PIECES: usize = 2;

impl<'a> Pieces<'a> {
    fn of(run: &Run<'a>) -> Self {
        let mut pieces = Self {
            slices: [IoSlice::new(&[]); PIECES],
            count: 0,
        };
        for (slice, piece) in pieces.slices.iter_mut().zip(run.pieces()) {
            *slice = IoSlice::new(piece);
            pieces.count += 1;
        }
        pieces
    }
}

impl<'a> AsRef<[IoSlice<'a>]> for Pieces<'a> {
    fn as_ref(&self) -> &[IoSlice<'a>] {
        &self.slices[..self.count]
    }
}

/// Sends datagrams as one that the system splits.
#[cfg(target_os = "linux")]
fn send_run(socket: &UdpSocket, run: &Run<'_>) -> nix::Result<()> {
    use nix::sys::socket::ControlMessage;
    let segment = run.segment as u16; // At most LOCAL_SEGMENT_BYTES.
    let cut = [ControlMessage::UdpGsoSegments(&segment)];
    let to = SockaddrStorage::from(run.to.address());
    let mut slices = [IoSlice::new(&[]); PIECES * SEGMENTS];
    let mut count = 0;
    for (slice, piece) in slices.iter_mut().zip(run.pieces()) {
        *slice = IoSlice::new(piece);
        count += 1;
    }
    sendmsg(
        socket.as_raw_fd(),
        &slices[..count],
        &cut,
        MsgFlags::MSG_DONTWAIT,
        Some(&to),
    )
    .map(drop)
}

#[cfg(not(target_os = "linux"))]
fn send_run(_: &UdpSocket, _: &Run<'_>) -> nix::Result<()> {
    Err(Errno::EINVAL)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::cell::Cell;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::super::udp::{Listener, listen};
    use super::*;

    /// A sender with one listening address, and the receiving sockets.
    fn sender(ip: IpAddr) -> Option<(Sender, Receiving)> {
        let Ok(Listener {
            outlets, receiving, ..
        }) = listen((ip, 0).into())
        else {
            assert!(ip.is_ipv6());
            eprintln!("SKIP sending with IPv6: there is none here");
            return None;
        };
        Some((Sender::new(vec![outlets]), receiving))
    }

    type Receiving = Vec<(mio::net::UdpSocket, amber_core::origin::Reach)>;

    fn peer(ip: IpAddr) -> (std::net::UdpSocket, ClientAddress) {
        let peer = std::net::UdpSocket::bind((ip, 0)).unwrap();
        peer.set_nonblocking(true).unwrap();
        let address = peer.local_addr().unwrap();
        (peer, ClientAddress { socket: 0, address })
    }

    /// Sends datagrams to closed ports between datagrams to an open one.
    fn closed_ports_cost_others_nothing(ip: IpAddr) {
        const ROUNDS: usize = 100;
        let Some((mut sender, receiving)) = sender(ip) else {
            return;
        };
        let (live, live_address) = peer(ip);
        let (_, closed) = peer(ip);
        let mut counters = Counters::default();
        let mut buffer = [0; 64];
        for round in 0..ROUNDS {
            let mut outbox = Outbox::default();
            let frame = outbox.write(b"", &round.to_be_bytes()).unwrap();
            for to in [closed, live_address, closed] {
                outbox.send(to, &frame);
            }
            assert_eq!(sender.send(&outbox, &mut counters), []);
            let length = live.recv(&mut buffer).expect("nothing is lost");
            assert!(buffer[..length].ends_with(&round.to_be_bytes()));
        }
        assert_eq!(counters.dropped(DropReason::SendFailed), 0);
        assert_eq!(counters.counted(Count::DatagramsSent), 3 * ROUNDS as u64);

        let told = Cell::new(0);
        let note = |address, how| {
            assert_eq!((address, how), (closed.address, Unreachable::PortClosed));
            told.set(told.get() + 1);
        };
        let patience = Instant::now() + std::time::Duration::from_secs(30);
        while told.get() == 0 {
            assert!(Instant::now() < patience, "nothing was told");
            for (socket, _) in &receiving {
                errors::take(socket, note).unwrap();
            }
            for (_, socket) in sender.sockets() {
                errors::take(socket, note).unwrap();
            }
        }
    }

    #[test]
    fn closed_ports_cost_others_nothing_with_ipv4() {
        closed_ports_cost_others_nothing(Ipv4Addr::LOCALHOST.into());
    }

    #[test]
    fn closed_ports_cost_others_nothing_with_ipv6() {
        closed_ports_cost_others_nothing(Ipv6Addr::LOCALHOST.into());
    }

    /// Sends datagrams of these lengths to two peers. They arrive unchanged and in order.
    fn check(sender: &mut Sender, ip: IpAddr, datagrams: &[(usize, usize)]) {
        let peers = [peer(ip), peer(ip)];
        let (mut outbox, mut counters) = (Outbox::default(), Counters::default());
        for (number, (peer, bytes)) in datagrams.iter().enumerate() {
            let frame = outbox.write(&[], &vec![number as u8; *bytes]).unwrap();
            outbox.send(peers[*peer].1, &frame);
        }
        assert_eq!(sender.send(&outbox, &mut counters), []);
        let sent = counters.counted(Count::DatagramsSent);
        assert_eq!(sent, datagrams.len() as u64);
        let mut buffer = [0; 10_000];
        for (number, (peer, bytes)) in datagrams.iter().enumerate() {
            let length = peers[*peer].0.recv(&mut buffer).unwrap();
            assert_eq!(length, bytes + 4, "{number}");
            assert!(buffer[4..length].iter().all(|byte| *byte == number as u8));
        }
    }

    #[test]
    fn runs_are_split_by_the_system() {
        let length = |i: usize| if i.is_multiple_of(17) { 300 } else { 50 };
        let datagrams: Vec<_> = (0..100).map(|i| (i / 40 % 2, length(i))).collect();
        for ip in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
            let Some((mut sender, _)) = sender(ip) else {
                continue;
            };
            check(&mut sender, ip, &datagrams);
            check(&mut sender, ip, &[(0, 6800); 10]);
            assert_eq!(sender.segments, SEGMENTS);
        }
    }

    #[test]
    fn datagrams_use_their_own_socket_and_stay_in_order() {
        const COUNT: u8 = 200;
        let ip = Ipv4Addr::LOCALHOST.into();
        let listeners = [(); 2].map(|()| listen((ip, 0).into()).unwrap());
        let addresses = listeners.each_ref().map(|listener| listener.address);
        let peers = [peer(ip), peer(ip)];
        let outlets = listeners.into_iter().map(|listener| listener.outlets);
        let (mut sender, mut counters) = (Sender::new(outlets.collect()), Counters::default());
        let mut outbox = Outbox::default();
        // Sometimes two consecutive datagrams for one client form a run.
        let way = |number: u8| (usize::from(number % 3 % 2), number / 5 % 2);
        for number in 0..COUNT {
            let frame = outbox.write(&[], &[number]).unwrap();
            let (peer, socket) = way(number);
            let address = peers[peer].1.address;
            outbox.send(ClientAddress { socket, address }, &frame);
        }
        assert_eq!(sender.send(&outbox, &mut counters), []);
        let sent = counters.counted(Count::DatagramsSent);
        assert_eq!(sent, u64::from(COUNT));
        for number in 0..COUNT {
            let mut buffer = [0; 10];
            let (peer, socket) = way(number);
            let (length, from) = peers[peer].0.recv_from(&mut buffer).unwrap();
            assert_eq!(buffer[..length].last(), Some(&number));
            assert_eq!(from, addresses[usize::from(socket)]);
        }
    }

    #[test]
    fn a_system_that_cannot_split_is_not_asked_again() {
        let ip = Ipv4Addr::LOCALHOST.into();
        let (mut sender, _receiving) = sender(ip).unwrap();
        // More than any Linux version accepts.
        sender.segments = 1000;
        for _ in 0..2 {
            check(&mut sender, ip, &[(0, 20); 150]);
            assert_eq!(sender.segments, 1);
        }
    }
}
