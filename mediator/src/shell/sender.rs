//! Datagrams out, as many as possible with one system call. IO.
//!
//! Several datagrams for one client leave as one that the system cuts apart
//! (UDP segmentation offload), which takes the way through the network stack
//! only once; those for different clients leave with one `sendmmsg`.

use std::io::IoSlice;
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
        for (i, socket) in sockets.iter().enumerate() {
            let runs = outbox.runs(self.segments);
            let mut runs = runs.filter(|run| usize::from(run.to.socket()) == i);
            // A batch after the other, so that what is read of each is at hand.
            loop {
                let batch: Vec<_> = runs.by_ref().take(DATAGRAMS_PER_TURN).collect();
                if batch.is_empty() {
                    break;
                }
                self.send_by(socket, batch, counters, &mut unreachable);
            }
        }
        unreachable
    }

    fn send_by(
        &mut self,
        socket: &UdpSocket,
        mut runs: Vec<Run<'_>>,
        counters: &mut Counters,
        unreachable: &mut Vec<ClientAddress>,
    ) {
        let datagrams = |runs: &[Run<'_>]| runs.iter().map(|run| run.len() as u64).sum();
        let (mut done, mut tries) = (0, 0);
        while let Some(run) = runs.get(done).copied() {
            match self.send_some(socket, &runs[done..]) {
                Ok(sent) => {
                    counters.count_many(Count::DatagramsSent, datagrams(&runs[done..done + sent]));
                    done += sent;
                    tries = 0;
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN | Errno::ENOBUFS) => {
                    counters.drop_many(Drop::SendBufferFull, datagrams(&runs[done..]));
                    return;
                }
                // This network card, or this link, or this system cannot do it.
                Err(error @ (Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE)) if run.len() > 1 => {
                    debug!(%error, "datagrams are sent one by one from now on");
                    self.segments = 1;
                    runs.splice(done..=done, run.datagrams());
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
                    done += 1;
                    tries = 0;
                }
            }
        }
    }

    /// Sends the first run, or as many of the first ones as are single
    /// datagrams. Returns how many runs that were.
    fn send_some(&mut self, socket: &UdpSocket, runs: &[Run<'_>]) -> nix::Result<usize> {
        let singles = runs.iter().take(DATAGRAMS_PER_TURN);
        let singles = singles.take_while(|run| run.len() == 1);
        match singles.clone().count() {
            0 => send_run(socket, &runs[0]).map(|()| 1),
            1 => send_one(socket, &runs[0]).map(|()| 1),
            count => {
                let singles = &runs[..count];
                // A socket has addresses of one kind.
                match singles[0].to.address() {
                    SocketAddr::V4(_) => send_many(socket, &mut self.v4, singles, v4),
                    SocketAddr::V6(_) => send_many(socket, &mut self.v6, singles, v6),
                }
            }
        }
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

/// Sends single datagrams with one call; says how many the system took.
fn send_many<A: SockaddrLike + Copy>(
    socket: &UdpSocket,
    headers: &mut MultiHeaders<A>,
    singles: &[Run<'_>],
    to: impl Fn(SocketAddr) -> Option<A>,
) -> nix::Result<usize> {
    let slices: Vec<_> = (singles.iter())
        .map(|run| [IoSlice::new(run.bytes)])
        .collect();
    let to: Vec<_> = (singles.iter()).map(|run| to(run.to.address())).collect();
    let flags = MsgFlags::MSG_DONTWAIT;
    let sent = sendmmsg(socket.as_raw_fd(), headers, &slices, &to, [], flags);
    sent.map(|sent| sent.count().max(1))
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
