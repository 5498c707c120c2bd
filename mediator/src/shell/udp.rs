//! Sockets, and datagrams in, many with one system call. IO.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use mio::net::UdpSocket;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};
use socket2::{Domain, Protocol, Type};

use super::errors;
use crate::limits::{DATAGRAMS_PER_TURN, SOCKET_BUFFER_BYTES};

/// Room for any datagram.
const BUFFER: usize = 1 << 16;

/// A socket that is bound, but not watched yet.
pub(super) fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
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
    Ok(UdpSocket::from_std(socket.into()))
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
    use super::*;

    #[test]
    fn a_batch_leaves_what_is_too_much_for_it() {
        let socket = bind(([127, 0, 0, 1], 0).into()).unwrap();
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let count = 3 * DATAGRAMS_PER_TURN + 1;
        for number in 0..count {
            let bytes = number.to_be_bytes();
            peer.send_to(&bytes, socket.local_addr().unwrap()).unwrap();
        }
        let mut receiver = Receiver::new();
        let (mut taken, mut batches) = (0_usize, Vec::new());
        loop {
            let before = taken;
            let rest = receiver.receive(&socket, |from, bytes| {
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
        let nothing = receiver.receive(&socket, |_, _| unreachable!());
        assert_eq!(nothing.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
