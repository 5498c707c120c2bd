//! A client with the SDK: its real task logic, without a runtime. PURE.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use amber_client::simulation::{Machine, Signalled};
use amber_client::transport::Role;
use amber_proto::{Device, DeviceMessage, Header, MsgType, Packet, SynNum};
use bytes::Bytes;
use prost::Message;

use super::{Turn, device};
use crate::Broken;
use crate::invariant::{Check, Invariant, broken, holds};
use crate::messages::{self, Token, Tokens};
use crate::random::Random;

/// The deadline of calls.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// The expected interval of publications.
const PERIOD: Duration = Duration::from_secs(1);

/// A client with the SDK.
pub struct Sdk {
    machine: Machine,
    /// The token, device and deadline of each call.
    calls: BTreeMap<u64, (Option<Token>, Device, Instant)>,
    listeners: BTreeMap<u64, Listener>,
    /// The number of calls that ended with a reply, and with an error.
    pub ended: (u64, u64),
    /// The devices to which it unsubscribed: since when, and the time of the last publication.
    pub left: BTreeMap<Device, (Instant, Option<Instant>)>,
}

/// A subscription.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    /// The subscribed device.
    pub device: Device,
    /// When it subscribed.
    pub since: Instant,
    /// The time of the last publication.
    pub data: Option<Instant>,
    /// Publications arrive, as far as it knows.
    flows: bool,
}

impl Sdk {
    /// Creates a client that has just connected.
    pub fn connect(now: Instant, rng: &mut Random) -> (Self, Turn) {
        let mut sdk = Self {
            machine: Machine::new(Role::Client, rng.u32(..)),
            calls: BTreeMap::new(),
            listeners: BTreeMap::new(),
            ended: (0, 0),
            left: BTreeMap::new(),
        };
        let patience = Duration::from_millis(200);
        let call = sdk.machine.announce(now, patience);
        sdk.calls
            .insert(call, (None, Device::MEDIATOR, now + patience));
        let turn = sdk.sent();
        (sdk, turn)
    }

    /// Its subscriptions.
    pub fn listeners(&self) -> impl Iterator<Item = &Listener> {
        self.listeners.values()
    }

    /// Subscribes to a device.
    pub fn subscribe(&mut self, now: Instant, device: Device, tokens: &mut Tokens) -> Turn {
        let term = |kind, token| Bytes::from(messages::message(kind, token).encode_to_vec());
        let join = term(MsgType::Subscribe, tokens.fresh());
        let leave = term(MsgType::Unsubscribe, tokens.fresh());
        let id = self.machine.subscribe(now, device, (join, leave), PERIOD);
        let listener = Listener {
            device,
            since: now,
            data: None,
            flows: false,
        };
        self.listeners.insert(id, listener);
        self.left.remove(&device);
        self.sent()
    }

    pub(super) fn act(&mut self, now: Instant, rng: &mut Random, tokens: &mut Tokens) -> Turn {
        match rng.u8(0..40) {
            0 => {
                let said =
                    std::mem::replace(&mut self.machine, Machine::new(Role::Client, 0)).close();
                return Turn {
                    sent: said.iter().map(encode).collect(),
                    leaves: true,
                };
            }
            // Its program ends without a goodbye.
            1 => {
                return Turn {
                    leaves: true,
                    ..Turn::default()
                };
            }
            2..6 if self.listeners.len() < 3 => return self.subscribe(now, device(rng), tokens),
            6 | 7 => {
                let ids: Vec<u64> = self.listeners.keys().copied().collect();
                if let Some(id) = rng.choice(&ids) {
                    self.machine.unsubscribe(now, *id);
                    let left = self.listeners.remove(id).map(|listener| listener.device);
                    let still = |device: &Device| self.listeners().any(|it| it.device == *device);
                    if let Some(device) = left.filter(|device| !still(device)) {
                        self.left.insert(device, (now, None));
                    }
                }
            }
            8 => {
                let ids: Vec<u64> = self.calls.keys().copied().collect();
                if let Some(id) = rng.choice(&ids) {
                    self.calls.remove(id);
                    self.machine.cancel(now, *id);
                }
            }
            _ => {
                let (token, device) = (tokens.fresh(), device(rng));
                let question = messages::message(MsgType::Data, token).encode_to_vec();
                let call = self.machine.call(now, device, question.into(), PATIENCE);
                self.calls
                    .insert(call, (Some(token), device, now + PATIENCE));
            }
        }
        self.sent()
    }

    pub(super) fn receive(&mut self, now: Instant, bytes: &[u8]) -> Result<Turn, Broken> {
        let Ok(packet) = Packet::from_datagram(&Bytes::copy_from_slice(bytes)) else {
            return self.turn(now);
        };
        let header = packet.header.encode_to_vec();
        let device = Header::parse(&header)
            .ok()
            .and_then(|header| header.device());
        let said = messages::envelope(&packet.message).unwrap_or_default();
        let ack = said.ack().filter(|ack| ack.0 != 0);
        let (kind, device) = (said.kind(), device.unwrap_or(Device::MEDIATOR));
        // A message without any number is not a publication but garbage.
        if kind == Some(MsgType::Data)
            && said.ack() == Some(SynNum(0))
            && let Some((_, last)) = self.left.get_mut(&device)
        {
            *last = Some(now);
        }
        self.machine.receive(now, packet);
        let turn = self.turn(now)?;
        let died = kind == Some(MsgType::DriverDied) && ack.is_none();
        let untold = self
            .listeners()
            .find(|it| died && it.device == device && it.flows);
        holds(Invariant::InterruptionsTold, untold.is_none(), || {
            format!("the driver of {device} died, but {untold:?} is not notified")
        })?;
        Ok(turn)
    }

    pub(super) fn refused(&mut self, now: Instant) -> Result<Turn, Broken> {
        self.machine.refused(now);
        self.turn(now)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.machine.next_timeout()
    }

    pub(super) fn timeout(&mut self, now: Instant) -> Result<Turn, Broken> {
        self.machine.timeout(now);
        self.turn(now)
    }

    pub(super) fn check(&self, now: Instant) -> Check {
        let late = self.calls.values().find(|(_, _, until)| *until < now);
        holds(Invariant::CallsEnd, late.is_none(), || {
            format!(
                "a call to {:?} did not end in time",
                late.map(|(_, device, _)| device)
            )
        })
    }

    /// Processes the results of an event.
    fn turn(&mut self, now: Instant) -> Result<Turn, Broken> {
        while let Some((call, outcome)) = self.machine.poll_outcome() {
            let Some((token, device, _)) = self.calls.remove(&call) else {
                let what = format!("call {call} ended twice");
                return Err(broken(Invariant::CallsEnd, what));
            };
            match outcome {
                Ok(answer) => {
                    self.ended.0 += 1;
                    let answered = messages::answered(&answer);
                    holds(Invariant::AnswersMatch, answered == token, || {
                        format!(
                            "{device} got request {token:?}, but the reply answers {answered:?}"
                        )
                    })?;
                }
                Err(_) => self.ended.1 += 1,
            }
        }
        while let Some((listener, signal)) = self.machine.poll_signal() {
            let Some(listener) = self.listeners.get_mut(&listener) else {
                continue;
            };
            match signal {
                Signalled::Message(_) => (listener.data, listener.flows) = (Some(now), true),
                Signalled::Interrupted => listener.flows = false,
                Signalled::Resumed => {}
            }
        }
        Ok(self.sent())
    }

    fn sent(&mut self) -> Turn {
        Turn {
            sent: self.machine.take_sent().iter().map(encode).collect(),
            leaves: false,
        }
    }
}

fn encode(packet: &Packet) -> Vec<u8> {
    messages::packet(packet).to_vec()
}
