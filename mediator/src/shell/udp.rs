//! Datagrams in and out, many with one system call. IO.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg};
use socket2::{Domain, Protocol, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tracing::debug;

use super::errors;
use crate::counters::{Count, Counters, Drop};
use crate::limits::{DATAGRAMS_PER_TURN, SEND_TRIES, SOCKET_BUFFER_BYTES};
use crate::router::{ClientAddress, Outbox, Unreachable};

/// Room for any datagram.
const BUFFER: usize = 1 << 16;

/// A socket that is bound, but not watched yet.
pub(super) fn bind(address: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = socket2::Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        // IPv4 has a socket of its own.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    // The system grants what it allows; less than asked for is no error.
    socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    errors::keep(&socket, address.is_ipv6())?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Waits for datagrams and hands a batch of them to `batch`, which returns how
/// many it took. After a full batch others have their turn: a socket that is
/// never empty is always ready, and awaiting that gives way to nobody.
///
/// What is known of addresses that cannot be reached goes to `unreachable`, and
/// before the datagrams: who comes from such an address after that is new.
///
/// Cancelling loses nothing: what was not handed over is still in the socket.
pub(super) async fn receive(
    socket: &UdpSocket,
    mut unreachable: impl FnMut(SocketAddr, Unreachable),
    batch: impl FnOnce() -> io::Result<usize>,
) -> io::Result<()> {
    let ready = socket.ready(Interest::READABLE | Interest::ERROR).await?;
    if ready.is_error() {
        let taken = socket.try_io(Interest::ERROR, || {
            match errors::take(socket, &mut unreachable)? {
                true => Ok(()),
                false => Err(ErrorKind::WouldBlock.into()),
            }
        });
        taken.or_else(|error| match error.kind() {
            ErrorKind::WouldBlock => Ok(()),
            _ => Err(error),
        })?;
    }
    let received = socket.try_io(Interest::READABLE, || match batch()? {
        // A short batch has emptied the socket, which is as good as an error
        // that says so, and saves asking. What comes next wakes us again.
        count if count < DATAGRAMS_PER_TURN => Err(ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    });
    match received {
        Ok(()) => {
            tokio::task::yield_now().await;
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}

/// What a batch is received into: one for each socket, because the system is
/// not told anew how long an address may be, and those of IPv6 are longer.
pub(super) struct Receiver {
    buffers: Vec<u8>,
    headers: MultiHeaders<SockaddrStorage>,
}

impl Receiver {
    pub(super) fn new() -> Self {
        // Zeroed pages cost nothing until a datagram needs them.
        let buffers = vec![0; DATAGRAMS_PER_TURN * BUFFER];
        Self {
            buffers,
            headers: MultiHeaders::preallocate(DATAGRAMS_PER_TURN, None),
        }
    }

    /// Takes what is there, at most [`DATAGRAMS_PER_TURN`].
    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        mut each: impl FnMut(SocketAddr, &[u8]),
    ) -> io::Result<usize> {
        let mut slices: Vec<_> = self
            .buffers
            .chunks_exact_mut(BUFFER)
            .map(|chunk| [IoSliceMut::new(chunk)])
            .collect();
        let fd = socket.as_raw_fd();
        let flags = MsgFlags::MSG_DONTWAIT;
        let mut count = 0;
        for message in recvmmsg(fd, &mut self.headers, &mut slices, flags, None)? {
            count += 1;
            let bytes = message.iovs().next().unwrap_or_default();
            if let Some(from) = message.address.and_then(|address| to_std(&address)) {
                each(from, bytes);
            }
        }
        Ok(count)
    }
}

/// Sends batches.
pub(super) struct Sender {
    headers: MultiHeaders<SockaddrStorage>,
    addresses: Vec<Option<SockaddrStorage>>,
}

impl Sender {
    pub(super) fn new() -> Self {
        let headers = MultiHeaders::preallocate(DATAGRAMS_PER_TURN, None);
        Self {
            headers,
            addresses: Vec::with_capacity(DATAGRAMS_PER_TURN),
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
        let mut slices = Vec::with_capacity(outbox.datagrams().len().min(DATAGRAMS_PER_TURN));
        for (i, socket) in sockets.iter().enumerate() {
            let mut datagrams = outbox
                .datagrams()
                .filter(|(to, _)| usize::from(to.socket) == i)
                .map(|(to, frame)| (to.address, frame));
            loop {
                slices.clear();
                self.addresses.clear();
                for (address, frame) in datagrams.by_ref().take(DATAGRAMS_PER_TURN) {
                    slices.push([IoSlice::new(frame)]);
                    self.addresses.push(Some(address.into()));
                }
                if slices.is_empty() {
                    break;
                }
                let no_route = |address| {
                    let socket = i as u8;
                    unreachable.push(ClientAddress { socket, address });
                };
                self.send_batch(socket, &slices, counters, no_route);
            }
        }
        unreachable
    }

    fn send_batch(
        &mut self,
        socket: &UdpSocket,
        slices: &[[IoSlice<'_>; 1]],
        counters: &mut Counters,
        mut no_route: impl FnMut(SocketAddr),
    ) {
        let (mut done, mut tries) = (0, 0);
        while done < slices.len() {
            let sent = sendmmsg(
                socket.as_raw_fd(),
                &mut self.headers,
                &slices[done..],
                &self.addresses[done..],
                [],
                MsgFlags::MSG_DONTWAIT,
            )
            .map(Iterator::count);
            match sent {
                Ok(sent) => {
                    counters.count_many(Count::DatagramsSent, sent as u64);
                    done += sent.max(1);
                    tries = 0;
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN | Errno::ENOBUFS) => {
                    counters.drop_many(Drop::SendBufferFull, (slices.len() - done) as u64);
                    return;
                }
                // Most likely another address refused something earlier, which
                // is told only once: this one must not lose its datagram by it.
                Err(_) if tries + 1 < SEND_TRIES => {
                    counters.count(Count::SendsRepeated);
                    tries += 1;
                }
                // This address cannot be reached; the others can.
                Err(error) => {
                    counters.drop(Drop::SendFailed);
                    debug!(%error, "a datagram could not be sent");
                    // A refusal cannot be told so soon: it is another's.
                    let is_its_own = errors::classify(error) == Some(Unreachable::NoRoute);
                    let address = self.addresses[done].as_ref().and_then(to_std);
                    if let Some(address) = address.filter(|_| is_its_own) {
                        no_route(address);
                    }
                    done += 1;
                    tries = 0;
                }
            }
        }
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
    use std::cell::Cell;
    use std::rc::Rc;

    use std::net::Ipv6Addr;

    use tokio::task::{LocalSet, spawn_local};

    use super::*;

    /// Datagrams to closed ports between datagrams to a live one.
    #[cfg(target_os = "linux")]
    async fn closed_ports_cost_others_nothing(ip: std::net::IpAddr) {
        const ROUNDS: usize = 100;
        let Ok(socket) = bind((ip, 0).into()) else {
            assert!(ip.is_ipv6());
            eprintln!("SKIP closed_ports_cost_others_nothing: no IPv6 here");
            return;
        };
        let sockets = [UdpSocket::from_std(socket).unwrap()];
        let live = std::net::UdpSocket::bind((ip, 0)).unwrap();
        live.set_nonblocking(true).unwrap();
        let closed = std::net::UdpSocket::bind((ip, 0))
            .unwrap()
            .local_addr()
            .unwrap();

        let (mut sender, mut counters) = (Sender::new(), Counters::default());
        let mut buffer = [0; 64];
        for round in 0..ROUNDS {
            let mut outbox = Outbox::default();
            let frame = outbox.write(b"", &round.to_be_bytes()).unwrap();
            for address in [closed, live.local_addr().unwrap(), closed] {
                outbox.send(ClientAddress { socket: 0, address }, &frame);
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
            assert_eq!((address, how), (closed, Unreachable::PortClosed));
            told.set(told.get() + 1);
        };
        while told.get() == 0 {
            let nothing = || Err(ErrorKind::WouldBlock.into());
            receive(&sockets[0], note, nothing).await.unwrap();
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn closed_ports_cost_others_nothing_with_ipv4() {
        closed_ports_cost_others_nothing([127, 0, 0, 1].into()).await;
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn closed_ports_cost_others_nothing_with_ipv6() {
        closed_ports_cost_others_nothing(Ipv6Addr::LOCALHOST.into()).await;
    }

    #[tokio::test]
    async fn a_socket_that_is_never_empty_gives_way_to_others() {
        LocalSet::new()
            .run_until(async {
                let socket = bind(([127, 0, 0, 1], 0).into()).unwrap();
                let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
                for _ in 0..3 * DATAGRAMS_PER_TURN {
                    peer.send_to(b"x", socket.local_addr().unwrap()).unwrap();
                }
                let socket = UdpSocket::from_std(socket).unwrap();
                let batches = Rc::new(Cell::new(0));
                let counted = batches.clone();
                spawn_local(async move {
                    let mut receiver = Receiver::new();
                    loop {
                        let batch = || receiver.receive(&socket, |_, _| {});
                        receive(&socket, |_, _| {}, batch).await.unwrap();
                        counted.set(counted.get() + 1);
                    }
                });
                let mut seen = Vec::new();
                while batches.get() < 3 {
                    seen.push(batches.get());
                    tokio::task::yield_now().await;
                }
                assert!(seen.contains(&1) && seen.contains(&2), "{seen:?}");
            })
            .await;
    }
}
