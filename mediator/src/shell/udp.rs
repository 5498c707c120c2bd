//! Datagrams in and out, many with one system call. IO.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg, sendmsg,
};
use socket2::{Domain, Protocol, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tracing::debug;

use crate::counters::{Count, Counters, Drop};
use crate::limits::{DATAGRAMS_PER_TURN, SEGMENTS, SOCKET_BUFFER_BYTES};
use crate::router::{Outbox, Run};

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
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Waits for datagrams and hands a batch of them to `batch`, which returns how
/// many it took. After a full batch others have their turn: a socket that is
/// never empty is always ready, and awaiting that gives way to nobody.
///
/// Cancelling loses nothing: what was not handed over is still in the socket.
pub(super) async fn receive(
    socket: &UdpSocket,
    batch: impl FnOnce() -> io::Result<usize>,
) -> io::Result<()> {
    socket.readable().await?;
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
    /// How many datagrams the system may be given as one.
    segments: usize,
}

impl Sender {
    pub(super) fn new() -> Self {
        Self {
            headers: MultiHeaders::preallocate(DATAGRAMS_PER_TURN, None),
            addresses: Vec::with_capacity(DATAGRAMS_PER_TURN),
            segments: SEGMENTS,
        }
    }

    /// Sends everything, in order per socket, and never waits: what the system
    /// does not take is dropped and counted.
    pub(super) fn send(&mut self, sockets: &[UdpSocket], outbox: &Outbox, counters: &mut Counters) {
        let mut singles = Vec::with_capacity(outbox.datagrams().len().min(DATAGRAMS_PER_TURN));
        for (i, socket) in sockets.iter().enumerate() {
            let runs = outbox.runs(self.segments);
            for run in runs.filter(|run| usize::from(run.to.socket) == i) {
                if run.bytes.len() > run.segment {
                    self.send_batch(socket, &mut singles, counters);
                    if self.send_run(socket, run, counters) {
                        continue;
                    }
                }
                for single in run.datagrams() {
                    singles.push([IoSlice::new(single.bytes)]);
                    self.addresses.push(Some(single.to.address.into()));
                    if singles.len() == DATAGRAMS_PER_TURN {
                        self.send_batch(socket, &mut singles, counters);
                    }
                }
            }
            self.send_batch(socket, &mut singles, counters);
        }
    }

    /// Sends many datagrams to one client as one that the system cuts apart;
    /// false when it cannot.
    fn send_run(&mut self, socket: &UdpSocket, run: Run<'_>, counters: &mut Counters) -> bool {
        let segment = run.segment as u16;
        let sent = sendmsg(
            socket.as_raw_fd(),
            &[IoSlice::new(run.bytes)],
            &[ControlMessage::UdpGsoSegments(&segment)],
            MsgFlags::MSG_DONTWAIT,
            Some(&SockaddrStorage::from(run.to.address)),
        );
        let count = run.datagrams().len() as u64;
        match sent {
            Ok(_) => counters.count_many(Count::DatagramsSent, count),
            Err(Errno::EAGAIN | Errno::ENOBUFS) => {
                counters.drop_many(Drop::SendBufferFull, count);
            }
            Err(Errno::EIO | Errno::EINVAL | Errno::EMSGSIZE) => {
                debug!("the system does not cut datagrams apart");
                self.segments = 1;
                return false;
            }
            Err(_) => return false,
        }
        true
    }

    fn send_batch(
        &mut self,
        socket: &UdpSocket,
        slices: &mut Vec<[IoSlice<'_>; 1]>,
        counters: &mut Counters,
    ) {
        let mut done = 0;
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
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN | Errno::ENOBUFS) => {
                    counters.drop_many(Drop::SendBufferFull, (slices.len() - done) as u64);
                    break;
                }
                // One address cannot be reached; the others can.
                Err(error) => {
                    counters.drop(Drop::SendFailed);
                    debug!(%error, "a datagram could not be sent");
                    done += 1;
                }
            }
        }
        slices.clear();
        self.addresses.clear();
    }
}

fn to_std(address: &SockaddrStorage) -> Option<SocketAddr> {
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
                        receive(&socket, batch).await.unwrap();
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
