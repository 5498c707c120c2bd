//! Transports of frames between this process and the mediator. IO.
//!
//! A client has its own UDP socket ([`UdpTransport`]). A driver that calls other devices
//! uses its stdin and stdout through a [`ChannelTransport`]. All other code is the same
//! for both.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use amber_proto::Packet;
use amber_proto::limits::MAX_DATAGRAM;
use bytes::Bytes;
use tokio::io::{Interest, ReadBuf};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio_util::sync::PollSender;

/// A connection to the mediator.
///
/// Outgoing packets name a device (type and id) and no clients; incoming ones
/// name the sending device and no clients.
///
/// Both methods follow the rules of [`std::future::Future::poll`]. One task
/// calls them, and neither may block the other: a transport that cannot send
/// must still receive.
pub trait Transport: Send + 'static {
    /// Sends one packet. After an error the packet has not been sent.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
    ) -> Poll<Result<(), TransportError>>;

    /// Receives the next packet.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, TransportError>>;

    /// The role of this process towards the mediator.
    fn role(&self) -> Role;
}

/// The role of a process towards the mediator. It determines how the process
/// connects and leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It announces itself, checks whether the mediator was restarted, and
    /// reports when it leaves.
    Client,
    /// The mediator started it and knows it; the mediator lives as long as the
    /// pipe.
    Driver,
}

/// Errors of a transport.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The mediator is unreachable at the moment.
    #[error("{0}")]
    Unreachable(io::Error),
    /// Received data that is not a frame; the next one may be valid.
    #[error("{0}")]
    Malformed(io::Error),
    /// This transport has ended for good.
    #[error("{0}")]
    Closed(String),
}

/// A UDP socket that is connected to the mediator.
pub struct UdpTransport {
    socket: Arc<UdpSocket>,
    buffer: Box<[u8]>,
    encoded: Option<Bytes>,
    failure: Failure,
}

/// Resolves when the socket has an error to report. An ICMP refusal makes a
/// socket neither readable nor writable, so it needs its own wait.
type Failure = Pin<Box<dyn Future<Output = io::Error> + Send>>;

impl UdpTransport {
    /// A socket of the mediator's address family on its own port.
    ///
    /// # Errors
    /// The system cannot open a socket, or has no route to that address.
    pub async fn connect(mediator: SocketAddr) -> io::Result<Self> {
        let local: SocketAddr = match mediator {
            SocketAddr::V4(_) => ([0; 4], 0).into(),
            SocketAddr::V6(_) => ([0; 16], 0).into(),
        };
        let socket = UdpSocket::bind(local).await?;
        socket.connect(mediator).await?;
        let socket = Arc::new(socket);
        Ok(Self {
            failure: Box::pin(failure(socket.clone())),
            socket,
            buffer: vec![0; MAX_DATAGRAM].into(),
            encoded: None,
        })
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
        match self.socket.poll_send(cx, &bytes) {
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
        let datagram = Bytes::copy_from_slice(buffer.filled());
        Poll::Ready(Packet::from_datagram(&datagram).map_err(TransportError::Malformed))
    }

    fn role(&self) -> Role {
        Role::Client
    }
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

/// Two channels: for drivers, where other code reads stdin and writes stdout.
///
/// ```
/// use amber_client::transport::{ChannelTransport, Role};
/// use tokio::sync::mpsc;
///
/// let (to_stdout, frames_to_write) = mpsc::channel(16);
/// let (frames_read, from_stdin) = mpsc::channel(16);
/// let transport = ChannelTransport::new(to_stdout, from_stdin, Role::Driver);
/// # let _ = (transport, frames_to_write, frames_read);
/// ```
#[derive(Debug)]
pub struct ChannelTransport {
    outgoing: PollSender<Packet>,
    incoming: mpsc::Receiver<Packet>,
    role: Role,
}

impl ChannelTransport {
    /// Sends packets for the mediator to `outgoing`, and receives its packets from
    /// `incoming`. Ends when either is closed.
    pub fn new(
        outgoing: mpsc::Sender<Packet>,
        incoming: mpsc::Receiver<Packet>,
        role: Role,
    ) -> Self {
        Self {
            outgoing: PollSender::new(outgoing),
            incoming,
            role,
        }
    }
}

impl Transport for ChannelTransport {
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
    ) -> Poll<Result<(), TransportError>> {
        let closed = |_| TransportError::Closed("the connection to the mediator is closed".into());
        ready!(self.outgoing.poll_reserve(cx)).map_err(closed)?;
        Poll::Ready(self.outgoing.send_item(packet.clone()).map_err(closed))
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Result<Packet, TransportError>> {
        let packet = ready!(self.incoming.poll_recv(cx));
        let closed = || TransportError::Closed("the connection from the mediator is closed".into());
        Poll::Ready(packet.ok_or_else(closed))
    }

    fn role(&self) -> Role {
        self.role
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
                assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn channels_that_end_are_closed() {
        let (outgoing, mut sent) = mpsc::channel(1);
        let (incoming, received) = mpsc::channel(1);
        let mut transport = ChannelTransport::new(outgoing, received, Role::Driver);
        poll_fn(|cx| transport.poll_send(cx, &packet()))
            .await
            .unwrap();
        assert_eq!(sent.recv().await, Some(packet()));
        drop((sent, incoming));
        assert!(matches!(
            poll_fn(|cx| transport.poll_send(cx, &packet())).await,
            Err(TransportError::Closed(_))
        ));
        assert!(matches!(
            poll_fn(|cx| transport.poll_receive(cx)).await,
            Err(TransportError::Closed(_))
        ));
    }
}
