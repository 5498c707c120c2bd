//! The fields that the `DriverMsg` of every device has. PURE.

use crate::{MsgType, SynNum};

/// The `DriverMsg` of a device: the base fields and the device's extensions. For your own
/// device, `amber_sdk::device!` generates one from its `.proto` file.
///
/// ```
/// use amber_proto::{DeviceMessage, MsgType, SynNum, dummy};
///
/// let mut ask = dummy::DriverMsg { get_status: Some(true), ..dummy::DriverMsg::data() };
/// ask.set_syn(Some(SynNum(7)));
/// assert_eq!(ask.kind(), Some(MsgType::Data));
/// assert_eq!(ask.syn(), Some(SynNum(7)));
/// ```
pub trait DeviceMessage: prost::Message + Default {
    /// The type; `None` if it is missing or unknown.
    fn kind(&self) -> Option<MsgType>;
    /// Sets the type; every message that is sent must have one.
    fn set_kind(&mut self, kind: MsgType);
    /// The number of this request.
    fn syn(&self) -> Option<SynNum>;
    /// Sets the number of this request.
    fn set_syn(&mut self, syn: Option<SynNum>);
    /// The number of the request that this answers; absent or 0 in published data.
    fn ack(&self) -> Option<SynNum>;
    /// Sets the number of the request that this answers.
    fn set_ack(&mut self, ack: Option<SynNum>);

    /// An empty message of a type.
    fn of_kind(kind: MsgType) -> Self {
        let mut message = Self::default();
        message.set_kind(kind);
        message
    }

    /// An empty DATA message.
    fn data() -> Self {
        Self::of_kind(MsgType::Data)
    }
}

/// Implements [`DeviceMessage`](crate::DeviceMessage) for a `DriverMsg` that was generated from
/// a `.proto` file. `amber_sdk::device!` already does so.
#[macro_export]
macro_rules! device_message {
    ($message:ty) => {
        impl $crate::DeviceMessage for $message {
            fn kind(&self) -> Option<$crate::MsgType> {
                // Not the generated getter, which returns DATA for every unknown type.
                self.r#type
                    .and_then(|number| $crate::MsgType::try_from(number).ok())
            }
            fn set_kind(&mut self, kind: $crate::MsgType) {
                self.r#type = Some(kind.into());
            }
            fn syn(&self) -> Option<$crate::SynNum> {
                self.syn_num.map($crate::SynNum)
            }
            fn set_syn(&mut self, syn: Option<$crate::SynNum>) {
                self.syn_num = syn.map(|syn| syn.0);
            }
            fn ack(&self) -> Option<$crate::SynNum> {
                self.ack_num.map($crate::SynNum)
            }
            fn set_ack(&mut self, ack: Option<$crate::SynNum>) {
                self.ack_num = ack.map(|ack| ack.0);
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn a_missing_or_unknown_type_is_not_data() {
        for bytes in [&b""[..], b"\x18\x07", b"\x10\x63"] {
            assert_eq!(crate::dummy::DriverMsg::decode(bytes).unwrap().kind(), None);
        }
        assert_eq!(
            crate::dummy::DriverMsg::decode(&b"\x10\x01"[..])
                .unwrap()
                .kind(),
            Some(MsgType::Data)
        );
    }
}
