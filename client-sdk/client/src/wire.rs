//! Reads and writes the common fields of all messages. PURE.

use amber_proto::{
    Device, DriverHdr, DriverMsg, MissingPieces, MsgType, Packet, Piece, Receipt, SynNum,
};
use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding::{DecodeContext, WireType, decode_key, encode_key, encode_varint, skip_field};
use prost::{DecodeError, Message};

const SYN_NUM: u32 = 3;
/// The base fields of a `DriverMsg`.
const COMMON: std::ops::RangeInclusive<u32> = 2..=9;

/// The base fields of a `DriverMsg` that clients read, each optional.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Envelope {
    #[prost(int32, optional, tag = "2")]
    r#type: Option<i32>,
    #[prost(uint32, optional, tag = "3")]
    syn_num: Option<u32>,
    #[prost(uint32, optional, tag = "4")]
    ack_num: Option<u32>,
    /// The message is a piece of a longer one.
    #[prost(message, optional, tag = "6")]
    pub(crate) piece: Option<Piece>,
    #[prost(message, optional, tag = "7")]
    pub(crate) missing: Option<MissingPieces>,
    #[prost(message, optional, tag = "8")]
    pub(crate) receipt: Option<Receipt>,
}

impl Envelope {
    pub(crate) fn new(kind: MsgType, syn: Option<SynNum>, ack: Option<SynNum>) -> Self {
        Self {
            r#type: Some(kind.into()),
            syn_num: syn.map(|syn| syn.0),
            ack_num: ack.map(|ack| ack.0),
            ..Self::default()
        }
    }

    pub(crate) fn kind(&self) -> Option<MsgType> {
        self.r#type
            .and_then(|number| MsgType::try_from(number).ok())
    }

    pub(crate) fn syn(&self) -> Option<SynNum> {
        self.syn_num.map(SynNum)
    }

    /// The number of the request that this answers; `None` in published data.
    pub(crate) fn ack(&self) -> Option<SynNum> {
        self.ack_num.filter(|ack| *ack != 0).map(SynNum)
    }

    /// Whether it is a piece of a message, or about pieces.
    pub(crate) fn is_about_pieces(&self) -> bool {
        let is_about = self.piece.is_some() || self.missing.is_some() || self.receipt.is_some();
        is_about && self.kind() == Some(MsgType::Data)
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.encode_to_vec().into()
    }
}

/// Decodes a message. From a slice, prost reads lists of numbers faster than from [`Bytes`].
pub(crate) fn decode<M: Message + Default>(message: &[u8]) -> Result<M, DecodeError> {
    M::decode(message)
}

/// The numbers of the fields that a message has in addition to the common ones. If the message is
/// invalid, only those before the invalid part.
pub(crate) fn own_fields(mut message: &[u8]) -> Vec<u32> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let Ok((number, wire_type)) = decode_key(&mut message) else {
            break;
        };
        if !COMMON.contains(&number) && !fields.contains(&number) {
            fields.push(number);
        }
        if skip_field(wire_type, number, &mut message, DecodeContext::default()).is_err() {
            break;
        }
    }
    fields
}

/// The message with a synNum. Of duplicate fields, protobuf uses the last one.
pub(crate) fn with_syn(message: &[u8], syn: SynNum) -> Bytes {
    let mut out = BytesMut::with_capacity(message.len() + 6);
    out.put_slice(message);
    encode_key(SYN_NUM, WireType::Varint, &mut out);
    encode_varint(syn.0.into(), &mut out);
    out.freeze()
}

/// The maximum number of bytes that [`with_syn`] adds to a message.
pub(crate) const SYN_LEN: usize = 6;

/// A message that calls for missing pieces.
pub(crate) fn missing(call: MissingPieces) -> Bytes {
    let message = DriverMsg {
        r#type: MsgType::Data.into(),
        missing: Some(call),
        ..DriverMsg::default()
    };
    message.encode_to_vec().into()
}

pub(crate) fn packet(device: Device, message: Bytes) -> Packet {
    let header = DriverHdr {
        device_type: Some(device.device_type.0),
        device_id: Some(device.id.0),
        client_ids: vec![],
    };
    Packet { header, message }
}

/// The sending device, if the header has both its type and its id.
pub(crate) fn sender(header: &DriverHdr) -> Option<Device> {
    let device_type = amber_proto::DeviceType(header.device_type?);
    Some(Device::new(device_type, header.device_id?))
}

#[cfg(test)]
mod tests {
    use amber_proto::{DeviceMessage, dummy};

    use super::*;

    #[test]
    fn a_number_is_added_and_wins() {
        let ask = dummy::DriverMsg {
            message: Some("hello".into()),
            syn_num: Some(5),
            ..dummy::DriverMsg::data()
        };
        let numbered = with_syn(&ask.encode_to_vec(), SynNum(u32::MAX));
        assert!(numbered.len() <= ask.encoded_len() + SYN_LEN);
        let read = dummy::DriverMsg::decode(numbered).unwrap();
        assert_eq!(
            read,
            dummy::DriverMsg {
                syn_num: Some(u32::MAX),
                ..ask
            }
        );
    }

    #[test]
    fn the_fields_of_a_message_are_listed_without_the_common_ones() {
        let ask = dummy::DriverMsg {
            message: Some("hello".into()),
            enable: Some(true),
            ..dummy::DriverMsg::data()
        };
        let mut bytes = with_syn(&ask.encode_to_vec(), SynNum(5)).to_vec();
        let fields = own_fields(&bytes);
        assert_eq!(fields.len(), 2, "{fields:?}");
        // A field with the number 400 that ends too early.
        bytes.extend(b"\x82\x19\x05a");
        assert_eq!(own_fields(&bytes), [&fields[..], &[400]].concat());
        assert!(own_fields(b"\xff").is_empty());
    }

    #[test]
    fn a_missing_type_is_not_data_and_ack_0_answers_nothing() {
        let envelope = Envelope::decode(&b"\x20\0"[..]).unwrap();
        assert_eq!((envelope.kind(), envelope.ack()), (None, None));
    }
}
