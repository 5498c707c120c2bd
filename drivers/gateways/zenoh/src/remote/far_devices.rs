//! Devices of robots in the fleet as devices of a local mediator: what to do with messages of both
//! sides. PURE.
//!
//! Each client of the mediator is a program of its own for the robots, with a token: so a robot knows
//! which client is gone. Messages pass as they are; only what [`Streams`] do for clients is done here.

mod requests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use amber_proto::mediator::{self, Health as Report, Outcome, Unavailable, unavailable::Reason};
use amber_proto::{
    ClientId, Device, DeviceId, DeviceMessage, DeviceType, DriverHdr, MsgType, Packet,
};
use bytes::Bytes;
use prost::Message;

use self::requests::{Call, Held, Program};
use super::streams::Streams;
use crate::config::FarRobot;
use crate::health::{Health, State};
use crate::keys::RobotKeys;
use crate::limits::{DOUBT, MOTION_AGE, SEARCH};
use crate::names::Name;
use crate::problem::{Kind, Problem};
use crate::stamp::OrderStamp;

/// The ids of clients in one header: it stays below the size of a sure header.
const MAX_IDS: usize = 400;

/// The far devices, and the clients that use them.
#[derive(Debug)]
pub struct FarDevices {
    who: Name,
    robots: Vec<FarRobot>,
    places: BTreeMap<Device, Place>,
    programs: BTreeMap<(ClientId, usize), Program>,
    calls: BTreeMap<u64, Call>,
    last_call: u64,
    /// Requests for awaited devices, in the order of arrival.
    held: Vec<Held>,
    /// Whether there is a link to a router.
    is_linked: bool,
    outputs: VecDeque<Output>,
    counts: Vec<&'static str>,
    random: fastrand::Rng,
}

/// An output of the far devices.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Write a frame for the mediator.
    Frame(Packet),
    /// Write published data for the mediator, if there is room.
    Data(Packet),
    /// Listen to a key for a device.
    Watch(Device, String),
    /// Stop listening.
    Unwatch(Device),
    /// Declare a token.
    Token(String),
    /// Withdraw a token.
    NoToken(String),
    /// Ask for the description of a device, and call [`FarDevices::described`].
    Describe(Device, String),
    /// Publish a message.
    Put(Letter),
    /// Ask, and call [`FarDevices::answer`] with this number.
    Ask(u64, Letter),
}

/// A message for a robot.
#[derive(Clone, Debug, PartialEq)]
pub struct Letter {
    pub key: String,
    /// The sender and the number.
    pub stamp: OrderStamp,
    /// The `DriverMsg`.
    pub message: Bytes,
    /// Whether it may move the robot: then it is sent at once or not at all.
    pub moves: bool,
    /// How long it has waited for the robot.
    pub age: Duration,
}

impl Letter {
    /// Whether it is too late to send it after this time in the queue of the link.
    #[must_use]
    pub fn is_late(&self, queued: Duration) -> bool {
        self.moves && self.age + queued > MOTION_AGE
    }
}

/// A far device.
#[derive(Debug)]
struct Place {
    robot: usize,
    far: Device,
    /// Whether it may still come for the first time since the start: requests wait for it.
    is_awaited: bool,
    /// The starts of the robot that have a token for the device.
    boots: BTreeSet<String>,
    /// When the last token has gone.
    doubt: Option<Duration>,
    /// The reason why it is unavailable, as reported by the robot.
    reason: Option<String>,
    /// The last report to the mediator: `None` at the start, then the trouble.
    reported: Option<Option<String>>,
    streams: Streams,
    is_watched: bool,
}

impl FarDevices {
    /// Serves these local devices. The robot of each is the one whose first id is the largest that is
    /// not above the id of the device.
    ///
    /// # Errors
    /// A device belongs to no robot.
    pub fn new(
        who: Name,
        robots: Vec<FarRobot>,
        devices: &[Device],
        seed: u64,
    ) -> Result<Self, Device> {
        let mut places = BTreeMap::new();
        for &device in devices {
            let candidates = robots.iter().enumerate();
            let found = candidates
                .filter(|(_, robot)| robot.first_id <= device.id.0)
                .max_by_key(|(_, robot)| robot.first_id);
            let (robot, first_id) = found
                .map(|(index, it)| (index, it.first_id))
                .ok_or(device)?;
            let far = Device {
                device_type: device.device_type,
                id: DeviceId(device.id.0 - first_id),
            };
            let place = Place {
                robot,
                far,
                is_awaited: true,
                boots: BTreeSet::new(),
                doubt: None,
                reason: None,
                reported: None,
                streams: Streams::new(device.device_type),
                is_watched: false,
            };
            places.insert(device, place);
        }
        Ok(Self {
            who,
            robots,
            places,
            programs: BTreeMap::new(),
            calls: BTreeMap::new(),
            last_call: 0,
            held: Vec::new(),
            is_linked: true,
            outputs: VecDeque::new(),
            counts: Vec::new(),
            random: fastrand::Rng::with_seed(seed),
        })
    }

    /// The far devices, with the local ones that show them.
    pub fn far(&self) -> impl Iterator<Item = (&Name, Device, Device)> {
        let all = self.places.iter();
        all.map(|(local, place)| (&self.robots[place.robot].name, place.far, *local))
    }

    /// A frame of the mediator.
    pub fn packet(&mut self, now: Duration, packet: Packet) {
        let kind = mediator::DriverMsg::decode(packet.message.clone());
        let Ok(head) = kind else {
            return self.count("messages_dropped_invalid");
        };
        let device = device_of(&packet.header).or_else(|| {
            // The mediator of a driver with one device names none.
            let only = self.places.len() == 1;
            self.places.keys().next().copied().filter(|_| only)
        });
        let clients: Vec<_> = (packet.header.client_ids.iter())
            .copied()
            .map(ClientId)
            .collect();
        match (head.kind(), device) {
            (Some(MsgType::Ping), _) if clients.is_empty() => {
                let mut pong = mediator::DriverMsg::of_kind(MsgType::Pong);
                pong.set_ack(head.syn());
                self.say(packet.header, &pong);
            }
            (Some(MsgType::ClientDied), device) => {
                let named = device_of(&packet.header).and(device);
                for client in clients {
                    self.client_died(client, named);
                }
            }
            (Some(MsgType::Subscribe), Some(device)) => {
                for client in clients {
                    self.listen(device, |streams| streams.subscribe(client));
                }
                self.check(device);
            }
            (Some(MsgType::Unsubscribe), Some(device)) => {
                for client in clients {
                    self.listen(device, |streams| streams.unsubscribe(client));
                }
            }
            (Some(MsgType::Data | MsgType::Ping), Some(device)) => match clients.first() {
                Some(&client) => self.request(now, device, client, head, packet),
                None => self.count("messages_dropped_invalid"),
            },
            (Some(MsgType::Pong | MsgType::DriverDied), _) => {}
            (None, _) | (Some(_), None) => self.count("messages_dropped_invalid"),
        }
    }

    /// The answer to [`Output::Ask`]; `None` if there was none.
    pub fn answer(&mut self, number: u64, answer: Option<Result<Bytes, Problem>>) {
        let Some(call) = self.calls.remove(&number) else {
            return;
        };
        match answer {
            Some(Ok(message)) if !message.is_empty() => {
                let header = call.header;
                self.outputs
                    .push_back(Output::Frame(Packet { header, message }));
            }
            Some(Ok(_)) => self.tell_outcome(call, Outcome::accepted()),
            Some(Err(problem)) => {
                self.count("requests_failed");
                match problem.kind {
                    Kind::NoSuchDevice
                    | Kind::Unavailable
                    | Kind::DriverDied
                    | Kind::MediatorLost => {
                        let why = self.of_robot(call.device, &problem.message);
                        self.died(call.device, &why, problem.hint);
                    }
                    // The client has its own deadline.
                    Kind::TimedOut => {}
                    _ => self.tell_outcome(call, Outcome::refusal(&problem.message)),
                }
            }
            None => {
                self.count("requests_failed");
                let why = self.of_robot(
                    call.device,
                    "no answer: it has left the fleet, or the rights of this operator do not allow it",
                );
                self.died(call.device, &why, None);
            }
        }
    }

    /// Published data of a far device.
    pub fn data(&mut self, now: Duration, device: Device, message: &Bytes) {
        let Some(place) = self.places.get_mut(&device) else {
            return;
        };
        for (clients, message) in place.streams.data(now, message) {
            for ids in clients.chunks(MAX_IDS) {
                self.outputs.push_back(Output::Data(Packet {
                    header: header(device, ids),
                    message: message.clone(),
                }));
            }
        }
    }

    /// A token of a far device has come or gone.
    pub fn token(&mut self, now: Duration, robot: &Name, far: Device, boot: &str, is_there: bool) {
        for device in self.locals(robot, far) {
            let Some(place) = self.places.get_mut(&device) else {
                continue;
            };
            match is_there {
                true => {
                    if place.doubt.is_some() {
                        // It has come back before anybody was told that it was gone.
                        self.decide(device);
                    }
                    if let Some(place) = self.places.get_mut(&device) {
                        place.boots.insert(boot.to_owned());
                        place.reason = None;
                        if far.device_type.name().is_none() {
                            let keys = RobotKeys::new(robot);
                            let key = keys.of(far, "description");
                            self.outputs.push_back(Output::Describe(device, key));
                        }
                    }
                    self.report(device, None);
                    self.release(now, device);
                }
                false => {
                    let had = place.boots.remove(boot);
                    if had && place.boots.is_empty() {
                        place.doubt = Some(now + DOUBT);
                    }
                }
            }
        }
    }

    /// The description of a device that Amber does not know by itself.
    pub fn described(&mut self, device: Device, files: &Bytes) {
        let mut is_read = false;
        self.listen(device, |streams| is_read = streams.describe(files));
        if !is_read {
            self.count("facts_dropped_invalid");
        }
        let mut message = mediator::DriverMsg::data();
        message.description = Some(mediator::Description {
            files: files.clone(),
        });
        self.say(header(device, &[]), &message);
    }

    /// The robot reports the health of a device.
    pub fn health(&mut self, robot: &Name, health: &Health) {
        let Ok(far) = health.device.parse() else {
            return self.count("facts_dropped_invalid");
        };
        for device in self.locals(robot, far) {
            let text = health.text.clone();
            let text = text.map(|text| self.of_robot(device, &text));
            let Some(place) = self.places.get_mut(&device) else {
                continue;
            };
            match health.state {
                State::Up => place.reason = None,
                State::Trouble => {
                    place.reason = None;
                    self.report(device, text);
                }
                State::Down => {
                    place.reason = text;
                    if place.doubt.is_some() {
                        self.decide(device);
                    }
                }
            }
            if health.state == State::Up && self.is_up(device) {
                self.report(device, None);
            }
        }
    }

    /// Whether there is a link to a router.
    pub fn link(&mut self, is_linked: bool) {
        self.is_linked = is_linked;
    }

    /// Devices whose token is gone for a while are dead.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.sign(now);
        let due = |place: &Place| place.doubt.is_some_and(|at| at <= now);
        let lost: Vec<_> = (self.places.iter().filter(|(_, place)| due(place)))
            .map(|(device, _)| *device)
            .collect();
        for device in lost {
            self.decide(device);
        }
        if now >= SEARCH {
            let missing = self.places.iter().filter(|(_, place)| place.is_awaited);
            for device in missing.map(|(device, _)| *device).collect::<Vec<_>>() {
                self.give_up(device);
            }
        }
        for device in self.places.keys().copied().collect::<Vec<_>>() {
            let Some(place) = self.places.get_mut(&device) else {
                continue;
            };
            for (clients, message) in place.streams.due(now) {
                for ids in clients.chunks(MAX_IDS) {
                    let header = header(device, ids);
                    let message = message.clone();
                    self.outputs
                        .push_back(Output::Data(Packet { header, message }));
                }
            }
        }
    }

    /// When [`FarDevices::handle_timeout`] is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let places = self.places.values();
        let due = places.clone().filter_map(|place| place.doubt);
        let due = due.chain(places.clone().filter_map(|place| place.streams.next_due()));
        let search = places.clone().any(|place| place.is_awaited);
        let search = search.then_some(SEARCH);
        due.chain(search).chain(self.next_sign()).min()
    }

    /// The next output.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The drops and failures since the last call.
    pub fn take_counts(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.counts)
    }

    /// A client subscribes to a device, or unsubscribes.
    fn listen(&mut self, device: Device, change: impl FnOnce(&mut Streams)) {
        let Some(place) = self.places.get_mut(&device) else {
            return self.count("messages_dropped_invalid");
        };
        change(&mut place.streams);
        let is_heard = !place.streams.is_empty();
        if is_heard != place.is_watched {
            place.is_watched = is_heard;
            let robot = &self.robots[place.robot];
            let keys = RobotKeys::new(&robot.name);
            let key = match robot.own_rate {
                true => keys.own_data(place.far, &self.who),
                false => keys.of(place.far, "data"),
            };
            self.outputs.push_back(match is_heard {
                true => Output::Watch(device, key),
                false => Output::Unwatch(device),
            });
        }
    }

    /// Tells clients of a device that is missing, and not awaited, that it is dead.
    fn check(&mut self, device: Device) {
        let place = self.places.get(&device);
        if place.is_some_and(|place| !place.is_awaited) && !self.is_up(device) {
            let why = self.why(device);
            self.died(device, &why, None);
        }
    }

    fn is_up(&self, device: Device) -> bool {
        let place = self.places.get(&device);
        place.is_some_and(|place| !place.boots.is_empty() || place.doubt.is_some())
    }

    /// The device is dead.
    fn decide(&mut self, device: Device) {
        if let Some(place) = self.places.get_mut(&device) {
            place.doubt = None;
            let why = self.why(device);
            self.died(device, &why, None);
            self.report(device, Some(why));
            self.count("devices_lost");
        }
    }

    fn died(&mut self, device: Device, why: &str, hint: Option<String>) {
        let mut message = mediator::DriverMsg::of_kind(MsgType::DriverDied);
        message.unavailable = Some(Unavailable {
            reason: Reason::OutOfOrder.into(),
            message: Some(why.to_owned()),
            hint: hint.or_else(|| Some("`amber-zenoh fleet` lists the robots".to_owned())),
        });
        self.say(header(device, &[]), &message);
    }

    fn why(&self, device: Device) -> String {
        let Some(place) = self.places.get(&device) else {
            return String::new();
        };
        let robot = &self.robots[place.robot].name;
        match &place.reason {
            _ if !self.is_linked => "no link to a router of the fleet".to_owned(),
            Some(reason) => reason.clone(),
            None => format!(
                "the robot {robot} is not in the fleet, or has no {}",
                place.far
            ),
        }
    }

    fn of_robot(&self, device: Device, text: &str) -> String {
        match self.places.get(&device) {
            Some(place) => format!("robot {}: {text}", self.robots[place.robot].name),
            None => text.to_owned(),
        }
    }

    /// Reports the health of a device to the mediator.
    fn report(&mut self, device: Device, trouble: Option<String>) {
        let Some(place) = self.places.get_mut(&device) else {
            return;
        };
        if place.reported.as_ref() == Some(&trouble) {
            return;
        }
        let mut message = mediator::DriverMsg::data();
        message.health = Some(match &trouble {
            Some(why) => Report::in_trouble(why),
            None => Report::ok(),
        });
        place.reported = Some(trouble);
        self.say(header(device, &[]), &message);
    }

    fn tell_outcome(&mut self, call: Call, outcome: Outcome) {
        let (Some(syn), true) = (call.syn, call.wants_outcome) else {
            return;
        };
        let mut message = mediator::DriverMsg::data();
        message.set_ack(Some(syn));
        message.outcome = Some(outcome);
        self.say(call.header, &message);
    }

    fn say(&mut self, header: DriverHdr, message: &mediator::DriverMsg) {
        let message = message.encode_to_vec().into();
        self.outputs
            .push_back(Output::Frame(Packet { header, message }));
    }

    fn locals(&self, robot: &Name, far: Device) -> Vec<Device> {
        let is_it = |place: &Place| place.far == far && self.robots[place.robot].name == *robot;
        (self.places.iter())
            .filter(|(_, place)| is_it(place))
            .map(|(device, _)| *device)
            .collect()
    }

    fn count(&mut self, name: &'static str) {
        self.counts.push(name);
    }
}

fn header(device: Device, clients: &[i32]) -> DriverHdr {
    DriverHdr {
        device_type: Some(device.device_type.0),
        device_id: Some(device.id.0),
        client_ids: clients.to_vec(),
    }
}

fn device_of(header: &DriverHdr) -> Option<Device> {
    Some(Device {
        device_type: DeviceType(header.device_type?),
        id: DeviceId(header.device_id?),
    })
}

#[cfg(test)]
mod tests;
