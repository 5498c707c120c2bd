//! A driver without our SDK, with its own habits. PURE.

use std::time::{Duration, Instant};

use amber_proto::{ClientId, Device, DeviceMessage, DriverHdr, Header, MsgType, Packet};
use prost::Message;

use crate::messages::{self, Tokens};
use crate::programs::sdk::ASKED;
use crate::random::Random;

/// Its habits, which differ between drivers.
#[derive(Clone, Debug, Default)]
pub struct Habits {
    /// It answers PINGs.
    pub pongs: bool,
    /// It writes to ids that it makes up, this many frames at once.
    pub floods: usize,
    /// It sometimes declares itself unavailable.
    pub says_dead: bool,
    /// It reports the health of its device.
    pub health: bool,
    /// It uses the name of a device that it does not serve.
    pub wrong_device: bool,
    /// It writes messages that are too long.
    pub too_long: bool,
    /// It sends a request to another device whenever it publishes.
    pub asks: bool,
    /// It sends messages to the mediator like a client.
    pub talks_to_mediator: bool,
}

impl Habits {
    /// Random habits; only harmless ones in calm runs.
    pub fn draw(rng: &mut Random, calm: bool) -> Self {
        let mut odd = |chance: u8| !calm && rng.u8(0..chance) == 0;
        Self {
            floods: if odd(8) { 40 } else { 0 },
            says_dead: odd(6),
            health: odd(4),
            wrong_device: odd(8),
            too_long: odd(8),
            asks: odd(3),
            talks_to_mediator: odd(3),
            pongs: rng.u8(0..4) > 0,
        }
    }
}

/// A driver of the old kind.
pub struct Old {
    pid: u32,
    devices: Vec<Device>,
    habits: Habits,
    /// The subscribers of each device, with repetitions.
    subscribers: Vec<(Device, ClientId)>,
    period: Duration,
    due: Instant,
    published: u64,
    rng: Random,
}

impl Old {
    /// Creates one that publishes several times per second.
    pub fn new(
        pid: u32,
        now: Instant,
        devices: Vec<Device>,
        habits: Habits,
        rng: &mut Random,
    ) -> Self {
        Self {
            pid,
            devices,
            habits,
            subscribers: Vec::new(),
            period: Duration::from_millis(rng.u64(200..1000)),
            due: now,
            published: 0,
            rng: rng.fork(),
        }
    }

    pub(super) fn frame(
        &mut self,
        now: Instant,
        packet: &Packet,
        tokens: &mut Tokens,
        out: &mut Vec<u8>,
    ) {
        let _ = (now, tokens);
        let header = packet.header.encode_to_vec();
        let Ok(header) = Header::parse(&header) else {
            return;
        };
        let Some(envelope) = messages::envelope(&packet.message) else {
            return;
        };
        let several = self.devices.len() > 1;
        let device = header.device().unwrap_or(self.devices[0]);
        match envelope.kind() {
            Some(MsgType::Ping) if self.habits.pongs => {
                let pong = amber_proto::mediator::DriverMsg::of_kind(MsgType::Pong);
                out.extend(messages::whole(&[], &pong.encode_to_vec()));
            }
            Some(MsgType::Data) => {
                let mut answer = messages::answer(messages::token(&packet.message));
                answer.set_ack(envelope.syn());
                for client in header.client_ids() {
                    let device = several.then_some(device);
                    let answer = answer.encode_to_vec();
                    out.extend(messages::frame_of(device, client, &answer));
                }
            }
            Some(MsgType::Subscribe) => {
                let new = header.client_ids().map(|client| (device, client));
                self.subscribers.extend(new);
                self.subscribers.truncate(300);
            }
            Some(MsgType::Unsubscribe) => {
                let gone: Vec<_> = header.client_ids().collect();
                self.subscribers
                    .retain(|(of, client)| *of != device || !gone.contains(client));
            }
            Some(MsgType::ClientDied) => {
                let gone: Vec<_> = header.client_ids().collect();
                self.subscribers
                    .retain(|(_, client)| !gone.contains(client));
            }
            _ => {}
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        Some(self.due)
    }

    pub(super) fn due(&mut self, now: Instant, tokens: &mut Tokens, out: &mut Vec<u8>) {
        self.due = now + self.period;
        self.publish(out);
        let strange = Device::new(amber_proto::DeviceType(99), 9);
        for _ in 0..self.habits.floods {
            let somebody = ClientId(self.rng.i32(-2..200));
            let header = DriverHdr {
                client_ids: vec![somebody.0; self.rng.usize(1..4)],
                ..DriverHdr::default()
            };
            let nonsense = messages::publication(self.pid, 0).encode_to_vec();
            out.extend(messages::whole(&header.encode_to_vec(), &nonsense));
        }
        if self.habits.wrong_device {
            let nonsense = messages::publication(self.pid, 0).encode_to_vec();
            out.extend(messages::frame_of(Some(strange), ClientId(1), &nonsense));
        }
        if self.habits.too_long && self.rng.u8(0..8) == 0 {
            out.extend(messages::too_long(b"\x1a\x01\x01"));
        }
        if self.habits.says_dead && self.rng.u8(0..8) == 0 {
            let dead = amber_proto::mediator::DriverMsg::of_kind(MsgType::DriverDied);
            out.extend(messages::whole(&[], &dead.encode_to_vec()));
        }
        if self.habits.health {
            let mut health = amber_proto::mediator::DriverMsg::data();
            health.health = Some(match self.rng.bool() {
                true => amber_proto::mediator::Health::in_trouble("the cable is unplugged"),
                false => amber_proto::mediator::Health::ok(),
            });
            out.extend(messages::whole(&[], &health.encode_to_vec()));
        }
        if self.habits.talks_to_mediator {
            let ping = amber_proto::mediator::DriverMsg::of_kind(MsgType::Ping);
            out.extend(messages::frame(
                Some(Device::MEDIATOR),
                &ping.encode_to_vec(),
            ));
        }
        if self.habits.asks {
            let device = if self.rng.bool() { ASKED } else { strange };
            let kind = match self.rng.u8(0..6) {
                0 => MsgType::ClientDied,
                _ => MsgType::Data,
            };
            let question = messages::bytes(kind, tokens.fresh(), None);
            out.extend(messages::frame(Some(device), &question));
        }
    }

    /// One frame for each device with subscribers, with all ids in it.
    fn publish(&mut self, out: &mut Vec<u8>) {
        for device in &self.devices {
            let of_it = self.subscribers.iter().filter(|(of, _)| of == device);
            let client_ids: Vec<i32> = of_it.map(|(_, client)| client.0).collect();
            if client_ids.is_empty() {
                continue;
            }
            self.published += 1;
            let several = self.devices.len() > 1;
            let header = DriverHdr {
                device_type: several.then_some(device.device_type.0),
                device_id: several.then_some(device.id.0),
                client_ids,
            };
            let message = messages::publication(self.pid, self.published);
            out.extend(messages::whole(
                &header.encode_to_vec(),
                &message.encode_to_vec(),
            ));
        }
    }
}
