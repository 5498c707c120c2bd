//! A foreign robot that speaks Galileo, as devices of Amber: one session for each of its topics. PURE.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use amber_driver::ClientId;
use amber_navigation::kinematics::{SkidSteer, Twist, Wheels};
use amber_proto::Device;
use amber_robot::controls::{Controls, Seat};
use amber_robot::limits::MOTION_LIFE;
use amber_robot::robot::Measurement;
use amber_values::WheelSpeeds;

use super::codec::{Frame, Op, SessionId, decode_reply};
use super::limits::{CONNECT_PERIOD, CONNECT_TRIES, MAX_BACKOFF, PING_PERIOD, SILENCE};
use super::mapping;
use crate::shared::clock::Now;
use crate::shared::event::{Asked, Emulated, Event};
use crate::shared::machine::{
    Cast, Datagram, Output, Outputs, Session as SessionReport, Socket, local_address,
};

/// A foreign robot, and the devices that show it.
#[derive(Clone, PartialEq)]
pub struct Config {
    /// Its address.
    pub robot: SocketAddr,
    /// Its token. It never appears in logs.
    pub token: String,
    /// Shows its wheels; their speeds come from `galileo/status`.
    pub wheels: Option<Device>,
    /// Shows its pose.
    pub location: Option<Device>,
    /// Shows its scans.
    pub scanner: Option<Device>,
    /// The distance of its wheels, and their maximum speed.
    pub drive: SkidSteer,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Config({})", self.robot)
    }
}

/// A foreign robot.
#[derive(Debug)]
pub struct Foreign {
    config: Config,
    sessions: Vec<TopicSession>,
    controls: Controls<ClientId>,
    /// The repeated motion, and its next time.
    motion: Option<(Twist, Duration)>,
}

/// The time between two copies of a motion: the robot's own dead-man is unknown.
const REPEAT: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct TopicSession {
    path: &'static str,
    socket: Socket,
    state: State,
    /// The number of failures since it last worked.
    failures: u32,
}

#[derive(Debug)]
enum State {
    /// Not connected.
    Waiting {
        until: Duration,
    },
    Connecting {
        tries: u32,
        next: Duration,
    },
    Open {
        id: SessionId,
        opened: Duration,
        heard: Duration,
        pinged: Duration,
    },
}

const CMD_VEL: &str = "cmd_vel";
const STATUS: &str = "galileo/status";
const POSE: &str = "pose";
const SCAN: &str = "scan";

impl Foreign {
    /// A robot that is not connected yet. Its sockets have numbers from `first` on.
    #[must_use]
    pub fn new(config: Config, first: u32) -> Self {
        let paths = [
            (config.wheels, CMD_VEL),
            (config.wheels, STATUS),
            (config.location, POSE),
            (config.scanner, SCAN),
        ];
        let wanted = paths.into_iter().filter(|(device, _)| device.is_some());
        let session = |((_, path), number): ((Option<Device>, &'static str), u32)| TopicSession {
            path,
            socket: Socket(number),
            state: State::Waiting {
                until: Duration::ZERO,
            },
            failures: 0,
        };
        Self {
            sessions: wanted.zip(first..).map(session).collect(),
            config,
            controls: Controls::new(Seat::Exclusive),
            motion: None,
        }
    }

    /// Maximum number of sockets of a robot.
    pub const MAX_SOCKETS: u32 = 4;

    /// The devices that show it.
    #[must_use]
    pub fn emulated(&self) -> Vec<(Device, Emulated)> {
        let Config {
            wheels,
            location,
            scanner,
            ..
        } = self.config;
        let devices = [
            (wheels, Emulated::Wheels),
            (location, Emulated::Location),
            (scanner, Emulated::Scanner),
        ];
        let named = devices
            .into_iter()
            .filter_map(|(device, kind)| Some((device?, kind)));
        named.collect()
    }

    /// Whether this is the robot, at one of its sockets.
    #[must_use]
    pub fn knows(&self, socket: Socket, from: SocketAddr) -> bool {
        from == self.config.robot && self.sessions.iter().any(|it| it.socket == socket)
    }

    /// A datagram of the robot.
    pub fn handle_datagram(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outputs) {
        let (robot, from) = (self.config.robot, datagram.from);
        let Some(session) = self
            .sessions
            .iter_mut()
            .find(|it| it.socket == datagram.socket)
        else {
            return;
        };
        if from != robot {
            return out.tally.dropped(now.elapsed, "not from the robot", from);
        }
        let State::Open {
            id, ref mut heard, ..
        } = session.state
        else {
            match (&session.state, decode_reply(datagram.bytes)) {
                (State::Connecting { .. }, Some(Some(id))) => session.open(now, id),
                (State::Connecting { .. }, Some(None)) => {
                    out.tally
                        .dropped(now.elapsed, "the robot refuses the session", from);
                    session.fail(now, out);
                }
                _ => out.tally.bad(now.elapsed, "unexpected datagram", from),
            }
            return;
        };
        match Frame::decode(datagram.bytes) {
            Ok(Frame::Session { id: its, op }) if its == id => {
                *heard = now.elapsed;
                match op {
                    Op::Ping => session.send(robot, id, Op::Pong, out),
                    Op::Close => session.fail(now, out),
                    Op::Text(text) => {
                        let path = session.path;
                        self.report(now, path, text, out);
                    }
                    Op::Pong => {}
                    Op::Binary(_) | Op::Continuation => {
                        out.tally
                            .dropped(now.elapsed, "frame without a meaning", from);
                    }
                }
            }
            Ok(_) => out.tally.bad(now.elapsed, "unknown session", from),
            Err(bad) => out.tally.bad(now.elapsed, bad.text(), from),
        }
    }

    /// A client of Amber commands the wheels.
    pub fn handle_event(&mut self, now: Now, event: &Event, out: &mut Outputs) {
        match *event {
            Event::Asked(device, Asked::Drive(client, speeds))
                if Some(device) == self.config.wheels =>
            {
                let driven = self
                    .controls
                    .drive(now.elapsed, client, speeds, MOTION_LIFE);
                if driven.is_err() {
                    out.tally
                        .dropped(now.elapsed, "another client drives", device);
                }
            }
            Event::Asked(_, Asked::ClientGone(client)) => self.controls.release(client),
            _ => return,
        }
        self.drive(now, out);
    }

    /// Performs everything that is due.
    pub fn handle_timeout(&mut self, now: Now, out: &mut Outputs) {
        let (robot, token) = (self.config.robot, &self.config.token);
        for session in &mut self.sessions {
            if session.due() <= now.elapsed {
                session.advance(now, robot, token, out);
            }
        }
        self.drive(now, out);
        if let Some((twist, due)) = self.motion
            && due <= now.elapsed
        {
            self.send_motion(now, twist, out);
        }
    }

    /// When [`Foreign::handle_timeout`] is due.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let sessions = self.sessions.iter().map(TopicSession::due);
        let motion = self.motion.map(|(_, due)| due);
        sessions.chain(motion).chain(self.controls.next_due()).min()
    }

    /// Stops the robot, and ends all sessions.
    pub fn stop(&mut self, now: Now, out: &mut Outputs) {
        if self.motion.is_some() {
            self.send_motion(now, Twist::STOP, out);
        }
        for session in &mut self.sessions {
            if let State::Open { id, .. } = session.state {
                session.send(self.config.robot, id, Op::Close, out);
            }
            session.state = State::Waiting {
                until: Duration::MAX,
            };
        }
    }

    /// Its open sessions, for the status.
    #[must_use]
    pub fn sessions(&self, now: Now) -> Vec<SessionReport> {
        let report = |session: &TopicSession| match session.state {
            State::Open { opened, heard, .. } => Some(SessionReport {
                address: self.config.robot,
                purpose: format!("foreign robot: {}", session.path),
                age: now.since(opened),
                silence: now.since(heard),
                user: None,
                drives: false,
            }),
            _ => None,
        };
        self.sessions.iter().filter_map(report).collect()
    }

    /// Sends the motion commands that are due.
    fn drive(&mut self, now: Now, out: &mut Outputs) {
        while let Some((_, speeds)) = self.controls.poll(now.elapsed) {
            let limited = Wheels::from(speeds).limited(self.config.drive.max_wheel_m_s);
            self.send_motion(now, self.config.drive.twist(limited), out);
        }
    }

    /// Sends a motion, and repeats it until it is a stop.
    fn send_motion(&mut self, now: Now, twist: Twist, out: &mut Outputs) {
        self.motion = (twist != Twist::STOP).then_some((twist, now.elapsed + REPEAT));
        let text = mapping::twist(twist);
        let mut sessions = self.sessions.iter();
        let session = sessions.find(|it| it.path == CMD_VEL);
        let open = session.and_then(|session| match session.state {
            State::Open { id, .. } => Some((session, id)),
            _ => None,
        });
        match open {
            Some((session, id)) => session.send(self.config.robot, id, Op::Text(&text), out),
            None => {
                let robot = self.config.robot;
                out.tally
                    .dropped(now.elapsed, "the foreign robot is not connected", robot);
            }
        }
    }

    /// Shows the reports of the robot.
    fn report(&self, now: Now, path: &str, text: &[u8], out: &mut Outputs) {
        let Config {
            wheels,
            location,
            scanner,
            drive,
            ..
        } = &self.config;
        let (device, shown) = match path {
            STATUS => {
                let twist = mapping::read_status(text);
                let speeds = twist.map(|twist| WheelSpeeds::from(drive.wheels(twist)));
                (wheels, speeds.map(Measurement::Wheels))
            }
            POSE => (location, mapping::read_pose(text).map(Measurement::Pose)),
            SCAN => (scanner, mapping::read_scan(text).map(Measurement::Scan)),
            // Robots send nothing on cmd_vel.
            _ => return,
        };
        match (*device, shown) {
            (Some(device), Some(shown)) => out.push(Output::Show(device, shown)),
            _ => out
                .tally
                .bad(now.elapsed, "invalid report", self.config.robot),
        }
    }
}

impl TopicSession {
    fn open(&mut self, now: Now, id: SessionId) {
        self.failures = 0;
        self.state = State::Open {
            id,
            opened: now.elapsed,
            heard: now.elapsed,
            pinged: now.elapsed,
        };
    }

    /// Waits longer after each failure. The next session has a new socket: old frames cannot reach
    /// it.
    fn fail(&mut self, now: Now, out: &mut Outputs) {
        let wait = Duration::from_secs(1 << self.failures.min(5)).min(MAX_BACKOFF);
        self.failures += 1;
        self.state = State::Waiting {
            until: now.elapsed.saturating_add(wait),
        };
        out.push(Output::Unbind(self.socket));
    }

    fn due(&self) -> Duration {
        match self.state {
            State::Waiting { until } => until,
            State::Connecting { next, .. } => next,
            State::Open { heard, pinged, .. } => (heard + SILENCE).min(pinged + PING_PERIOD),
        }
    }

    fn advance(&mut self, now: Now, robot: SocketAddr, token: &str, out: &mut Outputs) {
        match &mut self.state {
            State::Waiting { .. } => {
                let local = local_address([robot.ip()]);
                out.push(Output::Bind(self.socket, local, Cast::Unicast));
                self.connect(now, 1, robot, token, out);
            }
            State::Connecting { tries, .. } if *tries < CONNECT_TRIES => {
                let tries = *tries + 1;
                self.connect(now, tries, robot, token, out);
            }
            State::Connecting { .. } => self.fail(now, out),
            State::Open {
                id, heard, pinged, ..
            } => {
                let id = *id;
                if *heard + SILENCE <= now.elapsed {
                    self.send(robot, id, Op::Close, out);
                    self.fail(now, out);
                } else {
                    *pinged = now.elapsed;
                    self.send(robot, id, Op::Ping, out);
                }
            }
        }
    }

    fn connect(&mut self, now: Now, tries: u32, robot: SocketAddr, token: &str, out: &mut Outputs) {
        let url = format!("udp://{robot}/{}?token={token}", self.path);
        out.send(self.socket, robot, Frame::Connect(url.as_bytes()).encode());
        let next = now.elapsed + CONNECT_PERIOD;
        self.state = State::Connecting { tries, next };
    }

    fn send(&self, to: SocketAddr, id: SessionId, op: Op<'_>, out: &mut Outputs) {
        out.send(self.socket, to, Frame::Session { id, op }.encode());
    }
}

#[cfg(test)]
mod tests;
