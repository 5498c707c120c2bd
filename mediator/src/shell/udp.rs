//! Sockets, and datagrams in, many with one system call. IO.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};
use socket2::{Domain, Protocol, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::errors;
use crate::limits::{DATAGRAMS_PER_TURN, SOCKET_BUFFER_BYTES};
use crate::router::Unreachable;

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

/// Waits for datagrams and hands a batch of them to `batch`, which says what is
/// left. When there may be more, others have their turn: a socket that is never
/// empty is always ready, and awaiting that gives way to nobody.
///
/// What is known of addresses that cannot be reached goes to `unreachable`, and
/// before the datagrams: who comes from such an address after that is new.
///
/// Cancelling loses nothing: what was not handed over is still in the socket.
pub(super) async fn receive(
    socket: &UdpSocket,
    mut unreachable: impl FnMut(SocketAddr, Unreachable),
    batch: impl FnOnce() -> io::Result<Rest>,
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
        // As good as an error that says so, and saves asking. What comes next
        // wakes us again.
        Rest::Nothing => Err(ErrorKind::WouldBlock.into()),
        Rest::Unknown => Ok(()),
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

/// What is left in a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// The batch was short: it has emptied the socket.
    Nothing,
    /// There was no room for more.
    Unknown,
}

/// What a batch is received into: one for each socket, because the system is
/// not told anew how long an address may be, and those of IPv6 are longer.
pub(super) struct Receiver {
    buffers: Vec<u8>,
    headers: MultiHeaders<SockaddrStorage>,
    /// How many datagrams there is room for: preparing it costs time, too, so
    /// it is twice as many as came last.
    room: usize,
}

/// The least of [`Receiver::room`].
const ROOM: usize = 4;

impl Receiver {
    pub(super) fn new() -> Self {
        // Zeroed pages cost nothing until a datagram needs them.
        let buffers = vec![0; DATAGRAMS_PER_TURN * BUFFER];
        Self {
            buffers,
            headers: MultiHeaders::preallocate(DATAGRAMS_PER_TURN, None),
            room: ROOM,
        }
    }

    /// Takes what is there, at most [`DATAGRAMS_PER_TURN`].
    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        mut each: impl FnMut(SocketAddr, &[u8]),
    ) -> io::Result<Rest> {
        let mut slices: Vec<_> = self
            .buffers
            .chunks_exact_mut(BUFFER)
            .take(self.room)
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
        let rest = match count < self.room {
            true => Rest::Nothing,
            false => Rest::Unknown,
        };
        self.room = (2 * count).clamp(ROOM, DATAGRAMS_PER_TURN);
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
    use std::cell::Cell;
    use std::rc::Rc;

    use tokio::task::{LocalSet, spawn_local};

    use super::*;

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
