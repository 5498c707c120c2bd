//! Messages with a number that identifies them. PURE.
//!
//! The mediator must not interpret them, so one kind serves all devices: that of the Dummy. Some
//! are not a `DriverMsg` at all.

use amber_proto::{ClientId, Device, DeviceMessage, Frame, Header, HeaderBytes, MsgType, SynNum};
use amber_proto::{dummy, mediator};
use bytes::Bytes;
use prost::Message;

/// Identifies a message wherever it appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(pub u64);

/// Creates tokens.
#[derive(Debug, Default)]
pub struct Tokens(u64);

impl Tokens {
    /// A new token.
    pub fn fresh(&mut self) -> Token {
        self.0 += 1;
        Token(self.0)
    }
}

/// No `DriverMsg` starts with this byte.
const OPAQUE: u8 = 0xff;

/// A message with a token.
pub fn message(kind: MsgType, token: Token) -> dummy::DriverMsg {
    dummy::DriverMsg {
        message: Some(format!("t{}", token.0)),
        ..dummy::DriverMsg::of_kind(kind)
    }
}

/// The same, encoded and with a synNum.
pub fn bytes(kind: MsgType, token: Token, syn: Option<SynNum>) -> Vec<u8> {
    let mut message = message(kind, token);
    message.set_syn(syn);
    message.encode_to_vec()
}

/// A message of a device with another protocol.
pub fn opaque(token: Token, length: usize) -> Vec<u8> {
    let mut bytes = vec![OPAQUE];
    bytes.extend_from_slice(&token.0.to_be_bytes());
    bytes.resize(bytes.len() + length, OPAQUE);
    bytes
}

pub fn token(message: &[u8]) -> Option<Token> {
    if let [OPAQUE, rest @ ..] = message {
        let number = rest.first_chunk()?;
        return Some(Token(u64::from_be_bytes(*number)));
    }
    let message = dummy::DriverMsg::decode(message).ok()?;
    message.message?.strip_prefix('t')?.parse().ok().map(Token)
}

/// The answer to a request.
pub fn answer(to: Option<Token>) -> dummy::DriverMsg {
    dummy::DriverMsg {
        message: to.map(|token| format!("a{}", token.0)),
        ..dummy::DriverMsg::data()
    }
}

/// The request that a message answers.
pub fn answered(message: &[u8]) -> Option<Token> {
    let message = dummy::DriverMsg::decode(message).ok()?;
    message.message?.strip_prefix('a')?.parse().ok().map(Token)
}

pub fn publication(pid: u32, number: u64) -> dummy::DriverMsg {
    dummy::DriverMsg {
        message: Some(format!("p{pid}/{number}")),
        ..dummy::DriverMsg::data()
    }
}

/// The fields that every message has, and those of the mediator.
pub fn envelope(message: &[u8]) -> Option<mediator::DriverMsg> {
    mediator::DriverMsg::decode(message).ok()
}

/// A frame for a device.
pub fn frame(device: Option<Device>, message: &[u8]) -> Vec<u8> {
    whole(HeaderBytes::new(device, None).as_slice(), message)
}

/// A frame for, or from, one client.
pub fn frame_of(device: Option<Device>, client: ClientId, message: &[u8]) -> Vec<u8> {
    whole(HeaderBytes::new(device, Some(client)).as_slice(), message)
}

/// A frame with an arbitrary header.
pub fn whole(header: &[u8], message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let fits = Frame { header, message }.encode(&mut bytes);
    debug_assert!(
        fits.is_ok(),
        "peers that break this write the lengths themselves"
    );
    bytes
}

/// Parts that exceed the maximum length.
pub fn too_long(header: &[u8]) -> Vec<u8> {
    let mut bytes = (header.len() as u16).to_be_bytes().to_vec();
    bytes.extend_from_slice(header);
    bytes.extend_from_slice(&40_000_u16.to_be_bytes());
    bytes.resize(bytes.len() + 40_000, 1);
    bytes
}

/// Encodes a packet of the SDKs.
pub fn packet(packet: &amber_proto::Packet) -> Bytes {
    packet.encode().unwrap_or_default()
}

/// The ids of a header, as numbers.
pub fn ids(header: &Header<'_>) -> Vec<ClientId> {
    header.client_ids().collect()
}
