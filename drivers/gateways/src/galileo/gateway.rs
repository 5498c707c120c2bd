//! The machine of the gateway: the server. PURE.

use std::net::SocketAddr;
use std::time::Duration;

use super::server::Server;
use crate::shared::clock::Now;
use crate::shared::machine::{Datagram, Machine, Outbox, Session, Socket};
use crate::shared::robot::Event;

/// The gateway for Galileo.
#[derive(Debug)]
pub struct Galileo {
    server: Server,
}

impl Galileo {
    /// A gateway with this server.
    #[must_use]
    pub fn new(server: Server) -> Self {
        Self { server }
    }
}

impl Machine for Galileo {
    fn protocol(&self) -> &'static str {
        "galileo"
    }

    fn start(&mut self, _now: Now, out: &mut Outbox) {
        self.server.start(out);
    }

    fn handle_datagram(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outbox) {
        self.server.handle_datagram(now, datagram, out);
    }

    fn handle_event(&mut self, now: Now, event: Event, out: &mut Outbox) {
        self.server.handle_event(now, event, out);
    }

    fn handle_timeout(&mut self, now: Now, out: &mut Outbox) {
        self.server.handle_timeout(now, out);
    }

    fn next_timeout(&self) -> Option<Duration> {
        self.server.next_timeout()
    }

    fn stop(&mut self, now: Now, out: &mut Outbox) {
        self.server.stop(now, out);
    }

    fn knows(&self, _socket: Socket, from: SocketAddr) -> bool {
        self.server.knows(from)
    }

    fn sessions(&self, now: Now) -> Vec<Session> {
        self.server.sessions(now)
    }
}
