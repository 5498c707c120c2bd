//! The server: sessions of foreign clients that use an Amber robot. PURE.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use amber_reflect::Schemas;
use amber_robot::controls::Seat;
use amber_robot::helm::Helm;
use amber_robot::robot::Topic;

pub use self::config::Config;
use self::reports::Measured;
use self::session::Session;
use super::codec::{Frame, Op};
use super::doorkeeper::Doorkeeper;
use super::mapping::Path;
use crate::shared::clock::Now;
use crate::shared::event::Event;
use crate::shared::machine::{Cast, Datagram, Output, Outputs, Session as SessionReport, Socket};

mod admission;
mod config;
mod orders;
mod reports;
mod session;

/// Makes the ids of sessions. They must not be guessable.
pub type Ids = Box<dyn FnMut() -> [u8; 4] + Send>;

/// The socket of the server.
pub const SOCKET: Socket = Socket(0);

pub struct Server {
    config: Config,
    ids: Ids,
    sessions: BTreeMap<SocketAddr, Session>,
    last_user: u32,
    helm: Helm,
    doorkeeper: Doorkeeper,
    robot: Measured,
    schemas: Schemas,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("config", &self.config)
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server without sessions.
    #[must_use]
    pub fn new(config: Config, ids: Ids) -> Self {
        Self {
            helm: Helm::new(&config.robot, config.seat),
            ids,
            sessions: BTreeMap::new(),
            last_user: 0,
            doorkeeper: Doorkeeper::new(config.door.clone(), SOCKET),
            config,
            robot: Measured::default(),
            schemas: Schemas::built_in(),
        }
    }

    /// Whether several sessions may drive at the same time.
    #[must_use]
    pub fn seat(&self) -> Seat {
        self.config.seat
    }

    /// Binds the socket.
    pub fn start(&mut self, out: &mut Outputs) {
        out.push(Output::Bind(SOCKET, self.config.listen, Cast::Unicast));
    }

    /// Whether this address has a session.
    #[must_use]
    pub fn knows(&self, from: SocketAddr) -> bool {
        self.sessions.contains_key(&from)
    }

    /// A datagram has arrived.
    pub fn handle_datagram(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outputs) {
        let from = datagram.from;
        match Frame::decode(datagram.bytes) {
            Ok(Frame::Connect(url)) => self.connect(now, from, url, out),
            Ok(Frame::Session { id, op }) => match self.sessions.get_mut(&from) {
                Some(session) if session.id == id => {
                    session.heard = now.elapsed;
                    session.is_proven = true;
                    self.handle(now, from, op, out);
                }
                _ => self.doorkeeper.refuse_id(now, from, id, op, out),
            },
            Err(bad) => out.tally.bad(now.elapsed, bad.text(), from),
        }
        self.drive(now, out);
    }

    /// A device has measured something, or answers.
    pub fn handle_event(&mut self, now: Now, event: Event, out: &mut Outputs) {
        match event {
            Event::Measured(_, measurement) => self.measured(now, measurement, out),
            Event::Message(user, device, message) => {
                self.send_message(now, user, device, &message, out);
            }
            Event::Refused(user, why) => self.tell_refusal(now, user, &why, out),
            Event::Asked(..) | Event::Image(_) | Event::Trip(..) | Event::Saved(..) => {}
        }
    }

    /// Sends what is due.
    pub fn handle_timeout(&mut self, now: Now, out: &mut Outputs) {
        let silent = |(from, session): (&SocketAddr, &Session)| {
            (session.ends() <= now.elapsed).then_some(*from)
        };
        let silent: Vec<_> = self.sessions.iter().filter_map(silent).collect();
        for from in silent {
            self.end(now, from, out);
        }
        for (from, session) in &mut self.sessions {
            if session.ping_due().is_some_and(|due| due <= now.elapsed) {
                session.pinged = now.elapsed;
                session.send(now, *from, Op::Ping, out);
            }
        }
        let due: Vec<_> = (self.sessions.iter())
            .filter(|(_, session)| session.report_due().is_some_and(|due| due <= now.elapsed))
            .map(|(from, _)| *from)
            .collect();
        for from in due {
            self.report(now, from, out);
        }
        self.drive(now, out);
    }

    /// When [`Server::handle_timeout`] is due.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let sessions = self.sessions.values().flat_map(|session| {
            let ends = Some(session.ends());
            ends.into_iter()
                .chain(session.ping_due())
                .chain(session.report_due())
        });
        sessions.chain(self.helm.next_due()).min()
    }

    /// Ends all sessions.
    pub fn stop(&mut self, now: Now, out: &mut Outputs) {
        let all: Vec<_> = self.sessions.keys().copied().collect();
        for from in all {
            if let Some(session) = self.sessions.get(&from) {
                out.send(SOCKET, from, session.frame(Op::Close));
            }
            self.end(now, from, out);
        }
        self.drive(now, out);
    }

    /// The sessions, for the status.
    #[must_use]
    pub fn sessions(&self, now: Now) -> Vec<SessionReport> {
        let report = |(address, session): (&SocketAddr, &Session)| SessionReport {
            address: *address,
            user: Some(session.user),
            purpose: session.purpose.clone(),
            age: now.since(session.opened),
            silence: now.since(session.heard),
            drives: self.helm.is_driven_by(session.user),
        };
        self.sessions.iter().map(report).collect()
    }

    /// Ends a session: its motions stop.
    fn end(&mut self, now: Now, from: SocketAddr, out: &mut Outputs) {
        let Some(session) = self.sessions.remove(&from) else {
            return;
        };
        tracing::info!(client = %from, "session ended: {}", session.purpose);
        self.helm.release(session.user);
        // Immediately, because the user is about to be closed.
        self.drive(now, out);
        for topic in self.topics(session.path) {
            out.push(Output::Unwatch(topic));
        }
        if session.gives_orders() {
            out.push(Output::Close(session.user));
        }
    }

    /// The topics that a session on this path watches.
    fn topics(&self, path: Path) -> Vec<Topic> {
        let robot = &self.config.robot;
        match path {
            Path::Odom => vec![Topic::Wheels(robot.wheels), Topic::Pose(robot.location)],
            Path::Status => vec![
                Topic::Wheels(robot.wheels),
                Topic::Pose(robot.location),
                Topic::Targets(robot.targets),
            ],
            Path::Scan => vec![Topic::Scans(robot.scanner)],
            Path::Imu => vec![Topic::Imu(robot.imu)],
            Path::Pose => vec![Topic::Pose(robot.location)],
            Path::Goal => vec![Topic::Targets(robot.targets)],
            Path::CmdVel | Path::Device(_) => vec![],
        }
    }

    fn handle(&mut self, now: Now, from: SocketAddr, op: Op<'_>, out: &mut Outputs) {
        let Some(session) = self.sessions.get_mut(&from) else {
            return;
        };
        match op {
            Op::Ping => session.send(now, from, Op::Pong, out),
            Op::Pong => {}
            Op::Close => self.end(now, from, out),
            Op::Continuation => out.tally.bad(now.elapsed, "continuation", from),
            Op::Text(text) => {
                session.speaks_text = true;
                self.handle_text(now, from, text, out);
            }
            Op::Binary(body) => self.handle_binary(now, from, body, out),
        }
    }
}

#[cfg(test)]
mod tests;
