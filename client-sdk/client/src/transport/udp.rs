//! The UDP socket of a client, which follows changes of the network. IO.
//!
//! A connected socket keeps the local address that it got when it was opened. When this computer
//! gets another address (another Wi-Fi, DHCP, a VPN), that socket is of no use for ever. Connecting
//! a second socket shows the local address that the system would choose now, and sends nothing. The
//! second one replaces the first if
//! - the old local address is gone, which is checked twice per second and after failed sends, or
//! - the mediator is silent, and the system would choose another address, or
//! - the mediator is silent, and its name stands for another address.
//!
//! A socket that still works is never replaced: with another port, this client would be another one
//! to the mediator.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket as StdSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use amber_proto::Packet;
use amber_proto::limits::MAX_DATAGRAM;
use bytes::Bytes;
use socket2::SockRef;
use tokio::io::{Interest, ReadBuf};
use tokio::net::UdpSocket;
use tokio::time::{Instant, Sleep, sleep};
use tracing::{debug, info};

use super::{Role, Transport, TransportError};
use crate::address::MediatorAddress;

/// The time between two checks whether the local address still exists. It takes a few
/// microseconds, and listeners wait this long for data after a change.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// The size of the receive buffer to ask for, in bytes: half a second of pictures. Linux gives at
/// most 416 kB, unless `net.core.rmem_max` is larger, and the default holds 92 pieces of a message.
const RECEIVE_BUFFER: usize = 4 << 20;
/// The mediator counts as silent if nothing has arrived for this time.
const SILENCE: Duration = Duration::from_secs(1);
/// The time between two look-ups of its name while it is silent.
const LOOK_UP_EVERY: Duration = Duration::from_secs(1);
/// So many look-ups must return the known address before another one of the same name is tried:
/// a mediator that is restarted is at the same one.
const LOOK_UPS_PER_ADDRESS: u32 = 5;

/// A UDP socket that is connected to the mediator.
pub struct UdpTransport {
    socket: Arc<UdpSocket>,
    buffer: Box<[u8]>,
    encoded: Option<Bytes>,
    failure: Failure,
    way: Way,
}

/// Resolves when the socket has an error to report. An ICMP refusal makes a
/// socket neither readable nor writable, so it needs its own wait.
type Failure = Pin<Box<dyn Future<Output = io::Error> + Send>>;

type LookUp = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// The addresses at both ends, and when to check them.
struct Way {
    mediator: SocketAddr,
    local: SocketAddr,
    /// `None` if the mediator is known by its address alone.
    name: Option<MediatorAddress>,
    heard_at: Instant,
    check: Pin<Box<Sleep>>,
    look_up: Option<LookUp>,
    looked_up_at: Option<Instant>,
    /// The look-ups since the mediator was last heard.
    look_ups: u32,
    has_moved: bool,
}

impl UdpTransport {
    /// A socket of the mediator's address family on its own port.
    ///
    /// # Errors
    /// The system cannot open a socket, or has no route to that address.
    pub async fn connect(mediator: SocketAddr) -> io::Result<Self> {
        let socket = Arc::new(open(mediator)?);
        let way = Way {
            mediator,
            local: socket.local_addr()?,
            name: None,
            heard_at: Instant::now(),
            check: Box::pin(sleep(CHECK_EVERY)),
            look_up: None,
            looked_up_at: None,
            look_ups: 0,
            has_moved: false,
        };
        Ok(Self {
            failure: Box::pin(failure(socket.clone())),
            socket,
            buffer: vec![0; MAX_DATAGRAM].into(),
            encoded: None,
            way,
        })
    }

    /// Looks up this address again when the mediator is silent.
    #[must_use]
    pub fn named(mut self, name: &MediatorAddress) -> Self {
        let is_a_name = name.host().parse::<IpAddr>().is_err();
        self.way.name = is_a_name.then(|| name.clone());
        self
    }

    /// Replaces a socket whose local address is gone. Returns whether it did.
    fn leave_lost_address(&mut self) -> bool {
        // The address of a mediator on this computer does not change.
        if self.way.mediator.ip().is_loopback() {
            return false;
        }
        let Some(fresh) = self.another_way() else {
            return false;
        };
        is_gone(self.way.local) && self.replace(fresh, self.way.mediator)
    }

    /// A socket to the same mediator, if the system would choose another local address now.
    fn another_way(&self) -> Option<UdpSocket> {
        let fresh = open(self.way.mediator).ok()?;
        let local = fresh.local_addr().ok()?;
        (local.ip() != self.way.local.ip()).then_some(fresh)
    }

    fn replace(&mut self, fresh: UdpSocket, mediator: SocketAddr) -> bool {
        let Ok(local) = fresh.local_addr() else {
            return false;
        };
        let before = self.way.mediator;
        info!(%mediator, %before, %local, "the way to the mediator has changed");
        self.socket = Arc::new(fresh);
        self.failure = Box::pin(failure(self.socket.clone()));
        self.way.mediator = mediator;
        self.way.local = local;
        self.way.has_moved = true;
        true
    }

    /// The name of the mediator was looked up.
    fn looked_up(&mut self, mut found: Vec<SocketAddr>) {
        let known = self.way.mediator;
        // Other addresses of the same family first.
        found.sort_by_key(|address| address.is_ipv4() != known.is_ipv4());
        if let Some(at) = found.iter().position(|address| *address == known) {
            self.way.look_ups += 1;
            if !self.way.look_ups.is_multiple_of(LOOK_UPS_PER_ADDRESS) {
                return;
            }
            found.rotate_left(at + 1);
        }
        for address in found {
            if address == known {
                return;
            }
            if let Ok(fresh) = open(address) {
                self.replace(fresh, address);
                return;
            }
        }
    }
}

impl Transport for UdpTransport {
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
    ) -> Poll<Result<(), TransportError>> {
        let bytes = match self.encoded.take() {
            Some(bytes) => bytes,
            None => packet.encode().map_err(TransportError::Malformed)?,
        };
        let sent = match self.socket.poll_send(cx, &bytes) {
            // A refusal came from the mediator's computer, so the way is right.
            Poll::Ready(Err(error))
                if error.kind() != io::ErrorKind::ConnectionRefused
                    && self.leave_lost_address() =>
            {
                self.socket.poll_send(cx, &bytes)
            }
            sent => sent,
        };
        match sent {
            Poll::Pending => {
                self.encoded = Some(bytes);
                Poll::Pending
            }
            Poll::Ready(sent) => Poll::Ready(sent.map(drop).map_err(TransportError::Unreachable)),
        }
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, TransportError>> {
        let mut buffer = ReadBuf::new(&mut self.buffer);
        let received = match self.socket.poll_recv(cx, &mut buffer) {
            Poll::Ready(received) => received,
            Poll::Pending => {
                let error = ready!(self.failure.as_mut().poll(cx));
                self.failure = Box::pin(failure(self.socket.clone()));
                Err(error)
            }
        };
        received.map_err(TransportError::Unreachable)?;
        self.way.heard_at = Instant::now();
        self.way.look_ups = 0;
        let datagram = Bytes::copy_from_slice(buffer.filled());
        Poll::Ready(Packet::from_datagram(&datagram).map_err(TransportError::Malformed))
    }

    fn role(&self) -> Role {
        Role::Client
    }

    fn is_local(&self) -> bool {
        self.way.mediator.ip().is_loopback()
    }

    fn look_for_another_way(&mut self) {
        let now = Instant::now();
        if now < self.way.heard_at + SILENCE {
            return;
        }
        if let Some(fresh) = self.another_way() {
            self.replace(fresh, self.way.mediator);
        }
        let is_due = (self.way.looked_up_at).is_none_or(|at| at + LOOK_UP_EVERY <= now);
        if let Some(name) = &self.way.name
            && self.way.look_up.is_none()
            && is_due
        {
            let (host, port) = (name.host().to_owned(), name.port());
            self.way.looked_up_at = Some(now);
            self.way.look_up = Some(Box::pin(async move {
                Ok(tokio::net::lookup_host((host, port)).await?.collect())
            }));
        }
    }

    fn poll_moved(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.way.check.as_mut().poll(cx).is_ready() {
            self.leave_lost_address();
            self.way.check = Box::pin(sleep(CHECK_EVERY));
            // Registers the new timer.
            let _ = self.way.check.as_mut().poll(cx);
        }
        if let Some(look_up) = &mut self.way.look_up
            && let Poll::Ready(found) = look_up.as_mut().poll(cx)
        {
            self.way.look_up = None;
            self.looked_up(found.unwrap_or_default());
        }
        match std::mem::take(&mut self.way.has_moved) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

fn open(mediator: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match mediator {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0; 16], 0).into(),
    };
    let socket = StdSocket::bind(any)?;
    socket.connect(mediator)?;
    socket.set_nonblocking(true)?;
    if let Err(error) = SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER) {
        debug!(%error, "the receive buffer keeps its size");
    }
    UdpSocket::from_std(socket)
}

/// Whether this computer no longer has an address.
fn is_gone(mut local: SocketAddr) -> bool {
    local.set_port(0);
    let bound = StdSocket::bind(local);
    bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrNotAvailable)
}

async fn failure(socket: Arc<UdpSocket>) -> io::Error {
    loop {
        if let Err(error) = socket.ready(Interest::ERROR).await {
            return error;
        }
        // Clears the readiness, so that the next wait is for the next error.
        let _ = socket.try_io(Interest::ERROR, || -> io::Result<()> {
            Err(io::ErrorKind::WouldBlock.into())
        });
        match socket.take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return error,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use amber_proto::DriverHdr;

    use super::*;

    fn packet() -> Packet {
        Packet {
            header: DriverHdr {
                device_type: Some(5),
                device_id: Some(0),
                client_ids: vec![],
            },
            message: Bytes::from_static(b"\x10\x01"),
        }
    }

    #[tokio::test]
    async fn a_frame_travels_over_udp_and_back() {
        let mediator = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut transport = UdpTransport::connect(mediator.local_addr().unwrap())
            .await
            .unwrap();
        poll_fn(|cx| transport.poll_send(cx, &packet()))
            .await
            .unwrap();
        let mut buffer = [0; 100];
        let (length, client) = mediator.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"\0\x04\x08\x05\x10\0\0\x02\x10\x01");
        mediator.send_to(&buffer[..length], client).await.unwrap();
        assert_eq!(
            poll_fn(|cx| transport.poll_receive(cx)).await.unwrap(),
            packet()
        );
        mediator.send_to(b"?", client).await.unwrap();
        assert!(matches!(
            poll_fn(|cx| transport.poll_receive(cx)).await,
            Err(TransportError::Malformed(_))
        ));
    }

    #[tokio::test]
    async fn a_port_without_a_listener_is_noticed() {
        let address = {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            socket.local_addr().unwrap()
        };
        let mut transport = UdpTransport::connect(address).await.unwrap();
        poll_fn(|cx| transport.poll_send(cx, &packet()))
            .await
            .unwrap();
        match poll_fn(|cx| transport.poll_receive(cx)).await {
            Err(TransportError::Unreachable(error)) => {
                let expected = match cfg!(windows) {
                    true => io::ErrorKind::ConnectionReset,
                    false => io::ErrorKind::ConnectionRefused,
                };
                assert_eq!(error.kind(), expected);
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn another_address_of_the_name_is_tried_only_after_long_silence() {
        let address = |last| SocketAddr::from(([127, 0, 0, last], 9));
        let mut transport = UdpTransport::connect(address(1)).await.unwrap();
        for _ in 1..LOOK_UPS_PER_ADDRESS {
            transport.looked_up(vec![address(1), address(2)]);
            assert_eq!(transport.way.mediator, address(1));
        }
        transport.looked_up(vec![address(1), address(2)]);
        assert_eq!(transport.way.mediator, address(2));
        assert!(std::mem::take(&mut transport.way.has_moved));
        // The only address of the name, and it is new.
        transport.looked_up(vec![address(3)]);
        assert_eq!(transport.way.mediator, address(3));
        assert!(transport.way.has_moved);
        // The name is unknown for now.
        transport.looked_up(vec![]);
        assert_eq!(transport.way.mediator, address(3));
    }
}
