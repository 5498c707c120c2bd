//! Clients that build their datagrams themselves: old clients, operators of the mediator, and
//! malicious ones. PURE.

use std::net::SocketAddr;

use amber_proto::mediator::{self, change_driver, request};
use amber_proto::{Device, DeviceMessage, MsgType, SynNum};
use prost::Message;

use super::{Turn, device};
use crate::messages::{self, Tokens};
use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawClientKind {
    /// Like those of the original system: it never contacts the mediator.
    Old,
    /// It sends the mediator queries and changes.
    Operator,
    /// It also sends invalid data.
    Nuisance,
}

/// A client without an SDK.
pub struct Raw {
    kind: RawClientKind,
    syn: u32,
    pongs: bool,
    /// Its replies to PINGs.
    replies: Vec<Vec<u8>>,
}

impl Raw {
    /// Creates a client.
    pub fn new(kind: RawClientKind, rng: &mut Random) -> Self {
        Self {
            kind,
            syn: 0,
            pongs: rng.bool(),
            replies: Vec::new(),
        }
    }

    pub(super) fn act(&mut self, rng: &mut Random, tokens: &mut Tokens) -> Turn {
        self.syn += 1;
        let syn = SynNum(self.syn);
        let bytes = match self.kind {
            RawClientKind::Old => plain(rng, tokens, syn),
            RawClientKind::Operator => match rng.u8(0..3) {
                0 => plain(rng, tokens, syn),
                _ => operate(rng, syn),
            },
            RawClientKind::Nuisance => match rng.u8(0..4) {
                0 => plain(rng, tokens, syn),
                1 => operate(rng, syn),
                _ => nonsense(rng),
            },
        };
        Turn {
            sent: vec![bytes],
            leaves: rng.u8(0..60) == 0,
        }
    }

    pub(super) fn receive(&mut self, bytes: &[u8]) -> Turn {
        let frame = amber_proto::Frame::from_datagram(bytes).ok();
        let said = frame.and_then(|frame| messages::envelope(frame.message));
        let ping = said.filter(|said| said.kind() == Some(MsgType::Ping) && self.pongs);
        if let Some(ping) = ping.filter(|_| self.kind != RawClientKind::Old) {
            let mut pong = mediator::DriverMsg::of_kind(MsgType::Pong);
            pong.set_ack(ping.syn());
            let pong = messages::frame(Some(Device::MEDIATOR), &pong.encode_to_vec());
            self.replies.push(pong);
        }
        Turn {
            sent: std::mem::take(&mut self.replies),
            leaves: false,
        }
    }
}

/// A message of an old client.
fn plain(rng: &mut Random, tokens: &mut Tokens, syn: SynNum) -> Vec<u8> {
    let (device, token) = (device(rng), tokens.fresh());
    let message = match rng.u8(0..12) {
        0 | 1 => messages::bytes(MsgType::Subscribe, token, Some(syn)),
        2 => messages::bytes(MsgType::Unsubscribe, token, Some(syn)),
        // Short enough to be recognized.
        3 => messages::bytes(MsgType::ClientDied, token, None),
        4 => messages::opaque(token, rng.usize(0..300)),
        5 => messages::opaque(token, rng.usize(0..30_000)),
        6 => messages::bytes(MsgType::Data, token, None),
        _ => messages::bytes(MsgType::Data, token, Some(syn)),
    };
    messages::frame(Some(device), &message)
}

/// A message of an operator.
fn operate(rng: &mut Random, syn: SynNum) -> Vec<u8> {
    let about = device(rng);
    let of_wire = mediator::Device {
        r#type: about.device_type.0,
        id: about.id.0,
    };
    let change = |action: change_driver::Action| {
        request::What::ChangeDriver(mediator::ChangeDriver {
            device: of_wire,
            action: action.into(),
        })
    };
    let mut message = mediator::DriverMsg::data();
    message.set_syn(Some(syn));
    let what = match rng.u8(0..16) {
        0 => Some(change(change_driver::Action::Stop)),
        1..4 => Some(change(change_driver::Action::Start)),
        4 => Some(change(change_driver::Action::Restart)),
        5 => Some(request::What::ListDrivers(mediator::ListDrivers::default())),
        6 => Some(request::What::ListClients(mediator::ListClients::default())),
        7 => Some(request::What::DescribeDriver(of_wire)),
        8 => Some(request::What::GetStatistics(mediator::GetStatistics {})),
        9 => Some(request::What::Reload(mediator::Reload {})),
        10 => Some(request::What::Trace(mediator::Trace {
            device: of_wire,
            off: rng.bool().then_some(true),
        })),
        11 => {
            message = mediator::DriverMsg::of_kind(MsgType::Subscribe);
            None
        }
        12 => {
            message = mediator::DriverMsg::of_kind(MsgType::Unsubscribe);
            None
        }
        13 => {
            message = mediator::DriverMsg::of_kind(MsgType::ClientDied);
            None
        }
        _ => {
            message = mediator::DriverMsg::of_kind(MsgType::Ping);
            message.set_syn(Some(syn));
            None
        }
    };
    message.request = what.map(|what| mediator::Request { what: Some(what) });
    let header = rng.bool().then_some(Device::MEDIATOR);
    messages::frame(header, &message.encode_to_vec())
}

/// An invalid or almost valid frame.
pub fn nonsense(rng: &mut Random) -> Vec<u8> {
    let mut junk = |most: usize| -> Vec<u8> {
        let length = rng.usize(0..most);
        (0..length).map(|_| rng.u8(..)).collect()
    };
    let (bytes, message) = (junk(40), junk(30));
    match rng.u8(0..6) {
        0 => bytes,
        1 => messages::frame(None, &message),
        2 => messages::whole(&bytes[..bytes.len().min(5)], &message),
        3 => messages::too_long(b"\x08\x05\x10\0"),
        4 => {
            // A frame that is cut off, or has extra bytes.
            let mut frame = messages::frame(Some(device(rng)), &message);
            frame.truncate(rng.usize(0..frame.len() + 1));
            frame.extend_from_slice(&bytes[..bytes.len() / 8]);
            frame
        }
        _ => messages::frame(Some(device(rng)), &message),
    }
}

/// A spoofed address.
pub fn made_up(rng: &mut Random) -> SocketAddr {
    match rng.u8(0..40) {
        0 => ([10, 0, 0, 1], 0).into(),
        1 => ([10, 0, 0, 1], 26_233).into(),
        2 => ([255, 255, 255, 255], 4000).into(),
        3 => ([224, 0, 0, 1], 4000).into(),
        _ => ([10, rng.u8(..), rng.u8(..), rng.u8(..)], rng.u16(1024..)).into(),
    }
}
