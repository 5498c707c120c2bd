//! Sockets, and datagrams in, many with one system call. IO.

use std::io;
use std::net::{self, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::time::Instant;

use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};
use nix::sys::socket::SockaddrStorage;
use socket2::{Domain, Protocol, Type};
use tracing::debug;

use super::batch::{self, Batch};
use super::errors;
use crate::limits::{
    BUSY_DATAGRAMS, DATAGRAMS_PER_TURN, DOUBTFUL_BUFFER_BYTES, HOST_LANES, LOST_LOOK,
    SOCKET_BUFFER_BYTES,
};
use crate::origin::Reach;

/// The sockets of one address that the mediator listens on; all have the same address and
/// port.
pub(super) struct Listener {
    pub(super) address: SocketAddr,
    /// What comes in, and by which way.
    pub(super) receiving: Vec<(UdpSocket, Reach)>,
    pub(super) outlets: Outlets,
}

/// The sockets that send. They are many, so that no destination takes the room in the send
/// buffer that others need: see [`Lanes`](crate::lanes::Lanes).
pub(super) struct Outlets {
    /// To programs on this machine.
    pub(super) local: net::UdpSocket,
    /// To addresses that may not exist.
    pub(super) doubtful: net::UdpSocket,
    /// To hosts on the network.
    pub(super) hosts: Vec<net::UdpSocket>,
}

/// Takes an address, with all sockets for it. They are not watched yet.
///
/// Linux hands a datagram to the socket that was bound last, and to one that is bound to the
/// interface by which it came before that. So the sockets that send are bound first. They
/// never receive anything. What the network says of addresses that do not answer goes to the
/// sockets that receive, too.
#[cfg(target_os = "linux")]
pub(super) fn listen(address: SocketAddr) -> io::Result<Listener> {
    // The first one shares the address with nobody: an address in use is an error.
    let local = open(address, SOCKET_BUFFER_BYTES)?;
    local.bind(&address.into())?;
    let address = local.local_addr()?.as_socket().unwrap_or(address);
    local.set_reuse_address(true)?;
    let another = |send_buffer_bytes| {
        let socket = open(address, send_buffer_bytes)?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        Ok::<_, io::Error>(socket)
    };
    let doubtful = another(DOUBTFUL_BUFFER_BYTES)?;
    let hosts: Vec<_> = (0..HOST_LANES)
        .map(|_| another(SOCKET_BUFFER_BYTES))
        .collect::<io::Result<_>>()?;
    let mut receiving = vec![(another(SOCKET_BUFFER_BYTES)?, Reach::Network)];
    let loopback = open(address, SOCKET_BUFFER_BYTES)?;
    match loopback.bind_device(Some(LOOPBACK)) {
        Ok(()) => {
            loopback.set_reuse_address(true)?;
            loopback.bind(&address.into())?;
            receiving.push((loopback, Reach::Loopback));
        }
        Err(error) => {
            // Linux before 5.7 lets only root do that.
            debug!(%error, "loopback addresses are believed as far as the system checks them");
            receiving[0].1 = Reach::Everything;
        }
    }
    for (socket, _) in &receiving {
        merge(socket);
    }
    // From now on nobody can join us.
    for socket in receiving.iter().map(|(socket, _)| socket) {
        socket.set_reuse_address(false)?;
    }
    for socket in hosts.iter().chain([&local, &doubtful]) {
        socket.set_reuse_address(false)?;
    }
    let watchable = |socket: socket2::Socket| UdpSocket::from_std(socket.into());
    Ok(Listener {
        address,
        receiving: receiving
            .into_iter()
            .map(|(socket, reach)| (watchable(socket), reach))
            .collect(),
        outlets: Outlets {
            local: local.into(),
            doubtful: doubtful.into(),
            hosts: hosts.into_iter().map(Into::into).collect(),
        },
    })
}

/// The same where sockets cannot share an address so: one does everything.
#[cfg(not(target_os = "linux"))]
pub(super) fn listen(address: SocketAddr) -> io::Result<Listener> {
    let socket = open(address, SOCKET_BUFFER_BYTES)?;
    socket.bind(&address.into())?;
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

/// The name of the loopback interface of every Linux.
#[cfg(target_os = "linux")]
const LOOPBACK: &[u8] = b"lo";

/// A socket that is not bound yet.
fn open(address: SocketAddr, send_buffer_bytes: usize) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        // IPv4 has sockets of its own.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    // The system grants what it allows; less than asked for is no error.
    socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.set_send_buffer_size(send_buffer_bytes)?;
    errors::keep(&socket, address.is_ipv6())?;
    Ok(socket)
}

/// Asks the system to hand over in one piece what one client has sent in a row, and
/// network card or loopback have not cut apart. Linux before 5.0 does not know it.
#[cfg(target_os = "linux")]
fn merge(socket: &socket2::Socket) {
    use nix::sys::socket::{setsockopt, sockopt::UdpGroSegment};
    let _ = setsockopt(socket, UdpGroSegment, &true);
}

/// Whether the system has granted less than half of the receive buffer that it was asked
/// for. Linux doubles what it grants, for its own needs.
pub(super) fn has_little_room(socket: &UdpSocket) -> bool {
    let granted = socket2::SockRef::from(socket).recv_buffer_size();
    granted.is_ok_and(|bytes| bytes < SOCKET_BUFFER_BYTES)
}

/// What is left in a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// The batch was short: it has emptied the socket.
    Nothing,
    /// There was no room for more.
    Unknown,
}

/// Receives batches from one socket.
pub(super) struct Receiver {
    /// How many there is room for: preparing it costs time, too, so it is twice
    /// as many as came last.
    room: usize,
    /// How many came last.
    last: usize,
    /// The system wakes us when something comes.
    watched: bool,
    /// How many the system has dropped, as far as is known, and since when.
    dropped: u32,
    looked: Option<Instant>,
}

/// The least of [`Receiver::room`], unless they are merged.
const ROOM: usize = 4;

impl Receiver {
    pub(super) fn new() -> Self {
        Self {
            room: ROOM,
            last: 0,
            watched: false,
            dropped: 0,
            looked: None,
        }
    }

    /// A socket with much to do is not watched, but looked at in each turn until it
    /// is empty: of a watched one the system also notes, for each datagram that
    /// has left, that there is room for another.
    pub(super) fn adjust_watch(
        &mut self,
        registry: &Registry,
        socket: &mut UdpSocket,
        token: Token,
    ) -> io::Result<()> {
        if self.watched && self.last >= BUSY_DATAGRAMS {
            registry.deregister(socket)?;
            self.watched = false;
        } else if !self.watched && self.last == 0 {
            // What has come meanwhile wakes us at once.
            registry.register(socket, token, Interest::READABLE)?;
            self.watched = true;
        }
        Ok(())
    }

    pub(super) fn is_watched(&self) -> bool {
        self.watched
    }

    /// How many datagrams the system has dropped since this was last found out; it is
    /// looked for every [`LOST_LOOK`] at most.
    pub(super) fn newly_lost(&mut self, now: Instant, socket: &UdpSocket) -> u64 {
        let recently = |looked| now.duration_since(looked) < LOST_LOOK;
        if self.looked.is_some_and(recently) {
            return 0;
        }
        self.looked = Some(now);
        let Some(dropped) = batch::dropped(socket) else {
            return 0;
        };
        let before = std::mem::replace(&mut self.dropped, dropped);
        dropped.wrapping_sub(before).into()
    }

    /// Takes what is there: about [`DATAGRAMS_PER_TURN`]. How many the system has
    /// merged is known only afterwards, so it may once be many times as many; the
    /// next batch is smaller then.
    pub(super) fn receive(
        &mut self,
        batch: &mut Batch,
        socket: &UdpSocket,
        mut each: impl FnMut(SocketAddr, &[u8]),
    ) -> io::Result<Rest> {
        self.last = 0;
        let count = batch.receive(socket, self.room)?;
        let mut datagrams = 0;
        for (from, bytes, segment) in batch.iter() {
            // One without bytes is one all the same.
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
        self.last = datagrams;
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
    use super::*;

    /// A socket that gets what programs on this machine send.
    fn bind(ip: &str) -> io::Result<UdpSocket> {
        let listener = listen((ip.parse::<std::net::IpAddr>().unwrap(), 0).into())?;
        Ok(listener.receiving.into_iter().next_back().unwrap().0)
    }

    #[test]
    fn a_batch_leaves_what_is_too_much_for_it() {
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

    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_system_drops_is_known() {
        let socket = bind("127.0.0.1").unwrap();
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let (mut receiver, mut batch) = (Receiver::new(), Batch::new());
        let mut now = Instant::now();
        assert_eq!(receiver.newly_lost(now, &socket), 0);
        let (mut taken, mut lost) = (0, 0);
        let count = 2 * SOCKET_BUFFER_BYTES as u64 / 60_000;
        for _ in 0..2 {
            for _ in 0..count {
                let to = socket.local_addr().unwrap();
                assert_eq!(peer.send_to(&[1; 60_000], to).unwrap(), 60_000);
            }
            // Not so soon again.
            assert_eq!(receiver.newly_lost(now, &socket), 0);
            now += LOST_LOOK;
            let newly = receiver.newly_lost(now, &socket);
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
    fn what_was_sent_as_one_is_taken_apart() {
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
            // By whom, how long each is, and how long all are.
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
                assert!(receiver.room <= ROOM, "about {DATAGRAMS_PER_TURN} at once");
                calls += 1;
            }
            assert!(taken == expected, "{ip}");
            assert!(calls < 40, "{calls} calls for 40");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_was_sent_alone_stays_whole_after_what_was_merged() {
        use std::io::IoSlice;
        use std::os::fd::AsRawFd;

        use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

        let socket = bind("127.0.0.1").unwrap();
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        peer.connect(socket.local_addr().unwrap()).unwrap();
        let (mut receiver, mut batch) = (Receiver::new(), Batch::new());
        // Each in the place of the one before.
        let mut receive = || {
            let mut lengths = Vec::new();
            let each = |_, bytes: &[u8]| lengths.push(bytes.len());
            receiver.receive(&mut batch, &socket, each).unwrap();
            (lengths.clone(), receiver.last)
        };
        for _ in 0..2 {
            let cut = [ControlMessage::UdpGsoSegments(&50)];
            let bytes = [IoSlice::new(&[1; 150])];
            let sent = sendmsg::<()>(peer.as_raw_fd(), &bytes, &cut, MsgFlags::empty(), None);
            if sent.is_ok() {
                assert_eq!(receive(), (vec![50, 50, 50], 3));
            } else {
                eprintln!("SKIP merged datagrams: this system cannot cut them");
            }
            for length in [700, 0, 65_507] {
                peer.send(&vec![2; length]).unwrap();
                assert_eq!(receive(), (vec![length], 1));
            }
        }
    }
}
