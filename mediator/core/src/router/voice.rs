//! The mediator's own messages. PURE.
//!
//! They go to announced clients only. An unverified address gets no more bytes than it
//! has sent, so the mediator's answers cannot be used to flood a third party.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::time::Instant;

use amber_proto::limits::FRAME_OVERHEAD;
use amber_proto::mediator::{self, Unavailable, unavailable::Reason};
use amber_proto::{ClientId, Device, DeviceMessage, DriverMsg, HeaderBytes, MsgType, SynNum};
use prost::Message;
use tracing::info;

use super::{ANSWERS, ForMediator, Outbox, Router, Sender};
use crate::address::{ClientAddress, DriverKey};
use crate::counters::{Count, DropReason};
use crate::limits;
use crate::queue::Lane;
use crate::rate::Rate;

impl Router {
    /// Sends a message of the mediator to a client or driver that has sent it one.
    pub fn reply(&mut self, to: Sender, message: &[u8], out: &mut Outbox) {
        match to {
            Sender::Client(address) => match self.clients.at(&address).map(|client| client.id) {
                Some(id) => self.say(id, Device::MEDIATOR, &[message], out),
                None => self.counters.drop(DropReason::Unproved),
            },
            Sender::DriverAsClient(key) => {
                let header = HeaderBytes::new(Some(Device::MEDIATOR), None);
                self.tell_driver(key, ANSWERS, header, message);
            }
            Sender::Driver(key) => {
                self.tell_driver(key, ANSWERS, HeaderBytes::new(None, None), message);
            }
        }
    }

    /// Sends a PING to a driver.
    pub fn ping_driver(&mut self, key: DriverKey, ping: &[u8]) {
        self.tell_driver(key, Lane::LifeCycle, HeaderBytes::new(None, None), ping);
    }

    /// Sends a PING to a client. The answer proves its address.
    pub fn ping_client(&mut self, id: ClientId, out: &mut Outbox) {
        let Some(client) = self.clients.client(id) else {
            return;
        };
        let mut ping = mediator::DriverMsg::of_kind(MsgType::Ping);
        ping.set_syn(Some(SynNum(self.cookie(&client.address.into()))));
        self.say(id, Device::MEDIATOR, &[&ping.encode_to_vec()], out);
    }

    /// A client has answered a PING. Returns whether that proves its address for the first
    /// time.
    pub fn client_answered(&mut self, from: ClientAddress, ack: Option<SynNum>) -> bool {
        let expected = SynNum(self.cookie(&from));
        let Some(id) = self.clients.at(&from).map(|client| client.id) else {
            return false;
        };
        let Some(client) = self.clients.client_mut(id) else {
            return false;
        };
        client.answered_ping();
        let proves = !client.is_proved() && ack == Some(expected);
        if proves {
            client.prove();
            self.clients.rank_again(id);
        }
        proves
    }

    /// Whether the address of a sender is proved. Drivers need no proof.
    pub fn is_proved(&self, from: Sender) -> bool {
        match from {
            Sender::Client(address) => self
                .clients
                .at(&address)
                .is_some_and(|client| client.is_proved()),
            Sender::Driver(_) | Sender::DriverAsClient(_) => true,
        }
    }

    /// Whether a sender may send one more request to the mediator now.
    pub fn may_request(&mut self, now: Instant, from: Sender) -> bool {
        let rate = Rate::per_second(limits::REQUESTS_PER_SECOND);
        let may = match from {
            Sender::Client(address) => {
                let moment = self.clients.moment(now);
                let id = self.clients.at(&address).map(|client| client.id);
                id.is_none_or(|id| self.clients.may_request(id, moment, rate))
            }
            Sender::Driver(key) | Sender::DriverAsClient(key) => {
                (self.routes.get_mut(key)).is_none_or(|route| route.requests.pass(now, rate))
            }
        };
        if !may {
            self.counters.drop(DropReason::RequestRateLimited);
        }
        may
    }

    /// Sends a message of the mediator to a client or to a driver that sends requests. Returns
    /// false if it is gone or not announced.
    pub fn tell_client(&mut self, id: ClientId, message: &[u8], out: &mut Outbox) -> bool {
        if let Some(driver) = self.routes.of_id(id) {
            self.reply(Sender::DriverAsClient(driver), message, out);
            return true;
        }
        let announced = self
            .clients
            .client(id)
            .is_some_and(|client| client.announced);
        if announced {
            self.say(id, Device::MEDIATOR, &[message], out);
        }
        announced
    }

    /// A client or driver has sent a valid message to the mediator. Makes it known and
    /// announced, and returns its id.
    pub fn announce(&mut self, now: Instant, said: &ForMediator<'_>) -> Option<ClientId> {
        match said.from {
            Sender::Client(address) => {
                let id = match self.clients.at(&address) {
                    Some(client) => client.id,
                    None => self.new_client(now, address, said.bytes),
                };
                self.clients.announce(id);
                Some(id)
            }
            Sender::Driver(key) => self.routes.get(key)?.id,
            Sender::DriverAsClient(key) => {
                let route = self.routes.get_mut(key)?;
                route.announced = true;
                route.id
            }
        }
    }

    /// The id of a sender, if it is known.
    pub fn id_of(&self, from: Sender) -> Option<ClientId> {
        match from {
            Sender::Client(address) => self.clients.at(&address).map(|client| client.id),
            Sender::Driver(key) | Sender::DriverAsClient(key) => self.routes.get(key)?.id,
        }
    }

    /// A device is unavailable. An announced client is told the reason, so that its call fails
    /// at once; others see nothing, as with the original mediator.
    pub(super) fn refuse(
        &mut self,
        now: Instant,
        known: Option<ClientId>,
        device: Device,
        message: &[u8],
        out: &mut Outbox,
    ) {
        let why = self.why_not(device);
        self.refuse_because(now, known, device, message, why, out);
    }

    /// The same for a driver that sends a request.
    pub(super) fn refuse_driver(&mut self, key: DriverKey, device: Device, message: &[u8]) {
        if self.routes.get(key).is_some_and(|route| route.announced) {
            let why = self.why_not(device);
            let answer = driver_died(syn_num(message), Some(why));
            let header = HeaderBytes::new(Some(device), None);
            self.tell_driver(key, ANSWERS, header, &answer);
        }
    }

    /// No rule allows a client to use a device. An announced client is told, because it was
    /// allowed to use the mediator; others get no answer, and the operator finds the reason in
    /// the log.
    pub(super) fn deny(
        &mut self,
        now: Instant,
        from: ClientAddress,
        known: Option<ClientId>,
        device: Device,
        message: &[u8],
        out: &mut Outbox,
    ) {
        self.counters.drop(DropReason::AccessDenied);
        self.record_dropped_request(device, DropReason::AccessDenied, known, message);
        let ip = from.address.ip();
        if let Some(times) = self.admission.denied(now) {
            let name = name_of(device);
            info!(client = %from.address, device = %name, times, "access denied by an [[access]] rule");
        }
        // Messages to the mediator itself get no answer, not even a PING.
        if device != Device::MEDIATOR {
            self.refuse_because(now, known, device, message, not_allowed(ip, device), out);
        }
    }

    fn refuse_because(
        &mut self,
        now: Instant,
        known: Option<ClientId>,
        device: Device,
        message: &[u8],
        why: Unavailable,
        out: &mut Outbox,
    ) {
        let now = self.clients.moment(now);
        let client = known.and_then(|id| self.clients.client_mut(id));
        let Some(client) = client.filter(|client| client.announced) else {
            return;
        };
        if !client
            .refusals
            .pass(now, Rate::per_second(limits::REFUSALS_PER_SECOND))
        {
            return self.counters.drop(DropReason::AnswerRateLimited);
        }
        let (id, ack) = (client.id, syn_num(message));
        let (long, short) = (driver_died(ack, Some(why)), driver_died(ack, None));
        self.say(id, device, &[&long, &short], out);
    }

    /// Tells a client or driver that a device that it uses is gone, if it is announced.
    pub(super) fn tell_of_death(
        &mut self,
        id: ClientId,
        device: Device,
        why: Option<&Unavailable>,
        out: &mut Outbox,
    ) {
        let (long, short) = (driver_died(None, why.cloned()), driver_died(None, None));
        if let Some(key) = self.routes.of_id(id) {
            if self.routes.get(key).is_some_and(|route| route.announced) {
                let header = HeaderBytes::new(Some(device), None);
                self.tell_driver(key, Lane::LifeCycle, header, &long);
            }
        } else if self
            .clients
            .client(id)
            .is_some_and(|client| client.announced)
        {
            self.say(id, device, &[&long, &short], out);
        }
    }

    /// Sends a client the first of these messages that its credit allows.
    fn say(&mut self, id: ClientId, device: Device, messages: &[&[u8]], out: &mut Outbox) {
        let Some(client) = self.clients.client_mut(id) else {
            return;
        };
        let header = HeaderBytes::new(Some(device), None);
        let fixed = FRAME_OVERHEAD + header.as_slice().len();
        let fits = |message: &&&[u8]| client.may_be_sent(fixed + message.len());
        let Some(message) = messages.iter().find(fits) else {
            return self.counters.drop(DropReason::Unproved);
        };
        client.sent.one_more();
        self.counters.count(Count::DatagramsToSend);
        match out.write(header.as_slice(), message) {
            Ok(frame) => out.send(client.address, &frame),
            Err(_) => self.counters.drop(DropReason::SendFailed),
        }
    }

    /// Sends a driver a message of the mediator.
    fn tell_driver(&mut self, key: DriverKey, lane: Lane, header: HeaderBytes, message: &[u8]) {
        let running = |route: &super::Route| route.id.is_some();
        if self.routes.get(key).is_some_and(running) {
            self.push(key, lane, header, message);
        }
    }

    fn why_not(&self, device: Device) -> Unavailable {
        let absence = self
            .driver_of(device)
            .and_then(|key| self.routes.get(key)?.absence.clone());
        absence.unwrap_or_else(|| Unavailable {
            reason: Reason::NoSuchDevice.into(),
            message: Some(format!("no driver serves {device}")),
            hint: Some("`amber devices` lists the devices".into()),
        })
    }

    /// The number that an address must repeat to prove itself. It is computed, not stored, so
    /// proofs cannot be crowded out.
    fn cookie(&self, address: &ClientAddress) -> u32 {
        let mut hasher = DefaultHasher::new();
        (self.secret, address).hash(&mut hasher);
        hasher.finish() as u32
    }
}

pub(super) fn not_allowed(from: IpAddr, device: Device) -> Unavailable {
    Unavailable {
        reason: Reason::NotAllowed.into(),
        message: Some(format!("the mediator denies {from} access to {device}")),
        hint: Some("see [[access]] in the configuration of the mediator".into()),
    }
}

/// Whether a message is CLIENT_DIED. The first two bytes or the length rule out nearly all
/// others.
pub(super) fn is_client_died(message: &[u8]) -> bool {
    const LONGEST: usize = 24;
    let kind = MsgType::ClientDied;
    message.starts_with(&[0x10, kind as u8])
        && message.len() <= LONGEST
        && DriverMsg::decode(message).is_ok_and(|message| message.r#type() == kind)
}

pub(super) fn client_died() -> Vec<u8> {
    mediator::DriverMsg::of_kind(MsgType::ClientDied).encode_to_vec()
}

/// The number of a request, which is not itself an answer.
pub(super) fn request_number(message: &[u8]) -> Option<u32> {
    let message = DriverMsg::decode(message).ok()?;
    message.syn_num.filter(|_| message.ack_num() == 0)
}

/// The number of a request, if it can be read, so that the caller gets the answer.
fn syn_num(message: &[u8]) -> Option<u32> {
    DriverMsg::decode(message).ok()?.syn_num
}

fn driver_died(ack_num: Option<u32>, unavailable: Option<Unavailable>) -> Vec<u8> {
    let mut message = mediator::DriverMsg::of_kind(MsgType::DriverDied);
    message.ack_num = ack_num;
    message.unavailable = unavailable;
    message.encode_to_vec()
}

fn name_of(device: Device) -> String {
    match device {
        Device::MEDIATOR => "mediator".into(),
        device => device.to_string(),
    }
}
