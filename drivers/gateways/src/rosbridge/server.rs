//! All clients of the gateway, and the robot that they share. PURE.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use amber_navigation::kinematics::Wheels;
use amber_navigation::odometry::Odometry;
use amber_values::WheelSpeeds;
use serde_json::Value;

use crate::limits::ORDER_RATE;
use crate::rosbridge::messages;
use crate::rosbridge::session::{Effect, Problem, Session};
use crate::rosbridge::topics::Output as Published;
use crate::shared::clock::Now;
use crate::shared::controls::Seat;
use crate::shared::gate::Bucket;
use crate::shared::helm::{Errand, Helm};
use crate::shared::machine::{self, Datagram, Link, Machine, Outbox, Output, Page, Socket};
use crate::shared::robot::{Event, Measurement, Order, Robot, Topic, User};
use crate::shared::web::Age;

/// The only listener.
const LISTENER: Socket = Socket(0);

/// The counter of motion commands that may have waited in a network that has stalled.
const DELAYED: &str = "motion delayed by the network";

/// The gateway.
#[derive(Debug)]
pub struct Server {
    config: Config,
    clients: BTreeMap<SocketAddr, Client>,
    next_user: u32,
    helm: Helm,
    /// The requested data of the robot.
    watched: BTreeSet<Published>,
    odometry: Odometry,
    /// The map as JSON, for clients that subscribe later.
    map: Option<Arc<str>>,
}

/// The configuration of the gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The page for browsers, and the origins whose pages may connect.
    pub page: Page,
    /// The robot that clients see.
    pub robot: Robot,
    /// Whether several clients may drive at the same time.
    pub seat: Seat,
    /// How long the scanner takes for one turn, in seconds.
    pub scan_turn_s: f64,
}

#[derive(Debug)]
struct Client {
    user: User,
    session: Session,
    since: Duration,
    heard: Duration,
    /// Whether a text is on its way to the client.
    busy: bool,
    /// Goals of this client.
    orders: Bucket,
}

impl Server {
    /// Creates one without clients.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            clients: BTreeMap::new(),
            next_user: 0,
            helm: Helm::new(&config.robot, config.seat),
            watched: BTreeSet::new(),
            odometry: Odometry::new(config.robot.drive),
            map: None,
            config,
        }
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn take_text(&mut self, now: Now, text: Datagram<'_>, age: Age, out: &mut Outbox) {
        let from = text.from;
        let Some(client) = self.clients.get_mut(&from) else {
            return;
        };
        let Ok(text) = std::str::from_utf8(text.bytes) else {
            return out.tally.bad(now.elapsed, "text is not UTF-8", from);
        };
        match client.session.receive(text, now) {
            Ok(effect) => {
                client.heard = now.elapsed;
                match effect {
                    Some(effect) if age == Age::Old && effect.moves() => {
                        out.tally.dropped(now.elapsed, DELAYED, from);
                    }
                    Some(effect) => self.carry_out(now, from, effect, out),
                    None => {}
                }
            }
            Err(Problem::Malformed(malformed)) => {
                out.tally.bad(now.elapsed, malformed.text(), from);
            }
            Err(Problem::Refused) => {
                client.heard = now.elapsed;
                out.tally.dropped(now.elapsed, "operation refused", from);
            }
        }
        if let Some(client) = self.clients.get_mut(&from)
            && client.session.take_wants_map()
            && let Some(map) = &self.map
        {
            client.session.offer(Published::Map, map, now.elapsed);
        }
        self.watch(out);
        self.advance(now, out);
    }

    fn carry_out(&mut self, now: Now, from: SocketAddr, effect: Effect, out: &mut Outbox) {
        let Some(client) = self.clients.get_mut(&from) else {
            return;
        };
        let (robot, user) = (&self.config.robot, client.user);
        match effect {
            Effect::Drive(twist) => {
                let Some(speeds) = robot.speeds(twist.forward_m_s, twist.turn_rad_s) else {
                    return out.tally.bad(now.elapsed, "speed is not a number", from);
                };
                let driven = (self.helm).drive(now.elapsed, user, robot.wheels, speeds);
                if driven.is_err() {
                    out.tally
                        .dropped(now.elapsed, "another client drives", from);
                }
            }
            Effect::Goal(target) => {
                if !client.orders.take(now.elapsed) {
                    return out.tally.dropped(now.elapsed, "too many messages", from);
                }
                let targets = robot.targets;
                match self.helm.begin(now.elapsed, user, Errand::Targets(targets)) {
                    Ok(()) => {
                        // What it replaces stops first.
                        self.helm.send(now.elapsed, out);
                        out.order(user, Order::Targets(targets, vec![target]));
                    }
                    Err(_) => out
                        .tally
                        .dropped(now.elapsed, "another client drives", from),
                }
            }
            Effect::SaveMap(name) => {
                if !client.orders.take(now.elapsed) {
                    let why = "too many requests: try again".to_owned();
                    client.session.saved(Err(why));
                    return out.tally.dropped(now.elapsed, "too many messages", from);
                }
                out.order(user, Order::SaveMap(robot.mapping, name));
            }
            Effect::Stop => {
                // Any client may stop the motion of any other.
                self.helm.stop();
                out.order(user, Order::Targets(robot.targets, Vec::new()));
                out.order(user, Order::Drive(robot.wheels, WheelSpeeds::STOP));
            }
        }
    }

    /// Removes a client, and stops its motions.
    fn part(&mut self, now: Now, peer: SocketAddr, out: &mut Outbox) {
        let Some(client) = self.clients.remove(&peer) else {
            return;
        };
        self.helm.release(client.user);
        self.helm.send(now.elapsed, out);
    }

    /// Performs everything that is due.
    fn advance(&mut self, now: Now, out: &mut Outbox) {
        self.helm.send(now.elapsed, out);
        for (peer, client) in &mut self.clients {
            for _ in 0..client.session.take_dropped() {
                (out.tally).dropped(now.elapsed, "client reads too slowly", peer);
            }
            if !client.busy
                && let Some(text) = client.session.next(now.elapsed)
            {
                client.busy = true;
                out.send(LISTENER, *peer, text);
            }
        }
    }

    /// Watches the topics that the clients subscribe to.
    fn watch(&mut self, out: &mut Outbox) {
        for published in Published::ALL {
            let is_wanted = self.clients.values().any(|it| it.session.wants(published));
            let topic = self.topic(published);
            if is_wanted && self.watched.insert(published) {
                out.push(Output::Watch(topic));
            } else if !is_wanted && self.watched.remove(&published) {
                if published == Published::Map {
                    // The map may change from now on.
                    self.map = None;
                }
                out.push(Output::Unwatch(topic));
            }
        }
    }

    fn topic(&self, published: Published) -> Topic {
        let robot = &self.config.robot;
        match published {
            Published::Scan => Topic::Scans(robot.scanner),
            Published::Odometry => Topic::Wheels(robot.wheels),
            Published::Imu => Topic::Imu(robot.imu),
            Published::Pose => Topic::Pose(robot.location),
            Published::Map => Topic::Map(robot.maps()),
        }
    }

    /// A measurement as a ROS message.
    fn message(&mut self, now: Now, measured: Measurement) -> Option<(Published, Value)> {
        let stamped = |ms: Option<i64>| {
            let ms = ms.and_then(|ms| u64::try_from(ms).ok());
            ms.map_or(now.unix, Duration::from_millis)
        };
        let (published, message) = match measured {
            Measurement::Scan(scan) => {
                let time = stamped(scan.timestamp_ms());
                let message = messages::laser_scan(&scan, time, self.config.scan_turn_s);
                (Published::Scan, message)
            }
            Measurement::Wheels(speeds) => {
                (self.odometry).handle_wheels(now.elapsed, Wheels::from(speeds));
                let pose = self.odometry.pose_at(now.elapsed);
                let motion = self.config.robot.twist(speeds);
                let message = messages::odometry(pose, motion, now.unix);
                (Published::Odometry, message)
            }
            Measurement::Imu(reading) => (Published::Imu, messages::imu(&reading, now.unix)),
            Measurement::Pose(pose) if pose.is_known() => {
                let time = stamped(pose.timestamp_ms);
                (Published::Pose, messages::pose(pose, time))
            }
            Measurement::Map(grid) => (Published::Map, messages::map(&grid, now.unix)),
            Measurement::Pose(_) | Measurement::Targets { .. } | Measurement::Progress(_) => {
                return None;
            }
        };
        Some((published, message))
    }
}

impl Machine for Server {
    fn protocol(&self) -> &'static str {
        "rosbridge"
    }

    fn start(&mut self, _now: Now, out: &mut Outbox) {
        let page = self.config.page.clone();
        out.push(Output::Listen(LISTENER, self.config.listen, page));
    }

    fn handle_link(
        &mut self,
        now: Now,
        _socket: Socket,
        peer: SocketAddr,
        link: Link,
        out: &mut Outbox,
    ) {
        match link {
            Link::Connected => {
                let user = User(self.next_user);
                self.next_user = self.next_user.wrapping_add(1);
                let client = Client {
                    user,
                    session: Session::default(),
                    since: now.elapsed,
                    heard: now.elapsed,
                    busy: false,
                    orders: Bucket::new(ORDER_RATE),
                };
                self.clients.insert(peer, client);
                out.push(Output::Open(user));
            }
            Link::Sent => {
                if let Some(client) = self.clients.get_mut(&peer) {
                    client.busy = false;
                }
            }
            Link::Gone => {
                let user = self.clients.get(&peer).map(|client| client.user);
                self.part(now, peer, out);
                self.watch(out);
                self.advance(now, out);
                if let Some(user) = user {
                    out.push(Output::Close(user));
                }
                return;
            }
        }
        self.advance(now, out);
    }

    fn handle_datagram(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outbox) {
        self.take_text(now, datagram, Age::New, out);
    }

    fn handle_old_text(&mut self, now: Now, text: Datagram<'_>, out: &mut Outbox) {
        self.take_text(now, text, Age::Old, out);
    }

    fn handle_event(&mut self, now: Now, event: Event, out: &mut Outbox) {
        let measured = match event {
            Event::Measured(_, measured) => measured,
            Event::Saved(user, saved) => {
                let mut clients = self.clients.values_mut();
                if let Some(client) = clients.find(|client| client.user == user) {
                    client.session.saved(saved);
                }
                return self.advance(now, out);
            }
            _ => return,
        };
        if let Some((published, message)) = self.message(now, measured) {
            // What is due goes first: a message that is replaced has not been taken in time.
            self.advance(now, out);
            let text: Arc<str> = message.to_string().into();
            if published == Published::Map {
                self.map = Some(text.clone());
            }
            for client in self.clients.values_mut() {
                client.session.offer(published, &text, now.elapsed);
            }
            self.advance(now, out);
        }
    }

    fn handle_timeout(&mut self, now: Now, out: &mut Outbox) {
        self.advance(now, out);
    }

    fn next_timeout(&self) -> Option<Duration> {
        let ready = self.clients.values().filter(|client| !client.busy);
        let texts = ready.filter_map(|client| client.session.deadline()).min();
        [self.helm.next_due(), texts].into_iter().flatten().min()
    }

    fn stop(&mut self, now: Now, out: &mut Outbox) {
        let peers: Vec<SocketAddr> = self.clients.keys().copied().collect();
        for peer in peers {
            self.part(now, peer, out);
            out.push(Output::Disconnect(LISTENER, peer));
        }
        self.advance(now, out);
    }

    fn knows(&self, _socket: Socket, from: SocketAddr) -> bool {
        self.clients.contains_key(&from)
    }

    fn sessions(&self, now: Now) -> Vec<machine::Session> {
        let sessions = self.clients.iter().map(|(peer, client)| machine::Session {
            address: *peer,
            purpose: "rosbridge".into(),
            age: now.since(client.since),
            silence: now.since(client.heard),
            drives: self.helm.is_driven_by(client.user),
        });
        sessions.collect()
    }
}

#[cfg(test)]
mod tests;
