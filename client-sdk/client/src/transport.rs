//! Transports of frames between this process and the mediator. IO.
//!
//! A client has its own UDP socket ([`UdpTransport`]). A driver that calls other devices
//! uses its stdin and stdout through a [`ChannelTransport`]. All other code is the same
//! for both.
//!
//! Not a part of the interface: it may change at any time. It is public for Amber's own crates and
//! test rigs, some of which have transports of their own. Hence [`Transport`] is not sealed.

mod udp;

use std::io;
use std::task::{Context, Poll, ready};

use amber_proto::Packet;
use tokio::sync::mpsc;
use tokio_util::sync::PollSender;

pub use self::udp::UdpTransport;

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

    /// Whether the mediator is on this computer: no network then cuts or loses long packets.
    fn is_local(&self) -> bool {
        false
    }

    /// Answers are missing: the way to the mediator may be another one now.
    fn look_for_another_way(&mut self) {}

    /// Resolves each time that packets have begun to take another way. The mediator does not
    /// know this client by its new address, so the client must announce itself again.
    fn poll_moved(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
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

    fn is_local(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use amber_proto::DriverHdr;
    use bytes::Bytes;

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
