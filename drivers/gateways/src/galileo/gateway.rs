//! The machine of the gateway: the server, the foreign robots, the proxy and the announcements. PURE.

use std::net::SocketAddr;
use std::time::Duration;

use amber_proto::Device;
use amber_robot::controls::Seat;

use super::discovery::{self, Discovery};
use super::foreign::{self, Foreign};
use super::proxy::{self, Proxy};
use super::server::{SOCKET, Server};
use crate::shared::clock::Now;
use crate::shared::event::{Emulated, Event};
use crate::shared::machine::{Datagram, Machine, Outputs, Session, Socket};

/// The gateway for Galileo.
#[derive(Debug)]
pub struct Galileo {
    server: Server,
    robots: Vec<Foreign>,
    proxy: Option<Proxy>,
    discovery: Option<Discovery>,
}

impl Galileo {
    /// A gateway with this server and these foreign robots, which is a proxy and announces itself if
    /// that is wanted.
    #[must_use]
    pub fn new(
        server: Server,
        robots: Vec<foreign::Config>,
        proxy: Option<proxy::Config>,
        discovery: Option<discovery::Config>,
    ) -> Self {
        let first = SOCKET.0 + 1;
        let sockets = (first..).step_by(Foreign::MAX_SOCKETS as usize);
        let robots = robots.into_iter().zip(sockets);
        Self {
            server,
            proxy: proxy.map(Proxy::new),
            discovery: discovery.map(Discovery::new),
            robots: robots
                .map(|(it, socket)| Foreign::new(it, socket))
                .collect(),
        }
    }

    /// The robot with this socket.
    fn robot(&mut self, socket: Socket) -> Option<&mut Foreign> {
        let index = socket.0.checked_sub(SOCKET.0 + 1)? / Foreign::MAX_SOCKETS;
        self.robots.get_mut(index as usize)
    }
}

impl Machine for Galileo {
    fn protocol(&self) -> &'static str {
        "galileo"
    }

    fn seat(&self) -> Seat {
        self.server.seat()
    }

    fn emulated(&self) -> Vec<(Device, Emulated)> {
        self.robots.iter().flat_map(Foreign::emulated).collect()
    }

    fn start(&mut self, now: Now, out: &mut Outputs) {
        self.server.start(out);
        if let Some(proxy) = &mut self.proxy {
            proxy.start(out);
        }
        if let Some(discovery) = &mut self.discovery {
            discovery.start(now, out);
        }
    }

    fn handle_datagram(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outputs) {
        if let Some(proxy) = &mut self.proxy
            && proxy.has(datagram.socket)
        {
            return proxy.handle_datagram(now, datagram, out);
        }
        match self.robot(datagram.socket) {
            Some(robot) => robot.handle_datagram(now, datagram, out),
            None => self.server.handle_datagram(now, datagram, out),
        }
    }

    fn handle_event(&mut self, now: Now, event: Event, out: &mut Outputs) {
        for robot in &mut self.robots {
            robot.handle_event(now, &event, out);
        }
        self.server.handle_event(now, event, out);
    }

    fn handle_timeout(&mut self, now: Now, out: &mut Outputs) {
        for robot in &mut self.robots {
            robot.handle_timeout(now, out);
        }
        self.server.handle_timeout(now, out);
        if let Some(proxy) = &mut self.proxy {
            proxy.handle_timeout(now, out);
        }
        if let Some(discovery) = &mut self.discovery {
            discovery.handle_timeout(now, out);
        }
    }

    fn next_timeout(&self) -> Option<Duration> {
        let robots = self.robots.iter().filter_map(Foreign::next_timeout);
        let announcement = self.discovery.as_ref().map(Discovery::next_timeout);
        let proxy = self.proxy.as_ref().and_then(Proxy::next_timeout);
        (robots.chain(self.server.next_timeout()))
            .chain(proxy)
            .chain(announcement)
            .min()
    }

    fn stop(&mut self, now: Now, out: &mut Outputs) {
        for robot in &mut self.robots {
            robot.stop(now, out);
        }
        self.server.stop(now, out);
        if let Some(proxy) = &mut self.proxy {
            proxy.stop(out);
        }
    }

    fn knows(&self, socket: Socket, from: SocketAddr) -> bool {
        let mut robots = self.robots.iter();
        robots.any(|robot| robot.knows(socket, from))
            || (socket == SOCKET && self.server.knows(from))
            || (self.proxy.as_ref()).is_some_and(|proxy| proxy.knows(socket, from))
    }

    fn sessions(&self, now: Now) -> Vec<Session> {
        let robots = self.robots.iter().flat_map(|robot| robot.sessions(now));
        let mut sessions = self.server.sessions(now);
        sessions.extend(robots);
        sessions.extend(self.proxy.iter().flat_map(|proxy| proxy.sessions(now)));
        sessions
    }
}
