//! The UDP sockets of a gateway. IO.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use socket2::SockRef;
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

use super::machine::{Cast, Socket};
use crate::limits::{BIND_RETRY, MAX_DATAGRAM, RECEIVE_BUFFER};

/// The sockets that the machine has asked for.
pub(super) struct Sockets {
    sockets: BTreeMap<Socket, Bound>,
    buffer: Vec<u8>,
    /// The socket that is read first next time, so that none starves the others.
    next: usize,
}

struct Bound {
    address: SocketAddr,
    cast: Cast,
    state: State,
}

enum State {
    Open(UdpSocket),
    /// When to retry, and the reason for the failure.
    Failed(Instant, String),
}

/// The socket and the sender of a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) socket: Socket,
    pub(super) from: SocketAddr,
    pub(super) length: usize,
}

impl Sockets {
    pub(super) fn new() -> Self {
        Self {
            sockets: BTreeMap::new(),
            buffer: vec![0; MAX_DATAGRAM],
            next: 0,
        }
    }

    /// Opens a socket. If that fails, [`Sockets::retry`] tries again.
    pub(super) fn bind(&mut self, now: Instant, socket: Socket, address: SocketAddr, cast: Cast) {
        let state = opened(now, address, cast);
        let bound = Bound {
            address,
            cast,
            state,
        };
        self.sockets.insert(socket, bound);
    }

    pub(super) fn unbind(&mut self, socket: Socket) {
        self.sockets.remove(&socket);
    }

    /// Tries again to open the sockets that are due.
    pub(super) fn retry(&mut self, now: Instant) {
        for bound in self.sockets.values_mut() {
            if let State::Failed(due, _) = bound.state
                && due <= now
            {
                bound.state = opened(now, bound.address, bound.cast);
            }
        }
    }

    /// When to call [`Sockets::retry`].
    pub(super) fn retry_at(&self) -> Option<Instant> {
        let failed = self
            .sockets
            .values()
            .filter_map(|bound| match &bound.state {
                State::Failed(due, _) => Some(*due),
                State::Open(_) => None,
            });
        failed.min()
    }

    /// The reason why a socket is not open.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.sockets.values().find_map(|bound| match &bound.state {
            State::Failed(_, why) => Some(&**why),
            State::Open(_) => None,
        })
    }

    /// The addresses that it listens on.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let open = self
            .sockets
            .values()
            .filter_map(|bound| match &bound.state {
                State::Open(socket) => socket.local_addr().ok(),
                State::Failed(..) => None,
            });
        open.collect()
    }

    /// Sends a datagram; `false` if the socket is not open or its buffer is full.
    pub(super) fn send(&self, socket: Socket, to: SocketAddr, bytes: &Bytes) -> bool {
        match self.sockets.get(&socket).map(|bound| &bound.state) {
            // Not `try_send_to`: it refuses everything until the runtime has first looked at the socket.
            Some(State::Open(socket)) => SockRef::from(socket).send_to(bytes, &to.into()).is_ok(),
            _ => false,
        }
    }

    /// The next datagram. Dropping the future loses none.
    pub(super) async fn receive(&mut self) -> Arrival {
        poll_fn(|cx| self.poll_receive(cx)).await
    }

    /// The data that [`Sockets::receive`] has read.
    pub(super) fn bytes(&self, arrival: Arrival) -> &[u8] {
        &self.buffer[..arrival.length]
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Arrival> {
        let count = self.sockets.len();
        self.next = if self.next + 1 < count {
            self.next + 1
        } else {
            0
        };
        let (first, last) = (self.next, count - self.next.min(count));
        let order = (self.sockets.iter().skip(first)).chain(self.sockets.iter().take(count - last));
        for (&socket, bound) in order {
            let State::Open(open) = &bound.state else {
                continue;
            };
            loop {
                let mut buffer = ReadBuf::new(&mut self.buffer);
                match open.poll_recv_from(cx, &mut buffer) {
                    Poll::Ready(Ok(from)) => {
                        let length = buffer.filled().len();
                        return Poll::Ready(Arrival {
                            socket,
                            from,
                            length,
                        });
                    }
                    // An error that a peer has caused, such as a closed port.
                    Poll::Ready(Err(_)) => {}
                    Poll::Pending => break,
                }
            }
        }
        Poll::Pending
    }
}

fn opened(now: Instant, address: SocketAddr, cast: Cast) -> State {
    match open(address, cast) {
        Ok(socket) => {
            if let Ok(address) = socket.local_addr() {
                tracing::debug!(%address, "opened a UDP socket");
            }
            State::Open(socket)
        }
        Err(error) => State::Failed(now + BIND_RETRY, not_open("UDP", address, &error)),
    }
}

/// The reason why a UDP or TCP port cannot be opened, and a hint.
pub(super) fn not_open(protocol: &str, address: SocketAddr, error: &io::Error) -> String {
    let (port, host) = (address.port(), address.ip());
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "another program uses {protocol} port {port} of {host}; stop it, or choose another port"
        ),
        io::ErrorKind::AddrNotAvailable => {
            format!("this machine does not have the address {host}")
        }
        _ => format!("cannot open {protocol} port {port} of {host}: {error}"),
    }
}

fn open(address: SocketAddr, cast: Cast) -> io::Result<UdpSocket> {
    let socket = std::net::UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    socket.set_broadcast(cast == Cast::Broadcast)?;
    // The system may allow less.
    let _ = SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER);
    UdpSocket::from_std(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_sockets_are_read_in_turn() {
        let mut sockets = Sockets::new();
        let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
        for number in 0..3 {
            sockets.bind(Instant::now(), Socket(number), local, Cast::Unicast);
        }
        let peer = std::net::UdpSocket::bind(local).unwrap();
        for address in sockets.addresses() {
            for byte in 0..10_u8 {
                peer.send_to(&[byte], address).unwrap();
            }
        }
        let mut counts = [0; 3];
        for _ in 0..9 {
            let arrival = sockets.receive().await;
            assert_eq!(arrival.from, peer.local_addr().unwrap());
            assert_eq!(sockets.bytes(arrival).len(), 1);
            counts[arrival.socket.0 as usize] += 1;
        }
        assert_eq!(counts, [3, 3, 3]);
    }

    #[tokio::test]
    async fn a_socket_sends_as_soon_as_it_is_bound() {
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sockets = Sockets::new();
        let local = "127.0.0.1:0".parse().unwrap();
        sockets.bind(Instant::now(), Socket(0), local, Cast::Unicast);
        let to = peer.local_addr().unwrap();
        assert!(sockets.send(Socket(0), to, &Bytes::from_static(b"first")));
        let mut buffer = [0; 16];
        assert_eq!(peer.recv(&mut buffer).unwrap(), 5);
    }

    #[tokio::test]
    async fn a_taken_port_is_explained_and_tried_again() {
        let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap();
        let mut sockets = Sockets::new();
        let now = Instant::now();
        sockets.bind(now, Socket(0), address, Cast::Unicast);
        let why = format!(
            "another program uses UDP port {} of 127.0.0.1; stop it, or choose another port",
            address.port()
        );
        assert_eq!(sockets.trouble(), Some(&*why));
        assert_eq!(sockets.retry_at(), Some(now + BIND_RETRY));
        drop(other);
        sockets.retry(now + BIND_RETRY);
        assert_eq!(sockets.trouble(), None);
        assert_eq!(sockets.addresses(), [address]);
    }
}
