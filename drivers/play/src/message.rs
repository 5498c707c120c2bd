//! A message of any device, as its fields. PURE.

use amber_proto::{DeviceMessage, MsgType, SynNum};
use bytes::{Buf, BufMut};
use prost::DecodeError;
use prost::encoding::{self, DecodeContext, WireType, encode_key, encode_varint};

/// The fields that all messages have, and the bytes of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    msg_type: Option<i32>,
    syn: Option<u32>,
    ack: Option<u32>,
    /// The fields of the device, unchanged.
    pub(crate) fields: Vec<u8>,
}

const TYPE: u32 = 2;
const SYN: u32 = 3;
const ACK: u32 = 4;
/// What the sender of a request joins, which is no part of what it asks for.
const JOINS: u32 = 9;

impl Message {
    /// A DATA message with these fields of the device.
    pub(crate) fn with(fields: Vec<u8>) -> Self {
        Self {
            fields,
            ..Self::data()
        }
    }
}

impl prost::Message for Message {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        if let Some(number) = &self.msg_type {
            encoding::int32::encode(TYPE, number, buf);
        }
        if let Some(number) = &self.syn {
            encoding::uint32::encode(SYN, number, buf);
        }
        if let Some(number) = &self.ack {
            encoding::uint32::encode(ACK, number, buf);
        }
        buf.put_slice(&self.fields);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        let out = &mut self.fields;
        match (tag, wire_type) {
            (TYPE, _) => {
                let number = self.msg_type.get_or_insert_default();
                return encoding::int32::merge(wire_type, number, buf, ctx);
            }
            (SYN, _) => {
                let number = self.syn.get_or_insert_default();
                return encoding::uint32::merge(wire_type, number, buf, ctx);
            }
            (ACK, _) => {
                let number = self.ack.get_or_insert_default();
                return encoding::uint32::merge(wire_type, number, buf, ctx);
            }
            (JOINS, _) => return encoding::skip_field(wire_type, tag, buf, ctx),
            (_, WireType::Varint) => {
                let mut value = 0;
                encoding::uint64::merge(wire_type, &mut value, buf, ctx)?;
                encode_key(tag, wire_type, out);
                encode_varint(value, out);
            }
            (_, WireType::SixtyFourBit) => {
                let mut value = 0;
                encoding::fixed64::merge(wire_type, &mut value, buf, ctx)?;
                encoding::fixed64::encode(tag, &value, out);
            }
            (_, WireType::ThirtyTwoBit) => {
                let mut value = 0;
                encoding::fixed32::merge(wire_type, &mut value, buf, ctx)?;
                encoding::fixed32::encode(tag, &value, out);
            }
            (_, WireType::LengthDelimited) => {
                let mut value = Vec::new();
                encoding::bytes::merge(wire_type, &mut value, buf, ctx)?;
                encoding::bytes::encode(tag, &value, out);
            }
            // Groups are deprecated in protobuf, and no device uses them.
            (_, WireType::StartGroup | WireType::EndGroup) => {
                return encoding::skip_field(wire_type, tag, buf, ctx);
            }
        }
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        let varint = |number: &i32| encoding::int32::encoded_len(TYPE, number);
        let number = |number: &u32| encoding::uint32::encoded_len(SYN, number);
        self.msg_type.as_ref().map_or(0, varint)
            + self.syn.as_ref().map_or(0, number)
            + self.ack.as_ref().map_or(0, number)
            + self.fields.len()
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl DeviceMessage for Message {
    fn kind(&self) -> Option<MsgType> {
        self.msg_type
            .and_then(|number| MsgType::try_from(number).ok())
    }
    fn set_kind(&mut self, kind: MsgType) {
        self.msg_type = Some(kind.into());
    }
    fn syn(&self) -> Option<SynNum> {
        self.syn.map(SynNum)
    }
    fn set_syn(&mut self, syn: Option<SynNum>) {
        self.syn = syn.map(|syn| syn.0);
    }
    fn ack(&self) -> Option<SynNum> {
        self.ack.map(SynNum)
    }
    fn set_ack(&mut self, ack: Option<SynNum>) {
        self.ack = ack.map(|ack| ack.0);
    }
}

#[cfg(test)]
mod tests {
    use amber_proto::hokuyo;
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;

    #[test]
    fn a_message_stays_as_it_is() {
        let mut scan = hokuyo::DriverMsg::data();
        scan.set_ack(Some(SynNum(7)));
        scan.timestamp = Some(1_700_000_000_000);
        scan.scan = Some(hokuyo::Scan {
            angles: vec![0.5, -3.25],
            distances: vec![1, 2_000_000],
        });
        let bytes = scan.encode_to_vec();
        let mut message = Message::decode(&bytes[..]).unwrap();
        assert_eq!(
            (message.kind(), message.ack()),
            (Some(MsgType::Data), Some(SynNum(7)))
        );
        assert_eq!(message.encode_to_vec(), bytes);
        message.set_ack(Some(SynNum(0)));
        message.set_syn(Some(SynNum(9)));
        let changed = hokuyo::DriverMsg::decode(&message.encode_to_vec()[..]).unwrap();
        assert_eq!(
            (changed.syn(), changed.ack()),
            (Some(SynNum(9)), Some(SynNum(0)))
        );
        assert_eq!(changed.scan, scan.scan);
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            if let Ok(message) = Message::decode(&bytes[..]) {
                let written = message.encode_to_vec();
                prop_assert_eq!(written.len(), message.encoded_len());
                prop_assert_eq!(Message::decode(&written[..]).unwrap(), message);
            }
        }
    }
}
