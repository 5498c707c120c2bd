//! The server of the JSON relay: its clients, and the receivers of messages. PURE.
//!
//! The robot of Amber is one of its robots: it follows the commands of all controls, and its images
//! go to them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use amber_proto::Device;
use amber_robot::bucket::{Bucket, Buckets};
use amber_robot::controls::Seat;
use amber_robot::pictures::PictureWish;
use amber_robot::robot::{Measurement, RobotSetup, Topic, User};
use bytes::Bytes;
use serde_json::json;

use super::codec::{ClientId, Command, Message, Role, Secret};
use super::drive::{Driving, Speeds};
use super::image::{self, Image, Reassembly};
use super::limits::{
    CLIENT_LIFE, ERRORS_PER_S, MAX_CLIENTS, MAX_REASON, OUTSIDE_BYTES_PER_S, OUTSIDE_CLIENT_LIFE,
    SWEEP_PERIOD, USUAL_MTU,
};
use super::pacing::{Datagrams, Pacing};
use super::pictures::{Joining, ShownImages, for_amber, seconds};
use super::stamps::{self, Stamps};
use crate::shared::clock::Now;
use crate::shared::event::{Emulated, Event};
use crate::shared::machine::{Cast, Datagram, Machine, Output, Outputs, Session, Socket};

const SOCKET: Socket = Socket(0);

/// Another program of the same host must not take over the seat of a control with its name.
const IN_USE: &str = "the name belongs to a control that drives";

/// The user of commands from clients that have not registered.
const STRANGER: User = User(0);

/// The configuration of the server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The robot that follows the commands.
    pub robot: RobotSetup,
    /// Whether several controls may drive at the same time.
    pub seat: Seat,
    pub speeds: Speeds,
    /// A secret that clients must know to register.
    pub secret: Option<Secret>,
    /// Confirm accepted messages. The original does not.
    pub ack: bool,
    /// A registration replaces a client with the same name at another address, as in the original.
    pub last_wins: bool,
    /// Accept commands and images from anyone, as the original does.
    pub open: bool,
    /// Forward each fragment at once, as the original does, instead of whole images.
    pub passthrough: bool,
    /// The longest datagram with an image from Amber, in bytes.
    pub mtu: usize,
    /// The pictures of the robot's camera that controls get.
    pub pictures: Option<PictureWish>,
    /// The camera that shows the images of one of the robots.
    pub show_images_as: Option<Device>,
    /// Drop commands whose timestamps differ by more from the time here.
    pub max_skew: Option<Duration>,
}

impl Settings {
    /// The usual settings for this robot.
    pub fn new(listen: SocketAddr, robot: RobotSetup) -> Self {
        Self {
            listen,
            robot,
            seat: Seat::default(),
            speeds: Speeds::default(),
            secret: None,
            ack: false,
            last_wins: false,
            open: false,
            passthrough: false,
            mtu: USUAL_MTU,
            pictures: None,
            show_images_as: None,
            max_skew: None,
        }
    }
}

/// The session machine of the server.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    clients: BTreeMap<(Role, ClientId), Client>,
    driving: Driving,
    images: Reassembly,
    joining: Joining,
    /// The pictures that the camera is asked for now.
    watched: Option<PictureWish>,
    shown: ShownImages,
    next_user: u32,
    stranger_is_open: bool,
    swept: Duration,
    /// Answers to wrong messages.
    errors: Buckets<SocketAddr>,
}

/// Whether a message is accepted, or the reason why not.
type Outcome = Result<(), &'static str>;

#[derive(Debug)]
struct Client {
    address: SocketAddr,
    since: Duration,
    heard: Duration,
    /// A control is a client of the mediator.
    user: Option<User>,
    pacing: Pacing,
    budget: Bucket,
    stamps: Stamps,
}

impl Server {
    /// A server without clients.
    pub fn new(settings: Settings) -> Self {
        let driving = Driving::new(settings.robot, settings.seat, settings.speeds);
        Self {
            settings,
            clients: BTreeMap::new(),
            driving,
            images: Reassembly::default(),
            joining: Joining::default(),
            watched: None,
            shown: ShownImages::default(),
            next_user: 1,
            stranger_is_open: false,
            swept: Duration::ZERO,
            errors: Buckets::new(ERRORS_PER_S),
        }
    }

    fn register(
        &mut self,
        now: Now,
        from: SocketAddr,
        key: &(Role, ClientId),
        secret: Option<&Secret>,
        out: &mut Outputs,
    ) -> Outcome {
        if self.settings.secret.is_some() && self.settings.secret.as_ref() != secret {
            return Err("wrong secret");
        }
        let drives = self.drives(now, key);
        if let Some(client) = self.clients.get_mut(key) {
            if client.address.ip() != from.ip() && !self.settings.last_wins {
                return Err("the name is taken by another host");
            }
            if client.address != from && drives && !self.settings.last_wins {
                return Err(IN_USE);
            }
            client.address = from;
            return Ok(());
        }
        let count = self.clients.keys().filter(|(role, _)| *role == key.0);
        if count.count() >= MAX_CLIENTS {
            let Some(leaves) = self.who_leaves(now, key.0, from.ip()) else {
                return Err("too many clients");
            };
            let reason = "too many clients of one host: the most silent one left";
            out.tally.dropped(now.elapsed, reason, from);
            self.remove(now, &leaves, out);
        }
        let user = (key.0 == Role::Control).then(|| {
            let user = User(self.next_user);
            self.next_user = self.next_user.checked_add(1).unwrap_or(1);
            out.push(Output::Open(user, Some(from)));
            user
        });
        let client = Client {
            address: from,
            since: now.elapsed,
            heard: now.elapsed,
            user,
            pacing: Pacing::default(),
            budget: Bucket::new(OUTSIDE_BYTES_PER_S),
            stamps: Stamps::default(),
        };
        self.clients.insert(key.clone(), client);
        Ok(())
    }

    fn beat(&mut self, now: Now, from: SocketAddr, key: &(Role, ClientId)) -> Outcome {
        let drives = self.drives(now, key);
        match self.clients.get_mut(key) {
            Some(client)
                if client.address != from && client.address.ip() == from.ip() && drives =>
            {
                Err(IN_USE)
            }
            Some(client) if client.address.ip() == from.ip() => {
                client.address = from;
                Ok(())
            }
            Some(_) => Err("heartbeat from another host"),
            None => Err("not registered"),
        }
    }

    /// Whether a client holds the seat.
    fn drives(&self, now: Now, key: &(Role, ClientId)) -> bool {
        let user = self.clients.get(key).and_then(|client| client.user);
        user.is_some() && user == self.driving.seated(now)
    }

    /// The client that makes room for one of another host: of the host with the most clients, if it has
    /// at least two more, the one that is silent longest. Who drives stays.
    fn who_leaves(&self, now: Now, role: Role, ip: IpAddr) -> Option<(Role, ClientId)> {
        let mut by_host: BTreeMap<IpAddr, Vec<_>> = BTreeMap::new();
        for (key, client) in self.clients.iter().filter(|((its, _), _)| *its == role) {
            by_host
                .entry(client.address.ip())
                .or_default()
                .push((key, client));
        }
        let own = by_host.get(&ip).map_or(0, Vec::len);
        let most = by_host.into_values().max_by_key(Vec::len)?;
        if most.len() < own + 2 {
            return None;
        }
        let others = most.into_iter().filter(|(key, _)| !self.drives(now, key));
        let silent = others.min_by_key(|(_, client)| client.heard)?;
        Some(silent.0.clone())
    }

    /// Whether the network has delayed a command, by the clock of its sender.
    fn is_late(&mut self, now: Now, user: User, timestamp: u64) -> bool {
        let mut clients = self.clients.values_mut();
        let client = clients.find(|client| client.user == Some(user));
        client.is_some_and(|client| client.stamps.is_late(now.elapsed, timestamp))
    }

    /// The user of a command, if its sender may send commands.
    fn commander(&mut self, from: SocketAddr, out: &mut Outputs) -> Option<User> {
        let mut controls = self
            .clients
            .iter()
            .filter(|((role, _), _)| *role == Role::Control);
        let registered = controls
            .find_map(|(_, client)| (client.address == from).then_some(client.user).flatten());
        if registered.is_none() && self.settings.open {
            if !self.stranger_is_open {
                self.stranger_is_open = true;
                out.push(Output::Open(STRANGER, None));
            }
            return Some(STRANGER);
        }
        registered
    }

    fn command(
        &mut self,
        now: Now,
        from: SocketAddr,
        command: Command,
        timestamp: u64,
        out: &mut Outputs,
    ) -> Outcome {
        let user = self.commander(from, out);
        let user = user.ok_or("command from a client that is no control")?;
        if self
            .settings
            .max_skew
            .is_some_and(|most| skew(now, timestamp) > most)
        {
            return Err("command out of date");
        }
        if self.is_late(now, user, timestamp) {
            return Err("command delayed by the network");
        }
        if self.driving.is_duplicate(now, user, command, timestamp) {
            // The first copy has been answered.
            out.tally.dropped(now.elapsed, "duplicate command", from);
            return Ok(());
        }
        let message = Message::ControlCommand { command, timestamp };
        let bytes = Bytes::from(message.encode());
        for ((role, _), client) in &self.clients {
            if *role == Role::Robot {
                out.send(SOCKET, client.address, bytes.clone());
            }
        }
        self.driving.command(now, user, command, out)
    }

    /// Whether the sender may send images, and the name to show.
    fn sender_of_images(&self, from: SocketAddr) -> Option<String> {
        let mut robots = self
            .clients
            .iter()
            .filter(|((role, _), _)| *role == Role::Robot);
        let registered = robots.find(|(_, client)| client.address == from);
        match registered {
            Some(((_, id), _)) => Some(id.to_string()),
            None if self.settings.open => Some(from.to_string()),
            None => None,
        }
    }

    fn image_message(
        &mut self,
        now: Now,
        from: SocketAddr,
        message: Message,
        out: &mut Outputs,
    ) -> Outcome {
        let source = self.sender_of_images(from);
        let source = source.ok_or("image from a client that is no robot")?;
        if self.settings.passthrough {
            let datagram = Datagrams::from([Bytes::from(message.encode())]);
            self.forward(now, &datagram, ImageOrder::AsTheyCome, out);
        }
        let image = match message {
            Message::ImageData { image, timestamp } => Some(Image::whole(image, timestamp)),
            Message::ImageFragment {
                sequence,
                total,
                image,
                timestamp,
            } => {
                let (now, before) = (now.elapsed, self.images.abandoned());
                let image = self
                    .images
                    .handle_fragment(now, from, sequence, total, image, timestamp);
                for _ in before..self.images.abandoned() {
                    out.tally.dropped(now, "incomplete image", from);
                }
                image
            }
            _ => None,
        };
        let Some(image) = image else {
            return Ok(());
        };
        if !self.settings.passthrough {
            let messages = image.messages().into_iter();
            let datagrams = messages.map(|message| message.encode().into()).collect();
            self.forward(now, &datagrams, ImageOrder::WholeImages, out);
        }
        let file = image.decode().map_err(|_| "image is not base64")?;
        let timestamp = image.timestamps.first().copied().unwrap_or_default();
        if let Some(device) = self.settings.show_images_as
            && let Some(picture) = self.shown.next(now, &source, &file)
        {
            out.push(Output::Show(device, Measurement::Picture(picture)));
        }
        for piece in for_amber(&source, timestamp, file) {
            out.push(Output::Image(piece));
        }
        Ok(())
    }

    /// Answers a message that is not accepted. An address outside of private networks that is not
    /// registered gets nothing: it may be forged.
    fn refuse(
        &mut self,
        now: Now,
        from: SocketAddr,
        of: Option<&'static str>,
        reason: &str,
        out: &mut Outputs,
    ) {
        let is_known = is_local(from.ip()) || self.knows(SOCKET, from);
        if is_known && self.errors.take(now.elapsed, from) {
            let error = Message::Error {
                of: of.map(str::to_owned),
                reason: reason.chars().take(MAX_REASON).collect(),
            };
            out.send(SOCKET, from, error.encode());
        }
    }

    /// The client with this role at an address.
    fn at(&self, role: Role, from: SocketAddr) -> Option<(Role, ClientId)> {
        let mut clients = self.clients.iter();
        let (key, _) = clients.find(|((its, _), client)| *its == role && client.address == from)?;
        Some(key.clone())
    }

    /// Sends an image to all controls.
    fn forward(&mut self, now: Now, datagrams: &Datagrams, order: ImageOrder, out: &mut Outputs) {
        let size = datagrams.iter().map(Bytes::len).sum::<usize>();
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        for ((role, _), client) in &mut self.clients {
            let address = client.address;
            if *role != Role::Control {
                continue;
            }
            if !is_local(address.ip()) && !client.budget.take_many(now.elapsed, size) {
                out.tally
                    .dropped(now.elapsed, "image too fast for its receiver", address);
                continue;
            }
            match order {
                ImageOrder::AsTheyCome => {
                    for datagram in datagrams {
                        out.send(SOCKET, address, datagram.clone());
                    }
                }
                ImageOrder::WholeImages => {
                    if client.pacing.push(datagrams.clone()) {
                        out.tally
                            .dropped(now.elapsed, "image replaced by a newer one", address);
                    }
                }
            }
        }
        self.send_images(now, out);
    }

    /// Sends an image of Amber to all controls.
    fn send_image(&mut self, now: Now, file: &[u8], timestamp: u64, out: &mut Outputs) {
        match image::messages(file, timestamp, self.settings.mtu) {
            Ok(messages) => {
                let messages = messages.iter();
                let datagrams = messages.map(|message| message.encode().into()).collect();
                self.forward(now, &datagrams, ImageOrder::WholeImages, out);
            }
            Err(error) => out.tally.dropped(now.elapsed, "image too long", error),
        }
    }

    /// Watches the camera while there are controls.
    fn watch(&mut self, out: &mut Outputs) {
        let has_controls = self.clients.keys().any(|(role, _)| *role == Role::Control);
        let wanted = self.settings.pictures.filter(|_| has_controls);
        if wanted == self.watched {
            return;
        }
        let topic = |wish| Topic::Pictures(self.settings.robot.camera, wish);
        if let Some(wish) = wanted {
            out.push(Output::Watch(topic(wish)));
        }
        if let Some(wish) = self.watched {
            out.push(Output::Unwatch(topic(wish)));
        }
        self.watched = wanted;
    }

    fn send_images(&mut self, now: Now, out: &mut Outputs) {
        for client in self.clients.values_mut() {
            for datagram in client.pacing.poll(now.elapsed) {
                out.send(SOCKET, client.address, datagram);
            }
        }
    }

    /// Tells a control that a device refuses its motion, if answers are configured: the original has
    /// none.
    fn tell_refusal(&self, user: User, why: &str, out: &mut Outputs) {
        let mut clients = self.clients.iter();
        let client = clients.find(|(_, client)| client.user == Some(user));
        if let (true, Some(((_, id), client))) = (self.settings.ack, client) {
            let data = json!({ "client_id": id, "reason": why });
            let text = json!({ "type": "refused", "data": data }).to_string();
            out.send(SOCKET, client.address, text);
        }
    }

    /// Removes clients that are gone.
    fn sweep(&mut self, now: Now, out: &mut Outputs) {
        self.swept = now.elapsed;
        let gone = self.clients.iter().filter(|(_, client)| {
            let is_local = is_local(client.address.ip());
            let life = if is_local {
                CLIENT_LIFE
            } else {
                OUTSIDE_CLIENT_LIFE
            };
            now.since(client.heard) >= life
        });
        let gone: Vec<_> = gone.map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.remove(now, &key, out);
        }
    }

    fn remove(&mut self, now: Now, key: &(Role, ClientId), out: &mut Outputs) {
        let Some(client) = self.clients.remove(key) else {
            return;
        };
        self.images.forget(client.address);
        if let Some(user) = client.user {
            self.driving.release(now, user, out);
            out.push(Output::Close(user));
        }
    }
}

/// How the datagrams of images are sent.
#[derive(Clone, Copy)]
enum ImageOrder {
    AsTheyCome,
    WholeImages,
}

impl Machine for Server {
    fn protocol(&self) -> &'static str {
        "json-relay"
    }

    fn seat(&self) -> Seat {
        self.settings.seat
    }

    fn emulated(&self) -> Vec<(Device, Emulated)> {
        let camera = self.settings.show_images_as;
        camera
            .map(|device| (device, Emulated::Camera))
            .into_iter()
            .collect()
    }

    fn start(&mut self, _now: Now, out: &mut Outputs) {
        out.push(Output::Bind(SOCKET, self.settings.listen, Cast::Unicast));
    }

    fn handle_datagram(&mut self, now: Now, datagram: Datagram<'_>, out: &mut Outputs) {
        let from = datagram.from;
        let message = match Message::decode(datagram.bytes) {
            Ok(message) => message,
            Err(error) => {
                out.tally.bad(now.elapsed, error.reason(), from);
                return self.refuse(now, from, None, &error.to_string(), out);
            }
        };
        let kind = message.kind();
        // One address may be a control and a robot.
        let (outcome, client, timestamp) = match message {
            Message::Register {
                client_type,
                client_id,
                secret,
            } => {
                let key = (client_type, client_id);
                let outcome = self.register(now, from, &key, secret.as_ref(), out);
                (outcome, Some(key), 0)
            }
            Message::Heartbeat {
                client_type,
                client_id,
                timestamp,
            } => {
                let key = (client_type, client_id);
                (self.beat(now, from, &key), Some(key), timestamp)
            }
            Message::ControlCommand { command, timestamp } => {
                let outcome = self.command(now, from, command, timestamp, out);
                (outcome, self.at(Role::Control, from), timestamp)
            }
            Message::ImageData { timestamp, .. } | Message::ImageFragment { timestamp, .. } => {
                let outcome = self.image_message(now, from, message, out);
                (outcome, self.at(Role::Robot, from), timestamp)
            }
            // No answer, so that two servers do not keep each other busy.
            Message::Ack { .. } | Message::Error { .. } => {
                return out.tally.dropped(now.elapsed, "unexpected answer", from);
            }
        };
        self.watch(out);
        if let Err(reason) = outcome {
            out.tally.dropped(now.elapsed, reason, from);
            return self.refuse(now, from, Some(kind), reason, out);
        }
        let Some(key) = client else {
            return;
        };
        // Any message that is accepted is a sign of life.
        if let Some(client) = self.clients.get_mut(&key) {
            client.heard = now.elapsed;
        }
        if self.settings.ack {
            let ack = Message::Ack {
                of: kind.to_owned(),
                client_id: key.1,
                timestamp,
            };
            out.send(SOCKET, from, ack.encode());
        }
    }

    fn handle_event(&mut self, now: Now, event: Event, out: &mut Outputs) {
        let piece = match event {
            Event::Image(piece) => piece,
            Event::Measured(_, Measurement::Picture(picture)) => {
                let timestamp = seconds(&picture).unwrap_or(now.unix.as_secs());
                return self.send_image(now, picture.data(), timestamp, out);
            }
            Event::Refused(user, why) => return self.tell_refusal(user, &why, out),
            Event::Measured(..)
            | Event::Message(..)
            | Event::Asked(..)
            | Event::Trip(..)
            | Event::Saved(..) => return,
        };
        let timestamp = piece.timestamp.unwrap_or(now.unix.as_secs());
        match self.joining.push(&piece) {
            Ok(None) => {}
            Ok(Some(file)) => self.send_image(now, &file, timestamp, out),
            Err(_) => {
                out.tally
                    .dropped(now.elapsed, "image piece out of order", "a client");
            }
        }
    }

    fn handle_timeout(&mut self, now: Now, out: &mut Outputs) {
        let before = self.images.abandoned();
        self.images.handle_timeout(now.elapsed);
        for _ in before..self.images.abandoned() {
            out.tally
                .dropped(now.elapsed, "incomplete image", "a robot");
        }
        if now.since(self.swept) >= SWEEP_PERIOD {
            self.sweep(now, out);
            self.watch(out);
        }
        self.driving.settle(now, out);
        self.send_images(now, out);
    }

    fn next_timeout(&self) -> Option<Duration> {
        let images = self
            .clients
            .values()
            .filter_map(|client| client.pacing.next_due());
        let others = [self.driving.next_due(), self.images.next_timeout()];
        let sweep = (!self.clients.is_empty()).then_some(self.swept + SWEEP_PERIOD);
        images
            .chain(others.into_iter().flatten())
            .chain(sweep)
            .min()
    }

    fn stop(&mut self, now: Now, out: &mut Outputs) {
        let users = self.clients.values().filter_map(|client| client.user);
        for user in users.chain([STRANGER]).collect::<Vec<_>>() {
            self.driving.release(now, user, out);
        }
    }

    fn knows(&self, _socket: Socket, from: SocketAddr) -> bool {
        self.clients.values().any(|client| client.address == from)
    }

    fn sessions(&self, now: Now) -> Vec<Session> {
        let holder = self.driving.holder();
        let sessions = self.clients.iter().map(|((role, id), client)| Session {
            address: client.address,
            purpose: match role {
                Role::Control => format!("control {id}"),
                Role::Robot => format!("robot {id}"),
            },
            age: now.since(client.since),
            silence: now.since(client.heard),
            user: client.user,
            drives: client.user.is_some() && client.user == holder,
        });
        sessions.collect()
    }

    fn takes_images(&self) -> bool {
        true
    }
}

/// How far a timestamp is from the time here. It may be in seconds or in milliseconds.
fn skew(now: Now, timestamp: u64) -> Duration {
    Duration::from_millis(now.unix_ms().abs_diff(stamps::in_ms(timestamp).0))
}

/// Whether an address is on this machine or in a private network.
fn is_local(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests;
