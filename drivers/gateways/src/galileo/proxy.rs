//! The proxy: forwards sessions to robots that clients cannot reach themselves. PURE.
//!
//! ```text
//!  client -- udp://ID.PORT.robot1.bwbot.org/PATH --> proxy (port 10427) -- a socket each --> robot
//! ```
//!
//! The first label of the host is the start of a robot's id, the second one a port of this robot. The
//! port after the host differs from client to client and is ignored. Frames are forwarded
//! unchanged.
//!
//! The address of a client may be forged. So it gets nothing but the reply to its connect until it
//! has sent a frame with the id in this reply.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use amber_robot::bucket::Bucket;

use super::codec::{Frame, Op, SessionId, Url, decode_reply};
use super::doorkeeper::{Door, Doorkeeper};
use super::limits::{PROXY_ID, PROXY_REPLY, SESSION_BYTES, SESSION_RATE, SILENCE, UNPROVEN};
use crate::shared::clock::Now;
use crate::shared::machine::{
    Cast, Datagram, Output, Outputs, Session as SessionReport, Socket, local_address,
};

/// The socket for clients. Those of the server and of foreign robots count from 0, and that of the
/// announcements is the last.
pub const LISTENER: Socket = Socket(u32::MAX - 1);

/// The first socket towards a robot: each client has one.
const FIRST: u32 = 1 << 31;

/// The parameter with the token of a proxy.
const TOKEN: &str = "galileo_proxy_token";

/// The settings of a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The address for clients.
    pub listen: SocketAddr,
    /// The conditions for a session. Clients need its token in addition to that of the robot.
    pub door: Door,
    /// The robots behind it.
    pub robots: Vec<ProxiedRobot>,
}

/// A robot behind a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxiedRobot {
    /// Its id. The names that clients use have its first eight characters.
    pub id: String,
    /// Its address.
    pub host: IpAddr,
    /// The ports that clients may reach.
    pub ports: Vec<u16>,
}

impl ProxiedRobot {
    fn label(&self) -> &str {
        self.id.get(..PROXY_ID).unwrap_or(&self.id)
    }
}

#[derive(Debug)]
pub struct Proxy {
    config: Config,
    /// By the address of the client.
    routes: BTreeMap<SocketAddr, Route>,
    doorkeeper: Doorkeeper,
}

/// The route of a client to its robot.
#[derive(Debug)]
struct Route {
    socket: Socket,
    robot: SocketAddr,
    purpose: String,
    /// The time when the client has connected, or got its current id.
    opened: Duration,
    heard: Duration,
    awaits_reply: bool,
    id: Option<SessionId>,
    /// The client has sent a frame with the id, so its address is genuine.
    is_proven: bool,
    datagrams: Bucket,
    bytes: Bucket,
}

impl Proxy {
    /// A proxy without sessions.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            doorkeeper: Doorkeeper::new(config.door.clone(), LISTENER),
            config,
            routes: BTreeMap::new(),
        }
    }

    /// Binds the socket for clients.
    pub fn start(&mut self, out: &mut Outputs) {
        out.push(Output::Bind(LISTENER, self.config.listen, Cast::Unicast));
    }

    /// Whether this is one of its sockets.
    #[must_use]
    pub fn has(&self, socket: Socket) -> bool {
        socket == LISTENER || self.client_at(socket).is_some()
    }

    /// Whether this is a client with a session, or the robot of one at its socket.
    #[must_use]
    pub fn knows(&self, socket: Socket, from: SocketAddr) -> bool {
        match socket {
            LISTENER => self.routes.contains_key(&from),
            _ => self
                .routes
                .values()
                .any(|it| it.is_from_robot(socket, from)),
        }
    }

    /// A datagram of a client or of a robot.
    pub fn handle_datagram(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outputs) {
        match datagram.socket {
            LISTENER => self.handle_client(now, datagram, out),
            _ => self.handle_robot(now, datagram, out),
        }
    }

    /// Ends the sessions whose clients are silent.
    pub fn handle_timeout(&mut self, now: Now, out: &mut Outputs) {
        let silent = |(client, route): (&SocketAddr, &Route)| {
            (route.ends() <= now.elapsed).then_some(*client)
        };
        let silent: Vec<_> = self.routes.iter().filter_map(silent).collect();
        for client in silent {
            self.end(client, out);
        }
    }

    /// When [`Proxy::handle_timeout`] is due.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        self.routes.values().map(Route::ends).min()
    }

    /// Ends all sessions, and informs both ends.
    pub fn stop(&mut self, out: &mut Outputs) {
        while let Some(client) = self.routes.keys().next().copied() {
            self.close(client, out);
        }
    }

    /// Ends a session, and informs both ends.
    fn close(&mut self, client: SocketAddr, out: &mut Outputs) {
        if let Some(route) = self.routes.get(&client)
            && let Some(id) = route.id
        {
            let close = Frame::Session { id, op: Op::Close }.encode();
            out.send(LISTENER, client, close.clone());
            out.send(route.socket, route.robot, close);
        }
        self.end(client, out);
    }

    /// The sessions, for the status.
    pub fn sessions(&self, now: Now) -> impl Iterator<Item = SessionReport> {
        self.routes
            .iter()
            .map(move |(address, route)| SessionReport {
                address: *address,
                purpose: route.purpose.clone(),
                age: now.since(route.opened),
                silence: now.since(route.heard),
                user: None,
                drives: false,
            })
    }

    fn handle_client(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outputs) {
        let (from, bytes) = (datagram.from, datagram.bytes);
        let op = match Frame::decode(bytes) {
            Ok(Frame::Connect(url)) => return self.connect(now, from, url, bytes, out),
            Ok(Frame::Session { id, op }) => match self.routes.get_mut(&from) {
                Some(route) if route.id == Some(id) => {
                    route.heard = now.elapsed;
                    route.is_proven = true;
                    out.send(route.socket, route.robot, bytes.to_vec());
                    op
                }
                _ => return self.doorkeeper.refuse_id(now, from, id, op, out),
            },
            Err(bad) => return out.tally.bad(now.elapsed, bad.text(), from),
        };
        if op == Op::Close {
            self.end(from, out);
        }
    }

    fn connect(
        &mut self,
        now: Now,
        from: SocketAddr,
        url: &[u8],
        datagram: &[u8],
        out: &mut Outputs,
    ) {
        if self.doorkeeper.ignores(now, from, out) {
            return;
        }
        match self.way(now, from, url, out) {
            Ok((robot, purpose)) => {
                if (self.routes.get(&from)).is_some_and(|route| route.robot != robot) {
                    self.end(from, out);
                }
                if !self.routes.contains_key(&from) {
                    self.open(now, from, robot, out);
                }
                if let Some(route) = self.routes.get_mut(&from) {
                    route.purpose = purpose;
                    route.awaits_reply = true;
                    out.send(route.socket, robot, datagram.to_vec());
                }
            }
            Err(reason) => {
                out.tally.dropped(now.elapsed, reason, from);
                self.doorkeeper.refuse(now, from, out);
            }
        }
    }

    /// The requested robot and the purpose, or the reason why the request is refused.
    fn way(
        &mut self,
        now: Now,
        from: SocketAddr,
        url: &[u8],
        out: &mut Outputs,
    ) -> Result<(SocketAddr, String), &'static str> {
        let url = Url::parse(url).map_err(|bad| bad.text())?;
        let given = url.parameter(TOKEN).unwrap_or_default();
        if !self.doorkeeper.accepts(now, from, given) {
            return Err("wrong token of the proxy");
        }
        let robot = self.robot(&url.authority).ok_or("unknown robot")?;
        if !self.routes.contains_key(&from)
            && let Err(full) = self.doorkeeper.has_room(from, self.routes.keys())
        {
            let routes = self.routes.iter();
            let heard = routes.map(|(client, route)| (*client, route.heard));
            let gone = Doorkeeper::vanished(now, from, heard).ok_or(full)?;
            self.close(gone, out);
            self.doorkeeper.has_room(from, self.routes.keys())?;
        }
        // Their labels do not reveal more than the client knows.
        let name = url.authority.split('.').next().unwrap_or_default();
        Ok((robot, format!("proxy to {name}: {}", url.path)))
    }

    /// The address behind `ID.PORT.anything:port`.
    fn robot(&self, authority: &str) -> Option<SocketAddr> {
        let mut labels = authority.split('.');
        let (id, port) = (labels.next()?, labels.next()?.parse().ok()?);
        let robot = (self.config.robots.iter()).find(|it| it.label().eq_ignore_ascii_case(id))?;
        (robot.ports.contains(&port)).then(|| SocketAddr::new(robot.host, port))
    }

    fn open(&mut self, now: Now, client: SocketAddr, robot: SocketAddr, out: &mut Outputs) {
        let is_free = |socket: &Socket| self.client_at(*socket).is_none();
        let Some(socket) = (FIRST..LISTENER.0).map(Socket).find(is_free) else {
            return;
        };
        out.push(Output::Bind(
            socket,
            local_address([robot.ip()]),
            Cast::Unicast,
        ));
        let route = Route {
            socket,
            robot,
            purpose: String::new(),
            opened: now.elapsed,
            heard: now.elapsed,
            awaits_reply: true,
            id: None,
            is_proven: false,
            datagrams: Bucket::new(SESSION_RATE),
            bytes: Bucket::new(SESSION_BYTES),
        };
        self.routes.insert(client, route);
    }

    fn handle_robot(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outputs) {
        let Datagram {
            socket,
            from,
            bytes,
        } = datagram;
        let Some(client) = self.client_at(socket) else {
            return;
        };
        let Some(route) = self.routes.get_mut(&client) else {
            return;
        };
        if from != route.robot {
            return out.tally.dropped(now.elapsed, "not from the robot", from);
        }
        if route.awaits_reply
            && let Some(reply) = decode_reply(bytes)
        {
            route.awaits_reply = false;
            if route.id != reply {
                route.id = reply;
                route.is_proven = false;
                route.opened = now.elapsed;
            }
            route.pass_on(now, client, bytes, out);
            if reply.is_none() {
                self.end(client, out);
            }
            return;
        }
        match Frame::decode(bytes) {
            Ok(Frame::Session { id, op }) if route.id == Some(id) => {
                match route.is_proven || op == Op::Close {
                    true => route.pass_on(now, client, bytes, out),
                    false => out.tally.dropped(now.elapsed, "client not proven", client),
                }
                if op == Op::Close {
                    self.end(client, out);
                }
            }
            Ok(_) => out.tally.bad(now.elapsed, "unknown session", from),
            Err(bad) => out.tally.bad(now.elapsed, bad.text(), from),
        }
    }

    fn end(&mut self, client: SocketAddr, out: &mut Outputs) {
        if let Some(route) = self.routes.remove(&client) {
            out.push(Output::Unbind(route.socket));
        }
    }

    fn client_at(&self, socket: Socket) -> Option<SocketAddr> {
        let mut routes = self.routes.iter();
        let (client, _) = routes.find(|(_, route)| route.socket == socket)?;
        Some(*client)
    }
}

impl Route {
    fn is_from_robot(&self, socket: Socket, from: SocketAddr) -> bool {
        self.socket == socket && self.robot == from
    }

    /// Forwards a datagram to the client, unless it exceeds the limit.
    fn pass_on(&mut self, now: Now, client: SocketAddr, bytes: &[u8], out: &mut Outputs) {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let fits = self.datagrams.take(now.elapsed) && self.bytes.take_many(now.elapsed, length);
        match fits {
            true => out.send(LISTENER, client, bytes.to_vec()),
            false => out
                .tally
                .dropped(now.elapsed, "session gets too much", client),
        }
    }

    /// The time when it ends unless a datagram arrives.
    fn ends(&self) -> Duration {
        match (self.is_proven, self.id) {
            (true, _) => self.heard + SILENCE,
            (false, Some(_)) => self.opened + UNPROVEN,
            (false, None) => self.opened + PROXY_REPLY,
        }
    }
}

#[cfg(test)]
mod tests;
