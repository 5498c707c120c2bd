//! Frames and messages as the attackers and the innocent clients send them. PURE.

use amber_proto::mediator::{self, Request, reply, request};
use amber_proto::{
    ClientId, Device, DeviceMessage, DriverMsg, Frame, Header, HeaderBytes, MsgType, SynNum,
};
use prost::Message;

/// One frame with what the header says.
pub fn frame(device: Option<Device>, client: Option<ClientId>, message: &[u8]) -> Vec<u8> {
    let header = HeaderBytes::new(device, client);
    framed(header.as_slice(), message)
}

/// One frame with any header.
///
/// # Panics
/// A part is longer than a frame can carry: the suite makes none.
pub fn framed(header: &[u8], message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let frame = Frame { header, message };
    frame
        .encode(&mut bytes)
        .unwrap_or_else(|error| panic!("{error}"));
    bytes
}

/// A datagram of a client to a device.
pub fn to(device: Device, message: &[u8]) -> Vec<u8> {
    frame(Some(device), None, message)
}

/// A message that only has a type.
pub fn kind(kind: MsgType) -> Vec<u8> {
    mediator::DriverMsg::of_kind(kind).encode_to_vec()
}

/// A DATA message with a number, and padding that no driver reads.
pub fn numbered(number: u32, padding: usize) -> Vec<u8> {
    let mut message = mediator::DriverMsg::data();
    message.set_syn(Some(SynNum(number)));
    let mut bytes = message.encode_to_vec();
    // Field 179, the last one that is free for users.
    bytes.extend_from_slice(&[0x9a, 0x0b]);
    prost::encoding::encode_varint(padding as u64, &mut bytes);
    bytes.resize(bytes.len() + padding, 0);
    bytes
}

pub fn number(message: &[u8]) -> Option<u32> {
    DriverMsg::decode(message).ok()?.syn_num
}

/// A request to the mediator itself.
pub fn request(number: u32, what: request::What) -> Vec<u8> {
    let mut message = mediator::DriverMsg::data();
    message.set_syn(Some(SynNum(number)));
    message.request = Some(Request { what: Some(what) });
    to(Device::MEDIATOR, &message.encode_to_vec())
}

/// What a datagram of the mediator itself means to who asked.
#[derive(Clone, Debug, PartialEq)]
pub enum FromMediator {
    /// The reply to a request.
    Reply(u32, Box<reply::What>),
    /// A PING, and the datagram that answers it.
    Ping(Vec<u8>),
    /// Anything else.
    Other,
}

/// Reads a datagram.
pub fn from_mediator(datagram: &[u8]) -> FromMediator {
    let parsed = || {
        let frame = Frame::from_datagram(datagram).ok()?;
        let header = Header::parse(frame.header).ok()?;
        (header.device() == Some(Device::MEDIATOR)).then_some(())?;
        mediator::DriverMsg::decode(frame.message).ok()
    };
    let Some(message) = parsed() else {
        return FromMediator::Other;
    };
    if message.kind() == Some(MsgType::Ping) {
        let mut pong = mediator::DriverMsg::of_kind(MsgType::Pong);
        pong.set_ack(message.syn());
        return FromMediator::Ping(to(Device::MEDIATOR, &pong.encode_to_vec()));
    }
    let ack = message.ack().map_or(0, |ack| ack.0);
    match message.reply.and_then(|reply| reply.what) {
        Some(what) => FromMediator::Reply(ack, Box::new(what)),
        None => FromMediator::Other,
    }
}

/// Whether a datagram tells a client that the driver of a device cannot be used.
pub fn says_driver_died(datagram: &[u8], device: Device) -> bool {
    let Ok(frame) = Frame::from_datagram(datagram) else {
        return false;
    };
    let header = Header::parse(frame.header);
    let message = mediator::DriverMsg::decode(frame.message);
    header.is_ok_and(|header| header.device() == Some(device))
        && message.is_ok_and(|message| message.kind() == Some(MsgType::DriverDied))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 1000, u32::MAX] {
            let message = numbered(number, 500);
            assert_eq!(super::number(&message), Some(number));
            assert!((500..520).contains(&message.len()));
        }
    }

    #[test]
    fn a_ping_is_answered_with_its_number() {
        let mut ping = mediator::DriverMsg::of_kind(MsgType::Ping);
        ping.set_syn(Some(SynNum(42)));
        let FromMediator::Ping(pong) = from_mediator(&to(Device::MEDIATOR, &ping.encode_to_vec()))
        else {
            panic!("no PING");
        };
        let message = Frame::from_datagram(&pong).unwrap().message;
        let pong = mediator::DriverMsg::decode(message).unwrap();
        assert_eq!(
            (pong.kind(), pong.ack()),
            (Some(MsgType::Pong), Some(SynNum(42)))
        );
        assert_eq!(from_mediator(b"x"), FromMediator::Other);
    }
}
