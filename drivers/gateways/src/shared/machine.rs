//! The interface of a protocol: inputs with a time, and outputs to perform. PURE.
//!
//! [`runner`](super::runner) calls a [`Machine`] and performs its outputs. Tests call it by hand,
//! with a virtual clock. After each call, the caller takes all outputs from the [`Outputs`].

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use amber_proto::Device;
use amber_proto::gateway::{RelayImage, Vehicle};
use amber_robot::controls::Seat;
use amber_robot::helm::Helm;
use amber_robot::robot::{Measurement, Topic, User, UserOrder};
use bytes::Bytes;

use super::clock::Now;
use super::event::{Emulated, Event};
use super::tally::Tally;

/// The session machine of a protocol, with its mapping to Amber's devices.
///
/// The machine owns all sessions, and opens a [`User`] for each session that uses Amber's devices.
/// It gets only datagrams that the gate has admitted, so it may answer each of them.
pub trait Machine: Send + 'static {
    /// The name of the protocol, such as "galileo".
    fn protocol(&self) -> &'static str;

    /// Whether several sessions may drive at the same time.
    fn seat(&self) -> Seat {
        Seat::Exclusive
    }

    /// The devices that show foreign robots, for the whole life of the gateway.
    fn emulated(&self) -> Vec<(Device, Emulated)> {
        Vec::new()
    }

    /// Called first: binds the sockets.
    fn start(&mut self, now: Now, out: &mut Outputs);

    /// A datagram has arrived.
    fn handle_datagram(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outputs);

    /// A WebSocket has changed. Its texts arrive as datagrams.
    fn handle_link(
        &mut self,
        now: Now,
        socket: Socket,
        peer: SocketAddr,
        link: WebSocketEvent,
        out: &mut Outputs,
    ) {
        let _ = (now, socket, peer, link, out);
    }

    /// A text of a WebSocket has arrived that may have waited in a network that has stalled. It must
    /// not move anything.
    fn handle_old_text(&mut self, now: Now, text: Datagram<'_>, out: &mut Outputs) {
        let _ = (now, text, out);
    }

    /// Amber has reported something.
    fn handle_event(&mut self, now: Now, event: Event, out: &mut Outputs);

    /// The time of [`Machine::next_timeout`] has come. May also be called earlier.
    fn handle_timeout(&mut self, now: Now, out: &mut Outputs);

    /// When to call [`Machine::handle_timeout`], as [`Now::elapsed`]. Asked after each call.
    fn next_timeout(&self) -> Option<Duration>;

    /// Whether times of less than a millisecond matter to it.
    fn is_precise(&self) -> bool {
        false
    }

    /// Called last: says goodbye to all peers, and stops all motion.
    fn stop(&mut self, now: Now, out: &mut Outputs);

    /// Whether this source has a session, so that floods of others do not slow it down.
    fn knows(&self, socket: Socket, from: SocketAddr) -> bool;

    /// The sessions, for the status.
    fn sessions(&self, now: Now) -> Vec<Session>;

    /// Further reports of foreign vehicles, in addition to their devices, for the status.
    fn vehicles(&self, now: Now) -> Vec<Vehicle> {
        let _ = now;
        Vec::new()
    }

    /// Whether the protocol has images, so that clients may send [`Event::Image`].
    fn takes_images(&self) -> bool {
        false
    }
}

/// A socket of a gateway, numbered by the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Socket(pub u32);

/// An event of a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebSocketEvent {
    /// A peer has connected.
    Connected,
    /// The peer has received the text, and can receive the next.
    Sent,
    /// The peer has been silent for [`ERRAND_SILENCE`](crate::limits::ERRAND_SILENCE), although it
    /// answers pings: its motions must end.
    Silent,
    /// The connection is closed or lost.
    Gone,
}

/// The offer of a WebSocket listener to browsers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The page at `/`.
    pub html: &'static str,
    /// Origins whose pages may connect, in addition to those of this machine and of the gateway
    /// itself, such as `https://robots.example`.
    pub origins: Vec<String>,
}

/// A received datagram, or a text of a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The socket where it arrived.
    pub socket: Socket,
    /// The sender.
    pub from: SocketAddr,
    /// The contents.
    pub bytes: &'a [u8],
}

/// A session, for the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The peer.
    pub address: SocketAddr,
    /// Its client at the mediator, if it has one.
    pub user: Option<User>,
    /// The purpose, such as "cmd_vel".
    pub purpose: String,
    pub age: Duration,
    /// The time since the last valid datagram.
    pub silence: Duration,
    /// Whether it holds the controls.
    pub drives: bool,
}

/// The address of a socket that only talks to these peers: it is on the loopback interface if all of
/// them are. The port is any.
pub fn local_address(peers: impl IntoIterator<Item = IpAddr>) -> SocketAddr {
    let mut peers = peers.into_iter();
    let first = peers.next().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let is_local = first.is_loopback() && peers.all(|peer| peer.is_loopback());
    let ip: IpAddr = match (first, is_local) {
        (IpAddr::V4(_), true) => Ipv4Addr::LOCALHOST.into(),
        (IpAddr::V4(_), false) => Ipv4Addr::UNSPECIFIED.into(),
        (IpAddr::V6(_), true) => Ipv6Addr::LOCALHOST.into(),
        (IpAddr::V6(_), false) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(ip, 0)
}

/// An output of a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Opens a socket. If the address is in use, the gateway reports trouble and retries.
    Bind(Socket, SocketAddr, Cast),
    /// Closes a socket.
    Unbind(Socket),
    /// Listens for WebSockets. If the address is in use, the gateway reports trouble and tries
    /// again.
    Listen(Socket, SocketAddr, Page),
    /// Closes the WebSocket of a peer, after the texts that wait for it.
    Disconnect(Socket, SocketAddr),
    /// Sends a datagram, or a text to a WebSocket. It is dropped, and counted, if the socket is not
    /// open or its buffer full. Send the next text to a WebSocket after [`WebSocketEvent::Sent`].
    Send(Socket, SocketAddr, Bytes),
    /// Opens a client at the mediator for a session, with the address of its peer if it has one.
    Open(User, Option<SocketAddr>),
    /// Closes it. All devices that it used are told (CLIENT_DIED), so wheels stop.
    Close(User),
    /// Sends an order of a user to a device. Of motions that wait, only the newest is sent.
    Order(User, UserOrder),
    /// Watches a topic, until as many [`Output::Unwatch`] have come.
    Watch(Topic),
    /// Ends one [`Output::Watch`].
    Unwatch(Topic),
    /// Shows a measurement on an emulated device.
    Show(Device, Measurement),
    /// Publishes an image to the subscribers of the gateway's own device.
    Image(RelayImage),
}

/// The allowed destinations of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cast {
    /// To single hosts.
    #[default]
    Unicast,
    /// Also to broadcast addresses.
    Broadcast,
}

/// The outputs of a machine, and its counters.
#[derive(Debug, Default)]
pub struct Outputs {
    outputs: VecDeque<Output>,
    /// The counters.
    pub tally: Tally,
}

impl Outputs {
    /// Adds an output.
    pub fn push(&mut self, output: Output) {
        self.outputs.push_back(output);
    }

    /// Sends a datagram.
    pub fn send(&mut self, socket: Socket, to: SocketAddr, bytes: impl Into<Bytes>) {
        self.push(Output::Send(socket, to, bytes.into()));
    }

    /// Sends an order of a user.
    pub fn order(&mut self, user: User, order: UserOrder) {
        self.push(Output::Order(user, order));
    }

    /// Sends all orders of the helm that are due.
    pub fn orders_of(&mut self, helm: &mut Helm, now: Duration) {
        while let Some((user, order)) = helm.poll(now) {
            self.order(user, order);
        }
    }

    /// The next output; `None` if all are taken.
    pub fn take(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_on_the_loopback_interface_if_all_its_peers_are() {
        for (peers, expected) in [
            ("127.0.0.1", "127.0.0.1:0"),
            ("127.0.0.5 127.0.0.1", "127.0.0.1:0"),
            ("192.168.0.5", "0.0.0.0:0"),
            ("127.0.0.1 192.168.0.5", "0.0.0.0:0"),
            ("192.168.0.5 127.0.0.1", "0.0.0.0:0"),
            ("::1", "[::1]:0"),
            ("fd00::5", "[::]:0"),
        ] {
            let peers = peers.split(' ').map(|peer| peer.parse().unwrap());
            assert_eq!(local_address(peers).to_string(), expected);
        }
    }
}
