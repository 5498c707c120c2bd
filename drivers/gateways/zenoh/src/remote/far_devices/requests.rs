//! Requests of clients on their way to a robot: sent, waiting for the robot, or for an answer. PURE.

use std::collections::BTreeSet;
use std::time::Duration;

use amber_proto::mediator::{self, Outcome};
use amber_proto::{ClientId, Device, DeviceMessage, DriverHdr, MsgType, Packet, SynNum};
use amber_robot::motion::{self, Motion};
use bytes::Bytes;

use super::{FarDevices, Letter, Output, Place, header};
use crate::keys::{Address, RobotKeys, Way};
use crate::limits::{MAX_HELD, MAX_PENDING, SIGN_PERIOD};
use crate::stamp::OrderStamp;

/// A client as a program for one robot.
#[derive(Debug)]
pub(super) struct Program {
    instance: u64,
    sequence: u64,
    devices: BTreeSet<Device>,
    /// The devices with an errand: it lives only as long as the program gives signs of life.
    errands: BTreeSet<Device>,
    /// When it has given the last one.
    signed: Duration,
}

/// A request that waits for an awaited device.
#[derive(Debug)]
pub(super) struct Held {
    since: Duration,
    device: Device,
    client: ClientId,
    head: mediator::DriverMsg,
    packet: Packet,
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) device: Device,
    pub(super) header: DriverHdr,
    pub(super) syn: Option<SynNum>,
    pub(super) wants_outcome: bool,
}

impl Program {
    fn sign_due(&self) -> Option<Duration> {
        (!self.errands.is_empty()).then(|| self.signed + SIGN_PERIOD)
    }
}

impl Call {
    fn new(device: Device, head: &mediator::DriverMsg, packet: &Packet) -> Self {
        Self {
            device,
            header: header(device, &packet.header.client_ids),
            syn: head.syn(),
            wants_outcome: head.want_outcome() && head.syn().is_some(),
        }
    }
}

impl FarDevices {
    /// A request, a command or a PING of a client.
    pub(super) fn request(
        &mut self,
        now: Duration,
        device: Device,
        client: ClientId,
        head: mediator::DriverMsg,
        packet: Packet,
    ) {
        let Some(place) = self.places.get(&device) else {
            return self.count("messages_dropped_invalid");
        };
        let is_awaited = place.is_awaited;
        let call = Call::new(device, &head, &packet);
        let mut is_stream = false;
        self.listen(device, |streams| {
            is_stream = streams.request(client, &packet.message);
        });
        if is_stream {
            return match is_awaited || self.is_up(device) {
                true => self.tell_outcome(call, Outcome::accepted()),
                false => self.check(device),
            };
        }
        let request = Held {
            since: now,
            device,
            client,
            head,
            packet,
        };
        if is_awaited && self.held.len() < MAX_HELD {
            self.held.push(request);
        } else if is_awaited {
            self.refuse_busy(call);
        } else if self.is_up(device) {
            self.forward(now, request);
        } else {
            self.count("messages_dropped_down");
            self.check(device);
        }
    }

    /// An awaited device has appeared: its waiting requests are sent.
    pub(super) fn release(&mut self, now: Duration, device: Device) {
        for request in self.no_longer_awaited(device) {
            self.forward(now, request);
        }
    }

    /// An awaited device has not appeared: clients with requests for it are told.
    pub(super) fn give_up(&mut self, device: Device) {
        let held = self.no_longer_awaited(device);
        held.iter()
            .for_each(|_| self.count("messages_dropped_down"));
        let is_heard = |place: &Place| !place.streams.is_empty();
        if !held.is_empty() || self.places.get(&device).is_some_and(is_heard) {
            self.check(device);
        }
        let why = self.why(device);
        self.report(device, Some(why));
    }

    fn no_longer_awaited(&mut self, device: Device) -> Vec<Held> {
        if let Some(place) = self.places.get_mut(&device) {
            place.is_awaited = false;
        }
        let held = self.held.extract_if(.., |it| it.device == device);
        held.collect()
    }

    /// Sends a request to a device that is there.
    fn forward(&mut self, now: Duration, request: Held) {
        let Held {
            since,
            device,
            client,
            head,
            packet,
        } = request;
        let call = Call::new(device, &head, &packet);
        let place = &self.places[&device];
        let (index, far) = (place.robot, place.far);
        let robot = &self.robots[index];
        let keys = RobotKeys::new(&robot.name);
        let motion = motion::of(far, robot.wheels, &packet.message);
        let is_motion = head.kind() == Some(MsgType::Data) && motion != Ok(Motion::None);
        let address = Address {
            device: far,
            way: if is_motion { Way::Drive } else { Way::Call },
            who: self.who.clone(),
        };
        let key = keys.address(&address);
        let stamp = self.stamp(since, client, index, device);
        if let Some(program) = self.programs.get_mut(&(client, index)) {
            match motion {
                Ok(Motion::Begin(_)) => {
                    program.errands.insert(device);
                    program.signed = now;
                }
                Ok(Motion::End(_)) => drop(program.errands.remove(&device)),
                _ => {}
            }
        }
        let letter = Letter {
            key,
            stamp,
            message: packet.message,
            moves: is_motion,
            age: now.saturating_sub(since),
        };
        if is_motion && call.syn.is_none() {
            return self.outputs.push_back(Output::Put(letter));
        }
        if self.calls.len() >= MAX_PENDING {
            return self.refuse_busy(call);
        }
        self.last_call += 1;
        self.calls.insert(self.last_call, call);
        self.outputs.push_back(Output::Ask(self.last_call, letter));
    }

    fn refuse_busy(&mut self, call: Call) {
        self.count("requests_dropped_busy");
        let problem = "too many requests wait for far robots";
        self.tell_outcome(call, Outcome::refusal(problem));
    }

    /// The next number of a client for a robot. A new program begins with its token.
    fn stamp(
        &mut self,
        sent: Duration,
        client: ClientId,
        robot: usize,
        device: Device,
    ) -> OrderStamp {
        let random = &mut self.random;
        let mut is_new = false;
        let program = self.programs.entry((client, robot)).or_insert_with(|| {
            is_new = true;
            Program {
                instance: random.u64(1..),
                sequence: 0,
                devices: BTreeSet::new(),
                errands: BTreeSet::new(),
                signed: sent,
            }
        });
        program.devices.insert(device);
        program.sequence += 1;
        let stamp = OrderStamp {
            instance: program.instance,
            sequence: program.sequence,
            sent_ns: Some(u64::try_from(sent.as_nanos()).unwrap_or(u64::MAX)),
        };
        if is_new {
            let keys = RobotKeys::new(&self.robots[robot].name);
            let token = keys.operator(&self.who, stamp.instance);
            self.outputs.push_back(Output::Token(token));
        }
        stamp
    }

    /// Programs with errands give signs of life.
    pub(super) fn sign(&mut self, now: Duration) {
        for ((_, robot), program) in &mut self.programs {
            if program.sign_due().is_none_or(|due| now < due) {
                continue;
            }
            program.signed = now;
            program.sequence += 1;
            let keys = RobotKeys::new(&self.robots[*robot].name);
            self.outputs.push_back(Output::Put(Letter {
                key: keys.operator(&self.who, program.instance),
                stamp: OrderStamp {
                    instance: program.instance,
                    sequence: program.sequence,
                    sent_ns: Some(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)),
                },
                message: Bytes::new(),
                // Late signs are worth nothing.
                moves: true,
                age: Duration::ZERO,
            }));
        }
    }

    /// When [`FarDevices::sign`] is due.
    pub(super) fn next_sign(&self) -> Option<Duration> {
        self.programs.values().filter_map(Program::sign_due).min()
    }

    /// A client has left one device, or all.
    pub(super) fn client_died(&mut self, client: ClientId, device: Option<Device>) {
        let meant = |other: Device| device.is_none_or(|device| device == other);
        self.held
            .retain(|it| it.client != client || !meant(it.device));
        let all: Vec<_> = self.places.keys().copied().collect();
        for place in all.into_iter().filter(|it| meant(*it)) {
            self.listen(place, |streams| streams.remove(client));
        }
        let mut gone = Vec::new();
        for (&(of, robot), program) in &mut self.programs {
            if of == client {
                program.devices.retain(|it| !meant(*it));
                program.errands.retain(|it| !meant(*it));
                if program.devices.is_empty() {
                    gone.push((of, robot));
                }
            }
        }
        for key in gone {
            if let Some(program) = self.programs.remove(&key) {
                let keys = RobotKeys::new(&self.robots[key.1].name);
                let token = keys.operator(&self.who, program.instance);
                self.outputs.push_back(Output::NoToken(token));
            }
        }
    }
}
