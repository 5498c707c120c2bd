//! Datagrams out, as many as possible with one system call. IO.
//!
//! Several datagrams for one client leave as one that the system cuts apart
//! (UDP segmentation offload), which takes the way through the network stack
//! only once; those for different clients leave with one `sendmmsg`.

use std::io::IoSlice;
use std::iter;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use mio::net::UdpSocket;
use nix::errno::Errno;
use nix::sys::socket::{
    MsgFlags, MultiHeaders, SockaddrIn, SockaddrIn6, SockaddrLike, SockaddrStorage, sendmmsg,
    sendmsg, sendto,
};
use tracing::debug;

use super::errors;
use crate::counters::{Count, Counters, Drop};
use crate::limits::{DATAGRAMS_PER_TURN, SEGMENTS, SEND_TRIES};
use crate::router::{ClientAddress, Outbox, Run, Unreachable};

/// Sends batches.
pub(super) struct Sender {
    v4: MultiHeaders<SockaddrIn>,
    v6: MultiHeaders<SockaddrIn6>,
    /// How many datagrams the system may be given as one.
    segments: usize,
}

impl Sender {
    pub(super) fn new() -> Self {
        Self {
            v4: MultiHeaders::preallocate(DATAGRAMS_PER_TURN, None),
            v6: MultiHeaders::preallocate(DATAGRAMS_PER_TURN, None),
            segments: if cfg!(target_os = "linux") {
                SEGMENTS
            } else {
                1
            },
        }
    }

    /// Sends everything, in order per socket, and never waits: what the system
    /// does not take is dropped and counted. Returns the addresses to which
    /// there is no way at the moment.
    pub(super) fn send(
        &mut self,
        sockets: &[UdpSocket],
        outbox: &Outbox,
        counters: &mut Counters,
    ) -> Vec<ClientAddress> {
        let mut unreachable = Vec::new();
        for (index, socket) in sockets.iter().enumerate() {
            let by = Socket {
                socket,
                index: index as u8,
            };
            self.send_by(&by, outbox, counters, &mut unreachable);
        }
        unreachable
    }

    fn send_by(
        &mut self,
        by: &Socket<'_>,
        outbox: &Outbox,
        counters: &mut Counters,
        unreachable: &mut Vec<ClientAddress>,
    ) {
        let (mut next, mut tries) = (0, 0);
        while let Some(run) = outbox.run_at(next, self.segments) {
            if !by.is_for(&run) {
                next += run.len();
                continue;
            }
            match self.send_some(by, outbox, next, &run) {
                Ok(sent) => {
                    counters.count_many(Count::DatagramsSent, sent.datagrams);
                    next = sent.next;
                    tries = 0;
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN | Errno::ENOBUFS) => {
                    let rest = outbox.datagrams().skip(next);
                    let ours = rest.filter(|(to, _)| to.socket == by.index).count();
                    counters.drop_many(Drop::SendBufferFull, ours as u64);
                    return;
                }
                // This network card, or this link, or this system cannot do it.
                Err(error @ (Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE)) if run.len() > 1 => {
                    debug!(%error, "datagrams are sent one by one from now on");
                    self.segments = 1;
                }
                // Most likely another address refused something earlier, which
                // is told only once: this one must not lose its datagram by it.
                Err(_) if tries + 1 < SEND_TRIES => {
                    counters.count(Count::SendsRepeated);
                    tries += 1;
                }
                // This address cannot be reached; the others can.
                Err(error) => {
                    counters.drop_many(Drop::SendFailed, run.len() as u64);
                    debug!(%error, "a datagram could not be sent");
                    // A refusal cannot be told so soon: it is another's.
                    if errors::classify(error) == Some(Unreachable::NoRoute) {
                        unreachable.push(run.to.into());
                    }
                    next += run.len();
                    tries = 0;
                }
            }
        }
    }

    /// Sends the run that begins with the datagram `next`, or it and as many of the
    /// following ones as are single datagrams.
    fn send_some(
        &mut self,
        by: &Socket<'_>,
        outbox: &Outbox,
        next: usize,
        run: &Run<'_>,
    ) -> nix::Result<Sent> {
        let after = next + run.len();
        let all = Sent {
            datagrams: run.len() as u64,
            next: after,
        };
        if run.len() > 1 {
            return send_run(by.socket, run).map(|()| all);
        }
        let segments = self.segments;
        let others = by.singles(outbox, after, segments);
        if others.clone().next().is_none() {
            return send_one(by.socket, run).map(|()| all);
        }
        let singles = iter::once((next, *run)).chain(others);
        // A socket has addresses of one kind.
        match run.to.address() {
            SocketAddr::V4(_) => send_many(by.socket, &mut self.v4, singles, v4),
            SocketAddr::V6(_) => send_many(by.socket, &mut self.v6, singles, v6),
        }
    }
}

/// One of our sockets.
struct Socket<'a> {
    socket: &'a UdpSocket,
    index: u8,
}

impl Socket<'_> {
    fn is_for(&self, run: &Run<'_>) -> bool {
        run.to.socket() == self.index
    }

    /// The single datagrams of this socket from the datagram `next` on, with their
    /// numbers; they end where datagrams for one client make a longer run.
    fn singles<'b>(
        &self,
        outbox: &'b Outbox,
        mut next: usize,
        segments: usize,
    ) -> impl Iterator<Item = (usize, Run<'b>)> + Clone {
        let runs = iter::from_fn(move || {
            let (at, run) = (next, outbox.run_at(next, segments)?);
            next += run.len();
            Some((at, run))
        });
        let ours = runs.filter(|(_, run)| self.is_for(run));
        ours.take_while(|(_, run)| run.len() == 1)
    }
}

/// What the system has taken.
#[derive(Clone, Copy, Debug)]
struct Sent {
    datagrams: u64,
    /// The datagram that comes then.
    next: usize,
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

/// Sends single datagrams with one call, at most [`DATAGRAMS_PER_TURN`]. Nothing is allocated
/// for it: when this comes after a pause, all memory that is touched is cold.
fn send_many<'a, A: SockaddrLike + Copy>(
    socket: &UdpSocket,
    headers: &mut MultiHeaders<A>,
    singles: impl Iterator<Item = (usize, Run<'a>)>,
    to: impl Fn(SocketAddr) -> Option<A>,
) -> nix::Result<Sent> {
    let mut slices = [[IoSlice::new(&[])]; DATAGRAMS_PER_TURN];
    let mut addresses = [None; DATAGRAMS_PER_TURN];
    let mut numbers = [0; DATAGRAMS_PER_TURN];
    let mut count = 0;
    for (number, run) in singles.take(DATAGRAMS_PER_TURN) {
        slices[count] = [IoSlice::new(run.bytes)];
        addresses[count] = to(run.to.address());
        numbers[count] = number;
        count += 1;
    }
    let (slices, addresses) = (&slices[..count], &addresses[..count]);
    let flags = MsgFlags::MSG_DONTWAIT;
    let sent = sendmmsg(socket.as_raw_fd(), headers, slices, addresses, [], flags)?;
    let sent = sent.count().max(1);
    Ok(Sent {
        datagrams: sent as u64,
        next: numbers[sent - 1] + 1,
    })
}

/// Sends a single datagram, which is what most turns have: the call for many
/// has more to prepare.
fn send_one(socket: &UdpSocket, run: &Run<'_>) -> nix::Result<()> {
    let to = SockaddrStorage::from(run.to.address());
    let flags = MsgFlags::MSG_DONTWAIT;
    sendto(socket.as_raw_fd(), run.bytes, &to, flags).map(drop)
}

/// Sends datagrams as one that the system cuts apart.
#[cfg(target_os = "linux")]
fn send_run(socket: &UdpSocket, run: &Run<'_>) -> nix::Result<()> {
    use nix::sys::socket::ControlMessage;
    let segment = run.segment as u16; // At most LOCAL_SEGMENT_BYTES.
    let cut = [ControlMessage::UdpGsoSegments(&segment)];
    let to = SockaddrStorage::from(run.to.address());
    let bytes = [IoSlice::new(run.bytes)];
    sendmsg(
        socket.as_raw_fd(),
        &bytes,
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

    use super::super::udp::bind;
    use super::*;

    fn one_socket(ip: IpAddr) -> Option<[UdpSocket; 1]> {
        let bound = bind((ip, 0).into());
        let Ok(socket) = bound else {
            assert!(ip.is_ipv6());
            eprintln!("SKIP sending with IPv6: there is none here");
            return None;
        };
        Some([socket])
    }

    fn peer(ip: IpAddr) -> (std::net::UdpSocket, ClientAddress) {
        let peer = std::net::UdpSocket::bind((ip, 0)).unwrap();
        peer.set_nonblocking(true).unwrap();
        let address = peer.local_addr().unwrap();
        (peer, ClientAddress { socket: 0, address })
    }

    /// Datagrams to closed ports between datagrams to a live one.
    fn closed_ports_cost_others_nothing(ip: IpAddr) {
        const ROUNDS: usize = 100;
        let Some(sockets) = one_socket(ip) else {
            return;
        };
        let (live, live_address) = peer(ip);
        let (_, closed) = peer(ip);
        let (mut sender, mut counters) = (Sender::new(), Counters::default());
        let mut buffer = [0; 64];
        for round in 0..ROUNDS {
            let mut outbox = Outbox::default();
            let frame = outbox.write(b"", &round.to_be_bytes()).unwrap();
            for to in [closed, live_address, closed] {
                outbox.send(to, &frame);
            }
            assert_eq!(sender.send(&sockets, &outbox, &mut counters), []);
            let length = live.recv(&mut buffer).expect("nothing is lost");
            assert!(buffer[..length].ends_with(&round.to_be_bytes()));
        }
        assert_eq!(counters.dropped(Drop::SendFailed), 0);
        assert_eq!(counters.counted(Count::DatagramsSent), 3 * ROUNDS as u64);
        assert!(counters.counted(Count::SendsRepeated) > 0);

        let told = Cell::new(0);
        let note = |address, how| {
            assert_eq!((address, how), (closed.address, Unreachable::PortClosed));
            told.set(told.get() + 1);
        };
        while told.get() == 0 {
            errors::take(&sockets[0], note).unwrap();
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

    /// Sends datagrams, each for one of two peers and of some length; they
    /// arrive as they were, and in order.
    fn check(
        sender: &mut Sender,
        sockets: &[UdpSocket; 1],
        ip: IpAddr,
        datagrams: &[(usize, usize)],
    ) {
        let peers = [peer(ip), peer(ip)];
        let (mut outbox, mut counters) = (Outbox::default(), Counters::default());
        for (number, (peer, bytes)) in datagrams.iter().enumerate() {
            let frame = outbox.write(&[], &vec![number as u8; *bytes]).unwrap();
            outbox.send(peers[*peer].1, &frame);
        }
        assert_eq!(sender.send(sockets, &outbox, &mut counters), []);
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
    fn runs_are_cut_apart_by_the_system() {
        let length = |i: usize| if i.is_multiple_of(17) { 300 } else { 50 };
        let datagrams: Vec<_> = (0..100).map(|i| (i / 40 % 2, length(i))).collect();
        for ip in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
            let Some(sockets) = one_socket(ip) else {
                continue;
            };
            let mut sender = Sender::new();
            check(&mut sender, &sockets, ip, &datagrams);
            check(&mut sender, &sockets, ip, &[(0, 6800); 10]);
            assert_eq!(sender.segments, SEGMENTS);
        }
    }

    #[test]
    fn each_leaves_by_its_own_socket_and_in_order() {
        const COUNT: u8 = 200;
        let ip = Ipv4Addr::LOCALHOST.into();
        let sockets = [(); 2].map(|()| bind((ip, 0).into()).unwrap());
        let peers = [peer(ip), peer(ip)];
        let (mut sender, mut counters) = (Sender::new(), Counters::default());
        let mut outbox = Outbox::default();
        // Now and then two in a row for one client make a run.
        let way = |number: u8| (usize::from(number % 3 % 2), number / 5 % 2);
        for number in 0..COUNT {
            let frame = outbox.write(&[], &[number]).unwrap();
            let (peer, socket) = way(number);
            let address = peers[peer].1.address;
            outbox.send(ClientAddress { socket, address }, &frame);
        }
        assert_eq!(sender.send(&sockets, &outbox, &mut counters), []);
        let sent = counters.counted(Count::DatagramsSent);
        assert_eq!(sent, u64::from(COUNT));
        for socket in 0..2 {
            for number in (0..COUNT).filter(|number| way(*number).1 == socket) {
                let mut buffer = [0; 10];
                let peer = &peers[way(number).0].0;
                // Socket by socket, so those of the first come first.
                let (length, from) = peer.recv_from(&mut buffer).unwrap();
                assert_eq!(buffer[..length].last(), Some(&number));
                let socket = &sockets[usize::from(socket)];
                assert_eq!(from, socket.local_addr().unwrap());
            }
        }
    }

    #[test]
    fn a_system_that_cannot_cut_is_not_asked_again() {
        let ip = Ipv4Addr::LOCALHOST.into();
        let sockets = one_socket(ip).unwrap();
        let mut sender = Sender::new();
        // More than any Linux takes.
        sender.segments = 1000;
        for _ in 0..2 {
            check(&mut sender, &sockets, ip, &[(0, 20); 150]);
            assert_eq!(sender.segments, 1);
        }
    }
}
