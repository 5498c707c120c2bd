//! All clients of the gateway, and the robot that they share. PURE.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use amber_map::{Mounting, Pose};
use amber_navigation::kinematics::{Twist, Wheels};
use amber_navigation::odometry::Odometry;
use amber_proto::camera::CameraInfo;
use amber_robot::battery::RosBattery;
use amber_robot::bucket::Bucket;
use amber_robot::controls::Seat;
use amber_robot::errand::Errand;
use amber_robot::helm::Helm;
use amber_robot::limits::ORDER_RATE;
use amber_robot::robot::{
    Measurement, RobotSetup, Topic, Trip, TripEnd, TripNews, User, UserOrder,
};
use amber_values::{Hazard, Joy, LearnedLaser, NavSatFix, OpticalFrame};
use serde_json::Value;

use crate::rosbridge::messages;
use crate::rosbridge::published::Message;
use crate::rosbridge::session::{Effect, Problem, Session};
use crate::rosbridge::topics::Output as Published;
use crate::shared::clock::Now;
use crate::shared::event::Event;
use crate::shared::machine::{
    self, Datagram, Machine, Output, Outputs, Page, Socket, WebSocketEvent,
};
use crate::shared::web::Age;

mod camera;

/// The only listener.
const LISTENER: Socket = Socket(0);

/// A command while another client has the controls.
const ANOTHER: &str = "another client drives";

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
    watched: Vec<Topic>,
    /// Adds up the speeds of the wheels, if the robot does not report its odometry.
    wheels: Odometry,
    laser: LearnedLaser,
    /// The pose of the robot by its wheels.
    odometry: Option<Pose>,
    /// The frame of the odometry on the map, while the pose is known.
    odometry_on_map: Option<Pose>,
    /// The places of laser and camera on the robot, once they are known.
    laser_place: Option<Mounting>,
    camera_place: Option<OpticalFrame>,
    /// What is known of the camera.
    camera: Option<CameraInfo>,
    /// The last messages, for clients that subscribe later.
    kept: BTreeMap<Published, Arc<Message>>,
}

/// The configuration of the gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The page for browsers, and the origins whose pages may connect.
    pub page: Page,
    /// The robot that clients see.
    pub robot: RobotSetup,
    /// Whether several clients may drive at the same time.
    pub seat: Seat,
    /// How long the scanner takes for one turn, if it does not say so itself.
    pub scan_turn: Option<Duration>,
    /// The camera makes wider pictures smaller by a whole factor.
    pub picture_width_px: u32,
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
    /// Its last trip, until it ends.
    trip: Option<Trip>,
}

impl Server {
    /// Creates one without clients.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            clients: BTreeMap::new(),
            next_user: 0,
            helm: Helm::new(&config.robot, config.seat),
            watched: Vec::new(),
            wheels: Odometry::new(config.robot.drive),
            laser: LearnedLaser::new(config.scan_turn),
            odometry: None,
            odometry_on_map: None,
            laser_place: None,
            camera_place: None,
            camera: None,
            kept: BTreeMap::new(),
            config,
        }
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn take_text(&mut self, now: Now, text: Datagram<'_>, age: Age, out: &mut Outputs) {
        let from = text.from;
        let Some(client) = self.clients.get_mut(&from) else {
            return;
        };
        match client.session.receive(text.bytes, now) {
            Ok(effect) => {
                client.heard = now.elapsed;
                match effect {
                    Some(Effect::Trip(trip, _)) if age == Age::Old => {
                        out.tally.dropped(now.elapsed, DELAYED, from);
                        client.session.refuse_trip(now, trip, DELAYED);
                    }
                    Some(effect) if age == Age::Old && effect.moves() => {
                        self.refuse(now, from, DELAYED, out);
                    }
                    Some(effect) => {
                        if let Err(reason) = self.carry_out(now, from, effect, out) {
                            self.refuse(now, from, reason, out);
                        }
                    }
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
        if let Some(client) = self.clients.get_mut(&from) {
            for wanted in client.session.take_wanted() {
                if let Some(message) = self.kept.get(&wanted) {
                    client.session.offer(wanted, message, now.elapsed);
                }
            }
            if let Some((level, text)) = client.session.take_problem() {
                self.publish(now, Published::Log, || {
                    messages::log(level, &text, now.unix)
                });
            }
        }
        self.watch(out);
        self.advance(now, out);
    }

    /// Counts a command that is not carried out, and tells the client.
    fn refuse(&mut self, now: Now, from: SocketAddr, reason: &'static str, out: &mut Outputs) {
        out.tally.dropped(now.elapsed, reason, from);
        if let Some(client) = self.clients.get_mut(&from) {
            client.session.refuse_command(reason);
        }
    }

    /// Carries a command out, or says why not.
    fn carry_out(
        &mut self,
        now: Now,
        from: SocketAddr,
        effect: Effect,
        out: &mut Outputs,
    ) -> Result<(), &'static str> {
        let Some(client) = self.clients.get_mut(&from) else {
            return Ok(());
        };
        let (robot, user) = (&self.config.robot, client.user);
        match effect {
            Effect::Drive(twist) => {
                let speeds = robot.speeds(twist.forward_m_s, twist.turn_rad_s);
                let speeds = speeds.ok_or("speed is not a number")?;
                let driven = (self.helm).drive(now.elapsed, user, robot.wheels, speeds);
                driven.map_err(|_| ANOTHER)?;
                self.end_trips(now, user, "replaced by a motion command", ANOTHER);
            }
            Effect::Goal(target) => {
                if !client.orders.take(now.elapsed) {
                    return Err("too many messages");
                }
                let targets = robot.targets;
                let begun = (self.helm).begin(now.elapsed, user, Errand::Targets(targets));
                begun.map_err(|_| ANOTHER)?;
                // What it replaces stops first.
                out.orders_of(&mut self.helm, now.elapsed);
                client.trip = None;
                out.order(user, UserOrder::Targets(targets, vec![target]));
                self.end_trips(now, user, "replaced", ANOTHER);
            }
            Effect::Here(known) => {
                if !client.orders.take(now.elapsed) {
                    return Err("too many messages");
                }
                out.order(user, UserOrder::Here(robot.location, known));
            }
            Effect::SaveMap(number, name) => {
                if client.orders.take(now.elapsed) {
                    out.order(user, UserOrder::SaveMap(robot.mapping, number, name));
                } else {
                    let why = "too many requests: try again".to_owned();
                    client.session.saved(number, Err(why));
                    (out.tally).dropped(now.elapsed, "too many messages", from);
                }
            }
            Effect::Trip(trip, target) => {
                let targets = robot.targets;
                let errand = Errand::Targets(targets);
                let refused = if !client.orders.take(now.elapsed) {
                    Some("too many messages")
                } else {
                    let begun = self.helm.begin(now.elapsed, user, errand);
                    begun.is_err().then_some(ANOTHER)
                };
                if let Some(why) = refused {
                    out.tally.dropped(now.elapsed, why, from);
                    client.session.refuse_trip(now, trip, why);
                    return Ok(());
                }
                // What it replaces stops first.
                out.orders_of(&mut self.helm, now.elapsed);
                client.trip = Some(trip);
                out.order(user, UserOrder::Trip(targets, trip, vec![target]));
                self.end_trips(now, user, "replaced", ANOTHER);
            }
            Effect::CancelTrip(trip) => out.order(user, UserOrder::CancelTrip(trip)),
            Effect::Stop => {
                // Any client may stop the motion of any other.
                self.helm.stop();
                out.order(user, UserOrder::Stop(robot.targets));
                out.order(user, UserOrder::Stop(robot.wheels));
                self.end_trips(now, user, "stopped", "stopped by another client");
            }
            Effect::Halt(is_halted) => {
                self.helm.stop();
                out.order(user, UserOrder::Halt(is_halted));
                self.end_trips(now, user, "stopped", "stopped by another client");
            }
        }
        Ok(())
    }

    /// Tells a client that a device refuses its motion, for example because another program drives.
    fn tell_refusal(&mut self, now: Now, user: User, why: String, out: &mut Outputs) {
        let mut clients = self.clients.values_mut();
        if let Some(client) = clients.find(|client| client.user == user) {
            client.session.warn(why);
        }
        self.advance(now, out);
    }

    /// Tells a client how its trip goes. When it ends, the client no longer drives.
    fn take_news(&mut self, now: Now, user: User, trip: Trip, news: &TripNews) {
        let mut clients = self.clients.values_mut();
        let Some(client) = clients.find(|client| client.user == user) else {
            return;
        };
        client.session.take_news(now, trip, news);
        if matches!(news, TripNews::Ended(_)) && client.trip == Some(trip) {
            client.trip = None;
            let errand = Errand::Targets(self.config.robot.targets);
            if self.helm.has(user, errand) {
                self.helm.forget(errand);
            }
        }
    }

    /// Tells clients why the gateway has just ended their trips: it was `by` a user who is the client
    /// itself, or another one.
    fn end_trips(&mut self, now: Now, by: User, own: &str, others: &str) {
        let errand = Errand::Targets(self.config.robot.targets);
        for client in self.clients.values_mut() {
            if let Some(trip) = client.trip
                && !self.helm.has(client.user, errand)
            {
                client.trip = None;
                let why = if client.user == by { own } else { others };
                let end = TripEnd::Failed(why.to_owned());
                client.session.take_news(now, trip, &TripNews::Ended(end));
            }
        }
    }

    /// Removes a client, and stops its motions.
    fn part(&mut self, now: Now, peer: SocketAddr, out: &mut Outputs) {
        let Some(client) = self.clients.remove(&peer) else {
            return;
        };
        self.helm.release(client.user);
        out.orders_of(&mut self.helm, now.elapsed);
    }

    /// Performs everything that is due.
    fn advance(&mut self, now: Now, out: &mut Outputs) {
        out.orders_of(&mut self.helm, now.elapsed);
        for (peer, client) in &mut self.clients {
            for _ in 0..client.session.take_dropped() {
                (out.tally).dropped(now.elapsed, "client reads too slowly", peer);
            }
            if !client.busy
                && let Some(message) = client.session.next(now.elapsed)
            {
                client.busy = true;
                out.send(LISTENER, *peer, message);
            }
        }
    }

    /// Watches the topics that the clients subscribe to.
    fn watch(&mut self, out: &mut Outputs) {
        let mut wanted: Vec<Topic> = Vec::new();
        for published in Published::ALL {
            if self.wants(published) {
                for topic in self.sources(published).into_iter().flatten() {
                    if !wanted.contains(&topic) {
                        wanted.push(topic);
                    }
                }
            } else {
                // It may change from now on.
                self.kept.remove(&published);
            }
        }
        for topic in &wanted {
            if !self.watched.contains(topic) {
                out.push(Output::Watch(*topic));
            }
        }
        for topic in &self.watched {
            if !wanted.contains(topic) {
                out.push(Output::Unwatch(*topic));
            }
        }
        self.watched = wanted;
    }

    fn wants(&self, published: Published) -> bool {
        self.clients.values().any(|it| it.session.wants(published))
    }

    /// The data from which messages are made.
    fn sources(&self, published: Published) -> [Option<Topic>; 2] {
        let robot = &self.config.robot;
        match published {
            Published::Scan => [Some(Topic::Scans(robot.scanner)), None],
            Published::Odometry => [Some(Topic::Odometry(robot.wheels)), None],
            Published::Imu => [Some(Topic::Imu(robot.imu)), None],
            Published::Battery => [Some(Topic::Battery(robot.battery)), None],
            Published::Gps => [Some(Topic::Gps(robot.gps)), None],
            Published::Gamepad => [Some(Topic::Gamepad(robot.gamepad)), None],
            Published::Bumper => [Some(Topic::Contacts(robot.bumper)), None],
            Published::Picture => [
                Some(Topic::Pictures(robot.camera, self.picture_wish())),
                None,
            ],
            Published::CameraInfo => [Some(Topic::Camera(robot.camera)), None],
            Published::Pose | Published::BarePose | Published::CovariantPose => {
                [Some(Topic::Pose(robot.location)), None]
            }
            Published::Map => [Some(Topic::Map(robot.maps())), None],
            Published::Frames => [
                Some(Topic::Odometry(robot.wheels)),
                Some(Topic::Pose(robot.location)),
            ],
            Published::FixedFrames => [
                Some(Topic::Mount(robot.scanner)),
                Some(Topic::CameraPlace(robot.camera)),
            ],
            Published::Log => [None, None],
        }
    }

    /// Publishes the messages that are made from a measurement, as far as clients want them.
    fn take_measurement(&mut self, now: Now, measured: Measurement) {
        let stamped = |ms: Option<i64>| {
            let ms = ms.and_then(|ms| u64::try_from(ms).ok());
            ms.map_or(now.unix, Duration::from_millis)
        };
        match measured {
            Measurement::Scan(scan) => {
                let time = stamped(scan.timestamp_ms());
                let laser = self.laser.handle(&scan, time);
                self.publish(now, Published::Scan, || {
                    messages::laser_scan(&laser.scan(&scan), time)
                });
            }
            Measurement::Scanner(told) => self.laser.describe(*told),
            Measurement::Odometry(pose, motion) => self.moved(now, pose, motion),
            Measurement::Wheels(speeds) => {
                if self.wheels.handle_wheels(now.elapsed, Wheels::from(speeds)) {
                    let motion = self.config.robot.twist(speeds);
                    self.moved(now, self.wheels.pose_at(now.elapsed), motion);
                }
            }
            Measurement::Imu(reading) => {
                self.publish(now, Published::Imu, || messages::imu(&reading, now.unix));
            }
            Measurement::Battery(state) => {
                let measured = state.time.map_or(now.unix, Duration::from_micros);
                self.publish(now, Published::Battery, || {
                    messages::battery(&RosBattery::from(&state), measured)
                });
            }
            // The time of the satellites is that of another clock.
            Measurement::Gps(fix) => {
                self.publish(now, Published::Gps, || {
                    messages::nav_sat_fix(&NavSatFix::from(&fix), now.unix)
                });
            }
            Measurement::Gamepad(state) => {
                self.publish(now, Published::Gamepad, || {
                    messages::joy(&Joy::from(&*state), now.unix)
                });
            }
            Measurement::Contacts(contacts) => {
                let measured = contacts.time.map_or(now.unix, Duration::from_micros);
                self.publish(now, Published::Bumper, || {
                    messages::hazards(&Hazard::all(&contacts), measured)
                });
            }
            Measurement::Pose(pose) if pose.is_known() => {
                let time = stamped(pose.timestamp_ms);
                self.publish(now, Published::Pose, || messages::pose(pose, time));
                self.publish(now, Published::BarePose, || messages::bare_pose(pose));
                self.publish(now, Published::CovariantPose, || {
                    messages::pose_with_covariance(pose, time)
                });
                let start = self
                    .odometry
                    .unwrap_or_default()
                    .local_pose(Pose::default());
                self.odometry_on_map = Some(Pose::from(pose).global_pose(start));
                self.publish_frames(now);
            }
            Measurement::Pose(_) => self.odometry_on_map = None,
            Measurement::Map(grid) => {
                self.publish(now, Published::Map, || messages::map(&grid, now.unix));
            }
            Measurement::Mount(place) => {
                self.laser_place = Some(place);
                self.publish_fixed_frames(now);
            }
            Measurement::CameraPlace(place) => {
                self.camera_place = Some(place);
                self.publish_fixed_frames(now);
            }
            Measurement::Picture(picture) => self.take_picture(now, &picture),
            Measurement::CameraInfo(info) => self.take_camera_info(now, *info),
            Measurement::Targets { .. } | Measurement::Progress(_) => {}
        }
    }

    /// The pose by the wheels, and the motion.
    fn moved(&mut self, now: Now, pose: Pose, motion: Twist) {
        self.odometry = Some(pose);
        self.publish(now, Published::Odometry, || {
            messages::odometry(pose, motion, now.unix)
        });
        self.publish_frames(now);
    }

    /// Publishes all known frames that are fixed on the robot, in one message: it is the only one that
    /// clients get that subscribe later.
    fn publish_fixed_frames(&mut self, now: Now) {
        let laser = self.laser_place;
        let laser = laser.map(|place| (messages::ROBOT, messages::LASER, place.into()));
        let camera = self.camera_place;
        let camera = camera.map(|place| (messages::ROBOT, messages::CAMERA, place.into()));
        self.publish(now, Published::FixedFrames, || {
            messages::transforms(laser.into_iter().chain(camera), now.unix)
        });
    }

    /// Publishes all moving frames that are known now, so that a client that gets few messages misses
    /// none.
    fn publish_frames(&mut self, now: Now) {
        let robot = self
            .odometry
            .map(|pose| (messages::ODOMETRY, messages::ROBOT, pose.into()));
        let on_map = self.odometry_on_map;
        let on_map = on_map.map(|pose| (messages::MAP, messages::ODOMETRY, pose.into()));
        self.publish(now, Published::Frames, || {
            messages::transforms(on_map.into_iter().chain(robot), now.unix)
        });
    }

    /// Publishes a message, if a client wants it.
    fn publish(&mut self, now: Now, published: Published, message: impl FnOnce() -> Value) {
        if !self.wants(published) {
            return;
        }
        let message = Arc::new(Message::new(published, message(), now.unix));
        if published.is_kept() {
            self.kept.insert(published, message.clone());
        }
        for client in self.clients.values_mut() {
            client.session.offer(published, &message, now.elapsed);
        }
    }
}

impl Machine for Server {
    fn protocol(&self) -> &'static str {
        "rosbridge"
    }

    fn seat(&self) -> Seat {
        self.config.seat
    }

    fn start(&mut self, _now: Now, out: &mut Outputs) {
        let page = self.config.page.clone();
        out.push(Output::Listen(LISTENER, self.config.listen, page));
    }

    fn handle_link(
        &mut self,
        now: Now,
        _socket: Socket,
        peer: SocketAddr,
        link: WebSocketEvent,
        out: &mut Outputs,
    ) {
        match link {
            WebSocketEvent::Connected => {
                let user = User(self.next_user);
                self.next_user = self.next_user.wrapping_add(1);
                let client = Client {
                    user,
                    session: Session::default(),
                    since: now.elapsed,
                    heard: now.elapsed,
                    busy: false,
                    orders: Bucket::new(ORDER_RATE),
                    trip: None,
                };
                self.clients.insert(peer, client);
                out.push(Output::Open(user, Some(peer)));
            }
            WebSocketEvent::Sent => {
                if let Some(client) = self.clients.get_mut(&peer) {
                    client.busy = false;
                }
            }
            WebSocketEvent::Silent => {
                if let Some(client) = self.clients.get(&peer) {
                    let user = client.user;
                    self.helm.release(user);
                    let why = "the connection was silent for too long";
                    self.end_trips(now, user, why, ANOTHER);
                }
            }
            WebSocketEvent::Gone => {
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

    fn handle_datagram(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outputs) {
        self.take_text(now, datagram, Age::New, out);
    }

    fn handle_old_text(&mut self, now: Now, text: Datagram<'_>, out: &mut Outputs) {
        self.take_text(now, text, Age::Old, out);
    }

    fn handle_event(&mut self, now: Now, event: Event, out: &mut Outputs) {
        let measured = match event {
            Event::Measured(_, measured) => measured,
            Event::Saved(user, number, saved) => {
                let mut clients = self.clients.values_mut();
                if let Some(client) = clients.find(|client| client.user == user) {
                    client.session.saved(number, saved);
                }
                return self.advance(now, out);
            }
            Event::Refused(user, why) => return self.tell_refusal(now, user, why, out),
            Event::Trip(user, trip, news) => {
                self.take_news(now, user, trip, &news);
                return self.advance(now, out);
            }
            Event::Message(..) | Event::Asked(..) | Event::Image(_) => return,
        };
        // What is due goes first: a message that is replaced has not been taken in time.
        self.advance(now, out);
        self.take_measurement(now, measured);
        self.advance(now, out);
    }

    fn handle_timeout(&mut self, now: Now, out: &mut Outputs) {
        self.advance(now, out);
    }

    fn next_timeout(&self) -> Option<Duration> {
        let ready = self.clients.values().filter(|client| !client.busy);
        let texts = ready.filter_map(|client| client.session.deadline()).min();
        [self.helm.next_due(), texts].into_iter().flatten().min()
    }

    fn stop(&mut self, now: Now, out: &mut Outputs) {
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
            user: Some(client.user),
            drives: self.helm.is_driven_by(client.user),
        });
        sessions.collect()
    }
}

#[cfg(test)]
mod tests;
