//! The server: sessions of foreign clients that use an Amber robot. PURE.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use amber_navigation::kinematics::{Twist, Wheels};
use amber_proto::{Device, DeviceType, roboclaw};
use amber_reflect::Schemas;
use amber_values::{MapPose, Target, WheelSpeeds};
use bytes::Bytes;
use ipnet::IpNet;
use prost::Message;

use super::codec::{Bad, Frame, Op, SessionId, Url, decode_chunk, encode_chunk, encode_reply};
use super::limits::{
    DUPLICATE, MAX_SESSIONS, MAX_SESSIONS_PER_IP, PING_PERIOD, PORT, QUIET, REPORT_PERIOD,
    SESSION_BYTES, SESSION_RATE, SILENCE, STRANGER_RATE, UNPROVEN, WRONG_IDS, WRONG_IDS_SILENCE,
    WRONG_IDS_WINDOW, WRONG_TOKEN_SILENCE, WRONG_TOKENS,
};
use super::mapping::{self, Path};
use super::messages;
use super::records::{self, Joiner};
use super::token::Token;
use crate::limits::{MAX_AGE, MOTION_LIFE, ORDER_RATE};
use crate::shared::clock::Now;
use crate::shared::controls::{Controls, Seat};
use crate::shared::gate::{Bucket, Buckets};
use crate::shared::machine::{Cast, Datagram, Outbox, Output, Session as SessionReport, Socket};
use crate::shared::offences::Offences;
use crate::shared::robot::{Event, Measurement, Order, Robot, Topic, User};

/// The settings of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// What clients must know; `None` admits all.
    pub token: Option<Token>,
    /// The robot that they use.
    pub robot: Robot,
    /// Whether several of them may drive at the same time.
    pub seat: Seat,
    /// Networks whose addresses cannot be forged from outside: their clients may get data before
    /// they have sent a frame.
    pub local: Vec<IpNet>,
    /// The maximum number of sessions.
    pub max_sessions: u32,
    /// The maximum number of sessions of one IP address.
    pub max_sessions_per_ip: u32,
    /// Devices that clients may use directly; `None` means all.
    pub devices: Option<Vec<Device>>,
    /// Paths whose clients expect BINARY frames without an index.
    pub without_index: Vec<String>,
}

impl Config {
    /// The usual settings for a robot: listens on this machine only, without a token.
    #[must_use]
    pub fn new(robot: Robot) -> Self {
        let private = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];
        let private = private.iter().filter_map(|it| it.parse::<IpNet>().ok());
        let mut local = crate::shared::options::loopback();
        local.extend(private);
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], PORT)),
            token: None,
            robot,
            seat: Seat::Exclusive,
            local,
            max_sessions: MAX_SESSIONS,
            max_sessions_per_ip: MAX_SESSIONS_PER_IP,
            devices: None,
            without_index: Vec::new(),
        }
    }
}

/// Makes the ids of sessions. They must not be guessable.
pub type Ids = Box<dyn FnMut() -> [u8; 4] + Send>;

/// The socket of the server.
pub const SOCKET: Socket = Socket(0);

/// The server.
pub struct Server {
    config: Config,
    ids: Ids,
    sessions: BTreeMap<SocketAddr, Session>,
    last_user: u32,
    /// The controls of each device that takes wheel speeds.
    controls: BTreeMap<Device, Controls<User>>,
    wrong_tokens: Offences,
    wrong_ids: Offences,
    /// Answers to addresses without a session.
    answers: Buckets<SocketAddr>,
    robot: Measured,
    schemas: Schemas,
}

/// The newest measurements, with their times.
#[derive(Debug, Default)]
struct Measured {
    wheels: Option<(Duration, WheelSpeeds)>,
    pose: Option<(Duration, MapPose)>,
    next: Vec<Target>,
    visited: Vec<Target>,
    /// The motion that was last ordered.
    commanded: Twist,
}

struct Session {
    id: SessionId,
    user: User,
    path: Path,
    /// What the client has sent to connect.
    connect: Vec<u8>,
    purpose: String,
    opened: Duration,
    heard: Duration,
    /// The client has sent a frame with the id, so its address is genuine.
    is_proven: bool,
    is_local: bool,
    pinged: Duration,
    reported: Duration,
    /// The index of the next BINARY frame, in both directions.
    next_out: u32,
    next_in: Option<u32>,
    has_index: bool,
    joiner: Joiner,
    /// Whether the client speaks JSON.
    speaks_text: bool,
    datagrams: Bucket,
    bytes: Bucket,
    orders: Bucket,
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
            config,
            ids,
            sessions: BTreeMap::new(),
            last_user: 0,
            controls: BTreeMap::new(),
            wrong_tokens: Offences::new(WRONG_TOKENS - 1, WRONG_TOKEN_SILENCE, WRONG_TOKEN_SILENCE),
            wrong_ids: Offences::new(WRONG_IDS, WRONG_IDS_WINDOW, WRONG_IDS_SILENCE),
            answers: Buckets::new(STRANGER_RATE),
            robot: Measured::default(),
            schemas: Schemas::built_in(),
        }
    }

    /// Binds the socket.
    pub fn start(&mut self, out: &mut Outbox) {
        out.push(Output::Bind(SOCKET, self.config.listen, Cast::Unicast));
    }

    /// Whether this address has a session.
    #[must_use]
    pub fn knows(&self, from: SocketAddr) -> bool {
        self.sessions.contains_key(&from)
    }

    /// A datagram has arrived.
    pub fn handle_datagram(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outbox) {
        let from = datagram.from;
        match Frame::decode(datagram.bytes) {
            Ok(Frame::Connect(url)) => self.connect(now, from, url, out),
            Ok(Frame::Session { id, op }) => match self.sessions.get_mut(&from) {
                Some(session) if session.id == id => {
                    session.heard = now.elapsed;
                    session.is_proven = true;
                    self.handle(now, from, op, out);
                }
                _ => self.refuse_id(now, from, id, op, out),
            },
            Err(bad) => out.tally.bad(now.elapsed, bad.text(), from),
        }
        self.drive(now, out);
    }

    /// A device has measured something, or answers.
    pub fn handle_event(&mut self, now: Now, event: Event, out: &mut Outbox) {
        match event {
            Event::Measured(_, measurement) => self.measured(now, measurement, out),
            Event::Message(user, device, message) => {
                self.send_message(now, user, device, &message, out);
            }
            Event::Asked(..) | Event::Image(_) => {}
        }
    }

    /// Sends what is due.
    pub fn handle_timeout(&mut self, now: Now, out: &mut Outbox) {
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
        let controls = self.controls.values().filter_map(Controls::next_due);
        sessions.chain(controls).min()
    }

    /// Ends all sessions.
    pub fn stop(&mut self, now: Now, out: &mut Outbox) {
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
            purpose: session.purpose.clone(),
            age: now.since(session.opened),
            silence: now.since(session.heard),
            drives: (self.controls.values()).any(|it| it.holder() == Some(session.user)),
        };
        self.sessions.iter().map(report).collect()
    }

    fn connect(&mut self, now: Now, from: SocketAddr, bytes: &[u8], out: &mut Outbox) {
        if self.wrong_tokens.is_silenced(now.elapsed, from.ip()) {
            out.tally
                .dropped(now.elapsed, "too many wrong tokens", from);
            return;
        }
        if let Some(session) = self.sessions.get(&from)
            && session.connect == bytes
            && !session.is_proven
            && now.since(session.opened) < DUPLICATE
        {
            out.tally.dropped(now.elapsed, "repeated connect", from);
            return;
        }
        match self.admitted(now, from, bytes, out) {
            Ok((url, path)) => self.open(now, from, bytes, &url, path, out),
            Err(reason) => {
                match reason {
                    Refused::Bad(bad) => out.tally.bad(now.elapsed, bad.text(), from),
                    Refused::Because(reason) => out.tally.dropped(now.elapsed, reason, from),
                }
                if self.answers.take(now.elapsed, from) {
                    out.send(SOCKET, from, encode_reply(None));
                }
            }
        }
    }

    fn admitted(
        &mut self,
        now: Now,
        from: SocketAddr,
        bytes: &[u8],
        out: &mut Outbox,
    ) -> Result<(Url, Path), Refused> {
        let url = Url::parse(bytes).map_err(Refused::Bad)?;
        let given = url.parameter("token").unwrap_or_default();
        if self
            .config
            .token
            .as_ref()
            .is_some_and(|token| !token.is(given))
        {
            self.wrong_tokens.note(now.elapsed, from.ip());
            return Err(Refused::Because("wrong token"));
        }
        let path = Path::parse(&url.path).ok_or(Refused::Because("unknown path"))?;
        if let Path::Device(device) = path
            && let Some(allowed) = &self.config.devices
            && !allowed.contains(&device)
        {
            return Err(Refused::Because("device not allowed"));
        }
        // A client that connects again takes the place of its old session.
        if self.sessions.contains_key(&from) {
            self.end(now, from, out);
        }
        let of_ip = |ip: IpAddr| self.sessions.keys().filter(|it| it.ip() == ip).count();
        if self.sessions.len() >= self.config.max_sessions as usize {
            return Err(Refused::Because("too many sessions"));
        }
        if of_ip(from.ip()) >= self.config.max_sessions_per_ip as usize {
            return Err(Refused::Because("too many sessions of one address"));
        }
        Ok((url, path))
    }

    fn open(
        &mut self,
        now: Now,
        from: SocketAddr,
        connect: &[u8],
        url: &Url,
        path: Path,
        out: &mut Outbox,
    ) {
        let Some(id) = self.fresh_id() else {
            return out.tally.dropped(now.elapsed, "no random numbers", from);
        };
        self.last_user = self.last_user.wrapping_add(1);
        let user = User(self.last_user);
        let ip = from.ip().to_canonical();
        let session = Session {
            id,
            user,
            path,
            connect: connect.to_owned(),
            purpose: url.path.clone(),
            opened: now.elapsed,
            heard: now.elapsed,
            is_proven: false,
            is_local: self
                .config
                .local
                .iter()
                .any(|network| network.contains(&ip)),
            pinged: now.elapsed,
            reported: now.elapsed,
            next_out: 0,
            next_in: None,
            has_index: !self.config.without_index.contains(&url.path),
            joiner: Joiner::default(),
            speaks_text: true,
            datagrams: Bucket::new(SESSION_RATE),
            bytes: Bucket::new(SESSION_BYTES),
            orders: Bucket::new(ORDER_RATE),
        };
        tracing::info!(client = %from, "session opened: {}", url.path);
        out.send(SOCKET, from, encode_reply(Some(id)));
        if session.gives_orders() {
            out.push(Output::Open(user));
        }
        for topic in self.topics(path) {
            out.push(Output::Watch(topic));
        }
        self.sessions.insert(from, session);
    }

    /// Ids are random, not zero, and unique.
    fn fresh_id(&mut self) -> Option<SessionId> {
        const TRIES: usize = 100;
        let ids = std::iter::repeat_with(|| SessionId((self.ids)())).take(TRIES);
        let sessions = &self.sessions;
        let is_used = |id: &SessionId| sessions.values().any(|session| session.id == *id);
        ids.into_iter().find(|id| id.0 != [0; 4] && !is_used(id))
    }

    /// Ends a session: what it moves stops.
    fn end(&mut self, now: Now, from: SocketAddr, out: &mut Outbox) {
        let Some(session) = self.sessions.remove(&from) else {
            return;
        };
        tracing::info!(client = %from, "session ended: {}", session.purpose);
        for (&device, controls) in &mut self.controls {
            controls.release(session.user);
            // At once, because the user is about to be closed.
            while let Some((user, speeds)) = controls.poll(now.elapsed) {
                out.order(user, Order::Drive(device, speeds));
            }
        }
        for topic in self.topics(session.path) {
            out.push(Output::Unwatch(topic));
        }
        if session.gives_orders() {
            out.push(Output::Close(session.user));
        }
    }

    /// What a session on this path watches.
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

    /// A frame of a session that does not exist, such as after a restart: the client learns at once
    /// that it must connect again.
    fn refuse_id(
        &mut self,
        now: Now,
        from: SocketAddr,
        id: SessionId,
        op: Op<'_>,
        out: &mut Outbox,
    ) {
        if self.wrong_ids.is_silenced(now.elapsed, from.ip()) {
            out.tally
                .dropped(now.elapsed, "too many unknown sessions", from);
            return;
        }
        self.wrong_ids.note(now.elapsed, from.ip());
        out.tally.bad(now.elapsed, "unknown session", from);
        if op != Op::Close && self.answers.take(now.elapsed, from) {
            out.send(SOCKET, from, Frame::Session { id, op: Op::Close }.encode());
        }
    }

    fn handle(&mut self, now: Now, from: SocketAddr, op: Op<'_>, out: &mut Outbox) {
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

    fn handle_text(&mut self, now: Now, from: SocketAddr, text: &[u8], out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(&from) else {
            return;
        };
        let robot = &self.config.robot;
        let user = session.user;
        match session.path {
            Path::CmdVel => {
                let twist = mapping::read_twist(text);
                let speeds = twist.and_then(|it| robot.speeds(it.forward_m_s, it.turn_rad_s));
                match speeds {
                    Some(speeds) => self.command(now, from, robot.wheels, speeds, out),
                    None => out.tally.bad(now.elapsed, "invalid motion", from),
                }
            }
            Path::Goal => match mapping::read_targets(text) {
                Some(targets) if session.orders.take(now.elapsed) => {
                    out.order(user, Order::Targets(robot.targets, targets));
                }
                Some(_) => out.tally.dropped(now.elapsed, "too many messages", from),
                None => out.tally.bad(now.elapsed, "invalid targets", from),
            },
            Path::Device(device) => match messages::read(&self.schemas, device.device_type, text) {
                Some(message) => self.order_message(now, from, device, message, out),
                None => out.tally.bad(now.elapsed, "invalid message", from),
            },
            Path::Odom | Path::Status | Path::Scan | Path::Imu | Path::Pose => {
                out.tally
                    .dropped(now.elapsed, "this path takes no messages", from);
            }
        }
    }

    fn handle_binary(&mut self, now: Now, from: SocketAddr, body: &[u8], out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(&from) else {
            return;
        };
        let (index, data) = match decode_chunk(body) {
            Ok(chunk) => chunk,
            Err(bad) => return out.tally.bad(now.elapsed, bad.text(), from),
        };
        if session.next_in.is_some_and(|expected| expected != index) {
            out.tally.dropped(now.elapsed, "gap in BINARY frames", from);
            session.joiner.reset();
        }
        session.next_in = Some(index.wrapping_add(1));
        let Path::Device(device) = session.path else {
            return out
                .tally
                .dropped(now.elapsed, "this path takes no BINARY frames", from);
        };
        session.speaks_text = false;
        match session.joiner.take(data) {
            Ok(messages) => {
                for message in messages {
                    self.order_message(now, from, device, message.into(), out);
                }
            }
            Err(bad) => out.tally.bad(now.elapsed, bad.text(), from),
        }
    }

    /// Passes a message on. Motion goes through the controls, like any other.
    fn order_message(
        &mut self,
        now: Now,
        from: SocketAddr,
        device: Device,
        message: Bytes,
        out: &mut Outbox,
    ) {
        let Some(session) = self.sessions.get_mut(&from) else {
            return;
        };
        if device.device_type == DeviceType::ROBOCLAW
            && let Ok(read) = roboclaw::DriverMsg::decode(message.clone())
            && let Some(speeds) = read.motors_command
            && read.current_speed_request.is_none()
        {
            let wheels = Wheels::from(WheelSpeeds::from(speeds));
            let speeds = wheels.limited(self.config.robot.drive.max_wheel_m_s).into();
            return self.command(now, from, device, speeds, out);
        }
        match session.orders.take(now.elapsed) {
            true => out.order(session.user, Order::Message(device, message)),
            false => out.tally.dropped(now.elapsed, "too many messages", from),
        }
    }

    /// A session commands wheel speeds.
    fn command(
        &mut self,
        now: Now,
        from: SocketAddr,
        device: Device,
        speeds: WheelSpeeds,
        out: &mut Outbox,
    ) {
        let Some(session) = self.sessions.get(&from) else {
            return;
        };
        let seat = self.config.seat;
        let controls = (self.controls.entry(device)).or_insert_with(|| Controls::new(seat));
        if controls
            .drive(now.elapsed, session.user, speeds, MOTION_LIFE)
            .is_err()
        {
            out.tally
                .dropped(now.elapsed, "another session drives", from);
        }
    }

    /// Sends the motion commands that are due.
    fn drive(&mut self, now: Now, out: &mut Outbox) {
        for (&device, controls) in &mut self.controls {
            while let Some((user, speeds)) = controls.poll(now.elapsed) {
                if device == self.config.robot.wheels {
                    self.robot.commanded = self.config.robot.twist(speeds);
                }
                out.order(user, Order::Drive(device, speeds));
            }
        }
    }

    fn measured(&mut self, now: Now, measurement: Measurement, out: &mut Outbox) {
        let (path, text) = match measurement {
            Measurement::Scan(scan) => {
                let stamp = scan.timestamp_ms().and_then(|ms| u64::try_from(ms).ok());
                let text = mapping::scan(stamp.unwrap_or(now.unix_ms()), &scan);
                (Path::Scan, text)
            }
            Measurement::Imu(reading) => (Path::Imu, Some(mapping::imu(now.unix_ms(), &reading))),
            Measurement::Pose(pose) => {
                self.robot.pose = Some((now.elapsed, pose));
                (Path::Pose, Some(mapping::pose(now.unix_ms(), pose)))
            }
            Measurement::Wheels(speeds) => {
                self.robot.wheels = Some((now.elapsed, speeds));
                return;
            }
            Measurement::Targets { next, visited } => {
                let text = mapping::targets(&next, &visited);
                (self.robot.next, self.robot.visited) = (next, visited);
                (Path::Goal, Some(text))
            }
        };
        let Some(text) = text else {
            return;
        };
        for (from, session) in &mut self.sessions {
            if session.path == path && session.may_get_data(now) {
                session.send(now, *from, Op::Text(&text), out);
            }
        }
    }

    /// Sends a report that has a fixed rate.
    fn report(&mut self, now: Now, from: SocketAddr, out: &mut Outbox) {
        let Some(session) = self.sessions.get_mut(&from) else {
            return;
        };
        session.reported = now.elapsed;
        let (robot, measured) = (&self.config.robot, &self.robot);
        let wheels = measured.wheels.filter(|(at, _)| now.since(*at) <= MAX_AGE);
        let pose = measured.pose.filter(|(at, _)| now.since(*at) <= MAX_AGE);
        let pose = pose.map(|(_, pose)| pose).filter(MapPose::is_known);
        let Some(twist) = wheels.map(|(_, speeds)| robot.twist(speeds)) else {
            return;
        };
        let text = match session.path {
            Path::Odom => mapping::odometry(now.unix_ms(), pose, twist),
            _ => {
                let next = measured.next.first().zip(pose);
                let distance = |(target, pose): (&Target, MapPose)| {
                    (target.x_m - pose.x_m).hypot(target.y_m - pose.y_m)
                };
                mapping::status(&mapping::Status {
                    commanded: measured.commanded,
                    measured: twist,
                    has_pose: pose.is_some(),
                    visited: measured.visited.len(),
                    left: measured.next.len(),
                    distance_m: next.map(distance),
                })
            }
        };
        session.send(now, from, Op::Text(&text), out);
    }

    /// Sends a message of a device to the session of a user.
    fn send_message(
        &mut self,
        now: Now,
        user: User,
        device: Device,
        message: &[u8],
        out: &mut Outbox,
    ) {
        let mut sessions = self.sessions.iter_mut();
        let Some((&from, session)) = sessions.find(|(_, session)| session.user == user) else {
            return;
        };
        if !session.speaks_text {
            for data in records::split(message) {
                let index = session.has_index.then_some(session.next_out);
                session.next_out = session.next_out.wrapping_add(1);
                session.send(now, from, Op::Binary(&encode_chunk(index, &data)), out);
            }
            return;
        }
        match messages::write(&self.schemas, device.device_type, message) {
            Some(text) if mapping::fits(&text) => session.send(now, from, Op::Text(&text), out),
            _ => out
                .tally
                .dropped(now.elapsed, "message too long for TEXT; use BINARY", from),
        }
    }
}

/// Why a client gets no session.
enum Refused {
    Bad(Bad),
    Because(&'static str),
}

impl Session {
    fn frame(&self, op: Op<'_>) -> Vec<u8> {
        Frame::Session { id: self.id, op }.encode()
    }

    /// Sends a frame, unless the session gets too much.
    fn send(&mut self, now: Now, to: SocketAddr, op: Op<'_>, out: &mut Outbox) {
        let frame = self.frame(op);
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let fits = self.datagrams.take(now.elapsed) && self.bytes.take_many(now.elapsed, length);
        match fits {
            true => out.send(SOCKET, to, frame),
            false => out.tally.dropped(now.elapsed, "session gets too much", to),
        }
    }

    /// Whether the session uses a client at the mediator.
    fn gives_orders(&self) -> bool {
        matches!(self.path, Path::CmdVel | Path::Goal | Path::Device(_))
    }

    /// From when on the client may get something without having sent a frame.
    fn quiet_until(&self) -> Option<Duration> {
        match (self.is_proven, self.is_local) {
            (true, _) => Some(self.opened),
            (false, true) => Some(self.opened + QUIET),
            (false, false) => None,
        }
    }

    fn may_get_data(&self, now: Now) -> bool {
        self.quiet_until().is_some_and(|until| until <= now.elapsed)
    }

    /// When the session ends unless its client sends something.
    fn ends(&self) -> Duration {
        match self.is_proven || self.is_local {
            true => self.heard + SILENCE,
            false => self.opened + UNPROVEN,
        }
    }

    fn ping_due(&self) -> Option<Duration> {
        Some(self.quiet_until()?.max(self.pinged + PING_PERIOD))
    }

    fn report_due(&self) -> Option<Duration> {
        let has_rate = matches!(self.path, Path::Odom | Path::Status);
        let quiet_until = self.quiet_until().filter(|_| has_rate)?;
        Some(quiet_until.max(self.reported + REPORT_PERIOD))
    }
}

#[cfg(test)]
mod tests;
