//! Opens sockets, and receives many datagrams with one system call. IO.

#[cfg(target_os = "linux")]
mod group;

use std::io;
use std::net::{self, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::time::Instant;

use mio::net::UdpSocket;
use nix::sys::socket::SockaddrStorage;
use socket2::{Domain, Protocol, Type};

use super::batch::{self, Batch};
use super::errors;
use amber_core::limits::{
    DATAGRAMS_PER_TURN, DOUBTFUL_BUFFER_BYTES, HOST_LANES, LOST_LOOK, SOCKET_BUFFER_BYTES,
};
use amber_core::origin::Reach;

/// The sockets of one listening address; all have the same address and port.
pub(super) struct Listener {
    pub(super) address: SocketAddr,
    /// The receiving sockets, and which datagrams reach them.
    pub(super) receiving: Vec<(UdpSocket, Reach)>,
    pub(super) outlets: Outlets,
}

/// The sending sockets. There are several, so that no destination fills the send buffer that
/// others need: see [`Lanes`](amber_core::lanes::Lanes).
pub(super) struct Outlets {
    /// To programs on this machine.
    pub(super) local: net::UdpSocket,
    /// To addresses that may not exist.
    pub(super) doubtful: net::UdpSocket,
    /// To hosts on the network.
    pub(super) hosts: Vec<net::UdpSocket>,
}

/// Opens all sockets for an address, which is not shared with other programs. They are not watched
/// yet.
pub(super) fn listen(address: SocketAddr) -> io::Result<Listener> {
    match group::open(address) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => alone(address),
        opened => opened,
    }
}

/// One socket for everything, where sockets cannot share an address.
fn alone(address: SocketAddr) -> io::Result<Listener> {
    let socket = open(address, SOCKET_BUFFER_BYTES, SOCKET_BUFFER_BYTES)?;
    socket.bind(&address.into())?;
    merge(&socket);
    let socket = net::UdpSocket::from(socket);
    let hosts = (0..HOST_LANES).map(|_| socket.try_clone());
    Ok(Listener {
        address: socket.local_addr()?,
        outlets: Outlets {
            local: socket.try_clone()?,
            doubtful: socket.try_clone()?,
            hosts: hosts.collect::<io::Result<_>>()?,
        },
        receiving: vec![(UdpSocket::from_std(socket), Reach::Everything)],
    })
}

#[cfg(not(target_os = "linux"))]
mod group {
    use super::*;

    pub(super) fn open(_: SocketAddr) -> io::Result<Listener> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A socket that is not bound yet.
fn open(
    address: SocketAddr,
    receive_buffer_bytes: usize,
    send_buffer_bytes: usize,
) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        // IPv4 has its own sockets.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    // The system grants what it allows; less than requested is not an error.
    socket.set_recv_buffer_size(receive_buffer_bytes)?;
    socket.set_send_buffer_size(send_buffer_bytes)?;
    errors::keep(&socket, address.is_ipv6())?;
    Ok(socket)
}

/// Makes the system return consecutive datagrams of one client together, if the network card or
/// loopback has not split them. Linux before 5.0 does not support this.
#[cfg(target_os = "linux")]
fn merge(socket: &socket2::Socket) {
    use nix::sys::socket::{setsockopt, sockopt::UdpGroSegment};
    let _ = setsockopt(socket, UdpGroSegment, &true);
}

#[cfg(not(target_os = "linux"))]
fn merge(_: &socket2::Socket) {}

/// Whether the system has granted less than half of the requested receive buffer. Linux doubles
/// the value for its own needs.
pub(super) fn has_little_room(socket: &UdpSocket) -> bool {
    let granted = socket2::SockRef::from(socket).recv_buffer_size();
    granted.is_ok_and(|bytes| bytes < SOCKET_BUFFER_BYTES)
}

/// Whether a socket may have more datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// No more: the batch was not full.
    Nothing,
    /// Unknown: the batch was full.
    Unknown,
}

/// Receives batches from one socket.
pub(super) struct Receiver {
    /// The size of the next batch: twice the size of the last result, because datagrams may be
    /// merged, and one turn must not take too many.
    room: usize,
    drops: Drops,
    /// The time of the last query.
    looked: Option<Instant>,
}

/// The numbers of datagrams that the system has dropped at a socket, as far as known.
#[derive(Clone, Copy, Debug, Default)]
struct Drops {
    all: u32,
    /// Those to several machines: every socket of the address drops them.
    to_groups: u32,
    /// How many more `to_groups` has than `all`, because it was queried later.
    early: u32,
}

impl Drops {
    /// The number of new drops that were not to groups. `to_groups` was queried after `all`.
    fn newly_lost(&mut self, all: u32, to_groups: u32) -> u32 {
        let newly = all.wrapping_sub(self.all);
        let newly_to_groups = to_groups.wrapping_sub(self.to_groups);
        let explained = newly_to_groups.saturating_add(self.early);
        *self = Self {
            all,
            to_groups,
            early: explained.saturating_sub(newly).min(newly_to_groups),
        };
        newly.saturating_sub(explained)
    }
}

/// The minimum of [`Receiver::room`], unless datagrams are merged. A batch that is not full shows
/// that the socket is empty, and saves a call that finds nothing: with 64 clients that wait for
/// their replies, some 25 requests come at once.
const ROOM: usize = 32;

impl Receiver {
    pub(super) fn new() -> Self {
        Self {
            room: ROOM,
            drops: Drops::default(),
            looked: None,
        }
    }

    /// The number of datagrams that the system has dropped since the last query, except those to
    /// several machines; there is at most one query per [`LOST_LOOK`]. `to_groups` returns the
    /// number of those.
    pub(super) fn newly_lost(
        &mut self,
        now: Instant,
        socket: &UdpSocket,
        to_groups: impl FnOnce() -> u32,
    ) -> u64 {
        let recently = |looked| now.duration_since(looked) < LOST_LOOK;
        if self.looked.is_some_and(recently) {
            return 0;
        }
        self.looked = Some(now);
        let Some(all) = batch::dropped(socket) else {
            return 0;
        };
        self.drops.newly_lost(all, to_groups()).into()
    }

    /// Receives about [`DATAGRAMS_PER_TURN`] datagrams. Merged datagrams are counted only
    /// afterwards, so one batch may have many times as many; then the next batch is smaller.
    pub(super) fn receive(
        &mut self,
        batch: &mut Batch,
        socket: &UdpSocket,
        mut each: impl FnMut(SocketAddr, &[u8]),
    ) -> io::Result<Rest> {
        let count = batch.receive(socket, self.room)?;
        let mut datagrams = 0_usize;
        for (from, bytes, segment) in batch.iter() {
            // An empty datagram also counts.
            let (first, others) = bytes.split_at(segment.min(bytes.len()));
            each(from, first);
            datagrams += 1;
            for bytes in others.chunks(segment) {
                each(from, bytes);
                datagrams += 1;
            }
        }
        let rest = match count < self.room {
            true => Rest::Nothing,
            false => Rest::Unknown,
        };
        let merged = datagrams.div_ceil(count.max(1)).max(1);
        let most = (DATAGRAMS_PER_TURN / merged).max(1);
        self.room = (2 * count).max(ROOM).min(most);
        Ok(rest)
    }
}

pub(super) fn to_std(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address
        .as_sockaddr_in()
        .map(|v4| SocketAddrV4::from(*v4).into());
    v4.or_else(|| {
        address
            .as_sockaddr_in6()
            .map(|v6| SocketAddrV6::from(*v6).into())
    })
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::super::neighbours::interfaces;
    use super::*;

    /// A socket that receives from programs on this machine.
    fn bind(ip: &str) -> io::Result<UdpSocket> {
        let listener = listen((ip.parse::<std::net::IpAddr>().unwrap(), 0).into())?;
        Ok(listener.receiving.into_iter().next_back().unwrap().0)
    }

    #[test]
    fn an_address_is_in_use_for_other_programs() {
        for ip in ["127.0.0.1", "0.0.0.0", "::1", "::"] {
            let ip: IpAddr = ip.parse().unwrap();
            let Ok(listener) = listen((ip, 0).into()) else {
                assert!(ip.is_ipv6());
                eprintln!("SKIP listening with IPv6: there is none here");
                continue;
            };
            let kind = listen(listener.address).err().map(|error| error.kind());
            assert_eq!(kind, Some(io::ErrorKind::AddrInUse), "{ip}");
            let other = open(listener.address, 1000, 1000).unwrap();
            other.set_reuse_address(true).unwrap();
            assert!(other.bind(&listener.address.into()).is_err(), "{ip}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn local_datagrams_arrive_only_at_the_local_socket() {
        let Listener {
            address,
            mut receiving,
            outlets,
        } = listen(([0, 0, 0, 0], 0).into()).unwrap();
        let (local, reach) = receiving.pop().unwrap();
        assert_eq!(reach, Reach::Local);
        let own = interfaces().into_iter().map(|interface| interface.address);
        let mut own: Vec<_> = own.collect();
        own.retain(IpAddr::is_ipv4);
        assert!(own.iter().any(IpAddr::is_loopback));
        let (mut receiver, mut batch) = (Receiver::new(), Batch::new());
        for ip in own {
            // Many ports, because the system must not select by port.
            for _ in 0..50 {
                let peer = net::UdpSocket::bind((ip, 0)).unwrap();
                peer.send_to(b"x", (ip, address.port())).unwrap();
                let mut from = None;
                let each = |address: SocketAddr, _: &[u8]| from = Some(address);
                receiver.receive(&mut batch, &local, each).unwrap();
                assert_eq!(from, Some(peer.local_addr().unwrap()));
                for outlet in [&outlets.local, &outlets.doubtful, &outlets.hosts[0]] {
                    outlet.send_to(b"y", from.unwrap()).unwrap();
                    let (_, from) = peer.recv_from(&mut [0; 9]).unwrap();
                    assert_eq!(from.port(), address.port());
                }
            }
        }
    }

    #[test]
    fn a_full_batch_leaves_the_rest() {
        let socket = bind("127.0.0.1").unwrap();
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let count = 3 * DATAGRAMS_PER_TURN + 1;
        for number in 0..count {
            let bytes = number.to_be_bytes();
            peer.send_to(&bytes, socket.local_addr().unwrap()).unwrap();
        }
        let (mut receiver, mut batch) = (Receiver::new(), Batch::new());
        let (mut taken, mut batches) = (0_usize, Vec::new());
        loop {
            let before = taken;
            let rest = receiver.receive(&mut batch, &socket, |from, bytes| {
                assert_eq!(from, peer.local_addr().unwrap());
                assert_eq!(bytes, taken.to_be_bytes());
                taken += 1;
            });
            batches.push(taken - before);
            if rest.unwrap() == Rest::Nothing {
                break;
            }
        }
        assert_eq!(taken, count);
        assert!(batches.iter().all(|batch| *batch <= DATAGRAMS_PER_TURN));
        let nothing = receiver.receive(&mut batch, &socket, |_, _| unreachable!());
        assert_eq!(nothing.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn drops_of_datagrams_to_groups_are_not_losses() {
        let mut drops = Drops::default();
        let mut check = |all, to_groups, lost| {
            assert_eq!(drops.newly_lost(all, to_groups), lost, "{drops:?}");
        };
        check(10, 10, 0);
        check(25, 20, 5);
        // Two more arrive between the two queries, and are found in the other number later.
        check(25, 22, 0);
        check(27, 22, 0);
        check(28, 22, 1);
        // A socket that takes what the others drop hides no later loss.
        check(28, 30, 0);
        check(28, 30, 0);
        check(29, 30, 1);
        // The numbers wrap around.
        check(u32::MAX, 30, u32::MAX - 29);
        check(1, 31, 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn dropped_datagrams_are_counted() {
        let socket = bind("127.0.0.1").unwrap();
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let (mut receiver, mut batch) = (Receiver::new(), Batch::new());
        let mut now = Instant::now();
        assert_eq!(receiver.newly_lost(now, &socket, || 0), 0);
        let (mut taken, mut lost) = (0, 0);
        let count = 2 * SOCKET_BUFFER_BYTES as u64 / 60_000;
        for _ in 0..2 {
            for _ in 0..count {
                let to = socket.local_addr().unwrap();
                assert_eq!(peer.send_to(&[1; 60_000], to).unwrap(), 60_000);
            }
            // The next query comes later.
            assert_eq!(receiver.newly_lost(now, &socket, || 0), 0);
            now += LOST_LOOK;
            let newly = receiver.newly_lost(now, &socket, || 0);
            assert!(newly > 0);
            lost += newly;
            while receiver
                .receive(&mut batch, &socket, |_, _| taken += 1)
                .is_ok()
            {}
        }
        assert_eq!(taken + lost, 2 * count);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn merged_datagrams_are_split_on_arrival() {
        use std::io::IoSlice;
        use std::os::fd::AsRawFd;

        use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

        for ip in ["127.0.0.1", "::1"] {
            let Ok(socket) = bind(ip) else {
                assert_eq!(ip, "::1");
                eprintln!("SKIP receiving with IPv6: there is none here");
                continue;
            };
            let peers = [(); 2].map(|()| std::net::UdpSocket::bind((ip, 0)).unwrap());
            let to = SockaddrStorage::from(socket.local_addr().unwrap());
            // Sender, length of each datagram, and total length.
            let mut expected = Vec::new();
            for (round, (peer, segment, all)) in [
                (0, 50, 50 * 40),
                (1, 50, 50 * 3 + 7),
                (0, 1200, 1200 * 9 + 1),
                (1, 20, 20),
            ]
            .into_iter()
            .cycle()
            .take(40)
            .enumerate()
            {
                let bytes: Vec<u8> = (0..all).map(|i| (i / segment + round) as u8).collect();
                let cut = segment as u16;
                let socket = peers[peer].as_raw_fd();
                let (bytes, cut) = (
                    [IoSlice::new(&bytes)],
                    [ControlMessage::UdpGsoSegments(&cut)],
                );
                let sent = sendmsg(socket, &bytes, &cut, MsgFlags::empty(), Some(&to));
                if sent.is_err() {
                    eprintln!("SKIP merged datagrams: this system cannot cut them");
                    return;
                }
                let from = peers[peer].local_addr().unwrap();
                let datagrams = bytes[0].chunks(segment);
                expected.extend(datagrams.map(|datagram| (from, datagram.to_vec())));
            }
            let (mut receiver, mut batch) = (Receiver::new(), Batch::new());
            let (mut taken, mut calls) = (Vec::new(), 0);
            while taken.len() < expected.len() {
                let each = |from, bytes: &[u8]| taken.push((from, bytes.to_vec()));
                receiver.receive(&mut batch, &socket, each).unwrap();
                assert!(receiver.room <= 4, "about {DATAGRAMS_PER_TURN} at once");
                calls += 1;
            }
            assert!(taken == expected, "{ip}");
            assert!(calls < 40, "{calls} calls for 40");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn single_datagrams_stay_whole_after_merged_ones() {
        use std::io::IoSlice;
        use std::os::fd::AsRawFd;

        use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

        let socket = bind("127.0.0.1").unwrap();
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        peer.connect(socket.local_addr().unwrap()).unwrap();
        let (mut receiver, mut batch) = (Receiver::new(), Batch::new());
        // Each batch reuses the buffers of the previous one.
        let mut receive = || {
            let mut lengths = Vec::new();
            let each = |_, bytes: &[u8]| lengths.push(bytes.len());
            receiver.receive(&mut batch, &socket, each).unwrap();
            lengths
        };
        for _ in 0..2 {
            let cut = [ControlMessage::UdpGsoSegments(&50)];
            let bytes = [IoSlice::new(&[1; 150])];
            let sent = sendmsg::<()>(peer.as_raw_fd(), &bytes, &cut, MsgFlags::empty(), None);
            if sent.is_ok() {
                assert_eq!(receive(), [50, 50, 50]);
            } else {
                eprintln!("SKIP merged datagrams: this system cannot cut them");
            }
            for length in [700, 0, 65_507] {
                peer.send(&vec![2; length]).unwrap();
                assert_eq!(receive(), [length]);
            }
        }
    }
}
